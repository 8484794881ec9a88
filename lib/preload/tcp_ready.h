/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which sockets of an epoll set are ready. All of this is under homa_pl_tcp_lock().
 *
 * Guarded by: homa_pl_tcp_lock().
 */
#ifndef HOMA_PRELOAD_TCP_READY_H
#define HOMA_PRELOAD_TCP_READY_H

#include "tcp.h"
#include "tcp_sleepers.h"

struct homa_pl_spot;
struct homa_pl_spots;
struct homa_pl_words;

/** struct homa_pl_watch - a socket in a set */
struct homa_pl_watch {
	/* The next watch of the same socket. */
	struct homa_pl_watch *of_sock;
	/* The next watch of the same set. */
	struct homa_pl_watch *of_set;
	/* The next watch in the set's ready list. */
	struct homa_pl_watch *of_ready;
	/* The socket. */
	struct homa_pl_sock *sock;
	/* The set. */
	struct homa_pl_set *set;
	/* The descriptor by which the program added the socket. */
	int fd;
	/* The descriptor of ours by which the kernel's set has the socket, because the program has
	 * closed @fd; else -1. */
	int own_fd;
	/* What the program waits for, and its data. */
	struct epoll_event event;
	/* The watch is in the set's ready list. */
	bool ready;
	/* The watch has EPOLLONESHOT and was told once; if there is a @word, that says it. */
	bool off;
	/* @word: where it stands whether it was told, in memory that other processes have, too;
	 * @words: that memory (tcp_once.c). NULL: no other process has the watch. */
	uint32_t *word;
	struct homa_pl_words *words;
	/* The kernel's set has the descriptor, too. */
	bool kernels;
	/* Its mark: what the kernel's set says of the descriptor is for us (tcp_watch.c). NULL:
	 * that is for the program. */
	struct homa_pl_spot *spot;
};

/** struct homa_pl_set - an epoll set with TCP sockets; under homa_pl_tcp_lock() */
struct homa_pl_set {
	/* The first watch of the set. */
	struct homa_pl_watch *watches;
	/* The marks of its watches, of which @free_spot is the first that is free. @spots is atomic
	 * and NULL until there are some. */
	struct homa_pl_spots *spots;
	struct homa_pl_spot *free_spot;
	/* The ready list: its first watch, and where the next one is linked. */
	struct homa_pl_watch *first, **last;
	/* The descriptor of the kernel's set when the program made it. */
	int epfd;
	/* An eventfd in the kernel's set that wakes threads that sleep there. */
	int nudge_fd;
	/* @nudge_fd was written to, and perhaps not read since. */
	bool nudged;
	/* The number of threads that sleep in the kernel's set. */
	unsigned int sleepers;
	/* An eventfd in the kernel's set that is readable while a stream in it is ready, for sets
	 * in which this one is; -1 if there was none yet. */
	int ready_fd;
	/* @ready_fd is readable. */
	bool told;
	/* The next set in the list of those with a @ready_fd. */
	struct homa_pl_set *next_nested;
	/* homad's descriptor in the kernel's set. */
	struct homa_pl_ear ear;
	/* The next set in the list of all. */
	struct homa_pl_set *next_set;
	/* The program asks by poll() or another set whether the set is ready, so homad's descriptor
	 * is there only while a thread sleeps in the set. */
	bool polled;
	/* The last wait had no place for what the kernel would tell. It is atomic. */
	bool kernel_waits;
	/* The time at which the kernel was asked last, if it had nothing to tell then, in ns; else
	 * 0. It is atomic. */
	int64_t asked_at;
	/* There are, or have been, others than homad's streams and listeners in the kernel's set.
	 * It is atomic. */
	bool others;
	/* The addresses of these fields mark in the kernel's set what is not told to the program:
	 * @cookie @nudge_fd, @homad_cookie homad's, and @ready_cookie @ready_fd. */
	char cookie, homad_cookie, ready_cookie;
};

/** homa_pl_ready_put() - put a socket, of which there is news, into the ready list of its set. Who
 *  sleeps there is woken, unless it is @looks, at which the caller looks itself. */
