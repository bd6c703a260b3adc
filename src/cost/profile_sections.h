/* Sections of a profile as they are read, planc-profile(5). */
#ifndef PLANC_COST_PROFILE_SECTIONS_H
#define PLANC_COST_PROFILE_SECTIONS_H

#include "cost/profile.h"

planc_status planc_read_device(const planc_json *at, planc_arena *arena, planc_device *out);
planc_status planc_read_compute(const planc_json *at, planc_compute *out);
planc_status planc_read_efficiency(const planc_json *at, int64_t out[PLANC_N_CLASSES]);
planc_status planc_read_multiply(const planc_json *at, planc_multiply out[PLANC_N_MULTIPLIES]);
planc_status planc_read_cache(const planc_json *at, planc_cache_rate *out);

/* These are not kept. */
planc_status planc_check_links(const planc_json *at);
planc_status planc_check_refused(const planc_json *at);

#endif
