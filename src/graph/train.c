/* Training derivation: reverse-mode differentiation of a forward graph. The forward ops are copied; what depends on a
 * parameter is found on the way. Then the ops are walked backwards from the loss, each type's rule (train_rules.c)
 * making gradients of what it read from the gradient of what it wrote; ops that lead from no parameter to the loss are
 * passed over. At the end every parameter with a gradient gets its optimizer op. */
#include "graph/train.h"

#include <stdio.h>
#include <string.h>

/* --- Optimizers --------------------------------------------------------------------------------------------------- */

enum { MAX_STATES = 2, MAX_ATTRS = 4 };

#define REAL(name, number) \
  { .key = name, .type = PLANC_ATTR_REAL, .value.real = number }

/* By planc_optimizer: the type of its ops, the suffixes of the parameter's state tensors, the attributes. */
static const struct {
  const char *type;
  const char *states[MAX_STATES];
  planc_attr attrs[MAX_ATTRS];
} optimizers[] = {
    [PLANC_SGD] = {"sgd", {NULL}, {REAL("lr", 0.01)}},
    [PLANC_MOMENTUM] = {"momentum", {".v"}, {REAL("lr", 0.01), REAL("momentum", 0.9)}},
    [PLANC_ADAM] = {"adam",
                    {".m", ".v"},
                    {REAL("beta1", 0.9), REAL("beta2", 0.999), REAL("epsilon", 1e-8), REAL("lr", 0.001)}},
};

const char *pl_optimizer_name(planc_optimizer optimizer) {
  return optimizers[optimizer].type;
}

planc_status planc_optimizer_parse(const char *name, planc_optimizer *out) {
  for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
    if (strcmp(optimizers[i].type, name) != 0) continue;
    *out = (planc_optimizer)i;
    return NULL;
  }
  return planc_error(PLANC_BAD_INPUT, "no optimizer is called \"%s\": sgd, momentum and adam are", name);
}

/* --- Backwards ---------------------------------------------------------------------------------------------------- */

static planc_status derive(pl_derivation *d, planc_optimizer optimizer);
static planc_status copy_forward(pl_derivation *d, planc_optimizer optimizer);
static planc_status find_wanted(pl_derivation *d);
static planc_status derive_op(pl_derivation *d);
static planc_status add_optimizer(pl_derivation *d, planc_optimizer optimizer);

planc_status pl_train_check_forward(const planc_graph *graph) {
  for (int32_t i = 0; i < graph->n_ops; i++)
    if (graph->ops[i].phase != PLANC_PHASE_forward)
      return planc_error(PLANC_BAD_INPUT, "graph %s has backward or optimizer ops already: op %s", graph->name,
                         graph->ops[i].name);
  return NULL;
}

planc_status planc_graph_train(const planc_graph *forward, planc_optimizer optimizer, planc_graph **out) {
  *out = NULL;
  PLANC_TRY(pl_train_check_forward(forward));
  if (forward->loss < 0) return planc_error(PLANC_BAD_INPUT, "graph %s has no loss to derive", forward->name);
  pl_derivation d = {.graph = forward};
  for (int32_t i = 0; i < forward->n_ops; i++) d.n_wanted += forward->ops[i].n_in;
  d.states = calloc((size_t)forward->n_storages + 1, sizeof *d.states);
  d.wanted = calloc((size_t)d.n_wanted + 1, sizeof *d.wanted);
  planc_status status =
      d.states && d.wanted ? planc_graph_builder_new(&d.builder) : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  if (!status) status = derive(&d, optimizer);
  if (!status) status = planc_graph_builder_finish(d.builder, out, NULL, NULL);
  pl_grads_free(&d);
  planc_graph_builder_free(d.builder);
  free(d.wanted);
  free(d.states);
  return planc_context(status, "training");
}

static planc_status derive(pl_derivation *d, planc_optimizer optimizer) {
  PLANC_TRY(pl_grads_init(d));
  PLANC_TRY(copy_forward(d, optimizer));
  PLANC_TRY(find_wanted(d));
  PLANC_TRY(pl_grads_seed(d, d->graph->loss));
  d->op_wanted = d->wanted + d->n_wanted;
  for (int32_t i = d->graph->n_ops; i-- > 0;) {
    d->op = &d->graph->ops[i];
    d->op_wanted -= d->op->n_in;
    PLANC_TRY(derive_op(d));
  }
  return add_optimizer(d, optimizer);
}

static planc_status add_optimizer_op(pl_derivation *d, planc_optimizer optimizer, int32_t param, int32_t gradient) {
  int32_t in[2 + MAX_STATES] = {param, gradient}, out[1 + MAX_STATES] = {param}, n_states = 0, n_attrs = 0;
  const planc_tensor *tensor = &d->graph->tensors[param];
  for (; n_states < MAX_STATES && optimizers[optimizer].states[n_states]; n_states++) {
    int32_t state;
    PLANC_TRY(pl_grads_tensor(d, "", param, optimizers[optimizer].states[n_states], PLANC_KIND_state, -1,
                              (planc_law){0, 0}, &state));
    in[2 + n_states] = out[1 + n_states] = state;
  }
  while (n_attrs < MAX_ATTRS && optimizers[optimizer].attrs[n_attrs].key) n_attrs++;
  char name[512];
  (void)snprintf(name, sizeof name, "%s.%s", tensor->name, optimizers[optimizer].type);
  planc_op op = {.name = name,
                 .type = optimizers[optimizer].type,
                 .phase = PLANC_PHASE_optimizer,
                 .n_in = 2 + n_states,
                 .in = in,
                 .n_out = 1 + n_states,
                 .out = out,
                 .n_attrs = n_attrs,
                 .attrs = optimizers[optimizer].attrs,
                 .flops = {-1, -1},
                 .traffic = {-1, -1}};
  return planc_graph_builder_op(d->builder, &op);
}

