// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The embedded host as libhoma's core sees it. */
#include "embedded.h"

const struct homa_backend_ops *homa_backend_get(void)
{
	static const struct homa_backend_ops ops = {
		.abi = HOMA_BACKEND_ABI,
		.open = homa_emb_open,
		.close = homa_emb_close,
		.bind = homa_emb_bind,
		.getsockname = homa_emb_getsockname,
		.udp_port = homa_emb_udp_port,
		.request = homa_emb_request,
		.reply = homa_emb_reply,
		.receive = homa_emb_receive,
		.receive_batch = homa_emb_receive_batch,
		.release = homa_emb_release,
		.abort = homa_emb_abort,
		.fd = homa_emb_fd,
		.poll = homa_emb_poll,
		.metrics = homa_emb_metrics,
		.fd_edges = homa_emb_fd_edges,
		.set_region = homa_emb_set_region,
		.listen = homa_emb_listen,
		.release_pages = homa_emb_release_pages,
		.rpcs = homa_emb_rpcs,
		.shutdown = homa_emb_shutdown,
		.reject = homa_emb_reject,
		.alive = homa_emb_alive,
		.wait_send = homa_emb_wait_send,
		.send_fd = homa_emb_send_fd,
	};

	return &ops;
}
