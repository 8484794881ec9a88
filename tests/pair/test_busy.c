/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Very many requests that a server has and does not answer for long: how often
 * their client asks, and that it still learns of all ends in time.
 */
#include "pair_test.h"

#define MANY 3000u
#define REPLY_NS (3 * PAIR_S)
#define INTERVAL_NS (5 * PAIR_MS)
#define TIMEOUT_NS (100 * PAIR_MS)
/* of all of them together, once they are known */
#define ASKED_PER_INTERVAL 16u

static struct pair_world *world(u64 seed)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.seed = pair_seed(seed);
	cfg.hosts = 2;
	cfg.pool_pages = 2 * MANY / 100;
	cfg.params.resend_interval_us = (u32)(INTERVAL_NS / PAIR_US);
	cfg.params.timeout_us = (u32)(TIMEOUT_NS / PAIR_US);
	return pair_world_new(&cfg);
}

static u64 resends(const struct pair_world *w)
{
	return w->by_type[HOMA_RESEND - HOMA_TYPE_FIRST];
}

/* MANY requests in service, for so long from now. */
static void start_many(struct pair_world *w, u64 reply_ns)
{
	u32 i;

	for (i = 0; i < MANY; i++) {
		struct pair_rpc *rpc = pair_rpc(w, 0, 1, 100, 100);

		rpc->reply_delay = reply_ns;
		rpc->reply_delay_set = true;
		if (i % 100 == 99)
			pair_run_for(w, PAIR_MS);
	}
}

static void busy__is_asked_so_often_and_no_more(void **state)
{
	struct pair_world *w = world(1);
	u64 early, late;
	u32 i;

	(void)state;
	start_many(w, REPLY_NS);
	pair_run_for(w, PAIR_S);
	early = resends(w);
	pair_run_for(w, PAIR_S);
	late = resends(w) - early;
	pair_check(w, late <= PAIR_S / INTERVAL_NS * ASKED_PER_INTERVAL,
		   "%llu RESENDs in a second", (unsigned long long)late);
	/* Not one less either: who is not asked for is forgotten unnoticed. */
	pair_check(w, late > PAIR_S / INTERVAL_NS * ASKED_PER_INTERVAL / 2,
		   "%llu RESENDs in a second", (unsigned long long)late);
	pair_check(w,
		   early <= 3 * MANY + PAIR_S / INTERVAL_NS * ASKED_PER_INTERVAL,
		   "%llu RESENDs at first", (unsigned long long)early);
	assert_true(pair_run_while_pending(w, 3 * PAIR_S));
	for (i = 0; i < w->num_rpcs; i++)
		pair_check(w, w->book[i]->state == PAIR_OK, "rpc %u", i);
	pair_finish(w);
}

/* One by itself is asked for as ever. */
static void busy__one_alone_does_not_wait_for_others(void **state)
{
	struct pair_world *w = world(2);
	struct pair_rpc *rpc = pair_rpc(w, 0, 1, 100, 100);

	(void)state;
	rpc->reply_delay = PAIR_S;
	rpc->reply_delay_set = true;
	assert_true(pair_run_while_pending(w, 2 * PAIR_S));
	assert_int_equal(rpc->state, PAIR_OK);
	pair_check(w, resends(w) >= PAIR_S / (TIMEOUT_NS / 4) - 4,
		   "%llu RESENDs", (unsigned long long)resends(w));
	pair_finish(w);
}

/* All responses are lost: the server speaks up, nobody waits for his turn to ask. */
static void busy__lost_responses_come_again(void **state)
{
	struct pair_world *w = world(3);
	u64 answered;
	u32 i;

	(void)state;
	start_many(w, PAIR_S);
	pair_run_for(w, 900 * PAIR_MS);
	w->paths[1][0].cut = true;
	pair_run_for(w, 160 * PAIR_MS);
	w->paths[1][0].cut = false;
	answered = w->now;
	assert_true(pair_run_while_pending(w, PAIR_S));
	for (i = 0; i < w->num_rpcs; i++) {
		const struct pair_rpc *rpc = w->book[i];

		pair_check(w,
			   rpc->state == PAIR_OK || rpc->error == HOMA_ETIMEDOUT,
			   "rpc %u ended with %d", i, rpc->error);
		pair_check(w, rpc->end < answered + TIMEOUT_NS,
			   "rpc %u waited %llu ms", i,
			   (unsigned long long)(rpc->end - answered) / PAIR_MS);
	}
	pair_finish(w);
}

