/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The loop of a thread: packets, events, timers, transmissions, memory. All
 * threads do everything, so that every pair of engine calls meets some time.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hammer.h"
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

static void *must_alloc(size_t size)
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

static struct homa_addr peer_addr(u32 i)
{
	struct homa_addr addr = { .ip = { [10] = 0xff, [11] = 0xff, [12] = 127 } };

	addr.ip[15] = (u8)(i + 1);
	return addr;
}

/* All addresses are ours; the two of a pair see each other. */
static struct homa_addr seen_as(const struct homa_addr *dst)
{
	return peer_addr(((u32)dst->ip[15] - 1) ^ 1);
}

/* ---- memory ---- */

static void bury(struct hammer_thread *t, void *mem, void *extra)
{
	struct hammer_dead *dead = must_alloc(sizeof(*dead));
	u32 i;

	dead->mem = mem;
	dead->extra = extra;
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

	while (*pos) {
		struct hammer_dead *dead = *pos;

		if (!all && !passed(t->h, dead)) {
			pos = &dead->next;
			continue;
		}
		*pos = dead->next;
		free(dead->mem);
		free(dead->extra);
		free(dead);
	}
}

static void memory(struct hammer_thread *t)
{
	struct homa_rpc *rpc;
	struct homa_peer *peer;

	while ((rpc = homa_retired_rpc(&t->ctx))) {
		bury(t, rpc, NULL);
		t->retired_rpcs++;
	}
	while ((peer = homa_retired_peer(&t->ctx))) {
		bury(t, peer, NULL);
		t->retired_peers++;
	}
	while (t->ctx.spare_rpcs < 40) {
		homa_ctx_give_rpc(&t->ctx, must_alloc(homa_rpc_size(&t->h->limits)));
		t->given_rpcs++;
	}
	while (t->ctx.spare_peers < 4) {
		homa_ctx_give_peer(&t->ctx, must_alloc(homa_peer_size(&t->h->limits)));
		t->given_peers++;
	}
	while (t->ctx.spare_ranges < 40) {
		homa_ctx_give_range(&t->ctx, must_alloc(homa_range_size()));
		t->given_ranges++;
	}
	free_dead(t, false);
}

/* ---- applications ---- */

static void send_one(struct hammer_thread *t)
{
	struct hammer *h = t->h;
	struct hammer_slot *slot = &h->slot[hammer_rand(t, HAMMER_SOCKS)];
	u32 peer = hammer_rand(t, HAMMER_PEERS);
	u32 link = h->any_link ? hammer_rand(t, HAMMER_LINKS) :
				 peer / 2 % HAMMER_LINKS;
	struct homa_send send = {
		.dst = peer_addr(peer),
		.port = (u16)(HAMMER_PORT + hammer_rand(t, HAMMER_SOCKS / 2)),
		.length = 1 + hammer_rand(t, h->length),
	};
	struct homa_handle handle;
	struct homa_sock *sock;
	struct homa_rpc *rpc;

	send.available = h->pieces ? hammer_rand(t, send.length + 1) : send.length;
	pthread_rwlock_rdlock(&slot->lock);
	sock = slot->sock;
	if (h->unguarded)
		pthread_rwlock_unlock(&slot->lock);
	if (sock && !homa_rpc_send(&t->ctx, sock, h->link[link], &send, &handle, &rpc)) {
		*(u64 *)homa_rpc_priv(rpc) = handle.id;
		t->lengths[t->sent % 64] = send.length;
		t->recent[t->sent++ % 64] = handle;
		__atomic_fetch_add(&h->open_rpcs, 1, __ATOMIC_RELAXED);
	}
	if (!h->unguarded)
		pthread_rwlock_unlock(&slot->lock);
}

/* More of a request, all of it in the end. */
static void supply(struct hammer_thread *t, u32 i)
{
	u32 length = t->lengths[i];

	if (!t->recent[i].id)
		return;
	homa_msg_supply(&t->ctx, t->recent[i],
			hammer_rand(t, 2) ? length : hammer_rand(t, length));
}

