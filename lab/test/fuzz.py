# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""libFuzzer targets: a short smoke inside the tests, long runs by `./homa fuzz`.

A target NAME is the executable fuzz_NAME of tests/fuzz. It starts from seeds_NAME, which
the build makes, and from past findings in tests/fuzz/regress/NAME. Long runs keep what they
find interesting beside the build, so that the next one goes on from there. Inputs that
crash are kept and named. A target that feeds several packets per input prints
"N inputs, N packets" when it ends; for others an input is a packet.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from lab.errors import ending
from lab.test import builds, fuzz_kernel, hostile, process, soak, world
from lab.test.context import ROOT, Context, Tally
from lab.vm import VmError

_STAT = re.compile(r"^stat::(\w+):\s+(\d+)", re.M)
PREFIX = "fuzz_"
_COVERAGE = re.compile(r"\bcov: (\d+)")
_PACKETS = re.compile(r"^\d+ inputs, (\d+) packets\b", re.M)
PARALLEL = 2


@dataclass
class Outcome:
    """What one target did; `findings` are crashes, leaks, hangs and broken invariants."""

    target: str
    seconds: float
    status: int | None
    executions: int
    executions_per_second: float
    packets_per_second: float
    edges: int
    findings: int
    artifacts: list[str]


def targets(directory: Path) -> dict[str, Path]:
    """Fuzz targets by name."""
    return {
        t["name"].removeprefix(PREFIX): Path(t["filename"][0])
        for t in builds.introspect(directory, "targets")
        if t["type"] == "executable" and "/tests/fuzz/" in t["defined_in"]
    }


def seeds(program: Path, name: str) -> list[Path]:
    """Folders of inputs to start from."""
    folders = (program.parent / f"seeds_{name}", ROOT / "tests/fuzz/regress" / name)
    return [f for f in folders if f.is_dir()]


def run_one(context: Context, program: Path, corpus: Path, seconds: int) -> Outcome:
    name = program.name.removeprefix(PREFIX)
    log = context.log(f"fuzz-{name}")
    artifacts = context.logs / f"fuzz-{name}-found"
    artifacts.mkdir(exist_ok=True)
    command: list[str | Path] = [program, f"-max_total_time={seconds}", "-timeout=20"]
    command += ["-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={artifacts}/"]
    status = process.run(
        [*command, corpus, *seeds(program, name)],
        log,
        cwd=ROOT,
        env=builds.BUILDS["fuzz"].env,
        timeout=seconds + 120,
        verbose=context.verbose,
    )
    text = log.read_text(errors="replace")
    stats = {k: int(v) for k, v in _STAT.findall(text)}
    edges = [int(n) for n in _COVERAGE.findall(text)]
    packets = [int(n) for n in _PACKETS.findall(text)]
    found = sorted(str(p) for p in artifacts.iterdir())
    runs = stats.get("number_of_executed_units", 0)
    return Outcome(
        target=name,
        seconds=seconds,
        status=status,
        executions=runs,
        executions_per_second=round(runs / seconds, 1),
        packets_per_second=round((packets[-1] if packets else runs) / seconds, 1),
        edges=max(edges, default=0),
        findings=len(found),
        artifacts=found,
    )


def describe(outcome: Outcome) -> str:
    rate = f"{outcome.executions_per_second:,.0f} inputs/s"
    rate += f", {outcome.packets_per_second:,.0f} packets/s"
    return f"{outcome.target}: {rate}, {outcome.edges} edges, {outcome.findings} findings"


