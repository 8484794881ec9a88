// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Which system calls are told of: those that set a socket up. All others run as ever; the filter
 * costs each of them a few instructions. Calls of another architecture, such as those of 32-bit
 * programs, are not told of, so such programs' TCP is the kernel's.
 *
 * Two calls fail: io_uring_setup(), as io_uring would connect and accept unseen, and socket() for
 * multipath TCP, which Go asks for first when it listens. Programs do without either, as on a
 * kernel that does not have them.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "supervisor.h"

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define OWN_ARCH AUDIT_ARCH_RISCV64
#endif

/* Numbers from here on are of x32 programs on x86-64, and no calls elsewhere. */
#define FOREIGN_NUMBERS 0x40000000
/* Headers of the C library may be older. */
#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

#define FIELD(name) offsetof(struct seccomp_data, name)
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
/* The lower half of an argument. */
#define LOAD_ARG(i) LOAD(FIELD(args[i]))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
/* If the value is @k, go on with the next statement; else leave out @n of them. */
#define UNLESS(k, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), 0, (n))
#define TELL RETURN(SECCOMP_RET_USER_NOTIF)
#define PASS RETURN(SECCOMP_RET_ALLOW)
#define FAIL(error) RETURN(SECCOMP_RET_ERRNO | (error))
#define TELL_ALL(number) UNLESS(number, 1), TELL

#ifdef OWN_ARCH
/* Options of SOL_SOCKET that are those of the pair of sockets. */
#define PASS_OPTION(name) UNLESS(name, 1), PASS

static struct sock_filter statements[] = {
	LOAD(FIELD(arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0),
	PASS,
	LOAD(FIELD(nr)),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN_NUMBERS, 0, 1),
	PASS,
	TELL_ALL(__NR_bind),
	TELL_ALL(__NR_connect),
	TELL_ALL(__NR_accept),
	TELL_ALL(__NR_accept4),
	TELL_ALL(__NR_listen),
	TELL_ALL(__NR_shutdown),
	TELL_ALL(__NR_getsockname),
	TELL_ALL(__NR_getpeername),
	UNLESS(__NR_io_uring_setup, 1),
	FAIL(ENOSYS),
	UNLESS(__NR_socket, 4),
	LOAD_ARG(2),
	UNLESS(IPPROTO_MPTCP, 1),
	FAIL(EPROTONOSUPPORT),
	PASS,
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_setsockopt, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_getsockopt, 1, 0),
	PASS,
	LOAD_ARG(1),
	TELL_ALL(IPPROTO_TCP),
	TELL_ALL(IPPROTO_IP),
	TELL_ALL(IPPROTO_IPV6),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOL_SOCKET, 1, 0),
	PASS,
	LOAD_ARG(2),
	PASS_OPTION(SO_RCVTIMEO_OLD),
	PASS_OPTION(SO_RCVTIMEO_NEW),
	PASS_OPTION(SO_SNDTIMEO_OLD),
	PASS_OPTION(SO_SNDTIMEO_NEW),
	PASS_OPTION(SO_RCVLOWAT),
	PASS_OPTION(SO_TYPE),
	TELL,
};

int homa_sv_filter(void)
{
	const struct sock_fprog program = {
		.len = sizeof(statements) / sizeof(*statements),
		.filter = statements,
	};
	long fd;

	/* Without privileges the kernel wants that nothing that is run gets any, either. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	return fd < 0 ? -errno : (int)fd;
}
#else
int homa_sv_filter(void)
{
	return -ENOSYS;
}
#endif
