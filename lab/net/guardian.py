# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Takes a laboratory down when its owner is gone, however it went.

The owner starts `python -m lab.net.guardian PREFIX` in a session of its own and holds the
write end of its standard input. End of file means that the owner closed it or died
(kill -9 included): the guardian then kills every process inside the namespaces whose
names start with PREFIX and deletes them; their devices, qdiscs and XDP programs go with
them. There is no second path for tidying up, so the usual one is always tested.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

NETNS_DIR = Path("/run/netns")
PREFIX = "hml"


def namespaces(prefix: str) -> list[str]:
    """Names of the network namespaces that start with `prefix`."""
    try:
        return sorted(e.name for e in NETNS_DIR.iterdir() if e.name.startswith(prefix))
    except FileNotFoundError:
        return []


def _processes_of(inodes: set[int], prefix: str) -> list[int]:
    """Pids in the network namespaces `inodes`, or just about to enter one named `prefix`..."""
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
            entering = words[:3] == [b"ip", b"netns", b"exec"] and words[3].startswith(
                prefix.encode()
            )
            if entering or os.stat(f"{entry.path}/ns/net").st_ino in inodes:
                found.append(int(entry.name))
        except (OSError, IndexError):
            continue  # ended meanwhile, or not ours to see
    return found


def remove(prefix: str) -> list[str]:
    """Delete the namespaces of `prefix` and kill what runs in them; their names.

    Names go first, so nothing can enter any more; what was on its way in when its parent died
    is looked for until it has not been seen for a while. The namespaces stay open meanwhile:
    their inode numbers must not be given to someone else's.
    """
    names = namespaces(prefix)
    handles = {}
    for name in names:
        try:
            handle = os.open(NETNS_DIR / name, os.O_RDONLY | os.O_CLOEXEC)
            handles[os.fstat(handle).st_ino] = handle
        except OSError:
            continue
        subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
    inodes = set(handles) - {os.stat("/proc/self/ns/net").st_ino}
    quiet = 0
    while names and quiet < 3:
        pids = _processes_of(inodes, prefix)
        quiet = 0 if pids else quiet + 1
        for pid in pids:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.03)
    for handle in handles.values():
        os.close(handle)
    return names


def leftovers() -> list[str]:
    """Prefixes ("hml<pid>-") of laboratories whose owner no longer runs."""
    dead = set()
    for name in namespaces(PREFIX):
        pid = name[len(PREFIX) :].split("-", 1)[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            dead.add(f"{PREFIX}{pid}-")
    return sorted(dead)


def main(prefix: str) -> int:
    """Wait for the end of standard input, then remove `prefix`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    # A process that was being started when the owner died may have made one more.
    while remove(prefix):
        time.sleep(0.05)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
