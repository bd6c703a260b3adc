/* Reads planc-graph(5): a recursive descent over YAML events, which go straight into a graph builder. The places of
 * ops and results are kept, so that what only the whole graph shows is told where it stands in the file as well. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/builder.h"
#include "graph/spec.h"
#include "graph/yaml_events.h"
#include "util/file.h"
#include "util/real.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

enum { MAX_FILE_BYTES = 1 << 30 };

/* A scalar of the header. */
typedef struct header_text {
  const char *text;
  planc_text_place place;
} header_text;

typedef struct reader {
  planc_yaml yaml;
  planc_graph_builder *builder;
  planc_arena arena; /* the header's texts */
  planc_text_place start;
  VEC(planc_text_place) ops;
  bool has_tensors;
  planc_layout layout;
  int64_t batch;
  header_text name, device, optimizer, policy, origin, loss;
  VEC(header_text) outputs;
  /* Parts of the op being read. */
  VEC(int32_t) operands;
  VEC(planc_attr) attrs;
  VEC(int64_t) ints;
} reader;

/* --- Tensors ----------------------------------------------------------------------------------------------------- */

static planc_status unknown_tensor(const char *name) {
  char shown[PLANC_SHOWN_TEXT];
  return planc_error(PLANC_BAD_INPUT, "unknown tensor \"%s\"", planc_shown(name, shown));
}

/* Adds the tensor `name`; the current event is its spec. */
static planc_status add_tensor(reader *r, const char *name, planc_text_place place) {
  planc_spec spec;
  const char *at;
  int32_t of = -1;
  planc_status status = planc_spec_parse(planc_yaml_text(&r->yaml), &spec, &at);
  if (status) return planc_yaml_within(&r->yaml, at, status);
  if (spec.of) {
    of = planc_graph_builder_lookup(r->builder, spec.of, spec.of_length);
    if (of < 0) {
      char shown[PLANC_SHOWN_TEXT];
      status = planc_error(PLANC_BAD_INPUT, "no tensor \"%.*s\" is given above", (int)spec.of_length,
                           planc_shown(spec.of, shown));
      return planc_yaml_within(&r->yaml, spec.of, status);
    }
    if (spec.has_kind) return planc_yaml_error(&r->yaml, "a window has the kind of its storage, none of its own");
  }
  status =
      planc_graph_builder_tensor(r->builder, name, spec.kind, spec.dtype, spec.rank, spec.dims, of, spec.offset, NULL);
  return planc_yaml_at(&r->yaml, place, status);
}

static planc_status read_tensors(reader *r) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_MAPPING_START_EVENT, "a mapping from tensors to their specs"));
  for (;;) {
    const char *name;
    PLANC_TRY(planc_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_MAPPING_END_EVENT) break;
    if (r->yaml.event.type != YAML_SCALAR_EVENT) return planc_yaml_error(&r->yaml, "expected a tensor's name");
    planc_text_place place = planc_yaml_here(&r->yaml);
    PLANC_TRY(planc_yaml_hold(&r->yaml, &name));
    PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a tensor's spec, like \"param f32[8,3]\""));
    PLANC_TRY(add_tensor(r, name, place));
    planc_yaml_release(&r->yaml);
  }
  r->has_tensors = true;
  return NULL;
}

/* --- Attributes -------------------------------------------------------------------------------------------------- */

/* The current scalar as an attribute's value. */
static planc_status read_attr_scalar(reader *r, planc_attr *out) {
  const char *text = planc_yaml_text(&r->yaml);
  planc_number number = planc_yaml_is_plain(&r->yaml) ? planc_number_kind(text) : PLANC_NUMBER_NONE;
  if (number == PLANC_NUMBER_INT) {
    out->type = PLANC_ATTR_INT;
    return planc_yaml_integer(&r->yaml, INT64_MIN, INT64_MAX, &out->value.integer);
  }
  if (number == PLANC_NUMBER_REAL) {
    out->type = PLANC_ATTR_REAL;
    bool read = planc_real_parse(text, &out->value.real);
    return read && isfinite(out->value.real) ? NULL : planc_yaml_error(&r->yaml, "number is too large");
  }
  out->type = PLANC_ATTR_STRING;
  return planc_yaml_hold(&r->yaml, &out->value.string);
}

