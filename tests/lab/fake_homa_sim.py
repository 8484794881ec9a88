#!/usr/bin/python3 -IS
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Stands in for homa-sim: takes its flags, simulates nothing, writes a plausible result.

FAKE_LOG: a line per run is appended there. FAKE_SECONDS: how long a run takes. FAKE_FAIL: runs
whose arguments contain this text fail. FAKE_GIVEN_UP: messages that failed in each run.
"""

import itertools
import json
import os
import signal
import sys
import time

PROTOCOLS = ("homa", "pfabric", "phost", "pias", "ndp", "dctcp", "tcp", "tas", "oracle")
WORST = {
    "homa": 2.0,
    "pfabric": 2.1,
    "phost": 5,
    "pias": 6,
    "ndp": 9,
    "dctcp": 60,
    "tcp": 90,
    "tas": 70,
    "oracle": 1,
}
# The longest message of each workload, roughly; the bins of one must not pass for another's.
LONGEST = {"w1": 30_000, "w2": 130_000, "w3": 5_100_000, "w4": 10_000_000, "w5": 29_000_000}
LIMIT = {"homa": 0.88, "pfabric": 0.85, "phost": 0.7, "pias": 0.83, "ndp": 0.73}
PARTS = ("send", "reply", "recv", "wake", "napi", "softirq", "pacer", "total")
COSTS = ("mips", "send-call", "recv-call", "unit-out", "napi-pass", "napi-packet")
COSTS += ("softirq-packet", "interrupt")
MEANS = {"w1": 250, "w2": 433, "w3": 2423, "w4": 60175, "w5": 385315}
stopped = False


FEW = int(os.environ.get("FAKE_MESSAGES", "1000"))  # in each bin and summary


def percentiles(p99: float) -> dict:
    """A summary with its histogram, slowdowns in thousandths."""
    values = [int(500 * p99), int(1000 * p99)]
    shape = {"values": values, "counts": [FEW - FEW // 10, FEW // 10], "count": FEW}
    shape |= {"sum": FEW * values[0], "min": values[0], "max": values[1]}
    p = {
        "count": FEW,
        "min": p99 / 2,
        "p50": p99 / 2,
        "p99": p99,
        "p999": p99 * 2,
        "mean": p99 / 1.5,
    }
    return {**p, "histogram": shape}


def series(excess: float, seed: int) -> dict:
    """A backlog that grows by `excess` of 1 GB/s above the oracle's, which fluctuates more."""
    theirs = [1e9 + 1e8 * ((n * 7 + seed) % 13) for n in range(250)]
    ours = [b + excess * 1e9 * 0.001 * n + 1e3 * seed for n, b in enumerate(theirs)]
    return {"interval_s": 0.001, "samples": ours, "reference": theirs}


def listing() -> dict:
    option = {"name": "ns2-sizes", "default": 0, "min": 0, "max": 1, "unit": "bool", "text": "x"}
    presets = {"homa": ["sigcomm18", "low-queue", "linux"], "pias": ["sigcomm18", "nsdi15"]}
    return {
        "protocols": [
            {"name": p, "title": p, "text": p, "presets": presets.get(p, []), "settings": [option]}
            for p in PROTOCOLS
        ]
    }


