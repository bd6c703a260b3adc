/* The op table: for every type an op that is right, what makes it wrong, and what it costs. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/optypes.h"
#include "tests/support/unit.h"

enum { MAX_OPERANDS = 5, TEXT_SIZE = 4096 };

/* A right op. Operands are specs; an output "=K" is input K itself. `free` is the number of dimensions that could as
 * well have another size: those a sum is taken over, those of a slice, and those of a single operand in place. */
typedef struct example {
  const char *type, *in[MAX_OPERANDS], *out[3], *effects[2], *attrs;
  int free, optional; /* operands at the end that could be left out */
  bool nhwc;
} example;

static const example examples[] = {
    {.type = "adam", .in = {"f32[3,4]", "f32[3,4]", "f32[3,4]", "f32[3,4]"}, .out = {"=0", "=2", "=3"}},
    {.type = "add", .in = {"f32[N,4]", "f32[N,4]"}, .out = {"f32[N,4]"}},
    {.type = "add", .in = {"f32[N,4]", "f32[N,4]"}, .out = {"=0"}},
    {.type = "affine", .in = {"f32[N,3]"}, .out = {"=0"}, .attrs = "scale: -1, shift: 1", .free = 2},
    {.type = "affine_grad", .in = {"f32[N,3]"}, .out = {"=0"}, .attrs = "scale: 2", .free = 2},
    {.type = "avgpool2d", .in = {"f32[N,2,9,8]"}, .out = {"f32[N,2,7,6]"}, .attrs = "kernel: [3, 3], stride: [1, 1]"},
    {.type = "avgpool2d_grad",
     .in = {"f32[N,2,7,6]"},
     .out = {"f32[N,2,9,8]"},
     .attrs = "kernel: [3, 3], stride: [1, 1]"},
    {.type = "batchnorm",
     .in = {"f16[N,5,6,7]", "f32[5]", "f32[5]"},
     .out = {"f16[N,5,6,7]", "f32[5]", "f32[5]"},
     .effects = {"f32[5]", "f32[5]"}},
    {.type = "batchnorm",
     .in = {"f32[N,6,7,5]", "f32[5]", "f32[5]"},
     .out = {"f32[N,6,7,5]", "f32[5]", "f32[5]"},
     .effects = {"f32[5]", "f32[5]"},
     .nhwc = true},
    {.type = "batchnorm",
     .in = {"f32[N,5]", "f32[5]", "f32[5]"},
     .out = {"f32[N,5]", "f32[5]", "f32[5]"},
     .effects = {"f32[5]", "f32[5]"},
     .attrs = "epsilon: 1e-5, momentum: 0.1"},
    {.type = "batchnorm_grad",
     .in = {"f32[N,5,6,7]", "f32[5]", "f32[5]", "f32[5]", "f32[N,5,6,7]"},
     .out = {"f32[N,5,6,7]", "f32[5]", "f32[5]"}},
    {.type = "batchnorm_infer",
     .in = {"f32[N,5,6,7]", "f32[5]", "f32[5]", "f32[5]", "f32[5]"},
     .out = {"f32[N,5,6,7]"}},
    {.type = "bias", .in = {"f32[N,5,6]", "f32[5]"}, .out = {"=0"}, .free = 2},
    {.type = "bias", .in = {"f32[N,6,5]", "f32[5]"}, .out = {"f32[N,6,5]"}, .nhwc = true},
    {.type = "bias_grad", .in = {"f32[N,5,6]"}, .out = {"f32[5]"}, .free = 2},
    {.type = "cast", .in = {"f32[N,5]"}, .out = {"bf16[N,5]"}},
    {.type = "cast", .in = {"bf16[N,5]"}, .out = {"f32[N,5]"}},
    {.type = "concat", .in = {"f32[N,2,3]", "f32[N,4,3]", "f32[N,1,3]"}, .out = {"f32[N,7,3]"}, .attrs = "axis: 1"},
    {.type = "concat_grad", .in = {"f32[N,7,3]"}, .out = {"f32[N,4,3]"}, .attrs = "axis: 1, offset: 2", .free = 2},
    {.type = "conv2d",
     .in = {"f32[N,4,9,8]", "f32[6,4,3,5]", "f32[6]"},
     .out = {"f32[N,6,9,4]"},
     .attrs = "pad: [1, 0]",
     .optional = 1},
    {.type = "conv2d",
     .in = {"f32[N,9,8,4]", "f32[6,3,5,2]", "f32[6]"},
     .out = {"f32[N,9,4,6]"},
     .attrs = "pad: [1, 0], groups: 2",
     .optional = 1,
     .nhwc = true},
    {.type = "conv2d",
     .in = {"bf16[N,4,9,8]", "bf16[6,4,3,5]", "f32[6]"},
     .out = {"bf16[N,6,9,4]"},
     .attrs = "pad: [1, 0], tf32: 1",
     .optional = 1},
    {.type = "conv2d_bgrad", .in = {"bf16[N,6,9,4]"}, .out = {"f32[6]"}, .free = 3},
    {.type = "conv2d_dgrad",
     .in = {"f32[6,2,3,5]", "f32[N,6,9,4]"},
     .out = {"f32[N,4,9,8]"},
     .attrs = "pad: [1, 0], groups: 2"},
    {.type = "conv2d_wgrad",
     .in = {"f32[N,4,9,8]", "f32[N,6,5,4]"},
     .out = {"f32[6,4,3,3]"},
     .attrs = "dilation: [2, 2]"},
    {.type = "dropout", .in = {"f32[N,3]"}, .out = {"=0"}, .attrs = "p: 0.5, seed: 7", .free = 2},
    {.type = "dropout_grad", .in = {"f32[N,3]"}, .out = {"f32[N,3]"}, .attrs = "p: 0, seed: 7"},
    {.type = "embedding", .in = {"i64[N,3]", "f32[7,4]"}, .out = {"f32[N,3,4]"}, .free = 1},
    {.type = "embedding_grad", .in = {"i64[N,3]", "f32[N,3,4]"}, .out = {"f32[7,4]"}, .free = 1},
    {.type = "expand", .in = {"f32[N,4]"}, .out = {"f32[N,3,4]"}, .free = 1},
    {.type = "expand_grad", .in = {"f32[N,3,4]"}, .out = {"f32[N,4]"}, .free = 1},
    {.type = "gelu", .in = {"f32[N,3]"}, .out = {"=0"}, .free = 2},
    {.type = "gelu_grad", .in = {"f32[N,3]", "f32[N,3]"}, .out = {"=1"}},
    {.type = "layernorm",
     .in = {"f16[N,3,5]", "f32[5]", "f32[5]"},
     .out = {"f16[N,3,5]", "f32[N,3]", "f32[N,3]"},
     .attrs = "epsilon: 1e-5"},
    {.type = "layernorm_grad",
     .in = {"f32[N,5]", "f32[5]", "f32[N]", "f32[N]", "f32[N,5]"},
     .out = {"f32[N,5]", "f32[5]", "f32[5]"}},
    {.type = "linear", .in = {"f32[N,3,4]", "f32[5,4]", "f32[5]"}, .out = {"f32[N,3,5]"}, .optional = 1},
    {.type = "linear",
     .in = {"bf16[N,3,4]", "bf16[5,4]", "f32[5]"},
     .out = {"bf16[N,3,5]"},
     .attrs = "tf32: 0",
     .optional = 1},
    {.type = "linear_bgrad", .in = {"f32[N,3,5]"}, .out = {"f32[5]"}, .free = 2},
    {.type = "linear_dgrad", .in = {"f32[5,4]", "f32[N,3,5]"}, .out = {"f32[N,3,4]"}},
    {.type = "linear_wgrad", .in = {"f32[N,3,4]", "f32[N,3,5]"}, .out = {"f32[5,4]"}},
    {.type = "matmul", .in = {"f32[N,2,3,4]", "f32[N,2,4,5]"}, .out = {"f32[N,2,3,5]"}, .attrs = "scale: -0.5"},
    {.type = "matmul_nt", .in = {"f32[N,2,3,4]", "f32[N,2,5,4]"}, .out = {"f32[N,2,3,5]"}},
    {.type = "matmul_tn", .in = {"f32[N,4,3]", "f32[N,4,5]"}, .out = {"f32[N,3,5]"}},
    {.type = "maxpool2d",
     .in = {"f32[N,2,9,8]"},
     .out = {"f32[N,2,9,7]"},
     .attrs = "kernel: [3, 2], stride: [1, 1], pad: [1, 0]"},
    {.type = "maxpool2d",
     .in = {"f32[N,9,8,2]"},
     .out = {"f32[N,9,7,2]"},
     .attrs = "kernel: [3, 2], stride: [1, 1], pad: [1, 0]",
     .nhwc = true},
    {.type = "maxpool2d_grad",
     .in = {"f32[N,2,9,8]", "f32[N,2,7,6]", "f32[N,2,7,6]"},
     .out = {"f32[N,2,9,8]"},
     .attrs = "kernel: [3, 3], stride: [1, 1]"},
    {.type = "mean", .in = {"f32[N,3,4]"}, .out = {"f32[N,4]"}, .free = 1},
    {.type = "mean_grad", .in = {"f32[N,4]"}, .out = {"f32[N,3,4]"}, .free = 1},
    {.type = "momentum",
     .in = {"f16[3,4]", "f16[3,4]", "f32[3,4]"},
     .out = {"=0", "=2"},
     .attrs = "lr: 1, momentum: 0.9"},
    {.type = "mse", .in = {"f32[N,9,2]", "f32[N,9,2]"}, .out = {"f32[]"}},
    {.type = "mse_grad", .in = {"bf16[N,9]", "bf16[N,9]"}, .out = {"bf16[N,9]"}},
    {.type = "mul", .in = {"f32[N,3]", "f32[N,3]"}, .out = {"=0"}},
    {.type = "position", .in = {"f32[N,3,4]", "f32[3,4]"}, .out = {"=0"}, .free = 1},
    {.type = "position_grad", .in = {"f32[N,3,4]"}, .out = {"f32[3,4]"}, .free = 1},
    {.type = "relu", .in = {"bf16[N,3]"}, .out = {"=0"}, .free = 2},
    {.type = "relu_grad", .in = {"f32[N,3]", "f32[N,3]"}, .out = {"=1"}},
    {.type = "sgd", .in = {"f32[3,4]", "f32[3,4]"}, .out = {"=0"}, .attrs = "lr: 0.1"},
    {.type = "sigmoid", .in = {"f32[N,3]"}, .out = {"=0"}, .free = 2},
    {.type = "sigmoid_grad", .in = {"f32[N,3]", "f32[N,3]"}, .out = {"=1"}},
    {.type = "softmax", .in = {"f32[N,3,4]"}, .out = {"f32[N,3,4]"}},
    {.type = "softmax_grad", .in = {"f32[N,4]", "f32[N,4]"}, .out = {"=1"}},
    {.type = "softmax_xent", .in = {"f32[N,9,2,3]", "i64[N,2,3]"}, .out = {"f32[]", "f32[N,9,2,3]"}},
    {.type = "softmax_xent", .in = {"bf16[N,9]", "i64[N]"}, .out = {"f32[]", "f32[N,9]"}},
    {.type = "softmax_xent", .in = {"f32[N,2,3,9]", "i64[N,2,3]"}, .out = {"f32[]", "f32[N,2,3,9]"}, .nhwc = true},
    {.type = "softmax_xent_grad", .in = {"f32[N,9]", "i64[N]"}, .out = {"f32[N,9]"}},
    {.type = "split", .in = {"f32[N,7,2]"}, .out = {"f32[N,3,2]", "f32[N,4,2]"}, .attrs = "axis: 1"},
    {.type = "tanh", .in = {"bf16[N,3]"}, .out = {"=0"}, .free = 2},
    {.type = "tanh_grad", .in = {"f32[N,3]", "f32[N,3]"}, .out = {"=1"}},
    {.type = "transpose", .in = {"f32[N,3,4,5]"}, .out = {"f32[N,4,3,5]"}, .attrs = "axis: 1"},
    {.type = "upsample", .in = {"f32[N,2,3,4]"}, .out = {"f32[N,2,6,8]"}, .attrs = "scale: 2, mode: bilinear"},
    {.type = "upsample", .in = {"f32[N,2,3,4]"}, .out = {"f32[N,2,9,13]"}, .attrs = "scale: 4, mode: aligned"},
    {.type = "upsample_grad", .in = {"f32[N,6,8,2]"}, .out = {"f32[N,3,4,2]"}, .attrs = "scale: 2", .nhwc = true},
};
enum { N_EXAMPLES = sizeof examples / sizeof *examples };

