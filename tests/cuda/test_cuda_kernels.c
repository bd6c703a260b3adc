/* The CUDA backend's own kernels, emulated, against the host's. Every op runs in f32 and in bf16 on the same operands
 * as the host's f32 kernel, at several addresses, which must not change a bit, between guards. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/ops.h"
#include "runtime/host/kernels.h"
#include "runtime/random.h"
#include "tests/support/one_call.h"

enum { MAX_OPERANDS = 8, GUARD = 64, GUARD_BYTE = 0x5b, TEXT = 1024 };

/* --- Numbers ---------------------------------------------------------------------------------------------------- */

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

static float value_at(const planrt_operand *of, int64_t i) {
  return of->dtype == PLANC_DTYPE_bf16 ? from_bf16(((const uint16_t *)of->data)[i]) : ((const float *)of->data)[i];
}

static uint64_t draws;
static uint64_t draw(uint64_t below) {
  return planrt_random(17, draws++) % below;
}

/* --- Cases ------------------------------------------------------------------------------------------------------ */

/* An op over tensors whose sizes are letters a to f. `types` has a letter per input, output and side effect:
 *   T f32, then bf16; P f32, and bf16 too where T is; F f32; I i64.
 * `fills` has a letter per input and side effect: u uniform, p positive, q of few different values, i ids below size
 * `ids` and a few that are not, y what the forward op makes of input 0. */
typedef struct op_case {
  const char *layout, *tensors, *op, *types, *fills;
  float tolerance; /* 0: exact in f32, and the rounded f32 in bf16 */
  char ids;
} op_case;

typedef struct sizes {
  int64_t of[6];
} sizes;

static void fill_in(char *to, const char *text, const sizes *with) {
  size_t length = 0;
  for (const char *c = text; *c; c++) {
    bool is_size = *c == '$' && c[1] >= 'a' && c[1] <= 'f';
    if (is_size)
      length += (size_t)snprintf(to + length, TEXT - length, "%lld", (long long)with->of[*++c - 'a']);
    else
      to[length++] = *c;
    ck_assert_uint_lt(length, TEXT - 1);
  }
  to[length] = '\0';
}

static void fill(const planrt_operand *operand, char how, int64_t ids, const planrt_call *call) {
  if (how == 'y') {
    planrt_call forward = *call;
    planrt_operand y = *operand;
    forward.out = &y;
    planrt_launch launch = one_call_launch();
    planrt_kernel_find("maxpool2d")->run(&forward, &launch);
    return;
  }
  for (int64_t i = 0; i < operand->elements; i++) {
    if (how == 'i') {
      ((int64_t *)operand->data)[i] =
          draw(9) == 0 ? (int64_t)draw(3) - 1 + (draw(2) ? ids : 0) : (int64_t)draw((uint64_t)ids);
      continue;
    }
    float value = (float)draw(1 << 20) / (float)(1 << 18) - 2.0F;
    if (how == 'p') value = fabsf(value) + 0.25F;
    if (how == 'q') value = draw(40) == 0 ? NAN : (float)draw(5) - 2.0F;
    ((float *)operand->data)[i] = from_bf16(to_bf16(value));
  }
}

/* --- The device's side -------------------------------------------------------------------------------------------- */

typedef struct buffer {
  const void *host; /* the operand's data there */
  char *memory, *data;
  int64_t bytes;
} buffer;

typedef struct device_call {
  planrt_call call;
  planrt_operand operands[MAX_OPERANDS * 2];
  buffer buffers[MAX_OPERANDS * 2];
  int n_buffers;
  buffer workspace;
} device_call;

/* `bytes` bytes between guards, the first at `offset` from an aligned address. */
static buffer buffer_new(const void *host, int64_t bytes, int64_t offset, int content) {
  buffer out = {.host = host, .bytes = bytes};
  size_t size = (size_t)(bytes + offset + 2 * GUARD + 255) / 256 * 256;
  out.memory = aligned_alloc(256, size);
  ck_assert(out.memory);
  memset(out.memory, GUARD_BYTE, size);
  out.data = out.memory + GUARD + offset;
  if (bytes > 0) memset(out.data, content, (size_t)bytes);
  return out;
}

