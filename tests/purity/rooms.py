# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The rooms of homad: what runs on the main thread calls no engine, and what runs on a
fast-path thread waits for nothing but its own doorbell (fast/idle.c). write() is allowed: it
is to eventfds and pipes that do not block."""

from __future__ import annotations

import re

from calls import File
from source import Tree

SLOW = ("host/homad/slow/", "host/homad/config/")
FAST = "host/homad/fast/"
WAITS_FOR_WORK = "host/homad/fast/idle.c"
# Functions of fast/ that the main thread runs: it asks, starts and ends these threads.
MAIN_THREADS = {
    ("host/homad/fast/mailbox.c", "syscall"),
    ("host/homad/fast/thread.c", "pthread_join"),
}
# They look at what never changes or at memory of the caller's.
SLOW_MAY = {
    "homa_params_default",
    "homa_param_set",
    "homa_pool_size",
    "homa_sock_port",
}
_PROTOTYPE = re.compile(r"^[A-Za-z_][\w *]*?\b(homa_\w+)\([^;{}]*\);", re.M)
_BLOCKING = re.compile(
    r"\b(accept4?|connect|fallocate|fopen|fread|fprintf|fsync|ftruncate|getaddrinfo|madvise|"
    r"clock_nanosleep|flock|fwrite|mlock|mmap|munmap|nanosleep|open|openat|poll|ppoll|pread|"
    r"printf|pwrite|read|readv|recv|recvfrom|recvmsg|select|sem_wait|send|sendmsg|sendto|sleep|"
    r"syscall|syslog|usleep|vfprintf|waitpid|writev|epoll_wait|epoll_pwait2?|pthread_cond_timedwait|"
    r"pthread_cond_wait|pthread_join|pthread_mutex_lock)\("
)


def check_slow(tree: Tree) -> list[str]:
    engine: set[str] = set()
    for path in tree.engine_files():
        if path.suffix == ".h" and tree.name(path).startswith("engine/homa/"):
            engine |= set(_PROTOTYPE.findall(tree.code(path)))
    problems = []
    for path in tree.c_files():
        if tree.name(path).startswith(SLOW):
            named = set(re.findall(r"\bhoma_\w+", tree.code(path)))
            problems += [
                f"{tree.name(path)}: {name}() is the engine's, call it by homad_call()"
                for name in sorted(named & engine - SLOW_MAY)
            ]
    return problems


def check_fast(tree: Tree) -> list[str]:
    problems = []
    for path in tree.c_files():
        if not tree.name(path).startswith(FAST) or tree.name(path) == WAITS_FOR_WORK:
            continue
        own = File(tree.code(path), path.suffix == ".h").private
        for number, line in enumerate(tree.code(path).split("\n"), 1):
            call = _BLOCKING.search(line)
            if call and call[1] not in own and (tree.name(path), call[1]) not in MAIN_THREADS:
                problems.append(f"{tree.name(path)}:{number}: {call[1]}() may wait")
    return problems
