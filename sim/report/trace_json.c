// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The run in the Trace Event Format of Chrome, which the Perfetto UI reads:
 * one JSON object per line, in the order of time.
 *
 * A node is a "process" (number + 1, for 0 has a meaning of its own). A host's
 * "threads" are its link out and its link in, whose bars are packets, then
 * lanes whose bars are messages: at the sender from creation to delivery, at
 * the receiver from the first packet of it that came. On a message's bar stand
 * its control packets as instants, with an arrow from where one was sent to
 * where it arrived; in an RPC run an arrow leads from request to response. A
 * switch has a counter for the length of each of its queues, and its drops.
 *
 * A bar begins and ends with two records, so that one that never ends is seen
 * too, and a file that was cut can be read. What is known of a message only
 * later (its delay in queues) stands with its end. Time stamps are microseconds
 * with three decimals, cut off, never rounded: bars then never overlap.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "homa_codec.h"
#include "homa_hash.h"
#include "trace_impl.h"

#define EVENT_MAX 1024
#define TIDS_PER_NODE 1000u /* thread numbers are unique among all nodes */

enum { TID_LINK_OUT = 0, TID_LINK_IN = 1, TID_OUT = 100, TID_IN = 550 };

/* Formats a time: PRITS is the format in us, TS(ps) are its arguments. */
#define PRITS "%llu.%03u"
#define TS(ps) (ps) / SIM_US, (unsigned)((ps) / SIM_NS % 1000)

/* Makes JSON of @text, in which the strings of this file have ' in place of ". */
static void with_quotes(char *text)
{
	while ((text = strchr(text, '\'')) != NULL)
		*text = '"';
}

/* Writes a record of the kind @phase, with the members that @fmt makes. */
static void event(struct trace_json *j, char phase, u32 node, u32 tid, u64 at,
		  const char *fmt, ...) __attribute__((format(printf, 6, 7)));

static void event(struct trace_json *j, char phase, u32 node, u32 tid, u64 at,
		  const char *fmt, ...)
{
	char text[EVENT_MAX];
	int len, n;
	va_list ap;

	len = snprintf(text, sizeof(text), "%s{'ph':'%c','pid':%u,'tid':%u,'ts':" PRITS ",",
		       j->begun ? ",\n" : "", phase, node + 1, tid, TS(at));
	va_start(ap, fmt);
	n = vsnprintf(text + len, sizeof(text) - (size_t)len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)(len + n) + 2 > sizeof(text))
		return;
	strcpy(text + len + n, "}");
	with_quotes(text);
	trace_file_add(&j->file, text, (size_t)(len + n) + 1);
	j->begun = true;
}

static u32 node_tid(u32 node, u32 tid)
{
	return (node + 1) * TIDS_PER_NODE + tid;
}

static u32 lane_tid(u32 host, enum trace_side side, u32 lane)
{
	return node_tid(host, (side == TRACE_OUT ? TID_OUT : TID_IN) + lane);
}

static void name_thread(struct trace_json *j, u32 node, u32 tid, const char *name)
{
	event(j, 'M', node, tid, 0, "'name':'thread_name','args':{'name':'%s'}", name);
	event(j, 'M', node, tid, 0, "'name':'thread_sort_index','args':{'sort_index':%u}",
	      tid % TIDS_PER_NODE);
}

/* ---- from when to when ---- */

/* Ends all bars that are open. */
static void json_finish(struct trace_json *j, const struct sim *sim, u64 at)
{
	u32 host, side, lane;

	if (j->done)
		return;
	j->done = true;
	for (host = 0; host < sim->cfg.hosts; host++)
		for (side = 0; side < TRACE_SIDES; side++)
			for (lane = 0; lane < j->lanes.used[host * TRACE_SIDES + side];
			     lane++)
				if (trace_lane_busy(&j->lanes, host, side, lane))
					event(j, 'E', host, lane_tid(host, side, lane),
					      at, "'args':{'delivered':false}");
	if (j->beyond)
		event(j, 'i', 0, 0, at,
		      "'s':'g','name':'%" PRIu64
		      " messages are not shown: their host had %u others under way'",
		      j->beyond, TRACE_MAX_LANES);
}

