/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a peer sees of an engine - ids, ports - must not tell it where RPCs are
 * kept, and what it chooses must not put them into one bucket. The inversion here
 * is the one that worked while seeds, ids and ports came from one generator.
 */
#include "engine_bed.h"

#define RPCS 8192u

/* ---- what can be computed from what is seen ---- */

static u64 unshift(u64 v, int n)
{
	u64 x = v;
	int i;

	for (i = n; i < 64; i += n)
		x = v ^ x >> n;
	return x;
}

static u64 unmix(u64 v)
{
	v = unshift(v, 31) * 0x319642b2d24d8ec3ull;
	v = unshift(v, 27) * 0x96de1b173f119089ull;
	return unshift(v, 30);
}

/*
 * The first id of an engine is SplitMix64's second number without its last two
 * bits; its first port is 15 bits of the third, which says which of the eight
 * seeds it was. True: the generator's state before the first number.
 */
static bool invert(u64 first_id, u16 first_port, u64 *state)
{
	u32 guess;

	for (guess = 0; guess < 8; guess++) {
		u64 second = (first_id - 2) << 1 | (guess & 1) | (guess & 2) |
			     (u64)(guess >> 2) << 63;
		struct homa_rng rng = { .state = unmix(second) };

		if (((u16)homa_rng_next(&rng) | HOMA_MIN_CLIENT_PORT) !=
		    first_port)
			continue;
		*state = unmix(second) - 2 * 0x9e3779b97f4a7c15ull;
		return true;
	}
	return false;
}

/* What a server sees of a client's first RPC. */
static void seen(struct bed *b, u64 *id, u16 *port)
{
	struct homa_sock *sock = zeroed(homa_sock_size(&b->limits));
	struct homa_send send = {
		.dst = address(1), .port = PORT, .length = 1, .available = 1
	};
	struct homa_handle handle;

	assert_int_equal(homa_sock_open(&b->ctx, sock), 0);
	*port = homa_sock_port(sock);
	assert_int_equal(homa_rpc_send(&b->ctx, sock, b->link, &send, &handle,
				       NULL),
			 0);
	/* Less than this, of which it is made. */
	assert_int_equal(handle.id & 1, 0);
	*id = b->engine->id_epoch - 2;
	while (homa_sock_close(&b->ctx, sock, 10))
		(void)homa_retired_rpc(&b->ctx);
	free(sock);
}

static bool guessed(const struct homa_seeds *seeds)
{
	bool right = false;
	struct bed b;
	u64 id, state;
	u16 port;

	bed_init(&b, seeds, RPCS, RPCS);
	seen(&b, &id, &port);
	/* bed_init() has used a port. */
	if (invert(id, (u16)((port - 1) | HOMA_MIN_CLIENT_PORT), &state)) {
		struct homa_seeds guess;
		u32 i;

		homa_seeds_fixed(&guess, state);
		for (i = 0; i < HOMA_ARRAY_SIZE(guess.keys); i++)
			right = right || guess.keys[i] == seeds->keys[i];
	}
	bed_free(&b);
	return right;
}

/* The inversion is right: from seeds that say so it finds the keys. */
static void seeds_fixed__tells_its_keys(void **state)
{
	struct homa_seeds seeds;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed() * 77777777777ull);
	assert_true(guessed(&seeds));
}

static void seeds_draw__keys_do_not_follow_from_ids_and_ports(void **state)
{
	struct homa_seeds seeds;
	u32 round, i, j;

	(void)state;
	for (round = 0; round < 3; round++) {
		u64 *word = (u64 *)&seeds;

		assert_int_equal(homa_seeds_draw(&seeds), 0);
		assert_false(guessed(&seeds));
		for (i = 0; i < sizeof(seeds) / sizeof(u64); i++)
			for (j = 0; j < i; j++)
				assert_true(word[i] != word[j]);
	}
}

