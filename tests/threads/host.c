/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The loop of a thread: packets, events, timers, transmissions, memory. All
 * threads do everything, so that every pair of engine calls meets some time.
 * What applications do with messages is in app.c.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hammer.h"
#include "homa_codec.h"
#include "homa_look.h"

u64 hammer_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

u32 hammer_rand(struct hammer_thread *t, u32 n)
{
	t->seed ^= t->seed << 13;
	t->seed ^= t->seed >> 17;
	t->seed ^= t->seed << 5;
	return n ? t->seed % n : 0;
}

void *hammer_alloc(size_t size)
{
	void *mem;

	if (posix_memalign(&mem, 64, size ? size : 1))
		abort();
	memset(mem, 0, size);
	return mem;
}

/* ---- packets under way ---- */

static void queue_put(struct hammer_queue *q, struct hammer_pkt *pkt)
{
	pkt->next = NULL;
	pthread_mutex_lock(&q->lock);
	*q->tail = pkt;
	q->tail = &pkt->next;
	q->count++;
	pthread_mutex_unlock(&q->lock);
}

static u32 queue_get(struct hammer_queue *q, struct hammer_pkt **pkts, u32 max)
{
	u32 n = 0;

	pthread_mutex_lock(&q->lock);
	while (n < max && q->head) {
		pkts[n] = q->head;
		q->head = q->head->next;
		n++;
	}
	if (!q->head)
		q->tail = &q->head;
	q->count -= n;
	pthread_mutex_unlock(&q->lock);
	return n;
}

struct homa_addr hammer_addr(u32 i)
{
	struct homa_addr addr = { .ip = { [10] = 0xff, [11] = 0xff, [12] = 127 } };

	addr.ip[15] = (u8)(i + 1);
	return addr;
}

/* All addresses are ours; the two of a pair see each other. */
struct homa_addr hammer_seen_as(const struct homa_addr *dst)
{
	return hammer_addr(((u32)dst->ip[15] - 1) ^ 1);
}

/* ---- memory ---- */

static void bury(struct hammer_thread *t, void *mem, void *pool, void *region)
{
	struct hammer_dead *dead = hammer_alloc(sizeof(*dead));
	u32 i;

	dead->mem[0] = mem;
	dead->mem[1] = pool;
	dead->mem[2] = region;
	for (i = 0; i < t->h->threads; i++)
		dead->seen[i] = __atomic_load_n(&t->h->thread[i].loops,
						__ATOMIC_ACQUIRE);
	dead->next = t->dead;
	t->dead = dead;
}

static bool passed(const struct hammer *h, const struct hammer_dead *dead)
{
	u32 i;

	for (i = 0; i < h->threads; i++)
		if (__atomic_load_n(&h->thread[i].loops, __ATOMIC_ACQUIRE) <
		    dead->seen[i] + 2)
			return false;
	return true;
}

static void free_dead(struct hammer_thread *t, bool all)
{
	struct hammer_dead **pos = &t->dead;
	u32 i;

	while (*pos) {
		struct hammer_dead *dead = *pos;

		if (!all && !passed(t->h, dead)) {
			pos = &dead->next;
			continue;
		}
		*pos = dead->next;
		for (i = 0; i < 3; i++)
			free(dead->mem[i]);
		free(dead);
	}
}

static void memory(struct hammer_thread *t)
{
	struct homa_rpc *rpc;
	struct homa_peer *peer;

	while ((rpc = homa_retired_rpc(&t->ctx))) {
		bury(t, rpc, NULL, NULL);
		t->retired_rpcs++;
	}
	while ((peer = homa_retired_peer(&t->ctx))) {
		bury(t, peer, NULL, NULL);
		t->retired_peers++;
	}
	while (t->ctx.spare_rpcs < 40) {
		homa_ctx_give_rpc(&t->ctx,
				  hammer_alloc(homa_rpc_size(&t->h->limits)));
		t->given_rpcs++;
	}
	while (t->ctx.spare_peers < 4) {
		homa_ctx_give_peer(&t->ctx,
				   hammer_alloc(homa_peer_size(&t->h->limits)));
		t->given_peers++;
	}
	while (t->ctx.spare_ranges < 40) {
		homa_ctx_give_range(&t->ctx, hammer_alloc(homa_range_size()));
		t->given_ranges++;
	}
	free_dead(t, false);
}

/* ---- others ---- */

/* Now and then what an onlooker sees, from any thread. */
static void look(struct hammer_thread *t, u32 l)
{
	struct homa_look_cursor at = { 0 };
	struct homa_rpc_look rpcs[16];
	struct homa_link_state state;
	u32 i, n;

	homa_link_state(&t->ctx, t->h->link[l], &state);
	if (homa_link_withheld(t->h->link[l]) > 1000000)
		abort();
	n = homa_rpcs_look(&t->ctx, &at, NULL, rpcs, 16);
	for (i = 0; i < n; i++)
		if (rpcs[i].rx_received > rpcs[i].rx_length)
			abort();
}

