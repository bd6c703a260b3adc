/* Run traces: what a session measured is what is written and read back, to the nanosecond; the reader meets texts that
 * nobody wrote. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planc/policy.h"
#include "planc/timeline.h"
#include "runtime/session.h"
#include "tests/support/graphtext.h"
#include "tests/support/mutate.h"
#include "tests/support/plan_view.h"
#include "tests/support/randgraph.h"
#include "tests/support/unit.h"
#include "util/file.h"

static planc_profile *profile;
static char folder[] = "/tmp/test_timeline.XXXXXX";
static char path[64];

static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  ck_assert(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/run.json", folder);
}
static void tear_down(void) {
  planc_profile_free(profile);
  unlink(path);
  rmdir(folder);
}

/* A plan that swaps as much as it can, of a random graph. */
static planc_plan *swapping_plan(uint64_t seed, planc_graph **out_graph) {
  planc_plan *plan;
  ok(randgraph_make(seed, &(randgraph_options){.max_ops = 24}, out_graph));
  planc_problem problem = {.job.graph = *out_graph,
                           .job.profile = profile,
                           .job.batch = 2,
                           .terms.budgets[PLANC_MEMORY_DEVICE] = planc_profile_device(profile)->memory_bytes,
                           .terms.budgets[PLANC_MEMORY_HOST] = -1};
  ok(planc_make_plan(&problem, planc_policy_find("vdnn-all"), &plan));
  return plan;
}

static planrt_session *session_of(const planc_plan *plan, int32_t timeline, bool concurrent) {
  planrt_options options = {.synthetic = true, .timeline = timeline, .concurrent = concurrent};
  planrt_session *session;
  ok(planrt_session_new(plan, &options, &session));
  ok(planrt_init(session));
  return session;
}

static bool is_measured(const rt_action *action) {
  return action->kind == RT_CALL || action->kind == RT_COPY || action->kind == RT_FEED || action->kind == RT_DELIVER;
}

/* Whether a trace read back is what the session holds of the periods from `first` on. */
static void assert_same(const planrt_session *session, const planc_timeline *timeline, int64_t first,
                        int32_t n_periods) {
  const rt_part *body = &session->parts[RT_BODY];
  ck_assert_int_eq(timeline->first_period, first);
  ck_assert_int_eq(timeline->n_periods, n_periods);
  int64_t least = INT64_MAX, origin = INT64_MAX;
  for (int64_t i = 0; i < (int64_t)n_periods * timeline->n_timed; i++)
    if (timeline->spans[i].start_ns < least) least = timeline->spans[i].start_ns;
  ck_assert_int_eq(least, 0);
  for (int pass = 0; pass < 2; pass++) {
    for (int32_t p = 0; p < n_periods; p++) {
      int32_t timed = 0;
      const rt_span *spans = &session->spans[(first + p) % session->options.timeline * session->n_spans];
      for (int32_t i = 0; i < body->n; i++) {
        if (!is_measured(&body->actions[i])) continue;
        ck_assert_int_eq(body->actions[i].span, timed);
        if (pass == 0 && spans[timed].start_ns < origin) origin = spans[timed].start_ns;
        const planc_span *span = &timeline->spans[(int64_t)p * timeline->n_timed + timed];
        ck_assert_int_eq(timeline->instrs[timed], body->actions[i].instr);
        if (pass > 0) ck_assert_int_eq(span->start_ns, spans[timed].start_ns - origin);
        if (pass > 0) ck_assert_int_eq(span->end_ns, spans[timed].end_ns - origin);
        timed++;
      }
      ck_assert_int_eq(timed, timeline->n_timed);
    }
  }
}

