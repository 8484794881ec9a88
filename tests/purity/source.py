# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The tree under examination: which C files there are, and what they say
outside of comments and strings."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

ENGINE_FOLDERS = ("base", "link", "wire/homa", "homa", "wire/tcp", "tcp")
SKIPPED_FOLDERS = {".git", "subprojects", "__pycache__", ".venv", "out"}

COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
_INCLUDE_LINE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)


class Skip(Exception):
    """The check cannot be made here; the message is the reason."""


def strip_comments(text: str, strings_too: bool = True) -> str:
    """Blank comments (and strings), keeping every newline where it was."""

    def blank(match: re.Match[str]) -> str:
        token = match.group(0)
        if token[0] in "\"'" and not strings_too:
            return token
        return re.sub(r"[^\n]", " ", token)

    return COMMENT_OR_STRING.sub(blank, text)


class Tree:
    """A source tree, by default this one; the self-test makes small bad ones."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    @cache  # noqa: B019 - trees are few and live as long as the run
    def c_files(self) -> tuple[Path, ...]:
        """All .c and .h files except those in build directories."""
        found = []
        for folder, subfolders, names in os.walk(self.root):
            subfolders[:] = [
                s
                for s in subfolders
                if s not in SKIPPED_FOLDERS and not s.startswith((".", "build"))
            ]
            found += [Path(folder, n) for n in names if n.endswith((".c", ".h"))]
        return tuple(sorted(found))

    def engine_files(self) -> list[Path]:
        """Files of the engine proper, without the seam (engine/plat)."""
        return [f for f in self.c_files() if self._in_engine(f)]

    def engine_sources(self) -> list[Path]:
        return [f for f in self.engine_files() if f.suffix == ".c"]

    def engine_includes(self, seam: str = "user") -> list[str]:
        folders = [self.root / "engine/plat" / seam]
        folders += [self.root / "engine" / f for f in ENGINE_FOLDERS]
        return [f"-I{f}" for f in folders if f.is_dir()]

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def text(self, path: Path) -> str:
        return path.read_text(encoding="utf-8", errors="replace")

    def code(self, path: Path) -> str:
        """The file's text with comments and strings blanked."""
        return strip_comments(self.text(path))

    def include_lines(self, path: Path) -> list[tuple[int, str, bool]]:
        """(line number, what, whether in <>) of each #include."""
        text = strip_comments(self.text(path), strings_too=False)
        result = []
        for match in _INCLUDE_LINE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            what = re.search(r'[<"]([^">]+)[">]', match.group(0))
            if what:
                result.append((line, what.group(1), "<" in match.group(0)))
        return result

    def _in_engine(self, path: Path) -> bool:
        parts = path.relative_to(self.root).parts
        folders = {f.split("/")[0] for f in ENGINE_FOLDERS}
        return len(parts) > 2 and parts[0] == "engine" and parts[1] in folders
