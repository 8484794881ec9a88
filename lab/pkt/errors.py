# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The three ways in which a script does not pass. The message never names the file or the line:
whoever knows the statement adds them."""

from __future__ import annotations


class ScriptError(Exception):
    """`line` is 0 where the statement at hand is meant."""

    kind = "error"

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class BadScript(ScriptError):
    """The text is not of the language, or contradicts itself."""

    kind = "syntax error"


class Unsupported(ScriptError):
    """The text is of the language, but this runner or this engine does not do that."""

    kind = "not supported"


class Failed(ScriptError):
    """The engine did something else than the script says. The message has several lines."""

    kind = "failed"
