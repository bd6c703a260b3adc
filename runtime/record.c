/* Records of jobs (record.h). */
#include "runtime/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/math.h"

static planrt_samples samples_of(const planrt_session *session, int32_t job);
static planc_status add_values(const planrt_session *session, int32_t job, rt_record *out);
static planc_status add_failure(const planrt_session *session, int32_t job, rt_record *out);

planc_status rt_record_make(const planrt_session *session, int32_t job, rt_record *out) {
  *out = (rt_record){.iterations = rt_first_iteration(session, job, session->step.period)};
  out->samples = samples_of(session, job);
  out->n_rounds = session->trace->jobs[job].n_rounds;
  out->first_round = session->trace->jobs[job].rounds[0];
  PLANC_TRY(rt_identify(&out->memory, &session->trace->jobs[job], &out->who));
  if (session->names[job]) PLANC_TRY(rt_keep_text(&out->memory, session->names[job], &out->who.name));
  PLANC_TRY(add_failure(session, job, out));
  return add_values(session, job, out);
}

void rt_record_free(rt_record *record) {
  pl_arena_free(&record->memory);
  *record = (rt_record){0};
}

/* --- Who it is ---------------------------------------------------------------------------------------------------- */

planc_status rt_keep_text(pl_arena *arena, const char *text, const char **out) {
  return pl_arena_strndup(arena, text, strlen(text), out);
}

/* A graph's canonical text without what is not compared (planc_graph_equal): equal texts, equal content. */
static planc_status print_content(pl_arena *arena, const planc_graph *graph, const char **out) {
  planc_graph content = *graph;
  content.name = "graph";
  content.batch = 0;
  content.device = content.optimizer = content.policy = content.origin = NULL;
  char *text;
  size_t length;
  PLANC_TRY(planc_graph_print(&content, &text, &length));
  planc_status status = pl_arena_strndup(arena, text, length, out);
  free(text);
  return status;
}

planc_status rt_identify(pl_arena *arena, const planc_job *job, rt_identity *out) {
  *out = (rt_identity){
      .split = {.replicas = (uint64_t)planc_job_replicas(job), .batch = (uint64_t)planc_job_whole_batch(job)}};
  if (job->name) PLANC_TRY(rt_keep_text(arena, job->name, &out->name));
  PLANC_TRY(rt_keep_text(arena, job->graph->name, &out->graph));
  return print_content(arena, job->graph, &out->content);
}

/* --- What it has -------------------------------------------------------------------------------------------------- */

static planc_status add_failure(const planrt_session *session, int32_t job, rt_record *out) {
  planrt_failure failure;
  if (!planrt_failed(session, job, &failure)) return NULL;
  out->failed_at = failure.iteration;
  return rt_keep_text(&out->memory, failure.why, &out->why);
}

/* A session that has run nothing since it was resumed has what it was resumed with. */
static planrt_samples samples_of(const planrt_session *session, int32_t job) {
  planrt_samples resumed = session->resumed_samples[job];
  if (resumed != PLANRT_SAMPLES_UNKNOWN && session->step.period == session->resumed_period) return resumed;
  return session->options.feed && !session->has_random[job] ? PLANRT_SAMPLES_USER : PLANRT_SAMPLES_RANDOM;
}

static planc_status add_values(const planrt_session *session, int32_t job, rt_record *out) {
  const planc_job *of = &session->trace->jobs[job];
  const planc_graph *graph = of->graph;
  PLANC_TRY(PL_NEW(&out->memory, &out->values, graph->n_storages));
  for (int32_t s = 0; s < graph->n_storages; s++) {
    if (!rt_home(session, 0, job, s)) continue;
    rt_record_value *value = &out->values[out->n_values++];
    value->bytes = planc_law_at(graph->storages[s].bytes, of->batch);
    PLANC_TRY(rt_keep_text(&out->memory, graph->tensors[graph->storages[s].tensor].name, &value->name));
    out->bytes += value->bytes * planc_job_replicas(of);
  }
  return NULL;
}

bool rt_record_has_other_rounds(const rt_record *record, const planc_job *job) {
  return record->n_rounds > 0 && (record->n_rounds != job->n_rounds || record->first_round != job->rounds[0]);
}

bool rt_record_has_same_values(const rt_record *a, const rt_record *b) {
  bool same = a->n_values == b->n_values && a->bytes == b->bytes;
  for (int32_t v = 0; v < a->n_values && same; v++)
    same = a->values[v].bytes == b->values[v].bytes && strcmp(a->values[v].name, b->values[v].name) == 0;
  return same;
}

/* --- As JSON ------------------------------------------------------------------------------------------------------ */

void rt_json_add_u64(cJSON *object, const char *key, uint64_t value) {
  enum { MAX_DIGITS = 24 };
  char text[MAX_DIGITS];
  snprintf(text, sizeof text, "%" PRIu64, value);
  pl_json_add_string(object, key, text);
}

bool rt_json_u64(const cJSON *object, const char *key, uint64_t *out) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
  if (!text || !*text || strspn(text, "0123456789") != strlen(text)) return false;
  errno = 0;
  *out = strtoull(text, NULL, 10);
  return errno == 0;
}

