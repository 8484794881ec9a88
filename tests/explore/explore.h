/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A model checker for protocol code that takes time, memory and randomness as
 * arguments. A state is a block of bytes: some hosts, the packets between them, how
 * many faults may still happen. From each state every choice is tried: which packet
 * comes next, which is lost, doubled or late, when a timer runs, what an application
 * does, who restarts. States that were seen are not gone through again; what counts
 * as the same state is what the protocol's canon() writes.
 *
 *	world.c   hosts, packets, time, choices		search.c  depth first
 *	table.c   states that were seen			trace.c   counterexamples
 *	guard.c   code that crashes or hangs		save.c    searches that go on later
 *	work.c    processes that share a search	compare.c is the same the same?
 *	main.c    options			bound.c   how many faults of each kind
 *
 * Nothing here knows a protocol; struct xp_proto is what one has to bring. Homa's is
 * in homa_*.c, TCP's in tas_*.c; each has a program of its own.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include "homa_plat.h"

#include <stdio.h>

#define XP_HOSTS 4    /* most hosts of a world */
#define XP_PACKETS 16 /* most packets under way at a time; see xp_send() */
#define XP_CHOICES 64 /* most choices in one state */
/* Most choices in a row: a run that takes longer never ends. */
#define XP_DEPTH 4000
#define XP_HEADER 128 /* most bytes of a packet that are kept */
#define XP_NEVER (~0ull)
#define XP_US 1000ull
#define XP_MS 1000000ull

/* Faults that a scenario allows, each so many times. */
#define XP_FAULTS(X)                                                         \
	X(LOSS, loss, "packets lost")                                        \
	X(DUP, dup, "packets that the network doubles; the copy comes late") \
	X(REORDER, reorder, "packets that overtake others")                  \
	X(LATE, late, "timers that run while packets are under way")         \
	X(RESTART, restart, "hosts that lose everything and start again")    \
	X(ABORT, abort, "RPCs that their application gives up")              \
	X(CLOSE, close, "sockets that are closed")                           \
	X(SLOW, slow, "applications that do nothing for a while")            \
	X(BATCH, batch, "packets that arrive together with the next one")    \
	X(SHORT, short, "packets for which there is no spare memory")        \
	X(FORGE, forge, "packets and errors that a stranger sends")          \
	X(REFUSE, refuse, "packets that their host's device does not send")  \
	X(SLEEP, sleep, "hosts that stand still while time goes on")         \
	X(HALT, halt, "hosts that leave for good; errors answer for them")   \
	X(CHANGE, change, "settings that an administrator changes")

enum xp_fault {
#define XP_ENUM(NAME, name, text) XP_##NAME,
	XP_FAULTS(XP_ENUM)
#undef XP_ENUM
		XP_NUM_FAULTS,
	XP_NONE = 0xff, /* it is no fault and costs nothing */
};
extern const char *const xp_fault_names[XP_NUM_FAULTS];
extern const char *const xp_fault_texts[XP_NUM_FAULTS];

/* Kinds of what may happen next. Those from XP_OWN on are the protocol's. */
enum xp_kind {
	XP_DELIVER = 0, /* packet @arg arrives */
	XP_LOSE,	/* packet @arg is lost */
	XP_DOUBLE,	/* a copy of packet @arg stays behind */
	XP_LATEST,	/* packet @arg, a copy, arrives as late as it may */
	XP_TIMER,	/* time passes until a timer does something */
	XP_START, /* host @host loses everything; @arg 1: and its sockets for good */
	XP_OWN,
};

/**
 * struct xp_choice - something that may happen in a state
 * @kind: an enum xp_kind, or a kind of the protocol's.
 * @fault: fault whose budget gets one less; XP_NONE: it is no fault.
 * @host: number of the host at which it happens.
 * @arg: number of the packet, RPC, ... that it is about.
 */
struct xp_choice {
	u8 kind;
	u8 fault;
	u8 host;
	u8 arg;
};

