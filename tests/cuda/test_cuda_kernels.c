/* Every op of the CUDA backend's own kernels, emulated, against the host's. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host_kernels.h"
#include "runtime/random.h"
#include "tests/cuda/kernel_call.h"
#include "tests/support/unit.h"

/* --- Ops on anything ---------------------------------------------------------------------------------------------- */

#define APPROXIMATE 2e-6F
static const op_case cases[] = {
    {"NCHW", "x: input f32[N,$a]\ny: f32[N,$a]", "type: relu, in: [x], out: [y]", "TT", "u", 0, 0},
    {"NCHW", "x: state f32[N,$a]", "type: relu, in: [x], out: [x]", "TT", "u", 0, 0},
    {"NCHW", "y: input f32[N,$a]\ndy: input f32[N,$a]\ndx: f32[N,$a]", "type: relu_grad, in: [y, dy], out: [dx]", "TTT",
     "uu", 0, 0},
    {"NCHW", "y: input f32[N,$a]\ndy: state f32[N,$a]", "type: relu_grad, in: [y, dy], out: [dy]", "TTT", "uu", 0, 0},
    {"NCHW", "x: input f32[N,$a]\ny: f32[N,$a]", "type: gelu, in: [x], out: [y]", "TT", "u", 0, 0},
    {"NCHW", "x: input f32[N,$a]\ndy: state f32[N,$a]", "type: gelu_grad, in: [x, dy], out: [dy]", "TTT", "uu", 0, 0},
    {"NCHW", "a: input f32[N,$a]\nb: input f32[N,$a]\ny: f32[N,$a]", "type: add, in: [a, b], out: [y]", "TTT", "uu", 0,
     0},
    {"NCHW", "x: input f32[N,$a]\ny: f32[N,$a]", "type: sigmoid, in: [x], out: [y]", "TT", "u", 0, 0},
    {"NCHW", "x: state f32[N,$a]", "type: sigmoid, in: [x], out: [x]", "TT", "u", 0, 0},
    {"NCHW", "y: input f32[N,$a]\ndy: state f32[N,$a]", "type: sigmoid_grad, in: [y, dy], out: [dy]", "TTT", "uu", 0,
     0},
    {"NCHW", "x: input f32[N,$a]\ny: f32[N,$a]", "type: tanh, in: [x], out: [y]", "TT", "u", 0, 0},
    {"NCHW", "y: input f32[N,$a]\ndy: state f32[N,$a]", "type: tanh_grad, in: [y, dy], out: [dy]", "TTT", "uu", 0, 0},
    {"NCHW", "y: input f32[N,$a]\ndy: input f32[N,$a]\ndx: f32[N,$a]", "type: tanh_grad, in: [y, dy], out: [dx]", "TTT",
     "uu", 0, 0},
    {"NCHW", "a: input f32[N,$a]\nb: input f32[N,$a]\ny: f32[N,$a]", "type: mul, in: [a, b], out: [y]", "TTT", "uu", 0,
     0},
    {"NCHW", "x: input f32[N,$a]\ny: f32[N,$a]", "type: affine, in: [x], out: [y], attrs: {scale: -1, shift: 1}", "TT",
     "u", 0, 0},
    {"NCHW", "dy: state f32[N,$a]", "type: affine_grad, in: [dy], out: [dy], attrs: {scale: 0.5, shift: 3}", "TT", "u",
     0, 0},
    {"NCHW", "a: state f32[N,$a]\nb: input f32[N,$a]", "type: mul, in: [a, b], out: [a]", "TTT", "uu", 0, 0},
    {"NCHW", "a: state f32[N,$a]\nb: input f32[N,$a]", "type: add, in: [a, b], out: [a]", "TTT", "uu", 0, 0},
    {"NCHW", "x: input f32[N,$a,$b]\ny: f32[N,$a,$b]", "type: dropout, in: [x], out: [y], attrs: {p: 0.3, seed: 5}",
     "TT", "u", 0, 0},
    {"NCHW", "x: state f32[N,$a]", "type: dropout_grad, in: [x], out: [x], attrs: {p: 0.5, seed: 1}", "TT", "u", 0, 0},
    {"NCHW", "x: input f32[N,$a,$b,$c]\nb: param f32[$a]\ny: f32[N,$a,$b,$c]", "type: bias, in: [x, b], out: [y]",
     "TPT", "u", 0, 0},
    {"NHWC", "x: state f32[N,$a,$b,$c]\nb: param f32[$c]", "type: bias, in: [x, b], out: [x]", "TPT", "u", 0, 0},
    {"NCHW", "x: input f32[N,$a]\nb: param f32[$a]\ny: f32[N,$a]", "type: bias, in: [x, b], out: [y]", "TPT", "u", 0,
     0},
    {"NCHW", "dy: input f32[N,$a,$b,$c]\ndb: grad f32[$a]", "type: bias_grad, in: [dy], out: [db]", "TP", "u",
     APPROXIMATE, 0},
    {"NHWC", "dy: input f32[N,$a,$b,$c]\ndb: grad f32[$c]", "type: conv2d_bgrad, in: [dy], out: [db]", "TP", "u",
     APPROXIMATE, 0},
    {"NCHW", "dy: input f32[N,$a,$b]\ndb: grad f32[$b]", "type: linear_bgrad, in: [dy], out: [db]", "TP", "u",
     APPROXIMATE, 0},
    {"NCHW", "x: input f32[N,$a,$b]\np: param f32[$a,$b]\ny: f32[N,$a,$b]", "type: position, in: [x, p], out: [y]",
     "TTT", "u", 0, 0},
    {"NCHW", "dy: input f32[N,$a,$b]\ndp: grad f32[$a,$b]", "type: position_grad, in: [dy], out: [dp]", "TT", "u",
     APPROXIMATE, 0},
    {"NCHW", "x: input f32[N,$a,$b]\ny: f32[N,$b]", "type: mean, in: [x], out: [y]", "TT", "u", APPROXIMATE, 0},
    {"NCHW", "dy: input f32[N,$b]\ndx: f32[N,$a,$b]", "type: mean_grad, in: [dy], out: [dx]", "TT", "u", 0, 0},
    {"NCHW", "x: input f32[N,$b]\ny: f32[N,$a,$b]", "type: expand, in: [x], out: [y]", "TT", "u", 0, 0},
    {"NCHW", "dy: input f32[N,$a,$b]\ndx: f32[N,$b]", "type: expand_grad, in: [dy], out: [dx]", "TT", "u", APPROXIMATE,
     0},
    {"NCHW", "x: input f32[N,$a,$b]\ny: input f32[N,$a,$b]\nloss: f32[]", "type: mse, in: [x, y], out: [loss]", "TTF",
     "uu", APPROXIMATE, 0},
    {"NCHW", "x: input f32[N,$a]\ny: input f32[N,$a]\ndx: f32[N,$a]", "type: mse_grad, in: [x, y], out: [dx]", "TTT",
     "uu", 0, 0},
    {"NCHW", "x: input f32[N,$a,$b,$c]\ny: f32[N,$b,$a,$c]", "type: transpose, in: [x], out: [y], attrs: {axis: 1}",
     "TT", "u", 0, 0},
    {"NCHW", "x: input f32[N,$a,$b]\ny: f32[N,$b,$a]", "type: transpose, in: [x], out: [y], attrs: {axis: 1}", "TT",
     "u", 0, 0},
    {"NCHW", "a: input f32[N,$a,$d]\nb: input f32[N,$b,$d]\nc: input f32[N,$c,$d]\ny: f32[N,$e,$d]",
     "type: concat, in: [a, b, c], out: [y], attrs: {axis: 1}", "TTTT", "u", 0, 0},
    {"NCHW", "dy: input f32[N,$e,$d]\nda: f32[N,$b,$d]",
     "type: concat_grad, in: [dy], out: [da], attrs: {axis: 1, offset: $a}", "TT", "u", 0, 0},
    {"NCHW", "x: input f32[N,$e,$d]\na: f32[N,$a,$d]\nb: f32[N,$b,$d]\nc: f32[N,$c,$d]",
     "type: split, in: [x], out: [a, b, c], attrs: {axis: 1}", "TTTT", "u", 0, 0},
    {"NCHW", "ids: input i64[N,$a]\nw: param f32[$b,$c]\ny: f32[N,$a,$c]", "type: embedding, in: [ids, w], out: [y]",
     "ITT", "iu", 0, 'b'},
    {"NCHW", "ids: input i64[N,$a]\ndy: input f32[N,$a,$c]\ndw: grad f32[$b,$c]",
     "type: embedding_grad, in: [ids, dy], out: [dw]", "ITT", "iu", APPROXIMATE, 'b'},
    {"NCHW", "x: input f32[N,$a,$b]\ny: f32[N,$a,$b]", "type: softmax, in: [x], out: [y]", "TT", "u", APPROXIMATE, 0},
    {"NCHW", "x: state f32[N,$a]", "type: softmax, in: [x], out: [x]", "TT", "u", APPROXIMATE, 0},
    {"NCHW", "y: input f32[N,$a]\ndy: state f32[N,$a]", "type: softmax_grad, in: [y, dy], out: [dy]", "TTT", "uu",
     4 * APPROXIMATE, 0},
    {"NCHW", "z: input f32[N,$a]\nl: input i64[N]\nloss: f32[]\np: f32[N,$a]",
     "type: softmax_xent, in: [z, l], out: [loss, p]", "TIFP", "ui", APPROXIMATE, 'a'},
    {"NCHW", "z: input f32[N,$a,$b,$c]\nl: input i64[N,$b,$c]\nloss: f32[]\np: f32[N,$a,$b,$c]",
     "type: softmax_xent, in: [z, l], out: [loss, p]", "TIFP", "ui", APPROXIMATE, 'a'},
    {"NHWC", "z: input f32[N,$a,$b,$c]\nl: input i64[N,$a,$b]\nloss: f32[]\np: f32[N,$a,$b,$c]",
     "type: softmax_xent, in: [z, l], out: [loss, p]", "TIFP", "ui", APPROXIMATE, 'c'},
    {"NCHW", "p: input f32[N,$a]\nl: input i64[N]\ndz: f32[N,$a]", "type: softmax_xent_grad, in: [p, l], out: [dz]",
     "PIT", "ui", 0, 'a'},
    {"NCHW", "p: input f32[N,$a,$b]\nl: input i64[N,$b]\ndz: f32[N,$a,$b]",
     "type: softmax_xent_grad, in: [p, l], out: [dz]", "PIT", "ui", 0, 'a'},
    {"NCHW", "x: input f32[N,$a,$b]\ng: param f32[$b]\nb: param f32[$b]\ny: f32[N,$a,$b]\nm: f32[N,$a]\ns: f32[N,$a]",
     "type: layernorm, in: [x, g, b], out: [y, m, s]", "TFFTFF", "u", 4 * APPROXIMATE, 0},
    {"NCHW",
     "x: input f32[N,$a,$b]\ng: param f32[$b]\nm: input f32[N,$a]\ns: input f32[N,$a]\ndy: input f32[N,$a,$b]\n"
     "dx: f32[N,$a,$b]\ndg: grad f32[$b]\ndb: grad f32[$b]",
     "type: layernorm_grad, in: [x, g, m, s, dy], out: [dx, dg, db]", "TFFFTTFF", "uuupu", 4 * APPROXIMATE, 0},
    {"NCHW",
     "x: input f32[N,$a,$b,$c]\ng: param f32[$a]\nb: param f32[$a]\ny: f32[N,$a,$b,$c]\nm: f32[$a]\ns: f32[$a]\n"
     "rm: state f32[$a]\nrv: state f32[$a]",
     "type: batchnorm, in: [x, g, b], out: [y, m, s], effects: [rm, rv], attrs: {momentum: 0.25, epsilon: 0.001}",
     "TFFTFFFF", "u", 4 * APPROXIMATE, 0},
    {"NHWC",
     "x: input f32[N,$a,$b,$c]\ng: param f32[$c]\nb: param f32[$c]\ny: f32[N,$a,$b,$c]\nm: f32[$c]\ns: f32[$c]\n"
     "rm: state f32[$c]\nrv: state f32[$c]",
     "type: batchnorm, in: [x, g, b], out: [y, m, s], effects: [rm, rv], attrs: {epsilon: 0.001}", "TFFTFFFF", "u",
     4 * APPROXIMATE, 0},
    {"NCHW",
     "x: input f32[N,$a,$b,$c]\ng: param f32[$a]\nb: param f32[$a]\nrm: state f32[$a]\nrv: state f32[$a]\n"
     "y: f32[N,$a,$b,$c]",
     "type: batchnorm_infer, in: [x, g, b, rm, rv], out: [y]", "TFFFFT", "uuuup", 4 * APPROXIMATE, 0},
    {"NCHW",
     "x: input f32[N,$a,$b,$c]\ng: param f32[$a]\nm: input f32[$a]\ns: input f32[$a]\ndy: input f32[N,$a,$b,$c]\n"
     "dx: f32[N,$a,$b,$c]\ndg: grad f32[$a]\ndb: grad f32[$a]",
     "type: batchnorm_grad, in: [x, g, m, s, dy], out: [dx, dg, db]", "TFFFTTFF", "uuupu", 4 * APPROXIMATE, 0},
    {"NHWC",
     "x: input f32[N,$a,$b,$c]\ng: param f32[$c]\nm: input f32[$c]\ns: input f32[$c]\ndy: input f32[N,$a,$b,$c]\n"
     "dx: f32[N,$a,$b,$c]\ndg: grad f32[$c]\ndb: grad f32[$c]",
     "type: batchnorm_grad, in: [x, g, m, s, dy], out: [dx, dg, db]", "TFFFTTFF", "uuupu", 4 * APPROXIMATE, 0},
    {"NCHW", "w: param f32[$a,$b]\ndw: input f32[$a,$b]", "phase: optimizer, type: sgd, in: [w, dw], out: [w]", "FPF",
     "u", 0, 0},
    {"NCHW", "w: param f32[$a,$b]\ndw: input f32[$a,$b]\nv: state f32[$a,$b]",
     "phase: optimizer, type: momentum, in: [w, dw, v], out: [w, v], attrs: {lr: 0.3}", "FPFFF", "u", 0, 0},
    {"NCHW", "w: param f32[$a,$b]\ndw: input f32[$a,$b]\nm: state f32[$a,$b]\nv: state f32[$a,$b]",
     "phase: optimizer, type: adam, in: [w, dw, m, v], out: [w, m, v]", "FPFFFFF", "uuup", 0, 0},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* Sizes of every kind: one, odd, multiples of 4 and 8, more than a block, more than a warp takes. */
START_TEST(ops) {
  static const int64_t small[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 31, 32, 33, 40},
                       large[] = {130, 257, 300, 512, 1000};
  seed_draws((uint64_t)_i << 32);
  for (int round = 0; round < 6; round++) {
    sizes with;
    for (int k = 0; k < 4; k++) with.of[k] = small[draw(sizeof small / sizeof *small)];
    if (round % 3 == 1) with.of[draw(3)] = large[draw(sizeof large / sizeof *large)];
    int64_t most = with.of[0] * with.of[1] * with.of[2];
    if (most > 20000) with.of[draw(3)] = 1;
    with.of[4] = with.of[0] + with.of[1] + with.of[2];
    int64_t batch = round % 4 == 3 ? 1 : 1 + (int64_t)draw(5);
    if (is_sampled(_i + round, 2)) check_case(&cases[_i], &with, batch);
  }
}
END_TEST

/* Rows that take a whole block, and sums in many slices. */
START_TEST(long_ones) {
  seed_draws((uint64_t)_i << 40);
  static const sizes shapes[] = {{{2, 2056, 3}}, {{1, 5003, 1}}, {{1100, 1, 2}}, {{8, 70, 80}}, {{16, 3, 2}}};
  static const int64_t batches[] = {2, 1, 4, 3, 700};
  for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
    if (!is_sampled(_i + s, 3)) continue;
    sizes with = shapes[s];
    with.of[3] = 2, with.of[4] = with.of[0] + with.of[1] + with.of[2];
    check_case(&cases[_i], &with, batches[s]);
  }
}
END_TEST

