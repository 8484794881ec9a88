/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Static probe points for bpftrace and perf; nothing where sys/sdt.h is missing. */
#ifndef HOMAD_PROBES_H
#define HOMAD_PROBES_H

#ifdef HAVE_SDT
#include <sys/sdt.h>
#define HOMAD_PROBE4(name, a, b, c, d) DTRACE_PROBE4(homad, name, a, b, c, d)
#else
#define HOMAD_PROBE4(name, a, b, c, d) ((void)0)
#endif

#endif
