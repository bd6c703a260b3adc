/* `planc compare --budgets` (compare_frontier.h): what time costs in memory. */
#include "cli/compare_frontier.h"

#include <stdlib.h>
#include <string.h>

#include "cli/budget_list.h"
#include "cli/cli.h"
#include "cli/policy_list.h"
#include "planc/bound.h"
#include "program/print.h"
#include "program/progress.h"
#include "util/ascending.h"

typedef struct cell {
  bool feasible;
  int64_t period_ns, ideal_ns, bound_ns, peak_bytes; /* bound: 0 = none */
} cell;

/* The whole answer. */
typedef struct frontier {
  cli_setup setup;
  cli_budget_list budgets; /* ascending */
  cli_policy_list policies;
  cell *cells;               /* by policy, by budget; owned */
  planc_status *unsupported; /* by policy: why it cannot plan this graph under any budget; owned, as these are */
} frontier;

static planc_status fill(const prog_arguments *arguments, frontier *f);
static planc_status print(const frontier *f);
static planc_status print_json(const frontier *f);

planc_status cli_compare_frontier(const prog_arguments *arguments) {
  frontier f = {0};
  planc_status status = fill(arguments, &f);
  prog_progress_end(stderr);
  if (!status) status = prog_option_given(arguments, "json") ? print_json(&f) : print(&f);
  for (int32_t i = 0; f.unsupported && i < f.policies.n; i++) planc_status_free(f.unsupported[i]);
  free(f.unsupported);
  free(f.cells);
  cli_policy_list_free(&f.policies);
  cli_setup_free(&f.setup);
  return status;
}

static cell *cell_of(const frontier *f, int32_t policy, int32_t budget) {
  return &f->cells[policy * f->budgets.n + budget];
}

/* --- Planning ----------------------------------------------------------------------------------------------------- */

static planc_status read_budgets(const prog_arguments *arguments, frontier *f);
static planc_status check_budgets(frontier *f);
static planc_status plan_within(frontier *f, int32_t policy, int32_t budget);
static planc_status require_supported(frontier *f);

static planc_status fill(const prog_arguments *arguments, frontier *f) {
  PLANC_TRY(read_budgets(arguments, f));
  PLANC_TRY(cli_policy_list_read(arguments, &f->policies));
  PLANC_TRY(cli_setup_work(arguments, arguments->operands[0], &f->setup));
  PLANC_TRY(check_budgets(f));
  f->cells = calloc((size_t)f->policies.n * (size_t)f->budgets.n, sizeof *f->cells);
  f->unsupported = calloc((size_t)f->policies.n, sizeof(planc_status));
  if (!f->cells || !f->unsupported) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t i = 0; i < f->policies.n; i++)
    for (int32_t b = 0; b < f->budgets.n && !f->unsupported[i]; b++) PLANC_TRY(plan_within(f, i, b));
  return require_supported(f);
}

static planc_status read_budgets(const prog_arguments *arguments, frontier *f) {
  cli_budget_list *list = &f->budgets;
  static const char *const others[] = {"budget", "max-batch", "no-least"};
  for (size_t k = 0; k < sizeof others / sizeof *others; k++)
    if (prog_option_given(arguments, others[k]))
      return planc_error(PLANC_USAGE, "--budgets and --%s exclude each other", others[k]);
  PLANC_TRY(cli_budget_list_parse("budgets", prog_option_value(arguments, "budgets"), list));
  qsort(list->bytes, (size_t)list->n, sizeof *list->bytes, pl_ascending);
  for (int32_t b = 1; b < list->n; b++)
    if (list->bytes[b] == list->bytes[b - 1])
      return planc_error(PLANC_USAGE, "--budgets: %lld bytes are there twice", (long long)list->bytes[b]);
  return NULL;
}

/* Warns of those beyond the device. */
static planc_status check_budgets(frontier *f) {
  planc_problem *problem = &f->setup.problem;
  for (int32_t b = 0; b < f->budgets.n; b++) {
    problem->terms.budgets[PLANC_MEMORY_DEVICE] = f->budgets.bytes[b];
    PLANC_TRY(cli_setup_budget(planc_profile_device(problem->job.profile), &problem->terms));
  }
  return NULL;
}

