// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The loop: keep config.outstanding RPCs in flight, and measure those after the warm-up.
 * The server is a child process in its own namespace; it dies with its parent.
 *
 * Times are those of the processor's counter: in a guest without a usable one
 * as clock, clock_gettime() is a system call that would double what a small RPC
 * costs. The counter's rate is found from the run itself.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mark.h"
#include "rpcs.h"

static const struct rpcs_proto *const protos[] = { &rpcs_tcp, &rpcs_udp,
						   &rpcs_homa, &rpcs_exchange };
static const char *const waits[] = { "block", "yield", "spin", "poll" };

static const char usage[] =
	"usage: homa-kernel-bench [OPTION...]\n"
	"  --proto tcp|udp|homa|exchange    exchange: Homa, one call sends and receives\n"
	"  --wait block|yield|spin|poll     how both ends wait\n"
	"  --poll-usecs N           of --wait poll, before it blocks (50)\n"
	"  --request B --response B --outstanding N\n"
	"  --warmup N --count N     RPCs before, and in the measured part\n"
	"  --client-net FILE --server-net FILE    namespaces (/run/netns/...)\n"
	"  --client-cpu N --server-cpu N          pinned there\n"
	"  --address A --port P     the server's (127.0.0.1, 4000)\n"
	"  --buffer BYTES           SO_SNDBUF and SO_RCVBUF; without it the kernel's\n"
	"  --mark                   no times: the emulator counts (insn_count.c)\n"
	"  --bound                  the server is bound to its address alone\n"
	"  --cores N                so many client and server threads, Homa only (cores.c)\n"
	"  --label TEXT             is repeated in the result\n"
	"The result is a line of JSON after 'RESULT '.\n";

void rpcs_die(const char *format, ...)
{
	int error = errno;
	va_list list;

	fprintf(stderr, "homa-kernel-bench: ");
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, ": %s\n", strerror(error));
	exit(1);
}

static uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

int rpcs_wait_flags(const struct rpcs_config *config)
{
	return config->wait == RPCS_BLOCK ? 0 : MSG_DONTWAIT;
}

