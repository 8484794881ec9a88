// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The same scenario twice: in the engine tests' harness (tests/pair) and in the
 * simulator. Two worlds that have nothing in common but the engine must make
 * every host send the same packets in the same order: same kinds, messages,
 * places, lengths, priorities, grants. So neither drives the engine in a way
 * of its own, and what the harness proves holds for what is simulated.
 *
 * Both have one switch with strict priorities, links of 8 Gbit/s (a byte takes
 * a nanosecond, so that nothing is rounded) and hosts that pull a packet when
 * their port is idle. The harness serves packets in batches if it delays them,
 * so nobody has a receive delay here.
 *
 * Much happens at the same time here, because a packet that is received often
 * makes a host send one that takes just as long; and the order of events of one
 * nanosecond is nobody's promise. Therefore: a host looks at what it received
 * before it sends; packets from different hosts take slightly different times;
 * a packet is under way longer than any takes to be sent, so that in both
 * worlds its arrival is on the agenda before the port that it meets is free.
 */
#include "sim_homa.h"

#include "harness.h"
#include "homa_wire.h"

#define MAX_PACKETS 60000u
#define MAX_MSGS 400u
#define LATENCY_STEP_NS 7u

/* A packet as it leaves its host; of control packets what is in them. */
struct sent {
	u8 src, dst, type, prio, level;
	bool again;
	u32 msg; /* which of the scenario's; responses as their requests */
	u32 offset, length;
};

struct record {
	struct sent sent[MAX_PACKETS];
	u32 n;
};

/**
 * struct scenario - @msgs of them; @drop_type, @drop_nth: the n-th packet of
 * the type is lost on its way, 0: none
 */
struct scenario {
	const char *preset;
	bool rpc;
	u32 hosts, msgs;
	u8 drop_type;
	u32 drop_nth;
	struct {
		u64 at_ns;
		u8 src, dst;
		u32 length;
	} msg[MAX_MSGS];
};

static struct record records[2];
static struct scenario scenario;
static u64 ids[MAX_MSGS]; /* of the run under way, at the client */

static u32 msg_of_id(u8 src, u8 dst, u64 id)
{
	u32 i;

	for (i = 0; i < scenario.msgs; i++)
		if (ids[i] == (id & ~1ull) &&
		    ((scenario.msg[i].src == src && scenario.msg[i].dst == dst) ||
		     (scenario.msg[i].src == dst && scenario.msg[i].dst == src)))
			return i;
	return MAX_MSGS;
}

/* Decodes a header as either world has it; both count the same losses. */
static bool note(struct record *r, u8 src, u8 dst, u8 prio, const void *hdr,
		 u32 len)
{
	struct sent *s = &r->sent[r->n++];
	struct homa_packet p;
	u32 i, same = 0;

	assert_true(r->n <= MAX_PACKETS);
	assert_int_equal(homa_packet_decode(&p, hdr, len), 0);
	memset(s, 0, sizeof(*s));
	s->src = src;
	s->dst = dst;
	s->prio = prio;
	s->type = p.hdr.type;
	/* An ACK may be about RPCs that are over; any of them. */
	if (p.hdr.type == HOMA_DATA || p.hdr.type == HOMA_GRANT ||
	    p.hdr.type == HOMA_RESEND)
		s->msg = msg_of_id(src, dst, p.hdr.sender_id);
	if (p.hdr.type == HOMA_DATA) {
		s->offset = p.data.offset;
		s->length = p.data.payload_len;
		s->again = p.data.retransmit;
	} else if (p.hdr.type == HOMA_GRANT) {
		s->offset = p.grant.offset;
		s->level = p.grant.priority;
	} else if (p.hdr.type == HOMA_RESEND) {
		s->offset = p.resend.offset;
		s->length = p.resend.length;
		s->level = p.resend.priority;
	}
	for (i = 0; i < r->n; i++)
		same += r->sent[i].type == scenario.drop_type;
	return s->type == scenario.drop_type && same == scenario.drop_nth;
}

/* ---- in the simulator ---- */

struct start {
	struct sim_event ev;
	u32 index;
};

static struct start starts[MAX_MSGS];
/* A host's port that asks for a packet waits for the end of the instant. */
static struct pull {
	struct sim_event ev;
	struct sim_host *host;
	bool now;
} pulls[PAIR_MAX_HOSTS];

