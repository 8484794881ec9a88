# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A virtual machine that runs shell scripts and says what happened.

Two serial lines: the kernel's log on the first, on the second what scripts print, between
marks (init.sh is the other end). The emulator is killed when the thread that started it ends,
however it ends, and when a script takes longer than it may. Its image and what it writes are
files without names, in memory, so that nothing is left of either.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lab.vm import initramfs, klog, tools
from lab.vm.errors import VmError
from lab.vm.kernels import KCSAN, Kernel

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
# Time that a kernel has until it starts our first program, for each attempt, in s. Under load
# about one boot of the debug kernel in fifty crashes in the emulated interrupt controller, and a
# boot of 7.2 once stood still, long before anything of ours ran. That says nothing about what is
# tested, but who runs guests counts these boots and says how many there were.
BOOT_S = (60, 90, 90)
UP_S = 90  # Time from there until the modules are loaded, in s
boots: list[str] = []  # the kernel of each boot of this process
crashes: list[str] = []  # and of each that crashed or stood still before our first program
races: list[str] = []  # titles of data races in which nothing of ours takes part
LEAKS_S = 150
SLOW = 4
TICK_S = 0.01
# A processor that is emulated on a busy machine stands still for milliseconds, so an access waits
# for longer than KCSAN's 80 us, and fewer of them do: us, and one of so many accesses.
_RACES = (
    "kcsan.early_enable=1 kcsan.udelay_task=2000 kcsan.udelay_interrupt=1000 kcsan.skip_watch=50000"
)
REFUSED = 1  # the emulator's status if its arguments make no sense


@dataclass(frozen=True)
class Options:
    """How a guest is made. All sizes in MiB, all times in seconds.

    `files` go into the image (guest path → bytes or a file of this machine), `programs` into
    /usr/bin with their libraries, `homa` and `modules` (files ending in .ko) are loaded at the
    start with `arguments`. `icount`: one instruction is one nanosecond, every run is the same
    (one processor only). `netns`: the emulator runs in this namespace, for tap devices.
    `leaks`: the debug kernel looks for lost memory at the end, which takes 20 seconds or more.
    """

    smp: int = 2
    memory: int = 0
    icount: bool = False
    modules: tuple[Path, ...] = ()
    arguments: str = ""
    programs: tuple[Path | str, ...] = ()
    files: dict[str, bytes | str | Path] = field(default_factory=dict)
    append: str = ""
    emulator: tuple[str, ...] = ()  # words of its command line
    netdevs: tuple[str, ...] = ()
    # More properties of the network cards, e.g. "tx=timer,x-txtimer=1000000,x-txburst=8": eight
    # packets a millisecond.
    nic: str = ""
    drives: tuple[Path, ...] = ()
    plugins: tuple[str, ...] = ()
    preload: str = ""  # a library that the emulator loads before its own
    netns: str = ""
    load: tuple[str, ...] = ()
    leaks: bool = False
    # Lines of the kernel's log that look like mistakes but are meant by the test (a pattern).
    expected: str = ""


@dataclass(frozen=True)
class Done:
    """One script: its exit status and what it printed."""

    status: int
    output: str

    def check(self) -> str:
        """The output; VmError if the status is not 0."""
        if self.status != 0:
            raise VmError(f"a script in the guest ended with {self.status}:\n{self.output}")
        return self.output


@dataclass(frozen=True)
class Result(Done):
    """A whole run: the script's end, the kernel's log, problems in it and how long it took."""

    log: str
    problems: str
    seconds: float

    def check(self) -> str:
        """The output; VmError if the status is not 0 or the kernel complained."""
        if self.problems:
            raise VmError(f"the kernel complained:\n{self.problems}\noutput:\n{self.output}")
        return super().check()


Show = Callable[[str], object]


def run(
    kernel: Kernel,
    script: str,
    options: Options | None = None,
    timeout: float = 60,
    show: Show | None = None,
) -> Result:
    """Boot, run `script`, power off. `timeout` is the script's, four times as long under a
    kernel that is slow. What it prints is given to `show` as it comes, too."""
    begun = time.monotonic()
    with Guest(kernel, options, first=script) as guest:
        done = guest.wait(timeout, show)
        log = guest.finish()
    problems = klog.report(log, (options or Options()).expected)
    return Result(done.status, done.output, log, problems, time.monotonic() - begun)


