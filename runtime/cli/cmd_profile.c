/* `planrun profile`: measures a graph's ops, the links and the launches on this machine.
 *
 * What has been measured is kept piece by piece beside the output (runtime/profile/profile_part.h). An interrupted
 * profile goes on from there. */
#include "runtime/cli/cmd_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planc/cost.h"
#include "planc/version.h"
#include "program/interrupts.h"
#include "program/print.h"
#include "runtime/cli/planrun.h"
#include "runtime/profile/profile_head.h"
#include "util/json_tree.h"
#include "util/label.h"
#include "util/locate.h"

static const prog_option options[] = {
    {"batches", 'b', "N,N,...", "batches to measure (default: the graph's header, else 32)"},
    {"unmeasured", 0, "N,N,...", "batches that do not fit here and are planned for: list their workspaces"},
    {"output", 'o', "FILE", "the profile, - for standard output (default: profile.json)"},
    {"name", 0, "NAME", "of the device in the profile (default: the backend's name)"},
    {"backend", 0, "NAME", "what to measure: host (default) or cuda"},
    {"deviceless", 0, "DEVICE", "instead of measuring list the algorithms that the CUDA libraries have for DEVICE"},
    {"deterministic", 0, NULL, "only algorithms that give the same bits every time"},
    {"optimizer", 0, "NAME", "sgd, momentum or adam, where the graph has no backward ops"},
    {"inference", 0, NULL, "measure the graph as it stands, without deriving training"},
    {"most", 0, "N", "algorithms of each op, the best by the library's own ranking; 0: all (default 8, listed 0)"},
    {"repetitions", 'r', "N", "iterations measured with each algorithm (default 5)"},
    {"warm-up", 0, "MS", "run iterations for so long before those that are measured (default 1000, host 0)"},
    {"link", 0, "RATE", "pace copies between host and device, as exec does"},
    {"storage", 0, "DIR", "measure storage, too, by a file in this directory"},
    {"loads", 0, "N,N,...", "measure ops also while every processor is kept busy for this many per cent of the time"},
    {0},
};

enum { FALLBACK_BATCH = 32 };
/* A GPU's clocks rise within some tenths of a second of work, and settle where power and heat allow. */
enum { MAX_MEASURED = 8, WARM_UP_MS = 1000 };

/* What has been measured. Here, where a signal's handler finds it. */
static rt_kept kept = {.file = -1};

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);
static void blame_nothing(void);
static planc_status tell_other_remedy(planc_status status);
static planc_status profile(run_profiling *p, const prog_arguments *arguments);
static planc_status read_arguments(run_profiling *p, const prog_arguments *arguments);
static planc_status read_graph(run_profiling *p, const prog_arguments *arguments);
static planc_status profile_measured(run_profiling *p, bool *out_written);
static void tell_what_is_kept(bool written);

const prog_subcommand run_cmd_profile = {
    {"profile", "GRAPH", "measure ops, links and launches on this machine", options, 1, 1}, run, list_files};

static planc_status run(const prog_arguments *arguments) {
  run_profiling p = {.stop = &prog_interrupted, .kept = &kept};
  prog_interrupts_catch("planrun: ending after the iteration, op or copy that it is at; again to end at once\n",
                        blame_nothing);
  planc_status status = tell_other_remedy(profile(&p, arguments));
  rt_kept_close(&kept);
  planc_graph_free(p.graph);
  if (!status) prog_interrupts_end();
  return status;
}

static planc_status profile(run_profiling *p, const prog_arguments *arguments) {
  bool written = false;
  PLANC_TRY(read_arguments(p, arguments));
  PLANC_TRY(read_graph(p, arguments));
  PLANC_TRY(p->deviceless ? run_profiling_list(p, &written) : profile_measured(p, &written));
  tell_what_is_kept(written);
  return NULL;
}

/* Who interrupts twice blames nothing of what is being tried. */
static void blame_nothing(void) {
  rt_kept_unmark(&kept);
}

/* --- Command line ------------------------------------------------------------------------------------------------- */

static const char *output_of(const prog_arguments *arguments) {
  const char *output = prog_option_value(arguments, "output");
  return output ? output : "profile.json";
}

/* A device that is not known is told when it is needed. */
static planc_status list_described(const char *device, prog_used_files *files) {
  char description[RUN_PATH_ROOM], properties[RUN_PATH_ROOM];
  planc_status unknown = pl_locate_properties(device, description, properties, RUN_PATH_ROOM);
  planc_status_free(unknown);
  if (unknown) return NULL;
  PLANC_TRY(prog_used_files_read(files, description));
  return prog_used_files_read(files, properties);
}