static void pull_fires(struct sim *sim, struct sim_event *ev)
{
	struct pull *pull = homa_container_of(ev, struct pull, ev);

	pull->now = true;
	sim_port_kick(sim, pull->host->up);
	pull->now = false;
}

static struct sim_pkt *patient_tx(struct sim *sim, struct sim_host *host)
{
	struct pull *pull = &pulls[host->index];

	if (pull->now || sim->now > host->up->busy_until)
		return sim_homa.tx(sim, host);
	if (!sim_event_pending(&pull->ev))
		sim_event_add(sim->agenda, &pull->ev, sim->now);
	return NULL;
}

static void start_fires(struct sim *sim, struct sim_event *ev)
{
	u32 i = homa_container_of(ev, struct start, ev)->index;
	struct sim_msg *msg = world_send(scenario.msg[i].src, scenario.msg[i].dst,
					 scenario.msg[i].length);

	(void)sim;
	ids[i] = msg->x[0];
}

/*
 * A packet that is to be lost goes to a host that the scenario has not.
 *
 * The message's id is known when sim_send() returns, but its first packet may
 * leave before that: the id is in the packet.
 */
static void sim_sends(void *arg, struct sim *sim, const struct sim_pkt *pkt)
{
	struct record *r = arg;
	u32 i;

	if (pkt->type == HOMA_DATA && !pkt->msg->request)
		for (i = 0; i < scenario.msgs; i++)
			if (scenario.msg[i].src == pkt->src && !ids[i] &&
			    scenario.msg[i].at_ns == sim_ns(sim->now))
				ids[i] = pkt->msg->x[0];
	if (note(r, (u8)pkt->src, (u8)pkt->dst, pkt->prio, pkt->hdr,
		 pkt->hdr_len + pkt->payload))
		((struct sim_pkt *)pkt)->dst = (u16)scenario.hosts;
}

static void lossy_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	if (host->index == scenario.hosts)
		sim_pkt_free(sim, pkt);
	else
		sim_homa.rx(sim, host, pkt);
}

static void run_simulator(struct sim_config *cfg, struct record *r,
			  struct homa_params *params)
{
	struct sim_transport patient = sim_homa;
	struct sim_tap tap = { .arg = r, .sent = sim_sends };
	struct sim *sim;
	u32 i;

	patient.rx = lossy_rx;
	patient.tx = patient_tx;
	cfg->transport = &patient;
	sim = world_new(cfg);
	memset(pulls, 0, sizeof(pulls));
	for (i = 0; i < cfg->hosts; i++) {
		pulls[i].ev.fn = pull_fires;
		pulls[i].host = &sim->hosts[i];
		sim->hosts[i].up->delay_ps += i * LATENCY_STEP_NS * SIM_NS;
	}
	*params = *homa_engine_params(world_host(0)->engine);
	sim->taps = &tap;
	memset(ids, 0, sizeof(ids));
	memset(starts, 0, sizeof(starts));
	for (i = 0; i < scenario.msgs; i++) {
		starts[i].ev.fn = start_fires;
		starts[i].index = i;
		sim_event_add(sim->agenda, &starts[i].ev,
			      scenario.msg[i].at_ns * SIM_NS);
	}
	sim_run(sim, SIM_NEVER);
	assert_int_equal(homa_world.failed, 0);
	assert_int_equal(homa_world.delivered,
			 scenario.msgs * (scenario.rpc ? 2 : 1));
	sim->taps = NULL;
	world_end();
}

/* ---- in the harness ---- */

static bool pair_sends(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	u32 i;

	/* The book has a line per message, in order of starting. */
	for (i = 0; i < w->num_rpcs; i++)
		ids[i] = w->book[i]->handle.id;
	return note(arg, pkt->src, pkt->dst, pkt->prio, pkt->data, pkt->len);
}

static void oneway_done(struct pair_world *w, struct pair_rpc *rpc)
{
	rpc->no_reply = true;
	pair_rpc_forget(w, rpc);
}

static void harness_fails(const char *text)
{
	fail_msg("%s", text);
}

