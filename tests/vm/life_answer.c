// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Two answers to one request, one after the other and at once: one of them reaches the client,
 * and each other one is EINVAL. The servers are of this process, so it knows the ids of requests
 * before they have been received.
 */
#include <pthread.h>
#include <stdatomic.h>
#include "life.h"

#define ANSWERERS 4
#define ROUNDS 60
/* More than one packet, so that the client acknowledges it when it has received it. */
#define LONG 70000u
/* Longer than a packet, so that it is only received when a thread has copied it. */
#define UNTAKEN LONG

/* struct answers - threads that answer one request at once. Written by: the check; @won: they,
 * too. */
struct answers {
	/* The server's socket, and what it received. */
	struct sock s;
	/* They begin when all are here. */
	pthread_barrier_t begin;
	/* The sum of the numbers of those who were told that their answer is sent. */
	atomic_int won;
	/* The number of them. */
	atomic_int winners;
};

/* struct answerer - one of them. Written by: the check. */
struct answerer {
	/* What they share. */
	struct answers *all;
	/* Its number, from 1 on. */
	unsigned int number;
	/* The thread. */
	pthread_t thread;
};

static int answer(const struct sock *s, const void *bytes, size_t length,
		  unsigned int flags, uint64_t cookie)
{
	struct homa_sendmsg_args args = { .id = s->args.id,
					  .flags = flags,
					  .completion_cookie = cookie };

	return (int)send_raw(s->fd, &s->from, size_of(family), bytes, length,
			     &args, 0);
}

static int reject(const struct sock *s)
{
	return answer(s, NULL, 0, HOMA_SENDMSG_REJECT, ECANCELED);
}

/* A server; it does not ask for acks while the check lasts. */
static struct sock begin(int port)
{
	struct sock s = open_sock(family, 0);

	CHECK(!sysctl_set("need_ack_us", 10000000), "need_ack_us");
	server = address(family, ip, port);
	bind_sock(&s, port);
	return s;
}

static void done(struct sock *s)
{
	close_sock(s);
	sysctl_set("need_ack_us", 2000);
}

/* A client that asks the server. */
static struct sock ask(size_t size)
{
	struct sock c = open_sock(family, 0);

	request(&c, &server, buf, size, 1, 0);
	return c;
}

void life_second_answer(void)
{
	struct sock s = begin(4040), c = ask(1);

	CHECK(receive(&s, 0, 0) == 1, "no request");
	memset(buf, 'a', LONG);
	CHECK(!answer(&s, buf, LONG, 0, 0), "the answer");
	memset(buf, 'b', LONG);
	FAILS(answer(&s, "b", 1, 0, 0), EINVAL);
	FAILS(answer(&s, buf, LONG, 0, 0), EINVAL);
	FAILS(reject(&s), EINVAL);
	CHECK(receive(&c, 0, 0) == LONG, "no response");
	CHECK(c.region[c.args.bpage_offsets[0]] == 'a', "another answer");
	close_sock(&c);
	c = ask(1);
	CHECK(receive(&s, 0, 0) == 1, "no request");
	CHECK(!reject(&s), "the rejection");
	FAILS(receive(&c, 0, 0), ECANCELED);
	close_sock(&c);
	done(&s);
}

static void *answer_too(void *arg)
{
	static _Thread_local unsigned char bytes[LONG];
	struct answerer *me = arg;
	struct answers *all = me->all;

	memset(bytes, (int)me->number, LONG);
	pthread_barrier_wait(&all->begin);
	errno = 0;
	if (!answer(&all->s, bytes, LONG, 0, 0)) {
		atomic_fetch_add(&all->won, (int)me->number);
		atomic_fetch_add(&all->winners, 1);
	} else {
		CHECK(errno == EINVAL, "not EINVAL");
	}
	return NULL;
}

void life_answers_at_once(void)
{
	struct answers all = { 0 };
	struct answerer by[ANSWERERS];
	struct iovec iov[HOMA_MAX_BPAGES];
	int i, k, round;
	struct sock c;

	all.s = begin(4041);
	for (round = 0; round < ROUNDS / slowness(); round++) {
		all.won = 0;
		all.winners = 0;
		pthread_barrier_init(&all.begin, NULL, ANSWERERS);
		c = ask(1);
		CHECK(receive(&all.s, 0, 0) == 1, "no request");
		for (i = 0; i < ANSWERERS; i++) {
			by[i].all = &all;
			by[i].number = (unsigned int)i + 1;
			CHECK(!pthread_create(&by[i].thread, NULL, answer_too,
					      &by[i]),
			      "thread");
		}
		for (i = 0; i < ANSWERERS; i++)
			pthread_join(by[i].thread, NULL);
		CHECK(all.winners == 1, "round %d: %d answers were sent", round,
		      all.winners);
		CHECK(receive(&c, 0, 0) == LONG, "round %d", round);
		for (i = 0; i < pieces(&c, LONG, iov); i++)
			for (k = 0; k < (int)iov[i].iov_len; k++)
				CHECK(((char *)iov[i].iov_base)[k] == all.won,
				      "round %d: byte %d is another one's",
				      round, k);
		close_sock(&c);
	}
	done(&all.s);
}

