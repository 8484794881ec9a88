# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa hw`: what the blocks of hw/rtl cost, and programs whose packets they carry."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lab.errors import LabError, ending
from lab.hw.blocks import BLOCKS, Block


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./homa hw", description="The hardware of hw/ (docs/hardware.md)."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    report = commands.add_parser(
        "report",
        help="area and speed of each block, by open tools",
        description="Area in UltraScale+ by yosys and speed in an ECP5 by nextpnr, of the blocks "
        "named or of all, the whole card (nic) included; a block that is too large for the ECP5 "
        "has no speed. Minutes for each block and size, and far more for the card.",
    )
    report.add_argument("blocks", nargs="*", metavar="BLOCK", help=", ".join(BLOCKS))
    report.add_argument(
        "--width", "--size", type=int, action="append", help="data bits, or messages of grant*"
    )
    report.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another parameter of the modules, as PAGES_BITS=9 of lro and nic",
    )
    report.add_argument(
        "--instances",
        action="store_true",
        help="the area of each module inside instead, by its place; no speed",
    )
    demo = commands.add_parser(
        "demo",
        help="two hosts, RPCs through the Verilated card",
        description="Two hosts, each with a Verilated homa_nic as its network card: an echo, then "
        "messages of workload W4, of which every byte is checked, and the cards' counters before "
        "and after (docs/hardware.md).",
    )
    demo.add_argument("--seconds", type=int, default=10, help="how long messages are sent (10)")
    demo.add_argument("--wave", type=Path, metavar="FILE", help="waveform of the echo (VCD)")
    demo.add_argument(
        "--without",
        action="append",
        default=[],
        choices=("lso", "lro", "rss"),
        help="an offload that the cards do not have",
    )
    args = parser.parse_args(arguments)
    if args.command == "demo":
        if not 1 <= args.seconds <= 3600:
            parser.error("--seconds must be 1 to 3600")
        return _guarded(lambda: _demo(args))
    unknown = [name for name in args.blocks if name not in BLOCKS]
    if unknown:
        parser.error(f"no block is called {unknown[0]}; there are {', '.join(BLOCKS)}")
    for name in args.blocks or BLOCKS:
        for size in args.width or ():
            if size not in BLOCKS[name].sizes:
                parser.error(f"the sizes of {name} are {', '.join(map(str, BLOCKS[name].sizes))}")
    for said in args.set:
        if not re.fullmatch(r"[A-Z_]+=\d+", said):
            parser.error(f"--set takes NAME=VALUE, not {said}")
    others = {name: int(value) for name, value in (said.split("=") for said in args.set)}
    blocks = {n: replace(BLOCKS[n], others=others) for n in args.blocks or BLOCKS}
    widths = args.width or []
    return _guarded(lambda: (_instances if args.instances else _report)(blocks, widths))


def _guarded(what: Callable[[], int]) -> int:
    try:
        return what()
    except LabError as error:
        print(f"homa: {error}", file=sys.stderr)
        return error.exit_code


def _demo(args: argparse.Namespace) -> int:
    from lab.hw import demo

    return demo.main(demo.Options(args.seconds, args.wave, tuple(args.without)))


def _report(blocks: dict[str, Block], widths: list[int]) -> int:
    from lab.hw.synthesize import area, speed

    print("LUTs, flip-flops, block RAMs: UltraScale+ (yosys). MHz: ECP5-85, grade 8 (nextpnr).")
    print(f"{'block':<13}{'size':>5}{'LUTs':>8}{'FFs':>8}{'RAMs':>6}{'MHz':>8}  longest path")
    for name, block in blocks.items():
        for width in widths or block.sizes:
            begun = time.monotonic()
            luts, flops, rams = area(block, width)
            # The area of a large block is there long before its speed.
            print(f"{name:<13}{width:>5}{luts:>8}{flops:>8}{rams:>6.1f}", end="", flush=True)
            mhz, path = speed(block, width)
            said = "" if mhz is None else f"{mhz:.1f}"
            print(f"{said:>8}  {path}  ({time.monotonic() - begun:.0f} s)", flush=True)
    return 0


def _instances(blocks: dict[str, Block], widths: list[int]) -> int:
    from lab.hw.synthesize import instances

    print(f"{'instance':<50}{'size':>5}{'LUTs':>8}{'FFs':>8}{'RAMs':>6}")
    for block in blocks.values():
        for width in widths or block.sizes:
            for place, luts, flops, rams in instances(block, width):
                print(f"{place:<50}{width:>5}{luts:>8}{flops:>8}{rams:>6.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(ending(main))
