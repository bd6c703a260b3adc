#include "tests/support/passes.h"

#include <check.h>

#include "planc/cost.h"
#include "tests/support/graphtext.h"
#include "tests/support/unit.h"

static const char net[] =
    "planc-graph: 1\nname: net\nloss: loss\ntensors:\n  x: input f32[N,3,8,8]\n  labels: input i64[N]\n"
    "  w: param f32[16,3,3,3]\n  c: f32[N,16,8,8]\n  r: f32[N,16,8,8] of c\n  p: f32[N,16,4,4]\n"
    "  flat: f32[N,256] of p\n  v: param f32[5,256]\n  z: f32[N,5]\n  loss: f32[]\n  probs: f32[N,5]\nops:\n"
    "  - {op: c, type: conv2d, in: [x, w], out: [c], attrs: {pad: [1, 1]}}\n"
    "  - {op: r, type: relu, in: [c], out: [r]}\n"
    "  - {op: p, type: maxpool2d, in: [r], out: [p], attrs: {kernel: [2, 2], stride: [2, 2]}}\n"
    "  - {op: z, type: linear, in: [flat, v], out: [z]}\n"
    "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n";

planc_graph *passes_graph(void) {
  planc_graph *forward = graph_of(net), *graph;
  ok(planc_graph_train(forward, PLANC_SGD, &graph));
  planc_graph_free(forward);
  return graph;
}

void passes_list(const planc_graph *graph, int64_t batch, rt_op_times *out) {
  rt_device_options nothing = {0};
  rt_device *device;
  planc_profile *described;
  ok(planc_profile_read("profiles/h100.json", &described));
  ok(rt_host_backend.open(&nothing, &device));
  rt_list_options how = {.backend = &rt_host_backend, .device = device, .graph = graph, .described = described};
  ok(rt_list_ops(&how, batch, out));
  rt_host_backend.close(device);
  planc_profile_free(described);
}

static planc_status take_pass(void *user, const rt_pass *pass) {
  passes *all = user;
  if (all->n == 0) all->first = pass->number;
  ck_assert_int_eq(pass->number, all->first + all->n++);
  all->of = pass->of;
  for (int64_t i = 0; i < pass->times->len; i++) {
    if (i > 0) ck_assert_int_gt(pass->times->data[i].op, pass->times->data[i - 1].op);
    VEC_PUSH(&all->times, pass->times->data[i]);
  }
  return NULL;
}

rt_op_options passes_options(const planrt_backend *backend, const planc_graph *graph, passes *into) {
  return (rt_op_options){
      .backend = backend, .graph = graph, .batch = 4, .repetitions = 2, .passed = take_pass, .user = into};
}
