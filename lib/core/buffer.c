// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory of homa_alloc(). A host that can send from memory of its own gives it; for the others
 * it is cut out of one mapping, and its bytes are copied when they are sent. What the program
 * has is in a table by address; what is being sent is not, so that a second call with the same
 * memory fails however close they are. An address in the host's memory that the table lacks was
 * sent or freed before, and is refused: other messages lie there now.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "heap.h"
#include "libhoma_impl.h"

#define BUCKETS 256u
#define PLAIN_BYTES (32u << 20)
/* The longest message fills this many units of HOMA_SVC_UNIT bytes. */
#define MOST_UNITS ((HOMA_MAX_MESSAGE + HOMA_SVC_UNIT - 1) / HOMA_SVC_UNIT)

/* struct homa_buffer - memory that homa_alloc() gave and that was neither sent nor freed */
struct homa_buffer {
	/* The next buffer in the same bucket of the table. */
	struct homa_buffer *next;
	/* Where the memory lies, and its size in bytes; the host or alloc_plain() wrote it. */
	struct homa_room room;
};

/* struct homa_buffers - all buffers of a handle; the lock protects every field */
struct homa_buffers {
	/* The lock of all fields. */
	pthread_mutex_t lock;
	/* The handle has one reference, and so has each claim and each call of homa_alloc(). */
	unsigned int refs;
	/* homa_buffers_end() sets it when the handle has been closed. */
	bool ended;
	/* The functions of the handle's host. */
	const struct homa_backend_ops *ops;
	/* The table of buffers, by address. */
	struct homa_buffer *bucket[BUCKETS];
	/* The mapping of PLAIN_BYTES for hosts that copy; NULL until it is needed. */
	char *plain;
	/* The heap knows which bytes of the mapping are free. */
	struct homa_svc_heap heap;
};

static struct homa_buffer **bucket_of(struct homa_buffers *all, uintptr_t at)
{
	return &all->bucket[at / HOMA_SVC_UNIT % BUCKETS];
}

/* Return the pointer in the table to the buffer that begins at @at, NULL if there is none. */
static struct homa_buffer **find(struct homa_buffers *all, uintptr_t at)
{
	struct homa_buffer **b;

	for (b = bucket_of(all, at); *b; b = &(*b)->next)
		if ((uintptr_t)(*b)->room.at == at)
			return b;
	return NULL;
}

static void insert(struct homa_buffers *all, struct homa_buffer *b)
{
	struct homa_buffer **bucket = bucket_of(all, (uintptr_t)b->room.at);

	b->next = *bucket;
	*bucket = b;
}

/* Does the piece lie within one buffer? */
static bool is_within(struct homa_buffers *all, const struct iovec *piece)
{
	uintptr_t at = (uintptr_t)piece->iov_base,
		  unit = at & ~(uintptr_t)(HOMA_SVC_UNIT - 1);
	unsigned int i;

	for (i = 0; i < MOST_UNITS; i++, unit -= HOMA_SVC_UNIT) {
		struct homa_buffer **b = find(all, unit);

		if (b)
			return at - unit <= (*b)->room.size &&
			       piece->iov_len <= (*b)->room.size - (at - unit);
	}
	return false;
}

static bool is_plain(const struct homa_buffers *all, const void *at)
{
	return all->plain && (uintptr_t)at - (uintptr_t)all->plain < PLAIN_BYTES;
}

/* ---- its life ---- */

static struct homa_buffers *buffers_of(struct homa *h)
{
	struct homa_buffers *all = __atomic_load_n(&h->buffers, __ATOMIC_ACQUIRE),
			    *made;

