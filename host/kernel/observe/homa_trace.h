/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Tracepoints "homa:*": the life of an RPC, for perf, bpftrace and tracefs.
 *
 *	rpc_begin -> tx ... rx ... -> handoff -> rpc_take -> rpc_end
 *	             rx ... -> handoff -> rpc_take -> rpc_reply -> tx ... -> rpc_end
 *
 * (a client above, a server below). A message has arrived with the rx that says
 * "whole=1"; handoff is missing where a thread finds it by itself; msg_ready comes for
 * what ends without a thread that copies, failures above all. All carry "id", the
 * RPC's at this end, so that a filter "id == 1234" gives one RPC's story; the other end
 * has id ^ 1. Each costs a static branch while off. Times are the tracer's own.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM homa

#if !defined(HOMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HOMA_TRACE_H

#include <linux/tracepoint.h>

#include "homa_kernel.h"

#define HOMAK_TYPE_NAMES                                                       \
	{ 0x10, "DATA" }, { 0x11, "GRANT" }, { 0x12, "RESEND" },               \
		{ 0x13, "RPC_UNKNOWN" }, { 0x14, "BUSY" },                     \
		{ 0x15, "CUTOFFS" }, { 0x16, "FREEZE" }, { 0x17, "NEED_ACK" }, \
		{ 0x18, "ACK" }, { 0x19, "START_MSG" }
#define HOMAK_VERDICT_NAMES                                               \
	{ HOMA_RX_CONTROL, "control" }, { HOMA_RX_DROP, "drop" },         \
		{ HOMA_RX_DATA, "data" }, { HOMA_RX_MESSAGE, "message" }, \
		{ HOMA_RX_NO_LISTENER, "no_listener" }
#define HOMAK_EVENT_NAMES                                                 \
	{ HOMA_EV_REQUEST, "request" }, { HOMA_EV_RESPONSE, "response" }, \
		{ HOMA_EV_FAILED, "failed" }

/* These lines tell perf the numbers. */
TRACE_DEFINE_ENUM(HOMA_RX_CONTROL);
TRACE_DEFINE_ENUM(HOMA_RX_DROP);
TRACE_DEFINE_ENUM(HOMA_RX_DATA);
TRACE_DEFINE_ENUM(HOMA_RX_MESSAGE);
TRACE_DEFINE_ENUM(HOMA_RX_NO_LISTENER);
TRACE_DEFINE_ENUM(HOMA_EV_REQUEST);
TRACE_DEFINE_ENUM(HOMA_EV_RESPONSE);
TRACE_DEFINE_ENUM(HOMA_EV_FAILED);

#ifndef HOMAK_TRACE_HEADER
#define HOMAK_TRACE_HEADER
static inline void homak_trace_addr(u8 *out, const struct homa_addr *addr)
{
	struct in6_addr ip;

	homak_addr_get_v6(addr, &ip);
	memcpy(out, &ip, sizeof(ip));
}

/* Returns the type of a packet; the engine has dropped shorter ones unread. */
static inline u8 homak_trace_type(const void *header, u32 len)
{
	return len >= 28 ? ((const u8 *)header)[11] : 0;
}

static inline u64 homak_trace_sender(const void *header, u32 len)
{
	return len >= 28 ? homa_get_be64((const u8 *)header + 20) : 0;
}

static inline u16 homak_trace_port(const void *header, u32 len, u32 at)
{
	return len >= 28 ? homa_get_be16((const u8 *)header + at) : 0;
}
#endif

/* A client's sendmsg() has made a request. */
TRACE_EVENT(homa_rpc_begin,
	    TP_PROTO(struct homak_sock *hsk, u64 id, const struct homa_send *send),
	    TP_ARGS(hsk, id, send),
	    TP_STRUCT__entry(__field(u64, id) __field(u64, cookie)
				     __array(u8, peer, 16) __field(u32, length)
					     __field(u16, port)
						     __field(u16, peer_port)),
	    TP_fast_assign(__entry->id = id; __entry->cookie = send->cookie;
			   homak_trace_addr(__entry->peer, &send->dst);
			   __entry->length = send->length;
			   __entry->port = homa_sock_port(hsk->engine_sock);
			   __entry->peer_port = send->port;),
	    TP_printk("id=%llu port=%u peer=%pI6c peer_port=%u length=%u cookie=%llu",
		      __entry->id, __entry->port, __entry->peer,
		      __entry->peer_port, __entry->length, __entry->cookie));

