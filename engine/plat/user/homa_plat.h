/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The seam between the engine and user space: types, byte order, 64-bit
 * division, assertions, locks, references. engine/plat/kernel has the same
 * names over the kernel's own headers. The engine includes nothing else.
 *
 * Compiled twice: without HOMA_MT all locks and atomics vanish (one thread at
 * a time runs the engine), with HOMA_MT they are real. HOMA_LOCK_CHECK adds a
 * checker of the lock order of docs/architecture.md to the latter.
 *
 * Guarded by: nobody; locks and references are changed atomically by any context.
 */
#ifndef HOMA_PLAT_H
#define HOMA_PLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#ifdef __CHECKER__
#define __homa_bitwise __attribute__((bitwise))
#define __homa_force __attribute__((force))
#else
#define __homa_bitwise
#define __homa_force
#endif
typedef u16 __homa_bitwise homa_be16;
typedef u32 __homa_bitwise homa_be32;
typedef u64 __homa_bitwise homa_be64;

void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
#if !__STDC_HOSTED__
/* With -ffreestanding the compiler does not know these functions, and a copy of 4 bytes
 * would be a call. */
#define memcpy(dst, src, n) __builtin_memcpy(dst, src, n)
#define memmove(dst, src, n) __builtin_memmove(dst, src, n)
#define memset(dst, c, n) __builtin_memset(dst, c, n)
#define memcmp(a, b, n) __builtin_memcmp(a, b, n)
#endif

#ifndef likely
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#endif
/* Marks a variable that is filled before use; only the kernel's compiler clears
 * variables. */
#define HOMA_NOINIT
/* Marks a function that is rarely called, so that it is kept out of the usual ones. */
#define HOMA_RARE __attribute__((noinline, cold))
/* Marks a function that is not inlined although there is but one call, so that the registers it
 * needs are not saved by its caller. */
#define HOMA_APART __attribute__((noinline))
/* Marks a function of the hot path that others call, too; only homa.ko inlines it everywhere. */
#define HOMA_HOT
/* Marks a function that is inlined wherever it is called, which are few places. */
#define HOMA_INLINE inline __attribute__((__always_inline__))
#define homa_prefetch(p) __builtin_prefetch(p)
#define homa_container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#define HOMA_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define HOMA_STATIC_ASSERT(cond, msg) _Static_assert(cond, msg)

