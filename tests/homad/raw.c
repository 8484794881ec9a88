// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* An attachment by the raw ABI; see raw.h. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "raw.h"

void raw_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

int raw_connect(void)
{
	const char *path = getenv("HOMA_SERVICE_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = 30 };
	int sock, rc;

	if (!path)
		raw_die("HOMA_SERVICE_SOCKET is not set");
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	/* A daemon that hangs must fail the test, not hang it. */
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!connect(sock, (struct sockaddr *)&to, sizeof(to)))
		return sock;
	rc = -errno;
	close(sock);
	return rc;
}

struct homa_ctl_request raw_request(enum homa_ctl_op op)
{
	struct homa_ctl_request request = {
		.magic = HOMA_SHM_MAGIC,
		.version = HOMA_SHM_VERSION,
		.op = (uint16_t)op,
		.name = "raw",
	};

	return request;
}

int raw_hear(int sock, struct homa_ctl_answer *answer, int *fds, int max)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * HOMA_CTL_ATTACH_FDS)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { answer, sizeof(*answer) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = max ? control.bytes : NULL,
			      .msg_controllen = max ? sizeof(control) : 0 };
	struct cmsghdr *c;
	ssize_t n;
	int i;

	memset(answer, 0, sizeof(*answer));
	for (i = 0; i < max; i++)
		fds[i] = -1;
	n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof(*answer))
		return n ? -EPROTO : -ECONNRESET;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		int count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c),
			       sizeof(int) * (size_t)(count < max ? count : max));
	}
	return answer->error;
}

int raw_ask(int sock, const struct homa_ctl_request *request,
	    struct homa_ctl_answer *answer, int *fds, int max)
{
	memset(answer, 0, sizeof(*answer));
	if (send(sock, request, sizeof(*request), MSG_NOSIGNAL) < 0)
		return -errno;
	return raw_hear(sock, answer, fds, max);
}

static void *map(int fd, size_t bytes)
{
	void *p;

	if (fd < 0 || !bytes)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Rings that do not lie where a line begins, or not in the memory, are homad's mistake. */
static void find_ring(struct raw *r, const struct homa_shm_place *place,
		      struct raw_ring *ring, size_t entry)
{
	uint64_t end = place->first + (uint64_t)place->entries * entry;

	if (ring->index || place->entry_bytes != entry ||
	    place->indices % HOMA_SHM_LINE || place->first % HOMA_SHM_LINE ||
	    end > r->answer.queues_bytes ||
	    place->indices + sizeof(*ring->index) >
		    sizeof(struct homa_shm_header) ||
	    place->first < sizeof(struct homa_shm_header))
		raw_die("kind %u, number %u: at %u, %u entries", place->kind,
			place->number, place->first, place->entries);
	ring->index = (struct homa_shm_ring *)((uint8_t *)r->q + place->indices);
	ring->first = (uint8_t *)r->q + place->first;
	ring->entries = place->entries;
}

static void find_rings(struct raw *r)
{
	const struct homa_shm_header *h = &r->q->h;
	const struct homa_shm_place *place;
	uint32_t i;

	r->places = (struct homa_shm_place *)((uint8_t *)r->q + h->places);
	r->num_places = h->num_places;
	for (i = 0; i < r->num_places; i++) {
		place = &r->places[i];
		if (place->kind == HOMA_SHM_SUBMIT)
			find_ring(r, place, &r->submit[place->number],
				  sizeof(struct homa_sqe));
		else if (place->kind == HOMA_SHM_COMPLETE)
			find_ring(r, place, &r->complete,
				  sizeof(struct homa_cqe));
		else
			find_ring(r, place, &r->release, sizeof(uint32_t));
	}
}

int raw_attach(struct raw *r, uint64_t pool_bytes)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_ATTACH);

	request.bytes = pool_bytes;
	request.features = HOMA_SHM_CAN_PLACES;
	return raw_attach_as(r, &request);
}

int raw_attach_as(struct raw *r, const struct homa_ctl_request *request)
{
	int i, rc;

	memset(r, 0, sizeof(*r));
	for (i = 0; i < (int)HOMA_CTL_ATTACH_FDS; i++)
		r->fd[i] = -1;
	r->sock = raw_connect();
	if (r->sock < 0)
		return r->sock;
	rc = raw_ask(r->sock, request, &r->answer, r->fd, HOMA_CTL_ATTACH_FDS);
	if (rc)
		return rc;
	r->q = map(r->fd[HOMA_CTL_FD_QUEUES], r->answer.queues_bytes);
	r->data = map(r->fd[HOMA_CTL_FD_DATA], r->answer.data_bytes);
	/* The application only reads it; perhaps it may no more than that. */
	r->pool = map(r->fd[HOMA_CTL_FD_POOL], r->answer.pool_bytes);
	if (!r->pool && r->fd[HOMA_CTL_FD_POOL] >= 0)
		r->pool = mmap(NULL, r->answer.pool_bytes, PROT_READ,
			       MAP_SHARED, r->fd[HOMA_CTL_FD_POOL], 0);
	if (!r->q || !r->data || !r->pool || r->pool == MAP_FAILED)
		return -ENOMEM;
	find_rings(r);
	return 0;
}

