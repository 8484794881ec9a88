// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Raw ICMP sockets. A classic BPF filter lets only errors that quote protocol
 * 146 through, and TCP if we speak it, so a ping flood beside us costs nothing.
 * Sending goes through the kernel, which routes and resolves; errors are rare and
 * must not compete with data for frames.
 */
#include "icmp.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame.h"
#include "netif.h"

/* The most errors that are sent in a second, and at once. */
#define RATE 1000
#define BURST 50

/* The filters for errors that quote a Homa packet, or one of the protocol @second. A raw IPv4
 * socket sees the IP header, a raw ICMPv6 socket does not. */
#define FILTER4(second)                                                  \
	{                                                                \
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),                  \
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 0),                   \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 3, 2, 0),            \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 11, 1, 0),           \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 12, 0, 4),           \
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, 8 + 9),               \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_HOMA, 1, 0), \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),       \
		BPF_STMT(BPF_RET | BPF_K, 0xffff),                       \
		BPF_STMT(BPF_RET | BPF_K, 0),                            \
	}

#define FILTER6(second)                                                  \
	{                                                                \
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),                   \
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 128, 4, 0),          \
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8 + 6),               \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_HOMA, 1, 0), \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, second, 0, 1),       \
		BPF_STMT(BPF_RET | BPF_K, 0xffff),                       \
		BPF_STMT(BPF_RET | BPF_K, 0),                            \
	}

static const struct sock_filter filter4[] = FILTER4(IPPROTO_HOMA);
static const struct sock_filter filter6[] = FILTER6(IPPROTO_HOMA);
static const struct sock_filter filter4_tcp[] = FILTER4(IPPROTO_TCP);
static const struct sock_filter filter6_tcp[] = FILTER6(IPPROTO_TCP);

static const struct sock_filter filter_none[] = {
	BPF_STMT(BPF_RET | BPF_K, 0),
};

static int set_filter(int fd, const struct sock_filter *code, size_t n)
{
	struct sock_fprog prog = {
		.len = (unsigned short)n,
		.filter = (struct sock_filter *)code,
	};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
}

static int open_raw(int family, int proto, const struct sock_filter *code,
		    size_t n)
{
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, proto);

	if (fd < 0)
		return -errno;
	if (set_filter(fd, code, n) < 0) {
		int e = -errno;

		close(fd);
		return e;
	}
	return fd;
}

int nic_icmp_open(struct nic_icmp *icmp, bool receive)
{
	const struct sock_filter *f4 = receive ? filter4 : filter_none;
	const struct sock_filter *f6 = receive ? filter6 : filter_none;
	size_t n4 = receive ? HOMA_ARRAY_SIZE(filter4) : 1;
	size_t n6 = receive ? HOMA_ARRAY_SIZE(filter6) : 1;
	int e;

	icmp->tokens = BURST;
	icmp->tokens_ms = 0;
	icmp->fd4 = open_raw(AF_INET, IPPROTO_ICMP, f4, n4);
	icmp->fd6 = open_raw(AF_INET6, IPPROTO_ICMPV6, f6, n6);
	if (icmp->fd4 >= 0 || icmp->fd6 >= 0)
		return 0;
	e = icmp->fd4;
	icmp->fd4 = -1;
	icmp->fd6 = -1;
	return e;
}

void nic_icmp_take_tcp(const struct nic_icmp *icmp)
{
	if (icmp->fd4 >= 0)
		set_filter(icmp->fd4, filter4_tcp, HOMA_ARRAY_SIZE(filter4_tcp));
	if (icmp->fd6 >= 0)
		set_filter(icmp->fd6, filter6_tcp, HOMA_ARRAY_SIZE(filter6_tcp));
}

void nic_icmp_close(struct nic_icmp *icmp)
{
	if (icmp->fd4 >= 0)
		close(icmp->fd4);
	if (icmp->fd6 >= 0)
		close(icmp->fd6);
	icmp->fd4 = -1;
	icmp->fd6 = -1;
}

static int receive_one(int fd, bool v6, struct nic_error *error)
{
	u8 buf[2048];
	const u8 *msg = buf;
	ssize_t got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	u32 len, hlen;

	if (got < 0)
		return errno == EINTR ? -EBADMSG : -EAGAIN;
	len = (u32)got;
	if (!v6) {
		if (len < NIC_IPV4_HLEN)
			return -EBADMSG;
		hlen = (u32)(buf[0] & 15) * 4;
		if (len < hlen)
			return -EBADMSG;
		msg += hlen;
		len -= hlen;
	}
	return nic_icmp_parse(msg, len, v6, error);
}

