/* The search of `auto`: what it rehearses is what the walk states, byte for byte; what it finds fits, is the same each
 * time, and is no slower than where it began; and its addresses are searched for where greedy orders find none. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "planc/bound.h"
#include "planc/check.h"
#include "planc/policy.h"
#include "planner/auto/auto_anneal.h"
#include "planner/auto/auto_changes.h"
#include "planner/auto/auto_start.h"
#include "planner/base/code.h"
#include "planner/bound/bound_ascent.h"
#include "planner/choose/early_order.h"
#include "tests/support/graphtext.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/math.h"

enum { GRAPHS = 200, VALUES = 100, CHANGES = 300, WORK = 1000000 };

static int graphs(void) {
  return sampled(GRAPHS);
}

static planc_profile *profile;

static void read_profile(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
}
static void free_profile(void) {
  planc_profile_free(profile);
}

static planc_problem problem_of(const planc_graph *graph, int64_t budget) {
  return (planc_problem){.terms = {.budgets = {budget, -1, 0}},
                         .job = {.graph = graph, .profile = profile, .batch = 4, .sub_batch = 4}};
}

/* --- The rehearsal ------------------------------------------------------------------------------------------------ */

/* The bytes that copies out still take behind the use, and copies in already ahead of it. */
static void add_copies(const pl_auto_search *s, const pl_absences *absences, int64_t *held) {
  int32_t k = 0, n = s->gaps->order->n;
  for (int32_t g = 0; g < s->gaps->n; g++) {
    const pl_auto_gap *gap = &s->gaps->items[g];
    if (s->ways[g] == PL_AUTO_STAYS || gap->is_tail) continue;
    const pl_absence *absence = &absences->items[k++];
    for (int32_t p = gap->from + 1; p <= absence->leave && p < n; p++) held[p] += gap->bytes;
    for (int32_t p = absence->fetch; s->rehearsal.need[g] >= 0 && p < s->rehearsal.need[g]; p++) held[p] += gap->bytes;
  }
  ck_assert_int_eq(k, absences->n);
}

static int n_stated, n_restored, n_held, n_still; /* n_still: something ran again while some buffers never moved */

static void is_what_the_walk_states(pl_auto_search *s, const planc_problem *problem, pl_walk_room room,
                                    pl_arena *arena) {
  planc_candidate candidate = {0};
  pl_absences absences;
  pl_walk walk;
  int64_t *live, *held, again_ns = 0, walk_again_ns = 0;
  int32_t n = s->gaps->order->n;
  ok(pl_auto_search_state(s, arena, &absences));
  if (!s->rehearsal.works) return;
  ok(PL_NEW(arena, &live, n));
  ok(PL_NEW(arena, &held, n));
  memcpy(held, s->rehearsal.held, (size_t)n * sizeof *held);
  add_copies(s, &absences, held);
  ok(pl_walk_start_rounds(&walk, problem, problem->job.sub_batch, room, &candidate));
  walk.live_at = live;
  ok(pl_walk_absences(&walk, &absences));
  for (int32_t p = 0; p < n; p++) {
    ck_assert_int_eq(live[p], held[p]);
    again_ns += s->rehearsal.again_ns[p];
  }
  for (int32_t c = 0; c < planc_schedule_n_commands(candidate.schedule); c++) {
    const planc_command *command = &planc_schedule_commands(candidate.schedule)[c];
    if (command->kind == PLANC_CMD_EXEC && command->recompute)
      walk_again_ns += planc_schedule_variant(candidate.schedule, command).time_ns;
  }
  if (walk_again_ns == 0) {
    ok(pl_absences_held(walk.order, &absences, held));
    for (int32_t p = 0; p < n; p++) ck_assert_int_eq(live[p], held[p] + s->rehearsal.workspace[p]);
    n_held++;
  }
  ck_assert_int_ge(again_ns, walk_again_ns); /* what a recompute alone has to copy in is counted there, too */
  n_stated++;
  n_restored += walk_again_ns > 0;
  n_still += walk_again_ns > 0 && s->rehearsal.movers.n_buffers < s->gaps->trace->n_buffers / 2;
  planc_candidate_free(&candidate);
}

typedef struct searched {
  planc_candidate own;
  pl_arena arena;
  pl_walk walk;
  pl_bound_model model;
  pl_bound_prices prices;
  pl_bound_found found;
  pl_auto_gaps gaps;
  pl_auto_search search;
} searched;

static void begin(searched *s, const planc_problem *problem, pl_walk_room room, bool tails);
static void end(searched *s);

static void are_open(const pl_auto_search *s) {
  for (int32_t g = s->gaps->n_fed; g < s->gaps->n; g++) ck_assert(s->gaps->items[g].open[s->ways[g]]);
}

