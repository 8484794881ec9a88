# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa explore --coverage`: which branches of the protocol the explorer's searches reach.

A build that counts them (gcov, not optimized: branches are those of the source) goes through all
that `explore --quick` does. What its bound cannot reach is listed with reasons in
`tests/explore/unreachable.toml`, by function and by the text of a line, so that the list survives
other edits. The table has a row for each file: branches reached, out of reach, and missing. Who is listed
and is reached all the same, or is not there any more, makes the command fail.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lab.test import builds, process
from lab.test.context import ROOT, Context

PROGRAM = Path("tests/explore/explore")
LIST = ROOT / "tests/explore/unreachable.toml"
WANTED = ("engine/homa/", "engine/link/")
SECONDS = 3600


@dataclass(frozen=True, order=True)
class Place:
    """A line of a function with branches."""

    file: str
    line: int
    function: str


@dataclass
class Line:
    """How often each branch of a line was taken, and its text."""

    taken: Counter[int] = field(default_factory=Counter)
    text: str = ""

    @property
    def reached(self) -> int:
        """Branches that were taken."""
        return sum(n > 0 for n in self.taken.values())

    @property
    def left(self) -> int:
        """Branches that were not."""
        return len(self.taken) - self.reached


@dataclass
class Listed:
    """What is out of reach, and why: a function, or so many branches of its lines of one text."""

    reason: str
    function: str
    text: str = ""  # none: all of the function
    branches: int = 0

    def __str__(self) -> str:
        return f"{self.function}: {self.text}" if self.text else f"{self.function}()"


@dataclass
class Row:
    """A file's branches."""

    name: str
    reached: int = 0
    unreachable: int = 0
    missing: int = 0

    @property
    def percent(self) -> float:
        """Of those that can be reached."""
        return 100 * self.reached / max(self.reached + self.missing, 1)

    def __iadd__(self, other: Row) -> Row:
        self.reached += other.reached
        self.unreachable += other.unreachable
        self.missing += other.missing
        return self


def _plain(text: str) -> str:
    """A line without its indentation and with single blanks."""
    return " ".join(text.split())


def add_gcov(answer: dict, lines: dict[Place, Line], root: Path = ROOT) -> None:
    """Count what gcov's JSON says of the files wanted: a header's functions are in many objects."""
    for said in answer["files"]:
        want = next((w for w in WANTED if w in said["file"]), "")
        if not want:
            continue
        name = want + said["file"].split(want)[-1]
        if not (root / name).exists():
            continue  # the notes of a source that has moved since
        for line in said["lines"]:
            if not line["branches"]:
                continue
            place = Place(name, line["line_number"], line.get("function_name", "?"))
            for i, branch in enumerate(line["branches"]):
                lines.setdefault(place, Line()).taken[i] += branch["count"]


def add_text(lines: dict[Place, Line], root: Path = ROOT) -> None:
    """Read the lines' texts."""
    texts: dict[str, list[str]] = {}
    for place, line in lines.items():
        if place.file not in texts:
            texts[place.file] = (root / place.file).read_text().splitlines()
        line.text = _plain(texts[place.file][place.line - 1])


def read_list(text: str) -> list[Listed]:
    """`unreachable.toml`; ValueError if a reason is missing or something is listed twice."""
    found: list[Listed] = []
    for group in tomllib.loads(text).get("class", []):
        reason = str(group.get("reason", "")).strip()
        if not reason:
            raise ValueError("a class of unreachable branches has no reason")
        found += [Listed(reason, name) for name in group.get("functions", [])]
        for function, branches in group.get("lines", {}).items():
            found += [Listed(reason, function, _plain(t), n) for t, n in branches.items()]
    twice = [key for key, n in Counter(str(x) for x in found).items() if n > 1]
    whole = {x.function for x in found if not x.text}
    twice += [str(x) for x in found if x.text and x.function in whole]
    if twice:
        raise ValueError(f"listed twice: {', '.join(twice)}")
    return found


def _body(text: str, function: str) -> list[str]:
    """The lines of each definition of a function in a C file, from its name to its last brace."""
    inside: list[str] = []
    open_ = False
    for line in text.splitlines():
        if re.match(rf"(\w.*\b)?{function}\(", line):
            open_ = not line.endswith(";")
        if open_:
            inside.append(_plain(line))
            open_ = line not in ("}", "};")
    return inside


def gone(listed: Iterable[Listed], root: Path = ROOT) -> list[str]:
    """What of the list is in no source any more; needs neither a build nor a search."""
    texts = [p.read_text() for w in WANTED for p in sorted((root / w).glob("*.[ch]"))]
    wrong = []
    for x in listed:
        bodies = [b for t in texts if x.function in t and (b := _body(t, x.function))]
        if not bodies:
            wrong.append(f"{x}: there is no such function")
        elif x.text and not any(x.text in body for body in bodies):
            wrong.append(f"{x}: the function has no such line")
    return wrong


