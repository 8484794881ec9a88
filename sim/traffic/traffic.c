// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages come into being here and are judged when they are over; see
 * traffic.h. Each host draws from its own stream (common/arrivals), so every
 * protocol meets the same messages; a recorded trace or bursts of incast may
 * take its place or be added. In an RPC run a request that is delivered is answered
 * at once; the response holds the request until it is delivered in its turn.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_stats.h"
#include "sim_transport.h"
#include "traffic_impl.h"

#define INCAST_STREAM (3ull << 40)

/* struct traffic_source - a host's stream of messages; @next is created when @ev happens */
struct traffic_source {
	struct sim_event ev;
	struct homa_arrival next;
	/* The process that says when the next message comes. */
	struct homa_arrivals arrivals;
	u32 host; /* number of the host */
};

/* ---- the list of measured messages ---- */

static bool open_grow(struct sim_traffic *t)
{
	size_t room = t->room ? t->room * 2 : 4096, i, n = 0;
	struct traffic_open *grown;

	for (i = 0; i < t->used; i++)
		if (sim_traffic_is_open(&t->open[i]))
			t->open[n++] = t->open[i];
	t->used = n;
	if (n < t->room / 2)
		return true;
	grown = realloc(t->open, room * sizeof(*grown));
	if (!grown)
		return false;
	t->open = grown;
	t->room = room;
	return true;
}

static bool open_add(struct sim_traffic *t, struct sim_msg *msg)
{
	if (t->used == t->room && !open_grow(t))
		return false;
	t->open[t->used++] = (struct traffic_open){ msg, msg->serial };
	t->num_open++;
	return true;
}

/* ---- ends of the run ---- */

static void close_window(struct sim *sim)
{
	struct sim_traffic *t = sim->traffic;

	if (!t->opened || t->closed)
		return;
	t->closed = true;
	t->closed_at = sim->now;
	sim_event_cancel(sim->agenda, &t->close_ev);
	sim_event_cancel(sim->agenda, &t->sample_ev);
	sim_stats_close(sim);
}

static void fail_run(struct sim *sim, int error)
{
	sim->traffic->error = error;
	sim->stop = true;
}

/* Ends the run if nothing more can change its results. */
static void check_done(struct sim *sim)
{
	struct sim_traffic *t = sim->traffic;

	if (t->closed ? t->num_open == 0 : !t->sources && !t->pending)
		sim->stop = true;
}

static void source_ends(struct sim *sim)
{
	sim->traffic->sources--;
	check_done(sim);
}

static bool enough(const struct sim *sim)
{
	const struct sim_traffic *t = sim->traffic;

	return t->calm || (sim->cfg.max_messages && t->created >= sim->cfg.max_messages);
}

/* ---- creating ---- */

static void message_start(struct sim *sim, struct sim_msg *msg)
{
	struct sim_traffic *t = sim->traffic;

	msg->ideal_ps = sim_alone_ps(sim, msg->src, msg->dst, msg->length);
	t->backlog += msg->length;
	if (t->opened && !t->closed) {
		t->offered.msgs++;
		t->offered.payload += msg->length;
		t->offered.wire += sim_load_wire(&sim->cfg, msg->length);
	}
	sim_send(sim, msg);
}

void sim_traffic_message(struct sim *sim, u32 src, u32 dst, u32 length, float quantile,
			 bool incast)
{
	struct sim_traffic *t = sim->traffic;
	struct sim_msg *msg = sim_msg_new(sim);

	if (unlikely(!msg)) {
		fail_run(sim, ENOMEM);
		return;
	}
	msg->src = (u16)src;
	msg->dst = (u16)dst;
	msg->length = length;
	msg->quantile = quantile;
	msg->incast = incast;
	msg->measured = t->opened && !t->closed;
	t->created++;
	t->pending++;
	if (msg->measured) {
		sim->stats->measured++;
		if (unlikely(!open_add(t, msg))) {
			fail_run(sim, ENOMEM);
			return;
		}
	}
	message_start(sim, msg);
}

static void source_fires(struct sim *sim, struct sim_event *ev)
{
	struct traffic_source *source = homa_container_of(ev, struct traffic_source, ev);
	const struct homa_arrival *next = &source->next;

	if (enough(sim)) {
		source_ends(sim);
		return;
	}
	sim_traffic_message(sim, source->host, next->peer + (next->peer >= source->host),
			    next->size, (float)next->quantile, false);
	homa_arrivals_next(&source->arrivals, &source->next);
	sim_event_add(sim->agenda, ev, next->at_ns * SIM_NS);
}

