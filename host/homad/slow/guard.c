// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The handler runs in whatever thread touched the page, in the middle of
 * anything, so it takes no lock: it looks through a table of ranges that the slow
 * path fills with single stores, puts an empty page where the fault was, marks the
 * range and returns; the access then goes on and reads zeros, and the slow path
 * detaches the owner. A fault anywhere else keeps its usual end.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "guard.h"

#define RANGES 65536u
#define PAGE 4096u

/*
 * struct range - memory in which a fault ends one attachment only; the signal handler of any
 * thread reads it
 * @base: address of its first byte.
 * @end: address behind its last byte; 0 while the entry is free. It is stored last.
 * @owner: what homad_guard_next() returns for it.
 * @hit: 1 after a fault in it; the handler writes 1, control 0.
 */
struct range {
	uintptr_t base;
	uintptr_t end;
	void *owner;
	u32 hit;
};

static struct range ranges[RANGES];
static u32 used;   /* all ranges from this index on are free */
static u32 lowest; /* all ranges below this index are taken */
static u32 hits;
static int hit_fd = -1;

static struct range *find(uintptr_t address)
{
	u32 i, n = __atomic_load_n(&used, __ATOMIC_ACQUIRE);

	for (i = 0; i < n; i++) {
		uintptr_t end = __atomic_load_n(&ranges[i].end, __ATOMIC_ACQUIRE);

		if (address < end && address >= ranges[i].base)
			return &ranges[i];
	}
	return NULL;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);
	struct range *range = find((uintptr_t)info->si_addr);
	int saved = errno;
	u64 one = 1;

	(void)context;
	if (!range || info->si_code <= 0 ||
	    mmap((void *)page, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
		/* The access is repeated, and then the signal ends the process. */
		signal(number, SIG_DFL);
		if (info->si_code <= 0)
			raise(number);
		errno = saved;
		return;
	}
	__atomic_store_n(&range->hit, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&hits, 1, __ATOMIC_RELEASE);
	if (hit_fd >= 0 && write(hit_fd, &one, sizeof(one)) < 0) {
		/* the eventfd is readable already */
	}
	errno = saved;
}

int homad_guard_start(int fd)
{
	struct sigaction action = { .sa_sigaction = on_sigbus,
				    .sa_flags = SA_SIGINFO };

	hit_fd = fd;
	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) ? -errno : 0;
}

u32 homad_guard_add(const void *base, size_t bytes, void *owner)
{
	u32 i;

	for (i = lowest; i < RANGES && ranges[i].end; i++)
		;
	lowest = i;
	if (i == RANGES)
		return 0;
	ranges[i].base = (uintptr_t)base;
	ranges[i].owner = owner;
	ranges[i].hit = 0;
	__atomic_store_n(&ranges[i].end, (uintptr_t)base + bytes,
			 __ATOMIC_RELEASE);
	if (i >= used)
		__atomic_store_n(&used, i + 1, __ATOMIC_RELEASE);
	return i + 1;
}

void homad_guard_remove(u32 number)
{
	if (!number)
		return;
	__atomic_store_n(&ranges[number - 1].end, 0, __ATOMIC_RELEASE);
	if (number - 1 < lowest)
		lowest = number - 1;
}

void *homad_guard_next(void)
{
	u32 i;

	if (!__atomic_load_n(&hits, __ATOMIC_ACQUIRE))
		return NULL;
	for (i = 0; i < used; i++)
		if (ranges[i].end &&
		    __atomic_exchange_n(&ranges[i].hit, 0, __ATOMIC_RELAXED))
			return ranges[i].owner;
	__atomic_store_n(&hits, 0, __ATOMIC_RELAXED);
	return NULL;
}
