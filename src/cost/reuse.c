/* Reuse (reuse.h). */
#include "cost/reuse.h"

#include <assert.h>

#include "util/math.h"

static int64_t forgotten(const pl_reuse *reuse);
static int32_t operand_count(const planc_op *op);
static int32_t storage_of(const pl_reuse *reuse, const planc_op *op, int32_t i);
static int64_t left_of(const pl_reuse *reuse, int64_t bytes, uint64_t distance);

planc_status pl_reuse_start(const planc_profile *profile, const planc_graph *graph, int32_t op, int32_t n_batches,
                            const int64_t *batches, pl_arena *arena, pl_reuse *out) {
  *out = (pl_reuse){.graph = graph, .cache_bytes = profile->cache.bytes, .n_batches = n_batches, .batches = batches};
  out->op = op > PL_REUSE_OPS ? op - PL_REUSE_OPS : 0;
  if (out->cache_bytes == 0) {
    out->op = op;
    return NULL;
  }
  PLANC_TRY(PL_NEW(arena, &out->last, graph->n_storages));
  PLANC_TRY(PL_NEW(arena, &out->since, (int64_t)graph->n_storages * n_batches));
  PLANC_TRY(PL_NEW(arena, &out->moved, n_batches));
  for (int32_t s = 0; s < graph->n_storages; s++) out->last[s] = -1;
  while (out->op < op) pl_reuse_pass(out);
  return NULL;
}

/* Traffic that nobody can tell makes the cache forget. */
void pl_reuse_pass(pl_reuse *reuse) {
  int32_t index = reuse->op++;
  if (!reuse->last) return;
  const planc_op *op = &reuse->graph->ops[index];
  for (int32_t i = 0; i < operand_count(op); i++) {
    int32_t s = storage_of(reuse, op, i);
    reuse->last[s] = index;
    for (int32_t b = 0; b < reuse->n_batches; b++) reuse->since[(int64_t)s * reuse->n_batches + b] = reuse->moved[b];
  }
  for (int32_t b = 0; b < reuse->n_batches; b++) {
    int64_t traffic = planc_law_at(op->traffic, reuse->batches[b]), most = forgotten(reuse);
    reuse->moved[b] += (uint64_t)(traffic < 0 || traffic > most ? most : traffic);
  }
}

static int32_t batch_of(const pl_reuse *reuse, int64_t batch) {
  int32_t b = 0;
  while (b < reuse->n_batches && reuse->batches[b] != batch) b++;
  assert(b < reuse->n_batches);
  return b;
}

int64_t pl_reused_bytes(const pl_reuse *reuse, int64_t batch) {
  const planc_op *op = &reuse->graph->ops[reuse->op];
  int64_t traffic = planc_law_at(op->traffic, batch);
  int64_t reused = 0;
  if (!reuse->last || traffic < 0) return 0;
  int32_t b = batch_of(reuse, batch);
  for (int32_t i = 0; i < operand_count(op); i++) {
    int64_t bytes = planc_law_at(pl_operand_traffic(reuse->graph, op, i), batch);
    int32_t s = storage_of(reuse, op, i);
    if (bytes <= 0 || reuse->last[s] < 0 || reuse->last[s] < reuse->op - PL_REUSE_OPS) continue;
    uint64_t distance = reuse->moved[b] - reuse->since[(int64_t)s * reuse->n_batches + b];
    reused = pl_add_saturate(reused, left_of(reuse, bytes, distance));
  }
  return reused < traffic ? reused : traffic;
}

/* The operands of an op: those read, those written, and those updated as a side effect. */
static int32_t operand_count(const planc_op *op) {
  return op->n_in + op->n_out + op->n_effects;
}
static int32_t storage_of(const pl_reuse *reuse, const planc_op *op, int32_t i) {
  int32_t of_outputs = i - op->n_in, of_effects = of_outputs - op->n_out;
  int32_t tensor = of_outputs < 0 ? op->in[i] : of_effects < 0 ? op->out[of_outputs] : op->effects[of_effects];
  return reuse->graph->tensors[tensor].storage;
}

/* How long ago nothing is left. */
static int64_t forgotten(const pl_reuse *reuse) {
  return reuse->cache_bytes + reuse->cache_bytes / 3 + 1;
}

/* Of `bytes` last touched `distance` ago, those that a cache of this size holds. */
static int64_t left_of(const pl_reuse *reuse, int64_t bytes, uint64_t distance) {
  int64_t cache = reuse->cache_bytes, end = forgotten(reuse);
  if (distance <= (uint64_t)cache) return bytes;
  if (distance >= (uint64_t)end) return 0;
  return pl_muldiv_floor(bytes, end - (int64_t)distance, end - cache);
}
