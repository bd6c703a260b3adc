/* Costs: figures worked out by hand for the toy device of tests/data/profile, and properties that must hold for any
 * convolution on any device. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/convolution.h"
#include "cost/reuse.h"
#include "cost/roofline.h"
#include "planc/cost.h"
#include "tests/support/randgraph.h"
#include "tests/support/toy.h"
#include "tests/support/unit.h"
#include "util/file.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* --- By hand ------------------------------------------------------------------------------------------------------ */

START_TEST(linear_by_hand) {
  planc_profile *profile = toy();
  planc_graph *graph = graph_of(toy_graph);
  planc_costs *costs = costs_of(profile, graph, 2, (int64_t[]){200, 20});
  int32_t count;
  /* 20 rows by 64 columns are 2 x 4 tiles of 16 x 16, 32 deep. Cut along the depth and shared by 10 processors: 26
   * steps each; 26 * 10 * 512 FLOPs at 0.5e12 take 267 ns; 15,872 bytes at 100e9 take 159. */
  const planc_variant *fc = planc_costs_variants(costs, 0, 0, &count);
  ck_assert_int_eq(count, 1);
  ck_assert_str_eq(fc->algorithm, "default");
  ck_assert_int_eq(fc->time_ns, 1000 + 267);
  ck_assert_int_eq(fc->workspace_bytes, 0);
  ck_assert(fc->deterministic && !fc->measured);
  /* 200 rows: 13 x 4 tiles. In waves, 6 x 32 steps; shared, 167 steps: 167 * 5,120 FLOPs take 1,711 ns. */
  ck_assert_int_eq(planc_costs_variants(costs, 0, 1, &count)->time_ns, 1000 + 1711);
  planc_costs_free(costs);
  planc_graph_free(graph);

  /* One tile, 64 deep, is cut into slices of 8, not into ten: 8 * 5,120 FLOPs, more than 7,296 bytes take. */
  graph = graph_of(
      "planc-graph: 1\n"
      "name: narrow\n"
      "tensors: {x: 'input f32[N,64]', w: 'param f32[16,64]', y: 'f32[N,16]'}\n"
      "ops: [{op: fc, type: linear, in: [x, w], out: [y]}]\n");
  costs = costs_of(profile, graph, 1, (int64_t[]){10});
  ck_assert_int_eq(planc_costs_variants(costs, 0, 0, &count)->time_ns, 1000 + 82);
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

/* Workspace and time tell variants apart; of equals the deterministic come first, whatever their names. */
START_TEST(ties_go_to_the_deterministic) {
  const planc_variant unsure = {.algorithm = "a", .time_ns = 10, .workspace_bytes = 5},
                      sure = {.algorithm = "b", .time_ns = 10, .workspace_bytes = 5, .deterministic = true},
                      also = {.algorithm = "c", .time_ns = 10, .workspace_bytes = 5, .deterministic = true},
                      faster = {.algorithm = "d", .time_ns = 9, .workspace_bytes = 6},
                      smaller = {.algorithm = "e", .time_ns = 10, .workspace_bytes = 4};
  const planc_variant *const ordered[] = {&smaller, &sure, &also, &unsure, &faster};
  for (int a = 0; a < 5; a++)
    for (int b = 0; b < 5; b++) ck_assert_int_eq(planc_variant_precedes(ordered[a], ordered[b]), a < b);
  const planc_variant all[] = {unsure, also, sure, faster, smaller};
  ck_assert_int_eq(planc_variant_fastest(all, 3, 5), 2);
  ck_assert_int_eq(planc_variant_fastest(all, 5, 5), 4);
  ck_assert_int_eq(planc_variant_fastest(all, 5, 6), 3);
  ck_assert_int_eq(planc_variant_fastest(all, 3, 4), -1);
}
END_TEST

START_TEST(batched_products_by_hand) {
  planc_profile *profile = toy();
  planc_graph *graph = graph_of(
      "planc-graph: 1\n"
      "name: products\n"
      "tensors: {a: 'input f32[N,4,20,32]', b: 'input f32[N,4,64,32]', y: 'f32[N,4,20,64]'}\n"
      "ops: [{op: scores, type: matmul_nt, in: [a, b], out: [y]}]\n");
  planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){5});
  int32_t count;
  /* 20 products of 20 rows by 64 columns: 2 x 4 tiles of 16 x 16 each, 160 in all, 32 deep. In waves on 10 processors
   * 16 * 32 steps, and as many when shared: 512 * 5,120 FLOPs at 0.5e12 take 5,243 ns. */
  ck_assert_int_eq(planc_costs_variants(costs, 0, 0, &count)->time_ns, 1000 + 5243);
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

START_TEST(streams_by_hand) {
  planc_profile *profile = toy();
  planc_graph *graph = graph_of(toy_graph);
  planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){1000});
  int32_t count;
  /* relu: 2 * 256,000 bytes at half of 100e9 */
  ck_assert_int_eq(planc_costs_variants(costs, 1, 0, &count)->time_ns, 1000 + 10240);
  /* an unknown type: 10,000 FLOPs at 0.5e12, more than its 10 bytes take */
  ck_assert_int_eq(planc_costs_variants(costs, 2, 0, &count)->time_ns, 1000 + 20);
  planc_costs_free(costs);
  /* an add reads two buffers and writes one */
  ck_assert_int_eq(planc_costs_add_ns(profile, 1000), 1000 + 60);
  ck_assert_int_eq(planc_costs_add_ns(profile, 0), 1000);
  ck_assert_int_eq(planc_costs_move_ns(profile, 1000), 1000 + 40);
  ck_assert_int_eq(planc_costs_add_ns(profile, INT64_MAX), INT64_MAX);
  const planc_device *device = planc_profile_device(profile);
  ck_assert_int_eq(planc_link_ns(&device->links[PLANC_ROUTE_H2D], 12345), 100 + 12345);
  ck_assert_int_eq(planc_link_ns(&device->links[PLANC_ROUTE_D2H], 12345), 200 + 6173);
  ck_assert_int_eq(planc_link_ns(&device->links[PLANC_ROUTE_D2H], 0), 200);
  ck_assert_int_eq(planc_link_ns(&device->links[PLANC_ROUTE_H2D], INT64_MAX), INT64_MAX);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

