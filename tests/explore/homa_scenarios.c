/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where searches begin. Each has some hosts, RPCs of one to three packets and faults;
 * together the ways of all of them are the bound that docs/guarantees.md names.
 */
#include "homa_world.h"

#include <string.h>

#define SEG 64u
#define BIG 40000u /* a packet, where receive pages matter */
/* tombstone_ms of homa_host.c: what the promise is about */
#define LATE (40 * XP_MS)

/* One table of scenarios, with what some of them do between its lines, laid out by hand. */
/* clang-format off */

static const struct xh_what one_short = {
	.num = 1, .seg = SEG, .rpc = { { 0, 1, SEG, SEG } },
};

/* The same of peers that say nothing of lives of servers, as the existing module does. */
static const struct xh_what lifeless = {
	.num = 1, .seg = SEG, .no_lives = true, .rpc = { { 0, 1, SEG, SEG } },
};

static const struct xh_what lifeless_long = {
	.num = 1, .seg = SEG, .no_lives = true, .rpc = { { 0, 1, 3 * SEG, 2 * SEG } },
};

/* The second one knows its server from the first. */
static const struct xh_what met = {
	.num = 2, .seg = SEG,
	.rpc = { { 0, 1, SEG, SEG }, { 0, 1, 2 * SEG, SEG, .after_ns = 3 * XP_MS } },
};

static const struct xh_what one_long = {
	.num = 1, .seg = SEG, .rpc = { { 0, 1, 3 * SEG, 2 * SEG } },
};

static const struct xh_what two = {
	.num = 2, .seg = SEG, .rpc = { { 0, 1, 2 * SEG, SEG }, { 0, 1, SEG, 2 * SEG } },
};

static const struct xh_what cross = {
	.num = 2, .seg = SEG, .rpc = { { 0, 1, 3 * SEG, SEG }, { 1, 0, 2 * SEG, SEG } },
};

/* Odd lengths: packets that are not full, and messages of another length than they. */
static const struct xh_what odd = {
	.num = 2, .seg = SEG, .rpc = { { 0, 1, SEG + 1, 1 }, { 0, 1, 1, 3 * SEG - 1 } },
};

static const struct xh_what idle = {
	.num = 2, .seg = SEG,
	.rpc = { { 0, 1, SEG, 2 * SEG }, { 0, 1, 2 * SEG, SEG, .after_ns = 2777 * XP_MS } },
};

/* The second one ends shortly before the engine tidies up. */
static const struct xh_what tidy = {
	.num = 3, .seg = SEG,
	.rpc = { { 0, 1, SEG, SEG }, { 0, 1, SEG, SEG, .after_ns = 95 * XP_MS },
		 { 0, 1, SEG, SEG, .after_ns = 6 * XP_MS } },
};

/* A server whose application does not answer one of two requests. */
static const struct xh_what rejected = {
	.num = 2, .seg = SEG,
	.rpc = { { 0, 1, 2 * SEG, 1, .reject = 111 }, { 0, 1, SEG, SEG } },
};

/* The same for a client that does not understand it. */
static const struct xh_what unheard = {
	.num = 1, .seg = SEG, .no_rejects = true, .rpc = { { 0, 1, 2 * SEG, 1, .reject = 111 } },
};

/* Outcomes for which their application has no time, of requests that come in pieces. */
static const struct xh_what untaken = {
	.num = 2, .seg = SEG, .untaken = true,
	.rpc = { { 0, 1, 1, 1, .reject = 111 }, { 0, 1, 1, SEG } },
};

static const struct xh_what skew = {
	.num = 1, .seg = SEG, .behind_ns = 2000, .rpc = { { 0, 1, 2 * SEG, 2 * SEG } },
};

static const struct xh_what other_way = {
	.num = 2, .seg = SEG, .other_way = true, .cutoffs = true,
	.rpc = { { 0, 1, SEG, SEG }, { 0, 1, 2 * SEG, SEG, .after_ns = 3 * XP_MS } },
};

/* A message that was announced waits for its grant behind the first one. */
static void one_at_a_time(struct homa_params *params)
{
	params->max_incoming = SEG;
	params->max_overcommit = 1;
}

static const struct xh_what whole = {
	.num = 3, .seg = SEG, .pages = 2, .deliver_whole = true, .at_once = true,
	.tweak = one_at_a_time,
	.rpc = { { 0, 1, 2 * SEG, SEG }, { 0, 1, SEG, SEG - 1 }, { 1, 0, SEG, 1 } },
};

