// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Collecting. The fast path pays for nothing here but a job for each port when
 * somebody asks; with nobody asking it pays nothing.
 */
#include <stdlib.h>
#include "admin.h"
#include "fast.h"
#include "log.h"
#include "homa_look.h"
#include "slowpath.h"
#include "homad_stats.h"
#include "tcp_steer.h"

u64 homad_latency_bound(u32 i)
{
	static const u64 digits[] = { 1, 2, 5 };
	u64 bound = digits[i % 3] * 1000;

	for (i /= 3; i; i--)
		bound *= 10;
	return bound;
}

/* ---- threads ---- */

static void add_latency(struct homad_latency *l, const struct homa_hist *h)
{
	u32 i, last, bound = 0;
	u64 max = HOMA_READ_ONCE(h->max);

	if (!h->counts || !HOMA_READ_ONCE(h->count))
		return;
	l->sum += HOMA_READ_ONCE(h->sum);
	last = homa_hist_index(max);
	for (i = homa_hist_index(HOMA_READ_ONCE(h->min)); i <= last; i++) {
		const u64 n = HOMA_READ_ONCE(h->counts[i]);

		if (!n)
			continue;
		while (bound < HOMAD_LATENCY_BOUNDS &&
		       homa_hist_value(i) > homad_latency_bound(bound))
			bound++;
		l->count += n;
		l->counts[i >> HOMAD_LATENCY_SHIFT] += n;
		if (bound < HOMAD_LATENCY_BOUNDS)
			l->below[bound] += n;
	}
}

/* Makes the counts cumulative, which add_latency() added to one bucket each. */
static void finish_latency(struct homad_latency *l)
{
	u32 i;

	for (i = 1; i < HOMAD_LATENCY_BOUNDS; i++)
		l->below[i] += l->below[i - 1];
}

