/* Pairs of node groups (Waterwave, Algorithm 1): in 20,000 random mixes every group runs once, in the order of its
 * pass, no two at one place of a stream, in the stream that the paper says, and never with more held than the limit. */
#include <check.h>
#include <string.h>

#include "planner/colocate/interleave/pairing.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum {
  CASES = 20000,
  CASES_BY_HAND = 600,
  MOST_JOBS = 5,
  MOST_ITERATIONS = 3,
  MOST_GROUPS = 12,
  MOST_PASSES = MOST_JOBS * MOST_ITERATIONS
};
enum { ALLOCATING, DEALLOCATING };

typedef struct made {
  uint64_t seed;
  int32_t n_jobs, n;
  pl_node_group of[MOST_JOBS][MOST_GROUPS];
  pl_node_groups groups[MOST_JOBS];
  pl_pairing_pass passes[MOST_PASSES];
  pl_pairing_rule rule;
} made;

/* Holds more and more, then less and less, and more within a group than at its ends. */
static void make_job(made *m, int32_t job) {
  pl_node_groups *groups = &m->groups[job];
  int64_t held = 0;
  groups->n_allocating = 1 + (int32_t)rand_below(&m->seed, MOST_GROUPS / 2);
  groups->n = groups->n_allocating + (int32_t)rand_below(&m->seed, MOST_GROUPS / 2 + 1);
  groups->groups = m->of[job];
  for (int32_t g = 0; g < groups->n; g++) {
    int64_t before = held, change = 1 + rand_below(&m->seed, 9);
    held = g < groups->n_allocating ? held + change : held - change;
    if (held < 0 || g == groups->n - 1) held = 0;
    m->of[job][g].held_bytes = held;
    m->of[job][g].most_bytes = (held > before ? held : before) + rand_below(&m->seed, 3);
    if (m->of[job][g].most_bytes > groups->most_bytes) groups->most_bytes = m->of[job][g].most_bytes;
  }
}

static void make(uint64_t seed, made *m) {
  int64_t most = 0;
  *m = (made){.seed = seed};
  m->n_jobs = 1 + (int32_t)rand_below(&m->seed, MOST_JOBS);
  for (int32_t j = 0; j < m->n_jobs; j++) {
    int32_t iterations = 1 + (int32_t)rand_below(&m->seed, MOST_ITERATIONS);
    make_job(m, j);
    if (m->groups[j].most_bytes > most) most = m->groups[j].most_bytes;
    for (int32_t k = 0; k < iterations; k++) m->passes[m->n++] = (pl_pairing_pass){j, k, iterations, &m->groups[j]};
  }
  m->rule.limit_bytes = most + rand_below(&m->seed, 2 * most + 1);
  m->rule.split_bytes = 1 + rand_below(&m->seed, 9);
  m->rule.early = rand_chance(&m->seed, 50);
  pl_sort_passes(m->passes, m->n);
}

/* Where the group is, -1 = nowhere. */
static int32_t find(const pl_pairs *pairs, int32_t pass, int32_t group, int32_t *out_stream) {
  int32_t place = -1;
  for (int32_t k = 0; k < pairs->n; k++) {
    for (int32_t s = 0; s < PL_PAIR; s++) {
      if (pairs->pairs[k][s].pass != pass || pairs->pairs[k][s].group != group) continue;
      ck_assert_int_eq(place, -1);
      place = k;
      *out_stream = s;
    }
  }
  return place;
}

/* What a pass holds while a pair runs. */
static int64_t held_by(const made *m, const pl_pairs *pairs, int32_t pass, int32_t pair) {
  int64_t held = 0;
  int32_t stream;
  for (int32_t g = 0; g < m->passes[pass].groups->n; g++) {
    const pl_node_group *group = &m->passes[pass].groups->groups[g];
    int32_t at = find(pairs, pass, g, &stream);
    if (at <= pair) held = at == pair ? group->most_bytes : group->held_bytes;
  }
  return held;
}

