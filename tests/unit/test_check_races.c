/* The checker's answer about order and events against an oracle that has none of its machinery: all accesses of runs of
 * none to three bodies, all pairs that conflict, and the full relation of what events and streams order (unroll.h). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planc/check.h"
#include "tests/support/judge.h"
#include "tests/support/mutate.h"
#include "tests/support/randplan.h"
#include "tests/support/script.h"
#include "tests/support/unit.h"
#include "tests/support/unroll.h"
#include "tests/support/weave.h"

enum { MOST_BODIES = 3, WOVEN = 6, PLANS = RANDPLANS + WOVEN };

/* --- Verdicts ----------------------------------------------------------------------------------------------------- */

/* What is wrong with a run's order: bits. */
enum { RACES = 1, UNRECORDED = 2 };

static int faults_in(const planc_plan *plan, int32_t bodies) {
  planc_trace *trace;
  unrolled u;
  int64_t pair[2];
  ok_in(planc_expand(plan->jobs, plan->n_jobs, &trace), "expand");
  unroll(plan, trace, bodies, &u);
  int faults = unrolled_order(&u, NULL) >= 0 ? UNRECORDED : 0;
  if (unrolled_race(&u, pair)) faults |= RACES;
  unrolled_free(&u);
  planc_trace_free(trace);
  return faults;
}

/* What the checker says of order; RULES where it stops at something else. */
enum { RULES = 4 };

static int faults_told(const planc_status status) {
  static const char *const of_events[] = {"does not record it", "nothing before this line records it",
                                          "must stand before the record of the same body"};
  if (!status) return 0;
  const char *message = planc_status_message(status);
  if (strstr(message, " may still be ")) return RACES;
  for (size_t i = 0; i < sizeof of_events / sizeof *of_events; i++)
    if (strstr(message, of_events[i])) return UNRECORDED;
  return RULES;
}

typedef struct tally {
  int judged, wrong, wrong_without_bodies;
} tally;

/* Where the checker goes through to the end, or stops at a fault of order, the oracle must agree: of one run at least,
 * and of the one that the message says. */
static void judge(const planc_plan *mutant, const char *description, tally *t) {
  planc_status status = planc_check(mutant, NULL, NULL);
  const char *message = planc_status_message(status);
  int told = faults_told(status), without_bodies = 0, with_bodies = 0;
  bool says_without = strstr(message, ", in a run without bodies") != NULL;
  if (told != RULES) {
    without_bodies = faults_in(mutant, 0);
    for (int32_t bodies = 1; bodies <= MOST_BODIES; bodies++) with_bodies |= faults_in(mutant, bodies);
    int found = without_bodies | with_bodies;
    if (told ? !(found & told) : found)
      ck_abort_msg("%s: the checker says %s, the oracle finds %d", description, message, found);
    if (told && !((says_without ? without_bodies : with_bodies) & told))
      ck_abort_msg("%s: the checker says %s, the oracle finds that in another run", description, message);
    t->judged++;
    t->wrong += told != 0;
    t->wrong_without_bodies += told && !with_bodies;
  }
  planc_status_free(status);
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static planc_profile *profile;
static planc_graph *graph;
static planc_plan *plan;
static woven cloth;

/* Two to four replicas, which exchange two gradients. */
static void make_woven(int number) {
  static const int64_t rounds[] = {2, 1};
  graph = judge_graph(
      "planc-graph: 1\n"
      "name: two\n"
      "tensors:\n"
      "  x: input f32[N,32]\n"
      "  w: param f32[64]\n"
      "  b: param f32[16]\n"
      "  y: f32[N,32]\n"
      "  dw: grad f32[64]\n"
      "  db: grad f32[16]\n"
      "ops:\n"
      "  - {op: f, type: t.make, in: [x, w, b], out: [y]}\n"
      "  - {op: g, type: t.make, phase: backward, in: [x, y], out: [dw, db]}\n"
      "  - {op: u, type: t.make, phase: optimizer, in: [w, dw, b, db], out: [w, b]}\n");
  planc_job job = {.graph = graph, .rounds = rounds, .iterations = 1, .replicas = 2 + number % 3};
  job.n_rounds = number < 3 ? 2 : 1;
  job.batch = job.n_rounds == 1 ? 2 : 3;
  ok_in(weave(&job, number < 3 ? WEAVE_RESIDENT : WEAVE_SWAP, 0, &cloth), "weave");
  plan = &cloth.plan;
}

/* Plan 0 .. PLANS-1. */
static void make_plan(int number) {
  tally t = {0};
  ok_in(planc_profile_read("profiles/k40m.json", &profile), "profile");
  if (number < RANDPLANS) {
    randplan_make(number, profile, &graph, &plan);
  } else {
    make_woven(number - RANDPLANS);
  }
  judge(plan, "nothing is changed", &t);
  ck_assert(t.judged && !t.wrong);
}

static void free_plan(void) {
  if (plan == &cloth.plan) {
    woven_free(&cloth);
  } else {
    planc_plan_free(plan);
  }
  planc_graph_free(graph);
  planc_profile_free(profile);
}

/* --- Every record, wait and release ------------------------------------------------------------------------------- */

static const char *const section_names[] = {"prologue", "body", "epilogue"};

/* Judges the plan with instruction `from` of a section at place `to`, or (-1) without it. */
static void judge_moved(int s, int32_t from, int32_t to, tally *t) {
  planc_plan mutant = *plan;
  planc_section *section = s == 0 ? &mutant.prologue : s == 1 ? &mutant.body : &mutant.epilogue;
  char description[64];
  planc_instr *instrs = malloc((size_t)section->n * sizeof *instrs), moved = section->instrs[from];
  ck_assert_ptr_nonnull(instrs);
  memcpy(instrs, section->instrs, (size_t)section->n * sizeof *instrs);
  memmove(&instrs[from], &instrs[from + 1], (size_t)(section->n - from - 1) * sizeof *instrs);
  if (to >= 0) {
    memmove(&instrs[to + 1], &instrs[to], (size_t)(section->n - to - 1) * sizeof *instrs);
    instrs[to] = moved;
  }
  *section = (planc_section){to >= 0 ? section->n : section->n - 1, instrs};
  snprintf(description, sizeof description, "%s[%d] to %d", section_names[s], from, to);
  judge(&mutant, description, t);
  free(instrs);
}

START_TEST(every_record_wait_and_release_counts_as_the_oracle_says) {
  static const int32_t steps[] = {-5, -2, -1, 1, 2, 5};
  make_plan(_i);
  const planc_section *sections[] = {&plan->prologue, &plan->body, &plan->epilogue};
  tally t = {0};
  for (int s = 0; s < 3; s++) {
    for (int32_t i = 0; i < sections[s]->n; i++) {
      uint8_t op = sections[s]->instrs[i].op;
      if (op != PLANC_INSTR_record && op != PLANC_INSTR_wait && op != PLANC_INSTR_release) continue;
      judge_moved(s, i, -1, &t);
      judge_moved(s, i, 0, &t);
      judge_moved(s, i, sections[s]->n - 1, &t);
      for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        int32_t to = i + steps[k];
        if (to >= 0 && to < sections[s]->n) judge_moved(s, i, to, &t);
      }
    }
  }
  ck_assert_int_gt(t.wrong, 0);
  if (_i < RANDPLANS && strcmp(plan->policy, "none") == 0) ck_assert_int_gt(t.wrong_without_bodies, 0);
  free_plan();
}
END_TEST

