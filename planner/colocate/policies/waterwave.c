/* `waterwave` and `waterwave-s`: memory flows between jobs side by side (papers/003).
 *
 * Each job is planned alone, beside what the others keep, and its iteration cut into node groups (node_groups.h). Which
 * groups run side by side is decided so that what one job lets go the next one takes (pairing.h); addresses are those
 * of an allocator that knows the streams (stream_chunks.h), as it follows the pairs (flow.h). `waterwave-s` cuts each
 * iteration into two only: at its fullest moment or behind its forward ops, whichever is faster.
 *
 * The paper's allocator and barriers enforce at run time an order that a plan has anyway: nobody uses an address before
 * its last user has ended. So nothing else need be waited for, and a group goes to the earliest place that has room for
 * it. In the paper's way both groups of a pair wait for the pair before, the period begins with a barrier, and
 * Algorithm 1 decides how far a job goes ahead: pair_barriers asks for that alone, and else it is taken where it is
 * faster.
 *
 * What the user leaves open is searched with the simulator: the size of groups, and at the fastest of these the order
 * of depths and of the graph, and the variants that the paper names; with barriers that were not asked for, these only
 * where sizes alone are faster than all without barriers. Where the allocator's pieces are too small, addresses are
 * placed at once. The jobs take turns where nothing fits, or nothing is as fast. */
#include <stdio.h>
#include <string.h>

#include "plan/one_job.h"
#include "planner/base/code.h"
#include "planner/base/if_fits.h"
#include "planner/choose/room_search.h"
#include "planner/colocate/interleave/beside.h"
#include "planner/colocate/interleave/depth_order.h"
#include "planner/colocate/interleave/flow.h"
#include "planner/colocate/memory/kept.h"
#include "planner/colocate/policies/instead.h"
#include "planner/colocate/policies/mix_policies.h"
#include "planner/policies/policies.h"
#include "util/size.h"

/* The jobs in one of the two orders. */
typedef struct view {
  const planc_candidate *jobs;
  pl_timing timing; /* each alone */
  int64_t **kept;   /* by job: places of what persists */
  int64_t kept_bytes;
  int64_t most_bytes; /* of the job that holds most */
} view;

/* One way to do it. */
typedef struct waterwave_way {
  const view *of;
  pl_cut cut;
  bool variable;
} waterwave_way;

/* The fastest of several, and what came of it; the candidate is empty where none fits. */
typedef struct way_found {
  planc_candidate candidate;
  waterwave_way way;
  bool barriers;
  int64_t ns;
  int32_t pairs, shared; /* pairs, and those of two groups */
} way_found;

typedef struct waterwave {
  const planc_mix_evaluator *evaluator;
  const planc_mix *mix;
  const planc_mix_share *shares;
  const planc_evaluator *all; /* of the evaluator */
  const planc_settings *settings;
  pl_arena arena, round; /* what lasts, and what a way needs while it is tried */
  pl_beside beside;
  planc_candidate *deep; /* by job: in the order of depths; empty where it is not */
  int32_t *iterations;
  view views[2];
  int32_t n_views;
  pl_pairing_pass *passes;
  int32_t n_passes;
  bool barriers; /* between pairs, in what is tried now */
  way_found best;
  way_found without; /* barriers, while these are tried as well: what they have to beat */
} waterwave;

static planc_status make(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, bool halves,
                         planc_candidate *out);
static planc_status choose(waterwave *w, bool halves, planc_candidate *out);
static planc_status find_best(waterwave *w, bool halves);
static planc_status try_ways(waterwave *w, bool halves);
static bool is_ahead(const waterwave *w);
static planc_status compare_barriers(waterwave *w, bool halves);
static planc_status start(waterwave *w);
static void free_all(waterwave *w);
static planc_status try_sizes(waterwave *w);
static planc_status try_variants(waterwave *w);
static planc_status try_halves(waterwave *w);
static planc_status explain(const waterwave *w, planc_candidate *out);

planc_status pl_mix_waterwave(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                              planc_candidate *out) {
  return make(evaluator, shares, false, out);
}

