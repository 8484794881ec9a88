// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * RPCs with content checks, and a server that notices when one is executed twice:
 *
 *	rpc serve 4|6 PORT [THREADS]		prints "ready", serves until killed, on
 *						the device DEVICE if there is that variable
 *	rpc edges 4|6 IP PORT MTU		sizes around every boundary, both ways
 *	rpc load 4|6 IP PORT SEED RPCS OUTSTANDING MAX THREADS
 *	rpc wait 4|6 IP PORT SECONDS		until a server answers
 *	rpc listen IFACE			keeps clones of all packets in its queue
 *
 * The clients print "ok" and end with 0, or say what is wrong. A request of 16
 * bytes or more begins with 'R', the length of the response it wants and a serial
 * number; shorter ones are echoed. Every byte that follows depends on serial
 * number, direction and place, so that a byte of another message, another place
 * or another direction is noticed. A client ends by asking the server how often
 * it executed its requests: each once, none twice. A lost one is one that fails.
 */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include "guest.h"

#define HEAD 16u
#define SERIALS (1u << 18)

struct head {
	char op; /* 'R', or 'S': how often were serials [serial, serial + response) executed? */
	char pad[3];
	uint32_t response;
	uint64_t serial;
} __attribute__((packed));

/* Answer to 'S'. */
struct counts {
	uint32_t executed, twice;
};

_Static_assert(sizeof(struct head) == HEAD, "head");

static int family;
static union address server;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t serial;
	uint32_t times;
} serials[SERIALS];

static unsigned char byte_at(uint64_t serial, bool response, size_t i)
{
	return (unsigned char)(serial * 167 + (response ? 91 : 0) + i +
			       (i >> 8) * 13);
}

static void paint(unsigned char *to, size_t from, size_t size, uint64_t serial,
		  bool response)
{
	size_t i;

	for (i = from; i < size; i++)
		to[i] = byte_at(serial, response, i);
}

/* ---- server ---- */

static uint32_t *times_of(uint64_t serial)
{
	uint64_t h = serial * 0x9e3779b97f4a7c15ull >> 40;

	for (;; h++) {
		size_t at = h % SERIALS;

		if (serials[at].serial == serial)
			return &serials[at].times;
		if (!serials[at].serial) {
			serials[at].serial = serial;
			return &serials[at].times;
		}
	}
}

static struct counts count(uint64_t from, uint32_t n)
{
	struct counts c = { 0 };
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t times = *times_of(from + i);

		c.executed += times > 0;
		c.twice += times > 1;
	}
	return c;
}

static void gather(const struct sock *s, size_t size, unsigned char *to)
{
	struct iovec iov[HOMA_MAX_BPAGES];
	int i, n = pieces(s, size, iov);

	for (i = 0; i < n; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

static void respond(struct sock *s, const void *bytes, size_t size)
{
	struct homa_sendmsg_args args = { .id = s->args.id };

	CHECK(!send_raw(s->fd, &s->from, s->from_size, bytes, size, &args, 0),
	      "response of %zu bytes", size);
}

static void check_bytes(const unsigned char *bytes, size_t size,
			uint64_t serial, bool response)
{
	size_t i;

	for (i = HEAD; i < size; i++)
		CHECK(bytes[i] == byte_at(serial, response, i),
		      "%s %llu: byte %zu of %zu is %02x, not %02x",
		      response ? "response" : "request",
		      (unsigned long long)serial, i, size, bytes[i],
		      byte_at(serial, response, i));
}

static void *serve(void *arg)
{
	struct sock s = *(struct sock *)arg;
	unsigned char *bytes = malloc(HOMA_MAX_MESSAGE_LENGTH);
	struct head head;
	struct counts c;

	for (;;) {
		ssize_t n = receive(&s, 0, 0);

		CHECK(n > 0 || errno == EINTR, "receive");
		if (n < 0)
			continue;
		gather(&s, (size_t)n, bytes);
		memcpy(&head, bytes, HEAD);
		if (n < (ssize_t)HEAD || (head.op != 'R' && head.op != 'S')) {
			respond(&s, bytes, (size_t)n);
			continue;
		}
		pthread_mutex_lock(&lock);
		if (head.op == 'S')
			c = count(head.serial, head.response);
		else
			++*times_of(head.serial);
		pthread_mutex_unlock(&lock);
		if (head.op == 'S') {
			respond(&s, &c, sizeof(c));
			continue;
		}
		check_bytes(bytes, (size_t)n, head.serial, false);
		CHECK(head.response && head.response <= HOMA_MAX_MESSAGE_LENGTH,
		      "%u", head.response);
		memcpy(bytes, &head, HEAD);
		paint(bytes, HEAD, head.response, head.serial, true);
		respond(&s, bytes, head.response);
	}
	return NULL;
}

static int server_main(int port, int threads)
{
	const char *device = getenv("DEVICE");
	struct sock s = open_bare(family, 0);
	pthread_t thread;

	give_region(&s, (size_t)64 << 20);
	if (device)
		CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_BINDTODEVICE, device,
				  (socklen_t)strlen(device)),
		      "SO_BINDTODEVICE %s", device);
	bind_sock(&s, port);
	printf("ready\n");
	fflush(stdout);
	while (--threads > 0)
		CHECK(!pthread_create(&thread, NULL, serve, &s), "thread");
	serve(&s);
	return 0;
}

