/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which life of its host a server is in. A server that starts again forgets which requests
 * ran. So an engine draws a number when it is made, and says it in every packet of a server;
 * a client says in its requests for which life they are. What is for another life does not
 * run, and what another life says is no sign of this one. 0 says nothing, as the existing
 * module does and who meets a server for the first time.
 */
#ifndef HOMA_LIFE_H
#define HOMA_LIFE_H

#include "homa_impl.h"
#include "homa_wire.h"

/* The number that the engine calls its life, drawn from its seeds; 0: it has no restart guard,
 * and so names no life. */
u32 homa_life_drawn(const struct homa_engine *engine);
/* Time since the engine was made, in units of 2^HOMA_WIRE_UP_SHIFT ns, as RPC_UNKNOWN
 * carries it. */
u32 homa_life_up(const struct homa_ctx *ctx);
/* Binds a client's RPC, which begins, to the life that its peer named last. */
void homa_life_begin(struct homa_rpc *rpc);
/* Is a server's packet at @data, which is no RPC_UNKNOWN, of the life that a client's @rpc
 * is bound to? The first packet that names a life binds the RPC to it. Shard locked. */
bool homa_life_same(struct homa_rpc *rpc, const void *data);
/* May a client's @rpc start over after the RPC_UNKNOWN at @data? Not with a life that may
 * have begun after the first packet of the request, because a former one may have run it.
 * Shard locked. */
bool homa_life_again(const struct homa_ctx *ctx, struct homa_rpc *rpc,
		     const void *data);
/* Is the client's packet at @data for another life than this one? */
static inline bool homa_life_other(const struct homa_engine *engine,
				   const void *data)
{
	u32 life = homa_wire_life(data);

	return life && engine->life && life != engine->life;
}
/*
 * May a former life of this engine have run the request that is sent again in the packet at
 * @data? Not if it is for this life.
 */
bool homa_life_doubts(const struct homa_ctx *ctx, const struct homa_link *link,
		      const void *data);

#endif
