// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Reading the state of a handle out of the file that another process wrote, see state.h. It is
 * copied once and each record is checked, so that no index leaves a table. Other mistakes in it
 * only harm the user who wrote it, because homad checks what the handle does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "state.h"

/* struct in - the file's bytes */
struct in {
	/* The bytes of the file. */
	u8 *bytes;
	/* The number of bytes that were read so far, and of all. */
	size_t at, end;
};

static int load(struct in *in, int fd)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || st.st_size <= 0 ||
	    st.st_size > (off_t)HOMA_SHM_STATE_MAX)
		return -EBADMSG;
	in->bytes = malloc((size_t)st.st_size);
	if (!in->bytes)
		return -ENOMEM;
	while (in->end < (size_t)st.st_size) {
		n = pread(fd, in->bytes + in->end, (size_t)st.st_size - in->end,
			  (off_t)in->end);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EBADMSG;
		in->end += (size_t)n;
	}
	return 0;
}

/* Read the next @bytes bytes; false if fewer are left. */
static bool get(struct in *in, void *to, size_t bytes)
{
	if (bytes > in->end - in->at)
		return false;
	memcpy(to, in->bytes + in->at, bytes);
	in->at += bytes;
	return true;
}

static bool read_rings(struct in *in, struct homa_svc *c)
{
	struct homa_svc_state_ring r;
	u32 i;

	for (i = 0; i < HOMA_SHM_SQS; i++) {
		struct homa_svc_ring *ring = &c->rings[i];

		if (!get(in, &r, sizeof(r)) ||
		    r.entries != c->att->submit[i].entries ||
		    r.tail - r.head > r.entries ||
		    r.stage_tail - r.stage_head > HOMA_SHM_STAGE ||
		    !get(in, ring->stage_end, r.entries * sizeof(u32)))
			return false;
		ring->tail = r.tail;
		ring->head = r.head;
		ring->stage_tail = r.stage_tail;
		ring->stage_head = r.stage_head;
	}
	return true;
}

static bool read_slot(struct in *in, struct homa_svc *c)
{
	struct homa_svc_state_slot s;
	struct homa_svc_slot *slot;
	u32 index;

	if (!get(in, &s, sizeof(s)))
		return false;
	index = (u32)(s.token & 0xffff);
	if (!s.token || (s.token & HOMA_SVC_ANSWERED) || index >= c->fresh ||
	    s.id < 2 || (s.id & 1) || s.state > HOMA_SVC_DONE)
		return false;
	slot = &c->slots[index];
	if (slot->token)
		return false;
	slot->id = s.id;
	slot->token = s.token;
	slot->cookie = s.cookie;
	memcpy(slot->peer.ip, s.ip, sizeof(s.ip));
	slot->peer.encap = s.encap;
	slot->port = s.port;
	slot->length = s.length;
	slot->state = s.state;
	slot->gone = s.gone != 0;
	slot->is_private = s.is_private != 0;
	homa_svc_slot_name(c, index);
	return true;
}

/* Mark the piece of @bytes at @page as @what; false if it cannot be one or is marked already. */
static bool mark(struct homa_svc *c, u32 page, u32 bytes, u8 what)
{
	u64 size = c->att->pool_bytes;

	if (page % HOMA_SVC_GRANULE || page >= size || bytes > size - page ||
	    c->att->out[page / HOMA_SVC_GRANULE] != HOMA_SVC_PIECE_BACK)
		return false;
	c->att->out[page / HOMA_SVC_GRANULE] = what;
	return true;
}

/* Mark the pieces of a message as the application's; false if one lies outside, or twice. */
static bool own_pieces(struct homa_svc *c, const struct homa_cqe *cqe)
{
	u32 i, left = cqe->length, n;

	if (cqe->num_pages > HOMA_SHM_PAGES ||
	    cqe->length > cqe->num_pages * 65536u)
		return false;
	for (i = 0; i < cqe->num_pages; i++) {
		n = homa_min_u32(left, 65536);
		left -= n;
		if (!mark(c, cqe->pages[i], n, HOMA_SVC_PIECE_OUT))
			return false;
	}
	return true;
}

