/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homa-flows: TCP connections under load, for the rows of `./homa bench tas`, and the
 * streams beside RPCs of `./homa lab run coexist`. A plain
 * program of sockets and epoll, one thread at each end, that knows nothing of homad: what
 * runs below it is decided by who starts it (homa-run or not). Requests and responses have
 * no framing but their length, so nothing but TCP is measured.
 */
#ifndef HOMA_FLOW_LOAD_H
#define HOMA_FLOW_LOAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "hist.h"

/** The longest message, bytes. */
#define FLOWS_MAX_SIZE 65536u
/** The most requests that wait for their responses on one connection. */
#define FLOWS_MAX_DEPTH 1024u
/** The shortest tuple of a pipeline, bytes. */
#define FLOWS_MIN_TUPLE 16u
/** The most parts of a window. */
#define FLOWS_MAX_PARTS 1000u
#define FLOWS_NS_PER_S 1000000000ull

/** What the connections carry. */
enum flows_mode {
	FLOWS_ECHO,    /* requests, each answered by itself */
	FLOWS_KV,      /* requests to a key-value store */
	FLOWS_SEND,    /* the client sends without end, the server reads */
	FLOWS_RECEIVE, /* the server sends without end, the client reads */
};

/**
 * struct flows_config - what a run is told to do; constant after main() has read it
 * @mode: what the connections carry; both ends must be told the same.
 * @addr: the server's address, without the port.
 * @port: first port of the server.
 * @ports: number of ports at which the server listens, from @port on.
 * @connections: number of connections that the client keeps open.
 * @depth: number of requests in flight on each connection.
 * @size: bytes of a request and of its response, or of one call of send().
 * @per_connection: number of requests after which a connection is closed and another is
 *	opened; 0: never.
 * @rate: open loop: requests per second at random times; 0: closed loop.
 * @pace: bits of data per second that the kernel lets a connection send, at either end; 0:
 *	any.
 * @work: processor cycles that the server works for each message.
 * @keys: number of keys in the store.
 * @one_key: all requests are for the first key.
 * @warmup_ns: time before the measured window.
 * @duration_ns: length of the measured window.
 * @measure_at_ns: time at which the window opens, by flows_now(), unless the warm-up ends
 *	later.
 * @timeout_ns: time after which a connection that cannot be opened ends the run.
 * @seed: number from which the random numbers follow.
 * @first: this is the first stage of a pipeline.
 * @next: address of the next stage, without the port.
 * @next_port: its port.
 * @batch_ns: time that tuples may wait in a stage for others before they are sent on.
 * @part_ns: length of the parts of the window whose latencies are also told one by one;
 *	0: none are.
 * @json: file for the result, or NULL.
 */
struct flows_config {
	enum flows_mode mode;
	struct sockaddr_storage addr;
	uint16_t port;
	uint32_t ports;
	uint32_t connections;
	uint32_t depth;
	uint32_t size;
	uint32_t per_connection;
	double rate;
	double pace;
	uint32_t work;
	uint32_t keys;
	bool one_key;
	uint64_t warmup_ns;
	uint64_t duration_ns;
	uint64_t measure_at_ns;
	uint64_t timeout_ns;
	uint64_t seed;
	bool first;
	struct sockaddr_storage next;
	uint16_t next_port;
	uint64_t batch_ns;
	uint64_t part_ns;
	const char *json;
};

/**
 * struct flows_result - what the client has measured in the window
 * @latency: times from when a request was due to the last byte of its response, ns.
 * @interval: bytes that each connection received in each 100 ms, FLOWS_RECEIVE.
 * @parts: latencies of the requests that were answered in each part of the window, an
 *	array.
 * @nparts: number of those parts.
 * @requests: number of requests that were answered in the window, or of tuples.
 * @all: number of requests that were answered, also before the window.
 * @opened: number of connections that were established since the beginning.
 * @failed: number of connections that ended with an error.
 * @wrong: number of responses with wrong bytes.
 * @bytes: bytes that were received, or with FLOWS_SEND sent, in the window.
 * @jain: index of fairness of the connections' bytes, 0 to 1.
 * @opened_ns: time at which the window opened, by flows_now().
 * @window_ns: length that the window had.
 */
struct flows_result {
	struct homa_hist latency;
	struct homa_hist interval;
	struct homa_hist *parts;
	uint32_t nparts;
	uint64_t requests;
	uint64_t all;
	uint64_t opened;
	uint64_t failed;
	uint64_t wrong;
	uint64_t bytes;
	double jain;
	uint64_t opened_ns;
	uint64_t window_ns;
};

/** flows_serve() - serve until a signal. Return: the exit code */
int flows_serve(const struct flows_config *config);

/** flows_load() - run the client. Return: 0 or a negative errno, which it has explained */
int flows_load(const struct flows_config *config, struct flows_result *result);

/** flows_parts_init() - make the parts of the window, all empty. Return: 0 or -ENOMEM */
int flows_parts_init(const struct flows_config *config,
		     struct flows_result *result);

/** flows_parts_free() - release them */
void flows_parts_free(struct flows_result *result);

/**
 * flows_parts_record() - count a request that was answered @since_ns after the window
 * opened, with this @latency_ns
 */
void flows_parts_record(const struct flows_config *config,
			struct flows_result *result, uint64_t since_ns,
			uint64_t latency_ns);

/**
 * flows_stage() - be a stage of a pipeline: the first, which makes tuples; one between; or, with
 * a @result, the last, which measures. Return: 0 or a negative errno, which it has explained
 */
int flows_stage(const struct flows_config *config, struct flows_result *result);

/** flows_report() - write the result as JSON and as one line. Return: 0 or a negative errno */
int flows_report(const struct flows_config *config,
		 const struct flows_result *result);

/** flows_now() - return the time of the monotonic clock, ns */
uint64_t flows_now(void);

/** flows_pace() - let the socket @fd send at most config->pace. Return: 0 or a negative errno */
int flows_pace(const struct flows_config *config, int fd);

/** flows_work() - use the processor for @cycles cycles */
void flows_work(uint64_t cycles);

#endif