/* A host may choose ids, but none that is open. */
static void send__an_id_is_open_once(void **state)
{
	struct homa_send send = {
		.dst = address(1), .port = PORT, .length = 1, .available = 1
	};
	struct homa_seeds seeds;
	struct homa_handle own, first, handle;
	struct homa_sock *sock;
	struct bed b;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(&b, &seeds, RPCS, RPCS);
	sock = zeroed(homa_sock_size(&b.limits));
	assert_int_equal(homa_sock_open(&b.ctx, sock), 0);
	assert_int_equal(homa_rpc_send(&b.ctx, sock, b.link, &send, &own, NULL),
			 0);
	send.id = 0xabcdef0123456788ull;
	assert_int_equal(homa_rpc_send(&b.ctx, sock, b.link, &send, &first, NULL),
			 0);
	assert_true(first.id == send.id);
	send.id = 0;
	assert_int_equal(homa_rpc_send(&b.ctx, sock, b.link, &send, &handle, NULL),
			 0);
	assert_true(handle.id == own.id + 2);
	send.id = first.id;
	/* Nor to another address: a response is found by its id alone. */
	send.dst = address(2);
	assert_int_equal(homa_rpc_send(&b.ctx, sock, b.link, &send, &handle, NULL),
			 -HOMA_EINVAL);
	send.id |= 1;
	assert_int_equal(homa_rpc_send(&b.ctx, sock, b.link, &send, &handle, NULL),
			 -HOMA_EINVAL);
	assert_true(homa_rpc_lookup(&b.ctx, first.id, &handle));
	homa_rpc_abort(&b.ctx, first, 0);
	send.id = first.id;
	assert_int_equal(homa_rpc_send(&b.ctx, sock, b.link, &send, &handle, NULL),
			 0);
	while (homa_sock_close(&b.ctx, sock, 10))
		(void)homa_retired_rpc(&b.ctx);
	free(sock);
	bed_free(&b);
}

/* ---- what can be chosen ---- */

static void buckets__one_id_from_many_addresses_spreads(void **state)
{
	struct homa_seeds seeds;
	struct bed b;
	u32 i;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(&b, &seeds, RPCS, RPCS);
	for (i = 0; i < RPCS; i++) {
		struct homa_addr from = address(i);

		request(&b, &from, 4712);
	}
	/* 8 each if they were even; 40 are a matter of 10^-14. */
	unit_assert(unit_seed(), longest(&b.engine->shards[0].rpcs) < 40);
	bed_free(&b);
}

/* The same address, many UDP ports: each is a peer. */
static void buckets__one_id_from_many_ports_spreads(void **state)
{
	struct homa_addr from = address(5);
	struct homa_seeds seeds;
	struct bed b;
	u32 i;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(&b, &seeds, RPCS, RPCS);
	for (i = 0; i < RPCS; i++) {
		from.encap = (u16)(i + 1);
		request(&b, &from, 4712);
	}
	unit_assert(unit_seed(), longest(&b.engine->shards[0].rpcs) < 40);
	bed_free(&b);
}

/* One peer picks ids that share a bucket under keys that are not this engine's. */
static void buckets__ids_aimed_with_another_key_spread(void **state)
{
	struct homa_addr from = address(5);
	struct homa_seeds seeds;
	struct bed b;
	u64 id;
	u32 n = 0;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(&b, &seeds, RPCS, RPCS);
	for (id = 2; n < RPCS; id += 2) {
		if (homa_hash_id(id, seeds.keys[2]) % BUCKETS)
			continue;
		request(&b, &from, id);
		n++;
	}
	unit_assert(unit_seed(), longest(&b.engine->shards[0].rpcs) < 40);
	bed_free(&b);
}

/* An address of zeros, which the cache of a new context is full of. */
static void addr_key__zeros_have_a_key_too(void **state)
{
	struct homa_addr zero;
	struct homa_seeds seeds;
	struct bed b;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(&b, &seeds, RPCS, RPCS);
	memset(&zero, 0, sizeof(zero));
	assert_true(homa_addr_key(&b.ctx, &zero) ==
		    homa_siphash_addr(&zero, seeds.keys[0], seeds.keys[1]));
	bed_free(&b);
}

