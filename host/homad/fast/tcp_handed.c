// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP segments that came in at a thread which has no TCP. They are copied into a ring of that
 * thread, and the packet's buffer goes back to the device at once, so a slow first thread
 * holds up neither the device nor Homa's packets.
 */
#include <errno.h>
#include <stdlib.h>
#include "fast.h"
#include "homad_tcp.h"
#include "tcp_handed.h"
#include "tcp_listener.h"

/* Records begin at multiples of this many bytes. */
#define RECORD_ALIGN 64u
#define RING_MASK (HOMAD_HANDED_BYTES - 1)
/* The longest segment with its header, bytes. */
#define LONGEST 65536u

/*
 * struct record - a segment in the ring, followed by its bytes
 * @bytes: bytes of the record from its begin to the next one's.
 * @port: index of the port that it came in by; NO_PORT: the record is only there to fill
 *	the ring up to its end.
 * @pkt: the packet, whose data lie behind the record.
 */
struct record {
	u32 bytes;
	u32 port;
	struct nic_rx pkt;
};

#define NO_PORT 0xffffffffu
/* Most segments that are taken out of one ring in a round. */
#define TURN (HOMAD_RX_BATCHES * HOMAD_BATCH)

int homad_handed_make(struct homad *d)
{
	size_t bytes = (sizeof(struct homad_handed) + RECORD_ALIGN - 1) /
		       RECORD_ALIGN * RECORD_ALIGN;
	u32 i;

	for (i = 1; i < d->num_threads; i++) {
		struct homad_handed *h = aligned_alloc(RECORD_ALIGN, bytes);

		if (!h)
			return -ENOMEM;
		h->tail = h->head = 0;
		d->threads[i]->handed = h;
	}
	return 0;
}

/* ---- the thread that hands over ---- */

static u32 record_bytes(u32 length)
{
	return (u32)(sizeof(struct record) + length + RECORD_ALIGN - 1) /
	       RECORD_ALIGN * RECORD_ALIGN;
}

/* Copies the bytes of @pkt, which may lie in pieces, to @to. */
static void copy_all(const struct nic_rx *pkt, u8 *to)
{
	const struct nic_piece *piece = pkt->pieces;
	u32 left = pkt->len, here;

	if (!piece) {
		memcpy(to, pkt->data, left);
		return;
	}
	for (; left; piece++, to += here, left -= here) {
		here = homa_min_u32(piece->len, left);
		memcpy(to, piece->data, here);
	}
}

bool homad_handed_put(struct homad_handed *h, u32 port, const struct nic_rx *pkt)
{
	u32 used = h->tail - __atomic_load_n(&h->head, __ATOMIC_ACQUIRE);
	u32 at = h->tail & RING_MASK, to_end = HOMAD_HANDED_BYTES - at;
	u32 bytes = record_bytes(homa_min_u32(pkt->len, LONGEST));
	u32 filler = bytes > to_end ? to_end : 0;
	struct record *r = (struct record *)(h->ring + at);

	if (pkt->len > LONGEST || bytes + filler > HOMAD_HANDED_BYTES - used)
		return false;
	if (filler) {
		/* A record's first two fields always fit, because records are aligned. */
		r->bytes = filler;
		r->port = NO_PORT;
		r = (struct record *)h->ring;
	}
	r->bytes = bytes;
	r->port = port;
	r->pkt = *pkt;
	r->pkt.data = (const u8 *)(r + 1);
	r->pkt.pieces = NULL;
	copy_all(pkt, (u8 *)(r + 1));
	__atomic_store_n(&h->tail, h->tail + filler + bytes, __ATOMIC_RELEASE);
	return true;
}

int homad_tcp_hand(struct homad_thread *t, struct homad_port *port, int n)
{
	struct nic_rx taken[HOMAD_BATCH];
	int i, num, homa = homad_tcp_part(t, n, taken, &num);

	for (i = 0; i < num; i++) {
		if (likely(homad_handed_put(t->handed, port->index, &taken[i])))
			t->counters.tcp_handed++;
		else
			t->counters.tcp_handed_lost++;
	}
	if (num)
		nic_rx_release(port->nic, taken, num);
	return homa;
}

/* ---- the first thread ---- */

const struct nic_rx *homad_handed_first(struct homad_handed *h, u32 *port)
{
	u32 tail = __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE);
	struct record *r;

	for (; h->head != tail; homad_handed_drop(h)) {
		r = (struct record *)(h->ring + (h->head & RING_MASK));
		if (r->port == NO_PORT)
			continue;
		*port = r->port;
		return &r->pkt;
	}
	return NULL;
}

void homad_handed_drop(struct homad_handed *h)
{
	struct record *r = (struct record *)(h->ring + (h->head & RING_MASK));

	__atomic_store_n(&h->head, h->head + r->bytes, __ATOMIC_RELEASE);
}

/* Takes in as many segments of one ring as of one port. */
static int take(struct homad_thread *t, struct homad_handed *h)
{
	const struct nic_rx *pkt;
	u32 port;
	int n = 0;

	while (n < TURN && (pkt = homad_handed_first(h, &port))) {
		homad_tcp_segment(t, &t->d->ports[port], pkt);
		homad_handed_drop(h);
		n++;
	}
	/* An answer for which a timer is due may be among those that are left. */
	if (n == TURN && homad_handed_first(h, &port))
		t->rx_left = true;
	return n;
}

int homad_tcp_handed(struct homad_thread *t)
{
	u32 i;
	int n = 0;

	for (i = 1; i < t->d->num_threads; i++)
		n += take(t, t->d->threads[i]->handed);
	if (n)
		homad_listeners_accept(t);
	return n;
}
