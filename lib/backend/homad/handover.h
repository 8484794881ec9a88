/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Handles that go from one process to another, for libhoma's core. Only homad can keep them. */
#ifndef HOMA_SVC_HANDOVER_H
#define HOMA_SVC_HANDOVER_H

#include "homa_backend.h"

/**
 * homa_svc_export() - have homad keep the attachment for another process
 * @serial: the core's number of the handle.
 * @token: receives the number that the other process shows to homad.
 * Returns 0, and the handle can only be closed afterwards. Returns -EBUSY if this process uses
 * something of the handle, -EOPNOTSUPP, or homad's error; then the handle is as before.
 */
int homa_svc_export(void *host, uint64_t serial, uint8_t token[16]);
/** homa_svc_import() - make a handle of what homad keeps; on failure @err gets a sentence. */
int homa_svc_import(void **out, const struct homa_backend_options *options,
		    const uint8_t token[16], uint64_t *serial, char *err,
		    size_t errlen);

#endif
