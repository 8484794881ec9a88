// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * NDP on its own, by what its paper says of it: an incast is over in nearly the
 * time that its bytes take, without a time-out; trimmed packets come again;
 * PULLs leave at the rate of the link; one flow fills it, several share it.
 */
#include "unit.h"

#include "sim_transport.h"

#define MESSAGES 256
#define PULLS 20000

/* One run: its messages, and what a test wants to see of it. */
struct run {
	struct sim *sim;
	struct sim_tap tap;
	struct sim_msg *msg[MESSAGES];
	u32 num;
	u32 watch;	    /* host whose PULLs are noted */
	u64 pull_at[PULLS]; /* ps */
	u32 pulls;
	u64 data_sent, first_copies;
};

static void run_sent(void *arg, struct sim *sim, const struct sim_pkt *pkt)
{
	struct run *run = arg;

	if (!(pkt->flags & SIM_CONTROL)) {
		run->data_sent++;
		run->first_copies += !(pkt->flags & SIM_RETRANSMIT);
	} else if (pkt->src == run->watch && pkt->type == 4 &&
		   run->pulls < PULLS) {
		run->pull_at[run->pulls++] = sim->now;
	}
}

static void config(struct sim_config *cfg, u32 hosts)
{
	sim_config_default(cfg);
	cfg->transport = &sim_ndp;
	assert_int_equal(sim_ndp.defaults(cfg), 0);
	if (hosts) {
		cfg->topology = SIM_ONE_SWITCH;
		cfg->hosts = hosts;
	}
}

static struct run *run_new(const struct sim_config *cfg)
{
	struct run *run = calloc(1, sizeof(*run));
	char err[256] = "";

	assert_non_null(run);
	run->sim = sim_new(cfg, err, sizeof(err));
	if (!run->sim)
		fail_msg("%s", err);
	run->tap.arg = run;
	run->tap.sent = run_sent;
	run->tap.next = run->sim->taps;
	run->sim->taps = &run->tap;
	run->watch = 0;
	return run;
}

static void run_free(struct run *run)
{
	sim_free(run->sim);
	free(run);
}

static struct sim_msg *run_send(struct run *run, u32 src, u32 dst, u32 length)
{
	struct sim_msg *msg = sim_msg_new(run->sim);

	assert_non_null(msg);
	assert_true(run->num < MESSAGES);
	msg->src = (u16)src;
	msg->dst = (u16)dst;
	msg->length = length;
	run->msg[run->num++] = msg;
	sim_send(run->sim, msg);
	return msg;
}

/* Everything arrives; afterwards nothing is left over and nothing was lost unseen. */
static u64 run_finish(struct run *run)
{
	const struct sim_counts *counts = &run->sim->counts;
	u64 last = 0;
	u32 i;

	sim_run(run->sim, SIM_NEVER);
	for (i = 0; i < run->num; i++) {
		assert_true(run->msg[i]->delivered);
		assert_int_equal(run->msg[i]->refs, 1);
		if (run->msg[i]->done > last)
			last = run->msg[i]->done;
	}
	assert_int_equal(counts->msgs_failed, 0);
	assert_int_equal(counts->pkts_live, 0);
	assert_int_equal(counts->pkts_sent,
			 counts->pkts_received + counts->pkts_dropped);
	assert_int_equal(counts->wire_sent, counts->wire_received +
						    counts->wire_dropped +
						    counts->wire_trimmed);
	return last;
}

struct wanted {
	const char *name;
	double value;
};

static void metric_put(void *arg, const char *name, double value)
{
	struct wanted *w = arg;

	if (!strcmp(name, w->name))
		w->value = value;
}

static u64 metric(struct run *run, const char *name)
{
	struct wanted w = { name, -1 };

	sim_ndp.metrics(run->sim, metric_put, &w);
	assert_true(w.value >= 0);
	return (u64)w.value;
}

/* Picoseconds that the DATA packets of a message take at 10 Gbit/s. */
static u64 data_ps(u32 length)
{
	u64 wire = (u64)(length / 1460) * 1538;

	if (length % 1460)
		wire += sim_wire(40 + length % 1460);
	return wire * 800;
}

static void ndp_one_flow__fills_the_link(void **state)
{
	const u32 length = 2000000;
	struct sim_config cfg;
	struct run *run;
	u64 took;

	(void)state;
	config(&cfg, 0); /* the 144 hosts, across racks */
	run = run_new(&cfg);
	run_send(run, 1, 143, length);
	took = run_finish(run);
	assert_true(took >= data_ps(length));
	assert_in_range(took, data_ps(length), data_ps(length) + 10 * SIM_US);
	assert_int_equal(metric(run, "timeouts"), 0);
	assert_int_equal(run->data_sent, (length + 1459) / 1460);
	run_free(run);
}

static void ndp_incast__near_the_optimum_without_timeouts(void **state)
{
	const u32 senders = 100, length = 73000;
	struct sim_config cfg;
	struct run *run;
	u64 best, took, packets = senders * (length / 1460);
	u32 i;

	(void)state;
	config(&cfg, senders + 1);
	run = run_new(&cfg);
	for (i = 1; i <= senders; i++)
		run_send(run, i, 0, length);
	took = run_finish(run);
	best = senders * data_ps(length);
	assert_true(took > best);
	assert_in_range(took, best, best + best / 20);
	assert_int_equal(metric(run, "timeouts"), 0);
	assert_int_equal(metric(run, "probes"), 0);
	assert_int_equal(run->sim->counts.pkts_dropped, 0);
	/* Nearly all of the first windows is trimmed, and only that. */
	assert_true(metric(run, "trimmed_arrivals") >
		    senders * metric(run, "first_window") / 2);
	assert_int_equal(metric(run, "retransmits"),
			 metric(run, "trimmed_arrivals"));
	assert_int_equal(run->data_sent, packets + metric(run, "retransmits"));
	assert_int_equal(run->first_copies, packets);
	run_free(run);
}

