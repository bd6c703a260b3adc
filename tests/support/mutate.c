/* Mutants of plans (mutate.h). */
#include "tests/support/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/layout.h"
#include "plan/plan_memory.h"
#include "tests/support/randgraph.h"
#include "util/vec.h"

#define X(name) #name,
static const char *const instr_names[] = {PLANC_INSTRS(X)};
#undef X

/* An instruction that carries its uses with it wherever it goes. */
typedef struct loose_instr {
  planc_instr instr;
  int32_t n_uses;
  const int32_t *uses;
} loose_instr;

typedef VEC(loose_instr) loose_section;

typedef struct mutation {
  uint64_t random;
  planc_plan *plan; /* the mutant */
  loose_section sections[3];
  char *description;
  size_t size;
} mutation;

static planc_arena *arena_of(mutation *m) {
  return &m->plan->memory->arena;
}

static int64_t below(mutation *m, int64_t n) {
  return rand_below(&m->random, n);
}

/* --- Taking apart and putting together ------------------------------------------------------------------------- */

static planc_status take_apart(mutation *m, const planc_plan *plan) {
  struct planc_plan_memory *memory = m->plan->memory;
  *m->plan = *plan;
  m->plan->memory = memory;
  const planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  int64_t index = 0;
  for (int s = 0; s < 3; s++) {
    for (int32_t i = 0; i < sections[s]->n; i++, index++) {
      loose_instr loose = {.instr = sections[s]->instrs[i]};
      if (loose.instr.op == PLANC_INSTR_exec) {
        loose.n_uses = planc_plan_uses_at(plan, index);
        if (loose.n_uses < 0) return planc_error(PLANC_INTERNAL, "uses out of order");
        loose.uses = &plan->uses[loose.instr.first_use];
      }
      VEC_PUSH(&m->sections[s], loose);
    }
  }
  return NULL;
}

static planc_status put_together(mutation *m) {
  planc_section *sections[] = {&m->plan->prologue, &m->plan->body, &m->plan->epilogue};
  int64_t n_uses = 0;
  for (int s = 0; s < 3; s++) {
    for (int64_t i = 0; i < m->sections[s].len; i++) n_uses += m->sections[s].data[i].n_uses;
  }
  int32_t *uses, used = 0;
  PLANC_TRY(PLANC_NEW(arena_of(m), &uses, n_uses));
  for (int s = 0; s < 3; s++) {
    planc_instr *instrs;
    PLANC_TRY(PLANC_NEW(arena_of(m), &instrs, m->sections[s].len));
    for (int64_t i = 0; i < m->sections[s].len; i++) {
      const loose_instr *loose = &m->sections[s].data[i];
      instrs[i] = loose->instr;
      if (loose->instr.op == PLANC_INSTR_exec) instrs[i].first_use = used;
      for (int32_t k = 0; k < loose->n_uses; k++) uses[used++] = loose->uses[k];
    }
    *sections[s] = (planc_section){(int32_t)m->sections[s].len, instrs};
  }
  m->plan->uses = uses;
  m->plan->n_uses = used;
  return NULL;
}

/* --- Changes of place --------------------------------------------------------------------------------------------- */

static void say_place(mutation *m, const char *what, int section, int64_t i, int64_t j) {
  static const char *const names[] = {"prologue", "body", "epilogue"};
  const planc_instr *instr = &m->sections[section].data[i].instr;
  snprintf(m->description, m->size, "%s %s[%lld], %s %d, with %lld", what, names[section], (long long)i,
           instr_names[instr->op], instr->id, (long long)j);
}

static void drop_at(loose_section *section, int64_t i) {
  memmove(&section->data[i], &section->data[i + 1], (size_t)(section->len - i - 1) * sizeof *section->data);
  section->len--;
}

static planc_status insert_at(loose_section *section, int64_t i, loose_instr instr) {
  VEC_PUSH(section, instr);
  memmove(&section->data[i + 1], &section->data[i], (size_t)(section->len - 1 - i) * sizeof *section->data);
  section->data[i] = instr;
  return NULL;
}

/* Another place than i: mostly a near one, since far ones are found out easily. */
static int64_t other_place(mutation *m, const loose_section *section, int64_t i) {
  int64_t j = below(m, 3) ? i + 1 + below(m, 6) : below(m, section->len);
  return j < section->len ? j : section->len - 1;
}

