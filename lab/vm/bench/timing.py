# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Times with two emulated processors: round trips, RPC rates, long messages.

An emulated processor is a thread of a busy machine, so a time means nothing by itself. All
configurations run once in every round of one boot, and ratios are taken within the round, to
two rivals that must not be confused: TCP as programs use it, which is blocking, and the best
TCP of that round, which may be one that spins or polls on processors of its own. Whatever is
done for Homa is done for TCP as well: where Homa's recvmsg() polls before it sleeps, a program
over TCP does, for as long.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from lab.vm import Kernel, VmError, run
from lab.vm.bench import hosts
from lab.vm.bench.hosts import Case

_SAME = ("--client-cpu", "0", "--server-cpu", "0")
_SPLIT = ("--client-cpu", "0", "--server-cpu", "1")
_BLOCK = (("poll_usecs", "0"),)
# The module polls for 50 µs, as long as a message takes to come back on hardware, and then
# sleeps. Emulated, a TCP round trip takes some 350 µs instead of 30 or 40: ten times as long. So
# does all else, and a poll of 50 µs would always end before anything can have come.
POLL_USECS = 500
_POLL = (("poll_usecs", str(POLL_USECS)),)
_POLLED = ("--wait", "poll", "--poll-usecs", str(POLL_USECS))
_BOOT_S = 60
_CASE_S = 8  # the longest that a case may take on a busy machine, per second asked for


@dataclass(frozen=True)
class Group:
    """Cases that are compared. `value` is what a result's number is called there.

    `plain` names the TCP case and the Homa case that nobody has tuned; `blocking` all TCP
    cases that block, wherever they are placed.
    """

    key: str
    title: str
    value: str
    lower: bool
    cases: tuple[Case, ...]
    plain: tuple[str, str] = ("tcp", "homa")
    blocking: tuple[str, ...] = ("tcp", "tcp_same", "tcp_split")

    def of(self, result: dict[str, object]) -> float:
        """The value of one result."""
        if self.value == "rate":
            return float(result["rate"])  # type: ignore[arg-type]
        return float(result["rtt_ns"][self.value]) / 1e3  # type: ignore[index]


@dataclass
class Times:
    """A group's values per case, one per round (None: it failed there)."""

    group: Group
    values: dict[str, list[float | None]] = field(default_factory=dict)

    def ratios(self, key: str, rivals: list[str]) -> list[float]:
        """The case's value to the best of `rivals`, in each round that has both."""
        best = min if self.group.lower else max
        found = []
        for number, value in enumerate(self.values.get(key, [])):
            others = [x for r in rivals if (x := self.values[r][number]) is not None]
            if value is not None and others:
                found.append(value / best(others))
        return found

    def tcp(self) -> list[str]:
        """The rivals."""
        return [c.key for c in self.group.cases if not c.is_homa and c.key in self.values]

    def blocking(self) -> list[str]:
        """Those of them that block."""
        return [key for key in self.tcp() if key in self.group.blocking]

    def best_ratios(self, rivals: list[str]) -> list[float]:
        """Homa's best case to the best of `rivals`, round by round."""
        best = min if self.group.lower else max
        homa = [c.key for c in self.group.cases if c.is_homa]
        per_case = [self.values[k] for k in homa if k in self.values]
        found = []
        for number in range(max((len(v) for v in per_case), default=0)):
            ours = [x for v in per_case if (x := v[number]) is not None]
            theirs = [x for k in rivals if (x := self.values[k][number]) is not None]
            if ours and theirs:
                found.append(best(ours) / best(theirs))
        return found


def _rtt(count: int) -> Group:
    size = ("--warmup", "200", "--count", str(count))
    spin = ("--wait", "spin")
    return Group(
        "rtt",
        "round trip of 100 B requests and responses, one at a time (µs)",
        "median",
        True,
        (
            Case("tcp", "TCP, blocking", "tcp", size),
            Case("tcp_same", "TCP, blocking, same CPU", "tcp", (*size, *_SAME)),
            Case("tcp_split", "TCP, blocking, two CPUs", "tcp", (*size, *_SPLIT)),
            Case("tcp_poll", "TCP, polling", "tcp", (*size, *_POLLED)),
            Case("tcp_poll_split", "TCP, polling, two CPUs", "tcp", (*size, *_POLLED, *_SPLIT)),
            Case("tcp_spin", "TCP, spinning, two CPUs", "tcp", (*size, *_SPLIT, *spin)),
            Case("homa", "Homa, polling", "homa", size, _POLL),
            Case("homa_block", "Homa, blocking at once", "homa", size, _BLOCK),
            Case("homa_same", "Homa, polling, same CPU", "homa", (*size, *_SAME), _POLL),
            Case("homa_split", "Homa, polling, two CPUs", "homa", (*size, *_SPLIT), _POLL),
            Case("homa_spin", "Homa, spinning, two CPUs", "homa", (*size, *_SPLIT, *spin), _POLL),
        ),
    )


