// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/tcp.c: the two engines of an instance, for connections with other hosts and
 * within this one, share memory. What one of them has had is the other's when that needs it.
 */
#include "streams_bed.h"

#define LISTENERS 32u

/* Opens connections by @engine until it has no memory for more; returns how many. */
static u32 open_all(struct bed *bed, struct tas_engine *engine,
		    struct tas_conn *conns[CONNECTIONS])
{
	struct homad_tcp *tcp = bed->t->tcp;
	struct tas_pair pair = { .remote_port = PORT };
	u32 n = 0;

	memcpy(pair.local, here, sizeof(here));
	memcpy(pair.remote, here, sizeof(here));
	homad_now(bed->t);
	homad_tcp_round(bed->t);
	for (;; n++) {
		homad_tcp_refill(tcp, engine);
		pair.local_port = (u16)(5000 + n);
		if (n == CONNECTIONS ||
		    tas_connect(engine, &pair, HOMAD_STREAM_SHIFT,
				1u << HOMAD_STREAM_SHIFT, &conns[n]))
			return n;
	}
}

static void close_all(struct bed *bed, struct tas_engine *engine,
		      struct tas_conn *conns[CONNECTIONS], u32 num)
{
	while (num--)
		tas_abort(engine, conns[num]);
	homad_stream_events(bed->t);
}

/* Each has nearly all of them in turn. */
static void spares__of_the_other_engine(void **state)
{
	struct bed *bed = bed_new();
	struct tas_conn *conns[CONNECTIONS];
	struct homad_tcp *tcp;
	u32 i, num;

	(void)state;
	homad_tcp_run(bed->t, tcp_new(0));
	tcp = bed->t->tcp;
	for (i = 0; i < 4; i++) {
		struct tas_engine *engine = i % 2 ? &tcp->engine : &tcp->local;

		num = open_all(bed, engine, conns);
		assert_in_range(num, CONNECTIONS - 64, CONNECTIONS);
		close_all(bed, engine, conns, num);
	}
	end_all(bed);
}

/* Connections that wait only for their peers to close are dropped for those of the other engine. */
static void spares__of_orphans_of_the_other_engine(void **state)
{
	struct bed *bed = bed_new();
	struct tas_conn *conns[CONNECTIONS];
	struct homad_tcp *tcp;
	u32 i, num;

	(void)state;
	homad_tcp_run(bed->t, tcp_new(0));
	tcp = bed->t->tcp;
	num = open_all(bed, &tcp->engine, conns);
	for (i = 0; i < num; i++) {
		conns[i]->f.state = TAS_FIN_WAIT_2;
		tas_close(&tcp->engine, conns[i]);
	}
	for (i = 0; i < 4; i++) {
		homad_tcp_refill(tcp, &tcp->local);
		homad_stream_events(bed->t);
	}
	assert_true(tcp->engine.metrics.orphans_dropped > 0);
	assert_true(tcp->local.num_spare > 0);
	end_all(bed);
}

/* Memory for connections in TIME_WAIT goes the same way. */
static void spares__of_connections_that_have_ended(void **state)
{
	struct bed *bed = bed_new();
	struct tas_ended *ended;
	struct homad_tcp *tcp;
	u32 i;

	(void)state;
	homad_tcp_run(bed->t, tcp_new(0));
	tcp = bed->t->tcp;
	while ((ended = homa_slab_get(&tcp->ended)))
		tas_add_ended(&tcp->local, ended);
	for (i = 0; i < CONNECTIONS; i++) {
		homad_tcp_refill(tcp, &tcp->engine);
		assert_non_null(tas_take_ended(&tcp->engine));
	}
	end_all(bed);
}

/* ---- connections that nobody has accepted ---- */