/* Channels whose runs are whole vectors in both types, in one of them, in none, and single elements. */
START_TEST(runs_of_channels) {
  static const sizes shapes[] = {{{5, 8, 2}}, {{5, 4, 3}}, {{5, 3, 3}}, {{8, 1, 1}}, {{16, 4, 8}}};
  for (int k = 0; k < N_CASES; k++) {
    if (!strstr(cases[k].op, "type: bias,") && !strstr(cases[k].op, "type: batchnorm")) continue;
    seed_draws((uint64_t)k << 48);
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
      if (is_sampled(k + s, 2)) check_case(&cases[k], &shapes[s], 3);
  }
}
END_TEST

/* --- Windows ------------------------------------------------------------------------------------------------------ */

typedef struct window {
  int64_t kernel[2], stride[2], pad[2], image[2];
} window;

/* Images of several tiles in both directions, windows with gaps between them, larger than a tile, and of more places
 * than a byte tells apart. */
static const window windows_of_note[] = {
    {{2, 2}, {2, 2}, {0, 0}, {70, 133}},    {{3, 3}, {2, 2}, {1, 1}, {67, 130}},
    {{3, 3}, {1, 1}, {1, 1}, {65, 129}},    {{3, 3}, {2, 2}, {0, 0}, {33, 65}},
    {{3, 3}, {1, 1}, {0, 0}, {32, 64}},     {{2, 2}, {2, 2}, {1, 1}, {97, 31}},
    {{3, 3}, {2, 2}, {2, 2}, {12, 17}},     {{5, 4}, {1, 2}, {4, 3}, {40, 70}},
    {{2, 1}, {3, 5}, {1, 0}, {70, 140}},    {{1, 1}, {40, 70}, {0, 0}, {90, 150}},
    {{15, 17}, {1, 1}, {7, 8}, {36, 70}},   {{17, 15}, {4, 3}, {0, 14}, {70, 66}},
    {{16, 16}, {3, 5}, {15, 1}, {40, 50}},  {{16, 16}, {9, 9}, {3, 3}, {16, 20}},
    {{1, 200}, {1, 1}, {0, 100}, {5, 150}}, {{60, 4}, {20, 1}, {30, 2}, {100, 20}},
};
enum { N_WINDOWS = sizeof windows_of_note / sizeof *windows_of_note };

