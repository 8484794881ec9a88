# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""TOML whose mistakes have places.

tomllib says where the syntax is wrong but forgets where a value stood. A second, simple look at
the text finds the line of every key that begins a line, which is how people write such files; a
key inside an inline table is reported with the line of the table.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import UsageError

Key = tuple[str | int, ...]
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_TABLE = re.compile(r"\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_MULTI = re.compile(r'"""|\'\'\'')


@dataclass
class Document:
    """A file's contents and the line of each key (a path from the top; list elements by number)."""

    path: Path
    data: dict[str, object]
    lines: dict[Key, int] = field(default_factory=dict)

    def wrong(self, key: Key, reason: str) -> UsageError:
        """The error to raise about `key`: file, line, reason."""
        place = key
        while place and place not in self.lines:
            place = place[:-1]
        line = self.lines.get(place, 1)
        return UsageError(f"{self.path}:{line}: {reason}")

    def only(self, table: dict[str, object], at: Key, known: list[str]) -> None:
        """UsageError if `table`, found at `at`, has a key that is not `known`."""
        for name in table:
            if name not in known:
                raise self.wrong((*at, name), f"unknown key '{name}'; {_suggest(name, known)}")

    def table(self, at: Key, name: str, parent: dict[str, object]) -> dict[str, object]:
        """The table called `name` in `parent`, empty if there is none."""
        value = parent.get(name, {})
        if not isinstance(value, dict):
            raise self.wrong((*at, name), f"'{name}' has to be a table; write [{name}]")
        return value


def load(path: Path) -> Document:
    """The file at `path`; UsageError with the line if it is not TOML."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; name a TOML file that exists"
        ) from None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(_syntax(path, text, str(error))) from None
    return Document(path, data, _places(text))


def _syntax(path: Path, text: str, message: str) -> str:
    place = _PLACE.search(message)
    reason = _PLACE.sub("", message)
    if place and place[1]:
        return f"{path}:{place[1]}: {reason} (column {place[2]})"
    return f"{path}:{max(1, len(text.splitlines()))}: {reason} (at the end of the file)"


def _names(text: str) -> list[str]:
    parts = re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", text)
    return [part.strip("\"'") for part in parts]


def _places(text: str) -> dict[Key, int]:
    lines: dict[Key, int] = {}
    elements: dict[Key, int] = {}
    table: Key = ()
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        inside = bool(quote)
        for mark in _MULTI.findall(line):
            quote = "" if quote == mark else quote or mark
        if inside:
            continue
        if match := _TABLE.match(line):
            # A table of an array of tables means the array's latest element.
            table = ()
            names = _names(match[2])
            for index, name in enumerate(names):
                table = (*table, name)
                last = index == len(names) - 1
                if last and match[1] == "[[":
                    elements[table] = elements.get(table, -1) + 1
                if table in elements:
                    lines.setdefault(table, number)
                    table = (*table, elements[table])
            lines.setdefault(table, number)
        elif match := _KEY.match(line):
            lines.setdefault((*table, *_names(match[1])), number)
    return lines


def _suggest(name: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}"
