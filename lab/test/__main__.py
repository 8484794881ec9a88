# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test`: run the stages, show failures, end with the count."""

from __future__ import annotations

import argparse
import os
import sys
import time

from lab.errors import LabError, ending
from lab.targets import ratchet
from lab.test import builds, durations, interop, namespaces, needs, pkt, process, suites
from lab.test.context import Context, Tally
from lab.test.stages import CBMC, HW, INTEROP, STAGES, Stage
from lab.vm.kernels import NAMES as VM_KERNELS

SHOWN_LINES = 40


def main(arguments: list[str]) -> int:
    args = _parse(arguments)
    if args.needed is not None:
        return _needed(args.needed)
    process.prepare()
    context = Context(
        args.verbose,
        args.only or [],
        vm_debug=args.vm_debug,
        vm_kcsan=args.vm_kcsan,
        vm_rt=args.vm_rt,
        vm_all=args.vm_all,
        vm_kernels=args.vm_kernels,
        record_counts=args.record_counts,
        again=args.again,
        slowest=args.slowest,
        long=args.long,
    )
    try:
        if args.list:
            _list(context)
            return 0
        if args.pkt:
            return pkt.run(context, args.pkt, args.pkt_strict)
        if args.tcp_suites is not None:
            return suites.run(context, args.tcp_suites)
        if args.interop is not None:
            return _run(context, [(INTEROP, args.interop)])
        if args.cbmc:
            return _run(context, [(CBMC, args.only or [])])
        if args.hw:
            return _run(context, [(HW, args.only or [])])
        plan = _plan(context, ["counts"] if args.record_counts else args.only or [])
        return _run(context, plan)
    except builds.BuildError as error:
        print(f"homa test: the build failed:\n{error}", file=sys.stderr)
        return 1
    except LabError as error:
        print(f"homa test: {error}", file=sys.stderr)
        return error.exit_code
    except process.Stopped as stopped:
        print("\nhoma test: stopped", file=sys.stderr)
        return 128 + stopped.args[0]
    finally:
        process.kill_all()
        left = namespaces.remove(process.started | {os.getpid()})
        if left:
            print(f"homa test: removed namespaces {', '.join(left)}", file=sys.stderr)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./homa test",
        description="Run the tests. The last line is 'N passed, N failed, N skipped'.",
        epilog="Stages: " + "; ".join(f"{s.name} ({s.what})" for s in STAGES) + ".",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="stages, or tests as --list names them"
    )
    parser.add_argument(
        "--needed",
        nargs="?",
        const="HEAD",
        metavar="COMMIT",
        help="print the stages that the change since COMMIT needs (HEAD: what is not committed)",
    )
    parser.add_argument("--list", action="store_true", help="name the stages and their tests")
    parser.add_argument(
        "--vm-debug",
        action="store_true",
        help="build the debug kernel for stage vm if it is not there (ten minutes, once)",
    )
    parser.add_argument(
        "--vm-kcsan",
        action="store_true",
        help="stage vm also under a kernel that looks for data races, built once (a quarter of an hour)",
    )
    parser.add_argument(
        "--vm-rt",
        action="store_true",
        help="stage vm also under kernels with PREEMPT_RT (half an hour more; before a release)",
    )
    parser.add_argument(
        "--vm-all",
        action="store_true",
        help="stage vm: also long tests, and all also under kernels between the oldest and the newest "
        "(before a release)",
    )
    parser.add_argument(
        "--vm-kernels",
        nargs="+",
        choices=VM_KERNELS,
        default=[],
        metavar="NAME",
        help=f"stage vm only under these kernels, each with every test but the long ones "
        f"({', '.join(VM_KERNELS)})",
    )
    parser.add_argument(
        "--cbmc",
        action="store_true",
        help="only the proofs of tests/cbmc, or those of --only (CBMC 6 from Debian if need be)",
    )
    parser.add_argument(
        "--hw",
        action="store_true",
        help="only stage hw, with a million frames for each block, or for those of --only (hours)",
    )
    parser.add_argument(
        "--pkt",
        nargs="+",
        metavar="FILE",
        help="only run these scripts in the language of packetdrill over the TCP engine, in virtual "
        "time; status 1: one failed, 3: none failed, but one has statements that are not supported",
    )
    parser.add_argument(
        "--pkt-strict",
        action="store_true",
        help="with --pkt: packets that no statement expects at a script's end fail it, and so do "
        "wrong echoes of time stamps (packetdrill ignores both)",
    )
    parser.add_argument(
        "--tcp-suites",
        nargs="*",
        metavar="SUITE",
        help="only run programs' own tests, these or all, over the kernel's TCP and through homad, and "
        f"print what passes only without homad: {', '.join(suites.SUITES)}",
    )
    parser.add_argument(
        "--interop",
        nargs="*",
        metavar="STACK",
        help="only run TCP through homad against TCP of others, these or all, with 100 MB each way (before a "
        f"release): {', '.join(interop.STACKS)}; what is not installed is skipped, and cargo fetches smoltcp",
    )
    parser.add_argument(
        "--record-counts",
        nargs="?",
        const="lower",
        default="",
        choices=ratchet.WAYS,
        metavar="all",
        help="count instructions and write those that sank to tests/counts/ratchet.toml, or all",
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help="also the long cases, and more turns of others (before a release); stage vm has --vm-all and "
        "stage hw has --hw for theirs",
    )
    parser.add_argument(
        "--slowest",
        type=int,
        default=0,
        metavar="N",
        help="after each stage name its N slowest files and tests, with their time",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="run a few tests of pytest that failed once more, and name those that then pass",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show all output as it comes")
    return parser.parse_args(arguments)


def _needed(since: str) -> int:
    """The command that tests a change, ready to be run."""
    try:
        wanted = needs.stages(needs.changed(since), [s.name for s in STAGES])
    except ValueError as error:
        print(f"homa test: {error}", file=sys.stderr)
        return 2
    print("./homa test --only " + " ".join(wanted) if wanted else "nothing has changed")
    return 0


def _compiled_tests(context: Context) -> dict[str, list[str]]:
    """Names of the compiled tests by suite; nothing is compiled for that."""
    found: dict[str, list[str]] = {}
    for test in builds.introspect(builds.configured(context, "plain"), "tests"):
        for suite in builds.suites_of(test):
            found.setdefault(suite, []).append(test["name"])
    return found


def _list(context: Context) -> None:
    known = _compiled_tests(context)
    for stage in STAGES:
        print(f"{stage.name:<12}{stage.what}")
        for name in sorted(known.get(stage.suite, [])):
            print(f"            {name}")


def _plan(context: Context, only: list[str]) -> list[tuple[Stage, list[str]]]:
    """Stages to run, each with the tests to run in it (none: all)."""
    if not only:
        return [(stage, []) for stage in STAGES]
    stages = {s.name for s in STAGES}
    names = [n for n in only if n not in stages]
    known = _compiled_tests(context) if names else {}
    for name in names:
        if not any(name in tests for tests in known.values()):
            print(
                f"homa test: no stage or test '{name}'; ./homa test --list names them",
                file=sys.stderr,
            )
            raise SystemExit(2)
    plan = []
    for stage in STAGES:
        inside = [n for n in names if n in known.get(stage.suite, [])]
        if stage.name in only:
            plan.append((stage, []))
        elif inside:
            plan.append((stage, inside))
    return plan


def _run(context: Context, plan: list[tuple[Stage, list[str]]]) -> int:
    total = Tally()
    for stage, names in plan:
        begun, used = time.monotonic(), _used()
        begun_at = time.time()
        print(f"{stage.name:<12}", end="", flush=True)
        try:
            tally = stage.run(context, names)
        except builds.BuildError as error:
            tally = Tally()
            if "build" in (s.name for s, _ in plan):
                tally.skip(stage.name, "its build failed")
            else:
                tally.fail(f"{stage.name}: its build failed", str(error))
        process.kill_all()
        _show(tally, time.monotonic() - begun, _used() - used)
        for line in durations.slowest(context.logs, begun_at, context.slowest):
            print(f"    {line}")
        total.add(tally)
    if total.unsteady:
        print(f"unsteady: {len(total.unsteady)} tests failed and passed when they were run again")
        for line in total.unsteady:
            print(f"    {line}")
    print(f"logs: {context.logs}")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 1 if total.failed or not total.passed else 0


def _used() -> float:
    """Processor time of all children that have ended so far, in s."""
    times = os.times()
    return times.children_user + times.children_system


def _show(tally: Tally, seconds: float, used: float) -> None:
    counts = f"{tally.passed} passed"
    if tally.failed:
        counts += f", {tally.failed} FAILED"
    if tally.skipped:
        counts += f", {tally.skipped} skipped"
    print(f"{counts:<40}{seconds:8.1f} s {used:8.1f} s of processors")
    for note in [*tally.notes, *(f"unsteady {line}" for line in tally.unsteady)]:
        print(f"    {note}")
    for failure in tally.failures:
        print(f"  FAILED {failure.name}")
        lines = failure.output.splitlines()
        if len(lines) > SHOWN_LINES:
            print(f"    ... {len(lines) - SHOWN_LINES} lines before these are in the log")
        for line in lines[-SHOWN_LINES:]:
            print(f"    {line}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(ending(main))
