/* Whether two graphs say the same: every field that planc_graph_hash takes in. */
#include <string.h>

#include "graph/law.h"
#include "graph/optypes.h"

static bool same_tensors(const planc_tensor *a, const planc_tensor *b);
static bool same_ops(const planc_op *a, const planc_op *b);
static bool same_indices(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b);
static bool same_attrs(const planc_attr *a, const planc_attr *b);
static bool same_loops(const planc_op *a, const planc_op *b);

bool planc_graph_equal(const planc_graph *a, const planc_graph *b) {
  if (a == b) return true;
  if (a->layout != b->layout || a->n_tensors != b->n_tensors || a->n_storages != b->n_storages || a->n_ops != b->n_ops)
    return false;
  for (int32_t i = 0; i < a->n_tensors; i++)
    if (!same_tensors(&a->tensors[i], &b->tensors[i])) return false;
  for (int32_t i = 0; i < a->n_storages; i++)
    if (a->storages[i].kind != b->storages[i].kind) return false;
  for (int32_t i = 0; i < a->n_ops; i++)
    if (!same_ops(&a->ops[i], &b->ops[i])) return false;
  return a->loss == b->loss && same_indices(a->outputs, a->n_outputs, b->outputs, b->n_outputs);
}

static bool same_ops(const planc_op *a, const planc_op *b) {
  if (strcmp(a->name, b->name) != 0 || !pl_op_same_type(a, b) || a->phase != b->phase || a->flags != b->flags ||
      a->n_attrs != b->n_attrs)
    return false;
  for (int32_t i = 0; i < a->n_attrs; i++)
    if (!same_attrs(&a->attrs[i], &b->attrs[i])) return false;
  return same_indices(a->in, a->n_in, b->in, b->n_in) && same_indices(a->out, a->n_out, b->out, b->n_out) &&
         same_indices(a->effects, a->n_effects, b->effects, b->n_effects) && pl_law_equal(a->flops, b->flops) &&
         pl_law_equal(a->traffic, b->traffic) && pl_law_equal(a->workspace, b->workspace) &&
         a->has_class == b->has_class && (!a->has_class || a->class_ == b->class_) && same_loops(a, b);
}

static bool same_indices(const int32_t *a, int32_t n_a, const int32_t *b, int32_t n_b) {
  return n_a == n_b && (n_a == 0 || memcmp(a, b, (size_t)n_a * sizeof *a) == 0);
}

static bool same_tensors(const planc_tensor *a, const planc_tensor *b) {
  if (strcmp(a->name, b->name) != 0 || a->storage != b->storage || a->dtype != b->dtype || a->rank != b->rank)
    return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (!pl_law_equal(a->dims[i], b->dims[i])) return false;
  return pl_law_equal(a->offset, b->offset);
}

static uint64_t bits_of(double real) {
  uint64_t bits;
  memcpy(&bits, &real, sizeof bits);
  return bits;
}

static bool same_attrs(const planc_attr *a, const planc_attr *b) {
  if (strcmp(a->key, b->key) != 0 || a->type != b->type) return false;
  switch (a->type) {
    case PLANC_ATTR_INT:
      return a->value.integer == b->value.integer;
    case PLANC_ATTR_REAL: /* to the bit: -0.0 is not 0.0 */
      return bits_of(a->value.real) == bits_of(b->value.real);
    case PLANC_ATTR_STRING:
      return strcmp(a->value.string, b->value.string) == 0;
    case PLANC_ATTR_INTS:
      return a->count == b->count &&
             (a->count == 0 || memcmp(a->value.ints, b->value.ints, (size_t)a->count * sizeof *a->value.ints) == 0);
  }
  return false;
}

static bool same_loops(const planc_op *a, const planc_op *b) {
  if (!a->loop || !b->loop) return a->loop == b->loop && a->loop_step == b->loop_step;
  return strcmp(a->loop, b->loop) == 0 && a->loop_step == b->loop_step;
}