class Guest:
    """A running guest; a context that powers it off. Scripts run one after the other."""

    def __init__(self, kernel: Kernel, options: Options | None = None, first: str = "") -> None:
        self.kernel = kernel
        self.options = options or Options()
        self._first = first
        self._unread = b""
        self._log: str | None = None
        self._console: Unnamed | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._files = contextlib.ExitStack()

    def __enter__(self) -> Self:
        try:
            self._boot()
            self._read_until("@@homa-up ", UP_S)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        try:
            if kind is None and self._log is None:
                problems = klog.report(self.finish(), self.options.expected)
                if problems:
                    raise VmError(f"the kernel complained:\n{problems}")
        finally:
            self._kill()

    def run(self, script: str, timeout: float = 60) -> Done:
        """Run a script in the guest and wait for its end."""
        text = script.encode() + b"\n"
        self._send(f"{len(text)}\n".encode() + text, timeout)
        return self.wait(timeout)

    def start(self, script: str) -> None:
        """Run a script without waiting; wait() does."""
        text = script.encode() + b"\n"
        self._send(f"{len(text)}\n".encode() + text, 60)

    def wait(self, timeout: float = 60, show: Show | None = None) -> Done:
        """Wait for the script that runs; `show` is given what it prints as it comes."""
        self._read_until("@@homa-begin", timeout)
        output, line = self._read_until("\n@@homa-end ", timeout, show)
        return Done(int(line), output)

    def said(self) -> str:
        """What the script that runs has printed so far."""
        return self._unread.decode(errors="replace")

    def finish(self) -> str:
        """Power off; the whole kernel log. The guest is gone afterwards."""
        if self._log is None:
            self._send(b"bye\n", 30)
            self._read_until("@@homa-log", LEAKS_S if self.options.leaks else 30)
            self._log = self._read_until("@@homa-bye", 60)[0]
            self._send(b"off\n", 10)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                raise VmError(f"the guest does not power off\n{self._tail()}") from None
            races.extend(klog.races_elsewhere(self._log.splitlines()).values())
            late = self.console()
            if klog.problems(late[-20000:]) and not klog.problems(self._log):
                self._log += late[-20000:]
        return self._log

    def console(self) -> str:
        """What the kernel has written to its console so far."""
        return self._console.text() if self._console else ""

    def _boot(self) -> None:
        """Up to the first program; a kernel that does not get there is started again."""
        for attempt, patience in enumerate(BOOT_S, 1):
            boots.append(self.kernel.name)
            self._start()
            try:
                self._read_until("@@homa-init", patience)
                return
            except VmError as error:
                if self._process.poll() == REFUSED:
                    boots.pop()
                    raise
                crashes.append(self.kernel.name)
                if attempt == len(BOOT_S):
                    raise
                print(f"homa: failed to boot, once more: {error}", file=sys.stderr, flush=True)
                self._kill()

    def _start(self) -> None:
        emulator = tools.qemu()
        self._unread = b""
        initrd = self._keep(Unnamed(image(self.kernel, self.options, self._first)))
        self._console, self._output, self._complaints = (self._keep(Unnamed()) for _ in range(3))
        read, self._input = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._files.callback(os.close, self._input)
        self._files.callback(os.close, read)
        words = [*emulator.words, *machine(self.kernel, self.options)]
        words += ["-display", "none", "-monitor", "none"]
        words += ["-initrd", initrd.path, "-serial", f"file:{self._console.path}"]
        # A file takes everything at once; a socket with a slow reader would hold the guest up
        # (and with counted instructions make one run differ from the other).
        talk = f"file,id=talk,path={self._output.path},input-path={path_of(read)}"
        words += ["-chardev", talk, "-serial", "chardev:talk"]
        if self.options.netns:
            words = ["ip", "netns", "exec", self.options.netns, *words]
        preload = {"LD_PRELOAD": self.options.preload} if self.options.preload else {}
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=self._complaints.number,
            stderr=subprocess.STDOUT,
            env={**os.environ, **emulator.env, **preload},
            preexec_fn=die_with_parent(),
            pass_fds=(initrd.number, self._console.number, self._output.number, read),
        )

    def _keep(self, file: Unnamed) -> Unnamed:
        self._files.callback(file.close)
        return file

    def _send(self, data: bytes, timeout: float) -> None:
        deadline = time.monotonic() + timeout * self._slowness()
        while data:
            try:
                data = data[os.write(self._input, data) :]
            except BlockingIOError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise VmError(f"the guest takes no input\n{self._tail()}") from None
                time.sleep(TICK_S)

    def _slowness(self) -> float:
        """Timeouts are for an idle machine; a busy one gives a guest its share of the time."""
        crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
        return (SLOW if self.kernel.is_slow else 1) * max(1.0, crowd)

    def _read_until(self, mark: str, timeout: float, show: Show | None = None) -> tuple[str, str]:
        """What comes before `mark`, and the rest of its line."""
        wanted = mark.encode()
        deadline = time.monotonic() + timeout * self._slowness()
        shown = 0
        text = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            before, found, after = self._unread.partition(wanted)
            rest, newline, after = after.partition(b"\n")
            if show:
                upto = len(before) if found else len(before) - _begun(wanted, before)
                if upto > shown:
                    show(text.decode(before[shown:upto]))
                    shown = upto
            if found and newline:
                self._unread = after
                return before.decode(errors="replace"), rest.decode(errors="replace")
            left = deadline - time.monotonic()
            if left <= 0:
                raise VmError(
                    f"the guest ({self.kernel.release}) is silent after {timeout:.0f} s; "
                    f"waiting for {mark.strip()}\n{self._tail()}"
                )
            ended = self._process.poll() is not None
            chunk = self._output.read_more()
            self._unread += chunk
            if not chunk and ended:
                raise VmError(f"the guest ({self.kernel.release}) went down\n{self._tail()}")
            if not chunk:
                time.sleep(TICK_S)

    def _tail(self) -> str:
        """The most telling end of what is known: the kernel's complaint, else its last words."""
        console = self.console()
        kernel = klog.report(console, self.options.expected)
        kernel = kernel or "\n".join(console.splitlines()[-30:])
        said = self._unread.decode(errors="replace")[-4000:]
        emulator = self._complaints.text()[-1000:]
        parts = (("output", said), ("kernel", kernel), ("emulator", emulator))
        return "\n".join(f"--- {name}:\n{text}" for name, text in parts if text.strip())

    def _kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
        self._files.close()
        self._console = None


