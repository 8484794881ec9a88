// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * pHost on its own, by what its paper says of it: tokens leave at the rate of
 * the link and nothing else is sent after the free ones; one message fills a
 * link; receivers and senders prefer the shortest; a sender that does not
 * answer delays others only a little; what is lost gets a new token.
 */
#include "packets_world.h"

enum { DATA = 1, RTS, TOKEN, ACK };

#define FREE_PRIO 6
#define TOKEN_PRIO 5

static void phost_one_message__fills_the_link(void **state)
{
	const u32 length = 2000000;
	struct sim_config cfg;
	struct sim_msg *msg;

	(void)state;
	world_cfg(&cfg, &sim_phost, 0);
	world_new(&cfg);
	msg = world_send(1, 143, length);
	world_finish();
	assert_in_range(world_took(msg), world_data_ps(length),
			world_data_ps(length) + world_data_ps(length) / 100 +
				6 * SIM_US);
	assert_int_equal(world.sent[1], (length + 1459) / 1460);
	assert_int_equal(world_metric("tokens"), (length + 1459) / 1460 - 8);
	assert_int_equal(world_metric("tokens_again"), 0);
	assert_int_equal(world_metric("rts_again"), 0);
	world_end();
}

/* The RTS goes first. */
static void phost_one_packet__takes_its_time_alone(void **state)
{
	const u32 lengths[] = { 1, 100, 1460 };
	struct sim_config cfg;
	struct sim_msg *msg;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_phost, 0);
	world_new(&cfg);
	for (i = 0; i < 3; i++) {
		msg = world_send(0, 100, lengths[i]);
		world_run(SIM_MS);
		assert_int_equal(world_took(msg),
				 world_alone_ps(0, 100, lengths[i]) +
					 SIM_MIN_WIRE * 800);
	}
	world_finish();
	assert_int_equal(world_metric("tokens"), 0);
	assert_int_equal(world_metric("rts_again"), 0);
	world_end();
}

/* ---- tokens ---- */

static u64 token_at[4000];
static u32 tokens, with_token, with_free;

static void watch_tokens(struct sim *sim, const struct sim_pkt *pkt)
{
	if (pkt->type == TOKEN && tokens < 4000)
		token_at[tokens++] = sim->now;
	else if (pkt->type == DATA && pkt->prio == TOKEN_PRIO)
		with_token++;
	else if (pkt->type == DATA && pkt->prio == FREE_PRIO)
		with_free++;
}

static void watch(void)
{
	tokens = 0;
	with_token = 0;
	with_free = 0;
	world.watch = watch_tokens;
}

/* So packets with tokens cannot overload the downlink: the k-th is never early. */
static void phost_tokens__leave_at_the_rate_of_the_link(void **state)
{
	struct sim_config cfg;
	u64 last = 0;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_phost, 6);
	world_new(&cfg);
	watch();
	for (i = 1; i <= 5; i++)
		world_send(i, 0, 1460 * 300);
	world_finish();
	assert_true(tokens >= 5 * 292);
	for (i = 1; i < tokens; i++)
		assert_true(token_at[i] + SIM_MIN_WIRE * 800 >=
			    token_at[0] + i * WORLD_PKT_PS);
	assert_true(with_token <= tokens);
	assert_int_equal(with_token + with_free,
			 world.sim->counts.pkts_dropped + 1500 +
				 world_metric("duplicates"));
	assert_true(with_free <= 40 + world.sim->counts.pkts_dropped);
	/* Nearly none is in vain, though five senders began at once. */
	for (i = 0; i < 5; i++)
		if (world.msg[i]->done > last)
			last = world.msg[i]->done;
	assert_in_range(last, world_data_ps(1460 * 1500),
			world_data_ps(1460 * 1500) * 11 / 10);
	world_end();
}

static bool eat_tokens(struct sim *sim, const struct sim_pkt *pkt)
{
	return pkt->type == TOKEN && sim->now < 2 * SIM_MS;
}