/* A window, and an image that it fits. */
static window draw_window(void) {
  window w;
  for (int d = 0; d < 2; d++) {
    w.kernel[d] = 1 + (int64_t)draw(4);
    w.stride[d] = 1 + (int64_t)draw(3);
    w.pad[d] = (int64_t)draw((uint64_t)w.kernel[d]);
    w.image[d] = w.kernel[d] + (int64_t)draw(12);
  }
  return w;
}

static const struct {
  const char *tensors, *op, *types, *fills;
} pools[] = {{"x: input f32[%s]\ny: f32[%s]", "type: maxpool2d, in: [x], out: [y], %s", "TT", "q"},
             {"x: input f32[%s]\ny: f32[%s]", "type: avgpool2d, in: [x], out: [y], %s", "TT", "u"},
             {"dx: f32[%s]\ndy: input f32[%s]", "type: avgpool2d_grad, in: [dy], out: [dx], %s", "TT", "u"},
             {"x: input f32[%s]\ny: input f32[%s]\ndy: input f32[%s]\ndx: f32[%s]",
              "type: maxpool2d_grad, in: [x, y, dy], out: [dx], %s", "TTTT", "qyu"},
             {"x: input f32[%s]\ny: input f32[%s]\ndy: input f32[%s]\ndx: f32[%s]",
              "type: maxpool2d_grad, in: [x, y, dy], out: [dx], %s", "TTTT", "qyq"}};
