# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_classify: the queue of every frame, by hash and by load."""

from __future__ import annotations

import os
import random
import struct
from collections import Counter, deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from hw.tb import hash as rss
from hw.tb import layout
from hw.tb.frames import frames
from hw.tb.stream import Sink, Source, reset

WIDTH = int(os.environ.get("HW_WIDTH", "512"))
FRAMES = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
QUEUES = 16
PATIENCE = 20_000
# Cycles in which the answer about the shortest queue may be behind: a round to count the best anew,
# one to look at all others, four to count.
BEHIND = 2 * QUEUES + 4
TICKS_KEPT = 2


class Bench:
    """The block with its streams; `step` is a cycle, and gives (frame, queue, hash) when a frame is
    complete."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut = dut
        self.source = Source(dut, "s", WIDTH, rng)
        self.sink = Sink(dut, "m", WIDTH, rng, ("meta_valid",))
        self.chosen: deque[tuple[int, int]] = deque()
        self.metas: list[int] = []  # of each frame

    async def step(self) -> tuple[bytes, int, int] | None:
        await RisingEdge(self.dut.clk)
        before = len(self.sink.said)
        frame = self.sink.edge()
        said = frame[1][-1:] if frame else self.sink.said[before:]
        if said and said[0]["meta_valid"]:
            self.chosen.append((int(self.dut.m_queue.value), int(self.dut.m_hash.value)))
            self.metas.append(int(self.dut.m_meta.value))
        self.source.edge()
        return (frame[0], *self.chosen.popleft()) if frame else None

    async def all(self, sent: list[bytes]) -> list[tuple[int, int]]:
        """Send them; (queue, hash) of each."""
        self.source.send(sent)
        found: list[tuple[int, int]] = []
        idle = 0
        while len(found) < len(sent):
            done = await self.step()
            idle = 0 if done else idle + 1
            assert idle < PATIENCE, f"nothing comes after {len(found)} frames"
            if done:
                assert done[0] == sent[len(found)], "frames came in another order"
                found.append(done[1:])
        return found


async def start(dut: Any, table: list[int]) -> None:
    """Reset, and write the indirection table; the table of RPCs is then clear, too."""
    for name in ("least", "tick", "set", "taken", "set_at", "set_queue", "taken_queue"):
        getattr(dut, name).value = 0
    dut.s_valid.value = 0
    dut.on.value = 1
    await reset(dut)
    for at, queue in enumerate(table):
        dut.set.value, dut.set_at.value, dut.set_queue.value = 1, at, queue
        await RisingEdge(dut.clk)
    dut.set.value = 0
    for _ in range(1100):
        await RisingEdge(dut.clk)


def packet(
    src: int, dst: int, sport: int, dport: int, rpc: int, kind: int = 0x10, offset: int = 0
) -> bytes:
    """A frame with the least Homa packet that decodes."""
    common = struct.pack(">HHI3sBBBHHHQ", sport, dport, 0, b"\0\0\0", kind, 0, 6, 0, 0, 0xB97D, rpc)
    body = struct.pack(">IIQHHBBHI", 100_000, 0, 0, 0, 0, 0, 0, 0, offset) + b"x"
    if kind == 0x11:
        body = struct.pack(">IB", 5000, 3)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + 28 + len(body), 0, 0x4000, 64, 146, 0, src, dst)
    return bytes(12) + b"\x08\x00" + ip + common + body


def known_vectors() -> None:
    """Two rows of Microsoft's verification suite."""
    addresses = bytes((66, 9, 149, 187, 161, 142, 100, 80))
    assert rss.toeplitz(addresses) == 0x323E8FC2
    assert rss.toeplitz(addresses + struct.pack(">HH", 2794, 1766)) == 0x51CCC178


@cocotb.test()
async def random_frames(dut: Any) -> None:
    """The hash of every frame, the queue that the table has for it, and what the frame is."""
    known_vectors()
    rng = random.Random(SEED)
    table = [rng.randrange(QUEUES) for _ in range(256)]
    await start(dut, table)
    sent = frames(rng, FRAMES)
    seen: Counter[int] = Counter()
    bench = Bench(dut, rng)
    for frame, (queue, said), meta in zip(sent, await bench.all(sent), bench.metas):
        want, verdict = rss.of_frame(frame)
        if verdict.bad:
            continue
        have = layout.unpack("homa_meta_t", meta)
        for name, value in verdict.said.items():
            assert have[name] == value, f"{name}: {have[name]:x}, not {value:x}: {frame.hex()}"
        assert said == want, f"hash {said:08x}, not {want:08x}: {frame.hex()}"
        assert queue == table[want & 255], f"queue {queue}: {frame.hex()}"
        seen[verdict.said["class_"]] += 1
    cocotb.log.info("%s", dict(seen))
    assert len(seen) == 8 or FRAMES < 5000, f"some classes were not seen: {dict(seen)}"