static void buffer_check(const buffer *of, const char *what) {
  for (int k = 0; k < GUARD; k++) {
    if (of->data[-1 - k] != GUARD_BYTE) ck_abort_msg("%s: written in front of an operand", what);
    if (of->data[of->bytes + k] != GUARD_BYTE) ck_abort_msg("%s: written behind an operand", what);
  }
}

/* An operand of the host's call in device memory, in its own type. */
static void place(device_call *device, planrt_operand *to, const planrt_operand *from, char type, bool t16, bool p16,
                  bool apart) {
  *to = *from;
  if ((type == 'T' && t16) || (type == 'P' && p16)) {
    to->dtype = PLANC_DTYPE_bf16;
    to->bytes = from->elements * 2;
  }
  for (int b = 0; b < device->n_buffers; b++)
    if (device->buffers[b].host == from->data) {
      to->data = device->buffers[b].data;
      return;
    }
  static const int64_t offsets[] = {0, 1, 2, 3, 4, 8};
  int64_t offset = apart ? offsets[draw(6)] * planc_dtype_bytes(to->dtype) : 0;
  buffer *made = &device->buffers[device->n_buffers++];
  *made = buffer_new(from->data, to->bytes, offset, 0);
  to->data = made->data;
  for (int64_t i = 0; i < from->elements; i++) {
    if (to->dtype == PLANC_DTYPE_bf16)
      ((uint16_t *)to->data)[i] = to_bf16(((const float *)from->data)[i]);
    else
      memcpy((char *)to->data + i * planc_dtype_bytes(to->dtype),
             (const char *)from->data + i * planc_dtype_bytes(to->dtype), (size_t)planc_dtype_bytes(to->dtype));
  }
}

/* The host's call on the device, `apart` at odd addresses. */
static void device_open(device_call *device, const planrt_call *host, const planrt_cuda_op *op, const char *types,
                        bool t16, bool p16, bool apart) {
  *device = (device_call){.call = *host};
  planrt_operand *next = device->operands;
  const struct {
    planrt_operand *from, **to;
    int32_t count;
  } lists[] = {{host->in, &device->call.in, host->n_in},
               {host->out, &device->call.out, host->n_out},
               {host->effects, &device->call.effects, host->n_effects}};
  ck_assert_uint_eq(strlen(types), (size_t)(host->n_in + host->n_out + host->n_effects));
  for (int l = 0; l < 3; l++) {
    *lists[l].to = next;
    for (int32_t i = 0; i < lists[l].count; i++) place(device, next++, &lists[l].from[i], *types++, t16, p16, apart);
  }
  ck_assert_msg(planrt_cuda_op_takes(op, &device->call), "%s does not take its types", op->type);
  int64_t bytes = op->workspace ? op->workspace(&device->call) : 0;
  device->workspace = buffer_new(NULL, bytes, 256 - GUARD, 0xff);
  device->call.workspace = device->workspace.data;
  device->call.workspace_bytes = bytes;
}

static void device_close(device_call *device) {
  for (int b = 0; b < device->n_buffers; b++) free(device->buffers[b].memory);
  free(device->workspace.memory);
}

