// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * From descriptors to sockets. Every hooked call asks, also those for files
 * and pipes, from every thread and from signal handlers, so a look-up is two
 * loads and takes no lock. Two levels, because descriptors may be large and a
 * program usually has few. Sockets are never freed, only used again: whoever
 * got a pointer takes a reference if there still is one, and looks again
 * whether the descriptor still is that socket's.
 */
#include <errno.h>
#include <stdlib.h>
#include "internal.h"
#include "pl_signals.h"

/* The number of descriptors in a chunk, and the number of chunks. */
#define CHUNK 1024
#define CHUNKS 1024

typedef struct homa_pl_sock *entry;

static entry *chunks[CHUNKS];
uint32_t homa_pl_live;

static entry *slot(int fd)
{
	entry *chunk;

	if (fd < 0 || fd >= CHUNK * CHUNKS)
		return NULL;
	chunk = __atomic_load_n(&chunks[fd / CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? &chunk[fd % CHUNK] : NULL;
}

int homa_pl_table_room(int fd)
{
	entry *chunk, *none = NULL;

	if (fd < 0 || fd >= CHUNK * CHUNKS)
		return -EMFILE;
	if (__atomic_load_n(&chunks[fd / CHUNK], __ATOMIC_ACQUIRE))
		return 0;
	chunk = calloc(CHUNK, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	if (!__atomic_compare_exchange_n(&chunks[fd / CHUNK], &none, chunk, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		free(chunk);
	return 0;
}

bool homa_pl_table_keep(struct homa_pl_sock *s)
{
	uint32_t refs = __atomic_load_n(&s->refs, __ATOMIC_RELAXED);

	while (refs) {
		if (__atomic_compare_exchange_n(&s->refs, &refs, refs + 1, 1,
						__ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

struct homa_pl_sock *homa_pl_find(int fd)
{
	struct homa_pl_sock *s;
	entry *e;

	if (HOMA_PL_LIKELY(!__atomic_load_n(&homa_pl_live, __ATOMIC_RELAXED)))
		return NULL;
	e = slot(fd);
	if (!e)
		return NULL;
	while ((s = __atomic_load_n(e, __ATOMIC_ACQUIRE))) {
		if (!homa_pl_table_keep(s))
			continue; /* It is being closed at this moment. */
		if (__atomic_load_n(e, __ATOMIC_ACQUIRE) == s) {
			if (s->drop)
				homa_pl_hold();
			return s;
		}
		homa_pl_drop(s);
	}
	return NULL;
}

struct homa_pl_sock *homa_pl_table_set(int fd, struct homa_pl_sock *s)
{
	entry *e = slot(fd);

	return e ? __atomic_exchange_n(e, s, __ATOMIC_ACQ_REL) : NULL;
}

int homa_pl_table_next(int fd)
{
	if (fd < 0)
		fd = 0;
	while (fd < CHUNK * CHUNKS) {
		entry *chunk =
			__atomic_load_n(&chunks[fd / CHUNK], __ATOMIC_ACQUIRE);

		if (!chunk) {
			fd = (fd / CHUNK + 1) * CHUNK;
			continue;
		}
		if (__atomic_load_n(&chunk[fd % CHUNK], __ATOMIC_ACQUIRE))
			return fd;
		fd++;
	}
	return -1;
}

struct homa_pl_sock *homa_pl_table_get(int fd)
{
	entry *e = slot(fd);

	return e ? __atomic_load_n(e, __ATOMIC_ACQUIRE) : NULL;
}
