/* moDNN's scheduling of data transfers together with convolution algorithms (papers: moDNN, IV-B), for given rounds.
 *
 * Algorithm 1 walks the trace in order and simulates its execution: for every instance it finds memory for operands
 * (offloading, or defragmenting), selects the algorithm with the largest gain (Eq. 5) and starts prefetches for future
 * instances (Eq. 4). Offloads and prefetches have a copy engine each. The decisions are stated as a schedule at the
 * end, because an offload starts as soon as its data is complete, which is before the point where the need for it was
 * found (Fig. 3). */
#include "planner/policies/modnn.h"

#include <assert.h>
#include <stdlib.h>

#include "graph/op_place.h"
#include "planc/needs.h"
#include "planner/base/code.h"
#include "planner/choose/ways_back.h"
#include "util/math.h"

static planc_status set_up(modnn *m, const planc_problem *problem, const planc_candidate *candidate);
static planc_status schedule_instance(modnn *m, int32_t instance);
static planc_status forget_idle(modnn *m);
static planc_status state(const modnn *m, planc_schedule *schedule);
static void modnn_free(modnn *m);
static planc_status prepare_operands(modnn *m, int32_t instance);
static planc_status select_algorithm(modnn *m, int32_t instance, int32_t *out_variant, int64_t *out_address,
                                     int64_t *out_ns);
static planc_status finish_instance(modnn *m, int32_t instance);

planc_status modnn_schedule(const planc_problem *problem, int64_t sub_batch, planc_candidate *out) {
  PLANC_TRY(planc_candidate_rounds(problem, sub_batch, out));
  assert(planc_order_is_of_trace(out->order)); /* an instance's number is its position */
  PLANC_TRY(planc_candidate_schedule(problem, out));
  modnn m = {0};
  planc_status status = set_up(&m, problem, out);
  for (int32_t instance = 0; !status && instance < out->trace->n_instances; instance++)
    status = schedule_instance(&m, instance);
  if (!status) status = forget_idle(&m);
  if (!status) status = state(&m, out->schedule);
  modnn_free(&m);
  return status;
}

static planc_status schedule_instance(modnn *m, int32_t instance) {
  m->instance = instance;
  PLANC_TRY(prepare_operands(m, instance));
  const planc_instance *in = &m->trace->instances[instance];
  int32_t variant = 0;
  int64_t workspace = 0, run_ns = 0;
  if (in->role != PLANC_ROLE_OP) {
    run_ns = planc_adding_variant(m->trace, m->profile, instance).time_ns;
  } else {
    PLANC_TRY(select_algorithm(m, instance, &variant, &workspace, &run_ns));
  }
  PLANC_TRY(modnn_prefetch(m, instance, run_ns));
  VEC_PUSH(&m->decisions,
           ((modnn_decision){.kind = MODNN_EXEC, .subject = instance, .choice = variant, .address = workspace}));
  m->now = pl_add_saturate(m->now, run_ns);
  if (m->buffers[m->trace->n_buffers].segment >= 0) PLANC_TRY(modnn_free_workspace(m));
  return finish_instance(m, instance);
}

/* --- Algorithm 1, lines 3-8: operands ----------------------------------------------------------------------------- */

static planc_status allocate_operands(modnn *m, int32_t instance, bool *out_found);
static planc_status no_room(const modnn *m, int32_t instance);
static int64_t budget_for(const modnn *m, int64_t need);

static planc_status prepare_operands(modnn *m, int32_t instance) {
  bool found;
  PLANC_TRY(allocate_operands(m, instance, &found));
  if (!found) {
    PLANC_TRY(modnn_defragment(m, &m->now));
    PLANC_TRY(allocate_operands(m, instance, &found));
    if (!found) return no_room(m, instance);
  }
  const planc_instance *in = &m->trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &m->trace->accesses[a];
    modnn_buffer *b = &m->buffers[access->buffer];
    if (access->read < 0) continue;
    if (!b->filled) PLANC_TRY(modnn_fetch(m, access->buffer, m->now));
  }
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const modnn_buffer *b = &m->buffers[m->trace->accesses[a].buffer];
    if (b->filled && b->ready > m->now) m->now = b->ready;
  }
  return NULL;
}

