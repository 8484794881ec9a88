# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which test catches which mutant, on a terminal and in docs/testing.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from lab.errors import LabError
from lab.mutants.patches import Mutant
from lab.mutants.run import Result
from lab.paths import ROOT

PAGE = ROOT / "docs" / "testing.md"
BEGIN = "<!-- mutants: ./homa mutants --markdown writes these lines -->"
END = "<!-- end of mutants -->"
NOTHING = "nothing"
UNKNOWN = "–"

Found = Mapping[tuple[str, str], Result]


def _cell(found: Found, mutant: str, catcher: str) -> str:
    result = found.get((mutant, catcher))
    if not result:
        return UNKNOWN
    return result.by or NOTHING


def summary(mutants: Sequence[Mutant], catchers: Sequence[str], found: Found) -> str:
    """How many of those that it has seen each catcher catches."""
    said = []
    for catcher in catchers:
        seen = [r for m in mutants if (r := found.get((m.name, catcher)))]
        said.append(f"{catcher} {sum(bool(r.by) for r in seen)} of {len(seen)}")
    return "caught: " + ", ".join(said)


def plain(mutants: Sequence[Mutant], catchers: Sequence[str], found: Found) -> str:
    """Columns for a terminal."""
    rows = [("mutant", *catchers)]
    rows += [(m.name, *(_cell(found, m.name, c) for c in catchers)) for m in mutants]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, summary(mutants, catchers, found)])


def markdown(mutants: Sequence[Mutant], catchers: Sequence[str], found: Found) -> str:
    """The same for docs/testing.md, with what each fault is."""
    lines = [f"| mutant | fault | {' | '.join(catchers)} |", "|---|---|" + "---|" * len(catchers)]
    for m in mutants:
        cells = [_cell(found, m.name, c) for c in catchers]
        fault = f"{m.fault} (**{m.named}**)" if m.named else m.fault
        marked = [c if c in (NOTHING, UNKNOWN) else f"`{c}`" for c in cells]
        lines.append(f"| `{m.name}` | {fault} | {' | '.join(marked)} |")
    return "\n".join([*lines, "", summary(mutants, catchers, found) + "."])


def as_json(mutants: Sequence[Mutant], catchers: Sequence[str], found: Found) -> dict[str, object]:
    """All results, and how many percent of the mutants that it has seen each catcher catches."""
    percent = {}
    for catcher in catchers:
        seen = [r for m in mutants if (r := found.get((m.name, catcher)))]
        if seen:
            percent[catcher] = round(100 * sum(bool(r.by) for r in seen) / len(seen), 1)
    rows = [{"mutant": m, "catcher": c, **asdict(r)} for (m, c), r in sorted(found.items())]
    return {"caught_percent": percent, "results": rows}


def write(text: str, page: Path = PAGE) -> None:
    """Between the marks in the page; LabError if it has none."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LabError(f"{page} lacks the lines '{BEGIN}' and '{END}'")
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