START_TEST(a_stated_workspace_is_the_ops) {
  planc_profile *profile = toy();
  planc_graph *graph = graph_of(
      "planc-graph: 1\nname: g\ntensors: {x: 'input f32[N,10]', y: 'f32[N,10]', z: 'f32[N,10]'}\nops:\n"
      "  - {op: a, type: odd.one, in: [x], out: [y], workspace: 30+2N}\n  - {op: b, type: odd.one, in: [y], out: "
      "[z]}\n");
  planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){1000});
  int32_t count;
  const planc_variant *a = planc_costs_variants(costs, 0, 0, &count), *b = planc_costs_variants(costs, 1, 0, &count);
  ck_assert_int_eq(count, 1);
  ck_assert_int_eq(a->workspace_bytes, 2030);
  ck_assert_int_eq(b->workspace_bytes, 0);
  ck_assert_int_eq(a->time_ns, b->time_ns);
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

/* --- What a profile may tell beside that -------------------------------------------------------------------------- */

static int64_t time_of(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch) {
  int32_t count;
  planc_costs *costs = costs_of(profile, graph, 1, &batch);
  int64_t time_ns = planc_costs_variants(costs, op, 0, &count)->time_ns;
  planc_costs_free(costs);
  return time_ns;
}

static const char reusing_graph[] =
    "planc-graph: 1\n"
    "name: reusing\n"
    "tensors: {x: 'input f32[N,10]', y: 'f32[N,10]', z: 'f32[N,10]', u: 'f32[N,10]'}\n"
    "ops:\n"
    "  - {op: first, type: odd.one, in: [x], out: [y]}\n"
    "  - {op: next, type: relu, in: [y], out: [z]}\n"
    "  - {op: later, type: odd.one, in: [x], out: [u]}\n"
    "  - {op: again, type: relu, in: [z], out: [u]}\n";

