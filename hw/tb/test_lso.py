# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_lso: super-frames become the packets that the engine would have made."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import cocotb

from hw.tb import frames, supers
from hw.tb.bench_lso import OTHER, Bench, compare
from hw.tb.layout import constants
from hw.tb.reference import judge
from hw.tb.stream import reset
from hw.tb.supers import Super
from hw.tb.units import Rpc

WIDTH = int(os.environ.get("HW_WIDTH", "512"))
FRAMES = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
PATIENCE = 60_000
# Bytes of the longest Homa header: once they are there, or the frame has ended, the headers are known.
HEADERS = 80
# Cycles that the block adds to the first packet of a super-frame, the parser's eight, at 64 bits
# seven, included.
ADDED = 16 if WIDTH == 64 else 17


async def start(dut: Any) -> None:
    for name in ("s_valid", "b_valid", "m_ready", "c_ready", "s_split", "s_seg", "s_tag"):
        getattr(dut, name).value = 0
    await reset(dut)


async def run(
    dut: Any, items: list[Super], others: list[bytes], rng: random.Random, steady: bool = False
) -> Bench:
    """All of them through the block; every completion once, every packet right. `steady`: nobody
    pauses."""
    bench = Bench(dut, rng, WIDTH)
    if steady:
        for end in (bench.long.pauses, bench.sink.pauses, bench.host):
            end.ready = lambda: True  # type: ignore[method-assign]
    bench.feed(items)
    bench.short.send(others)
    idle = 0
    while len(bench.done) < len(items) or len(bench.others) < len(others):
        idle = 0 if await bench.step() else idle + 1
        assert idle < PATIENCE, f"it hangs after {len(bench.done)} of {len(items)} frames"
    for _ in range(3000):
        await bench.step()
    assert len(bench.done) == len(items), "there are more completions than frames"
    assert bench.others == others, "the other input's frames changed"
    seen: Counter[str] = Counter()
    packets = list(bench.packets)
    for item, have in zip(items, bench.done):
        seen[compare(item, have, packets)] += 1
    assert not packets, f"{len(packets)} packets came too many"
    cocotb.log.info("%s, %d packets", dict(seen), len(bench.packets))
    if len(items) >= 300 and not steady:
        assert all(seen[f"status {i}"] for i in range(3)), f"not all outcomes: {dict(seen)}"
    return bench


