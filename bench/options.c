/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The command line. Whatever cannot be meant is refused here, in one line that
 * says what is wrong and how to mend it, before anything is opened.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "bench_options.h"
#include "bench_transport.h"

void bench_complain(const char *format, ...)
{
	va_list args;

	fputs("homa-bench: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* Reads a number from @min to @max, or complains. */
static int number(const char *option, const char *text, double min, double max,
		  double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value) || *value < min ||
	    *value > max) {
		bench_complain("--%s: '%s' is not a number from %.10g to %.10g",
			       option, text, min, max);
		return -EINVAL;
	}
	return 0;
}

static int whole(const char *option, const char *text, double min, double max,
		 uint32_t *value)
{
	double v;

	if (strspn(text, "0123456789") != strlen(text) || !*text) {
		bench_complain("--%s: '%s' is not a whole number", option, text);
		return -EINVAL;
	}
	if (number(option, text, min, max, &v))
		return -EINVAL;
	*value = (uint32_t)v;
	return 0;
}

/* Reads a rate such as "200mbit", "25gbit" or "10Gbps" in bits per second. */
static int bit_rate(const char *option, const char *text, double *value)
{
	static const struct {
		const char *unit;
		double factor;
	} units[] = {
		{ "kbit", 1e3 }, { "mbit", 1e6 }, { "gbit", 1e9 },
		{ "kbps", 1e3 }, { "mbps", 1e6 }, { "gbps", 1e9 },
		{ "bit", 1 },	 { "bps", 1 },
	};
	char *end;
	size_t i;

	*value = strtod(text, &end);
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (end != text && strcasecmp(end, units[i].unit) == 0) {
			*value *= units[i].factor;
			if (*value >= 1e3 && *value <= 1e13)
				return 0;
		}
	}
	bench_complain("--%s: '%s' is not a rate in bits per second such as 200mbit or 25gbit",
		       option, text);
	return -EINVAL;
}

static int start_at(const char *text, uint64_t *ns)
{
	struct timespec real;
	double value, offset = 0;
	const char *digits = text;

	if (strncmp(text, "mono:", 5) == 0) {
		digits += 5;
	} else {
		clock_gettime(CLOCK_REALTIME, &real);
		offset = (double)bench_now() * 1e-9 - (double)real.tv_sec -
			 (double)real.tv_nsec * 1e-9;
	}
	if (number("start-at", digits, 0, 1e12, &value))
		return -EINVAL;
	value += offset;
	if (value < 0) {
		bench_complain("--start-at: %s is before this machine was started: give Unix time in seconds, or mono:SECONDS",
			       text);
		return -EINVAL;
	}
	*ns = (uint64_t)(value * 1e9);
	return 0;
}

static int size_list(struct bench_config *config, const char *text)
{
	char copy[1024], *p, *save = NULL;
	uint32_t size;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy)) {
		bench_complain("--sizes: the list is too long");
		return -EINVAL;
	}
	config->size_count = 0;
	for (p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
		if (whole("sizes", p, 1, BENCH_MAX_MESSAGE, &size))
			return -EINVAL;
		if (config->size_count &&
		    size <= config->sizes[config->size_count - 1]) {
			bench_complain("--sizes: sizes must increase (%u after %u)",
				       size,
				       config->sizes[config->size_count - 1]);
			return -EINVAL;
		}
		if (config->size_count == BENCH_MAX_SIZES) {
			bench_complain("--sizes: more than %d sizes",
				       BENCH_MAX_SIZES);
			return -EINVAL;
		}
		config->sizes[config->size_count++] = size;
	}
	return 0;
}

static int wait_mode(struct bench_config *config, const char *text)
{
	static const char *const names[] = { "epoll", "block", "spin", "yield" };
	int i;

	for (i = 0; i < 4; i++) {
		if (strcmp(text, names[i]) == 0) {
			config->wait = (enum bench_wait)i;
			return 0;
		}
	}
	bench_complain("--wait: '%s' is not one of epoll, block, spin, yield",
		       text);
	return -EINVAL;
}

static int add_peer(struct bench_config *config, const char *text)
{
	if (config->peer_count == BENCH_MAX_PEERS) {
		bench_complain("--peer: more than %d peers", BENCH_MAX_PEERS);
		return -EINVAL;
	}
	config->peers[config->peer_count++] = text;
	return 0;
}

