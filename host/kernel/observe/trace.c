// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The tracepoints' own code, made by the kernel's macros from homa_trace.h. Each
 * has a static key: off, a tracepoint is a no-op instruction in the caller.
 */
#define CREATE_TRACE_POINTS
#include "homa_trace.h"
/* It is defined again in there; files compiled after this one must not make it all twice. */
#undef CREATE_TRACE_POINTS
