/* The common problem of a mix (common.h). */
#include "planner/colocate/common.h"

planc_problem pl_common_job(const pl_common *common, int32_t job, const planc_problem *problem) {
  const planc_problem *own = &common->jobs[job];
  planc_problem out = *problem;
  out.graph = own->graph;
  out.profile = own->profile;
  out.batch = own->batch;
  out.sub_batch = own->sub_batch;
  out.side_by_side = own->side_by_side;
  out.split_batch_norm = own->split_batch_norm;
  out.priority = own->priority;
#define X(name, ...) out.settings.name = own->settings.name;
  PLANC_EACH_SETTINGS(X)
#undef X
  return out;
}

static planc_status set_common_profile(const planc_mix *mix, pl_common *out);
static void set_job(const planc_mix *mix, int32_t job, pl_common *out);

planc_status pl_common_make(const planc_mix *mix, pl_common *out) {
  *out = (pl_common){.mix = *mix, .problem = mix->jobs[0]};
  PLANC_TRY(PL_NEW(&out->arena, &out->jobs, mix->n_jobs));
  PLANC_TRY(PL_NEW(&out->arena, &out->profiles, mix->n_jobs));
  PLANC_TRY(set_common_profile(mix, out));
  out->problem.profile = &out->profile;
  /* A plan states what is the same of all jobs. */
#define X(name, ...)                        \
  for (int32_t j = 1; j < mix->n_jobs; j++) \
    if (mix->jobs[j].settings.name != mix->jobs[0].settings.name) out->problem.settings.name = 0;
  PLANC_EACH_SETTINGS(X)
#undef X
  for (int32_t j = 0; j < mix->n_jobs; j++) set_job(mix, j, out);
  out->mix.jobs = out->jobs;
  return NULL;
}

void pl_common_free(pl_common *common) {
  pl_arena_free(&common->arena);
}

/* The first job whose profile is that of this one. */
static int32_t first_with_profile(const planc_mix *mix, int32_t job) {
  int32_t first = 0;
  while (mix->jobs[first].profile != mix->jobs[job].profile) first++;
  return first;
}

static planc_status set_common_profile(const planc_mix *mix, pl_common *out) {
  out->profile = *mix->jobs[0].profile;
  for (int32_t j = 1; j < mix->n_jobs; j++) {
    const planc_profile *own = mix->jobs[j].profile;
    if (first_with_profile(mix, j) < j) continue;
    if (own->device.reserved_bytes > out->profile.device.reserved_bytes)
      out->profile.device.reserved_bytes = own->device.reserved_bytes;
    PLANC_TRY(pl_labels_union(&out->arena, &out->profile.code, &own->code, &out->profile.code));
  }
  return NULL;
}

static void set_job(const planc_mix *mix, int32_t job, pl_common *out) {
  int32_t first = first_with_profile(mix, job);
  if (first == job) {
    out->profiles[job] = *mix->jobs[job].profile;
    out->profiles[job].device = out->profile.device;
  }
  out->jobs[job] = mix->jobs[job];
  out->jobs[job].profile = &out->profiles[first];
  out->jobs[job] = pl_common_job(out, job, &out->problem);
}
