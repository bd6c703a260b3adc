/* Addresses for buffers of anybody (place.h): what greedy orders find at once, and then complete search for less. */
#include "planc/place.h"

#include <stdlib.h>

#include "planc/schedule.h"
#include "planner/memory/placement.h"
#include "planner/memory/placement_search.h"
#include "util/arena.h"
#include "util/math.h"

#define FIRST_STEPS INT64_C(300000000)

typedef struct addressing {
  pl_arena arena;
  planc_place_buffer *buffers;
  int32_t n;
  const planc_place_terms *terms;
  pl_item *items;    /* sizes rounded up, times by their order */
  pl_item *searched; /* those that have bytes, without addresses */
  int64_t *lengths;  /* of these */
  int32_t *source, n_searched;
  int64_t visits;
  planc_placed *out;
} addressing;

static planc_status check_terms(const planc_place_terms *terms);
static planc_status check_buffers(const planc_place_buffer *buffers, int32_t n);
static planc_status list_items(addressing *p);
static planc_status place_at_once(addressing *p);
static planc_status search_capacity(addressing *p);
static planc_status search_less(addressing *p);

planc_status planc_place(planc_place_buffer *buffers, int32_t n, const planc_place_terms *terms, planc_placed *out) {
  addressing p = {.buffers = buffers, .n = n, .terms = terms, .out = out};
  *out = (planc_placed){0};
  PLANC_TRY(check_terms(terms));
  PLANC_TRY(check_buffers(buffers, n));
  planc_status status = list_items(&p);
  if (!status) status = place_at_once(&p);
  if (!status && terms->capacity > 0) status = search_capacity(&p);
  if (!status && terms->capacity == 0) status = search_less(&p);
  for (int32_t i = 0; !status && i < n; i++) buffers[i].address = p.items[i].address;
  pl_arena_free(&p.arena);
  return status;
}

/* --- What is asked ------------------------------------------------------------------------------------------------ */

static planc_status check_terms(const planc_place_terms *terms) {
  if (terms->alignment < 1) return planc_error(PLANC_USAGE, "an alignment is 1 at least");
  if (terms->capacity < 0) return planc_error(PLANC_USAGE, "a capacity is not negative");
  if (terms->effort < 0 || terms->effort > PLANC_PLACE_MOST_EFFORT)
    return planc_error(PLANC_USAGE, "an effort is 0 to %d", PLANC_PLACE_MOST_EFFORT);
  return NULL;
}

static planc_status check_buffers(const planc_place_buffer *buffers, int32_t n) {
  if (n > INT32_MAX / 2) return planc_error(PLANC_BAD_INPUT, "%d buffers are too many", n);
  for (int32_t i = 0; i < n; i++) {
    const planc_place_buffer *b = &buffers[i];
    if (b->lower < 0) return planc_error(PLANC_BAD_INPUT, "buffer %d: negative time %lld", i, (long long)b->lower);
    if (b->bytes < 0) return planc_error(PLANC_BAD_INPUT, "buffer %d: negative size %lld", i, (long long)b->bytes);
    if (b->lower >= b->upper)
      return planc_error(PLANC_BAD_INPUT, "buffer %d lives from %lld to before %lld, which is never", i,
                         (long long)b->lower, (long long)b->upper);
  }
  return NULL;
}

static int compare_times(const void *left, const void *right) {
  const int64_t *a = left, *b = right;
  return (*a > *b) - (*a < *b);
}

static int32_t position_of(const int64_t *times, int32_t n, int64_t time) {
  const int64_t *found = bsearch(&time, times, (size_t)n, sizeof *times, compare_times);
  return (int32_t)(found - times);
}

/* Times are replaced by their positions among all times: what lives beside what does not change. */
static planc_status list_items(addressing *p) {
  int64_t *times;
  int32_t n_times = 0;
  PLANC_TRY(PL_NEW(&p->arena, &times, INT64_C(2) * p->n));
  PLANC_TRY(PL_NEW(&p->arena, &p->items, p->n));
  for (int32_t i = 0; i < p->n; i++) {
    times[i] = p->buffers[i].lower;
    times[p->n + i] = p->buffers[i].upper;
  }
  if (p->n > 0) qsort(times, 2 * (size_t)p->n, sizeof *times, compare_times);
  for (int32_t k = 0; k < 2 * p->n; k++)
    if (n_times == 0 || times[k] != times[n_times - 1]) times[n_times++] = times[k];
  for (int32_t i = 0; i < p->n; i++) {
    const planc_place_buffer *b = &p->buffers[i];
    p->items[i] = (pl_item){.bytes = pl_align_up(b->bytes, p->terms->alignment), .address = PLANC_BLANK};
    p->items[i].spans[0] = (pl_lifetime){position_of(times, n_times, b->lower), position_of(times, n_times, b->upper)};
  }
  return NULL;
}

