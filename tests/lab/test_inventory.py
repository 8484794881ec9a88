# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab check|run --inventory`: the file, what is wrong with hosts, and real SSH in namespaces."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT, needs_bench, needs_root
from test_net import wait_until

from lab.cluster import real_hosts
from lab.cluster.points import points_of
from lab.cluster.setup import Setup
from lab.errors import LabError, UsageError
from lab.inventory import hosts, preflight, remote, ssh
from lab.net import homad
from lab.net.hosts import Host, Lab, run
from lab.paths import homa_bench

TEXT = """
user = "root"
interface = "eth0"
priorities = 8

[[host]]
name = "one"
address = "10.9.0.1"

[[host]]
address = "10.9.0.2"
ssh = "two.example"
ssh_port = 2222
key = "~/.ssh/lab key"
"""


SRUN = """#!/bin/sh
# Two nodes of an allocation, each in its line.
echo 'n1 n1.cluster.example 3: eth1 inet 10.20.0.1/16 brd 10.20.255.255 scope global eth1'
echo 'n2 n2.cluster.example 2: eth1 inet 10.20.0.2/16 scope global eth1'
"""


def _load(tmp_path: Path, text: str) -> hosts.Inventory:
    file = tmp_path / "hosts.toml"
    file.write_text(text)
    return hosts.load(file)


def test_recipe__of_slurm_makes_an_inventory(tmp_path: Path) -> None:
    """What docs/lab.md tells people to run in an allocation, but for the check of real hosts."""
    page = (ROOT / "docs/lab.md").read_text()
    recipe = next(part for part in page.split("```sh\n") if "srun" in part.split("```")[0])
    make, _, check = recipe.split("```")[0].partition("> hosts.toml\n")
    assert check == "./homa lab check --inventory hosts.toml\n"
    srun = tmp_path / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-ec", f"{make}> hosts.toml"], cwd=tmp_path, env=env, check=True)
    found = hosts.load(tmp_path / "hosts.toml")
    assert (found.priorities, found.mtu) == (8, 3000)
    said = [(h.name, h.ssh, h.address, h.interface, h.user) for h in found.hosts]
    assert said == [
        ("n1", "n1.cluster.example", "10.20.0.1", "eth1", "root"),
        ("n2", "n2.cluster.example", "10.20.0.2", "eth1", "root"),
    ]


def test_file__hosts_have_what_is_said_above_them(tmp_path: Path) -> None:
    found = _load(tmp_path, TEXT)
    one, two = found.hosts
    assert (one.name, one.ssh, one.ssh_port, one.interface) == ("one", "10.9.0.1", 22, "eth0")
    assert (two.name, two.ssh_port, two.key) == ("two.example", 2222, "~/.ssh/lab key")
    assert (found.priorities, found.mtu) == (8, 1500)


@pytest.mark.parametrize(
    ("old", "new", "remedy"),
    [
        ("priorities = 8", "", "does not say priorities"),
        ("priorities = 8", "priorities = 9", "1 to 8"),
        ("priorities = 8", "priorities = true", "1 to 8"),
        ("priorities = 8", "priority = 8", "'priority'"),
        ('interface = "eth0"', "", "interface"),
        ('interface = "eth0"', 'interface = "eth0; reboot"', "cannot be"),
        ('interface = "eth0"', 'interface = "../x"', "cannot be"),
        ('user = "root"', 'user = "-oProxyCommand=x"', "cannot be"),
        ("10.9.0.2", "10.9.0.1", "two hosts have the address"),
        ("10.9.0.2", "10.9.0.256", "not an IP address"),
        ("10.9.0.2", "fc00::2", "one kind"),
        ("2222", "0", "1 to 65535"),
        ('ssh = "two.example"', "ssh = 7", "cannot be"),
        ("[[host]]", "[[hosts]]", "'hosts'"),
        ("priorities = 8", "priorities = ", "not TOML"),
    ],
)
def test_file__wrong(tmp_path: Path, old: str, new: str, remedy: str) -> None:
    assert old in TEXT
    with pytest.raises(UsageError, match=remedy):
        _load(tmp_path, TEXT.replace(old, new))


def test_file__missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        hosts.load(tmp_path / "none.toml")


GOOD = {
    "clock": "1000.005",
    "user": "0",
    "mtu": "1500",
    "state": "up",
    "addresses": "10.9.0.1/24 10.9.0.2/24 fe80::1/64",
    "homa-bench": "homa-bench 1 (aa)",
    "homad": "homad 1 (bb)",
}


def _answer(**changed: str) -> dict:
    values = {**GOOD, **{name.replace("_", "-"): value for name, value in changed.items()}}
    text = "Welcome!\n" + "".join(f"{name}={value}\n" for name, value in values.items())
    return {"out": text, "before": 1000.0, "after": 1000.1}