static void phost_free__only_the_first_packets(void **state)
{
	struct sim_config cfg;
	struct sim_msg *msg, *small;

	(void)state;
	world_cfg(&cfg, &sim_phost, 3);
	world_new(&cfg);
	watch();
	world.eat = eat_tokens;
	msg = world_send(1, 0, 146000);
	small = world_send(2, 0, 8 * 1460);
	world_run(2 * SIM_MS);
	assert_int_equal(world.sent[1], 8);
	assert_true(small->delivered);
	assert_int_equal(world.sent[2], 8);
	assert_int_equal(with_token, 0);
	assert_true(tokens > 100);
	world_finish();
	assert_int_equal(with_free, 16);
	assert_int_equal(with_token, 92);
	assert_true(world_took(msg) > 2 * SIM_MS);
	world_end();
}

/* ---- who goes first ---- */

static void phost_receiver__shortest_first(void **state)
{
	const u32 length = 40 * 1460;
	struct sim_config cfg;
	struct sim_msg *msg;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_phost, 12);
	world_new(&cfg);
	for (i = 1; i <= 10; i++)
		world_send(i, 0, 1460 * (200 + 40 * i));
	world_run(500 * SIM_US);
	msg = world_send(11, 0, length);
	world_finish();
	/* A fair share would take eleven times as long. */
	assert_in_range(world_took(msg), world_data_ps(length),
			2 * world_data_ps(length));
	for (i = 1; i < 10; i++)
		assert_true(world.msg[i - 1]->done < world.msg[i]->done);
	world_end();
}

/* Of two messages with tokens a sender serves the shorter; the other's tokens expire. */
static void phost_sender__shortest_first(void **state)
{
	struct sim_msg *longer, *shorter;
	const u32 length = 100 * 1460;
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_phost, 4);
	world_new(&cfg);
	longer = world_send(0, 1, 5 * length);
	world_run(100 * SIM_US);
	shorter = world_send(0, 2, length);
	world_finish();
	assert_in_range(world_took(shorter), world_data_ps(length),
			world_data_ps(length) * 5 / 4);
	assert_in_range(longer->done, world_data_ps(6 * length),
			world_data_ps(6 * length) * 5 / 4);
	assert_true(world_metric("tokens_expired") > 0);
	assert_true(world_metric("downgrades") > 0);
	world_end();
}

/* What is left counts, not the length: 20 of 100 packets are fewer than 50. */
static void phost_sender__least_left_first(void **state)
{
	struct sim_msg *longer, *shorter;
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_phost, 3);
	world_new(&cfg);
	longer = world_send(0, 1, 100 * 1460);
	world_run(80 * WORLD_PKT_PS);
	shorter = world_send(0, 2, 50 * 1460);
	world_finish();
	/* Between the free packets and the first with a token lies a round trip. */
	assert_in_range(longer->done, world_data_ps(longer->length),
			world_data_ps(longer->length) + 14 * SIM_US);
	assert_true(shorter->done > longer->done);
	world_end();
}

/* Of a host's messages that could be given a token the one that lacks least is. */
static void phost_tokens__to_the_least_missing(void **state)
{
	struct sim_msg *longer, *shorter;
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_phost, 3);
	world_new(&cfg);
	longer = world_send(1, 0, 300 * 1460);
	world_run(20 * WORLD_PKT_PS);
	shorter = world_send(2, 0, 100 * 1460);
	world_finish();
	/* A round trip, and its window less what the other one has in the port. */
	assert_in_range(world_took(shorter), world_data_ps(shorter->length),
			world_data_ps(shorter->length) * 3 / 2);
	assert_in_range(longer->done, world_data_ps(400 * 1460),
			world_data_ps(400 * 1460) * 11 / 10);
	world_end();
}

static u64 granted_at[1000];

static bool note_tokens(struct sim *sim, const struct sim_pkt *pkt)
{
	if (pkt->type == TOKEN && pkt->src == 1)
		granted_at[pkt->x[0]] = sim->now;
	return false;
}

