/* Random valid graphs (randgraph.h): forward, backward, optimizer. */
#include "tests/support/randgraph.h"

#include <stdio.h>

#include "tests/support/randparts.h"
#include "util/vec.h"

static planc_status make(rand_maker *m);
static planc_status make_forward(rand_maker *m, int32_t n_ops);
static planc_status make_loss(rand_maker *m);
static planc_status make_backward(rand_maker *m, int32_t n_ops);
static planc_status complete_grads(rand_maker *m);
static planc_status make_optimizer(rand_maker *m);
static planc_status make_outputs(rand_maker *m);

planc_status randgraph_make(uint64_t seed, const randgraph_options *options, planc_graph **out) {
  *out = NULL;
  rand_maker m = {.random = seed, .unfinished = -1, .loss = -1};
  if (options) m.options = *options;
  if (m.options.max_ops <= 0) m.options.max_ops = 40;
  if (m.options.max_elements <= 0) m.options.max_elements = 64;
  planc_status status = planc_graph_builder_new(&m.builder);
  if (!status) status = make(&m);
  if (!status) status = planc_graph_builder_finish(m.builder, out, NULL, NULL);
  planc_graph_builder_free(m.builder);
  VEC_FREE(&m.storages);
  VEC_FREE(&m.tensors);
  VEC_FREE(&m.data);
  VEC_FREE(&m.deltas);
  VEC_FREE(&m.params);
  VEC_FREE(&m.states);
  VEC_FREE(&m.saved);
  return planc_context(status, "random graph %llu", (unsigned long long)seed);
}

static planc_status make(rand_maker *m) {
  char name[32];
  snprintf(name, sizeof name, "random-%08llx", (unsigned long long)(m->random & 0xffffffff));
  m->max_ops = m->options.max_ops - rand_index(m, m->options.max_ops - m->options.max_ops / 4);
  PLANC_TRY(planc_graph_builder_header(m->builder, name, rand_yes(m, 50) ? PLANC_LAYOUT_NCHW : PLANC_LAYOUT_NHWC,
                                       1 + rand_index(m, 16), NULL, NULL, NULL, NULL));
  if (m->options.inference) {
    PLANC_TRY(make_forward(m, m->max_ops));
    return make_outputs(m);
  }
  PLANC_TRY(make_forward(m, m->max_ops * 2 / 5));
  PLANC_TRY(make_loss(m));
  PLANC_TRY(make_backward(m, m->max_ops * 17 / 20));
  PLANC_TRY(complete_grads(m));
  PLANC_TRY(make_optimizer(m));
  return make_outputs(m);
}

/* --- Forward ------------------------------------------------------------------------------------------------------ */

static planc_status make_forward_op(rand_maker *m);

static planc_status make_forward(rand_maker *m, int32_t n_ops) {
  static const planc_dtype dtypes[] = {PLANC_DTYPE_f32, PLANC_DTYPE_u8, PLANC_DTYPE_i64, PLANC_DTYPE_i32};
  for (int32_t k = 1 + rand_index(m, 3); k > 0; k--) {
    int32_t storage;
    planc_law tile = {0, 1 + rand_index(m, m->options.max_elements)};
    PLANC_TRY(rand_add_storage(m, PLANC_KIND_input, dtypes[rand_index(m, 4)], tile, 1, &storage));
    VEC_PUSH(&m->data, m->storages.data[storage].root);
  }
  while (m->n_ops < n_ops) {
    rand_op nothing = {.phase = PLANC_PHASE_forward};
    PLANC_TRY(rand_yes(m, 1) ? rand_add_op(m, &nothing) : make_forward_op(m));
  }
  return NULL;
}

static planc_status read_data(rand_maker *m, rand_op *op) {
  for (int32_t k = rand_yes(m, 3) ? 0 : 1 + rand_index(m, 3); k > 0; k--) {
    int32_t tensor = rand_pick(m, m->data.data, m->data.len);
    if (tensor >= 0 && rand_yes(m, 15)) PLANC_TRY(rand_add_view(m, tensor, &tensor));
    rand_read_from(m, op, tensor);
  }
  return NULL;
}

static planc_status read_params(rand_maker *m, rand_op *op, rand_saved *saved) {
  for (int32_t k = rand_index(m, RAND_MAX_PARAMS); k > 0; k--) {
    int32_t param;
    if (m->params.len > 0 && rand_yes(m, 30)) {
      param = m->params.data[rand_index(m, m->params.len)];
    } else {
      PLANC_TRY(rand_add_fixed(m, PLANC_KIND_param, &param));
      VEC_PUSH(&m->params, param);
    }
    rand_read_from(m, op, rand_whole_or_tile(m, param));
    saved->params[saved->n_params++] = param;
  }
  return NULL;
}

