/* The ways back for what is away, and their prices: on a chain whose op p takes 2^p ns, so that a price tells which ops
 * run again. */
#include <check.h>
#include <string.h>

#include "cost/profile.h"
#include "planc/policy.h"
#include "planner/choose/ways_back.h"
#include "tests/support/graphtext.h"
#include "tests/support/unit.h"

static const char chain[] =
    "planc-graph: 1\n"
    "name: chain\n"
    "outputs: [h]\n"
    "tensors:\n"
    "  x: input f32[N,64]\n"
    "  w: param f32[64]\n"
    "  b: f32[N,64]\n"
    "  c: f32[N,128]\n"
    "  d: f32[N,64]\n"
    "  e: f32[N,64]\n"
    "  h: f32[N,64]\n"
    "ops:\n"
    "  - {op: f1, type: my.op, in: [x, w], out: [b]}\n"
    "  - {op: f2, type: my.op, in: [b], out: [c]}\n"
    "  - {op: f3, type: my.op, in: [b, c], out: [d]}\n"
    "  - {op: g1, type: my.op, phase: backward, in: [d], out: [e]}\n"
    "  - {op: g2, type: my.op, phase: backward, in: [b, c, e], out: [h]}\n"
    "  - {op: g3, type: my.op, phase: backward, in: [x, h], out: [h]}\n";
enum { F1 = 1, F2 = 2, F3 = 4, OPS = 6, BATCH = 4, WIDTH = 64 * 4 * BATCH };

static planc_profile *profile;
static planc_graph *graph;
static planc_problem problem;
static planc_candidate candidate;
static pl_walk walk;
static pl_arena arena;
static pl_ways_back ways;

static void begin(void) {
  static int64_t start[OPS + 1];
  for (int p = 0; p < OPS; p++) start[p + 1] = start[p] + (INT64_C(1) << p);
  ok(pl_walk_start_rounds(&walk, &problem, BATCH, (pl_walk_room){.bytes = PL_ROOM_UNLIMITED}, &candidate));
  ck_assert_int_eq(walk.order->n, OPS);
  ok(pl_ways_back_make(&walk, start, &arena, &ways));
}

static void begin_again(void) {
  planc_candidate_free(&candidate);
  candidate = (planc_candidate){0};
  begin();
}

/* A byte takes a nanosecond in and two out, and a copy's start 10. */
static void set_up(void) {
  ok(planc_profile_read("profiles/k40m.json", &profile));
  profile->device.links[PLANC_ROUTE_H2D] = (planc_link){1000000000, 10};
  profile->device.links[PLANC_ROUTE_D2H] = (planc_link){500000000, 10};
  graph = graph_of(chain);
  problem = (planc_problem){.job = {.graph = graph, .profile = profile, .batch = BATCH},
                            .terms = {.budgets = {[PLANC_MEMORY_DEVICE] = -1, [PLANC_MEMORY_HOST] = -1}}};
  begin();
}

static void tear_down(void) {
  planc_candidate_free(&candidate);
  candidate = (planc_candidate){0};
  pl_arena_free(&arena);
  planc_graph_free(graph);
  planc_profile_free(profile);
}

static int32_t named(const char *name) {
  for (int32_t b = 0; b < walk.trace->n_buffers; b++)
    if (strcmp(planc_trace_buffer_name(walk.trace, b), name) == 0) return b;
  ck_abort_msg("no buffer %s", name);
}

/* --- By links ----------------------------------------------------------------------------------------------------- */

START_TEST(what_was_made_goes_out_and_comes_in) {
  pl_price price = pl_price_of_link(&walk, named("c"), 1);
  ck_assert_int_eq(price.link_ns[PLANC_ROUTE_H2D], 10 + 2 * WIDTH);
  ck_assert_int_eq(price.link_ns[PLANC_ROUTE_D2H], 10 + 4 * WIDTH);
  ck_assert_int_eq(price.compute_ns, 0);
  ck_assert_int_eq(price.host_bytes, 2 * WIDTH);
  ck_assert_int_eq(pl_price_ns(&price), 20 + 6 * WIDTH);
}
END_TEST

START_TEST(what_the_user_gave_only_comes_in) {
  pl_price price = pl_price_of_link(&walk, named("x"), 0);
  ck_assert_int_eq(pl_price_ns(&price), 10 + WIDTH);
  ck_assert_int_eq(price.link_ns[PLANC_ROUTE_D2H], 0);
  ck_assert_int_eq(price.host_bytes, 0);
}
END_TEST

START_TEST(copies_take_longer_on_a_part_of_a_link) {
  problem.job.link_ppm = 250000;
  begin_again();
  pl_price price = pl_price_of_link(&walk, named("c"), 1);
  ck_assert_int_eq(price.link_ns[PLANC_ROUTE_H2D], 10 + 4 * 2 * WIDTH);
  ck_assert_int_eq(price.link_ns[PLANC_ROUTE_D2H], 10 + 4 * 4 * WIDTH);
}
END_TEST

START_TEST(the_host_has_room_up_to_its_budget) {
  pl_price made = pl_price_of_link(&walk, named("c"), 1), given = pl_price_of_link(&walk, named("x"), 0);
  ck_assert(pl_host_has_room(&walk, INT64_C(1) << 60, &made));
  problem.terms.budgets[PLANC_MEMORY_HOST] = 3 * WIDTH;
  begin_again();
  ck_assert(pl_host_has_room(&walk, WIDTH, &made));
  ck_assert(!pl_host_has_room(&walk, WIDTH + 1, &made));
  ck_assert(pl_host_has_room(&walk, 3 * WIDTH, &given));
}
END_TEST

