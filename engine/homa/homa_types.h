/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What passes between the engine and its hosts: settings, counters, sizes, packets,
 * events, and the context of a caller. The calls are in homa_engine.h.
 *
 * Written by: who hands it over, host or engine, as the struct says; nobody else looks at it
 * during a call.
 */
#ifndef HOMA_TYPES_H
#define HOMA_TYPES_H

#include "homa_addr.h"
#include "homa_list.h"
#include "homa_plat.h"
#include "homa_wire.h"

struct homa_engine;
struct homa_link;
struct homa_sock;
struct homa_peer;
struct homa_rpc;
struct homa_range;
struct homa_segment;

#define HOMA_NEVER ((u64)-1) /* a time that does not come */

/*
 * struct homa_from - which of a host's addresses packets leave from
 * @word: bytes of the host's, which the engine only copies. All 0: the host chooses.
 */
struct homa_from {
	u64 word[2];
};

/* Bits of homa_place.families. */
enum { HOMA_PLACE_V4 = 1, HOMA_PLACE_V6 = 2 };

/*
 * struct homa_place - which requests to a port are for a socket; all 0: all of them
 * @local: address of this host that they come to, as in homa_ctx.heard_at; all 0: any.
 * @device: number of the device that they come on, as in homa_ctx.heard_on; 0: any.
 * @families: address families of the peers that they come from, HOMA_PLACE_*; 0: all. If there
 *	is a @local this is its family.
 * @shares: true if other sockets of the owner that say so, too, may have places that overlap
 *	with this one. A request then goes to the socket whose place says most about it.
 *
 * Written by: the host, before the call; the engine copies it.
 */
struct homa_place {
	struct homa_from local;
	u32 device;
	u8 families;
	bool shares;
};

/*
 * Time from @then to @now, ns. A time that another CPU wrote may be a little ahead of
 * this caller's, who looked at the clock before: then no time has passed.
 */
static inline u64 homa_since(u64 now, u64 then)
{
	return now > then ? now - then : 0;
}

/* The same for counters of milliseconds that wrap. */
static inline u32 homa_since_ms(u32 now, u32 then)
{
	return then - now < 1000 ? 0 : now - then;
}

#define HOMA_MAX_BPAGES 16u /* most pages that one message takes in a region */
#define HOMA_BPAGE_SHIFT 16
#define HOMA_BPAGE_SIZE (1u << HOMA_BPAGE_SHIFT)

/* Negative results are errno values; these are the ones the engine uses. */
enum {
	HOMA_EINTR = 4,
	HOMA_EAGAIN = 11,
	HOMA_EINVAL = 22,
	HOMA_EPROTONOSUPPORT = 93,
	HOMA_EADDRINUSE = 98,
	HOMA_ENOBUFS = 105,
	HOMA_EDQUOT = 122,
	HOMA_ENOTCONN = 107,
	HOMA_ESHUTDOWN = 108,
	HOMA_ETIMEDOUT = 110,
	HOMA_EHOSTUNREACH = 113,
};

/* struct homa_params - settings; see homa_params.def */
struct homa_params {
#define PARAM(name, def, min, max, unit, text) u32 name;
#include "homa_params.def"
#undef PARAM
};

/* What is known of a setting. */
struct homa_param_info {
	/* Name of the setting. */
	const char *name;
	/* Unit of its values. */
	const char *unit;
	/* What it does, in a few words. */
	const char *text;
	/* Its default, its least and its greatest value, in @unit. */
	u32 def, min, max;
	/* Offset of its value in struct homa_params, in bytes. */
	u32 offset;
};
extern const struct homa_param_info homa_param_table[];
extern const u32 homa_param_count;

/* Counters, one list for every host; see homa_metrics.def. */
enum homa_metric {
#define METRIC(name, text) HOMA_M_##name,
#include "homa_metrics.def"
#undef METRIC
	HOMA_M_COUNT,
};
/* What is known of a counter. */
struct homa_metric_info {
	/* Name of the counter. */
	const char *name;
	/* What it counts, in a few words. */
	const char *text;
};
extern const struct homa_metric_info homa_metric_table[HOMA_M_COUNT];

