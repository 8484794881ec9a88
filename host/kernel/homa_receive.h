/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the receiving files share: rx.c (buffers to engine packets), gro.c
 * (batches), icmp.c (errors), encap_udp.c and disguise_tcp.c. Some of them can be left out
 * (Kbuild); then a function that does nothing, or refuses, stands in.
 */
#ifndef HOMA_RECEIVE_H
#define HOMA_RECEIVE_H

#include "homa_kernel.h"

/*
 * Low bit of DATA's doff byte: a buffer with several segments whose payload is in one piece
 * behind one header (see gso.c). It occurs only between two stacks of this module on one
 * machine; segmentation clears it.
 */
#define HOMAK_DOFF_ONE_PIECE 0x01
/* The most segments of a buffer, whatever a guest says of its frame: 64 KB on a path with an MTU of
 * 330. */
#define HOMAK_GSO_MOST 256u

/** homak_gso_segment() - cuts @skb into packets; it is in any of our forms, and skb->data is at
 *  the Homa header; gso.c */
#if IS_ENABLED(CONFIG_HOMA_GSO)
struct sk_buff *homak_gso_segment(struct sk_buff *skb,
				  netdev_features_t features);
#else
static inline struct sk_buff *homak_gso_segment(struct sk_buff *skb,
						netdev_features_t features)
{
	return ERR_PTR(-EPROTONOSUPPORT);
}
#endif

/** homak_rx_routed() - does the same as homak_rx_skb(), where bottom halves are off. @hdev is the
 *  struct of its device if that is known, else NULL. */
void homak_rx_routed(struct homak_net *hnet, struct sk_buff *skb, u16 encap,
		     struct homak_dev *hdev, bool looked_up);

/**
 * homak_policy_in() - may the socket that @skb, which came from @hdev, is for have it? Returns
 * SKB_NOT_DROPPED_YET, or why not. Called between homak_enter() and homak_leave(), with skb->data
 * at the Homa header. policy.c
 */
HOMAK_HOT enum skb_drop_reason homak_policy_in(struct homak_cpu *cpu,
					       const struct homak_dev *hdev,
					       const struct homa_addr *src,
					       struct sk_buff *skb);

/* gro.c */
#if IS_ENABLED(CONFIG_HOMA_GRO)
int homak_gro_init(void);
void homak_gro_exit(void);
/** homak_gro_split() - take the batch @skb apart: it becomes its own first packet, the
 *  others are returned as a list (skb->next), each as if IP had delivered it
 *  alone. NULL: there are no others; an ERR_PTR: nobody knows where they begin. */
struct sk_buff *homak_gro_split(struct sk_buff *skb);
#else
static inline int homak_gro_init(void)
{
	return 0;
}

static inline void homak_gro_exit(void)
{
}

static inline struct sk_buff *homak_gro_split(struct sk_buff *skb)
{
	return NULL;
}
#endif

/* icmp.c */
int homak_icmp_err_v4(struct sk_buff *skb, u32 info);
int homak_icmp_err_v6(struct sk_buff *skb, struct inet6_skb_parm *opt, u8 type,
		      u8 code, int offset, __be32 info);
/** homak_icmp_quoted() - is given an ICMP error that quotes a packet of ours to @peer, whose
 *  Homa header lies @at bytes from skb->data. @err is a positive errno; EMSGSIZE says that
 *  the path takes at most @mtu bytes. Returns true if the error was believed. */
bool homak_icmp_quoted(struct homak_net *hnet, struct sk_buff *skb, int at,
		       const struct homa_addr *peer, int err, u32 mtu);
/** homak_icmp_errno_v4() - returns the errno for an ICMP error; 0: it ends nothing. */
int homak_icmp_errno_v4(u8 type, u8 code);
int homak_icmp_errno_v6(u8 type, u8 code);

/* encap_udp.c, disguise_tcp.c */
#if IS_ENABLED(CONFIG_HOMA_DISGUISE)
int homak_udp_on(struct homak_net *hnet, struct socket *socks[2]);
void homak_udp_off(struct socket *socks[2]);
int homak_disguise_on(struct net *net);
void homak_disguise_off(struct net *net);
#else
static inline int homak_udp_on(struct homak_net *hnet, struct socket *socks[2])
{
	return -EOPNOTSUPP;
}

static inline void homak_udp_off(struct socket *socks[2])
{
}

static inline int homak_disguise_on(struct net *net)
{
	return -EOPNOTSUPP;
}

static inline void homak_disguise_off(struct net *net)
{
}
#endif

#if IS_ENABLED(CONFIG_HOMA_EARLY_PATH)
/* prerouting.c */
int homak_prerouting_on(struct homak_net *hnet);
void homak_prerouting_off(struct homak_net *hnet);

/* flow.c */
/** homak_flows_make() - gives the namespace empty tables; 0 or -ENOMEM; may sleep. */
int homak_flows_make(struct homak_net *hnet);
/**
 * homak_flows_free() - frees the tables, when no packet can use them any more; may sleep.
 */
void homak_flows_free(struct homak_net *hnet);
/** homak_flow_learn() - remembers how @skb came to us by IP's way from @hdev. Bottom halves are
 *  off, and skb->data is at the Homa header. */
void homak_flow_learn(struct homak_net *hnet, struct homak_dev *hdev,
		      const struct sk_buff *skb);
#else
static inline int homak_prerouting_on(struct homak_net *hnet)
{
	return -EOPNOTSUPP;
}

static inline void homak_prerouting_off(struct homak_net *hnet)
{
}

static inline void homak_flow_learn(struct homak_net *hnet,
				    struct homak_dev *hdev,
				    const struct sk_buff *skb)
{
}
#endif

#endif
