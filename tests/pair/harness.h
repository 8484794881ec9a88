/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whole engines under virtual time: 2 to 64 hosts, each with an engine of its
 * own, joined by a switch whose ports have a rate and eight strict priorities,
 * over paths that lose, duplicate, delay, damage and cut. Everything that
 * happens follows from the seed, so a failure is a number that can be run again
 * (PAIR_SEED=n).
 *
 * The harness is a host in the sense of homa_engine.h and deliberately an
 * unpleasant one: spares may run out, payload is copied late, transmissions are
 * confirmed late or fail, applications are slow. And it is an auditor: a book
 * lists every RPC that was ever started, every payload byte follows from the
 * RPC's place in the book, every object is its own malloc() so that ASan sees
 * a use after the end, and pair_finish() wants everything back.
 *
 *	world.c  events, memory, seeds		net.c   paths and switch ports
 *	host.c   the host's loop		input.c what comes in at it
 *	sock.c   sockets, restarts		clock.c hosts' clocks and pauses
 *	app.c    applications			book.c  the book of RPCs
 *	once.c   who may run a request again	draw.c  settings from a seed
 *	check.c  what must hold
 */
#ifndef PAIR_HARNESS_H
#define PAIR_HARNESS_H

#include "homa_codec.h"
#include "homa_engine.h"

#define PAIR_MAX_HOSTS 64
#define PAIR_MAX_SOCKS 8
#define PAIR_MAX_FILTERS 16
#define PAIR_SERVER_PORT 100
#define PAIR_ANY 0xff

#define PAIR_US 1000ull
#define PAIR_MS 1000000ull
#define PAIR_S 1000000000ull

struct pair_world;
struct pair_host;
struct pair_supply;

/** struct pair_rng - splitmix64; one per concern so that they do not shift each other */
struct pair_rng {
	u64 s;
};

u64 pair_rand(struct pair_rng *rng);
/** pair_below() - 0..n-1; 0 if n is 0 */
u32 pair_below(struct pair_rng *rng, u32 n);
/** pair_chance() - true in @permille of 1000 cases */
bool pair_chance(struct pair_rng *rng, u32 permille);
u64 pair_mix(u64 v);

/** struct pair_faults - what a directed path does to packets; ‰ and ns */
struct pair_faults {
	u32 loss;
	u32 dup;
	u64 dup_max_ns;
	u32 reorder;
	u64 reorder_max_ns;
	u32 corrupt;
	bool cut;
};

/**
 * struct pair_filter - loses chosen packets
 * @type: Homa packet type, 0: any.
 * @src, @dst: host index or PAIR_ANY.
 * @skip: let so many matching packets pass first.
 * @count: then lose so many.
 * @hits: out: lost so far.
 */
struct pair_filter {
	u8 type;
	u8 src, dst;
	u32 skip;
	u32 count;
	u32 hits;
};

/**
 * struct pair_config - a world; pair_config_default() first
 * @rate_mbps: of every host's link; 0: infinitely fast and unpaced.
 * @latency_ns: one way, without serialisation.
 * @latency_step_ns: as much more from host 1, twice as much from host 2 ...; so
 *	that packets of hosts in step do not reach the switch at one time.
 * @max_segs: packets per homa_tx(), drawn from 1..max_segs each time.
 * @pool_pages: receive region per socket, 64 KiB pages; 0: without pool.
 * @by_room: report device room instead of having it estimated.
 * @no_lives: hosts say nothing of lives of servers, as the existing module does.
 * @nic_queue_ns: the host asks for packets while its device has less queued.
 * @port_limit: bytes that a switch port holds; 0: unlimited.
 * @rx_delay_ns: from arrival to homa_rx(); packets batch up meanwhile.
 * @copy_delay_ns, @done_delay_ns: most time until homa_rx_copied(), tx_done.
 * @tx_fail: ‰ of transmissions that the device refuses.
 * @starve: ‰ of occasions on which spares are not refilled.
 * @take_delay_ns, @reply_delay_ns, @release_delay_ns: most time that an
 *	application takes to fetch a message, to answer, to give pages back.
 * @supply_step: bytes handed in at a time; 0: whole messages.
 * @supply_ns: how long each takes; 0: up to 20 us.
 * @max_packets: livelock guard for the world's life.
 * @timer_budget: RPCs per homa_timer() call.
 * @timer_behind_ns: how far the clock of timers is behind that of packets, as when
 *	another CPU looked at it before.
 * @tell_gone: see struct homa_limits; pair_world.gone counts.
 * @deliver_whole: see homa_sock_deliver_whole(); pair_world.delivered_whole counts.
 * @at_once: see homa_ctx.tx_now; pair_world.sent_at_once counts.
 * @private_rpcs: all RPCs are sent as private ones.
 * @within: ‰ of RPCs whose client tells how long it waits.
 */
