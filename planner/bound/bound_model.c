/* What a bound is taken of (bound_model.h). */
#include "planner/bound/bound_model.h"

#include "planc/needs.h"
#include "planner/bound/bound_again.h"
#include "util/math.h"

enum { NONE = -1 };

typedef struct model_maker {
  const planc_candidate *candidate;
  const planc_order *order;
  const planc_trace *trace;
  pl_bound_again again;
  bool stores;
  pl_arena *arena;
  planc_gaps *gaps_of_order;
  pl_bound_op *ops;
  pl_bound_version *versions;
  pl_bound_gap *gaps;
  int64_t *stays; /* by position of two periods and one more: bytes that must stay from there on, or no longer */
  pl_bound_copy *fed, *results;
  pl_bound_model *model;
} model_maker;

static planc_status make(model_maker *m);
static planc_status check_bytes(const planc_order *order);
static planc_status allocate(model_maker *m);
static planc_status check_times(const model_maker *m);
static void add_ops(model_maker *m);
static planc_status add_versions(model_maker *m, int32_t first_gap, int32_t end_gap);
static void add_copies(model_maker *m, int32_t buffer);
static void add_what_stays(model_maker *m);

planc_status pl_bound_model_make(const planc_candidate *candidate, const planc_settings *asked, bool stores,
                                 pl_arena *arena, pl_bound_model *out) {
  *out = (pl_bound_model){.n = candidate->order->n, .device = candidate->costs[0]->device};
  model_maker m = {.candidate = candidate,
                   .order = candidate->order,
                   .trace = candidate->trace,
                   .again = {.order = candidate->order, .asked = asked},
                   .stores = stores,
                   .arena = arena,
                   .model = out};
  planc_status status = make(&m);
  if (!status)
    status = pl_arena_copy(arena, m.again.inputs.data, m.again.inputs.len, sizeof *out->inputs, (void *)&out->inputs);
  VEC_FREE(&m.again.inputs);
  planc_gaps_free(m.gaps_of_order);
  return status;
}

static planc_status make(model_maker *m) {
  PLANC_TRY(check_bytes(m->order));
  PLANC_TRY(planc_gaps_make(m->order, &m->gaps_of_order));
  PLANC_TRY(allocate(m));
  add_ops(m);
  m->again.ops = m->ops;
  PLANC_TRY(check_times(m));
  for (int32_t first = 0, end; first < m->gaps_of_order->n; first = end) {
    end = first;
    while (end < m->gaps_of_order->n && m->gaps_of_order->gaps[end].buffer == m->gaps_of_order->gaps[first].buffer)
      end++;
    PLANC_TRY(add_versions(m, first, end));
  }
  for (int32_t b = 0; b < m->trace->n_buffers; b++)
    if (planc_order_first(m->order, b) != NONE) add_copies(m, b);
  add_what_stays(m);
  PLANC_TRY(pl_bound_count_askers(&m->again, m->arena));
  m->model->ops = m->ops;
  m->model->versions = m->versions;
  m->model->gaps = m->gaps;
  m->model->fed = m->fed;
  m->model->results = m->results;
  return NULL;
}

/* What is added up of them, here and by those who search, has 64 bits. */
static planc_status check_bytes(const planc_order *order) {
  planc_memory_needs needs;
  PLANC_TRY(planc_memory_needs_of(order, &needs));
  if (needs.sum_bytes <= INT64_C(1) << 60) return NULL;
  return planc_error(PLANC_BAD_INPUT, "the tensors of the graph take %lld bytes: too many for a bound",
                     (long long)needs.sum_bytes);
}

/* Those of all ops may be added up once for each op that they are computed again for. */
static planc_status check_times(const model_maker *m) {
  int64_t sum = 0;
  for (int32_t p = 0; p < m->order->n; p++) {
    int64_t most = 0;
    for (int32_t v = 0; v < m->ops[p].n_variants; v++) most = pl_max(most, m->ops[p].variants[v].time_ns);
    sum = pl_add_saturate(sum, most);
  }
  if (m->order->n == 0 || sum <= INT64_MAX / 2 / m->order->n) return NULL;
  return planc_error(PLANC_BAD_INPUT, "the ops of the graph take %lld ns: too long for a bound", (long long)sum);
}

