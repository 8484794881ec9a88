/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* homa-flows: the command line. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "flow_load.h"

static const char usage[] =
	"usage: homa-flows server|client ADDRESS PORT [options]\n"
	"       homa-flows source|stage|sink ADDRESS PORT [--next ADDRESS,PORT] [options]\n"
	"Connections of TCP under load, for ./homa bench tas and ./homa lab run coexist.\n"
	"  --mode echo|kv|send|receive   what they carry (echo)\n"
	"  --ports N            the server listens at N ports (1)\n"
	"  --connections N      the client keeps N open (1)\n"
	"  --depth N            requests in flight on each (1)\n"
	"  --size BYTES         of a request and its response, or of one send() (64)\n"
	"  --per-connection N   open another one after N requests (0: never)\n"
	"  --rate N             N requests per second at random times (0: the next when one ends)\n"
	"  --pace BITS          a connection sends at most so many bits of data per second (0: any)\n"
	"  --work CYCLES        the server works so long for each message (0)\n"
	"  --keys N             keys of the store (100000);  --one-key: ask for one only\n"
	"  --warmup S --duration S --timeout S   seconds (0.3, 1, 30)\n"
	"  --measure-at S       the window opens at S of the monotonic clock, or after the\n"
	"                       warm-up if that is later (0: after the warm-up); with --rate\n"
	"                       requests begin a warm-up before\n"
	"  --parts S            echo, kv: tell the latencies of each S seconds, too, of 1,000 parts\n"
	"                       at most (0: not)\n"
	"  --seed N             of the random numbers (1)\n"
	"A pipeline: a source makes tuples of --size bytes (16 and more) as fast as they are\n"
	"taken, or --rate N a second, for the stage at ADDRESS PORT; a stage and the sink wait\n"
	"there for the one before them, and the sink measures. All run on one machine.\n"
	"  --next ADDRESS,PORT  where the stage after this one is\n"
	"  --batch-us N         tuples may wait so long for others before they are sent (0)\n"
	"  --json FILE          the result as JSON (-: standard output)\n";

static const struct option options[] = {
	{ "mode", 1, NULL, 'm' },	 { "ports", 1, NULL, 'p' },
	{ "connections", 1, NULL, 'c' }, { "depth", 1, NULL, 'd' },
	{ "size", 1, NULL, 's' },	 { "per-connection", 1, NULL, 'n' },
	{ "rate", 1, NULL, 'r' },	 { "pace", 1, NULL, 'P' },
	{ "work", 1, NULL, 'w' },	 { "keys", 1, NULL, 'k' },
	{ "one-key", 0, NULL, 'o' },	 { "warmup", 1, NULL, 'u' },
	{ "duration", 1, NULL, 'D' },	 { "timeout", 1, NULL, 't' },
	{ "measure-at", 1, NULL, 'a' },	 { "parts", 1, NULL, 'q' },
	{ "seed", 1, NULL, 'e' },	 { "next", 1, NULL, 'x' },
	{ "batch-us", 1, NULL, 'b' },	 { "json", 1, NULL, 'j' },
	{ "help", 0, NULL, 'h' },	 { NULL, 0, NULL, 0 },
};

uint64_t flows_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * FLOWS_NS_PER_S + (uint64_t)now.tv_nsec;
}

void flows_work(uint64_t cycles)
{
#if defined(__x86_64__) || defined(__i386__)
	uint64_t start = __builtin_ia32_rdtsc();

	while (__builtin_ia32_rdtsc() - start < cycles)
		;
#else
	/* Without a counter of known rate, a step of the loop takes about a cycle. */
	for (volatile uint64_t i = 0; i < cycles; i++)
		;
#endif
}

/* Returns @text as a number from @min to @max, or -1 after a complaint. */
static double number(const char *what, const char *text, double min, double max)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || end == text || !(value >= min && value <= max)) {
		fprintf(stderr,
			"homa-flows: --%s %s: a number from %g to %g is needed\n",
			what, text, min, max);
		return -1;
	}
	return value;
}

static bool mode(struct flows_config *config, const char *text)
{
	static const char *const names[] = { "echo", "kv", "send", "receive" };

	for (unsigned int i = 0; i < 4; i++) {
		if (!strcmp(text, names[i])) {
			config->mode = (enum flows_mode)i;
			return true;
		}
	}
	fprintf(stderr,
		"homa-flows: --mode %s: use echo, kv, send or receive\n", text);
	return false;
}

static bool seconds(uint64_t *ns, const char *what, const char *text)
{
	double value = number(what, text, 0, 1e6);

	*ns = (uint64_t)(value * 1e9);
	return value >= 0;
}

/* Reads a time of the monotonic clock in seconds. The clock counts from when the machine
 * was started, so it may be decades. */
static bool instant(uint64_t *ns, const char *what, const char *text)
{
	double value = number(what, text, 0, 1e9);

	*ns = (uint64_t)(value * 1e9);
	return value >= 0;
}

static bool count(uint32_t *out, const char *what, const char *text, double min,
		  double max)
{
	double value = number(what, text, min, max);

	*out = (uint32_t)value;
	return value >= 0;
}

static bool address(struct sockaddr_storage *addr, uint16_t *number_out,
		    const char *text, const char *port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;
	double value = number("port", port, 1, 65535);

	if (value < 0)
		return false;
	*number_out = (uint16_t)value;
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		addr->ss_family = AF_INET;
	} else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
		addr->ss_family = AF_INET6;
	} else {
		fprintf(stderr, "homa-flows: %s is no address\n", text);
		return false;
	}
	return true;
}

