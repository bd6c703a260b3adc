/* What random graphs are put together from (randparts.h). */
#include "tests/support/randparts.h"

#include <stdio.h>

/* --- Storages and tensors ----------------------------------------------------------------------------------------- */

static planc_status add_tensor(rand_maker *m, planc_kind kind, planc_dtype dtype, planc_law elements, int32_t of,
                               planc_law offset, int32_t *out) {
  char name[32];
  snprintf(name, sizeof name, "%.1s%d%s", planc_kind_name(kind), (int)m->tensors.len, of < 0 ? "" : ".window");
  planc_law dims[2] = {elements};
  int32_t rank = 1;
  if (elements.fixed == 0 && rand_yes(m, 80)) {
    dims[0] = (planc_law){0, 1};
    dims[1] = (planc_law){elements.per_sample, 0};
    rank = 2;
  } else if (elements.fixed == 1 && elements.per_sample == 0) {
    rank = 0;
  }
  return planc_graph_builder_tensor(m->builder, name, kind, dtype, rank, dims, of, offset, out);
}

/* A view of `tile` elements on `storage`, `begin` elements after its start. */
static planc_status add_view(rand_maker *m, int32_t storage, planc_law begin, planc_law elements, uint32_t covers,
                             uint32_t needs, int32_t *out) {
  const rand_storage *of = &m->storages.data[storage];
  int64_t size = planc_dtype_bytes(of->dtype);
  planc_law offset = {begin.fixed * size, begin.per_sample * size};
  PLANC_TRY(add_tensor(m, of->kind, of->dtype, elements, of->root, offset, out));
  VEC_PUSH(&m->tensors, ((rand_tensor){.storage = storage, .covers = covers, .needs = needs}));
  return NULL;
}

static planc_law tile_begin(planc_law tile, int32_t index) {
  return (planc_law){tile.fixed * index, tile.per_sample * index};
}

planc_status rand_add_storage(rand_maker *m, planc_kind kind, planc_dtype dtype, planc_law tile, int32_t n_tiles,
                              int32_t *out) {
  uint32_t all = (1u << n_tiles) - 1;
  rand_storage storage = {.kind = kind, .dtype = dtype, .tile = tile, .n_tiles = n_tiles, .grad = -1};
  if (planc_kind_exists_before(kind)) storage.written = all;
  PLANC_TRY(add_tensor(m, kind, dtype, tile_begin(tile, n_tiles), -1, (planc_law){0, 0}, &storage.root));
  *out = (int32_t)m->storages.len;
  storage.tiles[0] = storage.root;
  VEC_PUSH(&m->tensors, ((rand_tensor){.storage = *out, .covers = all, .needs = all}));
  VEC_PUSH(&m->storages, storage);
  for (int32_t k = 0; n_tiles > 1 && k < n_tiles; k++)
    PLANC_TRY(add_view(m, *out, tile_begin(tile, k), tile, 1u << k, 1u << k, &m->storages.data[*out].tiles[k]));
  return NULL;
}

static planc_dtype random_real(rand_maker *m) {
  static const planc_dtype dtypes[] = {PLANC_DTYPE_f32, PLANC_DTYPE_f32, PLANC_DTYPE_f16, PLANC_DTYPE_bf16};
  return dtypes[rand_index(m, 4)];
}

static int32_t random_tiles(rand_maker *m, int32_t percent) {
  return !m->options.whole && rand_yes(m, percent) ? 2 + rand_index(m, RAND_MAX_TILES - 1) : 1;
}

planc_status rand_add_made(rand_maker *m, planc_kind kind, int32_t *out_storage) {
  planc_law tile = {0, 1 + rand_index(m, m->options.max_elements)};
  int32_t n_tiles = random_tiles(m, 25);
  if (rand_yes(m, 10)) tile.fixed = 1 + rand_index(m, 9);
  if (rand_yes(m, 5)) tile = (planc_law){1, 0}, n_tiles = 1;
  return rand_add_storage(m, kind, random_real(m), tile, n_tiles, out_storage);
}

planc_status rand_add_fixed(rand_maker *m, planc_kind kind, int32_t *out_storage) {
  planc_law tile = {1 + rand_index(m, m->options.max_elements), 0};
  int32_t n_tiles = random_tiles(m, 30);
  return rand_add_storage(m, kind, random_real(m), tile, n_tiles, out_storage);
}

rand_storage *rand_storage_of(rand_maker *m, int32_t tensor) {
  return &m->storages.data[m->tensors.data[tensor].storage];
}

bool rand_readable(rand_maker *m, int32_t tensor) {
  uint32_t needs = m->tensors.data[tensor].needs;
  return (rand_storage_of(m, tensor)->written & needs) == needs;
}

int32_t rand_whole_or_tile(rand_maker *m, int32_t storage) {
  const rand_storage *of = &m->storages.data[storage];
  return rand_yes(m, 75) ? of->root : of->tiles[rand_index(m, of->n_tiles)];
}

