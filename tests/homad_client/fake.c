// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* See fake.h. Whatever goes wrong here is the test's mistake and ends it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "fake.h"
#include "fake_parts.h"
#include "fake_queues.h"

#define WAIT_TRIES 5000000

static int channel(int *write_end)
{
	int fds[2];

	must(!pipe2(fds, O_CLOEXEC | O_NONBLOCK));
	if (*write_end >= 0)
		close(*write_end);
	*write_end = fds[1];
	return fds[0];
}

static void say(struct fake *f, struct homa_ctl_answer *a, int *fds, u32 num)
{
	a->version = f->version ? f->version : HOMA_SHM_VERSION + f->minor;
	/* Before there was a table, and before there were rings in an answer. */
	fake_answer_of(f->conn, a,
		       f->former ? offsetof(struct homa_ctl_answer, rings) :
				   sizeof(*a),
		       fds, num);
}

static void forget_memory(struct fake *f)
{
	u32 i;

	if (!f->q)
		return;
	munmap(f->q, f->queues_bytes);
	munmap(f->pool, f->pool_bytes);
	for (i = 0; i < f->segs; i++)
		munmap(f->seg[i], f->seg_bytes[i]);
	f->q = NULL;
	f->segs = 0;
}

static void attach(struct fake *f, const struct homa_ctl_request *r,
		   struct homa_ctl_answer *a)
{
	int fds[HOMA_CTL_ATTACH_FDS];

