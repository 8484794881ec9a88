# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs compiled tests by meson and counts the cases inside them (cmocka's TAP)."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from lab.test import builds, process, tap
from lab.test.context import ROOT, Context, Tally

TIMEOUT = 900
SHOWN_LINES = 40


@lru_cache(maxsize=1)
def _without_aslr() -> list[str]:
    """TSan dislikes the address layout of some kernels; containers may forbid the cure."""
    setarch = shutil.which("setarch")
    if setarch and subprocess.run([setarch, "-R", "true"], capture_output=True).returncode == 0:
        return [setarch, "-R"]
    return []


def run(context: Context, build_name: str, suite: str, names: list[str]) -> Tally:
    """All tests of a suite (or those named) in one build."""
    tally = Tally()
    directory = builds.ensure(context, build_name)
    found = builds.tests(directory, (suite,))
    known = [test["name"] for test in found]
    chosen = [n for n in known if n in names] if names else known
    if not known:
        tally.fail(suite, "the build has no such tests")
        return tally
    if not chosen:
        return tally

    base = f"homa-{context.prefix}-{build_name}-{suite}"
    command = ["meson", "test", "-C", str(directory), "--no-rebuild", "--num-processes=2"]
    # A timeout is for tests that hang, not for machines that are busy.
    command += [f"--logbase={base}", "--print-errorlogs", "--timeout-multiplier=10"]
    # A test of another suite may have the same name, and may not be built here.
    if all(any(s.endswith(f":{suite}") for s in test["suite"]) for test in found):
        command += ["--suite", suite]
    if build_name == "tsan":
        command = [*_without_aslr(), *command]
    status = process.run(
        [*command, *chosen],
        context.log(f"{suite}-{build_name}"),
        cwd=ROOT,
        env={
            "CMOCKA_MESSAGE_OUTPUT": "TAP",
            "HOMA_TEST_LONG": str(int(context.long)),
            **builds.BUILDS[build_name].env,
        },
        timeout=TIMEOUT,
        verbose=context.verbose,
    )
    results = _results(directory / "meson-logs" / f"{base}.json")
    for log in (directory / "meson-logs").glob(f"{base}.*"):
        shutil.move(str(log), context.logs / log.name)
    seen = set()
    for result in results:
        seen.add(result["name"].rpartition(" / ")[2])
        count(tally, suite, result, "" if build_name == "plain" else f" ({build_name})")
    for name in chosen:
        if name not in seen:
            tally.fail(f"{suite}/{name}", f"no result (meson test ended with {status})")
    return tally


def _results(log: Path) -> list[dict]:
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text().splitlines() if line.strip()]


def count(tally: Tally, suite: str, result: dict, where: str = "") -> None:
    """Add one program's cases; a program that dies has failed even if all its cases passed."""
    name = f"{suite}/{result['name'].rpartition(' / ')[2]}{where}"
    output = tap.parse(result.get("stdout") or "")
    everything = (result.get("stdout") or "") + (result.get("stderr") or "")
    good = result["result"] in ("OK", "EXPECTEDFAIL")
    failed = 0
    for case in output.cases:
        if case.outcome == "passed":
            tally.passed += 1
        elif case.outcome == "skipped":
            tally.skip(f"{name}: {case.name}", " ".join(case.notes[:1]))
        else:
            failed += 1
            tally.fail(f"{name}: {case.name}", "\n".join(case.notes))
    missing = output.planned - len(output.cases)
    if missing > 0:
        last = output.cases[-1].name if output.cases else "the start"
        tally.fail(f"{name}: ended after {last}, {missing} cases did not run", _tail(everything))
    elif not output.cases:
        if result["result"] == "SKIP":
            tally.skip(name, _tail(everything, 1))
        elif good:
            tally.passed += 1
        else:
            tally.fail(f"{name}: {_why(result)}", _tail(everything))
    elif not good and not failed and result["result"] != "SKIP":
        tally.fail(f"{name}: {_why(result)}", _tail(everything))


def _why(result: dict) -> str:
    if result["result"] == "TIMEOUT":
        return f"timed out after {result.get('duration', 0):.0f} s"
    return f"ended with status {result.get('returncode')}"


def _tail(text: str, count: int = SHOWN_LINES) -> str:
    """The end of the output, or the beginning of a sanitizer's report."""
    lines = [line for line in text.strip().splitlines() if not line.startswith("ok ")]
    for number, line in enumerate(lines):
        if "Sanitizer" in line or "runtime error:" in line:
            return "\n".join(lines[number : number + count])
    return "\n".join(lines[-count:])
