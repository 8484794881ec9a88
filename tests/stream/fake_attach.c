// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The attach socket of fake_streams.h. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "fake_impl.h"

static void answer(struct fake *f, struct homa_ctl_answer *a, int *fds, u32 num)
{
	a->version = HOMA_SHM_VERSION;
	fake_answer(f->conn, a, fds, num);
}

static void attach(struct fake *f, const struct homa_ctl_request *r,
		   struct homa_ctl_answer *a)
{
	int fds[HOMA_CTL_ATTACH_FDS];
	void *other;
	int wake[2];

	must(r->bytes == 128 << 10);
	fds[HOMA_CTL_FD_QUEUES] = fake_memory(&f->q, sizeof(*f->q));
	fds[HOMA_CTL_FD_DATA] = fake_memory(&other, 4096);
	munmap(other, 4096);
	fds[HOMA_CTL_FD_POOL] = fake_memory(&other, r->bytes);
	munmap(other, r->bytes);
	must(!pipe2(wake, O_CLOEXEC | O_NONBLOCK));
	fds[HOMA_CTL_FD_WAKE] = wake[0];
	close(wake[1]);
	f->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fds[HOMA_CTL_FD_KICK] = dup(f->kick_fd);
	f->q->h.magic = HOMA_SHM_MAGIC;
	f->q->h.version = HOMA_SHM_VERSION;
	f->q->h.features = (HOMA_SHM_CAN_STREAM | HOMA_SHM_CAN_EXEC |
			    HOMA_SHM_CAN_PATIENCE | HOMA_SHM_CAN_URGENT |
			    HOMA_SHM_CAN_BACKLOG | HOMA_SHM_CAN_BEGUN |
			    HOMA_SHM_CAN_SENT) &
			   ~f->cannot;
	a->queues_bytes = sizeof(*f->q);
	a->data_bytes = 4096;
	a->pool_bytes = r->bytes;
	f->attaches++;
	answer(f, a, fds, HOMA_CTL_ATTACH_FDS);
}

static void streams(struct fake *f, struct homa_ctl_answer *a)
{
	u32 slots = f->num_slots ? f->num_slots : FAKE_SLOTS;
	u32 entries = f->entries ? f->entries : 4096;
	struct homa_stream_area *area;
	int fds[HOMA_STREAM_FDS], wake[2];
	u64 at = sizeof(*area);

	at += entries * (sizeof(*f->command) + sizeof(*f->event)) +
	      slots * sizeof(*f->slot);
	at = (at + 4095) & ~(u64)4095;
	f->bytes = at + (u64)slots * 2 * (HOMA_STREAM_FIRST + HOMA_STREAM_SPAN);
	fds[HOMA_STREAM_FD_MEMORY] = fake_memory(&area, f->bytes);
	must(!pipe2(wake, O_CLOEXEC | O_NONBLOCK));
	fds[HOMA_STREAM_FD_EVENT] = wake[0];
	f->wake_fd = wake[1];
	area->magic = HOMA_STREAM_MAGIC;
	area->num_slots = slots;
	area->bytes = f->bytes;
	area->ring_entries = entries;
	area->commands = sizeof(*area);
	area->events = (u32)(area->commands + entries * sizeof(*f->command));
	area->slots = (u32)(area->events + entries * sizeof(*f->event));
	area->firsts = at;
	area->spans = at + (u64)slots * 2 * HOMA_STREAM_FIRST;
	area->num_rules = 1;
	area->rules[0] = (struct homa_stream_rule){
		.ip = { [10] = 0xff, 0xff, 10, 1, 0x80 },
		.prefix = 96 + 20,
		.from = 100,
		.to = 200
	};
	f->command = (void *)((u8 *)area + area->commands);
	f->event = (void *)((u8 *)area + area->events);
	f->slot = (void *)((u8 *)area + area->slots);
	f->spans = (u8 *)area + area->spans;
	f->firsts = (u8 *)area + area->firsts;
	if (f->spoil)
		f->spoil(area);
	pthread_mutex_lock(&f->memory_lock);
	f->area = area;
	f->head = f->tail = 0;
	pthread_mutex_unlock(&f->memory_lock);
	a->queues_bytes = f->bytes;
	answer(f, a, fds, HOMA_STREAM_FDS);
}

