# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""One HTML page of all items: nothing beside it is needed, light and dark, made for people to read."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass, field
from pathlib import Path

from lab.reproduce import results
from lab.reproduce.items import PAPERS, Item, minutes
from lab.reproduce.style import STYLE
from lab.sim.figures.base import Options

# Minutes for all items, quick and full; of the quick ones without those of real packets.
GOALS = (40.0, 600.0)
VERDICTS = {True: "met", False: "missed", None: ""}


@dataclass(frozen=True)
class Head:
    """How the runs were made and where the page was written.

    `where` is empty for results that are kept: each item says itself where it was measured.
    """

    quick: bool
    length: str
    where: dict[str, object] = field(default_factory=dict)

    def words(self) -> str:
        """One paragraph."""
        text = f"{self.length[:1].upper()}{self.length[1:]}. "
        if self.where:
            kind = "virtual machine" if self.where.get("virtual") else "machine"
            text += (
                f"Written on a {kind} with {self.where.get('cores')} cores ({self.where.get('cpu')}), "
                f"Linux {self.where.get('kernel')}, commit {self.where.get('commit') or 'unknown'}, "
                f"{self.where.get('date')}. "
            )
        else:
            text += (
                "Items are measured one by one; each says below where, when and at which commit. "
            )
        return (
            text
            + f"{duration(self.quick)} "
            + (
                "± is a 95 % confidence interval over seeds; n is the number of messages behind a "
                "percentile, and of fewer than 1,000 none is given."
            )
        )


def duration(quick: bool) -> str:
    """How long all items take, beside what they should."""
    simulated, real = minutes(quick)
    whole, goal = (simulated, GOALS[0]) if quick else (simulated + real, GOALS[1])
    verdict = "met" if whole <= goal else "missed"
    said = f"All items take some {_long(simulated)} on two cores, and {_long(real)} more as root for real packets"
    what = "the former" if quick else "both"
    return f"{said}; the goal for {what} is {_long(goal)}: {verdict}."


def _long(span: float) -> str:
    return f"{span:.0f} minutes" if span < 300 else f"{span / 60:.1f} hours"


@dataclass(frozen=True)
class Entry:
    """An item with what has been made of it.

    `current`: by the build that is there now. `kept`: it stands in the repository, where the
    commit matters and not whether it is today's. `left_out`: why the command did not make it.
    """

    item: Item
    document: dict | None
    current: bool = False
    problem: str = ""
    kept: bool = False
    left_out: str = ""

    def verdicts(self) -> tuple[int, int]:
        """Rows met and missed."""
        rows = (self.document or {}).get("rows", [])
        return sum(r["met"] is True for r in rows), sum(r["met"] is False for r in rows)

    def status(self) -> str:
        """In a few words."""
        if self.problem:
            return "failed"
        if self.document:
            done = "done" if self.document.get("complete", True) else "in part"
            return done if self.current or self.kept else f"{done}, by an older build"
        if self.item.made:
            return f"not measured: {self.left_out}" if self.left_out else "not measured"
        return "own command" if self.item.command else "no command"

    def measured(self) -> str:
        """At which commit and on which day."""
        if not self.document:
            return ""
        said = self.document["origin"]
        changed = "" if said["clean"] else " and changes"
        return (
            f"{said['commit'] or 'unknown'}{changed}, {str(said['machine'].get('date', ''))[:10]}"
        )

    def pictures(self) -> list[str]:
        """Names of its figures' files."""
        return list((self.document or {}).get("pictures", []))

    def source(self) -> str:
        """Where and when its runs were made."""
        return results.words(self.document) if self.document else ""


@dataclass(frozen=True)
class Counts:
    """Of the whole page."""

    items: int
    done: int
    met: int
    missed: int
    unjudged: int

    def words(self) -> str:
        """One sentence."""
        return (
            f"{self.done} of {self.items} items measured; of their comparisons {self.met} are met, "
            f"{self.missed} missed, {self.unjudged} have too few messages to judge."
        )


def counts(entries: list[Entry]) -> Counts:
    """How many items are made and how their comparisons ended."""
    rows = [row for e in entries if e.document for row in e.document.get("rows", [])]
    return Counts(
        len(entries),
        sum(bool(e.document) for e in entries),
        sum(row["met"] is True for row in rows),
        sum(row["met"] is False for row in rows),
        sum(row["met"] is None and bool(row["rule"]) for row in rows),
    )


def command(item: Item, quick: bool) -> str:
    """What makes it; "" if nothing does."""
    if item.made:
        return results.command(item, Options(quick))
    return item.command


