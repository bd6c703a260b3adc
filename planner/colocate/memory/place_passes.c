/* Offline placement of a period (place_passes.h). */
#include "planner/colocate/memory/place_passes.h"

#include <stdlib.h>

#include "planner/colocate/jobs/by_time.h"
#include "planner/memory/placement.h"

/* A command in the period: when it happens, and its number in the order of time. */
typedef struct moment {
  int64_t ns;
  int64_t number;
} moment;

/* A tensor that is shared, from where it is taken to where it is given back. */
typedef struct life {
  int32_t pass, residency;
  moment begin, end;
} life;

/* A point of the circle, where a tensor begins or ends to live. */
typedef struct turn_point {
  int64_t on_circle_ns, number;
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

static planc_status list_lives(placing *p);
static planc_status set_spans(placing *p);
static planc_status give_out(const placing *p, int64_t ***out);

planc_status pl_place_passes(pl_arena *arena, const pl_timing *timing, const pl_areas *areas, int64_t capacity_bytes,
                             int64_t ***out, bool *out_fits) {
  placing p = {.timing = timing, .areas = areas, .arena = arena};
  int64_t top;
  *out_fits = timing->period_ns > 0;
  if (!*out_fits) return NULL;
  PLANC_TRY(list_lives(&p));
  PLANC_TRY(set_spans(&p));
  PLANC_TRY(pl_place_within(p.items, p.n, capacity_bytes, &top));
  *out_fits = top <= capacity_bytes;
  return *out_fits ? give_out(&p, out) : NULL;
}

/* --- Lives -------------------------------------------------------------------------------------------------------- */

/* By pass, which life a residency has. */
static planc_status new_table(const placing *p, int32_t ***out) {
  const pl_timing *t = p->timing;
  PLANC_TRY(PL_NEW(p->arena, out, t->n_passes));
  for (int32_t j = 0; j < t->n_jobs; j++)
    for (int32_t k = 0; k < t->iterations[j]; k++)
      PLANC_TRY(PL_NEW(p->arena, &(*out)[t->first[j] + k], planc_schedule_n_residencies(t->jobs[j].schedule)));
  return NULL;
}

static void follow_turn(placing *p, const pl_turn *turn, int64_t number, int32_t **life_of) {
  int32_t pass = p->timing->first[turn->job] + turn->iteration;
  const pl_pass *times = &p->timing->passes[pass];
  const planc_command *command = &planc_schedule_commands(p->timing->jobs[turn->job].schedule)[turn->first];
  bool takes = command->kind == PLANC_CMD_ACQUIRE;
  if ((!takes && command->kind != PLANC_CMD_RELEASE) ||
      !pl_is_shared(p->areas->jobs[turn->job].classes[command->residency]))
    return;
  moment now = {times->start_ns + times->at_ns[turn->first], number};
  int32_t *of = &life_of[pass][command->residency];
  if (!takes) {
    p->lives[*of].end = now;
    return;
  }
  *of = p->n++;
  p->lives[*of] = (life){.pass = pass, .residency = command->residency, .begin = now, .end = now};
  p->items[*of] = (pl_item){.bytes = planc_schedule_bytes(p->timing->jobs[turn->job].schedule, command->residency),
                            .address = PLANC_BLANK};
}

/* In the order in which a plan states them. */
static planc_status list_lives(placing *p) {
  const pl_turn *turns;
  int64_t n;
  int32_t **life_of;
  PLANC_TRY(pl_turns_by_time(p->arena, p->timing, &turns, &n));
  if (n > INT32_MAX / 2) return planc_error(PLANC_INTERNAL, "more than %d commands in a period", INT32_MAX / 2);
  PLANC_TRY(PL_NEW(p->arena, &p->lives, n));
  PLANC_TRY(PL_NEW(p->arena, &p->items, n));
  PLANC_TRY(new_table(p, &life_of));
  for (int64_t k = 0; k < n; k++) follow_turn(p, &turns[k], k, life_of);
  return NULL;
}

/* --- The circle --------------------------------------------------------------------------------------------------- */

/* What the plan states at one time stays in its order. */
static int compare_points(const void *left, const void *right) {
  const turn_point *a = left, *b = right;
  if (a->on_circle_ns != b->on_circle_ns) return a->on_circle_ns < b->on_circle_ns ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

static planc_status list_points(const placing *p, turn_point **out) {
  int64_t period = p->timing->period_ns;
  PLANC_TRY(PL_NEW(p->arena, out, INT64_C(2) * p->n));
  turn_point *next = *out;
  for (int32_t k = 0; k < p->n; k++) {
    *next++ = (turn_point){p->lives[k].begin.ns % period, p->lives[k].begin.number, k, true};
    *next++ = (turn_point){p->lives[k].end.ns % period, p->lives[k].end.number, k, false};
  }
  qsort(*out, (size_t)p->n * 2, sizeof **out, compare_points);
  return NULL;
}

/* A life that ends on the circle before it begins goes on into the next period, where it is at the beginning. */
static planc_status set_spans(placing *p) {
  turn_point *points;
  int32_t n_points = 2 * p->n;
  PLANC_TRY(list_points(p, &points));
  for (int32_t i = 0; i < n_points; i++) {
    pl_lifetime *span = p->items[points[i].life].spans;
    *(points[i].begins ? &span->start : &span->end) = i;
  }
  for (int32_t k = 0; k < p->n; k++) {
    pl_lifetime *spans = p->items[k].spans;
    if (p->lives[k].end.ns - p->lives[k].begin.ns >= p->timing->period_ns) {
      spans[0] = (pl_lifetime){0, n_points};
    } else if (spans[0].end < spans[0].start) {
      spans[1] = (pl_lifetime){spans[0].start, n_points};
      spans[0].start = 0;
    }
  }
  return NULL;
}

/* --- Addresses ---------------------------------------------------------------------------------------------------- */

static planc_status give_out(const placing *p, int64_t ***out) {
  PLANC_TRY(pl_areas_addresses(p->arena, p->timing, p->areas, out));
  for (int32_t k = 0; k < p->n; k++)
    (*out)[p->lives[k].pass][p->lives[k].residency] = p->areas->private_bytes + p->items[k].address;
  return NULL;
}
