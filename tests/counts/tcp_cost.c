/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a segment of 64 bytes costs in the TCP engine, its ACK included: instructions of a
 * round trip of 64 bytes each way over one connection of 256, divided by the two segments that
 * it takes. At each end a segment is decoded, found, taken and acknowledged, and the answer is
 * written, built and encoded with that ACK. The host copies nothing and fills in no
 * checksum. And what strangers cost: a forged SYN to a listener whose backlog is full,
 * with the cookie that answers it, and a segment to a closed port, with the reset or without
 * it. The program runs itself under callgrind, which counts between the marks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "callgrind.h"
#include "json.h"
#include "tas_call.h"

#define CONNECTIONS 256u
#define BYTES 64u
#define WARM_UP 4u
#define ROUNDS 16u
#define STEP_NS 20000u /* between a segment and its answer */
#define MTU 1500u
#define PORT 80
#define EXCEPTIONS 1024u
#define STRANGERS 4096u

static struct tas_engine *ends[2];
static struct tas_listener listener = {
	.port = PORT, .backlog = CONNECTIONS, .rx_shift = 16, .rx_max = 1 << 16
};
static struct tas_conn *clients[CONNECTIONS], *servers[CONNECTIONS];
static u64 now = 3600 * TAS_SEC;
static bool counting;
/* All events that were ever told: a host looks at them, so they must be read. */
static u32 heard;

static void enter(void)
{
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
}

static void leave(void)
{
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
}

static struct tas_engine *begin(u64 seed)
{
	struct tas_engine *engine =
		aligned_alloc(64, (sizeof(*engine) + 63) / 64 * 64);
	u64 seeds[6];
	u32 i;

	for (i = 0; i < 6; i++)
		seeds[i] = homa_hash_mix(seed + i);
	if (!engine)
		exit(1);
	tas_engine_init(engine, seeds, now, MTU);
	for (i = 0; i < CONNECTIONS; i++) {
		struct tas_conn *conn =
			aligned_alloc(64, (sizeof(*conn) + 63) / 64 * 64);

		if (!conn)
			exit(1);
		tas_add_spare(engine, conn);
	}
	return engine;
}

static void arrive(struct tas_engine *to, const struct tas_out *out)
{
	static u8 packet[MTU];
	struct tas_pair pair;
	struct tas_copy copy;
	u32 length = out->header_length + out->length;

	memcpy(packet, out->header, out->header_length);
	memcpy(pair.local, out->pair->remote, 16);
	memcpy(pair.remote, out->pair->local, 16);
	enter();
	tas_rx_packet(to, &pair, packet, length, out->ecn, &copy);
	leave();
}

/* What @from has to send arrives; how many segments. */
static u32 carry(u32 from)
{
	struct tas_out out;
	bool more;
	u32 n = 0;

	for (;;) {
		enter();
		more = tas_next_out(ends[from], &out);
		leave();
		if (!more)
			return n;
		n++;
		arrive(ends[!from], &out);
	}
}

static void pass(void)
{
	u32 i;

	now += STEP_NS;
	for (i = 0; i < 2; i++) {
		enter();
		tas_set_now(ends[i], now, EXCEPTIONS);
		tas_timers(ends[i], CONNECTIONS);
		leave();
	}
}

/* The application of end @at has read what came and writes as much. */
static void answer(u32 at, struct tas_conn **conns)
{
	struct tas_conn *conn;
	u32 i, events;

	for (;;) {
		enter();
		conn = tas_next_event(ends[at], &events);
		leave();
		if (!conn)
			break;
		heard |= events;
	}
	for (i = 0; i < CONNECTIONS; i++) {
		enter();
		tas_taken(ends[at], conns[i], tas_readable(conns[i]));
		tas_written(ends[at], conns[i], BYTES);
		leave();
	}
}

static void connect_all(void)
{
	struct tas_pair pair = {
		.local = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 },
		.remote = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 },
		.remote_port = PORT,
	};
	struct tas_conn *conn;
	u32 i, n = 0;

	ends[0] = begin(1);
	ends[1] = begin(2);
	tas_listen(ends[1], &listener);
	pass();
	for (i = 0; i < CONNECTIONS; i++) {
		pair.local_port = (u16)(1000 + i);
		if (tas_connect(ends[0], &pair, 16, 1 << 16, &clients[i]))
			exit(1);
	}
	while (carry(0) + carry(1))
		pass();
	while ((conn = tas_accept(ends[1], &listener)))
		servers[n++] = conn;
	if (n != CONNECTIONS)
		exit(1);
}

