// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A fast-path thread: its memory, its place in the machine, and its loop.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "fast.h"
#include "homad_tcp.h"
#include "homa_slice.h"
#include "log.h"

/* Adds the time since @from to busy or idle time, by the two readings of the clock that
 * there are anyway. */
static void account(struct homad_thread *t, u64 from, bool busy)
{
	u64 spent = t->ctx.now - from;

	if (busy)
		t->counters.busy_ns += spent;
	else
		t->counters.idle_ns += spent;
}

static void *thread_main(void *arg)
{
	struct homad_thread *t = arg;
	bool busy = false;

	if (t->d->config.mode == HOMAD_SHARED && t->d->config.slice_us)
		homa_slice_set(t->d->config.slice_us * 1000ull);
	homad_now(t);
	homa_spin_work(&t->spin, t->ctx.now);
	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		u64 from = t->ctx.now;
		int done = homad_round(t);

		account(t, from, busy);
		busy = done != 0;
		if (busy) {
			homa_spin_work(&t->spin, t->ctx.now);
			homad_listen(t);
		} else {
			homad_idle(t);
		}
	}
	return NULL;
}

static int pin(struct homad_thread *t)
{
	cpu_set_t set;

	if (t->core < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((unsigned int)t->core, &set);
	return pthread_setaffinity_np(t->thread, sizeof(set), &set);
}

static int open_fds(struct homad_thread *t)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = t };

	t->epfd = epoll_create1(EPOLL_CLOEXEC);
	t->mail_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (t->epfd < 0 || t->mail_fd < 0 ||
	    epoll_ctl(t->epfd, EPOLL_CTL_ADD, t->mail_fd, &ev) < 0)
		return -errno;
	return nic_rtnl_open(&t->rtnl, 0);
}

int homad_thread_make(struct homad *d, u32 index)
{
	struct homad_thread *t;
	int rc;

	t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
	if (!t)
		return -ENOMEM;
	memset(t, 0, sizeof(*t));
	d->threads[index] = t;
	t->d = d;
	t->index = index;
	t->core = d->config.mode == HOMAD_DEDICATED ?
			  (int)d->config.cores[index] :
			  -1;
	t->epfd = t->mail_fd = t->rtnl.fd = t->rtnl.events_fd = -1;
	homa_list_init(&t->apps);
	homa_list_init(&t->users);
	homad_polled_init(&t->others);
	homa_list_init(&t->touched);
	homa_list_init(&t->closing);
	homa_ctx_init(&t->ctx, d->engine, index);
	homad_now(t);
	/* No other thread gives the ids that follow from this one. */
	t->direct_id = (t->ctx.now & ~(u64)(DIRECT_IDS - 1)) + 2 * index;
	homa_spin_init(&t->spin, d->config.spin_min_us * 1000ull,
		       d->config.spin_us * 1000ull, t->ctx.now);
	rc = open_fds(t);
	if (!rc)
		rc = homad_dests_init(&t->dests);
	if (!rc)
		rc = homa_hist_init(&t->rtt);
	return rc ? rc : homad_memory_init(t);
}

int homad_thread_serve(struct homad_thread *t, struct homad_port *port)
{
	struct epoll_event ev = { .events = EPOLLIN,
				  .data.u64 = (uintptr_t)port |
					      HOMAD_EVENT_OF_NIC };

	port->thread = t->index;
	t->ports[t->num_ports++] = port;
	return epoll_ctl(t->epfd, EPOLL_CTL_ADD, nic_fd(port->nic), &ev) < 0 ?
		       -errno :
		       0;
}

int homad_thread_start(struct homad_thread *t)
{
	sigset_t all, old;
	char name[16];
	int rc;

	/* Only the slow path handles signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	t->active = true;
	rc = pthread_create(&t->thread, NULL, thread_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return -rc;
	__atomic_store_n(&t->running, true, __ATOMIC_RELEASE);
	snprintf(name, sizeof(name), "homad-fast%u", t->index);
	pthread_setname_np(t->thread, name);
	rc = pin(t);
	if (rc)
		homad_log(HOMAD_WARNING,
			  "cannot run a fast-path thread on its core\tcore=%d error=\"%s\"",
			  t->core, strerror(rc));
	return 0;
}

void homad_thread_stop(struct homad_thread *t)
{
	u64 one = 1;

	if (!t->running)
		return;
	__atomic_store_n(&t->stop, true, __ATOMIC_RELAXED);
	if (write(t->mail_fd, &one, sizeof(one)) < 0)
		homad_log(HOMAD_DEBUG, "a fast-path thread was awake already");
	pthread_join(t->thread, NULL);
	t->running = false;
}

void homad_thread_free(struct homad_thread *t)
{
	struct homad_tcp *tcp;

	if (!t)
		return;
	if (t->epfd >= 0)
		close(t->epfd);
	if (t->mail_fd >= 0)
		close(t->mail_fd);
	nic_rtnl_close(&t->rtnl);
	homa_hist_free(&t->rtt);
	while ((tcp = t->tcp)) {
		homad_tcp_drop(t, tcp);
		homad_tcp_free(tcp);
	}
	homad_memory_free(t);
	free(t);
}
