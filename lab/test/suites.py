# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test --tcp-suites`: programs' own test-suites, over the kernel's TCP and through homad, and the difference.

What passes over the kernel's TCP and not through homad is an extra failure, and the status is 1. Which of the two
carried the connections of a suite is asked of the kernel, which counts those that it opens: a suite
that stays on loopback stays on the kernel, and the report says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.test import builds, process, suite_sources
from lab.test.context import ROOT, Context
from lab.vm import cache
from lab.vm.errors import Missing

PYTHON = "/usr/bin/python3"
MODULES = (
    *("test_socket", "test_asyncio", "test_ssl", "test_selectors", "test_httplib"),
    *("test_ftplib", "test_socketserver", "test_xmlrpc", "test_urllib2_localnet"),
    *("test_multiprocessing_fork", "test_multiprocessing_forkserver", "test_multiprocessing_spawn"),
)
PAIRS = ("openssl",)
BUILT = tuple(suite_sources.SOURCES)
SUITES = (*MODULES, *PAIRS, *BUILT)
SECONDS = 1800
SHOWN = 40


@dataclass
class Outcome:
    """What came of a suite in one way: each test's end, and connections that the kernel opened."""

    tests: dict[str, str]
    kernels: int
    ended: bool

    def count(self, what: str) -> int:
        return sum(1 for end in self.tests.values() if end == what)


def run(context: Context, wanted: list[str]) -> int:
    """Run these suites, all if none is named; 0: no extra failure, 1: some, 2: nothing was compared."""
    if os.geteuid() != 0:
        raise LabError("--tcp-suites makes network namespaces, so it needs root")
    unknown = [name for name in wanted if name not in SUITES]
    if unknown:
        raise LabError(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    directory = builds.ensure(context, "plain")
    extra = compared = 0
    for name in wanted or SUITES:
        try:
            kernel, homad = _both(context, directory, name)
        except Missing as error:
            print(f"{name:<24}skipped: {error}", flush=True)
            continue
        extra += _compare(context, name, kernel, homad)
        compared += kernel.count("passed") > 0
    print(f"logs: {context.logs}")
    print(f"{compared} suites compared, {extra} extra failures")
    return 2 if not compared else 1 if extra else 0


def _both(context: Context, directory: Path, name: str) -> tuple[Outcome, Outcome]:
    """The suite over the kernel's TCP and through homad; Missing."""
    folder = None
    if name in BUILT:
        folder = suite_sources.folder(context, name)
    elif name in MODULES:
        _need_module(name)
    # A suite that was built writes into its folder.
    with cache.locked(f"suite-{name}"):
        kernel = _once(context, directory, name, "kernel", folder)
        return kernel, _once(context, directory, name, "homad", folder)


def _need_module(module: str) -> None:
    for folder in Path("/usr/lib").glob("python3.*/test"):
        if (folder / f"{module}.py").exists() or (folder / module).is_dir():
            return
    raise Missing("apt install libpython3-testsuite, or libpython3.x-testsuite of this Python")


def _once(context: Context, directory: Path, name: str, way: str, folder: Path | None) -> Outcome:
    """tests/tcp/suite_run.py does it in a process of its own, which makes the namespaces."""
    report = context.logs / f"{name}-{way}.txt"
    env = {
        "HOMA_BUILD": str(directory),
        "HOMA_TEST_PREFIX": context.prefix,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOMA_SUITE_FOLDER": str(folder or ""),
    }
    command = [PYTHON, ROOT / "tests/tcp/suite_run.py", name, way, report]
    log = context.log(f"{name}-{way}")
    status = process.run(command, log, cwd=ROOT, env=env, timeout=SECONDS, verbose=context.verbose)
    return parse(report.read_text() if report.exists() else "", status == 0)


def parse(text: str, ended: bool) -> Outcome:
    """The report's lines: "passed NAME" and so on; "kernel N", connections that the kernel opened. What
    begins and has no end has hung, or took the program with it."""
    tests: dict[str, str] = {}
    kernels = 0
    for line in text.splitlines():
        what, _, name = line.partition(" ")
        if what == "kernel":
            kernels = int(name)
        elif what != "passed" or tests.get(name) != "failed":
            tests[name] = what
    return Outcome(tests, kernels, ended and "begun" not in tests.values())


def extra_failures(kernel: Outcome, homad: Outcome) -> list[str]:
    """What passed over the kernel's TCP and not through homad, each with how it ended."""
    ends = {"begun": "did not end", "skipped": "was skipped", "": "was not run"}
    return [
        f"{name}: {ends.get(homad.tests.get(name, ''), homad.tests.get(name, ''))}"
        for name, end in kernel.tests.items()
        if end == "passed" and homad.tests.get(name) != "passed"
    ]


def _compare(context: Context, name: str, kernel: Outcome, homad: Outcome) -> int:
    extra = extra_failures(kernel, homad)
    told = [f"{way} {one.count('passed')} passed, {one.count('failed')} failed"
            for way, one in (("kernel", kernel), ("homad", homad))]  # fmt: skip
    carried = max(0, kernel.kernels - homad.kernels)
    whose = f"connections: the kernel opened {kernel.kernels}, {homad.kernels} beside homad"
    print(f"{name:<24}{'; '.join(told)}; {len(extra)} extra", flush=True)
    print(f"    {whose}: {f'homad carried {carried}' if carried else 'homad carried NONE'}")
    for way, one in (("kernel", kernel), ("homad", homad)):
        if not one.ended:
            print(f"    {way}: the suite did not end by itself; see {context.log(f'{name}-{way}')}")
    for line in extra[:SHOWN]:
        print(f"    extra failure {line}")
    if len(extra) > SHOWN:
        print(f"    ... and {len(extra) - SHOWN} more")
    return len(extra)
