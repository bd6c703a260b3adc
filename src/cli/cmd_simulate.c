/* `planc simulate`: what a period of a plan takes, and where the time goes; beside it what a run measured. With
 * --passive of a graph without a plan (passive.c). */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/report_against.h"
#include "cli/report_footprint.h"
#include "cli/report_passive.h"
#include "cost/routes.h"
#include "planc/check.h"
#include "planc/simulate.h"
#include "program/print.h"
#include "util/math.h"
#include "util/size.h"

/* A plan as its file has it, and as it is simulated: at its own times or, with --costs, those of a profile. */
typedef struct timed_plan {
  planc_plan *file;
  const planc_plan *plan;
  planc_retimed retimed;
} timed_plan;

/* The profile whose times plans are simulated at; without --costs none. */
typedef struct costs {
  const char *path; /* NULL: there is none */
  planc_profile *profile;
} costs;

/* What a run measured; without --against nothing. */
typedef struct measurement {
  const char *path; /* NULL: there is none */
  planc_timeline *timeline;
  planc_comparison *comparison;
} measurement;

/* The plan of the same training without scheduling; without --vanilla none. */
typedef struct vanilla {
  const char *path; /* NULL: there is none */
  planc_outcome outcome;
} vanilla;

/* A plan as it was simulated. */
typedef struct simulated_plan {
  planc_simulation times;
  planc_job_predictions *jobs; /* by job: what the plan predicts, but for times, which are simulated; owned */
  bool has_footprint;          /* with --free-at */
  planc_free_at free_at;
  planc_footprint footprint;
} simulated_plan;

