/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The way to each peer, for a backend that builds its own frames: route, next
 * hop, link address and the finished header template, cached per destination.
 * Packets for a peer whose link address is not known yet are held, a few of
 * them, until the kernel has resolved it.
 *
 * Guarded by: the owner of the table, who lets one thread at a time use it.
 */
#ifndef HOMA_NIC_PATH_H
#define HOMA_NIC_PATH_H

#include "frame.h"
#include "hop.h"
#include "netif.h"
#include "way.h"

/* The most packets that are held for one destination, and for all destinations together.
 * One owner may have half of all. */
#define NIC_PATH_HOLD 32
#define NIC_PATH_HOLD_ALL 512
/* The number of counters of held packets; an owner's counter is found by a hash of its
 * number. */
#define NIC_PATH_OWNERS 256
/* The most destinations that are remembered. */
#define NIC_PATH_MAX 16384

enum nic_path_state {
	NIC_PATH_RESOLVING, /* The link address is not known yet. */
	NIC_PATH_READY,	    /* The header template is complete. */
	NIC_PATH_LOCAL,	    /* The destination is an address of this host. */
	NIC_PATH_FAILED,    /* The destination cannot be reached. */
};

/**
 * struct nic_path - one destination
 * @next: the next path in the same bucket.
 * @wait_next: the next path of the same hop that holds packets.
 * @wait_at: the pointer to this path in that list; NULL if it is not in the list.
 * @hold_next: the next path that holds packets.
 * @hold_at: the pointer to this path in that list; NULL if it is not in the list.
 * @place: its place in the table's ring.
 * @recent: true if it was found again since the ring's hand came by.
 * @asking: true if another thread asks the kernel about it, since the time @resolved_ms.
 * @dst: the destination's address.
 * @frame: the header template, valid if the path is ready.
 * @state: whether packets can be sent.
 * @error: if the path has failed, a positive errno: ENETUNREACH or EHOSTUNREACH.
 * @mtu: the IP MTU towards it in bytes.
 * @generation: the table's generation when the path was resolved; an older one is looked up
 *	again.
 * @hop: the next hop, NULL if there is no route.
 * @hop_version: the version of the hop when the path last looked at it.
 * @src: our address in packets to it.
 * @heard: the address of ours that it last sent to, if that is not the one we
 *	would choose; unspecified otherwise. Answers must come from there.
 * @used: true if a packet was sent since the last tick.
 * @resolved_ms: the time at which the state was last decided, in ms; failures are retried later.
 * @pmtu: the MTU in bytes that ICMP told, 0 if it told none.
 * @pmtu_ms: the time at which ICMP told it, in ms; it is forgotten after ten minutes
 *	(RFC 1191 6.3).
 * @held: the packets that are held, oldest first.
 * @n_held: the number of held packets.
 */
struct nic_path {
	struct nic_path *next;
	struct nic_path *wait_next, **wait_at;
	struct nic_path *hold_next, **hold_at;
	u32 place;
	bool recent, asking;
	struct homa_addr dst;
	struct nic_frame_template frame;
	enum nic_path_state state;
	int error;
	u32 mtu;
	u32 generation;
	struct nic_hop *hop;
	u32 hop_version;
	struct homa_addr src;
	struct homa_addr heard;
	bool used;
	u64 resolved_ms;
	u32 pmtu;
	u64 pmtu_ms;
	struct nic_held *held;
	u32 n_held;
};

/**
 * struct nic_held - a copy of a packet that is held
 * @next: the next packet that is held for the same path.
 * @pkt: the packet; its hdr and payload point to @bytes, and its src, unless NULL, to @src.
 * @src: the address that pkt.src points to.
 * @bytes: header and payload.
 */
struct nic_held {
	struct nic_held *next;
	struct nic_tx pkt;
	struct homa_addr src;
	u8 bytes[];
};

/**
 * nic_path_done - a function that takes a packet which is not held any more
 * @error: 0 if the path is ready, so that the packet is to be sent; else a positive errno.
 */
typedef void (*nic_path_done)(void *arg, struct nic_path *path,
			      const struct nic_tx *pkt, int error);

