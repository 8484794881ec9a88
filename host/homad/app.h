/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An attachment, one open handle of an application, and what homad knows of its RPCs.
 *
 * What lies in the attachment's shared memory is the application's to change at any
 * moment. So homad keeps its own indices of every ring, its own list of what it gave
 * out, and believes nothing that it reads there before it has checked a copy of it.
 *
 * Written by: the home of the attachment, which is one fast-path thread; what other threads write
 * or read is said at the field. Where there are several threads, the lock of the attachment is
 * held for its slots, its lists of RPCs and its completion ring.
 */
#ifndef HOMAD_APP_H
#define HOMAD_APP_H

#include <sys/types.h>
#include "config.h"
#include "homa_engine.h"
#include "homa_gate.h"
#include "homa_list.h"
#include "shm.h"

/* number of addresses whose hash an attachment remembers */
#define HOMAD_WAYS 16u
#define HOMAD_NO_SLOT 0xffffffffu

struct homad_app;
struct homad_bytes;
struct homad_freed_more;
struct homad_polled;
struct homad_streams;
struct homad_thread;

/* struct homad_rpc - homad's own bytes in every RPC of the engine */
struct homad_rpc {
	/* Links the RPC into homad_app.ready while an event waits for room in the
	 * completion ring. */
	struct homa_list ready;
	/* The attachment whose RPC it is; NULL until that is known. */
	struct homad_app *app;
	/* The engine's name for it; valid while @ready or a slot refers to it. */
	struct homa_handle handle;
	/* The application's name for it; 0: the application does not know of it. */
	u64 token;
	/* Bytes of the outgoing message: homad's own copy if @copied, else @offset of the
	 * data segment @segment. They are announced as free when the RPC has ended. */
	u8 *out;
	/* When a client's request was submitted, ns. */
	u64 sent_ns;
	/* Of a server's RPC whose client is an application of this host: the id that the
	 * client knows, with the lowest bit changed. 0: the client knows the engine's. */
	u64 seen_id;
	/* The length of the outgoing message, bytes. */
	u32 out_size;
	u32 offset;
	u16 segment;
	/* The event that waits, HOMA_EV_*. */
	u8 event;
	/* The attachment is the RPC's client; else it is its server. */
	bool client;
	/* @out is homad's own copy, which homad frees. */
	bool copied;
	/* The application has asked for this response alone (HOMA_SQE_PRIVATE). */
	bool is_private;
	/* The id of a client's RPC is made of the number in its token (abi/shm.h). */
	bool numbered;
};

/* struct homad_slot - the place of one open RPC in an attachment's table, by token */
struct homad_slot {
	/* The engine's name for the RPC. */
	struct homa_handle handle;
	/* The RPC if it goes the short way (direct.c); @handle has no meaning then. */
	struct homad_direct *direct;
	/* The application's name for the RPC; 0 while the slot is free. */
	u64 token;
	/* @cookie, @error, @kind and @flags go into the completion of a client's RPC that
	 * ended without the engine: it was refused, or aborted without a failure. */
	u64 cookie;
	/* Of the client's list of RPCs that ended without the engine: the next, or
	 * HOMAD_NO_SLOT. Of the server's free list: how much farther than the slot after
	 * this one the next is, so that a table of zeros is a list of all its slots. */
	u32 next;
	u32 error;
	u8 kind;
	u8 flags;
	/* Of a server: the reply leaves by homad.ports[@port - 1]; 0: that is not known. */
	u8 port;
};

/* struct homad_direct - an RPC between two applications of this host; see direct.c */
struct homad_direct {
	/* @of_client and @of_server link it into homad_app.direct_client of its client and
	 * direct_server of its server. @wait links it into direct_waiting of its client
	 * while its response waits for room in the client's ring. */
	struct homa_list of_client, of_server, wait;
	/* @client: the attachment that asked; NULL when it has no interest any more.
	 * @server: the attachment that has to answer; NULL when it has answered. @lender:
	 * the attachment in whose data segment the response lies, if it was not copied;
	 * @of_server is in that one's list then. */
	struct homad_app *client, *server, *lender;
	/* The names that the two applications have for the RPC. */
	u64 client_token, server_token;
	/* @cookie: the value that the client wants back. @id: the client's name for the RPC, and
	 * @seen_id: the server's. @sent_ns: when the request was submitted, ns. */
	u64 cookie, id, seen_id, sent_ns;
	/* The address of this host by which the client has called the server. */
	struct homa_addr addr;
	/* The response while it waits: @length bytes, homad's own copy if @copied, else at
	 * @offset of @lender's @segment. */
	u8 *out;
	/* @request_length: the length of the request, bytes. @length, @offset: see @out. */
	u32 request_length, length, offset;
	/* @segment: see @out. @client_port, @server_port: the port of each side that the other
	 * one sees. */
	u16 segment, client_port, server_port;
	/* @is_private: the client asked for this response alone. @waiting: the response waits. */
	bool is_private, copied, waiting;
};

