// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hostile lives inside the shared memory: every index, length and token a lie. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "hostile.h"

/* Never the byte that makes the echo server obey (API_ORDER). */
static void fill(struct hostile *h, struct raw *r)
{
	size_t i, step = 1 + below(h, 4000);

	for (i = 0; i < r->answer.data_bytes; i += step)
		r->data[i] = (uint8_t)below(h, 128);
}

/* Push and take without looking closely. */
static void push(struct hostile *h, struct raw *r, int evil)
{
	struct homa_sqe sqe = hostile_sqe(h, r, evil);
	struct homa_cqe cqe;

	raw_push(r, below(h, HOMA_SHM_SQS), &sqe);
	while (below(h, 3) && raw_next(r, &cqe, 0))
		raw_release(r, &cqe);
}

void live_commands(struct hostile *h)
{
	struct raw r;
	int evil = (int)below(h, 4);

	hostile_attach(h, &r);
	fill(h, &r);
	while (going(h) && !raw_evicted(&r, 0))
		push(h, &r, below(h, 8) ? 0 : evil);
	raw_close(&r);
}

/* An index of any ring, the reader's or the writer's, gets any value. */
void live_indices(struct hostile *h)
{
	struct raw r;

	hostile_attach(h, &r);
	fill(h, &r);
	while (going(h) && !raw_evicted(&r, 0)) {
		struct homa_shm_ring *rings = r.q->h.sq;
		/* sq, release and cq lie one behind the other. */
		struct homa_shm_ring *ring = &rings[below(h, HOMA_SHM_SQS + 2)];
		uint32_t *word = below(h, 2) ? &ring->tail : &ring->head;
		uint32_t value = (uint32_t)bits(h);

		push(h, &r, 0);
		if (below(h, 2))
			value = *word + (uint32_t)below(h, 5) - 2;
		else if (below(h, 2))
			value = *word + (uint32_t)bits(h);
		if (below(h, 5) == 0)
			__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
		if (below(h, 5) == 0)
			__atomic_store_n(&rings[0].bell, (uint32_t)bits(h),
					 __ATOMIC_SEQ_CST);
		r.q->h.sqs = (uint32_t)bits(h);
		raw_kick(&r);
	}
	raw_close(&r);
}

void live_header(struct hostile *h)
{
	struct raw r;

	hostile_attach(h, &r);
	while (going(h)) {
		uint32_t *words = (uint32_t *)r.q;
		size_t i = below(h, offsetof(struct homa_shm_header, sq) / 4);
		size_t table = below(h, sizeof(struct homa_shm_place) *
						r.num_places / 4);

		__atomic_store_n(&words[i], (uint32_t)bits(h), __ATOMIC_SEQ_CST);
		/* Where its rings are is homad's own knowledge. */
		__atomic_store_n((uint32_t *)r.places + table,
				 (uint32_t)bits(h), __ATOMIC_SEQ_CST);
		if (below(h, 20) == 0)
			push(h, &r, 0);
	}
	raw_close(&r);
}

struct scribbler {
	struct raw *r;
	uint64_t seed;
	bool stop;
};

/* Rewrites entries that were submitted, and message bytes, while homad reads. */
static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	struct hostile h = { .rng = s->seed };

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint32_t ring = below(&h, HOMA_SHM_SQS);
		const struct raw_ring *place = &s->r->submit[ring];
		const struct raw_ring *back = &s->r->release;
		struct homa_sqe *first = place->first;
		uint8_t *entry = (uint8_t *)&first[below(&h, place->entries)];
		int i;

		for (i = 0; i < 50; i++) {
			volatile uint32_t *word =
				(uint32_t *)(entry + 4 * below(&h, 12));
			uint32_t old = *word;

			*word = (uint32_t)bits(&h);
			*word = old;
		}
		memset(s->r->data + below(&h, 60000), (int)below(&h, 128), 1000);
		((uint32_t *)back->first)[below(&h, back->entries)] =
			below(&h, 3) ? below(&h, 64) << 16 : (uint32_t)bits(&h);
	}
	return NULL;
}

void live_scribble(struct hostile *h)
{
	struct scribbler s = { .seed = bits(h) };
	pthread_t thread;
	struct raw r;

	hostile_attach(h, &r);
	s.r = &r;
	if (pthread_create(&thread, NULL, scribble, &s))
		raw_die("no thread");
	while (going(h) && !raw_evicted(&r, 0))
		push(h, &r, 0);
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	raw_close(&r);
}

/* Asks and is asked, and never looks at what comes. */
void live_unread(struct hostile *h)
{
	uint16_t port = (uint16_t)(20000 + below(h, 1000));
	bool serves;
	struct raw r;
	int sent = 0;

	hostile_attach(h, &r);
	serves = !raw_bind(&r, port);
	while (going(h) && sent < 4000) {
		struct homa_sqe sqe = hostile_sqe(h, &r, 0);

		if (serves && below(h, 4)) {
			/* To itself: requests that nobody ever answers. */
			memcpy(sqe.ip, r.answer.ip, 16);
			sqe.port = port;
		}
		if (raw_push(&r, below(h, HOMA_SHM_SQS), &sqe))
			sent++;
		else
			usleep(100);
	}
	raw_close(&r);
}

void live_unreleased(struct hostile *h)
{
	struct homa_cqe cqe;
	struct raw r;

	hostile_attach(h, &r);
	while (going(h)) {
		struct homa_sqe sqe = hostile_sqe(h, &r, 0);

		raw_push(&r, 0, &sqe);
		while (raw_next(&r, &cqe, 0))
			;
	}
	raw_close(&r);
}

/* Gives back pages that it does not have, twice, or that are no pages. */
void live_release_lies(struct hostile *h)
{
	struct homa_cqe cqe = { .num_pages = 0 };
	struct raw r;

	hostile_attach(h, &r);
	while (going(h) && !raw_evicted(&r, 0)) {
		struct homa_sqe sqe = hostile_sqe(h, &r, 0);

		raw_push(&r, 0, &sqe);
		if (!raw_next(&r, &cqe, 1))
			continue;
		raw_release(&r, &cqe);
		if (below(h, 4))
			continue;
		cqe.num_pages = 1 + below(h, HOMA_SHM_PAGES);
		cqe.pages[below(h, HOMA_SHM_PAGES)] = (uint32_t)bits(h);
		raw_release(&r, &cqe);
	}
	raw_close(&r);
}

/* Answers and aborts what belongs to others, or to nobody. */
void live_forged_replies(struct hostile *h)
{
	struct raw r;

	hostile_attach(h, &r);
	while (going(h)) {
		struct homa_sqe sqe = hostile_sqe(h, &r, 0);

		static const uint8_t ops[] = { HOMA_SQE_REPLY, HOMA_SQE_REPLY,
					       HOMA_SQE_REJECT, HOMA_SQE_ABORT };

		sqe.op = ops[below(h, 4)];
		sqe.token = (uint64_t)below(h, 2000) << 16 | below(h, 64);
		if (below(h, 50) == 0)
			sqe.token = bits(h);
		if (sqe.op != HOMA_SQE_REPLY)
			sqe.length = below(h, 20);
		if (!raw_push(&r, below(h, HOMA_SHM_SQS), &sqe))
			usleep(50);
	}
	raw_close(&r);
}
