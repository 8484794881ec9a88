// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * This machine's bound for a round trip through two daemons: four processes that stand
 * for application, daemon, daemon and application and do next to nothing. Between the
 * applications and their daemons are rings in shared memory of abi/shm.h's kind,
 * between the daemons AF_XDP devices, and all of them wait by the rule of homad and
 * libhoma (host/common/spin.c): they look, yield, and in the end sleep. Messages have
 * 100 bytes.
 * No protocol: what is lost is sent again by the client after a while. Only
 * ./homa bench service starts it, one of these on each host:
 *
 *	ring server INTERFACE
 *	ring client INTERFACE PEER-ADDRESS OUTSTANDING SECONDS JSON-FILE [RATE BEGIN]
 *
 * If it leads a session (setsid), its daemon leads one, too.
 *
 * Without RATE each answer is followed by the next request. With it RATE requests per second
 * leave at random times (Poisson arrivals) that do not depend on the answers, OUTSTANDING of
 * them at once at most, and those of the SECONDS from BEGIN on (of the monotonic clock) count.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hist.h"
#include "homa_clock.h"
#include "homa_spin.h"
#include "json.h"
#include "nic.h"
#include "shm.h"

#define ENTRIES HOMA_SHM_SQ_ENTRIES
#define BATCH 32
#define MESSAGE 100u
#define HEADER 60u
#define LOOKS_PER_YIELD 4 /* as libhoma's */
#define SPIN_MIN_NS 5000u /* as homad's defaults */
#define SPIN_NS 50000u
#define LOST_NS 100000000u
#define SLEEP_NS 10000000u /* at most */
#define NEVER (~0ull)
#define WARMUP_NS 200000000u
#define CONNECT_NS 5000000000u

/**
 * struct entry - a message on its way
 * @peer: the host that it comes from or goes to.
 * @slot, @use: which of the client's messages.
 */
struct entry {
	struct homa_addr peer;
	u32 slot;
	u32 use;
	u8 bytes[MESSAGE];
} __attribute__((aligned(64)));

/**
 * struct queue - one direction between an application and its daemon
 * @asleep: 1 while the consumer sleeps, or is about to; it writes it.
 * @wake: the eventfd that ends its sleep.
 */
struct queue {
	struct homa_shm_ring at;
	u32 asleep;
	int wake;
	struct entry entry[ENTRIES];
};

/* What an application and its daemon share. */
struct shared {
	struct queue down, up;
	u32 ready; /* the daemon is */
};

static struct shared *shared;

/* ---- rings ---- */

static struct entry *put(struct queue *q, u32 tail)
{
	if (tail - __atomic_load_n(&q->at.head, __ATOMIC_ACQUIRE) == ENTRIES)
		return NULL;
	return &q->entry[tail % ENTRIES];
}

static u32 waiting(const struct queue *q)
{
	return __atomic_load_n(&q->at.tail, __ATOMIC_ACQUIRE) - q->at.head;
}

static void taken(struct queue *q, u32 n)
{
	__atomic_store_n(&q->at.head, q->at.head + n, __ATOMIC_RELEASE);
}

static void show(struct queue *q, u32 tail)
{
	u64 one = 1;

	__atomic_store_n(&q->at.tail, tail, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&q->asleep, __ATOMIC_SEQ_CST) &&
	    write(q->wake, &one, sizeof(one)) < 0)
		return; /* it has been told */
}

/* Until something is in @q, or the nic, if there is one, has packets, for @ns at most. */
static void sleep_on(struct queue *q, struct nic *nic, u64 ns)
{
	struct timespec most = { .tv_nsec = (long)homa_min_u64(ns, SLEEP_NS) };
	struct pollfd fds[2] = { { .fd = q->wake, .events = POLLIN } };
	u64 value;

	__atomic_store_n(&q->asleep, 1, __ATOMIC_SEQ_CST);
	if (!waiting(q) && !(nic && nic_arm(nic))) {
		fds[1].fd = nic ? nic_fd(nic) : -1;
		fds[1].events = POLLIN;
		ppoll(fds, 2, &most, NULL);
		if (fds[0].revents && read(q->wake, &value, sizeof(value)) < 0)
			value = 0;
	}
	__atomic_store_n(&q->asleep, 0, __ATOMIC_RELAXED);
}

