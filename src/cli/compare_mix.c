/* Mixes compared (compare_mix.h). */
#include "cli/compare_mix.h"

#include <stdlib.h>
#include <string.h>

#include "cli/mix_setup.h"
#include "program/print.h"
#include "program/progress.h"

typedef struct mix_row {
  const planc_mix_policy *policy;
  bool feasible, late, is_least; /* late: it fits, and misses a deadline or a least share */
  int64_t least_budget, period_ns, peak_bytes, throughput_ppm;
  int64_t weighted_ppm;    /* throughput by weight */
  planc_mix_share *shares; /* by job, with speeds; owned; NULL = it is not feasible */
  char *explanation;       /* owned; NULL = it does not say */
} mix_row;

typedef struct mix_table {
  const planc_mix *mix;
  planc_mix_share *shares; /* by job, as all policies are asked; owned; zero where some job does not even fit alone */
  planc_status misfit;     /* why that is so; owned */
  int32_t n;
  mix_row *rows;  /* owned */
  bool no_least;  /* nobody asks for least budgets */
  bool in_rounds; /* rounds are to be side by side */
  /* What policies fall back to, with its least budget; NULL until it is asked for. */
  const planc_mix_policy *fall_back;
  planc_least least_of_fall_back; /* without a plan; 0 bytes where there is none */
} mix_table;

static planc_status choose_policies(const prog_arguments *arguments, mix_table *t);
static planc_status check_own_options(const prog_arguments *arguments, const mix_table *t);
static planc_status compare(const prog_arguments *arguments, const cli_mix *mix, mix_table *t);
static void free_table(mix_table *t);
static planc_status fill_row(mix_table *t, mix_row *out);
static planc_status print_json(const mix_table *t);
static planc_status print_table(const mix_table *t);

planc_status cli_compare_mix(const prog_arguments *arguments) {
  cli_mix mix = {0};
  mix_table t = {.no_least = prog_option_given(arguments, "no-least"),
                 .in_rounds = prog_option_given(arguments, "accumulate")};
  planc_status status = choose_policies(arguments, &t);
  if (!status) status = check_own_options(arguments, &t);
  if (!status) status = cli_mix_read(arguments, &mix);
  if (!status) status = cli_mix_read_demands(arguments, &mix);
  if (!status) status = cli_mix_budget(mix.mix.terms.budgets[PLANC_MEMORY_DEVICE], &mix);
  if (!status) status = compare(arguments, &mix, &t);
  free_table(&t);
  cli_mix_free(&mix);
  return status;
}

static planc_status resolve(mix_table *t);

static planc_status compare(const prog_arguments *arguments, const cli_mix *mix, mix_table *t) {
  t->mix = &mix->mix;
  t->shares = calloc((size_t)mix->n, sizeof *t->shares);
  if (!t->shares) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = resolve(t);
  for (int32_t i = 0; !status && i < t->n; i++) status = fill_row(t, &t->rows[i]);
  prog_progress_end(stderr);
  PLANC_TRY(status);
  return prog_option_given(arguments, "json") ? print_json(t) : print_table(t);
}

/* Where a job does not fit alone no policy has a plan, and all have a least budget still. */
static planc_status resolve(mix_table *t) {
  planc_status status = planc_mix_resolve(t->mix, t->shares);
  if (!status) cli_mix_note_ratio(t->mix, t->shares);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  memset(t->shares, 0, (size_t)t->mix->n_jobs * sizeof *t->shares);
  t->misfit = status;
  return NULL;
}

/* --- Rows --------------------------------------------------------------------------------------------------------- */

static planc_status add_row(mix_table *t, const planc_mix_policy *policy) {
  for (int32_t i = 0; i < t->n; i++)
    if (t->rows[i].policy == policy) return planc_error(PLANC_USAGE, "--policies names %s twice", policy->name);
  t->rows[t->n++].policy = policy;
  return NULL;
}

