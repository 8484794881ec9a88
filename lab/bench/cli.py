# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa bench WHAT`: a command for each thing that is measured, with the options that it has."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import typer

from lab.net.rootless import enter_namespace
from lab.output import JSON_HELP, check_output, write_json

app = typer.Typer(no_args_is_help=False, rich_markup_mode=None)
ROUNDS = typer.Option(5, help="Rounds; every configuration runs once in each.")
SECONDS = typer.Option(1.0, help="Length of each measurement.")
JSON = typer.Option(None, "--json", help=JSON_HELP, show_default=False)


@app.callback()
def bench() -> None:
    """Homa beside TCP, in alternation: in namespaces, through homad, or in the kernel."""


def _beside_tcp(what: str, rounds: int, seconds: float, json_file: Path | None) -> None:
    from lab.bench import run

    run.check(rounds, seconds)
    check_output(json_file, "--json")
    enter_namespace()
    run.main(what, rounds, seconds, json_file)


@app.command()
def rtt(rounds: int = ROUNDS, seconds: float = SECONDS, json_file: Optional[Path] = JSON) -> None:
    """Round trip of 100 bytes, of Homa and every sensible TCP."""
    _beside_tcp("rtt", rounds, seconds, json_file)


@app.command()
def rate(rounds: int = ROUNDS, seconds: float = SECONDS, json_file: Optional[Path] = JSON) -> None:
    """RPCs per second, 100 bytes, 64 outstanding, of Homa and every sensible TCP."""
    _beside_tcp("rate", rounds, seconds, json_file)


@app.command()
def goodput(
    rounds: int = ROUNDS, seconds: float = SECONDS, json_file: Optional[Path] = JSON
) -> None:
    """Payload per second of 500 KB requests, of Homa and every sensible TCP."""
    _beside_tcp("goodput", rounds, seconds, json_file)


@app.command()
def service(
    groups: str = typer.Option(
        "",
        help="Which groups, separated by commas; without it all: rtt, rate, sessions, hog,"
        " goodput, local, apps, light1000, light10000, idle.",
        show_default=False,
    ),
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    json_file: Optional[Path] = JSON,
) -> None:
    """Round trips, rates and goodput through homad, beside TCP and UNIX sockets."""
    from lab.bench import service as run

    chosen = run.check(groups, rounds, seconds)
    check_output(json_file, "--json")
    run.main(chosen, rounds, seconds, json_file)


@app.command()
def tas(
    rows: str = typer.Argument(
        "", metavar="[ROW,...]", help="Which rows, e.g. connections,kv; without it all."
    ),
    points: str = typer.Option(
        "", help="Only these points of them, e.g. 64,256.", show_default=False
    ),
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    json_file: Optional[Path] = JSON,
) -> None:
    """TCP through homad beside the kernel's, by the rows of the TAS paper.

    The rows: connections (echo of 64 B over 1 to 16 k connections), short (connections of a few
    requests), pipelined (100 connections, work for the server), loss (a network that loses
    packets), interop (homad and Linux in all pairs), bulk and bulk-plain (long streams, with and
    without offloads), kv (a key-value store), kv-hot (the same, all requests for one key), pipeline
    (tuples through stages of programs), incast (what each of many connections gets in 100 ms),
    one-host and one-host-bulk (two programs of one host: redis, echo, one stream).

    By themselves, not with others: beside (short RPCs of Homa while one connection takes all that it
    can get; points veth, 1000), flood (echo of 64 B alone and beside 10,000 SYNs a second of nobody's;
    no points), and cores (clients of a key-value store come and go, and with them
    homad's threads; points scaled, one, all, kernel; --seconds for each number of clients, 10 in the
    paper).
    """
    if rows == "cores":
        from lab.bench import tas_cores

        ways = tas_cores.check(points, rounds, seconds)
        check_output(json_file, "--json")
        tas_cores.main(ways, rounds, seconds, json_file)
        return
    if rows == "beside":
        from lab.bench import tas_beside

        links = tas_beside.check(points, rounds, seconds)
        check_output(json_file, "--json")
        tas_beside.main(links, rounds, seconds, json_file)
        return
    if rows == "flood":
        from lab.bench import tas_flood
        from lab.errors import UsageError

        if points:
            raise UsageError("flood has no points")
        check_output(json_file, "--json")
        tas_flood.main(rounds, seconds, json_file)
        return
    from lab.bench import tas as run

    chosen = run.check(rows, points, rounds, seconds)
    check_output(json_file, "--json")
    run.main(*chosen, rounds, seconds, json_file)


@app.command()
def kernel(
    part: str = typer.Argument(
        "",
        metavar="icount|profile|rtt|rate|bulk|w4|streams|cores|tcp-instructions",
        help="What is measured.",
    ),
    kernel_name: str = typer.Option(
        "", "--kernel", help="Which Linux: 6.1, for streams 6.12.", show_default=False
    ),
    rounds: Optional[int] = typer.Option(
        None,
        help="Rounds; every configuration runs once in each. 5, for streams and w4 1, for tcp-instructions 3.",
        show_default=False,
    ),
    seconds: float = SECONDS,
    offloads: str = typer.Option(
        "", help="Offloads of the interfaces: default, gro, off or off-gro.", show_default=False
    ),
    cases: str = typer.Option(
        "", help="profile: which cases, e.g. tcp_1,homa_poll_16.", show_default=False
    ),
    top: int = typer.Option(30, help="profile, cores, tcp-instructions: how many functions."),
    cpus: str = typer.Option("", help="cores: with how many CPUs, e.g. 1,2,4,8."),
    count: int = typer.Option(0, help="cores: RPCs of each client; 0 is 300."),
    module: Optional[Path] = typer.Option(
        None, help="This homa.ko instead of a new build.", show_default=False
    ),
    no_module: bool = typer.Option(False, "--no-module", help="Only TCP and UDP."),
    json_file: Optional[Path] = JSON,
) -> None:
    """The kernel's module beside TCP in a small virtual machine.

    icount counts kernel instructions per RPC, profile says in which functions they are,
    cores what CPUs do to each other: locks, and cache lines that go from one to another.
    tcp-instructions is without the module: all instructions of the machine for an echo over
    the kernel's TCP, and over homad's.
    """
    from lab.vm.bench import cli

    turns = cli.rounds_of(part) if rounds is None else rounds
    wish = cli.Wish(
        part, kernel_name, turns, seconds, offloads, cases, top, module, no_module, cpus, count
    )
    cli.check(wish)
    check_output(json_file, "--json")
    document = cli.main(wish)
    if json_file:
        write_json(json_file, document)
