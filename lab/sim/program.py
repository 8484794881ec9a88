# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa-sim as a process: where it is, what it knows, one run of it."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError, UsageError
from lab.paths import BUILD
from lab.sim import spec as specs
from lab.sim.spec import Spec

_TICK_S = 0.2
_BAD_REQUEST = 2  # homa-sim's exit status for what it cannot be told


@dataclass(frozen=True)
class Progress:
    """How far a run is; nanoseconds of simulated time."""

    simulated_ns: int
    end_ns: int
    messages: int
    wall_s: float

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, self.simulated_ns / self.end_ns) if self.end_ns else 0.0


class Stopped(LabError):
    """A run was ended from outside."""

    exit_code = 130


def path() -> Path:
    """The simulator; LabError if it has not been built."""
    program = Path(os.environ.get("HOMA_SIM") or BUILD / "sim" / "homa-sim")
    if not os.access(program, os.X_OK):
        raise LabError(f"homa-sim is not built ({program} is missing); run ./homa build")
    return program


@functools.cache
def _hash(program: Path, _changed: int, _size: int) -> str:
    return hashlib.sha256(program.read_bytes()).hexdigest()[:16]


def build() -> str:
    """What identifies this build of the simulator: its program's hash."""
    program = path()
    stat = program.stat()
    return _hash(program, stat.st_mtime_ns, stat.st_size)


@functools.cache
def catalogue() -> dict:
    """What homa-sim --list says: protocols, presets, settings."""
    done = subprocess.run([path(), "--list"], capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = None
    if done.returncode or not isinstance(found, dict) or "protocols" not in found:
        raise LabError("homa-sim does not list its protocols; rebuild it with ./homa build")
    return found


def presets(protocol: str) -> list[str]:
    """The names of a protocol's presets."""
    for row in catalogue()["protocols"]:
        if row["name"] == protocol:
            return [p if isinstance(p, str) else p["name"] for p in row.get("presets") or []]
    return []


def has_setting(protocol: str, name: str) -> bool:
    """Whether a protocol can be told `name` with --set."""
    for row in catalogue()["protocols"]:
        if row["name"] == protocol:
            return any(
                s["name"] == name for part in ("settings", "engine") for s in row.get(part) or []
            )
    return False


def check(spec: Spec) -> None:
    """UsageError for a protocol or preset that homa-sim does not have."""
    names = [row["name"] for row in catalogue()["protocols"]]
    protocol = str(spec.get("protocol", "homa"))
    if protocol not in names:
        raise UsageError(f"there is no protocol '{protocol}'; choose from {', '.join(names)}")
    preset = str(spec.get("preset", ""))
    known = presets(protocol)
    if preset and preset not in known:
        choice = f"choose from {', '.join(known)}" if known else "leave --preset out"
        raise UsageError(f"{protocol} has no preset '{preset}'; {choice}")


def run(
    spec: Spec,
    tell: Callable[[Progress], None] = lambda progress: None,
    stop: Callable[[], bool] = lambda: False,
    extra: list[str] | None = None,
    interruptible: bool = False,
) -> dict:
    """Run a normal() `spec` and give its result.

    When stop() becomes true the run is ended: with `interruptible` what it has measured so far
    is given (it says "interrupted"), else Stopped is raised. LabError has the program's own words.
    """
    with tempfile.TemporaryDirectory(prefix="homa-sim-") as folder:
        out = Path(folder) / "result.json"
        log = Path(folder) / "log"
        reader, writer = os.pipe()
        command = [str(path()), *specs.argv(spec), "--json", str(out), "--progress", str(writer)]
        try:
            with log.open("wb") as words:
                # A session of its own: Ctrl-C reaches this program, which decides what to do.
                process = subprocess.Popen(
                    [*command, *(extra or [])],
                    stdin=subprocess.DEVNULL,
                    stdout=words,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writer,),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(reader)
            raise LabError(f"homa-sim cannot be run: {error.strerror}") from None
        finally:
            os.close(writer)
        try:
            status = _watch(process, reader, tell, stop, interruptible)
        finally:
            os.close(reader)
            if process.poll() is None:
                process.kill()
                process.wait()
        return _result(status, out, log.read_text(errors="replace"), stop())


def _watch(
    process: subprocess.Popen[bytes],
    reader: int,
    tell: Callable[[Progress], None],
    stop: Callable[[], bool],
    gently: bool,
) -> int:
    """Pass progress on until the process ends; its status."""
    rest, open_, asked = b"", True, False
    while process.poll() is None:
        if stop() and not asked:
            asked = True
            process.send_signal(signal.SIGINT if gently else signal.SIGKILL)
        if not open_:
            time.sleep(_TICK_S / 4)
            continue
        if select.select([reader], [], [], _TICK_S)[0]:
            chunk = os.read(reader, 65536)
            open_ = bool(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            if lines and (progress := _progress(lines[-1])):
                tell(progress)
    return process.returncode


def _progress(line: bytes) -> Progress | None:
    try:
        simulated, end, messages, wall = (float(word) for word in line.split()[:4])
    except ValueError:
        return None
    return Progress(int(simulated), int(end), int(messages), wall / 1e3)


def _result(status: int, out: Path, said: str, stopped: bool) -> dict:
    if out.exists():
        try:
            return json.loads(out.read_text())
        except ValueError:
            raise LabError("homa-sim wrote no JSON; rebuild it with ./homa build") from None
    if stopped:
        raise Stopped("interrupted before there was a result")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    words = lines[-1].removeprefix("homa-sim: ") if lines else "it said nothing"
    if status == _BAD_REQUEST:
        raise UsageError(words.replace("homa-sim --", "./homa sim run --"))
    how = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
    raise LabError(f"homa-sim {how}: {words}")
