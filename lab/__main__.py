# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The command line of the laboratory: arguments in, one function called, a status out.

Errors are one line on standard error: what is wrong and how to mend it; status 2 if the
command line is wrong, 1 for everything else, 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Optional

import click
import typer

from lab.bench.cli import app as bench
from lab.cluster import cli as cluster
from lab.console import console
from lab.errors import LabError, UsageError, ending
from lab.inventory.cli import check
from lab.output import JSON_HELP, check_output, write_json
from lab.sim.cli import sim
from lab.tune.cli import tune

app = typer.Typer(add_completion=False, no_args_is_help=False, rich_markup_mode=None)
app.add_typer(bench, name="bench")
cluster.add_to(app)
app.command()(tune)
app.command("check")(check)
_LAB_ONLY = (
    "up",
    "down",
    "status",
    "run",
    "tune",
    "check",
    "clean",
)  # ./homa knows them as ./homa lab NAME


@app.callback()
def main_options() -> None:
    """Experiments with Homa and kernel TCP on one machine, and simulations."""


@app.command()
def demo(
    hosts: int = typer.Option(3, help="Hosts around the switch, all of them client and server."),
    seconds: float = typer.Option(
        10.0, help="Length of each measurement; there are two per transport."
    ),
    workload: str = typer.Option("w4", help="w1 to w5, fixed:BYTES, or a CSV file of sizes."),
    load: float = typer.Option(0.8, help="Share of each host's link that the arrivals take."),
    link: str = typer.Option(
        "",
        help="Rate of every link. [default: 200mbit; 100mbit with --via kernel]",
        show_default=False,
    ),
    seed: int = typer.Option(1, help="Seed of the arrivals; all transports get the same."),
    transports: str = typer.Option(
        "homa,tcp-pool,tcp",
        help="What to compare, separated by commas: homa, tcp-pool (a connection for every"
        " RPC), tcp (one stream per pair of hosts).",
    ),
    homa_config: str = typer.Option(
        "", help="Protocol settings, name=value,... (docs/protocol.md).", show_default=False
    ),
    via: str = typer.Option(
        "program",
        help="Who runs Homa: program (the benchmark itself), service (a homad per host) or kernel"
        " (the module, in a virtual machine).",
    ),
    json_file: Optional[Path] = typer.Option(None, "--json", help=JSON_HELP, show_default=False),
    plot: Optional[Path] = typer.Option(
        None, help="Where the figure goes (.png, .pdf or .svg).", show_default=False
    ),
) -> None:
    """Homa and TCP under the same load through a switch with priorities: tail latency by size."""
    from lab.demo import run
    from lab.demo.settings import check
    from lab.net import rootless

    settings = check(hosts, seconds, workload, load, link, seed, transports, plot, homa_config, via)
    check_output(plot, "--plot")
    check_output(json_file, "--json")
    if via != "kernel":
        rootless.enter_namespace()
    run.main(settings, json_file, plot)


@app.command()
def targets(
    names: Optional[list[str]] = typer.Argument(None, metavar="[NAME]..."),
    json_file: Optional[Path] = typer.Option(None, "--json", help=JSON_HELP, show_default=False),
    list_only: bool = typer.Option(False, "--list", help="Only say what there is."),
    save: bool = typer.Option(
        False, "--save", help="Keep what was measured in docs/results, with commit and machine."
    ),
    compare: bool = typer.Option(
        False, "--compare", help="Show what moved since the scoreboards in docs/results."
    ),
) -> None:
    """The scoreboard: every goal of the project against what this machine measures."""
    from lab import machine
    from lab.targets import saved, scoreboard
    from lab.targets import goals as run

    check_output(json_file, "--json")
    chosen = run.choose(run.load_targets(), names or [])
    # Before hours of measuring: a damaged file, and the commit that is measured.
    before = saved.load() if compare else {}
    commit = saved.commit() if save else ""
    out = console()
    if list_only:
        out.print(scoreboard.list_table(chosen))
        return
    here = machine.describe()
    outcomes = run.measure(chosen)
    out.print(here.one_line(), markup=False)
    if here.warning():
        out.print(here.warning(), markup=False)
    out.print(scoreboard.outcome_table(outcomes))
    for outcome in outcomes:
        if outcome.problem:
            out.print(f"{outcome.target.name}: {outcome.problem}", markup=False)
    if compare:
        found = saved.moves(outcomes, before)
        out.print(scoreboard.move_table(found))
        for line in saved.elsewhere(found, here):
            out.print(line, markup=False)
    if json_file:
        write_json(json_file, run.as_json(here, outcomes))
    if save:
        out.print(f"saved: {saved.save(here, outcomes, commit)}", markup=False)
    if any(outcome.problem for outcome in outcomes):
        raise LabError("some targets could not be measured; the reasons are above")