/* --- Mutants of all kinds ----------------------------------------------------------------------------------------- */

START_TEST(mutants_race_when_the_oracle_says_so) {
  make_plan(_i);
  tally t = {0};
  for (uint64_t seed = 0; seed < 1000; seed++) {
    planc_plan *mutant;
    char description[256];
    ok_in(mutate_plan(plan, seed, &mutant, description, sizeof description), "mutate");
    judge(mutant, description, &t);
    planc_plan_free(mutant);
  }
  ck_assert_int_gt(t.wrong, 0);
  free_plan();
}
END_TEST

/* The epilogue's copy is ordered after the prologue's by way of two bodies: compute, or the stream that made the copy,
 * tells in the first body what the second waits for. */
static const char *const by_two_bodies[] = {"wait 0 lag 1 on 2\n", "wait 2 lag 1 on 2\n"};

static planc_plan *make_script(const char *text) {
  return judge_plan(graph, text, 768, 0);
}

/* `races` says which runs of 0, 1 and 2 bodies do; where any does, that without bodies must. */
static void expect_races(const char *text, const bool races[3], const char *what) {
  plan = make_script(text);
  for (int32_t bodies = 0; bodies < 3; bodies++) ck_assert_int_eq(faults_in(plan, bodies), races[bodies] ? RACES : 0);
  judge_expect(plan, races[0] ? PLANC_INVALID_PLAN : PLANC_OK, races[0] ? ", in a run without bodies" : "ok", what);
  planc_plan_free(plan);
}

START_TEST(few_bodies_must_be_safe_too) {
  static const char text[] =
      "planc-graph: 1\n"
      "name: tiny\n"
      "tensors:\n"
      "  x: input f32[N,32]\n"
      "  w: param f32[64]\n"
      "  y: f32[N,32]\n"
      "ops:\n"
      "  - {op: f, type: t.make, in: [x, w], out: [y]}\n";
  static const char script[] =
      "boundary w 0\n"
      "prologue\n"
      "acquire 0 w 0\n"
      "record 0 on 0\n"
      "record 2 on 1\n"
      "copy 0 user on 1\n"
      "body\n"
      "WAIT\n"
      "wait 0 lag 1 on 1\n"
      "acquire 1 x 256\n"
      "copy 1 user on 1\n"
      "record 1 on 1\n"
      "record 2 on 1\n"
      "wait 1 on 0\n"
      "acquire 2 y 512\n"
      "exec f use 1 0 2\n"
      "record 0 on 0\n"
      "release 1\n"
      "release 2\n"
      "epilogue\n"
      "copy user 0 on 2\n"
      "release 0\n";
  graph = judge_graph(text);
  char epilogue[64];
  snprintf(epilogue, sizeof epilogue, "epilogue\n%s", by_two_bodies[_i]);
  char *two = judge_edited(script, "WAIT\n", by_two_bodies[_i]);
  char *one = judge_edited(two, "epilogue\n", epilogue);
  char *none = judge_edited(one, "record 0 on 0\nrecord 2 on 1\ncopy 0 user on 1\n",
                            "copy 0 user on 1\nrecord 2 on 1\nwait 2 on 0\nrecord 0 on 0\n");
  expect_races(two, (bool[]){true, true, false}, "the epilogue does not wait");
  expect_races(one, (bool[]){true, false, false}, "the prologue records too early");
  expect_races(none, (bool[]){false, false, false}, "the prologue records what the epilogue waits for");
  free(two);
  free(one);
  free(none);
  planc_graph_free(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("check_races");
  TCase *cases = tcase_create("all");
  tcase_set_timeout(cases, 300);
  tcase_add_loop_test(cases, every_record_wait_and_release_counts_as_the_oracle_says, 0, PLANS);
  tcase_add_loop_test(cases, mutants_race_when_the_oracle_says_so, 0, PLANS);
  tcase_add_loop_test(cases, few_bodies_must_be_safe_too, 0, 2);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
