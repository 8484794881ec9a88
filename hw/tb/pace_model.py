# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What homa_pace should do in each cycle, written down once more: with whole numbers instead of
sums modulo 2^24, and one list for the beats whose bytes are not counted yet."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MARKS = 64
STAMPS = 16
MOST_INSIDE = 1 << 22  # with so many bytes in the port no more are counted
MOST_DEBT = 1 << 34  # with so much debt no more is counted
ON_WAY = 4  # beats that were taken and are not counted in the port
ON_WAY_RATE = 5  # beats that were taken and are not in the debt with which a frame may begin
SLOW = 4 << 16  # a rate below this is never passed, not even by what is not counted yet
EARLY = 6  # cycles' worth of the rate that a frame may begin early


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
class Cycle:
    """What came in one cycle: bytes that were taken, does a frame end, of which input; bytes left."""

    size: int = 0
    ends: bool = False
    other: int = 0
    left: int = 0


@dataclass
class Model:
    """The block between two edges of the clock, with beats of `beat` bytes."""

    beat: int
    begun: bool = False  # a frame is amid, or its first beat was offered
    took: list[bool] = field(default_factory=lambda: [False] * ON_WAY_RATE)
    way: list[Cycle] = field(default_factory=lambda: [Cycle() for _ in range(3)])
    room: bool = False
    roomy: bool = False
    paid: bool = False
    less: int = 0
    inside: int = 0
    handed: int = 0  # without the beats on their way
    gone: int = 0
    lied: bool = False
    paying: bool = False
    slow: bool = False
    paid_below: int = 0
    counted_bytes: int = 0
    change: int = 0
    debt: int = 0
    numbers: list[int] = field(default_factory=lambda: [0, 0])
    marks: deque[tuple[int, int, int]] = field(default_factory=deque)
    first: tuple[int, int, int] | None = None
    stamps: deque[tuple[int, int, int]] = field(default_factory=deque)
    counted: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("waited", "lied", "untaken", "crowded"), 0)
    )

    def go(self, s: Settings) -> bool:
        """May the beat that is offered pass?"""
        if self.begun or not s.on:
            return True
        room = self.roomy or (self.room and not any(self.took[:ON_WAY]))
        return room and self.paid and not (self.slow and any(self.took))

    def edge(
        self, s: Settings, offer: Offer | None, ready: int, left: int, now: int, taking: int
    ) -> None:
        """A cycle with these inputs is over."""
        go = self.go(s)
        taken = offer if offer and go and ready else None
        if offer and not go:
            self.counted["waited"] += 1
        self._depart(now, taking)
        self._pay(s)
        self._count(s)
        came = Cycle(taken.size, taken.last, taken.other, left) if taken else Cycle(left=left)
        if taken:
            self.begun = not taken.last
        elif offer and go:
            self.begun = True
        self.took = [taken is not None, *self.took[:-1]]
        self.way = [came, *self.way[:-1]]

    def _depart(self, now: int, taking: int) -> None:
        """Frames whose last byte has left, and those that the port has got."""
        crowded = len(self.marks) == MARKS or self.inside >= MOST_INSIDE
        full = len(self.stamps) == STAMPS
        if taking and self.stamps:
            self.stamps.popleft()
        departs = self.first is not None and self.first[2] <= self.gone
        if departs and full:
            self.counted["untaken"] += 1
        elif departs and self.first:
            self.stamps.append((*self.first[:2], now))
        if departs or not self.first:
            self.first = self.marks.popleft() if self.marks else None
        ended = self.way[2]
        if ended.ends:
            if crowded:
                self.counted["crowded"] += 1
            else:
                self.marks.append((ended.other, self.numbers[ended.other], self._given()))
            self.numbers[ended.other] = self.numbers[ended.other] + 1 & 0xFFFF

    def _given(self) -> int:
        """Bytes given to the port, those of the beat in the third cycle included."""
        return self.handed + self.way[2].size

    def _count(self, s: Settings) -> None:
        """Bytes in the port, as known four cycles later."""
        self.room, self.roomy = self.inside <= s.limit, self.inside <= self.less
        self.less = s.limit - ON_WAY * self.beat
        self.counted["lied"] += self.lied
        full = self.inside >= MOST_INSIDE
        self.gone = self.handed - self.inside
        self.handed = self._given()
        inside = self.inside + self.way[2].size - self.way[2].left
        self.lied, self.inside = inside < 0, max(0, inside)
        if full:
            self.way[0].size = 0

    def _pay(self, s: Settings) -> None:
        """The rate; called before `way` moves on."""
        self.paid = not self.paying or self.debt < self.paid_below
        deep = self.debt >= MOST_DEBT
        self.debt = max(0, self.debt + self.change) if self.paying else 0
        self.change = (self.counted_bytes << 16) - s.rate
        beat = self.way[1]
        self.counted_bytes = 0 if deep else beat.size + (s.extra if beat.ends else 0)
        self.paying = bool(s.on and s.rate)
        self.slow = self.paying and s.rate < SLOW
        self.paid_below = EARLY * s.rate