static const prog_option options[] = {
    {"graph-replay", 0, NULL, "the body captured and replayed as a whole, as by `planrun exec --graph`"},
    {"map-in-step", 0, "TIME", "chunks of virtual memory mapped as data comes and goes, each in TIME of the host"},
    {"track", 0, "TIME", "memory in use tracked by events, as without a plan: TIME of the host behind each op, or"},
    {"track-every", 0, "SIZE", "behind the first for which so much was allocated since the last"},
    {"in-flight", 0, "N", "ops that each dispatcher may have launched ahead (default: the device's)"},
    {"one-dispatcher", 0, NULL,
     "one dispatcher launches the work of all jobs, in the plan's order (default: each job has one)"},
    {"free-at", 0, "WHEN", "memory as without a plan, freed at `schedule` of its last op or at its `completion`"},
    {"costs", 0, "FILE", "times from this profile, as far as it has them, in place of those that it was planned with"},
    {"vanilla", 0, "FILE", "the plan of the same without scheduling, to tell what this one saves and costs"},
    {"against", 0, "FILE", "compare with what `planrun exec --trace` measured of this plan"},
    {"json", 0, NULL, "the result as one line of JSON"},
    {"passive", 0, NULL, "of a graph: evict when memory runs out and swap in on access, without a plan; and with it:"},
    CLI_WORK_OPTIONS,
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status check_options(const prog_arguments *arguments);
static planc_status run_plan(const prog_arguments *arguments);
static planc_status read_plan(const char *path, timed_plan *out);
static planc_status read_costs(const char *path, const planc_plan *plan, costs *out);
static planc_status retime(const costs *at, timed_plan *plan);
static planc_status report(const prog_arguments *arguments, const timed_plan *plan, const costs *at,
                           simulated_plan *out, measurement *measured);
static void free_plan(timed_plan *plan);
static planc_status simulate(const prog_arguments *arguments, const planc_plan *plan, simulated_plan *out);
static planc_status read_vanilla(const prog_arguments *arguments, const planc_plan *plan, const costs *at,
                                 vanilla *out);
static planc_status read_measurement(const char *path, const timed_plan *plan, measurement *out);
static planc_status print_json(const timed_plan *timed, const simulated_plan *simulated, const vanilla *v,
                               const measurement *m);
static planc_status print_text(const timed_plan *timed, const simulated_plan *simulated, const vanilla *v,
                               const measurement *m);

const prog_subcommand cli_cmd_simulate = {
    {"simulate", "PLAN|GRAPH", "predict a plan's time and stalls, or those of passive swapping", options, 1, 1},
    run,
    NULL};

static planc_status run(const prog_arguments *arguments) {
  PLANC_TRY(check_options(arguments));
  return prog_option_given(arguments, "passive") ? cli_report_passive(arguments) : run_plan(arguments);
}

static planc_status run_plan(const prog_arguments *arguments) {
  timed_plan plan = {0};
  simulated_plan simulated = {0};
  measurement measured = {0};
  costs at = {0};
  planc_status status = read_plan(arguments->operands[0], &plan);
  if (!status) status = read_costs(prog_option_value(arguments, "costs"), plan.file, &at);
  if (!status) status = retime(&at, &plan);
  if (!status) status = report(arguments, &plan, &at, &simulated, &measured);
  free(simulated.jobs);
  planc_comparison_free(measured.comparison);
  planc_timeline_free(measured.timeline);
  planc_profile_free(at.profile);
  free_plan(&plan);
  return status;
}

static planc_status report(const prog_arguments *arguments, const timed_plan *plan, const costs *at,
                           simulated_plan *out, measurement *measured) {
  vanilla unscheduled = {0};
  PLANC_TRY(simulate(arguments, plan->plan, out));
  PLANC_TRY(read_vanilla(arguments, plan->plan, at, &unscheduled));
  PLANC_TRY(read_measurement(prog_option_value(arguments, "against"), plan, measured));
  return prog_option_given(arguments, "json") ? print_json(plan, out, &unscheduled, measured)
                                              : print_text(plan, out, &unscheduled, measured);
}

static bool is_first_of_its_graph(const planc_plan *plan, int32_t job) {
  int32_t j = 0;
  while (!planc_graph_equal(plan->jobs[j].graph, plan->jobs[job].graph)) j++;
  return j == job;
}

static planc_status read_costs(const char *path, const planc_plan *plan, costs *out) {
  int32_t listed;
  out->path = path;
  if (!path) return NULL;
  PLANC_TRY(planc_profile_read(path, &out->profile));
  for (int32_t j = 0; j < plan->n_jobs; j++)
    if (is_first_of_its_graph(plan, j)) (void)cli_note_graph(path, out->profile, plan->jobs[j].graph, &listed);
  return NULL;
}

/* Times of a plan that is not valid mean nothing. */
static planc_status read_plan(const char *path, timed_plan *out) {
  PLANC_TRY(planc_plan_read(path, &out->file));
  out->plan = out->file;
  return planc_context(planc_check(out->file, NULL, NULL), "%s", path);
}

static planc_status retime(const costs *at, timed_plan *plan) {
  if (!at->path) return NULL;
  PLANC_TRY(planc_context(planc_retime(plan->file, at->profile, &plan->retimed), "%s", at->path));
  plan->plan = &plan->retimed.plan;
  return NULL;
}

static void free_plan(timed_plan *plan) {
  planc_retimed_free(&plan->retimed);
  planc_plan_free(plan->file);
}

/* A trace names the plan by what its file has. */
static planc_status read_measurement(const char *path, const timed_plan *plan, measurement *out) {
  out->path = path;
  if (!path) return NULL;
  PLANC_TRY(planc_timeline_read(path, plan->file, &out->timeline));
  return planc_context(planc_timeline_compare(plan->plan, out->timeline, &out->comparison), "%s", path);
}

/* Of one period, all jobs together. */
static int64_t samples_of(const planc_plan *plan) {
  int64_t sum = 0;
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_job *job = &plan->jobs[j];
    sum = pl_add_saturate(sum, pl_mul_saturate(planc_job_whole_batch(job), job->iterations));
  }
  return sum;
}

/* As the plan predicts it, but for its time, which is simulated. */
static planc_outcome outcome_of(const planc_plan *plan, const planc_simulation *s) {
  planc_outcome outcome = planc_outcome_of(plan);
  outcome.period_ns = s->period_ns;
  return outcome;
}

static planc_metrics metrics_of(const planc_plan *plan, const planc_simulation *s, const vanilla *v) {
  planc_outcome run = outcome_of(plan, s);
  planc_metrics metrics;
  planc_metrics_of(&run, samples_of(plan), v->path ? &v->outcome : NULL, &metrics);
  return metrics;
}

/* A figure by route, with its name in the key. */
static void report_routes(cJSON *object, const char *before, const char *behind, const int64_t *values) {
  char key[32];
  for (int r = 0; r < PLANC_N_ROUTES; r++) {
    snprintf(key, sizeof key, "%s%s%s", before, pl_routes[r].name, behind);
    pl_json_add_int(object, key, values[r]);
  }
}

