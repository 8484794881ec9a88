/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The engine's own view of its objects. Each struct says which lock protects
 * which field. Lock order, at most one of each class at a time:
 *
 *	shard -> sock table -> sock -> peer table -> peer -> grant -> link -> once
 *
 * An RPC is found and changed under its shard's lock. The two schedulers see
 * only the parts of an RPC that are theirs: struct homa_out (link lock) and
 * struct homa_grantee (grant lock). Who keeps a pointer to an RPC beyond a
 * lock holds a reference (homa_rpc.refs); the last one to let go retires it.
 */
#ifndef HOMA_OBJECTS_H
#define HOMA_OBJECTS_H

#include "homa_codec.h"
#include "homa_engine.h"
#include "homa_hash.h"
#include "homa_heap.h"
#include "homa_list.h"
#include "homa_ports.h"
#include "homa_ranges.h"
#include "homa_rng.h"
#include "homa_table.h"
#include "homa_wheel.h"

#define HOMA_OUT_RTX 64u	/* ranges to send again kept per message, at most */
#define HOMA_SOCK_BUCKETS 256u	/* unless limits say otherwise */
#define HOMA_PEER_STRIPES 16u
#define HOMA_PEER_BUCKETS 1024u	/* per stripe, unless limits say otherwise */
#define HOMA_MAX_ACTIVE 32u
#define HOMA_MAX_TAILS 8u
#define HOMA_RECORD_SIZE 64u	/* of a spare range, whatever it is used for */
#define HOMA_WIRE_OVERHEAD 24u	/* preamble, CRC, inter-frame gap */
#define HOMA_ETH_HEADER 14u
#define HOMA_SIZE_BINS 128u	/* message-size histogram, 4 bins an octave */
#define HOMA_NEW_PEER_LEVEL 6u	/* unscheduled level until CUTOFFS arrive */

static inline void homa_count(struct homa_ctx *ctx, enum homa_metric metric,
			      u64 n)
{
	ctx->metrics[metric] += n;
}

/* @link has something to send. */
static inline void homa_tx_wanted(struct homa_ctx *ctx, struct homa_link *link)
{
	if (ctx->tx_link && ctx->tx_link != link)
		ctx->tx_more = true;
	ctx->tx_link = link;
}

/* ---- outgoing messages: what a link's send scheduler knows ---- */

/* A range to send again; made of a spare record, see homa_resend.c. */
struct homa_rtx {
	struct homa_rtx *next;
	u32 start, end;
	u8 prio;
};

/*
 * struct homa_out - an outgoing message in its link's scheduler (link lock)
 * @node: in the SRPT heap while something can be sent; key = bytes left.
 * @fifo: in the link's heap by age, while in @node's and longer than its
 *	unscheduled part.
 * @next: first byte never sent. Written under the link lock, read anywhere.
 * @unsent: how many bytes before @next never left, because the host could not send
 *	them; all of @next: nothing the receiver gets is a retransmission. Written
 *	under the link lock, read anywhere.
 * @limit: bytes that may be sent: unscheduled, then granted.
 * @available: bytes the host has handed in.
 * @unsched: unscheduled bytes, <= length.
 * @sched_prio: level of the newest GRANT.
 * @unsched_prio: level of unscheduled bytes unless by remaining bytes.
 * @resp_limit_kib, @incast: extension fields of DATA.
 * @ack: an ack for the receiver that rides on the first packet; client_id 0:
 *	none. Written before the message is known to the link.
 * @rtx, @num_rtx: ranges to send again, before anything new; the number is read
 *	anywhere.
 * @sent_at: when the last packet with new bytes left, ns. Retransmissions do
 *	not count: a peer that makes us repeat ourselves must not postpone the
 *	timeout for ever.
 * @first_at: when the first packet left, ns; 0: not yet.
 */
struct homa_out {
	struct homa_heap_node node;
	struct homa_heap_node fifo;
	u64 sent_at;
	u64 first_at;
	struct homa_rtx *rtx;
	u32 length;
	u32 next;
	u32 unsent;
	u32 limit;
	u32 available;
	u32 unsched;
	u16 seg_size;
	u16 resp_limit_kib;
	u8 incast;
	u8 sched_prio;
	u8 unsched_prio;
	u8 num_rtx;
	u8 queued;
	u8 active;		/* a message exists here */
	u8 resent;		/* something went out as a retransmission */
	u16 wire_bytes;		/* of a DATA packet without payload */
	struct homa_ack ack;
	u8 hdr[HOMA_DATA_HDR];	/* header that packets of it start from */
};

