// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The BPF program of a rule, by bpf() itself: no compiler and no library for BPF has to be there.
 *
 * The kernel asks update_socket_protocol(family, type, protocol) in each socket() of a program,
 * and takes the first answer that is not 0 for the protocol, else what the program has asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/homa_socket.h"
#include "stream_rule.h"

#define HOOK "update_socket_protocol"
#define MOST_CODE 48
/* How long the kernel may take to let a rule go that nothing holds any more. */
#define END_MS 5000

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* ---- the program ---- */

/*
 * struct code - a program that is being written. Written by: the emit functions.
 * @insns: the instructions.
 * @n: the number of them.
 */
struct code {
	struct bpf_insn insns[MOST_CODE];
	unsigned int n;
};

/* The place that code_end() fills into jumps to the program's end. */
#define TO_END 0x7fff

static void emit(struct code *code, struct bpf_insn insn)
{
	if (code->n < MOST_CODE)
		code->insns[code->n++] = insn;
}

#define EMIT(...) emit(code, (struct bpf_insn){ __VA_ARGS__ })

static void emit_move(struct code *code, __u8 to, __u8 from)
{
	EMIT(.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = to, .src_reg = from);
}

static void emit_set(struct code *code, __u8 to, __s32 value)
{
	EMIT(.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = to, .imm = value);
}

/* @source: 0, or BPF_PSEUDO_MAP_FD for a map's descriptor. */
static void emit_set64(struct code *code, __u8 to, __u8 source, uint64_t value)
{
	EMIT(.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = to,
	     .src_reg = source, .imm = (__s32)value);
	EMIT(.imm = (__s32)(value >> 32));
}

static void emit_load(struct code *code, __u8 to, __u8 from, __s16 at)
{
	EMIT(.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = to, .src_reg = from,
	     .off = at);
}

static void emit_call(struct code *code, __s32 helper)
{
	EMIT(.code = BPF_JMP | BPF_CALL, .imm = helper);
}

/* Goes on only if the lower half of @reg is @value, or is @other if @other is not -1. */
static void emit_only(struct code *code, __u8 reg, __s32 value, __s32 other)
{
	if (other != -1)
		EMIT(.code = BPF_JMP32 | BPF_JEQ | BPF_K, .dst_reg = reg,
		     .off = 1, .imm = other);
	EMIT(.code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = reg, .off = TO_END,
	     .imm = value);
}

/* Goes on only if the thread's name is the rule's. */
static void emit_program(struct code *code, const char program[STREAMS_COMM])
{
	uint64_t half;
	__s16 i;

	emit_move(code, 1, BPF_REG_10);
	EMIT(.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1,
	     .imm = -STREAMS_COMM);
	emit_set(code, 2, STREAMS_COMM);
	emit_call(code, BPF_FUNC_get_current_comm);
	for (i = 0; i < STREAMS_COMM; i += 8) {
		memcpy(&half, program + i, sizeof(half));
		emit_load(code, 1, BPF_REG_10, (__s16)(i - STREAMS_COMM));
		emit_set64(code, 2, 0, half);
		EMIT(.code = BPF_JMP | BPF_JNE | BPF_X, .dst_reg = 1,
		     .src_reg = 2, .off = TO_END);
	}
}

/* @cgroups: an array of cgroups that has the rule's as its first; -1 if the rule has none. */
static void code_write(struct code *code, const struct rule *rule, int cgroups)
{
	unsigned int i;

	code->n = 0;
	/* socket(AF_INET or AF_INET6, SOCK_STREAM, 0 or IPPROTO_TCP); r1 has the arguments */
	emit_move(code, 6, 1);
	emit_load(code, 2, 6, 0);
	emit_only(code, 2, AF_INET6, AF_INET);
	emit_load(code, 2, 6, 8);
	EMIT(.code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = 2, .imm = 15);
	emit_only(code, 2, SOCK_STREAM, -1);
	emit_load(code, 2, 6, 16);
	emit_only(code, 2, IPPROTO_TCP, 0);
	if (rule->has_user) {
		emit_call(code, BPF_FUNC_get_current_uid_gid);
		emit_only(code, 0, (__s32)rule->user, -1);
	}
	if (rule->program[0])
		emit_program(code, rule->program);
	if (cgroups >= 0) {
		emit_set64(code, 1, BPF_PSEUDO_MAP_FD, (uint32_t)cgroups);
		emit_set(code, 2, 0);
		emit_call(code, BPF_FUNC_current_task_under_cgroup);
		emit_only(code, 0, 1, -1);
	}
	emit_set(code, 0, IPPROTO_HOMA);
	EMIT(.code = BPF_JMP | BPF_EXIT);
	for (i = 0; i < code->n; i++)
		if (BPF_CLASS(code->insns[i].code) != BPF_LD &&
		    code->insns[i].off == TO_END)
			code->insns[i].off = (__s16)(code->n - i - 1);
	emit_set(code, 0, 0);
	EMIT(.code = BPF_JMP | BPF_EXIT);
}

