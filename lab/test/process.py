# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Starts children so that nothing of them outlives the run.

Each child leads a session of its own, and the runner is a subreaper: a grandchild whose
parent died becomes ours, so that walking our descendants finds everything there is. In
return it must bury them: a test that waits for a process to vanish would wait for ever.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)

# Pids of our own children: ever, and those that somebody is waiting for now.
started: set[int] = set()
_awaited: set[int] = set()
# Held from the start of a child until it is awaited: meanwhile nobody buries.
_starting = threading.Lock()


class Stopped(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived; the number is the argument."""


def prepare() -> None:
    """Make this process the one that is asked to stop and that tidies up."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)


def _stop(number: int, _frame: object) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    raise Stopped(number)


def _in_child() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def descendants() -> list[int]:
    """Every process below this one."""
    parents: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            stat = Path("/proc", entry.name, "stat").read_text()
        except OSError:
            continue
        parent = int(stat.rpartition(")")[2].split()[1])
        parents.setdefault(parent, []).append(int(entry.name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def kill_all() -> None:
    """End every descendant: asked first, so that it can tidy up, then made to."""
    for number, patience in ((signal.SIGINT, 4.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 2.0)):
        for pid in descendants():
            _signal(pid, number)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            _reap()
            if not descendants():
                return
            time.sleep(0.05)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def run(
    command: Sequence[str | Path],
    log: Path,
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout: float,
    verbose: bool = False,
) -> int | None:
    """Run to the end with all output in `log`; the exit status, None after a timeout."""
    full = dict(os.environ) | dict(env or {})
    with log.open("ab") as out:
        out.write(f"$ {' '.join(map(str, command))}\n".encode())
        out.flush()
        with _starting:
            child = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=full,
                start_new_session=True,
                preexec_fn=_in_child,
            )
            started.add(child.pid)
            _awaited.add(child.pid)
        try:
            return _wait(child, log, timeout, verbose)
        except subprocess.TimeoutExpired:
            kill_all()
            child.wait()
            return None
        finally:
            _awaited.discard(child.pid)


def _bury_orphans() -> None:
    """Reap what has ended and is nobody's; what somebody waits for is left to them."""
    try:
        while True:
            with _starting:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is None or ended.si_pid in _awaited:
                    return
                os.waitpid(ended.si_pid, os.WNOHANG)
    except ChildProcessError:
        pass


def _wait(child: subprocess.Popen[bytes], log: Path, timeout: float, verbose: bool) -> int:
    deadline = time.monotonic() + timeout
    with log.open("rb") as tail:
        tail.seek(0, os.SEEK_END)
        while True:
            status = child.poll()
            if verbose:
                print(tail.read().decode(errors="replace"), end="", flush=True)
            if status is not None:
                return status
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(child.args, timeout)
            _bury_orphans()
            time.sleep(0.03)


def runs(pid: int) -> bool:
    """It has not ended; whose child it has become may be slow to ask for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