int rpcs_wait_turn(const struct rpcs_config *config, uint64_t *since)
{
	if (config->wait == RPCS_SPIN) {
		__builtin_ia32_pause();
		return MSG_DONTWAIT;
	}
	if (config->wait == RPCS_POLL) {
		uint64_t now = ticks();

		if (!*since)
			*since = now;
		else if (now - *since >= config->poll_ticks)
			return 0;
	}
	sched_yield();
	return MSG_DONTWAIT;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Measures how many ticks of the processor's counter a poll may last. */
static void learn_ticks(struct rpcs_config *config)
{
	double begin = seconds(), end;
	uint64_t tick = ticks();

	do
		end = seconds();
	while (end - begin < 0.01);
	config->poll_ticks = (uint64_t)((double)(ticks() - tick) / (end - begin) *
					config->poll_usecs * 1e-6);
}

void rpcs_enter_net(const char *path)
{
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		rpcs_die("namespace %s", path);
	close(fd);
}

void rpcs_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		rpcs_die("CPU %d", cpu);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void report(const struct rpcs_config *config, double elapsed,
		   uint64_t *times, double ns_per_tick)
{
	uint32_t n = config->count;

	printf("RESULT {\"label\": \"%s\", \"proto\": \"%s\", \"wait\": \"%s\", "
	       "\"request\": %u, \"response\": %u, \"outstanding\": %u, \"count\": %u, "
	       "\"seconds\": %.9f, \"rate\": %.1f",
	       config->label, config->proto, waits[config->wait],
	       config->request, config->response, config->outstanding, n,
	       elapsed, elapsed > 0 ? n / elapsed : 0.0);
	if (times) {
		double sum = 0;

		qsort(times, n, sizeof(*times), compare);
		for (uint32_t i = 0; i < n; i++)
			sum += (double)times[i];
		printf(", \"rtt_ns\": {\"mean\": %.0f, \"min\": %.0f, \"median\": %.0f, "
		       "\"p90\": %.0f, \"p99\": %.0f, \"max\": %.0f}",
		       sum / n * ns_per_tick, (double)times[0] * ns_per_tick,
		       (double)times[n / 2] * ns_per_tick,
		       (double)times[(uint64_t)n * 90 / 100] * ns_per_tick,
		       (double)times[(uint64_t)n * 99 / 100] * ns_per_tick,
		       (double)times[n - 1] * ns_per_tick);
	}
	printf("}\n");
	fflush(stdout);
}

/*
 * Ends an RPC and starts the next one in its slot. If one call does both, it starts the one in
 * slot *@idle first, and *@idle is then the slot of the RPC that ended.
 */
static void turn(const struct rpcs_config *config, const struct rpcs_proto *proto,
		 uint64_t *started, uint64_t *time, uint32_t *idle)
{
	uint32_t slot = proto->turn ? proto->turn(config, *idle) :
				      proto->receive(config);

	if (started) {
		uint64_t now = ticks();

		if (time)
			*time = now - started[slot];
		started[slot] = now;
	}
	if (proto->turn)
		*idle = slot;
	else
		proto->send(config, slot);
}

static void client(const struct rpcs_config *config,
		   const struct rpcs_proto *proto)
{
	uint64_t slots[RPCS_MAX_OUTSTANDING], *times = NULL, *started = NULL;
	uint32_t begun = config->outstanding, idle;
	uint64_t tick0, tick1;
	double begin, end;

	if (config->times) {
		times = calloc(config->count, sizeof(*times));
		if (!times)
			rpcs_die("memory");
		memset(times, 1, config->count * sizeof(*times)); /* paged in */
		started = slots;
	}
	rpcs_enter_net(config->client_net);
	rpcs_pin(config->client_cpu);
	proto->connect(config);
	/* A call that does both begins the last one. */
	if (proto->turn)
		begun--;
	idle = begun;
	for (uint32_t i = 0; i < config->outstanding; i++)
		slots[i] = ticks();
	for (uint32_t i = 0; i < begun; i++)
		proto->send(config, i);
	for (uint32_t i = 0; i < config->warmup; i++)
		turn(config, proto, started, NULL, &idle);
	begin = seconds();
	tick0 = ticks();
	if (config->mark)
		MARK(MARK_BEGIN);
	for (uint32_t i = 0; i < config->count; i++)
		turn(config, proto, started, times ? times + i : NULL, &idle);
	if (config->mark)
		MARK(MARK_END);
	tick1 = ticks();
	end = seconds();
	for (uint32_t i = 0; i < begun; i++)
		proto->receive(config);
	report(config, end - begin, times,
	       tick1 > tick0 ? (end - begin) * 1e9 / (double)(tick1 - tick0) : 0);
	free(times);
}

static pid_t start_server(const struct rpcs_config *config,
			  const struct rpcs_proto *proto)
{
	int ready[2];
	pid_t parent = getpid(), pid;
	char byte;

	if (pipe(ready))
		rpcs_die("pipe");
	pid = fork();
	if (pid < 0)
		rpcs_die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(ready[0]);
		rpcs_enter_net(config->server_net);
		rpcs_pin(config->server_cpu);
		proto->listen(config);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		close(ready[1]);
		proto->serve(config);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		exit(1); /* the child has said why it failed */
	close(ready[0]);
	return pid;
}

static uint32_t number(const char *text, const char *what, uint32_t low,
		       uint32_t high)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || end == text || *end || value < low || value > high) {
		fprintf(stderr,
			"homa-kernel-bench: --%s %s: a number from %u to %u\n",
			what, text, low, high);
		exit(2);
	}
	return (uint32_t)value;
}

static void set_address(struct rpcs_config *config)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)&config->peer;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&config->peer;

	if (inet_pton(AF_INET, config->address, &in4->sin_addr) == 1) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(config->port);
		config->peerlen = sizeof(*in4);
	} else if (inet_pton(AF_INET6, config->address, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(config->port);
		config->peerlen = sizeof(*in6);
	} else {
		fprintf(stderr, "homa-kernel-bench: --address %s is none\n",
			config->address);
		exit(2);
	}
}

void rpcs_bind(int fd, const struct rpcs_config *config)
{
	struct sockaddr_storage at = config->peer;

	if (!config->bound && at.ss_family == AF_INET)
		((struct sockaddr_in *)&at)->sin_addr.s_addr = htonl(INADDR_ANY);
	else if (!config->bound)
		((struct sockaddr_in6 *)&at)->sin6_addr = in6addr_any;
	if (bind(fd, (const struct sockaddr *)&at, config->peerlen))
		rpcs_die("bind");
}

enum {
	PROTO = 1,
	WAIT,
	REQUEST,
	RESPONSE,
	OUTSTANDING,
	WARMUP,
	COUNT,
	CLIENT_NET,
	SERVER_NET,
	CLIENT_CPU,
	SERVER_CPU,
	ADDRESS,
	PORT,
	BUFFER,
	MARKED,
	LABEL,
	HELP,
	POLL_USECS,
	CORES,
	BOUND
};

