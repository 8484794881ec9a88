/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Hashing for the engine's tables. Whatever a peer can choose - its address,
 * its RPC ids - is hashed with secret keys, so that nobody can aim all his RPCs
 * at one bucket. No hash leaves the engine.
 *
 * Guarded by: nobody; the struct is a variable of one call.
 */
#ifndef HOMA_HASH_H
#define HOMA_HASH_H

#include "homa_addr.h"

static inline u64 homa_rotl64(u64 v, int n)
{
	return v << n | v >> (64 - n);
}

/**
 * homa_hash_mix() - a bijection of 64-bit words in which every input bit
 *	changes every output bit with probability about 1/2
 *
 * The finaliser of Steele, Lea, Flood: "Fast splittable pseudorandom number
 * generators", OOPSLA 2014, with Stafford's constants (variant 13).
 */
static inline u64 homa_hash_mix(u64 v)
{
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ v >> 27) * 0x94d049bb133111ebull;
	return v ^ v >> 31;
}

/**
 * homa_hash_id() - hash of an RPC; the same for a client's and a server's id
 * @key: secret. All ids that we choose have one key; those that peers choose have one for
 *	each address they come from.
 *
 * The lowest bit of an id only says which side it belongs to. Cheap enough for
 * each packet; the key hides which ids share a bucket. Ids to one
 * peer count up, so eight neighbours stay neighbours: their buckets are different, but in
 * the same cache lines (an engine with several shards has each in another shard). The order
 * among the eight is the key's, too: ids with the same low bits use all buckets.
 */
static inline u32 homa_hash_id(u64 id, u64 key)
{
	u64 v = (id >> 4) ^ key;

	/* homa_hash_mix() but for its last step: the upper half is mixed without. */
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ v >> 27) * 0x94d049bb133111ebull;
	return (u32)(v >> 32) ^ (u32)(id >> 1 & 7);
}

/**
 * homa_hash_ip() - hash of an address without its port, for a table of a host
 * @k0, @k1: secret, drawn once for the table; whatever else is part of the table's
 *	key may be mixed into @k1.
 *
 * All 64 bits are good. Addresses that count up in any of their bytes spread as
 * random ones do. This is no pseudo-random function: it serves tables in which what a
 * stranger adds has a bounded chain or set, so that to guess who shares one gains him
 * a few places there and no long walk. The engine's peers have homa_siphash_addr().
 */
static inline u64 homa_hash_ip(const u8 *ip, u64 k0, u64 k1)
{
	u64 high = homa_get_be64(ip), low = homa_get_be64(ip + 8);

	return homa_hash_mix(homa_hash_mix(high ^ k0) + (low ^ k1));
}

struct homa_siphash {
	/* The four words of SipHash's state. */
	u64 v0, v1, v2, v3;
};

static inline void homa_siphash_round(struct homa_siphash *s)
{
	s->v0 += s->v1;
	s->v1 = homa_rotl64(s->v1, 13) ^ s->v0;
	s->v0 = homa_rotl64(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = homa_rotl64(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = homa_rotl64(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = homa_rotl64(s->v1, 17) ^ s->v2;
	s->v2 = homa_rotl64(s->v2, 32);
}

static inline void homa_siphash_word(struct homa_siphash *s, u64 word)
{
	s->v3 ^= word;
	homa_siphash_round(s);
	s->v0 ^= word;
}

/** homa_siphash_begin() - SipHash-1-3 of words; @k0, @k1: the 128-bit key */
static inline struct homa_siphash homa_siphash_begin(u64 k0, u64 k1)
{
	struct homa_siphash s = {
		.v0 = k0 ^ 0x736f6d6570736575ull,
		.v1 = k1 ^ 0x646f72616e646f6dull,
		.v2 = k0 ^ 0x6c7967656e657261ull,
		.v3 = k1 ^ 0x7465646279746573ull,
	};

	return s;
}

/** homa_siphash_end() - the hash, after the last word, which should tell the length if
 *  that is not always the same */
static inline u64 homa_siphash_end(struct homa_siphash *s)
{
	s->v2 ^= 0xff;
	homa_siphash_round(s);
	homa_siphash_round(s);
	homa_siphash_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* SipHash reads words in little-endian order on every machine. */
static inline u64 homa_get_le64(const void *p)
{
	u64 v = homa_get_be64(p);

	return __builtin_bswap64(v);
}

/**
 * homa_siphash_addr() - SipHash-1-3 of the 20 bytes of an address
 * @k0, @k1: the 128-bit key.
 *
 * Aumasson, Bernstein: "SipHash: a fast short-input PRF", INDOCRYPT 2012.
 */
static inline u64 homa_siphash_addr(const struct homa_addr *addr, u64 k0, u64 k1)
{
	struct homa_siphash s = homa_siphash_begin(k0, k1);
	const u8 *b = (const u8 *)addr + 16;
	u64 last = 20ull << 56;

	homa_siphash_word(&s, homa_get_le64(addr->ip));
	homa_siphash_word(&s, homa_get_le64(addr->ip + 8));
	last |= (u64)b[0] | (u64)b[1] << 8 | (u64)b[2] << 16 | (u64)b[3] << 24;
	homa_siphash_word(&s, last);
	return homa_siphash_end(&s);
}

HOMA_STATIC_ASSERT(sizeof(struct homa_addr) == 20, "hashed as 20 bytes");

#endif