/* Reads "ADDRESS,PORT". */
static bool next(struct flows_config *config, const char *text)
{
	const char *comma = strchr(text, ',');
	char host[INET6_ADDRSTRLEN];

	if (!comma || (size_t)(comma - text) >= sizeof(host)) {
		fprintf(stderr, "homa-flows: --next %s: say ADDRESS,PORT\n",
			text);
		return false;
	}
	memcpy(host, text, (size_t)(comma - text));
	host[comma - text] = '\0';
	return address(&config->next, &config->next_port, host, comma + 1);
}

static bool set(struct flows_config *config, int option, const char *what,
		const char *text)
{
	uint32_t seed = 0, us = 0;

	switch (option) {
	case 'm':
		return mode(config, text);
	case 'p':
		return count(&config->ports, what, text, 1, 1000);
	case 'c':
		return count(&config->connections, what, text, 1, 1e6);
	case 'd':
		return count(&config->depth, what, text, 1, FLOWS_MAX_DEPTH);
	case 's':
		return count(&config->size, what, text, 1, FLOWS_MAX_SIZE);
	case 'n':
		return count(&config->per_connection, what, text, 0, 1e9);
	case 'r':
		config->rate = number(what, text, 0, 1e9);
		return config->rate >= 0;
	case 'P':
		config->pace = number(what, text, 0, 1e12);
		return config->pace >= 0;
	case 'w':
		return count(&config->work, what, text, 0, 1e9);
	case 'k':
		return count(&config->keys, what, text, 1, 1e7);
	case 'o':
		config->one_key = true;
		return true;
	case 'u':
		return seconds(&config->warmup_ns, what, text);
	case 'D':
		return seconds(&config->duration_ns, what, text);
	case 't':
		return seconds(&config->timeout_ns, what, text);
	case 'a':
		return instant(&config->measure_at_ns, what, text);
	case 'q':
		return seconds(&config->part_ns, what, text);
	case 'e':
		if (!count(&seed, what, text, 0, 4e9))
			return false;
		config->seed = seed;
		return true;
	case 'x':
		return next(config, text);
	case 'b':
		if (!count(&us, what, text, 0, 1e7))
			return false;
		config->batch_ns = us * 1000ull;
		return true;
	default:
		config->json = text;
		return true;
	}
}

/* Allows as many descriptors as the system permits, one for each connection. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int load(const struct flows_config *config,
		int (*measure)(const struct flows_config *, struct flows_result *))
{
	struct flows_result result = { 0 };
	int rc = homa_hist_init(&result.latency);

	if (!rc)
		rc = homa_hist_init(&result.interval);
	if (!rc)
		rc = flows_parts_init(config, &result);
	if (!rc)
		rc = measure(config, &result);
	if (!rc)
		rc = flows_report(config, &result);
	homa_hist_free(&result.latency);
	homa_hist_free(&result.interval);
	flows_parts_free(&result);
	return rc ? 1 : 0;
}

/* Runs a stage; returns the exit code. */
static int pipeline(struct flows_config *config, const char *role)
{
	bool source = !strcmp(role, "source"), sink = !strcmp(role, "sink");

	if (!source && !sink && strcmp(role, "stage")) {
		fprintf(stderr,
			"homa-flows: %s: say server, client, source, stage or sink\n",
			role);
		return 2;
	}
	if (config->size < FLOWS_MIN_TUPLE) {
		fprintf(stderr,
			"homa-flows: --size %u: a tuple has at least %u bytes\n",
			config->size, FLOWS_MIN_TUPLE);
		return 2;
	}
	if (source) {
		config->first = true;
		config->next = config->addr;
		config->next_port = config->port;
	} else if (!sink && !config->next_port) {
		fputs("homa-flows: a stage needs --next ADDRESS,PORT\n", stderr);
		return 2;
	}
	return sink			 ? load(config, flows_stage) :
	       flows_stage(config, NULL) ? 1 :
					   0;
}

int main(int argc, char **argv)
{
	struct flows_config config = {
		.ports = 1,
		.connections = 1,
		.depth = 1,
		.size = 64,
		.keys = 100000,
		.warmup_ns = 300000000,
		.duration_ns = FLOWS_NS_PER_S,
		.timeout_ns = 30 * FLOWS_NS_PER_S,
		.seed = 1,
	};
	int option, index = 0;

	while ((option = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (option == '?' ||
		    !set(&config, option, options[index].name, optarg))
			return 2;
	}
	if (argc - optind != 3) {
		fputs(usage, stderr);
		return 2;
	}
	if (!address(&config.addr, &config.port, argv[optind + 1],
		     argv[optind + 2]))
		return 2;
	if (config.part_ns &&
	    config.duration_ns / config.part_ns >= FLOWS_MAX_PARTS) {
		fprintf(stderr,
			"homa-flows: --parts: the window would have %u parts or more\n",
			FLOWS_MAX_PARTS);
		return 2;
	}
	raise_limit();
	if (!strcmp(argv[optind], "server"))
		return flows_serve(&config);
	if (!strcmp(argv[optind], "client"))
		return load(&config, flows_load);
	return pipeline(&config, argv[optind]);
}
