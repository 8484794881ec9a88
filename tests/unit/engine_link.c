/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/homa/homa_out.c: random messages, grants, supplies and RESENDs; a
 * model that searches all messages says which one a pull must send from, and
 * that every byte goes out once and is sent again only when asked for.
 */
#include "engine_world.h"

#define MESSAGES 32
#define MTU 1500
#define SEG (MTU - 76)
#define LENGTH_MAX 200000

struct msg {
	bool used;
	bool lossy; /* more RESENDs than it keeps records: some are dropped */
	u32 length;
	u32 next;
	u32 limit;
	u32 available;
	u32 unsched;
	u8 sched_prio;
	u64 birth;
	/* per byte: was asked for again and not yet sent again */
	u8 asked[LENGTH_MAX];
	u32 num_asked;
	bool left; /* some of it was sent */
};

struct model {
	struct world w;
	struct homa_rng rng;
	u64 seed;
	struct homa_peer peer;
	struct homa_rpc rpc[MESSAGES];
	struct msg msg[MESSAGES];
	u32 num_ctrl;
	u64 room;
};

/* So many records for ranges to send again; only one world at a time has some. */
static void give_records(struct world *w, u32 n)
{
	static u64 records[MESSAGES * HOMA_OUT_RTX][HOMA_RECORD_SIZE / sizeof(u64)];
	u32 i;

	assert_true(n <= HOMA_ARRAY_SIZE(records));
	for (i = 0; i < n; i++)
		homa_ctx_give_range(&w->ctx, records[i]);
}

static u32 below(struct model *m, u32 n)
{
	return homa_rng_below(&m->rng, n);
}

/* First byte that may not be sent: grants release whole segments. */
static u32 model_end(const struct msg *msg)
{
	u32 end = msg->limit;

	if (end < msg->next)
		end = msg->next;
	end = homa_min_u32((end + SEG - 1) / SEG * SEG, msg->length);
	if (msg->available < end)
		end = msg->available == msg->length ? end :
						      msg->available / SEG * SEG;
	return end;
}

static bool model_ready(const struct model *m, u32 i)
{
	const struct msg *msg = &m->msg[i];

	return msg->used && (m->rpc[i].out.num_rtx || model_end(msg) > msg->next);
}

/* SRPT: fewest bytes left, then oldest. */
static struct msg *model_pick(struct model *m)
{
	struct msg *best = NULL;
	u32 i;

	for (i = 0; i < MESSAGES; i++) {
		struct msg *msg = &m->msg[i];
		u32 left = msg->length - msg->next;

		if (!model_ready(m, i))
			continue;
		if (!best || left < best->length - best->next ||
		    (left == best->length - best->next &&
		     msg->birth < best->birth))
			best = msg;
	}
	return best;
}

static void op_start(struct model *m)
{
	static const u32 unsched[] = { 0, 1, SEG, 10000, 40000, LENGTH_MAX };
	u32 i = below(m, MESSAGES);
	struct msg *msg = &m->msg[i];

	if (msg->used)
		return;
	memset(msg, 0, sizeof(*msg));
	m->w.ctx.now++;
	world_rpc(&m->w, &m->rpc[i], &m->peer, i);
	msg->used = true;
	msg->birth = m->w.ctx.now;
	msg->length = 1 + below(m, below(m, 2) ? 3000 : LENGTH_MAX);
	msg->available = below(m, 4) ? msg->length : below(m, msg->length + 1);
	homa_out_start(&m->w.ctx, &m->rpc[i], msg->length, msg->available,
		       unsched[below(m, 6)]);
	/* The unscheduled part ends on the grid; otherwise it is the host's. */
	msg->unsched = m->rpc[i].out.unsched;
	msg->limit = msg->unsched;
	unit_assert(m->seed,
		    msg->unsched == msg->length || msg->unsched % SEG == 0);
}

static void op_grant(struct model *m)
{
	u32 i = below(m, MESSAGES);
	struct msg *msg = &m->msg[i];
	u32 limit = below(m, 8) ? msg->limit + below(m, 20000) :
				  below(m, LENGTH_MAX);
	u8 prio = (u8)below(m, 8);

	if (!msg->used)
		return;
	homa_out_grant(&m->w.ctx, &m->rpc[i], limit, prio);
	msg->sched_prio = prio;
	limit = homa_min_u32(limit, msg->length);
	msg->limit = homa_max_u32(msg->limit, limit);
}