def test_preflight__nothing_is_wrong(tmp_path: Path) -> None:
    found = {"one": _answer(), "two.example": _answer()}
    assert preflight.problems(_load(tmp_path, TEXT), found) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (_answer(user="1000"), "not root"),
        (_answer(mtu="9000"), "MTU 9000; the inventory says 1500"),
        (_answer(mtu=""), "no interface eth0"),
        (_answer(state="down"), "is down, not up"),
        (_answer(addresses="10.9.0.11/24 x"), "does not have the address 10.9.0.1"),
        (_answer(clock="1000.3"), "at least 0.200 s ahead of"),
        (_answer(clock="999.5"), "at least 0.500 s behind"),
        (_answer(clock="1000.N"), "does not tell the time"),
        (_answer(clock="nan"), "does not tell the time"),
        (_answer(clock="inf"), "does not tell the time"),
        (_answer(state="\x1b[2Jdown"), "is ?[2Jdown, not up"),
        ({"problem": "no\x1b]0;x\x07"}, "no?]0;x?."),
        (_answer(homad=""), "/usr/bin/homad is missing"),
        (_answer(homa_bench="homa-bench 1 (cc)"), "homa-bench is not the same everywhere"),
        ({"problem": "it is asleep"}, "it is asleep"),
        ({"out": "", "before": 0.0, "after": 0.0}, "missing"),
    ],
)
def test_preflight__says_what_is_wrong(tmp_path: Path, answer: dict, said: str) -> None:
    found = {"one": answer, "two.example": _answer()}
    assert any(said in line for line in preflight.problems(_load(tmp_path, TEXT), found))


def test_script__asks_with_names_that_the_shell_does_not_read(tmp_path: Path) -> None:
    found = _load(tmp_path, TEXT.replace('user = "root"', 'folder = "/x/$(reboot)\'"'))
    text = preflight.script(found.hosts[0])
    done = subprocess.run(["sh", "-n"], input=text, text=True, check=False, capture_output=True)
    assert done.returncode == 0 and "'/x/$(reboot)'\"'\"'/homad'" in text


def _sshd() -> str:
    """The SSH server, or a skip with the reason."""
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if not program or not shutil.which("ssh-keygen"):
        pytest.skip("sshd is not installed (package openssh-server)")
    try:
        ssh.site()
    except LabError as error:
        pytest.skip(str(error))
    return program


def _is_up(host: Host) -> bool:
    return "state UP" in run(["ip", "-n", host.namespace, "link", "show", host.device])


@pytest.fixture
def network(tmp_path: Path) -> Iterator[tuple[Path, Lab]]:
    """Two hosts with sshd in them, and the inventory; we are in a third network that sees both."""
    program = _sshd()
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(words, check=True)
    (tmp_path / "authorized").write_text((tmp_path / "user.pub").read_text())
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy(homa_bench(), folder / "homa-bench")
    shutil.copy(homad.program(), folder / "homad")
    Path("/run/sshd").mkdir(exist_ok=True)
    text = (
        f'user = "root"\nkey = "{tmp_path}/user"\nknown_hosts = "{tmp_path}/known"\n'
        f'interface = "eth0"\nfolder = "{folder}"\npriorities = 8\n'
    )
    key = " ".join((tmp_path / "host.pub").read_text().split()[:2])
    running = []
    with Lab() as lab:
        pair = lab.pair()
        for number, host in enumerate(pair, 1):
            text += f'[[host]]\nname = "h{number}"\naddress = "{host.address}"\n'
            with (tmp_path / "known").open("a") as known:
                known.write(f"{host.address} {key}\n")
            options = [
                f"ListenAddress={host.address}",
                f"HostKey={tmp_path}/host",
                f"AuthorizedKeysFile={tmp_path}/authorized",
                "StrictModes=no",
                "UsePAM=no",
                "PermitRootLogin=yes",
                f"PidFile={tmp_path}/pid{number}",
            ]
            words = [program, "-D", "-e", "-f", "/dev/null"]
            words += [word for option in options for word in ("-o", option)]
            with (tmp_path / f"log{number}").open("w") as log:
                running.append(subprocess.Popen(host.command(words), stderr=log))
        logs = [tmp_path / "log1", tmp_path / "log2"]
        wait_until(lambda: all("listening" in log.read_text() for log in logs))
        # The kernel tells the state of a new link up to a second later.
        wait_until(lambda: all(_is_up(host) for host in pair))
        (tmp_path / "hosts.toml").write_text(text)
        yield tmp_path / "hosts.toml", lab
        for one in running:
            one.terminate()
            one.wait()


def _check(lab: Lab, file: Path) -> tuple[int, str]:
    return _lab(lab, ["check", "--inventory", str(file)])