static void watch_expiry(struct sim *sim, const struct sim_pkt *pkt)
{
	if (pkt->type == DATA && pkt->dst == 1)
		assert_true(sim->now <=
			    granted_at[pkt->x[0]] + WORLD_PKT_PS * 3 / 2);
}

static void phost_tokens__expire(void **state)
{
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_phost, 4);
	cfg.option[0] = 0; /* no free tokens */
	world_new(&cfg);
	world.eat = note_tokens;
	world.watch = watch_expiry;
	memset(granted_at, 0, sizeof(granted_at));
	world_send(0, 1, 500 * 1460);
	world_run(100 * SIM_US);
	world_send(0, 2, 100 * 1460);
	world_finish();
	assert_true(world_metric("tokens_expired") > 0);
	world_end();
}

static bool eat_at_1(struct sim *sim, const struct sim_pkt *pkt)
{
	return pkt->type == TOKEN && pkt->dst == 1 && sim->now < 20 * SIM_MS;
}

static u64 beside_a_silent_one(u64 window)
{
	struct sim_msg *silent, *other;
	struct sim_config cfg;
	u64 took;

	world_cfg(&cfg, &sim_phost, 3);
	cfg.option[1] = window;
	world_new(&cfg);
	world.eat = eat_at_1;
	silent = world_send(1, 0, 1460 * 500);
	other = world_send(2, 0, 1460 * 1000);
	world_run(20 * SIM_MS);
	assert_false(silent->delivered);
	took = world_took(other);
	assert_true(world_metric("downgrades") > 3);
	world_finish();
	world_end();
	return took;
}

/* The shorter message's sender is deaf: 8 of 8 + 25 packet times are given to it. */
static void phost_silent_sender__does_not_block_others(void **state)
{
	u64 alone = world_data_ps(1460 * 1000), took;

	(void)state;
	took = beside_a_silent_one(8);
	assert_in_range(took, alone, alone + alone * 2 / 5);
	/* It is the window that protects the other one. */
	assert_true(beside_a_silent_one(100) > 2 * took);
}

/* ---- loss ---- */

static u32 seen[3];

static bool eat_first(struct sim *sim, const struct sim_pkt *pkt)
{
	(void)sim;
	if (pkt->type == RTS)
		return seen[0]++ == 0;
	if (pkt->type == DATA)
		return seen[1]++ == 0;
	return pkt->type == ACK && seen[2]++ == 0;
}

/* RTS and only packet are lost, then the acknowledgement: the RTS repairs both. */
static void phost_rts__comes_again(void **state)
{
	struct sim_config cfg;
	struct sim_msg *msg;

	(void)state;
	world_cfg(&cfg, &sim_phost, 2);
	world_new(&cfg);
	memset(seen, 0, sizeof(seen));
	world.eat = eat_first;
	msg = world_send(0, 1, 1000);
	world_finish();
	assert_in_range(world_took(msg), 45 * SIM_US, 45 * SIM_US + 25 * SIM_US);
	assert_int_equal(world_metric("tokens"), 1);
	assert_int_equal(world_metric("rts_again"), 2);
	assert_int_equal(world.sent[1], 2);
	world_end();
}

static bool eat_data(struct sim *sim, const struct sim_pkt *pkt)
{
	return pkt->type == DATA && sim->now < 10 * SIM_MS;
}

/* Tokens in vain become rare. */
static void phost_silence__tokens_become_rare(void **state)
{
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_phost, 2);
	world_new(&cfg);
	world.eat = eat_data;
	world_send(0, 1, 1000);
	world_run(10 * SIM_MS);
	/* After 11, 22, 44 us and so on, then every 0.7 ms. */
	assert_in_range(world_metric("tokens"), 12, 24);
	world_finish();
	world_end();
}

static u32 eat_seq;

static bool eat_one(struct sim *sim, const struct sim_pkt *pkt)
{
	(void)sim;
	return pkt->type == DATA && pkt->x[0] == eat_seq && seen[0]++ == 0;
}