static planc_status make(const planc_mix_evaluator *evaluator, const planc_mix_share *shares, bool halves,
                         planc_candidate *out) {
  waterwave w = {.evaluator = evaluator,
                 .mix = evaluator->mix,
                 .shares = shares,
                 .all = &evaluator->all,
                 .settings = &evaluator->mix->terms.settings};
  planc_status status = choose(&w, halves, out);
  free_all(&w);
  return status;
}

static planc_status choose(waterwave *w, bool halves, planc_candidate *out) {
  bool turns;
  PLANC_TRY(find_best(w, halves));
  *out = w->best.candidate;
  w->best.candidate = (planc_candidate){0};
  PLANC_TRY(
      pl_turns_instead(w->evaluator, w->shares, "no way in which they fit side by side", w->best.ns, out, &turns));
  return turns ? NULL : explain(w, out);
}

static planc_status find_best(waterwave *w, bool halves) {
  bool fits;
  PLANC_TRY(pl_if_fits(start(w), &fits));
  if (!fits) return NULL;
  w->barriers = w->settings->pair_barriers;
  PLANC_TRY(try_ways(w, halves));
  return w->barriers ? NULL : compare_barriers(w, halves);
}

/* Variants of what is slower than what was found without barriers are not tried. */
static planc_status try_ways(waterwave *w, bool halves) {
  if (halves) return try_halves(w);
  PLANC_TRY(try_sizes(w));
  return is_ahead(w) ? try_variants(w) : NULL;
}

/* Whether what has been found is the fastest, beside what was found without barriers as well. */
static bool is_ahead(const waterwave *w) {
  return w->best.candidate.trace && (!w->without.candidate.trace || w->best.ns < w->without.ns);
}

/* Takes the paper's barriers where they are faster, as Algorithm 1 then pairs groups otherwise. */
static planc_status compare_barriers(waterwave *w, bool halves) {
  w->without = w->best;
  w->best = (way_found){0};
  w->barriers = true;
  planc_status status = try_ways(w, halves);
  bool faster = is_ahead(w);
  planc_candidate_free(faster ? &w->without.candidate : &w->best.candidate);
  if (!faster) w->best = w->without;
  w->without = (way_found){0};
  return status;
}

planc_status pl_mix_waterwave_s(const planc_mix_evaluator *evaluator, const planc_mix_share *shares,
                                planc_candidate *out) {
  return make(evaluator, shares, true, out);
}

/* --- Jobs --------------------------------------------------------------------------------------------------------- */

static planc_status add_view(waterwave *w, const planc_candidate *jobs);
static planc_status place_kept(waterwave *w, view *v);
static planc_status find_most(waterwave *w, const view *v, int32_t job, int64_t *out);
static planc_status add_deep_view(waterwave *w);
static planc_status deepen(const waterwave *w, int32_t job, planc_candidate *out);

static planc_status start(waterwave *w) {
  int32_t n = w->mix->n_jobs;
  PLANC_TRY(PL_NEW(&w->arena, &w->iterations, n));
  PLANC_TRY(PL_NEW(&w->arena, &w->deep, n));
  for (int32_t j = 0; j < n; j++) {
    w->iterations[j] = w->shares[j].iterations;
    w->n_passes += w->iterations[j];
  }
  PLANC_TRY(PL_NEW(&w->arena, &w->passes, w->n_passes));
  PLANC_TRY(pl_beside_new(w->evaluator, &w->beside));
  PLANC_TRY(pl_beside_make(&w->beside, w->mix->terms.budgets[PLANC_MEMORY_DEVICE], w->mix->terms.first_will_do));
  PLANC_TRY(add_view(w, w->beside.solos.candidates));
  return add_deep_view(w);
}

static void free_all(waterwave *w) {
  for (int32_t j = 0; w->deep && j < w->mix->n_jobs; j++) planc_candidate_free(&w->deep[j]);
  planc_candidate_free(&w->best.candidate);
  pl_beside_free(&w->beside);
  pl_arena_free(&w->round);
  pl_arena_free(&w->arena);
}

static planc_status add_view(waterwave *w, const planc_candidate *jobs) {
  view *v = &w->views[w->n_views];
  *v = (view){.jobs = jobs};
  PLANC_TRY(pl_timing_new(&w->arena, w->mix->n_jobs, jobs, w->iterations, &v->timing));
  PLANC_TRY(pl_timing_alone(w->evaluator, w->beside.problems, &v->timing));
  PLANC_TRY(place_kept(w, v));
  for (int32_t j = 0; j < w->mix->n_jobs; j++) {
    int64_t most;
    PLANC_TRY(find_most(w, v, j, &most));
    if (most > v->most_bytes) v->most_bytes = most;
  }
  w->n_views++;
  return NULL;
}

