/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of homa.ko share. The module is glue: the protocol is the
 * engine's (engine/), this host gives it packets (skbs), time, memory and
 * locks, and gives programs sockets.
 *
 * Objects. Per network namespace a struct homak_net, whose engine is made with
 * the first Homa socket in it. Per CPU and namespace a struct homak_cpu with the
 * engine's context. Per device a struct homak_dev with the engine's link. Per
 * socket a struct homak_sock, per RPC a struct homak_rpc (the engine's private
 * bytes).
 *
 * Calling the engine. homak_enter() turns bottom halves off, owns this CPU's memory
 * (homa_own.h) and gives its context; homak_leave() works off what the calls left
 * behind - events to sockets, packets to send, objects to free - and turns them on
 * again. Between the two nothing may sleep, and the work must be bounded. The engine takes its
 * own locks; the host's one lock (homak_sock.lock) is never held across an
 * engine call.
 *
 *	lock order: engine's locks | homak_sock.lock  (never nested in each other)
 *
 * Payload in. homa_rx() gives a verdict for each packet; payload of DATA stays
 * in its skb, which is queued at the RPC (homak_inbox_data()) and pins it. A
 * reader - a thread in recvmsg() - takes the queue, copies to the pages in its
 * address space and only then says homa_rx_copied(): so copying goes on while
 * later packets arrive, and a message is complete when it is in place.
 *
 * Payload out. sendmsg() copies into page fragments of the message (struct
 * homak_msg), which belong to the RPC; skbs are built from them at each
 * transmission and never kept.
 */
#ifndef HOMA_KERNEL_H
#define HOMA_KERNEL_H

#include <linux/hrtimer.h>
#include <linux/in6.h>
#include <linux/interrupt.h>
#include <linux/ipv6.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/inet_sock.h>
#include <net/netns/generic.h>
#include <net/sock.h>

#include "homa_compat.h"
#include "homa_engine.h"
#include "homa_host_metrics.h"
#include "homa_look.h"
#include "homa_own.h"
#include "homa_wire.h"
/* The engine and the socket API have these by the same names and values, the one
 * without sign. */
static_assert(HOMA_BPAGE_SIZE == 65536 && HOMA_MAX_BPAGES == 16);
#undef HOMA_BPAGE_SHIFT
#undef HOMA_BPAGE_SIZE
#undef HOMA_MAX_BPAGES
#include "homa_socket.h"
#include "homa_kobjects.h"

/* homa_addr.encap of a peer reached in TCP disguise; no UDP port is that low. */
#define HOMAK_ENCAP_TCP HOMA_IPPROTO_HIJACK

#define HOMAK_SPARES 8u		/* RPCs, peers and ranges a CPU keeps at hand */

/* ---- settings that are not the engine's; sysctl.c ---- */

/*
 * struct homak_settings - per namespace, written by sysctl, read anywhere with
 *	READ_ONCE
 * @poll_usecs: how long recvmsg() polls before it sleeps.
 * @early_path: packets are taken before routing where nothing forbids it (input_route.c).
 * @wmem_max: bytes of unfinished outgoing messages per socket, at most.
 * @max_gso_size: bytes of a multi-segment skb; 0: what the device takes.
 * @gso_force_software: segment here, never in the device.
 * @hijack_tcp, @hijack_udp: new sockets send in TCP disguise, in UDP.
 * @link_mbps: rate of devices that tell none; 0: not paced.
 * @max_nic_queue_usecs: the qdisc's limit of bytes in the device, as time.
 * @homa_share: percent of a congested device that Homa gets beside others (qdisc).
 * @priority_map: the priority on the wire of each of the engine's.
 * @unsched_cutoffs: see homa_engine_set_cutoffs(); all 0: the engine's choice.
 */
struct homak_settings {
	u32 poll_usecs;
	u32 early_path;
	u32 wmem_max;
	u32 max_gso_size;
	u32 gso_force_software;
	u32 hijack_tcp;
	u32 hijack_udp;
	u32 link_mbps;
	u32 max_nic_queue_usecs;
	u32 homa_share;
	u32 priority_map[HOMA_PRIORITIES];
	u32 unsched_cutoffs[HOMA_PRIORITIES];
};

/* ---- per network namespace ---- */

/*
 * struct homak_ends - where a packet came from, and the address of ours that it came to
 * @local: as IPv6 has it, IPv4's mapped; all 0: routing chooses one.
 */
struct homak_ends {
	struct homa_addr src;
	struct in6_addr local;
};

