# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The experiments that items are made of."""

from __future__ import annotations

from lab.cluster.arguments import Wanted
from lab.reproduce.real import coexist, failures, figures, incast, sustained, tas
from lab.reproduce.real.experiment import Bench, Experiment
from lab.sim.sustain import SEEDS

# Eight times the network's MTU, as in the experiment on failures: seven packets with their headers.
_SMALL = "24kb"
# Of the talk's grid a full run has one load of RPCs: all of it takes some nights.
_COEXIST = Wanted(False, rpc="30", streams="10,40")

EXPERIMENTS: dict[str, Experiment | Bench] = {
    one.name: one
    for one in (
        Experiment("fig3", figures.fig3),
        Experiment("fig5", figures.fig5),
        # At a tenth of the load 300 s have 999 messages in a tenth of the sizes.
        Experiment("fig6", figures.fig6, longest=600.0),
        Experiment(
            "small",
            figures.small,
            short=Wanted(True, transports="homa"),
            full=Wanted(False, transports="homa"),
            run="fig3",
            buffer=_SMALL,
        ),
        Experiment("coexist", coexist.outputs, seeds=(1, 1), full=_COEXIST),
        Experiment("incast", incast.outputs),
        Experiment("failures", failures.outputs, seeds=(1, 1)),
        Experiment("sustained", sustained.outputs, own_seeds=SEEDS),
        Bench("tas", tas.measure, rounds=(2, 5)),
    )
}