/* "segments fast": segments that carried bytes, and those that the fast path took. */
static int trace(void)
{
	u64 before = 0, fast;
	u32 i, segments = 0;

	connect_all();
	for (i = 0; i < WARM_UP + ROUNDS; i++) {
		if (i == WARM_UP) {
			counting = true;
			segments = 0;
			before = ends[0]->metrics.usual_segments +
				 ends[1]->metrics.usual_segments;
		}
		answer(0, clients);
		segments += carry(0);
		pass();
		answer(1, servers);
		segments += carry(1);
		pass();
	}
	counting = false;
	fast = ends[0]->metrics.usual_segments +
	       ends[1]->metrics.usual_segments - before;
	printf("%u %llu\n", segments, (unsigned long long)fast);
	return 0;
}

/* "segments": STRANGERS of them to @port, of as many forged addresses. */
static int strangers(u16 port)
{
	struct tas_segment seg = { .flags = TAS_SYN,
				   .dport = port,
				   .window = 65535,
				   .options = TAS_OPT_MSS | TAS_OPT_SACK_OK |
					      TAS_OPT_TS,
				   .mss = 1460,
				   .ts = 1 };
	struct tas_pair pair = {
		.local = { [10] = 0xff, [11] = 0xff },
		.remote = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 }
	};
	struct tas_out out = { .pair = &pair };
	struct tas_out reply;
	u32 i;

	connect_all();
	/* The first of them fill the backlog. */
	for (i = 0; i < CONNECTIONS + STRANGERS; i++) {
		now += STEP_NS;
		tas_set_now(ends[1], now, EXCEPTIONS);
		seg.sport = (u16)(1024 + i % 60000);
		seg.seq = (u32)homa_hash_mix(i);
		homa_put_be32(pair.local + 12, (u32)homa_hash_mix(i + 1));
		out.header_length = (u8)tas_encode(&seg, out.header);
		counting = i >= CONNECTIONS;
		arrive(ends[1], &out);
		enter();
		while (tas_next_out(ends[1], &reply))
			;
		leave();
	}
	counting = false;
	if (port == PORT && ends[1]->metrics.cookies_sent < STRANGERS) {
		fprintf(stderr, "tcp_cost: the backlog is not full\n");
		return 1;
	}
	printf("%u 0\n", STRANGERS);
	return 0;
}

/* Instructions of each of the segments that a run with @argument prints the number of. */
static bool cost_of(const char *argument, double *each)
{
	char line[80];
	u32 segments = 0;
	double cost;

	if (bench_callgrind(argument, NULL, "tcp_cost.c", line, sizeof(line),
			    &cost) ||
	    sscanf(line, "%u", &segments) != 1 || !segments)
		return false;
	*each = cost / segments;
	return true;
}

static int measure(const char *path, const char *profile)
{
	unsigned long long fast = 0;
	cJSON *json;
	char line[80], err[200];
	u32 segments = 0;
	double cost, syn, stray;
	int rc;

	if (bench_callgrind("--trace", profile, "tcp_cost.c", line,
			    sizeof(line), &cost) ||
	    sscanf(line, "%u %llu", &segments, &fast) != 2)
		return 1;
	/* One for each message and no other: then the fast path has done what is counted. */
	if (segments != 2 * CONNECTIONS * ROUNDS || fast != segments) {
		fprintf(stderr,
			"tcp_cost: %u segments instead of %u, %llu on the fast path\n",
			segments, 2 * CONNECTIONS * ROUNDS, fast);
		return 1;
	}
	printf("%.1f instructions per segment of %u bytes and its ACK\n",
	       cost / segments, BYTES);
	if (!cost_of("--syns", &syn) || !cost_of("--strays", &stray))
		return 1;
	printf("%.1f per forged SYN and its cookie, %.1f per segment to a closed port\n",
	       syn, stray);
	if (!path)
		return 0;
	json = cJSON_CreateObject();
	homa_json_round(json, "instructions_per_segment", cost / segments, 1);
	homa_json_round(json, "instructions_per_syn", syn, 1);
	homa_json_round(json, "instructions_per_stray", stray, 1);
	rc = homa_json_write(json, path, err, sizeof(err));
	if (rc)
		fprintf(stderr, "tcp_cost: %s\n", err);
	cJSON_Delete(json);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *json = NULL, *profile = NULL;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--trace"))
			return trace();
		if (!strcmp(argv[i], "--syns"))
			return strangers(PORT);
		if (!strcmp(argv[i], "--strays"))
			return strangers(PORT + 1);
		if (!strcmp(argv[i], "--json") && i + 1 < argc) {
			json = argv[++i];
		} else if (!strcmp(argv[i], "--profile") && i + 1 < argc) {
			profile = argv[++i];
		} else {
			fprintf(stderr,
				"usage: tcp_cost [--json FILE] [--profile FILE]\n");
			return 2;
		}
	}
	return measure(json, profile);
}
