/* Movers (movers.h). */
#include "planner/auto/movers.h"

#include <string.h>

#include "util/math.h"

enum { NONE = -1, RESTS = 0xFF };

static void list_movers(pl_movers *m);

planc_status pl_movers_new(const pl_auto_gaps *gaps, const pl_rehearsal_tables *tables, pl_arena *arena,
                           pl_movers *out) {
  const planc_trace *trace = gaps->trace;
  int64_t n = gaps->order->n;
  *out = (pl_movers){.gaps = gaps, .bytes = tables->bytes, .leaves = tables->leaves, .least = INT64_MAX};
  PLANC_TRY(PL_NEW(arena, &out->at_rest, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->rests, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->moves, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->buffers, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->first_gap, n + 1));
  PLANC_TRY(PL_NEW(arena, &out->first_use, n + 1));
  PLANC_TRY(PL_NEW(arena, &out->first_leaving, n + 1));
  PLANC_TRY(PL_NEW(arena, &out->first_death, n + 1));
  PLANC_TRY(PL_NEW(arena, &out->of_gaps, gaps->n));
  PLANC_TRY(PL_NEW(arena, &out->deaths, trace->n_buffers));
  PLANC_TRY(PL_NEW(arena, &out->uses, trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &out->leaving, trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &out->come, n));
  PLANC_TRY(PL_NEW(arena, &out->go, n));
  for (int32_t g = 0; g < gaps->n; g++) {
    out->at_rest[g] = gaps->items[g].is_tail ? PL_AUTO_AGAIN : g < gaps->n_fed ? PL_AUTO_COPIED : PL_AUTO_STAYS;
    out->rests[g] = RESTS;
  }
  list_movers(out);
  return NULL;
}

/* --- What moves --------------------------------------------------------------------------------------------------- */

static bool is_away(const pl_movers *m, const uint8_t *ways) {
  uint8_t differs = 0;
  for (int32_t g = 0; g < m->gaps->n; g++) differs |= (uint8_t)((ways[g] ^ m->at_rest[g]) & m->rests[g]);
  return differs != 0;
}

/* With all that are as large, since the search changes whatever is large enough. */
void pl_movers_widen(pl_movers *m, const uint8_t *ways) {
  if (!is_away(m, ways)) return;
  for (int32_t g = 0; g < m->gaps->n; g++)
    if (ways[g] != m->at_rest[g]) m->least = pl_min(m->least, m->gaps->items[g].bytes);
  list_movers(m);
}

static void mark_movers(pl_movers *m);
static void list_gaps(pl_movers *m);
static void list_uses(pl_movers *m);
static void list_deaths(pl_movers *m);
static void add_resting(pl_movers *m, int32_t buffer);

static void list_movers(pl_movers *m) {
  int32_t n = m->gaps->order->n;
  mark_movers(m);
  list_gaps(m);
  list_uses(m);
  list_deaths(m);
  m->at_first = 0;
  memset(m->come, 0, (size_t)n * sizeof *m->come);
  memset(m->go, 0, (size_t)n * sizeof *m->go);
  for (int32_t b = 0; b < m->gaps->trace->n_buffers; b++)
    if (!m->moves[b]) add_resting(m, b);
}

static void mark_movers(pl_movers *m) {
  const planc_trace *trace = m->gaps->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) m->moves[b] = trace->buffers[b].flags & PLANC_BUFFER_FED;
  for (int32_t g = 0; g < m->gaps->n; g++)
    if (m->gaps->items[g].bytes >= m->least) m->moves[m->gaps->items[g].buffer] = true;
  for (int32_t g = 0; g < m->gaps->n; g++) m->rests[g] = m->moves[m->gaps->items[g].buffer] ? 0 : RESTS;
  m->n_buffers = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (m->moves[b]) m->buffers[m->n_buffers++] = b;
}

