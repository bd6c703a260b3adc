/* The checker (check.h). It carries out the plan's instructions one by one, in the order of the file, on a machine that
 * computes nothing (machine.h, step.c). The machine keeps track of which data is where, in which version, and of who
 * has touched which bytes. A plan may run with any number of bodies; the table `runs` says why two runs are enough. */
#include "planc/check.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "check/machine.h"
#include "plan/layout.h"
#include "plan/memories.h"
#include "plan/plan_trace.h"
#include "plan/tables.h"

static planc_status check_shape(const planc_plan *plan);
static planc_status start(pl_machine *m);
static planc_status judge_runs(pl_machine *m);
static void stop(pl_machine *m);
static void report_on(const pl_machine *m, planc_check_report *report);
static planc_status check_budgets(const planc_plan *plan, const planc_check_options *options);

planc_status planc_check(const planc_plan *plan, const planc_check_options *options, planc_check_report *report) {
  planc_check_report own;
  if (!report) report = &own;
  *report = (planc_check_report){0};
  PLANC_TRY(check_shape(plan));
  pl_machine m = {.plan = plan};
  planc_status status = start(&m);
  if (!status) status = judge_runs(&m);
  if (!status) report_on(&m, report);
  stop(&m);
  return status ? status : check_budgets(plan, options);
}

/* --- Before the run ----------------------------------------------------------------------------------------------- */

static planc_status index_boundary(pl_machine *m);

/* The machine's tables rely on these ranges. The reader of plan files checks only some of them. */
static planc_status check_shape(const planc_plan *plan) {
  enum { MAX_INSTRS = 1 << 29 }; /* so that ranks and epochs fit */
  const char *what = NULL;
  int64_t n_instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n;
  if (plan->n_jobs < 1 || plan->n_jobs > PLANC_PLAN_MAX_JOBS) {
    what = "jobs";
  } else if (plan->n_streams < 0 || plan->n_streams > PLANC_PLAN_MAX_STREAMS) {
    what = "streams";
  } else if (plan->prologue.n < 0 || plan->body.n < 0 || plan->epilogue.n < 0 || n_instrs > MAX_INSTRS) {
    what = "instructions";
  } else if (plan->n_events < 0 || plan->n_events > n_instrs) {
    what = "events";
  } else if (plan->n_residencies < plan->n_boundary || plan->n_boundary < 0 || plan->n_residencies > n_instrs) {
    what = "residencies";
  } else if (plan->n_uses < 0 || plan->n_algorithms < 0) {
    what = "uses or algorithms";
  }
  return what ? planc_error(PLANC_INVALID_PLAN, "the number of %s is out of range", what) : NULL;
}

/* Derives the trace from the plan's own graph and makes the tables that all runs share. */
static planc_status start(pl_machine *m) {
  const planc_plan *plan = m->plan;
  pl_arena *arena = &m->arena;
  pl_plan_layout layout;
  PLANC_TRY(pl_plan_layout_make(plan, arena, &layout));
  m->first_instr_line = layout.first_instr_line;
  PLANC_TRY(pl_tables_check(plan));
  PLANC_TRY(pl_link_index_make(plan, arena, &m->links));
  PLANC_TRY(pl_plan_expand(plan, &m->trace));
  PLANC_TRY(pl_plan_acquired(plan, arena, &m->acquired));
  PLANC_TRY(PL_NEW(arena, &m->boundary_of, m->trace->n_buffers));
  PLANC_TRY(index_boundary(m));
  return pl_extents_make(plan, arena, &m->extents);
}

