/* `planrun profile`: the profile, of what has been measured or of a device that is described (cmd_profile.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/cost.h"
#include "program/print.h"
#include "program/progress.h"
#include "runtime/cli/cmd_profile.h"
#include "util/file.h"
#include "util/json_tree.h"
#include "util/math.h"

planc_status run_profiling_properties(const char *output, char out[RUN_PATH_ROOM]) {
  size_t length = strlen(output);
  if (length > 5 && strcmp(output + length - 5, ".json") == 0) length -= 5;
  *out = 0;
  if (strcmp(output, "-") == 0) return NULL;
  if (snprintf(out, RUN_PATH_ROOM, "%.*s.properties.json", (int)length, output) < RUN_PATH_ROOM) return NULL;
  return planc_error(PLANC_USAGE, "%s: path too long", output);
}

/* Only a profile that planc can read leaves. */
static planc_status write_tree(const run_profiling *p, cJSON *tree) {
  char *text;
  size_t length;
  PLANC_TRY(pl_json_print(tree, PL_JSON_LINES, &text, &length));
  planc_profile *read = NULL;
  planc_status status = planc_profile_parse(text, length, p->output, &read);
  planc_profile_free(read);
  if (!status) status = pl_file_write(p->output, text, length);
  free(text);
  if (!status && strcmp(p->output, "-") != 0)
    prog_print_line(stdout, "%s: profile of %s at %d batch%s", p->output, p->graph->name, (int)p->n_batches,
                    p->n_batches == 1 ? "" : "es");
  return status;
}

/* --- Measured ----------------------------------------------------------------------------------------------------- */

static planc_status write_properties(const run_profiling *p);
static planc_status write_measured(const run_profiling *p);

planc_status run_profiling_write(const run_profiling *p, bool *out_written) {
  *out_written = false;
  if (!run_profiling_stopped(p)) PLANC_TRY(write_measured(p));
  if (run_profiling_stopped(p)) return NULL;
  PLANC_TRY(write_properties(p));
  *out_written = true;
  return NULL;
}

/* By them a card's algorithms can be listed where it is not. */
static planc_status write_properties(const run_profiling *p) {
  char *text, path[RUN_PATH_ROOM];
  PLANC_TRY(run_profiling_properties(p->output, path));
  if (!p->backend->properties || !*path) return NULL;
  PLANC_TRY(rt_properties_print(p->backend, &text));
  planc_status status = pl_file_write(path, text, strlen(text));
  free(text);
  return status;
}

static planc_status add_workspaces(const run_profiling *p, cJSON *tree);
static void show_workspaces(void *user, int32_t done, int32_t of);
static planc_status ask_workspaces(const run_profiling *p, cJSON *tree, const rt_batches *batches);

static planc_status write_measured(const run_profiling *p) {
  rt_profile_head head = {.name = p->name,
                          .machine = p->machine,
                          .memory_bytes = p->info.memory_bytes,
                          .processors = p->backend == &rt_host_backend ? 1 : p->info.processors};
  cJSON *tree;
  PLANC_TRY(rt_profile_compose(&head, p->graph, p->kept->pieces, &tree));
  planc_status status = add_workspaces(p, tree);
  if (!status && !run_profiling_stopped(p)) status = write_tree(p, tree);
  cJSON_Delete(tree);
  return status;
}

static planc_status add_workspaces(const run_profiling *p, cJSON *tree) {
  rt_batches batches;
  int64_t all[2 * RUN_MAX_BATCHES], largest = 0;
  for (int32_t b = 0; b < p->n_batches; b++) largest = pl_max(largest, p->batches[b]);
  memcpy(all, p->batches, (size_t)p->n_batches * sizeof *all);
  memcpy(all + p->n_batches, p->unmeasured, (size_t)p->n_unmeasured * sizeof *all);
  planc_status status = rt_round_sizes(p->n_batches + p->n_unmeasured, all, &batches);
  batches.all_up_to = largest;
  batches.slow = true;
  batches.progress = show_workspaces;
  if (!status) status = ask_workspaces(p, tree, &batches);
  free(batches.sizes);
  prog_progress_end(stderr);
  return status;
}

static void show_workspaces(void *user, int32_t done, int32_t of) {
  (void)user;
  prog_progress(stderr, "workspaces: batch %d of %d", done + 1, of);
}

static planc_status ask_workspaces(const run_profiling *p, cJSON *tree, const rt_batches *batches) {
  rt_device *device;
  PLANC_TRY(rt_list_open(p->backend, p->deterministic, &device));
  rt_list_options how = {.backend = p->backend, .device = device, .graph = p->graph, .stop = p->stop};
  planc_status status = rt_profile_add_workspaces(tree, &how, batches);
  p->backend->close(device);
  return status;
}

/* --- Described ---------------------------------------------------------------------------------------------------- */

/* What is told of a device that is not there. */
typedef struct profile_listing {
  const run_profiling *p;
  cJSON *reasons; /* for which ops have been left out: the keys of an object */
} profile_listing;

static void show_listing(void *user, int32_t done, int32_t of) {
  prog_progress(stderr, "%s: batch %d of %d", ((const profile_listing *)user)->p->deviceless, done + 1, of);
}

/* Once for each reason: what holds for one convolution holds for all. */
static void show_left_out(void *user, const char *op, planc_status why) {
  profile_listing *l = user;
  const char *reason = planc_status_message(why);
  if (cJSON_HasObjectItem(l->reasons, reason)) return;
  pl_json_add_bool(l->reasons, reason, true);
  prog_progress_end(stderr);
  prog_print_line(stderr, "planrun: note: op %s, and every other of which that holds, is left out: %s", op, reason);
}

planc_status run_profiling_list(const run_profiling *p, bool *out_written) {
  profile_listing l = {.p = p, .reasons = cJSON_CreateObject()};
  rt_described_options how = {.backend = p->backend,
                              .device = p->deviceless,
                              .graph = p->graph,
                              .n_batches = p->n_batches,
                              .batches = p->batches,
                              .deterministic = p->deterministic,
                              .most = (int32_t)p->most,
                              .stop = p->stop,
                              .progress = show_listing,
                              .refused = show_left_out,
                              .user = &l};
  cJSON *tree;
  planc_status status = rt_profile_described(&how, &tree);
  prog_progress_end(stderr);
  *out_written = !status && tree;
  if (*out_written) status = write_tree(p, tree);
  cJSON_Delete(tree);
  cJSON_Delete(l.reasons);
  return status;
}
