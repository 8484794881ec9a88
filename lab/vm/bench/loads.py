# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A workload at some load through a switch with shaped ports and priorities, in one guest.

The network is that of ./homa demo - a bridge whose ports are HTB trees with eight strict
priorities by TOS and a limited buffer - but hosts and network are one guest's kernel, and Homa
is the module. The TCPs of the demo run with its settings. Rates are low because processors
are emulated: what counts is who waits for whom, not how fast the machine is.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path

from lab.bench import results
from lab.bench.results import Unloaded
from lab.net import tcp
from lab.errors import LabError
from lab.paths import homa_bench
from lab.demo.report import Run
from lab.net.switch import buffer_bytes, port_commands, u32_commands
from lab.vm import Kernel, Result, VmError, run
from lab.vm.bench import hosts

_WARMUP_S = 1
_DRAIN_S = 5
_POLL_USECS = 50
_START_S = 3
_BOOT_S = 60
_SLOWER = 6  # a virtual second may take so many
_PORT = 4000
_MARK = "LOADRESULT"
_DENOMINATORS = "homa/denominators.json"
# Packets that the switch has dropped so far.
_DROPS = (
    'echo "DROPS $(tc -n sw -s qdisc show | awk \'/dropped/{gsub(",","",$7); n += $7} '
    "END{print n + 0}')\"\n"
)
_IDLE_PATIENCE_S = 60  # of virtual time, for what measures the idle network


@dataclass(frozen=True)
class Plan:
    """What is measured: `load` is a share of each host's link of `link_bps`, `seconds` long; `workload`
    is a name that homa-bench knows; `homa_config` are settings, name=value,..., of the module."""

    workload: str = "w4"
    load: float = 0.8
    hosts: int = 3
    link_bps: int = 100_000_000
    seconds: float = 10.0
    seed: int = 1
    transports: tuple[str, ...] = ("homa", "tcp-pool", "tcp")
    homa_config: str = ""