static int count(const char *const *operands, int limit) {
  int n = 0;
  while (n < limit && operands[n]) n++;
  return n;
}

static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *text, const char *format, ...) {
  va_list arguments;
  size_t length = strlen(text);
  va_start(arguments, format);
  vsnprintf(text + length, TEXT_SIZE - length, format, arguments);
  va_end(arguments);
  ck_assert_uint_lt(strlen(text), TEXT_SIZE - 1);
}

/* A graph file with the one op. What it writes over is a param, so that optimizers may. */
static void compose(const example *e, char *text) {
  bool optimizer = pl_optype_find(e->type)->class_ == PLANC_CLASS_optimizer;
  int n_in = count(e->in, MAX_OPERANDS), n_out = count(e->out, 3), n_effects = count(e->effects, 2);
  *text = '\0';
  append(text, "planc-graph: 1\nname: g\nlayout: %s\ntensors:\n", e->nhwc ? "NHWC" : "NCHW");
  for (int i = 0; i < n_in; i++) append(text, "  i%d: %s %s\n", i, optimizer ? "param" : "state", e->in[i]);
  for (int i = 0; i < n_out; i++) {
    if (*e->out[i] != '=') append(text, "  o%d: %s\n", i, e->out[i]);
  }
  for (int i = 0; i < n_effects; i++) append(text, "  e%d: state %s\n", i, e->effects[i]);
  append(text, "ops:\n  - {op: o, type: %s, phase: %s, in: [", e->type, optimizer ? "optimizer" : "forward");
  for (int i = 0; i < n_in; i++) append(text, "%si%d", i ? ", " : "", i);
  append(text, "], out: [");
  for (int i = 0; i < n_out; i++) {
    bool over = *e->out[i] == '=';
    append(text, "%s%c%d", i ? ", " : "", over ? 'i' : 'o', over ? e->out[i][1] - '0' : i);
  }
  append(text, "], effects: [");
  for (int i = 0; i < n_effects; i++) append(text, "%se%d", i ? ", " : "", i);
  append(text, "]%s%s%s}\n", e->attrs ? ", attrs: {" : "", e->attrs ? e->attrs : "", e->attrs ? "}" : "");
}

