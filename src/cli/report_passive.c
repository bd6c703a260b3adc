/* What `planc simulate --passive` prints (passive.h). */
#include "cli/report_passive.h"

#include "planc/passive.h"
#include "program/print.h"
#include "util/math.h"
#include "util/size.h"

/* Both iterations, and each against the same without scheduling. */
typedef struct answer {
  const planc_problem *problem;
  planc_passive passive;
  planc_outcome vanilla;
  planc_metrics first, steady;
} answer;

static planc_status find_answer(const planc_problem *problem, answer *out);
static planc_status print_json(const answer *a);
static planc_status print_text(const answer *a);

planc_status cli_report_passive(const prog_arguments *arguments) {
  cli_setup setup;
  answer found;
  planc_status status = cli_setup_read(arguments, arguments->operands[0], &setup);
  if (!status) status = find_answer(&setup.problem, &found);
  if (!status) status = prog_option_given(arguments, "json") ? print_json(&found) : print_text(&found);
  cli_setup_free(&setup);
  return status;
}

static planc_metrics measure(const answer *a, const planc_passive_iteration *iteration) {
  planc_outcome run = {.period_ns = iteration->time_ns,
                       .peak_bytes[PLANC_MEMORY_DEVICE] = a->passive.peak_bytes,
                       .total = {.ideal_ns = a->vanilla.total.ideal_ns,
                                 .copied_bytes[PLANC_ROUTE_D2H] = iteration->copied_bytes[PLANC_ROUTE_D2H],
                                 .copied_bytes[PLANC_ROUTE_H2D] = iteration->copied_bytes[PLANC_ROUTE_H2D]}};
  planc_metrics metrics;
  planc_metrics_of(&run, a->problem->job.batch, &a->vanilla, &metrics);
  return metrics;
}

static planc_status find_answer(const planc_problem *problem, answer *out) {
  out->problem = problem;
  PLANC_TRY(planc_simulate_passive(problem, &out->passive));
  PLANC_TRY(planc_vanilla_of(problem, &out->vanilla));
  out->first = measure(out, &out->passive.first);
  out->steady = measure(out, &out->passive.steady);
  return NULL;
}

/* --- As JSON ------------------------------------------------------------------------------------------------------ */

static int64_t share_ppm(int64_t part_ns, const planc_passive_iteration *of) {
  return of->time_ns > 0 ? pl_muldiv_floor(part_ns, PL_PPM, of->time_ns) : PLANC_NO_METRIC;
}

static void report_iteration(cJSON *object, const char *key, const planc_passive_iteration *i,
                             const planc_metrics *metrics) {
  cJSON *json = pl_json_add_object(object, key);
  pl_json_add_int(json, "iteration_ns", i->time_ns);
  pl_json_add_int(json, "compute_ns", i->compute_ns);
  pl_json_add_int(json, "evict_ns", i->evict_ns);
  pl_json_add_int(json, "swap_in_ns", i->swap_in_ns);
  pl_json_add_int(json, "user_ns", i->user_ns);
  pl_json_add_int(json, "launch_ns", i->launch_ns);
  pl_json_add_int(json, "evictions", i->evictions);
  pl_json_add_int(json, "copied_out", i->copied_out);
  pl_json_add_int(json, "swap_ins", i->swap_ins);
  pl_json_add_int(json, "evicted_bytes", i->evicted_bytes);
  pl_json_add_int(json, "swapped_in_bytes", i->swapped_in_bytes);
  pl_json_add_int(json, "d2h_bytes", i->copied_bytes[PLANC_ROUTE_D2H]);
  pl_json_add_int(json, "h2d_bytes", i->copied_bytes[PLANC_ROUTE_H2D]);
  pl_json_add_known(json, "evict_ppm", i->time_ns > 0, share_ppm(i->evict_ns, i));
  pl_json_add_known(json, "swap_in_ppm", i->time_ns > 0, share_ppm(i->swap_in_ns, i));
  cli_report_metrics(json, metrics);
}