/**
 * struct xp_packet - a packet under way
 * @sent: time at which it was sent, ns.
 * @len: its length in bytes, of which at most XP_HEADER are kept.
 * @src: number of the sending host.
 * @dst: number of the receiving host.
 * @prio: priority of the packet.
 * @copy: the network has made this copy, which arrives at any time while @sent is not too long
 *	ago.
 * @kind: number by which the protocol tells its packets apart.
 * @link: number of the link that it takes; its meaning is the protocol's.
 * @dst_life: life of its destination when it was sent.
 * @note: number by which the protocol says what the bytes are of that are not kept; 0: none.
 * @data: the first bytes of the packet.
 */
struct xp_packet {
	u64 sent;
	u16 len;
	u8 src, dst;
	u8 prio;
	u8 copy;
	u8 kind;
	u8 link;
	u8 dst_life;
	u32 note;
	u8 data[XP_HEADER];
};

/**
 * struct xp_world - a state; the protocol's hosts follow it in memory
 * @now: virtual time, ns.
 * @hosts: number of hosts.
 * @num_packets: number of packets under way.
 * @sent: number of packets sent so far; it is not part of what makes states the same.
 * @left: number of faults of each kind that may still happen.
 * @any: number of faults of all kinds together that may still happen.
 * @life: number of each host's life, counted from 1.
 * @seen: two words that stand for each host's canon_host(), as of @seen_at; see xp_hash().
 * @seen_at: time of @seen of each host, ns.
 * @packets: the packets under way.
 */
struct xp_world {
	u64 now;
	u32 hosts;
	u32 num_packets;
	u32 sent;
	u8 left[XP_NUM_FAULTS];
	u8 any;
	u8 life[XP_HOSTS];
	u64 seen[XP_HOSTS][2];
	u64 seen_at[XP_HOSTS];
	struct xp_packet packets[XP_PACKETS];
};

/* Bytes of a world that belong to one host: the offsets @from up to @to, multiples of
 * 64. */
struct xp_extent {
	u32 from, to;
};
#define XP_EXTENTS 2u

/* What canon() writes to: values that together are what makes a state itself. */
struct xp_sink {
	/* Number of values written, also of those that did not fit. */
	u32 n;
	/* The values. */
	u64 word[1024];
};

/* Writes a value; xp_canon() tells if one did not fit. */
static inline void xp_put(struct xp_sink *sink, u64 value)
{
	if (sink->n < HOMA_ARRAY_SIZE(sink->word) - 1)
		sink->word[sink->n] = value;
	sink->n++;
}

/**
 * struct xp_scenario - where a search begins
 * @name: name of the scenario.
 * @text: what happens in it, for people.
 * @hosts: number of hosts.
 * @faults: number of faults of each kind that may happen.
 * @quick: number of faults of all kinds together that a quick search allows.
 * @late_ns: longest time that a packet is under way, ns.
 * @what: description of the scenario in a struct of the protocol's.
 */
struct xp_scenario {
	const char *name;
	const char *text;
	u32 hosts;
	u8 faults[XP_NUM_FAULTS];
	u8 quick;
	u64 late_ns;
	const void *what;
};

/**
 * struct xp_proto - a protocol
 * @name: name of the protocol.
 * @size: returns the bytes of a scenario's hosts and of what all applications know, which
 *	follow the world in memory.
 * @begin: makes a scenario's first state of an empty world.
 * @start: starts a host again, without what it knew; with @deaf it has no servers any more.
 * @deliver: lets @p, which is in no queue any more, arrive at its destination.
 * @next_timer: returns the time at which a host's next timer runs, ns; XP_NEVER: it has none.
 * @timer: runs a host's timers; true: more happened than that time passed.
 * @choices: writes what applications and strangers may do to @c, and returns the number. What
 *	costs no fault is certain to happen some time, and stands first.
 * @may_wait: says whether time may pass; it may not if an application was slow for too long and
 *	has to go on.
 * @act: does what a choice of the protocol's says.
 * @ended: says whether nothing is left to be done, so that no choice is needed any more.
 * @check: checks what must hold after each step, and calls xp_fail().
 * @check_end: checks what must hold when nothing is left.
 * @canon: writes what makes a state itself and belongs to no host, times relative to now.
 * @canon_host: writes the same of one host, from nothing but its own bytes and the time.
 * @extents: says where a host's bytes are; bytes of no host are behind none of them.
 * @describe: writes a packet in words.
 * @name_of: writes a choice of the protocol's in words.
 * @summary: writes in a line how a world stands.
 * @scenarios: scenarios of the protocol.
 * @num_scenarios: number of scenarios.
 */