static planc_graph *parse(const example *e, planc_status *out_status) {
  char text[TEXT_SIZE];
  planc_graph *graph;
  compose(e, text);
  *out_status = planc_graph_parse(text, strlen(text), "g", &graph);
  return graph;
}

static planc_graph *must_parse(const example *e) {
  planc_status status;
  planc_graph *graph = parse(e, &status);
  ck_assert_msg(!status, "%s: %s", e->type, planc_status_message(status));
  return graph;
}

/* True when the op is right; a wrong one must fail as bad input, at its place. */
static bool accepted(const example *e) {
  planc_status status;
  planc_graph *graph = parse(e, &status);
  if (!status) {
    planc_graph_free(graph);
    return true;
  }
  ck_assert_int_eq(planc_status_code(status), PLANC_BAD_INPUT);
  ck_assert_msg(strncmp(planc_status_message(status), "g:", 2) == 0 && strstr(planc_status_message(status), "op o: "),
                "%s", planc_status_message(status));
  planc_status_free(status);
  return false;
}

START_TEST(every_type_has_a_right_op) {
  int32_t n_types;
  const planc_optype *types = pl_optypes(&n_types);
  for (int32_t t = 0; t < n_types; t++) {
    bool found = false;
    for (int i = 0; i < N_EXAMPLES; i++) found |= strcmp(examples[i].type, types[t].name) == 0;
    ck_assert_msg(found, "%s has no example", types[t].name);
    ck_assert_ptr_eq(pl_optype_find(types[t].name), &types[t]);
    ck_assert_ptr_eq(pl_optype_at(types[t].id), &types[t]);
  }
  ck_assert_int_eq(n_types, PL_N_OPTYPES - 1);
  for (int i = 0; i < N_EXAMPLES; i++) {
    planc_graph *graph = must_parse(&examples[i]);
    const planc_op *op = &graph->ops[0];
    ck_assert_str_eq(op->known->name, examples[i].type);
    ck_assert_int_eq(pl_op_class(op), op->known->class_);
    ck_assert_uint_eq(op->flags, op->known->flags);
    planc_graph_free(graph);
  }
}
END_TEST