struct pair_config {
	u64 seed;
	u32 hosts;
	u32 rate_mbps;
	u64 latency_ns;
	u64 latency_step_ns;
	u32 mtu;
	bool v6;
	u16 encap;
	u32 max_segs;
	u32 shards, buckets, tombstones, ctrl_slots;
	u32 pool_pages;
	bool by_room;
	bool no_lives;
	u64 nic_queue_ns;
	u32 port_limit;
	u64 rx_delay_ns;
	u64 copy_delay_ns;
	u64 done_delay_ns;
	u32 tx_fail;
	u32 starve;
	u64 take_delay_ns;
	u64 reply_delay_ns;
	u64 release_delay_ns;
	u32 supply_step;
	u64 supply_ns;
	u32 timer_budget;
	u64 timer_behind_ns;
	bool tell_gone;
	bool deliver_whole;
	bool at_once;
	bool private_rpcs;
	u32 within;
	u64 max_packets;
	struct pair_faults faults;
	struct homa_params params;
};

/* How an RPC of the book ended, as its client saw it. */
enum pair_state {
	PAIR_PENDING = 0,
	PAIR_OK,
	PAIR_FAILED,  /* error in pair_rpc.error */
	PAIR_ABORTED, /* silently, by its application */
	PAIR_GONE,    /* its socket or host went away */
};

/* What happened, for those who want to know that it did; pair_world.did counts. */
enum pair_did {
	PAIR_DID_LOSE,	    /* packets lost by chance */
	PAIR_DID_COPY,	    /* packets repeated */
	PAIR_DID_COPY_LATE, /* of these, more than a second late */
	PAIR_DID_REORDER,
	PAIR_DID_DAMAGE,
	PAIR_DID_CUT,	    /* packets lost because the path was cut */
	PAIR_DID_PORT_FULL, /* packets that the switch's port had no room for */
	PAIR_DID_RING_FULL, /* packets lost because their host was paused */
	PAIR_DID_PAUSE,
	PAIR_DID_RESTART,
	PAIR_DID_CRASH_RX, /* between the packets of a batch */
	PAIR_DID_CRASH_TX, /* between a packet and its confirmation */
	PAIR_DID_LEAP,	   /* clocks */
	PAIR_DID_TX_FAIL,
	PAIR_DID_NO_WAY,
	PAIR_DID_DEAF,	     /* messages that no application looks at */
	PAIR_DID_HOARD,	     /* pages that an application keeps */
	PAIR_DID_MUTE,	     /* requests that are not answered */
	PAIR_DID_TWICE,	     /* second answers, all refused */
	PAIR_DID_REFUSED,    /* RPCs that the engine refused to begin */
	PAIR_DID_FORGED_RUN, /* requests executed that a liar made */
	PAIR_DID_AGAIN, /* requests that ran again, beyond what is promised */
	PAIR_DIDS
};

/* Why a request may run again; see once.c. */
enum {
	PAIR_MAY_LATE = 1, /* a packet of it was later than tombstone_ms */
	PAIR_MAY_COPY = 2, /* it was under way when its server started anew */
	PAIR_MAY_GUARD = 4, /* sent again, and came after the guard of that start */
	PAIR_MAY_LEAP = 8, /* the server's clock leapt, which ends its memory */
	PAIR_MAYS = 4
};

