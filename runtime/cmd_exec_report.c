/* `planrun exec`: what a run ends with (cmd_exec.h), as text or as a line of JSON. */
#include <math.h>
#include <stdio.h>

#include "runtime/cmd_exec.h"
#include "util/json_tree.h"
#include "util/print.h"
#include "util/size.h"

const char *rt_execution_loss(double loss, char out[RT_LOSS_TEXT]) {
  if (isnan(loss)) return "nan"; /* of either sign */
  snprintf(out, RT_LOSS_TEXT, "%.9g", loss);
  return out;
}

/* Those of a job that has failed are the ones before. */
static int64_t iterations_of(const rt_execution *e, int32_t job) {
  planrt_failure failure;
  if (planrt_failed(e->session, job, &failure)) return failure.iteration;
  return planrt_get_step(e->session).period * e->plan->jobs[job].iterations;
}

/* --- JSON ------------------------------------------------------------------------------------------------------- */

static void add_losses(cJSON *to, double mean, const double *losses, int64_t n) {
  pl_json_add_finite(to, "loss", mean);
  cJSON *list = pl_json_add_array(to, "losses");
  for (int64_t i = 0; i < n; i++) pl_json_add_finite(list, NULL, losses[i]);
}

static bool has_failures(const rt_execution *e) {
  planrt_failure failure;
  for (int32_t j = 0; j < e->plan->n_jobs; j++)
    if (planrt_failed(e->session, j, &failure)) return true;
  return false;
}

/* Where the job has failed: the first iteration that does not count, and why. */
static void add_failure(cJSON *to, const rt_execution *e, int32_t job) {
  planrt_failure failure;
  if (!planrt_failed(e->session, job, &failure)) return;
  cJSON *failed = pl_json_add_object(to, "failed");
  pl_json_add_int(failed, "iteration", failure.iteration);
  pl_json_add_string(failed, "why", failure.why);
}

/* Of several jobs each has an object of its own. */
static void add_jobs(cJSON *to, const rt_execution *e) {
  if (e->plan->n_jobs == 1) return;
  cJSON *jobs = pl_json_add_array(to, "jobs");
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    const rt_losses *losses = &e->jobs[j].losses;
    cJSON *job = pl_json_add_object(jobs, NULL);
    pl_json_add_string(job, "graph", e->plan->jobs[j].graph->name);
    pl_json_add_int(job, "iterations", iterations_of(e, j));
    add_losses(job, losses->mean, losses->kept.data, losses->kept.len);
    pl_json_add_finite(job, "accuracy", e->jobs[j].accuracy);
    add_failure(job, e, j);
  }
}

/* A difference ends the run, so what has run without one is verified: nothing, where nothing has run. */
static void add_verified(cJSON *to, const rt_execution *e, bool verified) {
  if (e->options.verify && (!verified || rt_execution_done(e) > e->begun))
    pl_json_add_bool(to, "verified", verified);
  else
    pl_json_add_null(to, "verified");
}

static cJSON *make_json(const rt_execution *e, bool verified) {
  const planc_check_report *report = planrt_report(e->session);
  const rt_losses *only = e->plan->n_jobs == 1 ? &e->jobs->losses : NULL;
  cJSON *root = cJSON_CreateObject();
  pl_json_add_string(root, "planrun", "exec/1");
  add_losses(root, only ? only->mean : NAN, only ? only->kept.data : NULL, only ? only->kept.len : 0);
  pl_json_add_finite(root, "accuracy", only ? e->jobs->accuracy : NAN);
  add_verified(root, e, verified);
  pl_json_add_int(root, "iterations", rt_execution_done(e));
  pl_json_add_bool(root, "interrupted", rt_execution_stopped(e));
  pl_json_add_int(root, "peak_bytes", report->peak_bytes[PLANC_MEMORY_DEVICE]);
  pl_json_add_int(root, "host_peak_bytes", report->peak_bytes[PLANC_MEMORY_HOST]);
  pl_json_add_int(root, "storage_peak_bytes", report->peak_bytes[PLANC_MEMORY_STORAGE]);
  pl_json_add_int(root, "taken_bytes", planrt_taken(e->session));
  pl_json_add_int(root, "run_ns", e->run_ns);
  pl_json_add_known(root, "period_ns", planrt_period(e->session) > 0, planrt_period(e->session));
  pl_json_add_int(root, "plans_adopted", e->adopted);
  add_jobs(root, e);
  return root;
}

