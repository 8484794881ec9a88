/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a handle that is an attachment to homad counts: each X has a counter and its meaning. */
#ifndef HOMA_SVC_COUNTERS_H
#define HOMA_SVC_COUNTERS_H

#include "homa_plat.h"

/* Counters of this host, for homa_metrics(). */
#define HOMA_SVC_COUNTERS(X)                                                   \
	X(blocks, "times a receive slept")                                     \
	X(handoffs, "messages handed to another waiting thread")               \
	X(batched, "messages taken in one turn with another one")              \
	X(kicks, "times homad had to be woken")                                \
	X(ring_waits, "times a submission waited for room")                    \
	X(room_asks, "times homad was asked to tell when there is room")       \
	X(releases_kept, "buffers given back that waited for room")            \
	X(given, "messages sent from memory of homa_alloc() without a copy")   \
	X(given_copied, "messages in memory of homa_alloc() that were copied") \
	X(routes, "questions whether a destination can be reached")            \
	X(segments, "data segments asked for")                                 \
	X(losses, "times homad ended while we were attached")                  \
	X(attaches, "times we attached")                                       \
	X(progress_rounds, "completions that came while no thread waited")     \
	X(yields, "times a call that does not wait let others run")

struct homa_svc_counters {
#define X(name, text) u64 name;
	HOMA_SVC_COUNTERS(X)
#undef X
};

#endif
