// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is switched on the way in. Receiving in disguise: inside UDP
 * (encap_udp.c) and as TCP (disguise_tcp.c), each switched per namespace and off
 * unless asked for. While off, nothing of it is in the way of other traffic: no
 * socket, no hook, no static key. The early path (prerouting.c) has a switch of the
 * same kind.
 *
 * A host that only receives disguised packets needs the switch too, unlike with
 * the existing module, which looks at all of TCP always. Packets that arrive
 * in a disguise are answered in it: it is part of the peer's address.
 */
#include <linux/slab.h>

#include "homa_receive.h"

/* struct homak_encap - the switches that are on; under @lock */
struct homak_encap {
	/* Held while a switch changes. */
	struct mutex lock;
	/* The sockets for IPv4 and IPv6 by which packets in UDP come; NULL: off. */
	struct socket *udp[2];
	/* True if packets in TCP disguise are taken. */
	bool tcp;
};

int homak_encap_init(struct homak_net *hnet)
{
	struct homak_encap *encap = kzalloc(sizeof(*encap), GFP_KERNEL);

	if (!encap)
		return -ENOMEM;
	mutex_init(&encap->lock);
	hnet->encap = encap;
	return 0;
}

int homak_prerouting_set(struct homak_net *hnet, bool on)
{
	struct homak_encap *encap = hnet->encap;
	int err = 0;

	mutex_lock(&encap->lock);
	if (on && !hnet->flows)
		err = homak_prerouting_on(hnet);
	else if (!on && hnet->flows)
		homak_prerouting_off(hnet);
	mutex_unlock(&encap->lock);
	return err;
}

int homak_encap_set(struct homak_net *hnet, bool udp, bool tcp)
{
	struct homak_encap *encap = hnet->encap;
	bool udp_is = false, new_udp = false;
	int err = 0;

	mutex_lock(&encap->lock);
	udp_is = encap->udp[0];
	if (udp && !udp_is) {
		err = homak_udp_on(hnet, encap->udp);
		new_udp = !err;
	}
	if (!err && tcp && !encap->tcp) {
		err = homak_disguise_on(hnet->net);
		encap->tcp = !err;
		if (err && new_udp)
			homak_udp_off(encap->udp);
	}
	if (!err && !udp && udp_is)
		homak_udp_off(encap->udp);
	if (!err && !tcp && encap->tcp) {
		homak_disguise_off(hnet->net);
		encap->tcp = false;
	}
	mutex_unlock(&encap->lock);
	return err;
}

void homak_encap_free(struct homak_net *hnet)
{
	struct homak_encap *encap = hnet->encap;

	if (!encap)
		return;
	homak_prerouting_set(hnet, false);
	homak_encap_set(hnet, false, false);
	/* a packet may still be on its way through the hooks */
	synchronize_net();
	hnet->encap = NULL;
	mutex_destroy(&encap->lock);
	kfree(encap);
}
