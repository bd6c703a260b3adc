/* Reads the tensors and ops of a graph file (yaml_body.h). */
#include "graph/yaml_body.h"

#include <math.h>

#include "graph/builder.h"
#include "graph/spec.h"
#include "util/real.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* --- Tensors ------------------------------------------------------------------------------------------------------ */

planc_status pl_yaml_unknown_tensor(const char *name) {
  char shown[PL_SHOWN_TEXT];
  return planc_error(PLANC_BAD_INPUT, "unknown tensor \"%s\"", pl_shown(name, shown));
}

/* Adds the tensor `name`; the current event is its spec. */
static planc_status add_tensor(pl_yaml_body *body, const char *name, pl_text_place place) {
  pl_spec spec;
  const char *at;
  int32_t of = -1;
  planc_status status = pl_spec_parse(pl_yaml_text(body->yaml), &spec, &at);
  if (status) return pl_yaml_within(body->yaml, at, status);
  if (spec.of) {
    of = pl_graph_builder_lookup(body->builder, spec.of, spec.of_length);
    if (of < 0) {
      char shown[PL_SHOWN_TEXT];
      status = planc_error(PLANC_BAD_INPUT, "no tensor \"%.*s\" is given above", (int)spec.of_length,
                           pl_shown(spec.of, shown));
      return pl_yaml_within(body->yaml, spec.of, status);
    }
    if (spec.has_kind) return pl_yaml_error(body->yaml, "a view has the kind of its storage, none of its own");
  }
  status = planc_graph_builder_tensor(body->builder, name, spec.kind, spec.dtype, spec.rank, spec.dims, of, spec.offset,
                                      NULL);
  return pl_yaml_at(body->yaml, place, status);
}

planc_status pl_yaml_read_tensors(pl_yaml_body *body) {
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_MAPPING_START_EVENT, "a mapping from tensors to their specs"));
  for (;;) {
    const char *name;
    PLANC_TRY(pl_yaml_next(body->yaml));
    if (body->yaml->event.type == YAML_MAPPING_END_EVENT) break;
    if (body->yaml->event.type != YAML_SCALAR_EVENT) return pl_yaml_error(body->yaml, "expected a tensor's name");
    pl_text_place place = pl_yaml_here(body->yaml);
    PLANC_TRY(pl_yaml_hold(body->yaml, &name));
    PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SCALAR_EVENT, "a tensor's spec, like \"param f32[8,3]\""));
    PLANC_TRY(add_tensor(body, name, place));
    pl_yaml_release(body->yaml);
  }
  body->has_tensors = true;
  return NULL;
}

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

enum { OP, TYPE, PHASE, IN, OUT, EFFECTS, ATTRS, FLOPS, TRAFFIC, WORKSPACE, FLAGS, CLASS, LOOP, STEP };
static const char *const op_keys[] = {
    [OP] = "op",           [TYPE] = "type",   [PHASE] = "phase", [IN] = "in",           [OUT] = "out",
    [EFFECTS] = "effects", [ATTRS] = "attrs", [FLOPS] = "flops", [TRAFFIC] = "traffic", [WORKSPACE] = "workspace",
    [FLAGS] = "flags",     [CLASS] = "class", [LOOP] = "loop",   [STEP] = "step"};

/* The operand lists stand in body->operands in the order of the file; `first` says where each starts. */
typedef struct op_parts {
  planc_op op;
  int64_t first_in, first_out, first_effect;
} op_parts;

static planc_status read_op(pl_yaml_body *body);
static planc_status read_op_value(pl_yaml_body *body, int key, op_parts *parts);
static void assemble(pl_yaml_body *body, op_parts *parts);
static planc_status read_text(pl_yaml_body *body, const char **out);
static planc_status read_phase(pl_yaml_body *body, planc_phase *out);
static planc_status read_operands(pl_yaml_body *body, int32_t *out_count);
static planc_status read_attrs(pl_yaml_body *body);
static planc_status read_law(pl_yaml_body *body, planc_law *out);
static planc_status read_flags(pl_yaml_body *body, uint32_t *out);
static planc_status read_class(pl_yaml_body *body, planc_op *op);
static planc_status read_step(pl_yaml_body *body, int32_t *out);

planc_status pl_yaml_read_ops(pl_yaml_body *body) {
  if (!body->has_tensors) return pl_yaml_error(body->yaml, "tensors must be given before ops");
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SEQUENCE_START_EVENT, "a list of ops"));
  for (;;) {
    PLANC_TRY(pl_yaml_next(body->yaml));
    if (body->yaml->event.type == YAML_SEQUENCE_END_EVENT) break;
    if (body->yaml->event.type != YAML_MAPPING_START_EVENT) return pl_yaml_error(body->yaml, "expected an op");
    PLANC_TRY(read_op(body));
  }
  return NULL;
}