static planc_status allocate_operands(modnn *m, int32_t instance, bool *out_found) {
  const planc_instance *in = &m->trace->instances[instance];
  int64_t vacated = m->now;
  *out_found = true;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t buffer = m->trace->accesses[a].buffer;
    if (m->buffers[buffer].segment >= 0) continue;
    int64_t when;
    PLANC_TRY(modnn_allocate(m, buffer, instance, &when, out_found));
    if (!*out_found) return NULL;
    if (when > vacated) vacated = when;
  }
  m->now = vacated;
  return NULL;
}

static planc_status no_room(const modnn *m, int32_t instance) {
  const planc_trace *trace = m->trace;
  const planc_instance *in = &trace->instances[instance];
  int64_t need = 0, largest = 0;
  int32_t largest_buffer = -1;
  char place[PL_PLACE_TEXT];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t buffer = trace->accesses[a].buffer;
    if (m->buffers[buffer].stays) continue;
    int64_t room = modnn_bytes(m, buffer);
    need = pl_add_saturate(need, room);
    if (room > largest) {
      largest = room;
      largest_buffer = buffer;
    }
  }
  return planc_infeasible((planc_shortage){.bytes = budget_for(m, need)},
                          "op %s%s needs %lld bytes for its operands (largest: %s%s, %lld bytes), %lld are left beside "
                          "parameters, state and gradients",
                          planc_trace_op(trace, instance)->name, pl_op_place(planc_trace_op(trace, instance), place),
                          (long long)need, largest_buffer < 0 ? "" : planc_trace_buffer_whose(trace, largest_buffer),
                          largest_buffer < 0 ? "none" : planc_trace_buffer_name(trace, largest_buffer),
                          (long long)largest, (long long)m->memory.free_bytes);
}

/* The budget in which as much is free as `need` asks for; 0 where that is so already. */
static int64_t budget_for(const modnn *m, int64_t need) {
  int64_t missing = need - m->memory.free_bytes;
  return missing > 0 ? pl_add_saturate(m->budget_bytes, missing) : 0;
}

/* --- Lines 9-14: the algorithm ------------------------------------------------------------------------------------ */

static planc_status find_algorithm(modnn *m, int32_t instance, const planc_variant *variants, int32_t count,
                                   int32_t *out_best);
static planc_status put_off_ns(modnn *m, int32_t instance, int64_t run_ns, int64_t workspace, int64_t *out_ns);
static planc_status no_workspace(const modnn *m, int32_t instance, int64_t bytes);

/* Selects the algorithm of `instance` by Eq. 5 and gives it its workspace. Where operands lie so that none finds one,
 * memory is defragmented, as it is for operands. */
static planc_status select_algorithm(modnn *m, int32_t instance, int32_t *out_variant, int64_t *out_address,
                                     int64_t *out_ns) {
  const planc_instance *in = &m->trace->instances[instance];
  int32_t count, best;
  const planc_variant *variants = pl_variants_of(m->costs, in, &count);
  PLANC_TRY(find_algorithm(m, instance, variants, count, &best));
  if (best < 0) {
    PLANC_TRY(modnn_defragment(m, &m->now));
    PLANC_TRY(prepare_operands(m, instance));
    PLANC_TRY(find_algorithm(m, instance, variants, count, &best));
  }
  if (best < 0) return no_workspace(m, instance, variants[0].workspace_bytes);
  *out_variant = best;
  *out_ns = variants[best].time_ns;
  *out_address = 0;
  if (variants[best].workspace_bytes == 0) return NULL;
  int64_t when;
  bool found;
  PLANC_TRY(modnn_allocate_workspace(m, variants[best].workspace_bytes, instance, out_address, &when, &found));
  if (!found) return planc_error(PLANC_INTERNAL, "modnn: a workspace found before is gone");
  if (when > m->now) m->now = when;
  return NULL;
}

