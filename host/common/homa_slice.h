/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Short slices: threads that wait for messages ask the scheduler for one.
 *
 * A thread that waits looks for its message and yields in turn (homa_spin.h). Each yield puts it
 * behind all others for a slice of its own, and a thread that is woken for a message runs at once
 * only if its slice would end before that of the thread that runs. With the usual slice of about
 * 3 ms an RPC beside busy programs may wait for 1 to 3 ms; with one of 100 us for about half of
 * that (measured in docs/tcp.md). A slice says only how long a thread may run at a time: its
 * share of the processor stays what it was, and no privilege is needed. Linux takes it into
 * account from 6.12 on; before that it has no effect.
 */
#ifndef HOMA_SLICE_H
#define HOMA_SLICE_H

#include "homa_plat.h"

/* The longest slice that the scheduler allows, in us. */
#define HOMA_SLICE_MAX_US 100000

/**
 * homa_slice_set() - ask the scheduler for slices of @ns for this thread
 *
 * A thread that has a shorter slice, or a policy other than SCHED_OTHER, has it for a reason and
 * keeps it. Failure is not told: without a short slice all works as well, only later beside
 * others. errno stays what it was.
 */
void homa_slice_set(u64 ns);

#endif
