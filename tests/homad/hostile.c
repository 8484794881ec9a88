// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The hostile application: lives one short life after the other, each in a
 * process of its own, for a time. It fails if homad is gone, if a life does
 * not end, or if homad gave it a right that nobody should have (to resize the
 * memory, to take a bound port). What it does to others is for others to see.
 *
 *	hostile SEED SECONDS IP PORT		random lives
 *	hostile SEED life=N [NAME] IP PORT	life number N again, perhaps of a kind
 *	hostile SEED SECONDS NAME IP PORT	random lives of a kind
 *
 * "stream_*" as NAME means all kinds whose names begin so. At $HOMA_HOSTILE_FAR there may be
 * another echo server of TCP, at the same port.
 *
 * Prints every 100th life and at the end how many of each kind there were.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "hostile.h"

static const struct {
	const char *name;
	void (*live)(struct hostile *h);
} kinds[] = {
	{ "commands", live_commands },
	{ "indices", live_indices },
	{ "header", live_header },
	{ "scribble", live_scribble },
	{ "unread", live_unread },
	{ "unreleased", live_unreleased },
	{ "release_lies", live_release_lies },
	{ "forged_replies", live_forged_replies },
	{ "memory", live_memory },
	{ "eventfds", live_eventfds },
	{ "ctl_garbage", live_ctl_garbage },
	{ "ctl_deaf", live_ctl_deaf },
	{ "silent", live_silent },
	{ "attach_many", live_attach_many },
	{ "killed", live_killed },
	{ "stopped", live_stopped },
	{ "polite", live_polite },
	{ "stream_commands", live_stream_commands },
	{ "stream_slots", live_stream_slots },
	{ "stream_indices", live_stream_indices },
	{ "stream_scribble", live_stream_scribble },
	{ "stream_memory", live_stream_memory },
	{ "stream_listen", live_stream_listen },
	{ "stream_share", live_stream_share },
	{ "stream_pass", live_stream_pass },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))
#define PATIENCE_MS 60000 /* for one life on a busy machine */

static unsigned long lived[KINDS], refused;
static int64_t life_ends;

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint32_t below(struct hostile *h, uint32_t n)
{
	return (uint32_t)(next(&h->rng) % n);
}

uint64_t bits(struct hostile *h)
{
	static const uint64_t sore[] = {
		0,	    1,		2,	    255,	256,
		257,	    1023,	1024,	    1025,	4095,
		4096,	    4097,	8192,	    65535,	65536,
		1000000,    1000001,	0x7fffffff, 0x80000000, 0xffffffff,
		0xfffffffe, 1ull << 32, 1ull << 63, ~0ull,
	};

	if (below(h, 3))
		return sore[below(h, sizeof(sore) / sizeof(sore[0]))];
	return next(&h->rng) >> below(h, 64);
}

bool going(const struct hostile *h)
{
	(void)h;
	return now_ms() < life_ends;
}

void hostile_attach(struct hostile *h, struct raw *r)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_ATTACH);
	bool wrong = false;
	int rc;

	/* A large pool now and then: quotas are there to be hit. */
	request.bytes = below(h, 4) ? 2 << 20 : (uint64_t)below(h, 300) << 20;
	request.features = below(h, 3) ? HOMA_SHM_CAN_PLACES : (uint32_t)bits(h);
	if (below(h, 2))
		request.features |= HOMA_SHM_CAN_BELL;
	if (below(h, 2)) {
		request.rings.submit = HOMA_SHM_SQ_MIN << below(h, 7);
		request.rings.complete = HOMA_SHM_CQ_MIN << below(h, 10);
		request.rings.release = HOMA_SHM_RELEASES_MIN << below(h, 11);
	}
	if (below(h, 50) == 0) {
		request.features |= HOMA_SHM_CAN_PLACES;
		request.rings.complete =
			HOMA_SHM_CQ_MAX + 1 + (uint32_t)bits(h) / 2;
		wrong = true;
	}
	rc = raw_attach_as(r, &request);
	if (!rc && wrong)
		raw_die("homad gave a ring of %u entries",
			request.rings.complete);
	r->mute = below(h, 2);
	if (rc == -ECONNREFUSED || rc == -ENOENT)
		raw_die("homad is gone: %s", strerror(-rc));
	if (rc)
		_exit(HOSTILE_REFUSED);
}

struct homa_sqe hostile_sqe(struct hostile *h, struct raw *r, int evil)
{
	static const uint32_t lengths[] = { 1,	  100,	 1500,	 4096,
					    5000, 70000, 300000, 1000000 };
	uint32_t length = lengths[below(h, below(h, 10) ? 5 : 8)];
	uint32_t begin = HOMA_SHM_SQS * HOMA_SHM_STAGE;
	uint32_t room = (uint32_t)r->answer.data_bytes - begin;
	struct homa_sqe sqe;

