/* Checkpoints: what persists of every job that the training has had, at a period's boundary, where the epilogue has
 * brought it home, or as a job left it.
 *
 * A file is one line of JSON, which has a record of each job by its number (record.h), the values in the line's order,
 * of each job all of them for each replica, and the CRC-32 of both in eight hex digits. What it means depends on
 * graphs, batches and replicas only, so another plan may go on with it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "runtime/record.h"
#include "util/file.h"
#include "util/input.h"
#include "util/math.h"
#include "util/vec.h"

#define FORMAT "checkpoint/3"
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

/* --- What a session's checkpoint begins with ---------------------------------------------------------------------- */

/* Of a job that has failed there is what it had when the run began in which it did. */
static planc_status describe_job(const planrt_session *session, int32_t number, cJSON *out) {
  int32_t job = rt_job_with(session, number);
  rt_record record = {0};
  if (job < 0) {
    rt_record_print(rt_job_away(session, number)->record, out);
    return NULL;
  }
  planc_status status = rt_record_make(session, job, &record);
  if (!status) rt_record_print(&record, out);
  rt_record_free(&record);
  return status;
}

/* The line up to its newline, malloc'ed. */
static planc_status describe(const planrt_session *session, char **out) {
  cJSON *object = cJSON_CreateObject();
  pl_json_add_string(object, "planrun", FORMAT);
  if (session->options.synthetic) pl_json_add_bool(object, "synthetic", true);
  rt_json_add_u64(object, "seed", session->options.seed);
  rt_json_add_u64(object, "period", (uint64_t)session->step.period);
  cJSON *jobs = pl_json_add_array(object, "jobs");
  planc_status status = NULL;
  for (int32_t n = 0; n < rt_jobs_known(session) && !status; n++) {
    cJSON *job = cJSON_CreateObject();
    status = planc_context(describe_job(session, n, job), "checkpoint");
    pl_json_add(jobs, NULL, job);
  }
  size_t length;
  if (!status) status = planc_context(pl_json_print(object, PL_JSON_LINE, out, &length), "checkpoint");
  cJSON_Delete(object);
  return status;
}

/* --- Saving ------------------------------------------------------------------------------------------------------- */

static planc_status list_values(const planrt_session *session, part_list *parts) {
  for (int32_t n = 0; n < rt_jobs_known(session); n++) {
    int32_t job = rt_job_with(session, n);
    const rt_away *away = job < 0 ? rt_job_away(session, n) : NULL;
    rt_homes at = {.storage = -1};
    if (away) VEC_PUSH(parts, ((pl_file_part){away->values, (size_t)away->record->bytes}));
    while (job >= 0 && rt_next_home(session, job, &at)) VEC_PUSH(parts, ((pl_file_part){at.home, (size_t)at.bytes}));
  }
  return NULL;
}

static planc_status save(const planrt_session *session, const char *path, const char *line, part_list *parts) {
  VEC_PUSH(parts, ((pl_file_part){line, strlen(line)}));
  VEC_PUSH(parts, ((pl_file_part){"\n", 1}));
  PLANC_TRY(list_values(session, parts));
  uLong sum = crc32(0, NULL, 0);
  for (int64_t i = 0; i < parts->len; i++)
    sum = crc32_z(sum, (const Bytef *)parts->data[i].data, parts->data[i].length);
  char trailer[TRAILER + 1];
  snprintf(trailer, sizeof trailer, "%08lx", sum);
  VEC_PUSH(parts, ((pl_file_part){trailer, TRAILER}));
  return pl_file_write_parts(path, parts->data, (size_t)parts->len);
}

/* --- Resuming ----------------------------------------------------------------------------------------------------- */

typedef struct checkpoint {
  const char *path;
  FILE *file;
  char *line; /* malloc'ed */
  uint64_t seed, period;
  int32_t n;
  rt_away *jobs;    /* by number: records, and values of those that the plan does not have */
  int32_t *number;  /* by job of the plan: which it is, RT_JOINS where the file does not have it */
  int64_t *ahead;   /* by job of the plan */
  rt_away *outside; /* room for those that are away from now on */
  pl_arena memory;
  char chunk[CHUNK];
} checkpoint;

static planc_status open_checkpoint(checkpoint *c);
static planc_status resume(planrt_session *session, checkpoint *c);
static void close_checkpoint(checkpoint *c);
static planc_status look_at_head(checkpoint *c);
static planc_status verify(checkpoint *c);
static planc_status read_line(const planrt_session *session, checkpoint *c);
static bool right_length(const checkpoint *c);
static planc_status make_room(const planrt_session *session, checkpoint *c);
static planc_status damaged(const checkpoint *c, const char *what);
static bool read_values(const planrt_session *session, checkpoint *c);
static planc_status settle(planrt_session *session, checkpoint *c);
static planc_status read_object(const planrt_session *session, checkpoint *c, const cJSON *object);
static planc_status read_jobs(checkpoint *c, const cJSON *jobs);
static planc_status match_jobs(const planrt_session *session, checkpoint *c);
static planc_status compare_ops(const planrt_session *session, const checkpoint *c, const cJSON *object);

