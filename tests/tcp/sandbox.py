# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Programs over gVisor's TCP: runsc (Debian package of that name) runs one whose system calls gVisor serves.

gVisor takes the device of a namespace together with the addresses that the kernel has there, which loses them, and
speaks through a packet socket. So a program gets the addresses anew each time.
"""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from netns import Namespace, Process

PATH = "/usr/bin:/bin:/usr/local/bin"
# runsc takes a namespace that has this file for that of the machine, which today's kernels show in all of them.
HIDDEN = "/proc/sys/net/core"
_serial = itertools.count()
_scratch = tempfile.TemporaryDirectory(prefix="homa-runsc-")


def missing() -> str:
    """Why there is no gVisor here, or nothing."""
    return "" if shutil.which("runsc", path=PATH) else "not installed: apt install runsc"


def start(space: Namespace, addresses: Sequence[str], argv: Sequence[object]) -> Process:
    """Start a program there, which sees this machine's files and cannot change them. gVisor dies with it."""
    for address in addresses:
        words = [f"{address}/64", "nodad"] if ":" in address else [f"{address}/24"]
        space.ip("address", "replace", words[0], "dev", space.device, *words[1:])
    folder = Path(_scratch.name)
    name = f"{space.name}-{next(_serial)}"
    bundle = folder / name
    bundle.mkdir()
    (bundle / "config.json").write_text(json.dumps(_specification(space, argv)))
    runsc = shutil.which("runsc", path=PATH)
    command = f"{runsc} --root={folder}/root --network=sandbox --ignore-cgroups run --bundle={bundle} {name}"
    hide = f"mount --make-rprivate / && mount -t tmpfs none {HIDDEN}"
    return space.start(["unshare", "-m", "/bin/sh", "-ec", f"{hide}; exec {command}"])


def _specification(space: Namespace, argv: Sequence[object]) -> dict[str, object]:
    """As the Open Container Initiative has them."""
    kinds: list[dict[str, str]] = [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]
    kinds.append({"type": "network", "path": f"/run/netns/{space.name}"})
    return {
        "ociVersion": "1.0.0",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": [str(word) for word in argv],
            "env": [f"PATH={PATH}", "PYTHONDONTWRITEBYTECODE=1"],
            "cwd": "/",
        },
        "root": {"path": "/", "readonly": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "linux": {"namespaces": kinds},
    }
