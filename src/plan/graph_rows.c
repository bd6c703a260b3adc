/* Graphs in plans (graph_rows.h). What a plan's meaning depends on is kept: all of the graph but the defaults and the
 * free text of its header. Reading goes through the graph builder, which checks a graph from any source alike. */
#include "plan/graph_rows.h"

#include <stdlib.h>

#include "graph/law.h"
#include "graph/optypes.h"
#include "util/vec.h"

#define X(name) #name,
static const char *const phases[] = {PLANC_PHASES(X)};
static const char *const classes[] = {PLANC_CLASSES(X)};
#undef X
#define X(name, text) #name,
static const char *const kinds[] = {PLANC_KINDS(X)};
static const char *const dtypes[] = {PLANC_DTYPES(X)};
#undef X
static const char *const layouts[] = {"NCHW", "NHWC"};
enum { N_PHASES = sizeof phases / sizeof *phases, N_KINDS = sizeof kinds / sizeof *kinds };
enum { N_CLASSES = sizeof classes / sizeof *classes };
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, N_LAYOUTS = sizeof layouts / sizeof *layouts };

static void emit_tensor(pl_emit *emit, const planc_graph *graph, int32_t index);
static void emit_op(pl_emit *emit, const planc_op *op);

void pl_graph_rows_emit(pl_emit *emit, const planc_graph *graph) {
  EMIT(emit, "{\"graph\":");
  pl_emit_string(emit, graph->name);
  EMIT(emit, ",\"hash\":");
  pl_emit_hash(emit, planc_graph_hash(graph));
  EMIT(emit, ",\"layout\":");
  pl_emit_string(emit, layouts[graph->layout]);
  EMIT_INT(emit, ",\"tensors\":", graph->n_tensors);
  EMIT_INT(emit, ",\"ops\":", graph->n_ops);
  EMIT_INT(emit, ",\"loss\":", graph->loss);
  EMIT(emit, ",\"outputs\":");
  pl_emit_ints(emit, graph->outputs, graph->n_outputs);
  EMIT(emit, "}\n");
  for (int32_t t = 0; t < graph->n_tensors; t++) emit_tensor(emit, graph, t);
  for (int32_t o = 0; o < graph->n_ops; o++) emit_op(emit, &graph->ops[o]);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void emit_law(pl_emit *emit, planc_law law) {
  if (law.per_sample == 0) {
    pl_emit_int(emit, law.fixed);
    return;
  }
  EMIT(emit, "\"");
  if (law.fixed) {
    pl_emit_int(emit, law.fixed);
    EMIT(emit, "+");
  }
  if (law.per_sample != 1) pl_emit_int(emit, law.per_sample);
  EMIT(emit, "N\"");
}

static void emit_tensor(pl_emit *emit, const planc_graph *graph, int32_t index) {
  const planc_tensor *tensor = &graph->tensors[index];
  const planc_storage *storage = &graph->storages[tensor->storage];
  EMIT(emit, "{\"tensor\":");
  pl_emit_string(emit, tensor->name);
  if (storage->tensor == index) {
    EMIT(emit, ",\"kind\":");
    pl_emit_string(emit, kinds[storage->kind]);
  } else {
    EMIT_INT(emit, ",\"of\":", storage->tensor);
    EMIT(emit, ",\"at\":");
    emit_law(emit, tensor->offset);
  }
  EMIT(emit, ",\"dtype\":");
  pl_emit_string(emit, dtypes[tensor->dtype]);
  EMIT(emit, ",\"shape\":[");
  for (int32_t d = 0; d < tensor->rank; d++) {
    if (d) EMIT(emit, ",");
    emit_law(emit, tensor->dims[d]);
  }
  EMIT(emit, "]}\n");
}

static void emit_attr(pl_emit *emit, const planc_attr *attr) {
  pl_emit_string(emit, attr->key);
  EMIT(emit, ":");
  switch (attr->type) {
    case PLANC_ATTR_INT:
      pl_emit_int(emit, attr->value.integer);
      break;
    case PLANC_ATTR_REAL:
      pl_emit_real(emit, attr->value.real);
      break;
    case PLANC_ATTR_STRING:
      pl_emit_string(emit, attr->value.string);
      break;
    case PLANC_ATTR_INTS:
      pl_emit_longs(emit, attr->value.ints, attr->count);
      break;
  }
}

static void emit_op(pl_emit *emit, const planc_op *op) {
  EMIT(emit, "{\"op\":");
  pl_emit_string(emit, op->name);
  EMIT(emit, ",\"type\":");
  pl_emit_string(emit, op->type);
  EMIT(emit, ",\"phase\":");
  pl_emit_string(emit, phases[op->phase]);
  EMIT(emit, ",\"in\":");
  pl_emit_ints(emit, op->in, op->n_in);
  EMIT(emit, ",\"out\":");
  pl_emit_ints(emit, op->out, op->n_out);
  EMIT(emit, ",\"effects\":");
  pl_emit_ints(emit, op->effects, op->n_effects);
  EMIT(emit, ",\"attrs\":{");
  for (int32_t a = 0; a < op->n_attrs; a++) {
    if (a) EMIT(emit, ",");
    emit_attr(emit, &op->attrs[a]);
  }
  EMIT(emit, "},\"flops\":");
  emit_law(emit, op->flops);
  EMIT(emit, ",\"traffic\":");
  emit_law(emit, op->traffic);
  if (!pl_law_is_zero(op->workspace)) {
    EMIT(emit, ",\"workspace\":");
    emit_law(emit, op->workspace);
  }
  EMIT_INT(emit, ",\"flags\":", op->flags);
  if (op->has_class) {
    EMIT(emit, ",\"class\":");
    pl_emit_string(emit, classes[op->class_]);
  }
  if (op->loop) {
    EMIT(emit, ",\"loop\":");
    pl_emit_string(emit, op->loop);
    EMIT_INT(emit, ",\"step\":", op->loop_step);
  }
  EMIT(emit, "}\n");
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

typedef VEC(int32_t) id_list;

/* A graph being read. Strings go to an arena that lives until the builder has copied them. */
typedef struct reading_graph {
  pl_row row;
  planc_graph_builder *builder;
  int64_t first_line; /* of the graph's row */
  uint64_t hash;      /* as it states it */
  int32_t n_tensors, n_ops, loss;
  id_list outputs, views_of, operands; /* views_of: by tensor; operands: of the present op */
  VEC(int64_t) longs;
  VEC(planc_attr) attrs; /* of the present op */
  VEC(uint32_t) flags;   /* by op, as the rows state them */
} reading_graph;

static planc_status read_rows(reading_graph *r, const pl_graph_budget *budget);
static planc_status finish(reading_graph *r, planc_graph **out);
static planc_status read_graph_row(reading_graph *r, const pl_graph_budget *budget);
static planc_status read_tensor(reading_graph *r, int32_t index);
static planc_status read_op(reading_graph *r);
static planc_status at_line(const reading_graph *r, planc_status status, int64_t line);

planc_status pl_graph_rows_read(pl_row *row, pl_graph_budget *budget, planc_graph **out) {
  pl_arena scratch = {0};
  reading_graph r = {.row = *row, .first_line = row->number};
  r.row.arena = &scratch;
  *out = NULL;
  planc_status status = read_rows(&r, budget);
  if (!status) status = finish(&r, out);
  pl_arena *arena = row->arena;
  *row = r.row;
  row->arena = arena;
  budget->tensors -= r.n_tensors;
  budget->ops -= r.n_ops;
  planc_graph_builder_free(r.builder);
  pl_arena_free(&scratch);
  VEC_FREE(&r.outputs);
  VEC_FREE(&r.views_of);
  VEC_FREE(&r.operands);
  VEC_FREE(&r.longs);
  VEC_FREE(&r.attrs);
  VEC_FREE(&r.flags);
  return status;
}

/* Reads rows one by one; what the row's scanner finds has its place already, what the builder finds gets the row's. */
static planc_status read_rows(reading_graph *r, const pl_graph_budget *budget) {
  PLANC_TRY(planc_graph_builder_new(&r->builder));
  for (int64_t i = -1; i < (int64_t)r->n_tensors + r->n_ops; i++) {
    int64_t line = r->row.number;
    planc_status status = i < 0              ? read_graph_row(r, budget)
                          : i < r->n_tensors ? read_tensor(r, (int32_t)i)
                                             : read_op(r);
    /* A row whose end was passed was well formed. */
    if (status) return r->row.number > line ? at_line(r, status, line) : status;
  }
  return NULL;
}

/* Appends a list of tensors to `list`; *out_n is how many. */
static planc_status read_tensors(reading_graph *r, id_list *list, int32_t *out_n) {
  PLANC_TRY(ROW_LITERAL(&r->row, "["));
  int64_t before = list->len;
  while (!ROW_ACCEPTS(&r->row, "]")) {
    int64_t tensor;
    if (list->len > before) PLANC_TRY(ROW_LITERAL(&r->row, ","));
    PLANC_TRY(pl_row_int(&r->row, 0, (int64_t)r->n_tensors - 1, &tensor));
    if (list->len == INT32_MAX) return pl_row_error(&r->row, r->row.at, "too many tensors");
    VEC_PUSH(list, (int32_t)tensor);
  }
  *out_n = (int32_t)(list->len - before);
  return NULL;
}

static planc_status read_graph_row(reading_graph *r, const pl_graph_budget *budget) {
  const char *name;
  int32_t layout, n_outputs;
  PLANC_TRY(ROW_LITERAL(&r->row, "{\"graph\":"));
  PLANC_TRY(pl_row_string(&r->row, &name));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"hash\":\""));
  PLANC_TRY(pl_row_hash(&r->row, &r->hash));
  PLANC_TRY(ROW_LITERAL(&r->row, "\",\"layout\":"));
  PLANC_TRY(pl_row_word(&r->row, layouts, N_LAYOUTS, &layout));
  PLANC_TRY(ROW_INT32(&r->row, ",\"tensors\":", 0, budget->tensors, &r->n_tensors));
  PLANC_TRY(ROW_INT32(&r->row, ",\"ops\":", 0, budget->ops, &r->n_ops));
  PLANC_TRY(ROW_INT32(&r->row, ",\"loss\":", -1, r->n_tensors - 1, &r->loss));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"outputs\":"));
  PLANC_TRY(read_tensors(r, &r->outputs, &n_outputs));
  PLANC_TRY(ROW_END(&r->row, "}"));
  return planc_graph_builder_header(r->builder, name, (planc_layout)layout, 0, NULL, NULL, NULL, NULL);
}