static u64 loss_of_one(u32 seq)
{
	struct sim_config cfg;
	struct sim_msg *msg;
	u64 took;

	world_cfg(&cfg, &sim_phost, 2);
	world_new(&cfg);
	memset(seen, 0, sizeof(seen));
	world.eat = eat_one;
	eat_seq = seq;
	msg = world_send(0, 1, 1460 * 20);
	world_finish();
	assert_int_equal(world_metric("tokens_again"), 1);
	assert_int_equal(world_metric("duplicates"), 0);
	assert_int_equal(world.sent[1], 21);
	took = world_took(msg);
	world_end();
	return took;
}

static void phost_one_loss__a_new_token(void **state)
{
	(void)state;
	/* Others overtake it, so that nobody has to wait. */
	assert_in_range(loss_of_one(3), 21 * WORLD_PKT_PS,
			24 * WORLD_PKT_PS + 6 * SIM_US);
	/* Nothing comes after it: nine packet times of patience, a token, the packet. */
	assert_in_range(loss_of_one(19), 29 * WORLD_PKT_PS,
			29 * WORLD_PKT_PS + 16 * SIM_US);
}

/* Free packets of a hundred senders do not fit the port; all arrives, and not too late. */
static void phost_incast__all_arrives(void **state)
{
	const u32 senders = 100, length = 73000;
	u64 best = senders * world_data_ps(length), last = 0;
	struct sim_config cfg;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_phost, senders + 1);
	world_new(&cfg);
	for (i = 1; i <= senders; i++)
		world_send(i, 0, length);
	world_finish();
	for (i = 0; i < senders; i++)
		if (world.msg[i]->done > last)
			last = world.msg[i]->done;
	assert_true(world.sim->counts.pkts_dropped > 500);
	assert_in_range(last, best, best + best / 3);
	world_end();
}

/* The setting that is for comparison with the paper's own simulations. */
static void phost_bare_sizes__as_simulated_by_its_authors(void **state)
{
	struct sim_config cfg;
	struct sim_msg *msg;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_phost, 2);
	for (i = 0; sim_phost.options[i].name; i++)
		if (!strcmp(sim_phost.options[i].name, "bare-sizes"))
			cfg.option[i] = 1;
	world_new(&cfg);
	msg = world_send(1, 0, 1460 * 100);
	world_finish();
	/* RTS, data, tokens, ACK */
	assert_int_equal(world.sim->counts.wire_sent,
			 40 + 100 * 1500 + 92 * 40 + 40);
	assert_in_range(world_took(msg), 100 * 1500 * 800,
			100 * 1500 * 800 + 12 * SIM_US);
	world_end();
}

static void phost_storms__all_arrives(void **state)
{
	(void)state;
	world_test_storms(&sim_phost);
}

static void phost_failure__all_arrives(void **state)
{
	(void)state;
	world_test_failure(&sim_phost);
}

static void phost_stop__in_the_middle(void **state)
{
	(void)state;
	world_test_stop(&sim_phost);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phost_one_message__fills_the_link),
		cmocka_unit_test(phost_one_packet__takes_its_time_alone),
		cmocka_unit_test(phost_tokens__leave_at_the_rate_of_the_link),
		cmocka_unit_test(phost_free__only_the_first_packets),
		cmocka_unit_test(phost_receiver__shortest_first),
		cmocka_unit_test(phost_sender__shortest_first),
		cmocka_unit_test(phost_sender__least_left_first),
		cmocka_unit_test(phost_tokens__to_the_least_missing),
		cmocka_unit_test(phost_tokens__expire),
		cmocka_unit_test(phost_silence__tokens_become_rare),
		cmocka_unit_test(phost_silent_sender__does_not_block_others),
		cmocka_unit_test(phost_rts__comes_again),
		cmocka_unit_test(phost_one_loss__a_new_token),
		cmocka_unit_test(phost_incast__all_arrives),
		cmocka_unit_test(phost_bare_sizes__as_simulated_by_its_authors),
		cmocka_unit_test(phost_storms__all_arrives),
		cmocka_unit_test(phost_failure__all_arrives),
		cmocka_unit_test(phost_stop__in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