enum {
	OPT_TRANSPORT = 256,
	OPT_BIND,
	OPT_PEER,
	OPT_JSON,
	OPT_PIN,
	OPT_WAIT,
	OPT_SPIN,
	OPT_DURATION,
	OPT_WARMUP,
	OPT_START_AT,
	OPT_SEED,
	OPT_HOST,
	OPT_TIMEOUT,
	OPT_DRAIN,
	OPT_STAY,
	OPT_CONNECT_TIMEOUT,
	OPT_MAX_OUTSTANDING,
	OPT_QUIET,
	OPT_ANY_SOURCE,
	OPT_HELP,
	OPT_VERSION,
	OPT_WORKLOAD,
	OPT_SIZE,
	OPT_OUTSTANDING,
	OPT_LOAD,
	OPT_LINK,
	OPT_GBPS,
	OPT_RATE,
	OPT_RESPONSE,
	OPT_BURST,
	OPT_APART,
	OPT_CHECK,
	OPT_MTU,
	OPT_MODE,
	OPT_DENOMINATORS,
	OPT_UNLOADED,
	OPT_SIZES,
	OPT_SAMPLES,
	OPT_NO_HISTOGRAMS,
	OPT_LAG_LIMIT,
	OPT_CC,
	OPT_CONNECTIONS,
	OPT_COALESCE,
	OPT_VIA,
	OPT_INTERFACE,
	OPT_HOMA_CONFIG,
	OPT_UDP_PORT,
	OPT_RCVBUF,
	OPT_SPIN_US,
	OPT_LABEL,
	OPT_GIVE_UP,
	OPT_LEAD,
	OPT_PAUSE,
};

static const struct option long_options[] = {
	{ "transport", required_argument, NULL, OPT_TRANSPORT },
	{ "bind", required_argument, NULL, OPT_BIND },
	{ "peer", required_argument, NULL, OPT_PEER },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "pin", required_argument, NULL, OPT_PIN },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ "spin", no_argument, NULL, OPT_SPIN },
	{ "duration", required_argument, NULL, OPT_DURATION },
	{ "warmup", required_argument, NULL, OPT_WARMUP },
	{ "start-at", required_argument, NULL, OPT_START_AT },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "host-index", required_argument, NULL, OPT_HOST },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "drain", required_argument, NULL, OPT_DRAIN },
	{ "stay", required_argument, NULL, OPT_STAY },
	{ "connect-timeout", required_argument, NULL, OPT_CONNECT_TIMEOUT },
	{ "max-outstanding", required_argument, NULL, OPT_MAX_OUTSTANDING },
	{ "quiet", no_argument, NULL, OPT_QUIET },
	{ "any-source", no_argument, NULL, OPT_ANY_SOURCE },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "workload", required_argument, NULL, OPT_WORKLOAD },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "outstanding", required_argument, NULL, OPT_OUTSTANDING },
	{ "load", required_argument, NULL, OPT_LOAD },
	{ "link", required_argument, NULL, OPT_LINK },
	{ "gbps", required_argument, NULL, OPT_GBPS },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "response-size", required_argument, NULL, OPT_RESPONSE },
	{ "burst", no_argument, NULL, OPT_BURST },
	{ "apart", required_argument, NULL, OPT_APART },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ "mtu", required_argument, NULL, OPT_MTU },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "denominators", required_argument, NULL, OPT_DENOMINATORS },
	{ "unloaded", no_argument, NULL, OPT_UNLOADED },
	{ "sizes", required_argument, NULL, OPT_SIZES },
	{ "samples", required_argument, NULL, OPT_SAMPLES },
	{ "no-histograms", no_argument, NULL, OPT_NO_HISTOGRAMS },
	{ "lag-limit", required_argument, NULL, OPT_LAG_LIMIT },
	{ "lead", required_argument, NULL, OPT_LEAD },
	{ "pause", required_argument, NULL, OPT_PAUSE },
	{ "cc", required_argument, NULL, OPT_CC },
	{ "connections", required_argument, NULL, OPT_CONNECTIONS },
	{ "coalesce", no_argument, NULL, OPT_COALESCE },
	{ "via", required_argument, NULL, OPT_VIA },
	{ "interface", required_argument, NULL, OPT_INTERFACE },
	{ "homa-config", required_argument, NULL, OPT_HOMA_CONFIG },
	{ "udp-port", required_argument, NULL, OPT_UDP_PORT },
	{ "rcvbuf", required_argument, NULL, OPT_RCVBUF },
	{ "spin-us", required_argument, NULL, OPT_SPIN_US },
	{ "label", required_argument, NULL, OPT_LABEL },
	{ "give-up", required_argument, NULL, OPT_GIVE_UP },
	{ NULL, 0, NULL, 0 },
};

