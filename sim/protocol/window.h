/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What TCP, DCTCP and PIAS have in common: a stream of bytes from one host to
 * another, a congestion window, cumulative acks, and recovery from loss. A
 * protocol adds a struct window_policy: whether it listens to ECN, how an
 * ack moves its window, at which priority a stream sends.
 *
 *	window.c          streams, segments, the sender's order of service
 *	window_loss.c     acks, window growth, fast recovery, time-outs
 *	window_cubic.c    how TCP's windows grow and shrink with its setting cubic
 *	window_receive.c  putting segments together, acking them
 *
 * Sources: slow start, congestion avoidance, fast retransmit: RFC 5681;
 * recovery without SACK: RFC 6582 (NewReno, "impatient"); one new segment for
 * each of the first two duplicate acks: RFC 3042; growth counts bytes, at most
 * two segments an ack: RFC 3465; time-out: RFC 6298, timing one segment at a
 * time (Karn); a window that is not used does not grow, as RFC 7661 asks, and
 * is the initial one again after idleness longer than a time-out (RFC 5681),
 * unless TCP's setting idle-restart says otherwise.
 *
 * Simplifications. Connections exist before the run: no handshake, and the first time-out is RTOmin
 * instead of a second, for the round-trip time is known and far below it. A stream has one
 * direction; what flows back are acks of their own and none is piggybacked. There are no
 * timestamps, and acks tell what came out of order only with TCP's setting sack. The receiver
 * always has room for the largest window. Segments are cut where the stream happens to be, so that
 * one may hold several short messages (there is no Nagle delay: what is there is sent). A host does
 * not fill its NIC with a window's worth of packets: the NIC takes one of each stream in turn, acks
 * first.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_WINDOW_H
#define SIM_WINDOW_H

#include "sim_transport.h"

#define WINDOW_HEADERS 40u /* IP and TCP headers without options, in bytes */
#define WINDOW_LEVELS 8
/* value of the limit with which duplicate acks never mean loss, because packets overtake */
#define WINDOW_NO_DUPACKS 1000000u
#define WINDOW_MAX_BACKOFF 6 /* most doublings of the time-out */
/* Buffer that the ports of a switch share, in bytes; see tcp.c. */
#define WINDOW_SWITCH_BYTES (13ull << 20)
/* Value of cfg->ecn_bytes that says that option K and the rate decide. */
#define WINDOW_ECN_AUTO UINT64_MAX

enum window_type { WINDOW_DATA = 1, WINDOW_ACK };

/** Words of a packet, x[]: number of its first byte or of the byte that it acks, its stream,
 * that stream's serial, and whether the ack echoes a mark, with a time above that. */
enum window_word { WINDOW_X_SEQ, WINDOW_X_FLOW, WINDOW_X_SERIAL, WINDOW_X_MARKED };

/** In x[WINDOW_X_MARKED], above the bit that echoes a mark: with cubic the time, ps, from which
 * the segment waited for its host's link, and in its ack the same; 0: it was sent again, or
 * the ack is not the answer to one segment. */
#define WINDOW_SINCE_SHIFT 1

/** Settings that every protocol here begins with; DCTCP and PIAS continue with K and
 * gain. */
enum window_option {
	WINDOW_INITIAL, /* packets */
	WINDOW_MAX,	/* bytes */
	WINDOW_RTO_MIN, /* us */
	WINDOW_DUPACKS,
	/* number for each pair of hosts; 0: one per message */
	WINDOW_STREAMS,
	WINDOW_NS2_SIZES = WINDOW_STREAMS, /* PIAS: always 0, so its place is free */
	WINDOW_ACK_EVERY,		   /* segments */
	WINDOW_ACK_DELAY,		   /* us */
	WINDOW_K,			   /* packets at 10 Gbit/s */
	WINDOW_SACK = WINDOW_K,		   /* TCP, which has no K: a bool */
	WINDOW_GAIN,			   /* DCTCP's g is 2^-gain */
	WINDOW_TURN = WINDOW_GAIN,	   /* TCP, which has no gain: a bool */
	WINDOW_THRESHOLD,		   /* PIAS: first of seven, in bytes */
	WINDOW_UNDO = WINDOW_THRESHOLD,	   /* TCP, which has no levels: a bool */
	WINDOW_IDLE_RESTART,		   /* TCP: a bool */
	WINDOW_CUBIC,			   /* TCP: a bool */
};

