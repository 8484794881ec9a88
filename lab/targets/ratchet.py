# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Counted instructions may sink and not rise: the numbers of `tests/counts/ratchet.toml`.

A count is exact, but another compiler makes other code of the same source, so each compiler
with its C library, and each kernel, has numbers of its own: a *place*. In a place that has no
numbers nothing is compared, and the caller says so. The file is rewritten by
`./homa test --record-counts`, and nobody needs to edit it.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab import machine
from lab.errors import LabError, UsageError
from lab.paths import ROOT

FILE = ROOT / "tests" / "counts" / "ratchet.toml"
RECORD = "HOMA_RECORD_COUNTS"
WAYS = ("lower", "all")
TOLERANCE = 0.02 + 1e-9  # 102 to 100 is no more than 2 %
_GCC = re.compile(r"^\S+ \((?P<who>\w+)[^)]*\) (?P<version>[\d.]+)")


@dataclass
class Verdict:
    """What a comparison says, a sentence per figure.

    `risen`: above the number by more than the tolerance. `sunk`: as much below: to be recorded.
    `unknown`: there is no number.
    """

    risen: list[str] = field(default_factory=list)
    sunk: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def compiler(program: str = "gcc") -> str:
    """The compiler without what only its package changes: "Debian gcc 12.2.0"."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise LabError(f"{program} does not say its version: {error}") from None
    return compiler_name(program, said.stdout)


def compiler_name(program: str, said: str) -> str:
    """The same of what `program --version` said."""
    first = said.splitlines()[0] if said else ""
    match = _GCC.match(first)
    return f"{match['who']} {program} {match['version']}" if match else first.strip()


def here() -> str:
    """The place of programs that are compiled on this machine."""
    library = " ".join(platform.libc_ver()) or "unknown C library"
    return f"{compiler()}, {library}, {platform.machine()}"


def load(path: Path = FILE) -> dict[str, dict[str, float]]:
    """The numbers by place and figure; UsageError if the file is damaged."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    places = {}
    for place, table in data.items():
        counts = table.get("counts") if isinstance(table, dict) else None
        if not isinstance(counts, dict) or not all(
            isinstance(n, (int, float)) and not isinstance(n, bool) and n > 0
            for n in counts.values()
        ):
            raise UsageError(f'{path}: ["{place}".counts] must hold positive numbers by figure')
        places[place] = {name: float(n) for name, n in counts.items()}
    return places


def compare(numbers: Mapping[str, float] | None, counted: Mapping[str, float]) -> Verdict:
    """What was counted beside the numbers of its place (None: the place has none)."""
    verdict = Verdict()
    for name, count in counted.items():
        number = (numbers or {}).get(name)
        if number is None:
            verdict.unknown.append(f"{name}: {count:,.1f} instructions, nothing to compare with")
            continue
        change = count / number - 1
        text = f"{name}: {count:,.1f} instructions, recorded {number:,.1f} ({change:+.1%})"
        if change > TOLERANCE:
            verdict.risen.append(text)
        elif change < -TOLERANCE:
            verdict.sunk.append(text)
    for name in sorted(set(numbers or {}) - set(counted)):
        verdict.risen.append(f"{name} is recorded and was not counted")
    return verdict


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Guests of two kernels record at the same time."""
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def record(place: str, counted: Mapping[str, float], way: str, path: Path = FILE) -> list[str]:
    """Write what was counted into the file; `way` "lower" leaves numbers that would rise, and
    figures that were not counted vanish with "all". Says what has changed."""
    if way not in WAYS:
        raise UsageError(f"counts are recorded by {' or '.join(WAYS)}, not by '{way}'")
    changes = []
    with _locked(path):
        places = load(path)
        new = {} if way == "all" else dict(places.get(place, {}))
        for name, count in counted.items():
            count = round(count, 1)
            old = places.get(place, {}).get(name)
            keep = old is not None and way == "lower" and count >= old
            new[name] = old if keep and old is not None else count
            if new[name] != old:
                was = f"{old:,.1f}" if old is not None else "nothing"
                changes.append(f"{place}: {name}: {was} → {count:,.1f}")
        _write(path, place, new)
    return changes


def _write(path: Path, place: str, new: dict[str, float]) -> None:
    """The file anew: its comment, and a table per place, those of this place by this machine."""
    text = path.read_text()
    data = tomllib.loads(text)
    cpu = machine.describe().cpu
    data[place] = {"cpu": cpu, "counts": new}
    lines = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            break
        lines.append(line)
    out = "\n".join(lines).rstrip() + "\n"
    for name in sorted(data):
        quoted = json.dumps(name)
        out += f"\n[{quoted}]\ncpu = {json.dumps(data[name].get('cpu', ''))}\n[{quoted}.counts]\n"
        out += "".join(f"{json.dumps(k)} = {v}\n" for k, v in sorted(data[name]["counts"].items()))
    # In place: others wait for the lock of this very file.
    path.write_text(out)


def wanted() -> str:
    """How counts are to be recorded in this run, "" if they are compared."""
    return os.environ.get(RECORD, "")
