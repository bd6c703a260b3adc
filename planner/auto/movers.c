/* Movers (movers.h). */
#include "planner/auto/movers.h"

#include <string.h>

#include "util/math.h"

enum { NONE = -1 };

static planc_status list_uses(pl_movers *m, pl_arena *arena);
static planc_status list_deaths(pl_movers *m, pl_arena *arena);
static planc_status let_rest(pl_movers *m, pl_arena *arena);
static void move(pl_movers *m, int32_t buffer);
static void rest(pl_movers *m, int32_t buffer);

planc_status pl_movers_new(const pl_auto_gaps *gaps, const pl_rehearsal_tables *tables, pl_arena *arena,
                           pl_movers *out) {
  *out = (pl_movers){.gaps = gaps, .bytes = tables->bytes, .leaves = tables->leaves};
  PLANC_TRY(list_uses(out, arena));
  PLANC_TRY(list_deaths(out, arena));
  return let_rest(out, arena);
}

/* --- All buffers -------------------------------------------------------------------------------------------------- */

static planc_status list_uses(pl_movers *m, pl_arena *arena) {
  const planc_order *order = m->gaps->order;
  int32_t n = 0, n_leaving = 0;
  PLANC_TRY(PL_NEW(arena, &m->first_use, (int64_t)order->n + 1));
  PLANC_TRY(PL_NEW(arena, &m->first_leaving, (int64_t)order->n + 1));
  PLANC_TRY(PL_NEW(arena, &m->uses, order->trace->n_accesses));
  PLANC_TRY(PL_NEW(arena, &m->leaving, order->trace->n_accesses));
  for (int32_t p = 0; p < order->n; p++) {
    const planc_instance *in = planc_order_instance(order, p);
    m->first_use[p] = n;
    m->first_leaving[p] = n_leaving;
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &order->trace->accesses[a];
      m->uses[n++] = (pl_mover_use){access->buffer, access->read, access->write};
      if (m->leaves[a]) m->leaving[n_leaving++] = access->buffer;
    }
  }
  m->first_use[order->n] = n;
  m->first_leaving[order->n] = n_leaving;
  return NULL;
}

/* Whether it goes behind its last use. */
static bool dies(const planc_order *order, int32_t buffer) {
  return !(order->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT) && planc_order_last(order, buffer) != NONE;
}

static planc_status list_deaths(pl_movers *m, pl_arena *arena) {
  const planc_order *order = m->gaps->order;
  int32_t before = 0, n_buffers = order->trace->n_buffers;
  PLANC_TRY(PL_NEW(arena, &m->first_death, (int64_t)order->n + 1));
  PLANC_TRY(PL_NEW(arena, &m->deaths, n_buffers));
  for (int32_t b = 0; b < n_buffers; b++)
    if (dies(order, b)) m->first_death[planc_order_last(order, b)]++;
  for (int32_t p = 0; p <= order->n; p++) {
    before += m->first_death[p];
    m->first_death[p] = before;
  }
  for (int32_t b = 0; b < n_buffers; b++) {
    int32_t last_version = order->trace->buffers[b].last_version;
    if (dies(order, b))
      m->deaths[--m->first_death[planc_order_last(order, b)]] =
          (pl_mover_death){b, m->gaps->first_version[b] + last_version};
  }
  return NULL;
}

/* --- What moves --------------------------------------------------------------------------------------------------- */

static void add_resting(pl_movers *m, int32_t buffer, int64_t bytes);

/* All rest but what is fed. */
static planc_status let_rest(pl_movers *m, pl_arena *arena) {
  const pl_auto_gaps *gaps = m->gaps;
  const int32_t n_buffers = gaps->trace->n_buffers;
  PLANC_TRY(PL_NEW(arena, &m->at_rest, gaps->n));
  PLANC_TRY(PL_NEW(arena, &m->ways, gaps->n));
  PLANC_TRY(pl_number_set_make(arena, gaps->n, &m->away));
  PLANC_TRY(PL_NEW(arena, &m->n_away, n_buffers));
  PLANC_TRY(PL_NEW(arena, &m->moves, n_buffers));
  PLANC_TRY(PL_NEW(arena, &m->buffers, n_buffers));
  PLANC_TRY(PL_NEW(arena, &m->place, n_buffers));
  PLANC_TRY(PL_NEW(arena, &m->n_uses, gaps->order->n));
  PLANC_TRY(pl_number_set_make(arena, gaps->order->n, &m->busy));
  PLANC_TRY(PL_NEW(arena, &m->come, gaps->order->n));
  PLANC_TRY(PL_NEW(arena, &m->go, gaps->order->n));
  for (int32_t g = 0; g < gaps->n; g++) {
    const bool is_fed = g < gaps->n_fed;
    m->at_rest[g] = gaps->items[g].is_tail ? PL_AUTO_AGAIN : is_fed ? PL_AUTO_COPIED : PL_AUTO_STAYS;
    if (is_fed) pl_number_set_add(&m->away, g);
  }
  memcpy(m->ways, m->at_rest, (size_t)gaps->n);
  for (int32_t b = 0; b < n_buffers; b++) {
    add_resting(m, b, m->bytes[b]);
    if (!(gaps->trace->buffers[b].flags & PLANC_BUFFER_FED)) continue;
    m->n_away[b] = 1;
    move(m, b);
  }
  return NULL;
}

