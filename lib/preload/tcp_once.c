// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * EPOLLONESHOT in sets that were there before fork(). Parent and child both hear of homad's news,
 * and one of them tells the program, as the kernel does. Whether a watch was told stands in memory
 * that both share then, a word for each watch. The memory of one fork() goes, in each process, when
 * the last of its watches ends there; a word is never another watch's.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "real.h"
#include "tcp_ready.h"

/** struct homa_pl_words - the words that one fork() has made; each process has a copy of this */
struct homa_pl_words {
	/* The shared memory: a word for each watch, 1 if it was told. It is atomic. */
	uint32_t *told;
	/* The bytes of it. */
	size_t bytes;
	/* The number of watches of this process that have a word. */
	unsigned int live;
};

static bool wants_word(const struct homa_pl_watch *w)
{
	return (w->event.events & EPOLLONESHOT) && !w->words;
}

static struct homa_pl_words *new_words(unsigned int num)
{
	struct homa_pl_words *words = calloc(1, sizeof(*words));

	if (!words)
		return NULL;
	words->bytes = num * sizeof(*words->told);
	words->told = mmap(NULL, words->bytes, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (words->told != MAP_FAILED)
		return words;
	free(words);
	return NULL;
}

void homa_pl_once_share(struct homa_pl_set *set)
{
	struct homa_pl_words *words;
	struct homa_pl_watch *w;
	unsigned int num = 0;

	for (w = set->watches; w; w = w->of_set)
		num += wants_word(w);
	words = num ? new_words(num) : NULL;
	for (w = set->watches; words && w; w = w->of_set) {
		if (!wants_word(w))
			continue;
		w->words = words;
		w->word = &words->told[words->live++];
		*w->word = w->off;
	}
}

void homa_pl_once_end(struct homa_pl_watch *w)
{
	struct homa_pl_words *words = w->words;

	if (HOMA_PL_LIKELY(!words))
		return;
	w->words = NULL;
	w->word = NULL;
	if (--words->live)
		return;
	HOMA_PL_REAL(munmap)(words->told, words->bytes);
	free(words);
}

bool homa_pl_once_was_told(const struct homa_pl_watch *w)
{
	return HOMA_PL_LIKELY(!w->word) ?
		       w->off :
		       __atomic_load_n(w->word, __ATOMIC_ACQUIRE);
}

bool homa_pl_once_tell(struct homa_pl_watch *w)
{
	if (HOMA_PL_LIKELY(!(w->event.events & EPOLLONESHOT)))
		return true;
	if (w->word)
		return !__atomic_exchange_n(w->word, 1, __ATOMIC_ACQ_REL);
	w->off = true;
	return true;
}

void homa_pl_once_arm(struct homa_pl_watch *w)
{
	w->off = false;
	if (!HOMA_PL_LIKELY(!w->word))
		__atomic_store_n(w->word, 0, __ATOMIC_RELEASE);
}
