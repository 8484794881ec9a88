/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of homa.ko share. The module is glue: the protocol is the
 * engine's (engine/), this host gives it packets (skbs), time, memory and
 * locks, and gives programs sockets.
 *
 * Objects. Per network namespace a struct homa_net, whose engine is made with
 * the first Homa socket in it. Per CPU and namespace a struct homa_cpu with the
 * engine's context. Per device a struct homa_dev with the engine's link. Per
 * socket a struct homa_ksock, per RPC a struct homa_krpc (the engine's private
 * bytes).
 *
 * Calling the engine. homa_enter() turns bottom halves off, owns this CPU's memory
 * (homa_own.h) and gives its context; homa_leave() works off what the calls left behind - events to
 * sockets, packets to send, objects to free - and turns them on again. Between
 * the two nothing may sleep, and the work must be bounded. The engine takes its
 * own locks; the host's one lock (homa_ksock.lock) is never held across an
 * engine call.
 *
 *	lock order: engine's locks | homa_ksock.lock  (never nested in each other)
 *
 * Payload in. homa_rx() gives a verdict for each packet; payload of DATA stays
 * in its skb, which is queued at the RPC (homa_inbox_data()) and pins it. A
 * reader - a thread in recvmsg() - takes the queue, copies to the pages in its
 * address space and only then says homa_rx_copied(): so copying goes on while
 * later packets arrive, and a message is complete when it is in place.
 *
 * Payload out. sendmsg() copies into page fragments of the message (struct
 * homa_msg), which belong to the RPC; skbs are built from them at each
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

/* homa_addr.encap of a peer reached in TCP disguise; no UDP port is that low. */
#define HOMA_ENCAP_TCP HOMA_IPPROTO_HIJACK

#define HOMA_SPARES 8u		/* RPCs, peers and ranges a CPU keeps at hand */

/* ---- settings that are not the engine's; sysctl.c ---- */

/*
 * struct homa_settings - per namespace, written by sysctl, read anywhere with
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
struct homa_settings {
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
 * struct homa_ends - where a packet came from, and the address of ours that it came to
 * @local: as IPv6 has it, IPv4's mapped; all 0: routing chooses one.
 */
struct homa_ends {
	struct homa_addr src;
	struct in6_addr local;
};

/* struct homa_cpu - one CPU's caller of a namespace's engine; who owns the CPU has it */
struct homa_cpu {
	struct homa_ctx ctx;
	struct homa_net *hnet;
	/* The ends of the packets that are being worked off; NULL: none are. */
	const struct homa_ends *heard;
	/* Somebody is between entering and leaving the engine, which must not nest. */
	bool in;
	/* Counters. Others than this CPU may add to them; see homa_host_count_at(). */
	u64 metrics[HOMA_H_COUNT];
};

/* struct homa_dev - a network device and the engine's link for it */
struct homa_dev {
	/* In homa_net.devs, under RCU. The struct lives until the namespace ends; @dev
	 * becomes NULL when the device goes, and another device may come. */
	struct hlist_node node;
	struct homa_net *hnet;
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

#define HOMA_DEV_BUCKETS 32u
#define HOMA_USER_BITS 5
struct homa_routes;	/* tx: cache of routes */
struct homa_encap;	/* encap: UDP socket, hooks */
struct homa_early;	/* early: input routes */
struct homa_sysctl;	/* sysctl: tables */
struct homa_user;	/* user: who has sockets */

/*
 * struct homa_net - Homa in a network namespace
 * @engine: made with the first socket; never goes before the namespace does.
 *	Read with smp_load_acquire() (homa_net_engine()).
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
struct homa_net {
	struct net *net;
	struct homa_engine *engine;
	struct homa_cpu __percpu *cpus;
	struct mem_cgroup *memcg;
	bool paused;
	struct mutex lock;
	struct homa_params params;
	struct homa_settings settings;
	spinlock_t dev_lock;
	struct hlist_head devs[HOMA_DEV_BUCKETS];
	struct hrtimer timer;
	struct work_struct timer_work;
	int timer_rests;		/* nothing is armed, or not for long */
	struct list_head socks;		/* homa_ksock.all, RCU; changed under sock_lock */
	spinlock_t sock_lock;
	struct hlist_head users[1 << HOMA_USER_BITS];
	u32 num_socks;
	atomic_t moved;
	struct homa_routes *routes;
	struct homa_encap *encap;
	struct homa_early __percpu *early;
	struct homa_sysctl *sysctl;
};

