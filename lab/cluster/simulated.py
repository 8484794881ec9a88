# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The simulator's half of `./homa lab run`: the same point in homa-sim.

Engine, settings, arrivals (common/arrivals.c, by seed and host), rate, MTU, headers and buffer are
the lab's. So are links, which let a packet go when its time begins ("shaped") and save up a burst
("htb-burst"), and network cards, which do not say when they have room, so that the engine paces by
its clock ("card"). The software's
delay is what the shortest message takes longer in the idle lab than there. What is not the lab's:
the simulator's TCP is a model (docs/competitors.md).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from lab.cluster.real_and_simulated import Idle
from lab.cluster.points import Point
from lab.cluster.setup import DRAIN_S, Setup, warmup_s
from lab.errors import LabError
from lab.net import tcp, uplink
from lab.sim import program
from lab.sim.spec import Spec, normal

_ALONE_LOAD = 0.1  # with headers, so that most messages meet no other
_ALONE_HEADERS = 400  # bytes of a packet beside the message's, in both directions, or more
_ALONE_MESSAGES = 8  # of each of two hosts, about
# The engine's and its hosts' times on a fast link that have to be as many times longer as links are
# slower, and the ranges of their settings. (Peers' traffic is looked at once a second all the same:
# a run is not long enough for more.)
_TIMES = {
    "resend_interval_us": (5000, 10_000_000),
    "timeout_us": (500_000, 60_000_000),
    "tombstone_ms": (1000, 60_000),
    "need_ack_us": (2000, 10_000_000),
    "peer_idle_ms": (10_000, 10_000_000),
    "max_nic_backlog_us": (5, 1_000_000),
}
_STAY_INTERVALS = 3  # until a question and, if it was lost, a second one are answered
_RECEIVE = 0.5  # share of the software's delay that is the receiver's
# What homa-sim counts of packets that were sent again, by TCP and by Homa, and its name as a fact.
_AGAIN = {
    "retransmitted_packets": "retransmits",
    "timeouts": "timeouts",
    "timeouts_undone": "timeouts_undone",
    "tx_retransmits": "retransmits",
}


@dataclass(frozen=True)
class Model:
    """homa-sim's `deciles`, round trips alone on bare wires with Homa, and what else it says, all
    prefixed "sim_"."""

    deciles: list[dict]
    wires: Idle
    facts: dict[str, float]


def settings(point: Point, dilation: float) -> list[str]:
    """The engine's settings that are not its defaults, "name=value", in the lab and here. Its times
    are those of a fast link, made longer as all times are: all of them, or one end gives up while
    the other has not even asked. What the engine would derive from the slow link before a RESEND
    is at most 50 ms, too short where a message takes seconds."""
    found = [f"num_priorities={point.levels}"]
    if dilation > 1:
        found += [f"{name}={min(most, round(t * dilation))}" for name, (t, most) in _TIMES.items()]
    return [*found, *point.settings]


def timeout_s(dilation: float) -> float:
    """Seconds after which Homa gives an RPC up that it hears nothing of."""
    usual, most = _TIMES["timeout_us"]
    return min(most, usual * max(1.0, dilation)) / 1e6


def stay_s(dilation: float) -> float:
    """Seconds without a message after which no host waits for what was lost any more."""
    resend, most = _TIMES["resend_interval_us"]
    return 0.5 + _STAY_INTERVALS * min(most, resend * max(1.0, dilation)) / 1e6


def drain_s(dilation: float) -> float:
    """Seconds that messages have to come to their end, at most."""
    return max(DRAIN_S, timeout_s(dilation) + stay_s(dilation))


