# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Where Homa is found: natively, in UDP, disguised as TCP; and what is left alone."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from shark import SCRIPT, common, data, experts, fields, ip, needs_tshark, tshark, udp, write

pytestmark = needs_tshark

NAMES = ["homa.encap", "homa.type", "homa.stream", "homa.priority"]


@pytest.mark.parametrize("v6", [False, True], ids=["v4", "v6"])
@pytest.mark.parametrize(
    ("wrap", "encap"),
    [
        (ip, "native"),
        (udp, "UDP"),
        (lambda p, **how: udp(p, 40000, 54321, **how), "UDP"),
        (lambda p, **how: udp(p, 41000, 42000, **how), "UDP"),
        (lambda p, **how: ip(p, 6, **how), "TCP"),
    ],
    ids=["native", "udp", "udp-client", "udp-other-port", "tcp"],
)
def test_encapsulation__is_found(
    wrap: Callable[..., bytes], encap: str, v6: bool, tmp_path: Path
) -> None:
    frames = [
        wrap(data(100, 50), tos=0xE0, v6=v6),
        wrap(common(0x14, 101), tos=0x40, v6=v6, back=True),
    ]
    rows = fields(write(tmp_path / "c.pcap", frames), NAMES)
    assert [r["homa.encap"] for r in rows] == [[encap], [encap]]
    assert [int(r["homa.type"][0], 0) for r in rows] == [0x10, 0x14]
    assert [r["homa.priority"] for r in rows] == [["7"], ["2"]]
    # A datagram back between other ports than the first one's, swapped, is another peer's.
    ports = [
        f[-len(p) - 8 : -len(p) - 4]
        for f, p in zip(frames, (data(100, 50), common(0x14, 101)), strict=True)
    ]
    same = encap != "UDP" or ports[0][:2] == ports[1][2:]
    assert [r["homa.stream"] for r in rows] == [["0"], ["0" if same else "1"]]


def test_udp__peers_behind_one_address_are_told_apart(tmp_path: Path) -> None:
    """The same id from two ports: two RPCs, and each response finds its own."""
    frames = [udp(data(100, 9), 40000), udp(data(100, 9), 40001),
              udp(data(101, 9, sport=4000, dport=32768), dport=40001, back=True),
              udp(data(101, 9, sport=4000, dport=32768), dport=40000, back=True)]  # fmt: skip
    rows = fields(write(tmp_path / "c.pcap", frames), ["homa.stream", "homa.request_in"])
    assert [r["homa.stream"] for r in rows] == [["0"], ["1"], ["1"], ["0"]]
    assert [r["homa.request_in"] for r in rows] == [[], [], ["2"], ["1"]]


@pytest.mark.parametrize("size", [1, 100, 1424, 8000])
@pytest.mark.parametrize("last", [0, 1, 50])
def test_udp__many_packets_in_one_datagram(size: int, last: int, tmp_path: Path) -> None:
    """What a capture shows of UDP_SEGMENT and UDP_GRO: packets of one size, perhaps a shorter one."""
    length = 5 * size + min(last, size - 1)
    offsets = range(0, length, size)
    pieces = [data(100, length, n, min(size, length - n), incoming=0) for n in offsets]
    reply = udp(data(101, 1, sport=4000, dport=32768), back=True)
    capture = write(tmp_path / "c.pcap", [udp(b"".join(pieces)), reply])
    rows = fields(
        capture, ["homa.offset", "homa.payload_length", "homa.stream", "homa.request_complete_in"]
    )
    assert rows[0]["homa.offset"] == [str(n) for n in offsets]
    assert rows[0]["homa.payload_length"] == [str(min(size, length - n)) for n in offsets]
    assert set(rows[0]["homa.stream"]) == {"0"}
    assert rows[1]["homa.request_complete_in"] == ["1"]
    assert experts(capture) == [set(), set()]
    assert f"({len(offsets)} packets)" in tshark(capture)


