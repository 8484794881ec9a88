# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the kernel's style wants of comments, where ours is otherwise: the end of a comment of
several lines is on a line of its own."""

from __future__ import annotations


def comments(text: str) -> str:
    """The text with such ends; nothing but white space changes."""
    lines = []
    inside = False
    for line in text.split("\n"):
        if not inside:
            start = line.rfind("/*")
            inside = start >= 0 and "*/" not in line[start:]
            lines.append(line)
            continue
        if "*/" not in line:
            lines.append(line)
            continue
        inside = False
        said, _, after = line.partition("*/")
        # A macro's line, or code behind the comment: it cannot be broken here.
        if not said.strip() or after.strip() or said.strip() == "*":
            lines.append(line)
            continue
        lead = said[: len(said) - len(said.lstrip())]
        lines += [said.rstrip(), f"{lead}*/"]
    return "\n".join(lines)