static planc_status place_kept(waterwave *w, view *v) {
  PLANC_TRY(PL_NEW(&w->arena, &v->kept, w->mix->n_jobs));
  for (int32_t j = 0; j < w->mix->n_jobs; j++) {
    int32_t n = planc_schedule_n_residencies(v->jobs[j].schedule);
    PLANC_TRY(PL_NEW(&w->arena, &v->kept[j], n));
    for (int32_t r = 0; r < n; r++) v->kept[j][r] = PLANC_BLANK;
    PLANC_TRY(pl_place_kept(&w->arena, &v->jobs[j], v->kept[j], &v->kept_bytes));
  }
  return NULL;
}

/* The most that the job holds at a time. */
static planc_status find_most(waterwave *w, const view *v, int32_t job, int64_t *out) {
  pl_cut whole = {.where = PL_CUT_AT_PEAK};
  pl_node_groups groups;
  PLANC_TRY(pl_node_groups_make(&w->arena, &v->jobs[job], &v->timing.passes[v->timing.first[job]], &whole, &groups));
  *out = groups.most_bytes;
  return NULL;
}

static planc_status add_deep_view(waterwave *w) {
  planc_candidate *jobs;
  bool any = false;
  PLANC_TRY(PL_NEW(&w->arena, &jobs, w->mix->n_jobs));
  for (int32_t j = 0; j < w->mix->n_jobs; j++) {
    PLANC_TRY(deepen(w, j, &w->deep[j]));
    any |= w->deep[j].trace != NULL;
    jobs[j] = w->deep[j].trace ? w->deep[j] : w->beside.solos.candidates[j];
  }
  return any ? add_view(w, jobs) : NULL;
}

/* The job alone in the order of depths, where it keeps everything on the device and has no rounds, which have all one
 * depth; *out is empty where that is not so, or does not fit. */
static planc_status deepen(const waterwave *w, int32_t job, planc_candidate *out) {
  const planc_problem *problem = &w->beside.problems[job];
  const planc_candidate *solo = &w->beside.solos.candidates[job];
  if (pl_trace_job(solo->trace)->n_rounds > 1 || solo->order->n != solo->trace->n_instances) return NULL;
  const planc_evaluator alone = w->evaluator->alone(w->evaluator, problem);
  bool fits;
  planc_status status = pl_make_resident(&alone, problem->job.batch, pl_depth_order, out);
  if (!status) status = alone.hold(&alone, out);
  PLANC_TRY(pl_if_fits(status, &fits));
  if (!fits) planc_candidate_free(out);
  return NULL;
}

/* --- One way ------------------------------------------------------------------------------------------------------ */

static int64_t find_limit(const waterwave *w, const view *v);
static planc_status make_passes(waterwave *w, const waterwave_way *way);
static void list_passes(waterwave *w, const pl_node_groups *groups);
static planc_status cut_in_order(waterwave *w, const waterwave_way *way, const pl_node_groups *groups,
                                 pl_node_groups *out);
static planc_status try_within(waterwave *w, const waterwave_way *way, int64_t limit, int64_t *out_excess);
static bool cannot_win(const waterwave *w, const view *v, const pl_pairs *pairs);
static planc_status find_places(waterwave *w, const view *v, const pl_pairs *pairs, int64_t limit, pl_merge *out);
static planc_status keep_faster(waterwave *w, const waterwave_way *way, const pl_pairs *pairs,
                                planc_candidate *candidate, int64_t *out_excess);
static int32_t count_shared(const pl_pairs *pairs);
static planc_status cut_job(waterwave *w, const waterwave_way *way, int32_t job, const pl_cut *cut,
                            pl_node_groups *out);
static planc_status cut_after(waterwave *w, const waterwave_way *way, int32_t job, const pl_node_groups *before,
                              pl_node_groups *out);