/**
 * struct pair_rpc - a line of the book
 * @server_handle: the server's end, once its application has the request.
 * @server_life, @server_leaps: of its server and its server's clock when it ran.
 * @may: why it may run again.
 * @sign_late: how late the latest sign of its server's former life reached its client, ns.
 * @client_life: incarnation of the client host that started it.
 * @no_reply: the server's application never answers.
 * @reject: it rejects the request with this errno instead of answering; 0: it does not.
 * @within: its client tells the server that it waits for so long, ns; 0: it does not tell.
 * @heard: the end of that as the server's application saw it last, by the server's clock.
 * @executed: times that a server's application was given the request.
 * @taken: times that the client's application was given the outcome.
 */
struct pair_rpc {
	u32 index;
	u8 client, server;
	u32 client_life;
	u16 client_port, server_port;
	u8 client_sock;
	struct homa_handle handle, server_handle;
	u32 server_life, server_leaps;
	u32 may;
	u64 sign_late;
	u32 request_length, response_length;
	u64 cookie;
	u64 reply_delay;
	bool reply_delay_set;
	bool no_reply;
	u16 reject;
	u64 within, heard;
	enum pair_state state;
	int error;
	u32 executed;
	u32 taken;
	u32 replies;
	u64 start, executed_at, replied_at, end;
	struct pair_rpc *next; /* hash chain */
};

/**
 * struct pair_pkt - a packet on its way
 * @stranger: 0, or it comes from this address that is nobody's.
 * @born, @born_clock: when it was sent, and what its receiver's clock said.
 */
struct pair_pkt {
	struct pair_pkt *next;
	u8 src, dst, prio;
	bool damaged;
	u16 stranger;
	u64 born, born_clock;
	u32 len;
	struct pair_faults *faults;
	u8 data[];
};

struct pair_queue {
	struct pair_pkt *head, **tail;
	u32 count;
};

/** struct pair_port - down-link of a switch: strict priorities, bytes */
struct pair_port {
	struct pair_queue queue[8];
	u32 bytes, peak;
	u64 drops;
	bool busy;
};

struct pair_sock {
	struct homa_sock *sock;
	struct homa_pool *pool;
	u8 *region;
	u16 port;
	bool open, server;
	bool deaf;  /* its application never looks */
	bool hoard; /* never gives pages back */
	bool mute;  /* never answers */
	bool twice; /* answers twice */
	u8 role;    /* of the test's own */
	u32 serial; /* tells successive sockets of a slot apart */
	u32 region_pages;
	u32 pages_out; /* with applications */
};

/** struct pair_alloc - header of everything a host has allocated */
struct pair_alloc {
	struct pair_alloc *prev, *next;
	u8 *body;
	size_t size;
	u32 kind;
};

enum {
	PAIR_MEM_MISC,
	PAIR_MEM_RPC,
	PAIR_MEM_PEER,
	PAIR_MEM_RANGE,
	PAIR_MEM_KINDS
};

/* struct pair_clock - @base at the world's time @since; see clock.c */
struct pair_clock {
	bool on;
	u64 base, since;
	s32 ppm;
	u32 leaps;
};

/**
 * struct pair_host - a host; zero at first
 * @bare: it starts without sockets.
 * @hostile: what it says and what is said to it is not judged.
 * @crash_rx, @crash_tx: it dies with that packet from now; 0: never.
 * @crashed: it has, and is about to be started again.
 */
struct pair_host {
	struct pair_world *world;
	u8 index;
	u32 life; /* incarnation */
	u64 born;
	bool up;
	bool bare;
	bool hostile;
	bool crashed;
	u32 crash_rx, crash_tx;
	struct pair_clock clock;
	u64 paused_until;
	bool polling;
	bool hold_events; /* the application does not look */
	bool no_way;	  /* the device knows no way to anybody */
	bool no_room;	  /* the device takes no DATA, if cfg.by_room */
	struct homa_addr addr;
	struct homa_engine *engine;
	struct homa_link *link;
	struct homa_ctx ctx;
	struct pair_sock socks[PAIR_MAX_SOCKS];
	u64 deadline[64];
	u64 wake_at;
	u64 nic_wake_at;
	u64 nic_free_at;
	struct pair_queue rx;
	bool rx_scheduled;
	struct pair_port port;
	struct pair_alloc mem;
	u32 live[PAIR_MEM_KINDS];
	u32 pins; /* delayed copies and transmissions */
	u32 polls, check_polls; /* so many; the receive pages are looked at when they are as many */
	u64 metrics[HOMA_M_COUNT]; /* of former lives */
	u64 tx_packets, tx_bytes, rx_delivered;
};