static void rehearse_random_ways(const planc_graph *graph, uint64_t *rng) {
  planc_problem problem = problem_of(graph, INT64_C(1) << 40);
  problem.terms.settings.no_swap = rand_below(rng, 4) == 0;
  searched of;
  pl_walk_room room = {(INT64_C(1) << rand_below(rng, 24)) + 4096, PL_RECEIVES_LATE};
  begin(&of, &problem, room, rand_below(rng, 4) != 0);
  pl_auto_search *s = &of.search;
  for (int k = 0; k < 4 && of.gaps.n > 0; k++) { /* first of large gaps, then of all */
    int64_t least = k < 2 ? of.gaps.items[rand_below(rng, of.gaps.n)].bytes : 0;
    for (int32_t g = of.gaps.n_fed; g < of.gaps.n; g++) {
      const pl_auto_gap *gap = &of.gaps.items[g];
      uint8_t at_rest = gap->is_tail ? PL_AUTO_AGAIN : PL_AUTO_STAYS;
      s->ways[g] = gap->bytes < least ? at_rest : (uint8_t)rand_below(rng, PL_AUTO_N_WAYS);
      if (!gap->open[s->ways[g]]) s->ways[g] = PL_AUTO_STAYS;
    }
    is_what_the_walk_states(s, &problem, room, &of.arena);
  }
  pl_auto_search_start(s, WORK);
  are_open(s);
  is_what_the_walk_states(s, &problem, room, &of.arena);
  int64_t first = pl_auto_search_found(s) ? s->best_score.ns : INT64_MAX;
  pl_auto_search_improve(s, CHANGES, 2000);
  ck_assert_int_le(s->best_score.ns, first);
  is_what_the_walk_states(s, &problem, room, &of.arena);
  are_open(s);
  pl_auto_search_start(s, 0);
  are_open(s);
  is_what_the_walk_states(s, &problem, room, &of.arena);
  end(&of);
}

static void begin(searched *s, const planc_problem *problem, pl_walk_room room, bool tails) {
  *s = (searched){.own = {0}};
  ok(pl_walk_start_rounds(&s->walk, problem, problem->job.sub_batch, room, &s->own));
  ok(pl_bound_model_make(&s->own, &problem->terms.settings, false, &s->arena, &s->model));
  ok(pl_bound_ascend(&s->model, room.bytes, VALUES, &s->arena, &s->prices, &s->found));
  ok(pl_auto_gaps_make(&s->walk, &s->model, tails, &s->arena, &s->gaps));
  ok(pl_auto_search_new(&s->gaps, &s->prices, &s->found, &s->arena, &s->search));
  pl_auto_search_in(&s->search, room.bytes, tails);
}
static void end(searched *s) {
  planc_candidate_free(&s->own);
  pl_arena_free(&s->arena);
}

START_TEST(rehearsals_are_what_the_walk_states) {
  for (uint64_t seed = 1; seed <= (uint64_t)graphs(); seed++) {
    uint64_t rng = seed;
    planc_graph *graph;
    ok(randgraph_make(seed, NULL, &graph));
    rehearse_random_ways(graph, &rng);
    planc_graph_free(graph);
  }
  ck_assert_int_ge(n_stated, (int64_t)5 * graphs());
  ck_assert_int_ge(n_restored, graphs());
  ck_assert_int_ge(n_held, graphs());
  ck_assert_int_ge(n_still, graphs() / 10);
}
END_TEST

/* To restore e, a writes b's first version again; to restore r, the second comes from the host, where it is for g2; and
 * to restore c, i makes the second of the first once more. */
static const char made_and_copied[] =
    "planc-graph: 1\n"
    "name: g\n"
    "outputs: [h]\n"
    "tensors:\n"
    "  x: input f32[N,1000]\n"
    "  b: f32[N,1000]\n"
    "  e: f32[N,1000]\n"
    "  c: f32[N,1000]\n"
    "  r: f32[N,1000]\n"
    "  loss: f32[N,1000]\n"
    "  d: f32[]\n"
    "  h: f32[]\n"
    "ops:\n"
    "  - {op: a, type: my.op, in: [x], out: [b]}\n"
    "  - {op: e, type: my.op, in: [b], out: [e]}\n"
    "  - {op: i, type: my.op, in: [b], out: [b, c]}\n"
    "  - {op: r, type: my.op, in: [b], out: [r]}\n"
    "  - {op: l, type: my.op, in: [x], out: [loss]}\n"
    "  - {op: l2, type: my.op, in: [x], out: [loss]}\n"
    "  - {op: g, type: my.op, phase: backward, in: [c, r, e], out: [d]}\n"
    "  - {op: g2, type: my.op, phase: backward, in: [b, d], out: [h]}\n";

START_TEST(what_is_made_again_beside_its_copy_is_rehearsed) {
  planc_graph *graph = graph_of(made_and_copied);
  planc_problem problem = problem_of(graph, INT64_C(1) << 40);
  pl_walk_room room = {4096, PL_RECEIVES_LATE}; /* so that nothing fits, and the ways are taken that are given */
  int32_t b = storage_named(graph, "b"), n_again = 0;
  searched s;
  begin(&s, &problem, room, true);
  for (int32_t g = s.gaps.n_fed; g < s.gaps.n; g++) {
    const pl_auto_gap *gap = &s.gaps.items[g];
    bool is_copied = s.gaps.trace->buffers[gap->buffer].storage == b;
    s.search.ways[g] = is_copied ? PL_AUTO_COPIED : PL_AUTO_AGAIN;
    if (!gap->open[s.search.ways[g]]) s.search.ways[g] = PL_AUTO_STAYS;
    n_again += s.search.ways[g] == PL_AUTO_AGAIN;
  }
  is_what_the_walk_states(&s.search, &problem, room, &s.arena);
  ck_assert_int_eq(n_again, 3); /* e, c and r */
  ck_assert_int_eq(n_restored, 1);
  end(&s);
  planc_graph_free(graph);
}
END_TEST

