# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which ports homad takes from the kernel for connections of applications."""

from __future__ import annotations

import sys

import pytest
from homad import Host, needs_homad, needs_root, one_host

pytestmark = [needs_homad, needs_root]

CONFIG = """
[network]
udp = false
[tcp]
ports = 256
[[tcp_rule]]
connect = [1, 65535]
"""
# Prints the ports of 20000 to 59999 that somebody has.
TAKEN = """
import socket
for port in range(20000, 60000):
    with socket.socket(socket.AF_INET6) as one:
        try:
            one.bind(("::", port))
        except OSError:
            print(port)
"""


def taken(host: Host) -> set[int]:
    done = host.run([sys.executable, "-c", TAKEN])
    return {int(line) for line in done.stdout.split()}


@pytest.mark.sanitized
@pytest.mark.parametrize(
    ("usual", "reserved", "allowed"),
    [
        ("40000 41999", "", {*range(40000, 42000)}),
        # Drawing soon finds none of the last ports, and the kernel does.
        ("40000 40255", "", {*range(40000, 40256)}),
        (
            "30000 30999",
            "80,30000-30499,30600,30601,30990-31005",
            {*range(30500, 30990)} - {30600, 30601},
        ),
    ],
)
def test_ports__are_those_that_programs_get_unasked(
    usual: str, reserved: str, allowed: set[int]
) -> None:
    with one_host(CONFIG, start=False) as host:
        words = {"ip_local_reserved_ports": reserved, "ip_local_port_range": usual}
        for name, value in words.items():
            host.run(["sysctl", "-q", "-w", f"net.ipv4.{name}={value}"])
        host.homad.start()
        ports = taken(host)
        assert len(ports) == 256 and ports <= allowed, ports - allowed
