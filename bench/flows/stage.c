// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A stage of a pipeline: it takes tuples from one connection, works on each, and hands them
 * on by another, in one direction only. The first stage makes the tuples, the last one
 * measures how long each was under way. All stages run on one machine, so its monotonic
 * clock is everybody's.
 *
 * Tuples wait in a buffer until there is room in the next connection, and with a batch time
 * until the oldest has waited that long. When the buffer is full, nothing more is taken in.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/tcp.h>

#include "flow_load.h"
#include "prng.h"

#define BUFFER (4 * FLOWS_MAX_SIZE)
#define REFUSED_US 5000
#define TICK_NS 100000000u

/* What a tuple begins with; the rest of its bytes are 0. */
struct tuple {
	uint64_t due_ns;
	uint64_t number;
};

_Static_assert(sizeof(struct tuple) == FLOWS_MIN_TUPLE, "the shortest tuple");

/**
 * struct stage - a stage
 * @config: its settings.
 * @result: what the last stage has measured; NULL in the others.
 * @in: the connection that tuples come from; -1 in the first stage.
 * @out: the connection that they go to; -1 in the last stage.
 * @epoll: the set of both.
 * @out_watched: @out is watched for room.
 * @in_watched: @in is watched.
 * @over: the next stage has gone; this one waits for a signal.
 * @in_len: the number of bytes in @part.
 * @part: the beginning of a tuple whose end has not come.
 * @out_len: the number of bytes in @buf.
 * @since_ns: the time since which the oldest of them wait.
 * @number: the number of the next tuple that is made, or that is expected.
 * @next_ns: open loop: the time at which the next tuple is due.
 * @opens_ns: the time at which the window opens; 0: no tuple has come.
 * @closes_ns: the time at which the window closes.
 * @rng: the source of random gaps.
 * @buf: tuples that are to be sent.
 */
struct stage {
	const struct flows_config *config;
	struct flows_result *result;
	int in, out, epoll;
	bool out_watched, in_watched, over;
	uint32_t in_len;
	uint8_t part[FLOWS_MAX_SIZE];
	uint32_t out_len;
	uint64_t since_ns;
	uint64_t number;
	uint64_t next_ns;
	uint64_t opens_ns, closes_ns;
	struct homa_prng rng;
	uint8_t buf[BUFFER];
};

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static bool has_room(const struct stage *stage)
{
	return BUFFER - stage->out_len >= stage->config->size;
}

static void append(struct stage *stage, const void *tuple, uint32_t n,
		   uint64_t now)
{
	if (!stage->out_len)
		stage->since_ns = now;
	memcpy(stage->buf + stage->out_len, tuple, n);
	stage->out_len += n;
}

/* ---- the first stage: tuples are made ---- */

static void make(struct stage *stage, uint64_t due, uint64_t now)
{
	uint8_t bytes[FLOWS_MAX_SIZE];
	struct tuple tuple = { .due_ns = due, .number = stage->number++ };

	memset(bytes, 0, stage->config->size);
	memcpy(bytes, &tuple, sizeof(tuple));
	append(stage, bytes, stage->config->size, now);
}

/* Makes as many tuples as there is room for, or as are due. */
static void make_all(struct stage *stage, uint64_t now)
{
	double rate = stage->config->rate;

	if (!stage->next_ns)
		stage->next_ns = now;
	while (has_room(stage) && (!rate || stage->next_ns <= now)) {
		make(stage, rate ? stage->next_ns : now, now);
		if (rate)
			stage->next_ns +=
				(uint64_t)homa_prng_exp(&stage->rng, 1e9 / rate);
	}
}

/* ---- the last stage: tuples are measured ---- */

static void measure(struct stage *stage, const uint8_t *bytes, uint64_t now)
{
	const struct flows_config *config = stage->config;
	struct flows_result *result = stage->result;
	struct tuple tuple;

	memcpy(&tuple, bytes, sizeof(tuple));
	if (!stage->opens_ns) {
		stage->opens_ns = now + config->warmup_ns;
		stage->closes_ns = stage->opens_ns + config->duration_ns;
	}
	result->all++;
	result->wrong += tuple.number != stage->number || tuple.due_ns > now;
	stage->number = tuple.number + 1;
	if (now < stage->opens_ns || now >= stage->closes_ns)
		return;
	result->requests++;
	result->bytes += config->size;
	homa_hist_record_n(&result->latency, now - tuple.due_ns, 1);
}

