/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the receiving files share: rx.c (buffers to engine packets), gro.c
 * (batches), icmp.c (errors), encap_udp.c and disguise_tcp.c.
 */
#ifndef HOMA_RECEIVE_H
#define HOMA_RECEIVE_H

#include "homa_kernel.h"

/*
 * Low bit of DATA's doff byte: a buffer with several segments whose payload
 * is in one piece behind one header (see gso.c). Only between two stacks of
 * this module on one machine; segmentation clears it.
 */
#define HOMA_DOFF_ONE_PIECE 0x01

/** homa_gso_segment() - gso.c: @skb->data at the Homa header, any of our forms */
struct sk_buff *homa_gso_segment(struct sk_buff *skb, netdev_features_t features);

/** homa_rx_routed() - as homa_rx_skb(); @looked_up: routing was asked for this very
 *  buffer, so its answer is news to the early path. */
void homa_rx_routed(struct homa_net *hnet, struct sk_buff *skb, u16 encap,
		    bool looked_up);

/** homa_policy_in() - may the socket that @skb is for have it? Between homa_enter() and
 *  homa_leave(); skb->data at the Homa header. policy.c */
bool homa_policy_in(struct homa_cpu *cpu, const struct homa_addr *src,
		    struct sk_buff *skb);

/* gro.c */
int homa_gro_init(void);
void homa_gro_exit(void);
/** homa_gro_split() - take the batch @skb apart: it becomes its own first packet, the
 *  others are returned as a list (skb->next), each as if IP had delivered it
 *  alone. NULL: there are no others. */
struct sk_buff *homa_gro_split(struct sk_buff *skb);

/* icmp.c */
int homa_icmp_err_v4(struct sk_buff *skb, u32 info);
int homa_icmp_err_v6(struct sk_buff *skb, struct inet6_skb_parm *opt, u8 type,
		     u8 code, int offset, __be32 info);
/** homa_icmp_quoted() - an ICMP error quotes a packet of ours to @peer
 *  @at: of the Homa header, from skb->data; @err: errno, positive; EMSGSIZE:
 *  the path takes @mtu at most. True: that was believed. */
bool homa_icmp_quoted(struct homa_net *hnet, struct sk_buff *skb, int at,
		      const struct homa_addr *peer, int err, u32 mtu);
/** homa_icmp_errno_v4() - 0: not an error that ends anything. */
int homa_icmp_errno_v4(u8 type, u8 code);
int homa_icmp_errno_v6(u8 type, u8 code);

/* encap_udp.c, disguise_tcp.c */
int homa_udp_on(struct homa_net *hnet, struct socket *socks[2]);
void homa_udp_off(struct socket *socks[2]);
int homa_disguise_on(struct net *net);
void homa_disguise_off(struct net *net);

/* input_route.c */
int homa_early_on(struct homa_net *hnet);
void homa_early_off(struct homa_net *hnet);
/** homa_early_learn() - @skb came to us by IP's way: remember its route. Bottom halves
 *  off; skb->data at the Homa header. */
void homa_early_learn(struct homa_net *hnet, const struct sk_buff *skb);

#endif
