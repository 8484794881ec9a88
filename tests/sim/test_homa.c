// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * sim/protocol/homa/homa*.c: settings of the studies, who goes first, what is held back,
 * which packets a message consists of, and how failures end.
 */
#include "sim_homa.h"

#include "homa_wire.h"

/* A look at packets as they leave their hosts. */
struct seen {
	struct sim_tap tap;
	u32 data, grants, other, retransmits;
	u64 prio_bytes[8];
	u8 last_prio[4]; /* of DATA from host i */
	u32 first[64];	 /* who sent the i-th DATA packet */
	u8 prio[64];
	u32 n;
};

static void see_sent(void *arg, struct sim *sim, const struct sim_pkt *pkt)
{
	struct seen *seen = arg;

	(void)sim;
	if (pkt->type == HOMA_GRANT) {
		seen->grants++;
		assert_true(pkt->flags & SIM_CONTROL);
	} else if (pkt->type != HOMA_DATA) {
		seen->other++;
	} else {
		seen->data++;
		seen->retransmits += !!(pkt->flags & SIM_RETRANSMIT);
		assert_non_null(sim_pkt_msg(pkt));
		seen->prio_bytes[pkt->prio] += pkt->payload;
		if (seen->n < 64) {
			seen->prio[seen->n] = pkt->prio;
			seen->first[seen->n++] = pkt->msg->length;
		}
	}
}

static struct sim *see(const struct sim_config *cfg, struct seen *seen)
{
	struct sim *sim = world_new(cfg);

	memset(seen, 0, sizeof(*seen));
	seen->tap.arg = seen;
	seen->tap.sent = see_sent;
	sim->taps = &seen->tap;
	return sim;
}

/* ---- settings ---- */

static void preset__unknown(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	strcpy(cfg.preset, "windows");
	assert_int_equal(sim_homa.defaults(&cfg), -EINVAL);
	strcpy(cfg.preset, "linux");
	assert_int_equal(sim_homa.defaults(&cfg), 0);
	assert_int_equal(sim_homa.set(&cfg, "no_such_setting", 1), -EINVAL);
	assert_int_equal(sim_homa.set(&cfg, "max_overcommit", 33), -EINVAL);
	assert_int_equal(sim_homa.set(&cfg, "max_overcommit", 1ull << 32),
			 -EINVAL);
	assert_int_equal(sim_homa.set(&cfg, "max_overcommit", 5), 0);
	assert_int_equal(cfg.homa.max_overcommit, 5);
}

static void expect_levels(const struct sim_config *cfg, u32 total,
			  u32 unscheduled, u32 overcommit)
{
	const struct homa_params *p;

	world_new(cfg);
	p = homa_engine_params(world_host(0)->engine);
	assert_int_equal(p->num_priorities, total);
	assert_int_equal(p->unsched_levels, unscheduled);
	assert_int_equal(p->max_overcommit, overcommit);
	world_end();
}

static void preset__levels_of_the_study(void **state)
{
	static const struct {
		const char *name;
		u32 scheduled;
	} w[] = { { "w1", 1 }, { "w2", 3 }, { "w3", 4 },
		  { "w4", 7 }, { "w5", 7 }, { "fixed:5000", 7 } };
	struct sim_config cfg;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(w); i++) {
		cfg = world_one_switch("sigcomm18", 4);
		strcpy(cfg.workload, w[i].name);
		expect_levels(&cfg, 8, 8 - w[i].scheduled, w[i].scheduled);
	}
	cfg = world_one_switch("sigcomm18", 4);
	cfg.option[SIM_HOMA_SCHEDULED] = 3; /* Figure 13 */
	expect_levels(&cfg, 4, 1, 3);
	strcpy(cfg.workload, "w1");
	cfg.option[SIM_HOMA_SCHEDULED] = 0;
	cfg.option[SIM_HOMA_UNSCHEDULED] = 2;
	expect_levels(&cfg, 3, 2, 1);
	assert_int_equal(sim_homa.set(&cfg, "max_overcommit", 4), 0);
	expect_levels(&cfg, 6, 2, 4);
	cfg = world_one_switch("linux", 4);
	expect_levels(&cfg, 8, 0, 8);
}

