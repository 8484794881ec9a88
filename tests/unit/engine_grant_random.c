/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_grant.c and homa_grant_queue.c: random messages come, receive,
 * finish and die under random settings; after every batch the model says which
 * grants are due, and which messages are active.
 */
#include "grant_model.h"

/* The scheduler's keys, after checking how stale they are. */
static void model_read_keys(struct model *m)
{
	u32 i;

	for (i = 0; i < MESSAGES; i++) {
		struct msg *msg = &m->msg[i];
		const struct homa_grantee *in = &m->rpc[i].in;
		u32 left = msg->length - msg->received;

		if (!msg->used)
			continue;
		unit_assert(m->seed, in->received == msg->received);
		unit_assert(m->seed, in->granted == msg->granted);
		unit_assert(m->seed,
			    msg->wants == (in->state != HOMA_GRANTEE_IDLE));
		msg->key = left;
		if (in->state != HOMA_GRANTEE_WAITING)
			continue;
		msg->key = in->node.key;
		unit_assert(m->seed, msg->key >= left);
		if (msg->received >= msg->granted)
			unit_assert(m->seed, msg->key == left);
		else
			unit_assert(m->seed,
				    msg->key - left <
					    (u64)msg->step + msg->beyond);
	}
}

/* link.incoming is exact but for a step per message in flight. */
static void check_incoming(struct model *m)
{
	s64 low = 0, high = 0;
	u32 i;

	for (i = 0; i < MESSAGES; i++) {
		const struct msg *msg = &m->msg[i];
		const struct homa_grantee *in = &m->rpc[i].in;
		s64 outstanding;

		if (!msg->used || !in->counted)
			continue;
		unit_assert(m->seed, in->accounted <= msg->granted);
		outstanding = msg->granted > msg->received ?
				      msg->granted - msg->received :
				      0;
		high += msg->granted - in->accounted;
		/* Unscheduled bytes count up to RTTbytes only. */
		if (in->accounted < msg->received)
			low += outstanding;
		else
			low += msg->granted - in->accounted;
	}
	unit_assert(m->seed, (s64)m->w.link->grants.incoming == high);
	unit_assert(m->seed, low <= high);
}

static void check_active(struct model *m)
{
	const struct homa_grants *grants = &m->w.link->grants;
	u32 active = grant_model_choose(m), waiting = 0, i;

	unit_assert(m->seed, grants->num_active == active);
	for (i = 0; i < MESSAGES; i++) {
		const struct homa_grantee *in = &m->rpc[i].in;

		if (!m->msg[i].wants)
			continue;
		unit_assert(m->seed, (in->state == HOMA_GRANTEE_ACTIVE) ==
					     m->msg[i].chosen);
		waiting += !m->msg[i].chosen;
		if (m->msg[i].chosen)
			unit_assert(m->seed,
				    grants->active[in->slot] == &m->rpc[i]);
	}
	unit_assert(m->seed, grants->num_waiting == waiting);
}

/* Every grant of this run, against the model's. */
static void check_grants(struct model *m)
{
	const struct homa_ctrl *ctrl;
	u32 i;

	for (i = 0; i < m->num_grants; i++) {
		ctrl = world_ctrl(&m->w);
		unit_assert(m->seed, ctrl != NULL);
		assert_int_equal(ctrl->type, HOMA_GRANT);
		unit_assert(m->seed, ctrl->sender_id == m->grant[i].msg);
		unit_assert(m->seed, ctrl->offset == m->grant[i].offset);
		unit_assert(m->seed, ctrl->priority == m->grant[i].level);
	}
	unit_assert(m->seed, world_ctrl(&m->w) == NULL);
}

/* Nobody who waits for grants is forgotten while nothing is under way. */
static void check_stall(struct model *m)
{
	bool under_way = false, wanting = false;
	u32 i;

	for (i = 0; i < MESSAGES; i++) {
		under_way |= m->msg[i].used &&
			     m->msg[i].received < m->msg[i].granted;
		wanting |= m->msg[i].wants &&
			   m->msg[i].received < m->msg[i].length;
	}
	unit_assert(m->seed, under_way || !wanting);
}

