/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Descriptors that others made. The last close() of a socket waits for its peer as long as
 * SO_LINGER says, and that of a UNIX socket for all sockets that are on their way in it. Any
 * close() of a file of a file system may wait for whoever serves that. The threads of the slow
 * path wait for neither.
 */
#ifndef HOMAD_CLOSING_H
#define HOMAD_CLOSING_H

#include "attachment.h"

/** homad_closing_start() - get ready, before anybody can connect. Returns 0 or a negative errno. */
int homad_closing_start(struct homad *d, char *err, size_t errlen);
/** homad_hurry(), homad_hurried() - begin and end a part of this thread's work in which a system
 *  call that waits for others is interrupted after HOMAD_HURRY_NS, and again and again. */
void homad_hurry(void);
void homad_hurried(void);
/** homad_close() - close a socket, a pipe or a memfd. It takes HOMAD_HURRY_NS at the longest,
 *  whatever others have done with it. */
void homad_close(int fd);
/** homad_close_passed() - close any descriptor that has come from @user; another thread does it if
 *  it may take long. */
void homad_close_passed(struct homad_user *user, int fd);
/** homad_may_pass() - may processes of @user pass more descriptors? Not while too many are there
 *  whose close() takes long. */
bool homad_may_pass(const struct homad_user *user);

/* The time after which waiting is interrupted, ns. */
#define HOMAD_HURRY_NS 200000

#endif
