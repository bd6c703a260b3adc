/* The plan of what runs again (restores.h): depth first, by what would be resident had it been stated up to there. The
 * rehearsal finds the same in its own tables (planner/auto/rehearsal_again.c). */
#include "planner/choose/restores.h"

#include "planner/choose/restorable.h"

enum { NONE = -1 };

static void forget(pl_restores *r);
static planc_status ask_for_inputs(pl_restores *r, int32_t instance, bool again);
static bool is_restored(const pl_restores *r, int32_t instance);
static planc_status run_again(pl_restores *r, int32_t instance);

planc_status pl_restores_new(const planc_trace *trace, const planc_schedule *schedule, pl_arena *arena,
                             pl_restores *out) {
  *out = (pl_restores){.trace = trace, .schedule = schedule};
  PLANC_TRY(PL_NEW(arena, &out->stone_of, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->instead, trace->n_buffers));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    out->stone_of[b] = NONE;
    out->instead[b] = PL_UNCHANGED;
  }
  return NULL;
}

void pl_restores_free(pl_restores *r) {
  VEC_FREE(&r->runs);
  VEC_FREE(&r->stones);
  VEC_FREE(&r->stack);
  VEC_FREE(&r->changed);
}

planc_status pl_restores_plan(pl_restores *r, int32_t instance) {
  forget(r);
  PLANC_TRY(ask_for_inputs(r, instance, false));
  while (r->stack.len) {
    int32_t top = r->stack.data[r->stack.len - 1], asked = top < 0 ? -1 - top : top;
    if (is_restored(r, asked)) {
      r->stack.len--;
    } else if (top < 0) {
      r->stack.len--;
      PLANC_TRY(run_again(r, asked));
    } else {
      r->stack.data[r->stack.len - 1] = -1 - asked;
      PLANC_TRY(ask_for_inputs(r, asked, true));
    }
  }
  return NULL;
}

static void forget(pl_restores *r) {
  for (int64_t k = 0; k < r->stones.len; k++) r->stone_of[r->stones.data[k].buffer] = NONE;
  for (int64_t k = 0; k < r->changed.len; k++) r->instead[r->changed.data[k]] = PL_UNCHANGED;
  r->runs.len = r->stones.len = r->stack.len = r->changed.len = 0;
}

/* --- What is where ------------------------------------------------------------------------------------------------ */

static pl_stone *find_stone(const pl_restores *r, int32_t buffer, int32_t version) {
  for (int32_t k = r->stone_of[buffer]; k != NONE; k = r->stones.data[k].below)
    if (r->stones.data[k].version == version) return &r->stones.data[k];
  return NULL;
}

/* Whether the residency that is open ahead of all of them holds a version. */
static bool is_held(const pl_restores *r, int32_t buffer, int32_t version) {
  if (r->instead[buffer] != PL_UNCHANGED) return r->instead[buffer] == version;
  return planc_schedule_resident(r->schedule, buffer, version) >= 0;
}

static bool is_resident(const pl_restores *r, int32_t buffer, int32_t version) {
  return is_held(r, buffer, version) || find_stone(r, buffer, version);
}

/* --- Running again ------------------------------------------------------------------------------------------------ */

static planc_status ask_for_inputs(pl_restores *r, int32_t instance, bool again) {
  const planc_instance *in = &r->trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if ((again && access->effect) || access->read < 0 || is_resident(r, access->buffer, access->read) ||
        planc_schedule_on_host(r->schedule, access->buffer, access->read))
      continue;
    int32_t writer = pl_writer_of(r->trace, access->buffer, access->read);
    if (writer < 0) return planc_error(PLANC_INTERNAL, "a version that nothing writes is away without a copy");
    VEC_PUSH(&r->stack, writer);
  }
  return NULL;
}

/* Whether all that a writer makes is there already: another path has restored it. */
static bool is_restored(const pl_restores *r, int32_t instance) {
  const planc_instance *in = &r->trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if (access->write >= 0 && !access->effect && !is_resident(r, access->buffer, access->write)) return false;
  }
  return true;
}

static planc_status find_read(pl_restores *r, const planc_access *access);
static planc_status find_place(pl_restores *r, const planc_access *access);
static planc_status change(pl_restores *r, int32_t buffer, int32_t version);

static planc_status run_again(pl_restores *r, int32_t instance) {
  const planc_instance *in = &r->trace->instances[instance];
  int32_t end = in->first_access + in->n_accesses;
  for (int32_t a = in->first_access; a < end; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if (!access->effect) PLANC_TRY(access->read >= 0 ? find_read(r, access) : find_place(r, access));
  }
  for (int32_t a = in->first_access; a < end; a++) {
    const planc_access *access = &r->trace->accesses[a];
    if (access->effect || access->read < 0 || access->write < 0) continue;
    pl_stone *stone = is_held(r, access->buffer, access->read) ? NULL : find_stone(r, access->buffer, access->read);
    if (stone)
      stone->version = access->write;
    else
      PLANC_TRY(change(r, access->buffer, access->write));
  }
  VEC_PUSH(&r->runs, ((pl_restoring_run){instance, (int32_t)r->stones.len}));
  return NULL;
}

static planc_status open_stone(pl_restores *r, int32_t buffer, int32_t version, int32_t fetched);

static planc_status find_read(pl_restores *r, const planc_access *access) {
  if (is_held(r, access->buffer, access->read)) return NULL;
  pl_stone *stone = find_stone(r, access->buffer, access->read);
  if (!stone) return open_stone(r, access->buffer, access->read, access->read);
  stone->last = (int32_t)r->runs.len;
  return NULL;
}

/* What is only written goes into the residency that was opened last, unless that holds another version. */
static planc_status find_place(pl_restores *r, const planc_access *access) {
  int32_t b = access->buffer;
  if (r->stone_of[b] != NONE) {
    pl_stone *stone = &r->stones.data[r->stone_of[b]];
    if (stone->version != access->write) return open_stone(r, b, access->write, NONE);
    stone->last = (int32_t)r->runs.len;
    return NULL;
  }
  int32_t open = planc_schedule_open(r->schedule, b);
  int32_t content = open < 0 ? NONE : planc_schedule_content(r->schedule, open);
  if (r->instead[b] != PL_UNCHANGED) content = r->instead[b];
  return open < 0 || (content >= 0 && content != access->write) ? open_stone(r, b, access->write, NONE)
                                                                : change(r, b, access->write);
}

static planc_status open_stone(pl_restores *r, int32_t buffer, int32_t version, int32_t fetched) {
  int32_t number = (int32_t)r->stones.len;
  VEC_PUSH(&r->stones, ((pl_stone){buffer, version, fetched, (int32_t)r->runs.len, r->stone_of[buffer]}));
  r->stone_of[buffer] = number;
  return NULL;
}

static planc_status change(pl_restores *r, int32_t buffer, int32_t version) {
  if (r->instead[buffer] == PL_UNCHANGED) VEC_PUSH(&r->changed, buffer);
  r->instead[buffer] = version;
  return NULL;
}
