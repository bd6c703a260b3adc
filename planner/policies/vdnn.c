/* vDNN (Rhu et al., MICRO 2016) as moDNN compares with it: `vdnn-all`, `vdnn-conv`, `vdnn-dyn`, and moDNN's extension
 * `vdnn+` (V-B), which runs `vdnn-dyn` in moDNN's sub-batches.
 *
 * A layer is a forward op. In the forward pass a layer's input is offloaded while the layer runs and freed at its end,
 * when both streams have been waited for. In the backward pass, while an op runs, the nearest offloaded input still to
 * come is prefetched, but not beyond the next convolution that misses none; both streams are waited for again.
 *
 * vDNN is stated for linear networks. Rules for graphs with branches: a buffer that several forward ops read is
 * offloaded while the last of them runs; under `vdnn-conv` it is offloaded when any of them is a convolution. Ops that
 * work in place (activations) offload nothing: their storage is offloaded by its last forward reader. What the last
 * convolution or matrix product of the forward pass reads stays, since the backward pass begins with it. What is fed
 * from the host is dropped without a transfer. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/code.h"
#include "planner/choose/sub_batch.h"
#include "planner/choose/walk.h"
#include "planner/policies/policies.h"

typedef enum vdnn_offloads { OFFLOAD_NONE, OFFLOAD_CONV, OFFLOAD_ALL } vdnn_offloads;

typedef struct vdnn {
  pl_walk walk;
  vdnn_offloads offloads;
  int32_t *leaves; /* per buffer: the forward instance that offloads it, -1 = none */
  bool *away;      /* per buffer: offloaded, to be brought back */
  int32_t *sights; /* per instance: how far a search that begins there sees, itself included */
  int32_t missing; /* nothing between the present instance and this one misses anything, to the end of the pass */
} vdnn;

typedef enum vdnn_algorithms { PERFORMANCE_OPTIMAL, GREEDY, MEMORY_OPTIMAL } vdnn_algorithms;

typedef struct vdnn_attempt {
  vdnn_offloads offloads;
  vdnn_algorithms algorithms;
} vdnn_attempt;

static planc_status first_that_fits(const planc_evaluator *evaluator, int64_t sub_batch, const vdnn_attempt *attempts,
                                    int32_t n_attempts, planc_candidate *out, bool *out_fits);

planc_status pl_policy_vdnn_all(const planc_evaluator *evaluator, planc_candidate *out) {
  static const vdnn_attempt attempts[] = {{OFFLOAD_ALL, PERFORMANCE_OPTIMAL}, {OFFLOAD_ALL, MEMORY_OPTIMAL}};
  bool fits;
  return first_that_fits(evaluator, pl_sub_batch_asked(evaluator->problem), attempts, 2, out, &fits);
}

planc_status pl_policy_vdnn_conv(const planc_evaluator *evaluator, planc_candidate *out) {
  static const vdnn_attempt attempts[] = {{OFFLOAD_CONV, PERFORMANCE_OPTIMAL}, {OFFLOAD_CONV, MEMORY_OPTIMAL}};
  bool fits;
  return first_that_fits(evaluator, pl_sub_batch_asked(evaluator->problem), attempts, 2, out, &fits);
}

/* --- Attempts ----------------------------------------------------------------------------------------------------- */

/* How a maker is to walk. */
typedef struct vdnn_setting {
  vdnn_offloads offloads;
  int64_t sub_batch;
} vdnn_setting;

static planc_status choose_and_run(vdnn *v);

static planc_status make(const planc_problem *problem, const void *context, pl_walk_room room, planc_candidate *out) {
  const vdnn_setting *setting = context;
  vdnn v = {.offloads = setting->offloads};
  PLANC_TRY(pl_walk_start_rounds(&v.walk, problem, setting->sub_batch, room, out));
  assert(planc_order_is_of_trace(out->order)); /* an instance's number is its position */
  v.leaves = malloc(((size_t)out->trace->n_buffers + 1) * sizeof *v.leaves);
  v.away = malloc(((size_t)out->trace->n_buffers + 1) * sizeof *v.away);
  v.sights = malloc(((size_t)out->trace->n_instances + 1) * sizeof *v.sights);
  planc_status status = choose_and_run(&v);
  free(v.leaves);
  free(v.away);
  free(v.sights);
  return status;
}

enum { MAX_ATTEMPTS = 7 };

