# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What homa.ko puts on the wire, against packets of the existing module (tests/data/wire-vectors).

vm_wire provokes each packet and prints it. Each is decoded here by rules of its own, not by
the project's codec, and compared field by field with a captured packet of the same kind, except
for what depends on the run (addresses, ids, ports, lengths); what a run must say is in CASES.
"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from conftest import RunGuest

VECTORS = Path(__file__).resolve().parents[1] / "data/wire-vectors"
TYPES = {
    0x10: "DATA", 0x11: "GRANT", 0x12: "RESEND", 0x13: "RPC_UNKNOWN", 0x14: "BUSY",
    0x15: "CUTOFFS", 0x16: "FREEZE", 0x17: "NEED_ACK", 0x18: "ACK",
}  # fmt: skip
Fields = dict[str, Any]

# Name of a frame: the vectors it is like (v4, v6).
LIKE = {
    "data_newpeer": ("data_newpeer_v4", "data_newpeer_v4"),
    "data_single": ("data_single_v4", "data_single_v6"),
    "data_multi": ("data_multi_last_v4", "data_multi_last_v6"),
    "data_retransmit": ("data_retransmit_gap_v4", "data_retransmit_gap_v4"),
    "data_retransmit_all": ("data_retransmit_gap_v4", "data_retransmit_gap_v4"),
    "data_retransmit_unknown": ("data_retransmit_unknown_v6", "data_retransmit_unknown_v6"),
    "data_unsched": ("data_unsched_limit_v4", "data_unsched_limit_v4"),
    "data_sched": ("data_sched_prio1_v4", "data_sched_prio1_v4"),
    "data_response": ("data_response_v4", "data_response_v4"),
    "resend_response": ("resend_all_v4", "resend_all_v4"),
    "resend_gap": ("resend_gap_v6", "resend_gap_v6"),
    "resend_tail": ("resend_tail_v4", "resend_tail_v4"),
    "grant": ("grant_v4", "grant_response_v6"),
    "cutoffs": ("cutoffs_default_v4", "cutoffs_changed_v6"),
    "busy": ("busy_server_v6", "busy_server_v6"),
    "need_ack": ("need_ack_v4", "need_ack_v4"),
    "unknown": ("unknown_server_v4", "unknown_client_v6"),
    "ack": ("ack_one_v6", "ack_one_v6"),
    "ack_many": ("ack_five_v4", "ack_five_v4"),
}
LEVEL = {
    "data_newpeer": 6, "data_single": 7, "data_multi": 5, "data_retransmit": 7,
    "data_retransmit_all": 6, "data_retransmit_unknown": 5, "data_unsched": 4, "data_sched": 1,
}  # fmt: skip
COUNT = {
    "data_multi": 3,
    "data_retransmit_all": 3,
    "data_retransmit_unknown": 3,
    "data_response": 3,
}
SIZES = {
    "GRANT": 33,
    "RESEND": 37,
    "RPC_UNKNOWN": 28,
    "BUSY": 28,
    "CUTOFFS": 62,
    "NEED_ACK": 28,
    "ACK": 80,
}


def decode(packet: bytes) -> Fields:
    """IP and Homa fields by their names in the vectors' JSON."""
    version = packet[0] >> 4
    if version == 4:
        total, ident, fragment, ttl, proto = struct.unpack_from("!2xHHHBB", packet)
        ip: Fields = {"tos": packet[1], "id": ident, "df": bool(fragment & 0x4000), "ttl": ttl}
        ip["checksum_ok"] = sum(struct.unpack_from("!10H", packet)) % 0xFFFF == 0
        homa = packet[20:total]
        assert packet[0] == 0x45
        assert total == len(packet)
    else:
        length, proto, ttl = struct.unpack_from("!4xHBB", packet)
        ip = {"tos": (packet[0] & 15) << 4 | packet[1] >> 4, "ttl": ttl, "checksum_ok": True}
        ip["flow_label"] = struct.unpack_from("!I", packet)[0] & 0xFFFFF
        homa = packet[40:]
        assert length == len(homa)
    f: Fields = {"ip": ip, "proto": proto, "bytes": len(homa), "version": version}
    f["sport"], f["dport"], f["sequence"] = struct.unpack_from("!HHI", homa)
    f["ack_high"], f["type"] = homa[8:11], TYPES[homa[11]]
    f["doff"], f["flags"] = homa[12] >> 4, homa[13]
    f["window"], f["checksum"], f["urgent"], f["sender_id"] = struct.unpack_from("!HHHQ", homa, 14)
    body = homa[28:]
    if f["type"] == "DATA":
        f["message_length"], f["incoming"], client, port = struct.unpack_from("!IIQH", body)
        f["ack"] = {"client_id": client, "server_port": port}
        f["cutoff_version"], f["retransmit"] = struct.unpack_from("!HB", body, 18)
        f["pad"] = body[21:24]
        f["seg_offset"] = struct.unpack_from("!I", body, 24)[0]
        f["payload"] = body[28:]
        f["data_offset"] = f["sequence"] if f["seg_offset"] == 0xFFFFFFFF else f["seg_offset"]
    elif f["type"] == "GRANT":
        f["offset"], f["priority"] = struct.unpack("!IB", body)
    elif f["type"] == "RESEND":
        f["offset"], f["length"], f["priority"] = struct.unpack("!IIB", body)
    elif f["type"] == "CUTOFFS":
        *f["unsched_cutoffs"], f["cutoff_version"] = struct.unpack("!8IH", body)
    elif f["type"] == "ACK":
        f["num_acks"] = struct.unpack_from("!H", body)[0]
        f["acks"] = [struct.unpack_from("!QH", body, 2 + 10 * i) for i in range(5)]
    return f


