# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_grant_queue beside a sorted list: what is in its cells after every operation, and who is the
best of those whose peer has no slot."""

from __future__ import annotations

import bisect
import os
import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from hw.tb.stream import reset

DEPTH = int(os.environ.get("HW_DEPTH", "64"))
OPERATIONS = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
INPUTS = ("op_valid", "op_insert", "op_key", "op_birth", "op_id", "op_peer", "op_blocked")
MARK = ("mark_valid", "mark_peer", "mark_blocked")
# Cycles after the one in which an operation is taken or a mark comes.
CYCLES = 2
KNOWN = 5
PEERS = 8

Entry = tuple[int, int, int, int]  # bytes to come, birth, id, peer


class Bench:
    """The block, and the list that it should have."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.list: list[Entry] = []
        self.blocked: set[int] = set()
        self.free = list(range(2 * DEPTH))

    def _set(self, names: tuple[str, ...], values: tuple[int, ...]) -> None:
        for name, value in zip(names, values, strict=True):
            getattr(self.dut, name).value = int(value)

    async def step(self) -> None:
        await RisingEdge(self.dut.clk)

    async def operate(self, insert: bool, entry: Entry) -> None:
        """The block takes it at once unless an operation or a mark is under way."""
        full = len(self.list) == DEPTH
        key, birth, ident, peer = entry
        self._set(INPUTS, (1, insert, key, birth, ident, peer, peer in self.blocked))
        await self.step()
        for _ in range(CYCLES):
            if self.dut.op_ready.value:
                break
            await self.step()
        else:
            raise AssertionError("it takes no operation")
        self.dut.op_valid.value = 0
        if insert and not full:
            bisect.insort(self.list, entry)
            self.free.remove(ident)
        elif not insert:
            self.list.remove(entry)
            self.free.append(ident)

    async def mark(self, peer: int, blocked: bool) -> None:
        self._set(MARK, (1, peer, blocked))
        await self.step()
        self.dut.mark_valid.value = 0
        (self.blocked.add if blocked else self.blocked.discard)(peer)

    def random_entry(self) -> Entry:
        rng = self.rng
        key = rng.choice((rng.randrange(1 << 20), rng.randrange(4)))
        birth = rng.choice((rng.randrange(1 << 20), rng.randrange(4)))
        return key, birth, rng.choice(self.free), rng.randrange(PEERS)

    async def random(self) -> None:
        rng = self.rng
        what = rng.random()
        if what < 0.2:
            await self.mark(rng.randrange(PEERS), rng.random() < 0.7)
        elif self.list and what < 0.6:
            await self.operate(False, rng.choice((self.list[0], rng.choice(self.list))))
        else:
            await self.operate(True, self.random_entry())

    async def best(self) -> None:
        """Who is best is said when it is known, and is true then."""
        want = next((e for e in self.list if e[3] not in self.blocked), None)
        dut = self.dut
        for _ in range(KNOWN):
            await self.step()
            if dut.best_known.value:
                break
        else:
            raise AssertionError("it never knows who is best")
        assert dut.full.value == (len(self.list) == DEPTH)
        assert dut.best_valid.value == (want is not None)
        if want:
            assert int(dut.best_id.value) == want[2], f"{int(dut.best_id.value)}, not {want}"


async def start(dut: Any, rng: random.Random) -> Bench:
    for name in (*INPUTS, *MARK):
        getattr(dut, name).value = 0
    await reset(dut)
    return Bench(dut, rng)


async def empty(it: Bench) -> None:
    """Taken out in order: with no peer blocked, each best is the next of the list."""
    for peer in range(PEERS):
        await it.mark(peer, False)
    while it.list:
        await it.best()
        await it.operate(False, it.list[0])
    await it.best()


@cocotb.test()
async def random_operations(dut: Any) -> None:
    """Entries come and go, peers get slots and lose them, at any distance from each other."""
    rng = random.Random(SEED)
    cocotb.log.info("seed %d", SEED)
    it = await start(dut, rng)
    fullest = 0
    for number in range(OPERATIONS):
        await it.random()
        fullest = max(fullest, len(it.list))
        for _ in range(rng.choice((0, 0, 0, 1, 4))):
            await it.step()
        if rng.random() < 0.5:
            await it.best()
        if number % 500 == 499:
            while len(it.list) < DEPTH and rng.random() < 0.999:
                await it.operate(True, it.random_entry())
        if number % 2000 == 1999:
            await empty(it)
    cocotb.log.info("there were up to %d in it", fullest)


@cocotb.test()
async def full(dut: Any) -> None:
    """One more than it can hold has no effect; then there is room for one again."""
    rng = random.Random(SEED)
    it = await start(dut, rng)
    while len(it.list) < DEPTH:
        await it.operate(True, it.random_entry())
    for _ in range(10):
        await it.operate(True, it.random_entry())
        await it.best()
        await it.operate(False, rng.choice(it.list))
        await it.operate(True, it.random_entry())
    await empty(it)


@cocotb.test()
async def equal(dut: Any) -> None:
    """Of those with as many bytes to come the first to have come is first, and of those the one
    with the smallest number; a mark in the cycle in which an entry moves counts."""
    it = await start(dut, random.Random(SEED))
    for ident, birth in ((7, 3), (6, 4), (5, 2), (4, 3), (3, 3)):
        await it.operate(True, (1000, birth, ident, ident))
    await empty(it)
    for gap in range(4):
        await it.operate(True, (10, 1, 1, 1))
        for _ in range(gap):
            await it.step()
        await it.mark(1, True)
        await it.best()
        await it.mark(1, False)
        await it.best()
        await it.operate(False, (10, 1, 1, 1))
        await it.best()


@cocotb.test()
async def reset_inside(dut: Any) -> None:
    """A reset in the middle of an operation: it is as new."""
    rng = random.Random(SEED)
    for gap in range(5):
        it = await start(dut, rng)
        await it.best()
        for _ in range(rng.randrange(1, 20)):
            await it.operate(True, it.random_entry())
        for _ in range(gap):
            await it.step()