/* ---- all stages ---- */

/* Takes @n bytes in; what is less than a tuple waits for the rest. */
static void take(struct stage *stage, const uint8_t *at, uint32_t n, uint64_t now)
{
	uint32_t size = stage->config->size, piece;

	for (; n; at += piece, n -= piece) {
		piece = size - stage->in_len < n ? size - stage->in_len : n;
		memcpy(stage->part + stage->in_len, at, piece);
		stage->in_len += piece;
		if (stage->in_len < size)
			continue;
		stage->in_len = 0;
		flows_work(stage->config->work);
		if (stage->result)
			measure(stage, stage->part, now);
		else
			append(stage, stage->part, size, now);
	}
}

/* Receives no more than there is room for. Returns 0, or a negative errno. */
static int receive(struct stage *stage)
{
	uint8_t bytes[FLOWS_MAX_SIZE];
	uint32_t room = BUFFER - stage->out_len, most = sizeof(bytes);
	ssize_t n;

	if (!stage->result && room < 2 * stage->config->size)
		return 0;
	if (!stage->result && room - stage->config->size < most)
		most = room - stage->config->size;
	n = recv(stage->in, bytes, most, MSG_DONTWAIT);
	if (n <= 0)
		return !n ? -EPIPE : errno == EAGAIN ? 0 : -errno;
	take(stage, bytes, (uint32_t)n, flows_now());
	return 0;
}

static int watch(struct stage *stage, int fd, bool *watched, bool wanted,
		 uint32_t events)
{
	struct epoll_event event = { .events = wanted ? events : 0,
				     .data.fd = fd };

	if (fd < 0 || *watched == wanted)
		return 0;
	*watched = wanted;
	return epoll_ctl(stage->epoll, EPOLL_CTL_MOD, fd, &event) ? -errno : 0;
}

static bool is_due(const struct stage *stage, uint64_t now)
{
	return stage->out_len &&
	       (!has_room(stage) ||
		now - stage->since_ns >= stage->config->batch_ns);
}

/* Sends what is due. Returns 0, or a negative errno. */
static int emit(struct stage *stage, uint64_t now)
{
	bool full = false;
	ssize_t n;

	if (stage->out < 0 || stage->over)
		return 0;
	if (is_due(stage, now)) {
		n = send(stage->out, stage->buf, stage->out_len,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN) {
			/* The last stage has measured enough. */
			stage->over = true;
			return 0;
		}
		n = n < 0 ? 0 : n;
		stage->out_len -= (uint32_t)n;
		memmove(stage->buf, stage->buf + n, stage->out_len);
		full = stage->out_len != 0;
	}
	return watch(stage, stage->out, &stage->out_watched, full, EPOLLOUT);
}

/* Returns how long the stage may sleep, ns. */
static uint64_t sleep_ns(const struct stage *stage, uint64_t now)
{
	uint64_t until = now + TICK_NS, due;

	if (stage->over)
		return TICK_NS;
	if (stage->closes_ns && stage->closes_ns < until)
		until = stage->closes_ns;
	due = stage->since_ns + stage->config->batch_ns;
	if (stage->out_len && !stage->out_watched && due < until)
		until = due;
	if (stage->in < 0 && has_room(stage) && stage->next_ns < until)
		until = stage->next_ns;
	return until > now ? until - now : 0;
}

static int wait(struct stage *stage, uint64_t sleep)
{
	struct timespec time = { .tv_sec = (time_t)(sleep / FLOWS_NS_PER_S),
				 .tv_nsec = (long)(sleep % FLOWS_NS_PER_S) };
	struct epoll_event events[2];
	int rc = 0, n = epoll_pwait2(stage->epoll, events, 2, &time, NULL);

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n && !rc; i++)
		if (events[i].data.fd == stage->in)
			rc = receive(stage);
	return rc;
}

