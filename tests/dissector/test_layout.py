# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The layout in homa_wire.lua is that of engine/wire/homa/homa_wire.h."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from shark import LAYOUT, ROOT

GENERATE = ROOT / "dissector/generate.py"
HEADER = ROOT / "engine/wire/homa/homa_wire.h"


def generate(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, GENERATE, *words], capture_output=True, text=True)


def changed(tmp_path: Path, old: str, new: str) -> Path:
    """A copy of the header with one change."""
    text = HEADER.read_text()
    assert text.count(old) == 1, old
    path = tmp_path / "homa_wire.h"
    path.write_text(text.replace(old, new))
    return path


def test_generate__checked_in_result_is_up_to_date() -> None:
    done = generate("--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("HOMA_START_MSG = 0x19,", "HOMA_START_MSG = 0x1a,"),
        ("#define HOMA_UDP_PORT 54321 ", "#define HOMA_UDP_PORT 54322 "),
        ("@retransmit: 1 if this answers", "@retransmit: 2 if this answers"),
        ("struct homa_wire_start {\n\tstruct homa_wire_common common;\n\thoma_be32 length;",
         "struct homa_wire_start {\n\tstruct homa_wire_common common;\n\thoma_be32 length;\n\tu8 extra;"),
    ],
    ids=["type", "constant", "comment", "field"],
)  # fmt: skip
def test_generate__notices_a_change(tmp_path: Path, old: str, new: str) -> None:
    """--check fails, and the script that is then written has the change and passes."""
    header = changed(tmp_path, old, new)
    script = tmp_path / "homa_wire.lua"
    script.write_text(LAYOUT.read_text())
    assert generate("--check", "--header", header, "--script", script).returncode == 1
    assert generate("--header", header, "--script", script).returncode == 0
    assert script.read_text() != LAYOUT.read_text()
    assert generate("--check", "--header", header, "--script", script).returncode == 0


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("\thoma_be16 cutoff_version;\n", "\thoma_be32 cutoff_version;\n", "data.retransmit"),
        ("\tu8 retransmit;\n", "\tbool retransmit;\n", "bool"),
        ("\tu8 ack_high[3];\n", "\tu8 ack_high:24;\n", "ack_high"),
    ],
    ids=["offsets", "kind", "bits"],
)
def test_generate__refuses_what_it_does_not_understand(
    tmp_path: Path, old: str, new: str, why: str
) -> None:
    """Rather than write a wrong offset it says where it is stuck."""
    done = generate("--check", "--header", changed(tmp_path, old, new))
    assert done.returncode == 2 and why in done.stderr


def test_generate__needs_its_markers(tmp_path: Path) -> None:
    script = tmp_path / "homa_wire.lua"
    script.write_text("-- nothing\n")
    done = generate("--script", script)
    assert done.returncode == 2 and "marker" in done.stderr