/*
 * struct homa_limits - sizes that the host chooses before homa_engine_init()
 * @shards: number of parts of the RPC table, each with its lock; a power of two.
 * @buckets: number of hash buckets of a shard at first, a power of two.
 * @max_buckets: number of buckets to which a shard may grow by the memory of
 *	homa_ctx_give_segment(); 0: 262,144 over all shards.
 * @tombstones: most spare ranges that are used to remember which requests were
 *	executed, each for up to 128 requests in a row of one client (homa_once.c); a
 *	quarter of them is kept for clients that have few, and no one client may have
 *	more than half of the others. 0: nothing is remembered.
 * @peer_buckets: number of hash buckets of each of the peer table's 16 parts at first,
 *	a power of two; 0: 1024.
 * @max_peer_buckets: number of buckets to which such a part may grow; 0: 4096.
 * @sock_buckets: number of hash buckets for ports, a power of two; 0: 256.
 * @tell_gone: 1: a request that ends before the application has taken it - its
 *	client is silent or does not know it - makes a HOMA_EV_GONE, for hosts that
 *	keep packets with it.
 * @sock_priv: private bytes of the host behind each socket, see homa_sock_priv().
 * @peer_priv: private bytes of the host behind each peer.
 * @rpc_priv: private bytes of the host behind each RPC, see homa_rpc_priv().
 * @rpc_from: 1: those begin with a struct homa_from, which control packets about the RPC
 *	get. At a server it is homa_ctx.heard_at of its request; at a client the host writes it
 *	before homa_rpc_send() (homa_ctx_next_rpc()).
 */
struct homa_limits {
	u32 shards;
	u32 buckets;
	u32 max_buckets;
	u32 tombstones;
	u32 peer_buckets;
	u32 max_peer_buckets;
	u32 sock_buckets;
	u32 tell_gone;
	u32 sock_priv;
	u32 peer_priv;
	u32 rpc_priv;
	u32 rpc_from;
};

#define HOMA_OWNER_PARTS 16u /* of the table of peers */

/*
 * struct homa_owner - the account of one that sockets belong to, such as a user; see
 * homa_sock_charge(). Written by: the engine, any context of which adds to the numbers atomically,
 * and the host (@max_peers); read by: both.
 * @rpcs: number of RPCs that are open on the owner's sockets, of either side.
 * @client_rpcs: number of @rpcs that are requests which the owner's own sockets sent.
 * @backlog: number of requests that came to the owner's sockets and that no application has
 *	taken yet.
 * @peers: number of peers that are charged to the owner, because his sockets were the first
 *	to send a request there. While there is one the memory of this struct must stay.
 * @peers_refused: number of requests that failed because the owner had as many peers as he may.
 * @max_peers: the host's: the owner may have so many; 0: peers are not charged to him.
 * @turns: his peers, one list for each part of the table; it begins with zeros.
 */
struct homa_owner {
	u64 rpcs;
	u64 client_rpcs;
	u64 backlog;
	u64 peers;
	u64 peers_refused;
	u32 max_peers;
	struct homa_list turns[HOMA_OWNER_PARTS];
};

/*
 * struct homa_seeds - random numbers that make an engine unpredictable
 * @keys: secret keys of the hash tables. Who knew them could put all his RPCs into
 *	one bucket.
 * @places: secret key from which the first id of RPCs to an address follows.
 * @id: number from which that id follows, too. Peers see ids, so it is no key.
 * @port: number from which the first client port follows. Peers see ports, so it is no key.
 * @life: number from which the name of the engine's life follows; everybody may see it.
 *
 * A host fills the struct from its platform's generator for secrets. All words
 * are drawn independently: none may be computed from another.
 */
struct homa_seeds {
	u64 keys[4];
	u64 places;
	u64 id;
	u64 port;
	u64 life;
};

/*
 * struct homa_handle - names an RPC across calls; the engine notices if that has ended
 * @id: id of the RPC at this end, even at clients.
 * @generation: tells the RPC from earlier ones with the same @id.
 * @hash: hash by which the engine finds the RPC.
 */
struct homa_handle {
	u64 id;
	u32 generation;
	u32 hash;
};