int nic_icmp_receive(struct nic_icmp *icmp, struct nic_errq *q,
		     nic_icmp_ours ours, void *arg)
{
	int taken = 0;

	for (int v6 = 0; v6 < 2; v6++) {
		int fd = v6 ? icmp->fd6 : icmp->fd4;
		struct nic_error error;
		int rc;

		/* This is bounded, so that a flood of errors cannot hold the caller. */
		for (int i = 0; fd >= 0 && i < NIC_ERRQ_SIZE; i++) {
			rc = receive_one(fd, v6, &error);
			if (rc == -EAGAIN)
				break;
			if (rc || !ours(arg, &error))
				continue;
			nic_errq_push(q, &error);
			taken++;
		}
	}
	return taken;
}

static bool take_token(struct nic_icmp *icmp)
{
	u64 now = nic_now_ms();
	u64 more = (now - icmp->tokens_ms) * RATE / 1000;

	if (more) {
		icmp->tokens = (u32)homa_min_u64(BURST, icmp->tokens + more);
		icmp->tokens_ms = now;
	}
	if (!icmp->tokens)
		return false;
	icmp->tokens--;
	return true;
}

/* Send an ICMP message. @from: the source address, or NULL if the kernel chooses it. @ifindex: the
 * device to go through, 0 for any. */
static bool send_v4(int fd, const u8 *msg, u32 len, const struct homa_addr *dst,
		    const struct homa_addr *from, u32 ifindex)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct iovec iov = { (void *)msg, len };
	_Alignas(struct cmsghdr)
		u8 control[CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct msghdr mh = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
	struct in_pktinfo info = { .ipi_ifindex = (int)ifindex };

	memcpy(&to.sin_addr, dst->ip + 12, 4);
	if (from)
		memcpy(&info.ipi_spec_dst, from->ip + 12, 4);
	memset(control, 0, sizeof(control));
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	return sendmsg(fd, &mh, MSG_DONTWAIT) >= 0;
}

static bool send_v6(int fd, const u8 *msg, u32 len, const struct homa_addr *dst,
		    const struct homa_addr *from, u32 ifindex)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6 };
	struct iovec iov = { (void *)msg, len };
	_Alignas(struct cmsghdr)
		u8 control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct msghdr mh = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
	struct in6_pktinfo info = { .ipi6_ifindex = ifindex };

	memcpy(&to.sin6_addr, dst->ip, 16);
	to.sin6_scope_id = ifindex;
	if (from)
		memcpy(&info.ipi6_addr, from->ip, 16);
	memset(control, 0, sizeof(control));
	c->cmsg_level = IPPROTO_IPV6;
	c->cmsg_type = IPV6_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	return sendmsg(fd, &mh, MSG_DONTWAIT) >= 0;
}

bool nic_icmp_touch(struct nic_icmp *icmp, const struct homa_addr *hop,
		    u32 ifindex)
{
	u8 echo[8] = { 8 };

	if (homa_addr_is_v4(hop)) {
		homa_put_be16(echo + 2, nic_checksum(echo, sizeof(echo), 0));
		return icmp->fd4 >= 0 && send_v4(icmp->fd4, echo, sizeof(echo),
						 hop, NULL, ifindex);
	}
	echo[0] = ICMP6_ECHO_REQUEST;
	return icmp->fd6 >= 0 &&
	       send_v6(icmp->fd6, echo, sizeof(echo), hop, NULL, ifindex);
}

bool nic_icmp_unreachable(struct nic_icmp *icmp, const struct nic_rx *pkt,
			  u16 local_port, u32 ifindex)
{
	u8 msg[NIC_ICMP_MAX];
	bool v4 = homa_addr_is_v4(&pkt->src);
	int fd = v4 ? icmp->fd4 : icmp->fd6;
	u32 len;

	if (fd < 0 || nic_addr_no_host(&pkt->src) || !take_token(icmp))
		return false;
	len = nic_icmp_build(msg, pkt, local_port);
	if (v4)
		return send_v4(fd, msg, len, &pkt->src, &pkt->dst, 0);
	return send_v6(fd, msg, len, &pkt->src, &pkt->dst,
		       nic_addr_link_local(&pkt->src) ? ifindex : 0);
}