static planc_status add_named(void *user, const char *name) {
  const planc_mix_policy *policy;
  PLANC_TRY(cli_mix_policy(name, false, &policy));
  return add_row(user, policy);
}

static bool is_of_use(const planc_mix_policy *policy, const prog_arguments *arguments);

static planc_status choose_policies(const prog_arguments *arguments, mix_table *t) {
  const char *names = prog_option_value(arguments, "policies");
  size_t n = 1;
  while (planc_mix_policies()[n - 1].name) n++;
  t->rows = calloc(n, sizeof *t->rows);
  if (!t->rows) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  if (names) {
    PLANC_TRY(cli_each_name(names, add_named, t));
    return t->n > 0 ? NULL : planc_error(PLANC_USAGE, "--policies names no policy");
  }
  for (const planc_mix_policy *policy = planc_mix_policies(); policy->name; policy++)
    if (is_of_use(policy, arguments)) PLANC_TRY(add_row(t, policy));
  return NULL;
}

/* Whether a policy that nobody has named is compared: not where it has nothing to do. */
static bool is_of_use(const planc_mix_policy *policy, const prog_arguments *arguments) {
  uint32_t means = policy->supports & (PLANC_POLICY_SWAPS | PLANC_POLICY_RECOMPUTES);
  if (policy->supports & PLANC_MIX_CHOOSES) return false;
  if (means == PLANC_POLICY_SWAPS && prog_option_given(arguments, "no-swap")) return false;
  return prog_option_given(arguments, "deadline") || !(policy->supports & PLANC_MIX_DEADLINES);
}

/* 0 bytes where there is none. */
static planc_status if_any(planc_status status, planc_least *least) {
  planc_plan_free(least->plan);
  least->plan = NULL;
  if (status) least->bytes = 0;
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status_free(status);
  return NULL;
}

/* Once for all rows, and the same whatever their order. */
static planc_status least_of_fall_back(mix_table *t, const planc_mix_policy *policy, planc_least *out) {
  if (t->fall_back != policy)
    PLANC_TRY(if_any(planc_mix_find_least(t->mix, policy, NULL, PLANC_MEMORY_DEVICE, NULL, &t->least_of_fall_back),
                     &t->least_of_fall_back));
  t->fall_back = policy;
  *out = t->least_of_fall_back;
  return NULL;
}

static planc_status fill_planned(mix_table *t, planc_mix_share *shares, mix_row *out);
static planc_status find_least(mix_table *t, planc_status failed, mix_row *out);
static planc_status least_of(mix_table *t, const planc_mix_policy *policy, planc_status failed, planc_least *out);
static bool is_fall_back(const planc_mix_policy *policy);
static planc_status explain_refusal(planc_status refusal, mix_row *out);
static planc_status keep_shares(const mix_table *t, const planc_mix_share *shares, mix_row *out);
static planc_status set_result(const mix_table *t, int64_t period_ns, int64_t peak_bytes, const char *explanation,
                               const planc_mix_share *shares, mix_row *out);
static planc_status fill_estimated(const mix_table *t, planc_mix_share *shares, mix_row *out);
static planc_status read_estimate(const mix_table *t, const planc_mix_estimate *estimate, const planc_mix_share *shares,
                                  mix_row *out);

static planc_status fill_row(mix_table *t, mix_row *out) {
  planc_mix_share shares[PLANC_MIX_MAX_JOBS];
  prog_progress(stderr, "planc: %s", out->policy->name);
  for (int32_t j = 0; j < t->mix->n_jobs; j++) shares[j] = t->shares[j];
  return out->policy->make ? fill_planned(t, shares, out) : fill_estimated(t, shares, out);
}

