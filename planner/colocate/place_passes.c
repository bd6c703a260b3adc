/* Offline placement of a period (place_passes.h). */
#include "planner/colocate/place_passes.h"

#include <stdlib.h>
#include <string.h>

#include "planner/memory/placement.h"

/* A tensor that is shared, and when it lives: from `begin` for `ns`, in the period's time. */
typedef struct life {
  int32_t pass, residency;
  int64_t bytes, begin_ns, ns;
} life;

/* A tensor begins to live, or ends. */
typedef struct turn_point {
  int64_t at_ns;
  int32_t life;
  bool begins;
} turn_point;

typedef struct placing {
  const pl_timing *timing;
  const pl_areas *areas;
  pl_arena *arena;
  int32_t n;
  life *lives;
  pl_item *items;
} placing;

/* --- Lives -------------------------------------------------------------------------------------------------------- */

static bool is_shared(const placing *p, int32_t job, int32_t residency) {
  pl_class class = p->areas->jobs[job].classes[residency];
  return class == PL_CLASS_FEATURE || class == PL_CLASS_GRADIENT;
}

static void list_pass(placing *p, int32_t job, int32_t pass, int32_t *of_residency) {
  const planc_schedule *s = p->timing->jobs[job].schedule;
  const pl_pass *times = &p->timing->passes[pass];
  for (int32_t c = 0; c < planc_schedule_n_commands(s); c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    bool begins = command->kind == PLANC_CMD_ACQUIRE;
    if ((!begins && command->kind != PLANC_CMD_RELEASE) || !is_shared(p, job, command->residency)) continue;
    int64_t at = times->start_ns + times->at_ns[c];
    if (!begins) {
      life *of = &p->lives[of_residency[command->residency]];
      of->ns = at - of->begin_ns;
      continue;
    }
    int32_t buffer = planc_schedule_residencies(s)[command->residency].buffer;
    of_residency[command->residency] = p->n;
    p->lives[p->n++] = (life){.pass = pass,
                              .residency = command->residency,
                              .bytes = p->timing->jobs[job].trace->buffers[buffer].bytes,
                              .begin_ns = at};
  }
}

static planc_status list_lives(placing *p) {
  const pl_timing *t = p->timing;
  int64_t most = 0;
  for (int32_t j = 0; j < t->n_jobs; j++)
    most += (int64_t)t->iterations[j] * planc_schedule_n_residencies(t->jobs[j].schedule);
  if (most > INT32_MAX / 2) return planc_error(PLANC_INTERNAL, "more than %d tensors in a period", INT32_MAX / 2);
  PLANC_TRY(PL_NEW(p->arena, &p->lives, most));
  PLANC_TRY(PL_NEW(p->arena, &p->items, most));
  for (int32_t j = 0; j < t->n_jobs; j++) {
    int32_t *of_residency;
    PLANC_TRY(PL_NEW(p->arena, &of_residency, planc_schedule_n_residencies(t->jobs[j].schedule)));
    for (int32_t k = 0; k < t->iterations[j]; k++) list_pass(p, j, t->first[j] + k, of_residency);
  }
  return NULL;
}

/* --- The circle --------------------------------------------------------------------------------------------------- */

/* At one time ends come first. */
static int compare_points(const void *left, const void *right) {
  const turn_point *a = left, *b = right;
  if (a->at_ns != b->at_ns) return a->at_ns < b->at_ns ? -1 : 1;
  if (a->begins != b->begins) return a->begins ? 1 : -1;
  return (a->life > b->life) - (a->life < b->life);
}

/* Where a life begins and ends in the order of all; one that goes round to its begin again has no end. */
static planc_status list_points(const placing *p, turn_point **out) {
  int64_t period = p->timing->period_ns;
  PLANC_TRY(PL_NEW(p->arena, out, INT64_C(2) * p->n));
  turn_point *next = *out;
  for (int32_t k = 0; k < p->n; k++) {
    *next++ = (turn_point){p->lives[k].begin_ns % period, k, true};
    *next++ = (turn_point){(p->lives[k].begin_ns + p->lives[k].ns) % period, k, false};
  }
  qsort(*out, (size_t)p->n * 2, sizeof **out, compare_points);
  return NULL;
}

static planc_status make_items(placing *p) {
  turn_point *points;
  int32_t n_points = 2 * p->n;
  PLANC_TRY(list_points(p, &points));
  for (int32_t k = 0; k < p->n; k++) p->items[k] = (pl_item){.bytes = p->lives[k].bytes, .address = PLANC_BLANK};
  for (int32_t i = 0; i < n_points; i++) {
    pl_lifetime *span = p->items[points[i].life].spans;
    *(points[i].begins ? &span->start : &span->end) = i;
  }
  for (int32_t k = 0; k < p->n; k++) {
    pl_lifetime *spans = p->items[k].spans;
    if (p->lives[k].ns == 0) {
      spans[0].end = spans[0].start + 1;
    } else if (p->lives[k].ns >= p->timing->period_ns) {
      spans[0] = (pl_lifetime){0, n_points};
    } else if (spans[0].end < spans[0].start) {
      spans[1] = (pl_lifetime){0, spans[0].end};
      spans[0].end = n_points;
    }
  }
  return NULL;
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

/* What is private has its places. */
static planc_status give_out(const placing *p, int64_t ***out) {
  const pl_timing *t = p->timing;
  PLANC_TRY(PL_NEW(p->arena, out, t->n_passes));
  for (int32_t j = 0; j < t->n_jobs; j++) {
    int32_t n = planc_schedule_n_residencies(t->jobs[j].schedule);
    for (int32_t pass = t->first[j]; pass < t->first[j] + t->iterations[j]; pass++)
      PLANC_TRY(pl_arena_copy(p->arena, p->areas->jobs[j].residencies, n, sizeof(int64_t), (void *)&(*out)[pass]));
  }
  for (int32_t k = 0; k < p->n; k++)
    (*out)[p->lives[k].pass][p->lives[k].residency] = p->areas->private_bytes + p->items[k].address;
  return NULL;
}

planc_status pl_place_passes(pl_arena *arena, const pl_timing *timing, const pl_areas *areas, int64_t capacity_bytes,
                             int64_t ***out, bool *out_fits) {
  placing p = {.timing = timing, .areas = areas, .arena = arena};
  int64_t top;
  *out_fits = timing->period_ns > 0;
  if (!*out_fits) return NULL;
  PLANC_TRY(list_lives(&p));
  PLANC_TRY(make_items(&p));
  PLANC_TRY(pl_place_within(p.items, p.n, capacity_bytes, &top));
  *out_fits = top <= capacity_bytes;
  return *out_fits ? give_out(&p, out) : NULL;
}