static planc_status add_optimizer(pl_derivation *d, planc_optimizer optimizer) {
  bool any = false;
  for (int32_t i = 0; i < d->graph->n_storages; i++) {
    if (d->graph->storages[i].kind != PLANC_KIND_param) continue;
    int32_t gradient;
    PLANC_TRY(pl_grads_of_param(d, i, &gradient));
    if (gradient < 0) continue;
    any = true;
    PLANC_TRY(add_optimizer_op(d, optimizer, d->graph->storages[i].tensor, gradient));
  }
  return any ? NULL : planc_error(PLANC_BAD_INPUT, "no parameter leads to the loss");
}

/* --- Forwards ----------------------------------------------------------------------------------------------------- */

static planc_status copy_forward(pl_derivation *d, planc_optimizer optimizer) {
  const planc_graph *graph = d->graph;
  PLANC_TRY(planc_graph_builder_header(d->builder, graph->name, graph->layout, graph->batch, graph->device,
                                       optimizers[optimizer].type, graph->policy, graph->origin));
  for (int32_t i = 0; i < graph->n_tensors; i++) {
    const planc_tensor *tensor = &graph->tensors[i];
    const planc_storage *storage = &graph->storages[tensor->storage];
    int32_t same; /* tensors keep their indices */
    PLANC_TRY(planc_graph_builder_tensor(d->builder, tensor->name, storage->kind, tensor->dtype, tensor->rank,
                                         tensor->dims, storage->tensor == i ? -1 : storage->tensor, tensor->offset,
                                         &same));
  }
  for (int32_t i = 0; i < graph->n_ops; i++) PLANC_TRY(planc_graph_builder_op(d->builder, &graph->ops[i]));
  PLANC_TRY(planc_graph_builder_loss(d->builder, graph->loss));
  for (int32_t i = 0; i < graph->n_outputs; i++) PLANC_TRY(planc_graph_builder_output(d->builder, graph->outputs[i]));
  return NULL;
}

/* Finds the inputs of every op that depend on a parameter: only they want a gradient. */
static planc_status find_wanted(pl_derivation *d) {
  const planc_graph *graph = d->graph;
  for (int32_t i = 0; i < graph->n_storages; i++)
    if (graph->storages[i].kind == PLANC_KIND_param)
      PLANC_TRY(pl_byte_ranges_add(&d->states[i].active, pl_byte_range_of(&graph->tensors[graph->storages[i].tensor])));
  bool *wanted = d->wanted;
  for (int32_t i = 0; i < graph->n_ops; i++) {
    const planc_op *op = &graph->ops[i];
    bool any = false;
    for (int32_t k = 0; k < op->n_in; k++) {
      const planc_tensor *x = &graph->tensors[op->in[k]];
      *wanted =
          planc_dtype_is_float(x->dtype) && pl_byte_ranges_touch(&d->states[x->storage].active, pl_byte_range_of(x));
      any |= *wanted++;
    }
    for (int32_t k = 0; k < op->n_out; k++) {
      const planc_tensor *y = &graph->tensors[op->out[k]];
      pl_byte_ranges *active = &d->states[y->storage].active;
      PLANC_TRY(any ? pl_byte_ranges_add(active, pl_byte_range_of(y))
                    : pl_byte_ranges_remove(active, pl_byte_range_of(y)));
    }
  }
  return NULL;
}

/* Going backwards, notes that before the current op its storages held something else. */
static planc_status note_overwrites(pl_derivation *d) {
  const planc_op *op = d->op;
  for (int32_t i = 0; i < op->n_out + op->n_effects; i++) {
    const planc_tensor *tensor = &d->graph->tensors[i < op->n_out ? op->out[i] : op->effects[i - op->n_out]];
    pl_grad_state *state = &d->states[tensor->storage];
    pl_overwrite overwrite = {pl_byte_range_of(tensor), op};
    /* Later writes to the same bytes no longer matter. */
    int64_t kept = 0;
    for (int64_t k = 0; k < state->overwrites.len; k++)
      if (!pl_byte_range_covers(overwrite.range, state->overwrites.data[k].range))
        state->overwrites.data[kept++] = state->overwrites.data[k];
    state->overwrites.len = kept;
    VEC_PUSH(&state->overwrites, overwrite);
  }
  return NULL;
}

static planc_status derive_op(pl_derivation *d) {
  const pl_train_rule *rule = pl_train_rule_find(pl_optype_of(d->op));
  bool reached, wanted = false;
  PLANC_TRY(pl_grads_take(d, rule && pl_train_rule_takes_all(rule), &reached));
  for (int32_t i = 0; i < d->op->n_in; i++) wanted |= d->op_wanted[i];
  if (reached && wanted) {
    if (!rule) return planc_error(PLANC_BAD_INPUT, "op %s: type %s has no derivative", d->op->name, d->op->type);
    PLANC_TRY(pl_train_rule_apply(d, rule));
  }
  pl_grads_release(d);
  return note_overwrites(d);
}
