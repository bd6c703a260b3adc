/* `window`: out-of-core training with adaptive-window scheduling (papers: out-of-core, 3) and best fit with caching,
 * the paper's rows "Schedule", or virtual memory (4), its rows "Schedule + VA".
 *
 * What is scheduled are the trace's instances, its buffers and their workspaces. Choices where the paper is silent:
 *  - nothing stays on the device from one iteration to the next, as in the paper's implementation: params and state are
 *    parked on the host and are swapped like all else;
 *  - what the host has a copy of is swapped out without a transfer, but is waited for like any other swap-out;
 *  - every op takes its fastest algorithm whatever its workspace, unless the user sets a limit, as in the
 *    implementation (nnabla-ext-cuda, NNABLA_CUDNN_WORKSPACE_LIMIT, by default none);
 *  - the budget that is scheduled with is not the device's: fragmentation comes on top. The paper's users find the
 *    largest budget that works (5.1, Fig. 3); here it is lowered by what is too much and then raised by bisection.
 *    Virtual memory has it only where data of at most one chunk shares chunks (allocator.h): what is larger is rounded
 *    up to chunks, and then all of them can be used;
 *  - a caching allocator keeps its blocks from one iteration to the next. The first iteration, in which the paper's
 *    implementation records the sequences, swaps everything out after each instance; then the schedule is followed
 *    until the addresses repeat, at most for as many iterations as the paper measures (5.2), and they are the plan's.
 *    In virtual memory, where each iteration would add to what is mapped, those of one that begins with nothing are;
 *  - where caching finds no room whatever is scheduled, the paper has no answer. The schedule is known beforehand, so
 *    its addresses can be planned: they are then those that other policies get, below the largest budget to schedule
 *    with whose data fit. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/op_place.h"
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

/* The sequence's buffers are the trace's, then a workspace for each instance. */
typedef struct windowing {
  const planc_evaluator *evaluator;
  const planc_problem *problem;
  const planc_trace *trace;
  planc_candidate *candidate;
  pl_arena arena;
  pl_window_sequence sequence;
  int32_t *first_use;
  pl_window_use *uses;
  int32_t *access_of_use; /* -1: a workspace */
  int64_t *bytes;         /* by buffer of the sequence */
  int32_t *variants;      /* by instance */
  int64_t unit;           /* of the arena */
  pl_window_steps steps;
  pl_allocator allocator;
  int32_t *handles;   /* by buffer of the sequence; -1 = it has no memory */
  int64_t *addresses; /* by step that takes memory */
  int64_t top;        /* bytes of the arena that are needed; beyond its size if `stuck` >= 0 */
  int32_t stuck;      /* the buffer of the sequence that found no room, -1 = none, */
  int32_t stuck_at;   /* and the instance that it is for */
} windowing;

/* Schedules within `budget`, and by how much it is too much for the device. */
typedef planc_status (*budget_attempt)(windowing *w, int64_t budget, int64_t *out_excess);

static planc_status make(windowing *w);
static planc_status make_sequence(windowing *w);
static void choose_algorithms(windowing *w);
static planc_status check_chunks(const windowing *w);
static planc_status find_budget(windowing *w, budget_attempt try_budget, int64_t room, int64_t least,
                                int64_t *out_fits);
static planc_status try_allocator(windowing *w, int64_t budget, int64_t *out_excess);
static planc_status try_planned(windowing *w, int64_t budget, int64_t *out_excess);
static planc_status state(const windowing *w);
static planc_status explain(const windowing *w, int64_t budget, int64_t room, bool planned);
static planc_status no_place(const windowing *w);
static planc_status too_small(const windowing *w, int64_t room, int32_t instance, int64_t need);

planc_status pl_policy_window(const planc_evaluator *evaluator, planc_candidate *out) {
  const planc_problem *problem = evaluator->problem;
  PLANC_TRY(planc_candidate_rounds(problem, pl_sub_batch_asked(problem), out));
  assert(planc_order_is_of_trace(out->order)); /* an instance's number is its position */
  PLANC_TRY(planc_candidate_schedule(problem, out));
  windowing w = {.evaluator = evaluator, .problem = problem, .trace = out->trace, .candidate = out};
  w.unit = pl_allocator_unit(&problem->terms);
  planc_status status = make(&w);
  pl_allocator_free(&w.allocator);
  VEC_FREE(&w.steps);
  pl_arena_free(&w.arena);
  return status;
}

