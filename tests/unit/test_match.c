/* Which job of a training a job of another plan is: by name, by content, or not at all. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "runtime/match.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"

enum { MOST = 5 };

/* A job as text: its name or -, its graph, what is in that, and its batch. */
typedef struct short_job {
  const char *name, *graph, *content;
  uint64_t batch;
} short_job;

static int32_t identify(const short_job *jobs, rt_identity *out) {
  int32_t n = 0;
  for (; n < MOST && jobs[n].graph; n++)
    out[n] = (rt_identity){.name = jobs[n].name,
                           .graph = jobs[n].graph,
                           .content = jobs[n].content,
                           .split = {.replicas = 1, .batch = jobs[n].batch}};
  return n;
}

static planc_status match(const short_job *known, const short_job *jobs, bool resumes, int32_t *out) {
  rt_identity ours[MOST], theirs[MOST];
  int32_t n_ours = identify(known, ours), n_theirs = identify(jobs, theirs);
  return rt_match(ours, n_ours, theirs, n_theirs, resumes, out);
}

/* --- By hand ------------------------------------------------------------------------------------------------------ */

#define N RT_JOINS
static const struct {
  short_job known[MOST], jobs[MOST];
  int32_t want[MOST];
  const char *refused; /* NULL: it is not */
} cases[] = {
    /* Names, in any order, whatever there is beside them. */
    {{{"a", "g", "1", 4}, {"b", "g", "1", 4}},
     {{"b", "g", "1", 4}, {"c", "g", "1", 4}, {"a", "g", "1", 4}},
     {1, N, 0},
     NULL},
    {{{"a", "g", "1", 4}}, {{"a", "h", "1", 4}}, {0}, NULL}, /* a graph's name is none of its content */
    {{{"a", "g", "1", 4}}, {{"b", "h", "2", 4}, {"a", "g", "1", 4}}, {N, 0}, NULL},
    {{{"a", "g", "1", 4}}, {{"a", "g", "2", 4}}, {0}, "made from another graph"},
    {{{"a", "g", "1", 4}}, {{"a", "g", "1", 5}}, {0}, "made for 5 samples in a batch, the run has 4"},
    {{{"a", "g", "1", 4}, {"b", "h", "2", 4}},
     {{"b", "h", "2", 4}, {"a", "g", "2", 4}},
     {0},
     "job a: made from another"},
    /* Content, where one of them has no name. */
    {{{NULL, "g", "1", 4}}, {{NULL, "h", "1", 4}}, {0}, NULL},
    {{{NULL, "g", "1", 4}}, {{NULL, "h", "2", 4}, {NULL, "g", "1", 4}}, {N, 0}, NULL},
    {{{"a", "g", "1", 4}, {"b", "h", "2", 4}}, {{NULL, "h", "2", 4}}, {1}, NULL},
    {{{NULL, "g", "1", 4}}, {{"b", "h", "2", 4}, {"a", "g", "1", 4}}, {N, 0}, NULL},
    {{{NULL, "g", "1", 4}}, {{NULL, "g", "1", 4}, {NULL, "g", "1", 8}}, {0, N}, NULL}, /* the same at two batches */
    /* As many alike are the same, in order. */
    {{{NULL, "g", "1", 4}, {NULL, "g", "1", 4}}, {{NULL, "g", "1", 4}, {NULL, "g", "1", 4}}, {0, 1}, NULL},
    {{{NULL, "g", "1", 4}, {NULL, "g", "1", 4}}, {{"y", "g", "1", 4}, {"x", "g", "1", 4}}, {0, 1}, NULL},
    {{{"a", "g", "1", 4}, {NULL, "g", "1", 4}}, {{NULL, "g", "1", 4}, {"a", "g", "1", 4}}, {1, 0}, NULL},
    {{{NULL, "g", "1", 4}, {NULL, "g", "1", 4}, {NULL, "h", "2", 4}},
     {{NULL, "h", "2", 4}},
     {2},
     NULL}, /* both leave */
    /* What only names would tell. */
    {{{NULL, "g", "1", 4}, {NULL, "g", "1", 4}},
     {{NULL, "g", "1", 4}},
     {0},
     "1 of its jobs train g alike, of the run's 2"},
    {{{NULL, "g", "1", 4}},
     {{"a", "g", "1", 4}, {"b", "g", "1", 4}},
     {0},
     "2 of its jobs train g alike, of the run's 1"},
    {{{"a", "g", "1", 4}, {"b", "g", "1", 4}}, {{NULL, "g", "1", 4}}, {0}, "only names tell"},
    {{{"a", "g", "1", 4}, {NULL, "g", "1", 4}}, {{"b", "g", "1", 4}, {NULL, "g", "1", 4}}, {0}, "only names tell"},
    /* A graph that has changed is no new job, unless names say so. */
    {{{NULL, "g", "1", 4}, {NULL, "h", "2", 4}},
     {{NULL, "g", "3", 4}, {NULL, "h", "2", 4}},
     {0},
     "job g: made from another"},
    {{{NULL, "g", "1", 4}, {NULL, "h", "2", 4}},
     {{NULL, "g", "1", 8}, {NULL, "h", "2", 4}},
     {0},
     "job g: made for 8 samples"},
    {{{"a", "g", "1", 4}, {NULL, "h", "2", 4}}, {{"b", "g", "3", 4}, {NULL, "h", "2", 4}}, {N, 1}, NULL},
    {{{"a", "g", "1", 4}, {NULL, "h", "2", 4}},
     {{NULL, "g", "3", 4}, {NULL, "h", "2", 4}},
     {0},
     "job g: made from another"},
    /* Nothing in common. */
    {{{NULL, "g", "1", 4}}, {{NULL, "h", "2", 4}}, {0}, "made from another graph than the run's"},
    {{{"a", "g", "1", 4}, {"b", "h", "2", 4}},
     {{"c", "i", "3", 4}, {"d", "g", "1", 4}},
     {0},
     "made from another graph"},
};
#undef N

