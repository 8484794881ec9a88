# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Simulations: `./homa sim run | figure | sweep | check`.

The simulator itself is the C program homa-sim (sim), which takes flags and writes JSON.
This package gives it its flags and draws what it says:

  flags      every flag once: kind, range, help; used by the command line, by TOML, by C
  tomlfile   TOML with places, so that a mistake is reported with its line
  topology   a network described in a file
  spec       one run: flags, its identity, its argument vector
  program    homa-sim as a process
  store      finished runs on disk, one file each, found again by identity
  pool       many runs at once, on this machine; dask: on many
  sweep      a grid of runs from a file
  figures    the papers' figures; each asks a pool for runs and draws them
  check      single numbers for `./homa targets`
"""
