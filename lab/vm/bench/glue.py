# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How much of homa.ko is glue: what there is beside the engine."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def lines(folder: Path) -> int:
    """Lines of C that are neither empty nor comment; KUnit tests are not counted."""
    return sum(
        _code_lines(path.read_text(errors="replace"))
        for suffix in ("*.c", "*.h", "*.def")
        for path in folder.rglob(suffix)
        if not path.name.startswith("kunit") and not path.name.endswith(".mod.c")
    )


def _code_lines(text: str) -> int:
    count = 0
    comment = False
    for raw in text.splitlines():
        line = raw.strip()
        if comment:
            comment = "*/" not in line
        elif line.startswith("/*"):
            comment = "*/" not in line
        elif line and not line.startswith("//"):
            count += 1
    return count


def text_bytes(module: Path) -> dict[str, int] | None:
    """Bytes of code and constants of the module's objects: "glue" and "engine".

    None if the objects are no longer beside the module.
    """
    engine = {path.stem for path in (ROOT / "engine").rglob("*.c")}
    own = {
        path.stem for path in (ROOT / "host" / "kernel").rglob("*.c") if path.parent.name != "kunit"
    }
    sums = {"glue": 0, "engine": 0}
    for path in module.parent.rglob("*.o"):
        if path.stem not in own | engine:
            continue
        sums["glue" if path.stem in own else "engine"] += _text(path)
    return sums if sums["glue"] and sums["engine"] else None


def _text(path: Path) -> int:
    done = subprocess.run(["size", str(path)], capture_output=True, text=True, check=False)
    rows = done.stdout.splitlines()
    return int(rows[1].split()[0]) if done.returncode == 0 and len(rows) > 1 else 0


def describe(module: Path) -> dict[str, object]:
    """Lines and bytes of both, and the glue's share of the lines."""
    glue, engine = lines(ROOT / "host" / "kernel"), lines(ROOT / "engine")
    return {
        "glue_lines": glue,
        "engine_lines": engine,
        "glue_to_engine": glue / engine if engine else 0.0,
        "text_bytes": text_bytes(module),
    }
