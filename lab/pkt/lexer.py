# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Cuts a script into tokens. Comments vanish; every token knows its line and whether it is the
first of it, because a statement that cannot be read ends where a later line begins with a time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab.pkt.errors import BadScript

# The order matters: a comment before "/", a float before an integer, "..." before ".5".
_TOKENS = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>//[^\n]* | /\*.*?\*/)
      | (?P<code>%\{.*?\}%)
      | (?P<string>"(?:\\.|[^"\\])*")
      | (?P<command>`(?:\\.|[^`\\])*`)
      | (?P<option>--[A-Za-z0-9_]+)
      | (?P<ellipsis>\.\.\.)
      | (?P<hex>0x[0-9a-fA-F]+)(?![A-Za-z0-9_])
      | (?P<float>-?[0-9]*\.[0-9]+)
      | (?P<integer>-?[0-9]+)(?![A-Za-z0-9_])
      | (?P<word>[A-Za-z0-9_]+)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    line: int
    first: bool
    start: int
    end: int


def tokens(text: str, defines: dict[str, str] | None = None) -> list[Token]:
    """All tokens of `text`, the last of kind "end". Words of `defines` are replaced."""
    found: list[Token] = []
    line, first = 1, True
    for match in _TOKENS.finditer(text):
        kind, piece = match.lastgroup or "mark", match.group()
        if kind == "mark" and piece in '`"':
            raise BadScript(f"{piece} is never closed", line)
        if kind not in ("space", "comment"):
            found.append(_token(kind, piece, line, first, match, defines or {}))
            first = False
        if "\n" in piece:
            line += piece.count("\n")
            first = kind in ("space", "comment")
    found.append(Token("end", "the end of the script", line, True, len(text), len(text)))
    return found


def _token(
    kind: str, piece: str, line: int, first: bool, match: re.Match, defines: dict[str, str]
) -> Token:
    if kind == "word" and piece in defines:
        piece = defines[piece]
        kind = {'"': "string", "`": "command"}.get(piece[:1], kind)
        if re.fullmatch(r"-?[0-9]+", piece):
            kind = "integer"
    if kind in ("string", "command"):
        piece = piece[1:-1]
    elif kind == "code":
        piece = piece[2:-2]
    elif kind == "option":
        piece = piece[2:]
    return Token(kind, piece, line, first, match.start(), match.end())