/* Three packets, but only pages for one of the long ones at a time. */
static const struct xh_what pages = {
	.num = 3, .seg = BIG, .pages = 2,
	.rpc = { { 0, 1, 3 * BIG, 1 }, { 0, 1, 2 * BIG, 1 }, { 0, 1, 1, 1 } },
};

/* Gaps of several packets, in whose middle others fall. */
static const struct xh_what burst = {
	.num = 1, .seg = SEG, .burst = 4, .rpc = { { 0, 1, 4 * SEG, 1 } },
};

static const struct xh_what three = {
	.num = 3, .seg = SEG,
	.rpc = { { 0, 1, 2 * SEG, 1 }, { 0, 1, 3 * SEG, 1 }, { 0, 1, 2 * SEG, 1 } },
};

/* The other way: a server has no other help than its client. */
static const struct xh_what answer = {
	.num = 1, .seg = SEG, .burst = 4, .rpc = { { 0, 1, 1, 4 * SEG } },
};

/* Grants that end inside a packet. */
static void half_packets(struct homa_params *params)
{
	params->window = SEG + SEG / 2;
}

static const struct xh_what part = {
	.num = 1, .seg = SEG, .tweak = half_packets, .rpc = { { 0, 1, 3 * SEG, 1 } },
};

/* Equally long ones, of which one is granted to at a time. */
static const struct xh_what order = {
	.num = 3, .seg = SEG, .tweak = one_at_a_time,
	.rpc = { { 0, 1, 3 * SEG, 1 }, { 0, 1, 3 * SEG, 1 }, { 0, 1, 3 * SEG, 1 } },
};

static const struct xh_what told = {
	.num = 3, .seg = SEG, .pages = 3, .deliver_whole = true, .tweak = one_at_a_time,
	.rpc = { { 0, 1, SEG, 1 }, { 0, 1, SEG, 1 }, { 0, 1, SEG, 1 } },
};

/* Two messages in one page, and little patience with who sent little. */
static const struct xh_what copied = {
	.num = 2, .seg = BIG / 4, .burst = 4, .pages = 1,
	.rpc = { { 0, 1, BIG, 1 }, { 0, 1, BIG / 4, 1 } },
};

/* A page for one message of two, and little patience with who sent half of his. */
static const struct xh_what halves = {
	.num = 2, .seg = BIG / 2, .burst = 2, .pages = 1,
	.rpc = { { 0, 1, BIG, 1 }, { 2, 1, BIG, 1 } },
};

static const struct xh_what full = {
	.num = 2, .seg = SEG, .pages = 2, .full = true,
	.rpc = { { 0, 1, SEG, 1 }, { 0, 1, 2 * SEG, 1 } },
};

/* A server that remembers for less time than clients wait. */
static void short_memory(struct homa_params *params)
{
	params->tombstone_ms = 10;
}

static const struct xh_what forgets = {
	.num = 1, .seg = SEG, .tweak = short_memory, .rpc = { { 0, 1, SEG, SEG } },
};

/* Two alike, of one to three packets each way: what a bound is told for. */
static const struct xh_what pair1 = {
	.num = 2, .seg = SEG, .rpc = { { 0, 1, SEG, SEG }, { 0, 1, SEG, SEG } },
};

static const struct xh_what pair2 = {
	.num = 2, .seg = SEG, .rpc = { { 0, 1, 2 * SEG, 2 * SEG }, { 0, 1, 2 * SEG, 2 * SEG } },
};

/* For counterexamples from before engines spoke of lives: such peers there are. */
static const struct xh_what lifeless_pair2 = {
	.num = 2, .seg = SEG, .no_lives = true,
	.rpc = { { 0, 1, 2 * SEG, 2 * SEG }, { 0, 1, 2 * SEG, 2 * SEG } },
};

static const struct xh_what lifeless_pieces = {
	.num = 1, .seg = SEG, .pieces = true, .no_lives = true,
	.rpc = { { 0, 1, 3 * SEG, 2 * SEG } },
};

static const struct xh_what pair3 = {
	.num = 2, .seg = SEG, .rpc = { { 0, 1, 3 * SEG, 3 * SEG }, { 0, 1, 3 * SEG, 3 * SEG } },
};

