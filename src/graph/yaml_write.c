/* Writes planc-graph(5) in its canonical form: fixed key order, one tensor and one op a line, nothing that the reader
 * would derive by itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/law.h"
#include "graph/optypes.h"
#include "graph/spec.h"

/* --- Scalars ----------------------------------------------------------------------------------------------------- */

/* The code point that `text` starts with, which is UTF-8; *out_length is its bytes. */
static uint32_t code_point(const unsigned char *text, int *out_length) {
  int length = *text < 0x80 ? 1 : *text < 0xE0 ? 2 : *text < 0xF0 ? 3 : 4;
  uint32_t value = length == 1 ? *text : *text & (0x7Fu >> length);
  for (int i = 1; i < length; i++) value = value << 6 | (text[i] & 0x3F);
  *out_length = length;
  return value;
}

static void put_quoted(FILE *file, const char *text) {
  (void)fputc('"', file);
  for (int length; *text; text += length) {
    uint32_t c = code_point((const unsigned char *)text, &length);
    if (c == '"' || c == '\\') {
      (void)fprintf(file, "\\%c", (int)c);
    } else if (c >= ' ' && c < 0x7F) {
      (void)fputc((int)c, file);
    } else if (c <= 0xFFFF) {
      (void)fprintf(file, "\\u%04" PRIX32, c);
    } else {
      (void)fprintf(file, "\\U%08" PRIX32, c);
    }
  }
  (void)fputc('"', file);
}

/* Text that is a name and no number needs no quotes. */
static void put_text(FILE *file, const char *text) {
  if (!planc_name_fault(text) && planc_number_kind(text) == PLANC_NUMBER_NONE) {
    (void)fputs(text, file);
  } else {
    put_quoted(file, text);
  }
}

static void put_law(FILE *file, planc_law law) {
  char text[PLANC_LAW_TEXT];
  (void)fputs(planc_law_text(law, text), file);
}

static void put_names(FILE *file, const planc_graph *graph, const int32_t *tensors, int32_t count) {
  (void)fputc('[', file);
  for (int32_t i = 0; i < count; i++) {
    if (i) (void)fputs(", ", file);
    (void)fputs(graph->tensors[tensors[i]].name, file);
  }
  (void)fputc(']', file);
}

/* --- Header and tensors ------------------------------------------------------------------------------------------ */

static void put_header(FILE *file, const planc_graph *graph) {
  (void)fprintf(file, "planc-graph: 1\nname: %s\n", graph->name);
  if (graph->layout == PLANC_LAYOUT_NHWC) (void)fputs("layout: NHWC\n", file);
  if (graph->batch) (void)fprintf(file, "batch: %" PRId64 "\n", graph->batch);
  if (graph->device) (void)fprintf(file, "device: %s\n", graph->device);
  if (graph->optimizer) (void)fprintf(file, "optimizer: %s\n", graph->optimizer);
  if (graph->policy) (void)fprintf(file, "policy: %s\n", graph->policy);
  if (graph->origin) {
    (void)fputs("origin: ", file);
    put_quoted(file, graph->origin);
    (void)fputc('\n', file);
  }
  if (graph->loss >= 0) (void)fprintf(file, "loss: %s\n", graph->tensors[graph->loss].name);
  if (graph->n_outputs) {
    (void)fputs("outputs: ", file);
    put_names(file, graph, graph->outputs, graph->n_outputs);
    (void)fputc('\n', file);
  }
}

static void put_tensor(FILE *file, const planc_graph *graph, int32_t index) {
  const planc_tensor *tensor = &graph->tensors[index];
  const planc_storage *storage = &graph->storages[tensor->storage];
  bool window = storage->tensor != index;
  (void)fprintf(file, "  %s: ", tensor->name);
  if (!window && storage->kind != PLANC_KIND_activation) (void)fprintf(file, "%s ", planc_kind_name(storage->kind));
  (void)fprintf(file, "%s[", planc_dtype_name(tensor->dtype));
  for (int32_t i = 0; i < tensor->rank; i++) {
    if (i) (void)fputc(',', file);
    put_law(file, tensor->dims[i]);
  }
  (void)fputc(']', file);
  if (window) (void)fprintf(file, " of %s", graph->tensors[storage->tensor].name);
  if (tensor->offset.fixed || tensor->offset.per_sample) {
    (void)fputs(" @ ", file);
    put_law(file, tensor->offset);
  }
  (void)fputc('\n', file);
}