def number(value: float | None) -> str:
    """A number of the comparison: three digits that matter, thousands apart."""
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cells(row: dict) -> list[str]:
    """what, published, ours, n, ours to it, goal, verdict."""
    ours = row.get("ours") or {}
    mean, half, count = ours.get("mean"), ours.get("ci95"), ours.get("n")
    published, unit = row.get("published"), row.get("unit", "")
    text = number(mean) + (f" ± {number(half)}" if half is not None else "")
    gap = "–"
    if mean is not None and published is not None:
        if unit == "%":
            gap = f"{mean - published:+.1f}"
        elif published:
            gap = f"× {number(mean / published)}"
    verdict = VERDICTS[row.get("met")]
    if row.get("rule") and row.get("met") is None:
        verdict = "too few"
    return [
        row["what"] + (f", {unit}" if unit else ""),
        number(published),
        text,
        "" if count is None else f"{count:,}",
        gap,
        row.get("rule", ""),
        verdict,
    ]


def _text(words: str) -> str:
    """HTML of a sentence; what stands between backquotes is code."""
    parts = html.escape(words).split("`")
    return "".join(f"<code>{p}</code>" if n % 2 else p for n, p in enumerate(parts))


def _picture(path: Path, title: str) -> str:
    try:
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError:
        return ""
    return f'<img alt="{html.escape(title)}" src="data:image/svg+xml;base64,{data}">'


def _table(head: list[str], rows: list[list[str]], last: str = "") -> str:
    parts = ["<div class=wide><table><thead><tr>"]
    parts += [f"<th>{html.escape(name)}" for name in head]
    parts.append("</thead><tbody>")
    for row in rows:
        mark = row[-1] if last else ""
        parts.append(f'<tr class="{html.escape(mark.replace(" ", "-"))}">')
        parts += [f"<td>{cell}" for cell in row]
    return "".join([*parts, "</tbody></table></div>"])


def _overview(entries: list[Entry], quick: bool) -> str:
    parts = []
    for paper in PAPERS:
        rows = []
        for entry in entries:
            if entry.item.paper != paper:
                continue
            met, missed = entry.verdicts()
            title = html.escape(entry.item.title)
            if entry.document:
                title = f'<a href="#{entry.item.name}">{title}</a>'
            said = command(entry.item, quick)
            rows.append(
                [
                    html.escape(entry.item.place),
                    title,
                    f"{met} met, {missed} missed" if entry.document else "",
                    html.escape(entry.measured()),
                    f"<code>{html.escape(said)}</code>" if said else _text(entry.item.differs),
                    html.escape(entry.status()),
                ]
            )
        parts.append(f"<h2>{html.escape(paper)}</h2>")
        parts.append(
            _table(["", "what", "compared", "measured at", "command", "status"], rows, "status")
        )
    return "".join(parts)


def _section(entry: Entry, folder: Path, quick: bool) -> str:
    item, document = entry.item, entry.document
    if not document and not entry.problem:
        return ""
    parts = [
        f'<section id="{item.name}"><h2>{html.escape(item.place)}: {html.escape(item.title)}</h2>'
    ]
    parts.append(
        f"<p class=paper>{html.escape(item.paper)} · <code>{command(item, quick)}</code></p>"
    )
    if entry.problem:
        parts.append(f"<p class=problem>It could not be made: {html.escape(entry.problem)}</p>")
    if document:
        parts += [f"<figure>{_picture(folder / p, item.title)}</figure>" for p in entry.pictures()]
        head = ["", "published", "ours (95 % interval)", "n", "ours to it", "goal", ""]
        rows = [[html.escape(text) for text in cells(row)] for row in document.get("rows", [])]
        parts.append(_table(head, rows, "verdict"))
        parts.append(f"<p><b>What differs:</b> {_text(item.differs)}</p>")
        notes = "".join(f"<li>{html.escape(str(note))}" for note in document.get("notes", []))
        parts.append(f"<ul>{notes}</ul><p class=paper>{html.escape(entry.source())}</p>")
    return "".join([*parts, "</section>"])


def render(head: Head, entries: list[Entry], folder: Path) -> str:
    """The page; figures are read from `folder` and become part of it."""
    title = "The papers’ tables and figures, made again"
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>{STYLE}</style></head><body><main><h1>{title}</h1>",
            f"<p>{html.escape(head.words())}</p>",
            f"<p class=count>{html.escape(counts(entries).words())}</p>",
            _overview(entries, head.quick),
            *(_section(entry, folder, head.quick) for entry in entries),
            "</main></body></html>\n",
        ]
    )
