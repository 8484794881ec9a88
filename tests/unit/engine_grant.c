/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_grant.c, case by case: a few messages whose grants can be
 * counted by hand. engine_grant_random.c holds it against a model.
 */
#include "engine_world.h"
#include "homa_look.h"

#define MTU 1500
#define PACKET (MTU - 104)

struct few {
	struct world w;
	struct homa_peer peer[4];
	struct homa_rpc rpc[8];
	u32 num;
};

static void few_init(struct few *f)
{
	u32 i;

	world_init(&f->w, 10000, MTU);
	f->num = 0;
	for (i = 0; i < 4; i++)
		world_peer(&f->peer[i], i, MTU - 76);
}

static struct homa_rpc *few_add(struct few *f, u32 peer, u32 length, u32 unsched)
{
	struct homa_rpc *rpc = &f->rpc[f->num];

	world_rpc(&f->w, rpc, &f->peer[peer], f->num++);
	rpc->in.length = length;
	rpc->in.granted = unsched;
	homa_grant_add(&f->w.ctx, rpc);
	return rpc;
}

static void few_flush(struct few *f)
{
	if (f->w.ctx.grant_link)
		homa_grant_run(&f->w.ctx, f->w.link);
}

static void expect_grant(struct few *f, const struct homa_rpc *rpc, u32 offset,
			 u32 level)
{
	const struct homa_ctrl *ctrl = world_ctrl(&f->w);

	assert_non_null(ctrl);
	assert_int_equal(ctrl->type, HOMA_GRANT);
	assert_int_equal(ctrl->sender_id, rpc->id);
	assert_int_equal(ctrl->offset, offset);
	assert_int_equal(ctrl->priority, level);
}

static void grant_add__shorter_message_gets_the_higher_level(void **state)
{
	struct homa_rpc *a, *b;
	struct few f;

	(void)state;
	few_init(&f);
	f.w.engine->params.window = 50000;
	homa_link_derive(f.w.link);
	a = few_add(&f, 0, 500000, 0);
	few_flush(&f);
	expect_grant(&f, a, 50000, 0);
	b = few_add(&f, 1, 100000, 0);
	few_flush(&f);
	expect_grant(&f, b, 50000, 1);
	assert_null(world_ctrl(&f.w));
	homa_grant_received(&f.w.ctx, a, 20000);
	few_flush(&f);
	expect_grant(&f, a, 70000, 0);
	world_free(&f.w);
}

static void grant_add__a_peer_gets_one_slot_before_any_gets_a_second(void **state)
{
	struct homa_rpc *a, *b, *c;
	struct few f;

	(void)state;
	few_init(&f);
	f.w.engine->params.max_overcommit = 2;
	f.w.engine->params.window = 10000;
	homa_link_derive(f.w.link);
	a = few_add(&f, 0, 100000, 0);
	b = few_add(&f, 0, 110000, 0);
	assert_int_equal(b->in.state, HOMA_GRANTEE_ACTIVE);
	c = few_add(&f, 1, 900000, 0);
	assert_int_equal(a->in.state, HOMA_GRANTEE_ACTIVE);
	assert_int_equal(b->in.state, HOMA_GRANTEE_WAITING);
	assert_int_equal(c->in.state, HOMA_GRANTEE_ACTIVE);
	homa_grant_remove(&f.w.ctx, c);
	assert_int_equal(b->in.state, HOMA_GRANTEE_ACTIVE);
	world_free(&f.w);
}

static void grant_add__short_messages_are_not_accounted(void **state)
{
	struct few f;

	(void)state;
	few_init(&f);
	few_add(&f, 0, 100, 100);
	assert_int_equal(f.w.link->grants.incoming, 0);
	assert_null(f.w.ctx.grant_link);
	few_add(&f, 0, 9000, 9000);
	assert_int_equal(f.w.link->grants.incoming, 9000);
	homa_grant_received(&f.w.ctx, &f.rpc[1], 9000);
	assert_int_equal(f.w.link->grants.incoming, 0);
	world_free(&f.w);
}

static void grant_add__claimed_bytes_count_up_to_rttbytes(void **state)
{
	struct homa_rpc *rpc;
	struct few f;

	(void)state;
	few_init(&f);
	rpc = few_add(&f, 0, 0x7fffffff, 0x7fffffff);
	assert_int_equal(f.w.link->grants.incoming, f.w.link->derived.rtt_bytes);
	homa_grant_remove(&f.w.ctx, rpc);
	assert_int_equal(f.w.link->grants.incoming, 0);
	world_free(&f.w);
}

