/* Reading timelines: Chrome's trace-event JSON as planrun writes it (planrun(1), RUN TRACE). Every object may have the
 * keys that planrun gives it and no others; every period must have every timed instruction of the plan once. */
#include "planc/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/json.h"
#include "graph/spec.h"
#include "plan/copies.h"
#include "plan/memories.h"
#include "util/file.h"

typedef struct owned {
  planc_timeline timeline; /* first: what is given out */
  pl_arena arena;
} owned;

typedef struct reading_timeline {
  const planc_plan *plan;
  planc_timeline *timeline;
  pl_acquired *acquired;
  int32_t *timed_of; /* by instruction of the body: its index among the timed ones, -1 for others */
  planc_span *spans; /* end_ns is -1 until it is read */
} reading_timeline;

static planc_status read_tree(reading_timeline *r, const pl_json *root, const char *path, pl_arena *arena);
static planc_status read_header(reading_timeline *r, const pl_json *at, const char *path);
static planc_status find_timed(reading_timeline *r, pl_arena *arena);
static planc_status make_spans(reading_timeline *r, const pl_json *at, pl_arena *arena);
static bool is_metadata(const pl_json *event);
static planc_status read_event(reading_timeline *r, const pl_json *at);
static planc_status check_order(const reading_timeline *r, const pl_json *at, pl_arena *arena);

planc_status planc_timeline_parse(const char *text, size_t length, const char *path, const planc_plan *plan,
                                  planc_timeline **out) {
  *out = NULL;
  cJSON *tree;
  PLANC_TRY(pl_json_parse(text, length, path, &tree));
  owned *made = calloc(1, sizeof *made);
  planc_status status = made ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  if (made) {
    reading_timeline r = {.plan = plan, .timeline = &made->timeline};
    pl_json root = {.value = tree, .name = path};
    status = read_tree(&r, &root, path, &made->arena);
  }
  cJSON_Delete(tree);
  if (status) {
    if (made) planc_timeline_free(&made->timeline);
  } else {
    *out = &made->timeline;
  }
  return status;
}

static planc_status read_tree(reading_timeline *r, const pl_json *root, const char *path, pl_arena *arena) {
  enum { EVENTS, UNIT, OTHER, N_KEYS };
  static const pl_json_key keys[N_KEYS] = {
      {.name = "traceEvents"}, {.name = "displayTimeUnit", .optional = true}, {.name = "otherData"}};
  pl_json members[N_KEYS];
  PLANC_TRY(pl_json_members(root, keys, N_KEYS, members));
  PLANC_TRY(read_header(r, &members[OTHER], path));
  PLANC_TRY(planc_context(find_timed(r, arena), "%s", path));
  PLANC_TRY(make_spans(r, &members[EVENTS], arena));
  for (pl_json event = pl_json_first(&members[EVENTS]); event.value; pl_json_next(&event))
    if (!is_metadata(&event)) PLANC_TRY(read_event(r, &event));
  return check_order(r, &members[EVENTS], arena);
}

planc_status planc_timeline_read(const char *path, const planc_plan *plan, planc_timeline **out) {
  char *text;
  size_t length;
  *out = NULL;
  PLANC_TRY(pl_file_read_text(path, PLANC_TIMELINE_MAX_BYTES, &text, &length));
  planc_status status = planc_timeline_parse(text, length, path, plan, out);
  free(text);
  return status;
}

void planc_timeline_free(planc_timeline *timeline) {
  if (!timeline) return;
  owned *memory = (owned *)timeline;
  pl_arena_free(&memory->arena);
  free(memory);
}

/* --- The plan's side ---------------------------------------------------------------------------------------------- */

