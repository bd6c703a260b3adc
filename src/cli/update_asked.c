/* What the plan at hand was asked for, and what of that the next one is asked for (update_setup.h). */
#include <inttypes.h>
#include <string.h>

#include "cli/update_setup.h"
#include "util/math.h"

static int64_t device_of(const planc_plan *plan);
static int64_t storage_of(const planc_plan *plan);

/* A setting that every policy has use for is asked of every other one. */
bool cli_update_has_use(const planc_plan *plan, const char *policy, uint32_t supports, uint32_t users) {
  return strcmp(policy, plan->policy) == 0 || users == 0 || (supports & users);
}

planc_settings cli_update_kept_settings(const planc_plan *plan, const char *policy, uint32_t supports) {
  planc_settings kept = plan->settings;
#define X(name, option, kind, least, most, standard, users, help) \
  if (!cli_update_has_use(plan, policy, supports, users)) kept.name = 0;
  PLANC_SETTINGS(X)
#undef X
  return kept;
}

/* --- Budgets ------------------------------------------------------------------------------------------------------ */

void cli_update_read_budgets(const cli_update *u, int64_t budgets[PLANC_N_BUDGETS]) {
  budgets[PLANC_MEMORY_DEVICE] = device_of(u->plan);
  budgets[PLANC_MEMORY_HOST] = planc_plan_memory(u->plan, PLANC_MEMORY_HOST)->budget_bytes;
  budgets[PLANC_MEMORY_STORAGE] = u->is_mix ? 0 : storage_of(u->plan);
}

/* A budget that the plan does not limit is all that the machine has. */
static int64_t limit_of(const planc_memory *memory) {
  if (memory->budget_bytes >= 0) return memory->budget_bytes;
  return memory->bytes >= 0 ? memory->bytes : PL_EXACT_MAX;
}

static int64_t device_of(const planc_plan *plan) {
  return limit_of(planc_plan_memory(plan, PLANC_MEMORY_DEVICE));
}

/* How much storage the plan was made for. */
static int64_t storage_of(const planc_plan *plan) {
  const planc_memory *memory = planc_plan_memory(plan, PLANC_MEMORY_STORAGE);
  return memory->kind == PLANC_MEMORY_STORAGE ? limit_of(memory) : 0;
}

bool cli_update_has_other_budgets(const cli_update *u, const planc_terms *terms) {
  int64_t budgets[PLANC_N_BUDGETS];
  bool others = false;
  cli_update_read_budgets(u, budgets);
  for (int32_t m = 0; m < PLANC_N_BUDGETS; m++) others |= terms->budgets[m] != budgets[m];
  return others;
}

/* The plan's own decisions may need less than a plan made anew. */
void cli_update_note_kept(const planc_terms *terms, const planc_plan *kept, planc_status failed) {
  char text[PL_SIZE_TEXT];
  for (int32_t m = 0; m < PLANC_N_BUDGETS && planc_status_code(failed) == PLANC_INFEASIBLE; m++) {
    int64_t bytes = kept->predicted.peak_bytes[m], budget = terms->budgets[m];
    if (budget < 0 || bytes <= budget) continue;
    cli_note("the decisions of the plan at hand need a %s of %" PRId64 " bytes (%s)",
             cli_budget_name((planc_memory_kind)m), bytes, pl_size_format(bytes, text));
  }
}