/* ---- the kernel ---- */

/* Returns a map whose only entry is the rule's cgroup, or -1. */
static int cgroup_array(const struct rule *rule)
{
	union bpf_attr attr;
	uint32_t first = 0, cgroup = (uint32_t)rule->cgroup_fd;
	int map;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_CGROUP_ARRAY;
	attr.key_size = sizeof(first);
	attr.value_size = sizeof(cgroup);
	attr.max_entries = 1;
	map = bpf(BPF_MAP_CREATE, &attr);
	if (map < 0)
		return -1;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&first;
	attr.value = (uintptr_t)&cgroup;
	if (!bpf(BPF_MAP_UPDATE_ELEM, &attr))
		return map;
	close(map);
	return -1;
}

/* Says why the kernel did not take the program; the last line of what it said tells. */
static void complain_of_load(int error, char *said)
{
	char *end = said + strlen(said), *line;

	if (error == EPERM) {
		complain(0,
			 "the kernel lets only root make rules (CAP_BPF, CAP_PERFMON)");
		return;
	}
	while (end > said && end[-1] == '\n')
		*--end = '\0';
	line = strstr(said, HOOK);
	complain(error, "the kernel does not take the rule%s%s",
		 line ? ": " : "", line ? line : "");
}

static int load(const struct code *code)
{
	static char said[16384];
	union bpf_attr attr;
	int prog;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_TRACING;
	attr.expected_attach_type = BPF_MODIFY_RETURN;
	attr.attach_btf_id = btf_function(HOOK);
	attr.insns = (uintptr_t)code->insns;
	attr.insn_cnt = code->n;
	attr.license = (uintptr_t)"GPL";
	attr.log_buf = (uintptr_t)said;
	attr.log_size = sizeof(said);
	attr.log_level = 1;
	memcpy(attr.prog_name, "homa_streams", sizeof("homa_streams"));
	prog = bpf(BPF_PROG_LOAD, &attr);
	if (prog < 0)
		complain_of_load(errno, said);
	return prog;
}

static int make(const struct rule *rule)
{
	int cgroups = -1, prog = -1;
	struct code code;

	if (rule->cgroup) {
		cgroups = cgroup_array(rule);
		if (cgroups < 0) {
			complain(errno, "the kernel does not take the cgroup");
			return -1;
		}
	}
	code_write(&code, rule, cgroups);
	prog = load(&code);
	/* The program holds the map. */
	if (cgroups >= 0)
		close(cgroups);
	return prog;
}

bool attach_available(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_HOMA);

	if (fd < 0) {
		complain(errno,
			 "this kernel has no streams over Homa; load the module (modprobe homa)");
		return false;
	}
	close(fd);
	if (btf_function(HOOK))
		return true;
	complain(0, "this kernel has no " HOOK
		    ": it takes Linux 6.6 or newer with CONFIG_DEBUG_INFO_BTF");
	return false;
}

bool attach_rule(const struct rule *rule, const char *path)
{
	union bpf_attr attr;
	int prog = make(rule), link;
	bool ok;

	if (prog < 0)
		return false;
	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.prog_fd = (uint32_t)prog;
	link = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
	close(prog);
	if (link < 0) {
		complain(errno,
			 "the kernel does not attach the rule; it takes CONFIG_MPTCP and CONFIG_BPF_JIT");
		return false;
	}
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uintptr_t)path;
	attr.bpf_fd = (uint32_t)link;
	ok = !bpf(BPF_OBJ_PIN, &attr);
	if (!ok)
		complain(errno, "%s", path);
	close(link);
	return ok;
}

/* Returns the number of the program that the file holds; 0: none. */
static uint32_t program_of(const char *path)
{
	struct bpf_link_info info;
	union bpf_attr attr;
	int link;

	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uintptr_t)path;
	link = bpf(BPF_OBJ_GET, &attr);
	if (link < 0)
		return 0;
	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)link;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		info.prog_id = 0;
	close(link);
	return info.prog_id;
}

bool attach_end(const char *path)
{
	uint32_t id = program_of(path);
	union bpf_attr attr;
	int prog, ms;

	if (unlink(path)) {
		complain(errno, "%s", path);
		return false;
	}
	/* The kernel takes the program off its hook a little later, and then frees it. */
	for (ms = 0; id && ms < END_MS; ms += 10) {
		memset(&attr, 0, sizeof(attr));
		attr.prog_id = id;
		prog = bpf(BPF_PROG_GET_FD_BY_ID, &attr);
		if (prog < 0)
			return true;
		close(prog);
		usleep(10000);
	}
	return true;
}
