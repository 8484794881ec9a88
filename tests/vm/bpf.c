// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Small programs for the kernel; see bpf.h. */
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "bpf.h"
#include "guest.h"

#define BTF "/sys/kernel/btf/vmlinux"

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

/* How many bytes of its own stand behind a type of the kernel's description of itself. */
static uint32_t btf_tail(const struct btf_type *type)
{
	uint32_t n = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case 19: /* BTF_KIND_ENUM64, which older headers lack */
		return n * 12;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return n * 8;
	default:
		return 0;
	}
}

/* The whole file; sysfs tells its size. */
static unsigned char *btf_read(size_t *size)
{
	int fd = open(BTF, O_RDONLY | O_CLOEXEC);
	unsigned char *all;
	struct stat st;
	ssize_t n;

	CHECK(fd >= 0 && !fstat(fd, &st), BTF);
	all = malloc((size_t)st.st_size);
	CHECK(all, "memory");
	for (*size = 0; *size < (size_t)st.st_size; *size += (size_t)n) {
		n = read(fd, all + *size, (size_t)st.st_size - *size);
		CHECK(n > 0, "read " BTF);
	}
	close(fd);
	return all;
}

/* The id of the kernel's function @name; 0: there is none. */
static uint32_t btf_function(const char *name)
{
	const unsigned char *at, *end;
	struct btf_header head;
	struct btf_type type;
	const char *strings;
	unsigned char *all;
	size_t size;
	uint32_t id;

	all = btf_read(&size);
	memcpy(&head, all, sizeof(head));
	at = all + head.hdr_len + head.type_off;
	end = at + head.type_len;
	strings = (const char *)all + head.hdr_len + head.str_off;
	for (id = 1; at < end; id++) {
		memcpy(&type, at, sizeof(type));
		if (BTF_INFO_KIND(type.info) == BTF_KIND_FUNC &&
		    !strcmp(strings + type.name_off, name))
			break;
		at += sizeof(type) + btf_tail(&type);
	}
	if (at >= end)
		id = 0;
	free(all);
	return id;
}

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

/* ---- protocols of sockets ---- */

#define LOAD(reg, at)                         \
	{ .code = BPF_LDX | BPF_MEM | BPF_DW, \
	  .dst_reg = (reg),                   \
	  .src_reg = 6,                       \
	  .off = (at) }
#define IF_IS(reg, value, skip)                \
	{ .code = BPF_JMP32 | BPF_JEQ | BPF_K, \
	  .dst_reg = (reg),                    \
	  .off = (skip),                       \
	  .imm = (value) }
#define IF_NOT(reg, value, skip)               \
	{ .code = BPF_JMP32 | BPF_JNE | BPF_K, \
	  .dst_reg = (reg),                    \
	  .off = (skip),                       \
	  .imm = (value) }

int bpf_streams(const char *cgroup)
{
	struct load how = {
		.type = BPF_PROG_TYPE_TRACING,
		.attach = BPF_MODIFY_RETURN,
		.hook = btf_function("update_socket_protocol"),
	};
	struct stat st;

	if (!how.hook)
		return -1;
	CHECK(!stat(cgroup, &st), "%s", cgroup);

	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1 },
		/* socket(AF_INET or AF_INET6, SOCK_STREAM, 0 or IPPROTO_TCP) */
		LOAD(2, 0),
		IF_IS(2, AF_INET, 1),
		IF_NOT(2, AF_INET6, 12),
		LOAD(2, 8),
		{ .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = 2, .imm = 15 },
		IF_NOT(2, SOCK_STREAM, 9),
		LOAD(2, 16),
		IF_IS(2, 0, 1),
		IF_NOT(2, IPPROTO_TCP, 6),
		/* by a process of the cgroup */
		{ .code = BPF_JMP | BPF_CALL,
		  .imm = BPF_FUNC_get_current_cgroup_id },
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = 1,
		  .imm = (int)st.st_ino },
		{ .imm = (int)((uint64_t)st.st_ino >> 32) },
		{ .code = BPF_JMP | BPF_JNE | BPF_X,
		  .dst_reg = 0,
		  .src_reg = 1,
		  .off = 2 },
		/* has IPPROTO_HOMA */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = IPPROTO_HOMA },
		{ .code = BPF_JMP | BPF_EXIT },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return attach(load(&how, code, ARRAY_SIZE(code)),
		      "update_socket_protocol");
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
