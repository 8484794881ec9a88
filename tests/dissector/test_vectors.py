# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Frames of the Linux module through tshark: every field is what is stated beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from shark import Vector, experts, fields, flows, needs_tshark, tshark, vectors, write

pytestmark = needs_tshark

COMMON = [
    "sport",
    "dport",
    "sequence",
    "type",
    "doff",
    "flags",
    "window",
    "checksum",
    "urgent",
    "sender_id",
]
BODY = {
    "DATA": {"message_length": "data.length", "incoming": "data.incoming", "cutoff_version": "data.cutoff_version",
             "retransmit": "data.retransmit", "seg_offset": "data.seg_offset", "data_offset": "offset",
             "payload_length": "payload_length"},
    "GRANT": {"offset": "grant.offset", "priority": "grant.priority"},
    "RESEND": {"offset": "resend.offset", "length": "resend.length", "priority": "resend.priority"},
    "CUTOFFS": {"unsched_cutoffs": "cutoffs.cutoff", "cutoff_version": "cutoffs.version"},
    "ACK": {"num_acks": "acks.num"},
}  # fmt: skip
TYPES = ["DATA", "GRANT", "RESEND", "RPC_UNKNOWN", "BUSY", "CUTOFFS", "FREEZE", "NEED_ACK", "ACK"]
DERIVED = ["id", "from_client", "priority", "encap", "ack.client_id", "ack.server_port", "stream"]
ALL = [
    f"homa.{n}" for n in [*COMMON, *DERIVED, *{f for body in BODY.values() for f in body.values()}]
]
VECTORS = vectors()
FLOWS = flows()


def number(text: str) -> int:
    return {"True": 1, "False": 0}[text] if text in ("True", "False") else int(text, 0)


def check(row: dict[str, list[str]], vector: Vector) -> None:
    """One packet's row against its statement."""
    stated, said = (
        vector.stated,
        {n.removeprefix("homa."): list(vs) for n, vs in row.items()},
    )
    kind = stated["type"]
    assert number(said["type"][0]) == 0x10 + TYPES.index(kind)
    for name in COMMON:
        if name in stated and name != "type":
            scale = 16 if name == "doff" else 1
            assert [number(v) for v in said[name]] == [stated[name] * scale], name
    for name, field in BODY.get(kind, {}).items():
        if name in stated:
            want = stated[name] if isinstance(stated[name], list) else [stated[name]]
            assert [number(v) for v in said[field]] == want, name
    for other, body in BODY.items():
        for field in body.values():
            if other != kind and field not in BODY.get(kind, {}).values():
                assert not said[field], field
    acks = stated.get("acks", [])[: stated.get("num_acks", 0)] or [
        stated.get("ack", {"client_id": 0})
    ]
    acks = [a for a in acks if a["client_id"]]
    assert [number(v) for v in said["ack.client_id"]] == [a["client_id"] for a in acks]
    assert [number(v) for v in said["ack.server_port"]] == [a["server_port"] for a in acks]
    network = stated.get("ip", stated)
    tos = network.get("tos", network.get("traffic_class"))
    assert [number(v) for v in said["priority"]] == [tos >> 5]
    assert said["encap"] == [
        "TCP" if network.get("proto", network.get("ip_proto")) == 6 else "native"
    ]
    assert number(said["id"][0]) == stated["sender_id"] & ~1
    assert number(said["from_client"][0]) == 1 - (stated["sender_id"] & 1)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """What tshark says of each frame: one run for all tests."""
    everything = [*VECTORS, *(v for flow in FLOWS.values() for v in flow)]
    capture = write(tmp_path_factory.mktemp("vectors") / "all.pcap", [v.frame for v in everything])
    return {v.name: row for v, row in zip(everything, fields(capture, ALL), strict=True)}


@pytest.mark.parametrize("vector", VECTORS, ids=[v.name for v in VECTORS])
def test_vectors__fields(vector: Vector, rows: dict[str, dict[str, list[str]]]) -> None:
    check(rows[vector.name], vector)


@pytest.mark.parametrize("flow", FLOWS)
def test_flows__fields(flow: str, rows: dict[str, dict[str, list[str]]]) -> None:
    for vector in FLOWS[flow]:
        check(rows[vector.name], vector)