	memcpy(f->name, r->name, sizeof(f->name));
	if (f->refuse || f->version) {
		a->error = f->refuse ? f->refuse : -EPROTONOSUPPORT;
		snprintf(a->text, sizeof(a->text), "%s", f->text ? f->text : "");
		say(f, a, NULL, 0);
		return;
	}
	forget_memory(f);
	fds[HOMA_CTL_FD_QUEUES] = fake_queues(f);
	fds[HOMA_CTL_FD_DATA] = fake_memory(&f->seg[0], FAKE_DATA);
	fds[HOMA_CTL_FD_POOL] = fake_memory(&f->pool, FAKE_POOL);
	f->seg_bytes[0] = FAKE_DATA;
	f->segs = 1;
	fds[HOMA_CTL_FD_WAKE] = channel(&f->wake_fd);
	if (f->kick_fd >= 0)
		close(f->kick_fd);
	f->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fds[HOMA_CTL_FD_KICK] = dup(f->kick_fd);
	memset(f->sq_head, 0, sizeof(f->sq_head));
	f->cq_tail = f->release_head = 0;
	memset(f->out, 0, sizeof(f->out));
	a->port = 40000;
	a->encap = 54321;
	memcpy(a->ip, (u8[16]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	a->queues_bytes = f->queues_bytes;
	a->data_bytes = FAKE_DATA;
	a->pool_bytes = f->pool_bytes = FAKE_POOL;
	a->max_rpcs = f->max_rpcs ? f->max_rpcs : 1000;
	a->max_segments = f->max_segments ? f->max_segments : 4;
	/* Before whoever gets the answer looks. */
	__atomic_fetch_add(&f->attaches, 1, __ATOMIC_SEQ_CST);
	say(f, a, fds, HOMA_CTL_ATTACH_FDS);
}

/* homad stands still for a while. */
static void stand_still(struct fake *f, u16 op)
{
	if (op != (f->hold_op ? f->hold_op : HOMA_CTL_ATTACH))
		return;
	__atomic_store_n(&f->held, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&f->hold, __ATOMIC_SEQ_CST))
		usleep(1000);
}

/* The connection ends instead of an answer. */
static bool hang_up(struct fake *f, u16 op)
{
	if (op != (f->hang_up_op ? f->hang_up_op : HOMA_CTL_SEGMENT) ||
	    !__atomic_load_n(&f->hang_ups, __ATOMIC_SEQ_CST))
		return false;
	usleep(f->hang_up_us);
	shutdown(f->conn, SHUT_RDWR);
	__atomic_fetch_sub(&f->hang_ups, 1, __ATOMIC_SEQ_CST);
	return true;
}

/* As an answer to a former question that nobody waited for. */
static bool be_strange(struct fake *f, struct homa_ctl_answer *a)
{
	if (a->op != f->hang_up_op ||
	    !__atomic_load_n(&f->strange, __ATOMIC_SEQ_CST))
		return false;
	__atomic_fetch_sub(&f->strange, 1, __ATOMIC_SEQ_CST);
	a->op = HOMA_CTL_METRICS;
	say(f, a, NULL, 0);
	return true;
}

/* Three records follow, it says. After the first of them comes something else, and then what would
 * be taken for a refusal by who waits for an answer. */
static bool cut_records(struct fake *f, struct homa_ctl_answer *a)
{
	size_t size = a->op == HOMA_CTL_RPCS ? sizeof(struct homa_ctl_rpc) :
					       sizeof(struct homa_ctl_metric);
	u8 record[sizeof(struct homa_ctl_metric)] = { 0 };
	int error = -EPERM;

	if (a->op != HOMA_CTL_RPCS && a->op != HOMA_CTL_METRICS)
		return false;
	if (!__atomic_load_n(&f->cut, __ATOMIC_SEQ_CST))
		return false;
	__atomic_fetch_sub(&f->cut, 1, __ATOMIC_SEQ_CST);
	a->total = 3;
	say(f, a, NULL, 0);
	must(send(f->conn, record, size, MSG_NOSIGNAL) > 0);
	must(send(f->conn, record, 1, MSG_NOSIGNAL) > 0);
	memcpy(record, &error, sizeof(error));
	must(send(f->conn, record, size, MSG_NOSIGNAL) > 0 || errno == EPIPE);
	return true;
}

static void control(struct fake *f, const struct homa_ctl_request *r)
{
	struct homa_ctl_answer a = { .op = r->op };
	int fd = -1;

	must(r->op < HOMA_ARRAY_SIZE(f->questions));
	/* Any of the same major version, but once there was only this one. */
	must(r->version == 1 || !f->former);
	__atomic_fetch_add(&f->questions[r->op], 1, __ATOMIC_SEQ_CST);
	stand_still(f, r->op);
	if (hang_up(f, r->op) || be_strange(f, &a) || cut_records(f, &a))
		return;
	switch (r->op) {
	case HOMA_CTL_ATTACH:
		attach(f, r, &a);
		return;
	case HOMA_CTL_BIND:
	case HOMA_CTL_LISTEN:
		if (r->port == 13) {
			a.error = -EPERM;
			snprintf(a.text, sizeof(a.text), "port 13 is not yours");
		} else if (r->port == 14) {
			a.error = -EADDRINUSE;
			snprintf(a.text, sizeof(a.text),
				 "port 14 is another handle's");
		}
		if (r->op == HOMA_CTL_LISTEN)
			f->listen = r->bytes;
		f->bound = a.port = r->port;
		__atomic_fetch_add(&f->binds, 1, __ATOMIC_SEQ_CST);
		break;
	case HOMA_CTL_ROUTE:
		a.error = f->unreachable && r->ip[15] == f->unreachable ?
				  -EHOSTUNREACH :
				  0;
		__atomic_fetch_add(&f->routes, 1, __ATOMIC_SEQ_CST);
		break;
	case HOMA_CTL_ALIVE:
		a.total = f->alive;
		__atomic_fetch_add(&f->alives, 1, __ATOMIC_SEQ_CST);
		break;
	case HOMA_CTL_SEGMENT:
		__atomic_fetch_add(&f->segment_questions, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&f->no_memory, __ATOMIC_SEQ_CST)) {
			a.error = -EDQUOT;
			break;
		}
		fd = fake_memory(&f->seg[f->segs], r->bytes);
		f->seg_bytes[f->segs] = r->bytes;
		a.segment = f->segs++;
		a.data_bytes = r->bytes;
		if (__atomic_load_n(&f->lose_fds, __ATOMIC_SEQ_CST)) {
			__atomic_fetch_sub(&f->lose_fds, 1, __ATOMIC_SEQ_CST);
			close(fd);
			fd = -1;
		}
		break;
	case HOMA_CTL_POOL:
		munmap(f->pool, f->pool_bytes);
		fd = fake_memory(&f->pool, r->bytes);
		a.pool_bytes = f->pool_bytes = r->bytes;
		break;
	case HOMA_CTL_READY_FD:
		fd = channel(&f->ready_fd);
		break;
	default:
		break;
	}
	say(f, &a, &fd, fd >= 0);
}

/* Has the application hung up? */
static bool has_ended(int conn)
{
	struct pollfd p = { .fd = conn, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP));
}

static void *serve(void *arg)
{
	struct fake *f = arg;
	struct homa_ctl_request r;

	for (;;) {
		struct pollfd fds[3] = { { f->stop_fd, POLLIN, 0 },
					 { f->listen_fd, POLLIN, 0 },
					 { f->conn, POLLIN, 0 } };
		int fd;

		must(poll(fds, 3, -1) >= 0 || errno == EINTR);
		if (fds[0].revents)
			return NULL;
		if (fds[1].revents) {
			fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
			if (fd >= 0) {
				if (f->conn >= 0 && !has_ended(f->conn))
					__atomic_fetch_add(&f->left_open, 1,
							   __ATOMIC_SEQ_CST);
				close(f->conn);
				__atomic_store_n(&f->conn, fd, __ATOMIC_SEQ_CST);
			}
		} else if (fds[2].revents) {
			if (recv(f->conn, &r, sizeof(r), 0) != sizeof(r)) {
				close(f->conn);
				__atomic_store_n(&f->conn, -1, __ATOMIC_SEQ_CST);
			} else {
				control(f, &r);
			}
		}
	}
}

