// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Submission rings. A thread has a ring of its own as long as there are enough;
 * the lock is for those that come after. Short messages are staged beside the
 * ring, in a ring of bytes whose begin follows the ring's head, so they need no
 * other word from homad. A submission is one store that homad sees, then one look
 * whether it sleeps; while it polls there is no system call.
 *
 * A full ring means that homad has not got round to us. Then we give it the
 * processor, and take its completions so that it does not wait for us either.
 */
#include <errno.h>
#include <sched.h>
#include "client.h"
#include "fd.h"
#include "homa_clock.h"
#include "svc_att.h"
#include "svc_ring.h"
#include "svc_wait.h"

/* The longest time that a submission waits for room in a ring, in ns. */
#define PATIENCE_NS 1000000000u
/* The time between two looks whether homad lives, while a submission waits, in ns. */
#define CHECK_NS 5000000u
/* Staged messages begin at multiples of this many bytes, so no two share a cache line. */
#define STAGE_ALIGN 64u

static _Thread_local u32 thread_number __attribute__((tls_model("initial-exec")));
/* The number of threads that have got a number so far. It is atomic. */
static u32 threads;

struct homa_svc_ring *homa_svc_my_ring(struct homa_svc *c)
{
	u32 at;
	u8 ring;

	if (unlikely(!thread_number))
		thread_number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	at = thread_number % HOMA_SVC_THREADS;
	ring = __atomic_load_n(&c->ring_of[at], __ATOMIC_RELAXED);
	if (unlikely(!ring)) {
		ring = (u8)(1 + __atomic_fetch_add(&c->rings_assigned, 1,
						   __ATOMIC_RELAXED) %
					HOMA_SHM_SQS);
		__atomic_store_n(&c->ring_of[at], ring, __ATOMIC_RELAXED);
	}
	return &c->rings[ring - 1];
}