/**
 * struct nic_paths - the table
 * @buckets: the hash table, by destination.
 * @hops: the next hops.
 * @ring: all paths.
 * @key: the random key of the hash.
 * @count: the number of paths.
 * @hand: the place in the ring that is looked at first when a path must go.
 * @held: the number of held packets of all paths.
 * @held_by: the number of held packets of each owner, by a hash of its number.
 * @generation: a number that is raised when routes, addresses or the link change.
 * @routes_ms: the time at which it was last raised, in ms.
 * @ask: the function that has another thread ask the kernel; NULL if the kernel is asked here.
 * @ask_arg: its argument.
 * @asked: how often the kernel was asked here.
 * @rtnl: the netlink socket for questions to the kernel; borrowed.
 * @netif: our interface; borrowed, but its list of addresses is refreshed here.
 * @mtu_max: the MTU in bytes that the backend's buffers were made for; an MTU that is raised
 *	later is used up to this.
 * @bound: the only source address to use, or NULL.
 * @done: the function that takes packets which are not held any more.
 * @arg: its argument.
 * @holding: the first of the paths that hold packets.
 * @tick_ms: the time at which the last sweep over all paths began, in ms.
 * @sweep: the number of paths that this sweep has not come to.
 * @changed: true if the interface or its addresses have changed; the backend clears it.
 */
struct nic_paths {
	struct nic_path **buckets;
	struct nic_hops hops;
	struct nic_path **ring;
	u64 key[2];
	u32 count;
	u32 hand;
	u32 held;
	u16 held_by[NIC_PATH_OWNERS];
	u32 generation;
	u64 routes_ms;
	nic_way_asker ask;
	void *ask_arg;
	u64 asked;
	struct nic_rtnl *rtnl;
	struct nic_netif *netif;
	u32 mtu_max;
	const struct homa_addr *bound;
	nic_path_done done;
	void *arg;
	struct nic_path *holding;
	u64 tick_ms;
	u32 sweep;
	bool changed;
};

int nic_paths_init(struct nic_paths *paths, struct nic_rtnl *rtnl,
		   struct nic_netif *netif, const struct homa_addr *bound,
		   nic_path_done done, nic_path_touch touch, void *arg);
void nic_paths_fini(struct nic_paths *paths);

/** nic_paths_limit_mtu() - use at most @most bytes of the interface's MTU from now on. */
void nic_paths_limit_mtu(struct nic_paths *paths, u32 most);

/** nic_path_find() - the path to @dst, resolved as far as the kernel has told. NULL only if
 *  memory is lacking, or the table is full of paths that hold packets. */
struct nic_path *nic_path_find(struct nic_paths *paths,
			       const struct homa_addr *dst);

/** nic_path_learn() - take in the kernel's answer to a question of ours, or of another thread
 *  that will have packets sent to this destination. */
void nic_path_learn(struct nic_paths *paths, const struct nic_way *way);

/** nic_path_hold() - keep a copy of @pkt until the path is resolved; false if there is no room,
 *  or its owner has his share of it. */
bool nic_path_hold(struct nic_paths *paths, struct nic_path *path,
		   const struct nic_tx *pkt);

/** nic_held_settle() - give all packets that @path holds to nic_paths.done, with @error. That
 *  function may not have them held again. */
void nic_held_settle(struct nic_paths *paths, struct nic_path *path, int error);
/** nic_held_drop() - free all packets that @path holds. */
void nic_held_drop(struct nic_paths *paths, struct nic_path *path);
/** nic_held_leave(), nic_held_join() - take a path out of the list of its hop, and put it in,
 *  before and after its hop changes. */
void nic_held_leave(struct nic_path *path);
void nic_held_join(struct nic_path *path);

/** nic_path_set_pmtu() - take in the path's MTU in bytes, as an ICMP error told it. */
void nic_path_set_pmtu(struct nic_paths *paths, const struct homa_addr *dst,
		       u32 mtu);

/** nic_path_heard() - note that @peer has sent to @local, one of several addresses of ours. */
void nic_path_heard(struct nic_paths *paths, const struct homa_addr *peer,
		    const struct homa_addr *local);

/** nic_paths_events() - take in the kernel's notifications of neighbours, routes and the link. */
void nic_paths_events(struct nic_paths *paths);

/** nic_paths_tick() - refresh the neighbours in use, and end resolutions of which nothing was
 *  heard. It is called now and then. Each call does a bounded part, and the next one goes on. */
void nic_paths_tick(struct nic_paths *paths, u64 now_ms);

#endif
