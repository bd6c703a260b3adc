/* Sections of a profile as they are read, planc-profile(5). */
#ifndef PLANC_COST_PROFILE_SECTIONS_H
#define PLANC_COST_PROFILE_SECTIONS_H

#include "cost/profile.h"

planc_status pl_read_device(const pl_json *at, pl_arena *arena, planc_device *out);
planc_status pl_read_compute(const pl_json *at, pl_compute *out);
planc_status pl_read_efficiency(const pl_json *at, int64_t out[PL_N_CLASSES]);
planc_status pl_read_multiply(const pl_json *at, pl_multiply out[PL_N_MULTIPLIES]);
planc_status pl_read_occupancy(const pl_json *at, pl_occupancy *out);
planc_status pl_read_cache(const pl_json *at, pl_cache_rate *out);

/* These are not kept. */
planc_status pl_check_links(const pl_json *at);
planc_status pl_check_refused(const pl_json *at);

#endif
