# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Fields of the packed structures and values of the constants of homa_nic_pkg.sv, read from that
file, so that a test need not repeat them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "rtl" / "homa_nic_pkg.sv"

_STRUCT = re.compile(r"typedef struct packed \{(.*?)\} (\w+);", re.S)
_MEMBER = re.compile(r"^\s*(?:logic(?: \[(.+?):0\])?|(homa_\w+_t)) (\w+);", re.M)
_CONSTANT = re.compile(r"localparam logic \[\d+:0\] (\w+) = \d+'d(\d+);")


@cache
def constants() -> dict[str, int]:
    """CLASS_*, WIRE_* and their like."""
    return {name: int(value) for name, value in _CONSTANT.findall(PACKAGE.read_text())}


@cache
def struct(name: str) -> tuple[tuple[str, int], ...]:
    """(member, bits) from the highest bit down; members of a structure inside take its place."""
    text = PACKAGE.read_text()
    hdr_bytes = int(re.search(r"HDR_BYTES = (\d+);", text)[1])  # type: ignore[index]
    bodies = {tag: body for body, tag in _STRUCT.findall(text)}
    members: list[tuple[str, int]] = []
    for top, inner, member in _MEMBER.findall(bodies[name]):
        if inner:
            members += struct(inner)
        elif top == "8*HDR_BYTES-1":
            members.append((member, 8 * hdr_bytes))
        else:
            members.append((member, int(top) + 1 if top else 1))
    return tuple(members)


def unpack(name: str, value: int) -> dict[str, int]:
    """The members of a structure whose bits are `value`."""
    found = {}
    for member, bits in reversed(struct(name)):
        found[member] = value & ((1 << bits) - 1)
        value >>= bits
    return found


@cache
def lro_events() -> dict[str, int]:
    """EVENT_* of homa_lro_pkg.sv without that prefix: which counter has which number."""
    text = PACKAGE.with_name("homa_lro_pkg.sv").read_text()
    found = _CONSTANT.findall(text)
    return {n.removeprefix("EVENT_"): int(v) for n, v in found if n.startswith("EVENT_")}
