# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What can be seen and set from outside: net.homa, /proc/net/homa_metrics, netlink, tracepoints.

One guest for all of it; each test leaves the settings as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import with_module

from lab.vm import Guest, Kernel, Options

# Written from the public module's documentation, not from our sources.
SETTINGS = """bpage_lease_usecs defer_min_bytes fifo_grant_increment grant_fifo_fraction
gso_force_software hijack_tcp hijack_udp homa_share link_mbps max_gso_size
max_incoming max_link_usage max_nic_est_backlog_usecs max_nic_queue_usecs
max_overcommit num_priorities pacer_fifo_fraction peer_idle_secs_min peer_net_max
poll_usecs priority_map request_ack_ticks resend_interval resend_ticks rtt_bytes
throttle_min_bytes timeout_ticks unsched_bytes unsched_cutoffs window wmem_max""".split()
# Its settings that have no meaning here.
GONE = """accept_bits action busy_usecs cutoff_version dead_buffs_limit drop_bits flags
freeze_type gen3_softirq_cores gro_busy_usecs gro_policy max_dead_buffs
max_grantable_rpcs max_gro_skbs max_nic_queue_ns max_rpcs_per_peer max_sched_prio
next_id peer_gc_threshold peer_idle_secs_max reap_limit skb_page_frees_per_sec
skb_page_pool_min_kb sync_freeze temp timeout_resends tx_page_frees_per_sec
tx_page_pool_min_kb verbose""".split()

HOMA = "/proc/sys/net/homa"
TRACING = "/sys/kernel/tracing"
SERVE = """vm_rpc serve 4 {port} >/run/serve & echo $! >>/run/pids
vm_rpc wait 4 127.0.0.1 {port} 30
"""
END = "kill -9 $(cat /run/pids) 2>/dev/null; rm -f /run/pids; true\n"


@pytest.fixture(scope="module")
def guest(kernel: Kernel, module: Path) -> Iterator[Guest]:
    with Guest(kernel, with_module(module, Options(), ("rpc", "look"))) as machine:
        # Under emulation on a busy machine all may stand still for longer than the default.
        machine.run(f"echo 20000 >{HOMA}/timeout_ticks").check()
        yield machine


def text(guest: Guest, script: str) -> str:
    return guest.run(script).check()


def test_sysctl__names_of_the_existing_module(guest: Guest) -> None:
    script = f"""cd {HOMA} || exit 1
    for n in {" ".join(SETTINGS)}; do
        [ -e $n ] || {{ echo "no $n"; continue; }}
        v=$(cat $n) || echo "cannot read $n"
        w=${{v:-1 2}}
        echo "$w" >$n || echo "cannot write $n"
        [ "$(cat $n | tr '\\t' ' ')" = "$(echo "$w" | tr '\\t' ' ')" ] || echo "$n was $v, is $(cat $n)"
    done"""
    assert text(guest, script).split("\n") == [""]


@pytest.mark.once
def test_sysctl__nothing_that_would_have_no_effect(guest: Guest) -> None:
    here = set(text(guest, f"ls {HOMA}").split())
    assert here > {"poll_usecs", *SETTINGS}
    assert not here & {*GONE}


@pytest.mark.once
@pytest.mark.parametrize(
    "write, read, value",
    [
        ("timeout_ticks=7", "timeout_us", "7000"),
        ("timeout_us=7001", "timeout_ticks", "8"),
        ("resend_ticks=3", "resend_interval_us", "3000"),
        ("request_ack_ticks=4", "need_ack_us", "4000"),
        ("rtt_bytes=12345", "unsched_bytes", "12345"),
        ("peer_idle_secs_min=2", "peer_idle_ms", "2000"),
        ("max_nic_est_backlog_usecs=9", "max_nic_backlog_us", "9"),
    ],
)
def test_sysctl__units(guest: Guest, write: str, read: str, value: str) -> None:
    name, _, number = write.partition("=")
    script = (
        f"cd {HOMA}; old=$(cat {read}); echo {number} >{name}; cat {read} {name}; echo $old >{read}"
    )
    shown = text(guest, script).split()
    assert shown[0] == value
    assert shown[1] == number


