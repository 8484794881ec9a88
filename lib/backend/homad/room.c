// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Room to send, for programs that do not wait when they send: in our ring, beside it,
 * and for long messages in the data memory, of which homad gives more when it is asked.
 * This looks, more and more seldom. homa_send_fd() (fd_send.c) is for those who sleep until
 * homad tells.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>
#include "client.h"
#include "fd.h"
#include "homa_clock.h"
#include "svc_att.h"
#include "svc_memory.h"
#include "svc_ring.h"
#include "svc_wait.h"

/* The time for which a waiting thread only yields the processor, in ns. */
#define YIELD_NS 200000u
/* The longest sleep between two looks after that, in ns. */
#define PAUSE_MAX_NS 500000
/* The pause between two questions for more memory, in ns. A user who has no memory has none
 * for long, and homad makes a handle wait that asks too often. */
#define ASK_NS 100000000u

/* Would a request of @length bytes find room? If @ask, homad may be asked for more memory. */
static int try_room(struct homa_svc *c, u32 length, bool ask)
{
	struct homa_svc_att *att;
	struct homa_svc_ring *ring;
	u32 segment, offset;
	int rc;

	if (length > HOMA_SHM_COPY_MAX) {
		rc = homa_svc_long_try(c, length, &att, &segment, &offset);
		if (rc == -EAGAIN && ask)
			rc = homa_svc_long_ask(c, length, &att, &segment,
					       &offset);
		if (rc)
			return rc == -ENOBUFS ? -EAGAIN : rc;
		homa_svc_long_back(att, segment, offset);
		homa_svc_att_put(att);
		length = 0;
	}
	rc = homa_svc_try_begin(c, length, &ring);
	if (!rc)
		homa_gate_unlock(&ring->lock);
	return rc;
}

/* Take completions, for which homad may wait, and let it run. */
static int let_homad_run(struct homa_svc *c, u64 since, u64 now)
{
	struct timespec ts = { .tv_nsec = (long)homa_min_u64((now - since) / 4,
							     PAUSE_MAX_NS) };
	int rc;

	homa_gate_lock(&c->lock);
	rc = homa_svc_error(c);
	if (!rc && homa_svc_state(c) == HOMA_SVC_UP) {
		homa_svc_drain(c, NULL);
		homa_svc_check(c);
	}
	homa_svc_fd_touch(c);
	homa_gate_unlock(&c->lock);
	if (rc)
		return rc;
	if (now - since < YIELD_NS)
		sched_yield();
	else if (nanosleep(&ts, NULL))
		return -EINTR;
	return 0;
}

int homa_svc_wait_send(void *host, size_t length, int64_t timeout_ns)
{
	struct homa_svc *c = host;
	u64 since = homa_clock_ns(), now = since,
	    ask_at = timeout_ns ? since : HOMA_SVC_NEVER;
	int rc;

	__atomic_fetch_add(&c->inside, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		rc = __atomic_load_n(&c->closing, __ATOMIC_SEQ_CST) ?
			     -ESHUTDOWN :
		     homa_svc_state(c) == HOMA_SVC_LOST ?
			     homa_svc_revive_try(c, NULL) :
			     0;
		if (!rc)
			rc = try_room(c, (u32)length, now >= ask_at);
		if (now >= ask_at)
			ask_at = now + ASK_NS;
		if (rc != -EAGAIN)
			break;
		now = homa_clock_ns();
		if (timeout_ns >= 0 && now - since >= (u64)timeout_ns)
			break;
		rc = let_homad_run(c, since, now);
		if (rc)
			break;
	}
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_SEQ_CST);
	return rc;
}