/*
 * A grant that the scheduler did not see coming: the end of a message, or of
 * its scheduled part, is nearer than a quantum, and bytes are under way. (Its
 * place is then free for a message that was not active.) Or max_incoming held
 * it back and it has become the best message by less than a step: the next
 * step of anybody's bytes will tell.
 */
static void check_small(struct model *m, const struct msg *old, u32 offset)
{
	u32 rtt = m->w.link->derived.rtt_bytes;

	if (!old->chosen)
		return;
	unit_assert(m->seed, old->received < old->granted);
	unit_assert(m->seed, offset == old->length || m->w.link->grants.limited ||
				     (m->w.engine->params.last_rtt_unsched &&
				      offset == old->length - rtt));
}

/* End of a batch: what homa_rx_flush() does, watched. */
static void flush(struct model *m)
{
	struct msg old[MESSAGES];
	u32 i;

	model_read_keys(m);
	if (!m->due)
		check_active(m);
	model_read_keys(m);
	if (m->due || m->w.ctx.grant_link) {
		grant_model_run(m, true);
		homa_grant_run(&m->w.ctx, m->w.link);
		m->due = false;
		check_grants(m);
		model_read_keys(m);
	} else {
		memcpy(old, m->msg, sizeof(old));
		grant_model_run(m, false);
		for (i = 0; i < m->num_grants; i++)
			check_small(m, &old[m->grant[i].msg], m->grant[i].offset);
		memcpy(m->msg, old, sizeof(old));
		unit_assert(m->seed, world_ctrl(&m->w) == NULL);
	}
	check_active(m);
	check_incoming(m);
	check_stall(m);
}

static u32 random_length(struct model *m)
{
	switch (below(m, 4)) {
	case 0:
		return 1 + below(m, 2 * MTU);
	case 1:
		return 1 + below(m, 100000);
	case 2:
		return 1 + below(m, 3000000);
	default:
		return 200000; /* equal ones */
	}
}

static void op_add(struct model *m)
{
	static const u32 unsched[] = { 0, 1000, 10000, 40000, 100000 };
	u32 i = below(m, MESSAGES);
	struct msg *msg = &m->msg[i];
	struct homa_grantee *in = &m->rpc[i].in;

	if (msg->used)
		return;
	memset(msg, 0, sizeof(*msg));
	msg->used = true;
	msg->peer = below(m, m->peers);
	msg->length = random_length(m);
	msg->granted = homa_min_u32(unsched[below(m, 5)], msg->length);
	if (below(m, 50) == 0)
		msg->granted = msg->length;
	msg->wants = msg->granted < msg->length;
	msg->step = 1;
	if (msg->granted > m->w.link->derived.rtt_bytes)
		msg->beyond = msg->granted - m->w.link->derived.rtt_bytes;
	world_rpc(&m->w, &m->rpc[i], &m->peer[msg->peer], i);
	in->length = msg->length;
	in->granted = msg->granted;
	homa_grant_add(&m->w.ctx, &m->rpc[i]);
	if (msg->wants) {
		msg->birth = in->birth;
		unit_assert(m->seed, in->birth > m->births);
		m->births = in->birth;
	}
}

static void op_remove(struct model *m, u32 i)
{
	if (!m->msg[i].used)
		return;
	homa_grant_remove(&m->w.ctx, &m->rpc[i]);
	homa_grant_remove(&m->w.ctx, &m->rpc[i]);
	m->msg[i].used = false;
	m->msg[i].wants = false;
	unit_assert(m->seed, m->rpc[i].in.state == HOMA_GRANTEE_IDLE);
	unit_assert(m->seed, !m->rpc[i].in.tail);
}

static void op_receive(struct model *m, u32 i, bool whole)
{
	struct msg *msg = &m->msg[i];
	u32 bytes, most;

	if (!msg->used)
		return;
	most = msg->granted > msg->received ? msg->granted - msg->received : 0;
	/* A sender that does not wait for its grants. */
	if (!whole && below(m, 200) == 0)
		most = msg->length - msg->received;
	bytes = whole ? most : homa_min_u32(most, 1 + below(m, 2 * MTU));
	if (!bytes)
		return;
	msg->received += bytes;
	msg->step = m->w.link->grants.step;
	/* Now and then something early is missing for a while. */
	if (msg->received == msg->length || below(m, 4) == 0)
		msg->in_order = msg->received;
	m->rpc[i].ranges.end = msg->in_order;
	homa_grant_received(&m->w.ctx, &m->rpc[i], bytes);
	if (msg->received == msg->length)
		op_remove(m, i);
}

