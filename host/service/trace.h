/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Recording packets and the life of RPCs on the fast path. Off, it costs one
 * test of homad_thread.trace; on, a thread writes fixed-size records into a ring of
 * its own that the slow path drains; a full ring loses records and counts them.
 */
#ifndef HOMAD_TRACE_H
#define HOMAD_TRACE_H

#include "service.h"

enum homad_trace_kind {
	HOMAD_TRACE_RX = 1, /* packet */
	HOMAD_TRACE_TX,
	HOMAD_TRACE_LOCAL,
	HOMAD_TRACE_SUBMIT, /* request or reply taken from the application */
	HOMAD_TRACE_DELIVER, /* request, response or failure put into its ring */
	HOMAD_TRACE_END,    /* RPC retired */
};

void homad_trace_rx_slow(struct homad_thread *t, const struct homad_port *port,
			 const struct nic_rx *pkt);
void homad_trace_tx_slow(struct homad_thread *t, const struct homad_port *port,
			 enum homad_trace_kind kind, const struct nic_tx *pkt);
void homad_trace_rpc_slow(struct homad_thread *t, enum homad_trace_kind kind,
			  const struct homad_rpc *rpc, u32 length, int error);

static inline void homad_trace_rx(struct homad_thread *t,
				  const struct homad_port *port,
				  const struct nic_rx *pkt)
{
	if (unlikely(t->trace))
		homad_trace_rx_slow(t, port, pkt);
}

static inline void homad_trace_tx(struct homad_thread *t,
				  const struct homad_port *port,
				  enum homad_trace_kind kind,
				  const struct nic_tx *pkt)
{
	if (unlikely(t->trace))
		homad_trace_tx_slow(t, port, kind, pkt);
}

static inline void homad_trace_rpc(struct homad_thread *t,
				   enum homad_trace_kind kind,
				   const struct homad_rpc *rpc, u32 length,
				   int error)
{
	if (unlikely(t->trace))
		homad_trace_rpc_slow(t, kind, rpc, length, error);
}

#endif
