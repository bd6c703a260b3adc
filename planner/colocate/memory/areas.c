/* Areas of memory (areas.h). */
#include "planner/colocate/memory/areas.h"

#include "planner/colocate/memory/kept.h"
#include "planner/colocate/memory/regions.h"
#include "planner/memory/placement.h"
#include "util/math.h"

typedef struct making_areas {
  pl_arena *arena;
  pl_areas *areas;
  const planc_candidate *candidate; /* of the job */
  pl_job_areas *job;
  planc_tensor_class *classes;
  int64_t *residencies, *workspaces;
} making_areas;

static planc_status find_classes(making_areas *m);
static planc_status place_private(making_areas *m);
static planc_status find_demand(making_areas *m);
static int64_t find_capacity(const making_areas *m);
static planc_status follow_pass(making_areas *m, pl_regions *regions);

planc_status pl_areas_make(pl_arena *arena, int32_t n_jobs, const planc_candidate *jobs, int64_t region_bytes,
                           pl_areas *out) {
  pl_job_areas *of;
  *out = (pl_areas){.region_bytes = region_bytes};
  PLANC_TRY(PL_NEW(arena, &of, n_jobs));
  out->jobs = of;
  for (int32_t j = 0; j < n_jobs; j++) {
    making_areas m = {.arena = arena, .areas = out, .candidate = &jobs[j], .job = &of[j]};
    PLANC_TRY(find_classes(&m));
    PLANC_TRY(place_private(&m));
    PLANC_TRY(find_demand(&m));
  }
  return NULL;
}

static planc_status find_demand(making_areas *m) {
  pl_regions regions;
  planc_status status = pl_regions_init(&regions, pl_n_owners(1), m->areas->region_bytes, find_capacity(m));
  if (!status) status = follow_pass(m, &regions);
  pl_regions_free(&regions);
  return status;
}

planc_status pl_areas_addresses(pl_arena *arena, const pl_timing *timing, const pl_areas *areas, int64_t ***out) {
  PLANC_TRY(PL_NEW(arena, out, timing->n_passes));
  for (int32_t j = 0; j < timing->n_jobs; j++) {
    int32_t n = planc_schedule_n_residencies(timing->jobs[j].schedule);
    for (int32_t p = timing->first[j]; p < timing->first[j] + timing->iterations[j]; p++)
      PLANC_TRY(pl_arena_copy(arena, areas->jobs[j].residencies, n, sizeof(int64_t), (void *)&(*out)[p]));
  }
  return NULL;
}

/* --- Classes ------------------------------------------------------------------------------------------------------ */

static int64_t bytes_of(const making_areas *m, int32_t residency) {
  return planc_schedule_bytes(m->candidate->schedule, residency);
}

/* Temporaries have an area of the job's own because they are small and come and go often. One that fills a region by
 * itself is not small: it shares as feature maps do, or the area would be what no other job can use. */
static int64_t least_shared(const making_areas *m) {
  return m->areas->region_bytes > 0 ? m->areas->region_bytes : PLANC_STANDARD_region;
}

/* What is away takes nothing of the device, as if it were kept there. */
static planc_status find_classes(making_areas *m) {
  const planc_schedule *s = m->candidate->schedule;
  int32_t n = planc_schedule_n_residencies(s);
  PLANC_TRY(PL_NEW(m->arena, &m->classes, n));
  for (int32_t r = 0; r < n; r++) {
    if (planc_schedule_kind_of(s, r) != PLANC_MEMORY_DEVICE) continue;
    m->classes[r] = planc_tensor_class_of(m->candidate->trace, planc_schedule_residencies(s)[r].buffer);
    if (m->classes[r] == PLANC_TENSOR_TEMPORARY && bytes_of(m, r) >= least_shared(m))
      m->classes[r] = PLANC_TENSOR_FEATURE;
  }
  m->job->classes = m->classes;
  return NULL;
}

/* --- What is the job's alone -------------------------------------------------------------------------------------- */

/* Command c stands at position c + 1, as in addresses.c; `ends` is by command: where a workspace's life ends. */
static void list_temporaries(const making_areas *m, const int32_t *ends, pl_item *items) {
  const planc_schedule *s = m->candidate->schedule;
  const planc_command *commands = planc_schedule_commands(s);
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  for (int32_t i = 0; i < n_residencies + n_commands; i++) items[i] = (pl_item){.address = PLANC_BLANK};
  for (int32_t r = 0; r < n_residencies; r++)
    if (m->classes[r] == PLANC_TENSOR_TEMPORARY) items[r].bytes = bytes_of(m, r);
  for (int32_t c = 0; c < n_commands; c++) {
    pl_item *workspace = &items[n_residencies + c];
    if (commands[c].kind == PLANC_CMD_ACQUIRE)
      items[commands[c].residency].spans[0] = (pl_lifetime){c + 1, n_commands + 2};
    if (commands[c].kind == PLANC_CMD_RELEASE) items[commands[c].residency].spans[0].end = c + 1;
    if (commands[c].kind != PLANC_CMD_EXEC) continue;
    workspace->bytes = planc_schedule_variant(s, &commands[c]).workspace_bytes;
    workspace->spans[0] = (pl_lifetime){c + 1, ends[c] + 1};
  }
}