static void grant_remove__a_message_that_never_joined(void **state)
{
	struct homa_rpc *rpc;
	struct few f;

	(void)state;
	few_init(&f);
	rpc = &f.rpc[0];
	world_rpc(&f.w, rpc, &f.peer[0], 0);
	rpc->in.length = 100000;
	rpc->in.granted = 40000;
	homa_grant_received(&f.w.ctx, rpc, 1400);
	homa_grant_remove(&f.w.ctx, rpc);
	assert_int_equal(f.w.link->grants.incoming, 0);
	assert_null(f.w.ctx.grant_link);
	world_free(&f.w);
}

/* Peers that died hold all of max_incoming; a packet at a time still passes. */
static void grant_run__dead_peers_do_not_stop_the_others(void **state)
{
	struct homa_rpc *rpc;
	u32 i, granted = 0;
	struct few f;

	(void)state;
	few_init(&f);
	f.w.engine->params.max_incoming = 30000;
	f.w.engine->params.grant_fifo_fraction = 0;
	homa_link_derive(f.w.link);
	for (i = 0; i < 3; i++)
		few_add(&f, 0, 1000000, 10000);
	rpc = few_add(&f, 1, 20000, 0);
	few_flush(&f);
	for (i = 0; i < 20000 / PACKET + 1; i++) {
		const struct homa_ctrl *ctrl = world_ctrl(&f.w);

		assert_non_null(ctrl);
		assert_int_equal(ctrl->sender_id, rpc->id);
		assert_true(ctrl->offset - granted <= PACKET);
		assert_null(world_ctrl(&f.w));
		homa_grant_received(&f.w.ctx, rpc, ctrl->offset - granted);
		granted = ctrl->offset;
		few_flush(&f);
	}
	assert_int_equal(granted, 20000);
	world_free(&f.w);
}

static void grant_received__another_link_is_run_at_once(void **state)
{
	struct homa_rpc *a, *b;
	struct few f, g;

	(void)state;
	few_init(&f);
	few_init(&g);
	a = few_add(&f, 0, 100000, 0);
	g.w.ctx = f.w.ctx;
	b = few_add(&g, 0, 100000, 0);
	f.w.ctx = g.w.ctx;
	assert_ptr_equal(f.w.ctx.grant_link, g.w.link);
	assert_true(a->in.granted > 0);
	assert_int_equal(b->in.granted, 0);
	world_free(&f.w);
	world_free(&g.w);
}

/* SIGCOMM'18: RTTbytes in flight, whole packets, one per packet that comes, the
 * last RTTbytes at unscheduled priority by what is left. */
static void grant_run__sigcomm_rule(void **state)
{
	const u32 seg = MTU - 76;
	u32 rtt, offset, length, received = 0, last = 0;
	struct homa_rpc *rpc;
	struct few f;

	(void)state;
	few_init(&f);
	homa_params_sigcomm(&f.w.engine->params);
	homa_link_derive(f.w.link);
	rtt = f.w.link->derived.rtt_bytes;
	length = 10 * rtt;
	offset = (rtt + seg - 1) / seg * seg;
	rpc = few_add(&f, 0, length, offset);
	few_flush(&f);
	assert_null(world_ctrl(&f.w));
	while (offset < length) {
		u32 left = length - offset;
		u32 next = homa_min_u32(offset + seg, length);

		homa_grant_received(&f.w.ctx, rpc, seg);
		received += seg;
		few_flush(&f);
		expect_grant(&f, rpc, next,
			     left > rtt ? 0 :
					  homa_prio_unsched(f.w.engine, left));
		assert_null(world_ctrl(&f.w));
		assert_true(offset - received < rtt);
		last += left <= rtt;
		offset = next;
	}
	assert_true(last >= rtt / seg);
	assert_int_equal(rpc->in.state, HOMA_GRANTEE_IDLE);
	world_free(&f.w);
}

/* Never two messages of one sender, though slots are free; and what is held
 * back is held back only if its sender could send something else to us. */
static void grant_run__sigcomm_one_message_of_a_sender(void **state)
{
	struct homa_rpc *a, *b;
	struct few f;

	(void)state;
	few_init(&f);
	homa_params_sigcomm(&f.w.engine->params);
	f.w.engine->params.max_overcommit = 2;
	homa_link_derive(f.w.link);
	a = few_add(&f, 0, 500000, 0);
	b = few_add(&f, 0, 400000, 0);
	assert_int_equal(a->in.state, HOMA_GRANTEE_WAITING);
	assert_int_equal(b->in.state, HOMA_GRANTEE_ACTIVE);
	assert_int_equal(homa_link_withheld(f.w.link), 0);
	few_add(&f, 1, 600000, 0);
	assert_int_equal(homa_link_withheld(f.w.link), 0);
	few_add(&f, 2, 700000, 0);
	assert_int_equal(homa_link_withheld(f.w.link), 2);
	homa_grant_remove(&f.w.ctx, b);
	assert_int_equal(a->in.state, HOMA_GRANTEE_ACTIVE);
	assert_int_equal(homa_link_withheld(f.w.link), 1);
	/* The rule is taken back and comes again. */
	f.w.engine->params.sigcomm_grants = 0;
	f.w.engine->params.max_overcommit = 4;
	b = few_add(&f, 0, 300000, 0);
	assert_int_equal(a->in.state, HOMA_GRANTEE_ACTIVE);
	assert_int_equal(b->in.state, HOMA_GRANTEE_ACTIVE);
	f.w.engine->params.sigcomm_grants = 1;
	homa_grant_run(&f.w.ctx, f.w.link);
	assert_int_equal(a->in.state, HOMA_GRANTEE_WAITING);
	assert_int_equal(b->in.state, HOMA_GRANTEE_ACTIVE);
	assert_int_equal(homa_link_withheld(f.w.link), 0);
	world_free(&f.w);
}