static void device_run(device_call *device, const planrt_cuda_op *op, const planrt_launch *launch, bool by_pointer) {
  planrt_cuda_step step = {launch->step.learning_rate, launch->step.period, launch->seed};
  planrt_cuda_launch how = {.inference = launch->inference, .step = {.value = step}};
  if (by_pointer) how.step = (planrt_cuda_step_source){.value = {-1.0, 99, 98}, .at = &step};
  ck_assert_int_eq(op->run(&device->call, &how), cudaSuccess);
  for (int b = 0; b < device->n_buffers; b++) buffer_check(&device->buffers[b], op->type);
  buffer_check(&device->workspace, op->type);
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

static void check_output(const planrt_operand *got, const planrt_operand *want, float tolerance, const char *what) {
  float largest = 1.0F;
  for (int64_t i = 0; tolerance > 0 && i < want->elements; i++)
    largest = fmaxf(largest, fabsf(((const float *)want->data)[i]));
  float rounding = got->dtype == PLANC_DTYPE_bf16 ? 0x1p-8F : 0.0F;
  for (int64_t i = 0; i < want->elements; i++) {
    float have = value_at(got, i), expect = ((const float *)want->data)[i];
    if (isnan(have) && isnan(expect)) continue;
    if (tolerance == 0 && rounding > 0) expect = from_bf16(to_bf16(expect));
    float room = tolerance > 0 ? tolerance * largest + rounding * fabsf(expect) : 0.0F;
    if (!(fabsf(have - expect) <= room)) /* also what is not a number */
      ck_abort_msg("%s: element %lld of %lld is %.9g, not %.9g", what, (long long)i, (long long)want->elements,
                   (double)have, (double)expect);
  }
}

static void check_same_bits(const device_call *a, const device_call *b, const char *what) {
  for (int32_t i = 0; i < a->call.n_out; i++)
    ck_assert_msg(memcmp(a->call.out[i].data, b->call.out[i].data, (size_t)a->call.out[i].bytes) == 0,
                  "%s: output %d depends on where it lies", what, i);
  for (int32_t i = 0; i < a->call.n_effects; i++)
    ck_assert_msg(memcmp(a->call.effects[i].data, b->call.effects[i].data, (size_t)a->call.effects[i].bytes) == 0,
                  "%s: side effect %d depends on where it lies", what, i);
}

/* Runs the case as it is on the host and in one precision at three places on the device. */
static void check_precision(const op_case *c, const planrt_call *before, const planrt_call *after,
                            const planrt_launch *launch, bool t16, bool p16) {
  const planrt_cuda_op *op = planrt_cuda_op_find(before->op->type);
  ck_assert_msg(op && strcmp(op->type, before->op->type) == 0, "no op %s", before->op->type);
  char what[128];
  device_call first, other;
  snprintf(what, sizeof what, "%s, %s, %s", op->type, t16 ? p16 ? "bf16" : "mixed" : "f32", c->layout);
  device_open(&first, before, op, c->types, t16, p16, false);
  device_run(&first, op, launch, false);
  for (int32_t i = 0; i < before->n_out; i++) check_output(&first.call.out[i], &after->out[i], c->tolerance, what);
  for (int32_t i = 0; i < before->n_effects; i++)
    check_output(&first.call.effects[i], &after->effects[i], c->tolerance, what);
  for (int k = 0; k < 2; k++) {
    device_open(&other, before, op, c->types, t16, p16, true);
    device_run(&other, op, launch, true);
    check_same_bits(&first, &other, what);
    device_close(&other);
  }
  device_close(&first);
}

/* A copy of a host call's operands, as they are now. */
static void copy_operands(planrt_call *to, const planrt_call *from, device_call *keep) {
  *keep = (device_call){0};
  *to = *from;
  planrt_operand *next = keep->operands;
  const struct {
    planrt_operand *from, **to;
    int32_t count;
  } lists[] = {{from->in, &to->in, from->n_in},
               {from->out, &to->out, from->n_out},
               {from->effects, &to->effects, from->n_effects}};
  for (int l = 0; l < 3; l++) {
    *lists[l].to = next;
    for (int32_t i = 0; i < lists[l].count; i++) place(keep, next++, &lists[l].from[i], 'F', false, false, false);
  }
}

/* The same call with its first operands kept aside, so that in place nothing is lost. */
static void check_call(const op_case *c, one_call *one, const planrt_launch *launch) {
  planrt_call before;
  device_call kept;
  copy_operands(&before, &one->call, &kept);
  planrt_kernel_find(one->call.op->type)->run(&one->call, launch);
  bool has_t = strchr(c->types, 'T'), has_p = strchr(c->types, 'P');
  check_precision(c, &before, &one->call, launch, false, false);
  if (has_t) check_precision(c, &before, &one->call, launch, true, false);
  if (has_p) check_precision(c, &before, &one->call, launch, has_t, true);
  device_close(&kept);
}

static int64_t ids_of(const op_case *c, const sizes *with) {
  return c->ids ? with->of[c->ids - 'a'] : 1;
}

static void open_case(const op_case *c, const sizes *with, int64_t batch, one_call *one) {
  char tensors[TEXT], op[TEXT];
  fill_in(tensors, c->tensors, with);
  fill_in(op, c->op, with);
  one_call_open(one, c->layout, tensors, op, batch, false);
  size_t letter = 0;
  planrt_call *call = &one->call;
  for (int32_t i = 0; i < call->n_in; i++) {
    if (i && c->fills[letter + 1]) letter++;
    fill(&call->in[i], c->fills[letter], ids_of(c, with), call);
  }
  for (int32_t i = 0; i < call->n_effects; i++) fill(&call->effects[i], 'p', 1, call);
}

static void check_case(const op_case *c, const sizes *with, int64_t batch) {
  for (int accumulate = 0; accumulate < 2; accumulate++) {
    one_call one;
    open_case(c, with, batch, &one);
    bool can = false;
    for (int32_t i = 0; accumulate && i < one.call.n_out; i++)
      if (one.graph->storages[one.graph->tensors[one.call.op->out[i]].storage].kind == PLANC_KIND_grad) {
        one.call.out[i].accumulate = can = true;
        fill(&one.call.out[i], 'u', 1, &one.call);
      }
    planrt_launch launch = one_call_launch();
    launch.step.period = 3;
    if (!accumulate || can) check_call(c, &one, &launch);
    one_call_close(&one);
  }
}

/* --- Ops on anything ------------------------------------------------------------------------------------------------
 */

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
    {"NCHW", "x: input f32[N,$a,$b,$c]\ny: f32[N,$b,$a,$c]", "type: transpose, in: [x], out: [y], attrs: {axis: 1}",
     "TT", "u", 0, 0},
    {"NCHW", "x: input f32[N,$a,$b]\ny: f32[N,$b,$a]", "type: transpose, in: [x], out: [y], attrs: {axis: 1}", "TT",
     "u", 0, 0},
    {"NCHW", "a: input f32[N,$a,$d]\nb: input f32[N,$b,$d]\nc: input f32[N,$c,$d]\ny: f32[N,$e,$d]",
     "type: concat, in: [a, b, c], out: [y], attrs: {axis: 1}", "TTTT", "u", 0, 0},
    {"NCHW", "dy: input f32[N,$e,$d]\nda: f32[N,$b,$d]",
     "type: concat_grad, in: [dy], out: [da], attrs: {axis: 1, offset: $a}", "TT", "u", 0, 0},
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
  draws = (uint64_t)_i << 32;
  for (int round = 0; round < 6; round++) {
    sizes with;
    for (int k = 0; k < 4; k++) with.of[k] = small[draw(sizeof small / sizeof *small)];
    if (round % 3 == 1) with.of[draw(3)] = large[draw(sizeof large / sizeof *large)];
    int64_t most = with.of[0] * with.of[1] * with.of[2];
    if (most > 20000) with.of[draw(3)] = 1;
    with.of[4] = with.of[0] + with.of[1] + with.of[2];
    check_case(&cases[_i], &with, round % 4 == 3 ? 1 : 1 + (int64_t)draw(5));
  }
}
END_TEST

