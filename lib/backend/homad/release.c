// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Receive buffers given back. homad ends an attachment that gives back what it
 * does not have. So we remember which pieces the program has: one that releases twice,
 * or a copy of a message, harms nobody. Entries are shown to homad a few at a
 * time, or when a receive finds nothing to do, or when homad waits for them.
 *
 * A piece for which homad leaves no room in the ring is kept: its byte of @out says
 * so, and it follows when there is room and something is shown.
 */
#include <errno.h>
#include <sched.h>
#include <unistd.h>
#include "client.h"
#include "svc_att.h"
#include "svc_wait.h"

/* The number of looks at a full ring before a piece is kept. */
#define FULL_TRIES 1000

/*
 * Could homad be short of pages on our account? It says so when it knows, but
 * messages may run out of room after it has stopped looking at us. Then at least
 * half of the pool is with us or in the release ring, for what is still coming in
 * will be with us in a moment; each piece keeps at most one page.
 */
static bool may_starve(const struct homa_svc_att *att)
{
	u64 taken = __atomic_load_n(&att->pieces_taken, __ATOMIC_RELAXED);
	u32 back = __atomic_load_n(&att->release.index->head, __ATOMIC_RELAXED);

	return (u32)taken - back >= att->pool_bytes / 65536 / 2;
}

static bool has_room(const struct homa_svc *c)
{
	const struct homa_svc_place *ring = &c->att->release;

	return c->release_tail -
		       __atomic_load_n(&ring->index->head, __ATOMIC_ACQUIRE) <
	       ring->entries;
}

/* Put a piece into the release ring, which has room. */
static void enter(struct homa_svc *c, u32 page)
{
	const struct homa_svc_place *ring = &c->att->release;

	((u32 *)ring->first)[c->release_tail & (ring->entries - 1)] = page;
	__atomic_store_n(&c->release_tail, c->release_tail + 1, __ATOMIC_RELAXED);
}

/* Find the next kept piece in the order of the pool, and mark it as given back. Returns false if
 * there is none, which only happens if homad gave a piece twice. */
static bool unkeep(struct homa_svc *c, u32 *page)
{
	struct homa_svc_att *att = c->att;
	u32 pieces = (u32)(att->pool_bytes / HOMA_SVC_GRANULE), i;

	for (i = 0; i < pieces; i++) {
		u32 at = c->kept_next;

		c->kept_next = at + 1 < pieces ? at + 1 : 0;
		if (__atomic_load_n(&att->out[at], __ATOMIC_RELAXED) !=
		    HOMA_SVC_PIECE_KEPT)
			continue;
		__atomic_store_n(&att->out[at], HOMA_SVC_PIECE_BACK,
				 __ATOMIC_RELAXED);
		*page = at * HOMA_SVC_GRANULE;
		return true;
	}
	return false;
}

/* Put kept pieces into the ring as far as there is room. */
static void enter_kept(struct homa_svc *c)
{
	u32 left = c->kept, page;

	while (left && has_room(c)) {
		if (unkeep(c, &page)) {
			enter(c, page);
			left--;
		} else {
			left = 0;
		}
	}
	__atomic_store_n(&c->kept, left, __ATOMIC_RELAXED);
}

/* Show homad all pieces in the ring. The caller has release_lock. */
static void show(struct homa_svc *c)
{
	struct homa_shm_header *h = c->att->queues;
	u32 wanted;

	if (unlikely(c->kept))
		enter_kept(c);
	if (c->release_shown == c->release_tail)
		return;
	__atomic_store_n(&c->att->release.index->tail, c->release_tail,
			 __ATOMIC_SEQ_CST);
	__atomic_store_n(&c->release_shown, c->release_tail, __ATOMIC_RELAXED);
	wanted = __atomic_load_n(&h->need_kick, __ATOMIC_SEQ_CST);
	if (unlikely(wanted) &&
	    ((wanted & HOMA_SHM_KICK_RELEASE) || may_starve(c->att)))
		homa_svc_kick(c, c->att);
}

/* The ring is full. Give homad time to take pieces; false if it has not. */
HOMA_RARE static bool wait_for_room(struct homa_svc *c)
{
	int i;

	show(c);
	homa_svc_kick(c, c->att);
	for (i = 0; i < FULL_TRIES; i++) {
		if (has_room(c))
			return true;
		sched_yield();
	}
	return false;
}

