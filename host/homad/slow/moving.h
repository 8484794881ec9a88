/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Giving an attachment another home. */
#ifndef HOMAD_MOVING_H
#define HOMAD_MOVING_H

#include "homa_plat.h"

struct homad;
struct homad_app;

/** homad_move_app() - make the thread with index @to the home of @app, or of an attachment without
 *  streams that the thread @from chooses if @app is NULL. Returns 0 or a negative errno, with which
 *  the attachment stays at @from. */
int homad_move_app(struct homad *d, struct homad_app *app, u32 from, u32 to);

#endif
