/* What a plan decides about (auto_gaps.h): the gaps of the bound's model that have an op inside, and tails; and what
 * the user feeds to later ops. */
#include <stdlib.h>

#include "planner/auto/auto_wants.h"
#include "planner/choose/restorable.h"
#include "planner/choose/ways_back.h"
#include "util/math.h"

enum { NONE = -1 };

typedef struct gap_finder {
  const pl_walk *walk;
  const pl_bound_model *model;
  const int32_t *latest, *by_itself; /* per instance: until when it can run again, with tails and without */
  int32_t *first_version;
  pl_auto_gap *items;
  int32_t n, n_tails;
  int64_t *alone; /* by position */
} gap_finder;

static planc_status number_versions(const planc_trace *trace, pl_arena *arena, int32_t **out_first);
static void add_gap(gap_finder *f, const pl_bound_version *version, const pl_bound_gap *gap);
static void add_fed(gap_finder *f);
static planc_status add_tails(gap_finder *f, pl_arena *arena);
static planc_status check_copies(const gap_finder *f);
static int by_from(const void *left, const void *right);
static planc_status index_gaps(const gap_finder *f, pl_arena *arena, pl_auto_gaps *out);

planc_status pl_auto_gaps_make(const pl_walk *walk, const pl_bound_model *model, bool tails, pl_arena *arena,
                               pl_auto_gaps *out) {
  int32_t *latest, *by_itself; /* the same without tails */
  gap_finder f = {.walk = walk, .model = model};
  PLANC_TRY(PL_NEW(arena, &latest, walk->trace->n_instances));
  PLANC_TRY(PL_NEW(arena, &f.items, (int64_t)model->n_gaps + 2 * (int64_t)walk->trace->n_buffers));
  PLANC_TRY(pl_mark_restorable(walk->order, tails ? PL_KEPT_ANYTHING : PL_KEPT_NOTHING, arena, latest));
  by_itself = latest;
  if (tails) {
    PLANC_TRY(PL_NEW(arena, &by_itself, walk->trace->n_instances));
    PLANC_TRY(pl_mark_restorable(walk->order, PL_KEPT_NOTHING, arena, by_itself));
  }
  f.latest = latest;
  f.by_itself = by_itself;
  PLANC_TRY(number_versions(walk->trace, arena, &f.first_version));
  for (int32_t v = 0; v < model->n_versions; v++) {
    const pl_bound_version *version = &model->versions[v];
    for (int32_t k = version->first_gap; k < version->first_gap + version->n_gaps; k++)
      add_gap(&f, version, &model->gaps[k]);
  }
  if (walk->recomputes) PLANC_TRY(add_tails(&f, arena));
  add_fed(&f);
  PLANC_TRY(PL_NEW(arena, &f.alone, model->n));
  for (int32_t p = 0; p < model->n; p++) f.alone[p] = pl_bound_op_bytes(&model->ops[p]);
  PLANC_TRY(check_copies(&f));
  if (f.n > 0) qsort(f.items, (size_t)f.n, sizeof *f.items, by_from);
  return index_gaps(&f, arena, out);
}

static planc_status number_versions(const planc_trace *trace, pl_arena *arena, int32_t **out_first) {
  int32_t *first;
  int64_t n = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++) n += (int64_t)trace->buffers[b].last_version + 1;
  if (n > INT32_MAX) return planc_error(PLANC_BAD_INPUT, "the graph has too many versions");
  PLANC_TRY(PL_NEW(arena, &first, (int64_t)trace->n_buffers + 1));
  for (int32_t b = 0; b < trace->n_buffers; b++) first[b + 1] = first[b] + trace->buffers[b].last_version + 1;
  *out_first = first;
  return NULL;
}

/* Gaps of the model may lie in the next period, which is like this one. What is only written there is not copied
 * back. */
static void add_gap(gap_finder *f, const pl_bound_version *version, const pl_bound_gap *gap) {
  const pl_walk *walk = f->walk;
  int32_t n = walk->order->n, begins_late = gap->from >= n ? n : 0, to = gap->to - begins_late;
  pl_price price = pl_price_of_link(walk, version->buffer, gap->version);
  pl_auto_gap it = {.buffer = version->buffer,
                    .version = gap->version,
                    .from = gap->from - begins_late,
                    .to = to >= n ? to - n : to,
                    .of_bound = (int32_t)(gap - f->model->gaps),
                    .bytes = pl_walk_bytes(&walk->trace->buffers[version->buffer]),
                    .in_ns = gap->comes_back ? price.link_ns[PLANC_ROUTE_H2D] : 0,
                    .out_ns = price.link_ns[PLANC_ROUTE_D2H]};
  it.open[PL_AUTO_STAYS] = true;
  it.open[PL_AUTO_COPIED] = walk->swaps;
  it.open[PL_AUTO_AGAIN] =
      walk->recomputes && gap->again_ns >= 0 && to < n && pl_can_drop(walk->order, f->latest, it.buffer);
  it.open[PL_AUTO_TWICE] = it.open[PL_AUTO_AGAIN];
  it.needs_tails = it.open[PL_AUTO_AGAIN] && !pl_can_drop(walk->order, f->by_itself, it.buffer);
  bool has_inside = to > it.from + 1, is_others = walk->trace->buffers[it.buffer].peer >= 0;
  if (has_inside && !is_others && (it.open[PL_AUTO_COPIED] || it.open[PL_AUTO_AGAIN])) f->items[f->n++] = it;
}