/* Packets leave in the link's time, which is less than the interval of the oldest's share. */
static void with_share(struct homa_params *params)
{
	one_at_a_time(params);
	params->fifo_grant_increment = SEG;
	params->grant_fifo_fraction = 250;
	params->pacer_fifo_fraction = 500;
}

static const struct xh_what paced = {
	.num = 3, .seg = SEG, .rate = 10, .tweak = with_share, .all_at_once = true,
	.rpc = { { 0, 1, 6 * SEG, 1 }, { 0, 1, 5 * SEG, 1 }, { 0, 1, 5 * SEG, 1 } },
};

static const struct xh_what room = {
	.num = 1, .seg = SEG, .by_room = true,
	.rpc = { { 0, 1, 3 * SEG, 2 * SEG } },
};

static const struct xh_what pieces = {
	.num = 1, .seg = SEG, .pieces = true, .rpc = { { 0, 1, 3 * SEG, 2 * SEG } },
};

/* The rules of the study of 2018. */
static void sigcomm(struct homa_params *params)
{
	params->sigcomm_grants = 1;
	params->last_rtt_unsched = 1;
	params->prio_by_remaining = 1;
	params->unsched_levels = 2;
	params->window = 0;
	params->quiet_us = 3000;
	params->max_overcommit = 2;
	params->incast_rpcs = 1;
}

static const struct xh_what study = {
	.num = 3, .seg = SEG, .tweak = sigcomm,
	.rpc = { { 0, 1, 2 * SEG, 1 }, { 0, 1, 3 * SEG, 1 }, { 0, 1, 3 * SEG, 1 } },
};

/* What an administrator changes: fewer levels, less at a time, priorities of his own. */
static void change(struct homa_ctx *ctx)
{
	static const u32 sizes[] = { SEG };
	struct homa_params params = *homa_engine_params(ctx->engine);

	if (homa_param_set(&params, "max_overcommit", 1) ||
	    homa_param_set(&params, "num_priorities", 3) ||
	    homa_param_set(&params, "sigcomm_grants", !params.sigcomm_grants) ||
	    !homa_param_set(&params, "num_priorities", 9) ||
	    !homa_param_set(&params, "no_such_setting", 1))
		xp_fail("settings that there are cannot be set, or others can");
	if (homa_engine_set_params(ctx, &params) || homa_engine_fix_cutoffs(ctx, 2, sizes))
		xp_fail("an engine refuses its settings");
}

static const struct xh_what changed = {
	.num = 3, .seg = SEG, .change = change,
	.rpc = { { 0, 1, 2 * SEG, 1 }, { 0, 1, 3 * SEG, 1 }, { 0, 1, 3 * SEG, SEG } },
};

/* Receive regions of which a part has memory behind it, and then another part. */
static void back(struct homa_ctx *ctx)
{
	struct xh_host *h = homa_container_of(ctx, struct xh_host, ctx);
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(h->sock); i++)
		if (h->sock[i])
			homa_pool_back(ctx, h->sock[i], h->sock[i]->pool->num_backed > 2 ? 2 : 9);
}

static const struct xh_what backed = {
	.num = 2, .seg = BIG, .pages = 4, .change = back,
	.rpc = { { 0, 1, 3 * BIG, 1 }, { 0, 1, BIG, 2 * BIG } },
};

/* All settings as they are at first, over a link whose rate is known. */
static void defaults(struct homa_params *params)
{
	homa_params_default(params);
	params->tombstone_ms = 40;
}

static const struct xh_what usual = {
	.num = 2, .seg = 1000, .burst = 100, .rate = 10000, .tweak = defaults,
	.rpc = { { 0, 1, 1000, 3000 }, { 0, 1, 2000, 1, .after_ns = 200 * XP_MS } },
};

/* A failed request of which its application hands in more before it looks. */
static const struct xh_what late_piece = {
	.num = 1, .seg = SEG, .pieces = true, .untaken = true,
	.rpc = { { 0, 1, 2 * SEG, 1 } },
};

/* A long message that stops half-way: another has the page that it was promised. */
static const struct xh_what half_way = {
	.num = 3, .seg = BIG, .pages = 2,
	.rpc = { { 0, 1, 3 * BIG, 1 }, { 0, 1, BIG + 2, 1 }, { 0, 1, BIG + 1, 1 } },
};

