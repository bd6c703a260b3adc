/* Walks that state a schedule (walk.h): residencies come and go, ops run with the fastest algorithm that has room. */
#include "planner/choose/walk.h"

#include "graph/optypes.h"
#include "planner/base/code.h"
#include "util/math.h"

int64_t pl_walk_bytes(const planc_buffer *buffer) {
  return pl_align_up(buffer->bytes, PLANC_ALIGNMENT);
}

planc_status pl_walk_start_rounds(pl_walk *walk, const planc_problem *problem, int64_t sub_batch, pl_walk_room room,
                                  planc_candidate *out) {
  PLANC_TRY(planc_candidate_rounds(problem, sub_batch, out));
  return pl_walk_start(walk, problem, room, out);
}

static planc_link own_part(const planc_problem *problem, const planc_link *link) {
  planc_link own = *link;
  if (problem->job.link_ppm > 0)
    own.bytes_per_second = pl_muldiv_ceil(link->bytes_per_second, problem->job.link_ppm, 1000000);
  return own;
}

planc_status pl_walk_start(pl_walk *walk, const planc_problem *problem, pl_walk_room room, planc_candidate *candidate) {
  PLANC_TRY(planc_candidate_schedule(problem, candidate));
  *walk = (pl_walk){.problem = problem,
                    .candidate = candidate,
                    .schedule = candidate->schedule,
                    .trace = candidate->trace,
                    .order = candidate->order};
  walk->costs = candidate->costs;
  walk->room = room.bytes;
  walk->reception = room.reception;
  walk->device = planc_profile_device(problem->job.profile);
  for (int r = 0; r < PLANC_N_ROUTES; r++) walk->links[r] = own_part(problem, &walk->device->links[r]);
  walk->swaps = !problem->terms.settings.no_swap;
  walk->recomputes = !problem->terms.settings.no_recompute;
  int64_t away = planc_share(&problem->terms, planc_away_budget(&problem->terms));
  walk->host_room = away < 0 ? INT64_MAX : away;
  return NULL;
}

static planc_variant variant_at(const pl_walk *walk, int32_t instance, int32_t variant) {
  return planc_schedule_variant(walk->schedule, &(planc_command){.instance = instance, .variant = variant});
}

/* --- Addresses ---------------------------------------------------------------------------------------------------- */

planc_status pl_online_init(pl_online *online, const planc_problem *problem) {
  *online = (pl_online){.handles = {0}};
  return pl_bfc_init(&online->memory, pl_arena_room(&problem->terms, problem->job.profile));
}

void pl_online_free(pl_online *online) {
  pl_bfc_free(&online->memory);
  VEC_FREE(&online->handles);
  VEC_FREE(&online->addresses);
}

static bool persists(const pl_walk *walk, int32_t buffer) {
  return walk->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
}

/* The address of the residency of `buffer` that is stated next. */
static planc_status find_address(const pl_walk *walk, int32_t buffer, int64_t *out_address) {
  pl_online *online = walk->online;
  *out_address = PLANC_BLANK;
  if (!online) return NULL;
  while (online->addresses.len < walk->trace->n_buffers) VEC_PUSH(&online->addresses, PLANC_BLANK);
  while (online->handles.len <= planc_schedule_n_residencies(walk->schedule)) VEC_PUSH(&online->handles, -1);
  if (online->addresses.data[buffer] != PLANC_BLANK) {
    *out_address = online->addresses.data[buffer];
    return NULL;
  }
  int32_t *handle = &online->handles.data[online->handles.len - 1];
  PLANC_TRY(pl_bfc_take(&online->memory, walk->trace->buffers[buffer].bytes, handle, out_address));
  if (persists(walk, buffer)) online->addresses.data[buffer] = *out_address;
  return NULL;
}

static planc_status give_back(const pl_walk *walk, int32_t residency, int32_t buffer) {
  if (!walk->online || persists(walk, buffer)) return NULL;
  return pl_bfc_give(&walk->online->memory, walk->online->handles.data[residency]);
}

/* --- Statement ---------------------------------------------------------------------------------------------------- */

planc_status pl_walk_boundary(pl_walk *walk, const bool *away) {
  int32_t device = planc_schedule_device(walk->schedule), host = planc_schedule_host(walk->schedule), residency;
  int64_t address;
  for (int32_t b = 0; away && b < walk->trace->n_buffers; b++) {
    if (away[b]) PLANC_TRY(planc_schedule_boundary(walk->schedule, b, host, PLANC_BLANK, &residency));
  }
  for (int32_t b = 0; b < walk->trace->n_buffers; b++) {
    const planc_buffer *buffer = &walk->trace->buffers[b];
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT) || (away && away[b])) continue;
    PLANC_TRY(find_address(walk, b, &address));
    PLANC_TRY(planc_schedule_boundary(walk->schedule, b, device, address, &residency));
    walk->live = pl_add_saturate(walk->live, pl_walk_bytes(buffer));
  }
  return NULL;
}

planc_status pl_walk_open(pl_walk *walk, int32_t buffer, int32_t *out_residency) {
  int64_t address;
  walk->live = pl_add_saturate(walk->live, pl_walk_bytes(&walk->trace->buffers[buffer]));
  PLANC_TRY(find_address(walk, buffer, &address));
  return planc_schedule_acquire(walk->schedule, buffer, planc_schedule_device(walk->schedule), address, out_residency);
}

planc_status pl_walk_make_ready(pl_walk *walk, const planc_access *access) {
  int32_t residency = planc_schedule_open(walk->schedule, access->buffer);
  if (residency < 0) PLANC_TRY(pl_walk_open(walk, access->buffer, &residency));
  if (access->read < 0 || planc_schedule_content(walk->schedule, residency) >= 0) return NULL;
  return planc_schedule_prefetch(walk->schedule, residency, access->read);
}