void fake_start(struct fake *f)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	if (!f->path[0]) {
		snprintf(f->path, sizeof(f->path), "/tmp/homa-fake-%d-%p",
			 (int)getpid(), (void *)f);
		f->wake_fd = f->ready_fd = f->kick_fd = -1;
		f->conn = -1;
	}
	setenv("HOMA_SERVICE_SOCKET", f->path, 1);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", f->path);
	unlink(f->path);
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(!bind(f->listen_fd, (struct sockaddr *)&sun, sizeof(sun)));
	must(!listen(f->listen_fd, 5));
	f->stop_fd = eventfd(0, EFD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
	must(!pthread_create(&f->thread, NULL, serve, f));
}

void fake_kill(struct fake *f)
{
	u64 one = 1;
	int i, *fds[] = { &f->stop_fd, &f->listen_fd, &f->conn,
			  &f->wake_fd, &f->ready_fd,  &f->kick_fd };

	if (f->echo) {
		__atomic_store_n(&f->echo, false, __ATOMIC_SEQ_CST);
		pthread_join(f->echo_thread, NULL);
	}
	must(write(f->stop_fd, &one, sizeof(one)) == sizeof(one));
	/* A test that failed may have left it so. */
	__atomic_store_n(&f->hold, 0, __ATOMIC_SEQ_CST);
	pthread_join(f->thread, NULL);
	unlink(f->path);
	for (i = 0; i < 6; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	forget_memory(f);
}

void fake_evict(struct fake *f)
{
	__atomic_store_n(&f->q->h.state, HOMA_SHM_EVICTED, __ATOMIC_SEQ_CST);
	shutdown(__atomic_load_n(&f->conn, __ATOMIC_SEQ_CST), SHUT_RDWR);
}

/* ---- rings ---- */

static bool next(struct fake *f, struct homa_sqe *sqe)
{
	u32 i;

	for (i = 0; i < HOMA_SHM_SQS; i++) {
		struct homa_shm_ring *ring = &f->q->h.sq[i];

		if (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) ==
		    f->sq_head[i])
			continue;
		must(i < __atomic_load_n(&f->q->h.sqs, __ATOMIC_ACQUIRE));
		*sqe = f->sqe[i][f->sq_head[i] % f->entries.submit];
		f->sq_last = i;
		return true;
	}
	return false;
}

static void signal_bits(struct fake *f, u32 want)
{
	u32 hit = __atomic_load_n(&f->q->h.armed, __ATOMIC_SEQ_CST) & want;
	u64 one = 1;

	/* The application may have closed its end of the pipes meanwhile. */
	if (!hit)
		return;
	__atomic_fetch_and(&f->q->h.armed, ~hit, __ATOMIC_SEQ_CST);
	if (hit & (HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED | HOMA_SHM_ARM_ROOM))
		must(write(f->wake_fd, &one, sizeof(one)) > 0 || errno == EPIPE);
	if (hit & HOMA_SHM_ARM_FD)
		must(write(f->ready_fd, &one, sizeof(one)) > 0 || errno == EPIPE);
}

/* The entry was used; its staged bytes are the application's again. */
static void consume(struct fake *f)
{
	u32 i = f->sq_last;

	__atomic_store_n(&f->q->h.sq[i].head, ++f->sq_head[i], __ATOMIC_SEQ_CST);
	if (f->features & HOMA_SHM_CAN_ROOM)
		signal_bits(f, HOMA_SHM_ARM_ROOM);
}

struct homa_sqe fake_next(struct fake *f)
{
	struct homa_sqe sqe;
	int i;

	for (i = 0; i < WAIT_TRIES; i++) {
		if (next(f, &sqe)) {
			consume(f);
			return sqe;
		}
		sched_yield();
	}
	must(!"a submission");
	return sqe;
}

bool fake_quiet(struct fake *f)
{
	struct homa_sqe sqe;
	int i;

	for (i = 0; i < 100; i++) {
		if (next(f, &sqe))
			return false;
		sched_yield();
	}
	return true;
}

const u8 *fake_bytes(struct fake *f, const struct homa_sqe *sqe)
{
	must(sqe->segment < f->segs);
	must((u64)sqe->offset + sqe->length <= f->seg_bytes[sqe->segment]);
	return f->seg[sqe->segment] + sqe->offset;
}