/* struct pair_event - @due: when it was to happen; later than that if its host was paused */
struct pair_event {
	u64 at, due, seq;
	struct pair_host *host;
	u32 life;
	bool wire; /* happens in the network, whatever the host does */
	void (*fn)(struct pair_host *host, void *arg, bool stale);
	void *arg;
};

#define PAIR_BOOK_BUCKETS 4096

struct pair_world {
	struct pair_config cfg;
	struct homa_limits limits;
	u64 now;
	u64 event_seq;
	u32 sock_serial;
	struct pair_event *heap;
	u32 heap_len, heap_cap;
	struct pair_rng rng_net, rng_host, rng_app, rng_test;
	struct pair_host hosts[PAIR_MAX_HOSTS];
	struct pair_faults paths[PAIR_MAX_HOSTS][PAIR_MAX_HOSTS];
	struct pair_filter filters[PAIR_MAX_FILTERS];
	u32 num_filters;
	struct pair_rpc **book;
	u32 num_rpcs, cap_rpcs;
	u32 pending;
	struct pair_rpc *by_id[PAIR_BOOK_BUCKETS];
	u64 packets;
	u64 by_type[HOMA_TYPES];
	u64 data_bytes;
	u64 digest;
	u32 gone;
	u32 delivered_whole;
	u32 sent_at_once;
	bool corrupting; /* contents and at-most-once cannot be judged */
	bool strangers;	 /* packets to addresses of nobody are lost */
	u64 within; /* all RPCs from now on tell that their client waits so long */
	u64 did[PAIR_DIDS];
	u64 events;
	/* did a liar make that request in the name of @src? NULL: there is none */
	bool (*forged)(struct pair_world *w, const struct homa_addr *src, u64 id);
	/* a host died, and is to be started again; NULL: at once */
	void (*on_crash)(struct pair_host *host);
	/* fuzzer: packets come here instead of going out; true: taken */
	bool (*intercept)(struct pair_world *w, struct pair_pkt *pkt);
	/* a device that makes packets by itself is handed descriptors whole; NULL: there is none */
	void (*device)(struct pair_host *host, const struct homa_tx_desc *desc,
		       u8 dst);
	/* test's own look at packets about to travel; true: lose it */
	bool (*tap)(struct pair_world *w, struct pair_pkt *pkt, void *arg);
	void *tap_arg;
	/* told about each ended RPC */
	void (*on_end)(struct pair_world *w, struct pair_rpc *rpc);
	/* told about each executed request */
	void (*on_execute)(struct pair_world *w, struct pair_rpc *rpc);
	void *user;
};

/* world.c */
void pair_config_default(struct pair_config *cfg);
struct pair_world *pair_world_new(const struct pair_config *cfg);
void pair_world_free(struct pair_world *w);
void pair_event_add(struct pair_host *host, u64 at,
		    void (*fn)(struct pair_host *host, void *arg, bool stale),
		    void *arg);
/** pair_event_wire() - the same, but in the network: a pause of the host is no delay */
void pair_event_wire(struct pair_host *host, u64 at,
		     void (*fn)(struct pair_host *host, void *arg, bool stale),
		     void *arg);
/** pair_run() - let events happen up to and including @until */
void pair_run(struct pair_world *w, u64 until);
/** pair_run_for() - the same, relative */
void pair_run_for(struct pair_world *w, u64 ns);
/** pair_run_while_pending() - until all RPCs ended; false: not by now + @limit */
bool pair_run_while_pending(struct pair_world *w, u64 limit);
void *pair_alloc(struct pair_host *host, size_t size, u32 kind);
void pair_free(struct pair_host *host, void *mem);
void pair_free_all(struct pair_host *host);
/** pair_seed() - PAIR_SEED, else @def; pair_seed_fixed(): was it given? */
u64 pair_seed(u64 def);
bool pair_seed_fixed(void);

