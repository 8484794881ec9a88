// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A flow as JSON. Times are ns, sizes bytes, limits bytes a second; what is not known, such as the
 * round trip of a connection that has measured none, is left out.
 */
#include "flows.h"
#include "monitor.h"

static const char *const states[] = {
	[TAS_CLOSED] = "closed",
	[TAS_SYN_SENT] = "syn-sent",
	[TAS_SYN_RECEIVED] = "syn-received",
	[TAS_ESTABLISHED] = "established",
	[TAS_FIN_WAIT_1] = "fin-wait-1",
	[TAS_FIN_WAIT_2] = "fin-wait-2",
	[TAS_CLOSE_WAIT] = "close-wait",
	[TAS_CLOSING] = "closing",
	[TAS_LAST_ACK] = "last-ack",
	[TAS_TIME_WAIT] = "time-wait",
	[TAS_LISTENING] = "listen",
};

static const char *const controls[] = {
	[TAS_NEWRENO] = "newreno", [TAS_DCTCP] = "dctcp",
	[TAS_CUBIC] = "cubic",	   [TAS_RATE_DCTCP] = "dctcp-rate",
	[TAS_TIMELY] = "timely",   [TAS_CONSTANT] = "constant",
};

HOMA_STATIC_ASSERT(sizeof(controls) / sizeof(*controls) == TAS_CONTROLS,
		   "each has a name");

static const char *const repairs[] = {
	[TAS_REPAIR_NONE] = "open",
	[TAS_REPAIR_RECOVERY] = "recovery",
	[TAS_REPAIR_LOSS] = "loss",
};

static const char *timer_name(const struct tas_info *info)
{
	static const char *const names[] = {
		[TAS_TIMER_DELACK] = "delayed-ack",
		[TAS_TIMER_RETRANSMIT] = "retransmit",
		[TAS_TIMER_TAIL] = "tail-probe",
		[TAS_TIMER_KEEPALIVE] = "keepalive",
		[TAS_TIMER_END] = "end",
		[TAS_TIMERS] = "",
	};

	/* With nothing in flight the timer waits for the peer to open its closed window. */
	if (info->timer == TAS_TIMER_RETRANSMIT && !info->in_flight &&
	    info->unsent)
		return "window-probe";
	return names[info->timer];
}

static void put_time(cJSON *json, const char *name, u64 ns)
{
	if (ns != TAS_NEVER)
		homad_json_u64(json, name, ns);
}

static void put_ends(cJSON *json, const struct homad_flow *flow)
{
	const struct tas_pair *pair = &flow->look.pair;
	struct homa_addr addr = { 0 };

	memcpy(addr.ip, pair->local, sizeof(addr.ip));
	homad_json_addr(json, "local", &addr);
	cJSON_AddNumberToObject(json, "local_port", pair->local_port);
	if (flow->look.state == TAS_LISTENING)
		return;
	memcpy(addr.ip, pair->remote, sizeof(addr.ip));
	homad_json_addr(json, "peer", &addr);
	cJSON_AddNumberToObject(json, "peer_port", pair->remote_port);
}

static void put_queues(cJSON *json, const struct homad_flow *flow)
{
	const struct tas_info *info = &flow->look.info;

	if (flow->look.state == TAS_LISTENING) {
		cJSON_AddNumberToObject(json, "recv_q", flow->ready);
		cJSON_AddNumberToObject(json, "send_q", flow->backlog);
		cJSON_AddNumberToObject(json, "half_open", flow->half);
		return;
	}
	cJSON_AddNumberToObject(json, "recv_q", flow->unread);
	cJSON_AddNumberToObject(json, "send_q",
				(double)info->in_flight + info->unsent);
}

static void put_options(cJSON *json, const struct tas_info *info)
{
	static const struct {
		/* The bit of a connection's options. */
		u32 flag;
		/* Its name in the JSON. */
		const char *name;
	} known[] = {
		{ TAS_F_TS, "timestamps" }, { TAS_F_SACK, "sack" },
		{ TAS_F_ECN, "ecn" },	    { TAS_F_NODELAY, "nodelay" },
		{ TAS_F_CORK, "cork" },	    { TAS_F_KEEPALIVE, "keepalive" },
	};
	cJSON *list = cJSON_AddArrayToObject(json, "options");
	u32 i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (info->flags & known[i].flag)
			cJSON_AddItemToArray(list,
					     cJSON_CreateString(known[i].name));
}

