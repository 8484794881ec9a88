/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the two files of the fake homad share. */
#ifndef FAKE_IMPL_H
#define FAKE_IMPL_H

#include "fake_parts.h"
#include "fake_streams.h"

#endif
