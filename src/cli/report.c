/* Reports of the subcommands: measures, and what binds a plan's peak. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/users_lines.h"
#include "plan/memories.h"
#include "planc/analysis.h"
#include "program/print.h"
#include "util/size.h"

static void report_metric(cJSON *object, const char *key, int64_t value) {
  pl_json_add_known(object, key, value != PLANC_NO_METRIC, value);
}

void cli_report_metrics(cJSON *object, const planc_metrics *metrics) {
  static const planc_metrics none = {PLANC_NO_METRIC, PLANC_NO_METRIC, PLANC_NO_METRIC, PLANC_NO_METRIC,
                                     PLANC_NO_METRIC, PLANC_NO_METRIC, PLANC_NO_METRIC};
  const planc_metrics *m = metrics ? metrics : &none;
  report_metric(object, "overhead_ppm", m->overhead_ppm);
  if (m->throughput_ppm == PLANC_NO_METRIC) {
    pl_json_add_null(object, "samples_per_s");
  } else {
    pl_json_add_real(object, "samples_per_s", (double)m->throughput_ppm / 1e6);
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

const char *cli_budget_format(int64_t bytes, char buffer[PL_SIZE_TEXT]) {
  return bytes < 0 ? "no limit" : pl_size_format(bytes, buffer);
}

void cli_print_storage(const planc_plan *plan, const char *separator) {
  char text[PL_SIZE_TEXT];
  int64_t bytes = pl_plan_peak(plan, PLANC_MEMORY_STORAGE);
  if (bytes > 0) printf("%sstorage %s", separator, pl_size_format(bytes, text));
}

enum { NAMED = 8 };

/* Which peak it is. Host and storage are there for all GPUs, and the figures are one GPU's. */
static void print_whose(const planc_plan *plan, planc_memory_kind memory, FILE *out) {
  int32_t gpus = planc_plan_replicas(plan);
  if (memory != PLANC_MEMORY_DEVICE) fprintf(out, "%s ", memory == PLANC_MEMORY_HOST ? "host" : "storage");
  fprintf(out, "peak");
  if (memory != PLANC_MEMORY_DEVICE && gpus > 1) fprintf(out, " on each of %d GPUs", gpus);
}

planc_status cli_print_peak(const planc_plan *plan, planc_memory_kind memory, FILE *out) {
  planc_peak *peak;
  PLANC_TRY(planc_peak_of(plan, memory, &peak));
  char text[PL_SIZE_TEXT], place[PL_PLACE_TEXT];
  print_whose(plan, memory, out);
  fprintf(out, ": %s live", pl_size_format(peak->bytes, text));
  if (peak->op) fprintf(out, " at op %s", peak->op);
  if (peak->op) prog_print_text(out, cli_op_place(plan, peak->op, place));
  fprintf(out, "; largest:\n");
  int64_t rest = 0;
  for (int32_t i = 0; i < peak->n; i++) {
    if (i < NAMED) {
      const planc_peak_entry *entry = &peak->entries[i];
      prog_print_line(out, "  %12s  %s%s", pl_size_format(entry->bytes, text), entry->name,
                      cli_data_place(plan, entry->name, place));
    } else {
      rest += peak->entries[i].bytes;
    }
  }
  if (peak->n > NAMED) fprintf(out, "  %12s  %d more\n", pl_size_format(rest, text), peak->n - NAMED);
  planc_peak_free(peak);
  return NULL;
}

planc_status cli_report_peak(const planc_plan *plan, planc_memory_kind memory, const char *key, cJSON *object) {
  planc_peak *peak;
  PLANC_TRY(planc_peak_of(plan, memory, &peak));
  cJSON *json = pl_json_add_object(object, key);
  pl_json_add_int(json, "live_bytes", peak->bytes);
  if (peak->op) pl_json_add_string(json, "op", peak->op);
  cJSON *live = pl_json_add_array(json, "live");
  for (int32_t i = 0; i < peak->n && i < NAMED; i++) {
    cJSON *entry = cJSON_CreateObject();
    pl_json_add_string(entry, "storage", peak->entries[i].name);
    pl_json_add_int(entry, "bytes", peak->entries[i].bytes);
    pl_json_add(live, NULL, entry);
  }
  planc_peak_free(peak);
  return NULL;
}
