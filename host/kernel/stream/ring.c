// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Bytes of a stream that were received and not read: a ring of pages, in which the place of
 * a byte follows from its offset. So messages may come in any order, and what they
 * take is never more than the window. Pages are made as bytes come and freed as they are
 * read. There is a place more than the window has pages: the last page of a
 * window that begins in the middle of a page is not the first one.
 *
 * One thread writes (the carrier's work item), to offsets from @next on, and one reads,
 * before @next; so they never touch the same bytes and copy without a lock.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "homa_stream.h"
#include "homa_sockets.h"

/* Returns where the page begins that the byte at @offset is in. PAGE_MASK has 32 bits on 32-bit
 * processors, and an offset more. */
static u64 homak_ring_page(u64 offset)
{
	return round_down(offset, PAGE_SIZE);
}

static struct page **homak_ring_place(const struct homak_ring *ring, u64 offset)
{
	u32 place;

	div_u64_rem(offset >> PAGE_SHIFT, ring->num_pages, &place);
	return &ring->pages[place];
}

void homak_ring_start(struct homak_ring *ring, struct homak_sock *payer,
		      u32 window)
{
	memset(ring, 0, sizeof(*ring));
	ring->payer = payer;
	ring->num_pages = (window >> PAGE_SHIFT) + 1;
	ring->window = window;
}

static void homak_ring_page_free(struct homak_ring *ring, struct page **place)
{
	put_page(*place);
	*place = NULL;
	atomic64_sub(PAGE_SIZE, &ring->payer->ring_bytes);
	homak_pay_less(ring->payer);
}

void homak_ring_end(struct homak_ring *ring)
{
	u32 i;

	for (i = 0; ring->pages && i < ring->num_pages; i++)
		if (ring->pages[i])
			homak_ring_page_free(ring, &ring->pages[i]);
	kvfree(ring->pages);
	kfree(ring->spans);
	ring->pages = NULL;
	ring->spans = NULL;
	ring->num_spans = 0;
	ring->num_pages = 0;
}

/* ---- writing ---- */

/* Makes the tables, with the first byte that comes. */
static int homak_ring_tables(struct homak_ring *ring)
{
	if (!ring->spans)
		ring->spans = kcalloc(HOMAK_RING_SPANS, sizeof(*ring->spans),
				      GFP_KERNEL_ACCOUNT);
	if (!ring->pages)
		ring->pages = kvcalloc(ring->num_pages, sizeof(*ring->pages),
				       GFP_KERNEL_ACCOUNT);
	return ring->spans && ring->pages ? 0 : -ENOMEM;
}

/* The page is charged to the socket, as packets are, and counts to Homa's limit. */
static int homak_ring_page_new(struct homak_ring *ring, struct page **place)
{
	*place = alloc_page(GFP_KERNEL | __GFP_NOWARN);
	if (!*place)
		return -ENOMEM;
	atomic64_add(PAGE_SIZE, &ring->payer->ring_bytes);
	if (homak_pay(ring->payer))
		return 0;
	homak_ring_page_free(ring, place);
	return -ENOMEM;
}

int homak_ring_pages(struct homak_ring *ring, u64 from, u64 to)
{
	int err = homak_ring_tables(ring);
	u64 at;

	for (at = homak_ring_page(from); !err && at < to; at += PAGE_SIZE) {
		struct page **place = homak_ring_place(ring, at);

		if (!*place)
			err = homak_ring_page_new(ring, place);
	}
	return err;
}

int homak_ring_write(struct homak_ring *ring, u64 to, struct sk_buff *skb,
		     u32 at, u32 n)
{
	while (n) {
		struct page *page = *homak_ring_place(ring, to);
		u32 in = offset_in_page(to);
		u32 some = min(n, (u32)PAGE_SIZE - in);
		int err;

		if (WARN_ON_ONCE(!page))
			return -EFAULT;
		err = skb_copy_bits(skb, (int)at, page_address(page) + in,
				    (int)some);
		if (err)
			return err;
		to += some;
		at += some;
		n -= some;
	}
	return 0;
}

static void homak_span_remove(struct homak_ring *ring, u32 i)
{
	ring->num_spans--;
	memmove(&ring->spans[i], &ring->spans[i + 1],
		(ring->num_spans - i) * sizeof(*ring->spans));
}

/* Adds a part to @spans, and joins those that it touches. */
static int homak_span_add(struct homak_ring *ring, u64 from, u64 to)
{
	u32 i = 0;

	while (i < ring->num_spans && ring->spans[i].to < from)
		i++;
	while (i < ring->num_spans && ring->spans[i].from <= to) {
		from = min(from, ring->spans[i].from);
		to = max(to, ring->spans[i].to);
		homak_span_remove(ring, i);
	}
	if (ring->num_spans == HOMAK_RING_SPANS)
		return -ENOSPC;
	memmove(&ring->spans[i + 1], &ring->spans[i],
		(ring->num_spans - i) * sizeof(*ring->spans));
	ring->spans[i].from = from;
	ring->spans[i].to = to;
	ring->num_spans++;
	return 0;
}

int homak_ring_note(struct homak_ring *ring, u64 from, u64 to)
{
	if (to <= ring->next)
		return 0;
	if (from > ring->next)
		return homak_span_add(ring, from, to);
	ring->next = to;
	while (ring->num_spans && ring->spans[0].from <= ring->next) {
		ring->next = max(ring->next, ring->spans[0].to);
		homak_span_remove(ring, 0);
	}
	return 0;
}

/* ---- reading ---- */

size_t homak_ring_copy(const struct homak_ring *ring, u64 from, size_t n,
		       struct iov_iter *to)
{
	size_t done = 0;

	while (done < n) {
		struct page *page = *homak_ring_place(ring, from + done);
		size_t in = offset_in_page(from + done);
		size_t some = min(n - done, PAGE_SIZE - in), copied;

		if (WARN_ON_ONCE(!page))
			break;
		/* A copy also into a pipe: the page is none that others may refer to. */
		copied = copy_to_iter(page_address(page) + in, some, to);
		done += copied;
		if (copied < some)
			break;
	}
	return done;
}

void homak_ring_free(struct homak_ring *ring, u64 upto)
{
	u64 at;

	for (at = homak_ring_page(ring->read); at + PAGE_SIZE <= upto;
	     at += PAGE_SIZE) {
		struct page **place = homak_ring_place(ring, at);

		if (*place)
			homak_ring_page_free(ring, place);
	}
}
