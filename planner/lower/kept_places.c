/* Places that are kept (kept_places.h). */
#include "planner/lower/kept_places.h"

#include "planner/base/copy_ns.h"
#include "util/math.h"

typedef struct keeper {
  const planc_schedule *s;
  pl_item *items;
  int32_t horizon;     /* the position behind the last */
  int64_t *live, most; /* by position, and of all */
} keeper;

static void keep_for_fed(keeper *k);
static void keep_delivered(keeper *k);
static planc_status keep_for_copies(keeper *k, pl_arena *arena);

planc_status pl_keep_places(pl_arena *arena, const planc_schedule *s, pl_item *items, int32_t n) {
  keeper k = {.s = s, .items = items, .horizon = planc_schedule_n_commands(s) + 2};
  pl_item *aligned;
  PLANC_TRY(pl_arena_copy(arena, items, n, sizeof *aligned, (void *)&aligned));
  for (int32_t i = 0; i < n; i++) aligned[i].bytes = pl_align_up(aligned[i].bytes, PLANC_ALIGNMENT);
  PLANC_TRY(pl_items_live(arena, aligned, n, k.horizon, &k.live));
  for (int32_t p = 0; p < k.horizon; p++) k.most = pl_max(k.most, k.live[p]);
  keep_for_fed(&k);
  keep_delivered(&k);
  return keep_for_copies(&k, arena);
}

static int64_t time_of(const planc_schedule *s, const planc_command *command) {
  return command->kind == PLANC_CMD_EXEC ? planc_schedule_variant(s, command).time_ns : 0;
}

/* --- What the first op is fed ------------------------------------------------------------------------------------- */

typedef struct fed_first {
  int32_t end; /* the command of the first op */
  int64_t bytes, ns;
} fed_first;

static fed_first find_fed(const planc_schedule *s);
static bool is_fed_at(const planc_schedule *s, int32_t command);
static int32_t last_ops_of(const planc_schedule *s, int64_t ns);
static void keep_from(keeper *k, int32_t residency, int32_t from);

static void keep_for_fed(keeper *k) {
  fed_first fed = find_fed(k->s);
  if (fed.bytes == 0) return;
  int32_t from = last_ops_of(k->s, fed.ns) + 1;
  for (int32_t p = from; p < k->horizon; p++)
    if (k->live[p] > k->most - fed.bytes) from = p + 1;
  for (int32_t c = 0; from < k->horizon && c < fed.end; c++)
    if (is_fed_at(k->s, c)) keep_from(k, planc_schedule_commands(k->s)[c].residency, from);
}

static fed_first find_fed(const planc_schedule *s) {
  fed_first fed = {0};
  const planc_command *commands = planc_schedule_commands(s);
  for (int32_t n = planc_schedule_n_commands(s); fed.end < n && commands[fed.end].kind != PLANC_CMD_EXEC; fed.end++) {
    if (!is_fed_at(s, fed.end)) continue;
    int64_t bytes = planc_schedule_bytes(s, commands[fed.end].residency);
    fed.bytes = pl_add_saturate(fed.bytes, pl_align_up(bytes, PLANC_ALIGNMENT));
    fed.ns = pl_add_saturate(fed.ns, pl_copy_ns(s, &commands[fed.end], PLANC_ROUTE_H2D));
  }
  return fed;
}

static bool is_fed_at(const planc_schedule *s, int32_t command) {
  const planc_command *it = &planc_schedule_commands(s)[command];
  return it->kind == PLANC_CMD_COPY && it->source == PLANC_USER && !planc_schedule_is_away(s, it->residency);
}

/* From which command on the ops take so long. */
static int32_t last_ops_of(const planc_schedule *s, int64_t ns) {
  int32_t c = planc_schedule_n_commands(s);
  while (c > 0 && ns > 0) ns -= time_of(s, &planc_schedule_commands(s)[--c]);
  return c;
}

