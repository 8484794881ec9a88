# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""./homa trace against a real daemon: what is in the files is what went over the wire."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from homad import BUILD, MOST_KB, Host, keeps_little, needs_homad, needs_root, one_host, two_hosts
from tools import records
from netns import ROOT, eventually
from ops_tools import RPCS, Raw, ask, serving, snapshot, tool

pytestmark = [needs_homad, needs_root]
IN, OUT = 1, 2
TCP_RULES = """
[[tcp_rule]]
listen = [5000, 5000]
connect = [5000, 5000]
"""


class Frame:
    """A packet of a capture of raw IP: addresses, IP protocol, UDP ports, the Homa header."""

    def __init__(self, data: bytes, ns: int, length: int, interface: str, direction: int) -> None:
        self.ns, self.length, self.interface, self.direction = ns, length, interface, direction
        v4 = data[0] >> 4 == 4
        self.protocol = data[9] if v4 else data[6]
        self.src, self.dst = (data[12:16], data[16:20]) if v4 else (data[8:24], data[24:40])
        at = 20 if v4 else 40
        self.checksum_ok = not v4 or _sum(data[:20]) == 0xFFFF
        self.ip_length = struct.unpack_from(">H", data, 2)[0] if v4 else 0
        self.udp = struct.unpack_from(">HH", data, at) if self.protocol == 17 else (0, 0)
        self.homa = data[at + (8 if self.protocol == 17 else 0) :]
        self.sport, self.dport = struct.unpack_from(">HH", self.homa)
        self.type = self.homa[11]


def _sum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    return (total & 0xFFFF) + (total >> 16)


def read_capture(path: Path) -> list[Frame]:
    """A pcapng file, read without any library: every block must be whole."""
    data, at, names, frames = path.read_bytes(), 0, [], []
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        assert struct.unpack_from("=I", data, at + length - 4)[0] == length
        body = data[at + 8 : at + length - 4]
        if kind == 1:
            assert struct.unpack_from("=H", body)[0] == 101  # raw IP
            options = _options(body[8:])
            assert options[9] == b"\x09"  # nanoseconds
            names.append(options[2].decode())
        elif kind == 6:
            face, high, low, captured, whole = struct.unpack_from("=IIIII", body)
            flags = _options(body[20 + (captured + 3 & ~3) :]).get(2, bytes(4))
            frames.append(
                Frame(body[20 : 20 + captured], high << 32 | low, whole, names[face], flags[0] & 3)
            )
        at += length
    assert at == len(data)
    return frames


def _options(data: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while len(data) - at >= 4:
        code, length = struct.unpack_from("=HH", data, at)
        found[code] = data[at + 4 : at + 4 + length]
        at += 4 + (length + 3 & ~3)
    return found


class Tracing:
    """./homa trace in the background; a context that ends it with Ctrl-C."""

    def __init__(self, host: Host, *argv: str) -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "tools", "trace", "--monitor", str(host.homad.monitor), *argv],
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.status, self.out, self.err = -1, "", ""
        eventually(lambda: snapshot(host.homad)["homad"]["tracing"] == self._popen.pid, 20)

    def __enter__(self) -> Tracing:
        return self

    def __exit__(self, *_: object) -> None:
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGINT)
        self.out, self.err = self._popen.communicate(timeout=60)
        self.status = self._popen.returncode


@pytest.mark.sanitized
def test_pcap__native_packets_of_one_rpc(tmp_path: Path) -> None:
    """Client side: DATA out, DATA in, then an ACK at the latest after a while; all with our addresses."""
    path = tmp_path / "x.pcapng"
    with two_hosts() as (a, b), serving(b):
        ask(a, b, 1)
        before = time.time_ns()
        with Tracing(a, "--pcap", str(path)) as tracing:
            ask(a, b, 1, 3000, 1)
        assert tracing.status == 0 and "packets" in tracing.err, tracing.err
        frames = [f for f in read_capture(path) if f.protocol == 146]
        sent = [f for f in frames if f.type == records.DATA and f.direction == OUT]
        got = [f for f in frames if f.type == records.DATA and f.direction == IN]
        assert len(sent) == 3 and len(got) == 3, [(f.type, f.direction) for f in frames]
        ours, theirs = (bytes(map(int, h.v4.split("."))) for h in (a, b))
        for f in sent:
            assert (f.src, f.dst, f.dport) == (ours, theirs, 4000)
            assert struct.unpack_from(">I", f.homa, 28)[0] == 3000
        for f in got:
            assert (f.src, f.dst, f.sport) == (theirs, ours, 4000)
        for f in frames:
            assert f.checksum_ok and f.ip_length == f.length
            assert before <= f.ns <= time.time_ns()
            assert f.interface not in ("udp", "local")
        assert sum(f.length - 20 - 56 for f in sent) == 3000
        assert [f.ns for f in frames] == sorted(f.ns for f in frames)


