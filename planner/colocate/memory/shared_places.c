/* Places in shared regions (shared_places.h). */
#include "planner/colocate/memory/shared_places.h"

#include "planner/colocate/jobs/by_time.h"
#include "planner/colocate/jobs/merge.h"
#include "planner/colocate/memory/place_passes.h"
#include "planner/colocate/memory/share_regions.h"

planc_status pl_shared_places_find(pl_arena *arena, const pl_timing *timing, const pl_areas *areas,
                                   int64_t capacity_bytes, int64_t ***out_addresses, bool *out_fit) {
  PLANC_TRY(pl_share_regions(arena, timing, areas, capacity_bytes, out_addresses, out_fit));
  return *out_fit ? NULL : pl_place_passes(arena, timing, areas, capacity_bytes, out_addresses, out_fit);
}

planc_status pl_shared_places_fewest(pl_arena *arena, const pl_timing *timing, const pl_areas *areas,
                                     int64_t region_bytes, int64_t capacity_bytes, int64_t *out_bytes) {
  int64_t fails = 0, fits = (capacity_bytes + region_bytes - 1) / region_bytes;
  while (fits - fails > 1) {
    int64_t middle = fails + (fits - fails) / 2, **addresses;
    bool fit;
    PLANC_TRY(pl_shared_places_find(arena, timing, areas, middle * region_bytes, &addresses, &fit));
    *(fit ? &fits : &fails) = middle;
  }
  *out_bytes = fits * region_bytes;
  return NULL;
}

planc_status pl_shared_places_merge(pl_arena *arena, const pl_timing *timing, const pl_areas *areas,
                                    int64_t *const *addresses, planc_candidate *out) {
  int64_t **own, **workspaces;
  pl_merge merge = {
      .n_jobs = timing->n_jobs, .jobs = timing->jobs, .iterations = timing->iterations, .residencies = addresses};
  PLANC_TRY(PL_NEW(arena, &own, timing->n_jobs));
  for (int32_t j = 0; j < timing->n_jobs; j++) own[j] = areas->jobs[j].workspaces;
  PLANC_TRY(pl_merge_repeat(arena, timing->n_jobs, timing->iterations, own, &workspaces));
  merge.workspaces = workspaces;
  PLANC_TRY(pl_turns_by_time(arena, timing, &merge.turns, &merge.n_turns));
  return pl_merge_candidates(&merge, out);
}
