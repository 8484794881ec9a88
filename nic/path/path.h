/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The way to each peer, for a backend that builds its own frames: route, next
 * hop, link address and the finished header template, cached per destination.
 * Packets for a peer whose link address is not known yet are held, a few of
 * them, until the kernel has resolved it.
 */
#ifndef HOMA_NIC_PATH_H
#define HOMA_NIC_PATH_H

#include "frame.h"
#include "hop.h"
#include "netif.h"
#include "way.h"

#define NIC_PATH_HOLD 32      /* packets held per destination */
#define NIC_PATH_HOLD_ALL 512 /* and in all; half of it for one owner */
#define NIC_PATH_OWNERS 256
#define NIC_PATH_MAX 16384 /* destinations remembered */

enum nic_path_state {
	NIC_PATH_RESOLVING, /* waiting for the link address */
	NIC_PATH_READY,	    /* the template is complete */
	NIC_PATH_LOCAL,	    /* our own address */
	NIC_PATH_FAILED,    /* see error */
};

/**
 * struct nic_path - one destination
 * @next: hash chain.
 * @wait_next, @wait_at: list of those of its hop that hold packets; @wait_at NULL: it
 *	holds none.
 * @hold_next, @hold_at: list of those that hold packets; @hold_at NULL: it holds none.
 * @place: in the table's ring.
 * @recent: found again since the ring's hand came by.
 * @asking: somebody else asks the kernel about it, since @resolved_ms.
 * @dst: key.
 * @frame: header template, valid when ready.
 * @state: see above.
 * @error: FAILED: positive errno (ENETUNREACH, EHOSTUNREACH).
 * @mtu: IP MTU towards it, bytes.
 * @generation: of the table when it was resolved; an older one is looked up again.
 * @hop: next hop, NULL if there is no route. @hop_version: its, when last looked at.
 * @src: our address towards it.
 * @heard: the address of ours that it last sent to, if that is not the one we
 *	would choose; unspecified otherwise. Answers must come from there.
 * @used: a packet was sent since the last tick.
 * @resolved_ms: when the state was last decided; failures are retried later.
 * @pmtu: MTU learned from ICMP, 0 if none.
 * @pmtu_ms: when it was learned; forgotten after ten minutes (RFC 1191 6.3).
 * @held: packets waiting, oldest first.
 * @n_held: how many.
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

/** struct nic_held - a copy of a packet; hdr and payload point behind it, src to @src */
struct nic_held {
	struct nic_held *next;
	struct nic_tx pkt;
	struct homa_addr src;
	u8 bytes[];
};

/**
 * nic_path_done - what became of a held packet
 * @error: 0: the path is ready, send it now; else positive errno.
 */
typedef void (*nic_path_done)(void *arg, struct nic_path *path,
			      const struct nic_tx *pkt, int error);

/**
 * struct nic_paths - the table
 * @buckets: hash table by destination.
 * @hops: the next hops.
 * @ring: all of them, @count; @hand: who is looked at first when one must go.
 * @key: of the hash, random.
 * @held: packets held in all. @held_by: those of owners, by a hash.
 * @generation: raised when routes, addresses or the link change; @routes_ms: when it was.
 * @ask, @ask_arg: who asks the kernel for us; NULL: nobody, so that it is asked here.
 * @asked: how often it was asked here.
 * @rtnl: for questions to the kernel; borrowed.
 * @netif: our interface; borrowed, its address list is refreshed here.
 * @mtu_max: what the backend's buffers were made for; an MTU raised later is
 *	used up to here.
 * @bound: the only source address to use, or NULL.
 * @done: takes held packets.
 * @arg: for it.
 * @holding: those that hold packets.
 * @tick_ms: when the last sweep over all began. @sweep: how many of them it has not
 *	come to.
 * @changed: interface or addresses changed; the owner clears it.
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

/** nic_path_find() - the path to @dst, resolved as far as the kernel has said;
 *  NULL only for lack of memory, or of room while all wait for neighbours. */
struct nic_path *nic_path_find(struct nic_paths *paths,
			       const struct homa_addr *dst);

/** nic_path_learn() - the kernel has said this to a question of ours, or to somebody's who
 *  will use the path now. */
void nic_path_learn(struct nic_paths *paths, const struct nic_way *way);

/** nic_path_hold() - keep a copy until the path is resolved; false if the
 *  bounded queue is full, or its owner has his share of it. */
bool nic_path_hold(struct nic_paths *paths, struct nic_path *path,
		   const struct nic_tx *pkt);

/** nic_held_settle() - hand all that @path holds over; @error as in nic_path_done. The
 *  callback may not have them held again. nic_held_drop() - forget them. */
void nic_held_settle(struct nic_paths *paths, struct nic_path *path, int error);
void nic_held_drop(struct nic_paths *paths, struct nic_path *path);
/** nic_held_leave(), nic_held_join() - before and after the hop of a path that holds
 *  packets changes. */
void nic_held_leave(struct nic_path *path);
void nic_held_join(struct nic_path *path);

/** nic_path_set_pmtu() - an ICMP error told the path's MTU. */
void nic_path_set_pmtu(struct nic_paths *paths, const struct homa_addr *dst,
		       u32 mtu);

/** nic_path_heard() - @peer sent to @local, one of several addresses of ours. */
void nic_path_heard(struct nic_paths *paths, const struct homa_addr *peer,
		    const struct homa_addr *local);

/** nic_paths_events() - take in notifications: neighbours, routes, link. */
void nic_paths_events(struct nic_paths *paths);

/** nic_paths_tick() - now and then: refresh the neighbours in use, and end
 *  resolutions of which nothing was heard. Bounded: what one call does not come to
 *  is the next ones'. */
void nic_paths_tick(struct nic_paths *paths, u64 now_ms);

#endif