static inline u32 homa_min_u32(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u32 homa_max_u32(u32 a, u32 b)
{
	return a > b ? a : b;
}

static inline u64 homa_min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static inline u64 homa_max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/*
 * An assertion about the engine itself, never about input. Compiled out unless
 * HOMA_DEBUG; then the host's homa_plat_assert_failed() is called.
 */
#ifdef HOMA_DEBUG
void homa_plat_assert_failed(const char *what, const char *file, int line);
#define homa_assert(cond)                                                   \
	do {                                                                \
		if (unlikely(!(cond)))                                      \
			homa_plat_assert_failed(#cond, __FILE__, __LINE__); \
	} while (0)
#else
#define homa_assert(cond)                  \
	do {                               \
		(void)sizeof((cond) != 0); \
	} while (0)
#endif

/* Unaligned big-endian access; alignment is never assumed. */
static inline u16 homa_get_be16(const void *p)
{
	const u8 *b = p;

	return (u16)((u16)b[0] << 8 | b[1]);
}

static inline u32 homa_get_be32(const void *p)
{
	u32 v;

	memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap32(v);
#endif
	return v;
}

static inline u64 homa_get_be64(const void *p)
{
	u64 v;

	memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

static inline void homa_put_be16(void *p, u16 v)
{
	u8 *b = p;

	b[0] = (u8)(v >> 8);
	b[1] = (u8)(v & 0xff);
}

static inline void homa_put_be32(void *p, u32 v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap32(v);
#endif
	memcpy(p, &v, sizeof(v));
}

static inline void homa_put_be64(void *p, u64 v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(p, &v, sizeof(v));
}

/* While waiting for another core: gives the pipeline to its sibling thread. */
static inline void homa_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/* 64-bit division: a function on 32-bit machines, so that the engine never
 * pulls in the compiler's run-time library. */
#if __SIZEOF_POINTER__ >= 8
static inline u64 homa_div64(u64 a, u64 b)
{
	return a / b;
}
#else
u64 homa_plat_div64(u64 a, u64 b);
static inline u64 homa_div64(u64 a, u64 b)
{
	return homa_plat_div64(a, b);
}
#endif

static inline int homa_fls32(u32 v)
{
	return v ? 32 - __builtin_clz(v) : 0;
}

static inline int homa_ctz64(u64 v)
{
#if __SIZEOF_POINTER__ >= 8
	return __builtin_ctzll(v);
#else
	/* The builtin would call the compiler's run-time library. */
	return (u32)v ? __builtin_ctz((u32)v) :
			32 + __builtin_ctz((u32)(v >> 32));
#endif
}

/* Locks, in the order in which they may be taken. */
enum homa_lock_class {
	HOMA_LOCK_SHARD,
	HOMA_LOCK_SOCK_TABLE,
	HOMA_LOCK_SOCK,
	HOMA_LOCK_PEER_TABLE,
	HOMA_LOCK_PEER,
	HOMA_LOCK_GRANT,
	HOMA_LOCK_LINK,
	HOMA_LOCK_ONCE,
	HOMA_LOCK_CLASSES,
};

#ifdef HOMA_MT

#define HOMA_READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define HOMA_WRITE_ONCE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELAXED)
/* Reads before all that follows, and writes after all that came before. */
#define HOMA_READ_FIRST(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define HOMA_WRITE_LAST(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)

/*
 * True while only one thread calls the engine: locks and atomic instructions
 * are skipped then, which saves a host that does not know beforehand how many
 * threads it will run a second copy of the engine. Changed only while nobody
 * is inside; plat/user/lock.c.
 */
extern bool homa_plat_alone;

struct homa_lock {
	u32 word; /* 0: the lock is free, 1: it is held */
#ifdef HOMA_LOCK_CHECK
	/* Enum homa_lock_class, which homa_lock_init() writes. */
	u32 lock_class;
#endif
};

/* Waits for a lock by pausing for a bounded time, then yields the processor; see lock.c. */
void homa_plat_lock_slow(struct homa_lock *lock);
#ifdef HOMA_LOCK_CHECK
void homa_plat_lock_acquired(struct homa_lock *lock);
void homa_plat_lock_released(struct homa_lock *lock);
#endif

static inline void homa_lock_init(struct homa_lock *lock,
				  enum homa_lock_class lock_class)
{
	lock->word = 0;
#ifdef HOMA_LOCK_CHECK
	lock->lock_class = lock_class;
#else
	(void)lock_class;
#endif
}

static inline bool homa_trylock(struct homa_lock *lock)
{
	u32 expected = 0;

	if (!homa_plat_alone &&
	    !__atomic_compare_exchange_n(&lock->word, &expected, 1, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
#ifdef HOMA_LOCK_CHECK
	homa_plat_lock_acquired(lock);
#endif
	return true;
}

static inline void homa_lock(struct homa_lock *lock)
{
	u32 expected = 0;

	if (!homa_plat_alone &&
	    unlikely(!__atomic_compare_exchange_n(&lock->word, &expected, 1,
						  false, __ATOMIC_ACQUIRE,
						  __ATOMIC_RELAXED)))
		homa_plat_lock_slow(lock);
#ifdef HOMA_LOCK_CHECK
	homa_plat_lock_acquired(lock);
#endif
}

static inline void homa_unlock(struct homa_lock *lock)
{
#ifdef HOMA_LOCK_CHECK
	homa_plat_lock_released(lock);
#endif
	if (!homa_plat_alone)
		__atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
}

/* True if only one thread calls the engine, so that nothing changes between two looks. */
#define HOMA_ALONE homa_plat_alone

/* A reference count; whoever drops the last reference owns the object. */
struct homa_ref {
	/* The number of references; whoever makes it 0 owns the object. */
	u32 count;
};

static inline void homa_ref_init(struct homa_ref *ref, u32 n)
{
	__atomic_store_n(&ref->count, n, __ATOMIC_RELAXED);
}

static inline void homa_ref_get(struct homa_ref *ref)
{
	if (homa_plat_alone)
		__atomic_store_n(&ref->count, ref->count + 1, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&ref->count, 1, __ATOMIC_RELAXED);
}

static inline bool homa_ref_put(struct homa_ref *ref)
{
	if (homa_plat_alone) {
		__atomic_store_n(&ref->count, ref->count - 1, __ATOMIC_RELAXED);
		return ref->count == 0;
	}
	return __atomic_fetch_sub(&ref->count, 1, __ATOMIC_ACQ_REL) == 1;
}

static inline u32 homa_ref_read(const struct homa_ref *ref)
{
	return __atomic_load_n(&ref->count, __ATOMIC_ACQUIRE);
}

static inline bool homa_ref_get_live(struct homa_ref *ref)
{
	homa_ref_get(ref);
	return true;
}

static inline bool homa_ref_drop_last(struct homa_ref *ref)
{
	u32 one = 1;

	return __atomic_compare_exchange_n(&ref->count, &one, 0, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Adds to a counter that several threads change; returns what it was before. */
static inline u64 homa_counter_add(u64 *counter, u64 n)
{
	u64 old;

	if (homa_plat_alone) {
		old = *counter;
		__atomic_store_n(counter, old + n, __ATOMIC_RELAXED);
		return old;
	}
	return __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* As homa_counter_add(), for a counter of 32 bits; returns nothing. */
static inline void homa_counter_add32(u32 *counter, u32 n)
{
	if (homa_plat_alone)
		__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* Writes @to at @p if @from is there, in one step; false: it is not, and nothing was written. */
static inline bool homa_swap(u64 *p, u64 from, u64 to)
{
	if (homa_plat_alone) {
		__atomic_store_n(p, to, __ATOMIC_RELAXED);
		return true;
	}
	return __atomic_compare_exchange_n(p, &from, to, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#else /* !HOMA_MT: one thread at a time, everything is plain */

#define HOMA_READ_ONCE(x) (x)
#define HOMA_WRITE_ONCE(x, v) ((x) = (v))
#define HOMA_READ_FIRST(x) (x)
#define HOMA_WRITE_LAST(x, v) ((x) = (v))
#define HOMA_ALONE 1

struct homa_lock {
	/* Nobody uses it; a struct has a member. */
	u8 unused;
};

static inline void homa_lock_init(struct homa_lock *lock,
				  enum homa_lock_class lock_class)
{
	(void)lock;
	(void)lock_class;
}

static inline bool homa_trylock(struct homa_lock *lock)
{
	(void)lock;
	return true;
}

static inline void homa_lock(struct homa_lock *lock)
{
	(void)lock;
}

static inline void homa_unlock(struct homa_lock *lock)
{
	(void)lock;
}

struct homa_ref {
	/* The number of references; whoever makes it 0 owns the object. */
	u32 count;
};

static inline void homa_ref_init(struct homa_ref *ref, u32 n)
{
	ref->count = n;
}

static inline void homa_ref_get(struct homa_ref *ref)
{
	ref->count++;
}

static inline bool homa_ref_put(struct homa_ref *ref)
{
	return --ref->count == 0;
}

static inline u32 homa_ref_read(const struct homa_ref *ref)
{
	return ref->count;
}

static inline bool homa_ref_get_live(struct homa_ref *ref)
{
	ref->count++;
	return true;
}

static inline bool homa_ref_drop_last(struct homa_ref *ref)
{
	if (ref->count != 1)
		return false;
	ref->count = 0;
	return true;
}

static inline u64 homa_counter_add(u64 *counter, u64 n)
{
	u64 old = *counter;

	*counter += n;
	return old;
}

static inline void homa_counter_add32(u32 *counter, u32 n)
{
	*counter += n;
}

static inline bool homa_swap(u64 *p, u64 from, u64 to)
{
	(void)from;
	*p = to;
	return true;
}

#endif /* HOMA_MT */

/* Counts that something has happened; readers only compare with what they saw last. */
static inline void homa_counter_bump(u32 *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Nothing is looked up without a lock here, so memory may be freed at once. */
#define HOMA_RCU 0
#define homa_publish(p, v) (*(p) = (v))
#define homa_write_barrier() ((void)0)

#endif
