/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * As much of rtnetlink as packet I/O needs: a request with its answers, and
 * a socket for notifications.
 */
#ifndef HOMA_NIC_RTNL_H
#define HOMA_NIC_RTNL_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "homa_addr.h"

/**
 * struct nic_rtnl - two netlink sockets
 * @fd: requests and their answers; blocking, but the kernel answers within the
 *	send call.
 * @events_fd: notifications, non-blocking; -1 if none were asked for.
 * @seq: sequence number of the last request.
 */
struct nic_rtnl {
	int fd;
	int events_fd;
	u32 seq;
};

/** nic_rtnl_cb - looks at one message; a non-zero return ends the walk and is
 *  returned to the caller. */
typedef int (*nic_rtnl_cb)(const struct nlmsghdr *msg, void *arg);

/** struct nic_rtnl_req - a request under construction; zero it, set @hdr's type,
 *  flags and length, fill the body, then append attributes. */
struct nic_rtnl_req {
	struct nlmsghdr hdr;
	u8 body[256];
};

/** nic_rtnl_open() - @groups: mask of RTMGRP_*, 0 for no notifications. */
int nic_rtnl_open(struct nic_rtnl *rtnl, u32 groups);
void nic_rtnl_close(struct nic_rtnl *rtnl);

/** nic_rtnl_init() - start a request; returns its zeroed body of @len bytes. */
void *nic_rtnl_init(struct nic_rtnl_req *req, u16 type, u16 flags, u32 len);
void nic_rtnl_attr(struct nic_rtnl_req *req, u16 type, const void *data, u32 len);
/** nic_rtnl_attr_addr() - an address as 4 or 16 bytes. */
void nic_rtnl_attr_addr(struct nic_rtnl_req *req, u16 type,
			const struct homa_addr *addr);

/**
 * nic_rtnl_request() - send and read all answers
 * Returns 0, the kernel's negative errno, or @cb's non-zero value.
 */
int nic_rtnl_request(struct nic_rtnl *rtnl, struct nic_rtnl_req *req,
		     nic_rtnl_cb cb, void *arg);

/**
 * nic_rtnl_events() - read waiting notifications
 * Returns how many messages were seen, or -ENOBUFS if some were lost.
 */
int nic_rtnl_events(struct nic_rtnl *rtnl, nic_rtnl_cb cb, void *arg);

/**
 * nic_rtnl_attrs() - index attributes by type
 * @table: @max + 1 pointers, all set.
 */
void nic_rtnl_attrs(const struct rtattr **table, int max,
		    const struct rtattr *attr, int len);
static inline u32 nic_rtnl_u32(const struct rtattr *attr)
{
	u32 v = 0;

	if (attr && RTA_PAYLOAD(attr) >= sizeof(v))
		memcpy(&v, RTA_DATA(attr), sizeof(v));
	return v;
}

/** nic_rtnl_addr() - false unless the attribute holds 4 or 16 bytes. */
bool nic_rtnl_addr(const struct rtattr *attr, struct homa_addr *addr);

#endif
