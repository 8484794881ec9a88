// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A QEMU plugin (TCG) that counts, between two marks (mark.h), what the guest's
 * CPUs do to each other: instructions by CPU, calls (locks are functions), and
 * cache lines that one CPU wrote and another then read or wrote.
 *
 *	-accel tcg,thread=multi -plugin core_count.so,out=FILE[,turn=N]
 *
 * The CPUs take turns of N instructions, whatever the machine below can do at
 * once: as on real cores each gets as far as the others meanwhile. With threads
 * alone two of eight would run and six stand still, some of them with a lock. A
 * CPU whose turn it is may have to wait for another (for the emulator's own
 * locks), so one that has waited for PATIENCE_NS goes on without its turn.
 *
 * One thread for all CPUs (thread=single) does not do: there the emulator names
 * the CPU that a block was translated on, and not the one that runs it.
 *
 * There are no caches here. A line is a transfer when a CPU uses it whose last
 * writer is another, and when it has not used it since, as if caches were
 * infinite. What was written before the begin mark has no writer.
 *
 * The guest's clock is slow meanwhile (slow_clock.c).
 *
 * The end mark writes to FILE, and so does nothing else:
 *	cpu NUMBER KERNEL USER                          instructions
 *	block ADDRESS INSTRUCTIONS EXECUTIONS           of the kernel
 *	call BEFORE FROM TO TIMES          BEFORE: the call before this one
 *	transfer WRITER USER FROM TIMES    instructions; FROM: the call before USER
 *	writes TIMES                       transfers to CPUs that wrote at once
 *	line PHYSICAL VIRTUAL TIMES CPUS WRITER USER    those that were transferred,
 *		and the instructions of the last time
 *	late TIMES                                      turns that were not waited for
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "plugin.h"

#define MAX_CPUS 16u
#define BUCKETS 65536u
#define LINE_BITS 6
#define PATIENCE_NS 300000
#define SLOWNESS 100

/* struct core_block - a piece of code without jumps into it; @runs: executions while counting */
struct core_block {
	struct core_block *next;
	uint64_t address;
	uint32_t insns;
	bool kernel;
	enum ending ending;
	uint64_t runs;
};

/* struct core_pair - how often something happened that three addresses name */
struct core_pair {
	struct core_pair *next;
	uint64_t key[3];
	uint64_t times;
};

/* struct core_line - a cache line; @virtual: where it was used last; @writer: the instruction
 * that wrote it last; @transferred_to: the one that used it at the last transfer, and
 * @transferred_from that had written it; @owner: the CPU that wrote it last, NOBODY if none
 * did while counting; @holders: a bit for each CPU that has used it since, and @sharers for
 * each that ever had it transferred */
struct core_line {
	struct core_line *next;
	uint64_t physical, virtual, writer, times;
	uint64_t transferred_from, transferred_to;
	uint32_t holders, sharers;
	uint32_t owner;
};
#define NOBODY UINT32_MAX

/* struct core_cpu - what belongs to one CPU; @caller: the block that ended with a call, NULL if
 * the last one did not; @before: the one that called before it; @left: instructions until
 * its turn ends; @runs: it is not halted */
struct core_cpu {
	uint64_t kernel, user;
	const struct core_block *caller, *before;
	int32_t left;
	_Atomic bool runs;
};

static struct core_block *blocks[BUCKETS];
static struct core_pair *calls[BUCKETS], *transfers[BUCKETS];
static struct core_line *lines[BUCKETS];
static struct core_cpu cpus[MAX_CPUS];
static _Atomic uint32_t turn;
static _Atomic bool counting;
static int32_t turn_insns = 100;
static void (*set_clock)(int times);
static uint64_t late, writes_transferred;
static FILE *out;
/* Guards all that is counted. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t hash_of(uint64_t a)
{
	return (uint32_t)(((a ^ a >> 16) * 0x9e3779b97f4a7c15u) >> 48) % BUCKETS;
}

/* Counts without this memory would be wrong. */
static void *make(size_t size)
{
	void *made = calloc(1, size);

	if (!made)
		abort();
	return made;
}

