/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A model of the grant scheduler that searches all messages instead of keeping
 * queues: which messages are active, and which grants are due. Slow and plain,
 * so that a reader can hold it against the paper.
 */
#ifndef GRANT_MODEL_H
#define GRANT_MODEL_H

#include "engine_world.h"

#define MESSAGES 64
#define PEERS 8
#define MTU 1500
#define PACKET (MTU - 104)

/* A message as the model sees it. */
struct msg {
	bool used;
	bool wants; /* in the scheduler */
	bool chosen;
	u32 peer;
	u32 length;
	u32 received;
	u32 granted;
	u64 key; /* bytes to receive, as far as the scheduler knows */
	u64 birth;
	u32 beyond;    /* unscheduled bytes beyond RTTbytes */
	u32 step;      /* homa_grants.step when it last received */
	u32 in_order;  /* bytes received before the first gap */
	u32 low_until; /* bytes before it were granted on a lower level ... */
	u8 low_level;  /* ... this one at least ... */
	u8 level;      /* ... than the last ones */
	bool tail;     /* granted to its end, but those have not come */
};

struct grant {
	u32 msg;
	u32 offset;
	u8 level;
};

struct model {
	struct world w;
	struct homa_rng rng;
	u64 seed;
	struct homa_peer peer[PEERS];
	struct homa_rpc rpc[MESSAGES];
	struct msg msg[MESSAGES];
	struct grant grant[MESSAGES * 4];
	u32 num_grants;
	u32 peers;
	u64 births;
	s64 incoming;
	u64 fifo_at;
	bool exception;
	bool due; /* a run must come: a setting was changed */
};

static inline u32 below(struct model *m, u32 n)
{
	return homa_rng_below(&m->rng, n);
}

/* The active set, by its definition; sets msg.chosen. Returns its size. */
u32 grant_model_choose(struct model *m);

/* Fill m->grant with what is due now; not @real: without what each run adds
 * (the FIFO share and one packet beyond max_incoming). */
void grant_model_run(struct model *m, bool real);

#endif
