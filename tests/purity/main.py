# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Purity is proved, not promised: everything that docs/architecture.md says of
the source tree and that a program can check. Prints TAP; the self-test, which
shows each check a tree it must refuse, is part of every run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

sys.dont_write_bytecode = True

import alone  # noqa: E402
import audit  # noqa: E402
import calls  # noqa: E402
import comments  # noqa: E402
import commits  # noqa: E402
import dead  # noqa: E402
import fields  # noqa: E402
import formats  # noqa: E402
import graph  # noqa: E402
import kernel  # noqa: E402
import link  # noqa: E402
import names  # noqa: E402
import pages  # noqa: E402
import rooms  # noqa: E402
import selftest  # noqa: E402
import selftest_commits  # noqa: E402
import selftest_fields  # noqa: E402
import style  # noqa: E402
import text  # noqa: E402
import unused  # noqa: E402
from source import Skip, Tree  # noqa: E402

Check = Callable[[Tree], list[str]]
# Checks at a time, each in a process of its own.
PARALLEL = 2
_todo: list[Callable[[], list[str]]] = []


def checks() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for seam in link.SEAMS:
        for bits in (64, 32):
            found[f"link__{seam}_{bits}"] = partial(link.check_link, seam=seam, bits=bits)
    for seam in ("st", "mt"):
        found[f"sparse__{seam}"] = partial(link.check_sparse, seam=seam)
    found["build__lists_every_file"] = link.check_listed
    found["engine__no_kernel_condition"] = text.check_no_kernel_condition
    found["engine__no_floating_point"] = text.check_no_float
    found["engine__includes_only_itself"] = text.check_engine_includes
    found["size__files"] = text.check_file_length
    found["size__functions"] = text.check_function_length
    found["graph__no_circles"] = graph.check_circles
    found["graph__no_arrow_upward"] = graph.check_arrows
    found["graph__engine_layers"] = graph.check_engine_layers
    found["graph__circles_of_calls"] = calls.check_calls
    found["names__are_all_used"] = dead.check_dead
    found["names__of_data_are_all_used"] = dead.check_constants
    found["names__of_files_are_all_used"] = unused.check_files
    found["names__public_headers_stand_alone"] = alone.check_headers
    found["names__headers_are_unique"] = names.check_headers
    found["names__no_system_header_is_hidden"] = names.check_system_headers
    found["names__tags_are_unique"] = names.check_tags
    found["names__of_the_kernel_module"] = names.check_kernel_prefix
    found["names__pages_name_what_is_there"] = pages.check_pages
    found["names__table_of_folders"] = pages.check_folders
    found["names__tables_are_complete"] = pages.check_tables
    found["comments__name_what_is_there"] = comments.check_names
    found["comments__members_are_near"] = comments.check_members
    found["comments__head_what_follows"] = comments.check_heads
    found["comments__explain_each_field"] = fields.check_words
    found["comments__say_who_writes"] = fields.check_owners
    found["commits__messages"] = commits.check_messages
    found["rooms__slow_calls_no_engine"] = rooms.check_slow
    found["rooms__fast_never_blocks"] = rooms.check_fast
    found["style__license"] = style.check_license
    found["style__white_space"] = style.check_whitespace
    found["style__c_layout"] = style.check_c_layout
    found["style__pages_fit_a_window"] = style.check_pages_width
    found["style__no_machine_paths"] = style.check_no_machine_paths
    found["format__c"] = formats.check_c
    found["format__python"] = formats.check_python
    found["format__rules_for_python"] = formats.check_rules
    found["tests__every_assertion_can_fail"] = audit.check_assertions
    found["tests__every_test_asserts"] = audit.check_tests_assert
    found["tests__every_file_is_run"] = audit.check_tests_listed
    found["kernel__headers_compile"] = kernel.check_kernel
    found["kernel__module_compiles"] = kernel.check_module
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Check the purity of the source tree.")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("names", nargs="*", help="only checks whose name contains one of these")
    args = parser.parse_args()

    tree = Tree(args.root)
    todo = {name: partial(check, tree) for name, check in checks().items()}
    todo |= selftest.checks() | selftest_commits.checks() | selftest_fields.checks()
    if args.names:
        todo = {k: v for k, v in todo.items() if any(n in k for n in args.names)}
    print(f"1..{len(todo)}")
    # The children that fork() makes know what is to do; only a number goes to them.
    _todo.extend(todo.values())
    failed = 0
    with ProcessPoolExecutor(PARALLEL, get_context("fork")) as pool:
        outcomes = pool.map(_check, range(len(todo)))
        for number, (name, outcome) in enumerate(zip(todo, outcomes, strict=True), 1):
            if isinstance(outcome, str):
                print(f"ok {number} - {name} # SKIP {outcome}", flush=True)
                continue
            failed += bool(outcome)
            print(f"{'not ok' if outcome else 'ok'} {number} - {name}", flush=True)
            for line in "\n".join(outcome).splitlines():
                print(f"# {line}", flush=True)
    return 1 if failed or not todo else 0


def _check(number: int) -> list[str] | str:
    """Problems that a check finds, or why it cannot be made here."""
    try:
        return _todo[number]()
    except Skip as reason:
        return str(reason)


if __name__ == "__main__":
    sys.exit(main())
