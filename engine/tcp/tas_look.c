// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Looking in. Tools pay for what they see: a call looks at a bounded number of buckets,
 * and a cursor says where the next one goes on. What a connection does not count for its
 * own sake is worked out here, from what it has.
 */
#include "tas_look.h"

#include "tas_impl.h"

#define NO_SSTHRESH (1u << 30) /* ssthresh before the first loss, in bytes */

/* Values of tas_look_cursor.part. */
enum { LISTENERS, CONNECTIONS, ENDED, PARTS };

/* Time since @at, in ns; TAS_NEVER if that is 0. */
static u64 since(const struct tas_engine *engine, u64 at)
{
	return at ? engine->now - homa_min_u64(at, engine->now) : TAS_NEVER;
}

/* Writes the timer that is due first; the wheel may wake the connection before it. */
static void next_timer(const struct tas_engine *engine,
		       const struct tas_conn *conn, struct tas_info *info)
{
	u64 due = TAS_NEVER;
	u32 i;

	info->timer = TAS_TIMERS;
	for (i = 0; i < TAS_TIMERS; i++) {
		u64 deadline = tas_deadline(engine, conn, i);

		if (deadline >= due)
			continue;
		due = deadline;
		info->timer = (u8)i;
	}
	info->due = due == TAS_NEVER ? due : due - homa_min_u64(due, engine->now);
}

static u32 gap_bytes(const struct tas_conn *conn)
{
	u32 i, bytes = 0;

	for (i = 0; i < conn->f.gaps; i++)
		bytes += conn->interval[i].end - conn->interval[i].start;
	return bytes;
}

static void fill_counts(const struct tas_conn *conn, struct tas_info *info)
{
	info->segs_in = conn->segs_in;
	info->segs_out = conn->segs_out;
	info->data_in = conn->data_in;
	info->data_out = conn->data_out;
	info->resent = conn->resent;
	info->resent_bytes = conn->resent_bytes;
	info->out_of_order = conn->out_of_order;
	info->marks_in = conn->marks_in;
}

/* Before a connection is open its positions count a SYN, too. */
static void fill_bytes(const struct tas_conn *conn, struct tas_info *info)
{
	const struct tas_flow *f = &conn->f;

	info->mss = f->mss;
	info->rcv_mss = conn->rcv_mss;
	info->cwnd = f->cwnd;
	info->ssthresh =
		conn->ssthresh < NO_SSTHRESH ? conn->ssthresh : UINT32_MAX;
	info->rx_size = tas_rx_size(conn);
	info->gap_bytes = gap_bytes(conn);
	info->sacked = tas_sacked_bytes(conn);
	info->lost = conn->rtx_end - conn->rtx_nxt;
	if (f->state >= TAS_ESTABLISHED) {
		info->in_flight = tas_in_flight(conn);
		info->unsent = f->snd_end - f->snd_nxt;
		info->readable = tas_readable(conn);
		info->rcv_wnd = f->rcv_edge - f->rcv_nxt;
		info->snd_wnd = tas_after(f->snd_edge, f->snd_una) ?
					f->snd_edge - f->snd_una :
					0;
	}
}

void tas_conn_info(const struct tas_engine *engine, const struct tas_conn *conn,
		   struct tas_info *info)
{
	memset(info, 0, sizeof(*info));
	info->flags = conn->f.flags;
	info->state = conn->f.state;
	info->repair = conn->f.flags & TAS_F_LOSS     ? TAS_REPAIR_LOSS :
		       conn->f.flags & TAS_F_RECOVERY ? TAS_REPAIR_RECOVERY :
							TAS_REPAIR_NONE;
	info->control = conn->control;
	info->backoff = conn->backoff;
	info->probes = conn->probes;
	info->keep_probes = conn->keep_probes;
	info->snd_wscale = conn->f.snd_wscale;
	info->rcv_wscale = conn->f.rcv_wscale;
	info->path_mtu = conn->path_mtu ? conn->path_mtu : engine->mtu;
	fill_bytes(conn, info);
	fill_counts(conn, info);
	info->srtt = conn->srtt ? conn->srtt : TAS_NEVER;
	info->rttvar = conn->srtt ? conn->rttvar : TAS_NEVER;
	info->rto = conn->rto;
	info->age = since(engine, conn->born_at);
	info->heard = since(engine, homa_max_u64(conn->heard_at, conn->data_at));
	info->heard_data = since(engine, conn->data_at);
	info->sent_data = since(engine, conn->sent_at);
	next_timer(engine, conn, info);
	info->error = conn->error;
}

