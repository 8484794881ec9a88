# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""tools: traces that are complete whenever they end, and timelines made of records."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from lab.errors import LabError
from tools import records
from tools.capture import Capture
from tools.files import TraceFile
from tools.lines import Lines
from tools.perfetto import TAIL, Timelines

V4 = bytes(10) + b"\xff\xff"
ROOT = Path(__file__).resolve().parents[2]


def block(kind: int, body: bytes = b"") -> bytes:
    length = 12 + len(body)
    return struct.pack("=II", kind, length) + body + struct.pack("=I", length)


def record(kind: int, rpc: int, at: int = 1000, data: bytes = b"", **fields: int) -> bytes:
    values = {
        "app": 0, "port": 0, "prio": 0, "flags": 0, "thread": 0, "length": len(data), "error": 0,
        "own_port": 1, "peer_port": 4000, "src_encap": 0, "dst_encap": 0,
    } | fields  # fmt: skip
    head = struct.pack(
        "=QQQBBBBHHIiHHHH16s16s", at, values["app"], rpc, kind, values["port"], values["prio"],
        values["flags"], len(data), values["thread"], values["length"], values["error"],
        values["own_port"], values["peer_port"], values["src_encap"], values["dst_encap"],
        V4 + bytes([10, 0, 0, 1]), V4 + bytes([10, 0, 0, 2]),
    )  # fmt: skip
    return head + data + bytes(-len(data) % 8)


def data_packet(length: int, offset: int) -> bytes:
    packet = bytearray(56)
    packet[11] = records.DATA
    struct.pack_into(">II", packet, 28, length, length)
    struct.pack_into(">I", packet, 52, offset)
    return bytes(packet)


# -- records


def test_reader__records_come_out_however_the_stream_is_cut() -> None:
    stream = b"".join(record(records.TX, 2 * i, data=b"x" * i) for i in range(1, 40))
    for step in (1, 7, 80, 100000):
        reader = records.Reader(records.BYTES)
        got = [r for at in range(0, len(stream), step) for r in reader.feed(stream[at : at + step])]
        assert [(r.rpc, len(r.data)) for r in got] == [(2 * i, i) for i in range(1, 40)]
        assert got[0].peer == "10.0.0.2"


def test_reader__another_version_is_refused() -> None:
    with pytest.raises(LabError, match="another version"):
        records.Reader(96)


def test_packet__fields_of_data() -> None:
    one = next(
        records.Reader(records.BYTES).feed(
            record(records.TX, 2, data=data_packet(5000, 1400), length=1456)
        )
    )
    what = records.packet(one)
    assert what.name == "DATA"
    assert (what.args["of"], what.args["offset"], what.args["bytes"]) == (5000, 1400, 1400)


def test_packet__cut_short_is_no_error() -> None:
    for length in range(56):
        one = next(
            records.Reader(records.BYTES).feed(
                record(records.TX, 2, data=data_packet(9, 0)[:length])
            )
        )
        records.packet(one)


# -- files


def test_capture__only_whole_blocks_are_written(tmp_path: Path) -> None:
    stream = block(0x0A0D0D0A, b"head") + b"".join(block(6, b"p" * 4 * i) for i in range(20))
    for end in range(0, len(stream), 13):
        path = tmp_path / f"{end}.pcapng"
        with TraceFile(str(path)) as out:
            capture = Capture(out)
            for at in range(0, end, 5):
                capture.feed(stream[at : min(at + 5, end)])
        written = path.read_bytes()
        assert stream.startswith(written)
        at = 0
        while at < len(written):
            at += struct.unpack_from("=I", written, at + 4)[0]
        assert at == len(written)


def test_capture__lost_packets_are_counted(tmp_path: Path) -> None:
    options = struct.pack("=HHQHHQHH", 4, 8, 100, 5, 8, 23, 0, 0)
    with TraceFile(str(tmp_path / "x")) as out:
        capture = Capture(out)
        capture.feed(block(6, b"1234") + block(5, bytes(12) + options))
    assert (capture.count, capture.lost) == (1, 23)
    assert capture.summary() == "1 packets, 23 more were lost"