/* The algorithm with the largest gain of those whose workspace finds room, -1 where none does. */
static planc_status find_algorithm(modnn *m, int32_t instance, const planc_variant *variants, int32_t count,
                                   int32_t *out_best) {
  int32_t best = -1;
  int64_t best_gain = 0;
  for (int32_t v = 0; v < count; v++) {
    int64_t workspace = variants[v].workspace_bytes, offload_ns = 0, prefetch_ns = 0;
    if (workspace > 0 && pl_memory_list_best_fit(&m->memory, workspace) < 0) {
      modnn_scheme scheme = modnn_find_scheme(m, workspace, instance);
      if (scheme.first < 0) continue;
      offload_ns = scheme.end - m->now;
    }
    if (workspace > 0 && count > 1) PLANC_TRY(put_off_ns(m, instance, variants[v].time_ns, workspace, &prefetch_ns));
    int64_t gain = variants[0].time_ns - variants[v].time_ns - offload_ns - prefetch_ns;
    bool better =
        best < 0 || gain > best_gain || (gain == best_gain && planc_variant_precedes(&variants[v], &variants[best]));
    if (!better) continue;
    best = v;
    best_gain = gain;
  }
  *out_best = best;
  return NULL;
}

/* How long prefetches for the nearest instance that wants some are put off when `workspace` bytes are taken (Eq. 5,
 * T_pre): the transfers of those buffers that find memory without the workspace and not beside it. It counts only where
 * Eq. 4 says that the prefetch has to start now. */
static planc_status put_off_ns(modnn *m, int32_t instance, int64_t run_ns, int64_t workspace, int64_t *out_ns) {
  int64_t transfer_ns;
  int32_t wanting = modnn_next_wanting(m, &transfer_ns);
  *out_ns = 0;
  if (wanting < 0 || !modnn_must_start(m, instance, run_ns, wanting, transfer_ns)) return NULL;
  int64_t fitting_ns[2]; /* without and with the workspace */
  for (int32_t with = 0; with < 2; with++) {
    int32_t segment = with ? pl_memory_list_best_fit(&m->memory, workspace) : -1;
    modnn_buffer *taken = &m->buffers[m->trace->n_buffers];
    fitting_ns[with] = 0;
    if (with && segment < 0) continue; /* only offloading makes room for it: nothing is left beside it */
    if (with) {
      PLANC_TRY(pl_memory_list_take(&m->memory, segment, m->memory.segments.data[segment].address, workspace,
                                    m->trace->n_buffers, &taken->segment));
    }
    PLANC_TRY(modnn_fitting_ns(m, wanting, &fitting_ns[with]));
    if (with) PLANC_TRY(modnn_free_workspace(m));
  }
  *out_ns = fitting_ns[0] > fitting_ns[1] ? fitting_ns[0] - fitting_ns[1] : 0;
  return NULL;
}

/* What is missing for a workspace beside the operands, as if all else had left. */
static planc_status no_workspace(const modnn *m, int32_t instance, int64_t bytes) {
  const planc_instance *in = &m->trace->instances[instance];
  int64_t need = pl_align_up(bytes, PLANC_ALIGNMENT), resident = 0;
  const planc_op *op = planc_trace_op(m->trace, instance);
  char place[PL_PLACE_TEXT];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t buffer = m->trace->accesses[a].buffer;
    if (!m->buffers[buffer].stays) need = pl_add_saturate(need, modnn_bytes(m, buffer));
  }
  for (int32_t b = 0; b < m->trace->n_buffers; b++) {
    if (m->buffers[b].stays) resident = pl_add_saturate(resident, modnn_bytes(m, b));
  }
  int64_t whole = pl_add_saturate(pl_add_saturate(need, resident), m->device->reserved_bytes);
  return planc_infeasible((planc_shortage){.bytes = whole > m->budget_bytes ? whole : 0},
                          "op %s%s finds no room for a workspace of %lld bytes beside its operands", op->name,
                          pl_op_place(op, place), (long long)bytes);
}

/* --- Lines 28-31: the instance runs, dead data is freed ----------------------------------------------------------- */

/* A gradient is sent to the other replicas as soon as it is made, and theirs are then on the host as well. */
static planc_status send(modnn *m, int32_t gradient) {
  int64_t start = m->now > m->out_free ? m->now : m->out_free;
  m->out_free = pl_add_saturate(start, pl_offload_ns(m->device->links, m->trace, gradient));
  int32_t others = m->buffers[gradient].others;
  m->buffers[others].on_host = true;
  m->buffers[others].ready = m->out_free;
  return modnn_want(m, others, modnn_next_use(m, others));
}

