# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The command line of `./homa sim`: arguments in, one function called."""

from __future__ import annotations

from pathlib import Path

import click

from lab.console import console
from lab.errors import UsageError
from lab.output import check_output
from lab.paths import BUILD
from lab.sim.flags import FLAGS, GROUPS, Flag

_HEADINGS = {
    "protocol": "Protocol",
    "traffic": "Traffic",
    "network": "Network",
    "software": "Software of hosts",
    "time": "Simulated time",
    "": "Output",
}
_METAVARS = {
    "int": "N",
    "number": "X",
    "fraction": "X",
    "rate": "RATE",
    "time": "TIME",
    "bytes": "BYTES",
    "fail": "A-B:FROM:UNTIL",
    "incast": "N:BYTES:PERIOD",
    "setting": "NAME=VALUE",
    "name": "NAME",
    "workload": "W",
    "file": "FILE",
    "topology": "KIND|FILE.toml",
}


class SectionedCommand(click.Command):
    """A command whose help has its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section per group of flags."""
        sections: dict[str, list[tuple[str, str]]] = {group: [] for group in (*GROUPS, "")}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            flag = FLAGS.get((param.name or "").replace("_", "-"))
            if record:
                sections[flag.group if flag else ""].append(record)
        for group, records in sections.items():
            with formatter.section(_HEADINGS[group]):
                formatter.write_dl(records)


def _option(flag: Flag) -> click.Option:
    if flag.kind == "flag":
        return click.Option([f"--{flag.name}"], is_flag=True, default=None, help=flag.text)
    text = flag.text + (f"  [default: {flag.default}]" if flag.default else "")
    metavar = "|".join(flag.choices) if flag.kind == "choice" else _METAVARS[flag.kind]
    if flag.many:
        text += "; may be repeated"
    return click.Option([f"--{flag.name}"], metavar=metavar, multiple=flag.many, help=text)


def _path(name: str, text: str, folder: bool = False) -> click.Option:
    kind = click.Path(path_type=Path, file_okay=not folder)
    return click.Option([f"--{name}"], type=kind, help=text, metavar="DIR" if folder else "FILE")


@click.group(name="sim", context_settings={"help_option_names": ["--help", "-h"]})
def sim() -> None:
    """Simulate Homa and other protocols in networks of any size.

    run: one simulation, a table of what came out.  figure: a figure of the papers, with the
    published numbers beside ours.  sweep: a grid of runs from a file.  docs/simulator.md explains all.
    """


def _run(**given: object) -> None:
    from lab.sim import single

    outputs = {
        name: given.pop(name)
        for name in ("json", "trace", "pcap", "record", "trace_from", "trace_until")
    }
    if given.pop("list"):
        single.show_list()
        return
    for name in ("json", "trace", "pcap", "record"):
        check_output(outputs[name], f"--{name}")  # type: ignore[arg-type]
    flags: dict[str, object] = {}
    for name, value in given.items():
        if value is not None and value != ():
            flags[name.replace("_", "-")] = list(value) if isinstance(value, tuple) else value
    single.main(flags, outputs)


sim.add_command(
    SectionedCommand(
        "run",
        callback=_run,
        params=[
            *(_option(flag) for flag in FLAGS.values()),
            _path("json", "write everything that was measured to this file"),
            _path("trace", "write a trace for ui.perfetto.dev (docs/simulator-traces.md)"),
            _path("pcap", "write a capture for Wireshark"),
            _path("record", "write the arrivals, as --arrivals reads them"),
            click.Option(
                ["--trace-from"], metavar="TIME", help="trace from this simulated time on"
            ),
            click.Option(["--trace-until"], metavar="TIME", help="trace until this simulated time"),
            click.Option(
                ["--list"], is_flag=True, help="protocols, presets, settings; run nothing"
            ),
        ],
        short_help="one simulation, a table of what came out",
        help="One simulation. Without options: Homa in the SIGCOMM'18 study's network of 144 hosts, "
        "workload W4 at 80 % load, 20 ms after the network has as much under way as that means. Rates, times and sizes are written with their units: "
        "10gbit, 250ns, 1.5ms, 64kb.",
    )
)


