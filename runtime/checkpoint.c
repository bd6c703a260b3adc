/* Checkpoints: the persistent buffers at an iteration's boundary, where the epilogue has brought them home.
 *
 * A file is one line of JSON, the buffers' bytes in the line's order, all of them for each replica, and the CRC-32 of
 * both in eight hex digits. What it means depends on graph, batch, iterations and replicas only, so another plan may go
 * on with it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/session.h"
#include "runtime/split.h"
#include "util/file.h"
#include "util/input.h"
#include "util/json_tree.h"
#include "util/math.h"
#include "util/vec.h"

#define FORMAT "checkpoint/2"
#define HEAD "{\"planrun\":\"checkpoint/" /* what every format begins with */
enum { TRAILER = 8, CHUNK = 1 << 20 };

typedef VEC(pl_file_part) part_list;

static planc_status describe(const planrt_session *session, char **out);
static planc_status save(const planrt_session *session, const char *path, const char *line, part_list *parts);

planc_status planrt_save(const planrt_session *session, const char *path) {
  char *line;
  part_list parts = {0};
  PLANC_TRY(describe(session, &line));
  planc_status status = save(session, path, line, &parts);
  VEC_FREE(&parts);
  free(line);
  return status;
}

/* --- What a session's checkpoint begins with -------------------------------------------------------------------- */

/* 64-bit numbers are strings: JSON's numbers are doubles to many readers. */
enum { MOST_DIGITS = 24 };

static void add_u64(cJSON *object, const char *key, uint64_t value) {
  char text[MOST_DIGITS];
  snprintf(text, sizeof text, "%" PRIu64, value);
  pl_json_add_string(object, key, text);
}

/* A graph's canonical text without what is not compared (planc_graph_equal): equal texts, equal content. */
static planc_status add_graph(cJSON *object, const planc_graph *graph) {
  planc_graph content = *graph;
  content.name = "graph";
  content.batch = 0;
  content.device = content.optimizer = content.policy = content.origin = NULL;
  char *text;
  size_t length;
  PLANC_TRY(planc_graph_print(&content, &text, &length));
  pl_json_add_string(object, "graph", text);
  free(text);
  return NULL;
}

static planc_status describe_job(const planrt_session *session, int32_t j, cJSON *out) {
  const planc_job *job = &session->trace->jobs[j];
  PLANC_TRY(add_graph(out, job->graph));
  add_u64(out, "batch", (uint64_t)job->batch);
  add_u64(out, "iterations_per_period", (uint64_t)job->iterations);
  if (job->replicas > 1) add_u64(out, "replicas", (uint64_t)job->replicas);
  cJSON *buffers = pl_json_add_array(out, "buffers");
  for (int32_t s = 0; s < job->graph->n_storages; s++) {
    if (!rt_home(session, 0, j, s)) continue;
    cJSON *buffer = cJSON_CreateObject();
    pl_json_add_string(buffer, "name", job->graph->tensors[job->graph->storages[s].tensor].name);
    add_u64(buffer, "bytes", (uint64_t)planc_law_at(job->graph->storages[s].bytes, job->batch));
    pl_json_add(buffers, NULL, buffer);
  }
  return NULL;
}

/* Whether samples are the user's. */
static bool has_feed(const planrt_session *session) {
  return session->options.feed != NULL;
}

/* Which jobs have failed: of those there is what they had when the run began in which they did. */
static void describe_failures(const planrt_session *session, cJSON *object) {
  cJSON *failures = NULL;
  planrt_failure failure;
  for (int32_t j = 0; j < session->trace->n_jobs; j++) {
    if (!planrt_failed(session, j, &failure)) continue;
    if (!failures) failures = pl_json_add_array(object, "failed");
    cJSON *job = pl_json_add_object(failures, NULL);
    add_u64(job, "job", (uint64_t)j);
    add_u64(job, "iteration", (uint64_t)failure.iteration);
    pl_json_add_string(job, "why", failure.why);
  }
}

/* The line up to its newline, malloc'ed. */
static planc_status describe(const planrt_session *session, char **out) {
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planrun", FORMAT);
  pl_json_add_bool(object, "feed", has_feed(session));
  if (session->options.synthetic) pl_json_add_bool(object, "synthetic", true);
  add_u64(object, "seed", session->options.seed);
  add_u64(object, "period", (uint64_t)session->step.period);
  describe_failures(session, object);
  cJSON *jobs = pl_json_add_array(object, "jobs");
  planc_status status = NULL;
  for (int32_t j = 0; j < session->trace->n_jobs && !status; j++) {
    cJSON *job = cJSON_CreateObject();
    status = planc_context(describe_job(session, j, job), "checkpoint");
    pl_json_add(jobs, NULL, job);
  }
  size_t length;
  if (!status) status = planc_context(pl_json_print(object, PL_JSON_LINE, out, &length), "checkpoint");
  cJSON_Delete(object);
  return status;
}