static planc_status allocate(model_maker *m) {
  PLANC_TRY(PL_NEW(m->arena, &m->ops, m->order->n));
  PLANC_TRY(PL_NEW(m->arena, &m->versions, m->gaps_of_order->n));
  PLANC_TRY(PL_NEW(m->arena, &m->gaps, m->gaps_of_order->n));
  PLANC_TRY(PL_NEW(m->arena, &m->stays, 2 * (int64_t)m->order->n + 1));
  PLANC_TRY(PL_NEW(m->arena, &m->fed, m->trace->n_buffers));
  return PL_NEW(m->arena, &m->results, m->trace->n_buffers);
}

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

static void add_adding(const model_maker *m, int32_t position, pl_bound_op *op) {
  op->own = planc_adding_variant(m->trace, m->candidate->costs[0]->profile, m->order->runs[position].instance);
  op->variants = &op->own;
  op->n_variants = 1;
}

static void add_ops(model_maker *m) {
  const planc_costs *costs = m->candidate->costs[0];
  for (int32_t p = 0; p < m->order->n; p++) {
    const planc_instance *instance = planc_order_instance(m->order, p);
    pl_bound_op *op = &m->ops[p];
    for (int32_t a = instance->first_access; a < instance->first_access + instance->n_accesses; a++)
      op->operand_bytes = pl_add_saturate(op->operand_bytes, m->trace->buffers[m->trace->accesses[a].buffer].bytes);
    if (instance->role == PLANC_ROLE_OP)
      op->variants =
          planc_costs_variants(costs, instance->op, planc_costs_batch(costs, instance->batch), &op->n_variants);
    else
      add_adding(m, p, op);
  }
}

int64_t pl_bound_op_bytes(const pl_bound_op *op) {
  int64_t workspace = op->n_variants > 0 ? INT64_MAX : 0;
  for (int32_t v = 0; v < op->n_variants; v++) workspace = pl_min(workspace, op->variants[v].workspace_bytes);
  return pl_add_saturate(op->operand_bytes, workspace);
}

int64_t pl_bound_least_bytes(const pl_bound_model *model, int32_t *out_position) {
  int64_t least = 0;
  *out_position = NONE;
  for (int32_t p = 0; p < model->n; p++) {
    int64_t bytes = pl_bound_op_bytes(&model->ops[p]);
    if (bytes <= least && *out_position != NONE) continue;
    least = bytes;
    *out_position = p;
  }
  return least;
}

/* --- Versions ----------------------------------------------------------------------------------------------------- */

typedef struct gap_slice {
  int32_t first, end;
} gap_slice;

static planc_status add_version(model_maker *m, gap_slice own, gap_slice of_next, int32_t version);

/* The gap behind the last of a version; gaps of a buffer stand by version. */
static int32_t end_of_version(const model_maker *m, int32_t first_gap, int32_t end_gap, int32_t version) {
  const planc_gap *gaps = m->gaps_of_order->gaps;
  while (first_gap < end_gap && gaps[first_gap].version <= version) first_gap++;
  return first_gap;
}

/* Version 0 of what persists is the last one of the period before: its gaps go on behind those of that one. */
static planc_status add_versions(model_maker *m, int32_t first_gap, int32_t end_gap) {
  const planc_buffer *buffer = &m->trace->buffers[m->gaps_of_order->gaps[first_gap].buffer];
  int32_t last = buffer->last_version;
  bool goes_on = (buffer->flags & PLANC_BUFFER_PERSISTENT) && last > 0;
  gap_slice of_first = {first_gap, end_of_version(m, first_gap, end_gap, 0)}, none = {0, 0};
  if (!goes_on) PLANC_TRY(add_version(m, of_first, none, 0));
  for (int32_t v = 1, at = of_first.end; v <= last; v++) {
    gap_slice of_version = {at, end_of_version(m, at, end_gap, v)};
    PLANC_TRY(add_version(m, of_version, goes_on && v == last ? of_first : none, v));
    at = of_version.end;
  }
  return NULL;
}

