/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The applications: messages out, messages in, and what must be true of them.
 * A message is its word, then bytes that follow from it. The word has the serial
 * number of its RPC, and all else about the RPC follows from that: so whoever
 * gets a message knows what it should be. It lies in the socket's region, where
 * TSan sees every use of a page that is not in order.
 *
 * Messages wait in their socket's inbox, however they came, or are taken at once
 * by the thread that received them. Any thread empties an inbox.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hammer.h"

/* What follows from an RPC's number. */
enum hammer_fact {
	FACT_REQUEST, /* length */
	FACT_RESPONSE,
	FACT_PEER,
	FACT_PORT,
	FACT_SLOT,
	FACT_PRIVATE,
};

/* How far it has come; the rest of its entry in the book is its number. */
#define BOOK_EXECUTED 1u
#define BOOK_ENDED 2u
#define BOOK_SHIFT 2

/* struct hammer_msg - in an inbox; @where as in struct hammer_home */
struct hammer_msg {
	struct hammer_msg *next;
	u64 where;
	u32 by; /* thread that received it */
	struct homa_handle handle;
	struct homa_msg_info info;
};

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "hammer: %s\n", what);
	abort();
}

/* ---- what an RPC is ---- */

static u32 fact(const struct hammer *h, u64 serial, enum hammer_fact which, u32 n)
{
	u64 x = (serial + h->seed * 0x10001) * 8 + which;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (u32)((x ^ x >> 31) % n);
}

static u32 length_of(const struct hammer *h, u64 word)
{
	return (u32)sizeof(word) + fact(h, word >> 1,
					word & 1 ? FACT_RESPONSE : FACT_REQUEST,
					h->length);
}

static u16 port_of(const struct hammer *h, u64 serial)
{
	return (u16)(HAMMER_PORT + fact(h, serial, FACT_PORT, HAMMER_SOCKS / 2));
}

static bool is_private(const struct hammer *h, u64 serial)
{
	return !fact(h, serial, FACT_PRIVATE, 8);
}