struct xp_proto {
	const char *name;
	size_t (*size)(const struct xp_scenario *s);
	void (*begin)(struct xp_world *w, const struct xp_scenario *s);
	void (*start)(struct xp_world *w, u32 host, bool deaf);
	void (*deliver)(struct xp_world *w, const struct xp_packet *p);
	u64 (*next_timer)(struct xp_world *w, u32 host);
	bool (*timer)(struct xp_world *w, u32 host);
	u32 (*choices)(struct xp_world *w, struct xp_choice *c);
	bool (*may_wait)(struct xp_world *w);
	void (*act)(struct xp_world *w, struct xp_choice c);
	bool (*ended)(struct xp_world *w);
	void (*check)(struct xp_world *w);
	void (*check_end)(struct xp_world *w);
	void (*canon)(struct xp_world *w, struct xp_sink *sink);
	void (*canon_host)(struct xp_world *w, u32 host, struct xp_sink *sink);
	void (*extents)(struct xp_world *w, u32 host,
			struct xp_extent extent[XP_EXTENTS]);
	void (*describe)(const struct xp_packet *p, char *text, size_t size);
	void (*name_of)(struct xp_choice c, char *text, size_t size);
	void (*summary)(struct xp_world *w, char *text, size_t size);
	const struct xp_scenario *scenarios;
	u32 num_scenarios;
};
/* The protocol that this program explores. */
extern const struct xp_proto *const xp_shipped;

/* ---- world.c ---- */

extern struct xp_world *xp_world; /* the state that is being changed */
extern size_t xp_bytes;		  /* of it, with the hosts */
extern size_t xp_most_bytes;	  /* of any scenario's */
extern const struct xp_proto *xp_proto;
extern const struct xp_scenario *xp_scenario;
extern char xp_why[512]; /* what does not hold, "": all does */
extern FILE *xp_story;	 /* what happens is told here, NULL: nowhere */

/* Memory for worlds of @proto; false: there is none. */
bool xp_world_new(const struct xp_proto *proto);
/*
 * How many faults of each kind, instead of what scenarios allow; xp_bounded: it counts.
 * "loss=2,dup=1" is read into it; false: that is no bound.
 */
extern u8 xp_bound[XP_NUM_FAULTS];
extern bool xp_bounded;
bool xp_bound_read(const char *text);
/* The other way; what is left out is 0. */
void xp_bound_text(char *text, size_t size);
/* Faults that a search of @scenario may have, of all kinds together. */
u32 xp_all_faults(const struct xp_scenario *scenario);
/* The first state of @scenario with at most @faults faults. */
void xp_world_begin(const struct xp_scenario *scenario, u32 faults);
/*
 * Hosts whose bytes a step may have changed, a bit each: a search looks at theirs only.
 * Who changes a host says so first.
 */
extern u32 xp_touched;
static inline void xp_touch(u32 host)
{
	xp_touched |= 1u << host;
}
/* A property does not hold; the first one counts. */
void xp_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void xp_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A host sends. What exceeds XP_PACKETS makes xp_full true: the state is left out. */
void xp_send(struct xp_world *w, const struct xp_packet *p);
extern bool xp_full;
/* Time passes; packets that were under way for too long are lost. */
void xp_time_is(struct xp_world *w, u64 now);
/* All that may happen, what is certain to happen some time first; 0: the end. */
u32 xp_choices(struct xp_world *w, struct xp_choice *c);
void xp_apply(struct xp_world *w, struct xp_choice c);
void xp_canon(struct xp_world *w, struct xp_sink *sink);
u64 xp_hash(struct xp_world *w);
void xp_choice_text(struct xp_world *w, struct xp_choice c, char *text,
		    size_t size);
