# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What is wrong with the hosts of an inventory, in plain sentences. It looks and changes nothing."""

from __future__ import annotations

import ipaddress
import math
import shlex

from lab.inventory.hosts import Inventory, RealHost

CLOCK_S = 0.01  # by which clocks may differ: runs begin at a moment that all hosts are told
PROGRAMS = ("homa-bench", "homad")


def script(host: RealHost) -> str:
    """What a host is asked: a shell script that prints "name=value" lines."""
    device = shlex.quote(host.interface)
    lines = [
        "PATH=$PATH:/usr/sbin:/sbin",
        'echo "clock=$(date +%s.%N)"',
        'echo "user=$(id -u)"',
        f'echo "mtu=$(cat /sys/class/net/{device}/mtu 2>/dev/null)"',
        f'echo "state=$(cat /sys/class/net/{device}/operstate 2>/dev/null)"',
        f'echo "addresses=$(ip -o addr show dev {device} 2>/dev/null'
        " | awk '{print $4}' | tr '\\n' ' ')\"",
    ]
    folder = host.folder.removeprefix("~/") if host.folder.startswith("~/") else host.folder
    for program in PROGRAMS:
        path = shlex.quote(f"{folder}/{program}")
        digest = f"$(sha256sum {path} 2>/dev/null | cut -c 1-12)"
        lines.append(f"says=$({path} --version 2>/dev/null | head -n 1)")
        lines.append(f'echo "{program}=${{says:+$says ({digest})}}"')
    return "\n".join(["cd || exit 1", *lines]) + "\n"


def answers(text: str) -> dict[str, str]:
    """The "name=value" lines of a host's answer; others (a greeting) are left out."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def problems(inventory: Inventory, found: dict[str, dict]) -> list[str]:
    """One sentence for each thing that is wrong, by host; none if experiments can run."""
    said: list[str] = []
    versions: dict[str, dict[str, str]] = {program: {} for program in PROGRAMS}
    for host in inventory.hosts:
        answer = found.get(host.name) or {"problem": "it was not asked"}
        if "problem" in answer:
            said.append(f"{host.name}: {answer['problem']}.")
            continue
        known = answers(str(answer["out"]))
        said += [f"{host.name}: {one}" for one in _host(inventory, host, known)]
        said += [f"{host.name}: {one}" for one in _clock(known, answer["before"], answer["after"])]
        for program in PROGRAMS:
            if version := known.get(program):
                versions[program][host.name] = version
            else:
                said.append(
                    f"{host.name}: {host.folder}/{program} is missing or does not run; build and "
                    "copy it there, or say another folder."
                )
    return [_plain(one) for one in said + _versions(versions)]


def _plain(text: str) -> str:
    """`text` without what a terminal takes for commands: parts of it come from the hosts."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _host(inventory: Inventory, host: RealHost, known: dict[str, str]) -> list[str]:
    said = []
    if known.get("user") != "0":
        said.append(f"user {host.user} is not root, which AF_XDP and homad's devices need.")
    mtu = known.get("mtu", "")
    if not mtu:
        return [*said, f"there is no interface {host.interface}."]
    if mtu != str(inventory.mtu):
        said.append(f"{host.interface} has MTU {mtu}; the inventory says {inventory.mtu}.")
    if known.get("state") not in ("up", "unknown"):
        said.append(f"{host.interface} is {known.get('state') or 'in no known state'}, not up.")
    if not _has(known.get("addresses", ""), host.address):
        said.append(f"{host.interface} does not have the address {host.address}.")
    return said


def _has(addresses: str, wanted: str) -> bool:
    for one in addresses.split():
        try:
            if ipaddress.ip_interface(one).ip == ipaddress.ip_address(wanted):
                return True
        except ValueError:
            continue
    return False


def _clock(known: dict[str, str], before: float, after: float) -> list[str]:
    """The host looked at its clock between `before` and `after` of ours."""
    try:
        theirs = float(known["clock"])
    except (KeyError, ValueError):
        theirs = math.nan
    if not math.isfinite(theirs):
        return ["it does not tell the time (date +%s.%N)."]
    late = theirs - after if theirs > after else theirs - before if theirs < before else 0.0
    if abs(late) <= CLOCK_S:
        return []
    word = "ahead of" if late > 0 else "behind"
    return [f"its clock is at least {abs(late):.3f} s {word} this machine's; run NTP or PTP."]


def _versions(versions: dict[str, dict[str, str]]) -> list[str]:
    said = []
    for program, by_host in versions.items():
        if len(set(by_host.values())) > 1:
            each = ", ".join(f"{version} on {host}" for host, version in sorted(by_host.items()))
            said.append(f"{program} is not the same everywhere: {each}.")
    return said
