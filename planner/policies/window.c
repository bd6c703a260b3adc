/* `window`: out-of-core training with adaptive-window scheduling (papers: out-of-core, 3) and best fit with caching,
 * the paper's rows "Schedule", or virtual memory (4), its rows "Schedule + VA".
 *
 * Functions are the trace's instances, variables its buffers and workspaces. Choices where the paper is silent:
 *  - nothing stays on the device from one iteration to the next, as in the paper's implementation: params and state are
 *    parked on the host and are swapped like all else;
 *  - what the host has a copy of is swapped out without a transfer, but is waited for like any other swap-out;
 *  - every op takes its fastest algorithm whatever its workspace, unless the user sets a limit, as in the
 * implementation (nnabla-ext-cuda, NNABLA_CUDNN_WORKSPACE_LIMIT, by default none);
 *  - the budget that is scheduled with is not the device's: fragmentation comes on top. The paper's users find the
 *    largest budget that works (5.1, Fig. 3); here it is lowered by what is too much and then raised by bisection.
 *    Virtual memory has it only where data of at most one chunk shares chunks (allocator.h): what is larger is rounded
 *    up to chunks, and then all of them can be used;
 *  - a caching allocator keeps its blocks from one iteration to the next. The first iteration, in which the paper's
 *    implementation records the sequences, swaps everything out after each function; then the schedule is followed
 *    until the addresses repeat, at most for as many iterations as the paper measures (5.2), and they are the plan's.
 *    In virtual memory, where each iteration would add to what is mapped, those of one that begins with nothing are;
 *  - where caching finds no room whatever is scheduled, the paper has no answer. The schedule is known beforehand, so
 *    its addresses can be planned: they are then those that other policies get, below the largest budget to schedule
 *    with whose data fit. */
#include <assert.h>
#include <stdlib.h>

#include "planner/base/code.h"
#include "planner/choose/room_search.h"
#include "planner/choose/sub_batch.h"
#include "planner/choose/walk.h"
#include "planner/memory/allocator.h"
#include "planner/memory/no_place.h"
#include "planner/policies/adaptive_window.h"
#include "planner/policies/policies.h"
#include "util/math.h"
#include "util/size.h"

/* Variables are the trace's buffers, then a workspace for each instance. */
typedef struct policy {
  const planc_evaluator *evaluator;
  const planc_problem *problem;
  const planc_trace *trace;
  planc_candidate *candidate;
  pl_arena arena;
  pl_window_sequence sequence;
  int32_t *first_use;
  pl_window_use *uses;
  int32_t *access_of_use; /* -1: a workspace */
  int64_t *bytes;         /* by variable */
  int32_t *variants;      /* by instance */
  int64_t unit;           /* of the arena */
  pl_window_steps steps;
  pl_allocator allocator;
  int32_t *handles;   /* by variable; -1 = it has no memory */
  int64_t *addresses; /* by step that takes memory */
  int64_t top;        /* bytes of the arena that are needed; beyond its size if `stuck` >= 0 */
  int32_t stuck;      /* the variable that found no room, -1 = none, */
  int32_t caller;     /* and the function that it is for */
} policy;

/* Schedules within `budget`, and by how much it is too much for the device. */
typedef planc_status (*budget_attempt)(policy *p, int64_t budget, int64_t *out_excess);

static planc_status make(policy *p);
static planc_status make_sequence(policy *p);
static void choose_algorithms(policy *p);
static planc_status check_chunks(const policy *p);
static planc_status too_small(const policy *p, int64_t room, int32_t function, int64_t need);
static planc_status find_budget(policy *p, budget_attempt try_budget, int64_t room, int64_t least, int64_t *out_fits);
static planc_status try_allocator(policy *p, int64_t budget, int64_t *out_excess);
static planc_status state(const policy *p);
static planc_status explain(const policy *p, int64_t budget, int64_t room, bool planned);
static planc_status no_place(const policy *p);
static planc_status try_planned(policy *p, int64_t budget, int64_t *out_excess);

planc_status pl_policy_window(const planc_evaluator *evaluator, planc_candidate *out) {
  const planc_problem *problem = evaluator->problem;
  PLANC_TRY(planc_candidate_rounds(problem, pl_sub_batch_asked(problem), out));
  assert(planc_order_is_of_trace(out->order)); /* a function is an instance and its position */
  PLANC_TRY(planc_candidate_schedule(problem, out));
  policy p = {.evaluator = evaluator, .problem = problem, .trace = out->trace, .candidate = out};
  p.unit = pl_allocator_unit(problem);
  planc_status status = make(&p);
  pl_allocator_free(&p.allocator);
  VEC_FREE(&p.steps);
  pl_arena_free(&p.arena);
  return status;
}