static void op_supply(struct model *m)
{
	u32 i = below(m, MESSAGES);
	struct msg *msg = &m->msg[i];
	u32 available =
		below(m, 3) ? msg->available + below(m, 5000) : LENGTH_MAX;

	if (!msg->used)
		return;
	homa_out_supply(&m->w.ctx, &m->rpc[i], available);
	available = homa_min_u32(available, msg->length);
	msg->available = homa_max_u32(msg->available, available);
}

static void ask(struct model *m, u32 i, u32 start, u32 end)
{
	struct msg *msg = &m->msg[i];
	u32 at;

	if (m->rpc[i].out.num_rtx >=
	    homa_min_u32(HOMA_OUT_RTX, 2 + msg->next / 512))
		msg->lossy = true;
	for (at = start; at < homa_min_u32(end, msg->next); at++) {
		msg->num_asked += !msg->asked[at];
		msg->asked[at] = 1;
	}
}

static void op_resend(struct model *m)
{
	u32 i = below(m, MESSAGES);
	struct msg *msg = &m->msg[i];
	u32 start, end;

	if (!msg->used)
		return;
	start = below(m, msg->length);
	end = below(m, 4) ? start + 1 + below(m, 5000) : 0xffffffff;
	ask(m, i, start, end);
	homa_out_resend(&m->w.ctx, &m->rpc[i], start, end, (u8)below(m, 8));
}

static void op_cancel(struct model *m)
{
	u32 i = below(m, MESSAGES);

	if (!m->msg[i].used)
		return;
	homa_out_cancel(&m->w.ctx, &m->rpc[i]);
	homa_out_cancel(&m->w.ctx, &m->rpc[i]);
	m->msg[i].used = false;
}

static void op_ctrl(struct model *m)
{
	struct homa_ctrl *ctrl =
		homa_ctrl_to(&m->w.ctx, m->w.link, &m->peer.addr, HOMA_BUSY);

	ctrl->sport = 1;
	ctrl->dport = 2;
	ctrl->sender_id = 3;
	homa_ctrl_flush(&m->w.ctx);
	m->num_ctrl++;
}

/* The header says what the descriptor says. */
static void check_header(struct model *m, const struct homa_tx_desc *desc)
{
	struct homa_packet p;
	u8 hdr[96 + 1];
	u32 skip, len;

	for (skip = 0; skip < desc->length; skip += desc->seg_size) {
		u32 n = homa_min_u32(desc->seg_size, desc->length - skip);

		len = homa_tx_segment(desc, skip, hdr);
		assert_int_equal(homa_packet_decode(&p, hdr, len + n),
				 HOMA_WIRE_OK);
		assert_int_equal(p.hdr.type, HOMA_DATA);
		unit_assert(m->seed, p.data.offset == desc->offset + skip);
		unit_assert(m->seed, p.data.length == desc->rpc->out.length);
		unit_assert(m->seed, p.data.retransmit == desc->retransmit);
	}
}

static void check_data(struct model *m, struct homa_tx_desc *desc, u32 max_segs)
{
	u32 i = (u32)(desc->rpc - m->rpc), at;
	struct msg *msg = &m->msg[i];

	unit_assert(m->seed, i < MESSAGES && msg->used);
	unit_assert(m->seed, desc->length > 0);
	unit_assert(m->seed, desc->length <= max_segs * SEG);
	assert_int_equal(desc->seg_size, SEG);
	check_header(m, desc);
	/* Only of a message that never left is nothing a retransmission. */
	unit_assert(m->seed, desc->retransmit || !msg->left ||
				     desc->offset == msg->next);
	if (desc->retransmit || desc->offset < msg->next) {
		for (at = desc->offset; at < desc->offset + desc->length; at++) {
			unit_assert(m->seed, at < msg->next && msg->asked[at]);
			msg->asked[at] = 0;
			msg->num_asked--;
		}
		return;
	}
	unit_assert(m->seed, desc->offset == msg->next);
	unit_assert(m->seed, desc->offset % SEG == 0);
	unit_assert(m->seed, desc->offset + desc->length <= model_end(msg));
	if (desc->offset < msg->unsched) {
		unit_assert(m->seed, desc->offset + desc->length <= msg->unsched);
		unit_assert(m->seed,
			    desc->prio == homa_peer_unsched_prio(&m->peer,
								 msg->length));
	} else {
		unit_assert(m->seed, desc->prio == msg->sched_prio);
	}
	msg->next += desc->length;
}

