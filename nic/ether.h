/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What backends share that write Ethernet frames themselves, as AF_XDP, a packet socket and a
 * message NIC do: the interface with its addresses, the ways to peers, ICMP, packets to ourselves,
 * and the epoll set by which a thread sleeps. Netlink and ICMP are the slow side: who calls
 * nic_rx() looks at it now and then.
 *
 * Guarded by: the caller of nic.h, who lets one thread at a time use a nic.
 */
#ifndef HOMA_NIC_ETHER_H
#define HOMA_NIC_ETHER_H

#include "frame.h"
#include "icmp.h"
#include "loop.h"
#include "netif.h"
#include "nic_backend.h"
#include "path.h"
#include "rtnl.h"

/**
 * struct nic_ether - the first member of such a backend's object
 * @nic: the part that nic.c knows.
 * @netif: the interface.
 * @bound: our only address, if @has_bound.
 * @has_bound: true if one address was named when the nic was opened.
 * @rtnl: the netlink sockets.
 * @paths: the ways to peers.
 * @icmp: the sockets for ICMP.
 * @loop: the packets to ourselves.
 * @epfd: the epoll set; it has the descriptors of the slow side.
 * @ctl_calls: the number of calls of nic_rx() until the slow side is looked at again.
 * @ctl_ms: the time at which that was last done, in ms.
 */
struct nic_ether {
	struct nic nic;
	struct nic_netif netif;
	struct homa_addr bound;
	bool has_bound;
	struct nic_rtnl rtnl;
	struct nic_paths paths;
	struct nic_icmp icmp;
	struct nic_loop loop;
	int epfd;
	u32 ctl_calls;
	u64 ctl_ms;
};

static inline struct nic_ether *nic_ether_of(const struct nic *nic)
{
	return (struct nic_ether *)homa_container_of(nic, const struct nic_ether,
						     nic);
}

/** nic_ether_init() - set what must be so before nic_ether_close(); all else is 0. */
void nic_ether_init(struct nic_ether *e, const struct nic_ops *ops);
/** nic_ether_find() - find the interface and the address, and check that they will do. */
int nic_ether_find(struct nic_ether *e, const struct nic_config *config,
		   char *err, size_t errlen);
/** nic_ether_open() - open the slow side. @held sends packets that waited for a neighbour; its
 *  argument is @e. */
int nic_ether_open(struct nic_ether *e, nic_path_done held, char *err,
		   size_t errlen);
void nic_ether_close(struct nic_ether *e);

/** nic_ether_watch() - put a descriptor into the epoll set; -1 is none. */
int nic_ether_watch(struct nic_ether *e, int fd, u32 events);
/** nic_ether_unwatch() - take a descriptor that stays open out of the epoll set. */
void nic_ether_unwatch(struct nic_ether *e, int fd);
/** nic_ether_event() - work off what waits at @fd, if it is a descriptor of the slow side. @ours
 *  says whether an ICMP error is about a packet of ours. */
void nic_ether_event(struct nic_ether *e, int fd, nic_icmp_ours ours);

/** nic_ether_ours() - is an ICMP error about a Homa packet of ours? @arg: the struct nic_ether. */
bool nic_ether_ours(void *arg, const struct nic_error *error);

/** nic_ether_for_us() - is a packet that was received for us? If we have several addresses, it is
 *  noted to which its sender has sent, because answers must come from there. */
bool nic_ether_for_us(struct nic_ether *e, const struct nic_rx *pkt);

/** nic_ether_too_large() - has the packet more bytes than its path takes? */
static inline bool nic_ether_too_large(const struct nic_path *path,
				       const struct nic_tx *pkt)
{
	u32 ip = homa_addr_is_v4(&path->dst) ? NIC_IPV4_HLEN : NIC_IPV6_HLEN;

	return ip + pkt->hdr_len + pkt->payload_len > path->mtu;
}
/** nic_ether_refuse() - tell the caller by an ICMP error that a packet cannot be sent. */
void nic_ether_refuse(struct nic_ether *e, const struct nic_path *path,
		      const struct nic_tx *pkt, int error, u32 mtu);
/** nic_ether_tx_slow() - handle a packet whose path is not ready. Returns false if it cannot be
 *  taken now. @index: its number in this nic_tx(). */
bool nic_ether_tx_slow(struct nic_ether *e, struct nic_path *path,
		       const struct nic_tx *pkt, int index);

/* Functions for struct nic_ops. */
int nic_ether_errors(struct nic *nic, struct nic_error *errors, int n);
void nic_ether_port_unreachable(struct nic *nic, const struct nic_rx *pkt);
int nic_ether_fd(const struct nic *nic);
void nic_ether_believe_mtu(struct nic *nic, const struct homa_addr *dst, u32 mtu);
int nic_ether_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu);
void nic_ether_ask_by(struct nic *nic, nic_way_asker ask, void *arg);
bool nic_ether_has_address(const struct nic *nic, const struct homa_addr *addr);

#endif
