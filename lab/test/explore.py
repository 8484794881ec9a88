# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa explore` and the stage of that name: the model checker of tests/explore.

The program goes through one *job* at a time: a scenario with at most so many faults. This module
orders the jobs, few faults first, keeps what was done beside the build so that a search that was
stopped goes on where it was, and sums up.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.errors import ending
from lab.test import builds, explore_cover, process
from lab.test.context import ROOT, Context, Tally

PROGRAM = Path("tests/explore/explore")  # of Homa's engine
TCP = Path("tests/explore/explore_tcp")
# Scenarios of TCP in which what passes for one state is sometimes two (`explore_tcp --scenario
# again --faults 1 --compare 1` shows where), so that their number depends on the order. Each
# state that is seen is checked as in the others, but some may be left out.
INEXACT = ("again",)
FOUND = ROOT / "tests/explore/found"
STAGE_SECONDS = 1800  # a hang; the work is the same on any machine
ALL_SEEN, BROKEN, STOPPED, LEFT_OUT = 0, 1, 3, 5
_LINE = re.compile(
    r"^(\w+) +(\d+) faults +(all seen|left out|stopped|BROKEN) +(\d+) states +(\d+) steps"
    r" +(\d+) ends +depth +(\d+) +([\d.]+) s[^\n]*?(?: (\d+) steps to states[^\n]*)?$",
    re.M,
)
BOUND = ("pair1", "pair2", "pair3")  # scenarios whose faults are the bound of docs/guarantees.md
_FAULTS = re.compile(r"(\w+) (\d+)")


@dataclass
class Job:
    """A scenario with at most `faults` faults, and what its search has come to."""

    scenario: str
    faults: int
    result: str = ""
    states: int = 0
    steps: int = 0
    ends: int = 0
    depth: int = 0
    seconds: float = 0.0
    left_out: int = 0  # steps to states with more packets than there is room for
    bound: str = ""  # so many faults of each kind instead of `faults` of any


def jobs_of(text: str) -> list[Job]:
    """What the program's lines say."""
    return [
        Job(
            *(m[1], int(m[2]), m[3], int(m[4]), int(m[5]), int(m[6]), int(m[7]), float(m[8])),
            left_out=int(m[9] or 0),
        )
        for m in _LINE.finditer(text)
    ]


def scenarios_of(listing: str) -> dict[str, int]:
    """Scenarios by name, and all the faults that each allows, from `explore --list`."""
    lines = listing.splitlines()
    return {
        head.split()[0]: sum(int(n) for _, n in _FAULTS.findall(faults))
        for head, faults in zip(lines[::2], lines[1::2])
    }


def order(scenarios: dict[str, int], only: str, most: int | None) -> list[Job]:
    """All jobs, those with few faults first; what the promised bound is about before the rest."""
    chosen = {n: f for n, f in scenarios.items() if not only or n == only}
    top = max(chosen.values(), default=0) if most is None else most
    jobs = [Job(n, k) for k in range(top + 1) for n, f in chosen.items() if k <= f]
    return sorted(jobs, key=lambda job: job.scenario not in BOUND)


def bounded(scenarios: dict[str, int], only: str, bound: str) -> list[Job]:
    """One search of each scenario, with so many faults of each kind, as "loss=2,dup=1"."""
    most = sum(int(n) for n in re.findall(r"=(\d+)", bound))
    names = [only] if only else [n for n in scenarios if n in BOUND]
    return [Job(n, most, bound=bound) for n in names]


# ---- the stage ----


def _run(context: Context, program: Path, name: str, words: list[str]) -> tuple[int | None, str]:
    log = context.log(name)
    status = process.run(
        [program, "--quiet", *words],
        log,
        cwd=ROOT,
        timeout=STAGE_SECONDS,
        verbose=context.verbose,
    )
    return status, log.read_text(errors="replace")


def same_states(two: list[Job], one: list[Job]) -> list[str]:
    """Searches that saw other states in another order: then what passes for one state is not."""
    seen = {(j.scenario, j.faults): j.states for j in two}
    return [
        f"{j.scenario}, {j.faults} faults: {seen[j.scenario, j.faults]} states or {j.states}"
        for j in one
        if seen.get((j.scenario, j.faults), j.states) != j.states and j.scenario not in INEXACT
    ]