/* ---- ids ---- */

#define SERVERS 100u
#define EACH 20u

/* EACH requests to each of SERVERS addresses in turn; where do the ids to each begin? */
static void ids_begin(struct bed *b, u64 *first)
{
	struct homa_send send = { .port = PORT, .length = 1, .available = 1 };
	struct homa_sock *sock = zeroed(homa_sock_size(&b->limits));
	struct homa_rpc *rpc;
	u32 i;

	assert_int_equal(homa_sock_open(&b->ctx, sock), 0);
	for (i = 0; i < EACH * SERVERS; i++) {
		struct homa_handle handle;

		send.dst = address(i % SERVERS);
		assert_int_equal(homa_rpc_send(&b->ctx, sock, b->link, &send,
					       &handle, NULL),
				 0);
		if (i < SERVERS)
			first[i] = handle.id;
		assert_true(handle.id == first[i % SERVERS] + i / SERVERS * 2);
		assert_true(handle.id >= 2 && !(handle.id & 1));
	}
	while (homa_sock_close(&b->ctx, sock, 1000))
		;
	while ((rpc = homa_retired_rpc(&b->ctx)))
		homa_ctx_give_rpc(&b->ctx, rpc);
	free(sock);
}

/* Have a range of ids and another one that begins elsewhere an id in common? */
static bool ids_meet(u64 a, u64 b)
{
	return (a > b ? a - b : b - a) < 2ull * EACH;
}

/*
 * A server remembers runs of ids. Those to one address follow each other, whatever is sent to
 * others meanwhile; those to different ones, or after the entry of the address has gone, have
 * nothing to do with each other.
 */
static void ids__of_each_address_follow_each_other(void **state)
{
	u64 first[2 * SERVERS];
	struct homa_seeds seeds;
	struct bed b;
	u32 i, j;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(&b, &seeds, EACH * SERVERS, 2 * SERVERS);
	ids_begin(&b, first);
	assert_false(homa_peers_drain(&b.ctx, UINT32_MAX));
	ids_begin(&b, first + SERVERS);
	for (i = 0; i < 2 * SERVERS; i++)
		for (j = 0; j < i; j++)
			assert_false(ids_meet(first[i], first[j]));
	bed_free(&b);
}

/* A server that is reached over two devices is two peers, whose ids have nothing in common. */
static void ids__over_two_links_differ(void **state)
{
	struct homa_send send = {
		.dst = address(1), .port = PORT, .length = 1, .available = 1
	};
	struct homa_handle first, second;
	struct homa_link *other;
	struct homa_seeds seeds;
	struct bed b;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(&b, &seeds, RPCS, 4);
	other = zeroed(homa_link_size(64));
	homa_link_init(other, b.engine, 10000, 1500, 64);
	assert_int_equal(homa_rpc_send(&b.ctx, b.sock, b.link, &send, &first,
				       NULL),
			 0);
	assert_int_equal(homa_rpc_send(&b.ctx, b.sock, other, &send, &second,
				       NULL),
			 0);
	assert_false(ids_meet(first.id, second.id));
	bed_free(&b);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds_fixed__tells_its_keys),
		cmocka_unit_test(seeds_draw__keys_do_not_follow_from_ids_and_ports),
		cmocka_unit_test(send__an_id_is_open_once),
		cmocka_unit_test(buckets__one_id_from_many_addresses_spreads),
		cmocka_unit_test(buckets__one_id_from_many_ports_spreads),
		cmocka_unit_test(buckets__ids_aimed_with_another_key_spread),
		cmocka_unit_test(addr_key__zeros_have_a_key_too),
		cmocka_unit_test(ids__of_each_address_follow_each_other),
		cmocka_unit_test(ids__over_two_links_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