def _rate(count: int) -> Group:
    size = ("--outstanding", "16", "--warmup", "500", "--count", str(5 * count))
    return Group(
        "rate",
        "100 B requests and responses, 16 outstanding (RPC/s)",
        "rate",
        False,
        (
            Case("tcp", "TCP, blocking", "tcp", size),
            Case("tcp_same", "TCP, blocking, same CPU", "tcp", (*size, *_SAME)),
            Case("tcp_split", "TCP, blocking, two CPUs", "tcp", (*size, *_SPLIT)),
            Case("tcp_poll", "TCP, polling", "tcp", (*size, *_POLLED)),
            Case("tcp_poll_split", "TCP, polling, two CPUs", "tcp", (*size, *_POLLED, *_SPLIT)),
            Case("homa", "Homa, polling", "homa", size, _POLL),
            Case("homa_block", "Homa, blocking at once", "homa", size, _BLOCK),
            Case("homa_same", "Homa, polling, same CPU", "homa", (*size, *_SAME), _POLL),
            Case("homa_split", "Homa, polling, two CPUs", "homa", (*size, *_SPLIT), _POLL),
        ),
    )


def _bulk(count: int, response: int) -> Group:
    """The mean is of all messages: what a stall costs counts."""
    size = ("--request", "500000", "--response", str(response))
    size += ("--warmup", "10", "--count", str(max(20, count // 25)))
    word = "echo" if response > 1000 else "one way"
    return Group(
        f"bulk_{'echo' if response > 1000 else 'one_way'}",
        f"500 KB {word}, one at a time (µs per message)",
        "mean",
        True,
        (
            Case("tcp", "TCP, blocking", "tcp", size),
            Case("tcp_split", "TCP, blocking, two CPUs", "tcp", (*size, *_SPLIT)),
            Case("tcp_poll", "TCP, polling", "tcp", (*size, *_POLLED)),
            Case("homa", "Homa, polling", "homa", size, _POLL),
            Case("homa_split", "Homa, polling, two CPUs", "homa", (*size, *_SPLIT), _POLL),
        ),
    )


def groups(part: str, seconds: float) -> tuple[Group, ...]:
    """What a part of `./homa bench kernel` measures."""
    count = max(100, int(2000 * seconds))
    if part == "bulk":
        return _bulk(count, 100), _bulk(count, 500000)
    return (_rtt(count) if part == "rtt" else _rate(count),)


def script(part: tuple[Group, ...], rounds: int, offloads: str, module: Path | None) -> str:
    """What the guest does."""
    text = hosts.begin(offloads) + hosts.load(module) + "sleep 1\n"
    for number in range(rounds):
        for group in part:
            for case in group.cases:
                if module or not case.is_homa:
                    text += case.line("--label", f"{group.key}/{case.key}/{number}")
    return text


def measure(
    kernel: Kernel,
    module: Path | None,
    part: tuple[Group, ...],
    *,
    rounds: int,
    seconds: float,
    offloads: str,
) -> tuple[list[Times], hosts.Said]:
    """All rounds in one boot."""
    cases = sum(len(group.cases) for group in part)
    timeout = _BOOT_S + cases * rounds * (2 + _CASE_S * seconds)
    result = run(
        kernel,
        script(part, rounds, offloads, module),
        hosts.options(kernel, module, smp=2),
        timeout,
    )
    said = hosts.parse(result.output)
    if result.problems:
        said.failed.append(f"the kernel complained: {result.problems.splitlines()[0]}")
    if not said.results:
        raise VmError(f"nothing was measured; the guest said:\n{result.output[-3000:]}")
    found = {group.key: Times(group) for group in part}
    for line in said.results:
        key, case, number = str(line["label"]).split("/")
        values = found[key].values.setdefault(case, [None] * rounds)
        values[int(number)] = found[key].group.of(line)
    return list(found.values()), said


def spread(values: list[float]) -> dict[str, object] | None:
    """Median, least, most, and the rounds themselves."""
    if not values:
        return None
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "rounds": values,
    }
