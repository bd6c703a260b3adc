/* Passive swapping (passive.h): what a framework does that evicts when an allocation fails (TENSILE, II and Fig. 2;
 * Capuchin's passive mode).
 *
 * Ops run in the trace's order. Before each its missing operands are allocated; while that makes more than the budget
 * allows, the buffer goes whose last access is longest ago. Its content is copied out first, unless the host has it
 * or nothing reads it any more. Then the operands that are read and are not there are copied in. The op takes its
 * fastest variant whose workspace finds room beside all that, else the baseline, for whose workspace more is evicted.
 * Data is freed behind its last access. Operands are most recent, so that none is evicted for another of the same op.
 *
 * Launches cost what they cost in a plan: the host takes launch_ns for each op and copy and runs ahead of the device,
 * by as many ops as may be in flight and no more than an iteration. A copy begins when all ops before it have ended,
 * and the host waits for its end before it goes on (TENSILE, IV-A: in passive mode compute waits for swapping), so that
 * no copy runs beside compute or another copy, and neither slows the other.
 *
 * What is resident is at any time the most recently accessed data that fits. With one variant for each op more budget
 * therefore never leads to more evictions and swap-ins, nor to longer waits for them. */
#include "planc/passive.h"

#include <string.h>

#include "cost/profile.h"
#include "graph/op_place.h"
#include "planner/base/code.h"
#include "planner/choose/sub_batch.h"
#include "planner/choose/walk.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/math.h"

enum { MAX_ITERATIONS = 8, NONE = -1 };

typedef struct passive_buffer {
  int64_t bytes; /* aligned */
  bool resident, on_host;
  bool needed;          /* something will read its content */
  bool slot;            /* has host memory of its own */
  int32_t newer, older; /* among the resident ones, by last access */
} passive_buffer;

typedef struct passive {
  pl_walk walk; /* trace, costs, device */
  const planc_trace *trace;
  const planc_device *device;
  const planc_profile *profile;
  pl_map algorithms;    /* that have run */
  int64_t code_bytes;   /* of these */
  int64_t code_assumed; /* what the code is given of the budget */
  pl_arena arena;
  passive_buffer *buffers;
  int32_t newest, oldest;
  int32_t *missing; /* of the current op: accesses to copy in */
  int32_t n_missing;
  int64_t capacity, live, host_bytes;
  int64_t host_ns, device_ns; /* when the host has launched, and the device has done, all so far */
  int64_t *ends;              /* of the last `in_flight` ops, in a ring */
  int64_t n_launched;
  int32_t in_flight;
  planc_passive_iteration now;
  planc_passive *out;
} passive;

typedef struct best_passive {
  const planc_problem *problem;
  planc_passive *out;
  bool any;
} best_passive;

static planc_status simulate_better(void *user, const planc_target *target, int64_t *out_code);
static bool is_better(const planc_passive *a, const planc_passive *b);
static planc_status run(passive *p, const planc_problem *problem);
static planc_status run_iterations(passive *p);
static void note_needs(passive *p, bool *needed);
static planc_status run_iteration(passive *p, const bool *needed);
static planc_status set_up(passive *p, const planc_problem *problem);
static planc_status check_ops(const passive *p);
static planc_status run_prologue(passive *p);

planc_status planc_simulate_passive(const planc_problem *problem, planc_passive *out) {
  *out = (planc_passive){0};
  best_passive b = {.problem = problem, .out = out};
  const planc_target target = planc_target_of(problem);
  if (problem->terms.gpus > 1) return planc_error(PLANC_USAGE, "passive swapping is simulated on one GPU only");
  return planc_context(pl_with_code(&target, simulate_better, &b), "passive swapping");
}

static planc_status simulate_better(void *user, const planc_target *target, int64_t *out_code) {
  best_passive *b = user;
  const planc_problem problem = pl_problem_on(target, b->problem);
  planc_passive found = {0};
  passive p = {.out = &found};
  planc_candidate candidate = {0};
  int64_t sub_batch = pl_sub_batch_asked(&problem);
  planc_status status =
      pl_walk_start_rounds(&p.walk, &problem, sub_batch, (pl_walk_room){.bytes = PL_ROOM_NONE}, &candidate);
  if (!status) status = run(&p, &problem);
  if (p.code_bytes > 0) *out_code = p.code_bytes;
  pl_map_free(&p.algorithms);
  pl_arena_free(&p.arena);
  planc_candidate_free(&candidate);
  PLANC_TRY(status);
  if (!b->any || is_better(&found, b->out)) *b->out = found;
  b->any = true;
  return NULL;
}

