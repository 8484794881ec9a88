/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A TCP connection of an application (streams.c, stream_*.c), see abi/shm_stream.h.
 *
 * A connection's memory is a struct homad_stream from the begin, also while it is half
 * open and nobody's. It becomes an attachment's stream, with a slot of its shared memory,
 * when the application opens it or when it is open and came to a listener. It loses both
 * when the application has let go and the peer has all bytes; the rest of its life, such
 * as TIME_WAIT, costs the application nothing.
 *
 * Written by: the fast-path thread whose engine has the connection, which is the home of the
 * attachment.
 */
#ifndef HOMAD_TCP_STREAM_H
#define HOMAD_TCP_STREAM_H

#include "homa_list.h"
#include "shm_stream.h"
#include "tas_engine.h"

struct homad_limit;
struct homad_streams;
struct homad_thread;

/* A stream's buffers: for bytes that arrive, and for bytes to send. */
enum {
	HOMAD_RX,
	HOMAD_TX,
	HOMAD_BUFFERS,
};

/* Bits of homad_stream.news: what an application has to be told of a stream. */
enum {
	HOMAD_NEWS_OPENED = 1,
	HOMAD_NEWS_FAILED = 2,
	HOMAD_NEWS_ACCEPTED = 4,
	HOMAD_NEWS_CHANGED = 8,
};

/** struct homad_stream - a connection, and what homad knows of it as a stream */
struct homad_stream {
	/* The engine's connection. It is the first member. */
	struct tas_conn conn;
	/* The attachment that has the stream; NULL before and after that. */
	struct homad_streams *home;
	/* @of is its place in homad_streams.open, and @pending that in homad_streams.news while
	 * @news is not 0. */
	struct homa_list of, pending;
	/* The HOMAD_NEWS_* bits that were not put into the event ring yet. */
	u32 news;
	/* The number of its slot, and the slot's generation when the stream got it. */
	u32 slot, generation;
	/* The token of the CONNECT command, or the number of the listener that it came to. */
	u64 token;
	/* homad's own copies of the slot's words that say where the send buffer and the receive
	 * buffer lie. */
	u64 tx_map, rx_map;
	/* The engine has taken bytes to send up to position @tx_end. The application has taken
	 * received bytes up to position @rx_read. */
	u32 tx_end, rx_read;
	/* The application has written up to this position. The limit holds the bytes from
	 * @tx_end on. */
	u32 tx_last;
	/* Bytes up to this position were sent at least once. Only a stream with a limit
	 * keeps it up to date. */
	u32 sent_to;
	/* The position up to which the engine had sent when the stream was let go. Only a stream
	 * in homad_tcp.resetting has it. */
	u32 sent_before;
	/* The limit that rules set for it, or NULL. @held is its place in homad_waiting.held. */
	struct homad_limit *limit;
	struct homa_list held;
	/* @tx_shift: log2 of the bytes of the send buffer that have memory. @rx_due: log2 of the
	 * size that the receive buffer gets when its bytes allow the move; 0: it keeps its size. */
	u8 tx_shift, rx_due;
	/* The word @tx_stays of its slot. */
	bool tx_stays;
	/* The application has taken @rx_taken bytes since the time @rx_since, in ns. About each
	 * round trip the count begins anew. */
	u32 rx_taken;
	u64 rx_since;
	/* @tx_bytes counts bytes to send that the engine has taken since the begin. @rx_bytes
	 * counts bytes that arrived in order and that the application was told of. */
	u64 tx_bytes, rx_bytes;
	/* The urgent bytes of the peer of which the application was told, and the position of the
	 * last one: the word @rx_urgent of its slot. */
	u64 rx_urgent;
	/* The HOMA_STREAM_IS_* bits that stand in the slot. */
	u32 state;
	/* True while the application's connect() has not succeeded yet. */
	bool opening;
	/* True if the application has let go of the stream. */
	bool closed;
	/* True from the moment that a listener accepted it until it needs no more segments to
	 * that port; homad_tcp.coming counts it. */
	bool came;
	/* True for ever if the connection came to a listener. */
	bool accepted;
	/* True if its peer is an application of this host. homad_tcp.local runs it then. */
	bool local;
	/* With @local: the number of the instance of TCP that has its peer, plus 1, if that has
	 * answered and is not its own; else 0. */
	u8 peer;
	/* True if the end of its attachment resets the connection. */
	bool resets;
	/* True if the application writes no more while its limit holds bytes up to @tx_last. The
	 * engine learns of the end after these bytes. */
	bool shutting;
	/* True if the limit delays the opening of the window for bytes that were taken. */
	bool rx_held;
	/* The DSCP in the IP headers of its packets. */
	u8 dscp;
	/* The number of the rule that decides about it, from 1 on; 0 if none does. */
	u8 rule;
	/* The number of further holders that have the stream beside its home: aliases,
	 * tickets, and the listener of a stream that is parked. */
	u32 holds;
	/* The aliases that stand for it, struct homad_alias. */
	struct homa_list aliases;
	/* True if its home has let go of it while others still have it. */
	bool left;
	/* True if it came to a listener with several holders, and none has taken it yet:
	 * its place in homad_tcp_listener.parked is @pending. */
	bool parked;
};

