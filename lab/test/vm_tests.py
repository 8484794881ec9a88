# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa.ko in virtual machines: kernels are fetched and the module is built for each, two at a
time, then pytest runs tests/vm once per kernel, in parts of its files of which two go on at a time."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from lab.test import builds, process, python_tests
from lab.test.context import ROOT, Context, Tally
from lab.vm import kernels
from lab.vm.prepare import MISSING

DEBUG_BUILD_SECONDS = 2400
# Parts of the test files under a kernel that has all of them.
PARTS = 6


def run(context: Context, names: list[str], seconds: float) -> Tally:
    """Every kernel that can be had; `seconds` is for the tests under each."""
    tally = Tally()
    if not (ROOT / "host/kernel/Kbuild").exists():
        tally.skip("vm", "there is no host/kernel/Kbuild")
        return tally
    builds.ensure(context, "plain")
    order = _order(context)
    ready = [
        name
        for name, is_ready in zip(
            order,
            python_tests.together([partial(_prepare, context, tally, n) for n in order]),
            strict=True,
        )
        if is_ready
    ]
    # The oldest kernel also has what one kernel can show, which is most: it begins.
    ready = ready[-1:] + ready[:-1]
    whole = (*ready[:1], *_asked(context), *context.vm_kernels)
    # Small parts, so that both lanes end together; under the kernels that have few tests one.
    parts = [
        (name, i, files)
        for name in ready
        for i, files in enumerate(python_tests.parts_of("vm", PARTS if name in whole else 1))
    ]
    jobs = [
        partial(_tests, context, name, names, seconds, i, files, whole=name in whole)
        for name, i, files in parts
    ]
    under = {name: Tally() for name in ready}
    for (name, _, _), result in zip(parts, python_tests.together(jobs), strict=True):
        for failure in result.failures:
            failure.name += f" ({name})"
        under[name].add(result)
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
    context: Context,
    name: str,
    names: list[str],
    seconds: float,
    number: int,
    files: list[Path],
    *,
    whole: bool,
) -> Tally:
    """pytest under one kernel over a part of the files; `whole`: also what needs to run under one
    kernel only. The debug kernel, several times as slow, has the tests that are marked for it unless
    it is asked for; the one with KCSAN is there only if asked for."""
    env = {
        "HOMA_VM_KERNELS": name,
        "HOMA_VM_ONCE": str(int(whole)),
        "HOMA_VM_DEBUG": str(int(kernels.DEBUG in _asked(context))),
        "HOMA_VM_ENDS": str(int(context.vm_all or whole or name not in kernels.BETWEEN)),
        "HOMA_VM_LONG": str(int(context.vm_all)),
    }
    slow = 20 if name in _asked(context) else 1
    label = f"vm-{name}-{number}"
    return python_tests.pytest(
        context, "vm", names, seconds * slow, label, env, files=files, part=True
    )
