/* Which bytes hold whose gradient while a graph is derived backwards. Views share a storage, so gradients belong to
 * byte ranges of storages; an add hands one gradient to both its inputs, so a store counts its users, and a backward op
 * may write over the gradient it reads only as its last user. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "graph/train.h"

static const planc_tensor *tensor_of(const pl_derivation *d, int32_t tensor);
static pl_grad_state *state_of(pl_derivation *d, int32_t tensor);

planc_status pl_grads_tensor(pl_derivation *d, const char *prefix, int32_t like, const char *suffix, planc_kind kind,
                             int32_t of, planc_law offset, int32_t *out_tensor) {
  const planc_tensor *model = tensor_of(d, like);
  pl_grad_state *state = state_of(d, like);
  char name[512];
  (void)snprintf(name, sizeof name, "%s%s%s", prefix, model->name, suffix);
  while (planc_graph_builder_find(d->builder, name) >= 0)
    (void)snprintf(name, sizeof name, "%s%s%s.%d", prefix, model->name, suffix, ++state->names + 1);
  return planc_graph_builder_tensor(d->builder, name, kind, model->dtype, model->rank, model->dims, of, offset,
                                    out_tensor);
}

static const planc_tensor *tensor_of(const pl_derivation *d, int32_t tensor) {
  return &d->graph->tensors[tensor];
}

static pl_grad_state *state_of(pl_derivation *d, int32_t tensor) {
  return &d->states[tensor_of(d, tensor)->storage];
}

/* --- Tensors of the derived graph --------------------------------------------------------------------------------- */

static planc_status gradient_tensor(pl_derivation *d, int32_t like, planc_kind kind, int32_t of, planc_law offset,
                                    int32_t *out_tensor);

planc_status pl_grads_scratch(pl_derivation *d, int32_t like, int32_t *out_tensor) {
  return gradient_tensor(d, like, PLANC_KIND_temp, -1, (planc_law){0, 0}, out_tensor);
}

/* A tensor for the gradient of `like`: a storage of its own where `of` < 0. */
static planc_status gradient_tensor(pl_derivation *d, int32_t like, planc_kind kind, int32_t of, planc_law offset,
                                    int32_t *out_tensor) {
  bool param = d->graph->storages[tensor_of(d, like)->storage].kind == PLANC_KIND_param;
  return pl_grads_tensor(d, param ? "" : "d.", like, param ? ".grad" : "", kind, of, offset, out_tensor);
}

static planc_status new_store(pl_derivation *d, int32_t like, planc_kind kind, int32_t *out_store) {
  pl_grad_store store = {.tensor = -1, .users = 1};
  PLANC_TRY(gradient_tensor(d, like, kind, -1, (planc_law){0, 0}, &store.tensor));
  VEC_PUSH(&d->stores, store);
  *out_store = (int32_t)(d->stores.len - 1);
  return NULL;
}

static bool has_form(const planc_tensor *tensor, const planc_tensor *model);

/* The tensor on a store that is, or will be, the gradient of tensor `like`: the root, a view made before, or a new one.
 */
static planc_status gradient_on(pl_derivation *d, int32_t store, int32_t like, int32_t *out_tensor) {
  pl_grad_store *on = &d->stores.data[store];
  for (int64_t i = -1; i < on->views.len; i++) {
    int32_t candidate = i < 0 ? on->tensor : on->views.data[i];
    if (!has_form(planc_graph_builder_tensor_at(d->builder, candidate), tensor_of(d, like))) continue;
    *out_tensor = candidate;
    return NULL;
  }
  PLANC_TRY(gradient_tensor(d, like, PLANC_KIND_activation, on->tensor, tensor_of(d, like)->offset, out_tensor));
  VEC_PUSH(&on->views, *out_tensor);
  return NULL;
}

static bool has_form(const planc_tensor *tensor, const planc_tensor *model) {
  if (tensor->dtype != model->dtype || tensor->rank != model->rank || !pl_law_equal(tensor->offset, model->offset))
    return false;
  for (int32_t i = 0; i < model->rank; i++)
    if (!pl_law_equal(tensor->dims[i], model->dims[i])) return false;
  return true;
}

/* --- States ------------------------------------------------------------------------------------------------------- */

static void note_use(pl_derivation *d, const int32_t *tensors, int32_t count);

planc_status pl_grads_init(pl_derivation *d) {
  const planc_graph *graph = d->graph;
  for (int32_t i = 0; i < graph->n_storages; i++) {
    d->states[i].store = -1;
    d->states[i].exclusive = graph->storages[i].kind == PLANC_KIND_param;
  }
  for (int32_t i = 0; i < graph->n_ops; i++) {
    note_use(d, graph->ops[i].in, graph->ops[i].n_in);
    note_use(d, graph->ops[i].out, graph->ops[i].n_out);
  }
  pl_grad_store loss = {.tensor = -1, .users = 1};
  VEC_PUSH(&d->stores, loss);
  return NULL;
}

