# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A place in a list of tokens, and the few questions that both parsers ask there."""

from __future__ import annotations

from lab.pkt.errors import BadScript
from lab.pkt.lexer import Token


class Cursor:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def after(self, distance: int = 1) -> Token:
        return self.tokens[min(self.at + distance, len(self.tokens) - 1)]

    def step(self) -> Token:
        token = self.now
        if token.kind != "end":
            self.at += 1
        return token

    def sees(self, *texts: str) -> bool:
        """Is a mark or a word of these next? What stands in quotes never is."""
        return self.now.kind in ("mark", "word", "ellipsis") and self.now.text in texts

    def take(self, *texts: str) -> bool:
        if self.sees(*texts):
            self.step()
            return True
        return False

    def must(self, text: str) -> None:
        if not self.take(text):
            raise self.unexpected(f"'{text}'")

    def kind(self, *kinds: str) -> bool:
        return self.now.kind in kinds

    def integer(self, what: str, limit: int | None = None) -> int:
        if not self.kind("integer", "hex"):
            raise self.unexpected(what)
        token = self.step()
        value = int(token.text, 16 if token.kind == "hex" else 10)
        if limit is not None and not 0 <= value <= limit:
            raise BadScript(f"{what} {value} is not between 0 and {limit}", token.line)
        return value

    def unexpected(self, wanted: str) -> BadScript:
        said = self.now.text if self.kind("end") else f"'{self.now.text}'"
        return BadScript(f"{wanted} is expected where {said} stands", self.now.line)
