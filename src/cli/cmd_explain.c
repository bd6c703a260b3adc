/* `planc explain`: why a plan takes the time and the memory that it does. */
#include <string.h>

#include "cli/cli.h"
#include "cli/users_lines.h"
#include "plan/one_job.h"
#include "planc/analysis.h"
#include "planc/bound.h"
#include "planc/check.h"
#include "planc/plan_gaps.h"
#include "planc/simulate.h"
#include "program/print.h"
#include "util/math.h"

/* Prices are those of a GiB, or of as large a part of the budget where that is less. */
enum { TOP = 10, BOUND_EFFORT = 1, GIB = 1 << 30, PARTS = 4 };

static const prog_option options[] = {
    {"top", 'n', "N", "how many gaps to tell of (default: 10)"},
    {"device", 'd', "NAME|FILE", "what prices are found with (default: the description of the plan's device)"},
    {"profile", 'p', "FILE", "the same, of a plan that was made with a measured profile"},
    {"json", 0, NULL, "the same as one line of JSON"},
    {0},
};

/* What no plan is faster than within another budget. */
typedef struct price {
  bool known, fits;
  int64_t budget;
  planc_bound bound;
} price;

/* What a period has beyond the ops with their fastest algorithms, whole batch: X(key, text). Those behind the stalls'
 * numbers are no stalls. */
#define LOSSES(X)                                    \
  X("wait_in_ns", "waits for copies in")             \
  X("wait_out_ns", "waits for copies out")           \
  X("wait_store_ns", "waits for copies to storage")  \
  X("wait_load_ns", "waits for copies from storage") \
  X("wait_launch_ns", "waits for launches")          \
  X("recompute_ns", "ops that run again")            \
  X("moves_ns", "moves on the device")               \
  X("slowdown_ns", "slowed by copies beside ops")    \
  X("slower_ns", "slower algorithms, smaller rounds")
enum { LOSS_RECOMPUTE = PLANC_N_STALLS, LOSS_MOVES, LOSS_SLOWDOWN, LOSS_SLOWER, N_LOSSES };

static const struct {
  const char *key, *text;
} losses[] = {
#define X(key, text) {key, text},
    LOSSES(X)
#undef X
};

typedef struct explained {
  const char *path;
  planc_plan *plan;
  int64_t top;
  planc_simulation simulation;
  int64_t losses_ns[N_LOSSES];
  bool has_losses; /* of several streams, which compute at a time, they would not add up */
  int64_t step;    /* bytes by which the budgets of the prices differ */
  price less, more;
  const planc_plan_gaps *gaps;
} explained;

static planc_status run(const prog_arguments *arguments);
static planc_status explain(const prog_arguments *arguments, explained *e);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);
static planc_status simulate(explained *e);
static planc_status find_prices(const prog_arguments *arguments, explained *e);
static planc_status print(const explained *e);
static planc_status print_json(const explained *e);

const prog_subcommand cli_cmd_explain = {
    {"explain", "PLAN", "tell why a plan takes the time and memory that it does", options, 1, 1}, run, list_files};

static planc_status run(const prog_arguments *arguments) {
  explained e = {.path = arguments->operands[0]};
  if (prog_option_given(arguments, "profile") && prog_option_given(arguments, "device"))
    return planc_error(PLANC_USAGE, "--profile and --device exclude each other");
  PLANC_TRY(prog_option_int(arguments, "top", 0, INT32_MAX, TOP, &e.top));
  PLANC_TRY(planc_plan_read(e.path, &e.plan));
  planc_status status = planc_context(planc_check(e.plan, NULL, NULL), "%s", e.path);
  if (!status) status = explain(arguments, &e);
  planc_plan_free(e.plan);
  return status;
}

static planc_status explain(const prog_arguments *arguments, explained *e) {
  planc_plan_gaps *gaps;
  PLANC_TRY(planc_context(simulate(e), "%s", e->path));
  PLANC_TRY(find_prices(arguments, e));
  PLANC_TRY(planc_context(planc_plan_gaps_of(e->plan, &gaps), "%s", e->path));
  e->gaps = gaps;
  planc_status status = prog_option_given(arguments, "json") ? print_json(e) : print(e);
  planc_plan_gaps_free(gaps);
  return status;
}

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  PLANC_TRY(prog_used_files_read(files, arguments->operands[0]));
  return prog_used_files_read(files, prog_option_value(arguments, "profile"));
}

/* --- Where time goes ---------------------------------------------------------------------------------------------- */

