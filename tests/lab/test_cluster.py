# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab up | down | status` on real namespaces: made, counted, removed, healed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, needs_root
from test_net import wait_until

from lab.cluster import laboratories, plan
from lab.errors import UsageError
from lab.net import guardian
from lab.net.hosts import Host, run
from lab.net.switch import PortCounters
from lab.test.process import runs


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Two names, in a state folder of this test's own, so that no other lab is seen or touched."""
    monkeypatch.setenv("HOMA_LAB_STATE", str(tmp_path / "state"))
    mine = ["a", "b"]
    assert not laboratories.prefix_of("a").startswith("hlb-")
    yield mine
    for name in mine:
        guardian.remove(laboratories.prefix_of(name))


def test_plan__dilated_links_and_words() -> None:
    found = plan.check("a", 40, "25gbit", 250, 2, "1mb", 3000, 0.1, "70kb")
    assert (found.link_bps, found.buffer) == (10**8, 10**6)
    assert found.traits.loss_ppm == 1000 and found.traits.ecn_bytes == 70_000
    assert "100 Mbit/s (25 Gbit/s, 250 times slower)" in found.words()
    assert plan.from_json(json.loads(json.dumps(found.as_json()))) == found


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"name": "A-b"}, "small letters"),
        ({"hosts": 41}, "2 to 40"),
        ({"hosts": 1}, "2 to 40"),
        ({"dilate": 0.5}, "1 to 100000"),
        ({"dilate": 1000}, "1 Mbit/s"),
        ({"priorities": 9}, "1 to 8"),
        ({"mtu": 100}, "576 to 9000"),
        ({"loss": 100}, "percentage"),
        ({"loss": float("nan")}, "percentage"),
        ({"buffer": "ten"}, "48kb"),
        ({"buffer": "100"}, "one packet"),
        ({"buffer": "10kb", "ecn": "11kb"}, "more than a port holds"),
    ],
)
def test_plan__wrong(options: dict, remedy: str) -> None:
    with pytest.raises(UsageError, match=remedy):
        plan.check(**{"name": "a", **options})


SEND = """
import socket, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
level, ecn, count = map(int, sys.argv[2:])
out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, level << 5 | ecn)
for n in range(count):
    out.sendto(bytes(1000), (sys.argv[1], 9))
"""


@needs_root
def test_up_status_down(cli, names: list[str], tmp_path: Path) -> None:
    one, other = names
    spaces = laboratories.prefix_of(one)
    status, out, err = cli("up", one, "--hosts", "2", "--buffer", "64kb")
    assert status == 0, err
    assert f"lab '{one}': 2 hosts" in out and f"ip netns exec {spaces}host1" in out
    assert cli("up", other, "--hosts", "2")[0] == 0
    status, _, err = cli("up", one)
    assert status == 1 and "is up" in err and f"lab down {one}" in err
    host = Host(f"{spaces}host1", "10.9.0.1")
    run(host.command([sys.executable, "-c", SEND, "10.9.0.2", "0", "0", "3"]))
    file = tmp_path / "status.json"
    status, out, _ = cli("status", one, "--json", str(file))
    assert status == 0 and f"{spaces}host2" in out
    document = json.loads(file.read_text())
    assert document["where"]["kernel"] and "commit" in document["where"]
    ports = document["labs"][one]["ports"]
    assert ports[1]["sent_packets"] >= 3 and ports[1]["peak_backlog"] >= 1000
    # A process in it ends with it, and the other lab stays.
    child = subprocess.Popen(host.command(["sleep", "1000"]), start_new_session=True)
    status, out, _ = cli("down", one)
    assert status == 0 and "is removed" in out
    child.wait()
    assert not runs(child.pid)
    status, out, _ = cli("status")
    assert f"lab '{one}'" not in out and f"lab '{other}'" in out
    assert cli("status", one)[0] == 1
    assert cli("down", "--all")[0] == 0
    assert laboratories.names() == [] and not guardian.namespaces(laboratories.prefix_of(other))
    assert "was not up" in cli("down", one)[1]


# Makes a lab and is killed when its second host is there.
KILLED = """
import os, signal, sys
from lab.cluster import laboratories, plan
from lab.net.hosts import Namespaces
real = Namespaces.host
def host(self, name, *rest):
    made = real(self, name, *rest)
    if name == "host2":
        os.kill(os.getpid(), signal.SIGKILL)
    return made
Namespaces.host = host
laboratories.up(plan.check(sys.argv[1], 4))
"""


@needs_root
@pytest.mark.parametrize("command", ["up", "down"])
def test_killed_up__the_next_command_heals(cli, names: list[str], command: str) -> None:
    one, other = names
    done = subprocess.run(
        [sys.executable, "-c", KILLED, one],
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == -signal.SIGKILL
    assert len(guardian.namespaces(laboratories.prefix_of(one))) == 3
    assert laboratories.names() == []
    status, out, err = cli(command, other, *(["--hosts", "2"] if command == "up" else []))
    assert status == 0, err
    assert f"removed what was left of lab '{one}'" in out
    wait_until(lambda: not guardian.namespaces(laboratories.prefix_of(one)))
    if command == "up":
        assert len(guardian.namespaces(laboratories.prefix_of(other))) == 3
        # Killed while it went down: the file is gone first, so it is a rest as well.
        (laboratories.folder() / f"{other}.json").unlink()
        assert laboratories.heal() == [other]


@needs_root
def test_up__one_that_is_being_made_is_not_healed(cli, names: list[str]) -> None:
    one = names[0]
    run(["ip", "netns", "add", f"{laboratories.prefix_of(one)}switch"])
    with laboratories._lock(one) as free:
        assert free
        assert laboratories.heal() == []
        status, _, err = cli("up", one)
        assert status == 1 and "at this moment" in err
    assert laboratories.heal() == [one]


@needs_root
def test_ports__lose_mark_and_merge_priorities(names: list[str]) -> None:
    one = names[0]
    traits = {"priorities": 2, "loss": 50.0, "ecn": "10kb", "buffer": "300kb", "link": "1mbit"}
    # Four senders, each with a link of its own: of half of their packets the port's queue grows.
    made = laboratories.up(plan.check(one, 5, **traits))
    for level in (0, 1, 7):
        argv = [sys.executable, "-c", SEND, made.hosts[4][1], str(level), "2", "25"]
        some = [subprocess.Popen(Host(*host).command(argv)) for host in made.hosts[:4]]
        assert all(process.wait() == 0 for process in some)
    # The two sources of a reading are read one after the other, and packets may still come: three
    # readings in a row say the same, and the last one is judged.
    seen: list[PortCounters] = []

    def settled() -> bool:
        seen.append(made.counters()[4])
        last = {(port.lost, port.drops) for port in seen[-3:]}
        return len(seen) > 2 and len(last) == 1 and seen[-1].drops == seen[-1].lost > 0

    wait_until(settled)
    port = seen[-1]
    # Half of 300: 110 to 190 is more than 4 standard deviations to either side.
    assert 110 <= port.lost <= 190 and port.drops == port.lost
    assert 0 < port.marked <= 300 - port.lost
    rows = json.loads(run(["tc", "-n", made.switch, "-s", "-j", "qdisc", "show", "dev", "port5"]))
    # What hosts say by themselves (IPv6) may have come before the port had its settings.
    used = {row["handle"] for row in rows if row["backlog"] + row["bytes"] > 5000} - {"1:", "ffff:"}
    assert used == {"10:", "11:"}
    laboratories.down(one)
