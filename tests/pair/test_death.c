/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Ends that are not the end of an exchange: partitions, hosts that vanish or
 * start again, aborts, closed sockets. Each happens at every stage of an RPC:
 * the undisturbed exchange is timed first and then disturbed at 40 moments.
 */
#include "pair_test.h"

#define MOMENTS 40

static const u32 shapes[][2] = {
	{ 100, 100 },
	{ 60000, 100 },
	{ 100, 60000 },
	{ 150000, 150000 },
};

static struct pair_config config(u64 seed)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.pool_pages = 32; /* thousands of worlds: keep them small */
	cfg.reply_delay_ns = 30000;
	cfg.take_delay_ns = 10000;
	cfg.copy_delay_ns = 5000;
	cfg.done_delay_ns = 5000;
	return cfg;
}

/* Three RPCs of a shape at once, so that events find more than one state. */
static void start_some(struct pair_world *w, const u32 *shape)
{
	u32 i;

	for (i = 0; i < 3; i++)
		pair_rpc(w, 0, 1, shape[0] + i * 1000, shape[1] + i * 1000);
}

static u64 undisturbed(const u32 *shape)
{
	struct pair_config cfg = config(1);
	struct pair_world *w = pair_world_new(&cfg);
	u64 start = w->now, took;

	start_some(w, shape);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_drain(w, PAIR_S);
	took = w->now - start;
	if (took > 3 * PAIR_MS) /* drain looks only now and then */
		took = 3 * PAIR_MS;
	pair_finish(w);
	return took;
}

/* Calls @disturb at MOMENTS moments of each shape; it finishes the world. */
static void at_every_moment(void (*disturb)(struct pair_world *w))
{
	u32 s, m;

	for (s = 0; s < HOMA_ARRAY_SIZE(shapes); s++) {
		u64 took = undisturbed(shapes[s]);

		for (m = 0; m < MOMENTS; m++) {
			struct pair_config cfg = config(1 + s * 1000 + m);
			struct pair_world *w = pair_world_new(&cfg);

			start_some(w, shapes[s]);
			/* Denser at the beginning, where most happens. */
			pair_run_for(w, took * m * m / (MOMENTS * MOMENTS));
			disturb(w);
		}
	}
}

static void expect_error_or_ok(struct pair_world *w, int error)
{
	u32 i;

	for (i = 0; i < w->num_rpcs; i++) {
		struct pair_rpc *rpc = w->book[i];

		pair_check(w, rpc->state != PAIR_FAILED || rpc->error == error,
			   "rpc %u failed with %d, not %d", i, rpc->error, error);
	}
}

static void cut(struct pair_world *w)
{
	u64 start = w->now;
	u32 i;

	pair_cut(w, 0, 1, true);
	pair_check(w, pair_run_while_pending(w, 20 * PAIR_S),
		   "no end in a partition");
	expect_error_or_ok(w, HOMA_ETIMEDOUT);
	for (i = 0; i < w->num_rpcs; i++)
		pair_check(w, w->book[i]->end < start + PAIR_S,
			   "rpc %u learned of it after %llu ms", i,
			   (unsigned long long)(w->book[i]->end - start) /
				   1000000);
	pair_drain(w, 20 * PAIR_S);
	pair_cut(w, 0, 1, false);
	pair_rpc(w, 0, 1, 1000, 1000);
	pair_run_while_pending(w, PAIR_S);
	assert_int_equal(w->book[w->num_rpcs - 1]->state, PAIR_OK);
	pair_finish(w);
}

static void cut_one_way(struct pair_world *w)
{
	w->paths[w->cfg.seed & 1][~w->cfg.seed & 1].cut = true;
	pair_check(w, pair_run_while_pending(w, 20 * PAIR_S),
		   "no end in a partition");
	expect_error_or_ok(w, HOMA_ETIMEDOUT);
	pair_drain(w, 20 * PAIR_S);
	pair_finish(w);
}

