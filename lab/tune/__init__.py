# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""`./homa lab tune`: settings of homad that follow from measurements of a network."""
