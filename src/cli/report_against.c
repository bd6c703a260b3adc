/* A comparison of predicted and measured times, for people and as JSON (planc_comparison, planc/timeline.h). */
#include "cli/report_against.h"

#include "cli/cli.h"
#include "cost/routes.h"
#include "program/print.h"
#include "util/math.h"
#include "util/size.h"

/* Keys of what a compute stream does when nothing runs on it, and what that is called. */
static const struct {
  const char *key, *text;
} idle_causes[PLANC_N_IDLE_CAUSES] = {[PLANC_IDLE_COMPUTE] = {"wait_compute_ns", "waits for other streams"},
                                      [PLANC_IDLE_OTHER] = {"other_ns", "launches and hand-overs"},
#define X(id, name, memory, arrives, sums, waits, verb, where) [PLANC_IDLE_##id] = {waits, "waits for copies " where},
                                      PLANC_ROUTES(X)
#undef X
};

static void print_row(const char *what, int64_t predicted, int64_t measured);
static bool is_of_tier(int cause);

void cli_print_against(const planc_plan *plan, const planc_comparison *comparison, const planc_timeline *timeline,
                       const char *path) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT], name[64];
  fputs("against ", stdout);
  prog_print_text(stdout, path);
  printf(", %d period%s, %s to %s\n", timeline->n_periods, timeline->n_periods == 1 ? "" : "s",
         pl_time_format(comparison->least_ns, a), pl_time_format(comparison->most_ns, b));
  printf("  %-30s %16s %16s %8s\n", "with waits", "predicted", "measured", "ratio");
  print_row(cli_period_word(plan), comparison->predicted_ns, comparison->measured_ns);
  print_row("  with its ops as measured", comparison->predicted_as_measured_ns, comparison->measured_ns);
  for (int32_t c = 0; c < comparison->n_classes; c++) {
    const planc_class_times *times = &comparison->classes[c];
    snprintf(name, sizeof name, "%dx %s", times->count, times->name);
    print_row(name, times->predicted_ns, times->measured_ns);
  }
  for (int32_t s = 0; s < comparison->n_streams; s++) {
    const planc_stream_times *times = &comparison->streams[s];
    printf("compute stream %d\n", times->stream);
    print_row("busy", times->predicted_busy_ns, times->measured_busy_ns);
    for (int g = 0; g < PLANC_N_IDLE_CAUSES; g++) {
      int64_t predicted = times->predicted_idle_ns[g], measured = times->measured_idle_ns[g];
      if (!is_of_tier(g) || predicted > 0 || measured > 0) print_row(idle_causes[g].text, predicted, measured);
    }
  }
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

static void print_row(const char *what, int64_t predicted, int64_t measured) {
  char a[PL_SIZE_TEXT], b[PL_SIZE_TEXT];
  printf("  %-30s %16s %16s", what, pl_time_format(predicted, a), pl_time_format(measured, b));
  if (predicted > 0) {
    printf(" %8.3f\n", (double)measured / (double)predicted);
  } else {
    printf(" %8s\n", "-");
  }
}

/* Most plans have none, and no rows for what waits there. */
static bool is_of_tier(int cause) {
  return cause < PLANC_N_ROUTES && pl_routes[cause].memory != PLANC_MEMORY_DEVICE;
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void report_times(cJSON *object, int64_t predicted, int64_t measured) {
  pl_json_add_int(object, "predicted_ns", predicted);
  pl_json_add_int(object, "measured_ns", measured);
  if (predicted > 0) {
    pl_json_add_int(object, "ratio_ppm", pl_muldiv_floor(measured, 1000000, predicted));
  } else {
    pl_json_add_null(object, "ratio_ppm");
  }
}

static void report_stream(cJSON *object, const char *key, int64_t busy, const int64_t *times) {
  cJSON *side = pl_json_add_object(object, key);
  pl_json_add_int(side, "busy_ns", busy);
  for (int g = 0; g < PLANC_N_IDLE_CAUSES; g++) pl_json_add_int(side, idle_causes[g].key, times[g]);
}

void cli_report_against(const planc_comparison *comparison, const planc_timeline *timeline, const char *path,
                        cJSON *object) {
  cJSON *against = pl_json_add_object(object, "against");
  pl_json_add_string(against, "trace", path);
  pl_json_add_int(against, "periods", timeline->n_periods);
  report_times(against, comparison->predicted_ns, comparison->measured_ns);
  pl_json_add_int(against, "least_ns", comparison->least_ns);
  pl_json_add_int(against, "most_ns", comparison->most_ns);
  pl_json_add_int(against, "predicted_as_measured_ns", comparison->predicted_as_measured_ns);
  cJSON *classes = pl_json_add_array(against, "classes");
  for (int32_t c = 0; c < comparison->n_classes; c++) {
    cJSON *entry = cJSON_CreateObject();
    pl_json_add_string(entry, "class", comparison->classes[c].name);
    pl_json_add_int(entry, "count", comparison->classes[c].count);
    report_times(entry, comparison->classes[c].predicted_ns, comparison->classes[c].measured_ns);
    pl_json_add(classes, NULL, entry);
  }
  cJSON *streams = pl_json_add_array(against, "streams");
  for (int32_t s = 0; s < comparison->n_streams; s++) {
    const planc_stream_times *times = &comparison->streams[s];
    cJSON *entry = cJSON_CreateObject();
    pl_json_add_int(entry, "stream", times->stream);
    report_stream(entry, "predicted", times->predicted_busy_ns, times->predicted_idle_ns);
    report_stream(entry, "measured", times->measured_busy_ns, times->measured_idle_ns);
    pl_json_add(streams, NULL, entry);
  }
}