static planc_status make(policy *p) {
  int64_t room = pl_allocator_room(p->problem);
  int32_t function;
  int64_t fits;
  PLANC_TRY(make_sequence(p));
  choose_algorithms(p);
  PLANC_TRY(check_chunks(p));
  int64_t least = pl_window_least(&p->sequence, &function);
  if (least > room) return too_small(p, room, function, least);
  PLANC_TRY(find_budget(p, try_allocator, room, least, &fits));
  if (fits >= 0) {
    PLANC_TRY(state(p));
    return explain(p, fits, room, false);
  }
  if (p->problem->terms.placement != PLANC_PLACEMENT_BEST_FIT) return no_place(p);
  PLANC_TRY(find_budget(p, try_planned, room, least, &fits));
  return fits >= 0 ? explain(p, fits, room, true) : NULL; /* if nothing fits, the plan tells what it needs */
}

static bool persists(const policy *p, int32_t buffer) {
  return p->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
}

/* What other replicas send cannot come long before it is needed: it gets its memory and is fetched where it would be
 * made. */
static bool is_sent(const policy *p, int32_t buffer) {
  return p->trace->buffers[buffer].peer >= 0;
}

static int32_t workspace_of(const policy *p, int32_t instance) {
  return p->trace->n_buffers + instance;
}

/* --- The variable-sequence ---------------------------------------------------------------------------------------- */

/* No sum of sizes may overflow. */
static planc_status size_buffers(policy *p) {
  int64_t total = 0;
  for (int32_t b = 0; b < p->trace->n_buffers; b++) {
    int64_t bytes = p->trace->buffers[b].bytes;
    p->bytes[b] = pl_allocator_size(p->problem, bytes > 0 ? bytes : 1);
    total = pl_add_saturate(total, p->bytes[b]);
  }
  if (total < INT64_MAX / 4) return NULL;
  return planc_error(PLANC_BAD_INPUT, "the data of graph %s exceeds 64 bits", p->problem->job.graph->name);
}

static void append_use(policy *p, int32_t *n, int32_t variable, int32_t access, bool reads, bool keeps) {
  p->uses[*n] = (pl_window_use){.variable = variable, .reads = reads, .keeps = keeps};
  p->access_of_use[(*n)++] = access;
}

/* The uses of every instance, its workspace last. */
static planc_status list_uses(policy *p) {
  const planc_trace *trace = p->trace;
  bool *keeps;
  PLANC_TRY(PL_NEW(&p->arena, &keeps, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t i = buffer->first_access; i + 1 < buffer->first_access + buffer->n_accesses; i++) {
      keeps[trace->by_buffer[i]] = trace->accesses[trace->by_buffer[i + 1]].read >= 0;
    }
    if (persists(p, b) && buffer->n_accesses > 0)
      keeps[trace->by_buffer[buffer->first_access + buffer->n_accesses - 1]] = true;
  }
  int32_t n = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    p->first_use[i] = n;
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      bool reads = access->read >= 0 && !is_sent(p, access->buffer);
      append_use(p, &n, access->buffer, a, reads, keeps[a]);
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
  PLANC_TRY(PL_NEW(&p->arena, &p->bytes, n_variables));
  PLANC_TRY(PL_NEW(&p->arena, &p->first_use, (int64_t)n_instances + 1));
  PLANC_TRY(PL_NEW(&p->arena, &p->uses, most_uses));
  PLANC_TRY(PL_NEW(&p->arena, &p->access_of_use, most_uses));
  PLANC_TRY(PL_NEW(&p->arena, &p->variants, n_instances));
  PLANC_TRY(PL_NEW(&p->arena, &p->handles, n_variables));
  if (most_uses > INT32_MAX || n_variables > INT32_MAX) return planc_error(PLANC_INTERNAL, "window: too many accesses");
  PLANC_TRY(size_buffers(p));
  PLANC_TRY(list_uses(p));
  p->sequence = (pl_window_sequence){.n_functions = n_instances,
                                     .n_variables = (int32_t)n_variables,
                                     .first_use = p->first_use,
                                     .uses = p->uses,
                                     .bytes = p->bytes};
  return NULL;
}

