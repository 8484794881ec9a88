# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Items of `./homa reproduce` that are measured on real packets, by the experiments of `./homa lab run`.

experiment.py says what an experiment and its runs are, catalogue.py which there are; a file for each
kind makes rows, numbers and figures of its runs: figures (fig3, fig5, fig6), coexist, incast,
failures, sustained, and tas, which is a benchmark. make.py measures and writes the items' files. Nothing here judges what the
experiments have not judged: a run that they say does not count makes no item.
"""
