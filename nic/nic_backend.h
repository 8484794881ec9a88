/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a packet I/O backend gives to nic.c, and the few things that all
 * backends share: failing with a sentence, and a bounded list of ICMP errors.
 * A backend embeds struct nic as its first member; nic.c never looks further.
 *
 * Guarded by: the caller of nic.h, who lets one thread at a time use a nic. Its counters are
 * read by that thread, too.
 */
#ifndef HOMA_NIC_BACKEND_H
#define HOMA_NIC_BACKEND_H

#include "nic.h"

#ifndef IPPROTO_HOMA
#define IPPROTO_HOMA 146
#endif

/** The least MTU in bytes that every path must have: for an IPv6 header, a UDP header, a DATA
 *  header and one byte of message. */
#define NIC_MIN_MTU (40 + 8 + 56 + 1)

/**
 * struct nic_ops - the functions of a backend, each as described in nic.h.
 * Written by: the backend, as a constant.
 */
struct nic_ops {
	/* It frees the nic and all that it has. */
	void (*close)(struct nic *nic);
	/* It is nic_rx(). */
	int (*rx)(struct nic *nic, struct nic_rx *pkts, int n);
	/* It is nic_rx_release(). */
	void (*rx_release)(struct nic *nic, const struct nic_rx *pkts, int n);
	/* It is nic_tx_room(). */
	int (*tx_room)(struct nic *nic);
	/* It is nic_tx(). */
	int (*tx)(struct nic *nic, const struct nic_tx *pkts, int n);
	/* It is nic_flush(). */
	void (*flush)(struct nic *nic);
	/* It is nic_errors(). */
	int (*errors)(struct nic *nic, struct nic_error *errors, int n);
	/* It is nic_port_unreachable(). */
	void (*port_unreachable)(struct nic *nic, const struct nic_rx *pkt);
	/* It is nic_fd(). */
	int (*fd)(const struct nic *nic);
	/* It is nic_arm(). */
	bool (*arm)(struct nic *nic);
	/** It is nic_watch(), and NULL if to look for packets costs no system call. */
	const u64 *(*watch)(struct nic *nic);
	/** It is nic_believe_mtu(), and NULL if the kernel keeps path MTUs. */
	void (*believe_mtu)(struct nic *nic, const struct homa_addr *dst,
			    u32 mtu);
	/* It is nic_route(). */
	int (*route)(struct nic *nic, const struct homa_addr *dst, u32 *mtu);
	/** It is nic_ask_by(), and NULL, as @learn then is, if the backend always asks the kernel
	 *  itself. */
	void (*ask_by)(struct nic *nic, nic_way_asker ask, void *arg);
	/* It is nic_learn(). */
	void (*learn)(struct nic *nic, const struct nic_way *way);
	/** It is nic_tcp_port(), and NULL, as @source and @has_address then are, if the backend
	 *  cannot carry TCP. */
	int (*tcp_port)(struct nic *nic, u16 port, bool on);
	/* It is nic_source(). */
	int (*source)(struct nic *nic, const struct homa_addr *dst,
		      struct homa_addr *src);
	/* It is nic_has_address(). */
	bool (*has_address)(const struct nic *nic, const struct homa_addr *addr);
	/** It refreshes counters that the kernel keeps, and may be NULL. */
	void (*update_stats)(struct nic *nic);
};

#define NIC_ERRQ_SIZE 64

/**
 * struct nic_errq - errors that wait for nic_errors()
 *
 * When it is full, the oldest stay and new ones are dropped, which only delays an RPC's end.
 * @slots: the ring.
 * @head: the position of the next error to take; it counts up for ever.
 * @tail: the position of the next error to put in; it counts up for ever.
 */
struct nic_errq {
	struct nic_error slots[NIC_ERRQ_SIZE];
	u32 head;
	u32 tail;
};

/**
 * struct nic - the first member of every backend's object
 * @ops: the functions of the backend.
 * @info: filled when the backend is opened; mtu, link_mbps and max_segs may change later.
 * @stats: the counters since the nic was opened.
 * @errq: the ICMP errors that were not taken yet.
 * @unsent: what nic_tx_unsent() returns. nic_tx() sets it to 0, and the backend sets bits.
 */
struct nic {
	const struct nic_ops *ops;
	struct nic_info info;
	struct nic_stats stats;
	struct nic_errq errq;
	u64 unsent;
};

/** nic_not_sent() - note that packet @index of this nic_tx() was taken and will not be sent. */
static inline void nic_not_sent(struct nic *nic, int index)
{
	if (index < 64)
		nic->unsent |= 1ull << index;
}

/** nic_fail() - write the sentence for the user and return @code. */
int nic_fail(char *err, size_t errlen, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

void nic_errq_push(struct nic_errq *q, const struct nic_error *error);
int nic_errq_take(struct nic_errq *q, struct nic_error *errors, int n);

/**
 * nic_error_for() - make the error for a packet that we could not send
 * @dst: the address that it should have gone to.
 * @hdr: its Homa header, or NULL.
 * @len: the number of bytes of @hdr.
 * @error: a positive errno.
 * @mtu: with EMSGSIZE the path's MTU in bytes.
 */
struct nic_error nic_error_for(const struct homa_addr *dst, const u8 *hdr,
			       u32 len, int error, u32 mtu);

/** nic_now_ms() - the time of the coarse monotonic clock, in milliseconds. */
u64 nic_now_ms(void);

int nic_afxdp_open(struct nic **out, const struct nic_config *config, char *err,
		   size_t errlen);
int nic_packet_open(struct nic **out, const struct nic_config *config,
		    char *err, size_t errlen);
int nic_udp_open(struct nic **out, const struct nic_config *config, char *err,
		 size_t errlen);
int nic_message_open(struct nic **out, const struct nic_config *config,
		     char *err, size_t errlen);

#endif
