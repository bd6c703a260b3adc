/* `planrun profile`: measures a graph's ops, the links and the launches on this machine.
 *
 * What has been measured is kept piece by piece in a file beside the output, OUTPUT.part: a line that says what it
 * belongs to, then a line for each piece. An interrupted profile goes on from there. */
#define _DEFAULT_SOURCE /* SA_RESTART */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planc/cost.h"
#include "planc/version.h"
#include "planrt/planrt.h"
#include "runtime/cli.h"
#include "runtime/profile_file.h"
#include "util/file.h"
#include "util/progress.h"
#include "util/size.h"

static const planc_option options[] = {
    {"batches", 'b', "N,N,...", "batches to measure (default: the graph's header, else 32)"},
    {"output", 'o', "FILE", "the profile (default: profile.json)"},
    {"name", 0, "NAME", "of the device in the profile (default: host)"},
    {"optimizer", 0, "NAME", "sgd, momentum or adam, where the graph has no backward ops"},
    {"inference", 0, NULL, "measure the graph as it stands, without deriving training"},
    {"repetitions", 'r', "N", "iterations measured with each algorithm (default 5)"},
    {"link", 0, "RATE", "pace copies between host and device, as exec does"},
    {"loads", 0, "N,N,...", "measure ops also while every processor is kept busy for this many per cent of the time"},
    {0},
};

enum { FALLBACK_BATCH = 32, MOST_BATCHES = 64, MOST_LOADS = 16, PERCENT = 10000 };

typedef struct profiling {
  const char *output;
  char *part; /* path of the pieces; malloc'ed */
  planc_graph *graph;
  int32_t n_batches, n_loads;
  int64_t batches[MOST_BATCHES], loads[MOST_LOADS + 1]; /* ppm; the first is 0 */
  int64_t repetitions, link_bytes_per_s;
  char machine[256];
  const char *name;
  cJSON *pieces; /* an array */
  FILE *file;    /* the pieces' */
  char doing[64];
} profiling;

static volatile sig_atomic_t interrupted;

static void interrupt(int number) {
  interrupted = number;
}

/* --- Command line ----------------------------------------------------------------------------------------------- */

static planc_status read_list(const planc_arguments *arguments, const char *name, int64_t most, int32_t room,
                              int64_t *out, int32_t *out_count) {
  const char *text = planc_option_value(arguments, name);
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

/* The processor's name and the library in use: a profile holds for these. */
static void describe_machine(char *out, size_t room) {
  char line[512], processor[128] = "unknown processor";
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    const char *value = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
    if (!value) continue;
    snprintf(processor, sizeof processor, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    break;
  }
  if (file) fclose(file);
  snprintf(out, room, "%s, %ld processors, %s, planrun %s", processor, sysconf(_SC_NPROCESSORS_ONLN),
           planrt_host_library(), PLANC_VERSION);
}

static planc_status read_arguments(profiling *p, const planc_arguments *arguments) {
  const char *output = planc_option_value(arguments, "output"), *name = planc_option_value(arguments, "name");
  p->output = output ? output : "profile.json";
  p->name = name ? name : "host";
  PLANC_TRY(read_list(arguments, "batches", INT32_MAX, MOST_BATCHES, p->batches, &p->n_batches));
  PLANC_TRY(read_list(arguments, "loads", 100, MOST_LOADS, p->loads + 1, &p->n_loads));
  for (int32_t i = 1; i <= p->n_loads; i++) p->loads[i] *= PERCENT;
  p->n_loads++;
  PLANC_TRY(planc_option_int(arguments, "repetitions", 1, 1000, 5, &p->repetitions));
  PLANC_TRY(planrt_option_rate(arguments, "link", &p->link_bytes_per_s));
  size_t room = strlen(p->output) + sizeof ".part";
  p->part = malloc(room);
  if (!p->part) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  snprintf(p->part, room, "%s.part", p->output);
  describe_machine(p->machine, sizeof p->machine);
  return NULL;
}

static planc_status read_graph(profiling *p, const planc_arguments *arguments) {
  const char *derived;
  PLANC_TRY(planc_graph_prepare(arguments->operands[0], planc_option_value(arguments, "optimizer"),
                                planc_option_given(arguments, "inference"), &p->graph, &derived));
  if (derived)
    fprintf(stderr, "planrun: note: %s has no backward ops: measured for training with %s\n", arguments->operands[0],
            derived);
  if (p->n_batches > 0) return NULL;
  p->n_batches = 1;
  p->batches[0] = p->graph->batch > 0 ? p->graph->batch : FALLBACK_BATCH;
  fprintf(stderr, "planrun: note: batch %lld (%s)\n", (long long)p->batches[0],
          p->graph->batch > 0 ? "the graph's header" : "the fall-back");
  return NULL;
}

/* --- Pieces ----------------------------------------------------------------------------------------------------- */

/* What pieces belong to; another line means that they were measured otherwise. Malloc'ed. */
static char *describe_pieces(const profiling *p) {
  char text[24];
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "planrun", "profile/1");
  snprintf(text, sizeof text, "%016" PRIx64, planc_graph_hash(p->graph));
  cJSON_AddStringToObject(object, "graph_hash", text);
  cJSON_AddStringToObject(object, "machine", p->machine);
  cJSON_AddNumberToObject(object, "repetitions", (double)p->repetitions);
  cJSON_AddNumberToObject(object, "link_bytes_per_second", (double)p->link_bytes_per_s);
  char *line = cJSON_PrintUnformatted(object);
  cJSON_Delete(object);
  return line;
}

