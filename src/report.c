/* Reports of the subcommands: JSON lines, and what binds a plan's peak. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "planc/analysis.h"
#include "util/size.h"
#include "util/utf8.h"

/* A path may hold any bytes, JSON only text: what is none becomes question marks. */
static void make_utf8(char *text) {
  const char *end = text + strlen(text);
  for (int length; text < end; text += length ? length : 1) {
    length = planc_utf8_length(text, end);
    if (!length) *text = '?';
  }
}

planc_status planc_report_json(cJSON *json) {
  char *text = json ? cJSON_PrintUnformatted(json) : NULL;
  cJSON_Delete(json);
  if (!text) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  make_utf8(text);
  puts(text);
  cJSON_free(text);
  return NULL;
}

cJSON *planc_report_int(cJSON *object, const char *key, int64_t value) {
  return cJSON_AddNumberToObject(object, key, (double)value);
}

enum { NAMED = 8 };

planc_status planc_print_peak(const planc_plan *plan, FILE *out) {
  planc_peak *peak;
  PLANC_TRY(planc_peak_of(plan, &peak));
  char text[PLANC_SIZE_TEXT];
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

planc_status planc_report_peak(const planc_plan *plan, cJSON *object) {
  planc_peak *peak;
  PLANC_TRY(planc_peak_of(plan, &peak));
  cJSON *json = cJSON_AddObjectToObject(object, "peak");
  planc_report_int(json, "live_bytes", peak->bytes);
  if (peak->op) cJSON_AddStringToObject(json, "op", peak->op);
  cJSON *live = cJSON_AddArrayToObject(json, "live");
  for (int32_t i = 0; i < peak->n && i < NAMED; i++) {
    cJSON *entry = cJSON_CreateObject();
    cJSON_AddStringToObject(entry, "storage", peak->entries[i].name);
    planc_report_int(entry, "bytes", peak->entries[i].bytes);
    cJSON_AddItemToArray(live, entry);
  }
  planc_peak_free(peak);
  return NULL;
}
