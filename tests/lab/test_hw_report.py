# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa hw report`: what it says of a block and of the whole card, and what the tools' output
means."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.hw import __main__ as hw
from lab.hw import formal, synthesize
from lab.hw.blocks import RTL

ROUTED = """Warning: Max frequency for clock 'clk': 90.10 MHz (FAIL at 250.00 MHz)
Info: Critical path report for clock 'clk' (posedge -> posedge):
Info:       type curr  total name
Info:   clk-to-q  0.40  0.40 Source early_TRELLIS_FF_Q_7.Q
Info:    routing  0.66  1.05 Net early[7] (22,5) -> (21,5)
Info:                          Sink early_LUT4_Z.A
Info: Critical path report for clock 'clk' (posedge -> posedge):
Info:       type curr  total name
Info:   clk-to-q  4.26  4.26 Source fifo.slice[3].memory.0.0.DOB3
Info:    routing  2.60  6.86 Net fifo.slice[3].memory.0.0_DOB3[2] (26,22) -> (48,3)
Info:                          Sink fifo.move_LUT4_Z.D
Info:      logic  0.31  7.17 Source fifo.move_LUT4_Z.F
Info:    routing  0.35  7.52 Net turns.m_data_TRELLIS_FF_Q_15_DI (48,3) -> (48,3)
Info:                          Sink turns.m_data_TRELLIS_FF_Q_15.M
Info:      setup  0.00  7.52 Source turns.m_data_TRELLIS_FF_Q_15.M
Warning: Max frequency for clock 'clk': 133.50 MHz (FAIL at 250.00 MHz)
"""
FULL = "ERROR: Unable to place cell 'x', no BELs remaining to implement cell type 'TRELLIS_COMB'"


def test_frequency__of_the_routed_block() -> None:
    assert synthesize.frequency(ROUTED) == (133.5, "fifo.slice[3].memory to turns.m_data")


def test_no_room__names_what_is_missing() -> None:
    assert synthesize.no_room(FULL) == "the device has too few TRELLIS_COMB"
    assert synthesize.no_room("ERROR: the file is damaged") == ""


@pytest.mark.parametrize(("said", "fits"), [(FULL, False), ("ERROR: the file is damaged", True)])
def test_speed__of_a_block_that_does_not_fit(
    said: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that is too large has no speed; any other failure of the tool is one."""

    def tool(begin: str, arguments: list[str], folder: Path) -> str:
        if begin == synthesize.NEXTPNR:
            raise LabError(f"a tool failed in {folder}: {said}")
        return ""

    monkeypatch.setattr(synthesize, "tool", tool)
    monkeypatch.setattr(synthesize, "BUILD", tmp_path)
    if fits:
        with pytest.raises(LabError, match="damaged"):
            synthesize.speed(hw.BLOCKS["nic"], 64)
    else:
        mhz, why = synthesize.speed(hw.BLOCKS["nic"], 64)
        assert mhz is None
        assert "TRELLIS_COMB" in why


def test_report__whole_card(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The card is a block like the others; what is too large has an area and the reason."""
    monkeypatch.setattr(synthesize, "area", lambda block, width: (width, 20, 1.5))
    monkeypatch.setattr(
        synthesize, "speed", lambda block, width: (None, "too few") if width == 512 else (99.5, "a")
    )
    assert hw.main(["report", "nic", "--size", "64", "--size", "512"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert rows[0][:6] == ["nic", "64", "64", "20", "1.5", "99.5"]
    assert rows[1][:7] == ["nic", "512", "512", "20", "1.5", "too", "few"]


def test_report__help_has_the_card(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        hw.main(["report", "--help"])
    said = capsys.readouterr().out
    assert "nic" in said.split("positional arguments")[1]
    assert "too large for the ECP5" in " ".join(said.split())


@pytest.mark.parametrize(
    ("cell", "luts"), [("RAM64M8", 8), ("RAM64X1D", 2), ("RAM128X1D", 4), ("RAM256X1D", 8)]
)
def test_cost__memories_in_look_up_tables(cell: str, luts: int) -> None:
    assert synthesize.cost({"LUT6": 5, cell: 3, "FDRE": 2}) == (5 + 3 * luts, 2, 0)


def test_cost__block_rams_take_no_look_up_tables() -> None:
    assert synthesize.cost({"RAMB18E2": 1, "RAMB36E2": 2}) == (0, 0, 2.5)


def test_cost__of_an_unknown_memory_is_not_nothing() -> None:
    with pytest.raises(LabError, match="RAM1024X1D"):
        synthesize.cost({"LUT6": 5, "RAM1024X1D": 1})


def test_tree__each_instance_has_what_is_inside() -> None:
    """Names that begin alike are not inside of each other; a memory in look-up tables counts."""
    modules = {
        "\\homa_nic": {"num_cells_by_type": {"LUT6": 1, "homa_lso$homa_nic.lso": 1}},
        "\\homa_lso$homa_nic.lso": {"num_cells_by_type": {"FDRE": 5, "RAMB18E2": 1}},
        "\\homa_skid$homa_nic.lso.skid": {"num_cells_by_type": {"LUT2": 3, "RAM64M8": 1}},
        "\\homa_skid$homa_nic.lso2": {"num_cells_by_type": {"LUT5": 7}},
    }
    assert synthesize.tree(modules, "homa_nic") == [
        ("homa_nic", 19, 5, 0.5),
        ("homa_nic.lso", 11, 5, 0.5),
        ("homa_nic.lso.skid", 11, 0, 0.0),
        ("homa_nic.lso2", 7, 0, 0.0),
    ]


def test_report__instances(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [("homa_nic", 9, 8, 1.5), ("homa_nic.lso", 7, 6, 0.5)]
    monkeypatch.setattr(synthesize, "instances", lambda block, width: rows)
    assert hw.main(["report", "nic", "--size", "64", "--instances"]) == 0
    said = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert said == [["homa_nic", "64", "9", "8", "1.5"], ["homa_nic.lso", "64", "7", "6", "0.5"]]


def test_report__of_other_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools are told them, in a folder of their own."""
    asked: list[tuple[str, str]] = []

    def tool(_begin: str, arguments: list[str], folder: Path) -> str:
        asked.append((folder.name, (folder / arguments[-1]).read_text().splitlines()[0]))
        raise LabError("no tool")

    monkeypatch.setattr(synthesize, "tool", tool)
    monkeypatch.setattr(synthesize, "BUILD", tmp_path)
    assert hw.main(["report", "lro", "--size", "64", "--set", "PAGES_BITS=9"]) != 0
    ((folder, read),) = asked
    assert folder == "homa_lro-64-PAGES_BITS=9"
    assert read.endswith(" -GWIDTH=64 -GPAGES_BITS=9")


def test_report__parameters_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        hw.main(["report", "lro", "--set", "PAGES_BITS"])
    assert "NAME=VALUE, not PAGES_BITS" in capsys.readouterr().err


def test_proofs__have_the_modules_that_they_are_of() -> None:
    for name, proof in formal.PROOFS.items():
        files = [RTL / f"{file}.sv" for file in proof.files]
        files += [formal.FORMAL / f"{proof.module or f'prove_{name}'}.sv"]
        assert [str(file) for file in files if not file.exists()] == [], name
        for file in files:
            proof.text(file)