/* As of plans: the faster one, of two as fast the one with the lower peak, of two alike the first. */
static bool is_better(const planc_passive *a, const planc_passive *b) {
  if (a->steady.time_ns != b->steady.time_ns) return a->steady.time_ns < b->steady.time_ns;
  return a->peak_bytes < b->peak_bytes;
}

static planc_status run(passive *p, const planc_problem *problem) {
  PLANC_TRY(set_up(p, problem));
  PLANC_TRY(check_ops(p));
  PLANC_TRY(run_prologue(p));
  PLANC_TRY(run_iterations(p));
  p->out->peak_bytes = pl_add_saturate(p->out->peak_bytes, p->device->reserved_bytes);
  p->out->peak_bytes = pl_add_saturate(p->out->peak_bytes, p->code_bytes);
  if (p->out->peak_bytes > problem->terms.budgets[PLANC_MEMORY_DEVICE])
    return planc_error(PLANC_INFEASIBLE, "it needs %lld bytes, the code of its algorithms included",
                       (long long)p->out->peak_bytes);
  if (problem->terms.budgets[PLANC_MEMORY_HOST] < 0 ||
      p->out->host_peak_bytes <= problem->terms.budgets[PLANC_MEMORY_HOST])
    return NULL;
  return planc_error(PLANC_INFEASIBLE, "it needs %lld bytes of host memory, the host budget is %lld",
                     (long long)p->out->host_peak_bytes, (long long)problem->terms.budgets[PLANC_MEMORY_HOST]);
}

/* Until an iteration is as the one before. */
static planc_status run_iterations(passive *p) {
  bool *needed;
  PLANC_TRY(PL_NEW(&p->arena, &needed, p->trace->n_accesses));
  note_needs(p, needed);
  PLANC_TRY(run_iteration(p, needed));
  p->out->first = p->now;
  for (int32_t k = 1; k < MAX_ITERATIONS; k++) {
    p->out->steady = p->now;
    PLANC_TRY(run_iteration(p, needed));
    if (memcmp(&p->now, &p->out->steady, sizeof p->now) == 0) break;
  }
  p->out->steady = p->now;
  return NULL;
}

/* --- Time --------------------------------------------------------------------------------------------------------- */

/* The host launches, from `from` on, something that takes `time_ns` when the device is free. */
static planc_status run_on_device(passive *p, int64_t from, int64_t time_ns) {
  if (from > p->host_ns) p->host_ns = from;
  if (pl_add_overflow(p->host_ns, p->device->launch_ns, &p->host_ns))
    return planc_error(PLANC_BAD_INPUT, "the iteration takes too long to simulate");
  if (p->host_ns > p->device_ns) {
    p->now.launch_ns += p->host_ns - p->device_ns;
    p->device_ns = p->host_ns;
  }
  if (!pl_add_overflow(p->device_ns, time_ns, &p->device_ns)) return NULL;
  return planc_error(PLANC_BAD_INPUT, "the iteration takes too long to simulate");
}

static planc_status run_op(passive *p, int64_t time_ns) {
  int64_t *end = &p->ends[p->n_launched++ % p->in_flight];
  PLANC_TRY(run_on_device(p, *end, time_ns));
  p->now.compute_ns += time_ns;
  *end = p->device_ns;
  return NULL;
}

static planc_status run_copy(passive *p, bool out, int32_t buffer, int64_t *waited_ns) {
  planc_route route = out ? PLANC_ROUTE_D2H : PLANC_ROUTE_H2D;
  int64_t bytes = p->trace->buffers[buffer].bytes, *moved = &p->now.copied_bytes[route];
  int64_t time_ns = planc_link_ns(&p->device->links[route], bytes);
  PLANC_TRY(run_on_device(p, p->host_ns, time_ns));
  p->host_ns = p->device_ns;
  *waited_ns += time_ns;
  *moved = pl_add_saturate(*moved, bytes);
  return NULL;
}

