#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Write what of the hardware comes from elsewhere: the packet layout and the map of registers.

The layout has one place in this tree, engine/wire/homa/homa_wire.h. The reader of that header is
dissector/generate.py, which turns it into Lua; here the same values become SystemVerilog. A field
that moves in the header moves in the C codec, in Wireshark and in the RTL. The registers have one
place, too, hw/registers.toml (registers.py).

usage: generate.py            write the files
       generate.py --check    say whether they are up to date (status 1: one is not)
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from dissector.generate import HEADER, Layout, LayoutError, parse  # noqa: E402

from hw import registers  # noqa: E402

PACKAGE = HERE / "rtl" / "homa_wire_pkg.sv"
HEAD = """\
// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//
// What a Homa packet looks like on the wire: written by hw/generate.py from
// engine/wire/homa/homa_wire.h, do not edit. *_AT is a byte offset from the begin of the Homa
// header, *_BYTES a size in bytes, TYPE_* a value of the type byte. No block needs all of it.
/* verilator lint_off UNUSEDPARAM */
package homa_wire_pkg;
"""


def _constant(name: str, value: int) -> str:
    return f"  localparam logic [31:0] {name} = 32'h{value:x};"


def render(layout: Layout) -> str:
    """The package's text."""
    lines = [_constant(name.upper(), value) for name, value in layout.constants.items()]
    lines += [
        f"  localparam logic [7:0] TYPE_{name} = 8'h{code:02x};"
        for name, (code, _) in layout.types.items()
    ]
    for name, fields in layout.structs.items():
        lines.append(f"  localparam int {name.upper()}_STRUCT_BYTES = {layout.sizes[name]};")
        for field in fields:
            where = f"{name}_{field.name}".upper()
            lines.append(f"  localparam int {where}_AT = {field.offset};")
            lines.append(f"  localparam int {where}_BYTES = {field.size};")
    return HEAD + "\n".join(lines) + "\nendpackage\n/* verilator lint_on UNUSEDPARAM */\n"


def files(layout: Layout, found: registers.Map) -> dict[Path, str]:
    """All that is written, and what is in it."""
    return {
        PACKAGE: render(layout),
        HERE / "rtl" / "homa_regs_pkg.sv": registers.package(found),
        HERE / "homa_nic_regs.h": registers.header(found),
        HERE.parent / "docs" / "hardware-registers.md": registers.page(found),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="generate.py", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if out of date")
    parser.add_argument("--header", type=Path, default=HEADER)
    args = parser.parse_args(arguments)
    try:
        made = files(parse(args.header.read_text()), registers.load())
    except (LayoutError, registers.MapError) as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 2
    old = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in old:
        if args.check:
            print(f"{path.name} is out of date: run hw/generate.py", file=sys.stderr)
        else:
            path.write_text(made[path])
    return int(args.check and bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
