/* A hand-made plan that uses everything a plan can, for tests of the checker. */
#ifndef PLANC_TESTS_TINY_PLAN_H
#define PLANC_TESTS_TINY_PLAN_H

#include "tests/support/judge.h"

/* At batch 2 every storage has 256 bytes, the loss 4. */
static const char tiny_graph[] =
    "planc-graph: 1\n"
    "name: tiny\n"
    "loss: loss\n"
    "tensors:\n"
    "  x: input f32[N,32]\n"
    "  w: param f32[64]\n"
    "  s: state f32[64]\n"
    "  y: f32[N,32]\n"
    "  z: f32[N,32]\n"
    "  loss: f32[]\n"
    "  dy: f32[N,32]\n"
    "  g: grad f32[64]\n"
    "ops:\n"
    "  - {op: f1, type: t.make, in: [x, w], out: [y], effects: [s]}\n"
    "  - {op: f2, type: t.make, in: [y], out: [z]}\n"
    "  - {op: f3, type: t.make, in: [z], out: [loss]}\n"
    "  - {op: b1, type: t.make, phase: backward, in: [z], out: [dy]}\n"
    "  - {op: b2, type: t.make, phase: backward, in: [dy, y], out: [g]}\n"
    "  - {op: up, type: t.make, phase: optimizer, in: [w, g], out: [w]}\n";

/* y leaves for the host after f1 and comes back for b2; f1 is run again in between, and y is moved. Residencies: w 0,
 * s 1, x 2, y 3, y on the host 4, z 5, loss 6, dy 7, y back 8, y again 9, y moved 10, g 11. Events: 0 the prologue's
 * copies, 1 the end of compute, 2 x is there, 3 f1, 4 y is on the host, 5 f3, 6 the loss is out, 7 b1, 8 y is back. */
static const char tiny_script[] =
    "boundary w 0\n"
    "boundary s 256\n"
    "prologue\n"
    "acquire 0 w 0\n"
    "acquire 1 s 256\n"
    "copy 0 user on 1\n"
    "copy 1 user on 1\n"
    "record 0 on 1\n"
    "wait 0 on 0\n"
    "wait 0 on 2\n"
    "record 1 on 0\n"
    "body\n"
    "acquire 2 x 512\n"
    "wait 1 lag 1 on 1\n"
    "copy 2 user on 1\n"
    "record 2 on 1\n"
    "wait 2 on 0\n"
    "acquire 3 y 768\n"
    "exec f1 ws 3072 512 use 2 0 1 3\n"
    "record 3 on 0\n"
    "wait 3 on 2\n"
    "acquire 4 y 0 host\n"
    "copy 4 3 on 2\n"
    "record 4 on 2\n"
    "acquire 5 z 1024\n"
    "exec f2 use 3 5\n"
    "release 3\n"
    "acquire 6 loss 1280\n"
    "exec f3 use 5 6\n"
    "record 5 on 0\n"
    "wait 5 on 2\n"
    "copy user 6 on 2\n"
    "record 6 on 2\n"
    "acquire 7 dy 1536\n"
    "exec b1 use 5 7\n"
    "release 5\n"
    "release 6\n"
    "record 7 on 0\n"
    "acquire 8 y 1024\n"
    "wait 7 on 1\n"
    "wait 4 on 1\n"
    "copy 8 4 on 1\n"
    "release 4\n"
    "record 8 on 1\n"
    "wait 4 on 0\n"
    "acquire 9 y 768\n"
    "exec f1 re use 2 0 -1 9\n"
    "release 9\n"
    "wait 8 on 0\n"
    "acquire 10 y 2048\n"
    "copy 10 8 on 0\n"
    "release 8\n"
    "acquire 11 g 1792\n"
    "exec b2 use 7 10 11\n"
    "wait 6 on 0\n"
    "exec up use 0 11\n"
    "record 1 on 0\n"
    "release 2\n"
    "release 7\n"
    "release 10\n"
    "release 11\n"
    "epilogue\n"
    "wait 1 lag 1 on 2\n"
    "copy user 0 on 2\n"
    "copy user 1 on 2\n"
    "release 0\n"
    "release 1\n";

enum { TINY_ARENA = 4096, TINY_HOST_ARENA = 512 };
enum { DEVICE, HOST, USER }; /* memories */

/* The plan of a script like the one above; freed by the caller. */
static inline planc_plan *tiny_plan(const planc_graph *graph, const char *script) {
  return judge_plan(graph, script, TINY_ARENA, TINY_HOST_ARENA);
}

#endif