/* What the application gave back, and a page that it does not have. */
static u32 free_page(struct fake *f)
{
	struct homa_shm_ring *ring = &f->q->h.release;
	int tries;

	for (tries = 0; tries < WAIT_TRIES; tries++) {
		u32 page = f->next_page++ % (u32)(f->pool_bytes / 65536);

		while (f->release_head !=
		       __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) {
			u32 back =
				f->pages_back[f->release_head++ % f->entries.release];

			must(f->out[back / 65536]);
			f->out[back / 65536] = false;
		}
		__atomic_store_n(&ring->head, f->release_head, __ATOMIC_RELEASE);
		if (!f->out[page]) {
			f->out[page] = true;
			return page;
		}
		sched_yield();
	}
	must(!"a page");
	return 0;
}

void fake_put(struct fake *f, struct homa_cqe cqe, const void *bytes)
{
	u32 i, left = cqe.length;
	int tries;

	for (i = 0; left && bytes; i++) {
		u32 n = homa_min_u32(left, 65536);
		u32 page = free_page(f) * 65536;

		/* Not at the begin of the page: pieces may be anywhere. */
		if (n < 60000)
			page += 64 * (f->next_page % 16);
		memcpy(f->pool + page, (const u8 *)bytes + i * 65536, n);
		cqe.pages[i] = page;
		cqe.num_pages = i + 1;
		left -= n;
	}
	for (tries = 0; tries < WAIT_TRIES; tries++) {
		if (f->cq_tail - __atomic_load_n(&f->q->h.cq.head,
						 __ATOMIC_ACQUIRE) <
		    f->entries.complete)
			break;
		sched_yield();
	}
	f->cqe[f->cq_tail % f->entries.complete] = cqe;
	__atomic_store_n(&f->q->h.cq.tail, ++f->cq_tail, __ATOMIC_SEQ_CST);
	if (cqe.kind == HOMA_CQE_FREE)
		signal_bits(f, HOMA_SHM_ARM_ROOM);
	signal_bits(f, cqe.flags & HOMA_CQE_PRIVATE ?
			       HOMA_SHM_ARM_ANY :
			       HOMA_SHM_ARM_ANY | HOMA_SHM_ARM_SHARED |
				       HOMA_SHM_ARM_FD);
}

void fake_free(struct fake *f, const struct homa_sqe *sqe)
{
	fake_put(f,
		 (struct homa_cqe){ .kind = HOMA_CQE_FREE,
				    .flags = HOMA_CQE_PRIVATE,
				    .num_pages = sqe->segment,
				    .length = sqe->offset },
		 NULL);
}

void fake_respond(struct fake *f, u64 token, const void *bytes, u32 length)
{
	struct homa_cqe cqe = { .kind = HOMA_CQE_RESPONSE,
				.length = length,
				.token = token,
				.cookie = 7,
				.port = 4000 };

	memcpy(cqe.ip, (u8[16]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	fake_put(f, cqe, bytes);
}

void fake_request(struct fake *f, u64 token, const void *bytes, u32 length)
{
	struct homa_cqe cqe = { .kind = HOMA_CQE_REQUEST,
				.length = length,
				.token = token,
				.id = token * 2 + 1,
				.port = 40001 };

	memcpy(cqe.ip, (u8[16]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	fake_put(f, cqe, bytes);
}

u32 fake_released(struct fake *f)
{
	return __atomic_load_n(&f->q->h.release.tail, __ATOMIC_ACQUIRE);
}

static void *echo(void *arg)
{
	struct fake *f = arg;
	struct homa_sqe sqe;

	while (__atomic_load_n(&f->echo, __ATOMIC_SEQ_CST)) {
		struct homa_cqe cqe = { .kind = HOMA_CQE_RESPONSE };

		if (!next(f, &sqe)) {
			sched_yield();
			continue;
		}
		if (sqe.op != HOMA_SQE_REQUEST) {
			consume(f);
			continue;
		}
		cqe.flags = sqe.flags & HOMA_SQE_PRIVATE ? HOMA_CQE_PRIVATE : 0;
		cqe.length = sqe.length;
		cqe.cookie = sqe.cookie;
		cqe.token = sqe.token;
		cqe.port = sqe.port;
		memcpy(cqe.ip, sqe.ip, sizeof(cqe.ip));
		fake_put(f, cqe, fake_bytes(f, &sqe));
		if (!(sqe.flags & HOMA_SQE_COPY))
			fake_put(f,
				 (struct homa_cqe){ .kind = HOMA_CQE_FREE,
						    .flags = HOMA_CQE_PRIVATE,
						    .num_pages = sqe.segment,
						    .length = sqe.offset },
				 NULL);
		consume(f);
	}
	return NULL;
}

void fake_echo(struct fake *f)
{
	f->echo = true;
	must(!pthread_create(&f->echo_thread, NULL, echo, f));
}
