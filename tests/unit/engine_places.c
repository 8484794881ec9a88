// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets that take a part of the requests to a port: by the address that these come to, by
 * the link that they come on, by the peer's family. Who gets one, who may have which place,
 * and that a port is as before when it has one socket again.
 */
#include "engine_bed.h"

#define MANY 64u /* HOMA_MATES */

enum { NOBODY = 99 };

struct town {
	struct bed b;
	struct homa_owner owner, other;
	struct homa_sock *sock[MANY + 2];
	u32 requests;
};

static const struct homa_from one = { { 0, 1 } }, two = { { 0, 2 } },
			      three = { { 7, 1 } };

static struct town *town_new(void)
{
	struct town *t = zeroed(sizeof(*t));
	struct homa_seeds seeds;

	homa_seeds_fixed(&seeds, 1);
	bed_init(&t->b, &seeds, 300, 10);
	assert_int_equal(homa_sock_bind(&t->b.ctx, t->b.sock, PORT + 1), 0);
	t->b.ctx.heard_on = 5;
	return t;
}

/* Closes socket @i. */
static void leave(struct town *t, u32 i)
{
	struct homa_rpc *rpc;

	while (homa_sock_close(&t->b.ctx, t->sock[i], 1000))
		;
	while ((rpc = homa_retired_rpc(&t->b.ctx)))
		homa_ctx_give_rpc(&t->b.ctx, rpc);
	free(t->sock[i]);
	t->sock[i] = NULL;
}

static void town_free(struct town *t)
{
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(t->sock); i++)
		if (t->sock[i])
			leave(t, i);
	assert_int_equal(t->b.engine->num_placed, 0);
	bed_free(&t->b);
	free(t);
}

static void open_for(struct town *t, u32 i, struct homa_owner *owner)
{
	t->sock[i] = zeroed(homa_sock_size(&t->b.limits));
	assert_int_equal(homa_sock_open(&t->b.ctx, t->sock[i]), 0);
	homa_sock_charge(t->sock[i], owner);
}

static int bind_at(struct town *t, u32 i, u16 port, const struct homa_place *place)
{
	return homa_sock_bind_at(&t->b.ctx, t->sock[i], port, place);
}

/* A socket that is new has a place at PORT. */
static void settle(struct town *t, u32 i, struct homa_place place)
{
	open_for(t, i, &t->owner);
	assert_int_equal(bind_at(t, i, PORT, &place), 0);
}

static void settle_not(struct town *t, u32 i, struct homa_place place, int err)
{
	open_for(t, i, &t->owner);
	assert_int_equal(bind_at(t, i, PORT, &place), err);
	leave(t, i);
}

/* The first packet of a request of @from comes to @local. Whose is it? */
static u32 comes(struct town *t, const struct homa_from *local,
		 const struct homa_addr *from)
{
	struct homa_packet p = {
		.hdr = { .type = HOMA_DATA,
			 .sport = 40000,
			 .dport = PORT,
			 .sender_id = 2 * (u64)++t->requests },
		.data = { .length = 2000, .incoming = 2000, .payload_len = 1000 },
	};
	struct homa_rx_pkt pkt = { .src = from };
	struct homa_sock *meant;
	u8 bytes[96];
	u32 i;

	t->b.ctx.heard_at = *local;
	meant = homa_sock_meant(&t->b.ctx, PORT, from);
	pkt.len = homa_packet_encode(bytes, &p) + p.data.payload_len;
	pkt.data = bytes;
	homa_rx(&t->b.ctx, t->b.link, &pkt, 1);
	if (pkt.verdict == HOMA_RX_NO_LISTENER) {
		assert_null(meant);
		return NOBODY;
	}
	assert_int_equal(pkt.verdict, HOMA_RX_DATA);
	assert_ptr_equal(homa_rpc_sock(pkt.rpc), meant);
	homa_rx_copied(&t->b.ctx, &pkt);
	homa_rx_flush(&t->b.ctx);
	for (i = 0; i < HOMA_ARRAY_SIZE(t->sock); i++)
		if (t->sock[i] == meant)
			return i;
	fail_msg("a stranger has request %u", t->requests);
	return NOBODY;
}

static u32 to(struct town *t, const struct homa_from *local)
{
	struct homa_addr v4 = address(1);

	return comes(t, local, &v4);
}

