// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Limits of TCP, by token buckets: see stream_limits.h. Bytes to send are spent when the engine
 * is told of them, headers and what is sent again when they leave. Bytes received are
 * spent when they arrive, and windows open as long as there is something to spend, so
 * what peers may send beyond is what fits into the buffers.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "stream_limits.h"
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

/* ---- streams ---- */

bool homad_limit_full(struct homad_thread *t, struct homad_limit *limit)
{
	bool full;

	if (!limit)
		return false;
	full = limit->most && limit->connections >= limit->most;
	/* Each new connection brings a window of its own, so none is taken while the others owe
	 * more than a burst. */
	if (limit->receive.rate) {
		homad_bucket_fill(&limit->receive, t->ctx.now);
		full |= limit->receive.tokens < -limit->receive.burst;
	}
	limit->refused += full;
	t->counters.tcp_refused += full;
	return full;
}

void homad_limit_join(struct homad_stream *stream,
		      const struct homad_policy *policy, int part)
{
	const struct homad_tcp_rule *rule =
		part < 0 ? NULL : &policy->part[part].rule;
	u32 sent = stream->conn.f.snd_nxt - stream->conn.iss;

	/* The SYN has a number, too. Bytes that were sent under another rule are not new
	 * any more. */
	stream->sent_to = sent ? sent - 1 : 0;
	stream->dscp = rule ? rule->dscp : 0;
	stream->limit = rule ? policy->part[part].limit : NULL;
	if (stream->limit)
		stream->limit->connections++;
}

void homad_limit_leave(struct homad_stream *stream)
{
	struct homad_limit *limit = stream->limit;

	if (!limit)
		return;
	stream->limit = NULL;
	limit->connections--;
	homa_list_del(&stream->held);
	if (homa_list_empty(&limit->held))
		homa_list_del(&limit->node);
}

u64 homad_limit_again_at(const struct homad_thread *t,
			 const struct homad_limit *limit)
{
	u64 at = homa_min_u64(filled_at(&limit->send),
			      filled_at(&limit->receive));

	return at == TAS_NEVER ? t->ctx.now : homa_max_u64(at, t->ctx.now);
}

static void hold(struct homad_thread *t, struct homad_stream *stream)
{
	struct homad_limit *limit = stream->limit;

	if (homa_list_linked(&stream->held))
		return;
	limit->waits++;
	homa_list_add_tail(&limit->held, &stream->held);
	if (!homa_list_linked(&limit->node))
		homa_list_add_tail(&t->tcp->held, &limit->node);
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
	u32 some = within(t, &limit->send, bytes);

	/* If there are few tokens, streams that already wait get theirs first. */
	if (limit->send.rate && limit->send.tokens < USEFUL &&
	    !homa_list_linked(&stream->held) && !homa_list_empty(&limit->held))
		some = 0;
	limit->send.tokens -= some;
	if (some < bytes)
		hold(t, stream);
	return some;
}

u32 homad_limit_open(struct homad_thread *t, struct homad_stream *stream,
		     u32 bytes)
{
	u32 some = within(t, &stream->limit->receive, bytes);

	if (some < bytes)
		hold(t, stream);
	return some;
}

void homad_limit_sent(struct homad_stream *stream, u32 end, u32 length, u64 wire)
{
	u32 fresh = end - stream->sent_to;

	stream->limit->sent += wire;
	if ((s32)fresh <= 0) {
		fresh = 0;
	} else {
		stream->sent_to = end;
		fresh = homa_min_u32(fresh, length);
	}
	stream->limit->send.tokens -= (s64)(wire - fresh);
}

void homad_limit_received(struct homad_stream *stream, u32 bytes)
{
	stream->limit->received += bytes;
	stream->limit->receive.tokens -= bytes;
}