static planc_status change_place(mutation *m, int s) {
  loose_section *section = &m->sections[s];
  int64_t i = below(m, section->len), j = other_place(m, section, i);
  loose_instr instr = section->data[i];
  switch (below(m, 4)) {
    case 0:
      say_place(m, "drop", s, i, i);
      drop_at(section, i);
      return NULL;
    case 1:
      say_place(m, "double", s, i, j);
      return insert_at(section, j + 1, instr);
    case 2:
      say_place(m, "swap", s, i, j);
      section->data[i] = section->data[j];
      section->data[j] = instr;
      return NULL;
    default:
      say_place(m, "move", s, i, j);
      if (below(m, 2)) {
        drop_at(section, i);
        return insert_at(section, j, instr);
      }
      instr = section->data[j];
      drop_at(section, j);
      return insert_at(section, i, instr);
  }
}

/* --- Changes of numbers ------------------------------------------------------------------------------------------- */

static int32_t other_id(mutation *m, int32_t id, int32_t n) {
  return below(m, 2) ? id + (below(m, 2) ? 1 : -1) : (int32_t)below(m, (int64_t)n + 1);
}

/* An address or size near the old one, of another instruction, or out of all bounds. */
static int64_t other_number(mutation *m, int64_t number, const loose_section *section) {
  static const int64_t steps[] = {-256, 256, -512, 512, -1, 1, -4, 4, INT64_C(1) << 40};
  const planc_instr *other = &section->data[below(m, section->len)].instr;
  switch (below(m, 3)) {
    case 0:
      return number + steps[below(m, sizeof steps / sizeof *steps)];
    case 1:
      return below(m, 2) ? other->address : other->bytes;
    default:
      return number / 512 * 256;
  }
}

static planc_status change_use(mutation *m, loose_instr *loose) {
  int32_t *uses;
  PLANC_TRY(PLANC_NEW(arena_of(m), &uses, (int64_t)loose->n_uses + 1));
  if (loose->n_uses) memcpy(uses, loose->uses, (size_t)loose->n_uses * sizeof *uses);
  loose->uses = uses;
  if (loose->n_uses == 0 || below(m, 8) == 0) {
    uses[loose->n_uses++] = (int32_t)below(m, m->plan->n_residencies);
  } else if (below(m, 8) == 0) {
    loose->n_uses--;
  } else {
    int64_t k = below(m, loose->n_uses);
    uses[k] = below(m, 4) ? other_id(m, uses[k], m->plan->n_residencies - 1) : -1;
  }
  return NULL;
}

static planc_status change_exec(mutation *m, loose_instr *loose, const loose_section *section) {
  planc_instr *instr = &loose->instr;
  switch (below(m, 6)) {
    case 0:
      instr->id = other_id(m, instr->id, instr->id + 1);
      return NULL;
    case 1:
      instr->recompute = !instr->recompute;
      return NULL;
    case 2:
      instr->address = other_number(m, instr->address, section);
      return NULL;
    case 3:
      /* Less workspace than an algorithm needs is between it and the profile, not between plan and checker. */
      instr->bytes += 256 * (1 + below(m, 16));
      return NULL;
    case 4:
      instr->aux = m->plan->n_algorithms;
      return NULL;
    default:
      return change_use(m, loose);
  }
}

static planc_status change_numbers(mutation *m, int s) {
  loose_section *section = &m->sections[s];
  loose_instr *loose = &section->data[below(m, section->len)];
  planc_instr *instr = &loose->instr, before = *instr;
  bool on_stream = instr->op != PLANC_INSTR_acquire && instr->op != PLANC_INSTR_release;
  if (on_stream && below(m, 5) == 0) {
    instr->stream = (int16_t)other_id(m, instr->stream, m->plan->n_streams);
  } else {
    switch (instr->op) {
      case PLANC_INSTR_exec:
        PLANC_TRY(change_exec(m, loose, section));
        break;
      case PLANC_INSTR_record:
        instr->id = other_id(m, instr->id, m->plan->n_events);
        break;
      case PLANC_INSTR_wait:
        if (below(m, 2)) {
          instr->lag = !instr->lag;
        } else {
          instr->id = other_id(m, instr->id, m->plan->n_events);
        }
        break;
      default: {
        int64_t which = below(m, 4);
        if (which == 0 || instr->op == PLANC_INSTR_release) {
          instr->id = other_id(m, instr->id, m->plan->n_residencies);
        } else if (which == 1) {
          instr->aux = other_id(m, instr->aux, instr->aux + 1);
        } else if (which == 2) {
          instr->address = below(m, 4) ? other_number(m, instr->address, section) : PLANC_USER;
        } else {
          instr->bytes = other_number(m, instr->bytes, section);
        }
      }
    }
  }
  snprintf(
      m->description, m->size,
      "change %s %d: id %d to %d, aux %d to %d, stream %d to %d, lag %d to %d, address %lld to %lld, bytes %lld to "
      "%lld",
      instr_names[instr->op], before.id, before.id, instr->id, before.aux, instr->aux, before.stream, instr->stream,
      before.lag, instr->lag, (long long)before.address, (long long)instr->address, (long long)before.bytes,
      (long long)instr->bytes);
  return NULL;
}

