# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The virtual machines' laboratory without a virtual machine: archives, logs, packages, cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from lab.test import vm_tests
from lab.test.context import Context, Tally
from lab.vm import apt, cache, cli, debug, guest, initramfs, klog, local, module
from lab.vm.errors import BuildFailed, Missing, VmError
from lab.vm.kernels import BUILT, NAMES, SERIES, TESTED, Kernel, newest_cached, prepare

KERNEL = Kernel("6.1", "6.1.0", Path("/boot/vmlinuz"), Path("/headers"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOMA_VM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# ---- the image ----


def test_archive__unpacks_to_what_went_in(tmp_path: Path) -> None:
    if not shutil.which("busybox"):
        pytest.skip("busybox is not installed")
    archive = initramfs.Archive()
    archive.file("a/b/text", b"hello\n")
    archive.file("a/run", b"#!/bin/sh\n", 0o755)
    archive.link("a/link", "b/text")
    archive.file("a/run", b"a second one does not replace the first")
    subprocess.run(
        ["busybox", "cpio", "-i"], input=archive.bytes(), cwd=tmp_path, check=True, timeout=20
    )
    assert (tmp_path / "a/b/text").read_bytes() == b"hello\n"
    assert (tmp_path / "a/link").read_text() == "hello\n"
    assert os.access(tmp_path / "a/run", os.X_OK)
    assert (tmp_path / "a/run").read_text() == "#!/bin/sh\n"


def test_program__comes_with_its_libraries() -> None:
    archive = initramfs.Archive()
    initramfs.add_program(archive, Path("/bin/sh").resolve(), "bin/sh")
    assert "bin/sh" in archive
    assert any("ld-linux" in name for name in initramfs.libraries(Path("/bin/sh").resolve()))
    assert all(name in archive for name in initramfs.libraries(Path("/bin/sh").resolve()))


def module_file(folder: Path, name: str, depends: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.ko").write_bytes(
        b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0"
    )


def test_modules__after_what_they_depend_on(tmp_path: Path) -> None:
    module_file(tmp_path / "kernel", "upper", "middle,other-one")
    module_file(tmp_path / "kernel", "middle", "lower")
    module_file(tmp_path / "kernel/x", "lower", "")
    module_file(tmp_path / "kernel/x", "other_one", "lower")
    kernel = Kernel("6.1", "6.1.0", Path("/i"), Path("/h"), tmp_path)
    order = initramfs.add_modules(initramfs.Archive(), kernel, ("upper",))
    names = [Path(p).stem for p in order]
    assert sorted(names) == ["lower", "middle", "other_one", "upper"]
    assert names[0] == "lower" and names[-1] == "upper"


def test_modules__that_a_kernel_lacks(tmp_path: Path) -> None:
    (tmp_path / "modules.builtin").write_text("kernel/net/inside.ko\n")
    kernel = Kernel("6.1", "6.1.0", Path("/i"), Path("/h"), tmp_path)
    archive = initramfs.Archive()
    assert initramfs.add_modules(archive, kernel, ("inside",)) == []
    assert initramfs.add_modules(archive, kernel, ("absent",), optional=True) == []
    with pytest.raises(Missing, match="no module absent"):
        initramfs.add_modules(archive, kernel, ("absent",))


# ---- the kernel's log ----

COMPLAINTS = (
    "[    1.0] BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "[    1.0] BUG: KASAN: slab-out-of-bounds in x+0x1/0x2",
    "[    1.0] WARNING: CPU: 0 PID: 1 at net/x.c:1 f+0x1/0x2",
    "[    1.0] WARNING: possible recursive locking detected",
    "[    1.0] WARNING: inconsistent lock state",
    "[    1.0] WARNING: suspicious RCU usage",
    "[    1.0] BUG: sleeping function called from invalid context at x.c:1",
    "[    1.0] UBSAN: array-index-out-of-bounds in x.c:1:1",
    "[    1.0] refcount_t: underflow; use-after-free.",
    "[    1.0] general protection fault, probably for non-canonical address",
    "[    1.0] Kernel panic - not syncing: x",
    "[    1.0] Oops: 0002 [#1] PREEMPT SMP",
    "[    1.0] unreferenced object 0xffff88 (size 1024):",
    "[    1.0] unregister_netdevice: waiting for eth0 to become free. Usage count = 2",
    "[    1.0] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
    "[    1.0] INFO: task rpc:1 blocked for more than 120 seconds.",
    "[    1.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "[    1.0] rpc[12]: segfault at 0 ip 0 sp 0 error 4",
)
HEALTHY = """\
[    0.000000] Command line: console=ttyS0 oops=panic panic=-1
[    0.100000] kasan: KernelAddressSanitizer initialized
[    0.200000] kmemleak: Kernel memory leak detector initialized (mem pool available: 15879)
[    3.100000] homa: loading out-of-tree module taints kernel.
[    3.100000] homa: module verification failed: signature and/or required key missing
"""


@pytest.mark.parametrize("line", COMPLAINTS)
def test_log__complaint_is_found(line: str) -> None:
    assert klog.problems(HEALTHY + line) == [klog.problems(line)[0]]
    report = klog.report(f"{HEALTHY}{line}\nmore")
    assert line.partition("] ")[2] in report and report.endswith("more")


def test_log__healthy_and_expected() -> None:
    assert klog.problems(HEALTHY) == []
    assert klog.report(HEALTHY) == ""
    line = "[ 1.0] WARNING: CPU: 0 PID: 1 at net/x.c:1 wanted+0x1"
    assert klog.report(line) and not klog.report(line, "wanted")


RACE = """\
[    9.8] BUG: KCSAN: data-race in {one} / {two}
[    9.8]
[    9.8] read to 0xffffffffa0002380 of 4 bytes by task 56 on cpu 0:
[    9.8]  {one}
[    9.8]  kthread+0x166/0x190
[    9.8]
[    9.8] write to 0xffffffffa0002380 of 4 bytes by task 57 on cpu 1:
[    9.8]  {two}
[    9.8]  {caller}
[    9.8]
[    9.8] value changed: 0x00000530 -> 0x00000316
[    9.8]
[    9.8] Reported by Kernel Concurrency Sanitizer on:
[    9.8] CPU: 1 PID: 57 Comm: rpc Tainted: G           O       6.1.192-homa-kcsan #1
[    9.8] ==================================================================
"""


@pytest.mark.parametrize("ours", ["one", "two", "caller"])
def test_log__data_race_is_ours_if_we_take_part(ours: str) -> None:
    """Also between two of others with the same title."""
    frames = {"one": "skb_a+0x13/0x52", "two": "skb_b+0x28/0x52", "caller": "f+0x1/0x2"}
    other = RACE.format(**frames)
    frames[ours] += " [homa]"
    text = HEALTHY + other + RACE.format(**frames) + other
    assert len(klog.problems(text)) == 1
    assert frames["one"] in klog.report(text)
    titles = klog.races_elsewhere(text.splitlines()).values()
    assert list(titles) == ["data-race in skb_a+0x13/0x52 / skb_b+0x28/0x52"] * 2


def test_log__data_race_of_others_hides_no_other_mistake() -> None:
    other = RACE.format(one="a+0x1/0x2", two="b+0x1/0x2", caller="f+0x1/0x2")
    assert klog.problems(HEALTHY + other) == []
    lines = other.splitlines()
    lines.insert(4, "[    9.8] BUG: kernel NULL pointer dereference, address: 0000000000000008")
    assert len(klog.problems("\n".join(lines))) == 1
    # One that breaks off, since the guest went down, may be ours.
    assert len(klog.problems("\n".join(other.splitlines()[:4]))) == 1


# ---- kernels that are built here ----


@pytest.mark.parametrize("name", BUILT)
def test_config__of_a_kernel_that_is_built(name: str) -> None:
    wanted = debug.config(name)
    assert "CONFIG_VETH=y" in wanted and f'-homa-{name}"' in wanted
    assert ("CONFIG_KASAN=y" in wanted) != ("CONFIG_KCSAN=y" in wanted)
    assert debug.not_taken(wanted, wanted) == []
    assert debug.not_taken(wanted, wanted.replace("CONFIG_VETH=y", "")) == ["CONFIG_VETH=y"]


@pytest.mark.parametrize(
    ("options", "built"),
    [
        ({}, set()),
        ({"vm_debug": True}, {"debug"}),
        ({"vm_kcsan": True}, {"kcsan"}),
        ({"vm_kernels": ["debug"]}, {"debug"}),
        ({"vm_kernels": ["6.12", "kcsan"]}, {"kcsan"}),
        ({"vm_all": True}, set()),
    ],
)
def test_stage__builds_the_kernel_that_is_asked_for(
    options: dict[str, Any], built: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared, tested = {}, {}

    def prepare_one(command: list[str], log: Path, **_: object) -> int:
        prepared[command[3]] = "--build" in command
        log.write_text("")
        return 0

    def run_pytest(*words: object, **_: object) -> Tally:
        tested[words[4]] = (words[3], words[5])
        return Tally(passed=1)

    monkeypatch.setenv("HOMA_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(vm_tests.builds, "ensure", lambda *_: None)
    monkeypatch.setattr(vm_tests.process, "run", prepare_one)
    monkeypatch.setattr(vm_tests.python_tests, "pytest", run_pytest)
    assert vm_tests.run(Context(False, [], **options), [], 100).failed == 0
    assert {name for name, asked in prepared.items() if asked} == built
    named = options.get("vm_kernels", [])
    assert set(prepared) == set(named or {*TESTED, *built})
    assert ("vm-kcsan-0" in tested) == ("kcsan" in built)
    # Between the oldest and the newest the module is only built, unless more is asked for.
    assert ("vm-6.12-0" in tested) == ("6.12" in named or "vm_all" in options)
    assert ("vm-7.2-0" in tested) == (not named)
    for label, (seconds, env) in tested.items():
        assert env["HOMA_VM_KERNELS"] in label
        assert (seconds > 100) == (env["HOMA_VM_KERNELS"] in built)
        everything = env["HOMA_VM_KERNELS"] in {*(named or ["6.1"]), *built}
        assert env["HOMA_VM_ONCE"] == str(int(everything)), label


# ---- the emulator's command line ----


def test_machine__counted_instructions_have_no_chance() -> None:
    words = guest.machine(KERNEL, guest.Options(icount=True))
    assert words[words.index("-icount") + 1] == "shift=0,sleep=off"
    assert words[words.index("-smp") + 1] == "1" and "-seed" in words
    assert "rdrand" not in " ".join(words) and "nokaslr" in words[-1]


@pytest.mark.parametrize("leaks", [False, True])
def test_machine__account_of_memory_is_kept_where_it_is_asked_for(leaks: bool) -> None:
    kernel = Kernel("debug", "6.1.0-debug", Path("/boot/vmlinuz"), Path("/headers"))
    assert ("kmemleak=off" in guest.machine(kernel, guest.Options(leaks=leaks))[-1]) == (not leaks)


def test_wire__ends_fit(tmp_path: Path) -> None:
    left, right = guest.wire(tmp_path)
    one = dict(part.partition("=")[::2] for part in left.split(",")[1:])
    two = dict(part.partition("=")[::2] for part in right.split(",")[1:])
    assert one["local.path"] == two["remote.path"] and two["local.path"] == one["remote.path"]


# ---- packages ----


def test_mirror__none_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOMA_VM_MIRROR", raising=False)
    monkeypatch.setattr(
        apt, "configured", lambda: [apt.Source("http://x/", "noble", "main", False)]
    )
    with pytest.raises(Missing, match="HOMA_VM_MIRROR"):
        apt.mirror()
    monkeypatch.setenv("HOMA_VM_MIRROR", "http://named/")
    assert apt.mirror() == "http://named/"


def test_mirror__is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOMA_VM_MIRROR", raising=False)
    sources = [
        apt.Source("http://other/", "noble", "main", False),
        apt.Source("http://sec/", "bookworm-security", "main", True),
        apt.Source("http://deb/", "bookworm", "main", True),
    ]
    monkeypatch.setattr(apt, "configured", lambda: sources)
    assert apt.mirror() == "http://deb/" and apt.mirror(security=True) == "http://sec/"


def test_sources__both_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text(
        "# deb http://no/ x\ndeb [a=b] http://one/ bookworm main\n"
    )
    (parts / "a.sources").write_text(
        "Types: deb\n# URIs: http://no/\nURIs: http://two/\nSuites: trixie trixie-updates\n\n"
        "Types: deb\nURIs: http://three/\nSuites: noble\n"
    )
    real = Path
    monkeypatch.setattr(apt, "Path", lambda p: tmp_path if p == "/etc/apt" else real(p))
    found = {(s.uri, s.suite, s.debian) for s in apt._read_files()}
    assert found == {
        ("http://one/", "bookworm", True),
        ("http://two/", "trixie", True),
        ("http://two/", "trixie-updates", True),
        ("http://three/", "noble", False),
    }


def test_kernel__unknown_or_not_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Missing, match="known are"):
        prepare("5.4")
    monkeypatch.setattr(apt, "configured", list)
    monkeypatch.delenv("HOMA_VM_MIRROR", raising=False)
    for name in NAMES:
        with pytest.raises(Missing):
            prepare(name, build=False)


def test_kernel__cached_serves_without_network(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: object) -> None:
        raise Missing("no network")

    monkeypatch.setattr(apt.Apt, "newest", no_network)
    release = "6.1.0-9-cloud-amd64"

    def make(into: Path) -> None:
        (into / "boot").mkdir()
        (into / f"boot/vmlinuz-{release}").touch()
        (into / f"lib/modules/{release}/kernel").mkdir(parents=True)

    cache.entry(f"kernels/{release}", make)
    assert prepare("6.1").release == release
    # One with PREEMPT_RT is another series, however much it looks like this one.
    with pytest.raises(Missing, match="no network"):
        prepare("6.1-rt")
    release = "6.1.0-10-rt-amd64"
    cache.entry(f"kernels/{release}", make)
    assert prepare("6.1-rt").release == release
    assert prepare("6.1").release == "6.1.0-9-cloud-amd64"
    assert newest_cached() == "6.1"
    with pytest.raises(Missing, match="no network"):
        prepare("6.12")


def test_series__patterns_take_the_kernel_of_the_cloud_only() -> None:
    import re

    assert re.fullmatch(SERIES["6.1"].pattern, "linux-image-6.1.0-56-cloud-amd64")
    for name in ("linux-image-6.1.0-56-amd64", "linux-image-6.12.5+deb12-cloud-amd64"):
        assert not re.fullmatch(SERIES["6.1"].pattern, name)
    assert re.fullmatch(SERIES["6.12"].pattern, "linux-image-6.12.9+deb12-cloud-amd64")
    assert not re.fullmatch(SERIES["6.12"].pattern, "linux-image-6.12.9+deb12-cloud-amd64-unsigned")
    assert re.fullmatch(SERIES["6.12-rt"].pattern, "linux-image-6.12.9+deb12-rt-amd64")
    for name in ("linux-image-6.12-rt-amd64", "linux-image-6.12.9+deb12-rt-amd64-unsigned"):
        assert not re.fullmatch(SERIES["6.12-rt"].pattern, name)


# ---- the cache ----


def test_cache__entry_is_whole_or_absent(own_cache: Path) -> None:
    def half(into: Path) -> None:
        (into / "part").touch()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        cache.entry("x/y", half)
    assert not (own_cache / "x/y").exists()
    made = cache.entry("x/y", lambda into: (into / "whole").touch())
    assert (made / "whole").exists() and not (made / "part").exists()


def test_cache__two_at_once_make_it_once() -> None:
    calls = []
    inside = threading.Event()

    def make(_: Path) -> None:
        calls.append(1)
        inside.wait(5)

    threads = [threading.Thread(target=cache.entry, args=("e", make)) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.set()
    for thread in threads:
        thread.join()
    assert calls == [1]


# ---- the module's build and the command ----


def test_mirror_of_sources__follows_the_tree(tmp_path: Path) -> None:
    tree, work = tmp_path / "tree", tmp_path / "work"
    for name in ("host/kernel/Kbuild", "host/kernel/a.c", "engine/base/b.h", "abi/c.h"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    work.mkdir()
    module.mirror(tree, work)
    assert (work / "a.c").exists() and (work / "engine/base/b.h").exists()
    before = (work / "a.c").stat().st_mtime_ns
    (work / "a.o").touch()
    (work / "whole.c").touch()
    (tree / "engine/base/b.h").unlink()
    module.mirror(tree, work)
    # Kbuild makes it, and only when the list of files changes.
    assert (work / "whole.c").exists()
    assert not (work / "engine/base/b.h").exists()
    assert (work / "a.c").stat().st_mtime_ns == before and (work / "a.o").exists()


def test_build__without_a_module_in_the_tree(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="Kbuild"):
        module.build(KERNEL, tree=tmp_path)


def test_build__warnings_of_ours_only() -> None:
    text = (
        "/usr/src/linux-headers-x/include/y.h:1:2: warning: theirs\n"
        "./include/y.h:1:2: warning: theirs\n"
        "warning: pahole version differs from the one used to build the kernel\n"
        "tx.c:1:2: warning: ours\n"
    )
    assert module._warnings(text) == "tx.c:1:2: warning: ours"


def test_build__failure_says_the_error(tmp_path: Path) -> None:
    if not shutil.which("make"):
        pytest.skip("make is not installed")
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers/Makefile").write_text(
        "modules:\n\t@echo 'x.c:1: error: bad' >&2; exit 1\n"
    )
    kernel = Kernel("6.1", "6.1.0", Path("/i"), tmp_path / "headers")
    with pytest.raises(BuildFailed, match="x.c:1: error: bad"):
        module.compile_in(kernel, tmp_path)


def test_command__errors_are_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "can_load", lambda: "this kernel takes no modules")
    assert cli.main(["load"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("homa kernel: this kernel takes no modules") and "vm" in said
    assert len(said.splitlines()) == 1


def test_status__without_the_module(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local, "_SYS", tmp_path)
    assert cli.main(["status"]) == 3
    assert "not loaded" in capsys.readouterr().out
    (tmp_path / "homa").mkdir()
    (tmp_path / "homa/version").write_text("1.2\n")
    assert cli.main(["status"]) == 0
    assert "1.2" in capsys.readouterr().out


def test_running__headers_missing_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.platform, "release", lambda: "9.9-nothing")
    with pytest.raises(VmError, match="linux-headers-9.9-nothing"):
        local.running()