static const struct option options[] = {
	{ "proto", 1, NULL, PROTO },
	{ "wait", 1, NULL, WAIT },
	{ "poll-usecs", 1, NULL, POLL_USECS },
	{ "request", 1, NULL, REQUEST },
	{ "response", 1, NULL, RESPONSE },
	{ "outstanding", 1, NULL, OUTSTANDING },
	{ "warmup", 1, NULL, WARMUP },
	{ "count", 1, NULL, COUNT },
	{ "client-net", 1, NULL, CLIENT_NET },
	{ "server-net", 1, NULL, SERVER_NET },
	{ "client-cpu", 1, NULL, CLIENT_CPU },
	{ "server-cpu", 1, NULL, SERVER_CPU },
	{ "address", 1, NULL, ADDRESS },
	{ "port", 1, NULL, PORT },
	{ "buffer", 1, NULL, BUFFER },
	{ "mark", 0, NULL, MARKED },
	{ "cores", 1, NULL, CORES },
	{ "bound", 0, NULL, BOUND },
	{ "label", 1, NULL, LABEL },
	{ "help", 0, NULL, HELP },
	{ 0 },
};

static enum rpcs_wait wait_named(const char *name)
{
	for (unsigned int i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (!strcmp(name, waits[i]))
			return (enum rpcs_wait)i;
	fprintf(stderr,
		"homa-kernel-bench: --wait %s: block, yield, spin or poll\n",
		name);
	exit(2);
}

static void set_size(struct rpcs_config *config, int option, const char *text)
{
	switch (option) {
	case POLL_USECS:
		config->poll_usecs = number(text, "poll-usecs", 1, 1000000);
		break;
	case REQUEST:
		config->request = number(text, "request", 1, RPCS_MAX_MESSAGE);
		break;
	case RESPONSE:
		config->response = number(text, "response", 1, RPCS_MAX_MESSAGE);
		break;
	case OUTSTANDING:
		config->outstanding =
			number(text, "outstanding", 1, RPCS_MAX_OUTSTANDING);
		break;
	case WARMUP:
		config->warmup = number(text, "warmup", 0, 100000000);
		break;
	case COUNT:
		config->count = number(text, "count", 1, 100000000);
		break;
	case CLIENT_CPU:
		config->client_cpu = (int)number(text, "client-cpu", 0, 1023);
		break;
	case SERVER_CPU:
		config->server_cpu = (int)number(text, "server-cpu", 0, 1023);
		break;
	case PORT:
		config->port = (uint16_t)number(text, "port", 1, 32767);
		break;
	case CORES:
		config->cores = number(text, "cores", 1, RPCS_MAX_CORES);
		break;
	case BUFFER:
		config->sndbuf = number(text, "buffer", 1, 1u << 30);
		break;
	}
}

static void parse(struct rpcs_config *config, int argc, char **argv)
{
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case PROTO:
			config->proto = optarg;
			break;
		case WAIT:
			config->wait = wait_named(optarg);
			break;
		case CLIENT_NET:
			config->client_net = optarg;
			break;
		case SERVER_NET:
			config->server_net = optarg;
			break;
		case ADDRESS:
			config->address = optarg;
			break;
		case LABEL:
			config->label = optarg;
			break;
		case MARKED:
			config->mark = true;
			config->times = false;
			break;
		case BOUND:
			config->bound = true;
			break;
		case HELP:
			fputs(usage, stdout);
			exit(0);
		case '?':
			fputs("homa-kernel-bench: --help lists the options\n",
			      stderr);
			exit(2);
		default:
			set_size(config, option, optarg);
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"homa-kernel-bench: '%s' is no option; see --help\n",
			argv[optind]);
		exit(2);
	}
	set_address(config);
}

int main(int argc, char **argv)
{
	struct rpcs_config config = {
		.proto = "tcp",
		.poll_usecs = 50,
		.request = 100,
		.response = 100,
		.outstanding = 1,
		.warmup = 200,
		.count = 1000,
		.times = true,
		.client_cpu = -1,
		.server_cpu = -1,
		.address = "127.0.0.1",
		.label = "",
		.port = 4000,
	};
	const struct rpcs_proto *proto = NULL;
	pid_t server;

	parse(&config, argc, argv);
	for (unsigned int i = 0; i < sizeof(protos) / sizeof(protos[0]); i++)
		if (!strcmp(config.proto, protos[i]->name))
			proto = protos[i];
	if (!proto) {
		fprintf(stderr,
			"homa-kernel-bench: --proto %s: tcp, udp, homa or exchange\n",
			config.proto);
		return 2;
	}
	if (config.wait == RPCS_POLL)
		learn_ticks(&config);
	if (config.cores) {
		if (proto != &rpcs_homa) {
			fprintf(stderr,
				"homa-kernel-bench: --cores: only with --proto homa\n");
			return 2;
		}
		rpcs_cores(&config, proto);
		return 0;
	}
	server = start_server(&config, proto);
	client(&config, proto);
	kill(server, SIGKILL);
	/* The port is free for the next measurement when the server has ended. */
	if (waitpid(server, NULL, 0) != server)
		rpcs_die("the server");
	return 0;
}
