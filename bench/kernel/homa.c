// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * RPCs over Homa sockets, written as a program for the existing module would
 * be. A response is sent from where its request lies in the receive region; the
 * pages go back with the next recvmsg(). Whether the kernel polls before it
 * blocks is its setting (sysctl net.homa.poll_usecs), not this program's. With --proto
 * exchange it does what homa.ko has beyond that: the client is connected, and one
 * call sends a message and receives the next (HOMA_SENDMSG_RECEIVE).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "homa_socket.h"
#include "rpcs.h"

/* Bytes of the receive region: room for what is outstanding, and at least what the kernel
 * asks for. Of many sockets each has less. */
#define REGION ((size_t)64 << 20)
#define REGION_OF_MANY ((size_t)4 << 20)

/* A socket and what belongs to it is one thread's (cores.c has several). */
static __thread int sock = -1;
static __thread char *region;
static __thread struct homa_recvmsg_args args;
static __thread struct homa_exchange_args both;
static char out[RPCS_MAX_MESSAGE];

static void open_socket(const struct rpcs_config *config)
{
	size_t size = config->cores ? REGION_OF_MANY : REGION;
	struct homa_rcvbuf_args rcvbuf = { 0 };

	sock = socket(config->peer.ss_family, SOCK_DGRAM, IPPROTO_HOMA);
	if (sock < 0)
		rpcs_die("no Homa sockets here (load the module)");
	region = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (region == MAP_FAILED)
		rpcs_die("mmap");
	rcvbuf.start = (uintptr_t)region;
	rcvbuf.length = size;
	if (setsockopt(sock, IPPROTO_HOMA, SO_HOMA_RCVBUF, &rcvbuf,
		       sizeof(rcvbuf)))
		rpcs_die("SO_HOMA_RCVBUF");
}

/* ---- one call for each message ---- */

/* Receives any message, after giving back the pages of the one before; returns its length. */
static uint32_t receive_any(const struct rpcs_config *config,
			    struct sockaddr_storage *from, socklen_t *fromlen)
{
	int flags = rpcs_wait_flags(config);
	uint64_t since = 0;
	struct msghdr msg = { 0 };

	for (;;) {
		ssize_t n;

		args.id = 0;
		msg.msg_name = from;
		msg.msg_namelen = sizeof(*from);
		msg.msg_control = &args;
		msg.msg_controllen = sizeof(args);
		n = recvmsg(sock, &msg, flags);
		if (n >= 0) {
			*fromlen = msg.msg_namelen;
			return (uint32_t)n;
		}
		if (errno == EAGAIN)
			flags = rpcs_wait_turn(config, &since);
		else if (errno != EINTR)
			rpcs_die("recvmsg (RPC %llu)",
				 (unsigned long long)args.id);
		/* The call took the pages back even if it found nothing. */
		args.num_bpages = 0;
	}
}

static void transmit(const struct sockaddr_storage *to, socklen_t tolen,
		     uint64_t id, uint64_t cookie, struct iovec *iov,
		     size_t count)
{
	struct homa_sendmsg_args send_args = {
		.id = id,
		.completion_cookie = cookie,
	};
	struct msghdr msg = {
		.msg_name = (void *)(uintptr_t)to,
		.msg_namelen = tolen,
		.msg_iov = iov,
		.msg_iovlen = count,
		.msg_control = &send_args,
		.msg_controllen = 0,
	};

	while (sendmsg(sock, &msg, 0) < 0)
		if (errno != EINTR)
			rpcs_die("sendmsg");
}

static void homa_listen(const struct rpcs_config *config)
{
	open_socket(config);
	rpcs_bind(sock, config);
}

