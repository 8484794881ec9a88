/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Inside the backend for a message NIC: the driver's side of message_nic.h. The interface has
 * the host's addresses, and the kernel resolves neighbours there; the device carries what
 * the kernel sends, too.
 *
 * The device is another process, or hardware, and is not trusted: received bytes are copied out
 * of the shared memory before anything looks at them. A device that goes away, or that breaks
 * the rules, is left; packets are lost then as on any link, and the backend connects
 * again when a device listens.
 *
 * Several nics may share a device, each with queues of its own, so that several threads use it.
 * What they have in common is in struct message_hub. If one of them finds that the device must be
 * left, it ends the connection, and by that the others hear of it.
 *
 * Guarded by: the caller of nic.h, who lets one thread at a time use a nic; what nics share says so
 * itself. What @shared points at is memory that the device writes, too.
 */
#ifndef HOMA_NIC_MESSAGE_H
#define HOMA_NIC_MESSAGE_H

#include <pthread.h>
#include <unistd.h>

#include "ether.h"
#include "message_check.h"

/* The received frames and units that the caller, or we, have copies of. */
#define MESSAGE_BUFS 256u
/* The bytes of such a copy: a unit whose packets have a whole header each. */
#define MESSAGE_BUF_BYTES (MNIC_FRAME_MAX + 52u * MNIC_PIECES_MAX + 65u)
/* The number of calls of nic_rx() after which the slow side is looked at. */
#define MESSAGE_CTL_CALLS 64u
/* This bit of nic_rx.token says that the bytes are in the loop. */
#define MESSAGE_TOKEN_LOOP ((u64)1 << 63)

/**
 * struct message_queue - a queue of the device
 * @shared: the queue in the shared memory.
 * @bell: the eventfd that we write.
 * @call: the eventfd that the device writes.
 * @sent: the number of entries that we made in the ring of frames to send.
 * @done: the number of completions that we took.
 * @posted: the number of entries that we made in the ring of empty slots.
 * @got: the number of received frames that we took.
 * @free: a stack of our slots for sending.
 * @n_free: the number of them.
 * @flying: for each slot for sending, whether the device has it.
 * @theirs: for each slot for receiving, whether the device has it.
 */
struct message_queue {
	struct mnic_queue *shared;
	int bell;
	int call;
	u32 sent;
	u32 done;
	u32 posted;
	u32 got;
	u8 free[MNIC_ENTRIES];
	u32 n_free;
	bool flying[MNIC_ENTRIES];
	bool theirs[MNIC_ENTRIES];
};

/**
 * struct message_device - the connection to a device
 * @fd: the connection.
 * @users: the number of nics that use it; the hub's lock guards it.
 * @broken: true if the device has gone or breaks the rules, so that it must be left; atomic.
 * @hello: the numbers that it told.
 * @features: what it can and we know.
 * @mtu: the most bytes of an IP packet, as it says.
 * @mbps: what the link carries, as it says, in Mbit/s.
 * @memory: the shared memory.
 * @bytes: the size of that.
 * @q: the queues, of which each belongs to one nic.
 */
struct message_device {
	int fd;
	u32 users;
	bool broken;
	struct mnic_hello hello;
	u32 features;
	u32 mtu;
	u32 mbps;
	u8 *memory;
	size_t bytes;
	struct message_queue q[MNIC_QUEUES_MAX];
};

/**
 * struct message_hub - what the nics have in common that share a device
 * @lock: guards all of this.
 * @nics: the number of them.
 * @parts: the number of parts that the device's queues are divided into.
 * @device: the device, or NULL if nobody has one.
 * @caller: which of the nics calls a device; NULL if none does.
 */
struct message_hub {
	pthread_mutex_t lock;
	u32 nics;
	u32 parts;
	struct message_device *device;
	const struct message *caller;
};

/**
 * struct message_unit - packets that were received together and not handed out yet
 * @first: the first packet: its addresses, priority and the like.
 * @buf: the buffer that they are in; each has its whole header there.
 * @at: the offset in bytes of the next one; @end if there is none.
 * @end: the offset in bytes of the end.
 * @seg: the bytes of each but the last, with its header.
 */
