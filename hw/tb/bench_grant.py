# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_grant beside the engine's scheduler: each event goes to both, and their grants are compared
before the next one comes."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from cocotb.triggers import RisingEdge

from hw.tb import codec
from hw.tb.stream import Pauses, reset

ANNOUNCE, DATA, END = range(3)
LENGTH_BITS = 20
LONGEST = (1 << LENGTH_BITS) - 1
IDS = 2048
PEERS = 1024
COUNTERS = ("twice", "unknown", "improper", "excess", "crowded")
INPUTS = ("s_valid", "s_event", "s_id", "s_peer", "s_bytes", "s_unscheduled", "g_ready")
# An event is done after so many cycles, or something hangs. A grant of RTTbytes is counted in steps.
PATIENCE = 2000

Grant = tuple[int, int, int]  # id, offset, level


@dataclass(frozen=True)
class Settings:
    """`levels`: priorities in all, and for unscheduled bytes."""

    rtt: int = 9328
    seg: int = 1424
    overcommit: int = 7
    levels: tuple[int, int] = (8, 1)


@dataclass
class Message:
    """What a sender knows of its message."""

    peer: int
    length: int
    granted: int
    received: int = 0


class Engine:
    """The engine's grants (hw_grant.h)."""

    def __init__(self, settings: Settings) -> None:
        self.ffi, self.lib = codec.library()
        out = self.ffi.new("struct hw_grant_settings *")
        s = settings
        self.grants = self.lib.hw_grants_new(s.rtt, s.seg, s.overcommit, *s.levels, out)
        self.out = [self.ffi.new("uint32_t *") for _ in range(3)]
        fields = [(s.rtt, LENGTH_BITS), (s.seg, 14), (out.step, 14), (s.overcommit, 4)]
        fields.append((out.levels, 4))
        fields += [(min(out.cutoffs[i], LONGEST), LENGTH_BITS) for i in range(7, 0, -1)]
        self.step = int(out.step)
        self.cutoffs = [c for c in map(int, out.cutoffs) if 0 < c < LONGEST]
        self.packed = 0
        for value, bits in fields:
            assert value < 1 << bits
            self.packed = self.packed << bits | value

    def take(self) -> list[Grant]:
        found = []
        while self.lib.hw_grants_next(self.grants, *self.out):
            found.append(tuple(int(value[0]) for value in self.out))
        return found  # type: ignore[return-value]

    def free(self) -> None:
        self.lib.hw_grants_free(self.grants)


class Bench:
    """The block and the engine. `lags` has, of each event with a grant, its kind and the cycles from
    the one in which it was taken to that of the last grant."""

    def __init__(self, dut: Any, rng: random.Random, depth: int) -> None:
        self.dut, self.rng, self.depth = dut, rng, depth
        self.pauses = Pauses(rng)
        self.messages: dict[int, Message] = {}
        self.want = dict.fromkeys(COUNTERS, 0)
        self.seen = dict.fromkeys(COUNTERS, 0)
        self.lags: list[tuple[int, int, int]] = []
        self.cycles: list[int] = []
        self.grants = self.events = 0
        self.steady = False
        self.engine: Engine | None = None

    async def start(self, settings: Settings) -> None:
        """Reset both; with these settings from now on."""
        if self.engine:
            self.engine.free()
        self.engine = Engine(settings)
        self.settings = settings
        for name in INPUTS:
            getattr(self.dut, name).value = 0
        self.dut.settings.value = self.engine.packed
        self.messages.clear()
        await reset(self.dut)
        for _ in range(IDS + 8):
            await RisingEdge(self.dut.clk)
            if self.dut.s_ready.value:
                return
        raise AssertionError("it is not ready after a reset")

    def _expect(
        self, event: int, ident: int, peer: int, size: int, unscheduled: int
    ) -> list[Grant]:
        """What the engine says of an event, if it comes so far."""
        assert self.engine
        lib, grants = self.engine.lib, self.engine.grants
        message = self.messages.get(ident)
        if event == ANNOUNCE:
            if message:
                self.want["twice"] += 1
            elif not 0 < size <= LONGEST:
                self.want["improper"] += 1
            elif unscheduled < size and lib.hw_grants_waiting(grants) == self.depth:
                self.want["crowded"] += 1
            else:
                self.messages[ident] = Message(peer, size, min(unscheduled, size))
                lib.hw_grants_announce(grants, ident, peer, size, unscheduled)
        elif not message:
            self.want["unknown"] += 1
        elif event == END:
            del self.messages[ident]
            lib.hw_grants_end(grants, ident)
        else:
            fresh = min(size, message.length - message.received)
            self.want["excess"] += size > fresh
            message.received += fresh
            if message.received == message.length:
                del self.messages[ident]
            lib.hw_grants_data(grants, ident, fresh)
        found = self.engine.take()
        for ident, offset, _ in found:
            self.messages[ident].granted = offset
        return found

    async def event(
        self, event: int, ident: int, peer: int = 0, size: int = 0, unscheduled: int = 0
    ) -> list[Grant]:
        """Both have it; their grants."""
        dut = self.dut
        want = self._expect(event, ident, peer, size, unscheduled)
        for name, value in zip(INPUTS, (1, event, ident, peer, size, unscheduled), strict=False):
            getattr(dut, name).value = value
        found: list[Grant] = []
        last = cycle = 0
        ready = False
        for cycle in range(PATIENCE):
            await RisingEdge(dut.clk)
            if not cycle:
                dut.s_valid.value = 0
            elif dut.s_ready.value:
                break
            for name in COUNTERS:
                if getattr(dut, name).value:
                    self.seen[name] += 1
            if dut.g_valid.value and ready:
                found.append((int(dut.g_id.value), int(dut.g_offset.value), int(dut.g_level.value)))
                last = cycle
            now = self.steady or self.pauses.ready()
            if now != ready:
                dut.g_ready.value = int(now)
                ready = now
        else:
            raise AssertionError("it hangs")
        dut.g_ready.value = 0
        what = f"event {self.events}: {(event, ident, peer, size, unscheduled)}, {self.settings}"
        assert found == want, f"{what}: {found}, not {want}"
        assert self.seen == self.want, f"{what}: {self.seen}, not {self.want}"
        assert self.engine
        granting = self.engine.lib.hw_grants_granting(self.engine.grants)
        assert int(dut.granting.value) == granting, f"{what}: {int(dut.granting.value)}"
        self.events += 1
        self.grants += len(found)
        if found and self.steady:
            self.lags.append((event, len({grant[0] for grant in found}), last))
        self.cycles.append(cycle)
        return found