/* A server's sendmsg() has handed in a response. */
TRACE_EVENT(homa_rpc_reply, TP_PROTO(u64 id, u32 length), TP_ARGS(id, length),
	    TP_STRUCT__entry(__field(u64, id) __field(u32, length)),
	    TP_fast_assign(__entry->id = id; __entry->length = length;),
	    TP_printk("id=%llu length=%u", __entry->id, __entry->length));

/* The engine gave out a packet, or several segments of a message, to send. */
TRACE_EVENT(
	homa_tx,
	TP_PROTO(struct homak_dev *hdev, const struct homa_tx_desc *desc),
	TP_ARGS(hdev, desc),
	TP_STRUCT__entry(__field(u64, id) __array(u8, peer, 16) __field(
		int, ifindex) __field(u32, netns) __field(u32, offset)
				 __field(u32, length) __field(u32, seg_size)
					 __field(u8, type) __field(u8, prio)
						 __field(bool, retransmit)),
	TP_fast_assign(__entry->id = homak_trace_sender(desc->hdr, desc->hdr_len);
		       homak_trace_addr(__entry->peer, &desc->dst);
		       __entry->ifindex = READ_ONCE(hdev->ifindex);
		       __entry->netns = hdev->hnet->net->ns.inum;
		       __entry->type = homak_trace_type(desc->hdr, desc->hdr_len);
		       __entry->offset = desc->rpc ? desc->offset : 0;
		       __entry->length = desc->rpc ? desc->length : 0;
		       __entry->seg_size = desc->rpc ? desc->seg_size : 0;
		       __entry->prio = desc->prio;
		       __entry->retransmit = desc->retransmit;),
	TP_printk("id=%llu %s peer=%pI6c offset=%u length=%u seg_size=%u prio=%u "
		  "retransmit=%u ifindex=%d netns=%u",
		  __entry->id, __print_symbolic(__entry->type, HOMAK_TYPE_NAMES),
		  __entry->peer, __entry->offset, __entry->length,
		  __entry->seg_size, __entry->prio, __entry->retransmit,
		  __entry->ifindex, __entry->netns));

/* The engine has looked at a packet. */
TRACE_EVENT(
	homa_rx, TP_PROTO(struct homak_dev *hdev, const struct homa_rx_pkt *pkt),
	TP_ARGS(hdev, pkt),
	TP_STRUCT__entry(
		__field(u64, id) __array(u8, peer, 16) __field(int, ifindex)
			__field(u32, netns) __field(u32, len) __field(u32, offset)
				__field(u32, fresh) __field(u16, port)
					__field(u16, peer_port) __field(u8, type)
						__field(u8, verdict) __field(u8, prio)
							__field(bool, whole)),
	TP_fast_assign(__entry->id = homak_trace_sender(pkt->data, pkt->len) ^ 1;
		       homak_trace_addr(__entry->peer, pkt->src);
		       __entry->ifindex = READ_ONCE(hdev->ifindex);
		       __entry->netns = hdev->hnet->net->ns.inum;
		       __entry->type = homak_trace_type(pkt->data, pkt->len);
		       __entry->len = pkt->len;
		       __entry->peer_port = homak_trace_port(pkt->data,
							     pkt->len, 0);
		       __entry->port = homak_trace_port(pkt->data, pkt->len, 2);
		       __entry->verdict = pkt->verdict; __entry->prio = pkt->prio;
		       __entry->offset = homak_rx_has_data(pkt) ? pkt->offset : 0;
		       __entry->fresh = homak_rx_has_data(pkt) ? pkt->fresh : 0;
		       __entry->whole = homak_rx_has_data(pkt) && pkt->whole;),
	TP_printk("id=%llu %s peer=%pI6c peer_port=%u port=%u len=%u verdict=%s "
		  "offset=%u fresh=%u whole=%u prio=%u ifindex=%d netns=%u",
		  __entry->id, __print_symbolic(__entry->type, HOMAK_TYPE_NAMES),
		  __entry->peer, __entry->peer_port, __entry->port, __entry->len,
		  __print_symbolic(__entry->verdict, HOMAK_VERDICT_NAMES),
		  __entry->offset, __entry->fresh, __entry->whole,
		  __entry->prio, __entry->ifindex, __entry->netns));

