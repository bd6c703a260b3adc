/* Pairs of node groups (pairing.h). */
#include "planner/colocate/interleave/pairing.h"

#include <stdlib.h>

#include "util/math.h"
#include "util/vec.h"

/* The streams, by what the paper calls them av and dv. */
enum { ALLOCATING, DEALLOCATING, EITHER };

/* A place in both streams. */
typedef struct pair_place {
  pl_paired of[PL_PAIR];
  int64_t held_bytes; /* at the most while they run, by all passes */
} pair_place;

typedef struct pairing {
  const pl_pairing_pass *passes;
  int32_t n;
  const pl_pairing_rule *rule;
  VEC(pair_place) places;
  int32_t *last_of; /* by job: the place of its last group, -1 = none yet */
  /* The pass whose groups are placed: */
  int32_t pass, first, last; /* it, and the places of its first and its last group so far, -1 = none yet */
  int64_t held_bytes;        /* by it behind that; counted at all places there are */
} pairing;

static int compare_passes(const void *left, const void *right);

void pl_sort_passes(pl_pairing_pass *passes, int32_t n) {
  qsort(passes, (size_t)n, sizeof *passes, compare_passes);
}

/* --- Order of passes ---------------------------------------------------------------------------------------------- */

/* How much of the period is over when the pass begins. */
static int64_t begins_at(const pl_pairing_pass *pass) {
  return ((int64_t)pass->iteration << 32) / pass->n_iterations;
}

static int compare_passes(const void *left, const void *right) {
  const pl_pairing_pass *a = left, *b = right;
  if (begins_at(a) != begins_at(b)) return begins_at(a) < begins_at(b) ? -1 : 1;
  if (a->groups->n != b->groups->n) return a->groups->n > b->groups->n ? -1 : 1;
  if (a->groups->most_bytes != b->groups->most_bytes) return a->groups->most_bytes > b->groups->most_bytes ? -1 : 1;
  return (a->job > b->job) - (a->job < b->job);
}

/* --- Node groups side by side ------------------------------------------------------------------------------------- */

static planc_status place_all(pairing *p, pl_arena *arena);
static planc_status list_pairs(const pairing *p, pl_arena *arena, pl_pairs *out);
static planc_status place_pass(pairing *p, int32_t pass);
static int32_t find_ahead(const pairing *p);
static planc_status put_from(pairing *p, int32_t number, int32_t index, int32_t stream);
static int32_t stream_of(const pairing *p, int32_t number, int32_t ahead);
static int32_t find_first(const pairing *p, const pl_node_group *group, int32_t index);
static int32_t free_stream(const pairing *p, int32_t index, int32_t stream);
static bool fits_at(const pairing *p, int32_t at, int64_t own);
static planc_status put(pairing *p, int32_t number, int32_t index, int32_t stream);

planc_status pl_pair_groups(pl_arena *arena, const pl_pairing_pass *passes, int32_t n, const pl_pairing_rule *rule,
                            pl_pairs *out) {
  pairing p = {.passes = passes, .n = n, .rule = rule};
  *out = (pl_pairs){0};
  planc_status status = place_all(&p, arena);
  if (!status) status = list_pairs(&p, arena, out);
  VEC_FREE(&p.places);
  return status;
}

static planc_status place_all(pairing *p, pl_arena *arena) {
  int32_t n_jobs = 0;
  for (int32_t k = 0; k < p->n; k++)
    if (p->passes[k].job >= n_jobs) n_jobs = p->passes[k].job + 1;
  PLANC_TRY(PL_NEW(arena, &p->last_of, n_jobs));
  for (int32_t j = 0; j < n_jobs; j++) p->last_of[j] = -1;
  p->first = -1;
  for (int32_t k = 0; k < p->n; k++) PLANC_TRY(place_pass(p, k));
  return NULL;
}

static planc_status place_pass(pairing *p, int32_t pass) {
  const pl_node_groups *groups = p->passes[pass].groups;
  int32_t *last_of = &p->last_of[p->passes[pass].job], before = p->first;
  int32_t ahead = pass == 1 && !p->rule->early ? find_ahead(p) : 0;
  int32_t start = ahead > 0 ? p->passes[0].groups->n_allocating - ahead : before;
  p->pass = pass;
  p->first = p->last = -1;
  p->held_bytes = 0;
  if (start <= *last_of) start = *last_of + 1;
  for (int32_t g = 0; g < groups->n; g++)
    PLANC_TRY(put_from(p, g, g == 0 ? (start > 0 ? start : 0) : p->last + 1, stream_of(p, g, ahead)));
  *last_of = p->last;
  return NULL;
}