static void preset__cutoffs_of_the_study(void **state)
{
	static const u32 w3[] = { 433, 2339, 6756 };
	struct sim_config cfg = world_one_switch("sigcomm18", 4);
	struct seen seen;
	u32 i, at;

	(void)state;
	strcpy(cfg.workload, "w3");
	see(&cfg, &seen);
	for (i = 0; i < 3; i++) {
		for (at = 0; at < 2; at++) {
			seen.n = 0;
			world_send(0, 1, w3[i] + at);
			sim_run(homa_world.sim, homa_world.sim->now + SIM_MS);
			assert_int_equal(seen.prio[0], 7 - i - at);
		}
	}
	world_end();
}

/* ---- packets ---- */

/* A message of n packets: n DATA, a GRANT for each that is not unscheduled, and
 * nothing else, not even when it is over. */
static void oneway__packets_of_a_message(void **state)
{
	struct sim_config cfg = world_one_switch("sigcomm18", 3);
	struct seen seen;
	u32 n;

	(void)state;
	for (n = 1; n < 200; n += n < 12 ? 1 : 37) {
		see(&cfg, &seen);
		world_send(0, 1, n * 1442);
		sim_run(homa_world.sim, 2 * SIM_MS);
		assert_int_equal(seen.data, n);
		/* Between two hosts of one switch RTTbytes fill six packets. */
		assert_int_equal(seen.grants, n > 6 ? n - 6 : 0);
		assert_int_equal(seen.other, 0);
		assert_int_equal(homa_world.delivered, 1);
		world_end();
	}
}

/* The first RTTbytes and the last ones go at unscheduled priority, the others
 * at the lowest, for there is no other message. */
static void oneway__levels_of_a_message(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");
	struct seen seen;

	(void)state;
	see(&cfg, &seen);
	world_send(0, 100, 40 * 1442);
	world_end();
	/* 7 packets are unscheduled; 6 are the last 9328 bytes. */
	assert_int_equal(seen.prio_bytes[7], 13 * 1442);
	assert_int_equal(seen.prio_bytes[0], 27 * 1442);
}

static void rpc__acknowledged_by_the_engine(void **state)
{
	struct sim_config cfg = world_one_switch("linux", 3);
	struct seen seen;

	(void)state;
	see(&cfg, &seen);
	world_send(0, 1, 100);
	world_end();
	assert_int_equal(homa_world.delivered, 2);
	assert_int_equal(seen.data, 2);
	/* NEED_ACK and ACK, because no other request carries the ack. */
	assert_int_equal(seen.other, 2);
}

/* ---- who goes first ---- */

/* Of messages that are sent at once the sender sends the shortest first. */
static void srpt__at_the_sender(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");
	struct sim_msg *lng, *shrt;
	struct seen seen;
	u32 i;

	(void)state;
	see(&cfg, &seen);
	lng = world_send(0, 100, 9000);
	shrt = world_send(0, 50, 3000);
	sim_run(homa_world.sim, SIM_MS);
	assert_true(lng->delivered && shrt->delivered);
	/* One packet of the long one was on the wire already. */
	assert_int_equal(seen.first[0], 9000);
	for (i = 1; i < 4; i++)
		assert_int_equal(seen.first[i], 3000);
	for (; i < 10; i++)
		assert_int_equal(seen.first[i], 9000);
	assert_true(shrt->done < lng->done);
	world_end();
}

/* Messages from many hosts to one, all longer than RTTbytes, finish in order of
 * length, and the shortest nearly as fast as alone. */
static void srpt__at_the_receiver(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");
	struct sim *sim = world_new(&cfg);
	u64 ideal;
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++)
		world_send(20 * (i + 1), 0, 400000 - 60000 * i);
	sim_run(sim, 20 * SIM_MS);
	for (i = 0; i < 4; i++)
		assert_true(homa_world.msg[i + 1]->done < homa_world.msg[i]->done);
	/* All that came unscheduled was before it. */
	ideal = sim_ideal_ps(sim, 100, 0, 160000);
	assert_true(homa_world.msg[4]->done < ideal + 5 * 7 * 1538 * 800ull);
	world_end();
}

/* With one message granted to at a time the others are held back, and their
 * receiver's link is idle when the one's sender is busy elsewhere. */