static planc_status find_timed(reading_timeline *r, pl_arena *arena) {
  const planc_section *body = &r->plan->body;
  int32_t *instrs;
  PLANC_TRY(PL_NEW(arena, &r->timed_of, body->n));
  PLANC_TRY(PL_NEW(arena, &instrs, body->n));
  r->timeline->instrs = instrs;
  PLANC_TRY(pl_plan_acquired(r->plan, arena, &r->acquired));
  for (int32_t i = 0; i < body->n; i++) {
    r->timed_of[i] = -1;
    if (!planc_instr_is_timed(&body->instrs[i])) continue;
    if (body->instrs[i].stream < 0 || body->instrs[i].stream >= r->plan->n_streams)
      return planc_error(PLANC_INVALID_PLAN, "there is no stream %d", body->instrs[i].stream);
    r->timed_of[i] = r->timeline->n_timed;
    instrs[r->timeline->n_timed++] = i;
  }
  return r->timeline->n_timed > 0 ? NULL : planc_error(PLANC_BAD_INPUT, "the plan's body runs nothing");
}

/* --- What the file is --------------------------------------------------------------------------------------------- */

/* Before anything else of the header, whose keys are those of its version. */
static planc_status check_version(const pl_json *header) {
  const cJSON *value = cJSON_GetObjectItemCaseSensitive(header->value, "planrun");
  const pl_json at = {.value = value, .parent = header, .name = "planrun"};
  char shown[PL_SHOWN_TEXT];
  if (!cJSON_IsString(value) || strcmp(value->valuestring, PLANC_TIMELINE_VERSION) == 0) return NULL;
  return pl_json_error(
      &at, "\"%s\" is not read, only \"%s\": trace the run again with the planrun that goes with this planc",
      pl_shown(value->valuestring, shown), PLANC_TIMELINE_VERSION);
}

/* Whether the hashes are those of the plan's graphs, by job; *out_other is the first that is not. */
static planc_status read_graph_hashes(const reading_timeline *r, const pl_json *at, bool *out_same,
                                      pl_json *out_other) {
  int32_t n, job = 0;
  *out_other = *at;
  PLANC_TRY(pl_json_array(at, &n));
  *out_same = n == r->plan->n_jobs;
  for (pl_json item = pl_json_first(at); item.value; pl_json_next(&item), job++) {
    uint64_t hash = 0;
    PLANC_TRY(pl_json_hash(&item, &hash));
    if (!*out_same || hash == planc_graph_hash(r->plan->jobs[job].graph)) continue;
    *out_same = false;
    *out_other = item;
  }
  return NULL;
}

