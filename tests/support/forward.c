#include "tests/support/forward.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/spec.h"
#include "util/real.h"

static planc_graph_builder *builder;

void forward_begin(void) {
  ok(planc_graph_builder_new(&builder));
  ok(planc_graph_builder_header(builder, "test", PLANC_LAYOUT_NCHW, 32, "k40m", NULL, "modnn", "by hand"));
}

static int32_t find(const char *name) {
  int32_t tensor = planc_graph_builder_find(builder, name);
  ck_assert_msg(tensor >= 0, "no tensor %s", name);
  return tensor;
}

void forward_tensor(const char *name, const char *text) {
  pl_spec spec;
  const char *at;
  char of[256] = "";
  ok(pl_spec_parse(text, &spec, &at));
  if (spec.of) (void)snprintf(of, sizeof of, "%.*s", (int)spec.of_length, spec.of);
  int32_t root = spec.of ? find(of) : -1, index;
  ok(planc_graph_builder_tensor(builder, name, spec.kind, spec.dtype, spec.rank, spec.dims, root, spec.offset, &index));
}

static int32_t find_all(const char *names, int32_t *out) {
  int32_t count = 0, length;
  char name[256];
  for (; sscanf(names, " %255s%n", name, &length) == 1; names += length) {
    out[count++] = find(name);
  }
  return count;
}

/* Attributes as "key=1 key=1,1 key=0.5 key=text". */
static int32_t parse_attrs(const char *text, planc_attr *out, char (*keys)[32], char (*values)[32],
                           int64_t (*ints)[2]) {
  int32_t count = 0, length;
  for (; sscanf(text, " %31[^=]=%31s%n", keys[count], values[count], &length) == 2; text += length, count++) {
    out[count] = (planc_attr){.key = keys[count]};
    char *comma = strchr(values[count], ',');
    if (comma) {
      ints[count][0] = strtol(values[count], NULL, 10);
      ints[count][1] = strtol(comma + 1, NULL, 10);
      out[count].type = PLANC_ATTR_INTS;
      out[count].count = 2;
      out[count].value.ints = ints[count];
    } else if (strchr(values[count], '.')) {
      out[count].type = PLANC_ATTR_REAL;
      out[count].value.real = strtod(values[count], NULL);
    } else if (pl_number_kind(values[count]) == PL_NUMBER_INT) {
      out[count].type = PLANC_ATTR_INT;
      out[count].value.integer = strtol(values[count], NULL, 10);
    } else {
      out[count].type = PLANC_ATTR_STRING;
      out[count].value.string = values[count];
    }
  }
  return count;
}

void forward_op_in_loop(const char *name, const char *type, const char *in, const char *out, const char *effects,
                        const char *attrs, const char *loop, int32_t step) {
  int32_t operands[3][64];
  planc_attr list[8];
  char keys[8][32], values[8][32];
  int64_t ints[8][2];
  planc_op op = {.name = name,
                 .type = type,
                 .n_in = find_all(in, operands[0]),
                 .n_out = find_all(out, operands[1]),
                 .n_effects = find_all(effects, operands[2]),
                 .n_attrs = parse_attrs(attrs, list, keys, values, ints),
                 .in = operands[0],
                 .out = operands[1],
                 .effects = operands[2],
                 .attrs = list,
                 .flops = {-1, -1},
                 .traffic = {-1, -1},
                 .loop = loop,
                 .loop_step = step};
  ok(planc_graph_builder_op(builder, &op));
}

void forward_op(const char *name, const char *type, const char *in, const char *out, const char *attrs) {
  forward_op_in_loop(name, type, in, out, "", attrs, NULL, 0);
}

void forward_loss(const char *name) {
  ok(planc_graph_builder_loss(builder, find(name)));
}

void forward_output(const char *name) {
  ok(planc_graph_builder_output(builder, find(name)));
}

void forward_classifier(const char *x, int features) {
  char spec[64];
  (void)snprintf(spec, sizeof spec, "f32[N,%d] of %s", features, x);
  forward_tensor("flat", spec);
  (void)snprintf(spec, sizeof spec, "param f32[3,%d]", features);
  forward_tensor("fc.w", spec);
  forward_tensor("logits", "f32[N,3]");
  forward_tensor("labels", "input i64[N]");
  forward_tensor("loss", "f32[]");
  forward_tensor("probs", "f32[N,3]");
  forward_op("fc", "linear", "flat fc.w", "logits", "");
  forward_op("xent", "softmax_xent", "logits labels", "loss probs", "");
  forward_loss("loss");
}

planc_graph *forward_finish(void) {
  planc_graph *graph;
  ok(planc_graph_builder_finish(builder, &graph, NULL, NULL));
  planc_graph_builder_free(builder);
  return graph;
}