static void withheld__is_waste_when_the_sender_is_busy(void **state)
{
	struct sim_config cfg = world_one_switch("sigcomm18", 4);
	struct sim *sim;
	u64 waste[2];
	u32 i;

	(void)state;
	for (i = 0; i < 2; i++) {
		cfg.option[SIM_HOMA_SCHEDULED] = 1 + i;
		sim = world_new(&cfg);
		world_send(1, 0, 100000); /* chosen by host 0 ... */
		world_send(2, 0, 300000);
		sim_run(sim, 20 * SIM_US);
		world_send(1, 3, 50000); /* ... but its sender has shorter work */
		sim_run(sim, 30 * SIM_US);
		assert_int_equal(sim->hosts[0].withheld, 1 - i);
		sim_run(sim, 10 * SIM_MS);
		waste[i] = sim->hosts[0].waste_ps;
		world_end();
	}
	/* 50 KB take 42 us. */
	assert_true(waste[0] > 25 * SIM_US && waste[0] < 45 * SIM_US);
	assert_int_equal(waste[1], 0);
}

/* ---- network cards ---- */

/* Without a card a short message waits for the packet that is leaving. With one it waits for
 * those, too, that the pacer has given the card; and the link idles in neither case. */
static void card__a_short_message_waits_for_what_it_holds(void **state)
{
	struct sim_config cfg = world_one_switch("linux", 3);
	u64 packet = (cfg.mtu + 38) * 8000000ull / cfg.host_mbps; /* ps */
	u64 longest[2] = { 0 }, all[2], waited;			  /* ps */
	struct sim *sim;
	u32 i, n;

	(void)state;
	for (i = 0; i < 2; i++) {
		cfg.option[SIM_HOMA_CARD] = i;
		sim = world_new(&cfg);
		world_send(0, 1, 1000000);
		for (n = 1; n <= 20; n++) {
			sim_run(sim, 60 * SIM_US + n * 7 * SIM_US);
			world_send(0, 2, 100);
		}
		sim_run(sim, 2 * SIM_MS);
		all[i] = homa_world.msg[0]->done - homa_world.msg[0]->created;
		for (n = 1; n < homa_world.msgs; n++) {
			struct sim_msg *msg = homa_world.msg[n];

			if (msg->src || msg->request)
				continue;
			waited = msg->done - msg->created -
				 sim_ideal_ps(sim, 0, 2, 100);
			if (waited > longest[i])
				longest[i] = waited;
		}
		assert_int_equal(homa_world.delivered, homa_world.msgs);
		world_end();
	}
	assert_true(longest[0] > 0 && longest[0] <= packet);
	assert_true(longest[1] > 2 * packet &&
		    longest[1] <= cfg.homa.max_nic_backlog_us * SIM_US + packet);
	/* The pacer's margin: at most as many percent as the setting leaves free, and one. */
	assert_true(all[1] >= all[0] &&
		    all[1] * 100 <= all[0] * (201 - cfg.homa.max_link_usage));
}

/* ---- failures ---- */

static void fail__a_host_that_is_cut_off(void **state)
{
	struct sim_config cfg = world_one_switch("linux", 3);
	struct sim *sim;

	(void)state;
	cfg.num_failures = 1;
	cfg.failures[0] = (struct sim_failure){
		.node = 1, .peer = 3, .from = 100 * SIM_US, .until = SIM_NEVER
	};
	sim = world_new(&cfg);
	world_send(0, 1, 1000000);
	world_send(0, 2, 1000000);
	world_send(2, 1, 100);
	sim_run(sim, SIM_S);
	/* The one that was over before, the two that went elsewhere. */
	assert_int_equal(homa_world.failed, 1);
	assert_int_equal(homa_world.delivered, 4);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(preset__unknown),
		cmocka_unit_test(preset__levels_of_the_study),
		cmocka_unit_test(preset__cutoffs_of_the_study),
		cmocka_unit_test(oneway__packets_of_a_message),
		cmocka_unit_test(oneway__levels_of_a_message),
		cmocka_unit_test(rpc__acknowledged_by_the_engine),
		cmocka_unit_test(srpt__at_the_sender),
		cmocka_unit_test(srpt__at_the_receiver),
		cmocka_unit_test(withheld__is_waste_when_the_sender_is_busy),
		cmocka_unit_test(card__a_short_message_waits_for_what_it_holds),
		cmocka_unit_test(fail__a_host_that_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
