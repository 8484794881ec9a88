# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa hw`: what the blocks of hw/rtl cost."""

from __future__ import annotations

import argparse
import sys
import time

from lab.errors import LabError
from lab.hw.blocks import BLOCKS


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./homa hw", description="The hardware of hw/ (docs/hardware.md)."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser("report", help="area and speed of each block, by open tools")
    report.add_argument("blocks", nargs="*", metavar="BLOCK", help=", ".join(BLOCKS))
    report.add_argument(
        "--width", "--size", type=int, action="append", help="data bits, or messages of grant*"
    )
    args = parser.parse_args(arguments)
    unknown = [name for name in args.blocks if name not in BLOCKS]
    if unknown:
        parser.error(f"no block is called {unknown[0]}; there are {', '.join(BLOCKS)}")
    for name in args.blocks or BLOCKS:
        for size in args.width or ():
            if size not in BLOCKS[name].sizes:
                parser.error(f"the sizes of {name} are {', '.join(map(str, BLOCKS[name].sizes))}")
    try:
        return _report(args.blocks or list(BLOCKS), args.width or [])
    except LabError as error:
        print(f"homa: {error}", file=sys.stderr)
        return error.exit_code


def _report(names: list[str], widths: list[int]) -> int:
    from lab.hw.synthesize import cost

    print("LUTs, flip-flops, block RAMs: UltraScale+ (yosys). MHz: ECP5-85, grade 8 (nextpnr).")
    print(f"{'block':<13}{'size':>5}{'LUTs':>8}{'FFs':>8}{'RAMs':>6}{'MHz':>8}  longest path")
    for name in names:
        for width in widths or BLOCKS[name].sizes:
            begun = time.monotonic()
            c = cost(BLOCKS[name], width)
            print(
                f"{name:<13}{width:>5}{c.luts:>8}{c.flops:>8}{c.rams:>6.1f}{c.mhz:>8.1f}  {c.path}"
                f"  ({time.monotonic() - begun:.0f} s)",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
