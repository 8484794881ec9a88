# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""homa-sim compiled a second time, by a profile of short runs (gcc's -fprofile-use).

For hours of simulation only: the build takes two minutes and saves 7 % of the instructions. The
program lies in a folder of its own, beside the hash of the plain one that it was made from, and is
made anew when that changes. It must give the plain one's digest.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.errors import LabError
from lab.paths import BUILD, ROOT
from lab.sim import program
from lab.sim import spec as specs
from lab.sim.spec import Spec

FOLDER = BUILD / "profiled"
_LENGTH = {"warmup": "2ms", "measure": "3ms", "drain": "2ms", "load": "0.8"}
# What the figures run most: Homa with short and long messages, then its competitors.
TRAINING: tuple[Spec, ...] = (
    {"workload": "w4", "seed": "1"} | _LENGTH,
    {"workload": "w2", "seed": "2"} | _LENGTH | {"warmup": "100us", "measure": "300us"},
    *(
        {"protocol": protocol, "workload": "w3", "seed": "3"} | _LENGTH | {"measure": "1ms"}
        for protocol in ("dctcp", "pfabric", "ndp", "phost", "pias", "oracle")
    ),
)
# Another seed than those of the training.
CHECK: Spec = {"workload": "w4", "seed": "7"} | _LENGTH


def ensure(say: Callable[[str], None]) -> Path:
    """The profiled program, made if it is missing or old.

    The plain one where it cannot be made (`say` gets the reason) and if HOMA_SIM names a program.
    """
    plain = program.path()
    if os.environ.get("HOMA_SIM"):
        return plain
    made, stamp = FOLDER / "sim" / "homa-sim", FOLDER / "of"
    source = program.build()
    BUILD.mkdir(exist_ok=True)
    with (BUILD / ".profiled.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists() and stamp.exists() and stamp.read_text().strip() == source:
            return made
        say("compiling homa-sim by a profile of short runs (two minutes, once)")
        try:
            make(FOLDER, made)
            compare(plain, made)
        except LabError as error:
            say(f"{error}; the plain homa-sim runs instead")
            return plain
        stamp.write_text(source + "\n")
    return made


def make(folder: Path, made: Path) -> None:
    """Build in `folder` with counters, run the training, build `made` again by what they counted."""
    shutil.rmtree(folder, ignore_errors=True)
    options = ("--buildtype=debugoptimized", "-Dtests=false", "-Db_pgo=generate")
    _run(["meson", "setup", *options, str(folder), str(ROOT)])
    _run(["ninja", "-C", str(folder), "sim/homa-sim"])
    for spec in TRAINING:
        _result(made, spec)
    _run(["meson", "configure", str(folder), "-Db_pgo=use"])
    _run(["ninja", "-C", str(folder), "sim/homa-sim"])


def compare(plain: Path, made: Path) -> None:
    """LabError if the two give different results."""
    digests = [_result(simulator, CHECK) for simulator in (plain, made)]
    if digests[0] != digests[1]:
        raise LabError(
            f"the profiled homa-sim gives another digest: {digests[1]}, not {digests[0]}"
        )


def _result(simulator: Path, spec: Spec) -> str:
    """The digest of a run."""
    with tempfile.TemporaryDirectory(prefix="homa-sim-") as folder:
        out = Path(folder) / "result.json"
        _run([str(simulator), *specs.argv(spec), "--json", str(out)])
        return str(json.loads(out.read_text())["sim"]["digest"])


def _run(command: list[str]) -> None:
    """LabError with the end of what a command said if it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise LabError(f"{command[0]} cannot be run: {error.strerror}") from None
    if done.returncode:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        raise LabError(f"{' '.join(command[:2])} failed: {' '.join(last)}")
