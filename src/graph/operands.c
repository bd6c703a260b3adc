/* Checks an op of a known type against its table entry: operands by pattern, attributes by rule, in-place results, and
 * what the entry gives for costs. */
#include "graph/operands.h"

#include <string.h>

#include "graph/byte_range.h"
#include "graph/law.h"
#include "graph/spec.h"
#include "util/real.h"

/* One operand of a pattern such as "x:NCHW w:KcRS b?:K". */
typedef struct operand {
  const char *name;
  int name_length;
  bool optional, variadic;
  char dims[PLANC_MAX_RANK]; /* in the graph's layout */
  int n_dims;
  char type; /* '!', '#' or 0 */
} operand;

/* What is known while the operands of an op are matched one by one. */
typedef struct match {
  const planc_graph *graph;
  const char *type;  /* the op's */
  const char *side;  /* "input", "output" or "effect" */
  planc_dtype dtype; /* of the operands of one type, once `typed` */
  bool typed;
  pl_dims *dims;
} match;

static char mark_at(const char *pattern, int32_t index);

char pl_input_mark(const planc_optype *type, int32_t index) {
  return mark_at(type->in, index);
}

char pl_output_mark(const planc_optype *type, int32_t index) {
  return mark_at(type->out, index);
}

/* Reads the operand that `pattern` starts with and returns what follows it. */
static const char *next_operand(const char *pattern, planc_layout layout, operand *out) {
  *out = (operand){.name = pattern, .name_length = (int)strcspn(pattern, "?.:")};
  pattern += out->name_length;
  out->optional = *pattern == '?';
  out->variadic = *pattern == '.';
  pattern += strcspn(pattern, ":") + 1;
  for (; *pattern && *pattern != ' '; pattern++) {
    if (*pattern == '!' || *pattern == '#') {
      out->type = *pattern;
    } else {
      out->dims[out->n_dims++] = *pattern;
    }
  }
  if (layout == PLANC_LAYOUT_NHWC && out->n_dims > 2 && out->dims[0] != '*') {
    char channel = out->dims[1];
    memmove(out->dims + 1, out->dims + 2, (size_t)out->n_dims - 2);
    out->dims[out->n_dims - 1] = channel;
  }
  return *pattern ? pattern + 1 : pattern;
}

static char mark_at(const char *pattern, int32_t index) {
  operand at = {0};
  for (int32_t i = 0; *pattern && i <= index; i++) pattern = next_operand(pattern, PLANC_LAYOUT_NCHW, &at);
  return at.type;
}

static planc_status match_side(match *m, const char *side, const char *pattern, const int32_t *tensors, int32_t count);
static planc_status wrong_count(const match *m, const char *pattern, int32_t count);
static planc_status match_dtype(match *m, const operand *want, const planc_tensor *tensor);
static planc_status match_shape(match *m, const operand *want, const planc_tensor *tensor);

static planc_status match_operands(const planc_optype *type, const planc_graph *graph, const planc_op *op,
                                   pl_dims *out);
static planc_status check_foreign(const char *type);
static planc_status check_in_place(const planc_optype *type, const planc_graph *graph, const planc_op *op);
static planc_status check_attrs(const planc_optype *type, const planc_op *op);

planc_status pl_op_check(const planc_graph *graph, const planc_op *op) {
  const planc_optype *type = op->known;
  if (!type) return check_foreign(op->type);
  pl_dims dims;
  PLANC_TRY(match_operands(type, graph, op, &dims));
  PLANC_TRY(check_attrs(type, op));
  PLANC_TRY(check_in_place(type, graph, op));
  return type->check ? type->check(graph, op, &dims) : NULL;
}

static planc_status match_operands(const planc_optype *type, const planc_graph *graph, const planc_op *op,
                                   pl_dims *out) {
  out->bound = 0;
  out->rank = -1;
  match m = {.graph = graph, .type = type->name, .dims = out};
  PLANC_TRY(match_side(&m, "input", type->in, op->in, op->n_in));
  PLANC_TRY(match_side(&m, "output", type->out, op->out, op->n_out));
  return match_side(&m, "effect", type->effects, op->effects, op->n_effects);
}

