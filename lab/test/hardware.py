# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Stage hw: the blocks of hw/rtl are what the C header says, lint clean, and do in Verilator what
the C code does, and programs exchange RPCs through the whole card (tests/hw). Their tools are in a
private environment (lab/hw/environment.py); without it all that needs it is skipped with the reason."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lab.errors import LabError
from lab.hw import card, environment
from lab.hw.blocks import BLOCKS, Block
from lab.hw.formal import PROOFS
from lab.hw.mutants import table
from lab.test import process, python_tests
from lab.test.context import ROOT, Context, Tally

PARALLEL = 2
# These begin first.
LONG_PROOFS = ("segment", "lro_table", "lro_table_1")
EVERYTHING = 1_000_000
SMOKE_SECONDS = 1200
SECONDS = 8 * 3600
# What --hw --only calls the tests of programs over the card.
CARD = "card"

Case = Callable[[], tuple[str, str]]


def smoke(context: Context, names: list[str]) -> Tally:
    return _run(context, names, False)


def everything(context: Context, names: list[str]) -> Tally:
    return _run(context, names, True)


def _run(context: Context, names: list[str], all_of_it: bool) -> Tally:
    """All checks, or those of the blocks named."""
    tally = Tally()
    wanted = {name: block for name, block in BLOCKS.items() if not names or name in names}
    programs = not names or CARD in names
    if not wanted and not programs:
        tally.fail("hw", f"no block has one of these names: {' '.join(names)}")
        return tally
    label, wrong = _command(
        context, "generated", [sys.executable, str(ROOT / "hw" / "generate.py"), "--check"], {}, 60
    )
    _add(tally, label, wrong)
    try:
        variables = environment.variables()
        environment.shared_python()
    except environment.MissingError as error:
        tally.skip("hw", str(error))
        return tally
    cases = _cases(context, wanted, names, all_of_it, variables)
    # The programs wait for packets and clocks for a part of their time, in which there is a processor
    # for the other cases.
    with ThreadPoolExecutor(1) as beside, ThreadPoolExecutor(PARALLEL) as pool:
        exchanged = beside.submit(_programs, context) if programs else None
        for label, wrong in pool.map(lambda case: case(), cases):
            _add(tally, label, wrong)
    if exchanged:
        tally.add(exchanged.result())
    return tally


def _cases(
    context: Context,
    wanted: dict[str, Block],
    names: list[str],
    all_of_it: bool,
    variables: dict[str, str],
) -> list[Case]:
    """What is done for these blocks, that which takes long first: then no processor is idle at the
    end. The largest blocks are the last of BLOCKS."""
    seconds = SECONDS if all_of_it else SMOKE_SECONDS
    simulations, lints = [], []
    for name, block in reversed(wanted.items()):
        frames = dict.fromkeys(block.sizes, EVERYTHING) if all_of_it else block.smoke
        for width in block.sizes:
            lints.append(partial(_lint, context, name, block, width, variables))
            if width in frames:
                simulations.append(
                    partial(_simulate, context, name, width, frames[width], seconds, variables)
                )
    proofs = [
        partial(_prove, context, name, all_of_it, seconds, variables)
        for name in sorted(PROOFS, key=lambda name: name not in LONG_PROOFS)
        if PROOFS[name].block in wanted and (all_of_it or not PROOFS[name].rare)
    ]
    faults = [partial(_mutants, context, "--check", variables)] if not names else []
    if all_of_it:
        chosen = [m.name for m in table().values() if m.block() in wanted]
        faults += [partial(_mutants, context, name, variables) for name in chosen]
    return [*proofs, *simulations, *faults, *lints]


def _programs(context: Context) -> Tally:
    """The tests of programs over the card, which is compiled first."""
    try:
        env = {"HOMA_CARD": str(card.build())}
    except LabError as error:
        tally = Tally()
        tally.fail("hw/card", str(error))
        return tally
    return python_tests.pytest(context, "hw", [], SMOKE_SECONDS, label="hw-card", env=env)


def _add(tally: Tally, label: str, wrong: str) -> None:
    if wrong:
        tally.fail(f"hw/{label}", wrong)
    else:
        tally.passed += 1


def _command(
    context: Context, label: str, command: list[str], variables: dict[str, str], seconds: float
) -> tuple[str, str]:
    """Run it; (label, what is wrong)."""
    log = context.log(f"hw-{label}")
    status = process.run(
        command, log, cwd=ROOT, env=variables, timeout=seconds, verbose=context.verbose
    )
    if status == 0:
        return label, ""
    said = log.read_text(errors="replace").strip().splitlines()
    end = "a timeout" if status is None else f"status {status}"
    return label, "\n".join([*said[-60:], f"ended with {end}"])


def _lint(
    context: Context, name: str, block: Block, width: int, variables: dict[str, str]
) -> tuple[str, str]:
    command = [str(environment.verilator() / "verilator"), "--lint-only", "-Wall"]
    command += [
        f"-G{block.parameter}={width}",
        "--top-module",
        block.top,
        *map(str, block.sources()),
    ]
    return _command(context, f"lint-{name}-{width}", command, variables, SMOKE_SECONDS)


def _simulate(
    context: Context, name: str, width: int, frames: int, seconds: float, variables: dict[str, str]
) -> tuple[str, str]:
    command = [environment.PYTHON, "-m", "lab.hw.simulate", name, "--width", str(width)]
    command += ["--frames", str(frames)]
    return _command(context, f"simulate-{name}-{width}", command, variables, seconds)


def _prove(
    context: Context, name: str, deep: bool, seconds: float, variables: dict[str, str]
) -> tuple[str, str]:
    command = [environment.PYTHON, "-m", "lab.hw.formal", name, *(["--deep"] if deep else [])]
    return _command(context, f"prove-{name}", command, variables, seconds)


def _mutants(context: Context, what: str, variables: dict[str, str]) -> tuple[str, str]:
    """A fault that is known must be noticed; or with --check, all must have their place."""
    command = [environment.PYTHON, "-m", "lab.hw.mutants", what]
    return _command(context, f"mutant-{what.strip('-')}", command, variables, SMOKE_SECONDS)