static planc_status fill_planned(mix_table *t, planc_mix_share *shares, mix_row *out) {
  planc_plan *plan = NULL;
  if (t->misfit) return find_least(t, t->misfit, out);
  planc_status failed = planc_colocate(t->mix, out->policy, shares, &plan);
  out->late = planc_status_code(failed) == PLANC_LATE;
  if (failed && !out->late && planc_status_code(failed) != PLANC_INFEASIBLE) return failed;
  planc_status status = out->late ? explain_refusal(failed, out) : NULL;
  if (out->late && !status) status = keep_shares(t, shares, out);
  if (!failed)
    status = set_result(t, plan->predicted.period_ns, plan->predicted.peak_bytes[PLANC_MEMORY_DEVICE],
                        plan->explanation, shares, out);
  if (!status) status = find_least(t, out->late ? NULL : failed, out);
  planc_status_free(failed);
  planc_plan_free(plan);
  return status;
}

static planc_status find_least(mix_table *t, planc_status failed, mix_row *out) {
  planc_least least;
  int64_t budget = t->mix->terms.budgets[PLANC_MEMORY_DEVICE];
  out->least_budget = -1;
  if (t->no_least) return NULL;
  PLANC_TRY(least_of(t, out->policy, failed, &least));
  if (least.bytes == 0) return NULL;
  bool less = (out->feasible || out->late) && budget < least.bytes;
  out->least_budget = less ? budget : least.bytes;
  out->is_least = least.is_least && !less;
  return NULL;
}

/* `failed` is why the policy does not fit, NULL where it does. Iterations that are left open are those at the budget
 * found, as they are where `planc colocate` is given it. */
static planc_status least_of(mix_table *t, const planc_mix_policy *policy, planc_status failed, planc_least *out) {
  if (is_fall_back(policy)) return least_of_fall_back(t, policy, out);
  if (!policy->falls_back)
    return if_any(planc_mix_find_least(t->mix, policy, NULL, PLANC_MEMORY_DEVICE, failed, out), out);
  PLANC_TRY(least_of_fall_back(t, planc_mix_policy_find(policy->falls_back), out));
  if (out->bytes == 0) return NULL;
  return if_any(planc_mix_find_least_beside(t->mix, policy, NULL, &t->least_of_fall_back, out), out);
}

static bool is_fall_back(const planc_mix_policy *policy) {
  for (const planc_mix_policy *other = planc_mix_policies(); other->name; other++)
    if (other->falls_back && planc_mix_policy_find(other->falls_back) == policy) return true;
  return false;
}

static planc_status explain_refusal(planc_status refusal, mix_row *out) {
  out->explanation = strdup(planc_status_message(refusal));
  return out->explanation ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
}

static planc_status keep_shares(const mix_table *t, const planc_mix_share *shares, mix_row *out) {
  out->shares = calloc((size_t)t->mix->n_jobs, sizeof *out->shares);
  if (!out->shares) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  memcpy(out->shares, shares, (size_t)t->mix->n_jobs * sizeof *shares);
  return NULL;
}

static planc_status set_result(const mix_table *t, int64_t period_ns, int64_t peak_bytes, const char *explanation,
                               const planc_mix_share *shares, mix_row *out) {
  out->feasible = true;
  out->period_ns = period_ns;
  out->peak_bytes = peak_bytes;
  out->throughput_ppm = planc_mix_throughput(shares, t->mix->n_jobs);
  out->weighted_ppm = planc_mix_weighted_throughput(t->mix, shares);
  PLANC_TRY(keep_shares(t, shares, out));
  if (explanation && !(out->explanation = strdup(explanation)))
    return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  return NULL;
}

static planc_status fill_estimated(const mix_table *t, planc_mix_share *shares, mix_row *out) {
  planc_mix_estimate estimate;
  out->least_budget = -1;
  if (t->misfit) return explain_refusal(t->misfit, out);
  planc_status status = planc_mix_estimate_by(t->mix, out->policy, shares, &estimate);
  if (!status) return read_estimate(t, &estimate, shares, out);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  planc_status told = explain_refusal(status, out);
  planc_status_free(status);
  return told;
}

