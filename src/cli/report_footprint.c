/* Memory without a plan, printed (report_footprint.h). */
#include "cli/report_footprint.h"

#include <stdio.h>
#include <string.h>

#include "program/print.h"
#include "util/json_tree.h"
#include "util/size.h"

static const char *const words[] = {[PLANC_FREE_AT_SCHEDULE] = "schedule", [PLANC_FREE_AT_COMPLETION] = "completion"};

planc_status cli_free_at_parse(const char *word, planc_free_at *out) {
  for (int k = PLANC_FREE_AT_SCHEDULE; k <= PLANC_FREE_AT_COMPLETION; k++) {
    if (strcmp(word, words[k]) != 0) continue;
    *out = (planc_free_at)k;
    return NULL;
  }
  return planc_error(PLANC_USAGE, "--free-at %s: not schedule or completion", word);
}

void cli_print_footprint(const planc_footprint *footprint, planc_free_at free_at) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], c[PL_SIZE_TEXT], d[PL_SIZE_TEXT];
  printf("freed at %s: %s live after %s of %s", words[free_at], pl_size_format(footprint->peak_bytes, a),
         pl_time_format(footprint->peak_ns, b), pl_time_format(footprint->period_ns, c));
  printf(", mean %s", pl_size_format(footprint->mean_bytes, a));
  if (footprint->backward_ns >= 0) printf(", backward from %s", pl_time_format(footprint->backward_ns, d));
  printf("\n");
}

void cli_report_footprint(const planc_footprint *footprint, planc_free_at free_at, cJSON *object) {
  cJSON *at = pl_json_add_object(object, "footprint");
  pl_json_add_string(at, "free_at", words[free_at]);
  pl_json_add_int(at, "peak_bytes", footprint->peak_bytes);
  pl_json_add_int(at, "peak_ns", footprint->peak_ns);
  pl_json_add_int(at, "mean_bytes", footprint->mean_bytes);
  pl_json_add_int(at, "period_ns", footprint->period_ns);
  pl_json_add_known(at, "backward_ns", footprint->backward_ns >= 0, footprint->backward_ns);
  cJSON *parts = pl_json_add_array(at, "most_bytes");
  for (int k = 0; k < PLANC_FOOTPRINT_PARTS; k++) pl_json_add_int(parts, NULL, footprint->most_bytes[k]);
}
