/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whole Homa engines in a world: what follows struct xp_world in memory. All pointers
 * of an engine point into this block, so a copy of its bytes is a copy of the state.
 *
 *	homa_host.c   engine, packets, timers	homa_app.c    applications, the book
 *	homa_choice.c what they may do		homa_ways.c   supply, sleep, halt, strangers
 *	homa_canon.c  what is the same state	homa_check.c  what must hold
 *	homa_look.c   tools that look in	homa_late.c   what is owed in time
 *	homa_scenarios.c  where searches begin	homa_words.c  packets in words
 */
#ifndef HOMA_WORLD_H
#define HOMA_WORLD_H

#include "explore.h"
#include "homa_impl.h"

#define XH_RPCS 4	/* in a scenario */
#define XH_SPARE_RPCS 6 /* all that an engine gets */
#define XH_SPARE_PEERS 2
#define XH_SPARE_RANGES 16
#define XH_SOCKS 2 /* of a host: [0] serves, [1] asks */
#define XH_LINKS 2
#define XH_CTRL 8
#define XH_PORT 100
#define XH_WAITS 6 /* timers in a row that an application may be slow for */
#define XH_ROOM_WAITS 2 /* the same for a device without room */
#define XH_KEPT 4	/* pages that an application has not given back */
#define XH_HOLD 4	/* requests that an application has not answered */
#define XH_ICMP 1 /* xp_packet.kind: "port unreachable", quoting the packet */
#define XH_GIVEN_UP 125 /* error of an RPC that its application gives up */
#define XH_PARTS 8	/* of a message, for questions about them */
#define XH_BITS 256 /* a message's bytes are accounted for in so many parts */

/* One RPC of a scenario; lengths in bytes. */
struct xh_plan {
	u8 client, server;
	u32 request, response;
	u64 after_ns; /* it begins so long after all before it have ended; 0: any time */
	u32 reject; /* the server's application rejects it with this errno; 0: it answers */
};

/**
 * struct xh_what - a scenario
 * @seg: message bytes in a packet.
 * @burst: packets that are sent unasked, 0: one.
 * @pages: receive pages of each socket, 0: no region.
 * @behind_ns: how far the clock of timers is behind that of packets.
 * @other_way: what host 1 sends comes on another link of host 0 than it sends on.
 * @deliver_whole: messages of one packet are delivered whole with it.
 * @at_once: messages of one packet leave with the call; see homa_ctx.tx_now.
 * @cutoffs: hosts ask for priorities of their own from the first packet on.
 * @all_at_once: RPCs begin before the search does.
 * @full: the application of host 1's server has all its pages from before.
 * @tweak: other settings; NULL: none.
 * @change: what an administrator may change while all goes on; NULL: nothing.
 * @rate: of the links, Mbit/s; 0: not known, and packets leave at once.
 * @ctrl: control packets that may wait in a link; 0: XH_CTRL.
 * @by_room: the device says for how many packets it has room, and has it again later.
 * @pieces: applications supply their messages packet by packet.
 * @finish: who gets the last packet of a message takes the message at once.
 * @own_ids: applications choose the ids of their RPCs, which are private.
 * @owned: sockets belong to somebody.
 * @gone: the host keeps packets with requests; see homa_limits.tell_gone.
 * @look: tools look in after each step, and calls that make no sense are made.
 * @no_lives: hosts say nothing of lives of servers, as the existing module does.
 * @no_rejects: clients do not say that they understand a rejection, nor does that.
 * @untaken: an application that takes no requests takes no outcomes either; that of host 0
 *	does so at first, and is told of what it gives up.
 * @hostile: a stranger's packets, besides the errors of all scenarios.
 */
struct xh_what {
	u32 num;
	struct xh_plan rpc[XH_RPCS];
	u32 seg;
	u32 burst;
	u32 pages;
	u64 behind_ns;
	bool other_way;
	bool deliver_whole;
	bool at_once;
	bool cutoffs;
	bool all_at_once;
	bool full;
	void (*tweak)(struct homa_params *params);
	void (*change)(struct homa_ctx *ctx);
	u32 rate;
	u32 ctrl;
	bool by_room;
	bool pieces;
	bool finish;
	bool own_ids;
	bool owned;
	bool gone;
	bool look;
	bool no_lives;
	bool no_rejects;
	bool untaken;
	bool hostile;
};

enum xh_state {
	XH_PLANNED = 0,
	XH_PENDING,
	XH_OK,
	XH_FAILED,
	XH_ABORTED,
	XH_GONE
};