/* clang-format off */
#define WINDOW_OPTIONS(initial, rto_min, ack_every, ...) \
	{ "initial-window", initial, 1, 10000, "packets", \
	  "congestion window of a new stream" }, \
	{ "max-window", 6291456, 2920, 1ull << 32, "bytes", \
	  "largest window; Linux lets a receiver offer 6 MB" }, \
	{ "rto-min", rto_min, 10, 60000000, "us", \
	  "least time-out (RFC 6298; 200 ms in Linux)" }, \
	{ "dupacks", 3, 1, WINDOW_NO_DUPACKS, "packets", \
	  "duplicate acks that mean loss (RFC 5681); more than any window: none" }, \
	__VA_ARGS__, \
	{ "ack-every", ack_every, 1, 64, "packets", \
	  "segments per ack; more than 1 are delayed acks (RFC 5681)" }, \
	{ "ack-delay", 500, 1, 500000, "us", \
	  "longest delay of a delayed ack" }

#define WINDOW_STREAMS_OPTION \
	{ "streams", 32, 0, 1024, "", \
	  "connections from each host to each other, one of which at random takes " \
	  "a message (ATC'21: 4 client by 8 server ports); 0: one per message" }

#define WINDOW_ECN_OPTIONS \
	{ "k", 65, 0, 100000, "packets", \
	  "marking threshold at 10 Gbit/s, scaled to the host link's rate; " \
	  "--ecn overrides it (DCTCP, SIGCOMM'10)" }, \
	{ "gain", 4, 0, 10, "", "g = 2^-gain of the marked share (RFC 8257)" }
/* clang-format on */

struct window;
struct window_flow;

/**
 * struct window_policy - how a window protocol differs from the others
 * @ecn: switches may mark its data packets.
 * @sack: its settings WINDOW_SACK, WINDOW_TURN, WINDOW_UNDO and those after it count.
 * @per_message: each message has a stream, whatever the settings say.
 * @data_prio: priority of data packets of level 0; each further level has one less.
 * @ack_prio: priority of acks.
 * @acked: called after @f->snd_una moved over @bytes > 0, which an ack acknowledges; @ce:
 *	that ack echoes a mark. Returns whether the window may grow by them. NULL: it may.
 * @level: returns the level, 0 (first) .. 7, of the next packet, which begins at @seq.
 *	NULL: it is 0.
 */
struct window_policy {
	bool ecn, sack, per_message;
	u8 data_prio, ack_prio;
	bool (*acked)(struct window *w, struct window_flow *f, u32 bytes, bool ce);
	u8 (*level)(const struct window *w, const struct window_flow *f, u64 seq);
};

/**
 * struct window_range - bytes that came out of order
 * @from: position of the first of them.
 * @to: position behind the last of them.
 */
struct window_range {
	u64 from, to;
};

/**
 * struct window_ranges - a set of bytes of a stream
 * @at: its ranges, sorted; they do not touch.
 * @num, @max: number of entries of @at that are used, and for which there is memory.
 */
struct window_ranges {
	struct window_range *at;
	u32 num, max;
};

