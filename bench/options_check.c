/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the options mean together: the workload, the rate that gives the wanted
 * load, the list of sizes, and whether the transport can carry them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_options.h"
#include "bench_transport.h"
#include "unix.h"

static int check_transport(struct bench_config *config)
{
	char names[256] = "";
	size_t i;

	if (bench_transport_find(config->transport))
		return 0;
	for (i = 0; bench_transports[i]; i++) {
		strcat(names, i ? ", " : "");
		strcat(names, bench_transports[i]->name);
	}
	bench_complain("--transport: '%s' is not one of %s", config->transport,
		       names);
	return -EINVAL;
}

/* Sets what a --mode stands for, where it was not given otherwise. */
static int apply_mode(struct bench_config *config)
{
	static const struct {
		const char *name;
		uint32_t size, response, outstanding;
	} modes[] = {
		{ "rtt", 100, 0, 1 },
		{ "rate", 100, 0, 64 },
		{ "goodput", 500000, 100, 8 },
	};
	size_t i;

	if (!config->mode)
		return 0;
	for (i = 0; i < 3; i++) {
		if (strcmp(config->mode, modes[i].name))
			continue;
		if (!config->size && !config->workload_text)
			config->size = modes[i].size;
		if (!config->response)
			config->response = modes[i].response;
		if (!config->outstanding)
			config->outstanding = modes[i].outstanding;
		return 0;
	}
	bench_complain("--mode: '%s' is not one of rtt, rate, goodput",
		       config->mode);
	return -EINVAL;
}

static int parse_workload(struct bench_config *config)
{
	char err[512], fixed[32];
	const char *text = config->workload_text;

	if (config->size && text) {
		bench_complain("--size and --workload exclude each other: --workload fixed:%u is the same as --size %u",
			       config->size, config->size);
		return -EINVAL;
	}
	if (config->size) {
		snprintf(fixed, sizeof(fixed), "fixed:%u", config->size);
		text = fixed;
	}
	if (!text && config->loop == BENCH_UNLOADED)
		text = "w4";
	if (!text) {
		bench_complain(
			"what shall be sent? --workload w1..w5 or FILE.csv, --size BYTES, or --mode rtt|rate|goodput");
		return -EINVAL;
	}
	if (homa_workload_parse(&config->workload, text, BENCH_MAX_MESSAGE, err,
				sizeof(err))) {
		bench_complain("--workload: %s", err);
		return -EINVAL;
	}
	return 0;
}

/* Does every message fit the transport? */
static int check_sizes(const struct bench_config *config)
{
	uint32_t limit =
		bench_transport_find(config->transport)->max_message(config);
	uint32_t largest = homa_workload_size(&config->workload, 1);

	if (config->loop == BENCH_UNLOADED)
		largest = config->sizes[config->size_count - 1];
	if (largest <= limit && config->response <= limit)
		return 0;
	bench_complain("%s carries messages of at most %u bytes at MTU %u; this run has %u: choose another --workload, --size or --transport",
		       config->transport, limit, config->wire.mtu,
		       largest > limit ? largest : config->response);
	return -EINVAL;
}

/* Computes the requests per second for the wanted load. */
static int compute_rate(struct bench_config *config)
{
	int given = (config->load > 0) + (config->gbps > 0) + (config->rate > 0);
	double response =
		config->response ? config->response : config->payload_mean;
	double response_wire = config->response ?
				       (double)homa_wire_bytes(config->response,
							       &config->wire) :
				       config->wire_mean;
	double per_rpc;

	if (given > 1) {
		bench_complain("--load, --gbps and --rate exclude each other");
		return -EINVAL;
	}
	if (!given)
		return 0;
	if (config->loop == BENCH_UNLOADED) {
		bench_complain(
			"--unloaded sends one RPC at a time: leave out --load, --gbps and --rate");
		return -EINVAL;
	}
	if (config->load > 0 && config->link_bps <= 0) {
		bench_complain(
			"--load is a fraction of the link's rate: say which with --link, e.g. --link 200mbit");
		return -EINVAL;
	}
	config->loop = BENCH_OPEN;
	if (config->load > 0) {
		/* A node's link carries its requests and, as a server, responses. */
		per_rpc = config->role == BENCH_NODE ?
				  config->wire_mean + response_wire :
				  fmax(config->wire_mean, response_wire);
		config->rate = config->load * config->link_bps / 8 / per_rpc;
	} else if (config->gbps > 0) {
		per_rpc = config->role == BENCH_NODE ?
				  config->payload_mean + response :
				  fmax(config->payload_mean, response);
		config->rate = config->gbps * 1e9 / 8 / per_rpc;
	}
	return 0;
}