/* The boundary holds every persistent buffer that is accessed, and nothing else. */
static planc_status index_boundary(pl_machine *m) {
  const planc_plan *plan = m->plan;
  char label[PL_LABEL];
  for (int32_t b = 0; b < m->trace->n_buffers; b++) m->boundary_of[b] = -1;
  for (int32_t i = 0; i < plan->n_boundary; i++) {
    int32_t buffer = plan->boundary[i].buffer;
    bool valid = buffer >= 0 && buffer < m->trace->n_buffers;
    if (!valid || !(m->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT) || m->boundary_of[buffer] >= 0) {
      return planc_error(PLANC_INVALID_PLAN, "boundary: row %d: %s is not persistent or stands twice", i,
                         pl_buffer_label(m, buffer, label));
    }
    m->boundary_of[buffer] = i;
  }
  for (int32_t b = 0; b < m->trace->n_buffers; b++) {
    const planc_buffer *buffer = &m->trace->buffers[b];
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT) || buffer->n_accesses == 0 || m->boundary_of[b] >= 0) continue;
    return planc_error(PLANC_INVALID_PLAN, "boundary: %s persists and is not there", pl_buffer_label(m, b, label));
  }
  return NULL;
}

static void stop(pl_machine *m) {
  planc_trace_free(m->trace);
  pl_arena_free(&m->arena);
}

/* --- The runs ----------------------------------------------------------------------------------------------------- */

/* The runs that are judged, each by all rules. What is wrong with any number of bodies is wrong in one of them:
 *
 * With 2 bodies: a body begins and ends with the boundary's residencies, and they get the same numbers and versions
 * again. So a third body meets what the second one has met. A body that is alone begins as the first of two and ends as
 * the last of two. An access may have to come after one of the body before, or one of the epilogue after one of the
 * last body. The events that see to it here see to it between any two such neighbours. Accesses that are further apart
 * are in order then, too: the earlier one's instruction stands in each body between them, its stream runs it in order,
 * and the last of these is a neighbour of the later access.
 *
 * With 0 bodies: the epilogue follows the prologue. An event is always recorded on the same stream, so what events and
 * streams know of the prologue only grows from body to body. An access of the epilogue that is in order here is in
 * order behind any number of bodies. The other way round it is not: bodies may bring the order, or the record, that is
 * missing without them.
 *
 * Replicas only add streams; all of this holds for them as well. */
static const struct {
  int32_t bodies;
  const char *which; /* said at the end of what only this one finds */
} runs[] = {
    {2, ""},
    {0, ", in a run without bodies"},
};

static planc_status start_run(pl_machine *m);
static planc_status run_bodies(pl_machine *m, int32_t n);
static void end_run(pl_machine *m);

static planc_status judge_runs(pl_machine *m) {
  planc_status status = NULL;
  for (size_t i = 0; !status && i < sizeof runs / sizeof *runs; i++) {
    m->which_run = runs[i].which;
    status = start_run(m);
    if (!status) status = run_bodies(m, runs[i].bodies);
    end_run(m);
  }
  return status;
}

static void fill_int32(int32_t *values, int64_t n, int32_t value) {
  for (int64_t i = 0; i < n; i++) values[i] = value;
}

static planc_status start_run(pl_machine *m) {
  const planc_plan *plan = m->plan;
  pl_arena *arena = &m->run_arena;
  PLANC_TRY(pl_histories_make(arena, m->extents.n_ranks, plan->n_streams, &m->histories));
  PLANC_TRY(pl_number_set_make(arena, m->extents.n_ranks, &m->open));
  PLANC_TRY(PL_NEW(arena, &m->open_at, m->extents.n_ranks));
  PLANC_TRY(PL_NEW(arena, &m->open_to, m->extents.n_ranks));
  PLANC_TRY(PL_NEW(arena, &m->residencies, plan->n_residencies));
  PLANC_TRY(pl_seen_make(arena, plan, &m->seen));
  PLANC_TRY(PL_NEW(arena, &m->epochs_before, plan->n_streams));
  PLANC_TRY(PL_NEW(arena, &m->executed, m->trace->n_instances));
  PLANC_TRY(PL_NEW(arena, &m->algorithm, m->trace->n_instances));
  PLANC_TRY(PL_NEW(arena, &m->delivered, m->trace->n_buffers));
  for (int32_t r = 0; r < plan->n_residencies; r++) m->residencies[r].buffer = -1;
  fill_int32(m->executed, m->trace->n_instances, PL_NO_BODY);
  fill_int32(m->delivered, m->trace->n_buffers, PL_NO_BODY);
  return NULL;
}

static void end_run(pl_machine *m) {
  pl_histories_free(&m->histories);
  pl_seen_free(&m->seen);
  pl_arena_free(&m->run_arena);
}