static u64 cpu_time(const struct homad_thread *t)
{
	struct timespec ts;
	clockid_t clock;

	if (!HOMA_READ_ONCE(t->running) ||
	    pthread_getcpuclockid(t->thread, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

static void collect_tcp(struct homad_tcp_stats *to, struct homad_tcp_stats *sum,
			const struct homad_tcp *tcp)
{
	struct tas_counts here;

	to->on = sum->on = true;
#define X(name, text)                                                \
	to->engine.name = HOMA_READ_ONCE(tcp->engine.metrics.name) + \
			  HOMA_READ_ONCE(tcp->local.metrics.name);   \
	sum->engine.name += to->engine.name;
#include "tas_metrics.def"
#undef X
#define X(name, text)                                       \
	to->host.name = HOMA_READ_ONCE(tcp->counters.name); \
	sum->host.name += to->host.name;
	HOMAD_TCP_COUNTERS(X)
#undef X
	to->counts = tas_count(&tcp->engine);
	here = tas_count(&tcp->local);
	to->counts.connections += here.connections;
	to->counts.ended += here.ended;
	sum->counts.connections += to->counts.connections;
	sum->counts.ended += to->counts.ended;
}

static void collect_thread(const struct homad *d, struct homad_stats *s,
			   const struct homad_thread *t)
{
	struct homad_thread_stats *to = &s->threads[s->num_threads++];
	u32 i;

	to->index = t->index;
	to->core = t->core;
	to->active = HOMA_READ_ONCE(t->active);
	to->asleep = HOMA_READ_ONCE(t->asleep);
	to->spin_ns = HOMA_READ_ONCE(t->spin.limit);
	to->cpu_ns = cpu_time(t);
	to->out_bytes = (s64)HOMA_READ_ONCE(t->bufs.used);
#define X(name, text)                                         \
	to->counters.name = HOMA_READ_ONCE(t->counters.name); \
	s->counters.name += to->counters.name;
	HOMAD_COUNTERS(X)
#undef X
	for (i = 0; i < HOMA_M_COUNT; i++) {
		to->engine[i] = HOMA_READ_ONCE(t->ctx.metrics[i]);
		s->engine[i] += to->engine[i];
	}
	add_latency(&s->latency, &t->rtt);
	/* What is counted of TCP stays with the instance, whichever thread runs it. */
	if (d->steering && t->index < d->steering->num)
		collect_tcp(&to->tcp, &s->tcp, d->steering->tcp[t->index]);
}

/* ---- ports ---- */

static int look_at_port(struct homad_thread *t, void *arg)
{
	struct homad_port_stats *s = arg;

	homad_now(t);
	if (s->has_nic)
		nic_stats(s->port->nic, &s->nic);
	if (s->port->link)
		homa_link_state(&t->ctx, s->port->link, &s->link);
	return 0;
}

/* struct at_port - an errand for the control thread, which alone knows the thread that serves
 * @port at that moment: it has that thread fill in @to */
struct at_port {
	const struct homad_port *port;
	struct homad_port_stats *to;
};

static void ask_thread(struct homad *d, void *arg)
{
	struct at_port *at = arg;
	struct homad_thread *t = d->threads[at->port->thread];

	if (t)
		homad_call(t, look_at_port, at->to);
}

static void collect_port(struct homad *d, struct homad_stats *s,
			 const struct homad_port *port)
{
	struct homad_port_stats *to = &s->ports[s->num_ports++];
	struct at_port at = { port, to };

	to->port = port;
	to->has_nic = port->nic != NULL;
	homad_control(d, ask_thread, &at);
}

void homad_stats_collect(struct homad *d, struct homad_stats *s)
{
	u32 i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < d->num_ports; i++)
		collect_port(d, s, &d->ports[i]);
	s->now_ns = homa_clock_ns();
	for (i = 0; i < d->num_threads; i++)
		if (d->threads[i])
			collect_thread(d, s, d->threads[i]);
	finish_latency(&s->latency);
	homa_engine_counts(d->engine, &s->counts);
	s->log_lost = homad_log_lost();
}

/* ---- for applications ---- */

void homad_nic_visit(const struct nic_stats *s, homad_visitor *visit, void *arg)
{
#define X(name, text) visit(arg, "nic_" #name, text, s->name);
	NIC_STATS(X)
#undef X
}

static struct nic_stats sum_nics(const struct homad_stats *s)
{
	struct nic_stats sum = { 0 };
	u32 i;

	for (i = 0; i < s->num_ports; i++) {
#define X(name, text) sum.name += s->ports[i].nic.name;
		NIC_STATS(X)
#undef X
	}
	return sum;
}

static void visit_tcp(const struct homad_tcp_stats *tcp, homad_visitor *visit,
		      void *arg)
{
	if (!tcp->on)
		return;
#define X(name, text) visit(arg, "tcp_" #name, text, tcp->engine.name);
#include "tas_metrics.def"
#undef X
#define X(name, text) visit(arg, "tcp_" #name, text, tcp->host.name);
	HOMAD_TCP_COUNTERS(X)
#undef X
}

static void visit_app(const struct homad_app *app, homad_visitor *visit, void *arg)
{
#define X(name, text) \
	visit(arg, "app_" #name, text, HOMA_READ_ONCE(app->counters.name));
	HOMAD_APP_COUNTERS(X)
#undef X
	visit(arg, "rpcs", "open RPCs of this attachment",
	      HOMA_READ_ONCE(app->rpcs));
}

void homad_stats_metrics(struct homad *d, const struct homad_app *app,
			 homad_visitor *visit, void *arg)
{
	struct homad_stats *s = malloc(sizeof(*s));
	struct nic_stats nics;
	u64 out_bytes = 0;
	u32 i;

	if (!s)
		return;
	homad_stats_collect(d, s);
	for (i = 0; i < HOMA_M_COUNT; i++)
		visit(arg, homa_metric_table[i].name, homa_metric_table[i].text,
		      s->engine[i]);
	nics = sum_nics(s);
	homad_nic_visit(&nics, visit, arg);
#define X(name, text) visit(arg, "host_" #name, text, s->counters.name);
	HOMAD_COUNTERS(X)
#undef X
	for (i = 0; i < s->num_threads; i++)
		out_bytes += (u64)s->threads[i].out_bytes;
	visit(arg, "host_out_bytes",
	      "memory of outgoing messages now, all attachments, bytes",
	      out_bytes);
	visit(arg, "host_rpcs", "RPCs alive now, all attachments",
	      s->counts.rpcs);
	visit(arg, "peers", "peers remembered now", s->counts.peers);
	visit_tcp(&s->tcp, visit, arg);
	if (app)
		visit_app(app, visit, arg);
	free(s);
}