/* Takes options that say what is sent. Returns 0, -EINVAL, or 1 if it is not one of
 * them. */
static int load_option(struct bench_config *config, int option, const char *arg)
{
	uint32_t n;

	switch (option) {
	case OPT_WORKLOAD:
		config->workload_text = arg;
		return 0;
	case OPT_SIZE:
		return whole("size", arg, 1, BENCH_MAX_MESSAGE, &config->size);
	case OPT_OUTSTANDING:
		return whole("outstanding", arg, 1, 100000, &config->outstanding);
	case OPT_MAX_OUTSTANDING:
		return whole("max-outstanding", arg, 1, BENCH_SLOTS_MAX / 2,
			     &config->max_outstanding);
	case OPT_LOAD:
		return number("load", arg, 1e-6, 10, &config->load);
	case OPT_LINK:
		return bit_rate("link", arg, &config->link_bps);
	case OPT_GBPS:
		return number("gbps", arg, 1e-6, 1e4, &config->gbps);
	case OPT_RATE:
		return number("rate", arg, 1e-3, 1e8, &config->rate);
	case OPT_RESPONSE:
		return whole("response-size", arg, 1, BENCH_MAX_MESSAGE,
			     &config->response);
	case OPT_BURST:
		config->burst = true;
		return 0;
	case OPT_APART:
		config->apart_text = arg;
		return 0;
	case OPT_CHECK:
		config->check = true;
		return 0;
	case OPT_MTU:
		if (whole("mtu", arg, 576, 65535, &n))
			return -EINVAL;
		config->wire.mtu = n;
		return 0;
	case OPT_MODE:
		config->mode = arg;
		return 0;
	case OPT_DENOMINATORS:
		config->denominators = arg;
		return 0;
	case OPT_UNLOADED:
		config->loop = BENCH_UNLOADED;
		return 0;
	case OPT_SIZES:
		config->loop = BENCH_UNLOADED;
		return size_list(config, arg);
	case OPT_SAMPLES:
		return whole("samples", arg, 1, 1000000, &config->samples);
	default:
		return 1;
	}
}

/* Takes options that say when something happens. */
static int time_option(struct bench_config *config, int option, const char *arg)
{
	double value;

	switch (option) {
	case OPT_DURATION:
		return number("duration", arg, 0.001, 1e6, &config->duration);
	case OPT_WARMUP:
		return number("warmup", arg, 0, 1e6, &config->warmup);
	case OPT_START_AT:
		return start_at(arg, &config->start_at_ns);
	case OPT_TIMEOUT:
		return number("timeout", arg, 0.001, 1e4, &config->timeout);
	case OPT_DRAIN:
		return number("drain", arg, 0, 1e4, &config->drain);
	case OPT_STAY:
		return number("stay", arg, 0, 1e4, &config->stay);
	case OPT_CONNECT_TIMEOUT:
		return number("connect-timeout", arg, 0.01, 1e4,
			      &config->connect_timeout);
	case OPT_GIVE_UP:
		return number("give-up", arg, 0.1, 1e4, &config->give_up);
	case OPT_LEAD:
		return number("lead", arg, 0, 1e6, &config->lead_us);
	case OPT_PAUSE:
		return number("pause", arg, 0, 1e7, &config->pause_us);
	case OPT_LAG_LIMIT:
		return number("lag-limit", arg, 0, 1e9, &config->lag_limit_us);
	case OPT_SEED:
		if (number("seed", arg, 0, 9007199254740992.0, &value))
			return -EINVAL;
		config->seed = (uint64_t)value;
		return 0;
	case OPT_HOST:
		return whole("host-index", arg, 0, 1000000, &config->host_index);
	default:
		return 1;
	}
}

