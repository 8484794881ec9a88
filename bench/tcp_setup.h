/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Socket options of the TCP transports, in one place: no Nagle delay, the
 * chosen congestion control on both sides, nothing else changed.
 */
#ifndef HOMA_BENCH_TCP_SETUP_H
#define HOMA_BENCH_TCP_SETUP_H

#include "bench_transport.h"

/**
 * tcp_setup_check() - is the congestion control available? 0, or -errno and a sentence in
 * @err
 */
int tcp_setup_check(const struct bench_config *config, char *err, size_t errlen);

/**
 * tcp_setup_resolve() - read an address of the kind that the transport has Return: 0, or
 * -EINVAL and a sentence in @err about @what ("peer", "--bind").
 */
int tcp_setup_resolve(const struct bench_config *config, const char *what,
		      const char *text, struct sockaddr_storage *addr,
		      uint32_t *addrlen, char *err, size_t errlen);

/** tcp_setup_listen() - make a listening socket; its address goes to @where */
int tcp_setup_listen(const struct bench_config *config, char *where,
		     size_t wherelen, char *err, size_t errlen);

/** tcp_setup_spare() - return a descriptor that tcp_setup_accept() may close */
int tcp_setup_spare(void);

/**
 * tcp_setup_limits() - compute how many connections there are descriptors for
 * @all: receives the number for the endpoint.
 * @peer: receives the number for connections that the endpoint opens to each peer, which
 *	leaves half for those that peers open.
 */
void tcp_setup_limits(const struct bench_config *config, uint32_t *all,
		      uint32_t *peer);

/**
 * tcp_setup_accept() - return the next connection, or a negative errno
 * @refuse: before the call: true if the connection is only to be closed. After it: true if
 *	one was closed, for that reason or because there was no descriptor for it.
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

/** tcp_setup_connected() - return how the handshake ended: 0 or a negative errno */
int tcp_setup_connected(int fd);

/** tcp_setup_report() - add kernel settings that shape TCP's results */
void tcp_setup_report(const struct bench_config *config, cJSON *json);

#endif