/* ---- incoming messages: what a link's grant scheduler knows ---- */

enum homa_grantee_state {
	HOMA_GRANTEE_IDLE = 0,	/* not in the scheduler */
	HOMA_GRANTEE_WAITING,
	HOMA_GRANTEE_ACTIVE,
};

/*
 * struct homa_grantee - an incoming message in its link's grant scheduler
 *	(grant lock unless said otherwise)
 * @node: in its peer's heap while waiting; key = bytes to receive, at most
 *	homa_grants.step too many; tie = @birth. With HOMA_RPC_NO_BUFFER, when it is
 *	not in the scheduler: in homa_sock.starving (sock lock).
 * @age: in the list of all messages that need grants, oldest first.
 * @birth: when it joined the scheduler, ns, unique on its link.
 * @received: bytes held; written under the shard lock, read under the grant lock.
 * @granted: bytes granted; written under the grant lock, read under the shard lock.
 * @counted: the link's @incoming has @granted - @accounted bytes of this
 *	message in it (both shard lock); false for the shortest messages.
 * @slot: index in the active array.
 * @wire_prio: level of the last GRANT.
 * @joined: it was in the scheduler at some time (shard lock).
 * @in_order: bytes held without a gap before them, as of the last packet;
 *	written under the shard lock, read under the grant lock.
 * @again: bytes before this were granted before the message started over; they are
 *	asked for with RESEND. Changes while not in the scheduler.
 * @tail: in homa_grants.tails.
 * @low_until, @low_level: bytes before the one were granted on the other or
 *	higher, but below @wire_prio; see homa_grant_tail.c.
 */
struct homa_grantee {
	struct homa_heap_node node;
	struct homa_list age;
	u64 birth;
	u32 length;
	u32 received;
	u32 granted;
	u32 accounted;
	u8 state;
	u8 slot;
	u8 wire_prio;
	bool counted;
	bool joined;
	bool tail;
	u8 low_level;
	u32 in_order;
	u32 low_until;
	u32 again;
};

/* ---- RPCs ---- */

enum homa_rpc_state {
	HOMA_RPC_NEW = 0,	/* being made, or refused before it was anything */
	HOMA_RPC_OUTGOING = 1,	/* client: request going out; server: response */
	HOMA_RPC_INCOMING,	/* message coming in */
	HOMA_RPC_READY,		/* message complete, application has not taken it */
	HOMA_RPC_IN_SERVICE,	/* server: application works on it */
	HOMA_RPC_FAILED,	/* client: error not yet taken */
	HOMA_RPC_DEAD,		/* unhashed; only references keep it */
};

enum homa_rpc_flags {
	HOMA_RPC_CLIENT = 1,
	HOMA_RPC_PRIVATE = 2,
	HOMA_RPC_TELL_GONE = 4,		/* dead, and the host should know */
	HOMA_RPC_NO_BUFFER = 8,		/* waits in sock->starving */
	HOMA_RPC_BUSY = 16,		/* says the peer; asked again at probe_at */
	HOMA_RPC_HOLDING = 32,		/* incomplete, and in sock->holders */
	HOMA_RPC_EXECUTED = 64,		/* request went to the application */
	HOMA_RPC_OWN_PAGES = 128,	/* pages not yet given away */
};

