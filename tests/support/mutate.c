/* Mutants of plans (mutate.h). */
#include <stdio.h>
#include <string.h>

#include "plan/layout.h"
#include "tests/support/mutate_parts.h"

#define X(name) #name,
static const char *const instr_names[] = {PLANC_INSTRS(X)};
#undef X

/* --- Taking apart and putting together ---------------------------------------------------------------------------- */

static planc_status take_apart(mutation *m, const planc_plan *plan) {
  planc_plan_owned *owned = m->plan->owned;
  *m->plan = *plan;
  m->plan->owned = owned;
  const planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  int64_t index = 0;
  for (int s = 0; s < 3; s++) {
    for (int32_t i = 0; i < sections[s]->n; i++, index++) {
      loose_instr loose = {.instr = sections[s]->instrs[i]};
      if (loose.instr.op == PLANC_INSTR_exec) {
        loose.n_uses = pl_plan_uses_at(plan, index);
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
  PLANC_TRY(PL_NEW(arena_of(m), &uses, n_uses));
  for (int s = 0; s < 3; s++) {
    planc_instr *instrs;
    PLANC_TRY(PL_NEW(arena_of(m), &instrs, m->sections[s].len));
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

static planc_status change_place(mutation *m, int s, int64_t i) {
  loose_section *section = &m->sections[s];
  int64_t j = other_place(m, section, i);
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

static planc_status change_use(mutation *m, loose_instr *loose) {
  int32_t *uses;
  PLANC_TRY(PL_NEW(arena_of(m), &uses, (int64_t)loose->n_uses + 1));
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

static void change_acquire(mutation *m, planc_instr *instr, const loose_section *section) {
  switch (below(m, 5)) {
    case 0:
      instr->id = other_id(m, instr->id, m->plan->n_residencies);
      return;
    case 1:
      instr->aux = other_id(m, instr->aux, instr->aux + 1);
      return;
    case 2:
      instr->memory = (int16_t)other_id(m, instr->memory, m->plan->n_memories);
      return;
    case 3:
      instr->address = other_number(m, instr->address, section);
      return;
    default:
      instr->bytes = other_number(m, instr->bytes, section);
  }
}

/* Either side may be another residency, or the user. */
static void change_copy(mutation *m, planc_instr *instr, const loose_section *section) {
  int32_t *side = below(m, 2) ? &instr->id : &instr->aux;
  int64_t draw = below(m, 6);
  if (draw == 0) {
    instr->bytes = other_number(m, instr->bytes, section);
  } else if (draw == 1) {
    int32_t to = instr->id;
    instr->id = instr->aux;
    instr->aux = to;
  } else if (draw == 2) {
    instr->peers = !instr->peers;
  } else {
    *side = draw == 3 ? PLANC_USER : other_id(m, *side, m->plan->n_residencies);
  }
}

static void change_wait(mutation *m, planc_instr *instr) {
  switch (below(m, 3)) {
    case 0:
      instr->lag = !instr->lag;
      return;
    case 1:
      instr->peers = !instr->peers;
      return;
    default:
      instr->id = other_id(m, instr->id, m->plan->n_events);
  }
}

static planc_status change_numbers(mutation *m, int s, int64_t i) {
  loose_section *section = &m->sections[s];
  loose_instr *loose = &section->data[i];
  planc_instr *instr = &loose->instr, before = *instr;
  bool on_stream = instr->op != PLANC_INSTR_acquire && instr->op != PLANC_INSTR_release;
  if (on_stream && below(m, 5) == 0) {
    instr->stream = (int16_t)other_id(m, instr->stream, m->plan->n_streams);
  } else {
    switch ((planc_instr_op)instr->op) {
      case PLANC_INSTR_exec:
        PLANC_TRY(change_exec(m, loose, section));
        break;
      case PLANC_INSTR_acquire:
        change_acquire(m, instr, section);
        break;
      case PLANC_INSTR_release:
        instr->id = other_id(m, instr->id, m->plan->n_residencies);
        break;
      case PLANC_INSTR_copy:
        change_copy(m, instr, section);
        break;
      case PLANC_INSTR_record:
        instr->id = other_id(m, instr->id, m->plan->n_events);
        break;
      case PLANC_INSTR_wait:
        change_wait(m, instr);
        break;
    }
  }
  snprintf(m->description, m->size,
           "change %s %d: id %d to %d, aux %d to %d, memory %d to %d, stream %d to %d, lag %d to %d, peers %d to "
           "%d, address %lld to %lld, bytes %lld to %lld",
           instr_names[instr->op], before.id, before.id, instr->id, before.aux, instr->aux, before.memory,
           instr->memory, before.stream, instr->stream, before.lag, instr->lag, before.peers, instr->peers,
           (long long)before.address, (long long)instr->address, (long long)before.bytes, (long long)instr->bytes);
  return NULL;
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planc_status mutate(mutation *m, const planc_plan *plan) {
  PLANC_TRY(take_apart(m, plan));
  /* Mostly the body: there is most to break. */
  int s = below(m, 4) ? 1 : (int)below(m, 3);
  if (m->sections[s].len == 0) s = 1;
  int64_t what = m->sections[s].len ? below(m, 16) : 0;
  int64_t i = m->sections[s].len ? below(m, m->sections[s].len) : 0;
  PLANC_TRY(what < 2 ? mutate_tables(m) : what < 9 ? change_place(m, s, i) : change_numbers(m, s, i));
  return put_together(m);
}

/* --- Between jobs ------------------------------------------------------------------------------------------------- */

typedef struct spot {
  int section;
  int64_t at;
} spot;
typedef VEC(spot) spot_list;

/* The job whose stream an event is recorded on; -1: it is not recorded. */
static int32_t recorder_of(const mutation *m, int32_t event) {
  for (int s = 0; s < 3; s++) {
    for (int64_t i = 0; i < m->sections[s].len; i++) {
      const planc_instr *instr = &m->sections[s].data[i].instr;
      if (instr->op == PLANC_INSTR_record && instr->id == event) return m->plan->streams[instr->stream].job;
    }
  }
  return -1;
}

static bool is_awaited_by_others(const mutation *m, const planc_instr *record) {
  for (int s = 0; s < 3; s++) {
    for (int64_t i = 0; i < m->sections[s].len; i++) {
      const planc_instr *instr = &m->sections[s].data[i].instr;
      if (instr->op == PLANC_INSTR_wait && instr->id == record->id &&
          m->plan->streams[instr->stream].job != m->plan->streams[record->stream].job)
        return true;
    }
  }
  return false;
}

/* Waits of a job for another, records of what they wait for, and acquires. */
static bool is_between(const mutation *m, const planc_instr *instr) {
  if (instr->op == PLANC_INSTR_acquire) return true;
  if (instr->op == PLANC_INSTR_record) return is_awaited_by_others(m, instr);
  return instr->op == PLANC_INSTR_wait && recorder_of(m, instr->id) != m->plan->streams[instr->stream].job;
}

/* To where another job's data are, or close to that. */
static planc_status change_address(mutation *m, planc_instr *instr) {
  planc_trace *trace;
  VEC(int64_t) addresses = {0};
  PLANC_TRY(planc_expand(m->plan->jobs, m->plan->n_jobs, &trace));
  const loose_section *body = &m->sections[1];
  int64_t before = instr->address;
  for (int64_t i = 0; i < body->len; i++) {
    const planc_instr *other = &body->data[i].instr;
    if (other->op != PLANC_INSTR_acquire || other->memory != instr->memory) continue;
    if (trace->buffers[other->aux].job == trace->buffers[instr->aux].job) continue;
    int64_t shift = below(m, 3) ? 0 : PLANC_ALIGNMENT * (below(m, 2) ? 1 : -1), address = other->address + shift;
    if (address >= 0 && address + instr->bytes <= m->plan->memories[instr->memory].arena_bytes)
      VEC_PUSH(&addresses, address);
  }
  if (addresses.len > 0) instr->address = addresses.data[below(m, addresses.len)];
  snprintf(m->description, m->size, "acquire %d of buffer %d: from %lld to %lld", instr->id, instr->aux,
           (long long)before, (long long)instr->address);
  VEC_FREE(&addresses);
  planc_trace_free(trace);
  return NULL;
}

static planc_status mutate_between(mutation *m, const planc_plan *plan) {
  spot_list spots = {0};
  PLANC_TRY(take_apart(m, plan));
  bool addresses = below(m, 3) == 0;
  for (int s = 0; s < 3; s++) {
    for (int64_t i = 0; i < m->sections[s].len; i++) {
      const planc_instr *instr = &m->sections[s].data[i].instr;
      if ((instr->op == PLANC_INSTR_acquire) == addresses && is_between(m, instr)) VEC_PUSH(&spots, ((spot){s, i}));
    }
  }
  if (spots.len == 0) {
    VEC_FREE(&spots);
    return planc_error(PLANC_USAGE, "the jobs of the plan share nothing");
  }
  spot at = spots.data[below(m, spots.len)];
  VEC_FREE(&spots);
  if (addresses) {
    PLANC_TRY(change_address(m, &m->sections[at.section].data[at.at].instr));
  } else {
    PLANC_TRY(below(m, 2) ? change_place(m, at.section, at.at) : change_numbers(m, at.section, at.at));
  }
  return put_together(m);
}

/* --- Mutants ------------------------------------------------------------------------------------------------------ */

static planc_status make_mutant(const planc_plan *plan, planc_status (*change)(mutation *, const planc_plan *),
                                uint64_t seed, planc_plan **out, char *description, size_t size) {
  mutation m = {.random = seed, .description = description, .size = size};
  PLANC_TRY(pl_plan_new(&m.plan));
  planc_status status = change(&m, plan);
  for (int s = 0; s < 3; s++) VEC_FREE(&m.sections[s]);
  if (status) {
    planc_plan_free(m.plan);
    return status;
  }
  *out = m.plan;
  return NULL;
}

planc_status mutate_plan(const planc_plan *plan, uint64_t seed, planc_plan **out, char *description, size_t size) {
  return make_mutant(plan, mutate, seed, out, description, size);
}

planc_status mutate_between_jobs(const planc_plan *plan, uint64_t seed, planc_plan **out, char *description,
                                 size_t size) {
  return make_mutant(plan, mutate_between, seed, out, description, size);
}
