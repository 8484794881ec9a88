# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a user without root can run, found out by trying.

"root": namespaces and AF_XDP. "userns": the same network inside a user namespace of one's own,
where loading an XDP program is forbidden, so Homa runs over UDP. "loopback": where not even that is
allowed, everything on 127.0.0.x over UDP, without a switch, so only the program is shown, not
the network.
"""

from __future__ import annotations

import os
import subprocess
import sys

import typer

from lab.errors import LabError
from lab.paths import ROOT

MODES = {
    "root": "as root, in network namespaces, Homa over AF_XDP",
    "userns": "without root, in a user namespace: no XDP can be loaded there, so Homa uses UDP",
    "loopback": "without root or user namespaces: on loopback, over UDP, without a switch",
}
_INSIDE = "HOMA_LAB_INSIDE"
_UNSHARE = [
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
]


def mode() -> str:
    """How experiments can run here; one of MODES."""
    forced = os.environ.get("HOMA_LAB_MODE")
    if forced:
        if forced not in MODES:
            raise LabError(f"HOMA_LAB_MODE is '{forced}'; use one of {', '.join(MODES)}")
        return forced
    if os.environ.get(_INSIDE):
        return "userns"
    if os.geteuid() == 0:
        return "root"
    return "userns" if _can_unshare() else "loopback"


def _can_unshare() -> bool:
    script = "mount -t tmpfs none /run && ip netns add probe"
    try:
        done = subprocess.run(
            [*_UNSHARE, "sh", "-c", script], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def enter(argv: list[str]) -> int | None:
    """Run the command line inside a user namespace if that is what there is; its exit status.

    None: nothing to do, go on here. The namespaces end with the process inside them, which is
    killed when this one is, however that ends.
    """
    if os.environ.get(_INSIDE) or mode() != "userns":
        return None
    inside = 'mount -t tmpfs none /run && exec "$@"'
    command = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        *_UNSHARE,
        "sh",
        "-c",
        inside,
        "sh",
        sys.executable,
        "-m",
        "lab",
        *argv,
    ]
    child = subprocess.Popen(command, env={**os.environ, _INSIDE: "1", "PYTHONPATH": str(ROOT)})
    try:
        return child.wait()
    except KeyboardInterrupt:
        try:  # Ctrl-C reached the child too: let it tidy up and say so
            return child.wait(timeout=5)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            child.kill()
            child.wait()
            raise KeyboardInterrupt from None


def enter_namespace() -> None:
    """Without root: run this command in a user namespace if there can be one; end as it ends."""
    status = enter(sys.argv[1:])
    if status is not None:
        raise typer.Exit(status)