/* --- Saving ----------------------------------------------------------------------------------------------------- */

static planc_status list_homes(const planrt_session *session, part_list *parts) {
  rt_homes at = {.storage = -1};
  while (rt_next_home(session, &at)) VEC_PUSH(parts, ((pl_file_part){at.home, (size_t)at.bytes}));
  return NULL;
}

static planc_status save(const planrt_session *session, const char *path, const char *line, part_list *parts) {
  VEC_PUSH(parts, ((pl_file_part){line, strlen(line)}));
  VEC_PUSH(parts, ((pl_file_part){"\n", 1}));
  PLANC_TRY(list_homes(session, parts));
  uLong sum = crc32(0, NULL, 0);
  for (int64_t i = 0; i < parts->len; i++)
    sum = crc32_z(sum, (const Bytef *)parts->data[i].data, parts->data[i].length);
  char trailer[TRAILER + 1];
  snprintf(trailer, sizeof trailer, "%08lx", sum);
  VEC_PUSH(parts, ((pl_file_part){trailer, TRAILER}));
  return pl_file_write_parts(path, parts->data, (size_t)parts->len);
}

/* --- Resuming --------------------------------------------------------------------------------------------------- */

typedef struct checkpoint {
  const char *path;
  FILE *file;
  char *line; /* malloc'ed */
  uint64_t seed, period;
  bool other_feed; /* planrt_resumed_other_feed */
  rt_failures failures;
  char chunk[CHUNK];
} checkpoint;

static planc_status open_checkpoint(checkpoint *c);
static planc_status resume(planrt_session *session, checkpoint *c);
static planc_status look_at_head(checkpoint *c);
static planc_status verify(checkpoint *c);
static planc_status read_line(const planrt_session *session, checkpoint *c);
static bool right_length(const planrt_session *session, const checkpoint *c);
static planc_status damaged(const checkpoint *c, const char *what);
static bool read_homes(const planrt_session *session, checkpoint *c);
static bool read_u64(const cJSON *object, const char *key, uint64_t *out);
static bool is_countable(const planrt_session *session, uint64_t period);
static planc_status compare_jobs(const planrt_session *session, const checkpoint *c, const cJSON *object);
static planc_status compare_ops(const planrt_session *session, const checkpoint *c, const cJSON *object);
static planc_status read_failures(const planrt_session *session, checkpoint *c, const cJSON *object);
static bool is_of_other_feed(const planrt_session *session, const cJSON *object);

planc_status planrt_resume(planrt_session *session, const char *path) {
  checkpoint *c = calloc(1, sizeof *c);
  if (!c) return planc_error(PLANC_OUT_OF_MEMORY, "checkpoint");
  c->path = path;
  planc_status status = open_checkpoint(c);
  if (!status) status = resume(session, c);
  if (c->file) fclose(c->file);
  rt_failures_close(&c->failures);
  free(c->line);
  free(c);
  return status;
}

static planc_status resume(planrt_session *session, checkpoint *c) {
  PLANC_TRY(look_at_head(c));
  PLANC_TRY(verify(c));
  PLANC_TRY(read_line(session, c));
  if (!right_length(session, c)) return damaged(c, "wrong length");
  if (!read_homes(session, c)) return damaged(c, "changed while it was read");
  session->options.seed = c->seed;
  session->step.period = (int64_t)c->period;
  session->other_feed = c->other_feed;
  rt_failures_hand_over(&c->failures, &session->failures);
  return rt_user_ask_same(session);
}