static planc_status print_json(const timed_plan *timed, const simulated_plan *simulated, const vanilla *v,
                               const measurement *m) {
  const planc_plan *plan = timed->plan;
  const planc_simulation *s = &simulated->times;
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "simulate/1");
  pl_json_add_string(object, "policy", plan->policy);
  pl_json_add_int(object, "period_ns", s->period_ns);
  pl_json_add_known(object, "averaged", s->averaged > 0, s->averaged);
  pl_json_add_int(object, "ideal_ns", planc_plan_predicted_total(plan).ideal_ns);
  pl_json_add_int(object, "first_period_ns", s->first_period_ns);
  pl_json_add_int(object, "prologue_ns", s->prologue_ns);
  pl_json_add_int(object, "epilogue_ns", s->epilogue_ns);
  pl_json_add_int(object, "compute_ns", s->compute_ns);
  pl_json_add_int(object, "recompute_ns", s->recompute_ns);
  pl_json_add_int(object, "slowdown_ns", s->slowdown_ns);
  report_routes(object, "stall_", "_ns", s->stall_ns);
  pl_json_add_int(object, "stall_launch_ns", s->stall_ns[PLANC_STALL_LAUNCH]);
  pl_json_add_int(object, "misses", s->misses);
  report_routes(object, "", "_bytes", s->copied_bytes);
  report_routes(object, "", "_ns", s->copy_ns);
  pl_json_add_int(object, "peak_bytes", s->peak_bytes);
  pl_json_add_int(object, "live_peak_bytes", s->live_peak_bytes);
  if (planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->chunk_bytes > 0)
    pl_json_add_int(object, "mapped_chunks", s->mapped_chunks);
  planc_metrics metrics = metrics_of(plan, s, v);
  cli_report_metrics(object, &metrics);
  pl_json_add_known(object, "vanilla_ns", v->path, v->outcome.period_ns);
  pl_json_add_known(object, "vanilla_bytes", v->path, v->outcome.peak_bytes[PLANC_MEMORY_DEVICE]);
  pl_json_add_known(object, "retimed_ops", plan != timed->file, timed->retimed.n_ops - timed->retimed.n_kept);
  pl_json_add_known(object, "kept_ops", plan != timed->file, timed->retimed.n_kept);
  cli_report_jobs(plan, simulated->jobs, object);
  if (simulated->has_footprint) cli_report_footprint(&simulated->footprint, simulated->free_at, object);
  if (m->path) cli_report_against(m->comparison, m->timeline, m->path, object);
  return prog_print_json(stdout, object);
}

static void print_metrics(const planc_plan *plan, const planc_simulation *s, const vanilla *v) {
  char a[CLI_METRIC_TEXT], b[CLI_METRIC_TEXT], c[CLI_METRIC_TEXT], moved[PL_SIZE_TEXT];
  planc_metrics metrics = metrics_of(plan, s, v);
  printf("throughput     %14s   samples/s, overhead %s, %s moved\n", cli_metric_format(metrics.throughput_ppm, 3, a),
         cli_percent_format(metrics.overhead_ppm, b), pl_size_format(metrics.moved_bytes, moved));
  if (!v->path) return;
  fputs("against ", stdout);
  prog_print_text(stdout, v->path);
  printf(": MSR %s, EOR %s", cli_metric_format(metrics.msr_ppm, 4, a), cli_metric_format(metrics.eor_ppm, 4, b));
  printf(" (excess %s), CBR %s\n", cli_percent_format(metrics.eor_excess_ppm, b),
         cli_metric_format(metrics.cbr_ppm, 4, c));
}

/* Of a memory that the plan makes no use of there is nothing to say. */
static void print_waits(const planc_plan *plan, const planc_simulation *s) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT];
  for (int r = 0; r < PLANC_N_ROUTES; r++) {
    planc_memory_kind memory = pl_routes[r].memory;
    if (memory != PLANC_MEMORY_DEVICE && planc_plan_memory(plan, memory)->arena_bytes == 0) continue;
    printf("  waits %-6s %14s   %s moved", pl_routes[r].name, pl_time_format(s->stall_ns[r], a),
           pl_size_format(s->copied_bytes[r], b));
    if (r == PLANC_ROUTE_H2D) printf(", too late for %lld op%s", (long long)s->misses, s->misses == 1 ? "" : "s");
    printf("\n");
  }
}

