/* The derivative of every forward type: a table of rules. A rule is a list of steps, each one backward op that makes
 * gradients of some inputs from dy (the gradient of the op's first output) and what the forward op read and wrote. A
 * step whose gradients nobody wants is left out. Steps that read large inputs come before those that make large
 * gradients, so that an input can be let go before its own gradient is made. */
#include <stdio.h>
#include <string.h>

#include "graph/optypes.h"
#include "graph/train.h"

/* Operands of a step: IN(k) and OUT(k) are the forward op's, DY its gradient. NONE ends a list. */
enum { NONE = 0, DY = 1, FIRST_IN = 2, FIRST_OUT = 8, MAX_OPERANDS = 6, MAX_GRADS = 3, MAX_STEPS = 3 };
#define IN(k) (FIRST_IN + (k))
#define OUT(k) (FIRST_OUT + (k))

typedef struct train_step {
  const char *type; /* NULL: the input's gradient is dy itself */
  const char *suffix;
  int8_t reads[MAX_OPERANDS];
  int8_t makes[MAX_GRADS]; /* gradients of these forward inputs */
  bool over_dy;            /* can write over dy */
  bool of_loss;            /* dy is the constant 1 and not read */
} train_step;

struct planc_train_rule {
  const char *type;
  bool slices; /* concat: every input's gradient is a slice of dy */
  train_step steps[MAX_STEPS];
};

static const planc_train_rule rules[] = {
    {"conv2d", .steps = {{"conv2d_bgrad", "bgrad", {DY}, {IN(2)}},
                         {"conv2d_wgrad", "wgrad", {IN(0), DY}, {IN(1)}},
                         {"conv2d_dgrad", "dgrad", {IN(1), DY}, {IN(0)}}}},
    {"linear", .steps = {{"linear_bgrad", "bgrad", {DY}, {IN(2)}},
                         {"linear_wgrad", "wgrad", {IN(0), DY}, {IN(1)}},
                         {"linear_dgrad", "dgrad", {IN(1), DY}, {IN(0)}}}},
    {"bias", .steps = {{"bias_grad", "bgrad", {DY}, {IN(1)}}, {NULL, .makes = {IN(0)}}}},
    {"relu", .steps = {{"relu_grad", "grad", {OUT(0), DY}, {IN(0)}, .over_dy = true}}},
    {"maxpool2d", .steps = {{"maxpool2d_grad", "grad", {IN(0), OUT(0), DY}, {IN(0)}}}},
    {"avgpool2d", .steps = {{"avgpool2d_grad", "grad", {DY}, {IN(0)}}}},
    {"batchnorm", .steps = {{"batchnorm_grad", "grad", {IN(0), IN(1), OUT(1), OUT(2), DY}, {IN(0), IN(1), IN(2)}}}},
    {"add", .steps = {{NULL, .makes = {IN(0)}}, {NULL, .makes = {IN(1)}}}},
    {"cast", .steps = {{"cast", "grad", {DY}, {IN(0)}}}},
    {"concat", .slices = true},
    {"upsample", .steps = {{"upsample_grad", "grad", {DY}, {IN(0)}}}},
    {"dropout", .steps = {{"dropout_grad", "grad", {DY}, {IN(0)}, .over_dy = true}}},
    {"layernorm", .steps = {{"layernorm_grad", "grad", {IN(0), IN(1), OUT(1), OUT(2), DY}, {IN(0), IN(1), IN(2)}}}},
    {"gelu", .steps = {{"gelu_grad", "grad", {IN(0), DY}, {IN(0)}, .over_dy = true}}},
    {"matmul", .steps = {{"matmul_tn", "bgrad", {IN(0), DY}, {IN(1)}}, {"matmul_nt", "agrad", {DY, IN(1)}, {IN(0)}}}},
    {"matmul_nt", .steps = {{"matmul_tn", "bgrad", {DY, IN(0)}, {IN(1)}}, {"matmul", "agrad", {DY, IN(1)}, {IN(0)}}}},
    {"matmul_tn", .steps = {{"matmul", "bgrad", {IN(0), DY}, {IN(1)}}, {"matmul_nt", "agrad", {IN(1), DY}, {IN(0)}}}},
    {"softmax", .steps = {{"softmax_grad", "grad", {OUT(0), DY}, {IN(0)}, .over_dy = true}}},
    {"embedding", .steps = {{"embedding_grad", "grad", {IN(0), DY}, {IN(1)}}}},
    {"transpose", .steps = {{"transpose", "grad", {DY}, {IN(0)}}}},
    {"position", .steps = {{"position_grad", "pgrad", {DY}, {IN(1)}}, {NULL, .makes = {IN(0)}}}},
    {"mean", .steps = {{"mean_grad", "grad", {DY}, {IN(0)}}}},
    {"softmax_xent", .steps = {{"softmax_xent_grad", "grad", {OUT(1), IN(1)}, {IN(0)}, .of_loss = true}}},
};

const planc_train_rule *planc_train_rule_find(const char *type) {
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
    if (!strcmp(rules[i].type, type)) return &rules[i];
  return NULL;
}

