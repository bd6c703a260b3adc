/* Valid plans are mutated in every way that can break them. A mutant is rejected by the checker, or it computes the
 * bits of the reference in every order that its events allow, with any number of bodies. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "planc/check.h"
#include "planrt/planrt.h"
#include "tests/support/mutate.h"
#include "tests/support/randgraph.h"
#include "tests/support/randplan.h"
#include "tests/support/unit.h"

enum { MUTANTS = 120, INTERLEAVINGS = 300, MOST_BODIES = 3 };

/* Gives params and state other bytes, to every replica its own, and the same to plan and reference: what the run before
 * has left in the arena is then not right by chance. */
static void refill(planrt_session *session, const planc_trace *trace, uint64_t seed, const char *description) {
  int32_t replicas = planc_trace_replicas(trace);
  for (int32_t k = 0; k < trace->n_buffers * replicas; k++) {
    const planc_buffer *buffer = &trace->buffers[k / replicas];
    if (!(buffer->flags & PLANC_BUFFER_PERSISTENT)) continue;
    unsigned char *bytes = malloc((size_t)buffer->bytes + 1);
    ck_assert_ptr_nonnull(bytes);
    for (int64_t i = 0; i < buffer->bytes; i++) bytes[i] = (unsigned char)rand_below(&seed, 256);
    ok_in(planrt_write(session, k % replicas, buffer->job, buffer->storage, bytes, buffer->bytes), description);
    free(bytes);
  }
}

/* `unchecked`: the checker has judged already, and its judgement is what is tested. */
static void computes_the_same(const planc_plan *mutant, const char *description) {
  planrt_options options = {.seed = 7, .synthetic = true, .verify = true, .unchecked = true};
  planrt_session *session;
  planc_trace *trace;
  ok_in(planc_expand(mutant->jobs, mutant->n_jobs, &trace), description);
  ok_in(planrt_session_new(mutant, &options, &session), description);
  ok_in(planrt_init(session), description);
  ok_in(planrt_run(session, 0), description);
  ok_in(planrt_run(session, 2), description);
  for (uint64_t seed = 0; seed < INTERLEAVINGS; seed++) {
    refill(session, trace, seed, description);
    ok_in(planrt_run_interleaved(session, (int64_t)(seed % (MOST_BODIES + 1)), seed), description);
  }
  planrt_session_free(session);
  planc_trace_free(trace);
}

START_TEST(mutants_are_rejected_or_harmless) {
  planc_profile *profile;
  ok_in(planc_profile_read("profiles/k40m.json", &profile), "profile");
  planc_graph *graph;
  planc_plan *plan;
  randplan_make(_i, profile, &graph, &plan);
  computes_the_same(plan, "the plan itself");
  int accepted = 0, tried = 0;
  for (uint64_t seed = 0; seed < MUTANTS; seed++) {
    if (!is_sampled(_i + (int)seed, 3)) continue;
    tried++;
    planc_plan *mutant;
    char description[256];
    ok_in(mutate_plan(plan, seed, &mutant, description, sizeof description), "mutate");
    planc_status status = planc_check(mutant, NULL, NULL);
    if (!status) {
      accepted++;
      computes_the_same(mutant, description);
    }
    planc_status_free(status);
    planc_plan_free(mutant);
  }
  ck_assert_msg(accepted < tried / 2, "%d of %d mutants accepted: the mutations do not bite", accepted, tried);
  planc_plan_free(plan);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

/* Truncated or altered text is refused by the reader or the checker, or is harmless as well. */
START_TEST(mutated_texts_are_rejected_or_harmless) {
  planc_profile *profile;
  ok_in(planc_profile_read("profiles/k40m.json", &profile), "profile");
  planc_graph *graph;
  planc_plan *plan;
  randplan_make(_i, profile, &graph, &plan);
  char *text;
  size_t length;
  ok_in(planc_plan_print(plan, &text, &length), "print");
  for (uint64_t seed = 0; seed < MUTANTS; seed++) {
    if (!is_sampled(_i + (int)seed, 3)) continue;
    char *changed, description[256];
    size_t changed_length;
    ok_in(mutate_text(text, length, seed, &changed, &changed_length, description, sizeof description), "mutate");
    planc_plan *mutant = NULL;
    planc_status status = planc_plan_parse(changed, changed_length, "mutant", &mutant);
    if (!status) status = planc_check(mutant, NULL, NULL);
    if (!status) computes_the_same(mutant, description);
    planc_status_free(status);
    planc_plan_free(mutant);
    free(changed);
  }
  free(text);
  planc_plan_free(plan);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("mutants");
  TCase *tests = tcase_create("all");
  tcase_set_timeout(tests, 300);
  tcase_add_loop_test(tests, mutants_are_rejected_or_harmless, 0, RANDPLANS);
  tcase_add_loop_test(tests, mutated_texts_are_rejected_or_harmless, 0, RANDPLANS);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
