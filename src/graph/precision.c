/* The precision of a forward graph, before training is derived from it.
 *
 * In bf16 every activation is bf16, but for what an op table entry marks as of any type: losses, probabilities, saved
 * means and deviations stay f32, as do parameters, state and gradients of parameters. An op whose operands share one
 * type reads an f32 tensor, be it a weight or an input, through a copy that a cast makes in front of its first reader;
 * a derived cast then adds the copy's gradient to that of the f32 weight, the master copy that the optimizer updates
 * (Micikevicius et al., Mixed Precision Training, 3.1). Ops of unknown type keep f32 operands, with casts around them.
 *
 * In TF32 nothing changes but an attribute of convolutions and matrix products. */
#include <stdio.h>
#include <string.h>

#include "graph/law.h"
#include "graph/operands.h"
#include "graph/train.h"
#include "util/arena.h"
#include "util/map.h"

static const char *const names[] = {[PLANC_F32] = "f32", [PLANC_TF32] = "tf32", [PLANC_BF16] = "bf16"};

planc_status planc_precision_parse(const char *name, planc_precision *out) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i], name) != 0) continue;
    *out = (planc_precision)i;
    return NULL;
  }
  return planc_error(PLANC_USAGE, "no precision is called \"%s\": f32, tf32 and bf16 are", name);
}

/* What a cast made of a tensor. */
typedef struct cast_copy {
  int32_t tensor; /* 0: none; copies come after all given tensors */
  int64_t writes; /* of the storage before the cast: after one more the copy is of an old value */
} cast_copy;

typedef struct conversion {
  const planc_graph *graph;
  planc_precision precision;
  planc_graph_builder *builder;
  pl_arena arena;
  bool *stays;       /* by storage: its tensors keep their types */
  int64_t *writes;   /* by storage: up to the current op */
  cast_copy *copies; /* by tensor */
  pl_map op_names;
  const planc_op *op;
} conversion;

static planc_status check_forward(const planc_graph *graph);
static planc_status convert(conversion *c);
static planc_status convert_op(conversion *c);
static planc_status find_staying(conversion *c);
static planc_status convert_inputs(conversion *c, planc_op *op);
static planc_status allow_tf32(conversion *c, planc_op *op);
static planc_status convert_tensor(conversion *c, int32_t index);
static int32_t storage_of(const conversion *c, int32_t tensor);

planc_status planc_graph_convert(const planc_graph *forward, planc_precision precision, planc_graph **out) {
  *out = NULL;
  PLANC_TRY(check_forward(forward));
  conversion c = {.graph = forward, .precision = precision};
  planc_status status = planc_graph_builder_new(&c.builder);
  if (!status) status = convert(&c);
  if (!status) status = planc_graph_builder_finish(c.builder, out, NULL, NULL);
  planc_graph_builder_free(c.builder);
  pl_map_free(&c.op_names);
  pl_arena_free(&c.arena);
  return planc_context(status, "precision");
}

/* What follows the forward pass has its types from it, and of a recorded step from the calls that ran. */
static planc_status check_forward(const planc_graph *graph) {
  planc_status status = pl_train_check_forward(graph);
  if (!status) return NULL;
  planc_status_free(status);
  return planc_error(
      PLANC_BAD_INPUT,
      "graph %s has backward or optimizer ops already, and a precision is of the forward graph that they "
      "are derived from; of a step in PyTorch, record or export one under torch.autocast: its graph has "
      "the casts",
      graph->name);
}

static planc_status convert(conversion *c) {
  const planc_graph *graph = c->graph;
  PLANC_TRY(PL_NEW(&c->arena, &c->stays, graph->n_storages));
  PLANC_TRY(PL_NEW(&c->arena, &c->writes, graph->n_storages));
  PLANC_TRY(PL_NEW(&c->arena, &c->copies, graph->n_tensors));
  if (c->precision == PLANC_BF16) PLANC_TRY(find_staying(c));
  for (int32_t o = 0; o < graph->n_ops; o++)
    PLANC_TRY(pl_map_put(&c->op_names, graph->ops[o].name, strlen(graph->ops[o].name), o));

  PLANC_TRY(planc_graph_builder_header(c->builder, graph->name, graph->layout, graph->batch, graph->device,
                                       graph->optimizer, graph->policy, graph->origin));
  for (int32_t t = 0; t < graph->n_tensors; t++) PLANC_TRY(convert_tensor(c, t));
  for (int32_t o = 0; o < graph->n_ops; o++) {
    c->op = &graph->ops[o];
    PLANC_TRY(convert_op(c));
  }
  if (graph->loss >= 0) PLANC_TRY(planc_graph_builder_loss(c->builder, graph->loss));
  for (int32_t i = 0; i < graph->n_outputs; i++) PLANC_TRY(planc_graph_builder_output(c->builder, graph->outputs[i]));
  return NULL;
}

