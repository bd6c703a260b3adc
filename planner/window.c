/* `window`: out-of-core training with adaptive-window scheduling (papers: out-of-core, 3) and best fit with caching,
 * the paper's rows "Schedule", or virtual memory (4), its rows "Schedule + VA".
 *
 * Functions are the trace's instances, variables its buffers and workspaces. Choices where the paper is silent:
 *  - params and state are planc's boundary: they stay on the device, in one block, and the schedule has the rest. The
 *    paper's implementation swaps them out as well, since nothing there stays from one iteration to the next;
 *  - what the host has a copy of is swapped out without a transfer, but is waited for like any other swap-out;
 *  - every op takes its fastest algorithm whose workspace fits into all that there is beside its operands, or where no
 *    plan comes of that, into a half or a quarter of it, or the one with the least workspace;
 *  - the budget that is scheduled with is not the device's: fragmentation comes on top. The paper's users find the
 *    largest budget that works (5.1, Fig. 3); here it is lowered by what is too much and then raised by bisection.
 *    Virtual memory has no such fragmentation: sizes are rounded up to chunks, and then all of it can be used. */
#include "planner/window.h"

#include "planner/allocator.h"
#include "planner/policies.h"
#include "planner/walk.h"
#include "util/math.h"

/* Variables are the trace's buffers, then a workspace for each instance. */
typedef struct policy {
  const planc_problem *problem;
  const planc_trace *trace;
  planc_schedule *schedule;
  planc_arena arena;
  planc_window_sequence sequence;
  int32_t *first_use;
  planc_window_use *uses;
  int32_t *access_of_use; /* -1: a workspace */
  int64_t *bytes;         /* by variable */
  int32_t *variants;      /* by instance */
  int64_t unit;           /* of sizes */
  planc_window_steps steps;
  planc_allocator allocator;
  int32_t *handles;   /* by variable that has memory */
  int64_t *addresses; /* by step that takes memory */
  int64_t resident_bytes;
  int64_t *resident_at; /* by buffer: the address of what persists */
  int64_t top;          /* bytes of the arena that are needed; beyond its size if `homeless` >= 0 */
  int64_t homeless;     /* the step that found no room, -1 = none */
} policy;

static bool persists(const policy *p, int32_t buffer) {
  return p->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
}

static int64_t rounded(int64_t bytes, int64_t unit) {
  return planc_align_up(bytes > 0 ? bytes : 1, unit);
}

static int32_t workspace_of(const policy *p, int32_t instance) {
  return p->trace->n_buffers + instance;
}

/* --- The variable-sequence ---------------------------------------------------------------------------------------- */

enum { MOST_CHUNKS = 1 << 22 };

/* Sizes of buffers, and no sum of sizes may overflow. */
static planc_status size_buffers(policy *p) {
  int64_t total = 0;
  for (int32_t b = 0; b < p->trace->n_buffers; b++) {
    int64_t bytes = p->trace->buffers[b].bytes;
    p->bytes[b] = rounded(bytes, p->unit);
    total = planc_add_saturate(total, p->bytes[b]);
    if (persists(p, b)) p->resident_bytes = planc_add_saturate(p->resident_bytes, rounded(bytes, PLANC_ALIGNMENT));
  }
  p->resident_bytes = planc_align_up(p->resident_bytes, p->unit);
  if (p->problem->placement == PLANC_PLACEMENT_VMM && total / p->unit > MOST_CHUNKS) {
    return planc_error(PLANC_USAGE,
                       "chunks of %lld bytes would be %lld for the data of graph %s, at most %d are planned",
                       (long long)p->unit, (long long)(total / p->unit), p->problem->graph->name, MOST_CHUNKS);
  }
  if (total < INT64_MAX / 4) return NULL;
  return planc_error(PLANC_BAD_INPUT, "the data of graph %s exceeds 64 bits", p->problem->graph->name);
}

static void append_use(policy *p, int32_t *n, int32_t variable, int32_t access, bool reads, bool keeps) {
  p->uses[*n] = (planc_window_use){.variable = variable, .reads = reads, .keeps = keeps};
  p->access_of_use[(*n)++] = access;
}