/* Reads the lines that are whole; one cut off by whatever ended the run before is measured again. *out_kept is where
 * they end. */
static planc_status read_pieces(profiling *p, const char *head, char *text, size_t length, size_t *out_kept) {
  *out_kept = 0;
  for (char *line = text, *end; (end = memchr(line, '\n', length - (size_t)(line - text))); line = end + 1) {
    *end = 0;
    if (line == text) {
      if (strcmp(line, head) != 0)
        return planc_error(PLANC_STALE,
                           "%s: left by a run on another machine, graph or with other options; remove it to start anew",
                           p->part);
    } else {
      cJSON *piece = cJSON_Parse(line);
      if (!piece) return planc_error(PLANC_BAD_INPUT, "%s: damaged; remove it to start anew", p->part);
      cJSON_AddItemToArray(p->pieces, piece);
    }
    *out_kept = (size_t)(end + 1 - text);
  }
  return NULL;
}

static planc_status open_part(profiling *p, const char *head) {
  enum { LIMIT = 1 << 30 };
  char *text;
  size_t length, kept = 0;
  if (access(p->part, F_OK) == 0) {
    PLANC_TRY(planc_file_read(p->part, LIMIT, &text, &length));
    planc_status status = read_pieces(p, head, text, length, &kept);
    free(text);
    PLANC_TRY(status);
    if (truncate(p->part, (off_t)kept) != 0) return planc_error(PLANC_IO, "%s: %s", p->part, strerror(errno));
  }
  p->file = fopen(p->part, "a");
  if (!p->file || (kept == 0 && fprintf(p->file, "%s\n", head) < 0) || fflush(p->file) != 0)
    return planc_error(PLANC_IO, "%s: %s", p->part, strerror(errno));
  int32_t found = cJSON_GetArraySize(p->pieces);
  if (found > 0) fprintf(stderr, "planrun: note: going on from %s, which has %d measured parts\n", p->part, found);
  return NULL;
}

static planc_status keep(profiling *p, cJSON *piece) {
  char *line = cJSON_PrintUnformatted(piece);
  if (!piece || !line || !cJSON_AddItemToArray(p->pieces, piece)) {
    cJSON_Delete(piece);
    cJSON_free(line);
    return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  }
  bool written = fprintf(p->file, "%s\n", line) > 0 && fflush(p->file) == 0;
  cJSON_free(line);
  return written ? NULL : planc_error(PLANC_IO, "%s: %s", p->part, strerror(errno));
}

static const cJSON *find_ops(const profiling *p, int64_t load_ppm, int64_t batch) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, p->pieces) {
    if (planrt_piece_is_of_ops(piece, load_ppm, batch)) return piece;
  }
  return NULL;
}

static bool has_links(const profiling *p) {
  const cJSON *piece;
  cJSON_ArrayForEach(piece, p->pieces) {
    if (planrt_piece_is_of_links(piece)) return true;
  }
  return false;
}

/* --- Measuring -------------------------------------------------------------------------------------------------- */

static void show(void *user, int32_t done, int32_t of) {
  planc_progress(stderr, "%s: iteration %d of %d", ((const profiling *)user)->doing, done + 1, of);
}

static planc_status measure_ops(profiling *p, int64_t batch, planrt_op_times *times) {
  planrt_op_options how = {.backend = &planrt_host_backend,
                           .graph = p->graph,
                           .batch = batch,
                           .repetitions = (int32_t)p->repetitions,
                           .stop = &interrupted,
                           .progress = show,
                           .user = p};
  return planrt_measure_ops(&how, times);
}

static planc_status measure_batch(profiling *p, int64_t load_ppm, int64_t batch) {
  planrt_background *background;
  planrt_op_times times = {0};
  snprintf(p->doing, sizeof p->doing, "batch %lld, load %lld %%", (long long)batch, (long long)(load_ppm / PERCENT));
  PLANC_TRY(planrt_background_load(load_ppm, &background));
  planc_status status = measure_ops(p, batch, &times);
  planc_status_free(planrt_background_stop(background));
  if (!status && !interrupted) status = keep(p, planrt_piece_of_ops(p->graph, load_ppm, batch, &times));
  VEC_FREE(&times);
  return status;
}