/* Has client @host, which waits for answers, send an RPC. */
static void client_asks(struct sim *sim, u32 host)
{
	struct homa_arrival next;

	if (enough(sim)) {
		sim_closed_loop_end(sim, host);
		source_ends(sim);
		return;
	}
	sim_closed_loop_next(sim, host, &next);
	sim_traffic_message(sim, host, next.peer, next.size, (float)next.quantile, false);
}

static void recorded_fires(struct sim *sim, struct sim_event *ev)
{
	struct sim_traffic *t = sim->traffic;
	const struct sim_recorded *r = &t->recording.list[t->next_recorded];

	if (!enough(sim)) {
		sim_traffic_message(sim, r->src, r->dst, r->length, r->quantile, false);
		if (++t->next_recorded < t->recording.count) {
			sim_event_add(sim->agenda, ev, r[1].at_ns * SIM_NS);
			return;
		}
	}
	source_ends(sim);
}

/*
 * Creates a burst of incast: some hosts send to one at the same time. In an RPC run the
 * messages that meet are responses to requests of that host.
 */
static void incast_fires(struct sim *sim, struct sim_event *ev)
{
	const struct sim_config *cfg = &sim->cfg;
	struct sim_traffic *t = sim->traffic;
	u32 i, one, other;

	if (enough(sim)) {
		source_ends(sim);
		return;
	}
	/* Puts incast + 1 random hosts first. */
	for (i = 0; i <= cfg->incast; i++) {
		u32 j = i + homa_prng_below(&t->incast_rng, cfg->hosts - i);
		u16 host = t->incast_hosts[j];

		t->incast_hosts[j] = t->incast_hosts[i];
		t->incast_hosts[i] = host;
	}
	one = t->incast_hosts[0];
	for (i = 1; i <= cfg->incast; i++) {
		other = t->incast_hosts[i];
		sim_traffic_message(sim, cfg->rpc ? one : other, cfg->rpc ? other : one,
				    cfg->incast_bytes, 0, true);
	}
	sim_event_add(sim->agenda, ev, sim->now + cfg->incast_ps);
}

/* ---- arriving ---- */

static inline bool in_window(const struct sim_traffic *t)
{
	return t->opened && !t->closed;
}

/* Returns how many of @bytes the message still lacked. */
static inline u32 bytes_arrive(struct sim *sim, struct sim_msg *msg, u32 bytes)
{
	struct sim_traffic *t = sim->traffic;

	if (bytes > msg->length - msg->arrived)
		bytes = msg->length - msg->arrived;
	msg->arrived += bytes;
	t->backlog -= bytes;
	if (in_window(t))
		sim->stats->window_bytes += bytes;
	return bytes;
}

/*
 * Counts the bytes of a message packet by packet, or else a window would have to be long
 * against the longest messages. Duplicates cannot raise the count above the length;
 * delivered() makes up for packets that hold parts of several messages. A packet that adds
 * nothing counts as a repetition: there are as many of these as there are second copies of
 * bytes.
 */
static void packet_arrives(void *arg, struct sim *sim, const struct sim_pkt *pkt)
{
	struct sim_msg *msg;
	u32 fresh = 0;

	(void)arg;
	if (pkt->flags & (SIM_CONTROL | SIM_TRIMMED) || !pkt->payload)
		return;
	msg = sim_pkt_msg(pkt);
	if (msg)
		fresh = bytes_arrive(sim, msg, pkt->payload);
	if (!fresh && pkt->msg && in_window(sim->traffic))
		sim->stats->repeated_bytes += pkt->wire;
}

/* Counts bytes of transports without packets. */
static void some_arrived(struct sim *sim, struct sim_msg *msg, u32 bytes)
{
	bytes_arrive(sim, msg, bytes);
}

/* ---- ending ---- */

/* Ends @msg, a message or an RPC's request, as delivered or given up. */
static void message_over(struct sim *sim, struct sim_msg *msg)
{
	struct sim_traffic *t = sim->traffic;

	t->pending--;
	if (msg->measured) {
		msg->measured = false;
		t->num_open--;
	}
	if (t->client)
		sim_closed_loop_over(sim, msg);
	check_done(sim);
}

static void respond(struct sim *sim, struct sim_msg *request)
{
	struct sim_msg *response = sim_msg_new(sim);

	if (unlikely(!response)) {
		fail_run(sim, ENOMEM);
		return;
	}
	response->src = request->dst;
	response->dst = request->src;
	response->length = sim_response_bytes(&sim->cfg, request->length);
	response->quantile = request->quantile;
	response->incast = request->incast;
	response->request = request; /* takes over traffic's reference */
	message_start(sim, response);
}

