/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homad from the inside: the transport as an OS service for many applications. They do
 * not trust each other, and homad trusts none of them.
 *
 * Two kinds of threads. *Fast-path* threads (one in shared mode) run rounds:
 * packets in, commands of applications, packets out, completions; they alone
 * call the engine and touch the rings. The *slow path* is the main thread, called
 * control: it makes and frees attachments, answers their questions, and reaches the
 * fast path only by homad_call(), which runs a function on a fast-path thread between
 * two rounds. Beside it stands the admin thread with what tools and people ask for,
 * which reaches control only by homad_control().
 *
 *	slow/		slowpath.c control's loop; listen.c attach.c ctl.c answer.c applications
 *			attach and ask; app.c backing.c quota.c worker.c their memory; routes.c
 *			ways to destinations; scaling.c cores; admin.c reload.c the admin thread,
 *			settings; tcp_*.c what TCP needs of the kernel
 *	fast/		thread.c round.c idle.c a thread, its rounds, its sleep; poll.c turns.c
 *			rings.c commands.c whose commands are taken, and each of them; rxpath.c
 *			txpath.c egress.c packets; local.c direct.c within this host; bulk.c
 *			dest.c which way; complete.c completions; session.c memory.c
 *			more_memory.c what begins, ends and grows; tcp*.c stream_*.c streams.c
 *			TCP
 *	between		mailbox.c, pause.c, and stacks in struct homad
 *	observe/	the admin thread's: monitor.c apps.c stats.c snapshot_*.c flows.c
 *			trace_stream.c http.c; and log.c
 *	config/		the file, the command line, rules
 *
 *	app.h		an attachment and its RPCs	session.h  what the slow path
 *	thread.h	a fast-path thread			   asks of the fast one
 *	homad.h		the daemon, its ports		fast.h	   within the fast path
 *
 * Written by: control, before the fast-path threads run, unless a field says otherwise.
 */
#ifndef HOMAD_HOMAD_H
#define HOMAD_HOMAD_H

#include "config.h"
#include "homa_clock.h"
#include "homa_engine.h"
#include "copies.h"
#include "nic.h"
#include "thread.h"

/* struct homad_port - a way out of this host: a network device, UDP, or "local" */
struct homad_port {
	/* Packet I/O; NULL for messages between applications of this host. */
	struct nic *nic;
	/* The engine's link for this port. */
	struct homa_link *link;
	/* The properties of @nic; NULL if @nic is. */
	const struct nic_info *info;
	/* The port's place in homad.ports. */
	u32 index;
	/* Index of the thread that serves it. */
	u32 thread;
	/* True if its peers are an IP address and a UDP port. */
	bool encap;
	/* The network device's number in the kernel; 0: it has none. */
	int ifindex;
	/* True if the device is software, such as veth, and has no rate of its own. */
	bool virtual_device;
	/* True if the device is a message NIC, so that long messages gain nothing by UDP. */
	bool is_message;
	/* True if another thread has given @link something to send that the thread which serves
	 * the port has not looked for yet. Atomic: the other thread sets it, that one clears it. */
	bool wanted;
	/* From here to @news_seen the thread that serves the port writes, and no other reads.
	 * @tx_at: the time at which the engine's pacer wants to be asked again, ns; HOMA_NEVER:
	 * not by time. */
	u64 tx_at;
	/* True if the nic had no room, so that packets wait in the engine. */
	bool tx_blocked;
	/* True if the nic was given packets that nic_flush() has not followed. */
	bool unflushed;
	/* True if TCP had something to send by the port when that was last looked at. */
	bool others;
	/* @rx_at: time before which the nic is not asked for packets again, in ns.
	 * @heard_at: time at which it last had one, in ns.
	 * @news: a counter of packets that have come (nic_watch()); NULL: there is none.
	 * @news_seen: the counter's value when the nic was last asked. */
	u64 rx_at, heard_at;
	const u64 *news;
	u64 news_seen;
	/* The name by which logs and tools call it: "eth0", "udp" or "local". */
	char name[32];
	/* The daemon. */
	struct homad *d;
	/* Questions about the way to destinations; the thread for routes owns those that
	 * are open. */
	struct homad_way_question ways[HOMAD_WAYS_ASKED];
};

/* Does the port carry TCP? Only AF_XDP does. */
static inline bool homad_port_tcp(const struct homad_port *port)
{
	return port->nic && port->info->tcp;
}

