/* Collects tensors and ops into arrays that become the graph's. What can be told of one tensor or op alone is checked
 * as it is added; the rest in validate.c. */
#include "graph/builder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/law.h"
#include "graph/optypes.h"
#include "graph/spec.h"
#include "util/map.h"
#include "util/utf8.h"
#include "util/vec.h"

struct planc_graph_builder {
  planc_graph header; /* the arrays are in the vectors below */
  pl_arena arena;
  VEC(planc_tensor) tensors;
  VEC(planc_storage) storages;
  VEC(planc_op) ops;
  VEC(int32_t) outputs;
  pl_map tensor_names, op_names;
};

/* Sizes must fit 64 bits up to this batch. */
static const int64_t largest_batch = 1 << 20;

planc_status planc_graph_builder_new(planc_graph_builder **out) {
  *out = calloc(1, sizeof **out);
  if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  (*out)->header.loss = -1;
  return NULL;
}

void planc_graph_builder_free(planc_graph_builder *builder) {
  if (!builder) return;
  VEC_FREE(&builder->tensors);
  VEC_FREE(&builder->storages);
  VEC_FREE(&builder->ops);
  VEC_FREE(&builder->outputs);
  pl_map_free(&builder->tensor_names);
  pl_map_free(&builder->op_names);
  pl_arena_free(&builder->arena);
  free(builder);
}

int32_t pl_graph_builder_lookup(const planc_graph_builder *builder, const char *name, size_t length) {
  return pl_map_get(&builder->tensor_names, name, length);
}

int32_t planc_graph_builder_find(const planc_graph_builder *builder, const char *name) {
  return pl_graph_builder_lookup(builder, name, strlen(name));
}

const planc_tensor *planc_graph_builder_tensor_at(const planc_graph_builder *builder, int32_t index) {
  return &builder->tensors.data[index];
}

static planc_status copy_name(planc_graph_builder *builder, const char *what, const char *name, const char **out);
static planc_status copy_text(planc_graph_builder *builder, const char *what, const char *text, const char **out);

planc_status planc_graph_builder_header(planc_graph_builder *builder, const char *name, planc_layout layout,
                                        int64_t batch, const char *device, const char *optimizer, const char *policy,
                                        const char *origin) {
  planc_graph *h = &builder->header;
  if (batch < 0 || batch > INT32_MAX)
    return planc_error(PLANC_BAD_INPUT, "batch %lld is not from 0 to %d", (long long)batch, INT32_MAX);
  if (layout != PLANC_LAYOUT_NCHW && layout != PLANC_LAYOUT_NHWC) return planc_error(PLANC_BAD_INPUT, "unknown layout");
  PLANC_TRY(copy_name(builder, "name", name, &h->name));
  if (device) PLANC_TRY(copy_name(builder, "device", device, &h->device));
  if (optimizer) PLANC_TRY(copy_name(builder, "optimizer", optimizer, &h->optimizer));
  if (policy) PLANC_TRY(copy_name(builder, "policy", policy, &h->policy));
  PLANC_TRY(copy_text(builder, "origin", origin, &h->origin));
  h->layout = layout;
  h->batch = batch;
  return NULL;
}

/* --- Strings ------------------------------------------------------------------------------------------------------ */

static planc_status check_name(const char *what, const char *name) {
  char shown[PL_SHOWN_TEXT];
  const char *fault = pl_name_fault(name);
  if (!fault) return NULL;
  return planc_error(PLANC_BAD_INPUT, "%s \"%s\" %s", what, pl_shown(name ? name : "", shown), fault);
}

/* Copies `text` to the builder; NULL stays NULL. */
static planc_status copy(planc_graph_builder *builder, const char *text, const char **out) {
  *out = NULL;
  return text ? pl_arena_strndup(&builder->arena, text, strlen(text), out) : NULL;
}

static planc_status copy_name(planc_graph_builder *builder, const char *what, const char *name, const char **out) {
  PLANC_TRY(check_name(what, name));
  return copy(builder, name, out);
}

/* Free text must be UTF-8, for it goes into files. */
static planc_status copy_text(planc_graph_builder *builder, const char *what, const char *text, const char **out) {
  const char *end = text ? text + strlen(text) : NULL;
  for (const char *p = text; p < end;) {
    int length = pl_utf8_length(p, end);
    if (!length) return planc_error(PLANC_BAD_INPUT, "%s is not UTF-8", what);
    p += length;
  }
  return copy(builder, text, out);
}

/* --- Loss and outputs --------------------------------------------------------------------------------------------- */

