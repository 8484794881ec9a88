# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Runs one program on a real host over SSH, in a process of its own that has asyncssh.

Its argument is JSON: {"host": a RealHost's fields, "argv": [...], "output": a file of ours}. What the
program writes goes to that file, what it complains about and its status are ours. It ends when this
process does, however that is: the host's shell sees the end of its input.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from lab import wheels
from lab.inventory.hosts import RealHost

# The program has no input; whoever waits for the end of ours ends it.
SCRIPT = """cd || exit 1
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
(cat >/dev/null <&3; kill $child 2>/dev/null) </dev/null &
watch=$!
exec 3<&-
wait $child
status=$?
kill $watch 2>/dev/null
exit $status
"""


@dataclass(frozen=True)
class Reached:
    """A host of an inventory as programs are started in it (lab.net.runner.Job.host)."""

    real: RealHost

    @property
    def address(self) -> str:
        """Where experiments reach it."""
        return self.real.address

    def program(self, name: str) -> str:
        """A program of ours on it."""
        return f"{self.real.folder}/{name}"

    def command(self, argv: list[str]) -> list[str]:
        """The words that run `argv` on it. The file that follows --json is ours."""
        output, there = "", list(argv)
        if "--json" in there:
            place = there.index("--json") + 1
            output, there[place] = there[place], "-"
        question = {"host": self.real.__dict__, "argv": there, "output": output}
        return [wheels.PYTHON, "-m", "lab.inventory.remote", json.dumps(question)]


async def _run(question: dict) -> int:
    import asyncssh

    from lab.inventory import ssh

    host, words = question["host"], question["argv"]
    home = "~/"
    words = [word.removeprefix(home) for word in words]
    try:
        async with ssh.connect(host) as connection:
            command = shlex.join(["sh", "-c", SCRIPT, "sh", *words])
            process = await connection.create_process(command, errors="replace")
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, process.stdin.write_eof)
            out, complaints = await process.communicate()
            if question["output"] and out:
                Path(question["output"]).write_text(str(out))
            sys.stderr.write(str(complaints))
            return 1 if process.exit_status is None else int(process.exit_status)
    except (OSError, TimeoutError, asyncssh.Error, ValueError) as error:
        sys.stderr.write(f"{ssh.problem(host, error)}\n")
        return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(_run(json.loads(sys.argv[1]))))