/* --- Ops --------------------------------------------------------------------------------------------------------- */

static void put_attr(FILE *file, const planc_attr *attr) {
  char number[PLANC_NUMBER_TEXT];
  (void)fprintf(file, "%s: ", attr->key);
  switch (attr->type) {
    case PLANC_ATTR_INT:
      (void)fprintf(file, "%" PRId64, attr->value.integer);
      break;
    case PLANC_ATTR_REAL:
      (void)fputs(planc_real_text(attr->value.real, number), file);
      break;
    case PLANC_ATTR_STRING:
      put_text(file, attr->value.string);
      break;
    case PLANC_ATTR_INTS:
      (void)fputc('[', file);
      for (int32_t i = 0; i < attr->count; i++) (void)fprintf(file, "%s%" PRId64, i ? ", " : "", attr->value.ints[i]);
      (void)fputc(']', file);
      break;
  }
}

static void put_attrs(FILE *file, const planc_op *op) {
  (void)fputs(", attrs: {", file);
  for (int32_t i = 0; i < op->n_attrs; i++) {
    if (i) (void)fputs(", ", file);
    put_attr(file, &op->attrs[i]);
  }
  (void)fputc('}', file);
}

static void put_operands(FILE *file, const char *key, const planc_graph *graph, const int32_t *tensors, int32_t count) {
  if (!count) return;
  (void)fprintf(file, ", %s: ", key);
  put_names(file, graph, tensors, count);
}

/* A cost is written where it is not what the type gives. */
static void put_cost(FILE *file, const char *key, planc_law cost, planc_status status, planc_law derived) {
  bool same = !status && planc_law_equal(cost, derived);
  planc_status_free(status);
  if (same) return;
  (void)fprintf(file, ", %s: ", key);
  put_law(file, cost);
}

static void put_flags(FILE *file, const planc_op *op) {
  const planc_optype *type = planc_optype_find(op->type);
  uint32_t flags = op->flags & ~(type ? type->flags : 0);
  const char *separator = ", flags: [";
  for (int bit = 0; bit < PLANC_N_FLAGS; bit++) {
    if (!(flags >> bit & 1)) continue;
    (void)fprintf(file, "%s%s", separator, planc_flag_names[bit]);
    separator = ", ";
  }
  if (flags) (void)fputc(']', file);
}

static void put_op(FILE *file, const planc_graph *graph, const planc_op *op) {
  planc_law derived;
  (void)fprintf(file, "  - {op: %s, type: %s", op->name, op->type);
  if (op->phase != PLANC_PHASE_forward) (void)fprintf(file, ", phase: %s", planc_phase_name(op->phase));
  put_operands(file, "in", graph, op->in, op->n_in);
  put_operands(file, "out", graph, op->out, op->n_out);
  put_operands(file, "effects", graph, op->effects, op->n_effects);
  if (op->n_attrs) put_attrs(file, op);
  planc_status status = planc_op_flops(graph, op, &derived);
  put_cost(file, "flops", op->flops, status, derived);
  status = planc_op_traffic(graph, op, &derived);
  put_cost(file, "traffic", op->traffic, status, derived);
  put_flags(file, op);
  if (op->has_class) (void)fprintf(file, ", class: %s", planc_class_name(op->class_));
  if (op->loop) (void)fprintf(file, ", loop: %s, step: %" PRId32, op->loop, op->loop_step);
  (void)fputs("}\n", file);
}

planc_status planc_graph_print(const planc_graph *graph, char **out_text, size_t *out_length) {
  *out_text = NULL;
  FILE *file = open_memstream(out_text, out_length);
  if (!file) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  put_header(file, graph);
  (void)fputs(graph->n_tensors ? "tensors:\n" : "tensors: {}\n", file);
  for (int32_t i = 0; i < graph->n_tensors; i++) put_tensor(file, graph, i);
  (void)fputs("ops:\n", file);
  for (int32_t i = 0; i < graph->n_ops; i++) put_op(file, graph, &graph->ops[i]);
  bool failed = ferror(file);
  failed |= fclose(file) != 0;
  if (!failed) return NULL;
  free(*out_text);
  *out_text = NULL;
  return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
}
