/* What storages hold in a part of a batch, in the order of the ops (parts.h). */
#include "graph/parts.h"

#include <stdlib.h>

#include "graph/law.h"
#include "graph/optypes.h"

/* What a part of a storage holds. */
typedef enum holding {
  SAME,    /* the same in every part of the batch, whatever its samples are */
  SUM,     /* a sum over the samples: parts of the batch add up to the whole */
  OWN,     /* what an op makes that planc does not know, or that couples samples: taken to add up */
  ODD,     /* what neither is the same nor adds up */
  SAMPLES, /* something for each sample */
  N_HOLDINGS
} holding;

/* Bytes of a storage that tensors name. */
typedef struct byte_view {
  int32_t storage;
  planc_law offset, bytes;
  holding holds;
  const char *used_as; /* the name of a tensor by which an op uses it; NULL = none does */
} byte_view;

typedef struct parts {
  const planc_graph *graph;
  byte_view *views; /* by storage, then by where they begin with one sample, then by size */
  int32_t n_views;
  int32_t *view_of;  /* by tensor */
  int32_t *first_of; /* by storage, and one more: in views */
  holding *made;     /* by output of an op */
} parts;

static planc_status find_views(pl_arena *arena, parts *p);
static planc_status check_op(const parts *p, const planc_op *op);
static planc_status check_loss(const parts *p);
static planc_status check_views(const parts *p);

planc_status pl_parts_check(pl_arena *arena, const planc_graph *graph) {
  parts p = {.graph = graph};
  if (!planc_graph_has_samples(graph))
    return planc_error(PLANC_BAD_INPUT, "no size in it depends on N, so that each part would be all of the batch");
  PLANC_TRY(find_views(arena, &p));
  for (int32_t o = 0; o < graph->n_ops && graph->ops[o].phase != PLANC_PHASE_optimizer; o++)
    PLANC_TRY(planc_context(check_op(&p, &graph->ops[o]), "op %s", graph->ops[o].name));
  PLANC_TRY(check_loss(&p));
  return check_views(&p);
}

static const planc_storage *storage_of(const parts *p, int32_t tensor) {
  return &p->graph->storages[p->graph->tensors[tensor].storage];
}

static holding what_holds(const parts *p, int32_t tensor) {
  return p->views[p->view_of[tensor]].holds;
}

/* Each part adds its loss. */
static planc_status check_loss(const parts *p) {
  if (p->graph->loss < 0) return NULL;
  holding holds = what_holds(p, p->graph->loss);
  if (holds != SAME && holds != ODD) return NULL;
  return planc_error(PLANC_BAD_INPUT, "the loss %s does not add up over parts of the batch",
                     p->graph->tensors[p->graph->loss].name);
}

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

static bool is_judged(const planc_op *op);
static planc_status check_operand(const parts *p, int32_t tensor);
static planc_status check_order_of_samples(const parts *p, const planc_op *op);
static planc_status check_output(const parts *p, const planc_op *op, int32_t output, holding *out);
static void write_view(const parts *p, int32_t tensor, holding holds);

static planc_status check_op(const parts *p, const planc_op *op) {
  bool judged = is_judged(op);
  for (int32_t i = 0; judged && i < op->n_in; i++) PLANC_TRY(check_operand(p, op->in[i]));
  for (int32_t i = 0; judged && i < op->n_out; i++) PLANC_TRY(check_operand(p, op->out[i]));
  if (judged) PLANC_TRY(check_order_of_samples(p, op));
  for (int32_t i = 0; i < op->n_out; i++) {
    p->made[i] = OWN;
    if (judged) PLANC_TRY(check_output(p, op, i, &p->made[i]));
  }
  for (int32_t i = 0; i < op->n_out; i++) write_view(p, op->out[i], p->made[i]);
  return NULL;
}

static bool is_judged(const planc_op *op) {
  return op->known && !(op->flags & PLANC_OP_BATCH_COUPLED);
}

/* A part has its samples in one piece, as rows: dimensions before these are 1. */
static planc_status check_operand(const parts *p, int32_t tensor) {
  const planc_tensor *t = &p->graph->tensors[tensor];
  byte_view *v = &p->views[p->view_of[tensor]];
  bool first = true;
  v->used_as = t->name;
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->dims[d].per_sample != 0 && (!first || t->dims[d].fixed != 0))
      return planc_error(PLANC_BAD_INPUT,
                         "the samples of %s are not its rows, so that parts of a batch have other ones than the whole",
                         t->name);
    first = first && t->dims[d].per_sample == 0 && t->dims[d].fixed == 1;
  }
  if (t->bytes.per_sample != 0 || storage_of(p, tensor)->bytes.per_sample == 0) return NULL;
  return planc_error(PLANC_BAD_INPUT, "%s is of some samples of %s alone, and parts of the batch have other ones",
                     t->name, p->graph->tensors[storage_of(p, tensor)->tensor].name);
}