START_TEST(cases_by_hand) {
  int32_t got[MOST];
  planc_status status = match(cases[_i].known, cases[_i].jobs, false, got);
  if (cases[_i].refused) {
    assert_fails(status, PLANC_STALE, cases[_i].refused);
    return;
  }
  ok(status);
  for (int32_t j = 0; j < MOST && cases[_i].jobs[j].graph; j++) ck_assert_int_eq(got[j], cases[_i].want[j]);
}
END_TEST

/* A run that goes on from a checkpoint is told of the same from its own side. */
START_TEST(a_resumed_run_is_told_from_its_side) {
  static const short_job known[MOST] = {{NULL, "g", "1", 4}}, other[MOST] = {{NULL, "g", "1", 5}};
  static const short_job twice[MOST] = {{NULL, "g", "1", 4}, {NULL, "g", "1", 4}};
  int32_t got[MOST];
  assert_fails(match(known, other, true, got), PLANC_STALE, "made for 4 samples in a batch, the run has 5");
  assert_fails(match(twice, known, true, got), PLANC_STALE, "2 of its jobs train g alike, of the run's 1");
}
END_TEST

/* --- All ways ----------------------------------------------------------------------------------------------------- */

static bool same(const char *a, const char *b) {
  return a && b && strcmp(a, b) == 0;
}

/* Whether two jobs may be one. */
static bool may_be(const short_job *a, const short_job *b) {
  bool alike = same(a->content, b->content) && a->batch == b->batch;
  return alike && (!a->name || !b->name || same(a->name, b->name));
}

/* Of all ways to pair jobs, in order, those in which no more could be paired: where all of them agree on who a job is,
 * there is nothing to guess. */
typedef struct ways {
  const short_job *known, *jobs;
  int32_t n_known, n_jobs, now[MOST];
  int32_t seen[MOST]; /* by job: the known one that it is in all of them; -2: they differ */
  int64_t n;
} ways;

static bool is_free(const ways *w, int32_t known, int32_t end) {
  for (int32_t j = 0; j < end; j++)
    if (w->now[j] == known) return false;
  return true;
}

static bool is_by_name(const ways *w, int32_t job) {
  return same(w->jobs[job].name, w->known[w->now[job]].name);
}

/* Of two that could change places the first is the first. */
static bool is_in_order(const ways *w) {
  for (int32_t a = 0; a < w->n_jobs; a++)
    for (int32_t b = a + 1; b < w->n_jobs; b++) {
      if (w->now[a] < 0 || w->now[b] < 0 || w->now[a] < w->now[b] || is_by_name(w, a) || is_by_name(w, b)) continue;
      if (may_be(&w->known[w->now[b]], &w->jobs[a]) && may_be(&w->known[w->now[a]], &w->jobs[b])) return false;
    }
  return true;
}

