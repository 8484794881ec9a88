// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * At most once: which requests were begun here, so that a late duplicate does not run
 * them again. A client counts its ids up, but over all servers it talks to, and
 * requests overtake each other by seconds, so an id says nothing about the age of its
 * packet: each must be remembered by itself, and long enough. A block remembers a run
 * of ids of one client, a bit each: as long as an RPC of the run is open, and then for
 * the time that homa_once_ms() gives, counted anew whenever a duplicate comes.
 *
 * Nothing is ever forgotten before its time. Blocks are spare records that the host
 * hands in as with everything else, so memory follows the rate. A request for which
 * there is none is refused before it begins, and its client asks again. Each of 1024
 * groups of addresses has a few blocks of its own. Beyond them it may have no more of
 * the others than are left for everybody else.
 */
#include "homa_impl.h"
#include "homa_once.h"

/* Number of blocks in each bucket when all blocks are in use. */
#define HOMA_ONCE_CHAIN 16u
/* One in this many blocks is reserved for each group of addresses. */
#define HOMA_ONCE_OWN 4096u
/* Most expired blocks that are freed for each new one. */
#define HOMA_ONCE_TIDY 2u
/* Most expired blocks that are freed in other stripes if the own one has none. */
#define HOMA_ONCE_HELP 16u
/* Most other stripes that are searched for them. */
#define HOMA_ONCE_LOOKS 4u

static u32 homa_once_buckets(const struct homa_limits *limits)
{
	u32 n = 1;

	while (n * HOMA_ONCE_STRIPES * HOMA_ONCE_CHAIN < limits->tombstones)
		n *= 2;
	return n;
}

size_t homa_once_bytes(const struct homa_limits *limits)
{
	if (!limits->tombstones)
		return 0;
	return HOMA_ONCE_STRIPES *
	       (sizeof(struct homa_once_stripe) +
		homa_once_buckets(limits) * sizeof(struct homa_once *));
}

void homa_once_init(struct homa_engine *engine, void *mem)
{
	struct homa_once_stripe *stripe = mem;
	struct homa_once **buckets;
	u32 i, n = homa_once_buckets(&engine->limits);

	engine->once = NULL;
	if (!engine->limits.tombstones)
		return;
	engine->once = stripe;
	buckets = (struct homa_once **)(stripe + HOMA_ONCE_STRIPES);
	memset(mem, 0, homa_once_bytes(&engine->limits));
	for (i = 0; i < HOMA_ONCE_STRIPES; i++, stripe++) {
		homa_lock_init(&stripe->lock, HOMA_LOCK_ONCE);
		homa_list_init(&stripe->idle);
		stripe->buckets = buckets + i * n;
		stripe->mask = n - 1;
	}
}

/* Returns the stripe of an address. All that concerns the address is there, whatever became
 * of its peer. */
static struct homa_once_stripe *homa_once_stripe(struct homa_engine *engine,
						 u64 addr)
{
	return &engine->once[addr % HOMA_ONCE_STRIPES];
}

static u64 homa_once_key(u64 addr, u64 id)
{
	return homa_hash_mix(addr ^ (id >> 1) / HOMA_ONCE_IDS);
}

static u64 *homa_once_word(struct homa_once *once, u64 id, u64 *bit)
{
	u32 i = (u32)(id >> 1) % HOMA_ONCE_IDS;

	*bit = 1ull << (i % 64);
	return &once->bits[i / 64];
}

/*
 * Returns how long after its end a request may still come again, in ms: a client that has
 * not heard the end may start again for restart_ns (homa_rx_unknown()), and that packet may
 * be late by tombstone_ms.
 */
static u32 homa_once_ms(const struct homa_ctx *ctx, const struct homa_link *link)
{
	u64 restart = HOMA_READ_ONCE(link->derived.restart_ns);

	return ctx->engine->params.tombstone_ms +
	       (u32)homa_div64(restart, 1000000) + 2;
}

static u32 homa_once_now(const struct homa_ctx *ctx)
{
	return (u32)homa_div64(ctx->now, 1000000);
}

/* ---- blocks; stripe locked ---- */