/* Within all there is, or in less and less where there are no places for that. */
static planc_status try_way(waterwave *w, const waterwave_way *way) {
  int64_t excess;
  pl_room_search search = pl_room_search_from(find_limit(w, way->of), way->of->most_bytes, 1);
  pl_arena_free(&w->round);
  w->round = (pl_arena){0};
  if (search.room < way->of->most_bytes) return NULL;
  PLANC_TRY(make_passes(w, way));
  do {
    PLANC_TRY(try_within(w, way, search.room, &excess));
  } while (excess > 0 && pl_room_search_down(&search, excess));
  return NULL;
}

/* The bytes that there are for what jobs hold beside what they keep. */
static int64_t find_limit(const waterwave *w, const view *v) {
  int64_t limit = pl_arena_room(w->all->target.terms, w->all->target.profile) - v->kept_bytes;
  return limit > 0 ? limit : 0;
}

static planc_status make_passes(waterwave *w, const waterwave_way *way) {
  pl_node_groups *groups, *variable;
  PLANC_TRY(PL_NEW(&w->round, &groups, w->mix->n_jobs));
  for (int32_t j = 0; j < w->mix->n_jobs; j++) PLANC_TRY(cut_job(w, way, j, &way->cut, &groups[j]));
  list_passes(w, groups);
  if (!way->variable) return NULL;
  PLANC_TRY(PL_NEW(&w->round, &variable, w->mix->n_jobs));
  PLANC_TRY(cut_in_order(w, way, groups, variable));
  list_passes(w, variable);
  return NULL;
}

static void list_passes(waterwave *w, const pl_node_groups *groups) {
  int32_t n = 0;
  for (int32_t j = 0; j < w->mix->n_jobs; j++)
    for (int32_t k = 0; k < w->iterations[j]; k++)
      w->passes[n++] = (pl_pairing_pass){j, k, w->iterations[j], &groups[j]};
  pl_sort_passes(w->passes, n);
}

/* Cuts each job anew after the one whose pass stands before its first one; the first of all is behind the last of the
 * period before. */
static planc_status cut_in_order(waterwave *w, const waterwave_way *way, const pl_node_groups *groups,
                                 pl_node_groups *out) {
  for (int32_t p = 0; p < w->n_passes; p++) {
    int32_t job = w->passes[p].job, before = w->passes[(p > 0 ? p : w->n_passes) - 1].job;
    if (w->passes[p].iteration == 0) PLANC_TRY(cut_after(w, way, job, &groups[before], &out[job]));
  }
  return NULL;
}

/* Pairs that hold no more than `limit`. */
static planc_status try_within(waterwave *w, const waterwave_way *way, int64_t limit, int64_t *out_excess) {
  pl_pairing_rule rule = {limit, way->cut.split_bytes, !w->barriers};
  pl_pairs pairs;
  pl_merge merge;
  planc_candidate candidate = {0};
  *out_excess = 0;
  PLANC_TRY(pl_pair_groups(&w->round, w->passes, w->n_passes, &rule, &pairs));
  if (cannot_win(w, way->of, &pairs)) return NULL;
  PLANC_TRY(find_places(w, way->of, &pairs, limit, &merge));
  planc_status status = pl_merge_candidates(&merge, &candidate);
  if (!status) status = keep_faster(w, way, &pairs, &candidate, out_excess);
  planc_candidate_free(&candidate);
  return status;
}

static bool is_beaten(const way_found *found, int64_t least_ns) {
  enum { ROUNDING = 100000 }; /* of the simulator's rates */
  return found->candidate.trace && least_ns - least_ns / ROUNDING >= found->ns;
}

/* Behind barriers pairs run one after the other, and may take longer by that alone than what was found before. In less
 * memory no more groups run side by side, so that less is not tried either. */
static bool cannot_win(const waterwave *w, const view *v, const pl_pairs *pairs) {
  if (!w->barriers) return false;
  int64_t least_ns = pl_pairs_least_ns(v->jobs, w->passes, pairs);
  return is_beaten(&w->best, least_ns) || is_beaten(&w->without, least_ns);
}

