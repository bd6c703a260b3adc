/* `planrun exec`: what a run ends with (cmd_exec.h), as text or as a line of JSON. */
#include <math.h>
#include <stdio.h>

#include "program/print.h"
#include "runtime/cli/cmd_exec.h"
#include "util/json_tree.h"
#include "util/size.h"

const char *run_execution_loss(double loss, char out[RUN_LOSS_TEXT]) {
  if (isnan(loss)) return "nan"; /* of either sign */
  snprintf(out, RUN_LOSS_TEXT, "%.9g", loss);
  return out;
}

static cJSON *make_json(const run_execution *e, bool verified);
static void print_text(const run_execution *e);

planc_status run_execution_report(const run_execution *e, bool verified) {
  if (e->json) return prog_print_json(stdout, make_json(e, verified));
  print_text(e);
  return NULL;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

/* What failed before the run is no matter of a run that has it not. */
static bool is_failure(const run_execution *e, int32_t number) {
  planrt_job job = planrt_job_of(e->session, number);
  return job.why && (job.job >= 0 || !e->jobs.data[number].failed_before);
}

static bool has_failures(const run_execution *e) {
  for (int32_t n = 0; n < planrt_jobs(e->session); n++)
    if (is_failure(e, n)) return true;
  return false;
}

static void add_losses(cJSON *to, double mean, const double *losses, int64_t n);
static void add_verified(cJSON *to, const run_execution *e, bool verified);
static void add_jobs(cJSON *to, const run_execution *e);
static void add_failure(cJSON *to, const planrt_job *job);

static cJSON *make_json(const run_execution *e, bool verified) {
  const planc_check_report *report = planrt_report(e->session);
  const run_losses *only = e->jobs.len == 1 ? &e->jobs.data->losses : NULL;
  cJSON *root = cJSON_CreateObject();
  pl_json_add_string(root, "planrun", "exec/1");
  add_losses(root, only ? only->mean : NAN, only ? only->kept.data : NULL, only ? only->kept.len : 0);
  pl_json_add_finite(root, "accuracy", only ? e->jobs.data->accuracy : NAN);
  add_verified(root, e, verified);
  pl_json_add_int(root, "iterations", run_execution_done(e));
  pl_json_add_bool(root, "interrupted", run_execution_stopped(e));
  pl_json_add_int(root, "peak_bytes", report->peak_bytes[PLANC_MEMORY_DEVICE]);
  pl_json_add_int(root, "host_peak_bytes", report->peak_bytes[PLANC_MEMORY_HOST]);
  pl_json_add_int(root, "storage_peak_bytes", report->peak_bytes[PLANC_MEMORY_STORAGE]);
  pl_json_add_int(root, "taken_bytes", planrt_taken(e->session));
  pl_json_add_int(root, "run_ns", e->run_ns);
  pl_json_add_known(root, "period_ns", planrt_period(e->session) > 0, planrt_period(e->session));
  pl_json_add_int(root, "plans_adopted", e->adopted);
  if (e->hand_ons.len > 0) pl_json_add_int(root, "handed_on", e->handed_on);
  add_jobs(root, e);
  return root;
}

static void add_losses(cJSON *to, double mean, const double *losses, int64_t n) {
  pl_json_add_finite(to, "loss", mean);
  cJSON *list = pl_json_add_array(to, "losses");
  for (int64_t i = 0; i < n; i++) pl_json_add_finite(list, NULL, losses[i]);
}

/* A difference ends the run, so what has run without one is verified: nothing, where nothing has run. */
static void add_verified(cJSON *to, const run_execution *e, bool verified) {
  if (e->options.verify && (!verified || e->all_periods > 0))
    pl_json_add_bool(to, "verified", verified);
  else
    pl_json_add_null(to, "verified");
}

/* Of several jobs, those that have left included, each has an object of its own. */
static void add_jobs(cJSON *to, const run_execution *e) {
  if (e->jobs.len == 1) return;
  cJSON *jobs = pl_json_add_array(to, "jobs");
  for (int32_t n = 0; n < e->jobs.len; n++) {
    const run_execution_job *of = &e->jobs.data[n];
    planrt_job is = planrt_job_of(e->session, n);
    cJSON *job = pl_json_add_object(jobs, NULL);
    if (is.name) pl_json_add_string(job, "name", is.name);
    pl_json_add_string(job, "graph", is.graph);
    pl_json_add_int(job, "iterations", run_execution_iterations(&is));
    add_losses(job, of->losses.mean, of->losses.kept.data, of->losses.kept.len);
    pl_json_add_finite(job, "accuracy", of->accuracy);
    if (is.job < 0) pl_json_add_bool(job, "left", true);
    add_failure(job, &is);
  }
}

/* Where the job has failed: the first iteration that does not count, and why. */
static void add_failure(cJSON *to, const planrt_job *job) {
  if (!job->why) return;
  cJSON *failed = pl_json_add_object(to, "failed");
  pl_json_add_int(failed, "iteration", job->failed_at);
  pl_json_add_string(failed, "why", job->why);
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

static void print_only_job(const run_execution *e);
static void print_job(const run_execution *e, int32_t number);
static void print_peaks(const planc_check_report *report);
static void print_verified(const run_execution *e);

planc_status run_execution_failures(const run_execution *e) {
  planc_status status = NULL;
  for (int32_t n = 0; n < planrt_jobs(e->session); n++) {
    if (!is_failure(e, n)) continue;
    planc_status all = planc_error(PLANC_JOB_FAILED, "%s%s%s", status ? planc_status_message(status) : "",
                                   status ? "; " : "", planrt_job_of(e->session, n).why);
    planc_status_free(status);
    status = all;
  }
  return e->adopted > 0 ? status : planc_context(status, "%s", e->path);
}

static void print_text(const run_execution *e) {
  int64_t period_ns = planrt_period(e->session);
  if (e->jobs.len == 1) print_only_job(e);
  for (int32_t n = 0; e->jobs.len > 1 && n < e->jobs.len; n++) print_job(e, n);
  print_peaks(planrt_report(e->session));
  if (e->options.bare && period_ns > 0) printf("period %.3f ms\n", (double)period_ns / 1e6);
  if (e->hand_ons.len > 0) printf("handed on %lld time%s\n", (long long)e->handed_on, e->handed_on == 1 ? "" : "s");
  if (e->options.verify) print_verified(e);
}

static void print_only_job(const run_execution *e) {
  char loss[RUN_LOSS_TEXT];
  const run_execution_job *of = e->jobs.data;
  planrt_job is = planrt_job_of(e->session, 0);
  printf("iterations %lld%s\n", (long long)run_execution_iterations(&is),
         run_execution_stopped(e) ? " (interrupted)" : "");
  if (of->losses.n > 0) printf("loss %s\n", run_execution_loss(of->losses.mean, loss));
  if (isfinite(of->accuracy)) printf("accuracy %.4f\n", of->accuracy);
}

/* How it has ended, where it has not done what was asked for. */
static const char *ending_of(const run_execution *e, const planrt_job *job) {
  if (job->why) return " (failed)";
  if (job->job < 0) return " (left)";
  return run_execution_stopped(e) ? " (interrupted)" : "";
}

static void print_job(const run_execution *e, int32_t number) {
  const run_execution_job *of = &e->jobs.data[number];
  planrt_job is = planrt_job_of(e->session, number);
  char loss[RUN_LOSS_TEXT], accuracy[32] = "";
  bool known = of->losses.n > 0;
  if (isfinite(of->accuracy)) snprintf(accuracy, sizeof accuracy, ", accuracy %.4f", of->accuracy);
  prog_print_line(stdout, "job %d: %s%s%s, iterations %lld%s%s%s%s", number, is.name ? is.name : "",
                  is.name ? ", " : "", is.graph, (long long)run_execution_iterations(&is), ending_of(e, &is),
                  known ? ", loss " : "", known ? run_execution_loss(of->losses.mean, loss) : "", accuracy);
}

static void print_peaks(const planc_check_report *report) {
  char text[PL_SIZE_TEXT];
  printf("peak %s", pl_size_format(report->peak_bytes[PLANC_MEMORY_DEVICE], text));
  printf(", host %s", pl_size_format(report->peak_bytes[PLANC_MEMORY_HOST], text));
  if (report->peak_bytes[PLANC_MEMORY_STORAGE] > 0)
    printf(", storage %s", pl_size_format(report->peak_bytes[PLANC_MEMORY_STORAGE], text));
  printf("\n");
}

static void print_verified(const run_execution *e) {
  if (e->all_periods == 0) {
    printf("verified: nothing, for no iteration ran\n");
    return;
  }
  printf("verified: every bit as in the reference");
  if (e->begun > 0) printf(", from iteration %lld%s on", (long long)e->begun, e->jobs.len > 1 ? " of every job" : "");
  printf("%s\n", has_failures(e) ? ", but of what failed" : "");
}