/* What became of a packet. */
enum homa_verdict {
	HOMA_RX_CONTROL = 0, /* the engine has done all that there was to do */
	HOMA_RX_DROP,	     /* it was dropped; homa_rx_pkt.reason says why */
	HOMA_RX_DATA, /* the host copies payload, then calls homa_rx_copied() */
	HOMA_RX_NO_LISTENER, /* the host should answer "port unreachable" */
	HOMA_RX_MESSAGE, /* it is a whole message; see homa_sock_deliver_whole() */
};

/* Which messages homa_sock_deliver_whole() means. */
enum homa_whole {
	HOMA_WHOLE_NONE = 0,
	HOMA_WHOLE_SHARED, /* all but those of private RPCs */
	HOMA_WHOLE_ALL,
};

/*
 * struct homa_rx_message - what homa_rx_take() would say of a message that came by
 * HOMA_RX_MESSAGE. Its peer is homa_rx_pkt.src, its length homa_rx_pkt.length.
 * @sock: socket that the message is for; it may be gone with the next call.
 * @handle: RPC of the message, which may be gone with the next call.
 * @rpc: the same RPC, for hosts with one thread: its private bytes are there until the next
 *	call of homa_retired_rpc(), even if it has ended.
 * @cookie: as in struct homa_msg_info.
 * @deadline: as in struct homa_msg_info.
 * @page: offset of the message in the region, in bytes; the host has it until
 *	homa_pool_release().
 * @peer_port: as in struct homa_msg_info.
 * @kind: as in struct homa_msg_info.
 */
struct homa_rx_message {
	struct homa_sock *sock;
	struct homa_handle handle;
	struct homa_rpc *rpc;
	union {
		u64 cookie;
		u64 deadline;
	};
	u32 page;
	u16 peer_port;
	u8 kind;
};

/*
 * struct homa_rx_pkt - one packet handed to homa_rx()
 *
 * The host writes the first four fields, the engine the others.
 * @data: the Homa header and the payload, which the engine never reads.
 * @len: length of header and payload, in bytes.
 * @src: address of the sender; the engine copies it if it keeps it.
 * @prio: priority of the packet on the wire, 0 to 7.
 * @verdict: what became of the packet, an enum homa_verdict.
 * @reason: with HOMA_RX_DROP: the counter that counted it, an enum homa_metric.
 * @rpc: with HOMA_RX_DATA: the packet's RPC, which is held until homa_rx_copied().
 *
 * The other fields count with HOMA_RX_DATA and HOMA_RX_MESSAGE.
 * @skip: offset of the first byte to copy from @data, in bytes.
 * @offset: offset of that byte in the message.
 * @length: number of bytes to copy. If a packet spans several gaps some of them are in
 *	place already; they are the same bytes.
 * @fresh: number of bytes to copy that are new.
 * @whole: no byte of the message is missing after this packet.
 * @message: the message, with HOMA_RX_MESSAGE only.
 */
struct homa_rx_pkt {
	const void *data;
	u32 len;
	const struct homa_addr *src;
	u8 prio;
	u8 verdict;
	u16 reason;
	struct homa_rpc *rpc;
	u32 skip;
	u32 offset;
	u32 length;
	u32 fresh;
	bool whole;
	struct homa_rx_message message;
};

/* What homa_tx() returns. */
enum homa_tx_result {
	HOMA_TX_IDLE = 0, /* there is nothing to send */
	HOMA_TX_PACKET,	  /* *desc is a packet to send */
	HOMA_TX_WAIT, /* the pacer lets nothing go before desc->not_before */
};

/*
 * struct homa_tx_desc - packets to transmit: one, or several segments of one
 *	message
 * @dst: address of the receiver.
 * @rpc: RPC of the message, which is held until homa_tx_done(); NULL: a control packet.
 * @link: link on which it is sent.
 * @from: address that a control packet leaves from; of DATA the host knows it.
 * @offset: offset of the first byte in the message; only of DATA.
 * @length: number of message bytes; 0 in a control packet.
 * @seg_size: message bytes in each packet; @length <= @seg_size means one packet.
 * @prio: priority on the wire, 0 to 7, after the priority map.
 * @hdr_len: bytes of @hdr that are used.
 * @retransmit: the bytes are sent again.
 * @more: the link had another packet to send when this one was taken, even if the pacer
 *	makes that wait.
 * @not_before: with HOMA_TX_WAIT: time at which the host shall ask again, in ns.
 * @hdr: Homa header of the first packet; homa_tx_segment() makes that of the others.
 */
