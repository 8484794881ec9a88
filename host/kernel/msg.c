// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Bytes of outgoing messages. They are copied once from the application and
 * stay until the RPC is retired, for any of them may have to be sent again.
 *
 * A message of up to HOMAK_MSG_SMALL bytes is one allocation with its bytes
 * behind it; its packets get copies. The shortest are kept for the next ones.
 * A longer one is cut in chunks of 32 KiB, each in one compound page, and its
 * packets refer to those. The last chunk takes only what it needs of a page that
 * others use too. Pages that come back with no reference left but ours are kept,
 * some per CPU, since an order-3 page costs more than the copy of what is in it.
 *
 * A message is charged to its socket: homak_sock.tx_bytes, which wmem_max limits
 * and the socket's memory cgroup pays (room.c, also for the RPC), and sk_wmem_alloc, which
 * also keeps the socket's memory alive. The memory itself is nobody's: what is kept for
 * later is little, and passes from one user to the next.
 */
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "homa_sockets.h"
#include "homa_transmit.h"

#define HOMAK_MSG_SMALL 1536u
#define HOMAK_CHUNK_ORDER 3
#define HOMAK_CHUNK_SHIFT (PAGE_SHIFT + HOMAK_CHUNK_ORDER)
#define HOMAK_POOL_PAGES 64u /* pages that a CPU keeps: 2 MiB */
/* bytes of the shortest messages, with all that they need */
#define HOMAK_TINY 256u
#define HOMAK_POOL_TINY 64u /* per CPU */
#define HOMAK_FRAG_ALIGN 64u

/*
 * struct homak_msg - an outgoing message; see homa_kernel.h
 * @hsk: socket that is charged for the message.
 * @length: bytes of the message.
 * @filled: bytes that were copied in so far.
 * @charge: bytes that are charged to the socket.
 * @shift: a chunk has 1 << @shift bytes; 0: the bytes are in @small.
 * @num: number of chunks that are filled or begun.
 * @chunks: the pieces of pages that the bytes are in, unless @shift is 0.
 */
struct homak_msg {
	struct homak_sock *hsk;
	u32 length;
	u32 filled;
	u32 charge;
	u16 shift;
	u16 num;
	union {
		DECLARE_FLEX_ARRAY(struct page_frag, chunks);
		DECLARE_FLEX_ARRAY(u8, small);
	};
};

/* ---- pages ---- */

/*
 * struct homak_pages - pages that a CPU has at hand, used by the CPU's owner
 * @last_tiny: the piece of memory of HOMAK_TINY bytes that came back last; NULL: it was taken. Who
 *	takes it does so by one instruction and need not be the owner.
 * @num_tiny: number of entries of @tiny that are used.
 * @num: number of entries of @free that are used.
 * @part_used: bytes of @part that were handed out.
 * @part: a page that is handed out piece by piece; NULL: there is none. The CPU has a
 *	reference.
 * @free: pages to which nobody else has a reference.
 * @tiny: pieces of memory of HOMAK_TINY bytes.
 */
struct homak_pages {
	void *last_tiny;
	u32 num_tiny;
	u32 num;
	u32 part_used;
	struct page *part;
	struct page *free[HOMAK_POOL_PAGES];
	void *tiny[HOMAK_POOL_TINY];
};

static DEFINE_PER_CPU(struct homak_pages, homak_pages);

static struct page *homak_page_pop(void)
{
	struct homak_pages *pages;
	struct page *page = NULL;

	homak_own_bh();
	pages = this_cpu_ptr(&homak_pages);
	if (pages->num)
		page = pages->free[--pages->num];
	homak_disown_bh();
	return page;
}

/* Gives a reference to a page back; with the last one the page goes to the pool. */
static void homak_page_put(struct page *page)
{
	struct homak_pages *pages;

	if (page_ref_count(page) == 1 &&
	    folio_order(page_folio(page)) == HOMAK_CHUNK_ORDER &&
	    page_to_nid(page) == numa_mem_id() && !page_is_pfmemalloc(page)) {
		homak_own_bh();
		pages = this_cpu_ptr(&homak_pages);
		if (pages->num < HOMAK_POOL_PAGES) {
			pages->free[pages->num++] = page;
			page = NULL;
		}
		homak_disown_bh();
	}
	if (page)
		put_page(page);
}

/* Returns a page from the pool or a new one. @hard: the allocation tries hard. */
static struct page *homak_page_get(bool hard)
{
	gfp_t gfp = GFP_KERNEL | __GFP_COMP | __GFP_NOWARN;
	struct page *page = homak_page_pop();