/* ---- one by one ---- */

static void look_at_listener(const struct homa_list *node, struct tas_look *look)
{
	const struct tas_listener *l =
		homa_container_of(node, struct tas_listener, node);

	look->state = TAS_LISTENING;
	look->listener = l;
	memcpy(look->pair.local, l->local, sizeof(look->pair.local));
	look->pair.local_port = l->port;
}

static void look_at_conn(const struct tas_engine *engine,
			 const struct homa_list *node, struct tas_look *look)
{
	const struct tas_conn *conn = tas_conn_at(node);

	look->state = conn->f.state;
	look->pair = conn->f.pair;
	look->conn = conn;
	/* Nobody knows of @refused. */
	look->listener =
		conn->listener == &engine->refused ? NULL : conn->listener;
	tas_conn_info(engine, conn, &look->info);
}

static void look_at_ended(const struct tas_engine *engine,
			  const struct homa_list *node, struct tas_look *look)
{
	const struct tas_ended *ended =
		homa_container_of(node, struct tas_ended, hash);

	look->state = look->info.state = TAS_TIME_WAIT;
	look->pair = ended->pair;
	look->info.timer = TAS_TIMER_END;
	look->info.due =
		ended->deadline - homa_min_u64(ended->deadline, engine->now);
}

static u32 buckets_of(const struct tas_engine *engine,
		      const struct tas_look_cursor *at)
{
	switch (at->part) {
	case LISTENERS:
		return TAS_LISTEN_BUCKETS;
	case CONNECTIONS:
		return engine->table.size;
	default:
		return at->ended && engine->ended.count ? engine->ended.size : 0;
	}
}

static const struct homa_list *bucket_of(const struct tas_engine *engine,
					 const struct tas_look_cursor *at)
{
	if (at->part == LISTENERS)
		return &engine->listeners[at->bucket];
	return homa_table_bucket(at->part == CONNECTIONS ? &engine->table :
							   &engine->ended,
				 at->bucket);
}

/* Writes as much of one bucket as fits; false: there is more of it. */
static bool look_at_bucket(const struct tas_engine *engine,
			   struct tas_look_cursor *at, struct tas_look *out,
			   u32 max, u32 *n)
{
	const struct homa_list *head = bucket_of(engine, at), *node;
	u32 i = 0;

	homa_list_for_each(node, head) {
		if (i++ < at->skip)
			continue;
		if (*n == max) {
			at->skip = i - 1;
			return false;
		}
		memset(&out[*n], 0, sizeof(*out));
		if (at->part == LISTENERS)
			look_at_listener(node, &out[*n]);
		else if (at->part == CONNECTIONS)
			look_at_conn(engine, node, &out[*n]);
		else
			look_at_ended(engine, node, &out[*n]);
		++*n;
	}
	return true;
}

u32 tas_look_some(const struct tas_engine *engine, struct tas_look_cursor *at,
		  struct tas_look *out, u32 max)
{
	u32 budget = TAS_LOOK_BUCKETS, n = 0;

	while (!at->end && n < max && budget) {
		if (at->bucket >= buckets_of(engine, at)) {
			at->bucket = at->skip = 0;
			at->end = ++at->part == PARTS;
			continue;
		}
		budget--;
		if (!look_at_bucket(engine, at, out, max, &n))
			break;
		at->bucket++;
		at->skip = 0;
	}
	return n;
}
