// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The picture as JSON, for ./homa ss and top. Names are those of the counters;
 * whatever is added to a list of counters shows up here by itself.
 */
#include <stdlib.h>
#include <unistd.h>
#include "apps.h"
#include "homa_clock.h"
#include "homa_look.h"
#include "monitor.h"

static void visit_json(void *arg, const char *name, const char *text, u64 value)
{
	(void)text;
	homad_json_u64(arg, name, value);
}

/* ---- the daemon ---- */

static cJSON *daemon_json(struct homad *d, const struct homad_stats *s,
			  const struct homad_slow_view *slow)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "version", HOMAD_VERSION);
	cJSON_AddNumberToObject(json, "pid", getpid());
	cJSON_AddStringToObject(json, "mode",
				d->config.mode == HOMAD_SHARED ? "shared" :
								 "dedicated");
	homad_json_u64(json, "uptime_ns", s->now_ns - d->started_ns);
	cJSON_AddStringToObject(json, "socket", d->config.socket);
	cJSON_AddStringToObject(json, "config", d->config.file);
	cJSON_AddNumberToObject(json, "attachments", slow->num_apps);
	homad_json_u64(json, "attached", slow->attached);
	homad_json_u64(json, "detached", slow->detached);
	homad_json_u64(json, "refused", slow->refused);
	homad_json_u64(json, "memory_grown", slow->memory_grown);
	homad_json_u64(json, "memory_shrunk", slow->memory_shrunk);
	homad_json_u64(json, "memory_refused", slow->memory_refused);
	homad_json_u64(json, "evicted", slow->evicted);
	homad_json_u64(json, "handed_over", slow->handed_over);
	homad_json_u64(json, "handovers_expired", slow->handovers_expired);
	homad_json_u64(json, "log_lost", s->log_lost);
	cJSON_AddNumberToObject(json, "tracing", d->tracing);
	cJSON_AddNumberToObject(json, "rpcs", s->counts.rpcs);
	cJSON_AddNumberToObject(json, "peers", s->counts.peers);
	cJSON_AddNumberToObject(json, "sockets", s->counts.socks);
	return json;
}

static cJSON *thread_json(const struct homad_thread_stats *t, u32 apps)
{
	cJSON *json = cJSON_CreateObject(), *counters;

	cJSON_AddNumberToObject(json, "thread", t->index);
	cJSON_AddNumberToObject(json, "core", t->core);
	cJSON_AddBoolToObject(json, "active", t->active);
	cJSON_AddBoolToObject(json, "asleep", t->asleep);
	cJSON_AddNumberToObject(json, "attachments", apps);
	homad_json_u64(json, "spin_ns", t->spin_ns);
	homad_json_u64(json, "cpu_ns", t->cpu_ns);
	cJSON_AddNumberToObject(json, "out_bytes", (double)t->out_bytes);
	counters = cJSON_AddObjectToObject(json, "counters");
#define X(name, text) homad_json_u64(counters, #name, t->counters.name);
	HOMAD_COUNTERS(X)
#undef X
	return json;
}

static cJSON *link_json(const struct homa_link_state *link)
{
	cJSON *json = cJSON_CreateObject();

	cJSON_AddNumberToObject(json, "rtt_bytes", link->rtt_bytes);
	cJSON_AddNumberToObject(json, "max_incoming", link->max_incoming);
	cJSON_AddNumberToObject(json, "resend_us", link->resend_us);
	cJSON_AddNumberToObject(json, "timeout_us", link->timeout_us);
	cJSON_AddNumberToObject(json, "rtt_us", link->rtt_us);
	cJSON_AddNumberToObject(json, "sending", link->sending);
	cJSON_AddNumberToObject(json, "granting", link->granting);
	cJSON_AddNumberToObject(json, "waiting", link->waiting);
	homad_json_u64(json, "backlog_ns", link->backlog_ns);
	return json;
}

static cJSON *port_json(const struct homad_port_stats *p)
{
	const struct homad_port *port = p->port;
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "name", port->name);
	cJSON_AddNumberToObject(json, "thread", port->thread);
	cJSON_AddBoolToObject(json, "encap", port->encap);
	if (port->info) {
		cJSON_AddStringToObject(json, "backend", port->info->name);
		cJSON_AddStringToObject(json, "detail", port->info->detail);
		homad_json_addr(json, "address", &port->info->address);
		cJSON_AddNumberToObject(json, "mtu", port->info->mtu);
		cJSON_AddNumberToObject(json, "link_mbps", port->info->link_mbps);
	} else {
		cJSON_AddStringToObject(json, "backend", "memory");
	}
	cJSON_AddItemToObject(json, "link", link_json(&p->link));
	if (p->has_nic)
		homad_nic_visit(&p->nic, visit_json,
				cJSON_AddObjectToObject(json, "nic"));
	return json;
}