static planc_status read_tensor(reading_graph *r, int32_t index) {
  const char *name;
  int32_t kind = PLANC_KIND_activation, dtype, rank = 0, of = -1, made;
  planc_law dims[PLANC_MAX_RANK], offset = {0};
  PLANC_TRY(ROW_LITERAL(&r->row, "{\"tensor\":"));
  PLANC_TRY(pl_row_string(&r->row, &name));
  if (ROW_ACCEPTS(&r->row, ",\"of\":")) {
    const char *place = r->row.at;
    int64_t root;
    PLANC_TRY(pl_row_int(&r->row, 0, (int64_t)index - 1, &root));
    of = (int32_t)root;
    if (r->views_of.data[of] >= 0) return pl_row_error(&r->row, place, "tensor %d has no storage of its own", of);
    PLANC_TRY(ROW_LITERAL(&r->row, ",\"at\":"));
    PLANC_TRY(pl_row_law(&r->row, &offset));
  } else {
    PLANC_TRY(ROW_LITERAL(&r->row, ",\"kind\":"));
    PLANC_TRY(pl_row_word(&r->row, kinds, N_KINDS, &kind));
  }
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"dtype\":"));
  PLANC_TRY(pl_row_word(&r->row, dtypes, N_DTYPES, &dtype));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"shape\":["));
  while (!ROW_ACCEPTS(&r->row, "]")) {
    if (rank == PLANC_MAX_RANK) return pl_row_error(&r->row, r->row.at, "more than %d dimensions", PLANC_MAX_RANK);
    if (rank) PLANC_TRY(ROW_LITERAL(&r->row, ","));
    PLANC_TRY(pl_row_law(&r->row, &dims[rank++]));
  }
  PLANC_TRY(ROW_END(&r->row, "}"));
  VEC_PUSH(&r->views_of, of);
  return planc_graph_builder_tensor(r->builder, name, (planc_kind)kind, (planc_dtype)dtype, rank, dims, of, offset,
                                    &made);
}

