// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * One rule of the shared memory broken once: the attachment that does it ends
 * if the rule is one that libhoma cannot break by mistake, lives on otherwise;
 * a second attachment of the same process notices nothing.
 *
 *	rules list
 *	rules NAME IP PORT	an echo server
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "raw.h"

enum { WAIT_MS = 20000, OWN_PORT = 4001 };

static uint8_t server_ip[16];
static uint16_t server_port;

static struct homa_sqe proper(struct raw *r)
{
	return raw_sqe(r, server_ip, server_port, 0, 100);
}

/* An echo, so that homad has looked at everything that came before. */
static void echo(struct raw *r, const char *who)
{
	struct homa_sqe sqe = proper(r);
	struct homa_cqe cqe;

	memset(r->data, 7, 100);
	if (!raw_push(r, 0, &sqe))
		raw_die("%s: the ring is full", who);
	do {
		if (!raw_next(r, &cqe, WAIT_MS))
			raw_die("%s: no completion", who);
	} while (cqe.token != sqe.token || cqe.kind == HOMA_CQE_FREE);
	if (cqe.kind != HOMA_CQE_RESPONSE || cqe.length != 100 ||
	    cqe.num_pages != 1 || memcmp(r->pool + cqe.pages[0], r->data, 100))
		raw_die("%s: kind %u, error %u, length %u", who, cqe.kind,
			cqe.error, cqe.length);
	raw_release(r, &cqe);
}

static void push(struct raw *r, const struct homa_sqe *sqe)
{
	if (!raw_push(r, 0, sqe))
		raw_die("the ring is full");
}

static void tail_beyond(struct raw *r)
{
	r->q->h.sq[0].tail += HOMA_SHM_SQ_ENTRIES + 1;
}

static void tail_back(struct raw *r)
{
	echo(r, "before");
	r->q->h.sq[0].tail--;
}

static void tail_of_last_ring(struct raw *r)
{
	r->q->h.sqs = HOMA_SHM_SQS;
	r->q->h.sq[HOMA_SHM_SQS - 1].tail = 0x80000000;
}

static void consumer_ahead(struct raw *r)
{
	struct homa_sqe sqe = proper(r);

	r->q->h.cq.head += 1;
	push(r, &sqe);
}

static void release_beyond(struct raw *r)
{
	r->q->h.release.tail += HOMA_SHM_RELEASES + 1;
}

static void release(struct raw *r, uint32_t page)
{
	struct homa_cqe cqe = { .num_pages = 1, .pages = { page } };

	raw_release(r, &cqe);
}

static void release_nothing_out(struct raw *r)
{
	release(r, 65536);
}

static void release_no_page(struct raw *r)
{
	release(r, 4711);
}

static void release_outside(struct raw *r)
{
	release(r, (uint32_t)r->answer.pool_bytes);
}

static void release_twice(struct raw *r)
{
	struct homa_sqe sqe = proper(r);
	struct homa_cqe cqe;

	push(r, &sqe);
	do {
		if (!raw_next(r, &cqe, WAIT_MS))
			raw_die("no response");
	} while (cqe.kind == HOMA_CQE_FREE);
	raw_release(r, &cqe);
	raw_release(r, &cqe);
}

#define SPOILED(name, how)                       \
	static void name(struct raw *r)          \
	{                                        \
		struct homa_sqe sqe = proper(r); \
		how;                             \
		push(r, &sqe);                   \
	}

SPOILED(op_zero, sqe.op = 0)
SPOILED(op_unknown, sqe.op = HOMA_SQE_REJECT + 1)
SPOILED(op_far, sqe.op = 255)
SPOILED(length_zero, sqe.length = 0)
SPOILED(length_long, sqe.length = 1000001)
SPOILED(length_huge, sqe.length = 0xffffffff)
SPOILED(offset_end, sqe.offset = (uint32_t)r->answer.data_bytes - 99)
SPOILED(offset_in_a_stage_not_in_use, sqe.offset = 3 * HOMA_SHM_STAGE)
SPOILED(offset_wraps, sqe.offset = 0xffffffff - 50)
SPOILED(segment_none, sqe.segment = 1)
SPOILED(segment_far, sqe.segment = 65535)
SPOILED(copy_long, sqe.length = HOMA_SHM_COPY_MAX + 1; sqe.flags = HOMA_SQE_COPY)
SPOILED(token_zero, sqe.token = 0)
SPOILED(token_range, sqe.token = 1 << 16 | 0xffff)
SPOILED(reply_token_range, sqe.op = HOMA_SQE_REPLY; sqe.token = 1 << 16 | 0xffff)
SPOILED(reply_length_zero, sqe.op = HOMA_SQE_REPLY; sqe.length = 0)
SPOILED(abort_errno, sqe.op = HOMA_SQE_ABORT; sqe.length = 5000)
SPOILED(reject_errno_zero, sqe.op = HOMA_SQE_REJECT; sqe.length = 0)
SPOILED(reject_errno_long, sqe.op = HOMA_SQE_REJECT; sqe.length = 512)
SPOILED(reject_token_zero, sqe.op = HOMA_SQE_REJECT; sqe.length = 1; sqe.token = 0)
SPOILED(reject_token_range, sqe.op = HOMA_SQE_REJECT; sqe.length = 1;
	sqe.token = 1 << 16 | 0xffff)
