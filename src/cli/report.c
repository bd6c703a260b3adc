/* Reports of the subcommands: measures, and what binds a plan's peak. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "plan/layout.h"
#include "planc/analysis.h"
#include "util/size.h"

static void report_metric(cJSON *object, const char *key, int64_t value) {
  planc_json_add_known(object, key, value != PLANC_NO_METRIC, value);
}

void cli_report_metrics(cJSON *object, const planc_metrics *metrics) {
  static const planc_metrics none = {PLANC_NO_METRIC, PLANC_NO_METRIC, PLANC_NO_METRIC, PLANC_NO_METRIC,
                                     PLANC_NO_METRIC, PLANC_NO_METRIC, PLANC_NO_METRIC};
  const planc_metrics *m = metrics ? metrics : &none;
  report_metric(object, "overhead_ppm", m->overhead_ppm);
  if (m->throughput_ppm == PLANC_NO_METRIC) {
    planc_json_add_null(object, "samples_per_s");
  } else {
    planc_json_add_real(object, "samples_per_s", (double)m->throughput_ppm / 1e6);
  }
  report_metric(object, "moved_bytes", m->moved_bytes);
  report_metric(object, "msr_ppm", m->msr_ppm);
  report_metric(object, "eor_ppm", m->eor_ppm);
  report_metric(object, "eor_excess_ppm", m->eor_excess_ppm);
  report_metric(object, "cbr_ppm", m->cbr_ppm);
}

const char *cli_metric_format(int64_t ppm, int digits, char buffer[CLI_METRIC_TEXT]) {
  if (ppm == PLANC_NO_METRIC) return "-";
  snprintf(buffer, CLI_METRIC_TEXT, "%.*f", digits, (double)ppm / 1e6);
  return buffer;
}

const char *cli_percent_format(int64_t ppm, char buffer[CLI_METRIC_TEXT]) {
  if (ppm == PLANC_NO_METRIC) return "-";
  snprintf(buffer, CLI_METRIC_TEXT, "%+.1f%%", (double)ppm / 1e4);
  return buffer;
}

const char *cli_budget_format(int64_t bytes, char buffer[PLANC_SIZE_TEXT]) {
  return bytes < 0 ? "no limit" : planc_size_format(bytes, buffer);
}

/* Whether GPUs share the bandwidth of one link. */
static bool shares_link(const planc_plan *plan) {
  for (int32_t l = 0; l < plan->n_links; l++) {
    const planc_plan_link *link = &plan->links[l];
    if (link->bus >= 0 && (link->from < planc_plan_gpus(plan) || link->to < planc_plan_gpus(plan))) return true;
  }
  return false;
}

void cli_print_batch(const planc_plan *plan) {
  const planc_job *job = &plan->jobs[0];
  printf("batch %lld", (long long)planc_job_whole_batch(job));
  if (job->replicas < 2) return;
  printf(" on %d GPUs%s, %lld each", job->replicas, shares_link(plan) ? " with one link" : "", (long long)job->batch);
}

void cli_report_batch(const planc_plan *plan, cJSON *object) {
  planc_json_add_int(object, "batch", planc_job_whole_batch(&plan->jobs[0]));
  planc_json_add_int(object, "gpus", (int64_t)planc_plan_gpus(plan) * planc_plan_replicas(plan));
  planc_json_add_bool(object, "shared_link", shares_link(plan));
}

void cli_print_storage(const planc_plan *plan, const char *separator) {
  char text[PLANC_SIZE_TEXT];
  int64_t bytes = planc_plan_peak(plan, PLANC_MEMORY_STORAGE);
  if (bytes > 0) printf("%sstorage %s", separator, planc_size_format(bytes, text));
}

enum { NAMED = 8 };

planc_status cli_print_peak(const planc_plan *plan, planc_memory_kind memory, FILE *out) {
  planc_peak *peak;
  PLANC_TRY(planc_peak_of(plan, memory, &peak));
  char text[PLANC_SIZE_TEXT];
  if (memory != PLANC_MEMORY_DEVICE) fprintf(out, "%s ", memory == PLANC_MEMORY_HOST ? "host" : "storage");
  fprintf(out, "peak: %s live", planc_size_format(peak->bytes, text));
  if (peak->op) fprintf(out, " at op %s", peak->op);
  fprintf(out, "; largest:\n");
  int64_t rest = 0;
  for (int32_t i = 0; i < peak->n; i++) {
    if (i < NAMED) {
      fprintf(out, "  %12s  %s\n", planc_size_format(peak->entries[i].bytes, text), peak->entries[i].name);
    } else {
      rest += peak->entries[i].bytes;
    }
  }
  if (peak->n > NAMED) fprintf(out, "  %12s  %d more\n", planc_size_format(rest, text), peak->n - NAMED);
  planc_peak_free(peak);
  return NULL;
}

planc_status cli_report_peak(const planc_plan *plan, cJSON *object) {
  planc_peak *peak;
  PLANC_TRY(planc_peak_of(plan, PLANC_MEMORY_DEVICE, &peak));
  cJSON *json = planc_json_add_object(object, "peak");
  planc_json_add_int(json, "live_bytes", peak->bytes);
  if (peak->op) planc_json_add_string(json, "op", peak->op);
  cJSON *live = planc_json_add_array(json, "live");
  for (int32_t i = 0; i < peak->n && i < NAMED; i++) {
    cJSON *entry = cJSON_CreateObject();
    planc_json_add_string(entry, "storage", peak->entries[i].name);
    planc_json_add_int(entry, "bytes", peak->entries[i].bytes);
    planc_json_add(live, NULL, entry);
  }
  planc_peak_free(peak);
  return NULL;
}
