/* The content hash of a graph: every field that makes a difference, in a fixed order (util/hash.h). */
#include "util/hash.h"

#include <string.h>

#include "graph/law.h"

static void feed(uint64_t *hash, uint64_t word);
static void feed_tensor(uint64_t *hash, const planc_tensor *tensor);
static void feed_op(uint64_t *hash, const planc_op *op);
static void feed_indices(uint64_t *hash, const int32_t *indices, int32_t count);
static void feed_text(uint64_t *hash, const char *text);
static void feed_attr(uint64_t *hash, const planc_attr *attr);
static void feed_law(uint64_t *hash, planc_law law);

uint64_t planc_graph_hash(const planc_graph *graph) {
  uint64_t hash = PL_HASH_START;
  feed(&hash, graph->layout);
  feed(&hash, (uint64_t)graph->n_tensors);
  for (int32_t i = 0; i < graph->n_tensors; i++) feed_tensor(&hash, &graph->tensors[i]);
  feed(&hash, (uint64_t)graph->n_storages);
  for (int32_t i = 0; i < graph->n_storages; i++) feed(&hash, graph->storages[i].kind);
  feed(&hash, (uint64_t)graph->n_ops);
  for (int32_t i = 0; i < graph->n_ops; i++) feed_op(&hash, &graph->ops[i]);
  feed(&hash, (uint64_t)graph->loss);
  feed_indices(&hash, graph->outputs, graph->n_outputs);
  return hash;
}

static void feed_op(uint64_t *hash, const planc_op *op) {
  feed_text(hash, op->name);
  feed_text(hash, op->type);
  feed(hash, op->phase);
  feed(hash, op->flags);
  feed_indices(hash, op->in, op->n_in);
  feed_indices(hash, op->out, op->n_out);
  feed_indices(hash, op->effects, op->n_effects);
  feed(hash, (uint64_t)op->n_attrs);
  for (int32_t i = 0; i < op->n_attrs; i++) feed_attr(hash, &op->attrs[i]);
  feed_law(hash, op->flops);
  feed_law(hash, op->traffic);
  feed(hash, op->loop != NULL);
  if (op->loop) feed_text(hash, op->loop);
  feed(hash, (uint64_t)op->loop_step);
  if (op->has_class) feed(hash, (uint64_t)op->class_);
  if (pl_law_is_zero(op->workspace)) return;
  feed_text(hash, "workspace"); /* a class is a number */
  feed_law(hash, op->workspace);
}

static void feed(uint64_t *hash, uint64_t word) {
  pl_hash_word(hash, word);
}

static void feed_text(uint64_t *hash, const char *text) {
  pl_hash_bytes(hash, text, strlen(text));
}

static void feed_law(uint64_t *hash, planc_law law) {
  feed(hash, (uint64_t)law.fixed);
  feed(hash, (uint64_t)law.per_sample);
}

static void feed_indices(uint64_t *hash, const int32_t *indices, int32_t count) {
  feed(hash, (uint64_t)count);
  for (int32_t i = 0; i < count; i++) feed(hash, (uint64_t)indices[i]);
}

static void feed_tensor(uint64_t *hash, const planc_tensor *tensor) {
  feed_text(hash, tensor->name);
  feed(hash, (uint64_t)tensor->storage);
  feed(hash, tensor->dtype);
  feed(hash, (uint64_t)tensor->rank);
  for (int32_t i = 0; i < tensor->rank; i++) feed_law(hash, tensor->dims[i]);
  feed_law(hash, tensor->offset);
}

static void feed_attr(uint64_t *hash, const planc_attr *attr) {
  uint64_t bits;
  feed_text(hash, attr->key);
  feed(hash, attr->type);
  switch (attr->type) {
    case PLANC_ATTR_INT:
      feed(hash, (uint64_t)attr->value.integer);
      break;
    case PLANC_ATTR_REAL:
      memcpy(&bits, &attr->value.real, sizeof bits);
      feed(hash, bits);
      break;
    case PLANC_ATTR_STRING:
      feed_text(hash, attr->value.string);
      break;
    case PLANC_ATTR_INTS:
      feed(hash, (uint64_t)attr->count);
      for (int32_t i = 0; i < attr->count; i++) feed(hash, (uint64_t)attr->value.ints[i]);
      break;
  }
}
