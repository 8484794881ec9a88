# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The rows of `./homa bench tas`: TCP through homad to the kernel's, and what TAS was to Linux.

Each point runs on all ways in each round, so a ratio is taken round by round; its interval is over
rounds. Goals are those of bench/targets.toml. The processors are the limit here, so it is no reason
for doubt that they are busy; that they are while nothing is measured is one.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lab.bench import tas
from lab.bench.light import idle_s
from lab.bench.tas import Series
from lab.bench.tas_rows import HOMAD, KERNEL, ROWS, WAY_TEXTS
from lab.cluster.plot import draw_to
from lab.errors import LabError
from lab.reproduce.real.experiment import Value, painted
from lab.sim import compare, draw
from lab.sim.figures.base import Output
from lab.sim.published import published
from lab.sim.stats import Stat, stat
from lab.sim.tails import LEAST, Few
from lab.targets.goals import Target, at, load_targets

TITLE = "TCP through homad beside the kernel's, by TAS's rows"
SECONDS = 1.0  # of each measurement
QUIET, QUIET_S = 0.15, 3.0  # share of the processors that others may use, and how long to look
_COMMAND = re.compile(r"\./homa bench tas ([a-z-]+) --json \{json\}")
_TAILS = ("p50_us", "p90_us", "p99_us", "tail")
_COLUMNS = ["row", "point", "way", "round", "metric", "value"]


def measure(rounds: int) -> dict[str, Output]:
    """All rows; LabError if the machine was not quiet, or something failed in a round."""
    here = tas.start()
    tas.head(here)
    quiet("before")
    series = tas.measure(ROWS, [], rounds, SECONDS)
    quiet("after")
    document = tas.as_json(series, tas.ratios(series), here, SECONDS)
    return {"tas-hosts": output(series, document, rounds)}


def quiet(when: str, idle: Callable[[], float] = idle_s, wait_s: float = QUIET_S) -> None:
    """LabError if others use the processors."""
    began, before = time.monotonic(), idle()
    time.sleep(wait_s)
    passed = (time.monotonic() - began) * (os.cpu_count() or 1)
    busy = 1 - (idle() - before) / passed
    if busy > QUIET:
        raise LabError(
            f"it does not count: {when} it other programs kept the processors {busy:.0%} busy, more "
            f"than {QUIET:.0%}"
        )


def output(series: Sequence[Series], document: dict, rounds: int) -> Output:
    """Rows with a goal, then what the first metric of every other point is to the kernel's."""
    absent = [] if shutil.which("redis-server") else [one for one in series if one.point.redis]
    failed = [one for one in series if one.problem and one not in absent]
    if failed:
        raise LabError(
            f"{len(failed)} of {len(series)} points failed in a round, the first: {failed[0].key}: "
            f"{failed[0].problem}"
        )
    theirs = published()["tas"]["values"]
    rows, known = [], set()
    gone = {f"ratios.{one.key}.{one.row.metrics[0].name}" for one in absent}
    for target in _targets():
        if target.path in gone:
            continue
        ours = _value(series, document, target.path)
        rows.append(_judged(target, ours, theirs.get(target.path)))
        known.add(target.path)
    for one in series:
        path = f"ratios.{one.key}.{one.row.metrics[0].name}"
        if one.way == KERNEL or path in known | gone:
            continue
        what = f"{one.row.key}: {one.point.label}, {WAY_TEXTS[one.way]}, to the kernel's TCP"
        rows.append(compare.info(what, theirs.get(path), _value(series, document, path)))
    for path in theirs:
        if path not in known and path.split(".")[0] != "ratios":
            rows.append(compare.info(path, theirs[path], _value(series, document, path)))
    notes = [f"{row.title}. Published: {row.paper}. Here: {row.differs}." for row in ROWS]
    notes.append(
        f"{rounds} rounds of {SECONDS:g} s; intervals are over rounds. Both hosts, their programs and "
        "their daemons share this machine's processors, which are the limit."
    )
    if absent:
        notes.append("redis-server is not installed, so nothing is said of it.")
    records = [
        [one.row.key, one.point.key, one.way, number, name, value]
        for one in series
        for number, values in enumerate(one.rounds, 1)
        for name, value in sorted((values or {}).items())
    ]
    paint = painted(lambda path: _paint(series, document, theirs, path))
    values: dict[str, object] = {"tas": document}
    return Output(TITLE, _COLUMNS, records, rows, paint, values, notes)


def _targets() -> list[Target]:
    """Goals of these rows."""
    keys = {row.key for row in ROWS}
    return [
        target
        for target in load_targets()
        if (found := _COMMAND.fullmatch(target.command)) and found[1] in keys
    ]


def _judged(target: Target, ours: Value, paper: float | None) -> compare.Row:
    how = compare.at_most if target.better == "lower" else compare.at_least
    return how(f"{target.name}: {target.why}", paper, ours, goal=target.goal)


def _value(series: Sequence[Series], document: dict, path: str) -> Value:
    """The value at that place over rounds; a percentile's n is of all rounds."""
    try:
        here = at(document, path)
    except LabError:
        here = None
    samples = _samples(series, path)
    if samples is not None and (not isinstance(here, dict) or samples < LEAST):
        return Few(samples)
    if not isinstance(here, dict):
        return None
    mean = stat(here["rounds"])
    return mean and Stat(mean.mean, mean.half, mean.count, samples)


def _samples(series: Sequence[Series], path: str) -> int | None:
    """How many requests stand behind a percentile, on the way that has fewer; None of other values."""
    *_, row, point, way, metric = ["", "", "", *path.split(".")]
    if metric not in _TAILS:
        return None
    counts = [
        int(sum(one.values("samples")))
        for one in series
        if (one.row.key, one.point.key) == (row, point) and one.way in (way, KERNEL)
    ]
    return min(counts, default=0)


def _paint(series: Sequence[Series], document: dict, theirs: dict, path: Path) -> None:
    """The first metric of each point through homad at both ends, to the kernel's."""
    found = [one for one in series if one.way == HOMAD]
    height = 1.6 + 0.21 * len(found)
    with draw.canvas(9.2, height) as (figure, panels):
        panel = panels[0, 0]
        figure.subplots_adjust(left=0.42, right=0.97, top=1 - 0.95 / height, bottom=0.5 / height)
        draw.plain(panel, "x")
        for number, one in enumerate(found):
            key = f"ratios.{one.key}.{one.row.metrics[0].name}"
            ours = _value(series, document, key)
            if isinstance(ours, Stat):
                panel.errorbar(
                    [ours.mean], [number], xerr=[ours.half or 0.0], color=draw.BLUE, marker="o",
                    markersize=5, capsize=2, linestyle="",
                )  # fmt: skip
            if key in theirs:
                panel.plot([theirs[key]], [number], color=draw.PAPER, marker="x", linestyle="")
        panel.axvline(1, color=draw.GREY, linewidth=1.2, linestyle=(0, (3, 2)))
        panel.set_xscale("log")
        labels = [f"{one.row.key}: {one.point.label}" for one in found]
        panel.set_yticks(range(len(found)), labels, fontsize=7.5)
        panel.set_ylim(len(found) - 0.5, -0.5)
        panel.set_xlabel("homad at both ends to the kernel's TCP, first metric of the row")
        words = "dots: here, with intervals over rounds; crosses: TAS to Linux, published"
        draw.headline(figure, TITLE, words, 0.03)
        draw_to(path, figure)