static void cut_briefly(struct pair_world *w)
{
	pair_cut(w, 0, 1, true);
	pair_run_for(w, 30 * PAIR_MS);
	pair_cut(w, 0, 1, false);
	pair_check(w,
		   pair_run_while_pending(w, 20 * PAIR_S) &&
			   pair_count_state(w, PAIR_OK) == 3,
		   "%u of 3 survive 30 ms", pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

static void client_vanishes(struct pair_world *w)
{
	pair_host_stop(&w->hosts[0]);
	pair_finish(w);
}

static void server_vanishes(struct pair_world *w)
{
	pair_host_stop(&w->hosts[1]);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	expect_error_or_ok(w, HOMA_ETIMEDOUT);
	pair_finish(w);
}

static void client_restarts(struct pair_world *w)
{
	u32 i;

	pair_restart(&w->hosts[0]);
	for (i = 0; i < 20; i++)
		pair_rpc(w, 0, 1, 1 + i * 1000, 1 + i * 2000);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_true(pair_count_state(w, PAIR_OK) >= 20);
	pair_finish(w);
}

static void server_restarts(struct pair_world *w)
{
	u32 i;

	pair_restart(&w->hosts[1]);
	/* Those that begin in the round trip of its birth may be from before. */
	pair_run_for(w, PAIR_MS);
	for (i = 0; i < 20; i++)
		pair_rpc(w, 0, 1, 1 + i * 1000, 1 + i * 2000);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	/* Old ones end somehow; new ones are not held against it. */
	for (i = 3; i < w->num_rpcs; i++)
		pair_check(w, w->book[i]->state == PAIR_OK, "rpc %u: error %d",
			   i, w->book[i]->error);
	pair_finish(w);
}

static void abort_silently(struct pair_world *w)
{
	u32 i;

	for (i = 0; i < w->num_rpcs; i++)
		if (w->book[i]->state == PAIR_PENDING)
			pair_check(w, !pair_rpc_abort(w, w->book[i], 0),
				   "abort of a living RPC");
	assert_int_equal(w->pending, 0);
	for (i = 0; i < w->num_rpcs; i++)
		assert_int_equal(pair_rpc_abort(w, w->book[i], 0), -HOMA_EINVAL);
	pair_finish(w);
}

static void abort_with_error(struct pair_world *w)
{
	u32 i;

	for (i = 0; i < w->num_rpcs; i++)
		if (w->book[i]->state == PAIR_PENDING)
			pair_check(w, !pair_rpc_abort(w, w->book[i], HOMA_EINTR),
				   "abort of a living RPC");
	assert_true(pair_run_while_pending(w, PAIR_S));
	expect_error_or_ok(w, HOMA_EINTR);
	pair_finish(w);
}

static void close_client(struct pair_world *w)
{
	pair_sock_close(&w->hosts[0], 1, 1);
	pair_finish(w);
}

static void close_server(struct pair_world *w)
{
	pair_sock_close(&w->hosts[1], 0, 1);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	pair_finish(w);
}

static void close_and_open(struct pair_world *w)
{
	u32 i;

	pair_sock_close(&w->hosts[1], 0, 100);
	while (w->hosts[1].socks[0].sock)
		pair_run_for(w, PAIR_US);
	pair_sock_open(&w->hosts[1], PAIR_SERVER_PORT);
	for (i = 0; i < 5; i++)
		pair_rpc(w, 0, 1, 3000, 3000);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	pair_finish(w);
}

#define EVERY_MOMENT(name, fn)         \
	static void name(void **state) \
	{                              \
		(void)state;           \
		at_every_moment(fn);   \
	}
EVERY_MOMENT(partition__ends_everything, cut)
EVERY_MOMENT(partition__one_way, cut_one_way)
EVERY_MOMENT(partition__short_is_survived, cut_briefly)
EVERY_MOMENT(client__vanishes, client_vanishes)
EVERY_MOMENT(server__vanishes, server_vanishes)
EVERY_MOMENT(client__restarts, client_restarts)
EVERY_MOMENT(server__restarts, server_restarts)
EVERY_MOMENT(abort__silently, abort_silently)
EVERY_MOMENT(abort__with_error, abort_with_error)
EVERY_MOMENT(close__client, close_client)
EVERY_MOMENT(close__server, close_server)
EVERY_MOMENT(close__and_open_again, close_and_open)

/* An application that thinks for seconds loses nothing: BUSY. */
static void server__slow_application(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	for (i = 0; i < 20; i++) {
		struct pair_rpc *rpc = pair_rpc(w, 0, 1, 1 + i * 3000, 20000);

		rpc->reply_delay = (i + 1) * PAIR_S / 2;
		rpc->reply_delay_set = true;
	}
	assert_true(pair_run_while_pending(w, 30 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 20);
	pair_finish(w);
}

/* Nobody fetches the request for seconds: alive all the same. */
static void server__slow_to_take(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;

	(void)state;
	pair_config_default(&cfg);
	cfg.take_delay_ns = 3 * PAIR_S;
	w = pair_world_new(&cfg);
	pair_rpc(w, 0, 1, 100, 20000);
	pair_rpc(w, 0, 1, 30000, 200);
	assert_true(pair_run_while_pending(w, 30 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 2);
	pair_finish(w);
}

/* Clients that nobody is left of do not stay in service for ever. */
static void server__client_gone_while_in_service(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	rpc = pair_rpc(w, 0, 1, 100, 100);
	rpc->reply_delay_set = true;
	rpc->reply_delay = 5 * PAIR_S;
	pair_run_for(w, PAIR_MS);
	assert_int_equal(rpc->executed, 1);
	pair_host_stop(&w->hosts[0]);
	pair_run_for(w, 6 * PAIR_S);
	pair_finish(w);
}

/* Once, a response's first packet says that the message is longer than it is. */
static bool lengthen(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	bool *done = arg;
	struct homa_wire_data *d = (struct homa_wire_data *)pkt->data;

	if (*done || homa_peek_type(pkt->data) != HOMA_DATA || pkt->src != 1)
		return false;
	*done = true;
	w->corrupting = true;
	homa_put_be32(&d->length, 539005);
	return false;
}

/*
 * Both ends have another idea of the response, and the server, which has sent
 * all of it, keeps asking for the ack. The client gives up all the same.
 */
static void disagree(u32 need_ack_us)
{
	struct pair_config cfg;
	struct pair_world *w;
	bool done = false;

	pair_config_default(&cfg);
	cfg.params.resend_interval_us = 5000;
	cfg.params.need_ack_us = need_ack_us;
	w = pair_world_new(&cfg);
	w->tap = lengthen;
	w->tap_arg = &done;
	pair_rpc(w, 0, 1, 12, 14717);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_FAILED), 1);
	pair_finish(w);
}

static void ends__disagree_about_length(void **state)
{
	u32 us;

	(void)state;
	/* Some of these come just before our own question would, each time. */
	for (us = 200; us < 3000; us += 100)
		disagree(us);
}

static void restarts_and_duplicates(u64 seed)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 round, i;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = 3;
	cfg.reply_delay_ns = 2 * PAIR_MS;
	cfg.faults = (struct pair_faults){ .loss = 30,
					   .dup = 300,
					   .reorder = 100,
					   .dup_max_ns = 900 * PAIR_MS,
					   .reorder_max_ns = 100 * PAIR_US };
	w = pair_world_new(&cfg);
	for (round = 0; round < 8; round++) {
		for (i = 0; i < 30; i++)
			pair_rpc(w, (u8)(1 + pair_below(&w->rng_test, 2)), 0,
				 1 + pair_below(&w->rng_test, 20000),
				 1 + pair_below(&w->rng_test, 20000));
		pair_run_for(w, pair_below(&w->rng_test, 20 * PAIR_MS));
		pair_restart(&w->hosts[1 + pair_below(&w->rng_test, 2)]);
	}
	assert_true(pair_run_while_pending(w, 30 * PAIR_S));
	pair_finish(w);
}

/* Clients come and go, old packets wander about: nothing is executed twice. */
static void at_most_once__client_restarts_and_duplicates(void **state)
{
	(void)state;
	each_seed(20, restarts_and_duplicates);
}

static void server_restarts_under_loss(u64 seed)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 round, i;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.reply_delay_ns = 2 * PAIR_MS;
	cfg.faults.loss = 100;
	cfg.rate_mbps = seed & 1 ? 10000 : 200; /* timeouts of 0.1 and 0.8 s */
	w = pair_world_new(&cfg);
	for (round = 0; round < 6; round++) {
		for (i = 0; i < 30; i++)
			pair_rpc(w, 0, 1, 1 + pair_below(&w->rng_test, 20000),
				 1 + pair_below(&w->rng_test, 20000));
		pair_run_for(w, pair_below(&w->rng_test, 8 * PAIR_MS));
		pair_host_stop(&w->hosts[1]);
		pair_run_for(w, pair_below(&w->rng_test, 100 * PAIR_MS));
		pair_host_start(&w->hosts[1]);
		if (pair_chance(&w->rng_test, 500))
			pair_run_for(w, pair_below(&w->rng_test, 1500) * PAIR_MS);
	}
	assert_true(pair_run_while_pending(w, 30 * PAIR_S));
	pair_finish(w);
}