planc_status pl_walk_close(pl_walk *walk, int32_t residency) {
  int32_t buffer = planc_schedule_residencies(walk->schedule)[residency].buffer;
  walk->live -= pl_walk_bytes(&walk->trace->buffers[buffer]);
  PLANC_TRY(give_back(walk, residency, buffer));
  return planc_schedule_release(walk->schedule, residency);
}

static int32_t fastest_with_place(const pl_walk *walk, int32_t instance, int64_t limit);
static void note_live(const pl_walk *walk, int32_t instance, int32_t variant);
static planc_status exec_placed(const pl_walk *walk, int32_t instance, int32_t variant, bool recompute);

planc_status pl_walk_exec(pl_walk *walk, int32_t instance, bool recompute) {
  int64_t limit = walk->room;
  if (limit != PL_ROOM_UNLIMITED) limit = limit > walk->live ? limit - walk->live : 0;
  int32_t variant = recompute      ? planc_schedule_ran(walk->schedule, instance)
                    : walk->online ? fastest_with_place(walk, instance, limit)
                                   : pl_fastest_variant(walk->costs, &walk->trace->instances[instance], limit);
  note_live(walk, instance, variant);
  if (walk->online) return exec_placed(walk, instance, variant, recompute);
  return planc_schedule_exec(walk->schedule, instance, variant, PLANC_BLANK, recompute);
}

/* The fastest variant up to `limit` whose workspace finds a place, else the baseline. */
static int32_t fastest_with_place(const pl_walk *walk, int32_t instance, int64_t limit) {
  for (;;) {
    int64_t bytes = pl_walk_variant(walk, instance, limit).workspace_bytes;
    if (bytes == 0 || bytes > limit || pl_bfc_fits(&walk->online->memory, bytes)) break;
    limit = bytes - 1;
  }
  return pl_fastest_variant(walk->costs, &walk->trace->instances[instance], limit);
}

/* Runs an instance with its workspace where the allocator puts it. */
static planc_status exec_placed(const pl_walk *walk, int32_t instance, int32_t variant, bool recompute) {
  int64_t bytes = variant_at(walk, instance, variant).workspace_bytes, address = PLANC_BLANK;
  int32_t handle;
  if (bytes > 0) {
    PLANC_TRY(pl_bfc_take(&walk->online->memory, bytes, &handle, &address));
    PLANC_TRY(pl_bfc_give(&walk->online->memory, handle));
  }
  return planc_schedule_exec(walk->schedule, instance, variant, address, recompute);
}

/* Counts what is live while an instance runs. */
static void note_live(const pl_walk *walk, int32_t instance, int32_t variant) {
  if (!walk->live_at) return;
  int64_t bytes = pl_add_saturate(walk->live, variant_at(walk, instance, variant).workspace_bytes);
  if (bytes > walk->live_at[walk->position]) walk->live_at[walk->position] = bytes;
}

planc_status pl_walk_close_dead(pl_walk *walk, int32_t position) {
  const planc_trace *trace = walk->trace;
  const planc_instance *in = planc_order_instance(walk->order, position);
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
    int32_t b = trace->accesses[a].buffer;
    const planc_buffer *buffer = &trace->buffers[b];
    if ((buffer->flags & PLANC_BUFFER_PERSISTENT) || planc_order_last(walk->order, b) != position) continue;
    int32_t residency = planc_schedule_open(walk->schedule, b);
    if (residency < 0) continue;
    if (buffer->flags & PLANC_BUFFER_RESULT) PLANC_TRY(planc_schedule_deliver(walk->schedule, residency));
    PLANC_TRY(pl_walk_close(walk, residency));
  }
  return NULL;
}

/* --- Classes and variants ----------------------------------------------------------------------------------------- */

planc_class pl_instance_class(const planc_trace *trace, int32_t instance) {
  if (trace->instances[instance].role != PLANC_ROLE_OP) return PLANC_CLASS_elementwise;
  return pl_op_class(planc_trace_op(trace, instance));
}

int32_t pl_output_gradient(const planc_trace *trace, int32_t instance) {
  const planc_op *op = planc_trace_op(trace, instance);
  int32_t access = op->n_in > 1 ? planc_trace_access_of(trace, instance, op->in[1]) : -1;
  return access < 0 ? -1 : trace->accesses[access].buffer;
}

const planc_variant *pl_variants_of(const planc_costs *const *costs, const planc_instance *instance,
                                    int32_t *out_count) {
  const planc_costs *of = costs[instance->job];
  return planc_costs_variants(of, instance->op, planc_costs_batch(of, instance->batch), out_count);
}

int32_t pl_fastest_variant(const planc_costs *const *costs, const planc_instance *instance, int64_t limit) {
  if (instance->role != PLANC_ROLE_OP) return 0;
  int32_t count;
  const planc_variant *variants = pl_variants_of(costs, instance, &count);
  int32_t best = planc_variant_fastest(variants, count, limit);
  return best < 0 ? 0 : best;
}

planc_variant pl_walk_variant(const pl_walk *walk, int32_t instance, int64_t limit) {
  return variant_at(walk, instance, pl_fastest_variant(walk->costs, &walk->trace->instances[instance], limit));
}

planc_status pl_walk_workspaces(const pl_walk *walk, int64_t limit, pl_arena *arena, int64_t **out) {
  PLANC_TRY(PL_NEW(arena, out, walk->order->n));
  for (int32_t p = 0; p < walk->order->n; p++)
    (*out)[p] = pl_walk_variant(walk, walk->order->runs[p].instance, limit).workspace_bytes;
  return NULL;
}
