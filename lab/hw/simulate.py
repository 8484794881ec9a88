# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Builds a block with Verilator and runs its cocotb test: a program of the private environment.

usage: python3 -m lab.hw.simulate BLOCK --width BITS [--frames N] [--seed N] [--waves]
"""

from __future__ import annotations

import argparse
import os
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from lab.hw import oracle, verilate
from lab.hw.blocks import BLOCKS, RTL
from lab.paths import BUILD


def failures(results: Path) -> int:
    """Tests in cocotb's report that failed; 1 if there is none at all."""
    if not results.exists():
        return 1
    cases = list(ET.parse(results).getroot().iter("testcase"))
    bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    return len(bad) if cases else 1


def simulate(name: str, width: int, variables: dict[str, str], *, waves: bool, root: Path) -> int:
    """Build and run; how many of the tests failed."""
    from cocotb_tools.runner import get_runner

    block = BLOCKS[name]
    folder = BUILD / "hw" / "sim" / f"{name}-{width}{'-waves' if waves else ''}"
    if root != RTL:
        folder = root.parent / f"sim-{name}-{width}"
    strict = root == RTL
    verilate.program(block, width, folder, root, waves=waves, strict=strict)
    runner = get_runner("verilator")
    results = runner.test(
        hdl_toplevel=block.top,
        hdl_toplevel_lang="verilog",
        test_module=[f"hw.tb.{name}" for name in block.tests],
        build_dir=folder,
        test_dir=folder,
        results_xml="results.xml",
        extra_env={**variables, f"HW_{block.parameter}": str(width)},
        plusargs=["+verilator+rand+reset+2"],
        waves=waves,
    )
    return failures(Path(results))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__.splitlines()[0])
    parser.add_argument("block", choices=sorted(BLOCKS))
    parser.add_argument("--width", "--size", type=int, default=512)
    parser.add_argument("--frames", type=int, default=1000, help="random frames in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--waves", action="store_true", help="write a waveform")
    parser.add_argument("--rtl", type=Path, default=RTL, help="other sources")
    args = parser.parse_args(arguments)
    variables = {
        "HW_ORACLE": str(oracle.build()),
        "HW_FRAMES": str(args.frames),
        "HW_SEED": str(args.seed),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    failed = simulate(args.block, args.width, variables, waves=args.waves, root=args.rtl)
    print(f"{args.block} at {args.width}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
