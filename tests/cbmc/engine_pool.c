/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One call - alloc, free, want or limit, with any arguments - on any pool of two pages of four
 * granules and two leases. The pool is one before and after: each page that is given to messages
 * is free, or has as many references as slices and leases; a lease begins no slice where one is.
 * What is given away is inside the region and overlaps nothing that is out; what was refused
 * has changed nothing that is out; only what is out can be given back, and only once.
 *
 * cbmc: --unwind 5
 * refuses: pool_slice_handed_twice pool_page_lost
 */
#define HOMA_LEASES 2u
#define HOMA_HOLDERS 1u
#include "homa_impl.h"
#undef HOMA_BPAGE_SHIFT
#define HOMA_BPAGE_SHIFT 8
#include "homa_pool.c"
#include "proof.h"

#define PAGES 2u
#define IN_PAGE 4u /* granules */
#define GRANULES (PAGES * IN_PAGE)

static struct homa_pool pool;
static u64 out;
static u32 free_pages[PAGES];
static u16 refs[PAGES];
/* Granules of slices that are out: each begins where a bit of @out is, and goes on to the next or
 * to the first that is not used. The pool does not know where slices end. */
static bool used[GRANULES];

static bool begins(u32 granule)
{
	return out >> granule & 1;
}

static u32 slices(u32 page)
{
	u32 i, n = 0;

	for (i = 0; i < IN_PAGE; i++)
		n += begins(page * IN_PAGE + i);
	return n;
}

static bool is_leased(const struct homa_lease *lease, u32 page)
{
	return lease->used != HOMA_BPAGE_SIZE && lease->page == page;
}

static bool is_free(u32 page)
{
	return (pool.num_free > 0 && free_pages[0] == page) ||
	       (pool.num_free > 1 && free_pages[1] == page);
}

/* Slices are where no lease will begin another. */
static bool is_lease(const struct homa_lease *lease)
{
	u32 i;

	if (lease->used == HOMA_BPAGE_SIZE)
		return true;
	if (lease->used > HOMA_BPAGE_SIZE || lease->used % HOMA_GRANULE ||
	    lease->page >= pool.num_backed)
		return false;
	for (i = lease->used / HOMA_GRANULE; i < IN_PAGE; i++)
		if (used[lease->page * IN_PAGE + i])
			return false;
	return true;
}

static bool is_page(u32 page)
{
	bool one = is_leased(&pool.lease[0], page),
	     two = is_leased(&pool.lease[1], page);

	if (one && two)
		return false;
	return refs[page] == slices(page) + one + two &&
	       is_free(page) == (page < pool.num_backed && !refs[page]) &&
	       (page < pool.num_backed || !refs[page]);
}

static bool is_slice(u32 granule)
{
	if (begins(granule))
		return used[granule];
	return !used[granule] || (granule % IN_PAGE && used[granule - 1]);
}

static bool is_pool(void)
{
	bool right = pool.num_backed >= 1 && pool.num_backed <= PAGES &&
		     pool.num_free <= pool.num_backed && out >> GRANULES == 0;
	u32 i;

	if (pool.num_free > 0 && free_pages[0] >= PAGES)
		right = false;
	if (pool.num_free > 1 &&
	    (free_pages[1] >= PAGES || free_pages[0] == free_pages[1]))
		right = false;
	if (!right || !is_lease(&pool.lease[0]) || !is_lease(&pool.lease[1]))
		return false;
	if (!is_page(0) || !is_page(1))
		return false;
	for (i = 0; i < IN_PAGE; i++)
		if (!is_slice(i) || !is_slice(i + IN_PAGE))
			return false;
	return true;
}

static void any_lease(struct homa_lease *lease)
{
	lease->until = nondet_u64();
	lease->page = nondet_u32();
	lease->used = nondet_u32();
}

static void any_pool(void)
{
	u32 i;

	pool.num_pages = PAGES;
	pool.num_backed = nondet_u32();
	pool.num_free = nondet_u32();
	pool.out = &out;
	pool.free = free_pages;
	pool.refs = refs;
	any_lease(&pool.lease[0]);
	any_lease(&pool.lease[1]);
	out = nondet_u64();
	for (i = 0; i < PAGES; i++) {
		free_pages[i] = nondet_u32();
		refs[i] = nondet_u16();
	}
	for (i = 0; i < IN_PAGE; i++) {
		used[i] = nondet_bool();
		used[i + IN_PAGE] = nondet_bool();
	}
}

/* A slice of so many bytes is given away: it is inside its page and nobody else has a byte. */
static void comes(u32 offset, u32 size)
{
	u32 i, first = offset / HOMA_GRANULE;

	prove(offset % HOMA_GRANULE == 0 && offset < PAGES * HOMA_BPAGE_SIZE);
	prove(offset % HOMA_BPAGE_SIZE + size <= HOMA_BPAGE_SIZE);
	prove(begins(first));
	for (i = 0; i < IN_PAGE; i++) {
		if (i * HOMA_GRANULE >= size)
			break;
		prove(!used[first + i]);
		used[first + i] = true;
	}
}

static void alloc(void)
{
	u32 length = nondet_u32(), pages[PAGES], num = 0, i, left = length;
	u64 before = out;
	int err;

	given(length <= PAGES * HOMA_BPAGE_SIZE ||
	      length > HOMA_MAX_BPAGES * HOMA_BPAGE_SIZE);
	err = homa_pool_alloc(&pool, nondet_u64(), nondet_u64(), nondet_u32(),
			      length, pages, &num);
	prove(err == 0 || err == -HOMA_ENOBUFS || err == -HOMA_EINVAL);
	if (err) {
		prove(out == before);
		return;
	}
	prove(num == (length + HOMA_BPAGE_SIZE - 1) / HOMA_BPAGE_SIZE &&
	      num <= PAGES);
	for (i = 0; i < num; i++) {
		comes(pages[i], homa_min_u32(left, HOMA_BPAGE_SIZE));
		left -= homa_min_u32(left, HOMA_BPAGE_SIZE);
	}
}

/* A slice is given back: its granules are those up to the next that is another's or nobody's. */
static void goes(u32 offset)
{
	u32 i, first = offset / HOMA_GRANULE;

	used[first] = false;
	for (i = first + 1; i % IN_PAGE; i++) {
		if (begins(i) || !used[i])
			break;
		used[i] = false;
	}
}

static void give_back(void)
{
	u32 offset = nondet_u32(), granule = offset / HOMA_GRANULE;
	bool was = offset % HOMA_GRANULE == 0 && granule < GRANULES &&
		   begins(granule);
	u32 twice[2] = { offset, offset };
	u64 before = out;

	prove(homa_pool_free(&pool, twice, 2) == -HOMA_EINVAL && out == before);
	prove(homa_pool_free(&pool, &offset, 1) == (was ? 0 : -HOMA_EINVAL));
	prove(out == (was ? before & ~(1ull << granule) : before));
	if (was)
		goes(offset);
}

int main(void)
{
	u32 pages = nondet_u32();
	u64 before;

	any_pool();
	given(is_pool());
	before = out;
	switch (nondet_u8()) {
	case 0:
		alloc();
		break;
	case 1:
		give_back();
		break;
	case 2:
		prove(homa_pool_want(&pool, pages) == pool.num_free &&
		      out == before);
		break;
	default:
		prove(homa_pool_limit(&pool, pages) == pool.num_backed &&
		      out == before);
		prove(pool.num_backed >=
		      homa_min_u32(homa_max_u32(pages, 1), PAGES));
		break;
	}
	prove(is_pool());
	reached();
	return 0;
}