def quick(context: Context, program: Path, tally: Tally) -> None:
    """All states with few faults by two processes, those with one by a single one as well."""
    name = program.name
    status, text = _run(context, program, name, ["--quick"])
    jobs = jobs_of(text)
    tally.passed += sum(j.result == "all seen" for j in jobs)
    if status != ALL_SEEN or not jobs:
        # LEFT_OUT, too: what is not seen is not promised.
        tally.fail(f"{name}/quick", text[-6000:])
        return
    tally.notes.append(text.splitlines()[-1])
    again = ["--quick", "--faults", "1", "--workers", "1", "--compare", "20"]
    status, text = _run(context, program, f"{name}-again", again)
    differ = same_states(jobs, jobs_of(text))
    if status != ALL_SEEN or differ:
        tally.fail(f"{name}/same", "\n".join(differ) or text[-6000:])
    else:
        tally.passed += 1


def stage(context: Context, names: list[str]) -> Tally:
    """The quick searches, and every counterexample that was mended."""
    tally = Tally()
    built = builds.ensure(context, "plain")
    program = built / PROGRAM
    if not names or "quick" in names:
        quick(context, program, tally)
    if not names or "tcp" in names:
        quick(context, built / TCP, tally)
    for trace in sorted(FOUND.glob("*.trace")):
        if names and trace.stem not in names:
            continue
        status, text = _run(context, program, f"explore-{trace.stem}", ["--replay", str(trace)])
        if status == ALL_SEEN:
            tally.passed += 1
        else:
            tally.fail(f"explore/{trace.stem}", f"status {status}\n{text[-6000:]}")
    return tally


# ---- ./homa explore ----


@dataclass
class Kept:
    """What is kept beside the build between searches."""

    folder: Path
    done: list[Job]
    how: str = ""  # of the program, and what its files depend on

    @classmethod
    def load(cls, folder: Path, again: bool, how: str = "") -> Kept:
        """With `again` what an earlier search of the same program has done, else nothing."""
        file = folder / "done.json"
        if again and file.exists():
            said = json.loads(file.read_text())
            if said["how"] == how:
                return cls(folder, [Job(**job) for job in said["jobs"]], how)
            print("the engine, --workers or --memory are others now: from the beginning")
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        kept = cls(folder, [], how)
        kept.write()
        return kept

    def write(self) -> None:
        """What was done so far."""
        said = {"how": self.how, "jobs": [asdict(j) for j in self.done]}
        (self.folder / "done.json").write_text(json.dumps(said))

    def add(self, job: Job) -> None:
        """A job is over; nothing of its search has to be kept."""
        self.done.append(job)
        self.write()
        self.forget()

    def forget(self) -> None:
        """The files of a search that cannot be gone on with."""
        for name in ("table", "job"):
            (self.folder / name).unlink(missing_ok=True)
        for way in self.folder.glob("way.*"):
            way.unlink()

    def begun(self, job: Job) -> bool:
        """Was `job` the one that was stopped?"""
        file = self.folder / "job"
        return file.exists() and file.read_text() == f"{job.scenario} {job.faults} {job.bound}"

    def begin(self, job: Job) -> None:
        """From now on it is."""
        (self.folder / "job").write_text(f"{job.scenario} {job.faults} {job.bound}")