static planc_status run_section(pl_machine *m, pl_section_kind section, int32_t body);
static planc_status end_body(pl_machine *m);
static planc_status restore_boundary(pl_machine *m);
static planc_status end_epilogue(const pl_machine *m);

static planc_status run_bodies(pl_machine *m, int32_t n) {
  PLANC_TRY(run_section(m, PL_PROLOGUE, PL_BODY_OF_PROLOGUE));
  PLANC_TRY(restore_boundary(m));
  for (int32_t body = 0; body < n; body++) {
    PLANC_TRY(run_section(m, PL_BODY, body));
    PLANC_TRY(end_body(m));
    PLANC_TRY(restore_boundary(m));
  }
  PLANC_TRY(run_section(m, PL_EPILOGUE, n));
  return end_epilogue(m);
}

static planc_status run_section(pl_machine *m, pl_section_kind section, int32_t body) {
  const planc_plan *plan = m->plan;
  const planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  const int64_t firsts[] = {0, plan->prologue.n, (int64_t)plan->prologue.n + plan->body.n};
  m->section = section;
  m->body = body;
  m->next_residency = section == PL_BODY ? plan->n_boundary : 0;
  m->next_use = 0;
  if (section == PL_BODY) m->n_executed = m->n_recomputed = 0;
  if (plan->n_streams > 0) memcpy(m->epochs_before, m->seen.epochs, (size_t)plan->n_streams * sizeof *m->epochs_before);
  for (int32_t i = 0; i < sections[section]->n; i++) {
    m->instr = &sections[section]->instrs[i];
    m->index = firsts[section] + i;
    PLANC_TRY(pl_machine_step(m));
  }
  return NULL;
}

static planc_status end_body(pl_machine *m) {
  char label[PL_LABEL];
  if (m->next_residency != m->plan->n_residencies) {
    return planc_error(PLANC_INVALID_PLAN, "body: it opens residencies up to %d, the header counts %d",
                       m->next_residency, m->plan->n_residencies);
  }
  if (m->next_use != m->plan->n_uses) return planc_error(PLANC_INVALID_PLAN, "body: there are uses of no exec");
  for (int32_t i = 0; m->n_executed < m->trace->n_instances && i < m->trace->n_instances; i++) {
    if (m->executed[i] == m->body) continue;
    return planc_error(PLANC_INVALID_PLAN, "body: exec %s is missing", pl_instance_label(m, i, label));
  }
  for (int32_t b = 0; b < m->trace->n_buffers; b++) {
    if (!(m->trace->buffers[b].flags & PLANC_BUFFER_RESULT) || m->delivered[b] == m->body) continue;
    return planc_error(PLANC_INVALID_PLAN, "body: result %s is never offloaded to the user",
                       pl_buffer_label(m, b, label));
  }
  return NULL;
}

/* Between two sections the open residencies must be those of the boundary: each boundary buffer at its address, in its
 * last version. The next section calls that version 0, and the residency of row i residency i. */
static planc_status restore_boundary(pl_machine *m) {
  const planc_plan *plan = m->plan;
  const char *section = m->section == PL_PROLOGUE ? "prologue" : "body";
  char label[PL_LABEL];
  int32_t n_found = 0;
  for (int32_t at = pl_number_set_above(&m->open, 0); at >= 0; at = pl_number_set_above(&m->open, at + 1)) {
    int32_t r = m->open_at[at];
    pl_residency_state *state = &m->residencies[r];
    if (at != pl_place_extent(&state->place, 0).lo) continue; /* only a residency's first extent counts */
    const planc_buffer *buffer = &m->trace->buffers[state->buffer];
    int32_t i = m->boundary_of[state->buffer];
    if (i < 0 || state->memory != plan->boundary[i].memory || state->address != plan->boundary[i].address) {
      return planc_error(PLANC_INVALID_PLAN,
                         "%s: at its end residency %d of %s is open at %lld of memory %d, which the boundary "
                         "does not say",
                         section, r, pl_buffer_label(m, state->buffer, label), (long long)state->address,
                         state->memory);
    }
    int32_t last = m->section == PL_PROLOGUE ? 0 : buffer->last_version;
    if (state->version != last) {
      return planc_error(PLANC_INVALID_PLAN, "%s: at its end %s is there in version %d instead of %d", section,
                         pl_buffer_label(m, state->buffer, label), state->version, last);
    }
    state->version = 0;
    if (r != i) {
      m->residencies[i] = *state;
      state->open = false;
      for (int64_t k = 0; k < state->place.n; k++) m->open_at[pl_place_extent(&state->place, k).lo] = i;
    }
    n_found++;
  }
  /* Each of those found lies where the boundary has its buffer. Open residencies do not overlap, so no two are of the
   * same buffer. */
  assert(n_found <= plan->n_boundary);
  for (int32_t i = 0; n_found < plan->n_boundary && i < plan->n_boundary; i++) {
    if (m->residencies[i].open) continue;
    return planc_error(PLANC_INVALID_PLAN, "%s: at its end %s is not there", section,
                       pl_buffer_label(m, plan->boundary[i].buffer, label));
  }
  return NULL;
}