/**
 * struct window_cubic - what CUBIC and HyStart remember of a stream; see window_cubic.c
 * @epoch: time at which the window began to grow after it was reduced, ps; 0: it has not yet.
 * @most: window at which the last loss was, in bytes; 0: none since the begin or a time-out.
 * @most_now: window towards which it grows in this epoch, in bytes.
 * @place_ms: time from @epoch until the window is @most_now, ms.
 * @estimate: window that NewReno would have, in bytes.
 * @estimate_acked: bytes that were acked since @estimate last grew.
 * @least_rtt: least round trip since the begin or a time-out, ps; 0: none is known.
 * @round_end: byte after whose ack the next round of slow start begins.
 * @round_at: time at which this round began, ps.
 * @round_rtt: least round trip in it, ps.
 * @train_at: time of the last ack of those that have followed each other closely in it, ps.
 * @samples: number of round trips in it, as far as they are counted.
 * @left: HyStart has ended slow start.
 * @prior: window at the loss that is being repaired, in bytes.
 * @seen: bytes of the stream that are known to have come, at the last ack of this recovery.
 * @delivered, @out: bytes that have come, and that were sent, since it began.
 */
struct window_cubic {
	u64 epoch, most, most_now, place_ms, estimate, estimate_acked, least_rtt;
	u64 round_end, round_at, round_rtt, train_at;
	u32 samples;
	bool left;
	u64 prior, seen, delivered, out;
};

/**
 * struct window_flow - a stream, with its two ends, which share nothing but the list of
 * messages
 *
 * Slots are recycled; packets carry the address and @serial. Positions are bytes of the stream.
 * @next: links the stream into its host's list of its level while it is @queued, or into
 *	the list of free slots.
 * @serial: number that tells the stream from others that had its slot.
 * @src, @dst: numbers of the sending and of the receiving host.
 * @level: the list of its host, by priority, that the stream is in while it is @queued.
 * @queued: the stream can send, so it is in that list.
 * @recovering: segments that were lost are being repaired, up to @recover.
 * @partial_seen: an ack in this recovery has acknowledged a part of it.
 * @ecmp: number from which switches choose the way of its data packets; acks have 1 more.
 * @dupacks: number of duplicate acks in a row.
 * @cwnd: the congestion window, in bytes.
 * @head: first message that is not received whole. Messages are in order, linked by
 *	msg->tx, and end at the byte msg->x[0].
 * @tail: last message.
 * @cursor: first message that ends after @snd_nxt.
 * @snd_una: first byte that is not acked.
 * @snd_nxt: next byte to send.
 * @snd_max: first byte that was never sent.
 * @written: end of the bytes that the application gave.
 * @rexmit: the segment at @snd_una must be sent again.
 * @recover: end of the bytes that a recovery is to repair, see RFC 6582.
 * @backoff: number of time-outs in a row without an ack.
 * @last_tx: time at which it last sent a segment, ps.
 * @rto: the time-out, ps.
 * @deadline: time of the time-out, ps; SIM_NEVER: nothing is under way. @timer fires then or
 *	earlier, and is set again if it is early.
 * @timed_seq: byte whose ack ends the round trip that is being measured; 0: none is.
 * @timed_at: time at which that measurement began, ps.
 * @srtt, @rttvar: smoothed round trip and its variation, ps (RFC 6298).
 * @ssthresh: window up to which slow start goes, in bytes.
 * @ca_bytes: bytes that were acked in congestion avoidance since the window last grew.
 * @alpha: share of marked bytes, in 2^-20.
 * @alpha_end: byte at whose ack @alpha is computed again.
 * @alpha_acked, @alpha_marked: bytes that were acked since then, and those of them whose acks
 *	echoed a mark.
 * @cwr_end: byte before whose ack the window is not reduced again.
 * @level_base: byte from which PIAS counts the bytes sent.
 * @sacked: bytes beyond @snd_una that acks have spoken of.
 * @high_rxt: end of the bytes that were sent again since @pass_at.
 * @lost_to: bytes before this that no ack has spoken of are lost.
 * @pass_mark, @pass_at: @snd_max and the time, ps, when what is lost began to be sent again.
 * @come: with cubic, the farthest byte that was sent again since @pass_at and has come.
 * @new_after: with cubic, @high_rxt when bytes were first sent since @pass_at that are new.
 * @skip_from, @skip_to: bytes that were sent again before @pass_at and are under way; with
 *	cubic only.
 * @rexmit_at: the segment that is to be sent again with @rexmit, if acks speak of bytes.
 * @probed: the last segment was sent again as a probe, and no ack has come since.
 * @overtaken: something that was sent again has come, and something that was sent again
 *	before it has not.
 * @timed_out: this recovery began with a time-out.
 * @doubtful: since then one segment was sent again, so bytes after it that come show that
 *	nothing may have been lost.
 * @undo_cwnd, @undo_ssthresh: what the last loss or time-out has reduced.
 * @undo_from: end of the bytes that acks had spoken of by then.
 * @undo_seq, @undo_at: @timed_seq and @timed_at before the time-out; 0 after a loss.
 * @ready_at: time at which it began to wait for its host's link with its next segment, ps;
 *	with cubic only.
 * @cubic: what CUBIC remembers.
 * @rcv_nxt: at the receiver, the next byte that it lacks.
 * @in: at the receiver, bytes that came beyond @rcv_nxt.
 * @latest: at the receiver, first byte of the segment that came last.
 * @unacked: at the receiver, number of segments without an ack.
 * @ce: at the receiver, the mark of the last segment (state of RFC 8257).
 * @timer: event of the time-out.
 * @ack_timer: at the receiver, event that sends a delayed ack.
 */
