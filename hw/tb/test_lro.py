# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_lro: what leaves can be taken apart into what came, RPC by RPC in order, and is merged as it
should be."""

from __future__ import annotations

import itertools
import os
import random
import struct
from collections import Counter
from typing import Any

import cocotb

from hw.registers import load
from hw.tb import hash as rss
from hw.tb import units
from hw.tb.bench_lro import Bench
from hw.tb.reference import judge
from hw.tb.stream import Beat, beats, reset
from hw.tb.units import Rpc

WIDTH = int(os.environ.get("HW_WIDTH", "512"))
FRAMES = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
LONG = 65_535
# Cycles from the last beat of a frame that passes to its first one, the parser's eight, at 64 bits
# seven, included.
ADDED = 20 if WIDTH == 64 else 21


async def start(dut: Any, limit: int = LONG, patience: int = 3000, on: int = 1) -> None:
    for name in ("s_valid", "m_ready", "l_ready"):
        getattr(dut, name).value = 0
    dut.limit.value, dut.patience.value, dut.on.value = limit, patience, on
    await reset(dut)


async def all_of(
    dut: Any, rng: random.Random, sent: list[bytes], steady: bool = True, **settings: int
) -> tuple[Bench, Counter[str]]:
    """After a reset, all of these; what the block counted."""
    await start(dut, **settings)
    bench = Bench(dut, rng, WIDTH, steady)
    bench.send(sent)
    await bench.finish()
    return bench, bench.counts()


@cocotb.test()
async def random_frames(dut: Any) -> None:
    """Messages of many RPCs at once, everything odd between, pauses everywhere."""
    rng = random.Random(SEED)
    total: Counter[str] = Counter()
    number = max(300, FRAMES // 10)
    for limit, patience in ((LONG, 3000), (LONG, 30_000), (9000, 300)):
        sent = units.traffic(rng, number // 3)
        _, counts = await all_of(dut, rng, sent, False, limit=limit, patience=patience)
        bad = sum(judge(frame).bad for frame in sent)
        assert counts["BAD"] == bad
        total += counts
    cocotb.log.info("%s", dict(total))
    reasons = ("ENDED", "FULL", "URGENT", "DIFFERS", "TIMED", "EVICTED")
    missing = [name for name in ("MERGED", *reasons) if not total[name]]
    assert not missing or number < 1000, f"nothing was counted of {missing}"


@cocotb.test()
async def interleaved(dut: Any) -> None:
    """Sixteen RPCs, a packet of each in turn: sixteen units with all packets. And once more: the
    slots are free again."""
    rng = random.Random(SEED)
    await start(dut, patience=60_000)
    bench = Bench(dut, rng, WIDTH, steady=True)
    for first in (0, 16):
        rpcs = [
            Rpc(first + i, 4000 + 100 * (i % 3), 500, v6=i % 4 == 1, vlan=i % 4 == 2)
            for i in range(16)
        ]
        bench.send([r.data(rng) for _ in range(9) for r in rpcs if r.sent < r.length])
        await bench.finish()
    assert sorted(map(len, bench.units)) == sorted(2 * [8 + (i % 3 > 0) for i in range(16)])
    assert bench.counts()["ENDED"] == 32


@cocotb.test()
async def limits(dut: Any) -> None:
    """Units end at the limit of bytes, exactly, and at 64 packets."""
    rng = random.Random(SEED)
    head = 14 + 20 + 56
    for more, first in ((-1, 3), (0, 4)):
        rpc = Rpc(1, 8001, 1000)
        sent = [rpc.data(rng) for _ in range(8)]
        limit = head + 1000 + 3 * 1004 + more
        bench, counts = await all_of(dut, rng, sent, limit=limit)
        assert len(bench.units[0]) == first, f"{len(bench.units[0])} packets in {limit} bytes"
        assert counts["FULL"] > 0
    rpc = Rpc(1, 100_000, 10)
    bench, _ = await all_of(dut, rng, [rpc.data(rng) for _ in range(130)])
    assert [len(unit) for unit in bench.units] == [64, 64, 2]
    rpc = Rpc(1, 200_000, 1400)
    bench, _ = await all_of(dut, rng, [rpc.data(rng) for _ in range(47)], patience=60_000)
    most = 1 + (LONG - head - 1400) // 1404
    assert [len(unit) for unit in bench.units] == [most, 47 - most]


@cocotb.test()
async def passes_at_once(dut: Any) -> None:
    """Grants and messages of one packet wait for nothing, though units of others are open; a grant
    of an RPC pushes its unit out and follows it."""
    rng = random.Random(SEED)
    await start(dut, patience=60_000)
    bench = Bench(dut, rng, WIDTH, steady=True)
    others, rpc, whole = Rpc(1, 10_000, 500), Rpc(2, 10_000, 500), Rpc(3, 200, 200)
    for frame in (rpc.grant(rng), whole.data(rng)):
        bench.send([others.data(rng), others.data(rng), frame])
        for _ in range(800):
            await bench.step()
        assert bench.units[-1][0][0] == frame, "it waits"
    assert len(bench.units) == 2
    bench.send([others.grant(rng)])
    for _ in range(3000):
        await bench.step()
    assert [len(unit) for unit in bench.units] == [1, 1, 4, 1]
    assert bench.counts()["URGENT"] == 1


@cocotb.test()
async def latency(dut: Any) -> None:
    """Nothing waits: a frame that passes leaves so many cycles after its end, whatever it is."""
    rng = random.Random(SEED)
    await start(dut)
    rpc = Rpc(1, 3000, 1000)
    whole, other = Rpc(2, 200, 200, v6=True), bytes(12) + b"\x88\xb5" + rng.randbytes(46)
    sent = {"grant": rpc.grant(rng), "whole": whole.data(rng), "other": other}
    found = {name: await passing(dut, rng, frame) for name, frame in sent.items()}
    cocotb.log.info("cycles %s", found)
    assert all(cycles <= ADDED for cycles in found.values()), f"{found}, not {ADDED}"


async def passing(dut: Any, rng: random.Random, frame: bytes) -> int:
    """Cycles from the frame's last beat to the first one that leaves."""
    bench = Bench(dut, rng, WIDTH, steady=True)
    taken: list[int] = []
    cycle = 0
    bench.source.begun = lambda: taken.append(cycle)
    bench.send([frame])
    while not bench.sink.bytes:
        await bench.step()
        cycle += 1
        assert cycle < 1000, "nothing leaves"
    await bench.finish()
    return cycle - taken[0] - 1 - -(-len(frame) // (WIDTH // 8))


class HashBench(Bench):
    """Frames that pass have the hash that is theirs."""

    def check(self, frame: bytes, said: list[dict[str, int]]) -> None:
        super().check(frame, said)
        want, _ = rss.of_frame(frame)
        have = [beat["hash"] for beat in said]
        assert have == [want] * len(said), f"hash {have}, not {want}: {frame.hex()}"


@cocotb.test()
async def hash_of_short_frames(dut: Any) -> None:
    """Short frames of TCP right behind each other, which are one or two beats at 512 bits, and a host
    that takes beats when it likes and more slowly than they come: each frame has its own hash."""
    rng = random.Random(SEED)
    await start(dut)
    bench = HashBench(dut, rng, WIDTH, steady=True, side=("hash",))
    bench.sink.pauses.ready = lambda: rng.random() < 0.2  # type: ignore[method-assign]
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 40, 0, 0x4000, 64, 6, 0, 1, 2)
    sent = []
    for _ in range(400):
        ports = rng.getrandbits(32).to_bytes(4, "big")
        tcp = ports + bytes(8) + struct.pack(">BBHHH", 0x50, 0x10, 100, 0, 0)
        sent.append(bytes(12) + b"\x08\x00" + ip + tcp + bytes(rng.choice((6, 6, 70))))
    bench.send(sent)
    await bench.finish()
    assert bench.counts()["PASSED"] == len(sent)


