/* Sections "ops" of a profile. */
#ifndef PLANRT_PROFILE_OPS_H
#define PLANRT_PROFILE_OPS_H

#include <cjson/cJSON.h>

#include "planc/graph.h"

/* All pieces of ops at one load, merged op by op in the graph's order; NULL or spoilt where memory is short. */
cJSON *rt_profile_ops(const planc_graph *graph, const cJSON *pieces, int64_t load_ppm);

#endif