static cJSON *latency_json(const struct homad_latency *l)
{
	cJSON *json = cJSON_CreateObject();
	cJSON *values = cJSON_AddArrayToObject(json, "values");
	cJSON *counts = cJSON_AddArrayToObject(json, "counts");
	u32 i;

	homad_json_u64(json, "count", l->count);
	homad_json_u64(json, "sum", l->sum);
	for (i = 0; i < HOMAD_LATENCY_BUCKETS; i++) {
		const u32 next = (i + 1) << HOMAD_LATENCY_SHIFT;

		if (!l->counts[i])
			continue;
		/* A percentile is the highest value of its bucket. */
		cJSON_AddItemToArray(values,
				     cJSON_CreateNumber((
					     double)(homa_hist_value(next) - 1)));
		cJSON_AddItemToArray(counts,
				     cJSON_CreateNumber((double)l->counts[i]));
	}
	return json;
}

static cJSON *tcp_json(const struct homad_tcp_stats *tcp,
		       const struct homad_slow_view *slow)
{
	cJSON *json = cJSON_CreateObject(), *list;

	cJSON_AddNumberToObject(json, "connections", tcp->counts.connections);
	cJSON_AddNumberToObject(json, "time_wait", tcp->counts.ended);
	homad_json_u64(json, "listens_refused", slow->listens_refused);
	homad_json_u64(json, "taken", slow->taken);
	homad_json_u64(json, "takes_refused", slow->takes_refused);
	homad_json_u64(json, "takes_elsewhere", slow->takes_elsewhere);
	list = cJSON_AddObjectToObject(json, "engine");
#define X(name, text) homad_json_u64(list, #name, tcp->engine.name);
#include "tas_metrics.def"
#undef X
	list = cJSON_AddObjectToObject(json, "host");
#define X(name, text) homad_json_u64(list, #name, tcp->host.name);
	HOMAD_TCP_COUNTERS(X)
#undef X
	return json;
}

/* ---- attachments ---- */

static void rings_json(cJSON *json, const struct homad_app_view *app)
{
	if (!app->rings.submit)
		return;
	cJSON_AddNumberToObject(json, "submitted", app->submitted);
	cJSON_AddNumberToObject(json, "completed", app->completed);
	cJSON_AddNumberToObject(json, "submit_entries", app->rings.submit);
	cJSON_AddNumberToObject(json, "complete_entries", app->rings.complete);
	cJSON_AddNumberToObject(json, "release_entries", app->rings.release);
}

static cJSON *app_json(const struct homad_app_view *app, u64 now)
{
	static const char *const phases[] = { "open", "closing", "dead" };
	cJSON *json = cJSON_CreateObject(), *counters;

	homad_json_u64(json, "app", app->id);
	cJSON_AddStringToObject(json, "name", app->name);
	cJSON_AddNumberToObject(json, "pid", app->pid);
	cJSON_AddNumberToObject(json, "uid", app->uid);
	cJSON_AddNumberToObject(json, "port", app->port);
	cJSON_AddBoolToObject(json, "server", app->port && app->port < 0x8000);
	cJSON_AddBoolToObject(json, "shared", app->shares);
	cJSON_AddStringToObject(json, "phase",
				phases[app->phase < 3 ? app->phase : 2]);
	/* The attachment may have come after @now. */
	homad_json_u64(json, "age_ns", homa_since(now, app->since_ns));
	cJSON_AddNumberToObject(json, "thread", app->thread);
	cJSON_AddBoolToObject(json, "polled", app->polled);
	cJSON_AddNumberToObject(json, "rpcs", app->rpcs);
	cJSON_AddNumberToObject(json, "max_rpcs", app->max_rpcs);
	homad_json_u64(json, "pool_bytes", app->pool_bytes);
	homad_json_u64(json, "memory_bytes", app->memory);
	homad_json_u64(json, "send_bytes", app->send_bytes);
	if (app->has_streams) {
		cJSON_AddNumberToObject(json, "streams", app->streams);
		homad_json_u64(json, "stream_tx_bytes", app->stream_tx);
		homad_json_u64(json, "stream_rx_bytes", app->stream_rx);
	}
	rings_json(json, app);
	counters = cJSON_AddObjectToObject(json, "counters");
#define X(name, text) homad_json_u64(counters, #name, app->counters.name);
	HOMAD_APP_COUNTERS(X)
#undef X
	return json;
}