/* --- What is resident --------------------------------------------------------------------------------------------- */

static planc_status evict_oldest(passive *p);
static planc_status take_slot(passive *p, passive_buffer *own);
static void leave(passive *p, int32_t buffer);
static void unlink_buffer(passive *p, int32_t buffer);

/* Evicts until `bytes` fit beside what is live; the operands of one op and its workspace do (check_ops). */
static planc_status make_room(passive *p, int64_t bytes) {
  while (p->live > p->capacity - bytes) PLANC_TRY(evict_oldest(p));
  if (p->live + bytes > p->out->peak_bytes) p->out->peak_bytes = p->live + bytes;
  return NULL;
}

static planc_status evict_oldest(passive *p) {
  int32_t buffer = p->oldest;
  passive_buffer *own = &p->buffers[buffer];
  p->now.evictions++;
  if (own->needed && !own->on_host) {
    PLANC_TRY(take_slot(p, own));
    PLANC_TRY(run_copy(p, true, buffer, &p->now.evict_ns));
    p->now.copied_out++;
    p->now.evicted_bytes = pl_add_saturate(p->now.evicted_bytes, p->trace->buffers[buffer].bytes);
    own->on_host = true;
  }
  leave(p, buffer);
  return NULL;
}

static planc_status take_slot(passive *p, passive_buffer *own) {
  if (own->slot) return NULL;
  own->slot = true;
  if (pl_add_overflow(p->host_bytes, own->bytes, &p->host_bytes))
    return planc_error(PLANC_BAD_INPUT, "the sizes of all tensors together overflow");
  if (p->host_bytes > p->out->host_peak_bytes) p->out->host_peak_bytes = p->host_bytes;
  return NULL;
}

static void leave(passive *p, int32_t buffer) {
  p->buffers[buffer].resident = false;
  p->live -= p->buffers[buffer].bytes;
  unlink_buffer(p, buffer);
}

static void unlink_buffer(passive *p, int32_t buffer) {
  const passive_buffer *own = &p->buffers[buffer];
  *(own->newer == NONE ? &p->newest : &p->buffers[own->newer].older) = own->older;
  *(own->older == NONE ? &p->oldest : &p->buffers[own->older].newer) = own->newer;
}

static void link_newest(passive *p, int32_t buffer) {
  passive_buffer *own = &p->buffers[buffer];
  own->newer = NONE;
  own->older = p->newest;
  *(p->newest == NONE ? &p->oldest : &p->buffers[p->newest].newer) = buffer;
  p->newest = buffer;
}

static void link_oldest(passive *p, int32_t buffer) {
  passive_buffer *own = &p->buffers[buffer];
  own->older = NONE;
  own->newer = p->oldest;
  *(p->oldest == NONE ? &p->newest : &p->buffers[p->oldest].older) = buffer;
  p->oldest = buffer;
}

/* --- An op -------------------------------------------------------------------------------------------------------- */

static planc_status run_instance(passive *p, int32_t instance, const bool *needed);
static void allocate(passive *p, int32_t access);
static planc_status swap_in(passive *p, int32_t access);
static bool is_first(const passive *p, int32_t access);
static planc_status note_algorithm(passive *p, const char *name);
static planc_status end_access(passive *p, int32_t access);
static bool is_last(const passive *p, int32_t access);

/* Whether the content that the access leaves is read: by the buffer's next access, or by the user. */
static void note_needs(passive *p, bool *needed) {
  const planc_trace *trace = p->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    for (int32_t k = 0; k < buffer->n_accesses; k++) {
      const int32_t *at = &trace->by_buffer[buffer->first_access + k];
      needed[*at] = k + 1 < buffer->n_accesses ? trace->accesses[at[1]].read >= 0 : true;
    }
  }
}

static planc_status run_iteration(passive *p, const bool *needed) {
  int64_t start = p->device_ns;
  p->now = (planc_passive_iteration){0};
  for (int32_t i = 0; i < p->trace->n_instances; i++) PLANC_TRY(run_instance(p, i, needed));
  p->now.time_ns = p->device_ns - start;
  return NULL;
}