	if (page)
		return page;
	if (!hard)
		gfp = (gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_NORETRY;
	return alloc_pages(gfp, HOMAK_CHUNK_ORDER);
}

/* Takes @size bytes of the CPU's page that is handed out piece by piece, if that many are
 * left. */
static bool homak_part_take(struct page_frag *frag, u32 size)
{
	struct homak_pages *pages;
	bool taken = false;

	homak_own_bh();
	pages = this_cpu_ptr(&homak_pages);
	/* All pieces have come back, so the page begins anew. */
	if (pages->part && page_ref_count(pages->part) == 1)
		pages->part_used = 0;
	if (pages->part &&
	    pages->part_used + size <= PAGE_SIZE << HOMAK_CHUNK_ORDER) {
		frag->page = pages->part;
		frag->offset = pages->part_used;
		frag->size = size;
		get_page(frag->page);
		pages->part_used += size;
		taken = true;
	}
	homak_disown_bh();
	return taken;
}

/* Makes @page the one that is handed out piece by piece from now on. */
static void homak_part_new(struct page *page)
{
	struct homak_pages *pages;
	struct page *old;

	homak_own_bh();
	pages = this_cpu_ptr(&homak_pages);
	old = pages->part;
	pages->part = page;
	pages->part_used = 0;
	homak_disown_bh();
	if (old)
		homak_page_put(old);
}

/* Returns memory for a chunk of @size bytes, at most 1 << HOMAK_CHUNK_SHIFT. */
static int homak_chunk_get(struct page_frag *frag, u32 size, bool hard)
{
	struct page *page;
	int tries;

	size = ALIGN(size, HOMAK_FRAG_ALIGN);
	if (size > 1u << (HOMAK_CHUNK_SHIFT - 1)) {
		frag->page = homak_page_get(hard);
		frag->offset = 0;
		frag->size = 1u << HOMAK_CHUNK_SHIFT;
		return frag->page ? 0 : -ENOMEM;
	}
	/* The thread may move to another CPU in between, or another thread may be
	 * faster. */
	for (tries = 0; tries < 3; tries++) {
		if (homak_part_take(frag, size))
			return 0;
		page = homak_page_get(hard);
		if (!page)
			return -ENOMEM;
		homak_part_new(page);
	}
	return -ENOMEM;
}

/* ---- memory of the shortest messages ---- */

static void *homak_tiny_get(void)
{
	void *mem = this_cpu_xchg(homak_pages.last_tiny, NULL);
	struct homak_pages *pages;

	if (likely(mem))
		return mem;
	homak_own_bh();
	pages = this_cpu_ptr(&homak_pages);
	if (likely(pages->num_tiny))
		mem = pages->tiny[--pages->num_tiny];
	/* Who sends several in a row has bottom halves turned off for every other one. */
	if (pages->num_tiny && !READ_ONCE(pages->last_tiny))
		WRITE_ONCE(pages->last_tiny, pages->tiny[--pages->num_tiny]);
	homak_disown_bh();
	if (unlikely(!mem))
		mem = kmalloc(HOMAK_TINY, GFP_KERNEL | __GFP_NOWARN);
	return mem;
}

static void homak_tiny_put(void *mem)
{
	struct homak_pages *pages;

	/* Under KASAN freed memory is not kept, so that errors are found. Bottom halves are
	 * off, but for errors before sending. */
	if (!IS_ENABLED(CONFIG_KASAN) && likely(softirq_count())) {
		homak_own();
		pages = this_cpu_ptr(&homak_pages);
		/* None but the owner puts one there. */
		if (likely(!READ_ONCE(pages->last_tiny))) {
			WRITE_ONCE(pages->last_tiny, mem);
			mem = NULL;
		} else if (likely(pages->num_tiny < HOMAK_POOL_TINY)) {
			pages->tiny[pages->num_tiny++] = mem;
			mem = NULL;
		}
		homak_disown();
	}
	if (unlikely(mem))
		kfree(mem);
}

void homak_msgs_exit(void)
{
	int i;

	for_each_possible_cpu(i) {
		struct homak_pages *pages = per_cpu_ptr(&homak_pages, i);

		while (pages->num)
			put_page(pages->free[--pages->num]);
		kfree(pages->last_tiny);
		pages->last_tiny = NULL;
		while (pages->num_tiny)
			kfree(pages->tiny[--pages->num_tiny]);
		if (pages->part)
			put_page(pages->part);
		pages->part = NULL;
	}
}

/* ---- messages ---- */

/* Charges the message to the socket. False: the socket has so many bytes of messages that the
 * kernel's counters, which are ints, might overflow. */
static HOMAK_HOT bool homak_msg_charge(struct homak_msg *msg,
				       struct homak_sock *hsk)
{
	struct sock *sk = (struct sock *)hsk;