/* How much longer the ops of the smallest batch take while a copy runs. */
static planc_status measure_slowdown(profiling *p, int64_t batch, int64_t *out_ppm) {
  planrt_background *background;
  planrt_op_times times = {0};
  snprintf(p->doing, sizeof p->doing, "ops beside copies");
  PLANC_TRY(planrt_background_copy(&planrt_host_backend, PLANRT_D2H, p->link_bytes_per_s, &background));
  planc_status status = measure_ops(p, batch, &times);
  planc_status stopped = planrt_background_stop(background);
  double beside = 0, alone = planrt_piece_total_ns(find_ops(p, 0, batch));
  for (int64_t i = 0; i < times.len; i++) beside += (double)times.data[i].time.median_ns;
  *out_ppm = beside > alone && alone > 0 ? llround(1e6 * (beside / alone - 1)) : 0;
  VEC_FREE(&times);
  if (status) planc_status_free(stopped);
  return status ? status : stopped;
}

static planc_status measure_links(profiling *p) {
  int64_t slowdown_ppm = 0, smallest = p->batches[0];
  for (int32_t i = 1; i < p->n_batches; i++)
    if (p->batches[i] < smallest) smallest = p->batches[i];
  planrt_link_times times;
  planc_progress(stderr, "links");
  PLANC_TRY(planrt_measure_links(&planrt_host_backend, p->link_bytes_per_s, &times));
  PLANC_TRY(measure_slowdown(p, smallest, &slowdown_ppm));
  return interrupted ? NULL : keep(p, planrt_piece_of_links(&times, slowdown_ppm));
}

static planc_status measure_all(profiling *p) {
  for (int32_t l = 0; l < p->n_loads; l++)
    for (int32_t b = 0; b < p->n_batches && !interrupted; b++)
      if (!find_ops(p, p->loads[l], p->batches[b])) PLANC_TRY(measure_batch(p, p->loads[l], p->batches[b]));
  return interrupted || has_links(p) ? NULL : measure_links(p);
}

/* --- The profile ------------------------------------------------------------------------------------------------ */

static planc_status write_profile(profiling *p) {
  planrt_profile_head head = {
      .name = p->name, .machine = p->machine, .memory_bytes = sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE)};
  cJSON *tree;
  int64_t most = 0;
  for (int32_t i = 0; i < p->n_batches; i++)
    if (p->batches[i] > most) most = p->batches[i];
  PLANC_TRY(planrt_profile_compose(&head, p->graph, p->pieces, &tree));
  planc_status status = planrt_profile_add_workspaces(tree, &planrt_host_backend, p->graph, most);
  char *text = status ? NULL : cJSON_Print(tree);
  cJSON_Delete(tree);
  PLANC_TRY(status);
  if (!text) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  size_t length = strlen(text);
  /* Whatever a damaged file of pieces has brought in, only a profile that planc can read leaves. */
  planc_profile *read = NULL;
  status = planc_profile_parse(text, length, p->output, &read);
  planc_profile_free(read);
  if (!status) status = planc_file_write(p->output, text, length);
  free(text);
  if (!status && unlink(p->part) != 0) status = planc_error(PLANC_IO, "%s: %s", p->part, strerror(errno));
  return status;
}

static planc_status profile(profiling *p, const planc_arguments *arguments) {
  PLANC_TRY(read_arguments(p, arguments));
  PLANC_TRY(read_graph(p, arguments));
  char *head = describe_pieces(p);
  p->pieces = cJSON_CreateArray();
  if (!head || !p->pieces) {
    cJSON_free(head);
    return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  }
  planc_status status = open_part(p, head);
  cJSON_free(head);
  if (!status) status = measure_all(p);
  planc_progress_end(stderr);
  PLANC_TRY(status);
  if (!interrupted) return write_profile(p);
  fprintf(stderr, "planrun: interrupted; the same command goes on from %s\n", p->part);
  return NULL;
}

static planc_status run(const planc_arguments *arguments) {
  profiling p = {0};
  struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  planc_status status = profile(&p, arguments);
  if (p.file) fclose(p.file);
  cJSON_Delete(p.pieces);
  planc_graph_free(p.graph);
  free(p.part);
  if (!status && interrupted) raise(interrupted);
  return status;
}

const planrt_subcommand planrt_cmd_profile = {
    {"profile", "GRAPH", "measure ops, links and launches on this machine", options, 1, 1}, run};
