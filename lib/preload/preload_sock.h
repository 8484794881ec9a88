/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What sock.c, descriptors.c and fork.c share. */
#ifndef HOMA_PRELOAD_SOCK_H
#define HOMA_PRELOAD_SOCK_H

#include "preload.h"

/** homa_pl_all - the first in the list of all sockets that there ever were. */
extern struct homa_pl_sock *homa_pl_all;
/** homa_pl_generation - the number of fork() calls between the first process and this one. */
extern unsigned int homa_pl_generation;

/* sock.c: fork() takes this lock, so that no socket begins or ends meanwhile. */
void homa_pl_lock_list(void);
void homa_pl_unlock_list(void);
void homa_pl_reset_locks(void);

/* descriptors.c: a thread that changes which descriptors there are has this lock. */
void homa_pl_lock_fds(void);
void homa_pl_unlock_fds(void);
void homa_pl_reset_fds(void);
/** homa_pl_placeholder() - make a descriptor that is writable and never readable. */
int homa_pl_placeholder(bool cloexec);

/* fork.c */
void homa_pl_watch_forks(void);

#endif
