# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Packet scripts: the language of packetdrill, interpreted over a TCP engine in virtual time.

A script is a list of *statements*, each with a time: a packet that arrives (`<`), a packet that
the engine must send (`>`), a system call with its result, a setting, an assertion. `parser` reads
them, `runner` carries them out on a `stack` (the engine, or a fake in the tests) and compares:
what the script says in relative numbers is translated by a `flow` to what is on the wire and back.
"""