/*
 * struct homa_rpc - one RPC at one end
 * Immutable after creation: @id, @generation, @hash_value, @peer, @sock, @link, @shard,
 * @flags' CLIENT/PRIVATE/ONEWAY, ports. Under the shard lock: everything up
 * to @out. @out: link lock. @grantee: grant lock.
 * @refs: one for being hashed, one per pinned packet, event and caller.
 * @birth: creation time, ns.
 * @heard_at: last sign of life from the peer that concerns this RPC, ns.
 * @fresh_at: when the last new bytes of its message came, or the silence since was
 *	our own doing, ns; while INCOMING.
 * @probe_at, @probes: when the last RESEND or NEED_ACK went out, ns; how many in vain.
 * @copied: bytes the host has copied (in.received counts bytes arrived).
 * @num_pages: pages that its message takes in all; 0: its socket had no region.
 * @pages: those it has, by 64 KiB part; HOMA_NO_PAGE: none yet. Changed under the shard
 *	lock; a part that has arrived keeps its page while it is copied.
 * @placed_from, @placed_to: bytes between are known to have pages, for a short look;
 *	all, if there is no region.
 * @repaired_to: end of the last bytes that came again since they were asked for, 0:
 *	none did. What is missing before it was sent again earlier, and is lost.
 * @held: how many it has or was promised while it is incomplete, in homa_pool.held_by;
 *	@held_at: since when, ns.
 * @owed: how many more it was promised.
 * @resp_limit_kib: server: the client's wish (incast control), 0: none.
 * @once: server: where it is remembered that this request began; homa_once.c.
 */
struct homa_rpc {
	struct homa_list hash;
	u64 id;
	u32 generation;
	struct homa_ref refs;
	struct homa_sock *sock;
	struct homa_peer *peer;
	struct homa_link *link;
	struct homa_shard *shard;
	struct homa_list sock_rpcs;	/* sock lock */
	struct homa_wheel_node timer;
	struct homa_rpc *event_next;
	struct homa_once *once;
	u64 cookie;
	u64 birth;
	u64 heard_at;
	u64 fresh_at;
	u64 probe_at;
	u64 held_at;			/* sock lock */
	u16 sport, dport;
	u16 resp_limit_kib;
	u8 state;
	u8 flags;
	u8 probes;
	u8 event_queued;
	s16 error;
	u8 num_pages;
	u8 owed;			/* sock lock */
	u32 hash_value;
	u32 copied;
	u32 placed_from, placed_to;
	u32 repaired_to;
	u8 held;			/* sock lock */
	struct homa_rangeset ranges;
	struct homa_list holding;	/* sock lock */
	u32 pages[HOMA_MAX_BPAGES];
	struct homa_grantee in;
	struct homa_out out;
};

/* Documented in docs/architecture.md; a change here should be a decision. */
HOMA_STATIC_ASSERT(sizeof(struct homa_rpc) <= 640, "RPC state grew");

static inline bool homa_rpc_is_client(const struct homa_rpc *rpc)
{
	return rpc->flags & HOMA_RPC_CLIENT;
}

/*
 * struct homa_peer - a remote host (or process, under UDP encapsulation) as
 * reached over one link: each link's grant scheduler has its own
 * @hash, @refs: peer table's stripe lock (@refs atomic). One reference per RPC and the table's.
 * @used_at_ms: last creation of an RPC with it, for collection.
 * Peer lock: @acks (a ring used last-in first-out), @cutoffs and their
 * version (written under the lock, read anywhere), @resend_*: the one open
 * RESEND to a silent peer, @heard_at.
 * Grant lock: @waiting, @grant_node, @slots, @grant_heap.
 * @active_at: with quiet_us: when it last sent us DATA or was granted
 *	something; written under the shard or the grant lock, read anywhere.
 */
struct homa_peer {
	struct homa_link *link;
	struct homa_addr addr;
	u16 mtu_seg;			/* message bytes per packet */
	u16 cutoff_version;
	struct homa_list hash;
	struct homa_ref refs;
	u32 used_at_ms;
	struct homa_lock lock;
	u8 num_acks;
	u8 grant_heap;			/* 1: in homa_grants.peers */
	u8 owes;			/* 1: in the stripe's @owed */
	u8 probes;			/* RESENDs and NEED_ACKs unanswered */
	u16 slots;
	u32 server_rpcs;		/* open incoming RPCs; peer lock */
	u32 cutoffs[HOMA_PRIORITIES];
	u64 heard_at;
	u64 active_at;
	u64 key;			/* keyed hash of @addr */
	u32 cutoffs_sent_ms;
	u32 num_busy;			/* RPCs with HOMA_RPC_BUSY; peer lock */
	/* What short messages need are two cache lines, to here. */
	u64 resend_at;
	u64 ack_ids[HOMA_MAX_ACKS];
	u16 ack_ports[HOMA_MAX_ACKS];
	struct homa_list owed;		/* stripe's lock */
	struct homa_list turn;		/* the same */
	struct homa_heap waiting;
	struct homa_heap_node grant_node;
};
HOMA_STATIC_ASSERT(sizeof(struct homa_peer) - sizeof(struct homa_lock) <= 288,
		   "peer state grew");

