/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The seam between the engine and the Linux kernel: the same names as
 * engine/plat/user/homa_plat.h, over the kernel's own headers. The engine
 * runs here in softirq as well as in system calls, and its caller has turned
 * bottom halves off for all of its calls (homak_enter() in host/kernel), so plain
 * spinlocks do. With PREEMPT_RT they sleep, and the context is its caller's by
 * homak_own(). lockdep plays the part of the lock-order checker, one lock class
 * key per enum homa_lock_class, and notices a call with bottom halves on.
 *
 * Guarded by: nobody; locks and references are changed atomically by any context.
 */
#ifndef HOMA_PLAT_H
#define HOMA_PLAT_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/limits.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/prefetch.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

typedef __be16 homa_be16;
typedef __be32 homa_be32;
typedef __be64 homa_be64;

#ifndef UINT32_MAX
#define UINT32_MAX U32_MAX
#endif
#ifndef UINT64_MAX
#define UINT64_MAX U64_MAX
#endif

/* Marks a variable that is filled before use, so that INIT_STACK_ALL_ZERO does not zero
 * it. */
#if __has_attribute(__uninitialized__)
#define HOMA_NOINIT __attribute__((__uninitialized__))
#else
#define HOMA_NOINIT
#endif

/* Marks a function that is rarely called, so that it is kept out of the usual ones. */
#define HOMA_RARE noinline __cold
/* Marks a function that is not inlined although there is but one call, so that the registers it
 * needs are not saved by its caller. */
#define HOMA_APART noinline

/* Marks a function of the hot path that others call, too: where all files are compiled as one it
 * is inlined everywhere, as if it had the one caller (docs/kernel-performance.md). Sparse
 * demands the word inline at the definition, too. */
#if defined(HOMAK_WHOLE) && !defined(__CHECKER__)
#define HOMA_HOT inline __attribute__((__always_inline__))
#else
#define HOMA_HOT
#endif

/* Marks a function that is inlined wherever it is called, which are few places. */
#define HOMA_INLINE __always_inline

#define homa_prefetch(p) prefetch(p)
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

/* A wrong assertion about the engine is a bug report, not a panic. */
#ifdef HOMA_DEBUG
#define homa_assert(cond) WARN_ON_ONCE(!(cond))
#else
#define homa_assert(cond)                  \
	do {                               \
		(void)sizeof((cond) != 0); \
	} while (0)
#endif

static inline u16 homa_get_be16(const void *p)
{
	return get_unaligned_be16(p);
}

static inline u32 homa_get_be32(const void *p)
{
	return get_unaligned_be32(p);
}

static inline u64 homa_get_be64(const void *p)
{
	return get_unaligned_be64(p);
}

static inline void homa_put_be16(void *p, u16 v)
{
	put_unaligned_be16(v, p);
}

static inline void homa_put_be32(void *p, u32 v)
{
	put_unaligned_be32(v, p);
}

static inline void homa_put_be64(void *p, u64 v)
{
	put_unaligned_be64(v, p);
}

static inline u64 homa_div64(u64 a, u64 b)
{
	return div64_u64(a, b);
}

static inline int homa_fls32(u32 v)
{
	return fls(v);
}

static inline int homa_ctz64(u64 v)
{
	return (int)__ffs64(v);
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

#define HOMA_READ_ONCE(x) READ_ONCE(x)
#define HOMA_WRITE_ONCE(x, v) WRITE_ONCE(x, v)
/* Reads before all that follows, and writes after all that came before. */
#define HOMA_READ_FIRST(x) smp_load_acquire(&(x))
#define HOMA_WRITE_LAST(x, v) smp_store_release(&(x), v)

struct homa_lock {
	/* The kernel's lock. */
	spinlock_t spin;
};

/* Defined once in host/kernel, one key and name per class: lockdep wants the
 * same name, by its address, wherever a lock of a class is made. */
extern struct lock_class_key homa_plat_lock_keys[HOMA_LOCK_CLASSES];
extern const char *const homa_plat_lock_names[HOMA_LOCK_CLASSES];

static inline void homa_lock_init(struct homa_lock *lock,
				  enum homa_lock_class lock_class)
{
	spin_lock_init(&lock->spin);
	lockdep_set_class_and_name(&lock->spin, &homa_plat_lock_keys[lock_class],
				   homa_plat_lock_names[lock_class]);
}

static inline bool homa_trylock(struct homa_lock *lock)
{
	return spin_trylock(&lock->spin);
}

/* sparse cannot follow locks that one function takes and another gives back, or that
 * are kept over some turns of a loop; it is told nothing of them. lockdep sees all. */
static inline void homa_lock(struct homa_lock *lock)
{
	spin_lock(&lock->spin);
	__release(&lock->spin);
}

static inline void homa_unlock(struct homa_lock *lock)
{
	__acquire(&lock->spin);
	spin_unlock(&lock->spin);
}

/* A reference count; whoever drops the last reference owns the object. */
struct homa_ref {
	/* The number of references; whoever makes it 0 owns the object. */
	refcount_t count;
};

static inline void homa_ref_init(struct homa_ref *ref, u32 n)
{
	refcount_set(&ref->count, (int)n);
}

static inline void homa_ref_get(struct homa_ref *ref)
{
	refcount_inc(&ref->count);
}

static inline bool homa_ref_put(struct homa_ref *ref)
{
	return refcount_dec_and_test(&ref->count);
}

static inline u32 homa_ref_read(const struct homa_ref *ref)
{
	return refcount_read(&ref->count);
}

/* Takes a reference, unless the object is at its end. */
static inline bool homa_ref_get_live(struct homa_ref *ref)
{
	return refcount_inc_not_zero(&ref->count);
}

/* Drops the last reference; false: there are others, and nothing was dropped. */
static inline bool homa_ref_drop_last(struct homa_ref *ref)
{
	return refcount_dec_if_one(&ref->count);
}

/*
 * Lookups without a lock: whoever calls the engine is an RCU reader (bottom
 * halves are off), and the host frees peers and sockets only after a grace
 * period, or reuses a peer's memory as another peer (SLAB_TYPESAFE_BY_RCU).
 */
#define HOMA_RCU 1
#define HOMA_ALONE 0
#define homa_publish(p, v) smp_store_release(p, v)
#define homa_write_barrier() smp_wmb()

/* Adds to a counter that several threads change; returns what it was before. */
static inline u64 homa_counter_add(u64 *counter, u64 n)
{
	atomic64_t *a = (atomic64_t *)counter;

	BUILD_BUG_ON(sizeof(atomic64_t) != sizeof(u64));
	return (u64)atomic64_fetch_add_relaxed((s64)n, a);
}

/* As homa_counter_add(), for a counter of 32 bits; returns nothing. */
static inline void homa_counter_add32(u32 *counter, u32 n)
{
	atomic_add((int)n, (atomic_t *)counter);
}

/* Writes @to at @p if @from is there, in one step; false: it is not, and nothing was written. */
static inline bool homa_swap(u64 *p, u64 from, u64 to)
{
	s64 old = (s64)from;

	return atomic64_try_cmpxchg((atomic64_t *)p, &old, (s64)to);
}

/* Counts that something has happened; readers only compare with what they saw last. */
static inline void homa_counter_bump(u32 *counter)
{
	atomic_inc((atomic_t *)counter);
}

#endif