/* What copies inside of the device take of a period. */
static int64_t moves_ns(const planc_plan *plan) {
  int64_t sum = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op == PLANC_INSTR_copy) sum = pl_add_saturate(sum, instr->time_ns);
  }
  return sum;
}

/* What the plan says of its time may not be so: it may have been changed. */
static planc_status simulate(explained *e) {
  const planc_simulation *s = &e->simulation;
  planc_predictions *stated = &e->plan->predicted;
  int32_t n_compute = 0;
  PLANC_TRY(planc_simulate(e->plan, &(planc_simulate_options){.steady_only = true}, &e->simulation));
  if (stated->period_ns != s->period_ns)
    cli_note("%s says that a period takes %lld ns: it takes %lld", e->path, (long long)stated->period_ns,
             (long long)s->period_ns);
  stated->period_ns = s->period_ns;
  if (stated->bound_ns > s->period_ns) {
    cli_note("%s says that no plan takes less than %lld ns, and takes less itself", e->path,
             (long long)stated->bound_ns);
    stated->bound_ns = 0;
  }
  memcpy(e->losses_ns, s->stall_ns, sizeof s->stall_ns);
  e->losses_ns[LOSS_RECOMPUTE] = s->recompute_ns;
  e->losses_ns[LOSS_SLOWDOWN] = s->slowdown_ns;
  int64_t ideal_ns = planc_plan_predicted_total(e->plan).ideal_ns;
  e->losses_ns[LOSS_MOVES] = moves_ns(e->plan);
  e->losses_ns[LOSS_SLOWER] = pl_max(0, s->compute_ns - s->recompute_ns - e->losses_ns[LOSS_MOVES] - ideal_ns);
  for (int32_t k = 0; k < e->plan->n_streams; k++) n_compute += e->plan->streams[k].kind == PLANC_STREAM_KIND_compute;
  e->has_losses = n_compute == 1;
  return NULL;
}

/* --- Prices ------------------------------------------------------------------------------------------------------- */

static planc_status price_plan(const planc_profile *profile, explained *e);
static planc_status find_price(const planc_problem *problem, const planc_plan *plan, int64_t budget, price *out);
static void raise_bounds(explained *e);
static bool has_prices(const planc_plan *plan);
static planc_status is_of_plan(const planc_plan *plan, const planc_profile *profile, bool *out);

/* A bound is of one job, and of the costs that the plan was made with: without them there are no prices. */
static planc_status find_prices(const prog_arguments *arguments, explained *e) {
  const char *measured = prog_option_value(arguments, "profile"), *device = prog_option_value(arguments, "device");
  bool given = measured || device, fits = false;
  planc_profile *profile = NULL;
  if (given && !has_prices(e->plan))
    return planc_error(PLANC_USAGE, "%s: a mix, or what runs side by side, has no prices: leave out --%s", e->path,
                       measured ? "profile" : "device");
  if (!has_prices(e->plan)) return NULL;
  planc_status status = measured ? planc_profile_read(measured, &profile)
                                 : cli_setup_device(arguments, device ? device : e->plan->device.name, &profile);
  if (!status) status = is_of_plan(e->plan, profile, &fits);
  if (!status && given && !fits)
    status = planc_error(PLANC_STALE, "%s was not made with %s: its ops or copies take other times there", e->path,
                         measured ? measured : device);
  if (fits) status = price_plan(profile, e);
  planc_profile_free(profile);
  if (given || fits || planc_status_code(status) == PLANC_OUT_OF_MEMORY) return status;
  planc_status_free(status);
  cli_note("no prices: %s was not made with the description of device %s: give --profile or --device", e->path,
           e->plan->device.name);
  return NULL;
}

/* Of a job whose iterations and rounds run one after the other. */
static bool has_prices(const planc_plan *plan) {
  const planc_job *job = cli_only_job(plan);
  return job && job->iterations == 1 && !cli_runs_side_by_side(plan, 0);
}

/* Whether the device copies as the plan has it. */
static bool copies_alike(const planc_plan *plan, const planc_device *device) {
  bool alike = plan->device.duplex_ppm == device->duplex_ppm && plan->device.slowdown_ppm == device->slowdown_ppm;
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    bool in = plan->memories[link->to].kind == PLANC_MEMORY_DEVICE;
    bool out = plan->memories[link->from].kind == PLANC_MEMORY_DEVICE;
    const planc_link *cost = &device->links[in ? PLANC_ROUTE_H2D : PLANC_ROUTE_D2H];
    if (in != out)
      alike &= link->cost.bytes_per_second == cost->bytes_per_second && link->cost.latency_ns == cost->latency_ns;
  }
  return alike;
}