static planc_status finish_instance(modnn *m, int32_t instance) {
  const planc_trace *trace = m->trace;
  const planc_instance *in = &trace->instances[instance];
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    modnn_buffer *b = &m->buffers[access->buffer];
    b->next = m->entry[a] + 1;
    b->used = access->write < 0;
    if (access->write >= 0) {
      b->filled = true;
      b->on_host = false;
      b->made = instance;
      b->ready = m->now;
      if (access->write == trace->buffers[access->buffer].sent) PLANC_TRY(send(m, access->buffer));
    }
    if (modnn_needed(m, access->buffer) || (trace->buffers[access->buffer].flags & PLANC_BUFFER_PERSISTENT)) continue;
    bool last = modnn_next_use(m, access->buffer) == INT32_MAX;
    if (last && (trace->buffers[access->buffer].flags & PLANC_BUFFER_RESULT)) {
      VEC_PUSH(&m->decisions, ((modnn_decision){.kind = MODNN_DELIVER, .subject = access->buffer}));
    }
    if (last || !b->stays) PLANC_TRY(modnn_drop(m, access->buffer));
  }
  return NULL;
}

/* --- Set-up and statement ----------------------------------------------------------------------------------------- */

static void modnn_free(modnn *m) {
  pl_memory_list_free(&m->memory);
  free(m->buffers);
  free(m->earliest);
  free(m->entry);
  VEC_FREE(&m->decisions);
  VEC_FREE(&m->offloads);
  VEC_FREE(&m->wanted);
  VEC_FREE(&m->leaving);
  VEC_FREE(&m->journal);
}

/* Params, state and gradients get the low addresses for good; fed data waits on the host. */
static planc_status place_resident(modnn *m) {
  for (int32_t b = 0; b < m->trace->n_buffers; b++) {
    const planc_buffer *of_trace = &m->trace->buffers[b];
    modnn_buffer *own = &m->buffers[b];
    own->stays = planc_is_always_resident(of_trace->kind);
    own->filled = (of_trace->flags & PLANC_BUFFER_PERSISTENT) != 0;
    own->on_host = planc_user_holds(of_trace, 0);
    if (own->on_host) PLANC_TRY(modnn_want(m, b, modnn_next_use(m, b)));
    if (!own->stays) continue;
    int32_t segment = pl_memory_list_best_fit(&m->memory, modnn_bytes(m, b));
    if (segment < 0) {
      return planc_error(PLANC_INFEASIBLE, "parameters, state and gradients do not fit (%s)",
                         planc_trace_buffer_name(m->trace, b));
    }
    int64_t address = m->memory.segments.data[segment].address;
    PLANC_TRY(pl_memory_list_take(&m->memory, segment, address, modnn_bytes(m, b), b, &own->segment));
    VEC_PUSH(&m->decisions, ((modnn_decision){.kind = MODNN_ACQUIRE, .subject = b, .address = address}));
  }
  return NULL;
}

static planc_status set_up(modnn *m, const planc_problem *problem, const planc_candidate *candidate) {
  const planc_trace *trace = candidate->trace;
  m->trace = trace;
  m->costs = candidate->costs;
  m->profile = problem->job.profile;
  m->device = planc_profile_device(problem->job.profile);
  m->budget_bytes = problem->terms.budgets[PLANC_MEMORY_DEVICE];
  m->last_anchor = -1;
  m->searched = -1;
  m->buffers = calloc((size_t)trace->n_buffers + 1, sizeof *m->buffers);
  m->earliest = calloc((size_t)trace->n_instances + 1, sizeof *m->earliest);
  m->entry = calloc((size_t)trace->n_accesses + 1, sizeof *m->entry);
  if (!m->buffers || !m->earliest || !m->entry) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int32_t b = 0; b <= trace->n_buffers; b++) {
    m->buffers[b] = (modnn_buffer){.segment = -1, .made = -1, .others = -1, .stays = b == trace->n_buffers};
    if (b < trace->n_buffers) m->buffers[b].next = trace->buffers[b].first_access;
  }
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    if (trace->buffers[b].peer >= 0) m->buffers[trace->buffers[b].peer].others = b;
  }
  for (int32_t i = 0; i < trace->n_accesses; i++) m->entry[trace->by_buffer[i]] = i;
  PLANC_TRY(pl_memory_list_init(&m->memory, pl_arena_room(&problem->terms, problem->job.profile)));
  PLANC_TRY(place_resident(m));
  for (int32_t i = 0; i < trace->n_instances; i++) {
    const planc_instance *in = &trace->instances[i];
    int64_t ns = 0;
    if (in->role == PLANC_ROLE_OP) {
      int32_t count;
      const planc_variant *variants = pl_variants_of(m->costs, in, &count);
      ns = variants[pl_fastest_variant(m->costs, in, m->memory.free_bytes)].time_ns;
    }
    m->earliest[i + 1] = pl_add_saturate(m->earliest[i], ns);
  }
  return NULL;
}

