// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The picture in Prometheus' text exposition format, version 0.0.4. Each family
 * stands together under its HELP and TYPE; counters end in _total, times are
 * seconds, sizes bytes. The lists of counters (homa_metrics.def, HOMAD_COUNTERS,
 * HOMAD_APP_COUNTERS) make the families, so a new counter appears by itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "apps.h"
#include "homa_look.h"
#include "http_users.h"
#include "monitor.h"

/* The most applications, and the most users, that have series of their own. */
#define MAX_APPS 1000u
#define LABELS 256u

static void family(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void sample(FILE *out, const char *name, const char *labels, u64 value)
{
	fprintf(out, "%s%s %" PRIu64 "\n", name, labels, value);
}

static void seconds(FILE *out, const char *name, const char *labels, u64 ns)
{
	fprintf(out, "%s%s %" PRIu64 ".%09" PRIu64 "\n", name, labels,
		ns / 1000000000, ns % 1000000000);
}

/* Writes the full name of a counter. A counter of ns is shown in seconds: "busy_ns" as
 * "busy_seconds". */
static bool full_name(char *name, size_t size, const char *prefix,
		      const char *counter)
{
	const size_t len = strlen(counter);
	const bool ns = len > 3 && !strcmp(counter + len - 3, "_ns");

	if (ns)
		snprintf(name, size, "%s_%.*s_seconds_total", prefix,
			 (int)len - 3, counter);
	else
		snprintf(name, size, "%s_%s_total", prefix, counter);
	return ns;
}

static void single(FILE *out, const char *name, const char *type,
		   const char *help, u64 value)
{
	family(out, name, type, help);
	sample(out, name, "", value);
}

/* ---- the daemon ---- */

static void put_daemon(FILE *out, struct homad *d, const struct homad_stats *s,
		       const struct homad_slow_view *slow)
{
	family(out, "homa_build_info", "gauge", "version of homad, always 1");
	fprintf(out, "homa_build_info{version=\"%s\",mode=\"%s\"} 1\n",
		HOMAD_VERSION,
		d->config.mode == HOMAD_SHARED ? "shared" : "dedicated");
	family(out, "homa_uptime_seconds", "gauge", "time since homad started");
	seconds(out, "homa_uptime_seconds", "", s->now_ns - d->started_ns);
	single(out, "homa_attachments", "gauge", "applications attached now",
	       slow->num_apps);
	single(out, "homa_attached_total", "counter",
	       "applications that ever attached", slow->attached);
	single(out, "homa_detached_total", "counter",
	       "applications that left or died", slow->detached);
	single(out, "homa_memory_grown_total", "counter",
	       "times an attachment got more memory", slow->memory_grown);
	single(out, "homa_memory_shrunk_total", "counter",
	       "times an idle attachment gave memory back", slow->memory_shrunk);
	single(out, "homa_memory_refused_total", "counter",
	       "times an attachment's user had no room for more memory",
	       slow->memory_refused);
	single(out, "homa_refused_total", "counter",
	       "applications that were not let in", slow->refused);
	single(out, "homa_evicted_total", "counter",
	       "applications thrown out because they broke the rules",
	       slow->evicted);
	single(out, "homa_handed_over_total", "counter",
	       "times another process took a handle over", slow->handed_over);
	single(out, "homa_handovers_expired_total", "counter",
	       "times no process took over a handle that was handed over",
	       slow->handovers_expired);
	single(out, "homa_rpcs", "gauge", "RPCs alive now", s->counts.rpcs);
	single(out, "homa_peers", "gauge", "peers remembered now",
	       s->counts.peers);
	single(out, "homa_http_refused_total", "counter",
	       "connections to and questions for metrics that were refused",
	       homad_http_refused());
	single(out, "homa_log_lost_total", "counter",
	       "lines of the log that could not be written", s->log_lost);
}

static void put_latency(FILE *out, const struct homad_latency *l)
{
	static const char name[] = "homa_rpc_latency_seconds";
	u32 i;

	family(out, name, "histogram",
	       "time from an application's request to its response");
	for (i = 0; i < HOMAD_LATENCY_BOUNDS; i++)
		fprintf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name,
			(double)homad_latency_bound(i) / 1e9, l->below[i]);
	fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, l->count);
	seconds(out, "homa_rpc_latency_seconds_sum", "", l->sum);
	sample(out, "homa_rpc_latency_seconds_count", "", l->count);
}

/* ---- threads ---- */