static bool read_item(struct in *in, struct homa_svc *c)
{
	struct homa_svc_state_item i;
	struct homa_svc_slot *slot;

	if (!get(in, &i, sizeof(i)) || i.order >= c->order ||
	    !own_pieces(c, &i.cqe))
		return false;
	if (i.cqe.kind == HOMA_CQE_REQUEST)
		return homa_svc_queue_again(c, NULL, &i.cqe, i.order);
	if (i.cqe.kind != HOMA_CQE_RESPONSE && i.cqe.kind != HOMA_CQE_FAILED)
		return false;
	slot = homa_svc_slot(c, i.cqe.token);
	if (!i.cqe.token || !slot || slot->state != HOMA_SVC_DONE ||
	    c->slot_items[slot - c->slots].pool)
		return false;
	return homa_svc_queue_again(c, &c->slot_items[slot - c->slots], &i.cqe,
				    i.order);
}

static bool read_request(struct in *in, struct homa_svc *c)
{
	u64 word;

	if (!get(in, &word, sizeof(word)) || !word)
		return false;
	c->requests[word & 0xffff] = word;
	return true;
}

static bool read_kept(struct in *in, struct homa_svc *c)
{
	u32 page;

	if (!get(in, &page, sizeof(page)) ||
	    !mark(c, page, 0, HOMA_SVC_PIECE_KEPT))
		return false;
	c->kept++;
	return true;
}

static bool read_heaps(struct in *in, struct homa_svc *c)
{
	struct homa_svc_state_heap h;
	u32 i;

	for (i = 0; i < c->att->num_segs; i++) {
		struct homa_svc_heap *heap = &c->att->heap[i];

		if (!get(in, &h, sizeof(h)) || h.units != heap->units ||
		    !get(in, heap->tags, h.units * sizeof(u32)) ||
		    homa_svc_heap_check(heap, h.rover, h.used))
			return false;
	}
	return true;
}

/* Does each of our requests that is over have its outcome? */
static bool all_done_have_items(const struct homa_svc *c)
{
	u32 i;

	for (i = 0; i < c->fresh; i++)
		if (c->slots[i].token && c->slots[i].state == HOMA_SVC_DONE &&
		    !c->slot_items[i].pool)
			return false;
	return true;
}

static bool read_head(struct homa_svc *c, const struct homa_svc_state_head *h)
{
	if (h->fresh > c->max_rpcs || h->sqs < 1 || h->sqs > HOMA_SHM_SQS ||
	    h->segs != c->att->num_segs || !h->generation ||
	    h->pieces_released > h->pieces_taken || !h->numbers ||
	    h->release_tail - h->release_shown > c->att->release.entries ||
	    (h->rcvbuf_pages &&
	     (u64)h->rcvbuf_pages * 65536 != c->att->pool_bytes))
		return false;
	c->fresh = h->fresh;
	c->numbers = h->numbers;
	c->order = h->order;
	c->rx_bytes = h->rx_bytes;
	c->failed = h->failed;
	c->att->pieces_taken = h->pieces_taken;
	c->att->pieces_released = h->pieces_released;
	c->att->generation = c->generations = h->generation;
	c->cq_head = c->cq_tail = h->cq_head;
	c->release_tail = h->release_tail;
	c->release_shown = h->release_shown;
	c->sqs = h->sqs;
	c->listen = h->listen;
	c->bound = h->bound;
	c->shared_port = h->shared_port;
	c->rcvbuf = (size_t)h->rcvbuf_pages * 65536;
	return true;
}

/* Read @num records of a kind by @one. */
static bool each(struct in *in, struct homa_svc *c, u32 num,
		 bool (*one)(struct in *in, struct homa_svc *c))
{
	bool right = true;

	while (right && num--)
		right = one(in, c);
	return right;
}

static int read_all(struct in *in, struct homa_svc *c, u64 *serial)
{
	struct homa_svc_state_head h;

	if (!get(in, &h, sizeof(h)) || h.magic != HOMA_SVC_STATE_MAGIC)
		return -EBADMSG;
	if (h.version != HOMA_SVC_STATE_VERSION)
		return -EPROTO;
	if (h.bytes != in->end || !read_head(c, &h) || !read_rings(in, c) ||
	    !each(in, c, h.slots, read_slot) || !each(in, c, h.items, read_item) ||
	    !all_done_have_items(c) || !each(in, c, h.requests, read_request) ||
	    !each(in, c, h.kept, read_kept) || !read_heaps(in, c) ||
	    in->at != in->end)
		return -EBADMSG;
	*serial = h.serial;
	return 0;
}

int homa_svc_state_read(struct homa_svc *c, int fd, u64 *serial)
{
	struct in in = { 0 };
	int rc = load(&in, fd);

	if (!rc)
		rc = read_all(&in, c, serial);
	free(in.bytes);
	/* Put the places between those in use into the free list. */
	if (!rc)
		homa_svc_slots_limit(c, c->max_rpcs);
	return rc;
}
