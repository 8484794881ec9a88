# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Reads a script: options, then statements, each a time and what happens then.

It is written by hand, a function for each rule, because a statement that cannot be read must not
hide those behind it: it becomes a `Beyond` with the reason, and reading goes on where the next
line begins with a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from lab.pkt import lexer, parse_packet
from lab.pkt.cursor import Cursor
from lab.pkt.errors import BadScript, ScriptError, Unsupported
from lab.pkt.script import (
    SECOND,
    Action,
    Beyond,
    Call,
    Code,
    Command,
    Either,
    Ellipsis,
    Expression,
    Record,
    Script,
    Statement,
    TcpPacket,
    When,
    Word,
)

_OPTION_VALUE = re.compile(r'(?:"[^"\n]*"|`[^`]*`|[^\s"`])*')
_DEFINE = re.compile(r'--define=(\w+)=("[^"\n]*"|`[^`]*`|\S+)')


def read(path: Path) -> Script:
    return parse(path.read_text(encoding="utf-8", errors="replace"), str(path))


def parse(text: str, path: str = "script") -> Script:
    """BadScript only if no statement can be found at all; else the statement says what is wrong."""
    defines = {m[1]: m[2] for m in _DEFINE.finditer(text)}
    at = Cursor(lexer.tokens(text, defines))
    script = Script(path)
    _options(at, text, script)
    while not at.kind("end"):
        _statement(at, text, script)
    if not script.statements:
        raise BadScript("there is no statement in it", 1)
    _check_order(script)
    return script


def _options(at: Cursor, text: str, script: Script) -> None:
    while at.kind("option"):
        name = at.step()
        value = None
        if at.now.text == "=" and at.now.start == name.end:
            begin = at.step().end
            found = _OPTION_VALUE.match(text, begin)
            end = found.end() if found else begin
            value = text[begin:end]
            while at.now.start < end and not at.kind("end"):
                at.step()
        script.options.append((name.text, value, name.line))


def _add(script: Script, text: str, at: Cursor, begin: int, when: When, action: Action) -> None:
    first, last = at.tokens[begin], at.tokens[max(begin, at.at - 1)]
    said = " ".join(re.sub(r"//[^\n]*", "", text[first.start : last.end]).split())
    script.statements.append(Statement(first.line, said, when, action))


def _statement(at: Cursor, text: str, script: Script) -> None:
    begin = at.at
    when = When(relative=True)
    try:
        # What sets a host up or back, at the script's beginning and end, has no time.
        when = when if at.kind("command") else _when(at)
        action = _action(at)
        if not at.kind("end") and not at.now.first:
            raise BadScript(f"'{at.now.text}' is too much")
        _check_when(when, action)
    except (ScriptError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        why = "it is nested too deeply" if deep else str(error)
        action = Beyond(why, not isinstance(error, Unsupported))
        if at.at == begin:
            at.step()
        while not at.kind("end") and not (at.now.first and (_is_time(at) or at.kind("command"))):
            at.step()
    _add(script, text, at, begin, when, action)


def _is_time(at: Cursor) -> bool:
    if at.kind("integer", "float"):
        return at.after().text in ("<", ">", "~", "...") or at.after().kind in (
            "word",
            "command",
            "code",
        )
    return at.sees("+", "*")


def _check_when(when: When, action: Action) -> None:
    outbound = isinstance(action, TcpPacket) and not action.inbound
    if (when.any or when.end is not None) and not outbound:
        raise BadScript("only a packet that is sent can have a range of times, or *")
    if when.end is not None and when.end < when.begin:
        raise BadScript("the range of times ends before it begins")


def _check_order(script: Script) -> None:
    first = script.statements[0].when
    if first.begin or first.any:
        raise BadScript("the first statement is not at time 0", script.statements[0].line)
    last = 0
    for statement in script.statements:
        if not statement.when.relative and not statement.when.any:
            if statement.when.begin < last:
                raise BadScript("its time is before that of a statement above", statement.line)
            last = statement.when.begin


def _time(at: Cursor) -> int:
    if not at.kind("integer", "float"):
        raise at.unexpected("a time in seconds")
    token = at.step()
    value = int(Decimal(token.text) * SECOND)
    if value < 0:
        raise BadScript("a time is negative", token.line)
    return value


def _when(at: Cursor) -> When:
    if at.take("*"):
        return When(any=True)
    relative = at.take("+")
    begin = _time(at)
    if not at.take("~"):
        return When(begin, None, relative)
    if at.take("+") != relative:
        raise BadScript("one end of the range of times is relative, the other is not")
    return When(begin, _time(at), relative)


def _action(at: Cursor) -> Action:
    if at.kind("command"):
        return Command(at.step().text)
    if at.kind("code"):
        return Code(at.step().text)
    if at.sees("<", ">"):
        return parse_packet.packet(at)
    end = _time(at) if at.take("...") else None
    if not at.kind("word") or at.after().text != "(":
        raise at.unexpected("a packet (< or >), a system call, a command or %{ code }%")
    name = at.step().text
    at.must("(")
    arguments = tuple(_list(at, ")"))
    at.must("=")
    result = _expression(at)
    error = at.step().text if at.kind("word") and not at.now.first else None
    if at.sees("(") and not at.now.first:
        while not at.take(")"):
            if at.kind("end"):
                raise at.unexpected("')'")
            at.step()
    return Call(name, arguments, result, error, end)


def _list(at: Cursor, closing: str) -> Iterable[Expression]:
    found: list[Expression] = []
    while not at.take(closing):
        found.append(_expression(at))
        if not at.sees(closing):
            at.must(",")
    return found


def _expression(at: Cursor) -> Expression:
    parts = [_simple(at)]
    while at.take("|"):
        parts.append(_simple(at))
    return parts[0] if len(parts) == 1 else Either(tuple(parts))


def _simple(at: Cursor) -> Expression:
    if at.take("..."):
        return Ellipsis()
    if at.kind("integer", "hex"):
        return at.integer("a number")
    if at.kind("string"):
        text = at.step().text
        while at.kind("string"):
            text += at.step().text
        at.take("...")
        return text
    if at.take("["):
        return list(_list(at, "]"))
    if at.take("{"):
        return _record(at)
    if at.kind("word"):
        name = at.step().text
        if at.take("("):
            return Record({"function": Word(name), "of": list(_list(at, ")"))})
        if at.take("="):
            return Record({name: _expression(at)})
        return Word(name)
    raise at.unexpected("a value")


def _record(at: Cursor) -> Expression:
    """{fd=4, events=POLLIN}, {..., 1000} or {msg_name(...)=..., msg_iov(1)=[...], ...}."""
    fields: dict[str, Expression] = {}
    while not at.take("}"):
        named = at.kind("word") and (
            at.after().text == "=" or (at.after().text == "(" and at.now.text.startswith("msg_"))
        )
        if named:
            name = at.step().text
            if at.take("("):
                fields[f"{name}len"] = _expression(at)
                at.must(")")
            at.must("=")
            fields[name] = _expression(at)
        else:
            if at.sees("label", "flags", "Flags", "("):
                raise Unsupported("headers of tunnels")
            fields[str(len(fields))] = _expression(at)
        if not at.sees("}"):
            at.must(",")
    return Record(fields)
