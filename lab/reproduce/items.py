# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""What the papers show, one item each, and how it is made here, or why it is not."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import UsageError

SIGCOMM = "Homa, SIGCOMM 2018 (simulated there)"
ATC = "Homa/Linux, USENIX ATC 2021 (40 real hosts there)"
SNIA = "Homa and TCP on one network, SNIA 2024 (real hosts there)"
TAS = "TAS, EuroSys 2019 (real hosts and ns-3 there)"
OFFLOAD = "Homa in network cards (FPGA there)"
OWN = "The simulator itself"
LAB = "Real packets, beside no paper"
PAPERS = (SIGCOMM, ATC, SNIA, TAS, OFFLOAD, OWN, LAB)

_SOFTWARE = (
    "The paper's hosts queue in software and their cores are the limit; here they take 7.2 µs a packet "
    "and way and never queue. Ratios can be compared, microseconds cannot: atc3-cores and atc4-cores "
    "have software that queues."
)
_BESIDE = (
    "Links are slower than the talk's by a factor, and everything with them but TCP's least timeout and its delayed acks. "
    "Streams send at an even pace, "
    "where iperf writes blocks. The slides' text says which cells were measured (our grid) and has no "
    "number of a result to stand beside ours."
)
_REAL = (
    "Hosts are namespaces of one machine, and links are slower by a factor so that its processors are "
    "not the limit; everything is as many times slower but TCP's least timeout and its delayed acks. The simulator's numbers "
    "stand beside those of real packets. `./homa lab run` measures it with other networks, too."
)
_COUNTED = (
    "A model of a host's cores with costs that were counted in homa.ko and in the kernel's TCP, without "
    "caches, C-states and the Linux scheduler (docs/simulator.md)."
)


@dataclass(frozen=True)
class Item:
    """A table or figure.

    `figure`: the simulator's figure that makes it. `lab`: the experiment of `./homa lab run`, or the
    benchmark ("tas"), that does, on real packets. `command`: one that makes it but is not run from here. `differs`: what is not as in
    the paper and why; of an item that nothing makes, why.
    `minutes`: of two idle cores, quick and full, with as many seeds as usual: for the time left. Of 30
    November 2026 (AMD EPYC, two cores), items in the order of this list, so that runs which two share are
    those of the first. Measured are the simulated ones, but for SIGCOMM'18's and tas-12 in full, which
    are older estimates; lab-fig3, -small and -incast quick, and lab-fig3 in full with one seed. Of the
    rest it is the time that runs are measured, with their warm-up, and what those runs took beside: 22 s
    each with 8 hosts, 90 with 40, 10 to 20 with few hosts. All of tas-hosts is calculated.
    """

    name: str
    paper: str
    place: str
    title: str
    differs: str
    figure: str = ""
    command: str = ""
    minutes: tuple[float, float] = (1.0, 10.0)
    lab: str = ""

    @property
    def made(self) -> bool:
        """Whether `./homa reproduce` makes it."""
        return bool(self.figure or self.lab)


def _sim(
    name: str, paper: str, place: str, title: str, differs: str, minutes: tuple[float, float]
) -> Item:
    return Item(name, paper, place, title, differs, figure=name, minutes=minutes)


