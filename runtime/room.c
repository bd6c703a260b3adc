/* What a run takes of the machine's memory (room.h): arenas, a device's among them where the backend has no memory of
 * its own; what persists, at home; and the reference. The rest is small beside these. */
#include "runtime/room.h"

#include <unistd.h>

#include "util/math.h"
#include "util/size.h"

int64_t rt_arenas(const planc_plan *plan, planc_memory_kind kind) {
  int64_t sum = 0;
  for (int32_t m = 0; m < plan->n_memories; m++)
    if (plan->memories[m].kind == kind && plan->memories[m].arena_bytes > 0)
      sum = pl_add_saturate(sum, plan->memories[m].arena_bytes);
  return pl_mul_saturate(sum, planc_plan_replicas(plan));
}

static int64_t homes(const planrt_session *session) {
  const planc_trace *trace = session->trace;
  int64_t sum = 0;
  for (int32_t b = 0; b < trace->n_buffers; b++)
    if (trace->buffers[b].flags & PLANC_BUFFER_PERSISTENT) sum = pl_add_saturate(sum, trace->buffers[b].bytes);
  return pl_mul_saturate(sum, planc_trace_replicas(trace));
}

/* Its workspaces are not known yet. */
static planc_status reference(const planrt_session *session, int64_t *out) {
  pl_arena memory = {0};
  rt_choice *choices;
  planc_status status = PL_NEW(&memory, &choices, session->trace->n_instances);
  for (int32_t i = 0; !status && i < session->trace->n_instances; i++) choices[i].algorithm = "default";
  if (!status) status = rt_resident_bytes(&(rt_resident_options){.trace = session->trace, .choices = choices}, out);
  pl_arena_free(&memory);
  return planc_context(status, "reference");
}

planc_status rt_room_check(const planrt_session *session) {
  bool on_host = !session->backend->memory;
  int64_t has = pl_mul_saturate(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGESIZE)), beside = 0;
  int64_t takes = pl_add_saturate(rt_arenas(session->plan, PLANC_MEMORY_HOST), homes(session));
  if (on_host) takes = pl_add_saturate(takes, rt_arenas(session->plan, PLANC_MEMORY_DEVICE));
  if (on_host && session->options.verify) PLANC_TRY(reference(session, &beside));
  takes = pl_add_saturate(takes, beside);
  if (takes <= has) return NULL;
  char needs[PL_SIZE_TEXT], all[PL_SIZE_TEXT];
  return planc_error(
      PLANC_DEVICE,
      "the run takes %s of the machine's memory%s, which has %s: plan for a smaller batch or budget, or fewer GPUs%s",
      pl_size_format(takes, needs), beside > 0 ? ", the reference beside it included" : "", pl_size_format(has, all),
      beside > 0 && takes - beside <= has ? ", or run it without the reference" : "");
}
