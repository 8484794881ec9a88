/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How a program in the guest speaks to insn_count.c in the emulator: an 8-byte
 * no-operation whose displacement carries a number nobody else uses. On a real
 * processor, or without the plugin, nothing happens.
 */
#ifndef HOMA_KERNEL_BENCH_MARK_H
#define HOMA_KERNEL_BENCH_MARK_H

/* Bytes of nopl 0x486f6dKK(%rax,%rax,1) before those of KK, and after them. */
#define MARK_HEAD { 0x0f, 0x1f, 0x84, 0x00 }
#define MARK_TAIL { 0x6d, 0x6f, 0x48 }
#define MARK_SIZE 8

#define MARK_BEGIN 1
#define MARK_END 2

#ifdef __x86_64__
#define MARK(kind)                                             \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, %c0, " \
			 "0x6d, 0x6f, 0x48"                    \
			 :                                     \
			 : "i"(kind)                           \
			 : "memory")
#else
#define MARK(kind) ((void)0)
#endif

#endif
