// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Peers: what is known of a remote host across RPCs - the cutoffs it asked
 * for, acks it is owed, whether it answers. The table is striped; a peer that
 * no RPC uses may be evicted under its stripe's lock, because new references
 * are taken only there. A hostile sender can fill the table with addresses,
 * so it is capped and the longest idle go first.
 *
 * Where owners pay for peers (homa_payer.c), what nobody pays for, such as peers that only sent
 * packets to us, never takes the last eighth of the table.
 */
#include "homa_from.h"
#include "homa_impl.h"

/* The time for which a path is taken for narrower than the link after somebody has said so, in
 * units of 2^HOMA_NARROW_SHIFT ms: about ten minutes, as for TCP (RFC 8201, 4). Hosts that know it
 * from their routes say it again all the time; of an ICMP error one hears no more when the path
 * is wide again. */
#define HOMA_NARROW_TIME 10u

u64 homa_addr_key_new(struct homa_ctx *ctx, const struct homa_addr *addr)
{
	const struct homa_seeds *seeds = &ctx->engine->seeds;
	struct homa_addr_key *seen = homa_addr_key_slot(ctx, addr);

	seen->addr = *addr;
	seen->key = homa_siphash_addr(addr, seeds->keys[0], seeds->keys[1]);
	return seen->key;
}

static u32 homa_now_ms(const struct homa_ctx *ctx)
{
	return (u32)homa_div64(ctx->now, 1000000);
}

u16 homa_seg_size(const struct homa_addr *addr, u32 mtu)
{
	u32 headers = (homa_addr_is_v4(addr) ? 20 : 40) +
		      (addr->encap ? 8 : 0) + HOMA_DATA_HDR;

	if (mtu > 65535)
		mtu = 65535;
	return mtu > headers + 64 ? (u16)(mtu - headers) : 64;
}

/* Forgets what was known of the path, because the host will tell it again. */
void homa_peer_follow_mtu(struct homa_peer *peer, const struct homa_link *link)
{
	u32 mtu = HOMA_READ_ONCE(link->mtu);

	HOMA_WRITE_ONCE(peer->mtu_seg, homa_seg_size(&peer->addr, mtu));
	HOMA_WRITE_ONCE(peer->link_mtu, (u16)mtu);
}

void homa_peer_try_mtu(struct homa_ctx *ctx, struct homa_peer *peer,
		       const struct homa_link *link)
{
	u16 seg = homa_seg_size(&peer->addr, HOMA_READ_ONCE(link->mtu));
	u16 since = (u16)((homa_now_ms(ctx) >> HOMA_NARROW_SHIFT) -
			  HOMA_READ_ONCE(peer->link_mtu));

	if (HOMA_READ_ONCE(peer->mtu_seg) >= seg || since >= HOMA_NARROW_TIME)
		homa_peer_follow_mtu(peer, link);
}

void homa_peer_path_seg(struct homa_ctx *ctx, struct homa_peer *peer, u16 seg)
{
	u32 mtu = HOMA_READ_ONCE(peer->link->mtu);
	u16 at = (u16)(homa_now_ms(ctx) >> HOMA_NARROW_SHIFT);

	if (seg >= homa_seg_size(&peer->addr, mtu))
		at = (u16)mtu;
	else if (at == (u16)mtu)
		at--; /* it must differ, or it would not be looked at */
	HOMA_WRITE_ONCE(peer->mtu_seg, seg);
	HOMA_WRITE_ONCE(peer->link_mtu, at);
}

/*
 * Returns the first id of RPCs to a new peer. Ids count up for each address by itself, so
 * that what a server has to remember of them is dense (homa_once.c), from a secret place: a
 * server that sees ours knows nothing of those at other servers, and so cannot answer in
 * their place, although a response is accepted from any address. No two peers have the same
 * place, also not those of one address on two links, or before and after an eviction. Even,
 * and never near the end of the 64-bit space.
 */
static u64 homa_peer_first_id(struct homa_engine *engine, u64 key)
{
	u64 place = (key ^ engine->seeds.places) +
		    homa_counter_add(&engine->id_epoch, 2);

	return (homa_hash_mix(place) >> 2 & ~1ull) + 2;
}