static planc_status make(windowing *w) {
  int64_t room = pl_allocator_room(w->problem);
  int32_t instance;
  int64_t fits;
  PLANC_TRY(make_sequence(w));
  choose_algorithms(w);
  PLANC_TRY(check_chunks(w));
  int64_t least = pl_window_least(&w->sequence, &instance);
  if (least > room) return too_small(w, room, instance, least);
  PLANC_TRY(find_budget(w, try_allocator, room, least, &fits));
  if (fits >= 0) {
    PLANC_TRY(state(w));
    return explain(w, fits, room, false);
  }
  if (w->problem->terms.placement != PLANC_PLACEMENT_BEST_FIT) return no_place(w);
  PLANC_TRY(find_budget(w, try_planned, room, least, &fits));
  return fits >= 0 ? explain(w, fits, room, true) : NULL; /* if nothing fits, the plan tells what it needs */
}

static bool persists(const windowing *w, int32_t buffer) {
  return w->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
}

/* What other replicas send gets memory, and is fetched, where its reader asks for it (unlike in walks, pl_reception).
 */
static bool is_sent(const windowing *w, int32_t buffer) {
  return w->trace->buffers[buffer].peer >= 0;
}

static int32_t workspace_of(const windowing *w, int32_t instance) {
  return w->trace->n_buffers + instance;
}

/* --- The sequence ------------------------------------------------------------------------------------------------- */

static planc_status size_buffers(windowing *w);
static planc_status list_uses(windowing *w);
static void append_use(windowing *w, int32_t *n, int32_t buffer, int32_t access, bool reads, bool keeps);

static planc_status make_sequence(windowing *w) {
  int32_t n_instances = w->trace->n_instances;
  int64_t most_uses = (int64_t)w->trace->n_accesses + n_instances,
          n_buffers = (int64_t)w->trace->n_buffers + n_instances;
  PLANC_TRY(PL_NEW(&w->arena, &w->bytes, n_buffers));
  PLANC_TRY(PL_NEW(&w->arena, &w->first_use, (int64_t)n_instances + 1));
  PLANC_TRY(PL_NEW(&w->arena, &w->uses, most_uses));
  PLANC_TRY(PL_NEW(&w->arena, &w->access_of_use, most_uses));
  PLANC_TRY(PL_NEW(&w->arena, &w->variants, n_instances));
  PLANC_TRY(PL_NEW(&w->arena, &w->handles, n_buffers));
  if (most_uses > INT32_MAX || n_buffers > INT32_MAX) return planc_error(PLANC_INTERNAL, "window: too many accesses");
  PLANC_TRY(size_buffers(w));
  PLANC_TRY(list_uses(w));
  w->sequence = (pl_window_sequence){.n_instances = n_instances,
                                     .n_buffers = (int32_t)n_buffers,
                                     .first_use = w->first_use,
                                     .uses = w->uses,
                                     .bytes = w->bytes};
  return NULL;
}

/* No sum of sizes may overflow. */
static planc_status size_buffers(windowing *w) {
  int64_t total = 0;
  for (int32_t b = 0; b < w->trace->n_buffers; b++) {
    int64_t bytes = w->trace->buffers[b].bytes;
    w->bytes[b] = pl_allocator_size(&w->problem->terms, bytes > 0 ? bytes : 1);
    total = pl_add_saturate(total, w->bytes[b]);
  }
  if (total < INT64_MAX / 4) return NULL;
  return planc_error(PLANC_BAD_INPUT, "the data of graph %s exceeds 64 bits", w->problem->job.graph->name);
}

