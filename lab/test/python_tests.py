# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests written in Python: the purity checks and what pytest runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from lab.test import again, builds, parts, process, tap
from lab.test.context import ROOT, Context, Tally
from lab.test.parts import Part

T = TypeVar("T")
# What goes on at a time: of what computes, and of what waits for packets, clocks and daemons
# for most of its time.
PARALLEL = 2
WAITING = 8
# Each of these lanes runs so many parts of a stage one after the other, whichever is next, so that
# all lanes end at about the same time.
PARTS_OF_A_LANE = 2
# What a test has that runs once more with homad under sanitizers (tests/homad/conftest.py).
SANITIZED = "mark.sanitized"
# Only ends what hangs: a kernel's headers take minutes while other programs use the processors.
PURITY_SECONDS = 1800
# The mark of tests that run before a release; tests/vm chooses its own.
NOT_LONG = ("-m", "not long")
# A line of this beginning in what pytest prints is shown below the stage's counts.
NOTE = "homa-note: "


def purity(context: Context, names: list[str]) -> Tally:
    tally = Tally()
    log = context.log("purity")
    main = ROOT / "tests/purity/main.py"
    command = [sys.executable, main, *names]
    status = process.run(command, log, cwd=ROOT, timeout=PURITY_SECONDS, verbose=context.verbose)
    output = tap.parse(log.read_text(errors="replace"))
    for case in output.cases:
        if case.outcome == "passed":
            tally.passed += 1
        elif case.outcome == "skipped":
            tally.skip(case.name, " ".join(case.notes[:1]))
        else:
            tally.fail(f"purity: {case.name}", "\n".join(case.notes))
    if len(output.cases) < output.planned or (status != 0 and not tally.failed):
        tally.fail("purity", f"ended with status {status}\n{_tail(log)}")
    return tally


def pytest(
    context: Context,
    folder: str,
    names: list[str],
    timeout: float,
    label: str = "",
    env: Mapping[str, str] | None = None,
    part: Part | None = None,
) -> Tally:
    """Run tests/`folder`, or this part of it, against the plain build, with `env` on top; `label`
    names the log."""
    tally = Tally()
    label = label or folder
    tests = ROOT / "tests" / folder
    if not list(tests.glob("**/test_*.py")):
        tally.fail(folder, f"{tests} has no test_*.py")
        return tally
    directory = builds.ensure(context, "plain")
    log = context.log(label)
    full = {
        "HOMA_BUILD": str(directory),
        "HOMA_TEST_PREFIX": context.prefix,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOMA_TEST_LONG": str(int(context.long)),
        **(env or {}),
        **(part.env if part else {}),
    }

    def once(report: Path, what: Sequence[str]) -> tuple[int | None, list[again.Case]]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", "-q"]
        status = process.run(
            [*command, f"--junitxml={report}", *what],
            log,
            cwd=ROOT,
            env=full,
            timeout=timeout,
            verbose=context.verbose,
        )
        return status, again.cases(report)

    chosen = ["-k", " or ".join(names)] if names else []
    if not context.long and folder != "vm":
        chosen += NOT_LONG
    what = [*map(str, part.files if part else [tests]), *chosen]
    status, found = once(context.logs / f"{label}.xml", [*what, *(part.options if part else [])])
    failed = again.worth(found) if context.again and status == 1 else []
    second = once(context.logs / f"{label}-again.xml", failed)[1] if failed else []
    again.merge(tally, found, second)
    said = log.read_text(errors="replace").splitlines() if log.exists() else []
    tally.notes += [line.removeprefix(NOTE) for line in said if line.startswith(NOTE)]
    if status is None:
        tally.fail(f"{label}: timed out after {timeout:.0f} s", _tail(log))
    elif status not in (0, 1, 5) or (status == 1 and not (tally.failed or tally.unsteady)):
        tally.fail(f"{label}: pytest ended with status {status}", _tail(log))
    elif status == 5 and not tally.skipped and not (part and part.may_be_empty):
        tally.fail(f"{label}: pytest found no test", _tail(log))
    return tally


def homad(context: Context, names: list[str], timeout: float) -> Tally:
    """homad as it is, and what is marked for it once more with homad under ASan and UBSan; most
    of the time is waiting, so some parts go on at a time."""
    builds.ensure(context, "plain")
    sanitized = builds.program(builds.ensure(context, "asan"), "homad")
    env = {"HOMA_HOMAD": str(sanitized), "HOMA_SANITIZED": "1", **builds.BUILDS["asan"].env}
    run = partial(pytest, context, "homad", names, timeout)
    jobs = [
        (part.seconds, partial(run, f"homad-{i}", part=part))
        for i, part in enumerate(parts_of("homad", WAITING * PARTS_OF_A_LANE))
    ]
    if sanitized:
        jobs += [
            (part.seconds, partial(run, f"homad-asan-{i}", env, part=part))
            for i, part in enumerate(parts_of("homad", WAITING, SANITIZED))
        ]
    chosen = [job for _, job in sorted(jobs, key=lambda one: -one[0])]
    tally, under_asan = Tally(), Tally()
    for job, result in zip(chosen, together(chosen, WAITING), strict=True):
        for failure in result.failures:
            failure.name += " (asan)" if env in job.args else ""
        (under_asan if env in job.args else tally).add(result)
    none_is_wrong(tally, "homad")
    # A test that is asked for by name may have no mark.
    if sanitized and not names:
        none_is_wrong(under_asan, "homad (asan)")
    tally.add(under_asan)
    if not sanitized:
        tally.skip("homad with sanitizers", "homad is not built")
    return tally


def in_parts(
    context: Context,
    folder: str,
    names: list[str],
    timeout: float,
    lanes: int = PARALLEL,
    env: Mapping[str, str] | None = None,
) -> Tally:
    """pytest over tests/`folder`, in parts of its files of which `lanes` go on side by side: much
    of the time is waiting or one processor's."""
    builds.ensure(context, "plain")
    jobs = [
        partial(pytest, context, folder, names, timeout, f"{folder}-{i}", env, part)
        for i, part in enumerate(parts_of(folder, lanes * PARTS_OF_A_LANE))
    ]
    tally = Tally()
    for result in together(jobs, lanes):
        tally.add(result)
    return none_is_wrong(tally, folder)


def parts_of(folder: str, number: int, word: str = "", row: str = "") -> list[Part]:
    """The test files of tests/`folder`, those with `word` in them, in about `number` parts, the
    longest first. `row`: the one of tests/slow.toml, if it is not `folder`."""
    files = sorted((ROOT / "tests" / folder).glob("**/test_*.py"))
    wanted = [file for file in files if not word or word in file.read_text()]
    return parts.divide(wanted, parts.table(ROOT).get(row or folder, {}), number)


def none_is_wrong(tally: Tally, folder: str) -> Tally:
    """The parts of a stage together must have had a test."""
    if not (tally.passed or tally.failures or tally.skipped):
        tally.fail(f"{folder}: pytest found no test", "")
    return tally


def together(jobs: Sequence[Callable[[], T]], at_once: int = PARALLEL) -> list[T]:
    """What the jobs return, `at_once` at a time; if one raises, the others are ended."""
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            process.kill_all()
            raise


def _tail(log: Path, lines: int = 60) -> str:
    return "\n".join(log.read_text(errors="replace").strip().splitlines()[-lines:])
