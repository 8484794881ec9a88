# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa.ko in virtual machines: kernels are fetched and the module is built for each, two at a
time, then pytest runs tests/vm under the oldest and the newest, and under those that are asked for,
in parts of its files of which some go on at a time. For the others the module is only built."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lab.test import builds, process, python_tests
from lab.test.context import ROOT, Context, Tally
from lab.test.parts import Part
from lab.vm import kernels
from lab.vm.prepare import MISSING

DEBUG_BUILD_SECONDS = 2400
# Guests wait for their clocks now and then, so there is one more of them than processors.
LANES = 3
# Parts of the test files under a kernel that has all of them, and under another.
PARTS, FEW_PARTS = 9, 3
# Of a kernel that is fetched and homa.ko for it, about; it need not be right.
BUILD_SECONDS = 150.0


@dataclass(frozen=True)
class Job:
    """What a lane does: tests under `kernel` ("" if it is only a build) for about `seconds`."""

    seconds: float
    kernel: str
    run: Callable[[], Tally]


def run(context: Context, names: list[str], seconds: float) -> Tally:
    """Every kernel that can be had; `seconds` is for the tests under each."""
    tally = Tally()
    if not (ROOT / "host/kernel/Kbuild").exists():
        tally.skip("vm", "there is no host/kernel/Kbuild")
        return tally
    builds.ensure(context, "plain")
    order = _order(context)
    first = [name for name in order if _is_run(context, name)]
    ready = [
        name
        for name, is_ready in zip(
            first,
            python_tests.together([partial(_prepare, context, tally, n) for n in first]),
            strict=True,
        )
        if is_ready
    ]
    # The oldest kernel also has what one kernel can show, which is most.
    ready = ready[-1:] + ready[:-1]
    whole = (*ready[:1], *_asked(context), *context.vm_kernels)
    # What is only built has its turn among them, since a compiler of one file leaves a processor.
    jobs = [Job(BUILD_SECONDS, "", partial(_built, context, n)) for n in order if n not in first]
    for name in ready:
        number, row = (PARTS, "vm") if name in whole else (FEW_PARTS, "vm-newest")
        run_it = partial(_tests, context, name, names, seconds, name in whole)
        jobs += [
            Job(part.seconds, name, partial(run_it, i, part))
            for i, part in enumerate(python_tests.parts_of("vm", number, row=row))
        ]
    jobs.sort(key=lambda job: -job.seconds)
    under = {name: Tally() for name in ready}
    for job, result in zip(
        jobs, python_tests.together([job.run for job in jobs], LANES), strict=True
    ):
        for failure in result.failures:
            failure.name += f" ({job.kernel})" if job.kernel else ""
        under.get(job.kernel, tally).add(result)
    every = Tally()
    for name, tests in under.items():
        # A test that is asked for by name may be for one kernel only.
        if not names:
            python_tests.none_is_wrong(tests, f"vm ({name})")
        every.add(tests)
    if names and ready:
        python_tests.none_is_wrong(every, "vm")
    tally.add(every)
    return tally


def _is_run(context: Context, name: str) -> bool:
    """Tests run under this kernel; under one between the oldest and the newest, if it is asked for."""
    return context.vm_all or name not in kernels.BETWEEN or name in context.vm_kernels


def _built(context: Context, name: str) -> Tally:
    """The kernel and homa.ko for it, warnings are errors."""
    tally = Tally()
    _prepare(context, tally, name)
    return tally


def _order(context: Context) -> list[str]:
    """The kernels of this run. What takes longest is first: the debug kernel is slow, and 7.2 needs
    a compiler."""
    order = [*(kernels.RT if context.vm_rt else ()), *reversed(kernels.TESTED)]
    if context.vm_kcsan:
        order.insert(0, kernels.KCSAN)
    named = context.vm_kernels
    return [name for name in reversed(kernels.NAMES) if name in named] if named else order


def _asked(context: Context) -> list[str]:
    """Kernels that notice mistakes and were asked for: they have every test."""
    wanted = {kernels.DEBUG: context.vm_debug, kernels.KCSAN: context.vm_kcsan}
    return [name for name, asked in wanted.items() if asked or name in context.vm_kernels]


def _prepare(context: Context, tally: Tally, name: str) -> bool:
    """True if the kernel and homa.ko for it are there; else the tally has the reason."""
    log = context.log(f"vm-prepare-{name}")
    build = ["--build"] if name in _asked(context) else []
    status = process.run(
        [sys.executable, "-m", "lab.vm.prepare", name, *build],
        log,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=DEBUG_BUILD_SECONDS if build else 1200,
        verbose=context.verbose,
    )
    said = log.read_text(errors="replace").strip().partition("\n")[2]
    if status == 0:
        tally.passed += 1
    elif status == MISSING:
        tally.skip(f"kernel {name}", said.splitlines()[-1] if said else "")
    else:
        tally.fail(f"homa.ko for kernel {name}", said or f"ended with status {status}")
    return status == 0


def _tests(
    context: Context, name: str, names: list[str], seconds: float, whole: bool, i: int, part: Part
) -> Tally:
    """pytest under one kernel over a part of the files; `whole`: also what needs to run under one
    kernel only. The debug kernel, several times as slow, has the tests that are marked for it unless
    it is asked for; the one with KCSAN is there only if asked for."""
    env = {
        "HOMA_VM_KERNELS": name,
        "HOMA_VM_ONCE": str(int(whole)),
        "HOMA_VM_DEBUG": str(int(kernels.DEBUG in _asked(context))),
        "HOMA_VM_LONG": str(int(context.vm_all)),
    }
    slow = 20 if name in _asked(context) else 1
    return python_tests.pytest(context, "vm", names, seconds * slow, f"vm-{name}-{i}", env, part)