/* Behind the last place all is free, and no other pass holds anything. */
static planc_status put_from(pairing *p, int32_t number, int32_t index, int32_t stream) {
  const pl_node_group *group = &p->passes[p->pass].groups->groups[number];
  for (index = find_first(p, group, index);; index++) {
    int32_t in = free_stream(p, index, stream);
    if (in >= 0 && fits_at(p, index, group->most_bytes)) return put(p, number, index, in);
  }
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

static planc_status reach(pairing *p, int32_t index) {
  while (p->places.len <= index)
    VEC_PUSH(&p->places, ((pair_place){.of = {{-1, -1}, {-1, -1}}, .held_bytes = p->held_bytes}));
  return NULL;
}

static bool is_free(const pairing *p, int32_t index, int32_t stream) {
  return index >= p->places.len || p->places.data[index].of[stream].pass < 0;
}

/* The stream at a place that a group can go to, of the one or of either; -1 = none. */
static int32_t free_stream(const pairing *p, int32_t index, int32_t stream) {
  if (stream != EITHER) return is_free(p, index, stream) ? stream : -1;
  if (is_free(p, index, ALLOCATING)) return ALLOCATING;
  return is_free(p, index, DEALLOCATING) ? DEALLOCATING : -1;
}

/* What is held at a place if the pass holds so much there. */
static int64_t held_with(const pairing *p, int32_t at, int64_t own) {
  return pl_add_saturate(p->places.data[at].held_bytes - p->held_bytes, own);
}

static bool fits_at(const pairing *p, int32_t at, int64_t own) {
  return at >= p->places.len || held_with(p, at, own) <= p->rule->limit_bytes;
}

/* The first place from `index` on where what the group leaves fits, as it does at all places behind. At its own place a
 * group holds no less than it leaves. */
static int32_t find_first(const pairing *p, const pl_node_group *group, int32_t index) {
  for (int32_t at = (int32_t)p->places.len - 1; at >= index; at--)
    if (!fits_at(p, at, group->held_bytes)) return at + 1;
  return index;
}

static planc_status put(pairing *p, int32_t number, int32_t index, int32_t stream) {
  const pl_node_group *group = &p->passes[p->pass].groups->groups[number];
  PLANC_TRY(reach(p, index));
  p->places.data[index].of[stream] = (pl_paired){p->pass, number};
  for (int32_t at = index; at < p->places.len; at++)
    p->places.data[at].held_bytes = held_with(p, at, at == index ? group->most_bytes : group->held_bytes);
  if (p->first < 0) p->first = index;
  p->last = index;
  p->held_bytes = group->held_bytes;
  return NULL;
}

/* --- Passes ------------------------------------------------------------------------------------------------------- */

/* How many groups of the second pass run beside the last allocation groups of the first. */
static int32_t find_ahead(const pairing *p) {
  const pl_node_groups *first = p->passes[0].groups, *second = p->passes[1].groups;
  int64_t left = p->rule->limit_bytes - first->most_bytes;
  int64_t ahead = left > 0 ? left / p->rule->split_bytes - 1 : 0;
  int64_t most = first->n_allocating < second->n_allocating ? first->n_allocating : second->n_allocating;
  return (int32_t)(ahead < 0 ? 0 : ahead < most ? ahead : most);
}

static int32_t stream_of(const pairing *p, int32_t number, int32_t ahead) {
  if (p->rule->early) return EITHER;
  if (number < ahead) return DEALLOCATING;
  if (number < p->passes[p->pass].groups->n_allocating) return ALLOCATING;
  return p->pass == p->n - 1 ? EITHER : DEALLOCATING;
}

/* --- From places to pairs ----------------------------------------------------------------------------------------- */

static bool is_empty(const pair_place *at) {
  return at->of[ALLOCATING].pass < 0 && at->of[DEALLOCATING].pass < 0;
}

static planc_status list_pairs(const pairing *p, pl_arena *arena, pl_pairs *out) {
  pl_paired(*pairs)[PL_PAIR];
  PLANC_TRY(PL_NEW(arena, &pairs, p->places.len));
  for (int64_t k = 0; k < p->places.len; k++) {
    if (is_empty(&p->places.data[k])) continue;
    for (int32_t s = 0; s < PL_PAIR; s++) pairs[out->n][s] = p->places.data[k].of[s];
    out->n++;
  }
  out->pairs = (const pl_paired(*)[PL_PAIR])pairs;
  return NULL;
}

/* --- How long at the least ---------------------------------------------------------------------------------------- */

/* What a group's ops take alone, and how long they would keep the whole GPU busy. */
typedef struct group_work {
  int64_t alone_ns, busy_ns;
} group_work;

static group_work work_of(const planc_candidate *job, const pl_node_group *group) {
  const planc_command *commands = planc_schedule_commands(job->schedule);
  group_work work = {0};
  for (int32_t c = group->first; c < group->end; c++) {
    if (commands[c].kind != PLANC_CMD_EXEC) continue;
    planc_variant variant = planc_schedule_variant(job->schedule, &commands[c]);
    work.alone_ns = pl_add_saturate(work.alone_ns, variant.time_ns);
    work.busy_ns = pl_add_saturate(work.busy_ns, pl_muldiv_floor(variant.time_ns, variant.busy_ppm, PL_PPM));
  }
  return work;
}

int64_t pl_pairs_least_ns(const planc_candidate *jobs, const pl_pairing_pass *passes, const pl_pairs *pairs) {
  int64_t ns = 0;
  for (int32_t p = 0; p < pairs->n; p++) {
    int64_t least = 0, busy = 0;
    for (int32_t s = 0; s < PL_PAIR; s++) {
      const pl_paired *paired = &pairs->pairs[p][s];
      if (paired->pass < 0) continue;
      const pl_pairing_pass *pass = &passes[paired->pass];
      group_work work = work_of(&jobs[pass->job], &pass->groups->groups[paired->group]);
      least = pl_max(least, work.alone_ns);
      busy = pl_add_saturate(busy, work.busy_ns);
    }
    ns = pl_add_saturate(ns, pl_max(least, busy));
  }
  return ns;
}