/* The uses of every instance, its workspace last. */
static planc_status list_uses(windowing *w) {
  const planc_trace *trace = w->trace;
  bool *keeps;
  PLANC_TRY(PL_NEW(&w->arena, &keeps, trace->n_accesses));
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t i = buffer->first_access; i + 1 < buffer->first_access + buffer->n_accesses; i++) {
      keeps[trace->by_buffer[i]] = trace->accesses[trace->by_buffer[i + 1]].read >= 0;
    }
    if (persists(w, b) && buffer->n_accesses > 0)
      keeps[trace->by_buffer[buffer->first_access + buffer->n_accesses - 1]] = true;
  }
  int32_t n = 0;
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *instance = &trace->instances[i];
    w->first_use[i] = n;
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      bool reads = access->read >= 0 && !is_sent(w, access->buffer);
      append_use(w, &n, access->buffer, a, reads, keeps[a]);
    }
    append_use(w, &n, workspace_of(w, i), -1, false, false);
  }
  w->first_use[trace->n_instances] = n;
  return NULL;
}

static void append_use(windowing *w, int32_t *n, int32_t buffer, int32_t access, bool reads, bool keeps) {
  w->uses[*n] = (pl_window_use){.buffer = buffer, .reads = reads, .keeps = keeps};
  w->access_of_use[(*n)++] = access;
}

/* --- What is asked ------------------------------------------------------------------------------------------------ */

/* Gives every instance its fastest algorithm up to the user's limit. */
static void choose_algorithms(windowing *w) {
  const planc_costs *const *costs = w->candidate->costs;
  int64_t limit =
      w->problem->terms.settings.workspace_limit > 0 ? w->problem->terms.settings.workspace_limit : INT64_MAX;
  for (int32_t i = 0; i < w->trace->n_instances; i++) {
    const planc_instance *instance = &w->trace->instances[i];
    int64_t workspace = 0;
    if (instance->role == PLANC_ROLE_OP) {
      int32_t count;
      w->variants[i] = pl_fastest_variant(costs, instance, limit);
      workspace = pl_variants_of(costs, instance, &count)[w->variants[i]].workspace_bytes;
    }
    w->bytes[workspace_of(w, i)] = pl_allocator_size(&w->problem->terms, workspace);
  }
}

/* Chunks for all data at once and the largest workspace. */
static planc_status check_chunks(const windowing *w) {
  enum { MAX_CHUNKS = 1 << 22 };
  int64_t total = 0, largest = 0, chunk_bytes = pl_arena_chunk(&w->problem->terms);
  if (chunk_bytes == 0) return NULL;
  for (int32_t b = 0; b < w->trace->n_buffers; b++) total += w->bytes[b];
  for (int32_t i = 0; i < w->trace->n_instances; i++) {
    if (w->bytes[workspace_of(w, i)] > largest) largest = w->bytes[workspace_of(w, i)];
  }
  int64_t chunks = pl_add_saturate(total, largest) / chunk_bytes;
  if (chunks <= MAX_CHUNKS) return NULL;
  return planc_error(PLANC_USAGE, "chunks of %lld bytes would be %lld for the data of graph %s, at most %d are planned",
                     (long long)chunk_bytes, (long long)chunks, w->problem->job.graph->name, MAX_CHUNKS);
}

/* --- The budget to schedule with ---------------------------------------------------------------------------------- */

static planc_status schedule_within(windowing *w, int64_t budget);
static int64_t excess_of(int64_t bytes, int64_t most);
static planc_status place(windowing *w);

/* Leaves the schedule of the largest budget found that fits the device, else that of the least budget; *out_fits is
 * that budget, -1 where none fits. */
static planc_status find_budget(windowing *w, budget_attempt try_budget, int64_t room, int64_t least,
                                int64_t *out_fits) {
  pl_room_search search = pl_room_search_from(room, least, w->unit);
  int64_t tried, excess;
  do {
    tried = search.room;
    PLANC_TRY(try_budget(w, tried, &excess));
  } while (pl_room_search_on(&search, excess));
  *out_fits = search.fits;
  return search.fits >= 0 && search.fits != tried ? try_budget(w, search.fits, &excess) : NULL;
}

