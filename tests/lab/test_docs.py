# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The manual's tables say what the code says."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARAM = re.compile(r'^PARAM\((\w+), (\w+), \w+, \w+, "([^"]*)", "([^"]*)"\)', re.M)


def test_protocol__lists_every_setting() -> None:
    """Each setting stands in docs/protocol.md with its default, unit and meaning."""
    page = (ROOT / "docs/protocol.md").read_text().split("### All settings")[1]
    settings = PARAM.findall((ROOT / "engine/homa/homa_params.def").read_text())
    assert len(settings) > 20
    for name, default, unit, text in settings:
        row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` | ")), "")
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 5, f"no row for {name}"
        assert cells[1] == default and cells[3] == unit and cells[4] == text, name


def test_protocol__lists_no_setting_that_is_gone() -> None:
    """The last table has no row for a setting that the engine does not know."""
    page = (ROOT / "docs/protocol.md").read_text().split("### All settings")[1]
    known = {name for name, *_ in PARAM.findall((ROOT / "engine/homa/homa_params.def").read_text())}
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == known