static void homa_peer_init(struct homa_ctx *ctx, struct homa_peer *peer,
			   struct homa_link *link, const struct homa_addr *addr,
			   u64 key)
{
	const struct homa_prio *prio = &ctx->engine->prio;
	u32 level = homa_min_u32(HOMA_NEW_PEER_LEVEL,
				 ctx->engine->params.num_priorities - 1);
	u32 i;

	memset(peer, 0, sizeof(*peer));
	peer->link = link;
	peer->addr = *addr;
	peer->key = key;
	peer->next_id = homa_peer_first_id(ctx->engine, key);
	homa_peer_follow_mtu(peer, link);
	homa_lock_init(&peer->lock, HOMA_LOCK_PEER);
	homa_list_init(&peer->owed);
	homa_heap_init(&peer->waiting);
	homa_heap_node_init(&peer->grant_node);
	for (i = 0; i < HOMA_PRIORITIES; i++)
		peer->cutoffs[i] = prio->agreed ? prio->cutoffs[i] :
				   i <= level	? 0x7fffffff :
						  0;
	if (prio->agreed)
		peer->cutoff_version = prio->version;
	peer->heard_at = ctx->now;
	peer->cutoffs_sent_ms = homa_now_ms(ctx) - 1;
	/* The reference is written last: from then on a reader that finds the peer in
	 * reused memory may take it. */
	homa_write_barrier();
	homa_ref_init(&peer->refs, 1); /* the reference of the table */
}

static u32 homa_peer_hash_of(const struct homa_list *node)
{
	return (u32)(homa_list_entry(node, struct homa_peer, hash)->key >> 32);
}

/* The peer ends, and nobody pays for it any more. */
static void homa_peer_unpay(struct homa_peer_stripe *stripe,
			    struct homa_peer *peer)
{
	struct homa_owner *owner = peer->owner;

	if (!owner) {
		stripe->unpaid--;
		return;
	}
	homa_list_del(&peer->of_owner);
	/* Last: the owner's memory may go when he has none. */
	homa_write_barrier();
	homa_counter_add(&owner->peers, (u64)-1);
}

bool homa_peer_forget(struct homa_ctx *ctx, struct homa_peer_stripe *stripe,
		      struct homa_peer *peer, u32 idle_ms)
{
	if (homa_ref_read(&peer->refs) > 1 ||
	    homa_since_ms(homa_now_ms(ctx), peer->used_at_ms) < idle_ms ||
	    !homa_ref_drop_last(&peer->refs))
		return false;
	homa_table_del(&stripe->peers, &peer->hash);
	homa_list_del(&peer->turn);
	homa_list_del(&peer->owed);
	homa_peer_unpay(stripe, peer);
	homa_counter_bump(&ctx->engine->peers_epoch);
	homa_counter_add(&ctx->engine->num_peers, (u64)-1);
	homa_count(ctx, HOMA_M_peers_evicted, 1);
	peer->hash.next = (struct homa_list *)ctx->retired_peer;
	ctx->retired_peer = peer;
	return true;
}

/* Forgets one idle peer of a stripe, and looks at most at @looks peers for that. Those that
 * stay are looked at last the next time. @unpaid: only one that nobody pays for. */
static bool homa_peer_evict(struct homa_ctx *ctx, struct homa_peer_stripe *stripe,
			    u32 idle_ms, u32 looks, bool unpaid)
{
	struct homa_list *pos;

	for (; looks && (pos = homa_list_first(&stripe->turns)); looks--) {
		struct homa_peer *peer =
			homa_list_entry(pos, struct homa_peer, turn);

		if (!(unpaid && peer->owner) &&
		    homa_peer_forget(ctx, stripe, peer, idle_ms))
			return true;
		homa_list_del(pos);
		homa_list_add_tail(&stripe->turns, pos);
	}
	return false;
}

/* Is there room in a stripe for a peer that nobody pays for yet? @stranger: it has only sent
 * a packet to us. */
static bool homa_peer_room(struct homa_ctx *ctx,
			   struct homa_peer_stripe *stripe, bool stranger)
{
	struct homa_engine *engine = ctx->engine;
	u32 most = engine->max_peers_per_stripe, strangers = most - most / 8;

