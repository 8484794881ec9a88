/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of sock_client share: whom to ask, and each check. */
#ifndef TESTS_PRELOAD_SOCK_CLIENT_H
#define TESTS_PRELOAD_SOCK_CLIENT_H

#include "sock.h"

/* The server; a port of its machine where nobody listens; room for a message. */
extern int family;
extern union address server, nobody;
extern unsigned char buf[HOMA_MAX_MESSAGE_LENGTH];
extern const char ignore[1], late[1];

/* One request and its response. */
void sock_call(struct sock *s, size_t size, unsigned int seed);

/* sendmsg() of @size bytes of buf to @to, which may be NULL, that receives; @x says what else. */
ssize_t sock_exchange(struct sock *s, const union address *to, size_t size,
		      struct homa_exchange_args *x, int flags);

/* clang-format off */
#define CHECKS(X) \
	X(sizes) X(async) X(private_rpc) X(aborts) X(information) X(shuts) \
	X(failures) X(nonblocking) X(polls) X(epoll_level) X(epoll_edge) X(dups) \
	X(forks) X(threads) X(slices) X(exhaust) X(exhaust_copied) X(late_region) \
	X(many) X(signals) X(handlers) X(full) X(storm) X(unmap) X(restart) \
	X(refused) X(roles) X(ready_ones) X(ids) X(connects) X(exchanges) \
	X(exchange_errors) X(exchange_waits) X(exchange_serves) X(exchange_flags) \
	X(exchange_meanwhile) X(exchange_storm)
/* clang-format on */

#define X(name) void check_##name(void);
CHECKS(X)
#undef X

#endif
