# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The command lines of `./homa ss`, `./homa top` and `./homa trace`.

Errors are one line on standard error; status 2 if the command line is wrong, 1 for everything
else, 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import click
import typer

from lab.console import console
from lab.errors import LabError, UsageError
from tools.connection import Absent, Connection, default_path
from tools.kernel import KernelSource, loaded

app = typer.Typer(add_completion=False, no_args_is_help=False, rich_markup_mode=None)
PROGRAM = os.environ.get("HOMA_PROGRAM") or "./homa"

MONITOR = typer.Option(
    "", help="homad's monitoring socket; otherwise $HOMA_MONITOR or /run/homa/monitor.sock."
)
KERNEL = typer.Option(
    False, "--kernel", help="The kernel's module, which is also asked where no homad runs."
)
PEER = typer.Option("", help="Only with this IP address.", show_default=False)
PORT = typer.Option(0, help="Only with this port on either side.", show_default=False)


@app.callback()
def main_options() -> None:
    """A running homad or the kernel's module, looked at from outside."""


def source(kernel: bool, monitor: str) -> Connection | KernelSource:
    """Who is asked; a context."""
    if kernel and monitor:
        raise UsageError("--kernel and --monitor: give one of them")
    if kernel:
        return KernelSource()
    try:
        return Connection(monitor or default_path())
    except Absent:
        if monitor or not loaded():
            raise
    return KernelSource()


@app.command()
def ss(
    tcp: bool = typer.Option(False, "--tcp", "-t", help="TCP connections and listeners."),
    listening: bool = typer.Option(False, "--listening", "-l", help="Only listeners of TCP."),
    details: bool = typer.Option(False, "--details", "-d", help="All that is known of them."),
    rpcs: bool = typer.Option(False, "--rpcs", "-r", help="Open RPCs and how far they have come."),
    peers: bool = typer.Option(False, "--peers", "-p", help="Hosts that homad remembers."),
    ports: bool = typer.Option(False, "--interfaces", "-i", help="Interfaces and their counters."),
    everything: bool = typer.Option(False, "--all", "-a", help="All of these and the sockets."),
    application: str = typer.Option("", "--app", help="Only this application: name or number."),
    peer: str = PEER,
    port: int = PORT,
    user: str = typer.Option("", help="Only of this user: name or number.", show_default=False),
    state: str = typer.Option(
        "", help="Only RPCs or TCP connections in this state.", show_default=False
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
    monitor: str = MONITOR,
    kernel: bool = KERNEL,
) -> None:
    """Sockets of homad's applications, TCP included, or of the kernel; the rest if asked."""
    from tools import ss as run
    from tools.filters import PHASES, STATES, check

    wanted = check(application, peer, port, state, user, listening)
    tcp = tcp or listening or details or state in STATES
    chosen = [
        name
        for name, on in zip(
            run.SECTIONS[1:], (tcp, rpcs or state in PHASES, peers, ports), strict=True
        )
        if on
    ]
    sections = run.SECTIONS if everything else chosen or run.SECTIONS[:2]
    with source(kernel, monitor) as connection:
        found = run.look(connection, sections, wanted)
    if as_json:
        print(run.show_json(found))
    else:
        out = console()
        if out.is_terminal:
            out.width = max(80, out.size.width)
        else:
            out.width = 160
        run.show(found, out, details)


@app.command()
def top(
    interval: float = typer.Option(1.0, help="Seconds from picture to picture."),
    once: bool = typer.Option(False, "--once", help="One picture as text, then end."),
    as_json: bool = typer.Option(False, "--json", help="A line of JSON each time; or with --once."),
    monitor: str = MONITOR,
    kernel: bool = KERNEL,
) -> None:
    """Live: RPC rates, latency percentiles, grants, queues, threads and their cores."""
    from tools import top as run

    run.check(interval)
    with source(kernel, monitor) as connection:
        if once:
            print(run.once(connection, interval, as_json, 200))
        elif as_json:
            for line in run.stream(connection, interval):
                print(line, flush=True)
        elif not sys.stdout.isatty():
            raise UsageError("top needs a terminal; give --once or --json for a file or a pipe")
        else:
            with suppress(KeyboardInterrupt):
                run.live(connection, interval)


@app.command()
def trace(
    pcap: str = typer.Option(
        "", help="Packets as pcapng, for Wireshark and tshark; - is standard output.",
        show_default=False,
    ),
    perfetto: str = typer.Option(
        "", help="RPC timelines as JSON, for ui.perfetto.dev and chrome://tracing.",
        show_default=False,
    ),
    duration: float = typer.Option(
        0.0, help="Seconds; until Ctrl-C otherwise.", show_default=False
    ),
    snap: int = typer.Option(
        0, help="Bytes of each packet, from the Homa or TCP header on; 128 otherwise.", show_default=False
    ),
    application: str = typer.Option("", "--app", help="Only this application: name or number."),
    peer: str = PEER,
    port: int = PORT,
    monitor: str = MONITOR,
    kernel: bool = KERNEL,
) -> None:  # fmt: skip
    """What homad or the kernel's module does, packet by packet; without a file as lines of text."""
    from tools import trace as run
    from tools.filters import check

    settings = run.Settings(
        monitor or default_path(), pcap, perfetto, duration, snap, check(application, peer, port)
    )
    run.check(settings)
    with source(kernel, monitor) as asked:
        of_kernel = isinstance(asked, KernelSource)
    if of_kernel:
        from tools import kernel_trace

        said = kernel_trace.run(duration, pcap, perfetto, settings.wanted)
    else:
        said = run.run(settings)
    print(f"homa: {said}", file=sys.stderr)


def _named(tool: str) -> str:
    """How `tool` is called here: "./homa ss" in the tree, "homa-ss" where it is installed."""
    return f"{PROGRAM} {tool}" if PROGRAM == "./homa" else f"{PROGRAM}-{tool}"


def say(line: str) -> None:
    """One line of error text."""
    print(f"homa: {' '.join(line.split())}", file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv`; the exit status."""
    command = typer.main.get_command(app)
    try:
        status = command.main(args=argv, prog_name=PROGRAM, standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.UsageError as error:
        name = error.ctx.info_name if error.ctx and error.ctx.parent else ""
        where = f"{_named(name)} --help" if name else f"{PROGRAM} help"
        say(f"{error.format_message().rstrip('.')}; {where} lists what can be given")
        return UsageError.exit_code
    except LabError as error:
        say(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("interrupted")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