static planc_status check_tensor_index(const planc_graph_builder *builder, int32_t tensor) {
  if (tensor >= 0 && tensor < builder->tensors.len) return NULL;
  return planc_error(PLANC_BAD_INPUT, "there is no tensor %d", tensor);
}

planc_status planc_graph_builder_loss(planc_graph_builder *builder, int32_t tensor) {
  PLANC_TRY(check_tensor_index(builder, tensor));
  builder->header.loss = tensor;
  return NULL;
}

planc_status planc_graph_builder_output(planc_graph_builder *builder, int32_t tensor) {
  PLANC_TRY(check_tensor_index(builder, tensor));
  VEC_PUSH(&builder->outputs, tensor);
  return NULL;
}

/* --- Tensors ------------------------------------------------------------------------------------------------------ */

static planc_status place_tensor(planc_graph_builder *builder, planc_tensor *tensor, planc_kind kind, int32_t of);
static planc_status check_dims(const planc_tensor *tensor);
static planc_status count_bytes(planc_tensor *tensor);
static planc_status check_view(const planc_tensor *tensor, const planc_storage *storage, const char *root);
static planc_status check_kind(const planc_tensor *tensor, planc_kind kind);

planc_status planc_graph_builder_tensor(planc_graph_builder *builder, const char *name, planc_kind kind,
                                        planc_dtype dtype, int32_t rank, const planc_law *dims, int32_t of,
                                        planc_law offset, int32_t *out_tensor) {
  PLANC_TRY(check_name("tensor", name));
  if (builder->tensors.len == PL_MAX_TENSORS) return planc_error(PLANC_BAD_INPUT, "more than 16M tensors");
  if (planc_graph_builder_find(builder, name) >= 0) {
    return planc_error(PLANC_BAD_INPUT, "tensor %s is given twice", name);
  }
  if (rank < 0 || rank > PLANC_MAX_RANK) {
    return planc_error(PLANC_BAD_INPUT, "tensor %s: rank %d is not from 0 to 8", name, rank);
  }
  if (of >= 0) PLANC_TRY(planc_context(check_tensor_index(builder, of), "tensor %s", name));
  planc_tensor tensor = {.dtype = dtype, .rank = rank, .offset = offset};
  if (rank) memcpy(tensor.dims, dims, (size_t)rank * sizeof *dims);
  PLANC_TRY(copy(builder, name, &tensor.name));
  PLANC_TRY(planc_context(place_tensor(builder, &tensor, kind, of), "tensor %s", name));
  int32_t index = (int32_t)builder->tensors.len;
  VEC_PUSH(&builder->tensors, tensor);
  PLANC_TRY(pl_map_put(&builder->tensor_names, tensor.name, strlen(tensor.name), index));
  if (out_tensor) *out_tensor = index;
  return NULL;
}

/* Checks a tensor with its kind and gives it a storage of its own or the one of tensor `of`. */
static planc_status place_tensor(planc_graph_builder *builder, planc_tensor *tensor, planc_kind kind, int32_t of) {
  PLANC_TRY(check_dims(tensor));
  PLANC_TRY(count_bytes(tensor));
  if (of >= 0) {
    tensor->storage = builder->tensors.data[of].storage;
    const planc_storage *storage = &builder->storages.data[tensor->storage];
    return check_view(tensor, storage, builder->tensors.data[storage->tensor].name);
  }
  if (tensor->offset.fixed || tensor->offset.per_sample) {
    return planc_error(PLANC_BAD_INPUT, "an offset needs a tensor to be a view of");
  }
  PLANC_TRY(check_kind(tensor, kind));
  tensor->storage = (int32_t)builder->storages.len;
  planc_storage storage = {.tensor = (int32_t)builder->tensors.len, .kind = kind, .bytes = tensor->bytes};
  VEC_PUSH(&builder->storages, storage);
  return NULL;
}

static planc_status check_dims(const planc_tensor *tensor) {
  int depend = 0;
  for (int32_t i = 0; i < tensor->rank; i++) {
    planc_law dim = tensor->dims[i];
    if (dim.fixed < 0 || dim.per_sample < 0) return planc_error(PLANC_BAD_INPUT, "dimension %d is negative", i);
    if (!dim.fixed && !dim.per_sample) return planc_error(PLANC_BAD_INPUT, "dimension %d is 0", i);
    depend += dim.per_sample > 0;
  }
  return depend <= 1 ? NULL : planc_error(PLANC_BAD_INPUT, "more than one dimension depends on N");
}

