# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which stages a change needs: those that compile, run or read the files that it touches."""

from __future__ import annotations

import subprocess

from lab.test.context import ROOT

# The first beginning of a path that fits counts. An engine file is in all four hosts.
_ENGINE = (
    *("unit", "pair", "pkt", "explore", "world", "sim", "counts", "threads", "fuzz"),
    *("net", "homad", "vm"),
)
_NEEDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("engine/wire/", (*_ENGINE, "dissector", "hw")),
    ("engine/homa/homa_grant", (*_ENGINE, "hw")),
    ("engine/", _ENGINE),
    ("nic/message/", ("unit", "fuzz", "net", "homad", "hw")),
    ("nic/", ("unit", "counts", "fuzz", "net", "homad")),
    ("common/", ("unit", "sim", "net")),
    ("host/embedded/", ("net",)),
    ("host/common/", ("unit", "counts", "net", "homad")),
    ("host/homad/", ("unit", "counts", "fuzz", "homad")),
    ("host/kernel/", ("vm", "packaging")),
    ("sim/", ("sim", "net", "lab")),
    ("host/", ("unit", "net", "homad", "vm")),
    ("abi/", ("unit", "fuzz", "net", "homad", "vm")),
    ("include/", ("net", "homad", "vm", "packaging")),
    ("lib/backend/kernel/", ("unit", "homad", "vm")),
    ("lib/backend/homad/", ("unit", "homad")),
    ("lib/stream/", ("unit", "threads", "homad", "tcp")),
    ("lib/preload/", ("unit", "net", "homad", "tcp", "vm")),
    ("lib/", ("unit", "net", "homad", "vm")),
    ("bench/", ("net", "vm", "lab")),
    ("dissector/generate.py", ("dissector", "hw")),
    ("dissector/", ("dissector",)),
    ("hw/", ("hw",)),
    ("packaging/", ("packaging", "lab")),
    ("lab/vm", ("vm", "lab")),
    ("lab/pkt/", ("pkt", "lab")),
    ("lab/hw/", ("hw", "lab")),
    ("tools/", ("homad", "lab", "packaging")),
    ("lab/", ("lab",)),
    ("homa", ("packaging", "lab")),
    ("docs/", ("packaging", "lab")),
    ("examples/", ("net", "homad", "packaging")),
    ("tests/counts/", ("unit", "counts", "lab")),
    ("tests/unit/", ("unit",)),
    ("tests/homad_client/", ("unit",)),
    ("tests/stream/", ("unit", "threads", "homad")),
    ("tests/pair/", ("pair", "world", "sim", "hw")),
    ("tests/explore/mutants/", ("unit", "lab")),
    ("tests/explore/", ("explore", "lab")),
    ("tests/world/", ("world",)),
    ("tests/sim/", ("sim",)),
    ("tests/threads/", ("threads",)),
    ("tests/fuzz/", ("unit", "fuzz")),
    ("tests/net/", ("net",)),
    ("tests/preload/", ("net", "homad", "vm")),
    ("tests/homad/", ("homad", "tcp")),
    ("tests/tcp/", ("tcp",)),
    ("tests/vm/", ("vm",)),
    ("tests/hw/", ("hw",)),
    ("tests/dissector/", ("dissector",)),
    ("tests/packaging/", ("packaging",)),
    ("tests/pkt/", ("pkt", "lab")),
    ("tests/lab/", ("lab",)),
    ("tests/cbmc/", ("lab",)),
    ("tests/purity/", ()),
)
ALWAYS = ("build", "purity")


def changed(since: str) -> list[str]:
    """Files that differ from the commit `since`, those that git does not track yet included.
    ValueError: git knows no such commit."""
    named = _git("diff", "--name-only", since, "--")
    return sorted({*named, *_git("ls-files", "--others", "--exclude-standard")})


def stages(paths: list[str], known: list[str]) -> list[str]:
    """The stages of `known` that these files need, in their order; all of them for a file that
    nothing is known of (a build file, say)."""
    if not paths:
        return []
    wanted = set(ALWAYS)
    for path in paths:
        for beginning, needs in _NEEDS:
            if path.startswith(beginning):
                wanted.update(needs)
                break
        else:
            if not path.endswith(".md"):
                return list(known)
            wanted.add("lab")
    return [name for name in known if name in wanted]


def _git(*words: str) -> list[str]:
    done = subprocess.run(
        ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["git failed"])[0])
    return done.stdout.splitlines()
