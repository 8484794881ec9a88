/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An engine with 100,000 RPCs open, 10,000 peers, all ports taken: what is done
 * for one of them takes a bounded number of steps, however many there are.
 */
#include "engine_bed.h"

#define MANY_RPCS 100000u
#define MANY_PEERS 10000u

static void begin(struct bed *b, u32 rpcs, u32 peers)
{
	struct homa_seeds seeds;

	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(b, &seeds, rpcs, peers);
}

static void feed(struct bed *b)
{
	while (b->ctx.spare_segments < 2)
		homa_ctx_give_segment(&b->ctx, zeroed(homa_segment_size()));
}

/* RPCs of 10,000 peers, ten each. */
static void tables__short_chains_with_many_rpcs_and_peers(void **state)
{
	struct homa_table *rpcs;
	struct bed b;
	u32 i, most = 0;

	(void)state;
	begin(&b, MANY_RPCS, MANY_PEERS);
	rpcs = &b.engine->shards[0].rpcs;
	for (i = 0; i < MANY_RPCS; i++) {
		struct homa_addr from = address(i % MANY_PEERS);

		feed(&b);
		request(&b, &from, 2 + 2 * (i / MANY_PEERS));
	}
	assert_int_equal(rpcs->count, MANY_RPCS);
	assert_in_range(rpcs->size, MANY_RPCS - 1000, MANY_RPCS);
	/* Two on average where there are any; 14 are a matter of 10^-7. */
	unit_assert(unit_seed(), longest(rpcs) < 14);
	for (i = 0; i < HOMA_PEER_STRIPES; i++) {
		most = homa_max_u32(most, longest(&b.engine->peers[i].peers));
		assert_true(b.engine->peers[i].peers.count <=
			    b.engine->peers[i].peers.size);
	}
	unit_assert(unit_seed(), most < 14);
	bed_free(&b);
}

/* RPCs to one peer that follow each other are under way together, and different CPUs have
 * them: eight of them are in eight shards. And all shards have as many. */
static void shards__differ_for_consecutive_ids(void **state)
{
	enum { SHARDS = 128, IDS = 128 * SHARDS };
	struct homa_shard *shards = zeroed(SHARDS * sizeof(*shards));
	struct homa_engine *engine = zeroed(sizeof(*engine));
	u32 count[SHARDS] = { 0 }, seen[8], i, j;
	u64 seed = unit_seed();

	(void)state;
	engine->shards = shards;
	engine->limits.shards = SHARDS;
	for (i = 0; i < IDS; i++) {
		u32 hash = homa_hash_id(2 * (u64)i, seed);

		seen[i % 8] = (u32)(homa_shard_at(engine, hash) - shards);
		count[seen[i % 8]]++;
		for (j = 0; j < i % 8; j++)
			unit_assert(seed, seen[j] != seen[i % 8]);
	}
	/* 128 in each, and eight shards have them together: four times the deviation is 128. */
	for (i = 0; i < SHARDS; i++)
		unit_assert(seed, count[i] > 32 && count[i] < 288);
	free(engine);
	free(shards);
}

/* An engine ends some peers at a time. */
static void tables__peers_are_drained_in_steps(void **state)
{
	enum { PEERS = 1000, STEP = 64 };
	struct homa_counts counts;
	u32 i, left = PEERS;
	struct bed b;

	(void)state;
	begin(&b, PEERS, PEERS);
	for (i = 0; i < PEERS; i++) {
		struct homa_addr from = address(i);

		feed(&b);
		request(&b, &from, 2);
	}
	while (homa_sock_close(&b.ctx, b.sock, 100))
		;
	do {
		left -= homa_min_u32(left, STEP);
		assert_int_equal(homa_peers_drain(&b.ctx, STEP),
				 left || PEERS % STEP == 0);
		homa_engine_counts(b.engine, &counts);
		assert_int_equal(counts.peers, left);
	} while (left);
	bed_free(&b);
}

/* A call looks at so many timers as it may, and one that waits for long is not
 * looked at again and again. */
static void timer__a_round_is_bounded_and_seldom(void **state)
{
	u32 i, calls = 0, rounds = 0;
	struct homa_wheel *wheel;
	struct bed b;
	u64 next;

	(void)state;
	begin(&b, 20000, 1);
	wheel = &b.engine->shards[0].wheel;
	for (i = 0; i < 20000; i++) {
		struct homa_rpc *rpc;
		struct homa_addr from = address(1);

		request(&b, &from, 2 + 2 * i);
		rpc = homa_rpc_hold(&b.ctx, (2 + 2 * i) ^ 1, &from);
		homa_rpc_arm(rpc, b.ctx.now + 1000000000);
		homa_rpc_release(&b.ctx, rpc);
	}
	/* Until half a second before they are due: nothing is called for. */
	next = homa_timer(&b.ctx, 0, 100);
	assert_true(next >= b.ctx.now + 500000000);
	assert_int_equal(wheel->count, 20000);
	/* Then each comes out once early; 100 in each call. */
	b.ctx.now = next;
	while (homa_timer(&b.ctx, 0, 100) == b.ctx.now && calls < 1000)
		calls++;
	assert_in_range(calls, 199, 201);
	assert_int_equal(wheel->count, 20000);
	while (rounds < 100 && b.ctx.now < next + 60000000) {
		u64 then = homa_timer(&b.ctx, 0, 1000000);

		rounds++;
		if (wheel->count < 20000 || then > next + 60000000)
			break;
		b.ctx.now = then;
	}
	assert_in_range(rounds, 1, 4);
	bed_free(&b);
}