/* --- Steps ------------------------------------------------------------------------------------------------------ */

/* A backward op reads what the forward op read or wrote: it must still be there. */
static planc_status check_kept(planc_derivation *d, const char *backward, int32_t tensor) {
  const planc_tensor *value = &d->graph->tensors[tensor];
  const planc_grad_state *state = &d->states[value->storage];
  /* Of several overwrites the one met last is the first in forward order. */
  for (int64_t i = state->overwrites.len; i-- > 0;)
    if (!planc_window_disjoint(state->overwrites.data[i].window, planc_window_of(value)))
      return planc_error(PLANC_BAD_INPUT, "op %s: its %s needs %s, which op %s overwrites", d->op->name, backward,
                         value->name, state->overwrites.data[i].op->name);
  return NULL;
}

static planc_status read_operand(planc_derivation *d, const train_step *step, int8_t code, int32_t *out_tensor) {
  if (code == DY) return planc_grads_dy(d, out_tensor);
  int32_t tensor = code >= FIRST_OUT ? d->op->out[code - FIRST_OUT] : d->op->in[code - FIRST_IN];
  PLANC_TRY(check_kept(d, step->type, tensor));
  *out_tensor = tensor;
  return NULL;
}

static bool wanted(const planc_derivation *d, int32_t operand) {
  return operand < d->op->n_in && d->op_wanted[operand];
}

static planc_status apply_step(planc_derivation *d, const train_step *step) {
  int32_t in[MAX_OPERANDS], out[MAX_GRADS], n_in = 0, n_out = 0;
  planc_grad_target targets[MAX_GRADS];
  bool any = false;
  for (int32_t i = 0; i < MAX_GRADS && step->makes[i]; i++) any |= wanted(d, step->makes[i] - FIRST_IN);
  if (!any) return NULL;
  if (!step->type) return planc_grads_pass(d, step->makes[0] - FIRST_IN);

  if (step->of_loss && d->dy_store != PLANC_STORE_OF_LOSS)
    return planc_error(PLANC_BAD_INPUT, "op %s: its loss is used for more than the graph's loss", d->op->name);
  for (; n_in < MAX_OPERANDS && step->reads[n_in]; n_in++)
    PLANC_TRY(read_operand(d, step, step->reads[n_in], &in[n_in]));
  for (; n_out < MAX_GRADS && step->makes[n_out]; n_out++) {
    int32_t operand = step->makes[n_out] - FIRST_IN;
    if (wanted(d, operand)) {
      PLANC_TRY(planc_grads_target(d, operand, step->over_dy, &targets[n_out]));
    } else {
      targets[n_out].store = -1;
      PLANC_TRY(planc_grads_scratch(d, d->op->in[operand], &targets[n_out].tensor));
    }
    out[n_out] = targets[n_out].tensor;
  }
  bool has_attrs = planc_optype_find(step->type)->attrs;
  PLANC_TRY(planc_train_emit(d, step->type, step->suffix, in, n_in, out, n_out, has_attrs ? d->op->attrs : NULL,
                             has_attrs ? d->op->n_attrs : 0));
  for (int32_t i = 0; i < n_out; i++)
    if (wanted(d, step->makes[i] - FIRST_IN)) PLANC_TRY(planc_grads_arrive(d, step->makes[i] - FIRST_IN, targets[i]));
  return NULL;
}

/* --- Concat ------------------------------------------------------------------------------------------------------ */

static planc_status apply_slices(planc_derivation *d) {
  int64_t axis = planc_op_int(d->op, "axis", 0, 0), offset = 0;
  for (int32_t i = 0; i < d->op->n_in; i++) {
    const planc_tensor *x = &d->graph->tensors[d->op->in[i]];
    if (axis < 0 || axis >= x->rank || x->dims[axis].per_sample != 0)
      return planc_error(PLANC_BAD_INPUT, "op %s: a concat along the batch has no derivative", d->op->name);
    if (wanted(d, i)) {
      const planc_attr attrs[] = {{.key = "axis", .type = PLANC_ATTR_INT, .value.integer = axis},
                                  {.key = "offset", .type = PLANC_ATTR_INT, .value.integer = offset}};
      planc_grad_target target;
      int32_t dy;
      char suffix[32];
      (void)snprintf(suffix, sizeof suffix, "grad.%d", i + 1);
      PLANC_TRY(planc_grads_dy(d, &dy));
      PLANC_TRY(planc_grads_target(d, i, false, &target));
      PLANC_TRY(planc_train_emit(d, "concat_grad", suffix, &dy, 1, &target.tensor, 1, attrs, 2));
      PLANC_TRY(planc_grads_arrive(d, i, target));
    }
    offset += x->dims[axis].fixed;
  }
  return NULL;
}

planc_status planc_train_rule_apply(planc_derivation *d, const planc_train_rule *rule) {
  if (rule->slices) return apply_slices(d);
  for (int32_t i = 0; i < MAX_STEPS && rule->steps[i].makes[0]; i++) PLANC_TRY(apply_step(d, &rule->steps[i]));
  return NULL;
}
