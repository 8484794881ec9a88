/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What rules say about an attachment's TCP: which connections it may have, how they are
 * treated, and how much they may send and receive. Whatever an application writes into
 * its shared memory, its bytes go to the engine, and windows open, only as its limits
 * allow; what is beyond stays where it is, in the application's own memory.
 *
 * The slow path makes both (slow/tcp_policy.c); counts and buckets are the fast path's.
 */
#ifndef HOMAD_STREAM_LIMITS_H
#define HOMAD_STREAM_LIMITS_H

#include "config.h"
#include "homa_list.h"

struct homad_stream;
struct homad_thread;

/**
 * struct homad_bucket - so many bytes a second
 * @rate: bytes a second; 0: as many as there are. @burst: most that @tokens may be.
 * @tokens: bytes that may go now; below 0: so many have gone too early.
 * @at: up to when @tokens were counted, ns; 0: never.
 */
struct homad_bucket {
	u64 rate;
	s64 burst;
	s64 tokens;
	u64 at;
};

/**
 * struct homad_limit - of a user under a rule, or of all of a rule's users together
 * @send, @receive: bytes. @most: connections; 0: as many as there are.
 * @connections: that are open. @refused: those that were not, for @most or because too
 *	much was received.
 * @sent, @received: bytes, headers of packets that were sent included.
 * @held: streams with bytes or windows that wait; @node: in homad_tcp.held while there
 *	are such. @waits: how often a stream had to.
 * @of: its place in homad_tcp_ports.limits. @refs: how many policies name it. @generation,
 *	@rule, @uid: of which reading of the rules, which rule and which user it is. Only the
 *	slow path uses these.
 */
struct homad_limit {
	struct homad_bucket send, receive;
	u32 most;
	u32 connections;
	u64 refused;
	u64 sent, received;
	u64 waits;
	struct homa_list held;
	struct homa_list node;
	struct homa_list of;
	u32 refs, generation, rule, uid;
	bool together;
};

/**
 * struct homad_policy - the rules that are for an attachment, in their order
 * @rule: as configured. @limit: NULL: it has none.
 */
struct homad_policy {
	u32 num;
	struct {
		struct homad_tcp_rule rule;
		struct homad_limit *limit;
	} part[HOMAD_MAX_TCP_RULES];
};

/* ---- stream_limits.c ---- */

/** homad_policy_connect(), homad_policy_listen() - the part that decides, -1: none does. */
int homad_policy_connect(const struct homad_policy *policy, const u8 ip[16],
			 u16 port);
int homad_policy_listen(const struct homad_policy *policy, u16 port);

/** homad_bucket_fill() - what has come in up to @now. */
void homad_bucket_fill(struct homad_bucket *bucket, u64 now);
/** homad_bucket_set() - @rate bytes a second from now on; full. */
void homad_bucket_set(struct homad_bucket *bucket, u64 rate);

/** homad_limit_full() - may it have no more connections? Counted, if so. */
bool homad_limit_full(struct homad_thread *t, struct homad_limit *limit);
/** homad_limit_join(), homad_limit_leave() - a stream under part @part of its policy
 *  begins; it ends. */
void homad_limit_join(struct homad_stream *stream,
		      const struct homad_policy *policy, int part);
void homad_limit_leave(struct homad_stream *stream);

/** homad_limit_send() - of @bytes of a stream, how many may go to the engine now? Those are
 *  spent; for the others it is held. */
u32 homad_limit_send(struct homad_thread *t, struct homad_stream *stream,
		     u32 bytes);
/** homad_limit_open() - of @bytes that an application has taken, by how many may the window
 *  open now? For the others it is held. */
u32 homad_limit_open(struct homad_thread *t, struct homad_stream *stream,
		     u32 bytes);
/** homad_limit_sent() - a unit went out: @wire bytes on the cable for payload up to
 *  position @end. What is not new payload is spent now. */
void homad_limit_sent(struct homad_stream *stream, u32 end, u32 length, u64 wire);
/** homad_limit_received() - @bytes of payload have come. */
void homad_limit_received(struct homad_stream *stream, u32 bytes);

/** homad_limit_again_at() - when streams that it holds are looked at again, ns. */
u64 homad_limit_again_at(const struct homad_thread *t,
			 const struct homad_limit *limit);

/* ---- held.c ---- */

/** homad_limits_round() - streams that were held go on as far as they may. */
void homad_limits_round(struct homad_thread *t);
/** homad_limits_change() - @arg: struct homad_limits_change: other rules from now on. */
struct homad_limits_change {
	struct homad_app *app;
	struct homad_policy *policy; /* out: what it was */
};
int homad_limits_change(struct homad_thread *t, void *arg);

#endif
