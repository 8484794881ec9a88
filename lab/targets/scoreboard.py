# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How the targets are shown."""

from __future__ import annotations

from rich.table import Table

from lab.console import table
from lab.targets.saved import Before, Move
from lab.targets.goals import Outcome, Target


def number(value: float) -> str:
    """Three significant digits, thousands apart."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _goal(target: Target) -> str:
    return f"{'≤' if target.better == 'lower' else '≥'} {number(target.goal)}"


def list_table(targets: list[Target]) -> Table:
    """What there is to be measured."""
    result = table("targets", "name", "goal", "why", left=3)
    for target in targets:
        result.add_row(target.name, _goal(target), target.why)
    return result


def outcome_table(outcomes: list[Outcome]) -> Table:
    """Goals and values; what could not be measured is listed with its reason."""
    result = table("", "target", "goal", "median", "spread", "", left=1)
    for outcome in outcomes:
        name = outcome.target.name
        if outcome.value is None:
            result.add_row(name, _goal(outcome.target), "–", "–", "[yellow]not measured[/]")
            continue
        value = outcome.value
        spread = f"{number(value.low)} … {number(value.high)}" if value.rounds > 1 else "one run"
        verdict = "[green]met[/]" if outcome.met else "[red]missed[/]"
        result.add_row(name, _goal(outcome.target), number(value.median), spread, verdict)
    return result


_COLOURS = {"better": "green", "worse": "red", "not measured": "yellow"}


def _then(before: Before | None) -> tuple[str, str]:
    if before is None:
        return "–", ""
    return number(before.value.median), f"{before.commit} {before.date[:10]}"


def move_table(moves: list[Move]) -> Table:
    """Rows now and in the scoreboard that was kept last."""
    result = table("", "target", "before", "now", "change", "", "before is", left=1)
    for move in moves:
        now = move.outcome.value
        value, where = _then(move.before)
        change = "" if move.change is None else f"{move.change:+.0%}".replace("%", " %")
        colour = _COLOURS.get(move.verdict)
        verdict = f"[{colour}]{move.verdict}[/]" if colour else move.verdict
        median = number(now.median) if now else "–"
        result.add_row(move.outcome.target.name, value, median, change, verdict, where)
    return result
