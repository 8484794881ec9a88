# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa.ko in virtual machines: kernels are fetched and the module is built for each, two at a
time, then pytest runs tests/vm once per kernel, two at a time as well."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from lab.test import builds, process, python_tests
from lab.test.context import ROOT, Context, Tally
from lab.vm import kernels
from lab.vm.prepare import MISSING

T = TypeVar("T")
PARALLEL = 2
DEBUG_BUILD_SECONDS = 2400


def run(context: Context, names: list[str], seconds: float) -> Tally:
    """Every kernel that can be had; `seconds` is for the tests under each."""
    tally = Tally()
    if not (ROOT / "host/kernel/Kbuild").exists():
        tally.skip("vm", "there is no host/kernel/Kbuild")
        return tally
    builds.ensure(context, "plain")
    # What takes longest first: the debug kernel is slow, and 7.2 needs a compiler.
    order = list(reversed(kernels.NAMES))
    ready = [
        name
        for name, is_ready in zip(
            order, _together([partial(_prepare, context, tally, n) for n in order]), strict=True
        )
        if is_ready
    ]
    # The oldest kernel also has what one kernel can show, which is most: it begins.
    ready = ready[-1:] + ready[:-1]
    jobs = [
        partial(_tests, context, name, names, seconds, once=name == ready[0]) for name in ready
    ]
    for name, result in zip(ready, _together(jobs), strict=True):
        for failure in result.failures:
            failure.name += f" ({name})"
        tally.add(result)
    return tally


def _together(jobs: Sequence[Callable[[], T]]) -> list[T]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            process.kill_all()
            raise


def _prepare(context: Context, tally: Tally, name: str) -> bool:
    """True if the kernel and homa.ko for it are there; else the tally has the reason."""
    log = context.log(f"vm-prepare-{name}")
    build = ["--build"] if context.vm_debug else []
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


def _tests(context: Context, name: str, names: list[str], seconds: float, *, once: bool) -> Tally:
    """pytest under one kernel; `once`: also what needs to run under one only. Without --vm-debug
    the debug kernel, several times as slow, has the tests that are marked for it."""
    env = {
        "HOMA_VM_KERNELS": name,
        "HOMA_VM_ONCE": str(int(once)),
        "HOMA_VM_DEBUG": str(int(context.vm_debug)),
    }
    slow = 4 if name == kernels.DEBUG and context.vm_debug else 1
    return python_tests.pytest(context, "vm", names, seconds * slow, f"vm-{name}", env)