/* Running statistics, and counters that are ordinary operands. */
static planc_status use_states(rand_maker *m, rand_op *op) {
  if (!rand_yes(m, 20)) return NULL;
  int32_t state;
  if (m->states.len > 0 && rand_yes(m, 40)) {
    state = m->states.data[rand_index(m, m->states.len)];
  } else {
    PLANC_TRY(rand_add_fixed(m, PLANC_KIND_state, &state));
    VEC_PUSH(&m->states, state);
  }
  int32_t tensor = m->storages.data[state].root;
  int32_t use = rand_index(m, 10);
  if (use < 7) {
    op->effects[op->n_effects++] = tensor;
    if (m->options.allow_batch_coupled && rand_yes(m, 60)) op->flags |= PLANC_OP_BATCH_COUPLED;
    return NULL;
  }
  rand_read_from(m, op, tensor);
  if (use == 9) rand_write_to(m, op, tensor);
  return NULL;
}

/* Chooses where an op's result goes; *out_tensor is what later ops may read, or -1. */
static planc_status write_data(rand_maker *m, rand_op *op, int32_t *out_tensor) {
  int32_t storage, way = rand_index(m, 100);
  *out_tensor = -1;
  if (m->unfinished >= 0 && way < 60) {
    const rand_storage *part = &m->storages.data[m->unfinished];
    int32_t tile = part->tiles[__builtin_ctz(~part->written)];
    if (!rand_write_to(m, op, tile)) return NULL;
    bool last = (part->written | m->tensors.data[tile].covers) == (1u << part->n_tiles) - 1;
    *out_tensor = last ? part->root : tile;
    if (last) m->unfinished = -1;
    return NULL;
  }
  if (way < 25) {
    int32_t over = op->n_in > 0 ? op->in[rand_index(m, op->n_in)] : -1;
    if (over >= 0 && !planc_kind_exists_before(rand_storage_of(m, over)->kind))
      return rand_write_in_place(m, op, over, out_tensor);
  }
  if (way >= 25 && way < 35) {
    /* Over something that the op need not read: all of it, or a part and the rest stays. */
    int32_t over = rand_pick(m, m->data.data, m->data.len);
    if (over >= 0 && rand_storage_of(m, over)->kind == PLANC_KIND_input) over = -1;
    if (over >= 0 && rand_yes(m, 50)) PLANC_TRY(rand_add_view(m, over, &over));
    if (over >= 0 && rand_write_to(m, op, over)) *out_tensor = over;
    return NULL;
  }
  PLANC_TRY(rand_add_made(m, rand_yes(m, 85) ? PLANC_KIND_activation : PLANC_KIND_temp, &storage));
  const rand_storage *made = &m->storages.data[storage];
  *out_tensor = made->root;
  if (made->n_tiles > 1 && m->unfinished < 0 && way >= 70) {
    m->unfinished = storage;
    *out_tensor = made->tiles[0];
  }
  rand_write_to(m, op, *out_tensor);
  return NULL;
}

static planc_status make_forward_op(rand_maker *m) {
  rand_op op = {.phase = PLANC_PHASE_forward};
  rand_saved saved = {0};
  PLANC_TRY(read_data(m, &op));
  for (int32_t k = 0; k < op.n_in; k++) saved.data[saved.n_data++] = op.in[k];
  PLANC_TRY(read_params(m, &op, &saved));
  PLANC_TRY(use_states(m, &op));
  for (int32_t k = rand_yes(m, 2) ? 0 : rand_yes(m, 80) ? 1 : 2; k > 0; k--) {
    int32_t tensor;
    PLANC_TRY(write_data(m, &op, &tensor));
    if (tensor < 0) continue;
    if (saved.n_data < RAND_MAX_OPERANDS) saved.data[saved.n_data++] = tensor;
    if (rand_yes(m, 90)) VEC_PUSH(&m->data, tensor); /* else nobody ever reads it forward */
  }
  if (rand_yes(m, 10)) op.flags |= PLANC_OP_STOCHASTIC;
  if (m->options.once_percent > 0 && rand_yes(m, m->options.once_percent)) op.flags |= PLANC_OP_NO_RECOMPUTE;
  PLANC_TRY(rand_add_op(m, &op));
  VEC_PUSH(&m->saved, saved);
  return NULL;
}

static planc_status make_loss(rand_maker *m) {
  rand_op op = {.phase = PLANC_PHASE_forward, .flags = PLANC_OP_BATCH_MEAN};
  int32_t loss;
  PLANC_TRY(read_data(m, &op));
  PLANC_TRY(rand_add_storage(m, PLANC_KIND_activation, PLANC_DTYPE_f32, (planc_law){1, 0}, 1, &loss));
  m->loss = m->delta = m->storages.data[loss].root;
  rand_write_to(m, &op, m->delta);
  PLANC_TRY(rand_add_op(m, &op));
  return planc_graph_builder_loss(m->builder, m->delta);
}