/* At the addresses of the allocator. */
static planc_status try_allocator(windowing *w, int64_t budget, int64_t *out_excess) {
  PLANC_TRY(schedule_within(w, budget));
  PLANC_TRY(place(w));
  *out_excess = excess_of(w->top, pl_allocator_room(w->problem));
  return NULL;
}

/* States the schedule, for addresses to be planned. */
static planc_status try_planned(windowing *w, int64_t budget, int64_t *out_excess) {
  int64_t peak;
  PLANC_TRY(schedule_within(w, budget));
  for (int64_t i = 0; i < w->steps.len; i++) w->addresses[i] = PLANC_BLANK;
  PLANC_TRY(planc_candidate_schedule(w->problem, w->candidate));
  PLANC_TRY(state(w));
  PLANC_TRY(w->evaluator->peak(w->evaluator, w->candidate, &peak));
  *out_excess = excess_of(peak, w->problem->terms.budgets[PLANC_MEMORY_DEVICE]);
  return NULL;
}

static planc_status schedule_within(windowing *w, int64_t budget) {
  const planc_settings *settings = &w->problem->terms.settings;
  pl_schedule_window window = {.budget_bytes = budget,
                               .window_bytes = pl_muldiv_floor(budget, 3, 2),
                               .per_occurrence = settings->window_per_use};
  if (settings->window > 0) window.window_bytes = settings->window;
  if (window.window_bytes > INT64_MAX / 2) window.window_bytes = INT64_MAX / 2;
  w->steps.len = 0;
  PLANC_TRY(pl_window_schedule(&w->sequence, &window, &w->steps));
  return PL_NEW(&w->arena, &w->addresses, w->steps.len);
}

static int64_t excess_of(int64_t bytes, int64_t most) {
  return bytes > most ? bytes - most : 0;
}

/* --- Addresses ---------------------------------------------------------------------------------------------------- */

enum { MAX_ITERATIONS = 100 };

static planc_status place_recording(windowing *w);
static planc_status take(windowing *w, int32_t instance, int32_t buffer, int64_t *out_address);
static planc_status give(windowing *w, int32_t buffer);
static planc_status place_steps(windowing *w, bool *out_same);

static planc_status place(windowing *w) {
  bool caches = w->problem->terms.placement != PLANC_PLACEMENT_VMM, same = false;
  pl_allocator_free(&w->allocator);
  PLANC_TRY(pl_allocator_init(&w->allocator, w->problem));
  w->stuck = -1;
  for (int32_t b = 0; b < w->sequence.n_buffers; b++) w->handles[b] = -1;
  if (caches) PLANC_TRY(place_recording(w));
  for (int32_t i = 0; w->stuck < 0 && !same && i < (caches ? MAX_ITERATIONS : 1); i++) {
    PLANC_TRY(place_steps(w, &same));
  }
  w->top = pl_allocator_arena(&w->allocator);
  if (w->stuck >= 0) w->top = pl_allocator_room(w->problem) + w->bytes[w->stuck];
  return NULL;
}

/* The first iteration, up to an instance that finds no room: each has its own buffers and no others. */
static planc_status place_recording(windowing *w) {
  for (int32_t i = 0; i < w->sequence.n_instances; i++) {
    for (int32_t u = w->first_use[i]; u < w->first_use[i + 1]; u++) {
      int64_t address;
      PLANC_TRY(take(w, i, w->uses[u].buffer, &address));
      if (w->stuck >= 0) return NULL;
    }
    for (int32_t u = w->first_use[i]; u < w->first_use[i + 1]; u++) PLANC_TRY(give(w, w->uses[u].buffer));
  }
  return NULL;
}

/* Memory for a buffer of `instance`. */
static planc_status take(windowing *w, int32_t instance, int32_t buffer, int64_t *out_address) {
  if (w->bytes[buffer] == 0) return NULL;
  PLANC_TRY(pl_allocator_take(&w->allocator, w->bytes[buffer], &w->handles[buffer], out_address));
  if (w->handles[buffer] >= 0) return NULL;
  w->stuck = buffer;
  w->stuck_at = instance;
  return NULL;
}

