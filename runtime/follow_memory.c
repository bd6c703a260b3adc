/* Memory of the framework's under a plan (follower.h). It is in the order of the calls' stream, so what another stream
 * copies from or to is given back only when the calls' stream has waited for that. */
#include <string.h>

#include "runtime/follower.h"

static int64_t bytes_of(const planrt_follow *f, int32_t buffer) {
  return f->trace->buffers[buffer].bytes;
}

static planc_status give(planrt_follow *f, int32_t buffer, bool last) {
  if (f->framework.release(f->framework.user, buffer, last)) return rt_follow_failed(f, buffer, "release it");
  rt_address_set(f, buffer, RT_NOTHING);
  return NULL;
}

planc_status rt_follow_give_back(planrt_follow *f, int32_t buffer, bool last) {
  rt_content *of = &f->contents[buffer];
  if (rt_order_is_quiet(f, buffer)) {
    PLANC_TRY(give(f, buffer, last));
    of->present = false;
    return NULL;
  }
  of->present = false;
  of->leaving = last ? RT_LEAVES_FOR_GOOD : RT_LEAVES;
  f->leaving[f->n_leaving++] = buffer;
  f->leaving_bytes += bytes_of(f, buffer);
  return NULL;
}

/* --- What is leaving ---------------------------------------------------------------------------------------------- */

static int32_t place_of(const planrt_follow *f, int32_t buffer);
static planc_status settle(planrt_follow *f, int32_t k);

planc_status rt_follow_let_go(planrt_follow *f, int32_t buffer) {
  return settle(f, place_of(f, buffer));
}

static int32_t place_of(const planrt_follow *f, int32_t buffer) {
  int32_t k = 0;
  while (f->leaving[k] != buffer) k++;
  return k;
}

/* Takes the k-th of those that are leaving from among them. */
static void drop(planrt_follow *f, int32_t k) {
  int32_t buffer = f->leaving[k];
  f->contents[buffer].leaving = RT_STAYS;
  f->leaving_bytes -= bytes_of(f, buffer);
  memmove(&f->leaving[k], &f->leaving[k + 1], (size_t)(--f->n_leaving - k) * sizeof *f->leaving);
}

static planc_status settle(planrt_follow *f, int32_t k) {
  int32_t buffer = f->leaving[k];
  bool last = f->contents[buffer].leaving == RT_LEAVES_FOR_GOOD;
  PLANC_TRY(rt_order_before(f, PLANRT_CALLS, buffer, true));
  PLANC_TRY(give(f, buffer, last));
  drop(f, k);
  return NULL;
}

planc_status rt_follow_stay(planrt_follow *f, int32_t buffer) {
  PLANC_TRY(rt_order_before(f, PLANRT_CALLS, buffer, true));
  drop(f, place_of(f, buffer));
  f->contents[buffer].present = true;
  return NULL;
}

/* From the last on, so that those that stay are moved once for each that goes. */
planc_status rt_follow_sweep(planrt_follow *f) {
  for (int32_t k = f->n_leaving - 1; k >= 0; k--)
    if (rt_order_is_quiet(f, f->leaving[k])) PLANC_TRY(settle(f, k));
  return NULL;
}

planc_status rt_follow_find_room(planrt_follow *f, int64_t bytes) {
  int64_t size = planc_plan_memory(f->plan, PLANC_MEMORY_DEVICE)->arena_bytes;
  while (f->n_leaving > 0 && f->open_bytes + f->leaving_bytes + bytes > size) PLANC_TRY(settle(f, 0));
  return NULL;
}

void rt_follow_forget(planrt_follow *f) {
  for (int32_t k = 0; k < f->n_leaving;) {
    int32_t buffer = f->leaving[k];
    if (!rt_follow_persists(f, buffer)) {
      planc_status_free(rt_order_before(f, PLANRT_CALLS, buffer, true));
      drop(f, k);
    } else {
      k++;
    }
  }
}

planc_status rt_follow_settle(planrt_follow *f, bool lasting) {
  for (int32_t k = 0; k < f->n_leaving;) {
    if (lasting || !rt_follow_persists(f, f->leaving[k]))
      PLANC_TRY(settle(f, k));
    else
      k++;
  }
  return NULL;
}
