# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""A check that cannot fail checks nothing. Each case below is a small tree with
one sin; the check must name it. And a clean tree must pass every check."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import alone
import audit
import calls
import comments
import dead
import formats
import graph
import kernel
import link
import names
import pages
import rooms
import style
import text
import unused
from source import Skip, Tree

PLAT = """#ifndef HOMA_PLAT_H
#define HOMA_PLAT_H
#include <stdint.h>
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#ifdef __CHECKER__
typedef u32 __attribute__((bitwise)) homa_be32;
#else
typedef u32 homa_be32;
#endif
void homa_plat_lock_slow(void *lock);
void *memcpy(void *dst, const void *src, __SIZE_TYPE__ n);
#endif
"""
HEADER = '#include "homa_plat.h"\nu64 homa_good(u64 a, u32 b);\n'
GOOD = """#include "homa_good.h"
/* a comment may say float, 1.5 and __KERNEL__ */
u64 homa_good(u64 a, u32 b)
{
	homa_plat_lock_slow(&b);
	return a + b;
}
"""
MESON = "engine_sources = files(\n  'base/homa_good.c',\n)\n"

CLEAN = {
    "engine/plat/user/homa_plat.h": PLAT,
    "engine/base/homa_good.h": HEADER,
    "engine/base/homa_good.c": GOOD,
    "nic/nic.h": '#include "homa_good.h"\n',
    # No circle: the name is a struct's and a static function's, too, and X.h is X.c's.
    "nic/up.c": "void nic_up(struct nic_down *x)\n{\n\tnic_down(x->nic_up);\n}\n",
    "nic/down.h": "void nic_up(struct nic_down *x);\n"
    "static inline void nic_low(void)\n{\n\tnic_down(0);\n}\n",
    "nic/down.c": '#include "down.h"\n'
    "static void nic_up(int a)\n{\n\tnic_low();\n}\n\n"
    "void nic_down(int a)\n{\n\tnic_up(a);\n}\n",
    "host/embedded/host.h": '#include "nic.h"\n#include <homa/libhoma.h>\n',
    "include/homa/libhoma.h": "int homa_open(void);\n",
}


CLEAN = {name: f"/* {style.LICENSE} */\n{content}" for name, content in CLEAN.items()}
CLEAN["engine/meson.build"] = MESON
CLEAN["nic/meson.build"] = "files('up.c', 'down.c')\n"
CLEAN["host/meson.build"] = "files('embedded/host.c')\n"
CLEAN["host/embedded/host.c"] = (
    f'/* {style.LICENSE} */\n#include "host.h"\n'
    "static u64 use(void)\n{\n\treturn homa_good(1, use());\n}\n"
)


def body(lines: str) -> str:
    """A source whose only function contains the given lines."""
    return f'#include "homa_good.h"\nu64 homa_good(u64 a, u32 b)\n{{\n{lines}\n}}\n'


LONG_FUNCTION = body("\n".join("\ta += b;" for _ in range(90)) + "\n\treturn a;")
LONG_FILE = GOOD + "\n" * text.MAX_FILE_LINES
NAKED = "u32 naked(void);\nu32 naked(void)\n{\n\treturn 1;\n}\n"
RING = "void nic_{0}(void);\nvoid nic_{0}(void)\n{{\n\tnic_{1}();\n}}\n"
KERNEL_PLAT = PLAT.replace("<stdint.h>", "<linux/types.h>").replace("uint", "u_int")

# Folders that are listed as formatted, and those of CLEAN that are.
LISTED = {
    ".clang-format": "BasedOnStyle: LLVM\n",
    formats.RATCHET: 'c = ["nic"]\npython = ["lab"]\n',
}

