/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Socket options of the TCP transports, in one place: no Nagle delay, the
 * chosen congestion control on both sides, nothing else changed.
 */
#ifndef HOMA_BENCH_TCP_SETUP_H
#define HOMA_BENCH_TCP_SETUP_H

#include "bench_transport.h"

/** tcp_setup_check() - is the congestion control available? 0 or -errno, @err */
int tcp_setup_check(const struct bench_config *config, char *err, size_t errlen);

/**
 * tcp_setup_resolve() - an address, of the kind that the transport has
 * Return: 0, or -EINVAL and a sentence in @err about @what ("peer", "--bind").
 */
int tcp_setup_resolve(const struct bench_config *config, const char *what,
		      const char *text, struct sockaddr_storage *addr,
		      uint32_t *addrlen, char *err, size_t errlen);

/** tcp_setup_listen() - listening socket; its address goes to @where */
int tcp_setup_listen(const struct bench_config *config, char *where,
		     size_t wherelen, char *err, size_t errlen);

/** tcp_setup_spare() - a descriptor for tcp_setup_accept() to give up */
int tcp_setup_spare(void);

/**
 * tcp_setup_limits() - connections that there are descriptors for
 * @all: of the endpoint. @peer: that it makes to each peer, so that half are left for
 *	those that its peers make.
 */
void tcp_setup_limits(const struct bench_config *config, uint32_t *all,
		      uint32_t *peer);

/**
 * tcp_setup_accept() - next connection, or a negative errno
 * @refuse: in: take it only to close it; out: one was closed, as there was no
 *	descriptor for it or as the caller wished.
 */
int tcp_setup_accept(int listen_fd, int *spare_fd, bool *refuse);

/**
 * tcp_setup_connect() - start to connect
 * @connecting: set if the handshake is still under way.
 * Return: descriptor or a negative errno.
 */
int tcp_setup_connect(const struct bench_config *config,
		      const struct sockaddr_storage *addr, uint32_t addrlen,
		      bool *connecting);

/** tcp_setup_connected() - how the handshake ended: 0 or a negative errno */
int tcp_setup_connected(int fd);

/** tcp_setup_report() - kernel settings that shape TCP's results */
void tcp_setup_report(const struct bench_config *config, cJSON *json);

#endif
