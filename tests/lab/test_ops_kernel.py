# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""./homa ss, top and trace of the kernel's module, from what a guest with the module once said.

tests/data/ops/kernel: /proc/net/homa_metrics twice, netlink dumps (tests/vm/record.c), lines of trace_pipe,
all under homa-bench between two namespaces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.errors import LabError
from tools import kernel, kernel_trace, netlink, rates, screen
from tools.cli import main
from tools.filters import Filter
from tools.records import DELIVER, END, RX, SUBMIT, TX, Record, packet
from ops_fake import homad, line, snapshot

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/ops/kernel"
DIAG = (ROOT / "host/kernel/observe/homa_diag.h").read_text()
COMMANDS = {
    netlink.SOCKS: "socks",
    netlink.RPCS: "rpcs",
    netlink.PEERS: "peers",
    netlink.DEVS: "devs",
}


def dump(command: int) -> Iterator[bytes]:
    for text in (DATA / "netlink").read_text().splitlines():
        name, octets = text.split()
        if name == COMMANDS[command]:
            for kind, body in netlink.messages(bytes.fromhex(octets)):
                if kind != 3:
                    yield body[4:]


def everything(command: int) -> list[dict]:
    return [netlink.parse(body) for body in dump(command)]


def whose() -> dict[int, tuple[int, str]]:
    return {
        sock["inode"]: (100 + n, f"bench-{n}") for n, sock in enumerate(everything(netlink.SOCKS))
    }


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with the module in place of this one."""
    readings = ["before", "after"]

    class Fake(kernel.KernelSource):
        def __init__(self) -> None:
            def read() -> str:
                return (
                    DATA / f"metrics_{readings.pop(0) if len(readings) > 1 else readings[0]}"
                ).read_text()

            super().__init__(dump, read, whose)

    monkeypatch.setattr("tools.cli.KernelSource", Fake)
    monkeypatch.setattr("tools.cli.loaded", lambda: True)


def tool(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = main(list(argv))
    said = capsys.readouterr()
    return status, said.out, said.err


# -- what the module says


def test_netlink__names_are_the_headers() -> None:
    found = re.findall(r"^\tHOMA_DIAG_A_(\w+),", DIAG, re.M)
    assert found[:2] == ["UNSPEC", "PAD"] and found[-1] == "COUNT"
    assert [name.lower() for name in found[2:-1]] == list(netlink.NAMES)
    numbers = dict(re.findall(r"^\tHOMA_DIAG_(SOCKS|RPCS|PEERS|DEVS) = (\d)", DIAG, re.M))
    assert {name.lower(): int(n) for name, n in numbers.items()} == {
        v: k for k, v in COMMANDS.items()
    }


def test_netlink__phases_are_the_engines() -> None:
    text = (ROOT / "engine/homa/homa_look.h").read_text()
    body = re.search(r"enum homa_look_phase \{(.*?)\}", text, re.S)
    assert body
    names = [n.lower().replace("_", "-") for n in re.findall(r"HOMA_LOOK_(\w+)", body[1])]
    assert [n for n in names if n != "phases"] == list(kernel.PHASES)


def test_netlink__every_kind_of_value() -> None:
    socks, peers, devs = (
        everything(netlink.SOCKS),
        everything(netlink.PEERS),
        everything(netlink.DEVS),
    )
    assert socks and all(s["family"] == 10 and s["region_bytes"] == 32 << 20 for s in socks)
    assert {p["peer"] for p in peers} == {"10.0.0.2", "fd00::2"}
    assert all(len(p["cutoffs"]) == 8 for p in peers)
    assert devs[0]["ifname"] == "va" and devs[0]["mtu"] == 1500
    assert all(r["error"] == 0 and r["id"] > 1 << 32 for r in everything(netlink.RPCS))


def test_netlink__of_a_newer_module_and_a_damaged_answer() -> None:
    newer = (
        b"\x06\x00" + (900).to_bytes(2, "little") + b"\1\2\0\0" + b"\x08\x00\x03\x00" + b"\5\0\0\0"
    )
    assert netlink.parse(newer) == {"uid": 5}
    with pytest.raises(LabError, match="cut off"):
        netlink.parse(b"\x20\x00\x03\x00\1\2\3\4")
    with pytest.raises(LabError, match="cut off"):
        list(netlink.messages(b"\xff\0\0\0" + b"\0" * 12))


def test_metrics__all_lines() -> None:
    found = kernel.metrics((DATA / "metrics_after").read_text())
    assert len(found) == len((DATA / "metrics_after").read_text().splitlines())
    assert found["requests_sent"] > 0 and found["socks"] == 2


def test_metrics__of_another_module() -> None:
    other = kernel.KernelSource(dump, lambda: "core 0\nrtt_usecs 12 something\n", dict)
    with pytest.raises(LabError, match="not of our module"):
        other.ask("snapshot")


def test_owners__by_descriptors(tmp_path: Path) -> None:
    for pid, links in {
        "7": ["socket:[11]", "pipe:[3]"],
        "12": ["socket:[11]", "socket:[15]"],
    }.items():
        (tmp_path / pid / "fd").mkdir(parents=True)
        (tmp_path / pid / "comm").write_text(f"prog-{pid}\n")
        for number, target in enumerate(links):
            (tmp_path / pid / "fd" / str(number)).symlink_to(target)
    (tmp_path / "99").mkdir()
    (tmp_path / "uptime").touch()
    assert kernel.owners(tmp_path) == {11: (7, "prog-7"), 15: (12, "prog-12")}


# -- ss and top


def test_ss__everything(module: None, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = tool(capsys, "ss", "--all", "--kernel")
    assert (status, err) == (0, "")
    for word in (
        "bench-0",
        "client",
        "32M",
        "10.0.0.2 4000",
        "outgoing",
        "va",
        "fd00::2",
        "kernel",
    ):
        assert word in out, out


def test_ss__json_and_filters(module: None, capsys: pytest.CaptureFixture[str]) -> None:
    rpcs = everything(netlink.RPCS)
    _, out, _ = tool(capsys, "ss", "-r", "--json", "--kernel")
    found = json.loads(out)["rpcs"]
    assert [r["rpc"] for r in found] == [r["id"] for r in rpcs]
    _, out, _ = tool(capsys, "ss", "-r", "--json", "--kernel", "--peer", "10.0.0.2")
    assert len(json.loads(out)["rpcs"]) == sum(r["peer"] == "10.0.0.2" for r in rpcs)
    _, out, _ = tool(capsys, "ss", "-r", "--json", "--kernel", "--app", "bench-1")
    assert all(r["name"] == "bench-1" for r in json.loads(out)["rpcs"])
    _, out, _ = tool(capsys, "ss", "-p", "--json", "--kernel")
    assert [p["via"] for p in json.loads(out)["peers"]] == ["va", "va"]


def test_ss__disguised_peers_and_devices_that_went() -> None:
    peers = [
        kernel._peer({"peer": p, "encap": e}, {})
        for p, e in (("10.0.0.1", 6), ("fd00::1", 54321), ("::1", 0))
    ]
    assert [p["peer"] for p in peers] == ["10.0.0.1:tcp", "[fd00::1]:54321", "::1"]
    assert kernel._port({"ifindex": 7})["name"] == "#7"


def test_top__once(module: None, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = tool(capsys, "top", "--once", "--kernel", "--interval", "0.1")
    assert (status, err) == (0, "")
    for word in ("homa.ko", "bench-0", "handed over", "to send", "va"):
        assert word in out, out
    assert "thread" not in out


def test_top__rates_and_json(module: None, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = tool(capsys, "top", "--once", "--json", "--kernel", "--interval", "0.1")
    picture = json.loads(out)
    before, after = (
        kernel.metrics((DATA / f"metrics_{n}").read_text()) for n in ("before", "after")
    )
    seconds = (after["time_ns"] - before["time_ns"]) / 1e9
    assert picture["engine"]["requests_sent"] == pytest.approx(
        (after["requests_sent"] - before["requests_sent"]) / seconds
    )
    assert len(picture["sockets"]) == 2 and picture["apps"] == []


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (40, 8)])
@pytest.mark.parametrize("sort", ["r", "b", "o"])
def test_top__fits_the_window(width: int, height: int, sort: str) -> None:
    source = kernel.KernelSource(dump, (DATA / "metrics_after").read_text, whose)
    picture = source.ask("snapshot")
    shown = screen.lines(rates.between(picture, picture), width, height, sort)
    assert len(shown) <= height and all(len(row.plain) <= width for row in shown)


# -- who is asked


def test_choice__homad_first_then_the_kernel(
    module: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = {"snapshot": [line(snapshot("before")), line(snapshot("after"))]}
    with homad(tmp_path / "m", answers) as path:
        monkeypatch.setenv("HOMA_MONITOR", path)
        assert "raw" in tool(capsys, "ss")[1]
        assert "bench-0" in tool(capsys, "ss", "--kernel")[1]
    monkeypatch.setenv("HOMA_MONITOR", str(tmp_path / "none"))
    assert "bench-0" in tool(capsys, "ss")[1]
    # A socket that is named is meant.
    status, _, err = tool(capsys, "ss", "--monitor", str(tmp_path / "none"))
    assert status == 1 and "no homad answers" in err
    status, _, err = tool(capsys, "ss", "--kernel", "--monitor", "x")
    assert status == 2 and "one of them" in err


def test_choice__neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tools.cli.loaded", lambda: False)
    monkeypatch.setattr("tools.kernel.loaded", lambda: False)
    monkeypatch.setenv("HOMA_MONITOR", str(tmp_path / "none"))
    status, _, err = tool(capsys, "top", "--once")
    assert status == 1 and "no homad answers" in err and err.count("\n") == 1
    status, _, err = tool(capsys, "top", "--once", "--kernel")
    assert status == 1 and "load its module" in err and err.count("\n") == 1


# -- trace


def trace_lines() -> list[str]:
    return (DATA / "trace").read_text().splitlines()


def converted(wanted: Filter, lines: list[str], netns: int = 0) -> list[Record]:
    found: list[Record] = []
    converter = kernel_trace.Converter(found.append, wanted, 0, netns)
    for one in lines:
        converter.line(one)
    return found


def test_trace__line() -> None:
    event = kernel_trace.parse(
        "   my prog-2-4711    [003] b..1.    28.104541: homa_rpc_take: id=12 response length=458 error=-110 cookie=7"
    )
    assert event
    assert (event.at_ns, event.comm, event.pid, event.name) == (
        28_104_541_000,
        "my prog-2",
        4711,
        "rpc_take",
    )
    assert (event.what, event.number("error"), event.number("none")) == ("response", -110, 0)
    assert kernel_trace.parse("# tracer: nop") is None


def test_trace__whole_life_of_an_rpc() -> None:
    records = converted(Filter(), trace_lines())
    asked = [r for r in records if r.kind == SUBMIT and r.client]
    assert asked and all(
        r.peer in ("10.0.0.2", "fd00::2") and r.length in (100, 3000) for r in asked
    )
    lives = [[r for r in records if r.rpc == a.rpc] for a in asked]
    whole = [life for life in lives if life[-1].kind == END]
    assert whole
    for life in whole:
        kinds = [r.kind for r in life]
        assert kinds[0] == SUBMIT and TX in kinds and DELIVER in kinds
        # Also events that do not say so know whose RPC it is, and with whom.
        assert {r.app for r in life} == {life[0].app} and {r.peer for r in life} == {life[0].peer}
    sent = [packet(r) for r in records if r.kind == TX]
    assert {"DATA"} <= {p.name for p in sent} and {
        p.args["bytes"] for p in sent if p.name == "DATA"
    } >= {100}


def test_trace__a_short_response_ends_when_it_is_taken() -> None:
    where = "peer=::ffff:10.0.0.2 peer_port=4000 port=41915"
    lines = [
        "  a-7 [0] b.s1. 1.1: homa_rpc_begin: id=44 port=41915 peer=::ffff:10.0.0.2 peer_port=4000 length=9 cookie=1",
        f"  b-8 [0] b.s1. 1.2: homa_rx: id=44 DATA {where} len=66 verdict=message offset=0 fresh=10 whole=1 prio=6 ifindex=2 netns=1",
        "  b-8 [0] b.s1. 1.3: homa_rpc_end: id=44",
        "  a-7 [0] ..... 1.4: homa_rpc_take: id=44 response length=10 error=0 cookie=1",
    ]
    records = converted(Filter(), lines)
    assert [r.kind for r in records] == [SUBMIT, RX, DELIVER, END]
    assert {r.app for r in records} == {7}


RECEIVED = (
    "          <idle>-0       [000] b.s1.    28.5: homa_rx: id=44 DATA peer=::ffff:10.0.0.2 peer_port=4000 port=41915 "
    "len=3056 verdict=data offset=0 fresh=3000 whole=1 prio=6 ifindex=2 netns=4026532118"
)


def test_trace__received_packets_and_other_namespaces() -> None:
    (one,) = converted(Filter(), [RECEIVED])
    assert (one.kind, one.peer, one.peer_port, one.own_port) == (RX, "10.0.0.2", 4000, 41915)
    assert packet(one).args == {"offset": 0, "bytes": 3000, "priority": 6}
    assert len(converted(Filter(), [RECEIVED], netns=4026532118)) == 1
    assert converted(Filter(), [RECEIVED], netns=5) == []


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [(Filter(peer="10.0.0.2"), True), (Filter(peer="10.0.0.3"), False), (Filter(port=4000), True),
     (Filter(port=41915), True), (Filter(port=1), False), (Filter(app="nobody"), False)],
)  # fmt: skip
def test_trace__filters(wanted: Filter, kept: bool) -> None:
    assert bool(converted(wanted, [RECEIVED])) == kept


def test_trace__what_was_lost_is_counted() -> None:
    (one,) = converted(Filter(), ["CPU:1 [LOST 123 EVENTS]"])
    assert one.rpc == 123


class FakeTracer:
    """Gives the recorded lines, then nothing."""

    def __init__(self, root: Path) -> None:
        self._lines: list[str] | None = trace_lines()

    def __enter__(self) -> FakeTracer:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def off(self) -> None:
        pass

    def lines(self, timeout: float) -> Iterator[str] | None:
        lines, self._lines = self._lines, None
        return iter(lines) if lines else None


def test_trace__as_text_and_timelines(
    module: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(kernel_trace, "Tracer", FakeTracer)
    monkeypatch.setattr(kernel_trace, "own_netns", lambda: 0)
    status, out, err = tool(capsys, "trace", "--kernel", "--duration", "0.01")
    assert status == 0 and re.search(r"records\n$", err)
    assert " submits 3000 bytes" in out and "DATA offset 0 bytes 3000" in out
    path = tmp_path / "x.json"
    status, _, err = tool(
        capsys, "trace", "--kernel", "--duration", "0.01", "--perfetto", str(path)
    )
    assert status == 0 and "RPCs" in err
    events = json.loads(path.read_text())["traceEvents"]
    assert any(e["ph"] == "X" and e["name"].startswith("3000 B to 10.0.0.2") for e in events)
    assert any("homa-bench (" in e["args"]["name"] for e in events if e["name"] == "process_name")


def test_trace__refusals(module: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = tool(capsys, "trace", "--kernel", "--pcap", "x.pcapng")
    assert status == 2 and "tcpdump" in err
    with pytest.raises(LabError, match="needs root"):
        kernel_trace.Tracer(tmp_path / "nothing")
    (tmp_path / "instances").mkdir()
    with pytest.raises(LabError, match="no tracepoints"):
        kernel_trace.Tracer(tmp_path)
