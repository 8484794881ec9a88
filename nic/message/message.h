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
 * Guarded by: the caller of nic.h, who lets one thread at a time use a nic; what @shared points
 * at is memory that the device writes, too.
 */
#ifndef HOMA_NIC_MESSAGE_H
#define HOMA_NIC_MESSAGE_H

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
 * @fd: the connection; -1 if there is none.
 * @broken: true if the device breaks the rules, so that it must be left.
 * @hello: the numbers that it told.
 * @features: what it can and we know.
 * @memory: the shared memory.
 * @bytes: the size of that.
 * @q: the queues.
 */
struct message_device {
	int fd;
	bool broken;
	struct mnic_hello hello;
	u32 features;
	u8 *memory;
	size_t bytes;
	struct message_queue q[MNIC_QUEUES_MAX];
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
 * @device: the connection to the device.
 * @bufs: MESSAGE_BUFS copies of MESSAGE_BUF_BYTES.
 * @refs: for each the number of its packets that the caller has, and one more while @unit is it.
 * @free: a stack of the unused ones.
 * @n_free: the number of them.
 * @unit: what was received together and is handed out now.
 * @next_queue: the queue with which the next nic_rx() begins.
 * @timer: a timer in the epoll set, which wakes us to look for a device; it is set while there
 *	is none.
 * @calling: the connection to a device that has not greeted yet; -1 if there is none.
 * @armed: true if the caller may sleep, or has slept.
 */
struct message {
	struct nic_ether eth;
	bool no_offload;
	struct message_device device;
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
	return m->device.fd >= 0 && !m->device.broken;
}

static inline void message_ring_bell(int fd)
{
	u64 one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* The counter is full, so the other side will wake. */
}

/* message_device.c */
/** message_call() - connect to the device, which greets later. */
int message_call(struct message *m, char *err, size_t errlen);
/** message_greeted() - begin with the device if it has greeted. -EAGAIN: it has not; after any
 *  other error it is not being called any more. */
int message_greeted(struct message *m, char *err, size_t errlen);
/** message_connect() - do both, and wait in between. */
int message_connect(struct message *m, char *err, size_t errlen);
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
