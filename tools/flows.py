# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TCP connections and listeners as lines of text: what fits into the width, as the kernel's ss
names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from tools.connection import Json
from tools.filters import STATES, user_of
from tools.text import duration, number

_INDENT = "    "


@dataclass(frozen=True)
class _Column:
    """`value`: the cell of a flow. The first `_FIXED` columns are always there."""

    name: str
    right: bool
    value: Callable[[Json], str]


def _end(address: object, port: object) -> str:
    text = str(address)
    if text in ("::", "0.0.0.0"):
        text = "*" if text == "::" else text
    return f"[{text}]:{port}" if ":" in text else f"{text}:{port}"


def _peer(flow: Json) -> str:
    return _end(flow["peer"], flow["peer_port"]) if "peer" in flow else "*"


def _process(flow: Json) -> str:
    return f"{flow['name']}/{flow['pid']}" if flow["app"] else "-"


def _time(flow: Json, name: str) -> str:
    return duration(flow[name]) if name in flow else "-"


_COLUMNS = [
    _Column("state", False, lambda f: str(f["state"])),
    _Column("recv-q", True, lambda f: str(f["recv_q"])),
    _Column("send-q", True, lambda f: str(f["send_q"])),
    _Column("local", False, lambda f: _end(f["local"], f["local_port"])),
    _Column("peer", False, _peer),
    _Column("process", False, _process),
    _Column("user", False, lambda f: user_of(int(f["uid"])) if "uid" in f else "-"),
    _Column("rtt", True, lambda f: _time(f, "rtt_ns")),
    _Column("resent", True, lambda f: str(f.get("retransmits", "-"))),
    _Column("age", True, lambda f: _time(f, "age_ns")),
]
_FIXED = 4  # with the next one, the peer, in a line of its own if there is no room for it


def lines(flows: Sequence[Json], width: int, details: bool = False) -> Iterator[str]:
    """A head, then each flow in a line, with `details` in several; at most `width` characters
    as far as addresses and names allow."""
    if not flows:
        return
    flows = sorted(flows, key=_order)
    cells = [[column.value(flow) for column in _COLUMNS] for flow in flows]
    widths = [
        max(len(column.name), *(len(row[i]) for row in cells)) for i, column in enumerate(_COLUMNS)
    ]
    shown, used = 0, -1
    for one in widths:
        used += one + 1
        if used > width:
            break
        shown += 1
    split = shown <= _FIXED
    head = [column.name for column in _COLUMNS]
    for flow, row in zip([None, *flows], [head, *cells], strict=True):
        if split:
            yield _row(row[:_FIXED], widths)
            yield _INDENT + " ".join(row[_FIXED : _FIXED + 2])
        else:
            yield _row(row[:shown], widths)
        if details and flow is not None:
            # What a narrow line has no room for.
            rest = [] if split else row[shown : _FIXED + 3]
            text = " ".join([*rest, *_details(flow)])
            yield from wrap(
                text, width, initial_indent=_INDENT, subsequent_indent=_INDENT,
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip


def _order(flow: Json) -> tuple[int, int, str, int]:
    """Listeners first, then by state, port and peer."""
    return (
        STATES.index(flow["state"]), int(flow["local_port"]), str(flow.get("peer", "")),
        int(flow.get("peer_port", 0)),
    )  # fmt: skip


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    parts = (
        cell.rjust(width) if column.right else cell.ljust(width)
        for cell, width, column in zip(cells, widths, _COLUMNS, strict=False)
    )
    return " ".join(parts).rstrip()


def _details(flow: Json) -> Iterator[str]:
    """Words as the kernel's `ss -i` has them; man homa-ss explains each."""
    if flow.get("orphan"):
        yield "orphan"
    if flow.get("timer"):
        yield f"timer:({flow['timer']},{_time(flow, 'due_ns')})"
    if flow["state"] == "listen":
        yield f"half-open:{flow['half_open']}"
    if "cwnd" not in flow:
        return
    yield from _options(flow)
    yield from _rule(flow)
    yield from _windows(flow)
    yield from _counts(flow)
    for word, name in (("lastsnd", "sent_ns"), ("lastrcv", "received_ns"), ("lastack", "heard_ns")):
        if name in flow:
            yield f"{word}:{_time(flow, name)}"


def _options(flow: Json) -> Iterator[str]:
    yield from (word for word in flow["options"])
    yield str(flow["congestion"])
    if flow["repair"] != "open":
        yield str(flow["repair"])
    yield f"wscale:{flow['snd_wscale']},{flow['rcv_wscale']}"


def _rule(flow: Json) -> Iterator[str]:
    """The `[[tcp_rule]]` that decides, by its place in homad's configuration, and what it limits."""
    if "rule" in flow:
        yield f"rule:{flow['rule']}"
    if flow.get("dscp"):
        yield f"dscp:{flow['dscp']}"
    for way in ("send", "receive"):
        if f"{way}_limit" in flow:
            waits = ",waits" if way in flow["limited"] else ""
            yield f"{way}-limit:{number(8 * flow[f'{way}_limit'])}bit/s{waits}"


def _windows(flow: Json) -> Iterator[str]:
    mss = max(1, int(flow["mss"]))
    yield f"rto:{_time(flow, 'rto_ns')}"
    if "rtt_ns" in flow:
        yield f"rtt:{_time(flow, 'rtt_ns')}/{_time(flow, 'rttvar_ns')}"
    yield f"mss:{flow['mss']} rcvmss:{flow['rcv_mss']} pmtu:{flow['pmtu']}"
    yield f"cwnd:{int(flow['cwnd']) // mss}"
    if "ssthresh" in flow:
        yield f"ssthresh:{int(flow['ssthresh']) // mss}"
    rate = flow.get("rate") or (
        int(flow["cwnd"]) * 1e9 / flow["rtt_ns"] if flow.get("rtt_ns") else 0
    )
    if rate:
        yield f"send:{number(8 * rate)}bit/s"
    yield f"snd_wnd:{flow['snd_wnd']} rcv_wnd:{flow['rcv_wnd']}"
    for word, name in (
        ("unacked", "in_flight"), ("notsent", "unsent"), ("sacked", "sacked"), ("lost", "lost"),
        ("backoff", "backoff"), ("probes", "probes"), ("keepalive_probes", "keepalive_probes"),
    ):  # fmt: skip
        if flow[name]:
            yield f"{word}:{flow[name]}"


def _counts(flow: Json) -> Iterator[str]:
    yield f"bytes_acked:{flow['bytes_acked']} bytes_received:{flow['bytes_received']}"
    yield f"segs_out:{flow['segs_out']} segs_in:{flow['segs_in']}"
    yield f"data_segs_out:{flow['data_segs_out']} data_segs_in:{flow['data_segs_in']}"
    for word, name in (
        ("retrans", "retransmits"), ("bytes_retrans", "bytes_retransmitted"),
        ("rcv_ooopack", "out_of_order"), ("gap_bytes", "gap_bytes"), ("ecn_marks", "ecn_marks"),
        ("errno", "error"),
    ):  # fmt: skip
        if flow[name]:
            yield f"{word}:{flow[name]}"