# name: (what the tree has besides or instead of CLEAN, check, part of the complaint)
SINS: dict[str, tuple[dict[str, str], Callable[[Tree], list[str]], str]] = {
    "undefined_symbol": (
        {
            "engine/base/homa_good.c": "int printf(const char *f, ...);\n"
            + body('\tprintf("x%d", (int)b);\n\treturn a;')
        },
        partial(link.check_link, seam="st", bits=64),
        "printf",
    ),
    "undefined_symbol_mt": (
        {
            "engine/base/homa_good.c": "#ifdef HOMA_MT\nint pthread_yield(void);\n#else\n"
            "static inline int pthread_yield(void)\n{\n\treturn 0;\n}\n#endif\n"
            + body("\treturn a + b + (u64)pthread_yield();")
        },
        partial(link.check_link, seam="mt", bits=64),
        "pthread_yield",
    ),
    "division_on_32_bits": (
        {"engine/base/homa_good.c": body("\treturn a / b;")},
        partial(link.check_link, seam="st", bits=32),
        "__udivdi3",
    ),
    "symbol_without_prefix": (
        {"engine/base/homa_good.c": GOOD + NAKED},
        partial(link.check_link, seam="st", bits=64),
        "naked",
    ),
    "big_stack_frame": (
        {
            "engine/base/homa_good.c": body(
                "\tvolatile char frame[2000];\n\n\tframe[b] = 1;\n\treturn a + (u64)frame[b];"
            )
        },
        partial(link.check_link, seam="st", bits=64),
        "frame size",
    ),
    "floating_registers": (
        {"engine/base/homa_good.c": body("\treturn (u64)((double)a * b);")},
        partial(link.check_link, seam="st", bits=64),
        "error",
    ),
    "missing_prototype": (
        {"engine/base/homa_good.c": GOOD + "u32 homa_new(void)\n{\n\treturn 1;\n}\n"},
        partial(link.check_link, seam="st", bits=64),
        "homa_new",
    ),
    "endian_mixed": (
        {"engine/base/homa_good.c": body("\thoma_be32 x = b;\n\n\treturn a + x;")},
        partial(link.check_sparse, seam="st"),
        "incorrect type",
    ),
    "file_not_listed": (
        {"engine/base/homa_other.c": GOOD},
        link.check_listed,
        "homa_other.c",
    ),
    "kernel_condition": (
        {"engine/base/homa_good.c": "#if defined(__KERNEL__)\n#endif\n" + GOOD},
        text.check_no_kernel_condition,
        "homa_good.c:1",
    ),
    "float": (
        {"engine/base/homa_good.h": HEADER + "double homa_share(u32 a);\n"},
        text.check_no_float,
        "homa_good.h:3",
    ),
    "float_constant": (
        {"engine/base/homa_good.c": body("\treturn (u64)(b * 1.5);")},
        text.check_no_float,
        "1.5",
    ),
    "system_header": (
        {"engine/base/homa_good.h": "#include <stdio.h>\n" + HEADER},
        text.check_engine_includes,
        "stdio.h",
    ),
    "include_leaves_engine": (
        {"engine/base/homa_good.h": '#include "../../nic/nic.h"\n' + HEADER},
        text.check_engine_includes,
        "nic.h",
    ),
    "include_from_above": (
        {"engine/base/homa_good.h": '#include "nic.h"\n' + HEADER},
        text.check_engine_includes,
        "nic.h",
    ),
    "long_file": ({"bench/long.c": LONG_FILE}, text.check_file_length, "long.c"),
    "long_function": (
        {"lib/long.c": LONG_FUNCTION},
        text.check_function_length,
        "homa_good() has",
    ),
    "hidden_function": (
        {"lib/hidden.c": "int homa_hidden(void) {\n\treturn 1;\n}\n"},
        text.check_function_length,
        "hidden.c:1",
    ),
    "public_header_needs_another": (
        {"abi/rings.h": "int homa_ring(bool rung);\n"},
        alone.check_headers,
        "abi/rings.h does not compile alone",
    ),
    "circle": (
        {"nic/a.h": '#include "b.h"\n', "nic/b.h": '#include "a.h"\n'},
        graph.check_circles,
        "nic/a.h -> nic/b.h -> nic/a.h",
    ),
    "arrow_from_engine": (
        {"engine/base/homa_good.h": '#include "nic.h"\n' + HEADER},
        graph.check_arrows,
        "engine/ may not include nic/nic.h",
    ),
    "arrow_from_nic": (
        {"nic/up.c": '#include "host.h"\n'},
        graph.check_arrows,
        "nic/ may not include host",
    ),
    "arrow_from_host": (
        {"lib/lib.h": "\n", "host/embedded/up.c": '#include "lib.h"\n'},
        graph.check_arrows,
        "host/ may not include lib",
    ),
    "arrow_from_example": (
        {"examples/e.c": '#include "nic.h"\n'},
        graph.check_arrows,
        "examples/ may not include nic",
    ),
    "link_that_knows_a_protocol": (
        {"engine/link/l.h": '#include "p.h"\n', "engine/homa/p.h": "\n"},
        graph.check_engine_layers,
        "engine/link/l.h:1: link/ may not include engine/homa/p.h",
    ),
    "engine_folder_unknown": (
        {"engine/more/m.h": "\n"},
        graph.check_engine_layers,
        "does not know engine/more/",
    ),
    "circle_of_calls": (
        {"nic/a.c": RING.format("a", "b"), "nic/b.c": RING.format("b", "a")},
        calls.check_calls,
        "nic: 2 files in the largest circle of calls and 2 in all",
    ),
    "circle_by_a_table": (
        {
            "nic/a.c": RING.format("a", "b"),
            "nic/b.c": "static const struct ops b_ops = {\n\t.go = nic_a,\n};\n"
            "void nic_b(void)\n{\n\tuse(&b_ops);\n}\n",
        },
        calls.check_calls,
        "nic/b.c -> a.c: nic_a",
    ),
    "circle_by_a_header": (
        {
            "nic/a.c": RING.format("a", "c"),
            "nic/b.h": "static inline void nic_b(void)\n{\n\tnic_a();\n}\n",
            "nic/c.c": RING.format("c", "b"),
        },
        calls.check_calls,
        "nic: 3 files in the largest circle",
    ),
    "circle_by_a_macro": (
        {
            "nic/a.c": RING.format("a", "B"),
            "nic/b.h": "#define nic_B() \\\n\tnic_a()\n",
        },
        calls.check_calls,
        "nic/b.h -> a.c: nic_a",
    ),
    "circle_shrunk_unsaid": (
        {calls.RATCHET: '"nic" = { largest = 2, files = 2 }\n'},
        calls.check_calls,
        "write largest = 0, files = 0",
    ),
    "circle_of_no_folder": (
        {calls.RATCHET: '"host/gone" = { largest = 2, files = 2 }\n'},
        calls.check_calls,
        "there is no folder host/gone",
    ),
    "license_missing": ({"nic/n.c": "/* mine */\n"}, style.check_license, "nic/n.c"),
    "trailing_space": ({"lab/x.py": "x = 1 \n"}, style.check_whitespace, "lab/x.py:1"),
    "no_last_newline": ({"lab/x.py": "x = 1"}, style.check_whitespace, "lab/x.py"),
    "space_indent": (
        {"nic/n.c": "int x;\n        int y;\n"},
        style.check_c_layout,
        "nic/n.c:2: indented",
    ),
    "wide_line": (
        {"nic/n.c": "\t\t/* " + "x" * 90 + " */\n"},
        style.check_c_layout,
        "nic/n.c:1: wider",
    ),
    "machine_path": (
        {"docs/a.md": "see " + "/".join(["", "home", "someone", "x"]) + "\n"},
        style.check_no_machine_paths,
        "docs/a.md:1",
    ),
    "assertion_with_a_way_out": (
        {"tests/lab/test_a.py": "def test_a():\n    assert f() == 1 or g() > 0\n"},
        audit.check_assertions,
        "test_a.py:2",
    ),
    "assertion_of_itself": (
        {"tests/lab/test_a.py": "def test_a():\n    assert x.y == x.y\n"},
        audit.check_assertions,
        "both sides",
    ),
    "assertion_of_a_constant": (
        {"tests/lab/test_a.py": "def test_a():\n    assert (f() == 1, 'so')\n"},
        audit.check_assertions,
        "constant",
    ),
    "assertion_in_c_with_a_way_out": (
        {"tests/unit/a.c": "\nvoid f(void)\n{\n\tassert_true(a == 1 ||\n\t\t    b);\n}\n"},
        audit.check_assertions,
        "a.c:4",
    ),
    "test_without_assertion": (
        {"tests/lab/test_a.py": "def helper():\n    pass\n\n\ndef test_a():\n    helper()\n"},
        audit.check_tests_assert,
        "test_a()",
    ),
    "test_in_c_without_assertion": (
        {
            "tests/unit/a.c": "static void go(void)\n{\n\twork();\n}\n"
            "static void a__b(void **s)\n{\n\tgo();\n}\nx = { cmocka_unit_test(a__b) };\n"
        },
        audit.check_tests_assert,
        "a__b()",
    ),
    "test_not_compiled": (
        {"tests/unit/meson.build": "x = ['b']\n", "tests/unit/a.c": "int a;\n"},
        audit.check_tests_listed,
        "tests/unit/a.c",
    ),
    "test_that_may_vanish": (
        {"tests/unit/meson.build": "if fs.exists('a.c')\nendif\n"},
        audit.check_tests_listed,
        "fs.exists",
    ),
    "dead_function": (
        {"nic/a.c": "int nic_a(void);\nint nic_a(void)\n{\n\treturn 0;\n}\n"},
        dead.check_dead,
        "nic/a.c: nothing uses nic_a()",
    ),
    "dead_field": (
        {"nic/a.h": "struct nic_a {\n\tint used;\n\tint gone;\n};\nint f(struct nic_a *used);\n"},
        dead.check_constants,
        "nic/a.h: nothing uses gone",
    ),
    "dead_constant": (
        {
            "nic/a.c": "#define NIC_A 1\n",
            "tests/unit/a.c": "int a = NIC_A;\n",
        },
        dead.check_constants,
        "nic/a.c: nothing uses NIC_A",
    ),
    "alive_by_a_test_only": (
        {
            "nic/a.c": "int nic_a(void)\n{\n\treturn 0;\n}\n",
            "tests/unit/a.c": "int main(void)\n{\n\treturn nic_a();\n}\n",
        },
        dead.check_dead,
        "nic/a.c: nothing uses nic_a()",
    ),
    "header_twice": (
        {"nic/udp/homa_good.h": "#ifndef B_H\n#endif\n"},
        names.check_headers,
        "a header homa_good.h is in engine/base/homa_good.h and in nic/udp/homa_good.h",
    ),
    "guard_twice": (
        {"nic/a.h": "#ifndef A_H\n#endif\n", "nic/b.h": "#ifndef A_H\n#endif\n"},
        names.check_headers,
        "the guard A_H",
    ),
    "system_header_hidden": (
        {"nic/path/limits.h": "#ifndef LIMITS_H\n#endif\n"},
        names.check_system_headers,
        "nic/path/limits.h hides the system's header <limits.h>",
    ),
    "included_system_header_hidden": (
        {"nic/path/poll.h": "#ifndef P_H\n#endif\n", "host/a.c": "#include <poll.h>\n"},
        names.check_system_headers,
        "nic/path/poll.h hides the system's header <poll.h>",
    ),
    "tag_twice": (
        {"nic/a.c": "struct homa_a {\n};\n", "host/b.h": "union homa_a {\n};\n"},
        names.check_tags,
        "homa_a is in host/b.h and in nic/a.c",
    ),
    "kernel_function_of_the_engine": (
        {"host/kernel/a.c": "static void homa_a(void)\n{\n}\n"},
        names.check_kernel_prefix,
        "host/kernel/a.c: homa_a is named",
    ),
    "kernel_struct_of_the_engine": (
        {"host/kernel/a.h": "struct homa_a {\n};\n"},
        names.check_kernel_prefix,
        "host/kernel/a.h: homa_a is named",
    ),
    "kernel_macro_of_the_engine": (
        {"host/kernel/a.c": "#define HOMA_A 1\n"},
        names.check_kernel_prefix,
        "host/kernel/a.c: HOMA_A is named",
    ),
    "folder_not_in_the_table": (
        {"docs/architecture.md": "## Folders\n\n| `nic/`, `host/gone/`, `docs/` | x |\n"},
        pages.check_folders,
        "the table of folders lacks engine/",
    ),
    "folder_that_is_gone": (
        {"docs/architecture.md": "## Folders\n\n| `nic/`, `host/gone/`, `docs/` | x |\n"},
        pages.check_folders,
        "there is no folder host/gone",
    ),
    "name_in_a_comment_that_is_gone": (
        {"nic/a.c": "/* nic_up() is there, nic.h, too;\n * nic_gone() is not. */\n"},
        comments.check_names,
        "nic/a.c:2: there is no nic_gone",
    ),
    "file_in_a_comment_that_is_gone": (
        {"nic/a.c": "/* See nic/up.c and nic/over.c. */\n"},
        comments.check_names,
        "nic/a.c:1: there is no file nic/over.c",
    ),
    "member_in_a_comment_that_is_gone": (
        {"nic/a.c": "/* @fd and @gone: its ends. */\nstruct nic_a {\n\tint fd;\n};\n"},
        comments.check_members,
        "nic/a.c:1: there is no @gone here",
    ),
    "head_of_another_function": (
        {"nic/a.h": "/** nic_old() - opens. */\nint nic_new(void);\n"},
        comments.check_heads,
        "nic/a.h:1: the comment is of nic_old",
    ),
    "suite_not_in_the_table": (
        {
            "docs/testing.md": "# Testing\n\n| suite | x |\n|---|---|\n| `pair` | of `unit` |\n",
            "tests/pair/a.c": "int a;\n",
            "tests/unit/a.c": "int a;\n",
        },
        pages.check_tables,
        "the table of tests lacks unit",
    ),
    "file_in_the_table_that_is_gone": (
        {
            "docs/tcp.md": "# TCP\n\n## The engine\n\n| file | x |\n|---|---|\n| `b.c`, `c.c` | x |\n\nx\n",
            "engine/tcp/b.c": "int a;\n",
        },
        pages.check_tables,
        "the table of engine/tcp names c.c, which is not there",
    ),
    "slow_calls_the_engine": (
        {
            "engine/homa/homa_e.h": "struct homa_rpc *homa_rpc_send(int a,\n\t\tint b);\n",
            "host/homad/slow/a.c": "void *f(void)\n{\n\treturn homa_rpc_send(1, 2);\n}\n",
        },
        rooms.check_slow,
        "host/homad/slow/a.c: homa_rpc_send()",
    ),
    "fast_blocks": (
        {"host/homad/fast/a.c": "/* poll() */\nint f(void)\n{\n\treturn usleep(1);\n}\n"},
        rooms.check_fast,
        "host/homad/fast/a.c:4: usleep() may wait",
    ),
    "page_too_wide": (
        {"docs/a.md": "```\n" + "c" * 130 + "\n```\n" + "p " * 70 + "\n"},
        style.check_pages_width,
        "docs/a.md:4: wider",
    ),
    "page_of_another_day": (
        {"docs/a.md": "See `base/homa_good.c` and\n`base/homa_gone.c`.\n"},
        pages.check_pages,
        "docs/a.md:2: there is no base/homa_gone.c",
    ),
    "c_that_is_not_formatted": (
        LISTED | {"nic/n.c": "int a;\nint  b;\n"},
        formats.check_c,
        "nic/n.c:2: not laid out as by clang-format",
    ),
    "c_that_is_formatted_unsaid": (
        LISTED | {"sim/n.c": "int a;\n"},
        formats.check_c,
        "sim is formatted, add it to c",
    ),
    "source_that_no_build_compiles": (
        {"lib/meson.build": "files('b.c')\n", "lib/b.c": "", "lib/core/b.c": ""},
        unused.check_files,
        "lib/core/b.c: no build compiles it",
    ),
    "object_that_kbuild_has_elsewhere": (
        {"host/kernel/Kbuild": "y += $(addprefix q/,a.o b.o) c.o\n", "host/kernel/b.c": ""},
        unused.check_files,
        "host/kernel/b.c: no build compiles it",
    ),
    "header_that_nobody_includes": (
        {"nic/alone.h": '/* #include "alone.h" */\n'},
        unused.check_files,
        "nic/alone.h: no file includes it",
    ),
    "formatted_folder_that_is_gone": (
        LISTED | {formats.RATCHET: 'c = ["gone"]\n'},
        formats.check_c,
        "there is no c in gone",
    ),
    "python_that_is_not_formatted": (
        LISTED | {"lab/x.py": "x = [1,2]\n"},
        formats.check_python,
        "lab/x.py:1: not laid out as by ruff",
    ),
    "python_that_is_formatted_unsaid": (
        LISTED | {"tools/x.py": "x = 1\n"},
        formats.check_python,
        "tools is formatted, add it to python",
    ),
    "python_with_a_fault": (
        {"lab/x.py": "import os\n"},
        formats.check_rules,
        "lab/x.py:1:8: F401",
    ),
    "test_not_collected": (
        {"tests/lab/other.py": "def test_a():\n    assert f()\n"},
        audit.check_tests_listed,
        "other.py",
    ),
    "kernel_compile": (
        {
            "engine/plat/kernel/homa_plat.h": KERNEL_PLAT,
            "engine/base/homa_good.c": body("\treturn no_such_function(a);"),
        },
        kernel.check_kernel,
        "no_such_function",
    ),
    "kernel_module_compile": (
        {
            "host/kernel/Kbuild": "obj-m := homa.o\nhoma-y := bad.o\n",
            "host/kernel/bad.c": "int homak_bad(void);\nint homak_bad(void)\n{\n"
            "\treturn homak_no_such();\n}\n",
        },
        kernel.check_module,
        "homak_no_such",
    ),
}


def plant(root: Path, files: dict[str, str]) -> Tree:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return Tree(root)


def must_refuse(extra: dict[str, str], check: Callable[[Tree], list[str]], part: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="homa-selftest-") as scratch:
        problems = check(plant(Path(scratch), CLEAN | extra))
    if any(part in p for p in problems):
        return []
    return [f"a tree that must be refused for '{part}' was not; complaints: {problems}"]


def must_accept() -> list[str]:
    """Every check that a sin above is shown to passes the clean tree."""
    problems: list[str] = []
    unique = {str(check): check for _, check, _ in SINS.values()}
    with tempfile.TemporaryDirectory(prefix="homa-selftest-") as scratch:
        tree = plant(Path(scratch), CLEAN)
        for check in unique.values():
            try:
                problems += check(tree)
            except Skip:
                continue
    return problems


def checks() -> dict[str, Callable[[], list[str]]]:
    found: dict[str, Callable[[], list[str]]] = {"selftest__accepts_clean_tree": must_accept}
    for name, (extra, check, part) in SINS.items():
        found[f"selftest__refuses_{name}"] = partial(must_refuse, extra, check, part)
    return found