/* Whose rows are joined, or cut, has the first ones of the whole batch elsewhere than those of a part. */
static planc_status check_order_of_samples(const parts *p, const planc_op *op) {
  pl_optype_id type = pl_optype_of(op);
  if (type != PL_OPTYPE_concat && type != PL_OPTYPE_concat_grad && type != PL_OPTYPE_split) return NULL;
  const planc_tensor *t = &p->graph->tensors[op->in[0]];
  int64_t axis = planc_op_int(op, "axis", 0, 0);
  if (axis >= t->rank || t->dims[axis].per_sample == 0) return NULL;
  return planc_error(PLANC_BAD_INPUT, "it joins or cuts %s along the samples, of which parts of the batch have others",
                     t->name);
}

/* --- What an op makes --------------------------------------------------------------------------------------------- */

static int32_t input_that_holds(const parts *p, const planc_op *op, holding holds);
static bool adds_up(const parts *p, const planc_op *op);
static holding made_of(const parts *p, const planc_op *op, int32_t output);

static planc_status check_output(const parts *p, const planc_op *op, int32_t output, holding *out) {
  const planc_tensor *t = &p->graph->tensors[op->out[output]];
  planc_kind kind = storage_of(p, op->out[output])->kind;
  bool scales = t->bytes.per_sample != 0;
  int32_t sum = input_that_holds(p, op, SUM);
  if (sum >= 0 && (scales || !adds_up(p, op)))
    return planc_error(PLANC_BAD_INPUT,
                       "what it makes of %s, which is a sum over the samples, does not add up over parts of the batch",
                       p->graph->tensors[sum].name);
  if (!scales && (op->flags & PLANC_OP_STOCHASTIC))
    return planc_error(PLANC_BAD_INPUT, "%s is drawn anew in each part of the batch", t->name);
  if (planc_kind_persists(kind))
    return planc_error(PLANC_BAD_INPUT, "the %s %s is written in each part of the batch, once in the whole",
                       planc_kind_name(kind), t->name);
  *out = made_of(p, op, output);
  if (kind != PLANC_KIND_grad || (*out != SAME && *out != ODD)) return NULL;
  if (*out == ODD)
    return planc_error(PLANC_BAD_INPUT, "the gradient %s does not add up over parts of the batch", t->name);
  return planc_error(PLANC_BAD_INPUT,
                     "the gradient %s does not follow from samples: each part of a batch adds it again", t->name);
}

/* A mean over the batch of what is the same in every part is in each the part's share of it, and adds up. */
static bool has_its_share(const planc_op *op, int32_t output) {
  bool is_loss = pl_optype_of(op) != PL_OPTYPE_softmax_xent || output == 0; /* its other output are probabilities */
  return (op->flags & PLANC_OP_BATCH_MEAN) && is_loss;
}

static holding made_of(const parts *p, const planc_op *op, int32_t output) {
  if (p->graph->tensors[op->out[output]].bytes.per_sample != 0) return SAMPLES;
  if (input_that_holds(p, op, SAMPLES) >= 0) return SUM;
  if (input_that_holds(p, op, ODD) >= 0) return ODD;
  if (input_that_holds(p, op, SUM) >= 0) return SUM;
  if (input_that_holds(p, op, OWN) >= 0) return adds_up(p, op) ? OWN : ODD;
  return has_its_share(op, output) ? SUM : SAME;
}

/* An input, -1 where none holds such. */
static int32_t input_that_holds(const parts *p, const planc_op *op, holding holds) {
  for (int32_t i = 0; i < op->n_in; i++)
    if (what_holds(p, op->in[i]) == holds) return op->in[i];
  return -1;
}

/* Whether results of its sums are the sums of results. */
static bool adds_up(const parts *p, const planc_op *op) {
  int32_t n[N_HOLDINGS] = {0};
  for (int32_t i = 0; i < op->n_in; i++) n[what_holds(p, op->in[i])]++;
  int32_t sums = n[SUM] + n[OWN];
  holding last = op->n_in > 0 ? what_holds(p, op->in[op->n_in - 1]) : SAME;
  switch (pl_op_linearity(op)) {
    case PL_LINEAR_IN_ALL:
      return sums == op->n_in;
    case PL_LINEAR_IN_ONE:
      return sums == 1 && n[SAME] + 1 == op->n_in;
    case PL_LINEAR_IN_LAST:
      return sums == 1 && n[SAME] + 1 == op->n_in && last != SAME;
    case PL_LINEAR_IN_NONE:
      break;
  }
  return false;
}

/* --- Views -------------------------------------------------------------------------------------------------------- */

static bool share_bytes(const byte_view *a, const byte_view *b);
static bool lies_in(const byte_view *a, const byte_view *b);
static holding together(holding a, holding b);

/* Writing changes what all views hold that have bytes in common; one that is written in part holds what was there as
 * well. */