/* A round is over: busy, or it found nothing in @q and the nic. There will be something to do
 * at @due. */
static void idle(struct homa_spin *spin, bool busy, struct queue *q,
		 struct nic *nic, u64 due)
{
	u64 now = homa_clock_ns();

	if (busy) {
		homa_spin_work(spin, now);
	} else if (due > now && !homa_spin_idle(spin, now)) {
		sleep_on(q, nic, due - now);
		homa_spin_slept(spin, homa_clock_ns());
	}
}

/* ---- the daemon ---- */

static void packets_in(struct nic *nic, struct queue *up, bool *busy)
{
	struct nic_error errors[BATCH];
	struct nic_rx pkts[BATCH];
	int i, n = nic_rx(nic, pkts, BATCH);
	u32 tail = up->at.tail;

	/* The peer's kernel answers what comes before its daemon is ready. */
	if (n <= 0)
		nic_errors(nic, errors, BATCH);

	for (i = 0; i < n; i++) {
		struct entry *e = put(up, tail);

		if (!e || pkts[i].len != HEADER + MESSAGE)
			continue;
		e->peer = pkts[i].src;
		memcpy(&e->slot, pkts[i].data + 20, 4);
		memcpy(&e->use, pkts[i].data + 24, 4);
		memcpy(e->bytes, pkts[i].data + HEADER, MESSAGE);
		tail++;
	}
	if (n <= 0)
		return;
	nic_rx_release(nic, pkts, n);
	show(up, tail);
	*busy = true;
}

static void packets_out(struct nic *nic, struct queue *down, bool *busy)
{
	static u8 headers[BATCH][HEADER];
	struct nic_tx pkts[BATCH];
	u32 i, n = homa_min_u32(waiting(down), BATCH);
	int room = nic_tx_room(nic), sent;

	if (!n || room <= 0)
		return;
	n = homa_min_u32(n, (u32)room);
	memset(pkts, 0, n * sizeof(*pkts));
	for (i = 0; i < n; i++) {
		struct entry *e = &down->entry[(down->at.head + i) % ENTRIES];

		memcpy(headers[i] + 20, &e->slot, 4);
		memcpy(headers[i] + 24, &e->use, 4);
		pkts[i].dst = e->peer;
		pkts[i].hdr = headers[i];
		pkts[i].hdr_len = HEADER;
		pkts[i].payload = e->bytes;
		pkts[i].payload_len = MESSAGE;
	}
	sent = nic_tx(nic, pkts, (int)n);
	nic_flush(nic);
	taken(down, sent > 0 ? (u32)sent : 0);
	*busy = true;
}

static int daemon_main(const char *interface)
{
	struct nic_config config = { .backend = "afxdp", .interface = interface };
	struct homa_spin spin;
	struct nic *nic;
	char err[256];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (nic_open(&nic, &config, err, sizeof(err))) {
		fprintf(stderr, "ring: %s\n", err);
		return 1;
	}
	homa_spin_init(&spin, SPIN_MIN_NS, SPIN_NS, homa_clock_ns());
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	for (;;) {
		bool busy = false;

		packets_in(nic, &shared->up, &busy);
		packets_out(nic, &shared->down, &busy);
		idle(&spin, busy, &shared->down, nic, NEVER);
	}
}

/* ---- the applications ---- */

/* Messages from the daemon, looked for as libhoma does, until @due at most. */
static u32 look(struct queue *up, struct homa_spin *spin, u64 due)
{
	u32 i, n = 0;

	for (i = 0; i < LOOKS_PER_YIELD && !n; i++) {
		n = waiting(up);
		if (!n)
			homa_cpu_relax();
	}
	idle(spin, n > 0, up, NULL, due);
	return n;
}