	msg->hsk = hsk;
	if (unlikely(atomic64_add_return(msg->charge, &hsk->tx_bytes) >
		     HOMAK_TX_MOST + HOMAK_TX_MOST / 2)) {
		atomic64_sub(msg->charge, &hsk->tx_bytes);
		return false;
	}
	refcount_add(msg->charge, &sk->sk_wmem_alloc);
	return true;
}

/* Takes the charge back and wakes writers when there is room again; releases the socket
 * last. */
static HOMAK_HOT void homak_msg_uncharge(struct homak_msg *msg)
{
	struct homak_sock *hsk = msg->hsk;
	struct sock *sk = (struct sock *)hsk;

	atomic64_sub(msg->charge, &hsk->tx_bytes);
	homak_pay_less(hsk);
	smp_mb__after_atomic();
	if (unlikely(READ_ONCE(hsk->tx_full)))
		sk->sk_write_space(sk);
	/* It was the last charge, so the socket is nobody else's: sk_free() takes the one byte. */
	if (unlikely(refcount_sub_and_test(msg->charge, &sk->sk_wmem_alloc))) {
		refcount_set(&sk->sk_wmem_alloc, 1);
		sk_free(sk);
	}
}

static HOMAK_HOT struct homak_msg *homak_msg_new_small(u32 length)
{
	struct homak_msg *msg;
	size_t size = struct_size(msg, small, length);

	if (likely(size <= HOMAK_TINY)) {
		size = HOMAK_TINY;
		msg = homak_tiny_get();
	} else {
		msg = kmalloc(size, GFP_KERNEL | __GFP_NOWARN);
	}
	if (unlikely(!msg))
		return NULL;
	msg->shift = 0;
	msg->num = 0;
	msg->charge = (u32)size;
	return msg;
}

/*
 * The size of chunks is decided by the first one: if a page of 32 KiB is not to
 * be had without effort, the message is made of single pages.
 */
static noinline struct homak_msg *homak_msg_new_long(u32 length)
{
	struct page_frag first;
	struct homak_msg *msg;
	u32 shift = HOMAK_CHUNK_SHIFT;
	size_t num, size;

	if (homak_chunk_get(&first, min(length, 1u << shift), false)) {
		shift = PAGE_SHIFT;
		first.page = NULL;
	}
	num = (length - 1) / (1u << shift) + 1;
	size = struct_size(msg, chunks, num);
	msg = num > U16_MAX ? NULL : kmalloc(size, GFP_KERNEL | __GFP_NOWARN);
	if (!msg) {
		if (first.page)
			homak_page_put(first.page);
		return NULL;
	}
	msg->shift = (u16)shift;
	msg->num = 0;
	if (first.page)
		msg->chunks[msg->num++] = first;
	msg->charge = (u32)(size + ALIGN(length, HOMAK_FRAG_ALIGN));
	return msg;
}

static void homak_msg_memory_free(struct homak_msg *msg)
{
	u32 i;

	if (likely(!msg->shift && msg->charge == HOMAK_TINY)) {
		homak_tiny_put(msg);
		return;
	}
	for (i = 0; i < msg->num; i++)
		homak_page_put(msg->chunks[i].page);
	kfree(msg);
}

HOMAK_HOT struct homak_msg *homak_msg_new(struct homak_sock *hsk, u32 length)
{
	struct homak_msg *msg;

	if (length <= HOMAK_MSG_SMALL)
		msg = homak_msg_new_small(length);
	else
		msg = homak_msg_new_long(length);
	if (unlikely(!msg))
		return ERR_PTR(-ENOMEM);
	msg->length = length;
	msg->filled = 0;
	if (unlikely(!homak_msg_charge(msg, hsk))) {
		homak_msg_memory_free(msg);
		return ERR_PTR(-ENOBUFS);
	}
	if (unlikely(!homak_pay(hsk))) {
		homak_msg_free(msg);
		return ERR_PTR(-ENOBUFS);
	}
	return msg;
}

/* Allocates the chunk that message byte msg->filled is in. */
static int homak_msg_grow(struct homak_msg *msg)
{
	struct page_frag *chunk = &msg->chunks[msg->num];
	u32 left = msg->length - msg->filled;
	int err = 0;

	if (msg->shift == HOMAK_CHUNK_SHIFT) {
		err = homak_chunk_get(chunk, min(left, 1u << HOMAK_CHUNK_SHIFT),
				      true);
	} else {
		chunk->page = alloc_page(GFP_KERNEL | __GFP_NOWARN);
		chunk->offset = 0;
		chunk->size = PAGE_SIZE;
		if (!chunk->page)
			err = -ENOMEM;
	}
	if (!err)
		msg->num++;
	return err;
}

/* Copies the next @n bytes of the message to @to. */
static HOMAK_HOT int homak_msg_copy(struct homak_msg *msg,
				    struct iov_iter *from, void *to, u32 n)
{
	/* Inside our own memory as computed by the caller; the usual function would look up
	 * again what kind of memory that is. */
	if (unlikely(_copy_from_iter(to, n, from) != n))
		return -EFAULT;
	WRITE_ONCE(msg->filled, msg->filled + n);
	return 0;
}

/* Does the same for all bytes of a short message. Mostly they are one piece of the program's
 * memory, which is copied without what is done for lists of pieces. */
static HOMAK_HOT int homak_msg_copy_short(struct homak_msg *msg,
					  struct iov_iter *from, u32 n)
{
	const void __user *all = homak_iter_last(from, n);