static void assert_limit(const made *m, const pl_pairs *pairs) {
  for (int32_t k = 0; k < pairs->n; k++) {
    int64_t held = 0;
    ck_assert(pairs->pairs[k][0].pass >= 0 || pairs->pairs[k][1].pass >= 0);
    for (int32_t p = 0; p < m->n; p++) held += held_by(m, pairs, p, k);
    ck_assert_int_le(held, m->rule.limit_bytes);
  }
}

static int64_t ahead_of(const made *m) {
  int64_t ahead = (m->rule.limit_bytes - m->groups[m->passes[0].job].most_bytes) / m->rule.split_bytes - 1;
  return ahead > 0 ? ahead : 0;
}

static void assert_stream(const made *m, int32_t pass, int32_t group, int32_t stream) {
  bool allocates = group < m->passes[pass].groups->n_allocating;
  if (m->rule.early) return;
  if (pass == 0 && m->n > 1) ck_assert_int_eq(stream, allocates ? ALLOCATING : DEALLOCATING);
  if (pass == 1 && group >= ahead_of(m) && allocates) ck_assert_int_eq(stream, ALLOCATING);
  if (pass > 1 && allocates) ck_assert_int_eq(stream, ALLOCATING);
  if (pass > 0 && pass < m->n - 1 && !allocates) ck_assert_int_eq(stream, DEALLOCATING);
}

static void assert_order(const made *m, const pl_pairs *pairs) {
  int32_t last_of[MOST_JOBS], n = 0;
  for (int32_t j = 0; j < MOST_JOBS; j++) last_of[j] = -1;
  for (int32_t p = 0; p < m->n; p++) {
    for (int32_t g = 0; g < m->passes[p].groups->n; g++) {
      int32_t stream, at = find(pairs, p, g, &stream), *last = &last_of[m->passes[p].job];
      ck_assert_int_gt(at, *last);
      assert_stream(m, p, g, stream);
      *last = at;
      n++;
    }
  }
  for (int32_t k = 0; k < pairs->n; k++) n -= (pairs->pairs[k][0].pass >= 0) + (pairs->pairs[k][1].pass >= 0);
  ck_assert_int_eq(n, 0);
}

/* --- By hand ------------------------------------------------------------------------------------------------------ */

enum { MOST_PLACES = MOST_PASSES * MOST_GROUPS + 1 };

typedef struct by_hand {
  pl_paired at[MOST_PLACES][PL_PAIR];
  int32_t place_of[MOST_PASSES][MOST_GROUPS]; /* -1 = nowhere yet */
} by_hand;

static bool is_free(const by_hand *h, int32_t place, int32_t stream) {
  return h->at[place][stream].pass < 0;
}

/* What all passes hold at a place, from their groups placed so far. */
static int64_t held_at(const made *m, const by_hand *h, int32_t place) {
  int64_t sum = 0;
  for (int32_t p = 0; p < m->n; p++) {
    int64_t held = 0;
    for (int32_t g = 0; g < m->passes[p].groups->n; g++) {
      const pl_node_group *group = &m->passes[p].groups->groups[g];
      int32_t at = h->place_of[p][g];
      if (at >= 0 && at <= place) held = at == place ? group->most_bytes : group->held_bytes;
    }
    sum += held;
  }
  return sum;
}

static bool try_place(const made *m, by_hand *h, int32_t pass, int32_t group, int32_t place, int32_t stream) {
  if (!is_free(h, place, stream)) return false;
  h->place_of[pass][group] = place;
  for (int32_t k = place; k < MOST_PLACES; k++) {
    if (held_at(m, h, k) <= m->rule.limit_bytes) continue;
    h->place_of[pass][group] = -1;
    return false;
  }
  h->at[place][stream] = (pl_paired){pass, group};
  return true;
}

/* As the header says it: the first place that is not before `from`, in the streams that the group may be in. */
static int32_t place_first(const made *m, by_hand *h, int32_t pass, int32_t group, int32_t from, int32_t only) {
  for (int32_t place = from; place < MOST_PLACES; place++)
    for (int32_t s = 0; s < PL_PAIR; s++)
      if ((only < 0 || s == only) && try_place(m, h, pass, group, place, s)) return place;
  ck_abort_msg("no place");
  return -1;
}

