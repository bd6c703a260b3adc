/* The derivative of every forward type: a table of rules. A rule is a list of steps, each one backward op that makes
 * gradients of some inputs from dy (the gradient of the op's first output) and what the forward op read and wrote. A
 * step whose gradients nobody wants is left out. Steps that read large inputs come before those that make large
 * gradients, so that an input can be let go before its own gradient is made. */
#include <stdio.h>
#include <stdlib.h>

#include "graph/train.h"

/* Operands of a step: IN(k) and OUT(k) are the forward op's, DY its gradient. NONE ends a list. */
enum { NONE = 0, DY = 1, FIRST_IN = 2, FIRST_OUT = 8, MAX_OPERANDS = 6, MAX_GRADS = 3, MAX_STEPS = 3 };
#define IN(k) (FIRST_IN + (k))
#define OUT(k) (FIRST_OUT + (k))

typedef struct train_step {
  pl_optype_id type;
  const char *suffix;
  int8_t reads[MAX_OPERANDS];
  int8_t makes[MAX_GRADS]; /* gradients of these forward inputs */
  bool passes;             /* there is no op: the input's gradient is dy itself */
  bool over_dy;            /* can write over dy */
  bool of_loss;            /* dy is the constant 1 and not read */
} train_step;

struct pl_train_rule {
  bool slices; /* concat: every input's gradient is a slice of dy */
  bool joins;  /* split: the input's gradient is all outputs' gradients side by side */
  train_step steps[MAX_STEPS];
};

#define OF(type) [PL_OPTYPE_##type]
#define OP(type) PL_OPTYPE_##type
#define PASS(k) \
  { .makes = {IN(k)}, .passes = true }

/* By forward type; those without a derivative have an empty rule. */
static const pl_train_rule rules[PL_N_OPTYPES] = {
    OF(conv2d) = {.steps = {{OP(conv2d_bgrad), "bgrad", {DY}, {IN(2)}},
                            {OP(conv2d_wgrad), "wgrad", {IN(0), DY}, {IN(1)}},
                            {OP(conv2d_dgrad), "dgrad", {IN(1), DY}, {IN(0)}}}},
    OF(linear) = {.steps = {{OP(linear_bgrad), "bgrad", {DY}, {IN(2)}},
                            {OP(linear_wgrad), "wgrad", {IN(0), DY}, {IN(1)}},
                            {OP(linear_dgrad), "dgrad", {IN(1), DY}, {IN(0)}}}},
    OF(bias) = {.steps = {{OP(bias_grad), "bgrad", {DY}, {IN(1)}}, PASS(0)}},
    OF(relu) = {.steps = {{OP(relu_grad), "grad", {OUT(0), DY}, {IN(0)}, .over_dy = true}}},
    OF(maxpool2d) = {.steps = {{OP(maxpool2d_grad), "grad", {IN(0), OUT(0), DY}, {IN(0)}}}},
    OF(avgpool2d) = {.steps = {{OP(avgpool2d_grad), "grad", {DY}, {IN(0)}}}},
    OF(batchnorm) =
        {.steps = {{OP(batchnorm_grad), "grad", {IN(0), IN(1), OUT(1), OUT(2), DY}, {IN(0), IN(1), IN(2)}}}},
    OF(add) = {.steps = {PASS(0), PASS(1)}},
    OF(affine) = {.steps = {{OP(affine_grad), "grad", {DY}, {IN(0)}, .over_dy = true}}},
    OF(expand) = {.steps = {{OP(expand_grad), "grad", {DY}, {IN(0)}}}},
    OF(mse) = {.steps = {{OP(mse_grad), "grad", {IN(0), IN(1)}, {IN(0)}, .of_loss = true},
                         {OP(mse_grad), "tgrad", {IN(1), IN(0)}, {IN(1)}, .of_loss = true}}},
    OF(cast) = {.steps = {{OP(cast), "grad", {DY}, {IN(0)}}}},
    OF(concat) = {.slices = true},
    OF(split) = {.joins = true},
    OF(upsample) = {.steps = {{OP(upsample_grad), "grad", {DY}, {IN(0)}}}},
    OF(dropout) = {.steps = {{OP(dropout_grad), "grad", {DY}, {IN(0)}, .over_dy = true}}},
    OF(layernorm) =
        {.steps = {{OP(layernorm_grad), "grad", {IN(0), IN(1), OUT(1), OUT(2), DY}, {IN(0), IN(1), IN(2)}}}},
    OF(gelu) = {.steps = {{OP(gelu_grad), "grad", {IN(0), DY}, {IN(0)}, .over_dy = true}}},
    OF(sigmoid) = {.steps = {{OP(sigmoid_grad), "grad", {OUT(0), DY}, {IN(0)}, .over_dy = true}}},
    OF(tanh) = {.steps = {{OP(tanh_grad), "grad", {OUT(0), DY}, {IN(0)}, .over_dy = true}}},
    OF(mul) = {.steps = {{OP(mul), "bgrad", {DY, IN(0)}, {IN(1)}},
                         {OP(mul), "agrad", {DY, IN(1)}, {IN(0)}, .over_dy = true}}},
    OF(matmul) = {.steps = {{OP(matmul_tn), "bgrad", {IN(0), DY}, {IN(1)}},
                            {OP(matmul_nt), "agrad", {DY, IN(1)}, {IN(0)}}}},
    OF(matmul_nt) = {.steps = {{OP(matmul_tn), "bgrad", {DY, IN(0)}, {IN(1)}},
                               {OP(matmul), "agrad", {DY, IN(1)}, {IN(0)}}}},
    OF(matmul_tn) = {.steps = {{OP(matmul), "bgrad", {IN(0), DY}, {IN(1)}},
                               {OP(matmul_nt), "agrad", {IN(1), DY}, {IN(0)}}}},
    OF(softmax) = {.steps = {{OP(softmax_grad), "grad", {OUT(0), DY}, {IN(0)}, .over_dy = true}}},
    OF(embedding) = {.steps = {{OP(embedding_grad), "grad", {IN(0), DY}, {IN(1)}}}},
    OF(transpose) = {.steps = {{OP(transpose), "grad", {DY}, {IN(0)}}}},
    OF(position) = {.steps = {{OP(position_grad), "pgrad", {DY}, {IN(1)}}, PASS(0)}},
    OF(mean) = {.steps = {{OP(mean_grad), "grad", {DY}, {IN(0)}}}},
    OF(softmax_xent) = {.steps = {{OP(softmax_xent_grad), "grad", {OUT(1), IN(1)}, {IN(0)}, .of_loss = true}}},
};