/* struct homak_cpu - one CPU's caller of a namespace's engine; who owns the CPU has it */
struct homak_cpu {
	struct homa_ctx ctx;
	struct homak_net *hnet;
	/* The ends of the packets that are being worked off; NULL: none are. */
	const struct homak_ends *heard;
	/* Somebody is between entering and leaving the engine, which must not nest. */
	bool in;
	/* Counters. Others than this CPU may add to them; see homak_host_count_at(). */
	u64 metrics[HOMAK_H_COUNT];
};

/* struct homak_dev - a network device and the engine's link for it */
struct homak_dev {
	/* In homak_net.devs, under RCU. The struct lives until the namespace ends; @dev
	 * becomes NULL when the device goes, and another device may come. */
	struct hlist_node node;
	struct homak_net *hnet;
	struct net_device __rcu *dev;
	int ifindex;
	/* Pulls packets from the engine again when its pacer says so. */
	struct hrtimer timer;
	/* Pulls again after a full turn, when others have had theirs. */
	struct tasklet_struct again;
	/* Asks the device for its rate and its MTU. */
	struct work_struct measure;
	struct homa_link *link;
	/* Instances of the "homa" qdisc that limit what leaves. If there are any, the link
	 * is paced by their room. */
	atomic_t q_limits;
	/* Bytes that those qdiscs want to have queued, and bytes that are queued. */
	atomic_t q_room;
	atomic_t q_bytes;
	/* The engine waits for room in a qdisc. */
	bool q_waits;
	/* Rate of the link in Mbit/s; 0: unknown. */
	u32 rate_mbps;
	/* When the link will have sent what the qdiscs handed on, as far as they know, ns. */
	atomic64_t q_idle_at;
};

#define HOMAK_DEV_BUCKETS 32u
#define HOMAK_USER_BITS 5
struct homak_routes;	/* tx: cache of routes */
struct homak_encap;	/* encap: UDP socket, hooks */
struct homak_early;	/* early: input routes */
struct homak_sysctl;	/* sysctl: tables */
struct homak_user;	/* user: who has sockets */

/*
 * struct homak_net - Homa in a network namespace
 * @engine: made with the first socket; never goes before the namespace does.
 *	Read with smp_load_acquire() (homak_net_engine()).
 * @cpus: contexts, made with the engine.
 * @memcg: who pays for what belongs to no socket, since the engine is there; NULL: the
 *	machine does.
 * @paused: nobody may enter: settings change, or the namespace ends.
 * @lock: set-up, settings; may sleep.
 * @params: settings of the engine, under @lock.
 * @users, @num_socks: who has sockets, and how many there are (sock_lock); user.c.
 * @moved: sockets that have left a port where RPCs of theirs may be (sockname.c).
 * @timer: homa_timer() of all shards, see timer.c; @timer_work runs it.
 */
struct homak_net {
	struct net *net;
	struct homa_engine *engine;
	struct homak_cpu __percpu *cpus;
	struct mem_cgroup *memcg;
	bool paused;
	struct mutex lock;
	struct homa_params params;
	struct homak_settings settings;
	spinlock_t dev_lock;
	struct hlist_head devs[HOMAK_DEV_BUCKETS];
	struct hrtimer timer;
	struct work_struct timer_work;
	int timer_rests;		/* nothing is armed, or not for long */
	struct list_head socks;		/* homak_sock.all, RCU; changed under sock_lock */
	spinlock_t sock_lock;
	struct hlist_head users[1 << HOMAK_USER_BITS];
	u32 num_socks;
	atomic_t moved;
	struct homak_routes *routes;
	struct homak_encap *encap;
	struct homak_early __percpu *early;
	struct homak_sysctl *sysctl;
};

extern unsigned int homak_net_id;

/** homak_net() - ours of a network namespace. */
static inline struct homak_net *homak_net(const struct net *net)
{
	return net_generic(net, homak_net_id);
}

/* ---- net.c: namespaces ---- */

/** homak_net_start() - make the engine if there is none; may sleep. */
int homak_net_start(struct homak_net *hnet);
/** homak_net_set_params() - settings of the engine; -EINVAL; may sleep. */
int homak_net_set_params(struct homak_net *hnet, const struct homa_params *params);
/** homak_net_set_cutoffs() - see homa_engine_fix_cutoffs(); -EAGAIN: no engine yet. */
int homak_net_set_cutoffs(struct homak_net *hnet, u32 levels, const u32 *sizes);
extern struct homa_limits homak_limits;

static inline struct homa_engine *homak_net_engine(const struct homak_net *hnet)
{
	return smp_load_acquire(&hnet->engine);
}

/* ---- enter.c ---- */