static planc_status read_attr_ints(reading_graph *r, planc_attr *attr) {
  r->longs.len = 0;
  while (!ROW_ACCEPTS(&r->row, "]")) {
    int64_t value;
    if (r->longs.len) PLANC_TRY(ROW_LITERAL(&r->row, ","));
    PLANC_TRY(pl_row_int(&r->row, -PL_ROW_MAX, PL_ROW_MAX, &value));
    if (r->longs.len == INT32_MAX) return pl_row_error(&r->row, r->row.at, "too many numbers");
    VEC_PUSH(&r->longs, value);
  }
  int64_t *ints;
  PLANC_TRY(PL_NEW(r->row.arena, &ints, r->longs.len));
  if (r->longs.len) memcpy(ints, r->longs.data, (size_t)r->longs.len * sizeof *ints);
  attr->type = PLANC_ATTR_INTS;
  attr->count = (int32_t)r->longs.len;
  attr->value.ints = ints;
  return NULL;
}

/* True when the number that comes next has a point or an exponent. */
static bool real_follows(const pl_row *row) {
  const char *at = row->at;
  while (at < row->end && (*at == '-' || (*at >= '0' && *at <= '9'))) at++;
  return at < row->end && (*at == '.' || *at == 'e');
}

static planc_status read_attr(reading_graph *r, planc_attr *attr) {
  *attr = (planc_attr){0};
  const char *place = r->row.at;
  PLANC_TRY(pl_row_string(&r->row, &attr->key));
  if (r->attrs.len && strcmp(r->attrs.data[r->attrs.len - 1].key, attr->key) >= 0) {
    return pl_row_error(&r->row, place, "attributes stand in the order of their keys, each once");
  }
  PLANC_TRY(ROW_LITERAL(&r->row, ":"));
  if (ROW_ACCEPTS(&r->row, "[")) return read_attr_ints(r, attr);
  if (r->row.at < r->row.end && *r->row.at == '"') {
    attr->type = PLANC_ATTR_STRING;
    return pl_row_string(&r->row, &attr->value.string);
  }
  if (real_follows(&r->row)) {
    attr->type = PLANC_ATTR_REAL;
    return pl_row_real(&r->row, &attr->value.real);
  }
  attr->type = PLANC_ATTR_INT;
  return pl_row_int(&r->row, -PL_ROW_MAX, PL_ROW_MAX, &attr->value.integer);
}

