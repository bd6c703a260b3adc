/* Places that are taken later on (later_places.h). */
#include "planner/choose/later_places.h"

#include "util/math.h"

static pl_later_place taken_by(const planc_schedule *s, int32_t command, const int64_t *residencies,
                               const int64_t *workspaces);

planc_status pl_later_places_make(const planc_schedule *s, const int64_t *residencies, const int64_t *workspaces,
                                  pl_arena *arena, pl_later_places *out) {
  const int32_t n_commands = planc_schedule_n_commands(s);
  pl_later_place *items;
  int32_t *first_from, n = 0;
  PLANC_TRY(PL_NEW(arena, &items, n_commands));
  PLANC_TRY(PL_NEW(arena, &first_from, (int64_t)n_commands + 1));
  for (int32_t c = 0; c < n_commands; c++) {
    const pl_later_place taken = taken_by(s, c, residencies, workspaces);
    first_from[c] = n;
    if (taken.bytes > 0) items[n++] = taken;
  }
  first_from[n_commands] = n;
  *out = (pl_later_places){items, first_from, n};
  return NULL;
}

/* No bytes where it takes none. */
static pl_later_place taken_by(const planc_schedule *s, int32_t command, const int64_t *residencies,
                               const int64_t *workspaces) {
  const planc_command *it = &planc_schedule_commands(s)[command];
  pl_later_place taken = {.command = command};
  if (it->kind == PLANC_CMD_ACQUIRE && !planc_schedule_is_away(s, it->residency)) {
    taken.address = residencies[it->residency];
    taken.bytes = planc_schedule_bytes(s, it->residency);
  } else if (it->kind == PLANC_CMD_EXEC) {
    taken.address = workspaces[command];
    taken.bytes = planc_schedule_variant(s, it).workspace_bytes;
  }
  return taken;
}

int32_t pl_later_places_until(const pl_later_places *later, int32_t command, int64_t address, int64_t bytes,
                              int32_t end) {
  enum { MOST = 256 };
  const int32_t first = later->first_from[command + 1];
  for (int32_t k = first; k < later->n && later->items[k].command < end; k++) {
    const pl_later_place *taken = &later->items[k];
    bool meet = taken->address < address + bytes && address < taken->address + taken->bytes;
    if (meet || k - first == MOST) return taken->command;
  }
  return end;
}
