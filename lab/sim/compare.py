# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Published numbers beside ours, row by row: as a table, as Markdown, as JSON.

A row has a rule that says when ours counts as met. A row without a rule is for reading only, and
so is one whose percentile has too few messages behind it (tails.Few): nothing is judged by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.table import Table

from lab.console import table
from lab.sim.stats import Stat
from lab.sim.tails import Few, known


@dataclass(frozen=True)
class Row:
    """One comparison; `rule` is "within 3", "at most 1.5×", ... and `met` None without one."""

    what: str
    published: float | None
    ours: Stat | Few | None
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
        """what, published, ours, messages, ratio or difference, rule, met."""
        digits = self.digits
        theirs = (
            "–"
            if self.published is None
            else f"{self.published:,.{digits}f}".rstrip("0" if digits else "").rstrip(".")
        )
        value = known(self.ours)
        ours = value.text(digits) if value else "–"
        count = self.ours.samples if self.ours else None
        verdict = {True: "met", False: "missed", None: "–"}[self.met]
        unit = f" {self.unit}" if self.unit else ""
        return [
            self.what + (f",{unit}" if unit else ""),
            theirs,
            ours,
            "" if count is None else f"{count:,}",
            self.gap(),
            self.rule,
            verdict,
        ]

    def gap(self) -> str:
        """Difference in points for percentages, ratio for all else."""
        ours = known(self.ours)
        if self.published is None or ours is None:
            return "–"
        if self.unit == "%":
            return f"{ours.mean - self.published:+.1f}"
        return f"× {ours.mean / self.published:.2f}" if self.published else "–"


def _judge(ours: Stat | Few | None, holds: Callable[[float], bool]) -> bool | None:
    """None: too few messages to judge by. No result at all is a miss."""
    if isinstance(ours, Few):
        return None
    return ours is not None and holds(ours.mean)


def about(what: str, published: float, ours: Stat | Few | None, points: float) -> Row:
    """Percentages: ours is within `points` to either side."""
    met = _judge(ours, lambda mean: abs(mean - published) <= points)
    return Row(what, published, ours, "%", f"± {points:g}", met, 1)


def within(what: str, ours: Stat | Few | None, points: float) -> Row:
    """Percent by which ours is off: no more than `points` to either side. Nothing is published."""
    met = _judge(ours, lambda mean: abs(mean) <= points)
    return Row(what, None, ours, "%", f"± {points:g}", met, 1)


def like(
    what: str, published: float, ours: Stat | Few | None, unit: str = "", factor: float = 1.5
) -> Row:
    """Ours is between the published number divided by `factor` and multiplied by it."""
    low, high = published / factor, published * factor
    met = _judge(ours, lambda mean: low <= mean <= high)
    return Row(what, published, ours, unit, f"{low:.3g} … {high:.3g}", met)


def between(
    what: str,
    low: float,
    high: float,
    ours: Stat | Few | None,
    unit: str = "",
    published: float | None = None,
) -> Row:
    """Ours is in the published range; `published` or else its middle stands for it."""
    met = _judge(ours, lambda mean: low <= mean <= high)
    known = (low + high) / 2 if published is None else published
    return Row(what, known, ours, unit, f"{low:g} … {high:g}", met)


def at_most(
    what: str,
    published: float | None,
    ours: Stat | Few | None,
    unit: str = "",
    factor: float = 1.0,
    goal: float | None = None,
) -> Row:
    """Ours is no more than `factor` times what is published as a bound, or than `goal`."""
    limit = _limit(published, goal) * factor
    met = _judge(ours, lambda mean: mean <= limit)
    return Row(what, published, ours, unit, f"≤ {limit:.3g}", met)


def at_least(
    what: str,
    published: float | None,
    ours: Stat | Few | None,
    unit: str = "",
    goal: float | None = None,
) -> Row:
    """Ours is no less than what is published as a bound, or than `goal`."""
    limit = _limit(published, goal)
    met = _judge(ours, lambda mean: mean >= limit)
    return Row(what, published, ours, unit, f"≥ {limit:.3g}", met)


def _limit(published: float | None, goal: float | None) -> float:
    limit = published if goal is None else goal
    if limit is None:
        raise ValueError("a row with a rule needs a published number or a goal")
    return limit


def info(
    what: str,
    published: float | None,
    ours: Stat | Few | None,
    unit: str = "",
    digits: int = 2,
) -> Row:
    """No rule: for reading."""
    return Row(what, published, ours, unit, "", None, digits)


def exactly(value: float) -> Stat:
    """A number that was calculated, or counted in all runs together: it has no interval."""
    return Stat(float(value), None, 1)


_HEAD = ("", "published", "ours", "n", "ours to it", "goal", "")


def as_table(title: str, rows: list[Row]) -> Table:
    """For the terminal."""
    result = table(title, *_HEAD)
    # The sentence gives way, not the verdict.
    result.columns[0].no_wrap = False
    style = {"met": "[green]met[/]", "missed": "[red]missed[/]"}
    for row in rows:
        *cells, verdict = row.cells()
        result.add_row(*cells, style.get(verdict, verdict))
    return result


def as_markdown(rows: list[Row]) -> str:
    """For a document."""
    lines = [
        "| | published | ours (95 % interval) | n | ours to it | goal | |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines) + "\n"
