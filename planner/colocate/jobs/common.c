/* The common device of a mix (common.h). */
#include "planner/colocate/jobs/common.h"

#include "planner/colocate/jobs/mix_check.h"
#include "planner/memory/placement_cache.h"
#include "util/math.h"

static planc_status set_common_profile(const planc_mix *mix, pl_common *out);
static planc_settings common_settings(const planc_mix *mix);
static void set_job(const planc_mix *mix, int32_t job, pl_common *out);

planc_status pl_common_make(const planc_mix *mix, pl_common *out) {
  *out = (pl_common){.mix = *mix};
  PLANC_TRY(pl_mix_check(mix));
  PLANC_TRY(PL_NEW(&out->arena, &out->jobs, mix->n_jobs));
  PLANC_TRY(PL_NEW(&out->arena, &out->profiles, mix->n_jobs));
  PLANC_TRY(PL_NEW(&out->arena, &out->plain_jobs, mix->n_jobs));
  PLANC_TRY(PL_NEW(&out->arena, &out->plain_profiles, mix->n_jobs));
  PLANC_TRY(set_common_profile(mix, out));
  if (!mix->terms.placement_cache) PLANC_TRY(pl_placement_cache_make(&out->own));
  if (out->own) out->mix.terms.placement_cache = out->own;
  if (mix->terms.watch) {
    out->watch = (planc_watch){.user = mix->terms.watch->user, .goes_on = mix->terms.watch->goes_on};
    out->mix.terms.watch = &out->watch;
  }
  out->all = (planc_target){&out->mix.terms, &out->profile, common_settings(mix)};
  for (int32_t j = 0; j < mix->n_jobs; j++) set_job(mix, j, out);
  out->mix.jobs = out->jobs;
  return NULL;
}

void pl_common_free(pl_common *common) {
  pl_placement_cache_free(common->own);
  pl_arena_free(&common->arena);
}

/* The first job whose profile is that of this one. */
static int32_t first_with_profile(const planc_mix *mix, int32_t job) {
  int32_t first = 0;
  while (mix->jobs[first].profile != mix->jobs[job].profile) first++;
  return first;
}

/* Each profile has measured what copies cost its own ops. */
static int64_t mean_slowdown_ppm(const planc_mix *mix) {
  int64_t sum = 0;
  for (int32_t j = 0; j < mix->n_jobs; j++)
    sum = pl_add_saturate(sum, planc_profile_device(mix->jobs[j].profile)->slowdown_ppm);
  return sum / mix->n_jobs;
}

static planc_status set_common_profile(const planc_mix *mix, pl_common *out) {
  out->profile = *mix->jobs[0].profile;
  out->profile.device.slowdown_ppm = mean_slowdown_ppm(mix);
  for (int32_t j = 1; j < mix->n_jobs; j++) {
    const planc_profile *own = mix->jobs[j].profile;
    if (first_with_profile(mix, j) < j) continue;
    if (own->device.reserved_bytes > out->profile.device.reserved_bytes)
      out->profile.device.reserved_bytes = own->device.reserved_bytes;
    PLANC_TRY(pl_labels_union(&out->arena, &out->profile.code, &own->code, &out->profile.code));
  }
  return NULL;
}

/* What a plan says of all jobs: 0 where each has its own. */
static planc_settings common_settings(const planc_mix *mix) {
  planc_settings settings = mix->terms.settings;
#define X(name, ...)                        \
  settings.name = mix->jobs[0].name;        \
  for (int32_t j = 1; j < mix->n_jobs; j++) \
    if (mix->jobs[j].name != mix->jobs[0].name) settings.name = 0;
  PLANC_EACH_SETTINGS(X)
#undef X
  return settings;
}

static void set_job(const planc_mix *mix, int32_t job, pl_common *out) {
  int32_t first = first_with_profile(mix, job);
  if (first == job) {
    out->profiles[job] = *mix->jobs[job].profile;
    out->profiles[job].device = out->profile.device;
    out->plain_profiles[job] = out->profiles[job];
    out->plain_profiles[job].baselines_only = true;
  }
  out->jobs[job] = out->plain_jobs[job] = mix->jobs[job];
  out->jobs[job].profile = &out->profiles[first];
  out->plain_jobs[job].profile = &out->plain_profiles[first];
}

planc_mix pl_common_mix(const pl_common *common, const planc_target *target) {
  planc_mix mix = common->mix;
  mix.terms = *target->terms;
  if (target->profile->baselines_only) mix.jobs = common->plain_jobs;
  return mix;
}
