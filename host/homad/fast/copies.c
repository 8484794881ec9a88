// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See copies.h. A user may have as much as all others have left, and no more than his own
 * limit: a user who takes all that he can get leaves half to the next one. The same rule
 * holds for the part that is for copies only.
 *
 * The slow path adds shared memory while threads add copies. Each reads the other's sum
 * without a lock, so that a limit can be passed by what they add at the same moment.
 */
#include "copies.h"
#include "fast.h"

static u64 without_root(u64 bytes)
{
	return bytes - bytes / HOMAD_ROOT_PART;
}

void homad_copies_limit(struct homad *d)
{
	const struct homad_quota *quota = &d->config.quota;
	u64 of_user = quota->user_memory / HOMAD_COPIES_PART;
	u64 of_all = without_root(quota->total_memory) / HOMAD_COPIES_PART;

	HOMA_WRITE_ONCE(d->bytes_of_user, quota->user_memory);
	HOMA_WRITE_ONCE(d->bytes_of_all, quota->total_memory);
	HOMA_WRITE_ONCE(d->copies_easy, homa_min_u64(of_user, of_all / 2));
}

/* Adds @bytes to the account of the user and that of all. A thread that is the only one
 * needs no atomic additions, and its own buffers are those of all users. */
static inline void account(struct homad_thread *t, struct homad_app *app,
			   u64 bytes)
{
	struct homad_bytes *of_user = app->bytes;

	if (unlikely(!of_user))
		return;
	if (likely(homa_plat_alone)) {
		HOMA_WRITE_ONCE(of_user->copies, of_user->copies + bytes);
		return;
	}
	__atomic_fetch_add(&of_user->copies, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->d->bytes.copies, bytes, __ATOMIC_RELAXED);
}

static inline u64 used_by_all(const struct homad_thread *t)
{
	return homa_plat_alone ? HOMA_READ_ONCE(t->bufs.used) :
				 HOMA_READ_ONCE(t->d->bytes.copies);
}

u64 homad_copies_of_all(const struct homad *d)
{
	return used_by_all(d->threads[0]);
}

/* May a user who has @mine bytes of what all have @all of have that, if all may have
 * @limit? */
static inline bool is_share(u64 mine, u64 all, u64 limit)
{
	return all <= limit && mine <= limit - all;
}

/* May the account of @app's user have @bytes more? The user may have them if there is room
 * for them in the part that is for copies only, or in all that he may have. */
static bool has_room(const struct homad_thread *t, const struct homad_app *app,
		     u32 bytes)
{
	const struct homad *d = t->d;
	u64 of_user = HOMA_READ_ONCE(d->bytes_of_user);
	u64 of_all = HOMA_READ_ONCE(d->bytes_of_all), copies = used_by_all(t),
	    mine, all;

	if (unlikely(!app->bytes))
		return true;
	mine = HOMA_READ_ONCE(app->bytes->copies) + bytes;
	all = copies + HOMA_READ_ONCE(d->bytes.shared);
	if (app->uid == 0)
		return all + bytes <= of_all;
	of_all = without_root(of_all);
	if (mine <= of_user / HOMAD_COPIES_PART &&
	    is_share(mine, copies, of_all / HOMAD_COPIES_PART))
		return true;
	mine += HOMA_READ_ONCE(app->bytes->shared);
	return mine <= of_user && is_share(mine, all, of_all);
}

u8 *homad_copy_get(struct homad_thread *t, struct homad_app *app, u32 size)
{
	u32 bytes = homa_msgbuf_bytes(size);
	u8 *copy;

	if (unlikely(used_by_all(t) + bytes > HOMA_READ_ONCE(t->d->copies_easy) &&
		     !has_room(t, app, bytes))) {
		t->counters.copies_refused++;
		return NULL;
	}
	copy = homa_msgbuf_get(&t->bufs, size);
	if (unlikely(!copy)) {
		t->counters.out_of_memory++;
		return NULL;
	}
	account(t, app, bytes);
	return copy;
}

void homad_copy_put(struct homad_thread *t, struct homad_app *app, u8 *copy,
		    u32 size)
{
	account(t, app, -(u64)homa_msgbuf_bytes(size));
	homa_msgbuf_put(&t->bufs, copy, size);
}
