# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Kernel TCP at its best in these networks: the settings of every host.

The baseline must be beaten honestly, so TCP gets what an expert would give it: a congestion
control and a minimum retransmission timeout made for a network of microseconds, no slow start
after idle, no corking, no cached metrics. docs/demo.md says how each was chosen.
"""

from __future__ import annotations

from lab.net.hosts import Host, run

CONGESTION_CONTROLS = ("cubic", "reno", "bbr")
RTO_MIN_MS = 1  # the default of 200 ms would dominate every tail here
# But not where links are made slower: an answer takes as long as a delayed ack there, 40 ms, which
# is not made slower, and what the receiver has would be sent again all the time.
SLOW_RTO_MIN_MS = 200
INITIAL_WINDOW = 10

_SYSCTLS = {
    "net.ipv4.tcp_slow_start_after_idle": "0",
    "net.ipv4.tcp_autocorking": "0",
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 65536 4194304",
}


def tune(
    hosts: list[Host], congestion: str = "cubic", rto_min_ms: int = RTO_MIN_MS
) -> dict[str, object]:
    """Apply the settings in every host; what was applied, for the report."""
    for host in hosts:
        pairs = [f"{key}={value}" for key, value in _SYSCTLS.items()]
        run(host.command(["sysctl", "-q", "-e", "-w", *pairs]), check=False)
        prefix = f"{host.address.rsplit('.', 1)[0]}.0/24"
        # A route carries what sockets to it use, without touching any program.
        run(
            [
                "ip",
                "-n",
                host.namespace,
                "route",
                "replace",
                prefix,
                "dev",
                host.device,
                "proto",
                "kernel",
                "scope",
                "link",
                "src",
                host.address,
                "congctl",
                congestion,
                "rto_min",
                f"{rto_min_ms}ms",
                "initcwnd",
                str(INITIAL_WINDOW),
            ]
        )
    return {
        "congestion": congestion,
        "rto_min_ms": rto_min_ms,
        "initial_window": INITIAL_WINDOW,
        **_SYSCTLS,
    }