/* A list of integers; they go to r->ints, for the list may still move. */
static planc_status read_attr_list(reader *r, planc_attr *out) {
  out->type = PLANC_ATTR_INTS;
  for (;; out->count++) {
    int64_t value;
    PLANC_TRY(planc_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (r->yaml.event.type != YAML_SCALAR_EVENT) return planc_yaml_error(&r->yaml, "expected an integer");
    PLANC_TRY(planc_yaml_integer(&r->yaml, INT64_MIN, INT64_MAX, &value));
    VEC_PUSH(&r->ints, value);
  }
}

static planc_status read_attrs(reader *r) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_MAPPING_START_EVENT, "a mapping of attributes"));
  for (;;) {
    planc_attr attr = {0};
    PLANC_TRY(planc_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_MAPPING_END_EVENT) return NULL;
    if (r->yaml.event.type != YAML_SCALAR_EVENT) return planc_yaml_error(&r->yaml, "expected an attribute's name");
    PLANC_TRY(planc_yaml_hold(&r->yaml, &attr.key));
    PLANC_TRY(planc_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_SCALAR_EVENT) {
      PLANC_TRY(read_attr_scalar(r, &attr));
    } else if (r->yaml.event.type == YAML_SEQUENCE_START_EVENT) {
      PLANC_TRY(read_attr_list(r, &attr));
    } else {
      return planc_yaml_error(&r->yaml, "expected a number, a string or a list of integers");
    }
    VEC_PUSH(&r->attrs, attr);
  }
}

/* --- Ops --------------------------------------------------------------------------------------------------------- */

enum { OP, TYPE, PHASE, IN, OUT, EFFECTS, ATTRS, FLOPS, TRAFFIC, FLAGS, CLASS, LOOP, STEP };
static const char *const op_keys[] = {
    [OP] = "op",           [TYPE] = "type",   [PHASE] = "phase", [IN] = "in",           [OUT] = "out",
    [EFFECTS] = "effects", [ATTRS] = "attrs", [FLOPS] = "flops", [TRAFFIC] = "traffic", [FLAGS] = "flags",
    [CLASS] = "class",     [LOOP] = "loop",   [STEP] = "step"};

/* A list of tensors, appended to r->operands. */
static planc_status read_operands(reader *r, int32_t *out_count) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SEQUENCE_START_EVENT, "a list of tensors"));
  for (;; ++*out_count) {
    PLANC_TRY(planc_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (r->yaml.event.type != YAML_SCALAR_EVENT) return planc_yaml_error(&r->yaml, "expected a tensor's name");
    const char *name = planc_yaml_text(&r->yaml);
    int32_t tensor = planc_graph_builder_lookup(r->builder, name, r->yaml.event.data.scalar.length);
    if (tensor < 0) return planc_yaml_at(&r->yaml, planc_yaml_here(&r->yaml), unknown_tensor(name));
    VEC_PUSH(&r->operands, tensor);
  }
}

static planc_status read_flags(reader *r, uint32_t *out) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SEQUENCE_START_EVENT, "a list of flags"));
  for (;;) {
    int bit;
    PLANC_TRY(planc_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (r->yaml.event.type != YAML_SCALAR_EVENT) return planc_yaml_error(&r->yaml, "expected a flag");
    PLANC_TRY(planc_yaml_choice(&r->yaml, "flag", planc_flag_names, PLANC_N_FLAGS, &bit));
    if (*out >> bit & 1) return planc_yaml_error(&r->yaml, "flag %s is given twice", planc_flag_names[bit]);
    *out |= (uint32_t)1 << bit;
  }
}

static planc_status read_law(reader *r, planc_law *out) {
  const char *at;
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a size, like 3+50N"));
  planc_status status = planc_law_parse(planc_yaml_text(&r->yaml), out, &at);
  return status ? planc_yaml_within(&r->yaml, at, status) : NULL;
}

static planc_status read_text(reader *r, const char **out) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a scalar"));
  return planc_yaml_hold(&r->yaml, out);
}

static planc_status read_phase(reader *r, planc_phase *out) {
  static const char *const phases[] = {
#define X(name) #name,
      PLANC_PHASES(X)
#undef X
  };
  int phase;
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a phase"));
  PLANC_TRY(planc_yaml_choice(&r->yaml, "phase", phases, COUNT(phases), &phase));
  *out = (planc_phase)phase;
  return NULL;
}

