# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The file hosts.toml: which hosts there are, and how they are reached. docs/lab.md has an example.

What is said above all [[host]] tables holds for each of them that does not say it itself.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from lab.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,254}")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_DEVICE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,14}")
_PATH = re.compile(r"(~/|/)[^\x00-\x1f]{0,1000}")
_SHARED = {"user", "key", "known_hosts", "interface", "folder", "ssh_port"}
_OF_ALL = _SHARED | {"priorities", "mtu", "host"}
_OF_HOST = _SHARED | {"name", "ssh", "address"}
MOST = 1000


@dataclass(frozen=True)
class RealHost:
    """`ssh` and `ssh_port`: where its SSH server is. `address`: of `interface`, where experiments
    run. `folder`: where homa-bench and homad are. `key`, `known_hosts`: files of ours, "" for what
    SSH does by itself."""

    name: str
    ssh: str
    ssh_port: int
    user: str
    key: str
    known_hosts: str
    address: str
    interface: str
    folder: str


@dataclass(frozen=True)
class Inventory:
    """`priorities`: strict priorities of the switch's ports. `mtu`: of all interfaces."""

    hosts: list[RealHost]
    priorities: int
    mtu: int


def load(path: Path) -> Inventory:
    """The inventory in file `path`; a UsageError that says what is wrong with it."""
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"--inventory {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--inventory {path} is not TOML: {error}") from None
    try:
        return _inventory(document)
    except UsageError as error:
        raise UsageError(f"--inventory {path}: {error}") from None


def _inventory(document: dict) -> Inventory:
    _known(document, _OF_ALL, "the file")
    tables = document.get("host")
    if not isinstance(tables, list) or not 2 <= len(tables) <= MOST:
        raise UsageError(f"it has to have 2 to {MOST} tables [[host]]")
    shared = {name: document[name] for name in _SHARED if name in document}
    hosts = [_host(table, shared, number) for number, table in enumerate(tables, 1)]
    for what in ("name", "address"):
        seen = [getattr(host, what) for host in hosts]
        twice = next((one for one in seen if seen.count(one) > 1), None)
        if twice:
            raise UsageError(f"two hosts have the {what} {twice}")
    if len({ipaddress.ip_address(host.address).version for host in hosts}) > 1:
        raise UsageError("some hosts have an IPv4 address and some an IPv6 address; use one kind")
    return Inventory(
        hosts,
        _number(document, "priorities", 1, 8, None, "the file"),
        _number(document, "mtu", 576, 9000, 1500, "the file"),
    )


def _host(table: object, shared: dict, number: int) -> RealHost:
    where = f"host {number}"
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table [[host]]")
    _known(table, _OF_HOST, where)
    all_of_it = {**shared, **table}
    address = _text(all_of_it, "address", None, re.compile(r"[0-9a-fA-F.:]{2,45}"), where)
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise UsageError(f"{where}: address '{address}' is not an IP address") from None
    ssh = _text(all_of_it, "ssh", address, _NAME, where)
    return RealHost(
        name=_text(all_of_it, "name", ssh, _NAME, where),
        ssh=ssh,
        ssh_port=_number(all_of_it, "ssh_port", 1, 65535, 22, where),
        user=_text(all_of_it, "user", "root", _USER, where),
        key=_text(all_of_it, "key", "", _PATH, where),
        known_hosts=_text(all_of_it, "known_hosts", "", _PATH, where),
        address=address,
        interface=_text(all_of_it, "interface", None, _DEVICE, where),
        folder=_text(all_of_it, "folder", "/usr/bin", _PATH, where),
    )


def _known(table: dict, names: set[str], where: str) -> None:
    for name in table:
        if name not in names:
            raise UsageError(f"{where} has '{name}', which is none of {', '.join(sorted(names))}")


def _text(table: dict, name: str, usual: str | None, form: re.Pattern[str], where: str) -> str:
    value = table.get(name, usual)
    if value is None:
        raise UsageError(f"{where} does not say its {name}")
    if not isinstance(value, str) or not (form.fullmatch(value) or value == usual):
        raise UsageError(f"{where}: {name} = {value!r} cannot be")
    return value


def _number(table: dict, name: str, low: int, high: int, usual: int | None, where: str) -> int:
    value = table.get(name, usual)
    if value is None:
        raise UsageError(f"{where} does not say {name}, {low} to {high}")
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise UsageError(f"{where}: {name} = {value!r} is not a number from {low} to {high}")
    return value