/* One pull, against the model. Returns what homa_tx() said. */
static enum homa_tx_result op_tx(struct model *m, u32 max_segs)
{
	struct msg *expected = model_pick(m);
	struct homa_tx_desc desc;
	enum homa_tx_result result;
	bool urgent;
	u32 i;

	result = homa_tx(&m->w.ctx, m->w.link, max_segs, &desc);
	if (m->num_ctrl) {
		assert_int_equal(result, HOMA_TX_PACKET);
		assert_null(desc.rpc);
		assert_int_equal(desc.length, 0);
		m->num_ctrl--;
		m->room -= homa_min_u64(m->room, 28 + 20 + 38);
		return result;
	}
	if (!expected) {
		assert_int_equal(result, HOMA_TX_IDLE);
		return result;
	}
	urgent = expected->length <= expected->unsched &&
		 expected->length - expected->next <= 1000;
	if (!urgent && m->room < SEG) {
		unit_assert(m->seed, result == HOMA_TX_WAIT);
		assert_true(desc.not_before == HOMA_NEVER);
		return result;
	}
	unit_assert(m->seed, result == HOMA_TX_PACKET);
	unit_assert(m->seed, desc.rpc == &m->rpc[expected - m->msg]);
	check_data(m, &desc, max_segs);
	m->room -= homa_min_u64(m->room, desc.length + (desc.length + SEG - 1) /
							       SEG *
							       (56 + 20 + 38));
	i = (u32)(desc.rpc - m->rpc);
	if (below(m, 50) == 0) {
		ask(m, i, desc.offset, desc.offset + desc.length);
		homa_tx_done(&m->w.ctx, &desc, -1);
	} else {
		m->msg[i].left = true;
		homa_tx_done(&m->w.ctx, &desc, 0);
	}
	assert_null(desc.rpc);
	assert_int_equal(homa_ref_read(&m->rpc[i].refs), 1);
	return result;
}

static void set_room(struct model *m, u64 room)
{
	m->room = room;
	homa_link_room(m->w.link, room);
}

/* Everything is granted, supplied and sent in the end. */
static void drain(struct model *m)
{
	u32 i;

	for (i = 0; i < MESSAGES; i++) {
		struct msg *msg = &m->msg[i];

		if (!msg->used)
			continue;
		homa_out_supply(&m->w.ctx, &m->rpc[i], msg->length);
		homa_out_grant(&m->w.ctx, &m->rpc[i], 0xffffffff, 3);
		msg->available = msg->length;
		msg->limit = msg->length;
		msg->sched_prio = 3;
	}
	do {
		set_room(m, 1000000);
	} while (op_tx(m, 1 + below(m, 8)) != HOMA_TX_IDLE);
	for (i = 0; i < MESSAGES; i++) {
		struct msg *msg = &m->msg[i];

		if (!msg->used)
			continue;
		unit_assert(m->seed, msg->next == msg->length);
		unit_assert(m->seed, msg->lossy || !msg->num_asked);
	}
	assert_int_equal(m->w.link->sched.heap.count, 0);
	assert_int_equal(m->w.link->sched.fifo.count, 0);
}