START_TEST(types_have_shares_of_their_own) {
  planc_profile *profile = toy_with("", "\"types\": {\"relu\": 100000, \"odd.one\": 250000},");
  planc_graph *graph = graph_of(reusing_graph);
  /* 8,000 bytes at a quarter of 100e9, and at a tenth */
  ck_assert_int_eq(time_of(profile, graph, 0, 100), 1000 + 320);
  ck_assert_int_eq(time_of(profile, graph, 1, 100), 1000 + 800);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

START_TEST(types_have_bounds_that_no_cache_lifts) {
  planc_profile *profile = toy_with("",
                                    "\"cache\": {\"bytes\": 8997, \"bytes_per_second\": 400000000000}, "
                                    "\"rates\": {\"relu\": 10000000000, \"odd.one\": 100000000000},");
  planc_graph *graph = graph_of(reusing_graph);
  /* 8,000 bytes at 10e9, though half of them are in the cache; half of the memory's 100e9 is less than 100e9. */
  ck_assert_int_eq(time_of(profile, graph, 1, 100), 1000 + 800);
  ck_assert_int_eq(time_of(profile, graph, 0, 100), 1000 + 160);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

START_TEST(what_the_cache_holds_by_hand) {
  planc_profile *profile = toy_with("", "\"cache\": {\"bytes\": 8997, \"bytes_per_second\": 400000000000},");
  planc_graph *graph = graph_of(reusing_graph);
  /* Tensors of 4,000 bytes, half of 100e9 or of 400e9. */
  ck_assert_int_eq(time_of(profile, graph, 0, 100), 1000 + 160);
  /* y was written 8,000 bytes ago; z is new. */
  ck_assert_int_eq(time_of(profile, graph, 1, 100), 1000 + 80 + 20);
  /* x was read 16,000 bytes ago. */
  ck_assert_int_eq(time_of(profile, graph, 2, 100), 1000 + 160);
  /* At batch 60, 9,600 bytes ago, and what is 11,997 bytes old is forgotten: 2,397 of 3,000 parts of 2,400 bytes,
   * 1,917, are left. u is new. */
  ck_assert_int_eq(time_of(profile, graph, 2, 60), 1000 + 58 + 10);
  /* u was written 8,000 bytes ago, z twice that. */
  ck_assert_int_eq(time_of(profile, graph, 3, 100), 1000 + 80 + 20);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

static const char product_graph[] =
    "planc-graph: 1\n"
    "name: products\n"
    "tensors: {x: 'input f32[N,64]', w: 'param f32[16,64]', b: 'param f32[16]', y: 'f32[N,16]', z: 'f32[N,16]',\n"
    "  m: 'input f32[N,20,32]', k: 'input f32[N,64,32]', s: 'f32[N,20,64]', r: 'f32[N,16]'}\n"
    "ops:\n"
    "  - {op: fc, type: linear, in: [x, w], out: [y]}\n"
    "  - {op: fcb, type: linear, in: [x, w, b], out: [z]}\n"
    "  - {op: scores, type: matmul_nt, in: [m, k], out: [s]}\n"
    "  - {op: act, type: relu, in: [z], out: [r]}\n";

START_TEST(families_of_products_by_hand) {
  planc_profile *profile = toy_with(
      "\"linear-bias\": {\"flops_ppm\": 500000, \"tile\": 16, \"depth_overhead\": 0}, "
      "\"batched\": {\"flops_ppm\": 250000, \"tile\": 16, \"depth_overhead\": 0},",
      "");
  planc_graph *graph = graph_of(product_graph);
  /* One tile, 64 deep: cut into slices of 8 as before, and all 64 where a bias is added: 64 * 5,120 FLOPs. */
  ck_assert_int_eq(time_of(profile, graph, 0, 10), 1000 + 82);
  ck_assert_int_eq(time_of(profile, graph, 1, 10), 1000 + 656);
  /* 8 tiles for each of 20 matrices, in 16 waves of 32 steps, at a quarter of the peak. */
  ck_assert_int_eq(time_of(profile, graph, 2, 20), 1000 + 10486);
  planc_profile_free(profile);

  /* Tiles of 4: 3 x 4 in two waves of 10, 64 deep: 128 * 320 FLOPs at a tenth of the peak, sooner than one of 16. */
  profile = toy_with(
      "\"linear-bias\": {\"flops_ppm\": 500000, \"tile\": 16, \"depth_overhead\": 0, \"small_tile\": 4, "
      "\"small_flops_ppm\": 100000},",
      "");
  ck_assert_int_eq(time_of(profile, graph, 1, 10), 1000 + 410);
  /* 1,000 rows are 63 tiles of 16, 7 waves: sooner than 1,000 tiles of 4. */
  ck_assert_int_eq(time_of(profile, graph, 1, 1000), 1000 + 4588);
  /* Half of that rate lasts, and that of what memory binds does. */
  profile->compute.sustained_ppm = 500000;
  ck_assert_int_eq(time_of(profile, graph, 1, 1000), 1000 + 9176);
  ck_assert_int_eq(time_of(profile, graph, 3, 1000), 1000 + 2560);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

START_TEST(measured_tables_override) {
  planc_profile *profile = toy();
  planc_graph *graph = graph_of(toy_graph);
  planc_costs *costs = costs_of(profile, graph, 2, (int64_t[]){20, 40});
  int32_t count;
  const planc_variant *conv = planc_costs_variants(costs, 3, 0, &count);
  ck_assert_int_eq(count, 2);
  ck_assert_str_eq(conv[0].algorithm, "direct"); /* less workspace, though slower */
  ck_assert_int_eq(conv[0].time_ns, 9000);
  ck_assert_int_eq(conv[0].workspace_bytes, 60);
  ck_assert(conv[0].measured && conv[0].deterministic);
  ck_assert_str_eq(conv[1].algorithm, "winograd");
  ck_assert_int_eq(conv[1].time_ns, 3001);
  ck_assert(conv[1].measured && !conv[1].deterministic);
  /* step1 does not depend on the batch, so neither does what was measured at one batch */
  for (int32_t b = 0; b < 2; b++) {
    const planc_variant *step = planc_costs_variants(costs, 4, b, &count);
    ck_assert_int_eq(step->time_ns, 800);
    ck_assert_int_eq(step->workspace_bytes, 16);
  }
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

typedef struct shape {
  const char *dtype;
  int c, h, k, r, stride, pad, groups;
} shape;

/* A convolution in all three directions. */
static planc_graph *conv_graph_of(const shape *of) {
  int p = (of->h + 2 * of->pad - of->r) / of->stride + 1;
  char x[64], w[64], y[64], attrs[96], text[1024];
  snprintf(x, sizeof x, "%s[N,%d,%d,%d]", of->dtype, of->c, of->h, of->h);
  snprintf(w, sizeof w, "%s[%d,%d,%d,%d]", of->dtype, of->k, of->c / of->groups, of->r, of->r);
  snprintf(y, sizeof y, "%s[N,%d,%d,%d]", of->dtype, of->k, p, p);
  snprintf(attrs, sizeof attrs, "{stride: [%d, %d], pad: [%d, %d], groups: %d}", of->stride, of->stride, of->pad,
           of->pad, of->groups);
  snprintf(text, sizeof text,
           "planc-graph: 1\n"
           "name: conv\n"
           "tensors: {x: 'input %s', w: 'param %s', y: '%s', dx: '%s', dw: 'grad %s'}\n"
           "ops:\n"
           "  - {op: f, type: conv2d, in: [x, w], out: [y], attrs: %s}\n"
           "  - {op: d, type: conv2d_dgrad, phase: backward, in: [w, y], out: [dx], attrs: %s}\n"
           "  - {op: g, type: conv2d_wgrad, phase: backward, in: [x, y], out: [dw], attrs: %s}\n",
           x, w, y, x, w, attrs, attrs, attrs);
  return graph_of(text);
}

/* Workspaces by the formulas of planc-profile(5); -1: the algorithm does not take the shape. */
static const struct {
  shape shape;
  int64_t batch;
  int64_t gemm, winograd[3], fft; /* Winograd: forward, data gradient, weight gradient */
} workspaces[] = {
    /* gemm 4*184*64*9*56*56; winograd 4*36*(14*14*N'*128 + 64*64), N' = 192 and 184; fft 4352*(2*184*128 + 64*64) */
    {{"f32", 64, 56, 64, 3, 1, 1, 1}, 184, 1329463296, {694222848, 694222848, 665321472}, 222822400},
    /* gemm 4*2*3*49*112*112 */
    {{"f32", 3, 224, 64, 7, 2, 3, 1}, 2, 14751744, {-1, -1, -1}, -1},
    /* the tensor is the column matrix */
    {{"f32", 256, 14, 64, 1, 1, 0, 1}, 32, 0, {-1, -1, -1}, -1},
    /* gemm 4*32*256*7*7 */
    {{"f32", 256, 14, 64, 1, 2, 0, 1}, 32, 1605632, {-1, -1, -1}, -1},
    /* gemm 4*1*16*25*8*8; one tile of 28: fft 4352*(1*24 + 128) */
    {{"f32", 16, 8, 8, 5, 1, 2, 1}, 1, 102400, {-1, -1, -1}, 661504},
    /* gemm 4*4*64*9*8*8 over all groups */
    {{"f32", 64, 8, 64, 3, 1, 1, 32}, 4, 589824, {-1, -1, -1}, -1},
    /* planes of 6 and 8 differ, both are 2x2 tiles: 144*(4*16*12 + 32); half the elements, transforms in f32 */
    {{"f16", 8, 8, 4, 3, 1, 0, 1}, 16, 82944, {115200, 115200, 115200}, 974848},
    /* 9 and 7: 3x3 and 2x2 tiles of N' = 16 or N = 1 */
    {{"f32", 8, 9, 4, 3, 1, 0, 1}, 1, 14112, {115200, 253440, 11520}, 191488},
    /* padded by as much as the kernel: gemm 4*1*2*9*12*12 */
    {{"f32", 2, 8, 2, 3, 1, 3, 1}, 1, 10368, {-1, -1, -1}, -1},
};

START_TEST(workspace_by_hand) {
  planc_profile *profile = toy();
  planc_graph *graph = conv_graph_of(&workspaces[_i].shape);
  planc_costs *costs = costs_of(profile, graph, 1, &workspaces[_i].batch);
  for (int32_t op = 0; op < 3; op++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, op, 0, &count);
    const planc_variant *implicit = find_variant(variants, count, "implicit-gemm");
    const planc_variant *gemm = find_variant(variants, count, "gemm");
    const planc_variant *winograd = find_variant(variants, count, "winograd");
    const planc_variant *fft = find_variant(variants, count, "fft");
    ck_assert_int_eq(count, 2 + (winograd != NULL) + (fft != NULL));
    ck_assert_int_eq(implicit->workspace_bytes, 0);
    ck_assert_int_eq(gemm->workspace_bytes, workspaces[_i].gemm);
    ck_assert_int_eq(winograd ? winograd->workspace_bytes : -1, workspaces[_i].winograd[op]);
    ck_assert_int_eq(fft ? fft->workspace_bytes : -1, workspaces[_i].fft);
  }
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

START_TEST(convolution_time_by_hand) {
  planc_profile *profile = toy();
  planc_graph *graph = conv_graph_of(&(shape){"f32", 64, 8, 64, 3, 1, 1, 1});
  planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){4});
  int32_t count;
  const planc_variant *forward = planc_costs_variants(costs, 0, 0, &count);
  /* 64 x 256 outputs are 4 x 16 tiles: 7 waves of 10, each 576 + 16 deep; 7 * 592 * 5,120 FLOPs at 0.25e12. */
  ck_assert_int_eq(find_variant(forward, count, "implicit-gemm")->time_ns, 1000 + 84870);
  /* im2col moves 65,536 + 589,824 bytes at 100e9; then 7 * 576 * 5,120 FLOPs at 0.5e12. */
  ck_assert_int_eq(find_variant(forward, count, "gemm")->time_ns, 1000 + 6554 + 1000 + 41288);
  /* 2x2 tiles, N' = 16. Transforms of x: 65,536 + 589,824 bytes, of w: 147,456 + 589,824, of y as x. 36 products of
   * 4 x 4 tiles, 64 deep: 58 waves, 58 * 64 * 5,120 FLOPs. */
  ck_assert_int_eq(find_variant(forward, count, "winograd")->time_ns, 4 * 1000 + 6554 + 7373 + 38011 + 6554);
  /* The weight gradient: 4 x 36 tiles, 256 + 16 deep, shared by 10: 3,917 steps, fewer than 15 waves' 4,080. */
  const planc_variant *weight = planc_costs_variants(costs, 2, 0, &count);
  ck_assert_int_eq(find_variant(weight, count, "implicit-gemm")->time_ns, 1000 + 80221);
  planc_costs_free(costs);
  planc_graph_free(graph);

  graph = conv_graph_of(&(shape){"f16", 64, 8, 16, 3, 1, 1, 1});
  costs = costs_of(profile, graph, 1, (int64_t[]){10});
  /* 1 x 40 tiles: 4 full waves at four times the f32 rate. The product after im2col now waits for its 776,192 bytes
   * (columns, filter, result), which take longer than 4 * 576 * 5,120 FLOPs. */
  const planc_variant *half = planc_costs_variants(costs, 0, 0, &count);
  ck_assert_int_eq(find_variant(half, count, "implicit-gemm")->time_ns, 1000 + 12125);
  ck_assert_int_eq(find_variant(half, count, "gemm")->time_ns, 1000 + 8192 + 1000 + 7762);
  /* The data gradient's product makes 576 x 640 columns, 16 deep: 36 x 40 tiles in 144 waves. */
  half = planc_costs_variants(costs, 1, 0, &count);
  ck_assert_int_eq(find_variant(half, count, "gemm")->time_ns, 1000 + 8192 + 1000 + 7762);
  planc_costs_free(costs);
  planc_graph_free(graph);

  graph = conv_graph_of(&(shape){"f32", 64, 8, 16, 3, 1, 1, 1});
  costs = costs_of(profile, graph, 1, (int64_t[]){10});
  /* The same in f32: 144 * 16 * 5,120 FLOPs at 0.5e12 take longer than twice the bytes. */
  const planc_variant *data = planc_costs_variants(costs, 1, 0, &count);
  ck_assert_int_eq(find_variant(data, count, "gemm")->time_ns, 1000 + 16384 + 1000 + 23593);
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

/* Of algorithms that need no workspace the faster one is the baseline: the plain product where planes are large, the
 * implicit one where every image would leave most of its tile empty. */
START_TEST(baseline_is_the_fastest_without_workspace) {
  planc_profile *profile = toy();
  for (int h = 1; h <= 8; h += 7) {
    planc_graph *graph = conv_graph_of(&(shape){"f32", 64, h, 16, 1, 1, 0, 1});
    planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){64});
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, 0, 0, &count);
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(variants[0].workspace_bytes + variants[1].workspace_bytes, 0);
    ck_assert_int_lt(variants[0].time_ns, variants[1].time_ns);
    ck_assert_str_eq(variants[0].algorithm, h == 1 ? "implicit-gemm" : "gemm");
    planc_costs_free(costs);
    planc_graph_free(graph);
  }
  planc_profile_free(profile);
}
END_TEST

/* 10 images of 64 channels of 8 x 8 in and out and 64 filters of 3 x 3 are 329,984 bytes at 100 GB/s; their 737,280
 * FLOPs at 0.5e12 take less. A product for every group is far slower. */
START_TEST(depthwise_convolutions_stream) {
  planc_profile *profile = toy();
  planc_graph *graph = conv_graph_of(&(shape){"f32", 64, 8, 64, 3, 1, 1, 64});
  planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){10});
  for (int32_t op = 0; op < 3; op++) {
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, op, 0, &count);
    ck_assert_str_eq(variants[0].algorithm, "depthwise");
    ck_assert_int_eq(variants[0].time_ns, 1000 + 3300);
    ck_assert_int_eq(variants[0].workspace_bytes, 0);
    ck_assert_int_gt(find_variant(variants, count, "implicit-gemm")->time_ns, 10 * variants[0].time_ns);
  }
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