/* Says where the response to a request of @got bytes is, which lies at @offsets. */
static size_t respond_with(const struct rpcs_config *config, uint32_t got,
			   const __u32 *offsets, struct iovec *iov)
{
	uint32_t left = config->response;
	size_t count = 0;

	/* the response is longer than the request, so it consists of zeros */
	if (left > got || !left) {
		iov[0] = (struct iovec){ out, left };
		return 1;
	}
	for (; left; count++) {
		uint32_t part = left < HOMA_BPAGE_SIZE ? left : HOMA_BPAGE_SIZE;

		iov[count].iov_base = region + offsets[count];
		iov[count].iov_len = part;
		left -= part;
	}
	return count;
}

static void homa_serve(const struct rpcs_config *config)
{
	struct sockaddr_storage from;
	struct iovec iov[HOMA_MAX_BPAGES];
	socklen_t fromlen;

	for (;;) {
		uint32_t got = receive_any(config, &from, &fromlen);

		transmit(&from, fromlen, args.id, 0, iov,
			 respond_with(config, got, args.bpage_offsets, iov));
	}
}

static void homa_connect(const struct rpcs_config *config)
{
	open_socket(config);
}

static void homa_send(const struct rpcs_config *config, uint32_t slot)
{
	struct iovec iov = { out, config->request };

	transmit(&config->peer, config->peerlen, 0, slot, &iov, 1);
}

/* Checks a response of @got bytes; returns its slot. */
static uint32_t slot_of(const struct rpcs_config *config, uint32_t got,
			uint64_t cookie)
{
	if (got != config->response || cookie >= config->outstanding) {
		errno = EPROTO;
		rpcs_die("a response of %u bytes, cookie %llu", got,
			 (unsigned long long)cookie);
	}
	return (uint32_t)cookie;
}

static uint32_t homa_receive(const struct rpcs_config *config)
{
	struct sockaddr_storage from;
	socklen_t fromlen;
	uint32_t got = receive_any(config, &from, &fromlen);

	return slot_of(config, got, args.completion_cookie);
}

/* ---- one call for two messages ---- */

/* Sends what @both and @iov say, and receives. The kernel waits as its sysctl says. */
static uint32_t exchange(struct iovec *iov, size_t count)
{
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = count,
		.msg_control = &both,
	};
	ssize_t n;

	both.send.flags = HOMA_SENDMSG_RECEIVE;
	both.recv.id = 0;
	n = sendmsg(sock, &msg, 0);
	if (n < 0)
		rpcs_die("sendmsg, which receives (RPC %llu)",
			 (unsigned long long)both.recv.id);
	return (uint32_t)n;
}

static void exchange_serve(const struct rpcs_config *config)
{
	struct sockaddr_storage from;
	struct iovec iov[HOMA_MAX_BPAGES];
	socklen_t fromlen;
	uint32_t got = receive_any(config, &from, &fromlen);

	memcpy(&both.peer, &from, fromlen);
	both.recv = args;
	for (;;) {
		both.send.id = both.recv.id;
		got = exchange(iov, respond_with(config, got,
						 both.recv.bpage_offsets, iov));
	}
}

static void exchange_connect(const struct rpcs_config *config)
{
	open_socket(config);
	if (connect(sock, (const struct sockaddr *)&config->peer, config->peerlen))
		rpcs_die("connect");
}

/* Begins the next RPC of @slot, and ends one. */
static uint32_t exchange_turn(const struct rpcs_config *config, uint32_t slot)
{
	struct iovec iov = { out, config->request };

	if (args.num_bpages) {
		/* pages of a message that homa_receive() returned */
		both.recv = args;
		args.num_bpages = 0;
	}
	both.send.id = 0;
	both.send.completion_cookie = slot;
	return slot_of(config, exchange(&iov, 1), both.recv.completion_cookie);
}

const struct rpcs_proto rpcs_homa = {
	.name = "homa",
	.listen = homa_listen,
	.serve = homa_serve,
	.connect = homa_connect,
	.send = homa_send,
	.receive = homa_receive,
};

const struct rpcs_proto rpcs_exchange = {
	.name = "exchange",
	.listen = homa_listen,
	.serve = exchange_serve,
	.connect = exchange_connect,
	.send = homa_send,
	.receive = homa_receive,
	.turn = exchange_turn,
};