/* Two messages fill max_incoming, then nothing comes of the first for 11 us. */
static struct homa_rpc *quiet_world(struct few *f, u32 quiet_us)
{
	struct homa_rpc *a, *b, *c;

	few_init(f);
	f->w.engine->params.window = 10000;
	f->w.engine->params.grant_quantum = 2500;
	f->w.engine->params.max_incoming = 20000;
	f->w.engine->params.quiet_us = quiet_us;
	homa_link_derive(f->w.link);
	a = few_add(f, 0, 100000, 0);
	b = few_add(f, 1, 200000, 0);
	c = few_add(f, 2, 300000, 0);
	few_flush(f);
	expect_grant(f, a, 10000, 2);
	expect_grant(f, b, 10000, 1);
	/* The packet that every message without outstanding bytes may get. */
	expect_grant(f, c, PACKET, 0);
	f->w.ctx.now += 11000;
	homa_grant_received(&f->w.ctx, b, 2500);
	few_flush(f);
	return b;
}

static void grant_quiet__off_what_is_granted_counts_for_ever(void **state)
{
	struct few f;

	(void)state;
	quiet_world(&f, 0);
	assert_null(world_ctrl(&f.w));
	world_free(&f.w);
}

static void grant_quiet__makes_room_for_one_window(void **state)
{
	struct homa_rpc *b;
	struct few f;

	(void)state;
	b = quiet_world(&f, 10);
	/* The first's 10000 and the third's packet are more than a window. */
	expect_grant(&f, b, 12500, 1);
	expect_grant(&f, &f.rpc[2], 10000, 0);
	assert_null(world_ctrl(&f.w));
	assert_int_equal(f.w.link->grants.incoming, 30000);
	/* It speaks again: all that is outstanding counts. */
	homa_grant_received(&f.w.ctx, &f.rpc[0], 2500);
	few_flush(&f);
	assert_null(world_ctrl(&f.w));
	assert_int_equal(f.w.link->grants.incoming, 27500);
	world_free(&f.w);
}

static void grant_reserved__is_for_the_best_message(void **state)
{
	struct homa_rpc *a, *b;
	struct few f;

	(void)state;
	few_init(&f);
	f.w.engine->params.window = 10000;
	f.w.engine->params.grant_quantum = 2500;
	f.w.engine->params.max_incoming = 20000;
	f.w.engine->params.reserved_incoming = 6000;
	homa_link_derive(f.w.link);
	b = few_add(&f, 0, 200000, 0);
	few_flush(&f);
	expect_grant(&f, b, 10000, 0);
	few_add(&f, 1, 300000, 0);
	few_flush(&f);
	expect_grant(&f, &f.rpc[1], 4000, 0);
	/* A shorter one appears and finds the 6000 that were left. */
	a = few_add(&f, 2, 100000, 0);
	few_flush(&f);
	expect_grant(&f, a, 6000, 2);
	assert_null(world_ctrl(&f.w));
	world_free(&f.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grant_add__shorter_message_gets_the_higher_level),
		cmocka_unit_test(
			grant_add__a_peer_gets_one_slot_before_any_gets_a_second),
		cmocka_unit_test(grant_add__short_messages_are_not_accounted),
		cmocka_unit_test(grant_add__claimed_bytes_count_up_to_rttbytes),
		cmocka_unit_test(grant_remove__a_message_that_never_joined),
		cmocka_unit_test(grant_run__dead_peers_do_not_stop_the_others),
		cmocka_unit_test(grant_received__another_link_is_run_at_once),
		cmocka_unit_test(grant_run__sigcomm_rule),
		cmocka_unit_test(grant_run__sigcomm_one_message_of_a_sender),
		cmocka_unit_test(grant_quiet__off_what_is_granted_counts_for_ever),
		cmocka_unit_test(grant_quiet__makes_room_for_one_window),
		cmocka_unit_test(grant_reserved__is_for_the_best_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