def test_capture__nonsense_is_refused(tmp_path: Path) -> None:
    with TraceFile(str(tmp_path / "x")) as out, pytest.raises(LabError, match="no capture"):
        Capture(out).feed(bytes(100))


FULL = """
import resource, signal, sys
from lab.errors import LabError
from tools.files import TraceFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    with TraceFile(sys.argv[1], b"\\n]}\\n") as out:
        out.add(b'{"traceEvents":[')
        for i in range(100000):
            out.add((",\\n" if i else "").encode() + b'{"name":"' + b"x" * 90 + b'"}')
except LabError as error:
    print(error)
"""


def test_file__on_a_full_disk_it_stays_a_document(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    done = subprocess.run(
        [sys.executable, "-c", FULL, path], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "ends early" in done.stdout and done.stdout.count("\n") == 1
    document = json.loads(path.read_text())
    assert 5000 < len(document["traceEvents"]) < 20000


def test_file__is_a_document_after_every_flush(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with TraceFile(str(path), TAIL) as out:
        out.add(b'{"traceEvents":[')
        for i in range(5):
            out.add(f"{',' if i else ''}{i}".encode())
            out.flush()
            assert json.loads(path.read_text())["traceEvents"] == list(range(i + 1))


# -- timelines


def timelines(tmp_path: Path, *parts: bytes) -> tuple[list[dict], Timelines]:
    path = tmp_path / "t.json"
    apps = [
        {"app": 3, "name": "client", "pid": 9, "port": 40000},
        {"app": 4, "name": "server", "pid": 10, "port": 4000},
    ]
    with TraceFile(str(path), TAIL) as out:
        lines = Timelines(out, apps)
        for one in records.Reader(records.BYTES).feed(b"".join(parts)):
            lines.record(one)
        lines.finish()
    return json.loads(path.read_text())["traceEvents"], lines


def test_timelines__of_a_client(tmp_path: Path) -> None:
    events, lines = timelines(
        tmp_path,
        record(records.SUBMIT, 8, 1000, app=3, flags=1, length=500),
        record(records.TX, 8, 2000, data_packet(500, 0)),
        record(records.RX, 8, 5000, data_packet(700, 0)),
        record(records.DELIVER, 8, 6000, app=3, flags=1, length=700, peer_port=0),
        record(records.END, 8, 7000, app=3, flags=1, peer_port=0),
    )
    (bar,) = [e for e in events if e["ph"] == "X"]
    assert bar["name"] == "500 B to 10.0.0.2:4000"
    assert (bar["ts"], bar["dur"]) == (0, 5)
    assert bar["args"]["response_bytes"] == 700
    marks = [e["name"] for e in events if e["ph"] == "i"]
    assert marks == ["DATA sent", "DATA received"]
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {"client (9)"}
    assert lines.summary() == "1 RPCs"


def test_timelines__of_a_server_show_its_parts(tmp_path: Path) -> None:
    events, _ = timelines(
        tmp_path,
        record(records.RX, 9, 1000, data_packet(500, 0), own_port=4000, peer_port=40001),
        record(records.DELIVER, 9, 3000, app=4, length=500, own_port=4000, peer_port=40001),
        record(records.SUBMIT, 9, 8000, app=4, length=20, own_port=4000, peer_port=40001),
        record(records.END, 9, 9000, app=4, peer_port=0),
    )
    bars = {e["name"]: (e["ts"], e["dur"]) for e in events if e["ph"] == "X"}
    assert bars["500 B from 10.0.0.2:40001"] == (0, 8)
    assert bars["arriving"] == (0, 2)
    assert bars["in service"] == (2, 5)
    assert bars["reply, 20 B"] == (7, 1)


def test_timelines__rpcs_at_once_have_lanes_of_their_own(tmp_path: Path) -> None:
    parts = [record(records.SUBMIT, 2 * i, 1000 + i, app=3, flags=1) for i in range(1, 6)]
    parts += [
        record(records.DELIVER, 2 * i, 2000 + i, app=3, flags=1, peer_port=0) for i in range(1, 6)
    ]
    parts += [record(records.SUBMIT, 20, 3000, app=3, flags=1)]
    events, _ = timelines(tmp_path, *parts)
    bars = sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"])
    assert len({e["tid"] for e in bars[:5]}) == 5
    assert bars[5]["tid"] in {e["tid"] for e in bars[:5]}
    assert bars[5]["args"]["open_at_the_end"] is True


def test_timelines__thread_numbers_are_unique(tmp_path: Path) -> None:
    """Over all processes, and no process has one of them: the viewer would put them together."""
    parts = [
        record(records.SUBMIT, 100 * app + 2 * i, 1000, app=app, flags=1)
        for app in (3, 4)
        for i in range(9)
    ]
    parts += [record(records.DELIVER, 901 + 2 * i, 1000, app=4, own_port=4000) for i in range(9)]
    events, _ = timelines(tmp_path, *parts)
    lanes = {(e["tid"], e["pid"]) for e in events if e["ph"] == "X"}
    assert len(lanes) == len({tid for tid, _ in lanes}) == 27
    assert not {tid for tid, _ in lanes} & {pid for _, pid in lanes}


def test_timelines__lost_records_are_told(tmp_path: Path) -> None:
    _, lines = timelines(tmp_path, record(records.LOST, 17))
    assert lines.summary() == "0 RPCs, 17 records were lost"


def test_lines__ends_of_unwanted_rpcs_are_left_out() -> None:
    out = io.StringIO()
    lines = Lines(out, ["eth0"])
    stream = (
        record(records.TX, 2, data=data_packet(5, 0))
        + record(records.DELIVER, 4, peer_port=0)
        + record(records.DELIVER, 2, peer_port=0, length=5)
    )
    for one in records.Reader(records.BYTES).feed(stream):
        lines.record(one)
    shown = out.getvalue().splitlines()
    assert len(shown) == 2
    assert "eth0 :1 > 10.0.0.2:4000 rpc 2 DATA" in shown[0] and "gets 5 bytes" in shown[1]


def tcp_packet(flags: int, seq: int, ack: int, size: int) -> bytes:
    return struct.pack(">HHIIBBHHH", 5000, 40000, seq, ack, 5 << 4, flags, 1000, 0, 0) + bytes(size)


def test_lines__tcp() -> None:
    out = io.StringIO()
    lines = Lines(out, ["eth0"])
    ends = {"flags": records.TCP, "own_port": 5000, "peer_port": 40000}
    parts = [
        record(records.TX, 0, data=tcp_packet(0x12, 7, 9, 0), **ends),
        record(records.RX, 0, data=tcp_packet(0x58, 7, 9, 11), prio=3, **ends),
        record(records.TX, 0, data=tcp_packet(0x10, 7, 9, 0)[:12], **ends),
    ]
    for one in records.Reader(records.BYTES).feed(b"".join(parts)):
        lines.record(one)
    first, second, third = (line.split(" ", 1)[1] for line in out.getvalue().splitlines())
    assert first == "eth0 :5000 > 10.0.0.2:40000 TCP SYN,ACK seq 7 ack 9 window 1000"
    assert second.endswith(
        "< 10.0.0.1:40000 TCP PSH,ACK,ECE seq 7 ack 9 window 1000 bytes 11 congested"
    )
    assert third.endswith("TCP 12 bytes of a segment")


def test_timelines__have_no_tcp(tmp_path: Path) -> None:
    """Byte 11 of these segments would be the type of a Homa packet."""
    data = tcp_packet(0x10, 7, records.DATA, 40)
    kinds = (records.TX, records.RX, records.LOCAL)
    parts = [record(kind, 0, data=data, flags=records.TCP) for kind in kinds]
    events, lines = timelines(tmp_path, *parts)
    assert not events and lines.summary() == "0 RPCs"