/* Rows that take a whole block, and sums in many slices. */
START_TEST(long_ones) {
  draws = (uint64_t)_i << 40;
  static const sizes shapes[] = {{{2, 2056, 3}}, {{1, 5003, 1}}, {{1100, 1, 2}}, {{8, 70, 80}}, {{16, 3, 2}}};
  static const int64_t batches[] = {2, 1, 4, 3, 700};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    sizes with = shapes[s];
    with.of[3] = 2, with.of[4] = with.of[0] + with.of[1] + with.of[2];
    check_case(&cases[_i], &with, batches[s]);
  }
}
END_TEST

/* --- Windows ------------------------------------------------------------------------------------------------------ */

/* Draws a window, and an image that it fits. */
static void draw_window(char *attrs, sizes *with) {
  int64_t *of = with->of, kernel[2], stride[2], pad[2];
  of[0] = (int64_t[]){1, 2, 3, 8, 16}[draw(5)];
  for (int d = 0; d < 2; d++) {
    kernel[d] = 1 + (int64_t)draw(4);
    stride[d] = 1 + (int64_t)draw(3);
    pad[d] = (int64_t)draw((uint64_t)kernel[d]);
    of[1 + d] = kernel[d] + (int64_t)draw(12);
    of[3 + d] = (of[1 + d] + 2 * pad[d] - kernel[d]) / stride[d] + 1;
  }
  snprintf(attrs, TEXT, "attrs: {kernel: [%lld, %lld], stride: [%lld, %lld], pad: [%lld, %lld]}", (long long)kernel[0],
           (long long)kernel[1], (long long)stride[0], (long long)stride[1], (long long)pad[0], (long long)pad[1]);
}

