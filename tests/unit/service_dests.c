// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Destinations of several users: what one of them does to those of others. The kernel's
 * routing table is played here and counts; rounds are run by hand.
 */
#include "nic_memory.h"
#include "route.h"
#include "service_world.h"

#define GREEDY 1000 /* users */
#define MODEST 2000

static u32 asked;

static struct homa_addr number(u32 n)
{
	struct homa_addr addr = { .ip = { [10] = 0xff, 0xff, 10 } };

	addr.ip[13] = (u8)(n >> 16);
	addr.ip[14] = (u8)(n >> 8);
	addr.ip[15] = (u8)n;
	return addr;
}

/* A default route over the only device. */
int nic_route_get(struct nic_rtnl *rtnl, const struct homa_addr *dst, int oif,
		  struct nic_route_result *route)
{
	(void)rtnl;
	(void)dst;
	(void)oif;
	asked++;
	memset(route, 0, sizeof(*route));
	route->ifindex = 1;
	route->hop = number(1);
	route->src = number(2);
	return 0;
}

/* ---- one thread, one device ---- */

struct bed {
	struct homad d;
	struct homad_thread *t;
	struct nic_memory *wire;
	struct nic *nic;
};

static struct homad_port *add_port(struct homad *d, struct nic *nic)
{
	struct homad_port *port = &d->ports[d->num_ports];
	size_t size = (homa_link_size(1024) + 63) / 64 * 64;

	port->index = d->num_ports++;
	port->nic = nic;
	port->info = nic ? nic_info(nic) : NULL;
	port->ifindex = 1;
	port->tx_at = HOMA_NEVER;
	port->link = aligned_alloc(64, size);
	homa_link_init(port->link, d->engine, 0, nic ? 1500 : 65535, 1024);
	return port;
}

static struct bed *bed_new(void)
{
	struct nic_memory_config config = { .seed = 1, .mtu = 1500 };
	struct bed *bed = calloc(1, sizeof(*bed));
	struct homa_addr me = number(2);
	struct homad *d = &bed->d;
	struct homa_seeds seeds;

	homad_log_init(HOMAD_ERROR, HOMAD_LOG_TEXT);
	homad_config_default(&d->config);
	d->num_threads = d->num_active = 1;
	d->dead_fd = eventfd(0, EFD_NONBLOCK);
	d->limits = (struct homa_limits){
		.shards = 1,
		.buckets = 1024,
		.tombstones = 1024,
		.sock_priv = sizeof(struct homad_app *),
		.rpc_priv = sizeof(struct homad_rpc),
	};
	d->engine = aligned_alloc(64, (homa_engine_size(&d->limits) + 63) / 64 * 64);
	memset(d->engine, 0, homa_engine_size(&d->limits));
	homa_seeds_fixed(&seeds, 1);
	assert_int_equal(homa_engine_init(d->engine, &d->limits, &d->config.params, &seeds, 0), 0);
	assert_int_equal(homad_thread_make(d, 0), 0);
	bed->t = d->threads[0];
	assert_int_equal(nic_memory_create(&bed->wire, &config), 0);
	assert_int_equal(nic_memory_attach(bed->wire, &me, &bed->nic), 0);
	assert_int_equal(homad_thread_serve(bed->t, add_port(d, bed->nic)), 0);
	d->local = add_port(d, NULL);
	/* The same sets in every run. */
	bed->t->dests.key[0] = 0x1234567890abcdefull;
	bed->t->dests.key[1] = 0xfedcba0987654321ull;
	asked = 0;
	return bed;
}

static void bed_free(struct bed *bed)
{
	homad_thread_free(bed->t);
	nic_close(bed->nic);
	nic_memory_destroy(bed->wire);
	for (u32 i = 0; i < bed->d.num_ports; i++)
		free(bed->d.ports[i].link);
	free(bed->d.engine);
	close(bed->d.dead_fd);
	free(bed);
}

static int way(struct bed *bed, uid_t user, u32 n)
{
	struct homa_addr addr = number(n);
	struct homad_port *port;

	return homad_dest(bed->t, user, &addr, 100, &port);
}

/* The way is found, and the kernel was asked for it; false: it was known. */
static bool was_asked(struct bed *bed, uid_t user, u32 n)
{
	u32 before = asked;

	bed->t->ctx.now += 1000;
	bed->t->counters.rounds++;
	assert_int_equal(way(bed, user, n), 0);
	return asked != before;
}

/* ---- tests ---- */

/* How many of 300 destinations of three users the kernel is asked for. */
static u32 asked_for_modest(struct bed *bed)
{
	u32 n, sum = 0;

	for (n = 0; n < 300; n++)
		sum += was_asked(bed, MODEST + n % 3, n);
	return sum;
}

