/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a peer sees of an engine - ids, ports - must not tell it where RPCs are
 * kept, and what it chooses must not put them into one bucket. The inversion here
 * is the one that worked while seeds, ids and ports came from one generator.
 */
#include "unit.h"

#include "homa_impl.h"
#include "homa_seeds.h"

#define BUCKETS 1024u
#define RPCS 8192u
#define PORT 99

struct bed {
	struct homa_limits limits;
	struct homa_engine *engine;
	struct homa_link *link;
	struct homa_sock *sock;
	struct homa_ctx ctx;
};

static void *zeroed(size_t size)
{
	void *mem = calloc(1, size);

	assert_non_null(mem);
	return mem;
}

static void bed_init(struct bed *b, const struct homa_seeds *seeds)
{
	struct homa_params params;
	u32 i;

	memset(b, 0, sizeof(*b));
	b->limits = (struct homa_limits){ .shards = 1, .buckets = BUCKETS };
	homa_params_default(&params);
	b->engine = zeroed(homa_engine_size(&b->limits));
	b->link = zeroed(homa_link_size(64));
	b->sock = zeroed(homa_sock_size(&b->limits));
	assert_int_equal(homa_engine_init(b->engine, &b->limits, &params, seeds, 0), 0);
	homa_link_init(b->link, b->engine, 10000, 1500, 64);
	homa_ctx_init(&b->ctx, b->engine, 0);
	b->ctx.now = 1000000000;
	for (i = 0; i < RPCS; i++) {
		homa_ctx_give_rpc(&b->ctx, zeroed(homa_rpc_size(&b->limits)));
		homa_ctx_give_peer(&b->ctx, zeroed(homa_peer_size(&b->limits)));
		homa_ctx_give_range(&b->ctx, zeroed(homa_range_size()));
	}
	assert_int_equal(homa_sock_open(&b->ctx, b->sock), 0);
	assert_int_equal(homa_sock_bind(&b->ctx, b->sock, PORT), 0);
}

static void bed_free(struct bed *b)
{
	struct homa_peer *peer;
	struct homa_rpc *rpc;
	void *mem;

	while (homa_sock_close(&b->ctx, b->sock, 1000))
		;
	homa_peers_drain(&b->ctx);
	while ((rpc = homa_retired_rpc(&b->ctx)))
		free(rpc);
	while ((peer = homa_retired_peer(&b->ctx)))
		free(peer);
	while ((mem = homa_ctx_take_rpc(&b->ctx)))
		free(mem);
	while ((mem = homa_ctx_take_peer(&b->ctx)))
		free(mem);
	while ((mem = homa_ctx_take_range(&b->ctx)))
		free(mem);
	free(b->sock);
	free(b->link);
	free(b->engine);
}

/* The first of two packets of a request. */
static void request(struct bed *b, const struct homa_addr *from, u64 id)
{
	struct homa_packet p = {
		.hdr = { .type = HOMA_DATA, .sport = 40000, .dport = PORT,
			 .sender_id = id },
		.data = { .length = 2000, .incoming = 2000, .payload_len = 1000 },
	};
	struct homa_rx_pkt pkt = { .src = from };
	u8 bytes[96];

	pkt.len = homa_packet_encode(bytes, &p) + p.data.payload_len;
	pkt.data = bytes;
	homa_rx(&b->ctx, b->link, &pkt, 1);
	assert_int_equal(pkt.verdict, HOMA_RX_DATA);
	homa_rx_copied(&b->ctx, &pkt);
	homa_rx_flush(&b->ctx);
}

static struct homa_addr address(u32 n)
{
	struct homa_addr a = { .ip = { [10] = 0xff, 0xff, 10, (u8)(n >> 16),
				       (u8)(n >> 8), (u8)n } };

	return a;
}

/* RPCs in the fullest bucket. */
static u32 longest(const struct bed *b)
{
	const struct homa_shard *shard = &b->engine->shards[0];
	u32 i, most = 0;

	for (i = 0; i <= shard->bucket_mask; i++) {
		struct homa_list *pos;
		u32 n = 0;

		homa_list_for_each(pos, &shard->buckets[i])
			n++;
		most = homa_max_u32(most, n);
	}
	return most;
}

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

		if (((u16)homa_rng_next(&rng) | HOMA_MIN_CLIENT_PORT) != first_port)
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
	struct homa_send send = { .dst = address(1), .port = PORT, .length = 1,
				  .available = 1 };
	struct homa_handle handle;

	assert_int_equal(homa_sock_open(&b->ctx, sock), 0);
	*port = homa_sock_port(sock);
	assert_int_equal(homa_rpc_send(&b->ctx, sock, b->link, &send, &handle, NULL), 0);
	/* And more: where ids to its address begin. */
	assert_int_equal(handle.id & 1, 0);
	*id = b->engine->next_id - 2;
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

	bed_init(&b, seeds);
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

/* ---- what can be chosen ---- */

static void buckets__one_id_from_many_addresses_spreads(void **state)
{
	struct homa_seeds seeds;
	struct bed b;
	u32 i;

	(void)state;
	homa_seeds_fixed(&seeds, unit_seed());
	bed_init(&b, &seeds);
	for (i = 0; i < RPCS; i++) {
		struct homa_addr from = address(i);

		request(&b, &from, 4712);
	}
	/* 8 each if they were even; 40 are a matter of 10^-14. */
	unit_assert(unit_seed(), longest(&b) < 40);
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
	bed_init(&b, &seeds);
	for (i = 0; i < RPCS; i++) {
		from.encap = (u16)(i + 1);
		request(&b, &from, 4712);
	}
	unit_assert(unit_seed(), longest(&b) < 40);
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
	bed_init(&b, &seeds);
	for (id = 2; n < RPCS; id += 2) {
		if (homa_hash_id(id, seeds.keys[2]) % BUCKETS)
			continue;
		request(&b, &from, id);
		n++;
	}
	unit_assert(unit_seed(), longest(&b) < 40);
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
	bed_init(&b, &seeds);
	memset(&zero, 0, sizeof(zero));
	assert_true(homa_addr_key(&b.ctx, &zero) ==
		    homa_siphash_addr(&zero, seeds.keys[0], seeds.keys[1]));
	bed_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seeds_fixed__tells_its_keys),
		cmocka_unit_test(seeds_draw__keys_do_not_follow_from_ids_and_ports),
		cmocka_unit_test(buckets__one_id_from_many_addresses_spreads),
		cmocka_unit_test(buckets__one_id_from_many_ports_spreads),
		cmocka_unit_test(buckets__ids_aimed_with_another_key_spread),
		cmocka_unit_test(addr_key__zeros_have_a_key_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