/* States one decision; `*offload` is the next offload to state. */
static planc_status state_decision(const modnn *m, const modnn_decision *decision, int64_t *offload,
                                   planc_schedule *schedule) {
  int32_t subject = decision->subject, device = planc_schedule_device(schedule), residency;
  switch (decision->kind) {
    case MODNN_ACQUIRE:
      if (m->trace->buffers[subject].flags & PLANC_BUFFER_PERSISTENT) {
        return planc_schedule_boundary(schedule, subject, device, decision->address, &residency);
      }
      return planc_schedule_acquire(schedule, subject, device, decision->address, &residency);
    case MODNN_RELEASE:
      return planc_schedule_release(schedule, planc_schedule_open(schedule, subject));
    case MODNN_PREFETCH:
      return planc_schedule_prefetch(schedule, planc_schedule_open(schedule, subject), decision->choice);
    case MODNN_DELIVER:
      return planc_schedule_deliver(schedule, planc_schedule_open(schedule, subject));
    case MODNN_NOTHING:
      return NULL;
    case MODNN_EXEC:
      break;
  }
  PLANC_TRY(planc_schedule_exec(schedule, subject, decision->choice, decision->address, false));
  for (; *offload < m->offloads.len && m->offloads.data[*offload].after <= subject; ++*offload) {
    int32_t open = planc_schedule_open(schedule, m->offloads.data[*offload].buffer);
    PLANC_TRY(planc_schedule_offload(schedule, open, planc_schedule_host(schedule)));
  }
  return NULL;
}

/* Forgets residencies that nothing used: memory that was found for an instance before defragmentation took it back. */
static planc_status forget_idle(modnn *m) {
  int64_t *acquired = calloc((size_t)m->trace->n_buffers + 1, sizeof *acquired); /* by buffer: idle since, plus 1 */
  if (!acquired) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int64_t i = 0; i < m->decisions.len; i++) {
    modnn_decision *decision = &m->decisions.data[i];
    int64_t *since = decision->kind == MODNN_EXEC ? NULL : &acquired[decision->subject];
    if (!since) {
      const planc_instance *in = &m->trace->instances[decision->subject];
      for (int32_t a = 0; a < in->n_accesses; a++) acquired[m->trace->accesses[in->first_access + a].buffer] = 0;
    } else if (decision->kind == MODNN_RELEASE && *since > 0) {
      m->decisions.data[*since - 1].kind = decision->kind = MODNN_NOTHING;
    }
    if (since) *since = decision->kind == MODNN_ACQUIRE ? i + 1 : 0;
  }
  free(acquired);
  return NULL;
}

static planc_status state(const modnn *m, planc_schedule *schedule) {
  int64_t offload = 0;
  /* Boundary residencies come before everything else. */
  for (int32_t pass = 0; pass < 2; pass++) {
    for (int64_t i = 0; i < m->decisions.len; i++) {
      const modnn_decision *decision = &m->decisions.data[i];
      bool boundary =
          decision->kind == MODNN_ACQUIRE && (m->trace->buffers[decision->subject].flags & PLANC_BUFFER_PERSISTENT);
      if (boundary == (pass == 0)) PLANC_TRY(state_decision(m, decision, &offload, schedule));
    }
  }
  return planc_schedule_finish(schedule);
}
