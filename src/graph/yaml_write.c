/* Writes planc-graph(5) in its canonical form: fixed key order, one tensor and one op a line, nothing that the reader
 * would derive by itself. */
#include <inttypes.h>

#include "graph/law.h"
#include "graph/optypes.h"
#include "graph/spec.h"
#include "util/emit.h"
#include "util/real.h"

static void emit_header(pl_emit *emit, const planc_graph *graph);
static void emit_tensor(pl_emit *emit, const planc_graph *graph, int32_t index);
static void emit_op(pl_emit *emit, const planc_graph *graph, const planc_op *op);
static void emit_operands(pl_emit *emit, const char *key, const planc_graph *graph, const int32_t *tensors,
                          int32_t count);
static void emit_attrs(pl_emit *emit, const planc_op *op);
static void emit_costs(pl_emit *emit, const planc_graph *graph, const planc_op *op);
static void emit_flags(pl_emit *emit, const planc_op *op);

planc_status planc_graph_print(const planc_graph *graph, char **out_text, size_t *out_length) {
  pl_emit emit = {0};
  emit_header(&emit, graph);
  pl_emit_text(&emit, graph->n_tensors ? "tensors:\n" : "tensors: {}\n");
  for (int32_t i = 0; i < graph->n_tensors; i++) emit_tensor(&emit, graph, i);
  EMIT(&emit, "ops:\n");
  for (int32_t i = 0; i < graph->n_ops; i++) emit_op(&emit, graph, &graph->ops[i]);
  return pl_emit_take(&emit, out_text, out_length);
}

static void emit_op(pl_emit *emit, const planc_graph *graph, const planc_op *op) {
  pl_emit_format(emit, "  - {op: %s, type: %s", op->name, op->type);
  if (op->phase != PLANC_PHASE_forward) pl_emit_format(emit, ", phase: %s", planc_phase_name(op->phase));
  emit_operands(emit, "in", graph, op->in, op->n_in);
  emit_operands(emit, "out", graph, op->out, op->n_out);
  emit_operands(emit, "effects", graph, op->effects, op->n_effects);
  if (op->n_attrs) emit_attrs(emit, op);
  emit_costs(emit, graph, op);
  emit_flags(emit, op);
  if (op->has_class) pl_emit_format(emit, ", class: %s", pl_class_name(op->class_));
  if (op->loop) pl_emit_format(emit, ", loop: %s, step: %" PRId32, op->loop, op->loop_step);
  EMIT(emit, "}\n");
}

/* --- Scalars ------------------------------------------------------------------------------------------------------ */

/* The code point that `text` starts with, which is UTF-8; *out_length is its bytes. */
static uint32_t code_point(const unsigned char *text, int *out_length) {
  int length = *text < 0x80 ? 1 : *text < 0xE0 ? 2 : *text < 0xF0 ? 3 : 4;
  uint32_t value = length == 1 ? *text : *text & (0x7Fu >> length);
  for (int i = 1; i < length; i++) value = value << 6 | (text[i] & 0x3F);
  *out_length = length;
  return value;
}

static void emit_quoted(pl_emit *emit, const char *text) {
  EMIT(emit, "\"");
  for (int length; *text; text += length) {
    uint32_t c = code_point((const unsigned char *)text, &length);
    if (c == '"' || c == '\\') {
      pl_emit_format(emit, "\\%c", (int)c);
    } else if (c >= ' ' && c < 0x7F) {
      pl_emit_bytes(emit, text, 1);
    } else if (c <= 0xFFFF) {
      pl_emit_format(emit, "\\u%04" PRIX32, c);
    } else {
      pl_emit_format(emit, "\\U%08" PRIX32, c);
    }
  }
  EMIT(emit, "\"");
}

/* Text that is a name and no number needs no quotes. */
static void emit_text(pl_emit *emit, const char *text) {
  if (!pl_name_fault(text) && pl_number_kind(text) == PL_NUMBER_NONE) {
    pl_emit_text(emit, text);
  } else {
    emit_quoted(emit, text);
  }
}

static void emit_law(pl_emit *emit, planc_law law) {
  char text[PL_LAW_TEXT];
  pl_emit_text(emit, pl_law_text(law, text));
}

static void emit_names(pl_emit *emit, const planc_graph *graph, const int32_t *tensors, int32_t count) {
  EMIT(emit, "[");
  for (int32_t i = 0; i < count; i++) {
    if (i) EMIT(emit, ", ");
    pl_emit_text(emit, graph->tensors[tensors[i]].name);
  }
  EMIT(emit, "]");
}

/* --- Header and tensors ------------------------------------------------------------------------------------------- */