/* `spec` with its dimension number `index` one larger (N becomes 2N), or false when it has none. */
static bool enlarge(const char *spec, int index, char *out) {
  const char *p = strchr(spec, '[') + 1;
  for (; index > 0 && *p; p++) index -= *p == ',';
  if (index > 0 || *p == ']') return false;
  const char *rest = p + strcspn(p, ",]");
  if (*p == 'N') {
    sprintf(out, "%.*s2N%s", (int)(p - spec), spec, rest);
  } else {
    sprintf(out, "%.*s%ld%s", (int)(p - spec), spec, strtol(p, NULL, 10) + 1, rest);
  }
  return true;
}

/* The operands of all sides as one array. */
static const char **operand(example *e, int index) {
  if (index < MAX_OPERANDS) return &e->in[index];
  return index < MAX_OPERANDS + 3 ? &e->out[index - MAX_OPERANDS] : &e->effects[index - MAX_OPERANDS - 3];
}

START_TEST(every_dimension_counts) {
  for (int i = 0; i < N_EXAMPLES; i++) {
    int free_dimensions = 0;
    for (int k = 0; k < MAX_OPERANDS + 5; k++) {
      char spec[64];
      for (int d = 0; d < PLANC_MAX_RANK; d++) {
        example changed = examples[i];
        const char **changed_spec = operand(&changed, k);
        if (!*changed_spec || **changed_spec == '=' || !enlarge(*changed_spec, d, spec)) break;
        *changed_spec = spec;
        free_dimensions += accepted(&changed);
      }
    }
    ck_assert_msg(free_dimensions == examples[i].free, "%s: %d free dimensions", examples[i].type, free_dimensions);
  }
}
END_TEST

START_TEST(every_operand_has_a_rank_and_a_type) {
  for (int i = 0; i < N_EXAMPLES; i++) {
    for (int k = 0; k < MAX_OPERANDS + 5; k++) {
      char spec[64];
      example changed = examples[i];
      const char **changed_spec = operand(&changed, k), *given = *changed_spec;
      if (!given || *given == '=') continue;
      sprintf(spec, "i32%s", strchr(given, '['));
      *changed_spec = spec;
      ck_assert_msg(!accepted(&changed), "%s: operand %d of type i32", changed.type, k);
      sprintf(spec, "%.*s%s1]", (int)strlen(given) - 1, given, strstr(given, "[]") ? "" : ",");
      ck_assert_msg(!accepted(&changed) || changed.free, "%s: operand %d of one rank more", changed.type, k);
    }
  }
}
END_TEST

START_TEST(every_operand_is_needed) {
  for (int i = 0; i < N_EXAMPLES; i++) {
    const example *e = &examples[i];
    int n_in = count(e->in, MAX_OPERANDS), n_out = count(e->out, 3), n_effects = count(e->effects, 2);
    example changed = *e;
    changed.in[n_in - 1] = NULL;
    /* What an output is written over must stay. */
    if (*e->out[0] != '=') ck_assert_msg(accepted(&changed) == (e->optional > 0), "%s without its last input", e->type);
    changed = *e;
    changed.out[n_out - 1] = NULL;
    ck_assert_msg(!accepted(&changed), "%s without its last output", e->type);
    if (n_effects) {
      changed = *e;
      changed.effects[n_effects - 1] = NULL;
      ck_assert_msg(!accepted(&changed), "%s without its last effect", e->type);
    }
    if (n_effects < 2) {
      changed = *e;
      changed.effects[n_effects] = "f32[5]";
      ck_assert_msg(!accepted(&changed), "%s with one effect more", e->type);
    }
    if (n_in < MAX_OPERANDS) {
      changed = *e;
      changed.in[n_in] = "f32[5]";
      ck_assert_msg(!accepted(&changed), "%s with one input more", e->type);
    }
  }
}
END_TEST

/* --- Attributes and further conditions ---------------------------------------------------------------------------- */

#define CONV .type = "conv2d", .in = {"f32[N,4,9,9]", "f32[6,4,3,3]"}, .out = {"f32[N,6,7,7]"}
#define POOL .type = "maxpool2d", .in = {"f32[N,4,9,9]"}, .out = {"f32[N,4,4,4]"}
#define UPSAMPLE .type = "upsample", .in = {"f32[N,2,3,4]"}, .out = {"f32[N,2,6,8]"}
#define DROPOUT .type = "dropout", .in = {"f32[N,3]"}, .out = {"=0"}
#define TRANSPOSE .type = "transpose", .in = {"f32[N,3,4]"}, .out = {"f32[N,4,3]"}
#define CONCAT .type = "concat", .in = {"f32[N,2]", "f32[N,2]"}, .out = {"f32[N,4]"}
#define CONCAT_GRAD .type = "concat_grad", .in = {"f32[N,4]"}, .out = {"f32[N,2]"}

