# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The laboratory with the real homa-sim: small runs, and all that the lab reads is there."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ROOT

from lab.errors import LabError, UsageError
from lab.sim import program
from lab.sim import spec as specs
from lab.sim import sustain, tails

from lab.sim.flags import FLAGS
from lab.sim.sweep import pick


def _built() -> bool:
    try:
        return bool(program.path())
    except LabError:
        return False


pytestmark = pytest.mark.skipif(not _built(), reason="homa-sim is not built; ./homa build does it")
SMALL = {
    "topology": "one-switch", "hosts": 8, "workload": "w2", "load": 0.5,
    "warmup": "100us", "measure": "500us", "drain": "5ms",
}  # fmt: skip


@pytest.fixture(autouse=True)
def fresh_catalogue() -> None:
    program.catalogue.cache_clear()


def test_flags__are_the_programs() -> None:
    """Every flag of the lab is one of homa-sim's."""
    words = subprocess.run([program.path(), "--help"], capture_output=True, text=True).stdout
    theirs = {w.lstrip("-") for w in words.split() if w.startswith("--")}
    assert set(FLAGS) <= theirs


def test_help__has_a_heading_for_every_flag(cli) -> None:
    status, out, _ = cli("sim", "run", "--help")
    assert status == 0 and "Software of hosts" in out
    assert all(f"--{name}" in out for name in FLAGS)


@pytest.mark.parametrize("protocol", ["homa", "tcp", "tas"])
def test_cores__are_in_the_result(protocol: str) -> None:
    cores = {"cores": 4, "offload": "rss+lso", "cost": ["poll=0", "mips=1200"], "load": 0.05}
    one, two = (
        program.run(specs.normal({**SMALL, "protocol": protocol, **cores})) for _ in range(2)
    )
    assert one["sim"]["digest"] == two["sim"]["digest"]
    software = one["sim"]["software"]
    assert software["cores"] == 4 and software["rss"] and not software["lro"]
    assert software["costs"]["poll"] == 0 and software["costs"]["mips"] == 1200
    used = software["cores_used"]
    assert used["total"] == pytest.approx(sum(v for k, v in used.items() if k != "total"), abs=1e-5)
    assert 0 < used["total"] < 4 and used["napi"] > 0 and used["wake"] > 0


@pytest.mark.parametrize(
    "protocol", ["homa", "pfabric", "phost", "pias", "ndp", "tcp", "dctcp", "tas", "oracle"]
)
def test_protocol__gives_what_the_lab_reads(protocol: str) -> None:
    result = program.run(specs.normal({**SMALL, "protocol": protocol}))
    for place in (
        "slowdown p99", "sim single_packet p99", "sim short p99_us", "sim waste",
        "sim utilisation application", "sim utilisation total", "sim hops_per_s", "sim wall_s", "sim cpu_s",
        "sim simulated_s", "sim memory_bytes", "sim switch_peak_bytes",
    ):  # fmt: skip
        assert pick(result, tuple(place.split())) is not None, place
    assert isinstance(result["sim"]["backlog"]["stable"], bool)
    assert len(result["sim"]["priorities"]) == 8 and len(result["deciles"]) == 10
    assert tails.at([result], "sim", "single_packet")[0].count == pick(
        result, ("sim", "single_packet", "count")
    )
    whole = tails.bins([result], 1.0)[0]
    assert whole.count == pick(result, ("slowdown", "count")) > 0
    assert whole.percentile(99) == pytest.approx(
        1000 * pick(result, ("slowdown", "p99")), rel=0.001
    )
    if protocol != "oracle":
        assert pick(result, ("sim", "queues", "host-down", "max_bytes")) is not None


def test_run__shows_tables_and_writes_json(cli, tmp_path: Path) -> None:
    flags = [word for name, value in SMALL.items() for word in (f"--{name}", str(value))]
    status, out, _ = cli("sim", "run", *flags, "--json", str(tmp_path / "r.json"))
    assert status == 0 and "all sizes" in out and "switch to host" in out and "digest" in out
    assert json.loads((tmp_path / "r.json").read_text())["program"].startswith("homa-sim")