@cocotb.test()
async def passers_do_not_starve_units(dut: Any) -> None:
    """A host that takes frames more slowly than grants of others and other protocols come: a unit
    that is closed leaves after so many of them. All frames of an RPC keep their order, and so do
    those without one."""
    rng = random.Random(SEED)
    await start(dut, patience=100)
    bench = Bench(dut, rng, WIDTH, steady=True)
    cycles = itertools.count()
    bench.sink.pauses.ready = lambda: next(cycles) % 16 == 0  # type: ignore[method-assign]
    rpcs, other = [Rpc(i, 10_000, 100) for i in range(6)], Rpc(6, 10_000, 100)
    sent = []
    for rpc in rpcs:
        sent += [rpc.data(rng), rpc.data(rng)]
        for _ in range(100):
            # Ethernet that is not IP has no RPC.
            sent += [other.grant(rng), bytes(12) + b"\x88\xb5" + rng.randbytes(46)]
    bench.send(sent)
    await bench.finish()
    places = [at for at, unit in enumerate(bench.units) if len(unit) == 2]
    assert len(places) == 6, f"{len(places)} units"
    for number, place in enumerate(places):
        assert place < 201 * number + 150, f"unit {number} left as frame {place}"


@cocotb.test()
async def time_limit(dut: Any) -> None:
    """A unit leaves when nothing more came in time, and not much earlier."""
    rng = random.Random(SEED)
    await start(dut, patience=1000)
    bench = Bench(dut, rng, WIDTH, steady=True)
    rpc = Rpc(1, 10_000, 100)
    bench.send([rpc.data(rng), rpc.data(rng)])
    cycles = 0
    while not bench.units:
        await bench.step()
        cycles += 1
        assert cycles < 1200, "it waits for longer"
    assert cycles > 950, f"it waited {cycles} cycles"
    assert bench.counts()["TIMED"] == 1


