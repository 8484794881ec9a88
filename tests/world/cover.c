/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What worlds have reached: a test of faults that never happen tests nothing. Each
 * kind of fault, and each thing that the harness did to an engine, is counted.
 */
#include "world.h"

#include <stdio.h>

#define ENOUGH_WORLDS 1000 /* after so many each kind must have happened */

struct world_cover world_cover;

static const char *const did_name[PAIR_DIDS] = {
	[PAIR_DID_LOSE] = "packets_lost",
	[PAIR_DID_COPY] = "packets_repeated",
	[PAIR_DID_COPY_LATE] = "packets_repeated_late",
	[PAIR_DID_REORDER] = "packets_delayed",
	[PAIR_DID_DAMAGE] = "packets_damaged",
	[PAIR_DID_CUT] = "packets_cut",
	[PAIR_DID_PORT_FULL] = "switch_drops",
	[PAIR_DID_RING_FULL] = "ring_drops",
	[PAIR_DID_PAUSE] = "pauses",
	[PAIR_DID_RESTART] = "restarts",
	[PAIR_DID_CRASH_RX] = "crashes_in_batch",
	[PAIR_DID_CRASH_TX] = "crashes_in_transmission",
	[PAIR_DID_LEAP] = "clock_leaps",
	[PAIR_DID_TX_FAIL] = "transmissions_refused",
	[PAIR_DID_NO_WAY] = "transmissions_without_a_way",
	[PAIR_DID_DEAF] = "messages_never_taken",
	[PAIR_DID_HOARD] = "pages_kept",
	[PAIR_DID_MUTE] = "requests_not_answered",
	[PAIR_DID_TWICE] = "second_answers",
	[PAIR_DID_REFUSED] = "rpcs_refused",
	[PAIR_DID_FORGED_RUN] = "forged_requests_executed",
	[PAIR_DID_AGAIN] = "executed_again_beyond_the_promise",
};

/* These need luck, or are what nobody wants to see. */
static bool may_be_zero(u32 did)
{
	return did == PAIR_DID_RING_FULL || did == PAIR_DID_AGAIN;
}

/* A packet of it that was late need not be the one by which it ran again, but each RPC
 * that did has had one. */
static const char *const again_name[PAIR_MAYS] = {
	"again_late",
	"again_copy_over_restart",
	"again_after_guard",
	"again_after_leap",
};

static void add_again(struct world_cover *c, const struct pair_world *w)
{
	u32 i, k;

	for (i = 0; i < w->num_rpcs; i++)
		for (k = 0; w->book[i]->executed > 1 && k < PAIR_MAYS; k++)
			c->again[k] += w->book[i]->may >> k & 1;
}

void world_cover_add(struct world *world)
{
	struct pair_world *w = world->w;
	struct world_cover *c = &world_cover;
	u32 i;

	c->worlds++;
	c->idle_worlds += world->plan->idle;
	c->rpcs += w->num_rpcs;
	c->ok += pair_count_state(w, PAIR_OK);
	c->failed += pair_count_state(w, PAIR_FAILED);
	c->packets += w->packets;
	c->events += w->events;
	c->ns += w->now;
	for (i = 0; i < PAIR_DIDS; i++)
		c->did[i] += w->did[i];
	add_again(c, w);
}

static u32 print_counts(FILE *out, const char *before, const char *form,
			const char *between)
{
	u32 i, missing = 0;

	fputs(before, out);
	for (i = 0; i < WORLD_KINDS; i++) {
		fprintf(out, form, i ? between : "", world_fault_name[i],
			(unsigned long long)world_cover.faults[i]);
		missing += !world_cover.faults[i];
	}
	for (i = 0; i < PAIR_DIDS; i++) {
		fprintf(out, form, between, did_name[i],
			(unsigned long long)world_cover.did[i]);
		missing += !world_cover.did[i] && !may_be_zero(i);
	}
	for (i = 0; i < PAIR_MAYS; i++)
		fprintf(out, form, between, again_name[i],
			(unsigned long long)world_cover.again[i]);
	return missing;
}

bool world_cover_print(double seconds)
{
	const struct world_cover *c = &world_cover;
	double virtual_s = (double)c->ns / 1e9;
	u32 missing;

	printf("%llu worlds (%llu idle), %.0f virtual seconds in %.1f: %.0f to 1; %.1f worlds/s, %.0f events/s, %.0f packets/s\n",
	       (unsigned long long)c->worlds,
	       (unsigned long long)c->idle_worlds, virtual_s, seconds,
	       virtual_s / seconds, (double)c->worlds / seconds,
	       (double)c->events / seconds, (double)c->packets / seconds);
	printf("%llu RPCs: %llu answered, %llu failed; the last one ended %.3f s after the faults at most (--seed %llu)\n",
	       (unsigned long long)c->rpcs, (unsigned long long)c->ok,
	       (unsigned long long)c->failed, (double)c->settle_ns / 1e9,
	       (unsigned long long)c->settle_seed);
	missing = print_counts(stdout, "faults: ", "%s%s %llu", ", ");
	printf("\njson: {\"worlds\": %llu, \"idle_worlds\": %llu, \"virtual_seconds\": %.0f, \"seconds\": %.2f, \"events\": %llu, \"packets\": %llu, \"rpcs\": %llu, \"settle_seconds\": %.3f",
	       (unsigned long long)c->worlds,
	       (unsigned long long)c->idle_worlds, virtual_s, seconds,
	       (unsigned long long)c->events, (unsigned long long)c->packets,
	       (unsigned long long)c->rpcs, (double)c->settle_ns / 1e9);
	print_counts(stdout, ", \"faults\": {", "%s\"%s\": %llu", ", ");
	printf("}}\n");
	if (c->worlds < ENOUGH_WORLDS || !missing)
		return true;
	fprintf(stderr, "%u kinds of faults never happened in %llu worlds\n",
		missing, (unsigned long long)c->worlds);
	return false;
}
