/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Copies of short outgoing messages. An application that submits one has its memory back
 * at once; the copy is homad's own memory and stays until the RPC has ended, which for a
 * request at a server that never answers may be never. So each user has an account of
 * them, and all users together have one.
 */
#ifndef HOMAD_COPIES_H
#define HOMAD_COPIES_H

#include "homa_plat.h"

struct homad;
struct homad_app;
struct homad_thread;

/* Copies may have 1 part in this many of quota.user_memory and of quota.total_memory,
 * besides what those limit. */
#define HOMAD_COPIES_SHARE 4u
/* 1 part in this many of what all may have is kept for root. */
#define HOMAD_COPIES_ROOT 16u

/**
 * struct homad_copies - an account of copies
 * @used: bytes of the buffers that the copies lie in. Every fast-path thread writes it,
 *	others read it.
 */
struct homad_copies {
	u64 used;
};

/** homad_copies_limit() - take the limits from homad.config; at the start, and by the slow
 *  path when that has changed. */
void homad_copies_limit(struct homad *d);
/**
 * homad_copy_get() - return @size bytes on the account of @app's user; NULL: there is no
 * memory, or the account is full.
 */
u8 *homad_copy_get(struct homad_thread *t, struct homad_app *app, u32 size);
/** homad_copy_put() - give memory of homad_copy_get() back; @app and @size as before. */
void homad_copy_put(struct homad_thread *t, struct homad_app *app, u8 *copy,
		    u32 size);

#endif