static planc_status explain(const vdnn_attempt *attempt, int32_t number, int32_t n_attempts, planc_candidate *out) {
  static const char *const offloads[] = {"offloads nothing", "offloads inputs of convolutions", "offloads all inputs"};
  static const char *const algorithms[] = {"the fastest algorithms", "algorithms by room", "baseline algorithms"};
  const char *chosen = planc_trace_replicas(out->trace) > 1 ? "the fastest of those tried" : "the first that fits";
  return planc_candidate_explain(out, "attempt %d of %d is %s: it %s and takes %s", number + 1, n_attempts, chosen,
                                 offloads[attempt->offloads], algorithms[attempt->algorithms]);
}

/* The first attempt that fits; where none does, the last: its plan tells what it needs and what binds. */
static planc_status first_that_fits(const planc_evaluator *evaluator, int64_t sub_batch, const vdnn_attempt *attempts,
                                    int32_t n_attempts, planc_candidate *out, bool *out_fits) {
  const int64_t rooms[] = {PL_ROOM_UNLIMITED,
                           pl_arena_room(&evaluator->problem->terms, evaluator->problem->job.profile), PL_ROOM_NONE};
  vdnn_setting settings[MAX_ATTEMPTS];
  pl_walk_attempt walks[MAX_ATTEMPTS];
  pl_walk_found found;
  for (int32_t i = 0; i < n_attempts; i++) {
    settings[i] = (vdnn_setting){.offloads = attempts[i].offloads, .sub_batch = sub_batch};
    walks[i] = (pl_walk_attempt){&settings[i], rooms[attempts[i].algorithms], attempts[i].algorithms == GREEDY};
  }
  PLANC_TRY(pl_walk_first(evaluator, make, walks, n_attempts, out, &found));
  *out_fits = found.number < n_attempts;
  return *out_fits ? explain(&attempts[found.number], found.number, n_attempts, out) : NULL;
}

static planc_status dynamic_or_resident(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out,
                                        bool *out_fits);

planc_status pl_policy_vdnn_dyn(const planc_evaluator *evaluator, planc_candidate *out) {
  bool fits;
  return dynamic_or_resident(evaluator, pl_sub_batch_asked(evaluator->problem), out, &fits);
}

static planc_status dynamic(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out, bool *out_fits);
static planc_status without_swaps(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out,
                                  bool *out_fits);

/* The host may have no room, and offloads may leave gaps that nothing fits into. */
static planc_status dynamic_or_resident(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out,
                                        bool *out_fits) {
  *out_fits = false;
  if (!evaluator->problem->terms.settings.no_swap) PLANC_TRY(dynamic(evaluator, sub_batch, out, out_fits));
  return *out_fits ? NULL : without_swaps(evaluator, sub_batch, out, out_fits);
}

/* vDNN_dyn: the order in which its implementation tries. */
static planc_status dynamic(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out, bool *out_fits) {
  static const vdnn_attempt attempts[] = {{OFFLOAD_NONE, PERFORMANCE_OPTIMAL},
                                          {OFFLOAD_CONV, PERFORMANCE_OPTIMAL},
                                          {OFFLOAD_ALL, PERFORMANCE_OPTIMAL},
                                          {OFFLOAD_CONV, GREEDY},
                                          {OFFLOAD_ALL, GREEDY},
                                          {OFFLOAD_CONV, MEMORY_OPTIMAL},
                                          {OFFLOAD_ALL, MEMORY_OPTIMAL}};
  return first_that_fits(evaluator, sub_batch, attempts, MAX_ATTEMPTS, out, out_fits);
}

/* Everything stays, if that fits; else *out remains what it is, if it is anything. */
static planc_status without_swaps(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out,
                                  bool *out_fits) {
  static const vdnn_attempt attempts[] = {
      {OFFLOAD_NONE, PERFORMANCE_OPTIMAL}, {OFFLOAD_NONE, GREEDY}, {OFFLOAD_NONE, MEMORY_OPTIMAL}};
  planc_candidate swapping = *out;
  *out = (planc_candidate){0};
  planc_status status = first_that_fits(evaluator, sub_batch, attempts, 3, out, out_fits);
  if (!status && !*out_fits && swapping.schedule) {
    planc_candidate resident = *out;
    *out = swapping;
    swapping = resident;
  }
  planc_candidate_free(&swapping);
  return status;
}