/* A packet was not used; @reason is the name of the counter that counted it. */
TRACE_EVENT(homa_drop,
	    TP_PROTO(const struct homak_net *hnet, const void *header, u32 len,
		     const char *reason),
	    TP_ARGS(hnet, header, len, reason),
	    TP_STRUCT__entry(__field(u64, id) __field(u32, netns) __field(u32, len)
				     __field(u8, type) __string(reason, reason)),
	    TP_fast_assign(__entry->id = homak_trace_sender(header, len) ^ 1;
			   __entry->type = homak_trace_type(header, len);
			   __entry->netns = hnet->net->ns.inum;
			   __entry->len = len; HOMAK_ASSIGN_STR(reason, reason);),
	    TP_printk("id=%llu %s len=%u reason=%s netns=%u", __entry->id,
		      __print_symbolic(__entry->type, HOMAK_TYPE_NAMES),
		      __entry->len, __get_str(reason), __entry->netns));

/* The engine says that a message is complete, or that an RPC has failed. */
TRACE_EVENT(homa_msg_ready, TP_PROTO(const struct homa_event *event),
	    TP_ARGS(event),
	    TP_STRUCT__entry(__field(u64, id) __field(u8, kind)
				     __field(bool, private_rpc)),
	    TP_fast_assign(__entry->id = event->handle.id;
			   __entry->kind = (u8)event->kind;
			   __entry->private_rpc = event->private_rpc;),
	    TP_printk("id=%llu %s private=%u", __entry->id,
		      __print_symbolic(__entry->kind, HOMAK_EVENT_NAMES),
		      __entry->private_rpc));

/* The running thread has given an RPC to a thread in recvmsg(). */
TRACE_EVENT(homa_handoff,
	    TP_PROTO(u64 id, bool over, const struct task_struct *task),
	    TP_ARGS(id, over, task),
	    TP_STRUCT__entry(__field(u64, id) __field(pid_t, to)
				     __field(bool, over)),
	    TP_fast_assign(__entry->id = id; __entry->to = task->pid;
			   __entry->over = over;),
	    TP_printk("id=%llu to=%d complete=%u", __entry->id, __entry->to,
		      __entry->over));

/* recvmsg() returns the message or the failure. */
TRACE_EVENT(homa_rpc_take, TP_PROTO(const struct homa_msg_info *info),
	    TP_ARGS(info),
	    TP_STRUCT__entry(__field(u64, id) __field(u64, cookie)
				     __field(u32, length) __field(int, error)
					     __field(u8, kind)),
	    TP_fast_assign(__entry->id = info->id; __entry->cookie = info->cookie;
			   __entry->length = info->length;
			   __entry->error = info->error;
			   __entry->kind = (u8)info->kind;),
	    TP_printk("id=%llu %s length=%u error=%d cookie=%llu", __entry->id,
		      __print_symbolic(__entry->kind, HOMAK_EVENT_NAMES),
		      __entry->length, __entry->error, __entry->cookie));

/* Nothing refers to the RPC any more. */
TRACE_EVENT(homa_rpc_end, TP_PROTO(const struct homak_rpc *krpc), TP_ARGS(krpc),
	    TP_STRUCT__entry(__field(u64, id)),
	    TP_fast_assign(__entry->id = homa_rpc_handle(krpc->rpc).id;),
	    TP_printk("id=%llu", __entry->id));

#ifndef HOMAK_TRACE_CALLS
#define HOMAK_TRACE_CALLS
/* Traces a packet; a receiver calls it for each packet after homa_rx(). */
static inline void homak_trace_rx(struct homak_dev *hdev,
				  const struct homa_rx_pkt *pkt)
{
	trace_homa_rx(hdev, pkt);
	if (unlikely(pkt->verdict == HOMA_RX_DROP))
		trace_homa_drop(hdev->hnet, pkt->data, pkt->len,
				homa_metric_table[pkt->reason].name);
}
#endif

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE homa_trace
#include <trace/define_trace.h>