static int32_t ahead_by_hand(const made *m) {
  int64_t ahead = ahead_of(m);
  if (ahead > m->passes[0].groups->n_allocating) ahead = m->passes[0].groups->n_allocating;
  if (ahead > m->passes[1].groups->n_allocating) ahead = m->passes[1].groups->n_allocating;
  return (int32_t)ahead;
}

static void place_by_hand(const made *m, by_hand *h) {
  for (int32_t k = 0; k < MOST_PLACES; k++)
    for (int32_t s = 0; s < PL_PAIR; s++) h->at[k][s] = (pl_paired){-1, -1};
  memset(h->place_of, -1, sizeof h->place_of);
  for (int32_t p = 0; p < m->n; p++) {
    int32_t ahead = p == 1 && !m->rule.early ? ahead_by_hand(m) : 0;
    int32_t from = p == 0 ? 0 : ahead > 0 ? m->passes[0].groups->n_allocating - ahead : h->place_of[p - 1][0];
    for (int32_t q = 0; q < p; q++) {
      int32_t last = h->place_of[q][m->passes[q].groups->n - 1];
      if (m->passes[q].job == m->passes[p].job && last >= from) from = last + 1;
    }
    for (int32_t g = 0; g < m->passes[p].groups->n; g++) {
      bool allocates = g < m->passes[p].groups->n_allocating;
      int32_t only = m->rule.early ? -1 : g < ahead ? DEALLOCATING : allocates ? ALLOCATING : DEALLOCATING;
      if (!m->rule.early && !allocates && p == m->n - 1) only = -1;
      from = place_first(m, h, p, g, from, only) + 1;
    }
  }
}

static void assert_by_hand(const made *m, const pl_pairs *pairs) {
  static by_hand h;
  int32_t next = 0;
  place_by_hand(m, &h);
  for (int32_t k = 0; k < MOST_PLACES; k++) {
    if (is_free(&h, k, 0) && is_free(&h, k, 1)) continue;
    ck_assert_int_lt(next, pairs->n);
    ck_assert_int_eq(memcmp(h.at[k], pairs->pairs[next], sizeof h.at[k]), 0);
    next++;
  }
  ck_assert_int_eq(next, pairs->n);
}

START_TEST(groups_are_where_they_are_put_by_hand) {
  static made m;
  for (uint64_t seed = 0; seed < CASES_BY_HAND; seed++) {
    pl_arena arena = {0};
    pl_pairs pairs;
    make(seed, &m);
    if (m.n > 6) continue;
    ok(pl_pair_groups(&arena, m.passes, m.n, &m.rule, &pairs));
    assert_by_hand(&m, &pairs);
    pl_arena_free(&arena);
  }
}
END_TEST

START_TEST(groups_keep_order_streams_and_limit) {
  static made m;
  for (uint64_t seed = 0; seed < CASES; seed++) {
    pl_arena arena = {0};
    pl_pairs pairs;
    make(seed, &m);
    ok(pl_pair_groups(&arena, m.passes, m.n, &m.rule, &pairs));
    assert_order(&m, &pairs);
    assert_limit(&m, &pairs);
    pl_arena_free(&arena);
  }
}
END_TEST

/* --- The paper's example ------------------------------------------------------------------------------------------ */

/* Groups that take a unit each, and give it back. */
static void make_even(made *m, const int32_t *n_groups, int32_t n_jobs, int64_t limit) {
  *m = (made){.n_jobs = n_jobs, .n = n_jobs, .rule = {.limit_bytes = limit, .split_bytes = 1}};
  for (int32_t j = 0; j < n_jobs; j++) {
    m->groups[j] = (pl_node_groups){n_groups[j], n_groups[j] / 2, m->of[j], n_groups[j] / 2};
    for (int32_t g = 0; g < n_groups[j]; g++) {
      int64_t held = g < n_groups[j] / 2 ? g + 1 : n_groups[j] - 1 - g;
      m->of[j][g] = (pl_node_group){.held_bytes = held, .most_bytes = g < n_groups[j] / 2 ? held : held + 1};
    }
    m->passes[j] = (pl_pairing_pass){j, 0, 1, &m->groups[j]};
  }
}