	/* Behind the stages, or in that of the first ring. */
	if (below(h, 2)) {
		begin = 0;
		room = HOMA_SHM_STAGE;
	}
	if (length > room)
		length = room;
	sqe = raw_sqe(r, h->ip, h->port, begin + below(h, room - length + 1),
		      length);
	if (length <= HOMA_SHM_COPY_MAX && below(h, 2))
		sqe.flags |= HOMA_SQE_COPY;
	while (evil-- > 0) {
		switch (below(h, 11)) {
		case 0:
			sqe.op = (uint8_t)below(h, below(h, 2) ? 6 : 256);
			break;
		case 1:
			sqe.flags = (uint8_t)bits(h);
			break;
		case 2:
			sqe.length = (uint32_t)bits(h);
			break;
		case 3:
			sqe.offset = (uint32_t)bits(h);
			break;
		case 4:
			sqe.segment = (uint16_t)bits(h);
			break;
		case 5:
			sqe.token = bits(h);
			break;
		case 6:
			sqe.token = below(h, r->token + 1);
			break;
		case 7:
			sqe.encap = (uint16_t)bits(h);
			break;
		case 8:
			sqe.ip[below(h, 16)] = (uint8_t)bits(h);
			break;
		case 9:
			sqe.port = (uint16_t)bits(h);
			break;
		case 10:
			sqe.cookie = bits(h);
			break;
		}
	}
	return sqe;
}

/* One life in a process; returns its status as wait() gives it. */
static int live(struct hostile *h, size_t kind)
{
	int64_t end;
	int status;
	pid_t pid;

	fflush(NULL);
	life_ends = now_ms() + h->ms;
	pid = fork();
	if (pid < 0)
		raw_die("fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		kinds[kind].live(h);
		_exit(0);
	}
	end = now_ms() + h->ms + PATIENCE_MS;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_ms() > end) {
			kill(pid, SIGKILL);
			raw_die("a life did not end: homad does not answer");
		}
		usleep(2000);
	}
	return status;
}

static void parse(const char *text, uint8_t ip[16])
{
	if (inet_pton(AF_INET, text, ip + 12) == 1)
		ip[10] = ip[11] = 0xff;
	else if (inet_pton(AF_INET6, text, ip) != 1)
		raw_die("%s is not an address", text);
}

/* Is the kind named @wanted, or does its name begin so, with a star behind? */
static bool is_wanted(size_t kind, const char *wanted)
{
	size_t n = strcspn(wanted, "*");

	return !strncmp(kinds[kind].name, wanted, n) &&
	       (wanted[n] || !kinds[kind].name[n]);
}

static size_t choose(struct hostile *h, const char *wanted)
{
	size_t kind;

	for (kind = 0; wanted && !is_wanted(kind, wanted);)
		if (++kind == KINDS)
			raw_die("no kind of life '%s'", wanted);
	do
		kind = below(h, KINDS);
	while (wanted && !is_wanted(kind, wanted));
	return kind;
}

static void one_life(uint64_t seed, unsigned long number, const char *wanted,
		     const char *ip, const char *port)
{
	struct hostile h = { .rng = seed * 1000003 + number };
	const char *far = getenv("HOMA_HOSTILE_FAR");
	size_t kind;
	int status;

	parse(ip, h.ip);
	h.has_far = far != NULL;
	if (far)
		parse(far, h.far);
	h.port = (uint16_t)atoi(port);
	h.ms = 20 + (int)below(&h, 200);
	kind = choose(&h, wanted);
	if (number % 100 == 0 || (wanted && !strchr(wanted, '*'))) {
		printf("life %lu: %s\n", number, kinds[kind].name);
		fflush(stdout);
	}
	status = live(&h, kind);
	lived[kind]++;
	/* Its own death is allowed: it plays with memory that homad may take. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == HOSTILE_REFUSED)
		refused++;
	else if (WIFEXITED(status) && WEXITSTATUS(status))
		raw_die("seed %llu, life %lu (%s) says it",
			(unsigned long long)seed, number, kinds[kind].name);
}

int main(int argc, char **argv)
{
	unsigned long number = 0;
	int64_t end;
	uint64_t seed;
	size_t i;

	if (argc < 5)
		raw_die("usage: hostile SEED SECONDS|life=N [KIND] IP PORT");
	signal(SIGPIPE, SIG_IGN);
	seed = strtoull(argv[1], NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	if (!strncmp(argv[2], "life=", 5)) {
		one_life(seed, strtoul(argv[2] + 5, NULL, 0),
			 argc > 5 ? argv[3] : NULL, argv[argc - 2],
			 argv[argc - 1]);
		return 0;
	}
	end = now_ms() + (int64_t)(atof(argv[2]) * 1000);
	while (now_ms() < end)
		one_life(seed, number++, argc > 5 ? argv[3] : NULL,
			 argv[argc - 2], argv[argc - 1]);
	printf("%lu lives, %lu refused:", number, refused);
	for (i = 0; i < KINDS; i++)
		printf(" %s=%lu", kinds[i].name, lived[i]);
	printf("\n");
	return 0;
}