/* Is there room for one more piece? Kept pieces go first, and while there are some nobody waits. */
static bool make_room(struct homa_svc *c)
{
	if (likely(!c->kept))
		return likely(has_room(c)) || wait_for_room(c);
	enter_kept(c);
	return !c->kept && has_room(c);
}

static int put(struct homa_svc *c, struct homa_svc_att *att, u32 page)
{
	u8 *out;

	if (page >= att->pool_bytes || page % HOMA_SVC_GRANULE)
		return -EINVAL;
	out = &att->out[page / HOMA_SVC_GRANULE];
	if (__atomic_load_n(out, __ATOMIC_RELAXED) != HOMA_SVC_PIECE_OUT)
		return -EINVAL;
	__atomic_store_n(out, HOMA_SVC_PIECE_BACK, __ATOMIC_RELAXED);
	att->pieces_released++;
	if (att != c->att || homa_svc_state(c) != HOMA_SVC_UP)
		return 0;
	if (unlikely(c->release_tail - c->release_shown >=
		     att->release.entries / 2))
		show(c);
	if (likely(make_room(c))) {
		enter(c, page);
		return 0;
	}
	__atomic_store_n(out, HOMA_SVC_PIECE_KEPT, __ATOMIC_RELAXED);
	__atomic_store_n(&c->kept, c->kept + 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->counters.releases_kept, 1, __ATOMIC_RELAXED);
	return 0;
}

static void put_all(struct homa_svc *c, struct homa_svc_att *att,
		    const u32 *pages, u32 num, int *rc)
{
	u32 i;

	for (i = 0; i < num; i++)
		if (put(c, att, pages[i]))
			*rc = -EINVAL;
	if (unlikely(att != c->att)) {
		/* All pieces of a former attachment are back, so it is not needed any more. */
		if (att->pieces_taken == att->pieces_released) {
			homa_list_del(&att->old);
			homa_svc_att_put(att);
		}
		return;
	}
	if (c->release_tail - c->release_shown > c->release_batch ||
	    unlikely(__atomic_load_n(&att->queues->need_kick, __ATOMIC_RELAXED) &
		     HOMA_SHM_KICK_RELEASE))
		show(c);
}

static struct homa_svc_att *att_of(struct homa_svc *c, u32 generation)
{
	struct homa_list *node;

	if (likely(c->att->generation == generation))
		return c->att;
	for (node = c->old.next; node != &c->old; node = node->next) {
		struct homa_svc_att *att =
			homa_container_of(node, struct homa_svc_att, old);

		if (att->generation == generation)
			return att;
	}
	return NULL;
}

int homa_svc_release(void *host, struct homa_message *msg)
{
	const u32 *pages = (const u32 *)&msg->priv[HOMA_PRIV_PAGES];
	u64 host_word = msg->priv[HOMA_PRIV_HOST + 1];
	struct homa_svc *c = host;
	struct homa_svc_att *att;
	int rc = 0;

	homa_gate_lock(&c->release_lock);
	att = att_of(c, (u32)(host_word >> 32));
	if (likely(att != NULL))
		put_all(c, att, pages,
			homa_min_u32((u32)host_word, HOMA_SHM_PAGES), &rc);
	homa_gate_unlock(&c->release_lock);
	return rc;
}

int homa_svc_release_pages(void *host, const uint32_t *pages, unsigned int num)
{
	struct homa_svc *c = host;
	int rc = 0;

	homa_gate_lock(&c->release_lock);
	put_all(c, c->att, pages, num, &rc);
	homa_gate_unlock(&c->release_lock);
	return rc;
}

void homa_svc_discard(struct homa_svc *c, u32 generation,
		      const struct homa_cqe *cqe)
{
	struct homa_svc_att *att;
	int rc = 0;

	if (!cqe->num_pages)
		return;
	homa_gate_lock(&c->release_lock);
	att = att_of(c, generation);
	if (att)
		put_all(c, att, cqe->pages, cqe->num_pages, &rc);
	homa_gate_unlock(&c->release_lock);
}

void homa_svc_show_releases(struct homa_svc *c)
{
	if (likely(__atomic_load_n(&c->release_shown, __ATOMIC_RELAXED) ==
			   __atomic_load_n(&c->release_tail, __ATOMIC_RELAXED) &&
		   !__atomic_load_n(&c->kept, __ATOMIC_RELAXED)))
		return;
	homa_gate_lock(&c->release_lock);
	if (homa_svc_state(c) == HOMA_SVC_UP)
		show(c);
	homa_gate_unlock(&c->release_lock);
}
