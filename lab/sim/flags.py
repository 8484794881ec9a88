# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The flags of homa-sim, once: for the command line, for TOML files and for their help.

Values travel as text, just as homa-sim takes them ("10gbit", "250ns", "1.5ms", "64kb"). What is
checked here is what can be said without knowing the network; homa-sim checks the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import UsageError

_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)"
_RATE = re.compile(rf"{_NUMBER}(m|g|t)(?:bit|bps)", re.IGNORECASE)
_TIME = re.compile(rf"{_NUMBER}(ps|ns|us|ms|s)|0", re.IGNORECASE)
_BYTES = re.compile(rf"{_NUMBER}(b|kb|mb|gb|kib|mib|gib)?", re.IGNORECASE)
_FAIL = re.compile(r"(\d+)-(\d+):([^:]+):([^:]+)")
_INCAST = re.compile(r"(\d+):([^:]+):([^:]+)")
_SETTING = re.compile(r"([A-Za-z][\w-]*)=(\d+|true|false)")
_WORKLOAD = re.compile(r"w[1-5]|fixed:\d+", re.IGNORECASE)


@dataclass(frozen=True)
class Flag:
    """A flag of homa-sim; `many` may be given several times, `low` and `high` bound numbers."""

    name: str
    kind: str
    text: str
    default: str = ""
    group: str = ""
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = math.inf
    many: bool = False


def _network() -> list[Flag]:
    g = "network"
    return [
        Flag(
            "topology",
            "topology",
            "one-switch, leaf-spine, fat-tree, or a TOML file that describes a network "
            "(docs/simulator.md)",
            "leaf-spine",
            g,
            ("one-switch", "leaf-spine", "fat-tree"),
        ),
        Flag("hosts", "int", "hosts around one switch", "144", g, low=2, high=65000),
        Flag("racks", "int", "racks of a leaf-spine network", "9", g, low=1, high=4096),
        Flag("hosts-per-rack", "int", "hosts in each rack", "16", g, low=1, high=4096),
        Flag("spines", "int", "spine switches", "4", g, low=1, high=4096),
        Flag("k", "int", "ports of a switch in a fat tree of k^3/4 hosts, even", "8", g, low=2, high=40),
        Flag("link", "rate", "rate of the hosts' links", "10gbit", g),
        Flag("fabric", "rate", "rate of the links between switches", "40gbit", g),
        Flag("link-delay", "time", "propagation on hosts' links", "0ns", g),
        Flag("fabric-delay", "time", "propagation between switches", "0ns", g),
        Flag("switch-delay", "time", "a switch's own delay per packet", "250ns", g),
        Flag("send-delay", "time", "software and NIC of the sending host", "1us", g),
        Flag("receive-delay", "time", "software of the receiving host", "500ns", g),
        Flag("cut-through", "flag", "switches pass a packet on while it still arrives", "", g),
        Flag("shaped", "flag", "links let a packet go when its time begins, as HTB does", "", g),
        Flag("htb-burst", "time", "with shaped: saved up in a pause, and ports count bytes as HTB", "0ns", g),
        Flag("balance", "choice", "paths: random per packet, or fixed per flow", "of the protocol", g, ("spray", "ecmp")),
        Flag("queue", "choice", "discipline of the switches' ports", "of the protocol", g, ("priority", "rank", "trim")),
        Flag("port-buffer", "bytes", "limit of each switch port's queue; 0: none", "of the protocol", g),
        Flag("shared-buffer", "bytes", "buffer that a switch's ports share; 0: none", "of the protocol", g),
        Flag("shared-alpha", "number", "a port may hold this times what is free of it", "1", g, low=0, high=1024),
        Flag("ecn", "bytes", "mark packets when a queue holds this much; 0: never", "of the protocol", g),
        Flag("trim-packets", "int", "NDP: packets queued before payloads are cut off", "8", g, low=1, high=100000),
        Flag("mtu", "int", "largest IP packet in bytes", "1500", g, low=256, high=9216),
        Flag("headers", "choice", "header sizes: of the SIGCOMM'18 study or the real ones", "sigcomm18", g, ("sigcomm18", "true")),
        Flag("loss", "fraction", "probability that a link loses a packet", "0", g, low=0, high=0.5),
        Flag("fail", "fail", "A-B:FROM:UNTIL, link between nodes A and B is down for a while", "", g, many=True),
    ]  # fmt: skip


