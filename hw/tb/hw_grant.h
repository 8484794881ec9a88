/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The engine's grant scheduler on one link, for the tests of homa_grant: messages are
 * announced, receive bytes and end; after each of these the link's grants are looked at, as a
 * host does after each batch of packets. Python reads the declarations between the two marker
 * lines through cffi, so nothing but plain C stands there.
 */
#ifndef HW_GRANT_H
#define HW_GRANT_H

#include "homa_engine.h"

/* BEGIN cffi */
struct hw_grants;

/*
 * struct hw_grant_settings - what the hardware must be told to do the same
 * @step: bytes of a waiting message that change its place.
 * @levels: for scheduled bytes.
 * @cutoffs: of unscheduled bytes, by level.
 */
struct hw_grant_settings {
	uint32_t step;
	uint32_t levels;
	uint32_t cutoffs[8];
};

/*
 * With the settings of homa_params_sigcomm(), but @rtt bytes in a round trip, @seg message
 * bytes in a packet, @overcommit messages that are granted to, @priorities levels in all and
 * @unsched of them for unscheduled bytes. As in the study nothing but that bounds what is
 * outstanding.
 */
struct hw_grants *hw_grants_new(uint32_t rtt, uint32_t seg, uint32_t overcommit,
				uint32_t priorities, uint32_t unsched,
				struct hw_grant_settings *out);
void hw_grants_free(struct hw_grants *grants);

/* Message @id of @peer, both below 2,048, comes: @length bytes, of which @unsched may come. */
void hw_grants_announce(struct hw_grants *grants, uint32_t id, uint32_t peer,
			uint32_t length, uint32_t unsched);
/* @bytes more of it have come; if that is all of it, it ends. */
void hw_grants_data(struct hw_grants *grants, uint32_t id, uint32_t bytes);
void hw_grants_end(struct hw_grants *grants, uint32_t id);

/* The next grant that is due out, in order; false if there is none. */
bool hw_grants_next(struct hw_grants *grants, uint32_t *id, uint32_t *offset,
		    uint32_t *level);
/* Messages that wait, and that are granted to. */
uint32_t hw_grants_waiting(const struct hw_grants *grants);
uint32_t hw_grants_granting(const struct hw_grants *grants);
/* END cffi */

#endif
