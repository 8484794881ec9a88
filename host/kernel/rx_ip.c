// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Where IP hands over packets of our protocol, of IPv4 and of IPv6. It has bottom halves turned
 * off, but does not promise that.
 */
#include <net/protocol.h>

#include "homa_receive.h"

void homak_rx_skb(struct homak_net *hnet, struct sk_buff *skb, u16 encap,
		  bool looked_up)
{
	local_bh_disable();
	homak_rx_routed(hnet, skb, encap, NULL, looked_up);
	local_bh_enable();
}

static int homak_rx_ip(struct sk_buff *skb)
{
	struct homak_net *hnet = homak_net(dev_net(skb->dev));

	homak_rx_skb(hnet, skb, 0, READ_ONCE(hnet->flows));
	return 0;
}

static const struct net_protocol homak_protocol_v4 = {
	.handler = homak_rx_ip,
	.err_handler = homak_icmp_err_v4,
};

static const struct inet6_protocol homak_protocol_v6 = {
	.handler = homak_rx_ip,
	.err_handler = homak_icmp_err_v6,
	.flags = INET6_PROTO_FINAL,
};

int homak_rx_init(void)
{
	int err = inet_add_protocol(&homak_protocol_v4, HOMA_IPPROTO);

	if (err)
		return err;
	err = inet6_add_protocol(&homak_protocol_v6, HOMA_IPPROTO);
	if (err)
		goto no_v6;
	err = homak_gro_init();
	if (!err)
		return 0;
	inet6_del_protocol(&homak_protocol_v6, HOMA_IPPROTO);
no_v6:
	inet_del_protocol(&homak_protocol_v4, HOMA_IPPROTO);
	return err;
}

void homak_rx_exit(void)
{
	homak_gro_exit();
	inet6_del_protocol(&homak_protocol_v6, HOMA_IPPROTO);
	inet_del_protocol(&homak_protocol_v4, HOMA_IPPROTO);
}
