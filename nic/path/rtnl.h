/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * As much of rtnetlink as packet I/O needs: a request with its answers, and
 * a socket for notifications.
 *
 * Guarded by: the owner of the socket, who lets one thread at a time use it.
 */
#ifndef HOMA_NIC_RTNL_H
#define HOMA_NIC_RTNL_H

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "homa_addr.h"

/**
 * struct nic_rtnl - two netlink sockets
 * @fd: the socket for requests and their answers. It blocks, but the kernel answers within
 *	the send call.
 * @events_fd: the non-blocking socket for notifications; -1 if none were asked for.
 * @seq: the sequence number of the last request.
 */
struct nic_rtnl {
	int fd;
	int events_fd;
	u32 seq;
};

/** nic_rtnl_cb - a function that looks at one message of an answer. If it returns another value
 *  than 0, it is not called again, and the caller of nic_rtnl_request() gets this value. */
typedef int (*nic_rtnl_cb)(const struct nlmsghdr *msg, void *arg);

/** struct nic_rtnl_req - a request under construction: nic_rtnl_init() begins it, the caller
 *  fills its body, then attributes are appended. */
struct nic_rtnl_req {
	/* The header of the message, with its length so far. */
	struct nlmsghdr hdr;
	/* The body that the type of request has, then attributes. */
	u8 body[256];
};

/** nic_rtnl_open() - open the sockets. @groups: a mask of RTMGRP_*, 0 for no notifications. */
int nic_rtnl_open(struct nic_rtnl *rtnl, u32 groups);
void nic_rtnl_close(struct nic_rtnl *rtnl);

/** nic_rtnl_init() - start a request; returns its zeroed body of @len bytes. */
void *nic_rtnl_init(struct nic_rtnl_req *req, u16 type, u16 flags, u32 len);
void nic_rtnl_attr(struct nic_rtnl_req *req, u16 type, const void *data, u32 len);
/** nic_rtnl_attr_addr() - append an address, of 4 or 16 bytes. */
void nic_rtnl_attr_addr(struct nic_rtnl_req *req, u16 type,
			const struct homa_addr *addr);

/**
 * nic_rtnl_request() - send a request and read all answers
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
 * nic_rtnl_attrs() - sort attributes by type
 * @table: receives @max + 1 pointers; NULL for types that are not there.
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

/** nic_rtnl_addr() - read an address; false unless the attribute holds 4 or 16 bytes. */
bool nic_rtnl_addr(const struct rtattr *attr, struct homa_addr *addr);

#endif
