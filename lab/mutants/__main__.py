# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The command line of `./homa mutants`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from lab.errors import LabError, ending
from lab.mutants import patches, table
from lab.mutants.catchers import CATCHERS, Catcher
from lab.mutants.patches import Mutant
from lab.mutants.run import Result, Run
from lab.output import check_output
from lab.paths import BUILD
from lab.test import process


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./homa mutants",
        description="Put known faults into copies of the engine, one at a time, and see which "
        "test notices each. Status 1 if nothing noticed one of them.",
    )
    names = [c.name for c in CATCHERS]
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="these mutants; --list names them"
    )
    parser.add_argument(
        "--against", choices=[*names, "all"], default="all", help="which tests (default: all)"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=10,
        help="how long the explorer may search for one mutant (default 10)",
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (default 2)")
    parser.add_argument("--again", action="store_true", help="also those whose result is known")
    parser.add_argument("--list", action="store_true", help="only say what there is")
    parser.add_argument("--check", action="store_true", help="only see that each fits (TAP)")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="write the table into docs/testing.md, with the last result of each that there is",
    )
    args = parser.parse_args(arguments)
    if args.minutes <= 0 or args.jobs < 1:
        parser.error("--minutes and --jobs must be positive")
    return args


def _choose(names: list[str] | None) -> list[Mutant]:
    mutants = patches.read_all()
    known = {m.name for m in mutants}
    for name in names or []:
        if name not in known:
            raise LabError(f"there is no mutant '{name}'; ./homa mutants --list names them")
    return [m for m in mutants if not names or m.name in names]


def _list(mutants: list[Mutant]) -> None:
    for m in mutants:
        print(f"{m.name}: {m.fault}\n    Breaks: {m.promise}")
        if m.named:
            print(f"    This is: {m.named}")


def _check() -> int:
    """As a test of meson's: a case for each patch, those for CBMC included."""
    paths = sorted(p for f in (patches.FOLDER, patches.REFUSED) for p in f.glob("*.patch"))
    print(f"1..{len(paths)}")
    failed = 0
    for number, path in enumerate(paths, 1):
        try:
            patches.read(path).apply()
            print(f"ok {number} - mutant__{path.stem}_fits")
        except LabError as error:
            failed += 1
            print(f"not ok {number} - mutant__{path.stem}_fits\n# {error}")
            print("# whoever changes the engine changes the patch, or takes it out of the table")
    return 1 if failed or not paths else 0


def _last(
    run: Run, mutants: list[Mutant], catchers: list[Catcher]
) -> dict[tuple[str, str], Result]:
    """What is known, be it of an older tree, for a table of everything."""
    return {
        (m.name, c.name): result
        for m in mutants
        for c in catchers
        if (result := run.results.last(c.name, m.name))
    }


def _main(args: argparse.Namespace) -> int:
    if args.check:
        return _check()
    chosen = _choose(args.only)
    if args.list:
        _list(chosen)
        return 0
    check_output(args.json, "--json")
    catchers = [c for c in CATCHERS if args.against in (c.name, "all")]
    run = Run(Path(f"{BUILD}-test") / "mutants", args.minutes * 60, args.jobs)
    try:
        found = run.look(chosen, catchers, args.again)
    except process.Stopped as stopped:
        run.watch.stop()
        print("\nhoma mutants: stopped; the next run goes on from here", file=sys.stderr)
        return 128 + stopped.args[0]
    names = [c.name for c in catchers]
    print(table.plain(chosen, names, found))
    if args.markdown:
        every = patches.read_all()
        known = _last(run, every, list(CATCHERS))
        table.write(table.markdown(every, [c.name for c in CATCHERS], known))
    if args.json:
        args.json.write_text(json.dumps(table.as_json(chosen, names, found), indent=1) + "\n")
    missed = [m for m in chosen if not any(found[m.name, c].by for c in names)]
    return 1 if missed else 0


def main(arguments: list[str]) -> int:
    args = _parse(arguments)
    process.prepare()
    os.nice(5)
    try:
        return _main(args)
    except LabError as error:
        print(f"homa mutants: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        process.kill_all()


if __name__ == "__main__":
    sys.exit(ending(main))
