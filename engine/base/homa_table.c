// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The table of homa_table.h: how it grows. */
#include "homa_table.h"

void homa_table_init(struct homa_table *table, struct homa_list *base,
		     u32 first, struct homa_segment **segments, u32 limit)
{
	u32 i;

	table->size = first;
	table->mask = first - 1;
	table->first = first;
	table->count = 0;
	table->limit = limit;
	table->base = base;
	table->segments = segments;
	for (i = 0; i < first; i++)
		homa_list_init(&base[i]);
	for (i = 0; i < limit; i++)
		segments[i] = NULL;
}

/* Takes one more bucket into use; half of the nodes of another bucket move there. */
static void homa_table_split(struct homa_table *table,
			     u32 (*hash_of)(const struct homa_list *node))
{
	u32 index = table->size;
	u32 mask = index > table->mask ? 2 * table->mask + 1 : table->mask;
	struct homa_list *from = homa_table_bucket(table, index & mask >> 1);
	struct homa_list *to = homa_table_bucket(table, index);
	struct homa_list *pos, *tmp;

	HOMA_WRITE_ONCE(table->mask, mask);
	HOMA_WRITE_ONCE(table->size, index + 1);
	homa_list_for_each_safe(pos, tmp, from) {
		if ((hash_of(pos) & mask) != index)
			continue;
		homa_list_del(pos);
		homa_list_add_head(to, pos);
	}
}

bool homa_table_grow(struct homa_table *table, struct homa_segment *segment,
		     u32 (*hash_of)(const struct homa_list *node))
{
	bool taken = false;
	u32 i, n, at;

	for (n = 0; n < 2 && homa_table_full(table); n++) {
		at = (table->size - table->first) / HOMA_SEGMENT_BUCKETS;
		if (at == table->limit)
			break;
		if (!table->segments[at]) {
			if (!segment || taken)
				break;
			for (i = 0; i < HOMA_SEGMENT_BUCKETS; i++)
				homa_list_init(&segment->bucket[i]);
			memset(segment->pad, 0, sizeof(segment->pad));
			homa_publish(&table->segments[at], segment);
			taken = true;
		}
		homa_table_split(table, hash_of);
	}
	return taken;
}

struct homa_segment *homa_table_cut(struct homa_table *table)
{
	struct homa_segment *segment = NULL;
	u32 at = table->limit;

	while (at && !segment)
		segment = table->segments[--at];
	if (!segment)
		return NULL;
	table->segments[at] = NULL;
	table->size = table->first;
	table->mask = table->first - 1;
	return segment;
}
