# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Workload W4 at 80 % through a switch with shaped ports and priorities, in one guest.

The network is that of ./homa demo - a bridge whose ports are HTB trees with eight strict
priorities by TOS and a limited buffer - but host and network are one guest's kernel, and Homa
is the module. Both TCPs of the demo run with its settings. Rates are low because processors
are emulated: what counts is who waits for whom, not how fast the machine is.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from lab.bench import results
from lab.net import tcp
from lab.errors import LabError
from lab.paths import homa_bench
from lab.demo.report import Run
from lab.net.switch import buffer_bytes, port_commands, u32_commands
from lab.vm import Kernel, VmError, run
from lab.vm.bench import hosts

LINK_BPS = 100_000_000
LOAD = 0.8
HOSTS = 3
TRANSPORTS = ("homa", "tcp-pool", "tcp")
_WARMUP_S = 1
_DRAIN_S = 5
_START_S = 3
_BOOT_S = 60
_SLOWER = 6  # a virtual second may take so many
_PORT = 4000
_MARK = "W4RESULT"


@dataclass
class Loads:
    """What one boot measured: transport → one Run per round."""

    runs: dict[str, list[Run]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    buffer: int = 0

    def ratios(self, transport: str) -> list[float]:
        """P99 of the shortest tenth of the messages, to Homa's, round by round."""
        found = []
        for ours, theirs in zip(self.runs.get("homa", []), self.runs.get(transport, [])):
            a, b = theirs.rows[0].p99_us, ours.rows[0].p99_us
            if a and b:
                found.append(a / b)
        return found


def _network(buffer: int) -> str:
    """A bridge in namespace sw with a shaped port for each host."""
    text = "set -e\nip netns add sw\n"
    text += "ip -n sw link add br0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0\n"
    text += "ip -n sw link set br0 up\n"
    sysctls = " ".join(shlex.quote(f"{k}={v}") for k, v in tcp._SYSCTLS.items())
    for n in range(1, HOSTS + 1):
        host, port = f"h{n}", f"port{n}"
        text += f"""
ip netns add {host}
for w in {sysctls} net.ipv6.conf.all.disable_ipv6=1; do
	ip netns exec {host} sysctl -q -w "$w" || true
done
ip link add eth0 netns {host} type veth peer name {port} netns sw
ip -n {host} link set lo up
ip -n {host} addr add 10.9.0.{n}/24 dev eth0
ip -n sw link set {port} master br0
ip netns exec {host} ethtool -K eth0 tso off gso off gro off
ip netns exec sw ethtool -K {port} tso off gso off gro off
ip -n {host} link set eth0 up
ip -n sw link set {port} up
ip -n {host} route replace 10.9.0.0/24 dev eth0 proto kernel scope link src 10.9.0.{n} \
	congctl cubic rto_min {tcp.RTO_MIN_MS}ms initcwnd {tcp.INITIAL_WINDOW}
tc -n sw -batch - <<'END'
{port_commands(port, LINK_BPS, buffer)}{u32_commands(port)}END
"""
    return text


def _run(transport: str, number: int, seconds: float, seed: int) -> str:
    """All hosts client and server of each other; their results follow on lines of their own."""
    begin = f"start=$(awk '{{print $1 + {_START_S}}}' /proc/uptime)\n"
    text = begin
    for n in range(1, HOSTS + 1):
        words = ["node", "--transport", transport, "--bind", f"10.9.0.{n}:{_PORT + number}"]
        for other in range(1, HOSTS + 1):
            if other != n:
                words += ["--peer", f"10.9.0.{other}:{_PORT + number}"]
        words += ["--workload", "w4", "--link", f"{LINK_BPS}bit", "--load", str(LOAD)]
        words += ["--seed", str(seed), "--host-index", str(n - 1)]
        words += ["--warmup", str(_WARMUP_S), "--duration", str(seconds)]
        words += ["--drain", str(_DRAIN_S), "--connect-timeout", "20"]
        words += ["--json", f"/run/{transport}-{n}", "--quiet"]
        if transport == "homa":
            words += ["--via", "kernel"]
        text += (
            f"ip netns exec h{n} homa-bench {shlex.join(words)} --start-at mono:$start "
            f">/run/{transport}-{n}.log 2>&1 &\n"
        )
    text += "wait\n"
    for n in range(1, HOSTS + 1):
        place = f"/run/{transport}-{n}"
        text += (
            f"if [ -s {place} ]; then printf '{_MARK} {transport} '; tr -d '\\n' <{place}; echo; "
            f'else echo "FAILED {transport} on host {n}: $(tail -n 1 {place}.log)"; fi\n'
            f"rm -f {place}\n"
        )
    return text


def script(seconds: float, rounds: int, buffer: int, module: Path | None) -> str:
    """What the guest does: every transport once per round, the same arrivals for all."""
    text = _network(buffer) + hosts.load(module)
    if module:
        for n in range(1, HOSTS + 1):
            text += (
                f"ip netns exec h{n} sysctl -q -w net.homa.link_mbps={LINK_BPS // 1_000_000} "
                f'|| echo "FAILED net.homa.link_mbps"\n'
            )
    text += "sleep 1\nset +e\n"
    number = 0
    for turn in range(rounds):
        for transport in TRANSPORTS:
            if module or transport != "homa":
                text += _run(transport, number, seconds, turn + 1)
                number += 1
    text += 'echo "DROPS $(tc -n sw -s qdisc show | awk \'/dropped/{gsub(",","",$7); n += $7} '
    return text + "END{print n + 0}')\"\n"


def measure(kernel: Kernel, module: Path | None, *, rounds: int, seconds: float) -> Loads:
    """All rounds in one boot."""
    buffer = buffer_bytes(LINK_BPS)
    options = hosts.options(kernel, module, icount=True, memory=1024, programs_too=(homa_bench(),))
    one = seconds + _WARMUP_S + _DRAIN_S + _START_S + 15
    timeout = _BOOT_S + rounds * len(TRANSPORTS) * one * _SLOWER
    result = run(kernel, script(seconds, rounds, buffer, module), options, timeout)
    loads = Loads(buffer=buffer, failed=hosts.parse(result.output).failed)
    if result.problems:
        loads.failed.append(f"the kernel complained: {result.problems.splitlines()[0]}")
    _collect(loads, result.output)
    if not loads.runs:
        raise VmError(f"nothing was measured; the guest said:\n{result.output[-3000:]}")
    return loads


def _collect(loads: Loads, output: str) -> None:
    """A run is complete if every host reported."""
    waiting: list[object] = []
    transport = ""
    for line in output.splitlines():
        if not line.startswith(_MARK):
            continue
        _, name, text = line.split(" ", 2)
        if name != transport:
            waiting, transport = [], name
        waiting.append(text)
        if len(waiting) == HOSTS:
            try:
                nodes = [results.parse_load(json.loads(str(one))) for one in waiting]
                loads.runs.setdefault(name, []).append(results.combine(name, loads.buffer, nodes))
            except (LabError, ValueError) as error:
                loads.failed.append(f"{name}: {error}")
            waiting, transport = [], ""