static planc_status run_instance(passive *p, int32_t instance, const bool *needed) {
  const planc_instance *in = &p->trace->instances[instance];
  int32_t first = in->first_access, end = first + in->n_accesses;
  p->n_missing = 0;
  for (int32_t a = first; a < end; a++) allocate(p, a);
  PLANC_TRY(make_room(p, 0));
  planc_variant variant = pl_walk_variant(&p->walk, instance, p->capacity - p->live);
  PLANC_TRY(make_room(p, pl_align_up(variant.workspace_bytes, PLANC_ALIGNMENT)));
  for (int32_t m = 0; m < p->n_missing; m++) PLANC_TRY(swap_in(p, p->missing[m]));
  PLANC_TRY(note_algorithm(p, variant.algorithm));
  PLANC_TRY(run_op(p, variant.time_ns));
  for (int32_t a = first; a < end; a++) {
    p->buffers[p->trace->accesses[a].buffer].needed = needed[a];
    PLANC_TRY(end_access(p, a));
  }
  return NULL;
}

/* Makes the operand the newest buffer; one that was not there awaits its content, if it is read: what an op reads was
 * made before, or came from the user. */
static void allocate(passive *p, int32_t access) {
  const planc_access *a = &p->trace->accesses[access];
  passive_buffer *own = &p->buffers[a->buffer];
  if (own->resident) {
    unlink_buffer(p, a->buffer);
  } else {
    own->resident = true;
    p->live += own->bytes;
    if (a->read >= 0) p->missing[p->n_missing++] = access;
  }
  link_newest(p, a->buffer);
}

static planc_status swap_in(passive *p, int32_t access) {
  int32_t buffer = p->trace->accesses[access].buffer;
  const planc_buffer *b = &p->trace->buffers[buffer];
  if ((b->flags & PLANC_BUFFER_FED) && is_first(p, access)) return run_copy(p, false, buffer, &p->now.user_ns);
  p->now.swap_ins++;
  p->now.swapped_in_bytes = pl_add_saturate(p->now.swapped_in_bytes, b->bytes);
  return run_copy(p, false, buffer, &p->now.swap_in_ns);
}

static bool is_first(const passive *p, int32_t access) {
  const planc_buffer *buffer = &p->trace->buffers[p->trace->accesses[access].buffer];
  return p->trace->by_buffer[buffer->first_access] == access;
}

static planc_status note_algorithm(passive *p, const char *name) {
  size_t length = strlen(name);
  if (pl_map_get(&p->algorithms, name, length) >= 0) return NULL;
  p->code_bytes = pl_add_saturate(p->code_bytes, planc_profile_code(p->profile, name));
  return pl_map_put(&p->algorithms, name, length, 0);
}

/* Frees what nothing accesses any more; results leave first. */
static planc_status end_access(passive *p, int32_t access) {
  const planc_access *a = &p->trace->accesses[access];
  const planc_buffer *b = &p->trace->buffers[a->buffer];
  passive_buffer *own = &p->buffers[a->buffer];
  if (a->write >= 0) own->on_host = false;
  bool persists = b->flags & PLANC_BUFFER_PERSISTENT;
  if (!is_last(p, access) || persists) return NULL;
  if (b->flags & PLANC_BUFFER_RESULT) PLANC_TRY(run_copy(p, true, a->buffer, &p->now.user_ns));
  leave(p, a->buffer);
  if (own->slot) p->host_bytes -= own->bytes;
  own->slot = false;
  return NULL;
}

static bool is_last(const passive *p, int32_t access) {
  const planc_buffer *buffer = &p->trace->buffers[p->trace->accesses[access].buffer];
  return p->trace->by_buffer[buffer->first_access + buffer->n_accesses - 1] == access;
}

/* --- Before the run ----------------------------------------------------------------------------------------------- */

static planc_status refuse(const passive *p, int32_t instance, int64_t operands, int64_t workspace);
static int32_t largest_of(const passive *p, const planc_instance *in);
static planc_status load(passive *p, int32_t buffer, bool *full);

