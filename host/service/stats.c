// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Collecting. The fast path pays for nothing here but a job for each port when
 * somebody asks; with nobody asking it pays nothing.
 */
#include <stdlib.h>
#include "log.h"
#include "slowpath.h"
#include "stats.h"

#define RPCS_AT_ONCE 64u   /* looked up by one job */
#define SLOTS_AT_ONCE 512u /* looked through by one job */

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

/* What add_latency() counted in one bucket each becomes cumulative. */
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
	    pthread_getcpuclockid(t->thread, &clock) ||
	    clock_gettime(clock, &ts))
		return 0;
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

static void collect_thread(struct homad_stats *s, const struct homad_thread *t)
{
	struct homad_thread_stats *to = &s->threads[s->num_threads++];
	u32 i;

	to->index = t->index;
	to->core = t->core;
	to->active = HOMA_READ_ONCE(t->active);
	to->asleep = HOMA_READ_ONCE(t->asleep);
	to->spin_ns = HOMA_READ_ONCE(t->spin.limit);
	to->cpu_ns = cpu_time(t);
	to->out_bytes = HOMA_READ_ONCE(t->bufs.used);
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

static void collect_port(struct homad *d, struct homad_stats *s,
			 const struct homad_port *port)
{
	struct homad_port_stats *to = &s->ports[s->num_ports++];
	struct homad_thread *t = d->threads[port->thread];

	to->port = port;
	to->has_nic = port->nic != NULL;
	if (t)
		homad_call(t, look_at_port, to);
}

/* How many attachments each thread looks at. */
static void count_apps(const struct homad *d, struct homad_stats *s)
{
	const struct homad_slow *slow = d->slow;
	struct homa_list *pos;

	if (!slow)
		return;
	homa_list_for_each(pos, &slow->apps) {
		const struct homad_app *app =
			homa_list_entry(pos, struct homad_attached, list)->app;
		const struct homad_thread *t = HOMA_READ_ONCE(app->thread);

		if (t && HOMA_READ_ONCE(app->is_polled) &&
		    t->index < s->num_threads)
			s->threads[t->index].apps++;
	}
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
			collect_thread(s, d->threads[i]);
	finish_latency(&s->latency);
	count_apps(d, s);
	homa_engine_counts(d->engine, &s->counts);
	s->log_lost = homad_log_lost();
}

/* ---- for applications ---- */

void homad_nic_visit(const struct nic_stats *s, homad_visitor *visit, void *arg)
{
	visit(arg, "nic_rx_packets", "packets received by the packet interface",
	      s->rx_packets);
	visit(arg, "nic_rx_bytes", "bytes in them, Homa header and payload",
	      s->rx_bytes);
	visit(arg, "nic_tx_packets", "packets sent by the packet interface",
	      s->tx_packets);
	visit(arg, "nic_tx_bytes", "bytes in them, Homa header and payload",
	      s->tx_bytes);
	visit(arg, "nic_rx_dropped",
	      "packets lost before us, for lack of buffers", s->rx_dropped);
	visit(arg, "nic_rx_malformed", "packets that were not Homa in valid IP",
	      s->rx_malformed);
	visit(arg, "nic_tx_full",
	      "times the device took fewer packets than offered", s->tx_full);
	visit(arg, "nic_tx_no_neighbour",
	      "packets without a link address to send to", s->tx_no_neighbour);
	visit(arg, "nic_tx_errors", "packets the kernel refused", s->tx_errors);
	visit(arg, "nic_icmp_errors", "ICMP errors that came back",
	      s->icmp_errors);
	visit(arg, "nic_syscalls", "system calls made for packets",
	      s->syscalls);
}

static struct nic_stats sum_nics(const struct homad_stats *s)
{
	struct nic_stats sum = { 0 };
	u32 i;

	/* Eleven counters and nothing else: see struct nic_stats. */
	for (i = 0; i < s->num_ports; i++) {
		const u64 *from = (const u64 *)&s->ports[i].nic;
		u64 *to = (u64 *)&sum;
		size_t k;

		for (k = 0; k < sizeof(sum) / sizeof(u64); k++)
			to[k] += from[k];
	}
	return sum;
}

static void visit_app(const struct homad_app *app, homad_visitor *visit,
		      void *arg)
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
		out_bytes += s->threads[i].out_bytes;
	visit(arg, "host_out_bytes",
	      "memory of outgoing messages now, all attachments, bytes",
	      out_bytes);
	visit(arg, "host_rpcs", "RPCs alive now, all attachments",
	      s->counts.rpcs);
	visit(arg, "peers", "peers remembered now", s->counts.peers);
	if (app)
		visit_app(app, visit, arg);
	free(s);
}