	if (all)
		return all;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	made->refs = 1;
	made->ops = h->ops;
	pthread_mutex_init(&made->lock, NULL);
	if (__atomic_compare_exchange_n(&h->buffers, &all, made, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return made;
	/* Another thread was faster. */
	pthread_mutex_destroy(&made->lock);
	free(made);
	return all;
}

/* Give back a reference. The caller has the lock; this function unlocks it. */
static void put(struct homa_buffers *all)
{
	bool last = --all->refs == 0;

	pthread_mutex_unlock(&all->lock);
	if (!last)
		return;
	if (all->plain)
		munmap(all->plain, PLAIN_BYTES);
	homa_svc_heap_free(&all->heap);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

/* Take @length bytes of the mapping. The caller has the lock. */
static int alloc_plain(struct homa_buffers *all, size_t length,
		       struct homa_room *room)
{
	void *plain;
	s64 offset;

	if (!all->plain) {
		plain = mmap(NULL, PLAIN_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (plain == MAP_FAILED)
			return -ENOMEM;
		if (homa_svc_heap_init(&all->heap, PLAIN_BYTES)) {
			munmap(plain, PLAIN_BYTES);
			return -ENOMEM;
		}
		all->plain = plain;
	}
	offset = homa_svc_heap_get(&all->heap, (u32)length);
	if (offset < 0)
		return (int)offset;
	*room = (struct homa_room){ .at = all->plain + offset,
				    .size = length,
				    .offset = (uint32_t)offset };
	return 0;
}

/* Give the memory of @b, which nobody uses any more, back. The caller has the lock. */
static void drop(struct homa_buffers *all, struct homa_buffer *b)
{
	if (all->ops->alloc)
		all->ops->unalloc(&b->room);
	else
		homa_svc_heap_put(&all->heap, b->room.offset);
	free(b);
}

void homa_buffers_end(struct homa_buffers *all)
{
	struct homa_buffer *b;
	unsigned int i;

	if (!all)
		return;
	pthread_mutex_lock(&all->lock);
	all->ended = true;
	for (i = 0; i < BUCKETS; i++) {
		while ((b = all->bucket[i])) {
			all->bucket[i] = b->next;
			drop(all, b);
		}
	}
	put(all);
}

int homa_buffer_alloc(struct homa *h, size_t length, void **out)
{
	struct homa_buffers *all = buffers_of(h);
	struct homa_buffer *b = calloc(1, sizeof(*b));
	int rc = 0;

	if (!all || !b) {
		free(b);
		return -ENOMEM;
	}
	pthread_mutex_lock(&all->lock);
	all->refs++;
	if (!all->ops->alloc) {
		rc = alloc_plain(all, length, &b->room);
	} else {
		/* The host may have to ask homad for memory, and may be closed meanwhile. */
		pthread_mutex_unlock(&all->lock);
		rc = all->ops->alloc(h->host, length, &b->room);
		pthread_mutex_lock(&all->lock);
	}
	if (rc) {
		free(b);
	} else if (all->ended) {
		drop(all, b);
		rc = -ESHUTDOWN;
	} else {
		*out = b->room.at;
		insert(all, b);
	}
	put(all);
	return rc;
}

int homa_buffer_free(struct homa *h, void *at)
{
	struct homa_buffers *all = __atomic_load_n(&h->buffers, __ATOMIC_ACQUIRE);
	struct homa_buffer **place, *b;

	if (!all)
		return -EINVAL;
	pthread_mutex_lock(&all->lock);
	place = find(all, (uintptr_t)at);
	if (place) {
		b = *place;
		*place = b->next;
		drop(all, b);
	}
	pthread_mutex_unlock(&all->lock);
	return place ? 0 : -EINVAL;
}

/* ---- sending ---- */

/* Does the piece lie in memory of homa_alloc(), but in no buffer that the program has? */
static bool is_stale(struct homa *h, struct homa_buffers *all,
		     const struct iovec *piece)
{
	if (!(h->ops->alloc ? h->ops->sends_from(h->host, piece->iov_base) :
			      is_plain(all, piece->iov_base)))
		return false;
	return piece->iov_len && !is_within(all, piece);
}

/* homa_buffer_claim() under the lock. It returns 0, too, if the message lies elsewhere. */
static int claim_one(struct homa *h, struct homa_buffers *all, const char *op,
		     struct homa_message_out *out, struct homa_claim *claim)
{
	struct homa_buffer **place;
	int i;

	place = out->iovcnt == 1 ? find(all, (uintptr_t)out->iov[0].iov_base) :
				   NULL;
	if (place && (*place)->room.size >= out->length) {
		*claim = (struct homa_claim){ all, *place };
		*place = claim->buffer->next;
		all->refs++;
		out->room = h->ops->alloc ? &claim->buffer->room : NULL;
		return 0;
	}
	if (place)
		return homa_fail(h, -EINVAL,
				 "%s: a message of %zu bytes does not fit the %zu bytes that homa_alloc() gave",
				 op, out->length, (*place)->room.size);
	for (i = 0; i < out->iovcnt; i++)
		if (is_stale(h, all, &out->iov[i]))
			return homa_fail(h, -EINVAL,
					 "%s: this memory of homa_alloc() was sent or freed already, or the message does not fit it",
					 op);
	return 0;
}

int homa_buffer_claim(struct homa *h, const char *op,
		      struct homa_message_out *out, struct homa_claim *claim)
{
	struct homa_buffers *all = __atomic_load_n(&h->buffers, __ATOMIC_ACQUIRE);
	int rc;

	pthread_mutex_lock(&all->lock);
	rc = claim_one(h, all, op, out, claim);
	pthread_mutex_unlock(&all->lock);
	return rc;
}

void homa_buffer_settle(const struct homa_claim *claim, int rc)
{
	struct homa_buffers *all = claim->of;
	struct homa_buffer *b = claim->buffer;

	pthread_mutex_lock(&all->lock);
	if (!rc && all->ops->alloc)
		free(b);
	else if (!rc || all->ended)
		drop(all, b);
	else
		insert(all, b);
	put(all);
}
