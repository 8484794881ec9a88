// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Payload from a packet's buffer to the application's memory. The bytes of short packets are
 * in the buffer's linear part, those of others mostly in pages, which are copied from
 * without what is asked of the general way for each packet.
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