enum { N_POOLS = sizeof pools / sizeof *pools };

static void check_pool(int kind, const window *w, bool nhwc, int64_t channels, int64_t batch) {
  char attrs[TEXT], tensors[TEXT], op[TEXT], image[2][64];
  sizes with = {{channels, w->image[0], w->image[1]}};
  for (int d = 0; d < 2; d++) with.of[3 + d] = (w->image[d] + 2 * w->pad[d] - w->kernel[d]) / w->stride[d] + 1;
  snprintf(attrs, sizeof attrs, "attrs: {kernel: [%lld, %lld], stride: [%lld, %lld], pad: [%lld, %lld]}",
           (long long)w->kernel[0], (long long)w->kernel[1], (long long)w->stride[0], (long long)w->stride[1],
           (long long)w->pad[0], (long long)w->pad[1]);
  snprintf(image[0], sizeof image[0], nhwc ? "N,$b,$c,$a" : "N,$a,$b,$c");
  snprintf(image[1], sizeof image[1], nhwc ? "N,$d,$e,$a" : "N,$a,$d,$e");
  snprintf(tensors, sizeof tensors, pools[kind].tensors, image[0], image[1], image[1], image[0]);
  snprintf(op, sizeof op, pools[kind].op, attrs);
  op_case c = {nhwc ? "NHWC" : "NCHW", tensors, op, pools[kind].types, pools[kind].fills, 0, 0};
  check_case(&c, &with, batch);
}

