// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Which priorities our peers should use for bytes that they send to us before
 * any grant. We alone see all traffic that meets at our downlink, so we count
 * the sizes of incoming messages that have come whole, split the levels between unscheduled and
 * scheduled bytes by their shares of the traffic, and choose cutoffs so that
 * every unscheduled level carries equally many bytes, shorter messages on
 * higher ones (SIGCOMM'18, section 3.4). The Homa module leaves this to a
 * script that reads its counters once a second.
 *
 * A cutoff array says: bytes of a message of length n travel on the largest
 * level i with cutoff[i] >= n. So levels above num_priorities have 0, which no
 * message fits under; the lowest unscheduled level has HOMA_NO_CUTOFF, which
 * all fit under; and the scheduled levels below it never win whatever they
 * hold. They get HOMA_NO_CUTOFF too: the module wants that at level 0.
 *
 * The statistics are a histogram of message lengths with four bins an octave,
 * halved at each recomputation. Within a bin lengths count as uniform.
 */
#include "homa_impl.h"

#define HOMA_NO_CUTOFF 0x7fffffffu
#define HOMA_PRIO_MIN_MESSAGES 100u /* fewer are too few to learn from */
#define HOMA_PRIO_HEADERS 76u	    /* bytes of a packet's headers */
#define HOMA_MAX_UNSCHED (HOMA_PRIORITIES - 1)

static u32 homa_prio_bin(u32 length)
{
	u32 octave = (u32)homa_fls32(length | 1) - 1;

	return octave * 4 + (u32)((((u64)length << 2) >> octave) & 3);
}

/* Returns the smallest length, in bytes, that is above bin @bin. */
static u64 homa_prio_bin_end(u32 bin)
{
	u64 end = ((u64)(bin & 3) + 5) << (bin >> 2);

	return (end + 3) >> 2;
}

static u64 homa_prio_bin_start(u32 bin)
{
	return bin ? homa_prio_bin_end(bin - 1) : 1;
}

/*
 * struct homa_prio_rule - the rule by which bytes are unscheduled
 * @rtt: number of unscheduled bytes at the beginning of a message.
 * @last: number of bytes at its end that are granted at unscheduled priority.
 * @packet: message bytes in a packet.
 * @by_remaining: the level of a packet follows from the bytes that are left when it is
 *	sent, not from the length of the message.
 */
struct homa_prio_rule {
	u32 rtt;
	u32 last;
	u32 packet;
	bool by_remaining;
};

/* Returns the number of bytes of a message of @length that travel at unscheduled
 * priority. */
static u64 homa_prio_bytes(const struct homa_prio_rule *rule, u64 length)
{
	u64 bytes = homa_min_u64(length, rule->rtt);

	return bytes + homa_min_u64(length - bytes, rule->last);
}

/* Returns the number of these bytes that are in packets sent with at most @x bytes left. */
static u64 homa_prio_bytes_below(const struct homa_prio_rule *rule, u64 length,
				 u64 x)
{
	u64 rest = length > rule->rtt ? length - rule->rtt : 0;
	u64 before, bytes;

	if (x < length) {
		/* Number of bytes that are left where the first such packet begins. */
		before = homa_div64(length - x + rule->packet - 1, rule->packet) *
			 rule->packet;
		x = length > before ? length - before : 0;
	} else {
		x = length;
	}
	bytes = x > rest ? x - rest : 0;
	return bytes + homa_min_u64(x, homa_min_u64(rest, rule->last));
}

/*
 * Returns the number of unscheduled bytes that a cutoff of @x puts on its level and those
 * above, of all the messages in the histogram. It grows with @x.
 */
static u64 homa_prio_sum(const struct homa_prio *prio,
			 const struct homa_prio_rule *rule, u64 x)
{
	u64 sum = 0;
	u32 bin;

	for (bin = 0; bin < HOMA_SIZE_BINS; bin++) {
		u64 n = HOMA_READ_ONCE(prio->bins[bin]);
		u64 start, end, mean;

		if (!n)
			continue;
		start = homa_prio_bin_start(bin);
		end = homa_prio_bin_end(bin);
		mean = (start + end) / 2;
		if (rule->by_remaining && end > rule->packet + 1)
			sum += n * homa_prio_bytes_below(rule, mean, x);
		else if (x + 1 >= end)
			sum += n * homa_prio_bytes(rule, mean);
		else if (x >= start)
			sum += homa_div64(n * (x + 1 - start), end - start) *
			       homa_prio_bytes(rule, (start + x + 1) / 2);
	}
	return sum;
}

/* Returns the smallest cutoff that puts at least @bytes on its level and those above. */
static u32 homa_prio_find(const struct homa_prio *prio,
			  const struct homa_prio_rule *rule, u64 bytes)
{
	u32 low = 1, high = HOMA_NO_CUTOFF;

	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (homa_prio_sum(prio, rule, mid) >= bytes)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Returns the number of levels that unscheduled bytes need for their share of all bytes. */
static u32 homa_prio_split(const struct homa_engine *engine, u64 unsched, u64 all)
{
	const struct homa_params *params = &engine->params;
	u32 max = params->num_priorities - 1;
	u32 now = params->num_priorities - engine->prio.sched_levels;
	u64 eighths;
	u32 levels;

	if (!max)
		return 1;
	if (params->unsched_levels)
		return homa_min_u32(params->unsched_levels, max);
	eighths = homa_div64(8 * params->num_priorities * unsched, all);
	/* A share halfway between two numbers must not change the split every second. */
	if (now >= 1 && now <= max && eighths + 5 >= now * 8 &&
	    eighths <= now * 8 + 5)
		return now;
	levels = (u32)((eighths + 4) / 8);
	return homa_min_u32(homa_max_u32(levels, 1), max);
}

/* Fills an array of cutoffs by level: @levels - 1 of them, the smallest on the highest. */
static void homa_prio_layout(u32 *cutoffs, u32 num_priorities, u32 levels,
			     const u32 *sizes)
{
	u32 i;

	for (i = 0; i < HOMA_PRIORITIES; i++) {
		u32 above = num_priorities - 1 - i;

		if (i >= num_priorities)
			cutoffs[i] = 0;
		else if (above + 1 < levels)
			cutoffs[i] = sizes[above];
		else
			cutoffs[i] = HOMA_NO_CUTOFF;
	}
}

static u8 homa_prio_sched_levels(u32 num_priorities, u32 levels)
{
	return num_priorities > levels ? (u8)(num_priorities - levels) : 1;
}

/* Sets the cutoffs that are in effect before any traffic: the Homa module's, continued
 * downwards. */
static void homa_prio_preset(struct homa_engine *engine)
{
	static const u32 sizes[HOMA_MAX_UNSCHED] = {
		200, 2800, 15000, 50000, 150000, 500000, HOMA_NO_CUTOFF,
	};
	const struct homa_params *params = &engine->params;
	struct homa_prio *prio = &engine->prio;
	u32 max = homa_max_u32(params->num_priorities, 2) - 1;
	u32 levels = params->unsched_levels;

	if (!levels)
		levels = (params->num_priorities + 1) / 2;
	levels = homa_min_u32(levels, max);
	homa_prio_layout(prio->cutoffs, params->num_priorities, levels, sizes);
	HOMA_WRITE_ONCE(prio->sched_levels,
			homa_prio_sched_levels(params->num_priorities, levels));
}

void homa_prio_init(struct homa_engine *engine)
{
	struct homa_prio *prio = &engine->prio;

	memset(prio, 0, sizeof(*prio));
	homa_lock_init(&prio->lock, HOMA_LOCK_PEER);
	homa_prio_preset(engine);
	prio->version = 1;
}

int homa_engine_set_cutoffs(struct homa_engine *engine, u32 levels,
			    const u32 *sizes)
{
	struct homa_prio *prio = &engine->prio;
	u32 num = engine->params.num_priorities;
	u32 i;

	if (!levels || levels > num)
		return -HOMA_EINVAL;
	for (i = 1; i + 1 < levels; i++)
		if (sizes[i] < sizes[i - 1])
			return -HOMA_EINVAL;
	homa_prio_layout(prio->cutoffs, num, levels, sizes);
	prio->sched_levels = homa_prio_sched_levels(num, levels);
	prio->agreed = true;
	return 0;
}

/* Counts what the context has seen. */
static void homa_prio_sizes(struct homa_ctx *ctx)
{
	struct homa_prio *prio = &ctx->engine->prio;
	u32 i;

	for (i = 0; i < ctx->num_sizes; i++)
		homa_counter_add(&prio->bins[ctx->sizes[i]], 1);
	ctx->num_sizes = 0;
}

void homa_prio_saw(struct homa_ctx *ctx, u32 message_length)
{
	/* The histogram is not used if cutoffs are not learnt. */
	if (!ctx->engine->params.cutoff_interval_ms)
		return;
	ctx->sizes[ctx->num_sizes++] = (u8)homa_prio_bin(message_length);
	if (unlikely(ctx->num_sizes == HOMA_CTX_SIZES))
		homa_prio_sizes(ctx);
}

u8 homa_prio_unsched(const struct homa_engine *engine, u32 bytes)
{
	u32 i;

	for (i = HOMA_PRIORITIES - 1; i > 0; i--)
		if (HOMA_READ_ONCE(engine->prio.cutoffs[i]) >= bytes)
			break;
	return (u8)i;
}

/*
 * Do the cutoffs in use still load all levels alike, give or take a quarter?
 * Then peers need not hear of others that are a little better.
 */
static bool homa_prio_fit(const struct homa_prio *prio,
			  const struct homa_prio_rule *rule, u32 num_priorities,
			  u32 levels, u64 unsched)
{
	u64 slack = homa_div64(unsched, 4 * levels);
	u32 i;

	for (i = 0; i + 1 < levels; i++) {
		u64 want = homa_div64(unsched * (i + 1), levels);
		u64 have = homa_prio_sum(prio, rule,
					 prio->cutoffs[num_priorities - 1 - i]);

		if (have > want + slack || have + slack < want)
			return false;
	}
	return true;
}

static void homa_prio_publish(struct homa_ctx *ctx, const u32 *cutoffs,
			      u8 sched_levels)
{
	struct homa_prio *prio = &ctx->engine->prio;
	u16 version = prio->version + 1;
	u32 i;

	for (i = 0; i < HOMA_PRIORITIES; i++)
		HOMA_WRITE_ONCE(prio->cutoffs[i], cutoffs[i]);
	HOMA_WRITE_ONCE(prio->sched_levels, sched_levels);
	/* 0 means "none seen" in DATA. */
	HOMA_WRITE_ONCE(prio->version, version ? version : 1);
	homa_count(ctx, HOMA_M_cutoff_changes, 1);
}

/* Chooses cutoffs for @levels unscheduled levels, if those in use do not fit. */
static void homa_prio_adapt(struct homa_ctx *ctx,
			    const struct homa_prio_rule *rule, u32 levels,
			    u64 unsched)
{
	struct homa_prio *prio = &ctx->engine->prio;
	u32 num = ctx->engine->params.num_priorities;
	u8 sched_levels = homa_prio_sched_levels(num, levels);
	u32 cutoffs[HOMA_PRIORITIES], sizes[HOMA_MAX_UNSCHED] = { 0 };
	u32 i;

	if (sched_levels == prio->sched_levels &&
	    (num == HOMA_PRIORITIES || !prio->cutoffs[num]) &&
	    homa_prio_fit(prio, rule, num, levels, unsched))
		return;
	for (i = 0; i + 1 < levels; i++)
		sizes[i] = homa_prio_find(prio, rule,
					  homa_div64(unsched * (i + 1), levels));
	homa_prio_layout(cutoffs, num, levels, sizes);
	homa_prio_publish(ctx, cutoffs, sched_levels);
}

/* Chooses levels and cutoffs from the histogram; prio locked. */
static void homa_prio_choose(struct homa_ctx *ctx, u32 rtt_bytes, u32 packet)
{
	struct homa_engine *engine = ctx->engine;
	const struct homa_params *params = &engine->params;
	struct homa_prio *prio = &engine->prio;
	struct homa_prio_rule rule = {
		.rtt = rtt_bytes,
		.last = params->last_rtt_unsched ? rtt_bytes : 0,
		.packet = packet,
		.by_remaining = params->prio_by_remaining,
	};
	u64 messages = 0, all = 0, unsched;
	u32 bin;

	for (bin = 0; bin < HOMA_SIZE_BINS; bin++) {
		u64 n = HOMA_READ_ONCE(prio->bins[bin]);

		messages += n;
		all += n *
		       ((homa_prio_bin_start(bin) + homa_prio_bin_end(bin)) / 2);
	}
	if (messages < HOMA_PRIO_MIN_MESSAGES)
		return;
	unsched = homa_prio_sum(prio, &rule, HOMA_NO_CUTOFF);
	homa_prio_adapt(ctx, &rule, homa_prio_split(engine, unsched, all),
			unsched);
	for (bin = 0; bin < HOMA_SIZE_BINS; bin++) {
		u64 n = HOMA_READ_ONCE(prio->bins[bin]);

		if (n)
			homa_counter_add(&prio->bins[bin], (u64)0 - (n + 1) / 2);
	}
}

static u32 homa_prio_packet(const struct homa_link *link)
{
	return link->mtu > HOMA_PRIO_HEADERS + 1 ? link->mtu - HOMA_PRIO_HEADERS :
						   1;
}

void homa_prio_recompute(struct homa_ctx *ctx, struct homa_link *link)
{
	struct homa_prio *prio = &ctx->engine->prio;
	u64 interval = ctx->engine->params.cutoff_interval_ms * 1000000ull;

	if (!interval || HOMA_READ_ONCE(prio->fixed) ||
	    ctx->now < HOMA_READ_ONCE(prio->recompute_at))
		return;
	homa_prio_sizes(ctx);
	homa_lock(&prio->lock);
	if (ctx->now >= prio->recompute_at) {
		HOMA_WRITE_ONCE(prio->recompute_at, ctx->now + interval);
		homa_prio_choose(ctx, HOMA_READ_ONCE(link->derived.rtt_bytes),
				 homa_prio_packet(link));
	}
	homa_unlock(&prio->lock);
}

int homa_engine_learn_cutoffs(struct homa_ctx *ctx, struct homa_link *link,
			      const u32 *sizes, u32 n)
{
	struct homa_prio *prio = &ctx->engine->prio;
	u32 i;

	if (n < HOMA_PRIO_MIN_MESSAGES)
		return -HOMA_EINVAL;
	for (i = 0; i < n; i++)
		homa_counter_add(&prio->bins[homa_prio_bin(sizes[i])], 1);
	homa_lock(&prio->lock);
	homa_prio_choose(ctx, HOMA_READ_ONCE(link->derived.rtt_bytes),
			 homa_prio_packet(link));
	prio->agreed = true;
	homa_unlock(&prio->lock);
	return 0;
}

int homa_engine_fix_cutoffs(struct homa_ctx *ctx, u32 levels, const u32 *sizes)
{
	struct homa_prio *prio = &ctx->engine->prio;
	u32 num = ctx->engine->params.num_priorities;
	u32 cutoffs[HOMA_PRIORITIES], i;

	if (levels > num)
		return -HOMA_EINVAL;
	for (i = 1; i + 1 < levels; i++)
		if (sizes[i] < sizes[i - 1])
			return -HOMA_EINVAL;
	homa_lock(&prio->lock);
	HOMA_WRITE_ONCE(prio->fixed, levels != 0);
	if (levels) {
		homa_prio_layout(cutoffs, num, levels, sizes);
		homa_prio_publish(ctx, cutoffs,
				  homa_prio_sched_levels(num, levels));
	}
	homa_unlock(&prio->lock);
	return 0;
}

u16 homa_engine_cutoffs(const struct homa_engine *engine,
			u32 cutoffs[HOMA_PRIORITIES])
{
	u32 i;

	for (i = 0; i < HOMA_PRIORITIES; i++)
		cutoffs[i] = HOMA_READ_ONCE(engine->prio.cutoffs[i]);
	return HOMA_READ_ONCE(engine->prio.version);
}