/* ---- sockets ---- */

#define HOMA_HOLDER_ROWS 3u
#define HOMA_HOLDERS	 256u

/*
 * struct homa_pool - where incoming messages go: 64 KiB pages of a region
 * (sock lock). A message's last part may share a page with others.
 * @refs: per page: messages in it, plus one while it is leased.
 * @out: a bit per 64 bytes of the region: a part of a message that the
 *	application has, or will get, begins here.
 * @free: stack of free pages.
 * @held_by: pages that incomplete messages have or were promised, by peer; see homa_starve.c.
 * @lease: per CPU slot a partly used page: which, how much, until when.
 */
#define HOMA_LEASES 8u
#define HOMA_NO_PAGE 0xffffffffu
struct homa_lease {
	u64 until;
	u32 page;
	u32 used;	/* HOMA_BPAGE_SIZE: no page */
};
struct homa_pool {
	u32 num_pages;
	u32 num_free;
	struct homa_lease lease[HOMA_LEASES];
	u64 *out;
	u32 *free;
	u16 *refs;
	u32 held_by[HOMA_HOLDER_ROWS][HOMA_HOLDERS];
};

/*
 * struct homa_sock - a port
 * @hash: sock table lock. @rpcs, @starving to @reclaim_at, @pool, @closing: sock lock.
 * @starving: messages without receive buffers, fewest bytes left first.
 * @holders: incomplete messages with pages, in the order in which they are looked at.
 * @num_long: those of them of several pages. @owed: pages that these have not yet taken.
 * @reclaim_at: no look at them before, ns.
 * @owner: who pays; constant while it has RPCs.
 * @backlog: requests that its application has not taken; counter.
 * @gaps: records of gaps in messages that are coming in; counter.
 * @give: see homa_sock_give(); @refuse: see homa_sock_refuse(); both read and written
 *	anywhere.
 */
struct homa_sock {
	struct homa_list hash;
	struct homa_ref refs;
	struct homa_lock lock;
	u16 port;
	bool server;
	bool only_v4;		/* of peers' requests */
	bool closing;
	bool hashed;
	bool give;
	bool refuse;
	struct homa_list rpcs;
	struct homa_heap starving;
	struct homa_list holders;
	u32 num_long;
	u32 owed;
	u64 reclaim_at;
	struct homa_pool *pool;
	struct homa_owner *owner;
	u64 backlog;
	u64 gaps;
};

/* ---- links ---- */

/* Values derived from settings, link rate and measured round trip. */
struct homa_derived {
	u32 rtt_bytes;
	u32 max_incoming;
	u32 reserved;		/* of max_incoming, for the best message */
	u32 window;		/* 0: dynamic */
	u32 fifo_increment;	/* a share for the oldest message, bytes */
	u64 resend_ns;
	u64 timeout_ns;
	u64 restart_ns;		/* client may start again so long after silence */
};

/*
 * struct homa_grants - grant scheduler of one link (its lock); homa_grant.c
 * @active: messages being granted to; in order of rank after each run.
 * @peers: peers with waiting messages; key = (slots, bytes to receive) and
 *	tie = birth of their best one.
 * @ages: all messages that still need grants, oldest first.
 * @last_birth: makes homa_grantee.birth unique and ascending.
 * @fifo_at: when the oldest message is due its next share, ns.
 * @incoming: bytes granted (or unscheduled) but not received; counter.
 * @window, @low_water, @step: values of the last run, read anywhere: bytes a
 *	message may have outstanding, how many left of them make a grant
 *	worth its packet, how many received are worth accounting.
 * @one_each: no two active messages of one peer (SIGCOMM'18); as of the last
 *	time the active set was settled.
 * @limited: the last run gave less than it would for max_incoming's sake.
 * @tails: granted to the end, but early bytes wait on lower levels.
 */