/* --- Properties --------------------------------------------------------------------------------------------------- */

static const char *const devices[] = {"tests/data/profile/toy.json", "profiles/k40m.json", "profiles/h200.json"};

static void assert_ordered(const planc_variant *variants, int32_t count) {
  for (int32_t v = 1; v < count; v++) {
    ck_assert_int_ge(variants[v].workspace_bytes, variants[0].workspace_bytes);
    if (variants[v].workspace_bytes == variants[0].workspace_bytes) {
      ck_assert_int_ge(variants[v].time_ns, variants[0].time_ns);
    }
    if (v > 1) ck_assert_int_lt(strcmp(variants[v - 1].algorithm, variants[v].algorithm), 0);
  }
}

static void assert_no_smaller(const planc_variant *variants, int32_t count, const planc_variant *before,
                              int32_t before_count) {
  ck_assert_int_eq(count, before_count);
  for (int32_t v = 0; v < count; v++) {
    const planc_variant *same = find_variant(before, before_count, variants[v].algorithm);
    ck_assert_ptr_nonnull(same);
    ck_assert_int_ge(variants[v].time_ns, same->time_ns);
    ck_assert_int_ge(variants[v].workspace_bytes, same->workspace_bytes);
  }
}

START_TEST(random_convolutions) {
  static const int64_t batches[] = {1, 2, 3, 5, 8, 15, 16, 17, 31, 64, 100, 256, 1000};
  uint64_t state = 7;
  planc_profile *profile = profile_of(devices[_i]);
  for (int round = 0; round < 60; round++) {
    shape of = {.dtype = rand_chance(&state, 20) ? "f16" : "f32", .groups = 1, .stride = 1};
    of.c = 1 + (int)rand_below(&state, 300);
    of.k = 1 + (int)rand_below(&state, 300);
    of.r = 1 + (int)rand_below(&state, 7);
    of.h = of.r + (int)rand_below(&state, 70);
    of.pad = (int)rand_below(&state, of.r);
    if (rand_chance(&state, 30)) of.r = 3, of.h += 3, of.pad = (int)rand_below(&state, 3);
    if (rand_chance(&state, 30)) of.stride = 2;
    if (rand_chance(&state, 20)) of.groups = 4, of.c *= 4, of.k *= 4;
    if (rand_chance(&state, 20)) of.groups = of.k = of.c;
    planc_graph *graph = conv_graph_of(&of);
    planc_costs *costs = costs_of(profile, graph, COUNT(batches), batches);
    for (int32_t op = 0; op < 3; op++) {
      const planc_variant *before = NULL;
      int32_t before_count = 0;
      for (int32_t b = 0; b < COUNT(batches); b++) {
        int32_t count;
        const planc_variant *now = planc_costs_variants(costs, op, b, &count);
        assert_ordered(now, count);
        ck_assert_ptr_nonnull(find_variant(now, count, "gemm"));
        ck_assert_int_eq(find_variant(now, count, "implicit-gemm")->workspace_bytes, 0);
        bool dense = of.stride == 1 && of.groups == 1;
        ck_assert_int_eq(find_variant(now, count, "depthwise") != NULL, of.groups > 1 && of.groups == of.c);
        ck_assert_int_eq(find_variant(now, count, "winograd") != NULL, dense && of.r == 3);
        ck_assert_int_eq(find_variant(now, count, "fft") != NULL, dense && of.r > 1);
        for (int32_t v = 0; v < count; v++) {
          ck_assert_int_gt(now[v].time_ns, 0);
          ck_assert(now[v].busy_ppm >= 1 && now[v].busy_ppm <= 1000000);
        }
        if (before) assert_no_smaller(now, count, before, before_count);
        before = now, before_count = count;
      }
    }
    planc_costs_free(costs);
    planc_graph_free(graph);
  }
  planc_profile_free(profile);
}
END_TEST