static planc_status count_bytes(planc_tensor *tensor) {
  tensor->bytes = pl_law_constant(planc_dtype_bytes(tensor->dtype));
  bool overflow = false;
  for (int32_t i = 0; i < tensor->rank; i++) {
    overflow |= pl_law_mul_overflow(tensor->bytes, tensor->dims[i], &tensor->bytes);
  }
  if (!overflow && planc_law_at(tensor->bytes, largest_batch) >= 0) return NULL;
  return planc_error(PLANC_BAD_INPUT, "its size does not fit 64 bits");
}

static planc_status check_view(const planc_tensor *tensor, const planc_storage *storage, const char *root) {
  int64_t unit = planc_dtype_bytes(tensor->dtype);
  planc_law end;
  if (tensor->offset.fixed < 0 || tensor->offset.per_sample < 0) {
    return planc_error(PLANC_BAD_INPUT, "its offset is negative");
  }
  if (tensor->offset.fixed % unit || tensor->offset.per_sample % unit) {
    return planc_error(PLANC_BAD_INPUT, "its offset is not a multiple of the size of %s",
                       planc_dtype_name(tensor->dtype));
  }
  if (pl_law_add_overflow(tensor->offset, tensor->bytes, &end)) {
    return planc_error(PLANC_BAD_INPUT, "its offset does not fit 64 bits");
  }
  if (pl_law_at_most(end, storage->bytes)) return NULL;
  char ends[PL_LAW_TEXT], has[PL_LAW_TEXT];
  return planc_error(PLANC_BAD_INPUT, "it ends at byte %s of %s, which has %s", pl_law_text(end, ends), root,
                     pl_law_text(storage->bytes, has));
}

/* A weight and its gradient are the same for every batch: what depends on the samples is of another kind. */
static planc_status check_kind(const planc_tensor *tensor, planc_kind kind) {
  if (!tensor->bytes.per_sample || (kind != PLANC_KIND_param && kind != PLANC_KIND_grad)) return NULL;
  return planc_error(PLANC_BAD_INPUT, "a %s has the same size at every batch, none that depends on N",
                     planc_kind_name(kind));
}

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

static planc_status copy_op(planc_graph_builder *builder, const planc_op *op, planc_op *out);
static planc_status check_cost(const char *what, planc_law law);
static planc_status copy_operands(planc_graph_builder *builder, const int32_t *tensors, int32_t count,
                                  const int32_t **out);
static planc_status copy_attrs(planc_graph_builder *builder, const planc_op *op, planc_op *out);

planc_status planc_graph_builder_op(planc_graph_builder *builder, const planc_op *op) {
  PLANC_TRY(check_name("op", op->name));
  if (builder->ops.len == PL_MAX_OPS) return planc_error(PLANC_BAD_INPUT, "more than 16M ops");
  if (pl_map_get(&builder->op_names, op->name, strlen(op->name)) >= 0) {
    return planc_error(PLANC_BAD_INPUT, "op %s is given twice", op->name);
  }
  planc_op copied;
  PLANC_TRY(planc_context(copy_op(builder, op, &copied), "op %s", op->name));
  VEC_PUSH(&builder->ops, copied);
  return pl_map_put(&builder->op_names, copied.name, strlen(copied.name), (int32_t)builder->ops.len - 1);
}

static planc_status copy_op(planc_graph_builder *builder, const planc_op *op, planc_op *out) {
  *out = *op;
  PLANC_TRY(copy(builder, op->name, &out->name));
  PLANC_TRY(copy_name(builder, "type", op->type, &out->type));
  out->known = pl_optype_find(out->type);
  if (op->loop) PLANC_TRY(copy_name(builder, "loop", op->loop, &out->loop));
  if (op->loop_step < 0 || (!op->loop && op->loop_step)) {
    return planc_error(PLANC_BAD_INPUT, op->loop ? "step is negative" : "a step needs a loop");
  }
  if (op->phase > PLANC_PHASE_optimizer) return planc_error(PLANC_BAD_INPUT, "unknown phase");
  if (op->flags & ~(uint32_t)PLANC_OP_FLAGS) return planc_error(PLANC_BAD_INPUT, "unknown flags");
  PLANC_TRY(check_cost("FLOPs", op->flops));
  PLANC_TRY(check_cost("bytes of traffic", op->traffic));
  if (op->workspace.fixed < 0 || op->workspace.per_sample < 0)
    return planc_error(PLANC_BAD_INPUT, "bytes of workspace are negative");
  PLANC_TRY(copy_operands(builder, op->in, op->n_in, &out->in));
  PLANC_TRY(copy_operands(builder, op->out, op->n_out, &out->out));
  PLANC_TRY(copy_operands(builder, op->effects, op->n_effects, &out->effects));
  return copy_attrs(builder, op, out);
}