/* All peers are owed acks: a socket that closes tells some, not all. */
static void sock_close__does_not_walk_all_peers(void **state)
{
	struct homa_counts counts;
	struct homa_rpc *rpcs[2000];
	struct homa_tx_desc desc;
	struct homa_sock *sock;
	struct bed b;
	u32 i, owed = 0, sent = 0;

	(void)state;
	begin(&b, 2000, 2000);
	sock = zeroed(homa_sock_size(&b.limits));
	assert_int_equal(homa_sock_open(&b.ctx, sock), 0);
	for (i = 0; i < 2000; i++) {
		struct homa_send send = { .dst = address(i),
					  .port = PORT,
					  .length = 1,
					  .available = 1 };
		struct homa_handle handle;

		assert_int_equal(homa_rpc_send(&b.ctx, sock, b.link, &send,
					       &handle, &rpcs[i]),
				 0);
		homa_peer_add_ack(&b.ctx, rpcs[i]);
		homa_rpc_forget(&b.ctx, handle);
	}
	for (i = 0; i < HOMA_PEER_STRIPES; i++) {
		struct homa_list *pos;

		homa_list_for_each(pos, &b.engine->peers[i].owed)
			owed++;
	}
	assert_int_equal(owed, 2000);
	while (homa_retired_rpc(&b.ctx))
		;
	while (homa_sock_close(&b.ctx, sock, 10) == -HOMA_EAGAIN)
		;
	/* Those whose RPCs ended last are told. */
	while (homa_tx(&b.ctx, b.link, 1, &desc) == HOMA_TX_PACKET)
		sent += !desc.rpc;
	assert_in_range(sent, 16, 64);
	for (i = 0; i < HOMA_PEER_STRIPES; i++) {
		struct homa_list *pos;

		homa_list_for_each(pos, &b.engine->peers[i].owed)
			owed--;
	}
	assert_in_range(owed, sent, 200);
	homa_engine_counts(b.engine, &counts);
	assert_int_equal(counts.peers, 2000);
	for (i = 0; i < 2000; i++)
		free(rpcs[i]);
	free(sock);
	bed_free(&b);
}

/* Every peer has an RPC: a newcomer is refused after so many looks, and the next
 * one looks at others. */
static void peer_get__a_full_table_is_not_searched_whole(void **state)
{
	u32 i, peers = 16 * 200;
	struct homa_peer *held, *got;
	struct homa_addr addr;
	struct bed b;

	(void)state;
	begin(&b, 1, 2 * peers);
	b.engine->max_peers_per_stripe = 100;
	for (i = 0; i < peers; i++) {
		addr = address(i);
		held = homa_peer_get(&b.ctx, b.link, &addr, HOMA_PEER_OURS);
		if (!held)
			break;
	}
	assert_in_range(i, 16 * 50, peers);
	addr = address(0);
	held = homa_peer_get(&b.ctx, b.link, &addr, HOMA_PEER_FIND);
	assert_non_null(held);
	homa_peer_put(&b.ctx, held);
	homa_peer_put(&b.ctx, held);
	/* One of the 1,600 is idle now; who looks on finds it soon. */
	for (i = 0; i < 16 * 40; i++) {
		addr = address(100000 + i);
		got = homa_peer_get(&b.ctx, b.link, &addr, HOMA_PEER_OURS);
		if (got && b.ctx.metrics[HOMA_M_peers_evicted])
			break;
	}
	assert_int_equal(b.ctx.metrics[HOMA_M_peers_evicted], 1);
	/* The references are leaked on purpose; so is the memory of the peers. */
	for (i = 0; i < HOMA_PEER_STRIPES; i++) {
		struct homa_list *pos;

		homa_list_for_each(pos, &b.engine->peers[i].turns)
			homa_ref_init(&homa_list_entry(pos, struct homa_peer, turn)
					       ->refs,
				      1);
	}
	bed_free(&b);
}

static void sock_open__all_ports_taken(void **state)
{
	struct homa_sock *socks = zeroed(32768 * sizeof(*socks));
	struct homa_sock one;
	struct bed b;
	u32 i;

	(void)state;
	begin(&b, 1, 1);
	for (i = 0; i < 32768; i++)
		assert_int_equal(homa_sock_open(&b.ctx, &socks[i]), 0);
	assert_int_equal(homa_sock_open(&b.ctx, &one), -HOMA_EADDRINUSE);
	assert_int_equal(homa_sock_close(&b.ctx, &socks[4711], 1), 0);
	assert_int_equal(homa_sock_open(&b.ctx, &one), 0);
	assert_int_equal(one.port, socks[4711].port);
	/* Who binds gives its client port back. */
	assert_int_equal(homa_sock_bind(&b.ctx, &socks[7], 7), 0);
	socks[4711] = one;
	assert_int_equal(homa_sock_open(&b.ctx, &one), 0);
	assert_int_equal(homa_sock_open(&b.ctx, &one), -HOMA_EADDRINUSE);
	bed_free(&b);
	free(socks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables__short_chains_with_many_rpcs_and_peers),
		cmocka_unit_test(shards__differ_for_consecutive_ids),
		cmocka_unit_test(tables__peers_are_drained_in_steps),
		cmocka_unit_test(timer__a_round_is_bounded_and_seldom),
		cmocka_unit_test(sock_close__does_not_walk_all_peers),
		cmocka_unit_test(peer_get__a_full_table_is_not_searched_whole),
		cmocka_unit_test(sock_open__all_ports_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