static const struct {
  example example;
  const char *message;
} wrong[] = {
    {{CONV, .attrs = "padding: [1, 1]"}, "conv2d has no attribute padding"},
    {{CONV, .attrs = "stride: 1"}, "attribute stride should be a list of two integers"},
    {{CONV, .attrs = "stride: [1, 1, 1]"}, "attribute stride should be a list of two integers"},
    {{CONV, .attrs = "stride: [0, 1]"}, "attribute stride is 0, should be from 1 to 2.14748e+09"},
    {{CONV, .attrs = "pad: [0, -1]"}, "attribute pad is -1, should be from 0 to 2.14748e+09"},
    {{CONV, .attrs = "pad: [0, 2147483648]"}, "attribute pad is 2.14748e+09, should be from 0 to 2.14748e+09"},
    {{CONV, .attrs = "groups: [1, 1]"}, "attribute groups should be an integer"},
    {{CONV, .attrs = "groups: 3"},
     "4 input and 6 output channels in 3 groups do not go with weights for 4 input channels"},
    {{CONV, .attrs = "groups: 2"},
     "4 input and 6 output channels in 2 groups do not go with weights for 4 input channels"},
    {{CONV, .attrs = "pad: [1, 0]"}, "P is 7, but H = 9 gives 9"},
    {{CONV, .attrs = "stride: [1, 2]"}, "Q is 7, but W = 9 gives 4"},
    {{CONV, .attrs = "dilation: [5, 1]"}, "window of 11 is larger than H = 9 with its padding"},
    {{POOL, .attrs = "kernel: [3, 3]"}, "maxpool2d needs the attribute stride"},
    {{POOL, .attrs = "kernel: [1, 1], stride: [2, 2], pad: [1, 1]"}, "pad must be less than kernel"},
    {{POOL, .attrs = "kernel: [3, 3], stride: [2, 3]"}, "Q is 4, but W = 9 gives 3"},
    {{CONV, .attrs = "tf32: 2"}, "attribute tf32 is 2, should be from 0 to 1"},
    {{.type = "linear_bgrad", .in = {"f32[N,5]"}, .out = {"f32[5]"}, .attrs = "tf32: 1"},
     "linear_bgrad has no attribute tf32"},
    {{.type = "linear", .in = {"bf16[N,4]", "f32[5,4]"}, .out = {"bf16[N,5]"}}, "input w (i1): is f32, should be bf16"},
    {{.type = "cast", .in = {"f16[N,4]"}, .out = {"f32[N,4]"}}, "i0 is f16, should be f32 or bf16"},
    {{.type = "cast", .in = {"f32[N,4]"}, .out = {"=0"}}, "output i0 overlaps input i0, which cast does not allow"},
    {{UPSAMPLE}, "upsample needs the attribute scale"},
    {{UPSAMPLE, .attrs = "scale: 3"}, "P is 6, but H = 3 gives 9"},
    {{UPSAMPLE, .attrs = "scale: 2, mode: cubic"}, "attribute mode should be nearest, bilinear or aligned"},
    {{UPSAMPLE, .attrs = "scale: 2, mode: aligned"}, "P is 6, but H = 3 gives 5"},
    {{UPSAMPLE, .attrs = "scale: 2, mode: 1"}, "attribute mode should be a string"},
    {{DROPOUT, .attrs = "p: 1.0, seed: 1"}, "attribute p must be less than 1"},
    {{DROPOUT, .attrs = "p: -0.5, seed: 1"}, "attribute p is -0.5, should be from 0 to 1"},
    {{DROPOUT, .attrs = "p: half, seed: 1"}, "attribute p should be a number"},
    {{DROPOUT, .attrs = "p: 0.5"}, "dropout needs the attribute seed"},
    {{CONCAT, .attrs = "axis: 0"}, "i0 and o0 must be alike but for axis 0"},
    {{CONCAT, .attrs = "axis: 2"}, "i0 and o0 must be alike but for axis 2"},
    {{CONCAT, .attrs = "axis: 8"}, "attribute axis is 8, should be from 0 to 7"},
    {{CONCAT_GRAD, .attrs = "axis: 1, offset: 3"}, "o0 at offset 3 reaches beyond axis 1 of i0"},
    {{.type = "concat", .in = {"f32[N,2]", "f32[N,3]"}, .out = {"f32[N,4]"}, .attrs = "axis: 1"},
     "dimension 1 of o0 is 4, the inputs add up to 5"},
    {{.type = "relu", .in = {"f32[N,3]"}, .out = {"f32[N,4]"}}, "output y (o0): dimension 1 is 4, should be 3"},
    {{.type = "relu", .in = {"f32[N,3]"}, .out = {"f32[N,3,1]"}}, "output y (o0): has 1 dimensions too many"},
    {{.type = "relu", .in = {"f32[N,3]"}, .out = {"f16[N,3]"}}, "output y (o0): is f16, should be f32"},
    {{.type = "linear", .in = {"f32[N]", "f32[5,4]"}, .out = {"f32[N,5]"}},
     "input x (i0): dimension 0 (I) is N, must not depend on the batch"},
    {{.type = "linear", .in = {"f32[N,4]", "f32[5]"}, .out = {"f32[N,5]"}}, "input w (i1): has rank 1, should have 2"},
    {{.type = "bias", .in = {"f32[N]", "f32[5]"}, .out = {"f32[N]"}},
     "input x (i0): has rank 1, should have at least 2"},
    {{.type = "softmax_xent", .in = {"f32[N,3]", "i32[N]"}, .out = {"f32[]", "f32[N,3]"}},
     "input labels (i1): is i32, should be i64"},
    {{.type = "embedding", .in = {"i32[N,3]", "f32[7,4]"}, .out = {"f32[N,3,4]"}},
     "input ids (i0): is i32, should be i64"},
    {{.type = "matmul", .in = {"f32[N,3,4]", "f32[N,5,4]"}, .out = {"f32[N,3,4]"}},
     "input b (i1): dimension 1 (K) is 5, should be 4"},
    {{.type = "matmul", .in = {"f32[2,N,4]", "f32[2,4,5]"}, .out = {"f32[2,N,5]"}},
     "input a (i0): dimension 1 (M) is N, must not depend on the batch"},
    {{.type = "softmax", .in = {"f32[3,N]"}, .out = {"f32[3,N]"}},
     "input x (i0): dimension 1 (C) is N, must not depend on the batch"},
    {{TRANSPOSE}, "transpose needs the attribute axis"},
    {{TRANSPOSE, .attrs = "axis: 0"}, "attribute axis is 0, should be from 1 to 6"},
    {{TRANSPOSE, .attrs = "axis: 2"}, "i0 and o0 should be of one type and rank, with dimensions 2 and 3"},
    {{.type = "transpose", .in = {"f32[N,3,4]"}, .out = {"f32[N,3,4]"}, .attrs = "axis: 1"},
     "dimension 1 of o0 should be dimension 2 of i0"},
    {{.type = "transpose", .in = {"f32[3,N,4]"}, .out = {"f32[3,4,N]"}, .attrs = "axis: 1"},
     "dimensions 1 and 2 of i0 must not depend on the batch"},
    {{.type = "layernorm", .in = {"f32[N,5]", "f32[5]", "f32[5]"}, .out = {"=0", "f32[N]", "f32[N]"}},
     "output i0 overlaps input i0, which layernorm does not allow"},
    {{.type = "sgd", .in = {"f32[3]", "f32[3]"}, .out = {"=1"}}, "output i1 must be written over input i0"},
    {{.type = "momentum", .in = {"f32[3]", "f32[3]", "f32[3]"}, .out = {"=0", "=1"}},
     "output i1 overlaps input i1, which momentum does not allow"},
    {{.type = "relu_grad", .in = {"f32[3]", "f32[3]"}, .out = {"=0"}},
     "output i0 overlaps input i0, which relu_grad does not allow"},
    {{.type = "add", .in = {"f32[3]", "f32[3]"}, .out = {"=1"}},
     "output i1 overlaps input i1, which add does not allow"},
    {{.type = "softmax_xent_grad", .in = {"f32[N,9]", "i64[N]"}, .out = {"=0"}},
     "output i0 overlaps input i0, which softmax_xent_grad does not"},
};