static void abort_one(struct hammer_thread *t)
{
	/* Somebody else's as likely as ours. */
	struct hammer_thread *other =
		&t->h->thread[hammer_rand(t, t->h->threads)];
	struct homa_handle handle;
	u64 id;

	if (other != t) { /* only by id: the table is not shared safely */
		id = t->recent[hammer_rand(t, 64)].id;
		if (!id || !homa_rpc_lookup(&t->ctx, id, &handle))
			return;
	} else {
		handle = t->recent[hammer_rand(t, 64)];
	}
	if (handle.id &&
	    !homa_rpc_abort(&t->ctx, handle, hammer_rand(t, 2) ? HOMA_EINTR : 0))
		return;
}

/* ---- packets ---- */

static void receive(struct hammer_thread *t, u32 l)
{
	struct hammer *h = t->h;
	struct hammer_pkt *pkts[16];
	struct homa_rx_pkt rx[16];
	u32 n = queue_get(&h->queue[l], pkts, 1 + hammer_rand(t, 16)), i;

	if (!n)
		return;
	if (!hammer_rand(t, 64))
		homa_path_mtu(&t->ctx, h->link[l], &pkts[0]->src,
			      1000 + hammer_rand(t, 500));
	memset(rx, 0, sizeof(rx));
	for (i = 0; i < n; i++) {
		rx[i].data = pkts[i]->hdr;
		rx[i].len = pkts[i]->len;
		rx[i].src = &pkts[i]->src;
	}
	homa_rx(&t->ctx, h->link[l], rx, n);
	for (i = 0; i < n; i++) {
		t->delivered += rx[i].verdict == HOMA_RX_DATA ||
				rx[i].verdict == HOMA_RX_MESSAGE;
		if (rx[i].verdict == HOMA_RX_DATA) {
			hammer_copy(t, &rx[i], pkts[i]->word);
		} else if (rx[i].verdict == HOMA_RX_MESSAGE) {
			hammer_delivered(t, &rx[i], pkts[i]->word);
		} else if (rx[i].verdict == HOMA_RX_NO_LISTENER) {
			struct homa_addr dst = hammer_seen_as(&pkts[i]->src);

			homa_icmp(&t->ctx, &dst, homa_get_be16(pkts[i]->hdr),
				  homa_get_be16(pkts[i]->hdr + 2),
				  homa_get_be64(pkts[i]->hdr + 20),
				  HOMA_ENOTCONN);
		}
		if (hammer_rand(t, 1000) < h->repeat)
			queue_put(&h->queue[l], pkts[i]);
		else
			free(pkts[i]);
	}
	homa_rx_flush(&t->ctx);
}

static void lose_or_queue(struct hammer_thread *t, u32 l, struct hammer_pkt *pkt)
{
	struct hammer_pkt *twin;

	if (hammer_rand(t, 1000) < t->h->lose) {
		free(pkt);
		return;
	}
	if (hammer_rand(t, 1000) < t->h->repeat) {
		twin = hammer_alloc(sizeof(*twin));
		*twin = *pkt;
		queue_put(&t->h->queue[l], twin);
	}
	queue_put(&t->h->queue[l], pkt);
}

/* What hosts of a newer revision may send before a message's first bytes. */
static void announce(struct hammer_thread *t, u32 l,
		     const struct hammer_pkt *first)
{
	struct hammer_pkt *pkt = hammer_alloc(sizeof(*pkt));
	struct homa_packet p;
	u32 length;

	if (homa_packet_decode(&p, first->hdr, first->len))
		abort();
	length = p.data.length;
	p.hdr.type = HOMA_START_MSG;
	p.start.length = length;
	pkt->src = first->src;
	pkt->len = homa_packet_encode(pkt->hdr, &p);
	lose_or_queue(t, l, pkt);
}

void hammer_put(struct hammer_thread *t, struct homa_tx_desc *desc)
{
	u32 lose = t->h->lose, l = desc->link != t->h->link[0], skip;

	for (skip = 0;; skip += desc->seg_size) {
		struct hammer_pkt *pkt = hammer_alloc(sizeof(*pkt));
		u32 payload = desc->length - skip;

		if (payload > desc->seg_size)
			payload = desc->seg_size;
		pkt->src = hammer_seen_as(&desc->dst);
		if (skip)
			homa_tx_segment(desc, skip, pkt->hdr);
		else
			memcpy(pkt->hdr, desc->hdr, desc->hdr_len);
		pkt->len = desc->hdr_len;
		if (desc->rpc) {
			pkt->len += payload;
			pkt->word = *(u64 *)homa_rpc_priv(desc->rpc);
			if (!skip && !desc->offset &&
			    hammer_rand(t, 1000) < t->h->announce)
				announce(t, l, pkt);
		}
		lose_or_queue(t, l, pkt);
		if (!desc->rpc || skip + desc->seg_size >= desc->length)
			break;
	}
	homa_tx_done(&t->ctx, desc,
		     hammer_rand(t, 1000) < lose ? -HOMA_EAGAIN : 0);
}