def test_run__topology_from_a_file(cli, tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text('kind = "leaf-spine"\nracks = 2\nhosts-per-rack = 3\nspines = 2\n')
    status, _, err = cli(
        "sim", "run", "--topology", str(file), "--workload", "w2", "--warmup", "0", "--measure",
        "200us", "--drain", "2ms", "--json", str(tmp_path / "r.json"),
    )  # fmt: skip
    assert status == 0, err
    assert json.loads((tmp_path / "r.json").read_text())["config"]["network"]["hosts"] == 6


def test_run__what_the_program_refuses_is_its_own_sentence() -> None:
    with pytest.raises(UsageError, match="no setting 'nonsense'"):
        program.run(specs.normal({**SMALL, "set": {"nonsense": 1}}))


def test_run__carries_the_load_that_it_is_asked_for(cli, tmp_path: Path) -> None:
    """Begun empty, 80 % of W4 would carry less than 60 %."""
    network = ["--topology", "one-switch", "--hosts", "16", "--drain", "1ms", "--json"]
    shares = []
    for more in (["--measure", "40ms"], ["--measure", "5ms", "--warmup", "0ms"]):
        file = tmp_path / "r.json"
        assert cli("sim", "run", *network, str(file), *more)[0] == 0
        result = json.loads(file.read_text())
        offered = pick(result, ("throughput", "offered_load"))
        shares.append(pick(result, ("sim", "utilisation", "total")) / max(offered, 0.8))
    assert shares[0] > 0.9 and shares[1] < 0.7, shares


def test_once__is_total_without_repetitions() -> None:
    """pFabric drops packets and sends some twice; Homa loses nothing here."""
    busy = {**SMALL, "load": 0.9, "hosts": 16}
    for protocol, repeats in (("homa", False), ("pfabric", True)):
        result = program.run(specs.normal({**busy, "protocol": protocol}))
        use = result["sim"]["utilisation"]
        metrics = result["transport"]["metrics"]
        assert use["application"] < use["once"]
        assert bool(metrics.get("duplicates")) == repeats == (use["once"] < use["total"])


def test_growth__of_the_oracle_itself_is_nothing() -> None:
    result = program.run(specs.normal({**SMALL, "protocol": "oracle", "against-oracle": True}))
    assert len(result["sim"]["backlog"]["samples"]) > 200
    assert all(sustain.growth(result, w) == pytest.approx(0, abs=1e-9) for w in sustain.WINDOWS)


@pytest.mark.parametrize("mode", ["oneway", "rpc"])
def test_record__can_be_read_again(cli, tmp_path: Path, mode: str) -> None:
    """What a replay records is what it was told, and it meets the same messages."""
    files = [tmp_path / name for name in ("a.csv", "b.csv")]
    network = [f"--{name}={SMALL[name]}" for name in ("topology", "hosts", "drain")]
    network += ["--mode", mode, "--warmup=0ns", "--measure=500us", "--json"]
    results = []
    for file, more in zip(files, (["--workload=w2"], [f"--arrivals={files[0]}"]), strict=True):
        json_file = tmp_path / "r.json"
        argv = [*network, str(json_file), f"--record={file}", *more]
        status, out, err = cli("sim", "run", *argv)
        assert status == 0 and f"wrote {file}" in out, err
        results.append(json.loads(json_file.read_text()))
    first, second = (sorted(file.read_text().splitlines()) for file in files)
    assert len(first) > 100 and first == second and first[-1] == "time_ns,src,dst,bytes"
    counts = [result["rpcs"]["issued"] for result in results]
    assert counts[0] == len(first) - 1 == counts[1]
    rows = [tuple(map(int, line.split(","))) for line in first[:-1]]
    assert all(s != d and max(s, d) < 8 and size > 0 for _, s, d, size in rows)


def test_record__what_cannot_be_written(cli, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        program.run(specs.normal(SMALL), extra=["--record", str(tmp_path)])


def test_run__list_has_presets_and_settings(cli) -> None:
    status, out, _ = cli("sim", "run", "--list")
    assert status == 0 and all(w in out for w in ("sigcomm18", "linux", "scheduled-levels"))


def test_same_seed__same_digest() -> None:
    one, two = (program.run(specs.normal({**SMALL, "seed": 5}))["sim"]["digest"] for _ in range(2))
    assert one == two != program.run(specs.normal({**SMALL, "seed": 6}))["sim"]["digest"]


def test_ctrl_c__shows_what_was_measured(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "lab", "sim", "run", "--measure", "100s", "--json", str(out)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    for _ in range(1500):
        if any("homa-sim" in _command(pid) for pid in _children(process.pid)):
            break
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    said, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "interrupted" in err, err
    assert "all sizes" in said and json.loads(out.read_text())["interrupted"]


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(word) for word in task.read_text().split()]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_figure__from_tiny_runs(cli, tmp_path: Path) -> None:
    status, _, err = cli(
        "sim", "figure", "fig14", "--quick", "--scale", "0.03", "--seeds", "2",
        "--out", str(tmp_path),
    )  # fmt: skip
    assert status == 0, err
    data = json.loads((tmp_path / "fig14.json").read_text())
    assert len(data["data"]) == 24 and (tmp_path / "fig14.png").stat().st_size > 10_000