@sim.command(short_help="a figure of the papers beside the published numbers")
@click.argument("name", required=False, metavar="[NAME|all]")
@click.option("--list", "list_only", is_flag=True, help="Say which figures there are.")
@click.option("--quick", is_flag=True, help="Short runs, about a minute on two cores; same code.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for figures, tables and finished runs.  [default: build/figures]",
)
@click.option(
    "--seeds", type=click.IntRange(1, 1000), help="Runs per point.  [default: 5, quick: 3]"
)
@click.option(
    "--headers",
    type=click.Choice(["sigcomm18", "true"]),
    default="sigcomm18",
    help="Header sizes, for the SIGCOMM figures.",
)
@click.option("--protocols", default="", metavar="A,B", help="Only these protocols, or 'all'.")
@click.option(
    "--scale", type=click.FloatRange(0.001, 1000), default=1.0, help="Multiplies simulated times."
)
@click.option("--jobs", type=click.IntRange(1, 1024), help="Runs at once.  [default: cores]")
@click.option(
    "--scheduler", metavar="tcp://HOST:PORT", help="Run on the workers of a Dask scheduler."
)
def figure(
    name: str | None,
    list_only: bool,
    quick: bool,
    out: Path | None,
    seeds: int | None,
    headers: str,
    protocols: str,
    scale: float,
    jobs: int | None,
    scheduler: str | None,
) -> None:
    """Run what a figure needs, draw it, compare it with the published numbers.

    Finished runs are kept in DIR/runs and used again: an interrupted figure goes on where it was.
    """
    from lab.sim import batch

    if list_only:
        console().print(batch.list_table())
        return
    if not name:
        raise UsageError("which figure? ./homa sim figure --list shows them")
    options = batch.options(quick, seeds or 0, headers, scale, protocols)
    batch.figures(name, options, out or BUILD / "figures", jobs or 0, scheduler)


@sim.command(short_help="a grid of runs from a TOML file")
@click.argument("spec", type=click.Path(path_type=Path), metavar="SPEC.toml")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the results.  [default: NAME.sweep beside the file]",
)
@click.option("--jobs", type=click.IntRange(1, 1024), help="Runs at once.  [default: cores]")
@click.option(
    "--scheduler", metavar="tcp://HOST:PORT", help="Run on the workers of a Dask scheduler."
)
def sweep(spec: Path, out: Path | None, jobs: int | None, scheduler: str | None) -> None:
    """Every combination of some flags, several seeds each; docs/simulator.md has the format.

    Every finished run is a file. Give the same command again to go on after an interruption.
    """
    from lab.sim import batch

    batch.sweep(spec, out, jobs or 0, scheduler)


@sim.command(short_help="one number for ./homa targets")
@click.argument("name")
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file instead of standard output.",
)
@click.option("--full", is_flag=True, help="Full-length runs instead of quick ones.")
@click.option("--seeds", type=click.IntRange(1, 1000), help="Seeds of each run.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder that keeps the runs.  [default: build/figures]",
)
@click.option(
    "--scale",
    type=click.FloatRange(0.001, 1000),
    default=1.0,
    help="Length of the runs, as a factor.  [default: 1]",
)
def check(
    name: str, json_file: Path | None, full: bool, seeds: int | None, out: Path | None, scale: float
) -> None:
    """Measure what a row of bench/targets.toml asks for and say it as JSON.

    NAME is speed (time of a simulated second), scale (the same, and memory, in three sizes of
    network) or a figure: ./homa sim figure --list names these.
    """
    from lab.sim import batch

    check_output(json_file, "--json")
    options = batch.options(not full, seeds or 0, "sigcomm18", scale, "")
    batch.check(name, options, out or BUILD / "figures", json_file)