/* With addresses of the allocator, or else blank ones, which are placed at once. */
static planc_status find_places(waterwave *w, const view *v, const pl_pairs *pairs, int64_t limit, pl_merge *out) {
  bool fits;
  pl_flow flow = {.timing = &v->timing,
                  .passes = w->passes,
                  .pairs = pairs,
                  .kept = (const int64_t *const *)v->kept,
                  .kept_bytes = v->kept_bytes,
                  .capacity_bytes = limit,
                  .barriers = w->barriers};
  *out = (pl_merge){.n_jobs = w->mix->n_jobs, .jobs = v->jobs, .iterations = w->iterations};
  PLANC_TRY(pl_flow_make(&w->round, &flow, out, &fits));
  flow.blank = true;
  return fits ? NULL : pl_flow_make(&w->round, &flow, out, &fits);
}

/* Keeps a candidate that is whole if it is the fastest that fits; *out_excess is by how much it is too large. */
static planc_status keep_faster(waterwave *w, const waterwave_way *way, const pl_pairs *pairs,
                                planc_candidate *candidate, int64_t *out_excess) {
  planc_taken taken;
  PLANC_TRY(w->all->simulate(w->all, candidate, NULL, NULL, &taken));
  *out_excess = taken.peak_bytes[PLANC_MEMORY_DEVICE] - w->mix->terms.budgets[PLANC_MEMORY_DEVICE];
  if (!planc_is_within(&w->mix->terms, taken.peak_bytes)) return NULL;
  if (w->best.candidate.trace && taken.period_ns >= w->best.ns) return NULL;
  planc_candidate_free(&w->best.candidate);
  w->best = (way_found){*candidate, *way, w->barriers, taken.period_ns, pairs->n, count_shared(pairs)};
  *candidate = (planc_candidate){0};
  return NULL;
}

/* Pairs in which two groups run side by side. */
static int32_t count_shared(const pl_pairs *pairs) {
  int32_t shared = 0;
  for (int32_t i = 0; i < pairs->n; i++) shared += pairs->pairs[i][0].pass >= 0 && pairs->pairs[i][1].pass >= 0;
  return shared;
}

/* --- Groups ------------------------------------------------------------------------------------------------------- */

static planc_status cut_job(waterwave *w, const waterwave_way *way, int32_t job, const pl_cut *cut,
                            pl_node_groups *out) {
  const pl_timing *t = &way->of->timing;
  return pl_node_groups_make(&w->round, &t->jobs[job], &t->passes[t->first[job]], cut, out);
}

/* Allocation groups are as large as the deallocation groups of the job before it in the period, which run beside them.
 */
static planc_status cut_after(waterwave *w, const waterwave_way *way, int32_t job, const pl_node_groups *before,
                              pl_node_groups *out) {
  pl_cut cut = way->cut;
  int64_t *sizes;
  PLANC_TRY(PL_NEW(&w->round, &sizes, before->n));
  for (int32_t g = before->n_allocating; g < before->n; g++) sizes[cut.n_sizes++] = pl_node_group_size(before, g);
  cut.sizes = sizes;
  return cut_job(w, way, job, &cut, out);
}

/* --- All ways ----------------------------------------------------------------------------------------------------- */

enum { HALVES = 2 };

static waterwave_way way_of_size(const waterwave *w, int64_t split_bytes) {
  const planc_settings *asked = w->settings;
  int64_t release = asked->release_split > 0 ? asked->release_split : split_bytes;
  return (waterwave_way){.of = &w->views[0],
                         .cut = {.where = PL_CUT_BY_SIZE,
                                 .split_bytes = split_bytes,
                                 .release_bytes = release,
                                 .relaxed = asked->split_relaxed},
                         .variable = asked->split_variable};
}

/* Half of all groups allocate. */
static int64_t size_of_groups(const waterwave *w, int64_t n_groups) {
  int64_t bytes = w->views[0].most_bytes / (n_groups > 1 ? n_groups / 2 : 1);
  return bytes > 0 ? bytes : 1;
}

/* While barriers are compared with what was found without them, it ends behind so many sizes in a row that are no
 * faster. */
