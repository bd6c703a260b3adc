#include "tests/support/one_call.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/random.h"
#include "tests/support/forward.h"

void one_call_open(one_call *one, const char *layout, const char *tensors, const char *op, int64_t batch,
                   bool synthetic) {
  *one = (one_call){0};
  char text[2048];
  size_t length = (size_t)snprintf(text, sizeof text, "planc-graph: 1\nname: one\nlayout: %s\ntensors:\n  ", layout);
  for (const char *c = tensors; *c && length < sizeof text / 2; c++) {
    text[length++] = *c;
    if (*c == '\n' && c[1]) length += (size_t)snprintf(text + length, sizeof text - length, "  ");
  }
  length += (size_t)snprintf(text + length, sizeof text - length, "\nops:\n  - {op: o, %s}\n", op);
  ck_assert(length < sizeof text);
  ok(planc_graph_parse(text, length, "one", &one->graph));
  planc_job job = {.graph = one->graph, .batch = batch, .n_rounds = 1, .rounds = &batch, .iterations = 1};
  ok(planc_expand(&job, 1, &one->trace));
  rt_device_options options = {.n_streams = 1, .synthetic = synthetic};
  ok(rt_host_backend.open(&options, &one->device));
  ck_assert_int_le(one->trace->n_accesses, ONE_CALL_MAX_ACCESSES);
  for (int32_t a = 0; a < one->trace->n_accesses; a++) {
    one->memory[a] = calloc(1, (size_t)one->trace->buffers[one->trace->accesses[a].buffer].bytes);
    ck_assert(one->memory[a]);
  }
  ok(rt_call_make(&one->arena, one->trace, 0, 0, one->memory, &one->call));
  one->call.algorithm = "default";
  ok(rt_host_backend.prepare(one->device, &one->call));
}

void one_call_close(one_call *one) {
  for (int32_t a = 0; a < one->trace->n_accesses; a++) free(one->memory[a]);
  rt_host_backend.close(one->device);
  pl_arena_free(&one->arena);
  planc_trace_free(one->trace);
  planc_graph_free(one->graph);
}

rt_launch one_call_launch(void) {
  return (rt_launch){.step = {.learning_rate = 0.0 / 0.0}, .seed = 7};
}

void one_call_run(one_call *one, const rt_launch *launch) {
  ok(rt_host_backend.launch(one->device, 0, &one->call, launch, NULL));
}

void one_call_fill(const rt_operand *operand, uint64_t seed, float low, float high) {
  float *data = operand->data;
  for (int64_t i = 0; i < operand->elements; i++) data[i] = low + (high - low) * rt_uniform(seed, (uint64_t)i);
}
