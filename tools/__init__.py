# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Looking at a running homad: `./homa ss`, `./homa top`, `./homa trace`.

Everything comes from homad's monitoring socket (docs/operating.md): connection.py asks, the rest
shows. Nothing here needs a build, only typer and rich.
"""