static void run_model(u64 seed)
{
	struct model *m = calloc(1, sizeof(*m));
	u32 i, step;

	assert_non_null(m);
	homa_rng_init(&m->rng, seed);
	m->seed = seed;
	world_init(&m->w, 10000, MTU);
	give_records(&m->w, MESSAGES * HOMA_OUT_RTX);
	m->w.engine->params.pacer_fifo_fraction = 0;
	homa_link_pace_by_room(m->w.link);
	world_peer(&m->peer, 0, SEG);
	for (i = 0; i < HOMA_PRIORITIES; i++)
		m->peer.cutoffs[i] = m->w.engine->prio.cutoffs[i];
	for (step = 0; step < 20000; step++) {
		switch (below(m, 12)) {
		case 0:
			op_start(m);
			break;
		case 1:
			op_grant(m);
			break;
		case 2:
			op_supply(m);
			break;
		case 3:
			if (below(m, 4) == 0)
				op_resend(m);
			break;
		case 4:
			if (below(m, 10) == 0)
				op_cancel(m);
			break;
		case 5:
			if (below(m, 10) == 0)
				op_ctrl(m);
			break;
		case 6:
			set_room(m, below(m, 20000));
			break;
		default:
			op_tx(m, 1 + below(m, 8));
		}
	}
	drain(m);
	world_free(&m->w);
	free(m);
}

static void link__random_messages_like_the_model(void **state)
{
	u64 seed = unit_seed();
	u32 i;

	(void)state;
	for (i = 0; i < 20; i++)
		run_model(seed + i);
}

/* ---- pacing and the oldest message's share ---- */

struct load {
	struct world w;
	struct homa_peer peer;
	struct homa_rpc old;
	struct homa_rpc young[2];
	u64 old_bytes, all_bytes, wire_bytes;
};

static void load_init(struct load *l, u32 mbps)
{
	memset(l, 0, sizeof(*l));
	world_init(&l->w, mbps, MTU);
	world_peer(&l->peer, 0, SEG);
	world_rpc(&l->w, &l->old, &l->peer, 1);
	homa_out_start(&l->w.ctx, &l->old, 0x7fffffff, 0x7fffffff, 0);
	homa_out_grant(&l->w.ctx, &l->old, 0x7fffffff, 0);
}

/* There is always a shorter message to send. */
static void load_refill(struct load *l)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		struct homa_rpc *rpc = &l->young[i];

		if (rpc->link && rpc->out.next < rpc->out.length)
			continue;
		if (rpc->link)
			homa_out_cancel(&l->w.ctx, rpc);
		world_rpc(&l->w, rpc, &l->peer, 2 + i);
		homa_out_start(&l->w.ctx, rpc, 50000, 50000, 0);
		homa_out_grant(&l->w.ctx, rpc, 50000, 0);
	}
}

/* Send for @ns; ask again whenever told to, and every now and then besides. */
static void load_run(struct load *l, u64 ns, u32 max_segs)
{
	u64 end = l->w.ctx.now + ns;
	struct homa_tx_desc desc;

	while (l->w.ctx.now < end) {
		load_refill(l);
		if (homa_tx(&l->w.ctx, l->w.link, max_segs, &desc) ==
		    HOMA_TX_WAIT) {
			assert_true(desc.not_before > l->w.ctx.now);
			l->w.ctx.now +=
				homa_min_u64(desc.not_before - l->w.ctx.now, 500);
			continue;
		}
		l->all_bytes += desc.length;
		l->wire_bytes +=
			desc.length + (desc.length + SEG - 1) / SEG * 114;
		if (desc.rpc == &l->old)
			l->old_bytes += desc.length;
		homa_tx_done(&l->w.ctx, &desc, 0);
	}
}

static void link_pace__uses_the_rate_and_no_more(void **state)
{
	static const u32 rates[] = { 100, 1000, 10000, 100000 };
	u32 i, segs;

	(void)state;
	for (i = 0; i < 4; i++) {
		for (segs = 1; segs <= 16; segs *= 4) {
			u64 ns = 20000000, usable;
			struct load l;

			load_init(&l, rates[i]);
			load_run(&l, ns, segs);
			usable = ns * rates[i] / 8000 * 99 / 100;
			assert_true(l.wire_bytes <=
				    usable + usable / 100 + 4 * 1538 + rates[i]);
			assert_true(l.wire_bytes >= usable - usable / 100);
			world_free(&l.w);
		}
	}
}

static void link_fifo__oldest_message_gets_its_share(void **state)
{
	u32 fraction, segs;

	(void)state;
	for (fraction = 0; fraction <= 200; fraction += 50) {
		for (segs = 1; segs <= 16; segs *= 4) {
			struct load l;
			u64 share;

			load_init(&l, 10000);
			l.w.engine->params.pacer_fifo_fraction = fraction;
			load_run(&l, 20000000, segs);
			share = l.old_bytes * 1000 / l.all_bytes;
			if (share + 5 < fraction || share > fraction + 5)
				fail_msg("share of %u/1000 with %u segments: %llu",
					 fraction, segs,
					 (unsigned long long)share);
			assert_true(!fraction == !l.w.ctx.metrics[HOMA_M_tx_fifo]);
			world_free(&l.w);
		}
	}
}