static void listen_to(struct fake *f, const struct homa_ctl_request *r,
		      struct homa_ctl_answer *a, int fd)
{
	struct sockaddr_in in;
	socklen_t length = sizeof(in);
	u32 i;

	must(fd >= 0 && !getsockname(fd, (struct sockaddr *)&in, &length));
	close(fd);
	pthread_mutex_lock(&f->memory_lock);
	for (i = 0; i < FAKE_LISTENERS && f->port[i]; i++)
		;
	must(i < FAKE_LISTENERS);
	f->port[i] = ntohs(in.sin_port);
	f->backlog = r->bytes;
	a->total = i + 1;
	if (f->late)
		fake_incoming(f, a->total);
	pthread_mutex_unlock(&f->memory_lock);
	usleep(f->late);
	answer(f, a, NULL, 0);
}

/* Says no, and yet hands over memory of streams. */
static void join_none(struct fake *f, struct homa_ctl_answer *a)
{
	struct homa_stream_area *other;
	int fds[2];
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(fds); i++) {
		fds[i] = fake_memory(&other, f->bytes);
		memcpy(other, f->area, sizeof(*other));
		munmap(other, f->bytes);
	}
	a->error = -EINVAL;
	answer(f, a, fds, HOMA_ARRAY_SIZE(fds));
}

static bool question(struct fake *f)
{
	struct homa_ctl_request r;
	struct homa_ctl_answer a = { 0 };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { &r, sizeof(r) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg;
	int fd = -1;

	if (recvmsg(f->conn, &msg, MSG_CMSG_CLOEXEC) != sizeof(r))
		return false;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	a.op = r.op;
	if (r.op == HOMA_CTL_ATTACH)
		attach(f, &r, &a);
	else if (r.op == HOMA_CTL_STREAMS)
		streams(f, &a);
	else if (r.op == HOMA_CTL_STREAM_LISTEN)
		listen_to(f, &r, &a, fd);
	else if (r.op == HOMA_CTL_STREAM_JOIN)
		join_none(f, &a);
	else
		must(!"a question that streams do not ask");
	return true;
}

static void *serve(void *arg)
{
	struct fake *f = arg;

	for (;;) {
		struct pollfd p[3] = { { .fd = f->stop_fd, .events = POLLIN },
				       { .fd = f->conn, .events = POLLIN },
				       { .fd = f->conn < 0 ? f->listen_fd : -1,
					 .events = POLLIN } };

		poll(p, 3, -1);
		if (p[0].revents)
			return NULL;
		if (p[2].revents)
			__atomic_store_n(&f->conn,
					 accept4(f->listen_fd, NULL, NULL,
						 SOCK_CLOEXEC),
					 __ATOMIC_RELAXED);
		if (f->conn >= 0 && p[1].revents && !question(f)) {
			close(f->conn);
			__atomic_store_n(&f->conn, -1, __ATOMIC_RELAXED);
		}
	}
}

void fake_start(struct fake *f)
{
	static u32 number;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	f->conn = f->kick_fd = f->wake_fd = -1;
	snprintf(f->path, sizeof(f->path), "/tmp/homa-fake-streams-%d-%u.sock",
		 getpid(), ++number);
	unlink(f->path);
	memcpy(sun.sun_path, f->path, sizeof(f->path));
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	must(f->listen_fd >= 0 &&
	     !bind(f->listen_fd, (struct sockaddr *)&sun, sizeof(sun)) &&
	     !listen(f->listen_fd, 8));
	setenv("HOMA_SERVICE_SOCKET", f->path, 1);
	f->stop_fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&f->memory_lock, NULL);
	must(!pthread_create(&f->thread, NULL, serve, f));
}

void fake_kill(struct fake *f)
{
	u64 value = 1;

	fake_stop(f);
	must(write(f->stop_fd, &value, sizeof(value)) > 0);
	must(!pthread_join(f->thread, NULL));
	close(f->stop_fd);
	close(f->listen_fd);
	unlink(f->path);
	if (f->conn >= 0)
		close(f->conn);
	if (f->wake_fd >= 0)
		close(f->wake_fd);
	if (f->kick_fd >= 0)
		close(f->kick_fd);
	if (f->area)
		munmap(f->area, f->bytes);
	if (f->q)
		munmap(f->q, sizeof(*f->q));
	f->area = NULL;
	f->q = NULL;
}