/**
 * struct xh_rpc - a line of the book: what the applications know of an RPC
 * @executed: times that a server's application was given the request.
 * @life: of the server, when that was.
 * @excused: a copy that the network made, or one that was late, met a server that has
 *	no memory of it: that it runs twice then is said in docs/protocol.md.
 * @given_up: by its application, which is still to be told.
 * @unwanted_life: the life of its server that was told that its client has given it up.
 * @anew: its client has been told that the server does not know it.
 * @sign_late: how long the slowest packet of a former life of its server was on its way,
 *	where nobody speaks of lives.
 * @cutoffs: version of the priorities that its client had been told when it began.
 * @granted: how far the sender of each message may send; [0] request, [1] response.
 * @sent: how far each was sent.
 * @fresh_at: when new bytes of each came last, ns.
 * @sign_at: when its client was told last that the server has it, or sent new bytes of it.
 * @repeated_at: when bytes of the request were sent again last.
 * @refused_at: when a copy of the request was refused last; @refused_life: of the server.
 * @asked_at: when each part of each was asked for last, ns; 0: not since some came again.
 * @seen_to: how far bytes of each have come to its receiver; @asker_life: of that.
 * @supplied: bytes of each that its sender's application has handed in; 0: all.
 * @served: the handle of the request at its server.
 */
struct xh_rpc {
	u8 state;
	u8 executed;
	u8 life;
	u8 client_life;
	u8 answered;
	bool excused;
	bool anew;
	bool given_up;
	u8 unwanted_life;
	u16 cutoffs;
	u32 sign_late;
	int error;
	struct homa_handle handle;
	u32 granted[2];
	u32 sent[2];
	u64 fresh_at[2];
	u64 sign_at;
	u64 repeated_at;
	u64 refused_at;
	u8 refused_life;
	u64 asked_at[2][XH_PARTS];
	u32 seen_to[2];
	u8 asker_life[2];
	u32 supplied[2];
	struct homa_handle served;
};

/* With each RPC of an engine: what goes out and what came in; see xh_note(). */
struct xh_priv {
	u32 out, in;
	u32 generation; /* of the RPC that @in and @have are of */
	u64 have[XH_BITS / 64];
};

struct xh_held {
	struct homa_handle handle;
	u8 taken; /* only the answer is missing */
	u8 note;
};

/**
 * struct xh_host - a host
 * @slow: 0: it does all at once; 1: its application takes nothing; 2: answers nothing;
 *	3: payload is copied late, @late is one that is, to @late_page; 4: it has not
 *	given back pages, @kept.
 * @refusing: 1: its device will not send the next packet of a message; 2: it has not sent
 *	@refused, and has not said so yet; 3: nor the next control packet.
 * @told: version of the priorities that each host has asked it for.
 * @waits: timers that ran meanwhile.
 * @deaf: it started again without its server.
 * @closed: sockets that it closed.
 * @slept: it has stood still for a time, in which nothing reached it.
 * @halted: it is gone.
 * @tx_at: when its links may send again, ns; HOMA_NEVER: when their device says so; 0: now.
 * @fifo: see homa_late.c.
 */
struct xh_host {
	struct homa_engine *engine;
	struct homa_link *link[XH_LINKS];
	struct homa_sock *sock[XH_SOCKS];
	struct homa_pool *pool[XH_SOCKS];
	struct homa_ctx ctx;
	u8 slow;
	u8 waits;
	bool deaf;
	u8 closed;
	u8 num_held;
	bool is_late;
	u16 told[XP_HOSTS];
	struct xh_held held[XH_HOLD];
	struct homa_rx_pkt late;
	u32 late_note;
	u32 late_page;
	u8 refusing;
	u8 num_kept;
	u32 kept[XH_KEPT];
	struct homa_tx_desc refused;
	bool slept;
	bool halted;
	bool changed;
	u64 tx_at;
	struct xh_fifo {
		u64 granted_at, since, oldest_at, oldest;
	} fifo;
	struct homa_owner owner[XH_SOCKS];
} __attribute__((aligned(64)));

struct xh_world {
	struct xh_rpc book[XH_RPCS];
	struct xh_host host[]
		__attribute__((aligned(64))); /* and their engines behind them */
};

extern const struct xh_what *xh_what;

static inline struct xh_world *xh_of(struct xp_world *w)
{
	return (struct xh_world *)(((size_t)(w + 1) + 63) / 64 * 64);
}

/* Bytes that are sent unasked. */
static inline u32 xh_burst(void)
{
	return xh_what->seg * (xh_what->burst ? xh_what->burst : 1);
}

/* Which message: RPC number @i's request or response. Never 0. */
static inline u32 xh_note(u32 i, bool response)
{
	return 1 + 2 * i + response;
}

static inline u32 xh_length(u32 note)
{
	const struct xh_plan *plan = &xh_what->rpc[(note - 1) / 2];

	return (note - 1) % 2 ? plan->response : plan->request;
}

/* homa_host.c */
const struct homa_limits *xh_limits(void);
size_t xh_size(const struct xp_scenario *s);
void xh_extents(struct xp_world *w, u32 host,
		struct xp_extent extent[XP_EXTENTS]);
void xh_host_start(struct xp_world *w, u32 host, bool deaf);
void xh_deliver(struct xp_world *w, const struct xp_packet *p);
u64 xh_next_timer(struct xp_world *w, u32 host);
bool xh_timer(struct xp_world *w, u32 host);
void xh_poll(struct xp_world *w, u32 host);
void xh_address(struct homa_addr *addr, u32 host);
struct xh_host *xh_clock(struct xp_world *w, u32 host);
void xh_describe(const struct xp_packet *p, char *text, size_t size);
/* A packet that there is no spare memory for. */
void xh_deliver_short(struct xp_world *w, u32 i);
/* Packet @i and the next one on its way in one call. */
void xh_deliver_two(struct xp_world *w, u32 i);

