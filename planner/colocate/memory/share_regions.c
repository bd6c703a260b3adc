/* Regions over time (share_regions.h). */
#include "planner/colocate/memory/share_regions.h"

#include "planner/colocate/jobs/by_time.h"
#include "planner/colocate/memory/regions.h"

/* Periods that are followed at most until two in a row have the same addresses. What is not the same then is still
 * right: an address that is not free in time is waited for. */
enum { MAX_PERIODS = 8 };

typedef struct sharing {
  const pl_timing *timing;
  const pl_areas *areas;
  pl_regions regions;
  int64_t **addresses; /* by pass, by residency: as it was there last */
  pl_cursor *cursors;
  int64_t n_same; /* how many in a row were taken where they were in the period before */
  bool fits;
} sharing;

static planc_status start(pl_arena *arena, sharing *s);
static planc_status follow(sharing *s);
static int64_t count_takes(const sharing *s);
static planc_status follow_command(sharing *s, int32_t job);

planc_status pl_share_regions(pl_arena *arena, const pl_timing *timing, const pl_areas *areas, int64_t capacity_bytes,
                              int64_t ***out, bool *out_fits) {
  sharing s = {.timing = timing, .areas = areas, .fits = true};
  planc_status status = start(arena, &s);
  if (!status) status = pl_regions_init(&s.regions, pl_n_owners(timing->n_jobs), areas->region_bytes, capacity_bytes);
  if (!status) status = follow(&s);
  pl_regions_free(&s.regions);
  *out = s.addresses;
  *out_fits = !status && s.fits;
  return status;
}

/* In the order of time, until a whole period is as the one before. */
static planc_status follow(sharing *s) {
  int64_t n = count_takes(s);
  int32_t j;
  while (s->fits && s->n_same < n && (j = pl_cursors_next(s->timing, s->cursors, MAX_PERIODS)) >= 0) {
    PLANC_TRY(follow_command(s, j));
    pl_cursor_advance(s->timing, j, &s->cursors[j]);
  }
  return NULL;
}

static planc_status start(pl_arena *arena, sharing *s) {
  PLANC_TRY(PL_NEW(arena, &s->cursors, s->timing->n_jobs));
  return pl_areas_addresses(arena, s->timing, s->areas, &s->addresses);
}

static planc_status take(sharing *s, int32_t job, planc_tensor_class class, int64_t bytes, int64_t *address) {
  int64_t before = *address;
  PLANC_TRY(pl_regions_take(&s->regions, pl_owner_of(job, class), job % 2 == 1, bytes, address));
  s->fits = *address >= 0;
  *address += s->areas->private_bytes;
  s->n_same = *address == before ? s->n_same + 1 : 0;
  return NULL;
}

/* Takes or gives what a command opens or closes. */
static planc_status follow_command(sharing *s, int32_t job) {
  const pl_timing *t = s->timing;
  const planc_candidate *of = &t->jobs[job];
  const planc_command *command = pl_cursor_command(t, job, &s->cursors[job]);
  if (command->kind != PLANC_CMD_ACQUIRE && command->kind != PLANC_CMD_RELEASE) return NULL;
  planc_tensor_class class = s->areas->jobs[job].classes[command->residency];
  if (!pl_is_shared(class)) return NULL;
  int64_t bytes = planc_schedule_bytes(of->schedule, command->residency);
  int64_t *address = &s->addresses[t->first[job] + s->cursors[job].iteration][command->residency];
  if (command->kind == PLANC_CMD_ACQUIRE) return take(s, job, class, bytes, address);
  return pl_regions_give(&s->regions, pl_owner_of(job, class), *address - s->areas->private_bytes, bytes);
}

/* How many tensors a period puts into regions; at least 1. */
static int64_t count_takes(const sharing *s) {
  const pl_timing *t = s->timing;
  int64_t n = 0;
  for (int32_t j = 0; j < t->n_jobs; j++)
    for (int32_t r = 0; r < planc_schedule_n_residencies(t->jobs[j].schedule); r++)
      if (pl_is_shared(s->areas->jobs[j].classes[r])) n += t->iterations[j];
  return n > 0 ? n : 1;
}
