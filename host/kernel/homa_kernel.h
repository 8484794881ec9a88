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
#include <linux/ipv6.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/inet_sock.h>
#include <net/netns/generic.h>
#include <net/sock.h>

#include "homa_compat.h"
#include "homa_engine.h"
#include "homa_host_metrics.h"
#include "homa_later.h"
#include "homa_look.h"
#include "homa_own.h"
#include "homa_wire.h"
/* The engine and the socket API have these constants by the same names and values, the one
 * without sign. */
static_assert(HOMA_BPAGE_SIZE == 65536 && HOMA_MAX_BPAGES == 16);
#undef HOMA_BPAGE_SHIFT
#undef HOMA_BPAGE_SIZE
#undef HOMA_MAX_BPAGES
#include "homa_socket.h"
#include "homa_kobjects.h"

/* homa_addr.encap of a peer reached in TCP disguise; no UDP port is that low. */
#define HOMAK_DISGUISE_TCP HOMA_IPPROTO_HIJACK

/* Marks such a function of this host, as HOMA_HOT does one of the engine. */
#define HOMAK_HOT HOMA_HOT

/* The number of spare RPCs, peers and ranges that a context has when the engine is
 * entered. */
#define HOMAK_SPARES 8u

/* ---- settings that are not the engine's; sysctl.c ---- */

/*
 * struct homak_settings - a namespace's settings
 *
 * Written by: whoever writes a sysctl; read by: anybody at any time, with READ_ONCE().
 */
struct homak_settings {
	/* The time that recvmsg() looks for a message before it sleeps, us; 0: it does not. */
	u32 poll_usecs;
	/* Packets are taken before routing where nothing forbids it (prerouting.c). */
	u32 early_path;
	/* The most bytes of unfinished outgoing messages that a socket may have. */
	u32 wmem_max;
	/* The most bytes of a multi-segment skb; 0: as many as the device takes. */
	u32 max_gso_size;
	/* The module cuts multi-segment skbs itself and never leaves that to the device. */
	u32 gso_force_software;
	/* New sockets send in TCP disguise. */
	u32 hijack_tcp;
	/* New sockets send in UDP. */
	u32 hijack_udp;
	/* The rate of devices that tell none, Mbit/s; 0: they are not paced. */
	u32 link_mbps;
	/* The most that the qdisc lets wait in the device, as the time to send it, us. */
	u32 max_nic_queue_usecs;
	/* The share of a congested device that Homa gets beside others (qdisc), percent. */
	u32 homa_share;
	/* The priority on the wire that each of the engine's priorities becomes. */
	u32 priority_map[HOMA_PRIORITIES];
	/* The argument of homa_engine_fix_cutoffs(); all 0: the engine chooses. */
	u32 unsched_cutoffs[HOMA_PRIORITIES];
};

/* ---- per network namespace ---- */

/* struct homak_cpu - how one CPU calls a namespace's engine. Written by: the CPU's owner
 * (homa_own.h), unless a field says otherwise. */
struct homak_cpu {
	/* The engine's context: spare memory, events, counters. */
	struct homa_ctx ctx;
	/* The namespace; constant. */
	struct homak_net *hnet;
	/* True while the CPU is between homak_enter() and homak_leave(), which must not
	 * nest. */
	bool in;
	/* Counters of the host. Other CPUs may add to them, too; see
	 * homak_host_count_at(). */
	u64 metrics[HOMAK_H_COUNT];
};

/*
 * struct homak_dev - a network device and the engine's link for it
 * Written by: dev.c, which finds, measures and forgets devices, unless a field says otherwise;
 * read by: any CPU, under RCU.
 */