/* A request that ran before the crash must not run again after it. */
static void at_most_once__server_restarts(void **state)
{
	(void)state;
	each_seed(20, server_restarts_under_loss);
}

/*
 * A server that came back guards itself against old requests for a while; each
 * attempt then must not cost all that had been sent of a long request.
 */
static void restart__a_long_request_begins_with_its_unscheduled_bytes(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.rate_mbps = 10000;
	cfg.no_lives = true;
	w = pair_world_new(&cfg);
	for (i = 0; i < 8; i++)
		pair_rpc(w, 0, 1, 1000000, 100);
	pair_run_for(w, 4 * PAIR_MS);
	pair_host_stop(&w->hosts[1]);
	pair_run_for(w, 20 * PAIR_MS);
	pair_host_start(&w->hosts[1]);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_true(pair_metric(w, HOMA_M_restarts) >= 1);
	assert_true(pair_metric(w, HOMA_M_tx_retransmit_bytes) <=
		    pair_metric(w, HOMA_M_restarts) * 150000);
	pair_finish(w);
}

/*
 * A server that has just started ignores what is sent again. What the client's host could
 * not send at first, for want of room or of a neighbour's address, never left.
 */
static void restart__what_never_left_is_no_retransmission(void **state)
{
	static const u32 lengths[] = { 100, 5000, 300000 };
	u32 i, full;

	(void)state;
	for (i = 0; i < 6; i++) {
		struct pair_config cfg;
		struct pair_world *w;
		struct pair_rpc *r;

		full = i & 1;
		pair_config_default(&cfg);
		cfg.params.restart_guard_us = 10000000;
		cfg.params.timeout_us = 20000000;
		w = pair_world_new(&cfg);
		w->cfg.tx_fail = full ? 1000 : 0;
		w->hosts[0].no_way = !full;
		r = pair_rpc(w, 0, 1, lengths[i / 2], 100);
		/* Longer than a client may wait that has sent something. */
		pair_run_for(w, full ? PAIR_MS : 3 * PAIR_S);
		assert_true(w->hosts[0].ctx.metrics[HOMA_M_tx_failed] > 0);
		w->cfg.tx_fail = 0;
		w->hosts[0].no_way = false;
		assert_true(pair_run_while_pending(w, 6 * PAIR_S));
		assert_int_equal(r->state, PAIR_OK);
		assert_int_equal(pair_metric(w, HOMA_M_drop_restart), 0);
		pair_finish(w);
	}
}