START_TEST(windows) {
  static const struct {
    const char *tensors, *op, *types, *fills;
  } kinds[] = {{"x: input f32[%s]\ny: f32[%s]", "type: maxpool2d, in: [x], out: [y], %s", "TT", "q"},
               {"x: input f32[%s]\ny: f32[%s]", "type: avgpool2d, in: [x], out: [y], %s", "TT", "u"},
               {"dx: f32[%s]\ndy: input f32[%s]", "type: avgpool2d_grad, in: [dy], out: [dx], %s", "TT", "u"},
               {"x: input f32[%s]\ny: input f32[%s]\ndy: input f32[%s]\ndx: f32[%s]",
                "type: maxpool2d_grad, in: [x, y, dy], out: [dx], %s", "TTTT", "qyu"}};
  draws = (uint64_t)_i << 32;
  for (int round = 0; round < 40; round++) {
    bool nhwc = round % 2;
    char attrs[TEXT], tensors[TEXT], op[TEXT], image[2][64];
    sizes with;
    draw_window(attrs, &with);
    snprintf(image[0], sizeof image[0], nhwc ? "N,$b,$c,$a" : "N,$a,$b,$c");
    snprintf(image[1], sizeof image[1], nhwc ? "N,$d,$e,$a" : "N,$a,$d,$e");
    snprintf(tensors, sizeof tensors, kinds[_i].tensors, image[0], image[1], image[1], image[0]);
    snprintf(op, sizeof op, kinds[_i].op, attrs);
    op_case c = {nhwc ? "NHWC" : "NCHW", tensors, op, kinds[_i].types, kinds[_i].fills, 0, 0};
    check_case(&c, &with, 1 + (int64_t)draw(3));
  }
}
END_TEST

