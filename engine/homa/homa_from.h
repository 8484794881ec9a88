/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where packets of an RPC leave from: the first of its host's private bytes, if the host says
 * so (homa_limits.rpc_from).
 */
#ifndef HOMA_FROM_H
#define HOMA_FROM_H

#include "homa_rpc.h"

static inline struct homa_from *homa_rpc_from(struct homa_rpc *rpc)
{
	return (struct homa_from *)(rpc + 1);
}

#endif