def test_vectors__experts(tmp_path: Path) -> None:
    """Genuine frames have no faults: only what they really are is remarked."""
    found = experts(write(tmp_path / "v.pcap", [v.frame for v in VECTORS]))
    for vector, said in zip(VECTORS, found, strict=True):
        want = set()
        if vector.stated["type"] == "RESEND":
            want = {"resend"}
        elif vector.stated["type"] == "RPC_UNKNOWN":
            want = {"rpc_unknown"}
        elif vector.stated.get("retransmit"):
            want = {"retransmit"}
        elif "super" in vector.name:
            want = {"unsegmented"}
        assert said == want, vector.name


@pytest.mark.parametrize("flow", FLOWS)
def test_flows__are_linked(flow: str, tmp_path: Path) -> None:
    """Packets of one RPC have one number; the response leads back to the request, and says how long it took."""
    packets = FLOWS[flow]
    capture = write(tmp_path / "flow.pcap", [v.frame for v in packets], step=0.001)
    names = ["stream", "request_in", "response_in", "response_complete_in", "response_time"]
    said = fields(capture, [f"homa.{n}" for n in names])
    ids = [v.stated["sender_id"] & ~1 for v in packets]
    seen = list(dict.fromkeys(ids))
    assert [number(row["homa.stream"][0]) for row in said] == [seen.index(i) for i in ids]
    for rpc in seen:
        mine = [n for n, i in enumerate(ids) if i == rpc]
        first = {}
        for side in (0, 1):
            first[side] = next(
                (
                    n
                    for n in mine
                    if packets[n].stated["type"] == "DATA"
                    and packets[n].stated["sender_id"] & 1 == side
                ),
                None,
            )
        for n in mine:
            for name, side in (("request_in", 0), ("response_in", 1)):
                want = [str(first[side] + 1)] if first[side] not in (None, n) else []
                assert said[n][f"homa.{name}"] == want, (flow, n, name)
        times = [(n, said[n]["homa.response_time"]) for n in mine if said[n]["homa.response_time"]]
        if first[0] is not None and first[1] is not None:
            assert len(times) == 1, flow
            last, (seconds,) = times[0]
            assert float(seconds) == pytest.approx((last - first[0]) * 0.001, abs=1e-6)


def test_vectors__filters(tmp_path: Path) -> None:
    """Display filters by the names in docs/wireshark.md."""
    capture = write(tmp_path / "v.pcap", [v.frame for v in VECTORS])
    for words, predicate in (
        ("homa", lambda s: True),
        ("homa.type == DATA", lambda s: s["type"] == "DATA"),
        ("homa.port == 32778", lambda s: 32778 in (s["sport"], s["dport"])),
        ("homa.id == 1500", lambda s: s["sender_id"] in (1500, 1501)),
        ("homa.priority == 7", lambda s: s["ip"].get("tos", s["ip"].get("traffic_class")) == 224),
        ("homa.data.retransmit == 1", lambda s: s.get("retransmit") == 1),
        (
            "homa.unscheduled == 0",
            lambda s: s["type"] == "DATA" and s["data_offset"] >= s["incoming"],
        ),
    ):
        text = tshark(capture, "-Y", words, "-T", "fields", "-e", "frame.number")
        want = [n + 1 for n, v in enumerate(VECTORS) if predicate(v.stated)]
        assert [int(x) for x in text.split()] == want and want, words


def test_vectors__info_column(tmp_path: Path) -> None:
    capture = write(tmp_path / "v.pcap", [v.frame for v in VECTORS])
    text = tshark(
        capture, "-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info"
    ).splitlines()
    said = dict(zip((v.name for v in VECTORS), text, strict=True))
    assert said["data_multi_last_v4"] == "Homa\t32771 → 4000 DATA RPC 1300, [1424..1499] of 1500"
    assert said["grant_v4"].endswith("GRANT RPC 1500, to 60000 at priority 0")
    assert said["resend_all_v4"].endswith("RESEND RPC 2600, [0..] at priority 7")
    assert said["ack_five_v4"].endswith("ACK RPC 2010, and 5 more")