@cocotb.test()
async def time_limit_of_another(dut: Any) -> None:
    """A unit is as old as it may be, just when a packet ends it. The next one in its place gets all
    its time."""
    rng = random.Random(SEED)
    patience = 200
    # The block finds each slot's age once in 16 cycles, and looks at a packet for some cycles.
    for wait in range(patience - 24, patience + 24):
        await start(dut, patience=patience)
        bench = Bench(dut, rng, WIDTH, steady=True)
        first, second = Rpc(1, 200, 100), Rpc(2, 10_000, 100)
        bench.send([first.data(rng)])
        for _ in range(wait):
            await bench.step()
        bench.send([first.data(rng)])
        await bench.finish()
        bench.send([second.data(rng), second.data(rng)])
        await bench.finish()
        assert len(bench.units[-1]) == 2, f"after {wait} cycles it had no time"


@cocotb.test()
async def every_byte(dut: Any) -> None:
    """A packet that differs from the one before it in one byte of its headers merges if and only if
    the byte is one that may differ: checked for each byte."""
    rng = random.Random(SEED)
    for v6, udp in ((False, False), (False, True), (True, False)):
        sent = []
        for at in range(14 + (40 if v6 else 20) + (8 if udp else 0) + 56):
            rpc = Rpc(at + 1, 100_000, 64, v6, udp)
            first, second = rpc.data(rng), bytearray(rpc.data(rng))
            second[at] ^= 1 << rng.randrange(8)
            sent += [first, bytes(second)]
        bench, _ = await all_of(dut, rng, sent, patience=2000)
        merged = {unit[0][0] for unit in bench.units if len(unit) == 2}
        for first, second in zip(sent[::2], sent[1::2]):
            one, two = judge(first), judge(second)
            alike = units.merges(second, two) and units.header(first, one) == units.header(
                second, two
            )
            shorter = len(two.packet) <= len(one.packet)
            assert (first in merged) == (alike and shorter), f"{first.hex()} {second.hex()}"


@cocotb.test()
async def off(dut: Any) -> None:
    """Switched off, all frames pass as they came and in the order in which they came."""
    rng = random.Random(SEED)
    sent = units.traffic(rng, 60)
    bench, counts = await all_of(dut, rng, sent, on=0)
    assert [unit[0][0] for unit in bench.units] == sent
    assert counts["PASSED"] == len(sent)