/* What fails after the problem was read but for want of memory is the policy's: see planc compare. */
static planc_status plan_within(frontier *f, int32_t policy, int32_t budget) {
  const planc_policy *of = f->policies.policies[policy];
  planc_problem *problem = &f->setup.problem;
  cell *out = cell_of(f, policy, budget);
  planc_plan *plan;
  prog_progress(stderr, "%s (%d of %d), budget %d of %d", of->name, policy + 1, f->policies.n, budget + 1,
                f->budgets.n);
  problem->terms.budgets[PLANC_MEMORY_DEVICE] = f->budgets.bytes[budget];
  planc_status status = planc_make_plan(problem, of, &plan);
  planc_code code = planc_status_code(status);
  if (code == PLANC_USAGE || code == PLANC_BAD_INPUT) f->unsupported[policy] = prog_remedy(status);
  if (code == PLANC_INFEASIBLE) planc_status_free(status);
  if (code == PLANC_USAGE || code == PLANC_BAD_INPUT || code == PLANC_INFEASIBLE) return NULL;
  if (status) return planc_context(status, "%s", of->name);
  if (!(of->supports & PLANC_POLICY_SIMULATED)) status = planc_bound_plan(problem, CLI_BOUND_EFFORT, plan);
  *out = (cell){.feasible = true,
                .period_ns = plan->predicted.period_ns,
                .ideal_ns = planc_plan_predicted_total(plan).ideal_ns,
                .bound_ns = plan->predicted.bound_ns,
                .peak_bytes = plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE]};
  planc_plan_free(plan);
  return status;
}

/* A graph that no policy can plan makes no table: the first reason is the error. */
static planc_status require_supported(frontier *f) {
  for (int32_t i = 0; i < f->policies.n; i++)
    if (!f->unsupported[i]) return NULL;
  planc_status first = f->unsupported[0];
  f->unsupported[0] = NULL;
  return planc_context(first, "%s", f->policies.policies[0]->name);
}

/* The policy that is fastest with a budget, of equal ones that which policy `best` would take; -1 where none fits. */
static int32_t fastest(const frontier *f, int32_t budget) {
  int32_t best = -1;
  for (const planc_policy *policy = planc_policies(); policy->name; policy++) {
    for (int32_t i = 0; i < f->policies.n; i++) {
      const cell *it = cell_of(f, i, budget);
      if (f->policies.policies[i] != policy || !it->feasible || (policy->supports & PLANC_POLICY_SIMULATED)) continue;
      if (best < 0 ||
          planc_is_preferred(it->period_ns, f->policies.policies[best]->name, cell_of(f, best, budget)->period_ns))
        best = i;
    }
  }
  return best;
}

/* Within a budget: a plan for less memory fits as well, and may be faster, as searches find what they find. The budget
 * that it is made with, the largest of equal ones; -1 where none fits. */
