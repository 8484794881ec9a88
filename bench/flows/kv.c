/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A hash table with open addressing that has all its keys from the beginning. A request is
 * an 8-byte head, of which the first byte says what is wanted, then the key, then the value.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

#define GET 'G'
#define SET 'S'

struct entry {
	uint8_t key[KV_KEY];
	uint8_t value[KV_VALUE];
};

struct kv_store {
	uint32_t mask;
	struct entry entries[];
};

static void write_key(uint8_t key[KV_KEY], uint32_t number)
{
	char text[KV_KEY + 1];

	snprintf(text, sizeof(text), "key:%028u", number);
	memcpy(key, text, KV_KEY);
}

static uint64_t hash(const uint8_t key[KV_KEY])
{
	uint64_t word, sum = 0;

	for (uint32_t i = 0; i < KV_KEY; i += 8) {
		memcpy(&word, key + i, 8);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 29;
	}
	return sum;
}

/* Returns the entry that has @key, or the free one where it belongs; at most half of the entries
 * are taken, so there is one. */
static struct entry *find(struct kv_store *store, const uint8_t key[KV_KEY])
{
	uint64_t at = hash(key);

	for (;; at++) {
		struct entry *entry = &store->entries[at & store->mask];

		if (!entry->key[0] || !memcmp(entry->key, key, KV_KEY))
			return entry;
	}
}

struct kv_store *kv_new(uint32_t keys)
{
	struct kv_store *store;
	uint32_t size = 16;

	while (size < 2 * (uint64_t)keys)
		size *= 2;
	store = calloc(1, sizeof(*store) + size * sizeof(struct entry));
	if (!store)
		return NULL;
	store->mask = size - 1;
	for (uint32_t i = 0; i < keys; i++) {
		uint8_t key[KV_KEY];
		struct entry *entry;

		write_key(key, i);
		entry = find(store, key);
		memcpy(entry->key, key, KV_KEY);
		memset(entry->value, 'v', KV_VALUE);
	}
	return store;
}

void kv_free(struct kv_store *store)
{
	free(store);
}

int kv_answer(struct kv_store *store, const uint8_t *in, size_t len,
	      size_t *used, uint8_t *out)
{
	bool set = len && in[0] == SET;
	size_t need = set ? KV_SET_SIZE : KV_GET_SIZE;
	struct entry *entry;

	*used = 0;
	if (len && in[0] != GET && in[0] != SET)
		return -1;
	if (len < need)
		return 0;
	entry = find(store, in + 8);
	*used = need;
	/* A key that is not there: the table has its keys from the beginning. */
	if (!entry->key[0])
		return -1;
	if (set) {
		memcpy(entry->value, in + 8 + KV_KEY, KV_VALUE);
		memset(out, 0, KV_STORED_SIZE);
		return KV_STORED_SIZE;
	}
	memcpy(out, entry->value, KV_VALUE);
	return KV_VALUE;
}

uint32_t kv_request(uint8_t *out, uint32_t key, bool set, uint32_t *response)
{
	memset(out, 0, 8);
	out[0] = set ? SET : GET;
	write_key(out + 8, key);
	if (set)
		memset(out + 8 + KV_KEY, 'v', KV_VALUE);
	*response = set ? KV_STORED_SIZE : KV_VALUE;
	return set ? KV_SET_SIZE : KV_GET_SIZE;
}