@pytest.mark.once
@pytest.mark.parametrize(
    "name, value",
    [
        ("max_overcommit", "0"),
        ("max_overcommit", "33"),
        ("num_priorities", "9"),
        ("timeout_ticks", "60001"),
        ("request_ack_ticks", "0"),
        ("hijack_udp", "2"),
        ("poll_usecs", "10001"),
        ("poll_usecs", "-1"),
        ("poll_usecs", "many"),
        ("priority_map", "0 1 2 3 4 5 6 8"),
        ("priority_map", "-1"),
        ("unsched_cutoffs", "0 0 0 0 1000000 150 2800 200"),
    ],
)
def test_sysctl__refuses(guest: Guest, name: str, value: str) -> None:
    script = f"cd {HOMA}; cat {name}; vm_look write {name} '{value}'; cat {name}"
    before, said, after = text(guest, script).strip().splitlines()
    assert said == "Invalid argument"
    assert before == after


def test_sysctl__is_of_its_namespace(guest: Guest) -> None:
    script = f"""ip netns add s1; ip netns add s2
    in1() {{ ip netns exec s1 sh -c "$1"; }}; in2() {{ ip netns exec s2 sh -c "$1"; }}
    in1 'cd {HOMA}; echo 11 >poll_usecs; echo 22 >resend_ticks'
    in1 'cd {HOMA}; echo "7 6 5 4 3 2 1 0" >priority_map'
    in1 'cd {HOMA}; cat poll_usecs resend_interval_us priority_map'
    in2 'cd {HOMA}; cat poll_usecs resend_interval_us priority_map'
    ip netns del s1; ip netns del s2"""
    assert text(guest, script).split("\n")[:6] == [
        "11", "22000", "7\t6\t5\t4\t3\t2\t1\t0", "0", "0", "0\t1\t2\t3\t4\t5\t6\t7",
    ]  # fmt: skip


@pytest.mark.debug
def test_sysctl__cutoffs_before_and_after_the_first_socket(guest: Guest) -> None:
    ours = "0 0 0 0 1000000 15000 2800 200"
    script = f"""ip netns add c1; ip netns exec c1 ip link set lo up
    ip netns exec c1 sh -c 'cd {HOMA}; echo {ours} >unsched_cutoffs; cat unsched_cutoffs
    vm_rpc serve 4 4000 & sleep 0.1; vm_rpc wait 4 127.0.0.1 4000 30 >/dev/null; cat unsched_cutoffs
    echo 0 0 0 0 0 2000000 300 30 >unsched_cutoffs; cat unsched_cutoffs
    echo 0 0 0 0 0 0 0 0 >unsched_cutoffs && echo free; kill %1'
    ip netns del c1"""
    lines = [line.split() for line in text(guest, script).splitlines() if "\t" in line]
    assert lines[0] == ours.split()
    assert lines[1][4:] == ["2147483647", "15000", "2800", "200"]
    assert lines[2][5:] == ["2147483647", "300", "30"]


@pytest.mark.once
def test_sysctl__a_change_stops_no_timer(guest: Guest) -> None:
    """An RPC whose server is silent ends by time, though nothing else enters the engine after a
    change, during which the timer may have run out."""
    script = f"""ip netns add t1; ip link add t0 netns t1 type veth peer name t9
    ip link set t9 up; ip -n t1 addr add 10.99.0.1/24 dev t0; ip -n t1 link set t0 up
    ip -n t1 neigh add 10.99.0.2 lladdr 02:00:00:00:00:02 dev t0 nud permanent
    ip netns exec t1 sh -c 'cd {HOMA}; echo 1000 >timeout_ticks
    for j in 1 2 3 4 5 6; do
        vm_rpc edges 4 10.99.0.2 4000 1500 2>&1 &
        for i in 5 6 7 8 9 10 11 12 13 14 15; do echo $i >resend_ticks; done; wait
    done'
    ip netns del t1; ip link del t9 2>/dev/null; true"""
    assert text(guest, script).count("errno 110") == 6


@pytest.mark.once
def test_sysctl__needs_net_admin(guest: Guest) -> None:
    script = f"""cd {HOMA}
    vm_look weak vm_look write poll_usecs 99
    vm_look as 1000 vm_look write poll_usecs 98; cat poll_usecs"""
    assert text(guest, script).strip().splitlines() == [
        "Operation not permitted", "Permission denied", "0",
    ]  # fmt: skip


@pytest.mark.once
def test_sysctl__root_of_a_user_namespace(guest: Guest) -> None:
    inside = f"echo 97 >{HOMA}/poll_usecs; cat {HOMA}/poll_usecs"
    script = f"vm_look as 1000 unshare -U -r -n sh -c '{inside}'; cat {HOMA}/poll_usecs"
    assert text(guest, script).split() == ["97", "0"]


def metrics(guest: Guest, prefix: str = "") -> dict[str, int]:
    lines = text(guest, f"{prefix} cat /proc/net/homa_metrics").splitlines()
    found = [
        re.fullmatch(r"([a-z][a-zA-Z0-9_]*) +([0-9]+) # (\S.*)", line) for line in lines if line
    ]
    assert all(found)
    names = {m[1]: int(m[2]) for m in found if m}
    assert len(names) == len(found), "a name stands twice"
    return names