struct window_flow {
	struct window_flow *next;
	u64 serial;
	u16 src, dst;
	u8 level;
	bool queued, rexmit, recovering, partial_seen;
	u8 backoff;
	u32 ecmp;
	u32 dupacks;
	u64 snd_una, snd_nxt, snd_max;
	/* fields of the second cache line; with the first one it has all that sending
	 * needs */
	u64 written, cwnd;
	struct sim_msg *head, *tail, *cursor;
	u64 last_tx, rto, deadline;
	/* fields of the third cache line: the receiver's */
	u64 rcv_nxt;
	struct window_ranges in;
	u64 latest;
	u32 unacked;
	bool ce;
	u64 timed_seq, timed_at, srtt, rttvar;
	/* fields that are seldom used, or by DCTCP only */
	u64 ssthresh, ca_bytes, recover;
	u32 alpha;
	u64 alpha_end, alpha_acked, alpha_marked, cwr_end;
	u64 level_base;
	/* fields of window_sack.c */
	struct window_ranges sacked;
	u64 high_rxt, lost_to, pass_mark, pass_at, rexmit_at;
	u64 come, new_after, skip_from, skip_to;
	bool probed, timed_out, overtaken, doubtful;
	u64 undo_cwnd, undo_ssthresh, undo_from, undo_seq, undo_at;
	u64 ready_at;
	struct window_cubic cubic;
	struct sim_event timer, ack_timer;
} __attribute__((aligned(64)));

/**
 * struct window_host - a host
 * @acks: acks to send, oldest first.
 * @mask: a bit for each list of @ready that is not empty.
 * @ready: streams that can send, by level.
 * @turn: by host, the stream to it that takes the next message, where these take turns.
 * @to: the host's streams, by window_slot(); NULL: the stream has had no message.
 */
struct window_host {
	struct sim_fifo acks;
	u8 mask;
	struct {
		/* The first and the last stream of a level; NULL: there is none. */
		struct window_flow *head, *tail;
	} ready[WINDOW_LEVELS];
	u32 *turn;
	struct window_flow **to;
};

/**
 * struct window_counts - numbers of packets and events of all hosts
 * @data: data packets that were sent.
 * @acks: acks that were sent.
 * @retransmits: data packets that were sent again.
 * @fast: fast retransmits.
 * @partial: acks in a recovery that acknowledged a part of what was lost.
 * @timeouts: time-outs.
 * @undone: those of them that were found to be too early.
 * @probes: segments that were sent again as probes.
 * @duplicates: data packets that arrived a second time.
 * @cuts: reductions of a window because of marks.
 * @streams: streams that were begun.
 */
struct window_counts {
	u64 data, acks, retransmits, fast, partial, timeouts, probes;
	u64 duplicates, cuts, streams, undone;
};

struct window_slab;

