// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The protocols that the simulator knows, in the order of --help. */
#include "sim_transport.h"

const struct sim_transport *const sim_transports[] = {
	&sim_homa,  &sim_pfabric, &sim_phost, &sim_pias,   &sim_ndp,
	&sim_dctcp, &sim_tcp,	  &sim_tas,   &sim_oracle, NULL,
};