/*
 * struct some_rpcs - what a job of homad_stats_rpcs() goes on with
 * @slot: next of the client's slots; then @at among requests received.
 */
struct some_rpcs {
	struct homad_app *app;
	u32 slot;
	struct homa_look_cursor at;
	struct homa_ctl_rpc *out;
	u32 n, max;
};

static void add_rpc(struct some_rpcs *some, u64 id,
		    const struct homa_rpc_look *look)
{
	struct homa_ctl_rpc *to = &some->out[some->n++];

	memset(to, 0, sizeof(*to));
	to->id = id;
	to->cookie = look->cookie;
	memcpy(to->ip, look->peer.ip, sizeof(to->ip));
	to->encap = look->peer.encap;
	to->port = look->peer_port;
	to->client = look->client;
	to->tx_length = look->tx_length;
	to->tx_sent = look->tx_sent;
	to->tx_granted = look->tx_granted;
	to->rx_length = look->rx_length;
	to->rx_remaining = look->rx_length - look->rx_received;
	to->rx_granted = look->rx_granted;
	to->ready = look->phase == HOMA_LOOK_READY ||
		    look->phase == HOMA_LOOK_FAILED;
}

static int look_at_rpcs(struct homad_thread *t, void *arg)
{
	struct some_rpcs *some = arg;
	struct homad_app *app = some->app;
	struct homa_rpc_look look[RPCS_AT_ONCE];
	u32 i, n, budget = SLOTS_AT_ONCE;

	if (app->phase != HOMAD_APP_OPEN)
		some->at.end = true;
	while (!some->at.end && some->slot < app->max_rpcs) {
		const struct homad_slot *slot = &app->client_slots[some->slot];

		if (!budget-- || some->n == some->max)
			return 0;
		some->slot++;
		if (slot->token &&
		    !homa_rpc_look(&t->ctx, slot->handle, &look[0]))
			add_rpc(some, slot->token, &look[0]);
	}
	if (some->at.end || some->n == some->max)
		return 0;
	n = homa_rpcs_look(&t->ctx, &some->at, app->sock, look, RPCS_AT_ONCE);
	for (i = 0; i < n && some->n < some->max; i++)
		if (!look[i].client)
			add_rpc(some, look[i].handle.id, &look[i]);
	return 0;
}

u32 homad_stats_rpcs(struct homad_app *app, struct homa_ctl_rpc *out, u32 max)
{
	struct some_rpcs some = { .app = app, .out = out, .max = max };

	while (!some.at.end && some.n < max)
		homad_call(app->thread, look_at_rpcs, &some);
	return some.n;
}

/* ---- for tools ---- */

struct some {
	struct homa_look_cursor *at;
	void *out;
	u32 n, max;
};

static int some_rpcs(struct homad_thread *t, void *arg)
{
	struct some *some = arg;

	homad_now(t);
	some->n = homa_rpcs_look(&t->ctx, some->at, NULL, some->out, some->max);
	return 0;
}

static int some_peers(struct homad_thread *t, void *arg)
{
	struct some *some = arg;

	homad_now(t);
	some->n = homa_peers_look(&t->ctx, some->at, some->out, some->max);
	return 0;
}

u32 homad_stats_some_rpcs(struct homad *d, struct homa_look_cursor *at,
			  struct homa_rpc_look *out, u32 max)
{
	struct some some = { .at = at, .out = out, .max = max };

	homad_call(d->threads[0], some_rpcs, &some);
	return some.n;
}

u32 homad_stats_some_peers(struct homad *d, struct homa_look_cursor *at,
			   struct homa_peer_look *out, u32 max)
{
	struct some some = { .at = at, .out = out, .max = max };

	homad_call(d->threads[0], some_peers, &some);
	return some.n;
}