static void add_fed(gap_finder *f) {
  const pl_walk *walk = f->walk;
  const planc_order *order = walk->order;
  for (int32_t b = 0; b < walk->trace->n_buffers; b++) {
    const planc_buffer *buffer = &walk->trace->buffers[b];
    bool is_read =
        order->first_use[b] < order->first_use[b + 1] && planc_order_access(order, order->first_use[b])->read == 0;
    if (!is_read || !planc_user_holds(buffer, 0) || planc_order_first(order, b) == 0 || buffer->peer >= 0) continue;
    f->items[f->n++] = (pl_auto_gap){.buffer = b,
                                     .from = NONE,
                                     .to = planc_order_first(order, b),
                                     .of_bound = NONE,
                                     .bytes = pl_walk_bytes(buffer),
                                     .in_ns = planc_link_ns(&walk->links[PLANC_ROUTE_H2D], buffer->bytes),
                                     .open[PL_AUTO_COPIED] = true};
  }
}

/* Of what ends with the period, and is read by what may run again behind its last use. */
static planc_status add_tails(gap_finder *f, pl_arena *arena) {
  const planc_order *order = f->walk->order;
  pl_auto_wants wants;
  PLANC_TRY(pl_auto_wants_new(order, f->first_version, f->items, f->n, f->latest, arena, &wants));
  pl_auto_wants_find(&wants, NULL);
  for (int32_t b = 0; b < order->trace->n_buffers; b++) {
    const planc_buffer *buffer = &order->trace->buffers[b];
    int32_t last = planc_order_last(order, b), until = wants.until[f->first_version[b] + buffer->last_version];
    bool ends = !(buffer->flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_FED | PLANC_BUFFER_RESULT));
    if (!ends || last == NONE || until <= last) continue;
    f->items[f->n++] = (pl_auto_gap){.buffer = b,
                                     .version = buffer->last_version,
                                     .from = last,
                                     .to = until,
                                     .of_bound = NONE,
                                     .bytes = pl_walk_bytes(buffer),
                                     .open = {[PL_AUTO_STAYS] = true, [PL_AUTO_AGAIN] = true},
                                     .is_tail = true};
    f->n_tails++;
  }
  return NULL;
}

/* What is added up of them, and of what the first op is fed, has 64 bits. */
static planc_status check_copies(const gap_finder *f) {
  const pl_walk *walk = f->walk;
  int64_t sum = 0;
  for (int32_t k = 0; k < f->n; k++) sum = pl_add_saturate(sum, pl_add_saturate(f->items[k].in_ns, f->items[k].out_ns));
  for (int32_t b = 0; b < walk->trace->n_buffers; b++)
    if (planc_order_first(walk->order, b) == 0 && planc_user_holds(&walk->trace->buffers[b], 0))
      sum = pl_add_saturate(sum, planc_link_ns(&walk->links[PLANC_ROUTE_H2D], walk->trace->buffers[b].bytes));
  if (sum <= INT64_C(1) << 60) return NULL;
  return planc_error(PLANC_BAD_INPUT, "copies of the graph's data take %lld ns: too long to search", (long long)sum);
}

static int by_from(const void *left, const void *right) {
  const pl_auto_gap *a = left, *b = right;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static planc_status index_gaps(const gap_finder *f, pl_arena *arena, pl_auto_gaps *out) {
  const planc_order *order = f->walk->order;
  int32_t n_uses = order->first_use[order->trace->n_buffers], *first_from, *of_use, *of_access;
  PLANC_TRY(PL_NEW(arena, &first_from, (int64_t)order->n + 1));
  PLANC_TRY(PL_NEW(arena, &of_use, n_uses));
  PLANC_TRY(PL_NEW(arena, &of_access, order->trace->n_accesses));
  for (int32_t u = 0; u < n_uses; u++) of_use[u] = NONE;
  for (int32_t p = 0, k = 0; p <= order->n; p++) {
    while (k < f->n && f->items[k].from < p) k++;
    first_from[p] = k;
  }
  for (int32_t k = 0; k < f->n; k++)
    if (!f->items[k].is_tail) of_use[planc_order_use_from(order, f->items[k].buffer, f->items[k].to)] = k;
  for (int32_t a = 0; a < order->trace->n_accesses; a++) of_access[a] = NONE;
  for (int32_t u = 0; u < n_uses; u++) of_access[order->uses[u].access] = of_use[u];
  *out = (pl_auto_gaps){.walk = f->walk,
                        .latest = f->latest,
                        .trace = f->walk->trace,
                        .order = order,
                        .alone = f->alone,
                        .first_version = f->first_version,
                        .n = f->n,
                        .n_fed = first_from[0],
                        .n_tails = f->n_tails,
                        .items = f->items,
                        .first_from = first_from,
                        .of_use = of_use,
                        .of_access = of_access};
  return NULL;
}