static bool are_paired(const pl_pairs *pairs, int32_t pass, int32_t group, int32_t other, int32_t other_group) {
  int32_t stream;
  return find(pairs, pass, group, &stream) == find(pairs, other, other_group, &stream);
}

/* Fig. 5: jobs of six, four and four groups in the memory of the first. */
START_TEST(figure_5_is_reproduced) {
  static made m;
  pl_arena arena = {0};
  pl_pairs pairs;
  make_even(&m, (const int32_t[]){6, 4, 4}, 3, 4);
  ok(pl_pair_groups(&arena, m.passes, m.n, &m.rule, &pairs));
  ck_assert(are_paired(&pairs, 0, 3, 1, 0));
  ck_assert(are_paired(&pairs, 1, 2, 2, 1));
  pl_arena_free(&arena);
}
END_TEST

/* Two jobs of six groups: with room for two groups more than one job takes, the second is one ahead; with twice what
 * one takes and one more all of its allocation groups run beside the first's. */
START_TEST(room_lets_the_second_go_ahead) {
  static const struct {
    int64_t limit;
    int32_t want;
  } cases[] = {{3, 3}, {4, 3}, {5, 2}, {6, 1}, {7, 0}, {20, 0}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    static made m;
    pl_arena arena = {0};
    pl_pairs pairs;
    int32_t stream;
    make_even(&m, (const int32_t[]){6, 6}, 2, cases[c].limit);
    ok(pl_pair_groups(&arena, m.passes, m.n, &m.rule, &pairs));
    int32_t at = find(&pairs, 1, 0, &stream);
    ck_assert_msg(at >= cases[c].want, "limit %d: %d", (int)cases[c].limit, at);
    if (cases[c].limit >= 7 || cases[c].limit == 4) ck_assert_int_eq(at, cases[c].want);
    pl_arena_free(&arena);
  }
}
END_TEST

/* A job that is alone has one group after the other; two alike without a limit, early, are side by side throughout. */
START_TEST(early_groups_fill_both_streams) {
  static made m;
  pl_arena arena = {0};
  pl_pairs pairs;
  make_even(&m, (const int32_t[]){8}, 1, 4);
  ok(pl_pair_groups(&arena, m.passes, m.n, &m.rule, &pairs));
  ck_assert_int_eq(pairs.n, 8);
  make_even(&m, (const int32_t[]){8, 8}, 2, 100);
  m.rule.early = true;
  ok(pl_pair_groups(&arena, m.passes, m.n, &m.rule, &pairs));
  ck_assert_int_eq(pairs.n, 8);
  pl_arena_free(&arena);
}
END_TEST

/* Iterations of unequal jobs alternate as their shares of the period do. */
START_TEST(passes_are_sorted_by_progress) {
  static made m;
  static const int32_t want[][2] = {{1, 0}, {0, 0}, {1, 1}, {0, 1}, {1, 2}};
  make_even(&m, (const int32_t[]){2, 4}, 2, 100);
  m.n = 0;
  for (int32_t k = 0; k < 3; k++) {
    if (k < 2) m.passes[m.n++] = (pl_pairing_pass){0, k, 2, &m.groups[0]};
    m.passes[m.n++] = (pl_pairing_pass){1, k, 3, &m.groups[1]};
  }
  pl_sort_passes(m.passes, m.n);
  for (int32_t p = 0; p < m.n; p++) {
    ck_assert_int_eq(m.passes[p].job, want[p][0]);
    ck_assert_int_eq(m.passes[p].iteration, want[p][1]);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pairing");
  TCase *pairs = tcase_create("pairs");
  tcase_add_test(pairs, groups_keep_order_streams_and_limit);
  tcase_add_test(pairs, groups_are_where_they_are_put_by_hand);
  tcase_add_test(pairs, figure_5_is_reproduced);
  tcase_add_test(pairs, room_lets_the_second_go_ahead);
  tcase_add_test(pairs, early_groups_fill_both_streams);
  tcase_add_test(pairs, passes_are_sorted_by_progress);
  suite_add_tcase(suite, pairs);
  return run_suite(suite);
}