def run_job(program: Path, kept: Kept, job: Job, args: argparse.Namespace, left: float) -> int:
    """Search one; its line is printed, and its figures are in `job`."""
    again = kept.begun(job)
    kept.begin(job)
    command = [str(program), "--scenario", job.scenario, "--from", str(job.faults)]
    command += ["--faults", str(job.faults), "--memory", str(args.memory)]
    command += ["--bound", job.bound] if job.bound else []
    command += ["--workers", str(args.workers), "--dir", str(kept.folder)]
    command += ["--seconds", str(max(1, int(left)))] if left else []
    command += ["--again"] if again else []
    command += [] if sys.stderr.isatty() else ["--quiet"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        said, _ = child.communicate()
    except (process.Stopped, KeyboardInterrupt):
        # It saves where it is, and says so.
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate()
    lines = jobs_of(said)
    if lines:
        job.__dict__.update(asdict(lines[-1]), bound=job.bound)
    if child.returncode != STOPPED:
        kept.forget()
    print(said if child.returncode == BROKEN else said.split("\n")[0], flush=True)
    return child.returncode


def search(program: Path, args: argparse.Namespace, folder: Path) -> int:
    """All jobs, until the time is over."""
    listing = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    known = scenarios_of(listing.stdout)
    if args.scenario and args.scenario not in known:
        print(
            f"homa explore: no scenario {args.scenario}; there are: {', '.join(known)}",
            file=sys.stderr,
        )
        return 2
    digest = hashlib.sha256(Path(program).read_bytes()).hexdigest()
    kept = Kept.load(folder, args.again, f"{digest} {args.workers} {args.memory}")
    finished = {(j.scenario, j.faults, j.bound) for j in kept.done}
    seconds = args.seconds or args.hours * 3600
    ends = time.monotonic() + seconds
    status = ALL_SEEN
    if args.bound:
        jobs = bounded(known, args.scenario, args.bound)
    else:
        jobs = order(known, args.scenario, args.faults)
    for job in jobs:
        if (job.scenario, job.faults, job.bound) in finished:
            continue
        left = ends - time.monotonic() if seconds else 0.0
        if seconds and left < 1:
            status = STOPPED
            break
        status = run_job(program, kept, job, args, left)
        if status not in (ALL_SEEN, LEFT_OUT):
            break
        kept.add(job)
        status = ALL_SEEN
    if status == ALL_SEEN and any(j.left_out for j in kept.done):
        status = LEFT_OUT
    report(kept.done, status)
    if args.json:
        figures = as_json(kept.done, status, len(jobs) - len(kept.done), args.workers)
        args.json.write_text(json.dumps(figures, indent=2) + "\n")
    if status == STOPPED:
        print("stopped; ./homa explore --again goes on")
    return status


def as_json(done: list[Job], status: int, left: int, workers: int) -> dict[str, object]:
    """Figures for a result file, of searches that were finished; `left` were not."""
    seconds = sum(j.seconds for j in done)
    return {
        "left": left,
        "states": sum(j.states for j in done),
        "steps": sum(j.steps for j in done),
        "steps_per_second": round(sum(j.steps for j in done) / max(seconds, 1e-3) / workers),
        "seconds": round(seconds, 1),
        "broken": int(status == BROKEN),
        "left_out": sum(j.left_out for j in done),
        "jobs": [asdict(j) for j in done],
    }


def report(done: list[Job], status: int) -> None:
    """Up to how many faults everything was seen, by scenario."""
    most: dict[str, Job] = {}
    for job in done:
        most[job.scenario] = job
    if most:
        print("\nall that can happen was seen and holds, with at most so many faults:")
    for name, job in most.items():
        faults = job.bound or f"{job.faults} faults"
        left = f"  but for {job.left_out:,} steps to more packets than there is room for"
        print(f"  {name:10} {faults}  {job.states:>12,} states{left if job.left_out else ''}")
    states = sum(j.states for j in done)
    print(f"{states:,} states in all", "" if status != BROKEN else "; something does not hold")


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./homa explore",
        description="Every state that faults can lead two engines into, few faults first; "
        "a counterexample is told step by step. Ctrl-C stops, --again goes on.",
    )
    parser.add_argument("--hours", type=float, default=0, help="stop after so long")
    parser.add_argument("--seconds", type=int, default=0, help="the same in seconds")
    parser.add_argument("--tcp", action="store_true", help="the engine of TCP, not Homa's")
    parser.add_argument("--scenario", default="", help="only this one; --list names them")
    parser.add_argument(
        "--faults", type=int, default=None, help="at most so many in one run of the protocol"
    )
    parser.add_argument(
        "--bound",
        default="",
        metavar="KINDS",
        help="so many faults of each kind in one run of the protocol, as loss=2,dup=1,restart=1",
    )
    parser.add_argument("--memory", type=int, default=2048, help="MiB for states seen (2048)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--again", action="store_true", help="go on with the search before")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="a counterexample's file")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="with --replay: draw it")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument(
        "--coverage",
        action="store_true",
        help="which branches of the engine a quick search reaches, as a table",
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args(arguments)
    if args.svg and not args.replay:
        parser.error("--svg is for --replay")
    process.prepare()
    context = Context(False, [])
    try:
        if args.coverage:
            return explore_cover.main(context, args.json)
        program = builds.ensure(context, "plain") / (TCP if args.tcp else PROGRAM)
        if args.list:
            return subprocess.run([program, "--list"]).returncode
        if args.replay:
            return replay(program, args.replay, args.svg)
        return search(program, args, context.builds / program.name)
    except builds.BuildError as error:
        print(f"homa explore: {error}", file=sys.stderr)
        return 1
    except process.Stopped as stopped:
        return 128 + stopped.args[0]
    finally:
        process.kill_all()


def replay(program: Path, file: Path, svg: Path | None) -> int:
    """Tell what a counterexample does now, and draw it."""
    done = subprocess.run([program, "--replay", str(file)], stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    if svg and done.returncode in (ALL_SEEN, BROKEN):
        from lab.test import spacetime

        svg.write_text(spacetime.draw(done.stdout))
    return done.returncode


if __name__ == "__main__":
    sys.exit(ending(main))