/* A measured profile is kept in pieces while it is made, and has the device's properties beside it. */
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  const char *output = output_of(arguments), *device = prog_option_value(arguments, "deviceless");
  char path[RUN_PATH_ROOM], properties[RUN_PATH_ROOM];
  PLANC_TRY(prog_used_files_read(files, arguments->operands[0]));
  PLANC_TRY(prog_used_files_write(files, output));
  if (device) return list_described(device, files);
  PLANC_TRY(run_profiling_properties(output, properties));
  if (!*properties) return NULL;
  PLANC_TRY(prog_used_files_write(files, properties));
  if (snprintf(path, sizeof path, "%s%s", output, RT_PART_SUFFIX) >= RUN_PATH_ROOM)
    return planc_error(PLANC_USAGE, "%s: path too long", output);
  return prog_used_files_write(files, path);
}

static planc_status read_list(const prog_arguments *arguments, const char *name, int64_t most, int32_t room,
                              int64_t *out, int32_t *out_count);
static planc_status find_backend(run_profiling *p, const prog_arguments *arguments);
static planc_status try_links(const run_profiling *p);
static planc_status describe_machine(run_profiling *p);

static planc_status read_arguments(run_profiling *p, const prog_arguments *arguments) {
  const char *name = prog_option_value(arguments, "name");
  p->output = output_of(arguments);
  p->name = name ? name : prog_option_value(arguments, "backend");
  if (!p->name) p->name = "host";
  const char *fault = name ? pl_label_fault(name) : NULL;
  if (fault) return planc_error(PLANC_USAGE, "--name: %s", fault);
  PLANC_TRY(read_list(arguments, "batches", INT32_MAX, RUN_MAX_BATCHES, p->batches, &p->n_batches));
  PLANC_TRY(read_list(arguments, "unmeasured", INT32_MAX, RUN_MAX_BATCHES, p->unmeasured, &p->n_unmeasured));
  PLANC_TRY(read_list(arguments, "loads", 100, RUN_MAX_LOADS, p->loads + 1, &p->n_loads));
  for (int32_t i = 1; i <= p->n_loads; i++) p->loads[i] *= PLANC_UNIT_PERCENT;
  p->n_loads++;
  PLANC_TRY(prog_option_int(arguments, "repetitions", 1, 1000, 5, &p->repetitions));
  PLANC_TRY(run_option_rate(arguments, "link", &p->link_bytes_per_s));
  p->deterministic = prog_option_given(arguments, "deterministic");
  return find_backend(p, arguments);
}

static planc_status read_list(const prog_arguments *arguments, const char *name, int64_t most, int32_t room,
                              int64_t *out, int32_t *out_count) {
  const char *text = prog_option_value(arguments, name);
  *out_count = 0;
  while (text) {
    char *end;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (end == text || (*end && *end != ',') || errno || value < 1 || value > most)
      return planc_error(PLANC_USAGE, "--%s takes integers from 1 to %lld, with commas between them", name,
                         (long long)most);
    for (int32_t i = 0; i < *out_count; i++)
      if (out[i] == value) return planc_error(PLANC_USAGE, "--%s names %lld twice", name, (long long)value);
    if (*out_count == room) return planc_error(PLANC_USAGE, "--%s takes %d at most", name, room);
    out[(*out_count)++] = value;
    text = *end ? end + 1 : NULL;
  }
  return NULL;
}

/* A described device is the CUDA libraries'; nothing on it is measured. */
static planc_status find_backend(run_profiling *p, const prog_arguments *arguments) {
  static const char *const measuring[] = {"backend", "name",    "repetitions", "warm-up",
                                          "link",    "storage", "loads",       "unmeasured"};
  const char *name = prog_option_value(arguments, "backend");
  p->deviceless = prog_option_value(arguments, "deviceless");
  for (size_t i = 0; p->deviceless && i < sizeof measuring / sizeof *measuring; i++)
    if (prog_option_given(arguments, measuring[i]))
      return planc_error(PLANC_USAGE, "--deviceless and --%s exclude each other", measuring[i]);
  PLANC_TRY(planrt_backend_find(p->deviceless ? "cuda" : name ? name : "host", &p->backend));
  bool host = p->backend == &rt_host_backend;
  PLANC_TRY(prog_option_int(arguments, "most", 0, INT32_MAX, p->deviceless ? 0 : MAX_MEASURED, &p->most));
  PLANC_TRY(prog_option_int(arguments, "warm-up", 0, 60000, host ? 0 : WARM_UP_MS, &p->warm_up_ms));
  if (p->deviceless) return NULL;
  p->storage = prog_option_value(arguments, "storage");
  PLANC_TRY(try_links(p));
  return describe_machine(p);
}

/* A link that cannot be paced, or storage that cannot be had, is told before anything is measured. */
static planc_status try_links(const run_profiling *p) {
  rt_device *device;
  rt_device_options how = {.link_bytes_per_s = p->link_bytes_per_s,
                           .storage_bytes = p->storage ? rt_least_stored() : 0,
                           .storage_path = p->storage};
  if (p->link_bytes_per_s == 0 && !p->storage) return NULL;
  if (p->storage && !p->backend->storage)
    return planc_error(PLANC_USAGE, "--storage: backend %s has no storage", p->backend->name);
  PLANC_TRY(p->backend->open(&how, &device));
  p->backend->close(device);
  return NULL;
}

