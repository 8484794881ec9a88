// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The application's receive region, and what of it the application has. If libhoma could
 * be given the region, it decides what lies where; else we do. Whole 64 KiB pieces
 * of a message get pages of their own; what is left, and short messages, share
 * a page as slices, so that a small region holds many short messages. A page is
 * free again when all that lies in it was given back. A bit for each 64 bytes says where
 * a piece begins that the application has, so that a piece that was never given, or comes
 * back twice, is refused for certain.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "libhoma_preload.h"
#include "internal.h"
#include "real.h"
#include "preload_sock.h"

#define ALIGN 64u /* bytes; slices begin at multiples */
/* The number of 64-bit words with the bits of a page. */
#define WORDS (HOMA_BPAGE_SIZE / ALIGN / 64)
#define MIN_BYTES ((size_t)2000000)
#define MAX_BYTES ((size_t)4 << 30)

static void forget(struct homa_pl_region *r)
{
	free(r->refs);
	free(r->out);
	r->refs = NULL;
	r->out = NULL;
}

void homa_pl_region_free(struct homa_pl_sock *s)
{
	struct homa_pl_region *r = &s->region;
	uint8_t *start;

	pthread_mutex_lock(&s->lock);
	forget(r);
	start = r->start;
	r->start = NULL;
	pthread_mutex_unlock(&s->lock);
	if (start && r->unmapped)
		HOMA_PL_REAL(munmap)(start, r->length);
}

/*
 * Does the socket's region overlap the memory from @start to @end? Then it stays mapped until
 * the socket is closed, because messages arrive there. @from and @to get its bounds.
 */
static bool keep(struct homa_pl_sock *s, uint8_t *start, uint8_t *end,
		 uint8_t **from, uint8_t **to)
{
	struct homa_pl_region *r = &s->region;
	bool ours;

	pthread_mutex_lock(&s->lock);
	*from = r->start;
	*to = r->start + r->length;
	ours = r->start && *from < end && *to > start &&
	       s->generation == homa_pl_generation;
	/* A region of which only a part is unmapped stays, even after the socket is closed. */
	if (ours && start <= *from && end >= *to)
		r->unmapped = true;
	/* It is the region of the parent's socket: the child's has none when it opens again. */
	if (!ours && r->start && *from < end && *to > start) {
		r->start = NULL;
		forget(r);
	}
	pthread_mutex_unlock(&s->lock);
	return ours;
}

int homa_pl_region_unmap(uint8_t *start, size_t length)
{
	uint8_t *end = start + length, *from, *to;
	struct homa_pl_sock *s;
	int rc = 0;

	for (s = homa_pl_all; s; s = s->next) {
		if (!s->region.start || !keep(s, start, end, &from, &to))
			continue;
		if (start < from)
			rc = homa_pl_region_unmap(start, (size_t)(from - start));
		if (!rc && to < end)
			rc = homa_pl_region_unmap(to, (size_t)(end - to));
		return rc;
	}
	return HOMA_PL_REAL(munmap)(start, length) ? -errno : 0;
}

static uint64_t *word(struct homa_pl_region *r, uint32_t offset)
{
	return &r->out[offset / ALIGN / 64];
}

static uint64_t bit(uint32_t offset)
{
	return 1ull << (offset / ALIGN % 64);
}

/* Can all bytes of this memory be written? The answer comes from /proc, without touching it. */
static bool writable(uint8_t *start, size_t length)
{
	uintptr_t at = (uintptr_t)start, end = at + length;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096 + 128];

	while (maps && at < end && fgets(line, sizeof(line), maps)) {
		uintptr_t from, to;
		char flag;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*c%c", &from, &to,
			   &flag) == 3 &&
		    from <= at && at < to) {
			if (flag != 'w')
				break;
			at = to;
		}
	}
	if (maps)
		fclose(maps);
	return at >= end;
}

/* Is there memory behind all of these addresses? */
static bool mapped(uint8_t *start, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = (length + page - 1) / page, done = 0;
	unsigned char seen[1024];

	while (done < pages) {
		size_t n = pages - done < sizeof(seen) ? pages - done :
							 sizeof(seen);

		if (mincore(start + done * page, n * page, seen))
			return false;
		done += n;
	}
	return true;
}

static bool can_be_written(uint64_t start, size_t length)
{
	uint8_t *from = (uint8_t *)(uintptr_t)(start & ~4095ull);

	length += start & 4095;
	if (length > UINTPTR_MAX - (uintptr_t)from)
		return false;
	return access("/proc/self/maps", R_OK) ? mapped(from, length) :
						 writable(from, length);
}

