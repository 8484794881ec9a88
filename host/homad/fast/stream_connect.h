/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Commands of applications that open connections or set their options (stream_commands.c). */
#ifndef HOMAD_STREAM_CONNECT_H
#define HOMAD_STREAM_CONNECT_H

#include "streams.h"

/* ---- stream_connect.c ---- */

/** homad_stream_connect() - do HOMA_STREAM_CONNECT; returns NULL, homad_next_round, or why the
 *  attachment must end. */
const char *homad_stream_connect(struct homad_thread *t, struct homad_streams *s,
				 const struct homa_stream_command *c);

/* ---- stream_options.c ---- */

/* What is wrong with a time that homa_stream_may_wait() refuses. */
extern const char homad_wrong_patience[];
/** homad_stream_set_options() - set what HOMA_STREAM_OPT_* bits say. */
void homad_stream_set_options(struct homad_thread *t,
			      struct homad_stream *stream, u32 options);
/** homad_stream_set_patience() - set @which, an enum homa_stream_patience, to @value; returns NULL
 *  or what is wrong. */
const char *homad_stream_set_patience(struct homad_thread *t,
				      struct homad_stream *stream, u64 which,
				      u32 value);

#endif