# What scripts for the existing module read, and which counter of ours that is.
ALIASES = {
    **{
        f"packets_{way}_{theirs}": f"{ours}_{kind}"
        for way, ours in (("sent", "tx"), ("rcvd", "rx"))
        for theirs, kind in (
            ("DATA", "data"), ("GRANT", "grant"), ("RESEND", "resend"), ("RPC_UNKNOWN", "unknown"), ("BUSY", "busy"),
            ("CUTOFFS", "cutoffs"), ("NEED_ACK", "need_ack"), ("ACK", "ack"), ("FREEZE", "freeze"),
        )
        if (way, theirs) != ("sent", "FREEZE")
    },
    "responses_received": "responses_taken",
    "resent_packets": "tx_retransmits",
    "resent_discards": "rx_duplicates",
    "unknown_rpcs": "drop_unknown_rpc",
    "server_cant_create_rpcs": "drop_no_rpc",
    "unknown_packet_types": "drop_type",
    "short_packets": "drop_short",
    "server_rpc_discards": "server_discards",
    "fifo_grants": "grant_fifo",
    "buffer_alloc_failures": "buffer_waits",
}  # fmt: skip


@pytest.mark.once
def test_metrics__count_calls_in_their_namespace(guest: Guest) -> None:
    text(guest, SERVE.format(port=4100))
    before = metrics(guest)
    text(guest, "vm_rpc load 4 127.0.0.1 4100 1 20 4 30000 2")
    after = metrics(guest)
    text(guest, END)
    grown = {name: after[name] - before[name] for name in after}
    assert grown["requests_sent"] >= 20
    assert grown["requests_received"] == grown["requests_sent"] == grown["responses_taken"]
    assert grown["replies_sent"] == grown["requests_sent"]
    assert grown["rx_packets"] > 40
    assert grown["host_rx_skbs"] > 0
    assert grown["host_tx_skbs"] > 0
    assert grown["time_ns"] > 0
    assert grown["drop_short"] == 0
    text(guest, "ip netns add m1")
    other = metrics(guest, "ip netns exec m1")
    text(guest, "ip netns del m1")
    assert set(other) == set(after)
    assert not any(
        value for name, value in other.items() if name not in ("time_ns", "time_cycles", "cpu_khz")
    )
    assert after["core"] == 0
    assert len(ALIASES) == 27
    assert {alias: after[alias] for alias in ALIASES} == {
        alias: after[ours] for alias, ours in ALIASES.items()
    }
    assert after["packets_sent_DATA"] > 40 and after["packets_rcvd_DATA"] > 40


def dump(guest: Guest, what: str, prefix: str = "") -> list[dict[str, str]]:
    lines = text(guest, f"{prefix} vm_look dump {what}").splitlines()
    return [dict(word.split("=", 1) for word in line.split()[1:]) for line in lines if line]


def pending(guest: Guest, port: int, length: int, count: int = 1, prefix: str = "") -> str:
    """Requests that wait; the id of the first."""
    # Who waits for "ready" must not find what an earlier test was told.
    script = f"""rm -f /run/pending; touch /run/pending
    {prefix} vm_look pending 4 127.0.0.1 {port} {length} {count} >>/run/pending &
    echo $! >>/run/pids
    until grep -q ready /run/pending; do sleep 0.05; done; cat /run/pending"""
    return text(guest, script).split()[-1]


@pytest.mark.debug
def test_netlink__sockets_and_rpcs(guest: Guest) -> None:
    first = pending(guest, 4201, 5000)
    rpcs = [r for r in dump(guest, "rpcs") if "4201" in (r["port"], r["peer_port"])]
    socks = [s for s in dump(guest, "socks") if s["port"] == "4201"]
    devs, peers = dump(guest, "devs"), dump(guest, "peers")
    text(guest, END)
    client, server = sorted(rpcs, key=lambda r: r["client"], reverse=True)
    assert client["id"] == first
    assert client["client"] == "1"
    assert client["tx_length"] == client["tx_sent"] == client["tx_granted"] == "5000"
    assert client["cookie"] == "77"
    assert client["rx_length"] == "0"
    assert (server["client"], server["phase"]) == ("0", "5")
    assert socks[0]["messages"] == "1"  # short: in service, and not yet taken
    assert server["rx_length"] == server["rx_received"] == "5000"
    assert server["id"] == str(int(first) ^ 1)
    assert server["peer"] == client["peer"] == "::ffff:127.0.0.1"
    assert server["inode"] == socks[0]["inode"] != client["inode"]
    assert socks[0]["server"] == "1"
    assert socks[0]["uid"] == "0"
    assert socks[0]["region_bytes"] == str(8 << 20)
    assert int(socks[0]["avail_bytes"]) < 8 << 20
    assert [d["ifname"] for d in devs if d["ifindex"] == client["ifindex"]] == ["lo"]
    assert any(p["peer"] == "::ffff:127.0.0.1" and int(p["num_rpcs"]) for p in peers)


