# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The whole card between two hosts with real engines: what they send goes through segmentation,
over a link that loses, doubles and reorders packets, and through large receive to the other one.
One card has the packets of both hosts."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hw.tb.bench_lso import OTHER, compare
from hw.tb.bench_nic import Card
from hw.tb.ends import World
from hw.tb.layout import constants
from hw.tb.stream import Beat, beats
from hw.tb.supers import Super

PATIENCE = 50_000
NS = 4  # of a cycle: 250 MHz
STEP = 8  # cycles between two looks at the hosts


@dataclass(frozen=True)
class Faults:
    """Shares of packets; cycles."""

    loss: float
    double: float
    reorder: float
    latency: int
    late: int


class Link:
    """Packets on their way, each with its time of arrival in cycles."""

    def __init__(self, rng: random.Random, faults: Faults) -> None:
        self.rng = rng
        self.faults = faults
        self.way: list[tuple[int, int, bytes]] = []
        self.number = 0
        self.lost = self.doubled = self.late = 0

    def send(self, packet: bytes, now: int) -> None:
        f = self.faults
        if self.rng.random() < f.loss:
            self.lost += 1
            return
        at = now + f.latency
        if self.rng.random() < f.reorder:
            at += self.rng.randrange(f.late)
            self.late += 1
        self._put(packet, at)
        if self.rng.random() < f.double:
            self._put(packet, at + self.rng.randrange(f.late))
            self.doubled += 1

    def _put(self, packet: bytes, at: int) -> None:
        self.number += 1
        heapq.heappush(self.way, (at, self.number, packet))

    def due(self, now: int) -> Iterator[bytes]:
        while self.way and self.way[0][0] <= now:
            yield heapq.heappop(self.way)[2]


class Feed:
    """Beats of frames that may come at any time; an iterator that can go on after its end.
    `begins` is called with each frame whose first beat is taken."""

    def __init__(self, width: int, begins: Any = None) -> None:
        self.width = width
        self.begins = begins
        self.frames: deque[Any] = deque()
        self.rest: Iterator[Beat] = iter(())
        self.bytes = 0

    def add(self, frame: bytes, note: Any = None) -> None:
        self.frames.append((frame, note))
        self.bytes += len(frame)

    def __iter__(self) -> Feed:
        return self

    def __next__(self) -> Beat:
        beat = next(self.rest, None)
        if beat is None:
            if not self.frames:
                raise StopIteration
            frame, note = self.frames.popleft()
            if self.begins:
                self.begins(note)
            self.rest = beats(frame, self.width)
            beat = next(self.rest)
        self.bytes -= beat.count
        return beat


class Between:
    """The card, the link and the hosts at work."""

    def __init__(
        self, card: Card, world: World, link: Link, rng: random.Random, width: int
    ) -> None:
        self.card, self.world, self.link, self.rng = card, world, link, rng
        self.cycle = 0
        self.items: list[Super] = []
        self.others = 0  # frames of the second input
        self.gone = self.others_gone = 0  # packets that have left the port
        self.supers = 0  # frames of several packets
        self.given = self.units = self.longest = 0
        tx, rx = card.transmit, card.receive
        self.long, self.short, self.port = Feed(width, self._describe), Feed(width), Feed(width)
        for source, feed in ((tx.long, self.long), (tx.short, self.short), (rx.source, self.port)):
            source.queue = feed
        self._check = rx.check
        rx.check = self._received  # type: ignore[method-assign]

    def _describe(self, item: Super) -> None:
        dut = self.card.transmit.dut
        dut.s_split.value, dut.s_seg.value = int(item.split), item.seg
        dut.s_tag.value = item.tag

    def _received(self, frame: bytes, said: list[dict[str, int]]) -> None:
        """The card gave this to a host: first its bench looks at it, then the host has it."""
        self._check(frame, said)
        pieces = said[0]["pieces"]
        self.given += self.world.put(frame, pieces, said[0]["seg"])
        self.units += pieces > 1
        self.longest = max(self.longest, pieces)

    def _send(self) -> None:
        """What the hosts want to send goes to the card: super-frames and some packets to its first
        input, the others to the second one."""
        while (out := self.world.get()) is not None:
            several = out.data and len(out.homa) - 56 > out.seg
            self.supers += several
            other = not several and self.rng.random() < 0.7
            frame = self.world.carrier.frame(out.src, out.dst, out.prio, out.homa, other)
            if other:
                self.others += 1
                self.short.add(frame)
                continue
            item = Super(frame, out.data, out.seg, len(self.items) & 255)
            self.items.append(item)
            self.long.add(frame, item)
        waiting = self.long.bytes + self.short.bytes
        for host in (0, 1):
            self.world.queued(host, waiting)

    def _travel(self) -> None:
        """Packets leave the port, and arrive at it."""
        tx, rx = self.card.transmit, self.card.receive
        while self.gone < len(tx.order):
            other = tx.order[self.gone]
            number = self.others_gone if other else self.gone - self.others_gone
            self.link.send((tx.others if other else tx.packets)[number], self.cycle)
            self.others_gone += other
            self.gone += 1
        for packet in self.link.due(self.cycle):
            rx.expect(packet)
            self.port.add(packet)

    def empty(self) -> bool:
        """Is nothing in the card, nor on its way to it?"""
        tx, rx = self.card.transmit, self.card.receive
        if rx.left or self.link.way or self.gone < len(tx.order) or len(tx.done) < len(self.items):
            return False
        sent = sum(packets for _, _, packets in tx.done) + self.others
        return sent == len(tx.order) and self.long.bytes == self.short.bytes == 0

    async def run(self) -> None:
        """Until every RPC has ended at both hosts. When the card is empty, time passes without
        cycles until something happens at a host."""
        idle = 0
        while not (self.world.quiet() and self.empty()):
            if self.empty():
                self.world.run(self.world.next())
            else:
                busy = False
                for _ in range(STEP):
                    busy |= await self.card.step()
                self.cycle += STEP
                self.world.run(self.world.now() + NS * STEP)
                idle = 0 if busy else idle + STEP
                assert idle < PATIENCE, (
                    f"it hangs: {len(self.items)} frames, {self.card.receive.left}"
                )
            self._travel()
            self._send()

    def check(self) -> None:
        """What left the port is what the engine's own segmentation makes."""
        tx = self.card.transmit
        packets = list(tx.packets)
        for item, have in zip(self.items, tx.done, strict=True):
            compare(item, have, packets)
            assert have[1] == constants()["DONE_SENT"], "the card refuses what a host sends"
        assert not packets, f"{len(packets)} packets came too many"
        assert all(frame.startswith(OTHER) for frame in tx.others)
        assert not self.card.receive.list, "the list is longer than the units"