START_TEST(what_is_wrong_is_said) {
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    planc_status status;
    parse(&wrong[i].example, &status);
    assert_fails(status, PLANC_BAD_INPUT, wrong[i].message);
  }
}
END_TEST

START_TEST(views_may_share_a_storage_but_no_bytes) {
  static const char format[] =
      "planc-graph: 1\nname: g\ntensors:\n  labels: input i64[N]\n  s: state f32[N,8]\n  x: f32[N,4] of s\n"
      "  y: f32[N,4] of s @ %s\nops:\n  - {op: o, type: %s, out: [y], in: [x%s]}\n";
  static const struct {
    const char *offset, *type, *more;
    bool right;
  } cases[] = {{"16N", "relu", "", true},
               {"0", "relu", "", true},
               {"8N", "relu", "", false},
               {"4N", "relu", "", false},
               {"16N", "softmax_xent_grad", ", labels", true},
               {"0", "softmax_xent_grad", ", labels", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[TEXT_SIZE];
    planc_graph *graph;
    snprintf(text, sizeof text, format, cases[i].offset, cases[i].type, cases[i].more);
    planc_status status = planc_graph_parse(text, strlen(text), "g", &graph);
    ck_assert_msg(!status == cases[i].right, "case %d: %s", (int)i, planc_status_message(status));
    planc_status_free(status);
    planc_graph_free(graph);
  }
}
END_TEST

/* --- Costs and geometry ------------------------------------------------------------------------------------------- */

static const struct {
  example example;
  planc_law flops, traffic;
} costs[] = {
    /* ResNet-50's first convolution: 112 x 112 x 64 outputs of 7 x 7 x 3 multiply-adds each. */
    {{.type = "conv2d",
      .in = {"f32[N,3,224,224]", "f32[64,3,7,7]"},
      .out = {"f32[N,64,112,112]"},
      .attrs = "stride: [2, 2], pad: [3, 3]"},
     {0, 236027904},
     {37632, 3813376}},
    {{.type = "conv2d_dgrad",
      .in = {"f32[64,3,7,7]", "f32[N,64,112,112]"},
      .out = {"f32[N,3,224,224]"},
      .attrs = "stride: [2, 2], pad: [3, 3]"},
     {0, 236027904},
     {37632, 3813376}},
    {{.type = "conv2d_wgrad",
      .in = {"f32[N,3,224,224]", "f32[N,64,112,112]"},
      .out = {"f32[64,3,7,7]"},
      .attrs = "stride: [2, 2], pad: [3, 3]"},
     {0, 236027904},
     {37632, 3813376}},
    /* Depthwise: 8 x 4 x 4 outputs of 3 x 3 multiply-adds each. */
    {{.type = "conv2d", .in = {"f32[N,8,6,6]", "f32[8,1,3,3]"}, .out = {"f32[N,8,4,4]"}, .attrs = "groups: 8"},
     {0, 2304},
     {288, 1664}},
    {{.type = "linear", .in = {"f16[N,2048]", "f16[1000,2048]", "f16[1000]"}, .out = {"f16[N,1000]"}},
     {0, 4096000},
     {4098000, 6096}},
    /* 4 + 3N times 5 rows of 6 x 7 multiply-adds each. */
    {{.type = "linear_wgrad", .in = {"f32[4+3N,5,6]", "f32[4+3N,5,7]"}, .out = {"f32[7,6]"}},
     {1680, 1260},
     {1208, 780}},
    /* 2 x 3 x 5 outputs of 4 multiply-adds each. */
    {{.type = "matmul_nt", .in = {"f32[N,2,3,4]", "f32[N,2,5,4]"}, .out = {"f32[N,2,3,5]"}}, {0, 240}, {0, 376}},
    /* Three ids a sample, and twelve numbers read and written, not the table. */
    {{.type = "embedding", .in = {"i64[N,3]", "f32[7,4]"}, .out = {"f32[N,3,4]"}}, {0, 0}, {0, 120}},
    /* x twice, y, and two numbers a row. */
    {{.type = "layernorm", .in = {"f32[N,3,5]", "f32[5]", "f32[5]"}, .out = {"f32[N,3,5]", "f32[N,3]", "f32[N,3]"}},
     {0, 0},
     {40, 204}},
    {{.type = "relu", .in = {"f32[N,3]"}, .out = {"=0"}}, {0, 0}, {0, 24}},
    /* Six vectors; x is read twice and y written. */
    {{.type = "batchnorm",
      .in = {"f32[N,2,3]", "f32[2]", "f32[2]"},
      .out = {"f32[N,2,3]", "f32[2]", "f32[2]"},
      .effects = {"f32[2]", "f32[2]"}},
     {0, 0},
     {48, 72}},
    /* Five vectors; x and dy are read twice and dx written. */
    {{.type = "batchnorm_grad",
      .in = {"f32[N,2,3]", "f32[2]", "f32[2]", "f32[2]", "f32[N,2,3]"},
      .out = {"f32[N,2,3]", "f32[2]", "f32[2]"}},
     {0, 0},
     {40, 120}},
};

START_TEST(costs_follow_from_the_operands) {
  for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
    planc_graph *graph = must_parse(&costs[i].example);
    const planc_op *op = &graph->ops[0];
    ck_assert_int_eq(op->flops.fixed, costs[i].flops.fixed);
    ck_assert_int_eq(op->flops.per_sample, costs[i].flops.per_sample);
    ck_assert_int_eq(op->traffic.fixed, costs[i].traffic.fixed);
    ck_assert_int_eq(op->traffic.per_sample, costs[i].traffic.per_sample);
    planc_graph_free(graph);
  }
}
END_TEST