/* Of two in a set that the greedy one also wants one may have to go, which is rare. */
static void dests__others_keep_theirs(void **state)
{
	struct bed *bed = bed_new();
	u32 i;

	(void)state;
	/* He had filled all places before they came. */
	for (i = 0; i < 8192; i++)
		was_asked(bed, GREEDY, 100000 + i);
	assert_int_equal(asked_for_modest(bed), 300);
	for (; i < 16384 + 8192; i++) {
		was_asked(bed, GREEDY, 100000 + i % 16384);
		if (i % 64 == 0)
			assert_in_range(asked_for_modest(bed), 0, 300 / 100);
	}
	bed_free(bed);
}

/* What one looked up and others use, too, is not his to give away. */
static void dests__shared_ones_stay(void **state)
{
	struct bed *bed = bed_new();
	u32 i, n;

	(void)state;
	for (n = 0; n < 50; n++)
		assert_true(was_asked(bed, GREEDY, n));
	for (n = 0; n < 50; n++)
		assert_false(was_asked(bed, MODEST, n));
	for (i = 0; i < 16384; i++)
		was_asked(bed, GREEDY, 100000 + i);
	for (n = 0; n < 50; n++)
		assert_false(was_asked(bed, MODEST, n));
	bed_free(bed);
}

static void dests__believed_for_a_second(void **state)
{
	struct bed *bed = bed_new();

	(void)state;
	assert_true(was_asked(bed, MODEST, 1));
	bed->t->ctx.now += 900000000u;
	assert_false(was_asked(bed, MODEST, 1));
	bed->t->ctx.now += 200000000u;
	assert_true(was_asked(bed, MODEST, 1));
	assert_false(was_asked(bed, MODEST, 1));
	bed_free(bed);
}

static void dests__one_look_up_for_a_user_in_a_round(void **state)
{
	struct bed *bed = bed_new();
	u32 i, user;

	(void)state;
	assert_int_equal(way(bed, GREEDY, 1), 0);
	for (i = 2; i < 100; i++)
		assert_int_equal(way(bed, GREEDY, i), -EAGAIN);
	assert_int_equal(asked, 1);
	/* What is known is his at any time, and others have theirs. */
	assert_int_equal(way(bed, GREEDY, 1), 0);
	for (user = 1; user < HOMAD_ROUND_LOOKUPS; user++)
		assert_int_equal(way(bed, MODEST + user, 200 + user), 0);
	assert_true(homad_dests_exhausted(&bed->t->dests));
	assert_int_equal(way(bed, MODEST, 300), -EAGAIN);
	assert_int_equal(asked, HOMAD_ROUND_LOOKUPS);
	assert_true(was_asked(bed, MODEST, 300));
	bed_free(bed);
}

static struct side *program(struct bed *bed, uid_t user)
{
	struct side *side = attach(&bed->d);

	side->app.uid = user;
	return side;
}

/* All programs are looked at, however long the test was kept from running. */
static void round_of(struct bed *bed, struct side *a, struct side *b, struct side *c)
{
	homad_poll_app(bed->t, &a->app);
	homad_poll_app(bed->t, &b->app);
	homad_poll_app(bed->t, &c->app);
	homad_round(bed->t);
}

static void request(struct side *s, u32 slot, u32 to)
{
	struct homa_addr addr = number(to);
	struct homa_sqe sqe = {
		.op = HOMA_SQE_REQUEST,
		.flags = HOMA_SQE_COPY,
		.port = 99,
		.length = 100,
		.token = 1 << 16 | slot,
	};

	memcpy(sqe.ip, addr.ip, sizeof(sqe.ip));
	submit(s, &sqe);
}

static void commands__others_are_not_held_up(void **state)
{
	struct bed *bed = bed_new();
	struct side *one = program(bed, GREEDY), *two = program(bed, GREEDY);
	struct side *other = program(bed, MODEST);
	u32 i, before;

	(void)state;
	request(other, 0, 1);
	round_of(bed, one, two, other);
	for (i = 0; i < 30; i++) {
		request(one, i, 1000 + i);
		request(two, i, 2000 + i);
	}
	for (i = 0; i < 60; i++) {
		before = asked;
		if (i < 20)
			request(other, 1 + i, 1);
		round_of(bed, one, two, other);
		assert_int_equal(asked, before + 1);
		/* His to a known destination goes at once; of the greedy one's two
		 * programs each has his turn. */
		assert_int_equal(other->app.counters.requests, homa_min_u32(i + 2, 21));
		assert_int_equal(one->app.counters.requests + two->app.counters.requests, i + 1);
		assert_in_range(one->app.counters.requests + 1 - two->app.counters.requests, 0, 2);
	}
	assert_int_equal(bed->t->counters.route_lookups, 61);
	homad_session_close(bed->t, &one->app);
	homad_session_close(bed->t, &two->app);
	homad_session_close(bed->t, &other->app);
	for (i = 0; i < 100; i++)
		homad_round(bed->t);
	detach_closed(one);
	detach_closed(two);
	detach_closed(other);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dests__others_keep_theirs),
		cmocka_unit_test(dests__shared_ones_stay),
		cmocka_unit_test(dests__believed_for_a_second),
		cmocka_unit_test(dests__one_look_up_for_a_user_in_a_round),
		cmocka_unit_test(commands__others_are_not_held_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