static int run(struct stage *stage)
{
	while (!ended) {
		uint64_t now = flows_now();
		int rc;

		if (stage->closes_ns && now >= stage->closes_ns)
			return 0;
		if (stage->in < 0 && !stage->over)
			make_all(stage, now);
		rc = emit(stage, now);
		if (!rc)
			rc = watch(stage, stage->in, &stage->in_watched,
				   stage->result ||
					   (!stage->over &&
					    BUFFER - stage->out_len >=
						    2 * stage->config->size),
				   EPOLLIN);
		if (!rc)
			rc = wait(stage, sleep_ns(stage, now));
		/* The stage before has gone. */
		if (rc == -EPIPE || rc == -ECONNRESET)
			return stage->result && !stage->closes_ns ? rc : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- connections ---- */

static socklen_t address_of(const struct sockaddr_storage *from, uint16_t port,
			    struct sockaddr_storage *addr)
{
	*addr = *from;
	if (addr->ss_family == AF_INET) {
		((struct sockaddr_in *)addr)->sin_port = htons(port);
		return sizeof(struct sockaddr_in);
	}
	((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
	return sizeof(struct sockaddr_in6);
}

/* Returns a socket, or a negative errno. */
static int open_socket(const struct sockaddr_storage *addr)
{
	int one = 1, fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return fd;
}

/* Connects to the next stage, which may start later. */
static int to_next(struct stage *stage)
{
	const struct flows_config *config = stage->config;
	uint64_t began = flows_now();
	struct sockaddr_storage addr;
	socklen_t len = address_of(&config->next, config->next_port, &addr);

	while (!ended) {
		int error, fd = open_socket(&addr);

		if (fd < 0)
			return fd;
		if (!connect(fd, (struct sockaddr *)&addr, len)) {
			stage->out = fd;
			return 0;
		}
		error = errno;
		close(fd);
		if (error != ECONNREFUSED ||
		    flows_now() - began > config->timeout_ns)
			return -error;
		usleep(REFUSED_US);
	}
	return -EINTR;
}

/* Waits for the stage before. */
static int from_last(struct stage *stage)
{
	const struct flows_config *config = stage->config;
	struct sockaddr_storage addr;
	socklen_t len = address_of(&config->addr, config->port, &addr);
	int fd = open_socket(&addr);

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 1)) {
		int error = errno;

		close(fd);
		return -error;
	}
	stage->in = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (stage->in < 0) {
		int error = errno;

		close(fd);
		return -error;
	}
	close(fd);
	return 0;
}

static int join(struct stage *stage, int fd)
{
	struct epoll_event event = { .data.fd = fd };

	if (fd < 0)
		return 0;
	return epoll_ctl(stage->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int prepare(struct stage *stage)
{
	int rc = stage->result ? 0 : to_next(stage);

	if (!rc && !stage->config->first)
		rc = from_last(stage);
	stage->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!rc && stage->epoll < 0)
		rc = -errno;
	if (!rc)
		rc = join(stage, stage->in);
	return rc ? rc : join(stage, stage->out);
}

static void release(struct stage *stage)
{
	const int fds[] = { stage->in, stage->out, stage->epoll };

	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(stage);
}

int flows_stage(const struct flows_config *config, struct flows_result *result)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct stage *stage = calloc(1, sizeof(*stage));
	int rc;

	if (!stage)
		return -ENOMEM;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	stage->config = config;
	stage->result = result;
	stage->in = stage->out = stage->epoll = -1;
	homa_prng_seed(&stage->rng, config->seed, 0);
	rc = prepare(stage);
	if (!rc)
		rc = run(stage);
	if (rc && !ended)
		fprintf(stderr, "homa-flows: the stage cannot go on: %s\n",
			strerror(-rc));
	if (result) {
		result->opened_ns = stage->opens_ns;
		result->window_ns = config->duration_ns;
		result->opened = 1;
	}
	release(stage);
	return ended ? 0 : rc;
}
