# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_parser against the C codec: random and hostile frames, random pauses at both ends."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from hw.tb import layout, reference
from hw.tb.frames import frames
from hw.tb.stream import Sink, Source, reset

WIDTH = int(os.environ.get("HW_WIDTH", "512"))
FRAMES = int(os.environ.get("HW_FRAMES", "1000"))
SEED = int(os.environ.get("HW_SEED", "1"))
# Cycles that the block adds: narrow beats need one stage for extension headers, wide ones two.
ADDED = 7 if WIDTH == 64 else 8
SIDE = ("bad", "meta_valid")
# Cycles without a frame after which the block is said to hang.
PATIENCE = 20_000


class Checker:
    """Compares what comes with what should; counts what was seen."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.classes = {v: k for k, v in layout.constants().items() if k.startswith("CLASS_")}

    def check(self, sent: bytes, got: bytes, meta: list[int], bad: int) -> None:
        assert got == sent, f"the frame {sent.hex()} came as {got.hex()}"
        assert len(meta) == 1, f"meta came {len(meta)} times: {sent.hex()}"
        want = reference.judge(sent)
        have = layout.unpack("homa_meta_t", meta[0])
        assert bad == want.bad, f"bad is {bad}: {sent.hex()}"
        # Meta that came before the frame was cut short is taken back by bad.
        if want.bad:
            self.seen["bad"] += 1
            return
        for name, value in want.said.items():
            assert have[name] == value, f"{name}: {have[name]:x}, not {value:x}: {sent.hex()}"
        self.seen[self.classes[have["class_"]]] += 1
        if not want.packet:
            return
        self.seen[f"error {want.said['error']}"] += 1
        if not want.said["error"]:
            self.seen[f"type {want.packet[11]:02x}"] += 1
            length = have["hdr_len"]
            raw = have["hdr"].to_bytes(80, "big")[:length]
            assert raw == want.packet[:length], f"header {raw.hex()}: {sent.hex()}"


async def run(
    dut: Any, sent: list[bytes], rng: random.Random, checker: Checker | None = None
) -> Counter[str]:
    """Send the frames and check each, by `checker` if there is one; what was seen of each kind."""
    source = Source(dut, "s", WIDTH, rng)
    sink = Sink(dut, "m", WIDTH, rng, SIDE)
    checker = checker or Checker()
    source.send(sent)
    meta: list[int] = []
    done = idle = 0
    while done < len(sent):
        await RisingEdge(dut.clk)
        before = len(sink.said)
        frame = sink.edge()
        said = frame[1][-1:] if frame else sink.said[before:]
        if said and said[0]["meta_valid"]:
            meta.append(int(dut.m_meta.value))
        source.edge()
        idle += 1
        if frame:
            checker.check(sent[done], frame[0], meta, frame[1][-1]["bad"])
            done, idle, meta = done + 1, 0, []
        assert idle < PATIENCE, f"nothing comes after {done} frames"
    return checker.seen


@cocotb.test()
async def random_frames(dut: Any) -> None:
    """Every frame comes as it was, with what the codec says of it."""
    rng = random.Random(SEED)
    await reset(dut)
    seen = await run(dut, frames(rng, FRAMES), rng)
    cocotb.log.info("%s", dict(sorted(seen.items())))
    if FRAMES >= 5000:
        kinds = [name for name in layout.constants() if name.startswith("CLASS_")]
        kinds += [f"error {i}" for i in range(7)] + [f"type {i:02x}" for i in range(0x10, 0x1A)]
        missing = [kind for kind in kinds if not seen[kind]]
        assert not missing, f"nothing was seen of {missing}"


@cocotb.test()
async def no_gaps(dut: Any) -> None:
    """With both ends ready a beat leaves in every cycle, ADDED cycles after it came."""
    rng = random.Random(SEED)
    await reset(dut)
    dut.m_ready.value = 1
    dut.s_keep.value = (1 << (WIDTH // 8)) - 1
    size = WIDTH // 8
    sent = [rng.randbytes(size * rng.randint(1, 3)) for _ in range(200)]
    stream = [(f[i : i + size], i + size == len(f)) for f in sent for i in range(0, len(f), size)]
    got = []
    for cycle in range(len(stream) + ADDED + 1):
        if cycle < len(stream):
            dut.s_data.value = int.from_bytes(stream[cycle][0], "little")
            dut.s_last.value = int(stream[cycle][1])
        dut.s_valid.value = int(cycle < len(stream))
        await RisingEdge(dut.clk)
        assert dut.s_ready.value == 1
        if dut.m_valid.value:
            got.append((int(dut.m_data.value).to_bytes(size, "little"), bool(dut.m_last.value)))
            assert len(got) == cycle - ADDED + 1, f"beat {len(got)} leaves in cycle {cycle}"
    assert got == stream


@cocotb.test()
async def reset_inside(dut: Any) -> None:
    """A reset in the middle of frames: those after it are whole."""
    rng = random.Random(SEED)
    for _ in range(20):
        await reset(dut)
        source, sink = Source(dut, "s", WIDTH, rng), Sink(dut, "m", WIDTH, rng)
        source.send(frames(rng, 8))
        for _ in range(rng.randint(1, 60)):
            await RisingEdge(dut.clk)
            source.edge()
            sink.edge()
        source.valid.value = 0
        await reset(dut)
        await run(dut, frames(rng, 8), rng)
