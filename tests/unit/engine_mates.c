// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets that share a port: who gets a request, who may join, and that whoever leaves
 * leaves the port to the others.
 */
#include "engine_bed.h"

#define MANY 64u /* HOMA_MATES */

struct crowd {
	struct bed b;
	struct homa_owner owner, other;
	struct homa_sock *sock[MANY + 1];
	u32 taken[MANY + 1];
	u32 requests;
};

static struct homa_sock *new_sock(struct crowd *c, struct homa_owner *owner)
{
	struct homa_sock *sock = zeroed(homa_sock_size(&c->b.limits));

	assert_int_equal(homa_sock_open(&c->b.ctx, sock), 0);
	homa_sock_charge(sock, owner);
	return sock;
}

static void end_sock(struct crowd *c, struct homa_sock *sock)
{
	struct homa_rpc *rpc;

	while (homa_sock_close(&c->b.ctx, sock, 1000))
		;
	while ((rpc = homa_retired_rpc(&c->b.ctx)))
		homa_ctx_give_rpc(&c->b.ctx, rpc);
	free(sock);
}

/* @n of them share the port. */
static struct crowd *crowd_new(u32 n, u32 rpcs)
{
	struct crowd *c = zeroed(sizeof(*c));
	struct homa_seeds seeds;
	u32 i;

	homa_seeds_fixed(&seeds, 1);
	bed_init(&c->b, &seeds, rpcs, 10);
	assert_int_equal(homa_sock_bind(&c->b.ctx, c->b.sock, PORT + 1), 0);
	for (i = 0; i < n; i++) {
		c->sock[i] = new_sock(c, &c->owner);
		assert_int_equal(homa_sock_share(&c->b.ctx, c->sock[i], PORT,
						 &c->taken[i]),
				 0);
	}
	return c;
}

static void crowd_free(struct crowd *c)
{
	u32 i;

	for (i = 0; i <= MANY; i++)
		if (c->sock[i])
			end_sock(c, c->sock[i]);
	bed_free(&c->b);
	free(c);
}

/* A request comes; whose is it now? */
static u32 next(struct crowd *c)
{
	struct homa_addr from = address(1);
	u64 before[MANY + 1] = { 0 };
	u32 i;

	for (i = 0; i <= MANY; i++)
		before[i] = c->sock[i] ? c->sock[i]->backlog : 0;
	c->requests++;
	request(&c->b, &from, 2 * (u64)c->requests);
	for (i = 0; i <= MANY; i++)
		if (c->sock[i] && c->sock[i]->backlog > before[i])
			return i;
	fail_msg("nobody has request %u", c->requests);
	return 0;
}

static void mates__evenly(void **state)
{
	struct crowd *c = crowd_new(5, 200);
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++)
		next(c);
	for (i = 0; i < 5; i++)
		assert_int_equal(c->sock[i]->backlog, 20);
	crowd_free(c);
}

static void mates__what_is_not_answered_counts(void **state)
{
	struct crowd *c = crowd_new(3, 200);
	u32 i;

	(void)state;
	c->taken[1] = 30;
	for (i = 0; i < 60; i++)
		assert_int_not_equal(next(c), 1);
	assert_int_equal(c->sock[0]->backlog, 30);
	assert_int_equal(c->sock[2]->backlog, 30);
	for (i = 0; i < 30; i++)
		next(c);
	assert_int_equal(c->sock[0]->backlog, 40);
	assert_int_equal(c->sock[1]->backlog, 10);
	assert_int_equal(c->sock[2]->backlog, 40);
	crowd_free(c);
}

/* Whoever leaves, also who is found by the port, and whoever's turn it is. */
static void mates__leave_in_any_order(void **state)
{
	static const u32 orders[][4] = { { 0, 1, 2, 3 },
					 { 3, 2, 1, 0 },
					 { 1, 0, 3, 2 },
					 { 0, 3, 1, 2 },
					 { 2, 3, 0, 1 } };
	u32 way, order, i, n;

	(void)state;
	/* Before that so many have had their turn. */
	for (way = 0; way < 4; way++) {
		for (order = 0; order < HOMA_ARRAY_SIZE(orders); order++) {
			struct crowd *c = crowd_new(4, 200);

			for (i = 0; i < way; i++)
				next(c);
			for (i = 0; i < 4; i++) {
				end_sock(c, c->sock[orders[order][i]]);
				c->sock[orders[order][i]] = NULL;
				for (n = i; n < 3; n++)
					assert_non_null(c->sock[next(c)]);
			}
			assert_null(homa_sock_at(&c->b.ctx, PORT));
			assert_int_equal(homa_sock_bind(&c->b.ctx, c->b.sock,
							PORT),
					 0);
			crowd_free(c);
		}
	}
}

