// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Two connections from one host to another share a link of 20 Mbit/s with a round trip
 * of 20 ms and a queue of as many bytes as are under way then; the second begins five seconds
 * later. In virtual time. With each congestion control both get their share, and the
 * link is used.
 */
#include "tcp_bench.h"

#define RATE 20000000ull /* bit/s */
#define DELAY (10 * TAS_MSEC)
#define QUEUE 50000u /* bytes */
#define MARK 15000u  /* bytes in the queue from which on a segment is marked */
#define RING 4096u
#define BEGIN (20 * TAS_SEC) /* of what is measured */
#define END (60 * TAS_SEC)
#define FLOWS 2u
#define FRAME 1500u
#define STEP 100u /* kbit/s, of controls by rate */

struct packet {
	u64 at;
	struct tas_out out;
	struct tas_pair pair;
};

/* Packets in order of arrival at @to. */
struct path {
	struct packet ring[RING];
	u32 head, tail;
	struct tas_engine *to;
};

struct share {
	struct bench *end[2];
	struct path path[2];
	struct tas_conn *flow[FLOWS];
	struct homa_rng rng;
	u64 begin, now, busy; /* @busy: the link sends until then, ns */
	u64 timer; /* when the sender's engine wants to be called, ns */
	u64 steps;
	u64 got[FLOWS];
	bool marks;
};

static void arrive(struct share *s, struct path *path)
{
	struct packet *p;
	struct tas_copy copy;
	struct tas_pair pair;

	while (path->head != path->tail &&
	       path->ring[path->head % RING].at <= s->now) {
		p = &path->ring[path->head++ % RING];
		memcpy(pair.local, p->pair.remote, 16);
		memcpy(pair.remote, p->pair.local, 16);
		/* The payload is not looked at, and not there. */
		assert_int_equal(tas_rx_packet(path->to, &pair, p->out.header,
					       p->out.header_length + p->out.length,
					       p->out.ecn, &copy),
				 0);
		if (path == &s->path[0] && s->now - s->begin > BEGIN && copy.conn)
			s->got[p->pair.local_port % FLOWS] += copy.length;
	}
}

static void put(struct path *path, const struct tas_out *out, u64 at)
{
	struct packet *last = &path->ring[(path->tail - 1) % RING];

	assert_true(path->tail - path->head < RING);
	if (path->tail != path->head)
		at = homa_max_u64(at, last->at);
	path->ring[path->tail % RING].out = *out;
	path->ring[path->tail % RING].pair = *out->pair;
	path->ring[path->tail++ % RING].at = at;
}

/* The link's queue: full, it drops; longer than MARK, it marks who can be marked. */
static void forward(struct share *s, struct tas_out *out)
{
	u64 waits =
		s->busy > s->now ? (s->busy - s->now) * RATE / 8 / TAS_SEC : 0;
	u32 bytes = out->length + out->header_length + 20u;

	if (waits + bytes > QUEUE)
		return;
	if (s->marks && waits > MARK && out->ecn)
		out->ecn = TAS_ECN_CE;
	s->busy = homa_max_u64(s->busy, s->now) + bytes * 8 * TAS_SEC / RATE;
	put(&s->path[0], out, s->busy + DELAY);
}

static void applications(struct share *s)
{
	struct tas_conn *conn;
	u32 i, events;

	while (tas_next_event(&s->end[0]->engine, &events))
		;
	while ((conn = tas_next_event(&s->end[1]->engine, &events)))
		tas_taken(&s->end[1]->engine, conn, tas_readable(conn));
	tas_next_ready(&s->end[1]->engine);
	while ((conn = tas_accept(&s->end[1]->engine, &s->end[1]->listener)))
		tas_taken(&s->end[1]->engine, conn, tas_readable(conn));
	for (i = 0; i < FLOWS; i++)
		if (s->flow[i] && tas_open(s->flow[i]) &&
		    tas_unacked(s->flow[i]) < 1u << 20)
			tas_written(&s->end[0]->engine, s->flow[i], 1u << 20);
}

static void step(struct share *s)
{
	u64 next = homa_min_u64(s->now + TAS_MSEC, s->timer);
	struct tas_out out;
	u32 i;

	for (i = 0; i < 2; i++)
		if (s->path[i].head != s->path[i].tail)
			next = homa_min_u64(
				next, s->path[i].ring[s->path[i].head % RING].at);
	s->now = homa_max_u64(next, s->now + 1);
	for (i = 0; i < 2; i++) {
		tas_set_now(&s->end[i]->engine, s->now, 1000);
		tas_timers(&s->end[i]->engine, 100);
		s->steps++;
	}
	arrive(s, &s->path[0]);
	arrive(s, &s->path[1]);
	applications(s);
	while (tas_next_out(&s->end[0]->engine, &out))
		forward(s, &out);
	/* A little by chance, or two flows may keep step for ever. */
	while (tas_next_out(&s->end[1]->engine, &out))
		put(&s->path[1], &out,
		    s->now + DELAY + homa_rng_below(&s->rng, 1000000));
	s->timer = tas_timers(&s->end[0]->engine, 0);
}