/* struct homad_rings - the entries of an attachment's rings, where homad put them and not
 * where its header says that they are; each number of them is a power of two. Written by: the
 * slow path, before the fast path knows the attachment. */
struct homad_rings {
	/* The submission rings lie one behind the other. */
	struct homa_sqe *sqe;
	/* The completion ring. */
	struct homa_cqe *cqe;
	/* The release ring. */
	u32 *released;
	/* Numbers of entries of each submission ring, of the completion ring and of the release
	 * ring. */
	u32 sq_entries, cq_entries, releases;
};

/* struct homad_segment - a piece of shared memory in which the application writes what
 * is to be sent */
struct homad_segment {
	/* Where homad has mapped it. */
	u8 *base;
	/* Its size in bytes. */
	u32 bytes;
};

/* Counters of one attachment. The fast path writes them; others read them without a
 * lock and may see some of them a round older than the rest. */
#define HOMAD_APP_COUNTERS(X)                                 \
	X(requests, "requests submitted")                     \
	X(replies, "replies submitted")                       \
	X(aborts, "aborts submitted")                         \
	X(rejects, "rejections submitted")                    \
	X(delivered, "messages and failures delivered")       \
	X(tx_bytes, "message bytes submitted")                \
	X(rx_bytes, "message bytes delivered")                \
	X(refused, "submissions that failed at once")         \
	X(wakeups, "times it was woken")                      \
	X(room_told, "times it was told of room to send")     \
	X(ring_full, "times its completion ring had no room") \
	X(budget_out, "rounds that ended its turn before its commands did")

struct homad_app_counters {
#define X(name, text) u64 name;
	HOMAD_APP_COUNTERS(X)
#undef X
};

/* Events wait in two lists: requests that the quota of untaken ones holds back must not
 * hold back responses. */
enum { HOMAD_READY_RESPONSES, HOMAD_READY_REQUESTS, HOMAD_READY };

/* Bits of homad_app.held_back, why completions wait: the completion ring was full; or
 * homad_app.direct_waiting has responses for which the pool or the ring has no room. */
enum { HOMAD_CQ_FULL = 1, HOMAD_NO_ROOM = 2 };

enum homad_app_phase {
	HOMAD_APP_OPEN,
	HOMAD_APP_CLOSING, /* the attachment's RPCs are being ended */
	HOMAD_APP_DEAD,	   /* nothing in the engine refers to the attachment */
	/* the attachment's memory is being made, and the fast path does not know it */
	HOMAD_APP_MAKING,
};

/* The number of pages with memory in an attachment's receive pool at first, and after a
 * long idle time. */
#define HOMAD_POOL_FIRST 8u

