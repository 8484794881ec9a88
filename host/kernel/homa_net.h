/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What module.c, net.c and enter.c share: set-up and tear-down. */
#ifndef HOMA_NET_H
#define HOMA_NET_H

#include "homa_kernel.h"

/** homa_net_gfp() - for memory of a namespace, in process context. */
static inline gfp_t homa_net_gfp(const struct homa_net *hnet)
{
	return hnet->memcg ? GFP_KERNEL_ACCOUNT : GFP_KERNEL;
}

int homa_memory_init(void);	/* enter.c: object caches */
void homa_memory_exit(void);
int homa_qdisc_init(void);	/* qdisc.c */
void homa_qdisc_exit(void);
int homa_nets_init(void);	/* net.c */
void homa_nets_exit(void);
/** homa_cpus_alloc() - a context per CPU; 0 or -ENOMEM. */
int homa_cpus_alloc(struct homa_net *hnet, struct homa_engine *engine);
/** homa_cpus_free() - with all objects; nobody enters any more. */
void homa_cpus_free(struct homa_net *hnet);

#endif
