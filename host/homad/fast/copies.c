// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See copies.h. A user may have as much as all others have left, and no more than his own
 * limit: a user who takes all that he can get leaves half to the next one.
 */
#include "copies.h"
#include "fast.h"

void homad_copies_limit(struct homad *d)
{
	const struct homad_quota *quota = &d->config.quota;
	u64 of_user = quota->user_memory / HOMAD_COPIES_SHARE;
	u64 of_all = quota->total_memory / HOMAD_COPIES_SHARE;

	HOMA_WRITE_ONCE(d->copies_of_user, of_user);
	HOMA_WRITE_ONCE(d->copies_of_all, of_all);
	of_all -= of_all / HOMAD_COPIES_ROOT;
	HOMA_WRITE_ONCE(d->copies_easy, homa_min_u64(of_user, of_all / 2));
}

/* Adds @bytes to the account of the user and that of all. A thread that is the only one
 * needs no atomic additions, and its own buffers are those of all users. */
static inline void account(struct homad_thread *t, struct homad_app *app,
			   u64 bytes)
{
	struct homad_copies *of_user = app->copies;

	if (unlikely(!of_user))
		return;
	if (likely(homa_plat_alone)) {
		HOMA_WRITE_ONCE(of_user->used, of_user->used + bytes);
		return;
	}
	__atomic_fetch_add(&of_user->used, bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->d->copies.used, bytes, __ATOMIC_RELAXED);
}

static inline u64 used_by_all(const struct homad_thread *t)
{
	return homa_plat_alone ? t->bufs.used : HOMA_READ_ONCE(t->d->copies.used);
}

/* May the account of @app's user have @bytes more? It may have what all together have if
 * that is little. */
static bool has_room(const struct homad_thread *t, const struct homad_app *app,
		     u32 bytes)
{
	const struct homad *d = t->d;
	u64 of_all = HOMA_READ_ONCE(d->copies_of_all), all = used_by_all(t), used;

	if (unlikely(!app->copies))
		return true;
	used = HOMA_READ_ONCE(app->copies->used) + bytes;
	if (app->uid == 0)
		return all + bytes <= of_all;
	of_all -= of_all / HOMAD_COPIES_ROOT;
	return used <= HOMA_READ_ONCE(d->copies_of_user) && all <= of_all &&
	       used <= of_all - all;
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