@cocotb.test()
async def memory(dut: Any) -> None:
    """A host that takes nothing: the memory fills, the input waits, nothing is lost. A frame longer
    than 9,216 bytes is cut there, and counted."""
    rng = random.Random(SEED)
    await start(dut, patience=60_000)
    bench = Bench(dut, rng, WIDTH, steady=True)
    rpcs = [Rpc(i, 60_000, 9000) for i in range(20)]
    sent = [rpc.data(rng) for _ in range(6) for rpc in rpcs[:8]]
    sent += [rpc.data(rng, 100) for rpc in rpcs]
    sent.insert(20, rpcs[9].data(rng, 9216) + bytes(3000))
    bench.send(sent)
    bench.sink.pauses.ready = lambda: False  # type: ignore[method-assign]
    for _ in range(60 * 9000 * 8 // WIDTH):
        await bench.step()
    assert not bench.units and not bench.source.done
    bench.sink.pauses.ready = lambda: True  # type: ignore[method-assign]
    await bench.finish()
    counts = bench.counts()
    assert counts["LONG"] == 1 and counts["EVICTED"] > 0, f"{dict(counts)}"


@cocotb.test()
async def pages_come_back(dut: Any) -> None:
    """More frames than there are pages, alone and in units: each page is used again."""
    rng = random.Random(SEED)
    await start(dut)
    bench = Bench(dut, rng, WIDTH, steady=True)
    rpcs = [Rpc(i, 100_000, 300) for i in range(8)]
    bench.send([rpcs[i % 8].data(rng) for i in range(600)] + [rpcs[0].grant(rng)] * 1100)
    await bench.finish()
    assert bench.counts()["MERGED"] > 500


@cocotb.test()
async def bytes_behind(dut: Any) -> None:
    """Packets that could be merged, with thousands of bytes behind them in their frames: they pass as
    they came, and no page is lost, though there are more of them than pages."""
    rng = random.Random(SEED)
    await start(dut)
    bench = Bench(dut, rng, WIDTH, steady=True)
    rpcs = [Rpc(i, 100_000, 300) for i in range(8)]
    bench.send([rpcs[i % 8].data(rng) + rng.randbytes(4000) for i in range(90)])
    await bench.finish()
    assert bench.counts()["PASSED"] == 90


@cocotb.test()
async def last_beat_without_bytes(dut: Any) -> None:
    """A frame's last beat has no bytes, and those before it fill a page: the frame passes as it is,
    and no page is lost, though there are more such frames than pages."""
    rng = random.Random(SEED)
    await start(dut)
    bench = Bench(dut, rng, WIDTH, steady=True)
    frame = bytes(12) + b"\x88\xb5" + rng.randbytes(256 - 14)
    full = [Beat(beat.data, beat.count, False) for beat in beats(frame, WIDTH)]
    for _ in range(1100):
        bench.expect(frame)
    bench.source.queue = iter([*full, Beat(0, 0, True)] * 1100)
    bench.source.done = False
    await bench.finish()
    assert bench.counts()["PASSED"] == 1100


@cocotb.test()
async def longest_patience(dut: Any) -> None:
    """Units become as old as they may be at about one time, while other frames keep the block busy:
    with the longest patience that can be set each leaves soon after it."""
    rng = random.Random(SEED)
    patience = next(r.most for r in load().registers if r.name == "LRO_PATIENCE")
    # The block looks at a frame for four cycles.
    for phase in range(4):
        await start(dut, patience=patience)
        bench = Bench(dut, rng, WIDTH, steady=True)
        bench.send([Rpc(i, 10_000, 30).data(rng) for i in range(14)])
        for _ in range(patience - 200 + phase):
            await bench.step()
        assert not bench.units
        bench.send([Rpc(99, 10_000, 100).grant(rng)] * (1200 * WIDTH // 512))
        for _ in range(1200):
            await bench.step()
        # What waits behind a unit may take the place of another.
        left = bench.events["TIMED"] + bench.events["EVICTED"]
        assert left == 14, f"{left} of 14 units have left"
        await bench.finish()


@cocotb.test()
async def reset_inside(dut: Any) -> None:
    """A reset in the middle of frames and units: those after it are whole."""
    rng = random.Random(SEED)
    for _ in range(6):
        await start(dut)
        bench = Bench(dut, rng, WIDTH)
        bench.send(units.traffic(rng, 30))
        for _ in range(rng.randint(1, 1500)):
            await bench.step()
        await all_of(dut, rng, units.traffic(rng, 20), steady=False)