static void note_use(pl_derivation *d, const int32_t *tensors, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    const planc_tensor *tensor = tensor_of(d, tensors[i]);
    if (!pl_law_equal(tensor->bytes, d->graph->storages[tensor->storage].bytes))
      d->states[tensor->storage].exclusive = true;
  }
}

void pl_grads_free(pl_derivation *d) {
  for (int32_t i = 0; d->states && i < d->graph->n_storages; i++) {
    VEC_FREE(&d->states[i].active);
    VEC_FREE(&d->states[i].defined);
    VEC_FREE(&d->states[i].overwrites);
  }
  for (int64_t i = 0; i < d->stores.len; i++) VEC_FREE(&d->stores.data[i].views);
  VEC_FREE(&d->dy_stores);
  VEC_FREE(&d->stores);
}

planc_status pl_grads_seed(pl_derivation *d, int32_t loss) {
  pl_grad_state *state = state_of(d, loss);
  if (state->exclusive)
    return planc_error(PLANC_BAD_INPUT, "loss %s: must have a storage of its own", tensor_of(d, loss)->name);
  state->store = PL_STORE_OF_LOSS;
  return pl_byte_ranges_add(&state->defined, pl_byte_range_of(tensor_of(d, loss)));
}

/* --- The current op's own gradient -------------------------------------------------------------------------------- */

planc_status pl_grads_take(pl_derivation *d, bool takes_all, bool *out_any) {
  *out_any = false;
  d->dy_stores.len = 0;
  for (int32_t i = 0; i < d->op->n_out; i++) VEC_PUSH(&d->dy_stores, -1);
  for (int32_t i = 0; i < d->op->n_out; i++) {
    const planc_tensor *y = tensor_of(d, d->op->out[i]);
    pl_grad_state *state = state_of(d, d->op->out[i]);
    pl_byte_range range = pl_byte_range_of(y);
    if (!pl_byte_ranges_touch(&state->defined, range)) continue;
    if (i > 0 && !takes_all)
      return planc_error(PLANC_BAD_INPUT, "op %s: a gradient reaches %s, its output %d, for which %s has no rule",
                         d->op->name, y->name, i + 1, d->op->type);
    if (!pl_byte_ranges_cover(&state->defined, range))
      return planc_error(PLANC_BAD_INPUT, "op %s: only part of %s has a gradient: the rest of it leads to no loss",
                         d->op->name, y->name);
    PLANC_TRY(pl_byte_ranges_remove(&state->defined, range));
    *out_any = true;
    d->dy_stores.data[i] = state->store;
  }
  return NULL;
}

void pl_grads_release(pl_derivation *d) {
  for (int64_t i = 0; i < d->dy_stores.len; i++)
    if (d->dy_stores.data[i] >= 0) d->stores.data[d->dy_stores.data[i]].users--;
  d->dy_stores.len = 0;
}

planc_status pl_grads_dy(pl_derivation *d, int32_t output, int32_t *out_tensor) {
  int32_t store = d->dy_stores.data[output];
  assert(store >= 0); /* no rule reads dy after a step that writes over it */
  if (store == PL_STORE_OF_LOSS)
    return planc_error(PLANC_BAD_INPUT,
                       "op %s: only adds of whole tensors may stand between softmax_xent or mse and the loss",
                       d->op->name);
  return gradient_on(d, store, d->op->out[output], out_tensor);
}

/* --- Gradients that arrive at an input ---------------------------------------------------------------------------- */

static bool may_share(pl_derivation *d, int32_t x);

planc_status pl_grads_target(pl_derivation *d, int32_t operand, bool over_dy, pl_grad_target *out) {
  int32_t x = d->op->in[operand], storage = tensor_of(d, x)->storage;
  pl_grad_state *state = &d->states[storage];
  bool param = d->graph->storages[storage].kind == PLANC_KIND_param;
  pl_byte_range range = pl_byte_range_of(tensor_of(d, x));
  int32_t *dy_store = &d->dy_stores.data[0];
  *out = (pl_grad_target){-1, -1};

  if (over_dy && may_share(d, x) && (state->exclusive || d->stores.data[*dy_store].users == 1)) {
    out->store = *dy_store;
    *dy_store = -1;
  } else if (!state->exclusive) {
    PLANC_TRY(new_store(d, d->graph->storages[storage].tensor, PLANC_KIND_activation, &out->store));
  } else if (!pl_byte_ranges_touch(&state->defined, range)) {
    if (state->store < 0)
      PLANC_TRY(new_store(d, d->graph->storages[storage].tensor, param ? PLANC_KIND_grad : PLANC_KIND_activation,
                          &state->store));
    out->store = state->store;
  } else if (pl_byte_ranges_cover(&state->defined, range)) {
    PLANC_TRY(new_store(d, x, param ? PLANC_KIND_temp : PLANC_KIND_activation, &out->store));
    out->tensor = d->stores.data[out->store].tensor;
    return NULL;
  } else {
    return planc_error(PLANC_BAD_INPUT, "op %s: the gradient of %s overlaps in part with that of another view of %s",
                       d->op->name, tensor_of(d, x)->name, tensor_of(d, d->graph->storages[storage].tensor)->name);
  }
  return gradient_on(d, out->store, x, &out->tensor);
}