/* --- What is found ------------------------------------------------------------------------------------------------ */

static planc_status refuse(const planc_placed *found, int64_t room, pl_verdict verdict);
static planc_status prepare_search(addressing *p);
static planc_status search(addressing *p, int64_t room, int64_t visits, pl_verdict *out);

/* Multiples of the alignment alone are of use. */
static int64_t room_of(const planc_place_terms *terms) {
  return terms->capacity - terms->capacity % terms->alignment;
}

static planc_status place_at_once(addressing *p) {
  PLANC_TRY(pl_place_in_units(p->items, p->n, p->terms->alignment, &p->out->live_bytes, &p->out->bytes));
  p->out->least_bytes = p->out->live_bytes;
  p->visits = p->terms->effort > 0 ? FIRST_STEPS : 0;
  p->out->too_many = p->visits > 0 && p->n > PL_SEARCHED_ITEMS;
  for (int32_t e = 1; e < p->terms->effort; e++) p->visits *= 10;
  return NULL;
}

static planc_status search_capacity(addressing *p) {
  pl_verdict verdict = PL_UNDECIDED;
  int64_t room = room_of(p->terms);
  if (p->out->bytes <= room) return NULL;
  if (p->out->live_bytes <= room) {
    PLANC_TRY(prepare_search(p));
    PLANC_TRY(search(p, room, p->visits, &verdict));
  }
  return verdict == PL_PLACED ? NULL : refuse(p->out, room, verdict);
}

/* Tries what nothing can be less than, and then what lies in the middle of what may be possible. */
static planc_status search_less(addressing *p) {
  int64_t unit = p->terms->alignment, low = p->out->least_bytes, room = low;
  if (p->out->bytes == low || p->visits == 0) return NULL;
  PLANC_TRY(prepare_search(p));
  while (low < p->out->bytes && p->visits > p->n) {
    pl_verdict verdict;
    PLANC_TRY(search(p, room, p->visits / 2, &verdict));
    if (verdict != PL_PLACED) low = room + unit;
    room = low + (p->out->bytes - low) / 2 / unit * unit;
  }
  return NULL;
}

static planc_status prepare_search(addressing *p) {
  PLANC_TRY(PL_NEW(&p->arena, &p->searched, p->n));
  PLANC_TRY(PL_NEW(&p->arena, &p->lengths, p->n));
  PLANC_TRY(PL_NEW(&p->arena, &p->source, p->n));
  for (int32_t i = 0; i < p->n; i++) {
    if (p->items[i].bytes == 0) continue;
    p->searched[p->n_searched] = p->items[i];
    p->searched[p->n_searched].address = PLANC_BLANK;
    p->lengths[p->n_searched] = p->buffers[i].upper - p->buffers[i].lower;
    p->source[p->n_searched++] = i;
  }
  return NULL;
}

/* Keeps what the verdict says: addresses, or that there are none. */
static planc_status search(addressing *p, int64_t room, int64_t visits, pl_verdict *out) {
  int64_t left = visits;
  PLANC_TRY(pl_placement_search(p->searched, p->lengths, p->n_searched, room, &left, out));
  p->visits -= visits - left;
  if (*out == PL_IMPOSSIBLE) p->out->least_bytes = room + p->terms->alignment;
  if (*out != PL_PLACED) return NULL;
  p->out->bytes = 0;
  for (int32_t k = 0; k < p->n_searched; k++) {
    pl_item *item = &p->searched[k];
    p->items[p->source[k]].address = item->address;
    p->out->bytes = pl_max(p->out->bytes, item->address + item->bytes);
    item->address = PLANC_BLANK;
  }
  return NULL;
}

static planc_status refuse(const planc_placed *found, int64_t room, pl_verdict verdict) {
  const planc_shortage least = {.bytes = found->least_bytes}, known = {.bytes = found->bytes};
  if (found->live_bytes > room)
    return planc_infeasible(least, "there are no addresses within %lld bytes: %lld live at a time", (long long)room,
                            (long long)found->live_bytes);
  if (verdict == PL_IMPOSSIBLE)
    return planc_infeasible(least, "there are no addresses within %lld bytes: a complete search has shown it",
                            (long long)room);
  return planc_infeasible(known,
                          "found no addresses within %lld bytes, the least found is %lld: more effort may find some",
                          (long long)room, (long long)found->bytes);
}