START_TEST(windows) {
  seed_draws((uint64_t)_i << 32);
  for (int round = 0, rounds = sampled(40); round < rounds; round++) {
    window w = draw_window();
    check_pool(_i, &w, round % 2, (int64_t[]){1, 2, 3, 8, 16}[draw(5)], 1 + (int64_t)draw(3));
  }
}
END_TEST

START_TEST(large_windows) {
  seed_draws((uint64_t)_i << 40);
  const window *w = &windows_of_note[_i];
  for (int kind = 0; kind < N_POOLS; kind++) {
    if (!is_sampled(_i + kind, 3)) continue;
    check_pool(kind, w, false, 1, 1);
    check_pool(kind, w, false, 3, 2);
    if (w->image[0] * w->image[1] < 2500) check_pool(kind, w, true, 8, 1);
  }
}
END_TEST

START_TEST(upsampling) {
  seed_draws((uint64_t)_i << 32);
  for (int round = 0, rounds = sampled(16); round < rounds; round++) {
    static const char *const modes[] = {"nearest", "bilinear", "aligned"};
    bool nhwc = round % 2, grad = _i / 3, aligned = _i % 3 == 2;
    char tensors[TEXT], op[TEXT];
    int64_t scale = 1 + (int64_t)draw(4);
    sizes with = {{(int64_t[]){1, 3, 8}[draw(3)], 1 + (int64_t)draw(9), 1 + (int64_t)draw(9)}};
    for (int k = 1; k <= 2; k++) with.of[2 + k] = aligned ? (with.of[k] - 1) * scale + 1 : with.of[k] * scale;
    snprintf(tensors, sizeof tensors, "%s: %sf32[%s]\n%s: %sf32[%s]", grad ? "y" : "x", grad ? "" : "input ",
             nhwc ? "N,$b,$c,$a" : "N,$a,$b,$c", grad ? "x" : "y", grad ? "input " : "",
             nhwc ? "N,$d,$e,$a" : "N,$a,$d,$e");
    snprintf(op, sizeof op, "type: upsample%s, in: [x], out: [y], attrs: {scale: %lld, mode: %s}", grad ? "_grad" : "",
             (long long)scale, modes[_i % 3]);
    op_case c = {nhwc ? "NHWC" : "NCHW", tensors, op, "TT", "u", 0, 0};
    check_case(&c, &with, 2);
  }
}
END_TEST