def _traffic() -> list[Flag]:
    g = "traffic"
    return [
        Flag("workload", "workload", "w1 to w5, fixed:BYTES, or a CSV file of sizes", "w4", g),
        Flag("arrivals", "file", "recorded arrivals instead of random ones", "", g),
        Flag("cut", "bytes", "longer messages are cut to this", "never", g),
        Flag("load", "fraction", "share of the hosts' links that arrivals take, like 0.8", "0.8", g, low=0, high=10),
        Flag("load-kind", "choice", "load counts wire bytes (SIGCOMM'18) or payload (ATC'21)", "wire", g, ("wire", "payload")),
        Flag("mode", "choice", "one-way messages, or requests answered in kind", "oneway", g, ("oneway", "rpc")),
        Flag("closed", "int", "with --mode rpc: RPCs that each client keeps under way", "--load says when they come", g, low=1, high=100000),
        Flag("servers", "int", "with --closed: the first hosts, which only answer; the others only ask", "all do both", g, low=1, high=65534),
        Flag("response-size", "bytes", "of each response, with --mode rpc and --arrivals", "as its request", g),
        Flag("apart", "int", "messages from and to this host are counted by themselves", "none", g, high=65534),
        Flag("incast", "incast", "N:BYTES:PERIOD, now and then N hosts send to one at once", "", g),
        Flag("max-messages", "int", "end after this many messages; 0: no limit", "0", g),
        Flag("seed", "int", "arrivals, routes and protocols follow from it", "1", g, high=2**53),
    ]  # fmt: skip


def _protocol() -> list[Flag]:
    g = "protocol"
    return [
        Flag("protocol", "name", "what the hosts speak; --list shows them", "homa", g),
        Flag("preset", "name", "a protocol's settings under one name; --list shows them", "the first", g),
        Flag("set", "setting", "NAME=VALUE, a setting of the protocol; --list shows them", "", g, many=True),
    ]  # fmt: skip


def _software() -> list[Flag]:
    g = "software"
    return [
        Flag("cores", "int", "cores of each host, on which its software queues", "software only takes time", g,
             low=1, high=256),
        Flag("cost", "setting", "NAME=VALUE, what software costs; --list shows them", "", g, many=True),
        Flag("offload", "choice", "what the network card does for its host", "none", g,
             ("none", "rss", "lso", "lro", "rss+lso", "rss+lro", "lso+lro", "all")),
    ]  # fmt: skip


def _time() -> list[Flag]:
    g = "time"
    return [
        Flag("warmup", "time", "simulated time before measuring", "1ms (W1) to 30ms (W5)", g),
        Flag("measure", "time", "arrivals in this time are measured", "20ms", g),
        Flag("drain", "time", "most time for them to finish; the load goes on for its first part", "1s", g),
        Flag("warm-start", "time", "begin with what the oracle leaves unfinished after so long; without this and --warmup "
             "as long as the workload needs (docs/simulator.md)", "0 (W1) to 800ms (W5)", g),
        Flag("abort-unstable", "flag", "end when the network clearly cannot carry the load", "", g),
        Flag("against-oracle", "flag", "a load is carried if the backlog grows no faster than the oracle's", "", g),
        Flag("stop-growth", "fraction", "with --against-oracle: end after a third of the measured time if the backlog grew by more than "
             "this share of what is offered, itself and above the oracle's", "never", g, low=0, high=10),
    ]  # fmt: skip


FLAGS: dict[str, Flag] = {
    flag.name: flag for part in (_protocol, _traffic, _network, _software, _time) for flag in part()
}
GROUPS = ("protocol", "traffic", "network", "software", "time")


