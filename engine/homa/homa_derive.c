// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What follows from a link's speed and round trip. The settings that the Homa
 * module ships with belong to 25 Gbps and a round trip of 15 us; at 200 Mbit/s
 * its 40,000 unscheduled bytes are 1.6 ms of link time and its 5 ms RESEND
 * interval fires for messages that merely wait their turn. So everything that
 * the user does not set is derived from two numbers: bytes per time, and the
 * smallest time between a short request and its response.
 *
 * The round trip is a minimum over a sliding window (the current epoch and the
 * one before), like that of BBR: queueing and slow servers only ever add to a
 * sample, so the minimum is what the path itself takes, and a window lets it
 * rise again when the path changes.
 */
#include "homa_impl.h"

#define HOMA_RTT_EPOCH_NS 1000000000ull
/* Longest sample of a round trip, in ns; a longer one counts as a stall. */
#define HOMA_RTT_MAX_NS 1000000000ull
/* Guess of the time that software takes in a round trip, at both hosts together, in ns. */
#define HOMA_GUESS_SOFTWARE_NS 20000u
/* Most times the guessed round trip that a measured one counts. */
#define HOMA_GUESS_FACTOR 4
#define HOMA_RTT_BYTES_MIN 10000u
#define HOMA_RTT_BYTES_MAX 1000000u
/* Values for a link of unknown rate, which is a virtual device, as fast as memory: those of
 * the module for 100 Gbps, with which GSO units grow long. */
#define HOMA_RTT_BYTES_UNKNOWN 60000u
#define HOMA_INCOMING_UNKNOWN 1600000u
/* Least max_incoming of a link of at least HOMA_FAST_MBPS whose round trip is not measured,
 * in bytes. */
#define HOMA_INCOMING_FAST 400000u
/* The same if the round trip is measured, in bytes. */
#define HOMA_INCOMING_MEASURED 200000u
#define HOMA_FAST_MBPS 10000u
#define HOMA_FIFO_MAX 50000u
#define HOMA_RESEND_MIN_NS 5000000ull
#define HOMA_RESEND_MAX_NS 50000000ull
#define HOMA_RESEND_WAITS 14
/* Number of RESEND intervals that fit into the times after which an RPC is given up or
 * forgotten. */
#define HOMA_RESEND_TRIES 4
#define HOMA_TIMEOUT_MIN_NS 100000000ull

/* Returns the time on the wire of @bytes at the link's full rate, in ns. */
static u64 homa_wire_ns(u64 bytes, u32 rate_mbps)
{
	return homa_div64(bytes * 8000, rate_mbps);
}

static u64 homa_round_trip_ns(const struct homa_link *link, u32 measured_ns)
{
	const struct homa_params *params = &link->engine->params;
	u32 packet = link->mtu + HOMA_ETH_HEADER + HOMA_WIRE_OVERHEAD;
	u64 guess = homa_wire_ns(4ull * packet, link->rate_mbps) +
		    HOMA_GUESS_SOFTWARE_NS;

	if (params->rtt_us)
		return params->rtt_us * 1000ull;
	/* A sample contains the time that the server's application took. Samples are
	 * bounded in case every application takes long. */
	if (measured_ns)
		return homa_min_u64(measured_ns, HOMA_GUESS_FACTOR * guess);
	return guess;
}

/* Returns the bytes that a round trip takes on the link. Three packets are added, because
 * one is being received, one being sent and one in the switch whatever the round trip of a
 * short message is. */
static u32 homa_rtt_bytes(const struct homa_link *link, u32 measured_ns)
{
	const struct homa_params *params = &link->engine->params;
	u64 bytes;

	if (params->unsched_bytes)
		return params->unsched_bytes;
	if (!link->rate_mbps)
		return HOMA_RTT_BYTES_UNKNOWN;
	bytes = homa_div64(homa_round_trip_ns(link, measured_ns) * link->rate_mbps,
			   8000) +
		3ull * link->mtu;
	bytes = homa_max_u64(bytes, HOMA_RTT_BYTES_MIN);
	return (u32)homa_min_u64(bytes, HOMA_RTT_BYTES_MAX);
}