static planc_status read_class(reader *r, planc_op *op) {
  static const char *const classes[] = {
#define X(name) #name,
      PLANC_CLASSES(X)
#undef X
  };
  int class_;
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a class"));
  PLANC_TRY(planc_yaml_choice(&r->yaml, "class", classes, COUNT(classes), &class_));
  op->has_class = true;
  op->class_ = (planc_class)class_;
  return NULL;
}

static planc_status read_step(reader *r, int32_t *out) {
  int64_t step;
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "an integer"));
  PLANC_TRY(planc_yaml_integer(&r->yaml, 0, INT32_MAX, &step));
  *out = (int32_t)step;
  return NULL;
}

/* The operand lists stand in r->operands in the order of the file; `first` says where each starts. */
typedef struct op_parts {
  planc_op op;
  int64_t first_in, first_out, first_effect;
} op_parts;

static planc_status read_op_value(reader *r, int key, op_parts *parts) {
  planc_op *op = &parts->op;
  switch (key) {
    case OP:
      return read_text(r, &op->name);
    case TYPE:
      return read_text(r, &op->type);
    case PHASE:
      return read_phase(r, &op->phase);
    case IN:
      parts->first_in = r->operands.len;
      return read_operands(r, &op->n_in);
    case OUT:
      parts->first_out = r->operands.len;
      return read_operands(r, &op->n_out);
    case EFFECTS:
      parts->first_effect = r->operands.len;
      return read_operands(r, &op->n_effects);
    case ATTRS:
      return read_attrs(r);
    case FLOPS:
      return read_law(r, &op->flops);
    case TRAFFIC:
      return read_law(r, &op->traffic);
    case FLAGS:
      return read_flags(r, &op->flags);
    case CLASS:
      return read_class(r, op);
    case LOOP:
      return read_text(r, &op->loop);
    default:
      return read_step(r, &op->loop_step);
  }
}

/* Gives the op its parts now that they no longer move. */
static void assemble(reader *r, op_parts *parts) {
  planc_op *op = &parts->op;
  if (op->n_in) op->in = r->operands.data + parts->first_in;
  if (op->n_out) op->out = r->operands.data + parts->first_out;
  if (op->n_effects) op->effects = r->operands.data + parts->first_effect;
  op->n_attrs = (int32_t)r->attrs.len;
  op->attrs = r->attrs.data;
  const int64_t *ints = r->ints.data;
  for (int64_t i = 0; i < r->attrs.len; i++) {
    planc_attr *attr = &r->attrs.data[i];
    if (attr->type != PLANC_ATTR_INTS) continue;
    attr->value.ints = ints;
    if (attr->count) ints += attr->count;
  }
}

/* The current event starts the op's mapping. */
static planc_status read_op(reader *r) {
  op_parts parts = {.op = {.flops = {-1, -1}, .traffic = {-1, -1}}};
  planc_text_place place = planc_yaml_here(&r->yaml);
  uint32_t seen = 0;
  r->operands.len = r->attrs.len = r->ints.len = 0;
  for (;;) {
    int key;
    PLANC_TRY(planc_yaml_key(&r->yaml, op_keys, COUNT(op_keys), &seen, &key));
    if (key < 0) break;
    PLANC_TRY(read_op_value(r, key, &parts));
  }
  planc_status status = NULL;
  if (!parts.op.name) status = planc_error(PLANC_BAD_INPUT, "the op has no name: key \"op\" is missing");
  if (!status && !parts.op.type) status = planc_error(PLANC_BAD_INPUT, "the op has no type: key \"type\" is missing");
  if (!status && seen >> STEP & 1 && !parts.op.loop) {
    status = planc_error(PLANC_BAD_INPUT, "key \"step\" needs the key \"loop\"");
  }
  if (!status) {
    assemble(r, &parts);
    status = planc_graph_builder_op(r->builder, &parts.op);
  }
  planc_yaml_release(&r->yaml);
  if (status) return planc_yaml_at(&r->yaml, place, status);
  VEC_PUSH(&r->ops, place);
  return NULL;
}

static planc_status read_ops(reader *r) {
  if (!r->has_tensors) return planc_yaml_error(&r->yaml, "tensors must be given before ops");
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SEQUENCE_START_EVENT, "a list of ops"));
  for (;;) {
    PLANC_TRY(planc_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT) break;
    if (r->yaml.event.type != YAML_MAPPING_START_EVENT) return planc_yaml_error(&r->yaml, "expected an op");
    PLANC_TRY(read_op(r));
  }
  return NULL;
}