/**
 * struct window - sim->proto of the window protocols; times are in ps, sizes in bytes
 * @policy: how this protocol differs from the others.
 * @mss: message bytes in a full segment.
 * @extra: bytes that a frame has besides payload and WINDOW_HEADERS: Ethernet's, or 0 with
 *	setting ns2-sizes of PIAS.
 * @least: smallest size of a frame: Ethernet's, or 0 with setting ns2-sizes of PIAS.
 * @initial: congestion window of a new stream.
 * @max: largest congestion window.
 * @rto_min: least time-out.
 * @dup_limit: number of duplicate acks that mean a loss.
 * @turns: streams of a pair take turns, instead of one at random.
 * @sack: acks say which bytes came out of order, and losses are found as in window_sack.c.
 * @undo: with @sack, a time-out that was too early is undone.
 * @idle_restart: a stream that was idle has the window @initial again.
 * @cubic: windows grow and shrink as CUBIC's.
 * @per_message: each message has a stream of its own.
 * @streams: number of streams for each pair of client and server.
 * @ack_every: number of segments for which there is one ack.
 * @ack_delay: longest delay of an ack.
 * @gain: alpha moves by 2^-@gain of the difference (RFC 8257).
 * @threshold: sizes at which a message of PIAS falls a level.
 * @last_serial: window_flow.serial of the stream that was begun last.
 * @hosts: each host, by its number.
 * @free_flows: free slots for streams, by window_flow.next.
 * @slabs: memory from which these were cut, a list.
 * @counts: what is counted of the run.
 */
struct window {
	const struct window_policy *policy;
	u32 mss, extra, least;
	u64 initial, max;
	u64 rto_min;
	u32 dup_limit;
	bool per_message, sack, turns, undo, idle_restart, cubic;
	u32 streams;
	u32 ack_every;
	u64 ack_delay;
	u32 gain;
	u64 threshold[WINDOW_LEVELS - 1];
	u64 last_serial;
	struct window_host *hosts;
	struct window_flow *free_flows;
	struct window_slab *slabs;
	struct window_counts counts;
};

static inline struct window *window_of(const struct sim *sim)
{
	return sim->proto;
}

/* Returns the place of a stream in a host's table; the streams of responses follow the
 * others. */
static inline u32 window_slot(const struct window *w, u32 dst, bool response, u32 which)
{
	return (dst * 2 + response) * w->streams + which;
}

/** window_wire() - return the bytes on the wire of a packet with @payload bytes */
static inline u32 window_wire(const struct window *w, u32 payload)
{
	u32 wire = payload + WINDOW_HEADERS + w->extra;

	return wire < w->least ? w->least : wire;
}

static inline u64 window_msg_end(const struct sim_msg *msg)
{
	return msg->x[0];
}

/* Notes for CUBIC that @f, which has nothing under way, sends: its idleness does not count. */
static inline void window_cubic_starts(const struct sim *sim, struct window_flow *f)
{
	u64 epoch = f->cubic.epoch + sim->now - f->last_tx;

	if (f->cubic.epoch)
		f->cubic.epoch = epoch < sim->now ? epoch : sim->now;
}

/* ---- window.c ---- */

/**
 * window_defaults() - set cfg->option to the defaults of @options, and a network with
 * priority queues and ECMP
 */
void window_defaults(struct sim_config *cfg, const struct sim_option *options);
/** window_start() - make a struct window for sim->proto; 0 or -ENOMEM */
int window_start(struct sim *sim, const struct window_policy *policy);
void window_stop(struct sim *sim);
void window_send(struct sim *sim, struct sim_host *host, struct sim_msg *msg);
struct sim_pkt *window_tx(struct sim *sim, struct sim_host *host);
void window_metrics(struct sim *sim,
		    void (*put)(void *arg, const char *name, double value), void *arg);
/** window_wake() - have the NIC look at @f, which may have become able to send */
void window_wake(struct sim *sim, struct window_flow *f);
/** window_flow_done() - free the stream of one message, all of whose bytes are acked */
void window_flow_done(struct sim *sim, struct window_flow *f);

