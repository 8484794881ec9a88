// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The backend for a message NIC: opening it, and its list of calls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"

static void message_close(struct nic *nic)
{
	struct message *m = message_of(nic);

	message_hub_leave(m);
	message_ctl_close(m);
	free(m->bufs);
	free(m);
}

static void message_flush(struct nic *nic)
{
	(void)nic; /* Each frame has rung the doorbell, if need be. */
}

static void message_learn(struct nic *nic, const struct nic_way *way)
{
	nic_path_learn(&nic_ether_of(nic)->paths, way);
}

static void message_update_stats(struct nic *nic)
{
	nic->stats.kernel_asked = nic_ether_of(nic)->paths.asked;
}

static const struct nic_ops message_ops = {
	.close = message_close,
	.rx = message_rx,
	.rx_release = message_rx_release,
	.tx_room = message_tx_room,
	.tx = message_tx,
	.flush = message_flush,
	.errors = nic_ether_errors,
	.port_unreachable = nic_ether_port_unreachable,
	.fd = nic_ether_fd,
	.arm = message_arm,
	.believe_mtu = nic_ether_believe_mtu,
	.route = nic_ether_route,
	.ask_by = nic_ether_ask_by,
	.learn = message_learn,
	.has_address = nic_ether_has_address,
	.update_stats = message_update_stats,
};

static int open_bufs(struct message *m)
{
	m->bufs = malloc((size_t)MESSAGE_BUFS * MESSAGE_BUF_BYTES);
	if (!m->bufs)
		return -ENOMEM;
	for (u32 i = 0; i < MESSAGE_BUFS; i++)
		m->free[m->n_free++] = i;
	return 0;
}

static int open_hub(struct message *m, const struct nic_config *config,
		    char *err, size_t errlen)
{
	const struct message *beside = NULL;
	int rc = 0;

	if (config->beside && config->beside->ops != &message_ops)
		rc = -EINVAL;
	else if (config->beside)
		beside = message_of(config->beside);
	if (!rc)
		rc = message_hub_join(m, beside, config->part, config->parts);
	return rc ? nic_fail(err, errlen, rc,
			     "the message NIC of %s has no part %u",
			     config->interface, config->part) :
		    0;
}

int nic_message_open(struct nic **out, const struct nic_config *config,
		     char *err, size_t errlen)
{
	struct message *m;
	int rc;

	if (!config->interface)
		return nic_fail(err, errlen, -EINVAL,
				"a message NIC is named by its network interface");
	m = calloc(1, sizeof(*m));
	if (!m || open_bufs(m)) {
		free(m);
		return nic_fail(err, errlen, -ENOMEM, "out of memory");
	}
	nic_ether_init(&m->eth, &message_ops);
	m->eth.nic.info.name = "message";
	m->timer = m->calling = -1;
	m->no_offload = config->no_offload;
	rc = open_hub(m, config, err, errlen);
	if (!rc)
		rc = nic_ether_find(&m->eth, config, err, errlen);
	if (!rc)
		rc = message_ctl_open(m, err, errlen);
	if (!rc)
		rc = message_connect(m, err, errlen);
	if (rc) {
		message_close(&m->eth.nic);
		return rc;
	}
	*out = &m->eth.nic;
	return 0;
}