static planc_status match_side(match *m, const char *side, const char *pattern, const int32_t *tensors, int32_t count) {
  m->side = side;
  if (!pattern) pattern = "";
  int32_t taken = 0;
  for (const char *rest = pattern; *rest;) {
    operand want;
    rest = next_operand(rest, m->graph->layout, &want);
    if (taken == count && !want.optional) return wrong_count(m, pattern, count);
    int32_t end = want.variadic ? count : taken < count ? taken + 1 : taken;
    for (; taken < end; taken++) {
      const planc_tensor *tensor = &m->graph->tensors[tensors[taken]];
      planc_status status = match_dtype(m, &want, tensor);
      if (!status) status = match_shape(m, &want, tensor);
      if (status) return planc_context(status, "%s %.*s (%s)", side, want.name_length, want.name, tensor->name);
    }
  }
  return taken == count ? NULL : wrong_count(m, pattern, count);
}

/* --- One tensor against one operand ------------------------------------------------------------------------------- */

static planc_status match_dtype(match *m, const operand *want, const planc_tensor *tensor) {
  const char *name = planc_dtype_name(tensor->dtype);
  if (want->type == '#') {
    if (tensor->dtype == PLANC_DTYPE_i64) return NULL;
    return planc_error(PLANC_BAD_INPUT, "is %s, should be i64", name);
  }
  if (!planc_dtype_is_float(tensor->dtype))
    return planc_error(PLANC_BAD_INPUT, "is %s, should be a floating-point type", name);
  if (want->type == '!') return NULL;
  if (m->typed && tensor->dtype != m->dtype) {
    return planc_error(PLANC_BAD_INPUT, "is %s, should be %s", name, planc_dtype_name(m->dtype));
  }
  m->typed = true;
  m->dtype = tensor->dtype;
  return NULL;
}

static planc_status match_letter(pl_dims *dims, char letter, planc_law size, int position) {
  char is[PL_LAW_TEXT], should[PL_LAW_TEXT];
  int slot = pl_dims_slot(letter);
  if (size.per_sample && letter != 'N') {
    return planc_error(PLANC_BAD_INPUT, "dimension %d (%c) is %s, must not depend on the batch", position, letter,
                       pl_law_text(size, is));
  }
  if (dims->bound >> slot & 1 && !pl_law_equal(dims->letter[slot], size)) {
    return planc_error(PLANC_BAD_INPUT, "dimension %d (%c) is %s, should be %s", position, letter,
                       pl_law_text(size, is), pl_law_text(dims->letter[slot], should));
  }
  dims->bound |= (uint64_t)1 << slot;
  dims->letter[slot] = size;
  return NULL;
}

static planc_status match_any(pl_dims *dims, int rank, const planc_law *sizes, int position) {
  if (dims->rank < 0) {
    dims->rank = rank;
    memcpy(dims->any, sizes, (size_t)rank * sizeof *sizes);
    return NULL;
  }
  if (dims->rank != rank) {
    return planc_error(PLANC_BAD_INPUT, "has %d dimensions too %s",
                       rank < dims->rank ? dims->rank - rank : rank - dims->rank, rank < dims->rank ? "few" : "many");
  }
  for (int i = 0; i < rank; i++) {
    char is[PL_LAW_TEXT], should[PL_LAW_TEXT];
    if (pl_law_equal(sizes[i], dims->any[i])) continue;
    return planc_error(PLANC_BAD_INPUT, "dimension %d is %s, should be %s", position + i, pl_law_text(sizes[i], is),
                       pl_law_text(dims->any[i], should));
  }
  return NULL;
}

static planc_status match_shape(match *m, const operand *want, const planc_tensor *tensor) {
  if (want->n_dims == 1 && want->dims[0] == '.') return NULL;
  bool any = memchr(want->dims, '*', (size_t)want->n_dims);
  int rank_of_any = tensor->rank - (want->n_dims - any);
  if (rank_of_any < 0 || (!any && rank_of_any > 0)) {
    return planc_error(PLANC_BAD_INPUT, "has rank %d, should have %s%d", tensor->rank, any ? "at least " : "",
                       want->n_dims - any);
  }
  int position = 0;
  for (int i = 0; i < want->n_dims; i++) {
    if (want->dims[i] == '*') {
      PLANC_TRY(match_any(m->dims, rank_of_any, &tensor->dims[position], position));
      position += rank_of_any;
    } else {
      PLANC_TRY(match_letter(m->dims, want->dims[i], tensor->dims[position], position));
      position++;
    }
  }
  return NULL;
}