static void release(struct hammer_thread *t, u64 where,
		    const struct homa_msg_info *info)
{
	struct hammer_slot *slot = &t->h->slot[where % HAMMER_SOCKS];

	if (!info->num_pages)
		return;
	pthread_rwlock_rdlock(&slot->lock);
	if (slot->sock && slot->serial == where / HAMMER_SOCKS &&
	    homa_pool_release(&t->ctx, slot->sock, info->pages, info->num_pages))
		abort();
	pthread_rwlock_unlock(&slot->lock);
}

/* Now and then what an onlooker sees, from any thread. */
static void look(struct hammer_thread *t, u32 l)
{
	struct homa_link_state state;

	homa_link_state(&t->ctx, t->h->link[l], &state);
	if (homa_link_withheld(t->h->link[l]) > 1000000)
		abort();
}

static void events(struct hammer_thread *t)
{
	struct homa_msg_info info;
	struct homa_event ev;
	struct homa_rpc *rpc;

	while (homa_event_next(&t->ctx, &ev)) {
		u64 where = *(u64 *)homa_sock_priv(ev.sock);

		if (homa_rx_take(&t->ctx, ev.handle, &info))
			continue;
		release(t, where, &info);
		if (info.kind == HOMA_EV_REQUEST) {
			u32 length = 1 + hammer_rand(t, t->h->length);

			homa_rpc_reply(&t->ctx, ev.handle, length, length, &rpc);
		} else {
			t->ended++;
			__atomic_fetch_sub(&t->h->open_rpcs, 1, __ATOMIC_RELAXED);
		}
	}
}

static void abort_one(struct hammer_thread *t)
{
	/* Somebody else's as likely as ours. */
	struct hammer_thread *other = &t->h->thread[hammer_rand(t, t->h->threads)];
	struct homa_handle handle;
	u64 id;

	if (other != t) {	/* only by id: the table is not shared safely */
		id = t->recent[hammer_rand(t, 64)].id;
		if (!id || !homa_rpc_lookup(&t->ctx, id, &handle))
			return;
	} else {
		handle = t->recent[hammer_rand(t, 64)];
	}
	if (handle.id && !homa_rpc_abort(&t->ctx, handle,
					 hammer_rand(t, 2) ? HOMA_EINTR : 0))
		return;
}

/* ---- packets ---- */

