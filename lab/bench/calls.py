# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""System calls for packets, as homad's own counters have them: of all daemons, per RPC.

Not every system call: what a daemon does to sleep, to wake others and for its slow side is not for
packets. `light.Counter` counts those of all kinds.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.net.homad import Homad

KINDS = {"afxdp_calls": "afxdp", "udp_calls": "udp"}


def during(daemons: list[Homad], run: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What `run` returns, and the calls of each kind for an RPC that it made. The RPCs are those that
    the first daemon sent; starting and attaching counts, too, and is little in a long run."""
    before = [_counts(daemon) for daemon in daemons]
    values = run()
    after = [_counts(daemon) for daemon in daemons]
    sent = after[0]["requests"] - before[0]["requests"]
    if sent <= 0:
        return values
    for name in KINDS:
        made = sum(b[name] - a[name] for a, b in zip(before, after, strict=True))
        values[name] = made / sent
    return values


def _counts(daemon: Homad) -> dict[str, int]:
    seen = daemon.snapshot()
    counts = dict.fromkeys(KINDS, 0)
    for port in seen["ports"]:
        for name, backend in KINDS.items():
            if port["backend"] == backend:
                counts[name] += int(port["nic"]["nic_syscalls"])
    return {**counts, "requests": int(seen["engine"]["requests_sent"])}


def sentence(values: dict[str, list[float]]) -> str:
    """One line of `values`, the rounds of each kind; "" if there are none."""
    if not all(values.get(name) for name in KINDS):
        return ""
    low_high = [f"{min(values[n]):.2f}–{max(values[n]):.2f}" for n in KINDS]
    return (
        "System calls for packets per RPC, both daemons of homad together: "
        f"AF_XDP {low_high[0]}, UDP {low_high[1]}."
    )
