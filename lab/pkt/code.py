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
        ast.AugAssign,
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
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets += [node.target] if isinstance(node, ast.AugAssign) else []
        if not all(isinstance(t, ast.Name) for t in targets):
            raise Unsupported("assignments in code other than to a name")
    if _may_grow(tree):
        raise Unsupported("arithmetic with texts and lists in code")
    return tree


def _may_grow(tree: ast.Module) -> bool:
    """Could a product, a format or a variable become as large as a script likes? Only whole
    numbers can be kept, and they are never multiplied with one another."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            return True
        if isinstance(node, (ast.Assign, ast.AugAssign)) and not _plain(node.value):
            return True
        if isinstance(node, ast.AugAssign) and not isinstance(node.op, (ast.Add, ast.Sub)):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            kept = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
            known = {*_FUNCTIONS, *CONSTANTS} - {"str"}
            if not _plain(node) or any(n not in known and not _figure(n) for n in kept):
                return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            texts = [n.value for n in ast.walk(node.left) if isinstance(n, ast.Constant)]
            if any(re.search(r"%[^a-z%]", str(t)) for t in texts):
                return True
    return False


def _plain(node: ast.AST) -> bool:
    """Are there only numbers in it?"""
    texts = (ast.Tuple, ast.List, ast.JoinedStr)
    return not any(
        isinstance(n, texts)
        or (isinstance(n, ast.Constant) and isinstance(n.value, (str, bytes)))
        or (isinstance(n, ast.Name) and n.id == "str")
        for n in ast.walk(node)
    )


def _figure(name: str) -> bool:
    return name.startswith("tcpi_")


def check(text: str) -> None:
    """Unsupported or BadScript."""
    _tree(text)


def run(text: str, field: Callable[[str], int | None], kept: dict[str, object]) -> None:
    """`field`: a field of tcp_info without "tcpi_", None if there is none. `kept`: variables of
    the script's earlier code; those of this one are added. Failed, Unsupported."""
    tree = _tree(text)
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    set_ = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _stored(n)}
    names: dict[str, object] = {"__builtins__": {}, **_FUNCTIONS, **CONSTANTS, **kept}
    figures = {}
    for name in sorted(read - set_ - set(names)):
        value = field(name.removeprefix("tcpi_")) if _figure(name) else None
        if value is None:
            raise Unsupported(f"'{name}' in code: the engine has no such figure")
        figures[name] = value
    names |= figures
    try:
        # Every node has been looked at: this can compute, and nothing else.
        exec(compile(tree, "<code>", "exec"), names)
    except AssertionError as error:
        shown = ", ".join(f"{n} = {v}" for n, v in figures.items())
        said = f"\n    it says: {error.args[0]}" if error.args else ""
        raise Failed(
            f"an assertion does not hold\n    here: {shown or 'no figure'}{said}"
        ) from error
    except (ArithmeticError, MemoryError, NameError, TypeError, ValueError) as error:
        raise Failed(f"the code fails: {type(error).__name__}: {error}") from error
    kept |= {name: names[name] for name in set_ if name in names}


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
