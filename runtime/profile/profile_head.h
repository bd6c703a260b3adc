/* The first line of OUTPUT.part: how its pieces were measured, and of what. */
#ifndef PLANRT_PROFILE_HEAD_H
#define PLANRT_PROFILE_HEAD_H

#include <cjson/cJSON.h>

#include "runtime/profile/profile_file.h"

/* What must not change between two sittings. */
typedef struct rt_profile_ways {
  const planc_graph *graph;
  const char *machine;
  int32_t n_batches, n_loads;
  const int64_t *batches, *loads; /* in ascending order or not; loads in ppm, from 0 on */
  int64_t repetitions, most, warm_up_ms, link_bytes_per_s;
  const char *storage; /* the directory, or NULL */
  bool deterministic;
} rt_profile_ways;

/* Where memory is short it is spoilt, or NULL (util/json_tree.h). */
cJSON *rt_profile_head_of(const rt_profile_ways *ways);
/* STALE when a line is not that of this head, saying what differs and what is to be done. */
planc_status rt_profile_head_check(const char *line, const cJSON *head);

#endif