static void op_params(struct model *m)
{
	static const u32 window[] = { 0, 0, 1, 5000, 60000 };
	static const u32 incoming[] = { 0, 0, 1, 1000, 20000, 100000 };
	static const u32 quantum[] = { 0, 0, 0, 1, 3000, 1000000 };
	struct homa_params *p = &m->w.engine->params;

	p->max_overcommit = 1 + below(m, below(m, 4) ? 8 : 32);
	p->window = window[below(m, 5)];
	p->max_incoming = incoming[below(m, 6)];
	p->grant_quantum = quantum[below(m, 6)];
	p->sigcomm_grants = below(m, 3) == 0;
	p->last_rtt_unsched = below(m, 3) == 0;
	p->grant_fifo_fraction = below(m, 2) * below(m, 501);
	p->fifo_grant_increment = 1 + below(m, 50000);
	p->num_priorities = 1 + below(m, 8);
	homa_prio_init(m->w.engine);
	homa_link_derive(m->w.link);
	m->due = true;
}

static void model_init(struct model *m, u64 seed)
{
	u32 i;

	memset(m, 0, sizeof(*m));
	homa_rng_init(&m->rng, seed);
	m->seed = seed;
	world_init(&m->w, below(m, 3) ? 10000 : 0, MTU);
	m->peers = 1 + below(m, PEERS);
	for (i = 0; i < PEERS; i++)
		world_peer(&m->peer[i], i, MTU - 76);
}

/* Deliver all that is granted until all is done; then nothing may be left. */
static void drain(struct model *m)
{
	u32 rounds, i, left = 1;

	for (rounds = 0; left; rounds++) {
		/* With a window of one byte this takes its time. */
		unit_assert(m->seed, rounds < 10000000);
		if (rounds == 100) {
			homa_params_default(&m->w.engine->params);
			homa_prio_init(m->w.engine);
			homa_link_derive(m->w.link);
			m->due = true;
		}
		m->w.ctx.now += 1000;
		for (i = 0; i < MESSAGES; i++)
			op_receive(m, i, true);
		flush(m);
		for (i = 0, left = 0; i < MESSAGES; i++)
			left += m->msg[i].used;
	}
	assert_int_equal(m->w.link->grants.incoming, 0);
	assert_int_equal(m->w.link->grants.num_active, 0);
	assert_int_equal(m->w.link->grants.num_waiting, 0);
	assert_int_equal(m->w.link->grants.num_tails, 0);
	assert_null(homa_heap_min(&m->w.link->grants.peers));
	assert_true(homa_list_empty(&m->w.link->grants.ages));
	for (i = 0; i < PEERS; i++)
		assert_int_equal(m->peer[i].slots, 0);
}

/* Counters of all random runs together, to see that every branch was taken. */
static u64 counted[HOMA_M_COUNT];

static void run_model(u64 seed, u32 steps)
{
	struct model *m = malloc(sizeof(*m));
	u32 step, adds, n;

	assert_non_null(m);
	model_init(m, seed);
	adds = 1 + below(m, 10);
	for (step = 0; step < steps; step++) {
		m->w.ctx.now += below(m, 2000);
		if (below(m, 500) == 0)
			op_params(m);
		for (n = 1 + below(m, 4); n; n--) {
			if (below(m, 100) < adds)
				op_add(m);
			else if (below(m, 300) == 0)
				op_remove(m, below(m, MESSAGES));
			else
				op_receive(m, below(m, MESSAGES), !below(m, 20));
		}
		flush(m);
	}
	drain(m);
	for (n = 0; n < HOMA_M_COUNT; n++)
		counted[n] += m->w.ctx.metrics[n];
	world_free(&m->w);
	free(m);
}

static void grant__random_messages_like_the_model(void **state)
{
	u64 seed = unit_seed();
	u32 i;

	(void)state;
	for (i = 0; i < 40; i++)
		run_model(seed + i, 1500);
	assert_true(counted[HOMA_M_grant_fifo] > 100);
	assert_true(counted[HOMA_M_grant_limited] > 100);
	assert_true(counted[HOMA_M_grant_preempted] > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grant__random_messages_like_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
