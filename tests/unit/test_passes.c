/* What the passes over a graph's ops run: slow algorithms seldom, what there is nothing new to measure of as fast as is
 * known, and workspaces as the device that runs has them. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backend.h"
#include "tests/support/passes.h"
#include "tests/support/unit.h"

static planc_status take_trial(void *user, const rt_trial *trial) {
  (void)user, (void)trial;
  return NULL;
}

/* --- Slow algorithms ---------------------------------------------------------------------------------------------- */

enum { REPETITIONS = 3, MOST_OPS = 64, ROOM = 128 };
static const int64_t MS = 1000000;

/* What is as slow as that when it runs for the first time in a pass, and how often which op ran. */
static struct {
  const planc_graph *graph;
  const char *slow; /* op; NULL: all of them */
  int64_t first_ns, then_ns;
  int32_t launches[MOST_OPS];
} paced;

static int32_t index_of(const planc_graph *graph, const planc_op *op);

static planc_status launch_paced(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *launch,
                                 rt_span *span) {
  int32_t count = paced.launches[index_of(paced.graph, call->op)]++;
  PLANC_TRY(rt_host_backend.launch(device, stream, call, launch, span));
  bool slow = !paced.slow || strcmp(call->op->name, paced.slow) == 0;
  if (span) span->end_ns = span->start_ns + (!slow ? MS : count == 0 ? paced.first_ns : paced.then_ns);
  return NULL;
}

static void count_passes(void *user, int32_t done, int32_t of) {
  (void)user, (void)done, (void)of;
  memset(paced.launches, 0, sizeof paced.launches);
}

static const rt_op_time *time_of(const passes *all, const planc_graph *graph, const char *op);