def spec_of(setup: Setup, point: Point, rate: int, delay_ns: float = 0.0) -> Spec:
    """The network and protocol of a point; `delay_ns` is the software's, one way."""
    spec: Spec = {
        "protocol": "homa" if point.transport == "homa" else "tcp",
        "topology": "one-switch",
        "hosts": setup.hosts,
        "link": f"{rate // 10**6}mbit",
        "mtu": setup.mtu,
        "headers": "true",
        "shaped": str(not setup.real).lower(),
        "htb-burst": "0ns" if setup.real else f"{uplink.burst_of(rate) * 8e9 / rate:.0f}ns",
        "port-buffer": str(setup.buffer),
        "mode": "rpc",
        "load-kind": "payload",
        "cut": 1000000,
        "send-delay": f"{delay_ns * (1 - _RECEIVE):.0f}ns",
        "receive-delay": f"{delay_ns * _RECEIVE:.0f}ns",
        "seed": setup.seed,
    }
    if point.transport == "homa":
        spec["preset"] = "linux"
        spec["set"] = {
            **dict(one.split("=") for one in settings(point, setup.link_bps / rate)),
            "card": "1",
            "known-cutoffs": "0",
        }
    else:
        # As the lab's hosts, and homa-bench on them. Delayed acks are Linux', which no dilation makes
        # longer.
        least_us = str(tcp.SLOW_RTO_MIN_MS * 1000)
        linux = {"sack": "1", "undo": "1", "cubic": "1", "idle-restart": "0", "ack-delay": "40000"}
        spec["set"] = {**linux, "turns": "1", "rto-min": least_us}
    return spec


def alone(setup: Setup, point: Point, rate: int, size: int, shaped: bool = True) -> float:
    """The median round trip, ns, of messages of `size` that meet no others, without software. Links
    are the lab's, or (not `shaped`) wires, over which a packet has come when its last bit has."""
    load = _ALONE_LOAD * size / (size + _ALONE_HEADERS)
    gap_ms = 2 * size * 8 / rate / load * 1e3
    shaped = shaped and not setup.real
    more: Spec = {
        "hosts": 2,
        "workload": f"fixed:{size}",
        "load": load,
        "warmup": "0ms",
        "measure": f"{gap_ms * _ALONE_MESSAGES:.6g}ms",
        "shaped": str(shaped).lower(),
    }
    if not shaped:
        more["htb-burst"] = "0ns"
    found = program.run(normal({**spec_of(setup, point, rate), **more})).get("latency_ns", {})
    if not found.get("p50"):
        raise LabError(f"homa-sim sent no message of {size} bytes on an idle network")
    return float(found["p50"])


@functools.lru_cache(maxsize=64)
def wires(setup: Setup, rate: int, sizes: tuple[int, ...]) -> Idle:
    """Round trips of Homa's messages alone: the denominators of all slowdowns at this rate."""
    homa = Point("homa", "", 0.0)
    return Idle(sizes, tuple(alone(setup, homa, rate, size, False) for size in sizes))


def nothing(setup: Setup, rate: int, idle: Idle) -> Model:
    """Of a transport that homa-sim does not have."""
    return Model([], wires(setup, rate, idle.sizes), {})


def run(setup: Setup, point: Point, rate: int, idle: Idle) -> Model:
    """Simulate `point` with the delay that `idle`, the lab's, tells."""
    delay = max(0.0, idle.times[0] - alone(setup, point, rate, idle.sizes[0])) / 2
    window = setup.window_s(point, rate)
    timing: Spec = {
        "workload": point.workload,
        "load": point.load,
        "warmup": f"{warmup_s(rate):g}s",
        "measure": f"{window:g}s",
        "drain": f"{drain_s(setup.link_bps / rate):g}s",
    }
    found = program.run(normal({**spec_of(setup, point, rate, delay), **timing}))
    counts = found.get("sim", {}).get("counts", {})
    queues = found.get("sim", {}).get("queues", {}).get("host-down", {})
    metrics = found.get("transport", {}).get("metrics", {})
    facts = {
        "sim_delay_ns": delay,
        "sim_completed": float(found.get("latency_ns", {}).get("count", 0)),
        "sim_drops": float(counts.get("packets_dropped", 0)),
        "sim_peak_queue": float(queues.get("max_bytes", 0)),
        "sim_unfinished": float(found.get("sim", {}).get("unfinished", 0)),
        **{f"sim_{name}": float(metrics[its]) for its, name in _AGAIN.items() if its in metrics},
    }
    return Model(list(found.get("deciles") or []), wires(setup, rate, idle.sizes), facts)