static planc_status print_json(const answer *a) {
  const planc_problem *problem = a->problem;
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "simulate-passive/1");
  pl_json_add_string(object, "graph", problem->job.graph->name);
  pl_json_add_string(object, "device", planc_profile_device(problem->job.profile)->name);
  cli_report_batch(object, problem->job.graph, problem->job.batch);
  pl_json_add_int(object, "budget_bytes", problem->terms.budgets[PLANC_MEMORY_DEVICE]);
  pl_json_add_int(object, "peak_bytes", a->passive.peak_bytes);
  pl_json_add_int(object, "host_peak_bytes", a->passive.host_peak_bytes);
  pl_json_add_int(object, "prologue_ns", a->passive.prologue_ns);
  pl_json_add_int(object, "ideal_ns", a->vanilla.total.ideal_ns);
  pl_json_add_int(object, "vanilla_ns", a->vanilla.period_ns);
  pl_json_add_int(object, "vanilla_bytes", a->vanilla.peak_bytes[PLANC_MEMORY_DEVICE]);
  report_iteration(object, "first", &a->passive.first, &a->first);
  report_iteration(object, "steady", &a->passive.steady, &a->steady);
  return prog_print_json(stdout, object);
}

/* --- For people --------------------------------------------------------------------------------------------------- */

static void print_times(const answer *a, const char *what, int64_t first_ns, int64_t steady_ns);
static const char *share_format(int64_t part_ns, const planc_passive_iteration *of, char buffer[CLI_METRIC_TEXT]);
static void print_moves(const char *what, const planc_passive_iteration *i);

static planc_status print_text(const answer *a) {
  char texts[3][PL_SIZE_TEXT], batch[CLI_BATCH_TEXT];
  const planc_problem *problem = a->problem;
  const planc_passive *p = &a->passive;
  const planc_passive_iteration *first = &p->first, *steady = &p->steady;
  printf("%s, passive swapping on %s, %s under %s\n", problem->job.graph->name,
         planc_profile_device(problem->job.profile)->name,
         cli_batch_format(problem->job.graph, problem->job.batch, batch),
         pl_size_format(problem->terms.budgets[PLANC_MEMORY_DEVICE], texts[0]));
  printf("%-14s %14s %21s\n", "", "first", "steady");
  print_times(a, "iteration", first->time_ns, steady->time_ns);
  print_times(a, "  compute", first->compute_ns, steady->compute_ns);
  print_times(a, "  evictions", first->evict_ns, steady->evict_ns);
  print_times(a, "  swap-ins", first->swap_in_ns, steady->swap_in_ns);
  print_times(a, "  user's data", first->user_ns, steady->user_ns);
  print_times(a, "  launches", first->launch_ns, steady->launch_ns);
  print_moves("first", first);
  print_moves("steady", steady);
  printf("peak %s, host %s; prologue %s\n", pl_size_format(p->peak_bytes, texts[0]),
         pl_size_format(p->host_peak_bytes, texts[1]), pl_time_format(p->prologue_ns, texts[2]));
  printf("against no swapping (%s, %s): EOR first %s", pl_time_format(a->vanilla.period_ns, texts[0]),
         pl_size_format(a->vanilla.peak_bytes[PLANC_MEMORY_DEVICE], texts[1]),
         cli_metric_format(a->first.eor_ppm, 4, texts[2]));
  printf(", steady %s; MSR %s\n", cli_metric_format(a->steady.eor_ppm, 4, texts[0]),
         cli_metric_format(a->steady.msr_ppm, 4, texts[1]));
  return NULL;
}

/* A time of both iterations, and its share of each. */
static void print_times(const answer *a, const char *what, int64_t first_ns, int64_t steady_ns) {
  char times[2][PL_SIZE_TEXT], shares[2][CLI_METRIC_TEXT];
  const planc_passive *p = &a->passive;
  printf("%-14s %14s %6s %14s %6s\n", what, pl_time_format(first_ns, times[0]),
         share_format(first_ns, &p->first, shares[0]), pl_time_format(steady_ns, times[1]),
         share_format(steady_ns, &p->steady, shares[1]));
}

static const char *share_format(int64_t part_ns, const planc_passive_iteration *of, char buffer[CLI_METRIC_TEXT]) {
  int64_t ppm = share_ppm(part_ns, of);
  if (ppm == PLANC_NO_METRIC) return "-";
  snprintf(buffer, CLI_METRIC_TEXT, "%.1f%%", (double)ppm / 1e4);
  return buffer;
}

static void print_moves(const char *what, const planc_passive_iteration *i) {
  char out[PL_SIZE_TEXT], in[PL_SIZE_TEXT];
  printf("%s: %lld evicted, %lld of them copied (%s); %lld swapped in (%s)\n", what, (long long)i->evictions,
         (long long)i->copied_out, pl_size_format(i->evicted_bytes, out), (long long)i->swap_ins,
         pl_size_format(i->swapped_in_bytes, in));
}
