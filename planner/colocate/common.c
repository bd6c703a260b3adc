/* The common problem of a mix (common.h). */
#include "planner/colocate/common.h"

planc_problem pl_common_terms(const planc_problem *first, const planc_problem *job) {
  planc_problem problem = *first;
  problem.graph = job->graph;
  problem.profile = job->profile;
  problem.batch = job->batch;
  problem.sub_batch = job->sub_batch;
  problem.split_batch_norm = job->split_batch_norm;
  return problem;
}

planc_status pl_common_make(const planc_mix *mix, pl_common *out) {
  *out = (pl_common){.problem = mix->jobs[0], .profile = *mix->jobs[0].profile};
  out->problem.profile = &out->profile;
  for (int32_t j = 1; j < mix->n_jobs; j++) {
    const planc_profile *own = mix->jobs[j].profile;
    if (own->device.reserved_bytes > out->profile.device.reserved_bytes)
      out->profile.device.reserved_bytes = own->device.reserved_bytes;
    if (own != mix->jobs[0].profile)
      PLANC_TRY(pl_labels_union(&out->arena, &out->profile.code, &own->code, &out->profile.code));
  }
  return NULL;
}

void pl_common_free(pl_common *common) {
  pl_arena_free(&common->arena);
}