static bool is_largest(const ways *w) {
  for (int32_t j = 0; j < w->n_jobs; j++)
    for (int32_t k = 0; k < w->n_known; k++)
      if (w->now[j] < 0 && is_free(w, k, w->n_jobs) && may_be(&w->known[k], &w->jobs[j])) return false;
  return true;
}

/* What has the same name is the same. */
static bool keeps_names(const ways *w) {
  for (int32_t j = 0; j < w->n_jobs; j++)
    for (int32_t k = 0; k < w->n_known; k++)
      if (same(w->jobs[j].name, w->known[k].name) && w->now[j] != k) return false;
  return true;
}

static void go(ways *w, int32_t job) {
  if (job < w->n_jobs) {
    for (int32_t k = -1; k < w->n_known; k++) {
      if (k >= 0 && (!is_free(w, k, job) || !may_be(&w->known[k], &w->jobs[job]))) continue;
      w->now[job] = k;
      go(w, job + 1);
    }
    return;
  }
  if (!is_largest(w) || !keeps_names(w) || !is_in_order(w)) return;
  for (int32_t j = 0; j < w->n_jobs; j++) w->seen[j] = w->n == 0 || w->seen[j] == w->now[j] ? w->now[j] : -2;
  w->n++;
}

static int32_t draw(uint64_t *seed, short_job *out) {
  static const char *const names[] = {NULL, NULL, "a", "b", "c"};
  static const char *const graphs[] = {"g", "h"};
  static const char *const contents[] = {"1", "2"};
  int32_t n = 1 + (int32_t)rand_below(seed, MOST - 1);
  for (int32_t j = 0; j < n; j++) {
    int64_t which = rand_below(seed, 2);
    out[j] = (short_job){names[rand_below(seed, 5)], graphs[which], contents[which], 4};
    for (int32_t k = 0; k < j; k++)
      if (same(out[k].name, out[j].name)) out[j].name = NULL;
  }
  return n;
}

/* Whether a job that joins is one of the same graph that stays away, changed; or there is nothing in common. */
static bool is_other(const ways *w) {
  bool any = false;
  for (int32_t j = 0; j < w->n_jobs; j++) {
    any |= w->seen[j] >= 0;
    for (int32_t k = 0; k < w->n_known && w->seen[j] < 0; k++) {
      bool away = true;
      for (int32_t i = 0; i < w->n_jobs; i++) away &= w->seen[i] != k;
      if (away && same(w->jobs[j].graph, w->known[k].graph) && (!w->jobs[j].name || !w->known[k].name)) return true;
    }
  }
  return !any;
}

static bool is_ambiguous(const ways *w) {
  for (int32_t j = 0; j < w->n_jobs; j++)
    if (w->seen[j] == -2) return true;
  return w->n == 0;
}

/* What is found is what every way agrees on; where ways differ, and nowhere else, the plan is refused. */
START_TEST(nothing_is_guessed) {
  int64_t found = 0, refused = 0;
  for (uint64_t seed = 1; seed < 4000; seed++) {
    uint64_t state = seed;
    short_job known[MOST] = {{0}}, jobs[MOST] = {{0}};
    int32_t got[MOST];
    ways w = {.known = known, .jobs = jobs};
    w.n_known = draw(&state, known);
    w.n_jobs = draw(&state, jobs);
    go(&w, 0);
    planc_status status = match(known, jobs, false, got);
    if (status) {
      ck_assert_int_eq(planc_status_code(status), PLANC_STALE);
      ck_assert_msg(is_ambiguous(&w) || is_other(&w), "seed %llu: %s", (unsigned long long)seed,
                    planc_status_message(status));
      planc_status_free(status);
      refused++;
      continue;
    }
    found++;
    ck_assert_int_gt(w.n, 0);
    for (int32_t j = 0; j < w.n_jobs; j++)
      ck_assert_msg(w.seen[j] == got[j], "seed %llu: job %d is %d, not %d", (unsigned long long)seed, j, got[j],
                    w.seen[j]);
  }
  ck_assert_int_gt(found, 500);
  ck_assert_int_gt(refused, 500);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("match");
  TCase *all = tcase_create("all");
  tcase_add_loop_test(all, cases_by_hand, 0, sizeof cases / sizeof *cases);
  tcase_add_test(all, a_resumed_run_is_told_from_its_side);
  tcase_add_test(all, nothing_is_guessed);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
