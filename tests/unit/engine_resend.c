/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_resend.c: how much of a message waits to be sent again. What it does
 * to the order of packets is in engine_link.c.
 */
#include "engine_world.h"

#define MTU 1500
#define SEG (MTU - 76)

/* As many as a receiver asks for at a time, and not more for short messages. */
static void resend__keeps_so_many(void **state)
{
	static const struct {
		u32 length, kept;
	} messages[] = { { 50000, HOMA_OUT_RTX }, { 1000, 3 }, { 100, 2 } };
	static u64 records[100][HOMA_RECORD_SIZE / sizeof(u64)];
	struct homa_tx_desc desc;
	struct homa_rpc rpc;
	struct world w;
	struct homa_peer peer;
	u32 i, at;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(messages); i++) {
		world_init(&w, 0, MTU);
		for (at = 0; at < HOMA_ARRAY_SIZE(records); at++)
			homa_ctx_give_range(&w.ctx, records[at]);
		world_peer(&peer, 0, SEG);
		world_rpc(&w, &rpc, &peer, 1);
		homa_out_start(&w.ctx, &rpc, messages[i].length,
			       messages[i].length, messages[i].length);
		while (homa_tx(&w.ctx, w.link, 64, &desc) == HOMA_TX_PACKET)
			homa_tx_done(&w.ctx, &desc, 0);
		for (at = 0; at < messages[i].length; at += 2)
			homa_out_resend(&w.ctx, &rpc, at, at + 1, 1);
		assert_int_equal(rpc.out.num_rtx, messages[i].kept);
		assert_int_equal(w.ctx.spare_ranges, 100 - messages[i].kept);
		homa_out_cancel(&w.ctx, &rpc);
		assert_int_equal(w.ctx.spare_ranges, 100);
		assert_int_equal(homa_tx(&w.ctx, w.link, 64, &desc),
				 HOMA_TX_IDLE);
		world_free(&w);
	}
}

/*
 * The host says that the first try failed only after the message was sent again, and
 * that left: what follows is a retransmission still, or a server that has just started
 * would take it for a new request.
 */
static void resend__a_late_failure_says_nothing(void **state)
{
	static u64 records[8][HOMA_RECORD_SIZE / sizeof(u64)];
	struct homa_tx_desc first, again;
	struct homa_rpc rpc;
	struct world w;
	struct homa_peer peer;
	u32 at;

	(void)state;
	world_init(&w, 0, MTU);
	for (at = 0; at < HOMA_ARRAY_SIZE(records); at++)
		homa_ctx_give_range(&w.ctx, records[at]);
	world_peer(&peer, 0, SEG);
	world_rpc(&w, &rpc, &peer, 1);
	homa_out_start(&w.ctx, &rpc, 1000, 1000, 1000);
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &first), HOMA_TX_PACKET);
	assert_false(first.retransmit);
	homa_out_resend(&w.ctx, &rpc, 0, 1000, 1);
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &again), HOMA_TX_PACKET);
	assert_true(again.retransmit);
	homa_tx_done(&w.ctx, &again, 0);
	homa_tx_done(&w.ctx, &first, -1);
	assert_false(homa_out_never_left(&rpc.out));
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &again), HOMA_TX_PACKET);
	assert_true(again.retransmit);
	homa_tx_done(&w.ctx, &again, 0);
	world_free(&w);
}

/* Who asks again for what waits already is told so: the host has not sent it yet. */
static void resend__asked_for_again(void **state)
{
	static u64 records[8][HOMA_RECORD_SIZE / sizeof(u64)];
	struct homa_tx_desc desc;
	struct homa_rpc rpc;
	struct world w;
	struct homa_peer peer;
	u32 at;

	(void)state;
	world_init(&w, 0, MTU);
	for (at = 0; at < HOMA_ARRAY_SIZE(records); at++)
		homa_ctx_give_range(&w.ctx, records[at]);
	world_peer(&peer, 0, SEG);
	world_rpc(&w, &rpc, &peer, 1);
	homa_out_start(&w.ctx, &rpc, 1000, 1000, 1000);
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &desc), HOMA_TX_PACKET);
	homa_tx_done(&w.ctx, &desc, 0);
	assert_true(homa_out_resend(&w.ctx, &rpc, 100, 900, 1));
	assert_false(homa_out_resend(&w.ctx, &rpc, 100, 900, 1));
	assert_false(homa_out_resend(&w.ctx, &rpc, 200, 300, 1));
	assert_true(homa_out_resend(&w.ctx, &rpc, 0, 300, 1));
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &desc), HOMA_TX_PACKET);
	homa_tx_done(&w.ctx, &desc, 0);
	assert_true(homa_out_resend(&w.ctx, &rpc, 0, 300, 1));
	homa_out_cancel(&w.ctx, &rpc);
	world_free(&w);
}

/* Who starts again does not use what a former life of the server has granted. */
static void resend__grants_of_a_former_life(void **state)
{
	static u64 records[8][HOMA_RECORD_SIZE / sizeof(u64)];
	struct homa_tx_desc desc;
	struct homa_rpc rpc;
	struct world w;
	struct homa_peer peer;
	u32 at;

	(void)state;
	world_init(&w, 0, MTU);
	for (at = 0; at < HOMA_ARRAY_SIZE(records); at++)
		homa_ctx_give_range(&w.ctx, records[at]);
	world_peer(&peer, 0, SEG);
	world_rpc(&w, &rpc, &peer, 1);
	homa_out_start(&w.ctx, &rpc, 4 * SEG, SEG, SEG);
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &desc), HOMA_TX_PACKET);
	homa_tx_done(&w.ctx, &desc, 0);
	homa_out_grant(&w.ctx, &rpc, 3 * SEG, 1);
	homa_out_restart(&w.ctx, &rpc);
	homa_out_supply(&w.ctx, &rpc, 4 * SEG);
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &desc), HOMA_TX_PACKET);
	assert_true(desc.retransmit && desc.offset == 0 && desc.length == SEG);
	homa_tx_done(&w.ctx, &desc, 0);
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &desc), HOMA_TX_IDLE);
	homa_out_grant(&w.ctx, &rpc, 2 * SEG, 1);
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &desc), HOMA_TX_PACKET);
	assert_int_equal(desc.offset, SEG);
	homa_tx_done(&w.ctx, &desc, 0);
	assert_int_equal(homa_tx(&w.ctx, w.link, 1, &desc), HOMA_TX_IDLE);
	homa_out_cancel(&w.ctx, &rpc);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resend__keeps_so_many),
		cmocka_unit_test(resend__a_late_failure_says_nothing),
		cmocka_unit_test(resend__asked_for_again),
		cmocka_unit_test(resend__grants_of_a_former_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
