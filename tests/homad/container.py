#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What containers are made of, without a container runtime: runs a program in namespaces of its own.

    container.py [--net] [--user OUTER] [--uid UID] [--groups GID,...] [--capabilities NUMBER,...]
                 [--bind FROM TO]... [--env NAME=VALUE]... ROOT PROGRAM ARGUMENT...

The program is process 1 of a PID namespace, sees ROOT (read-only) as its file system with a fresh /proc
and /tmp and what --bind adds, has an IPC and a host name namespace, and no capability but those named. --net: an
empty network namespace, too. --user OUTER: a user namespace in which ids 0 to 65535 are OUTER and up on
the machine; without it ids are the machine's. --env is for the program alone. Needs root; ends as the
program does, passes SIGTERM and SIGHUP on to it, and takes it along if it is killed itself.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1,
    2,
    4,
    32,
    4096,
    16384,
    1 << 18,
)
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = (
    1,
    8,
    24,
    38,
    47,
)
PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 2, 4
IDS = 65536

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *words: object) -> None:
    """A system call; OSError with its name if it fails."""
    if getattr(_libc, name)(*words) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def mount(source: str, target: Path, kind: str, flags: int, options: str = "") -> None:
    call(
        "mount",
        source.encode(),
        bytes(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        options.encode(),
    )


def build_root(root: Path, binds: list[list[str]]) -> None:
    """The mount namespace's tree; nothing of it is seen outside."""
    mount("none", Path("/"), "", MS_REC | MS_PRIVATE)
    opened = [(os.open(source, os.O_PATH), target) for source, target in binds]
    mount(str(root), root, "", MS_BIND)
    mount("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV)
    mount("tmpfs", root / "tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    for source, target in opened:
        place = root / target.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{source}", place, "", MS_BIND)
        os.close(source)
    mount("none", root, "", MS_REMOUNT | MS_BIND | MS_RDONLY)


def drop(uid: int, groups: list[int], kept: list[int]) -> None:
    """Another user, without capabilities except `kept`, and no way back."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for capability in set(range(last + 1)) - set(kept):
        call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    call("prctl", PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups(groups)
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    # A header (version 3, this process) and effective, permitted, inheritable: low halves, then high ones.
    sets = [sum(1 << c - 32 * half for c in kept if c // 32 == half) for half in (0, 1)]
    call(
        "capset",
        (ctypes.c_uint32 * 2)(0x20080522, 0),
        (ctypes.c_uint32 * 6)(*([sets[0]] * 3 + [sets[1]] * 3)),
    )
    for capability in kept:
        call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def inside(args: argparse.Namespace, asked: int, answered: int) -> None:
    """Process 1: the namespaces' content, then the program."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    build_root(args.root, args.bind)
    if args.user is not None:
        call("unshare", CLONE_NEWUSER)
        os.write(asked, b"?")
        os.read(answered, 1)
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    os.chroot(args.root)
    os.chdir("/")
    os.close(asked)
    os.close(answered)
    drop(args.uid, args.groups, args.capabilities)
    env = dict(os.environ, **dict(pair.split("=", 1) for pair in args.env))
    os.execve(args.program[0], args.program, env)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="container.py")
    parser.add_argument("--net", action="store_true")
    parser.add_argument("--user", type=int)
    parser.add_argument("--uid", type=int, default=0)
    for option in ("--groups", "--capabilities"):
        parser.add_argument(
            option, type=lambda text: [int(word) for word in text.split(",")], default=[]
        )
    parser.add_argument("--bind", nargs=2, action="append", default=[])
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("root", type=Path)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    args = parser.parse_args(arguments)
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    from_child, asked = os.pipe()
    answered, to_child = os.pipe()
    net = CLONE_NEWNET if args.net else 0
    call("unshare", CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | net)
    child = os.fork()
    if child == 0:
        try:
            inside(args, asked, answered)
        except OSError as error:
            print(f"container.py: {error}", file=sys.stderr)
        os._exit(126)
    os.close(asked)
    os.close(answered)
    if os.read(from_child, 1):
        for name in ("gid_map", "uid_map"):
            Path(f"/proc/{child}/{name}").write_text(f"0 {args.user} {IDS}\n")
        os.write(to_child, b"!")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, _: os.kill(child, n))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