/* --- Text ------------------------------------------------------------------------------------------------------- */

static void print_text(const rt_execution *e);
static void print_only_job(const rt_execution *e);
static void print_job(const rt_execution *e, int32_t job);
static void print_peaks(const planc_check_report *report);
static void print_verified(const rt_execution *e);

planc_status rt_execution_failures(const rt_execution *e) {
  planc_status status = NULL;
  planrt_failure failure;
  for (int32_t j = 0; j < e->plan->n_jobs; j++) {
    if (!planrt_failed(e->session, j, &failure)) continue;
    planc_status all = planc_error(PLANC_JOB_FAILED, "%s%s%s", status ? planc_status_message(status) : "",
                                   status ? "; " : "", failure.why);
    planc_status_free(status);
    status = all;
  }
  return planc_context(status, "%s", e->path);
}

planc_status rt_execution_report(const rt_execution *e, bool verified) {
  if (e->json) return pl_print_json(stdout, make_json(e, verified));
  print_text(e);
  return NULL;
}

static void print_text(const rt_execution *e) {
  int64_t period_ns = planrt_period(e->session);
  if (e->plan->n_jobs == 1) print_only_job(e);
  for (int32_t j = 0; e->plan->n_jobs > 1 && j < e->plan->n_jobs; j++) print_job(e, j);
  print_peaks(planrt_report(e->session));
  if (e->options.bare && period_ns > 0) printf("period %.3f ms\n", (double)period_ns / 1e6);
  if (e->options.verify) print_verified(e);
}

static void print_only_job(const rt_execution *e) {
  char loss[RT_LOSS_TEXT];
  printf("iterations %lld%s\n", (long long)iterations_of(e, 0), rt_execution_stopped(e) ? " (interrupted)" : "");
  if (e->jobs->losses.n > 0) printf("loss %s\n", rt_execution_loss(e->jobs->losses.mean, loss));
  if (isfinite(e->jobs->accuracy)) printf("accuracy %.4f\n", e->jobs->accuracy);
}

static void print_job(const rt_execution *e, int32_t job) {
  const rt_execution_job *of = &e->jobs[job];
  char loss[RT_LOSS_TEXT], accuracy[32] = "";
  bool known = of->losses.n > 0;
  planrt_failure failure;
  bool failed = planrt_failed(e->session, job, &failure);
  if (isfinite(of->accuracy)) snprintf(accuracy, sizeof accuracy, ", accuracy %.4f", of->accuracy);
  pl_print_line(stdout, "job %d: %s, iterations %lld%s%s%s%s", job, e->plan->jobs[job].graph->name,
                (long long)iterations_of(e, job),
                failed                    ? " (failed)"
                : rt_execution_stopped(e) ? " (interrupted)"
                                          : "",
                known ? ", loss " : "", known ? rt_execution_loss(of->losses.mean, loss) : "", accuracy);
}

static void print_peaks(const planc_check_report *report) {
  char text[PL_SIZE_TEXT];
  printf("peak %s", pl_size_format(report->peak_bytes[PLANC_MEMORY_DEVICE], text));
  printf(", host %s", pl_size_format(report->peak_bytes[PLANC_MEMORY_HOST], text));
  if (report->peak_bytes[PLANC_MEMORY_STORAGE] > 0)
    printf(", storage %s", pl_size_format(report->peak_bytes[PLANC_MEMORY_STORAGE], text));
  printf("\n");
}

static void print_verified(const rt_execution *e) {
  if (rt_execution_done(e) == e->begun) {
    printf("verified: nothing, for no iteration ran\n");
    return;
  }
  printf("verified: every bit as in the reference");
  if (e->begun > 0) printf(", from iteration %lld on", (long long)e->begun);
  printf("%s\n", has_failures(e) ? ", but of what failed" : "");
}