/* struct homad_app - an attachment */
struct homad_app {
	/* ---- Written by: the slow path, before the fast path sees them, and what is the
	 * process's in homad_session_wires() when another one takes it over; read by: both.
	 * ---- */
	u64 id; /* a number that is never used twice */
	/* The name that it gave itself, for logs and tools. */
	char name[32];
	/* The process that has it; 0: none has it at present. */
	pid_t pid;
	/* The user who pays for it. */
	uid_t uid;
	/* The main group of the process. */
	gid_t gid;
	/* Shared memory: @queues has the rings, @pool the receive pool of @pool_bytes bytes;
	 * @seg has segments with bytes to send. */
	struct homa_shm_header *queues;
	u8 *pool;
	size_t pool_bytes;
	/* 64 KiB pages of @pool, from the first, and submission rings, from the first, that
	 * have memory behind them; 0 before homad_session_open() means all. The slow path
	 * changes them by homad_session_back(). */
	u32 pool_backed, rings_backed;
	/* The stages of the first @rings_backed rings end at this offset of segment 0, in
	 * bytes; all ones when all stages have memory behind them. */
	u32 stages_end;
	struct homad_segment seg[HOMA_SHM_SEGMENTS];
	/* The number of entries of @seg that are used; it only grows. */
	u32 num_segs;
	/* The entries of the rings in @queues; all zeros before homad_session_open() means
	 * as in homa_shm_queues. */
	struct homad_rings rings;
	/* Write ends of pipes that wake the application; @ready_fd is -1 until it asks for
	 * one. @kick_fd is an eventfd by which it wakes homad; nobody reads its count. */
	int wake_fd, kick_fd, ready_fd;
	/* True if the application rings the bell (abi/shm.h) for each submission to another
	 * ring than the first. */
	bool rings_bell;
	/* True if the application knows HOMA_STREAM_UNJOINED, so that it may be told what it
	 * does not join. */
	bool hears_unjoined;
	/* True if @ready_fd is written for every message, not only for the first that
	 * waits. */
	bool ready_every;
	/* The number of entries of @client_slots and of @server_slots. */
	u32 max_rpcs;
	/* The account of its user in the engine; NULL: the engine's own. */
	struct homa_owner *owner;
	/* For each thread, the attachments of its user that the thread polls; NULL: no
	 * user. */
	struct homad_polled *user_polled;
	/* Its user's account of memory; NULL: no user. */
	struct homad_bytes *bytes;
	/* The key under which ids of its requests are made (abi/shm.h). */
	u64 id_key[2];
	/* The slow path's own record of it. */
	void *slow;