ITEMS: tuple[Item, ...] = (
    _sim(
        "fig10", SIGCOMM, "Figure 10", "P99 slowdown by message size, six protocols",
        "The other protocols are written from their papers, not their authors' simulators. PIAS does "
        "better than published where windows are short, as with --quick; NDP a little in all "
        "(docs/competitors.md).", (2.1, 100),
    ),
    _sim(
        "fig11", SIGCOMM, "Figure 11", "Why the slowest short messages wait",
        "The paper's bars have no numbers.", (0.1, 25),
    ),
    _sim(
        "fig12", SIGCOMM, "Figure 12", "Highest load that is sustained",
        "Three racks instead of nine. The paper does not say by which rule it called a load "
        "supported; ours is in the notes.", (2.8, 130),
    ),
    _sim(
        "fig13", SIGCOMM, "Figure 13", "Bandwidth wasted for want of overcommitment, W4",
        "Three racks instead of nine.", (2.8, 100),
    ),
    _sim(
        "fig14", SIGCOMM, "Figure 14", "Use of the priorities, W3",
        "The paper's bars have no numbers.", (0.2, 10),
    ),
    _sim(
        "table1", SIGCOMM, "Table 1", "Queue lengths at 80 % load",
        "The paper watched 1.2 to 3.8 simulated seconds; the largest queue grows with the time "
        "watched.", (0.1, 25),
    ),
    _sim(
        "unsched", SIGCOMM, "end of Section 5", "How many unscheduled priorities W1 needs",
        "The paper prints one number and says nothing of its run.", (0.2, 15),
    ),
    Item(
        "atc-table1", ATC, "Table 1", "The machines",
        "Theirs: 10 cores at 2.4 GHz with two threads each, 64 GB, 25 Gbit/s, one switch, Linux 5.4.80. "
        "What this page was made on stands at its top.",
    ),
    _sim(
        "atc-table2", ATC, "Table 2", "Round trip, throughput and RPC rate at best", _COUNTED, (0.2, 3.2),
    ),
    _sim(
        "atc-table3", ATC, "Table 3", "The workloads' means, cut at 1 MB",
        "Quantiles are those of the simulator's tables.", (0.1, 0.2),
    ),
    _sim("atc3", ATC, "Figure 3", "Slowdown of RPCs by message size", _SOFTWARE, (0.3, 7.3)),
    _sim("atc3-cores", ATC, "Figure 3", "The same with the software of hosts, which queues", _COUNTED, (0.9, 8.2)),
    _sim("atc4", ATC, "Figure 4", "Latency of short messages", _SOFTWARE, (0.1, 0.2)),
    _sim("atc4-cores", ATC, "Figure 4", "The same with the software of hosts, which queues", _COUNTED, (0.1, 0.2)),
    _sim("atc5", ATC, "Figure 5", "Number of priorities, W5", _SOFTWARE, (0.1, 2.9)),
    _sim("atc6", ATC, "Figure 6", "Full, half and tenth load, W4", _SOFTWARE, (0.1, 1)),
    Item(
        "lab-fig3", ATC, "Figure 3", "The same on real packets, Homa and TCP", _REAL,
        lab="fig3", minutes=(11, 81),
    ),
    Item(
        "lab-fig5", ATC, "Figure 5", "The same on real packets", _REAL,
        lab="fig5", minutes=(17, 90),
    ),
    Item(
        "lab-fig6", ATC, "Figure 6", "The same on real packets", _REAL,
        lab="fig6", minutes=(18, 84),
    ),
    _sim("atc7", ATC, "Figure 7", "Where the time of a short message goes", _COUNTED, (0.1, 0.1)),
    _sim("atc-cores", ATC, "Table 4", "Cores used by each part of Homa; best round trip (Table 2)",
         "A model of a host's cores with costs that were counted in homa.ko in the morning of 30 November "
         "2026, without caches, C-states and the Linux scheduler (docs/simulator.md). A 100-byte RPC took "
         "homa.ko 23.7 thousand instructions then, and 22.2 since that evening.", (0.1, 1.1)),
    _sim("atc55", ATC, "Section 5.5", "The switch's buffer", _SOFTWARE, (0.2, 1.3)),
    Item(
        "snia-matrix", SNIA, "matrix", "RPC load by stream load: who loses what", _BESIDE,
        lab="coexist", minutes=(35, 190),
    ),
    Item(
        "snia-slowdown", SNIA, "slowdown", "Slowdown of RPCs beside streams", _BESIDE,
        lab="coexist", minutes=(35, 190),
    ),
    Item(
        "snia-rtt", SNIA, "RTT", "Round trips beside streams", _BESIDE,
        lab="coexist", minutes=(35, 190),
    ),
    Item(
        "tas-hosts", TAS, "Figures 4 to 10, 13 to 15", "RPC rate, goodput, connections, loss, a key-value store, fairness",
        "Namespaces of this machine instead of hosts: two cores for both ends, where the paper had 20 "
        "for the server and a link of 40 Gbit/s. `./homa bench tas` shows all of its numbers.",
        lab="tas", minutes=(9, 21),
    ),
    _sim(
        "tas-7", TAS, "Figure 7", "Throughput that losses leave",
        "Simulated hosts, whose processors are no limit; on real packets ./homa bench tas loss.", (0.1, 0.7),
    ),
    _sim(
        "tas-11", TAS, "Figure 11", "Flow completion time and queue by control interval",
        "The paper gives curves without numbers.", (0.1, 0.6),
    ),
    _sim(
        "tas-12", TAS, "Figure 12", "The same in a large fat tree",
        "--quick has 256 hosts instead of 2,560. The paper gives curves without numbers.", (0.1, 120),
    ),
    _sim(
        "tas-13", TAS, "Figure 13", "The tail of connections' rates under incast",
        "One link and simulated hosts instead of four machines.", (0.1, 0.4),
    ),
    Item("offload-rtt", OFFLOAD, "round trip", "Homa with segmentation, steering and reassembly in the card",
         "There is no command: it needs such a card."),
    _sim("snia-offload", OFFLOAD, "W4, 10 Gbit/s", "Round trips with each offload of the card, simulated",
         "A model of a host's cores; the talk does not say hosts, load or processor.", (0.2, 1.3)),
    Item("offload-slowdown", OFFLOAD, "slowdown", "Slowdown by payload with and without offload",
         "There is no command: it needs such a card."),
    _sim(
        "analytic", OWN, "calculated", "Idle network, one queue (M/D/1), incast, conservation",
        "Nothing is published: these numbers follow from rates and delays.", (0.2, 0.8),
    ),
    Item(
        "lab-incast", LAB, "incast", "1 to 64 hosts answer one, with and without incast control", _REAL,
        lab="incast", minutes=(4, 26),
    ),
    Item(
        "lab-small", LAB, "small buffers", "The simulator beside real packets where ports hold 7 packets",
        _REAL, lab="small", minutes=(6.5, 42),
    ),
    Item(
        "lab-failures", LAB, "failures", "What RPCs see when a host, a link or a buffer fails", _REAL,
        lab="failures", minutes=(17, 30),
    ),
    Item(
        "lab-sustained", LAB, "sustained", "The highest load of W4 that is carried for long", _REAL,
        lab="sustained", minutes=(22, 66),
    ),
)  # fmt: skip


def minutes(quick: bool) -> tuple[float, float]:
    """About how long all items take on two idle cores: the simulated ones, and those of real packets."""
    which = 0 if quick else 1
    # Items of one experiment are views of the same runs.
    real = {item.lab: item.minutes[which] for item in ITEMS if item.lab}
    return sum(item.minutes[which] for item in ITEMS if item.figure), sum(real.values())


def choose(names: list[str]) -> list[Item]:
    """The items called `names`, in their order here; all of none."""
    known = {item.name for item in ITEMS}
    for name in names:
        if name not in known:
            raise UsageError(f"no item is called '{name}'; ./homa reproduce --list shows them")
    return [item for item in ITEMS if not names or item.name in names]