static u32 homa_once_own(const struct homa_engine *engine)
{
	return engine->limits.tombstones / HOMA_ONCE_OWN;
}

/*
 * May a group that has @share blocks have one more? Counts the block if it is beyond those
 * that are reserved for the group. Requests that are not @whole yet leave half of what is
 * common to those that are: a first packet costs its sender nothing.
 */
static bool homa_once_may(struct homa_engine *engine, u32 share, bool whole)
{
	u32 own = homa_once_own(engine);
	u32 common = engine->limits.tombstones -
		     own * HOMA_ONCE_STRIPES * HOMA_ONCE_SHARES;

	if (share < own)
		return true;
	if (!whole)
		common /= 2;
	if (share - own + HOMA_READ_ONCE(engine->once_common) >= common)
		return false;
	homa_counter_add(&engine->once_common, 1);
	return true;
}

static void homa_once_put(struct homa_ctx *ctx, struct homa_once_stripe *stripe,
			  struct homa_once *once)
{
	struct homa_once **link = &stripe->buckets[once->key & stripe->mask];
	struct homa_range *record = (struct homa_range *)once;

	while (*link != once)
		link = &(*link)->next;
	*link = once->next;
	homa_list_del(&once->idle);
	if (stripe->shares[once->share]-- > homa_once_own(ctx->engine))
		homa_counter_add(&ctx->engine->once_common, (u64)-1);
	homa_counter_add(&ctx->engine->num_once, (u64)-1);
	record->next = ctx->spare_range;
	ctx->spare_range = record;
	ctx->spare_ranges++;
}

/* Frees at most @budget expired blocks; returns how much of the budget is left. */
static u32 homa_once_tidy(struct homa_ctx *ctx, struct homa_once_stripe *stripe,
			  u32 now, u32 budget)
{
	while (budget && !homa_list_empty(&stripe->idle)) {
		struct homa_once *once =
			homa_list_entry(homa_list_first(&stripe->idle),
					struct homa_once, idle);

		if ((s32)(once->until_ms - now) > 0)
			break;
		homa_once_put(ctx, stripe, once);
		budget--;
	}
	return budget;
}

static struct homa_once *homa_once_get(struct homa_ctx *ctx,
				       struct homa_once_stripe *stripe,
				       u64 addr, u64 key, bool whole)
{
	struct homa_engine *engine = ctx->engine;
	u32 share = (u32)(addr / HOMA_ONCE_STRIPES) % HOMA_ONCE_SHARES;
	struct homa_once **head = &stripe->buckets[key & stripe->mask];
	struct homa_range *record = ctx->spare_range;
	struct homa_once *once = (struct homa_once *)record;

	if (!record || !homa_once_may(engine, stripe->shares[share], whole))
		return NULL;
	ctx->spare_range = record->next;
	ctx->spare_ranges--;
	memset(once, 0, sizeof(*once));
	homa_list_init(&once->idle);
	once->key = key;
	once->share = (u16)share;
	once->next = *head;
	*head = once;
	stripe->shares[share]++;
	homa_counter_add(&engine->num_once, 1);
	return once;
}

/* Does the same for the first of the ids of a block, and frees some blocks before. */
static HOMA_RARE struct homa_once *homa_once_new(struct homa_ctx *ctx,
						 struct homa_once_stripe *stripe,
						 u64 addr, u64 key, bool whole)
{
	homa_once_tidy(ctx, stripe, homa_once_now(ctx), HOMA_ONCE_TIDY);
	return homa_once_get(ctx, stripe, addr, key, whole);
}

/* Keeps a block for @ms more, because no RPC of it is open any more. */
static void homa_once_idle(struct homa_once_stripe *stripe,
			   struct homa_once *once, u32 now, u32 ms)
{
	once->until_ms = now + ms;
	homa_list_del(&once->idle);
	homa_list_add_tail(&stripe->idle, &once->idle);
}

/* Frees expired blocks of other stripes when this one has none. */
static void homa_once_help(struct homa_ctx *ctx)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_once_stripe *stripe;
	u32 i, left = HOMA_ONCE_HELP;

	for (i = 0; i < HOMA_ONCE_LOOKS && left == HOMA_ONCE_HELP; i++) {
		stripe = homa_once_stripe(engine,
					  homa_counter_add(&engine->once_clock,
							   1));
		homa_lock(&stripe->lock);
		left = homa_once_tidy(ctx, stripe, homa_once_now(ctx), left);
		homa_unlock(&stripe->lock);
	}
}

