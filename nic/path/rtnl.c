// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Rtnetlink without a library: three request types and five notifications do
 * not need one. Requests are answered by the kernel before send() returns, so
 * a request never waits for the network.
 */
#include "rtnl.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_socket(u32 groups, int flags)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags,
			NETLINK_ROUTE);
	int one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int e = -errno;

		close(fd);
		return e;
	}
	return fd;
}

int nic_rtnl_open(struct nic_rtnl *rtnl, u32 groups)
{
	rtnl->seq = 0;
	rtnl->events_fd = -1;
	rtnl->fd = open_socket(0, 0);
	if (rtnl->fd < 0)
		return rtnl->fd;
	if (!groups)
		return 0;
	rtnl->events_fd = open_socket(groups, SOCK_NONBLOCK);
	if (rtnl->events_fd < 0) {
		int e = rtnl->events_fd;

		close(rtnl->fd);
		rtnl->fd = -1;
		return e;
	}
	return 0;
}

void nic_rtnl_close(struct nic_rtnl *rtnl)
{
	if (rtnl->fd >= 0)
		close(rtnl->fd);
	if (rtnl->events_fd >= 0)
		close(rtnl->events_fd);
	rtnl->fd = -1;
	rtnl->events_fd = -1;
}

void *nic_rtnl_init(struct nic_rtnl_req *req, u16 type, u16 flags, u32 len)
{
	memset(req, 0, sizeof(*req));
	req->hdr.nlmsg_type = type;
	req->hdr.nlmsg_flags = flags | NLM_F_REQUEST;
	req->hdr.nlmsg_len = NLMSG_LENGTH(len);
	return NLMSG_DATA(&req->hdr);
}

void nic_rtnl_attr(struct nic_rtnl_req *req, u16 type, const void *data, u32 len)
{
	u32 at = NLMSG_ALIGN(req->hdr.nlmsg_len);
	struct rtattr *rta;

	if (at + RTA_SPACE(len) > sizeof(*req))
		return;
	rta = (struct rtattr *)((u8 *)req + at);
	rta->rta_type = type;
	rta->rta_len = (u16)RTA_LENGTH(len);
	memcpy(RTA_DATA(rta), data, len);
	req->hdr.nlmsg_len = at + RTA_ALIGN(rta->rta_len);
}

void nic_rtnl_attr_addr(struct nic_rtnl_req *req, u16 type,
			const struct homa_addr *addr)
{
	if (homa_addr_is_v4(addr))
		nic_rtnl_attr(req, type, addr->ip + 12, 4);
	else
		nic_rtnl_attr(req, type, addr->ip, 16);
}

/* Look at the messages of an answer; true if the last one was among them. @result receives an
 * error or what the callback returned. */
static bool walk(const u8 *buf, int len, u32 seq, nic_rtnl_cb cb, void *arg,
		 int *result)
{
	const struct nlmsghdr *msg = (const struct nlmsghdr *)buf;

	for (; NLMSG_OK(msg, (u32)len); msg = NLMSG_NEXT(msg, len)) {
		if (msg->nlmsg_seq != seq)
			continue;
		if (msg->nlmsg_type == NLMSG_DONE)
			return true;
		if (msg->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *e = NLMSG_DATA(msg);

			if (!*result)
				*result = e->error;
			return true;
		}
		if (cb && !*result)
			*result = cb(msg, arg);
		if (!(msg->nlmsg_flags & NLM_F_MULTI))
			return true;
	}
	return false;
}

int nic_rtnl_request(struct nic_rtnl *rtnl, struct nic_rtnl_req *req,
		     nic_rtnl_cb cb, void *arg)
{
	_Alignas(struct nlmsghdr) u8 buf[16384];
	int result = 0;
	ssize_t got;

	req->hdr.nlmsg_seq = ++rtnl->seq;
	if (send(rtnl->fd, req, req->hdr.nlmsg_len, 0) < 0)
		return -errno;
	do {
		got = recv(rtnl->fd, buf, sizeof(buf), 0);
		if (got < 0) {
			if (errno == EINTR) {
				got = 0;
				continue;
			}
			return -errno;
		}
	} while (!walk(buf, (int)got, rtnl->seq, cb, arg, &result));
	return result;
}

int nic_rtnl_events(struct nic_rtnl *rtnl, nic_rtnl_cb cb, void *arg)
{
	_Alignas(struct nlmsghdr) u8 buf[16384];
	int seen = 0;

	for (;;) {
		const struct nlmsghdr *msg = (const struct nlmsghdr *)buf;
		ssize_t got =
			recv(rtnl->events_fd, buf, sizeof(buf), MSG_DONTWAIT);
		int len = (int)got;

		if (got < 0) {
			if (errno == EINTR)
				continue;
			return errno == ENOBUFS ? -ENOBUFS : seen;
		}
		for (; NLMSG_OK(msg, (u32)len); msg = NLMSG_NEXT(msg, len)) {
			seen++;
			cb(msg, arg);
		}
	}
}

void nic_rtnl_attrs(const struct rtattr **table, int max,
		    const struct rtattr *attr, int len)
{
	memset(table, 0, sizeof(*table) * ((size_t)max + 1));
	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		int type = attr->rta_type & NLA_TYPE_MASK;

		if (type <= max)
			table[type] = attr;
	}
}

bool nic_rtnl_addr(const struct rtattr *attr, struct homa_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (!attr)
		return false;
	if (RTA_PAYLOAD(attr) == 4) {
		addr->ip[10] = 0xff;
		addr->ip[11] = 0xff;
		memcpy(addr->ip + 12, RTA_DATA(attr), 4);
		return true;
	}
	if (RTA_PAYLOAD(attr) != 16)
		return false;
	memcpy(addr->ip, RTA_DATA(attr), 16);
	return true;
}