static void put_thread_counter(FILE *out, const struct homad_stats *s,
			       const char *prefix, const char *counter,
			       const char *help, size_t offset)
{
	char name[96], labels[32];
	bool ns = full_name(name, sizeof(name), prefix, counter);
	u32 i;

	family(out, name, "counter", help);
	for (i = 0; i < s->num_threads; i++) {
		u64 value;

		memcpy(&value, (const char *)&s->threads[i] + offset, 8);
		snprintf(labels, sizeof(labels), "{thread=\"%u\"}",
			 s->threads[i].index);
		(ns ? seconds : sample)(out, name, labels, value);
	}
}

static void put_threads(FILE *out, const struct homad_stats *s,
			const struct homad_apps *apps)
{
	u32 i;

	for (i = 0; i < HOMA_M_COUNT; i++)
		put_thread_counter(out, s, "homa", homa_metric_table[i].name,
				   homa_metric_table[i].text,
				   offsetof(struct homad_thread_stats, engine) +
					   i * sizeof(u64));
#define X(name, text)                                                      \
	put_thread_counter(out, s, "homa_thread", #name, text,             \
			   offsetof(struct homad_thread_stats, counters) + \
				   offsetof(struct homad_counters, name));
	HOMAD_COUNTERS(X)
#undef X
	put_thread_counter(out, s, "homa_thread", "cpu_ns",
			   "processor time that the thread has used",
			   offsetof(struct homad_thread_stats, cpu_ns));
	family(out, "homa_thread_active", "gauge",
	       "1 if the thread takes part, 0 if core scaling put it aside");
	for (i = 0; i < s->num_threads; i++)
		fprintf(out, "homa_thread_active{thread=\"%u\"} %d\n",
			s->threads[i].index, s->threads[i].active);
	family(out, "homa_thread_attachments", "gauge",
	       "applications whose rings the thread looks at now");
	for (i = 0; i < s->num_threads; i++)
		fprintf(out, "homa_thread_attachments{thread=\"%u\"} %u\n",
			s->threads[i].index,
			homad_apps_polled(apps, s->threads[i].index));
}

/* ---- TCP ---- */

static void put_tcp(FILE *out, const struct homad_stats *s,
		    const struct homad_slow_view *slow)
{
	if (!s->tcp.on)
		return;
	single(out, "homa_tcp_connections", "gauge",
	       "TCP connections that homad carries now, also half open ones",
	       s->tcp.counts.connections);
	single(out, "homa_tcp_time_wait", "gauge",
	       "TCP connections that are over and only remembered (TIME_WAIT)",
	       s->tcp.counts.ended);
	single(out, "homa_tcp_listens_refused_total", "counter",
	       "requests to listen at a TCP port that homad refused",
	       slow->listens_refused);
	single(out, "homa_tcp_taken_total", "counter",
	       "TCP connections and listeners that processes have passed to others",
	       slow->taken);
	single(out, "homa_tcp_takes_refused_total", "counter",
	       "TCP connections and listeners that whoever showed them did not get",
	       slow->takes_refused);
	single(out, "homa_tcp_takes_elsewhere_total", "counter",
	       "TCP sockets that a process did not get as it has others at another thread",
	       slow->takes_elsewhere);
#define X(name, text)                                                 \
	put_thread_counter(out, s, "homa_tcp", #name, text,           \
			   offsetof(struct homad_thread_stats, tcp) + \
				   offsetof(struct homad_tcp_stats,   \
					    engine.name));
#include "tas_metrics.def"
#undef X
#define X(name, text)                                                 \
	put_thread_counter(out, s, "homa_tcp", #name, text,           \
			   offsetof(struct homad_thread_stats, tcp) + \
				   offsetof(struct homad_tcp_stats, host.name));
	HOMAD_TCP_COUNTERS(X)
#undef X
}

/* ---- ports ---- */

static void port_labels(char *labels, size_t size,
			const struct homad_port_stats *p)
{
	snprintf(labels, size, "{port=\"%s\",backend=\"%s\"}", p->port->name,
		 p->port->info ? p->port->info->name : "memory");
}

/* struct nic_family - writes the counter number @index of the nics; @at counts the counters
 * of a nic while they are visited, and @head asks for the family's HELP and TYPE */
struct nic_family {
	/* The text is written there. */
	FILE *out;
	/* The labels of the nic, in Prometheus' form. */
	const char *labels;
	u32 index, at;
	bool head;
};

static void put_nic_counter(void *arg, const char *name, const char *text,
			    u64 value)
{
	struct nic_family *f = arg;
	char full[96];

	if (f->at++ != f->index)
		return;
	full_name(full, sizeof(full), "homa_port", name + strlen("nic_"));
	if (f->head)
		family(f->out, full, "counter", text);
	f->head = false;
	sample(f->out, full, f->labels, value);
}

