# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The manual's tables say what the code says."""

import os
import re
import tomllib
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


def _definers(sources: dict[Path, str], name: str) -> set[str]:
    """The files with the body, or the macro, of that name."""
    head = re.compile(
        rf"^(?!\s)(?:#define {name}\(|[\w *()]*\b{name}\((?:[^;{{}}])*\n?\{{)", re.MULTILINE
    )
    # The pattern takes long where the name is not.
    return {str(p) for p, text in sources.items() if f"{name}(" in text and head.search(text)}


def _is(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}")


def _steps(page: str) -> list[str]:
    """The page's paragraphs and entries of lists."""
    return [s for s in re.split(r"\n\s*\n|\n(?=\d+\. )", page) if s.strip()]


FILE = r"`((?:[\w-]+/)*[\w.-]+\.[ch])`"
FUNCTION = r"`(\w+)\(\)`"
# The system's, and those of the socket API.
NOT_OURS = {"write", "ppoll", "fork", "sendmsg", "recvmsg"}


def test_trace_a_message__files_exist() -> None:
    page = (ROOT / "docs/trace-a-message.md").read_text()
    names = {str(path) for path in _sources()}
    files = re.findall(FILE, page)
    assert len(files) > 30
    for name in files:
        assert any(_is(known, name) for known in names), name


def test_trace_a_message__each_function_is_where_the_walk_says() -> None:
    """The step that names a function for the first time names the file that defines it, and a
    function that follows a file's name, or is followed by it in brackets, is that file's."""
    page = (ROOT / "docs/trace-a-message.md").read_text()
    sources = _sources()
    met: set[str] = set()
    for step in _steps(page):
        files = re.findall(FILE, step)
        for name in re.findall(FUNCTION, step):
            if name in met | NOT_OURS:
                continue
            met.add(name)
            where = _definers(sources, name)
            assert any(_is(path, file) for path in where for file in files), (name, where)
        for file, name in re.findall(rf"{FILE}\s+{FUNCTION}", step):
            where = _definers(sources, name)
            assert any(_is(path, file) for path in where), (file, name, where)
        for name, file in re.findall(rf"{FUNCTION}\s+\({FILE}\)", step):
            where = _definers(sources, name)
            assert any(_is(path, file) for path in where), (file, name, where)
    assert len(met) > 40


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


# How a row of the results begins, and the goal in bench/targets.toml that it is held against.
RESULTS = {
    "round trip, to TCP with blocking readers": "service-rtt",
    "round trip, to TCP at its best": "service-rtt-best",
    "rate, k/s": "service-rate",
    "rate, own sessions": "service-rate-sessions",
    "rate, beside a hog": "service-rate-hog",
    "goodput, Gbit/s": "service-goodput",
    "within a host, k/s": "service-local",
    "64 applications with 16 RPCs each": "service-apps",
    "64 applications with 4 RPCs each": "service-apps-4",
    "64 applications with 1 RPC each": "service-apps-1",
    "largest share of an application": "service-apps-share",
}


def test_homad_performance__goals_are_those_of_the_targets() -> None:
    page = (ROOT / "docs/homad-performance.md").read_text()
    targets = tomllib.loads((ROOT / "bench/targets.toml").read_text())["target"]
    goals = {t["name"]: ("≤" if t["better"] == "lower" else "≥", t["goal"]) for t in targets}
    for begin, name in RESULTS.items():
        rows = re.findall(rf"^\| {re.escape(begin)}.*$", page, re.MULTILINE)
        assert rows, begin
        for row in rows:  # of several days
            sign, goal = row.rstrip(" |").rpartition("| ")[2].split()
            assert (sign, float(goal)) == goals[name], row
