# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Trees that fields.py must refuse, and one that has a word of comment for each field in each
of the ways that count."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import fields
from selftest import must_refuse, plant
from source import Tree

EXPLAINED = """/*
 * struct nic_a - a thing
 * @up, @down: its ends.
 * Written by: the thread that opened it.
 */
struct nic_a {
	int up;
	int down;
	int left, right; /* its sides */
	/* Called when it ends. */
	void (*end)(int how, int why);
	unsigned char pad1[3];
	/* A number of @bits bits, and what holds it. */
	union {
		unsigned number : 3; /* the number */
		unsigned bits;
	};
	/* The number again */
	unsigned again : 3;
};
"""

SINS: dict[str, tuple[dict[str, str], Callable[[Tree], list[str]], str]] = {
    "field_without_a_word": (
        {"nic/a.h": "struct nic_a {\n\tint up; /* one end */\n\tint down;\n};\n"},
        fields.check_words,
        "nic/a.h:3: nic_a.down has no word of comment",
    ),
    "second_field_below_a_comment": (
        {"nic/a.c": "struct nic_a {\n\t/* Both ends. */\n\tint up;\n\tint down;\n};\n"},
        fields.check_words,
        "nic/a.c:4: nic_a.down",
    ),
    "field_of_a_union_inside": (
        {"nic/a.h": "struct nic_a {\n\t/* Ends. */\n\tunion {\n\t\tint up;\n\t} ends;\n};\n"},
        fields.check_words,
        "nic/a.h:4: a struct.up",
    ),
    "function_among_fields": (
        {"nic/a.h": "/* @up: an end. */\nstruct nic_a {\n\tint up;\n\tint (*go)(int up);\n};\n"},
        fields.check_words,
        "nic/a.h:4: nic_a.go",
    ),
    "struct_that_nobody_writes": (
        {"nic/a.h": "/* Ends. */\nstruct nic_a {\n\tint up; /* one end */\n};\n"},
        fields.check_owners,
        "nic/a.h:2: nothing says who writes struct nic_a",
    ),
    "list_of_exceptions_too_long": (
        {
            fields.RATCHET: '[unexplained]\n"nic/a.h" = 2\n',
            "nic/a.h": "struct nic_a {\n\tint up;\n};\n",
        },
        fields.check_words,
        "nic/a.h has 1 now",
    ),
    "exception_for_a_file_that_is_gone": (
        {fields.RATCHET: '[unowned]\n"nic/b.h" = 2\n'},
        fields.check_owners,
        "nic/b.h has 0 now",
    ),
}


def must_accept() -> list[str]:
    with tempfile.TemporaryDirectory(prefix="homa-selftest-") as scratch:
        tree = plant(Path(scratch), {"nic/a.h": EXPLAINED})
        return fields.check_words(tree) + fields.check_owners(tree)


def checks() -> dict[str, Callable[[], list[str]]]:
    found: dict[str, Callable[[], list[str]]] = {"selftest__accepts_explained_fields": must_accept}
    for name, (extra, check, part) in SINS.items():
        found[f"selftest__refuses_{name}"] = partial(must_refuse, extra, check, part)
    return found