@pytest.mark.parametrize("behind", [0x11, 0x14, 0x18])
def test_udp__control_packets_in_one_datagram(behind: int, tmp_path: Path) -> None:
    """A host sends what goes to one peer at once, so a shorter packet of any RPC is behind CUTOFFS."""
    size = {0x11: 33, 0x14: 28, 0x18: 80}
    first, others = (0x18, behind) if size[behind] > 62 else (0x15, behind)
    length = {0x15: 62, 0x18: 80}[first]
    pieces = [common(first, 100), common(others, 102, sport=32770, dport=4001)]
    pieces[0] += bytes(length - len(pieces[0]))
    pieces[1] += bytes(size[behind] - len(pieces[1]))
    capture = write(tmp_path / "c.pcap", [udp(b"".join(pieces))])
    (row,) = fields(capture, ["homa.type", "homa.id"])
    assert row["homa.type"] == [f"{first:#x}", f"{others:#x}"]
    assert row["homa.id"] == ["100", "102"]
    assert "trailer" not in set().union(*experts(capture))
    assert "(2 packets)" in tshark(capture)


def test_udp__others_are_left_alone(tmp_path: Path) -> None:
    """On 54321 what is no Homa, and elsewhere what only resembles it."""
    almost = bytearray(data(100, 9))
    almost[13] = 2
    unknown = common(0x55, 100)
    frames = [udp(b"\x00" * 60), udp(b"hello"), udp(bytes(almost), 1, 2), udp(unknown, 1, 2)]
    rows = fields(write(tmp_path / "c.pcap", frames), ["homa.type", "_ws.col.Protocol"])
    assert [r["homa.type"] for r in rows] == [[], [], [], []]
    assert [r["_ws.col.Protocol"] for r in rows if r["_ws.col.Protocol"] != ["Homa"]] == [
        ["UDP"]
    ] * 3


def tcp(flags: int, payload: bytes = b"", sequence: int = 1, back: bool = False) -> bytes:
    ports = (80, 40000) if back else (40000, 80)
    return ip(
        struct.pack(">HHIIBBHHH", *ports, sequence, 0, 0x50, flags, 1000, 0, 0) + payload,
        6,
        back=back,
    )


def test_tcp__ordinary_segments_look_as_without_the_script(tmp_path: Path) -> None:
    """Also one with SYN and RST, and one whose urgent pointer is ours."""
    odd = bytearray(tcp(0x10, b"x"))
    odd[20 + 18 : 20 + 20] = b"\xb9\x7d"
    frames = [
        tcp(2),
        tcp(0x12, back=True),
        tcp(0x10),
        tcp(0x18, b"GET / HTTP/1.1\r\n\r\n"),
        tcp(6),
        bytes(odd),
    ]
    capture = write(tmp_path / "c.pcap", frames)
    same = ["-T", "fields", *(w for n in ("tcp.stream", "tcp.seq", "tcp.flags", "http.request.method", "_ws.col.Info",
                                          "_ws.col.Protocol", "tcp.analysis.flags") for w in ("-e", n))]  # fmt: skip
    assert tshark(capture, *same) == tshark(capture, *same, script=False)
    assert "HTTP" in tshark(capture)


def test_tcp__cut_off_header_is_no_error_of_ours(tmp_path: Path) -> None:
    segment = tcp(0x10)
    frames = [segment[: 20 + n] for n in range(20)]
    capture = write(tmp_path / "c.pcap", frames * 2, [len(segment)] * 20 + [len(f) for f in frames])
    assert not any("lua" in said for said in experts(capture))
    rows = fields(capture, ["tcp.srcport", "tcp.dstport", "tcp.seq"])
    assert [bool(r["tcp.srcport"]) for r in rows[4:20]] == [True] * 16