static void emit_header(pl_emit *emit, const planc_graph *graph) {
  pl_emit_format(emit, "planc-graph: 1\nname: %s\n", graph->name);
  if (graph->layout == PLANC_LAYOUT_NHWC) EMIT(emit, "layout: NHWC\n");
  if (graph->batch) pl_emit_format(emit, "batch: %" PRId64 "\n", graph->batch);
  if (graph->device) pl_emit_format(emit, "device: %s\n", graph->device);
  if (graph->optimizer) pl_emit_format(emit, "optimizer: %s\n", graph->optimizer);
  if (graph->policy) pl_emit_format(emit, "policy: %s\n", graph->policy);
  if (graph->origin) {
    EMIT(emit, "origin: ");
    emit_quoted(emit, graph->origin);
    EMIT(emit, "\n");
  }
  if (graph->loss >= 0) pl_emit_format(emit, "loss: %s\n", graph->tensors[graph->loss].name);
  if (graph->n_outputs) {
    EMIT(emit, "outputs: ");
    emit_names(emit, graph, graph->outputs, graph->n_outputs);
    EMIT(emit, "\n");
  }
}

static void emit_tensor(pl_emit *emit, const planc_graph *graph, int32_t index) {
  const planc_tensor *tensor = &graph->tensors[index];
  const planc_storage *storage = &graph->storages[tensor->storage];
  bool view = storage->tensor != index;
  pl_emit_format(emit, "  %s: ", tensor->name);
  if (!view && storage->kind != PLANC_KIND_activation) pl_emit_format(emit, "%s ", planc_kind_name(storage->kind));
  pl_emit_format(emit, "%s[", planc_dtype_name(tensor->dtype));
  for (int32_t i = 0; i < tensor->rank; i++) {
    if (i) EMIT(emit, ",");
    emit_law(emit, tensor->dims[i]);
  }
  EMIT(emit, "]");
  if (view) pl_emit_format(emit, " of %s", graph->tensors[storage->tensor].name);
  if (tensor->offset.fixed || tensor->offset.per_sample) {
    EMIT(emit, " @ ");
    emit_law(emit, tensor->offset);
  }
  EMIT(emit, "\n");
}

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

static void emit_attr(pl_emit *emit, const planc_attr *attr) {
  pl_emit_format(emit, "%s: ", attr->key);
  switch (attr->type) {
    case PLANC_ATTR_INT:
      pl_emit_format(emit, "%" PRId64, attr->value.integer);
      break;
    case PLANC_ATTR_REAL:
      pl_emit_real(emit, attr->value.real);
      break;
    case PLANC_ATTR_STRING:
      emit_text(emit, attr->value.string);
      break;
    case PLANC_ATTR_INTS:
      EMIT(emit, "[");
      for (int32_t i = 0; i < attr->count; i++) pl_emit_format(emit, "%s%" PRId64, i ? ", " : "", attr->value.ints[i]);
      EMIT(emit, "]");
      break;
  }
}

static void emit_attrs(pl_emit *emit, const planc_op *op) {
  EMIT(emit, ", attrs: {");
  for (int32_t i = 0; i < op->n_attrs; i++) {
    if (i) EMIT(emit, ", ");
    emit_attr(emit, &op->attrs[i]);
  }
  EMIT(emit, "}");
}

static void emit_operands(pl_emit *emit, const char *key, const planc_graph *graph, const int32_t *tensors,
                          int32_t count) {
  if (!count) return;
  pl_emit_format(emit, ", %s: ", key);
  emit_names(emit, graph, tensors, count);
}

static void emit_cost(pl_emit *emit, const char *key, planc_law cost) {
  pl_emit_format(emit, ", %s: ", key);
  emit_law(emit, cost);
}

/* Costs are written where they are not what the type gives. */
static void emit_costs(pl_emit *emit, const planc_graph *graph, const planc_op *op) {
  bool flops = false, traffic = false;
  pl_emit_fail(emit, pl_op_costs_are_derived(graph, op, &flops, &traffic));
  if (!flops) emit_cost(emit, "flops", op->flops);
  if (!traffic) emit_cost(emit, "traffic", op->traffic);
  if (!pl_law_is_zero(op->workspace)) emit_cost(emit, "workspace", op->workspace);
}

static void emit_flags(pl_emit *emit, const planc_op *op) {
  uint32_t flags = op->flags & ~(op->known ? op->known->flags : 0);
  const char *separator = ", flags: [";
  for (int bit = 0; bit < PL_N_FLAGS; bit++) {
    if (!(flags >> bit & 1)) continue;
    pl_emit_format(emit, "%s%s", separator, pl_flag_names[bit]);
    separator = ", ";
  }
  if (flags) EMIT(emit, "]");
}
