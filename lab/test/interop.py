# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test --interop`: TCP through homad with the TCP of others on the other end, 100 MB each way.

tests/tcp/test_stacks.py is what is run, for each stack by itself. smoltcp's host is a Rust program, which cargo builds
here from a copy: what cargo writes beside it belongs to no source tree.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from lab.errors import LabError
from lab.test import builds, process, python_tests
from lab.test.context import ROOT, Context, Tally
from lab.test.parts import Part

# As tests/tcp/stacks.py knows them.
STACKS = ("linux", "lwip", "smoltcp", "gvisor")
BYTES = 100_000_000  # each way
SECONDS = 7200
CARGO_SECONDS = 900
SOURCE = ROOT / "tests" / "tcp" / "stacks" / "smoltcp"


def run(context: Context, wanted: list[str]) -> Tally:
    """All stacks, or those that are named."""
    unknown = [name for name in wanted if name not in STACKS]
    if unknown:
        raise LabError(f"no stack {', '.join(unknown)}; there are {', '.join(STACKS)}")
    tally = Tally()
    if os.geteuid() != 0:
        tally.skip("interop", "network namespaces need root")
        return tally
    directory = builds.ensure(context, "plain")
    for stack in wanted or STACKS:
        begun = time.monotonic()
        why = build_smoltcp(context, directory) if stack == "smoltcp" else ""
        if why:
            tally.skip(stack, why)
            continue
        one = _against(context, stack)
        tally.add(one)
        tally.notes.append(f"{stack}: {one.passed} passed, {time.monotonic() - begun:.0f} s")
    return tally


def _against(context: Context, stack: str) -> Tally:
    env = {"HOMA_INTEROP": stack, "HOMA_INTEROP_BYTES": str(BYTES)}
    part = Part([ROOT / "tests" / "tcp" / "test_stacks.py"], may_be_empty=False)
    return python_tests.pytest(context, "tcp", [], SECONDS, f"interop-{stack}", env, part)


def build_smoltcp(context: Context, directory: Path) -> str:
    """Build the program where the tests look for it; why that cannot be done, or nothing."""
    cargo = shutil.which("cargo")
    if not cargo:
        return "needs cargo, with Rust 1.80 or newer"
    folder = directory / "tests" / "tcp" / "smoltcp"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "peer_smoltcp"
    program.unlink(missing_ok=True)
    for path in SOURCE.iterdir():
        shutil.copy(path, folder / path.name)
    log = context.log("interop-cargo")
    words = [cargo, "build", "--release", "--target-dir", folder / "target"]
    status = process.run(words, log, cwd=folder, timeout=CARGO_SECONDS, verbose=context.verbose)
    if status != 0:
        return f"cargo ended with status {status}: {log}"
    shutil.copy(folder / "target" / "release" / program.name, program)
    return ""