static void put_nics(FILE *out, const struct homad_stats *s)
{
	const u32 counters = sizeof(struct nic_stats) / sizeof(u64);
	char labels[LABELS];
	u32 i, index;

	for (index = 0; index < counters; index++) {
		struct nic_family f = { .out = out, .index = index, .head = true };

		for (i = 0; i < s->num_ports; i++) {
			if (!s->ports[i].has_nic)
				continue;
			port_labels(labels, sizeof(labels), &s->ports[i]);
			f.labels = labels;
			f.at = 0;
			homad_nic_visit(&s->ports[i].nic, put_nic_counter, &f);
		}
	}
}

static void put_links(FILE *out, const struct homad_stats *s)
{
	const struct homa_link_state *l;
	char labels[LABELS];
	u32 i;

#define LINK(name, help, print, value)                                     \
	do {                                                               \
		family(out, "homa_port_" name, "gauge", help);             \
		for (i = 0; i < s->num_ports; i++) {                       \
			l = &s->ports[i].link;                             \
			port_labels(labels, sizeof(labels), &s->ports[i]); \
			print(out, "homa_port_" name, labels, value);      \
		}                                                          \
	} while (0)
	LINK("sending", "messages with bytes that may be sent", sample,
	     l->sending);
	LINK("granting", "messages that are being granted to", sample,
	     l->granting);
	LINK("waiting", "messages that wait for grants", sample, l->waiting);
	LINK("rtt_bytes", "unscheduled bytes that a message may have", sample,
	     l->rtt_bytes);
	LINK("max_incoming_bytes", "bytes granted at most over all messages",
	     sample, l->max_incoming);
	LINK("rtt_seconds", "measured round trip of short messages", seconds,
	     l->rtt_us * 1000ull);
	LINK("backlog_seconds", "estimated queue of the device", seconds,
	     l->backlog_ns);
#undef LINK
}

/* ---- attachments ---- */

/* Writes the value of a label: \, " and line ends are escaped, the rest is not changed. */
static void escape(char *out, size_t size, const char *text)
{
	size_t n = 0;

	for (; *text && n + 3 < size; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c == '\\' || c == '"')
			out[n++] = '\\';
		out[n++] = c < ' ' || c >= 0x7f ? '?' : (char)c;
	}
	out[n] = '\0';
}

static void app_labels(char *labels, size_t size, const struct homad_app_view *app)
{
	char name[2 * sizeof(app->name) + 4];

	escape(name, sizeof(name), app->name);
	snprintf(labels, size,
		 "{app=\"%" PRIu64 "\",name=\"%s\",pid=\"%d\",uid=\"%u\"}",
		 app->id, name, (int)app->pid, app->uid);
}

static void put_app_family(FILE *out, const struct homad_apps *apps,
			   const char *name, const char *type, const char *help,
			   u64 (*value)(const struct homad_app_view *app,
					size_t offset),
			   size_t offset)
{
	char labels[LABELS];
	u32 i;

	family(out, name, type, help);
	for (i = 0; i < apps->num_apps && i < MAX_APPS; i++) {
		app_labels(labels, sizeof(labels), &apps->app[i]);
		sample(out, name, labels, value(&apps->app[i], offset));
	}
}

/* Returns the 64-bit number at @offset of the view. */
static u64 app_figure(const struct homad_app_view *app, size_t offset)
{
	u64 value;

	memcpy(&value, (const char *)app + offset, sizeof(value));
	return value;
}

static u64 app_rpcs(const struct homad_app_view *app, size_t offset)
{
	(void)offset;
	return app->rpcs;
}

static u64 app_streams(const struct homad_app_view *app, size_t offset)
{
	(void)offset;
	return app->streams;
}

static void put_app_streams(FILE *out, const struct homad_apps *apps)
{
	put_app_family(out, apps, "homa_app_tcp_streams", "gauge",
		       "its TCP connections, also those whose last bytes are still being sent",
		       app_streams, 0);
	put_app_family(out, apps, "homa_app_tcp_tx_bytes_total", "counter",
		       "bytes that it has written to TCP connections",
		       app_figure, offsetof(struct homad_app_view, stream_tx));
	put_app_family(out, apps, "homa_app_tcp_rx_bytes_total", "counter",
		       "bytes that have come for it by TCP connections",
		       app_figure, offsetof(struct homad_app_view, stream_rx));
}

/* ---- users ---- */

