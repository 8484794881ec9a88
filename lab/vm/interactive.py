# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A machine to try the module in: two hosts over a virtual wire, and a shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.vm import guest, tools
from lab.vm.errors import VmError
from lab.vm.guest import Options
from lab.vm.kernels import Kernel
from lab.vm.module import ROOT

# Two namespaces that are hosts, "left" and "right".
NETWORK = """\
ip netns add left
ip netns add right
# Not from here, where a card that the machine was given may have that name.
ip -n left link add eth0 type veth peer name eth0 netns right
number=1
for host in left right; do
	ip -n $host link set lo up
	ip -n $host link set eth0 up
	ip -n $host addr add 10.0.0.$number/24 dev eth0
	ip -n $host -6 addr add fd00::$number/64 dev eth0 nodad
	number=$((number + 1))
done
"""
_HOSTS = """\
left() { /usr/bin/ip netns exec left "$@"; }
right() { /usr/bin/ip netns exec right "$@"; }
"""
# Busybox's shell, the one with history and editing, prefers its own ip to the real one.
_ALIASES = """\
for program in /usr/bin/*; do
	alias ${program##*/}=$program
done
PS1='# '
"""
_WELCOME = """\

Linux {release}{module}. Two hosts on one wire:
  left  10.0.0.1 fd00::1       right 10.0.0.2 fd00::2
Commands for a host:  left COMMAND...    right COMMAND...    (here: only loopback)
Programs: {programs} ip tc ss ethtool dmesg ...
{attempt}
Leave with exit or Ctrl-D; Ctrl-A X switches the machine off.

"""
_TRY = """\
Try:  left echo-server 4000 &
      right echo-client 10.0.0.1:4000
      sysctl net.homa; cat /proc/net/homa_metrics; rmmod homa; dmesg | tail"""
_BUILT = ("examples/echo-client", "examples/echo-server", "bench/homa-bench")


def programs() -> tuple[Path, ...]:
    """What is built and useful in the machine."""
    build = Path(os.environ.get("HOMA_BUILD") or ROOT / "build").resolve()
    return tuple(build / name for name in _BUILT if os.access(build / name, os.X_OK))


def tools_of_here() -> tuple[str, ...]:
    """Programs of this machine that are of use there."""
    return tuple(p for p in ("sysctl", "tcpdump", "ping") if shutil.which(p))


def files(wanted: Sequence[str]) -> dict[str, bytes | str | Path]:
    """HERE or HERE:THERE, files or whole folders, for Options.files."""
    found: dict[str, bytes | str | Path] = {}
    for words in wanted:
        here, colon, there = words.rpartition(":")
        if not colon or not there.startswith("/"):
            here, there = words, ""
        path = Path(here)
        there = there or f"/root/{path.resolve().name}"
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file())
            found.update({f"{there}/{p.relative_to(path)}": p for p in inside})
        elif path.is_file():
            found[there] = path
        else:
            raise VmError(f"there is no file or folder {here}")
    return found


def script(kernel: Kernel, made: Options, text: str, timeout: float) -> int:
    """Run `text` and print what it prints; its exit status, 1 if the kernel complained."""

    def show(said: str) -> None:
        sys.stdout.write(said)
        sys.stdout.flush()

    print(f"starting Linux {kernel.release} ...", file=sys.stderr, flush=True)
    result = guest.run(kernel, f"{NETWORK}{_HOSTS}{text}", made, timeout, show)
    if result.problems:
        print(f"homa kernel: the kernel complained:\n{result.problems}", file=sys.stderr)
        return result.status or 1
    return result.status


def _files(kernel: Kernel, made: Options) -> dict[str, str]:
    """What makes the guest give a shell on its console."""
    size = shutil.get_terminal_size()
    welcome = _WELCOME.format(
        release=kernel.release,
        module=", homa.ko loaded" if made.modules else "",
        programs=" ".join(p.name if isinstance(p, Path) else p for p in made.programs),
        attempt=_TRY if made.modules else "",
    )
    return {
        "etc/welcome": welcome,
        "etc/profile": _HOSTS + _ALIASES,
        "homa/interactive": (
            f"{NETWORK}cat /etc/welcome\n"
            f"stty -F /dev/ttyS0 sane rows {size.lines} cols {size.columns}\n"
            f"export TERM={os.environ.get('TERM', 'linux')} ENV=/etc/profile\n"
            "busybox setsid -c busybox sh -i </dev/ttyS0 >/dev/ttyS0 2>&1\n"
        ),
    }


def shell(kernel: Kernel, made: Options) -> int:
    """A shell in the machine, on this terminal; the emulator's exit status."""
    if not sys.stdin.isatty():
        raise VmError("a shell needs a terminal; use --run 'COMMANDS' without one")
    made.files.update(_files(kernel, made))
    emulator = tools.qemu()
    initrd = guest.Unnamed(guest.image(kernel, made))
    words = [*emulator.words, *guest.machine(kernel, made, quiet=True)]
    words += ["-initrd", initrd.path]
    words += ["-display", "none", "-chardev", "stdio,id=tty,mux=on,signal=off"]
    words += ["-serial", "chardev:tty", "-mon", "chardev=tty"]
    print(f"starting Linux {kernel.release} ...", file=sys.stderr)
    try:
        return subprocess.run(
            words,
            env={**os.environ, **emulator.env},
            preexec_fn=guest.die_with_parent(),
            pass_fds=(initrd.number,),
            check=False,
        ).returncode
    finally:
        initrd.close()