static planc_status read_line(const planrt_session *session, checkpoint *c) {
  size_t room = 0;
  rewind(c->file);
  errno = 0;
  if (getline(&c->line, &room, c->file) < 0)
    return errno == ENOMEM ? planc_error(PLANC_OUT_OF_MEMORY, "%s", c->path) : damaged(c, "line 1");
  cJSON *object;
  planc_status status = pl_json_tree(c->line, strlen(c->line), NULL, &object);
  if (planc_status_code(status) == PLANC_OUT_OF_MEMORY) return planc_context(status, "%s", c->path);
  planc_status_free(status);
  const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "planrun"));
  status = NULL;
  if (!format || strncmp(format, "checkpoint/", 11) != 0 || !read_u64(object, "seed", &c->seed) ||
      !read_u64(object, "period", &c->period) || !is_countable(session, c->period))
    status = damaged(c, "line 1");
  else if (strcmp(format, FORMAT) != 0)
    status = planc_error(PLANC_BAD_INPUT, "%s: %s is not known; this planrun reads " FORMAT, c->path, format);
  else
    status = compare_jobs(session, c, object);
  if (!status) status = compare_ops(session, c, object);
  if (!status) status = read_failures(session, c, object);
  c->other_feed = is_of_other_feed(session, object);
  cJSON_Delete(object);
  return status;
}

bool planrt_resumed_other_feed(const planrt_session *session) {
  return session->other_feed;
}

static planc_status damaged(const checkpoint *c, const char *what) {
  return planc_error(PLANC_BAD_INPUT, "%s: %s: not a checkpoint, or a damaged one", c->path, what);
}

/* What is none, however long, is not read to its end to find its sum. */
static planc_status look_at_head(checkpoint *c) {
  char head[sizeof HEAD - 1];
  size_t got = fread(head, 1, sizeof head, c->file);
  if (ferror(c->file)) return planc_error(PLANC_BAD_INPUT, "%s: %s", c->path, strerror(errno));
  rewind(c->file);
  return got == sizeof head && memcmp(head, HEAD, sizeof head) == 0 ? NULL : damaged(c, "line 1");
}

/* Goes through the whole file once: nothing in it is believed before its sum is right. */
static planc_status verify(checkpoint *c) {
  uLong sum = crc32(0, NULL, 0);
  size_t kept = 0;
  for (;;) {
    size_t got = fread(c->chunk + kept, 1, CHUNK - kept, c->file);
    if (ferror(c->file)) return planc_error(PLANC_BAD_INPUT, "%s: %s", c->path, strerror(errno));
    kept += got;
    if (kept < TRAILER) return damaged(c, "cut off");
    if (got == 0) break;
    sum = crc32_z(sum, (const Bytef *)c->chunk, kept - TRAILER);
    memmove(c->chunk, c->chunk + kept - TRAILER, TRAILER);
    kept = TRAILER;
  }
  char trailer[TRAILER + 1];
  snprintf(trailer, sizeof trailer, "%08lx", sum);
  if (memcmp(trailer, c->chunk, TRAILER) != 0) return damaged(c, "wrong checksum");
  return NULL;
}

static bool read_u64(const cJSON *object, const char *key, uint64_t *out) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  if (!text || !*text || strspn(text, "0123456789") != strlen(text)) return false;
  errno = 0;
  *out = strtoull(text, NULL, 10);
  return errno == 0;
}

/* How many samples each job has had by then is counted in 64 bits. */
static bool is_countable(const planrt_session *session, uint64_t period) {
  for (int32_t j = 0; j < session->trace->n_jobs; j++) {
    const planc_job *job = &session->trace->jobs[j];
    int64_t iterations, samples;
    if (period > INT64_MAX / 2 || pl_mul_overflow((int64_t)period, job->iterations, &iterations) ||
        pl_mul_overflow(iterations, planc_job_whole_batch(job), &samples) || samples > INT64_MAX / 2)
      return false;
  }
  return true;
}

/* Not every checkpoint says whose its samples were. */
static bool is_of_other_feed(const planrt_session *session, const cJSON *object) {
  const cJSON *feed = cJSON_GetObjectItemCaseSensitive(object, "feed");
  return cJSON_IsBool(feed) && (bool)cJSON_IsTrue(feed) != has_feed(session);
}

/* A failure of a job that the session has. */
static planc_status read_failure(checkpoint *c, const cJSON *failure) {
  uint64_t job, iteration;
  const char *why = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(failure, "why"));
  if (!why || !read_u64(failure, "job", &job) || job >= (uint64_t)c->failures.n_jobs || c->failures.n_jobs == 1 ||
      !read_u64(failure, "iteration", &iteration) || iteration > INT64_MAX)
    return damaged(c, "line 1");
  return rt_failures_take(&c->failures, (int32_t)job, (int64_t)iteration, planc_error(PLANC_JOB_FAILED, "%s", why));
}

static planc_status read_failures(const planrt_session *session, checkpoint *c, const cJSON *object) {
  const cJSON *failure, *failures = cJSON_GetObjectItemCaseSensitive(object, "failed");
  PLANC_TRY(rt_failures_open(session->trace->n_jobs, &c->failures));
  cJSON_ArrayForEach(failure, failures) {
    PLANC_TRY(read_failure(c, failure));
  }
  return NULL;
}