/* Takes options that say how messages are carried. */
static int transport_option(struct bench_config *config, int option,
			    const char *arg)
{
	double value;
	uint32_t n;

	switch (option) {
	case OPT_TRANSPORT:
		config->transport = arg;
		return 0;
	case OPT_BIND:
		config->bind = arg;
		return 0;
	case OPT_PEER:
		return add_peer(config, arg);
	case OPT_PIN:
		if (whole("pin", arg, 0, 4095, &n))
			return -EINVAL;
		config->cpu = (int)n;
		return 0;
	case OPT_WAIT:
		return wait_mode(config, arg);
	case OPT_SPIN:
		config->wait = BENCH_WAIT_SPIN;
		return 0;
	case OPT_CC:
		config->congestion = arg;
		return 0;
	case OPT_CONNECTIONS:
		return whole("connections", arg, 1, 10000, &config->connections);
	case OPT_COALESCE:
		config->coalesce = true;
		return 0;
	case OPT_VIA:
		config->via = arg;
		return 0;
	case OPT_INTERFACE:
		config->interface = arg;
		return 0;
	case OPT_HOMA_CONFIG:
		config->homa_config = arg;
		return 0;
	case OPT_UDP_PORT:
		return whole("udp-port", arg, 1, 65535, &config->udp_port);
	case OPT_RCVBUF:
		return whole("rcvbuf", arg, 65536, 4294967295.0, &config->rcvbuf);
	case OPT_SPIN_US:
		if (number("spin-us", arg, -1, 1e6, &value))
			return -EINVAL;
		config->spin_us = (int32_t)value;
		return 0;
	default:
		return 1;
	}
}

/* Takes the remaining options. */
static int other_option(struct bench_config *config, int option, const char *arg)
{
	switch (option) {
	case OPT_JSON:
		config->json = arg;
		return 0;
	case OPT_LABEL:
		config->label = arg;
		return 0;
	case OPT_QUIET:
		config->quiet = true;
		return 0;
	case OPT_ANY_SOURCE:
		config->any_source = true;
		return 0;
	case OPT_NO_HISTOGRAMS:
		config->histograms = false;
		return 0;
	case OPT_HELP:
		bench_help();
		return 2;
	case OPT_VERSION:
		puts("homa-bench " BENCH_VERSION);
		return 2;
	default:
		return 1;
	}
}

static int unknown(int argc, char **argv, int option)
{
	const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";

	if (option == ':')
		bench_complain("option '%s' needs a value; see homa-bench --help",
			       word);
	else
		bench_complain("unknown option '%s'; homa-bench --help lists them all",
			       word);
	return -EINVAL;
}

static int role(struct bench_config *config, const char *text)
{
	config->role_name = text;
	if (strcmp(text, "server") == 0)
		config->role = BENCH_SERVER;
	else if (strcmp(text, "client") == 0)
		config->role = BENCH_CLIENT;
	else if (strcmp(text, "node") == 0)
		config->role = BENCH_NODE;
	else {
		bench_complain("unknown command '%s': use server, client, node or list; see homa-bench --help",
			       text);
		return -EINVAL;
	}
	return 0;
}

static void defaults(struct bench_config *config)
{
	memset(config, 0, sizeof(*config));
	config->transport = bench_transports[0]->name;
	config->histograms = true;
	config->wire = HOMA_WIRE_V4(1500);
	config->max_outstanding = 20000;
	config->apart = BENCH_MAX_PEERS;
	config->drain = 5;
	config->stay = 0.5;
	config->timeout = 10;
	config->connect_timeout = 5;
	config->give_up = 5;
	config->lead_us = 60;
	config->seed = 1;
	config->cpu = -1;
	config->samples = 100;
}

int bench_options(struct bench_config *config, int argc, char **argv)
{
	int option, ret;

	defaults(config);
	opterr = 0;
	if (argc < 2) {
		bench_complain(
			"what shall I do? homa-bench server | client | node | list; --help tells more");
		return -EINVAL;
	}
	if (argv[1][0] != '-') {
		ret = role(config, argv[1]);
		if (ret)
			return ret;
		argc--;
		argv++;
	}
	while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
		if (option == '?' || option == ':')
			return unknown(argc, argv, option);
		ret = load_option(config, option, optarg);
		if (ret == 1)
			ret = time_option(config, option, optarg);
		if (ret == 1)
			ret = transport_option(config, option, optarg);
		if (ret == 1)
			ret = other_option(config, option, optarg);
		if (ret == 2)
			return 1;
		if (ret)
			return ret;
	}
	if (optind < argc) {
		bench_complain("unexpected argument '%s'; see homa-bench --help",
			       argv[optind]);
		return -EINVAL;
	}
	if (!config->role) {
		bench_complain(
			"the command comes first: homa-bench server | client | node | list");
		return -EINVAL;
	}
	return bench_options_check(config);
}

void bench_options_free(struct bench_config *config)
{
	homa_workload_free(&config->workload);
}
