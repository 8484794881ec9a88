/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Making TCP when homad starts. */
#ifndef HOMAD_TCP_MAKE_H
#define HOMAD_TCP_MAKE_H

struct homad;

/** homad_tcp_make() - make the instances of TCP and homad.steering, before the threads start; none
 *  if no device can carry TCP. Returns 0 or -ENOMEM. */
int homad_tcp_make(struct homad *d);

#endif