/* --- What the launch changes -------------------------------------------------------------------------------------- */

static const op_case *case_of(const char *type) {
  for (size_t k = 0; k < N_CASES; k++) {
    const char *name = strstr(cases[k].op, "type: ") + 6;
    if (strncmp(name, type, strlen(type)) == 0 && name[strlen(type)] == ',') return &cases[k];
  }
  ck_abort_msg("no case of %s", type);
}

/* A round in the middle of a later iteration, of a job that is ahead of its periods, draws as on the host. */
START_TEST(dropout_of_a_round) {
  one_call one;
  open_case(case_of("dropout"), &(sizes){{7, 9}}, 3, &one);
  one.call.job_batch = 11, one.call.sample_offset = 5, one.call.iteration = 1, one.call.iterations = 2;
  rt_launch launch = one_call_launch();
  const int64_t ahead = -345;
  launch.step.period = 12345678901;
  launch.ahead = &ahead;
  launch.seed = UINT64_MAX - 3;
  check_call(case_of("dropout"), &one, &launch);
  one_call_close(&one);
}
END_TEST

START_TEST(learning_rates) {
  static const char *const types[] = {"sgd", "momentum", "adam"};
  one_call one;
  open_case(case_of(types[_i]), &(sizes){{5, 9}}, 1, &one);
  rt_launch launch = one_call_launch();
  const int64_t ahead = 3;
  launch.step = (planrt_step){.period = 40, .learning_rate = 0.125};
  launch.ahead = &ahead;
  check_call(case_of(types[_i]), &one, &launch);
  one_call_close(&one);
}
END_TEST