static void delivered(struct sim *sim, struct sim_msg *msg)
{
	struct sim_msg *first = msg->request ? msg->request : msg;
	struct sim_traffic *t = sim->traffic;
	u64 ideal = msg->ideal_ps;

	bytes_arrive(sim, msg, msg->length);
	if (t->opened && !t->closed)
		sim->stats->window_msgs += !sim->cfg.rpc || first != msg;
	if (sim->cfg.rpc && first == msg) {
		respond(sim, msg);
		return;
	}
	if (first != msg) {
		ideal += first->ideal_ps;
		msg->wait_ps += first->wait_ps;
		msg->lag_ps += first->lag_ps;
	}
	if (first->measured)
		sim_stats_record(sim->stats, first, msg, sim->now - first->created, ideal);
	message_over(sim, first);
	sim_msg_put(sim, msg);
}

static void failed(struct sim *sim, struct sim_msg *msg, int error)
{
	struct sim_msg *first = msg->request ? msg->request : msg;

	sim->traffic->backlog -= msg->length - msg->arrived;
	if (first->measured)
		sim_stats_failed(sim->stats, first, sim->now - first->created,
				 sim_alone_rpc_ps(sim, first), error);
	message_over(sim, first);
	sim_msg_put(sim, msg);
}

/* Records the measured messages that are not over with their present age. */
static void judge_the_rest(struct sim *sim)
{
	struct sim_traffic *t = sim->traffic;
	size_t i;

	for (i = 0; i < t->used; i++) {
		struct sim_msg *msg = t->open[i].msg;

		if (!sim_traffic_is_open(&t->open[i]))
			continue;
		sim_stats_failed(sim->stats, msg, sim->now - msg->created,
				 sim_alone_rpc_ps(sim, msg), ETIME);
		msg->measured = false;
		t->num_open--;
	}
	t->used = 0;
}

/* ---- the clock of the run ---- */

static void window_opens(struct sim *sim, struct sim_event *ev)
{
	struct sim_traffic *t = sim->traffic;

	(void)ev;
	t->opened = true;
	t->opened_at = sim->now;
	sim_stats_open(sim);
	sim_event_add(sim->agenda, &t->sample_ev, sim->now);
}

static void window_closes(struct sim *sim, struct sim_event *ev)
{
	(void)ev;
	close_window(sim);
	check_done(sim);
}

static void sample(struct sim *sim, struct sim_event *ev)
{
	struct sim_traffic *t = sim->traffic;

	sim_stats_sample(sim, t->backlog);
	if (sim_traffic_ends_early(sim)) {
		t->aborted = true;
		close_window(sim);
		sim->stop = true;
		return;
	}
	sim_event_add(sim->agenda, ev, sim->now + sim->stats->sample_ps);
}

static void load_ends(struct sim *sim, struct sim_event *ev)
{
	(void)ev;
	sim->traffic->calm = true;
}

static void time_is_up(struct sim *sim, struct sim_event *ev)
{
	(void)ev;
	sim->traffic->late = true;
	sim->stop = true;
}

static u64 later(u64 at, u64 by)
{
	return by > SIM_NEVER - 1 - at ? SIM_NEVER - 1 : at + by;
}

static void plan_clock(struct sim *sim)
{
	const struct sim_config *cfg = &sim->cfg;
	struct sim_traffic *t = sim->traffic;
	const u64 half = cfg->measure_ps / 2;
	u64 close = later(cfg->warmup_ps, cfg->measure_ps);
	u64 sampled = cfg->measure_ps;

	/* A recording without a window is measured until all of it is over. */
	if (!cfg->measure_ps && t->recording.count) {
		sampled = t->recording.list[t->recording.count - 1].at_ns * SIM_NS + SIM_US;
		close = later(sampled, cfg->drain_ps);
	}
	t->end_at = close;
	t->open_ev.fn = window_opens;
	t->close_ev.fn = window_closes;
	t->calm_ev.fn = load_ends;
	t->late_ev.fn = time_is_up;
	t->sample_ev.fn = sample;
	sim->stats->sample_ps = sampled / (SIM_SAMPLES - 1);
	if (!sim->stats->sample_ps)
		sim->stats->sample_ps = 1;
	sim_event_add(sim->agenda, &t->open_ev, cfg->warmup_ps);
	sim_event_add(sim->agenda, &t->close_ev, close);
	sim_event_add(sim->agenda, &t->calm_ev,
		      later(close, half < cfg->drain_ps ? half : cfg->drain_ps));
	sim_event_add(sim->agenda, &t->late_ev, later(close, cfg->drain_ps));
}

/* ---- begin and end ---- */