extern unsigned int homa_net_id;
struct homa_net *homa_net(const struct net *net);

/* ---- per RPC ---- */

struct homa_msg;	/* bytes of an outgoing message; msg.c */
struct homa_ksock;

/* Which list of its socket an RPC is in (homa_ksock.lock). */
enum homa_krpc_list {
	HOMA_LIST_NONE = 0,
	HOMA_LIST_READY,	/* all arrived, or failed: recvmsg() will end with it */
	HOMA_LIST_PARTIAL,	/* bytes to copy */
	HOMA_LIST_PRIVATE,	/* the same for a private RPC, found by its id */
	HOMA_LIST_READER,	/* a thread copies */
};

/*
 * struct homa_krpc - the host's bytes of an RPC
 * @rpc: whose they are; set when the memory is made.
 * @local: our address: all of its packets leave from there. At a server the one that
 *	the request came to, at a client the one that routing chose for the request.
 *	Set before the engine has made the RPC of this memory (homa_ctx_next_rpc()).
 * @msg: outgoing message; set before the engine knows of it, freed when the RPC
 *	is retired.
 * Under homa_ksock.lock:
 * @list: place in one of the socket's lists, which hold the RPC (homa_rpc_hold).
 * @rx_head, @rx_tail: skbs with bytes to copy, each with its struct
 *	homa_rx_cb; each pins the RPC.
 * @on: enum homa_krpc_list.
 * @whole: everything has arrived.
 * @over: an event said that it is complete or failed.
 * @gone: aborted silently; what still comes is dropped.
 * @waiter: threads that wait for this private RPC (homa_waiter.next).
 */
struct homa_krpc {
	struct homa_rpc *rpc;
	struct in6_addr local;
	struct homa_msg *msg;
	struct list_head list;
	struct sk_buff *rx_head, *rx_tail;
	u32 rx_bytes;
	u8 on;
	bool whole;
	bool over;
	bool gone;
	bool is_private;
	struct homa_waiter *waiter;
};

/* In skb->cb of a queued packet: what the reader needs (48 bytes at most). */
struct homa_rx_cb {
	struct homa_rpc *rpc;	/* pinned */
	u32 offset;		/* in the message */
	u32 length;
	u32 fresh;
	u32 at;			/* first byte to copy, from skb->data */
};

static inline struct homa_rx_cb *homa_rx_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct homa_rx_cb) > sizeof(skb->cb));
	return (struct homa_rx_cb *)skb->cb;
}

/*
 * The same of a packet that is a whole message, given away with it: what recvmsg()
 * says of it. The kind follows from the id, which is odd at servers.
 */
struct homa_given_cb {
	u64 id;
	u64 cookie;
	u8 ip[16];
	u32 page;		/* where it goes, in the region */
	u32 at;			/* first byte to copy, from skb->data */
	u32 length;
	u16 encap;
	u16 port;
};

static inline struct homa_given_cb *homa_given_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct homa_given_cb) > sizeof(skb->cb));
	return (struct homa_given_cb *)skb->cb;
}

static inline struct homa_krpc *homa_krpc(struct homa_rpc *rpc)
{
	return homa_rpc_priv(rpc);
}

/* ---- per socket ---- */

/*
 * struct homa_batch - packets that a reader took from an RPC's queue
 * @whole, @over: as in struct homa_krpc, at that time.
 */
struct homa_batch {
	struct sk_buff *skbs;
	bool whole;
	bool over;
};

/* What has become of a waiting thread. */
enum homa_waited {
	HOMA_WAITS = 0,
	HOMA_WAITED_RPC,	/* it was handed an RPC to read: @given, @batch */
	HOMA_WAITED_MESSAGE,	/* it was handed a whole message: @skb */
	HOMA_WAITED_LOOK,	/* nothing, but it should look again */
};

/*
 * struct homa_waiter - a thread in recvmsg(), on its stack
 * @list: in homa_ksock.waiters (newest first), or in .private_waiters for @id.
 * @next: another thread that waits for the same private RPC.
 * @what: enum homa_waited. Written last and with release, under homa_ksock.lock, by
 *	who took it out of @list: from then on the thread may be gone.
 * @given, @batch: the RPC it was handed, with a hold; @skb: a message.
 * @asleep: it has stopped polling (a hint for who chooses among threads).
 */
