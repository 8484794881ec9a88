# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa_parser and packets that the Linux module sent: it says of each what the C codec says, and
what is stated beside the record."""

from __future__ import annotations

import os
import random
from typing import Any

import cocotb

from hw.tb import layout
from hw.tb.stream import reset
from hw.tb.test_parser import Checker, run
from hw.tb.vectors import SUPER, Vector, vectors

SEED = int(os.environ.get("HW_SEED", "1"))
# First byte and end of fields in the Homa header that homa_meta_t has as bytes only.
FIELDS = {"sport": (0, 2), "dport": (2, 4), "sender_id": (20, 28)}


class Recorded(Checker):
    """Compares with the records, too, which come in this order."""

    def __init__(self, sent: list[Vector]) -> None:
        super().__init__()
        self.sent = iter(sent)

    def check(self, sent: bytes, got: bytes, meta: list[int], bad: int) -> None:
        super().check(sent, got, meta, bad)
        vector = next(self.sent)
        classes = {6: "CLASS_HOMA_TCP", 146: "CLASS_HOMA"}
        c = layout.constants()
        have = layout.unpack("homa_meta_t", meta[0])
        raw = have["hdr"].to_bytes(80, "big")
        have |= {name: int.from_bytes(raw[a:b], "big") for name, (a, b) in FIELDS.items()}
        stated = dict(vector.stated)
        assert not bad, f"{vector.name} is bad"
        assert have["class_"] == c[classes[stated.pop("protocol")]], vector.name
        if vector.name == SUPER:
            assert have["error"] == c["WIRE_OFFSET"], vector.name
            return
        assert have["error"] == c["WIRE_OK"], f"{vector.name}: error {have['error']}"
        for name, value in stated.items():
            assert have[name] == value, f"{vector.name}: {name} {have[name]:x}, stated {value:x}"
            self.seen[f"stated {name}"] += 1


@cocotb.test()
async def recorded_packets(dut: Any) -> None:
    """Every packet of tests/data/wire-vectors."""
    sent = vectors()
    await reset(dut)
    checker = Recorded(sent)
    seen = await run(dut, [vector.frame for vector in sent], random.Random(SEED), checker)
    cocotb.log.info("%s", dict(sorted(seen.items())))
    assert seen["CLASS_HOMA"] >= 100 and seen["CLASS_HOMA_TCP"] >= 4, f"too few: {dict(seen)}"
    missing = [
        n
        for n in ("offset", "length", "incoming", "level", "src", "tos")
        if not seen[f"stated {n}"]
    ]
    assert not missing, f"no record says {missing}"