static void mates__of_one_owner_who_ask_for_it(void **state)
{
	struct crowd *c = crowd_new(1, 10);
	struct homa_sock *other = new_sock(c, &c->other);
	struct homa_sock *own = new_sock(c, &c->b.engine->own);
	struct homa_sock *mate = new_sock(c, &c->owner);
	u32 taken = 0;
	u16 port = homa_sock_port(mate);

	(void)state;
	assert_int_equal(homa_sock_share(&c->b.ctx, other, PORT, &taken),
			 -HOMA_EADDRINUSE);
	assert_int_equal(homa_sock_share(&c->b.ctx, own, PORT, &taken),
			 -HOMA_EADDRINUSE);
	assert_int_equal(homa_sock_bind(&c->b.ctx, mate, PORT), -HOMA_EADDRINUSE);
	assert_int_equal(homa_sock_share(&c->b.ctx, mate, 0, &taken),
			 -HOMA_EINVAL);
	assert_int_equal(homa_sock_share(&c->b.ctx, mate, 0x8000, &taken),
			 -HOMA_EINVAL);
	/* Who was refused has its own port still. */
	assert_int_equal(homa_sock_port(mate), port);
	assert_ptr_equal(homa_sock_at(&c->b.ctx, port), mate);
	/* Two of the engine's own account are nobody's in particular. */
	assert_int_equal(homa_sock_share(&c->b.ctx, own, 7, &taken), 0);
	assert_int_equal(homa_sock_share(&c->b.ctx, c->b.sock, 7, &taken),
			 -HOMA_EADDRINUSE);
	assert_int_equal(homa_sock_share(&c->b.ctx, mate, PORT, &taken), 0);
	/* The client port that it had is free. */
	assert_null(homa_sock_at(&c->b.ctx, port));
	end_sock(c, other);
	end_sock(c, own);
	end_sock(c, mate);
	crowd_free(c);
}

static void mates__are_bounded(void **state)
{
	struct crowd *c = crowd_new(MANY, 200);
	u32 i;

	(void)state;
	c->sock[MANY] = new_sock(c, &c->owner);
	assert_int_equal(homa_sock_share(&c->b.ctx, c->sock[MANY], PORT,
					 &c->taken[MANY]),
			 -HOMA_ENOBUFS);
	for (i = 0; i < MANY; i++)
		next(c);
	for (i = 0; i < MANY; i++)
		assert_int_equal(c->sock[i]->backlog, 1);
	/* One goes elsewhere, and there is room. */
	assert_int_equal(homa_sock_share(&c->b.ctx, c->sock[0], 7, &c->taken[0]),
			 0);
	assert_int_equal(homa_sock_share(&c->b.ctx, c->sock[MANY], PORT,
					 &c->taken[MANY]),
			 0);
	assert_int_equal(next(c), MANY);
	/* And back it does not come. */
	assert_int_equal(homa_sock_share(&c->b.ctx, c->sock[0], PORT,
					 &c->taken[0]),
			 -HOMA_ENOBUFS);
	assert_ptr_equal(homa_sock_at(&c->b.ctx, 7), c->sock[0]);
	crowd_free(c);
}

static void mates__only_those_that_take_it(void **state)
{
	struct crowd *c = crowd_new(3, 200);
	struct homa_addr v4 = address(1), v6 = { .ip = { 0xfd, 9 } };
	u32 i;

	(void)state;
	homa_sock_serve(c->sock[0], false);
	homa_sock_only_v4(c->sock[1], true);
	for (i = 0; i < 20; i++)
		assert_int_not_equal(next(c), 0);
	assert_int_equal(c->sock[1]->backlog, 10);
	for (i = 0; i < 10; i++)
		assert_ptr_equal(homa_sock_listening(&c->b.ctx, PORT, &v6),
				 c->sock[2]);
	homa_sock_serve(c->sock[2], false);
	assert_null(homa_sock_listening(&c->b.ctx, PORT, &v6));
	assert_ptr_equal(homa_sock_listening(&c->b.ctx, PORT, &v4), c->sock[1]);
	crowd_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mates__evenly),
		cmocka_unit_test(mates__what_is_not_answered_counts),
		cmocka_unit_test(mates__leave_in_any_order),
		cmocka_unit_test(mates__of_one_owner_who_ask_for_it),
		cmocka_unit_test(mates__are_bounded),
		cmocka_unit_test(mates__only_those_that_take_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