/* The uses of every instance, its workspace last. */
static planc_status list_uses(policy *p) {
  const planc_trace *trace = p->trace;
  bool *keeps;
  PLANC_TRY(PLANC_NEW(&p->arena, &keeps, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t i = buffer->first_access; i + 1 < buffer->first_access + buffer->n_accesses; i++) {
      keeps[trace->by_buffer[i]] = trace->accesses[trace->by_buffer[i + 1]].read >= 0;
    }
  }
  int32_t n = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    p->first_use[i] = n;
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      if (!persists(p, access->buffer)) append_use(p, &n, access->buffer, a, access->read >= 0, keeps[a]);
    }
    append_use(p, &n, workspace_of(p, i), -1, false, false);
  }
  p->first_use[trace->n_instances] = n;
  return NULL;
}

static planc_status make_sequence(policy *p) {
  int32_t n_instances = p->trace->n_instances;
  int64_t most_uses = (int64_t)p->trace->n_accesses + n_instances,
          n_variables = (int64_t)p->trace->n_buffers + n_instances;
  PLANC_TRY(PLANC_NEW(&p->arena, &p->bytes, n_variables));
  PLANC_TRY(PLANC_NEW(&p->arena, &p->first_use, (int64_t)n_instances + 1));
  PLANC_TRY(PLANC_NEW(&p->arena, &p->uses, most_uses));
  PLANC_TRY(PLANC_NEW(&p->arena, &p->access_of_use, most_uses));
  PLANC_TRY(PLANC_NEW(&p->arena, &p->variants, n_instances));
  PLANC_TRY(PLANC_NEW(&p->arena, &p->resident_at, p->trace->n_buffers));
  PLANC_TRY(PLANC_NEW(&p->arena, &p->handles, n_variables));
  if (most_uses > INT32_MAX || n_variables > INT32_MAX) return planc_error(PLANC_INTERNAL, "window: too many accesses");
  PLANC_TRY(size_buffers(p));
  PLANC_TRY(list_uses(p));
  p->sequence = (planc_window_sequence){.n_functions = n_instances,
                                        .n_variables = (int32_t)n_variables,
                                        .first_use = p->first_use,
                                        .uses = p->uses,
                                        .bytes = p->bytes};
  return NULL;
}

/* Gives every instance the fastest algorithm whose workspace fits into `room` beside its operands. */
static void choose_algorithms(policy *p, const planc_costs *costs, int64_t room) {
  for (int32_t i = 0; i < p->trace->n_instances; i++) {
    const planc_instance *instance = &p->trace->instances[i];
    int64_t left = room, workspace = 0;
    for (int32_t u = p->first_use[i]; u < p->first_use[i + 1] - 1; u++) left -= p->bytes[p->uses[u].variable];
    if (instance->role == PLANC_ROLE_OP) {
      int32_t count;
      p->variants[i] = planc_fastest_variant(costs, instance, left > 0 ? left / p->unit * p->unit : 0);
      workspace =
          planc_costs_variants(costs, instance->op, planc_costs_batch(costs, instance->batch), &count)[p->variants[i]]
              .workspace_bytes;
    }
    p->bytes[workspace_of(p, i)] = planc_align_up(workspace, p->unit);
  }
}

/* --- Addresses ---------------------------------------------------------------------------------------------------- */

/* What persists is one block, which stays. */
static planc_status place_resident(policy *p) {
  int32_t handle;
  int64_t address;
  if (p->resident_bytes == 0) return NULL;
  PLANC_TRY(planc_allocator_take(&p->allocator, p->resident_bytes, &handle, &address));
  for (int32_t b = 0; b < p->trace->n_buffers; b++) {
    if (!persists(p, b)) continue;
    p->resident_at[b] = address;
    address += rounded(p->trace->buffers[b].bytes, PLANC_ALIGNMENT);
  }
  return NULL;
}