struct homa_grants {
	struct homa_lock lock;
	u32 num_active;
	u32 num_waiting;
	struct homa_rpc *active[HOMA_MAX_ACTIVE];
	struct homa_heap peers;
	struct homa_list ages;
	u64 last_birth;
	u64 fifo_at;
	u64 incoming;
	u32 window;
	u32 low_water;
	u32 step;
	bool one_each;
	bool limited;
	u32 num_tails;
	struct homa_rpc *tails[HOMA_MAX_TAILS];
};

/*
 * struct homa_link - see homa_engine.h
 * @lock: protects the send scheduler: @heap, @fifo, @ctrl_*, @idle_at, @room.
 * @ps_per_byte: picoseconds per byte at the usable rate; 0: unpaced.
 * @backlog_ns: how far the estimated device queue may reach into the future.
 * @idle_at: virtual time at which the device's queue would be empty, ns.
 */
struct homa_link {
	struct homa_engine *engine;
	struct homa_lock lock;
	struct homa_heap heap;
	struct homa_heap fifo;	/* oldest first */
	u32 ctrl_head, ctrl_tail, ctrl_mask;
	u64 idle_at;
	u64 room;
	s64 fifo_bytes;		/* credit of the oldest message, 1/1000 bytes */
	u64 backlog_ns;
	u32 ps_per_byte;
	bool by_room;
	u32 rate_mbps;
	u32 mtu;
	u32 rtt_ns;		/* smallest round trip seen lately; 0 none */
	u32 rtt_prev_ns;	/* smallest of the last epoch */
	u32 rtt_next_ns;	/* the same, current epoch */
	u64 rtt_epoch_at;
	struct homa_derived derived;	/* written rarely, fields read anywhere */
	struct homa_grants grants;
	struct homa_ctrl *ctrl;
};

/* ---- engine ---- */

/* A part of the RPC table with its lock and timers. */
struct homa_shard {
	struct homa_lock lock;
	u32 index;
	u32 next_generation;
	struct homa_table rpcs;
	struct homa_wheel wheel;
};

/*
 * struct homa_peer_stripe - a part of the peer table
 * @turns: all of them, those first that the collector looks at next.
 * @owed: peers that acks were owed to, the last first.
 */
struct homa_peer_stripe {
	struct homa_lock lock;
	struct homa_table peers;
	struct homa_list turns;
	struct homa_list owed;
};

/*
 * struct homa_prio - unscheduled priorities we ask our peers to use
 * @cutoffs, @version: written under @lock (peer class), read anywhere.
 * @agreed: peers know @cutoffs without being told; see homa_engine_set_cutoffs().
 * @bins: bytes received by message size, decayed at each recomputation.
 */
struct homa_prio {
	struct homa_lock lock;
	u32 cutoffs[HOMA_PRIORITIES];
	u16 version;
	u8 sched_levels;	/* levels 0 .. sched_levels-1 are for grants */
	bool agreed;
	bool fixed;	/* chosen by an administrator */
	u64 recompute_at;
	u64 bins[HOMA_SIZE_BINS];	/* messages of that size, counter */
};

struct homa_engine {
	struct homa_params params;
	struct homa_limits limits;
	struct homa_seeds seeds;
	u64 start;
	u64 guard_until;
	u64 maintain_at;	/* when homa_maintain() is due, ns */
	u64 next_id;
	u64 num_rpcs;		/* counters */
	struct homa_owner own;	/* of sockets that nobody else answers for */
	u64 num_peers;
	u64 num_socks;
	u64 num_once;		/* blocks in @once */
	u64 once_common;	/* of them, those that are nobody's own */
	u64 once_clock;		/* stripe to look for expired ones in next */
	struct homa_once_stripe *once;
	u32 shard_shift;
	u32 max_peers_per_stripe;
	u32 peers_epoch;	/* counts evictions; see homa_peer_get() */
	u32 answered_ms;	/* a homad of before, whether we are there */
	u16 next_port;
	struct homa_shard *shards;
	struct homa_lock sock_lock;
	struct homa_list *sock_buckets;
	struct homa_ports ports;	/* of clients; sock table lock */
	struct homa_peer_stripe peers[HOMA_PEER_STRIPES];
	struct homa_prio prio;
};

#endif