/* What a policy without a plan comes to. It has no least budget: what has no room is on the host. */
static planc_status read_estimate(const mix_table *t, const planc_mix_estimate *estimate, const planc_mix_share *shares,
                                  mix_row *out) {
  const char *requests = planc_mix_has_deadlines(t->mix) ? "; what requests take is not estimated" : "";
  char text[PL_SIZE_TEXT], all[PL_SIZE_TEXT], explanation[160];
  int64_t budget = t->mix->terms.budgets[PLANC_MEMORY_DEVICE], pools = estimate->pools_bytes;
  pl_size_format(pools, all);
  snprintf(explanation, sizeof explanation, "not planned: the pools of all jobs take %s, %s migrate on demand%s", all,
           pl_size_format(estimate->migrated_bytes, text), requests);
  return set_result(t, estimate->period_ns, pools < budget ? pools : budget, explanation, shares, out);
}

/* Whether `colocate` has the policy for what is asked: not where rounds are to be side by side and it has them one
 * after the other. */
static bool is_for_plans(const mix_table *t, const planc_mix_policy *policy) {
  return policy->make && (!t->in_rounds || (policy->supports & PLANC_MIX_ROUNDS));
}

/* The row of the plan with the largest throughput by weight, of several the first; NULL where none fits. */
static const mix_row *winner(const mix_table *t) {
  const mix_row *best = NULL;
  for (int32_t i = 0; i < t->n; i++) {
    const mix_row *row = &t->rows[i];
    if (!row->feasible || !is_for_plans(t, row->policy)) continue;
    if (!best || row->weighted_ppm > best->weighted_ppm) best = row;
  }
  return best;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void report_jobs(const mix_table *t, cJSON *object);
static void report_row(const mix_table *t, const mix_row *r, cJSON *json);
static void report_responses(const mix_table *t, const mix_row *r, cJSON *json);

static planc_status print_json(const mix_table *t) {
  const mix_row *best = winner(t);
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planc", "compare-colocate/1");
  pl_json_add_string(object, "device", planc_mix_device(t->mix)->name);
  pl_json_add_int(object, "budget_bytes", t->mix->terms.budgets[PLANC_MEMORY_DEVICE]);
  report_jobs(t, object);
  if (best) {
    pl_json_add_string(object, "best", best->policy->name);
  } else {
    pl_json_add_null(object, "best");
  }
  cJSON *rows = pl_json_add_array(object, "rows");
  for (int32_t i = 0; i < t->n; i++) report_row(t, &t->rows[i], pl_json_add_object(rows, NULL));
  return prog_print_json(stdout, object);
}

static void report_alone(const mix_table *t, const char *time, int64_t ns, const char *name, const char *policy,
                         cJSON *job);

static void report_jobs(const mix_table *t, cJSON *object) {
  cJSON *array = pl_json_add_array(object, "jobs");
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    cJSON *job = pl_json_add_object(array, NULL);
    if (t->mix->names && t->mix->names[j]) pl_json_add_string(job, "name", t->mix->names[j]);
    pl_json_add_string(job, "graph", t->mix->jobs[j].graph->name);
    cli_report_batch(job, t->mix->jobs[j].graph, t->mix->jobs[j].batch);
    pl_json_add_known(job, "deadline_ns", t->mix->deadlines_ns[j] > 0, t->mix->deadlines_ns[j]);
    report_alone(t, "alone_ns", t->shares[j].alone_ns, "alone_policy", t->shares[j].alone_policy, job);
    report_alone(t, "whole_ns", t->shares[j].whole_ns, "whole_policy", t->shares[j].whole_policy, job);
  }
}

static void report_alone(const mix_table *t, const char *time, int64_t ns, const char *name, const char *policy,
                         cJSON *job) {
  pl_json_add_known(job, time, !t->misfit, ns);
  if (t->misfit)
    pl_json_add_null(job, name);
  else
    pl_json_add_string(job, name, policy);
}