/* `op` has its type and its FLOPs. The graph builder would drop a class that says nothing. */
static planc_status read_class(reading_graph *r, planc_op *op) {
  const char *place = r->row.at;
  int32_t class_;
  PLANC_TRY(pl_row_word(&r->row, classes, N_CLASSES, &class_));
  op->known = pl_optype_find(op->type);
  op->has_class = true;
  op->class_ = (planc_class)class_;
  if (op->class_ != pl_op_class_unstated(op)) return NULL;
  return pl_row_error(&r->row, place, "op %s states the class that it has anyway", op->name);
}

static planc_status read_workspace(reading_graph *r, planc_op *op) {
  const char *place = r->row.at;
  PLANC_TRY(pl_row_law(&r->row, &op->workspace));
  if (!pl_law_is_zero(op->workspace)) return NULL;
  return pl_row_error(&r->row, place, "op %s states that it works in no bytes", op->name);
}

static planc_status read_op(reading_graph *r) {
  planc_op op = {0};
  int32_t phase, flags;
  r->operands.len = r->attrs.len = 0;
  PLANC_TRY(ROW_LITERAL(&r->row, "{\"op\":"));
  PLANC_TRY(pl_row_string(&r->row, &op.name));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"type\":"));
  PLANC_TRY(pl_row_string(&r->row, &op.type));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"phase\":"));
  PLANC_TRY(pl_row_word(&r->row, phases, N_PHASES, &phase));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"in\":"));
  PLANC_TRY(read_tensors(r, &r->operands, &op.n_in));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"out\":"));
  PLANC_TRY(read_tensors(r, &r->operands, &op.n_out));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"effects\":"));
  PLANC_TRY(read_tensors(r, &r->operands, &op.n_effects));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"attrs\":{"));
  while (!ROW_ACCEPTS(&r->row, "}")) {
    planc_attr attr;
    if (r->attrs.len) PLANC_TRY(ROW_LITERAL(&r->row, ","));
    PLANC_TRY(read_attr(r, &attr));
    if (r->attrs.len == INT32_MAX) return pl_row_error(&r->row, r->row.at, "too many attributes");
    VEC_PUSH(&r->attrs, attr);
  }
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"flops\":"));
  PLANC_TRY(pl_row_law(&r->row, &op.flops));
  PLANC_TRY(ROW_LITERAL(&r->row, ",\"traffic\":"));
  PLANC_TRY(pl_row_law(&r->row, &op.traffic));
  if (ROW_ACCEPTS(&r->row, ",\"workspace\":")) PLANC_TRY(read_workspace(r, &op));
  PLANC_TRY(ROW_INT32(&r->row, ",\"flags\":", 0, PLANC_OP_FLAGS, &flags));
  if (ROW_ACCEPTS(&r->row, ",\"class\":")) PLANC_TRY(read_class(r, &op));
  if (ROW_ACCEPTS(&r->row, ",\"loop\":")) {
    PLANC_TRY(pl_row_string(&r->row, &op.loop));
    PLANC_TRY(ROW_INT32(&r->row, ",\"step\":", INT32_MIN, INT32_MAX, &op.loop_step));
  }
  PLANC_TRY(ROW_END(&r->row, "}"));
  op.phase = (planc_phase)phase;
  op.flags = (uint32_t)flags;
  op.n_attrs = (int32_t)r->attrs.len;
  op.attrs = r->attrs.data;
  if (r->operands.len) {
    op.in = r->operands.data;
    op.out = op.in + op.n_in;
    op.effects = op.out + op.n_out;
  }
  VEC_PUSH(&r->flags, op.flags);
  return planc_graph_builder_op(r->builder, &op);
}