static planc_status add_gap(model_maker *m, const planc_gap *gap, int32_t later, pl_bound_version *version);

static planc_status add_version(model_maker *m, gap_slice own, gap_slice of_next, int32_t v) {
  if (own.first == own.end && of_next.first == of_next.end) return NULL;
  const planc_gap *gaps = m->gaps_of_order->gaps;
  int32_t b = gaps[own.first < own.end ? own.first : of_next.first].buffer, n = m->order->n;
  const planc_buffer *buffer = &m->trace->buffers[b];
  int32_t written = pl_bound_written(m->order, b, v);
  pl_bound_version version = {.bytes = buffer->bytes, .buffer = b, .written = written, .first_gap = m->model->n_gaps};
  version.on_host = written == NONE;
  version.may_leave = !m->again.asked->no_swap || planc_user_holds(buffer, v);
  for (int32_t g = own.first; g < own.end; g++) PLANC_TRY(add_gap(m, &gaps[g], 0, &version));
  for (int32_t g = of_next.first; g < of_next.end; g++) PLANC_TRY(add_gap(m, &gaps[g], n, &version));
  if (version.n_gaps > 0) m->versions[m->model->n_versions++] = version;
  return NULL;
}

static bool reads_at(const planc_order *order, int32_t buffer, int32_t position);

static planc_status add_gap(model_maker *m, const planc_gap *gap, int32_t later, pl_bound_version *version) {
  pl_bound_gap it = {.from = gap->from + later,
                     .version = gap->version,
                     .to = gap->to + later + (gap->wraps ? m->order->n : 0),
                     .comes_back = reads_at(m->order, gap->buffer, gap->to),
                     .again_ns = pl_bound_again_ns(&m->again, gap->buffer, gap->version)};
  if (it.comes_back && !version->may_leave && it.again_ns < 0) {
    m->stays[it.from + 1] += version->bytes;
    m->stays[it.to] -= version->bytes;
    return NULL;
  }
  planc_status status = NULL;
  bool may_be_away = it.to > it.from + 1;
  if (it.again_ns >= 0 && may_be_away)
    status = pl_bound_find_inputs(&m->again, gap->buffer, gap->version, it.from, &it.first_input, &it.n_inputs);
  m->gaps[m->model->n_gaps++] = it;
  version->n_gaps++;
  return status;
}

/* Gaps that can be spent in no other way are taken as operands of the ops in between. */
static void add_what_stays(model_maker *m) {
  int64_t bytes = 0;
  for (int32_t p = 0; p < 2 * m->order->n; p++) {
    bytes += m->stays[p];
    m->ops[p % m->order->n].operand_bytes += bytes;
  }
}

/* Whether a use reads the buffer, or only writes it. */
static bool reads_at(const planc_order *order, int32_t buffer, int32_t position) {
  return planc_order_access(order, planc_order_use_from(order, buffer, position))->read >= 0;
}

/* --- What comes and goes ------------------------------------------------------------------------------------------ */

/* What is fed may come in while the period before still uses what it was fed, if it comes to another place. */
static void add_copies(model_maker *m, int32_t b) {
  const planc_buffer *buffer = &m->trace->buffers[b];
  int32_t first = planc_order_first(m->order, b), n = m->order->n;
  if (planc_user_holds(buffer, 0))
    m->fed[m->model->n_fed++] = (pl_bound_copy){.bytes = buffer->bytes, .from = first, .to = first + n};
  int32_t written = pl_bound_written(m->order, b, buffer->last_version);
  if ((buffer->flags & PLANC_BUFFER_RESULT) && written != NONE && !m->stores)
    m->results[m->model->n_results++] = (pl_bound_copy){.bytes = buffer->bytes, .from = written, .to = written + n};
}
