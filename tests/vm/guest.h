/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the programs for guests share: they see the module's socket API alone
 * (through tests/preload/sock.h), print TAP and need nothing but libc, so that
 * they run in a guest that has a shell and no more.
 *
 * Each check runs in a process of its own. A check that fails, crashes or hangs
 * is a "not ok" with what it said, and the others go on.
 */
#ifndef TESTS_VM_GUEST_H
#define TESTS_VM_GUEST_H

#include <stdbool.h>
#include "../preload/sock.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))

/** struct check - @name: as printed; @run: returns if all is well */
struct check {
	const char *name;
	void (*run)(void);
};

/**
 * run_checks() - each of @checks whose name is among @names (none: all)
 * @prefix: before each name, e.g. the IP version.
 * @seconds: after which a check counts as hung. No check measures time.
 * Returns the number that failed; print_plan() ends the output.
 */
int run_checks(const struct check *checks, size_t n, const char *prefix,
	       int seconds, char **names);
void print_plan(void);
/** slowness() - by how much less a check has to do under this kernel: 4 under the debug kernel. */
int slowness(void);
/**
 * patience() - how many times as long a check may take here before it counts as hung: 20 under
 * the debug kernel, which is emulated, on a machine that may have much else to do.
 */
int patience(void);
/** skip() - the running check cannot be made here. */
void skip(const char *why) __attribute__((noreturn));

/* SplitMix64: the same numbers for the same seed everywhere. */
static inline uint64_t rng_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline uint32_t rng_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(rng_next(state) % n);
}

/** write_file() - 0 or a negative errno. */
int write_file(const char *path, const char *text);
/** sysctl_set() - net.homa.@name of this namespace; 0 or a negative errno. */
int sysctl_set(const char *name, long value);
/** metric() - a counter of /proc/net/homa_metrics; -1: there is none. */
long long metric(const char *name);
/** rpcs_of() - open RPCs of a socket by HOMAIOCINFO. */
unsigned int rpcs_of(int fd);
/** rpcs_become() - wait up to @ms for a socket to have @want RPCs; what it has. */
unsigned int rpcs_become(int fd, unsigned int want, int ms);
/** socks_open() - Homa sockets of this namespace by /proc/net; -1: cannot tell. */
int socks_open(void);

#endif