static planc_status try_sizes(waterwave *w) {
  enum { PATIENCE = 3 };
  static const int64_t numbers[] = {4, 6, 8, 12, 16, 24, 32};
  if (w->settings->split_size > 0 || w->settings->split_groups > 0) {
    waterwave_way asked = way_of_size(
        w, w->settings->split_size > 0 ? w->settings->split_size : size_of_groups(w, w->settings->split_groups));
    return try_way(w, &asked);
  }
  int in_vain = 0;
  for (size_t k = 0; in_vain < PATIENCE && k < sizeof numbers / sizeof *numbers; k++) {
    waterwave_way sized = way_of_size(w, size_of_groups(w, numbers[k]));
    int64_t ns = w->best.ns;
    PLANC_TRY(try_way(w, &sized));
    bool is_in_vain = w->without.candidate.trace && w->best.candidate.trace && w->best.ns == ns;
    in_vain = is_in_vain ? in_vain + 1 : 0;
  }
  return NULL;
}

static planc_status try_variant(waterwave *w, const waterwave_way *changed);
static bool are_passes_alike(const pl_pairing_pass *a, const pl_pairing_pass *b, int32_t n);

/* What the user has left open, at what was the fastest so far. */
static planc_status try_variants(waterwave *w) {
  const planc_settings *asked = w->settings;
  waterwave_way changed = w->best.way;
  changed.of = &w->views[w->n_views - 1];
  if (w->n_views > 1) PLANC_TRY(try_way(w, &changed));
  changed = w->best.way;
  changed.cut.relaxed = true;
  if (!asked->split_relaxed) PLANC_TRY(try_variant(w, &changed));
  changed = w->best.way;
  changed.variable = true;
  if (!asked->split_variable) PLANC_TRY(try_variant(w, &changed));
  changed = w->best.way;
  changed.cut.release_bytes += changed.cut.release_bytes / 2;
  return asked->release_split > 0 ? NULL : try_variant(w, &changed);
}

/* Other sizes than the best way's, if they cut iterations otherwise. */
static planc_status try_variant(waterwave *w, const waterwave_way *changed) {
  pl_pairing_pass *best;
  PLANC_TRY(make_passes(w, &w->best.way));
  PLANC_TRY(pl_arena_copy(&w->round, w->passes, w->n_passes, sizeof *w->passes, &best));
  PLANC_TRY(make_passes(w, changed));
  return are_passes_alike(w->passes, best, w->n_passes) ? NULL : try_way(w, changed);
}

static bool are_passes_alike(const pl_pairing_pass *a, const pl_pairing_pass *b, int32_t n) {
  for (int32_t p = 0; p < n; p++) {
    const pl_node_groups *of_a = a[p].groups, *of_b = b[p].groups;
    if (a[p].job != b[p].job || a[p].iteration != b[p].iteration) return false;
    if (of_a->n != of_b->n || of_a->n_allocating != of_b->n_allocating) return false;
    if (memcmp(of_a->groups, of_b->groups, (size_t)of_a->n * sizeof *of_a->groups) != 0) return false;
  }
  return true;
}

static planc_status try_halves(waterwave *w) {
  for (int32_t v = 0; v < w->n_views; v++) {
    waterwave_way peak = {.of = &w->views[v],
                          .cut = {.where = PL_CUT_AT_PEAK, .split_bytes = size_of_groups(w, HALVES)}};
    waterwave_way phases = peak;
    phases.cut.where = PL_CUT_AT_PHASES;
    PLANC_TRY(try_way(w, &peak));
    PLANC_TRY(try_way(w, &phases));
  }
  return NULL;
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

static planc_status explain(const waterwave *w, planc_candidate *out) {
  const pl_cut *cut = &w->best.way.cut;
  char size[PL_SIZE_TEXT], how[64], pairs[64];
  const char *order = w->best.way.of == &w->views[0] ? "" : ", in the order of depths";
  bool told = w->best.barriers && !w->settings->pair_barriers;
  (void)snprintf(how, sizeof how, "of %s%s%s", pl_size_format(cut->split_bytes, size), cut->relaxed ? ", relaxed" : "",
                 w->best.way.variable ? ", variable" : "");
  if (cut->where != PL_CUT_BY_SIZE)
    (void)snprintf(how, sizeof how, "cut %s", cut->where == PL_CUT_AT_PEAK ? "at the fullest" : "behind forward ops");
  (void)snprintf(pairs, sizeof pairs, "side by side in %d of %d pairs", w->best.shared, w->best.pairs);
  return planc_candidate_explain(out, "%s of node groups %s%s%s",
                                 w->best.shared > 0 ? pairs : "one at a time, for want of room: pairs", how, order,
                                 told ? ", with barriers between pairs" : "");
}