@pytest.mark.debug
def test_netlink__more_than_one_buffer(guest: Guest) -> None:
    pending(guest, 4202, 100, 700)
    script = """i=0; while [ $i -lt 200 ]; do vm_look dump rpcs | grep port=4202 >/run/rpcs
    [ $(grep -c phase=5 /run/rpcs) = 700 ] && break; i=$((i + 1)); sleep 0.1; done; cat /run/rpcs"""
    lines = text(guest, script).splitlines()
    text(guest, END)
    ids = [re.search(r" id=(\d+)", line)[1] for line in lines if line]  # type: ignore[index]
    assert len(ids) == 1400
    assert len(set(ids)) == 1400


@pytest.mark.once
def test_netlink__others_are_not_shown(guest: Guest) -> None:
    pending(guest, 4203, 10)
    pending(guest, 4204, 10, prefix="vm_look as 1000")
    mine = dump(guest, "rpcs", "vm_look as 1000"), dump(guest, "socks", "vm_look as 1000")
    weak = dump(guest, "rpcs", "vm_look weak")
    text(guest, "ip netns add n1")
    elsewhere = dump(guest, "socks", "ip netns exec n1") + dump(guest, "rpcs", "ip netns exec n1")
    text(guest, "ip netns del n1")
    text(guest, END)
    assert len(mine[0]) == 2
    assert all("4204" in (r["port"], r["peer_port"]) for r in mine[0])
    assert [s["uid"] for s in mine[1]] == ["1000", "1000"]
    assert {r["uid"] for r in weak} == {"0"}
    assert not any("id" in r for r in mine[0] + weak)
    assert elsewhere == []


def traced(guest: Guest, script: str) -> list[tuple[str, int, str]]:
    """(event, id, rest) in their order."""
    lines = text(
        guest,
        f"""cd {TRACING}; echo >trace; echo 1 >events/homa/enable
        {script}
        echo 0 >events/homa/enable; cat trace""",
    ).splitlines()
    found = [re.search(r" homa_([a-z_]+): id=(\d+) ?(.*)", line) for line in lines]
    return [(m[1], int(m[2]), m[3]) for m in found if m]


def in_order(wanted: list[str], found: list[str]) -> bool:
    rest = iter(found)
    return all(any(w in f for f in rest) for w in wanted)


@pytest.mark.debug
def test_trace__life_of_an_rpc(guest: Guest) -> None:
    text(guest, SERVE.format(port=4300))
    events = traced(
        guest,
        """vm_rpc load 4 127.0.0.1 4300 1 1 1 100 1 >/dev/null
        i=0; while [ $(grep -c homa_rpc_end trace) -lt 3 ] && [ $i -lt 100 ]
        do sleep 0.1; i=$((i + 1)); done""",
    )
    text(guest, END)
    first = next(number for name, number, _ in events if name == "rpc_begin")
    client = [f"{name} {rest}" for name, number, rest in events if number == first]
    server = [f"{name} {rest}" for name, number, rest in events if number == first ^ 1]
    told = "\n".join(f"{n} {i} {r}" for n, i, r in events)
    # The module is done with a short response before the program has it.
    begun = ["rpc_begin port=", "tx DATA", "rx DATA"]
    assert in_order([*begun, "rpc_take response"], client), told
    assert in_order([*begun, "rpc_end"], client), told
    assert in_order(["rx DATA", "rpc_take request", "rpc_reply", "tx DATA", "rpc_end"], server), (
        told
    )


@pytest.mark.once
def test_trace__drops_have_a_reason(guest: Guest) -> None:
    text(guest, SERVE.format(port=4301))
    before = metrics(guest)["drop_short"]
    events = traced(guest, "vm_look raw 127.0.0.1 000102; vm_look raw 127.0.0.1 " + "00" * 40)
    after = metrics(guest)["drop_short"]
    text(guest, END)
    drops = [rest for name, _, rest in events if name == "drop"]
    assert any("reason=drop_short" in rest for rest in drops)
    assert any("reason=drop_type" in rest for rest in drops)
    assert after == before + 1
