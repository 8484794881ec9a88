/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the tests of the hardware ask of the C code: the same questions that they put
 * to the RTL, with flat answers. Python reads the declarations between the two marker
 * lines through cffi, so nothing but plain C stands there.
 */
#ifndef HW_ORACLE_H
#define HW_ORACLE_H

#include "homa_codec.h"
#include "homa_engine.h"

/* BEGIN cffi */
/*
 * struct hw_decoded - what homa_packet_decode() says of a packet
 * @error: 0, or the enum homa_wire_error.
 * @offset, @length, @incoming, @level: as in homa_meta_t of hw/rtl/homa_nic_pkg.sv; 0 where
 *	the type has none.
 */
struct hw_decoded {
	uint32_t error;
	uint32_t type;
	uint32_t hdr_len;
	uint32_t sport;
	uint32_t dport;
	uint64_t sender_id;
	uint32_t offset;
	uint32_t length;
	uint32_t incoming;
	uint32_t level;
};

/* Decodes @len bytes at @buf. */
void hw_decode(struct hw_decoded *out, const void *buf, uint32_t len);

/* Writes HOMA_DATA_HDR bytes to @out: the header, as the engine's homa_tx_segment() makes
 * it, of the segment that lies @skip bytes behind the begin of the DATA with the header
 * @hdr. */
void hw_segment(void *out, const void *hdr, uint32_t skip);
/* END cffi */

#endif
