# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Instructions of the engine and of homad's fast path, counted under callgrind and compared with
`tests/counts/ratchet.toml`: what costs more than 2 % above its number fails.

The kernel's counts are compared by `tests/vm/test_bench.py`, in stage vm; only to record them
this stage starts that test.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lab.targets import ratchet
from lab.test import builds, process, python_tests
from lab.test.context import ROOT, Context, Tally

SECONDS = 900
# Program of tests/counts and, per figure, its name in the JSON that the program writes.
PROGRAMS = {
    "engine_cost": {
        "engine_cost": "instructions_per_data_packet",
        "engine_cost.crowd": "instructions_beside_crowd",
    },
    "tcp_cost": {
        "tcp_cost": "instructions_per_segment",
        "tcp_cost.syn": "instructions_per_syn",
        "tcp_cost.stray": "instructions_per_stray",
    },
    "service_cost": {
        f"service_cost.{way}": way for way in ("rate", "one", "local", "look_1", "look_8")
    },
}
HINT = """\
Where they are: {program} --profile FILE, then callgrind_annotate FILE.
If they are worth it, say why in the commit that has tests/counts/ratchet.toml as rewritten by
./homa test --record-counts=all"""


def run(context: Context, names: list[str]) -> Tally:
    """Count, then compare or record."""
    tally = Tally()
    if not shutil.which("valgrind"):
        tally.skip("counts", "valgrind is not installed")
        return tally
    directory = builds.ensure(context, "plain")
    counted: dict[str, float] = {}
    for program, figures in PROGRAMS.items():
        document = _count(context, tally, program, directory / "tests/counts" / program)
        if document is not None:
            counted |= {name: document[key] for name, key in figures.items()}
    if tally.failed:
        return tally
    place = ratchet.here()
    if context.record_counts:
        changes = ratchet.record(place, counted, context.record_counts)
        tally.notes += changes or ["nothing to record"]
        tally.passed += len(counted)
        kernel = {"HOMA_VM_KERNELS": "6.1", ratchet.RECORD: context.record_counts}
        tally.add(python_tests.pytest(context, "vm", ["ratchet"], SECONDS, "vm-counts", kernel))
        return tally
    judge(tally, place, counted, ratchet.load(), str(directory / "tests/counts/PROGRAM"))
    return tally


def _count(context: Context, tally: Tally, name: str, program: Path) -> dict[str, float] | None:
    log = context.log(f"counts-{name}")
    out = context.logs / f"{name}.json"
    command = [str(program), "--json", str(out)]
    status = process.run(command, log, cwd=ROOT, timeout=SECONDS, verbose=context.verbose)
    if status == 0 and out.exists():
        return json.loads(out.read_text())  # type: ignore[no-any-return]
    tally.fail(f"counts/{name}", log.read_text(errors="replace"))
    return None


def judge(
    tally: Tally,
    place: str,
    counted: dict[str, float],
    numbers: dict[str, dict[str, float]],
    program: str,
) -> None:
    """Into the tally: a failure per figure that rose, a skip where the place has no number."""
    verdict = ratchet.compare(numbers.get(place), counted)
    for line in verdict.risen:
        tally.fail(f"counts/{line}", HINT.format(program=program))
    for line in verdict.unknown:
        name, _, rest = line.partition(": ")
        known = "; ".join(sorted(numbers))
        reason = f"{rest} in '{place}' (there are: {known}); ./homa test --record-counts adds it"
        tally.skip(f"counts/{name}", reason)
    if verdict.sunk:
        tally.notes += [*verdict.sunk, "hold what was won: ./homa test --record-counts"]
    tally.passed += len(counted) - len(verdict.unknown)
    tally.passed -= sum(1 for line in verdict.risen if line.partition(":")[0] in counted)
