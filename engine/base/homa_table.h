/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Hash table that grows a bucket at a time (linear hashing: Litwin, VLDB 1980), so
 * that no insertion takes long and nothing is ever copied. It begins with
 * buckets of its owner's; further ones come in segments, memory that the host hands
 * in. Without a segment the table stays as it is and its chains grow. It does not
 * shrink. The owner locks it; a look at a bucket without the lock may miss.
 *
 * Guarded by: the owner, whose lock is held for all changes.
 */
#ifndef HOMA_TABLE_H
#define HOMA_TABLE_H

#include "homa_list.h"

#define HOMA_SEGMENT_BUCKETS 64u

/*
 * struct homa_segment - buckets that a table gets while it grows
 * @next: links the segment into a list of spare ones, while no table has it.
 * @pad: is never written. Who walks a bucket without its lock may take the bucket itself
 *	for an object that embeds a node, and then reads this padding before the bucket.
 * @bucket: the heads of the lists of nodes; the table's owner writes them.
 */
struct homa_segment {
	struct homa_segment *next;
	u64 pad[7];
	struct homa_list bucket[HOMA_SEGMENT_BUCKETS];
};

/**
 * struct homa_table - a hash table; the owner's lock protects all members
 * @size: how many buckets are in use. Read without the lock, too.
 * @mask: the smallest 2^n - 1 that is not less than @size - 1. Read without the lock, too.
 * @first: how many of the buckets are at @base; all others are in segments.
 * @count: how many nodes are in the table.
 * @limit: how many segments the table may have.
 * @base: the first buckets, which the owner gave to homa_table_init().
 * @segments: pointers to the segments, @limit of them; NULL for those it does not have yet.
 */
struct homa_table {
	u32 size;
	u32 mask;
	u32 first;
	u32 count;
	u32 limit;
	struct homa_list *base;
	struct homa_segment **segments;
};

/** homa_table_init() - makes an empty table of @first buckets, a power of two, at @base.
 *  @segments has room for pointers to @limit segments. */
void homa_table_init(struct homa_table *table, struct homa_list *base,
		     u32 first, struct homa_segment **segments, u32 limit);

/**
 * homa_table_bucket() - return the bucket @index, which is less than size; a caller without
 * the lock may pass any index
 */
static inline struct homa_list *homa_table_bucket(const struct homa_table *table,
						  u32 index)
{
	const struct homa_segment *segment;

	if (likely(index < table->first))
		return &table->base[index];
	index -= table->first;
	/* A caller without the lock may come before the segment, or see a mask and a size
	 * that do not belong together. */
	if (unlikely(index / HOMA_SEGMENT_BUCKETS >= table->limit))
		return table->base;
	segment = HOMA_READ_ONCE(table->segments[index / HOMA_SEGMENT_BUCKETS]);
	if (unlikely(!segment))
		return table->base;
	return (struct homa_list *)&segment->bucket[index % HOMA_SEGMENT_BUCKETS];
}

/** homa_table_find() - return the bucket for nodes of hash @hash, whose low bits decide */
static inline struct homa_list *homa_table_find(const struct homa_table *table,
						u32 hash)
{
	u32 mask = HOMA_READ_ONCE(table->mask);
	u32 index = hash & mask;

	if (likely(index < table->first))
		return &table->base[index];
	if (index >= HOMA_READ_ONCE(table->size))
		index &= mask >> 1;
	return homa_table_bucket(table, index);
}

/** homa_table_add() - puts @node, whose hash is @hash, into its bucket */
static inline void homa_table_add(struct homa_table *table, u32 hash,
				  struct homa_list *node)
{
	homa_list_add_head(homa_table_find(table, hash), node);
	HOMA_WRITE_ONCE(table->count, table->count + 1);
}

/** homa_table_del() - takes @node, which is in the table, out of it */
static inline void homa_table_del(struct homa_table *table, struct homa_list *node)
{
	homa_list_del(node);
	HOMA_WRITE_ONCE(table->count, table->count - 1);
}

/** homa_table_full() - are there more nodes than buckets, so that it should grow? */
static inline bool homa_table_full(const struct homa_table *table)
{
	return unlikely(table->count > table->size);
}

/**
 * homa_table_grow() - takes at most two more buckets into use and moves nodes to them
 * @segment: a segment that the table may keep for its next buckets, or NULL.
 * @hash_of: tells a node's hash.
 * Returns true if the table has kept @segment.
 */
bool homa_table_grow(struct homa_table *table, struct homa_segment *segment,
		     u32 (*hash_of)(const struct homa_list *node));

/** homa_table_cut() - takes the last segment away from a table that has no nodes any more,
 *  and returns it; NULL: there is none left. */
struct homa_segment *homa_table_cut(struct homa_table *table);

#endif