/* --- By recompute ------------------------------------------------------------------------------------------------- */

/* A pl_source_rule: the source of what the forward pass made. The user's and what persists is there. */
static pl_source made_is(const void *context, const pl_wanted *wanted, const planc_access *access) {
  ck_assert_int_eq(wanted->to, 4);
  return access->read > 0 ? *(const pl_source *)context : PL_SOURCE_DEVICE;
}

static pl_price price_of(const char *name, pl_source source, int64_t limit_ns) {
  pl_wanted wanted = {named(name), 1, 4};
  return pl_price_of_recompute(&ways, &wanted, limit_ns, made_is, &source);
}

START_TEST(the_writer_runs_again_alone_where_all_is_there) {
  pl_wanted wanted = {named("d"), 1, 4};
  pl_price price = pl_price_of_recompute(&ways, &wanted, INT64_MAX, NULL, NULL);
  ck_assert_int_eq(price.compute_ns, F3);
  price = price_of("d", PL_SOURCE_DEVICE, INT64_MAX);
  ck_assert_int_eq(price.compute_ns, F3);
  ck_assert_int_eq(pl_price_ns(&price), F3);
  ck_assert_int_eq(price.host_bytes, 0);
}
END_TEST

START_TEST(of_a_chain_each_op_runs_once) {
  ck_assert_int_eq(price_of("b", PL_SOURCE_AGAIN, INT64_MAX).compute_ns, F1);
  ck_assert_int_eq(price_of("c", PL_SOURCE_AGAIN, INT64_MAX).compute_ns, F1 + F2);
  ck_assert_int_eq(price_of("d", PL_SOURCE_AGAIN, INT64_MAX).compute_ns, F1 + F2 + F3);
}
END_TEST

START_TEST(what_the_host_has_comes_in_for_it) {
  pl_price price = price_of("d", PL_SOURCE_HOST, INT64_MAX);
  ck_assert_int_eq(price.compute_ns, F3);
  ck_assert_int_eq(price.link_ns[PLANC_ROUTE_H2D], 20 + 3 * WIDTH);
  ck_assert_int_eq(price.link_ns[PLANC_ROUTE_D2H], 0);
  ck_assert_int_eq(pl_price_ns(&price), F3 + 20 + 3 * WIDTH);
}
END_TEST

START_TEST(nothing_is_made_of_what_is_lost) {
  ck_assert_int_eq(price_of("d", PL_SOURCE_LOST, INT64_MAX).compute_ns, PL_NO_WAY);
  ck_assert_int_eq(price_of("b", PL_SOURCE_LOST, INT64_MAX).compute_ns, F1); /* made of what the user gave */
}
END_TEST

START_TEST(a_sum_ends_beyond_its_limit) {
  ck_assert_int_eq(price_of("d", PL_SOURCE_AGAIN, F3 - 1).compute_ns, F3);
  ck_assert_int_gt(price_of("d", PL_SOURCE_AGAIN, F3).compute_ns, F3);
}
END_TEST

START_TEST(a_saving_is_bytes_by_seconds) {
  pl_price price = {.link_ns[PLANC_ROUTE_H2D] = 300, .compute_ns = 200};
  ck_assert_int_eq(pl_saving_per_second(1000, &price), INT64_C(2000000000));
  price = (pl_price){.compute_ns = 0}; /* as if it took a nanosecond */
  ck_assert_int_eq(pl_saving_per_second(3, &price), INT64_C(3000000000));
}
END_TEST

/* --- Which there are ---------------------------------------------------------------------------------------------- */

START_TEST(a_way_is_open_where_user_and_order_allow_it) {
  static const struct {
    const char *name;
    bool again;
  } all[] = {{"x", false}, {"w", false}, {"b", true}, {"c", true}, {"d", true}, {"e", false}, {"h", false}};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    ck_assert(pl_way_is_open(&ways, PL_WAY_LINK, named(all[k].name)));
    ck_assert_msg(pl_way_is_open(&ways, PL_WAY_RECOMPUTE, named(all[k].name)) == all[k].again, "%s", all[k].name);
  }
  problem.terms.settings = (planc_settings){.no_swap = 1};
  begin_again();
  ck_assert(!pl_way_is_open(&ways, PL_WAY_LINK, named("c")) && pl_way_is_open(&ways, PL_WAY_RECOMPUTE, named("c")));
  problem.terms.settings = (planc_settings){.no_recompute = 1};
  begin_again();
  ck_assert(pl_way_is_open(&ways, PL_WAY_LINK, named("c")) && !pl_way_is_open(&ways, PL_WAY_RECOMPUTE, named("c")));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ways back");
  TCase *tests = tcase_create("all");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, what_was_made_goes_out_and_comes_in);
  tcase_add_test(tests, what_the_user_gave_only_comes_in);
  tcase_add_test(tests, copies_take_longer_on_a_part_of_a_link);
  tcase_add_test(tests, the_host_has_room_up_to_its_budget);
  tcase_add_test(tests, the_writer_runs_again_alone_where_all_is_there);
  tcase_add_test(tests, of_a_chain_each_op_runs_once);
  tcase_add_test(tests, what_the_host_has_comes_in_for_it);
  tcase_add_test(tests, nothing_is_made_of_what_is_lost);
  tcase_add_test(tests, a_sum_ends_beyond_its_limit);
  tcase_add_test(tests, a_saving_is_bytes_by_seconds);
  tcase_add_test(tests, a_way_is_open_where_user_and_order_allow_it);
  suite_add_tcase(suite, tests);
  return run_suite(suite);
}