planc_status planrt_resume(planrt_session *session, const char *path) {
  checkpoint *c = calloc(1, sizeof *c);
  if (!c) return planc_error(PLANC_OUT_OF_MEMORY, "checkpoint");
  c->path = path;
  planc_status status = open_checkpoint(c);
  if (!status) status = resume(session, c);
  close_checkpoint(c);
  return status;
}

static void close_checkpoint(checkpoint *c) {
  if (c->file) fclose(c->file);
  for (int32_t n = 0; c->jobs && n < c->n; n++) rt_away_free(&c->jobs[n]);
  free(c->outside);
  free(c->line);
  pl_arena_free(&c->memory);
  free(c);
}

static planc_status resume(planrt_session *session, checkpoint *c) {
  PLANC_TRY(look_at_head(c));
  PLANC_TRY(verify(c));
  PLANC_TRY(read_line(session, c));
  if (!right_length(c)) return damaged(c, "wrong length");
  PLANC_TRY(make_room(session, c));
  if (!read_values(session, c)) return damaged(c, "changed while it was read");
  session->options.seed = c->seed;
  session->step.period = session->resumed_period = (int64_t)c->period;
  PLANC_TRY(settle(session, c));
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
  status = read_object(session, c, object);
  cJSON_Delete(object);
  return status;
}

static planc_status read_object(const planrt_session *session, checkpoint *c, const cJSON *object) {
  const char *format = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "planrun"));
  if (!format || strncmp(format, "checkpoint/", 11) != 0) return damaged(c, "line 1");
  if (strcmp(format, FORMAT) != 0)
    return planc_error(PLANC_BAD_INPUT, "%s: %s is not known; this planrun reads " FORMAT, c->path, format);
  if (!rt_json_u64(object, "seed", &c->seed) || !rt_json_u64(object, "period", &c->period) || c->period > INT64_MAX)
    return damaged(c, "line 1");
  PLANC_TRY(read_jobs(c, cJSON_GetObjectItemCaseSensitive(object, "jobs")));
  PLANC_TRY(planc_context(match_jobs(session, c), "%s", c->path));
  PLANC_TRY(compare_ops(session, c, object));
  return NULL;
}

planrt_samples planrt_resumed_samples(const planrt_session *session, int32_t job) {
  return session->resumed_samples[job];
}

bool planrt_resumed_in_other_rounds(const planrt_session *session, int32_t job) {
  return session->resumed_other_rounds[job];
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

/* What stand-ins have left behind are hashes, and what others have trained is no work of theirs. */
static planc_status compare_ops(const planrt_session *session, const checkpoint *c, const cJSON *object) {
  bool synthetic = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "synthetic"));
  if (synthetic == session->options.synthetic) return NULL;
  return planc_error(PLANC_STALE,
                     synthetic ? "%s: saved by a run of stand-ins, which train nothing: only such a run goes on from it"
                               : "%s: saved by a run of real ops: one of stand-ins cannot go on from it",
                     c->path);
}

/* --- Whose it is -------------------------------------------------------------------------------------------------- */

static planc_status read_jobs(checkpoint *c, const cJSON *jobs) {
  const cJSON *job;
  bool whole = true;
  int32_t n = cJSON_GetArraySize(jobs);
  PLANC_TRY(PL_NEW(&c->memory, &c->jobs, n));
  cJSON_ArrayForEach(job, jobs) {
    rt_away *to = &c->jobs[c->n];
    to->number = c->n++;
    to->record = calloc(1, sizeof *to->record);
    if (!to->record) return planc_error(PLANC_OUT_OF_MEMORY, "checkpoint");
    PLANC_TRY(planc_context(rt_record_read(job, to->record, &whole), "%s", c->path));
    if (!whole) return damaged(c, "line 1");
  }
  return n > 0 ? NULL : damaged(c, "line 1");
}

/* A job's values are those that this session would write. */
static planc_status compare_values(const planrt_session *session, const checkpoint *c, int32_t job) {
  rt_record own = {0};
  planc_status status = rt_record_make(session, job, &own);
  bool same = !status && rt_record_has_same_values(&own, c->jobs[c->number[job]].record);
  rt_record_free(&own);
  return status || same ? status : planc_error(PLANC_BAD_INPUT, "line 1: not a checkpoint, or a damaged one");
}

/* How many samples each job has had by then is counted in 64 bits. */
static bool is_countable(const planrt_session *session, const checkpoint *c, int32_t job) {
  const planc_job *of = &session->trace->jobs[job];
  int64_t done = c->number[job] == RT_JOINS ? 0 : c->jobs[c->number[job]].record->iterations;
  return rt_job_ahead((int64_t)c->period, of->iterations, planc_job_whole_batch(of), done, &c->ahead[job]);
}