static void set_way(pl_movers *m, int32_t gap, uint8_t way);

/* Few have changed: words that are alike are passed. */
void pl_movers_set(pl_movers *m, const uint8_t *ways) {
  enum { WORD = sizeof(uint64_t) };
  const int32_t n = m->gaps->n;
  for (int32_t g = 0; g < n;) {
    if (n - g >= WORD && memcmp(&ways[g], &m->ways[g], WORD) == 0) {
      g += WORD;
      continue;
    }
    for (int32_t end = (int32_t)pl_min(g + WORD, n); g < end; g++)
      if (ways[g] != m->ways[g]) set_way(m, g, ways[g]);
  }
}

static void set_way(pl_movers *m, int32_t gap, uint8_t way) {
  const pl_auto_gap *of = &m->gaps->items[gap];
  int32_t *n_away = &m->n_away[of->buffer];
  const int32_t change = (way != m->at_rest[gap]) - (m->ways[gap] != m->at_rest[gap]);
  m->ways[gap] = way;
  if (!of->is_tail) pl_number_set_put(&m->away, gap, way != PL_AUTO_STAYS);
  *n_away += change;
  if (change > 0 && *n_away == 1) move(m, of->buffer);
  if (change < 0 && *n_away == 0) rest(m, of->buffer);
}

static void count_uses(pl_movers *m, int32_t buffer, int32_t times);

static void move(pl_movers *m, int32_t buffer) {
  m->moves[buffer] = true;
  m->place[buffer] = m->n_buffers;
  m->buffers[m->n_buffers++] = buffer;
  count_uses(m, buffer, 1);
  add_resting(m, buffer, -m->bytes[buffer]);
}

static void rest(pl_movers *m, int32_t buffer) {
  const int32_t last = m->buffers[--m->n_buffers];
  m->moves[buffer] = false;
  m->buffers[m->place[buffer]] = last;
  m->place[last] = m->place[buffer];
  count_uses(m, buffer, -1);
  add_resting(m, buffer, m->bytes[buffer]);
}

static void count_uses(pl_movers *m, int32_t buffer, int32_t times) {
  const planc_order *order = m->gaps->order;
  for (int32_t u = order->first_use[buffer]; u < order->first_use[buffer + 1]; u++) {
    int32_t position = order->uses[u].position;
    m->n_uses[position] += times;
    pl_number_set_put(&m->busy, position, m->n_uses[position] > 0);
  }
}

/* --- What rests --------------------------------------------------------------------------------------------------- */

/* An op may use a buffer twice. */
static bool is_last_there(const planc_order *order, int32_t buffer, int32_t use) {
  return use + 1 == order->first_use[buffer + 1] || order->uses[use + 1].position != order->uses[use].position;
}

/* Of a use that is the last of its buffer's at its position: what leaves does so behind each of the uses there. */
static bool goes_behind(const pl_movers *m, int32_t buffer, int32_t use) {
  const planc_order *order = m->gaps->order;
  return use + 1 == order->first_use[buffer + 1] ? dies(order, buffer) : m->leaves[order->uses[use].access];
}

/* Adds what a buffer takes while it rests, or takes that away where `bytes` is less than 0. */
static void add_resting(pl_movers *m, int32_t buffer, int64_t bytes) {
  const planc_order *order = m->gaps->order;
  bool is_here = order->trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
  if (is_here) m->at_first += bytes;
  for (int32_t u = order->first_use[buffer]; u < order->first_use[buffer + 1]; u++) {
    int32_t position = order->uses[u].position;
    if (!is_here) m->come[position] += bytes;
    is_here = !is_last_there(order, buffer, u) || !goes_behind(m, buffer, u);
    if (!is_here) m->go[position] += bytes;
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