void homa_pl_ready_put(struct homa_pl_watch *w, const struct homa_pl_set *looks);
/** homa_pl_ready_take() - take the first one out of the list; NULL if the list is empty. */
struct homa_pl_watch *homa_pl_ready_take(struct homa_pl_set *set);
void homa_pl_ready_remove(struct homa_pl_watch *w);
/** homa_pl_ready_events() - what the program waits for and the stream is ready for. */
uint32_t homa_pl_ready_events(const struct homa_pl_watch *w);
/** homa_pl_set_nudge() - wake the threads that sleep in the set, so that they look again. */
void homa_pl_set_nudge(struct homa_pl_set *set);
/** homa_pl_set_is_polled() - note that the program asks whether the set is ready. @epfd: a
 *  descriptor of it. */
void homa_pl_set_is_polled(struct homa_pl_set *set, int epfd);
/** homa_pl_set_is_nested() - note that a set, by its descriptor @epfd, is in another set. It takes
 *  the lock. Returns 0 or a negative errno. */
int homa_pl_set_is_nested(struct homa_pl_set *set, int epfd);
/** homa_pl_set_is_single() - undo that, because the set ends. */
void homa_pl_set_is_single(struct homa_pl_set *set);
/** homa_pl_set_tell() - tell sets in which @set is whether one of its streams is ready. @news: it
 *  is an edge for them, also if one was ready before. */
void homa_pl_set_tell(struct homa_pl_set *set, bool news);
/** homa_pl_sets_tell() - do so for all sets in sets. Bytes that are read are no news, so whoever
 *  asks the kernel for a set has this done before. */
void homa_pl_sets_tell(void);

/** homa_pl_watch_wrong() - the error with which the kernel refuses @op of any descriptor, or 0; @w:
 *  the entry that there is, or NULL. */
int homa_pl_watch_wrong(int op, const struct epoll_event *event,
			const struct homa_pl_watch *w);
/** homa_pl_watch_tell_kernel() - let the kernel's set, by its descriptor @epfd, have what it shall
 *  of the watch. */
void homa_pl_watch_tell_kernel(struct homa_pl_watch *w, int epfd);
/** homa_pl_watch_leave() - take the watch out of the kernel's set, if it is there. */
void homa_pl_watch_leave(struct homa_pl_watch *w, int epfd);
/** homa_pl_watch_keep() - keep the watch in the kernel's set, where it can be changed, when the
 *  program closes its descriptor and has others of the socket. */
void homa_pl_watch_keep(struct homa_pl_watch *w, int epfd);
/** homa_pl_watch_end() - the watch ends. */
void homa_pl_watch_end(struct homa_pl_watch *w);
/** homa_pl_watch_kernels() - what the kernel's socket of a watch with a mark is ready for. */
uint32_t homa_pl_watch_kernels(const struct homa_pl_watch *w);

/* ---- tcp_once.c ---- */

/** homa_pl_once_share() - another process will have the set, too: its watches with EPOLLONESHOT are
 *  told to one process from now on, if there is memory for that. */
void homa_pl_once_share(struct homa_pl_set *set);
/** homa_pl_once_end() - the watch ends. */
void homa_pl_once_end(struct homa_pl_watch *w);
/** homa_pl_once_was_told() - was it told, so that it must be armed anew? */
bool homa_pl_once_was_told(const struct homa_pl_watch *w);
/** homa_pl_once_tell() - may the caller tell of it? Nobody else may then until it is armed anew. */
bool homa_pl_once_tell(struct homa_pl_watch *w);
/** homa_pl_once_arm() - arm it anew. */
void homa_pl_once_arm(struct homa_pl_watch *w);

/* ---- tcp_spot.c ---- */

/** homa_pl_spot_take() - give the watch a mark, if it has none; NULL: there is no memory. */
void *homa_pl_spot_take(struct homa_pl_watch *w);
/** homa_pl_spot_leave() - take it from the watch. */
void homa_pl_spot_leave(struct homa_pl_watch *w);
/** homa_pl_spot_is() - is @mark, of an event of the kernel's set, one of @set? @w gets its watch,
 *  NULL if that has ended. */
bool homa_pl_spot_is(const struct homa_pl_set *set, const void *mark,
		     struct homa_pl_watch **w);
/** homa_pl_spots_free() - the set ends. */
void homa_pl_spots_free(struct homa_pl_set *set);

#endif