def vector(name: str) -> tuple[Fields, bytes]:
    """The expected decode and the bytes of a captured packet."""
    lines = (VECTORS / f"{name}.hex").read_text().splitlines()
    expected = next(json.loads(x[8:]) for x in lines if x.startswith("# json: "))
    return expected, bytes.fromhex("".join(x for x in lines if not x.startswith("#")))


def test_decoder__agrees_with_the_vectors() -> None:
    """The decoder of this file is judged by the captures before it judges the module."""
    for path in sorted(VECTORS.glob("*.hex")):
        expected, packet = vector(path.stem)
        if path.stem == "data_gso_native_super_v4":
            continue
        ours = decode(packet)
        for key, value in expected.items():
            if key == "ip":
                assert ours["ip"]["tos"] == value.get("tos", value.get("traffic_class"))
                assert ours["proto"] == value["proto"]
            elif key == "payload_length":
                assert len(ours["payload"]) == value, path.stem
            elif key == "acks":
                assert [a[0] for a in ours["acks"][: len(value)]] == [a["client_id"] for a in value]
            elif key in ours:
                assert ours[key] == value, (path.stem, key)


@pytest.fixture(params=[4, 6])
def captured(
    guest: RunGuest, request: pytest.FixtureRequest
) -> tuple[int, Fields, list[tuple[str, Fields]]]:
    """(IP version, notes, frames in their order)."""
    output = guest(f"wire {request.param}", "wire", timeout=120).output
    notes = {m[1]: int(m[2]) for m in re.finditer(r"^note (\w+) (\d+)$", output, re.M)}
    found = re.findall(r"^frame (\w+) ([0-9a-f]+)$", output, re.M)
    return request.param, notes, [(name, decode(bytes.fromhex(text))) for name, text in found]


def test_frames__like_those_of_the_existing_module(
    captured: tuple[int, Fields, list[tuple[str, Fields]]],
) -> None:
    version, notes, frames = captured
    named = {name: [f for n, f in frames if n == name] for name, _ in frames}
    assert {*LIKE, "data_ten"} == set(named)
    for name, fields in frames:
        assert fields["ip"]["checksum_ok"], name
        common(version, name, fields)
        if name in LIKE:
            alike(name, fields, vector(LIKE[name][version == 6])[0])
        if fields["type"] == "DATA":
            data(name, fields)
        else:
            assert fields["bytes"] == SIZES[fields["type"]], name
    for name, count in COUNT.items():
        parts = named[name]
        assert len(parts) == count
        assert [p["data_offset"] for p in parts] == [
            sum(len(q["payload"]) for q in parts[:i]) for i in range(count)
        ], name
        assert sum(len(p["payload"]) for p in parts) == parts[0]["message_length"] == 3000
    particular(notes, named)


def common(version: int, name: str, f: Fields) -> None:
    """What is the same in every packet."""
    assert (f["proto"], f["flags"], f["urgent"]) == (146, 6, 0xB97D), name
    # With restart_guard_us=1, as the guest sets it, a server says nothing of its life.
    assert f["ack_high"] == bytes(3), name
    assert f["window"] == 0, name
    assert f["ip"]["ttl"] == 64, name
    assert f["ip"]["tos"] & 0x1F == 0, name
    if version == 4:
        assert f["ip"]["df"], name
    if f["type"] != "DATA":
        assert f["ip"]["tos"] == 0xE0, name
        assert f["doff"] == 5, name
        assert f["sequence"] == 0, name