def _begun(mark: bytes, text: bytes) -> int:
    """How many bytes at the end of `text` may be the beginning of `mark`; a mere end of line is
    taken for one of the text's own, or it would be seen with the next line only."""
    sizes = range(min(len(mark) - 1, len(text)), 1, -1)
    return next((n for n in sizes if mark.startswith(text[-n:])), 0)


def path_of(descriptor: int) -> str:
    """A name under which a child that inherits the descriptor opens its file."""
    return f"/proc/self/fd/{descriptor}"


class Unnamed:
    """A file in memory, for the emulator to open by `path`. It goes with its last user."""

    def __init__(self, content: bytes = b"") -> None:
        self.number = os.memfd_create("homa-vm", os.MFD_CLOEXEC)
        self.path = path_of(self.number)
        self._at = 0
        with open(self.number, "wb", closefd=False) as file:
            file.write(content)

    def text(self) -> str:
        """All of it."""
        return os.pread(self.number, os.fstat(self.number).st_size, 0).decode(errors="replace")

    def read_more(self) -> bytes:
        """What was added since the last call, or the next mebibyte of it."""
        chunk = os.pread(self.number, 1 << 20, self._at)
        self._at += len(chunk)
        return chunk

    def close(self) -> None:
        os.close(self.number)


def die_with_parent():  # noqa: ANN201
    """For preexec_fn: killed when the thread that starts it is gone."""
    parent = os.getpid()

    def before() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return before


