/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the plugins for QEMU (insn_count.c, core_count.c) have in common: the part of the
 * emulator's interface that they use, and what they know of x86 instructions.
 *
 * PLUGIN_API is the version of the interface that the emulator wants: 1 up to
 * QEMU 8, at least 3 later, where instruction bytes are copied out. The
 * declarations are written out because distributions ship no header.
 */
#ifndef HOMA_KERNEL_BENCH_PLUGIN_H
#define HOMA_KERNEL_BENCH_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mark.h"

#ifndef PLUGIN_API
#define PLUGIN_API 4
#endif
#define EXPORTED __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS };
enum { READS_AND_WRITES = 3 };
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_hwaddr;
typedef void run_callback(unsigned int vcpu, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t,
						      struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  run_callback *cb, int registers,
					  void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    run_callback *cb, int registers,
					    void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
#if PLUGIN_API < 3
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#else
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to,
			     size_t size);
#endif
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id,
				       void (*cb)(qemu_plugin_id_t, unsigned int));
void qemu_plugin_register_vcpu_resume_cb(qemu_plugin_id_t id,
					 void (*cb)(qemu_plugin_id_t,
						    unsigned int));
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned int vcpu,
						 qemu_plugin_meminfo_t info,
						 uint64_t address, void *data),
				      int registers, int kinds, void *data);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info,
						  uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *place);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *place);
EXPORTED int qemu_plugin_version = PLUGIN_API;
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id,
				 const struct qemu_info_t *info, int argc,
				 char **argv);

/* How a block of code ends. */
enum ending { ENDS_OTHERWISE, ENDS_IN_CALL, IS_TRAMPOLINE };

/* Copies the first bytes of an instruction, up to MARK_SIZE; returns how many bytes it
 * has. */
static inline size_t plugin_bytes(const struct qemu_plugin_insn *insn,
				  unsigned char *bytes)
{
	size_t size = qemu_plugin_insn_size(insn);
	size_t shown = size < MARK_SIZE ? size : MARK_SIZE;

	memset(bytes, 0, MARK_SIZE);
#if PLUGIN_API < 3
	memcpy(bytes, qemu_plugin_insn_data(insn), shown);
#else
	qemu_plugin_insn_data(insn, bytes, shown);
#endif
	return size;
}

/*
 * Says how a block ends. Calls are direct, or indirect with or without a prefix. The kernel
 * makes indirect calls by way of two instructions of which the last jumps.
 */
static inline enum ending plugin_ending(struct qemu_plugin_tb *tb, size_t insns)
{
	unsigned char bytes[MARK_SIZE];
	const unsigned char *op = bytes;

	plugin_bytes(qemu_plugin_tb_get_insn(tb, insns - 1), bytes);
	while ((*op & 0xf0) == 0x40 || *op == 0x2e || *op == 0x3e)
		op++;
	if (op[0] == 0xe8 || (op[0] == 0xff && (op[1] & 0x38) == 0x10))
		return ENDS_IN_CALL;
	if (op[0] == 0xff && (op[1] & 0x38) == 0x20 && insns <= 2)
		return IS_TRAMPOLINE;
	return ENDS_OTHERWISE;
}

/* Returns whether this instruction stops the processor until there is an interrupt. */
static inline bool plugin_is_halt(const struct qemu_plugin_insn *insn)
{
	unsigned char bytes[MARK_SIZE];

	return plugin_bytes(insn, bytes) == 1 && bytes[0] == 0xf4;
}

/* Returns the number of the mark that this instruction is; 0: it is no mark. */
static inline int plugin_mark(const struct qemu_plugin_insn *insn)
{
	static const unsigned char head[] = MARK_HEAD, tail[] = MARK_TAIL;
	unsigned char bytes[MARK_SIZE];

	if (qemu_plugin_insn_size(insn) != MARK_SIZE)
		return 0;
	plugin_bytes(insn, bytes);
	if (memcmp(bytes, head, sizeof(head)) ||
	    memcmp(bytes + sizeof(head) + 1, tail, sizeof(tail)))
		return 0;
	return bytes[sizeof(head)];
}

/* Has @begin or @end called whenever an instruction runs that is such a mark. */
static inline void plugin_watch_marks(struct qemu_plugin_insn *insn,
				      run_callback *begin, run_callback *end)
{
	int mark = plugin_mark(insn);

	if (mark == MARK_BEGIN || mark == MARK_END)
		qemu_plugin_register_vcpu_insn_exec_cb(insn,
						       mark == MARK_BEGIN ? begin :
									    end,
						       NO_REGISTERS, NULL);
}

#endif