/* Its turn may be seconds away, its end is not. */
static void busy__a_server_that_vanishes_is_noticed(void **state)
{
	struct pair_world *w = world(4);
	u64 gone;
	u32 i;

	(void)state;
	start_many(w, 100 * PAIR_S);
	pair_run_for(w, PAIR_S);
	gone = w->now;
	pair_cut(w, 0, 1, true);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	for (i = 0; i < w->num_rpcs; i++)
		pair_check(w,
			   w->book[i]->error == HOMA_ETIMEDOUT &&
				   w->book[i]->end < gone + 3 * TIMEOUT_NS,
			   "rpc %u: %d after %llu ms", i, w->book[i]->error,
			   (unsigned long long)(w->book[i]->end - gone) / PAIR_MS);
	for (i = 0; i < w->num_rpcs; i++)
		pair_rpc_forget(w, w->book[i]);
	pair_finish(w);
}

/* ---- what is lost after BUSY is noticed as soon as anything that is lost ---- */

/* One RPC, of whose packets @lost loses some; the time that it took. */
static u64 one_with_losses(const struct pair_filter *lost, u32 num, u32 request,
			   u32 response, u64 reply_ns)
{
	struct pair_world *w = world(5);
	struct pair_rpc *rpc;
	u64 took;
	u32 i;

	pair_rpc(w, 0, 1, 10, 10);
	pair_run_while_pending(w, PAIR_S);
	pair_drain(w, PAIR_S);
	for (i = 0; i < num; i++)
		pair_filter_add(w, lost[i].type, lost[i].src, PAIR_ANY,
				lost[i].skip, lost[i].count);
	rpc = pair_rpc(w, 0, 1, request, response);
	rpc->reply_delay = reply_ns;
	rpc->reply_delay_set = true;
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(rpc->state, PAIR_OK);
	assert_true(w->by_type[HOMA_BUSY - HOMA_TYPE_FIRST] > 0);
	took = rpc->end - rpc->start;
	pair_finish(w);
	return took;
}

/* The client heard BUSY as the request was not whole; then it lacks the response's end. */
static void busy__over_when_the_response_begins(void **state)
{
	static const struct pair_filter lost[] = {
		{ .type = HOMA_DATA, .src = 0, .skip = 3, .count = 1 },
		{ .type = HOMA_DATA, .src = 1, .skip = 3, .count = 1 },
	};
	u64 took = one_with_losses(lost, 2, 5500, 5500, 0);

	(void)state;
	assert_in_range(took, INTERVAL_NS, 3 * INTERVAL_NS);
}

/* So it is if nothing of the response comes: the server asks for what it lacks, which says
 * something else than BUSY. */
static void busy__over_when_the_server_asks(void **state)
{
	static const struct pair_filter lost[] = {
		{ .type = HOMA_DATA, .src = 0, .skip = 3, .count = 1 },
		{ .type = HOMA_DATA, .src = 1, .skip = 0, .count = 1 },
	};
	u64 took = one_with_losses(lost, 2, 5500, 100, 0);

	(void)state;
	assert_in_range(took, INTERVAL_NS, 3 * INTERVAL_NS);
}

/* A server that took its time is not BUSY any more when it wants to know what has become of
 * its response. */
static void busy__over_when_the_server_wants_an_ack(void **state)
{
	static const struct pair_filter lost = { .type = HOMA_DATA,
						 .src = 1,
						 .count = 1 };
	u64 took = one_with_losses(&lost, 1, 100, 100, 2 * INTERVAL_NS);

	(void)state;
	assert_in_range(took, 2 * INTERVAL_NS, 4 * INTERVAL_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy__is_asked_so_often_and_no_more),
		cmocka_unit_test(busy__one_alone_does_not_wait_for_others),
		cmocka_unit_test(busy__lost_responses_come_again),
		cmocka_unit_test(busy__a_server_that_vanishes_is_noticed),
		cmocka_unit_test(busy__over_when_the_response_begins),
		cmocka_unit_test(busy__over_when_the_server_asks),
		cmocka_unit_test(busy__over_when_the_server_wants_an_ack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