def check(flag: Flag, value: object) -> str:
    """`value` as homa-sim takes it; UsageError says what is wrong with it, without the name."""
    if flag.kind == "flag":
        if isinstance(value, bool):
            return "true" if value else "false"
        if value in ("true", "false"):
            return str(value)
        raise UsageError(f"'{value}' is not true or false")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UsageError(f"'{value}' is not a single value; {_WANTED[flag.kind](flag)}")
    text = str(value).strip()
    if not _CHECKS[flag.kind](flag, text):
        raise UsageError(f"'{value}' is not possible; {_WANTED[flag.kind](flag)}")
    return text


def number(text: str) -> float | None:
    """`text` as a finite number, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _in_range(flag: Flag, text: str) -> bool:
    value = number(text)
    return value is not None and flag.low <= value <= flag.high


def _whole(flag: Flag, text: str) -> bool:
    return text.isascii() and text.isdigit() and _in_range(flag, text)


def _matches(pattern: re.Pattern[str]) -> Callable[[Flag, str], bool]:
    return lambda _flag, text: bool(pattern.fullmatch(text))


def _fail(_flag: Flag, text: str) -> bool:
    match = _FAIL.fullmatch(text)
    return bool(match and _TIME.fullmatch(match[3]) and _TIME.fullmatch(match[4]))


def _incast(_flag: Flag, text: str) -> bool:
    match = _INCAST.fullmatch(text)
    return bool(match and _BYTES.fullmatch(match[2]) and _TIME.fullmatch(match[3]))


def _range(flag: Flag, what: str) -> str:
    if math.isinf(flag.high):
        return f"give {what} of at least {flag.low:g}"
    return f"give {what} from {flag.low:g} to {flag.high:g}"


def _choices(flag: Flag) -> str:
    return "choose from " + ", ".join(flag.choices)


_CHECKS: dict[str, Callable[[Flag, str], bool]] = {
    "choice": lambda flag, text: text in flag.choices,
    "topology": lambda flag, text: text in flag.choices or text.endswith(".toml"),
    "int": _whole,
    "number": _in_range,
    "fraction": _in_range,
    "rate": lambda _flag, text: bool((m := _RATE.fullmatch(text)) and float(m[1])),
    "time": _matches(_TIME),
    "bytes": _matches(_BYTES),
    "fail": _fail,
    "incast": _incast,
    "setting": _matches(_SETTING),
    "name": _matches(re.compile(r"[A-Za-z][\w-]*")),
    "workload": lambda _flag, text: bool(_WORKLOAD.fullmatch(text)) or Path(text).is_file(),
    "file": lambda _flag, text: Path(text).is_file(),
}
_WANTED: dict[str, Callable[[Flag], str]] = {
    "choice": _choices,
    "topology": lambda flag: _choices(flag) + " or name a .toml file",
    "int": lambda flag: _range(flag, "a whole number"),
    "number": lambda flag: _range(flag, "a number"),
    "fraction": lambda flag: _range(flag, "a number") + ", like 0.8 for 80 %",
    "rate": lambda _flag: "write a rate like 10gbit or 200mbit",
    "time": lambda _flag: "write a time with its unit like 250ns, 5us, 1.5ms or 1s",
    "bytes": lambda _flag: "write a number of bytes like 65536, 64kb or 1mb",
    "fail": lambda _flag: "write A-B:FROM:UNTIL like 0-144:1ms:2ms",
    "incast": lambda _flag: "write N:BYTES:PERIOD like 16:10kb:1ms",
    "setting": lambda _flag: "write NAME=VALUE with a whole number, like max_overcommit=4",
    "name": lambda _flag: "give one of the names that ./homa sim run --list shows",
    "workload": lambda _flag: "use w1 to w5, fixed:BYTES, or a CSV file that exists",
    "file": lambda _flag: "name a file that exists",
}


def bits_per_second(text: str) -> float:
    """The rate that `text`, which check() let pass, stands for."""
    match = _RATE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"'{text}' is not a rate")
    return float(match[1]) * {"m": 1e6, "g": 1e9, "t": 1e12}[match[2].lower()]


def seconds(text: str) -> float:
    """The time that `text`, which check() let pass, stands for."""
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise UsageError(f"'{text}' is not a time; {_WANTED['time'](FLAGS['measure'])}")
    if not match[1]:
        return 0.0
    scale = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    return float(match[1]) * scale[match[2].lower()]