	if (unlikely(stranger && HOMA_READ_ONCE(engine->peers_paid) &&
		     stripe->unpaid >= strangers))
		return homa_peer_evict(ctx, stripe, 0, HOMA_EVICT_LOOKS, true);
	return stripe->peers.count < most ||
	       homa_peer_evict(ctx, stripe, 0, HOMA_EVICT_LOOKS, false);
}

static struct homa_peer *homa_peer_find(struct homa_list *head,
					const struct homa_link *link,
					const struct homa_addr *addr)
{
	struct homa_list *pos;

	homa_list_for_each(pos, head) {
		struct homa_peer *peer =
			homa_list_entry(pos, struct homa_peer, hash);

		if (peer->link == link && homa_addr_equal(&peer->addr, addr))
			return peer;
	}
	return NULL;
}

/* Finds a peer without the stripe's lock; NULL: not found, although the peer may be
 * there. */
static struct homa_peer *homa_peer_glance(struct homa_list *head,
					  const struct homa_link *link,
					  const struct homa_addr *addr)
{
	struct homa_list *pos;
	u32 n;

	homa_list_glance(pos, n, head)
	{
		struct homa_peer *peer =
			homa_list_entry(pos, struct homa_peer, hash);

		if (peer->link != link || !homa_addr_equal(&peer->addr, addr))
			continue;
		if (!homa_ref_get_live(&peer->refs))
			return NULL;
		/* With the reference the peer does not change any more, but it may have
		 * become another one before. */
		if (peer->link == link && homa_addr_equal(&peer->addr, addr))
			return peer;
		(void)homa_ref_put(&peer->refs);
		return NULL;
	}
	return NULL;
}

static struct homa_peer *homa_peer_find_or_make(struct homa_ctx *ctx,
						struct homa_link *link,
						const struct homa_addr *addr,
						enum homa_peer_make make)
{
	struct homa_engine *engine = ctx->engine;
	u64 hash = homa_addr_key(ctx, addr);
	struct homa_peer_stripe *stripe = homa_peer_stripe(engine, hash);
	struct homa_list *head;
	struct homa_peer *peer = NULL;

	if (HOMA_RCU)
		peer = homa_peer_glance(homa_table_find(&stripe->peers,
							(u32)(hash >> 32)),
					link, addr);
	if (peer) {
		HOMA_WRITE_ONCE(peer->used_at_ms, homa_now_ms(ctx));
		return peer;
	}
	homa_lock(&stripe->lock);
	head = homa_table_find(&stripe->peers, (u32)(hash >> 32));
	peer = homa_peer_find(head, link, addr);
	if (!peer && make && ctx->spare_peer) {
		if (!homa_peer_room(ctx, stripe, make == HOMA_PEER_STRANGER))
			goto out;
		peer = ctx->spare_peer;
		ctx->spare_peer = (struct homa_peer *)peer->hash.next;
		ctx->spare_peers--;
		homa_peer_init(ctx, peer, link, addr, hash);
		homa_table_add(&stripe->peers, (u32)(hash >> 32), &peer->hash);
		homa_list_add_tail(&stripe->turns, &peer->turn);
		if (homa_table_full(&stripe->peers))
			homa_ctx_grow(ctx, &stripe->peers, homa_peer_hash_of);
		homa_counter_add(&engine->num_peers, 1);
		stripe->unpaid++;
	}
	if (peer) {
		homa_ref_get(&peer->refs);
		peer->used_at_ms = homa_now_ms(ctx);
	}
out:
	homa_unlock(&stripe->lock);
	return peer;
}

/*
 * Returns the entry for @addr among the peers that a context met last. It uses no hash of
 * the address, because that is keyed and so not cheap. A pointer kept here outlives no
 * eviction: whoever evicts counts first and frees after a grace period, in which we are, or
 * there is only one thread.
 */
static inline struct homa_peer **homa_peer_seen(struct homa_ctx *ctx,
						const struct homa_addr *addr)
{
	u32 epoch = HOMA_READ_ONCE(ctx->engine->peers_epoch);

	if (unlikely(ctx->peers_epoch != epoch)) {
		memset(ctx->peers, 0, sizeof(ctx->peers));
		ctx->peers_epoch = epoch;
	}
	return &ctx->peers[(addr->ip[15] ^ addr->ip[13]) % HOMA_CTX_PEERS];
}

