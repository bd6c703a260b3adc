/* `planc simulate`: what one iteration of a plan takes, and where the time goes; beside it what a run measured. */
#include "against.h"
#include "cli.h"
#include "planc/simulate.h"
#include "util/size.h"

/* What a run measured; without --against nothing. */
typedef struct measurement {
  const char *path; /* NULL: there is none */
  planc_timeline *timeline;
  planc_comparison *comparison;
} measurement;

static planc_status read_measurement(const char *path, const planc_plan *plan, measurement *out) {
  out->path = path;
  if (!path) return NULL;
  PLANC_TRY(planc_timeline_read(path, plan, &out->timeline));
  return planc_context(planc_timeline_compare(plan, out->timeline, &out->comparison), "%s", path);
}

static planc_status print_json(const planc_plan *plan, const planc_simulation *s, const measurement *m) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "planc", "simulate/1");
  cJSON_AddStringToObject(object, "policy", plan->policy);
  planc_report_int(object, "iteration_ns", s->iteration_ns);
  planc_report_int(object, "ideal_ns", plan->predicted.ideal_ns);
  planc_report_int(object, "first_iteration_ns", s->first_iteration_ns);
  planc_report_int(object, "prologue_ns", s->prologue_ns);
  planc_report_int(object, "epilogue_ns", s->epilogue_ns);
  planc_report_int(object, "compute_ns", s->compute_ns);
  planc_report_int(object, "recompute_ns", s->recompute_ns);
  planc_report_int(object, "slowdown_ns", s->slowdown_ns);
  planc_report_int(object, "stall_h2d_ns", s->stall_ns[PLANC_STALL_H2D]);
  planc_report_int(object, "stall_d2h_ns", s->stall_ns[PLANC_STALL_D2H]);
  planc_report_int(object, "stall_launch_ns", s->stall_ns[PLANC_STALL_LAUNCH]);
  planc_report_int(object, "h2d_bytes", s->h2d_bytes);
  planc_report_int(object, "d2h_bytes", s->d2h_bytes);
  planc_report_int(object, "h2d_ns", s->h2d_ns);
  planc_report_int(object, "d2h_ns", s->d2h_ns);
  planc_report_int(object, "peak_bytes", s->peak_bytes);
  planc_report_int(object, "live_peak_bytes", s->live_peak_bytes);
  if (plan->chunk_bytes > 0) planc_report_int(object, "mapped_chunks", s->mapped_chunks);
  if (m->path) planc_report_against(m->comparison, m->timeline, m->path, object);
  return planc_report_json(object);
}

static planc_status print_text(const planc_plan *plan, const planc_simulation *s, const measurement *m) {
  char a[PLANC_SIZE_TEXT], b[PLANC_SIZE_TEXT];
  const planc_job *job = &plan->jobs[0];
  printf("%s, %s on %s, batch %lld in %d round%s\n", plan->name, plan->policy, plan->device.name, (long long)job->batch,
         job->n_rounds, job->n_rounds == 1 ? "" : "s");
  printf("iteration      %14s   ideal %s\n", planc_time_format(s->iteration_ns, a),
         planc_time_format(plan->predicted.ideal_ns, b));
  printf("  compute      %14s   of it recompute %s\n", planc_time_format(s->compute_ns, a),
         planc_time_format(s->recompute_ns, b));
  printf("  slowed       %14s   by copies beside it\n", planc_time_format(s->slowdown_ns, a));
  printf("  waits h2d    %14s   %s moved\n", planc_time_format(s->stall_ns[PLANC_STALL_H2D], a),
         planc_size_format(s->h2d_bytes, b));
  printf("  waits d2h    %14s   %s moved\n", planc_time_format(s->stall_ns[PLANC_STALL_D2H], a),
         planc_size_format(s->d2h_bytes, b));
  printf("  waits launch %14s\n", planc_time_format(s->stall_ns[PLANC_STALL_LAUNCH], a));
  if (s->mapped_chunks > 0) printf("  maps         %14lld   chunks\n", (long long)s->mapped_chunks);
  printf("first iteration %s, prologue", planc_time_format(s->first_iteration_ns, a));
  printf(" %s, epilogue %s\n", planc_time_format(s->prologue_ns, a), planc_time_format(s->epilogue_ns, b));
  if (m->path) planc_print_against(m->comparison, m->timeline, m->path);
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

static planc_status run(const planc_arguments *arguments) {
  planc_plan *plan;
  static const char *const ways[] = {"graph-replay", "map-in-step", "against"};
  for (int a = 0; a < 3; a++) {
    for (int b = a + 1; b < 3; b++) {
      if (!planc_option_given(arguments, ways[a]) || !planc_option_given(arguments, ways[b])) continue;
      return planc_error(PLANC_USAGE, "--%s and --%s exclude each other", ways[a], ways[b]);
    }
  }
  PLANC_TRY(planc_plan_read(arguments->operands[0], &plan));
  planc_simulation simulation;
  measurement measured = {0};
  planc_status status = simulate(arguments, plan, &simulation);
  if (!status) status = read_measurement(planc_option_value(arguments, "against"), plan, &measured);
  if (!status) {
    status = planc_option_given(arguments, "json") ? print_json(plan, &simulation, &measured)
                                                   : print_text(plan, &simulation, &measured);
  }
  planc_comparison_free(measured.comparison);
  planc_timeline_free(measured.timeline);
  planc_plan_free(plan);
  return status;
}

static const planc_option options[] = {
    {"graph-replay", 0, NULL, "the body captured and replayed as a whole, as by `planrun exec --graph`"},
    {"map-in-step", 0, "NS", "virtual memory mapped as data comes and goes, each chunk in NS of the host's time"},
    {"against", 0, "FILE", "compare with what `planrun exec --trace` measured of this plan"},
    {"json", 0, NULL, "the result as one line of JSON"},
    {0},
};

const planc_subcommand planc_cmd_simulate = {{"simulate", "PLAN", "predict a plan's time and stalls", options, 1, 1},
                                             run};