static planc_status give(windowing *w, int32_t buffer) {
  if (w->bytes[buffer] == 0) return NULL;
  PLANC_TRY(pl_allocator_give(&w->allocator, w->handles[buffer]));
  w->handles[buffer] = -1;
  return NULL;
}

/* Gives addresses as the allocator would that sees the steps one by one, up to one that finds no room; *out_same says
 * whether they are what they were. */
static planc_status place_steps(windowing *w, bool *out_same) {
  int32_t instance = 0;
  *out_same = true;
  for (int64_t i = 0; i < w->steps.len; i++) {
    const pl_window_step *step = &w->steps.data[i];
    if (step->kind == PL_WINDOW_RUN) {
      instance = step->use + 1;
      continue;
    }
    int32_t b = w->uses[step->use].buffer;
    int64_t was = w->addresses[i];
    if (step->kind == PL_WINDOW_SWAP_IN || step->kind == PL_WINDOW_RESERVE) {
      PLANC_TRY(take(w, instance, b, &w->addresses[i]));
    } else if (step->kind == PL_WINDOW_COMPLETE || step->kind == PL_WINDOW_CLEAR) {
      PLANC_TRY(give(w, b));
    }
    if (w->stuck >= 0) return NULL;
    *out_same = *out_same && was == w->addresses[i];
  }
  return NULL;
}

/* --- Statement ---------------------------------------------------------------------------------------------------- */

static planc_status state_step(const windowing *w, int64_t index, int64_t *workspace);
static planc_status state_take(const windowing *w, int64_t step);
static planc_status state_swap_out(const windowing *w, int32_t access);
static planc_status state_result(const windowing *w, int32_t access, int32_t residency);
static planc_status state_clear(const windowing *w, int32_t access);

static planc_status state(const windowing *w) {
  int64_t workspace = 0;
  int32_t host = planc_schedule_host(w->candidate->schedule), residency;
  for (int32_t b = 0; b < w->trace->n_buffers; b++) {
    if (persists(w, b) && w->trace->buffers[b].n_accesses > 0) {
      PLANC_TRY(planc_schedule_boundary(w->candidate->schedule, b, host, PLANC_BLANK, &residency));
    }
  }
  for (int64_t i = 0; i < w->steps.len; i++) PLANC_TRY(state_step(w, i, &workspace));
  PLANC_TRY(pl_allocator_map(&w->allocator, w->candidate->schedule));
  return planc_schedule_finish(w->candidate->schedule);
}

/* States one step; *workspace is where the workspace of the next call lies. */
static planc_status state_step(const windowing *w, int64_t index, int64_t *workspace) {
  const pl_window_step *step = &w->steps.data[index];
  if (step->kind == PL_WINDOW_RUN) {
    return planc_schedule_exec(w->candidate->schedule, step->use, w->variants[step->use], *workspace, false);
  }
  int32_t access = w->access_of_use[step->use];
  if (access < 0) {
    if (step->kind == PL_WINDOW_RESERVE) *workspace = w->addresses[index];
    return NULL;
  }
  int32_t buffer = w->trace->accesses[access].buffer;
  switch (step->kind) {
    case PL_WINDOW_SWAP_IN:
    case PL_WINDOW_RESERVE:
      return state_take(w, index);
    case PL_WINDOW_SWAP_OUT:
      return state_swap_out(w, access);
    case PL_WINDOW_COMPLETE:
      return planc_schedule_release(w->candidate->schedule, planc_schedule_open(w->candidate->schedule, buffer));
    case PL_WINDOW_CLEAR:
      return state_clear(w, access);
    case PL_WINDOW_RUN:
    case PL_WINDOW_CANCELLED:
      break;
  }
  return NULL;
}

static planc_status state_take(const windowing *w, int64_t step) {
  const planc_access *access = &w->trace->accesses[w->access_of_use[w->steps.data[step].use]];
  int32_t device = planc_schedule_device(w->candidate->schedule), residency;
  PLANC_TRY(planc_schedule_acquire(w->candidate->schedule, access->buffer, device, w->addresses[step], &residency));
  if (w->steps.data[step].kind != PL_WINDOW_SWAP_IN && !is_sent(w, access->buffer)) return NULL;
  return planc_schedule_prefetch(w->candidate->schedule, residency, access->read);
}