static void submit(struct queue *down, const struct entry *what)
{
	u32 tail = down->at.tail;
	struct entry *e;

	while (!(e = put(down, tail)))
		sched_yield();
	*e = *what;
	show(down, tail + 1);
}

__attribute__((noreturn)) static void server_main(void)
{
	struct queue *up = &shared->up;
	struct homa_spin spin;

	homa_spin_init(&spin, SPIN_MIN_NS, SPIN_NS, homa_clock_ns());
	for (;;) {
		u32 i, n = look(up, &spin, NEVER);

		for (i = 0; i < n; i++) {
			submit(&shared->down, &up->entry[up->at.head % ENTRIES]);
			taken(up, 1);
		}
	}
}

/**
 * struct client - the client's messages under way, and how long they took
 * @slot: the messages. A slot is free while its @sent is 0, which it is in an open loop only.
 * @sent, @due: the times at which each left and at which it should have, in ns.
 * @looked: the time at which the client last looked for messages that were lost, in ns.
 * @done: the number of answers that came.
 * @latency: the times from @due to the answer; @from_sent: from @sent; @late: from @due to
 *	@sent; in ns.
 * @rate: requests per second of an open loop, or 0.
 * @next: the time of the next arrival, in ns.
 */
struct client {
	struct entry slot[ENTRIES];
	u64 sent[ENTRIES], due[ENTRIES];
	u32 outstanding;
	u64 looked;
	u64 done;
	struct homa_hist latency, from_sent, late;
	double rate;
	u64 next;
	unsigned short random[3];
};

static void ask(struct client *c, u32 slot, u64 due, u64 now)
{
	c->slot[slot].use++;
	c->due[slot] = due;
	c->sent[slot] = now;
	submit(&shared->down, &c->slot[slot]);
}

/* Sends again what has not been answered for so long that it must be lost. */
static void ask_again(struct client *c, u64 now)
{
	u32 i;

	if (now - c->looked < LOST_NS)
		return;
	c->looked = now;
	for (i = 0; i < c->outstanding; i++)
		if ((c->sent[i] || !c->rate) && now - c->sent[i] > LOST_NS)
			ask(c, i, c->rate ? c->due[i] : now, now);
}

/* Takes answers. Returns when there are some, at @due, or before. */
static void client_step(struct client *c, struct homa_spin *spin, u64 due,
			bool measured)
{
	struct queue *up = &shared->up;
	u32 i, n = look(up, spin, due);
	u64 now = homa_clock_ns();

	ask_again(c, now);
	for (i = 0; i < n; i++) {
		struct entry e = up->entry[up->at.head % ENTRIES];

		taken(up, 1);
		if (e.slot >= c->outstanding || e.use != c->slot[e.slot].use ||
		    (c->rate && !c->sent[e.slot]))
			continue;
		now = homa_clock_ns();
		c->done++;
		if (measured) {
			homa_hist_record(&c->latency, now - c->due[e.slot]);
			homa_hist_record(&c->from_sent, now - c->sent[e.slot]);
		}
		c->sent[e.slot] = 0;
		if (!c->rate)
			ask(c, e.slot, now, now);
	}
}

/* Sends the requests whose time has come. Returns the time of the next, in ns. */
static u64 arrivals(struct client *c, bool measured)
{
	u64 now = homa_clock_ns();
	u32 slot = 0;

	while (c->next <= now) {
		while (slot < c->outstanding && c->sent[slot])
			slot++;
		if (slot == c->outstanding)
			return NEVER;
		if (measured)
			homa_hist_record(&c->late, now - c->next);
		ask(c, slot, c->next, now);
		c->next += (u64)(-log(1 - erand48(c->random)) * 1e9 / c->rate);
		now = homa_clock_ns();
	}
	return c->next;
}

