/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Copies of short outgoing messages. An application that submits one has its memory back
 * at once; the copy is homad's own memory and stays until the RPC has ended, which for a
 * request at a server that never answers may be never. So they are on the account of their
 * user and on that of all users, together with the shared memory: quota.user_memory and
 * quota.total_memory are limits of both.
 *
 * A part of each limit is for copies only. Pools grow by use, and would otherwise leave
 * no room for the short messages of their own user.
 *
 * Written by: fast-path threads and the slow path, atomically, as the struct says.
 */
#ifndef HOMAD_COPIES_H
#define HOMAD_COPIES_H

#include "homa_plat.h"

struct homad;
struct homad_app;
struct homad_thread;

/* 1 part in this many of quota.user_memory and of quota.total_memory is for copies only. */
#define HOMAD_COPIES_PART 16u
/* 1 part in this many of what all users may have is kept for root. */
#define HOMAD_ROOT_PART 16u

/**
 * struct homad_bytes - the account of a user, or of all users
 * @copies: bytes of the buffers that copies lie in. Every fast-path thread writes it,
 *	the slow path reads it. In that of all users it is written if there are several
 *	threads.
 * @shared: bytes of shared memory, and of what the slow path keeps for a user. The slow
 *	path writes it, fast-path threads read it.
 */
struct homad_bytes {
	u64 copies, shared;
};

/** homad_copies_limit() - take the limits from homad.config; at the start, and by the slow
 *  path when that has changed. */
void homad_copies_limit(struct homad *d);
/** homad_copies_of_all() - return the bytes of the copies of all users. Any thread asks. */
u64 homad_copies_of_all(const struct homad *d);
/**
 * homad_copy_get() - return @size bytes on the account of @app's user; NULL: there is no
 * memory, or the account is full.
 */
u8 *homad_copy_get(struct homad_thread *t, struct homad_app *app, u32 size);
/** homad_copy_put() - give memory of homad_copy_get() back; @app and @size as before. */
void homad_copy_put(struct homad_thread *t, struct homad_app *app, u8 *copy,
		    u32 size);

#endif