static planc_status print_text(const timed_plan *timed, const simulated_plan *simulated, const vanilla *v,
                               const measurement *m) {
  const planc_plan *plan = timed->plan;
  const planc_simulation *s = &simulated->times;
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT];
  printf("%s, %s on %s, ", plan->name, plan->policy, plan->device.name);
  cli_print_work(plan, false);
  printf("\n");
  if (plan != timed->file) {
    printf("at other times than it was planned with: %d of %d ops\n", timed->retimed.n_ops - timed->retimed.n_kept,
           timed->retimed.n_ops);
  }
  printf("%-9s      %14s   ideal %s\n", cli_period_word(plan), pl_time_format(s->period_ns, a),
         pl_time_format(planc_plan_predicted_total(plan).ideal_ns, b));
  if (s->averaged > 0) printf("  mean of      %14d   periods, none of which repeats\n", s->averaged);
  printf("  compute      %14s   of it recompute %s\n", pl_time_format(s->compute_ns, a),
         pl_time_format(s->recompute_ns, b));
  printf("  slowed       %14s   by copies beside it\n", pl_time_format(s->slowdown_ns, a));
  print_waits(plan, s);
  printf("  waits launch %14s\n", pl_time_format(s->stall_ns[PLANC_STALL_LAUNCH], a));
  if (s->mapped_chunks > 0) printf("  maps         %14lld   chunks\n", (long long)s->mapped_chunks);
  printf("first %s %s, prologue", cli_period_word(plan), pl_time_format(s->first_period_ns, a));
  printf(" %s, epilogue %s\n", pl_time_format(s->prologue_ns, a), pl_time_format(s->epilogue_ns, b));
  print_metrics(plan, s, v);
  if (simulated->has_footprint) cli_print_footprint(&simulated->footprint, simulated->free_at);
  cli_print_jobs(plan, simulated->jobs, true);
  if (m->path) cli_print_against(plan, m->comparison, m->timeline, m->path);
  return NULL;
}

static planc_status read_way(const prog_arguments *arguments, planc_simulate_options *out);
static planc_status read_time(const prog_arguments *arguments, const char *option, int64_t fallback, int64_t *out_ns);
static planc_status find_footprint(const prog_arguments *arguments, const planc_plan *plan,
                                   const planc_simulate_options *way, simulated_plan *out);

static planc_status simulate(const prog_arguments *arguments, const planc_plan *plan, simulated_plan *out) {
  planc_simulate_options way;
  PLANC_TRY(read_way(arguments, &way));
  PLANC_TRY(find_footprint(arguments, plan, &way, out));
  out->jobs = calloc((size_t)plan->n_jobs + 1, sizeof *out->jobs);
  if (!out->jobs) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t j = 0; j < plan->n_jobs; j++) out->jobs[j] = plan->predicted.jobs[j];
  way.jobs = out->jobs;
  return planc_context(planc_simulate(plan, &way, &out->times), "%s", arguments->operands[0]);
}

/* As the executor runs the plan; captured and replayed; or mapping in the step. */
static planc_status read_way(const prog_arguments *arguments, planc_simulate_options *out) {
  int64_t chunk_ns, in_flight, track_ns, track_bytes;
  PLANC_TRY(read_time(arguments, "map-in-step", -1, &chunk_ns));
  PLANC_TRY(prog_option_int(arguments, "in-flight", 1, INT32_MAX, 0, &in_flight));
  PLANC_TRY(read_time(arguments, "track", 0, &track_ns));
  PLANC_TRY(prog_option_size(arguments, "track-every", 0, &track_bytes));
  *out = (planc_simulate_options){.captured = prog_option_given(arguments, "graph-replay"),
                                  .maps_in_step = chunk_ns >= 0,
                                  .chunk_ns = chunk_ns >= 0 ? chunk_ns : 0,
                                  .one_dispatcher = prog_option_given(arguments, "one-dispatcher"),
                                  .in_flight = (int32_t)in_flight,
                                  .apart = prog_option_given(arguments, "free-at"),
                                  .track_ns = track_ns,
                                  .track_bytes = track_bytes};
  return NULL;
}

/* Of a dispatcher, which does nothing for longer than a second. */
static planc_status read_time(const prog_arguments *arguments, const char *option, int64_t fallback, int64_t *out_ns) {
  enum { MAX_NS = 1000000000 };
  PLANC_TRY(prog_option_time(arguments, option, fallback, out_ns));
  if (*out_ns <= MAX_NS) return NULL;
  return planc_error(PLANC_USAGE, "--%s %s: more than 1s", option, prog_option_value(arguments, option));
}

static planc_status find_footprint(const prog_arguments *arguments, const planc_plan *plan,
                                   const planc_simulate_options *way, simulated_plan *out) {
  const char *word = prog_option_value(arguments, "free-at");
  out->has_footprint = word;
  if (!word) return NULL;
  PLANC_TRY(cli_free_at_parse(word, &out->free_at));
  return planc_context(planc_footprint_of(plan, way, out->free_at, &out->footprint), "%s", arguments->operands[0]);
}

