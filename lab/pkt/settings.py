# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Shell commands of a script. None is ever run: settings of Linux's TCP become parameters of the
engine, what only prepares or cleans up a real host is left out, and the rest is not supported."""

from __future__ import annotations

import errno
import re
import shlex
from dataclasses import dataclass, field

from lab.pkt.errors import BadScript, Unsupported
from lab.pkt.stack import Stack


@dataclass(frozen=True)
class Setting:
    """What a sysctl below net.ipv4 is in the engine. `times`, `per`: how many of the engine's units
    `per` of Linux's are. `values`: those that mean something else. `more`: what the second number
    of its value and those behind it are. None: this number concerns us not."""

    parameter: str | None
    times: int = 1
    per: int = 1
    values: dict[str, int] = field(default_factory=dict)
    more: tuple[str | None, ...] = ()


CONTROLS = {"reno": 0, "dctcp": 1, "cubic": 2, "dctcp-rate": 3, "timely": 4, "constant": 5}

# To support another sysctl, add a line. A parameter that the engine does not have makes the
# statement unsupported, so lines may be ahead of the engine.
SETTINGS = {
    "tcp_challenge_ack_limit": Setting("challenge_acks"),
    "tcp_congestion_control": Setting("congestion", values=CONTROLS),
    "tcp_early_retrans": Setting("tail_loss_probe", values={"3": 1, "4": 1}),
    "tcp_ecn": Setting("ecn"),
    "tcp_fin_timeout": Setting("fin_wait_ms", 1000),
    "tcp_keepalive_intvl": Setting("keepalive_interval_ms", 1000),
    "tcp_keepalive_probes": Setting("keepalive_probes"),
    "tcp_keepalive_time": Setting("keepalive_ms", 1000),
    "tcp_orphan_retries": Setting("orphan_retries", values={"0": 8}),
    "tcp_retries2": Setting("retries"),
    # The last number decides about the window scale.
    "tcp_rmem": Setting(None, more=("rcvbuf", "rcvbuf_max")),
    "tcp_rto_max_ms": Setting("rto_max_ms"),
    "tcp_rto_min_us": Setting("rto_min_ms", per=1000),
    "tcp_sack": Setting("sack"),
    "tcp_syn_retries": Setting("syn_retries"),
    "tcp_synack_retries": Setting("synack_retries"),
    "tcp_syncookies": Setting("syn_cookies"),
    "tcp_timestamps": Setting("timestamps", values={"2": 1}),
    "tcp_window_scaling": Setting("window_scaling"),
    "tcp_wmem": Setting(None, more=("sndbuf", None)),
}

# What says nothing of how the engine behaves in a script.
_WITHOUT_EFFECT = frozenset(
    {
        *("tcp_fastopen_key", "tcp_no_metrics_save", "tcp_metrics_save", "tcp_autocorking"),
        *("tcp_fack", "tcp_low_latency", "tcp_max_orphans", "tcp_max_tw_buckets", "tcp_stdurg"),
        *("tcp_min_tso_segs", "tcp_tso_win_divisor", "tcp_tso_rtt_log", "tcp_limit_output_bytes"),
        *("tcp_pacing_ss_ratio", "tcp_pacing_ca_ratio"),
    }
)

# What sets a host back, cleans caches that we do not have, or chooses a queue of the device.
_NOTHING = re.compile(
    r"/tmp/sysctl_restore_\S+\.sh$|ip tcp_metrics flush all$|true$|:$|"
    r"tc qdisc (add|replace) dev tun0 root (fq|pfifo)$"
)
# packetdrill's common set-up. It says what is usual, but for the size of the receive buffers,
# from which the window scale of nearly all of its scripts follows; an engine need not have it.
_DEFAULTS = re.compile(r"(\S*/)?defaults\.sh$")
_DEFAULT_SETTINGS = (("rcvbuf_max", 15 << 20),)
_PROC = re.compile(r"/?(?:proc/sys/)?net/(?:ipv4|core|ipv6)/")


def parse(command: str) -> list[tuple[str, str]]:
    """(name, value) of each setting in it; Unsupported if it does anything else."""
    found: list[tuple[str, str]] = []
    for line in re.split(r"\n|;|&&", command.replace("\\\n", " ")):
        line = re.sub(r"(^|\s)#.*", "", line)
        line = re.sub(r"\s*(2>&1|&?>\s*/dev/null)", "", line).strip()
        if line and not _NOTHING.match(line) and not _DEFAULTS.match(line):
            found += _line(line)
    return found


def _line(line: str) -> list[tuple[str, str]]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise BadScript(f"'{line}': {error}") from error
    echoed = re.fullmatch(r"echo\s+(.+?)\s*>\s*(/proc/sys/\S+)", line)
    if echoed:
        return [(_name(echoed[2]), echoed[1].strip("'\""))]
    program = words[0].rpartition("/")[2]
    if program not in ("sysctl", "set_sysctls.py"):
        raise Unsupported(f"the command '{line}'; settings by sysctl are")
    found = []
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals:
            found.append((_name(name), value))
        elif not word.startswith("-"):
            raise Unsupported(f"the command '{line}'; only NAME=VALUE is")
    return found


def _name(path: str) -> str:
    """tcp_ecn of net.ipv4.tcp_ecn and of /proc/sys/net/ipv4/tcp_ecn."""
    name = _PROC.sub("", path) if "/" in path else path
    for prefix in ("net.ipv4.", "net.core.", "net.ipv6.", "net."):
        name = name.removeprefix(prefix)
    return name


def check(command: str) -> None:
    """Unsupported or BadScript if it cannot be carried out whatever the engine is."""
    for name, value in parse(command):
        _parameters(name, value)


def apply(command: str, stack: Stack) -> None:
    if any(_DEFAULTS.match(line.strip()) for line in command.splitlines()):
        for parameter, number in _DEFAULT_SETTINGS:
            stack.set(parameter, number)
    for name, value in parse(command):
        for parameter, number in _parameters(name, value):
            done = stack.set(parameter, number)
            if done == -errno.ENOENT:
                raise Unsupported(f"the engine has no parameter '{parameter}' (for {name})")
            if done < 0:
                raise Unsupported(f"the engine refuses {parameter} = {number}")


def _parameters(name: str, value: str) -> list[tuple[str, int]]:
    """The engine's parameters and their values; none if the setting has no effect here."""
    if name in _WITHOUT_EFFECT:
        return []
    setting = SETTINGS.get(name)
    if setting is None:
        raise Unsupported(f"the sysctl {name}; lab/pkt/settings.py has a table of those that are")
    words, parameters = value.split(), (setting.parameter, *setting.more)
    if len(words) != len(parameters):
        raise BadScript(f"{name} has {len(parameters)} numbers, not '{value}'")
    return [(p, _number(setting, name, w)) for p, w in zip(parameters, words) if p is not None]


def _number(setting: Setting, name: str, word: str) -> int:
    if word in setting.values:
        return setting.values[word]
    try:
        return int(word, 0) * setting.times // setting.per
    except ValueError as error:
        raise Unsupported(f"{name}={word}") from error
