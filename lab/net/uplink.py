# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The link of a host towards its switch: as slow as the switch's ports, with one queue.

What a host sends arrives at its port of the switch and goes through an ifb device there, whose queue
lets no more out than the link's rate. So it holds for packets of AF_XDP, too, which pass all queues
of the host. The kernel's TCP meets the same rate in queues of the host before that, as it does with
a network card that has a queue for each core: it keeps what is in them short (TSQ), which it
cannot do behind the host, and a connection does not wait for another's whole queue.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lab.errors import LabError
from lab.net import bpf
from lab.net.hosts import Host, run

FRAME_OVERHEAD = 24  # preamble 8, FCS 4, gap 12: what Ethernet adds that skb->len does not count
MIN_FRAME = 84
ROOM = 1000  # packets that a queue holds at most, as with most network cards
QUEUES = 20  # of a host, as many as ATC'21's hosts have cores
FIRST = 0x10  # the class of the first

# HTB may send this much at once after its timer came late. The more that is of a packet's time, the
# earlier packets leave than on a cable.
BURST_S = 100e-6


def burst_of(rate_bps: int) -> int:
    """Bytes that a link of this rate may send at once."""
    return max(MIN_FRAME, int(rate_bps / 8 * BURST_S))


def shape_of(mtu: int, burst: int) -> str:
    """The words of an HTB class that say how large packets of `mtu` are on a cable and bursts."""
    frame = mtu + 14
    return f"burst {burst} cburst {burst} quantum {frame} overhead {FRAME_OVERHEAD} mpu {MIN_FRAME}"


def add(namespace: str, port: str, device: str) -> None:
    """Lead all that arrives at `port` of the switch in `namespace` through a new ifb, `device`."""
    # As a module it makes two devices of its own when the kernel loads it, in the machine's namespace.
    if not Path("/sys/module/ifb").exists() and shutil.which("modprobe"):
        run(["modprobe", "ifb", "numifbs=0"], check=False)
    try:
        run(["ip", "-n", namespace, "link", "add", device, "type", "ifb"])
    except LabError as error:
        raise LabError(
            f"hosts have no link of their own here, is the kernel without CONFIG_IFB? {error}"
        ) from None
    run(["ip", "-n", namespace, "link", "set", device, "up"])
    lines = (
        f"qdisc add dev {port} handle ffff: ingress\n"
        f"filter add dev {port} parent ffff: protocol all prio 1 u32 match u32 0 0 "
        f"action mirred egress redirect dev {device}\n"
    )
    run(["tc", "-n", namespace, "-batch", "-"], lines)


def tree(device: str, rate_bps: int, mtu: int, queues: int) -> str:
    """The tc batch for `device`: so many queues, served in turn, that share the rate of the link."""
    words, rate = shape_of(mtu, burst_of(rate_bps)), f"{rate_bps}bit"
    lines = [
        f"qdisc add dev {device} root handle 1: htb default {FIRST:x}",
        f"class add dev {device} parent 1: classid 1:1 htb rate {rate} ceil {rate} {words}",
    ]
    for minor in range(FIRST, FIRST + queues):
        lines += [
            f"class add dev {device} parent 1:1 classid 1:{minor:x} htb rate 1kbit "
            f"ceil {rate} {words}",
            f"qdisc add dev {device} parent 1:{minor:x} bfifo limit {ROOM * (mtu + 14)}",
        ]
    return "\n".join(lines) + "\n"


def shape(namespace: str, device: str, host: Host, rate_bps: int, mtu: int) -> int:
    """Give the link of `host`, which goes through `device`, its rate; empties its queues. Returns how
    many queues the packets of the kernel's TCP are spread over: QUEUES, or 1 if it cannot be done."""
    program = bpf.compiled("uplink.bpf.c")
    # A queue that is served in turn lets whole units go, and counts what a cable adds to the first of
    # their packets alone; so TCP sends single packets. (What says so is unknown before iproute2 5.18.)
    whole = ["ip", "-n", host.namespace, "link", "set", "dev", host.device, "gso_max_segs", "1"]
    run(whole, check=False)
    for space, name, queues in (
        (namespace, device, 1),
        (host.namespace, host.device, QUEUES),
    ):
        run(["tc", "-n", space, "qdisc", "del", "dev", name, "root"], check=False)
        run(["tc", "-n", space, "-batch", "-"], tree(name, rate_bps, mtu, queues))
    return QUEUES if program and spread(host, program) else 1


def spread(host: Host, program: Path) -> bool:
    """Spread the packets of `host` over its queues. False: the kernel does not take the program, and
    all packets take the first one."""
    where = ["tc", "-n", host.namespace, "filter", "add", "dev", host.device]
    words = ["parent", "1:", "prio", "1", "bpf", "object-file", str(program), "section", "tc"]
    try:
        run([*where, *words, "classid", "1:1", "direct-action"])
    except LabError:
        return False
    return True


def drops(namespace: str, device: str, host: Host) -> int:
    """Packets that the queues of the link of `host`, which goes through `device`, have dropped."""
    found = 0
    for space, name in ((namespace, device), (host.namespace, host.device)):
        rows = json.loads(run(["tc", "-n", space, "-s", "-j", "qdisc", "show", "dev", name]))
        found += sum(row["drops"] for row in rows if row.get("root"))
    return found