struct homa_tx_desc {
	struct homa_addr dst;
	struct homa_rpc *rpc;
	struct homa_link *link;
	struct homa_from from;
	u32 offset;
	u32 length;
	u32 seg_size;
	u8 prio;
	u8 hdr_len;
	bool retransmit;
	bool more;
	u64 not_before;
	u8 hdr[96];
};

/* Something the application should learn of. */
enum homa_event_kind {
	HOMA_EV_REQUEST = 1, /* a whole request is there */
	HOMA_EV_RESPONSE,    /* a whole response is there */
	HOMA_EV_FAILED,	     /* one of our requests failed */
	HOMA_EV_GONE, /* a request ended before it was taken; see homa_limits.tell_gone */
};

/*
 * struct homa_event - what homa_event_next() returns
 * @kind: what has happened.
 * @handle: RPC to which it has happened.
 * @sock: socket of the RPC.
 * @rpc: the RPC, by which the host reaches its private bytes until the next engine call.
 * @private_rpc: the RPC began with HOMA_SEND_PRIVATE.
 */
struct homa_event {
	enum homa_event_kind kind;
	struct homa_handle handle;
	struct homa_sock *sock;
	struct homa_rpc *rpc;
	bool private_rpc;
};

/*
 * struct homa_msg_info - an incoming message given to the application
 * @kind: kind of its event.
 * @error: positive errno with HOMA_EV_FAILED, else 0.
 * @length: length of the message, in bytes.
 * @id: id of the RPC at this end.
 * @cookie: value that the application gave with the request; of a response or a failure.
 * @deadline: time at which the client of a request stops waiting, as it says, on the clock of
 *	homa_ctx.now, in ns; 0: it does not say. Any value may come: who looks at it decides
 *	nothing by it but what to do for this client.
 * @peer: address of the other end.
 * @peer_port: port of the other end.
 * @num_pages: number of entries of @pages that are used.
 * @pages: offset in the region of each 64 KiB of the message, in bytes; the host has these
 *	pages until homa_pool_release().
 */
struct homa_msg_info {
	enum homa_event_kind kind;
	int error;
	u32 length;
	u64 id;
	union {
		u64 cookie;
		u64 deadline;
	};
	struct homa_addr peer;
	u16 peer_port;
	u32 num_pages;
	u32 pages[HOMA_MAX_BPAGES];
};

/* A control packet on its way to a link's queue. */
struct homa_ctrl {
	/* Address of the receiver. */
	struct homa_addr dst;
	/* Ports of the sender and of the receiver, as the packet says. */
	u16 sport, dport;
	/* Address of ours that it leaves from. */
	struct homa_from from;
	/* Id of the RPC at the sender. */
	u64 sender_id;
	/* Type of the packet, an enum homa_type. */
	u8 type;
	/* Priority that a GRANT or a RESEND names, 0 to 7. */
	u8 priority;
	/* Number of acks in an ACK, or version of CUTOFFS. */
	u16 num;
	union {
		struct {
			/* Fields of a GRANT or a RESEND, in bytes; GRANT has no length. */
			u32 offset, length;
		};
		/* Cutoffs of a CUTOFFS packet, in bytes. */
		u32 cutoffs[HOMA_PRIORITIES];
		/* The RPCs that an ACK acknowledges. */
		struct {
			/* Ids of the RPCs at the client. */
			u64 ids[HOMA_MAX_ACKS];
			/* Port of the server of each, in host order. */
			u16 ports[HOMA_MAX_ACKS];
		} acks;
	};
};

/* Numbers of entries in arrays of struct homa_ctx. */
#define HOMA_CTX_CTRL 16u
#define HOMA_CTX_PEERS 8u
#define HOMA_CTX_ACKS 16u
#define HOMA_CTX_KEYS 8u
#define HOMA_CTX_SIZES 31u

/* An ack that came with DATA, to be worked off after what is urgent. */
struct homa_owed {
	/* Address of the client that sent it. */
	struct homa_addr peer;
	/* Our port that the RPC was sent to. */
	u16 server_port;
	/* Id of the RPC at the client. */
	u64 client_id;
};

