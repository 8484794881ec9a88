/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a run of homa-bench is told to do, and the few helpers that every part
 * of it uses. The configuration is filled once by options.c, checked there, and
 * constant afterwards; it goes into the result as it is, so that a figure can
 * always say how it was made.
 */
#ifndef HOMA_BENCH_H
#define HOMA_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "workload.h"

#define BENCH_VERSION "0.1.0"
#define BENCH_SCHEMA "homa-bench/1"
#define BENCH_MAX_PEERS 256
#define BENCH_MAX_MESSAGE HOMA_WORKLOAD_CUT
#define BENCH_MAX_SIZES 64
#define BENCH_NS_PER_S 1000000000ull

/** Exit codes: something failed while running; the request made no sense. */
#define BENCH_EXIT_RUNTIME 1
#define BENCH_EXIT_USAGE 2

/** What this process does; a node is both. */
enum bench_role {
	BENCH_SERVER = 1,
	BENCH_CLIENT = 2,
	BENCH_NODE = 3,
};

/** How to wait for the next message. */
enum bench_wait {
	BENCH_WAIT_EPOLL, /* block in epoll (homa: the library's way) */
	BENCH_WAIT_BLOCK, /* block in the read itself, one connection */
	BENCH_WAIT_SPIN,  /* never give up the core */
	BENCH_WAIT_YIELD, /* poll; sched_yield() when there is nothing */
};

/** How requests are generated. */
enum bench_loop {
	BENCH_CLOSED,	/* the next when one ends */
	BENCH_OPEN,	/* at times that do not depend on the system */
	BENCH_UNLOADED, /* one at a time, over a list of sizes */
};

/**
 * struct bench_config - a run's configuration; times are in seconds
 * @transport: "homa", "tcp", "tcp-pool", "udp", "unix", "unix-packet".
 * @bind: "ADDRESS:PORT" to serve, or a client's local address; NULL: any.
 * @peers: "ADDRESS:PORT" of each server.
 * @peer_count: number of entries of @peers.
 * @workload_text: name or file of the workload, as given.
 * @size: fixed message size as given, bytes; 0: @workload_text was given.
 * @workload: distribution of message sizes that follows from these two.
 * @response: bytes of a response; 0: as many as its request has.
 * @burst: open loop: one request to every peer at the same moment, at equal intervals.
 * @apart: index of the peer whose RPCs are counted apart; BENCH_MAX_PEERS: none.
 * @apart_text: --apart as it was given.
 * @check: contents of messages are checked.
 * @outstanding: closed loop: number of requests kept in flight.
 * @max_outstanding: open loop: number of requests in flight beyond which arrivals are
 *	dropped and counted.
 * @rate: open loop: requests per second of this host, from --load, --gbps or --rate.
 * @load: --load, share of @link_bps; 0: not given.
 * @gbps: --gbps, payload in Gbit/s; 0: not given.
 * @link_bps: rate of the link, bits per second; 0: unknown.
 * @warmup: time before the measured window.
 * @duration: length of the measured window.
 * @drain: most time that RPCs in flight get to finish after the window.
 * @any_source: clients of TCP do not bind to the address of @bind.
 * @stay: a node that is done leaves when no message has come for this time, within @drain.
 * @timeout: age at which an RPC has failed.
 * @give_up: time without a success after which failures end the run.
 * @start_at_ns: CLOCK_MONOTONIC time at which the run begins, ns; 0: at once.
 * @lead_us: open loop: time before an arrival at which it stops sleeping and polls instead,
 *	yielding the core, us; 0: it sleeps until the arrival is due.
 * @lag_limit_us: generator lag (P99) above which a run is flagged, us; 0: the larger of 100
 *	us and a tenth of the P99 of the shortest messages.
 * @sizes: unloaded: message sizes to measure, bytes.
 * @size_count: number of entries of @sizes.
 * @samples: unloaded: number of RPCs of each size.
 * @pause_us: unloaded: time from the end of an RPC to the next one, us.
 */
struct bench_config {
	enum bench_role role;
	const char *role_name;
	enum bench_loop loop;
	enum bench_wait wait;
	const char *transport;
	const char *mode;
	const char *label;
	const char *json;
	const char *denominators;
	bool quiet;
	bool any_source;
	bool histograms;

	const char *bind;
	const char *peers[BENCH_MAX_PEERS];
	uint32_t peer_count;

	const char *workload_text;
	uint32_t size;
	struct homa_workload workload;
	struct homa_wire_format wire;
	uint32_t response;
	bool burst;
	bool check;
	uint32_t apart;
	const char *apart_text;
	uint32_t outstanding;
	uint32_t max_outstanding;
	double rate;
	double load;
	double gbps;
	double link_bps;
	double payload_mean;
	double wire_mean;

	double warmup;
	double duration;
	double drain;
	double stay;
	double timeout;
	double connect_timeout;
	double give_up;
	double lead_us;
	double pause_us;
	double lag_limit_us;
	uint64_t start_at_ns;
	uint64_t seed;
	uint32_t host_index;
	int cpu;

	uint32_t sizes[BENCH_MAX_SIZES];
	uint32_t size_count;
	uint32_t samples;

	const char *congestion;
	uint32_t connections;
	bool coalesce;

	const char *via;
	const char *interface;
	const char *homa_config;
	uint32_t udp_port;
	uint32_t rcvbuf;
	int32_t spin_us;
};

/** bench_now() - return the CLOCK_MONOTONIC time, ns */
static inline uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * BENCH_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/** bench_ns() - convert seconds to ns */
static inline uint64_t bench_ns(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

/** bench_stop - set by SIGINT and SIGTERM; every loop looks at it */
extern volatile int bench_stop;

/**
 * bench_options() - fill the configuration from the command line
 * Prints --help, --version and complaints itself.
 * Return: 0 to go on; 1 if all is done (exit 0); -EINVAL after a complaint.
 */
int bench_options(struct bench_config *config, int argc, char **argv);

/** bench_options_free() - release what bench_options() allocated */
void bench_options_free(struct bench_config *config);

/** bench_help() - print the manual of the command line */
void bench_help(void);

/** bench_list() - print transports and workloads; returns the exit code */
int bench_list(bool json);

/** bench_complain() - one line on stderr, "homa-bench: ..." */
void bench_complain(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#endif