static void transmit(struct hammer_thread *t, u32 l)
{
	struct homa_tx_desc desc;
	u32 n;

	for (n = 0; n < 16; n++) {
		u32 segs = 1 + hammer_rand(t, 4);

		if (homa_tx(&t->ctx, t->h->link[l], segs, &desc) != HOMA_TX_PACKET)
			return;
		hammer_put(t, &desc);
	}
}

void hammer_round(struct hammer_thread *t)
{
	struct hammer *h = t->h;
	u32 shards = h->limits.shards, i;
	struct homa_counts counts;

	__atomic_fetch_add(&t->loops, 1, __ATOMIC_RELEASE);
	t->ctx.now = hammer_now();
	memory(t);
	for (i = 0; i < HAMMER_LINKS; i++)
		receive(t, i);
	hammer_events(t);
	hammer_read(t, hammer_rand(t, HAMMER_SOCKS));
	if (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
		homa_engine_counts(h->engine, &counts);
		/* Most have two ends here. */
		if (counts.rpcs < 2 * h->outstanding * h->threads)
			hammer_send(t);
		if (hammer_rand(t, 1000) < h->abort)
			abort_one(t);
		if (h->deliver_whole && !hammer_rand(t, 16))
			hammer_switch(t, hammer_rand(t, HAMMER_SOCKS));
	}
	/* To the end, also when no new ones are begun. */
	for (i = 0; h->pieces && i < 64; i++)
		hammer_supply(t, i);
	if (!hammer_rand(t, 100))
		look(t, hammer_rand(t, HAMMER_LINKS));
	if (t->ctx.now >= t->deadline) {
		for (i = t->index; i < shards; i += h->threads)
			homa_timer(&t->ctx, i, 50);
		homa_rx_flush(&t->ctx);
		hammer_events(t);
		t->deadline = t->ctx.now + 500000;
	}
	for (i = 0; i < HAMMER_LINKS; i++)
		transmit(t, i);
}

static void *thread_main(void *arg)
{
	struct hammer_thread *t = arg;
	int stop;

	while ((stop = __atomic_load_n(&t->h->stop, __ATOMIC_ACQUIRE)) != 2) {
		hammer_round(t);
		if (!stop && t->h->reopen && !t->index &&
		    !hammer_rand(t, t->h->reopen))
			hammer_reopen(t, hammer_rand(t, HAMMER_SOCKS));
		if (stop)
			sched_yield();
	}
	return NULL;
}

void hammer_run(struct hammer *h, double seconds)
{
	pthread_t ids[HAMMER_THREADS];
	struct timespec pause = { 0, 10000000 };
	u64 end = hammer_now() + (u64)(seconds * 1e9);
	u64 limit = end + 60000000000ull;
	struct homa_counts counts;
	u32 i;

	for (i = 0; i < h->threads; i++)
		if (pthread_create(&ids[i], NULL, thread_main, &h->thread[i]))
			abort();
	while (hammer_now() < end)
		nanosleep(&pause, NULL);
	__atomic_store_n(&h->stop, 1, __ATOMIC_RELEASE);
	do {
		nanosleep(&pause, NULL);
		homa_engine_counts(h->engine, &counts);
	} while (counts.rpcs && hammer_now() < limit);
	__atomic_store_n(&h->stop, 2, __ATOMIC_RELEASE);
	for (i = 0; i < h->threads; i++)
		pthread_join(ids[i], NULL);
}

/* ---- sockets, beginning and end ---- */

static void slot_open(struct hammer_thread *t, u32 i)
{
	struct hammer *h = t->h;
	struct hammer_slot *slot = &h->slot[i];
	struct homa_sock *sock = hammer_alloc(homa_sock_size(&h->limits));
	void *pool = hammer_alloc(homa_pool_size(h->pages));
	struct hammer_home *home = homa_sock_priv(sock);
	u8 *region = malloc((size_t)h->pages * HOMA_BPAGE_SIZE);

	/* Once it is bound, requests may come; all must be ready by then. */
	pthread_rwlock_wrlock(&slot->lock);
	slot->serial++;
	home->where = slot->serial * HAMMER_SOCKS + i;
	home->region = region;
	if (!region || homa_sock_open(&t->ctx, sock) ||
	    homa_sock_set_pool(&t->ctx, sock, pool, h->pages) ||
	    (i < HAMMER_SOCKS / 2 &&
	     homa_sock_bind(&t->ctx, sock, (u16)(HAMMER_PORT + i))))
		abort();
	slot->sock = sock;
	slot->pool = pool;
	slot->region = region;
	pthread_rwlock_unlock(&slot->lock);
}

