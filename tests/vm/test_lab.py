# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The laboratory itself: what it must notice, and what guests can do, without homa.ko."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lab.test.process import runs
from lab.vm import Guest, Kernel, Options, VmError, guest, run, wire
from lab.vm.kernels import BUILT
from lab.vm.module import ROOT, compile_in

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def bad(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("bad")
    shutil.copytree(HERE / "bad", work, dirs_exist_ok=True)
    return compile_in(kernel, work)


@pytest.mark.debug
def test_guest__status_output_and_log(kernel: Kernel, bad: Path) -> None:
    script = "echo out; echo err >&2; echo spoken >/dev/kmsg; nproc; uname -r; exit 7"
    result = run(kernel, script, Options(modules=(bad,), programs=("id",), files={"x/y": "text\n"}))
    assert result.status == 7
    assert result.output.split() == ["out", "err", "2", kernel.release]
    assert "spoken" in result.log
    assert result.problems == ""


# KASAN, which the kernels that are built have inline, names the second by words of its own.
MISTAKES = {
    1: "WARNING",
    2: "NULL pointer|null-ptr-deref|general protection fault, maybe for address 0x0",
}
DEBUG_MISTAKES = {3: "KASAN", 4: "sleeping function", 5: "circular locking", 6: "unreferenced"}
RACES = {7: "KCSAN: data-race in count"}
LEAK = 6


@pytest.mark.once
@pytest.mark.debug
@pytest.mark.parametrize("mistake", [*MISTAKES, *DEBUG_MISTAKES, *RACES])
def test_mistake_of_a_module__is_noticed(kernel: Kernel, bad: Path, mistake: int) -> None:
    if mistake in DEBUG_MISTAKES and not kernel.is_debug:
        pytest.skip("only the debug kernel sees it")
    if mistake in RACES and kernel.name != "kcsan":
        pytest.skip("only the kernel with KCSAN sees it")
    script = f"insmod /mistake/bad.ko mistake={mistake}; true"
    words = {**MISTAKES, **DEBUG_MISTAKES, **RACES}[mistake]
    options = Options(files={"mistake/bad.ko": bad}, leaks=mistake == LEAK)
    with pytest.raises(VmError, match=words):
        run(kernel, script, options).check()


@pytest.mark.once
def test_script__that_does_not_end_is_ended(kernel: Kernel) -> None:
    with pytest.raises(VmError, match="silent"), Guest(kernel) as machine:
        machine.run("echo begun; sleep 1000", timeout=1)


@pytest.mark.once
@pytest.mark.long
@pytest.mark.parametrize("crashes", [2, 3])
def test_crash_before_our_first_program__boots_again(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, crashes: int
) -> None:
    machine, boots, crashed = guest.machine, [], list(guest.crashes)

    def sick(kernel: Kernel, options: Options) -> list[str]:
        boots.append(options)
        append = "rdinit=/nothing" if len(boots) <= crashes else ""
        return machine(kernel, replace(options, append=append))

    monkeypatch.setattr(guest, "machine", sick)
    if crashes < len(guest.BOOT_S):
        assert run(kernel, "echo well").check() == "well\n"
    else:
        with pytest.raises(VmError, match="went down"):
            run(kernel, "true")
    assert len(boots) == len(guest.BOOT_S)
    assert guest.crashes == [*crashed, *[kernel.name] * crashes]
    # These were made here; the summary is about the others.
    guest.crashes[:] = crashed
    del guest.boots[-crashes:]


@pytest.mark.once
@pytest.mark.long
def test_silence_before_our_first_program__boots_again(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, boots, crashed = guest.machine, [], list(guest.crashes)

    def stopped(kernel: Kernel, options: Options) -> list[str]:
        """The emulator with, at first, no processor running."""
        boots.append(options)
        return [*machine(kernel, options), *(["-S"] if len(boots) == 1 else [])]

    monkeypatch.setattr(guest, "machine", stopped)
    monkeypatch.setattr(guest, "BOOT_S", (1, *guest.BOOT_S[1:]))
    assert run(kernel, "echo well").check() == "well\n"
    assert len(boots) == 2
    assert guest.crashes == [*crashed, kernel.name]
    guest.crashes[:] = crashed
    guest.boots.pop()


@pytest.mark.once
@pytest.mark.long
def test_two_guests__one_wire(kernel: Kernel, tmp_path: Path) -> None:
    left, right = wire(tmp_path)
    with (
        Guest(kernel, Options(smp=1, netdevs=(left,))) as a,
        Guest(kernel, Options(smp=1, netdevs=(right,))) as b,
    ):
        for number, end in ((1, a), (2, b)):
            end.run(f"ip link set eth0 up; ip addr add 10.1.0.{number}/24 dev eth0").check()
        assert "0% packet loss" in a.run("busybox ping -c 3 10.1.0.2").check()


@pytest.mark.once
@pytest.mark.long
def test_icount__every_run_is_the_same(kernel: Kernel) -> None:
    if kernel.is_slow:
        pytest.skip("four times as slow, and nothing is counted there")
    script = "ip netns add a; cat /proc/uptime /proc/interrupts; cat /proc/sys/kernel/random/uuid"
    first, second = (run(kernel, script, Options(icount=True)) for _ in range(2))
    assert first.check() == second.check()


@pytest.mark.once
def test_emulator__goes_when_its_owner_is_killed(kernel: Kernel, tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from lab.vm import Guest, prepare\n"
        f"with Guest(prepare({kernel.name!r}, build=False)) as guest:\n"
        "    print(guest._process.pid, flush=True)\n"
        "    time.sleep(100)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
    )
    try:
        pid = int(owner.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    deadline = time.monotonic() + 30
    while runs(pid):
        assert time.monotonic() < deadline, "the emulator lives on"
        time.sleep(0.05)
    assert list(tmp_path.iterdir()) == []


def command(kernel: Kernel, folder: Path, *words: str) -> subprocess.Popen[str]:
    """./homa kernel vm without the module; its temporary files go into `folder`."""
    return subprocess.Popen(
        [sys.executable, "-m", "lab.vm", "vm", "--kernel", kernel.name, "--no-module", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        cwd=folder,
    )


@pytest.mark.once
@pytest.mark.long
def test_command__says_what_it_says_at_once_and_leaves_nothing(
    kernel: Kernel, tmp_path: Path
) -> None:
    running = command(kernel, tmp_path, "--run", "echo begun; sleep 1000", "--timeout", "60")
    try:
        # While the script runs: it ends after the time that it has, or never.
        assert running.stdout.readline() == "begun\n"
        assert running.poll() is None
    finally:
        running.send_signal(signal.SIGKILL)
        running.communicate()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_command__files_and_devices(kernel: Kernel, tmp_path: Path) -> None:
    if kernel.name in BUILT:
        pytest.skip("a kernel that is built here has no driver of another device")
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data/deep/one").write_text("a file in folders\n")
    (tmp_path / "run").write_text("#!/bin/sh\necho started $1\n")
    (tmp_path / "run").chmod(0o755)
    running = command(
        kernel,
        tmp_path,
        *("--file", "data:/opt/here", "--file", "run"),
        *("--netdev", "hubport,id=n,hubid=0"),
        *("--device", "virtio-net-pci,netdev=n,romfile=,mac=02:00:00:00:00:07"),
        *("--load", "ifb"),
        *("--run", "cat /opt/here/deep/one; ./run well; ip link; printf end"),
    )
    said, wrong = running.communicate()
    assert running.returncode == 0, wrong
    # The end of line before the guest's mark is shown if it comes by itself.
    assert said.startswith("a file in folders\nstarted well\n")
    assert said.removesuffix("\n").endswith("end")
    assert "link/ether 02:00:00:00:00:07" in said and "ifb0:" in said


@pytest.mark.once
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--device", "nothing-like-it"], "nothing-like-it"),
        (["--file", "nowhere"], "no file or folder nowhere"),
        (["--load", "nothing_like_it"], "no module nothing_like_it"),
    ],
)
def test_command__says_what_is_wrong(
    kernel: Kernel, tmp_path: Path, words: list[str], told: str
) -> None:
    running = command(kernel, tmp_path, *words, "--run", "true")
    said, wrong = running.communicate()
    assert (running.returncode, said) == (1, "") and told in wrong
    assert "once more" not in wrong