struct homak_dev {
	/* Links it into homak_net.devs, which is read under RCU. The struct lives until the
	 * namespace ends. @dev becomes NULL when the device goes, and another may come. */
	struct hlist_node node;
	/* The namespace; constant. */
	struct homak_net *hnet;
	/* The device, under RCU; NULL: it has gone. */
	struct net_device __rcu *dev;
	/* The device's index in its namespace, by which it is found. */
	int ifindex;
	/* Pulls packets from the engine again when its pacer says so. */
	struct hrtimer timer;
	/* Pulls again after a full turn, when other softirqs have had theirs. */
	struct homak_later again;
	/* Asks the device for its rate, its MTU and what is below it. */
	struct work_struct measure;
	/* The engine's link for packets of the device: its own, which is in the same piece of
	 * memory (homak_dev_own()), or that of the device below it by which they leave. Read
	 * with READ_ONCE(), as it may change at any time; whichever it was lives as long. */
	struct homa_link *link;
	/* The structs of the devices above that have its link, by their @shares. Guarded by
	 * homak_net.dev_lock. */
	struct hlist_head sharers;
	/* Links it into the list of the struct whose link it has, unless that is its own. Guarded
	 * by homak_net.dev_lock. */
	struct hlist_node shares;
	/* Links it into homak_net.devs_left while it has no device. Guarded by
	 * homak_net.dev_lock. */
	struct list_head left;
	/* The number of instances of the "homa" qdisc that limit what leaves the device. If
	 * it is not 0, the link is paced by their room. */
	atomic_t q_limits;
	/* The number of bytes of Homa that these qdiscs let wait in them, all together. The
	 * qdiscs write it. */
	atomic_t q_room;
	/* The number of bytes of Homa that this host has sent and that wait in these qdiscs. They
	 * write it. */
	atomic_t q_bytes;
	/* True if the engine has packets that wait for room in these qdiscs. homak_xmit()
	 * sets it, and the qdisc that makes room clears it. */
	bool q_waits;
	/* Rate of the link in Mbit/s; 0: unknown. */
	u32 rate_mbps;
	/* The time at which the device will have sent all that the qdiscs gave it, as far
	 * as they know, ns. */
	atomic64_t q_idle_at;
};

#define HOMAK_DEV_BUCKETS 256u
#define HOMAK_USER_BITS 5
struct homak_route;    /* a way to a peer, remembered; homa_transmit.h */
struct homak_routes;   /* the cache of routes; route.c */
struct homak_encap;    /* the UDP socket and the hooks of both disguises */
struct homak_rx_flows; /* flows that a CPU remembers; homa_flow.h */
struct homak_sysctl;   /* the tables of settings; sysctl.c */
struct homak_user;     /* a user who has sockets; user.c */

/*
 * struct homak_net - Homa in a network namespace
 * Guarded by: @lock, unless a field says otherwise; what is made at the start stays until the
 * namespace ends.
 */
struct homak_net {
	/* The kernel's namespace; constant. */
	struct net *net;
	/* The engine. It is made with the first socket, and stays until the namespace ends.
	 * Read with smp_load_acquire() (homak_net_engine()). */
	struct homa_engine *engine;
	/* A context for each CPU; made with the engine. */
	struct homak_cpu __percpu *cpus;
	/* The memory cgroup that pays for what belongs to no socket, from when there is an
	 * engine; NULL: the machine does. */
	struct mem_cgroup *memcg;
	/* True if no thread may enter the engine, because settings are being changed or the
	 * namespace ends. */
	bool paused;
	/* Protects set-up and settings; its holder may sleep. */
	struct mutex lock;
	/* The engine's settings; @lock protects them. */
	struct homa_params params;
	/* The host's settings. */
	struct homak_settings settings;
	/* Held by who changes @devs; readers use RCU. */
	spinlock_t dev_lock;
	/* Devices by their index. */
	struct hlist_head devs[HOMAK_DEV_BUCKETS];
	/* Those of @devs whose device has gone, the longest ago first; @dev_lock protects
	 * them. */
	struct list_head devs_left;
	/* When it fires, @timer_work runs homa_timer() for all shards; see timer.c. */
	struct hrtimer timer;
	/* Runs homa_timer(). */
	struct work_struct timer_work;
	/* True if @timer is not armed, or is about to rest. */
	int timer_rests;
	/* All sockets, linked by homak_sock.all. Read under RCU, changed under @sock_lock. */
	struct list_head socks;
	/* Protects @socks, @users and @num_socks. */
	spinlock_t sock_lock;
	/* The users who have sockets, by their ids (user.c). */
	struct hlist_head users[1 << HOMAK_USER_BITS];
	/* The number of sockets. */
	u32 num_socks;
	/* The number of sockets that have left a port where RPCs of theirs may still be
	 * (sockname.c). */
	atomic_t moved;
	/* The cache of routes, a table for each CPU (route.c). */
	struct homak_routes *routes;
	/* The switches of both disguises (rx_switches.c). */
	struct homak_encap *encap;
	/* Flows that each CPU remembers (homa_flow.h); NULL: packets are not taken before
	 * routing. */
	struct homak_rx_flows __percpu *flows;
#ifdef CONFIG_NETFILTER
	/* The hooks of prerouting.c, one for each version of IP; they are given this struct. */
	struct nf_hook_ops early[2];
#endif
	/* The tables of settings (sysctl.c). */
	struct homak_sysctl *sysctl;
};

