// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Receive buffers of a socket: a region of 64 KiB pages that the application
 * owns and the engine hands out, message by message. The whole 64 KiB parts of
 * a message take whole pages; what is left takes a slice of a page that is
 * leased to the CPU slot of the caller, so that cores do not write next to
 * each other and short messages do not take a page each. A lease that was not
 * used for a while may be taken over when pages run out; one whose page holds
 * no message may be taken at any time then, because no release would bring
 * its page back.
 *
 * What comes back from an application is not to be trusted: a bit per 64-byte
 * granule says where a slice that is out begins, so that a page offset that
 * was never given away, or is given back twice, is recognised for certain.
 */
#include "homa_impl.h"

#define HOMA_GRANULE_SHIFT 6
#define HOMA_GRANULE (1u << HOMA_GRANULE_SHIFT)
#define HOMA_PAGE_WORDS (HOMA_BPAGE_SIZE / HOMA_GRANULE / 64)

size_t homa_pool_size(u32 pages)
{
	return sizeof(struct homa_pool) + pages * (HOMA_PAGE_WORDS * sizeof(u64) +
						   sizeof(u32) + sizeof(u16));
}

void homa_pool_init(struct homa_pool *pool, u32 pages)
{
	u32 i;

	memset(pool, 0, homa_pool_size(pages));
	pool->num_pages = pages;
	pool->num_backed = pages;
	pool->num_free = pages;
	pool->out = (u64 *)(pool + 1);
	pool->free = (u32 *)(pool->out + (size_t)pages * HOMA_PAGE_WORDS);
	pool->refs = (u16 *)(pool->free + pages);
	/* The lowest pages are on top of the stack, so that a small load touches little
	 * memory. */
	for (i = 0; i < pages; i++)
		pool->free[i] = pages - 1 - i;
	for (i = 0; i < HOMA_LEASES; i++)
		pool->lease[i].used = HOMA_BPAGE_SIZE;
}

static void homa_pool_reclaim(struct homa_pool *pool);

/* Rebuilds the stack of those among @pages that are free, lowest pages on top. */
static void homa_pool_restack(struct homa_pool *pool, u32 pages)
{
	u32 i, free = 0;

	HOMA_WRITE_ONCE(pool->num_backed, pages);
	for (i = pages; i-- > 0;)
		if (!pool->refs[i])
			pool->free[free++] = i;
	HOMA_WRITE_ONCE(pool->num_free, free);
}

u32 homa_pool_limit(struct homa_pool *pool, u32 pages)
{
	u32 last = pool->num_backed;

	pages = homa_max_u32(1, homa_min_u32(pages, pool->num_pages));
	homa_pool_reclaim(pool);
	/* A page that a message uses stays, and so do all before it. */
	while (last > pages && !pool->refs[last - 1])
		last--;
	homa_pool_restack(pool, homa_max_u32(last, pages));
	return pool->num_backed;
}

static void homa_pool_mark(struct homa_pool *pool, u32 offset)
{
	u32 granule = offset >> HOMA_GRANULE_SHIFT;

	pool->out[granule / 64] |= 1ull << (granule % 64);
}

/* Takes back the slice at @offset; false: no slice was given out there. */
static bool homa_pool_unmark(struct homa_pool *pool, u32 offset)
{
	u32 granule = offset >> HOMA_GRANULE_SHIFT;
	u64 bit = 1ull << (granule % 64);

	if (offset % HOMA_GRANULE ||
	    offset >> HOMA_BPAGE_SHIFT >= pool->num_pages ||
	    !(pool->out[granule / 64] & bit))
		return false;
	pool->out[granule / 64] &= ~bit;
	return true;
}

static void homa_pool_put(struct homa_pool *pool, u32 page)
{
	if (--pool->refs[page])
		return;
	pool->free[pool->num_free] = page;
	HOMA_WRITE_ONCE(pool->num_free, pool->num_free + 1);
}

static u32 homa_pool_take(struct homa_pool *pool)
{
	u32 page;

	HOMA_WRITE_ONCE(pool->num_free, pool->num_free - 1);
	page = pool->free[pool->num_free];
	pool->refs[page] = 1;
	return page;
}

static void homa_lease_end(struct homa_pool *pool, struct homa_lease *lease)
{
	if (lease->used == HOMA_BPAGE_SIZE)
		return;
	lease->used = HOMA_BPAGE_SIZE;
	homa_pool_put(pool, lease->page);
}

/* Returns the number of bytes that a slice of the leased page can still have. */
static u32 homa_lease_room(const struct homa_pool *pool,
			   const struct homa_lease *lease)
{
	if (lease->used == HOMA_BPAGE_SIZE)
		return 0;
	/* Only the lease holds the page: all its messages were released. */
	if (pool->refs[lease->page] == 1)
		return HOMA_BPAGE_SIZE;
	return HOMA_BPAGE_SIZE - lease->used;
}

/* Frees pages that are leased but hold nothing, as pages ran out. */
static void homa_pool_reclaim(struct homa_pool *pool)
{
	u32 i;

	for (i = 0; i < HOMA_LEASES; i++)
		if (homa_lease_room(pool, &pool->lease[i]) == HOMA_BPAGE_SIZE)
			homa_lease_end(pool, &pool->lease[i]);
}

