/* What an update found and did, for people and as JSON (update_setup.h). */
#include <inttypes.h>
#include <string.h>

#include "cli/update_setup.h"
#include "cost/routes.h"
#include "plan/job_name.h"
#include "program/print.h"

static bool to_standard_output(const cli_update *u);
static planc_status report_json(const cli_update *u, bool updated);
static void print_text(const cli_update *u, const planc_plan *next);
static void print_decisions(const cli_update *u);
static const planc_mix_share *known_shares(const cli_update *u);
static bool has_ideal(const cli_update *u, const planc_plan *next);

planc_status cli_update_report(const cli_update *u, bool updated) {
  if (to_standard_output(u)) return NULL;
  if (prog_option_given(u->arguments, "json")) return report_json(u, updated);
  const planc_plan *next = planc_replanned_plan(&u->next);
  print_text(u, next);
  for (int32_t k = 0; updated && k < u->n_profile_outputs; k++)
    prog_print_line(stdout, "  profile %s", prog_option_repeated(u->arguments, "profile-out", k));
  if (!next) return NULL;
  print_decisions(u);
  cli_print_summary(next, known_shares(u), u->output, has_ideal(u, next));
  return NULL;
}

static bool to_standard_output(const cli_update *u) {
  bool any = u->output && strcmp(u->output, "-") == 0;
  for (int32_t k = 0; k < u->n_profile_outputs; k++)
    any |= strcmp(prog_option_repeated(u->arguments, "profile-out", k), "-") == 0;
  return any;
}

/* Nothing is told of what a mix does beside its jobs alone where one of them does not fit alone any more. */
static const planc_mix_share *known_shares(const cli_update *u) {
  bool known = u->is_mix;
  for (int32_t j = 0; j < u->plan->n_jobs && known; j++) known = u->shares[j].alone_ns > 0;
  return known ? u->shares : NULL;
}

/* Only a profile tells of a whole batch: without one it is taken to be rounds one after the other, which those side by
 * side are faster than. */
static bool has_ideal(const cli_update *u, const planc_plan *next) {
  bool any = false;
  for (int32_t j = 0; j < next->n_jobs; j++) any |= cli_runs_side_by_side(next, j);
  return u->bases || !any;
}

/* --- As JSON ------------------------------------------------------------------------------------------------------ */

static void report_sum(cJSON *object, const char *key, const planc_latency_sum *sum);
static void report_jobs(const cli_update *u, cJSON *object);
static void report_period(const cli_update *u, const planc_plan *next, cJSON *object);

static planc_status report_json(const cli_update *u, bool updated) {
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "update/1");
  pl_json_add_string(object, "policy", u->is_mix ? u->mix_policy->name : u->policy->name);
  pl_json_add_int(object, "periods", u->timeline->n_periods);
  pl_json_add_int(object, "weight_ppm", u->weight_ppm);
  pl_json_add_int(object, "threshold_ppm", u->threshold_ppm);
  report_sum(object, "ops", &u->update->ops);
  for (int r = 0; r < PLANC_N_ROUTES; r++) report_sum(object, pl_routes[r].sums, &u->update->copies[r]);
  report_jobs(u, object);
  const planc_plan *next = planc_replanned_plan(&u->next);
  report_period(u, next, object);
  pl_json_add_int(object, "change_ppm", u->update->change_ppm);
  pl_json_add_bool(object, "updated", updated);
  if (next) {
    pl_json_add_string(object, "decisions", u->next.keeps ? "kept" : "new");
  } else {
    pl_json_add_null(object, "decisions");
  }
  pl_json_add_known(object, "other_algorithms", u->n_others >= 0, u->n_others);
  return prog_print_json(stdout, object);
}

static void report_sum(cJSON *object, const char *key, const planc_latency_sum *sum) {
  cJSON *json = pl_json_add_object(object, key);
  pl_json_add_int(json, "count", sum->count);
  pl_json_add_int(json, "old_ns", sum->old_ns);
  pl_json_add_int(json, "measured_ns", sum->measured_ns);
  pl_json_add_int(json, "new_ns", sum->new_ns);
}