/* Those that begin ahead of the first position, which users feed, first. */
static void list_gaps(pl_movers *m) {
  const pl_auto_gaps *gaps = m->gaps;
  int32_t g = 0;
  m->n_gaps = 0;
  for (int32_t p = 0; p <= gaps->order->n; p++) {
    for (; g < gaps->first_from[p]; g++)
      if (!m->rests[g]) m->of_gaps[m->n_gaps++] = g;
    m->first_gap[p] = m->n_gaps;
  }
}

static void list_uses(pl_movers *m) {
  const planc_order *order = m->gaps->order;
  int32_t n = 0, n_leaving = 0;
  for (int32_t p = 0; p < order->n; p++) {
    const planc_instance *in = planc_order_instance(order, p);
    m->first_use[p] = n;
    m->first_leaving[p] = n_leaving;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &order->trace->accesses[a];
      if (!m->moves[access->buffer]) continue;
      m->uses[n++] = (pl_mover_use){access->buffer, access->read, access->write};
      if (m->leaves[a]) m->leaving[n_leaving++] = access->buffer;
    }
  }
  m->first_use[order->n] = n;
  m->first_leaving[order->n] = n_leaving;
}

/* Whether it goes behind its last use. */
static bool dies(const planc_order *order, int32_t buffer) {
  return !(order->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT) && planc_order_last(order, buffer) != NONE;
}

static void list_deaths(pl_movers *m) {
  const planc_order *order = m->gaps->order;
  int32_t before = 0;
  memset(m->first_death, 0, ((size_t)order->n + 1) * sizeof *m->first_death);
  for (int32_t k = 0; k < m->n_buffers; k++)
    if (dies(order, m->buffers[k])) m->first_death[planc_order_last(order, m->buffers[k])]++;
  for (int32_t p = 0; p <= order->n; p++) {
    before += m->first_death[p];
    m->first_death[p] = before;
  }
  for (int32_t k = 0; k < m->n_buffers; k++) {
    int32_t b = m->buffers[k], last_version = order->trace->buffers[b].last_version;
    if (dies(order, b))
      m->deaths[--m->first_death[planc_order_last(order, b)]] =
          (pl_mover_death){b, m->gaps->first_version[b] + last_version};
  }
}

/* --- What does not ------------------------------------------------------------------------------------------------ */

/* An op may use a buffer twice. */
static bool is_last_there(const planc_order *order, int32_t buffer, int32_t use) {
  return use + 1 == order->first_use[buffer + 1] || order->uses[use + 1].position != order->uses[use].position;
}

/* Of a use that is the last of its buffer's at its position: what leaves does so behind each of the uses there. */
static bool goes_behind(const pl_movers *m, int32_t buffer, int32_t use) {
  const planc_order *order = m->gaps->order;
  return use + 1 == order->first_use[buffer + 1] ? dies(order, buffer) : m->leaves[order->uses[use].access];
}

static void add_resting(pl_movers *m, int32_t buffer) {
  const planc_order *order = m->gaps->order;
  bool is_here = order->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
  if (is_here) m->at_first += m->bytes[buffer];
  for (int32_t u = order->first_use[buffer]; u < order->first_use[buffer + 1]; u++) {
    int32_t position = order->uses[u].position;
    if (!is_here) m->come[position] += m->bytes[buffer];
    is_here = !is_last_there(order, buffer, u) || !goes_behind(m, buffer, u);
    if (!is_here) m->go[position] += m->bytes[buffer];
  }
}

int32_t pl_movers_resting(const pl_movers *m, int32_t buffer, int32_t position) {
  const planc_order *order = m->gaps->order;
  int32_t ahead = planc_order_use_from(order, buffer, position) - 1;
  if (ahead < order->first_use[buffer]) return order->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT ? 0 : NONE;
  if (goes_behind(m, buffer, ahead)) return NONE;
  const planc_access *access = planc_order_access(order, ahead);
  return access->write >= 0 ? access->write : access->read;
}