START_TEST(costs_that_overflow_are_refused) {
  const example e = {
      .type = "linear", .in = {"f32[N,1073741824]", "f32[1073741824,1073741824]"}, .out = {"f32[N,1073741824]"}};
  planc_status status;
  planc_graph_free(parse(&e, &status));
  ck_assert_msg(!status, "%s", planc_status_message(status));
  const example larger = {
      .type = "linear", .in = {"f32[8,N,1073741824]", "f32[1073741824,1073741824]"}, .out = {"f32[8,N,1073741824]"}};
  parse(&larger, &status);
  ck_assert_ptr_nonnull(strstr(planc_status_message(status), "op o: FLOPs do not fit 64 bits"));
  planc_status_free(status);
}
END_TEST

START_TEST(a_convolution_has_one_geometry_in_every_direction) {
  static const char attrs[] = "stride: [1, 3], pad: [1, 2], dilation: [2, 1], groups: 2";
  const example directions[2][3] = {
      {{.type = "conv2d", .in = {"f32[N,4,9,8]", "f32[6,2,3,5]"}, .out = {"f32[N,6,7,3]"}, .attrs = attrs},
       {.type = "conv2d_dgrad", .in = {"f32[6,2,3,5]", "f32[N,6,7,3]"}, .out = {"f32[N,4,9,8]"}, .attrs = attrs},
       {.type = "conv2d_wgrad", .in = {"f32[N,4,9,8]", "f32[N,6,7,3]"}, .out = {"f32[6,2,3,5]"}, .attrs = attrs}},
      {{.type = "conv2d",
        .in = {"f32[N,9,8,4]", "f32[6,3,5,2]"},
        .out = {"f32[N,7,3,6]"},
        .attrs = attrs,
        .nhwc = true},
       {.type = "conv2d_dgrad",
        .in = {"f32[6,3,5,2]", "f32[N,7,3,6]"},
        .out = {"f32[N,9,8,4]"},
        .attrs = attrs,
        .nhwc = true},
       {.type = "conv2d_wgrad",
        .in = {"f32[N,9,8,4]", "f32[N,7,3,6]"},
        .out = {"f32[6,3,5,2]"},
        .attrs = attrs,
        .nhwc = true}}};
  for (int layout = 0; layout < 2; layout++) {
    for (int direction = 0; direction < 3; direction++) {
      planc_graph *graph = must_parse(&directions[layout][direction]);
      pl_conv v;
      ck_assert(pl_conv_of(graph, &graph->ops[0], &v));
      ck_assert_int_eq(v.direction, direction);
      ck_assert(v.c == 4 && v.h == 9 && v.w == 8 && v.k == 6 && v.r == 3 && v.s == 5 && v.p == 7 && v.q == 3);
      ck_assert(v.stride_h == 1 && v.stride_w == 3 && v.pad_h == 1 && v.pad_w == 2);
      ck_assert(v.dilation_h == 2 && v.dilation_w == 1 && v.groups == 2);
      planc_graph_free(graph);
    }
  }
  planc_graph *graph = must_parse(&examples[1]);
  pl_conv v;
  ck_assert(!pl_conv_of(graph, &graph->ops[0], &v));
  planc_graph_free(graph);
}
END_TEST