/* Nobody's: possible after a client gave up. */
SPOILED(reject_of_nobody, sqe.op = HOMA_SQE_REJECT; sqe.token = 5 << 16)
/* A token of our own request is none of a request that came. */
SPOILED(reject_of_own, sqe.op = HOMA_SQE_REJECT)
SPOILED(reply_to_nobody, sqe.op = HOMA_SQE_REPLY; sqe.token = 5 << 16)
SPOILED(abort_of_nobody, sqe.op = HOMA_SQE_ABORT; sqe.length = 0)

/* Both are in the ring before homad can look. */
static void token_twice(struct raw *r)
{
	struct homa_shm_ring *sq = &r->q->h.sq[0];
	struct homa_sqe sqe = proper(r);

	r->q->sqe[0][0] = sqe;
	r->q->sqe[0][1] = sqe;
	__atomic_store_n(&sq->tail, sq->tail + 2, __ATOMIC_SEQ_CST);
}

/* The next two completions that are not FREE. */
static void next_two(struct raw *r, struct homa_cqe *cqe)
{
	int i = 0;

	while (i < 2) {
		if (!raw_next(r, &cqe[i], WAIT_MS))
			raw_die("no completion");
		if (cqe[i].kind != HOMA_CQE_FREE)
			i++;
	}
}

/* The same number under two names: the second request fails, the first does not. */
static void number_open(struct raw *r)
{
	struct homa_shm_ring *sq = &r->q->h.sq[0];
	struct homa_sqe sqe = raw_sqe(r, server_ip, server_port, 0, 100000);
	struct homa_cqe cqe[2];
	int response;

	raw_room(r);
	sqe.segment = 1;
	sqe.flags |= HOMA_SQE_NUMBERED;
	r->q->sqe[0][0] = sqe;
	sqe.token ^= 1;
	r->q->sqe[0][1] = sqe;
	__atomic_store_n(&sq->tail, sq->tail + 2, __ATOMIC_SEQ_CST);
	raw_kick(r);
	next_two(r, cqe);
	response = cqe[1].kind == HOMA_CQE_RESPONSE;
	if (cqe[response].kind != HOMA_CQE_RESPONSE ||
	    cqe[response].length != 100000 ||
	    cqe[!response].kind != HOMA_CQE_FAILED ||
	    cqe[!response].error != EINVAL || cqe[!response].token != sqe.token)
		raw_die("kinds %u %u, errors %u %u", cqe[0].kind, cqe[1].kind,
			cqe[0].error, cqe[1].error);
	raw_release(r, &cqe[response]);
}

