# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""How a run begins when nobody says so: with as much under way as its load means.

A network that starts empty carries less than it is offered until its longest messages have come to
their steady number: 80 % of W4 measured after 5 ms carry 58 %. So the oracle, which is cheap, runs
ahead and leaves its unfinished messages (--warm-start), and then the protocol itself runs until the
backlog is its own (--warmup), before anything is measured. RPCs cannot begin with the oracle's
messages; their protocol runs longer. Times are for hosts' links of 10 Gbit/s and grow with slower
links, as the time of a message does.
"""

from __future__ import annotations

from lab.sim.flags import FLAGS, bits_per_second
from lab.sim.spec import Spec

# Simulated ms: the oracle's, then the protocol's own.
ONE_WAY = {
    "w1": (0.0, 1.0),
    "w2": (10.0, 2.0),
    "w3": (100.0, 5.0),
    "w4": (400.0, 20.0),
    "w5": (800.0, 30.0),
}
# The protocol's own, without an oracle before it.
RPCS = {"w1": 1.0, "w2": 5.0, "w3": 30.0, "w4": 60.0, "w5": 120.0}
_RATE = 10e9


def begin(spec: Spec) -> Spec:
    """The flags that `spec` leaves out; none if it says anything about its beginning itself.

    Sizes of other workloads and recorded arrivals are unknown here: homa-sim's own 5 ms hold.
    """
    workload = str(spec.get("workload", FLAGS["workload"].default)).lower()
    if {"warmup", "warm-start", "arrivals"} & set(spec) or workload not in ONE_WAY:
        return {}
    scale = _RATE / bits_per_second(str(spec.get("link", FLAGS["link"].default)))
    if spec.get("mode") == "rpc":
        return {"warmup": f"{RPCS[workload] * scale:.6g}ms"}
    oracle, own = (ms * scale for ms in ONE_WAY[workload])
    said: Spec = {"warmup": f"{own:.6g}ms"}
    return {**said, "warm-start": f"{oracle:.6g}ms"} if oracle else said