/* --- Header ------------------------------------------------------------------------------------------------------ */

enum { VERSION, NAME, LAYOUT, BATCH, DEVICE, OPTIMIZER, POLICY, ORIGIN, LOSS, OUTPUTS, TENSORS, OPS };
static const char *const header_keys[] = {
    [VERSION] = "planc-graph", [NAME] = "name",           [LAYOUT] = "layout",   [BATCH] = "batch",
    [DEVICE] = "device",       [OPTIMIZER] = "optimizer", [POLICY] = "policy",   [ORIGIN] = "origin",
    [LOSS] = "loss",           [OUTPUTS] = "outputs",     [TENSORS] = "tensors", [OPS] = "ops"};

/* The current scalar, kept until the file has been read. */
static planc_status keep(reader *r, header_text *out) {
  out->place = planc_yaml_here(&r->yaml);
  return planc_arena_strndup(&r->arena, planc_yaml_text(&r->yaml), r->yaml.event.data.scalar.length, &out->text);
}

static planc_status read_header_text(reader *r, header_text *out) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a scalar"));
  return keep(r, out);
}

/* A header text that is a name. */
static planc_status read_header_name(reader *r, header_text *out) {
  char shown[PLANC_SHOWN_TEXT];
  PLANC_TRY(read_header_text(r, out));
  const char *fault = planc_name_fault(out->text);
  return fault ? planc_yaml_error(&r->yaml, "\"%s\" %s", planc_shown(out->text, shown), fault) : NULL;
}

static planc_status read_outputs(reader *r) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SEQUENCE_START_EVENT, "a list of tensors"));
  for (;;) {
    header_text output;
    PLANC_TRY(planc_yaml_next(&r->yaml));
    if (r->yaml.event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (r->yaml.event.type != YAML_SCALAR_EVENT) return planc_yaml_error(&r->yaml, "expected a tensor's name");
    PLANC_TRY(keep(r, &output));
    VEC_PUSH(&r->outputs, output);
  }
}

static planc_status read_version(reader *r) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "the version"));
  const char *version = planc_yaml_text(&r->yaml);
  char shown[PLANC_SHOWN_TEXT];
  if (strcmp(version, "1") == 0) return NULL;
  return planc_yaml_error(&r->yaml, "graph format %s is not known; this planc reads format 1",
                          planc_shown(version, shown));
}

static planc_status read_layout(reader *r) {
  static const char *const layouts[] = {[PLANC_LAYOUT_NCHW] = "NCHW", [PLANC_LAYOUT_NHWC] = "NHWC"};
  int layout;
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "a layout"));
  PLANC_TRY(planc_yaml_choice(&r->yaml, "layout", layouts, COUNT(layouts), &layout));
  r->layout = (planc_layout)layout;
  return NULL;
}

static planc_status read_batch(reader *r) {
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_SCALAR_EVENT, "an integer"));
  return planc_yaml_integer(&r->yaml, 1, INT32_MAX, &r->batch);
}

static planc_status read_header_value(reader *r, int key) {
  switch (key) {
    case VERSION:
      return read_version(r);
    case NAME:
      return read_header_name(r, &r->name);
    case LAYOUT:
      return read_layout(r);
    case BATCH:
      return read_batch(r);
    case DEVICE:
      return read_header_name(r, &r->device);
    case OPTIMIZER:
      return read_header_name(r, &r->optimizer);
    case POLICY:
      return read_header_name(r, &r->policy);
    case ORIGIN:
      return read_header_text(r, &r->origin);
    case LOSS:
      return read_header_text(r, &r->loss);
    case OUTPUTS:
      return read_outputs(r);
    case TENSORS:
      return read_tensors(r);
    default:
      return read_ops(r);
  }
}

/* --- The whole --------------------------------------------------------------------------------------------------- */