/* Gives every instance its fastest algorithm up to the user's limit. */
static void choose_algorithms(policy *p) {
  const planc_costs *const *costs = p->candidate->costs;
  int64_t limit =
      p->problem->terms.settings.workspace_limit > 0 ? p->problem->terms.settings.workspace_limit : INT64_MAX;
  for (int32_t i = 0; i < p->trace->n_instances; i++) {
    const planc_instance *instance = &p->trace->instances[i];
    int64_t workspace = 0;
    if (instance->role == PLANC_ROLE_OP) {
      int32_t count;
      p->variants[i] = pl_fastest_variant(costs, instance, limit);
      workspace = pl_variants_of(costs, instance, &count)[p->variants[i]].workspace_bytes;
    }
    p->bytes[workspace_of(p, i)] = pl_allocator_size(p->problem, workspace);
  }
}

/* Chunks for all data at once and the largest workspace. */
static planc_status check_chunks(const policy *p) {
  enum { MOST_CHUNKS = 1 << 22 };
  int64_t total = 0, largest = 0, chunk_bytes = pl_allocator_chunk(p->problem);
  if (chunk_bytes == 0) return NULL;
  for (int32_t b = 0; b < p->trace->n_buffers; b++) total += p->bytes[b];
  for (int32_t i = 0; i < p->trace->n_instances; i++) {
    if (p->bytes[workspace_of(p, i)] > largest) largest = p->bytes[workspace_of(p, i)];
  }
  int64_t chunks = pl_add_saturate(total, largest) / chunk_bytes;
  if (chunks <= MOST_CHUNKS) return NULL;
  return planc_error(PLANC_USAGE, "chunks of %lld bytes would be %lld for the data of graph %s, at most %d are planned",
                     (long long)chunk_bytes, (long long)chunks, p->problem->job.graph->name, MOST_CHUNKS);
}

/* --- Addresses ---------------------------------------------------------------------------------------------------- */

enum { MOST_ITERATIONS = 100 };

/* Memory for a variable of `function`. */
static planc_status take(policy *p, int32_t function, int32_t variable, int64_t *out_address) {
  if (p->bytes[variable] == 0) return NULL;
  PLANC_TRY(pl_allocator_take(&p->allocator, p->bytes[variable], &p->handles[variable], out_address));
  if (p->handles[variable] >= 0) return NULL;
  p->stuck = variable;
  p->caller = function;
  return NULL;
}

static planc_status give(policy *p, int32_t variable) {
  if (p->bytes[variable] == 0) return NULL;
  PLANC_TRY(pl_allocator_give(&p->allocator, p->handles[variable]));
  p->handles[variable] = -1;
  return NULL;
}

/* The first iteration, up to a function that finds no room: each has its own variables and no others. */
static planc_status place_recording(policy *p) {
  for (int32_t f = 0; f < p->sequence.n_functions; f++) {
    for (int32_t u = p->first_use[f]; u < p->first_use[f + 1]; u++) {
      int64_t address;
      PLANC_TRY(take(p, f, p->uses[u].variable, &address));
      if (p->stuck >= 0) return NULL;
    }
    for (int32_t u = p->first_use[f]; u < p->first_use[f + 1]; u++) PLANC_TRY(give(p, p->uses[u].variable));
  }
  return NULL;
}

/* Gives addresses as the allocator would that sees the steps one by one, up to one that finds no room; *out_same says
 * whether they are what they were. */
static planc_status place_steps(policy *p, bool *out_same) {
  int32_t function = 0;
  *out_same = true;
  for (int64_t i = 0; i < p->steps.len; i++) {
    const pl_window_step *step = &p->steps.data[i];
    if (step->kind == PL_WINDOW_CALL) {
      function = step->use + 1;
      continue;
    }
    int32_t v = p->uses[step->use].variable;
    int64_t was = p->addresses[i];
    if (step->kind == PL_WINDOW_SWAP_IN || step->kind == PL_WINDOW_RESERVE) {
      PLANC_TRY(take(p, function, v, &p->addresses[i]));
    } else if (step->kind == PL_WINDOW_COMPLETE || step->kind == PL_WINDOW_CLEAR) {
      PLANC_TRY(give(p, v));
    }
    if (p->stuck >= 0) return NULL;
    *out_same = *out_same && was == p->addresses[i];
  }
  return NULL;
}