static bool homa_peer_is(const struct homa_peer *peer,
			 const struct homa_link *link,
			 const struct homa_addr *addr)
{
	return peer->link == link && homa_addr_equal(&peer->addr, addr);
}

HOMA_HOT struct homa_peer *homa_peer_get(struct homa_ctx *ctx,
					 struct homa_link *link,
					 const struct homa_addr *addr,
					 enum homa_peer_make make)
{
	struct homa_peer **seen, *peer;

	if (!HOMA_RCU && !HOMA_ALONE)
		return homa_peer_find_or_make(ctx, link, addr, make);
	seen = homa_peer_seen(ctx, addr);
	peer = *seen;
	/* With the reference the peer stays what it is; without it, the memory may become
	 * another peer. */
	if (likely(peer && homa_ref_get_live(&peer->refs))) {
		if (likely(homa_peer_is(peer, link, addr))) {
			HOMA_WRITE_ONCE(peer->used_at_ms, homa_now_ms(ctx));
			return peer;
		}
		(void)homa_ref_put(&peer->refs);
	}
	peer = homa_peer_find_or_make(ctx, link, addr, make);
	*seen = peer;
	return peer;
}

void homa_peer_put(struct homa_ctx *ctx, struct homa_peer *peer)
{
	(void)ctx;
	/* The table's reference stays, so that the peer may be found again or evicted. */
	(void)homa_ref_put(&peer->refs);
}

bool homa_peers_drain(struct homa_ctx *ctx, u32 budget)
{
	u32 i;

	for (i = 0; i < HOMA_PEER_STRIPES && budget; i++) {
		struct homa_peer_stripe *stripe = &ctx->engine->peers[i];

		homa_lock(&stripe->lock);
		while (budget && homa_peer_evict(ctx, stripe, 0,
						 stripe->peers.count, false))
			budget--;
		homa_unlock(&stripe->lock);
	}
	return !homa_once_drain(ctx, budget);
}

void homa_peer_collect(struct homa_ctx *ctx, u32 budget)
{
	struct homa_engine *engine = ctx->engine;
	u32 i;

	for (i = 0; i < HOMA_PEER_STRIPES && budget; i++) {
		struct homa_peer_stripe *stripe = &engine->peers[i];

		if (!HOMA_READ_ONCE(stripe->peers.count))
			continue;
		homa_lock(&stripe->lock);
		while (budget &&
		       homa_peer_evict(ctx, stripe, engine->params.peer_idle_ms,
				       HOMA_EVICT_LOOKS, false))
			budget--;
		homa_unlock(&stripe->lock);
	}
}

u8 homa_peer_unsched_prio(struct homa_peer *peer, u32 bytes)
{
	u32 i = HOMA_PRIORITIES - 1;

	while (i && HOMA_READ_ONCE(peer->cutoffs[i]) < bytes)
		i--;
	return (u8)i;
}

void homa_peer_set_cutoffs(struct homa_peer *peer, const u32 *cutoffs, u16 version)
{
	u32 i;

	homa_lock(&peer->lock);
	for (i = 0; i < HOMA_PRIORITIES; i++)
		HOMA_WRITE_ONCE(peer->cutoffs[i], cutoffs[i]);
	HOMA_WRITE_ONCE(peer->cutoff_version, version);
	homa_unlock(&peer->lock);
}

/* Puts @peer into the list in which homa_peer_flush_acks() finds it. */
static void homa_peer_owe(struct homa_ctx *ctx, struct homa_peer *peer)
{
	struct homa_peer_stripe *stripe =
		homa_peer_stripe(ctx->engine, peer->key);

	homa_lock(&stripe->lock);
	if (!(peer->marks & HOMA_PEER_OWES)) {
		HOMA_WRITE_ONCE(peer->marks, peer->marks | HOMA_PEER_OWES);
		homa_list_add_head(&stripe->owed, &peer->owed);
	}
	homa_unlock(&stripe->lock);
}