bool xp_choice_same(struct xp_choice a, struct xp_choice b);

/* ---- table.c ---- */

/* States seen, shared by all processes; fingerprints of 64 bits. */
bool xp_table_new(const char *file, u64 bytes);
/* False: it was there. */
bool xp_table_add(u64 hash);
void xp_table_end(void);
u64 xp_table_used(void);
u64 xp_table_size(void);

/* ---- search.c ---- */

/**
 * struct xp_frame - a state on the way
 * @hash: fingerprint of the state.
 * @undo: number of changes that there were when it was reached.
 * @num: number of choices in it.
 * @at: number of choices that were tried.
 * @choice: the choices.
 */
struct xp_frame {
	u64 hash;
	u32 undo;
	u16 num, at;
	struct xp_choice choice[XP_CHOICES];
};

/* What one process has done; all see it. */
struct xp_stats {
	u64 states, steps, ends, pruned;
	u32 depth, deepest;
};

/**
 * struct xp_search - the search of one process
 * @prefix: choices to the state that it began with.
 * @frames: @depth states from there on.
 * @pause: called now and then; true: stop.
 */
struct xp_search {
	struct xp_stats *stats;
	struct xp_choice prefix[XP_DEPTH];
	u32 num_prefix;
	struct xp_frame *frames;
	u32 depth;
	bool (*pause)(struct xp_search *search);
};

enum xp_result { XP_ALL_SEEN, XP_STOPPED, XP_BROKEN };

/* Memory for a search; false: there is none. */
bool xp_search_new(struct xp_search *search);
/* At the scenario's first state. */
void xp_search_first(struct xp_search *search);
/* At the state behind @prefix, with these choices only. False: it does not exist. */
bool xp_search_at(struct xp_search *search, u32 faults,
		  const struct xp_choice *choice, u32 num);
/* At the state behind @prefix, then to where the frames say; false: it does not exist. */
bool xp_search_again(struct xp_search *search, u32 faults);
/* Until everything was seen, or a property does not hold; then xp_path has the way. */
enum xp_result xp_search_run(struct xp_search *search);
extern struct xp_choice xp_path[XP_DEPTH + 1];
extern u32 xp_path_len;

/* ---- compare.c ---- */

/* Keep one in @one_in states to compare others with that look the same; 0: none. */
bool xp_compare_init(u64 one_in);
void xp_compare_keep(u64 hash);
/* The state that is there has a hash that was seen. */
void xp_compare(u64 hash);
/* How often that was done. */
u64 xp_compared(void);

/* ---- guard.c ---- */

/* xp_apply() of code that may crash, or never come back: then that is what fails. */
void xp_apply_guarded(struct xp_world *w, struct xp_choice c);
void xp_guard_init(void);

/* ---- work.c ---- */

/**
 * struct xp_job - what all processes search together
 * @faults: so many in all.
 * @workers: processes.
 * @until_ms: when to stop, of xp_clock_ms(); 0: never.
 * @memory: bytes for the table.
 * @dir: where a search that was stopped is kept, NULL: nowhere.
 * @again: go on with that one.
 */
struct xp_job {
	const struct xp_scenario *scenario;
	u32 faults;
	u32 workers;
	u64 until_ms;
	u64 memory;
	const char *dir;
	bool again;
	bool progress;
	const char *trace; /* where a counterexample goes, NULL: to the output */
};

enum xp_result xp_work(const struct xp_job *job, struct xp_stats *sum);
u64 xp_clock_ms(void);

/* ---- trace.c ---- */

/* Fewer choices that lead to the same kind of failure. */
void xp_shrink(u32 faults);
/* The way to the failure in words; can be replayed. */
void xp_trace_print(FILE *f, u32 faults);
/* Returns 0: what the file says holds, 1: it fails, 2: it cannot be read, 4: not all of its
 * steps are possible any more. */
int xp_replay(const char *file, bool quiet);

/* ---- save.c ---- */

bool xp_save(const char *dir, u32 worker, const struct xp_search *search);
bool xp_load(const char *dir, u32 worker, struct xp_search *search);

#endif