static void put_user_family(FILE *out, const struct homad_apps *apps,
			    const char *name, const char *type, const char *help,
			    u64 (*value)(const struct homad_user_view *user))
{
	char labels[LABELS];
	u32 i;

	family(out, name, type, help);
	for (i = 0; i < apps->num_users && i < MAX_APPS; i++) {
		snprintf(labels, sizeof(labels), "{uid=\"%u\"}",
			 (unsigned int)apps->user[i].uid);
		sample(out, name, labels, value(&apps->user[i]));
	}
}

static u64 user_streams(const struct homad_user_view *user)
{
	return user->streams;
}

static u64 user_tx_bytes(const struct homad_user_view *user)
{
	return user->stream_tx;
}

static u64 user_rx_bytes(const struct homad_user_view *user)
{
	return user->stream_rx;
}

static u64 user_listeners(const struct homad_user_view *user)
{
	return user->listeners;
}

static u64 user_memory(const struct homad_user_view *user)
{
	return user->memory;
}

static u64 user_rpcs(const struct homad_user_view *user)
{
	return user->rpcs;
}

static u64 user_peers(const struct homad_user_view *user)
{
	return user->peers;
}

static u64 user_peers_refused(const struct homad_user_view *user)
{
	return user->peers_refused;
}

static u64 user_copied(const struct homad_user_view *user)
{
	return user->copied;
}

static void put_users(FILE *out, const struct homad_apps *apps)
{
	put_user_family(out, apps, "homa_user_memory_bytes", "gauge",
			"shared memory that a user's attachments have",
			user_memory);
	put_user_family(out, apps, "homa_user_copied_bytes", "gauge",
			"homad's own memory for short messages of a user on their way",
			user_copied);
	put_user_family(out, apps, "homa_user_rpcs", "gauge",
			"RPCs that are open on a user's handles", user_rpcs);
	put_user_family(out, apps, "homa_user_peers", "gauge",
			"addresses in the table of peers that are charged to a user",
			user_peers);
	put_user_family(out, apps, "homa_user_peers_refused_total", "counter",
			"requests that failed because a user had as many peers as quota.user_peers",
			user_peers_refused);
}

static void put_users_tcp(FILE *out, const struct homad_apps *apps)
{
	put_user_family(out, apps, "homa_user_tcp_streams", "gauge",
			"TCP connections of a user", user_streams);
	put_user_family(out, apps, "homa_user_tcp_listeners", "gauge",
			"TCP ports that a user listens at, with those whose connections are not over",
			user_listeners);
	put_user_family(out, apps, "homa_user_tcp_tx_bytes_total", "counter",
			"bytes that a user has written to TCP connections since he attached",
			user_tx_bytes);
	put_user_family(out, apps, "homa_user_tcp_rx_bytes_total", "counter",
			"bytes that have come for a user by TCP connections since he attached",
			user_rx_bytes);
}

static void put_apps(FILE *out, const struct homad_apps *apps)
{
#define X(name, text)                                                          \
	put_app_family(out, apps, "homa_app_" #name "_total", "counter", text, \
		       app_figure,                                             \
		       offsetof(struct homad_app_view, counters) +             \
			       offsetof(struct homad_app_counters, name));
	HOMAD_APP_COUNTERS(X)
#undef X
	put_app_family(out, apps, "homa_app_rpcs", "gauge", "its open RPCs",
		       app_rpcs, 0);
	put_app_family(out, apps, "homa_app_memory_bytes", "gauge",
		       "shared memory that it has", app_figure,
		       offsetof(struct homad_app_view, memory));
	put_app_streams(out, apps);
	single(out, "homa_apps_left_out", "gauge",
	       "attachments without series of their own: there are too many",
	       apps->num_apps > MAX_APPS ? apps->num_apps - MAX_APPS : 0);
}

char *homad_metrics_text(struct homad *d, size_t *length)
{
	struct homad_stats *s = malloc(sizeof(*s));
	struct homad_apps apps = { 0 };
	char *text = NULL;
	FILE *out = NULL;

	if (s && !homad_apps_look(d, &apps))
		out = open_memstream(&text, length);
	if (out) {
		homad_stats_collect(d, s);
		put_daemon(out, d, s, &apps.slow);
		put_latency(out, &s->latency);
		put_threads(out, s, &apps);
		put_tcp(out, s, &apps.slow);
		put_nics(out, s);
		put_links(out, s);
		put_apps(out, &apps);
		put_users(out, &apps);
		if (s->tcp.on)
			put_users_tcp(out, &apps);
		if (fclose(out)) {
			free(text);
			text = NULL;
		}
	}
	homad_apps_free(&apps);
	free(s);
	return text;
}