static planc_status in_one_round(const planc_evaluator *evaluator, planc_status reason, planc_candidate *out);
static planc_status in_rounds(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out,
                              planc_status *out_reason);

/* Eq. 3 makes every op fit; what vDNN keeps between ops may need smaller rounds still. */
planc_status pl_policy_vdnn_plus(const planc_evaluator *evaluator, planc_candidate *out) {
  const planc_problem *problem = evaluator->problem;
  int64_t largest;
  bool may_split;
  planc_status reason = pl_sub_batch_select(problem, &largest);
  if (planc_status_code(reason) == PLANC_INFEASIBLE) return in_one_round(evaluator, reason, out);
  PLANC_TRY(reason);
  PLANC_TRY(pl_may_split(problem, &may_split));
  PLANC_TRY(in_rounds(evaluator, largest, out, &reason));
  for (int64_t sub_batch = largest / 2; reason && may_split && sub_batch >= 1; sub_batch /= 2) {
    planc_status_free(reason);
    PLANC_TRY(in_rounds(evaluator, sub_batch, out, &reason));
  }
  return reason && largest < pl_sub_batch_asked(problem) ? in_one_round(evaluator, reason, out) : reason;
}

/* The last of vdnn-dyn's attempts at rounds of `sub_batch`, which has least live at a time, in two rounds, which have
 * as much as many. *out_reason says why it does not fit, if it does not: then no attempt at more rounds does. */
static planc_status try_two_rounds(const planc_evaluator *evaluator, int64_t sub_batch, planc_status *out_reason) {
  const planc_problem *problem = evaluator->problem;
  planc_problem two = *problem;
  planc_candidate candidate = {0};
  int64_t live;
  vdnn_setting setting = {.offloads = problem->terms.settings.no_swap ? OFFLOAD_NONE : OFFLOAD_ALL,
                          .sub_batch = sub_batch};
  if (two.job.batch - sub_batch > sub_batch) two.job.batch = 2 * sub_batch;
  planc_status status = make(&two, &setting, (pl_walk_room){PL_ROOM_NONE, PL_RECEIVES_LATE}, &candidate);
  if (!status) status = evaluator->live(evaluator, &candidate, &live);
  if (!status && live > problem->terms.budgets[PLANC_MEMORY_DEVICE]) status = evaluator->hold(evaluator, &candidate);
  planc_candidate_free(&candidate);
  *out_reason = NULL;
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  *out_reason = status;
  return NULL;
}

static planc_status explain_rounds(planc_candidate *out) {
  return planc_candidate_explain(out, "rounds of %lld are the largest of those tried that fit",
                                 (long long)out->sub_batch);
}

static planc_status dynamic_in_rounds(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out,
                                      bool *out_fits);

/* vdnn-dyn at rounds of `sub_batch`; *out_reason says why nothing fits. */
static planc_status in_rounds(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out,
                              planc_status *out_reason) {
  bool fits;
  PLANC_TRY(try_two_rounds(evaluator, sub_batch, out_reason));
  if (*out_reason) return NULL;
  PLANC_TRY(dynamic_in_rounds(evaluator, sub_batch, out, &fits));
  if (fits) return explain_rounds(out);
  planc_status status = evaluator->hold(evaluator, out);
  planc_candidate_free(out);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  *out_reason = status;
  return NULL;
}

/* Where the host has room, smaller rounds are the way out, and all need not stay. */
static planc_status dynamic_in_rounds(const planc_evaluator *evaluator, int64_t sub_batch, planc_candidate *out,
                                      bool *out_fits) {
  if (evaluator->problem->terms.settings.no_swap) return without_swaps(evaluator, sub_batch, out, out_fits);
  PLANC_TRY(dynamic(evaluator, sub_batch, out, out_fits));
  if (*out_fits) return NULL;
  planc_status status = evaluator->hold(evaluator, out);
  if (planc_status_code(status) != PLANC_INFEASIBLE) return status;
  bool lacks_host = planc_status_shortage(status).memory == PLANC_MEMORY_HOST;
  planc_status_free(status);
  return lacks_host ? without_swaps(evaluator, sub_batch, out, out_fits) : NULL;
}

