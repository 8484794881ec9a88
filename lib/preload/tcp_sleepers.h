/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Threads that sleep, and which of them homad's signal wakes. All of this is under
 * homa_pl_tcp_lock().
 *
 * Guarded by: homa_pl_tcp_lock().
 */
#ifndef HOMA_PRELOAD_TCP_SLEEPERS_H
#define HOMA_PRELOAD_TCP_SLEEPERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct homa_pl_set;
struct homa_pl_sock;

/* A thread that was woken so many times in a row by news for others lets another one go before. */
#define HOMA_PL_MANY_VAIN 4u

/** struct homa_pl_ear - an epoll set of the kernel in which homad's descriptor may lie. homad's
 *  signal then wakes who sleeps in that set. */
struct homa_pl_ear {
	/* The descriptor lies in the set; it is @fd, and was put there by the process in which
	 * homa_pl_generation was @generation. */
	bool open;
	int fd;
	unsigned int generation;
	/* Another process may have the set, too, so all who sleep there are woken. */
	bool shared;
	/* The number of signals in a row that told nothing for the threads of this set. */
	unsigned int vain;
};

/** struct homa_pl_sleeper - a thread that sleeps. It is in a list meanwhile. */
struct homa_pl_sleeper {
	/* The next one in the list. */
	struct homa_pl_sleeper *next;
	/* The thread is in the list. */
	bool joined;
	/* The kernel's set by which it is woken: the program's or the thread's own. */
	int epfd;
	/* The ear of that set. */
	struct homa_pl_ear *ear;
	/* What the kernel's events say of homad's descriptor in it. */
	epoll_data_t data;
	/* The set of the program in which it sleeps, which is told of news; NULL if it sleeps by
	 * its own set. */
	struct homa_pl_set *set;
	/* The eventfd that wakes it there. */
	int nudge_fd;
	/* It sleeps in ppoll(), which asks its own set and other descriptors. */
	bool polls;
	/* It sleeps in epoll_wait() with its ear open: homad's signal wakes it, or another such. */
	bool watches;
	/* The bell in its own set was rung, and the thread has not heard it yet. */
	bool rung;
	/* Is there something for the thread among the sockets @told, of which there is news? Some
	 * may be NULL. If it is NULL, the thread looks at all news. */
	bool (*concerned)(const void *arg, struct homa_pl_sock *const *told,
			  int n);
	/* What @concerned gets. */
	const void *arg;
};

/** homa_pl_hear_by() - note that homad signals by @fd from now on; -1: by nothing. */
void homa_pl_hear_by(int fd);
/** homa_pl_ear_open() - put homad's descriptor into the set @epfd; true if it is there. */
bool homa_pl_ear_open(struct homa_pl_ear *ear, int epfd, epoll_data_t data);
void homa_pl_ear_close(struct homa_pl_ear *ear, int epfd);
/** homa_pl_add_bell() - put the bell into a thread's own set; 0 or a negative errno. */
int homa_pl_add_bell(int epfd);
/** homa_pl_ring() - wake who sleeps by the set. */
void homa_pl_ring(int epfd);
/** homa_pl_silence() - undo that, if nobody has heard it. */
void homa_pl_silence(int epfd);
/** homa_pl_is_bell() - does an event of a thread's own set say that the bell was rung? */
bool homa_pl_is_bell(const struct epoll_event *event);
/** homa_pl_join() - the thread is about to sleep. */
void homa_pl_join(struct homa_pl_sleeper *sleeper);
/** homa_pl_part() - it does not sleep any more; nothing happens if it has not joined. */
void homa_pl_part(struct homa_pl_sleeper *sleeper);
/** homa_pl_in_vain() - note whether homad's signal, which has woken @sleeper, told something for
 *  others alone. After many such another thread is woken first. */
void homa_pl_in_vain(struct homa_pl_sleeper *sleeper, bool vain);
/** homa_pl_wake_for() - wake whom news of @n sockets @told concerns, all if @n is negative; but not
 *  @self, which is awake, and nobody who sleeps in a set of the program's. */
void homa_pl_wake_for(struct homa_pl_sock *const *told, int n,
		      const struct homa_pl_sleeper *self);
/** homa_pl_anybody_sleeps() - is the list not empty? */
bool homa_pl_anybody_sleeps(void);
/** homa_pl_no_sleepers() - in a child of fork(), which has none of its parent's threads. */
void homa_pl_no_sleepers(void);

#endif