/* Sends the acks that are kept, because there is no room for that of @rpc; peer locked. */
static HOMA_RARE void homa_peer_acks_full(struct homa_ctx *ctx,
					  struct homa_peer *peer,
					  struct homa_rpc *rpc)
{
	struct homa_ctrl *ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_ACK);

	memcpy(ctrl->acks.ids, peer->ack_ids, sizeof(peer->ack_ids));
	memcpy(ctrl->acks.ports, peer->ack_ports, sizeof(peer->ack_ports));
	ctrl->num = HOMA_MAX_ACKS;
	HOMA_WRITE_ONCE(peer->num_acks, 0);
}

HOMA_HOT void homa_peer_add_ack(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_peer *peer = rpc->peer;
	u32 n;

	homa_lock(&peer->lock);
	n = peer->num_acks;
	if (likely(n < HOMA_MAX_ACKS)) {
		peer->ack_ids[n] = rpc->id;
		peer->ack_ports[n] = rpc->dport;
		if (ctx->engine->limits.rpc_from)
			peer->ack_from = *homa_rpc_from(rpc);
		HOMA_WRITE_ONCE(peer->num_acks, (u8)(n + 1));
		homa_unlock(&peer->lock);
		if (unlikely(!(HOMA_READ_ONCE(peer->marks) & HOMA_PEER_OWES)))
			homa_peer_owe(ctx, peer);
		return;
	}
	homa_peer_acks_full(ctx, peer, rpc);
	homa_unlock(&peer->lock);
}

u32 homa_peer_take_acks(struct homa_peer *peer, struct homa_ack *acks, u32 max)
{
	u32 n = 0, left;

	homa_lock(&peer->lock);
	left = peer->num_acks;
	while (left && n < max) {
		left--;
		acks[n].client_id = peer->ack_ids[left];
		acks[n].server_port = peer->ack_ports[left];
		n++;
	}
	HOMA_WRITE_ONCE(peer->num_acks, (u8)left);
	homa_unlock(&peer->lock);
	return n;
}

/* Sends what is owed to one peer as an ACK packet; stripe locked. */
static void homa_peer_send_acks(struct homa_ctx *ctx, struct homa_peer *peer,
				u16 sport)
{
	struct homa_ack acks[HOMA_MAX_ACKS];
	u32 i, n = homa_peer_take_acks(peer, acks, HOMA_MAX_ACKS);
	struct homa_ctrl *ctrl;

	if (!n)
		return;
	ctrl = homa_ctrl_to(ctx, peer->link, &peer->addr, HOMA_ACK);
	ctrl->sport = sport;
	ctrl->dport = acks[0].server_port;
	ctrl->sender_id = acks[0].client_id;
	ctrl->from = peer->ack_from;
	ctrl->num = (u16)(n - 1);
	for (i = 1; i < n; i++) {
		ctrl->acks.ids[i - 1] = acks[i].client_id;
		ctrl->acks.ports[i - 1] = acks[i].server_port;
	}
}

/* Most peers of each stripe whose acks one call flushes; the servers of others ask
 * (NEED_ACK). */
#define HOMA_FLUSH_PEERS 8u

void homa_peer_flush_acks(struct homa_ctx *ctx, u16 sport)
{
	struct homa_list *pos;
	u32 i, n;

	for (i = 0; i < HOMA_PEER_STRIPES; i++) {
		struct homa_peer_stripe *stripe = &ctx->engine->peers[i];

		if (!HOMA_READ_ONCE(stripe->peers.count))
			continue;
		homa_lock(&stripe->lock);
		for (n = 0; n < HOMA_FLUSH_PEERS &&
			    (pos = homa_list_pop(&stripe->owed));
		     n++) {
			struct homa_peer *peer =
				homa_list_entry(pos, struct homa_peer, owed);

			HOMA_WRITE_ONCE(peer->marks,
					peer->marks & (u8)~HOMA_PEER_OWES);
			homa_peer_send_acks(ctx, peer, sport);
		}
		homa_unlock(&stripe->lock);
	}
}

void homa_path_mtu(struct homa_ctx *ctx, struct homa_link *link,
		   const struct homa_addr *dst, u32 mtu)
{
	struct homa_peer *peer =
		homa_peer_get(ctx, link, dst, HOMA_PEER_STRANGER);

	if (!peer)
		return;
	homa_peer_path_seg(ctx, peer, homa_seg_size(dst, mtu));
	homa_peer_put(ctx, peer);
}