/* True when the operand's gradient may lie in dy's bytes: both storages are free to share a store, or it is the very
 * same bytes (an in-place op). */
static bool may_share(pl_derivation *d, int32_t x) {
  int32_t y = d->op->out[0];
  if (!state_of(d, x)->exclusive && !state_of(d, y)->exclusive) return true;
  return tensor_of(d, x)->storage == tensor_of(d, y)->storage &&
         pl_byte_range_equal(pl_byte_range_of(tensor_of(d, x)), pl_byte_range_of(tensor_of(d, y)));
}

static planc_status sum_stores(pl_derivation *d, int32_t operand, int32_t with);
static planc_status emit_sum(pl_derivation *d, int32_t operand, int32_t to, int32_t a, int32_t b);

planc_status pl_grads_arrive(pl_derivation *d, int32_t operand, pl_grad_target target) {
  int32_t x = d->op->in[operand];
  pl_grad_state *state = state_of(d, x);
  pl_byte_range range = pl_byte_range_of(tensor_of(d, x));
  bool first = !pl_byte_ranges_cover(&state->defined, range);
  if (state->exclusive && !first) {
    int32_t gradient;
    PLANC_TRY(gradient_on(d, state->store, x, &gradient));
    return emit_sum(d, operand, gradient, gradient, target.tensor);
  }
  if (!first) return sum_stores(d, operand, target.store);
  state->store = target.store;
  return pl_byte_ranges_add(&state->defined, range);
}

/* Adds the gradient in store `with` to the one the storage has, in place on whichever has no other user. Both stores
 * are counted as used by the storage. */
static planc_status sum_stores(pl_derivation *d, int32_t operand, int32_t with) {
  int32_t x = d->op->in[operand], a, b, sum, target;
  pl_grad_state *state = state_of(d, x);
  if (state->store == PL_STORE_OF_LOSS || with == PL_STORE_OF_LOSS)
    return planc_error(PLANC_BAD_INPUT, "op %s: %s adds to the loss and is used otherwise as well", d->op->name,
                       tensor_of(d, x)->name);
  PLANC_TRY(gradient_on(d, state->store, x, &a));
  PLANC_TRY(gradient_on(d, with, x, &b));
  if (d->stores.data[state->store].users == 1) {
    target = state->store;
    PLANC_TRY(emit_sum(d, operand, a, a, b));
  } else if (d->stores.data[with].users == 1) {
    target = with;
    PLANC_TRY(emit_sum(d, operand, b, b, a));
  } else {
    PLANC_TRY(new_store(d, d->graph->storages[tensor_of(d, x)->storage].tensor, PLANC_KIND_activation, &target));
    PLANC_TRY(gradient_on(d, target, x, &sum));
    PLANC_TRY(emit_sum(d, operand, sum, a, b));
  }
  if (target != state->store) d->stores.data[state->store].users--;
  if (target != with) d->stores.data[with].users--;
  state->store = target;
  return NULL;
}

/* Emits `to` = `a` + `b`. */
static planc_status emit_sum(pl_derivation *d, int32_t operand, int32_t to, int32_t a, int32_t b) {
  char suffix[32];
  (void)snprintf(suffix, sizeof suffix, "sum.%d", operand + 1);
  return pl_train_emit(d, PL_OPTYPE_add, suffix, (int32_t[]){a, b}, 2, &to, 1, NULL, 0);
}

planc_status pl_grads_pass(pl_derivation *d, int32_t operand) {
  int32_t x = d->op->in[operand];
  if (may_share(d, x)) {
    pl_grad_target same = {-1, d->dy_stores.data[0]};
    d->stores.data[same.store].users++;
    return pl_grads_arrive(d, operand, same);
  }
  /* A slice of everything is a copy. */
  const planc_attr attrs[] = {{.key = "axis", .type = PLANC_ATTR_INT}, {.key = "offset", .type = PLANC_ATTR_INT}};
  pl_grad_target copy;
  int32_t dy;
  char suffix[32];
  (void)snprintf(suffix, sizeof suffix, "copy.%d", operand + 1);
  PLANC_TRY(pl_grads_dy(d, 0, &dy));
  PLANC_TRY(pl_grads_target(d, operand, false, &copy));
  PLANC_TRY(pl_train_emit(d, PL_OPTYPE_concat_grad, suffix, &dy, 1, &copy.tensor, 1, attrs, 2));
  return pl_grads_arrive(d, operand, copy);
}

planc_status pl_grads_of_param(pl_derivation *d, int32_t storage, int32_t *out_tensor) {
  const pl_grad_state *state = &d->states[storage];
  const planc_tensor *root = tensor_of(d, d->graph->storages[storage].tensor);
  *out_tensor = -1;
  if (state->defined.len == 0) return NULL;
  if (!pl_byte_ranges_cover(&state->defined, pl_byte_range_of(root)))
    return planc_error(PLANC_BAD_INPUT, "param %s: only part of it leads to the loss", root->name);
  *out_tensor = d->stores.data[state->store].tensor;
  return NULL;
}