def test_pcap__udp_has_ports(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    with two_hosts(arguments=["--udp-only"]) as (a, b), serving(b):
        with Tracing(a, "--pcap", str(path)):
            ask(a, b, 5)
        frames = read_capture(path)
        assert frames
        ours = bytes(map(int, a.v4.split(".")))
        for f in frames:
            assert f.protocol == 17 and f.udp == (54321, 54321) and f.interface == "udp"
            assert (f.src if f.direction == OUT else f.dst) == ours


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_pcap__tshark_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    with two_hosts() as (a, b), serving(b):
        with Tracing(a, "--pcap", str(path)):
            ask(a, b, 5)
    done = subprocess.run(
        ["tshark", "-r", str(path), "-Y", "ip.proto == 146", "-T", "fields", "-e", "ip.src", "-e",
         "frame.interface_name"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    rows = {tuple(row.split("\t")) for row in done.stdout.splitlines()}
    assert {src for src, _ in rows} == {"10.9.0.1", "10.9.0.2"}, done.stdout + done.stderr


def test_pcap__snap_and_payload(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    with two_hosts() as (a, b), serving(b):
        with Tracing(a, "--pcap", str(path), "--snap", "28"):
            ask(a, b, 1, 1000)
        assert {len(f.homa) for f in read_capture(path)} == {28}
        with Tracing(a, "--pcap", str(path), "--snap", "2000"):
            ask(a, b, 1, 1000)
        whole = [f for f in read_capture(path) if f.type == records.DATA]
        assert whole and all(len(f.homa) == 56 + 1000 for f in whole)


@pytest.mark.parametrize("filtered", [["--port", "4001"], ["--app", "2"]])
def test_pcap__filters(tmp_path: Path, filtered: list[str]) -> None:
    """Two servers; only the packets of the second are kept. (The second to attach is number 2.)"""
    path = tmp_path / "x.pcapng"
    with two_hosts() as (a, b), serving(b, 4000), serving(b, 4001):
        with Tracing(b, "--pcap", str(path), *filtered):
            ask(a, b, 3, port=4000)
            ask(a, b, 3, port=4001)
        ports = {p for f in read_capture(path) for p in (f.sport, f.dport) if p < 0x8000}
        assert ports == {4001}


def test_pcap__between_applications_of_one_host(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    with one_host() as host, serving(host):
        with Tracing(host, "--pcap", str(path)):
            ask(host, host, 2)
        frames = read_capture(path)
        assert {f.interface for f in frames} == {"local"}
        assert len([f for f in frames if f.type == records.DATA]) == 4


def conversation(frames: list[Frame], port: int) -> dict[int, tuple[str, bytes]]:
    """By direction: flags that matter in the order of segments, and the bytes without repetitions."""
    found: dict[int, tuple[str, bytes]] = {}
    for way in {f.direction for f in frames}:
        flags, data, first = "", b"", -1
        for f in (f for f in frames if f.direction == way):
            assert f.protocol == 6 and port in (f.sport, f.dport)
            seq, offset, bits = (
                struct.unpack_from(">I", f.homa, 4)[0], f.homa[12] >> 4, f.homa[13],
            )  # fmt: skip
            first = seq + 1 if bits & 2 else first
            flags += "S" if bits & 2 else "F" if bits & 1 else "R" if bits & 4 else ""
            payload = f.homa[4 * offset :]
            if payload and (seq - first) % 2**32 == len(data):
                data += payload
        found[way] = flags, data
    return found


@pytest.mark.sanitized
@pytest.mark.parametrize("family", ["v4", "v6"])
def test_pcap__tcp_between_hosts(tmp_path: Path, family: str) -> None:
    """tcpdump does not see them: handshake, all bytes each way, and the end, with real addresses."""
    path, size = tmp_path / "x.pcapng", 5000
    with two_hosts(TCP_RULES) as (a, b), streams(b):
        with Tracing(a, "--pcap", str(path), "--snap", "9000"):
            at = f"[{b.v6}]:5000" if family == "v6" else f"{b.v4}:5000"
            done = a.run([BUILD / "examples" / "stream-echo-client", at, str(size)])
            assert done.stdout == f"{size} of {size} bytes came back\n"
        frames = [f for f in read_capture(path) if f.protocol == 6]
        found = conversation(frames, 5000)
        assert set(found) == {IN, OUT}
        for flags, data in found.values():
            assert flags.startswith("S") and len(data) == size
        assert found[IN][1] == found[OUT][1]
        ours, theirs = (socket.inet_pton(*_family(getattr(h, family))) for h in (a, b))
        for f in frames:
            assert (f.src, f.dst) == ((ours, theirs) if f.direction == OUT else (theirs, ours))
            assert f.interface not in ("udp", "local")


def test_trace__tcp_within_a_host(tmp_path: Path) -> None:
    """What never is a packet is seen, too, once; and only for whom it is wanted."""
    path, size = tmp_path / "x.pcapng", 5000
    with one_host(TCP_RULES) as host, streams(host):
        talk = [BUILD / "examples" / "stream-echo-client", f"{host.v4}:5000", str(size)]
        with Tracing(host, "--pcap", str(path), "--snap", "9000"):
            assert host.run(talk).stdout == f"{size} of {size} bytes came back\n"
        frames = [f for f in read_capture(path) if f.protocol == 6]
        assert {f.interface for f in frames} == {"local"}
        for part in (
            [f for f in frames if 5000 == f.sport],
            [f for f in frames if 5000 == f.dport],
        ):
            flags, data = conversation(part, 5000)[0]
            assert flags.startswith("S") and len(data) == size
        with Tracing(host, "--app", "1") as wanted:
            host.run(talk)
        lines = [line for line in wanted.out.splitlines() if " TCP " in line]
        assert any(" bytes " in line for line in lines), wanted.out
        with Tracing(host, "--app", "99") as unwanted:
            host.run(talk)
        assert " TCP " not in unwanted.out


def _family(address: str) -> tuple[int, str]:
    return (socket.AF_INET6 if ":" in address else socket.AF_INET), address


@contextmanager
def streams(host: Host) -> Iterator[None]:
    """An echo server on port 5000, by homa/stream.h."""
    server = host.start([BUILD / "examples" / "stream-echo-server", "5000"])
    assert server.line() == "serving port 5000"
    yield
    server.stop(signal.SIGKILL)


@pytest.mark.sanitized
def test_perfetto__every_rpc_of_both_ends(tmp_path: Path) -> None:
    paths = tmp_path / "a.json", tmp_path / "b.json"
    with two_hosts() as (a, b), serving(b):
        with Tracing(a, "--perfetto", str(paths[0])), Tracing(b, "--perfetto", str(paths[1])):
            ask(a, b, 20, 2000, 4)
        asked, served = (
            [e for e in json.loads(p.read_text())["traceEvents"] if e["ph"] == "X" and e["args"]]
            for p in paths
        )
    assert len(asked) == len(served) == 20
    for event in asked:
        assert event["name"] == "2000 B to 10.9.0.2:4000"
        assert event["args"]["response_bytes"] == 2000 and event["dur"] > 0
        assert "open_at_the_end" not in event["args"]
    ids = {int(e["args"]["rpc"]) for e in asked}
    assert {int(e["args"]["rpc"]) ^ 1 for e in served} == ids
    lanes: dict[int, float] = {}
    for event in sorted(asked, key=lambda e: e["ts"]):
        assert event["ts"] >= lanes.get(event["tid"], 0)
        lanes[event["tid"]] = event["ts"] + event["dur"]


def test_lines__without_a_file() -> None:
    with one_host() as host, serving(host):
        with Tracing(host) as tracing:
            ask(host, host, 1)
        assert tracing.status == 0
        for word in ("submits 100 bytes", "gets 100 bytes", "DATA", "local"):
            assert word in tracing.out, tracing.out


def test_one_trace_at_a_time__says_who() -> None:
    with one_host() as host:
        with Tracing(host, "--pcap", "/dev/null") as first:
            done = tool(host.homad, "trace", "--duration", "1", status=1)
            assert f"process {first._popen.pid} is tracing already" in done.stderr
        tool(host.homad, "trace", "--duration", "0.1")


def test_homad_dies__the_capture_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    with one_host() as host, serving(host):
        with Tracing(host, "--pcap", str(path)) as tracing:
            ask(host, host, 20)
            eventually(lambda: path.exists() and path.stat().st_size > 2000)
            host.homad.kill()
            eventually(lambda: tracing._popen.poll() is not None)
        assert tracing.status == 1 and "went away" in tracing.err and tracing.err.count("\n") == 1
        assert len([f for f in read_capture(path) if f.type == records.DATA]) == 40


def test_full_disk__the_capture_is_whole(tmp_path: Path) -> None:
    """The tool ends with a sentence, and homad does not even notice."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=True)
    try:
        path = disk / "x.pcapng"
        with one_host() as host, serving(host):
            client = host.start([RPCS, "ask", host.v4, "4000", "0", "1000", "4"])
            with Tracing(host, "--pcap", str(path), "--snap", "2000") as tracing:
                eventually(lambda: tracing._popen.poll() is not None, 30)
            assert tracing.status == 1 and "ends early" in tracing.err and "No space" in tracing.err
            assert len(read_capture(path)) > 100
            assert client.running()
            client.stop(signal.SIGKILL)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.sanitized
def test_reader_that_does_not_read__loses_records_and_slows_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keeps_little(monkeypatch)
    with one_host() as host, serving(host):
        with Raw(host.homad.monitor) as raw:
            raw.send({"op": "trace", "format": "records", "snap": 4000})
            ask(host, host, 3000, 4000, 16)
            raw.send({"op": "stop"})
            head = raw.line()
            assert head["trace"] == "records"
            reader = records.Reader(head["record_bytes"])
            got = list(reader.feed(raw.read()))
        lost = sum(r.rpc for r in got if r.kind == records.LOST)
        assert lost + len(got) > 9000 and lost > 0
        assert host.homad.rss() < MOST_KB


@pytest.mark.sanitized
def test_requests_during_a_trace__neither_end_it_nor_get_into_it() -> None:
    """Only "stop" does something, and only that of the connection that traces."""
    with one_host() as host, serving(host):
        with Raw(host.homad.monitor) as raw, Raw(host.homad.monitor) as other:
            raw.send({"op": "trace", "format": "records"})
            head = raw.line()
            assert head["trace"] == "records"
            raw.send({"op": "snapshot"})
            raw.send({"op": 7})
            raw.send(b"no JSON\n")
            assert "error" in other.ask({"op": "stop"})
            # Answered after what this connection sent before was worked off.
            assert other.ask({"op": "snapshot"})["homad"]["tracing"]
            ask(host, host, 5, 2000, 1)
            raw.send({"op": "stop"})
            got = list(records.Reader(head["record_bytes"]).feed(raw.read()))
        assert all(records.RX <= r.kind <= records.LOST for r in got), {r.kind for r in got}
        assert sum(r.kind in records.PACKETS for r in got) >= 10
        with Raw(host.homad.monitor) as raw:
            raw.send({"op": "trace", "format": "records"})
            assert raw.line()["trace"] == "records"
            raw.send(b"x" * 4096)  # no more, or the end would be a reset
            assert b"at most" not in raw.read()


@pytest.mark.sanitized
def test_homad_is_stopped__while_it_is_traced_and_scraped(tmp_path: Path) -> None:
    """It ends well, and so does the trace."""
    path = tmp_path / "x.json"
    with one_host() as host, serving(host):
        with Tracing(host, "--perfetto", str(path)) as tracing, Raw(host.homad.monitor) as raw:
            assert "homad" in raw.ask({"op": "snapshot"})
            ask(host, host, 20)
            time.sleep(0.2)  # that it is read; the file is made at the end
            assert host.homad.stop() == 0
            eventually(lambda: tracing._popen.poll() is not None)
        assert tracing.status == 1 and "went away" in tracing.err
        assert not host.homad.monitor.exists()
        events = json.loads(path.read_text())["traceEvents"]
        assert len([e for e in events if e["ph"] == "X" and "rpc" in e["args"]]) == 40