/* --- Backward ----------------------------------------------------------------------------------------------------- */

/* Writes the gradient of a param: its first maker writes all or a tile, later ones add, fill in or write over. */
static planc_status write_grad(rand_maker *m, rand_op *op, int32_t param) {
  if (m->storages.data[param].grad < 0) {
    rand_storage of = m->storages.data[param];
    int32_t made;
    PLANC_TRY(rand_add_storage(m, PLANC_KIND_grad, of.dtype, of.tile, of.n_tiles, &made));
    m->storages.data[param].grad = made;
  }
  const rand_storage *grad = &m->storages.data[m->storages.data[param].grad];
  int32_t tensor = rand_whole_or_tile(m, m->storages.data[param].grad);
  if (grad->written != 0 && grad->written != (1u << grad->n_tiles) - 1 && rand_yes(m, 70))
    tensor = grad->tiles[__builtin_ctz(~grad->written)];
  bool adds = grad->written != 0 && rand_yes(m, 50) && rand_readable(m, tensor);
  if (rand_write_to(m, op, tensor) && adds) rand_read_from(m, op, tensor);
  if (rand_yes(m, 70)) op->flags |= PLANC_OP_ACCUMULATES;
  return NULL;
}

static planc_status make_backward_op(rand_maker *m, const rand_saved *saved) {
  rand_op op = {.phase = PLANC_PHASE_backward};
  rand_read_from(m, &op, m->delta);
  if (m->deltas.len > 0 && rand_yes(m, 20)) rand_read_from(m, &op, rand_pick(m, m->deltas.data, m->deltas.len));
  for (int32_t k = 0; k < saved->n_data; k++)
    if (rand_yes(m, 60)) rand_read_from(m, &op, saved->data[k]);
  for (int32_t k = 0; k < saved->n_params; k++)
    if (rand_yes(m, 60)) rand_read_from(m, &op, rand_whole_or_tile(m, saved->params[k]));
  if (rand_yes(m, 5)) PLANC_TRY(use_states(m, &op));
  if (rand_yes(m, 10)) op.flags |= PLANC_OP_STOCHASTIC;

  rand_op grads = {.phase = PLANC_PHASE_backward};
  rand_read_from(m, &grads, m->delta);
  if (saved->n_data > 0) rand_read_from(m, &grads, saved->data[0]);
  bool fused = rand_yes(m, 40);
  for (int32_t k = 0; k < saved->n_params; k++) PLANC_TRY(write_grad(m, fused ? &op : &grads, saved->params[k]));
  if (grads.n_out > 0 && m->n_ops < m->max_ops) PLANC_TRY(rand_add_op(m, &grads));

  int32_t delta = m->delta, way = rand_index(m, 100);
  if (way < 25 && op.n_in > 0 && rand_storage_of(m, op.in[0])->kind == PLANC_KIND_activation) {
    PLANC_TRY(rand_write_in_place(m, &op, op.in[0], &delta));
  } else if (way < 80 || op.n_out == 0) {
    int32_t storage;
    PLANC_TRY(rand_add_made(m, rand_yes(m, 80) ? PLANC_KIND_activation : PLANC_KIND_temp, &storage));
    delta = m->storages.data[storage].root;
    rand_write_to(m, &op, delta);
  }
  if (m->n_ops < m->max_ops) PLANC_TRY(rand_add_op(m, &op));
  if (delta != m->delta) VEC_PUSH(&m->deltas, delta);
  m->delta = delta;
  return NULL;
}

/* Something that looks at a gradient before the optimizer does. */
static planc_status make_monitor(rand_maker *m, int32_t grad) {
  rand_op op = {.phase = PLANC_PHASE_backward};
  int32_t storage;
  rand_read_from(m, &op, m->storages.data[grad].root);
  PLANC_TRY(rand_add_storage(m, PLANC_KIND_temp, PLANC_DTYPE_f32, (planc_law){1, 0}, 1, &storage));
  rand_write_to(m, &op, m->storages.data[storage].root);
  return op.n_in > 0 ? rand_add_op(m, &op) : NULL;
}

static planc_status make_backward(rand_maker *m, int32_t n_ops) {
  for (int64_t k = m->saved.len - 1; k >= 0 && m->n_ops < n_ops; k--) {
    rand_saved saved = m->saved.data[k];
    if (rand_yes(m, 85)) PLANC_TRY(make_backward_op(m, &saved));
    if (saved.n_params > 0 && m->n_ops < n_ops && rand_yes(m, 8)) {
      int32_t grad = m->storages.data[saved.params[0]].grad;
      if (grad >= 0) PLANC_TRY(make_monitor(m, grad));
    }
  }
  return NULL;
}