static cJSON *picture_json(struct homad *d, const struct homad_stats *s,
			   const struct homad_apps *apps)
{
	cJSON *json = cJSON_CreateObject(), *list;
	u32 i;

	homad_json_u64(json, "time_ns", s->now_ns);
	cJSON_AddItemToObject(json, "homad", daemon_json(d, s, &apps->slow));
	list = cJSON_AddArrayToObject(json, "threads");
	for (i = 0; i < s->num_threads; i++)
		cJSON_AddItemToArray(
			list,
			thread_json(&s->threads[i],
				    homad_apps_polled(apps, s->threads[i].index)));
	list = cJSON_AddArrayToObject(json, "ports");
	for (i = 0; i < s->num_ports; i++)
		cJSON_AddItemToArray(list, port_json(&s->ports[i]));
	list = cJSON_AddObjectToObject(json, "engine");
	for (i = 0; i < HOMA_M_COUNT; i++)
		homad_json_u64(list, homa_metric_table[i].name, s->engine[i]);
	cJSON_AddItemToObject(json, "latency", latency_json(&s->latency));
	if (s->tcp.on)
		cJSON_AddItemToObject(json, "tcp",
				      tcp_json(&s->tcp, &apps->slow));
	list = cJSON_AddArrayToObject(json, "apps");
	for (i = 0; i < apps->num_apps; i++)
		cJSON_AddItemToArray(list, app_json(&apps->app[i], s->now_ns));
	return json;
}

cJSON *homad_snapshot_json(struct homad *d)
{
	struct homad_stats *s = malloc(sizeof(*s));
	struct homad_apps apps;
	cJSON *json = NULL;

	if (!s)
		return NULL;
	homad_stats_collect(d, s);
	if (!homad_apps_look(d, &apps))
		json = picture_json(d, s, &apps);
	homad_apps_free(&apps);
	free(s);
	return json;
}

/* ---- RPCs and peers ---- */

static const char *port_of_link(struct homad *d, const struct homa_link *link)
{
	u32 i;

	for (i = 0; i < d->num_ports; i++)
		if (d->ports[i].link == link)
			return d->ports[i].name;
	return "";
}

cJSON *homad_rpc_json(struct homad *d, const struct homa_rpc_look *look,
		      const struct homad_rpc_owner *owner)
{
	static const char *const phases[] = {
		[HOMA_LOOK_NEW] = "new",
		[HOMA_LOOK_OUTGOING] = "outgoing",
		[HOMA_LOOK_INCOMING] = "incoming",
		[HOMA_LOOK_NO_BUFFER] = "no-buffer",
		[HOMA_LOOK_READY] = "ready",
		[HOMA_LOOK_IN_SERVICE] = "in-service",
		[HOMA_LOOK_FAILED] = "failed",
	};
	const u64 now = homa_clock_ns();
	cJSON *json = cJSON_CreateObject();

	homad_json_u64(json, "rpc", look->handle.id);
	homad_json_u64(json, "app", owner->id);
	cJSON_AddStringToObject(json, "name", owner->name);
	cJSON_AddBoolToObject(json, "client", look->client);
	cJSON_AddNumberToObject(json, "port", look->port);
	homad_json_addr(json, "peer", &look->peer);
	cJSON_AddNumberToObject(json, "peer_port", look->peer_port);
	cJSON_AddStringToObject(json, "via", port_of_link(d, look->link));
	cJSON_AddStringToObject(json, "phase", phases[look->phase]);
	homad_json_u64(json, "age_ns", homa_since(now, look->birth));
	homad_json_u64(json, "silent_ns", homa_since(now, look->heard_at));
	cJSON_AddNumberToObject(json, "probes", look->probes);
	cJSON_AddNumberToObject(json, "error", look->error);
	cJSON_AddNumberToObject(json, "tx_length", look->tx_length);
	cJSON_AddNumberToObject(json, "tx_sent", look->tx_sent);
	cJSON_AddNumberToObject(json, "tx_granted", look->tx_granted);
	cJSON_AddNumberToObject(json, "rx_length", look->rx_length);
	cJSON_AddNumberToObject(json, "rx_received", look->rx_received);
	cJSON_AddNumberToObject(json, "rx_granted", look->rx_granted);
	return json;
}

cJSON *homad_peer_json(struct homad *d, const struct homa_peer_look *look)
{
	cJSON *json = cJSON_CreateObject(), *cutoffs;
	u32 i;

	homad_json_addr(json, "peer", &look->addr);
	cJSON_AddStringToObject(json, "via", port_of_link(d, look->link));
	cJSON_AddNumberToObject(json, "rpcs", look->rpcs);
	cJSON_AddNumberToObject(json, "server_rpcs", look->server_rpcs);
	cJSON_AddNumberToObject(json, "idle_ms", look->idle_ms);
	cJSON_AddNumberToObject(json, "packet_bytes", look->seg_size);
	cJSON_AddNumberToObject(json, "acks_owed", look->acks_owed);
	cJSON_AddNumberToObject(json, "probes", look->probes);
	cJSON_AddNumberToObject(json, "cutoff_version", look->cutoff_version);
	cutoffs = cJSON_AddArrayToObject(json, "cutoffs");
	for (i = 0; i < HOMA_PRIORITIES; i++)
		cJSON_AddItemToArray(cutoffs,
				     cJSON_CreateNumber(look->cutoffs[i]));
	return json;
}
