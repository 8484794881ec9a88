// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Limits of TCP, by token buckets: see stream_limits.h. Bytes to send are spent when the engine
 * is told of them, headers and what is sent again when they leave. Bytes received are
 * spent when they are copied, and windows open as long as there is something to spend, so what
 * peers may send beyond is what fits into the buffers.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "stream_limits.h"
#include "streams.h"
#include "tcp_stream.h"

/* The bytes that a stream gets in its turn. */
#define TURN_BYTES 16384u
/* A bucket holds what its rate gives in 1/BURSTS s, but LEAST_BURST bytes at least. */
#define BURSTS 50u
#define LEAST_BURST 16384
#define LONGEST_NS 1000000000000ull
/* The least number of tokens for which a thread wakes up, in bytes. */
#define USEFUL 4096

/* ---- rules ---- */

HOMA_STATIC_ASSERT((int)HOMAD_TCP_CONSTANT == TAS_CONSTANT,
		   "a rule's words are the engine's, in its order");

static bool prefix_has(const struct homad_tcp_rule *rule, const u8 ip[16])
{
	u32 whole = rule->prefix / 8, rest = rule->prefix % 8;

	return !memcmp(ip, rule->ip, whole) &&
	       (!rest || !((ip[whole] ^ rule->ip[whole]) >> (8 - rest)));
}

int homad_policy_connect(const struct homad_policy *policy, const u8 ip[16],
			 u16 port)
{
	u32 i;

	for (i = 0; i < policy->num; i++) {
		const struct homad_tcp_rule *rule = &policy->part[i].rule;

		if (rule->connect[0] && port >= rule->connect[0] &&
		    port <= rule->connect[1] && prefix_has(rule, ip))
			return (int)i;
	}
	return -1;
}

int homad_policy_listen(const struct homad_policy *policy, u16 port)
{
	u32 i;

	for (i = 0; i < policy->num; i++) {
		const struct homad_tcp_rule *rule = &policy->part[i].rule;

		if (rule->listen[0] && port >= rule->listen[0] &&
		    port <= rule->listen[1])
			return (int)i;
	}
	return -1;
}

/* ---- buckets ---- */

void homad_bucket_set(struct homad_bucket *bucket, u64 rate)
{
	bucket->rate = rate;
	bucket->burst = (s64)homa_max_u64(rate / BURSTS, LEAST_BURST);
	bucket->tokens = bucket->burst;
	bucket->at = 0;
}

void homad_bucket_fill(struct homad_bucket *bucket, u64 now)
{
	u64 ns, more;

	/* Another thread's round, whose clock is ahead of this one's, has filled it. */
	if (unlikely(now < bucket->at))
		return;
	if (!bucket->at || now - bucket->at > LONGEST_NS)
		bucket->at = bucket->at ? now - LONGEST_NS : now;
	ns = now - bucket->at;
	/* Each step is short enough for 64 bits, and loses no part of a byte. */
	more = bucket->rate * (ns / 1000000000) +
	       bucket->rate * (ns % 1000000000) / 1000000000;
	if (!more)
		return;
	if ((s64)more > bucket->burst - bucket->tokens) {
		bucket->tokens = bucket->burst;
		bucket->at = now;
		return;
	}
	bucket->tokens += (s64)more;
	/* The time is rounded up, or each look would gain tokens from nothing. */
	bucket->at += more / bucket->rate * 1000000000 +
		      (more % bucket->rate * 1000000000 + bucket->rate - 1) /
			      bucket->rate;
}

/* Returns when there will be USEFUL tokens, ns, or TAS_NEVER if there are already. */
static u64 filled_at(const struct homad_bucket *bucket)
{
	u64 lacks;

	if (!bucket->rate || bucket->tokens >= USEFUL)
		return TAS_NEVER;
	lacks = (u64)(USEFUL - bucket->tokens);
	return bucket->at + lacks / bucket->rate * 1000000000 +
	       lacks % bucket->rate * 1000000000 / bucket->rate + 1;
}

/* ---- limits ---- */

/* With one thread nobody else could hold it. */
static void lock(struct homad_limit *limit)
{
	if (!homa_plat_alone)
		homa_gate_lock(&limit->lock);
}

static void unlock(struct homad_limit *limit)
{
	if (!homa_plat_alone)
		homa_gate_unlock(&limit->lock);
}

void homad_limit_init(struct homad_limit *limit, u64 send, u64 receive, u32 most)
{
	u32 i;

	homad_bucket_set(&limit->send, send);
	homad_bucket_set(&limit->receive, receive);
	limit->most = most;
	for (i = 0; i < HOMAD_MAX_THREADS; i++) {
		homa_list_init(&limit->at[i].held);
		homa_list_init(&limit->at[i].node);
		limit->at[i].limit = limit;
	}
}

bool homad_limit_full(struct homad_thread *t, struct homad_limit *limit)
{
	bool full;

	if (!limit)
		return false;
	lock(limit);
	full = limit->most && limit->connections >= limit->most;
	/* Each new connection brings a window of its own, so none is taken while the others owe
	 * more than a burst. */
	if (limit->receive.rate) {
		homad_bucket_fill(&limit->receive, t->ctx.now);
		full |= limit->receive.tokens < -limit->receive.burst;
	}
	limit->refused += full;
	limit->connections += !full;
	unlock(limit);
	t->counters.tcp_refused += full;
	return full;
}