def machine(kernel: Kernel, options: Options, quiet: bool = False) -> list[str]:
    """The emulator's arguments, serial lines and image excepted."""
    memory = options.memory or (1024 if kernel.is_slow else 768)
    # A crash ends the guest at once; its words are on the console. A starved emulator is late
    # with the timer, which makes a kernel that checks it give up.
    append = f"console=ttyS0 loglevel={3 if quiet else 5} panic=-1 oops=panic"
    append += " random.trust_cpu=on no_timer_check"
    if kernel.is_slow:
        # 24 s in one round of soft interrupts were seen there, on a machine whose processors
        # others used, too; by itself the kernel complains after 20 s, now after 120.
        append += " watchdog_thresh=60"
    if kernel.is_debug and not options.leaks:
        # Keeping account of all memory takes a third of the time, and nobody will ask for it.
        append += " kmemleak=off"
    if kernel.name == KCSAN:
        append += f" {_RACES}"
    words = ["-nodefaults", "-no-user-config", "-no-reboot", "-m", str(memory)]
    words += ["-kernel", str(kernel.image)]
    # Entropy from the processor starts a guest sooner, and would make each run another.
    words += ["-cpu", "qemu64" if options.icount else "qemu64,+rdrand"]
    if options.icount:
        words += ["-seed", "1"]
        words += ["-accel", "tcg,thread=single", "-smp", "1", "-icount", "shift=0,sleep=off"]
        words += ["-rtc", "clock=vm,base=2026-01-01"]
        append += " nokaslr"
    else:
        words += ["-accel", os.environ.get("HOMA_VM_ACCEL", "tcg,thread=multi")]
        words += ["-smp", str(options.smp)]
    for number, netdev in enumerate(options.netdevs):
        words += ["-netdev", re.sub(r"^(\w+)", rf"\1,id=n{number}", netdev)]
        device = f"virtio-net-pci,netdev=n{number},romfile=,mac={_mac()}"
        words += ["-device", ",".join(filter(None, (device, options.nic)))]
    for number, drive in enumerate(options.drives):
        words += ["-drive", f"file={drive},format=raw,if=virtio,id=d{number}"]
    for plugin in options.plugins:
        words += ["-plugin", plugin]
    words += options.emulator
    return [*words, "-append", f"{append} {options.append}".strip()]


def wire(folder: Path, name: str = "wire") -> tuple[str, str]:
    """Both ends of a wire between two guests, for Options.netdevs; its files are in `folder`."""
    ends = [folder / f"{name}.{side}" for side in "ab"]
    made = [
        f"dgram,local.type=unix,local.path={here},remote.type=unix,remote.path={there}"
        for here, there in (ends, reversed(ends))
    ]
    return made[0], made[1]


def _mac() -> str:
    """An address nobody else has."""
    return "02:" + ":".join(f"{b:02x}" for b in os.urandom(5))


def image(kernel: Kernel, options: Options, first: str = "") -> bytes:
    """The guest's root: the kernel's base image and behind it what this guest adds."""
    named = tuple(p for p in options.programs if isinstance(p, str))
    archive = initramfs.Archive()
    prepare = "".join(
        f"modprobe_file {m}\n" for m in initramfs.add_modules(archive, kernel, options.load)
    )
    for path in options.modules:
        content = path.read_bytes()
        for needed in initramfs.add_modules(archive, kernel, tuple(initramfs.depends(content))):
            prepare += f"modprobe_file {needed}\n"
        archive.file(f"homa/own/{path.name}", content)
        prepare += f"insmod /homa/own/{path.name} {options.arguments} || exit 1\n"
    prepare = 'modprobe_file() { insmod "$1" 2>/dev/null; true; }\n' + prepare
    archive.file("homa/prepare", prepare.encode(), 0o755)
    for program in options.programs:
        if isinstance(program, Path):
            initramfs.add_program(archive, program)
    for name, content in options.files.items():
        if isinstance(content, Path):
            archive.file(name, content.read_bytes(), content.stat().st_mode & 0o777)
        else:
            data = content.encode() if isinstance(content, str) else content
            archive.file(name, data, 0o755 if data.startswith(b"#!") else 0o644)
    if options.leaks:
        archive.file("homa/leaks", b"")
    if first:
        archive.file("homa/first", first.encode() + b"\n")
    return initramfs.base(kernel, named) + archive.bytes()