START_TEST(unknown_types_have_a_class_by_their_flops) {
  planc_op op = {.type = "my.op", .flops = {0, 1}};
  ck_assert_ptr_null(pl_optype_find("my.op"));
  ck_assert_int_eq(pl_op_class(&op), PLANC_CLASS_gemm);
  op.flops.per_sample = 0;
  ck_assert_int_eq(pl_op_class(&op), PLANC_CLASS_elementwise);
  ck_assert_str_eq(pl_class_name(PLANC_CLASS_reduction), "reduction");
}
END_TEST

/* --- Where ops learn their types ---------------------------------------------------------------------------------- */

/* A graph of foreign ops, "a" and "b" of one type and "c" of another; every op says it is a relu. */
static planc_graph *foreign_graph(void) {
  static const char *const types[] = {"my.op", "my.op", "my.other"}, *const names[] = {"a", "b", "c"};
  planc_graph_builder *builder;
  planc_graph *graph;
  int32_t x;
  ok(planc_graph_builder_new(&builder));
  ok(planc_graph_builder_header(builder, "foreign", PLANC_LAYOUT_NCHW, 0, NULL, NULL, NULL, NULL));
  ok(planc_graph_builder_tensor(builder, "x", PLANC_KIND_input, PLANC_DTYPE_f32, 0, NULL, -1, (planc_law){0}, &x));
  for (int o = 0; o < 3; o++) {
    planc_op op = {.name = names[o], .type = types[o], .known = pl_optype_at(PL_OPTYPE_relu), .n_in = 1, .in = &x};
    ok(planc_graph_builder_op(builder, &op));
  }
  ok(planc_graph_builder_finish(builder, &graph, NULL, NULL));
  planc_graph_builder_free(builder);
  return graph;
}

START_TEST(foreign_types_are_known_by_name) {
  planc_graph *graph = foreign_graph();
  for (int32_t o = 0; o < graph->n_ops; o++) {
    ck_assert_ptr_null(graph->ops[o].known);
    ck_assert_int_eq(pl_optype_of(&graph->ops[o]), PL_OPTYPE_FOREIGN);
  }
  ck_assert(pl_op_same_type(&graph->ops[0], &graph->ops[1]));
  ck_assert(!pl_op_same_type(&graph->ops[0], &graph->ops[2]));
  planc_graph_free(graph);
}
END_TEST

static void check_types(const planc_graph *graph) {
  for (int32_t o = 0; o < graph->n_ops; o++) {
    ck_assert_ptr_nonnull(graph->ops[o].known);
    ck_assert_str_eq(graph->ops[o].known->name, graph->ops[o].type);
    ck_assert(pl_op_same_type(&graph->ops[o], &graph->ops[o]));
    ck_assert(o == 0 || pl_op_same_type(&graph->ops[o], &graph->ops[o - 1]) ==
                            (strcmp(graph->ops[o].type, graph->ops[o - 1].type) == 0));
  }
}

/* Ops that are read, that casts and derivatives make, and the optimizer's. */
START_TEST(every_op_knows_its_type) {
  planc_graph *forward, *half, *training;
  ok(planc_graph_read("graphs/lenet-digits.yaml", &forward));
  ok(planc_graph_convert(forward, PLANC_BF16, &half));
  ok(planc_graph_train(half, PLANC_ADAM, &training));
  check_types(forward);
  check_types(half);
  check_types(training);
  planc_graph_free(forward);
  planc_graph_free(half);
  planc_graph_free(training);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("optypes");
  TCase *cases = tcase_create("all");
  tcase_add_test(cases, every_type_has_a_right_op);
  tcase_add_test(cases, every_dimension_counts);
  tcase_add_test(cases, every_operand_has_a_rank_and_a_type);
  tcase_add_test(cases, every_operand_is_needed);
  tcase_add_test(cases, what_is_wrong_is_said);
  tcase_add_test(cases, views_may_share_a_storage_but_no_bytes);
  tcase_add_test(cases, costs_follow_from_the_operands);
  tcase_add_test(cases, costs_that_overflow_are_refused);
  tcase_add_test(cases, a_convolution_has_one_geometry_in_every_direction);
  tcase_add_test(cases, unknown_types_have_a_class_by_their_flops);
  tcase_add_test(cases, foreign_types_are_known_by_name);
  tcase_add_test(cases, every_op_knows_its_type);
  suite_add_tcase(suite, cases);
  return run_suite(suite);
}
