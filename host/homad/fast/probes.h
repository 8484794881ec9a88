/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Static probe points (USDT) for bpftrace and perf; an instruction that does
 * nothing until somebody looks, and not even that where sys/sdt.h is missing.
 * docs/operating.md has recipes. Provider homad:
 *
 *	request	attachment, RPC, bytes, server's port	taken from an application
 *	reply	attachment, token, bytes, 1: RPC is gone
 *	deliver	attachment, RPC, bytes, errno	given to an application
 *	rx	port, Homa header, bytes, address (16)	from the network
 *	tx	port, Homa header, bytes, address (16)	to the network
 */
#ifndef HOMAD_PROBES_H
#define HOMAD_PROBES_H

#ifdef HAVE_SDT
#include <sys/sdt.h>
#define HOMAD_PROBE4(name, a, b, c, d) DTRACE_PROBE4(homad, name, a, b, c, d)
#else
#define HOMAD_PROBE4(name, a, b, c, d) ((void)0)
#endif

#endif