static void receive(struct hammer_thread *t, u32 l)
{
	struct hammer *h = t->h;
	struct hammer_pkt *pkts[16];
	struct homa_rx_pkt rx[16];
	u32 n = queue_get(&h->queue[l], pkts, 1 + hammer_rand(t, 16)), i, room;

	if (!n)
		return;
	if (!hammer_rand(t, 64))
		homa_path_mtu(&t->ctx, h->link[l], &pkts[0]->src, 1000 + hammer_rand(t, 500));
	memset(rx, 0, sizeof(rx));
	for (i = 0; i < n; i++) {
		rx[i].data = pkts[i]->hdr;
		rx[i].len = pkts[i]->len;
		rx[i].src = &pkts[i]->src;
	}
	homa_rx(&t->ctx, h->link[l], rx, n);
	for (i = 0; i < n; i++) {
		if (rx[i].verdict == HOMA_RX_DATA) {
			homa_rx_place(rx[i].rpc, rx[i].offset, &room);
			homa_rx_copied(&t->ctx, &rx[i]);
			t->delivered++;
		} else if (rx[i].verdict == HOMA_RX_NO_LISTENER) {
			struct homa_addr dst = seen_as(&pkts[i]->src);

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

static void transmit(struct hammer_thread *t, u32 l)
{
	struct hammer *h = t->h;
	struct homa_tx_desc desc;
	u32 n, skip;

	for (n = 0; n < 16; n++) {
		u32 segs = 1 + hammer_rand(t, 4);

		if (homa_tx(&t->ctx, h->link[l], segs, &desc) != HOMA_TX_PACKET)
			return;
		for (skip = 0; ; skip += desc.seg_size) {
			struct hammer_pkt *pkt = must_alloc(sizeof(*pkt));
			u32 payload = desc.length - skip;

			if (payload > desc.seg_size)
				payload = desc.seg_size;
			if (!desc.rpc)
				payload = 0;
			pkt->src = seen_as(&desc.dst);
			pkt->len = desc.hdr_len + payload;
			if (skip)
				homa_tx_segment(&desc, skip, pkt->hdr);
			else
				memcpy(pkt->hdr, desc.hdr, desc.hdr_len);
			if (hammer_rand(t, 1000) < h->lose)
				free(pkt);
			else
				queue_put(&h->queue[l], pkt);
			if (!desc.rpc || skip + desc.seg_size >= desc.length)
				break;
		}
		homa_tx_done(&t->ctx, &desc,
			     hammer_rand(t, 1000) < h->lose ? -HOMA_EAGAIN : 0);
	}
}

void hammer_round(struct hammer_thread *t)
{
	struct hammer *h = t->h;
	u32 shards = h->limits.shards, i;

	__atomic_fetch_add(&t->loops, 1, __ATOMIC_RELEASE);
	t->ctx.now = hammer_now();
	memory(t);
	for (i = 0; i < HAMMER_LINKS; i++)
		receive(t, i);
	events(t);
	if (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&h->open_rpcs, __ATOMIC_RELAXED) <
		    (s64)(h->outstanding * h->threads))
			send_one(t);
		if (hammer_rand(t, 1000) < h->abort)
			abort_one(t);
	}
	/* To the end, also when no new ones are begun. */
	for (i = 0; h->pieces && i < 64; i++)
		supply(t, i);
	if (!hammer_rand(t, 100))
		look(t, hammer_rand(t, HAMMER_LINKS));
	if (t->ctx.now >= t->deadline) {
		for (i = t->index; i < shards; i += h->threads)
			homa_timer(&t->ctx, i, 50);
		homa_rx_flush(&t->ctx);
		events(t);
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
		if (!stop && t->h->reopen && !t->index && !hammer_rand(t, t->h->reopen))
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
	struct homa_sock *sock = must_alloc(homa_sock_size(&h->limits));
	void *pool = must_alloc(homa_pool_size(h->pages));

	/* Once it is bound, requests may come; all must be ready by then. */
	pthread_rwlock_wrlock(&slot->lock);
	slot->serial++;
	*(u64 *)homa_sock_priv(sock) = slot->serial * HAMMER_SOCKS + i;
	if (homa_sock_open(&t->ctx, sock) ||
	    homa_sock_set_pool(&t->ctx, sock, pool, h->pages) ||
	    (i < HAMMER_SOCKS / 2 &&
	     homa_sock_bind(&t->ctx, sock, (u16)(HAMMER_PORT + i))))
		abort();
	slot->sock = sock;
	slot->pool = pool;
	pthread_rwlock_unlock(&slot->lock);
}

static void slot_close(struct hammer_thread *t, u32 i)
{
	struct hammer_slot *slot = &t->h->slot[i];
	struct homa_sock *sock;
	void *pool;

	pthread_rwlock_wrlock(&slot->lock);
	sock = slot->sock;
	pool = slot->pool;
	slot->sock = NULL;
	pthread_rwlock_unlock(&slot->lock);
	if (!sock)
		return;
	while (homa_sock_close(&t->ctx, sock, 1 + hammer_rand(t, 5)))
		hammer_round(t);
	bury(t, sock, pool);
}

void hammer_reopen(struct hammer_thread *t, u32 slot)
{
	slot_close(t, slot);
	slot_open(t, slot);
}

struct hammer *hammer_new(u32 threads, u32 shards, u32 pages, u64 seed)
{
	const char *text = getenv("HAMMER_SEED");
	struct hammer *h = must_alloc(sizeof(*h));
	struct homa_params params;
	u32 i;

	h->limits = (struct homa_limits){ .shards = shards, .buckets = 64,
					  .tombstones = 4096, .sock_priv = 8,
					  .peer_priv = 8, .rpc_priv = 8 };
	h->threads = threads;
	h->pages = pages;
	h->seed = text ? strtoull(text, NULL, 0) : seed;
	homa_params_default(&params);
	params.peer_idle_ms = 1;
	h->engine = must_alloc(homa_engine_size(&h->limits));
	if (homa_engine_init(h->engine, &h->limits, &params, h->seed, hammer_now()))
		abort();
	for (i = 0; i < HAMMER_LINKS; i++) {
		h->link[i] = must_alloc(homa_link_size(1024));
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
	for (i = 0; i < h->threads; i++) {
		t = &h->thread[i];
		memory(t);
		rpcs += (s64)(t->given_rpcs - t->retired_rpcs) - t->ctx.spare_rpcs;
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