/* struct rejecter - a thread that rejects a request which was not received yet. */
struct rejecter {
	/* The server's socket, with the id and the client's address. Written by: the check. */
	struct sock s;
	/* True when the request was received. Written by: the check. */
	atomic_bool received;
	/* True if the last rejection was no error. Written by: the thread. */
	bool rejected;
};

static void *reject_early(void *arg)
{
	struct rejecter *r = arg;

	while (!r->rejected && !atomic_load(&r->received))
		r->rejected = !reject(&r->s);
	return NULL;
}

/* Who rejects a request before it was received takes the answer of nobody else away. */
void life_early_rejection(void)
{
	struct sock c, s = begin(4042);
	struct rejecter r = { 0 };
	pthread_t thread;
	bool answered;
	int round;

	for (round = 0; round < 5 * ROUNDS / slowness(); round++) {
		socklen_t size = sizeof(r.s.from);
		ssize_t n;

		c = open_sock(family, 0);
		r.s = s;
		r.s.args.id = request(&c, &server, buf, UNTAKEN, 1, 0) ^ 1;
		/* It comes from the address that it goes to. */
		CHECK(!getsockname(c.fd, &r.s.from.sa, &size), "getsockname");
		size = r.s.from.in4.sin_port;
		r.s.from = server;
		r.s.from.in4.sin_port = (in_port_t)size;
		/* What is rejected before it has come is taken for one that has ended. */
		CHECK(readable(s.fd, 60000), "no request");
		r.received = false;
		r.rejected = false;
		CHECK(!pthread_create(&thread, NULL, reject_early, &r), "thread");
		CHECK(receive(&s, 0, 0) == UNTAKEN, "no request");
		answered = !answer(&s, buf, LONG, 0, 0);
		atomic_store(&r.received, true);
		pthread_join(thread, NULL);
		n = receive(&c, 0, 0);
		/* If both were no error, the client has acknowledged the rejection, which was
		 * first; nothing else can be acknowledged. */
		CHECK(answered || r.rejected, "round %d: neither", round);
		if (r.rejected)
			CHECK(n == -1 && errno == ECANCELED, "round %d: %zd",
			      round, n);
		else
			CHECK(n == LONG, "round %d: no answer", round);
		close_sock(&c);
	}
	done(&s);
}

/* ---- no way back ---- */

#define TRACING "/sys/kernel/tracing/"
#define GONE "10.77.0.1"

static void shell(const char *command)
{
	CHECK(!system(command), "%s", command);
}

/* Begins to trace look-ups in routing tables, or ends, and returns how many there were until now
 * of GONE for packets of Homa's. */
static int look_ups(bool on)
{
	char line[512];
	int n = 0;
	FILE *f;

	if (write_file(TRACING "set_event", on ? "fib:fib_table_lookup" : ""))
		skip("there is no tracepoint fib:fib_table_lookup");
	f = fopen(TRACING "trace", "r");
	CHECK(f, "trace");
	while (fgets(line, sizeof(line), f))
		n += strstr(line, " proto 146 ") && strstr(line, "-> " GONE "/");
	fclose(f);
	return n;
}

/* A short answer to an address that has gone is looked for as often as a longer one: once. */
void life_no_way_back(void)
{
	const size_t sizes[] = { 1, 1000 };
	union address from = address(AF_INET, GONE, 0);
	struct sock c, s = begin(4043);
	int least[ARRAY_SIZE(sizes)] = { 1000, 1000 }, i, n;

	if (family != AF_INET)
		skip("counts IPv4's");
	/* The client asks for nothing again, so nothing else goes to it. */
	sysctl_set("resend_ticks", 10000);
	/* Others may be looking for it, too, so the least number counts. */
	for (i = 0; i < 10; i++) {
		shell("ip addr add " GONE "/32 dev lo");
		c = open_sock(family, 0);
		CHECK(!bind(c.fd, &from.sa, size_of(family)), "bind");
		request(&c, &server, "q", 1, 1, 0);
		CHECK(receive(&s, 0, 0) == 1, "no request");
		shell("ip addr del " GONE "/32 dev lo");
		n = look_ups(true);
		CHECK(!answer(&s, buf, sizes[i % 2], 0, 0), "answer");
		n = look_ups(false) - n;
		if (n < least[i % 2])
			least[i % 2] = n;
		close_sock(&c);
	}
	CHECK(least[0] && least[0] == least[1],
	      "%d look-ups, for a longer one %d", least[0], least[1]);
	sysctl_set("resend_ticks", 0);
	done(&s);
}