static planc_status match_jobs(const planrt_session *session, checkpoint *c) {
  int32_t n = session->trace->n_jobs;
  rt_identity *known, *jobs;
  PLANC_TRY(PL_NEW(&c->memory, &known, c->n));
  PLANC_TRY(PL_NEW(&c->memory, &jobs, n));
  PLANC_TRY(PL_NEW(&c->memory, &c->number, n));
  PLANC_TRY(PL_NEW(&c->memory, &c->ahead, n));
  for (int32_t k = 0; k < c->n; k++) known[k] = c->jobs[k].record->who;
  for (int32_t j = 0; j < n; j++) PLANC_TRY(rt_identify(&c->memory, &session->trace->jobs[j], &jobs[j]));
  PLANC_TRY(rt_match(known, c->n, jobs, n, true, c->number));
  for (int32_t j = 0; j < n; j++) {
    if (!is_countable(session, c, j)) return planc_error(PLANC_BAD_INPUT, "line 1: not a checkpoint, or a damaged one");
    if (c->number[j] != RT_JOINS) PLANC_TRY(compare_values(session, c, j));
  }
  return NULL;
}

/* --- What it has -------------------------------------------------------------------------------------------------- */

/* Whether the file ends where the jobs' values do: asked before any of the session's is overwritten. */
static bool right_length(const checkpoint *c) {
  int64_t bytes = (int64_t)strlen(c->line) + TRAILER;
  for (int32_t n = 0; n < c->n; n++) bytes = pl_add_saturate(bytes, c->jobs[n].record->bytes);
  off_t at = ftello(c->file);
  return fseeko(c->file, 0, SEEK_END) == 0 && ftello(c->file) == bytes && fseeko(c->file, at, SEEK_SET) == 0;
}

/* The job of the plan that has a number in the file, -1 where none has. */
static int32_t job_with(const planrt_session *session, const checkpoint *c, int32_t number) {
  for (int32_t j = 0; j < session->trace->n_jobs; j++)
    if (c->number[j] == number) return j;
  return -1;
}

/* All that is to be allocated is, before anything of the session changes. */
static planc_status make_room(const planrt_session *session, checkpoint *c) {
  c->outside = calloc((size_t)c->n + 1, sizeof *c->outside);
  if (!c->outside) return planc_error(PLANC_OUT_OF_MEMORY, "checkpoint");
  for (int32_t n = 0; n < c->n; n++) {
    if (job_with(session, c, n) >= 0) continue;
    c->jobs[n].values = malloc((size_t)c->jobs[n].record->bytes + 1);
    if (!c->jobs[n].values) return planc_error(PLANC_OUT_OF_MEMORY, "%s: values of other jobs", c->path);
  }
  return NULL;
}

static bool read_bytes(const checkpoint *c, char *to, int64_t bytes) {
  return fread(to, 1, (size_t)bytes, c->file) == (size_t)bytes;
}

static bool read_values(const planrt_session *session, checkpoint *c) {
  for (int32_t n = 0; n < c->n; n++) {
    int32_t job = job_with(session, c, n);
    rt_homes at = {.storage = -1};
    if (job < 0 && !read_bytes(c, c->jobs[n].values, c->jobs[n].record->bytes)) return false;
    while (job >= 0 && rt_next_home(session, job, &at))
      if (!read_bytes(c, at.home, at.bytes)) return false;
  }
  return true;
}

/* A job of the plan is where the file has it, or at its beginning. */
static planc_status settle_job(planrt_session *session, const checkpoint *c, int32_t job, int32_t *joined) {
  bool joins = c->number[job] == RT_JOINS;
  session->ahead[job] = c->ahead[job];
  session->numbers[job] = joins ? c->n + (*joined)++ : c->number[job];
  session->resumed_samples[job] = PLANRT_SAMPLES_UNKNOWN;
  session->resumed_other_rounds[job] = false;
  if (joins) return rt_init_job(session, job);
  const rt_record *record = c->jobs[c->number[job]].record;
  session->resumed_samples[job] = record->samples;
  session->resumed_other_rounds[job] = rt_record_has_other_rounds(record, &session->trace->jobs[job]);
  if (record->why) rt_failures_set(&session->failures, job, record->failed_at, record->why);
  if (session->names[job] || !record->who.name) return NULL;
  return rt_keep_text(&session->memory, record->who.name, &session->names[job]);
}

/* The training has the file's jobs: those that the plan does not have are away. */
static planc_status settle(planrt_session *session, checkpoint *c) {
  int32_t joined = 0;
  rt_jobs_close(session);
  session->n_before = c->n;
  session->away = c->outside;
  c->outside = NULL;
  for (int32_t n = 0; n < c->n; n++) {
    if (job_with(session, c, n) >= 0) continue;
    session->away[session->n_away++] = c->jobs[n];
    c->jobs[n] = (rt_away){0};
  }
  rt_failures_forget(&session->failures);
  session->failures.alone = rt_jobs_known(session) == 1;
  for (int32_t j = 0; j < session->trace->n_jobs; j++) PLANC_TRY(settle_job(session, c, j, &joined));
  return NULL;
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

static planc_status open_checkpoint(checkpoint *c) {
  int file;
  PLANC_TRY(pl_input_open(c->path, false, &file));
  c->file = fdopen(file, "rb");
  if (c->file) return NULL;
  close(file);
  return planc_error(PLANC_OUT_OF_MEMORY, "checkpoint");
}