/* Responses for which their client has one page. */
static const struct xh_what answers = {
	.num = 2, .seg = BIG / 2, .burst = 2, .pages = 1,
	.rpc = { { 0, 1, 1, BIG }, { 0, 1, 1, BIG } },
};

/* Few RPCs for each owner of a socket. */
static void few(struct homa_params *params)
{
	params->max_rpcs = 3;
	params->max_server_rpcs_per_peer = 2;
	params->max_owner_backlog = 1;
}

static const struct xh_what owners = {
	.num = 4, .seg = SEG, .owned = true, .tweak = few,
	.rpc = { { 0, 1, SEG, SEG }, { 0, 1, SEG, 1 }, { 1, 0, SEG, 1 }, { 0, 1, SEG, 1 } },
};

static const struct xh_what looked = {
	.num = 2, .seg = SEG, .look = true, .finish = true, .own_ids = true, .gone = true,
	.ctrl = 1, .rpc = { { 0, 1, 2 * SEG, SEG }, { 1, 0, SEG, 2 * SEG } },
};

/* Grants of which several are on their way, on levels that rise, and windows that follow. */
static void levels(struct homa_params *params)
{
	params->window = 0;
	params->grant_quantum = 0;
	params->max_incoming = 5 * SEG;
	params->max_overcommit = 2;
	params->unsched_levels = 1;
}

static const struct xh_what rising = {
	.num = 2, .seg = SEG, .tweak = levels, .all_at_once = true,
	.rpc = { { 0, 1, 6 * SEG, 1 }, { 0, 1, 4 * SEG, 1 } },
};

/* The same of three, so that levels differ by more than one. */
static void more_levels(struct homa_params *params)
{
	levels(params);
	params->max_overcommit = 3;
	params->max_incoming = 9 * SEG;
}

static const struct xh_what stairs = {
	.num = 3, .seg = SEG, .tweak = more_levels, .all_at_once = true,
	.rpc = { { 0, 1, 8 * SEG, 1 }, { 0, 1, 6 * SEG, 1 }, { 0, 1, 4 * SEG, 1 } },
};

/* Two peers with long messages, of which two are granted to. */
static void two_peers(struct homa_params *params)
{
	params->max_incoming = 2 * SEG;
	params->max_overcommit = 2;
}

static const struct xh_what peers = {
	.num = 3, .seg = SEG, .tweak = two_peers, .all_at_once = true, .look = true,
	.rpc = { { 0, 1, 3 * SEG, 1 }, { 0, 1, 4 * SEG, 1 }, { 2, 1, 3 * SEG, 1 } },
};

/* A server that takes one request of a peer at a time. */
static void one_each(struct homa_params *params)
{
	params->max_server_rpcs_per_peer = 1;
	params->max_backlog = 1;
}

static const struct xh_what crowd = {
	.num = 2, .seg = SEG, .tweak = one_each,
	.rpc = { { 0, 1, SEG, 1 }, { 0, 1, 2 * SEG, 1 } },
};

static const struct xh_what want = {
	.num = 2, .seg = BIG / 2, .pages = 1, .hostile = true, .look = true,
	.rpc = { { 0, 1, BIG, 1 }, { 0, 1, BIG, BIG / 2 } },
};

static const struct xh_what hostile = {
	.num = 2, .seg = SEG, .hostile = true, .gone = true,
	.rpc = { { 0, 1, 2 * SEG, 2 * SEG }, { 0, 1, SEG, SEG } },
};

/* The last packet comes long before it was granted, so much is missing that was not either. */
static const struct xh_what ahead = {
	.num = 1, .seg = SEG, .hostile = true, .rpc = { { 0, 1, 5 * SEG, 1 } },
};

static const struct xh_what sleepy = {
	.num = 1, .seg = SEG, .rpc = { { 0, 1, 2 * SEG, 2 * SEG } },
};

/* Three hosts: who leaves has a page, to which payload is copied, that another needs. */
static const struct xh_what leaves = {
	.num = 2, .seg = BIG / 2, .pages = 1, .gone = true,
	.rpc = { { 0, 1, BIG, 1 }, { 2, 1, BIG, 1 } },
};

/* The bound of docs/guarantees.md. */
#define BOUND { [XP_LOSS] = 2, [XP_DUP] = 1, [XP_REORDER] = 1, [XP_RESTART] = 1 }

