/* `planc simulate`: what one iteration of a plan takes, and where the time goes; beside it what a run measured. With
 * --passive of a graph without a plan (passive.c). */
#include <string.h>

#include "cli/cli.h"
#include "cli/report_against.h"
#include "cli/report_passive.h"
#include "planc/simulate.h"
#include "util/math.h"
#include "util/print.h"
#include "util/size.h"

/* A plan as its file has it, and as it is simulated: at its own times or, with --costs, those of a profile. */
typedef struct timed_plan {
  planc_plan *file;
  const planc_plan *plan;
  planc_retimed retimed;
} timed_plan;

static planc_status retime(const char *costs_path, timed_plan *out) {
  planc_profile *profile;
  PLANC_TRY(planc_profile_read(costs_path, &profile));
  planc_status status = planc_retime(out->file, profile, &out->retimed);
  planc_profile_free(profile);
  if (status) return planc_context(status, "%s", costs_path);
  out->plan = &out->retimed.plan;
  return NULL;
}

static planc_status read_plan(const planc_arguments *arguments, const char *path, timed_plan *out) {
  const char *costs_path = planc_option_value(arguments, "costs");
  PLANC_TRY(planc_plan_read(path, &out->file));
  out->plan = out->file;
  return costs_path ? retime(costs_path, out) : NULL;
}

static void free_plan(timed_plan *plan) {
  planc_retimed_free(&plan->retimed);
  planc_plan_free(plan->file);
}

/* What a run measured; without --against nothing. */
typedef struct measurement {
  const char *path; /* NULL: there is none */
  planc_timeline *timeline;
  planc_comparison *comparison;
} measurement;

/* A trace names the plan by what its file has. */
static planc_status read_measurement(const char *path, const timed_plan *plan, measurement *out) {
  out->path = path;
  if (!path) return NULL;
  PLANC_TRY(planc_timeline_read(path, plan->file, &out->timeline));
  return planc_context(planc_timeline_compare(plan->plan, out->timeline, &out->comparison), "%s", path);
}

/* The plan of the same training without scheduling; without --vanilla none. */
typedef struct vanilla {
  const char *path; /* NULL: there is none */
  planc_predictions predicted;
} vanilla;

/* Of one period, all jobs together. */
static int64_t samples_of(const planc_plan *plan) {
  int64_t sum = 0;
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    const planc_job *job = &plan->jobs[j];
    sum = planc_add_saturate(sum, planc_muldiv_floor(job->batch, job->iterations, 1));
  }
  return sum;
}

static planc_metrics metrics_of(const planc_plan *plan, const planc_simulation *s, const vanilla *v) {
  planc_predictions predicted = planc_simulation_predictions(plan, s);
  planc_metrics metrics;
  planc_metrics_of(&predicted, samples_of(plan), v->path ? &v->predicted : NULL, &metrics);
  return metrics;
}

static planc_status print_json(const timed_plan *timed, const planc_simulation *s, const vanilla *v,
                               const measurement *m) {
  const planc_plan *plan = timed->plan;
  cJSON *object = cJSON_CreateObject();
  planc_json_add_string(object, "planc", "simulate/1");
  planc_json_add_string(object, "policy", plan->policy);
  planc_json_add_int(object, "iteration_ns", s->iteration_ns);
  planc_json_add_int(object, "ideal_ns", plan->predicted.ideal_ns);
  planc_json_add_int(object, "first_iteration_ns", s->first_iteration_ns);
  planc_json_add_int(object, "prologue_ns", s->prologue_ns);
  planc_json_add_int(object, "epilogue_ns", s->epilogue_ns);
  planc_json_add_int(object, "compute_ns", s->compute_ns);
  planc_json_add_int(object, "recompute_ns", s->recompute_ns);
  planc_json_add_int(object, "slowdown_ns", s->slowdown_ns);
  planc_json_add_int(object, "stall_h2d_ns", s->stall_ns[PLANC_STALL_H2D]);
  planc_json_add_int(object, "stall_d2h_ns", s->stall_ns[PLANC_STALL_D2H]);
  planc_json_add_int(object, "stall_launch_ns", s->stall_ns[PLANC_STALL_LAUNCH]);
  planc_json_add_int(object, "misses", s->misses);
  planc_json_add_int(object, "h2d_bytes", s->h2d_bytes);
  planc_json_add_int(object, "d2h_bytes", s->d2h_bytes);
  planc_json_add_int(object, "h2d_ns", s->h2d_ns);
  planc_json_add_int(object, "d2h_ns", s->d2h_ns);
  planc_json_add_int(object, "peak_bytes", s->peak_bytes);
  planc_json_add_int(object, "live_peak_bytes", s->live_peak_bytes);
  if (planc_plan_memory(plan, PLANC_MEMORY_DEVICE)->chunk_bytes > 0)
    planc_json_add_int(object, "mapped_chunks", s->mapped_chunks);
  planc_metrics metrics = metrics_of(plan, s, v);
  cli_report_metrics(object, &metrics);
  planc_json_add_known(object, "vanilla_ns", v->path, v->predicted.iteration_ns);
  planc_json_add_known(object, "vanilla_bytes", v->path, v->predicted.peak_bytes);
  planc_json_add_known(object, "retimed_ops", plan != timed->file, timed->retimed.n_ops - timed->retimed.n_kept);
  planc_json_add_known(object, "kept_ops", plan != timed->file, timed->retimed.n_kept);
  if (m->path) cli_report_against(m->comparison, m->timeline, m->path, object);
  return planc_print_json(stdout, object);
}

