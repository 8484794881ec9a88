// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Tests: a buffer with several segments taken apart (gso.c) gives packets as they
 * would have been sent one by one - each with the header, its own offset, its own
 * bytes - whatever device it meets; and what others made up is refused.
 */
#include "homa_codec.h"
#include "homa_kunit.h"
#include "homa_receive.h"
#include "homa_transmit.h"

#define SEG 1404u
#define START 70000u /* offset of the first segment in the message */
#define IP_LEN 20u
#define GSO_OFFSET 4u /* bytes before each payload of the interleaved form */

static u8 gso_byte(u32 i)
{
	return (u8)(i * 29 + (i >> 8) * 3);
}

/* Appends bytes to page fragments of @skb. */
static bool gso_append(struct sk_buff *skb, const void *bytes, u32 length)
{
	const u8 *from = bytes;

	while (length) {
		u32 n = min_t(u32, length, PAGE_SIZE);
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page)
			return false;
		memcpy(page_address(page), from, n);
		skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, (int)n,
				PAGE_SIZE);
		from += n;
		length -= n;
	}
	return true;
}

/* Appends the payload as @form has it. */
static bool gso_payload(struct sk_buff *skb, enum homak_gso_form form, u32 length)
{
	u8 *bytes = kmalloc(length + 64 * GSO_OFFSET, GFP_KERNEL);
	u32 at = 0, i;
	bool ok;

	if (!bytes)
		return false;
	for (i = 0; i < length; i++) {
		if (form == HOMAK_GSO_INTERLEAVED && i && !(i % SEG)) {
			homa_put_be32(bytes + at, START + i);
			at += GSO_OFFSET;
		}
		bytes[at++] = gso_byte(i);
	}
	ok = gso_append(skb, bytes, at);
	kfree(bytes);
	return ok;
}

/* Makes IP's header, a Homa header and @length message bytes; data is at the Homa
 * header. */
static struct sk_buff *gso_make(enum homak_gso_form form, u32 length)
{
	struct sk_buff *skb = alloc_skb(256 + IP_LEN + HOMA_DATA_HDR, GFP_KERNEL);
	struct homa_wire_data *w;

	if (!skb)
		return NULL;
	skb_reserve(skb, 256);
	skb->protocol = htons(ETH_P_IP);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	memset(skb_put(skb, IP_LEN), 0x45, IP_LEN);
	skb_set_transport_header(skb, IP_LEN);
	w = skb_put_zero(skb, HOMA_DATA_HDR);
	w->common.type = HOMA_DATA;
	w->common.doff = HOMA_DOFF_DATA << 4;
	homa_put_be64(&w->common.sender_id, 4711);
	homa_put_be32(&w->common.sequence, START);
	homa_put_be32(&w->seg_offset, START);
	if (!gso_payload(skb, form, length)) {
		kfree_skb(skb);
		return NULL;
	}
	__skb_pull(skb, IP_LEN);
	homak_gso_mark(skb, form, SEG, length, true);
	return skb;
}

/* Is @one packet number @i of a message of @length bytes? */
static bool gso_right(struct sk_buff *one, u32 i, u32 length)
{
	const struct homa_wire_data *w = (const void *)skb_transport_header(one);
	u32 n = min(SEG, length - i * SEG);
	u32 at = (u32)skb_transport_offset(one) + HOMA_DATA_HDR, k;
	u8 *bytes;
	bool ok;

	if (one->len != at + n ||
	    homa_get_be32(&w->seg_offset) != START + i * SEG ||
	    w->common.doff != HOMA_DOFF_DATA << 4 || w->common.type != HOMA_DATA ||
	    homa_get_be64(&w->common.sender_id) != 4711)
		return false;
	bytes = kmalloc(n, GFP_KERNEL);
	ok = bytes && !skb_copy_bits(one, (int)at, bytes, (int)n);
	for (k = 0; ok && k < n; k++)
		ok = bytes[k] == gso_byte(i * SEG + k);
	kfree(bytes);
	return ok;
}

/* Cuts @skb as a device with these @features makes the stack do it, with bottom halves
 * off. */
static struct sk_buff *gso_apart(struct sk_buff *skb, netdev_features_t features)
{
	struct sk_buff *segs;

	local_bh_disable();
	segs = homak_gso_segment(skb, features);
	local_bh_enable();
	return segs;
}

