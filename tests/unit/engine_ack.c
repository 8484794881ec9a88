/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_ack.c: how long a server waits for an ack. That fewer questions go out is in
 * tests/pair/test_ack.c.
 */
#include "engine_world.h"
#include "homa_ack.h"

#define MS 1000000ull
#define LEAST (2 * MS) /* need_ack_us by default */

struct bench {
	struct world w;
	struct homa_peer peer;
	struct homa_owner owner;
	struct homa_rpc rpc;
};

static void bench_init(struct bench *b)
{
	world_init(&b->w, 10000, 1500);
	memset(&b->owner, 0, sizeof(b->owner));
	b->w.sock.owner = &b->owner;
	world_peer(&b->peer, 0, 1424);
	world_rpc(&b->w, &b->rpc, &b->peer, 1);
}

/* So many acks, each @delay ns after the last byte of its response. */
static void acks(struct bench *b, u32 n, u64 delay)
{
	while (n--) {
		b->rpc.out.sent_at = b->w.ctx.now;
		b->w.ctx.now += delay;
		homa_ack_came(&b->w.ctx, &b->rpc);
	}
}

static void ack__the_wait_follows_the_peer(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	acks(&b, 1000, MS / 2);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	/* One that was late, or was answered only after a question, changes nothing yet. */
	acks(&b, 1, 5 * MS);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	acks(&b, 1000, 8 * MS);
	assert_in_range(homa_ack_wait(&b.w.ctx, &b.rpc), 13 * MS, 17 * MS);
	acks(&b, 1000, 3 * MS);
	assert_in_range(homa_ack_wait(&b.w.ctx, &b.rpc), 5 * MS, 8 * MS);
	acks(&b, 1000, 0);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	world_free(&b.w);
}

static void ack__the_wait_has_a_bound(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	acks(&b, 1000, 3600 * 1000 * MS);
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), 16 * LEAST);
	world_free(&b.w);
}

/* What waits for an ack must not keep new requests away. */
static void ack__nobody_waits_near_a_limit(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b);
	b.w.engine->params.max_server_rpcs_per_peer = 100;
	b.w.engine->params.max_rpcs = 1000;
	acks(&b, 1000, 8 * MS);
	b.peer.server_rpcs = 49;
	assert_true(homa_ack_wait(&b.w.ctx, &b.rpc) > LEAST);
	b.peer.server_rpcs = 50;
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	b.peer.server_rpcs = 49;
	b.owner.rpcs = 500;
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	b.owner.rpcs = 100;
	assert_true(homa_ack_wait(&b.w.ctx, &b.rpc) > LEAST);
	b.w.engine->num_rpcs = 1000;
	assert_int_equal(homa_ack_wait(&b.w.ctx, &b.rpc), LEAST);
	world_free(&b.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack__the_wait_follows_the_peer),
		cmocka_unit_test(ack__the_wait_has_a_bound),
		cmocka_unit_test(ack__nobody_waits_near_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