/** homak_net_gfp() - the flags with which memory of a namespace is allocated, in process
 *  context. */
static inline gfp_t homak_net_gfp(const struct homak_net *hnet)
{
	return hnet->memcg ? GFP_KERNEL_ACCOUNT : GFP_KERNEL;
}

extern unsigned int homak_net_id;

/** homak_net() - what the module keeps of a network namespace. */
static inline struct homak_net *homak_net(const struct net *net)
{
	return net_generic(net, homak_net_id);
}

/* ---- net.c: namespaces ---- */

/** homak_net_start() - makes the engine if there is none; 0 or -errno; may sleep. */
int homak_net_start(struct homak_net *hnet);
extern struct homa_limits homak_limits;

/* ---- params.c ---- */

/** homak_net_set_params() - changes the engine's settings; 0 or -EINVAL; may sleep. */
int homak_net_set_params(struct homak_net *hnet,
			 const struct homa_params *params);
/** homak_net_set_cutoffs() - see homa_engine_fix_cutoffs(); -EAGAIN: no engine yet. */
int homak_net_set_cutoffs(struct homak_net *hnet, u32 levels, const u32 *sizes);

static inline struct homa_engine *homak_net_engine(const struct homak_net *hnet)
{
	return smp_load_acquire(&hnet->engine);
}

/* ---- enter.c ---- */

/**
 * homak_enter() - turns bottom halves off and returns this CPU's context, which has spare
 * memory enough for HOMAK_SPARES packets or one system call. NULL: the namespace has no
 * engine or is paused, and bottom halves are on again.
 */
struct homak_cpu *homak_enter(struct homak_net *hnet);
/** homak_enter_here() - does the same, inlined in what calls it: for each message and packet. */
HOMAK_HOT struct homak_cpu *homak_enter_here(struct homak_net *hnet);
/** homak_enter_inside() - does the same where bottom halves are off, and they stay off; until
 *  homak_leave_inside(). */
HOMAK_HOT struct homak_cpu *homak_enter_inside(struct homak_net *hnet);
/** homak_refill() - gives the context new spare memory, for more packets. */
void homak_refill(struct homak_cpu *cpu);
/** homak_leave() - works off events, packets to send and objects to free, and turns bottom
 *  halves on. */
void homak_leave(struct homak_cpu *cpu);
/** homak_leave_inside() - does the same, but for the bottom halves. */
HOMAK_HOT void homak_leave_inside(struct homak_cpu *cpu);
/** homak_enter_wait() - does the same as homak_enter(), but sleeps while the namespace is
 *  paused. */
