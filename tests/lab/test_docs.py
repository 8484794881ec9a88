# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The manual's tables say what the code says."""

import os
import re
from pathlib import Path

import pytest

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


def test_metrics_port__is_the_same_everywhere() -> None:
    """What homad's message proposes is what each page and example file says."""
    said = re.search(
        r"such as 127\.0\.0\.1:(\d+)", (ROOT / "host/homad/observe/http.c").read_text()
    )
    assert said
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs/man").iterdir()]
    pages += [*(ROOT / "packaging").rglob("*.toml")]
    named = {
        (str(page.relative_to(ROOT)), port)
        for page in pages
        for line in page.read_text().splitlines()
        if "metrics" in line.lower()
        for port in re.findall(r"127\.0\.0\.1:(9\d\d\d)", line)
    }
    assert len({page for page, _ in named}) >= 4
    assert {port for _, port in named} == {said.group(1)}, named


CODE = ("engine", "host", "lib", "nic", "sim")


def _sources() -> dict[Path, str]:
    return {
        path.relative_to(ROOT): path.read_text()
        for folder in CODE
        for path in (ROOT / folder).rglob("*.[ch]")
    }


def test_trace_a_message__names_what_exists() -> None:
    """Each file and each function that the walk passes is in the tree."""
    page = (ROOT / "docs/trace-a-message.md").read_text()
    sources = _sources()
    names = {str(path) for path in sources}
    everything = "\n".join(sources.values())
    files = re.findall(r"`((?:[\w-]+/)*[\w-]+\.[ch])`", page)
    assert len(files) > 30
    for name in files:
        assert any(known == name or known.endswith(f"/{name}") for known in names), name
    functions = set(re.findall(r"`(\w+)\(\)`", page)) - {"write", "ppoll", "fork"}
    assert len(functions) > 30
    for name in functions:
        assert re.search(rf"\b{name}\(", everything), name


def test_pages__links_lead_somewhere() -> None:
    """Relative links of all pages, to files and to headings of other pages."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_pages__programs_are_built_under_the_names_they_give() -> None:
    """What a page tells to run from build/ is there after ./homa build (README once said echo_server)."""
    build = Path(os.environ.get("HOMA_BUILD") or ROOT / "build")
    if not (build / "host/homad/homad").exists():
        pytest.skip(f"nothing is built in {build}")
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for name in re.findall(
            r"\bbuild/((?:bench|examples|host|tests)/[\w/.-]*\w)", page.read_text()
        ):
            assert (build / name).exists(), f"{page.name}: build/{name}"
