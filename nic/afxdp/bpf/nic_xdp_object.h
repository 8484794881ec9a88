/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The compiled XDP program, embedded at build time by embed.py. */
#ifndef HOMA_NIC_XDP_OBJECT_H
#define HOMA_NIC_XDP_OBJECT_H

extern const unsigned char nic_xdp_object[];
extern const unsigned long nic_xdp_object_len;

#endif