/* struct homad - the daemon */
struct homad {
	/* The settings that hold now. The slow path writes them. */
	struct homad_config config;
	/* The engine that all fast-path threads run; made at the start. */
	struct homa_engine *engine;
	/* How large @engine was made: its tables, and the bytes of ours in its objects. */
	struct homa_limits limits;
	/* Network devices, then UDP if it is served, then "local", the last. */
	struct homad_port ports[HOMAD_MAX_PORTS + 1];
	/* The number of entries of @ports that are used. */
	u32 num_ports;
	/* The port for messages between applications of this host. */
	struct homad_port *local;
	/* The port for UDP; NULL: it is not served. */
	struct homad_port *udp;
	/* The fast-path threads, the first @num_threads of which are there. */
	struct homad_thread *threads[HOMAD_MAX_THREADS];
	/* The number of fast-path threads. */
	u32 num_threads;
	/* The number of threads that take part, from the first; atomic. */
	u32 num_active;
	/* The time at which homad started, ns. */
	u64 started_ns;
	/* An eventfd by which the fast path tells that @dead or @wanting is not empty. */
	int dead_fd;
	/* Attachments for homad_session_free(): an atomic stack by homad_app.next_dead. */
	struct homad_app *dead;
	/* @bytes: what all users have together (copies.h). @bytes_of_user, @bytes_of_all:
	 * the most bytes that one user and all users may have. @copies_easy: while the
	 * copies of all users have fewer bytes, no user has too many. The slow path writes
	 * the three limits. */
	struct homad_bytes bytes;
	u64 bytes_of_user, bytes_of_all, copies_easy;
	/* Attachments that need more memory: an atomic stack by homad_app.next_wanting. */
	struct homad_app *wanting;
	/* Questions for routes that nobody has asked the kernel yet: an atomic stack. */
	struct homad_question *questions;
	/* The same questions of device queues, see ways.c: an atomic stack. */
	struct homad_way_question *way_questions;
	/* Questions of clients to which the kernel has answered: an atomic stack. Any thread
	 * pushes, the main thread takes all. */
	struct homad_question *answered;
	/* An eventfd by which the fast path tells that @answered is not empty. */
	int answered_fd;
	/* An eventfd by which the thread for routes hears that @questions or @way_questions is
	 * not empty. */
	int questions_fd;
	/* True while the thread for routes runs; while it is false homad_ask_route() asks the
	 * kernel in the caller's thread. Written by homad_routes_start() and _stop(). */
	bool routes;
	/* The slow path's own part, struct homad_slow (slowpath.h). */
	void *slow;
	/* Which instance of TCP gets a segment (tcp_steer.h), and the instances; NULL: there is no
	 * TCP. Made at the start. */
	struct homad_steering *steering;
	/* The state of scaling.c; NULL: the number of threads is fixed. */
	struct homad_scaling *scaling;
	/* The process that is tracing; 0: none. Written by trace_stream.c in the admin thread. */
	pid_t tracing;
};

/* ---- core.c: engine, ports and threads ---- */

/** homad_start() - open the NICs, make the engine, start the threads. @err
 *  receives one sentence on failure; what did not work but need not is logged. */
int homad_start(struct homad *d, char *err, size_t errlen);
/** homad_stop() - tell applications by HOMA_SHM_STOPPING that homad ends, and end the threads. */
void homad_stop(struct homad *d);

/** homad_link_rate() - return the rate of a port's link in Mbit/s; 0: unknown. */
static inline u32 homad_link_rate(const struct homad *d,
				  const struct nic_info *info)
{
	return d->config.link_mbps ? d->config.link_mbps : info->link_mbps;
}
/** homad_set_params() - let the engine and its links go by @arg, a struct homa_params, from now
 *  on. Called by homad_call_alone(). Returns 0, or -EINVAL if they cannot be. */
int homad_set_params(struct homad_thread *t, void *arg);

/* ---- scaling.c ---- */
/**
 * homad_thread_for_app() - return the thread at which a new attachment should be at home.
 */
struct homad_thread *homad_thread_for_app(struct homad *d);
/**
 * homad_thread_for_port() - return the index of the thread that serves @port when the first
 * @active threads take part. @next: 0 before the first port, then the caller's for this function.
 *
 * Ports get the threads in turn, so queues of one device get different ones. With TCP the first
 * port of each device is the first thread's, so that a thread which runs TCP has a queue of each.
 */
u32 homad_thread_for_port(const struct homad *d, const struct homad_port *port,
			  u32 active, u32 *next);
/** homad_scale_to() - make the first @active threads the active ones. */
void homad_scale_to(struct homad *d, u32 active);

#endif
