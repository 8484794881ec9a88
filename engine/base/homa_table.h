/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Hash table that grows a bucket at a time (linear hashing: Litwin, VLDB 1980), so
 * that no insertion takes long and nothing is ever copied. It begins with
 * buckets of its owner's; further ones come in segments, memory that the host hands
 * in. Without a segment the table stays as it is and its chains grow. It does not
 * shrink. The owner locks it; a look at a bucket without the lock may miss.
 */
#ifndef HOMA_TABLE_H
#define HOMA_TABLE_H

#include "homa_list.h"

#define HOMA_SEGMENT_BUCKETS 64u

/*
 * struct homa_segment - buckets that a table got later
 * @next: in a list of spare ones.
 * @pad: who walks a bucket without its lock may take the first one for an object
 *	that begins so many bytes before it.
 */
struct homa_segment {
	struct homa_segment *next;
	u64 pad[7];
	struct homa_list bucket[HOMA_SEGMENT_BUCKETS];
};

/**
 * struct homa_table - buckets
 * @size: how many are in use.
 * @mask: smallest 2^n - 1 that is not less than @size - 1.
 * @first: how many of them are in @base.
 * @count: nodes.
 * @limit: segments it may get.
 * @segments: where they are; NULL beyond those it has.
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

/** homa_table_init() - with @first buckets, a power of two, at @base, and room for
 *  pointers to @limit segments at @segments */
void homa_table_init(struct homa_table *table, struct homa_list *base,
		     u32 first, struct homa_segment **segments, u32 limit);

/** homa_table_bucket() - one of them, @index < size; without the lock, any */
static inline struct homa_list *homa_table_bucket(const struct homa_table *table,
						  u32 index)
{
	const struct homa_segment *segment;

	if (likely(index < table->first))
		return &table->base[index];
	index -= table->first;
	/* Who holds no lock may come before the segment, or see a mask and a size that
	 * do not belong together. */
	if (unlikely(index / HOMA_SEGMENT_BUCKETS >= table->limit))
		return table->base;
	segment = HOMA_READ_ONCE(table->segments[index / HOMA_SEGMENT_BUCKETS]);
	if (unlikely(!segment))
		return table->base;
	return (struct homa_list *)&segment->bucket[index % HOMA_SEGMENT_BUCKETS];
}

/** homa_table_find() - the bucket of a hash, of which the low bits count */
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

/** homa_table_add() - a node with that hash */
static inline void homa_table_add(struct homa_table *table, u32 hash,
				  struct homa_list *node)
{
	homa_list_add_head(homa_table_find(table, hash), node);
	HOMA_WRITE_ONCE(table->count, table->count + 1);
}

/** homa_table_del() - it leaves; it is in the table */
static inline void homa_table_del(struct homa_table *table, struct homa_list *node)
{
	homa_list_del(node);
	HOMA_WRITE_ONCE(table->count, table->count - 1);
}

/** homa_table_full() - would it like more buckets? */
static inline bool homa_table_full(const struct homa_table *table)
{
	return unlikely(table->count > table->size);
}

/**
 * homa_table_grow() - by at most two buckets
 * @segment: one that it may take, or NULL.
 * @hash_of: a node's hash.
 * Returns true if it took @segment.
 */
bool homa_table_grow(struct homa_table *table, struct homa_segment *segment,
		     u32 (*hash_of)(const struct homa_list *node));

/** homa_table_cut() - a segment, the last first, that the table has no more: it is
 *  empty and used no longer. NULL: none. */
struct homa_segment *homa_table_cut(struct homa_table *table);

#endif