static bool json_wants(struct trace_json *j, const struct sim *sim)
{
	if (j->done || sim->now < j->from)
		return false;
	if (sim->now < j->until && trace_file_room(&j->file))
		return true;
	json_finish(j, sim, sim->now < j->until ? sim->now : j->until);
	return false;
}

/* ---- messages ---- */

static void lane_name(struct trace_json *j, u32 host, enum trace_side side, u32 lane)
{
	char name[32];

	snprintf(name, sizeof(name), "%s %u", side == TRACE_OUT ? "sends" : "receives",
		 lane);
	name_thread(j, host, lane_tid(host, side, lane), name);
}

/* Adds an arrow that begins ("s") or ends ("f") at the bar that is open on this lane
 * now. */
static void arrow(struct trace_json *j, const struct sim *sim, char phase,
		  const char *name, u64 id, u32 host, u32 tid)
{
	event(j, phase, host, tid, sim->now,
	      "'bp':'e','cat':'homa','name':'%s','id':'0x%" PRIx64 "'", name, id);
}

/* Opens a bar for @msg, which has no lane yet: the message or the trace begins now. */
static u32 msg_begin(struct trace_json *j, const struct sim *sim,
		     const struct sim_msg *msg, enum trace_side side)
{
	const u32 host = side == TRACE_OUT ? msg->src : msg->dst;
	bool fresh = false;
	u32 lane = trace_lane_take(&j->lanes, msg->serial, side, host, &fresh);
	u32 tid;

	if (lane == TRACE_NO_LANE) {
		j->beyond++;
		return lane;
	}
	if (fresh)
		lane_name(j, host, side, lane);
	tid = lane_tid(host, side, lane);
	event(j, 'B', host, tid, sim->now,
	      "'cat':'message','name':'%u B %s %u%s','args':{'message':%" PRIu64
	      ",'bytes':%u,'from':%u,'to':%u,'created_us':" PRITS "}",
	      msg->length, side == TRACE_OUT ? "to" : "from",
	      side == TRACE_OUT ? msg->dst : msg->src, msg->request ? " (response)" : "",
	      msg->serial, msg->length, msg->src, msg->dst, TS(msg->created));
	return lane;
}

static void msg_end(struct trace_json *j, const struct sim *sim,
		    const struct sim_msg *msg, enum trace_side side)
{
	u32 host = 0, lane = trace_lane_release(&j->lanes, msg->serial, side, &host);
	u64 took = msg->done - msg->created;

	if (lane == TRACE_NO_LANE)
		return;
	if (side == TRACE_IN && sim->cfg.rpc && !msg->request)
		arrow(j, sim, 's', "response", msg->serial << 1 | 1, host,
		      lane_tid(host, side, lane));
	event(j, 'E', host, lane_tid(host, side, lane), sim->now,
	      "'args':{'delivered':true,'took_us':" PRITS ",'ideal_us':" PRITS
	      ",'last_packet_queued_us':" PRITS ",'of_which_lag_us':" PRITS "}",
	      TS(took), TS(msg->ideal_ps), TS(msg->wait_ps), TS(msg->lag_ps));
}

void trace_json_started(struct trace_json *j, struct sim *sim, const struct sim_msg *msg)
{
	u32 lane;

	if (!json_wants(j, sim))
		return;
	lane = msg_begin(j, sim, msg, TRACE_OUT);
	if (msg->request && lane != TRACE_NO_LANE)
		arrow(j, sim, 'f', "response", msg->request->serial << 1 | 1, msg->src,
		      lane_tid(msg->src, TRACE_OUT, lane));
}

