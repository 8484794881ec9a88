// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Who has a queue? The kernel takes a closed AF_XDP socket's buffers down some
 * milliseconds later, and until then a new bind is refused just as if the queue
 * had an owner. To tell the two apart, each of our processes claims its queues by
 * an abstract UNIX socket name: those belong to the network namespace and vanish
 * at once when their process ends. Owners that are not ours show in socket
 * diagnostics, where the kernel has them.
 */
#include "afxdp.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/xdp_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* struct wanted - the queue that is looked for */
struct wanted {
	/* The kernel's number of the interface. */
	u32 ifindex;
	/* The number of the queue on it. */
	u32 queue;
};

static int match(const struct nlmsghdr *msg, void *arg)
{
	const struct xdp_diag_msg *diag = NLMSG_DATA(msg);
	const struct rtattr *attrs[XDP_DIAG_MAX + 1];
	const struct wanted *wanted = arg;
	struct xdp_diag_info info;

	nic_rtnl_attrs(attrs, XDP_DIAG_MAX, (const struct rtattr *)(diag + 1),
		       (int)msg->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*diag)));
	if (!attrs[XDP_DIAG_INFO] ||
	    RTA_PAYLOAD(attrs[XDP_DIAG_INFO]) < sizeof(info))
		return 0;
	memcpy(&info, RTA_DATA(attrs[XDP_DIAG_INFO]), sizeof(info));
	return info.ifindex == wanted->ifindex && info.queue_id == wanted->queue;
}

int afxdp_queue_taken(int ifindex, u32 queue)
{
	struct wanted wanted = { (u32)ifindex, queue };
	struct nic_rtnl diag = { .events_fd = -1 };
	struct nic_rtnl_req req;
	struct xdp_diag_req *body;
	int rc;

	diag.fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (diag.fd < 0)
		return -errno;
	body = nic_rtnl_init(&req, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP,
			     sizeof(*body));
	body->sdiag_family = AF_XDP;
	body->xdiag_show = XDP_SHOW_INFO;
	rc = nic_rtnl_request(&diag, &req, match, &wanted);
	nic_rtnl_close(&diag);
	return rc;
}

int afxdp_queue_claim(int ifindex, u32 queue)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int len;

	if (fd < 0)
		return -errno;
	len = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1,
		       "homa-afxdp-%d-%u", ifindex, queue);
	len += (int)offsetof(struct sockaddr_un, sun_path) + 1;
	if (bind(fd, (struct sockaddr *)&addr, (socklen_t)len) < 0) {
		int rc = errno == EADDRINUSE ? -EBUSY : -errno;

		close(fd);
		return rc;
	}
	return fd;
}
