# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The map of homa_nic's registers (registers.toml) as a SystemVerilog package, a C header and a
page of documentation."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "registers.toml"
MADE = "written by hw/generate.py from hw/registers.toml, do not edit"


class MapError(Exception):
    """registers.toml says something impossible."""


@dataclass(frozen=True)
class Register:
    """`least`, `most`: values that may be written; `bits`: names of single bits."""

    name: str
    at: int
    writable: bool
    text: str
    reset: int
    least: int
    most: int
    bits: tuple[str, ...]


@dataclass(frozen=True)
class Map:
    """`table`, `counters`: the begin of each, in bytes; `sums`: how many counters are sums."""

    id: int
    version: int
    registers: tuple[Register, ...]
    table: dict[str, Any]
    counters_at: int
    sums: int
    counters: dict[str, str]


def _register(entry: dict[str, Any]) -> Register:
    if entry["access"] not in ("ro", "rw"):
        raise MapError(f"{entry['name']}: access is ro or rw, not {entry['access']}")
    return Register(
        entry["name"],
        entry["at"],
        entry["access"] == "rw",
        entry["text"],
        entry.get("reset", 0),
        entry.get("least", 0),
        entry.get("most", 0xFFFFFFFF),
        tuple(entry.get("bits", ())),
    )


def load(path: Path = SOURCE) -> Map:
    """The map; MapError."""
    said = tomllib.loads(path.read_text())
    counters = said["counters"]
    found = Map(
        said["id"],
        said["version"],
        tuple(_register(entry) for entry in said["register"]),
        said["table"],
        counters["at"],
        len(counters["sums"]),
        counters["text"],
    )
    if list(found.counters)[: found.sums] != counters["sums"]:
        raise MapError("counters that are sums come first, in the order of `sums`")
    taken = [r.at for r in found.registers]
    taken += range(found.counters_at, found.counters_at + 8 * len(found.counters), 4)
    taken += range(found.table["at"], found.table["at"] + 4 * found.table["entries"], 4)
    if len(set(taken)) != len(taken) or any(at % 4 for at in taken):
        raise MapError("two registers have one place, or one has none of 4 bytes")
    return found


def package(found: Map) -> str:
    """rtl/homa_regs_pkg.sv."""
    lines = [
        "// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later",
        "//",
        f"// The registers of homa_nic: {MADE}.",
        "// *_AT is a byte offset, *_LEAST and *_MOST are what may be written, COUNT_* the number of a",
        "// counter. No block needs all of it.",
        "/* verilator lint_off UNUSEDPARAM */",
        "package homa_regs_pkg;",
        f"  localparam logic [31:0] MAP_ID = 32'h{found.id:08x};",
        f"  localparam logic [31:0] MAP_VERSION = 32'h{found.version:08x};",
    ]
    for r in found.registers:
        lines.append(f"  localparam logic [11:0] {r.name}_AT = 12'h{r.at:03x};")
        if r.writable:
            for what, value in (("RESET", r.reset), ("LEAST", r.least), ("MOST", r.most)):
                lines.append(f"  localparam logic [31:0] {r.name}_{what} = 32'h{value:x};")
        lines += [f"  localparam int {r.name}_{bit} = {n};" for n, bit in enumerate(r.bits)]
    lines += [
        f"  localparam logic [11:0] {found.table['name']}_AT = 12'h{found.table['at']:03x};",
        f"  localparam int {found.table['name']}_ENTRIES = {found.table['entries']};",
        f"  localparam logic [11:0] COUNTER_AT = 12'h{found.counters_at:03x};",
        f"  localparam int COUNT = {len(found.counters)};",
        f"  localparam int COUNT_SUMS = {found.sums};",
    ]
    lines += [f"  localparam int COUNT_{name} = {n};" for n, name in enumerate(found.counters)]
    return "\n".join([*lines, "endpackage", "/* verilator lint_on UNUSEDPARAM */", ""])


def header(found: Map) -> str:
    """homa_nic_regs.h."""
    lines = [
        "/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */",
        f"/* The registers of homa_nic: {MADE}. */",
        "#ifndef HOMA_NIC_REGS_H",
        "#define HOMA_NIC_REGS_H",
        "",
        f"#define HOMA_NIC_ID_VALUE 0x{found.id:08x}u",
        f"#define HOMA_NIC_VERSION_VALUE 0x{found.version:08x}u",
        "",
        "/* Byte offsets, and bits of them. */",
    ]
    for r in found.registers:
        lines.append(f"#define HOMA_NIC_{r.name} 0x{r.at:03x}u")
        lines += [f"#define HOMA_NIC_{r.name}_{bit} 0x{1 << n:x}u" for n, bit in enumerate(r.bits)]
    lines += [
        f"#define HOMA_NIC_{found.table['name']}(n) (0x{found.table['at']:03x}u + 4u * (n))",
        f"#define HOMA_NIC_{found.table['name']}_ENTRIES {found.table['entries']}u",
        "",
        "/* The low word of a counter; the high word is 4 bytes behind it, and read next. */",
        f"#define HOMA_NIC_COUNTER(n) (0x{found.counters_at:03x}u + 8u * (n))",
    ]
    lines += [f"#define HOMA_NIC_COUNT_{name} {n}u" for n, name in enumerate(found.counters)]
    return "\n".join([*lines, "", "#endif", ""])


def page(found: Map) -> str:
    """docs/hardware-registers.md."""
    lines = [
        "# Registers of the card",
        "",
        "You write a driver for a card with `homa_nic` ([hardware.md](hardware.md)) and look for a",
        f"register. This page was {MADE};",
        "`hw/homa_nic_regs.h` has the same for C.",
        "",
        "| at | name | | after a reset | may be written | |",
        "|---|---|---|---|---|---|",
    ]
    for r in found.registers:
        access = f"{r.reset} | {r.least} to {r.most}" if r.writable else "| "
        text = r.text
        if r.bits:
            text += "; " + ", ".join(f"bit {n} `{bit}`" for n, bit in enumerate(r.bits))
        lines.append(
            f"| 0x{r.at:03x} | `{r.name}` | {'rw' if r.writable else 'ro'} | {access} | {text} |"
        )
    t = found.table
    lines.append(
        f"| 0x{t['at']:03x} + 4 n | `{t['name']}` | rw | n modulo QUEUES | 0 to QUEUES - 1 | "
        f"{t['text']}; {t['entries']} entries |"
    )
    lines += [
        "",
        "Counters have 64 bits, are read only and begin at 0 with each reset.",
        "",
        "| at | name | counts |",
        "|---|---|---|",
    ]
    for n, (name, text) in enumerate(found.counters.items()):
        lines.append(f"| 0x{found.counters_at + 8 * n:03x} | `{name}` | {text} |")
    return "\n".join([*lines, ""])