/* --- The plan that the bound pays for ----------------------------------------------------------------------------- */

/* Shares of a gap are no more than all of it, and only of ways that it may be spent in. */
static void are_shares(const searched *s, const pl_bound_shares *shares, int64_t *n_away) {
  for (int32_t v = 0; v < s->model.n_versions; v++) {
    const pl_bound_version *version = &s->model.versions[v];
    for (int32_t g = version->first_gap; g < version->first_gap + version->n_gaps; g++) {
      const uint16_t *of = shares[g].of;
      ck_assert_int_le(of[PL_BOUND_STAYS] + of[PL_BOUND_COPIED] + of[PL_BOUND_AGAIN], PL_BOUND_WHOLE);
      if (of[PL_BOUND_AGAIN] > 0) ck_assert_int_ge(s->model.gaps[g].again_ns, 0);
      if (s->model.gaps[g].comes_back && !version->may_leave) ck_assert_int_eq(of[PL_BOUND_COPIED], 0);
      *n_away += of[PL_BOUND_COPIED] + of[PL_BOUND_AGAIN] > 0;
    }
  }
}

/* Which gap of the bound's a gap is. */
static void are_its_gaps(const searched *s) {
  int32_t n = 0;
  for (int32_t g = 0; g < s->gaps.n; g++) {
    const pl_auto_gap *gap = &s->gaps.items[g];
    ck_assert_int_eq(gap->of_bound < 0, g < s->gaps.n_fed || gap->is_tail);
    if (gap->of_bound < 0) continue;
    const pl_bound_gap *of = &s->model.gaps[gap->of_bound];
    ck_assert_int_eq(gap->from, of->from % s->model.n);
    ck_assert_int_eq(gap->version, of->version);
    n++;
  }
  ck_assert_int_eq(n, s->gaps.n - s->gaps.n_fed - s->gaps.n_tails);
}

/* Where nothing is short nothing goes away; in less room something does. A search that is told keeps what it has. */
START_TEST(the_plan_that_the_bound_pays_for) {
  enum { FEW = 50, CERTIFIED = 60 };
  int64_t n_away = 0, n_found = 0;
  for (uint64_t seed = 1; seed <= FEW; seed++) {
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 30}, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    for (int part = 1; part <= 2; part++) {
      searched s;
      int64_t n_before = n_away;
      pl_walk_room room = {INT64_C(1) << 40, PL_RECEIVES_LATE};
      begin(&s, &problem, room, true);
      if (part == 2) {
        int32_t position;
        int64_t most = 0, least = pl_bound_least_bytes(&s.model, &position);
        for (int32_t p = 0; p < s.model.n; p++) most = pl_max(most, s.search.rehearsal.held[p]);
        end(&s);
        room.bytes = least + (most - least) / 2;
        begin(&s, &problem, room, true);
      }
      pl_bound_prices prices;
      pl_bound_found found;
      pl_bound_shares *shares;
      ok(PL_NEW(&s.arena, &shares, s.model.n_gaps));
      ok(pl_bound_certify(&s.model, room.bytes, CERTIFIED, &s.arena, &prices, &found, shares));
      are_shares(&s, shares, &n_away);
      are_its_gaps(&s);
      if (part == 1) ck_assert_int_eq(n_away, n_before);
      s.search.shares = shares;
      pl_auto_search_start(&s.search, WORK);
      int64_t first = pl_auto_search_found(&s.search) ? s.search.best_score.ns : INT64_MAX;
      pl_auto_search_improve(&s.search, CHANGES, 2000);
      ck_assert_int_le(s.search.best_score.ns, first);
      is_what_the_walk_states(&s.search, &problem, room, &s.arena);
      n_found += pl_auto_search_found(&s.search);
      end(&s);
    }
    planc_graph_free(graph);
  }
  ck_assert_int_ge(n_away, FEW);
  ck_assert_int_ge(n_found, FEW);
}
END_TEST

/* --- Ways that are given ------------------------------------------------------------------------------------------ */

/* What is found has them, however the search begins; and when they are given no more it is as free as before. */
START_TEST(a_way_that_is_given_is_kept) {
  enum { FEW = 60, TRIES = 4 };
  int64_t n_found = 0, n_other = 0;
  for (uint64_t seed = 1; seed <= FEW; seed++) {
    uint64_t rng = seed;
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 30}, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    pl_walk_room room = {(INT64_C(1) << (12 + rand_below(&rng, 12))) + 4096, PL_RECEIVES_LATE};
    searched s;
    begin(&s, &problem, room, true);
    pl_auto_search_start(&s.search, WORK);
    for (int k = 0; k < TRIES && s.gaps.n > s.gaps.n_fed; k++) {
      int32_t g = s.gaps.n_fed + (int32_t)rand_below(&rng, s.gaps.n - s.gaps.n_fed);
      const pl_auto_gap *gap = &s.gaps.items[g];
      uint8_t way = (uint8_t)rand_below(&rng, PL_AUTO_TWICE), before = s.search.best[g];
      if (gap->is_tail || !gap->open[way] || (way == PL_AUTO_AGAIN && gap->needs_tails)) continue;
      pl_auto_search_fix(&s.search, g, way);
      pl_auto_search_in(&s.search, room.bytes, true);
      ck_assert_int_eq(s.search.ways[g], way);
      pl_auto_search_start(&s.search, k % 2 == 0 ? WORK : 0);
      pl_auto_search_improve(&s.search, CHANGES, 2000);
      ck_assert_int_eq(s.search.ways[g], way);
      if (pl_auto_search_found(&s.search)) {
        ck_assert_int_eq(s.search.best[g], way);
        n_found++;
        n_other += before != way;
      }
      is_what_the_walk_states(&s.search, &problem, room, &s.arena);
      pl_auto_search_fix(&s.search, g, PL_AUTO_ANY_WAY);
    }
    end(&s);
    planc_graph_free(graph);
  }
  ck_assert_int_ge(n_found, FEW / 2);
  ck_assert_int_ge(n_other, FEW / 4);
}
END_TEST

