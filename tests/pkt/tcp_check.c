// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The invariants of tcp_check.h. */
#include "tcp_check.h"
#include "tas_impl.h"

#define MUST(true_thing)                    \
	do {                                \
		if (!(true_thing))          \
			return #true_thing; \
	} while (0)

/* @a, @b and @c follow each other from @base on. */
static bool ordered(u32 base, u32 a, u32 b, u32 c)
{
	return a - base <= b - base && b - base <= c - base &&
	       c - base < 1u << 31;
}

static const char *check_sent(const struct tas_conn *conn)
{
	const struct tas_flow *f = &conn->f;
	u32 i, last = f->snd_una;

	MUST(ordered(f->snd_una, f->snd_una, f->snd_nxt, f->snd_end));
	MUST(conn->rtx_nxt == conn->rtx_end ||
	     ordered(f->snd_una, conn->rtx_nxt, conn->rtx_end, f->snd_nxt));
	MUST(f->sacks <= TAS_INTERVALS);
	for (i = 0; i < f->sacks; i++) {
		const struct tas_range *r = &conn->sacked[i];

		MUST(ordered(f->snd_una, last, r->start, f->snd_nxt));
		MUST(i == 0 || r->start != last);
		MUST(r->start != r->end);
		MUST(ordered(f->snd_una, r->start, r->end, f->snd_nxt));
		last = r->end;
	}
	MUST(f->mss > 0);
	if (f->state < TAS_ESTABLISHED)
		return NULL;
	MUST(f->cwnd >= f->mss && f->cwnd < 1u << 31);
	MUST(conn->ssthresh >= f->mss);
	return NULL;
}

/* The edge of the window as the last segment said it: scaled, so rounded up. */
static u32 announced(const struct tas_conn *conn)
{
	u32 slack = tas_scale_slack(conn);

	return conn->f.rcv_nxt +
	       ((conn->f.rcv_edge - conn->f.rcv_nxt + slack) & ~slack);
}

/* What the fast path takes for granted in the short form. */
static const char *check_short(const struct tas_conn *conn)
{
	const struct tas_flow *f = &conn->f;
	u32 size = tas_rx_size(conn);

	if (!(f->flags & TAS_F_SHORT))
		return NULL;
	MUST(f->state == TAS_ESTABLISHED);
	MUST(!(f->flags & (TAS_F_FIN | TAS_F_CLOSED | TAS_F_FIN_IN)));
	MUST(conn->rcv_open == f->rcv_edge + conn->rcv_mss - size);
	MUST(conn->rcv_low == f->rcv_edge - size / 2);
	MUST(conn->rcv_mss <= size / 2);
	MUST(f->rcv_edge - f->rcv_nxt <= 65535u << f->rcv_wscale);
	MUST(f->rcv_acked == f->rcv_nxt ||
	     (f->flags & (TAS_F_ACK_NOW | TAS_F_ACK_LATER)));
	return NULL;
}

static const char *check_received(const struct tas_conn *conn)
{
	const struct tas_flow *f = &conn->f;
	u32 i, j;

	MUST(f->gaps <= TAS_INTERVALS);
	if (f->state < TAS_ESTABLISHED) {
		MUST(!f->gaps);
		return NULL;
	}
	MUST(ordered(f->rcv_read, f->rcv_read, f->rcv_nxt, f->rcv_nxt));
	if (f->flags & TAS_F_FIN_IN)
		return NULL;
	MUST(ordered(f->rcv_read, f->rcv_nxt, f->rcv_edge, f->rcv_edge));
	MUST(announced(conn) - f->rcv_read <= tas_rx_size(conn));
	for (i = 0; i < f->gaps; i++) {
		const struct tas_range *r = &conn->interval[i];

		MUST(tas_after(r->start, f->rcv_nxt) &&
		     tas_after(r->end, r->start));
		MUST(!tas_after(r->end, tas_rx_limit(conn)));
		for (j = 0; j < i; j++)
			MUST(tas_after(r->start, conn->interval[j].end) ||
			     tas_before(r->end, conn->interval[j].start));
	}
	return NULL;
}

/* Whatever waits has a time at which it goes on. */
static const char *check_times(const struct tas_engine *engine,
			       const struct tas_conn *conn)
{
	u64 deadline[TAS_TIMERS];
	u32 i;

	for (i = 0; i < TAS_TIMERS; i++) {
		deadline[i] = tas_deadline(engine, conn, i);
		MUST(deadline[i] == TAS_NEVER ||
		     (homa_wheel_linked(&conn->wheel) &&
		      conn->wheel.deadline <= deadline[i]));
	}
	MUST(!(conn->f.flags & TAS_F_ACK_NOW));
	MUST(!(conn->f.flags & TAS_F_ACK_LATER) ||
	     deadline[TAS_TIMER_DELACK] != TAS_NEVER);
	if (conn->f.state == TAS_TIME_WAIT)
		MUST(deadline[TAS_TIMER_END] != TAS_NEVER);
	else
		MUST(conn->f.snd_una == conn->f.snd_end ||
		     deadline[TAS_TIMER_RETRANSMIT] != TAS_NEVER);
	return NULL;
}

const char *tcp_check(struct tas_engine *engine)
{
	struct homa_list *node;
	const char *wrong;
	u32 i, n = 0;

	for (i = 0; i < engine->table.size; i++) {
		struct homa_list *bucket = homa_table_bucket(&engine->table, i);

		homa_list_for_each(node, bucket) {
			struct tas_conn *conn =
				homa_container_of(node, struct tas_conn, f.hash);

			wrong = check_sent(conn);
			wrong = wrong ? wrong : check_received(conn);
			wrong = wrong ? wrong : check_short(conn);
			wrong = wrong ? wrong : check_times(engine, conn);
			if (wrong)
				return wrong;
			n++;
		}
	}
	MUST(n == engine->table.count);
	n = 0;
	homa_list_for_each(node, &engine->ended_order)
		n++;
	MUST(n == engine->ended.count);
	MUST(engine->stray_head == engine->stray_tail);
	MUST(homa_list_empty(&engine->tx));
	return NULL;
}

struct tas_conn *tcp_check_only(struct tas_engine *engine)
{
	struct homa_list *node;
	u32 i;

	for (i = 0; i < engine->table.size && engine->table.count == 1; i++) {
		node = homa_list_first(homa_table_bucket(&engine->table, i));
		if (node)
			return homa_container_of(node, struct tas_conn, f.hash);
	}
	return NULL;
}
