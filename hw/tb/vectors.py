# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Packets that the Linux module sent (tests/data/wire-vectors), as frames for the parser, with what
is stated beside each record: neither our encoder nor our codec has made that."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "wire-vectors"
ADDRESSES = bytes.fromhex("020000000002020000000001")
TAG = bytes.fromhex("8100a07b")
# Its payload goes on behind the end of the message: it was recorded before it was cut up.
SUPER = "data_gso_native_super_v4"
LIMIT = 1 << 31  # larger numbers are clamped


@dataclass(frozen=True)
class Vector:
    """`frame`: from the Ethernet header on; `stated`: members of homa_meta_t, and `sport`, `dport`
    and `sender_id` of its `hdr`."""

    name: str
    frame: bytes
    stated: dict[str, int]


def _stated(record: dict[str, Any], protocol: int) -> dict[str, int]:
    """What a record says, by the names of homa_meta_t."""
    found = {name: record[name] for name in ("sport", "dport", "sender_id")}
    found["protocol"] = protocol
    ip = record.get("ip")
    if ip:
        found["tos"] = ip.get("tos", ip.get("traffic_class"))
        found |= {end: int(ipaddress.ip_address(ip[end])) for end in ("src", "dst")}
    names = {"data_offset": "offset", "message_length": "length"}
    if record["type"] == "DATA":
        names |= {"incoming": "incoming"}
    elif record["type"] in ("GRANT", "RESEND"):
        names |= {"offset": "offset", "length": "length", "priority": "level"}
    for name, member in names.items():
        if record.get(name, LIMIT) < LIMIT:
            found[member] = record[name]
    return found


def _frame(packet: bytes, tag: bytes = b"") -> bytes:
    kind = b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"
    frame = ADDRESSES + tag + kind + packet
    return frame + bytes(max(0, 60 - len(frame)))


def vectors() -> list[Vector]:
    """Each packet of *.hex without and with a VLAN tag, and those of flows.jsonl whose headers are
    recorded, their payload being zero."""
    found = []
    for path in sorted(FOLDER.glob("*.hex")):
        lines = path.read_text().splitlines()
        record = next(json.loads(x[8:]) for x in lines if x.startswith("# json: "))
        packet = bytes.fromhex("".join(x for x in lines if not x.startswith("#")))
        stated = _stated(record, record["ip"]["proto"])
        for tag in (b"", TAG):
            found.append(Vector(path.stem, _frame(packet, tag), stated))
    for line in (FOLDER / "flows.jsonl").read_text().splitlines():
        record = json.loads(line)
        if "headers_hex" in record:
            packet = bytes.fromhex(record["headers_hex"]) + bytes(record.get("payload_length", 0))
            name = f"{record['flow']}, packet {record['n']}"
            found.append(Vector(name, _frame(packet), _stated(record, record["ip_proto"])))
    return found
