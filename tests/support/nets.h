/* Nets that train within milliseconds: one with dropout, and one that computes for longer. */
#ifndef TESTS_NETS_H
#define TESTS_NETS_H

#define NARROW_NET(name)                                                                             \
  "planc-graph: 1\nname: " name                                                                      \
  "\nloss: loss\ntensors:\n"                                                                         \
  "  x: input f32[N,6]\n  labels: input i64[N]\n  w: param f32[5,6]\n  h: f32[N,5]\n  d: f32[N,5]\n" \
  "  v: param f32[3,5]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n"                           \
  "ops:\n"                                                                                           \
  "  - {op: h, type: linear, in: [x, w], out: [h]}\n"                                                \
  "  - {op: d, type: dropout, in: [h], out: [d], attrs: {p: 0.25, seed: 1}}\n"                       \
  "  - {op: z, type: linear, in: [d, v], out: [z]}\n"                                                \
  "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n"

#define WIDE_NET                                                                                                   \
  "planc-graph: 1\nname: wide\nloss: loss\ntensors:\n"                                                             \
  "  x: input f32[N,6]\n  labels: input i64[N]\n  w: param f32[64,6]\n  h: f32[N,64]\n"                            \
  "  u: param f32[64,64]\n  g: f32[N,64]\n  v: param f32[3,64]\n  z: f32[N,3]\n  loss: f32[]\n  probs: f32[N,3]\n" \
  "ops:\n"                                                                                                         \
  "  - {op: h, type: linear, in: [x, w], out: [h]}\n"                                                              \
  "  - {op: g, type: linear, in: [h, u], out: [g]}\n"                                                              \
  "  - {op: z, type: linear, in: [g, v], out: [z]}\n"                                                              \
  "  - {op: l, type: softmax_xent, in: [z, labels], out: [loss, probs]}\n"

#endif
