/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homa-kernel-bench: RPCs between two network namespaces of one kernel, over
 * kernel TCP, UDP or the kernel's Homa sockets, with as little as possible
 * around the system calls. It exists beside homa-bench because what is measured
 * here is the kernel: the program is static, so that it runs alone in a small
 * guest, takes no time stamps while instructions are counted, and tells the
 * emulator where the measured part begins and ends (mark.h).
 *
 * TCP carries one send() and one receive per message, never several messages in
 * a call.
 */
#ifndef HOMA_KERNEL_BENCH_RPCS_H
#define HOMA_KERNEL_BENCH_RPCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define RPCS_MAX_MESSAGE 1000000u
#define RPCS_MAX_OUTSTANDING 256u
#define RPCS_MAX_CORES 16u

/* How to wait for a message. */
enum rpcs_wait {
	RPCS_BLOCK, /* block in the receiving call */
	RPCS_YIELD, /* receive without waiting, sched_yield() in between */
	RPCS_SPIN,  /* receive without waiting, again and again */
	RPCS_POLL,  /* as RPCS_YIELD for a while, then as RPCS_BLOCK */
};

/*
 * struct rpcs_config - a run
 * @poll_usecs: time for which RPCS_POLL yields before it blocks, us.
 * @poll_ticks: the same in ticks of the processor's counter.
 * @request: bytes of a request.
 * @response: bytes of a response.
 * @outstanding: number of RPCs kept in flight.
 * @warmup: number of RPCs before the measured part.
 * @count: number of RPCs in the measured part.
 * @times: measure the time of every RPC.
 * @mark: tell the emulator where the measured part begins and ends.
 * @cores: number of client threads and of server threads (cores.c); 0: one process each.
 * @bound: the server is bound to its address alone, not to all of its host.
 * @peer: the server's address, as clients name it.
 * @peerlen: bytes of @peer.
 */
struct rpcs_config {
	const char *proto;
	enum rpcs_wait wait;
	uint32_t poll_usecs;
	uint64_t poll_ticks;
	uint32_t request, response;
	uint32_t outstanding;
	uint32_t warmup, count;
	uint32_t sndbuf;
	bool times;
	bool mark;
	bool bound;
	uint32_t cores;
	int client_cpu, server_cpu;
	const char *client_net, *server_net;
	const char *address;
	const char *label;
	uint16_t port;
	struct sockaddr_storage peer;
	socklen_t peerlen;
};

/*
 * struct rpcs_proto - a transport; calls end the program when they fail
 * @listen: server: make it ready for clients.
 * @serve: server: answer requests; never returns.
 * @connect: client: make it ready to send.
 * @send: start RPC number @slot (below config.outstanding).
 * @receive: wait for a response; returns its slot.
 * @turn: start an RPC in @slot and wait for a response, in one call; returns its slot. NULL if
 *	the transport has no such call.
 */
struct rpcs_proto {
	const char *name;
	void (*listen)(const struct rpcs_config *config);
	void (*serve)(const struct rpcs_config *config);
	void (*connect)(const struct rpcs_config *config);
	void (*send)(const struct rpcs_config *config, uint32_t slot);
	uint32_t (*receive)(const struct rpcs_config *config);
	uint32_t (*turn)(const struct rpcs_config *config, uint32_t slot);
};

extern const struct rpcs_proto rpcs_tcp, rpcs_udp, rpcs_homa, rpcs_exchange;

/** rpcs_die() - print the message and errno's text, end the program */
__attribute__((noreturn, format(printf, 1, 2))) void rpcs_die(const char *format,
							      ...);

/** rpcs_wait_flags() - return the flags for the first receive of a message */
int rpcs_wait_flags(const struct rpcs_config *config);
/**
 * rpcs_wait_turn() - do what follows when a receive found nothing, and return the flags for
 * the next one. @since: time of the first such receive of this message, 0 at first.
 */
int rpcs_wait_turn(const struct rpcs_config *config, uint64_t *since);

/** rpcs_bind() - bind the server's socket @fd to the port, at all addresses of the host, as most
 *  servers do, or (rpcs_config.bound) at one */
void rpcs_bind(int fd, const struct rpcs_config *config);
/** rpcs_enter_net() - put the calling thread into the namespace @path, NULL: leave it */
void rpcs_enter_net(const char *path);
/** rpcs_pin() - keep the calling thread on @cpu; negative: leave it */
void rpcs_pin(int cpu);
/** rpcs_cores() - run @config's RPCs by several threads (cores.c); returns when all ended */
void rpcs_cores(const struct rpcs_config *config, const struct rpcs_proto *proto);

#endif