/* Does the port of socket @i say that what comes to @local is for it? */
static bool exact(struct town *t, u32 i, const struct homa_from *local)
{
	t->b.ctx.heard_at = *local;
	return homa_sock_exact(&t->b.ctx, t->sock[i]);
}

static void places__by_address(void **state)
{
	struct town *t = town_new();

	(void)state;
	settle(t, 0, (struct homa_place){ .local = one });
	assert_int_equal(to(t, &one), 0);
	assert_int_equal(to(t, &two), NOBODY);
	settle(t, 1, (struct homa_place){ .local = two });
	settle(t, 2, (struct homa_place){ .local = three });
	assert_int_equal(to(t, &one), 0);
	assert_int_equal(to(t, &two), 1);
	assert_int_equal(to(t, &three), 2);
	leave(t, 0);
	assert_int_equal(to(t, &one), NOBODY);
	assert_int_equal(to(t, &two), 1);
	leave(t, 2);
	assert_int_equal(to(t, &two), 1);
	assert_int_equal(to(t, &three), NOBODY);
	town_free(t);
}

static void places__that_say_more_win(void **state)
{
	struct homa_addr v4 = address(1), v6 = { .ip = { 0xfd, 9 } };
	struct town *t = town_new();

	(void)state;
	settle(t, 0, (struct homa_place){ .shares = true });
	assert_int_equal(to(t, &one), 0);
	settle(t, 1, (struct homa_place){ .shares = true, .device = 5 });
	assert_int_equal(to(t, &one), 1);
	settle(t, 2, (struct homa_place){ .shares = true, .local = one });
	settle(t, 3,
	       (struct homa_place){ .shares = true, .local = two, .device = 5 });
	settle(t, 4,
	       (struct homa_place){ .shares = true, .local = one, .device = 6 });
	assert_int_equal(to(t, &one), 2);
	assert_int_equal(to(t, &two), 3);
	assert_int_equal(to(t, &three), 1);
	t->b.ctx.heard_on = 6;
	assert_int_equal(to(t, &one), 4);
	assert_int_equal(to(t, &two), 0);
	settle(t, 5,
	       (struct homa_place){ .shares = true, .families = HOMA_PLACE_V6 });
	assert_int_equal(comes(t, &two, &v6), 5);
	assert_int_equal(comes(t, &two, &v4), 0);
	/* One that takes no requests does not keep them from others. */
	homa_sock_serve(t->sock[5], false);
	assert_int_equal(comes(t, &two, &v6), 0);
	homa_sock_serve(t->sock[4], false);
	assert_int_equal(to(t, &one), 2);
	town_free(t);
}

static void places__that_overlap(void **state)
{
	struct town *t = town_new();
	const struct homa_place shared_one = { .local = one, .shares = true };
	const struct homa_place shared = { .shares = true };

	(void)state;
	settle(t, 0, (struct homa_place){ .local = one });
	settle_not(t, 1, (struct homa_place){ .local = one }, -HOMA_EADDRINUSE);
	settle_not(t, 1, (struct homa_place){ .device = 5 }, -HOMA_EADDRINUSE);
	settle_not(t, 1, shared, -HOMA_EADDRINUSE);
	settle_not(t, 1, (struct homa_place){ .families = HOMA_PLACE_V4 },
		   -HOMA_EADDRINUSE);
	settle(t, 1, (struct homa_place){ .local = two, .device = 5 });
	settle(t, 2, (struct homa_place){ .local = two, .device = 6 });
	settle_not(t, 3, (struct homa_place){ .local = two }, -HOMA_EADDRINUSE);
	leave(t, 1);
	leave(t, 2);
	/* Both have to say so, be the same owner's, and not be the same. */
	assert_int_equal(bind_at(t, 0, PORT, &shared_one), 0);
	settle_not(t, 1, (struct homa_place){ .device = 5 }, -HOMA_EADDRINUSE);
	settle_not(t, 1, shared_one, -HOMA_EADDRINUSE);
	open_for(t, 1, &t->other);
	assert_int_equal(bind_at(t, 1, PORT, &shared), -HOMA_EADDRINUSE);
	assert_int_equal(homa_sock_bind_at(&t->b.ctx, t->b.sock, PORT, &shared),
			 -HOMA_EADDRINUSE);
	settle(t, 2, shared);
	assert_int_equal(to(t, &one), 0);
	assert_int_equal(to(t, &two), 2);
	/* Who was refused is where it was, and can go where nobody is. */
	assert_ptr_equal(homa_sock_at(&t->b.ctx, homa_sock_port(t->sock[1])),
			 t->sock[1]);
	town_free(t);
}

