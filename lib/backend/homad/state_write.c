// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Writing the state of a handle into a file, see state.h. The caller has all its locks. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "state.h"

/* struct out - bytes that will be written to the file */
struct out {
	/* The bytes so far. */
	u8 *bytes;
	/* The number of bytes so far, and of those that have memory. */
	size_t used, room;
	/* -ENOMEM when memory was lacking, or 0. */
	int rc;
};

static void put(struct out *out, const void *from, size_t bytes)
{
	size_t room = out->room ? out->room : 65536;
	u8 *grown;

	while (room < out->used + bytes)
		room *= 2;
	if (room != out->room && !out->rc) {
		grown = realloc(out->bytes, room);
		if (grown) {
			out->bytes = grown;
			out->room = room;
		} else {
			out->rc = -ENOMEM;
		}
	}
	if (out->rc)
		return;
	memcpy(out->bytes + out->used, from, bytes);
	out->used += bytes;
}

static void put_rings(struct out *out, const struct homa_svc *c)
{
	u32 i;

	for (i = 0; i < HOMA_SHM_SQS; i++) {
		const struct homa_svc_ring *ring = &c->rings[i];
		struct homa_svc_state_ring r = {
			.entries = c->att->submit[i].entries,
			.tail = ring->tail,
			.head = ring->head,
			.stage_tail = ring->stage_tail,
			.stage_head = ring->stage_head,
		};

		put(out, &r, sizeof(r));
		put(out, ring->stage_end, r.entries * sizeof(u32));
	}
}

static u32 put_slots(struct out *out, const struct homa_svc *c)
{
	u32 i, n = 0;

	for (i = 0; i < c->fresh; i++) {
		const struct homa_svc_slot *slot = &c->slots[i];
		struct homa_svc_state_slot s = {
			.token = slot->token,
			.id = slot->id,
			.cookie = slot->cookie,
			.length = slot->length,
			.encap = slot->peer.encap,
			.port = slot->port,
			.state = slot->state,
			.gone = slot->gone,
			.is_private = slot->is_private,
		};

		if (!slot->token)
			continue;
		memcpy(s.ip, slot->peer.ip, sizeof(s.ip));
		put(out, &s, sizeof(s));
		n++;
	}
	return n;
}

static void put_item(struct out *out, const struct homa_svc_item *item)
{
	struct homa_svc_state_item i = { .order = item->order, .cqe = item->cqe };

	put(out, &i, sizeof(i));
}

static u32 put_list(struct out *out, const struct homa_list *first)
{
	const struct homa_list *node;
	u32 n = 0;

	for (node = first->next; node != first; node = node->next, n++)
		put_item(out, homa_container_of(node, const struct homa_svc_item,
						list));
	return n;
}

/* Write the messages that nobody has taken: first those in lists, in their order, then those that
 * only a receive by id may take. */
static u32 put_items(struct out *out, const struct homa_svc *c)
{
	u32 i, n;

	n = put_list(out, &c->ready[HOMA_SVC_REQUESTS]);
	n += put_list(out, &c->ready[HOMA_SVC_RESPONSES]);
	for (i = 0; i < c->fresh; i++) {
		if (!c->slots[i].token || c->slots[i].state != HOMA_SVC_DONE ||
		    homa_list_linked(&c->slot_items[i].list))
			continue;
		put_item(out, &c->slot_items[i]);
		n++;
	}
	return n;
}

static u32 put_requests(struct out *out, const struct homa_svc *c)
{
	u32 i, n = 0;

	for (i = 0; i < HOMA_SVC_SLOTS; i++) {
		if (!c->requests[i])
			continue;
		put(out, &c->requests[i], sizeof(u64));
		n++;
	}
	return n;
}

static u32 put_kept(struct out *out, const struct homa_svc *c)
{
	u32 i, offset, n = 0, pieces;

	pieces = c->kept ? (u32)(c->att->pool_bytes / HOMA_SVC_GRANULE) : 0;
	for (i = 0; i < pieces; i++) {
		if (c->att->out[i] != HOMA_SVC_PIECE_KEPT)
			continue;
		offset = i * HOMA_SVC_GRANULE;
		put(out, &offset, sizeof(offset));
		n++;
	}
	return n;
}

static void put_heaps(struct out *out, const struct homa_svc *c)
{
	u32 i;

	for (i = 0; i < c->att->num_segs; i++) {
		const struct homa_svc_heap *heap = &c->att->heap[i];
		struct homa_svc_state_heap h = { heap->units, heap->rover,
						 heap->used };

		put(out, &h, sizeof(h));
		if (h.units)
			put(out, heap->tags, h.units * sizeof(u32));
	}
}

/* Write the bytes to a file whose size nobody can change; returns its descriptor or an error. */
static int to_file(const struct out *out)
{
	int fd = memfd_create("homa-handover", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;
	ssize_t n = 1;
	int rc;

	if (fd < 0)
		return -errno;
	while (done < out->used && n > 0) {
		n = write(fd, out->bytes + done, out->used - done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	if (n > 0 && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
		return fd;
	rc = n ? -errno : -EIO;
	close(fd);
	return rc;
}

int homa_svc_state_write(struct homa_svc *c, u64 serial)
{
	struct homa_svc_state_head head = {
		.magic = HOMA_SVC_STATE_MAGIC,
		.version = HOMA_SVC_STATE_VERSION,
		.serial = serial,
		.numbers = c->numbers,
		.order = c->order,
		.rx_bytes = c->rx_bytes,
		.failed = c->failed,
		.pieces_taken = c->att->pieces_taken,
		.pieces_released = c->att->pieces_released,
		.generation = c->att->generation,
		.fresh = c->fresh,
		.cq_head = c->cq_head,
		.release_tail = c->release_tail,
		.release_shown = c->release_shown,
		.sqs = c->sqs,
		.listen = c->listen,
		.bound = c->bound,
		.shared_port = c->shared_port,
		.rcvbuf_pages = (u32)(c->rcvbuf / 65536),
		.segs = c->att->num_segs,
	};
	struct out out = { 0 };
	int fd;

	put(&out, &head, sizeof(head));
	put_rings(&out, c);
	head.slots = put_slots(&out, c);
	head.items = put_items(&out, c);
	head.requests = put_requests(&out, c);
	head.kept = put_kept(&out, c);
	put_heaps(&out, c);
	head.bytes = out.used;
	if (!out.rc)
		memcpy(out.bytes, &head, sizeof(head));
	fd = out.rc ? out.rc : to_file(&out);
	free(out.bytes);
	return fd;
}