/* Whether the two plans train the same, the other one without scheduling: what one saves over the other has no meaning
 * otherwise. */
static planc_status check_same_work(const planc_plan *plan, const planc_plan *other, const char *path) {
  const char *differs = strcmp(other->policy, "none") != 0 ? "is no plan of policy none" : NULL;
  if (strcmp(plan->device.name, other->device.name) != 0) differs = "is for another device";
  if (samples_of(plan) != samples_of(other)) differs = "has another batch";
  if (planc_plan_gpus(plan) != planc_plan_gpus(other) || planc_plan_replicas(plan) != planc_plan_replicas(other))
    differs = "is for another number of GPUs";
  if (plan->n_jobs != other->n_jobs) differs = "has other jobs";
  for (int32_t j = 0; !differs && j < plan->n_jobs; j++) {
    if (!planc_graph_equal(plan->jobs[j].graph, other->jobs[j].graph)) differs = "has another graph";
  }
  return differs ? planc_error(PLANC_STALE, "%s %s", path, differs) : NULL;
}

/* The launches of a body captured cost as little without scheduling; mappings there are none. */
static planc_status read_vanilla(const prog_arguments *arguments, const planc_plan *plan, const costs *at,
                                 vanilla *out) {
  out->path = prog_option_value(arguments, "vanilla");
  if (!out->path) return NULL;
  timed_plan other = {0};
  planc_simulation simulation;
  planc_status status = read_plan(out->path, &other);
  if (!status) status = check_same_work(plan, other.plan, out->path);
  if (!status) status = retime(at, &other);
  if (!status) {
    planc_simulate_options way = {.captured = prog_option_given(arguments, "graph-replay")};
    status = planc_context(planc_simulate(other.plan, &way, &simulation), "%s", out->path);
  }
  if (!status) out->outcome = outcome_of(other.plan, &simulation);
  free_plan(&other);
  return status;
}

static const prog_option work_options[] = {CLI_WORK_OPTIONS, {0}};

static planc_status exclude(const prog_arguments *arguments, const char *a, const char *b) {
  if (!prog_option_given(arguments, a) || !prog_option_given(arguments, b)) return NULL;
  return planc_error(PLANC_USAGE, "--%s and --%s exclude each other", a, b);
}

/* What one can ask of a plan and what of a graph; of the former, ways to run it exclude each other. */
static planc_status check_options(const prog_arguments *arguments) {
  static const char *const ways[] = {"graph-replay", "map-in-step", "against"};
  static const char *const of_dispatchers[] = {"track", "track-every", "in-flight", "one-dispatcher", "free-at"};
  static const char *const of_plans[] = {"graph-replay", "map-in-step", "against",   "vanilla",        "costs",
                                         "track",        "track-every", "in-flight", "one-dispatcher", "free-at"};
  enum { WAYS = sizeof ways / sizeof *ways, OF_DISPATCHERS = sizeof of_dispatchers / sizeof *of_dispatchers };
  enum { OF_PLANS = sizeof of_plans / sizeof *of_plans };
  bool passive = prog_option_given(arguments, "passive");
  for (int32_t a = 0; a < WAYS; a++) {
    for (int32_t b = a + 1; b < WAYS; b++) PLANC_TRY(exclude(arguments, ways[a], ways[b]));
    for (int32_t b = 0; b < OF_DISPATCHERS; b++)
      if (strcmp(ways[a], "map-in-step") != 0) PLANC_TRY(exclude(arguments, ways[a], of_dispatchers[b]));
  }
  PLANC_TRY(exclude(arguments, "map-in-step", "free-at"));
  if (prog_option_given(arguments, "track-every") && !prog_option_given(arguments, "track"))
    return planc_error(PLANC_USAGE, "--track-every goes with --track");
  for (int32_t a = 0; passive && a < OF_PLANS; a++) {
    if (!prog_option_given(arguments, of_plans[a])) continue;
    return planc_error(PLANC_USAGE, "--passive and --%s exclude each other", of_plans[a]);
  }
  for (const prog_option *option = work_options; !passive && option->name; option++) {
    if (!prog_option_given(arguments, option->name)) continue;
    return planc_error(PLANC_USAGE, "--%s: a plan has its own; only --passive takes it", option->name);
  }
  return NULL;
}