/* --- All operands ------------------------------------------------------------------------------------------------- */

static planc_status wrong_count(const match *m, const char *pattern, int32_t count) {
  if (!*pattern) return planc_error(PLANC_BAD_INPUT, "%s has no %ss, %d given", m->type, m->side, count);
  return planc_error(PLANC_BAD_INPUT, "%s has %ss %s, %d given", m->type, m->side, pattern, count);
}

/* --- In-place results --------------------------------------------------------------------------------------------- */

static planc_status check_in_place(const planc_optype *type, const planc_graph *graph, const planc_op *op) {
  for (int32_t o = 0; o < op->n_out; o++) {
    const planc_tensor *out = &graph->tensors[op->out[o]];
    int32_t over = o < (int32_t)sizeof type->in_place ? type->in_place[o] - 1 : -1;
    for (int32_t i = 0; i < op->n_in; i++) {
      const planc_tensor *in = &graph->tensors[op->in[i]];
      pl_byte_range written = pl_byte_range_of(out), read = pl_byte_range_of(in);
      bool one_storage = out->storage == in->storage;
      bool same = one_storage && pl_byte_range_equal(written, read);
      if (i == over && type->only_in_place && !same) {
        return planc_error(PLANC_BAD_INPUT, "output %s must be written over input %s", out->name, in->name);
      }
      if (!one_storage || pl_byte_range_disjoint(written, read) || (i == over && same)) continue;
      return planc_error(PLANC_BAD_INPUT, "output %s overlaps input %s, which %s does not allow", out->name, in->name,
                         type->name);
    }
  }
  return NULL;
}

enum { SHOWN_DIGITS = 6 };

static planc_status check_range(const pl_attr_rule *rule, double value) {
  if (value >= rule->min && value <= rule->max) return NULL;
  char is[PL_NUMBER_TEXT], min[PL_NUMBER_TEXT], max[PL_NUMBER_TEXT];
  return planc_error(PLANC_BAD_INPUT, "attribute %s is %s, should be from %s to %s", rule->key,
                     pl_real_rounded(value, SHOWN_DIGITS, is), pl_real_rounded(rule->min, SHOWN_DIGITS, min),
                     pl_real_rounded(rule->max, SHOWN_DIGITS, max));
}

static planc_status check_attr(const pl_attr_rule *rule, const planc_attr *attr) {
  static const char *const wanted[] = {
      [PLANC_ATTR_INT] = "an integer",
      [PLANC_ATTR_REAL] = "a number",
      [PLANC_ATTR_STRING] = "a string",
      [PLANC_ATTR_INTS] = "a list of two integers",
  };
  bool fits = attr->type == rule->type || (rule->type == PLANC_ATTR_REAL && attr->type == PLANC_ATTR_INT);
  if (!fits || (rule->type == PLANC_ATTR_INTS && attr->count != 2)) {
    return planc_error(PLANC_BAD_INPUT, "attribute %s should be %s", rule->key, wanted[rule->type]);
  }
  if (attr->type == PLANC_ATTR_INT) return check_range(rule, (double)attr->value.integer);
  if (attr->type == PLANC_ATTR_REAL) return check_range(rule, attr->value.real);
  if (attr->type == PLANC_ATTR_STRING) return NULL;
  PLANC_TRY(check_range(rule, (double)attr->value.ints[0]));
  return check_range(rule, (double)attr->value.ints[1]);
}

static planc_status check_attrs(const planc_optype *type, const planc_op *op) {
  static const pl_attr_rule none = {0};
  const pl_attr_rule *rules = type->attrs ? type->attrs : &none;
  for (int32_t i = 0; i < op->n_attrs; i++) {
    const pl_attr_rule *rule = rules;
    while (rule->key && strcmp(rule->key, op->attrs[i].key) != 0) rule++;
    if (!rule->key) return planc_error(PLANC_BAD_INPUT, "%s has no attribute %s", type->name, op->attrs[i].key);
    PLANC_TRY(check_attr(rule, &op->attrs[i]));
  }
  for (const pl_attr_rule *rule = rules; rule->key; rule++) {
    if (rule->required && !planc_op_attr(op, rule->key)) {
      return planc_error(PLANC_BAD_INPUT, "%s needs the attribute %s", type->name, rule->key);
    }
  }
  return NULL;
}