/* But what left and was lost may have been executed by the server's former life. */
static void restart__what_left_is_a_retransmission(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	pair_config_default(&cfg);
	cfg.params.restart_guard_us = 10000000;
	cfg.no_lives = true;
	w = pair_world_new(&cfg);
	pair_filter_add(w, HOMA_DATA, 0, 1, 0, 1);
	r = pair_rpc(w, 0, 1, 100, 100);
	pair_run_for(w, 100 * PAIR_US);
	/* Nor does it change that the copy could not be sent at first. */
	w->hosts[0].no_way = true;
	pair_run_for(w, 60 * PAIR_MS);
	w->hosts[0].no_way = false;
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_int_equal(r->state, PAIR_FAILED);
	assert_true(pair_metric(w, HOMA_M_drop_restart) > 0);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(partition__ends_everything),
		cmocka_unit_test(partition__one_way),
		cmocka_unit_test(partition__short_is_survived),
		cmocka_unit_test(client__vanishes),
		cmocka_unit_test(server__vanishes),
		cmocka_unit_test(client__restarts),
		cmocka_unit_test(server__restarts),
		cmocka_unit_test(abort__silently),
		cmocka_unit_test(abort__with_error),
		cmocka_unit_test(close__client),
		cmocka_unit_test(close__server),
		cmocka_unit_test(close__and_open_again),
		cmocka_unit_test(server__slow_application),
		cmocka_unit_test(server__slow_to_take),
		cmocka_unit_test(server__client_gone_while_in_service),
		cmocka_unit_test(ends__disagree_about_length),
		cmocka_unit_test(at_most_once__client_restarts_and_duplicates),
		cmocka_unit_test(at_most_once__server_restarts),
		cmocka_unit_test(
			restart__a_long_request_begins_with_its_unscheduled_bytes),
		cmocka_unit_test(restart__what_never_left_is_no_retransmission),
		cmocka_unit_test(restart__what_left_is_a_retransmission),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