const struct xp_scenario xh_scenarios[] = {
	{ "short", "one RPC of one packet each way", 2,
	  { [XP_LOSS] = 2, [XP_DUP] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_RESTART] = 1 },
	  2, LATE, &one_short },
	{ "long", "one RPC of three and two packets", 2,
	  { [XP_LOSS] = 2, [XP_DUP] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_RESTART] = 1 },
	  2, LATE, &one_long },
	{ "lifeless", "the first one, of peers that do not speak of lives", 2,
	  { [XP_LOSS] = 2, [XP_DUP] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_RESTART] = 1 },
	  2, LATE, &lifeless },
	{ "lifeless3", "the second one, of such peers", 2,
	  { [XP_LOSS] = 2, [XP_DUP] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_RESTART] = 1 },
	  2, LATE, &lifeless_long },
	{ "met", "an RPC with a server that was met before", 2,
	  { [XP_LOSS] = 2, [XP_DUP] = 1, [XP_LATE] = 1, [XP_RESTART] = 2 }, 2, LATE, &met },
	{ "two", "two RPCs to one server", 2,
	  { [XP_LOSS] = 2, [XP_DUP] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_RESTART] = 1 },
	  2, LATE, &two },
	{ "cross", "two RPCs, one each way", 2,
	  { [XP_LOSS] = 2, [XP_DUP] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_RESTART] = 1 },
	  2, LATE, &cross },
	{ "odd", "packets that are not full", 2,
	  { [XP_LOSS] = 1, [XP_REORDER] = 1, [XP_BATCH] = 1, [XP_SHORT] = 1, [XP_DUP] = 1 },
	  2, LATE, &odd },
	{ "ahead", "a peer that sends what was not granted", 2,
	  { [XP_LOSS] = 1, [XP_FORGE] = 1, [XP_LATE] = 1, [XP_REORDER] = 1 }, 2, LATE, &ahead },
	{ "apps", "applications that give up, close and are slow", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_ABORT] = 1, [XP_CLOSE] = 1, [XP_SLOW] = 2,
	    [XP_SHORT] = 1 },
	  2, LATE, &two },
	{ "forged", "errors that a stranger sends", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_FORGE] = 1, [XP_CLOSE] = 1, [XP_RESTART] = 1 },
	  2, LATE, &one_long },
	{ "rejected", "a request that its server's application rejects", 2,
	  { [XP_LOSS] = 1, [XP_DUP] = 1, [XP_SLOW] = 1, [XP_ABORT] = 1, [XP_LATE] = 1,
	    [XP_RESTART] = 1 },
	  2, LATE, &rejected },
	{ "unheard", "a rejection that its client does not understand", 2,
	  { [XP_LOSS] = 1, [XP_DUP] = 1, [XP_SLOW] = 1, [XP_ABORT] = 1, [XP_RESTART] = 1 },
	  2, LATE, &unheard },
	{ "untaken", "outcomes that nobody takes for a while", 2,
	  { [XP_LOSS] = 1, [XP_DUP] = 1, [XP_LATE] = 1, [XP_ABORT] = 1, [XP_HALT] = 1 },
	  2, LATE, &untaken },
	{ "idle", "an RPC after a long time without any", 2,
	  { [XP_LOSS] = 2, [XP_LATE] = 1, [XP_DUP] = 1, [XP_RESTART] = 1 }, 2, LATE, &idle },
	{ "tidy", "copies that come when the engine tidies up", 2,
	  { [XP_LOSS] = 1, [XP_DUP] = 1, [XP_LATE] = 1 }, 2, LATE, &tidy },
	{ "skew", "timers whose clock is behind that of packets", 2,
	  { [XP_LOSS] = 2, [XP_LATE] = 2, [XP_REORDER] = 1, [XP_SLOW] = 1 }, 2, LATE, &skew },
	{ "routes", "packets come on another link than they go", 2,
	  { [XP_LOSS] = 2, [XP_LATE] = 1, [XP_DUP] = 1, [XP_REORDER] = 1 }, 2, LATE, &other_way },
	{ "whole", "messages that are delivered whole with their packet", 2,
	  { [XP_LOSS] = 1, [XP_DUP] = 1, [XP_LATE] = 1, [XP_BATCH] = 1, [XP_SHORT] = 1,
	    [XP_FORGE] = 1 },
	  2, LATE, &whole },
	{ "pages", "messages that wait for receive pages", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_SLOW] = 1, [XP_REORDER] = 1, [XP_ABORT] = 1 },
	  1, LATE, &pages },
	{ "burst", "packets that are sent unasked and overtake each other", 2,
	  { [XP_LOSS] = 2, [XP_REORDER] = 3, [XP_DUP] = 1, [XP_LATE] = 1, [XP_BATCH] = 1,
	    [XP_SHORT] = 1 },
	  3, LATE, &burst },
	{ "three", "three messages to grant to", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_ABORT] = 1, [XP_REORDER] = 1 }, 1, LATE, &three },
	{ "answer", "a response of packets that overtake each other", 2,
	  { [XP_LOSS] = 2, [XP_REORDER] = 1, [XP_DUP] = 1, [XP_SHORT] = 1, [XP_BATCH] = 1 },
	  2, LATE, &answer },
	{ "part", "grants that end inside a packet", 2,
	  { [XP_LOSS] = 1, [XP_DUP] = 1, [XP_REORDER] = 1, [XP_LATE] = 2 }, 3, LATE, &part },
	{ "order", "equally long messages, granted to one at a time", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_REORDER] = 1 }, 0, LATE, &order },
	{ "told", "messages of one packet that were announced", 2,
	  { [XP_LOSS] = 1, [XP_FORGE] = 2, [XP_LATE] = 1, [XP_SHORT] = 1 }, 1, LATE, &told },
	{ "copied", "payload that is copied while pages are short", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 2, [XP_SLOW] = 1 }, 1, LATE, &copied },
	{ "halves", "payload that is copied while another message needs its page", 3,
	  { [XP_LOSS] = 1, [XP_SLOW] = 1 }, 2, LATE, &halves },
	{ "full", "a server whose application has all the pages", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_RESTART] = 1, [XP_ABORT] = 1 }, 1, LATE, &full },
	{ "forgets", "a server that remembers for a short time", 2,
	  { [XP_LOSS] = 1, [XP_RESTART] = 1, [XP_DUP] = 1 }, 2, 10 * XP_MS, &forgets },
	{ "device", "packets that a host's device does not send", 2,
	  { [XP_LOSS] = 1, [XP_REFUSE] = 2, [XP_RESTART] = 1, [XP_LATE] = 1 },
	  2, LATE, &one_short },
	{ "paced", "messages whose packets leave in the link's time", 2,
	  { [XP_LOSS] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_ABORT] = 1 }, 2, LATE, &paced },
	{ "room", "devices that have room for one packet at a time", 2,
	  { [XP_LOSS] = 1, [XP_ABORT] = 1, [XP_DUP] = 1, [XP_SLOW] = 1 }, 1, LATE, &room },
	{ "pieces", "messages that are handed in packet by packet", 2,
	  { [XP_LOSS] = 1, [XP_ABORT] = 1, [XP_DUP] = 1, [XP_RESTART] = 1 }, 1, LATE, &pieces },
	{ "late_piece", "pieces of a request that has failed", 2,
	  { [XP_HALT] = 1, [XP_LOSS] = 1, [XP_ABORT] = 1 }, 2, LATE, &late_piece },
	{ "half_way", "a long message whose page another has", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_SLOW] = 1, [XP_REORDER] = 1 }, 1, LATE, &half_way },
	{ "answers", "responses for which there is one page", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_SLOW] = 1 }, 1, LATE, &answers },
	{ "stairs", "grants on three levels", 2,
	  { [XP_LOSS] = 1, [XP_REORDER] = 1 }, 1, LATE, &stairs },
	{ "peers", "long messages of two peers to grant to", 3,
	  { [XP_LOSS] = 1, [XP_ABORT] = 1 }, 1, LATE, &peers },
	{ "study", "grants and priorities by the rules of 2018", 2,
	  { [XP_LOSS] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_CHANGE] = 1 }, 1, LATE, &study },
	{ "changed", "settings that change while messages are on their way", 2,
	  { [XP_LOSS] = 1, [XP_CHANGE] = 1, [XP_LATE] = 1 }, 1, LATE, &changed },
	{ "backed", "receive regions whose memory goes and comes", 2,
	  { [XP_LOSS] = 1, [XP_CHANGE] = 2, [XP_SLOW] = 1, [XP_DUP] = 1 }, 1, LATE, &backed },
	{ "usual", "settings as they are at first", 2,
	  { [XP_LOSS] = 1, [XP_LATE] = 1, [XP_DUP] = 1, [XP_RESTART] = 1 }, 1, LATE, &usual },
	{ "owners", "sockets of users who may have few RPCs", 2,
	  { [XP_LOSS] = 1, [XP_SLOW] = 1, [XP_ABORT] = 1, [XP_CLOSE] = 1 }, 1, LATE, &owners },
	{ "looked", "tools look in, and calls make no sense", 2,
	  { [XP_LOSS] = 1, [XP_ABORT] = 1, [XP_SLOW] = 1, [XP_LATE] = 1, [XP_RESTART] = 1 },
	  1, LATE, &looked },
	{ "hostile", "packets of strangers, and of a peer that lies", 2,
	  { [XP_LOSS] = 1, [XP_FORGE] = 2, [XP_SLOW] = 1 }, 2, LATE, &hostile },
	{ "rising", "grants on levels that rise", 2,
	  { [XP_LOSS] = 1, [XP_REORDER] = 1, [XP_LATE] = 1, [XP_ABORT] = 1 }, 1, LATE, &rising },
	{ "crowd", "a server that takes one request of a peer at a time", 2,
	  { [XP_LOSS] = 1, [XP_DUP] = 1, [XP_ABORT] = 1, [XP_RESTART] = 1 }, 2, LATE, &crowd },
	{ "want", "strangers and tools where receive pages are short", 2,
	  { [XP_LOSS] = 1, [XP_SLOW] = 1, [XP_FORGE] = 1, [XP_ABORT] = 1 }, 1, LATE, &want },
	{ "sleepy", "a host that stands still while time goes on", 2,
	  { [XP_LOSS] = 1, [XP_SLEEP] = 1, [XP_RESTART] = 1, [XP_LATE] = 1 }, 2, LATE, &sleepy },
	{ "leaves", "a host that leaves for good, of three", 3,
	  { [XP_HALT] = 1, [XP_SLOW] = 1, [XP_LATE] = 1, [XP_LOSS] = 1 }, 2, LATE, &leaves },
	{ "lifeless_pair2", "as pair2, to replay what peers without lives did", 2, { 0 }, 0, LATE,
	  &lifeless_pair2 },
	{ "lifeless_pieces", "as pieces, to replay what peers without lives did", 2, { 0 }, 0, LATE,
	  &lifeless_pieces },
	{ "pair1", "two RPCs of one packet each way", 2, BOUND, 2, LATE, &pair1 },
	{ "pair2", "two RPCs of two packets each way", 2, BOUND, 1, LATE, &pair2 },
	{ "pair3", "two RPCs of three packets each way", 2, BOUND, 1, LATE, &pair3 },
};
/* clang-format on */

