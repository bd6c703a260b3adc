/* What storages hold in a part of a batch, in the order of the ops (parts.h). */
#include "graph/parts.h"

#include "graph/optypes.h"

/* What a storage holds. */
typedef enum holding {
  SAME,    /* in every part, whatever its samples are */
  OWN,     /* of the part alone, as an op makes it that couples its samples, or nobody knows how */
  SUM,     /* a sum over the part's samples */
  SAMPLES, /* something for each of them */
  N_HOLDINGS
} holding;

typedef struct parts {
  const planc_graph *graph;
  holding *holds; /* by storage */
} parts;

static planc_status check_op(const parts *p, const planc_op *op);

planc_status pl_parts_check(pl_arena *arena, const planc_graph *graph) {
  parts p = {.graph = graph};
  PLANC_TRY(PL_NEW(arena, &p.holds, graph->n_storages));
  for (int32_t s = 0; s < graph->n_storages; s++)
    p.holds[s] = graph->storages[s].bytes.per_sample != 0 ? SAMPLES : SAME;
  for (int32_t o = 0; o < graph->n_ops && graph->ops[o].phase != PLANC_PHASE_optimizer; o++)
    PLANC_TRY(planc_context(check_op(&p, &graph->ops[o]), "op %s", graph->ops[o].name));
  return NULL;
}

static bool is_judged(const planc_op *op);
static planc_status check_dims(const planc_graph *graph, int32_t tensor);
static planc_status check_output(const parts *p, const planc_op *op, int32_t tensor, holding *out);
static void note_written(const parts *p, int32_t tensor, holding holds);

static planc_status check_op(const parts *p, const planc_op *op) {
  bool judged = is_judged(op);
  for (int32_t i = 0; judged && i < op->n_in; i++) PLANC_TRY(check_dims(p->graph, op->in[i]));
  for (int32_t i = 0; i < op->n_out; i++) {
    holding holds = OWN;
    if (judged) PLANC_TRY(check_dims(p->graph, op->out[i]));
    if (judged) PLANC_TRY(check_output(p, op, op->out[i], &holds));
    note_written(p, op->out[i], holds);
  }
  return NULL;
}

static bool is_judged(const planc_op *op) {
  return op->known && !(op->flags & PLANC_OP_BATCH_COUPLED);
}

/* A part has its samples in one piece, as rows. */
static planc_status check_dims(const planc_graph *graph, int32_t tensor) {
  const planc_tensor *t = &graph->tensors[tensor];
  for (int32_t d = 0; d < t->rank; d++) {
    if (t->dims[d].per_sample == 0 || (d == 0 && t->dims[d].fixed == 0)) continue;
    return planc_error(PLANC_BAD_INPUT,
                       "the samples of %s are not its rows, so that parts of a batch have other ones than the whole",
                       t->name);
  }
  return NULL;
}

/* --- What an op makes --------------------------------------------------------------------------------------------- */

static int32_t input_that_holds(const parts *p, const planc_op *op, holding holds);
static bool adds_up(const parts *p, const planc_op *op);

static planc_status check_output(const parts *p, const planc_op *op, int32_t tensor, holding *out) {
  const planc_graph *graph = p->graph;
  bool scales = graph->tensors[tensor].bytes.per_sample != 0;
  int32_t sum = input_that_holds(p, op, SUM);
  if (sum >= 0 && (scales || !adds_up(p, op)))
    return planc_error(PLANC_BAD_INPUT,
                       "what it makes of %s, which is a sum over the samples, does not add up over parts of the batch",
                       graph->tensors[sum].name);
  *out = SAME;
  if (scales) *out = SAMPLES;
  if (!scales && input_that_holds(p, op, OWN) >= 0) *out = OWN;
  if (!scales && (sum >= 0 || input_that_holds(p, op, SAMPLES) >= 0)) *out = SUM;
  if (*out == SAME && graph->storages[graph->tensors[tensor].storage].kind == PLANC_KIND_grad)
    return planc_error(PLANC_BAD_INPUT,
                       "the gradient %s does not follow from samples: each part of a batch adds it again",
                       graph->tensors[tensor].name);
  return NULL;
}

/* An input, -1 where none holds such. */
static int32_t input_that_holds(const parts *p, const planc_op *op, holding holds) {
  for (int32_t i = 0; i < op->n_in; i++)
    if (p->holds[p->graph->tensors[op->in[i]].storage] == holds) return op->in[i];
  return -1;
}

/* A bias or a shift comes on top in every part. */
static pl_linearity linearity_of(const planc_op *op) {
  pl_optype_id type = pl_optype_of(op);
  if (type == PL_OPTYPE_affine) return planc_op_real(op, "shift", 0) == 0 ? PL_LINEAR_IN_ALL : PL_LINEAR_IN_NONE;
  bool has_bias = (type == PL_OPTYPE_linear || type == PL_OPTYPE_conv2d) && op->n_in == 3;
  return has_bias ? PL_LINEAR_IN_NONE : op->known->linear;
}

/* Whether results of its sums are the sums of results. */
static bool adds_up(const parts *p, const planc_op *op) {
  int32_t n[N_HOLDINGS] = {0};
  for (int32_t i = 0; i < op->n_in; i++) n[p->holds[p->graph->tensors[op->in[i]].storage]]++;
  bool last = op->n_in > 0 && p->holds[p->graph->tensors[op->in[op->n_in - 1]].storage] == SUM;
  switch (linearity_of(op)) {
    case PL_LINEAR_IN_ALL:
      return n[SUM] + n[OWN] == op->n_in;
    case PL_LINEAR_IN_ONE:
      return n[SUM] == 1 && n[SAME] + 1 == op->n_in;
    case PL_LINEAR_IN_LAST:
      return last && n[SAME] + 1 == op->n_in;
    case PL_LINEAR_IN_NONE:
      break;
  }
  return false;
}

/* Where only a part of a storage is written, the rest may hold what needs more care. */
static void note_written(const parts *p, int32_t tensor, holding holds) {
  const planc_tensor *t = &p->graph->tensors[tensor];
  holding *of = &p->holds[t->storage];
  bool whole = p->graph->storages[t->storage].tensor == tensor;
  if (p->graph->storages[t->storage].bytes.per_sample != 0) return;
  if (whole || holds > *of) *of = holds;
}