/* Gives addresses as the allocator would that sees the steps one by one, up to one that finds no room. */
static planc_status place_steps(policy *p) {
  PLANC_TRY(place_resident(p));
  for (int64_t i = 0; i < p->steps.len; i++) {
    const planc_window_step *step = &p->steps.data[i];
    if (step->kind == PLANC_WINDOW_CALL) continue;
    int32_t v = p->uses[step->use].variable;
    if (p->bytes[v] == 0) continue;
    if (step->kind == PLANC_WINDOW_SWAP_IN || step->kind == PLANC_WINDOW_RESERVE) {
      PLANC_TRY(planc_allocator_take(&p->allocator, p->bytes[v], &p->handles[v], &p->addresses[i]));
      if (p->handles[v] < 0) {
        p->homeless = i;
        return NULL;
      }
    } else if (step->kind == PLANC_WINDOW_COMPLETE || step->kind == PLANC_WINDOW_CLEAR) {
      PLANC_TRY(planc_allocator_give(&p->allocator, p->handles[v]));
    }
  }
  return NULL;
}

static planc_status place(policy *p) {
  planc_allocator_free(&p->allocator);
  PLANC_TRY(planc_allocator_init(&p->allocator, p->problem));
  PLANC_TRY(PLANC_NEW(&p->arena, &p->addresses, p->steps.len));
  p->homeless = -1;
  PLANC_TRY(place_steps(p));
  p->top = planc_allocator_arena(&p->allocator);
  if (p->homeless >= 0)
    p->top = planc_arena_room(p->problem) + p->bytes[p->uses[p->steps.data[p->homeless].use].variable];
  return NULL;
}

/* --- Statement ---------------------------------------------------------------------------------------------------- */

static planc_status state_take(const policy *p, int64_t step) {
  const planc_access *access = &p->trace->accesses[p->access_of_use[p->steps.data[step].use]];
  int32_t residency;
  PLANC_TRY(planc_schedule_acquire(p->schedule, access->buffer, p->addresses[step], &residency));
  if (p->steps.data[step].kind != PLANC_WINDOW_SWAP_IN) return NULL;
  return planc_schedule_prefetch(p->schedule, residency, access->read);
}

static planc_status state_swap_out(const policy *p, int32_t buffer) {
  int32_t residency = planc_schedule_open(p->schedule, buffer);
  if (planc_schedule_on_host(p->schedule, buffer, planc_schedule_content(p->schedule, residency))) return NULL;
  return planc_schedule_offload(p->schedule, residency);
}

static planc_status state_clear(const policy *p, int32_t access) {
  const planc_buffer *buffer = &p->trace->buffers[p->trace->accesses[access].buffer];
  int32_t residency = planc_schedule_open(p->schedule, p->trace->accesses[access].buffer);
  bool last = p->trace->by_buffer[buffer->first_access + buffer->n_accesses - 1] == access;
  if (last && (buffer->flags & PLANC_BUFFER_RESULT)) PLANC_TRY(planc_schedule_deliver(p->schedule, residency));
  return planc_schedule_release(p->schedule, residency);
}

/* States one step; *workspace is where the workspace of the next call lies. */
static planc_status state_step(const policy *p, int64_t index, int64_t *workspace) {
  const planc_window_step *step = &p->steps.data[index];
  if (step->kind == PLANC_WINDOW_CALL) {
    return planc_schedule_exec(p->schedule, step->use, p->variants[step->use], *workspace, false);
  }
  int32_t access = p->access_of_use[step->use];
  if (access < 0) {
    if (step->kind == PLANC_WINDOW_RESERVE) *workspace = p->addresses[index];
    return NULL;
  }
  int32_t buffer = p->trace->accesses[access].buffer;
  switch (step->kind) {
    case PLANC_WINDOW_SWAP_IN:
    case PLANC_WINDOW_RESERVE:
      return state_take(p, index);
    case PLANC_WINDOW_SWAP_OUT:
      return state_swap_out(p, buffer);
    case PLANC_WINDOW_COMPLETE:
      return planc_schedule_release(p->schedule, planc_schedule_open(p->schedule, buffer));
    case PLANC_WINDOW_CLEAR:
      return state_clear(p, access);
    default:
      return NULL;
  }
}

static planc_status state(const policy *p) {
  int64_t workspace = 0;
  int32_t residency;
  for (int32_t b = 0; b < p->trace->n_buffers; b++) {
    if (persists(p, b)) PLANC_TRY(planc_schedule_boundary(p->schedule, b, p->resident_at[b], &residency));
  }
  for (int64_t i = 0; i < p->steps.len; i++) PLANC_TRY(state_step(p, i, &workspace));
  PLANC_TRY(planc_allocator_map(&p->allocator, p->schedule));
  return planc_schedule_finish(p->schedule);
}

