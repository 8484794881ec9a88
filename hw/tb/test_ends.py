# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_nic between two engines: what the send scheduler hands out as super-frames arrives through
segmentation, a bad link and large receive at the other host, every message exactly once."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb

from hw.tb.axil import names
from hw.tb.bench_ends import Between, Faults, Link
from hw.tb.bench_nic import Card, start
from hw.tb.ends import Carrier, World, length

WIDTH = int(os.environ.get("HW_WIDTH", "512"))
FRAMES = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
CARRIERS = (Carrier(), Carrier(encap=54321), Carrier(v6=True), Carrier(vlan=True))
FILLING = 300
# Of the messages of one pair of hosts, and of all.
WORLD_BYTES = 100_000
ALL_BYTES = max(2 * WORLD_BYTES, 48 * FRAMES)
# Messages of a pair have up to so many bytes; a narrow port needs many cycles for long ones.
LONGEST = (4000, 60_000, 60_000 if WIDTH < 512 and FRAMES < 100_000 else 300_000)


async def pair(dut: Any, seed: int, carrier: Carrier) -> Between:
    """Two hosts from a seed, until all of their RPCs have ended."""
    rng = random.Random(seed)
    await start(dut)
    card = Card(dut, rng, WIDTH)
    await card.idle(FILLING)
    await card.registers.set("LRO_PATIENCE", rng.choice((160, 640, 2560)))
    if rng.random() < 0.5:
        await card.registers.set("CONTROL", names()["CONTROL_PACE"] | 7)
        await card.registers.set("PACE_LIMIT", rng.choice((0, 3000, 10_000)))
        card.port.most = rng.randint(WIDTH // 16, WIDTH // 8)
    mtu = rng.choice((1500, 1500, 9000))
    world = World(seed, 200 * WIDTH, mtu, carrier)
    share = rng.choice((0.0, 0.02, 0.05))
    faults = Faults(share, share, rng.choice((0.0, 0.02, 0.2)), rng.choice((50, 500)), 2000)
    link = Link(rng, faults)
    it = Between(card, world, link, rng, WIDTH)
    longest = rng.choice(LONGEST)
    rpcs = total = 0
    while total < WORLD_BYTES:
        sizes = length(rng, longest), length(rng, longest)
        world.start(rng.randrange(2), *sizes)
        rpcs, total = rpcs + 1, total + sum(sizes)
    await it.run()
    it.check()
    assert world.answered() == rpcs
    cocotb.log.info(
        "seed %d, %s, MTU %d: %d RPCs, %d bytes, %d super-frames; %d packets left, %d were lost, "
        "%d doubled, %d late; %d sent again; %d units, the longest of %d; %d cycles",
        *(seed, carrier, mtu, rpcs, total, it.supers, it.gone, link.lost, link.doubled),
        *(link.late, world.again(), it.units, it.longest, it.cycle),
    )
    world.finish()
    return it


@cocotb.test()
async def engines(dut: Any) -> None:
    """Many RPCs in both directions at once, in every kind of carrier."""
    cocotb.log.info("seed %d", SEED)
    worlds = -(-ALL_BYTES // WORLD_BYTES)
    all_of_them = []
    for number in range(worlds):
        carrier = CARRIERS[(WIDTH // 64 + number) % len(CARRIERS)]
        all_of_them.append(await pair(dut, 1000 * SEED + number, carrier))
    for name in ("supers", "units"):
        assert any(getattr(it, name) for it in all_of_them), f"there were no {name}"
