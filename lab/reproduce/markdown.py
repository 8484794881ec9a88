# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The page as Markdown, for the repository; figures beside it as files."""

from __future__ import annotations

import textwrap

from lab.reproduce.items import PAPERS
from lab.reproduce.page import Entry, Head, cells, command, counts


def _row(*texts: str) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]


def render(head: Head, entries: list[Entry]) -> str:
    """All of it."""
    lines = ["# The papers' tables and figures, made again", "", *_wrapped(head.words()), ""]
    lines += [*_wrapped(counts(entries).words()), ""]
    for paper in PAPERS:
        lines += [
            f"## {paper}",
            "",
            _row("item", "what", "status", "met", "missed", "measured at", "command"),
        ]
        lines.append("|---|---|---|--:|--:|---|---|")
        for entry in entries:
            if entry.item.paper == paper:
                met, missed = entry.verdicts()
                lines.append(
                    _row(
                        f"{entry.item.place} (`{entry.item.name}`)",
                        entry.item.title,
                        entry.status(),
                        str(met) if entry.document else "",
                        str(missed) if entry.document else "",
                        entry.measured(),
                        f"`{command(entry.item, head.quick)}`" if command(entry.item, True) else "",
                    )
                )
        lines.append("")
    for entry in entries:
        lines += _section(entry)
    return "\n".join(lines) + "\n"


def _section(entry: Entry) -> list[str]:
    if not entry.document:
        return []
    lines = [f"## {entry.item.place}: {entry.item.title}", "", entry.item.paper, ""]
    lines += [f"![{entry.item.title}]({name})" for name in entry.pictures()]
    lines += ["", *_wrapped(entry.source()), ""]
    lines.append(_row("", "published", "ours (95 % interval)", "n", "ours to it", "goal", ""))
    lines.append("|---|--:|--:|--:|--:|--:|---|")
    lines += [_row(*cells(row)) for row in entry.document.get("rows", [])]
    lines += ["", *_wrapped(f"What differs: {entry.item.differs}"), ""]
    for note in entry.document.get("notes", []):
        lines += _wrapped(f"* {note}", "  ")
    return [*lines, ""]
