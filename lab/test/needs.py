# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which stages a change needs: those that compile, run or read the files that it touches."""

from __future__ import annotations

import subprocess

from lab.test.context import ROOT

# The first beginning of a path that fits counts. An engine file is in all four hosts.
_ENGINE = ("unit", "pair", "simulator", "counts", "threads", "fuzz", "namespaces", "daemon", "vm")
_NEEDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("engine/wire/", (*_ENGINE, "dissector")),
    ("engine/", _ENGINE),
    ("nic/", ("unit", "counts", "fuzz", "namespaces", "daemon")),
    ("common/", ("unit", "simulator", "namespaces")),
    ("host/embedded/", ("namespaces",)),
    ("host/user_common/", ("unit", "counts", "namespaces", "daemon")),
    ("host/service/", ("unit", "counts", "fuzz", "daemon")),
    ("host/kernel/", ("vm",)),
    ("host/sim/", ("simulator", "namespaces", "lab")),
    ("host/", ("unit", "namespaces", "daemon", "vm")),
    ("abi/", ("unit", "fuzz", "namespaces", "daemon", "vm")),
    ("include/", ("namespaces", "daemon", "packaging")),
    ("lib/kernel/", ("unit", "daemon", "vm")),
    ("lib/service/", ("unit", "daemon")),
    ("lib/preload/", ("unit", "namespaces", "daemon")),
    ("lib/", ("unit", "namespaces", "daemon")),
    ("bench/", ("namespaces", "lab")),
    ("dissector/", ("dissector",)),
    ("packaging/", ("packaging", "lab")),
    ("lab/vm", ("vm", "lab")),
    ("lab/ops/", ("daemon", "lab")),
    ("lab/", ("lab",)),
    ("homa", ("packaging", "lab")),
    ("docs/", ("packaging", "lab")),
    ("examples/", ("namespaces", "daemon", "packaging")),
    ("tests/bench/", ("unit", "counts", "lab")),
    ("tests/unit/", ("unit",)),
    ("tests/service_client/", ("unit",)),
    ("tests/pair/", ("pair", "simulator")),
    ("tests/sim/", ("simulator",)),
    ("tests/threads/", ("threads",)),
    ("tests/fuzz/", ("unit", "fuzz")),
    ("tests/net/", ("namespaces",)),
    ("tests/preload/", ("namespaces", "daemon", "vm")),
    ("tests/service/", ("daemon",)),
    ("tests/vm/", ("vm",)),
    ("tests/dissector/", ("dissector",)),
    ("tests/packaging/", ("packaging",)),
    ("tests/lab/", ("lab",)),
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