struct message_unit {
	struct nic_rx first;
	u32 buf;
	u32 at;
	u32 end;
	u32 seg;
};

/**
 * struct message - the backend
 * @eth: what it shares with other backends.
 * @no_offload: true if the device's offloads are not used.
 * @hub: what it has in common with others.
 * @part: its number among them.
 * @device: the connection to the device; NULL if there is none.
 * @q: its queues of the device.
 * @n_queues: the number of them.
 * @bufs: MESSAGE_BUFS copies of MESSAGE_BUF_BYTES.
 * @refs: for each the number of its packets that the caller has, and one more while @unit is it.
 * @free: a stack of the unused ones.
 * @n_free: the number of them.
 * @unit: what was received together and is handed out now.
 * @next_queue: the one of @q with which the next nic_rx() begins.
 * @timer: a timer in the epoll set, which wakes us to look for a device; it is set while there
 *	is none.
 * @calling: the connection to a device that has not greeted yet; -1 if there is none. Then
 *	@hub->caller is this nic.
 * @armed: true if the caller may sleep, or has slept.
 */
struct message {
	struct nic_ether eth;
	bool no_offload;
	struct message_hub *hub;
	u32 part;
	struct message_device *device;
	struct message_queue *q;
	u32 n_queues;
	u8 *bufs;
	u32 refs[MESSAGE_BUFS];
	u32 free[MESSAGE_BUFS];
	u32 n_free;
	struct message_unit unit;
	u32 next_queue;
	int timer;
	int calling;
	bool armed;
};

static inline struct message *message_of(const struct nic *nic)
{
	return (struct message *)homa_container_of(nic, const struct message,
						   eth.nic);
}

static inline bool message_connected(const struct message *m)
{
	return m->device &&
	       !__atomic_load_n(&m->device->broken, __ATOMIC_RELAXED);
}

/* The device breaks the rules. The others who use it are woken by the end of the connection. */
static inline void message_break(struct message *m)
{
	__atomic_store_n(&m->device->broken, true, __ATOMIC_RELAXED);
}

static inline void message_ring_bell(int fd)
{
	u64 one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* The counter is full, so the other side will wake. */
}

/* message_device.c */
/** message_hub_join() - share the device of @beside, of which this is part @part of @parts; without
 *  it be the first of @parts. Returns 0, -EINVAL or -ENOMEM. */
int message_hub_join(struct message *m, const struct message *beside, u32 part,
		     u32 parts);
/** message_hub_leave() - leave device and hub. */
void message_hub_leave(struct message *m);
/** message_look() - begin with the device that another nic of the hub has found, or call one,
 *  unless another nic calls already. Returns 0 if there is one now or one is called, or a
 *  negative errno. */
int message_look(struct message *m);
/** message_greeted() - begin with the device if it has greeted. -EAGAIN: it has not; after any
 *  other error it is not being called any more. */
int message_greeted(struct message *m, char *err, size_t errlen);
/** message_connect() - be connected when the nic is opened: wait for the greeting of the device. */
int message_connect(struct message *m, char *err, size_t errlen);
/** message_disconnect() - leave the device, and have the others leave it. */
void message_disconnect(struct message *m);

/* message_rx.c */
/** message_take() - hand out up to @n packets that were received; returns how many. */
int message_take(struct message *m, struct nic_rx *pkts, int n);
void message_rx_release(struct nic *nic, const struct nic_rx *pkts, int n);
void message_post(struct message *m, struct message_queue *q);
bool message_rx_waiting(struct message *m);

/* message_tx.c */
int message_tx_room(struct nic *nic);
int message_tx(struct nic *nic, const struct nic_tx *pkts, int n);
void message_tx_held(void *arg, struct nic_path *path, const struct nic_tx *pkt,
		     int error);
void message_reap(struct message *m, struct message_queue *q);

/* message_ctl.c */
int message_ctl_open(struct message *m, char *err, size_t errlen);
void message_ctl_close(struct message *m);
int message_rx(struct nic *nic, struct nic_rx *pkts, int n);
bool message_arm(struct nic *nic);

#endif
