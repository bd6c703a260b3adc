/* Jobs beside what others keep (beside.h). */
#include "planner/colocate/interleave/beside.h"

#include <stdlib.h>

#include "planner/colocate/jobs/in_job.h"
#include "util/math.h"

/* Parameters and state. */
static planc_status find_kept(const planc_mix *mix, int32_t job, int64_t *out_bytes) {
  const planc_problem problem = planc_mix_problem(mix, job);
  return pl_solo_kept(&problem, out_bytes);
}

planc_status pl_beside_new(const planc_mix_evaluator *evaluator, pl_beside *out) {
  const planc_mix *mix = evaluator->mix;
  *out = (pl_beside){.evaluator = evaluator, .mix = mix, .most = mix->terms.budgets[PLANC_MEMORY_DEVICE]};
  out->kept = calloc((size_t)mix->n_jobs, sizeof *out->kept);
  out->problems = calloc((size_t)mix->n_jobs, sizeof *out->problems);
  if (!out->kept || !out->problems) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t j = 0; j < mix->n_jobs; j++) PLANC_TRY(find_kept(mix, j, &out->kept[j]));
  return NULL;
}

void pl_beside_free(pl_beside *beside) {
  pl_solos_free(&beside->solos);
  free(beside->kept);
  free(beside->problems);
  *beside = (pl_beside){0};
}

static int64_t kept_by_others(const pl_beside *b, int32_t job) {
  int64_t sum = 0;
  for (int32_t j = 0; j < b->mix->n_jobs; j++)
    if (j != job) sum = pl_add_saturate(sum, b->kept[j]);
  return sum;
}

/* What a job alone would need is not enough in the mix. */
static planc_status beside_others(const pl_beside *b, int32_t job, planc_status status) {
  int64_t kept = kept_by_others(b, job);
  planc_shortage shortage = planc_status_shortage(status);
  if (planc_status_code(status) != PLANC_INFEASIBLE || b->mix->n_jobs == 1) return status;
  if (shortage.memory != PLANC_MEMORY_DEVICE) return pl_in_job(b->mix, job, status);
  if (shortage.bytes > 0) shortage.bytes = pl_add_saturate(shortage.bytes, kept);
  planc_status told = planc_infeasible(
      shortage, "job %d (%s), beside the other jobs' parameters and state, %lld bytes if all stay on the device: %s",
      job, planc_mix_job_name(b->mix, job), (long long)kept, planc_status_message(status));
  planc_status_free(status);
  return told;
}

planc_status pl_beside_make_in(pl_beside *b, int64_t room, bool first_will_do) {
  int32_t failed;
  pl_solos_free(&b->solos);
  for (int32_t j = 0; j < b->mix->n_jobs; j++) {
    int64_t left = room - kept_by_others(b, j);
    b->problems[j] = planc_mix_problem(b->mix, j);
    b->problems[j].terms.first_will_do = first_will_do;
    b->problems[j].terms.budgets[PLANC_MEMORY_DEVICE] = left < 0 ? 0 : left < b->most ? left : b->most;
  }
  planc_status status = pl_solos_make(b->evaluator, b->problems, NULL, &b->solos, &failed);
  return beside_others(b, failed, status);
}

static bool asks_for_more(planc_status status, int64_t room) {
  planc_shortage shortage = planc_status_shortage(status);
  return planc_status_code(status) == PLANC_INFEASIBLE && shortage.memory == PLANC_MEMORY_DEVICE &&
         shortage.bytes > room;
}

planc_status pl_beside_make(pl_beside *b, int64_t room, bool first_will_do) {
  enum { TRIES = 4 };
  planc_status first = pl_beside_make_in(b, room, first_will_do), last = first;
  b->stretched = first != NULL;
  for (int32_t k = 1; k < TRIES && asks_for_more(last, room); k++) {
    room = planc_status_shortage(last).bytes;
    if (last != first) planc_status_free(last);
    last = pl_beside_make_in(b, room, first_will_do);
  }
  planc_status told = planc_status_code(last) == PLANC_INFEASIBLE ? first : last;
  if (first != told) planc_status_free(first);
  if (last != told && last != first) planc_status_free(last);
  return told;
}
