// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Between the driver's queues and the card. A descriptor is copied, then checked, then believed.
 * Super-frames go to the card's first input, others to the second, so that they do not wait behind
 * them.
 */
#include "card.h"

#include <string.h>
#include <unistd.h>

static void call(const struct card_queue *q)
{
	uint64_t one = 1;

	if (write(q->call, &one, sizeof(one)) < 0)
		return; /* The counter is full, so the driver will wake. */
}

static void complete(struct card *c, uint32_t queue, uint32_t slot,
		     uint32_t status, uint32_t packets)
{
	struct card_queue *q = &c->q[queue];
	struct mnic_done done = { .slot = slot,
				  .packets = (uint16_t)packets,
				  .status = (uint8_t)status };

	/* A driver has no more frames here than the ring has entries, unless it lies. */
	if (mnic_room(&q->shared->done_ring, q->done) <= 0) {
		c->spoiled = true;
		return;
	}
	q->flying[slot] = false;
	q->shared->done[q->done++ % MNIC_ENTRIES] = done;
	if (mnic_publish(&q->shared->done_ring, q->done))
		call(q);
}

/* Give the card a frame of the driver; returns false if its input is not free. */
static bool feed(struct card *c, uint32_t queue, const struct mnic_send *send)
{
	struct card_queue *q = &c->q[queue];
	const uint8_t *frame =
		c->memory + mnic_slot_at(&c->hello, queue, false, send->slot);
	enum model_input input = send->seg ? MODEL_SUPER : MODEL_OTHER;
	struct card_tag *tag = &c->tags[c->next_tag];

	if (!model_takes(c->model, input) || (send->seg && tag->used))
		return false;
	model_put(c->model, input, frame, send->len, send->seg, c->next_tag);
	c->counts.sent++;
	if (!send->seg) {
		complete(c, queue, send->slot, MNIC_SENT, 1);
		return true;
	}
	c->counts.super++;
	q->flying[send->slot] = true;
	*tag = (struct card_tag){ true, c->counts.drivers, queue, send->slot };
	c->next_tag = (c->next_tag + 1) % CARD_TAGS;
	return true;
}

/* The queue whose next frame has the highest priority; -1 if there is none. It takes out
 * descriptors that cannot be. */
static int choose(struct card *c, struct mnic_send *best)
{
	int chosen = -1;

	for (uint32_t i = 0; i < c->hello.queues && !c->spoiled; i++) {
		struct card_queue *q = &c->q[i];
		int waiting = mnic_waiting(&q->shared->send_ring, q->sent);
		struct mnic_send send;

		if (waiting < 0)
			c->spoiled = true;
		if (waiting <= 0)
			continue;
		send = q->shared->send[q->sent % MNIC_ENTRIES];
		if (send.slot >= c->hello.slots || q->flying[send.slot]) {
			c->spoiled = true; /* There is no slot to complete. */
			c->counts.invalid++;
			return -1;
		}
		if (!mnic_send_ok(&send, c->hello.slots, c->options.features)) {
			q->sent++;
			mnic_consumed(&q->shared->send_ring, q->sent);
			c->counts.invalid++;
			complete(c, i, send.slot, MNIC_INVALID, 0);
			continue;
		}
		if (chosen >= 0 && send.prio <= best->prio)
			continue;
		chosen = (int)i;
		*best = send;
	}
	return chosen;
}

bool card_send(struct card *c)
{
	struct mnic_send send = { 0 };
	int queue = choose(c, &send);
	struct card_queue *q;

	if (queue < 0 || c->spoiled)
		return false;
	q = &c->q[queue];
	if (!feed(c, (uint32_t)queue, &send))
		return false;
	q->sent++;
	mnic_consumed(&q->shared->send_ring, q->sent);
	return true;
}

void card_done(struct card *c, uint32_t number, uint32_t status, uint32_t packets)
{
	static const uint8_t said[] = { MNIC_SENT, MNIC_REFUSED, MNIC_CUT };
	struct card_tag *tag = &c->tags[number % CARD_TAGS];

	/* The driver may have gone, and another may have come. */
	if (tag->used && c->driver >= 0 && tag->driver == c->counts.drivers)
		complete(c, tag->queue, tag->slot,
			 status < sizeof(said) ? said[status] : MNIC_INVALID,
			 packets);
	tag->used = false;
}

/* An empty slot of the driver's; -1 if there is none. */
static int empty_slot(struct card *c, struct card_queue *q)
{
	int waiting = mnic_waiting(&q->shared->post_ring, q->posted);

	for (; waiting > 0; waiting--) {
		struct mnic_post post =
			q->shared->post[q->posted++ % MNIC_ENTRIES];

		if (post.slot >= c->hello.slots || q->ours[post.slot]) {
			waiting = -1;
			break;
		}
		q->ours[post.slot] = true;
	}
	if (waiting < 0) {
		c->spoiled = true;
		c->counts.invalid++;
		return -1;
	}
	mnic_consumed(&q->shared->post_ring, q->posted);
	for (uint32_t slot = 0; slot < c->hello.slots; slot++)
		if (q->ours[slot])
			return (int)slot;
	return -1;
}

void card_got(struct card *c, const uint8_t *frame, uint32_t len,
	      const struct model_got *said, const struct model_piece *list)
{
	uint32_t queue = said->queue % c->hello.queues;
	struct card_queue *q = &c->q[queue];
	struct mnic_got got = { .time = said->time,
				.len = len,
				.hash = said->hash,
				.pieces = said->pieces,
				.seg = said->seg,
				.class_ = said->class_,
				.bad = said->bad,
				.at = said->at };
	uint8_t *to;
	int slot;

	if (c->driver < 0 || c->spoiled)
		return;
	slot = empty_slot(c, q);
	if (slot < 0 || len > MNIC_FRAME_MAX || said->pieces > MNIC_PIECES_MAX ||
	    mnic_room(&q->shared->got_ring, q->got) <= 0) {
		c->counts.no_slot++;
		return;
	}
	to = c->memory + mnic_slot_at(&c->hello, queue, true, (uint32_t)slot);
	memcpy(to, frame, len);
	if (said->pieces > 1)
		memcpy(to + MNIC_LIST_AT, list, said->pieces * sizeof(*list));
	q->ours[slot] = false;
	got.slot = (uint32_t)slot;
	q->shared->got[q->got++ % MNIC_ENTRIES] = got;
	c->counts.got++;
	if (said->pieces > 1) {
		c->counts.units++;
		c->counts.pieces += said->pieces;
	}
	if (mnic_publish(&q->shared->got_ring, q->got))
		call(q);
}

bool card_may_sleep(struct card *c)
{
	bool idle = true;

	for (uint32_t i = 0; c->driver >= 0 && i < c->hello.queues; i++)
		if (!mnic_sleep(&c->q[i].shared->send_ring, c->q[i].sent))
			idle = false;
	return idle;
}