static planc_status place_temporaries(making_areas *m) {
  const planc_schedule *s = m->candidate->schedule;
  int32_t n_residencies = planc_schedule_n_residencies(s), n_commands = planc_schedule_n_commands(s);
  int64_t base = m->areas->private_bytes, top;
  int32_t *ends;
  pl_item *items;
  PLANC_TRY(PL_NEW(m->arena, &items, (int64_t)n_residencies + n_commands));
  PLANC_TRY(PL_NEW(m->arena, &ends, n_commands));
  planc_schedule_workspace_ends(s, ends);
  list_temporaries(m, ends, items);
  PLANC_TRY(pl_place(items, n_residencies + n_commands, &top, NULL));
  for (int32_t r = 0; r < n_residencies; r++)
    if (m->classes[r] == PLANC_TENSOR_TEMPORARY) m->residencies[r] = base + items[r].address;
  for (int32_t c = 0; c < n_commands; c++)
    m->workspaces[c] = items[n_residencies + c].bytes > 0 ? base + items[n_residencies + c].address : PLANC_BLANK;
  m->areas->private_bytes = pl_align_up(pl_add_saturate(base, top), PLANC_ALIGNMENT);
  return NULL;
}

static planc_status place_private(making_areas *m) {
  int32_t n = planc_schedule_n_residencies(m->candidate->schedule);
  PLANC_TRY(PL_NEW(m->arena, &m->residencies, n));
  PLANC_TRY(PL_NEW(m->arena, &m->workspaces, planc_schedule_n_commands(m->candidate->schedule)));
  for (int32_t r = 0; r < n; r++) m->residencies[r] = PLANC_BLANK;
  m->job->residencies = m->residencies;
  m->job->workspaces = m->workspaces;
  PLANC_TRY(pl_place_kept(m->arena, m->candidate, m->residencies, &m->areas->private_bytes));
  return place_temporaries(m);
}

/* --- What it asks of the others ----------------------------------------------------------------------------------- */

static bool in_regions(const making_areas *m, int32_t residency) {
  return pl_is_shared(m->classes[residency]);
}

static planc_status take_or_give(const making_areas *m, const planc_command *command, pl_regions *regions,
                                 int64_t *addresses) {
  int32_t r = command->residency;
  bool takes = command->kind == PLANC_CMD_ACQUIRE, gives = command->kind == PLANC_CMD_RELEASE;
  if ((!takes && !gives) || !in_regions(m, r)) return NULL;
  int32_t owner = pl_owner_of(0, m->classes[r]);
  return takes ? pl_regions_take(regions, owner, false, bytes_of(m, r), &addresses[r])
               : pl_regions_give(regions, owner, addresses[r], bytes_of(m, r));
}

static planc_status follow_pass(making_areas *m, pl_regions *regions) {
  const planc_schedule *s = m->candidate->schedule;
  int32_t n_commands = planc_schedule_n_commands(s);
  int64_t *addresses, before = 0;
  pl_demand_step *steps;
  PLANC_TRY(PL_NEW(m->arena, &addresses, planc_schedule_n_residencies(s)));
  PLANC_TRY(PL_NEW(m->arena, &steps, n_commands));
  for (int32_t c = 0; c < n_commands; c++) {
    PLANC_TRY(take_or_give(m, &planc_schedule_commands(s)[c], regions, addresses));
    int64_t held = regions->held[0] + regions->held[1];
    if (held == before) continue;
    steps[m->job->n_steps++] = (pl_demand_step){c, held};
    if (held > m->job->most_bytes) m->job->most_bytes = held;
    before = held;
  }
  m->job->steps = steps;
  return NULL;
}

/* Enough for a pass, wherever its tensors are. */
static int64_t find_capacity(const making_areas *m) {
  int64_t unit = m->areas->region_bytes > 0 ? m->areas->region_bytes : PLANC_ALIGNMENT, sum = 0;
  for (int32_t r = 0; r < planc_schedule_n_residencies(m->candidate->schedule); r++)
    if (in_regions(m, r)) sum = pl_add_saturate(sum, pl_align_up(bytes_of(m, r) + 1, unit));
  return sum;
}
