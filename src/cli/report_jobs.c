/* Reports of a plan's jobs: what the work is, and what of a period is each job's where there are several. */
#include <string.h>

#include "cli/cli.h"
#include "program/print.h"
#include "util/size.h"

const planc_job *cli_only_job(const planc_plan *plan) {
  return plan->n_jobs == 1 ? plan->jobs : NULL;
}

const char *cli_period_word(const planc_plan *plan) {
  const planc_job *job = cli_only_job(plan);
  return job && job->iterations == 1 ? "iteration" : "period";
}

/* They have several compute streams on a GPU then. */
bool cli_runs_side_by_side(const planc_plan *plan, int32_t job) {
  int32_t n = 0;
  for (int32_t s = 0; s < plan->n_streams; s++)
    n += plan->streams[s].job == job && plan->streams[s].kind == PLANC_STREAM_KIND_compute;
  return n > planc_plan_gpus(plan);
}

bool cli_shares_link(const planc_plan *plan) {
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (link->bus >= 0 && (link->from < planc_plan_gpus(plan) || link->to < planc_plan_gpus(plan))) return true;
  }
  return false;
}

/* --- For people --------------------------------------------------------------------------------------------------- */

static void print_rounds(const planc_plan *plan, int32_t j, bool sizes);

void cli_print_work(const planc_plan *plan, bool sizes) {
  const planc_job *job = cli_only_job(plan);
  int32_t replicas = planc_plan_replicas(plan);
  int64_t gpus = (int64_t)planc_plan_gpus(plan) * replicas;
  char batch[CLI_BATCH_TEXT];
  if (job) {
    fputs(cli_batch_format(job->graph, planc_job_whole_batch(job), batch), stdout);
  } else {
    printf("%d jobs", plan->n_jobs);
  }
  if (gpus > 1) printf(" on %lld GPUs%s", (long long)gpus, cli_shares_link(plan) ? " with one link" : "");
  if (replicas > 1 && job) printf(", %lld each", (long long)job->batch);
  if (job) print_rounds(plan, 0, sizes);
  if (job && job->iterations > 1) printf(", %d iterations a period", job->iterations);
}

static void print_rounds(const planc_plan *plan, int32_t j, bool sizes) {
  const planc_job *job = &plan->jobs[j];
  printf(" in %d round%s", job->n_rounds, job->n_rounds == 1 ? "" : "s");
  if (sizes && cli_knows_batch(job->graph, planc_job_whole_batch(job))) printf(" of %lld", (long long)job->rounds[0]);
  if (cli_runs_side_by_side(plan, j)) printf(" side by side");
}

static void print_job(const planc_plan *plan, int32_t j, const planc_job_predictions *predicted, bool has_ideal) {
  const planc_job *job = &plan->jobs[j];
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT], d[CLI_BATCH_TEXT];
  if (job->name) printf("%s, ", job->name);
  prog_print_text(stdout, job->graph->name);
  printf(", %s", cli_batch_format(job->graph, planc_job_whole_batch(job), d));
  print_rounds(plan, j, true);
  printf(", %d iteration%s", job->iterations, job->iterations == 1 ? "" : "s");
  if (job->priority > 0) printf(", priority %d", job->priority);
  cli_print_own_settings(job);
  printf("\n    ");
  if (has_ideal) printf("ideal %s, ", pl_time_format(predicted->ideal_ns, a));
  printf("computes %s, waits %s\n", pl_time_format(predicted->busy_ns, b), pl_time_format(predicted->stall_ns, c));
  printf("    moved ");
  cli_print_moved(predicted);
}

void cli_print_moved(const planc_job_predictions *predicted) {
  const int64_t *moved = predicted->copied_bytes;
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT];
  printf("%s out, %s in", pl_size_format(moved[PLANC_ROUTE_D2H], a), pl_size_format(moved[PLANC_ROUTE_H2D], b));
  if (moved[PLANC_ROUTE_STORE] > 0 || moved[PLANC_ROUTE_LOAD] > 0)
    printf(", %s to storage, %s back", pl_size_format(moved[PLANC_ROUTE_STORE], a),
           pl_size_format(moved[PLANC_ROUTE_LOAD], b));
  printf("; recomputed %s\n", pl_time_format(predicted->recompute_ns, a));
}

void cli_print_jobs(const planc_plan *plan, const planc_job_predictions *predicted, bool has_ideal) {
  if (plan->n_jobs == 1) return;
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    printf("  job %d: ", j);
    print_job(plan, j, &predicted[j], has_ideal);
  }
}

static void print_job_number(const planc_plan *plan, int32_t j) {
  printf("job %d", j);
  if (plan->jobs[j].name) printf(" (%s)", plan->jobs[j].name);
}

static void print_speed(const planc_mix_share *share);

void cli_print_shares(const planc_plan *plan, const planc_mix_share *shares) {
  char text[PL_SIZE_TEXT], deadline[PL_SIZE_TEXT];
  enum { OF_ONE = 1000000 };
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    printf("  ");
    print_job_number(plan, j);
    printf(" runs at %.1f %% of what it does alone%s", 100.0 * (double)shares[j].speed_ppm / OF_ONE,
           cli_runs_side_by_side(plan, j) ? " with rounds one after the other" : "");
    if (shares[j].least_ppm > 0) printf(", at least %g %%", 100.0 * (double)shares[j].least_ppm / OF_ONE);
    print_speed(&shares[j]);
  }
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    if (shares[j].deadline_ns == 0) continue;
    printf("  requests of ");
    print_job_number(plan, j);
    printf(" take up to %s of %s\n", pl_time_format(shares[j].response_ns, text),
           pl_time_format(shares[j].deadline_ns, deadline));
  }
  printf("  together  %.3f times the throughput of one job alone\n",
         (double)planc_mix_throughput(shares, plan->n_jobs) / OF_ONE);
}