/* A request to ourselves: with which id does it arrive? */
static uint64_t id_there(struct raw *r, uint8_t flags, uint32_t length)
{
	struct homa_sqe sqe = raw_sqe(r, server_ip, OWN_PORT, 0, length);
	struct homa_sqe reply = { .op = HOMA_SQE_REPLY, .length = 1 };
	struct homa_cqe cqe[2];
	uint64_t hash;

	sqe.flags |= flags;
	sqe.segment = length > HOMA_SHM_COPY_MAX;
	push(r, &sqe);
	do {
		if (!raw_next(r, &cqe[0], WAIT_MS))
			raw_die("no request");
	} while (cqe[0].kind == HOMA_CQE_FREE);
	raw_release(r, &cqe[0]);
	reply.token = cqe[0].token;
	push(r, &reply);
	do {
		if (!raw_next(r, &cqe[1], WAIT_MS))
			raw_die("no response");
	} while (cqe[1].kind == HOMA_CQE_FREE);
	raw_release(r, &cqe[1]);
	if (cqe[0].kind != HOMA_CQE_REQUEST || cqe[1].kind != HOMA_CQE_RESPONSE)
		raw_die("kinds %u %u", cqe[0].kind, cqe[1].kind);
	if (!flags) {
		if (cqe[0].id != 2 * sqe.token + 1)
			raw_die("id %llx of token %llx",
				(unsigned long long)cqe[0].id,
				(unsigned long long)sqe.token);
		return 0;
	}
	/* The number is in the lower bits, and the hash in the upper ones. */
	hash = (cqe[0].id ^ 1) - 2 * (sqe.token >> 16);
	if (cqe[0].id != (cqe[1].id ^ 1) ||
	    hash % ((uint64_t)2 << HOMA_SHM_NUMBER_BITS) || !hash)
		raw_die("id %llx, %llx there", (unsigned long long)cqe[1].id,
			(unsigned long long)cqe[0].id);
	return hash;
}

static void ids_of_ours(struct raw *r)
{
	uint64_t hash;

	if (raw_bind(r, OWN_PORT))
		raw_die("cannot bind");
	raw_room(r);
	hash = id_there(r, HOMA_SQE_NUMBERED, 100);
	if (hash != id_there(r, HOMA_SQE_NUMBERED, 100000))
		raw_die("another hash of the same address");
	id_there(r, 0, 100);
	id_there(r, 0, 100000);
}

/* The next completion that is not FREE. */
static struct homa_cqe next(struct raw *r)
{
	struct homa_cqe cqe;

	do {
		if (!raw_next(r, &cqe, WAIT_MS))
			raw_die("no completion");
	} while (cqe.kind == HOMA_CQE_FREE);
	return cqe;
}

/* A request to ourselves, short or through the engine, is rejected: once. */
static void reject_one(struct raw *r, uint32_t length)
{
	struct homa_sqe sqe = raw_sqe(r, server_ip, OWN_PORT, 0, length);
	struct homa_sqe reject = { .op = HOMA_SQE_REJECT, .length = 511 };
	struct homa_sqe reply = { .op = HOMA_SQE_REPLY, .length = 1 };
	struct homa_cqe cqe;

	sqe.segment = length > HOMA_SHM_COPY_MAX;
	push(r, &sqe);
	cqe = next(r);
	if (cqe.kind != HOMA_CQE_REQUEST)
		raw_die("kind %u", cqe.kind);
	raw_release(r, &cqe);
	reply.token = reject.token = cqe.token;
	push(r, &reject);
	push(r, &reject);
	push(r, &reply);
	cqe = next(r);
	if (cqe.kind != HOMA_CQE_FAILED || cqe.error != 511 ||
	    cqe.token != sqe.token || cqe.num_pages)
		raw_die("kind %u, error %u", cqe.kind, cqe.error);
}

static void rejected(struct raw *r)
{
	if (!(r->q->h.features & HOMA_SHM_CAN_REJECT))
		raw_die("homad does not say that it can");
	if (raw_bind(r, OWN_PORT))
		raw_die("cannot bind");
	raw_room(r);
	reject_one(r, 100);
	reject_one(r, 100000);
}

static void alive_of_nobody(struct raw *r)
{
	static const uint64_t tokens[] = { 0, 5 << 16, 1 << 16 | 0xffff, ~0ull,
					   1 };
	struct homa_ctl_request request = raw_request(HOMA_CTL_ALIVE);
	struct homa_ctl_answer answer;
	size_t i;

	for (i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		request.bytes = tokens[i];
		if (raw_ask(r->sock, &request, &answer, NULL, 0) ||
		    answer.error || answer.total)
			raw_die("token %llx: error %d, %u",
				(unsigned long long)tokens[i], answer.error,
				answer.total);
	}
}

static void number_beyond(struct raw *r)
{
	struct homa_sqe sqe = proper(r);

	sqe.flags |= HOMA_SQE_NUMBERED;
	sqe.token = (HOMA_SHM_NUMBERS_AHEAD - 1) << 16;
	push(r, &sqe);
	echo(r, "the last number");
	/* Two requests were submitted, so there are four numbers more; then eight. */
	sqe.token = (HOMA_SHM_NUMBERS_AHEAD + 3) << 16 |
		    77; /* a place that echo() does not use */
	push(r, &sqe);
	echo(r, "the last number of three requests");
	sqe.token = (HOMA_SHM_NUMBERS_AHEAD + 8) << 16 | 1;
	push(r, &sqe);
}