/* --- Changes that are made several times -------------------------------------------------------------------------- */

enum { SOME_CHANGES = 10 }; /* so few that which ones matters */

/* So many quarters of what is between the least of bytes and the most that are used. */
static pl_walk_room tight_room(const planc_problem *problem, int32_t quarters) {
  pl_walk_room room = {INT64_C(1) << 40, PL_RECEIVES_LATE};
  int64_t most = 0;
  searched s;
  begin(&s, problem, room, true);
  int64_t least = pl_bound_least_bytes(&s.model, &(int32_t){0});
  for (int32_t p = 0; p < s.model.n; p++) most = pl_max(most, s.search.rehearsal.held[p]);
  end(&s);
  room.bytes = least + (most - least) / 4 * quarters;
  return room;
}

static pl_auto_score best_of(const planc_problem *problem, pl_walk_room room, int32_t times) {
  searched s;
  begin(&s, problem, room, true);
  pl_auto_search_start(&s.search, WORK);
  pl_auto_search_improve_often(&s.search, times, SOME_CHANGES, 2000);
  pl_auto_score best = s.search.best_score;
  if (pl_auto_search_found(&s.search)) {
    ck_assert_mem_eq(s.search.ways, s.search.best, (size_t)s.gaps.n);
    ck_assert_int_eq(s.search.score.ns, best.ns);
    ck_assert(pl_auto_fits(s.search.score));
  }
  end(&s);
  return best;
}

/* The first time is the same however often they are made, and the fastest of all times is where the search goes on. */
START_TEST(more_times_find_what_is_no_slower) {
  enum { FEW = 60, TIMES = 3 };
  int32_t n_faster = 0;
  for (uint64_t seed = 1; seed <= FEW; seed++) {
    uint64_t rng = seed;
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 30}, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    pl_walk_room room = tight_room(&problem, 1 + (int32_t)rand_below(&rng, 3));
    pl_auto_score once = best_of(&problem, room, 1), often = best_of(&problem, room, TIMES);
    ck_assert_int_le(often.ns, once.ns);
    n_faster += often.ns < once.ns;
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_faster, 0);
}
END_TEST

/* --- Gaps that are forced into other ways ------------------------------------------------------------------------- */

/* What is found is no slower and is where the search goes on, and all gaps and prices are as free as before. */
START_TEST(what_is_forced_is_free_again) {
  enum { FEW = 60, TIMES = 12 };
  int32_t n_faster = 0;
  for (uint64_t seed = 1; seed <= FEW; seed++) {
    uint64_t rng = seed;
    planc_graph *graph;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 30}, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    pl_walk_room room = tight_room(&problem, 1 + (int32_t)rand_below(&rng, 3));
    searched s;
    begin(&s, &problem, room, true);
    pl_auto_search_start(&s.search, WORK);
    pl_auto_search_improve(&s.search, SOME_CHANGES, 2000);
    const int64_t before_ns = s.search.best_score.ns, price = s.search.price[0];
    const bool found = pl_auto_search_found(&s.search);
    pl_auto_search_force(&s.search, TIMES, SOME_CHANGES, 500);
    ck_assert_int_eq(pl_auto_search_found(&s.search), found);
    ck_assert_int_le(s.search.best_score.ns, before_ns);
    n_faster += s.search.best_score.ns < before_ns;
    if (found) {
      ck_assert_mem_eq(s.search.ways, s.search.best, (size_t)s.gaps.n);
      ck_assert_int_eq(s.search.score.ns, s.search.best_score.ns);
      ck_assert_int_eq(s.search.price[0], price);
    }
    for (int32_t g = 0; g < s.gaps.n; g++) ck_assert_int_eq(s.search.fixed[g], PL_AUTO_ANY_WAY);
    are_open(&s.search);
    is_what_the_walk_states(&s.search, &problem, room, &s.arena);
    end(&s);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_faster, 0);
}
END_TEST

