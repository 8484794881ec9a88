/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Programs of a few instructions for the kernel, loaded by bpf() itself: guests have no compiler
 * and no libbpf.
 */
#ifndef TESTS_VM_BPF_H
#define TESTS_VM_BPF_H

#include <stdbool.h>
#include <stdint.h>

/**
 * bpf_cgroup_drop() - attach a program that drops packets of Homa to a cgroup
 * @cgroup: a folder of cgroup2.
 * @ingress: packets to its sockets, else those from them.
 * @family: of IP. The program looks for the protocol where this IP's header has it.
 *
 * Returns the program, which bpf_cgroup_detach() takes off again.
 */
int bpf_cgroup_drop(const char *cgroup, bool ingress, int family);
void bpf_cgroup_detach(const char *cgroup, bool ingress, int prog);
/**
 * bpf_lsm() - make a program that always returns @rc one of the kernel's security modules
 * @hook: what it is asked about, by the name of the kernel's function for it.
 * @prog: out, the program.
 *
 * Returns what keeps it attached: it ends with close().
 */
int bpf_lsm(const char *hook, int rc, int *prog);
/** bpf_count() - have the kernel count calls of programs from now on. */
void bpf_count(void);
/** bpf_calls() - how often the kernel has called @prog. */
uint64_t bpf_calls(int prog);

#endif
