/* Hand-made plans (script.h). */
#include "tests/support/script.h"

#include <stdlib.h>
#include <string.h>

#include "plan/derived.h"
#include "plan/memories.h"
#include "plan/owned.h"
#include "planc/schedule.h"
#include "tests/support/plan_tables.h"
#include "util/vec.h"

typedef VEC(planc_instr) instr_list;

typedef struct script {
  planc_plan *plan;
  planc_trace *trace;
  instr_list sections[3];
  VEC(int32_t) uses;
  VEC(planc_boundary) boundary;
  int section; /* of the present line */
  char *rest;  /* of the present line */
  char *next;  /* the lines behind it */
} script;

/* --- Words -------------------------------------------------------------------------------------------------------- */

static char *word(script *s) {
  s->rest += strspn(s->rest, " ");
  if (!*s->rest) return NULL;
  char *start = s->rest;
  s->rest += strcspn(s->rest, " ");
  if (*s->rest) *s->rest++ = '\0';
  return start;
}

/* Passes over `expected` if it is the next word. */
static bool accepts(script *s, const char *expected) {
  s->rest += strspn(s->rest, " ");
  size_t length = strlen(expected);
  if (strncmp(s->rest, expected, length) != 0 || (s->rest[length] && s->rest[length] != ' ')) return false;
  s->rest += length;
  return true;
}

/* Goes to the next line that is not empty; false if there is none. */
static bool next_line(script *s) {
  do {
    if (!*s->next) return false;
    s->rest = s->next + strspn(s->next, " ");
    s->next += strcspn(s->next, "\n");
    if (*s->next) *s->next++ = '\0';
  } while (!*s->rest);
  return true;
}

static int64_t number(script *s) {
  const char *text = word(s);
  return text ? strtoll(text, NULL, 10) : INT32_MIN;
}

static const char *instance_name(const planc_trace *trace, int32_t instance) {
  return planc_trace_op(trace, instance)->name;
}

/* The index that a name, NAME#K or number stands for among `n` things. */
static planc_status look_up(script *s, int32_t n, const char *(*name_of)(const planc_trace *, int32_t), int32_t *out) {
  char *name = word(s);
  if (!name) return planc_error(PLANC_INTERNAL, "script: a name is missing");
  char *digits;
  *out = (int32_t)strtol(name, &digits, 10);
  if (digits != name && !*digits) return NULL;
  char *hash = strchr(name, '#');
  long skip = hash ? strtol(hash + 1, NULL, 10) : 0;
  if (hash) *hash = '\0';
  for (*out = 0; *out < n; ++*out) {
    if (strcmp(name_of(s->trace, *out), name) == 0 && skip-- == 0) return NULL;
  }
  return planc_error(PLANC_INTERNAL, "script: nothing is called %s", name);
}

