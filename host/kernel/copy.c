// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Between the kernel and the application's memory. Payload: the bytes of short packets are in the
 * buffer's linear part, those of others mostly in pages, which are copied from without what is
 * asked of the general way for each packet. And the arguments of calls, which 64-bit kernels read
 * and write word by word: a function that copies any number of bytes takes longer for so few.
 */
#include <linux/instrumented.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "homa_sockets.h"

/*
 * Copies part of a fragment. What copy_to_user() finds out besides, packet by packet - that
 * the memory is no stack and no slab of other size - is known of a fragment's page.
 */
static bool homak_copy_raw(void __user *to, const void *from, u32 n)
{
	might_fault();
	instrument_copy_to_user(to, from, n);
	return raw_copy_to_user(to, from, n) == 0;
}

/* Copies bytes from @skb's fragments. Returns 1 if that is not possible, so that the slow
 * way has to be taken. */
static __always_inline int homak_copy_frags(const struct sk_buff *skb, u32 at,
					    void __user *to, u32 n)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	u32 i;

	if (unlikely(!access_ok(to, n)))
		return -EFAULT;
	at -= skb_headlen(skb);
	for (i = 0; i < shinfo->nr_frags; i++) {
		const skb_frag_t *frag = &shinfo->frags[i];
		u32 has = skb_frag_size(frag), some;
		const u8 *from;

		if (at >= has) {
			at -= has;
			continue;
		}
		from = skb_frag_address_safe(frag);
		if (unlikely(!from))
			/* the page has no address here, or there is no page at all */
			return 1;
		some = min(n, has - at);
		if (unlikely(!homak_copy_raw(to, from + at, some)))
			return -EFAULT;
		to += some;
		n -= some;
		if (!n)
			return 0;
		at = 0;
	}
	return 1;
}

/* Does what homak_copy_piece() says, wherever the bytes are. */
static noinline int homak_copy_any(struct sk_buff *skb, u32 at, void __user *to,
				   u32 n)
{
	struct iov_iter iter HOMA_NOINIT;
	struct iovec iov HOMA_NOINIT;

	iov.iov_base = to;
	iov.iov_len = n;
	iov_iter_init(&iter, ITER_DEST, &iov, 1, n);
	return skb_copy_datagram_iter(skb, at, &iter, n);
}

/* Does what homak_copy_piece() says, if some of the bytes are not in @skb's linear part. */
static __always_inline int homak_copy_paged(struct sk_buff *skb, u32 at,
					    void __user *to, u32 n)
{
	int err = 1;

	if (at >= skb_headlen(skb))
		err = homak_copy_frags(skb, at, to, n);
	return likely(err <= 0) ? err : homak_copy_any(skb, at, to, n);
}

static noinline int homak_copy_apart(struct sk_buff *skb, u32 at,
				     void __user *to, u32 n)
{
	return homak_copy_paged(skb, at, to, n);
}

HOMAK_HOT int homak_copy_piece(struct sk_buff *skb, u32 at, void __user *to, u32 n)
{
	if (likely(at + n <= skb_headlen(skb)))
		return copy_to_user(to, skb->data + at, n) ? -EFAULT : 0;
	return homak_copy_apart(skb, at, to, n);
}

HOMAK_HOT int homak_copy_long(struct sk_buff *skb, u32 at, void __user *to, u32 n)
{
	if (at + n <= skb_headlen(skb))
		return copy_to_user(to, skb->data + at, n) ? -EFAULT : 0;
	return homak_copy_paged(skb, at, to, n);
}

/* ---- arguments ---- */

/* HOMAK_COPY_ARGS is for tests of what is below for 32 bits. */
#if defined(CONFIG_64BIT) && !defined(HOMAK_COPY_ARGS)

HOMAK_HOT int homak_args_read_send(const struct homa_sendmsg_args __user *from,
				   struct homa_sendmsg_args *args)
{
	might_fault();
	if (!user_read_access_begin(from, sizeof(*from)))
		return -EFAULT;
	unsafe_get_user(args->id, &from->id, fault);
	unsafe_get_user(args->completion_cookie, &from->completion_cookie, fault);
	unsafe_get_user(args->flags, &from->flags, fault);
	unsafe_get_user(args->reserved, &from->reserved, fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

HOMAK_HOT int homak_args_read(const struct homa_recvmsg_args __user *from,
			      struct homa_recvmsg_args *args)
{
	/* Pointers, for in between nothing may be called, also not what checks indices. */
	const u32 __user *offsets = from->bpage_offsets;
	u32 *to = args->bpage_offsets;
	u32 i, num;

	might_fault();
	if (!user_read_access_begin(from, sizeof(*from)))
		return -EFAULT;
	unsafe_get_user(args->id, &from->id, fault);
	unsafe_get_user(num, &from->num_bpages, fault);
	unsafe_get_user(args->reserved, &from->reserved, fault);
	args->num_bpages = num;
	/* Memory that ends before the structure does is an error now, not after a message that has
	 * more pages was taken. */
	unsafe_get_user(to[HOMA_MAX_BPAGES - 1], offsets + HOMA_MAX_BPAGES - 1,
			fault);
	for (i = 0; i < num && i < HOMA_MAX_BPAGES; i++)
		unsafe_get_user(to[i], offsets + i, fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

HOMAK_HOT int homak_args_write_whole(const struct homak_whole_cb *cb,
				     struct homa_recvmsg_args __user *to)
{
	const u64 cookie = homak_whole_cookie(cb);

	might_fault();
	if (!user_write_access_begin(to, sizeof(*to)))
		return -EFAULT;
	unsafe_put_user(cb->id, &to->id, fault);
	unsafe_put_user(cookie, &to->completion_cookie, fault);
	unsafe_put_user(1, &to->num_bpages, fault);
	unsafe_put_user(cb->page, &to->bpage_offsets[0], fault);
	user_write_access_end();
	return 0;
fault:
	user_write_access_end();
	return -EFAULT;
}

#else

/* Not every 32-bit processor's kernel has unsafe_get_user() for 64 bits (Arm's without CPU_SPECTRE
 * has not), so here they are copied as any memory is. */

int homak_args_read_send(const struct homa_sendmsg_args __user *from,
			 struct homa_sendmsg_args *args)
{
	return copy_from_user(args, from, sizeof(*args)) ? -EFAULT : 0;
}

int homak_args_read(const struct homa_recvmsg_args __user *from,
		    struct homa_recvmsg_args *args)
{
	return copy_from_user(args, from, sizeof(*args)) ? -EFAULT : 0;
}

int homak_args_write_whole(const struct homak_whole_cb *cb,
			   struct homa_recvmsg_args __user *to)
{
	struct homa_recvmsg_args args = { 0 };

	homak_whole_args(cb, &args);
	return copy_to_user(to, &args,
			    offsetof(struct homa_recvmsg_args, bpage_offsets[1])) ?
		       -EFAULT :
		       0;
}

#endif