/* A name without a prefix is one of ours or a mistake, also where a later table has it. */
static planc_status check_foreign(const char *type) {
  const char *point = strchr(type, '.');
  if (point && point > type && point[1]) return NULL;
  return planc_error(PLANC_BAD_INPUT, "type %s is none of planc's; one of another origin has a prefix, like my.%s",
                     type, type);
}

/* --- Costs -------------------------------------------------------------------------------------------------------- */

/* The product of the dimensions in `letters`; `*` is the product of its list. */
static planc_status multiply_dims(const pl_dims *dims, const char *letters, planc_law *out) {
  *out = pl_law_constant(1);
  bool overflow = false;
  for (; *letters; letters++) {
    if (*letters != '*') overflow |= pl_law_mul_overflow(*out, dims->letter[pl_dims_slot(*letters)], out);
    for (int i = 0; *letters == '*' && i < dims->rank; i++) overflow |= pl_law_mul_overflow(*out, dims->any[i], out);
  }
  return overflow ? planc_error(PLANC_BAD_INPUT, "FLOPs do not fit 64 bits") : NULL;
}

planc_status pl_op_flops(const planc_graph *graph, const planc_op *op, planc_law *out) {
  *out = (planc_law){0};
  const planc_optype *type = op->known;
  if (!type || !type->flops) return NULL;
  pl_dims dims;
  PLANC_TRY(match_operands(type, graph, op, &dims));
  PLANC_TRY(multiply_dims(&dims, type->flops, out));
  if (pl_law_scale_overflow(*out, 2, out)) return planc_error(PLANC_BAD_INPUT, "FLOPs do not fit 64 bits");
  return NULL;
}

planc_law pl_operand_traffic(const planc_graph *graph, const planc_op *op, int32_t which) {
  const planc_optype *type = op->known;
  if (which >= op->n_in + op->n_out) return graph->tensors[op->effects[which - op->n_in - op->n_out]].bytes;
  if (which >= op->n_in) return graph->tensors[op->out[which - op->n_in]].bytes;
  bool has_bit = type && which < 32;
  bool gathered = has_bit && op->n_out > 0 && type->gathered >> which & 1;
  planc_law bytes = graph->tensors[gathered ? op->out[0] : op->in[which]].bytes;
  if (!has_bit || !(type->read_twice >> which & 1) || !pl_law_add_overflow(bytes, bytes, &bytes)) return bytes;
  return (planc_law){-1, -1};
}

planc_status pl_op_traffic(const planc_graph *graph, const planc_op *op, planc_law *out) {
  bool overflow = false;
  *out = (planc_law){0};
  for (int32_t i = 0; i < op->n_in + op->n_out + op->n_effects; i++) {
    planc_law bytes = pl_operand_traffic(graph, op, i);
    overflow |= bytes.fixed < 0 || pl_law_add_overflow(*out, bytes, out);
  }
  return overflow ? planc_error(PLANC_BAD_INPUT, "traffic does not fit 64 bits") : NULL;
}

/* Takes the failure of a cost to be derived. */
static planc_status is_derived(planc_status status, planc_law cost, planc_law derived, bool *out) {
  *out = !status && pl_law_equal(cost, derived);
  if (planc_status_code(status) == PLANC_OUT_OF_MEMORY) return status;
  planc_status_free(status);
  return NULL;
}

planc_status pl_op_costs_are_derived(const planc_graph *graph, const planc_op *op, bool *out_flops, bool *out_traffic) {
  planc_law derived;
  planc_status status = pl_op_flops(graph, op, &derived);
  PLANC_TRY(is_derived(status, op->flops, derived, out_flops));
  status = pl_op_traffic(graph, op, &derived);
  return is_derived(status, op->traffic, derived, out_traffic);
}
