# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The --flags at the head of a script, with packetdrill's defaults; the tolerances differ,
because time is virtual here and nothing is late by chance."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from lab.pkt.errors import BadScript, Unsupported
from lab.pkt.script import Script
from lab.pkt.wire import Address

# A millisecond: the unit of TCP's time stamps, and more than any rounding of a timer.
TOLERANCE_USECS = 1000

# What concerns only packetdrill's own machinery: how it prints, checks code, or is split in two.
_WITHOUT_MEANING = frozenset(
    {
        *("code_command", "code_format", "code_sockopt", "debug", "dry_run", "verbose", "speed"),
        *("gateway_ip", "netmask_ip", "init_scripts", "define", "send_omit_free"),
    }
)


LOCAL: dict[int, Address] = {
    4: ipaddress.ip_address("192.168.0.1"),
    6: ipaddress.ip_address("fd3d:fa7b:d17d::1"),
}
REMOTE: dict[int, Address] = {
    4: ipaddress.ip_address("192.0.2.1"),
    6: ipaddress.ip_address("2001:db8::1"),
}


@dataclass
class Config:
    version: int = 4  # of the packets
    mapped: bool = False  # sockets are AF_INET6 with IPv4 addresses
    local: Address = LOCAL[4]
    remote: Address = REMOTE[4]
    bind_port: int = 8080
    connect_port: int = 8080
    mtu: int = 1500
    mss: int = 0  # what arrives with more is cut up, as GRO's opposite; 0: nothing is
    tolerance_usecs: int = TOLERANCE_USECS
    tolerance_percent: float = 0.0
    ts_tick_usecs: int = 0  # 0: the values of time stamps are not checked
    ts_ecr_scaled: bool = False
    strict_segments: bool = False


def of(script: Script) -> Config:
    """BadScript or Unsupported, with the flag's line."""
    config = Config()
    for name, value, line in script.options:
        try:
            _set(config, name, value)
        except (BadScript, Unsupported) as error:
            error.line = line
            raise
        except ValueError as error:
            raise BadScript(f"--{name}={value}: {error}", line) from error
    given = {name for name, _, _ in script.options}
    if "local_ip" not in given:
        config.local = LOCAL[config.version]
    if "remote_ip" not in given:
        config.remote = REMOTE[config.version]
    for address in (config.local, config.remote):
        if address.version != config.version:
            raise BadScript(f"{address} is no IPv{config.version} address, see --ip_version", 1)
    return config


def _set(config: Config, name: str, value: str | None) -> None:
    if name in _WITHOUT_MEANING:
        return
    if name in ("strict_segments", "tcp_ts_ecr_scaled"):
        setattr(config, name.removeprefix("tcp_"), True)
        return
    if name in ("non_fatal", "is_anyip") or name.startswith(("wire_", "so_")):
        raise Unsupported(f"--{name}")
    if value is None:
        raise BadScript(f"--{name} needs a value")
    value = value.strip('"')
    if name == "ip_version":
        known = {"ipv4": (4, False), "ipv6": (6, False), "ipv4-mapped-ipv6": (4, True)}
        if value not in known:
            raise BadScript(f"--ip_version={value}: known are {', '.join(known)}")
        config.version, config.mapped = known[value]
    elif name in ("bind_port", "connect_port"):
        setattr(config, name, _number(value, 1, 65535))
    elif name in ("mss", "mtu", "tolerance_usecs"):
        setattr(config, name, _number(value, 0 if name == "tolerance_usecs" else 68, 1 << 40))
        config.mtu = min(config.mtu, 65535)
    elif name == "tcp_ts_tick_usecs":
        config.ts_tick_usecs = _number(value, 0, 1_000_000)
    elif name == "tolerance_percent":
        config.tolerance_percent = min(max(float(value), 0.0), 100.0)
    elif name in ("local_ip", "remote_ip"):
        address = ipaddress.ip_address(value.partition("/")[0])
        setattr(config, name.removesuffix("_ip"), address)
    else:
        raise BadScript(f"packetdrill knows no --{name}")


def _number(text: str, least: int, most: int) -> int:
    value = int(text)
    if not least <= value <= most:
        raise BadScript(f"{value} is not between {least} and {most}")
    return value
