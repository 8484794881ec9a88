# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The test runner behind `./homa test`.

A run is a list of stages; each stage starts other people's runners (meson, pytest,
libFuzzer, the purity checks), reads their machine-readable results and counts cases.
Standard library only, so that the runner itself needs nothing but Python.
"""
