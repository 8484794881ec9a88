/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What passes between the engine and its hosts: settings, counters, sizes, packets,
 * events, and the context of a caller. The calls are in homa_engine.h.
 */
#ifndef HOMA_TYPES_H
#define HOMA_TYPES_H

#include "homa_addr.h"
#include "homa_plat.h"
#include "homa_wire.h"

struct homa_engine;
struct homa_link;
struct homa_sock;
struct homa_peer;
struct homa_rpc;
struct homa_range;
struct homa_segment;

#define HOMA_NEVER ((u64)-1)

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

#define HOMA_MAX_BPAGES 16u /* pages of one pooled message */
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

struct homa_param_info {
	const char *name;
	const char *unit;
	const char *text;
	u32 def, min, max;
	u32 offset; /* in struct homa_params */
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
struct homa_metric_info {
	const char *name;
	const char *text;
};
extern const struct homa_metric_info homa_metric_table[HOMA_M_COUNT];

/*
 * struct homa_limits - sizes fixed at homa_engine_init()
 * @shards: lock domains of the RPC table, a power of two.
 * @buckets: hash buckets per shard, a power of two.
 * @max_buckets: what a shard may grow to with homa_ctx_give_segment(); 0: 262,144
 *	over all shards.
 * @tombstones: at most so many spare ranges are used to remember which requests were
 *	executed, each for up to 128 requests in a row of one client (homa_once.c); a
 *	quarter of them is kept for clients that have few, and no one client may have
 *	more than half of the others. 0: nothing is remembered.
 * @peer_buckets: hash buckets for peers in each of the peer table's 16 parts,
 *	a power of two; 0: 1024.
 * @max_peer_buckets: what a part may grow to; 0: 4096.
 * @sock_buckets: hash buckets for ports, a power of two; 0: 256.
 * @tell_gone: 1: a request that ends before the application has taken it - its
 *	client is silent or does not know it - makes a HOMA_EV_GONE, for hosts that
 *	keep packets with it.
 * @sock_priv, @peer_priv, @rpc_priv: bytes the host keeps with each object,
 *	after the engine's own (homa_rpc_priv() and so on), 8-byte aligned.
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
};

/*
 * struct homa_owner - whom sockets belong to, a user say; see homa_sock_charge()
 * Counters, the engine's:
 * @rpcs: open on its sockets, of either side.
 * @client_rpcs: those of @rpcs that are requests which its own sockets sent.
 * @backlog: requests that came to its sockets and that no application has taken yet.
 */
struct homa_owner {
	u64 rpcs;
	u64 client_rpcs;
	u64 backlog;
};

/*
 * struct homa_seeds - random numbers that make an engine unpredictable
 * @keys: of the hash tables; secret. Who knew them could put all his RPCs into
 *	one bucket.
 * @places, @id: where ids to each address begin. @places is secret.
 * @port: where client ports begin. Peers see it, and ids, so they must say nothing
 *	about the keys.
 * @life: what the engine calls its life; everybody may see it.
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
 * struct homa_handle - names an RPC across calls; stale ones are detected
 * @id: the RPC's id at this end (even at clients).
 * @hash: where the engine finds it.
 */
struct homa_handle {
	u64 id;
	u32 generation;
	u32 hash;
};

/* What became of a packet. */
enum homa_verdict {
	HOMA_RX_CONTROL = 0, /* consumed */
	HOMA_RX_DROP,	     /* not used; homa_rx_pkt.reason is a metric */
	HOMA_RX_DATA,	     /* payload to copy, then homa_rx_copied() */
	HOMA_RX_NO_LISTENER, /* the host should answer "port unreachable" */
	HOMA_RX_MESSAGE, /* a whole message, given away; see homa_sock_give() */
};

/*
 * struct homa_rx_message - with HOMA_RX_MESSAGE: what homa_rx_take() would say
 * @sock: whose it is. It and @handle's RPC may be gone with the next call.
 * @page: region offset of the message; now the host's until homa_pool_release().
 * @peer_port, @cookie, @deadline, @kind: as in struct homa_msg_info. The peer is
 *	homa_rx_pkt.src, the length homa_rx_pkt.length.
 */
struct homa_rx_message {
	struct homa_sock *sock;
	struct homa_handle handle;
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
 * @data: Homa header; only the header is read, never the payload.
 * @len: Homa header and payload in bytes.
 * @src: sender; copied when kept.
 * @prio: in: the priority of the packet on the wire, 0 to 7.
 * @verdict: out: enum homa_verdict.
 * @reason: out, HOMA_RX_DROP: enum homa_metric that counted it.
 * @rpc: out, HOMA_RX_DATA: pinned until homa_rx_copied().
 * The rest is out, HOMA_RX_DATA and HOMA_RX_MESSAGE:
 * @skip: bytes from @data to the first byte to copy.
 * @offset: its place in the message.
 * @length: bytes to copy (may repeat bytes held already when a packet spans
 *	several gaps; they are the same bytes).
 * @fresh: how many of them are new.
 * @whole: no byte of the message is missing after this packet.
 * @message: HOMA_RX_MESSAGE only.
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
	HOMA_TX_IDLE = 0, /* nothing to send */
	HOMA_TX_PACKET,	  /* desc is filled */
	HOMA_TX_WAIT,	  /* paced: nothing until desc->not_before */
};

/*
 * struct homa_tx_desc - packets to transmit: one, or several segments of one
 *	message
 * @dst: receiver.
 * @rpc: whose message; NULL for control packets. Pinned until homa_tx_done().
 * @link: where it was pulled from.
 * @offset, @length: message bytes, DATA only.
 * @seg_size: message bytes per packet; @length <= @seg_size means one packet.
 * @prio: priority 0..7, after the priority map.
 * @hdr, @hdr_len: Homa header of the first packet; homa_tx_segment() makes
 *	that of the others.
 * @more: the link had another packet to send when this one was taken, even if the pacer
 *	makes that wait.
 * @not_before: with HOMA_TX_WAIT: when to ask again, ns.
 */
struct homa_tx_desc {
	struct homa_addr dst;
	struct homa_rpc *rpc;
	struct homa_link *link;
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
	HOMA_EV_GONE, /* a request ended before it was taken; see limits */
};

/*
 * struct homa_event - taken by homa_event_next()
 * @rpc: only to reach the private bytes; valid until the next engine call.
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
 * @kind: as the event's.
 * @error: 0, or the positive errno of HOMA_EV_FAILED.
 * @length: bytes.
 * @cookie: of a response or a failure: what the application gave with the request.
 * @deadline: of a request: when its client stops waiting, as it says, on the clock of
 *	homa_ctx.now, ns; 0: it does not say. Any value may come: who looks at it decides
 *	nothing by it but what to do for this client.
 * @pages: @num_pages region offsets, one for each 64 KiB of the message; now
 *	the host's until homa_pool_release().
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
	struct homa_addr dst;
	u16 sport, dport;
	u64 sender_id;
	u8 type;
	u8 priority; /* GRANT, RESEND: the field in the packet */
	u16 num;     /* ACK: count; CUTOFFS: version */
	union {
		struct {
			u32 offset, length; /* GRANT, RESEND */
		};
		u32 cutoffs[HOMA_PRIORITIES];
		struct {
			u64 ids[HOMA_MAX_ACKS];
			u16 ports[HOMA_MAX_ACKS];
		} acks;
	};
};