/* Whether the plan's ideal time and links are the profile's. */
static planc_status is_of_plan(const planc_plan *plan, const planc_profile *profile, bool *out) {
  const planc_job *job = pl_plan_job(plan);
  planc_costs *costs;
  PLANC_TRY(planc_costs_make(profile, job->graph, 1, &job->batch, &costs));
  *out = planc_costs_ideal(costs, job->graph, job->batch) == planc_plan_predicted_total(plan).ideal_ns &&
         copies_alike(plan, planc_profile_device(profile));
  planc_costs_free(costs);
  return NULL;
}

static planc_status price_plan(const planc_profile *profile, explained *e) {
  const planc_job *job = pl_plan_job(e->plan);
  const planc_memory *memory = planc_plan_memory(e->plan, PLANC_MEMORY_DEVICE);
  int64_t budget = memory->budget_bytes;
  planc_problem problem = {.job = {.graph = job->graph, .profile = profile, .batch = job->batch}};
  if (budget < 0) return NULL;
  planc_ask_settings(&problem, &e->plan->settings);
  problem.job.split_batch_norm = true; /* where it matters the plan was allowed to */
  problem.terms.gpus = planc_plan_replicas(e->plan);
  problem.terms.shared_link = cli_shares_link(e->plan);
  problem.terms.budgets[PLANC_MEMORY_HOST] = -1;
  /* As the plan has it: that of a recorded step has other bytes reserved than the description of its device. */
  problem.terms.code_bytes = memory->reserved_bytes - planc_profile_device(profile)->reserved_bytes;
  e->step = pl_min(GIB, budget / PARTS);
  PLANC_TRY(find_price(&problem, e->plan, budget - e->step, &e->less));
  PLANC_TRY(find_price(&problem, e->plan, budget + e->step, &e->more));
  raise_bounds(e);
  return NULL;
}

/* What holds within more memory holds within less: so the searches, each of which finds what it finds, help each other.
 */
static void raise_bounds(explained *e) {
  int64_t *own_ns = &e->plan->predicted.bound_ns;
  if (e->more.fits) *own_ns = pl_max(*own_ns, e->more.bound.time_ns);
  if (e->less.fits) e->less.bound.time_ns = pl_max(e->less.bound.time_ns, *own_ns);
}

/* Nothing is known of a plan in rounds that planc does not make. */
static planc_status find_price(const planc_problem *problem, const planc_plan *plan, int64_t budget, price *out) {
  planc_problem within = *problem;
  within.terms.budgets[PLANC_MEMORY_DEVICE] = out->budget = budget;
  planc_status status = planc_bound_of_plan(&within, BOUND_EFFORT, plan, &out->bound);
  planc_code code = planc_status_code(status);
  out->fits = !status;
  out->known = !status || code == PLANC_INFEASIBLE;
  if (code != PLANC_INFEASIBLE && code != PLANC_BAD_INPUT) return status;
  planc_status_free(status);
  return NULL;
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

/* Gaps that ended alike. */
typedef struct way_total {
  int64_t n, bytes;
} way_total;

static void print_losses(const explained *e);
static void print_price(const explained *e, const char *what, const price *p);
static void count(const explained *e, way_total out[PLANC_N_GAP_WAYS]);
static void print_gap(const planc_plan *plan, const planc_plan_gap *gap);

static planc_status print(const explained *e) {
  way_total totals[PLANC_N_GAP_WAYS] = {0};
  char text[PL_SIZE_TEXT];
  cli_print_summary(e->plan, NULL, e->path, true);
  if (cli_only_job(e->plan)) cli_note_base(cli_only_job(e->plan)->graph);
  if (e->has_losses) print_losses(e);
  print_price(e, "less", &e->less);
  print_price(e, "more", &e->more);
  PLANC_TRY(cli_print_peak(e->plan, PLANC_MEMORY_DEVICE, stdout));
  count(e, totals);
  printf("%d gaps between two uses of data:", e->gaps->n);
  for (int32_t way = 0; way < PLANC_N_GAP_WAYS; way++)
    printf("%s %lld %s (%s)", way > 0 ? "," : "", (long long)totals[way].n, planc_gap_way_name((planc_gap_way)way),
           pl_size_format(totals[way].bytes, text));
  int32_t n = (int32_t)pl_min(e->top, e->gaps->n);
  printf(n > 0 ? "; most bytes times time:\n" : "\n");
  for (int32_t g = 0; g < n; g++) print_gap(e->plan, &e->gaps->gaps[g]);
  return NULL;
}

static void print_losses(const explained *e) {
  char text[PL_SIZE_TEXT];
  const char *before = "  beyond ideal: ";
  for (int32_t k = 0; k < N_LOSSES; k++) {
    if (e->losses_ns[k] == 0) continue;
    printf("%s%s %s", before, losses[k].text, pl_time_format(e->losses_ns[k], text));
    before = ", ";
  }
  if (*before == ',') printf("\n");
}

static void print_price(const explained *e, const char *what, const price *p) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], place[PL_PLACE_TEXT];
  if (!p->known) return;
  if (p->fits)
    printf("  %s %s: no plan in this order and such rounds is faster than %s\n", pl_size_format(e->step, a), what,
           pl_time_format(p->bound.time_ns, b));
  else
    prog_print_line(stdout, "  %s %s: no plan in this order and such rounds fits, op %s%s takes %s",
                    pl_size_format(e->step, a), what, p->bound.binds, cli_op_place(e->plan, p->bound.binds, place),
                    pl_size_format(p->bound.least_bytes, b));
}

