// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Errors under UDP. The kernel matches ICMP errors to our socket and queues
 * them with the packet they quote (IP_RECVERR), which is our Homa packet, so
 * ports and RPC id are known. Answering "port unreachable" for a Homa port is
 * possible only with a raw socket; without the privilege the client must time
 * out.
 */
#include <errno.h>
#include <time.h> /* before errqueue.h, which needs struct timespec */
#include <linux/errqueue.h>
#include <string.h>

#include "udp.h"

static const struct sock_extended_err *find_error(struct msghdr *mh)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c))
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
		    (c->cmsg_level == IPPROTO_IPV6 &&
		     c->cmsg_type == IPV6_RECVERR))
			return (const void *)CMSG_DATA(c);
	return NULL;
}

static int error_of(const struct sock_extended_err *ee)
{
	int error = 0;

	if (ee->ee_errno == EMSGSIZE)
		return EMSGSIZE;
	if (ee->ee_origin == SO_EE_ORIGIN_ICMP)
		error = nic_icmp_errno(ee->ee_type, ee->ee_code, false);
	else if (ee->ee_origin == SO_EE_ORIGIN_ICMP6)
		error = nic_icmp_errno(ee->ee_type, ee->ee_code, true);
	return error ? error : (int)ee->ee_errno;
}

static bool take_one(struct udp *u)
{
	u8 data[64], control[256];
	struct sockaddr_storage name;
	struct iovec iov = { data, sizeof(data) };
	struct msghdr mh = {
		.msg_name = &name,
		.msg_namelen = sizeof(name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	const struct sock_extended_err *ee;
	struct homa_addr dst;
	struct nic_error e;
	ssize_t got = recvmsg(u->fd, &mh, MSG_ERRQUEUE | MSG_DONTWAIT);

	u->nic.stats.syscalls++;
	if (got < 0)
		return false;
	ee = find_error(&mh);
	if (!ee || !mh.msg_namelen)
		return true;
	udp_from_sockaddr(&name, &dst);
	e = nic_error_for(&dst, data, (u32)got, error_of(ee), 0);
	if (e.error == EMSGSIZE) {
		/* As in struct nic_info, the UDP header is not part of the MTU. */
		e.mtu = ee->ee_info > 8 ? ee->ee_info - 8 : 0;
		udp_route_forget(u, &dst);
	}
	/* A local error has been returned by the system call, too, which knows
	 * the packet. */
	if (ee->ee_origin == SO_EE_ORIGIN_LOCAL)
		return true;
	u->nic.stats.icmp_errors++;
	nic_errq_push(&u->nic.errq, &e);
	return true;
}

void udp_take_errors(struct udp *u)
{
	for (int i = 0; i < NIC_ERRQ_SIZE; i++)
		if (!take_one(u))
			break;
}

int udp_errors(struct nic *nic, struct nic_error *errors, int n)
{
	return nic_errq_take(&nic->errq, errors, n);
}

void udp_refuse(struct udp *u, const struct nic_tx *pkt, int error, u32 mtu)
{
	struct nic_error e;

	if (error != ECONNREFUSED && error != EMSGSIZE && error != ENETUNREACH)
		error = EHOSTUNREACH;
	if (error == EMSGSIZE)
		udp_route(&u->nic, &pkt->dst, &mtu);
	e = nic_error_for(&pkt->dst, pkt->hdr, pkt->hdr_len, error, mtu);
	nic_errq_push(&u->nic.errq, &e);
	u->nic.stats.tx_errors++;
}

void udp_port_unreachable(struct nic *nic, const struct nic_rx *pkt)
{
	struct udp *u = udp_of(nic);

	nic_icmp_unreachable(&u->icmp, pkt, u->port, u->scope);
}
