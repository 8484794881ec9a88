# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What large segmentation is tested with: super-frames go in, and each packet that leaves is
compared with that of the engine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from cocotb.triggers import RisingEdge

from hw.tb import supers
from hw.tb.layout import constants
from hw.tb.stream import Pauses, Sink, Source
from hw.tb.supers import Super

# The other input's frames begin so; the packets of super-frames never do.
OTHER = b"\xa5OTHER"


class Bench:
    """The block, its streams, and the host that takes completions when it likes."""

    def __init__(self, dut: Any, rng: random.Random, width: int) -> None:
        self.dut = dut
        self.long = Source(dut, "s", width, rng)
        self.short = Source(dut, "b", width, rng)
        self.sink = Sink(dut, "m", width, rng)
        self.host = Pauses(rng)
        self.packets: list[bytes] = []
        self.others: list[bytes] = []
        self.order: list[bool] = []
        self.done: list[tuple[int, int, int]] = []
        self.taking = False
        self.waited = 0
        dut.c_ready.value = 0

    def feed(self, items: list[Super]) -> None:
        """These on the first input, each with its descriptor beside its first beat."""

        def described() -> Iterator[bytes]:
            for item in items:
                self.dut.s_split.value = int(item.split)
                self.dut.s_seg.value = item.seg
                self.dut.s_tag.value = item.tag
                yield item.frame

        self.long.send(described())

    async def step(self) -> bool:
        """A cycle; did anything happen?"""
        await RisingEdge(self.dut.clk)
        return self.edge()

    def edge(self) -> bool:
        """At a rising edge; did anything happen?"""
        busy = False
        offered = bool(self.dut.c_valid.value)
        self.waited += offered and not self.taking
        if self.taking and offered:
            said = self.dut.c_tag, self.dut.c_status, self.dut.c_packets
            self.done.append(tuple(int(signal.value) for signal in said))  # type: ignore[arg-type]
            busy = True
        frame = self.sink.edge()
        if frame:
            other = frame[0].startswith(OTHER)
            (self.others if other else self.packets).append(frame[0])
            self.order.append(other)
            busy = True
        self.long.edge()
        self.short.edge()
        on = self.host.ready()
        if on != self.taking:
            self.dut.c_ready.value = int(on)
            self.taking = on
        return busy


def compare(item: Super, have: tuple[int, int, int], packets: list[bytes]) -> str:
    """Take this frame's packets off `packets` and compare; what it was."""
    c = constants()
    tag, status, count = have
    want = supers.expect(item)
    assert tag == item.tag, f"the completion of {tag} came, not of {item.tag}"
    where = f"segments of {item.seg}, {item.frame[:300].hex()} ({len(item.frame)} bytes)"
    if want.status == c["DONE_CUT"] and status == c["DONE_REFUSED"]:
        # Its header is both wrong and cut short: either is true.
        assert count == 0, where
    else:
        assert status == want.status, f"status {status}, not {want.status}: {where}"
    if status == c["DONE_SENT"]:
        assert count == len(want.packets), f"{count} packets, not {len(want.packets)}: {where}"
    for number in range(count):
        packet = packets.pop(0)
        right = want.packets[number]
        assert packet == right, (
            f"packet {number} is {packet[:160].hex()} ({len(packet)}),\n"
            f"not {right[:160].hex()} ({len(right)}): {where}"
        )
    return f"status {status}" if item.split else f"passed, status {status}"