static planc_status copy_operands(planc_graph_builder *builder, const int32_t *tensors, int32_t count,
                                  const int32_t **out) {
  int32_t *copied;
  for (int32_t i = 0; i < count; i++) PLANC_TRY(check_tensor_index(builder, tensors[i]));
  PLANC_TRY(PL_NEW(&builder->arena, &copied, count));
  if (count) memcpy(copied, tensors, (size_t)count * sizeof *copied);
  *out = copied;
  return NULL;
}

static planc_status copy_attr(planc_graph_builder *builder, const planc_attr *attr, planc_attr *out) {
  *out = *attr;
  PLANC_TRY(copy_name(builder, "attribute", attr->key, &out->key));
  if (attr->type == PLANC_ATTR_STRING) return copy_text(builder, attr->key, attr->value.string, &out->value.string);
  if (attr->type == PLANC_ATTR_REAL && !isfinite(attr->value.real)) {
    return planc_error(PLANC_BAD_INPUT, "attribute %s is not finite", attr->key);
  }
  if (attr->type != PLANC_ATTR_INTS) return NULL;
  int64_t *ints;
  PLANC_TRY(PL_NEW(&builder->arena, &ints, attr->count));
  if (attr->count) memcpy(ints, attr->value.ints, (size_t)attr->count * sizeof *ints);
  out->value.ints = ints;
  return NULL;
}

static int compare_keys(const void *a, const void *b) {
  return strcmp(((const planc_attr *)a)->key, ((const planc_attr *)b)->key);
}

static planc_status copy_attrs(planc_graph_builder *builder, const planc_op *op, planc_op *out) {
  planc_attr *attrs;
  PLANC_TRY(PL_NEW(&builder->arena, &attrs, op->n_attrs));
  for (int32_t i = 0; i < op->n_attrs; i++) PLANC_TRY(copy_attr(builder, &op->attrs[i], &attrs[i]));
  if (op->n_attrs > 1) qsort(attrs, (size_t)op->n_attrs, sizeof *attrs, compare_keys);
  for (int32_t i = 1; i < op->n_attrs; i++) {
    if (strcmp(attrs[i - 1].key, attrs[i].key) == 0) {
      return planc_error(PLANC_BAD_INPUT, "attribute %s is given twice", attrs[i].key);
    }
  }
  out->attrs = attrs;
  return NULL;
}

/* A cost is a law, or below 0 in both parts. */
static planc_status check_cost(const char *what, planc_law law) {
  if ((law.fixed < 0) == (law.per_sample < 0)) return NULL;
  return planc_error(PLANC_BAD_INPUT, "%s are negative", what);
}

/* --- Finishing ---------------------------------------------------------------------------------------------------- */

planc_status pl_graph_builder_finish_at(planc_graph_builder *builder, planc_graph **out, pl_graph_fault *out_fault) {
  *out = NULL;
  *out_fault = pl_no_fault;
  if (!builder->header.name) return planc_error(PLANC_BAD_INPUT, "the graph has no name");
  if (!builder->ops.len) return planc_error(PLANC_BAD_INPUT, "the graph has no ops");
  planc_graph graph = builder->header;
  graph.n_tensors = (int32_t)builder->tensors.len;
  graph.n_storages = (int32_t)builder->storages.len;
  graph.n_ops = (int32_t)builder->ops.len;
  graph.n_outputs = (int32_t)builder->outputs.len;
  graph.tensors = builder->tensors.data;
  graph.storages = builder->storages.data;
  graph.ops = builder->ops.data;
  graph.outputs = builder->outputs.data;
  PLANC_TRY(pl_graph_validate(&graph, builder->ops.data, out_fault));

  pl_owned_graph *owned = malloc(sizeof *owned);
  if (!owned) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  *owned = (pl_owned_graph){.graph = graph, .arena = builder->arena};
  pl_map_free(&builder->tensor_names);
  pl_map_free(&builder->op_names);
  *builder = (planc_graph_builder){.header.loss = -1};
  *out = &owned->graph;
  return NULL;
}

planc_status planc_graph_builder_finish(planc_graph_builder *builder, planc_graph **out, int32_t *out_op,
                                        int32_t *out_tensor) {
  pl_graph_fault fault;
  planc_status status = pl_graph_builder_finish_at(builder, out, &fault);
  if (out_op) *out_op = fault.op;
  if (out_tensor) *out_tensor = fault.tensor;
  return status;
}
