#include "tests/cuda/kernel_call.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host_kernels.h"
#include "runtime/random.h"

enum { GUARD = 64, GUARD_BYTE = 0x5b };

/* --- Numbers ------------------------------------------------------------------------------------------------------ */

uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float from_bf16(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float out;
  memcpy(&out, &bits, sizeof out);
  return out;
}

float value_at(const rt_operand *of, int64_t i) {
  return of->dtype == PLANC_DTYPE_bf16 ? from_bf16(((const uint16_t *)of->data)[i]) : ((const float *)of->data)[i];
}

static uint64_t draws;
void seed_draws(uint64_t seed) {
  draws = seed;
}
uint64_t draw(uint64_t below) {
  return rt_random(17, draws++) % below;
}

/* --- Filling ------------------------------------------------------------------------------------------------------ */

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

static const float rare[] = {NAN, NAN, -0.0F, INFINITY, -INFINITY};

static void fill(const rt_operand *operand, char how, int64_t ids, const rt_call *call) {
  if (how == 'y') {
    rt_call forward = *call;
    rt_operand y = *operand;
    forward.out = &y;
    rt_launch launch = one_call_launch();
    rt_kernel_find(PL_OPTYPE_maxpool2d)->run(&forward, &launch);
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
    if (how == 'q') value = draw(20) == 0 ? rare[draw(sizeof rare / sizeof *rare)] : (float)draw(5) - 2.0F;
    ((float *)operand->data)[i] = from_bf16(to_bf16(value));
  }
}

/* --- The device's side -------------------------------------------------------------------------------------------- */

buffer buffer_new(const void *host, int64_t bytes, int64_t offset, int content) {
  buffer out = {.host = host, .bytes = bytes};
  size_t size = (size_t)(bytes + offset + 2 * GUARD + 255) / 256 * 256;
  out.memory = aligned_alloc(256, size);
  ck_assert(out.memory);
  memset(out.memory, GUARD_BYTE, size);
  out.data = out.memory + GUARD + offset;
  if (bytes > 0) memset(out.data, content, (size_t)bytes);
  return out;
}

void buffer_check(const buffer *of, const char *what) {
  for (int k = 0; k < GUARD; k++) {
    if (of->data[-1 - k] != GUARD_BYTE) ck_abort_msg("%s: written in front of an operand", what);
    if (of->data[of->bytes + k] != GUARD_BYTE) ck_abort_msg("%s: written behind an operand", what);
  }
}