def _lab(lab: Lab, words: list[str]) -> tuple[int, str]:
    """A command of the lab, run in the first host, which reaches itself and the second."""
    done = subprocess.run(
        ["ip", "netns", "exec", f"{lab.prefix}a", sys.executable, "-m", "lab", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return done.returncode, done.stdout + done.stderr


@needs_root
@needs_bench
def test_check__hosts_over_ssh(network: tuple[Path, Lab]) -> None:
    file, lab = network
    status, said = _check(lab, file)
    assert status == 0 and "2 hosts are ready" in said, said
    good = file.read_text()
    file.write_text(good.replace("priorities = 8", "priorities = 8\nmtu = 9000"))
    known = file.with_name("known")
    lines = known.read_text().splitlines()
    known.write_text(lines[0] + "\n")
    status, said = _check(lab, file)
    assert status == 1 and "h1: eth0 has MTU 1500; the inventory says 9000." in said
    assert "h2: root@10.9.0.2 port 22 shows a host key" in said, said
    known.write_text("\n".join(lines) + "\n")
    file.with_name("authorized").write_text("")
    status, said = _check(lab, file)
    assert status == 1 and "does not accept the key" in said and "Traceback" not in said


@needs_root
@needs_bench
@pytest.mark.parametrize("transport", ["homa", pytest.param("tcp", marks=pytest.mark.long)])
def test_run__a_figure_on_real_hosts(
    network: tuple[Path, Lab], tmp_path: Path, transport: str
) -> None:
    """Programs run in the hosts of the inventory, and none is left there."""
    file, lab = network
    words = ["run", "fig3", "--inventory", str(file), "--link", "1gbit", "--workloads", "w4"]
    words += ["--transports", transport, "--messages", "200", "--longest", "3"]
    status, said = _lab(lab, [*words, "--json", str(tmp_path / "r.json")])
    assert status == 0 and "2 real hosts" in said, said
    document = json.loads((tmp_path / "r.json").read_text())
    (point,) = document["points"]
    assert sum(row["count"] for row in point["rows"]) >= 100, said
    assert [row["count"] for row in point["rows"]] == [row["sim_count"] for row in point["rows"]]
    assert 0 < point["facts"]["busy"] <= 1
    assert point["facts"]["dilation"] == 1 and "drops" not in point["facts"]
    left = subprocess.run(["pgrep", "-f", f"{file.parent}/bin/homa-bench"], check=False)
    assert left.returncode == 1


@needs_root
@needs_bench
def test_run__hosts_that_are_not_ready(network: tuple[Path, Lab]) -> None:
    file, lab = network
    file.write_text(file.read_text().replace("priorities = 8", "priorities = 8\nmtu = 9000"))
    status, said = _lab(lab, ["run", "fig3", "--inventory", str(file)])
    assert status == 1 and "eth0 has MTU 1500; the inventory says 9000." in said, said
    assert "(and 1 more; ./homa lab check)" in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fig3", "--hosts", "4"], "leave out --hosts and --dilate"),
        (["fig3", "--dilate", "10"], "leave out --hosts and --dilate"),
        (["incast"], "--inventory is an option of fig3, fig5, fig6 alone"),
        (["fig3", "--transports", "tcp-bbr", "--quick"], "nothing is set up on real hosts"),
    ],
)
def test_run__wrong(cli, tmp_path: Path, words: list[str], said: str) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text(TEXT)
    status, out, err = cli("run", *words, "--inventory", str(file))
    assert status == 2 and said in out + err


def test_levels__only_those_that_the_switch_has(tmp_path: Path) -> None:
    inventory = _load(tmp_path, TEXT.replace("priorities = 8", "priorities = 2"))
    found = real_hosts.fitting(inventory, points_of("fig5", ("w5",), ("homa",)))
    assert [point.levels for point in found] == [1, 2]
    (one,) = real_hosts.fitting(inventory, points_of("fig3", ("w4",), ("homa",)))
    assert one.levels == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [({"link_bps": 15 * 10**9}, "no such rate"), ({"via": "service"}, "one number of priorities")],
)
def test_real__what_cannot_be_measured(change: dict, said: str) -> None:
    setup = Setup(
        hosts=2, link_bps=10**10, dilate=1, mtu=1500, buffer=325_000, seed=1, messages=12_000,
        longest_s=300, via="program", real="a b",
    )  # fmt: skip
    points = points_of("fig5", ("w5",), ("homa",))
    real_hosts.check(setup, points)
    with pytest.raises(UsageError, match=said):
        real_hosts.check(replace(setup, **change), points)


def test_remote__words_end_with_their_shell() -> None:
    """The program has its words, its output is the shell's, and it ends when the input does."""
    echo = subprocess.run(
        ["sh", "-c", remote.SCRIPT, "sh", "printf", "%s|", "a b", "$c"],
        stdin=subprocess.PIPE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert echo.stdout == "a b|$c|" and echo.returncode == 0
    words = ["sh", "-c", remote.SCRIPT, "sh", "sleep", "1000"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.close()
        assert process.wait(timeout=60) == 128 + signal.SIGTERM


def test_remote__the_file_is_ours(tmp_path: Path) -> None:
    (host, _) = _load(tmp_path, TEXT).hosts
    words = remote.Reached(host).command(["homa-bench", "--json", "/tmp/x.json", "--quiet"])
    question = json.loads(words[-1])
    assert question["output"] == "/tmp/x.json" and question["argv"][1:] == [
        "--json",
        "-",
        "--quiet",
    ]
    assert question["host"]["ssh"] == host.ssh