static planc_status change_boundary(mutation *m) {
  planc_boundary *boundary;
  PLANC_TRY(PLANC_NEW(arena_of(m), &boundary, m->plan->n_boundary));
  memcpy(boundary, m->plan->boundary, (size_t)m->plan->n_boundary * sizeof *boundary);
  planc_boundary *row = &boundary[below(m, m->plan->n_boundary)];
  int64_t draw = below(m, 5);
  if (draw == 0) {
    row->home = !row->home;
  } else if (draw <= 2) {
    row->address = other_number(m, row->address, &m->sections[0]);
  } else {
    row->buffer = other_id(m, row->buffer, row->buffer + 1);
  }
  m->plan->boundary = boundary;
  snprintf(m->description, m->size, "change the boundary: buffer %d %s %lld", row->buffer,
           row->home ? "at home at" : "at", (long long)row->address);
  return NULL;
}

static planc_status change_mapping(mutation *m) {
  planc_mapping *mappings;
  PLANC_TRY(PLANC_NEW(arena_of(m), &mappings, m->plan->n_mappings));
  memcpy(mappings, m->plan->mappings, (size_t)m->plan->n_mappings * sizeof *mappings);
  planc_mapping *row = &mappings[below(m, m->plan->n_mappings)];
  if (below(m, 3)) {
    row->first = below(m, m->plan->arena_bytes / m->plan->chunk_bytes + 1);
  } else {
    row->n += below(m, 2) ? 1 : -1;
  }
  m->plan->mappings = mappings;
  snprintf(m->description, m->size, "change mapping %d: %lld chunks from %lld on", (int)(row - mappings),
           (long long)row->n, (long long)row->first);
  return NULL;
}

/* Which replica of how many a job is, or the GPU of a stream. */
static planc_status change_replicas(mutation *m) {
  planc_job *jobs;
  planc_stream *streams;
  int64_t j = below(m, m->plan->n_jobs), s = below(m, m->plan->n_streams);
  PLANC_TRY(PLANC_NEW(arena_of(m), &jobs, m->plan->n_jobs));
  PLANC_TRY(PLANC_NEW(arena_of(m), &streams, m->plan->n_streams));
  memcpy(jobs, m->plan->jobs, (size_t)m->plan->n_jobs * sizeof *jobs);
  memcpy(streams, m->plan->streams, (size_t)m->plan->n_streams * sizeof *streams);
  m->plan->jobs = jobs;
  m->plan->streams = streams;
  int64_t draw = below(m, 4);
  if (draw == 0) {
    jobs[j].replica = other_id(m, jobs[j].replica, m->plan->n_jobs);
  } else if (draw == 1) {
    jobs[j].replicas = other_id(m, jobs[j].replicas, m->plan->n_jobs);
  } else if (draw == 2) {
    for (int32_t k = 0; k < m->plan->n_jobs; k++) jobs[k].replica = jobs[k].replicas = 0;
  } else {
    streams[s].gpu = other_id(m, streams[s].gpu, m->plan->gpus);
  }
  snprintf(m->description, m->size, "change job %d to replica %d of %d, stream %d to GPU %d", (int)j, jobs[j].replica,
           jobs[j].replicas, (int)s, streams[s].gpu);
  return NULL;
}

static bool has_home(const planc_plan *plan) {
  for (int32_t b = 0; b < plan->n_boundary; b++) {
    if (plan->boundary[b].home) return true;
  }
  return false;
}

