# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""%{ code }%: assertions in Python about fields of struct tcp_info.

A script may come from anybody, so this is no `exec`: only assertions, names, numbers, strings,
comparisons and arithmetic are carried out, and nothing that could run for long.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable

from lab.pkt.errors import BadScript, Failed, Unsupported

_STATES = (
    *("TCP_ESTABLISHED", "TCP_SYN_SENT", "TCP_SYN_RECV", "TCP_FIN_WAIT1", "TCP_FIN_WAIT2"),
    *("TCP_TIME_WAIT", "TCP_CLOSE", "TCP_CLOSE_WAIT", "TCP_LAST_ACK", "TCP_LISTEN", "TCP_CLOSING"),
)
CONSTANTS = {name: number for number, name in enumerate(_STATES, 1)}
CONSTANTS |= {
    **{"TCP_CA_Open": 0, "TCP_CA_Disorder": 1, "TCP_CA_CWR": 2, "TCP_CA_Recovery": 3},
    **{"TCP_CA_Loss": 4, "TCPI_OPT_TIMESTAMPS": 1, "TCPI_OPT_SACK": 2, "TCPI_OPT_WSCALE": 4},
    **{"TCPI_OPT_ECN": 8, "TCPI_OPT_ECN_SEEN": 16, "TCPI_OPT_SYN_DATA": 32},
}
_FUNCTIONS: dict[str, Callable] = {"abs": abs, "min": min, "max": max, "len": len, "str": str}
_FUNCTIONS |= {"int": int, "float": float, "round": round, "bool": bool, "print": lambda *_: None}

_NODES = (
    *(
        ast.Module,
        ast.Assert,
        ast.Expr,
        ast.Assign,
        ast.If,
        ast.Pass,
        ast.Name,
        ast.Load,
        ast.Store,
    ),
    *(ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.IfExp, ast.Call),
    *(ast.And, ast.Or, ast.Not, ast.USub, ast.UAdd, ast.Invert, ast.Eq, ast.NotEq, ast.Lt),
    *(ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.Add, ast.Sub),
    *(ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor, ast.RShift),
    *(ast.Tuple, ast.List, ast.JoinedStr, ast.FormattedValue),
)


def _tree(text: str) -> ast.Module:
    lines = text.strip("\n").rstrip()
    try:
        tree = ast.parse(textwrap.dedent(lines).strip())
    except (SyntaxError, ValueError, RecursionError) as error:
        raise BadScript(f"the code is no Python: {error}") from error
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise Unsupported(f"{type(node).__name__} in code; assertions and arithmetic are")
        if isinstance(node, ast.Call) and not (
            isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
        ):
            raise Unsupported(f"calling {ast.unparse(node.func)} in code")
        if isinstance(node, ast.Assign) and not all(isinstance(t, ast.Name) for t in node.targets):
            raise Unsupported("assignments in code other than to a name")
    if _may_grow(tree):
        raise Unsupported("arithmetic with texts and lists in code")
    return tree


def _may_grow(tree: ast.Module) -> bool:
    """Could a product or a format be as large as a number says?"""
    assigned = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    for node in ast.walk(tree):
        inside = list(ast.walk(node))
        texts = [
            n.value
            for n in inside
            if isinstance(n, ast.Constant) and isinstance(n.value, (str, bytes))
        ]
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            return True
        if not isinstance(node, ast.BinOp):
            continue
        if isinstance(node.op, ast.Mult) and (
            texts
            or any(isinstance(n, (ast.Tuple, ast.List, ast.JoinedStr)) for n in inside)
            or any(isinstance(n, ast.Name) and n.id in assigned | {"str"} for n in inside)
        ):
            return True
        if isinstance(node.op, ast.Mod) and any(re.search(r"%[^a-z%]", str(t)) for t in texts):
            return True
    return False


def check(text: str) -> None:
    """Unsupported or BadScript."""
    _tree(text)


def run(text: str, field: Callable[[str], int | None]) -> None:
    """`field`: a field of tcp_info without "tcpi_", None if there is none. Failed, Unsupported."""
    tree = _tree(text)
    assigned = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    names: dict[str, object] = {"__builtins__": {}, **_FUNCTIONS, **CONSTANTS}
    used = sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - assigned)
    for name in used:
        if name in names:
            continue
        value = field(name.removeprefix("tcpi_")) if name.startswith("tcpi_") else None
        if value is None:
            raise Unsupported(f"'{name}' in code: the engine has no such figure")
        names[name] = value
    try:
        # Every node has been looked at: this can compute, and nothing else.
        exec(compile(tree, "<code>", "exec"), names)
    except AssertionError as error:
        shown = ", ".join(f"{n} = {names[n]}" for n in used if n.startswith("tcpi_"))
        said = f"\n    it says: {error.args[0]}" if error.args else ""
        raise Failed(
            f"an assertion does not hold\n    here: {shown or 'no figure'}{said}"
        ) from error
    except (ArithmeticError, TypeError, ValueError, NameError) as error:
        raise Failed(f"the code fails: {type(error).__name__}: {error}") from error
