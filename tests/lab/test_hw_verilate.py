# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How the program of a block is made: what can be seen of it, and what is compiled once."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from lab.hw import verilate
from lab.hw.blocks import BLOCKS, CLASH, RTL


@pytest.mark.parametrize("name", BLOCKS)
def test_seen__each_signal_is_in_its_module_and_that_in_the_block(name: str) -> None:
    block = BLOCKS[name]
    texts = {path.stem: path.read_text() for path in block.sources()}
    for module, signal in block.seen:
        assert re.search(rf"\b{signal}\b", texts[module]), f"{module} has no {signal}"


def test_seen__verilator_is_told_of_the_blocks_own_and_of_those() -> None:
    said = verilate._seen(BLOCKS["nic"])
    assert 'public_flat_rw -module "homa_nic" -var "*"\n' in said
    assert 'public_flat_rw -module "homa_clock" -var "now"\n' in said
    assert "homa_clock" not in verilate._seen(BLOCKS["parser"])


def test_clash__has_its_effect_in_simulations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each simulation defines what the module of the memories asks for."""
    commands: list[list[str]] = []
    tools = types.SimpleNamespace(libs_dir=tmp_path, share_dir=tmp_path)
    monkeypatch.setitem(sys.modules, "cocotb_tools", types.SimpleNamespace(config=tools))
    monkeypatch.setattr(verilate, "_run", commands.append)
    monkeypatch.setattr(verilate, "_runtime", lambda folder, make: None)
    verilate.program(BLOCKS["lso"], 64, tmp_path, RTL, waves=False, strict=True)
    assert f"-D{CLASH}" in commands[0]
    assert f"`ifdef {CLASH}\n" in (RTL / "homa_memory.sv").read_text()


def test_clash__all_memories_without_logic_for_it_are_in_one_module() -> None:
    """So that none of them can be forgotten in the simulations."""
    marked = [path.name for path in RTL.glob("*.sv") if "no_rw_check" in path.read_text()]
    assert marked == ["homa_memory.sv"]


def test_runtime__is_compiled_for_the_first_program_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verilate, "BUILD", tmp_path)
    folders = [tmp_path / name for name in ("parser-64", "nic-64", "parser-64-waves")]
    compiled: list[list[str]] = []

    def run(command: list[str]) -> None:
        compiled.append(command)
        for word in command:
            if word.endswith(".o"):
                (Path(command[2]) / word).write_text(command[2])

    monkeypatch.setattr(verilate, "_run", run)
    (tmp_path / "hw").mkdir()
    for folder, trace in zip(folders, (0, 0, 1), strict=True):
        folder.mkdir()
        verilate._runtime(folder, ["make", "-C", str(folder), f"VM_TRACE={trace}"])
    # With a waveform it is another one.
    assert [command[2] for command in compiled] == [str(folders[0]), str(folders[2])]
    for name in verilate.RUNTIME:
        assert (folders[1] / f"{name}.o").read_text() == str(folders[0])