static planc_status change_plan(mutation *m) {
  if (m->plan->n_mappings > 0 && below(m, 4)) return change_mapping(m);
  if (m->plan->gpus > 1 && below(m, 3) == 0) return change_replicas(m);
  if (has_home(m->plan) && below(m, 4)) return change_boundary(m);
  switch (below(m, 6)) {
    case 0:
      m->plan->arena_bytes -= 1 + below(m, 256);
      m->plan->predicted.peak_bytes = m->plan->arena_bytes + m->plan->device.reserved_bytes;
      break;
    case 1:
      m->plan->host_arena_bytes -= 1 + below(m, 256);
      m->plan->predicted.host_peak_bytes = m->plan->host_arena_bytes;
      break;
    case 2:
      m->plan->n_residencies += below(m, 2) ? 1 : -1;
      break;
    case 3:
      m->plan->n_events -= 1;
      break;
    case 4:
      m->plan->predicted.peak_bytes -= 1;
      break;
    default:
      if (m->plan->n_boundary > 0) return change_boundary(m);
      m->plan->n_jobs = 0;
  }
  snprintf(m->description, m->size,
           "change the header: arena %lld, host arena %lld, peak %lld, %d residencies, %d events",
           (long long)m->plan->arena_bytes, (long long)m->plan->host_arena_bytes,
           (long long)m->plan->predicted.peak_bytes, m->plan->n_residencies, m->plan->n_events);
  return NULL;
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planc_status mutate(mutation *m, const planc_plan *plan) {
  PLANC_TRY(take_apart(m, plan));
  /* Mostly the body: there is most to break. */
  int s = below(m, 4) ? 1 : (int)below(m, 3);
  if (m->sections[s].len == 0) s = 1;
  int64_t what = m->sections[s].len ? below(m, 16) : 0;
  PLANC_TRY(what == 0 ? change_plan(m) : what < 8 ? change_place(m, s) : change_numbers(m, s));
  return put_together(m);
}

planc_status mutate_plan(const planc_plan *plan, uint64_t seed, planc_plan **out, char *description, size_t size) {
  mutation m = {.random = seed, .description = description, .size = size};
  PLANC_TRY(planc_plan_new(&m.plan));
  planc_status status = mutate(&m, plan);
  for (int s = 0; s < 3; s++) VEC_FREE(&m.sections[s]);
  if (status) {
    planc_plan_free(m.plan);
    return status;
  }
  *out = m.plan;
  return NULL;
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

typedef VEC(char) buffer;

static planc_status append(buffer *to, const char *from, size_t n) {
  PLANC_TRY(VEC_RESERVE(to, to->len + (int64_t)n + 1));
  memcpy(to->data + to->len, from, n);
  to->len += (int64_t)n;
  to->data[to->len] = '\0';
  return NULL;
}

static size_t line_start(const char *text, size_t at) {
  while (at > 0 && text[at - 1] != '\n') at--;
  return at;
}

static size_t line_end(const char *text, size_t length, size_t at) {
  while (at < length && text[at] != '\n') at++;
  return at < length ? at + 1 : length;
}

/* Puts `middle` in the place of text[from .. to). */
static planc_status splice(const char *text, size_t length, size_t from, size_t to, const char *middle, size_t n,
                           buffer *out) {
  PLANC_TRY(append(out, text, from));
  PLANC_TRY(append(out, middle, n));
  return append(out, text + to, length - to);
}

static planc_status change_digits(uint64_t *random, const char *text, size_t length, size_t at, buffer *out) {
  while (at < length && (text[at] < '0' || text[at] > '9')) at++;
  size_t to = at;
  while (to < length && text[to] >= '0' && text[to] <= '9') to++;
  char number[32];
  static const char *const odd[] = {"0", "-1", "1", "9007199254740993", "99999999999999999999", "07", "1.5", "1e9"};
  if (rand_below(random, 2)) {
    snprintf(number, sizeof number, "%s", odd[rand_below(random, sizeof odd / sizeof *odd)]);
  } else {
    snprintf(number, sizeof number, "%lld", strtoll(text + at, NULL, 10) + (rand_below(random, 2) ? 1 : -1));
  }
  return splice(text, length, at, to, number, strlen(number), out);
}

static planc_status change_text(uint64_t *random, const char *text, size_t length, buffer *out, const char **what) {
  size_t at = (size_t)rand_below(random, (int64_t)length);
  size_t start = line_start(text, at), end = line_end(text, length, at), next = line_end(text, length, end);
  switch (rand_below(random, 7)) {
    case 0:
      *what = "cut at a line's end";
      return append(out, text, start);
    case 1:
      *what = "cut";
      return append(out, text, at);
    case 2:
      *what = "line dropped";
      return splice(text, length, start, end, "", 0, out);
    case 3:
      *what = "line doubled";
      return splice(text, length, end, end, text + start, end - start, out);
    case 4:
      *what = "lines swapped";
      PLANC_TRY(append(out, text, start));
      PLANC_TRY(append(out, text + end, next - end));
      PLANC_TRY(append(out, text + start, end - start));
      return append(out, text + next, length - next);
    case 5:
      *what = "number changed";
      return change_digits(random, text, length, at, out);
    default: {
      *what = "byte changed";
      char byte = (char)rand_below(random, 256);
      return splice(text, length, at, at + 1, &byte, 1, out);
    }
  }
}

planc_status mutate_text(const char *text, size_t length, uint64_t seed, char **out, size_t *out_length,
                         char *description, size_t size) {
  buffer made = {0};
  const char *what = "";
  *out = NULL;
  if (length == 0) return planc_error(PLANC_INTERNAL, "no text");
  planc_status status = change_text(&seed, text, length, &made, &what);
  if (status) {
    VEC_FREE(&made);
    return status;
  }
  snprintf(description, size, "%s", what);
  *out = made.data;
  *out_length = (size_t)made.len;
  return NULL;
}