static void begin_flow(struct share *s, u32 i)
{
	struct tas_pair pair = s->end[0]->pair;

	pair.local_port = (u16)(1000 + i);
	pair.remote_port = 80;
	assert_int_equal(tas_connect(&s->end[0]->engine, &pair, 16, 65536,
				     &s->flow[i]),
			 0);
}

static bool marks(u32 control)
{
	return control == TAS_DCTCP || control == TAS_RATE_DCTCP;
}

static void play_from(u64 seed, u32 control, const char *setting, u64 value,
		      u32 jain_least)
{
	struct share *s = calloc(1, sizeof(*s));
	u64 a, b, jain;
	u32 i;

	assert_non_null(s);
	homa_rng_init(&s->rng, seed);
	for (i = 0; i < 2; i++) {
		s->end[i] = bench_new(FRAME);
		s->path[!i].to = &s->end[i]->engine;
		tas_set(&s->end[i]->engine, "congestion", control);
		tas_set(&s->end[i]->engine, "ecn", marks(control));
		tas_set(&s->end[i]->engine, "max_segment", 536);
		/* What is little for 10 Gbit/s is half of this link. */
		tas_set(&s->end[i]->engine, "rate_step_kbps", STEP);
		tas_set(&s->end[i]->engine, "timely_low_us", 2000);
		tas_set(&s->end[i]->engine, "timely_high_us", 15000);
		if (setting)
			assert_int_equal(tas_set(&s->end[i]->engine, setting,
						 value),
					 0);
	}
	s->marks = marks(control);
	s->begin = s->now = s->end[0]->now;
	listen_at(s->end[1], 4);
	s->end[1]->listener.rx_shift = 20;
	s->end[1]->listener.rx_max = 1u << 20;
	begin_flow(s, 0);
	while (s->now - s->begin < END) {
		if (!s->flow[1] && s->now - s->begin > 5 * TAS_SEC)
			begin_flow(s, 1);
		step(s);
	}
	a = s->got[0] / 1000;
	b = s->got[1] / 1000;
	jain = 1000 * (a + b) * (a + b) / (2 * (a * a + b * b));
	print_message("congestion %u: %llu and %llu kB, Jain's index 0.%03llu, %llu steps\n",
		      control, (unsigned long long)a, (unsigned long long)b,
		      (unsigned long long)(jain < 1000 ? jain : 999),
		      (unsigned long long)s->steps);
	assert_true(jain >= jain_least);
	assert_true(1000 * (a + b) >=
		    (END - BEGIN) / TAS_SEC * RATE / 8 * 92 / 100);
	for (i = 0; i < 2; i++)
		bench_free(s->end[i]);
	free(s);
}

static void play(u32 control, const char *setting, u64 value, u32 jain_least)
{
	play_from(5, control, setting, value, jain_least);
}

static void share__newreno(void **state)
{
	(void)state;
	play(TAS_NEWRENO, NULL, 0, 900);
}

static void share__dctcp(void **state)
{
	(void)state;
	play(TAS_DCTCP, NULL, 0, 950);
}

static void share__cubic(void **state)
{
	(void)state;
	play(TAS_CUBIC, NULL, 0, 900);
}

static void share__dctcp_by_rate(void **state)
{
	(void)state;
	play(TAS_RATE_DCTCP, NULL, 0, 950);
}

/* From the second seed on both connections once became so slow that the delay of ACKs kept
 * them so. */
static void share__timely(void **state)
{
	(void)state;
	play(TAS_TIMELY, NULL, 0, 900);
	play_from(8, TAS_TIMELY, NULL, 0, 900);
}

/* 9.6 Mbit/s of payload each, so that headers fit on the link, too. */
static void share__constant(void **state)
{
	(void)state;
	play(TAS_CONSTANT, "rate_kbps", 9600, 950);
}

static void share__newreno_paced(void **state)
{
	(void)state;
	play(TAS_NEWRENO, "pacing", 1, 900);
}

static void share__cubic_paced(void **state)
{
	(void)state;
	play(TAS_CUBIC, "pacing", 1, 900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share__newreno),
		cmocka_unit_test(share__dctcp),
		cmocka_unit_test(share__cubic),
		cmocka_unit_test(share__dctcp_by_rate),
		cmocka_unit_test(share__timely),
		cmocka_unit_test(share__constant),
		cmocka_unit_test(share__newreno_paced),
		cmocka_unit_test(share__cubic_paced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