/* What a profile holds for. */
static planc_status describe_machine(run_profiling *p) {
  PLANC_TRY(p->backend->info(&p->info));
  snprintf(p->machine, sizeof p->machine, "%s, %d processors, %s, planrun %s", p->info.device, p->info.processors,
           p->info.versions, PLANC_VERSION);
  return NULL;
}

/* What is measured of a graph in which no size depends on N holds for its own batch alone. */
static planc_status check_batches(const planc_graph *graph, const char *option, const int64_t *batches, int32_t n) {
  for (int32_t b = 0; b < n && !planc_graph_has_samples(graph); b++)
    if (batches[b] != graph->batch)
      return planc_error(PLANC_USAGE, "--%s %lld: graph %s is of one batch size, as no size in it depends on N", option,
                         (long long)batches[b], graph->name);
  return NULL;
}

static planc_status read_graph(run_profiling *p, const prog_arguments *arguments) {
  const char *derived;
  PLANC_TRY(planc_graph_prepare(arguments->operands[0], prog_option_value(arguments, "optimizer"),
                                prog_option_given(arguments, "inference"), &p->graph, &derived));
  if (derived)
    prog_print_line(stderr, "planrun: note: %s has no backward ops: %s for training with %s", arguments->operands[0],
                    p->deviceless ? "listed" : "measured", derived);
  PLANC_TRY(check_batches(p->graph, "batches", p->batches, p->n_batches));
  PLANC_TRY(check_batches(p->graph, "unmeasured", p->unmeasured, p->n_unmeasured));
  if (p->n_batches > 0) return NULL;
  p->n_batches = 1;
  p->batches[0] = p->graph->batch > 0 ? p->graph->batch : planc_graph_has_samples(p->graph) ? FALLBACK_BATCH : 1;
  if (p->graph->batch == 0 && !planc_graph_has_samples(p->graph)) return NULL;
  prog_print_line(stderr, "planrun: note: batch %lld (%s)", (long long)p->batches[0],
                  p->graph->batch > 0 ? "the graph's header" : "the fall-back");
  return NULL;
}

/* --- Profiling ---------------------------------------------------------------------------------------------------- */

static planc_status open_kept(const run_profiling *p) {
  rt_profile_ways ways = {.graph = p->graph,
                          .machine = p->machine,
                          .n_batches = p->n_batches,
                          .batches = p->batches,
                          .n_loads = p->n_loads,
                          .loads = p->loads,
                          .repetitions = p->repetitions,
                          .most = p->most,
                          .warm_up_ms = p->warm_up_ms,
                          .link_bytes_per_s = p->link_bytes_per_s,
                          .storage = p->storage,
                          .deterministic = p->deterministic};
  cJSON *head = rt_profile_head_of(&ways);
  planc_status status = pl_json_is_whole(head)
                            ? rt_kept_open(&kept, strcmp(p->output, "-") == 0 ? NULL : p->output, head)
                            : planc_error(PLANC_OUT_OF_MEMORY, "profile");
  cJSON_Delete(head);
  return status;
}

static void tell_found(void) {
  int32_t measured = 0;
  const cJSON *piece;
  cJSON_ArrayForEach(piece, kept.pieces) {
    measured += !rt_piece_is_trial(piece);
  }
  if (cJSON_GetArraySize(kept.pieces) > 0)
    prog_print_line(stderr, "planrun: note: going on from %s, which has %d measured parts", kept.path, measured);
}

static planc_status profile_measured(run_profiling *p, bool *out_written) {
  PLANC_TRY(open_kept(p));
  tell_found();
  PLANC_TRY(run_profiling_measure(p));
  PLANC_TRY(run_profiling_write(p, out_written));
  return *out_written ? rt_kept_remove(&kept) : NULL;
}

/* Without a failure there is a profile, or it was interrupted before there was. */
static void tell_what_is_kept(bool written) {
  if (written) return;
  if (kept.path && access(kept.path, F_OK) == 0)
    prog_print_line(stderr, "planrun: interrupted; the same command goes on from %s", kept.path);
  else
    prog_print_line(stderr, "planrun: interrupted; nothing is kept: the same command begins anew");
}

/* What is measured are the ops themselves: stand-ins are no remedy here. */
static planc_status tell_other_remedy(planc_status status) {
  if (planc_status_remedy(status) != PLANC_REMEDY_SYNTHETIC) return status;
  planc_status told = planc_error(
      planc_status_code(status), "%s, so the graph cannot be measured; planc plan --device plans it by predicted times",
      planc_status_message(status));
  planc_status_free(status);
  return told;
}