static void run_harness(const struct sim_config *sim, struct record *r,
			const struct homa_params *params)
{
	struct pair_config cfg;
	struct pair_world *w;
	u64 start;
	u32 i;

	pair_fail_hook = harness_fails;
	pair_config_default(&cfg);
	cfg.hosts = scenario.hosts;
	cfg.rate_mbps = sim->host_mbps;
	cfg.latency_ns =
		(sim->send_ps + sim->host_prop_ps + sim->switch_ps) / SIM_NS;
	cfg.latency_step_ns = LATENCY_STEP_NS;
	cfg.mtu = sim->mtu;
	cfg.pool_pages = 0;
	cfg.by_room = true;
	cfg.nic_queue_ns = 0;
	cfg.params = *params;
	w = pair_world_new(&cfg);
	w->tap = pair_sends;
	w->tap_arg = r;
	if (!scenario.rpc)
		w->on_execute = oneway_done;
	memset(ids, 0, sizeof(ids));
	start = w->now;
	for (i = 0; i < scenario.msgs; i++) {
		/* Before whatever else happens then, as in the simulator. */
		pair_run(w, start + scenario.msg[i].at_ns - 1);
		w->now++;
		pair_rpc(w, scenario.msg[i].src, scenario.msg[i].dst,
			 scenario.msg[i].length, scenario.msg[i].length);
	}
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(pair_count_state(w, scenario.rpc ? PAIR_OK :
							    PAIR_ABORTED),
			 scenario.msgs);
	pair_drain(w, PAIR_S);
	w->tap = NULL;
	pair_finish(w);
}

/* ---- comparing ---- */

static const struct sent *next_of(const struct record *r, u32 *at, u32 host)
{
	while (*at < r->n) {
		const struct sent *s = &r->sent[(*at)++];

		if (s->src == host)
			return s;
	}
	return NULL;
}

static void print_sent(const char *where, const struct sent *s)
{
	if (!s)
		print_error("%s: nothing more\n", where);
	else
		print_error("%s: %s msg %u to %u offset %u length %u prio %u level %u%s\n",
			    where, homa_type_name(s->type), s->msg, s->dst,
			    s->offset, s->length, s->prio, s->level,
			    s->again ? " again" : "");
}

static void compare(void)
{
	u32 host, seen = 0;

	for (host = 0; host < scenario.hosts; host++) {
		u32 at[2] = { 0, 0 }, n = 0;
		const struct sent *a, *b;

		do {
			a = next_of(&records[0], &at[0], host);
			b = next_of(&records[1], &at[1], host);
			if (!a != !b || (a && memcmp(a, b, sizeof(*a)))) {
				print_sent("simulator", a);
				print_sent("harness", b);
				fail_msg("packet %u of host %u", n, host);
			}
			n += a != NULL;
		} while (a);
		seen += n;
	}
	assert_int_equal(seen, records[0].n);
	assert_int_equal(seen, records[1].n);
}

static void run_both(void)
{
	struct sim_config cfg =
		world_one_switch(scenario.preset, scenario.hosts + 1);
	struct homa_params params;

	cfg.host_mbps = 8000;
	cfg.recv_ps = 0;
	cfg.send_ps = 1500 * SIM_NS;
	cfg.sigcomm_headers = false;
	cfg.rpc = scenario.rpc;
	/* The harness's engines learn from each other. */
	cfg.option[SIM_HOMA_CUTOFFS] = SIM_HOMA_CUTOFFS_LEARNT;
	cfg.homa.resend_interval_us = 5000;
	cfg.homa.timeout_us = 200000;
	strcpy(cfg.workload, "w3");
	memset(records, 0, sizeof(records));
	run_simulator(&cfg, &records[0], &params);
	run_harness(&cfg, &records[1], &params);
	compare();
}

static u32 count(u8 type, bool again)
{
	u32 i, n = 0;

	for (i = 0; i < records[0].n; i++)
		n += records[0].sent[i].type == type &&
		     records[0].sent[i].again == again;
	return n;
}

/* ---- scenarios ---- */

static void scenario_begin(const char *preset, bool rpc, u32 hosts)
{
	memset(&scenario, 0, sizeof(scenario));
	scenario.preset = preset;
	scenario.rpc = rpc;
	scenario.hosts = hosts;
}