struct homa_waiter {
	struct list_head list;
	struct homa_waiter *next;
	struct task_struct *task;
	struct homa_krpc *given;
	struct homa_batch batch;
	struct sk_buff *skb;
	u64 id;
	u8 what;
	bool asleep;
};

/*
 * struct homa_ksock - a Homa socket; begins with the kernel's
 * @engine_sock: the engine's; its private bytes point back here.
 * @user: on whose account its RPCs go.
 * @pool: the engine's bookkeeping of the receive region.
 * @region, @region_size: where the region is in the application.
 * @mm: whose address space that is. Held as a name (mmgrab()): only compared.
 * @lock: lists and waiters; bottom halves off.
 * @ready, @partial, @privates: see enum homa_krpc_list.
 * @partial_bytes: to copy, of those in @partial.
 * @messages: messages that are whole in their skb (one_packet.c); @run: how many were
 *	taken since one of @ready was.
 * @giving: the engine gives such messages away; @full: it refuses packets (room.c).
 * @tx_full: somebody waits until @tx_bytes is below wmem_max.
 * @tx_bytes: of unfinished outgoing messages (also in sk_wmem_alloc's place).
 * @destruct: what the address family wants done at the end.
 * @encap: homa_addr.encap of what we send to.
 * @used: it may have RPCs; @moved: some of them at a port that it has left.
 * @shutdown: no more calls.
 */
struct homa_ksock {
	/* ipv6 needs pinet6 found behind inet_sock: see struct homa6_ksock */
	struct inet_sock inet;
	struct homa_net *hnet;
	struct homa_sock *engine_sock;
	struct homa_user *user;
	void *pool;
	unsigned long region;
	size_t region_size;
	u32 region_pages;
	struct mm_struct *mm;
	spinlock_t lock;
	struct list_head ready, partial, privates, waiters, private_waiters;
	struct sk_buff_head messages;
	u32 run;
	u32 partial_bytes;
	bool giving, full;
	atomic64_t tx_bytes;
	void (*destruct)(struct sock *sk);
	u16 encap;
	bool server;
	bool used;
	bool moved;
	bool shutdown;
	bool tx_full;
	struct list_head all;
	char error[HOMA_ERROR_MSG_SIZE];	/* last failed call, for HOMAIOCINFO */
};

struct homa6_ksock {
	struct homa_ksock homa;
	struct ipv6_pinfo inet6;	/* must be last */
};

static inline struct homa_ksock *homa_ksk(const struct sock *sk)
{
	return (struct homa_ksock *)sk;
}

static inline struct homa_ksock *homa_ksock_of(struct homa_sock *engine_sock)
{
	return *(struct homa_ksock **)homa_sock_priv(engine_sock);
}

/* ---- net.c: namespaces ---- */

/** homa_net_start() - make the engine if there is none; may sleep. */
int homa_net_start(struct homa_net *hnet);
/** homa_net_set_params() - settings of the engine; -EINVAL; may sleep. */
int homa_net_set_params(struct homa_net *hnet, const struct homa_params *params);
/** homa_net_set_cutoffs() - see homa_engine_fix_cutoffs(); -EAGAIN: no engine yet. */
int homa_net_set_cutoffs(struct homa_net *hnet, u32 levels, const u32 *sizes);
extern struct homa_limits homa_limits;

static inline struct homa_engine *homa_net_engine(const struct homa_net *hnet)
{
	return smp_load_acquire(&hnet->engine);
}

/* ---- enter.c ---- */

/**
 * homa_enter() - this CPU's context, bottom halves off; NULL: the namespace has
 * no engine or is paused (then they are on again). With spares enough for 8
 * packets or one system call.
 */
struct homa_cpu *homa_enter(struct homa_net *hnet);
/** homa_refill() - spares, between engine calls on more packets. */
void homa_refill(struct homa_cpu *cpu);
/** homa_leave() - events, transmission, retired objects; bottom halves on. */
void homa_leave(struct homa_cpu *cpu);
/** homa_enter_wait() - process context: as homa_enter(), but waits out a pause. */
struct homa_cpu *homa_enter_wait(struct homa_net *hnet);