static void no_rings(struct raw *r)
{
	r->q->h.sqs = 0;
}

static void all_rings(struct raw *r)
{
	r->q->h.sqs = 0xffffffff;
}

static void header_spoiled(struct raw *r)
{
	r->q->h.magic = 0;
	r->q->h.version = 77;
	r->q->h.bytes = 1;
	r->q->h.armed = 0xffffffff;
	r->q->h.sq[0].head += 1000;
	r->q->h.sq[0].head -= 1000;
}

static const struct {
	const char *name;
	void (*run)(struct raw *r);
	bool lives;
} rules[] = {
#define ENDS(name) { #name, name, false }
#define LIVES(name) { #name, name, true }
	ENDS(tail_beyond),
	ENDS(tail_back),
	ENDS(tail_of_last_ring),
	ENDS(consumer_ahead),
	ENDS(release_beyond),
	ENDS(release_nothing_out),
	ENDS(release_no_page),
	ENDS(release_outside),
	ENDS(release_twice),
	ENDS(op_zero),
	ENDS(op_unknown),
	ENDS(op_far),
	ENDS(length_zero),
	ENDS(length_long),
	ENDS(length_huge),
	ENDS(offset_end),
	ENDS(offset_in_a_stage_not_in_use),
	ENDS(offset_wraps),
	ENDS(segment_none),
	ENDS(segment_far),
	ENDS(copy_long),
	ENDS(token_zero),
	ENDS(token_range),
	ENDS(token_twice),
	ENDS(reply_token_range),
	ENDS(reply_length_zero),
	ENDS(abort_errno),
	ENDS(reject_errno_zero),
	ENDS(reject_errno_long),
	ENDS(reject_token_zero),
	ENDS(reject_token_range),
	LIVES(reject_of_nobody),
	LIVES(reject_of_own),
	LIVES(rejected),
	LIVES(alive_of_nobody),
	LIVES(reply_to_nobody),
	LIVES(abort_of_nobody),
	LIVES(no_rings),
	LIVES(all_rings),
	LIVES(header_spoiled),
	ENDS(number_beyond),
	LIVES(number_open),
	LIVES(ids_of_ours),
};

static void run(size_t i)
{
	struct raw bystander, r;

	if (raw_attach(&bystander, 2 << 20) || raw_attach(&r, 2 << 20))
		raw_die("cannot attach: %s", r.answer.text);
	echo(&bystander, "bystander before");
	rules[i].run(&r);
	raw_kick(&r);
	if (rules[i].lives) {
		echo(&r, rules[i].name);
		if (raw_evicted(&r, 0))
			raw_die("%s ended the attachment", rules[i].name);
	} else {
		struct pollfd fd = { .fd = r.sock, .events = POLLIN };
		char byte;

		if (!raw_evicted(&r, WAIT_MS))
			raw_die("%s did not end the attachment", rules[i].name);
		if (r.q->h.state != HOMA_SHM_EVICTED)
			raw_die("state %u after %s", r.q->h.state, rules[i].name);
		if (poll(&fd, 1, WAIT_MS) != 1 || recv(r.sock, &byte, 1, 0) > 0)
			raw_die("the connection lives on after %s",
				rules[i].name);
	}
	echo(&bystander, "bystander after");
	raw_close(&r);
	echo(&bystander, "bystander at the end");
	raw_close(&bystander);
}

int main(int argc, char **argv)
{
	size_t i, n = sizeof(rules) / sizeof(rules[0]);

	if (argc == 2 && !strcmp(argv[1], "list")) {
		for (i = 0; i < n; i++)
			printf("%s\n", rules[i].name);
		return 0;
	}
	if (argc != 4)
		raw_die("usage: rules list | NAME IP PORT");
	if (inet_pton(AF_INET, argv[2], server_ip + 12) == 1)
		server_ip[10] = server_ip[11] = 0xff;
	else if (inet_pton(AF_INET6, argv[2], server_ip) != 1)
		raw_die("%s is not an address", argv[2]);
	server_port = (uint16_t)atoi(argv[3]);
	for (i = 0; i < n; i++)
		if (!strcmp(rules[i].name, argv[1])) {
			run(i);
			printf("ok\n");
			return 0;
		}
	raw_die("no rule '%s'", argv[1]);
}