/* Within the budget as well, where that takes another time that can be seen. */
static void print_speed(const planc_mix_share *share) {
  char whole[PL_SIZE_TEXT], within[PL_SIZE_TEXT];
  pl_time_format(share->whole_ns, whole);
  pl_time_format(share->alone_ns, within);
  bool differs = strcmp(whole, within) != 0;
  printf("%s, %s an iteration by %s", differs ? " on the whole GPU" : "", whole, share->whole_policy);
  if (differs) printf("; within the budget %s by %s", within, share->alone_policy);
  puts("");
}

void cli_print_explanation(const char *before, const char *explanation) {
  if (!explanation) return;
  fputs(before, stdout);
  prog_print_line(stdout, "%s", explanation);
}

/* --- As JSON ------------------------------------------------------------------------------------------------------ */

void cli_report_work(const planc_plan *plan, cJSON *object) {
  const planc_job *job = cli_only_job(plan);
  if (job) {
    cli_report_batch(object, job->graph, planc_job_whole_batch(job));
  } else {
    pl_json_add_null(object, "batch");
  }
  pl_json_add_int(object, "gpus", (int64_t)planc_plan_gpus(plan) * planc_plan_replicas(plan));
  pl_json_add_bool(object, "shared_link", cli_shares_link(plan));
  pl_json_add_known(object, "rounds", job, job ? job->n_rounds : 0);
  pl_json_add_known(object, "sub_batch", job, job ? job->rounds[0] : 0);
  pl_json_add_known(object, "iterations", job, job ? job->iterations : 0);
}

static cJSON *job_json(const planc_job *job, const planc_job_predictions *predicted) {
  cJSON *object = cJSON_CreateObject();
  if (job->name) pl_json_add_string(object, "name", job->name);
  pl_json_add_string(object, "graph", job->graph->name);
  cli_report_batch(object, job->graph, planc_job_whole_batch(job));
  pl_json_add_int(object, "rounds", job->n_rounds);
  pl_json_add_int(object, "sub_batch", job->rounds[0]);
  pl_json_add_int(object, "iterations", job->iterations);
  if (job->priority > 0) pl_json_add_int(object, "priority", job->priority);
#define X(name, ...) \
  if (job->name > 0) pl_json_add_int(object, #name, job->name);
  PLANC_EACH_SETTINGS(X)
#undef X
  pl_json_add_int(object, "ideal_ns", predicted->ideal_ns);
  pl_json_add_int(object, "busy_ns", predicted->busy_ns);
  pl_json_add_int(object, "stall_ns", predicted->stall_ns);
  pl_json_add_int(object, "d2h_bytes", predicted->copied_bytes[PLANC_ROUTE_D2H]);
  pl_json_add_int(object, "h2d_bytes", predicted->copied_bytes[PLANC_ROUTE_H2D]);
  pl_json_add_int(object, "recompute_ns", predicted->recompute_ns);
  return object;
}

cJSON *cli_jobs_json(const planc_plan *plan, const planc_job_predictions *predicted) {
  if (plan->n_jobs == 1) return NULL;
  cJSON *array = cJSON_CreateArray();
  for (int32_t j = 0; j < plan->n_jobs; j++) pl_json_add(array, NULL, job_json(&plan->jobs[j], &predicted[j]));
  return array;
}

void cli_report_jobs(const planc_plan *plan, const planc_job_predictions *predicted, cJSON *object) {
  if (plan->n_jobs != 1) pl_json_add(object, "jobs", cli_jobs_json(plan, predicted));
}

void cli_report_shares(const planc_plan *plan, const planc_mix_share *shares, cJSON *object) {
  cJSON *array = pl_json_add_array(object, "shares");
  for (int32_t j = 0; j < plan->n_jobs; j++) {
    cJSON *share = pl_json_add_object(array, NULL);
    pl_json_add_real(share, "speed", (double)shares[j].speed_ppm / 1e6);
    pl_json_add_int(share, "iterations", shares[j].iterations);
    pl_json_add_int(share, "alone_ns", shares[j].alone_ns);
    pl_json_add_string(share, "alone_policy", shares[j].alone_policy);
    pl_json_add_int(share, "whole_ns", shares[j].whole_ns);
    pl_json_add_string(share, "whole_policy", shares[j].whole_policy);
    pl_json_add_int(share, "response_ns", shares[j].response_ns);
    pl_json_add_known(share, "deadline_ns", shares[j].deadline_ns > 0, shares[j].deadline_ns);
    pl_json_add_known(share, "least_ppm", shares[j].least_ppm > 0, shares[j].least_ppm);
  }
  pl_json_add_real(object, "throughput", (double)planc_mix_throughput(shares, plan->n_jobs) / 1e6);
}

void cli_report_explanation(const char *explanation, cJSON *object) {
  if (explanation) pl_json_add_string(object, "explanation", explanation);
}
