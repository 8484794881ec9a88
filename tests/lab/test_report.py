# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import io
import json
from pathlib import Path

import pytest

from lab.console import WIDTH, console
from lab.errors import LabError
from lab.demo.plot import draw
from lab.demo.report import Report, Run, SizeRow, from_json
from lab.demo.tables import decile_table, run_table

EDGES = [53, 315, 376, 502, 561, 662, 960, 6387, 49408, 120373, 1000000]


def make_run(transport: str, buffer: int, factor: float) -> Run:
    rows = [
        SizeRow(
            EDGES[i], EDGES[i + 1], 500, 60.0 + i, (60.0 + i) * factor * 123, 1.0, factor * 123.0
        )
        for i in range(10)
    ]
    return Run(
        transport,
        buffer,
        rows,
        SizeRow(53, 10**6, 5000, 70, 9e5, 1.2, 99),
        118e6,
        0.81,
        0.8,
        5000,
        2,
        0,
        3.0,
        17,
    )


def make_report(transports: dict[str, float] | None = None) -> Report:
    transports = transports or {"homa": 2.0, "tcp-pool": 12.0, "tcp": 30.0}
    runs = [make_run(t, b, f) for b in (49152, 196608) for t, f in transports.items()]
    return Report(
        {"title": "A title", "subtitle": "and more"},
        {"cpu": "x"},
        {"buffers": [49152, 196608]},
        runs,
    )


def render(*things: object) -> str:
    out = io.StringIO()
    con = console(out)
    for thing in things:
        con.print(thing)
    return out.getvalue()


def test_report__survives_its_own_json() -> None:
    document = json.loads(json.dumps(make_report().as_json()))
    assert from_json(document).as_json() == document


def test_summary__is_of_the_smaller_buffer_and_the_worst_decile() -> None:
    summary = make_report({"homa": 2.0, "tcp-pool": 12.0, "tcp": 1.0}).summary()
    assert summary["buffer_bytes"] == 49152
    assert summary["smallest_decile_p99_ratio"] == {"tcp-pool": 6.0, "tcp": 0.5}
    assert summary["worst_decile_p99_ratio"] == 0.5


def test_summary__without_homa_or_values() -> None:
    assert make_report({"tcp": 1.0}).summary()["worst_decile_p99_ratio"] is None
    assert Report({}, {}, {}, []).summary() == {}


def test_tables__fit_and_are_plain_when_piped() -> None:
    report = make_report()
    text = render(*(decile_table(report, b) for b in report.buffers()), run_table(report))
    assert "\x1b" not in text and "…" not in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "TCP pool" in text and "53 – 315" in text and "4 times as much" in text
    assert text.count("120K – 1M") == 2
    assert "6.0" in text and "15.0" in text  # ratios to Homa


def test_tables__missing_values_are_dashes() -> None:
    report = make_report()
    empty = SizeRow(53, 315, 0, None, None, None, None)
    for run in report.runs:
        run.rows[0] = empty
    line = next(
        row for row in render(decile_table(report, 49152)).splitlines() if "53 – 315" in row
    )
    assert line.split()[3:] == ["–"] * 11


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_draw__writes_the_figure(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figure.{suffix}"
    report = make_report()
    report.runs[0].rows[3] = SizeRow(1, 2, 0, None, None, None, None)
    draw(report, path)
    data = path.read_bytes()
    assert data.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix])
    if suffix == "svg":
        text = data.decode()
        for words in (
            "A title",
            "TCP pool",
            "Homa",
            "switch buffer 48 KB per port",
            "6.39K",
            "P99",
        ):
            assert words in text


def test_draw__one_transport_one_buffer(tmp_path: Path) -> None:
    report = make_report({"tcp": 3.0})
    report.runs = report.runs[:1]
    draw(report, tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 10_000


def test_draw__says_where_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--plot"):
        draw(make_report(), tmp_path / "no" / "x.png")
