# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa reproduce`: the papers' tables and figures, each with a row, on one page.

items.py says what there is, chosen.py which of it a command makes, run.py makes what is missing, real
measures real packets, page.py and markdown.py show all. place.py says where results go, results.py what a
finished item's file has to say, saving.py keeps such files in the repository, simulator.py keeps a
simulator for results that take several sittings.
"""