static void put_sending(cJSON *json, const struct tas_info *info)
{
	cJSON_AddStringToObject(json, "congestion", controls[info->control]);
	cJSON_AddStringToObject(json, "repair", repairs[info->repair]);
	cJSON_AddNumberToObject(json, "cwnd", info->cwnd);
	/* Before the first loss there is no threshold. */
	if (info->ssthresh <= INT32_MAX)
		cJSON_AddNumberToObject(json, "ssthresh", info->ssthresh);
	put_time(json, "rtt_ns", info->srtt);
	put_time(json, "rttvar_ns", info->rttvar);
	put_time(json, "rto_ns", info->rto);
	cJSON_AddNumberToObject(json, "mss", info->mss);
	cJSON_AddNumberToObject(json, "rcv_mss", info->rcv_mss);
	cJSON_AddNumberToObject(json, "pmtu", info->path_mtu);
	cJSON_AddNumberToObject(json, "snd_wscale", info->snd_wscale);
	cJSON_AddNumberToObject(json, "rcv_wscale", info->rcv_wscale);
	cJSON_AddNumberToObject(json, "snd_wnd", info->snd_wnd);
	cJSON_AddNumberToObject(json, "rcv_wnd", info->rcv_wnd);
	cJSON_AddNumberToObject(json, "in_flight", info->in_flight);
	cJSON_AddNumberToObject(json, "unsent", info->unsent);
	cJSON_AddNumberToObject(json, "sacked", info->sacked);
	cJSON_AddNumberToObject(json, "lost", info->lost);
	cJSON_AddNumberToObject(json, "backoff", info->backoff);
	cJSON_AddNumberToObject(json, "probes", info->probes);
	cJSON_AddNumberToObject(json, "keepalive_probes", info->keep_probes);
}

static void put_counts(cJSON *json, const struct homad_flow *flow)
{
	const struct tas_info *info = &flow->look.info;

	homad_json_u64(json, "bytes_acked", flow->acked);
	homad_json_u64(json, "bytes_received", flow->received);
	cJSON_AddNumberToObject(json, "segs_in", info->segs_in);
	cJSON_AddNumberToObject(json, "segs_out", info->segs_out);
	cJSON_AddNumberToObject(json, "data_segs_in", info->data_in);
	cJSON_AddNumberToObject(json, "data_segs_out", info->data_out);
	cJSON_AddNumberToObject(json, "retransmits", info->resent);
	cJSON_AddNumberToObject(json, "bytes_retransmitted", info->resent_bytes);
	cJSON_AddNumberToObject(json, "out_of_order", info->out_of_order);
	cJSON_AddNumberToObject(json, "gap_bytes", info->gap_bytes);
	cJSON_AddNumberToObject(json, "ecn_marks", info->marks_in);
	cJSON_AddNumberToObject(json, "rx_buffer", info->rx_size);
	cJSON_AddNumberToObject(json, "tx_buffer", flow->tx_size);
	put_time(json, "age_ns", info->age);
	put_time(json, "heard_ns", info->heard);
	put_time(json, "received_ns", info->heard_data);
	put_time(json, "sent_ns", info->sent_data);
	cJSON_AddNumberToObject(json, "error", -info->error);
}

static void put_rule(cJSON *json, const struct homad_flow *flow)
{
	cJSON *waits;

	if (flow->rule)
		cJSON_AddNumberToObject(json, "rule", flow->rule);
	cJSON_AddNumberToObject(json, "dscp", flow->dscp);
	if (flow->send_limit)
		homad_json_u64(json, "send_limit", flow->send_limit);
	if (flow->receive_limit)
		homad_json_u64(json, "receive_limit", flow->receive_limit);
	waits = cJSON_AddArrayToObject(json, "limited");
	if (flow->send_waits)
		cJSON_AddItemToArray(waits, cJSON_CreateString("send"));
	if (flow->receive_waits)
		cJSON_AddItemToArray(waits, cJSON_CreateString("receive"));
}

cJSON *homad_flow_json(const struct homad_flow *flow)
{
	const struct tas_look *look = &flow->look;
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "state", states[look->state]);
	put_ends(json, flow);
	homad_json_u64(json, "app", flow->app);
	cJSON_AddStringToObject(json, "name", flow->name);
	if (flow->app) {
		cJSON_AddNumberToObject(json, "pid", flow->pid);
		cJSON_AddNumberToObject(json, "uid", flow->uid);
	}
	cJSON_AddBoolToObject(json, "orphan",
			      look->state != TAS_LISTENING &&
				      (flow->closed || !flow->app));
	put_queues(json, flow);
	if (look->state == TAS_LISTENING)
		return json;
	cJSON_AddStringToObject(json, "timer", timer_name(&look->info));
	put_time(json, "due_ns", look->info.due);
	if (look->conn) {
		put_options(json, &look->info);
		put_sending(json, &look->info);
		put_counts(json, flow);
		put_rule(json, flow);
	}
	return json;
}
