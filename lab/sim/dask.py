# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs on many machines, through Dask's distributed scheduler.

Workers need Dask and nothing of ours: the task is one self-contained function, and the simulator
itself travels to them as bytes, once per worker process, so that every run of a sweep is made by
the same build. (Workers have to be of this machine's architecture with a C library no older.)

Results come back as they finish and are written here at once. If a worker dies, Dask gives what
it had under way to another; what had come back is on disk already. A result that was finished
but still on its way when its worker died would be lost and made again, so a task also leaves it
in the sweep's folder if that folder is shared with the worker (it finds the sweep's token there).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from lab.errors import LabError, UsageError
from lab.sim import program
from lab.sim import spec as specs
from lab.sim.pool import Outcome
from lab.sim.spec import Spec
from lab.sim.store import Store

TOKEN = ".token"
_CONNECT_S = 15
_RETRIES = 5


class Dask:
    """A scheduler at `address`, like tcp://10.0.0.1:8786."""

    def __init__(self, address: str, store: Store) -> None:
        try:
            import distributed
        except ImportError:
            raise LabError(
                "--scheduler needs Dask, which is not installed; on Debian and Ubuntu: "
                "apt-get install python3-distributed"
            ) from None
        if "://" not in address:
            raise UsageError(f"--scheduler '{address}' is no address; write tcp://HOST:8786")
        self._address, self._store, self._module = address, store, distributed
        try:
            self._client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            reason = str(error).splitlines()[0] if str(error) else "no answer"
            raise LabError(
                f"no Dask scheduler at {address} ({reason}); start one with dask-scheduler and "
                "workers with dask-worker"
            ) from None

    def where(self) -> str:
        """Workers that there are now."""
        count = len(self._client.scheduler_info()["workers"])
        return f"{count} worker{'s' if count != 1 else ''} at {self._address}"

    def run(self, todo: list[Spec], tell: Callable[[int, float], None]) -> Iterator[Outcome]:
        """See pool.Executor."""
        binary = program.path().read_bytes()
        shipped = self._client.scatter(binary, broadcast=False, hash=True)
        token = self._leave_token()
        task = _make_task()
        futures = {}
        for index, spec in enumerate(todo):
            file = str(self._store.file(spec).resolve())
            future = self._client.submit(
                task,
                shipped,
                self._store.build,
                specs.argv(spec),
                _files_of(spec),
                {"run": spec, "build": self._store.build},
                file,
                token,
                pure=False,
                retries=_RETRIES,
            )
            futures[future] = index
        try:
            for future in self._module.as_completed(list(futures), loop=self._client.loop):
                yield self._outcome(futures[future], future)
                future.release()
        finally:
            self._client.cancel([future for future in futures if not future.done()])

    def close(self) -> None:
        """Leave the scheduler."""
        self._client.close()

    def _outcome(self, index: int, future) -> Outcome:  # noqa: ANN001 (imported late)
        error = future.exception()
        if error is not None:
            return Outcome(index, None, " ".join(str(error).split()) or type(error).__name__)
        answer = json.loads(future.result())
        return Outcome(index, answer.get("result"), answer.get("problem", ""))

    def _leave_token(self) -> str:
        path = self._store.folder / TOKEN
        if not path.exists():
            import secrets

            path.write_text(secrets.token_hex(16))
        return path.read_text()


def _files_of(spec: Spec) -> dict[str, bytes]:
    """Input files that a run reads, by flag; workers do not have them."""
    found = {}
    for name in ("workload", "arrivals"):
        path = Path(str(spec.get(name, "")))
        if spec.get(name) and path.is_file():
            found[name] = path.read_bytes()
    return found


def _make_task() -> Callable[..., str]:
    """The function that workers call; local, so that it travels by value."""

    def simulate(
        binary: bytes,
        build: str,
        argv: list[str],
        files: dict[str, bytes],
        about: dict,
        file: str,
        token: str,
    ) -> str:
        import hashlib
        import json
        import os
        import pathlib
        import subprocess
        import tempfile

        target = pathlib.Path(file)
        mark = target.parent / ".token"
        shared = mark.is_file() and mark.read_text() == token
        if shared and target.is_file():
            try:
                return json.dumps({"result": json.loads(target.read_text())["result"]})
            except (ValueError, KeyError):
                pass
        if hashlib.sha256(binary).hexdigest()[:16] != build:
            return json.dumps({"problem": "the simulator was damaged on its way to the worker"})
        with tempfile.TemporaryDirectory(prefix="homa-sim-") as folder:
            place = pathlib.Path(folder)
            tool = place / "homa-sim"
            tool.write_bytes(binary)
            tool.chmod(0o755)
            words = list(argv)
            for name, content in files.items():
                copy = place / f"{name}.csv"
                copy.write_bytes(content)
                words[words.index(f"--{name}") + 1] = str(copy)
            out = place / "result.json"
            done = subprocess.run(
                [str(tool), *words, "--json", str(out)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            if not out.is_file():
                lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
                return json.dumps({"problem": lines[-1].removeprefix("homa-sim: ")})
            result = json.loads(out.read_text())
        if shared and not result.get("interrupted"):
            beside = target.with_name(f".part-{os.getpid()}-{target.stem}")
            beside.write_text(json.dumps({**about, "result": result}) + "\n")
            os.replace(beside, target)
        return json.dumps({"result": result})

    return simulate