/* Once each; nothing is said of RPCs whose entry has another's by now. */
static void book_note(struct hammer *h, u64 serial, u64 step)
{
	struct hammer_thread *t = &h->thread[serial % HAMMER_THREADS];
	u64 *entry = &t->book[serial / HAMMER_THREADS % HAMMER_BOOK];
	u64 old = __atomic_load_n(entry, __ATOMIC_RELAXED);

	do {
		if (old >> BOOK_SHIFT != serial)
			return;
		must(!(old & step), step == BOOK_ENDED ?
					    "an RPC ended twice" :
					    "a request was executed twice");
	} while (!__atomic_compare_exchange_n(entry, &old, old | step, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static u64 book_begin(struct hammer_thread *t)
{
	u64 serial = ++t->serials * HAMMER_THREADS + t->index;

	__atomic_store_n(&t->book[t->serials % HAMMER_BOOK],
			 serial << BOOK_SHIFT, __ATOMIC_RELAXED);
	return serial;
}

/* ---- bytes ---- */

static u8 filler(u64 word)
{
	return (u8)(word ^ word >> 8 ^ word >> 16 ^ 0x5a);
}

static void put_bytes(u8 *to, u64 word, u32 offset, u32 n)
{
	for (; n && offset < sizeof(word); n--)
		*to++ = (u8)(word >> 8 * offset++);
	memset(to, filler(word), n);
}

/* The message's word, if all of it is in its pages. */
static u64 get_bytes(const struct hammer *h, const u8 *region,
		     const struct homa_msg_info *info)
{
	u32 left = info->length, skip = sizeof(u64), i;
	u64 word = 0;

	must(info->num_pages == (left + HOMA_BPAGE_SIZE - 1) / HOMA_BPAGE_SIZE,
	     "pages of a message");
	for (i = 0; i < skip; i++)
		word |= (u64)region[info->pages[0] + i] << 8 * i;
	must(left == length_of(h, word), "length of a message");
	for (i = 0; i < info->num_pages; i++, skip = 0) {
		u32 n = left < HOMA_BPAGE_SIZE ? left : HOMA_BPAGE_SIZE;
		const u8 *at = region + info->pages[i] + skip;

		must(info->pages[i] + n <= h->pages * HOMA_BPAGE_SIZE, "page");
		left -= n;
		n -= skip;
		must(!n || (at[0] == filler(word) && !memcmp(at, at + 1, n - 1)),
		     "bytes of a message");
	}
	return word;
}

/* ---- messages out ---- */

/* Half of them with the packet, if they have only one. */
static void begin_now(struct hammer_thread *t, struct homa_tx_desc *desc)
{
	t->ctx.tx_now = hammer_rand(t, 2) ? desc : NULL;
	t->asked_now = t->ctx.tx_now != NULL;
}

static void end_now(struct hammer_thread *t, struct homa_tx_desc *desc)
{
	bool now = t->asked_now && !t->ctx.tx_now;

	t->ctx.tx_now = NULL;
	if (!now)
		return;
	must(desc->length <= desc->seg_size && !desc->offset && desc->rpc,
	     "a packet that was handed out with its message");
	t->at_once++;
	hammer_put(t, desc);
}

void hammer_send(struct hammer_thread *t)
{
	struct hammer *h = t->h;
	u64 serial = book_begin(t), *word = homa_ctx_next_rpc(&t->ctx);
	struct hammer_slot *slot =
		&h->slot[fact(h, serial, FACT_SLOT, HAMMER_SOCKS)];
	u32 peer = fact(h, serial, FACT_PEER, HAMMER_PEERS);
	u32 link = h->any_link ? hammer_rand(t, HAMMER_LINKS) :
				 peer / 2 % HAMMER_LINKS;
	struct homa_send send = {
		.dst = hammer_addr(peer),
		.port = port_of(h, serial),
		.flags = is_private(h, serial) ? HOMA_SEND_PRIVATE : 0,
		.length = length_of(h, serial << 1),
		.cookie = serial,
	};
	struct homa_tx_desc desc;
	struct homa_handle handle;
	struct homa_sock *sock;

	must(word != NULL, "no spare RPC");
	send.available =
		h->pieces ? hammer_rand(t, send.length + 1) : send.length;
	*word = serial << 1;
	begin_now(t, &desc);
	pthread_rwlock_rdlock(&slot->lock);
	sock = slot->sock;
	if (h->unguarded)
		pthread_rwlock_unlock(&slot->lock);
	if (sock &&
	    !homa_rpc_send(&t->ctx, sock, h->link[link], &send, &handle, NULL)) {
		end_now(t, &desc);
		t->lengths[t->sent % 64] = send.length;
		t->recent[t->sent++ % 64] = handle;
	}
	t->ctx.tx_now = NULL;
	if (!h->unguarded)
		pthread_rwlock_unlock(&slot->lock);
}

void hammer_supply(struct hammer_thread *t, u32 i)
{
	u32 length = t->lengths[i];

	if (!t->recent[i].id)
		return;
	homa_msg_supply(&t->ctx, t->recent[i],
			hammer_rand(t, 2) ? length : hammer_rand(t, length));
}

static void reply(struct hammer_thread *t, const struct hammer_msg *m, u64 word)
{
	struct homa_rpc *rpc =
		homa_rpc_hold(&t->ctx, m->handle.id, &m->info.peer);
	struct homa_rpc *alive;
	struct homa_tx_desc desc;
	u32 length;

	/* It ended meanwhile. */
	if (!rpc)
		return;
	if (homa_rpc_handle(rpc).generation == m->handle.generation) {
		word |= 1;
		length = length_of(t->h, word);
		*(u64 *)homa_rpc_priv(rpc) = word;
		begin_now(t, &desc);
		must(!homa_rpc_reply(&t->ctx, m->handle, length, length, &alive),
		     "homa_rpc_reply");
		end_now(t, &desc);
	}
	homa_rpc_release(&t->ctx, rpc);
}

/* ---- messages in ---- */

static void check(struct hammer *h, const struct homa_msg_info *info, u64 word)
{
	u64 serial = word >> 1;
	struct homa_addr dst =
		hammer_addr(fact(h, serial, FACT_PEER, HAMMER_PEERS));
	u32 slot = fact(h, serial, FACT_SLOT, HAMMER_SOCKS);
	struct homa_addr src = hammer_seen_as(&dst);

	if (word & 1) {
		must(info->kind == HOMA_EV_RESPONSE && info->cookie == serial &&
			     info->peer_port == port_of(h, serial) &&
			     homa_addr_equal(&info->peer, &dst),
		     "a response");
		book_note(h, serial, BOOK_ENDED);
		return;
	}
	must(info->kind == HOMA_EV_REQUEST && !info->cookie &&
		     homa_addr_equal(&info->peer, &src) &&
		     (slot < HAMMER_SOCKS / 2 ?
			      info->peer_port == HAMMER_PORT + slot :
			      info->peer_port >= HOMA_MIN_CLIENT_PORT),
	     "a request");
	book_note(h, serial, BOOK_EXECUTED);
}

static void release(struct hammer_thread *t, struct homa_sock *sock,
		    const struct homa_msg_info *info)
{
	int rc;

	if (hammer_rand(t, 2)) {
		rc = homa_pool_release(&t->ctx, sock, info->pages,
				       info->num_pages);
	} else {
		rc = homa_pool_return(sock, info->pages, info->num_pages);
		if (rc > 0)
			homa_pool_feed(&t->ctx, sock);
	}
	must(rc >= 0, "homa_pool_release");
}

/* The application has it; its socket's slot is locked and has the socket. */
static void read_message(struct hammer_thread *t, struct hammer_slot *slot,
			 const struct hammer_msg *m)
{
	u64 word = get_bytes(t->h, slot->region, &m->info);

	check(t->h, &m->info, word);
	release(t, slot->sock, &m->info);
	t->elsewhere += m->by != t->index;
	if (word & 1)
		t->ended++;
	else
		reply(t, m, word);
}

static bool is_open(const struct hammer_slot *slot, u64 where)
{
	return slot->sock && slot->serial == where / HAMMER_SOCKS;
}

/* Into the inbox, or read now. Who closes the socket frees its pages. */
static void got(struct hammer_thread *t, const struct hammer_msg *m)
{
	struct hammer_slot *slot = &t->h->slot[m->where % HAMMER_SOCKS];
	struct hammer_msg *copy;

	pthread_rwlock_rdlock(&slot->lock);
	if (is_open(slot, m->where) && hammer_rand(t, 2)) {
		read_message(t, slot, m);
	} else if (is_open(slot, m->where)) {
		copy = hammer_alloc(sizeof(*copy));
		*copy = *m;
		pthread_mutex_lock(&slot->inbox_lock);
		copy->next = slot->inbox;
		slot->inbox = copy;
		pthread_mutex_unlock(&slot->inbox_lock);
	}
	pthread_rwlock_unlock(&slot->lock);
}

void hammer_read(struct hammer_thread *t, u32 i)
{
	struct hammer_slot *slot = &t->h->slot[i];
	struct hammer_msg *m, *next;

	pthread_rwlock_rdlock(&slot->lock);
	pthread_mutex_lock(&slot->inbox_lock);
	m = slot->inbox;
	slot->inbox = NULL;
	pthread_mutex_unlock(&slot->inbox_lock);
	for (; m; m = next) {
		next = m->next;
		if (slot->sock)
			read_message(t, slot, m);
		free(m);
	}
	pthread_rwlock_unlock(&slot->lock);
}

void hammer_events(struct hammer_thread *t)
{
	struct hammer_msg m = { .by = t->index };
	struct homa_event ev;

	while (homa_event_next(&t->ctx, &ev)) {
		struct hammer_home *home = homa_sock_priv(ev.sock);

		m.where = home->where;
		m.handle = ev.handle;
		if (homa_rx_take(&t->ctx, ev.handle, &m.info))
			continue;
		if (m.info.kind != HOMA_EV_FAILED) {
			got(t, &m);
			continue;
		}
		book_note(t->h, m.info.cookie, BOOK_ENDED);
		t->ended++;
	}
}

void hammer_copy(struct hammer_thread *t, struct homa_rx_pkt *rx, u64 word)
{
	struct hammer_home *home = homa_sock_priv(homa_rpc_sock(rx->rpc));
	u32 done, room, place;

	/* So that the same bytes may come again meanwhile. */
	if (!hammer_rand(t, 16))
		sched_yield();
	for (done = 0; done < rx->length; done += room) {
		place = homa_rx_place(rx->rpc, rx->offset + done, &room);
		if (room > rx->length - done)
			room = rx->length - done;
		put_bytes(home->region + place, word, rx->offset + done, room);
	}
	homa_rx_copied(&t->ctx, rx);
}

void hammer_delivered(struct hammer_thread *t, const struct homa_rx_pkt *rx,
		      u64 word)
{
	const struct homa_rx_message *from = &rx->message;
	struct hammer_home *home = homa_sock_priv(from->sock);
	struct hammer_msg m = {
		.where = home->where,
		.by = t->index,
		.handle = from->handle,
		.info = {
			.kind = from->kind, .length = rx->length,
			.id = from->handle.id, .cookie = from->cookie,
			.peer = *rx->src, .peer_port = from->peer_port,
			.num_pages = 1, .pages = { from->page },
		},
	};

	must(t->h->deliver_whole && rx->whole && !rx->offset &&
		     rx->fresh == rx->length && rx->skip + rx->length == rx->len &&
		     !rx->rpc && !(is_private(t->h, word >> 1) && word & 1),
	     "a message delivered whole");
	must(from->page + rx->length <= t->h->pages * HOMA_BPAGE_SIZE,
	     "its page");
	t->whole++;
	put_bytes(home->region + from->page, word, 0, rx->length);
	if (!(word & 1) && hammer_rand(t, 1000) < t->h->abort) {
		/* Nobody's: no socket of ours would have such a peer. */
		homa_pool_release(&t->ctx, from->sock, &from->page, 1);
		homa_rpc_forget(&t->ctx, from->handle);
		return;
	}
	got(t, &m);
}

void hammer_switch(struct hammer_thread *t, u32 i)
{
	struct hammer_slot *slot = &t->h->slot[i];

	pthread_rwlock_rdlock(&slot->lock);
	if (slot->sock)
		homa_sock_deliver_whole(slot->sock, hammer_rand(t, 3) ?
							    HOMA_WHOLE_SHARED :
							    HOMA_WHOLE_NONE);
	pthread_rwlock_unlock(&slot->lock);
}

/* ---- the end ---- */

void hammer_purge(struct hammer_slot *slot)
{
	struct hammer_msg *m;

	while ((m = slot->inbox)) {
		slot->inbox = m->next;
		free(m);
	}
}

/* Pages that cannot be had, though nobody has a message any more. */
static u32 slot_lost(struct hammer_thread *t, const struct hammer_slot *slot,
		     u32 pages)
{
	u32 taken[HOMA_MAX_BPAGES], left, n, num;

	for (left = pages; left; left -= n) {
		n = left < HOMA_MAX_BPAGES ? left : HOMA_MAX_BPAGES;
		if (homa_pages_take(&t->ctx, slot->sock, n * HOMA_BPAGE_SIZE,
				    taken, &num))
			break;
	}
	return left;
}

u32 hammer_lost_pages(struct hammer *h)
{
	u32 i, lost = 0;

	for (i = 0; i < HAMMER_SOCKS; i++) {
		hammer_read(&h->thread[0], i);
		lost += slot_lost(&h->thread[0], &h->slot[i], h->pages);
	}
	return lost;
}