HOMAK_HOT struct homak_cpu *homak_enter_wait(struct homak_net *hnet);
/** homak_enter_paused() - does what is left to do of that after homak_enter() has returned NULL. */
struct homak_cpu *homak_enter_paused(struct homak_net *hnet);

/**
 * homak_host_count_at() - adds @n to a counter; for callers that have not entered the
 * engine.
 */
static inline void homak_host_count_at(struct homak_net *hnet,
				       enum homak_host_metric m, u64 n)
{
	this_cpu_add(hnet->cpus->metrics[m], n);
}

static inline void homak_host_count(struct homak_cpu *cpu,
				    enum homak_host_metric m, u64 n)
{
	/* With PREEMPT_RT another task may count on this CPU in the middle of an addition. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		homak_host_count_at(cpu->hnet, m, n);
	else
		cpu->metrics[m] += n;
}

/* ---- inbox.c: from the engine to readers ---- */

/* Does the packet have payload that a reader has to copy? */
static inline bool homak_rx_has_data(const struct homa_rx_pkt *pkt)
{
	return pkt->verdict == HOMA_RX_DATA || pkt->verdict == HOMA_RX_MESSAGE;
}

/**
 * homak_inbox_data() - queues a packet with verdict HOMA_RX_DATA and wakes whoever waits
 * for it. It takes over @skb and the packet's pin of the RPC. @at says where the first byte
 * to copy lies, counted from skb->data. Bottom halves are off, no lock is held.
 */
HOMAK_HOT void homak_inbox_data(struct homak_cpu *cpu, struct homa_rx_pkt *pkt,
				struct sk_buff *skb, u32 at);
/** homak_whole_add() - does the same for verdict HOMA_RX_MESSAGE; one_packet.c. */
HOMAK_HOT void homak_whole_add(struct homak_cpu *cpu,
			       const struct homa_rx_pkt *pkt,
			       struct sk_buff *skb, u32 at);
/** homak_inbox_event() - is told that a message is complete or that an RPC failed. It takes
 *  over the hold of event->rpc. */
void homak_inbox_event(struct homak_cpu *cpu, struct homa_event *event);
/**
 * homak_inbox_purge() - releases RPCs that a closing socket lists, some in each call.
 * Returns true while there are more.
 */
bool homak_inbox_purge(struct homak_cpu *cpu, struct homak_sock *hsk);
/** homak_rpc_retired() - frees what the host kept with an RPC that the engine retired. */
HOMAK_HOT void homak_rpc_retired(struct homak_rpc *krpc);
/** homak_inbox_wake_all() - makes all threads leave recvmsg(), for shutdown() and close(). */
void homak_inbox_wake_all(struct homak_sock *hsk);

/* ---- msg.c: bytes of outgoing messages ---- */

/** homak_msg_new() - makes an outgoing message of @length bytes, which are charged to @hsk.
 *  Returns an ERR_PTR if there is no memory: -ENOMEM or -ENOBUFS. May sleep. */
HOMAK_HOT struct homak_msg *homak_msg_new(struct homak_sock *hsk, u32 length);
/** homak_msg_fill() - copies bytes of the message until it has @upto of them; 0, -EFAULT or
 *  -ENOMEM; may sleep. */
HOMAK_HOT int homak_msg_fill(struct homak_msg *msg, struct iov_iter *from,
			     u32 upto);
/** homak_msg_free() - frees the message and what it was charged; in any context. */
void homak_msg_free(struct homak_msg *msg);
/** homak_msg_over() - does the same where messages usually end. */
HOMAK_HOT void homak_msg_over(struct homak_msg *msg);
u32 homak_msg_length(const struct homak_msg *msg);
/** homak_msg_to_skb() - appends @length bytes of the message from @offset on to @skb. Small
 *  pieces are copied into its linear part if there is tailroom, others become page fragments
 *  with references. Returns 0, -ENOMEM or -EMSGSIZE (too many fragments). */
int homak_msg_to_skb(const struct homak_msg *msg, struct sk_buff *skb,
		     u32 offset, u32 length);
/** homak_msgs_exit() - frees memory that is kept for later messages; there are none left. */
void homak_msgs_exit(void);

/* ---- dev.c: devices and links ---- */

/** homak_dev_get() - returns the struct of a device, and makes it if there is none. Bottom
 *  halves are off, or it is an RCU read side. NULL: no memory, or the device is going. */
struct homak_dev *homak_dev_get(struct homak_net *hnet, struct net_device *dev);
/**
 * homak_dev_out() - finds the way of packets to @dst, for sendmsg(): returns the device,
 * and writes the path's @mtu and our address to @local. RCU read side, bottom halves off.
 * Errors are returned as ERR_PTR, -ENETUNREACH for one. @way: out, for homak_xmit_now().
 */
HOMAK_HOT struct homak_dev *homak_dev_out(struct homak_cpu *cpu,
					  struct homak_sock *hsk,
					  const struct homa_addr *dst, u32 *mtu,
					  struct in6_addr *local,
					  struct homak_route **way);
#define HOMAK_DEV_LINK ALIGN(sizeof(struct homak_dev), 64)
/** homak_dev_own() - returns the link of @hdev's own: what is sent by it is paced for @hdev's
 *  device, and only @hdev pulls from it. */
static inline struct homa_link *homak_dev_own(struct homak_dev *hdev)
{
	return (struct homa_link *)((char *)hdev + HOMAK_DEV_LINK);
}

/** homak_dev_link() - returns the link that packets of @hdev's device belong to now. */
static inline struct homa_link *homak_dev_link(const struct homak_dev *hdev)
{
	return READ_ONCE(hdev->link);
}

/** homak_dev_of() - returns the struct of a link, which lies HOMAK_DEV_LINK bytes before it. */
static inline struct homak_dev *homak_dev_of(struct homa_link *link)
{
	return (struct homak_dev *)((char *)link - HOMAK_DEV_LINK);
}

/** homak_dev_look() - has rate, MTU and link of @hdev's device looked up again, a little later. */
static inline void homak_dev_look(struct homak_dev *hdev)
{
	schedule_work(&hdev->measure);
}

/** homak_dev_init() - registers the notifier of devices that come, change and go. */
int homak_dev_init(void);
void homak_dev_exit(void);
/** homak_devs_stop() - stops the timers of all devices; comes before homak_devs_free(). */
void homak_devs_stop(struct homak_net *hnet);
void homak_devs_free(struct homak_net *hnet);
/** homak_devs_derive() - has the values of all links computed anew, a little later, because
 *  settings have changed. */
void homak_devs_derive(struct homak_net *hnet);

/* ---- lower.c ---- */

/** homak_lower() - returns the device by which packets leave that go to @dev: the one below it,
 *  or @dev itself. RCU read side. */
struct net_device *homak_lower(struct net_device *dev);

/* ---- tx.c, route.c: packets out ---- */

/**
 * homak_xmit() - pulls packets from a link and transmits them until the engine has none, or
 * its pacer or the device says wait (then the timer is armed), or it has sent a turn's
 * packets, so that others have theirs (then homak_dev.again is scheduled). Called between
 * homak_enter() and homak_leave().
 */
void homak_xmit(struct homak_cpu *cpu, struct homak_dev *hdev);
/** homak_xmit_now() - sends the packet @desc that the engine handed out with its message. @way:
 *  what homak_dev_out() found since homak_enter(), or NULL. */
HOMAK_HOT void homak_xmit_now(struct homak_cpu *cpu, struct homa_tx_desc *desc,
			      struct homak_route *way);
/** homak_xmit_all() - does homak_xmit() for every device of the namespace. */
void homak_xmit_all(struct homak_cpu *cpu);

int homak_routes_init(struct homak_net *hnet);
void homak_routes_free(struct homak_net *hnet);
/** homak_routes_flush() - releases all routes, because a device goes. May sleep. */
void homak_routes_flush(struct homak_net *hnet);

/* ---- rx.c, gro.c, icmp.c, rx_switches.c: packets in ---- */

/** homak_rx_init() - registers protocol handlers and offloads for IPv4 and IPv6. */
int homak_rx_init(void);
void homak_rx_exit(void);
/** homak_rx_skb() - is given a Homa packet, or several in GRO's frag_list, whose IP header is
 *  pulled: skb->data is at the Homa header. @encap is as in homa_addr. @looked_up says that
 *  routing was asked about this very buffer, so that a flow can be learned from the answer. It
 *  consumes @skb. */
void homak_rx_skb(struct homak_net *hnet, struct sk_buff *skb, u16 encap,
		  bool looked_up);
/** homak_encap_set() - begins or ends to take packets in UDP and in TCP disguise; may sleep. */
int homak_encap_set(struct homak_net *hnet, bool udp, bool tcp);
/** homak_prerouting_set() - turns the early path (see prerouting.c) on or off; may sleep. It is on
 *  from when the namespace has an engine, unless settings.early_path is 0. */
int homak_prerouting_set(struct homak_net *hnet, bool on);
int homak_encap_init(struct homak_net *hnet);
void homak_encap_free(struct homak_net *hnet);

/* ---- timer.c; homak_leave() starts it ---- */

/* The shortest time between two rounds of the timer, ns; the existing module has the same. */
#define HOMAK_TICK_NS 1000000u

void homak_timers_init(struct homak_net *hnet);
void homak_timers_stop(struct homak_net *hnet);

/* ---- socket.c, send.c, recv.c, ioctl.c ---- */

/** homak_sockets_init() - registers protocols and socket types. */
int homak_sockets_init(void);
void homak_sockets_exit(void);
HOMAK_HOT int homak_sendmsg(struct sock *sk, struct msghdr *msg, size_t len);
HOMAK_HOT int homak_recvmsg_common(struct sock *sk, struct msghdr *msg,
				   size_t len, int flags);
int homak_ioctl_common(struct sock *sk, unsigned int cmd, void __user *arg);
/* The most bytes of unfinished outgoing messages that any socket may have, whatever its limit:
 * half as many again may come in at once, and an int has room for the packets made of them. */
#define HOMAK_TX_MOST (1u << 29)
/* Packets belong to the socket that sends them while it has no more bytes than this in them and
 * in its messages. Beyond, which takes a device that holds packets for long, they belong to
 * nobody: the kernel counts in an int. */
#define HOMAK_TX_OWNED_MOST \
	((u32)INT_MAX - HOMAK_TX_MOST - HOMAK_TX_MOST / 2 - (1u << 26))
/** homak_sock_room() - may the socket send more, because it is below SO_SNDBUF or, if the program
 *  has not set that, below wmem_max? */
static inline bool homak_sock_room(struct homak_sock *hsk)
{
	const struct sock *sk = &hsk->inet.sk;
	u32 limit = READ_ONCE(hsk->hnet->settings.wmem_max);

	if (unlikely(sk->sk_userlocks & SOCK_SNDBUF_LOCK))
		limit = (u32)READ_ONCE(sk->sk_sndbuf);
	return atomic64_read(&hsk->tx_bytes) < min(limit, HOMAK_TX_MOST);
}

/* ---- sysctl.c, metrics.c, diag.c ---- */

void homak_settings_default(struct homak_settings *settings);
int homak_sysctl_init(struct homak_net *hnet);
void homak_sysctl_free(struct homak_net *hnet);
/** homak_sysctl_started() - applies the settings that waited for an engine. May sleep. */
void homak_sysctl_started(struct homak_net *hnet);
/** homak_metric_sum() - returns a counter's sum over all CPUs. */
u64 homak_metric_sum(struct homak_net *hnet, enum homa_metric metric);
u64 homak_host_metric_sum(struct homak_net *hnet, enum homak_host_metric metric);

#include "homa_kaddr.h"

#endif