static void print_metrics(const planc_plan *plan, const planc_simulation *s, const vanilla *v) {
  char a[CLI_METRIC_TEXT], b[CLI_METRIC_TEXT], c[CLI_METRIC_TEXT], moved[PLANC_SIZE_TEXT];
  planc_metrics metrics = metrics_of(plan, s, v);
  printf("throughput     %14s   samples/s, overhead %s, %s moved\n", cli_metric_format(metrics.throughput_ppm, 3, a),
         cli_percent_format(metrics.overhead_ppm, b), planc_size_format(metrics.moved_bytes, moved));
  if (!v->path) return;
  fputs("against ", stdout);
  planc_print_text(stdout, v->path);
  printf(": MSR %s, EOR %s", cli_metric_format(metrics.msr_ppm, 4, a), cli_metric_format(metrics.eor_ppm, 4, b));
  printf(" (excess %s), CBR %s\n", cli_percent_format(metrics.eor_excess_ppm, b),
         cli_metric_format(metrics.cbr_ppm, 4, c));
}

static planc_status print_text(const timed_plan *timed, const planc_simulation *s, const vanilla *v,
                               const measurement *m) {
  const planc_plan *plan = timed->plan;
  char a[PLANC_SIZE_TEXT], b[PLANC_SIZE_TEXT];
  const planc_job *job = &plan->jobs[0];
  printf("%s, %s on %s, ", plan->name, plan->policy, plan->device.name);
  cli_print_batch(plan);
  printf(" in %d round%s\n", job->n_rounds, job->n_rounds == 1 ? "" : "s");
  if (plan != timed->file) {
    printf("at other times than it was planned with: %d of %d ops\n", timed->retimed.n_ops - timed->retimed.n_kept,
           timed->retimed.n_ops);
  }
  printf("iteration      %14s   ideal %s\n", planc_time_format(s->iteration_ns, a),
         planc_time_format(plan->predicted.ideal_ns, b));
  printf("  compute      %14s   of it recompute %s\n", planc_time_format(s->compute_ns, a),
         planc_time_format(s->recompute_ns, b));
  printf("  slowed       %14s   by copies beside it\n", planc_time_format(s->slowdown_ns, a));
  printf("  waits h2d    %14s   %s moved, too late for %lld op%s\n", planc_time_format(s->stall_ns[PLANC_STALL_H2D], a),
         planc_size_format(s->h2d_bytes, b), (long long)s->misses, s->misses == 1 ? "" : "s");
  printf("  waits d2h    %14s   %s moved\n", planc_time_format(s->stall_ns[PLANC_STALL_D2H], a),
         planc_size_format(s->d2h_bytes, b));
  printf("  waits launch %14s\n", planc_time_format(s->stall_ns[PLANC_STALL_LAUNCH], a));
  if (s->mapped_chunks > 0) printf("  maps         %14lld   chunks\n", (long long)s->mapped_chunks);
  printf("first iteration %s, prologue", planc_time_format(s->first_iteration_ns, a));
  printf(" %s, epilogue %s\n", planc_time_format(s->prologue_ns, a), planc_time_format(s->epilogue_ns, b));
  print_metrics(plan, s, v);
  if (m->path) cli_print_against(m->comparison, m->timeline, m->path);
  return NULL;
}

/* As the executor runs the plan; captured and replayed; or mapping in the step. */
static planc_status simulate(const planc_arguments *arguments, const planc_plan *plan, planc_simulation *out) {
  int64_t chunk_ns;
  PLANC_TRY(planc_option_int(arguments, "map-in-step", 0, INT32_MAX, -1, &chunk_ns));
  if (chunk_ns >= 0) return planc_simulate_mapping(plan, chunk_ns, out);
  if (planc_option_given(arguments, "graph-replay")) return planc_simulate_captured(plan, out);
  return planc_simulate(plan, NULL, NULL, out);
}