static planc_status look_up_buffer(script *s, int32_t *out) {
  return look_up(s, s->trace->n_buffers, planc_trace_buffer_name, out);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

static int64_t buffer_bytes(const script *s, int32_t buffer) {
  return buffer >= 0 && buffer < s->trace->n_buffers ? s->trace->buffers[buffer].bytes : 0;
}

static int64_t residency_bytes(const script *s, int32_t residency) {
  for (int k = 0; k < 2; k++) {
    for (int64_t i = 0; i < s->sections[k].len; i++) {
      const planc_instr *instr = &s->sections[k].data[i];
      if (instr->op == PLANC_INSTR_acquire && instr->id == residency) return buffer_bytes(s, instr->aux);
    }
  }
  return 0;
}

/* The memory that is named, or that of the buffer's job. */
static int32_t read_memory(script *s, int32_t buffer) {
  if (accepts(s, "host")) return tables_memory(s->plan, PLANC_MEMORY_HOST);
  if (accepts(s, "storage")) return tables_memory(s->plan, PLANC_MEMORY_STORAGE);
  if (accepts(s, "user")) return tables_memory(s->plan, PLANC_MEMORY_USER);
  if (accepts(s, "in")) return (int32_t)number(s);
  if (buffer < 0 || buffer >= s->trace->n_buffers) return 0;
  return pl_gpu_of_stream(s->plan, s->trace->buffers[buffer].job * PLANC_N_STREAMS);
}

static int32_t read_side(script *s) {
  return accepts(s, "user") ? PLANC_USER : (int32_t)number(s);
}

static planc_status read_exec(script *s, planc_instr *instr) {
  instr->op = PLANC_INSTR_exec;
  instr->first_use = (int32_t)s->uses.len;
  instr->time_ns = 1000;
  instr->busy_ppm = 1000000;
  PLANC_TRY(look_up(s, s->trace->n_instances, instance_name, &instr->id));
  instr->recompute = accepts(s, "re");
  if (accepts(s, "ws")) {
    instr->address = number(s);
    instr->bytes = number(s);
  }
  if (accepts(s, "on")) instr->stream = (int16_t)number(s);
  if (!accepts(s, "use")) return planc_error(PLANC_INTERNAL, "script: exec without use");
  for (char *use = word(s); use; use = word(s)) VEC_PUSH(&s->uses, (int32_t)strtol(use, NULL, 10));
  return NULL;
}

static planc_status read_instr(script *s, planc_instr *instr) {
  if (accepts(s, "exec")) return read_exec(s, instr);
  if (accepts(s, "acquire")) {
    instr->op = PLANC_INSTR_acquire;
    instr->id = (int32_t)number(s);
    PLANC_TRY(look_up_buffer(s, &instr->aux));
    instr->address = number(s);
    instr->memory = (int16_t)read_memory(s, instr->aux);
    instr->bytes = buffer_bytes(s, instr->aux);
  } else if (accepts(s, "release")) {
    instr->op = PLANC_INSTR_release;
    instr->id = (int32_t)number(s);
  } else if (accepts(s, "copy")) {
    instr->op = PLANC_INSTR_copy;
    instr->id = read_side(s);
    instr->aux = read_side(s);
    instr->peers = accepts(s, "peers");
    instr->bytes = residency_bytes(s, instr->id == PLANC_USER || instr->peers ? instr->aux : instr->id);
  } else if (accepts(s, "record")) {
    instr->op = PLANC_INSTR_record;
    instr->id = (int32_t)number(s);
  } else if (accepts(s, "wait")) {
    instr->op = PLANC_INSTR_wait;
    instr->id = (int32_t)number(s);
    if (accepts(s, "lag")) instr->lag = (uint8_t)number(s);
    instr->peers = accepts(s, "peers");
  } else {
    return planc_error(PLANC_INTERNAL, "script: not a line: %s", s->rest);
  }
  if (accepts(s, "on")) instr->stream = (int16_t)number(s);
  if (accepts(s, "bytes")) instr->bytes = number(s);
  if (accepts(s, "takes")) instr->time_ns = number(s);
  return NULL;
}

static planc_status read_line(script *s) {
  static const char *const sections[] = {"prologue", "body", "epilogue"};
  for (int k = 0; k < 3; k++) {
    if (!accepts(s, sections[k])) continue;
    s->section = k;
    return NULL;
  }
  if (accepts(s, "boundary")) {
    planc_boundary row = {0};
    PLANC_TRY(look_up_buffer(s, &row.buffer));
    row.address = number(s);
    row.memory = read_memory(s, row.buffer);
    VEC_PUSH(&s->boundary, row);
    return NULL;
  }
  planc_instr instr = {0};
  PLANC_TRY(read_instr(s, &instr));
  VEC_PUSH(&s->sections[s->section], instr);
  return NULL;
}

/* --- The plan ----------------------------------------------------------------------------------------------------- */

static planc_status read_gpus(script *s, int32_t n_jobs, const int32_t **out) {
  int32_t *gpus;
  PLANC_TRY(PL_NEW(&s->plan->owned->arena, &gpus, n_jobs));
  for (int32_t j = 0; j < n_jobs; j++) gpus[j] = (int32_t)number(s);
  *out = gpus;
  return NULL;
}

/* Reads the lines that tables are made by, and goes to the next, if there are *more. */
static planc_status make_tables(script *s, const planc_job *jobs, int32_t n_jobs, bool *more) {
  static const char *const algorithms[] = {"default", "gemm"};
  planc_plan *plan = s->plan;
  pl_arena *arena = &plan->owned->arena;
  const int32_t *gpus = NULL;
  int64_t storage = -1;
  plan->name = "script";
  plan->policy = "hand";
  plan->device.name = "none";
  plan->n_jobs = n_jobs;
  PLANC_TRY(pl_arena_copy(arena, jobs, n_jobs, sizeof *jobs, (void *)&plan->jobs));
  plan->algorithms = algorithms;
  plan->n_algorithms = 2;
  for (*more = next_line(s); *more; *more = next_line(s)) {
    if (accepts(s, "gpus")) {
      PLANC_TRY(read_gpus(s, n_jobs, &gpus));
    } else if (accepts(s, "storage")) {
      storage = number(s);
    } else {
      break;
    }
  }
  PLANC_TRY(tables_make(plan, arena, gpus, storage >= 0));
  if (storage >= 0) plan->memories[tables_memory(plan, PLANC_MEMORY_STORAGE)].arena_bytes = storage;
  return NULL;
}

static planc_status fill(script *s) {
  planc_plan *plan = s->plan;
  pl_arena *arena = &plan->owned->arena;
  planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  for (int k = 0; k < 3; k++) {
    sections[k]->n = (int32_t)s->sections[k].len;
    PLANC_TRY(pl_arena_copy(arena, s->sections[k].data, s->sections[k].len, sizeof(planc_instr),
                            (void *)&sections[k]->instrs));
    for (int32_t i = 0; i < sections[k]->n; i++) {
      const planc_instr *instr = &sections[k]->instrs[i];
      plan->n_residencies += instr->op == PLANC_INSTR_acquire && k != 2; /* the epilogue has none to number */
      bool event = instr->op == PLANC_INSTR_record || instr->op == PLANC_INSTR_wait;
      if (event && instr->id >= plan->n_events) plan->n_events = instr->id + 1;
    }
  }
  plan->n_uses = (int32_t)s->uses.len;
  PLANC_TRY(pl_arena_copy(arena, s->uses.data, s->uses.len, sizeof(int32_t), (void *)&plan->uses));
  plan->n_boundary = (int32_t)s->boundary.len;
  PLANC_TRY(pl_arena_copy(arena, s->boundary.data, s->boundary.len, sizeof(planc_boundary), (void *)&plan->boundary));
  return pl_plan_derive(plan);
}

static planc_status read_script(script *s, const char *text, const planc_job *jobs, int32_t n_jobs) {
  PLANC_TRY(planc_expand(jobs, n_jobs, &s->trace));
  char *copy;
  PLANC_TRY(pl_arena_alloc(&s->plan->owned->arena, (int64_t)strlen(text) + 1, 1, (void *)&copy));
  s->next = memcpy(copy, text, strlen(text) + 1);
  bool more;
  PLANC_TRY(make_tables(s, jobs, n_jobs, &more));
  for (; more; more = next_line(s)) PLANC_TRY(read_line(s));
  return fill(s);
}

planc_status script_make(const char *text, const planc_job *jobs, int32_t n_jobs, int64_t arena, int64_t host,
                         planc_plan **out) {
  script s = {0};
  PLANC_TRY(pl_plan_new(&s.plan));
  planc_status status = read_script(&s, text, jobs, n_jobs);
  planc_trace_free(s.trace);
  for (int k = 0; k < 3; k++) VEC_FREE(&s.sections[k]);
  VEC_FREE(&s.uses);
  VEC_FREE(&s.boundary);
  if (status) {
    planc_plan_free(s.plan);
    return status;
  }
  tables_arenas(s.plan, arena, host);
  tables_budgets(s.plan, arena, -1);
  *out = s.plan;
  return NULL;
}