static planc_status end_epilogue(const pl_machine *m) {
  char label[PL_LABEL];
  for (int32_t i = 0; i < m->plan->n_boundary; i++) {
    int32_t buffer = m->plan->boundary[i].buffer;
    if (m->residencies[i].open) {
      return planc_error(PLANC_INVALID_PLAN, "epilogue: it does not release residency %d of %s", i,
                         pl_buffer_label(m, buffer, label));
    }
    if (m->delivered[buffer] != m->body) {
      return planc_error(PLANC_INVALID_PLAN, "epilogue: %s is never offloaded to the user",
                         pl_buffer_label(m, buffer, label));
    }
  }
  return NULL;
}

/* --- Peaks and budgets -------------------------------------------------------------------------------------------- */

static planc_status check_budget(const planc_plan *plan, const planc_memory *memory, int64_t asked);

static void report_on(const pl_machine *m, planc_check_report *report) {
  const planc_plan *plan = m->plan;
  for (int32_t kind = 0; kind < PLANC_N_MEMORY_KINDS; kind++) {
    report->peak_bytes[kind] = pl_plan_peak(plan, (planc_memory_kind)kind);
    report->touched_bytes[kind] = m->touched[kind];
  }
  report->instances = m->trace->n_instances;
  report->instructions = (int32_t)((int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n);
  report->recomputed = m->n_recomputed;
}

static planc_status check_budgets(const planc_plan *plan, const planc_check_options *options) {
  for (int32_t m = 0; m < plan->n_memories; m++) {
    planc_memory_kind kind = plan->memories[m].kind;
    PLANC_TRY(
        check_budget(plan, &plan->memories[m], options && kind != PLANC_MEMORY_USER ? options->budgets[kind] : -1));
  }
  return NULL;
}

enum { GPU_TEXT = 24 };

static planc_status check_budget(const planc_plan *plan, const planc_memory *memory, int64_t asked) {
  int64_t budget = asked >= 0 ? asked : memory->budget_bytes;
  int64_t peak = pl_memory_peak(plan, memory);
  if (budget < 0 || peak <= budget) return NULL;
  if (memory->kind == PLANC_MEMORY_DEVICE) {
    char gpu[GPU_TEXT] = "the device";
    if (planc_plan_gpus(plan) > 1) (void)snprintf(gpu, sizeof gpu, "GPU %d", memory->gpu);
    return planc_error(PLANC_INFEASIBLE,
                       "needs %lld bytes on %s (arena %lld, reserved %lld), the budget is %lld, %lld too few",
                       (long long)peak, gpu, (long long)memory->arena_bytes, (long long)memory->reserved_bytes,
                       (long long)budget, (long long)(peak - budget));
  }
#define X(id, name) name,
  static const char *const names[] = {PLANC_MEMORY_KINDS(X)};
#undef X
  return planc_error(PLANC_INFEASIBLE, "%s needs %lld bytes, its budget is %lld, %lld too few", names[memory->kind],
                     (long long)peak, (long long)budget, (long long)(peak - budget));
}