/* As while it is forced: whatever changes are drawn, it is in none; and each can be undone. */
START_TEST(what_is_fixed_in_between_does_not_change) {
  enum { FEW = 40, DRAWN = 200 };
  int64_t n_changed = 0;
  for (uint64_t seed = 1; seed <= FEW; seed++) {
    uint64_t rng = seed;
    planc_graph *graph;
    ok(randgraph_make(seed, NULL, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    pl_walk_room room = tight_room(&problem, 1 + (int32_t)rand_below(&rng, 3));
    searched s;
    uint8_t *before;
    pl_bound_shares *shares;
    begin(&s, &problem, room, true);
    ok(PL_NEW(&s.arena, &before, s.gaps.n));
    ok(PL_NEW(&s.arena, &shares, s.model.n_gaps));
    ok(pl_bound_certify(&s.model, room.bytes, 1, &s.arena, &s.prices, &s.found, shares));
    s.search.shares = shares;
    pl_auto_search_start(&s.search, WORK);
    const int32_t gap = s.search.n_heaviest > 0 ? s.search.heaviest[0] : -1;
    if (gap >= 0) s.search.fixed[gap] = (int8_t)s.search.ways[gap];
    for (int k = 0; k < DRAWN && s.search.n_candidates > 0; k++) {
      pl_auto_change change;
      memcpy(before, s.search.ways, (size_t)s.gaps.n);
      pl_auto_change_some(&s.search, &change);
      ck_assert_int_le(change.n, PL_AUTO_MOST_CHANGED);
      for (int32_t c = 0; c < change.n; c++) ck_assert_int_ne(change.gaps[c], gap);
      are_open(&s.search);
      n_changed += memcmp(before, s.search.ways, (size_t)s.gaps.n) != 0;
      pl_auto_judge(&s.search);
      pl_auto_change_undo(&s.search, &change);
      ck_assert_mem_eq(before, s.search.ways, (size_t)s.gaps.n);
    }
    end(&s);
    planc_graph_free(graph);
  }
  ck_assert_int_ge(n_changed, FEW * DRAWN / 4);
}
END_TEST

/* Its bytes times the time of the ops inside. */
static pl_signed_wide weight_of(const searched *s, int32_t g) {
  const pl_auto_gap *gap = &s->gaps.items[g];
  const pl_rehearsal_tables *tables = &s->search.rehearsal.tables;
  int64_t ns = 0;
  for (int32_t p = (gap->from + 1) % s->model.n; p != gap->to; p = (p + 1) % s->model.n)
    ns += tables->choices[tables->first_choice[p]].ns;
  return (pl_signed_wide)gap->bytes * ns;
}

START_TEST(the_heaviest_gaps_come_first) {
  enum { FEW = 40 };
  for (uint64_t seed = 1; seed <= FEW; seed++) {
    planc_graph *graph;
    searched s;
    int32_t n = 0;
    ok(randgraph_make(seed, NULL, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    begin(&s, &problem, (pl_walk_room){INT64_C(1) << 40, PL_RECEIVES_LATE}, true);
    for (int32_t k = 1; k < s.search.n_heaviest; k++)
      ck_assert(weight_of(&s, s.search.heaviest[k - 1]) >= weight_of(&s, s.search.heaviest[k]));
    for (int32_t g = s.gaps.n_fed; g < s.gaps.n; g++) n += !s.gaps.items[g].is_tail;
    ck_assert_int_eq(s.search.n_heaviest, n);
    end(&s);
    planc_graph_free(graph);
  }
}
END_TEST

/* Of the first segments what stays is copied in place of that where it may be, and nothing else changes. */
START_TEST(of_the_first_segments_what_stays_is_copied) {
  int32_t n_copied = 0, n_stays = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)graphs(); seed++) {
    planc_graph *graph;
    searched s;
    ok(randgraph_make(seed, NULL, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    begin(&s, &problem, (pl_walk_room){INT64_C(1) << 40, PL_RECEIVES_LATE}, true);
    pl_auto_segments *segments = &s.search.segments;
    uint8_t *stays = calloc((size_t)s.gaps.n + 1, 1), *some = calloc((size_t)s.gaps.n + 1, 1);
    int32_t n_cuts = pl_auto_segments_cut(segments, 1), all = 0;
    pl_auto_segments_set(segments, 0, seed % 2 > 0, stays);
    for (int32_t n = 1; n <= n_cuts + 1; n++) {
      int32_t copied = 0;
      pl_auto_segments_set(segments, n, seed % 2 > 0, some);
      for (int32_t g = s.gaps.n_fed; g < s.gaps.n; g++) {
        const pl_auto_gap *gap = &s.gaps.items[g];
        copied += some[g] == PL_AUTO_COPIED;
        if (some[g] == stays[g]) continue;
        ck_assert(some[g] == PL_AUTO_COPIED && stays[g] == PL_AUTO_STAYS && gap->open[PL_AUTO_COPIED] && !gap->is_tail);
        ck_assert_int_lt(segments->segment[segments->first[gap->buffer]], n);
      }
      ck_assert_int_ge(copied, all);
      all = copied;
    }
    n_copied += all;
    for (int32_t g = s.gaps.n_fed; g < s.gaps.n; g++) n_stays += stays[g] == PL_AUTO_STAYS;
    free(stays);
    free(some);
    end(&s);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_copied, graphs() / 10);
  ck_assert_int_gt(n_stays, n_copied);
}
END_TEST

/* --- The order with early updates --------------------------------------------------------------------------------- */

/* One of them writes what the other one uses. */
static bool meet(const planc_trace *trace, const planc_instance *a, const planc_instance *b) {
  for (int32_t i = a->first_access; i < a->first_access + a->n_accesses; i++)
    for (int32_t k = b->first_access; k < b->first_access + b->n_accesses; k++)
      if (trace->accesses[i].buffer == trace->accesses[k].buffer &&
          (trace->accesses[i].write >= 0 || trace->accesses[k].write >= 0))
        return true;
  return false;
}

/* Bytes of what does not persist times the positions from its first use to its last. */
static int64_t held(const planc_order *order) {
  int64_t sum = 0;
  for (int32_t b = 0; b < order->trace->n_buffers; b++) {
    const planc_buffer *buffer = &order->trace->buffers[b];
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT))
      sum += buffer->bytes * (planc_order_last(order, b) - planc_order_first(order, b));
  }
  return sum;
}

typedef struct order_count {
  int32_t n_moved, n_less, n_more; /* ops; graphs for which less is held, or more */
} order_count;

/* What stands ahead of an update is another one or what it waited for. */
static void is_early(const planc_trace *trace, order_count *count) {
  planc_order *order, *as_traced;
  ok(planc_order_of_trace(trace, &as_traced));
  ok(pl_early_order(trace, &order));
  ck_assert_int_eq(order->n, trace->n_instances);
  for (int32_t p = 0; p < order->n; p++) {
    int32_t instance = order->runs[p].instance, before = p > 0 ? order->runs[p - 1].instance : -1;
    bool updates = planc_trace_phase(trace, instance) == PLANC_PHASE_optimizer;
    if (updates && before >= 0 && planc_trace_phase(trace, before) != PLANC_PHASE_optimizer)
      ck_assert(meet(trace, &trace->instances[before], &trace->instances[instance]));
    count->n_moved += before > instance;
  }
  count->n_less += held(order) < held(as_traced);
  count->n_more += held(order) > held(as_traced);
  planc_order_free(order);
  planc_order_free(as_traced);
}

START_TEST(updates_are_as_early_as_they_can_be) {
  order_count count = {0};
  for (uint64_t seed = 1; seed <= (uint64_t)graphs(); seed++) {
    planc_graph *graph;
    planc_candidate candidate = {0};
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 30}, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    problem.job.sub_batch = 1 + (int64_t)(seed % 4);
    ok(planc_candidate_rounds(&problem, problem.job.sub_batch, &candidate));
    is_early(candidate.trace, &count);
    planc_candidate_free(&candidate);
    planc_graph_free(graph);
  }
  ck_assert_int_ge(count.n_moved, graphs() / 2);
}
END_TEST

/* Without updates in between, fewer bytes are held for as long. */
START_TEST(others_are_late) {
  order_count count = {0};
  for (uint64_t seed = 1; seed <= (uint64_t)graphs(); seed++) {
    planc_graph *graph;
    planc_candidate candidate = {0};
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 30, .inference = true}, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    ok(planc_candidate_rounds(&problem, problem.job.batch, &candidate));
    is_early(candidate.trace, &count);
    planc_candidate_free(&candidate);
    planc_graph_free(graph);
  }
  ck_assert_int_ge(count.n_less, graphs() / 4);
  ck_assert_int_le(count.n_more, graphs() / 10);
}
END_TEST

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planc_plan *plan_of(const planc_problem *problem, const char *policy) {
  planc_plan *plan = NULL;
  planc_status status = planc_make_plan(problem, planc_policy_find(policy), &plan);
  if (planc_status_code(status) != PLANC_INFEASIBLE) ok(status);
  planc_status_free(status);
  return plan;
}