static void count(struct core_pair **table, uint64_t a, uint64_t b, uint64_t c)
{
	struct core_pair **head = &table[hash_of(a + 3 * b + 7 * c)];
	struct core_pair *pair;

	for (pair = *head; pair; pair = pair->next)
		if (pair->key[0] == a && pair->key[1] == b && pair->key[2] == c) {
			pair->times++;
			return;
		}
	pair = make(sizeof(*pair));
	*pair = (struct core_pair){ *head, { a, b, c }, 1 };
	*head = pair;
}

/* ---- turns ---- */

/* Gives the turn to the next CPU that is not halted, if it is @vcpu's. */
static void pass_turn(uint32_t vcpu)
{
	uint32_t mine = vcpu;

	for (uint32_t i = 1; i <= MAX_CPUS; i++) {
		uint32_t next = (vcpu + i) % MAX_CPUS;

		if (!cpus[next].runs)
			continue;
		if (next != vcpu &&
		    atomic_compare_exchange_strong(&turn, &mine, next))
			syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT32_MAX,
				NULL, NULL, 0);
		return;
	}
}

static void take_turn(uint32_t vcpu)
{
	const struct timespec patience = { 0, PATIENCE_NS };
	uint32_t whose;

	while ((whose = turn) != vcpu && counting) {
		if (!syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, whose,
			     &patience, NULL, 0) ||
		    errno != ETIMEDOUT)
			continue;
		/* Nobody has passed it on meanwhile: who had it waits for something. */
		if (atomic_compare_exchange_strong(&turn, &whose, vcpu)) {
			pthread_mutex_lock(&lock);
			late++;
			pthread_mutex_unlock(&lock);
		}
	}
}

static void on_resume(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	if (vcpu < MAX_CPUS)
		cpus[vcpu].runs = true;
}

static void on_idle(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	if (vcpu >= MAX_CPUS)
		return;
	cpus[vcpu].runs = false;
	pass_turn(vcpu);
}

/* ---- what runs ---- */

static void on_block(unsigned int vcpu, void *data)
{
	struct core_block *block = data;
	struct core_cpu *cpu;

	if (!counting || vcpu >= MAX_CPUS)
		return;
	cpu = &cpus[vcpu];
	cpu->runs = true;
	cpu->left -= (int32_t)block->insns;
	if (cpu->left <= 0) {
		cpu->left = turn_insns;
		pass_turn(vcpu);
	}
	take_turn(vcpu);
	pthread_mutex_lock(&lock);
	block->runs++;
	if (block->kernel)
		cpu->kernel += block->insns;
	else
		cpu->user += block->insns;
	if (cpu->caller && block->kernel && block->ending != IS_TRAMPOLINE) {
		count(calls, cpu->before ? cpu->before->address : 0,
		      cpu->caller->address, block->address);
		cpu->before = cpu->caller;
	}
	if (block->ending != IS_TRAMPOLINE)
		cpu->caller = block->ending == ENDS_IN_CALL && block->kernel ?
				      block :
				      NULL;
	pthread_mutex_unlock(&lock);
}

static struct core_line *find_line(uint64_t physical)
{
	struct core_line **head = &lines[hash_of(physical)];
	struct core_line *line;

	for (line = *head; line; line = line->next)
		if (line->physical == physical)
			return line;
	line = make(sizeof(*line));
	line->physical = physical;
	line->owner = NOBODY;
	line->next = *head;
	*head = line;
	return line;
}