static planc_status convert_op(conversion *c) {
  planc_op op = *c->op;
  bool flops, traffic;
  PLANC_TRY(pl_op_costs_are_derived(c->graph, c->op, &flops, &traffic));
  /* A cost that the type gave is given again for the new operands; one that the file states stands. */
  if (flops) op.flops = (planc_law){-1, -1};
  if (traffic) op.traffic = (planc_law){-1, -1};
  if (c->precision == PLANC_TF32) PLANC_TRY(allow_tf32(c, &op));
  if (c->precision == PLANC_BF16) PLANC_TRY(convert_inputs(c, &op));
  for (int32_t i = 0; i < op.n_out; i++) c->writes[storage_of(c, op.out[i])]++;
  for (int32_t i = 0; i < op.n_effects; i++) c->writes[storage_of(c, op.effects[i])]++;
  return planc_graph_builder_op(c->builder, &op);
}

/* --- What stays f32 ----------------------------------------------------------------------------------------------- */

/* The loss and the losses that adds make it from: one type, f32, all the way. */
static planc_status keep_losses(conversion *c) {
  bool *is_loss;
  PLANC_TRY(PL_NEW(&c->arena, &is_loss, c->graph->n_storages));
  if (c->graph->loss >= 0) c->stays[storage_of(c, c->graph->loss)] = is_loss[storage_of(c, c->graph->loss)] = true;
  for (int32_t o = c->graph->n_ops; o-- > 0;) {
    const planc_op *op = &c->graph->ops[o];
    if (pl_optype_of(op) != PL_OPTYPE_add || !is_loss[storage_of(c, op->out[0])]) continue;
    for (int32_t i = 0; i < op->n_in; i++)
      c->stays[storage_of(c, op->in[i])] = is_loss[storage_of(c, op->in[i])] = true;
  }
  return NULL;
}

static planc_status find_staying(conversion *c) {
  const planc_graph *graph = c->graph;
  for (int32_t s = 0; s < graph->n_storages; s++)
    c->stays[s] = graph->storages[s].kind != PLANC_KIND_activation && graph->storages[s].kind != PLANC_KIND_temp;
  for (int32_t t = 0; t < graph->n_tensors; t++) {
    const planc_tensor *tensor = &graph->tensors[t];
    if (planc_dtype_is_half(tensor->dtype))
      return planc_error(PLANC_BAD_INPUT, "graph %s has its own mixed precision: tensor %s is %s", graph->name,
                         tensor->name, planc_dtype_name(tensor->dtype));
    if (tensor->dtype != PLANC_DTYPE_f32) c->stays[tensor->storage] = true;
  }
  for (int32_t o = 0; o < graph->n_ops; o++) {
    const planc_op *op = &graph->ops[o];
    for (int32_t i = 0; i < op->n_out; i++)
      if (!op->known || pl_output_mark(op->known, i)) c->stays[storage_of(c, op->out[i])] = true;
  }
  return keep_losses(c);
}

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

static planc_dtype shared_dtype(const conversion *c);
static planc_status as_dtype(conversion *c, int32_t tensor, planc_dtype dtype, int32_t *out);
static planc_dtype new_dtype(const conversion *c, int32_t tensor);

static planc_status convert_inputs(conversion *c, planc_op *op) {
  planc_dtype shared = op->known ? shared_dtype(c) : PLANC_DTYPE_f32;
  int32_t *in;
  PLANC_TRY(PL_NEW(&c->arena, &in, op->n_in));
  for (int32_t i = 0; i < op->n_in; i++) {
    in[i] = op->in[i];
    if (!op->known || !pl_input_mark(op->known, i)) PLANC_TRY(as_dtype(c, op->in[i], shared, &in[i]));
  }
  op->in = in;
  return NULL;
}

/* The type of the operands that share one: the results', else that of the first to be read. */
static planc_dtype shared_dtype(const conversion *c) {
  const planc_optype *type = c->op->known;
  for (int32_t i = 0; i < c->op->n_out; i++)
    if (!pl_output_mark(type, i)) return new_dtype(c, c->op->out[i]);
  for (int32_t i = 0; i < c->op->n_in; i++)
    if (!pl_input_mark(type, i)) return new_dtype(c, c->op->in[i]);
  return PLANC_DTYPE_f32;
}