static void arrive(struct bed *bed, const struct tas_pair *pair, u32 seq,
		   u32 ack, u16 flags)
{
	struct tas_segment seg = {
		.seq = seq, .ack = ack, .flags = flags, .window = 60000
	};
	struct homad_tcp *tcp = bed->t->tcp;
	struct tas_copy copy;

	homad_now(bed->t);
	homad_tcp_round(bed->t);
	homad_tcp_refill(tcp, &tcp->engine);
	tas_rx(&tcp->engine, pair, &seg, 0, &copy);
}

/* A peer of another host connects. */
static void call(struct bed *bed, u16 to, u16 from)
{
	struct tas_pair pair = { .local_port = to, .remote_port = from };
	struct tas_segment seg = { 0 };
	struct tas_out out;

	memcpy(pair.local, here, sizeof(here));
	memcpy(pair.remote, here, sizeof(here));
	pair.remote[12] = 10;
	arrive(bed, &pair, 0, 0, TAS_SYN);
	while (tas_next_out(&bed->t->tcp->engine, &out))
		assert_int_equal(tas_decode(&seg, out.header, out.header_length),
				 0);
	if (seg.flags == (TAS_SYN | TAS_ACK))
		arrive(bed, &pair, 1, seg.seq + 1, TAS_ACK);
	homad_listeners_accept(bed->t);
}

/* A program that takes no more connections listens at many ports, and peers connect to all of
 * them. Others open connections as before. */
static void spares__beside_connections_that_nobody_accepts(void **state)
{
	struct homad_tcp_listener listeners[LISTENERS];
	struct bed *bed = bed_new();
	struct tas_conn *conns[CONNECTIONS];
	struct program *p;
	u32 i;

	(void)state;
	p = program(bed);
	take_memory(&p->s, true);
	for (i = 0; i < LISTENERS; i++)
		assert_int_equal(listen_at(bed, p, &listeners[i],
					   (u16)(PORT + i), false),
				 0);
	for (i = 0; i < 2 * CONNECTIONS; i++)
		call(bed, (u16)(PORT + i % LISTENERS), (u16)(5000 + i));
	assert_true(listeners[0].l.num_ready > 0);
	assert_in_range(open_all(bed, &bed->t->tcp->engine, conns),
			CONNECTIONS / 2, CONNECTIONS);
	end(bed, p);
	end_all(bed);
}

/* Programs of this host begin connections to many listeners and do not finish: others of this host
 * open connections as before. */
static void spares__beside_half_open_connections_of_this_host(void **state)
{
	struct homad_tcp_listener listeners[LISTENERS];
	struct tas_pair pair = { 0 };
	struct tas_segment syn = { .flags = TAS_SYN, .window = 60000 };
	struct bed *bed = bed_new();
	struct tas_conn *conns[CONNECTIONS];
	struct tas_engine *engine;
	struct tas_copy copy;
	struct tas_out out;
	struct program *p;
	u32 i;

	(void)state;
	p = program(bed);
	engine = &bed->t->tcp->local;
	memcpy(pair.local, here, sizeof(here));
	memcpy(pair.remote, here, sizeof(here));
	for (i = 0; i < LISTENERS; i++)
		assert_int_equal(listen_at(bed, p, &listeners[i],
					   (u16)(PORT + i), true),
				 0);
	for (i = 0; i < 2 * CONNECTIONS; i++) {
		homad_tcp_refill(bed->t->tcp, engine);
		pair.local_port = (u16)(PORT + i % LISTENERS);
		pair.remote_port = (u16)(15000 + i);
		tas_rx(engine, &pair, &syn, 0, &copy);
		while (tas_next_out(engine, &out))
			;
	}
	assert_true(listeners[0].here.num_half > 0);
	assert_in_range(open_all(bed, engine, conns), CONNECTIONS / 2,
			CONNECTIONS);
	end(bed, p);
	end_all(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spares__of_the_other_engine),
		cmocka_unit_test(spares__of_orphans_of_the_other_engine),
		cmocka_unit_test(spares__of_connections_that_have_ended),
		cmocka_unit_test(spares__beside_connections_that_nobody_accepts),
		cmocka_unit_test(spares__beside_half_open_connections_of_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
