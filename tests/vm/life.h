/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of `life` share. */
#ifndef TESTS_VM_LIFE_H
#define TESTS_VM_LIFE_H

#include "guest.h"

extern int family;
extern const char *ip; /* ours */
extern union address server;
extern unsigned char buf[HOMA_MAX_MESSAGE_LENGTH];

/** start_server() - in a process of its own on @port; sets `server`. */
pid_t start_server(int port);
/** end() - kill a process and wait for it. */
void end(pid_t pid);
/** call() - one request and its response. */
void call(struct sock *s, size_t size, unsigned int seed);

/* life_answer.c */
void life_second_answer(void);
void life_answers_at_once(void);
void life_early_rejection(void);
void life_no_way_back(void);

#define LIFE_ANSWER_CHECKS                                                     \
	{ "a second answer is an error", life_second_answer },                 \
		{ "several answers at once, of which one is sent",             \
		  life_answers_at_once },                                      \
		{ "rejections before the request is received",                 \
		  life_early_rejection },                                      \
	{                                                                      \
		"an answer without a way is looked for once", life_no_way_back \
	}

/* life_bind.c */
void life_low_ports(void);

#define LIFE_BIND_CHECKS { "low ports need a capability", life_low_ports }

/* life_address.c */
void life_addresses(void);
void life_address_rules(void);
void life_address_foreign(void);
void life_address_v6(void);
void life_address_many(void);
void life_device(void);

#define LIFE_ADDRESS_CHECKS                                                    \
	{ "several addresses of a port", life_addresses },                     \
		{ "who may have an address beside whom", life_address_rules }, \
		{ "addresses of other machines", life_address_foreign },       \
		{ "both families, mapped and link-local", life_address_v6 },   \
		{ "64 addresses of a port", life_address_many },               \
	{                                                                      \
		"sockets on a device", life_device                             \
	}

/* life_compat.c */
void life_compat(void);

#define LIFE_COMPAT_CHECKS { "calls of 32-bit programs", life_compat }

/* life_drops.c */
void life_drops(void);

#define LIFE_DROPS_CHECKS { "why packets are dropped", life_drops }

/* life_pays.c */
void life_cgroup_pays(void);
void life_cgroup_reserve(void);
void life_cgroup_pays_namespace(void);

#define LIFE_PAYS_CHECKS                                                          \
	{ "a socket's cgroup pays for its messages and RPCs", life_cgroup_pays }, \
		{ "SO_RESERVE_MEM takes no payment back", life_cgroup_reserve },  \
	{                                                                         \
		"the first one's cgroup pays for a namespace",                    \
			life_cgroup_pays_namespace                                \
	}

/* life_ends.c */
void life_waiters_leave(void);
void life_untaken(void);

#define LIFE_ENDS_CHECKS                                                    \
	{ "threads that waited for one RPC are gone when it ends",          \
	  life_waiters_leave },                                             \
	{                                                                   \
		"requests that an ended server had not taken", life_untaken \
	}

/* life_faults.c */
void life_args_end(void);
void life_send_args_end(void);
void life_pieces(void);
void life_again(void);
void life_no_rpcs(void);
void life_ring(void);
void life_no_rpcs_poll(void);

#define LIFE_FAULTS_CHECKS                                                      \
	{ "recvmsg() whose arguments end too early", life_args_end },           \
		{ "sendmsg() whose arguments end or cannot be written",         \
		  life_send_args_end },                                         \
		{ "messages in pieces, empty ones and bad ones", life_pieces }, \
		{ "no room, an answer, and the next one", life_again },         \
		{ "no more RPCs, and a call that waits", life_no_rpcs },        \
		{ "no more RPCs, and who polls", life_no_rpcs_poll },           \
	{                                                                       \
		"io_uring sends again what there was no room for", life_ring    \
	}

/* life_send.c */
void life_full(void);
void life_full_timeout(void);
void life_full_signal(void);
void life_full_wakes(void);
void life_full_poll(void);
void life_sndbuf(void);
void life_bad_memory(void);
void life_bad_region(void);
void life_unread(void);

#define LIFE_SEND_CHECKS                                                          \
	{ "a full socket says EAGAIN, an abort makes room", life_full },          \
		{ "a full socket waits for SO_SNDTIMEO", life_full_timeout },     \
		{ "a signal ends the wait for room", life_full_signal },          \
		{ "the wait for room ends when there is some", life_full_wakes }, \
		{ "poll says whether there is room", life_full_poll },            \
		{ "SO_SNDBUF is the room to send", life_sndbuf },                 \
		{ "sending from memory that is not there", life_bad_memory },     \
		{ "receiving into memory that is not there", life_bad_region },   \
	{                                                                         \
		"13,000 short messages wait to be read", life_unread              \
	}

#endif