static int32_t missing_tiles(const rand_storage *storage) {
  return storage->n_tiles - __builtin_popcount(storage->written);
}

/* Gradients of which only some tiles are written get the last one, or are made anew from one. */
static planc_status complete_grads(rand_maker *m) {
  rand_op op = {.phase = PLANC_PHASE_backward};
  rand_read_from(m, &op, m->delta);
  for (int64_t k = 0; k < m->storages.len; k++) {
    const rand_storage *grad = &m->storages.data[k];
    if (grad->kind != PLANC_KIND_grad || grad->written == 0 || missing_tiles(grad) == 0) continue;
    rand_read_from(m, &op, grad->tiles[__builtin_ctz(grad->written)]);
    rand_write_to(m, &op, missing_tiles(grad) == 1 ? grad->tiles[__builtin_ctz(~grad->written)] : grad->root);
    if (op.n_in < RAND_MAX_OPERANDS) continue;
    PLANC_TRY(rand_add_op(m, &op));
    op.n_in = op.n_out = 0;
  }
  return op.n_out > 0 ? rand_add_op(m, &op) : NULL;
}

/* --- Optimizer, outputs ------------------------------------------------------------------------------------------- */

static planc_status make_update(rand_maker *m, int32_t param, int32_t norm) {
  rand_op op = {.phase = PLANC_PHASE_optimizer};
  const rand_storage *grad = &m->storages.data[m->storages.data[param].grad];
  int32_t weight = rand_whole_or_tile(m, param);
  rand_read_from(m, &op, weight);
  rand_read_from(m, &op, grad->root);
  if (norm >= 0 && rand_yes(m, 60)) rand_read_from(m, &op, norm);
  if (m->options.unsplittable && rand_yes(m, 60)) rand_read_from(m, &op, m->delta);
  PLANC_TRY(rand_write_in_place(m, &op, weight, &weight));
  for (int32_t k = rand_index(m, 3); k > 0; k--) {
    int32_t moment;
    rand_storage of = m->storages.data[param];
    PLANC_TRY(rand_add_storage(m, PLANC_KIND_state, PLANC_DTYPE_f32, of.tile, of.n_tiles, &moment));
    moment = m->storages.data[moment].root;
    rand_read_from(m, &op, moment);
    rand_write_to(m, &op, moment);
  }
  return rand_add_op(m, &op);
}

static planc_status make_optimizer(rand_maker *m) {
  int32_t norm = -1;
  if (rand_yes(m, 40) && m->n_ops < m->max_ops) {
    rand_op op = {.phase = PLANC_PHASE_optimizer};
    int32_t storage;
    PLANC_TRY(rand_add_storage(m, PLANC_KIND_temp, PLANC_DTYPE_f32, (planc_law){1, 0}, 1, &storage));
    for (int64_t k = 0; k < m->params.len && k < 6; k++) {
      int32_t grad = m->storages.data[m->params.data[k]].grad;
      if (grad >= 0) rand_read_from(m, &op, m->storages.data[grad].root);
    }
    norm = m->storages.data[storage].root;
    rand_write_to(m, &op, norm);
    PLANC_TRY(rand_add_op(m, &op));
  }
  for (int64_t k = 0; k < m->params.len && m->n_ops < m->max_ops; k++) {
    int32_t grad = m->storages.data[m->params.data[k]].grad;
    if (grad < 0 || m->storages.data[grad].written == 0) continue;
    if (norm >= 0 && rand_yes(m, 20) && m->n_ops + 1 < m->max_ops && rand_readable(m, m->storages.data[grad].root)) {
      rand_op clip = {.phase = PLANC_PHASE_optimizer};
      rand_read_from(m, &clip, m->storages.data[grad].root);
      rand_read_from(m, &clip, norm);
      rand_write_to(m, &clip, m->storages.data[grad].root);
      PLANC_TRY(rand_add_op(m, &clip));
    }
    if (rand_yes(m, 90)) PLANC_TRY(make_update(m, m->params.data[k], norm));
  }
  return NULL;
}

static planc_status make_outputs(rand_maker *m) {
  int32_t last = -1;
  for (int32_t k = m->options.inference ? 1 + rand_index(m, 2) : rand_index(m, 3), tries = 0; k > 0 && tries < 20;
       tries++) {
    const rand_storage *of = &m->storages.data[rand_index(m, m->storages.len)];
    bool may = of->kind == PLANC_KIND_activation || of->kind == PLANC_KIND_temp;
    if (!may || of->root == last || of->root == m->loss || missing_tiles(of) > 0) continue;
    last = of->root;
    k--;
    PLANC_TRY(planc_graph_builder_output(m->builder, last));
  }
  return NULL;
}