static int add_size(struct bench_config *config, double size)
{
	uint32_t n = config->size_count;

	if (n && size < config->sizes[n - 1] * 1.02 + 1)
		return 0;
	if (n == BENCH_MAX_SIZES)
		return 0;
	config->sizes[config->size_count++] = (uint32_t)size;
	return 0;
}

/*
 * Chooses the sizes of the unloaded measurement: the workload's quantiles, and between
 * those that are far apart as many sizes as keep neighbours within a factor of two.
 */
static void choose_sizes(struct bench_config *config)
{
	double limit =
		bench_transport_find(config->transport)->max_message(config);
	int i, k, steps;
	double a, b;

	for (i = 0; i <= 20; i++) {
		b = fmin(homa_workload_size(&config->workload, i / 20.0), limit);
		a = config->size_count ? config->sizes[config->size_count - 1] :
					 b;
		steps = (int)ceil(log2(b / a) - 1e-9);
		for (k = 1; k < steps; k++)
			add_size(config, a * pow(b / a, (double)k / steps));
		add_size(config, b);
	}
}

/* Do --burst, --apart and --check mean something here? */
static int check_extras(struct bench_config *config)
{
	uint32_t i;

	if (config->burst && config->loop != BENCH_OPEN) {
		bench_complain(
			"--burst sends to all peers at once, again and again: say how many requests a second with --rate, --load or --gbps");
		return -EINVAL;
	}
	if (config->check && strcmp(config->transport, "homa")) {
		bench_complain("--check is for --transport homa");
		return -EINVAL;
	}
	if (!config->apart_text)
		return 0;
	for (i = 0; i < config->peer_count; i++)
		if (strcmp(config->peers[i], config->apart_text) == 0)
			config->apart = i;
	if (config->apart != BENCH_MAX_PEERS)
		return 0;
	bench_complain("--apart: '%s' is none of the peers", config->apart_text);
	return -EINVAL;
}

static int check_client(struct bench_config *config)
{
	int ret;

	if (!config->peer_count) {
		bench_complain("to whom? give at least one --peer ADDRESS:PORT");
		return -EINVAL;
	}
	if (config->peers[0][0] == '[')
		config->wire = HOMA_WIRE_V6(config->wire.mtu);
	ret = apply_mode(config);
	if (!ret)
		ret = parse_workload(config);
	if (ret)
		return ret;
	config->payload_mean = homa_workload_mean(&config->workload);
	config->wire_mean =
		homa_workload_wire_mean(&config->workload, &config->wire);
	if (config->loop == BENCH_UNLOADED && !config->size_count)
		choose_sizes(config);
	ret = compute_rate(config);
	if (!ret)
		ret = check_extras(config);
	if (!ret)
		ret = check_sizes(config);
	if (ret)
		return ret;
	if (config->outstanding && config->loop == BENCH_OPEN) {
		bench_complain(
			"--outstanding is for a closed loop; with --load, --gbps or --rate use --max-outstanding");
		return -EINVAL;
	}
	if (config->wait == BENCH_WAIT_BLOCK && config->loop == BENCH_OPEN) {
		bench_complain(
			"--wait block sleeps until a response comes and would miss arrivals: with --load, --gbps or --rate use epoll, yield or spin");
		return -EINVAL;
	}
	if (!config->outstanding)
		config->outstanding = 1;
	if (config->loop == BENCH_OPEN)
		config->outstanding = 0;
	return 0;
}

int bench_options_check(struct bench_config *config)
{
	int ret = check_transport(config);

	if (ret)
		return ret;
	if (!config->duration)
		config->duration = config->role == BENCH_SERVER ? 0 : 5;
	if (!config->connections)
		config->connections =
			strcmp(config->transport, "tcp-pool") == 0 ? 16 : 1;
	if ((config->role & BENCH_SERVER) && !config->bind)
		config->bind = bench_is_unix(config) ? "@homa-bench" : ":4000";
	if (config->coalesce && !strcmp(config->transport, "unix-packet")) {
		bench_complain(
			"--coalesce joins messages of a stream; unix-packet has one packet for each, use --transport unix");
		return -EINVAL;
	}
	if (config->role & BENCH_CLIENT)
		return check_client(config);
	if (config->peer_count) {
		bench_complain(
			"a server has no --peer; 'homa-bench node' is both client and server");
		return -EINVAL;
	}
	/* A workload of one size, because other parts need some workload. */
	config->size = 1;
	config->workload_text = NULL;
	return parse_workload(config);
}
