/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Small things that files of the preload library do for each other. */
#ifndef HOMA_PRELOAD_INTERNAL_H
#define HOMA_PRELOAD_INTERNAL_H

#include "preload.h"

/** homa_pl_table_get() - the socket that the table has for @fd, without a reference; or NULL. */
struct homa_pl_sock *homa_pl_table_get(int fd);
/** homa_pl_table_keep() - take a reference of @s, which homa_pl_drop() drops; false if it is
 *  ending. */
bool homa_pl_table_keep(struct homa_pl_sock *s);
/** homa_pl_own_fd() - make @fd a descriptor of this library's for TCP, which the program cannot
 *  close. Returns its number, mostly another one; @fd itself if it is negative. */
int homa_pl_own_fd(int fd);
/** homa_pl_is_own_fd() - is @fd one of these? */
bool homa_pl_is_own_fd(int fd);
/** homa_pl_next_own_fd() - the first of them from @fd, which is not negative, on; -1 if there is
 *  none. */
int homa_pl_next_own_fd(int fd);
/** homa_pl_close_own_fd() - close it, unless it is negative. */
void homa_pl_close_own_fd(int fd);
/** homa_pl_wake_returned() - tell threads that wait for room in the region. */
void homa_pl_wake_returned(struct homa_pl_sock *s);
/** homa_pl_port() - the port that the socket was bound to, or that it got automatically. */
uint16_t homa_pl_port(struct homa_pl_sock *s);

/**
 * homa_pl_region_lend() - let messages arrive in the region itself
 * If libhoma cannot do that now, they are copied there.
 */
void homa_pl_region_lend(struct homa_pl_sock *s);
/** homa_pl_region_again() - begin again in the child of fork(), where all of the region is free. */
void homa_pl_region_again(struct homa_pl_sock *s);

#endif
