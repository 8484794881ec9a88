// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Small programs for the kernel; see bpf.h. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include "bpf.h"
#include "../../tools/streams/stream_rule.h"
#include "guest.h"

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* struct load - @type: of the program; @attach: to what; @hook: of a security module, its BTF id */
struct load {
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
	uint32_t hook;
};

static int load(const struct load *how, const struct bpf_insn *code, uint32_t n)
{
	static char said[8192];
	union bpf_attr attr;
	int prog;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = how->type;
	attr.expected_attach_type = how->attach;
	attr.attach_btf_id = how->hook;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = n;
	attr.license = (uintptr_t)"GPL";
	attr.log_buf = (uintptr_t)said;
	attr.log_size = sizeof(said);
	attr.log_level = 1;
	prog = bpf(BPF_PROG_LOAD, &attr);
	CHECK(prog >= 0, "the kernel refuses the program: %s", said);
	return prog;
}

/* ---- cgroups ---- */

static int cgroup_attach(enum bpf_cmd cmd, const char *cgroup, bool ingress,
			 int prog)
{
	union bpf_attr attr;
	int fd = open(cgroup, O_RDONLY | O_CLOEXEC), rc;

	CHECK(fd >= 0, "%s", cgroup);
	memset(&attr, 0, sizeof(attr));
	attr.target_fd = (uint32_t)fd;
	attr.attach_bpf_fd = (uint32_t)prog;
	attr.attach_type =
		ingress ? BPF_CGROUP_INET_INGRESS : BPF_CGROUP_INET_EGRESS;
	rc = bpf(cmd, &attr);
	close(fd);
	return rc;
}

int bpf_cgroup_drop(const char *cgroup, bool ingress, int family)
{
	struct load how = {
		.type = BPF_PROG_TYPE_CGROUP_SKB,
		.attach = ingress ? BPF_CGROUP_INET_INGRESS :
				    BPF_CGROUP_INET_EGRESS,
	};
	int prog, where = family == AF_INET ? 9 : 6;
	const struct bpf_insn code[] = {
		/* bpf_skb_load_bytes() copies the protocol, a byte, to the stack. */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = where },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X,
		  .dst_reg = 3,
		  .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 3, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 4, .imm = 1 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_load_bytes },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .off = 2, .imm = 0 },
		{ .code = BPF_LDX | BPF_MEM | BPF_B,
		  .src_reg = BPF_REG_10,
		  .off = -8 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .off = 2, .imm = IPPROTO_HOMA },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	prog = load(&how, code, ARRAY_SIZE(code));
	CHECK(!cgroup_attach(BPF_PROG_ATTACH, cgroup, ingress, prog), "attach");
	return prog;
}

void bpf_cgroup_detach(const char *cgroup, bool ingress, int prog)
{
	CHECK(!cgroup_attach(BPF_PROG_DETACH, cgroup, ingress, prog), "detach");
	close(prog);
}

/* ---- security modules ---- */

/* Has the kernel run the program; until the descriptor is closed that it returns. */
static int attach(int prog, const char *where)
{
	union bpf_attr attr;
	int attached;

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.prog_fd = (uint32_t)prog;
	attached = bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
	CHECK(attached >= 0, "attach to %s", where);
	return attached;
}

int bpf_lsm(const char *hook, int rc, int *prog)
{
	struct load how = {
		.type = BPF_PROG_TYPE_LSM,
		.attach = BPF_LSM_MAC,
		.hook = btf_function(hook),
	};
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = rc },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	CHECK(how.hook, "the kernel has no %s", hook);
	*prog = load(&how, code, ARRAY_SIZE(code));
	return attach(*prog, hook);
}

/* ---- counting ---- */

void bpf_count(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.enable_stats.type = BPF_STATS_RUN_TIME;
	/* For as long as this process lives. */
	CHECK(bpf(BPF_ENABLE_STATS, &attr) >= 0, "BPF_ENABLE_STATS");
}

uint64_t bpf_calls(int prog)
{
	struct bpf_prog_info info;
	union bpf_attr attr;

	memset(&info, 0, sizeof(info));
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)prog;
	attr.info.info_len = sizeof(info);
	attr.info.info = (uintptr_t)&info;
	CHECK(!bpf(BPF_OBJ_GET_INFO_BY_FD, &attr), "BPF_OBJ_GET_INFO_BY_FD");
	return info.run_cnt;
}
