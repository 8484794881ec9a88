# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa test --cbmc`: proofs by CBMC that the codec, ranges, heap, wheel and pages do nothing
undefined and keep what they promise, for all inputs within the bounds that each file of `tests/cbmc`
states.

Each proof ends with reached(), an assertion that must fail: a proof whose assumptions contradict
each other would else hold for no input at all. A proof may name faults that it must refuse, patches
of `tests/cbmc/refused` or of `tests/explore/mutants`: it is run on the sources with each. CBMC is
this machine's if that is new enough, else that of a small Debian in a folder (`lab/vm/chroot.py`).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lab.mutants import patches
from lab.test import process
from lab.test.context import ROOT, Context, Tally
from lab.vm import chroot
from lab.vm.errors import VmError

FOLDER = ROOT / "tests" / "cbmc"
SUITE = "trixie"
PACKAGES = ["cbmc", "gcc", "libc6-dev"]
OLDEST = 6
SECONDS = 1800  # a hang, or a bound that is too large for this machine
PARALLEL = 2
INCLUDES = (
    "engine/plat/user",
    "engine/base",
    "engine/link",
    "engine/wire/homa",
    "engine/homa",
    "tests/cbmc",
)
OPTIONS = ("--gcc", "--unwinding-assertions", "--pointer-overflow-check", "--no-malloc-may-fail")
_ARGUMENTS = re.compile(r"^ \* cbmc: (.+)$", re.M)
_REFUSES = re.compile(r"^ \* refuses: (.+)$", re.M)
PATCHES = (patches.REFUSED, patches.FOLDER)
_FAILURE = re.compile(r"^\[(\S+)\] (.*): FAILURE$", re.M)
REACHED = "this line is reached"


@dataclass(frozen=True)
class Proof:
    """A file of tests/cbmc, and what its first comment gives CBMC: sources and bounds. `refuses`:
    names of faults that it must not prove right."""

    name: str
    words: tuple[str, ...]
    refuses: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """To be run where the tree is the working directory."""
        includes = [word for folder in INCLUDES for word in ("-I", folder)]
        return ["cbmc", *OPTIONS, *includes, f"tests/cbmc/{self.name}.c", *self.words]


def proofs(folder: Path = FOLDER) -> list[Proof]:
    """All of them."""
    found = []
    for path in sorted(folder.glob("*.c")):
        text = path.read_text()
        words, refuses = (_words(pattern, text) for pattern in (_ARGUMENTS, _REFUSES))
        found.append(Proof(path.stem, words, refuses))
    return found


def _words(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = pattern.search(text)
    return tuple(match[1].split()) if match else ()


def fault(name: str) -> patches.Mutant:
    """The fault of that name; PatchError."""
    for folder in PATCHES:
        if (folder / f"{name}.patch").is_file():
            return patches.read(folder / f"{name}.patch")
    raise patches.PatchError(f"no folder of faults has {name}.patch")


def judge_refusal(status: int | None, text: str) -> str:
    """What is wrong with the answer about sources with a fault; "" if CBMC says what fails."""
    said = judge(status, text)
    if said and status == 10:
        return ""
    return said or "it holds with the fault as well"


def judge(status: int | None, text: str) -> str:
    """What is wrong with CBMC's answer; "" if nothing is."""
    failed = _FAILURE.findall(text)
    wrong = [f"{where}: {what}" for where, what in failed if not what.endswith(REACHED)]
    if wrong:
        return "\n".join(wrong)
    if failed and status == 10:
        return ""
    if status == 0:
        return "nothing leads to its end, so it says nothing: its assumptions contradict each other"
    end = "\n".join(text.strip().splitlines()[-10:])
    return f"CBMC ended with {'a timeout' if status is None else f'status {status}'}\n{end}"


def _inside() -> Path | None:
    """Where CBMC is to be run: None here, else a folder with a system; VmError."""
    if shutil.which("cbmc"):
        said = subprocess.run(["cbmc", "--version"], capture_output=True, text=True, check=False)
        match = re.match(r"(\d+)\.", said.stdout)
        if match and int(match[1]) >= OLDEST:
            return None
    return chroot.with_packages(f"cbmc-{SUITE}", SUITE, PACKAGES)


def run(context: Context, names: list[str]) -> Tally:
    """The proofs named, or all."""
    tally = Tally()
    wanted = [p for p in proofs() if not names or p.name in names]
    if not wanted:
        tally.fail("cbmc", f"no proof has one of these names: {' '.join(names)}")
        return tally
    try:
        system = _inside()
    except VmError as error:
        tally.skip("cbmc", str(error))
        return tally

    def one(case: tuple[Proof, str]) -> tuple[str, str]:
        proof, refused = case
        label = f"{proof.name}+{refused}" if refused else proof.name
        log = context.log(f"cbmc-{label}")
        with contextlib.ExitStack() as stack:
            tree = stack.enter_context(_with_fault(refused)) if refused else ROOT
            command = proof.command()
            if system:
                words = ["sh", "-c", 'cd /build && exec "$@"', "sh", *command]
                command = chroot.command(system, tree, words)
            status = process.run(
                command,
                log,
                cwd=tree,
                env=dict(os.environ),
                timeout=SECONDS,
                verbose=context.verbose,
            )
        said = log.read_text(errors="replace")
        return label, judge_refusal(status, said) if refused else judge(status, said)

    cases = [(proof, refused) for proof in wanted for refused in ("", *proof.refuses)]
    with ThreadPoolExecutor(PARALLEL) as pool:
        for label, wrong in pool.map(one, cases):
            if wrong:
                tally.fail(f"cbmc/{label}", wrong)
            else:
                tally.passed += 1
    return tally


@contextlib.contextmanager
def _with_fault(name: str) -> Iterator[Path]:
    """A tree with what proofs need, and the fault in it; PatchError."""
    with tempfile.TemporaryDirectory(prefix="homa-cbmc-") as folder:
        tree = Path(folder)
        for part in ("engine", "tests/cbmc"):
            shutil.copytree(ROOT / part, tree / part)
        for path, text in fault(name).apply().items():
            (tree / path).write_text(text)
        yield tree
