/* Reuse (reuse.h). */
#include "cost/reuse.h"

#include <assert.h>

#include "util/math.h"

static int64_t forgotten(int64_t cache_bytes);
static int64_t moved_by(const planc_op *op, int64_t batch, int64_t cache_bytes);
static int32_t operand_count(const planc_op *op);
static int32_t storage_of(const planc_graph *graph, const planc_op *op, int32_t i);
static int64_t left_of(int64_t bytes, uint64_t distance, int64_t cache_bytes);

planc_status pl_reuse_start(const planc_profile *profile, const planc_graph *graph, int32_t n_batches,
                            const int64_t *batches, pl_arena *arena, pl_reuse *out) {
  *out = (pl_reuse){.graph = graph, .cache_bytes = profile->cache.bytes, .n_batches = n_batches, .batches = batches};
  if (out->cache_bytes == 0) return NULL;
  PLANC_TRY(PL_NEW(arena, &out->last, graph->n_storages));
  PLANC_TRY(PL_NEW(arena, &out->since, (int64_t)graph->n_storages * n_batches));
  PLANC_TRY(PL_NEW(arena, &out->moved, n_batches));
  for (int32_t s = 0; s < graph->n_storages; s++) out->last[s] = -1;
  return NULL;
}

void pl_reuse_pass(pl_reuse *reuse) {
  int32_t index = reuse->op++;
  if (!reuse->last) return;
  const planc_op *op = &reuse->graph->ops[index];
  for (int32_t i = 0; i < operand_count(op); i++) {
    int32_t s = storage_of(reuse->graph, op, i);
    reuse->last[s] = index;
    for (int32_t b = 0; b < reuse->n_batches; b++) reuse->since[(int64_t)s * reuse->n_batches + b] = reuse->moved[b];
  }
  for (int32_t b = 0; b < reuse->n_batches; b++)
    reuse->moved[b] += (uint64_t)moved_by(op, reuse->batches[b], reuse->cache_bytes);
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
    int32_t s = storage_of(reuse->graph, op, i);
    if (bytes <= 0 || reuse->last[s] < 0 || reuse->last[s] < reuse->op - PL_REUSE_OPS) continue;
    uint64_t distance = reuse->moved[b] - reuse->since[(int64_t)s * reuse->n_batches + b];
    reused = pl_add_saturate(reused, left_of(bytes, distance, reuse->cache_bytes));
  }
  return reused < traffic ? reused : traffic;
}

/* --- One op alone ------------------------------------------------------------------------------------------------- */

static bool touches(const planc_graph *graph, const planc_op *op, int32_t storage) {
  for (int32_t i = 0; i < operand_count(op); i++)
    if (storage_of(graph, op, i) == storage) return true;
  return false;
}

/* How much has moved since an op before this one began that touched the storage; all that makes the cache forget where
 * none did so lately. */
static uint64_t look_back(const planc_graph *graph, int32_t op, int32_t storage, int64_t batch, int64_t cache_bytes) {
  uint64_t distance = 0, end = (uint64_t)forgotten(cache_bytes);
  for (int32_t before = op - 1; before >= 0 && before >= op - PL_REUSE_OPS && distance < end; before--) {
    distance += (uint64_t)moved_by(&graph->ops[before], batch, cache_bytes);
    if (touches(graph, &graph->ops[before], storage)) return distance;
  }
  return end;
}

int64_t pl_reused_by(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch) {
  const planc_op *of = &graph->ops[op];
  int64_t traffic = planc_law_at(of->traffic, batch), reused = 0, cache = profile->cache.bytes;
  if (cache == 0 || traffic < 0) return 0;
  for (int32_t i = 0; i < operand_count(of); i++) {
    int64_t bytes = planc_law_at(pl_operand_traffic(graph, of, i), batch);
    if (bytes <= 0) continue;
    uint64_t distance = look_back(graph, op, storage_of(graph, of, i), batch, cache);
    reused = pl_add_saturate(reused, left_of(bytes, distance, cache));
  }
  return reused < traffic ? reused : traffic;
}

/* --- Both --------------------------------------------------------------------------------------------------------- */

/* The operands of an op: those read, those written, and those updated as a side effect. */
static int32_t operand_count(const planc_op *op) {
  return op->n_in + op->n_out + op->n_effects;
}

static int32_t storage_of(const planc_graph *graph, const planc_op *op, int32_t i) {
  int32_t of_outputs = i - op->n_in, of_effects = of_outputs - op->n_out;
  int32_t tensor = of_outputs < 0 ? op->in[i] : of_effects < 0 ? op->out[of_outputs] : op->effects[of_effects];
  return graph->tensors[tensor].storage;
}

/* An op's traffic, no more than makes the cache forget; traffic that nobody can tell does. */
static int64_t moved_by(const planc_op *op, int64_t batch, int64_t cache_bytes) {
  int64_t traffic = planc_law_at(op->traffic, batch), most = forgotten(cache_bytes);
  return traffic < 0 || traffic > most ? most : traffic;
}

/* How long ago nothing is left. */
static int64_t forgotten(int64_t cache_bytes) {
  return cache_bytes + cache_bytes / 3 + 1;
}

/* Of `bytes` last touched `distance` ago, those that the cache holds. */
static int64_t left_of(int64_t bytes, uint64_t distance, int64_t cache_bytes) {
  int64_t end = forgotten(cache_bytes);
  if (distance <= (uint64_t)cache_bytes) return bytes;
  if (distance >= (uint64_t)end) return 0;
  return pl_muldiv_floor(bytes, end - (int64_t)distance, end - cache_bytes);
}