/* clock.c */
/** pair_now() - by the host's clock */
u64 pair_now(const struct pair_host *h);
/** pair_when() - the world's time at which the host's clock says @time */
u64 pair_when(const struct pair_host *h, u64 time);
/** pair_clock_set() - it leaps forward by @leap, and runs wrong by @ppm from now on */
void pair_clock_set(struct pair_host *h, u64 leap, s32 ppm);
/** pair_pause() - the host does nothing for so long */
void pair_pause(struct pair_host *h, u64 ns);

/* once.c */
/** pair_once_arrived() - a request's packet reached its server */
void pair_once_arrived(struct pair_host *h, const struct pair_pkt *pkt);
/** pair_once_executed() - an application was given the request of @rpc */
void pair_once_executed(struct pair_host *h, struct pair_rpc *rpc);

/* within.c */
/** pair_within() - what @rpc's client tells of how long it waits, for struct homa_send */
u64 pair_within(struct pair_host *client, struct pair_rpc *rpc);
/** pair_within_heard() - and what the server's application sees of it */
void pair_within_heard(struct pair_host *server, struct pair_rpc *rpc,
		       u64 deadline);

/* draw.c */
/** pair_draw_config() - all settings; the caller has filled in the defaults */
void pair_draw_config(struct pair_rng *rng, struct pair_config *cfg);
u32 pair_one_of(struct pair_rng *rng, u32 a, u32 b, u32 c);

/* net.c */
void pair_net_send(struct pair_host *from, struct pair_pkt *pkt);
struct pair_pkt *pair_pkt_new(u8 src, u8 dst, u8 prio, u32 len);
/** pair_net_deliver() - to the host at once, past the network */
void pair_net_deliver(struct pair_world *w, struct pair_pkt *pkt);
void pair_trace(struct pair_world *w, const char *what,
		const struct pair_pkt *pkt);
u64 pair_wire_ns(const struct pair_world *w, u32 homa_len);
void pair_faults_all(struct pair_world *w, const struct pair_faults *faults);
struct pair_filter *pair_filter_add(struct pair_world *w, u8 type, u8 src,
				    u8 dst, u32 skip, u32 count);
/** pair_cut() - partition: both directions between two hosts */
void pair_cut(struct pair_world *w, u8 a, u8 b, bool cut);
void pair_queue_init(struct pair_queue *q);
void pair_queue_put(struct pair_queue *q, struct pair_pkt *pkt);
struct pair_pkt *pair_queue_get(struct pair_queue *q);
int pair_host_of(const struct pair_world *w, const struct homa_addr *addr);

/* host.c */
/** pair_poll() - the host's loop once: events, transmissions, timers, spares */
void pair_poll(struct pair_host *host);
void pair_rx_arrived(struct pair_host *host, struct pair_pkt *pkt);
void pair_icmp(struct pair_host *host, const struct homa_addr *dst, u16 sport,
	       u16 dport, u64 id);

/* sock.c */
void pair_host_start(struct pair_host *host);
void pair_host_stop(struct pair_host *host);
/** pair_dies() - does the host die with this packet? */
bool pair_dies(struct pair_host *host, u32 *packets, enum pair_did how);
/** pair_crash() - the same, at once, by whoever restarts it in this world */
void pair_crash(struct pair_host *host);
/** pair_restart() - the host loses everything and comes back with a new seed */
void pair_restart(struct pair_host *host);
/** pair_sock_open() - @port 0: client; returns its index */
u32 pair_sock_open(struct pair_host *host, u16 port);
/** pair_sock_close() - with this budget per call, polling in between */
void pair_sock_close(struct pair_host *host, u32 index, u32 budget);

/* book.c */
/** pair_book_add() - a new line */
struct pair_rpc *pair_book_add(struct pair_world *w);
/** pair_book_id() - the RPC has its id; it can be found from now on */
void pair_book_id(struct pair_world *w, struct pair_rpc *rpc);
struct pair_rpc *pair_book_find(struct pair_world *w, u8 client, u64 id);
void pair_rpc_ended(struct pair_world *w, struct pair_rpc *rpc,
		    enum pair_state state, int error);