static void count(const explained *e, way_total out[PLANC_N_GAP_WAYS]) {
  for (int32_t g = 0; g < e->gaps->n; g++) {
    way_total *total = &out[e->gaps->gaps[g].way];
    total->n++;
    total->bytes = pl_add_saturate(total->bytes, e->gaps->gaps[g].bytes);
  }
}

static void print_round(const planc_plan *plan, const planc_plan_gap *gap);
static const char *run_again(const planc_plan *plan, int32_t exec);
static void print_away(const planc_plan *plan, const planc_plan_gap *gap);
static void print_kept(const planc_plan *plan, const planc_plan_gap *gap);

static void print_gap(const planc_plan *plan, const planc_plan_gap *gap) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], from[PL_PLACE_TEXT], to[PL_PLACE_TEXT];
  printf("  %12s  ", pl_size_format(gap->bytes, a));
  prog_print_text(stdout, gap->name);
  print_round(plan, gap);
  prog_print_line(stdout, ", %s from %s%s%s to %s%s%s", pl_time_format(gap->between_ns, b), gap->from_op,
                  cli_op_place(plan, gap->from_op, from), run_again(plan, gap->from), gap->to_op,
                  cli_op_place(plan, gap->to_op, to), run_again(plan, gap->to));
  printf("                %s", planc_gap_way_name(gap->way));
  if (gap->way == PLANC_GAP_KEPT)
    print_kept(plan, gap);
  else
    print_away(plan, gap);
}

static const char *run_again(const planc_plan *plan, int32_t exec) {
  return plan->body.instrs[exec].recompute ? " run again" : "";
}

static void print_round(const planc_plan *plan, const planc_plan_gap *gap) {
  const planc_job *job = &plan->jobs[gap->job];
  if (gap->iteration >= 0 && job->iterations > 1) printf(", iteration %d", gap->iteration + 1);
  if (gap->round >= 0 && job->n_rounds > 1) printf(", round %d", gap->round + 1);
}

/* Why it is not there: that there would have been no room. */
static void print_away(const planc_plan *plan, const planc_plan_gap *gap) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], place[PL_PLACE_TEXT];
  int64_t lacks = gap->bytes - gap->free_bytes;
  bool copied = gap->way == PLANC_GAP_COPIED;
  printf(", away %s: ", pl_time_format(gap->away_ns, a));
  if (copied) {
    printf("copies take %s", pl_time_format(gap->copies_ns, a));
    if (gap->again_ns >= 0) printf(", again would %s", pl_time_format(gap->again_ns, a));
    if (gap->waited_ns > 0) printf(", ops waited %s", pl_time_format(gap->waited_ns, a));
  } else {
    printf("that takes %s, copies would %s", pl_time_format(gap->again_ns, a), pl_time_format(gap->copies_ns, b));
  }
  if (!gap->free_op)
    printf("\n");
  else if (lacks > 0)
    prog_print_line(stdout, "; kept, it would lack %s at op %s%s", pl_size_format(lacks, a), gap->free_op,
                    cli_op_place(plan, gap->free_op, place));
  else
    prog_print_line(stdout, "; there would be room, %s at op %s%s", pl_size_format(gap->free_bytes, a), gap->free_op,
                    cli_op_place(plan, gap->free_op, place));
}