u32 homa_pool_want(struct homa_pool *pool, u32 pages)
{
	if (pool->num_free < pages)
		homa_pool_reclaim(pool);
	return pool->num_free;
}

/* Finds an expired lease of another slot with room for @size bytes, or NULL. */
static struct homa_lease *homa_pool_expired(struct homa_pool *pool, u64 now,
					    u32 size)
{
	u32 i;

	for (i = 0; i < HOMA_LEASES; i++)
		if (now >= pool->lease[i].until &&
		    homa_lease_room(pool, &pool->lease[i]) >= size)
			return &pool->lease[i];
	return NULL;
}

/* Cuts @size bytes out of a leased page that has them. */
static u32 homa_lease_slice(struct homa_pool *pool, struct homa_lease *lease,
			    u32 size)
{
	u32 offset;

	if (pool->refs[lease->page] == 1)
		lease->used = 0;
	offset = (lease->page << HOMA_BPAGE_SHIFT) + lease->used;
	pool->refs[lease->page]++;
	lease->used += size;
	/* A full page is not leased any more. */
	if (lease->used == HOMA_BPAGE_SIZE)
		homa_pool_put(pool, lease->page);
	return offset;
}

/*
 * Finds the lease that a slice of @size bytes will come from. Ensures that it has
 * room and that @whole pages are free besides; NULL, with leases perhaps
 * ended but nothing taken, if that cannot be.
 */
static struct homa_lease *homa_pool_lease(struct homa_pool *pool, u64 now,
					  u32 cpu, u32 size, u32 whole)
{
	struct homa_lease *own = &pool->lease[cpu % HOMA_LEASES];
	struct homa_lease *other;

	if (pool->num_free < whole + (homa_lease_room(pool, own) < size))
		homa_pool_reclaim(pool);
	if (pool->num_free < whole)
		return NULL;
	if (homa_lease_room(pool, own) >= size)
		return own;
	if (pool->num_free == whole) {
		other = homa_pool_expired(pool, now, size);
		if (!other)
			return NULL;
		homa_lease_end(pool, own);
		*own = *other;
		other->used = HOMA_BPAGE_SIZE;
		return own;
	}
	homa_lease_end(pool, own);
	own->page = homa_pool_take(pool);
	own->used = 0;
	return own;
}

HOMA_HOT bool homa_pool_slice(struct homa_pool *pool, u64 now, u64 lease_ns,
			      u32 cpu, u32 length, u32 *page)
{
	struct homa_lease *lease = &pool->lease[cpu % HOMA_LEASES];
	u32 size = (length + HOMA_GRANULE - 1) & ~(HOMA_GRANULE - 1);
	u32 used = lease->used;

	if (unlikely(used == HOMA_BPAGE_SIZE || length > HOMA_BPAGE_SIZE))
		return false;
	/* Only the lease itself is left: all its messages were released. */
	if (pool->refs[lease->page] == 1)
		used = 0;
	/* One that fills the page ends the lease. */
	if (unlikely(used + size >= HOMA_BPAGE_SIZE))
		return false;
	pool->refs[lease->page]++;
	lease->used = used + size;
	lease->until = now + lease_ns;
	*page = (lease->page << HOMA_BPAGE_SHIFT) + used;
	homa_pool_mark(pool, *page);
	return true;
}

int homa_pool_alloc(struct homa_pool *pool, u64 now, u64 lease_ns, u32 cpu,
		    u32 length, u32 *pages, u32 *num_pages)
{
	u32 whole = length >> HOMA_BPAGE_SHIFT;
	u32 rest = length & (HOMA_BPAGE_SIZE - 1);
	struct homa_lease *lease = NULL;
	u32 size, i;

	if (!length || length > HOMA_MAX_BPAGES * HOMA_BPAGE_SIZE)
		return -HOMA_EINVAL;
	*num_pages = 1;
	if (homa_pool_slice(pool, now, lease_ns, cpu, length, pages))
		return 0;
	size = (rest + HOMA_GRANULE - 1) & ~(HOMA_GRANULE - 1);
	if (size == HOMA_BPAGE_SIZE) {
		whole++;
		size = 0;
	}
	if (size) {
		lease = homa_pool_lease(pool, now, cpu, size, whole);
		if (!lease)
			return -HOMA_ENOBUFS;
	} else if (pool->num_free < whole) {
		homa_pool_reclaim(pool);
		if (pool->num_free < whole)
			return -HOMA_ENOBUFS;
	}
	for (i = 0; i < whole; i++)
		pages[i] = homa_pool_take(pool) << HOMA_BPAGE_SHIFT;
	if (size) {
		lease->until = now + lease_ns;
		pages[i++] = homa_lease_slice(pool, lease, size);
	}
	*num_pages = i;
	for (i = 0; i < *num_pages; i++)
		homa_pool_mark(pool, pages[i]);
	return 0;
}

HOMA_HOT int homa_pool_free(struct homa_pool *pool, const u32 *pages, u32 num)
{
	u32 i;

	for (i = 0; i < num; i++)
		if (!homa_pool_unmark(pool, pages[i]))
			goto undo;
	for (i = 0; i < num; i++)
		homa_pool_put(pool, pages[i] >> HOMA_BPAGE_SHIFT);
	return 0;
undo:
	while (i--)
		homa_pool_mark(pool, pages[i]);
	return -HOMA_EINVAL;
}