static void begin(struct xp_world *w, const struct xp_scenario *s)
{
	u32 i;

	(void)s;
	/* Past the time in which young servers distrust retransmissions. */
	w->now = 1000 * XP_MS;
	for (i = 0; i < w->hosts; i++)
		xh_host_start(w, i, false);
	w->now += 1000 * XP_MS;
	for (i = 0; i < w->hosts; i++) {
		w->life[i] = 1;
		xh_poll(w, i);
	}
	if (xh_what->full)
		xh_fill(w, 1);
	if (xh_what->untaken)
		xh_of(w)->host[0].slow = 1;
	if (xh_what->all_at_once)
		xh_begin_all(w);
}

static const struct xp_proto xp_homa = {
	.name = "homa",
	.size = xh_size,
	.begin = begin,
	.start = xh_host_start,
	.deliver = xh_deliver,
	.next_timer = xh_next_timer,
	.timer = xh_timer,
	.choices = xh_choices,
	.may_wait = xh_may_wait,
	.act = xh_act,
	.ended = xh_ended,
	.check = xh_check,
	.check_end = xh_check_end,
	.canon = xh_canon,
	.canon_host = xh_canon_host,
	.extents = xh_extents,
	.describe = xh_describe,
	.name_of = xh_name_of,
	.summary = xh_summary,
	.scenarios = xh_scenarios,
	.num_scenarios = HOMA_ARRAY_SIZE(xh_scenarios),
};

const struct xp_proto *const xp_shipped = &xp_homa;