static void places__of_families(void **state)
{
	struct homa_addr v4 = address(1), v6 = { .ip = { 0xfd, 9 } };
	struct town *t = town_new();

	(void)state;
	settle(t, 0, (struct homa_place){ .families = HOMA_PLACE_V4 });
	/* Alone the port says it all, and who takes no IPv6 is not found for it. */
	assert_true(exact(t, 0, &one));
	settle_not(t, 1, (struct homa_place){ 0 }, -HOMA_EADDRINUSE);
	settle(t, 1, (struct homa_place){ .families = HOMA_PLACE_V6 });
	assert_false(exact(t, 0, &one));
	assert_int_equal(comes(t, &one, &v4), 0);
	assert_int_equal(comes(t, &one, &v6), 1);
	leave(t, 0);
	assert_true(exact(t, 1, &one));
	town_free(t);
}

/* What comes to the address of the only socket at a port is that socket's, and nobody has to be
 * asked; of all else, and once there is another one, that is not said. */
static void places__of_the_only_socket(void **state)
{
	const struct homa_place at_one = { .local = one },
				at_two = { .local = two };
	static const struct homa_from half = { { 7, 2 } };
	struct town *t = town_new();
	u32 taken = 0;

	(void)state;
	settle(t, 0, at_one);
	assert_true(exact(t, 0, &one));
	assert_false(exact(t, 0, &two));
	assert_false(exact(t, 0, &half));
	/* Another one comes, and goes: by closing, and to another port. */
	settle(t, 1, at_two);
	assert_false(exact(t, 0, &one));
	assert_false(exact(t, 1, &two));
	leave(t, 0);
	assert_true(exact(t, 1, &two));
	assert_false(exact(t, 1, &one));
	settle(t, 0, at_one);
	assert_false(exact(t, 1, &two));
	assert_int_equal(bind_at(t, 0, PORT + 2, &at_one), 0);
	assert_true(exact(t, 0, &one));
	assert_true(exact(t, 1, &two));
	/* It moves. */
	assert_int_equal(bind_at(t, 1, PORT, &at_one), 0);
	assert_true(exact(t, 1, &one));
	assert_false(exact(t, 1, &two));
	assert_int_equal(to(t, &one), 1);
	/* A device has to be looked at. */
	homa_sock_on(t->b.engine, t->sock[1], 5);
	assert_false(exact(t, 1, &one));
	assert_int_equal(to(t, &one), 1);
	homa_sock_on(t->b.engine, t->sock[1], 0);
	assert_true(exact(t, 1, &one));
	/* One that takes no requests is found, and gets none. */
	homa_sock_serve(t->sock[1], false);
	assert_int_equal(to(t, &two), NOBODY);
	homa_sock_serve(t->sock[1], true);
	/* One that shares its requests with whoever may come has to be asked. */
	assert_int_equal(homa_sock_share(&t->b.ctx, t->sock[1], PORT, &taken), 0);
	assert_false(exact(t, 1, &one));
	assert_int_equal(to(t, &two), 1);
	town_free(t);
}

/* Places of a socket that has its port already. */
static void places__change(void **state)
{
	const struct homa_place at_one = { .local = one },
				at_two = { .local = two }, all = { 0 };
	struct town *t = town_new();
	u16 port;

	(void)state;
	settle(t, 0, all);
	assert_true(exact(t, 0, &two));
	assert_int_equal(bind_at(t, 0, PORT, &at_one), 0);
	assert_false(exact(t, 0, &two));
	assert_int_equal(to(t, &two), NOBODY);
	settle(t, 1, at_two);
	assert_int_equal(bind_at(t, 0, PORT, &at_two), -HOMA_EADDRINUSE);
	assert_int_equal(bind_at(t, 0, PORT, &all), -HOMA_EADDRINUSE);
	assert_int_equal(to(t, &one), 0);
	leave(t, 1);
	assert_int_equal(bind_at(t, 0, PORT, &all), 0);
	assert_true(exact(t, 0, &two));
	assert_int_equal(to(t, &two), 0);
	/* A client's port: it has it alone, and may take requests there. */
	open_for(t, 1, &t->owner);
	port = homa_sock_port(t->sock[1]);
	assert_int_equal(bind_at(t, 1, (u16)(port ^ 1), &at_one), -HOMA_EINVAL);
	assert_int_equal(bind_at(t, 1, 0, &at_one), -HOMA_EINVAL);
	assert_int_equal(bind_at(t, 1, port, &at_one), 0);
	assert_ptr_equal(homa_sock_at(&t->b.ctx, port), t->sock[1]);
	assert_false(t->sock[1]->server);
	town_free(t);
}