/* What each algorithm is for, on a real device: Winograd for 3x3 over many channels, FFT for large kernels, the
 * matrix product as it is for 1x1; and small batches are less efficient. */
START_TEST(algorithms_win_where_they_should) {
  static const struct {
    shape shape;
    const char *fastest;
  } cases[] = {
      {{"f32", 256, 28, 256, 3, 1, 1, 1}, "winograd"},
      {{"f32", 64, 28, 64, 11, 1, 5, 1}, "fft"},
      {{"f32", 256, 56, 64, 1, 1, 0, 1}, "gemm"},
  };
  planc_profile *profile = profile_of("profiles/p100.json");
  for (int i = 0; i < COUNT(cases); i++) {
    planc_graph *graph = conv_graph_of(&cases[i].shape);
    planc_costs *costs = costs_of(profile, graph, 2, (int64_t[]){1, 64});
    int32_t count;
    const planc_variant *variants = planc_costs_variants(costs, 0, 1, &count);
    int32_t best = planc_variant_fastest(variants, count, INT64_MAX);
    ck_assert_str_eq(variants[best].algorithm, cases[i].fastest);
    int64_t sixty_four = variants[best].time_ns;
    variants = planc_costs_variants(costs, 0, 0, &count);
    best = planc_variant_fastest(variants, count, INT64_MAX);
    ck_assert_int_gt(variants[best].time_ns * 64, sixty_four);
    planc_costs_free(costs);
    planc_graph_free(graph);
  }
  planc_profile_free(profile);
}
END_TEST

