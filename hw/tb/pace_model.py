# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What homa_pace should do in each cycle, written down once more: with whole numbers instead of
sums modulo 2^32."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MARKS = 64
STAMPS = 16
MOST_DEBT = (1 << 40) - 1


@dataclass
class Settings:
    """As the block's inputs."""

    on: int = 0
    limit: int = 0
    rate: int = 0
    extra: int = 0


@dataclass
class Offer:
    """What stands at the input in a cycle; `size`: bytes of the beat."""

    size: int
    last: bool
    other: int


@dataclass
class Model:
    """The block between two edges of the clock."""

    begun: bool = False  # a frame is amid, or its first beat was offered
    handed: int = 0
    gone: int = 0
    debt: int = 0
    numbers: list[int] = field(default_factory=lambda: [0, 0])
    marks: deque[tuple[int, int, int]] = field(default_factory=deque)
    stamps: deque[tuple[int, int, int]] = field(default_factory=deque)
    counted: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("waited", "lied", "untaken", "crowded"), 0)
    )

    def go(self, s: Settings) -> bool:
        """May the beat that is offered pass?"""
        if self.begun or not s.on:
            return True
        return self.handed - self.gone <= s.limit and (not s.rate or self.debt < s.rate)

    def edge(
        self, s: Settings, offer: Offer | None, ready: int, left: int, now: int, taking: int
    ) -> None:
        """A cycle with these inputs is over."""
        go = self.go(s)
        taken = offer if offer and go and ready else None
        if taking and self.stamps:
            full = len(self.stamps) == STAMPS
            self.stamps.popleft()
        else:
            full = len(self.stamps) == STAMPS
        crowded = len(self.marks) == MARKS
        if self.marks and self.marks[0][2] <= self.gone:
            other, number, _ = self.marks.popleft()
            if full:
                self.counted["untaken"] += 1
            else:
                self.stamps.append((other, number, now))
        if offer and not go:
            self.counted["waited"] += 1
        size = taken.size if taken else 0
        self.handed += size
        if taken and taken.last:
            if crowded:
                self.counted["crowded"] += 1
            else:
                self.marks.append((taken.other, self.numbers[taken.other], self.handed))
            self.numbers[taken.other] = self.numbers[taken.other] + 1 & 0xFFFF
        self.counted["lied"] += left > self.handed - self.gone
        self.gone = min(self.handed, self.gone + left)
        self._pay(s, size + (s.extra if taken and taken.last else 0))
        if taken:
            self.begun = not taken.last
        elif offer and go:
            self.begun = True

    def _pay(self, s: Settings, size: int) -> None:
        self.debt = min(MOST_DEBT, max(0, self.debt + (size << 16) - s.rate))
        if not s.on or not s.rate:
            self.debt = 0