void homad_limit_dismiss(struct homad_limit *limit)
{
	if (!limit)
		return;
	lock(limit);
	limit->connections--;
	unlock(limit);
}

bool homad_limit_fill(const struct homad_thread *t, struct homad_limit *limit)
{
	bool some;

	lock(limit);
	homad_bucket_fill(&limit->send, t->ctx.now);
	homad_bucket_fill(&limit->receive, t->ctx.now);
	some = (limit->send.rate && limit->send.tokens > 0) ||
	       (limit->receive.rate && limit->receive.tokens > 0);
	unlock(limit);
	return some;
}

u64 homad_limit_again_at(const struct homad_thread *t, struct homad_limit *limit)
{
	u64 at;

	lock(limit);
	at = homa_min_u64(filled_at(&limit->send), filled_at(&limit->receive));
	unlock(limit);
	return at == TAS_NEVER ? t->ctx.now : homa_max_u64(at, t->ctx.now);
}

/* ---- streams ---- */

void homad_limit_join(struct homad_stream *stream,
		      const struct homad_policy *policy, int part, bool counted)
{
	const struct homad_tcp_rule *rule =
		part < 0 ? NULL : &policy->part[part].rule;
	u32 sent = stream->conn.f.snd_nxt - stream->conn.iss;

	/* The SYN has a number, too. Bytes that were sent under another rule are not new
	 * any more. */
	stream->sent_to = sent ? sent - 1 : 0;
	stream->dscp = rule ? rule->dscp : 0;
	stream->rule = rule ? policy->part[part].number : 0;
	stream->limit = rule ? policy->part[part].limit : NULL;
	if (!stream->limit || counted)
		return;
	lock(stream->limit);
	stream->limit->connections++;
	unlock(stream->limit);
}

/* Returns the stream's instance's part of its limit. */
static struct homad_waiting *waiting_of(const struct homad_stream *stream)
{
	return &stream->limit->at[stream->home->tcp->index];
}

void homad_limit_leave(struct homad_stream *stream)
{
	struct homad_limit *limit = stream->limit;
	struct homad_waiting *waiting;

	if (!limit)
		return;
	waiting = waiting_of(stream);
	stream->limit = NULL;
	homad_limit_dismiss(limit);
	homa_list_del(&stream->held);
	if (homa_list_empty(&waiting->held))
		homa_list_del(&waiting->node);
}

static void hold(struct homad_thread *t, struct homad_stream *stream)
{
	struct homad_limit *limit = stream->limit;
	struct homad_waiting *waiting = waiting_of(stream);

	if (homa_list_linked(&stream->held))
		return;
	lock(limit);
	limit->waits++;
	unlock(limit);
	homa_list_add_tail(&waiting->held, &stream->held);
	if (!homa_list_linked(&waiting->node))
		homa_list_add_tail(&t->tcp->held, &waiting->node);
	t->tcp->held_at =
		homa_min_u64(t->tcp->held_at, homad_limit_again_at(t, limit));
}

/* Returns for how many of @bytes there are tokens. */
static u32 within(struct homad_thread *t, struct homad_bucket *bucket, u32 bytes)
{
	if (!bucket->rate)
		return bytes;
	homad_bucket_fill(bucket, t->ctx.now);
	if (bucket->tokens <= 0)
		return 0;
	return (u32)homa_min_u64(homa_min_u32(bytes, TURN_BYTES),
				 (u64)bucket->tokens);
}

u32 homad_limit_send(struct homad_thread *t, struct homad_stream *stream,
		     u32 bytes)
{
	struct homad_limit *limit = stream->limit;
	u32 some;

	lock(limit);
	some = within(t, &limit->send, bytes);
	/* If there are few tokens, streams that already wait get theirs first. */
	if (limit->send.rate && limit->send.tokens < USEFUL &&
	    !homa_list_linked(&stream->held) &&
	    !homa_list_empty(&waiting_of(stream)->held))
		some = 0;
	limit->send.tokens -= some;
	unlock(limit);
	if (some < bytes)
		hold(t, stream);
	return some;
}

u32 homad_limit_open(struct homad_thread *t, struct homad_stream *stream,
		     u32 bytes)
{
	struct homad_limit *limit = stream->limit;
	u32 some;

	lock(limit);
	some = within(t, &limit->receive, bytes);
	unlock(limit);
	/* The limit holds the peer back here, not the window. So the buffer need not grow, and it
	 * must not: what peers may send beyond the limit is what fits into it. */
	if (some < homa_min_u32(bytes, TURN_BYTES))
		stream->rx_taken = 0;
	if (some < bytes)
		hold(t, stream);
	return some;
}

void homad_limit_sent(struct homad_stream *stream, u32 end, u32 length, u64 wire)
{
	struct homad_limit *limit = stream->limit;
	u32 fresh = end - stream->sent_to;

	if ((s32)fresh <= 0) {
		fresh = 0;
	} else {
		stream->sent_to = end;
		fresh = homa_min_u32(fresh, length);
	}
	lock(limit);
	limit->sent += wire;
	limit->send.tokens -= (s64)(wire - fresh);
	unlock(limit);
}

void homad_limit_received(struct homad_stream *stream, u32 bytes)
{
	struct homad_limit *limit = stream->limit;

	lock(limit);
	limit->received += bytes;
	limit->receive.tokens -= bytes;
	unlock(limit);
}