/* ---- window_receive.c ---- */

/** window_rx() - take in a packet for @host: data or an ack */
void window_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt);
/** window_ack_timer() - the event function of @f->ack_timer */
void window_ack_timer(struct sim *sim, struct sim_event *ev);

/* ---- window_ranges.c ---- */

/** window_ranges_add() - add [from, to); true if all of it was there, or there is no memory */
bool window_ranges_add(struct window_ranges *r, u64 from, u64 to);
/**
 * window_ranges_drop() - remove all ranges that begin at @before or earlier; return where
 * the last of them ended, or @before if that is later
 */
u64 window_ranges_drop(struct window_ranges *r, u64 before);

/* ---- window_sack.c ---- */

/* Ranges that an ack has room for, beside a time stamp. */
#define WINDOW_SACK_BLOCKS 3u

/** window_sack_blocks() - note in the ack @pkt what came out of order, @latest first */
void window_sack_blocks(const struct window_flow *f, u64 latest, struct sim_pkt *pkt);
/** window_sack_take() - note at the sender what the ack @pkt says */
void window_sack_take(struct window_flow *f, const struct sim_pkt *pkt);
/** window_sack_highest() - return the end of what acks have spoken of, or @f->snd_una */
u64 window_sack_highest(const struct window_flow *f);
/** window_sack_pipe() - return the bytes that are under way and not known to be lost */
u64 window_sack_pipe(const struct window_flow *f);
/** window_sack_hole() - find the next lost bytes, [@from, @to); false: there are none */
bool window_sack_hole(const struct window_flow *f, u64 *from, u64 *to);

/** window_sack_come() - return the number of bytes of the stream that acks have spoken of */
u64 window_sack_come(const struct window_flow *f);

/* ---- window_cubic.c ---- */

/** window_cubic_grow() - open the window by an ack of @acked bytes beyond slow start */
void window_cubic_grow(const struct window *w, struct window_flow *f, u64 now, u64 acked);
/** window_cubic_reduced() - note a loss; return what is left of the window, in bytes */
u64 window_cubic_reduced(struct window_flow *f);
/** window_cubic_recover() - begin to repair a loss; @f->ssthresh has what will be left */
void window_cubic_recover(struct window_flow *f, u64 prior);
/** window_cubic_recovering() - set the window by an ack while a loss is being repaired;
 * @good: the ack acknowledges bytes and tells of no other loss */
void window_cubic_recovering(const struct window *w, struct window_flow *f, bool good);
/** window_cubic_forget() - note a time-out */
void window_cubic_forget(struct window_flow *f);
/** window_cubic_rtt() - note that the ack of the bytes below @ack tells of a round trip of
 * @rtt ps, before window_ack() */
void window_cubic_rtt(const struct window *w, struct window_flow *f, u64 ack, u64 now,
		      u64 rtt);

/* ---- window_loss.c ---- */

/**
 * window_ack() - note that bytes below @ack have been received; @ce: the ack echoes a mark
 */
void window_ack(struct sim *sim, struct window_flow *f, u64 ack, bool ce);
/** window_arm() - start the time-out of @f, which has bytes under way */
void window_arm(struct sim *sim, struct window_flow *f);
/** window_timer() - the event function of @f->timer */
void window_timer(struct sim *sim, struct sim_event *ev);
/** window_usable() - return the number of bytes that may be under way */
u64 window_usable(const struct window *w, const struct window_flow *f);

/* ---- dctcp.c: also PIAS ---- */

bool dctcp_acked(struct window *w, struct window_flow *f, u32 bytes, bool ce);

/* ---- pias.c ---- */

/**
 * pias_thresholds() - compute the seven sizes, in bytes, at which a message falls a level
 * @load: 0..1, share of the link; @mss: bytes in a packet. See pias.c.
 */
void pias_thresholds(const struct homa_workload *workload, double load, u32 mss,
		     u64 threshold[WINDOW_LEVELS - 1]);

#endif