/* @data: the address of the instruction. What crosses lines counts for the first. */
static void on_memory(unsigned int vcpu, qemu_plugin_meminfo_t info,
		      uint64_t at, void *data)
{
	const struct qemu_plugin_hwaddr *place;
	const struct core_block *from;
	struct core_line *line;
	uint64_t pc = (uintptr_t)data;
	bool writes;

	if (!counting || vcpu >= MAX_CPUS)
		return;
	place = qemu_plugin_get_hwaddr(info, at);
	if (!place || qemu_plugin_hwaddr_is_io(place))
		return;
	writes = qemu_plugin_mem_is_store(info);
	pthread_mutex_lock(&lock);
	line = find_line(qemu_plugin_hwaddr_phys_addr(place) >> LINE_BITS);
	line->virtual = at;
	if (line->owner != NOBODY && !(line->holders & 1u << vcpu)) {
		from = cpus[vcpu].before;
		count(transfers, line->writer, pc, from ? from->address : 0);
		writes_transferred += writes;
		line->times++;
		line->transferred_from = line->writer;
		line->transferred_to = pc;
		line->sharers |= 1u << vcpu | 1u << line->owner;
	}
	line->holders |= 1u << vcpu;
	if (writes) {
		line->holders = 1u << vcpu;
		line->owner = vcpu;
		line->writer = pc;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- marks ---- */

static void on_begin(unsigned int vcpu, void *data)
{
	(void)data;
	for (uint32_t i = 0; i < MAX_CPUS; i++)
		cpus[i].left = turn_insns;
	turn = vcpu;
	set_clock(SLOWNESS);
	counting = true;
}

static void write_pairs(const char *name, const struct core_pair *pair)
{
	for (; pair; pair = pair->next)
		fprintf(out,
			"%s %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIu64 "\n",
			name, pair->key[0], pair->key[1], pair->key[2],
			pair->times);
}

static void write_bucket(uint32_t i)
{
	for (const struct core_block *block = blocks[i]; block;
	     block = block->next)
		if (block->kernel && block->runs)
			fprintf(out,
				"block %" PRIx64 " %" PRIu32 " %" PRIu64 "\n",
				block->address, block->insns, block->runs);
	write_pairs("call", calls[i]);
	write_pairs("transfer", transfers[i]);
	for (const struct core_line *line = lines[i]; line; line = line->next)
		if (line->times)
			fprintf(out,
				"line %" PRIx64 " %" PRIx64 " %" PRIu64
				" %d %" PRIx64 " %" PRIx64 "\n",
				line->physical << LINE_BITS, line->virtual,
				line->times, __builtin_popcount(line->sharers),
				line->transferred_from, line->transferred_to);
}

static void on_end(unsigned int vcpu, void *data)
{
	(void)vcpu;
	(void)data;
	counting = false;
	set_clock(1);
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < MAX_CPUS; i++)
		if (cpus[i].kernel || cpus[i].user)
			fprintf(out, "cpu %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
				i, cpus[i].kernel, cpus[i].user);
	for (uint32_t i = 0; i < BUCKETS; i++)
		write_bucket(i);
	fprintf(out, "writes %" PRIu64 "\nlate %" PRIu64 "\n",
		writes_transferred, late);
	fflush(out);
	pthread_mutex_unlock(&lock);
}

/* Returns the block at @address, which may be translated again at any time. */
static struct core_block *find_block(uint64_t address, uint32_t insns,
				     enum ending ending)
{
	struct core_block **head = &blocks[hash_of(address)];
	struct core_block *block;

	for (block = *head; block; block = block->next)
		if (block->address == address && block->insns == insns &&
		    block->ending == ending)
			return block;
	block = make(sizeof(*block));
	block->address = address;
	block->insns = insns;
	block->kernel = address >> 63;
	block->ending = ending;
	block->next = *head;
	*head = block;
	return block;
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct core_block *block;

	(void)id;
	pthread_mutex_lock(&lock);
	block = find_block(qemu_plugin_tb_vaddr(tb), (uint32_t)n,
			   n ? plugin_ending(tb, n) : ENDS_OTHERWISE);
	pthread_mutex_unlock(&lock);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, block);
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		qemu_plugin_register_vcpu_mem_cb(
			insn, on_memory, NO_REGISTERS, READS_AND_WRITES,
			(void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
		plugin_watch_marks(insn, on_begin, on_end);
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
		} else if (!strncmp(argv[i], "turn=", 5) &&
			   atoi(argv[i] + 5) > 0) {
			turn_insns = atoi(argv[i] + 5);
		} else {
			fprintf(stderr, "core_count: unknown argument '%s'\n",
				argv[i]);
			return -1;
		}
	}
	out = path ? fopen(path, "a") : NULL;
	if (!out) {
		fprintf(stderr, "core_count: cannot write out=FILE\n");
		return -1;
	}
	*(void **)&set_clock = dlsym(RTLD_DEFAULT, "slow_clock_set");
	if (!set_clock) {
		fprintf(stderr,
			"core_count: run it with slow_clock.so preloaded\n");
		return -1;
	}
	qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	qemu_plugin_register_vcpu_resume_cb(id, on_resume);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