/* Losses of more positions than the blocks take at once, by rows of any length and by runs. */
START_TEST(loss_of_many_positions) {
  static const sizes shapes[] = {{{2056}}, {{3, 100, 300}}, {{3, 25, 40}}};
  static const int64_t batches[] = {270, 3, 3};
  int kind = 0;
  for (int k = 0; k < N_CASES; k++)
    if (strstr(cases[k].op, "type: softmax_xent,") && kind++ == _i) check_case(&cases[k], &shapes[_i], batches[_i]);
  ck_assert_int_eq(kind, 3);
}
END_TEST

/* Inference uses the running statistics and leaves them alone; nothing is dropped. */
START_TEST(inference) {
  static const char *const types[] = {"batchnorm", "dropout", "dropout_grad"};
  one_call one;
  open_case(case_of(types[_i]), &(sizes){{6, 5, 3}}, 3, &one);
  rt_launch launch = one_call_launch();
  launch.inference = true;
  check_call(case_of(types[_i]), &one, &launch);
  one_call_close(&one);
}
END_TEST

/* A recompute gives the same bits and has no side effects. */
START_TEST(recompute) {
  const op_case *c = case_of("batchnorm");
  const rt_cuda_op *op = rt_cuda_op_find(PL_OPTYPE_batchnorm);
  one_call one;
  device_call first, again;
  rt_launch launch = one_call_launch();
  open_case(c, &(sizes){{6, 50, 3}}, 4, &one);
  device_open(&first, &one.call, op, c->types, _i, false, false);
  device_open(&again, &one.call, op, c->types, _i, false, true);
  device_run(&first, op, &launch, false);
  rt_operand running[2] = {again.call.effects[0], again.call.effects[1]};
  again.call.effects[0].data = again.call.effects[1].data = NULL;
  device_run(&again, op, &launch, false);
  for (int32_t k = 0; k < 3; k++)
    ck_assert_mem_eq(first.call.out[k].data, again.call.out[k].data, (size_t)first.call.out[k].bytes);
  for (int32_t k = 0; k < 2; k++) {
    ck_assert_mem_eq(running[k].data, one.call.effects[k].data, (size_t)running[k].bytes);
    ck_assert_mem_ne(first.call.effects[k].data, one.call.effects[k].data, (size_t)running[k].bytes);
  }
  device_close(&first);
  device_close(&again);
  one_call_close(&one);
}
END_TEST