const pl_train_rule *pl_train_rule_find(pl_optype_id type) {
  const pl_train_rule *rule = &rules[type];
  return rule->slices || rule->joins || rule->steps[0].makes[0] ? rule : NULL;
}

bool pl_train_rule_takes_all(const pl_train_rule *rule) {
  return rule->joins;
}

static planc_status apply_slices(pl_derivation *d);
static planc_status apply_join(pl_derivation *d);
static planc_status apply_step(pl_derivation *d, const train_step *step);
static bool wanted(const pl_derivation *d, int32_t operand);
static planc_status read_operand(pl_derivation *d, const train_step *step, int8_t code, int32_t *out_tensor);

planc_status pl_train_rule_apply(pl_derivation *d, const pl_train_rule *rule) {
  if (rule->slices) return apply_slices(d);
  if (rule->joins) return apply_join(d);
  for (int32_t i = 0; i < MAX_STEPS && rule->steps[i].makes[0]; i++) PLANC_TRY(apply_step(d, &rule->steps[i]));
  return NULL;
}

static planc_status apply_step(pl_derivation *d, const train_step *step) {
  int32_t in[MAX_OPERANDS], out[MAX_GRADS], n_in = 0, n_out = 0;
  pl_grad_target targets[MAX_GRADS];
  bool any = false;
  for (int32_t i = 0; i < MAX_GRADS && step->makes[i]; i++) any |= wanted(d, step->makes[i] - FIRST_IN);
  if (!any) return NULL;
  if (step->passes) return pl_grads_pass(d, step->makes[0] - FIRST_IN);

  if (step->of_loss && d->dy_stores.data[0] != PL_STORE_OF_LOSS)
    return planc_error(PLANC_BAD_INPUT, "op %s: its loss is used for more than the graph's loss", d->op->name);
  for (; n_in < MAX_OPERANDS && step->reads[n_in]; n_in++)
    PLANC_TRY(read_operand(d, step, step->reads[n_in], &in[n_in]));
  for (; n_out < MAX_GRADS && step->makes[n_out]; n_out++) {
    int32_t operand = step->makes[n_out] - FIRST_IN;
    if (wanted(d, operand)) {
      PLANC_TRY(pl_grads_target(d, operand, step->over_dy, &targets[n_out]));
    } else {
      targets[n_out].store = -1;
      PLANC_TRY(pl_grads_scratch(d, d->op->in[operand], &targets[n_out].tensor));
    }
    out[n_out] = targets[n_out].tensor;
  }
  bool has_attrs = pl_optype_at(step->type)->attrs;
  PLANC_TRY(pl_train_emit(d, step->type, step->suffix, in, n_in, out, n_out, has_attrs ? d->op->attrs : NULL,
                          has_attrs ? d->op->n_attrs : 0));
  for (int32_t i = 0; i < n_out; i++)
    if (wanted(d, step->makes[i] - FIRST_IN)) PLANC_TRY(pl_grads_arrive(d, step->makes[i] - FIRST_IN, targets[i]));
  return NULL;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static planc_status is_gone(const pl_derivation *d, pl_optype_id backward, const planc_tensor *value,
                            const planc_op *writer) {
  return planc_error(PLANC_BAD_INPUT, "op %s: its %s needs %s, which op %s overwrites", d->op->name,
                     pl_optype_at(backward)->name, value->name, writer->name);
}

/* A backward op reads what the forward op read or wrote: it must still be there. What the op read, the op itself may
 * have written over. */
static planc_status check_kept(pl_derivation *d, pl_optype_id backward, int32_t tensor, bool read) {
  const planc_tensor *value = &d->graph->tensors[tensor];
  const pl_grad_state *state = &d->states[value->storage];
  for (int32_t i = 0; read && i < d->op->n_out; i++) {
    const planc_tensor *out = &d->graph->tensors[d->op->out[i]];
    if (out->storage == value->storage && !pl_byte_range_disjoint(pl_byte_range_of(out), pl_byte_range_of(value)))
      return is_gone(d, backward, value, d->op);
  }
  /* Of several overwrites the one met last is the first in forward order. */
  for (int64_t i = state->overwrites.len; i-- > 0;)
    if (!pl_byte_range_disjoint(state->overwrites.data[i].range, pl_byte_range_of(value)))
      return is_gone(d, backward, value, state->overwrites.data[i].op);
  return NULL;
}

static planc_status read_operand(pl_derivation *d, const train_step *step, int8_t code, int32_t *out_tensor) {
  if (code == DY) return pl_grads_dy(d, 0, out_tensor);
  bool read = code < FIRST_OUT;
  int32_t tensor = read ? d->op->in[code - FIRST_IN] : d->op->out[code - FIRST_OUT];
  PLANC_TRY(check_kept(d, step->type, tensor, read));
  *out_tensor = tensor;
  return NULL;
}

static bool wanted(const pl_derivation *d, int32_t operand) {
  return operand < d->op->n_in && d->op_wanted[operand];
}

/* --- Concat and split --------------------------------------------------------------------------------------------- */

static planc_status apply_slices(pl_derivation *d) {
  int64_t axis = planc_op_int(d->op, "axis", 0, 0), offset = 0;
  for (int32_t i = 0; i < d->op->n_in; i++) {
    const planc_tensor *x = &d->graph->tensors[d->op->in[i]];
    if (axis < 0 || axis >= x->rank || x->dims[axis].per_sample != 0)
      return planc_error(PLANC_BAD_INPUT, "op %s: a concat along the batch has no derivative", d->op->name);
    if (wanted(d, i)) {
      const planc_attr attrs[] = {{.key = "axis", .type = PLANC_ATTR_INT, .value.integer = axis},
                                  {.key = "offset", .type = PLANC_ATTR_INT, .value.integer = offset}};
      pl_grad_target target;
      int32_t dy;
      char suffix[32];
      (void)snprintf(suffix, sizeof suffix, "grad.%d", i + 1);
      PLANC_TRY(pl_grads_dy(d, 0, &dy));
      PLANC_TRY(pl_grads_target(d, i, false, &target));
      PLANC_TRY(pl_train_emit(d, PL_OPTYPE_concat_grad, suffix, &dy, 1, &target.tensor, 1, attrs, 2));
      PLANC_TRY(pl_grads_arrive(d, i, target));
    }
    offset += x->dims[axis].fixed;
  }
  return NULL;
}

/* The gradients of all outputs in `dys`, which has room for them. */
static planc_status join(pl_derivation *d, int32_t *dys) {
  const planc_op *op = d->op;
  int64_t axis = planc_op_int(op, "axis", 0, 0);
  const planc_attr attr = {.key = "axis", .type = PLANC_ATTR_INT, .value.integer = axis};
  if (d->graph->tensors[op->in[0]].dims[axis].per_sample != 0)
    return planc_error(PLANC_BAD_INPUT, "op %s: a split of the batch has no derivative", op->name);
  for (int32_t i = 0; i < op->n_out; i++) {
    if (d->dy_stores.data[i] < 0)
      return planc_error(PLANC_BAD_INPUT, "op %s: its part %s does not lead to the loss, as others do", op->name,
                         d->graph->tensors[op->out[i]].name);
    PLANC_TRY(pl_grads_dy(d, i, &dys[i]));
  }
  pl_grad_target target;
  PLANC_TRY(pl_grads_target(d, 0, false, &target));
  PLANC_TRY(pl_train_emit(d, PL_OPTYPE_concat, "grad", dys, op->n_out, &target.tensor, 1, &attr, 1));
  return pl_grads_arrive(d, 0, target);
}

static planc_status apply_join(pl_derivation *d) {
  int32_t *dys = calloc((size_t)d->op->n_out, sizeof *dys);
  planc_status status = dys ? join(d, dys) : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  free(dys);
  return status;
}
