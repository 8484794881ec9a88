/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What `ss` is for TCP: generic netlink family "homa", version 1. Four commands,
 * each a dump (NLM_F_DUMP) of the sender's network namespace; one message per
 * object, with the attributes listed at the command. Numbers never change;
 * new ones are added at the end.
 *
 * Anyone may ask. Sockets and RPCs of other users are only shown to CAP_NET_ADMIN
 * in the namespace's user namespace, and so are all RPCs' ids.
 */
#ifndef HOMA_DIAG_H
#define HOMA_DIAG_H

#define HOMA_DIAG_FAMILY "homa"
#define HOMA_DIAG_VERSION 1

enum homa_diag_command {
	HOMA_DIAG_SOCKS = 1, /* INODE UID FAMILY PORT SERVER SHUTDOWN ENCAP
				 * TX_BYTES REGION_BYTES AVAIL_BYTES PARTIAL_BYTES
				 * STARVED MESSAGES */
	HOMA_DIAG_RPCS = 2,  /* ID COOKIE CLIENT PHASE PROBES ERROR PORT PEER
				 * PEER_PORT ENCAP IFINDEX AGE_NS SILENT_NS TX_* RX_*
				 * PRIVATE, and of its socket, if it is open, INODE
				 * UID */
	HOMA_DIAG_PEERS = 3, /* PEER ENCAP IFINDEX NUM_RPCS SERVER_RPCS IDLE_MS
				 * SEG_SIZE CUTOFF_VERSION CUTOFFS ACKS_OWED PROBES */
	HOMA_DIAG_DEVS = 4, /* IFINDEX IFNAME MTU RTT_BYTES MAX_INCOMING RESEND_US
				 * TIMEOUT_US RTT_US SENDING GRANTING WAITING WITHHELD
				 * BACKLOG_NS LINK; what is of a link is of that one */
};

enum homa_diag_attr {
	HOMA_DIAG_A_UNSPEC,
	HOMA_DIAG_A_PAD,
	HOMA_DIAG_A_INODE,    /* u64: as in /proc/PID/fd: socket:[inode] */
	HOMA_DIAG_A_UID,      /* u32 */
	HOMA_DIAG_A_FAMILY,   /* u8: AF_INET or AF_INET6 */
	HOMA_DIAG_A_PORT,     /* u16; all numbers are in host order */
	HOMA_DIAG_A_SERVER,   /* u8: 1 if the socket takes requests */
	HOMA_DIAG_A_SHUTDOWN, /* u8 */
	HOMA_DIAG_A_ENCAP,    /* u16: 0: protocol 146; 6: TCP disguise; else the
					 * UDP port */
	HOMA_DIAG_A_TX_BYTES, /* u64: bytes of unfinished outgoing messages */
	/* u64: bytes of the receive region; 0: none yet */
	HOMA_DIAG_A_REGION_BYTES,
	/* u32: bytes that arrived and were not copied to the region yet */
	HOMA_DIAG_A_PARTIAL_BYTES,
	/* u8: 1 if messages wait for receive buffers */
	HOMA_DIAG_A_STARVED,
	/* u64: id at this end; even: this end is the client */
	HOMA_DIAG_A_ID,
	HOMA_DIAG_A_COOKIE, /* u64 */
	HOMA_DIAG_A_CLIENT, /* u8 */
	HOMA_DIAG_A_PHASE,  /* u8: enum homa_look_phase */
	/* u8: RESENDs and NEED_ACKs without an answer */
	HOMA_DIAG_A_PROBES,
	HOMA_DIAG_A_ERROR,     /* s32: positive errno of a failed RPC */
	HOMA_DIAG_A_PEER,      /* 16 bytes: IPv6 address, IPv4 mapped */
	HOMA_DIAG_A_PEER_PORT, /* u16 */
	HOMA_DIAG_A_IFINDEX,   /* u32 */
	HOMA_DIAG_A_AGE_NS,    /* u64 */
	/* u64: time since the peer's last sign of life */
	HOMA_DIAG_A_SILENT_NS,
	/* u32: bytes of the outgoing message; 0: none yet */
	HOMA_DIAG_A_TX_LENGTH,
	/* u32: bytes of it that were sent at least once */
	HOMA_DIAG_A_TX_SENT,
	/* u32: bytes of it that are unscheduled or granted */
	HOMA_DIAG_A_TX_GRANTED,
	/* u32: bytes of the incoming message; 0: not known yet */
	HOMA_DIAG_A_RX_LENGTH,
	HOMA_DIAG_A_RX_RECEIVED, /* u32 */
	HOMA_DIAG_A_RX_GRANTED,	 /* u32 */
	HOMA_DIAG_A_NUM_RPCS,	 /* u32: RPCs open with the peer */
	/* u32: those of them that are requests of the peer */
	HOMA_DIAG_A_SERVER_RPCS,
	/* u32: time since the last RPC with the peer began */
	HOMA_DIAG_A_IDLE_MS,
	HOMA_DIAG_A_SEG_SIZE,	    /* u16: message bytes in a packet */
	HOMA_DIAG_A_CUTOFF_VERSION, /* u16 */
	/* u32[8]: cutoffs that the peer wants us to use */
	HOMA_DIAG_A_CUTOFFS,
	HOMA_DIAG_A_ACKS_OWED, /* u8 */
	HOMA_DIAG_A_IFNAME,    /* string; missing when the device is gone */
	HOMA_DIAG_A_MTU,       /* u32 */
	HOMA_DIAG_A_RTT_BYTES, /* u32: unscheduled bytes of a message */
	/* u32: most bytes granted over all messages */
	HOMA_DIAG_A_MAX_INCOMING,
	HOMA_DIAG_A_RESEND_US,	/* u32 */
	HOMA_DIAG_A_TIMEOUT_US, /* u32 */
	/* u32: round trip measured with short messages */
	HOMA_DIAG_A_RTT_US,
	HOMA_DIAG_A_SENDING,  /* u32: messages with bytes that may be sent */
	HOMA_DIAG_A_GRANTING, /* u32: messages being granted to */
	HOMA_DIAG_A_WAITING,  /* u32: messages that wait for grants */
	HOMA_DIAG_A_WITHHELD, /* u32: see homa_link_withheld() */
	/* u64: estimated queue of the device, as time */
	HOMA_DIAG_A_BACKLOG_NS,
	/* u8: 1 if only a recvmsg() with the id gets the message */
	HOMA_DIAG_A_PRIVATE,
	HOMA_DIAG_A_RX_GAPS,	  /* u32: holes in the bytes that arrived */
	HOMA_DIAG_A_RX_GAP_BYTES, /* u32: bytes in these holes */
	HOMA_DIAG_A_AVAIL_BYTES,  /* u64: free pages of the receive region */
	/* u32: messages of one packet that no thread has taken yet; their RPCs are in
	 * service already, or over */
	HOMA_DIAG_A_MESSAGES,
	/* u32: index of the device whose link it shares, or its own */
	HOMA_DIAG_A_LINK,
	HOMA_DIAG_A_COUNT,
};

#endif