int32_t rand_pick(rand_maker *m, const int32_t *list, int64_t n) {
  for (int32_t tries = 0; n > 0 && tries < 4; tries++) {
    int64_t back = rand_yes(m, 60) ? rand_below(&m->random, n < 4 ? n : 4) : rand_below(&m->random, n);
    if (rand_readable(m, list[n - 1 - back])) return list[n - 1 - back];
  }
  return -1;
}

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

void rand_read_from(rand_maker *m, rand_op *op, int32_t tensor) {
  if (tensor >= 0 && op->n_in < RAND_MAX_OPERANDS && rand_readable(m, tensor)) op->in[op->n_in++] = tensor;
}

bool rand_write_to(rand_maker *m, rand_op *op, int32_t tensor) {
  if (tensor < 0 || op->n_out == RAND_MAX_OPERANDS) return false;
  for (int32_t k = 0; k < op->n_out; k++)
    if (m->tensors.data[op->out[k]].storage == m->tensors.data[tensor].storage) return false;
  op->out[op->n_out++] = tensor;
  return true;
}

planc_status rand_write_in_place(rand_maker *m, rand_op *op, int32_t tensor, int32_t *out_tensor) {
  *out_tensor = tensor;
  rand_tensor view = m->tensors.data[tensor];
  if (view.covers && rand_yes(m, 50)) {
    const rand_storage *of = &m->storages.data[view.storage];
    int32_t first_tile = __builtin_ctz(view.covers), n_tiles = __builtin_popcount(view.covers);
    PLANC_TRY(add_view(m, view.storage, tile_begin(of->tile, first_tile), tile_begin(of->tile, n_tiles), view.covers,
                       view.needs, out_tensor));
  }
  rand_write_to(m, op, *out_tensor);
  return NULL;
}

planc_status rand_add_view(rand_maker *m, int32_t tensor, int32_t *out_view) {
  *out_view = tensor;
  int32_t storage = m->tensors.data[tensor].storage;
  const rand_storage *of = rand_storage_of(m, tensor);
  bool per_sample = of->tile.per_sample > 0;
  int64_t whole = per_sample ? of->tile.per_sample : of->tile.fixed;
  if (whole < 2 || (per_sample && of->tile.fixed > 0) || m->tensors.data[tensor].needs == 0) return NULL;
  int32_t tile = __builtin_ctz(m->tensors.data[tensor].needs);
  int64_t size = 1 + rand_below(&m->random, whole - 1), skip = rand_below(&m->random, whole - size + 1);
  planc_law begin = tile_begin(of->tile, tile), elements = {0, 0};
  *(per_sample ? &begin.per_sample : &begin.fixed) += skip;
  *(per_sample ? &elements.per_sample : &elements.fixed) = size;
  return add_view(m, storage, begin, elements, 0, 1u << tile, out_view);
}

static planc_law random_work(rand_maker *m) {
  return (planc_law){rand_below(&m->random, INT64_C(1) << rand_index(m, 12)),
                     rand_below(&m->random, INT64_C(1) << rand_index(m, 24))};
}

planc_status rand_add_op(rand_maker *m, const rand_op *op) {
  static const char *const types[] = {"rand.mix", "rand.dot", "rand.scan", "rand.sort", "rand.norm"};
  static const int64_t pads[] = {1, 0, 2};
  static const planc_attr attrs[] = {{.key = "axis", .type = PLANC_ATTR_INT, .value.integer = -1},
                                     {.key = "mode", .type = PLANC_ATTR_STRING, .value.string = "wrap"},
                                     {.key = "pads", .type = PLANC_ATTR_INTS, .count = 3, .value.ints = pads},
                                     {.key = "rate", .type = PLANC_ATTR_REAL, .value.real = 0.125}};
  char name[32];
  snprintf(name, sizeof name, "op%d", m->n_ops);
  planc_op all = {.name = name,
                  .type = types[rand_index(m, 5)],
                  .phase = op->phase,
                  .flags = op->flags,
                  .n_in = op->n_in,
                  .n_out = op->n_out,
                  .n_effects = op->n_effects,
                  .n_attrs = rand_yes(m, 20) ? rand_index(m, 5) : 0,
                  .in = op->in,
                  .out = op->out,
                  .effects = op->effects,
                  .attrs = attrs,
                  .flops = {-1, -1},
                  .traffic = {-1, -1}};
  if (rand_yes(m, 60)) all.flops = random_work(m);
  if (rand_yes(m, 40)) all.traffic = random_work(m);
  if (op->phase == PLANC_PHASE_forward && rand_yes(m, 10)) {
    all.loop = "cell";
    all.loop_step = m->loop_step++;
  }
  for (int32_t k = 0; k < op->n_out; k++) rand_storage_of(m, op->out[k])->written |= m->tensors.data[op->out[k]].covers;
  m->n_ops++;
  return planc_graph_builder_op(m->builder, &all);
}