/* An address and its keyed hash, which is kept because it is not cheap. */
struct homa_addr_key {
	/* Keyed hash of @addr. */
	u64 key;
	/* The address. */
	struct homa_addr addr;
};

/*
 * struct homa_ctx - one caller of the engine (a CPU, a thread)
 *
 * Written by: the one caller that it belongs to: the host @now, @cpu, @heard_at, @heard_on,
 * @tx_now and @tx_link, the engine, when it is called, all others.
 */
struct homa_ctx {
	/* The engine that is called. */
	struct homa_engine *engine;
	/* Time in ns since any origin. The host sets it before each call, never
	 * backwards. */
	u64 now;
	/* A small number for the caller; callers with other numbers take other page
	 * leases. */
	u32 cpu;
	/* Number of entries of @ctrl that are used. */
	u32 num_ctrl;
	/* Which address the packets came to that homa_rx() is given: what answers them leaves
	 * from there. */
	struct homa_from heard_at;
	/* Number of the device that these packets came on, as homa_place.device has it, where
	 * the host gives devices numbers. Several may have one link. */
	u32 heard_on;
	/* Where homa_rpc_send(), homa_rpc_reply() and homa_rpc_reject() may write the packet
	 * of a message that has only one, if no other is before it. If they do so they set
	 * this to NULL, and the host sends the packet as if it came from homa_tx(). The
	 * host sets it before each such call; NULL: it wants no packet. */
	struct homa_tx_desc *tx_now;
	/* The RPC of the packet that homa_rx() works on, whose shard is locked then;
	 * NULL: the packet has none here. */
	struct homa_rpc *rx_rpc;
	/* Numbers of spare objects in the four lists that follow; the host reads them. */
	u32 spare_rpcs, spare_peers, spare_ranges, spare_segments;
	/* @spare_segment, @spare_rpc, @spare_peer, @spare_range: lists of spare memory that
	 * the host has handed in. */
	struct homa_segment *spare_segment;
	struct homa_rpc *spare_rpc;
	struct homa_peer *spare_peer;
	struct homa_range *spare_range;
	/* @retired_rpc, @retired_peer: lists of objects whose memory homa_retired_rpc() and
	 * homa_retired_peer() return. */
	struct homa_rpc *retired_rpc;
	struct homa_peer *retired_peer;
	/* First and last RPC of the list of those that homa_event_next() returns. */
	struct homa_rpc *event_head, *event_tail;
	/* The control packets in @ctrl go to this link when homa_ctrl_flush() runs. */
	struct homa_link *ctrl_link;
	/* homa_rx_flush() looks which messages of this link get grants. */
	struct homa_link *grant_link;
	/* A message of this socket found no pages; homa_rx_flush() looks for some and
	 * lets the reference go. NULL: none. */
	struct homa_sock *hungry;
	/* The last link that got something to send; the host reads it and sets it to
	 * NULL. */
	struct homa_link *tx_link;
	/* Another link than @tx_link got something to send, too. */
	bool tx_more;
	/* Counters of this context, by enum homa_metric; the engine adds, the host
	 * reads. */
	u64 metrics[HOMA_M_COUNT];
	/* Control packets that wait for homa_ctrl_flush(). */
	struct homa_ctrl ctrl[HOMA_CTX_CTRL];
	/* Number of entries of @acks that are used. */
	u32 num_acks;
	/* Acks that came with DATA and wait for homa_retired_rpc(). */
	struct homa_owed acks[HOMA_CTX_ACKS];
	/* Hashes of addresses that this context has seen lately. */
	struct homa_addr_key keys[HOMA_CTX_KEYS];
	/* Number of entries of @sizes that are used. */
	u8 num_sizes;
	/* For each of the last incoming messages, the bin of homa_prio.bins that it counts
	 * in. They are counted there when the array is full: each is a line that all CPUs
	 * write. */
	u8 sizes[HOMA_CTX_SIZES];
	/* What homa_engine.peers_epoch was when @peers was last right. */
	u32 peers_epoch;
	/* Peers that this context has found lately. */
	struct homa_peer *peers[HOMA_CTX_PEERS];
};

#endif