/** homa_host_count_at() - outside the engine, on any processor. */
static inline void homa_host_count_at(struct homa_net *hnet, enum homa_host_metric m,
				      u64 n)
{
	this_cpu_add(hnet->cpus->metrics[m], n);
}

static inline void homa_host_count(struct homa_cpu *cpu, enum homa_host_metric m,
				   u64 n)
{
	/* Where we may be stopped in the middle of it, others count here meanwhile. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		homa_host_count_at(cpu->hnet, m, n);
	else
		cpu->metrics[m] += n;
}

/* ---- inbox.c: from the engine to readers ---- */

/* Has the packet payload for a reader? */
static inline bool homa_rx_has_data(const struct homa_rx_pkt *pkt)
{
	return pkt->verdict == HOMA_RX_DATA || pkt->verdict == HOMA_RX_MESSAGE;
}

/**
 * homa_inbox_data() - queue a packet with verdict HOMA_RX_DATA; takes over @skb and the
 * packet's pin of the RPC. @at: first payload byte to copy, from skb->data.
 * Bottom halves off, no lock held. Wakes whoever waits.
 */
void homa_inbox_data(struct homa_cpu *cpu, struct homa_rx_pkt *pkt,
		     struct sk_buff *skb, u32 at);
/** homa_given_add() - the same for HOMA_RX_MESSAGE; one_packet.c. */
void homa_given_add(struct homa_cpu *cpu, const struct homa_rx_pkt *pkt,
		    struct sk_buff *skb, u32 at);
/** homa_inbox_event() - a message complete or failed; takes over event->rpc's hold. */
void homa_inbox_event(struct homa_cpu *cpu, struct homa_event *event);
/** homa_inbox_purge() - a socket closes: let go of all RPCs it lists. Some at a
 *  time: true while there is more. */
bool homa_inbox_purge(struct homa_cpu *cpu, struct homa_ksock *hsk);
/** homa_krpc_retired() - free what the host kept with an RPC the engine retired. */
void homa_krpc_retired(struct homa_krpc *krpc);
/** homa_inbox_wake_all() - everybody leaves recvmsg() (shutdown, close). */
void homa_inbox_wake_all(struct homa_ksock *hsk);

/* ---- msg.c: bytes of outgoing messages ---- */

/**
 * struct homa_msg - an outgoing message; small ones are @small, one allocation
 * @length: bytes in all. @filled: copied so far.
 * @hsk: charged for it (homa_ksock.tx_bytes and sk_wmem), holds a reference.
 */
/** homa_msg_new() - -ENOMEM, -ENOBUFS as ERR_PTR; may sleep. */
struct homa_msg *homa_msg_new(struct homa_ksock *hsk, u32 length);
/** homa_msg_fill() - copy up to message byte @upto; 0, -EFAULT or -ENOMEM; may sleep. */
int homa_msg_fill(struct homa_msg *msg, struct iov_iter *from, u32 upto);
/** homa_msg_free() - any context. */
void homa_msg_free(struct homa_msg *msg);
u32 homa_msg_length(const struct homa_msg *msg);
/** homa_msg_to_skb() - append message bytes [offset, offset + length) to @skb: small
 *  pieces copied into its linear part if there is tailroom, else page fragments
 *  with references. 0 or -ENOMEM/-EMSGSIZE (too many fragments). */
int homa_msg_to_skb(const struct homa_msg *msg, struct sk_buff *skb, u32 offset,
		    u32 length);
/** homa_msgs_exit() - free what is kept for later; no message exists any more. */
void homa_msgs_exit(void);

/* ---- dev.c: devices and links ---- */

/** homa_dev_get() - of a device; makes it if need be. Bottom halves off or RCU read
 *  side; NULL: no memory or device going. */
struct homa_dev *homa_dev_get(struct homa_net *hnet, struct net_device *dev);
/** homa_dev_of() - back from the engine's link. */
struct homa_dev *homa_dev_of(struct homa_link *link);
int homa_dev_init(void);	/* notifier */
void homa_dev_exit(void);
void homa_devs_stop(struct homa_net *hnet);	/* timers, before homa_devs_free() */
void homa_devs_free(struct homa_net *hnet);
/** homa_devs_derive() - settings changed: values of links follow, soon. */
void homa_devs_derive(struct homa_net *hnet);

/* ---- tx.c, route.c: packets out ---- */

/**
 * homa_xmit() - pull from a link and transmit until the engine has nothing, its
 * pacer or the device says wait (timer armed), or a turn is full (homa_dev.again
 * scheduled). Between homa_enter() and homa_leave().
 */
void homa_xmit(struct homa_cpu *cpu, struct homa_dev *hdev);
/** homa_xmit_now() - send what the engine put into homa_ctx.tx_now. */
void homa_xmit_now(struct homa_cpu *cpu, struct homa_tx_desc *desc);
/** homa_xmit_all() - every device of the namespace. */
void homa_xmit_all(struct homa_cpu *cpu);

/**
 * homa_route_out() - where packets to @dst go, for sendmsg(): the device (RCU,
 * bottom halves off), the path's MTU and our address. Errors as ERR_PTR: -ENETUNREACH ...
 */
struct homa_dev *homa_route_out(struct homa_cpu *cpu, struct homa_ksock *hsk,
				const struct homa_addr *dst, u32 *mtu,
				struct in6_addr *local);
int homa_routes_init(struct homa_net *hnet);
void homa_routes_free(struct homa_net *hnet);
/** homa_routes_flush() - a device goes: let go of all routes. May sleep. */
void homa_routes_flush(struct homa_net *hnet);

/* ---- rx.c, gro.c, icmp.c, rx_switches.c: packets in ---- */

int homa_rx_init(void);		/* protocol handlers and offloads, v4 and v6 */
void homa_rx_exit(void);
/** homa_rx_skb() - a Homa packet (or several: GRO's frag_list) behind its IP header,
 *  skb->data at the Homa header; @encap as in homa_addr. Consumes @skb. Bottom
 *  halves off. */
void homa_rx_skb(struct homa_net *hnet, struct sk_buff *skb, u16 encap);
int homa_encap_set(struct homa_net *hnet, bool udp, bool tcp); /* may sleep */
/** homa_early_set() - the early path (see input_route.c); may sleep. On when the namespace
 *  gets its engine unless settings.early_path is 0. */
int homa_early_set(struct homa_net *hnet, bool on);
int homa_encap_init(struct homa_net *hnet);
void homa_encap_free(struct homa_net *hnet);

/* ---- timer.c ---- */

void homa_timers_init(struct homa_net *hnet);
void homa_timers_stop(struct homa_net *hnet);
/** homa_timer_want() - there are RPCs: let it run. Any context. */
void homa_timer_want(struct homa_net *hnet);

/* ---- socket.c, send.c, recv.c, ioctl.c ---- */

int homa_sockets_init(void);	/* register protocols and socket types */
void homa_sockets_exit(void);
int homa_sendmsg(struct sock *sk, struct msghdr *msg, size_t len);
int homa_recvmsg_common(struct sock *sk, struct msghdr *msg, size_t len, int flags);
int homa_ioctl_common(struct sock *sk, unsigned int cmd, void __user *arg);
/** homa_sock_room() - below wmem_max? */
static inline bool homa_sock_room(struct homa_ksock *hsk)
{
	return atomic64_read(&hsk->tx_bytes) <
	       READ_ONCE(hsk->hnet->settings.wmem_max);
}

/** homa_error_text() - remember a sentence for HOMAIOCINFO, returns @err. */
int homa_error_text(struct homa_ksock *hsk, int err, const char *text);

/* ---- sysctl.c, metrics.c, diag.c ---- */

void homa_settings_default(struct homa_settings *settings);
int homa_sysctl_init(struct homa_net *hnet);
void homa_sysctl_free(struct homa_net *hnet);
/** homa_sysctl_started() - there is an engine now: what waited for it. May sleep. */
void homa_sysctl_started(struct homa_net *hnet);
int homa_proc_init(struct homa_net *hnet);
void homa_proc_free(struct homa_net *hnet);
/** homa_metric_sum() - over CPUs. */
u64 homa_metric_sum(struct homa_net *hnet, enum homa_metric metric);
u64 homa_host_metric_sum(struct homa_net *hnet, enum homa_host_metric metric);
int homa_diag_init(void);
void homa_diag_exit(void);

#include "homa_kaddr.h"

#endif
