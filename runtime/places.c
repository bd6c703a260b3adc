/* Where a plan's data are (places.h). */
#include "runtime/places.h"

#include "plan/mapping.h"
#include "util/math.h"

/* A replica's GPUs have parts of the device's memory that follow each other, then come the next replica's; host and
 * storage have an arena of each replica and nothing else. */
static void find_regions(const planrt_session *session, rt_places *p) {
  const planrt_backend *backend = session->backend;
  char *device = backend->arena(session->device);
  int32_t gpus = planc_plan_gpus(p->plan);
  int64_t at = 0;
  for (int32_t m = 0; m < p->plan->n_memories; m++) {
    const planc_memory *memory = &p->plan->memories[m];
    int64_t bytes = m < gpus ? pl_memory_range(p->plan, m) : memory->arena_bytes;
    int64_t stride = pl_align_up(bytes, RT_ALIGNMENT);
    p->regions[m] = (rt_region){.kind = memory->kind, .bytes = -1};
    if (m < gpus) {
      p->regions[m] = (rt_region){PLANC_MEMORY_DEVICE, device + at, 0, bytes};
      at += stride;
    } else if (memory == planc_plan_memory(p->plan, PLANC_MEMORY_HOST)) {
      p->regions[m] = (rt_region){PLANC_MEMORY_HOST, backend->host_arena(session->device), stride, bytes};
    } else if (memory == planc_plan_memory(p->plan, PLANC_MEMORY_STORAGE) && bytes > 0) {
      p->regions[m] = (rt_region){PLANC_MEMORY_STORAGE, backend->storage(session->device), stride, bytes};
    }
  }
  for (int32_t m = 0; m < gpus; m++) p->regions[m].stride = at;
}

const rt_region *rt_region_of(const rt_places *places, int32_t memory) {
  return memory >= 0 && memory < places->plan->n_memories ? &places->regions[memory] : NULL;
}

bool rt_is_inside(const rt_region *region, int64_t address, int64_t bytes) {
  int64_t end;
  return address >= 0 && bytes >= 0 && !pl_add_overflow(address, bytes, &end) && end <= region->bytes;
}

/* --- Residencies -------------------------------------------------------------------------------------------------- */

planc_status rt_no_residency(int32_t residency) {
  return planc_error(PLANC_INVALID_PLAN, "no residency %d", residency);
}

static planc_status locate(rt_places *p, int32_t residency, const rt_place *at) {
  const rt_region *in = rt_region_of(p, at->memory);
  if (at->buffer < 0 || at->buffer >= p->trace->n_buffers)
    return planc_error(PLANC_INVALID_PLAN, "residency %d: no buffer %d", residency, at->buffer);
  if (residency < 0 || residency >= p->plan->n_residencies) return rt_no_residency(residency);
  if (!in) return planc_error(PLANC_INVALID_PLAN, "residency %d: no memory %d", residency, at->memory);
  if (!rt_is_inside(in, at->address, p->trace->buffers[at->buffer].bytes))
    return planc_error(PLANC_INVALID_PLAN, "residency %d of %s: address %lld is outside the arena", residency,
                       planc_trace_buffer_name(p->trace, at->buffer), (long long)at->address);
  p->places[residency] = *at;
  return NULL;
}

planc_status rt_place_residency(rt_places *places, const planc_instr *acquire) {
  const rt_place at = {.buffer = acquire->aux, .memory = acquire->memory, .address = acquire->address};
  return locate(places, acquire->id, &at);
}

static planc_status locate_all(rt_places *p) {
  for (int32_t r = 0; r < p->plan->n_residencies; r++) p->places[r].buffer = -1;
  for (int32_t b = 0; b < p->plan->n_boundary; b++) {
    const planc_boundary *row = &p->plan->boundary[b];
    const rt_place at = {.buffer = row->buffer, .memory = row->memory, .address = row->address};
    PLANC_TRY(locate(p, b, &at));
  }
  for (int32_t i = 0; i < p->plan->body.n; i++) {
    const planc_instr *instr = &p->plan->body.instrs[i];
    if (instr->op != PLANC_INSTR_acquire) continue;
    if (instr->id < p->plan->n_boundary)
      return planc_error(PLANC_INVALID_PLAN, "body[%d]: acquires residency %d of the boundary", i, instr->id);
    PLANC_TRY(planc_context(rt_place_residency(p, instr), "body[%d]", i));
  }
  return NULL;
}

planc_status rt_places_make(const planrt_session *session, pl_arena *arena, rt_places *out) {
  *out = (rt_places){.plan = session->plan, .trace = session->trace};
  PLANC_TRY(PL_NEW(arena, &out->regions, out->plan->n_memories));
  PLANC_TRY(PL_NEW(arena, &out->places, out->plan->n_residencies));
  find_regions(session, out);
  return locate_all(out);
}

const rt_place *rt_place_of(const rt_places *places, int32_t residency) {
  bool exists = residency >= 0 && residency < places->plan->n_residencies && places->places[residency].buffer >= 0;
  return exists ? &places->places[residency] : NULL;
}