/**
 * homak_enter() - this CPU's context, bottom halves off; NULL: the namespace has
 * no engine or is paused (then they are on again). With spares enough for 8
 * packets or one system call.
 */
struct homak_cpu *homak_enter(struct homak_net *hnet);
/** homak_refill() - spares, between engine calls on more packets. */
void homak_refill(struct homak_cpu *cpu);
/** homak_leave() - events, transmission, retired objects; bottom halves on. */
void homak_leave(struct homak_cpu *cpu);
/** homak_enter_wait() - process context: as homak_enter(), but waits out a pause. */
struct homak_cpu *homak_enter_wait(struct homak_net *hnet);

/** homak_host_count_at() - outside the engine, on any processor. */
static inline void homak_host_count_at(struct homak_net *hnet, enum homak_host_metric m,
				       u64 n)
{
	this_cpu_add(hnet->cpus->metrics[m], n);
}

static inline void homak_host_count(struct homak_cpu *cpu, enum homak_host_metric m,
				    u64 n)
{
	/* Where we may be stopped in the middle of it, others count here meanwhile. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		homak_host_count_at(cpu->hnet, m, n);
	else
		cpu->metrics[m] += n;
}

/* ---- inbox.c: from the engine to readers ---- */

/* Has the packet payload for a reader? */
static inline bool homak_rx_has_data(const struct homa_rx_pkt *pkt)
{
	return pkt->verdict == HOMA_RX_DATA || pkt->verdict == HOMA_RX_MESSAGE;
}

/**
 * homak_inbox_data() - queue a packet with verdict HOMA_RX_DATA; takes over @skb and the
 * packet's pin of the RPC. @at: first payload byte to copy, from skb->data.
 * Bottom halves off, no lock held. Wakes whoever waits.
 */
void homak_inbox_data(struct homak_cpu *cpu, struct homa_rx_pkt *pkt,
		      struct sk_buff *skb, u32 at);
/** homak_given_add() - the same for HOMA_RX_MESSAGE; one_packet.c. */
void homak_given_add(struct homak_cpu *cpu, const struct homa_rx_pkt *pkt,
		     struct sk_buff *skb, u32 at);
/** homak_inbox_event() - a message complete or failed; takes over event->rpc's hold. */
void homak_inbox_event(struct homak_cpu *cpu, struct homa_event *event);
/** homak_inbox_purge() - a socket closes: let go of all RPCs it lists. Some at a
 *  time: true while there is more. */
bool homak_inbox_purge(struct homak_cpu *cpu, struct homak_sock *hsk);
/** homak_rpc_retired() - free what the host kept with an RPC the engine retired. */
void homak_rpc_retired(struct homak_rpc *krpc);
/** homak_inbox_wake_all() - everybody leaves recvmsg() (shutdown, close). */
void homak_inbox_wake_all(struct homak_sock *hsk);

/* ---- msg.c: bytes of outgoing messages ---- */

/**
 * struct homak_msg - an outgoing message; small ones are @small, one allocation
 * @length: bytes in all. @filled: copied so far.
 * @hsk: charged for it (homak_sock.tx_bytes and sk_wmem), holds a reference.
 */
/** homak_msg_new() - -ENOMEM, -ENOBUFS as ERR_PTR; may sleep. */
struct homak_msg *homak_msg_new(struct homak_sock *hsk, u32 length);
/** homak_msg_fill() - copy up to message byte @upto; 0, -EFAULT or -ENOMEM; may sleep. */
int homak_msg_fill(struct homak_msg *msg, struct iov_iter *from, u32 upto);
/** homak_msg_free() - any context. */
void homak_msg_free(struct homak_msg *msg);
u32 homak_msg_length(const struct homak_msg *msg);
/** homak_msg_to_skb() - append message bytes [offset, offset + length) to @skb: small
 *  pieces copied into its linear part if there is tailroom, else page fragments
 *  with references. 0 or -ENOMEM/-EMSGSIZE (too many fragments). */
int homak_msg_to_skb(const struct homak_msg *msg, struct sk_buff *skb, u32 offset,
		     u32 length);
/** homak_msgs_exit() - free what is kept for later; no message exists any more. */
void homak_msgs_exit(void);

/* ---- dev.c: devices and links ---- */

/** homak_dev_get() - of a device; makes it if need be. Bottom halves off or RCU read
 *  side; NULL: no memory or device going. */
struct homak_dev *homak_dev_get(struct homak_net *hnet, struct net_device *dev);
#define HOMAK_DEV_LINK ALIGN(sizeof(struct homak_dev), 64)
/** homak_dev_of() - back from the engine's link, which stands so far behind it. */
static inline struct homak_dev *homak_dev_of(struct homa_link *link)
{
	return (struct homak_dev *)((char *)link - HOMAK_DEV_LINK);
}

int homak_dev_init(void);	/* notifier */
void homak_dev_exit(void);
void homak_devs_stop(struct homak_net *hnet);	/* timers, before homak_devs_free() */
void homak_devs_free(struct homak_net *hnet);
/** homak_devs_derive() - settings changed: values of links follow, soon. */
void homak_devs_derive(struct homak_net *hnet);

/* ---- tx.c, route.c: packets out ---- */

/**
 * homak_xmit() - pull from a link and transmit until the engine has nothing, its
 * pacer or the device says wait (timer armed), or a turn is full (homak_dev.again
 * scheduled). Between homak_enter() and homak_leave().
 */
void homak_xmit(struct homak_cpu *cpu, struct homak_dev *hdev);
/** homak_xmit_now() - send what the engine put into homa_ctx.tx_now. */
void homak_xmit_now(struct homak_cpu *cpu, struct homa_tx_desc *desc);
/** homak_xmit_all() - every device of the namespace. */
void homak_xmit_all(struct homak_cpu *cpu);

/**
 * homak_route_out() - where packets to @dst go, for sendmsg(): the device (RCU,
 * bottom halves off), the path's MTU and our address. Errors as ERR_PTR: -ENETUNREACH ...
 */
struct homak_dev *homak_route_out(struct homak_cpu *cpu, struct homak_sock *hsk,
				  const struct homa_addr *dst, u32 *mtu,
				  struct in6_addr *local);
int homak_routes_init(struct homak_net *hnet);
void homak_routes_free(struct homak_net *hnet);
/** homak_routes_flush() - a device goes: let go of all routes. May sleep. */
void homak_routes_flush(struct homak_net *hnet);

/* ---- rx.c, gro.c, icmp.c, rx_switches.c: packets in ---- */

int homak_rx_init(void);		/* protocol handlers and offloads, v4 and v6 */
void homak_rx_exit(void);
/** homak_rx_skb() - a Homa packet (or several: GRO's frag_list) behind its IP header,
 *  skb->data at the Homa header; @encap as in homa_addr. Consumes @skb. Bottom
 *  halves off. */
void homak_rx_skb(struct homak_net *hnet, struct sk_buff *skb, u16 encap);
int homak_encap_set(struct homak_net *hnet, bool udp, bool tcp); /* may sleep */
/** homak_early_set() - the early path (see input_route.c); may sleep. On when the namespace
 *  gets its engine unless settings.early_path is 0. */
int homak_early_set(struct homak_net *hnet, bool on);
int homak_encap_init(struct homak_net *hnet);
void homak_encap_free(struct homak_net *hnet);

/* ---- timer.c ---- */

void homak_timers_init(struct homak_net *hnet);
void homak_timers_stop(struct homak_net *hnet);
/** homak_timer_want() - there are RPCs: let it run. Any context. */
void homak_timer_want(struct homak_net *hnet);

/* ---- socket.c, send.c, recv.c, ioctl.c ---- */

int homak_sockets_init(void);	/* register protocols and socket types */
void homak_sockets_exit(void);
int homak_sendmsg(struct sock *sk, struct msghdr *msg, size_t len);
int homak_recvmsg_common(struct sock *sk, struct msghdr *msg, size_t len, int flags);
int homak_ioctl_common(struct sock *sk, unsigned int cmd, void __user *arg);
/** homak_sock_room() - below wmem_max? */
static inline bool homak_sock_room(struct homak_sock *hsk)
{
	return atomic64_read(&hsk->tx_bytes) <
	       READ_ONCE(hsk->hnet->settings.wmem_max);
}


/* ---- sysctl.c, metrics.c, diag.c ---- */

void homak_settings_default(struct homak_settings *settings);
int homak_sysctl_init(struct homak_net *hnet);
void homak_sysctl_free(struct homak_net *hnet);
/** homak_sysctl_started() - there is an engine now: what waited for it. May sleep. */
void homak_sysctl_started(struct homak_net *hnet);
int homak_proc_init(struct homak_net *hnet);
void homak_proc_free(struct homak_net *hnet);
/** homak_metric_sum() - over CPUs. */
u64 homak_metric_sum(struct homak_net *hnet, enum homa_metric metric);
u64 homak_host_metric_sum(struct homak_net *hnet, enum homak_host_metric metric);
int homak_diag_init(void);
void homak_diag_exit(void);

#include "homa_kaddr.h"

#endif