/* A large convolution of a type, by a library's kernel. */
static int64_t roofline_ns(const planc_profile *profile, const char *type, planc_method method) {
  char text[256];
  planc_variant found;
  snprintf(text, sizeof text,
           "planc-graph: 1\nname: g\ntensors:\n  x: input %s[N,256,56,56]\n  w: param %s[256,256,3,3]\n"
           "  y: %s[N,256,56,56]\nops:\n  - {op: c, type: conv2d, in: [x, w], out: [y], attrs: {pad: [1, 1]}}\n",
           type, type, type);
  planc_graph *graph = graph_of(text);
  ok(planc_cost_roofline(profile, graph, 0, 64, method, &found));
  planc_graph_free(graph);
  return found.time_ns;
}

/* Half types save time on tensor cores; other kernels compute in f32 whatever the type. */
START_TEST(half_types_are_fast_on_tensor_cores_only) {
  planc_profile *profile = profile_of("profiles/h100.json");
  int64_t f32 = roofline_ns(profile, "f32", PLANC_METHOD_SCALAR);
  ck_assert_int_eq(f32, roofline_ns(profile, "f32", PLANC_METHOD_PLAIN));
  ck_assert_int_eq(f32, roofline_ns(profile, "bf16", PLANC_METHOD_SCALAR));
  ck_assert_int_gt(f32, 4 * roofline_ns(profile, "bf16", PLANC_METHOD_TENSOR_CORE));
  ck_assert_int_eq(roofline_ns(profile, "bf16", PLANC_METHOD_TENSOR_CORE),
                   roofline_ns(profile, "bf16", PLANC_METHOD_PLAIN));
  planc_profile_free(profile);
}
END_TEST

static int64_t fastest_ns(const planc_profile *profile, const char *op) {
  char text[256];
  int32_t count;
  snprintf(text, sizeof text,
           "planc-graph: 1\nname: g\ntensors:\n  x: input f32[N,256,8,8]\n  w: param f32[256,256,3,3]\n"
           "  y: f32[N,256,8,8]\n  a: input f32[N,4096]\n  b: param f32[4096,4096]\n  c: f32[N,4096]\nops:\n  - {%s}\n",
           op);
  planc_graph *graph = graph_of(text);
  planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){4096});
  const planc_variant *variants = planc_costs_variants(costs, 0, 0, &count);
  int64_t ns = variants[planc_variant_fastest(variants, count, 0)].time_ns;
  planc_costs_free(costs);
  planc_graph_free(graph);
  return ns;
}

/* Where products may round to TF32, a device that has it takes about as long as its peak in it says. */
START_TEST(tf32_is_fast_where_the_device_has_it) {
  static const char *const ops[][2] = {
      {"op: c, type: conv2d, in: [x, w], out: [y], attrs: {pad: [1, 1]}",
       "op: c, type: conv2d, in: [x, w], out: [y], attrs: {pad: [1, 1], tf32: 1}"},
      {"op: l, type: linear, in: [a, b], out: [c]", "op: l, type: linear, in: [a, b], out: [c], attrs: {tf32: 1}"}};
  planc_profile *h100 = profile_of("profiles/h100.json"), *v100 = profile_of("profiles/v100-32g.json");
  for (int i = 0; i < COUNT(ops); i++) {
    double faster = (double)fastest_ns(h100, ops[i][0]) / (double)fastest_ns(h100, ops[i][1]);
    ck_assert_msg(faster > 6 && faster < 494.5 / 66.9 + 0.01, "%s: %.2f times", ops[i][1], faster);
    ck_assert_int_eq(fastest_ns(v100, ops[i][0]), fastest_ns(v100, ops[i][1]));
  }
  ck_assert_int_lt(6 * roofline_ns(h100, "f32", PLANC_METHOD_TENSOR_CORE),
                   roofline_ns(h100, "f32", PLANC_METHOD_SCALAR));
  ck_assert_int_eq(roofline_ns(v100, "f32", PLANC_METHOD_TENSOR_CORE), roofline_ns(v100, "f32", PLANC_METHOD_SCALAR));
  planc_profile_free(h100);
  planc_profile_free(v100);
}
END_TEST

