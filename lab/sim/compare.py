# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Published numbers beside ours, row by row: as a table, as Markdown, as JSON.

A row has a rule that says when ours counts as met. A row without a rule is for reading only.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table

from lab.console import table
from lab.sim.stats import Stat


@dataclass(frozen=True)
class Row:
    """One comparison; `rule` is "within 3", "at most 1.5×", ... and `met` None without one."""

    what: str
    published: float | None
    ours: Stat | None
    unit: str = ""
    rule: str = ""
    met: bool | None = None
    digits: int = 2

    def as_json(self) -> dict[str, object]:
        """For a result file."""
        return {
            "what": self.what,
            "published": self.published,
            "ours": self.ours.as_json() if self.ours else None,
            "unit": self.unit,
            "rule": self.rule,
            "met": self.met,
        }

    def cells(self) -> list[str]:
        """what, published, ours, ratio or difference, rule, met."""
        digits = self.digits
        theirs = (
            "–"
            if self.published is None
            else f"{self.published:,.{digits}f}".rstrip("0" if digits else "").rstrip(".")
        )
        ours = self.ours.text(digits) if self.ours else "–"
        verdict = {True: "met", False: "missed", None: "–"}[self.met]
        unit = f" {self.unit}" if self.unit else ""
        return [
            self.what + (f",{unit}" if unit else ""),
            theirs,
            ours,
            self.gap(),
            self.rule,
            verdict,
        ]

    def gap(self) -> str:
        """Difference in points for percentages, ratio for all else."""
        if self.published is None or self.ours is None:
            return "–"
        if self.unit == "%":
            return f"{self.ours.mean - self.published:+.1f}"
        return f"× {self.ours.mean / self.published:.2f}" if self.published else "–"


def within(what: str, published: float, ours: Stat | None, points: float) -> Row:
    """Percentages: ours is no more than `points` below."""
    met = ours is not None and ours.mean >= published - points
    return Row(what, published, ours, "%", f"≥ {published - points:g}", met, 1)


def about(what: str, published: float, ours: Stat | None, points: float) -> Row:
    """Percentages: ours is within `points` to either side."""
    met = ours is not None and abs(ours.mean - published) <= points
    return Row(what, published, ours, "%", f"± {points:g}", met, 1)


def at_most(
    what: str, published: float, ours: Stat | None, unit: str = "", factor: float = 1.0
) -> Row:
    """Ours is no more than `factor` times the published number."""
    limit = published * factor
    met = ours is not None and ours.mean <= limit
    return Row(what, published, ours, unit, f"≤ {limit:.3g}", met)


def at_least(what: str, published: float, ours: Stat | None, unit: str = "") -> Row:
    """Ours is no less than the published number."""
    met = ours is not None and ours.mean >= published
    return Row(what, published, ours, unit, f"≥ {published:.3g}", met)


def info(
    what: str, published: float | None, ours: Stat | None, unit: str = "", digits: int = 2
) -> Row:
    """No rule: for reading."""
    return Row(what, published, ours, unit, "", None, digits)


_HEAD = ("", "published", "ours", "ours to it", "goal", "")


def as_table(title: str, rows: list[Row]) -> Table:
    """For the terminal."""
    result = table(title, *_HEAD)
    style = {"met": "[green]met[/]", "missed": "[red]missed[/]"}
    for row in rows:
        *cells, verdict = row.cells()
        result.add_row(*cells, style.get(verdict, verdict))
    return result


def as_markdown(rows: list[Row]) -> str:
    """For a document."""
    lines = [
        "| | published | ours (95 % interval) | ours to it | goal | |",
        "|---|--:|--:|--:|--:|---|",
    ]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines) + "\n"
