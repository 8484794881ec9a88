/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Two TCP engines in a world: what follows struct xp_world in memory. All pointers of an
 * engine point into this block, so a copy of its bytes is a copy of the state.
 *
 *	tas_host.c   engine, segments, timers	tas_app.c       applications, what must hold
 *	tas_canon.c  what is the same state	tas_scenarios.c where searches begin
 *
 * Segments under way have their sequence numbers counted from the initial ones: these
 * depend on when a connection began, and nothing else does.
 */
#ifndef HOMA_TAS_WORLD_H
#define HOMA_TAS_WORLD_H

#include "explore.h"
#include "tas_impl.h"

#define XT_CONNS 4u /* memory for connections of a host */
#define XT_BASES 8u /* initial sequence numbers of a host in one way, at most */
#define XT_RAW 0xffu /* a number that belongs to none of them */
#define XT_PORT 80u
#define XT_FROM 1000u

/* What applications may do. */
enum xt_kind {
	XT_WRITE = XP_OWN, /* one byte more */
	XT_SHUT,	   /* no more will come */
	XT_CLOSE,
	XT_ABORT,
	XT_FORGE, /* a stranger's segment arrives, enum xt_forged in @arg */
};

/* What a stranger can send who sees everything but may not guess the next byte. */
enum xt_forged {
	XT_RESET,  /* inside the window, not at its begin (RFC 5961, 3.2) */
	XT_SYN,	   /* RFC 5961, 4.2 */
	XT_AHEAD,  /* an ACK of what was never sent */
	XT_BEHIND, /* bytes with an ACK that is too old (RFC 5961, 5.2) */
	XT_AGAIN,  /* other bytes in the place of some that have arrived */
	XT_FORGERIES,
};

/**
 * struct xt_what - a scenario
 * @bytes: that each host's application writes, one at a time.
 * @both: both connect, at the same time; otherwise host 0 does.
 * @abrupt: applications close without waiting for the peer's end: what it still sends is lost.
 * @ended: TIME_WAIT in little memory.
 * @timestamps: both have them.
 */
struct xt_what {
	u8 bytes[2];
	bool both;
	bool abrupt;
	bool ended;
	bool timestamps;
};

/**
 * struct xt_host - a host
 * @conn: its application's connection; NULL: none yet, or none any more.
 * @had: it has had one.
 * @written, @got: bytes. @placed: a bit for each byte of the peer's that was copied.
 * @shut, @closed: the application has said so. @end: it has seen the peer's end.
 * @freed: the engine has given the connection back. @error: why it failed.
 */
struct xt_host {
	struct tas_engine engine;
	struct tas_conn conns[XT_CONNS] __attribute__((aligned(64)));
	struct tas_ended ended;
	struct tas_listener listener;
	struct tas_conn *conn;
	u64 placed;
	u32 written;
	u32 got;
	int error;
	bool had, shut, closed, end, freed;
} __attribute__((aligned(64)));

/* @base: initial sequence numbers of each host, of @bases; @excused: somebody gave up, or lost
 * everything: bytes may be missing. */
struct xt_world {
	u32 base[2][XT_BASES];
	u8 bases[2];
	bool excused;
	struct xt_host host[2];
};

extern const struct xt_what *xt_what;

static inline struct xt_world *xt_of(struct xp_world *w)
{
	return (struct xt_world *)(((size_t)(w + 1) + 63) / 64 * 64);
}

/* tas_host.c */
size_t xt_size(const struct xp_scenario *s);
void xt_extents(struct xp_world *w, u32 host,
		struct xp_extent extent[XP_EXTENTS]);
void xt_start(struct xp_world *w, u32 host, bool deaf);
void xt_connect(struct xp_world *w, u32 host);
void xt_deliver(struct xp_world *w, const struct xp_packet *p);
u64 xt_next_timer(struct xp_world *w, u32 host);
bool xt_timer(struct xp_world *w, u32 host);
struct xt_host *xt_clock(struct xp_world *w, u32 host);
void xt_poll(struct xp_world *w, u32 host);
/* A segment of a stranger, about @host's connection. */
void xt_forge(struct xp_world *w, u32 host, enum xt_forged what);
/* Which of @host's initial numbers @seq counts from, or XT_RAW; then *@relative is @seq. */
u8 xt_base_of(struct xp_world *w, u32 host, u32 seq, u32 *relative);
void xt_describe(const struct xp_packet *p, char *text, size_t size);

/* tas_app.c */
/* Something happened to a connection; true: there was something. */
bool xt_events(struct xp_world *w, u32 host);
u32 xt_choices(struct xp_world *w, struct xp_choice *c);
void xt_act(struct xp_world *w, struct xp_choice c);
bool xt_ended(struct xp_world *w);
bool xt_may_wait(struct xp_world *w);
void xt_check(struct xp_world *w);
void xt_check_end(struct xp_world *w);
void xt_name_of(struct xp_choice c, char *text, size_t size);
void xt_summary(struct xp_world *w, char *text, size_t size);

/* tas_canon.c */
void xt_canon(struct xp_world *w, struct xp_sink *sink);
void xt_canon_host(struct xp_world *w, u32 host, struct xp_sink *sink);

/* tas_scenarios.c */
extern const struct xp_scenario xt_scenarios[];

#endif