#define HOMA_CTX_CTRL 16u
#define HOMA_CTX_PEERS 8u
#define HOMA_CTX_ACKS 16u
#define HOMA_CTX_KEYS 8u

/* An ack that came with DATA, to be worked off after what is urgent. */
struct homa_owed {
	struct homa_addr peer;
	u16 server_port;
	u64 client_id;
};

/* An address and its keyed hash, for that is not cheap. */
struct homa_addr_key {
	u64 key;
	struct homa_addr addr;
};

/*
 * struct homa_ctx - one caller of the engine (a CPU, a thread)
 * @now: in: time in ns, any origin, never backwards; set before each call.
 * @cpu: in: small number that spreads page leases.
 * @tx_now: in: NULL, or where homa_rpc_send() and homa_rpc_reply() may put the packet
 *	of a message that has only one and nothing before it, as homa_tx() would; NULL
 *	then, and homa_tx_done() is due. Set before each such call.
 * The rest is the engine's; use the functions below.
 */
struct homa_ctx {
	struct homa_engine *engine;
	u64 now;
	u32 cpu;
	u32 num_ctrl;
	struct homa_tx_desc *tx_now;
	/* The RPC of the packet that homa_rx() works on, whose shard is locked then; NULL: the
	 * packet has none here. */
	struct homa_rpc *rx_rpc;
	u32 spare_rpcs, spare_peers, spare_ranges, spare_segments;
	struct homa_segment *spare_segment;
	struct homa_rpc *spare_rpc;
	struct homa_peer *spare_peer;
	struct homa_range *spare_range;
	struct homa_rpc *retired_rpc;
	struct homa_peer *retired_peer;
	struct homa_rpc *event_head, *event_tail;
	/* The control packets in @ctrl go to this link when homa_ctrl_flush() runs. */
	struct homa_link *ctrl_link;
	/* homa_rx_flush() looks which messages of this link get grants. */
	struct homa_link *grant_link;
	/* A message of this socket found no pages; homa_rx_flush() looks for some and lets the
	 * reference go. NULL: none. */
	struct homa_sock *hungry;
	/* This link got something to send since the host last asked; @tx_more: others did, too. */
	struct homa_link *tx_link;
	bool tx_more;
	u64 metrics[HOMA_M_COUNT];
	struct homa_ctrl ctrl[HOMA_CTX_CTRL];
	u32 num_acks;
	struct homa_owed acks[HOMA_CTX_ACKS];
	struct homa_addr_key keys[HOMA_CTX_KEYS]; /* seen last */
	u32 peers_epoch; /* of peers[], see homa_peer.c */
	struct homa_peer *peers[HOMA_CTX_PEERS];
};

#endif
