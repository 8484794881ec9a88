# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Known faults in copies of hw/rtl (hw/mutants.toml): does what should notice one notice it?

usage: python3 -m lab.hw.mutants NAME... | --all | --check
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass

from lab.errors import LabError
from lab.hw import environment
from lab.hw.blocks import BLOCKS, RTL
from lab.hw.formal import PROOFS
from lab.paths import BUILD, ROOT

TABLE = ROOT / "hw" / "mutants.toml"
PROOF = "proof:"
FRAMES = 5000
SECONDS = 1800


@dataclass(frozen=True)
class Mutant:
    """As in the table."""

    name: str
    file: str
    find: str
    put: str
    by: str

    def block(self) -> str:
        """The block whose tests or proofs it is for."""
        proof = PROOFS.get(self.by.removeprefix(PROOF)) if self.by.startswith(PROOF) else None
        return proof.block if proof else self.by

    def text(self) -> str:
        """The file with the fault; LabError if it has no place there."""
        path = RTL / f"{self.file}.sv"
        text = path.read_text() if path.exists() else ""
        if text.count(self.find) != 1:
            raise LabError(f"{self.name}: '{self.find}' is not once in {path.name}")
        return text.replace(self.find, self.put)


def table() -> dict[str, Mutant]:
    """All of them; LabError if the table is not in order."""
    try:
        entries = tomllib.loads(TABLE.read_text())
        mutants = {name: Mutant(name, **entry) for name, entry in entries.items()}
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise LabError(f"{TABLE.name}: {error}") from None
    for mutant in mutants.values():
        proof = mutant.by.removeprefix(PROOF)
        known = proof in PROOFS if mutant.by.startswith(PROOF) else mutant.by in BLOCKS
        if not known:
            raise LabError(f"{mutant.name}: nothing is called {mutant.by}")
    return mutants


def noticed(mutant: Mutant) -> bool:
    """Put it into a copy, and run what should notice it. LabError if that does not compile."""
    folder = BUILD / "hw" / "mutants" / mutant.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(RTL, folder / "rtl")
    (folder / "rtl" / f"{mutant.file}.sv").write_text(mutant.text())
    command = [environment.PYTHON, "-m"]
    if mutant.by.startswith(PROOF):
        command += ["lab.hw.formal", mutant.by.removeprefix(PROOF)]
        verdict = r"is (not )?true"
    else:
        size = min(BLOCKS[mutant.by].smoke)
        command += ["lab.hw.simulate", mutant.by, "--width", str(size), "--frames", str(FRAMES)]
        verdict = r": \d+ failed$"
    try:
        done = subprocess.run(
            [*command, "--rtl", str(folder / "rtl")],
            cwd=ROOT,
            env=environment.variables(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        # The benches count cycles and say themselves what hangs: the machine is busy.
        raise LabError(f"{mutant.name}: it was not tried to an end in {SECONDS} s") from None
    (folder / "log").write_text(done.stdout + done.stderr)
    if not re.search(verdict, done.stdout, re.M) or "tool failed" in done.stdout + done.stderr:
        # A proof that fails is the failure of a tool as well: then the solver says so.
        if "Assert failed" not in done.stdout + done.stderr:
            raise LabError(f"{mutant.name}: it was not tried; {folder / 'log'} says why")
    if done.returncode == 0:
        return False
    for part in folder.iterdir():
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
    return True


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="all of the table")
    parser.add_argument("--check", action="store_true", help="only see that each has its place")
    args = parser.parse_args(arguments)
    missed = []
    try:
        mutants = table()
        if args.check:
            for mutant in mutants.values():
                mutant.text()
            print(f"{len(mutants)} faults have their place")
            return 0
        for name in mutants if args.all else args.names:
            if name not in mutants:
                raise LabError(f"there is no mutant {name}")
            seen = noticed(mutants[name])
            print(
                f"{name}: {'noticed' if seen else 'NOT noticed'} by {mutants[name].by}", flush=True
            )
            if not seen:
                missed.append(name)
    except LabError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return error.exit_code
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
