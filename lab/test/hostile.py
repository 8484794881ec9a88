# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Long runs of three tests of homad: a hostile application, sudden deaths, a host that lies.

`./homa test` has them for some seconds each; here the length is given, and what they
measured can be written to a file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from lab.test import builds, process
from lab.test.context import ROOT, Context

CASES = {
    "hostile": "test_hostile.py::test_hostile__only_itself_is_harmed",
    "network": "test_liar.py::test_liar__honest_hosts_are_not_harmed",
    "churn": "test_churn.py::test_attach_and_kill__leaves_nothing",
}


def run(context: Context, env: dict[str, str], case: str, timeout: float, sanitized: bool) -> dict:
    """Run one of CASES; its figures, with "failed" 0 or 1."""
    directory = builds.ensure(context, "plain")
    report = context.logs / f"{case}.json"
    full = {
        "HOMA_BUILD": str(directory),
        "HOMA_TEST_PREFIX": context.prefix,
        "HOMA_REPORT": str(report),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        **env,
    }
    if sanitized:
        homad = builds.program(builds.ensure(context, "asan"), "homad")
        full |= {"HOMA_HOMAD": str(homad), "HOMA_SANITIZED": "1", **builds.BUILDS["asan"].env}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-s"]
    command += [str(ROOT / "tests/homad" / CASES[case])]
    log = context.log(case)
    status = process.run(command, log, cwd=ROOT, env=full, timeout=timeout, verbose=context.verbose)
    figures = json.loads(report.read_text()) if report.exists() else {}
    figures["failed"] = int(status != 0 or not figures)
    if figures["failed"]:
        print("\n".join(log.read_text(errors="replace").splitlines()[-60:]))
        print(f"log: {log}")
    return figures


def main(
    context: Context,
    hostile: int,
    churn: int,
    churn_rate: int,
    network: int,
    seed: int,
    sanitized: bool,
    ipv6: bool,
    out: Path | None,
) -> int:
    """`hostile` seconds, `churn` cycles, `churn_rate` of them per second (0: as many as the machine
    can), `network` seconds, over IPv4 or IPv6; 0: not at all. The exit status."""
    if os.geteuid() != 0:
        print("homa fuzz: network namespaces need root", file=sys.stderr)
        return 1
    results = {}
    if hostile:
        env = {"HOMA_HOSTILE_SECONDS": str(hostile)}
        if seed:
            env["HOMA_HOSTILE_SEED"] = str(seed)
        results["hostile"] = run(context, env, "hostile", hostile + 600, sanitized)
    if churn:
        env = {"HOMA_CHURN_CYCLES": str(churn), "HOMA_CHURN_RATE": str(churn_rate)}
        results["churn"] = run(context, env, "churn", 600 + 3 * churn, sanitized)
    if network:
        env = {
            "HOMA_LIAR_SECONDS": str(network),
            "HOMA_LIAR_MEASURE": "1",
            "HOMA_LIAR_FAMILY": "v6" if ipv6 else "v4",
        }
        if seed:
            env["HOMA_LIAR_SEED"] = str(seed)
        results["network"] = run(context, env, "network", 3 * network + 600, sanitized)
    for name, figures in results.items():
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in figures.items()))
    if out:
        out.write_text(json.dumps(results, indent=2) + "\n")
    return 1 if any(figures["failed"] for figures in results.values()) else 0