/* One replica is not written, and the batch is that of each. */
static bool read_split(const cJSON *job, rt_split *out) {
  *out = (rt_split){.replicas = 1};
  if (cJSON_GetObjectItemCaseSensitive(job, "replicas") && !read_u64(job, "replicas", &out->replicas)) return false;
  if (!read_u64(job, "batch", &out->batch) || !read_u64(job, "iterations_per_period", &out->iterations)) return false;
  if (out->replicas == 0 || out->batch > UINT64_MAX / out->replicas) return false;
  out->batch *= out->replicas;
  return true;
}

static bool has_same_graph(const cJSON *a, const cJSON *b) {
  return cJSON_Compare(cJSON_GetObjectItemCaseSensitive(a, "graph"), cJSON_GetObjectItemCaseSensitive(b, "graph"),
                       true);
}

/* Says by what the jobs of a checkpoint differ from the session's: of another graph numbers tell nothing. */
static planc_status tell_difference(const checkpoint *c, const cJSON *own, const cJSON *theirs) {
  int32_t n = cJSON_GetArraySize(own);
  bool same = true;
  if (n != cJSON_GetArraySize(theirs)) return planc_error(PLANC_STALE, "%s: made with another number of jobs", c->path);
  for (int32_t j = 0; j < n && same; j++)
    same = has_same_graph(cJSON_GetArrayItem(own, j), cJSON_GetArrayItem(theirs, j));
  for (int32_t j = 0; j < n && same; j++) {
    rt_split a, b;
    if (!read_split(cJSON_GetArrayItem(own, j), &a) || !read_split(cJSON_GetArrayItem(theirs, j), &b))
      return damaged(c, "line 1");
    PLANC_TRY(planc_context(rt_split_tell(&a, &b), "%s", c->path));
  }
  return planc_error(PLANC_STALE, "%s: made from another graph", c->path);
}

/* What stand-ins have left behind are hashes, and what others have trained is no work of theirs. */
static planc_status compare_ops(const planrt_session *session, const checkpoint *c, const cJSON *object) {
  bool synthetic = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "synthetic"));
  if (synthetic == session->options.synthetic) return NULL;
  return planc_error(PLANC_STALE,
                     synthetic ? "%s: saved by a run of stand-ins, which train nothing: only a run with --synthetic "
                                 "goes on from it"
                               : "%s: saved by a run without --synthetic: one with stand-ins cannot go on from it",
                     c->path);
}

/* The jobs must be those that this session would write. */
static planc_status compare_jobs(const planrt_session *session, const checkpoint *c, const cJSON *object) {
  char *own_line;
  PLANC_TRY(describe(session, &own_line));
  cJSON *own;
  planc_status status = pl_json_tree(own_line, strlen(own_line), NULL, &own);
  free(own_line);
  PLANC_TRY(planc_context(status, "checkpoint"));
  const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(own, "jobs");
  const cJSON *theirs = cJSON_GetObjectItemCaseSensitive(object, "jobs");
  status = cJSON_Compare(jobs, theirs, true) ? NULL : tell_difference(c, jobs, theirs);
  cJSON_Delete(own);
  return status;
}

static bool read_homes(const planrt_session *session, checkpoint *c) {
  rt_homes at = {.storage = -1};
  while (rt_next_home(session, &at))
    if (fread(at.home, 1, (size_t)at.bytes, c->file) != (size_t)at.bytes) return false;
  return true;
}

/* Whether the file ends where the session's buffers do: asked before any of them is overwritten. */
static bool right_length(const planrt_session *session, const checkpoint *c) {
  int64_t bytes = (int64_t)strlen(c->line) + TRAILER;
  rt_homes homes = {.storage = -1};
  while (rt_next_home(session, &homes)) bytes = pl_add_saturate(bytes, homes.bytes);
  off_t at = ftello(c->file);
  return fseeko(c->file, 0, SEEK_END) == 0 && ftello(c->file) == bytes && fseeko(c->file, at, SEEK_SET) == 0;
}

static planc_status open_checkpoint(checkpoint *c) {
  int file;
  PLANC_TRY(pl_input_open(c->path, false, &file));
  c->file = fdopen(file, "rb");
  if (c->file) return NULL;
  close(file);
  return planc_error(PLANC_OUT_OF_MEMORY, "checkpoint");
}
