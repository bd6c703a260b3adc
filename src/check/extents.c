/* Byte intervals as ranks (extents.h). */
#include "check/extents.h"

#include <stdlib.h>
#include <string.h>

#include "plan/layout.h"

/* One end of an instruction's interval. A key is the arena's number above the address, so that arenas do not mix. */
typedef struct interval_end {
  uint64_t key;
  int64_t owner; /* instruction * 2, plus 1 for the upper end */
} interval_end;

enum { KEY_SHIFT = 54, DIGIT_BITS = 11, N_DIGITS = 1 << DIGIT_BITS };

int32_t planc_gpu_of_job(const planc_plan *plan, int32_t job) {
  for (int32_t s = 0; s < plan->n_streams; s++) {
    if (plan->streams[s].job == job) return plan->streams[s].gpu;
  }
  return 0;
}

/* The interval's arena, -1 where the instruction names no interval. */
static int32_t arena_of(const planc_plan *plan, const planc_trace *trace, const int32_t *gpu_of_job,
                        const planc_instr *instr) {
  switch (instr->op) {
    case PLANC_INSTR_acquire:
      return instr->aux < 0 || instr->aux >= trace->n_buffers ? -1 : gpu_of_job[trace->buffers[instr->aux].job];
    case PLANC_INSTR_exec:
      return instr->stream < 0 || instr->stream >= plan->n_streams ? -1 : plan->streams[instr->stream].gpu;
    case PLANC_INSTR_offload:
    case PLANC_INSTR_prefetch:
      return plan->gpus;
    default:
      return -1;
  }
}

/* Sorts by key, a digit at a time from the lowest; digits that all keys share cost a pass of counting only. */
static void sort_ends(interval_end *ends, interval_end *spare, int64_t n) {
  interval_end *from = ends, *to = spare;
  for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
    int64_t counts[N_DIGITS] = {0};
    for (int64_t i = 0; i < n; i++) counts[from[i].key >> shift & (N_DIGITS - 1)]++;
    if (n == 0 || counts[from[0].key >> shift & (N_DIGITS - 1)] == n) continue;
    int64_t before = 0;
    for (int d = 0; d < N_DIGITS; d++) {
      int64_t count = counts[d];
      counts[d] = before;
      before += count;
    }
    for (int64_t i = 0; i < n; i++) to[counts[from[i].key >> shift & (N_DIGITS - 1)]++] = from[i];
    interval_end *other = from;
    from = to;
    to = other;
  }
  if (from != ends) memcpy(ends, from, (size_t)n * sizeof *ends);
}

planc_status planc_extents_make(const planc_plan *plan, const planc_trace *trace, planc_arena *arena,
                                planc_extents *out) {
  int64_t n_instrs = (int64_t)plan->prologue.n + plan->body.n + plan->epilogue.n, n = 0;
  int32_t *gpu_of_job;
  *out = (planc_extents){0};
  PLANC_TRY(PLANC_NEW(arena, &out->of, n_instrs));
  PLANC_TRY(PLANC_NEW(arena, &gpu_of_job, plan->n_jobs));
  for (int32_t j = 0; j < plan->n_jobs; j++) gpu_of_job[j] = planc_gpu_of_job(plan, j);
  /* Two ends an interval, and as much to sort into. */
  interval_end *ends = malloc(((size_t)n_instrs * 4 + 1) * sizeof *ends);
  if (!ends) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (int64_t i = 0; i < n_instrs; i++) {
    const planc_instr *instr = planc_plan_instr_at(plan, i);
    int32_t in = arena_of(plan, trace, gpu_of_job, instr);
    int64_t size = in == plan->gpus ? plan->host_arena_bytes : plan->arena_bytes;
    out->of[i] = (planc_extent){-1, -1};
    if (in < 0 || instr->address < 0 || instr->bytes <= 0 || instr->address > size - instr->bytes) continue;
    uint64_t key = (uint64_t)in << KEY_SHIFT | (uint64_t)instr->address;
    ends[n++] = (interval_end){key, i * 2};
    ends[n++] = (interval_end){key + (uint64_t)instr->bytes, i * 2 + 1};
  }
  sort_ends(ends, ends + n_instrs * 2, n);
  for (int64_t i = 0, rank = -1; i < n; i++) {
    if (i == 0 || ends[i].key != ends[i - 1].key) rank++;
    planc_extent *extent = &out->of[ends[i].owner / 2];
    *(ends[i].owner % 2 ? &extent->hi : &extent->lo) = (int32_t)rank;
    out->n_ranks = (int32_t)rank + 1;
  }
  free(ends);
  return NULL;
}
