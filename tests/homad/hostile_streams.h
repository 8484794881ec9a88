/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the hostile lives with TCP streams share; see hostile_streams.c. */
#ifndef TEST_HOSTILE_STREAMS_H
#define TEST_HOSTILE_STREAMS_H

#include <errno.h>
#include "hostile.h"
#include "raw_stream.h"

/** hostile_streams_begin() - attach with streams or, when homad refuses, end this life in peace.
 *  hostile_streams_end() - let go of all, or die. */
void hostile_streams_begin(struct hostile *h, struct raw_streams *s);
void hostile_streams_end(struct hostile *h, struct raw_streams *s);
/** hostile_goes_on() - is the life not over, and homad not tired of it? @turns counts. */
bool hostile_goes_on(struct hostile *h, struct raw_streams *s, uint32_t *turns);

/** hostile_connect() - ask for a connection to an echo server or, if it is not 0, to @own_port. */
void hostile_connect(struct hostile *h, struct raw_streams *s, uint16_t own_port);
/** hostile_hear() - take some events. */
void hostile_hear(struct hostile *h, struct raw_streams *s);
/** hostile_work() - do a little of what correct programs do: open, write, read, close. */
void hostile_work(struct hostile *h, struct raw_streams *s, uint16_t own_port);
/** hostile_command() - a command, mostly proper, with as many fields spoiled as @evil says. */
struct homa_stream_command hostile_command(struct hostile *h,
					   const struct raw_streams *s, int evil);

#endif
