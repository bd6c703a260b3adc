#include "plan/mapping.h"

#include "plan/row.h"

planc_status planc_mappings_check(const planc_plan *plan) {
  int64_t chunk = plan->chunk_bytes, n_chunks = 0;
  if (chunk == 0 && plan->n_mappings == 0) return NULL;
  if (chunk <= 0 || chunk % PLANC_PLAN_ALIGNMENT != 0 || plan->arena_bytes % chunk != 0) {
    return planc_error(PLANC_INVALID_PLAN, "chunks of %lld bytes, which do not make up the arena of %lld",
                       (long long)chunk, (long long)plan->arena_bytes);
  }
  for (int32_t m = 0; m < plan->n_mappings; m++) {
    const planc_mapping *mapping = &plan->mappings[m];
    if (mapping->first < 0 || mapping->n < 1 || mapping->n > plan->arena_bytes / chunk ||
        mapping->first > plan->arena_bytes / chunk - mapping->n) {
      return planc_error(PLANC_INVALID_PLAN, "mapping %d: %lld chunks from %lld on, of %lld in the arena", m,
                         (long long)mapping->n, (long long)mapping->first, (long long)(plan->arena_bytes / chunk));
    }
    n_chunks += mapping->n;
    if (n_chunks <= PLANC_ROW_MAX / chunk) continue;
    return planc_error(PLANC_INVALID_PLAN, "mapping %d: the range of addresses is too large", m);
  }
  return NULL;
}

int64_t planc_plan_range(const planc_plan *plan) {
  int64_t n_chunks = 0;
  if (plan->chunk_bytes == 0) return plan->arena_bytes;
  for (int32_t m = 0; m < plan->n_mappings; m++) n_chunks += plan->mappings[m].n;
  return n_chunks * plan->chunk_bytes;
}

planc_status planc_translation_make(int64_t chunk_bytes, const planc_mapping *mappings, int32_t n, planc_arena *arena,
                                    planc_translation *out) {
  *out = (planc_translation){.chunk_bytes = chunk_bytes, .n = n, .mappings = mappings};
  PLANC_TRY(PLANC_NEW(arena, &out->starts, (int64_t)n + 1));
  for (int32_t m = 0; m < n; m++) out->starts[m + 1] = out->starts[m] + mappings[m].n * chunk_bytes;
  return NULL;
}

int32_t planc_translation_find(const planc_translation *translation, int64_t address) {
  int32_t low = 0, high = translation->n; /* the mapping is in [low, high) */
  while (high - low > 1) {
    int32_t middle = low + (high - low) / 2;
    if (translation->starts[middle] <= address) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

planc_piece planc_translate(const planc_translation *translation, int64_t address, int64_t bytes) {
  if (translation->n == 0) return (planc_piece){address, bytes};
  int32_t low = planc_translation_find(translation, address);
  int64_t left = translation->starts[low + 1] - address;
  int64_t from = translation->mappings[low].first * translation->chunk_bytes + (address - translation->starts[low]);
  return (planc_piece){from, bytes < left ? bytes : left};
}
