# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""docs/lessons.md: all 55 lessons, each cell filled, and what it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/lessons.md"
NOT_HERE = "not measurable here, because "
CODE = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[\w./-]+/[\w./-]*")
# What stands for a long command at the top of the page.
SHORT = ("LOADED", "PAIR")


def _rows() -> dict[int, list[str]]:
    rows: dict[int, list[str]] = {}
    for line in PAGE.read_text().splitlines():
        if match := re.match(r"\| (\d+) \|", line):
            number = int(match[1])
            assert number not in rows, f"lesson {number} stands there twice"
            rows[number] = [cell.strip() for cell in line.strip().strip("|").split("|")]
    return rows


def _texts() -> list[str]:
    """Each piece of code on the page; one may go on over the end of a line."""
    return [" ".join(text.split()) for text in CODE.findall(PAGE.read_text())]


def _subcommands(word: str) -> set[str]:
    """What may follow `./homa word`; empty if anything may."""
    from typer.main import get_command

    from lab.__main__ import _LAB_ONLY, app

    if word == "lab":
        return set(_LAB_ONLY)
    found = get_command(app).commands.get(word)  # type: ignore[attr-defined]
    return set(getattr(found, "commands", {}))


def test_all_lessons__are_there_and_no_cell_is_empty() -> None:
    rows = _rows()
    assert sorted(rows) == list(range(1, 56))
    for number, cells in rows.items():
        assert len(cells) == 4, f"lesson {number} has {len(cells)} cells"
        assert all(len(cell) > 10 for cell in cells[1:]), f"lesson {number}: {cells}"


def test_measurements__have_a_command_or_a_reason() -> None:
    for number, (*_, cell) in _rows().items():
        if cell.startswith(NOT_HERE):
            continue
        commands = [t for t in CODE.findall(cell) if t.startswith(("./homa ", "build", *SHORT))]
        assert commands, f"lesson {number}: {cell}"
        assert re.search(r"\d", CODE.sub("", cell)), f"lesson {number} has no number: {cell}"


def test_deeds__name_a_file_or_function_and_all_exist() -> None:
    sources = "\n".join(
        path.read_text()
        for folder in ("engine", "host", "lib", "nic", "bench")
        for path in (ROOT / folder).rglob("*.[ch]")
    )
    for number, (_, _, deed, _) in _rows().items():
        named = CODE.findall(deed)
        files = [text for text in named if NAME.fullmatch(text)]
        functions = [text[:-2] for text in named if text.endswith("()")]
        assert files + functions, f"lesson {number} names neither file nor function"
        for name in files:
            if not name.startswith("./"):
                assert (ROOT / name).exists(), f"lesson {number}: {name}"
        for name in set(functions) - {"sendmsg", "recvmsg"}:
            assert re.search(rf"\b{name}\(", sources), f"lesson {number}: {name}()"


def test_settings__are_those_of_the_engine_and_the_simulator() -> None:
    known = set(
        re.findall(r"^PARAM\((\w+),", (ROOT / "engine/homa/homa_params.def").read_text(), re.M)
    )
    simulator = (ROOT / "sim/protocol/homa/homa_presets.c").read_text()
    known |= set(re.findall(r"^\t\[SIM_HOMA_\w+\] = \{ \"([\w-]+)\"", simulator, re.M))
    assert "card" in known
    named = {name for text in _texts() for name in re.findall(r"--set (\w+)=", text)}
    assert len(named) >= 5 and named <= known


def test_commands__are_known_to_the_launcher() -> None:
    launcher = (ROOT / "homa").read_text()
    known = {
        name.strip()
        for match in re.findall(r"^([a-z][a-z |]*)\)$", launcher, re.M)
        for name in match.split("|")
    }
    assert {"bench", "sim", "lab", "test"} <= known
    commands = {text for text in _texts() if text.startswith("./homa ")}
    assert len(commands) > 8
    for text in commands:
        first, *rest = text.split()[1:]
        assert first in known, text
        below = _subcommands(first)
        if below and rest:
            assert rest[0] in below, f"{text}: ./homa {first} has {sorted(below)}"


@pytest.mark.parametrize("name", SHORT)
def test_short_names__are_explained(name: str) -> None:
    assert re.search(rf"^\* `{name}` is `\./homa sim run ", PAGE.read_text(), re.M)