def run_all(context: Context, chosen: dict[str, Path], seconds: int, keep: bool) -> list[Outcome]:
    """Two targets at a time, each for `seconds`."""
    with tempfile.TemporaryDirectory(prefix="homa-fuzz-") as scratch:
        top = context.builds / "fuzz-corpus" if keep else Path(scratch)
        work = []
        for name, program in chosen.items():
            corpus = top / name
            corpus.mkdir(parents=True, exist_ok=True)
            work.append(partial(run_one, context, program, corpus, seconds))
        with ThreadPoolExecutor(PARALLEL) as pool:
            futures = [pool.submit(w) for w in work]
            try:
                return [f.result() for f in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                process.kill_all()
                raise


def smoke(context: Context, names: list[str], total: int) -> Tally:
    """`total` seconds of wall-clock time over all targets together."""
    tally = Tally()
    if not shutil.which("clang"):
        tally.skip("fuzz", "clang is not installed")
        return tally
    known = targets(builds.ensure(context, "fuzz"))
    chosen = {k: v for k, v in known.items() if not names or k in names}
    if not known:
        tally.fail("fuzz", "the build has no fuzz targets")
    if not chosen:
        return tally
    rounds = -(-len(chosen) // PARALLEL)
    for outcome in run_all(context, chosen, max(2, total // rounds), keep=False):
        if outcome.status == 0 and outcome.executions > 0:
            tally.passed += 1
            tally.notes.append(describe(outcome))
        else:
            log = context.log(f"fuzz-{outcome.target}").read_text(errors="replace")
            kept = "".join(f"\nkept: {a}" for a in outcome.artifacts)
            tally.fail(f"fuzz/{outcome.target}", "\n".join(log.splitlines()[-60:]) + kept)
    return tally


def as_json(outcomes: list[Outcome]) -> dict:
    """The slowest target's rate, the sum of findings, and each target's figures."""
    return {
        "packets_per_second": min(o.packets_per_second for o in outcomes),
        "findings": sum(max(o.findings, o.status != 0) for o in outcomes),
        "edges": {o.target: o.edges for o in outcomes},
        "targets": [asdict(o) for o in outcomes],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./homa fuzz",
        description="Fuzz the engine, homad or the kernel's module; what is found is named."
        " Without one of the modes below: libFuzzer's targets.",
    )
    parser.add_argument(
        "targets",
        nargs="*",
        help="default: all, two at a time; with --kernel: packets, calls, default both by turns",
    )
    modes = parser.add_argument_group("modes")
    modes.add_argument(
        "--soak",
        action="store_true",
        help="random worlds of whole engines on all processors, plain and under sanitizers",
    )
    modes.add_argument(
        "--world",
        type=float,
        metavar="SECONDS",
        nargs="?",
        const=0.0,
        help="clusters of 3 to 12 engines with the faults that a seed chooses, liars and bad"
        " applications among them (default 600, or --hours); --seed N: this world alone",
    )
    modes.add_argument(
        "--kernel",
        action="store_true",
        help="homa.ko in virtual machines with the debug kernel (built once, ten minutes)",
    )
    modes.add_argument(
        "--hostile",
        type=int,
        metavar="SECONDS",
        default=0,
        help="an application that breaks every rule beside others at homad, of RPCs and of TCP"
        " streams; $HOMA_HOSTILE_KIND keeps it to some kinds of lives, such as stream_*",
    )
    modes.add_argument(
        "--network",
        type=int,
        metavar="SECONDS",
        default=0,
        help="a host that knows the protocol and lies, beside three honest ones with homad",
    )
    modes.add_argument(
        "--churn",
        type=int,
        metavar="CYCLES",
        default=0,
        help="applications attach to homad and are killed, so many times",
    )
    parser.add_argument(
        "--churn-rate",
        type=int,
        metavar="N",
        default=0,
        help="with --churn: so many per second (default: as many as the machine can)",
    )
    _add_options(parser)
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    all_of_them = parser.add_argument_group("how long, and what of it")
    all_of_them.add_argument(
        "--seconds",
        type=int,
        default=None,
        help="time for each target, for --kernel and --soak in all (default 600; --soak: until"
        " Ctrl-C)",
    )
    all_of_them.add_argument("--hours", type=float, default=0, help="the same in hours")
    all_of_them.add_argument(
        "--seed",
        type=int,
        default=0,
        help="repeat what this number decides, in all modes but --churn (default: random)",
    )
    all_of_them.add_argument("--sanitized", action="store_true", help="only under ASan and UBSan")
    all_of_them.add_argument("--json", type=Path, help="write the figures to this file")
    all_of_them.add_argument("--list", action="store_true", help="only name the targets")
    all_of_them.add_argument("-v", "--verbose", action="store_true", help="show libFuzzer's output")
    world_only = parser.add_argument_group("with --world")
    world_only.add_argument(
        "--hosts",
        type=int,
        default=0,
        choices=range(3, 13),
        metavar="N",
        help="hosts of each world, 3 to 12 (default: the seed decides)",
    )
    world_only.add_argument(
        "--keep",
        type=Path,
        metavar="DIR",
        help="where failures are kept (default build-test/world-found)",
    )
    network_only = parser.add_argument_group("with --network")
    network_only.add_argument("--ipv6", action="store_true", help="everybody speaks IPv6")
    kernel_only = parser.add_argument_group("with --kernel")
    kernel_only.add_argument(
        "--replay", type=Path, metavar="LOG", help="do again what the guest of this log did"
    )


def main(arguments: list[str]) -> int:
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.hours < 0 or (args.seconds is not None and args.seconds < 1):
        parser.error("--seconds must be at least 1, --hours positive")
    if args.churn_rate and not args.churn:
        parser.error("--churn-rate belongs to --churn; give both")
    if args.churn_rate < 0:
        parser.error("--churn-rate must not be negative")
    asked = args.seconds or int(args.hours * 3600)
    args.seconds = asked or 600

    process.prepare()
    context = Context(args.verbose, [])
    try:
        if args.kernel:
            unknown = set(args.targets) - set(fuzz_kernel.KINDS)
            if unknown:
                parser.error(f"--kernel has {' and '.join(fuzz_kernel.KINDS)}, no {min(unknown)}")
            return fuzz_kernel.main(
                context, args.targets, args.seconds, args.seed, args.replay, args.json
            )
        if args.soak:
            return soak.main(context, asked, args.seed, args.sanitized, args.json)
        if args.world is not None:
            return world.main(
                context,
                args.world or args.seconds,
                args.seed,
                args.hosts,
                args.keep,
                args.sanitized,
                args.json,
            )
        if args.hostile or args.churn or args.network:
            return hostile.main(
                context,
                args.hostile,
                args.churn,
                args.churn_rate,
                args.network,
                args.seed,
                args.sanitized,
                args.ipv6,
                args.json,
            )
        known = targets(builds.ensure(context, "fuzz"))
        for name in args.targets:
            if name not in known:
                parser.error(f"no fuzz target '{name}'; there are: {', '.join(sorted(known))}")
        if args.list or not known:
            print("\n".join(sorted(known)) or "there are no fuzz targets")
            return 0 if known else 1
        chosen = {k: v for k, v in known.items() if not args.targets or k in args.targets}
        print(f"fuzzing {', '.join(chosen)}, {args.seconds} s each; logs in {context.logs}")
        outcomes = run_all(context, chosen, args.seconds, keep=True)
    except (builds.BuildError, VmError) as error:
        print(f"homa fuzz: {error}", file=sys.stderr)
        return 1
    except process.Stopped as stopped:
        process.kill_all()
        return 128 + stopped.args[0]
    for outcome in outcomes:
        print(describe(outcome))
        for artifact in outcome.artifacts:
            print(f"  kept: {artifact}")
    if args.json:
        args.json.write_text(json.dumps(as_json(outcomes), indent=2) + "\n")
    return 0 if all(o.status == 0 and o.executions for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(ending(main))
