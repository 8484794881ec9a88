# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa kernel series DIR`."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.series import build, layout, mails, source, table
from lab.vm import kernels
from lab.vm.errors import BuildFailed


def options(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.set_defaults(work=run)
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the mails are put")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--tree",
        type=Path,
        metavar="DIR",
        help="the kernel's source that it is for (default: Debian's of Linux 6.1, fetched once)",
    )
    where.add_argument(
        "--no-tree", action="store_true", help="leave out what it changes in the kernel's files"
    )
    parser.add_argument("--author", metavar="NAME <ADDRESS>", help="default: the last commit's")
    parser.add_argument("--signoff", action="store_true", help="add the author's Signed-off-by")
    parser.add_argument(
        "--build",
        choices=kernels.NAMES,
        metavar="KERNEL",
        help="compile the tree after each patch, warnings are errors: " + ", ".join(kernels.NAMES),
    )
    parser.add_argument(
        "--check", action="store_true", help="count what checkpatch.pl --strict says of the mails"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="and show each line of it")


def run(args: argparse.Namespace) -> int:
    """Write the series; 1 if a state does not build."""
    rows = table.read()
    tree = None if args.no_tree else args.tree or source.debian()
    base = source.base(tree) if tree else {}
    author = args.author or mails.author_of()
    states = layout.states(rows.patches, base, author)
    made = mails.write(rows, states, base, args.folder, author, signed=args.signoff)
    for mail, patch in zip(made[1:], rows.patches, strict=True):
        print(f"{mail.name}: {len(patch.all_files())} files, {_added(mail)} lines")
    print(f"{args.folder / mails.FILES} says which file is in which patch")
    failed = _build(args.build, rows.patches, states) if args.build else 0
    if args.check:
        _check(tree or source.debian(), made[1:], args.verbose)
    return 1 if failed else 0


def _added(mail: Path) -> int:
    lines = mail.read_text().splitlines()
    return sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)


def _build(name: str, patches: tuple[table.Patch, ...], states: list[dict[str, str]]) -> int:
    kernel = kernels.prepare(name)
    failed = 0
    for number, tree in enumerate(states, 1):
        try:
            made = build.state(kernel, patches[:number], tree)
            print(f"after patch {number:2}: {made.name if made else 'objects'}", flush=True)
        except BuildFailed as error:
            failed += 1
            print(f"after patch {number:2}: does not build\n{error}", flush=True)
    return failed


def _check(tree: Path, made: list[Path], verbose: bool) -> None:
    counts, lines = build.checkpatch(tree, made)
    if verbose:
        print("\n".join(lines))
    print(f"checkpatch --strict: {counts.total()}")
    for kind, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        print(f"{count:5} {kind}")