@cocotb.test()
async def random_frames(dut: Any) -> None:
    """Good and hostile super-frames, pauses everywhere, other frames between."""
    rng = random.Random(SEED)
    await start(dut)
    # One of them has dozens of packets.
    items = supers.make(rng, max(20, FRAMES // 25))
    others = [OTHER + rng.randbytes(rng.randint(1, 300)) for _ in range(len(items))]
    await run(dut, items, others, rng)


@cocotb.test()
async def bytes_behind(dut: Any) -> None:
    """Bytes behind the IP packet, whose last beat comes just as the last packet is written: there
    is one completion, and the next frame is whole."""
    rng = random.Random(SEED)
    await start(dut)
    items = []
    for extra in range(0, 5 * WIDTH // 8, max(1, WIDTH // 64)):
        for way in (300, 1400):
            frame = b""
            while supers.expect(Super(frame, True, way, 1)).status or not frame:
                frame = supers.super_frame(rng, 600)
            items.append(Super(frame + bytes(extra), True, way, len(items) & 255))
    bench = await run(dut, items, [], rng, steady=True)
    assert len(bench.packets) >= len(items)


@cocotb.test()
async def short_between(dut: Any) -> None:
    """With frames at both inputs, packets and other frames take turns: neither waits for more than
    one of the other's. The port is slow, so that both always have some."""
    rng = random.Random(SEED)
    await start(dut)
    frame = b""
    while len(frame) < 30_000 or supers.expect(Super(frame, True, 300, 1)).status:
        frame = supers.super_frame(rng, 60_000)
    bench = Bench(dut, rng, WIDTH)
    bench.long.pauses.ready = lambda: True  # type: ignore[method-assign]
    bench.short.pauses.ready = lambda: True  # type: ignore[method-assign]
    bench.sink.pauses.ready = lambda: rng.random() < 0.2  # type: ignore[method-assign]
    bench.feed([Super(frame, True, 300, 1)])
    bench.short.send([OTHER + rng.randbytes(300) for _ in range(60)])
    while len(bench.order) < 80:
        await bench.step()
    # Until the first packet is there, the others go alone.
    turns = bench.order[bench.order.index(False) :][:40]
    assert all(a != b for a, b in zip(turns, turns[1:])), f"they take no turns: {turns}"


@cocotb.test()
async def longest(dut: Any) -> None:
    """A packet of 9,216 bytes is made, one of 9,217 refused."""
    rng = random.Random(SEED)
    await start(dut)
    items = []
    for most in (supers.LONGEST - 1, supers.LONGEST, supers.LONGEST + 1):
        frame = b""
        while len(frame) < 20_000 or supers.expect(Super(frame, True, 1000, 1)).status:
            frame = supers.super_frame(rng, 30_000)
        at = supers.judge(frame).said["at"]
        items.append(Super(frame, True, most - at - 56, len(items)))
    bench = await run(dut, items, [], rng)
    c = constants()
    statuses = [status for _, status, _ in bench.done]
    assert statuses == [c["DONE_SENT"], c["DONE_SENT"], c["DONE_REFUSED"]]


@cocotb.test()
async def longest_super_frame(dut: Any) -> None:
    """The longest packets that IP's length can say, of 65,535 bytes, and of as many behind the header
    of IPv6: their frames have more than 64 KB. Each is sent, also with bytes behind it, and is cut if
    its last byte is not there."""
    rng = random.Random(SEED)
    await start(dut)
    whole = []
    for v6, vlan in ((False, False), (False, True), (True, False), (True, True)):
        size = 65_535 - 56 - (0 if v6 else 20)
        whole.append(Rpc(1, 200_000, size, v6=v6, vlan=vlan).data(rng))
    sent = [*whole, whole[0] + bytes(300), whole[0][:-1], whole[3][:-1]]
    items = [Super(frame, True, 9000, i) for i, frame in enumerate(sent)]
    bench = await run(dut, items, [], rng, steady=True)
    c = constants()
    statuses = [status for _, status, _ in bench.done]
    assert statuses == [c["DONE_SENT"]] * 5 + [c["DONE_CUT"]] * 2


@cocotb.test()
async def first_packet(dut: Any) -> None:
    """Nothing waits: the first packet of a super-frame leaves so many cycles after the beat with
    which its headers are known and the beats that it has, IPv4 as soon as IPv6. Options of IPv4
    cost a cycle for each 16 bits and two more."""
    rng = random.Random(SEED)
    await start(dut)
    kinds = {name: Rpc(1, 2000, 900, **{name: True}) for name in ("v6", "vlan", "udp")}
    found = {name: await latency(dut, rng, rpc.data(rng)) for name, rpc in kinds.items()}
    found["v4"] = await latency(dut, rng, Rpc(1, 2000, 900).data(rng))
    plain = bytearray(Rpc(1, 2000, 900).data(rng))
    plain[14] = 0x46
    plain[16:18] = (int.from_bytes(plain[16:18], "big") + 4).to_bytes(2, "big")
    found["options"] = await latency(dut, rng, bytes(plain[:34] + b"\1" * 4 + plain[34:]))
    cocotb.log.info("cycles %s", found)
    assert found.pop("options") <= ADDED + 4, "IPv4 with options waits longer"
    assert all(cycles <= ADDED for cycles in found.values()), f"{found}, not {ADDED}"


async def latency(dut: Any, rng: random.Random, frame: bytes) -> int:
    """Cycles from the frame's first beat to the first one of its first packet, without those for
    the beats that must come and those that the packet has."""
    item, size = Super(frame, True, 300, 1), WIDTH // 8
    bench = Bench(dut, rng, WIDTH)
    for end in (bench.long.pauses, bench.sink.pauses, bench.host):
        end.ready = lambda: True  # type: ignore[method-assign]
    taken: list[int] = []
    cycle = 0
    bench.long.begun = lambda: taken.append(cycle)
    bench.feed([item])
    while not bench.sink.bytes:
        await bench.step()
        cycle += 1
        assert cycle < 1000, "nothing leaves"
    first = cycle - taken[0] - 1
    packets = supers.expect(item).packets
    while not bench.done or len(bench.packets) < len(packets):
        await bench.step()
    known = (judge(frame).said["at"] + HEADERS - 1) // size
    assert compare(item, bench.done[0], list(bench.packets)) == "status 0"
    return first - known - -(-len(packets[0]) // size)


@cocotb.test()
async def host_sleeps(dut: Any) -> None:
    """A host that takes no completion stops the first input and nothing else."""
    rng = random.Random(SEED)
    await start(dut)
    items = [Super(frames.good(rng, 100), False, 0, i) for i in range(4)]
    bench = Bench(dut, rng, WIDTH)
    bench.host.ready = lambda: False  # type: ignore[method-assign]
    bench.feed(items)
    bench.short.send([OTHER + bytes(60)] * 20)
    for _ in range(3000):
        await bench.step()
    assert not bench.done
    assert bench.packets == [items[0].frame]
    assert len(bench.others) == 20
    bench.host.ready = lambda: True  # type: ignore[method-assign]
    for _ in range(3000):
        await bench.step()
    assert [tag for tag, _, _ in bench.done] == [0, 1, 2, 3]
    assert bench.packets == [item.frame for item in items]


@cocotb.test()
async def reset_inside(dut: Any) -> None:
    """A reset in the middle of frames: those after it are whole."""
    rng = random.Random(SEED)
    for _ in range(8):
        await start(dut)
        bench = Bench(dut, rng, WIDTH)
        bench.feed(supers.make(rng, 5))
        bench.short.send([OTHER + bytes(rng.randint(1, 200)) for _ in range(5)])
        for _ in range(rng.randint(1, 400)):
            await bench.step()
        await start(dut)
        await run(dut, supers.make(rng, 3), [OTHER + bytes(50)], rng)