/* Make homad look at the rings up to @which. The caller has that ring's lock. */
static void show_ring(struct homa_svc *c, u32 which)
{
	u32 *shown = &c->att->queues->sqs;
	u32 sqs = __atomic_load_n(shown, __ATOMIC_RELAXED);

	while (sqs < which + 1 &&
	       !__atomic_compare_exchange_n(shown, &sqs, which + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	sqs = __atomic_load_n(&c->sqs, __ATOMIC_RELAXED);
	while (sqs < which + 1 &&
	       !__atomic_compare_exchange_n(&c->sqs, &sqs, which + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* The bytes of stage that @bytes need, with those that stay unused at its end. */
static u32 stage_need(const struct homa_svc_ring *ring, u32 bytes)
{
	u32 need = (bytes + STAGE_ALIGN - 1) & ~(STAGE_ALIGN - 1);
	u32 left = HOMA_SHM_STAGE - ring->stage_tail % HOMA_SHM_STAGE;

	return need > left ? left + need : need;
}

static bool has_room(const struct homa_svc_ring *ring, u32 entries, u32 bytes)
{
	return ring->tail - ring->head < entries &&
	       ring->stage_tail + stage_need(ring, bytes) - ring->stage_head <=
		       HOMA_SHM_STAGE;
}

static bool make_room(struct homa_svc *c, struct homa_svc_ring *ring, u32 bytes)
{
	const struct homa_svc_place *place = &c->att->submit[ring - c->rings];
	u32 head;

	if (likely(has_room(ring, place->entries, bytes)))
		return true;
	head = __atomic_load_n(&place->index->head, __ATOMIC_ACQUIRE);
	if (head == ring->head)
		return false;
	ring->head = head;
	ring->stage_head = ring->stage_end[(head - 1) & (place->entries - 1)];
	return has_room(ring, place->entries, bytes);
}

/* Let homad run; 0 if the caller shall look again, or an error. The caller has no lock. */
static int wait_for_room(struct homa_svc *c, u64 *since, u64 *checked)
{
	u64 now = homa_clock_ns();

	if (!*since) {
		__atomic_fetch_add(&c->counters.ring_waits, 1, __ATOMIC_RELAXED);
		*since = *checked = now;
	}
	if (__atomic_load_n(&c->closing, __ATOMIC_SEQ_CST))
		return -ESHUTDOWN;
	if (now - *since > PATIENCE_NS)
		return -ENOBUFS;
	if (homa_gate_trylock(&c->lock)) {
		if (homa_svc_state(c) == HOMA_SVC_UP) {
			homa_svc_drain(c, NULL);
			homa_svc_fd_touch(c);
			if (now - *checked > CHECK_NS) {
				*checked = now;
				homa_svc_check(c);
			}
		}
		homa_gate_unlock(&c->lock);
	}
	sched_yield();
	return 0;
}

static int begin_slow(struct homa_svc *c, u32 staged, struct homa_svc_ring *ring)
{
	u64 since = 0, checked = 0;
	int rc;

	__atomic_fetch_add(&c->inside, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		homa_gate_unlock(&ring->lock);
		if (homa_svc_state(c) != HOMA_SVC_UP)
			rc = homa_svc_revive(c);
		else
			rc = wait_for_room(c, &since, &checked);
		if (rc)
			break;
		homa_gate_lock(&ring->lock);
		/* The handle may have been closed meanwhile; it waits for us only while we are
		 * inside. */
		if (unlikely(__atomic_load_n(&c->closing, __ATOMIC_SEQ_CST))) {
			homa_gate_unlock(&ring->lock);
			rc = -ESHUTDOWN;
			break;
		}
		if (homa_svc_state(c) == HOMA_SVC_UP && make_room(c, ring, staged))
			break;
	}
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_SEQ_CST);
	return rc;
}

int homa_svc_begin(struct homa_svc *c, u32 staged, struct homa_svc_ring **out)
{
	struct homa_svc_ring *ring = homa_svc_my_ring(c);
	u32 which = (u32)(ring - c->rings);
	int rc = 0;

	*out = ring;
	homa_gate_lock(&ring->lock);
	if (unlikely(homa_svc_state(c) != HOMA_SVC_UP ||
		     !make_room(c, ring, staged)))
		rc = begin_slow(c, staged, ring);
	if (unlikely(!rc && which >= __atomic_load_n(&c->sqs, __ATOMIC_RELAXED)))
		show_ring(c, which);
	return rc;
}

int homa_svc_try_begin(struct homa_svc *c, u32 staged, struct homa_svc_ring **out)
{
	struct homa_svc_ring *ring = homa_svc_my_ring(c);
	u32 which = (u32)(ring - c->rings);
	u32 state;

	*out = ring;
	homa_gate_lock(&ring->lock);
	state = homa_svc_state(c);
	if (unlikely(state != HOMA_SVC_UP || !make_room(c, ring, staged))) {
		homa_gate_unlock(&ring->lock);
		if (state == HOMA_SVC_UP)
			return -EAGAIN;
		/* This call does not attach again; a receive does. */
		return state == HOMA_SVC_LOST ? -ECONNREFUSED : homa_svc_error(c);
	}
	if (unlikely(which >= __atomic_load_n(&c->sqs, __ATOMIC_RELAXED)))
		show_ring(c, which);
	return 0;
}

struct homa_sqe *homa_svc_entry(struct homa_svc *c, struct homa_svc_ring *ring)
{
	const struct homa_svc_place *place = &c->att->submit[ring - c->rings];

	return (struct homa_sqe *)place->first +
	       (ring->tail & (place->entries - 1));
}

u8 *homa_svc_stage(struct homa_svc *c, struct homa_svc_ring *ring, u32 bytes,
		   u32 *offset)
{
	u32 which = (u32)(ring - c->rings);
	u32 need = stage_need(ring, bytes);
	u32 aligned = (bytes + STAGE_ALIGN - 1) & ~(STAGE_ALIGN - 1);

	ring->stage_tail += need;
	*offset = which * HOMA_SHM_STAGE +
		  (ring->stage_tail - aligned) % HOMA_SHM_STAGE;
	return c->att->seg[0] + *offset;
}

void homa_svc_submit(struct homa_svc *c, struct homa_svc_ring *ring)
{
	const struct homa_svc_place *place = &c->att->submit[ring - c->rings];
	struct homa_shm_header *h = c->att->queues;
	u32 wanted, state;

	ring->stage_end[ring->tail & (place->entries - 1)] = ring->stage_tail;
	__atomic_store_n(&place->index->tail, ++ring->tail, __ATOMIC_SEQ_CST);
	if (ring != c->rings && c->att->bell)
		homa_svc_ring_bell(c->att->bell);
	wanted = __atomic_load_n(&h->need_kick, __ATOMIC_SEQ_CST);
	state = __atomic_load_n(&h->state, __ATOMIC_RELAXED);
	if (unlikely(wanted & HOMA_SHM_KICK_SUBMIT))
		homa_svc_kick(c, c->att);
	homa_gate_unlock(&ring->lock);
	if (unlikely(state != HOMA_SHM_RUNNING)) {
		homa_gate_lock(&c->lock);
		homa_svc_check(c);
		homa_gate_unlock(&c->lock);
	}
}
