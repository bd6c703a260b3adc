/* Planning with the code of algorithms on the device (code.h). */
#include "planner/base/code.h"

#include <string.h>

#include "cost/profile.h"
#include "plan/derived.h"
#include "util/map.h"
#include "util/math.h"

enum { MAX_ATTEMPTS = 4, UNKNOWN = -1 };

#define DEFAULT_CHUNK (INT64_C(40) << 20) /* papers: out-of-core, 4 */
#define DEFAULT_PAGE (INT64_C(2) << 20)   /* there: the least that the driver maps */

int64_t pl_arena_chunk(const planc_terms *terms) {
  if (terms->placement == PLANC_PLACEMENT_BEST_FIT) return 0;
  if (terms->chunk_bytes > 0) return terms->chunk_bytes;
  return terms->placement == PLANC_PLACEMENT_PAGED ? DEFAULT_PAGE : DEFAULT_CHUNK;
}

int64_t pl_reserved(const planc_terms *terms, const planc_profile *profile) {
  return pl_add_saturate(planc_profile_device(profile)->reserved_bytes, terms->code_bytes);
}

int64_t pl_arena_room(const planc_terms *terms, const planc_profile *profile) {
  const int64_t room = pl_max(terms->budgets[PLANC_MEMORY_DEVICE] - pl_reserved(terms, profile), 0);
  const int64_t chunk_bytes = pl_arena_chunk(terms);
  return chunk_bytes > 0 ? room / chunk_bytes * chunk_bytes : room;
}

planc_problem pl_problem_on(const planc_target *target, const planc_problem *problem) {
  planc_problem on = {.terms = *target->terms, .job = problem->job};
  on.job.profile = target->profile;
  return on;
}

int64_t pl_code_of_plan(const planc_profile *profile, const planc_plan *plan) {
  int64_t sum = 0;
  for (int32_t a = 0; a < plan->n_algorithms; a++)
    sum = pl_add_saturate(sum, planc_profile_code(profile, plan->algorithms[a]));
  return sum;
}

static planc_status add_code(const planc_profile *profile, const planc_schedule *schedule, pl_map *seen, int64_t *sum) {
  const planc_command *commands = planc_schedule_commands(schedule);
  for (int32_t c = 0; c < planc_schedule_n_commands(schedule); c++) {
    if (commands[c].kind != PLANC_CMD_EXEC) continue;
    const char *algorithm = planc_schedule_variant(schedule, &commands[c]).algorithm;
    if (pl_map_get(seen, algorithm, strlen(algorithm)) >= 0) continue;
    PLANC_TRY(pl_map_put(seen, algorithm, strlen(algorithm), 0));
    *sum = pl_add_saturate(*sum, planc_profile_code(profile, algorithm));
  }
  return NULL;
}

planc_status pl_code_of_schedule(const planc_profile *profile, const planc_schedule *schedule, int64_t *out_bytes) {
  pl_map seen = {0};
  *out_bytes = 0;
  if (planc_profile_code_of_all(profile) == 0) return NULL;
  planc_status status = add_code(profile, schedule, &seen, out_bytes);
  pl_map_free(&seen);
  return status;
}

void pl_charge_code(const planc_profile *profile, planc_plan *plan) {
  int64_t reserved = planc_profile_device(profile)->reserved_bytes;
  reserved = pl_add_saturate(reserved, pl_code_of_plan(profile, plan));
  for (int32_t m = 0; m < planc_plan_gpus(plan); m++) plan->memories[m].reserved_bytes = reserved;
  pl_plan_find_peaks(plan);
}

/* Attempts so far, and how the last one ended. */
typedef struct attempts {
  pl_code_maker make;
  void *user;
  int64_t assumed[MAX_ATTEMPTS + 1];
  int32_t n;
  bool any_fits;
  planc_status failure; /* INFEASIBLE, or NULL: it fits */
} attempts;

static planc_status attempt_upwards(attempts *a, const planc_target *target);
static bool was_assumed(const attempts *a, int64_t code);
static planc_status attempt(attempts *a, const planc_target *target, int64_t code, int64_t *out_code);
static planc_status attempt_baselines(attempts *a, const planc_target *target);

planc_status pl_with_code(const planc_target *target, pl_code_maker make, void *user) {
  int64_t all = planc_profile_code_of_all(target->profile), unused;
  if (all == 0 || target->terms->code_is_given) return make(user, target, &unused);
  attempts a = {.make = make, .user = user};
  planc_status status = attempt_upwards(&a, target);
  if (!status && !a.any_fits && !was_assumed(&a, all)) status = attempt(&a, target, all, &unused);
  if (!status && !a.any_fits) status = attempt_baselines(&a, target);
  if (status || a.any_fits) {
    planc_status_free(a.failure);
    return status;
  }
  return a.failure;
}

static planc_status attempt_baselines(attempts *a, const planc_target *target) {
  planc_target plain = *target;
  planc_profile profile = *target->profile;
  profile.baselines_only = true;
  plain.profile = &profile;
  return attempt_upwards(a, &plain);
}

static planc_status attempt(attempts *a, const planc_target *target, int64_t code, int64_t *out_code) {
  planc_target at = *target;
  planc_terms terms = *target->terms;
  terms.code_bytes = code;
  terms.code_is_given = true;
  at.terms = &terms;
  a->assumed[a->n++] = code;
  *out_code = UNKNOWN;
  planc_status_free(a->failure);
  a->failure = NULL;
  planc_status status = a->make(a->user, &at, out_code);
  a->any_fits |= !status;
  if (status && planc_status_code(status) != PLANC_INFEASIBLE) return status;
  a->failure = status;
  return NULL;
}

static bool was_assumed(const attempts *a, int64_t code) {
  for (int32_t k = 0; k < a->n; k++)
    if (a->assumed[k] == code) return true;
  return false;
}

/* From none on, each with what the one before ran: what fits although no code was thought of had all the room there is,
 * and what fits with code to spare may do with less. */
static planc_status attempt_upwards(attempts *a, const planc_target *target) {
  int64_t code = 0, used;
  for (a->n = 0; a->n < MAX_ATTEMPTS && !was_assumed(a, code); code = used) {
    PLANC_TRY(attempt(a, target, code, &used));
    if (used == UNKNOWN || (!a->failure && used >= code)) break;
  }
  return NULL;
}