static void report_row(const mix_table *t, const mix_row *r, cJSON *json) {
  pl_json_add_string(json, "policy", r->policy->name);
  pl_json_add_bool(json, "planned", r->policy->make != NULL);
  pl_json_add_bool(json, "feasible", r->feasible);
  pl_json_add_bool(json, "late", r->late);
  pl_json_add_known(json, "least_budget", r->least_budget >= 0, r->least_budget);
  pl_json_add_bool(json, "is_least", r->is_least);
  pl_json_add_known(json, "period_ns", r->feasible, r->period_ns);
  pl_json_add_known(json, "peak_bytes", r->feasible, r->peak_bytes);
  if (r->feasible) {
    pl_json_add_real(json, "throughput", (double)r->throughput_ppm / 1e6);
    pl_json_add_real(json, "weighted_throughput", (double)r->weighted_ppm / 1e6);
  } else {
    pl_json_add_null(json, "throughput");
    pl_json_add_null(json, "weighted_throughput");
  }
  cJSON *speeds = pl_json_add_array(json, "speeds"), *ratio = pl_json_add_array(json, "ratio");
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    if (r->feasible) pl_json_add_real(speeds, NULL, (double)r->shares[j].speed_ppm / 1e6);
    if (!t->misfit) pl_json_add_int(ratio, NULL, (r->shares ? r->shares : t->shares)[j].iterations);
  }
  report_responses(t, r, json);
  cli_report_explanation(r->explanation, json);
}

static void report_responses(const mix_table *t, const mix_row *r, cJSON *json) {
  cJSON *responses = pl_json_add_array(json, "responses_ns");
  for (int32_t j = 0; r->feasible && r->policy->make && j < t->mix->n_jobs; j++)
    pl_json_add_int(responses, NULL, r->shares[j].response_ns);
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

static void print_job(const mix_table *t, int32_t j);
static void print_row(const mix_table *t, const mix_row *r, bool best);
static void print_responses(const mix_table *t, const mix_row *r);
static void print_compared(const mix_table *t);

static planc_status print_table(const mix_table *t) {
  const mix_row *best = winner(t);
  char text[PL_SIZE_TEXT];
  printf("%d job%s on %s, budget %s\n", t->mix->n_jobs, t->mix->n_jobs == 1 ? "" : "s", planc_mix_device(t->mix)->name,
         pl_size_format(t->mix->terms.budgets[PLANC_MEMORY_DEVICE], text));
  for (int32_t j = 0; j < t->mix->n_jobs; j++) print_job(t, j);
  if (t->misfit) prog_print_line(stdout, "  no period: %s", planc_status_message(t->misfit));
  printf("%-12s %12s %16s %12s %10s  %s\n", "policy", "least budget", "period", "peak", "throughput", "speed of each");
  for (int32_t i = 0; i < t->n; i++) print_row(t, &t->rows[i], &t->rows[i] == best);
  if (best && best->explanation) printf("why %s: ", best->policy->name);
  cli_print_explanation("", best ? best->explanation : NULL);
  for (int32_t i = 0; i < t->n; i++) {
    if (t->rows[i].policy->make && !t->rows[i].late) continue;
    printf("%s: ", t->rows[i].policy->name);
    cli_print_explanation("", t->rows[i].explanation);
  }
  print_compared(t);
  return NULL;
}

/* Which rows are of policies with plans, and yet not to be had. */
static void print_compared(const mix_table *t) {
  int32_t n = 0;
  for (int32_t i = 0; i < t->n; i++) {
    const planc_mix_policy *policy = t->rows[i].policy;
    if (!policy->make || is_for_plans(t, policy)) continue;
    printf("%s%s", n++ == 0 ? "compared with rounds one after the other, not for colocate: " : ", ", policy->name);
  }
  if (n > 0) puts("");
}

static void print_job(const mix_table *t, int32_t j) {
  const planc_mix_share *share = &t->shares[j];
  char text[PL_SIZE_TEXT], batch[CLI_BATCH_TEXT];
  printf("  job %d: ", j);
  if (t->mix->names && t->mix->names[j]) printf("%s, ", t->mix->names[j]);
  prog_print_text(stdout, t->mix->jobs[j].graph->name);
  printf(", %s", cli_batch_format(t->mix->jobs[j].graph, t->mix->jobs[j].batch, batch));
  if (!t->misfit)
    printf(", %d iteration%s in a period, alone %s each by %s", share->iterations, share->iterations == 1 ? "" : "s",
           pl_time_format(share->alone_ns, text), share->alone_policy);
  if (!t->misfit && share->whole_ns != share->alone_ns)
    printf(", on the whole GPU %s by %s", pl_time_format(share->whole_ns, text), share->whole_policy);
  puts("");
}

static bool has_late_job(const mix_table *t, const mix_row *r) {
  for (int32_t j = 0; j < t->mix->n_jobs; j++)
    if (planc_mix_is_late(&r->shares[j])) return true;
  return false;
}

static void print_row(const mix_table *t, const mix_row *r, bool best) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT];
  printf("%-12s %c%11s", r->policy->name, r->least_budget < 0 || r->is_least ? ' ' : '<',
         r->least_budget < 0 ? "-" : pl_size_format(r->least_budget, a));
  if (!r->feasible) {
    puts(!r->late ? "   does not fit" : has_late_job(t, r) ? "   too late" : "   too slow");
    return;
  }
  printf(" %16s %12s %10.3f ", pl_time_format(r->period_ns, b), pl_size_format(r->peak_bytes, c),
         (double)r->throughput_ppm / 1e6);
  for (int32_t j = 0; j < t->mix->n_jobs; j++) printf(" %5.3f", (double)r->shares[j].speed_ppm / 1e6);
  print_responses(t, r);
  puts(!best ? "" : planc_mix_has_weights(t->mix) ? " <- fastest by weight" : " <- fastest");
}