static void slot_close(struct hammer_thread *t, u32 i)
{
	struct hammer_slot *slot = &t->h->slot[i];
	struct homa_sock *sock;
	void *pool, *region;

	pthread_rwlock_wrlock(&slot->lock);
	sock = slot->sock;
	pool = slot->pool;
	region = slot->region;
	slot->sock = NULL;
	hammer_purge(slot);
	pthread_rwlock_unlock(&slot->lock);
	if (!sock)
		return;
	while (homa_sock_close(&t->ctx, sock, 1 + hammer_rand(t, 5)))
		hammer_round(t);
	bury(t, sock, pool, region);
}

void hammer_reopen(struct hammer_thread *t, u32 slot)
{
	slot_close(t, slot);
	slot_open(t, slot);
}

struct hammer *hammer_new(u32 threads, u32 shards, u32 pages, u64 seed)
{
	const char *text = getenv("HAMMER_SEED");
	struct hammer *h = hammer_alloc(sizeof(*h));
	struct homa_params params;
	struct homa_seeds seeds;
	u32 i;

	h->limits = (struct homa_limits){ .shards = shards,
					  .buckets = 64,
					  .tombstones = 1 << 17,
					  .sock_priv = sizeof(struct hammer_home),
					  .peer_priv = 8,
					  .rpc_priv = 8 };
	h->threads = threads;
	h->pages = pages;
	h->seed = text ? strtoull(text, NULL, 0) : seed;
	homa_params_default(&params);
	params.peer_idle_ms = 1;
	h->engine = hammer_alloc(homa_engine_size(&h->limits));
	homa_seeds_fixed(&seeds, h->seed);
	if (homa_engine_init(h->engine, &h->limits, &params, &seeds, hammer_now()))
		abort();
	for (i = 0; i < HAMMER_LINKS; i++) {
		h->link[i] = hammer_alloc(homa_link_size(1024));
		homa_link_init(h->link[i], h->engine, i ? 10000 : 0, 1500, 1024);
		pthread_mutex_init(&h->queue[i].lock, NULL);
		h->queue[i].tail = &h->queue[i].head;
	}
	for (i = 0; i < threads; i++) {
		struct hammer_thread *t = &h->thread[i];

		t->h = h;
		t->index = i;
		t->seed = (u32)(h->seed * 2654435761u) + 12345 + i * 7919;
		t->seed = t->seed ? t->seed : 1;
		homa_ctx_init(&t->ctx, h->engine, i);
		t->ctx.now = hammer_now();
		memory(t);
	}
	for (i = 0; i < HAMMER_SOCKS; i++) {
		pthread_rwlock_init(&h->slot[i].lock, NULL);
		pthread_mutex_init(&h->slot[i].inbox_lock, NULL);
		slot_open(&h->thread[0], i);
	}
	return h;
}

u32 hammer_free(struct hammer *h)
{
	struct hammer_thread *t;
	struct hammer_pkt *pkts[16];
	struct homa_counts counts;
	s64 rpcs = 0, peers = 0, ranges = 0;
	u32 i, n;

	for (i = 0; i < HAMMER_SOCKS; i++)
		slot_close(&h->thread[0], i);
	homa_engine_counts(h->engine, &counts);
	ranges -= counts.once;
	for (i = 0; i < h->threads; i++) {
		t = &h->thread[i];
		memory(t);
		rpcs += (s64)(t->given_rpcs - t->retired_rpcs) -
			t->ctx.spare_rpcs;
		peers += (s64)(t->given_peers - t->retired_peers) -
			 t->ctx.spare_peers;
		ranges += (s64)t->given_ranges - t->ctx.spare_ranges;
		free_dead(t, true);
	}
	for (i = 0; i < HAMMER_LINKS; i++) {
		while ((n = queue_get(&h->queue[i], pkts, 16)))
			while (n)
				free(pkts[--n]);
		free(h->link[i]);
	}
	free(h->engine);
	free(h);
	/* Spares are lost with their contexts; what counts is balance. */
	return (u32)(counts.rpcs + counts.socks + (u32)(rpcs < 0 ? -rpcs : rpcs) +
		     (u32)(ranges < 0 ? -ranges : ranges) +
		     (peers != (s64)counts.peers));
}
