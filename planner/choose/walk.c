/* Walks that state a schedule (walk.h): residencies come and go, ops run with the fastest algorithm that has room. */
#include "planner/choose/walk.h"

#include "graph/optypes.h"
#include "planner/base/code.h"
#include "planner/base/if_fits.h"
#include "planner/choose/room_search.h"
#include "util/math.h"

int64_t pl_walk_bytes(const planc_buffer *buffer) {
  return pl_align_up(buffer->bytes, PLANC_ALIGNMENT);
}

planc_status pl_walk_start_rounds(pl_walk *walk, const planc_problem *problem, int64_t sub_batch, int64_t room,
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

planc_status pl_walk_start(pl_walk *walk, const planc_problem *problem, int64_t room, planc_candidate *candidate) {
  PLANC_TRY(planc_candidate_schedule(problem, candidate));
  *walk = (pl_walk){.problem = problem,
                    .candidate = candidate,
                    .schedule = candidate->schedule,
                    .trace = candidate->trace,
                    .order = candidate->order};
  walk->costs = candidate->costs;
  walk->room = room;
  walk->device = planc_profile_device(problem->job.profile);
  for (int r = 0; r < PLANC_N_ROUTES; r++) walk->links[r] = own_part(problem, &walk->device->links[r]);
  walk->swaps = !problem->terms.settings.no_swap;
  walk->recomputes = !problem->terms.settings.no_recompute;
  int64_t away = planc_share(&problem->terms, planc_away_budget(&problem->terms));
  walk->host_room = away < 0 ? INT64_MAX : away;
  return NULL;
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

/* --- Statement ---------------------------------------------------------------------------------------------------- */

static planc_status find_address(const pl_walk *walk, int32_t buffer, int64_t *out_address);

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
  int32_t variant = pl_fastest_variant(walk->costs, &walk->trace->instances[instance], limit);
  return planc_schedule_variant(walk->schedule, &(planc_command){.instance = instance, .variant = variant});
}

planc_status pl_walk_workspaces(const pl_walk *walk, int64_t limit, pl_arena *arena, int64_t **out) {
  PLANC_TRY(PL_NEW(arena, out, walk->order->n));
  for (int32_t p = 0; p < walk->order->n; p++)
    (*out)[p] = pl_walk_variant(walk, walk->order->runs[p].instance, limit).workspace_bytes;
  return NULL;
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
  planc_command command = {.instance = instance, .variant = variant};
  int64_t bytes = planc_schedule_variant(walk->schedule, &command).workspace_bytes, address = PLANC_BLANK;
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
  planc_command command = {.instance = instance, .variant = variant};
  int64_t bytes = pl_add_saturate(walk->live, planc_schedule_variant(walk->schedule, &command).workspace_bytes);
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

planc_class pl_instance_class(const planc_trace *trace, int32_t instance) {
  if (trace->instances[instance].role != PLANC_ROLE_OP) return PLANC_CLASS_elementwise;
  return pl_op_class(planc_trace_op(trace, instance));
}

int32_t pl_output_gradient(const planc_trace *trace, int32_t instance) {
  const planc_op *op = planc_trace_op(trace, instance);
  int32_t access = op->n_in > 1 ? planc_trace_access_of(trace, instance, op->in[1]) : -1;
  return access < 0 ? -1 : trace->accesses[access].buffer;
}

/* --- Candidates that fit ------------------------------------------------------------------------------------------ */

int pl_walk_receptions(const planc_problem *problem) {
  return problem->terms.gpus > 1 ? PLANC_RECEIVES_LATE + 1 : 1;
}

/* Measures what a candidate takes on the device, and whether it fits the budgets; where not, it is freed. */
static planc_status judge(const planc_evaluator *evaluator, bool by_room, planc_candidate *candidate, bool *out_fits,
                          int64_t *out_peak) {
  int64_t budget = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE];
  PLANC_TRY(evaluator->live(evaluator, candidate, out_peak));
  /* Only placement tells by how much the room must shrink. Where the room does not matter, live bytes above the
   * budget already show that the candidate does not fit. */
  if (by_room || *out_peak <= budget) PLANC_TRY(evaluator->peak(evaluator, candidate, out_peak));
  *out_fits = *out_peak <= budget;
  if (*out_fits) PLANC_TRY(pl_if_fits(evaluator->hold_to_host(evaluator, candidate), out_fits));
  if (!*out_fits) planc_candidate_free(candidate);
  return NULL;
}

planc_status pl_walk_try(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context, int64_t room,
                         planc_candidate *out, bool *out_fits) {
  bool by_room = room != PL_ROOM_UNLIMITED && room != PL_ROOM_NONE;
  int64_t budget = evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE], peak;
  pl_room_search search = pl_room_search_from(room, 0, 1);
  do {
    *out_fits = false;
    for (int receives = 0; !*out_fits && receives < pl_walk_receptions(evaluator->problem); receives++) {
      out->receives = receives;
      PLANC_TRY(maker(evaluator->problem, context, search.room, out));
      PLANC_TRY(judge(evaluator, by_room, out, out_fits, &peak));
    }
    /* Less room does not help where it is the host that lacks memory. */
  } while (!*out_fits && by_room && peak > budget && pl_room_search_down(&search, peak - budget));
  return NULL;
}

static planc_status live_without_room(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                                      int64_t *out_bytes) {
  planc_candidate candidate = {0};
  planc_status status = maker(evaluator->problem, context, PL_ROOM_NONE, &candidate);
  if (!status) status = evaluator->live(evaluator, &candidate, out_bytes);
  planc_candidate_free(&candidate);
  return status;
}

planc_status pl_walk_first(const planc_evaluator *evaluator, pl_walk_maker maker, const pl_walk_attempt *attempts,
                           int32_t n, planc_candidate *out, int32_t *out_number) {
  for (*out_number = 0; *out_number < n; ++*out_number) {
    const pl_walk_attempt *attempt = &attempts[*out_number];
    int64_t least = 0;
    bool fits;
    if (attempt->least_without_room) PLANC_TRY(live_without_room(evaluator, maker, attempt->context, &least));
    if (least > evaluator->problem->terms.budgets[PLANC_MEMORY_DEVICE]) continue;
    PLANC_TRY(pl_walk_try(evaluator, maker, attempt->context, attempt->room, out, &fits));
    if (fits) return NULL;
  }
  out->receives = PLANC_RECEIVES_LATE;
  return maker(evaluator->problem, attempts[n - 1].context, PL_ROOM_NONE, out);
}

planc_status pl_walk_fit(const planc_evaluator *evaluator, pl_walk_maker maker, const void *context,
                         planc_candidate *out) {
  const pl_walk_attempt attempts[] = {
      {.context = context, .room = PL_ROOM_UNLIMITED},
      {.context = context, .room = pl_arena_room(&evaluator->problem->terms, evaluator->problem->job.profile)}};
  static const char *const algorithms[] = {"every op has its fastest algorithm",
                                           "ops have the fastest algorithms that find room beside the data",
                                           "ops have their baseline algorithms, as faster ones do not fit"};
  int32_t number;
  PLANC_TRY(pl_walk_first(evaluator, maker, attempts, 2, out, &number));
  return planc_candidate_explain(out, "%s", algorithms[number]);
}
