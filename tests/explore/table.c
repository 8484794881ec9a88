/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * States that were seen: 64 bits of hash each, in a table that all processes share and
 * that lies in a file when a search is to be gone on with. Two states with one
 * fingerprint pass for one (hash compaction, Wolper and Leroy 1993); with n states
 * the chance that this happened at all is about n * n / 2^65.
 */
#include "explore.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static u64 *slots;
static u64 mask;
static u64 *used;

bool xp_table_new(const char *file, u64 bytes)
{
	u64 n = 1024;
	void *mem;
	int fd = -1;

	while (n * 16 <= bytes)
		n *= 2;
	if (file) {
		fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 || ftruncate(fd, (off_t)(n * 8 + 4096)))
			return false;
	}
	mem = mmap(NULL, n * 8 + 4096, PROT_READ | PROT_WRITE,
		   fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (mem == MAP_FAILED)
		return false;
	used = mem;
	slots = (u64 *)((char *)mem + 4096);
	mask = n - 1;
	return true;
}

bool xp_table_add(u64 hash)
{
	u64 i = hash & mask;

	for (;; i = (i + 1) & mask) {
		u64 old = __atomic_load_n(&slots[i], __ATOMIC_RELAXED);

		if (old == hash)
			return false;
		if (old)
			continue;
		if (__atomic_compare_exchange_n(&slots[i], &old, hash, false,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_add(used, 1, __ATOMIC_RELAXED);
			return true;
		}
		if (old == hash)
			return false;
	}
}

void xp_table_end(void)
{
	if (used)
		munmap(used, (mask + 1) * 8 + 4096);
	used = NULL;
}

u64 xp_table_used(void)
{
	return __atomic_load_n(used, __ATOMIC_RELAXED);
}

u64 xp_table_size(void)
{
	return mask + 1;
}
