// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* DCTCP: the marked share, the cut, exact echoes, and a short queue at full rate. */
#include "window_world.h"

#define MSS 1460u
#define K_BYTES (20u * 1538)

/* ---- the rule ---- */

/* Acks of @windows windows of ten segments, @marked of each. */
static void feed(struct window *w, struct window_flow *f, u32 windows, u32 marked)
{
	u32 i, j;

	for (i = 0; i < windows; i++) {
		for (j = 0; j < 10; j++) {
			f->snd_una += MSS;
			f->snd_nxt = f->snd_una + 10 * MSS;
			/* What a mark answers makes no window grow. */
			assert_int_equal(dctcp_acked(w, f, MSS, j < marked),
					 j >= marked);
		}
	}
}

static void test_alpha(void **state)
{
	struct window_flow f;
	struct window w;
	u64 cuts;

	(void)state;
	memset(&w, 0, sizeof(w));
	memset(&f, 0, sizeof(f));
	w.mss = MSS;
	w.gain = 4;
	f.cwnd = 1000 * MSS;
	f.alpha = 1u << 20;
	feed(&w, &f, 200, 0);
	assert_int_equal(f.alpha, 0);
	assert_int_equal(w.counts.cuts, 0);
	/* Sixteen windows bring it up to 1 - (15/16)^16 = 0.644 of the way. */
	feed(&w, &f, 16, 10);
	assert_true(f.alpha > 0.60 * (1 << 20) && f.alpha < 0.65 * (1 << 20));
	feed(&w, &f, 200, 10);
	assert_true(f.alpha > 0.99 * (1 << 20) && f.alpha <= 1u << 20);
	feed(&w, &f, 200, 3);
	assert_true(f.alpha > 0.28 * (1 << 20) && f.alpha < 0.32 * (1 << 20));
	/* Once per window, by half of alpha. */
	cuts = w.counts.cuts;
	feed(&w, &f, 2, 0);
	f.cwnd = 1000 * MSS;
	feed(&w, &f, 1, 10);
	assert_int_equal(w.counts.cuts, cuts + 1);
	assert_true(f.cwnd > 840 * MSS && f.cwnd < 880 * MSS);
	assert_int_equal(f.ssthresh, f.cwnd);
	/* And never below two segments. */
	feed(&w, &f, 400, 10);
	assert_int_equal(f.cwnd, 2 * MSS);
}

/* ---- echoes ---- */

static u64 marked_bytes, echoed_bytes, last_ack;

static bool count_marks(struct sim *sim, const struct sim_pkt *pkt)
{
	(void)sim;
	if (pkt->type == WINDOW_DATA && pkt->flags & SIM_ECN_CE)
		marked_bytes += pkt->payload;
	if (pkt->type == WINDOW_ACK && pkt->src == 3 && pkt->dst == 0) {
		if (pkt->x[3])
			echoed_bytes += pkt->x[0] - last_ack;
		last_ack = pkt->x[0];
	}
	return false;
}

static bool count_first(struct sim *sim, const struct sim_pkt *pkt)
{
	return pkt->src == 0 || pkt->dst == 0 ? count_marks(sim, pkt) : false;
}

/* Delayed acks lose no mark and invent none (RFC 8257, 3.2). */
static void test_echo_is_exact(void **state)
{
	struct sim_config cfg;
	u32 every;

	(void)state;
	for (every = 1; every <= 4; every++) {
		world_neck(&cfg, &sim_dctcp, 3);
		cfg.option[WINDOW_ACK_EVERY] = every;
		cfg.ecn_bytes = K_BYTES;
		world_new(&cfg);
		world.eat = count_first;
		marked_bytes = 0;
		echoed_bytes = 0;
		last_ack = 0;
		world_send(0, 3, 5000000);
		world_send(1, 4, 3000000);
		world_send(2, 5, 3000000);
		world_run(1 * SIM_S);
		assert_int_equal(world.arrived, 3);
		assert_true(marked_bytes > 20 * MSS);
		assert_int_equal(marked_bytes, echoed_bytes);
		world_end();
	}
}

/* ---- one bottleneck ---- */

struct neck_result {
	u64 mean, peak, low, sent;
	u64 share[2];
};

/* Two streams through 1 Gbit/s for a second after they have settled. */
static void neck(const struct sim_transport *transport, struct neck_result *res)
{
	struct sim_config cfg;
	struct sim_port *port;
	u32 i;

	memset(res, 0, sizeof(*res));
	world_neck(&cfg, transport, 2);
	cfg.port_bytes = 200000;
	if (transport == &sim_dctcp)
		cfg.ecn_bytes = K_BYTES;
	world_new(&cfg);
	world_send(0, 2, 1000000000);
	world_run(50 * SIM_MS);
	world_send(1, 3, 1000000000);
	world_run(300 * SIM_MS);
	port = world_port(SIM_TOR_UP);
	sim_net_stats_reset(world.sim);
	res->low = UINT64_MAX;
	res->share[0] = world_flow(0, 2)->snd_una;
	res->share[1] = world_flow(1, 3)->snd_una;
	for (i = 0; i < 10000; i++) {
		world_run(100 * SIM_US);
		res->mean += port->bytes / 10000;
		if (port->bytes < res->low)
			res->low = port->bytes;
	}
	res->peak = port->stats.peak;
	res->sent = port->stats.tx_bytes;
	res->share[0] = world_flow(0, 2)->snd_una - res->share[0];
	res->share[1] = world_flow(1, 3)->snd_una - res->share[1];
	world_end();
}

static void test_queue_stays_at_k(void **state)
{
	struct neck_result dctcp, tcp;

	(void)state;
	neck(&sim_dctcp, &dctcp);
	neck(&sim_tcp, &tcp);
	assert_true(dctcp.sent > 125000000ull * 995 / 1000);
	assert_true(dctcp.mean > K_BYTES / 2 && dctcp.mean < K_BYTES * 5 / 4);
	assert_true(dctcp.peak < 2 * K_BYTES);
	assert_true(tcp.peak > 195000);
	assert_true(tcp.mean > 3 * dctcp.mean);
}

static void test_two_streams_share(void **state)
{
	struct neck_result res;

	(void)state;
	neck(&sim_dctcp, &res);
	assert_true(res.share[0] < res.share[1] * 5 / 4);
	assert_true(res.share[1] < res.share[0] * 5 / 4);
}

/* K packets at 10 Gbit/s, in proportion elsewhere, unless somebody says otherwise. */
static void test_k_follows_the_rate(void **state)
{
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_dctcp, 2);
	world_new(&cfg);
	assert_int_equal(world.sim->cfg.ecn_bytes, 65 * 1538);
	world_end();
	cfg.host_mbps = 25000;
	world_new(&cfg);
	assert_int_equal(world.sim->cfg.ecn_bytes, 65 * 1538 * 25 / 10);
	world_end();
	cfg.ecn_bytes = 0;
	world_new(&cfg);
	assert_int_equal(world.sim->cfg.ecn_bytes, 0);
	world_end();
}

static void test_loss(void **state)
{
	(void)state;
	world_test_loss(&sim_dctcp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alpha),
		cmocka_unit_test(test_echo_is_exact),
		cmocka_unit_test(test_queue_stays_at_k),
		cmocka_unit_test(test_two_streams_share),
		cmocka_unit_test(test_k_follows_the_rate),
		cmocka_unit_test(test_loss),
	};

	return cmocka_run_group_tests_name("dctcp", tests, NULL, NULL);
}
