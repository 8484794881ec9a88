/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What module.c, net.c and enter.c share: set-up and tear-down of all parts. */
#ifndef HOMA_NET_H
#define HOMA_NET_H

#include "homa_kernel.h"

int homak_memory_init(void); /* enter.c: object caches */
void homak_memory_exit(void);
int homak_nets_init(void); /* net.c */
void homak_nets_exit(void);
/** homak_cpus_alloc() - makes a context for each CPU; 0 or -ENOMEM. */
int homak_cpus_alloc(struct homak_net *hnet, struct homa_engine *engine);
/**
 * homak_cpus_free() - frees the contexts and all spare objects, when no thread can enter
 * any more.
 */
void homak_cpus_free(struct homak_net *hnet);

/* What can be left out (Kbuild). */

#if IS_ENABLED(CONFIG_HOMA_QDISC)
int homak_qdisc_init(void); /* qdisc/qdisc.c */
void homak_qdisc_exit(void);
#else
static inline int homak_qdisc_init(void)
{
	return 0;
}

static inline void homak_qdisc_exit(void)
{
}
#endif

#if IS_ENABLED(CONFIG_HOMA_STREAM)
int homak_streams_init(void); /* stream/stream_sock.c */
void homak_streams_exit(void);
#else
static inline int homak_streams_init(void)
{
	return 0;
}

static inline void homak_streams_exit(void)
{
}
#endif

#if IS_ENABLED(CONFIG_HOMA_DIAG)
int homak_proc_init(struct homak_net *hnet); /* observe/metrics.c */
void homak_proc_free(struct homak_net *hnet);
int homak_diag_init(void); /* observe/diag.c */
void homak_diag_exit(void);
#else
static inline int homak_proc_init(struct homak_net *hnet)
{
	return 0;
}

static inline void homak_proc_free(struct homak_net *hnet)
{
}

static inline int homak_diag_init(void)
{
	return 0;
}

static inline void homak_diag_exit(void)
{
}
#endif

#endif