/* Of jobs with deadlines what a request takes, and of all how many iterations a period has where they are not as many
 * as the policies were asked for. */
static void print_responses(const mix_table *t, const mix_row *r) {
  char text[PL_SIZE_TEXT];
  if (!r->policy->make) return;
  for (int32_t j = 0; j < t->mix->n_jobs; j++) {
    const planc_mix_share *share = &r->shares[j];
    bool asks = share->deadline_ns > 0, differs = share->iterations != t->shares[j].iterations;
    if (asks || differs) printf("  job %d", j);
    if (asks) printf(" up to %s", pl_time_format(share->response_ns, text));
    if (differs) printf(" in %d iteration%s", share->iterations, share->iterations == 1 ? "" : "s");
  }
}

/* --- Options and memory ------------------------------------------------------------------------------------------- */

static void free_table(mix_table *t) {
  for (int32_t i = 0; i < t->n; i++) {
    free(t->rows[i].shares);
    free(t->rows[i].explanation);
  }
  planc_status_free(t->misfit);
  free(t->rows);
  free(t->shares);
}

static planc_status check_own_options(const prog_arguments *arguments, const mix_table *t) {
  uint32_t supports = 0;
  for (int32_t i = 0; i < t->n; i++) {
    const planc_mix_policy *policy = t->rows[i].policy;
    if ((policy->supports & PLANC_MIX_DEADLINES) && !prog_option_given(arguments, "deadline"))
      return planc_refusal(PLANC_USAGE, PLANC_REMEDY_DEADLINES, "%s is for mixes in which jobs have deadlines",
                           policy->name);
    supports |= policy->supports;
  }
  PLANC_TRY(cli_setup_useful(arguments, t->n == 1 ? t->rows[0].policy->name : NULL, supports));
  return cli_mix_check_rounds(arguments, supports);
}