START_TEST(fastest_within_a_limit) {
  static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
  uint64_t state = 11;
  for (int round = 0; round < 2000; round++) {
    planc_variant variants[6];
    int32_t count = (int32_t)rand_below(&state, COUNT(variants) + 1);
    for (int32_t v = 0; v < count; v++) {
      variants[v] = (planc_variant){
          .algorithm = names[v], .time_ns = rand_below(&state, 3), .workspace_bytes = rand_below(&state, 4)};
    }
    int64_t limit = rand_below(&state, 5) - 1;
    int32_t best = planc_variant_fastest(variants, count, limit);
    if (best >= 0) ck_assert_int_le(variants[best].workspace_bytes, limit);
    for (int32_t v = 0; v < count; v++) {
      if (variants[v].workspace_bytes > limit) continue;
      ck_assert_int_ge(best, 0);
      int64_t rank = variants[v].time_ns * 100 + variants[v].workspace_bytes * 10 + v;
      ck_assert_int_le(variants[best].time_ns * 100 + variants[best].workspace_bytes * 10 + best, rank);
    }
  }
}
END_TEST

/* --- The table ---------------------------------------------------------------------------------------------------- */

START_TEST(batches_are_sorted_and_found) {
  planc_profile *profile = toy();
  planc_graph *graph = graph_of(toy_graph);
  planc_costs *costs = costs_of(profile, graph, 6, (int64_t[]){7, 3, 7, 12, 3, 5});
  ck_assert_int_eq(costs->n_batches, 4);
  ck_assert_int_eq(planc_costs_batch(costs, 3), 0);
  ck_assert_int_eq(planc_costs_batch(costs, 5), 1);
  ck_assert_int_eq(planc_costs_batch(costs, 7), 2);
  ck_assert_int_eq(planc_costs_batch(costs, 12), 3);
  ck_assert_int_eq(planc_costs_batch(costs, 4), -1);
  ck_assert_int_eq(planc_costs_batch(costs, 1), -1);
  ck_assert_int_eq(planc_costs_batch(costs, 13), -1);
  ck_assert_ptr_eq(costs->graph, graph);
  ck_assert_str_eq(costs->device.name, "toy");
  planc_costs_free(costs);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

START_TEST(impossible_batches_are_rejected) {
  static const int64_t batches[] = {0, -1, INT64_MIN, INT64_MAX, INT64_MAX / 300, INT64_C(1) << 50};
  planc_profile *profile = toy();
  planc_graph *dense = graph_of(toy_graph);
  planc_graph *conv = conv_graph_of(&(shape){"f32", 64, 56, 64, 3, 1, 1, 1});
  for (int b = 0; b < COUNT(batches); b++) {
    for (int g = 0; g < 2; g++) {
      planc_costs *costs = NULL;
      planc_status status = planc_costs_make(profile, g ? conv : dense, 1, &batches[b], &costs);
      ck_assert_msg(status != NULL, "batch %" PRId64 " accepted", batches[b]);
      ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
      ck_assert_ptr_null(costs);
      planc_status_free(status);
    }
  }
  planc_graph_free(conv);
  planc_graph_free(dense);
  planc_profile_free(profile);
}
END_TEST

/* A measured time that stays small does not hide a workspace that does not. */
START_TEST(workspace_beyond_range_is_rejected) {
  planc_profile *profile = toy();
  planc_graph *graph = graph_of(
      "planc-graph: 1\n"
      "name: growing\n"
      "tensors: {x: 'input f32[N]', y: 'f32[N]'}\n"
      "ops: [{op: step1, type: odd.step, in: [x], out: [y]}]\n");
  planc_costs *costs = costs_of(profile, graph, 1, (int64_t[]){INT64_C(1) << 52});
  int32_t count;
  ck_assert_int_eq(planc_costs_variants(costs, 0, 0, &count)->time_ns, 800);
  planc_costs_free(costs);
  planc_status status = planc_costs_make(profile, graph, 1, (int64_t[]){INT64_C(1) << 53}, &costs);
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  planc_status_free(status);
  planc_graph_free(graph);
  planc_profile_free(profile);
}
END_TEST

static int32_t operand_of(const planc_op *op, int32_t i) {
  return i < op->n_in ? op->in[i]
                      : (i < op->n_in + op->n_out ? op->out[i - op->n_in] : op->effects[i - op->n_in - op->n_out]);
}

/* Traffic from the op that touched a storage last, as reuse.h counts it; -1 where that is forgotten. */
static int64_t distance_to(const planc_graph *graph, int32_t op, int32_t storage, int64_t batch, int64_t cache) {
  int64_t distance = 0;
  for (int32_t before = op - 1; before >= 0 && before >= op - PL_REUSE_OPS; before--) {
    const planc_op *of = &graph->ops[before];
    distance += planc_law_at(of->traffic, batch);
    if (distance >= cache + cache / 3 + 1) return -1;
    for (int32_t i = 0; i < of->n_in + of->n_out + of->n_effects; i++)
      if (graph->tensors[operand_of(of, i)].storage == storage) return distance;
  }
  return -1;
}

static int64_t reused_by(const planc_graph *graph, int32_t op, int64_t batch, int64_t cache) {
  const planc_op *of = &graph->ops[op];
  int64_t sum = 0, end = cache + cache / 3 + 1, traffic = planc_law_at(of->traffic, batch);
  for (int32_t i = 0; i < of->n_in + of->n_out + of->n_effects; i++) {
    int64_t bytes = planc_law_at(pl_operand_traffic(graph, of, i), batch);
    int64_t distance = distance_to(graph, op, graph->tensors[operand_of(of, i)].storage, batch, cache);
    if (distance >= 0) sum += distance <= cache ? bytes : bytes * (end - distance) / (end - cache);
  }
  return sum < traffic ? sum : traffic;
}

/* Walks from the first op, as for a table, and walks that begin at an op know as much. */
START_TEST(what_the_cache_holds_is_what_ops_before_touched) {
  static const int64_t batches[] = {1, 3, 64};
  planc_profile *profile = profile_of("profiles/k40m.json");
  int32_t n_held = 0, n_far = 0;
  for (uint64_t seed = 0; seed < 40; seed++) {
    planc_graph *graph = NULL;
    pl_arena arena = {0};
    pl_reuse along;
    ok(randgraph_make(seed, &(randgraph_options){.max_ops = seed % 2 ? 40 : 600}, &graph));
    profile->cache.bytes = INT64_C(1) << (6 + seed % 20);
    ok(pl_reuse_start(profile, graph, COUNT(batches), batches, &arena, &along));
    for (int32_t op = 0; op < graph->n_ops; op++, pl_reuse_pass(&along)) {
      for (int32_t b = 0; b < COUNT(batches); b++) {
        int64_t want = reused_by(graph, op, batches[b], profile->cache.bytes);
        ck_assert_int_eq(pl_reused_bytes(&along, batches[b]), want);
        n_held += want > 0;
        if (op % 16) continue;
        ck_assert_int_eq(pl_reused_by(profile, graph, op, batches[b]), want);
        n_far += op > PL_REUSE_OPS;
      }
    }
    pl_arena_free(&arena);
    planc_graph_free(graph);
  }
  ck_assert_int_gt(n_held, 1000);
  ck_assert_int_gt(n_far, 100);
  planc_profile_free(profile);
}
END_TEST

START_TEST(random_graphs_have_a_cost_everywhere) {
  planc_profile *profile = profile_of("profiles/k40m.json");
  for (uint64_t seed = 0; seed < 50; seed++) {
    planc_graph *graph = NULL;
    ck_assert_ptr_null(randgraph_make(seed, NULL, &graph));
    planc_costs *costs = costs_of(profile, graph, 3, (int64_t[]){1, 4, 32});
    for (int32_t op = 0; op < graph->n_ops; op++) {
      int64_t before = 0;
      for (int32_t b = 0; b < 3; b++) {
        int32_t count;
        const planc_variant *variants = planc_costs_variants(costs, op, b, &count);
        ck_assert_int_eq(count, 1);
        ck_assert_int_ge(variants->time_ns, before);
        ck_assert_int_gt(variants->time_ns, 0);
        before = variants->time_ns;
      }
    }
    planc_costs_free(costs);
    planc_graph_free(graph);
  }
  planc_profile_free(profile);
}
END_TEST

int main(void) {
  TCase *hand = tcase_create("by hand");
  tcase_add_test(hand, ties_go_to_the_deterministic);
  tcase_add_test(hand, linear_by_hand);
  tcase_add_test(hand, batched_products_by_hand);
  tcase_add_test(hand, streams_by_hand);
  tcase_add_test(hand, a_stated_workspace_is_the_ops);
  tcase_add_test(hand, types_have_shares_of_their_own);
  tcase_add_test(hand, types_have_bounds_that_no_cache_lifts);
  tcase_add_test(hand, what_the_cache_holds_by_hand);
  tcase_add_test(hand, families_of_products_by_hand);
  tcase_add_test(hand, measured_tables_override);
  tcase_add_loop_test(hand, workspace_by_hand, 0, COUNT(workspaces));
  tcase_add_test(hand, convolution_time_by_hand);
  tcase_add_test(hand, baseline_is_the_fastest_without_workspace);
  tcase_add_test(hand, depthwise_convolutions_stream);
  TCase *properties = tcase_create("properties");
  tcase_add_loop_test(properties, random_convolutions, 0, COUNT(devices));
  tcase_add_test(properties, algorithms_win_where_they_should);
  tcase_add_test(properties, half_types_are_fast_on_tensor_cores_only);
  tcase_add_test(properties, tf32_is_fast_where_the_device_has_it);
  tcase_add_test(properties, fastest_within_a_limit);
  TCase *whole = tcase_create("table");
  tcase_add_test(whole, batches_are_sorted_and_found);
  tcase_add_test(whole, impossible_batches_are_rejected);
  tcase_add_test(whole, workspace_beyond_range_is_rejected);
  tcase_add_test(whole, what_the_cache_holds_is_what_ops_before_touched);
  tcase_add_test(whole, random_graphs_have_a_cost_everywhere);
  Suite *suite = suite_create("cost");
  suite_add_tcase(suite, hand);
  suite_add_tcase(suite, properties);
  suite_add_tcase(suite, whole);
  return run_suite(suite);
}
