# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Network namespaces and veth pairs for tests, and the guarantee that they go away.

    with Net() as net:
        a, b = net.pair()
        server = b.start(["some-server"])
        a.run(["some-client", str(b.v4)])

Namespaces are called "hmt<pid>-<n>-<name>", so that any number of test runs go on side by
side. A guardian process (lab.guardian) holds the other end of a pipe: when the pipe closes, by
the end of the `with` block or by the death of the test, kill -9 included, it kills what runs in
the namespaces and deletes them; their devices and XDP programs go with them.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "hmt"
_PR_SET_PDEATHSIG = 1
_serial = itertools.count()
_libc = ctypes.CDLL(None, use_errno=True)


class CommandError(AssertionError):
    """A command of the test bed itself failed."""


def run(
    argv: Sequence[str], check: bool = True, timeout: float = 30
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; CommandError if it fails."""
    done = subprocess.run(list(argv), capture_output=True, text=True, check=False, timeout=timeout)
    if check and done.returncode:
        raise CommandError(
            f"{' '.join(argv)}: status {done.returncode}: {done.stdout}{done.stderr}"
        )
    return done


def eventually(what: Callable[[], object], timeout: float = 10) -> object:
    """Wait until `what()` is true and give its value; an AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come true within {timeout} s: {what}")
        time.sleep(0.02)


class _Stream:
    """Lines of a pipe, read by a thread of its own so that the program never waits for us."""

    def __init__(self, pipe: IO[str]) -> None:
        self.queue: queue.Queue[str | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe: IO[str]) -> None:
        for line in pipe:
            self.queue.put(line)
        self.queue.put(None)

    def line(self, timeout: float) -> str | None:
        """The next line, None at the end."""
        line = self.queue.get(timeout=timeout)
        if line is None:
            self.queue.put(None)
        return line

    def rest(self, timeout: float) -> str:
        """All that was not taken yet, until the end."""
        lines = []
        try:
            while (line := self.line(timeout)) is not None:
                lines.append(line)
        except queue.Empty:
            said = "".join(lines)
            raise AssertionError(f"another process still has its output; it said: {said}") from None
        return "".join(lines)


class Process:
    """A program in a namespace; dies with the test. Its output lines can be awaited."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = list(argv)
        self._popen = subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
        )
        assert self._popen.stdout and self._popen.stderr
        self.stdout = _Stream(self._popen.stdout)
        self.stderr = _Stream(self._popen.stderr)

    @property
    def pid(self) -> int:
        """The program itself: `ip netns exec` replaces itself by it."""
        return self._popen.pid

    def running(self) -> bool:
        return self._popen.poll() is None

    def line(self, timeout: float = 30) -> str:
        """The next line of standard output; an AssertionError with standard error if it ended."""
        line = self.stdout.line(timeout)
        if line is None:
            raise AssertionError(f"{self.argv} ended: {self.stderr.rest(timeout)}")
        return line.rstrip("\n")

    def send_signal(self, number: int) -> None:
        self._popen.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, timeout: float = 10) -> tuple[int, str, str]:
        """End it if it still runs: (status, rest of standard output, standard error)."""
        if self.running():
            self._popen.send_signal(number)
        return self.wait(timeout)

    def wait(self, timeout: float = 30) -> tuple[int, str, str]:
        """Wait for its end: (status, rest of standard output, rest of standard error)."""
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
            raise AssertionError(
                f"{self.argv} did not end: {self.stdout.rest(5)}{self.stderr.rest(5)}"
            ) from None
        return self._popen.returncode, self.stdout.rest(5), self.stderr.rest(5)


class Namespace:
    """One network namespace; `device` has the addresses `v4` and `v6` if made by Net.pair()."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.device = "eth0"
        self.v4 = ""
        self.v6 = ""
        self._processes: list[Process] = []

    def command(self, argv: Sequence[str]) -> list[str]:
        return ["ip", "netns", "exec", self.name, *argv]

    def run(
        self, argv: Sequence[str], check: bool = True, timeout: float = 30
    ) -> subprocess.CompletedProcess[str]:
        """Run a program inside, to its end."""
        return run(self.command(argv), check, timeout)

    def ip(self, *words: str) -> str:
        """Run `ip` on this namespace and give its output."""
        return run(["ip", "-n", self.name, *words]).stdout

    def start(self, argv: Sequence[str]) -> Process:
        """Start a program inside; it is killed with the namespace at the latest."""
        process = Process(self.command(argv))
        self._processes.append(process)
        return process

    def address(self, *addresses: str) -> None:
        """Give `device` addresses ("10.9.0.1/24"; IPv6 without duplicate detection)."""
        for text in addresses:
            self.ip("address", "add", text, "dev", self.device, *(["nodad"] if ":" in text else []))

    def stop(self) -> None:
        for process in self._processes:
            process.stop(signal.SIGKILL)


def own_namespaces() -> set[int]:
    """The inodes of the network namespaces that this process has made with Net and that are still there."""
    found = set()
    for path in Path("/run/netns").glob(f"{PREFIX}{os.getpid()}-*"):
        try:
            found.add(path.stat().st_ino)
        except OSError:
            continue  # it has just been removed
    return found


class Net:
    """Namespaces that live as long as the `with` block."""

    def __init__(self) -> None:
        self.prefix = f"{PREFIX}{os.getpid()}-{next(_serial)}-"
        self.spaces: list[Namespace] = []
        self._guardian: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Net:
        self._guardian = subprocess.Popen(
            [sys.executable, "-m", "lab.net.guardian", self.prefix],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            env=dict(os.environ, PYTHONPATH=str(ROOT)),
            cwd="/",
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for space in self.spaces:
            space.stop()
        assert self._guardian and self._guardian.stdin
        self._guardian.stdin.close()
        self._guardian.wait(timeout=60)

    def namespace(self, name: str) -> Namespace:
        """A new namespace with loopback up."""
        space = Namespace(self.prefix + name)
        run(["ip", "netns", "add", space.name])
        # Duplicate address detection would keep link-local addresses, which neighbour
        # solicitations come from, unusable for the first seconds.
        space.run(["sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0"])
        space.ip("link", "set", "lo", "up")
        self.spaces.append(space)
        return space

    def veth(
        self, a: Namespace, b: Namespace, mtu: int = 1500, a_device: str = "eth0", b_device: str = "eth0",
        queues: int = 0,
    ) -> None:  # fmt: skip
        """Join two namespaces by a veth pair and bring it up."""
        # Of a packet that left by transmit queue n > 0 the kernel's generic XDP says that it came by
        # receive queue n - 1, and by 0 for n = 0. So the last receive queue would stay empty
        # if there were not one transmit queue more.
        count = ["numrxqueues", str(queues), "numtxqueues", str(queues + 1)] if queues else []
        a.ip("link", "add", a_device, "mtu", str(mtu), *count, "type", "veth", "peer", "name", b_device,
             "mtu", str(mtu), *count, "netns", b.name)  # fmt: skip
        a.ip("link", "set", a_device, "up")
        b.ip("link", "set", b_device, "up")

    def pair(self, mtu: int = 1500, queues: int = 0) -> tuple[Namespace, Namespace]:
        """Two hosts on one veth pair: 10.9.0.1 and .2, fd09::1 and ::2."""
        a, b = self.namespace("a"), self.namespace("b")
        self.veth(a, b, mtu, queues=queues)
        for number, space in ((1, a), (2, b)):
            space.v4, space.v6 = f"10.9.0.{number}", f"fd09::{number}"
            space.address(f"{space.v4}/24", f"{space.v6}/64")
        return a, b

    def routed(
        self, mtu: int = 1500, far_mtu: int = 1500
    ) -> tuple[Namespace, Namespace, Namespace]:
        """Host a, router, host b: 10.9.1.1 and 10.9.2.1, fd09:1::1 and fd09:2::1; b's link has `far_mtu`."""
        a, router, b = self.namespace("a"), self.namespace("r"), self.namespace("b")
        self.veth(a, router, mtu, b_device="left")
        self.veth(b, router, far_mtu, b_device="right")
        for number, space, port in ((1, a, "left"), (2, b, "right")):
            space.v4, space.v6 = f"10.9.{number}.1", f"fd09:{number}::1"
            space.address(f"{space.v4}/24", f"{space.v6}/64")
            router.device = port
            router.address(f"10.9.{number}.254/24", f"fd09:{number}::fe/64")
            space.ip("route", "add", "default", "via", f"10.9.{number}.254")
            space.ip("-6", "route", "add", "default", "via", f"fd09:{number}::fe")
        router.run(["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])
        return a, router, b