@dataclass
class Loads:
    """What one boot measured: transport → one Run per round."""

    runs: dict[str, list[Run]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    buffer: int = 0

    def ratios(self, transport: str) -> list[float]:
        """P99 of the shortest tenth of the messages, to Homa's, round by round."""
        pairs = zip(self.runs.get("homa", []), self.runs.get(transport, []))
        times = [(theirs.rows[0].p99_us, ours.rows[0].p99_us) for ours, theirs in pairs]
        return [theirs / ours for theirs, ours in times if theirs and ours]

    def ratios_of_all(self, transport: str) -> list[float]:
        """P99 of all messages of Homa, to the transport's, round by round."""
        pairs = zip(self.runs.get("homa", []), self.runs.get(transport, []))
        times = [(theirs.overall.p99_us, ours.overall.p99_us) for ours, theirs in pairs]
        return [ours / theirs for theirs, ours in times if theirs and ours]


def network(plan: Plan, buffer: int) -> str:
    """A bridge in namespace sw with a shaped port for each host."""
    text = "set -e\nip netns add sw\n"
    text += "ip -n sw link add br0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0\n"
    text += "ip -n sw link set br0 up\n"
    sysctls = " ".join(shlex.quote(f"{k}={v}") for k, v in tcp._SYSCTLS.items())
    for n in range(1, plan.hosts + 1):
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
{port_commands(port, plan.link_bps, buffer)}{u32_commands(port)}END
"""
    return text


def _options(plan: Plan, transport: str) -> list[str]:
    """What every homa-bench is told."""
    words = ["--transport", transport, "--workload", plan.workload]
    words += ["--link", f"{plan.link_bps}bit"]
    return words + (["--via", "kernel"] if transport == "homa" else [])


def _said(transport: str, place: str, host: int) -> str:
    """Print a result's file on one line, or why there is none."""
    return (
        f"if [ -s {place} ]; then printf '{_MARK} {transport} '; tr -d '\\n' <{place}; echo; "
        f'else echo "FAILED {transport} on host {host}: $(tail -n 1 {place}.log)"; fi\n'
        f"rm -f {place}\n"
    )


def nodes(plan: Plan, transport: str, number: int, seed: int, denominators: str = "") -> str:
    """Start all hosts, client and server of each other; they begin at $start."""
    text = f"start=$(awk '{{print $1 + {_START_S}}}' /proc/uptime)\n"
    port = _PORT + number
    for n in range(1, plan.hosts + 1):
        words = ["node", "--bind", f"10.9.0.{n}:{port}", *_options(plan, transport)]
        for other in range(1, plan.hosts + 1):
            if other != n:
                words += ["--peer", f"10.9.0.{other}:{port}"]
        words += ["--load", str(plan.load), "--seed", str(seed), "--host-index", str(n - 1)]
        words += ["--warmup", str(_WARMUP_S), "--duration", str(plan.seconds)]
        words += ["--drain", str(_DRAIN_S), "--connect-timeout", "20"]
        words += ["--denominators", denominators] if denominators else []
        words += ["--json", f"/run/{transport}-{n}", "--quiet"]
        text += (
            f"ip netns exec h{n} homa-bench {shlex.join(words)} --start-at mono:$start "
            f">/run/{transport}-{n}.log 2>&1 &\n"
        )
    return text


def _run(plan: Plan, transport: str, number: int, seed: int, denominators: str) -> str:
    """The hosts until their end; their results follow on lines of their own."""
    text = nodes(plan, transport, number, seed, denominators) + "wait\n"
    for n in range(1, plan.hosts + 1):
        text += _said(transport, f"/run/{transport}-{n}", n)
    return text + _DROPS


def _idle(plan: Plan, transport: str, number: int, samples: int) -> str:
    """A client of host 1 measures round trips with host 2, one at a time."""
    address = f"10.9.0.2:{_PORT + number}"
    server = ["server", "--bind", address, *_options(plan, transport)]
    client = ["client", "--peer", address, "--bind", "10.9.0.1", *_options(plan, transport)]
    client += ["--unloaded", "--samples", str(samples), "--connect-timeout", "20"]
    place = f"/run/{transport}-1"
    client += ["--json", place, "--quiet"]
    return (
        f"ip netns exec h2 homa-bench {shlex.join(server)} >/run/server.log 2>&1 &\n"
        f"server=$!\nip netns exec h1 homa-bench {shlex.join(client)} >{place}.log 2>&1\n"
        f"kill $server\nwait $server 2>/dev/null\n" + _said(transport, place, 1)
    )


def prepared(plan: Plan, buffer: int, module: Path | None) -> str:
    """The network, and the module with its settings."""
    return network(plan, buffer) + loaded(plan, module)


def loaded(plan: Plan, module: Path | None) -> str:
    """The module, if there is one, with its settings."""
    return hosts.load(module) + (settings(plan) if module else "") + "sleep 1\nset +e\n"


def settings(plan: Plan) -> str:
    """The module's settings, on all hosts. They poll as the module did by itself until 28 November
    2026, so that figures of all versions compare."""
    wanted = [f"link_mbps={plan.link_bps // 1_000_000}", f"poll_usecs={_POLL_USECS}"]
    wanted += [s for s in plan.homa_config.split(",") if s]
    text = ""
    for n in range(1, plan.hosts + 1):
        for setting in wanted:
            text += (
                f"ip netns exec h{n} sysctl -q -w {shlex.quote(f'net.homa.{setting}')} "
                f"|| echo {shlex.quote(f'FAILED net.homa.{setting}')}\n"
            )
    return text


def script(plan: Plan, rounds: int, buffer: int, module: Path | None, denominators: str) -> str:
    """What the guest does: every transport once per round, the same arrivals for all."""
    text = prepared(plan, buffer, module) + _DROPS
    number = 0
    for turn in range(rounds):
        for transport in plan.transports:
            if module or transport != "homa":
                text += _run(plan, transport, number, plan.seed + turn, denominators)
                number += 1
    return text


def _boot(
    kernel: Kernel,
    plan: Plan,
    module: Path | None,
    text: str,
    seconds: float,
    files: dict[str, bytes | str | Path],
) -> tuple[Result, list[str]]:
    """A guest that runs the script, which takes so many virtual seconds; what failed there."""
    made = hosts.options(kernel, module, icount=True, memory=1024, programs_too=(homa_bench(),))
    made = replace(made, files={**made.files, **files})
    result = run(kernel, text, made, _BOOT_S + seconds * _SLOWER)
    failed = hosts.parse(result.output).failed
    if result.problems:
        failed.append(f"the kernel complained: {result.problems.splitlines()[0]}")
    return result, failed


def measure(
    kernel: Kernel,
    module: Path | None,
    plan: Plan,
    *,
    rounds: int,
    denominators: str = "",
) -> Loads:
    """All rounds in one boot. `denominators`: a document with the idle network's times, by which
    slowdowns are divided; without it there are none."""
    buffer = buffer_bytes(plan.link_bps)
    files: dict[str, bytes | str | Path] = {_DENOMINATORS: denominators} if denominators else {}
    one = plan.seconds + _WARMUP_S + _DRAIN_S + _START_S + 15
    text = script(plan, rounds, buffer, module, f"/{_DENOMINATORS}" if denominators else "")
    result, failed = _boot(kernel, plan, module, text, rounds * len(plan.transports) * one, files)
    loads = Loads(buffer=buffer, failed=failed)
    _collect(loads, plan, result.output)
    if not loads.runs:
        raise VmError(f"nothing was measured; the guest said:\n{result.output[-3000:]}")
    return loads


def idle(
    kernel: Kernel, module: Path | None, plan: Plan, samples: int
) -> dict[str, list[Unloaded]]:
    """Round trips on the idle network, `samples` of each size, for each transport; one boot."""
    text = prepared(plan, buffer_bytes(plan.link_bps), module)
    for number, transport in enumerate(plan.transports):
        text += _idle(plan, transport, number, samples)
    seconds = len(plan.transports) * _IDLE_PATIENCE_S
    result, failed = _boot(kernel, plan, module, text, seconds, {})
    found = {name: results.parse_unloaded(json.loads(text)) for name, text in _lines(result.output)}
    missing = [name for name in plan.transports if name not in found]
    if missing:
        why = "; ".join(failed) or result.output[-3000:]
        raise VmError(f"the idle network was not measured over {', '.join(missing)}: {why}")
    return found


def _lines(output: str) -> list[tuple[str, str]]:
    """(transport, JSON) of each result in what the guest said."""
    lines = [line.split(" ", 2) for line in output.splitlines() if line.startswith(f"{_MARK} ")]
    return [(line[1], line[2]) for line in lines if len(line) == 3]


def _collect(loads: Loads, plan: Plan, output: str) -> None:
    """A run is complete if every host reported. What the switch has dropped is said before the first
    run and after each."""
    waiting: list[str] = []
    dropped = 0
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == _MARK:
            waiting.append(rest)
        elif kind == "DROPS":
            _add(loads, plan, waiting, int(rest) - dropped)
            waiting, dropped = [], int(rest)


def _add(loads: Loads, plan: Plan, said: list[str], drops: int) -> None:
    """Add the run of which the hosts have said `said`, if all have."""
    if len(said) != plan.hosts:
        return
    name = said[0].partition(" ")[0]
    try:
        nodes = [results.parse_load(json.loads(one.partition(" ")[2])) for one in said]
        run = results.combine(name, loads.buffer, nodes)
    except (LabError, ValueError) as error:
        loads.failed.append(f"{name}: {error}")
        return
    loads.runs.setdefault(name, []).append(replace(run, drops=drops))