static void print_kept(const planc_plan *plan, const planc_plan_gap *gap) {
  char text[PL_SIZE_TEXT], place[PL_PLACE_TEXT];
  printf(": copies would take %s", pl_time_format(gap->copies_ns, text));
  if (gap->again_ns >= 0) printf(", again %s", pl_time_format(gap->again_ns, text));
  prog_print_line(stdout, "; it leaves %s free at op %s%s", pl_size_format(gap->free_bytes, text), gap->free_op,
                  cli_op_place(plan, gap->free_op, place));
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void report_price(const char *key, const price *p, cJSON *object);
static void report_gap(const planc_plan_gap *gap, cJSON *array);
static void report_losses(const explained *e, cJSON *object);

static planc_status print_json(const explained *e) {
  const planc_plan *plan = e->plan;
  way_total totals[PLANC_N_GAP_WAYS] = {0};
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "explain/1");
  pl_json_add_string(object, "plan", plan->name);
  pl_json_add_string(object, "policy", plan->policy);
  pl_json_add_int(object, "period_ns", plan->predicted.period_ns);
  pl_json_add_int(object, "ideal_ns", planc_plan_predicted_total(plan).ideal_ns);
  pl_json_add_known(object, "bound_ns", plan->predicted.bound_ns > 0, plan->predicted.bound_ns);
  report_losses(e, object);
  report_price("less", &e->less, object);
  report_price("more", &e->more, object);
  planc_status status = cli_report_peak(plan, PLANC_MEMORY_DEVICE, "peak", object);
  if (status) {
    cJSON_Delete(object);
    return status;
  }
  count(e, totals);
  for (int32_t way = 0; way < PLANC_N_GAP_WAYS; way++) {
    cJSON *total = pl_json_add_object(object, planc_gap_way_name((planc_gap_way)way));
    pl_json_add_int(total, "gaps", totals[way].n);
    pl_json_add_int(total, "bytes", totals[way].bytes);
  }
  cJSON *array = pl_json_add_array(object, "gaps");
  for (int32_t g = 0; g < e->gaps->n && g < e->top; g++) report_gap(&e->gaps->gaps[g], array);
  return prog_print_json(stdout, object);
}

static void report_price(const char *key, const price *p, cJSON *object) {
  if (!p->known) {
    pl_json_add_null(object, key);
    return;
  }
  cJSON *json = pl_json_add_object(object, key);
  pl_json_add_int(json, "budget_bytes", p->budget);
  pl_json_add_bool(json, "fits", p->fits);
  pl_json_add_known(json, "bound_ns", p->fits, p->bound.time_ns);
  pl_json_add_int(json, "least_budget", p->bound.least_bytes);
  pl_json_add_string(json, "binds", p->bound.binds);
}

static void report_losses(const explained *e, cJSON *object) {
  if (!e->has_losses) {
    pl_json_add_null(object, "beyond_ideal");
    return;
  }
  cJSON *beyond = pl_json_add_object(object, "beyond_ideal");
  for (int32_t k = 0; k < N_LOSSES; k++) pl_json_add_int(beyond, losses[k].key, e->losses_ns[k]);
}

static void report_gap(const planc_plan_gap *gap, cJSON *array) {
  cJSON *json = pl_json_add_object(array, NULL);
  pl_json_add_string(json, "storage", gap->name);
  pl_json_add_int(json, "job", gap->job);
  pl_json_add_known(json, "iteration", gap->iteration >= 0, gap->iteration);
  pl_json_add_known(json, "round", gap->round >= 0, gap->round);
  pl_json_add_int(json, "bytes", gap->bytes);
  pl_json_add_string(json, "from", gap->from_op);
  pl_json_add_string(json, "to", gap->to_op);
  pl_json_add_string(json, "way", planc_gap_way_name(gap->way));
  pl_json_add_int(json, "between_ns", gap->between_ns);
  pl_json_add_int(json, "away_ns", gap->away_ns);
  pl_json_add_int(json, "copies_ns", gap->copies_ns);
  pl_json_add_known(json, "again_ns", gap->again_ns >= 0, gap->again_ns);
  pl_json_add_int(json, "waited_ns", gap->waited_ns);
  pl_json_add_known(json, "free_bytes", gap->free_op, gap->free_bytes);
  if (gap->free_op)
    pl_json_add_string(json, "free_op", gap->free_op);
  else
    pl_json_add_null(json, "free_op");
}
