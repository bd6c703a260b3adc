/* The checker (check.h). It runs the plan on an abstract machine (machine.h, step.c). The table `runs` lists the runs
 * that it judges and says why they stand for all others. */
#include "planc/check.h"

#include "check/machine.h"
#include "plan/layout.h"
#include "plan/plan_trace.h"
#include "util/math.h"

static planc_status check_shape(const planc_plan *plan);
static planc_status start(planc_machine *m);
static planc_status judge_runs(planc_machine *m);
static void stop(planc_machine *m);
static void report_on(const planc_machine *m, planc_check_report *report);
static planc_status check_budgets(const planc_plan *plan, const planc_check_options *options);

planc_status planc_check(const planc_plan *plan, const planc_check_options *options, planc_check_report *report) {
  planc_check_report own;
  if (!report) report = &own;
  *report = (planc_check_report){0};
  PLANC_TRY(check_shape(plan));
  planc_machine m = {.plan = plan};
  planc_status status = start(&m);
  if (!status) status = judge_runs(&m);
  if (!status) report_on(&m, report);
  stop(&m);
  return status ? status : check_budgets(plan, options);
}

/* --- Before the run ----------------------------------------------------------------------------------------------- */

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

static planc_status check_hash(const planc_plan *plan) {
  uint64_t hash = planc_graph_hash(plan->jobs[0].graph);
  if (hash == plan->graph_hash) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "the plan was made for a graph with hash %016llx, its own has %016llx",
                     (unsigned long long)plan->graph_hash, (unsigned long long)hash);
}

/* The boundary holds every persistent buffer that is accessed, and nothing else. */
static planc_status index_boundary(planc_machine *m) {
  const planc_plan *plan = m->plan;
  char label[PLANC_LABEL];
  for (int32_t b = 0; b < m->trace->n_buffers; b++) m->boundary_of[b] = -1;
  for (int32_t i = 0; i < plan->n_boundary; i++) {
    int32_t buffer = plan->boundary[i].buffer;
    bool valid = buffer >= 0 && buffer < m->trace->n_buffers;
    if (!valid || !(m->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT) || m->boundary_of[buffer] >= 0) {
      return planc_error(PLANC_INVALID_PLAN, "boundary: row %d: %s is not persistent or stands twice", i,
                         planc_buffer_label(m, buffer, label));
    }
    m->boundary_of[buffer] = i;
  }
  for (int32_t b = 0; b < m->trace->n_buffers; b++) {
    const planc_buffer *buffer = &m->trace->buffers[b];
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT) || buffer->n_accesses == 0 || m->boundary_of[b] >= 0) continue;
    return planc_error(PLANC_INVALID_PLAN, "boundary: %s persists and is not there", planc_buffer_label(m, b, label));
  }
  return NULL;
}

/* Derives the trace from the plan's own graph and makes the tables that all runs share. */
static planc_status start(planc_machine *m) {
  const planc_plan *plan = m->plan;
  planc_arena *arena = &m->arena;
  planc_plan_layout layout;
  PLANC_TRY(planc_plan_layout_make(plan, arena, &layout));
  m->first_instr_line = layout.first_instr_line;
  PLANC_TRY(planc_tables_make(plan, arena, &m->tables));
  PLANC_TRY(check_hash(plan));
  PLANC_TRY(planc_plan_expand(plan, &m->trace));
  PLANC_TRY(planc_plan_acquired(plan, arena, &m->acquired));
  PLANC_TRY(PLANC_NEW(arena, &m->boundary_of, m->trace->n_buffers));
  PLANC_TRY(index_boundary(m));
  return planc_extents_make(plan, arena, &m->extents);
}

static void stop(planc_machine *m) {
  planc_trace_free(m->trace);
  planc_arena_free(&m->arena);
}

/* --- The runs ----------------------------------------------------------------------------------------------------- */

/* Which runs are judged, each by all rules, and what for. Together they stand for any number of bodies:
 *
 *   2 bodies - everything that one body or more can do wrong. Between bodies the state is the boundary's, versions
 *              renumbered, so every body after the second meets what the second met, and one body alone meets what the
 *              first and the last of two meet. What orders an access of a body after one of the body before, or an
 *              access of the epilogue after one of the last body, does so for all such neighbours. Those that are
 *              further apart have the same instruction in a body between them, which its stream orders.
 *   0 bodies - the epilogue against the prologue. What streams and events know to have happened of the prologue only
 *              grows from body to body, for an event is always recorded on one stream. So what is ordered without
 *              bodies is ordered with any number; with bodies there may be an order, or a record, that they bring.
 *
 * Replicas are so many more streams, and change nothing of this. */
static const struct {
  int32_t bodies;
  const char *which; /* said at the end of what only this one finds */
} runs[] = {
    {2, ""},
    {0, ", in a run without bodies"},
};

static planc_status start_run(planc_machine *m);
static planc_status run_bodies(planc_machine *m, int32_t n);
static void end_run(planc_machine *m);