/* The whole batch in a single round: Eq. 3, which has no rounds for it, counts all gradients, which come and go. */
static planc_status in_one_round(const planc_evaluator *evaluator, planc_status reason, planc_candidate *out) {
  bool fits = false;
  planc_status status = dynamic_or_resident(evaluator, pl_sub_batch_asked(evaluator->problem), out, &fits);
  if (!status && !fits) planc_candidate_free(out);
  if (status || fits) {
    planc_status_free(reason);
    return status;
  }
  return reason;
}

/* --- Running the trace -------------------------------------------------------------------------------------------- */

static planc_status run_trace(pl_walk *walk, void *context);
static planc_status run_instance(vdnn *v, int32_t instance);
static planc_status make_ready(vdnn *v, const planc_access *access);
static planc_status start_offloads(vdnn *v, int32_t instance);
static bool leaves_now(const vdnn *v, int32_t instance, int32_t buffer);
static const planc_access *find_prefetch(vdnn *v, int32_t instance);
static bool is_backward(const planc_trace *trace, int32_t instance);
static const planc_access *missed_by(const vdnn *v, int32_t instance);
static planc_status end_offloads(vdnn *v, int32_t instance);
static planc_status choose_leaves(vdnn *v);
static void find_sights(vdnn *v);

static planc_status choose_and_run(vdnn *v) {
  if (!v->leaves || !v->away || !v->sights) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  PLANC_TRY(choose_leaves(v));
  find_sights(v);
  return pl_walk_run(&v->walk, run_trace, v);
}

static planc_status run_trace(pl_walk *walk, void *context) {
  vdnn *v = context;
  PLANC_TRY(pl_walk_boundary(walk, NULL));
  memset(v->away, 0, (size_t)walk->trace->n_buffers * sizeof *v->away);
  v->missing = 0;
  for (int32_t i = 0; i < walk->trace->n_instances; i++) PLANC_TRY(run_instance(v, i));
  return planc_schedule_finish(walk->schedule);
}

static planc_status run_instance(vdnn *v, int32_t instance) {
  const planc_instance *in = &v->walk.trace->instances[instance];
  PLANC_TRY(pl_walk_reach(&v->walk, instance));
  for (int32_t k = 0; k < in->n_accesses; k++) PLANC_TRY(make_ready(v, &v->walk.trace->accesses[in->first_access + k]));
  PLANC_TRY(start_offloads(v, instance));
  int32_t prefetched = -1;
  const planc_access *wanted = is_backward(v->walk.trace, instance) ? find_prefetch(v, instance) : NULL;
  if (wanted) {
    PLANC_TRY(make_ready(v, wanted));
    prefetched = planc_schedule_open(v->walk.schedule, wanted->buffer);
  }
  PLANC_TRY(pl_walk_exec(&v->walk, instance, false));
  if (prefetched >= 0) PLANC_TRY(planc_schedule_await(v->walk.schedule, PLANC_STREAM_COMPUTE, prefetched));
  PLANC_TRY(end_offloads(v, instance));
  return pl_walk_close_dead(&v->walk, instance);
}

static planc_status make_ready(vdnn *v, const planc_access *access) {
  v->away[access->buffer] = false;
  return pl_walk_make_ready(&v->walk, access);
}

/* Starts the offloads of the layer's inputs; they run beside it. */
static planc_status start_offloads(vdnn *v, int32_t instance) {
  const planc_instance *in = &v->walk.trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t buffer = v->walk.trace->accesses[a].buffer;
    if (!leaves_now(v, instance, buffer) || (v->walk.trace->buffers[buffer].flags & PLANC_BUFFER_FED)) continue;
    planc_schedule *schedule = v->walk.schedule;
    PLANC_TRY(planc_schedule_offload(schedule, planc_schedule_open(schedule, buffer), planc_schedule_host(schedule)));
  }
  return NULL;
}

static bool leaves_now(const vdnn *v, int32_t instance, int32_t buffer) {
  return v->leaves[buffer] == instance;
}

/* The access of the nearest later instance that misses a buffer which is away, looking no further than the next
 * convolution layer that misses none; NULL if there is none. A backward pass only brings back, so that who misses
 * nothing is not asked again. */
static const planc_access *find_prefetch(vdnn *v, int32_t instance) {
  if (v->missing <= instance) v->missing = instance + 1;
  const planc_access *missed = NULL;
  while (is_backward(v->walk.trace, v->missing) && !(missed = missed_by(v, v->missing))) v->missing++;
  return missed && v->missing <= v->sights[instance + 1] ? missed : NULL;
}