def stale(lines: dict[Place, Line], listed: Iterable[Listed]) -> list[str]:
    """What of the list is not so: branches that were reached, lines that do not exist."""
    wrong = []
    for x in listed:
        of_it = [v for k, v in lines.items() if k.function == x.function and x.text in ("", v.text)]
        if not of_it:
            wrong.append(f"{x}: there is no such code with branches")
        elif not x.text and any(v.reached for v in of_it):
            wrong.append(f"{x}: {sum(v.reached for v in of_it)} of its branches are reached")
        elif x.text and sum(v.left for v in of_it) < x.branches:
            left = sum(v.left for v in of_it)
            wrong.append(f"{x}: {x.branches} branches are listed, {left} are not reached")
    return wrong


def rows(
    lines: dict[Place, Line], listed: Iterable[Listed]
) -> tuple[list[Row], list[tuple[Place, int]]]:
    """A row for each file, the least reached first, and where how many branches are missing."""
    whole = {x.function for x in listed if not x.text}
    excused = {(x.function, x.text): x.branches for x in listed if x.text}
    table: dict[str, Row] = {}
    missing = []
    for place, line in sorted(lines.items(), key=lambda item: item[0]):
        row = table.setdefault(place.file, Row(place.file))
        key = (place.function, line.text)
        out = line.left if place.function in whole else min(line.left, excused.get(key, 0))
        if key in excused:
            excused[key] -= out
        row += Row("", line.reached, out, line.left - out)
        if line.left > out:
            missing.append((place, line.left - out))
    return sorted(table.values(), key=lambda r: r.percent), missing


def table(files: Iterable[Row]) -> str:
    """Rows for people, and the sum."""
    every = Row("all")
    text = f"{'file':38}{'reached':>9}{'unreachable':>13}{'missing':>9}   of the reachable\n"
    shown = [*files]
    for r in shown:
        every += r
    for r in [*shown, every]:
        text += f"{r.name:38}{r.reached:>9}{r.unreachable:>13}{r.missing:>9}{r.percent:>11.1f} %\n"
    return text


def _run(context: Context, words: list[str | Path], cwd: Path) -> str:
    """What a program says; BuildError if it fails."""
    log = context.log("cover")
    log.unlink(missing_ok=True)
    status = process.run(words, log, cwd=cwd, timeout=SECONDS, verbose=False)
    text = log.read_text(errors="replace").partition("\n")[2]
    if status != 0:
        raise builds.BuildError(f"{words[0]} ended with status {status}\n{text[-3000:]}")
    return text


def _json_of(text: str) -> str:
    """The line of JSON among what gcov says of files that never ran."""
    return next(line for line in text.splitlines() if line.startswith("{"))


def measure(context: Context) -> dict[Place, Line]:
    """Build, search, and ask gcov; BuildError says what went wrong."""
    folder = builds.ensure(context, "cover")
    lines: dict[Place, Line] = {}
    with builds.locked(folder):
        for old in folder.glob("engine/**/*.gcda"):
            old.unlink()
        said = _run(context, [folder / PROGRAM, "--quick", "--quiet", "--memory", "128"], ROOT)
        print(said.splitlines()[-1])
        objects = folder / "engine/libengine_st.a.p"
        if not list(objects.glob("*.gcda")):
            raise builds.BuildError("the search left no counts of branches")
        # Files of which nothing was linked have notes only: nothing of them was reached.
        for path in sorted(objects.glob("*.gcno")):
            text = _run(context, ["gcov", "-b", "-j", "-t", path.name], path.parent)
            add_gcov(json.loads(_json_of(text)), lines)
    add_text(lines)
    return lines


def main(context: Context, out: Path | None) -> int:
    """The table, what is missing, and what of the list is not so; the exit status."""
    try:
        listed = read_list(LIST.read_text())
    except ValueError as error:  # of TOML's, too
        print(f"{LIST.relative_to(ROOT)}: {error}")
        return 1
    if wrong := gone(listed):
        print("\n".join(f"not so: {text}" for text in wrong))
        return 1
    lines = measure(context)
    files, missing = rows(lines, listed)
    print(table(files), end="")
    for place, n in missing:
        print(f"missing: {place.file}:{place.line}: {n} of {place.function}(): {lines[place].text}")
    wrong = stale(lines, listed)
    for text in wrong:
        print(f"not so: {text}")
    if out:
        every = Row("all")
        for r in files:
            every += r
        figures = {
            "branches": every.reached + every.unreachable + every.missing,
            "branches_reached": every.reached,
            "branches_unreachable": every.unreachable,
            "branches_missing": every.missing,
            "branches_percent": round(every.percent, 2),
            "files": {r.name: [r.reached, r.unreachable, r.missing] for r in files},
        }
        out.write_text(json.dumps({"explore_coverage": figures}, indent=2) + "\n")
    return 1 if wrong else 0