@cocotb.test()
async def both_directions(dut: Any) -> None:
    """A packet of an RPC and one of its other direction have one hash, RPCs that follow each other
    are spread evenly: 16 of them over 16 queues, exactly."""
    rng = random.Random(SEED)
    await start(dut, [i % QUEUES for i in range(256)])
    bench = Bench(dut, rng)
    for _ in range(20):
        a, b, port = rng.getrandbits(32), rng.getrandbits(32), rng.getrandbits(15)
        client, first = 0x8000 + rng.getrandbits(15), rng.getrandbits(40) << 5
        there = [packet(a, b, client, port, first + 2 * i) for i in range(16)]
        back = [packet(b, a, port, client, first + 2 * i | 1, 0x11) for i in range(16)]
        found = await bench.all(there + back)
        assert found[:16] == found[16:], "the directions of an RPC differ"
        assert sorted(queue for queue, _ in found[:16]) == list(range(QUEUES))


@cocotb.test()
async def by_load(dut: Any) -> None:
    """With `least`, the first packet of a message goes to a queue that had the fewest waiting, all
    others of its RPC after it, until nothing of it has come for two ticks."""
    rng = random.Random(SEED)
    await start(dut, [i % QUEUES for i in range(256)])
    dut.least.value = 1
    bench = Bench(dut, rng)
    queues: dict[int, int] = {}
    tags: dict[int, int] = {}
    waiting = [0] * QUEUES
    moved = 0
    for round_ in range(max(20, FRAMES // 50)):
        # One RPC at a time, so that what waits is known when it is placed.
        rpc = rng.getrandbits(50) << 1
        said = rss.of_rpc(1, 2, 0x8001, 99, rpc)
        if said & 1023 in tags:
            continue
        tags[said & 1023] = said
        await settle(dut)
        ((queue, _),) = await bench.all([packet(1, 2, 0x8001, 99, rpc)])
        assert waiting[queue] == min(waiting), f"queue {queue} of {waiting}"
        waiting[queue] += 1
        moved += queue != said % QUEUES
        queues[rpc] = queue
        some = rng.choices(list(queues), k=rng.randint(0, 6))
        sent = [packet(1, 2, 0x8001, 99, r, offset=rng.choice((0, 1000))) for r in some]
        for r, (at, _) in zip(some, await bench.all(sent)):
            assert at == queues[r], f"RPC {r} went from {queues[r]} to {at} in round {round_}"
            waiting[at] += 1
        for _ in range(rng.randint(0, 8)):
            await take(dut, waiting, rng.randrange(QUEUES))
    assert moved > 5, "load never chose another queue than the hash"
    await forgets(dut, bench, queues)


@cocotb.test()
async def off(dut: Any) -> None:
    """Switched off, all go to queue 0 and none is placed by load, and the hash is said as before."""
    rng = random.Random(SEED)
    await start(dut, [1 + i % (QUEUES - 1) for i in range(256)])
    dut.on.value, dut.least.value = 0, 1
    sent = frames(rng, 50) + [packet(1, 2, 0x8001, 99, 2 * i) for i in range(50)]
    for frame, (queue, said) in zip(sent, await Bench(dut, rng).all(sent)):
        want, verdict = rss.of_frame(frame)
        assert queue == 0
        assert verdict.bad or said == want


async def settle(dut: Any) -> None:
    for _ in range(BEHIND):
        await RisingEdge(dut.clk)


async def take(dut: Any, waiting: list[int], queue: int) -> None:
    """The host takes a packet, or says so though there is none."""
    dut.taken.value, dut.taken_queue.value = 1, queue
    await RisingEdge(dut.clk)
    dut.taken.value = 0
    waiting[queue] = max(0, waiting[queue] - 1)


async def forgets(dut: Any, bench: Bench, queues: dict[int, int]) -> None:
    """Entries live for two ticks after their last packet, and no longer."""
    rpc = next(iter(queues))
    other = next(
        r
        for r in range(2, 1 << 20, 2)
        if (rss.of_rpc(1, 2, 0x8001, 99, r) ^ rss.of_rpc(1, 2, 0x8001, 99, rpc)) & 1023 == 0
    )
    by_hash = rss.of_rpc(1, 2, 0x8001, 99, other) % QUEUES
    await bench.all([packet(1, 2, 0x8001, 99, rpc)])
    for tick in range(TICKS_KEPT + 1):
        # The place is another's: by the table, and nothing is kept.
        ((queue, _),) = await bench.all([packet(1, 2, 0x8001, 99, other, offset=1000)])
        assert queue == by_hash, f"an RPC lost its place after {tick} ticks"
        dut.tick.value = 1
        await RisingEdge(dut.clk)
        dut.tick.value = 0
    ((queue, _),) = await bench.all([packet(1, 2, 0x8001, 99, other, offset=1000)])
    ((again, _),) = await bench.all([packet(1, 2, 0x8001, 99, rpc, offset=1000)])
    assert queue == by_hash
    assert again == rss.of_rpc(1, 2, 0x8001, 99, rpc) % QUEUES, "the place was never given away"
