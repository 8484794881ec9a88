# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Tests written in Python: the purity checks and what pytest runs."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from lab.test import builds, process, tap
from lab.test.context import ROOT, Context, Tally

PARALLEL = 2
# A line of this beginning in what pytest prints is shown below the stage's counts.
NOTE = "homa-note: "


def purity(context: Context, names: list[str]) -> Tally:
    tally = Tally()
    log = context.log("purity")
    main = ROOT / "tests/purity/main.py"
    command = [sys.executable, main, *names]
    status = process.run(command, log, cwd=ROOT, timeout=300, verbose=context.verbose)
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
    files: Sequence[Path] = (),
) -> Tally:
    """Run tests/`folder`, or these `files` of it, against the plain build, with `env` on top;
    `label` names the log."""
    tally = Tally()
    label = label or folder
    tests = ROOT / "tests" / folder
    if not list(tests.glob("**/test_*.py")):
        tally.fail(folder, f"{tests} has no test_*.py")
        return tally
    directory = builds.ensure(context, "plain")
    log = context.log(label)
    report = context.logs / f"{label}.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-ra", "-q"]
    command += [f"--junitxml={report}", *map(str, files or [tests])]
    if names:
        command += ["-k", " or ".join(names)]
    full = {
        "HOMA_BUILD": str(directory),
        "HOMA_TEST_PREFIX": context.prefix,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **(env or {}),
    }
    status = process.run(
        command, log, cwd=ROOT, env=full, timeout=timeout, verbose=context.verbose
    )
    if report.exists():
        _count(tally, report)
    said = log.read_text(errors="replace").splitlines() if log.exists() else []
    tally.notes += [line.removeprefix(NOTE) for line in said if line.startswith(NOTE)]
    if status is None:
        tally.fail(f"{label}: timed out after {timeout:.0f} s", _tail(log))
    elif status not in (0, 1, 5) or (status == 1 and not tally.failed):
        tally.fail(f"{label}: pytest ended with status {status}", _tail(log))
    elif status == 5 and not tally.skipped:
        tally.fail(f"{label}: pytest found no test", _tail(log))
    return tally


def daemon(context: Context, names: list[str], timeout: float) -> Tally:
    """homad as it is, and what is marked for it once more with homad under ASan and UBSan; most
    of the time is waiting, so two go on at a time."""
    api = ROOT / "tests/service/test_api.py"
    others = [f for f in sorted(api.parent.glob("test_*.py")) if f != api]
    builds.ensure(context, "plain")
    sanitized = builds.program(builds.ensure(context, "asan"), "homad")
    env = {"HOMA_HOMAD": str(sanitized), "HOMA_SANITIZED": "1", **builds.BUILDS["asan"].env}
    run = partial(pytest, context, "service", names, timeout)
    jobs = [partial(run, "service", files=others), partial(run, "service-api", files=[api])]
    if sanitized:
        jobs.insert(1, partial(run, "service-asan", env))
    tally = Tally()
    with ThreadPoolExecutor(PARALLEL) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            results = [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            process.kill_all()
            raise
    for job, result in zip(jobs, results, strict=True):
        for failure in result.failures:
            failure.name += " (asan)" if "service-asan" in job.args else ""
        tally.add(result)
    if not sanitized:
        tally.skip("service with sanitizers", "homad is not built")
    return tally


def _count(tally: Tally, report: Path) -> None:
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        bad = [*case.iter("failure"), *case.iter("error")]
        skips = list(case.iter("skipped"))
        if bad:
            tally.fail(name, bad[0].text or bad[0].get("message", ""))
        elif skips:
            tally.skip(name, skips[0].get("message", ""))
        else:
            tally.passed += 1


def _tail(log: Path, lines: int = 60) -> str:
    return "\n".join(log.read_text(errors="replace").strip().splitlines()[-lines:])