/* Whether the two plans train the same: what one saves over the other has no meaning otherwise. */
static planc_status check_same_work(const planc_plan *plan, const planc_plan *other, const char *path) {
  const char *differs = NULL;
  if (strcmp(plan->device.name, other->device.name) != 0) differs = "is for another device";
  if (samples_of(plan) != samples_of(other) || planc_plan_gpus(plan) != planc_plan_gpus(other) ||
      planc_plan_replicas(plan) != planc_plan_replicas(other))
    differs = "has another batch";
  if (plan->n_jobs != other->n_jobs) differs = "has other jobs";
  for (int32_t j = 0; !differs && j < plan->n_jobs; j++) {
    if (!planc_graph_equal(plan->jobs[j].graph, other->jobs[j].graph)) differs = "has another graph";
  }
  return differs ? planc_error(PLANC_STALE, "%s %s", path, differs) : NULL;
}

/* The launches of a body captured cost as little without scheduling; mappings there are none. */
static planc_status read_vanilla(const planc_arguments *arguments, const planc_plan *plan, vanilla *out) {
  out->path = planc_option_value(arguments, "vanilla");
  if (!out->path) return NULL;
  timed_plan other = {0};
  planc_simulation simulation;
  planc_status status = read_plan(arguments, out->path, &other);
  if (!status) status = check_same_work(plan, other.plan, out->path);
  if (!status) {
    status = planc_option_given(arguments, "graph-replay") ? planc_simulate_captured(other.plan, &simulation)
                                                           : planc_simulate(other.plan, NULL, NULL, &simulation);
    status = planc_context(status, "%s", out->path);
  }
  if (!status) out->predicted = planc_simulation_predictions(other.plan, &simulation);
  free_plan(&other);
  return status;
}

static planc_status report(const planc_arguments *arguments, const timed_plan *plan, measurement *measured) {
  planc_simulation simulation;
  vanilla unscheduled = {0};
  PLANC_TRY(simulate(arguments, plan->plan, &simulation));
  PLANC_TRY(read_vanilla(arguments, plan->plan, &unscheduled));
  PLANC_TRY(read_measurement(planc_option_value(arguments, "against"), plan, measured));
  return planc_option_given(arguments, "json") ? print_json(plan, &simulation, &unscheduled, measured)
                                               : print_text(plan, &simulation, &unscheduled, measured);
}

static const planc_option work_options[] = {CLI_WORK_OPTIONS, {0}};

static planc_status run_plan(const planc_arguments *arguments) {
  timed_plan plan = {0};
  measurement measured = {0};
  planc_status status = read_plan(arguments, arguments->operands[0], &plan);
  if (!status) status = report(arguments, &plan, &measured);
  planc_comparison_free(measured.comparison);
  planc_timeline_free(measured.timeline);
  free_plan(&plan);
  return status;
}

/* What one can ask of a plan and what of a graph; of the former, ways to run it exclude each other. */
static planc_status check_options(const planc_arguments *arguments) {
  static const char *const ways[] = {"graph-replay", "map-in-step", "against"};
  static const char *const of_plans[] = {"graph-replay", "map-in-step", "against", "vanilla", "costs"};
  bool passive = planc_option_given(arguments, "passive");
  for (int32_t a = 0; a < 3; a++) {
    for (int32_t b = a + 1; b < 3; b++) {
      if (!planc_option_given(arguments, ways[a]) || !planc_option_given(arguments, ways[b])) continue;
      return planc_error(PLANC_USAGE, "--%s and --%s exclude each other", ways[a], ways[b]);
    }
  }
  for (int32_t a = 0; passive && a < 5; a++) {
    if (!planc_option_given(arguments, of_plans[a])) continue;
    return planc_error(PLANC_USAGE, "--passive and --%s exclude each other", of_plans[a]);
  }
  for (const planc_option *option = work_options; !passive && option->name; option++) {
    if (!planc_option_given(arguments, option->name)) continue;
    return planc_error(PLANC_USAGE, "--%s: a plan has its own; only --passive takes it", option->name);
  }
  return NULL;
}

static planc_status run(const planc_arguments *arguments) {
  PLANC_TRY(check_options(arguments));
  return planc_option_given(arguments, "passive") ? cli_report_passive(arguments) : run_plan(arguments);
}

static const planc_option options[] = {
    {"graph-replay", 0, NULL, "the body captured and replayed as a whole, as by `planrun exec --graph`"},
    {"map-in-step", 0, "NS", "virtual memory mapped as data comes and goes, each chunk in NS of the host's time"},
    {"costs", 0, "FILE", "times from this profile, as far as it has them, in place of those that it was planned with"},
    {"vanilla", 0, "FILE", "the plan of the same without scheduling, to tell what this one saves and costs"},
    {"against", 0, "FILE", "compare with what `planrun exec --trace` measured of this plan"},
    {"json", 0, NULL, "the result as one line of JSON"},
    {"passive", 0, NULL, "of a graph: evict when memory runs out and swap in on access, without a plan; and with it:"},
    CLI_WORK_OPTIONS,
    {0},
};

const planc_subcommand cli_cmd_simulate = {
    {"simulate", "PLAN|GRAPH", "predict a plan's time and stalls, or those of passive swapping", options, 1, 1},
    run,
    NULL};