static planc_status place(policy *p) {
  bool caches = p->problem->terms.placement != PLANC_PLACEMENT_VMM, same = false;
  pl_allocator_free(&p->allocator);
  PLANC_TRY(pl_allocator_init(&p->allocator, p->problem));
  p->stuck = -1;
  for (int32_t v = 0; v < p->sequence.n_variables; v++) p->handles[v] = -1;
  if (caches) PLANC_TRY(place_recording(p));
  for (int32_t i = 0; p->stuck < 0 && !same && i < (caches ? MOST_ITERATIONS : 1); i++) {
    PLANC_TRY(place_steps(p, &same));
  }
  p->top = pl_allocator_arena(&p->allocator);
  if (p->stuck >= 0) p->top = pl_allocator_room(p->problem) + p->bytes[p->stuck];
  return NULL;
}

/* --- Statement ---------------------------------------------------------------------------------------------------- */

static planc_status state_take(const policy *p, int64_t step) {
  const planc_access *access = &p->trace->accesses[p->access_of_use[p->steps.data[step].use]];
  int32_t device = planc_schedule_device(p->candidate->schedule), residency;
  PLANC_TRY(planc_schedule_acquire(p->candidate->schedule, access->buffer, device, p->addresses[step], &residency));
  if (p->steps.data[step].kind != PL_WINDOW_SWAP_IN && !is_sent(p, access->buffer)) return NULL;
  return planc_schedule_prefetch(p->candidate->schedule, residency, access->read);
}

/* Delivers a result behind its last access. */
static planc_status state_result(const policy *p, int32_t access, int32_t residency) {
  const planc_buffer *buffer = &p->trace->buffers[p->trace->accesses[access].buffer];
  bool last = p->trace->by_buffer[buffer->first_access + buffer->n_accesses - 1] == access;
  return last && (buffer->flags & PLANC_BUFFER_RESULT) ? planc_schedule_deliver(p->candidate->schedule, residency)
                                                       : NULL;
}

static planc_status state_swap_out(const policy *p, int32_t access) {
  int32_t buffer = p->trace->accesses[access].buffer, residency = planc_schedule_open(p->candidate->schedule, buffer);
  PLANC_TRY(state_result(p, access, residency));
  if (planc_schedule_on_host(p->candidate->schedule, buffer, planc_schedule_content(p->candidate->schedule, residency)))
    return NULL;
  return planc_schedule_offload(p->candidate->schedule, residency, planc_schedule_host(p->candidate->schedule));
}

static planc_status state_clear(const policy *p, int32_t access) {
  int32_t residency = planc_schedule_open(p->candidate->schedule, p->trace->accesses[access].buffer);
  PLANC_TRY(state_result(p, access, residency));
  return planc_schedule_release(p->candidate->schedule, residency);
}

/* States one step; *workspace is where the workspace of the next call lies. */
static planc_status state_step(const policy *p, int64_t index, int64_t *workspace) {
  const pl_window_step *step = &p->steps.data[index];
  if (step->kind == PL_WINDOW_CALL) {
    return planc_schedule_exec(p->candidate->schedule, step->use, p->variants[step->use], *workspace, false);
  }
  int32_t access = p->access_of_use[step->use];
  if (access < 0) {
    if (step->kind == PL_WINDOW_RESERVE) *workspace = p->addresses[index];
    return NULL;
  }
  int32_t buffer = p->trace->accesses[access].buffer;
  switch (step->kind) {
    case PL_WINDOW_SWAP_IN:
    case PL_WINDOW_RESERVE:
      return state_take(p, index);
    case PL_WINDOW_SWAP_OUT:
      return state_swap_out(p, access);
    case PL_WINDOW_COMPLETE:
      return planc_schedule_release(p->candidate->schedule, planc_schedule_open(p->candidate->schedule, buffer));
    case PL_WINDOW_CLEAR:
      return state_clear(p, access);
    default:
      return NULL;
  }
}

static planc_status state(const policy *p) {
  int64_t workspace = 0;
  int32_t host = planc_schedule_host(p->candidate->schedule), residency;
  for (int32_t b = 0; b < p->trace->n_buffers; b++) {
    if (persists(p, b) && p->trace->buffers[b].n_accesses > 0) {
      PLANC_TRY(planc_schedule_park(p->candidate->schedule, b, host, &residency));
    }
  }
  for (int64_t i = 0; i < p->steps.len; i++) PLANC_TRY(state_step(p, i, &workspace));
  PLANC_TRY(pl_allocator_map(&p->allocator, p->candidate->schedule));
  return planc_schedule_finish(p->candidate->schedule);
}

/* --- The budget to schedule with ---------------------------------------------------------------------------------- */

