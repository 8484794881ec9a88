// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A QEMU plugin (TCG) that counts the guest's instructions between two marks
 * (mark.h), kernel and user apart, and on request says where they were spent.
 * Under -icount every run executes the same instructions, so the counts repeat
 * to the instruction and a change of one is seen.
 *
 *	-plugin insn_count.so,out=FILE[,profile=on][,programs=on]
 *
 * Each end mark appends to FILE the lines
 *	halt TIMES
 *	count KERNEL USER
 * of which the first says how often the guest had nothing to do
 * and with profile=on before it, for each block of kernel code that ran since
 * the begin mark (blocks begin where jumps and calls lead to),
 *	block ADDRESS INSTRUCTIONS EXECUTIONS
 * and for each pair of a block that ends with a call and where it led to
 *	call FROM TO TIMES
 * With programs=on there is, for each block of a program's code,
 *	user ADDRESS INSTRUCTIONS EXECUTIONS
 * Programs are told apart by their addresses, which the guest's kernel draws for each.
 * A block is counted whole when it is entered; one that faults on its way is
 * counted too long by a few instructions, in every run the same.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

/* ---- counting ---- */

#define BUCKETS 65536u

/* struct block - a piece of code without jumps into it; @runs: number of executions,
 * @before: their number at the begin mark */
struct block {
	struct block *next;
	uint64_t address;
	uint32_t insns;
	bool kernel;
	enum ending ending;
	uint64_t runs, before;
};

/* struct edge - a call; @times: number of executions since the begin mark */
struct edge {
	struct edge *next;
	const struct block *from, *to;
	uint64_t times;
};

static struct block *blocks[BUCKETS];
static struct edge *edges[BUCKETS];
static const struct block *caller;
static uint64_t kernel, user, kernel_before, user_before;
static uint64_t halts, halts_before;
static bool profile, programs;
static FILE *out;

static uint32_t hash_of(uint64_t a)
{
	return (uint32_t)(((a ^ a >> 16) * 0x9e3779b97f4a7c15u) >> 48) % BUCKETS;
}

static void count_call(const struct block *from, const struct block *to)
{
	struct edge **head = &edges[hash_of(from->address + 3 * to->address)];
	struct edge *edge;

	for (edge = *head; edge; edge = edge->next)
		if (edge->from == from && edge->to == to) {
			edge->times++;
			return;
		}
	edge = calloc(1, sizeof(*edge));
	if (!edge)
		abort();
	*edge = (struct edge){ *head, from, to, 1 };
	*head = edge;
}

/* With -icount one thread runs all CPUs: nothing here needs a lock. */
static void on_block(unsigned int vcpu, void *data)
{
	struct block *block = data;

	(void)vcpu;
	block->runs++;
	if (block->kernel)
		kernel += block->insns;
	else
		user += block->insns;
	if (!profile)
		return;
	if (caller && block->kernel)
		count_call(caller, block);
	if (block->ending != IS_TRAMPOLINE)
		caller = block->ending == ENDS_IN_CALL ? block : NULL;
}

/* Returns the block at @address, which may be translated again at any time. */
static struct block *find_block(uint64_t address, uint32_t insns)
{
	struct block **head = &blocks[hash_of(address)];
	struct block *block;

	for (block = *head; block; block = block->next)
		if (block->address == address && block->insns == insns)
			return block;
	block = calloc(1, sizeof(*block));
	if (!block)
		abort(); /* counts would be wrong from here on */
	block->address = address;
	block->insns = insns;
	block->kernel = address >> 63;
	block->next = *head;
	*head = block;
	return block;
}

static void on_begin(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	kernel_before = kernel;
	user_before = user;
	halts_before = halts;
	if (!profile && !programs)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct block *block = blocks[i]; block; block = block->next)
			block->before = block->runs;
	for (uint32_t i = 0; i < BUCKETS; i++)
		for (struct edge *edge = edges[i]; edge; edge = edge->next)
			edge->times = 0;
}

static void write_profile(uint32_t i)
{
	for (const struct block *block = blocks[i]; block; block = block->next)
		if (block->runs != block->before &&
		    (block->kernel ? profile : programs))
			fprintf(out, "%s %" PRIx64 " %" PRIu32 " %" PRIu64 "\n",
				block->kernel ? "block" : "user", block->address,
				block->insns, block->runs - block->before);
	for (const struct edge *edge = edges[i]; edge; edge = edge->next)
		if (edge->from->kernel && edge->times)
			fprintf(out, "call %" PRIx64 " %" PRIx64 " %" PRIu64 "\n",
				edge->from->address, edge->to->address,
				edge->times);
}

static void on_end(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	for (uint32_t i = 0; (profile || programs) && i < BUCKETS; i++)
		write_profile(i);
	fprintf(out, "halt %" PRIu64 "\n", halts - halts_before);
	fprintf(out, "count %" PRIu64 " %" PRIu64 "\n", kernel - kernel_before,
		user - user_before);
	fflush(out);
}

static void on_halt(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	halts++;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *block = find_block(qemu_plugin_tb_vaddr(tb), (uint32_t)n);

	(void)id;
	if (profile && n)
		block->ending = plugin_ending(tb, n);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, block);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		plugin_watch_marks(insn, on_begin, on_end);
		if (plugin_is_halt(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_halt,
							       NO_REGISTERS,
							       NULL);
	}
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id,
				 const struct qemu_info_t *info, int argc,
				 char **argv)
{
	const char *path = NULL;

	(void)info;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4)) {
			path = argv[i] + 4;
		} else if (!strcmp(argv[i], "profile=on")) {
			profile = true;
		} else if (!strcmp(argv[i], "programs=on")) {
			programs = true;
		} else {
			fprintf(stderr, "insn_count: unknown argument '%s'\n",
				argv[i]);
			return -1;
		}
	}
	out = path ? fopen(path, "a") : NULL;
	if (!out) {
		fprintf(stderr, "insn_count: cannot write out=FILE\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