/* The plan's rounds and order are those that the bound is of. */
static void states_its_bound(const planc_problem *problem, planc_plan *plan) {
  planc_bound bound;
  ok(planc_bound_make(problem, 1, &bound));
  ok(planc_bound_plan(problem, 1, plan));
  ck_assert_int_eq(plan->predicted.bound_ns, bound.time_ns);
  ck_assert_int_ge(plan->predicted.period_ns, bound.time_ns);
}

/* On a network with branches the search beats every other policy by far, at every part of what none needs. */
START_TEST(nothing_else_is_as_fast) {
  planc_graph *graph;
  planc_profile *v100;
  ok(planc_graph_read("graphs/recorded/resnet34.yaml", &graph));
  ok(planc_profile_read("profiles/v100-32g.json", &v100));
  for (int64_t part = 60; part <= 80; part += 20) {
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    problem.job.profile = v100;
    problem.job.batch = problem.job.sub_batch = 64;
    planc_plan *none = plan_of(&problem, "none");
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = none->predicted.peak_bytes[PLANC_MEMORY_DEVICE] * part / 100;
    planc_plan *found = plan_of(&problem, "priced"), *best = plan_of(&problem, "best"),
               *chosen = plan_of(&problem, "auto");
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq(chosen->body.n, found->body.n);
    if (best) ck_assert_int_le(found->predicted.period_ns, best->predicted.period_ns);
    ck_assert_int_eq(chosen->predicted.period_ns, found->predicted.period_ns);
    ck_assert_str_eq(chosen->policy, "priced");
    states_its_bound(&problem, found);
    planc_plan_free(none);
    planc_plan_free(found);
    planc_plan_free(best);
    planc_plan_free(chosen);
  }
  planc_profile_free(v100);
  planc_graph_free(graph);
}
END_TEST