static planc_status set_up(passive *p, const planc_problem *problem) {
  p->trace = p->walk.trace;
  p->device = p->walk.device;
  p->profile = problem->job.profile;
  p->code_assumed = problem->terms.code_bytes;
  p->newest = p->oldest = NONE;
  p->capacity = pl_arena_room(&problem->terms, problem->job.profile) / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  if (p->capacity > INT64_MAX / 2) p->capacity = INT64_MAX / 2 / PLANC_ALIGNMENT * PLANC_ALIGNMENT;
  p->in_flight = p->device->in_flight < p->trace->n_instances ? p->device->in_flight : p->trace->n_instances;
  if (p->in_flight < 1) p->in_flight = 1;
  PLANC_TRY(PL_NEW(&p->arena, &p->buffers, p->trace->n_buffers));
  PLANC_TRY(PL_NEW(&p->arena, &p->missing, p->trace->n_accesses));
  PLANC_TRY(PL_NEW(&p->arena, &p->ends, p->in_flight));
  for (int32_t b = 0; b < p->trace->n_buffers; b++) {
    const planc_buffer *buffer = &p->trace->buffers[b];
    bool at_users = buffer->flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED);
    p->buffers[b] = (passive_buffer){.bytes = pl_walk_bytes(buffer), .on_host = at_users, .needed = true};
  }
  return NULL;
}

/* INFEASIBLE when the operands and least workspace of one op alone are too much. */
static planc_status check_ops(const passive *p) {
  int64_t most = 0, most_workspace = 0;
  int32_t binding = 0;
  for (int32_t i = 0; i < p->trace->n_instances; i++) {
    const planc_instance *in = &p->trace->instances[i];
    int64_t workspace = pl_align_up(pl_walk_variant(&p->walk, i, 0).workspace_bytes, PLANC_ALIGNMENT);
    int64_t bytes = workspace;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++)
      bytes = pl_add_saturate(bytes, p->buffers[p->trace->accesses[a].buffer].bytes);
    if (bytes <= most) continue;
    most = bytes;
    most_workspace = workspace;
    binding = i;
  }
  if (most > INT64_MAX / 2) return planc_error(PLANC_BAD_INPUT, "the sizes of the operands of one op overflow");
  return most <= p->capacity ? NULL : refuse(p, binding, most - most_workspace, most_workspace);
}

static planc_status refuse(const passive *p, int32_t instance, int64_t operands, int64_t workspace) {
  int32_t largest = largest_of(p, &p->trace->instances[instance]);
  const planc_op *op = planc_trace_op(p->trace, instance);
  char place[PL_PLACE_TEXT];
  int64_t reserved = pl_add_saturate(p->device->reserved_bytes, p->code_assumed);
  const char *name = largest == NONE ? "nothing" : planc_trace_buffer_name(p->trace, largest);
  int64_t least = pl_add_saturate(pl_add_saturate(operands, workspace), reserved);
  return planc_error(
      PLANC_INFEASIBLE,
      "op %s%s alone needs %lld bytes of operands, %lld of them for %s, and %lld of workspace: no budget "
      "below %lld bytes will do, %lld reserved by the device included",
      op->name, pl_op_place(op, place), (long long)operands,
      (long long)(largest == NONE ? 0 : p->buffers[largest].bytes), name, (long long)workspace, (long long)least,
      (long long)reserved);
}

/* The operand with most bytes. */
static int32_t largest_of(const passive *p, const planc_instance *in) {
  int32_t largest = NONE;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t buffer = p->trace->accesses[a].buffer;
    if (largest == NONE || p->buffers[buffer].bytes > p->buffers[largest].bytes) largest = buffer;
  }
  return largest;
}

static planc_status run_prologue(passive *p) {
  bool full = false;
  for (int32_t a = 0; a < p->trace->n_accesses; a++) PLANC_TRY(load(p, p->trace->accesses[a].buffer, &full));
  for (int32_t b = 0; b < p->trace->n_buffers; b++) PLANC_TRY(load(p, b, &full));
  p->out->prologue_ns = p->device_ns;
  return make_room(p, 0);
}

/* Before the first iteration persistent data is loaded in the order of its first accesses, while there is room. */
static planc_status load(passive *p, int32_t buffer, bool *full) {
  passive_buffer *own = &p->buffers[buffer];
  if (*full || own->resident || !(p->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT)) return NULL;
  *full = own->bytes > p->capacity - p->live;
  if (*full) return NULL;
  own->resident = true;
  p->live += own->bytes;
  link_oldest(p, buffer);
  return run_copy(p, false, buffer, &p->now.user_ns);
}