static planc_status state_swap_out(const windowing *w, int32_t access) {
  int32_t buffer = w->trace->accesses[access].buffer, residency = planc_schedule_open(w->candidate->schedule, buffer);
  PLANC_TRY(state_result(w, access, residency));
  if (planc_schedule_on_host(w->candidate->schedule, buffer, planc_schedule_content(w->candidate->schedule, residency)))
    return NULL;
  return planc_schedule_offload(w->candidate->schedule, residency, planc_schedule_host(w->candidate->schedule));
}

/* Delivers a result behind its last access. */
static planc_status state_result(const windowing *w, int32_t access, int32_t residency) {
  const planc_buffer *buffer = &w->trace->buffers[w->trace->accesses[access].buffer];
  bool last = w->trace->by_buffer[buffer->first_access + buffer->n_accesses - 1] == access;
  return last && (buffer->flags & PLANC_BUFFER_RESULT) ? planc_schedule_deliver(w->candidate->schedule, residency)
                                                       : NULL;
}

static planc_status state_clear(const windowing *w, int32_t access) {
  int32_t residency = planc_schedule_open(w->candidate->schedule, w->trace->accesses[access].buffer);
  PLANC_TRY(state_result(w, access, residency));
  return planc_schedule_release(w->candidate->schedule, residency);
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

static pl_occupant occupant_of(const windowing *w, int32_t buffer);

static planc_status explain(const windowing *w, int64_t budget, int64_t room, bool planned) {
  char text[PL_SIZE_TEXT], whole[PL_SIZE_TEXT];
  return planc_candidate_explain(w->candidate, "scheduled within %s of %s, the most found that fits%s",
                                 pl_size_format(budget, text), pl_size_format(room, whole),
                                 planned ? ", at addresses that are chosen together" : "");
}

static planc_status no_place(const windowing *w) {
  pl_no_place it = {.trace = w->trace,
                    .unplaced = occupant_of(w, w->stuck),
                    .instance = w->stuck_at,
                    .room = pl_allocator_room(w->problem)};
  char *why;
  for (int32_t b = 0; b < w->sequence.n_buffers; b++)
    if (w->handles[b] >= 0) pl_no_place_beside(&it, occupant_of(w, b));
  PLANC_TRY(pl_no_place_tell(&it, &why));
  planc_status status = planc_error(PLANC_INFEASIBLE, "the memory is fragmented%s", why);
  free(why);
  return status;
}

static pl_occupant occupant_of(const windowing *w, int32_t buffer) {
  int32_t n_buffers = w->trace->n_buffers;
  int32_t what = buffer < n_buffers ? buffer : pl_workspace_of(buffer - n_buffers);
  return (pl_occupant){what, w->bytes[buffer]};
}

enum { CHUNKS_TEXT = 48, RESERVED_TEXT = 64 };

static planc_status too_small(const windowing *w, int64_t room, int32_t instance, int64_t need) {
  int64_t chunk_bytes = pl_arena_chunk(&w->problem->terms);
  int64_t whole = pl_align_up(need, chunk_bytes > 0 ? chunk_bytes : PLANC_ALIGNMENT);
  int64_t reserved = pl_reserved(&w->problem->terms, w->problem->job.profile);
  char chunks[CHUNKS_TEXT] = "", beside[RESERVED_TEXT] = "", place[PL_PLACE_TEXT];
  const planc_op *op = planc_trace_op(w->trace, instance);
  if (chunk_bytes > 0) snprintf(chunks, sizeof chunks, " in whole chunks of %lld", (long long)chunk_bytes);
  if (reserved > 0) snprintf(beside, sizeof beside, " beside %lld that the device reserves", (long long)reserved);
  return planc_infeasible((planc_shortage){.bytes = pl_add_saturate(reserved, whole)},
                          "op %s%s needs %lld bytes%s, %lld are left for data%s", op->name, pl_op_place(op, place),
                          (long long)whole, chunks, (long long)room, beside);
}
