/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What sock.c, descriptors.c and fork.c share. */
#ifndef HOMA_PRELOAD_SOCK_H
#define HOMA_PRELOAD_SOCK_H

#include "preload.h"

/** homa_pl_all - every socket there ever was, by @next. */
extern struct homa_pl_sock *homa_pl_all;
/** homa_pl_generation - how often this process is a child of fork(). */
extern unsigned int homa_pl_generation;

/* sock.c: no socket begins or ends while fork() runs. */
void homa_pl_lock_list(void);
void homa_pl_unlock_list(void);
void homa_pl_reset_locks(void);

/* descriptors.c: one thread at a time changes which descriptors there are. */
void homa_pl_lock_fds(void);
void homa_pl_unlock_fds(void);
void homa_pl_reset_fds(void);
/** homa_pl_placeholder() - a descriptor that is writable and never readable. */
int homa_pl_placeholder(bool cloexec);

/* fork.c */
void homa_pl_watch_forks(void);

#endif