/* An operand of the host's call in device memory, in its own type. */
static void place(device_call *device, rt_operand *to, const rt_operand *from, char type, bool t16, bool p16,
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

void device_open(device_call *device, const rt_call *host, const rt_cuda_op *op, const char *types, bool t16, bool p16,
                 bool apart) {
  *device = (device_call){.call = *host};
  rt_operand *next = device->operands;
  const struct {
    rt_operand *from, **to;
    int32_t count;
  } lists[] = {{host->in, &device->call.in, host->n_in},
               {host->out, &device->call.out, host->n_out},
               {host->effects, &device->call.effects, host->n_effects}};
  ck_assert_uint_eq(strlen(types), (size_t)(host->n_in + host->n_out + host->n_effects));
  for (int l = 0; l < 3; l++) {
    *lists[l].to = next;
    for (int32_t i = 0; i < lists[l].count; i++) place(device, next++, &lists[l].from[i], *types++, t16, p16, apart);
  }
  ck_assert_msg(rt_cuda_op_takes(op, &device->call), "%s does not take its types", host->op->type);
  int64_t bytes = op->workspace ? op->workspace(&device->call) : 0;
  device->workspace = buffer_new(NULL, bytes, 256 - GUARD, 0xff);
  device->call.workspace = device->workspace.data;
  device->call.workspace_bytes = bytes;
}

void device_close(device_call *device) {
  for (int b = 0; b < device->n_buffers; b++) free(device->buffers[b].memory);
  free(device->workspace.memory);
}

void device_run(device_call *device, const rt_cuda_op *op, const rt_launch *launch, bool by_pointer) {
  rt_cuda_step step = {launch->step.learning_rate, launch->step.period, launch->seed,
                       rt_launch_ahead(&device->call, launch)};
  rt_cuda_launch how = {.inference = launch->inference, .step = {.value = step}};
  if (by_pointer) how.step = (rt_cuda_step_source){.value = {-1.0, 99, 98, 97}, .at = &step};
  ck_assert_int_eq(op->run(&device->call, &how), cudaSuccess);
  for (int b = 0; b < device->n_buffers; b++) buffer_check(&device->buffers[b], device->call.op->type);
  buffer_check(&device->workspace, device->call.op->type);
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

void check_output(const rt_operand *got, const rt_operand *want, float tolerance, const char *what) {
  float largest = 1.0F;
  for (int64_t i = 0; tolerance > 0 && i < want->elements; i++)
    largest = fmaxf(largest, fabsf(((const float *)want->data)[i]));
  float rounding = got->dtype == PLANC_DTYPE_bf16 ? 0x1p-8F : 0.0F;
  for (int64_t i = 0; i < want->elements; i++) {
    float have = value_at(got, i), expect = ((const float *)want->data)[i];
    if (isnan(have) && isnan(expect)) continue;
    if (tolerance == 0 && rounding > 0) expect = from_bf16(to_bf16(expect));
    float room = tolerance * largest + rounding * fabsf(expect);
    bool same = tolerance > 0 ? fabsf(have - expect) <= room : memcmp(&have, &expect, sizeof have) == 0;
    if (!same)
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
static void check_precision(const op_case *c, const rt_call *before, const rt_call *after, const rt_launch *launch,
                            bool t16, bool p16) {
  const rt_cuda_op *op = rt_cuda_op_find(pl_optype_of(before->op));
  ck_assert_msg(op, "no op %s", before->op->type);
  char what[128];
  device_call first, other;
  snprintf(what, sizeof what, "%s, %s, %s", before->op->type, t16 ? p16 ? "bf16" : "mixed" : "f32", c->layout);
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
static void copy_operands(rt_call *to, const rt_call *from, device_call *keep) {
  *keep = (device_call){0};
  *to = *from;
  rt_operand *next = keep->operands;
  const struct {
    rt_operand *from, **to;
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
void check_call(const op_case *c, one_call *one, const rt_launch *launch) {
  rt_call before;
  device_call kept;
  copy_operands(&before, &one->call, &kept);
  rt_kernel_find(pl_optype_of(one->call.op))->run(&one->call, launch);
  bool has_t = strchr(c->types, 'T'), has_p = strchr(c->types, 'P');
  check_precision(c, &before, &one->call, launch, false, false);
  if (has_t) check_precision(c, &before, &one->call, launch, true, false);
  if (has_p) check_precision(c, &before, &one->call, launch, has_t, true);
  device_close(&kept);
}

static int64_t ids_of(const op_case *c, const sizes *with) {
  return c->ids ? with->of[c->ids - 'a'] : 1;
}

void open_case(const op_case *c, const sizes *with, int64_t batch, one_call *one) {
  char tensors[TEXT], op[TEXT];
  fill_in(tensors, c->tensors, with);
  fill_in(op, c->op, with);
  one_call_open(one, c->layout, tensors, op, batch, false);
  size_t letter = 0;
  rt_call *call = &one->call;
  for (int32_t i = 0; i < call->n_in; i++) {
    if (i && c->fills[letter + 1]) letter++;
    fill(&call->in[i], c->fills[letter], ids_of(c, with), call);
  }
  for (int32_t i = 0; i < call->n_effects; i++) fill(&call->effects[i], 'p', 1, call);
}

void check_case(const op_case *c, const sizes *with, int64_t batch) {
  for (int accumulate = 0; accumulate < 2; accumulate++) {
    one_call one;
    open_case(c, with, batch, &one);
    bool can = false;
    for (int32_t i = 0; accumulate && i < one.call.n_out; i++)
      if (one.graph->storages[one.graph->tensors[one.call.op->out[i]].storage].kind == PLANC_KIND_grad) {
        one.call.out[i].accumulate = can = true;
        fill(&one.call.out[i], 'u', 1, &one.call);
      }
    rt_launch launch = one_call_launch();
    launch.step.period = 3;
    if (!accumulate || can) check_call(c, &one, &launch);
    one_call_close(&one);
  }
}