/* A second order of the ops only makes it faster, and its bound is of the plan's own order. */
START_TEST(reordered_is_no_slower) {
  int n_faster = 0, n_alike = 0;
  for (uint64_t seed = 1; seed <= (uint64_t)graphs() / 2; seed++) {
    planc_graph *graph;
    planc_bound bound;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = 30}, &graph));
    planc_problem problem = problem_of(graph, INT64_C(1) << 40);
    problem.terms.settings.effort = 1;
    planc_plan *none = plan_of(&problem, "none");
    problem.terms.budgets[PLANC_MEMORY_DEVICE] = none->predicted.peak_bytes[PLANC_MEMORY_DEVICE] * 6 / 10;
    planc_plan *as_given = plan_of(&problem, "priced");
    problem.terms.settings.reorder = 1;
    planc_plan *reordered = plan_of(&problem, "priced");
    if (as_given) ck_assert_ptr_nonnull(reordered);
    if (reordered) {
      ok(planc_check(reordered, NULL, NULL));
      ok(planc_bound_of_plan(&problem, 1, reordered, &bound));
      ck_assert_int_le(bound.time_ns, reordered->predicted.period_ns);
      ck_assert_int_le(reordered->predicted.bound_ns, reordered->predicted.period_ns);
    }
    if (as_given) {
      ck_assert_int_le(reordered->predicted.period_ns, as_given->predicted.period_ns);
      n_faster += reordered->predicted.period_ns < as_given->predicted.period_ns;
      n_alike += reordered->predicted.period_ns == as_given->predicted.period_ns;
    }
    planc_plan_free(none);
    planc_plan_free(as_given);
    planc_plan_free(reordered);
    planc_graph_free(graph);
  }
  ck_assert_int_ge(n_faster, graphs() / 40);
  ck_assert_int_ge(n_alike, graphs() / 40);
}
END_TEST

/* --- What recomputes read ----------------------------------------------------------------------------------------- */

enum { BLOCKS = 12, LARGE = 1000 };

/* Blocks of a large tensor, which the backward pass reads, and a small one, which none but the next block does. */
static planc_graph *blocks(void) {
  static char text[1 << 14];
  size_t at = (size_t)snprintf(text, sizeof text,
                               "planc-graph: 1\nname: blocks\noutputs: [d0]\ntensors:\n  b0: input f32[N,10]\n"
                               "  loss: f32[]\n  d%d: f32[N,10]\n",
                               BLOCKS);
  for (int k = 1; k <= BLOCKS; k++)
    at += (size_t)snprintf(text + at, sizeof text - at, "  a%d: f32[N,%d]\n  b%d: f32[N,10]\n  d%d: f32[N,10]\n", k,
                           LARGE, k, k - 1);
  at += (size_t)snprintf(text + at, sizeof text - at, "ops:\n");
  for (int k = 1; k <= BLOCKS; k++)
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "  - {op: wide%d, type: my.op, in: [b%d], out: [a%d]}\n"
                           "  - {op: narrow%d, type: my.op, in: [a%d], out: [b%d]}\n",
                           k, k - 1, k, k, k, k);
  at += (size_t)snprintf(text + at, sizeof text - at,
                         "  - {op: loss, type: my.op, in: [b%d], out: [loss]}\n"
                         "  - {op: back%d, type: my.op, phase: backward, in: [loss], out: [d%d]}\n",
                         BLOCKS, BLOCKS + 1, BLOCKS);
  for (int k = BLOCKS; k >= 1; k--)
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "  - {op: back%d, type: my.op, phase: backward, in: [a%d, d%d], out: [d%d]}\n", k, k, k,
                           k - 1);
  return graph_of(text);
}

/* Where three of the large tensors find room, each is computed again from the small one ahead of it, which stays for
 * that, and not from the beginning, which the first of them is nearest to and the last one farthest from. */
START_TEST(what_is_computed_again_is_not_computed_from_the_beginning) {
  enum { BATCH = 64 };
  planc_graph *graph = blocks();
  planc_problem problem = problem_of(graph, INT64_C(1) << 40);
  problem.job.batch = problem.job.sub_batch = BATCH;
  problem.terms.settings.no_swap = 1;
  planc_plan *none = plan_of(&problem, "none");
  problem.terms.budgets[PLANC_MEMORY_DEVICE] =
      none->predicted.peak_bytes[PLANC_MEMORY_DEVICE] - (BLOCKS - 3) * INT64_C(4) * LARGE * BATCH;
  planc_plan *plan = plan_of(&problem, "priced");
  ck_assert_ptr_nonnull(plan);
  int32_t times = 0;
  for (int32_t i = 0; i < plan->body.n; i++)
    times += plan->body.instrs[i].op == PLANC_INSTR_exec && plan->body.instrs[i].recompute;
  ck_assert_int_ge(times, BLOCKS - 3);
  ck_assert_int_le(times, BLOCKS);
  planc_plan_free(none);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

enum { LAYERS = 16 };

/* As in DenseNet: each layer reads all that those before have made side by side, which the backward pass reads again,
 * though not what it is made of. */
static planc_graph *dense(const char *layer_flags) {
  static char text[1 << 15];
  size_t at = (size_t)snprintf(text, sizeof text,
                               "planc-graph: 1\nname: dense\noutputs: [d0]\ntensors:\n  x: input f32[N,10]\n"
                               "  f0: f32[N,100]\n  loss: f32[]\n  d%d: f32[N,10]\n",
                               LAYERS);
  for (int k = 1; k <= LAYERS; k++)
    at += (size_t)snprintf(text + at, sizeof text - at, "  f%d: f32[N,100]\n  c%d: f32[N,%d]\n  d%d: f32[N,10]\n", k, k,
                           100 * k, k - 1);
  at += (size_t)snprintf(text + at, sizeof text - at, "ops:\n  - {op: first, type: my.op, in: [x], out: [f0]}\n");
  for (int k = 1; k <= LAYERS; k++) {
    at += (size_t)snprintf(text + at, sizeof text - at, "  - {op: cat%d, type: my.op, in: [f0", k);
    for (int f = 1; f < k; f++) at += (size_t)snprintf(text + at, sizeof text - at, ", f%d", f);
    at +=
        (size_t)snprintf(text + at, sizeof text - at,
                         "], out: [c%d]}\n  - {op: layer%d, type: my.op, in: [c%d], out: [f%d], traffic: 100000N%s}\n",
                         k, k, k, k, layer_flags);
  }
  at += (size_t)snprintf(text + at, sizeof text - at,
                         "  - {op: loss, type: my.op, in: [f%d], out: [loss]}\n"
                         "  - {op: back%d, type: my.op, phase: backward, in: [loss], out: [d%d]}\n",
                         LAYERS, LAYERS + 1, LAYERS);
  for (int k = LAYERS; k >= 1; k--)
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "  - {op: back%d, type: my.op, phase: backward, in: [c%d, d%d], out: [d%d]}\n", k, k, k,
                           k - 1);
  return graph_of(text);
}

