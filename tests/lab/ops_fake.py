# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Stands in for homad's monitoring socket: answers from a table, byte for byte."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data/ops"

Answer = bytes | Callable[[socket.socket, dict], None]


def snapshot(name: str) -> dict:
    """A snapshot of a real homad: "before" or "after" a second of traffic."""
    return json.loads((DATA / f"snapshot_{name}.json").read_text())


def line(answer: object) -> bytes:
    return json.dumps(answer).encode() + b"\n"


@contextmanager
def homad(path: Path, answers: dict[str, list[Answer]]) -> Iterator[str]:
    """Answers each request by the next of its op's answers; the last one again and again."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve() -> None:
        while True:
            try:
                talk = listener.accept()[0]
            except OSError:
                return
            with talk, talk.makefile("rb") as lines:
                for text in lines:
                    request = json.loads(text)
                    left = answers.get(request["op"], [line({"error": "unknown"})])
                    answer = left.pop(0) if len(left) > 1 else left[0]
                    if callable(answer):
                        with suppress(OSError):  # the tool may go first
                            answer(talk, request)
                        break
                    talk.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield str(path)
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