/* homa_notes.c: a packet that arrives in its book of RPCs, and who begins again too early. */
void xh_note_excuse(struct xp_world *w, const struct xp_packet *p);
void xh_note_control(struct xp_world *w, struct xh_host *h,
		     const struct xp_packet *p);
void xh_check_restart(struct xp_world *w, const struct xp_packet *p);

/* A packet leaves, or not; then homa_tx_done(). */
void xh_transmit(struct xp_world *w, u32 host, struct homa_tx_desc *desc);
/* The device says that it has not sent the packet: @later: and it cannot now. */
void xh_refused(struct xp_world *w, u32 host, bool later);
/* The server's pages are its application's. */
void xh_fill(struct xp_world *w, u32 host);
/* Two packets in one call, which were in no queue. */
void xh_deliver_train(struct xp_world *w, const struct xp_packet *p, u32 num);

/* homa_app.c */
void xh_events(struct xp_world *w, u32 host);
/* The engine gives a message away, whose private bytes were @priv. */
void xh_delivered(struct xp_world *w, u32 host, struct homa_handle handle,
		  const struct xh_priv *priv, const struct homa_msg_info *info);
void xh_begin(struct xp_world *w, u32 i);
void xh_begin_all(struct xp_world *w);
/* A whole message that the engine has kept, or an outcome. */
void xh_take(struct xp_world *w, u32 host, struct homa_handle handle);
void xh_answer(struct xp_world *w, u32 host, struct homa_handle handle, u32 note);
void xh_message(struct xp_world *w, u32 host, const struct homa_rx_pkt *rx,
		u32 note);
/* What may be sent of a message without a grant, and no rest of less than a packet. */
u32 xh_unasked(u32 length);
struct xh_rpc *xh_book_find(struct xp_world *w, u32 client, u64 id);
/* The sockets' RPCs are gone, the host with them or not; @sock XH_SOCKS: all. */
void xh_gone(struct xp_world *w, u32 host, u32 sock);
bool xh_ended(struct xp_world *w);
bool xh_may_wait(struct xp_world *w);
void xh_summary(struct xp_world *w, char *text, size_t size);

/* homa_ways.c */
/* Kinds of choices of its own begin at XH_WAYS. */
#define XH_WAYS 40
u32 xh_ways(struct xp_world *w, struct xp_choice *c, u32 n);
bool xh_ways_act(struct xp_world *w, struct xp_choice c);
bool xh_ways_name(struct xp_choice c, char *text, size_t size);
/* The next step of the host's application or device is due. */
bool xh_owes(struct xp_world *w, u32 host);
/* A packet for a host that is gone. */
void xh_unreachable(struct xp_world *w, const struct xp_packet *p);
/* How much of a message is handed in at first. */
u32 xh_supply(struct xh_rpc *line, bool response, u32 length);

/* homa_look.c */
void xh_look(struct xp_world *w, u32 host);

/* homa_late.c */
void xh_check_refusals(struct xp_world *w, u32 i);
/* What @host's applications are told that ask whether a client waits for their answer. */
void xh_check_awaited(struct xp_world *w, u32 host);
/* A rejection has reached its client: it is told at once. */
void xh_check_rejected(struct xp_world *w, const struct xp_packet *p);
/* Nobody started again, closed a socket, slept or left; packets may have been lost. */
bool xh_all_is_well(struct xp_world *w);
/* Payload up to @end came. */
void xh_came(struct xp_world *w, const struct xp_packet *p, u32 end);
/* A RESEND leaves; @dir 1: for a response. */
void xh_check_question(struct xp_world *w, u32 host, const struct homa_packet *q,
		       struct xh_rpc *line, u32 dir);
/* A GRANT leaves, for @id of host @host. */
void xh_check_fifo(struct xp_world *w, u32 host, u64 id);

/* homa_choice.c */
u32 xh_choices(struct xp_world *w, struct xp_choice *c);
void xh_act(struct xp_world *w, struct xp_choice c);
void xh_name_of(struct xp_choice c, char *text, size_t size);

/* homa_canon.c */
void xh_canon(struct xp_world *w, struct xp_sink *sink);
void xh_canon_host(struct xp_world *w, u32 host, struct xp_sink *sink);

/* homa_check.c */
void xh_check(struct xp_world *w);
void xh_check_end(struct xp_world *w);
/* A packet was dropped for want of pages. */
void xh_check_refused(struct xp_world *w, u32 host, u32 note);
/* About one packet, as it leaves. */
void xh_check_packet(struct xp_world *w, u32 host, const struct xp_packet *p);
/* Payload is put into its place. */
void xh_copy(struct xp_world *w, u32 host, const struct homa_rx_pkt *rx,
	     u32 note);
/* A message is delivered whole that had this payload. */
void xh_check_message(struct xp_world *w, const struct xh_priv *priv, u32 note,
		      u32 length);

/* homa_scenarios.c */
extern const struct xp_scenario xh_scenarios[];

#endif