static bool is_backward(const planc_trace *trace, int32_t instance) {
  return instance < trace->n_instances && planc_trace_phase(trace, instance) == PLANC_PHASE_backward;
}

/* What an instance reads of buffers that are away, NULL if nothing. */
static const planc_access *missed_by(const vdnn *v, int32_t instance) {
  const planc_instance *in = &v->walk.trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &v->walk.trace->accesses[a];
    if (access->read >= 0 && v->away[access->buffer]) return access;
  }
  return NULL;
}

static planc_status end_offloads(vdnn *v, int32_t instance) {
  const planc_instance *in = &v->walk.trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t buffer = v->walk.trace->accesses[a].buffer;
    if (!leaves_now(v, instance, buffer)) continue;
    int32_t residency = planc_schedule_open(v->walk.schedule, buffer);
    if (!(v->walk.trace->buffers[buffer].flags & PLANC_BUFFER_FED)) {
      PLANC_TRY(planc_schedule_await(v->walk.schedule, PLANC_STREAM_COMPUTE, residency));
    }
    PLANC_TRY(pl_walk_close(&v->walk, residency));
    v->away[buffer] = true;
  }
  return NULL;
}

/* --- What is offloaded, and by whom ------------------------------------------------------------------------------- */

static void mark_last_layers(const planc_trace *trace, bool *stays);

/* Finds the forward instance during which each buffer leaves: its last forward reader, when a later op needs it. */
static planc_status choose_leaves(vdnn *v) {
  const planc_trace *trace = v->walk.trace;
  bool *stays = calloc((size_t)trace->n_buffers + 1, sizeof *stays);
  if (!stays) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  mark_last_layers(trace, stays);
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    v->leaves[b] = -1;
    bool data = buffer->kind == PLANC_KIND_activation || buffer->kind == PLANC_KIND_input;
    if (!data || stays[b] || v->offloads == OFFLOAD_NONE) continue;
    int32_t last_reader = -1;
    bool by_conv = false, needed_later = false;
    for (int32_t i = buffer->first_access; i < buffer->first_access + buffer->n_accesses; i++) {
      const planc_access *access = &trace->accesses[trace->by_buffer[i]];
      if (planc_trace_phase(trace, access->instance) == PLANC_PHASE_forward) {
        last_reader = access->write < 0 ? access->instance : -1;
        by_conv |= access->write < 0 && pl_instance_class(trace, access->instance) == PLANC_CLASS_conv;
      } else {
        needed_later = access->read >= 0;
        break;
      }
    }
    if (needed_later && (by_conv || v->offloads == OFFLOAD_ALL)) v->leaves[b] = last_reader;
  }
  free(stays);
  return NULL;
}

/* Marks the buffers that the last convolution or matrix product of each round's forward pass accesses. */
static void mark_last_layers(const planc_trace *trace, bool *stays) {
  int32_t last = -1;
  for (int32_t i = 0; i <= trace->n_instances; i++) {
    bool forward = i < trace->n_instances && planc_trace_phase(trace, i) == PLANC_PHASE_forward;
    planc_class class_ = forward ? pl_instance_class(trace, i) : PLANC_CLASS_elementwise;
    if (class_ == PLANC_CLASS_conv || class_ == PLANC_CLASS_gemm) last = i;
    if (forward || last < 0) continue;
    const planc_instance *instance = &trace->instances[last];
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++) {
      stays[trace->accesses[a].buffer] = true;
    }
    last = -1;
  }
}

/* Finds how far each search sees: to the second convolution layer. The gradients of one convolution read one buffer,
 * its output's gradient, and are one layer. */
static void find_sights(vdnn *v) {
  const planc_trace *trace = v->walk.trace;
  int32_t next_conv = -1, next_layer = -1, sight = trace->n_instances;
  for (int32_t i = trace->n_instances - 1; i >= 0; i--) {
    if (planc_trace_phase(trace, i) != PLANC_PHASE_backward) {
      next_layer = -1;
      sight = trace->n_instances;
    } else if (pl_instance_class(trace, i) == PLANC_CLASS_conv && pl_output_gradient(trace, i) >= 0) {
      int32_t layer = pl_output_gradient(trace, i);
      if (next_layer >= 0 && next_layer != layer) sight = next_conv;
      next_conv = i;
      next_layer = layer;
    }
    v->sights[i] = sight;
  }
}
