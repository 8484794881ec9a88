/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The queueing discipline "homa" as tc and programs see it: options and their
 * netlink attributes. Without options it works from net.homa's settings.
 */
#ifndef HOMA_QDISC_H
#define HOMA_QDISC_H

/* Attributes of TCA_OPTIONS. */
enum homa_qdisc_attr {
	HOMA_QDISC_ATTR_NONE,
	/* u32: most packets of others that may wait; default 10240. */
	HOMA_QDISC_ATTR_LIMIT,
	/* u32: share of Homa when both wait, percent; 0: net.homa.homa_share. */
	HOMA_QDISC_ATTR_SHARE,
	HOMA_QDISC_ATTR_COUNT,
};

#define HOMA_QDISC_ATTR_MAX (HOMA_QDISC_ATTR_COUNT - 1)
#define HOMA_QDISC_LIMIT 10240u
#define HOMA_QDISC_LIMIT_MAX 32767

#endif