def test_preferences__switch_recognition_off(tmp_path: Path) -> None:
    frames = [
        ip(data(100, 9), 6),
        udp(data(102, 9), 1, 2),
        udp(data(104, 9), 7000, 7000),
        udp(data(106, 9)),
    ]
    capture = write(tmp_path / "c.pcap", frames)
    off = ["-o", "homa.tcp:FALSE", "-o", "homa.any_port:FALSE", "-o", "homa.ports:7000-7001"]
    rows = fields(capture, ["homa.encap", "homa.id"], *off)
    assert [r["homa.encap"] for r in rows] == [[], [], ["UDP"], []]
    rows = fields(capture, ["homa.encap"])
    assert [r["homa.encap"] for r in rows] == [["TCP"], ["UDP"], ["UDP"], ["UDP"]]


def test_rpc__reused_id_after_silence_is_another(tmp_path: Path) -> None:
    """A restarted client of the Linux module counts from the beginning again."""
    exchange = [ip(data(100, 9)), ip(data(101, 9, sport=4000, dport=32768), back=True)]
    names = ["homa.stream", "homa.request_in"]
    soon = fields(write(tmp_path / "a.pcap", exchange * 2, step=0.1), names)
    assert [r["homa.stream"] for r in soon] == [["0"]] * 4
    late = fields(write(tmp_path / "b.pcap", exchange * 2, step=2), names)
    assert [r["homa.stream"] for r in late] == [["0"], ["0"], ["1"], ["1"]]
    assert late[3]["homa.request_in"] == ["3"]


def test_extension__bits_and_limit(tmp_path: Path) -> None:
    packets = [
        data(100, 9),
        data(102, 9, ext=1, limit=2),
        data(104, 9, ext=2),
        data(106, 9, ext=0xFC),
    ]
    bits = [f"homa.data.ext.{name}" for name in ("incast", "congested", "reject", "left")]
    names = [*bits, "homa.data.resp_limit_kib"]
    rows = fields(write(tmp_path / "c.pcap", [ip(p) for p in packets]), names)
    said = [[int(r[n][0] in ("1", "True")) for n in bits] for r in rows]
    assert said == [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]]
    assert [r[names[4]] for r in rows] == [["0"], ["2"], ["0"], ["0"]]


def test_extension__time_left(tmp_path: Path) -> None:
    """Bytes 14 and 15 are a time with the bit and from a client, and nothing else is."""
    codes = [1, 0x07FF, 0x0C00, 0xFFFF]  # mantissa and shift of units of 1024 ns
    packets = [data(100 + 2 * i, 9, ext=8) for i in range(4)]
    frames = [p[:14] + c.to_bytes(2, "big") + p[16:] for p, c in zip(packets, codes, strict=True)]
    others = [data(120, 9, ext=8), data(122, 9, ext=4), data(125, 9, ext=8)]
    frames += [others[0], *(p[:14] + b"\x12\x34" + p[16:] for p in others[1:])]
    rows = fields(write(tmp_path / "c.pcap", [ip(f) for f in frames]), ["homa.time_left"])
    times = [float(r["homa.time_left"][0]) for r in rows[:4]]
    want = [u * 1024e-9 for u in (1, 2047, 1024 << 1, 2047 << 31)]
    assert times == pytest.approx(want, rel=1e-6)
    assert [r["homa.time_left"] for r in rows[4:]] == [[], [], []]


def test_plugin_folder__three_files_are_enough(tmp_path: Path) -> None:
    """Wireshark loads each file of the folder, in the order of their names; docs/wireshark.md."""
    folder = tmp_path / ".local/lib/wireshark/plugins"
    folder.mkdir(parents=True)
    for name in ("homa.lua", "homa_rpcs.lua", "homa_wire.lua"):
        shutil.copy(SCRIPT.parent / name, folder)
    capture = write(tmp_path / "c.pcap", [udp(data(100, 50)), udp(data(101, 50), back=True)])
    text = tshark(capture, "-T", "fields", "-e", "homa.type", "-e", "homa.stream", script=False)
    assert text.splitlines() == ["0x10\t0"] * 2
