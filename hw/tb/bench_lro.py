# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What large receive is tested with: frames go in, and whatever leaves is taken apart again."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Any

from cocotb.triggers import RisingEdge

from hw.tb import units
from hw.tb.layout import lro_events
from hw.tb.reference import Verdict, judge
from hw.tb.stream import Pauses, Sink, Source

PATIENCE = 150_000
# Pages of the block's memory, all of which are free when nothing is inside.
PAGES = 1024


class Bench:
    """The block, its streams, and the host that takes the list when it likes. Whatever leaves is
    taken apart and compared with what was sent."""

    def __init__(
        self,
        dut: Any,
        rng: random.Random,
        width: int,
        steady: bool = False,
        side: Sequence[str] = (),
    ) -> None:
        self.dut = dut
        self.source = Source(dut, "s", width, rng)
        self.sink = Sink(dut, "m", width, rng, ("pieces", "seg", "bad", *side))
        self.host = Pauses(rng)
        self.list: deque[tuple[int, int, int]] = deque()
        self.taking = False
        self.waiting: dict[object, deque[tuple[bytes, Verdict]]] = defaultdict(deque)
        self.left = 0
        self.coming: deque[Verdict] = deque()  # what the block has not begun to take, in order
        self.units: list[list[tuple[bytes, Verdict]]] = []
        # Frames whose part of the list has not been taken yet, and those behind them.
        self.behind: deque[tuple[bytes, list[dict[str, int]]]] = deque()
        self.limit = int(dut.limit.value)
        self.free = dut.store.number
        self.events: Counter[str] = Counter()
        self.names = {1 << at: name for name, at in lro_events().items()}
        if steady:
            for end in (self.source.pauses, self.sink.pauses, self.host):
                end.ready = lambda: True  # type: ignore[method-assign]
        dut.l_ready.value = 0

    def send(self, sent: list[bytes]) -> None:
        for frame in sent:
            self.expect(frame)
        self.source.send(sent)

    def expect(self, frame: bytes) -> None:
        """This is sent next."""
        verdict = judge(frame)
        self.waiting[units.rpc_of(verdict)].append((frame, verdict))
        self.coming.append(verdict)
        self.left += 1

    async def step(self) -> bool:
        """A cycle; did anything leave?"""
        await RisingEdge(self.dut.clk)
        return self.edge()

    def edge(self) -> bool:
        """At a rising edge; did anything leave?"""
        happens = int(self.dut.events.value)
        while happens:
            lowest = happens & -happens
            self.events[self.names[lowest]] += 1
            happens ^= lowest
        if self.taking and self.dut.l_valid.value:
            said = self.dut.l_offset, self.dut.l_length, self.dut.l_last
            self.list.append(tuple(int(signal.value) for signal in said))  # type: ignore[arg-type]
        frame = self.sink.edge()
        self.source.edge()
        on = self.host.ready()
        if on != self.taking:
            self.dut.l_ready.value = int(on)
            self.taking = on
        if frame:
            self.behind.append(frame)
        while self.behind and self._listed(self.behind[0][1][0]["pieces"]):
            self.check(*self.behind.popleft())
        return bool(frame)

    def _listed(self, count: int) -> bool:
        return count == 1 or len(self.list) >= count

    def check(self, frame: bytes, said: list[dict[str, int]]) -> None:
        count = said[0]["pieces"]
        assert all(beat["pieces"] == count for beat in said), "its number of packets changes"
        if count > 1:
            self._check_unit(frame, count, said)
            return
        sent, verdict = self._next(frame)
        long = len(sent) > units.LONGEST
        assert frame == sent[: units.LONGEST], f"{frame.hex()} was {sent.hex()}"
        assert said[-1]["bad"] == (verdict.bad or long), f"bad is {said[-1]['bad']}: {sent.hex()}"
        self.units.append([(sent, verdict)])

    def _next(self, frame: bytes) -> tuple[bytes, Verdict]:
        """What its RPC sent first of what has not left."""
        queue = self.waiting[units.rpc_of(judge(frame))]
        if not queue or not queue[0][0].startswith(frame):
            # Cut at LONGEST, it has another RPC, or none.
            queue = next((q for q in self.waiting.values() if q and len(q[0][0]) > 9216), queue)
        assert queue, f"nothing such was sent, or it was taken before: {frame[:200].hex()}"
        self.left -= 1
        return queue.popleft()

    def _check_unit(self, frame: bytes, count: int, said: list[dict[str, int]]) -> None:
        assert not said[-1]["bad"]
        assert count <= units.MOST
        assert len(frame) <= self.limit, f"a unit of {len(frame)} bytes"
        entries = [self.list.popleft() for _ in range(count)]
        assert [last for _, _, last in entries] == [0] * (count - 1) + [1]
        packets = []
        for offset, length, _ in entries:
            queue = self.waiting[self._owner(frame)]
            assert queue, f"nothing more was sent of this RPC: {frame[:200].hex()}"
            packets.append(queue.popleft())
            self.left -= 1
            homa = packets[-1][1].packet
            where = f"{offset}, {length}: {packets[-1][0][:200].hex()}"
            assert int.from_bytes(homa[units.OFFSET_AT : units.HEADER], "big") == offset, where
            assert len(homa) == length + units.HEADER, where
        alike = units.header(*packets[0])
        for packet in packets:
            assert units.merges(*packet), f"this may not be merged: {packet[0][:200].hex()}"
            assert units.header(*packet) == alike, f"the headers differ: {packet[0][:200].hex()}"
        want = units.expect_unit(packets)
        assert frame == want, f"{frame.hex()}\nnot {want.hex()}"
        sizes = [length for _, length, _ in entries]
        assert sizes[:-1] == [said[0]["seg"]] * (count - 1) and sizes[-1] <= sizes[0], f"{sizes}"
        self.units.append(packets)

    @staticmethod
    def _owner(frame: bytes) -> tuple[object, ...]:
        """Of a unit: its IP length is that of its first packet, so that it is one with more
        behind it."""
        return units.rpc_of(judge(frame))

    async def finish(self) -> None:
        """Until all has left."""
        idle = 0
        while self.left:
            idle = 0 if await self.step() else idle + 1
            assert idle < PATIENCE, f"it hangs with {self.left} frames inside"
        for _ in range(200):
            assert not await self.step(), "something left that was not sent"
        assert not self.behind, "the list is too short"
        lost = PAGES - int(self.free.value)
        assert not lost, f"{lost} pages of the memory are lost"
        assert not self.list, "the list is longer than the units"

    def counts(self) -> Counter[str]:
        """What the block said that happened; it must agree with itself."""
        found = self.events
        assert found["FRAME"] == found["PASSED"] + found["MERGED"] + found["OPENED"]
        reasons = ("ENDED", "FULL", "URGENT", "DIFFERS", "TIMED", "EVICTED")
        assert found["OPENED"] == sum(found[name] for name in reasons), f"{dict(found)}"
        assert len(self.units) == found["PASSED"] + found["OPENED"], f"{dict(found)}"
        assert sum(len(unit) for unit in self.units) == found["FRAME"]
        return found
