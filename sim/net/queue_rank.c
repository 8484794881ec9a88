// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * pFabric's port (Alizadeh et al., SIGCOMM 2013, section 3): a small buffer
 * without order. Sent next is the earliest packet of the message to which the
 * packet with the smallest rank belongs, so that a message is not reordered by
 * its own progress. When the buffer is full the packet with the largest rank
 * goes, be it the arriving one.
 *
 * The buffer is an array in order of arrival that is searched, as the paper
 * proposes for hardware: some twenty entries of 24 bytes side by side cost
 * less than keeping any order among them. Of equals the earlier is sent and
 * the later is dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_impl.h"

#define FIRST_ENTRIES 32u

struct rank_entry {
	/* The packet's rank; the least goes first. */
	u64 rank;
	/* Serial number of the packet's message, whose first packet here goes before others of
	 * it; 0: it has no message. */
	u64 serial;
	/* The packet. */
	struct sim_pkt *pkt;
};

struct rank_queue {
	/* Number of entries that are used, and for which there is memory. */
	u32 count, max;
	/* The packets that wait. */
	struct rank_entry *entry;
};

int sim_rank_init(struct sim *sim, struct sim_port *port)
{
	struct rank_queue *q = calloc(1, sizeof(*q));

	(void)sim;
	if (!q)
		return -ENOMEM;
	port->priv = q;
	q->entry = malloc(FIRST_ENTRIES * sizeof(*q->entry));
	if (!q->entry)
		return -ENOMEM;
	q->max = FIRST_ENTRIES;
	return 0;
}

void sim_rank_free(struct sim_port *port)
{
	struct rank_queue *q = port->priv;

	if (q)
		free(q->entry);
	free(q);
	port->priv = NULL;
}

static struct sim_pkt *rank_remove(struct sim *sim, struct sim_port *port, u32 i)
{
	struct rank_queue *q = port->priv;
	struct sim_pkt *pkt = q->entry[i].pkt;

	q->count--;
	memmove(&q->entry[i], &q->entry[i + 1], (q->count - i) * sizeof(*q->entry));
	sim_port_account(sim, port, -(s64)pkt->wire, -1);
	return pkt;
}

/* Returns the last one of the packets with the largest rank; the queue must not be empty. */
static u32 rank_largest(const struct rank_queue *q)
{
	u32 i, best = 0;

	for (i = 1; i < q->count; i++)
		if (q->entry[i].rank >= q->entry[best].rank)
			best = i;
	return best;
}

static bool rank_grow(struct rank_queue *q)
{
	void *more = realloc(q->entry, 2 * q->max * sizeof(*q->entry));

	if (!more)
		return false;
	q->entry = more;
	q->max *= 2;
	return true;
}

static void rank_put(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	struct rank_queue *q = port->priv;

	while (!sim_port_room(sim, port, pkt->wire)) {
		u32 worst = q->count ? rank_largest(q) : 0;

		if (!q->count || q->entry[worst].rank <= pkt->rank) {
			sim_drop(sim, port, pkt);
			return;
		}
		sim_drop(sim, port, rank_remove(sim, port, worst));
	}
	if (q->count == q->max && !rank_grow(q)) {
		sim_drop(sim, port, pkt);
		return;
	}
	q->entry[q->count].rank = pkt->rank;
	q->entry[q->count].serial = pkt->msg_serial;
	q->entry[q->count].pkt = pkt;
	q->count++;
	sim_port_account(sim, port, pkt->wire, 1);
}

static struct sim_pkt *rank_get(struct sim *sim, struct sim_port *port)
{
	struct rank_queue *q = port->priv;
	u32 i, best = 0;

	if (!q->count)
		return NULL;
	for (i = 1; i < q->count; i++)
		if (q->entry[i].rank < q->entry[best].rank)
			best = i;
	for (i = 0; i < best; i++)
		if (q->entry[i].serial == q->entry[best].serial && q->entry[i].serial)
			break;
	return rank_remove(sim, port, i);
}

const struct sim_queue sim_queue_rank = { "rank", rank_put, rank_get };