static void gso_form(struct kunit *test, enum homak_gso_form form,
		     netdev_features_t features)
{
	static const u32 lengths[] = { SEG + 1, 2 * SEG, 2 * SEG + 1,
				       7 * SEG - 1, 17 * SEG + 5 };
	struct sk_buff *skb, *segs, *one;
	u32 k, i;

	for (k = 0; k < ARRAY_SIZE(lengths); k++) {
		skb = gso_make(form, lengths[k]);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
		KUNIT_EXPECT_EQ(test, (u32)skb_shinfo(skb)->gso_segs,
				DIV_ROUND_UP(lengths[k], SEG));
		segs = gso_apart(skb, features);
		KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(segs));
		kfree_skb(skb);
		if (IS_ERR_OR_NULL(segs))
			continue;
		for (i = 0, one = segs; one; one = one->next) {
			KUNIT_EXPECT_TRUE(test, gso_right(one, i++, lengths[k]));
			KUNIT_EXPECT_FALSE(test, skb_is_gso(one));
			if (!one->next)
				KUNIT_EXPECT_TRUE(test, segs->prev == one);
		}
		KUNIT_EXPECT_EQ(test, i, DIV_ROUND_UP(lengths[k], SEG));
		kfree_skb_list(segs);
	}
}

static void gso_one_piece(struct kunit *test)
{
	gso_form(test, HOMAK_GSO_ONE_PIECE, 0);
}

/* Segments refer to the payload's pages, for devices that take fragments. */
static void gso_quick(struct kunit *test)
{
	gso_form(test, HOMAK_GSO_APART, NETIF_F_SG);
}

/* The last segment is charged for all of them, as the sender's memory was. */
static void gso_charge(struct kunit *test)
{
	struct sk_buff *skb = gso_make(HOMAK_GSO_APART, 3 * SEG), *segs;
	struct sock *sk = kzalloc(sizeof(*sk), GFP_KERNEL);
	u32 truesize;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, sk);
	truesize = skb->truesize;
	refcount_set(&sk->sk_wmem_alloc, (int)truesize + 1);
	sock_set_flag(sk, SOCK_USE_WRITE_QUEUE);
	skb->sk = sk;
	skb->destructor = sock_wfree;
	segs = gso_apart(skb, NETIF_F_SG);
	KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(segs));
	kfree_skb(skb);
	KUNIT_EXPECT_EQ(test, (u32)refcount_read(&sk->sk_wmem_alloc),
			truesize + 1);
	if (!IS_ERR_OR_NULL(segs))
		kfree_skb_list(segs);
	KUNIT_EXPECT_EQ(test, (u32)refcount_read(&sk->sk_wmem_alloc), 1u);
	kfree(sk);
}

static void gso_interleaved(struct kunit *test)
{
	gso_form(test, HOMAK_GSO_INTERLEAVED, 0);
}

static bool gso_refused(struct sk_buff *skb)
{
	struct sk_buff *segs = homak_gso_segment(skb, 0);
	bool refused = IS_ERR(segs);

	if (!refused)
		kfree_skb_list(segs);
	kfree_skb(skb);
	return refused;
}

static void gso_made_up(struct kunit *test)
{
	struct sk_buff *skb = gso_make(HOMAK_GSO_ONE_PIECE, 3 * SEG);

	/* The buffer comes from a guest or a tap, not from this module. */
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	skb_shinfo(skb)->gso_type |= SKB_GSO_DODGY;
	KUNIT_EXPECT_TRUE(test, gso_refused(skb));

	/* Segments without a byte of the message. */
	skb = gso_make(HOMAK_GSO_ONE_PIECE, 3 * SEG);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	skb_shinfo(skb)->gso_size = HOMA_DATA_HDR;
	KUNIT_EXPECT_TRUE(test, gso_refused(skb));
	skb = gso_make(HOMAK_GSO_INTERLEAVED, 3 * SEG);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	skb_shinfo(skb)->gso_size = GSO_OFFSET;
	KUNIT_EXPECT_TRUE(test, gso_refused(skb));
	/* Hundreds of segments of a byte each. */
	skb = gso_make(HOMAK_GSO_INTERLEAVED, 3 * SEG);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	skb_shinfo(skb)->gso_size = GSO_OFFSET + 1;
	KUNIT_EXPECT_TRUE(test, gso_refused(skb));

	/* A header without the rest, and one of another kind. */
	skb = gso_make(HOMAK_GSO_ONE_PIECE, 3 * SEG);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, pskb_trim(skb, HOMA_DATA_HDR - 1), 0);
	KUNIT_EXPECT_TRUE(test, gso_refused(skb));
	skb = gso_make(HOMAK_GSO_ONE_PIECE, 3 * SEG);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	((struct homa_wire_data *)skb->data)->common.type = HOMA_GRANT;
	KUNIT_EXPECT_TRUE(test, gso_refused(skb));
}