static void add(u64 at_ns, u32 src, u32 dst, u32 length)
{
	u32 i = scenario.msgs++;

	assert_true(i < MAX_MSGS);
	if (i)
		assert_true(scenario.msg[i - 1].at_ns < at_ns);
	scenario.msg[i].at_ns = at_ns;
	scenario.msg[i].src = (u8)src;
	scenario.msg[i].dst = (u8)dst;
	scenario.msg[i].length = length;
}

static void each_mode(void (*fn)(const char *preset, bool rpc))
{
	fn("sigcomm18", false);
	fn("sigcomm18", true);
	fn("linux", false);
	fn("linux", true);
}

static void alone(const char *preset, bool rpc)
{
	scenario_begin(preset, rpc, 2);
	add(1001, 0, 1, 1);
	add(2000003, 0, 1, 1424);
	add(4000007, 1, 0, 1425);
	add(6000011, 0, 1, 200000);
	run_both();
	assert_true(count(HOMA_GRANT, false) > 1);
}

static void same__messages_alone(void **state)
{
	(void)state;
	each_mode(alone);
}

/* A longer message is overtaken by shorter ones at its sender. */
static void overtaken(const char *preset, bool rpc)
{
	scenario_begin(preset, rpc, 4);
	add(1009, 0, 1, 300000);
	add(30011, 0, 2, 40000);
	add(50021, 0, 3, 500);
	add(61027, 0, 1, 9000);
	run_both();
}

static void same__overtaking_at_the_sender(void **state)
{
	(void)state;
	each_mode(overtaken);
}

/* Many long messages for one receiver: ranks, levels, overcommitment. */
static void converging(const char *preset, bool rpc)
{
	u32 i;

	scenario_begin(preset, rpc, 10);
	for (i = 1; i < 10; i++)
		add(1000 + 7013 * i, i, 0, 300000 - 25013 * i);
	for (i = 1; i < 10; i++)
		add(200000 + 3019 * i, i, 0, 1000 + 4001 * i);
	run_both();
	assert_true(count(HOMA_GRANT, false) > 100);
}

static void same__grants_to_many(void **state)
{
	(void)state;
	each_mode(converging);
}

static void lost(u8 type, u32 nth)
{
	scenario_begin("sigcomm18", false, 3);
	scenario.drop_type = type;
	scenario.drop_nth = nth;
	add(1001, 0, 1, 60000);
	add(9013, 2, 1, 30000);
	run_both();
}

static void same__lost_packets(void **state)
{
	u32 nth, grants;

	(void)state;
	for (nth = 2; nth < 65; nth += 9) {
		lost(HOMA_DATA, nth);
		assert_true(count(HOMA_DATA, true) >= 1);
		assert_true(count(HOMA_RESEND, false) >= 1);
	}
	lost(HOMA_GRANT, 0);
	grants = count(HOMA_GRANT, false);
	for (nth = 1; nth <= grants; nth += grants / 4)
		lost(HOMA_GRANT, nth);
	/* A later one makes up for it, but for the last. */
	lost(HOMA_GRANT, grants);
	assert_true(count(HOMA_RESEND, false) >= 1);
}

static void random_traffic(const char *preset, bool rpc)
{
	u64 at = 1000;
	u32 i;

	scenario_begin(preset, rpc, 8);
	for (i = 0; i < 300; i++) {
		u32 src = homa_prng_below(&homa_world.rng, 8);
		u32 dst = homa_prng_below(&homa_world.rng, 7);
		u32 bits = 1 + homa_prng_below(&homa_world.rng, 18);

		at += 1 + homa_prng_below(&homa_world.rng, 30000);
		add(at, src, dst + (dst >= src),
		    1 + homa_prng_below(&homa_world.rng, 1u << bits));
	}
	run_both();
	assert_true(count(HOMA_GRANT, false) > 100);
}

static void same__random_traffic(void **state)
{
	(void)state;
	homa_prng_seed(&homa_world.rng, unit_seed(), 1);
	each_mode(random_traffic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same__messages_alone),
		cmocka_unit_test(same__overtaking_at_the_sender),
		cmocka_unit_test(same__grants_to_many),
		cmocka_unit_test(same__lost_packets),
		cmocka_unit_test(same__random_traffic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