static int plan_sources(struct sim *sim)
{
	const struct sim_config *cfg = &sim->cfg;
	struct sim_traffic *t = sim->traffic;
	u32 i;

	if (t->load.gap_ns <= 0)
		return 0;
	t->source = calloc(cfg->hosts, sizeof(*t->source));
	if (!t->source)
		return -ENOMEM;
	for (i = 0; i < cfg->hosts; i++) {
		struct traffic_source *source = &t->source[i];

		source->host = i;
		source->ev.fn = source_fires;
		homa_arrivals_init(&source->arrivals, &sim->workload, t->load.gap_ns,
				   cfg->hosts - 1, cfg->seed, i);
		homa_arrivals_next(&source->arrivals, &source->next);
		sim_event_add(sim->agenda, &source->ev, source->next.at_ns * SIM_NS);
		t->sources++;
	}
	return 0;
}

static int plan_incast(struct sim *sim, char *err, size_t errlen)
{
	const struct sim_config *cfg = &sim->cfg;
	struct sim_traffic *t = sim->traffic;
	u32 i;

	if (!cfg->incast)
		return 0;
	if (cfg->incast >= cfg->hosts) {
		snprintf(err, errlen, "incast of %u senders needs more than %u hosts",
			 cfg->incast, cfg->hosts);
		return -EINVAL;
	}
	t->incast_hosts = calloc(cfg->hosts, sizeof(*t->incast_hosts));
	if (!t->incast_hosts)
		return -ENOMEM;
	for (i = 0; i < cfg->hosts; i++)
		t->incast_hosts[i] = (u16)i;
	homa_prng_seed(&t->incast_rng, cfg->seed, INCAST_STREAM);
	t->incast_ev.fn = incast_fires;
	sim_event_add(sim->agenda, &t->incast_ev, cfg->incast_ps);
	t->sources++;
	return 0;
}

static void plan_recording(struct sim *sim)
{
	struct sim_traffic *t = sim->traffic;

	if (!t->recording.count)
		return;
	t->arrival.fn = recorded_fires;
	sim_event_add(sim->agenda, &t->arrival, t->recording.list[0].at_ns * SIM_NS);
	t->sources++;
}

int sim_traffic_start(struct sim *sim, char *err, size_t errlen)
{
	struct sim_traffic *t = calloc(1, sizeof(*t));
	int res;

	sim->traffic = t;
	sim->stats = t ? sim_stats_new(sim) : NULL;
	snprintf(err, errlen, "out of memory");
	if (!t || !sim->stats)
		return -ENOMEM;
	sim->on_delivered = delivered;
	sim->on_failed = failed;
	sim->on_arrived = some_arrived;
	t->tap.received = packet_arrives;
	t->tap.next = sim->taps;
	sim->taps = &t->tap;
	if (sim->cfg.arrivals[0]) {
		res = sim_recording_load(&t->recording, sim->cfg.arrivals, sim->cfg.hosts,
					 err, errlen);
		if (res)
			return res;
	} else {
		sim_load_compute(&sim->cfg, &sim->workload, &t->load);
	}
	/* The clock is planned first, so that the window is open for what happens at its
	 * first instant. */
	plan_clock(sim);
	plan_recording(sim);
	res = plan_sources(sim);
	if (!res)
		res = plan_incast(sim, err, errlen);
	if (!res)
		res = sim_closed_loop_start(sim, client_asks, err, errlen);
	if (!res && !t->sources) {
		snprintf(err, errlen,
			 "there is nothing to send: give a --load above 0, --arrivals FILE or --incast N:BYTES:PERIOD");
		res = -EINVAL;
	}
	return res;
}

void sim_traffic_finish(struct sim *sim)
{
	close_window(sim);
	judge_the_rest(sim);
}

/* Other parts of the run may still cancel events that are linked with these. */
static void cancel_all(struct sim *sim)
{
	struct sim_traffic *t = sim->traffic;
	struct sim_event *const events[] = { &t->arrival,   &t->open_ev, &t->close_ev,
					     &t->calm_ev,   &t->late_ev, &t->sample_ev,
					     &t->incast_ev, &t->rest_ev };
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(events); i++)
		sim_event_cancel(sim->agenda, events[i]);
	for (i = 0; t->source && i < sim->cfg.hosts; i++)
		sim_event_cancel(sim->agenda, &t->source[i].ev);
	sim_closed_loop_stop(sim);
}

void sim_traffic_free(struct sim *sim)
{
	struct sim_traffic *t = sim->traffic;
	struct sim_tap **tap;

	if (t)
		cancel_all(sim);
	sim_stats_free(sim->stats);
	sim->stats = NULL;
	sim->on_delivered = NULL;
	sim->on_failed = NULL;
	sim->on_arrived = NULL;
	sim->traffic = NULL;
	if (!t)
		return;
	for (tap = &sim->taps; *tap; tap = &(*tap)->next)
		if (*tap == &t->tap) {
			*tap = t->tap.next;
			break;
		}
	sim_recording_free(&t->recording);
	free(t->source);
	free(t->open);
	free(t->incast_hosts);
	free(t);
}
