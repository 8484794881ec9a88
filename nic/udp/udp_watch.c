// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A word in memory that says whether a datagram has come, so that a thread which also
 * serves AF_XDP need not make a system call to find out that none has. A BPF program on the
 * socket adds one for each datagram that passes. The word is in a map that is mapped here.
 * Where BPF is not allowed, there is no word.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "udp.h"

#ifndef SO_ATTACH_BPF
#define SO_ATTACH_BPF 50
#endif

/* How many bytes of a datagram the program keeps: all. */
#define KEEP_ALL (-1)

/* Returns a descriptor of the program that adds one to the first value of @map_fd. */
static int load(int map_fd)
{
	const struct bpf_insn insns[] = {
		/* r1 = the address of the value */
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = map_fd },
		{ .code = 0 },
		/* r2 = 1; add r2 to the value in one step, because CPUs may be several */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K,
		  .dst_reg = BPF_REG_2,
		  .imm = 1 },
		{ .code = BPF_STX | BPF_ATOMIC | BPF_DW,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_REG_2,
		  .imm = BPF_ADD },
		{ .code = BPF_ALU | BPF_MOV | BPF_K,
		  .dst_reg = BPF_REG_0,
		  .imm = KEEP_ALL },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "homa_udp_news",
			     "Dual BSD/GPL", insns, HOMA_ARRAY_SIZE(insns), NULL);
}

const u64 *udp_watch(struct nic *nic)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct udp *u = udp_of(nic);
	int map_fd, prog_fd = -1;
	void *word;

	if (u->news)
		return u->news;
	map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "homa_udp_news",
				sizeof(u32), sizeof(u64), 1, &opts);
	if (map_fd < 0)
		return NULL;
	word = mmap(NULL, UDP_NEWS_BYTES, PROT_READ, MAP_SHARED, map_fd, 0);
	if (word != MAP_FAILED) {
		prog_fd = load(map_fd);
		if (prog_fd >= 0 && !setsockopt(u->fd, SOL_SOCKET, SO_ATTACH_BPF,
						&prog_fd, sizeof(prog_fd)))
			u->news = word;
		else
			munmap(word, UDP_NEWS_BYTES);
	}
	if (prog_fd >= 0)
		close(prog_fd);
	close(map_fd);
	return u->news;
}

void udp_watch_end(struct udp *u)
{
	if (u->news)
		munmap((void *)(uintptr_t)u->news, UDP_NEWS_BYTES);
}
