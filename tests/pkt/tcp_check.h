/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What is always true of a TCP engine whose host has asked for all that it would send. */
#ifndef HOMA_TCP_CHECK_H
#define HOMA_TCP_CHECK_H

#include "tas_engine.h"

/* NULL, or what is not true of one of its connections. */
const char *tcp_check(struct tas_engine *engine);
/* The only connection; NULL: there are none, or several. */
struct tas_conn *tcp_check_only(struct tas_engine *engine);

#endif
