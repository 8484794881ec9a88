# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The mutants: patch files of `tests/explore/mutants`, each a fault to be put into the engine.

A patch begins with what the fault is and which promise it breaks, each after its word, and then
has a unified diff of files in `engine/`:

    Fault: A server forgets a request as soon as it is over.
    Promise: A request is executed at most once.
    Named: one of the faults that the explorer must find without hints (only some have this)

    --- a/engine/homa/homa_once.c
    +++ b/engine/homa/homa_once.c
    @@ ...

Lines may have moved since a patch was made, but what it removes and its context must be there
exactly. Neither git nor patch(1) is needed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError
from lab.paths import ROOT

FOLDER = ROOT / "tests" / "explore" / "mutants"
# Faults that only CBMC's proofs must refuse.
REFUSED = ROOT / "tests" / "cbmc" / "refused"
INSIDE = "engine/"
# Real faults of which an issue says that the explorer must find them by itself.
NAMED = (
    "duplicates that run twice after tombstones are gone",
    "the discarded RPC under clock skew",
    "CUTOFFS by the wrong key",
    "the starving newcomer",
    "NEED_ACK that asks again while bytes flow",
)
_KEYS = ("Fault", "Promise", "Named")
_FIELD = re.compile(r"^(\w+): (.*)$")
_FILE = re.compile(r"^--- a/(\S+)\n\+\+\+ b/(\S+)$", re.M)
_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@.*$")


class PatchError(LabError):
    """A patch that cannot be read, or does not apply; the message says which and why."""


@dataclass(frozen=True)
class Hunk:
    """Lines `before`, expected to begin at line `at` (from 0), become `after`."""

    at: int
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    """A fault: what its patch says, and what it does to which file."""

    name: str
    fault: str
    promise: str
    named: str
    text: str
    files: dict[str, list[Hunk]] = field(hash=False)

    def apply(self, root: Path = ROOT) -> dict[str, str]:
        """The files of the tree at `root` as the patch leaves them; PatchError."""
        return {
            name: _patched(f"{self.name}.patch: {name}", hunks, root / name)
            for name, hunks in self.files.items()
        }


def read(path: Path) -> Mutant:
    """The mutant of a patch file; PatchError."""
    text = path.read_text()
    places = list(_FILE.finditer(text))
    said = _header(path.name, text[: places[0].start()] if places else text)
    files = {}
    for place, following in zip(places, [*places[1:], None], strict=False):
        name = place[1]
        if name != place[2] or not name.startswith(INSIDE):
            raise PatchError(f"{path.name}: {name} is not a file of {INSIDE}")
        end = following.start() if following else len(text)
        files[name] = _hunks(path.name, text[place.end() + 1 : end])
    if not files:
        raise PatchError(f"{path.name}: there is no diff in it")
    return Mutant(path.stem, said["Fault"], said["Promise"], said.get("Named", ""), text, files)


def read_all(folder: Path = FOLDER) -> list[Mutant]:
    """All mutants, by name; PatchError."""
    return [read(path) for path in sorted(folder.glob("*.patch"))]


def _header(where: str, head: str) -> dict[str, str]:
    said: dict[str, str] = {}
    key = ""
    for line in filter(None, head.splitlines()):
        match = _FIELD.match(line)
        if match and match[1] in _KEYS and match[1] not in said:
            key = match[1]
            said[key] = match[2]
        elif key and line.startswith("  "):
            said[key] += f" {line.strip()}"
        else:
            raise PatchError(f"{where}: '{line}' is neither of {', '.join(_KEYS)} nor a diff")
    for key in ("Fault", "Promise"):
        if not said.get(key, "").endswith("."):
            raise PatchError(f"{where}: it needs '{key}:' and a sentence")
    if said.get("Named", NAMED[0]) not in NAMED:
        raise PatchError(f"{where}: '{said['Named']}' is none of the named faults")
    return said


def _hunks(where: str, text: str) -> list[Hunk]:
    hunks = []
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if _HUNK.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        match = _HUNK.match(lines[start])
        assert match is not None
        body = lines[start + 1 : end]
        if any(line[:1] not in (" ", "+", "-", "") for line in body):
            raise PatchError(f"{where}: a line of its diff begins with none of ' ', '+', '-'")
        # Editors strip the blank of an empty line.
        body = [line or " " for line in body]
        before = tuple(line[1:] for line in body if line[0] in " -")
        after = tuple(line[1:] for line in body if line[0] in " +")
        if before == after:
            raise PatchError(f"{where}: a part of its diff changes nothing")
        hunks.append(Hunk(int(match[1]) - 1, before, after))
    if not hunks:
        raise PatchError(f"{where}: a file without a change")
    return hunks


def _patched(where: str, hunks: list[Hunk], path: Path) -> str:
    if not path.is_file():
        raise PatchError(f"{where} does not exist any more")
    lines = path.read_text().splitlines()
    shift = 0
    for hunk in hunks:
        n = len(hunk.before)
        places = [i for i in range(len(lines) - n + 1) if tuple(lines[i : i + n]) == hunk.before]
        if not places:
            gone = next((line for line in hunk.before if line not in lines), hunk.before[0])
            raise PatchError(f"{where}: what it changes is not there any more: '{gone.strip()}'")
        at = min(places, key=lambda i: abs(i - hunk.at - shift))
        lines[at : at + n] = hunk.after
        shift += len(hunk.after) - n
    return "\n".join(lines) + "\n"
