/* Fuzzing the executor: a plan that the checker passes runs to the reference's bits in any order its events allow, with
 * none, one and two bodies; one that it refuses, run all the same, ends in an error or wrong bits and touches no memory
 * but the session's. */
#include <stdlib.h>

#include "planc/trace.h"
#include "planrt/planrt.h"
#include "util/math.h"

enum { MOST_BYTES = 1 << 24, MOST_INSTANCES = 4096, MOST_GPUS = 8, MOST_STREAMS = 256, MOST_BODIES = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether a run is over soon. */
static bool is_small(const planc_plan *plan) {
  int64_t instances = 0, bytes = 0, replicas = planc_plan_replicas(plan);
  if (planc_plan_gpus(plan) * replicas > MOST_GPUS || plan->n_jobs > MOST_INSTANCES / MOST_GPUS) return false;
  if (plan->n_streams > MOST_STREAMS) return false;
  for (int32_t m = 0; m < plan->n_memories; m++) bytes = pl_add_saturate(bytes, plan->memories[m].arena_bytes);
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_job *job = &plan->jobs[j];
    if (job->n_rounds < 1 || job->iterations < 1 || job->batch < 1 || job->iterations > MOST_INSTANCES) return false;
    instances += ((int64_t)job->graph->n_ops + 1) * job->n_rounds * job->iterations * replicas;
    for (int32_t s = 0; s < job->graph->n_storages; s++) {
      int64_t one = planc_law_at(job->graph->storages[s].bytes, job->batch), all;
      if (one < 0 || pl_mul_overflow(one, (int64_t)job->iterations * job->n_rounds, &all)) return false;
      bytes = pl_add_saturate(bytes, all);
    }
    if (instances > MOST_INSTANCES || bytes > MOST_BYTES / replicas) return false;
  }
  return true;
}

static planc_status run(const planc_plan *plan, bool valid, bool interleaved) {
  planrt_options options = {
      .synthetic = true, .verify = valid, .poison = true, .unchecked = !valid, .storage_path = "/var/tmp"};
  planrt_session *session;
  PLANC_TRY(planrt_session_new(plan, &options, &session));
  planc_status status = planrt_init(session);
  /* From none on: what a run leaves in the arena must not be what the next reads too early. */
  for (int64_t bodies = 0; !status && bodies <= MOST_BODIES; bodies++)
    status = interleaved ? planrt_run_interleaved(session, bodies, 1) : planrt_run(session, bodies);
  planrt_session_free(session);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  planc_plan *plan;
  planc_status status = planc_plan_parse((const char *)data, size, "fuzz", &plan);
  if (status) {
    planc_status_free(status);
    return 0;
  }
  if (is_small(plan)) {
    status = planc_check(plan, NULL, NULL);
    bool valid = !status;
    planc_status_free(status);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
      status = run(plan, valid, interleaved);
      /* The host backend has all that a plan may ask for, but for copies between a device and storage. */
      if (valid && status && planc_status_code(status) != PLANC_DEVICE) abort();
      planc_status_free(status);
    }
  }
  planc_plan_free(plan);
  return 0;
}