	if (unlikely(!all))
		return homak_msg_copy(msg, from, msg->small, n);
	if (unlikely(homak_copy_from_user(msg->small, all, n)))
		return -EFAULT;
	from->iov_offset += n;
	from->count = 0;
	WRITE_ONCE(msg->filled, n);
	return 0;
}

/* Does what homak_msg_fill() says, for a message that is in chunks. */
static noinline int homak_msg_fill_long(struct homak_msg *msg,
					struct iov_iter *from, u32 upto)
{
	int err = 0;

	while (!err && msg->filled < upto) {
		u32 in = msg->filled & ((1u << msg->shift) - 1);
		u32 i = msg->filled >> msg->shift;
		u32 n = min(upto - msg->filled, (1u << msg->shift) - in);

		if (i >= msg->num)
			err = homak_msg_grow(msg);
		if (!err)
			err = homak_msg_copy(msg, from,
					     page_address(msg->chunks[i].page) +
						     msg->chunks[i].offset + in,
					     n);
	}
	return err;
}

HOMAK_HOT int homak_msg_fill(struct homak_msg *msg, struct iov_iter *from,
			     u32 upto)
{
	upto = min(upto, msg->length);
	if (unlikely(msg->shift))
		return homak_msg_fill_long(msg, from, upto);
	if (likely(!msg->filled && upto == msg->length))
		return homak_msg_copy_short(msg, from, upto);
	if (unlikely(msg->filled >= upto))
		return 0;
	return homak_msg_copy(msg, from, msg->small + msg->filled,
			      upto - msg->filled);
}

HOMAK_HOT void homak_msg_over(struct homak_msg *msg)
{
	homak_msg_uncharge(msg);
	homak_msg_memory_free(msg);
}

void homak_msg_free(struct homak_msg *msg)
{
	homak_msg_over(msg);
}

u32 homak_msg_length(const struct homak_msg *msg)
{
	return msg->length;
}

struct sock *homak_msg_sock(const struct homak_msg *msg)
{
	return (struct sock *)msg->hsk;
}

int homak_skb_add(struct sk_buff *skb, struct page *page, u32 offset, u32 length)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	int i = shinfo->nr_frags;

	if (skb_can_coalesce(skb, i, page, (int)offset)) {
		skb_frag_size_add(&shinfo->frags[i - 1], (int)length);
	} else {
		if (unlikely(i >= MAX_SKB_FRAGS))
			return -EMSGSIZE;
		get_page(page);
		skb_fill_page_desc(skb, i, page, (int)offset, (int)length);
	}
	skb->len += length;
	skb->data_len += length;
	skb->truesize += length;
	return 0;
}

int homak_msg_to_skb(const struct homak_msg *msg, struct sk_buff *skb,
		     u32 offset, u32 length)
{
	bool copy = !skb_is_nonlinear(skb) && skb_availroom(skb) >= (int)length;
	u32 filled = READ_ONCE(msg->filled);
	u32 mask = (1u << msg->shift) - 1;

	/* The engine says what was handed in; should it be wrong, say nothing
	 * that was not written. */
	if (WARN_ON_ONCE(offset > filled || length > filled - offset))
		return -EMSGSIZE;
	if (!msg->shift) {
		if (!copy)
			return -EMSGSIZE;
		skb_put_data(skb, msg->small + offset, length);
		return 0;
	}
	while (length) {
		const struct page_frag *chunk =
			&msg->chunks[offset >> msg->shift];
		u32 in = offset & mask;
		u32 n = min(length, mask + 1 - in);
		int err = 0;

		if (copy)
			skb_put_data(skb,
				     page_address(chunk->page) + chunk->offset +
					     in,
				     n);
		else
			err = homak_skb_add(skb, chunk->page,
					    chunk->offset + in, n);
		if (err)
			return err;
		offset += n;
		length -= n;
	}
	return 0;
}

HOMAK_HOT const u8 *homak_msg_small(const struct homak_msg *msg, u32 end)
{
	return msg->shift || end > READ_ONCE(msg->filled) ? NULL : msg->small;
}