static void write_view(const parts *p, int32_t tensor, holding holds) {
  const byte_view *v = &p->views[p->view_of[tensor]];
  if (v->holds == SAMPLES) return;
  for (int32_t k = p->first_of[v->storage]; k < p->first_of[v->storage + 1]; k++) {
    byte_view *other = &p->views[k];
    if (share_bytes(v, other)) other->holds = lies_in(other, v) ? holds : together(other->holds, holds);
  }
}

/* Of a storage of one size. */
static bool share_bytes(const byte_view *a, const byte_view *b) {
  return a->offset.fixed < b->offset.fixed + b->bytes.fixed && b->offset.fixed < a->offset.fixed + a->bytes.fixed;
}

static bool lies_in(const byte_view *a, const byte_view *b) {
  return b->offset.fixed <= a->offset.fixed && a->offset.fixed + a->bytes.fixed <= b->offset.fixed + b->bytes.fixed;
}

static holding together(holding a, holding b) {
  if (a == b) return a;
  return a == SAME || b == SAME || a == ODD || b == ODD ? ODD : OWN;
}

/* Views of samples are the same bytes or have none in common, whatever the batch: another view of what was written has
 * the rows of other samples. They are in order of where they begin. */
static planc_status check_views(const parts *p) {
  const byte_view *last = NULL;
  for (int32_t k = 0; k < p->n_views; k++) {
    const byte_view *v = &p->views[k];
    if (v->holds != SAMPLES || !v->used_as) continue;
    planc_law end;
    bool apart = !last || last->storage != v->storage ||
                 (!pl_law_add_overflow(last->offset, last->bytes, &end) && pl_law_at_most(end, v->offset));
    if (!apart)
      return planc_error(PLANC_BAD_INPUT,
                         "%s and %s have bytes in common, which are other samples' in parts of the batch",
                         last->used_as, v->used_as);
    last = v;
  }
  return NULL;
}

typedef struct numbered {
  byte_view view;
  int32_t tensor;
} numbered;

static int compare_views(const void *left, const void *right);
static bool are_same(const byte_view *a, const byte_view *b);

/* Tensors of the same bytes have one view. What the user feeds is used as a whole. */
static planc_status find_views(pl_arena *arena, parts *p) {
  const planc_graph *graph = p->graph;
  numbered *all;
  PLANC_TRY(PL_NEW(arena, &all, graph->n_tensors));
  PLANC_TRY(PL_NEW(arena, &p->views, graph->n_tensors));
  PLANC_TRY(PL_NEW(arena, &p->view_of, graph->n_tensors));
  PLANC_TRY(PL_NEW(arena, &p->first_of, (int64_t)graph->n_storages + 1));
  int32_t most = 0;
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (graph->ops[o].n_out > most) most = graph->ops[o].n_out;
  PLANC_TRY(PL_NEW(arena, &p->made, most));
  for (int32_t t = 0; t < graph->n_tensors; t++) {
    const planc_tensor *tensor = &graph->tensors[t];
    const planc_storage *s = storage_of(p, t);
    bool fed = s->kind == PLANC_KIND_input && s->tensor == t;
    all[t] = (numbered){{.storage = tensor->storage,
                         .offset = tensor->offset,
                         .bytes = tensor->bytes,
                         .holds = s->bytes.per_sample != 0 ? SAMPLES : SAME,
                         .used_as = fed ? tensor->name : NULL},
                        t};
  }
  if (graph->n_tensors > 0) qsort(all, (size_t)graph->n_tensors, sizeof *all, compare_views);
  for (int32_t k = 0; k < graph->n_tensors; k++) {
    bool known = p->n_views > 0 && are_same(&all[k].view, &p->views[p->n_views - 1]);
    if (!known) p->views[p->n_views++] = all[k].view;
    byte_view *v = &p->views[p->n_views - 1];
    if (!v->used_as) v->used_as = all[k].view.used_as;
    p->view_of[all[k].tensor] = p->n_views - 1;
    p->first_of[v->storage + 1] = p->n_views;
  }
  for (int32_t s = 0; s < graph->n_storages; s++)
    if (p->first_of[s + 1] < p->first_of[s]) p->first_of[s + 1] = p->first_of[s];
  return NULL;
}

static int compare_longs(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int compare_views(const void *left, const void *right) {
  const byte_view *a = &((const numbered *)left)->view, *b = &((const numbered *)right)->view;
  int by = compare_longs(a->storage, b->storage);
  if (!by) by = compare_longs(planc_law_at(a->offset, 1), planc_law_at(b->offset, 1));
  if (!by) by = compare_longs(a->offset.per_sample, b->offset.per_sample);
  if (!by) by = compare_longs(a->bytes.fixed, b->bytes.fixed);
  if (!by) by = compare_longs(a->bytes.per_sample, b->bytes.per_sample);
  return by ? by : compare_longs(((const numbered *)left)->tensor, ((const numbered *)right)->tensor);
}

static bool are_same(const byte_view *a, const byte_view *b) {
  return a->storage == b->storage && pl_law_equal(a->offset, b->offset) && pl_law_equal(a->bytes, b->bytes);
}