int homa_pl_region_set(struct homa_pl_sock *s, uint64_t start, size_t length)
{
	struct homa_pl_region *r = &s->region;
	size_t min = MIN_BYTES +
		     (size_t)sysconf(_SC_NPROCESSORS_ONLN) * HOMA_BPAGE_SIZE;

	if (r->start)
		return homa_pl_error(
			s, -EINVAL,
			"SO_HOMA_RCVBUF: the socket has a receive region already");
	if (!start || !can_be_written(start, length))
		return homa_pl_error(
			s, -EFAULT,
			"SO_HOMA_RCVBUF: there is no memory at that address, or it cannot be written");
	if (start & ((uint64_t)sysconf(_SC_PAGESIZE) - 1))
		return homa_pl_error(
			s, -EINVAL,
			"SO_HOMA_RCVBUF: the region does not begin on a page boundary");
	if (length < min || length > MAX_BYTES)
		return homa_pl_error(
			s, -EINVAL,
			"SO_HOMA_RCVBUF: a region has 2,000,000 bytes and 64 KiB for each CPU, at most 4 GiB");
	r->pages = (uint32_t)(length >> HOMA_BPAGE_SHIFT);
	r->refs = calloc(r->pages, sizeof(*r->refs));
	r->out = calloc(r->pages, WORDS * sizeof(*r->out));
	if (!r->refs || !r->out) {
		forget(r);
		return -ENOMEM;
	}
	r->free = r->pages;
	r->slices = -1;
	r->length = length;
	r->start = (uint8_t *)(uintptr_t)start;
	return 0;
}

static uint32_t get_page(struct homa_pl_region *r)
{
	while (r->refs[r->next])
		r->next = (r->next + 1) % r->pages;
	r->refs[r->next] = 1;
	r->free--;
	return r->next;
}

static void put_page(struct homa_pl_region *r, uint32_t page)
{
	if (--r->refs[page])
		return;
	r->free++;
	if (page < r->next)
		r->next = page;
}

int homa_pl_region_get(struct homa_pl_region *r, size_t length, uint32_t *offsets)
{
	uint32_t whole = (uint32_t)(length >> HOMA_BPAGE_SHIFT);
	uint32_t rest = (uint32_t)(length & (HOMA_BPAGE_SIZE - 1));
	uint32_t i, size = (rest + ALIGN - 1) & ~(ALIGN - 1);
	bool fresh = rest && (r->slices < 0 || r->used + size > HOMA_BPAGE_SIZE);

	/* All pieces in the shared page were given back, so it is used from its begin again. */
	if (fresh && r->slices >= 0 && r->refs[r->slices] == 1) {
		r->used = 0;
		fresh = false;
	}
	if (r->free < whole + fresh)
		return -ENOBUFS;
	for (i = 0; i < whole; i++) {
		offsets[i] = get_page(r) << HOMA_BPAGE_SHIFT;
		*word(r, offsets[i]) |= bit(offsets[i]);
	}
	if (!rest)
		return (int)whole;
	if (fresh) {
		if (r->slices >= 0)
			put_page(r, (uint32_t)r->slices);
		r->slices = get_page(r);
		r->used = 0;
	}
	offsets[whole] = ((uint32_t)r->slices << HOMA_BPAGE_SHIFT) + r->used;
	*word(r, offsets[whole]) |= bit(offsets[whole]);
	r->used += size;
	r->refs[r->slices]++;
	return (int)whole + 1;
}

void homa_pl_region_note(struct homa_pl_region *r, uint32_t num,
			 const uint32_t *offsets)
{
	uint32_t i;

	for (i = 0; i < num; i++) {
		r->free -= !r->refs[offsets[i] >> HOMA_BPAGE_SHIFT]++;
		*word(r, offsets[i]) |= bit(offsets[i]);
	}
}

int homa_pl_region_put(struct homa_pl_region *r, uint32_t num,
		       const uint32_t *offsets)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; i < num; i++) {
		uint32_t page = offsets[i] >> HOMA_BPAGE_SHIFT;

		if (page >= r->pages || offsets[i] % ALIGN ||
		    !(*word(r, offsets[i]) & bit(offsets[i]))) {
			rc = -EINVAL;
			continue;
		}
		*word(r, offsets[i]) &= ~bit(offsets[i]);
		put_page(r, page);
	}
	return rc;
}

uint64_t homa_pl_region_avail(const struct homa_pl_region *r)
{
	uint64_t rest = 0;

	if (r->start && r->slices >= 0)
		rest = HOMA_BPAGE_SIZE - r->used;
	return ((uint64_t)r->free << HOMA_BPAGE_SHIFT) + rest;
}

void homa_pl_region_lend(struct homa_pl_sock *s)
{
	struct homa_pl_region *r = &s->region;

	s->lent = !homa_internal_set_region(s->h, r->start,
					    (size_t)r->pages << HOMA_BPAGE_SHIFT);
	if (!s->lent)
		homa_pl_debug("messages are copied into the receive region: %s",
			      homa_error(s->h));
}

void homa_pl_region_again(struct homa_pl_sock *s)
{
	struct homa_pl_region *r = &s->region;

	memset(r->refs, 0, r->pages * sizeof(*r->refs));
	memset(r->out, 0, r->pages * WORDS * sizeof(*r->out));
	r->free = r->pages;
	r->next = 0;
	r->slices = -1;
	homa_pl_region_lend(s);
}
