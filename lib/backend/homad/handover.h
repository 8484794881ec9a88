/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Handles that go from one process to another, for libhoma's core. Only homad's can. */
#ifndef HOMA_SVC_HANDOVER_H
#define HOMA_SVC_HANDOVER_H

#include "homa_backend.h"

/**
 * homa_svc_export() - have homad keep the attachment for another process
 * @serial: what the core calls the handle. @token: receives what the other process needs.
 * -EBUSY: something of it is in use here; -EOPNOTSUPP; or what homad said. Then the handle is
 * as before, else only to be closed.
 */
int homa_svc_export(void *host, uint64_t serial, uint8_t token[16]);
/** homa_svc_import() - a handle out of what homad keeps; @err gets a sentence on failure. */
int homa_svc_import(void **out, const struct homa_backend_options *options,
		    const uint8_t token[16], uint64_t *serial, char *err,
		    size_t errlen);

#endif
