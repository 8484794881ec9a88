// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/stream_connect.c: the search for a local port that is free costs the user who has
 * taken nearly all of them, and not the others of his thread.
 */
#include "dest_table.h"
#include "streams_bed.h"

#define PORTS 250u

/* A program that may connect to PORT of this host, where it listens, and all local ports in use
 * for that. */
static struct program *begin(struct bed *bed, struct homad_tcp_listener *listener)
{
	struct program *p = program(bed);
	struct homad_policy *policy = p->s.policy;
	struct homad_tcp *tcp = bed->t->tcp;
	struct tas_pair pair = { .remote_port = PORT };
	struct tas_conn *conn;
	u16 ports[PORTS];
	u32 i;

	policy->num = 1;
	policy->part[0].rule.connect[0] = policy->part[0].rule.connect[1] = PORT;
	policy->part[0].rule.congestion = -1;
	p->s.same_network = true;
	assert_int_equal(listen_by(bed, p, listener), 0);
	memcpy(pair.local, here, sizeof(here));
	memcpy(pair.remote, here, sizeof(here));
	homad_now(bed->t);
	homad_tcp_round(bed->t);
	for (i = 0; i < PORTS; i++) {
		pair.local_port = ports[i] = (u16)(30000 + i);
		homad_tcp_refill(tcp, &tcp->local);
		assert_int_equal(tas_connect(&tcp->local, &pair,
					     HOMAD_STREAM_SHIFT,
					     1u << HOMAD_STREAM_SHIFT, &conn),
				 0);
	}
	homad_tcp_use_ports(bed->t, ports, PORTS);
	return p;
}

/* The address is one of this host's. */
static void route_to_here(struct bed *bed)
{
	struct homa_addr addr = { 0 };
	struct homad_dest *dest;
	struct homad_port *port;

	memcpy(addr.ip, here, sizeof(here));
	assert_int_equal(homad_dest(bed->t, 0, &addr, 1, &port), 0);
	memcpy(addr.ip, here, sizeof(here));
	dest = homad_dest_find(&bed->t->dests, &addr);
	assert_non_null(dest);
	dest->port = bed->d.local;
}

static void ports__cost_who_looks_for_them(void **state)
{
	struct homa_stream_command c = { .op = HOMA_STREAM_CONNECT,
					 .remote.port = PORT };
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *p;

	(void)state;
	p = begin(bed, &listener);
	route_to_here(bed);
	memcpy(c.remote.ip, here, sizeof(here));
	command(p, c);
	homad_poll_app(bed->t, &p->side->app);
	p->user[0].credit = 1000;
	homad_turn_of(bed->t, &p->side->app);
	assert_int_equal(p->s.ports_tried, PORTS);
	/* So many lookups are as much work as several commands. */
	assert_true(1000 - p->user[0].credit > (int)PORTS / 16);
	p->s.policy->num = 0;
	end(bed, p);
	end_all(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports__cost_who_looks_for_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
