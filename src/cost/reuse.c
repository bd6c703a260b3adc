/* Reuse (reuse.h). */
#include "cost/reuse.h"

#include "util/math.h"

static int32_t operand_count(const planc_op *op);
static int64_t distance_to(const planc_graph *graph, int32_t op, int32_t storage, int64_t batch, int64_t cache);
static int32_t operand(const planc_op *op, int32_t i);
static int64_t left_of(int64_t bytes, int64_t distance, int64_t cache);
static int64_t forgotten(int64_t cache);
static bool touches(const planc_graph *graph, const planc_op *op, int32_t storage);

int64_t pl_reused_bytes(const planc_profile *profile, const planc_graph *graph, int32_t op, int64_t batch) {
  const planc_op *of = &graph->ops[op];
  int64_t cache = profile->cache.bytes;
  int64_t traffic = planc_law_at(of->traffic, batch);
  int64_t reused = 0;
  if (cache == 0 || traffic < 0) return 0;
  for (int32_t i = 0; i < operand_count(of); i++) {
    int64_t bytes = planc_law_at(pl_operand_traffic(graph, of, i), batch);
    int64_t distance = distance_to(graph, op, graph->tensors[operand(of, i)].storage, batch, cache);
    if (bytes > 0 && distance >= 0) reused = pl_add_saturate(reused, left_of(bytes, distance, cache));
  }
  return reused < traffic ? reused : traffic;
}

/* Traffic from the last op before `op` that touches `storage`, that op included; a negative number where that is longer
 * ago than the cache remembers. */
static int64_t distance_to(const planc_graph *graph, int32_t op, int32_t storage, int64_t batch, int64_t cache) {
  int64_t distance = 0;
  for (int32_t before = op - 1; before >= 0 && before >= op - PL_REUSE_OPS; before--) {
    int64_t traffic = planc_law_at(graph->ops[before].traffic, batch);
    if (traffic < 0 || traffic >= forgotten(cache) - distance) return -1;
    distance += traffic;
    if (touches(graph, &graph->ops[before], storage)) return distance;
  }
  return -1;
}

/* The operands of an op: those read, those written, and those updated as a side effect. */
static int32_t operand_count(const planc_op *op) {
  return op->n_in + op->n_out + op->n_effects;
}
static int32_t operand(const planc_op *op, int32_t i) {
  if (i < op->n_in) return op->in[i];
  i -= op->n_in;
  return i < op->n_out ? op->out[i] : op->effects[i - op->n_out];
}

static bool touches(const planc_graph *graph, const planc_op *op, int32_t storage) {
  for (int32_t i = 0; i < operand_count(op); i++)
    if (graph->tensors[operand(op, i)].storage == storage) return true;
  return false;
}

/* How long ago nothing is left. */
static int64_t forgotten(int64_t cache) {
  return cache + cache / 3 + 1;
}

/* Of `bytes` last touched `distance` ago, those that a cache of this size holds. */
static int64_t left_of(int64_t bytes, int64_t distance, int64_t cache) {
  int64_t end = forgotten(cache);
  if (distance <= cache) return bytes;
  return distance >= end ? 0 : pl_muldiv_floor(bytes, end - distance, end - cache);
}