/* Variances that are tiny beside the mean's square. */
START_TEST(far_from_zero) {
  const op_case *c = NULL;
  for (size_t k = 0, seen = 0; k < N_CASES; k++)
    if (strstr(cases[k].op, "type: batchnorm, ") && (int)seen++ == _i) c = &cases[k];
  one_call one;
  device_call device;
  open_case(c, &(sizes){{16, 24, 16}}, 30, &one);
  float *x = one.call.in[0].data;
  for (int64_t i = 0; i < one.call.in[0].elements; i++) x[i] = 1000.0F + x[i] * 0.01F;
  device_open(&device, &one.call, rt_cuda_op_find(PL_OPTYPE_batchnorm), c->types, false, false, false);
  rt_launch launch = one_call_launch();
  device_run(&device, rt_cuda_op_find(PL_OPTYPE_batchnorm), &launch, false);
  rt_kernel_find(PL_OPTYPE_batchnorm)->run(&one.call, &launch);
  for (int64_t k = 0; k < one.call.out[2].elements; k++) {
    float want = ((const float *)one.call.out[2].data)[k], got = value_at(&device.call.out[2], k);
    ck_assert_msg(fabsf(got - want) < 1e-5F * want, "invstd is %g, not %g", (double)got, (double)want);
  }
  device_close(&device);
  one_call_close(&one);
}
END_TEST

/* --- Words -------------------------------------------------------------------------------------------------------- */

/* A digest is this sum, and what is drawn are these words, wherever the bytes lie. */
START_TEST(words) {
  enum { BYTES = 50011, SEED = 5, WORDS = (BYTES + 7) / 8 };
  _Alignas(16) static unsigned char memory[BYTES + 16];
  uint64_t key = rt_mix(SEED), from = 3, expected = rt_random(key, BYTES), word[WORDS] = {0}, sum = 0;
  unsigned char *data = memory + _i;
  ck_assert_int_eq(rt_cuda_draw(NULL, &from, 9, data, BYTES), cudaSuccess);
  memcpy(word, data, BYTES);
  for (uint64_t k = 0; k < WORDS; k++) {
    uint64_t drawn = rt_random(rt_random(from, 9), k);
    ck_assert_mem_eq(&word[k], &drawn, k + 1 < WORDS ? 8 : BYTES % 8);
    expected += rt_mix((key + k * UINT64_C(0x9e3779b97f4a7c15)) ^ word[k]);
  }
  ck_assert_int_eq(rt_cuda_digest(NULL, SEED, data, BYTES, &sum), cudaSuccess);
  ck_assert_uint_eq(sum, expected);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cuda kernels");
  TCase *c = tcase_create("cuda kernels");
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, ops, 0, N_CASES);
  tcase_add_loop_test(c, long_ones, 0, N_CASES);
  tcase_add_test(c, runs_of_channels);
  tcase_add_loop_test(c, windows, 0, N_POOLS);
  tcase_add_loop_test(c, large_windows, 0, N_WINDOWS);
  tcase_add_loop_test(c, upsampling, 0, 6);
  tcase_add_loop_test(c, loss_of_many_positions, 0, 3);
  tcase_add_test(c, dropout_of_a_round);
  tcase_add_loop_test(c, learning_rates, 0, 3);
  tcase_add_loop_test(c, inference, 0, 3);
  tcase_add_loop_test(c, recompute, 0, 2);
  tcase_add_loop_test(c, far_from_zero, 0, 2);
  tcase_add_loop_test(c, words, 0, 16);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? 1 : 0;
}