void trace_json_delivered(struct trace_json *j, struct sim *sim, const struct sim_msg *msg)
{
	if (!json_wants(j, sim))
		return;
	msg_end(j, sim, msg, TRACE_IN);
	msg_end(j, sim, msg, TRACE_OUT);
}

/* ---- packets ---- */

/*
 * Returns the name of a message, made of its RPC, to which a Homa packet belongs, and of
 * the host that sends it. The RPC's id, even at the client, is unique for the client's
 * host.
 */
static u64 rpc_name(const struct sim_pkt *pkt, u32 sender)
{
	const struct homa_wire_common *h = (const struct homa_wire_common *)pkt->hdr;
	const u64 id = homa_get_be64(&h->sender_id);
	const u64 client = id & 1 ? pkt->dst : pkt->src;

	return homa_hash_mix(id >> 1) ^ homa_hash_mix(client << 32 | sender);
}

/* Returns the serial of the message that @pkt is about, or 0 if it is not known. */
static u64 pkt_serial(const struct trace_json *j, const struct sim_pkt *pkt)
{
	u64 serial;

	if (pkt->msg_serial || !pkt->hdr_len)
		return pkt->msg_serial;
	/* BUSY comes from the message's sender; other packets come from its receiver or
	 * belong to both messages. */
	serial = pkt->type == HOMA_BUSY ?
			 0 :
			 trace_lane_serial(&j->lanes, rpc_name(pkt, pkt->dst));
	return serial ? serial : trace_lane_serial(&j->lanes, rpc_name(pkt, pkt->src));
}

/* Writes what the packet says, as members of a JSON object without a comma at the end. */
static void pkt_args(const struct sim_pkt *pkt, u64 serial, char *text, size_t size)
{
	struct homa_packet p;
	int n;

	n = snprintf(text, size, "'priority':%u,'wire_bytes':%u", pkt->prio, pkt->wire);
	if (serial)
		n += snprintf(text + n, size - (size_t)n, ",'message':%" PRIu64, serial);
	if (!(pkt->flags & SIM_CONTROL))
		n += snprintf(text + n, size - (size_t)n, ",'offset':%u,'bytes':%u%s%s",
			      pkt->offset, pkt->payload,
			      pkt->flags & SIM_RETRANSMIT ? ",'retransmission':true" : "",
			      pkt->flags & SIM_TRIMMED ? ",'trimmed':true" : "");
	if (pkt->flags & SIM_ECN_CE)
		n += snprintf(text + n, size - (size_t)n, ",'marked':true");
	if (!(pkt->flags & SIM_CONTROL) || !pkt->hdr_len ||
	    homa_packet_decode(&p, pkt->hdr, pkt->hdr_len))
		return;
	if (p.hdr.type == HOMA_GRANT)
		snprintf(text + n, size - (size_t)n, ",'grant_to':%u,'grant_priority':%u",
			 p.grant.offset, p.grant.priority);
	else if (p.hdr.type == HOMA_RESEND)
		snprintf(text + n, size - (size_t)n, ",'resend_from':%u,'resend_bytes':%d",
			 p.resend.offset, (int)p.resend.length);
}

/* Adds a bar to a host's link. */
static void pkt_bar(struct trace_json *j, const struct sim *sim,
		    const struct sim_pkt *pkt, u64 begin, u64 end, const char *queued)
{
	const bool out = !*queued;
	const u32 host = out ? pkt->src : pkt->dst;
	const u64 length = end / SIM_NS - begin / SIM_NS;
	char args[384];

	pkt_args(pkt, pkt_serial(j, pkt), args, sizeof(args));
	event(j, 'X', host, node_tid(host, out ? TID_LINK_OUT : TID_LINK_IN), begin,
	      "'dur':" PRITS ",'cat':'packet','name':'%s %s %u','args':{%s%s}",
	      TS(length * SIM_NS), trace_type_name(sim, pkt), out ? "to" : "from",
	      out ? pkt->dst : pkt->src, args, queued);
}

