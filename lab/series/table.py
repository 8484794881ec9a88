# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Which file of homa.ko is in which patch of the series: series.toml, and what it must be."""

from __future__ import annotations

import textwrap
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from lab.errors import LabError

ROOT = Path(__file__).resolve().parents[2]
# Everything that the module is built of (host/kernel/Kbuild), and the tests that come with it.
# engine/tcp and engine/wire/tcp are homad's.
FOLDERS = (
    "abi",
    "engine/base",
    "engine/homa",
    "engine/link",
    "engine/plat/kernel",
    "engine/wire/homa",
    "host/kernel",
)
_SUFFIXES = (".c", ".h", ".def")
# Its tests for the kernel's own: all files of the folder.
TESTS = "tests/vm/kselftest"
_MOST = 15


@dataclass(frozen=True)
class Option:
    """A Kconfig option, and the files that the module has only with it.

    `needs`: options without which it cannot be had. `default`: it is on if nobody says otherwise.
    `module`: the name of a module of its own that the files make.
    """

    name: str
    title: str
    help: str
    files: tuple[str, ...]
    needs: str = ""
    default: bool = True
    module: str = ""


@dataclass(frozen=True)
class Patch:
    """One patch: what its mail says, and the files that it adds, by their names in our tree.

    The module always has `files`. `module`: from this patch on the objects are linked into a
    module.
    """

    subject: str
    body: str
    files: tuple[str, ...]
    options: tuple[Option, ...]
    module: bool = False

    def all_files(self) -> list[str]:
        """Those of its options, too."""
        return sorted([*self.files, *(name for option in self.options for name in option.files)])


@dataclass(frozen=True)
class Table:
    """The series, and patterns of files that are not in it, each with the reason."""

    subject: str
    body: str
    patches: tuple[Patch, ...]
    left_out: dict[str, str]


def module_files(root: Path = ROOT) -> list[str]:
    """All files that homa.ko can be built of, and its tests, by their names."""
    found = []
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.is_file() and path.suffix in _SUFFIXES:
                found.append(str(path.relative_to(root)))
    found += [str(p.relative_to(root)) for p in (root / TESTS).glob("*") if p.is_file()]
    return sorted(found)


def read(root: Path = ROOT, text: str | None = None) -> Table:
    """The table for the tree `root`; LabError names what is wrong with it. `text`: instead of
    series.toml."""
    given = tomllib.loads(text or Path(__file__).with_name("series.toml").read_text())
    left_out = {key: " ".join(why.split()) for key, why in given["left_out"].items()}
    names = module_files(root)
    patches, owner, problems = [], {}, []
    for number, row in enumerate(given["patch"], 1):
        options = [
            Option(files=_matched(option.pop("files"), names), **option)
            for option in row.pop("option", [])
        ]
        files = _matched(row.pop("files", []), names)
        row["body"] = _filled(row["body"])
        patches.append(Patch(files=files, options=tuple(options), **row))
        for name in patches[-1].all_files():
            if name not in names:
                problems.append(f"patch {number}: there is no file {name}")
            if name in owner:
                problems.append(f"{name} is in patch {owner[name]} and in patch {number}")
            owner[name] = number
    for name in names:
        apart = any(fnmatchcase(name, pattern) for pattern in left_out)
        if name not in owner and not apart:
            problems.append(f"{name} is in no patch of lab/series/series.toml")
        if name in owner and apart:
            problems.append(f"{name} is in patch {owner[name]} and left out")
    problems += _order(patches)
    if problems:
        raise LabError("the series is not complete:\n" + "\n".join(problems))
    return Table(given["subject"], given["body"].strip(), tuple(patches), left_out)


def _filled(text: str) -> str:
    """Paragraphs as wide as the kernel's messages of commits."""
    return "\n\n".join(textwrap.fill(part, 72) for part in text.strip().split("\n\n"))


def _matched(patterns: list[str], names: list[str]) -> tuple[str, ...]:
    """The files that match; a pattern that matches none stands for itself."""
    found = [[n for n in names if fnmatchcase(n, pattern)] or [pattern] for pattern in patterns]
    return tuple(sorted({name for hits in found for name in hits}))


def _order(patches: list[Patch]) -> list[str]:
    problems = []
    if len(patches) > _MOST:
        problems.append(f"there are {len(patches)} patches, netdev takes {_MOST} at once")
    if sum(patch.module for patch in patches) != 1:
        problems.append("exactly one patch makes the module")
    linked = False
    for number, patch in enumerate(patches, 1):
        linked = linked or patch.module
        if patch.options and not linked:
            problems.append(f"patch {number} has an option before there is a module")
        if len(f"[PATCH net-next 00/00] {patch.subject}") > 75:
            problems.append(f"patch {number}: its subject is too long")
    return problems
