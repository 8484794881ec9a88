# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A counterexample of the explorer as a space-time diagram: a line down for each host, an arrow for
each packet, what is lost ends in a cross. Rows are events, not time; the clock is at the left."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.sax.saxutils import escape

ROW = 26
LEFT = 120
APART = 420
TOP = 60
_PACKET = re.compile(r"^ +([\d.]+) ms  host (\d+) (sends|gets) +(.*?)(  \(a copy\))?$")
_STEP = re.compile(r"^step [\d ]+\t# (.*)$")
_SAID = re.compile(r"^ {19}(.*)$")
# Of the world, not of a host; arrivals are arrows.
_ARRIVES = re.compile(r"^packet \d+ arrives$")


@dataclass
class Arrow:
    """A packet: where and in which row it was sent, and where it came to, if it did."""

    what: str
    src: int
    row: int
    dst: int | None = None
    end: int | None = None


def read(text: str) -> tuple[list[Arrow], list[tuple[int, str]], list[tuple[int, str]], int]:
    """Arrows, notes by row, times by row, and the number of rows."""
    arrows: list[Arrow] = []
    notes: list[tuple[int, str]] = []
    times: list[tuple[int, str]] = []
    row = 0
    for line in text.splitlines():
        packet, step, said = _PACKET.match(line), _STEP.match(line), _SAID.match(line)
        if packet:
            row += 1
            if not times or times[-1][1] != packet[1]:
                times.append((row, packet[1]))
            _place(arrows, packet[3], int(packet[2]), packet[4], bool(packet[5]), row)
        elif step and not _ARRIVES.match(step[1]):
            row += 1
            notes.append((row, step[1]))
        elif said:
            row += 1
            notes.append((row, said[1].strip()))
        elif line.startswith("fails: "):
            row += 1
            notes.append((row, line))
    return arrows, notes, times, row


def _place(arrows: list[Arrow], verb: str, host: int, what: str, copy: bool, row: int) -> None:
    if verb == "sends":
        arrows.append(Arrow(what, host, row))
        return
    sent = [a for a in arrows if a.what == what and a.src != host]
    waiting = [a for a in sent if a.end is None]
    if waiting and not copy:
        waiting[0].dst, waiting[0].end = host, row
    elif sent:
        arrows.append(Arrow("(copy) " + what, sent[-1].src, sent[-1].row, host, row))


def draw(text: str) -> str:
    """The whole picture as SVG."""
    arrows, notes, times, rows = read(text)
    hosts = 1 + max([1, *(a.src for a in arrows), *(a.dst or 0 for a in arrows)])
    width, height = LEFT + APART * (hosts - 1) + 480, TOP + ROW * (rows + 2)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for host in range(hosts):
        x = LEFT + APART * host
        out.append(f'<text x="{x}" y="{TOP - 20}" text-anchor="middle">host {host}</text>')
        out.append(f'<path d="M{x} {TOP - 10}V{height - ROW}" stroke="gray"/>')
    out += [_arrow(arrow, hosts) for arrow in arrows]
    out += [f'<text x="8" y="{_y(r) + 4}" fill="gray">{escape(t)} ms</text>' for r, t in times]
    x = LEFT + APART * (hosts - 1) + 16
    for row, note in notes:
        bold = ' font-weight="bold" fill="firebrick"' if note.startswith("fails") else ""
        out.append(f'<text x="{x}" y="{_y(row) + 4}"{bold}>{escape(note)}</text>')
    return "\n".join([*out, "</svg>", ""])


def _y(row: int) -> int:
    return TOP + ROW * row


def _arrow(arrow: Arrow, hosts: int) -> str:
    x1, y1 = LEFT + APART * arrow.src, _y(arrow.row)
    if arrow.dst is None or arrow.end is None:
        x2 = x1 + (60 if arrow.src == 0 or hosts > 2 and arrow.src < hosts - 1 else -60)
        line = f'<path d="M{x1} {y1}L{x2} {y1 + 10}" stroke="firebrick"/>'
        line += f'<path d="M{x2 - 4} {y1 + 6}l8 8m0 -8l-8 8" stroke="firebrick"/>'
        anchor, x = ("start", x2 + 8) if x2 > x1 else ("end", x2 - 8)
        return (
            line + f'<text x="{x}" y="{y1 + 8}" text-anchor="{anchor}">{escape(arrow.what)}</text>'
        )
    x2, y2 = LEFT + APART * arrow.dst, _y(arrow.end)
    dash = ' stroke-dasharray="5 3"' if arrow.what.startswith("(copy)") else ""
    anchor, x = ("start", x1 + 8) if x2 > x1 else ("end", x1 - 8)
    return (
        f'<path d="M{x1} {y1}L{x2} {y2}" stroke="black"{dash} marker-end="url(#tip)"/>'
        f'<text x="{x}" y="{y1 - 4}" text-anchor="{anchor}" font-size="10">{escape(arrow.what)}</text>'
    )