	/* ---- Written by: the home of the attachment, @thread; others where a field says so.
	 * ---- */
	/* Its home: the only thread that looks at its rings. */
	struct homad_thread *thread;
	/* Held by a thread that changes the completion ring, the slots or the lists of
	 * RPCs, if there are several threads. */
	struct homa_gate lock;
	/* The engine's socket. */
	struct homa_sock *sock;
	/* The engine's memory for the receive pool. */
	void *pool_mem;
	/* How far its life has come. */
	enum homad_app_phase phase;
	/* homad's own indices: the ones in shared memory are not believed. */
	u32 sq_head[HOMA_SHM_SQS];
	u32 sq_next; /* the submission ring that was looked at last */
	/* Of each submission ring: where the command to end all RPCs goes on that is its first
	 * entry, a number of a client slot. @shut_next: where homad_session_shutdown() does. */
	u32 abort_next[HOMA_SHM_SQS], shut_next;
	/* True if something may wait in a submission ring that the bell says nothing of
	 * any more: the last turn ended before the commands, or the responses that wait, did,
	 * or the ring had no memory yet. */
	bool look_again;
	/* True if the last look left responses that wait, though there may be room for them. */
	bool retry_again;
	/* True if the application has set HOMA_SHM_ARM_ROOM once, so that it may want to
	 * hear of each turn of its rings. */
	bool asks_room;
	/* A request's number must be less than this, which grows with each request. */
	u64 numbers_end;
	/* Hashes of addresses under @id_key, each in the place that its last bits say. */
	struct homad_way {
		/* The address. */
		struct homa_addr addr;
		/* Its hash under @id_key. */
		u64 hash;
	} ways[HOMAD_WAYS];
	/* The number of entries that homad has taken from the release ring; it counts up
	 * for ever. */
	u32 release_head;
	/* Messages of one packet are delivered as they are received (one_packet.c): a batch of them
	 * has room in the completion ring and in @server_slots. */
	bool delivers_whole;
	/* That ends when @cq_tail gets here, or when @unanswered does, respectively. */
	u32 whole_tail, whole_slots;
	/* homad has written completions up to @cq_tail; the application knows of those before
	 * @cq_published. */
	u32 cq_tail, cq_published;
	/* The index up to which the application had taken completions when homad last
	 * looked. */
	u32 cq_head;
	/* @is_polled: @polled is in a list, and homad looks at its rings by itself; else
	 * the application must kick. @is_touched: @touched is in homad_thread.touched,
	 * because completions were added in this round. @evicted: it broke the rules, as
	 * @why says. @shut: it said HOMA_CTL_SHUTDOWN. */
	bool is_polled, is_touched, evicted, shut;
	/* True if it has asked to share its port; any thread may read this. */
	bool shares;
	/* With @evicted: the rule that the application broke, in words for the log and
	 * tools. */
	const char *why;
	/* @member links it into homad_thread.apps of its home, @closing into
	 * homad_thread.closing while its RPCs are being ended, and then into
	 * homad_tcp.lingering while @lingers. */
	struct homa_list member;
	struct homa_list closing;
	/* Bits of HOMA_SHM_ARM_* of what happened that the application may want to be woken
	 * for. */
	u32 wake_want;
	/* Time at which its rings were last seen with something in them, ns. */
	u64 quiet_since;
	/* @polled links it into homad_polled.apps of its user at @thread, @touched into
	 * homad_thread.touched. */
	struct homa_list polled;
	struct homa_list touched;
	/* RPCs with an event that the application has not been told of. */
	struct homa_list ready[HOMAD_READY];
	/* Tables in one piece, with @freed behind them, zeros at first: a mapping of
	 * @tables_bytes that the slow path made, or, if that is 0, of calloc(). */
	struct homad_slot *client_slots;
	struct homad_slot *server_slots;
	size_t tables_bytes;
	/* the first free server slot; @max_rpcs: there is none */
	u32 server_free;
	/* The number of server slots in use, which are requests that it has not
	 * answered. Under @lock; read by every thread that has a request for a port that
	 * it shares. */
	u32 unanswered;
	/* The first and the last entry of the list of client slots whose end the application has
	 * not been told of (homad_slot.next). */
	u32 ended_first, ended_last;
	/* RPCs that go the short way: those that it has asked for, those that it has to answer,
	 * and those of the first whose responses wait for room in its ring. */
	struct homa_list direct_client, direct_server, direct_waiting;
	/* Bits of HOMAD_CQ_FULL and HOMAD_NO_ROOM that say why completions wait. They are
	 * written under the lock, and @thread reads them without. */
	u32 held_back;
	/* @graced: the engine refers to it no more, and other threads may still have found it.
	 * @passed: how many rounds each thread had begun at that moment. */
	bool graced;
	u32 passed[HOMAD_MAX_THREADS];
	/* Messages to send that homad has no more use for: the application is told when its
	 * completion ring has room. There are @num_freed of them, and room for @max_freed. */
	struct homad_freed {
		/* Offset of the message in its data segment, in bytes. */
		u32 offset;
		/* Number of that data segment. */
		u16 segment;
	} *freed;
	u32 num_freed;
	u32 max_freed;
	/* More of them, of RPCs that ended; NULL: none. They follow those in @freed, which
	 * is not empty then. */
	struct homad_freed_more *freed_more;
	/* The number of RPCs of the engine that refer to it, under @lock. It may be freed
	 * when this is 0. */
	u32 rpcs;
	/* Its TCP streams; NULL: it has not asked for any. @lingers: it is closed, except
	 * for streams whose bytes are still being sent. */
	struct homad_streams *streams;
	bool lingers;
	/* The next attachment in the stack homad.dead. */
	struct homad_app *next_dead;
	/* @asked_memory: the attachment is in homad.wanting, by @next_wanting, or the slow
	 * path has taken it from there and has not answered yet; atomic. @want_pages: the
	 * number of pages that @pool is to have then. */
	bool asked_memory;
	u32 want_pages;
	struct homad_app *next_wanting;
	/* What is counted of it; @thread writes, others read. */
	struct homad_app_counters counters;
};

/* The number of entries of homad_app.freed for each RPC that the attachment may have open: one
 * for what RPCs that end give back, one for a request and one for a reply that homad has no use
 * for as soon as they are submitted. */
#define HOMAD_FREED_EACH 3u

/**
 * homad_tables_bytes() - return the bytes of an attachment's tables for @max_rpcs RPCs of
 * either side.
 */
static inline size_t homad_tables_bytes(u32 max_rpcs)
{
	return max_rpcs * (2 * sizeof(struct homad_slot) +
			   HOMAD_FREED_EACH * sizeof(struct homad_freed));
}

#endif