/* Runs until @end, in ns; answers count if @measured. */
static void client_run(struct client *c, struct homa_spin *spin, u64 end,
		       bool measured)
{
	while (homa_clock_ns() < end) {
		u64 due = c->rate ? arrivals(c, measured) : NEVER;

		client_step(c, spin, homa_min_u64(due, end), measured);
	}
}

static int report(const struct client *c, double seconds, const char *file)
{
	cJSON *json = cJSON_CreateObject();
	char err[256] = "";

	homa_json_round(json, "rps", (double)c->done / seconds, 1);
	cJSON_AddItemToObject(json, "latency_ns",
			      homa_json_summary(&c->latency, 1));
	cJSON_AddItemToObject(json, "from_send_ns",
			      homa_json_summary(&c->from_sent, 1));
	cJSON_AddItemToObject(json, "late_ns", homa_json_summary(&c->late, 1));
	if (!homa_json_write(json, file, err, sizeof(err)))
		return 0;
	fprintf(stderr, "ring: %s\n", err);
	return 1;
}

static int prepare(struct client *c, int argc, char **argv)
{
	u32 i;

	c->outstanding = (u32)atoi(argv[4]);
	c->rate = argc > 7 ? atof(argv[7]) : 0;
	if (!c->outstanding || c->outstanding > ENTRIES / 2 ||
	    homa_hist_init(&c->latency) || homa_hist_init(&c->from_sent) ||
	    homa_hist_init(&c->late))
		return 2;
	for (i = 0; i < c->outstanding; i++) {
		struct homa_addr *peer = &c->slot[i].peer;

		c->slot[i].slot = i;
		peer->ip[10] = peer->ip[11] = 0xff;
		if (inet_pton(AF_INET, argv[3], peer->ip + 12) != 1)
			return 2;
	}
	return 0;
}

static int client_main(int argc, char **argv)
{
	static struct client c;
	u64 begin = homa_clock_ns(), end;
	double seconds = atof(argv[5]);
	struct homa_spin spin;

	if (prepare(&c, argc, argv))
		return 2;
	prctl(PR_SET_TIMERSLACK, 1);
	c.next = begin;
	homa_spin_init(&spin, SPIN_MIN_NS, SPIN_NS, begin);
	while (!c.done && homa_clock_ns() - begin < CONNECT_NS)
		client_run(&c, &spin, homa_clock_ns() + 1000000, false);
	end = argc > 8 ? (u64)(atof(argv[8]) * 1e9) : homa_clock_ns() + WARMUP_NS;
	client_run(&c, &spin, end, false);
	begin = homa_clock_ns();
	c.done = 0;
	client_run(&c, &spin, begin + (u64)(seconds * 1e9), true);
	return report(&c, (double)(homa_clock_ns() - begin) / 1e9, argv[6]);
}

int main(int argc, char **argv)
{
	bool client = (argc == 7 || argc == 9) && !strcmp(argv[1], "client");
	u64 until = homa_clock_ns() + CONNECT_NS;
	int rc = 1;
	bool leads;
	pid_t pid;

	if (!client && (argc != 3 || strcmp(argv[1], "server"))) {
		fprintf(stderr,
			"usage: ring server INTERFACE | client INTERFACE PEER OUTSTANDING SECONDS JSON [RATE BEGIN]\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	shared->up.wake = eventfd(0, EFD_NONBLOCK);
	shared->down.wake = eventfd(0, EFD_NONBLOCK);
	leads = getsid(0) == getpid();
	pid = fork();
	if (pid < 0)
		return 1;
	if (!pid) {
		if (leads)
			setsid();
		return daemon_main(argv[2]);
	}
	while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) &&
	       homa_clock_ns() < until && !waitpid(pid, NULL, WNOHANG))
		usleep(1000);
	if (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE)) {
		fprintf(stderr, "ring: ready\n");
		if (!client)
			server_main();
		rc = client_main(argc, argv);
	}
	kill(pid, SIGKILL);
	return rc;
}
