# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homad in hosts of a laboratory: started, awaited, weighed, stopped.

A daemon has its sockets in a folder of its own, so that any number of laboratories run side by
side. It is ready when it says so by sd_notify. Programs reach it by the environment that
`Homad.env` gives.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.net.hosts import Host
from lab.paths import BUILD, ROOT
from lab.net.runner import last_words

START_S = 20.0
STOP_S = 5.0


def program() -> Path:
    """The daemon; LabError if it has not been built."""
    found = Path(os.environ.get("HOMA_HOMAD") or BUILD / "host" / "homad" / "homad")
    if not os.access(found, os.X_OK):
        raise LabError(f"homad is not built ({found} is missing); run ./homa build")
    return found


@dataclass(frozen=True)
class Effort:
    """What a process has used: seconds of processor time, how often it went to sleep, and how often
    it left the processor for another one without sleeping (by a yield, or at the end of its slice)."""

    at: float
    cpu_s: float
    sleeps: int
    switches: int = 0

    def since(self, before: Effort) -> tuple[float, float]:
        """Percent of one core, and wake-ups per second, from `before` to this moment."""
        seconds = max(self.at - before.at, 1e-9)
        cpu, sleeps = self.cpu_s - before.cpu_s, self.sleeps - before.sleeps
        return 100 * cpu / seconds, sleeps / seconds


def effort(*pids: int) -> Effort:
    """What these processes have used so far, all their threads together."""
    cpu_ns, sleeps, switches = 0, 0, 0
    try:
        for task in [task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()]:
            cpu_ns += int((task / "schedstat").read_text().split()[0])
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches:"):
                    sleeps += int(line.split()[1])
                elif line.startswith("nonvoluntary_ctxt_switches:"):
                    switches += int(line.split()[1])
    except (OSError, ValueError, IndexError) as error:
        raise LabError(f"a process's accounts in /proc cannot be read: {error}") from None
    return Effort(time.monotonic(), cpu_ns / 1e9, sleeps, switches)


def unmodified(argv: list[str]) -> list[str]:
    """The words that run a program as it is, with its TCP through homad."""
    return [str(ROOT / "lib" / "preload" / "homa-run"), "--tcp", *argv]


def preload() -> Path:
    """The library by which unmodified programs find their daemon."""
    return BUILD / "lib" / "preload" / "libhoma-preload.so"


def unmodified_env(env: dict[str, str]) -> dict[str, str]:
    """And its environment; `env` is the daemon's (Homad.env)."""
    return {**env, "HOMA_PRELOAD_LIB": str(preload())}


class Homad:
    """A daemon in `host`; `prefix` are command words before it, `arguments` behind it, and
    `settings` is its file, empty so that whatever /etc has does not matter."""

    def __init__(
        self,
        host: Host,
        prefix: tuple[str, ...] = (),
        arguments: tuple[str, ...] = (),
        settings: str = "",
    ) -> None:
        self.host = host
        self._stack = ExitStack()
        self._folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory(prefix="homa-lab-"))
        )
        self.socket = self._folder / "homad.sock"
        config = self._folder / "homad.toml"
        config.write_text(settings)
        words = [*prefix, str(program()), "--config", str(config), "--socket", str(self.socket)]
        words += ["--monitor", str(self._folder / "monitor.sock"), *arguments]
        self._log = self._folder / "log"
        try:
            self._process = self._start(host.command(words))
        except BaseException:
            self._stack.close()
            raise

    def _start(self, argv: list[str]) -> subprocess.Popen[bytes]:
        path = self._folder / "notify.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, self._log.open("wb") as log:
            ready.bind(str(path))
            ready.settimeout(0.1)
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "NOTIFY_SOCKET": str(path)},
            )
            end = time.monotonic() + START_S
            while time.monotonic() < end:
                try:
                    if b"READY=1" in ready.recv(4096):
                        return process
                except TimeoutError:
                    if process.poll() is not None:
                        raise LabError(f"homad: {self._last_words(process)}") from None
            process.kill()
            process.wait()
            raise LabError(f"homad was not ready within {START_S:g} s")

    def _last_words(self, process: subprocess.Popen[bytes]) -> str:
        return last_words(self._log.read_text(errors="replace"), process.returncode)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def env(self) -> dict[str, str]:
        """For programs that shall find this daemon."""
        return {"HOMA_VIA": "service", "HOMA_SERVICE_SOCKET": str(self.socket)}

    def effort(self) -> Effort:
        """What it has used so far."""
        if self._process.poll() is not None:
            raise LabError(f"homad ended: {self._last_words(self._process)}")
        return effort(self.pid)

    def snapshot(self) -> dict:
        """What its monitoring socket says of it at this moment."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(START_S)
            try:
                monitor.connect(str(self._folder / "monitor.sock"))
                monitor.sendall(b'{"op": "snapshot"}\n')
                with monitor.makefile("rb") as answers:
                    return json.loads(answers.readline())
            except (OSError, ValueError) as error:
                raise LabError(f"homad's monitoring socket does not answer: {error}") from None

    def stop(self) -> None:
        """End it; a LabError if it had died before."""
        died = self._process.poll() is not None
        words = self._last_words(self._process) if died else ""
        if not died:
            self._process.terminate()
            try:
                self._process.wait(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._stack.close()
        if died:
            raise LabError(f"homad died: {words}")


@contextmanager
def homads(
    hosts: Iterable[Host],
    prefix: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    settings: str = "",
) -> Iterator[list[Homad]]:
    """A daemon in each host, gone at the end."""
    running: list[Homad] = []
    try:
        for host in hosts:
            running.append(Homad(host, prefix, arguments, settings))
        yield running
    except BaseException:
        deaths = _stop_all(running)
        if deaths:  # explain what failed better than the failure itself
            raise deaths[0] from None
        raise
    deaths = _stop_all(running)
    if deaths:
        raise deaths[0]


def _stop_all(running: list[Homad]) -> list[LabError]:
    """End all of them; what those that had died say."""
    deaths = []
    for one in running:
        try:
            one.stop()
        except LabError as error:
            deaths.append(error)
    return deaths
