// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What lies where in the memory that an attachment's streams share with its application:
 * rings, slots, buffers, and the rules that the application has to know.
 */
#include "fast.h"
#include "stream_limits.h"
#include "streams.h"

/* Most entries of a command or event ring. */
#define MOST_ENTRIES 4096u
/* Bytes that one page table maps. */
#define PAGE_TABLE (2u << 20)

static u64 page_up(u64 bytes)
{
	return (bytes + 4095) / 4096 * 4096;
}

/* Returns the number of entries of a ring: two for each slot, rounded up to a power of two.
 * With many slots events wait at their streams, and commands where they are given. */
static u32 ring_entries(u32 num_slots)
{
	u32 n = 256;

	while (n < 2 * num_slots && n < MOST_ENTRIES)
		n *= 2;
	return n;
}

static u64 offset_of(u32 num_slots, u32 part)
{
	u64 entries = ring_entries(num_slots);
	u64 at[5];

	at[0] = page_up(sizeof(struct homa_stream_area));
	at[1] = at[0] + page_up(entries * sizeof(struct homa_stream_command));
	at[2] = at[1] + page_up(entries * sizeof(struct homa_stream_event));
	at[3] = at[2] + page_up((u64)num_slots * sizeof(struct homa_stream_slot));
	at[4] = at[3] + (u64)num_slots * 2 * HOMA_STREAM_FIRST;
	at[4] = (at[4] + PAGE_TABLE - 1) / PAGE_TABLE * PAGE_TABLE;
	return at[part];
}

u64 homad_streams_fixed(u32 num_slots)
{
	return offset_of(num_slots, 2);
}

u64 homad_streams_bytes(u32 num_slots)
{
	return offset_of(num_slots, 4) + (u64)num_slots * 2 * HOMA_STREAM_SPAN;
}

/* Shows the application which connections it has to ask homad for; whether they are taken or
 * denied homad says then. */
static void show_rules(const struct homad_policy *policy,
		       struct homa_stream_area *area)
{
	u32 i;

	for (i = 0; i < policy->num; i++) {
		const struct homad_tcp_rule *rule = &policy->part[i].rule;
		struct homa_stream_rule *shown = &area->rules[area->num_rules];

		if (!rule->connect[0])
			continue;
		memcpy(shown->ip, rule->ip, sizeof(shown->ip));
		shown->prefix = rule->prefix;
		shown->from = rule->connect[0];
		shown->to = rule->connect[1];
		area->num_rules++;
	}
}

void homad_streams_lay(struct homad_streams *s, struct homa_stream_area *area,
		       u32 num_slots)
{
	u8 *base = (u8 *)area;

	s->area = area;
	s->bytes = homad_streams_bytes(num_slots);
	s->entries = ring_entries(num_slots);
	s->num_slots = num_slots;
	s->commands =
		(struct homa_stream_command *)(base + offset_of(num_slots, 0));
	s->events = (struct homa_stream_event *)(base + offset_of(num_slots, 1));
	s->slots = (struct homa_stream_slot *)(base + offset_of(num_slots, 2));
	s->firsts = base + offset_of(num_slots, 3);
	s->spans = base + offset_of(num_slots, 4);
	area->magic = HOMA_STREAM_MAGIC;
	area->num_slots = num_slots;
	area->id = s->id;
	area->bytes = s->bytes;
	area->commands = (u32)offset_of(num_slots, 0);
	area->events = (u32)offset_of(num_slots, 1);
	area->slots = (u32)offset_of(num_slots, 2);
	area->ring_entries = s->entries;
	area->firsts = offset_of(num_slots, 3);
	area->spans = offset_of(num_slots, 4);
	show_rules(s->policy, area);
}