static planc_status schedule_within(policy *p, int64_t budget) {
  const planc_settings *settings = &p->problem->terms.settings;
  pl_schedule_window window = {.budget_bytes = budget,
                               .window_bytes = pl_muldiv_floor(budget, 3, 2),
                               .per_occurrence = settings->window_per_use};
  if (settings->window > 0) window.window_bytes = settings->window;
  if (window.window_bytes > INT64_MAX / 2) window.window_bytes = INT64_MAX / 2;
  p->steps.len = 0;
  PLANC_TRY(pl_window_schedule(&p->sequence, &window, &p->steps));
  return PL_NEW(&p->arena, &p->addresses, p->steps.len);
}

static int64_t excess_of(int64_t bytes, int64_t most) {
  return bytes > most ? bytes - most : 0;
}

/* At the addresses of the allocator. */
static planc_status try_allocator(policy *p, int64_t budget, int64_t *out_excess) {
  PLANC_TRY(schedule_within(p, budget));
  PLANC_TRY(place(p));
  *out_excess = excess_of(p->top, pl_allocator_room(p->problem));
  return NULL;
}

/* States the schedule, for addresses to be planned. */
static planc_status try_planned(policy *p, int64_t budget, int64_t *out_excess) {
  int64_t peak;
  PLANC_TRY(schedule_within(p, budget));
  for (int64_t i = 0; i < p->steps.len; i++) p->addresses[i] = PLANC_BLANK;
  PLANC_TRY(planc_candidate_schedule(p->problem, p->candidate));
  PLANC_TRY(state(p));
  PLANC_TRY(p->evaluator->peak(p->evaluator, p->candidate, &peak));
  *out_excess = excess_of(peak, p->problem->terms.budgets[PLANC_MEMORY_DEVICE]);
  return NULL;
}

/* Leaves the schedule of the largest budget found that fits the device, else that of the least budget; *out_fits is
 * that budget, -1 where none fits. */
static planc_status find_budget(policy *p, budget_attempt try_budget, int64_t room, int64_t least, int64_t *out_fits) {
  pl_room_search search = pl_room_search_from(room, least, p->unit);
  int64_t tried, excess;
  do {
    tried = search.room;
    PLANC_TRY(try_budget(p, tried, &excess));
  } while (pl_room_search_on(&search, excess));
  *out_fits = search.fits;
  return search.fits >= 0 && search.fits != tried ? try_budget(p, search.fits, &excess) : NULL;
}

static planc_status explain(const policy *p, int64_t budget, int64_t room, bool planned) {
  char text[PL_SIZE_TEXT], whole[PL_SIZE_TEXT];
  return planc_candidate_explain(p->candidate, "scheduled within %s of %s, the most found that fits%s",
                                 pl_size_format(budget, text), pl_size_format(room, whole),
                                 planned ? ", at addresses that are chosen together" : "");
}

static pl_occupant occupant_of(const policy *p, int32_t variable) {
  int32_t n_buffers = p->trace->n_buffers;
  int32_t what = variable < n_buffers ? variable : pl_workspace_of(variable - n_buffers);
  return (pl_occupant){what, p->bytes[variable]};
}

static planc_status no_place(const policy *p) {
  pl_no_place it = {.trace = p->trace,
                    .homeless = occupant_of(p, p->stuck),
                    .instance = p->caller,
                    .room = pl_allocator_room(p->problem)};
  char *why;
  for (int32_t v = 0; v < p->sequence.n_variables; v++)
    if (p->handles[v] >= 0) pl_no_place_beside(&it, occupant_of(p, v));
  PLANC_TRY(pl_no_place_tell(&it, &why));
  planc_status status = planc_error(PLANC_INFEASIBLE, "the memory is fragmented%s", why);
  free(why);
  return status;
}

static planc_status too_small(const policy *p, int64_t room, int32_t function, int64_t need) {
  int64_t chunk_bytes = pl_allocator_chunk(p->problem);
  int64_t whole = pl_align_up(need, chunk_bytes > 0 ? chunk_bytes : PLANC_ALIGNMENT);
  int64_t least = pl_add_saturate(pl_reserved(p->problem), whole);
  return planc_infeasible((planc_shortage){.bytes = least}, "op %s needs %lld bytes%s, %lld are left for data",
                          planc_trace_op(p->trace, function)->name, (long long)whole,
                          chunk_bytes > 0 ? " in whole chunks" : "", (long long)room);
}