/* The k-th PULL is never early, and while there is demand hardly late. */
static void ndp_pulls__leave_at_the_rate_of_the_link(void **state)
{
	const u64 packet_ps = 1538 * 800, control_ps = 84 * 800;
	struct sim_config cfg;
	struct run *run;
	u32 i;

	(void)state;
	config(&cfg, 21);
	run = run_new(&cfg);
	for (i = 1; i <= 20; i++)
		run_send(run, i, 0, 292000);
	run_finish(run);
	assert_true(run->pulls > 20 * 180);
	for (i = 1; i < run->pulls; i++) {
		u64 due = run->pull_at[0] + i * packet_ps;

		assert_true(run->pull_at[i] + 3 * control_ps >= due);
		assert_true(run->pull_at[i] <= due + 3 * control_ps);
	}
	run_free(run);
}

static void ndp_fair__equal_messages_end_together(void **state)
{
	const u32 senders = 10, length = 730000;
	u64 first = SIM_NEVER, last;
	struct sim_config cfg;
	struct run *run;
	u32 i;

	(void)state;
	config(&cfg, senders + 1);
	run = run_new(&cfg);
	for (i = 1; i <= senders; i++)
		run_send(run, i, 0, length);
	last = run_finish(run);
	for (i = 0; i < senders; i++)
		if (run->msg[i]->done < first)
			first = run->msg[i]->done;
	assert_in_range(last - first, 0, last / 33);
	run_free(run);
}

/* A shorter message among long ones: a fair share, or all that its window can take. */
static u64 short_among_long(bool srpt)
{
	struct sim_config cfg;
	struct sim_msg *msg;
	struct run *run;
	u64 took;
	u32 i;

	config(&cfg, 12);
	cfg.option[2] = srpt;
	run = run_new(&cfg);
	for (i = 1; i <= 10; i++)
		run_send(run, i, 0, 1460000);
	sim_run(run->sim, 200 * SIM_US);
	msg = run_send(run, 11, 0, 146000);
	run_finish(run);
	took = msg->done - msg->created;
	run_free(run);
	return took;
}

static void ndp_srpt__shortest_first(void **state)
{
	u64 fair = short_among_long(false), srpt = short_among_long(true);

	(void)state;
	assert_in_range(fair, 8 * data_ps(146000), 13 * data_ps(146000));
	/* Not the whole link: its window is one idle round trip, and what was
	 * asked for before stands in the queue. */
	assert_in_range(srpt, data_ps(146000), 3 * data_ps(146000));
	assert_true(3 * srpt < fair);
}

/* Random messages on the 144-host network, some links' packets lost. */
static void storm(u64 seed, u32 loss_ppm, u64 *lost)
{
	struct homa_prng rng;
	struct sim_config cfg;
	struct run *run;
	u32 i;

	config(&cfg, 0);
	cfg.seed = seed;
	cfg.loss_ppm = loss_ppm;
	run = run_new(&cfg);
	homa_prng_seed(&rng, 77, 0);
	for (i = 0; i < MESSAGES; i++) {
		u32 src = homa_prng_below(&rng, 12),
		    dst = homa_prng_below(&rng, 11);
		u32 length = homa_prng_below(&rng, 2) ?
				     1 + homa_prng_below(&rng, 2000) :
				     1 + homa_prng_below(&rng, 200000);

		run_send(run, src * 12, (dst + (dst >= src)) * 12, length);
	}
	run_finish(run);
	assert_int_equal(run->sim->counts.msgs_delivered, MESSAGES);
	if (!loss_ppm)
		assert_int_equal(metric(run, "timeouts"), 0);
	*lost = run->sim->counts.pkts_dropped;
	run_free(run);
}

static void ndp_storm__nothing_is_lost_by_itself(void **state)
{
	u64 lost;

	(void)state;
	storm(1, 0, &lost);
	assert_int_equal(lost, 0);
}

static void ndp_loss__everything_arrives(void **state)
{
	u64 seed = unit_seed(), lost;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		storm(seed + i, 20000, &lost);
		unit_assert(seed, lost > 100);
	}
	storm(seed, 300000, &lost); /* three of ten packets, on each link */
	unit_assert(seed, lost > 1000);
}

/* The run may end at any time. */
static void ndp_stop__in_the_middle(void **state)
{
	struct sim_config cfg;
	struct run *run;
	u32 i;

	(void)state;
	config(&cfg, 21);
	run = run_new(&cfg);
	for (i = 1; i <= 20; i++)
		run_send(run, i, 0, 100000);
	sim_run(run->sim, 50 * SIM_US);
	assert_false(run->msg[0]->delivered);
	assert_true(run->sim->hosts[0].withheld > 0);
	run_free(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ndp_one_flow__fills_the_link),
		cmocka_unit_test(ndp_incast__near_the_optimum_without_timeouts),
		cmocka_unit_test(ndp_pulls__leave_at_the_rate_of_the_link),
		cmocka_unit_test(ndp_fair__equal_messages_end_together),
		cmocka_unit_test(ndp_srpt__shortest_first),
		cmocka_unit_test(ndp_storm__nothing_is_lost_by_itself),
		cmocka_unit_test(ndp_loss__everything_arrives),
		cmocka_unit_test(ndp_stop__in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