/* What few of many inputs are kept for is not worth them: all that is made of them leaves together. */
START_TEST(what_is_made_of_many_leaves_together) {
  enum { BATCH = 64, KEPT = 45 /* in a hundred of all c */, ROWS = 100 * LAYERS * (LAYERS + 1) / 2 };
  planc_graph *graph = dense("");
  planc_problem problem = problem_of(graph, INT64_C(1) << 40);
  problem.job.batch = problem.job.sub_batch = BATCH;
  problem.terms.settings.no_swap = 1;
  planc_plan *none = plan_of(&problem, "none");
  problem.terms.budgets[PLANC_MEMORY_DEVICE] =
      none->predicted.peak_bytes[PLANC_MEMORY_DEVICE] - INT64_C(4) * BATCH * ROWS / 100 * (100 - KEPT);
  planc_plan *plan = plan_of(&problem, "priced");
  ck_assert_ptr_nonnull(plan);
  int32_t n_again = 0, n_layers = 0;
  for (int32_t i = 0; i < plan->body.n; i++) {
    const planc_instr *instr = &plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_exec || !instr->recompute) continue;
    n_again++;
    n_layers += strncmp(graph->ops[instr->id].name, "layer", 5) == 0;
  }
  ck_assert_int_gt(n_again, 0);
  ck_assert_int_le(n_again, LAYERS);
  ck_assert_int_eq(n_layers, 0);
  planc_plan_free(none);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* Nothing is copied where that is ruled out, however little room there is. Where no layer can run again all but the
 * first input are kept for what is made of them. */
START_TEST(what_is_made_of_many_is_not_copied_against_the_rule) {
  planc_graph *graph = dense(", flags: [no-recompute]");
  planc_problem problem = problem_of(graph, INT64_C(1) << 40);
  problem.terms.settings.no_swap = 1;
  for (int32_t quarters = 0; quarters < 4; quarters++) {
    searched s;
    pl_walk_room room = tight_room(&problem, quarters);
    int32_t tails[PL_AUTO_MOST_INPUTS], most = 0;
    begin(&s, &problem, room, true);
    for (int32_t g = s.gaps.n_fed; g < s.gaps.n; g++)
      if (s.gaps.items[g].needs_tails) most = (int32_t)pl_max(most, pl_auto_search_inputs(&s.search, g, tails));
    ck_assert_int_ge(most, LAYERS - 1);
    pl_auto_search_start(&s.search, 0);
    are_open(&s.search);
    pl_auto_search_start(&s.search, WORK);
    are_open(&s.search);
    end(&s);
  }
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("auto");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 300);
  tcase_add_unchecked_fixture(tests, read_profile, free_profile);
  tcase_add_test(tests, rehearsals_are_what_the_walk_states);
  tcase_add_test(tests, what_is_made_again_beside_its_copy_is_rehearsed);
  tcase_add_test(tests, the_plan_that_the_bound_pays_for);
  tcase_add_test(tests, a_way_that_is_given_is_kept);
  tcase_add_test(tests, more_times_find_what_is_no_slower);
  tcase_add_test(tests, what_is_forced_is_free_again);
  tcase_add_test(tests, what_is_fixed_in_between_does_not_change);
  tcase_add_test(tests, the_heaviest_gaps_come_first);
  tcase_add_test(tests, of_the_first_segments_what_stays_is_copied);
  tcase_add_test(tests, updates_are_as_early_as_they_can_be);
  tcase_add_test(tests, others_are_late);
  tcase_add_test(tests, nothing_else_is_as_fast);
  tcase_add_test(tests, reordered_is_no_slower);
  tcase_add_test(tests, what_is_computed_again_is_not_computed_from_the_beginning);
  tcase_add_test(tests, what_is_made_of_many_leaves_together);
  tcase_add_test(tests, what_is_made_of_many_is_not_copied_against_the_rule);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