void raw_close(struct raw *r)
{
	int i;

	if (r->q)
		munmap(r->q, r->answer.queues_bytes);
	if (r->data)
		munmap(r->data, r->answer.data_bytes);
	if (r->pool && r->pool != MAP_FAILED)
		munmap(r->pool, r->answer.pool_bytes);
	for (i = 0; i < (int)HOMA_CTL_ATTACH_FDS; i++)
		if (r->fd[i] >= 0)
			close(r->fd[i]);
	if (r->sock >= 0)
		close(r->sock);
	r->sock = -1;
}

int raw_bind(struct raw *r, uint16_t port)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_BIND);
	struct homa_ctl_answer answer;

	request.port = port;
	return raw_ask(r->sock, &request, &answer, NULL, 0);
}

void raw_kick(struct raw *r)
{
	uint64_t one = 1;

	/* Full or closed: somebody else's affair. */
	if (write(r->fd[HOMA_CTL_FD_KICK], &one, sizeof(one)) < 0)
		return;
}

/* As abi/shm.h says, after the tail of @ring was stored. */
static void ring_bell(struct raw *r, unsigned int ring)
{
	uint32_t *bell = &r->submit[0].index->bell;

	if (ring && !r->mute && !__atomic_load_n(bell, __ATOMIC_SEQ_CST))
		__atomic_store_n(bell, 1, __ATOMIC_RELEASE);
}

bool raw_push(struct raw *r, unsigned int ring, const struct homa_sqe *sqe)
{
	const struct raw_ring *place = &r->submit[ring];
	struct homa_shm_ring *sq = place->index;
	uint32_t tail = __atomic_load_n(&sq->tail, __ATOMIC_RELAXED);
	uint32_t head = __atomic_load_n(&sq->head, __ATOMIC_ACQUIRE);

	if (tail - head >= place->entries)
		return false;
	if (r->q->h.sqs <= ring)
		__atomic_store_n(&r->q->h.sqs, ring + 1, __ATOMIC_SEQ_CST);
	((struct homa_sqe *)place->first)[tail & (place->entries - 1)] = *sqe;
	__atomic_store_n(&sq->tail, tail + 1, __ATOMIC_SEQ_CST);
	ring_bell(r, ring);
	if (__atomic_load_n(&r->q->h.need_kick, __ATOMIC_SEQ_CST))
		raw_kick(r);
	return true;
}

void raw_room(struct raw *r)
{
	struct homa_ctl_request request = raw_request(HOMA_CTL_SEGMENT);
	struct homa_ctl_answer answer;
	int fd;

	request.bytes = 1 << 20;
	if (raw_ask(r->sock, &request, &answer, &fd, 1) || answer.segment != 1)
		raw_die("no segment: %s", answer.text);
	close(fd);
}

struct homa_sqe raw_sqe(struct raw *r, const uint8_t ip[16], uint16_t port,
			uint32_t offset, uint32_t length)
{
	struct homa_sqe sqe = {
		.op = HOMA_SQE_REQUEST,
		.port = port,
		.length = length,
		.offset = offset,
		.cookie = r->token,
	};

	memcpy(sqe.ip, ip, 16);
	/* Low 16 bits below max_rpcs, and not 0 as a whole. */
	sqe.token = ((uint64_t)(r->token / r->answer.max_rpcs + 1) << 16) |
		    r->token % r->answer.max_rpcs;
	r->token++;
	return sqe;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ll + ts.tv_nsec / 1000000;
}

bool raw_next(struct raw *r, struct homa_cqe *cqe, int ms)
{
	struct homa_shm_ring *cq = r->complete.index;
	uint32_t head = __atomic_load_n(&cq->head, __ATOMIC_RELAXED);
	int64_t end = now_ms() + ms;

	while (__atomic_load_n(&cq->tail, __ATOMIC_ACQUIRE) == head) {
		if (now_ms() >= end)
			return false;
		usleep(200);
	}
	*cqe = ((struct homa_cqe *)
			r->complete.first)[head & (r->complete.entries - 1)];
	__atomic_store_n(&cq->head, head + 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->q->h.need_kick, __ATOMIC_SEQ_CST) &
	    HOMA_SHM_KICK_CONSUME)
		raw_kick(r);
	return true;
}

void raw_release(struct raw *r, const struct homa_cqe *cqe)
{
	struct homa_shm_ring *ring = r->release.index;
	uint32_t *released = r->release.first;
	uint32_t i, tail = ring->tail;

	for (i = 0; i < cqe->num_pages && i < HOMA_SHM_PAGES; i++)
		released[tail++ & (r->release.entries - 1)] = cqe->pages[i];
	__atomic_store_n(&ring->tail, tail, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&r->q->h.need_kick, __ATOMIC_SEQ_CST))
		raw_kick(r);
}

bool raw_evicted(struct raw *r, int ms)
{
	int64_t end = now_ms() + ms;

	do {
		struct pollfd fd = { .fd = r->sock, .events = POLLIN | POLLRDHUP };

		if (__atomic_load_n(&r->q->h.state, __ATOMIC_ACQUIRE) ==
		    HOMA_SHM_EVICTED)
			return true;
		if (poll(&fd, 1, 1) == 1 && (fd.revents & (POLLHUP | POLLRDHUP)))
			return true;
	} while (now_ms() < end);
	return false;
}