static void places__on_a_link(void **state)
{
	struct town *t = town_new();
	const struct homa_place at_one = { .local = one };

	(void)state;
	settle(t, 0, (struct homa_place){ 0 });
	homa_sock_on(t->b.engine, t->sock[0], 6);
	assert_false(exact(t, 0, &one));
	assert_int_equal(to(t, &one), NOBODY);
	t->b.ctx.heard_on = 6;
	assert_int_equal(to(t, &one), 0);
	homa_sock_on(t->b.engine, t->sock[0], 0);
	assert_true(exact(t, 0, &two));
	/* It is not asked whether places overlap then; one gets the request. */
	homa_sock_on(t->b.engine, t->sock[0], 6);
	settle(t, 1, (struct homa_place){ .device = 7 });
	homa_sock_on(t->b.engine, t->sock[1], 6);
	assert_int_not_equal(to(t, &one), NOBODY);
	assert_int_equal(bind_at(t, 0, PORT + 2, &at_one), 0);
	assert_int_equal(to(t, &one), 1);
	/* One that is closing has no place any more. */
	while (homa_sock_close(&t->b.ctx, t->sock[1], 1000))
		;
	homa_sock_on(t->b.engine, t->sock[1], 6);
	assert_int_equal(to(t, &one), NOBODY);
	town_free(t);
}

static void places__are_bounded(void **state)
{
	struct town *t = town_new();
	struct homa_place place = { .local = { { 1, 0 } } };
	u32 i;

	(void)state;
	for (i = 0; i < MANY; i++) {
		place.local.word[1] = i;
		settle(t, i, place);
	}
	place.local.word[1] = MANY;
	settle_not(t, MANY, place, -HOMA_ENOBUFS);
	for (i = 0; i < MANY; i++) {
		place.local.word[1] = i;
		assert_int_equal(to(t, &place.local), i);
	}
	/* It may change its place although the port is full. */
	place.local.word[1] = MANY;
	assert_int_equal(bind_at(t, 3, PORT, &place), 0);
	assert_int_equal(to(t, &place.local), 3);
	for (i = 0; i + 1 < MANY; i++)
		leave(t, i);
	place.local.word[1] = MANY - 1;
	assert_int_equal(to(t, &place.local), MANY - 1);
	town_free(t);
}

/* Those that share requests do so within the place that they have in common. */
static void places__beside_mates(void **state)
{
	struct town *t = town_new();
	u32 taken[2] = { 0 }, i, got[3] = { 0 };

	(void)state;
	for (i = 0; i < 2; i++) {
		open_for(t, i, &t->owner);
		assert_int_equal(homa_sock_share(&t->b.ctx, t->sock[i], PORT,
						 &taken[i]),
				 0);
	}
	homa_sock_on(t->b.engine, t->sock[0], 5);
	homa_sock_on(t->b.engine, t->sock[1], 5);
	settle(t, 2, (struct homa_place){ .device = 6 });
	for (i = 0; i < 20; i++)
		got[to(t, &one)]++;
	assert_int_equal(got[0], 10);
	assert_int_equal(got[1], 10);
	t->b.ctx.heard_on = 6;
	for (i = 0; i < 20; i++)
		assert_int_equal(to(t, &one), 2);
	town_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places__by_address),
		cmocka_unit_test(places__that_say_more_win),
		cmocka_unit_test(places__that_overlap),
		cmocka_unit_test(places__of_families),
		cmocka_unit_test(places__of_the_only_socket),
		cmocka_unit_test(places__change),
		cmocka_unit_test(places__on_a_link),
		cmocka_unit_test(places__are_bounded),
		cmocka_unit_test(places__beside_mates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
