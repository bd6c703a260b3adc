/* Forged graphs (forge.h). A step of the hash can be undone. So what precedes the last op's traffic may be anything:
 * the traffic is then the one number that leads to the hash wanted, and some rate soon makes it a small one, of which
 * even plans can be made. */
#include "tests/support/forge.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static uint64_t undo_word(uint64_t hash, uint64_t word) {
  const uint64_t prime = 0x100000001B3u;
  uint64_t inverse = prime; /* right in 3 bits, and twice as many each time */
  for (int i = 0; i < 5; i++) inverse *= 2 - prime * inverse;
  hash ^= hash >> 32;
  return hash * inverse ^ word;
}

/* The hash as it is after all that precedes the last op's traffic. */
static uint64_t hash_before_traffic(const planc_graph *graph) {
  const planc_op *last = &graph->ops[graph->n_ops - 1];
  uint64_t hash = planc_graph_hash(graph);
  ck_assert_ptr_null(last->loop);
  for (int32_t i = graph->n_outputs; i-- > 0;) hash = undo_word(hash, (uint64_t)graph->outputs[i]);
  hash = undo_word(hash, (uint64_t)graph->n_outputs);
  hash = undo_word(hash, (uint64_t)graph->loss);
  hash = undo_word(hash, (uint64_t)last->loop_step);
  hash = undo_word(hash, 0); /* no loop */
  hash = undo_word(hash, (uint64_t)last->traffic.per_sample);
  return undo_word(hash, (uint64_t)last->traffic.fixed);
}

void forge(const planc_graph *of, forged *out) {
  *out = (forged){.graph = *of};
  out->ops = malloc((size_t)of->n_ops * sizeof *out->ops);
  ck_assert_ptr_nonnull(out->ops);
  memcpy(out->ops, of->ops, (size_t)of->n_ops * sizeof *out->ops);
  out->graph.ops = out->ops;
  planc_op *last = &out->ops[of->n_ops - 1];
  ck_assert_int_eq(last->n_attrs, 1);
  out->attr = last->attrs[0];
  last->attrs = &out->attr;
  uint64_t wanted = hash_before_traffic(of) ^ (uint64_t)of->ops[of->n_ops - 1].traffic.fixed, traffic = UINT64_MAX;
  double rate = out->attr.value.real * 12300;
  for (int32_t k = 0; traffic > INT64_C(1) << 47; k++) {
    last->traffic.fixed = 0;
    out->attr.value.real = rate + k / 1048576.0;
    traffic = wanted ^ hash_before_traffic(&out->graph);
  }
  last->traffic.fixed = (int64_t)traffic;
  ck_assert_uint_eq(planc_graph_hash(&out->graph), planc_graph_hash(of));
}

void forged_free(forged *f) {
  free(f->ops);
}
