/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What rules say about an attachment's TCP: which connections it may have, how they are
 * treated, and how much they may send and receive. Whatever an application writes into
 * its shared memory, its bytes go to the engine, and windows open, only as its limits
 * allow; what is beyond stays where it is, in the application's own memory.
 *
 * The slow path makes both (slow/tcp_policy.c); counts and buckets are the fast path's.
 *
 * Written by: the fast-path threads that run TCP, and control where a field says that it is the
 * slow path's.
 */
#ifndef HOMAD_STREAM_LIMITS_H
#define HOMAD_STREAM_LIMITS_H

#include "config.h"
#include "homa_gate.h"
#include "homa_list.h"

struct homad_stream;
struct homad_thread;

/**
 * struct homad_bucket - limits traffic to a number of bytes a second
 * @rate: The bucket gains this many bytes a second; 0 means that there is no limit.
 * @burst: @tokens never exceeds this many bytes.
 * @tokens: This many bytes may go now. A negative value says how many have gone too early.
 * @at: Time up to which @tokens counts what the bucket gained, in ns; 0 if it never has.
 */
struct homad_bucket {
	u64 rate;
	s64 burst;
	s64 tokens;
	u64 at;
};

/**
 * struct homad_waiting - streams of one instance of TCP that a limit holds
 * @held: The streams whose bytes or windows wait for tokens, by homad_stream.held.
 * @node: Its place in homad_tcp.held while @held is not empty.
 * @limit: The limit.
 */
struct homad_waiting {
	struct homa_list held;
	struct homa_list node;
	struct homad_limit *limit;
};

/**
 * struct homad_limit - limits a user's TCP under a rule, or that of all the rule's users
 *
 * Guarded by: @lock, from @send to @waits. @at has a part for each instance of TCP, which only the
 * thread that runs it uses.
 *
 * @lock: Taken for a moment by a thread, if there are several.
 * @send: This bucket limits the bytes that the streams send.
 * @receive: This bucket limits the bytes that the streams receive.
 * @most: This many connections may be open; 0 means that there is no limit.
 * @connections: The fast path counts the open connections here, and those about to be opened.
 * @refused: The fast path counts connections here that it refused because of @most or
 *	because too much was received.
 * @sent: The fast path counts sent bytes here, with the headers of packets.
 * @received: The fast path counts received bytes of payload here.
 * @waits: The fast path counts here how often a stream began to wait.
 * @at: The streams of each instance that wait.
 * @of: The limit's place in homad_tcp_ports.limits. Only the slow path uses it.
 * @refs: The slow path counts here how many policies name the limit.
 * @generation: The number of the reading of the rules that made it. Slow path only.
 * @rule: The number of the rule that it belongs to. Slow path only.
 * @uid: The user that it limits, unless @together is set. Slow path only.
 * @together: True if all of the rule's users share the limit. Slow path only.
 */
struct homad_limit {
	struct homa_gate lock;
	struct homad_bucket send, receive;
	u32 most;
	u32 connections;
	u64 refused;
	u64 sent, received;
	u64 waits;
	struct homad_waiting at[HOMAD_MAX_THREADS];
	struct homa_list of;
	u32 refs, generation, rule, uid;
	bool together;
};

/**
 * struct homad_policy - the rules that apply to an attachment, in their order
 * @num: This many entries of @part are set.
 * @rule: The rule as the administrator configured it.
 * @number: The rule's place in the configuration, from 1 on.
 * @limit: The limit that the rule sets; NULL if it sets none.
 */
struct homad_policy {
	u32 num;
	struct {
		struct homad_tcp_rule rule;
		u8 number;
		struct homad_limit *limit;
	} part[HOMAD_MAX_TCP_RULES];
};

/* ---- stream_limits.c ---- */

/**
 * homad_policy_connect(), homad_policy_listen() - return the part of the policy that
 * decides; -1: none does.
 */
int homad_policy_connect(const struct homad_policy *policy, const u8 ip[16],
			 u16 port);
int homad_policy_listen(const struct homad_policy *policy, u16 port);

/** homad_bucket_fill() - add the tokens that the bucket has gained up to @now, in ns. */
void homad_bucket_fill(struct homad_bucket *bucket, u64 now);
/** homad_bucket_set() - set the rate to @rate bytes a second and fill the bucket. */
void homad_bucket_set(struct homad_bucket *bucket, u64 rate);

/** homad_limit_init() - make a limit of @send and @receive bytes a second and @most connections. */
void homad_limit_init(struct homad_limit *limit, u64 send, u64 receive, u32 most);
/** homad_limit_full() - has it as many connections as it may? A refusal is counted. Else one more
 *  is counted, for homad_limit_join() or homad_limit_dismiss(). NULL has no limit. */
bool homad_limit_full(struct homad_thread *t, struct homad_limit *limit);
/** homad_limit_dismiss() - the connection was not opened after all. */
void homad_limit_dismiss(struct homad_limit *limit);
/**
 * homad_limit_join(), homad_limit_leave() - a stream begins under part @part of its policy, or
 * ends. @counted: homad_limit_full() has counted it.
 */
void homad_limit_join(struct homad_stream *stream,
		      const struct homad_policy *policy, int part, bool counted);
void homad_limit_leave(struct homad_stream *stream);

/**
 * homad_limit_send() - return how many of @bytes of a stream may go to the engine now, and
 * spend their tokens; the stream is held for the others.
 */
u32 homad_limit_send(struct homad_thread *t, struct homad_stream *stream,
		     u32 bytes);
/**
 * homad_limit_open() - return by how many of @bytes that an application has taken the
 * window may open now; the stream is held for the others.
 */
u32 homad_limit_open(struct homad_thread *t, struct homad_stream *stream,
		     u32 bytes);
/**
 * homad_limit_sent() - count a unit that went out: @wire bytes on the cable for payload up
 * to position @end. Tokens are spent now for all but new payload.
 */
void homad_limit_sent(struct homad_stream *stream, u32 end, u32 length, u64 wire);
/** homad_limit_received() - count @bytes of payload that are copied for @stream. */
void homad_limit_received(struct homad_stream *stream, u32 bytes);

/** homad_limit_fill() - add the tokens that it has gained; false: no stream of it can go on, as it
 *  has none. */
bool homad_limit_fill(const struct homad_thread *t, struct homad_limit *limit);
/** homad_limit_again_at() - return when its held streams are looked at again, in ns. */
u64 homad_limit_again_at(const struct homad_thread *t, struct homad_limit *limit);

/* ---- stream_held.c ---- */

/** homad_limits_round() - let held streams go on as far as their limits allow. */
void homad_limits_round(struct homad_thread *t);
/**
 * homad_limits_change() - use other rules from now on; @arg: struct homad_limits_change.
 */
struct homad_limits_change {
	/* The attachment. */
	struct homad_app *app;
	/* In: the new policy. Out: the policy before. */
	struct homad_policy *policy; /* out: the policy before */
};
int homad_limits_change(struct homad_thread *t, void *arg);

#endif