static int32_t fastest_budget(const frontier *f, int32_t within) {
  int32_t best = -1;
  for (int32_t b = within; b >= 0; b--) {
    int32_t policy = fastest(f, b);
    if (policy < 0) continue;
    if (best < 0 || cell_of(f, policy, b)->period_ns < cell_of(f, fastest(f, best), best)->period_ns) best = b;
  }
  return best;
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

static void print_row(const frontier *f, int32_t policy);
static void print_best(const frontier *f, int32_t budget);

static planc_status print(const frontier *f) {
  const planc_problem *problem = &f->setup.problem;
  char text[PL_SIZE_TEXT], batch[CLI_BATCH_TEXT];
  prog_print_line(stdout, "%s, %s on %s", problem->job.graph->name,
                  cli_batch_format(problem->job.graph, problem->job.batch * problem->terms.gpus, batch),
                  planc_profile_device(problem->job.profile)->name);
  printf("%-12s", "policy");
  for (int32_t b = 0; b < f->budgets.n; b++) printf(" %15s", pl_size_format(f->budgets.bytes[b], text));
  printf("\n");
  for (int32_t i = 0; i < f->policies.n; i++) print_row(f, i);
  puts("");
  for (int32_t b = 0; b < f->budgets.n; b++) print_best(f, b);
  return NULL;
}

static void print_row(const frontier *f, int32_t policy) {
  char text[PL_SIZE_TEXT];
  printf("%-12s", f->policies.policies[policy]->name);
  if (f->unsupported[policy]) {
    prog_print_line(stdout, "   unsupported: %s", planc_status_message(f->unsupported[policy]));
    return;
  }
  for (int32_t b = 0; b < f->budgets.n; b++) {
    const cell *it = cell_of(f, policy, b);
    printf(" %14s%c", it->feasible ? pl_time_format(it->period_ns, text) : "-", fastest(f, b) == policy ? '*' : ' ');
  }
  printf("\n");
}

static double percent_over(int64_t ns, int64_t of) {
  return of > 0 ? 100.0 * (double)(ns - of) / (double)of : 0.0;
}

enum { RESERVED_TEXT = PL_SIZE_TEXT + 64 };

/* Of a budget that is too small, that it is for what is reserved as well; empty where nothing is. */
static const char *reserved_format(const frontier *f, int64_t budget, char buffer[RESERVED_TEXT]) {
  const planc_device *device = planc_profile_device(f->setup.problem.job.profile);
  char text[PL_SIZE_TEXT];
  if (device->reserved_bytes == 0) return "";
  snprintf(buffer, RESERVED_TEXT,
           device->reserved_bytes > budget ? ", less than the %s reserved" : ", %s of it are reserved",
           pl_size_format(device->reserved_bytes, text));
  return buffer;
}

static void print_best(const frontier *f, int32_t budget) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[RESERVED_TEXT];
  int32_t with = fastest_budget(f, budget);
  printf("%12s  ", pl_size_format(f->budgets.bytes[budget], a));
  if (with < 0) {
    printf("no policy of these fits%s\n", reserved_format(f, f->budgets.bytes[budget], c));
    return;
  }
  int32_t best = fastest(f, with);
  const cell *it = cell_of(f, best, with);
  printf("%s %s, %+.1f %%", f->policies.policies[best]->name, pl_time_format(it->period_ns, b),
         percent_over(it->period_ns, it->ideal_ns));
  if (with != budget)
    printf(", planned for %s", pl_size_format(f->budgets.bytes[with], a));
  else if (it->bound_ns > 0)
    printf("; no plan in this order and such rounds is faster than %s (%+.1f %%)", pl_time_format(it->bound_ns, a),
           percent_over(it->period_ns, it->bound_ns));
  printf("\n");
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void report_budget(const frontier *f, int32_t budget, cJSON *array);

static planc_status print_json(const frontier *f) {
  const planc_problem *problem = &f->setup.problem;
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "compare-budgets/1");
  pl_json_add_string(object, "graph", problem->job.graph->name);
  pl_json_add_string(object, "device", planc_profile_device(problem->job.profile)->name);
  cli_report_batch(object, problem->job.graph, problem->job.batch * problem->terms.gpus);
  pl_json_add_int(object, "gpus", problem->terms.gpus);
  cJSON *array = pl_json_add_array(object, "budgets");
  for (int32_t b = 0; b < f->budgets.n; b++) report_budget(f, b, array);
  return prog_print_json(stdout, object);
}

static void report_budget(const frontier *f, int32_t budget, cJSON *array) {
  cJSON *json = pl_json_add_object(array, NULL);
  int32_t with = fastest_budget(f, budget);
  pl_json_add_int(json, "budget_bytes", f->budgets.bytes[budget]);
  if (with >= 0)
    pl_json_add_string(json, "best", f->policies.policies[fastest(f, with)]->name);
  else
    pl_json_add_null(json, "best");
  pl_json_add_known(json, "planned_for_bytes", with >= 0, with >= 0 ? f->budgets.bytes[with] : 0);
  cJSON *rows = pl_json_add_array(json, "rows");
  for (int32_t i = 0; i < f->policies.n; i++) {
    const cell *it = cell_of(f, i, budget);
    cJSON *row = pl_json_add_object(rows, NULL);
    pl_json_add_string(row, "policy", f->policies.policies[i]->name);
    pl_json_add_bool(row, "feasible", it->feasible);
    if (f->unsupported[i])
      pl_json_add_string(row, "unsupported", planc_status_message(f->unsupported[i]));
    else
      pl_json_add_null(row, "unsupported");
    pl_json_add_known(row, "iteration_ns", it->feasible, it->period_ns);
    pl_json_add_known(row, "ideal_ns", it->feasible, it->ideal_ns);
    pl_json_add_known(row, "bound_ns", it->bound_ns > 0, it->bound_ns);
    pl_json_add_known(row, "peak_bytes", it->feasible, it->peak_bytes);
  }
}