/* ---- clients ---- */

struct want {
	uint64_t serial;
	uint32_t response;
};

static void ask(struct sock *s, unsigned char *bytes, uint64_t serial,
		uint32_t size, uint32_t response)
{
	struct head head = { .op = 'R', .response = response, .serial = serial };

	if (size >= HEAD)
		memcpy(bytes, &head, HEAD);
	paint(bytes, size >= HEAD ? HEAD : 0, size, serial, false);
	if (size < HEAD)
		bytes[0] = 'E';
	request(s, &server, bytes, size, serial, 0);
}

/* Receive any response and check it against what its request wanted. */
static uint64_t answer(struct sock *s, unsigned char *bytes, uint32_t response)
{
	ssize_t n = receive(s, 0, 0);
	uint64_t serial = s->args.completion_cookie;
	struct head head;

	CHECK(n > 0, "RPC %llu failed", (unsigned long long)serial);
	CHECK(!response || n == response, "%zd bytes of %u", n, response);
	gather(s, (size_t)n, bytes);
	if (n < (ssize_t)HEAD)
		return serial;
	memcpy(&head, bytes, HEAD);
	CHECK(head.op == 'R' && head.serial == serial && head.response == n,
	      "response of %zd bytes says it is number %llu of %u bytes, not %llu",
	      n, (unsigned long long)head.serial, head.response,
	      (unsigned long long)serial);
	check_bytes(bytes, (size_t)n, serial, true);
	return serial;
}

static struct counts ask_counts(struct sock *s, uint64_t from, uint32_t n)
{
	struct head head = { .op = 'S', .response = n, .serial = from };
	unsigned char bytes[sizeof(struct counts)];
	struct counts c;
	ssize_t size;

	request(s, &server, &head, sizeof(head), 1, 0);
	size = receive(s, 0, 0);
	CHECK(size == sizeof(c), "%zd", size);
	gather(s, sizeof(c), bytes);
	memcpy(&c, bytes, sizeof(c));
	return c;
}

static uint64_t first_serial(uint64_t seed)
{
	uint64_t state = seed;

	/* Another range in each run against the same server. */
	return (rng_next(&state) ^ (uint64_t)getpid() << 40 ^
		(uint64_t)(now() * 1e3))
		       << 20 |
	       1;
}

/* One request and response, then all of them with other sizes at once. */
static void edges(int mtu)
{
	const int header = (family == AF_INET ? 20 : 40) + 56;
	const uint32_t packet = (uint32_t)(mtu - header);
	const uint32_t sizes[] = {
		1,
		2,
		15,
		16,
		17,
		56,
		100,
		255,
		256,
		packet - 1,
		packet,
		packet + 1,
		2 * packet - 1,
		2 * packet,
		2 * packet + 1,
		10000,
		39999,
		40000,
		40001,
		65535,
		65536,
		65537,
		131071,
		131072,
		131073,
		65536 * 15 + 1,
		999999,
		1000000,
	};
	const uint32_t n = ARRAY_SIZE(sizes);
	unsigned char *bytes = malloc(HOMA_MAX_MESSAGE_LENGTH);
	struct sock s = open_bare(family, 0);
	uint64_t serial = first_serial(7);
	uint32_t i, size, executed = 0;
	struct counts c;

	give_region(&s, (size_t)64 << 20);
	for (i = 0; i < 2 * n; i++) {
		/* There: small is answered by large, large by small, and like by like. */
		size = sizes[i % n];
		if (size < HEAD) {
			ask(&s, bytes, serial + i, size, size);
			CHECK(answer(&s, bytes, size) == serial + i, "cookie");
			continue;
		}
		executed++;
		ask(&s, bytes, serial + i, size, i < n ? sizes[n - 1 - i] : size);
		CHECK(answer(&s, bytes, i < n ? sizes[n - 1 - i] : size) ==
			      serial + i,
		      "cookie");
	}
	c = ask_counts(&s, serial, 2 * n);
	CHECK(c.executed == executed && !c.twice, "%u of %u executed, %u twice",
	      c.executed, executed, c.twice);
	CHECK(rpcs_become(s.fd, 0, 20000) == 0, "%u RPCs are left",
	      rpcs_of(s.fd));
	close_sock(&s);
}