/* The current event starts the op's mapping. */
static planc_status read_op(pl_yaml_body *body) {
  op_parts parts = {.op = {.flops = {-1, -1}, .traffic = {-1, -1}}};
  pl_text_place place = pl_yaml_here(body->yaml);
  uint32_t seen = 0;
  body->operands.len = body->attrs.len = body->ints.len = 0;
  for (;;) {
    int key;
    PLANC_TRY(pl_yaml_key(body->yaml, op_keys, COUNT(op_keys), &seen, &key));
    if (key < 0) break;
    PLANC_TRY(read_op_value(body, key, &parts));
  }
  planc_status status = NULL;
  if (!parts.op.name) status = planc_error(PLANC_BAD_INPUT, "the op has no name: key \"op\" is missing");
  if (!status && !parts.op.type) status = planc_error(PLANC_BAD_INPUT, "the op has no type: key \"type\" is missing");
  if (!status && seen >> STEP & 1 && !parts.op.loop) {
    status = planc_error(PLANC_BAD_INPUT, "key \"step\" needs the key \"loop\"");
  }
  if (!status) {
    assemble(body, &parts);
    status = planc_graph_builder_op(body->builder, &parts.op);
  }
  pl_yaml_release(body->yaml);
  if (status) return pl_yaml_at(body->yaml, place, status);
  VEC_PUSH(&body->places, place);
  return NULL;
}

static planc_status read_op_value(pl_yaml_body *body, int key, op_parts *parts) {
  planc_op *op = &parts->op;
  switch (key) {
    case OP:
      return read_text(body, &op->name);
    case TYPE:
      return read_text(body, &op->type);
    case PHASE:
      return read_phase(body, &op->phase);
    case IN:
      parts->first_in = body->operands.len;
      return read_operands(body, &op->n_in);
    case OUT:
      parts->first_out = body->operands.len;
      return read_operands(body, &op->n_out);
    case EFFECTS:
      parts->first_effect = body->operands.len;
      return read_operands(body, &op->n_effects);
    case ATTRS:
      return read_attrs(body);
    case FLOPS:
      return read_law(body, &op->flops);
    case TRAFFIC:
      return read_law(body, &op->traffic);
    case WORKSPACE:
      return read_law(body, &op->workspace);
    case FLAGS:
      return read_flags(body, &op->flags);
    case CLASS:
      return read_class(body, op);
    case LOOP:
      return read_text(body, &op->loop);
    default:
      return read_step(body, &op->loop_step);
  }
}

void pl_yaml_body_free(pl_yaml_body *body) {
  VEC_FREE(&body->places);
  VEC_FREE(&body->operands);
  VEC_FREE(&body->attrs);
  VEC_FREE(&body->ints);
}

/* --- Attributes --------------------------------------------------------------------------------------------------- */

/* The current scalar as an attribute's value. */
static planc_status read_attr_scalar(pl_yaml_body *body, planc_attr *out) {
  const char *text = pl_yaml_text(body->yaml);
  pl_number number = pl_yaml_is_plain(body->yaml) ? pl_number_kind(text) : PL_NUMBER_NONE;
  if (number == PL_NUMBER_INT) {
    out->type = PLANC_ATTR_INT;
    return pl_yaml_integer(body->yaml, INT64_MIN, INT64_MAX, &out->value.integer);
  }
  if (number == PL_NUMBER_REAL) {
    out->type = PLANC_ATTR_REAL;
    bool read = pl_real_parse(text, &out->value.real);
    return read && isfinite(out->value.real) ? NULL : pl_yaml_error(body->yaml, "number is too large");
  }
  out->type = PLANC_ATTR_STRING;
  return pl_yaml_hold(body->yaml, &out->value.string);
}

/* A list of integers; they go to body->ints, for the list may still move. */
static planc_status read_attr_list(pl_yaml_body *body, planc_attr *out) {
  out->type = PLANC_ATTR_INTS;
  for (;; out->count++) {
    int64_t value;
    PLANC_TRY(pl_yaml_next(body->yaml));
    if (body->yaml->event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (body->yaml->event.type != YAML_SCALAR_EVENT) return pl_yaml_error(body->yaml, "expected an integer");
    PLANC_TRY(pl_yaml_integer(body->yaml, INT64_MIN, INT64_MAX, &value));
    VEC_PUSH(&body->ints, value);
  }
}

static planc_status read_attrs(pl_yaml_body *body) {
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_MAPPING_START_EVENT, "a mapping of attributes"));
  for (;;) {
    planc_attr attr = {0};
    PLANC_TRY(pl_yaml_next(body->yaml));
    if (body->yaml->event.type == YAML_MAPPING_END_EVENT) return NULL;
    if (body->yaml->event.type != YAML_SCALAR_EVENT) return pl_yaml_error(body->yaml, "expected an attribute's name");
    PLANC_TRY(pl_yaml_hold(body->yaml, &attr.key));
    PLANC_TRY(pl_yaml_next(body->yaml));
    if (body->yaml->event.type == YAML_SCALAR_EVENT) {
      PLANC_TRY(read_attr_scalar(body, &attr));
    } else if (body->yaml->event.type == YAML_SEQUENCE_START_EVENT) {
      PLANC_TRY(read_attr_list(body, &attr));
    } else {
      return pl_yaml_error(body->yaml, "expected a number, a string or a list of integers");
    }
    VEC_PUSH(&body->attrs, attr);
  }
}