static void assert_comes_back(const planrt_session *session, int64_t first, int32_t n_periods) {
  planc_timeline *timeline;
  ok(planrt_timeline_write(session, path));
  ok(planc_timeline_read(path, session->plan, &timeline));
  assert_same(session, timeline, first, n_periods);
  planc_timeline_free(timeline);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

START_TEST(what_a_run_measured_comes_back) {
  planc_graph *graph;
  planc_plan *plan = swapping_plan((uint64_t)_i, &graph);
  planrt_session *session = session_of(plan, 3, _i % 2);
  ok(planrt_run(session, 2));
  assert_comes_back(session, 0, 2);
  ok(planrt_run(session, 3));
  assert_comes_back(session, 2, 3);
  ok(planrt_run(session, 0));
  assert_comes_back(session, 2, 3);
  planrt_session_free(session);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* Spans of random lengths, one after the other on all streams together, that start far from 0. */
static void invent_spans(const planrt_session *session, uint64_t seed, int64_t longest) {
  int64_t now = INT64_C(1) << 61;
  for (int64_t k = 0; k < (int64_t)session->options.timeline * session->n_spans; k++) {
    session->spans[k].start_ns = now += rand_below(&seed, longest);
    session->spans[k].end_ns = now += rand_below(&seed, longest);
  }
}

/* The first of `n` periods of invented spans from which on all is in a trace; `n` if none is. */
static int32_t first_that_fits(const planrt_session *session, int32_t n) {
  int32_t first = 0;
  int64_t end_ns = session->spans[(int64_t)n * session->n_spans - 1].end_ns;
  while (first < n && end_ns - session->spans[(int64_t)first * session->n_spans].start_ns > PLANC_TIMELINE_MAX_NS)
    first++;
  return first;
}

/* Up to the longest trace there is. Of a longer run it has the last periods that are in time. */
START_TEST(every_nanosecond_counts) {
  enum { PERIODS = 4 };
  planc_graph *graph;
  planc_plan *plan = swapping_plan(7, &graph);
  planrt_session *session = session_of(plan, PERIODS, false);
  bool seen[PERIODS + 1] = {false};
  ok(planrt_run(session, PERIODS));
  for (int64_t longest = 2; longest < INT64_C(1) << 52; longest += longest / 6 + 1) {
    invent_spans(session, (uint64_t)longest, longest);
    int32_t first = first_that_fits(session, PERIODS);
    seen[first] = true;
    if (first < PERIODS)
      assert_comes_back(session, first, PERIODS - first);
    else
      assert_fails(planrt_timeline_write(session, path), PLANC_USAGE, "none of at most 2^42 microseconds");
  }
  for (int32_t first = 0; first <= PERIODS; first++) ck_assert_msg(seen[first], "never from period %d on", first);
  planrt_session_free(session);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

START_TEST(nothing_measured_is_misuse) {
  unlink(path);
  planc_graph *graph;
  planc_plan *plan = swapping_plan(3, &graph);
  planrt_session *session = session_of(plan, 0, false);
  ok(planrt_run(session, 1));
  assert_fails(planrt_timeline_write(session, path), PLANC_USAGE, "keeps no timeline");
  planrt_session_free(session);
  session = session_of(plan, 2, false);
  assert_fails(planrt_timeline_write(session, path), PLANC_USAGE, "no period has been measured");
  ok(planrt_run_interleaved(session, 2, 1));
  assert_fails(planrt_timeline_write(session, path), PLANC_USAGE, "no period has been measured");
  ck_assert_int_ne(access(path, F_OK), 0);
  ok(planrt_run(session, 1));
  assert_comes_back(session, 2, 1);
  planrt_session_free(session);
  planc_plan_free(plan);
  planc_graph_free(graph);
}
END_TEST

/* --- Reading ------------------------------------------------------------------------------------------------------ */

typedef struct written {
  planc_graph *graph;
  planc_plan *plan;
  char *text;
  size_t length;
} written;

static written write_one(uint64_t seed) {
  written w;
  w.plan = swapping_plan(seed, &w.graph);
  planrt_session *session = session_of(w.plan, 2, false);
  ok(planrt_run(session, 2));
  invent_spans(session, seed, 100000);
  ok(planrt_timeline_write(session, path));
  planrt_session_free(session);
  ok(pl_file_read(path, 1 << 30, &w.text, &w.length));
  return w;
}

static void drop(written *w) {
  free(w->text);
  planc_plan_free(w->plan);
  planc_graph_free(w->graph);
}

static planc_status parse(const written *w, const char *text, size_t length) {
  planc_timeline *timeline;
  planc_status status = planc_timeline_parse(text, length, "t", w->plan, &timeline);
  if (status) {
    ck_assert(timeline == NULL);
    return status;
  }
  int64_t total = (int64_t)timeline->n_periods * timeline->n_timed;
  for (int64_t i = 0; i < total; i++) {
    ck_assert_int_ge(timeline->spans[i].start_ns, 0);
    ck_assert_int_ge(timeline->spans[i].end_ns, timeline->spans[i].start_ns);
  }
  planc_timeline_free(timeline);
  return NULL;
}

/* The text with the first `from` after `anchor` replaced by `to`. */
static planc_status parse_with(const written *w, const char *anchor, const char *from, const char *to) {
  char *at = strstr(w->text, anchor);
  ck_assert(at != NULL);
  at = strstr(at, from);
  ck_assert_msg(at != NULL, "%s", from);
  size_t before = (size_t)(at - w->text), room = w->length + strlen(to) + 1;
  char *text = malloc(room);
  snprintf(text, room, "%.*s%s%s", (int)before, w->text, to, at + strlen(from));
  planc_status status = parse(w, text, strlen(text));
  free(text);
  return status;
}

START_TEST(what_is_wrong_is_named_with_its_place) {
  static const struct {
    const char *anchor, *from, *to, *part;
  } cases[] = {
      {"{", "{", "[", "t:1: not valid JSON"},
      {"otherData", "trace/2\"", "trace/1\",\"graph_hash\":\"0\"",
       "t: otherData.planrun: \"trace/1\" is not read, only \"trace/2\": trace the run again with the planrun that "
       "goes with "
       "this planc"},
      {"otherData", "trace/2", "trace/\\n3", "t: otherData.planrun: \"trace/?3\" is not read, only \"trace/2\": "},
      {"otherData", "\"planrun\":\"trace/2\",", "", "t: otherData.planrun: is missing"},
      {"otherData", "\"trace/2\"", "2", "t: otherData.planrun: must be a string"},
      {"otherData", "\"policy\":", "\"polity\":", "t: otherData.polity: unknown key"},
      {"otherData", "\"graph_hashes\":[\"", "\"graph_hashes\":[\"x", "must be 16 hexadecimal digits"},
      {"otherData", "\"graph_hashes\":[", "\"graph_hashes\":[\"0123456789abcdef\",",
       "t: otherData.graph_hashes: is not what the plan's graphs have"},
      {"otherData", "\"periods\":2", "\"periods\":3", "but 3 periods of"},
      {"otherData", "\"periods\":2", "\"periods\":2147483647", "but 2147483647 periods of"},
      {"otherData", "\"periods\":2", "\"periods\":0", "otherData.periods: is 0, must be at least 1"},
      {"otherData", "\"first_period\":0", "\"first_period\":1", "args.period: is 0, must be at least"},
      {"otherData", "\"first_period\":0", "\"first_period\":9007199254740992", "is beyond 2^53"},
      {"\"ph\":\"X\"", "\"ts\":", "\"ts\":-1", ".ts: must be from 0 to 2^42 microseconds"},
      {"\"ph\":\"X\"", "\"ts\":", "\"ts\":1e300,\"t\":", ".t: unknown key"},
      {"\"ph\":\"X\"", "\"ts\":0.000", "\"ts\":1e300", ".ts: must be from 0 to 2^42 microseconds"},
      {"\"ph\":\"X\"", "\"ts\":0.000", "\"ts\":0.0005", ".ts: is not a whole number of nanoseconds"},
      {"\"ph\":\"X\"", "\"ts\":0.000", "\"ts\":\"0\"", ".ts: must be a number"},
      {"\"ph\":\"X\"", "\"ts\":0.000", "\"ts\":99999999", "begins before stream"},
      {"\"ph\":\"X\"", "\"period\":0", "\"period\":1", "stands twice"},
      {"\"ph\":\"X\"", "\"period\":0", "\"period\":2", "args.period: is 2, must be at most 1"},
      {"\"ph\":\"X\"", "\"instr\":", "\"instr\":99999", "args.instr: is"},
      {"\"ph\":\"X\"", "\"tid\":", "\"tid\":9", ".tid: instruction"},
      {"\"ph\":\"X\"", "\"pid\":", "\"pid\":9", ".tid: instruction"},
      {"\"ph\":\"X\"", "\"period\":0", "\"period\":0,\"job\":1", "args.job: is 1, must be at most 0"},
      {"\"cat\":\"exec\"", "\"cat\":\"exec\"", "\"cat\":\"move\"", "is of another kind: exec"},
      {"\"cat\":\"exec\"", "\"dur\":", "\"tid\":1,\"dur\":", "the key stands twice"},
      {"\"ph\":\"X\"", "\"ph\":\"X\"", "\"ph\":\"M\"", "spans, but 2 periods of"},
      {"\"traceEvents\":[", "\"traceEvents\":[", "\"traceEvents\":[],\"more\":[", "more: unknown key"},
  };
  written w = write_one(11);
  ok(parse(&w, w.text, w.length));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_fails(parse_with(&w, cases[i].anchor, cases[i].from, cases[i].to), PLANC_BAD_INPUT, cases[i].part);
  drop(&w);
}
END_TEST

START_TEST(a_trace_of_another_plan_is_stale) {
  written w = write_one(5), other = write_one(6);
  planc_timeline *timeline;
  assert_fails(planc_timeline_parse(w.text, w.length, "t", other.plan, &timeline), PLANC_STALE,
               "t was measured with another plan");
  device_of(w.plan)->budget_bytes++;
  assert_fails(planc_timeline_parse(w.text, w.length, "t", w.plan, &timeline), PLANC_STALE,
               "t was measured with another plan of the same graph");
  drop(&w);
  drop(&other);
}
END_TEST

START_TEST(mutants_are_read_or_refused) {
  written w = write_one((uint64_t)_i);
  int accepted = 0;
  for (uint64_t seed = 0; seed < 2000; seed++) {
    char *text, description[128];
    size_t length;
    ok(mutate_text(w.text, w.length, seed, &text, &length, description, sizeof description));
    planc_status status = parse(&w, text, length);
    planc_code code = planc_status_code(status);
    ck_assert_msg(!status || code == PLANC_BAD_INPUT || code == PLANC_STALE, "%s: %s", description,
                  planc_status_message(status));
    accepted += !status;
    planc_status_free(status);
    free(text);
  }
  ck_assert_int_gt(accepted, 0); /* names and the order of events do not matter */
  ck_assert_int_lt(accepted, 1500);
  drop(&w);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("timeline");
  TCase *writing = tcase_create("writing");
  tcase_add_unchecked_fixture(writing, set_up, tear_down);
  tcase_set_timeout(writing, 60);
  tcase_add_loop_test(writing, what_a_run_measured_comes_back, 0, 20);
  tcase_add_test(writing, every_nanosecond_counts);
  tcase_add_test(writing, nothing_measured_is_misuse);
  tcase_add_test(writing, what_is_wrong_is_named_with_its_place);
  tcase_add_test(writing, a_trace_of_another_plan_is_stale);
  tcase_add_loop_test(writing, mutants_are_read_or_refused, 0, 3);
  suite_add_tcase(suite, writing);
  return run_suite(suite);
}