@app.command()
def reproduce(
    names: Optional[list[str]] = typer.Argument(
        None,
        metavar="[NAME]...",
        help="Which tables and figures; --list names them.  [default: all]",
        show_default=False,
    ),
    quick: bool = typer.Option(False, "--quick", help="Short runs (this is the default)."),
    night: bool = typer.Option(False, "--night", help="Full runs: hours on two cores."),
    page: bool = typer.Option(
        False,
        "--page",
        help="Make nothing: write the pages of what the repository keeps (docs/results), short "
        "runs and full ones, for a browser.",
    ),
    list_only: bool = typer.Option(False, "--list", help="Only say what there is."),
    seeds: Optional[int] = typer.Option(
        None,
        min=1,
        max=1000,
        help="Runs per point.  [default: 5, quick: 3; of real packets fewer]",
        show_default=False,
    ),
    jobs: Optional[int] = typer.Option(
        None, min=1, max=1024, help="Runs at once.  [default: cores]", show_default=False
    ),
    out: Optional[Path] = typer.Option(
        None,
        help="Folder for the page and all results.  [default: build/reproduce/quick or night]",
        show_default=False,
    ),
    lab: bool = typer.Option(
        False,
        "--lab",
        help="Items of real packets, too, after the simulated ones; they need root and a machine "
        "that does nothing else. --night as root has them anyway.",
    ),
    keep: bool = typer.Option(
        False,
        "--keep-simulator",
        help="Go on with the simulator that the folder was begun with; the first time this "
        "build's is put there. So that full runs can be made in several sittings.",
    ),
    finished: bool = typer.Option(
        False,
        "--finished",
        help="Make no run: fig12 and fig13 of the runs that are finished, as far as they go.",
    ),
    save: bool = typer.Option(
        False,
        "--save",
        help="Keep the results of these NAMEs (all, without) in docs/results/reproduce-quick or "
        "-night, too, beside what is there of others.",
    ),
) -> None:
    """The papers' tables and figures, made again, on one page beside the published numbers.

    All that can be made, or NAMEs. The same command goes on where it was interrupted.
    """
    from lab.reproduce import command

    command.main(
        command.Wanted(
            tuple(names or ()), quick, night, page, list_only, seeds or 0, jobs or 0, out, lab, keep,
            finished, save,
        ),
        say,
    )  # fmt: skip


@app.command()
def clean() -> None:
    """Remove namespaces that killed commands left behind (none should); labs that are up stay."""
    from lab.cluster import laboratories
    from lab.net import guardian

    removed = [name for prefix in guardian.leftovers() for name in guardian.remove(prefix)]
    removed += laboratories.heal() if os.geteuid() == 0 else []
    console().print(f"removed {len(removed)} of them" if removed else "nothing was left behind")


def say(line: str) -> None:
    """One line of error text."""
    print(f"homa: {' '.join(line.split())}", file=sys.stderr)


def _help_of(error: click.UsageError) -> str:
    """How to get the help that explains `error`: "./homa sim run --help"."""
    names = []
    ctx = error.ctx
    while ctx and ctx.parent:
        names.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    if names and names[0] in _LAB_ONLY:
        names.insert(0, "lab")
    return f"./homa {' '.join(names)} --help" if names else "./homa help"


def _end(*_: object) -> None:
    """An ordinary kill takes the same way out as Ctrl-C, also where Ctrl-C is ignored: shells start
    so what a script puts into the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    os.kill(os.getpid(), signal.SIGINT)


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv`; the exit status."""
    signal.signal(signal.SIGTERM, _end)
    command = typer.main.get_command(app)
    command.add_command(sim)  # type: ignore[attr-defined]
    words = sys.argv[1:] if argv is None else argv
    program = "./homa lab" if words and words[0] in _LAB_ONLY else "./homa"
    try:
        status = command.main(args=argv, prog_name=program, standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.UsageError as error:
        say(f"{error.format_message().rstrip('.')}; {_help_of(error)} lists what can be given")
        return UsageError.exit_code
    except LabError as error:
        say(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        say("interrupted; everything was removed")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(ending(main))