static planc_status read_document(reader *r) {
  uint32_t seen = 0;
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_STREAM_START_EVENT, "a stream"));
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_DOCUMENT_START_EVENT, "a graph, found an empty file"));
  PLANC_TRY(planc_yaml_expect(&r->yaml, YAML_MAPPING_START_EVENT, "a mapping that starts with \"planc-graph: 1\""));
  r->start = planc_yaml_here(&r->yaml);
  for (;;) {
    int key;
    PLANC_TRY(planc_yaml_key(&r->yaml, header_keys, COUNT(header_keys), &seen, &key));
    if (key < 0) break;
    if (!(seen & 1)) return planc_yaml_error(&r->yaml, "the first key must be \"planc-graph\"");
    PLANC_TRY(read_header_value(r, key));
  }
  static const int required[] = {VERSION, NAME, TENSORS, OPS};
  for (int i = 0; i < COUNT(required); i++) {
    if (seen >> required[i] & 1) continue;
    planc_status missing = planc_error(PLANC_BAD_INPUT, "key \"%s\" is missing", header_keys[required[i]]);
    return planc_yaml_at(&r->yaml, r->start, missing);
  }
  PLANC_TRY(planc_yaml_next(&r->yaml)); /* the document's end */
  return planc_yaml_expect(&r->yaml, YAML_STREAM_END_EVENT, "the end of the file");
}

static planc_status resolve(const reader *r, const header_text *name, int32_t *out) {
  *out = planc_graph_builder_find(r->builder, name->text);
  return *out >= 0 ? NULL : planc_yaml_at(&r->yaml, name->place, unknown_tensor(name->text));
}

static planc_status give_header(reader *r) {
  int32_t tensor;
  planc_status status = planc_graph_builder_header(r->builder, r->name.text, r->layout, r->batch, r->device.text,
                                                   r->optimizer.text, r->policy.text, r->origin.text);
  if (status) return planc_yaml_at(&r->yaml, r->name.place, status);
  if (r->loss.text) {
    PLANC_TRY(resolve(r, &r->loss, &tensor));
    PLANC_TRY(planc_graph_builder_loss(r->builder, tensor));
  }
  for (int64_t i = 0; i < r->outputs.len; i++) {
    PLANC_TRY(resolve(r, &r->outputs.data[i], &tensor));
    PLANC_TRY(planc_graph_builder_output(r->builder, tensor));
  }
  return NULL;
}

/* Finishes the graph; a fault is told at the op or result it is in. */
static planc_status finish(reader *r, planc_graph **out) {
  planc_graph_fault fault;
  planc_status status = planc_graph_builder_finish_at(r->builder, out, &fault);
  if (!status) return NULL;
  if (fault.later_op >= 0) {
    planc_status plain = status;
    status = planc_error(planc_status_code(plain), "%s (line %" PRId32 ")", planc_status_message(plain),
                         r->ops.data[fault.later_op].line);
    planc_status_free(plain);
  }
  planc_text_place place = r->start;
  if (fault.op >= 0) {
    place = r->ops.data[fault.op];
  } else if (fault.output >= 0) {
    place = r->outputs.data[fault.output].place;
  } else if (fault.tensor >= 0) {
    place = r->loss.place;
  }
  return planc_yaml_at(&r->yaml, place, status);
}

static planc_status read_graph(reader *r, planc_graph **out) {
  PLANC_TRY(planc_graph_builder_new(&r->builder));
  PLANC_TRY(read_document(r));
  PLANC_TRY(give_header(r));
  return finish(r, out);
}

planc_status planc_graph_parse(const char *text, size_t length, const char *path, planc_graph **out) {
  *out = NULL;
  if (length > MAX_FILE_BYTES) return planc_error(PLANC_BAD_INPUT, "%s: has more than 1 GiB", path);
  reader r = {0};
  PLANC_TRY(planc_yaml_open(&r.yaml, text, length, path));
  planc_status status = read_graph(&r, out);
  planc_yaml_close(&r.yaml);
  planc_graph_builder_free(r.builder);
  planc_arena_free(&r.arena);
  VEC_FREE(&r.ops);
  VEC_FREE(&r.outputs);
  VEC_FREE(&r.operands);
  VEC_FREE(&r.attrs);
  VEC_FREE(&r.ints);
  return status;
}

planc_status planc_graph_read(const char *path, planc_graph **out) {
  char *text;
  size_t length;
  *out = NULL;
  PLANC_TRY(planc_file_read_text(path, MAX_FILE_BYTES, &text, &length));
  planc_status status = planc_graph_parse(text, length, path, out);
  free(text);
  return status;
}
