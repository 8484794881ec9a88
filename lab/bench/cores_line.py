# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A time line: what clients were answered, and how many threads homad had meanwhile.

All times are seconds of the monotonic clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lab.bench.histogram import Histogram, merge
from lab.bench.tas import SAMPLES, checked
from lab.errors import LabError

CLIENTS = 5
# Clients at the same time, level by level.
LEVELS = (*range(1, CLIENTS + 1), *range(CLIENTS - 1, 0, -1))
PART_S = 0.1
# Of each level's time, what is left out at its beginning, because a client starts or ends then.
_SETTLING = 0.2
_BEFORE_S = 0.5
_AFTER_S = 0.5


@dataclass
class Threads:
    """How many threads homad had, as often as it was asked."""

    seen: list[tuple[float, int]] = field(default_factory=list)

    def saw(self, at: float, count: int) -> None:
        """Note it; times increase."""
        self.seen.append((at, count))

    def mean(self, begin: float, end: float) -> float | None:
        """Between two times; None if nobody looked."""
        counts = [count for at, count in self.seen if begin <= at < end]
        return sum(counts) / len(counts) if counts else None

    def rises(self) -> list[float]:
        """When there was one more than at the look before."""
        return [
            at
            for (_, before), (at, count) in zip(self.seen, self.seen[1:], strict=False)
            if count > before
        ]


@dataclass(frozen=True)
class Spike:
    """The highest median of a tenth of a second around a moment, to the median before it, and how
    much more it is."""

    ratio: float
    more_us: float


@dataclass(frozen=True)
class Answers:
    """Parts of the clients' windows: when each was half over, and the latencies of its answers.
    `begin` is when the first client's window opened."""

    begin: float
    middles: Sequence[float]
    parts: Sequence[Histogram]

    @classmethod
    def of(cls, documents: Iterable[dict]) -> Answers:
        """From what the clients reported; LabError if one is not whole."""
        found = [checked(document) for document in documents]
        if not found:
            raise LabError("no client reported")
        parts = sorted(
            (
                (document["opened_at_s"] + (number + 0.5) * document["part_s"], part)
                for document in found
                for number, part in enumerate(document["parts"])
            ),
            key=lambda one: one[0],
        )
        begin = min(document["opened_at_s"] for document in found)
        return cls(begin, [at for at, _ in parts], [Histogram.from_json(p) for _, p in parts])

    def between(self, begin: float, end: float) -> Histogram:
        """All parts that were half over then."""
        first, last = bisect_right(self.middles, begin), bisect_right(self.middles, end)
        return merge(self.parts[first:last])

    def levels(self, seconds: float, threads: Threads) -> Iterator[dict[str, float]]:
        """Of each level: answers per second, percentiles in µs, their number of samples, threads."""
        for number in range(len(LEVELS)):
            begin = self.begin + (number + _SETTLING) * seconds
            end = self.begin + (number + 1) * seconds
            got = self.between(begin, end)
            level = {"rate": got.count / (end - begin), "samples": float(got.count)}
            if got.count >= SAMPLES:
                for percent in (50, 99):
                    level[f"p{percent}_us"] = (got.percentile(percent) or 0) / 1e3
            mean = threads.mean(begin, end)
            if mean is not None:
                level["threads"] = mean
            yield level

    def spike(self, at: float) -> Spike | None:
        """What a thread that came at this time did to the requests; None if there are too few."""
        before = self.between(at - _BEFORE_S - PART_S, at - PART_S)
        # homad was looked at after the thread had come, so the part before counts, too.
        steps = round((_AFTER_S + PART_S) / PART_S)
        after = [self.between(at + (n - 1) * PART_S, at + n * PART_S) for n in range(steps)]
        medians = [one.percentile(50) or 0 for one in after if one.count >= SAMPLES]
        usual = before.percentile(50) if before.count >= SAMPLES else None
        if not medians or not usual:
            return None
        return Spike(max(medians) / usual, (max(medians) - usual) / 1e3)

    def parts_json(self) -> list[list[float | None]]:
        """For a plot, a line for each tenth of a second: seconds since the beginning, answers, median in
        µs (None from fewer than 1,000 samples)."""
        lines: list[list[float | None]] = []
        step = 0
        while self.middles and self.begin + step * PART_S < self.middles[-1]:
            got = self.between(self.begin + step * PART_S, self.begin + (step + 1) * PART_S)
            median = (got.percentile(50) or 0) / 1e3 if got.count >= SAMPLES else None
            lines.append([round(step * PART_S, 3), got.count, median])
            step += 1
        return lines
