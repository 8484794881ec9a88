/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The Homa socket API under the name that programs for the Linux module
 * include it by. Compile them with this folder in the include path and run
 * them by homa-run(1) where the module is not loaded.
 */
#ifndef HOMA_COMPAT_HOMA_H
#define HOMA_COMPAT_HOMA_H

#if __has_include("../../abi/homa_socket.h")
#include "../../abi/homa_socket.h" /* in the source tree */
#else
#include <homa/homa_socket.h>
#endif

#endif
