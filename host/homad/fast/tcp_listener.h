/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A port of TCP at which applications listen by homad (streams.c); stream_share.h says how
 * several attachments take its connections.
 *
 * Written by: the home of the attachment, one fast-path thread, unless a field says that it is
 * the slow path's.
 */
#ifndef HOMAD_TCP_LISTENER_H
#define HOMAD_TCP_LISTENER_H

#include "homa_list.h"
#include "stream_share.h"
#include "tas_engine.h"

struct homad_streams;
struct homad_tcp;
struct homad_thread;
struct homad_user;

/* The most connections that may wait at a listener for the application. */
#define HOMAD_BACKLOG_MOST 4096u

/** struct homad_tcp_listener - a listening port of an attachment */
struct homad_tcp_listener {
	/* @l takes connections that come by devices, and @here those from this host. */
	struct tas_listener l, here;
	/* The instance of TCP in which it listens. */
	struct homad_tcp *tcp;
	/* True if only this host reaches its address. @l is not in use then. */
	bool loopback;
	/* The attachment in whose slots its connections are; NULL if it takes none for
	 * now. */
	struct homad_streams *home;
	/* The attachments that take its connections, struct homad_hold. @first is the one of the
	 * attachment that began to listen. */
	struct homa_list holds;
	struct homad_hold first;
	/* The number of tickets that are for it. */
	u32 tickets;
	/* Connections that wait until one of several holders takes them. */
	struct homa_list parked;
	/* True if it takes no more connections. The slow path reads it, too. */
	bool ended;
	/* Links a listener that has ended into homad_tcp.leaving, as long as connections that
	 * came to its port need their segments. */
	struct homa_list of;
	/* The user who pays for it. Only the slow path uses it. */
	struct homad_user *user;
	/* Its place in homad_tcp_ports.held. Only the slow path uses it. */
	struct homa_list held;
	/* The socket that holds the port. Until the listener has ended only the slow path uses
	 * it. */
	int fd;
	/* The next listener in homad_steering.listeners. The slow path writes it. */
	struct homad_tcp_listener *next_here;
	/* The next listener in the stacks homad_tcp.deaf and homad_tcp.gone. */
	struct homad_tcp_listener *next_deaf, *next_gone;
};

/** homad_listener_shared() - has the listener several holders, so that they have to ask? */
bool homad_listener_shared(const struct homad_tcp_listener *listener);
/** homad_listener_accept() - take the connections that have come to the listener. */
void homad_listener_accept(struct homad_thread *t,
			   struct homad_tcp_listener *listener);
/** homad_conn_accept() - take @conn, for which bytes have come, from its listener in @engine before
 *  those that came earlier. It stays there if the listener has no slot. */
void homad_conn_accept(struct homad_thread *t, struct tas_engine *engine,
		       struct tas_conn *conn);
/** homad_listener_end() - let the listener take no more connections. */
void homad_listener_end(struct homad_thread *t,
			struct homad_tcp_listener *listener);
/** homad_listeners_accept() - take the connections that have come to all listeners. */
void homad_listeners_accept(struct homad_thread *t);

/* ---- what the slow path asks for by homad_call() ---- */

/**
 * homad_listener_begin() - begin to listen; @arg: struct homad_tcp_listener with @l.local,
 * @l.port, @l.backlog and @home set; -EADDRINUSE, -ESHUTDOWN.
 */
int homad_listener_begin(struct homad_thread *t, void *arg);

#endif