def result(argv: list[str]) -> dict:
    flags = {a: b for a, b in itertools.pairwise(argv) if a.startswith("--")}
    protocol, load = flags.get("--protocol", "homa"), float(flags.get("--load", 0.8))
    carried = min(load, LIMIT.get(protocol, 1))
    p99 = WORST[protocol] * (1 + int(flags.get("--seed", 1)) / 100)
    low = flags.get("--preset") == "low-queue"
    step = LONGEST.get(flags.get("--workload", "w4"), 500) // 50
    bins = [
        {"from": n / 50, "to": (n + 1) / 50, "min_bytes": step * n + 1, "max_bytes": step * (n + 1)}
        | percentiles(p99)
        for n in range(50)
    ]
    deciles = [
        {
            "decile": n, "size_min": 1, "size_max": 10, "slowdown": percentiles(p99),
            "latency_ns": {"p50": 1000, "p99": 2000, **percentiles(10 * p99)},
        }
        for n in (1, 10)
    ]  # fmt: skip
    queue = {
        "mean_bytes": 1500,
        "max_bytes": 20000 if low else 70000,
        "mean_bytes_worst_port": 9000,
    }
    sim = {
        "bins": bins,
        "queues": dict.fromkeys(("tor-up", "tor-down", "host-down"), queue),
        "switch_peak_bytes": 300000,
        "utilisation": {"application": carried * 0.9, "total": carried, "once": carried},
        "waste": 0.05,
        "priorities": [0.1] * 8,
        "causes": {"messages": 9, "wait_us": 0.5, "lag_us": 1.0, "share_lag": 0.67},
        "backlog": {"start_bytes": 1, "end_bytes": 1, "stable": load <= LIMIT.get(protocol, 1)}
        | series(max(0.0, load - LIMIT.get(protocol, 1)), int(flags.get("--seed", 1))),
        "single_packet": percentiles(p99),
        "software": {"cores_used": dict.fromkeys(PARTS, 0.5), "costs": dict.fromkeys(COSTS, 1000)},
        "multi_packet": percentiles(3 * p99),
        "short": {"count": 100, "p50_us": 2 * p99, "p99_us": 10 * p99},
        "unfinished": 0,
        "counts": {"packets_sent": 10, "packets_dropped": 0, "hops": 40, "window_drops": 4}
        | {"packets_received": 10, "packets_on_their_way": 0, "messages_started": 9}
        | {"messages_delivered": 9, "messages_failed": int(os.environ.get("FAKE_GIVEN_UP", "0"))},
        "digest": "0123", "wall_s": 0.1, "cpu_s": 0.05, "simulated_s": 0.01, "hops_per_s": 6e6,
        "memory_bytes": 2**24, "build": "fake",
    }  # fmt: skip
    return {
        "schema": "homa-bench/1", "complete": not stopped, "interrupted": stopped,
        "slowdown": percentiles(p99), "latency_ns": {**percentiles(10 * p99), "max": 3},
        "deciles": deciles, "sim": sim, "time": {"window_s": 0.01},
        "throughput": {"offered_gbps": 8.0, "offered_load": load, "wire_gbps": 1.0}
        | {"request_gbps": 20.0 / p99, "goodput_gbps": 10.0, "rps": 3e6 / p99},
        "config": {"mean_bytes": MEANS.get(flags.get("--workload", "w4"), 100)},
    }  # fmt: skip


def stop(*_: object) -> None:
    global stopped  # noqa: PLW0603
    stopped = True


def main(argv: list[str]) -> int:
    if "--list" in argv:
        print(json.dumps(listing()))
        return 0
    signal.signal(signal.SIGINT, stop)
    seconds = float(os.environ.get("FAKE_SECONDS", "0"))
    if log := os.environ.get("FAKE_LOG"):
        with open(log, "a") as out:
            out.write(f"{os.getpid()} {' '.join(argv)}\n")
    if (bad := os.environ.get("FAKE_FAIL")) and bad in " ".join(argv):
        print("homa-sim: it went wrong", file=sys.stderr)
        return 1
    end = time.monotonic() + seconds
    while time.monotonic() < end and not stopped:
        if "--progress" in argv:
            line = f"{int(1e6 * (1 - (end - time.monotonic()) / seconds))} 1000000 7 10\n"
            try:
                os.write(int(argv[argv.index("--progress") + 1]), line.encode())
            except OSError:
                return 1
        time.sleep(0.02)
    with open(argv[argv.index("--json") + 1], "w") as out:
        json.dump(result(argv), out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
