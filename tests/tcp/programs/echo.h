/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the echo programs share. They are written as such programs are, with nothing of ours.
 */
#ifndef TCP_ECHO_H
#define TCP_ECHO_H

#include <stddef.h>
#include <sys/socket.h>

/* End with a message if `result` is negative; else it is the value. */
int echo_must(int result, const char *what);
/* A socket that listens on (or is connected to) ADDRESS PORT. */
int echo_listen(const char *address, const char *port, int flags);
int echo_connect(const char *address, const char *port);
/* Make a connection non-blocking. */
void echo_nonblocking(int fd);
/* The byte of a stream at `position`. */
unsigned char echo_byte(size_t stream, size_t position);

#endif