/* ---- requests ---- */

HOMA_HOT u16 homa_once_begin(struct homa_ctx *ctx, const struct homa_link *link,
			     const struct homa_peer *peer, u64 id, bool whole,
			     struct homa_once **begun)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_once_stripe *stripe;
	struct homa_once *once;
	u64 key, bit, *word;
	u16 reason = 0;
	u32 now;

	*begun = NULL;
	if (!engine->once || !engine->params.tombstone_ms)
		return 0;
	stripe = homa_once_stripe(engine, peer->key);
	key = homa_once_key(peer->key, id);
	now = homa_once_now(ctx);
	homa_lock(&stripe->lock);
	for (once = stripe->buckets[key & stripe->mask]; once; once = once->next)
		if (once->key == key)
			break;
	if (unlikely(!once))
		once = homa_once_new(ctx, stripe, peer->key, key, whole);
	if (unlikely(!once)) {
		reason = HOMA_M_drop_once_full;
		goto out;
	}
	/* The block has expired, and nobody has needed its memory since. */
	if (!once->open && (s32)(once->until_ms - now) <= 0)
		memset(once->bits, 0, sizeof(once->bits));
	word = homa_once_word(once, id, &bit);
	if (unlikely(*word & bit)) {
		reason = HOMA_M_drop_tombstone;
		if (!once->open)
			homa_once_idle(stripe, once, now,
				       homa_once_ms(ctx, link));
		goto out;
	}
	*word |= bit;
	once->open++;
	if (homa_list_linked(&once->idle))
		homa_list_del(&once->idle);
	*begun = once;
out:
	homa_unlock(&stripe->lock);
	if (unlikely(!once))
		homa_once_help(ctx);
	return reason;
}

/* Is called when no RPC of the block is open any more; stripe locked. */
static HOMA_RARE void homa_once_rests(struct homa_ctx *ctx,
				      const struct homa_link *link,
				      struct homa_once_stripe *stripe,
				      struct homa_once *once)
{
	if (unlikely(!(once->bits[0] | once->bits[1])))
		homa_once_put(ctx, stripe, once);
	else
		homa_once_idle(stripe, once, homa_once_now(ctx),
			       homa_once_ms(ctx, link));
}

HOMA_HOT void homa_once_end(struct homa_ctx *ctx, const struct homa_link *link,
			    const struct homa_peer *peer, u64 id,
			    struct homa_once *once, bool executed)
{
	struct homa_once_stripe *stripe =
		homa_once_stripe(ctx->engine, peer->key);
	u64 bit, *word = homa_once_word(once, id, &bit);

	homa_lock(&stripe->lock);
	if (!executed)
		*word &= ~bit;
	if (!--once->open)
		homa_once_rests(ctx, link, stripe, once);
	homa_unlock(&stripe->lock);
}

void homa_once_collect(struct homa_ctx *ctx, u32 budget)
{
	u32 i;

	for (i = 0; ctx->engine->once && i < HOMA_ONCE_STRIPES; i++) {
		struct homa_once_stripe *stripe = &ctx->engine->once[i];

		homa_lock(&stripe->lock);
		homa_once_tidy(ctx, stripe, homa_once_now(ctx), budget);
		homa_unlock(&stripe->lock);
	}
}

u32 homa_once_drain(struct homa_ctx *ctx, u32 budget)
{
	u32 i;

	for (i = 0; ctx->engine->once && i < HOMA_ONCE_STRIPES && budget; i++) {
		struct homa_once_stripe *stripe = &ctx->engine->once[i];

		homa_lock(&stripe->lock);
		for (; budget && !homa_list_empty(&stripe->idle); budget--)
			homa_once_put(ctx, stripe,
				      homa_list_entry(homa_list_first(
							      &stripe->idle),
						      struct homa_once, idle));
		homa_unlock(&stripe->lock);
	}
	return budget;
}
