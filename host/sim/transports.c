// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The protocols that the simulator knows, in the order of --help. */
#include "transport.h"

const struct sim_transport *const sim_transports[] = {
#ifdef HAVE_HOMA
	&sim_homa,
#endif
#ifdef HAVE_PFABRIC
	&sim_pfabric,
#endif
#ifdef HAVE_PHOST
	&sim_phost,
#endif
#ifdef HAVE_PIAS
	&sim_pias,
#endif
#ifdef HAVE_NDP
	&sim_ndp,
#endif
#ifdef HAVE_DCTCP
	&sim_dctcp,
#endif
#ifdef HAVE_TCP
	&sim_tcp,
#endif
#ifdef HAVE_ORACLE
	&sim_oracle,
#endif
	NULL,
};