void rt_record_print(const rt_record *record, cJSON *out) {
  if (record->who.name) pl_json_add_string(out, "name", record->who.name);
  pl_json_add_string(out, "graph", record->who.graph);
  pl_json_add_string(out, "content", record->who.content);
  rt_json_add_u64(out, "batch", record->who.split.batch);
  if (record->who.split.replicas > 1) rt_json_add_u64(out, "replicas", record->who.split.replicas);
  rt_json_add_u64(out, "iterations", (uint64_t)record->iterations);
  if (record->n_rounds > 0) {
    cJSON *rounds = pl_json_add_object(out, "rounds");
    rt_json_add_u64(rounds, "n", (uint64_t)record->n_rounds);
    rt_json_add_u64(rounds, "first", (uint64_t)record->first_round);
  }
  if (record->samples) pl_json_add_bool(out, "feed", record->samples == PLANRT_SAMPLES_USER);
  if (record->why) {
    cJSON *failed = pl_json_add_object(out, "failed");
    rt_json_add_u64(failed, "iteration", (uint64_t)record->failed_at);
    pl_json_add_string(failed, "why", record->why);
  }
  cJSON *values = pl_json_add_array(out, "values");
  for (int32_t v = 0; v < record->n_values; v++) {
    cJSON *value = pl_json_add_object(values, NULL);
    pl_json_add_string(value, "name", record->values[v].name);
    rt_json_add_u64(value, "bytes", (uint64_t)record->values[v].bytes);
  }
}

static bool read_count(const cJSON *from, const char *key, int64_t *out);
static planc_status read_text(const cJSON *from, const char *key, rt_record *record, const char **out, bool *out_whole);
static planc_status read_values(const cJSON *from, rt_record *out, bool *out_whole);
static planrt_samples read_samples(const cJSON *from);
static bool read_rounds(const cJSON *from, rt_record *out);
static planc_status read_failure(const cJSON *from, rt_record *out, bool *out_whole);
static bool read_split(const cJSON *from, rt_split *out);

planc_status rt_record_read(const cJSON *from, rt_record *out, bool *out_whole) {
  *out = (rt_record){0};
  *out_whole = read_split(from, &out->who.split) && read_count(from, "iterations", &out->iterations);
  out->samples = read_samples(from);
  *out_whole = *out_whole && read_rounds(from, out);
  if (cJSON_GetObjectItemCaseSensitive(from, "name"))
    PLANC_TRY(read_text(from, "name", out, &out->who.name, out_whole));
  PLANC_TRY(read_text(from, "graph", out, &out->who.graph, out_whole));
  PLANC_TRY(read_text(from, "content", out, &out->who.content, out_whole));
  PLANC_TRY(read_failure(from, out, out_whole));
  return *out_whole ? read_values(from, out, out_whole) : NULL;
}

/* Not every checkpoint says whose they were. */
static planrt_samples read_samples(const cJSON *from) {
  const cJSON *feed = cJSON_GetObjectItemCaseSensitive(from, "feed");
  if (!cJSON_IsBool(feed)) return PLANRT_SAMPLES_UNKNOWN;
  return cJSON_IsTrue(feed) ? PLANRT_SAMPLES_USER : PLANRT_SAMPLES_RANDOM;
}

static bool read_rounds(const cJSON *from, rt_record *out) {
  const cJSON *rounds = cJSON_GetObjectItemCaseSensitive(from, "rounds");
  if (!rounds) return true;
  return read_count(rounds, "n", &out->n_rounds) && read_count(rounds, "first", &out->first_round);
}

static const char *text_of(const cJSON *from, const char *key) {
  return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(from, key));
}

/* A number that counts something. */
static bool read_count(const cJSON *from, const char *key, int64_t *out) {
  uint64_t value;
  if (!rt_json_u64(from, key, &value) || value > INT64_MAX) return false;
  *out = (int64_t)value;
  return true;
}

static planc_status read_text(const cJSON *from, const char *key, rt_record *record, const char **out,
                              bool *out_whole) {
  const char *text = text_of(from, key);
  *out_whole = *out_whole && text != NULL;
  return text ? rt_keep_text(&record->memory, text, out) : NULL;
}

static planc_status read_values(const cJSON *from, rt_record *out, bool *out_whole) {
  const cJSON *value, *values = cJSON_GetObjectItemCaseSensitive(from, "values");
  int64_t bytes = 0;
  PLANC_TRY(PL_NEW(&out->memory, &out->values, cJSON_GetArraySize(values)));
  cJSON_ArrayForEach(value, values) {
    rt_record_value *to = &out->values[out->n_values++];
    PLANC_TRY(read_text(value, "name", out, &to->name, out_whole));
    if (!*out_whole || !read_count(value, "bytes", &to->bytes) || pl_add_overflow(bytes, to->bytes, &bytes)) {
      *out_whole = false;
      return NULL;
    }
  }
  *out_whole =
      *out_whole && cJSON_IsArray(values) && !pl_mul_overflow(bytes, (int64_t)out->who.split.replicas, &out->bytes);
  return NULL;
}

static planc_status read_failure(const cJSON *from, rt_record *out, bool *out_whole) {
  const cJSON *failed = cJSON_GetObjectItemCaseSensitive(from, "failed");
  if (!failed) return NULL;
  *out_whole = *out_whole && read_count(failed, "iteration", &out->failed_at);
  return read_text(failed, "why", out, &out->why, out_whole);
}

/* One replica is not written. */
static bool read_split(const cJSON *from, rt_split *out) {
  out->replicas = 1;
  if (cJSON_GetObjectItemCaseSensitive(from, "replicas") && !rt_json_u64(from, "replicas", &out->replicas))
    return false;
  return rt_json_u64(from, "batch", &out->batch) && out->replicas > 0 && out->replicas <= PLANC_PLAN_MAX_REPLICAS;
}
