/* What a schedule's commands hold on the device (held.h). */
#include "planner/base/held.h"

static int64_t bytes_of(const pl_held *held, int32_t residency);

void pl_held_start(pl_held *held) {
  const planc_schedule *s = held->schedule;
  held->data = held->workspace = 0;
  for (int32_t r = planc_schedule_n_away(s); r < planc_schedule_n_boundary(s); r++)
    held->data = pl_add_saturate(held->data, bytes_of(held, r));
}

void pl_held_follow(pl_held *held, const planc_command *command) {
  held->workspace = 0;
  if (command->kind == PLANC_CMD_ACQUIRE) held->data = pl_add_saturate(held->data, bytes_of(held, command->residency));
  if (command->kind == PLANC_CMD_RELEASE) held->data -= bytes_of(held, command->residency);
  if (command->kind == PLANC_CMD_EXEC)
    held->workspace = pl_align_up(planc_schedule_variant(held->schedule, command).workspace_bytes, held->unit);
}

static int64_t bytes_of(const pl_held *held, int32_t residency) {
  const planc_schedule *s = held->schedule;
  int32_t buffer = planc_schedule_residencies(s)[residency].buffer;
  if (held->counts && !held->counts(&planc_schedule_trace(s)->buffers[buffer])) return 0;
  return pl_align_up(planc_schedule_bytes(s, residency), held->unit);
}
