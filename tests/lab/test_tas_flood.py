# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What ./homa bench tas flood makes of reports, and the SYNs that it sends; no program is started."""

from __future__ import annotations

import os
import random
import socket
import struct

import pytest

from lab.bench import syn_flood, tas_flood
from lab.bench.tas_flood import CALM, FLOOD, RATE, Series
from lab.errors import LabError

ECHO = {
    "schema": "homa-flows/1",
    "wrong": 0,
    "failed": 0,
    "bytes": 10,
    "rate": 5e4,
    "latency_ns": {"p50": 900, "p99": 2000},
}
SENT = {"schema": syn_flood.SCHEMA, "sent": 2 * RATE, "seconds": 2.0}


def test_extract__what_both_reported() -> None:
    found = tas_flood.extract([ECHO, SENT], FLOOD)
    assert found == {"rate": 5e4, "p50_us": 0.9, "p99_us": 2.0, "syns_per_s": RATE}
    assert "syns_per_s" not in tas_flood.extract([ECHO], CALM)


@pytest.mark.parametrize(
    ("reports", "problem"),
    [
        ([SENT], "wrote no result"),
        ([{**ECHO, "wrong": 1}, SENT], "1 wrong answers"),
        ([ECHO], "0 SYNs were sent"),
        ([ECHO, {**SENT, "sent": RATE}], "too few"),
    ],
)
def test_extract__a_round_that_does_not_count(reports: list[dict], problem: str) -> None:
    with pytest.raises(LabError, match=problem):
        tas_flood.extract(reports, FLOOD)


def test_to_calm__round_by_round() -> None:
    calm = Series(CALM, [{"rate": 100.0}, {"rate": 200.0}, {"rate": 100.0}])
    flood = Series(FLOOD, [{"rate": 90.0}, {"rate": 160.0}, None], "round 3: too few")
    found = tas_flood.to_calm([calm, flood])
    assert found["rate"]["rounds"] == [0.9, 0.8]
    here = tas_flood.machine.describe()
    document = tas_flood.as_json([calm, flood], found, here, 1.0)
    assert document["ratios"]["flood"]["rate"]["median"] == pytest.approx(0.85)
    assert tas_flood.to_calm([Series(CALM, [None]), Series(FLOOD, [None])]) == {}


def test_resident__of_ourselves() -> None:
    assert tas_flood.resident(os.getpid()) > 1e6


def test_syn__is_whole_and_from_somebody_else() -> None:
    to = struct.unpack(">I", socket.inet_aton("10.41.0.1"))[0]
    packet = syn_flood.syn(random.Random(1), to, 10002)
    assert len(packet) == 44 and packet[16:20] == socket.inet_aton("10.41.0.1")
    assert packet[12:13] == b"\xc6" and packet[13] in (18, 19)
    tcp = packet[20:]
    assert struct.unpack(">H", tcp[2:4])[0] == 10002
    assert tcp[12] >> 4 == 6 and tcp[13] == 2 and tcp[20:] == b"\x02\x04\x05\xb4"
    pseudo = packet[12:20] + struct.pack(">BBH", 0, 6, len(tcp))
    words = struct.unpack(f">{(len(pseudo) + len(tcp)) // 2}H", pseudo + tcp)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    assert total == 0xFFFF