/* What is used longer keeps its place from then on. */
static void keep_from(keeper *k, int32_t residency, int32_t from) {
  pl_item *item = &k->items[residency];
  if (item->address != PLANC_BLANK || !pl_lifetime_is_empty(item->spans[1])) return;
  int32_t since = from > item->spans[0].end ? from : item->spans[0].end;
  for (int32_t p = since; p < k->horizon; p++) k->live[p] += pl_align_up(item->bytes, PLANC_ALIGNMENT);
  if (item->spans[0].end >= from)
    item->spans[0].end = k->horizon;
  else
    item->spans[1] = (pl_lifetime){from, k->horizon};
}

/* --- What the user gets ------------------------------------------------------------------------------------------- */

/* What is small keeps its place to the end: where larger copies are ahead of its own on the link, whoever came to its
 * place next would wait for all of them. */
static void keep_delivered(keeper *k) {
  enum { SMALL = 4096 }; /* part of the most that lives */
  for (int32_t c = 0; c < planc_schedule_n_commands(k->s); c++) {
    const planc_command *command = &planc_schedule_commands(k->s)[c];
    if (command->kind != PLANC_CMD_COPY || command->residency != PLANC_USER) continue;
    pl_item *item = &k->items[command->source];
    const int64_t bytes = pl_align_up(item->bytes, PLANC_ALIGNMENT);
    int32_t *end = &item->spans[0].end;
    bool is_small = bytes > 0 && bytes <= k->most / SMALL;
    if (!is_small || item->address != PLANC_BLANK || !pl_lifetime_is_empty(item->spans[1])) continue;
    for (; *end < k->horizon && k->live[*end] <= k->most - bytes; ++*end) k->live[*end] += bytes;
  }
}

/* --- What is copied out at the end -------------------------------------------------------------------------------- */

static void keep_until(keeper *k, int32_t residency, int64_t ns);

/* Copies out are made one after the other, each when the ops ahead of it have ended. */
static planc_status keep_for_copies(keeper *k, pl_arena *arena) {
  const planc_schedule *s = k->s;
  int32_t *copied, n_copied = 0, n_commands = planc_schedule_n_commands(s);
  int64_t *ends, now = 0, link_free = 0;
  PLANC_TRY(PL_NEW(arena, &copied, n_commands));
  PLANC_TRY(PL_NEW(arena, &ends, n_commands));
  for (int32_t c = 0; c < n_commands; c++) {
    const planc_command *command = &planc_schedule_commands(s)[c];
    now = pl_add_saturate(now, time_of(s, command));
    if (!planc_schedule_copies(s, command, PLANC_MEMORY_DEVICE, PLANC_MEMORY_HOST)) continue;
    link_free = pl_add_saturate(pl_max(link_free, now), pl_copy_ns(s, command, PLANC_ROUTE_D2H));
    ends[n_copied] = link_free;
    copied[n_copied++] = command->source;
  }
  for (int32_t i = 0; i < n_copied; i++)
    if (ends[i] > now) keep_until(k, copied[i], ends[i] - now);
  return NULL;
}

/* From the beginning of the period on, until its ops have taken so long. */
static void keep_until(keeper *k, int32_t residency, int64_t ns) {
  pl_item *item = &k->items[residency];
  int64_t bytes = pl_align_up(item->bytes, PLANC_ALIGNMENT);
  int32_t end = 0, most_end = item->spans[0].start;
  if (bytes == 0 || item->address != PLANC_BLANK || !pl_lifetime_is_empty(item->spans[1])) return;
  for (; ns > 0 && end < most_end && k->live[end] <= k->most - bytes; end++)
    if (end > 0 && end <= planc_schedule_n_commands(k->s)) ns -= time_of(k->s, &planc_schedule_commands(k->s)[end - 1]);
  for (int32_t p = 0; p < end; p++) k->live[p] += bytes;
  if (end == 0) return;
  item->spans[1] = item->spans[0];
  item->spans[0] = (pl_lifetime){0, end};
}