/* An op that took long at first runs once more, and that is its sample; apart or not, alone or between others. */
START_TEST(what_is_slow_is_timed_once) {
  static const char *const slow[] = {"c", "l", "z", NULL};
  planc_graph *graph = passes_graph();
  planrt_backend backend = rt_host_backend;
  passes all = {0};
  backend.launch = launch_paced;
  rt_op_options options = passes_options(&backend, graph, &all);
  options.slow_ns = 20 * MS;
  options.trying = take_trial;
  options.progress = count_passes;
  options.careful = _i % 2 != 0;
  options.repetitions = REPETITIONS;
  options.most = 1;
  paced.graph = graph;
  paced.slow = slow[_i / 2 % 4];
  paced.first_ns = _i < 8 ? 20 * MS : 20 * MS - 1;
  paced.then_ns = 7 * MS;
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(all.n, 1);
  for (int32_t o = 0; o < graph->n_ops; o++) {
    bool once = _i < 8 && (!paced.slow || strcmp(graph->ops[o].name, paced.slow) == 0);
    ck_assert_int_eq(paced.launches[o], 1 + (once ? 1 : 1 + REPETITIONS));
  }
  const rt_op_time *time = time_of(&all, graph, paced.slow ? paced.slow : "p");
  ck_assert_int_eq(time->time.median_ns, 7 * MS);
  ck_assert_int_eq(time->time.spread_ns, 0);
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

static const rt_op_time *time_of(const passes *all, const planc_graph *graph, const char *op) {
  for (int64_t i = 0; i < all->times.len; i++)
    if (strcmp(graph->ops[all->times.data[i].op].name, op) == 0) return &all->times.data[i];
  ck_abort_msg("%s", op);
}

/* Warming up does not run it either, and ends where there is nothing else. */
START_TEST(what_is_slow_warms_nothing_up) {
  planc_graph *graph = passes_graph();
  planrt_backend backend = rt_host_backend;
  passes all = {0};
  backend.launch = launch_paced;
  rt_op_options options = passes_options(&backend, graph, &all);
  options.slow_ns = 20 * MS;
  options.trying = take_trial;
  options.progress = count_passes;
  options.warm_ns = 30 * MS;
  options.most = 1;
  paced.graph = graph;
  paced.slow = _i ? NULL : "c";
  paced.first_ns = 900 * MS;
  paced.then_ns = 900 * MS;
  ok(rt_measure_ops(&options));
  for (int32_t o = 0; o < graph->n_ops; o++) {
    if (_i || strcmp(graph->ops[o].name, "c") == 0)
      ck_assert_int_eq(paced.launches[o], 2);
    else
      ck_assert_int_gt(paced.launches[o], 2 + options.repetitions);
  }
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

/* What is slow in one pass need not be so in the next one. */
START_TEST(each_pass_finds_its_own_slow_ones) {
  planc_graph *graph = passes_graph();
  planrt_backend backend = rt_host_backend;
  passes all = {0};
  backend.launch = launch_paced;
  rt_op_options options = passes_options(&backend, graph, &all);
  options.slow_ns = 20 * MS;
  options.trying = take_trial;
  paced.graph = graph;
  paced.slow = NULL;
  paced.first_ns = 20 * MS; /* counted over all passes: those of the first alone are slow */
  paced.then_ns = 1;
  memset(paced.launches, 0, sizeof paced.launches);
  ok(rt_measure_ops(&options));
  ck_assert_int_gt(all.n, 1);
  for (int32_t o = 0; o < graph->n_ops; o++)
    ck_assert_int_eq(paced.launches[o], 2 + (all.n - 1) * (2 + options.repetitions));
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

static int32_t index_of(const planc_graph *graph, const planc_op *op) {
  int32_t o = 0;
  while (strcmp(graph->ops[o].name, op->name) != 0) o++;
  return o;
}

/* --- Nothing new -------------------------------------------------------------------------------------------------- */

enum { FIELD = 5 };

/* By op: the fastest algorithm of the passes that are over, and what the present one runs. */
static struct {
  const planc_graph *graph;
  const char *fails; /* cannot be prepared; or NULL */
  int32_t step;      /* from one algorithm's place in the race to that of the next, modulo FIELD */
  struct {
    char fastest[ROOM], runs[ROOM];
    int64_t ns;
  } ops[MOST_OPS];
  int32_t n_again;
} race;

/* One to FIELD algorithms, which all are the host's plainest. */
static planc_status list_race(rt_device *device, const rt_call *call, rt_variant *out, int32_t *count) {
  (void)device;
  *count = 1 + index_of(race.graph, call->op) % FIELD;
  for (int32_t v = 0; v < *count; v++) {
    out[v] = (rt_variant){.rank = v};
    snprintf(out[v].algorithm, sizeof out[v].algorithm, "number %d", (int)v);
  }
  return NULL;
}

/* Another one each time, whatever it really takes. */
static int64_t time_in_race(const rt_call *call) {
  int32_t number = call->algorithm[strlen(call->algorithm) - 1] - '0';
  return 1000 + (number * race.step + index_of(race.graph, call->op)) % FIELD;
}

static planc_status launch_in_race(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *launch,
                                   rt_span *span) {
  PLANC_TRY(rt_host_backend.launch(device, stream, call, launch, span));
  if (span) span->end_ns = span->start_ns + time_in_race(call);
  char *runs = race.ops[index_of(race.graph, call->op)].runs;
  snprintf(runs, ROOM, "%s", call->algorithm);
  return NULL;
}

static planc_status prepare_in_race(rt_device *device, rt_call *call) {
  if (race.fails && strcmp(call->algorithm, race.fails) == 0) return planc_error(PLANC_DEVICE, "not this one");
  return rt_host_backend.prepare(device, call);
}

static planc_status judge_pass(void *user, const rt_pass *pass);

START_TEST(the_fastest_stands_in) {
  static const char *const fails[] = {NULL, "number 2", "number 3"};
  planc_graph *graph = passes_graph();
  planrt_backend backend = rt_host_backend;
  backend.variants = list_race;
  backend.launch = launch_in_race;
  backend.prepare = prepare_in_race;
  rt_op_options options = passes_options(&backend, graph, NULL);
  options.passed = judge_pass;
  memset(&race, 0, sizeof race);
  race.graph = graph;
  race.step = 1 + _i % (FIELD - 1);
  race.fails = fails[_i / (FIELD - 1)];
  ok(rt_measure_ops(&options));
  ck_assert_int_gt(race.n_again, 0);
  planc_graph_free(graph);
}
END_TEST

/* An op has run what this pass has measured of it or, from the second pass on, the fastest of those before. */
static planc_status judge_pass(void *user, const rt_pass *pass) {
  (void)user;
  for (int32_t o = 0; o < race.graph->n_ops; o++) {
    const rt_op_time *own = NULL;
    for (int64_t i = 0; i < pass->times->len; i++)
      if (pass->times->data[i].op == o) own = &pass->times->data[i];
    if (own || *race.ops[o].fastest)
      ck_assert_str_eq(race.ops[o].runs, own ? own->variant.algorithm : race.ops[o].fastest);
    race.n_again += !own && *race.ops[o].fastest;
    if (!own || (*race.ops[o].fastest && own->time.median_ns >= race.ops[o].ns)) continue;
    snprintf(race.ops[o].fastest, ROOM, "%s", own->variant.algorithm);
    race.ops[o].ns = own->time.median_ns;
  }
  return NULL;
}

/* --- Workspaces --------------------------------------------------------------------------------------------------- */

/* A device that is described lists half of what the real one needs of all algorithms but each op's first. */
static struct {
  const rt_device *described;
  const char *exact; /* an op of which it lists what is needed; or NULL */
  bool grows;        /* the real device asks for more than it is given, whatever that is */
  int32_t n_refused, n_prepared;
} lesser;

static planc_status describe(char **out);
static planc_status open_lesser(const rt_device_options *options, rt_device **out);
static planc_status list_less(rt_device *device, const rt_call *call, rt_variant *out, int32_t *count);
static planc_status say_workspace(rt_device *device, const rt_call *call, int64_t *out_bytes);
static planc_status prepare_lesser(rt_device *device, rt_call *call);

static planrt_backend listing_less(void) {
  planrt_backend backend = rt_host_backend;
  backend.properties = describe;
  backend.open = open_lesser;
  backend.variants = list_less;
  backend.workspace = say_workspace;
  backend.prepare = prepare_lesser;
  memset(&lesser, 0, sizeof lesser);
  return backend;
}

static planc_status describe(char **out) {
  *out = strdup("a device");
  return *out ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "properties");
}

static planc_status open_lesser(const rt_device_options *options, rt_device **out) {
  rt_device_options own = *options;
  own.properties = NULL;
  PLANC_TRY(rt_host_backend.open(&own, out));
  lesser.described = options->properties ? *out : NULL;
  return NULL;
}

static planc_status list_less(rt_device *device, const rt_call *call, rt_variant *out, int32_t *count) {
  ck_assert_ptr_eq(device, lesser.described);
  PLANC_TRY(rt_host_backend.variants(device, call, out, count));
  if (lesser.exact && strcmp(call->op->name, lesser.exact) == 0) return NULL;
  for (int32_t v = 1; v < *count; v++) out[v].workspace_bytes /= 2;
  return NULL;
}

static planc_status say_workspace(rt_device *device, const rt_call *call, int64_t *out_bytes) {
  ck_assert_ptr_ne(device, lesser.described);
  PLANC_TRY(rt_host_backend.workspace(device, call, out_bytes));
  if (lesser.grows) *out_bytes = call->workspace_bytes + 1;
  return NULL;
}

static planc_status prepare_lesser(rt_device *device, rt_call *call) {
  ck_assert_int_lt(lesser.n_prepared++, 10000);
  return rt_host_backend.prepare(device, call);
}

static void count_refused(void *user, const char *op, const char *algorithm, planc_status why) {
  (void)user, (void)op, (void)algorithm;
  ck_assert_ptr_nonnull(strstr(planc_status_message(why), "needs a workspace of"));
  lesser.n_refused++;
}

static int32_t count_without_room(const planc_graph *graph, const rt_op_times *listed);
static void is_as_listed(const rt_op_times *listed, const rt_op_time *time);

/* Every algorithm is measured with the workspace that the real device needs, as long as there is room for it; one that
 * then needs more again is refused, as one that does not fit. */
START_TEST(workspaces_are_those_of_the_device) {
  planc_graph *graph = passes_graph();
  planrt_backend backend = listing_less();
  rt_op_times listed = {0};
  passes all = {0};
  rt_op_options options = passes_options(&backend, graph, &all);
  options.refused = count_refused;
  passes_list(graph, 4, &listed);
  lesser.exact = _i == 1 ? NULL : "c.wgrad"; /* the room that c needs as well */
  lesser.grows = _i == 2;
  ok(rt_measure_ops(&options));
  ck_assert_int_eq(all.times.len, listed.len - lesser.n_refused);
  ck_assert_int_eq(lesser.n_refused, count_without_room(graph, &listed));
  for (int64_t i = 0; i < all.times.len; i++) is_as_listed(&listed, &all.times.data[i]);
  options.first_pass = -1;
  ok(rt_prepare_again(&options));
  VEC_FREE(&listed);
  VEC_FREE(&all.times);
  planc_graph_free(graph);
}
END_TEST

static int64_t described_bytes(const planc_graph *graph, const rt_op_times *listed, int64_t i);

/* Algorithms that get less than they need. The room is the largest workspace that the described device lists. A device
 * that always asks for more is asked once: it gets one byte more than was listed. Which algorithms there are, and what
 * they need, differs from processor to processor. */
static int32_t count_without_room(const planc_graph *graph, const rt_op_times *listed) {
  int64_t room = 0;
  for (int64_t i = 0; i < listed->len; i++)
    if (described_bytes(graph, listed, i) > room) room = described_bytes(graph, listed, i);
  int32_t n = 0;
  for (int64_t i = 0; i < listed->len; i++) {
    int64_t given = lesser.grows ? described_bytes(graph, listed, i) + 1 : room;
    n += listed->data[i].variant.workspace_bytes > given;
  }
  return n;
}

static int64_t described_bytes(const planc_graph *graph, const rt_op_times *listed, int64_t i) {
  const rt_op_time *at = &listed->data[i];
  bool first = i == 0 || listed->data[i - 1].op != at->op;
  bool exact = lesser.exact && strcmp(graph->ops[at->op].name, lesser.exact) == 0;
  return first || exact ? at->variant.workspace_bytes : at->variant.workspace_bytes / 2;
}

static void is_as_listed(const rt_op_times *listed, const rt_op_time *time) {
  int32_t found = 0;
  for (int64_t i = 0; i < listed->len; i++) {
    const rt_op_time *at = &listed->data[i];
    if (at->op != time->op || strcmp(at->variant.algorithm, time->variant.algorithm) != 0) continue;
    ck_assert_int_eq(time->variant.workspace_bytes, at->variant.workspace_bytes);
    found++;
  }
  ck_assert_int_eq(found, 1);
}

int main(void) {
  Suite *suite = suite_create("passes");
  TCase *c = tcase_create("passes");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, what_is_slow_is_timed_once, 0, 16);
  tcase_add_loop_test(c, what_is_slow_warms_nothing_up, 0, 2);
  tcase_add_test(c, each_pass_finds_its_own_slow_ones);
  tcase_add_loop_test(c, the_fastest_stands_in, 0, 3 * (FIELD - 1));
  tcase_add_loop_test(c, workspaces_are_those_of_the_device, 0, 3);
  suite_add_tcase(suite, c);
  return run_suite(suite);
}