START_TEST(upsampling) {
  draws = (uint64_t)_i << 32;
  for (int round = 0; round < 16; round++) {
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

/* A round in the middle of a later iteration draws as on the host. */
START_TEST(dropout_of_a_round) {
  one_call one;
  open_case(case_of("dropout"), &(sizes){{7, 9}}, 3, &one);
  one.call.job_batch = 11, one.call.sample_offset = 5, one.call.iteration = 1, one.call.iterations = 2;
  planrt_launch launch = one_call_launch();
  launch.step.period = 12345678901;
  launch.seed = UINT64_MAX - 3;
  check_call(case_of("dropout"), &one, &launch);
  one_call_close(&one);
}
END_TEST

START_TEST(learning_rates) {
  static const char *const types[] = {"sgd", "momentum", "adam"};
  one_call one;
  open_case(case_of(types[_i]), &(sizes){{5, 9}}, 1, &one);
  planrt_launch launch = one_call_launch();
  launch.step = (planrt_step){.period = 40, .learning_rate = 0.125};
  check_call(case_of(types[_i]), &one, &launch);
  one_call_close(&one);
}
END_TEST

/* Inference uses the running statistics and leaves them alone; nothing is dropped. */
START_TEST(inference) {
  static const char *const types[] = {"batchnorm", "dropout", "dropout_grad"};
  one_call one;
  open_case(case_of(types[_i]), &(sizes){{6, 5, 3}}, 3, &one);
  planrt_launch launch = one_call_launch();
  launch.inference = true;
  check_call(case_of(types[_i]), &one, &launch);
  one_call_close(&one);
}
END_TEST

/* A recompute gives the same bits and has no side effects. */
START_TEST(recompute) {
  const op_case *c = case_of("batchnorm");
  const planrt_cuda_op *op = planrt_cuda_op_find("batchnorm");
  one_call one;
  device_call first, again;
  planrt_launch launch = one_call_launch();
  open_case(c, &(sizes){{6, 50, 3}}, 4, &one);
  device_open(&first, &one.call, op, c->types, _i, false, false);
  device_open(&again, &one.call, op, c->types, _i, false, true);
  device_run(&first, op, &launch, false);
  planrt_operand running[2] = {again.call.effects[0], again.call.effects[1]};
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
  device_open(&device, &one.call, planrt_cuda_op_find("batchnorm"), c->types, false, false, false);
  planrt_launch launch = one_call_launch();
  device_run(&device, planrt_cuda_op_find("batchnorm"), &launch, false);
  planrt_kernel_find("batchnorm")->run(&one.call, &launch);
  for (int64_t k = 0; k < one.call.out[2].elements; k++) {
    float want = ((const float *)one.call.out[2].data)[k], got = value_at(&device.call.out[2], k);
    ck_assert_msg(fabsf(got - want) < 1e-5F * want, "invstd is %g, not %g", (double)got, (double)want);
  }
  device_close(&device);
  one_call_close(&one);
}
END_TEST

/* --- Casts and sums of rounds ------------------------------------------------------------------------------------ */

START_TEST(casts) {
  draws = (uint64_t)_i << 32;
  planc_dtype from = _i & 1 ? PLANC_DTYPE_bf16 : PLANC_DTYPE_f32, to = _i & 2 ? PLANC_DTYPE_bf16 : PLANC_DTYPE_f32;
  bool accumulate = _i & 4;
  for (int64_t n = 1; n < 3000; n = n * 3 + 1) {
    int64_t offset = (int64_t)draw(4) * 4;
    buffer x = buffer_new(NULL, n * planc_dtype_bytes(from), offset, 0);
    buffer y = buffer_new(NULL, n * planc_dtype_bytes(to), (int64_t)draw(2) * offset, 0);
    float *want = calloc((size_t)n, sizeof *want);
    planrt_operand in = {.data = x.data, .dtype = from, .rank = 1, .dims = {n}, .elements = n, .bytes = x.bytes};
    planrt_operand out = {.data = y.data, .dtype = to, .rank = 1, .dims = {n}, .elements = n, .bytes = y.bytes};
    out.accumulate = accumulate;
    for (int64_t i = 0; i < n; i++) {
      float a = (float)draw(1 << 24) * 0x1p-20F - 8.0F, b = from_bf16(to_bf16((float)draw(999) * 0.37F));
      if (from == PLANC_DTYPE_bf16) a = from_bf16(((uint16_t *)x.data)[i] = to_bf16(a));
      if (from == PLANC_DTYPE_f32) ((float *)x.data)[i] = a;
      if (to == PLANC_DTYPE_bf16) ((uint16_t *)y.data)[i] = to_bf16(b);
      if (to == PLANC_DTYPE_f32) ((float *)y.data)[i] = b;
      want[i] = accumulate ? b + a : a;
    }
    planrt_call call = {.in = &in, .out = &out, .n_in = 1, .n_out = 1};
    const planrt_cuda_op *op = accumulate && from == to ? &planrt_cuda_accumulate : planrt_cuda_op_find("cast");
    ck_assert(planrt_cuda_op_takes(op, &call));
    ck_assert(from == to || !planrt_cuda_op_takes(&planrt_cuda_accumulate, &call));
    ck_assert_int_eq(op->run(&call, &(planrt_cuda_launch){0}), cudaSuccess);
    buffer_check(&y, "cast");
    check_output(&out, &(planrt_operand){.data = want, .elements = n}, 0, "cast");
    free(want);
    free(x.memory);
    free(y.memory);
  }
}
END_TEST

/* What is half-way between two bf16 goes to the even one; infinities and what is not a number stay what they are. */
START_TEST(rounding) {
  const float x[] = {1.00390625F, 1.01171875F, -1.00390625F, 3.4e38F, INFINITY,
                     -INFINITY,   NAN,         0x1p-140F,    -0.0F,   1e-3F};
  enum { N = sizeof x / sizeof *x };
  uint16_t y[N];
  ck_assert_int_eq(planrt_cuda_convert(NULL, PLANRT_CUDA_F32, PLANRT_CUDA_BF16, N, x, y, false), cudaSuccess);
  ck_assert_int_eq(y[0], 0x3f80);
  ck_assert_int_eq(y[1], 0x3f82);
  ck_assert_int_eq(y[2], 0xbf80);
  ck_assert_int_eq(y[3], 0x7f80);
  for (int k = 0; k < N; k++)
    ck_assert_msg(isnan(x[k]) ? isnan(from_bf16(y[k])) : y[k] == to_bf16(x[k]), "element %d", k);
}
END_TEST

START_TEST(dtypes_that_are_not_taken) {
  one_call one;
  open_case(case_of("bias"), &(sizes){{3, 2, 2}}, 2, &one);
  const planrt_cuda_op *op = planrt_cuda_op_find("bias");
  planc_dtype x = PLANC_DTYPE_f32, b = PLANC_DTYPE_f32, y = PLANC_DTYPE_f32;
  const struct {
    planc_dtype x, b, y;
    bool taken;
  } tries[] = {{x, b, y, true},
               {PLANC_DTYPE_bf16, b, PLANC_DTYPE_bf16, true},
               {PLANC_DTYPE_bf16, PLANC_DTYPE_bf16, PLANC_DTYPE_bf16, true},
               {PLANC_DTYPE_bf16, b, y, false},
               {x, PLANC_DTYPE_bf16, y, false},
               {PLANC_DTYPE_f16, PLANC_DTYPE_f16, PLANC_DTYPE_f16, false},
               {PLANC_DTYPE_i64, PLANC_DTYPE_i64, PLANC_DTYPE_i64, false}};
  for (size_t k = 0; k < sizeof tries / sizeof *tries; k++) {
    one.call.in[0].dtype = tries[k].x, one.call.in[1].dtype = tries[k].b, one.call.out[0].dtype = tries[k].y;
    ck_assert_int_eq(planrt_cuda_op_takes(op, &one.call), tries[k].taken);
  }
  one_call_close(&one);
  static const char *const libraries[] = {"conv2d",       "conv2d_dgrad", "conv2d_wgrad", "linear",    "linear_dgrad",
                                          "linear_wgrad", "matmul",       "matmul_nt",    "matmul_tn", "no such op"};
  for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++) ck_assert(!planrt_cuda_op_find(libraries[k]));
}
END_TEST

/* --- Beside ops --------------------------------------------------------------------------------------------------- */

static uint64_t digest_of(uint64_t seed, const void *data, int64_t bytes) {
  uint64_t sum = 0;
  ck_assert_int_eq(planrt_cuda_digest(NULL, seed, data, bytes, &sum), cudaSuccess);
  return sum;
}

/* Nothing but the bytes, their number and the seed counts. */
START_TEST(digests) {
  static const int64_t lengths[] = {0, 1, 7, 8, 9, 64, 1001, 30000};
  int64_t n = lengths[_i];
  char *data = calloc((size_t)n + 32, 1);
  for (int64_t i = 0; i < n; i++) data[i] = (char)draw(256);
  uint64_t digest = digest_of(1, data, n);
  ck_assert_uint_eq(digest_of(1, data, n), digest);
  ck_assert_uint_ne(digest_of(2, data, n), digest);
  ck_assert_uint_ne(digest_of(1, data, n + 1), digest);
  for (int64_t at = 0; at < n; at = at * 2 + 1) {
    data[at] ^= 0x10;
    ck_assert_uint_ne(digest_of(1, data, n), digest);
    data[at] ^= 0x10;
  }
  for (int64_t shift = 1; shift < 16; shift++) {
    memmove(data + shift, data + shift - 1, (size_t)n);
    ck_assert_uint_eq(digest_of(1, data + shift, n), digest);
  }
  free(data);
}
END_TEST

START_TEST(steps) {
  planrt_cuda_step at = {0}, value = {0.5, 1234567890123, 42};
  ck_assert_int_eq(planrt_cuda_set_step(NULL, &at, &value), cudaSuccess);
  ck_assert_mem_eq(&at, &value, sizeof at);
  ck_assert_int_eq(planrt_cuda_delay(NULL, 20000), cudaSuccess);
}
END_TEST

START_TEST(bias_of_a_convolution) {
  float y[2 * 3 * 5], b[3] = {1.0F, -2.0F, 0.5F};
  for (int nhwc = 0; nhwc < 2; nhwc++) {
    for (int i = 0; i < 30; i++) y[i] = (float)i;
    ck_assert_int_eq(planrt_cuda_add_bias(NULL, PLANC_DTYPE_f32, y, b, PLANC_DTYPE_f32, nhwc ? 10 : 2, 3, nhwc ? 1 : 5),
                     cudaSuccess);
    for (int i = 0; i < 30; i++) ck_assert(y[i] == (float)i + b[nhwc ? i % 3 : i / 5 % 3]);
  }
}
END_TEST

/* A stand-in gives the same bytes again, wholly others when a byte of an input changes, and its side effects do not
 * come into it. */
static void run_stand_in(one_call *one, char *results, size_t size) {
  char workspace[300];
  uint64_t scratch;
  planrt_cuda_launch launch = {.scratch = &scratch};
  memset(workspace, 1, sizeof workspace);
  one->call.workspace = workspace;
  one->call.workspace_bytes = sizeof workspace - 1;
  ck_assert_int_eq(planrt_cuda_synthetic.run(&one->call, &launch), cudaSuccess);
  ck_assert(workspace[0] == (char)0xa5 && workspace[sizeof workspace - 2] == (char)0xa5 &&
            workspace[sizeof workspace - 1] == 1);
  size_t at = 0;
  for (int32_t i = 0; i < one->call.n_out; i++) {
    ck_assert_uint_le(at + (size_t)one->call.out[i].bytes, size);
    memcpy(results + at, one->call.out[i].data, (size_t)one->call.out[i].bytes);
    at += (size_t)one->call.out[i].bytes;
  }
}

static size_t differing(const char *a, const char *b, size_t size) {
  size_t count = 0;
  for (size_t i = 0; i < size; i++) count += a[i] != b[i];
  return count;
}

START_TEST(stand_ins) {
  enum { SIZE = 4 * (2 * 5 * 3 + 5 + 5) };
  char first[SIZE], again[SIZE], changed[SIZE], recomputed[SIZE], running[20];
  one_call one;
  open_case(case_of("batchnorm"), &(sizes){{5, 3, 1}}, 2, &one);
  run_stand_in(&one, first, SIZE);
  memcpy(running, one.call.effects[0].data, sizeof running);
  run_stand_in(&one, again, SIZE);
  ck_assert_mem_eq(first, again, SIZE);
  ck_assert_uint_gt(differing(running, one.call.effects[0].data, sizeof running), sizeof running / 2);
  const planc_instance *of = &one.trace->instances[one.call.instance];
  void *kept[ONE_CALL_MAX_ACCESSES];
  memcpy(kept, one.call.memory, (size_t)of->n_accesses * sizeof *kept);
  for (int32_t k = 0; k < of->n_accesses; k++)
    if (one.trace->accesses[of->first_access + k].effect) one.call.memory[k] = NULL;
  run_stand_in(&one, recomputed, SIZE);
  ck_assert_mem_eq(first, recomputed, SIZE);
  memcpy(one.call.memory, kept, (size_t)of->n_accesses * sizeof *kept);
  ((char *)one.call.in[0].data)[one.call.in[0].bytes - 1] ^= 1;
  run_stand_in(&one, changed, SIZE);
  ck_assert_uint_gt(differing(first, changed, SIZE), SIZE * 9 / 10);
  ck_assert_int_eq(planrt_cuda_synthetic.run(&one.call, &(planrt_cuda_launch){0}), cudaErrorInvalidValue);
  one_call_close(&one);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cuda kernels");
  TCase *c = tcase_create("cuda kernels");
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, ops, 0, N_CASES);
  tcase_add_loop_test(c, long_ones, 0, N_CASES);
  tcase_add_loop_test(c, windows, 0, 4);
  tcase_add_loop_test(c, upsampling, 0, 6);
  tcase_add_test(c, dropout_of_a_round);
  tcase_add_loop_test(c, learning_rates, 0, 3);
  tcase_add_loop_test(c, inference, 0, 3);
  tcase_add_loop_test(c, recompute, 0, 2);
  tcase_add_loop_test(c, far_from_zero, 0, 2);
  tcase_add_loop_test(c, casts, 0, 8);
  tcase_add_test(c, rounding);
  tcase_add_test(c, dtypes_that_are_not_taken);
  tcase_add_loop_test(c, digests, 0, 8);
  tcase_add_test(c, steps);
  tcase_add_test(c, bias_of_a_convolution);
  tcase_add_test(c, stand_ins);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? 1 : 0;
}