/* Returns the lane at @host of the message that @pkt is about. */
static u32 pkt_lane(const struct trace_json *j, u64 serial, u32 host, u32 *tid)
{
	enum trace_side side;
	u32 at = 0, lane;

	for (side = TRACE_OUT; side < TRACE_SIDES; side++) {
		lane = trace_lane_find(&j->lanes, serial, side, &at);
		if (lane != TRACE_NO_LANE && at == host) {
			*tid = lane_tid(host, side, lane);
			return lane;
		}
	}
	return TRACE_NO_LANE;
}

/* Adds a mark where a control packet leaves or reaches @host. */
static void pkt_instant(struct trace_json *j, const struct sim *sim,
			const struct sim_pkt *pkt, bool sent)
{
	const u64 serial = pkt_serial(j, pkt);
	const u64 id =
		homa_hash_mix(serial << 20 ^ (u64)pkt->type << 56 ^ pkt->sent_at / SIM_NS);
	const char *name = trace_type_name(sim, pkt);
	const u32 host = sent ? pkt->src : pkt->dst;
	char args[384];
	u32 tid = 0;

	if (!serial || pkt_lane(j, serial, host, &tid) == TRACE_NO_LANE)
		return;
	pkt_args(pkt, serial, args, sizeof(args));
	event(j, 'i', host, tid, sim->now,
	      "'s':'t','cat':'control','name':'%s %s','args':{%s}", name,
	      sent ? "sent" : "received", args);
	arrow(j, sim, sent ? 's' : 'f', name, id & (UINT64_MAX >> 1), host, tid);
}

/* Opens a bar for the packet's message if it has none, because it began before the trace or
 * begins now. */
static void pkt_msg(struct trace_json *j, const struct sim *sim,
		    const struct sim_pkt *pkt, enum trace_side side)
{
	const struct sim_msg *msg = sim_pkt_msg(pkt);
	u32 host;

	if (!msg || msg->delivered || pkt->flags & SIM_CONTROL)
		return;
	if (msg->src != pkt->src || msg->dst != pkt->dst)
		return;
	if (trace_lane_find(&j->lanes, msg->serial, side, &host) == TRACE_NO_LANE)
		msg_begin(j, sim, msg, side);
	if (side == TRACE_OUT && pkt->hdr_len)
		trace_lane_alias(&j->lanes, msg->serial, rpc_name(pkt, pkt->src));
}

void trace_json_sent(struct trace_json *j, struct sim *sim, const struct sim_pkt *pkt)
{
	const u32 ps_per_byte = sim->hosts[pkt->src].up->ps_per_byte;

	if (!json_wants(j, sim))
		return;
	pkt_msg(j, sim, pkt, TRACE_OUT);
	pkt_bar(j, sim, pkt, sim->now, sim->now + (u64)pkt->wire * ps_per_byte, "");
	if (pkt->flags & SIM_CONTROL)
		pkt_instant(j, sim, pkt, true);
}

void trace_json_received(struct trace_json *j, struct sim *sim, const struct sim_pkt *pkt)
{
	const struct sim_port *down = sim->hosts[pkt->dst].down;
	const u64 took = (u64)pkt->wire * down->ps_per_byte;
	const u64 begin = sim->now - down->delay_ps - (sim->cfg.shaped ? 0 : took);
	char queued[96];

	if (!json_wants(j, sim))
		return;
	pkt_msg(j, sim, pkt, TRACE_IN);
	snprintf(queued, sizeof(queued), ",'queued_us':" PRITS ",'of_which_lag_us':" PRITS,
		 TS(pkt->wait_ps), TS(pkt->lag_ps));
	pkt_bar(j, sim, pkt, begin, begin + took, queued);
	if (pkt->flags & SIM_CONTROL)
		pkt_instant(j, sim, pkt, false);
}

/* ---- switches ---- */

