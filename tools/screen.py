# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The picture of `./homa top` as lines of text: what fits into the window, most important first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.text import Text

from tools.rates import App, Port, Rates, Socket, Tcp, Thread
from tools.text import age, duration, number, size

_SOCKET_SORTS: dict[str, Callable[[Socket], float]] = {
    "r": lambda sock: sock.port,
    "b": lambda sock: sock.tx_bytes,
    "o": lambda sock: sock.rpcs,
}
SORTS: dict[str, Callable[[App], float]] = {
    "r": lambda app: app.requests + app.replies,
    "b": lambda app: sum(_bytes(app)),
    "o": lambda app: app.rpcs + app.streams,
}
SORT_NAMES = {"r": "rate", "b": "bytes", "o": "open RPCs and streams"}


@dataclass(frozen=True)
class Column:
    """`width` below 0: left-aligned. Columns that do not fit any more are left out."""

    name: str
    width: int


def lines(rates: Rates, width: int, height: int, sort: str = "r", keys: bool = True) -> list[Text]:
    """At most `height` lines of at most `width` characters."""
    if rates.kernel:
        return _kernel(rates, width, height, sort, keys)
    head = [*_head(rates, width), Text()]
    ports = _table(_PORT, [_port(p) for p in rates.ports], width)
    room = height - len(head) - len(ports) - 1 - 3 - 1
    threads = _table(_THREAD, [_thread(t) for t in _worth(rates.threads, room // 2)], width)
    apps = sorted(rates.apps, key=lambda a: (-SORTS[sort](a), a.app))
    result = [*head, *threads, Text(), *ports, Text()]
    room = height - len(result) - 2
    shown = apps[: max(0, room)]
    result += _table(_APP, [_app(a) for a in shown], width)
    if len(apps) > len(shown):
        text = f"… and {len(apps) - len(shown)} more applications"
    elif not apps:
        text = "no application is attached"
    else:
        text = ""
    if keys:
        text += ("   " if text else "") + f"q quits; r, b, o sort, now by {SORT_NAMES[sort]}"
    result.append(Text(text[:width], style="dim"))
    return result[:height]


def _kernel(rates: Rates, width: int, height: int, sort: str, keys: bool) -> list[Text]:
    """The same of the kernel's module, which has neither threads nor counters of each socket."""
    result = [*_head(rates, width), Text()]
    result += [*_table(_DEVICE, [_device(p) for p in rates.ports], width), Text()]
    socks = sorted(rates.sockets, key=lambda s: (-_SOCKET_SORTS[sort](s), s.socket))
    shown = socks[: max(0, height - len(result) - 2)]
    result += _table(_SOCKET, [_socket(s) for s in shown], width)
    text = f"… and {len(socks) - len(shown)} more sockets" if len(socks) > len(shown) else ""
    if keys:
        names = {"r": "port", "b": "bytes to send", "o": "open RPCs"}
        text += ("   " if text else "") + f"q quits; r, b, o sort, now by {names[sort]}"
    result.append(Text(text[:width], style="dim"))
    return result[:height]


def _worth(threads: Sequence[Thread], room: int) -> Sequence[Thread]:
    """With many threads the active ones, busiest first."""
    if len(threads) <= max(1, room):
        return threads
    return sorted(threads, key=lambda t: (not t.active, -t.busy))[: max(1, room)]


def _head(rates: Rates, width: int) -> list[Text]:
    homad, e, lat = rates.homad, rates.engine, rates.latency
    local = sum(t.direct for t in rates.threads)  # both asked and served here
    if rates.kernel:
        first = f"homa.ko (Linux {rates.kernel})  {homad['sockets']} sockets  "
    else:
        first = (
            f"homad {homad['version']} ({homad['mode']}, pid {homad['pid']})  "
            f"up {age(homad['uptime_ns'] // 10**9)}  {homad['attachments']} attached  "
        )
    first += f"{homad['rpcs']} RPCs  {homad['peers']} peers"
    rows = [
        (
            "RPCs/s",
            f"asked {number(e['requests_sent'] + local)}  "
            f"served {number(e['replies_sent'] + local)}  within {number(local)}  "
            f"failed {number(e['rpcs_failed'])}  timeouts {number(e['rpc_timeouts'])}",
        ),
        (
            "latency",
            f"p50 {duration(lat.p50)}  p90 {duration(lat.p90)}  p99 {duration(lat.p99)}  "
            f"p99.9 {duration(lat.p999)}  max {duration(lat.max)}",
        ),
        (
            "bytes/s",
            f"in {number(e['rx_fresh_bytes'])}  out {number(e['tx_bytes'])}  "
            f"again {number(e['tx_retransmit_bytes'])}  dropped {number(_drops(e))} packets",
        ),
        (
            "grants/s",
            f"given {number(e['tx_grant'])}  got {number(e['rx_grant'])}  "
            f"limited {number(e['grant_limited'])}  resends {number(e['tx_resend'])}  "
            f"waiting for buffers {number(e['buffer_waits'])}",
        ),
    ]
    if rates.kernel:
        rows[1] = "receives", _receives(e)
    if rates.tcp:
        rows.append(("TCP", _tcp(rates.tcp)))
    result = [Text(first[:width], style="bold")]
    for name, text in rows:
        line = Text(f"{name:<9}", style="cyan")
        line.append(text[: max(0, width - 9)], style="default")
        result.append(line)
    return result


def _tcp(t: Tcp) -> str:
    """Connections now; per second those that were opened and failed, segments, and what went wrong."""
    return (
        f"open {t.connections}  new {number(t.opened)}/s  failed {number(t.failed)}/s  "
        f"in {number(t.segments_in)}  out {number(t.segments_out)} segments/s  "
        f"again {number(t.resent)}/s  dropped {number(t.dropped)}/s"
    )


def _receives(engine: dict[str, float]) -> str:
    """How threads in recvmsg() got their messages."""
    names = {"handed over": "handoffs", "polling": "polls", "asleep": "sleeps"}
    parts = [f"{text} {number(engine.get(f'host_{name}', 0))}" for text, name in names.items()]
    return "  ".join([*parts, f"copied {number(engine.get('host_copied_bytes', 0))} B"])


def _drops(engine: dict[str, float]) -> float:
    return sum(value for name, value in engine.items() if name.startswith("drop_"))


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[Text]:
    fitting, used = 0, 0
    for column in columns:
        used += abs(column.width) + (1 if fitting else 0)
        if used > width:
            break
        fitting += 1
    chosen = columns[:fitting]
    head = Text(_row([c.name for c in chosen], chosen), style="reverse")
    return [head, *(Text(_row(row, chosen)) for row in rows)]


def _row(cells: Sequence[str], columns: Sequence[Column]) -> str:
    parts = []
    for cell, column in zip(cells, columns, strict=False):
        size = abs(column.width)
        cut = cell if len(cell) <= size else cell[: size - 1] + "…"
        parts.append(cut.ljust(size) if column.width < 0 else cut.rjust(size))
    return " ".join(parts)


_THREAD = [
    Column("thread", 6), Column("core", 4), Column("state", -6), Column("CPU", 5),
    Column("work", 5), Column("rounds", 7), Column("cmds", 6), Column("compl", 6),
    Column("wakes", 6), Column("kicks", 6), Column("sleeps", 6), Column("apps", 5),
    Column("spin", 6),
]  # fmt: skip


def _thread(t: Thread) -> list[str]:
    state = "aside" if not t.active else "asleep" if t.asleep else "awake"
    return [
        str(t.thread), str(t.core) if t.core >= 0 else "any", state, f"{t.cpu:.0%}",
        f"{t.busy:.0%}",
        number(t.rounds), number(t.commands), number(t.completions), number(t.wakeups),
        number(t.kicks), number(t.sleeps), str(t.attachments), duration(t.spin_ns),
    ]  # fmt: skip


_PORT = [
    Column("port", -10), Column("by", -6), Column("in pkt", 6), Column("in B", 6),
    Column("out pkt", 7), Column("out B", 6), Column("lost", 5), Column("sends", 5),
    Column("grants", 6), Column("waits", 5), Column("RTT", 6), Column("backlog", 7),
]  # fmt: skip


def _port(p: Port) -> list[str]:
    return [
        p.name, p.backend, number(p.rx_packets), number(p.rx_bytes), number(p.tx_packets),
        number(p.tx_bytes), number(p.lost), str(p.sending), str(p.granting), str(p.waiting),
        duration(p.rtt_ns or None), duration(p.backlog_ns),
    ]  # fmt: skip


_DEVICE = [
    Column("device", -15), Column("sends", 6), Column("grants", 6), Column("waits", 6),
    Column("RTT", 7), Column("backlog", 7),
]  # fmt: skip


def _device(p: Port) -> list[str]:
    return [
        p.name, str(p.sending), str(p.granting), str(p.waiting), duration(p.rtt_ns or None),
        duration(p.backlog_ns),
    ]  # fmt: skip


_SOCKET = [
    Column("socket", 8), Column("name", -16), Column("pid", 7), Column("port", 5),
    Column("is", -6), Column("RPCs", 6), Column("to send", 7), Column("free", 6),
    Column("of", 6), Column("waits", -10),
]  # fmt: skip


def _socket(s: Socket) -> list[str]:
    return [
        str(s.socket), s.name, str(s.pid or "-"), str(s.port), "server" if s.server else "client",
        str(s.rpcs), size(s.tx_bytes), size(s.avail_bytes), size(s.region_bytes),
        "no buffers" if s.starved else "",
    ]  # fmt: skip


def _bytes(a: App) -> tuple[float, float]:
    """In and out per second, of messages and of streams."""
    return a.rx_bytes + a.stream_rx_bytes, a.tx_bytes + a.stream_tx_bytes


_APP = [
    Column("app", 5), Column("name", -16), Column("pid", 7), Column("port", 5), Column("RPCs", 5),
    Column("TCP", 5), Column("asks", 6), Column("serves", 6), Column("in B", 6), Column("out B", 6),
    Column("SQ", 4), Column("CQ", 4), Column("wakes", 6), Column("refused", 7),
]  # fmt: skip


def _app(a: App) -> list[str]:
    return [
        str(a.app), a.name, str(a.pid), str(a.port), str(a.rpcs), str(a.streams),
        number(a.requests), number(a.replies), *map(number, _bytes(a)), str(a.submitted),
        str(a.completed), number(a.wakeups), number(a.refused),
    ]  # fmt: skip
