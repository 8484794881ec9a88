# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Test networks, experiments and figures, all on one machine.

A laboratory is a handful of network namespaces around a switch (`net`, `switch`);
an experiment starts `homa-bench` processes in them (`runner`), reads their JSON
(`results`) and shows it (`tables`, `plot`). `demo`, `bench` and `targets` are the
experiments; `__main__` is their thin command line.
"""