/* --- The budget to schedule with ---------------------------------------------------------------------------------- */

static planc_status try_budget(policy *p, int64_t budget) {
  const planc_problem *problem = p->problem;
  planc_window window = {.budget_bytes = budget,
                         .window_bytes = planc_muldiv_floor(budget, 3, 2),
                         .per_occurrence = problem->window_per_use};
  if (problem->window_bytes > 0) window.window_bytes = problem->window_bytes;
  if (window.window_bytes > INT64_MAX / 2) window.window_bytes = INT64_MAX / 2;
  p->steps.len = 0;
  PLANC_TRY(planc_window_schedule(&p->sequence, &window, &p->steps));
  return place(p);
}

enum { MOST_TRIES = 8 };

/* Leaves the schedule of the largest budget found that fits `room`, else that of the least budget. */
static planc_status find_budget(policy *p, int64_t room, int64_t least, bool *out_fits) {
  int64_t fits = -1, fails = INT64_MAX, budget = room - p->resident_bytes, tried = -1;
  for (int32_t tries = 0; tries < MOST_TRIES && budget != tried; tries++) {
    PLANC_TRY(try_budget(p, budget));
    tried = budget;
    if (p->top <= room) {
      fits = budget;
      if (fails == INT64_MAX) break;
    } else {
      fails = budget;
    }
    if (fits < 0) {
      budget = tries + 2 < MOST_TRIES && budget - (p->top - room) > least ? budget - (p->top - room) : least;
    } else {
      budget = fits + (fails - fits) / 2 / p->unit * p->unit;
    }
  }
  *out_fits = fits >= 0;
  return fits >= 0 && fits != tried ? try_budget(p, fits) : NULL;
}

static planc_status no_place(const policy *p) {
  int64_t step = p->homeless, bytes = p->bytes[p->uses[p->steps.data[step].use].variable];
  while (p->steps.data[step].kind != PLANC_WINDOW_CALL) step++;
  return planc_error(PLANC_INFEASIBLE, "op %s finds no %lld bytes in one piece: the memory is fragmented",
                     planc_trace_op(p->trace, p->steps.data[step].use)->name, (long long)bytes);
}

static planc_status too_small(const policy *p, int64_t room, int32_t function, int64_t need) {
  return planc_error(PLANC_INFEASIBLE, "op %s needs %lld bytes, %lld are left beside parameters and state",
                     planc_trace_op(p->trace, function)->name, (long long)need,
                     (long long)(room > p->resident_bytes ? room - p->resident_bytes : 0));
}

/* Workspaces may take what there is beside the operands, then half of it and so on; at last as little as can be. */
enum { LEAST_SHARE = 8 };

static planc_status make(policy *p, const planc_candidate *candidate) {
  int64_t room = planc_arena_room(p->problem) / p->unit * p->unit;
  PLANC_TRY(make_sequence(p));
  bool fits = false;
  for (int64_t share = 1; share <= LEAST_SHARE && !fits; share *= 2) {
    choose_algorithms(p, candidate->costs, share < LEAST_SHARE ? (room - p->resident_bytes) / share : 0);
    int32_t function;
    int64_t least = planc_window_least(&p->sequence, &function);
    if (least <= room - p->resident_bytes) {
      PLANC_TRY(find_budget(p, room, least, &fits));
    } else if (share == LEAST_SHARE) {
      return too_small(p, room, function, least);
    }
  }
  return fits ? state(p) : no_place(p);
}

planc_status planc_policy_window(const planc_problem *problem, planc_candidate *out) {
  PLANC_TRY(planc_candidate_rounds(problem, problem->sub_batch ? problem->sub_batch : problem->batch, out));
  PLANC_TRY(planc_schedule_new(out->trace, out->costs, &out->schedule));
  policy p = {.problem = problem, .trace = out->trace, .schedule = out->schedule};
  p.unit = planc_allocator_unit(problem);
  planc_status status = make(&p, out);
  planc_allocator_free(&p.allocator);
  VEC_FREE(&p.steps);
  planc_arena_free(&p.arena);
  return status;
}