static void report_jobs(const cli_update *u, cJSON *object) {
  const planc_plan *plan = u->plan;
  if (plan->n_jobs == 1) return;
  cJSON *jobs = pl_json_add_array(object, "jobs");
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    cJSON *job = cJSON_CreateObject();
    if (plan->jobs[j].name) pl_json_add_string(job, "name", plan->jobs[j].name);
    pl_json_add_string(job, "graph", plan->jobs[j].graph->name);
    report_sum(job, "ops", &u->update->jobs[j]);
    pl_json_add(jobs, NULL, job);
  }
}

static void report_period(const cli_update *u, const planc_plan *next, cJSON *object) {
  cJSON *period = pl_json_add_object(object, "period");
  pl_json_add_int(period, "old_ns", u->predicted_ns);
  pl_json_add_int(period, "measured_ns", u->measured_ns);
  pl_json_add_known(period, "new_ns", next, next ? next->predicted.period_ns : 0);
}

/* --- For people --------------------------------------------------------------------------------------------------- */

static void print_sum(const char *what, const planc_latency_sum *sum) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT];
  if (sum->count == 0) return;
  printf("  %5" PRId32 "x %-10s %14s %16s %16s\n", sum->count, what, pl_time_format(sum->old_ns, a),
         pl_time_format(sum->measured_ns, b), pl_time_format(sum->new_ns, c));
}

static void print_decisions(const cli_update *u) {
  const planc_replanned *next = &u->next;
  char would[PL_SIZE_TEXT];
  if (!next->keeps) {
    printf("  planned anew\n");
  } else if (!next->made) {
    bool may_be_late = u->is_mix && planc_mix_has_deadlines(&u->mix.mix);
    printf("  decisions kept: planned anew it does not fit%s\n", may_be_late ? ", or is late" : "");
  } else {
    printf("  decisions kept: planned anew the %s takes %s\n", cli_period_word(u->plan),
           pl_time_format(next->made->predicted.period_ns, would));
  }
}

/* What the ops take alone does not tell whether a period is predicted well. */
static void print_period(const cli_update *u, const planc_plan *next) {
  char predicted[PL_SIZE_TEXT], measured[PL_SIZE_TEXT], now[PL_SIZE_TEXT];
  printf("  the %s was predicted %s, measured %s", cli_period_word(u->plan), pl_time_format(u->predicted_ns, predicted),
         pl_time_format(u->measured_ns, measured));
  if (next) printf(", now predicted %s", pl_time_format(next->predicted.period_ns, now));
  printf("\n");
}

static void print_text(const cli_update *u, const planc_plan *next) {
  const planc_update *update = u->update;
  printf("%s, %" PRId32 " period%s measured\n", u->plan->name, u->timeline->n_periods,
         u->timeline->n_periods == 1 ? "" : "s");
  printf("  %-17s %14s %16s %16s\n", "alone", "planned with", "measured", "from now on");
  print_sum("op", &update->ops);
  for (int32_t j = 0; j < u->plan->n_jobs && u->plan->n_jobs > 1; j++) {
    char of_job[sizeof "of " + PL_JOB_NAME_MAX];
    const char *name = u->plan->jobs[j].name;
    if (name) snprintf(of_job, sizeof of_job, "of %s", name);
    if (!name) snprintf(of_job, sizeof of_job, "of job %" PRId32, j);
    print_sum(of_job, &update->jobs[j]);
  }
  for (int r = 0; r < PLANC_N_ROUTES; r++) print_sum(pl_routes[r].verb, &update->copies[r]);
  print_period(u, next);
  char change[CLI_METRIC_TEXT], threshold[CLI_METRIC_TEXT];
  printf("  changed by %s, threshold %s\n", cli_metric_format(update->change_ppm, 3, change),
         cli_metric_format(u->threshold_ppm, 3, threshold));
}