static u32 homa_max_incoming(const struct homa_link *link, u32 rtt_bytes,
			     bool measured)
{
	const struct homa_params *params = &link->engine->params;
	u64 bytes;

	if (params->max_incoming)
		return params->max_incoming;
	if (!link->rate_mbps)
		return HOMA_INCOMING_UNKNOWN;
	/* Slow links hang on switches with little buffer, too: half of the
	 * overcommitment filled 48 KB at 200 Mbit/s and lost no throughput. */
	if (link->rate_mbps >= HOMA_FAST_MBPS)
		bytes = homa_max_u64((u64)params->max_overcommit * rtt_bytes,
				     measured ? HOMA_INCOMING_MEASURED :
						HOMA_INCOMING_FAST);
	else
		bytes = homa_max_u64(params->max_overcommit * (u64)rtt_bytes / 2,
				     2ull * rtt_bytes);
	return (u32)homa_min_u64(bytes, 0x7fffffff);
}

/*
 * Returns the bytes of max_incoming that are kept for the best message, so that a short one
 * that appears can be granted at once although others have their windows. On slow links,
 * simulated as for homa_resend_ns(), half of it let none be dropped of what was one in a
 * thousand before and quartered the slowdown of those it had hit. On fast ones it costs
 * more than it brings: with more room the next message's packets keep the last ones of the
 * best, granted at a lower level earlier, waiting in the switch. The SIGCOMM'18 rule has no
 * limit to divide.
 */
static u32 homa_reserved(const struct homa_link *link, u32 max_incoming)
{
	const struct homa_params *params = &link->engine->params;

	if (params->reserved_incoming)
		return homa_min_u32(params->reserved_incoming, max_incoming);
	if (params->sigcomm_grants || !link->rate_mbps ||
	    link->rate_mbps >= HOMA_FAST_MBPS)
		return 0;
	return max_incoming / 2;
}

/*
 * Returns the longest RESEND interval, in ns. If a host first asked when the other end has
 * given the RPC up, or when a request may not be sent again any more (homa_rx_unknown()),
 * every message that is lost whole would cost an RPC. Early questions cost little.
 */
static u64 homa_resend_most_ns(const struct homa_params *params)
{
	u64 ns = HOMA_NEVER;

	if (params->timeout_us)
		ns = params->timeout_us * 1000ull;
	if (params->tombstone_ms)
		ns = homa_min_u64(ns, params->tombstone_ms * 1000000ull);
	return homa_max_u64(homa_div64(ns, HOMA_RESEND_TRIES),
			    HOMA_RESEND_MIN_NS);
}

/*
 * Returns the RESEND interval, in ns. A message may wait for shorter ones for many times
 * the time that outstanding bytes take: its last bytes lie in the switch on a low level
 * while others flow on higher ones. Simulated with W3-W5 at 80 % load, 200 Mbit/s and ports
 * of 48 and 150 KB, asking after 14 times that rather than 4 times gave a fifth of the
 * RESENDs, whose answers are mostly duplicates at highest priority, a fifth of the drops
 * and better tails. (14 is what leaves 5 ms at 10 Gbps.)
 */
static u64 homa_resend_ns(const struct homa_link *link, u32 max_incoming,
			  u32 rtt_bytes)
{
	const struct homa_params *params = &link->engine->params;
	u64 most = homa_resend_most_ns(params);
	u64 ns;

	if (params->resend_interval_us)
		return homa_min_u64(params->resend_interval_us * 1000ull, most);
	if (!link->rate_mbps)
		return HOMA_RESEND_MIN_NS;
	ns = HOMA_RESEND_WAITS *
	     homa_wire_ns((u64)max_incoming + rtt_bytes, link->rate_mbps);
	ns = homa_max_u64(homa_min_u64(ns, HOMA_RESEND_MAX_NS),
			  HOMA_RESEND_MIN_NS);
	return homa_min_u64(ns, most);
}

static u64 homa_timeout_ns(const struct homa_link *link, u64 resend_ns)
{
	const struct homa_params *params = &link->engine->params;

	return params->timeout_us ?
		       params->timeout_us * 1000ull :
		       homa_max_u64(HOMA_TIMEOUT_MIN_NS, 20 * resend_ns);
}

/*
 * Returns for how long a client may start a request again, and a new server distrusts such
 * requests, in ns. Hosts with the same settings and link rate need the same value, so
 * measured round trips must not enter; and it is no longer than a server remembers what it
 * has executed.
 */
static u64 homa_restart_ns(const struct homa_link *link)
{
	const struct homa_params *params = &link->engine->params;
	u32 rtt_bytes = homa_rtt_bytes(link, 0);
	u64 resend_ns =
		homa_resend_ns(link, homa_max_incoming(link, rtt_bytes, false),
			       rtt_bytes);
	u64 ns = homa_timeout_ns(link, resend_ns) * 5 / 4;

	if (params->tombstone_ms)
		ns = homa_min_u64(ns, params->tombstone_ms * 1000000ull);
	return ns;
}

