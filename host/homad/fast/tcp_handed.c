// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP segments that came in at a thread which does not run their instance. They are copied into a
 * ring, and the packet's buffer goes back to the device at once, so a slow thread holds up neither
 * the other's device nor Homa's packets.
 */
#include <stdlib.h>
#include <string.h>
#include "tcp_handed.h"

/* Records begin at multiples of this many bytes. */
#define RECORD_ALIGN 64u

/*
 * struct record - a segment in the ring, followed by its bytes
 * @bytes: bytes of the record from its begin to the next one's.
 * @with: what goes with it; its @port is NO_PORT: the record is only there to fill the ring up to
 *	its end.
 * @pkt: the packet, whose data lie behind the record.
 */
struct record {
	u32 bytes;
	struct homad_handing with;
	struct nic_rx pkt;
};

#define NO_PORT 0xffffffffu

struct homad_handed *homad_handed_new(u32 bytes)
{
	struct homad_handed *h =
		aligned_alloc(RECORD_ALIGN, sizeof(struct homad_handed) + bytes);

	if (!h)
		return NULL;
	h->tail = h->head = 0;
	h->bytes = bytes;
	return h;
}

/* ---- the thread that hands over ---- */

static u32 record_bytes(u32 length)
{
	return (u32)(sizeof(struct record) + length + RECORD_ALIGN - 1) /
	       RECORD_ALIGN * RECORD_ALIGN;
}

/* Returns the most bytes that the longest segment takes. Before the ring's end it may need a filler
 * that is nearly as long. */
static u32 longest(void)
{
	return 2 * record_bytes(HOMAD_HANDED_LONGEST);
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

bool homad_handed_put(struct homad_handed *h, const struct homad_handing *with,
		      const struct nic_rx *pkt)
{
	u32 used = h->tail - __atomic_load_n(&h->head, __ATOMIC_ACQUIRE);
	u32 at = h->tail & (h->bytes - 1), to_end = h->bytes - at;
	u32 bytes = record_bytes(homa_min_u32(pkt->len, HOMAD_HANDED_LONGEST));
	u32 filler = bytes > to_end ? to_end : 0;
	u32 spare = with->outside ? longest() : 0;
	struct record *r = (struct record *)(h->ring + at);

	if (pkt->len > HOMAD_HANDED_LONGEST ||
	    bytes + filler + spare > h->bytes - used)
		return false;
	if (filler) {
		/* A record's first fields always fit, because records are aligned. */
		r->bytes = filler;
		r->with.port = NO_PORT;
		r = (struct record *)h->ring;
	}
	r->bytes = bytes;
	r->with = *with;
	r->pkt = *pkt;
	r->pkt.data = (const u8 *)(r + 1);
	r->pkt.pieces = NULL;
	copy_all(pkt, (u8 *)(r + 1));
	__atomic_store_n(&h->tail, h->tail + filler + bytes, __ATOMIC_RELEASE);
	return true;
}

bool homad_handed_room(const struct homad_handed *h)
{
	u32 used = h->tail - __atomic_load_n(&h->head, __ATOMIC_ACQUIRE);

	return h->bytes - used >= longest();
}

/* ---- the thread that runs the instance ---- */

const struct nic_rx *homad_handed_first(struct homad_handed *h,
					struct homad_handing *with)
{
	u32 tail = __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE);
	struct record *r;

	for (; h->head != tail; homad_handed_drop(h)) {
		r = (struct record *)(h->ring + (h->head & (h->bytes - 1)));
		if (r->with.port == NO_PORT)
			continue;
		*with = r->with;
		return &r->pkt;
	}
	return NULL;
}

void homad_handed_drop(struct homad_handed *h)
{
	const struct record *r =
		(struct record *)(h->ring + (h->head & (h->bytes - 1)));

	__atomic_store_n(&h->head, h->head + r->bytes, __ATOMIC_RELEASE);
}