static planc_status judge_runs(planc_machine *m) {
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

static planc_status start_run(planc_machine *m) {
  const planc_plan *plan = m->plan;
  planc_arena *arena = &m->run_arena;
  PLANC_TRY(planc_histories_make(arena, m->extents.n_ranks, &m->histories));
  PLANC_TRY(planc_number_set_make(arena, m->extents.n_ranks, &m->open));
  PLANC_TRY(PLANC_NEW(arena, &m->open_at, m->extents.n_ranks));
  PLANC_TRY(PLANC_NEW(arena, &m->open_to, m->extents.n_ranks));
  PLANC_TRY(PLANC_NEW(arena, &m->residents, plan->n_residencies));
  PLANC_TRY(planc_clocks_make(arena, plan, &m->clocks));
  PLANC_TRY(PLANC_NEW(arena, &m->epochs_before, plan->n_streams));
  PLANC_TRY(PLANC_NEW(arena, &m->executed, m->trace->n_instances));
  PLANC_TRY(PLANC_NEW(arena, &m->algorithm, m->trace->n_instances));
  PLANC_TRY(PLANC_NEW(arena, &m->delivered, m->trace->n_buffers));
  for (int32_t r = 0; r < plan->n_residencies; r++) m->residents[r].buffer = -1;
  fill_int32(m->executed, m->trace->n_instances, PLANC_NEVER);
  fill_int32(m->delivered, m->trace->n_buffers, PLANC_NEVER);
  return NULL;
}

static void end_run(planc_machine *m) {
  planc_histories_free(&m->histories);
  planc_clocks_free(&m->clocks);
  planc_arena_free(&m->run_arena);
}

static planc_status run_section(planc_machine *m, planc_section_kind section, int32_t body);
static planc_status end_body(planc_machine *m);
static planc_status restore_boundary(planc_machine *m);
static planc_status end_epilogue(const planc_machine *m);

static planc_status run_bodies(planc_machine *m, int32_t n) {
  PLANC_TRY(run_section(m, PLANC_PROLOGUE, PLANC_BODY_OF_PROLOGUE));
  PLANC_TRY(restore_boundary(m));
  for (int32_t body = 0; body < n; body++) {
    PLANC_TRY(run_section(m, PLANC_BODY, body));
    PLANC_TRY(end_body(m));
    PLANC_TRY(restore_boundary(m));
  }
  PLANC_TRY(run_section(m, PLANC_EPILOGUE, n));
  return end_epilogue(m);
}

static planc_status run_section(planc_machine *m, planc_section_kind section, int32_t body) {
  const planc_plan *plan = m->plan;
  const planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  const int64_t firsts[] = {0, plan->prologue.n, (int64_t)plan->prologue.n + plan->body.n};
  m->section = section;
  m->body = body;
  m->next_residency = section == PLANC_BODY ? plan->n_boundary : 0;
  m->next_use = 0;
  if (section == PLANC_BODY) m->n_executed = m->n_recomputed = 0;
  for (int32_t s = 0; s < plan->n_streams; s++) m->epochs_before[s] = planc_clock_of(&m->clocks, s)[s];
  planc_clocks_enter(&m->clocks, sections[section]);
  for (int32_t i = 0; i < sections[section]->n; i++) {
    m->instr = &sections[section]->instrs[i];
    m->index = firsts[section] + i;
    PLANC_TRY(planc_machine_step(m));
  }
  return NULL;
}

static planc_status end_body(planc_machine *m) {
  char label[PLANC_LABEL];
  if (m->next_residency != m->plan->n_residencies) {
    return planc_error(PLANC_INVALID_PLAN, "body: it opens residencies up to %d, the header counts %d",
                       m->next_residency, m->plan->n_residencies);
  }
  if (m->next_use != m->plan->n_uses) return planc_error(PLANC_INVALID_PLAN, "body: there are uses of no exec");
  for (int32_t i = 0; m->n_executed < m->trace->n_instances && i < m->trace->n_instances; i++) {
    if (m->executed[i] == m->body) continue;
    return planc_error(PLANC_INVALID_PLAN, "body: exec %s is missing", planc_instance_label(m, i, label));
  }
  for (int32_t b = 0; b < m->trace->n_buffers; b++) {
    if (!(m->trace->buffers[b].flags & PLANC_BUFFER_RESULT) || m->delivered[b] == m->body) continue;
    return planc_error(PLANC_INVALID_PLAN, "body: result %s is never offloaded to the user",
                       planc_buffer_label(m, b, label));
  }
  return NULL;
}

/* Between two sections the open residencies must be those of the boundary: each boundary buffer at its address, in its
 * last version. The next section calls that version 0, and the residency of row i residency i. */
static planc_status restore_boundary(planc_machine *m) {
  const planc_plan *plan = m->plan;
  const char *section = m->section == PLANC_PROLOGUE ? "prologue" : "body";
  char label[PLANC_LABEL];
  int32_t n_found = 0;
  for (int32_t at = planc_number_set_above(&m->open, 0); at >= 0; at = planc_number_set_above(&m->open, at + 1)) {
    int32_t r = m->open_at[at];
    planc_resident *resident = &m->residents[r];
    if (at != planc_place_extent(&resident->place, 0).lo) continue; /* only a residency's first extent counts */
    const planc_buffer *buffer = &m->trace->buffers[resident->buffer];
    int32_t i = m->boundary_of[resident->buffer];
    if (i < 0 || resident->memory != plan->boundary[i].memory || resident->address != plan->boundary[i].address) {
      return planc_error(PLANC_INVALID_PLAN,
                         "%s: at its end residency %d of %s is open at %lld of memory %d, which the boundary "
                         "does not say",
                         section, r, planc_buffer_label(m, resident->buffer, label), (long long)resident->address,
                         resident->memory);
    }
    int32_t last = m->section == PLANC_PROLOGUE ? 0 : buffer->last_version;
    if (resident->version != last) {
      return planc_error(PLANC_INVALID_PLAN, "%s: at its end %s is resident in version %d instead of %d", section,
                         planc_buffer_label(m, resident->buffer, label), resident->version, last);
    }
    resident->version = 0;
    if (r != i) {
      m->residents[i] = *resident;
      resident->open = false;
      for (int64_t k = 0; k < resident->place.n; k++) m->open_at[planc_place_extent(&resident->place, k).lo] = i;
    }
    n_found++;
  }
  /* Open residencies do not overlap, so none of those found are of the same buffer. */
  for (int32_t i = 0; n_found < plan->n_boundary && i < plan->n_boundary; i++) {
    if (m->residents[i].open) continue;
    return planc_error(PLANC_INVALID_PLAN, "%s: at its end %s is not resident", section,
                       planc_buffer_label(m, plan->boundary[i].buffer, label));
  }
  return NULL;
}

static planc_status end_epilogue(const planc_machine *m) {
  char label[PLANC_LABEL];
  for (int32_t i = 0; i < m->plan->n_boundary; i++) {
    int32_t buffer = m->plan->boundary[i].buffer;
    if (m->residents[i].open) {
      return planc_error(PLANC_INVALID_PLAN, "epilogue: it does not release residency %d of %s", i,
                         planc_buffer_label(m, buffer, label));
    }
    if (m->delivered[buffer] != m->body) {
      return planc_error(PLANC_INVALID_PLAN, "epilogue: %s is never offloaded to the user",
                         planc_buffer_label(m, buffer, label));
    }
  }
  return NULL;
}

/* --- Peaks and budgets -------------------------------------------------------------------------------------------- */

static void report_on(const planc_machine *m, planc_check_report *report) {
  const planc_plan *plan = m->plan;
  report->peak_bytes = planc_plan_peak(plan, PLANC_MEMORY_DEVICE);
  report->host_peak_bytes = planc_plan_peak(plan, PLANC_MEMORY_HOST);
  report->storage_peak_bytes = planc_plan_peak(plan, PLANC_MEMORY_STORAGE);
  report->touched_bytes = m->touched[PLANC_MEMORY_DEVICE];
  report->host_touched_bytes = m->touched[PLANC_MEMORY_HOST];
  report->storage_touched_bytes = m->touched[PLANC_MEMORY_STORAGE];
  report->instances = m->trace->n_instances;
  report->instructions = (int32_t)((int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n);
  report->recomputed = m->n_recomputed;
}

static planc_status check_budget(const planc_plan *plan, const planc_memory *memory, int64_t asked) {
  int64_t budget = asked >= 0 ? asked : memory->budget_bytes;
  int64_t peak = planc_memory_peak(plan, memory);
  if (budget < 0 || peak <= budget) return NULL;
  if (memory->kind == PLANC_MEMORY_DEVICE) {
    return planc_error(PLANC_INFEASIBLE,
                       "needs %lld bytes on the device (arena %lld, reserved %lld), the budget is %lld, %lld too few",
                       (long long)peak, (long long)memory->arena_bytes, (long long)memory->reserved_bytes,
                       (long long)budget, (long long)(peak - budget));
  }
  bool host = memory->kind == PLANC_MEMORY_HOST;
  return planc_error(PLANC_INFEASIBLE, "needs %lld bytes of %s, the %s budget is %lld, %lld too few", (long long)peak,
                     host ? "pinned host memory" : "storage", host ? "host" : "storage", (long long)budget,
                     (long long)(peak - budget));
}

static planc_status check_budgets(const planc_plan *plan, const planc_check_options *options) {
  int64_t asked[PLANC_N_MEMORY_KINDS] = {-1, -1, -1, -1};
  if (options) {
    asked[PLANC_MEMORY_DEVICE] = options->budget_bytes;
    asked[PLANC_MEMORY_HOST] = options->host_budget_bytes;
    asked[PLANC_MEMORY_STORAGE] = options->storage_budget_bytes;
  }
  for (int32_t m = 0; m < plan->n_memories; m++)
    PLANC_TRY(check_budget(plan, &plan->memories[m], asked[plan->memories[m].kind]));
  return NULL;
}