/* A clone, as a packet socket makes it, keeps its bytes. */
static void gso_of_a_clone(struct kunit *test, netdev_features_t features)
{
	struct sk_buff *skb = gso_make(HOMAK_GSO_ONE_PIECE, 5 * SEG), *clone,
		       *segs;
	struct homa_wire_data *w;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	clone = skb_clone(skb, GFP_KERNEL);
	KUNIT_EXPECT_FALSE(test, !clone);
	segs = gso_apart(skb, features);
	KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(segs));
	if (!IS_ERR_OR_NULL(segs)) {
		KUNIT_EXPECT_TRUE(test, gso_right(segs, 0, 5 * SEG));
		kfree_skb_list(segs);
	}
	if (clone) {
		w = (struct homa_wire_data *)clone->data;
		KUNIT_EXPECT_EQ(test, (u32)w->common.doff,
				(u32)(HOMA_DOFF_DATA << 4 | HOMAK_DOFF_ONE_PIECE));
		KUNIT_EXPECT_EQ(test, homa_get_be32(&w->seg_offset), START);
		kfree_skb(clone);
	}
	kfree_skb(skb);
}

static void gso_clones(struct kunit *test)
{
	gso_of_a_clone(test, 0);
	gso_of_a_clone(test, NETIF_F_SG);
}

/* Makes a packet of @length times @byte as GRO keeps it: data is at the Homa header. */
static struct sk_buff *gso_packet(u32 length, u8 byte)
{
	struct sk_buff *skb = alloc_skb(IP_LEN + length, GFP_KERNEL);

	if (!skb)
		return NULL;
	skb_reset_network_header(skb);
	memset(skb_put(skb, IP_LEN), 0x45, IP_LEN);
	__skb_pull(skb, IP_LEN);
	skb_reset_transport_header(skb);
	memset(skb_put(skb, length), byte, length);
	return skb;
}

static bool gso_is_packet(struct sk_buff *skb, u32 length, u8 byte)
{
	return skb && skb->len == length && skb_headlen(skb) == length &&
	       !memchr_inv(skb->data, byte, length);
}

/* Makes a batch of GRO's, of 60, 100 and 200 bytes. */
static struct sk_buff *gso_batch(void)
{
	struct sk_buff *skb = gso_packet(60, 'a'), *two = gso_packet(100, 'b'),
		       *three = gso_packet(200, 'c');

	if (!skb || !two || !three) {
		kfree_skb(skb);
		kfree_skb(two);
		kfree_skb(three);
		return NULL;
	}
	two->next = three;
	skb_shinfo(skb)->frag_list = two;
	skb_shinfo(skb)->gso_type = SKB_GSO_FRAGLIST;
	skb_shinfo(skb)->gso_size = 200;
	skb_shinfo(skb)->gso_segs = 3;
	skb->len += 300;
	skb->data_len += 300;
	skb->truesize += two->truesize + three->truesize;
	return skb;
}

/* A hook may have moved bytes of later packets to the first one: none, some of the second, all of
 * it, some of the third, all. */
static void gso_batches(struct kunit *test)
{
	static const u32 pulls[] = { 0, 60, 61, 159, 160, 161, 360 };
	struct sk_buff *skb, *rest;
	u32 k;

	for (k = 0; k < ARRAY_SIZE(pulls); k++) {
		skb = gso_batch();
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
		KUNIT_EXPECT_TRUE(test, pskb_may_pull(skb, pulls[k]));
		rest = homak_gro_split(skb);
		if (pulls[k] < 160) {
			KUNIT_EXPECT_TRUE(test, gso_is_packet(skb, 60, 'a'));
			KUNIT_EXPECT_FALSE(test, IS_ERR_OR_NULL(rest));
		} else {
			KUNIT_EXPECT_TRUE(test, IS_ERR(rest));
		}
		if (!IS_ERR_OR_NULL(rest)) {
			KUNIT_EXPECT_TRUE(test, gso_is_packet(rest, 100, 'b'));
			KUNIT_EXPECT_TRUE(test,
					  gso_is_packet(rest->next, 200, 'c'));
			kfree_skb_list(rest);
		}
		kfree_skb(skb);
	}
}

static struct kunit_case gso_cases[] = {
	KUNIT_CASE(gso_one_piece), KUNIT_CASE(gso_quick),
	KUNIT_CASE(gso_charge),	   KUNIT_CASE(gso_interleaved),
	KUNIT_CASE(gso_made_up),   KUNIT_CASE(gso_clones),
	KUNIT_CASE(gso_batches),   {}
};

struct kunit_suite homak_kunit_gso = {
	.name = "homa_gso",
	.test_cases = gso_cases,
};