static planc_status read_header(reading_timeline *r, const pl_json *at, const char *path) {
  enum { VERSION, NAME, POLICY, GRAPH_HASHES, PLAN_HASH, BACKEND, FIRST, PERIODS, FAILED, N_KEYS };
  static const pl_json_key keys[N_KEYS] = {
      {.name = "planrun"},      {.name = "plan"},      {.name = "policy"},
      {.name = "graph_hashes"}, {.name = "plan_hash"}, {.name = "backend"},
      {.name = "first_period"}, {.name = "periods"},   {.name = "failed", .optional = true}};
  pl_json members[N_KEYS], other;
  uint64_t plan_hash = 0, expected;
  int64_t periods;
  bool same;
  const char *text;
  PLANC_TRY(check_version(at));
  PLANC_TRY(pl_json_members(at, keys, N_KEYS, members));
  PLANC_TRY(pl_json_string(&members[VERSION], &text));
  PLANC_TRY(pl_json_string(&members[NAME], &text));
  PLANC_TRY(pl_json_string(&members[POLICY], &text));
  PLANC_TRY(pl_json_string(&members[BACKEND], &text));
  PLANC_TRY(read_graph_hashes(r, &members[GRAPH_HASHES], &same, &other));
  PLANC_TRY(pl_json_hash(&members[PLAN_HASH], &plan_hash));
  PLANC_TRY(pl_json_int(&members[FIRST], 0, PL_JSON_MAX, &r->timeline->first_period));
  PLANC_TRY(pl_json_int(&members[PERIODS], 1, INT32_MAX, &periods));
  r->timeline->n_periods = (int32_t)periods;
  PLANC_TRY(planc_plan_hash(r->plan, &expected));
  if (plan_hash != expected)
    return planc_error(PLANC_STALE, "%s was measured with another plan%s", path,
                       !same                  ? ""
                       : r->plan->n_jobs == 1 ? " of the same graph"
                                              : " of the same graphs");
  if (!same) return pl_json_error(&other, "is not what the plan's graphs have");
  if (!members[FAILED].value) return NULL;
  return pl_json_error(&members[FAILED], "a job failed in this run, and its work is not all there: it is no measure");
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static planc_status read_arguments(const reading_timeline *r, const pl_json *at, int32_t *out_instr,
                                   int64_t *out_period);
static planc_status check_job(const reading_timeline *r, int32_t instr, const pl_json *at);
static planc_status check_place(const reading_timeline *r, int32_t instr, const pl_json *category, const pl_json *pid,
                                const pl_json *tid);
static planc_status read_time(const pl_json *at, int64_t *out);

static planc_status read_event(reading_timeline *r, const pl_json *at) {
  enum { NAME, CATEGORY, PHASE, START, DURATION, PID, TID, ARGUMENTS, N_KEYS };
  static const pl_json_key keys[N_KEYS] = {{.name = "name"}, {.name = "cat"}, {.name = "ph"},  {.name = "ts"},
                                           {.name = "dur"},  {.name = "pid"}, {.name = "tid"}, {.name = "args"}};
  pl_json members[N_KEYS];
  const char *name;
  int32_t instr = 0;
  int64_t period = 0, start = 0, duration = 0;
  PLANC_TRY(pl_json_members(at, keys, N_KEYS, members));
  PLANC_TRY(pl_json_string(&members[NAME], &name));
  PLANC_TRY(read_arguments(r, &members[ARGUMENTS], &instr, &period));
  PLANC_TRY(check_place(r, instr, &members[CATEGORY], &members[PID], &members[TID]));
  PLANC_TRY(read_time(&members[START], &start));
  PLANC_TRY(read_time(&members[DURATION], &duration));
  planc_span *span = &r->spans[period * r->timeline->n_timed + r->timed_of[instr]];
  if (span->end_ns >= 0) return pl_json_error(at, "instruction %" PRId32 " of that period stands twice", instr);
  *span = (planc_span){.start_ns = start, .end_ns = start + duration};
  return NULL;
}

static planc_status read_arguments(const reading_timeline *r, const pl_json *at, int32_t *out_instr,
                                   int64_t *out_period) {
  enum { INSTR, PERIOD, JOB, TYPE, BYTES, N_KEYS };
  static const pl_json_key keys[N_KEYS] = {{.name = "instr"},
                                           {.name = "period"},
                                           {.name = "job", .optional = true},
                                           {.name = "type", .optional = true},
                                           {.name = "bytes", .optional = true}};
  pl_json members[N_KEYS];
  int64_t instr, period, first = r->timeline->first_period, bytes;
  const char *type;
  PLANC_TRY(pl_json_members(at, keys, N_KEYS, members));
  if (members[TYPE].value) PLANC_TRY(pl_json_string(&members[TYPE], &type));
  if (members[BYTES].value) PLANC_TRY(pl_json_int(&members[BYTES], 0, PL_JSON_MAX, &bytes));
  PLANC_TRY(pl_json_int(&members[INSTR], 0, (int64_t)r->plan->body.n - 1, &instr));
  PLANC_TRY(pl_json_int(&members[PERIOD], first, first + r->timeline->n_periods - 1, &period));
  if (r->timed_of[instr] < 0)
    return pl_json_error(&members[INSTR], "instruction %" PRId64 " takes no time in the plan", instr);
  if (members[JOB].value) PLANC_TRY(check_job(r, (int32_t)instr, &members[JOB]));
  *out_instr = (int32_t)instr;
  *out_period = period - first;
  return NULL;
}

static planc_status check_job(const reading_timeline *r, int32_t instr, const pl_json *at) {
  int64_t job;
  int32_t of_stream = r->plan->streams[r->plan->body.instrs[instr].stream].job;
  PLANC_TRY(pl_json_int(at, 0, (int64_t)r->plan->n_jobs - 1, &job));
  if (job == of_stream) return NULL;
  return pl_json_error(at, "instruction %" PRId32 " is of job %" PRId32, instr, of_stream);
}

static planc_status check_place(const reading_timeline *r, int32_t instr, const pl_json *category, const pl_json *pid,
                                const pl_json *tid) {
  const planc_instr *at = &r->plan->body.instrs[instr];
  const char *name, *kind = "exec";
  int32_t gpu = pl_gpu_of_stream(r->plan, at->stream);
  if (at->op == PLANC_INSTR_copy) kind = pl_copy_word(pl_way_of_copy(r->plan, r->acquired, at));
  int64_t process, thread;
  PLANC_TRY(pl_json_string(category, &name));
  if (strcmp(name, kind) != 0)
    return pl_json_error(category, "instruction %" PRId32 " is of another kind: %s", instr, kind);
  PLANC_TRY(pl_json_int(pid, 0, INT32_MAX, &process));
  PLANC_TRY(pl_json_int(tid, 0, INT32_MAX, &thread));
  if (process != gpu + 1 || thread != at->stream + 1)
    return pl_json_error(tid, "instruction %" PRId32 " is of stream %d on GPU %" PRId32, instr, at->stream, gpu);
  return NULL;
}

/* Microseconds with at most three digits behind the point, as nanoseconds. Up to the end of the range a double is less
 * than 0.25 ns off; a product of all of it would round away more. */
static planc_status read_time(const pl_json *at, int64_t *out) {
  if (!cJSON_IsNumber(at->value)) return pl_json_error(at, "must be a number");
  double us = at->value->valuedouble, whole_us;
  if (!(us >= 0 && us <= (double)PLANC_TIMELINE_MAX_NS / 1000))
    return pl_json_error(at, "must be from 0 to 2^42 microseconds");
  double rest_ns = 1000 * modf(us, &whole_us);
  *out = 1000 * (int64_t)whole_us + llround(rest_ns);
  if (fabs(rest_ns - round(rest_ns)) < 0.25) return NULL;
  return pl_json_error(at, "is not a whole number of nanoseconds");
}

/* Names of streams and the like ("ph": "M") are for viewers. */
static bool is_metadata(const pl_json *event) {
  const cJSON *phase = cJSON_GetObjectItemCaseSensitive(event->value, "ph");
  return cJSON_IsString(phase) && strcmp(phase->valuestring, "M") == 0;
}

/* As many events as the periods need: before that is known nothing is allocated for what the header says. */
static planc_status make_spans(reading_timeline *r, const pl_json *at, pl_arena *arena) {
  int64_t n = 0, needed = (int64_t)r->timeline->n_periods * r->timeline->n_timed;
  int32_t n_events;
  PLANC_TRY(pl_json_array(at, &n_events));
  for (pl_json event = pl_json_first(at); event.value; pl_json_next(&event)) n += !is_metadata(&event);
  if (n != needed)
    return pl_json_error(at, "%" PRId64 " spans, but %" PRId32 " periods of %" PRId32 " instructions", n,
                         r->timeline->n_periods, r->timeline->n_timed);
  PLANC_TRY(PL_NEW(arena, &r->spans, needed));
  r->timeline->spans = r->spans;
  for (int64_t i = 0; i < needed; i++) r->spans[i].end_ns = -1;
  return NULL;
}

/* Each stream does one thing after the other. */
static planc_status check_order(const reading_timeline *r, const pl_json *at, pl_arena *arena) {
  int64_t *free_at;
  PLANC_TRY(PL_NEW(arena, &free_at, r->plan->n_streams));
  for (int32_t p = 0; p < r->timeline->n_periods; p++) {
    for (int32_t k = 0; k < r->timeline->n_timed; k++) {
      const planc_instr *instr = &r->plan->body.instrs[r->timeline->instrs[k]];
      const planc_span *span = &r->spans[(int64_t)p * r->timeline->n_timed + k];
      if (span->start_ns < free_at[instr->stream])
        return pl_json_error(at, "period %" PRId64 ": instruction %" PRId32 " begins before stream %d is free",
                             r->timeline->first_period + p, r->timeline->instrs[k], instr->stream);
      free_at[instr->stream] = span->end_ns;
    }
  }
  return NULL;
}