/** pair_key() - what the bytes of its request or response are made from */
u64 pair_key(const struct pair_world *w, const struct pair_rpc *rpc,
	     bool response);
/** pair_judged() - neither of its hosts lies */
bool pair_judged(const struct pair_world *w, const struct pair_rpc *rpc);
void pair_pattern(u8 *buf, u64 key, u32 offset, u32 len);

/* app.c */
/** pair_rpc_start() - NULL if the engine refused (errno in *err, may be NULL) */
struct pair_rpc *pair_rpc_start(struct pair_world *w, u8 client, u8 sock,
				u8 server, u16 port, u32 request_length,
				u32 response_length, int *err);
/** pair_rpc() - the usual: client socket to PAIR_SERVER_PORT, must succeed */
struct pair_rpc *pair_rpc(struct pair_world *w, u8 client, u8 server,
			  u32 request_length, u32 response_length);
int pair_rpc_abort(struct pair_world *w, struct pair_rpc *rpc, int error);
/** pair_rpc_forget() - both ends end it silently; an end that is gone is fine */
void pair_rpc_forget(struct pair_world *w, struct pair_rpc *rpc);
void pair_app_events(struct pair_host *host);
/** pair_app_message() - a message that the engine gave away with its packet, in place */
void pair_app_message(struct pair_host *host, const struct homa_rx_pkt *rx);
/** pair_tx_now() - a packet that the engine handed out with its message */
void pair_tx_now(struct pair_host *host, struct homa_tx_desc *desc);
/** pair_sock_of() - what the host keeps with an engine socket that is open */
struct pair_sock *pair_sock_of(struct pair_host *host,
			       const struct homa_sock *sock);

/**
 * struct pair_priv - the host's part of an RPC
 * @in: message coming in, without a pool.
 * @out_key: what its outgoing bytes are made from.
 * @out_length, @out_available: of the outgoing message.
 * @supply: who hands in the rest of the bytes, if not all are there.
 */
struct pair_priv {
	u8 *in;
	u32 in_size;
	u32 out_length;
	u64 out_key;
	u32 out_available;
	bool has_out;
	struct pair_supply *supply;
};

/* supply.c */
/** pair_priv_retire() - the RPC's memory is about to go */
void pair_priv_retire(struct pair_priv *priv);
/** pair_first_supply() - how many bytes of @length the application has at first */
u32 pair_first_supply(struct pair_world *w, u32 length);
/** pair_set_out() - @rpc sends the message @key, whose bytes after @available are handed in
 *  later; calls no engine */
void pair_set_out(struct pair_host *h, struct homa_rpc *rpc,
		  struct homa_handle handle, u64 key, u32 length, u32 available);

/* check.c */
/** pair_fail() - stop the test, with seed and time */
void pair_fail(struct pair_world *w, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 2, 3)));
extern void (*pair_fail_hook)(const char *text);
#define pair_check(w, cond, ...)                     \
	do {                                         \
		if (!(cond))                         \
			pair_fail((w), __VA_ARGS__); \
	} while (0)
/** pair_drain() - run until nothing lives; fails after @limit ns */
void pair_drain(struct pair_world *w, u64 limit);
/** pair_check_pages() - every receive page is free, out, or exactly one RPC's; not
 *  @exact: an application is about to write down what it was given. Returns how many RPCs the
 *  sockets have. */
u32 pair_check_pages(struct pair_host *h, bool exact);
/** pair_quiet() - has every RPC ended that is the engines' to end? */
bool pair_quiet(struct pair_world *w);
/** pair_finish() - drain, audit, free the world */
void pair_finish(struct pair_world *w);
/** pair_metric() - over all hosts and their former lives */
u64 pair_metric(struct pair_world *w, enum homa_metric metric);
u64 pair_host_metric(struct pair_host *host, enum homa_metric metric);
/** pair_count_state() - lines of the book in that state */
u32 pair_count_state(struct pair_world *w, enum pair_state state);
void pair_dump(struct pair_world *w);

#endif