/* A list of tensors, appended to body->operands. */
static planc_status read_operands(pl_yaml_body *body, int32_t *out_count) {
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SEQUENCE_START_EVENT, "a list of tensors"));
  for (;; ++*out_count) {
    PLANC_TRY(pl_yaml_next(body->yaml));
    if (body->yaml->event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (body->yaml->event.type != YAML_SCALAR_EVENT) return pl_yaml_error(body->yaml, "expected a tensor's name");
    const char *name = pl_yaml_text(body->yaml);
    int32_t tensor = pl_graph_builder_lookup(body->builder, name, body->yaml->event.data.scalar.length);
    if (tensor < 0) return pl_yaml_at(body->yaml, pl_yaml_here(body->yaml), pl_yaml_unknown_tensor(name));
    VEC_PUSH(&body->operands, tensor);
  }
}

static planc_status read_flags(pl_yaml_body *body, uint32_t *out) {
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SEQUENCE_START_EVENT, "a list of flags"));
  for (;;) {
    int bit;
    PLANC_TRY(pl_yaml_next(body->yaml));
    if (body->yaml->event.type == YAML_SEQUENCE_END_EVENT) return NULL;
    if (body->yaml->event.type != YAML_SCALAR_EVENT) return pl_yaml_error(body->yaml, "expected a flag");
    PLANC_TRY(pl_yaml_choice(body->yaml, "flag", pl_flag_names, PL_N_FLAGS, &bit));
    if (*out >> bit & 1) return pl_yaml_error(body->yaml, "flag %s is given twice", pl_flag_names[bit]);
    *out |= (uint32_t)1 << bit;
  }
}

static planc_status read_law(pl_yaml_body *body, planc_law *out) {
  const char *at;
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SCALAR_EVENT, "a size, like 3+50N"));
  planc_status status = pl_law_parse(pl_yaml_text(body->yaml), out, &at);
  return status ? pl_yaml_within(body->yaml, at, status) : NULL;
}

static planc_status read_text(pl_yaml_body *body, const char **out) {
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SCALAR_EVENT, "a scalar"));
  return pl_yaml_hold(body->yaml, out);
}

static planc_status read_phase(pl_yaml_body *body, planc_phase *out) {
  static const char *const phases[] = {
#define X(name) #name,
      PLANC_PHASES(X)
#undef X
  };
  int phase;
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SCALAR_EVENT, "a phase"));
  PLANC_TRY(pl_yaml_choice(body->yaml, "phase", phases, COUNT(phases), &phase));
  *out = (planc_phase)phase;
  return NULL;
}

static planc_status read_class(pl_yaml_body *body, planc_op *op) {
  static const char *const classes[] = {
#define X(name) #name,
      PLANC_CLASSES(X)
#undef X
  };
  int class_;
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SCALAR_EVENT, "a class"));
  PLANC_TRY(pl_yaml_choice(body->yaml, "class", classes, COUNT(classes), &class_));
  op->has_class = true;
  op->class_ = (planc_class)class_;
  return NULL;
}

static planc_status read_step(pl_yaml_body *body, int32_t *out) {
  int64_t step;
  PLANC_TRY(pl_yaml_expect(body->yaml, YAML_SCALAR_EVENT, "an integer"));
  PLANC_TRY(pl_yaml_integer(body->yaml, 0, INT32_MAX, &step));
  *out = (int32_t)step;
  return NULL;
}

/* Gives the op its parts now that they no longer move. */
static void assemble(pl_yaml_body *body, op_parts *parts) {
  planc_op *op = &parts->op;
  if (op->n_in) op->in = body->operands.data + parts->first_in;
  if (op->n_out) op->out = body->operands.data + parts->first_out;
  if (op->n_effects) op->effects = body->operands.data + parts->first_effect;
  op->n_attrs = (int32_t)body->attrs.len;
  op->attrs = body->attrs.data;
  const int64_t *ints = body->ints.data;
  for (int64_t i = 0; i < body->attrs.len; i++) {
    planc_attr *attr = &body->attrs.data[i];
    if (attr->type != PLANC_ATTR_INTS) continue;
    attr->value.ints = ints;
    if (attr->count) ints += attr->count;
  }
}