static planc_status allow_tf32(conversion *c, planc_op *op) {
  const pl_attr_rule *rule = op->known ? op->known->attrs : NULL;
  while (rule && rule->key && strcmp(rule->key, PL_TF32_KEY) != 0) rule++;
  if (!rule || !rule->key || planc_op_attr(op, PL_TF32_KEY)) return NULL;
  planc_attr *attrs;
  PLANC_TRY(PL_NEW(&c->arena, &attrs, (int64_t)op->n_attrs + 1));
  if (op->n_attrs > 0) memcpy(attrs, op->attrs, (size_t)op->n_attrs * sizeof *attrs);
  attrs[op->n_attrs++] = (planc_attr){.key = PL_TF32_KEY, .type = PLANC_ATTR_INT, .value.integer = 1};
  op->attrs = attrs;
  return NULL;
}

/* --- Casts -------------------------------------------------------------------------------------------------------- */

static planc_status add_cast(conversion *c, int32_t tensor, planc_dtype dtype, int32_t *out);
static planc_status name_copy(conversion *c, int32_t tensor, planc_dtype dtype, const char **out);

/* Tensor `tensor` as `dtype`: itself, a copy that is there already, or a new one. */
static planc_status as_dtype(conversion *c, int32_t tensor, planc_dtype dtype, int32_t *out) {
  *out = tensor;
  if (c->graph->tensors[tensor].dtype != PLANC_DTYPE_f32 || new_dtype(c, tensor) == dtype) return NULL;
  cast_copy *copy = &c->copies[tensor];
  int64_t writes = c->writes[storage_of(c, tensor)];
  if (!copy->tensor || copy->writes != writes) {
    PLANC_TRY(add_cast(c, tensor, dtype, &copy->tensor));
    copy->writes = writes;
  }
  *out = copy->tensor;
  return NULL;
}

static planc_status add_cast(conversion *c, int32_t tensor, planc_dtype dtype, int32_t *out) {
  const planc_tensor *from = &c->graph->tensors[tensor];
  const char *name;
  PLANC_TRY(name_copy(c, tensor, dtype, &name));
  PLANC_TRY(planc_graph_builder_tensor(c->builder, name, PLANC_KIND_activation, dtype, from->rank, from->dims, -1,
                                       (planc_law){0, 0}, out));
  bool in_loop = !planc_kind_exists_before(c->graph->storages[from->storage].kind);
  planc_op op = {.name = name,
                 .type = "cast",
                 .phase = c->op->phase,
                 .n_in = 1,
                 .in = &tensor,
                 .n_out = 1,
                 .out = out,
                 .flops = {-1, -1},
                 .traffic = {-1, -1},
                 .loop = in_loop ? c->op->loop : NULL,
                 .loop_step = in_loop ? c->op->loop_step : 0};
  return planc_graph_builder_op(c->builder, &op);
}

/* A name for a cast and its result that is neither an op's nor a tensor's. */
static planc_status name_copy(conversion *c, int32_t tensor, planc_dtype dtype, const char **out) {
  char name[512];
  int length = snprintf(name, sizeof name, "%s.%s", c->graph->tensors[tensor].name, planc_dtype_name(dtype));
  for (int32_t number = 2;; number++) {
    size_t used = strlen(name);
    if (planc_graph_builder_find(c->builder, name) < 0 && pl_map_get(&c->op_names, name, used) < 0)
      return pl_arena_strndup(&c->arena, name, used, out);
    (void)snprintf(name + length, sizeof name - (size_t)length, ".%d", number);
  }
}

/* --- Tensors ------------------------------------------------------------------------------------------------------ */

/* A tensor of the new graph; it keeps its index. */
static planc_status convert_tensor(conversion *c, int32_t index) {
  const planc_tensor *tensor = &c->graph->tensors[index];
  const planc_storage *storage = &c->graph->storages[tensor->storage];
  planc_dtype dtype = c->precision == PLANC_BF16 ? new_dtype(c, index) : tensor->dtype;
  int64_t part = planc_dtype_bytes(tensor->dtype) / planc_dtype_bytes(dtype);
  planc_law offset = {tensor->offset.fixed / part, tensor->offset.per_sample / part};
  int32_t same;
  return planc_graph_builder_tensor(c->builder, tensor->name, storage->kind, dtype, tensor->rank, tensor->dims,
                                    storage->tensor == index ? -1 : storage->tensor, offset, &same);
}

/* The type that a given tensor has in the new graph. */
static planc_dtype new_dtype(const conversion *c, int32_t tensor) {
  return c->stays[storage_of(c, tensor)] ? c->graph->tensors[tensor].dtype : PLANC_DTYPE_bf16;
}

static int32_t storage_of(const conversion *c, int32_t tensor) {
  return c->graph->tensors[tensor].storage;
}
