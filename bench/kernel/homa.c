// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * RPCs over Homa sockets, written as a program for the existing module would
 * be. A response is sent from where its request lies in the receive region; the
 * pages go back with the next recvmsg(). Whether the kernel polls before it
 * blocks is its setting (sysctl net.homa.poll_usecs), not this program's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "homa_socket.h"
#include "rpcs.h"

/* Bytes of the receive region: room for what is outstanding, and at least what the kernel
 * asks for. */
#define REGION ((size_t)64 << 20)

static int sock = -1;
static char *region;
static struct homa_recvmsg_args args;
static char out[RPCS_MAX_MESSAGE];

static void open_socket(const struct rpcs_config *config)
{
	struct homa_rcvbuf_args rcvbuf = { 0 };

	sock = socket(config->peer.ss_family, SOCK_DGRAM, IPPROTO_HOMA);
	if (sock < 0)
		rpcs_die("no Homa sockets here (load the module)");
	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (region == MAP_FAILED)
		rpcs_die("mmap");
	rcvbuf.start = (uintptr_t)region;
	rcvbuf.length = REGION;
	if (setsockopt(sock, IPPROTO_HOMA, SO_HOMA_RCVBUF, &rcvbuf,
		       sizeof(rcvbuf)))
		rpcs_die("SO_HOMA_RCVBUF");
}

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
	if (bind(sock, (const struct sockaddr *)&config->peer, config->peerlen))
		rpcs_die("bind");
}

static void homa_serve(const struct rpcs_config *config)
{
	struct sockaddr_storage from;
	struct iovec iov[HOMA_MAX_BPAGES];
	socklen_t fromlen;

	for (;;) {
		uint32_t got = receive_any(config, &from, &fromlen);
		uint32_t left = config->response;
		size_t count = 0;

		/* the response is longer than the request, so it consists of zeros */
		if (left > got || !left) {
			iov[0] = (struct iovec){ out, left };
			count = 1;
			left = 0;
		}
		for (; left; count++) {
			uint32_t part =
				left < HOMA_BPAGE_SIZE ? left : HOMA_BPAGE_SIZE;

			iov[count].iov_base = region + args.bpage_offsets[count];
			iov[count].iov_len = part;
			left -= part;
		}
		transmit(&from, fromlen, args.id, 0, iov, count);
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

static uint32_t homa_receive(const struct rpcs_config *config)
{
	struct sockaddr_storage from;
	socklen_t fromlen;
	uint32_t got = receive_any(config, &from, &fromlen);

	if (got != config->response ||
	    args.completion_cookie >= config->outstanding) {
		errno = EPROTO;
		rpcs_die("a response of %u bytes, cookie %llu", got,
			 (unsigned long long)args.completion_cookie);
	}
	return (uint32_t)args.completion_cookie;
}

const struct rpcs_proto rpcs_homa = {
	"homa", homa_listen, homa_serve, homa_connect, homa_send, homa_receive,
};