def alike(name: str, f: Fields, theirs: Fields) -> None:
    """Fields that do not depend on the run."""
    assert f["type"] == theirs["type"], name
    for key in ("flags", "urgent", "window", "retransmit"):
        if key in theirs:
            assert f[key] == theirs[key], (name, key)
    if f["type"] != "DATA":
        assert f["doff"] == theirs["doff"], name
        assert f["ip"]["tos"] == theirs["ip"].get("tos", theirs["ip"].get("traffic_class")), name
    if f["type"] == "RESEND":
        assert f["priority"] == theirs["priority"], name
        assert (f["length"] == 0xFFFFFFFF) == (theirs["length"] == 0xFFFFFFFF), name
    if f["type"] == "CUTOFFS":
        assert f["unsched_cutoffs"][5:] == [15000, 2800, 200], name


def data(name: str, f: Fields) -> None:
    """DATA: the header's length, where the payload is, what it is."""
    # One segment: 14 words and both offsets right; a segment of several: 13, and seg.offset.
    assert f["doff"] in (13, 14), name
    if f["doff"] == 14:
        assert f["sequence"] == f["data_offset"], name
    offset = f["data_offset"]
    # With the first byte of a request: its client understands a rejection. Devices that cut a
    # segment repeat it in the others. Nothing else of our extension is said here.
    asks, understands = not f["sender_id"] & 1, b"\x04\0\0"
    assert f["pad"] in {
        understands if asks and not offset else bytes(3),
        understands if asks else bytes(3),
    }, name
    assert f["payload"] == bytes((offset + i) % 251 for i in range(len(f["payload"]))), name
    assert f["retransmit"] == ("retransmit" in name), name
    assert offset + len(f["payload"]) <= f["message_length"], name
    if name in LEVEL:
        assert f["ip"]["tos"] == LEVEL[name] << 5, name
    if f["retransmit"]:
        # The end of the range that is sent again, clipped to what was sent.
        assert offset + len(f["payload"]) <= f["incoming"] <= f["message_length"], name
    elif name not in ("data_unsched", "data_sched"):
        assert f["incoming"] == f["message_length"], name


def particular(notes: Fields, named: dict[str, list[Fields]]) -> None:
    """What each situation says."""
    mtu = 1500 - (20 if named["unknown"][0]["version"] == 4 else 40) - 56
    one = {name: parts[0] for name, parts in named.items()}
    assert one["data_newpeer"]["cutoff_version"] == 0
    assert one["data_newpeer"]["ack"] == {"client_id": 0, "server_port": 0}
    assert one["data_newpeer"]["sender_id"] == notes["first_id"]
    assert notes["first_id"] % 2 == 0
    assert notes["client_port"] >= 32768
    for name, parts in named.items():
        for f in parts:
            client = f["sport"] == notes["client_port"]
            assert f["sport"] in (notes["client_port"], 4000), name
            assert f["dport"] == 5000, name
            if name != "unknown":
                assert (f["sender_id"] % 2 == 0) == client, name
            if client and f["type"] == "DATA" and name != "data_newpeer":
                assert f["cutoff_version"] == 3, name
    # The first RPC's ack rides on the second's DATA; it names the server's port.
    assert one["data_single"]["ack"] == {"client_id": notes["acked"], "server_port": 5000}
    unscheduled = named["data_unsched"]
    assert {f["incoming"] for f in unscheduled} == {one["data_sched"]["incoming"]}
    assert notes["unsched"] <= one["data_unsched"]["incoming"] < notes["unsched"] + mtu
    assert one["data_sched"]["data_offset"] == one["data_unsched"]["incoming"]
    assert (one["data_retransmit"]["data_offset"], len(one["data_retransmit"]["payload"])) == (
        mtu,
        mtu,
    )
    assert one["data_retransmit"]["incoming"] == 2 * mtu
    assert one["grant"]["sender_id"] == notes["server_id"]
    assert 1000 < one["grant"]["offset"] <= 100000
    assert one["grant"]["priority"] < 4
    assert (one["resend_gap"]["offset"], one["resend_gap"]["length"]) == (1000, 1000)
    tail = one["resend_tail"]
    assert tail["offset"] == 3000
    assert 3000 + tail["length"] <= 100000
    assert (one["resend_response"]["offset"], one["resend_response"]["length"]) == (0, 0xFFFFFFFF)
    assert one["busy"]["sender_id"] == one["need_ack"]["sender_id"] == notes["response_id"]
    assert one["unknown"]["sender_id"] == 2
    acks = one["ack"]
    acked = {acks["sender_id"], *(client for client, _ in acks["acks"][: acks["num_acks"]])}
    assert notes["acked_by_ack"] in acked
    many = one["ack_many"]
    assert 1 <= many["num_acks"] <= 5
    assert all(port == 5000 for _, port in many["acks"][: many["num_acks"]])
    sent = {f["sender_id"] for f in named["data_ten"]} | {notes["acked_by_ack"]}
    assert {client for client, _ in many["acks"][: many["num_acks"]]} <= sent
    assert all(ack == (0, 0) for ack in many["acks"][many["num_acks"] :])