static inline struct homad_stream *homad_stream_of(struct tas_conn *conn)
{
	return homa_container_of(conn, struct homad_stream, conn);
}

/** homad_stream_adopt() - make @conn a stream of @s under part @part of its policy, whose limit has
 *  counted it. @local: homad_tcp.local runs it. Returns NULL if @s has no free slot. */
struct homad_stream *homad_stream_adopt(struct homad_thread *t,
					struct homad_streams *s,
					struct tas_conn *conn, int part,
					bool local);
/** homad_stream_move() - move a parked stream, of which nothing was read and nothing
 *  written, to the next slot of @s, which is prepared for it. */
void homad_stream_move(struct homad_thread *t, struct homad_stream *stream,
		       struct homad_streams *s);
/**
 * homad_stream_show_holders() - write the number of holders to the slot, as it has changed.
 */
void homad_stream_show_holders(const struct homad_stream *stream);
/**
 * homad_stream_release() - free the slot of the stream, which belongs to no attachment any
 * more.
 */
void homad_stream_release(struct homad_thread *t, struct homad_stream *stream);
/** homad_stream_quiet() - note that the stream needs no segments any more. */
void homad_stream_quiet(struct homad_thread *t, struct homad_stream *stream);
/**
 * homad_stream_let_go() - release a stream that the application has closed; @reset: at
 * once.
 */
void homad_stream_let_go(struct homad_thread *t, struct homad_stream *stream,
			 bool reset);
/** homad_stream_may_reset() - does the engine keep one more reset? It keeps few, and loses what is
 *  beyond, so the peer might never hear of the end. */
bool homad_stream_may_reset(struct homad_thread *t,
			    const struct homad_stream *stream);
/** homad_stream_all_written() - end a stream that the application has closed, as the engine
 *  has all bytes that were written. */
void homad_stream_all_written(struct homad_thread *t,
			      struct homad_stream *stream, bool reset);
/** homad_stream_end() - end a stream that has nothing to wait for any more. */
void homad_stream_end(struct homad_thread *t, struct homad_stream *stream,
		      bool reset);

/** homad_stream_show_urgent() - write to the slot that the peer has sent an urgent byte, if there
 *  is one that the application was not told of. */
void homad_stream_show_urgent(struct homad_stream *stream);

/* ---- stream_news.c, stream_commands.c ---- */

/** homad_stream_no_news() - the application of @s, the home of the stream, is not told of what is
 *  new. */
void homad_stream_no_news(struct homad_streams *s, struct homad_stream *stream);
/** homad_stream_news() - have the holders of a stream be told HOMAD_NEWS_* of it. */
void homad_stream_news(struct homad_thread *t, struct homad_stream *stream,
		       u32 news);
/** homad_stream_goes_on() - continue a stream that its limit held. Returns NULL, or why the
 *  attachment must end. @waits: set if the stream still waits. */
const char *homad_stream_goes_on(struct homad_thread *t,
				 struct homad_stream *stream, bool *waits);

#endif