/* Gives a failure of the builder, which knows no places, the line it is about. */
static planc_status at_line(const reading_graph *r, planc_status status, int64_t line) {
  return planc_context(status, "%s:%lld:1", r->row.path, (long long)line);
}

/* Whether the graph that was built is the one that the rows state; *line is the row that it is not. */
static planc_status judge(const reading_graph *r, const planc_graph *graph, int64_t *line) {
  for (int32_t o = 0; o < r->n_ops; o++) {
    if (graph->ops[o].flags == r->flags.data[o]) continue;
    *line = r->first_line + 1 + r->n_tensors + o;
    return planc_error(PLANC_BAD_INPUT, "op %s lacks a flag that its type has", graph->ops[o].name);
  }
  uint64_t hash = planc_graph_hash(graph);
  if (hash == r->hash) return NULL;
  *line = r->first_line;
  return planc_error(PLANC_BAD_INPUT, "the row's hash %016llx is not that of the graph, %016llx",
                     (unsigned long long)r->hash, (unsigned long long)hash);
}

static planc_status finish(reading_graph *r, planc_graph **out) {
  int32_t op, tensor;
  planc_status status = NULL;
  if (r->loss >= 0) status = planc_graph_builder_loss(r->builder, r->loss);
  for (int64_t i = 0; i < r->outputs.len && !status; i++) {
    status = planc_graph_builder_output(r->builder, r->outputs.data[i]);
  }
  if (status) return at_line(r, status, r->first_line);

  int64_t first_op = r->first_line + 1 + r->n_tensors;
  status = planc_graph_builder_finish(r->builder, out, &op, &tensor);
  if (status)
    return at_line(r, status, op >= 0 ? first_op + op : tensor >= 0 ? r->first_line + 1 + tensor : r->first_line);
  int64_t line = r->first_line;
  status = judge(r, *out, &line);
  if (!status) return NULL;
  planc_graph_free(*out);
  *out = NULL;
  return at_line(r, status, line);
}