/* Neither waiting for the link nor the oldest message's turn delays it. */
static void link_ready__short_messages_are_never_paced(void **state)
{
	struct homa_tx_desc desc;
	struct homa_rpc rpc;
	struct load l;
	u32 i;

	(void)state;
	load_init(&l, 100);
	l.w.engine->params.pacer_fifo_fraction = 500;
	load_refill(&l);
	for (i = 0; i < 100; i++) {
		load_run(&l, 100000, 1);
		while (homa_tx(&l.w.ctx, l.w.link, 1, &desc) == HOMA_TX_PACKET)
			homa_tx_done(&l.w.ctx, &desc, 0);
		world_rpc(&l.w, &rpc, &l.peer, 9);
		homa_out_start(&l.w.ctx, &rpc, 1000, 1000, 1000);
		assert_int_equal(homa_tx(&l.w.ctx, l.w.link, 1, &desc),
				 HOMA_TX_PACKET);
		assert_ptr_equal(desc.rpc, &rpc);
		homa_tx_done(&l.w.ctx, &desc, 0);
		homa_out_cancel(&l.w.ctx, &rpc);
	}
	world_free(&l.w);
}

/* Ranges that touch are sent as one, at the highest level asked for; what finds no
 * record is forgotten. */
static void link_resend__merges_and_forgets(void **state)
{
	static const struct {
		u32 offset, length;
		u8 prio;
	} expected[] = { { 0, 3000, 5 },
			 { 10000, 100, 1 },
			 { 20000, 100, 1 },
			 { 30000, 100, 1 } };
	struct homa_tx_desc desc;
	struct homa_rpc rpc;
	struct world w;
	struct homa_peer peer;
	u32 i;

	(void)state;
	world_init(&w, 0, MTU);
	give_records(&w, 4);
	world_peer(&peer, 0, SEG);
	world_rpc(&w, &rpc, &peer, 1);
	homa_out_start(&w.ctx, &rpc, 50000, 50000, 50000);
	while (homa_tx(&w.ctx, w.link, 64, &desc) == HOMA_TX_PACKET)
		homa_tx_done(&w.ctx, &desc, 0);
	assert_int_equal(rpc.out.next, 50000);
	homa_out_resend(&w.ctx, &rpc, 0, 1000, 1);
	homa_out_resend(&w.ctx, &rpc, 2000, 3000, 5);
	homa_out_resend(&w.ctx, &rpc, 1000, 2000, 3);
	homa_out_resend(&w.ctx, &rpc, 10000, 10100, 1);
	homa_out_resend(&w.ctx, &rpc, 20000, 20100, 1);
	homa_out_resend(&w.ctx, &rpc, 30000, 30100, 1);
	homa_out_resend(&w.ctx, &rpc, 25000, 25100, 2);
	homa_out_resend(&w.ctx, &rpc, 40000, 40100, 7);
	for (i = 0; i < HOMA_ARRAY_SIZE(expected); i++) {
		assert_int_equal(homa_tx(&w.ctx, w.link, 64, &desc),
				 HOMA_TX_PACKET);
		assert_true(desc.retransmit);
		assert_int_equal(desc.offset, expected[i].offset);
		assert_int_equal(desc.length, expected[i].length);
		assert_int_equal(desc.prio, expected[i].prio);
		homa_tx_done(&w.ctx, &desc, 0);
	}
	assert_int_equal(homa_tx(&w.ctx, w.link, 64, &desc), HOMA_TX_IDLE);
	assert_int_equal(w.ctx.spare_ranges, 4);
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link__random_messages_like_the_model),
		cmocka_unit_test(link_pace__uses_the_rate_and_no_more),
		cmocka_unit_test(link_fifo__oldest_message_gets_its_share),
		cmocka_unit_test(link_ready__short_messages_are_never_paced),
		cmocka_unit_test(link_resend__merges_and_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