void trace_json_dropped(struct trace_json *j, struct sim *sim,
			const struct sim_port *port, const struct sim_pkt *pkt)
{
	char args[384];

	if (!json_wants(j, sim))
		return;
	pkt_args(pkt, pkt_serial(j, pkt), args, sizeof(args));
	event(j, 'i', port->node, node_tid(port->node, 0), sim->now,
	      "'s':'p','cat':'drop','name':'drop','args':{'packet':'%s','from':%u,'to':%u,"
	      "'next_node':%u,%s}",
	      trace_type_name(sim, pkt), pkt->src, pkt->dst, port->peer, args);
}

void trace_json_queued(struct trace_json *j, struct sim *sim, const struct sim_port *port)
{
	char peer[32];

	if (port->level == SIM_HOST_UP || !json_wants(j, sim))
		return;
	trace_node_name(sim, port->peer, peer, sizeof(peer));
	event(j, 'C', port->node, node_tid(port->node, 0), sim->now,
	      "'name':'queue to %s','args':{'bytes':%" PRIu64 "}", peer, port->bytes);
}

/* ---- the file ---- */

/* Writes @text as a JSON string; it may be the name of a file with any bytes in it. */
static void quoted(char *out, size_t size, const char *text)
{
	size_t n = 0;

	out[n++] = '"';
	for (; *text && n + 8 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			out[n++] = '\\';
		if (c < ' ')
			n += (size_t)snprintf(out + n, size - n, "\\u%04x", c);
		else
			out[n++] = (char)c;
	}
	strcpy(out + n, "\"");
}

static void json_head(struct trace_json *j, const struct sim *sim)
{
	const struct sim_config *cfg = &sim->cfg;
	char workload[sizeof(cfg->workload) * 2], head[EVENT_MAX], rest[256];

	quoted(workload, sizeof(workload), cfg->workload);
	snprintf(head, sizeof(head),
		 "{'displayTimeUnit':'ns','otherData':{'protocol':'%s','workload':",
		 cfg->transport->name);
	snprintf(rest, sizeof(rest),
		 ",'load':%.4g,'hosts':%u,'seed':%" PRIu64 "},'traceEvents':[\n",
		 cfg->load, cfg->hosts, cfg->seed);
	with_quotes(head);
	with_quotes(rest);
	trace_file_add(&j->file, head, strlen(head));
	trace_file_add(&j->file, workload, strlen(workload));
	trace_file_add(&j->file, rest, strlen(rest));
}

static void json_nodes(struct trace_json *j, const struct sim *sim)
{
	char name[32];
	u32 node, tid;

	for (node = 0; node < sim->num_nodes; node++) {
		trace_node_name(sim, node, name, sizeof(name));
		tid = node_tid(node, TID_LINK_OUT);
		event(j, 'M', node, tid, 0, "'name':'process_name','args':{'name':'%s'}",
		      name);
		event(j, 'M', node, tid, 0,
		      "'name':'process_sort_index','args':{'sort_index':%u}", node);
		if (node >= sim->cfg.hosts)
			continue;
		name_thread(j, node, tid, "link out");
		name_thread(j, node, node_tid(node, TID_LINK_IN), "link in");
	}
}

int trace_json_open(struct trace_json *j, struct sim *sim,
		    const struct sim_trace_options *o, char *err, size_t errlen)
{
	int res;

	j->from = o->from;
	j->until = o->until;
	if (trace_lanes_init(&j->lanes, sim->cfg.hosts)) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	res = trace_file_open(&j->file, o->json, "\n]}\n", o->max_bytes, err, errlen);
	if (res) {
		trace_lanes_free(&j->lanes);
		return res;
	}
	json_head(j, sim);
	json_nodes(j, sim);
	return 0;
}

int trace_json_close(struct trace_json *j, struct sim *sim, const char *path, char *err,
		     size_t errlen)
{
	json_finish(j, sim, sim->now < j->until ? sim->now : j->until);
	trace_lanes_free(&j->lanes);
	return trace_file_close(&j->file, path, err, errlen);
}