/* Returns the setting, but at least the time of two full packets, else a slow link would
 * idle; in ns. */
static u64 homa_backlog_ns(const struct homa_link *link, u32 ps_per_byte)
{
	u64 packet = link->mtu + HOMA_ETH_HEADER + HOMA_WIRE_OVERHEAD;
	u64 ns = link->engine->params.max_nic_backlog_us * 1000ull;

	return homa_max_u64(ns, homa_div64(2 * packet * ps_per_byte, 1000));
}

void homa_link_derive(struct homa_link *link)
{
	const struct homa_params *params = &link->engine->params;
	struct homa_derived *derived = &link->derived;
	u32 rtt_bytes = homa_rtt_bytes(link, link->rtt_ns);
	u32 max_incoming = homa_max_incoming(link, rtt_bytes,
					     link->rtt_ns && link->rate_mbps);
	u64 resend_ns = homa_resend_ns(link, max_incoming, rtt_bytes);
	u32 window = params->window;
	u32 fifo = params->fifo_grant_increment;
	u32 ps_per_byte = 0;

	if (link->rate_mbps) {
		u64 usable = (u64)link->rate_mbps * params->max_link_usage;

		/* A byte takes 8e12 ps divided by 1e6 * rate * percent / 100. */
		ps_per_byte = (u32)homa_div64(800000000ull + usable / 2, usable);
		ps_per_byte = homa_max_u32(ps_per_byte, 1);
	}
	if (!window && params->sigcomm_grants)
		window = rtt_bytes;
	HOMA_WRITE_ONCE(link->sched.ps_per_byte, ps_per_byte);
	HOMA_WRITE_ONCE(link->sched.backlog_ns,
			homa_backlog_ns(link, ps_per_byte));
	HOMA_WRITE_ONCE(derived->rtt_bytes, rtt_bytes);
	HOMA_WRITE_ONCE(derived->max_incoming, max_incoming);
	HOMA_WRITE_ONCE(derived->reserved, homa_reserved(link, max_incoming));
	HOMA_WRITE_ONCE(derived->window, window);
	HOMA_WRITE_ONCE(derived->fifo_increment,
			fifo ? fifo : homa_min_u32(rtt_bytes, HOMA_FIFO_MAX));
	HOMA_WRITE_ONCE(derived->resend_ns, resend_ns);
	HOMA_WRITE_ONCE(derived->timeout_ns, homa_timeout_ns(link, resend_ns));
	HOMA_WRITE_ONCE(derived->restart_ns, homa_restart_ns(link));
}

/* Takes in a sample of a round trip that the fast path found interesting; link locked. */
static void homa_rtt_update(struct homa_link *link, u64 now, u32 ns)
{
	u32 best, used = link->rtt_ns;

	if (now >= link->rtt_epoch_at) {
		/* After a longer silence the last epoch's minimum is stale. */
		bool stale = homa_since(now, link->rtt_epoch_at) >=
			     HOMA_RTT_EPOCH_NS;

		HOMA_WRITE_ONCE(link->rtt_epoch_at, now + HOMA_RTT_EPOCH_NS);
		link->rtt_prev_ns = stale ? 0 : link->rtt_next_ns;
		HOMA_WRITE_ONCE(link->rtt_next_ns, ns);
	} else if (!link->rtt_next_ns || ns < link->rtt_next_ns) {
		HOMA_WRITE_ONCE(link->rtt_next_ns, ns);
	}
	best = link->rtt_next_ns;
	if (link->rtt_prev_ns)
		best = homa_min_u32(best, link->rtt_prev_ns);
	if (used && best + used / 8 >= used && best <= used + used / 8)
		return;
	HOMA_WRITE_ONCE(link->rtt_ns, best);
	homa_link_derive(link);
}

/* Takes a sample that changes something. */
static HOMA_RARE void homa_rtt_counts(struct homa_link *link, u64 now, u32 sample)
{
	homa_lock(&link->lock);
	homa_rtt_update(link, now, sample);
	homa_unlock(&link->lock);
}

HOMA_HOT void homa_link_rtt_sample(struct homa_ctx *ctx, struct homa_link *link,
				   u64 ns)
{
	u32 sample;

	if (ns > HOMA_RTT_MAX_NS)
		return;
	sample = homa_max_u32((u32)ns, 1);
	if (unlikely(ctx->now >= HOMA_READ_ONCE(link->rtt_epoch_at) ||
		     sample < HOMA_READ_ONCE(link->rtt_next_ns)))
		homa_rtt_counts(link, ctx->now, sample);
}