struct loader {
	pthread_t id;
	uint64_t seed, serial;
	uint32_t rpcs, outstanding, max;
};

/* Mostly short, some up to the longest. */
static uint32_t random_size(uint64_t *rng, uint32_t max)
{
	uint32_t top = max >> rng_below(rng, 16);

	return HEAD + rng_below(rng, top > HEAD ? top - HEAD + 1 : 1);
}

static void *load(void *arg)
{
	struct loader *l = arg;
	unsigned char *bytes = malloc(HOMA_MAX_MESSAGE_LENGTH);
	uint32_t *wanted = calloc(l->rpcs, sizeof(*wanted));
	struct sock s = open_bare(family, 0);
	uint64_t rng = l->seed;
	uint32_t sent = 0, got = 0;
	struct counts c;

	give_region(&s, (size_t)32 << 20);
	while (got < l->rpcs) {
		uint64_t which;

		if (sent < l->rpcs && sent - got < l->outstanding) {
			wanted[sent] = random_size(&rng, l->max);
			ask(&s, bytes, l->serial + sent,
			    random_size(&rng, l->max), wanted[sent]);
			sent++;
			continue;
		}
		which = answer(&s, bytes, 0) - l->serial;
		CHECK(which < sent && wanted[which],
		      "a response to no request, or a second one: %llu",
		      (unsigned long long)which);
		CHECK(wanted[which] >= HEAD, "size");
		wanted[which] = 0;
		got++;
	}
	c = ask_counts(&s, l->serial, l->rpcs);
	CHECK(c.executed == l->rpcs, "%u of %u were executed", c.executed,
	      l->rpcs);
	CHECK(!c.twice, "%u of %u were executed twice", c.twice, l->rpcs);
	CHECK(rpcs_become(s.fd, 0, 20000) == 0, "%u RPCs are left",
	      rpcs_of(s.fd));
	close_sock(&s);
	free(bytes);
	free(wanted);
	return NULL;
}

/* As who looks at the network does, but so slowly that the queue is never empty. */
static void listen_slowly(const char *device)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(device),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	char byte;

	CHECK(fd >= 0 && at.sll_ifindex, "no packet socket on %s", device);
	CHECK(!bind(fd, (struct sockaddr *)&at, sizeof(at)), "bind");
	for (;;) {
		usleep(200);
		CHECK(recv(fd, &byte, 1, 0) > 0, "recv");
	}
}

static void load_all(char **argv)
{
	struct loader *l;
	int i, threads = atoi(argv[4]);

	l = calloc((size_t)threads, sizeof(*l));
	for (i = 0; i < threads; i++) {
		l[i] = (struct loader){
			.seed = strtoull(argv[0], NULL, 0) + (uint64_t)i,
			.rpcs = (uint32_t)atoi(argv[1]),
			.outstanding = (uint32_t)atoi(argv[2]),
			.max = (uint32_t)atoi(argv[3]),
		};
		l[i].serial = first_serial(l[i].seed) + ((uint64_t)i << 20);
		CHECK(!pthread_create(&l[i].id, NULL, load, &l[i]), "thread");
	}
	for (i = 0; i < threads; i++)
		pthread_join(l[i].id, NULL);
	free(l);
}

static void await_server(double seconds)
{
	struct sock s = open_bare(family, 0);
	double end = now() + seconds;
	ssize_t n = -1;

	give_region(&s, REGION);
	while (n < 0) {
		struct homa_sendmsg_args args = { 0 };

		CHECK(now() < end, "no server answers");
		if (!send_raw(s.fd, &server, size_of(family), "Ehello", 6,
			      &args, 0))
			n = receive(&s, 0, 0);
		if (n < 0)
			usleep(50000);
	}
	close_sock(&s);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "listen"))
		listen_slowly(argv[2]);
	CHECK(argc >= 4, "arguments");
	signal(SIGPIPE, SIG_IGN);
	family = *argv[2] == '4' ? AF_INET : AF_INET6;
	if (!strcmp(argv[1], "serve"))
		return server_main(atoi(argv[3]), argc > 4 ? atoi(argv[4]) : 1);
	CHECK(argc >= 6, "arguments");
	server = address(family, argv[3], atoi(argv[4]));
	if (!strcmp(argv[1], "edges"))
		edges(atoi(argv[5]));
	else if (!strcmp(argv[1], "load") && argc == 10)
		load_all(argv + 5);
	else if (!strcmp(argv[1], "wait"))
		await_server(atof(argv[5]));
	else
		CHECK(0, "arguments");
	printf("ok\n");
	return 0;
}
