/* Best fit with coalescing (bfc.h); what has no room in the region is placed beyond it. */
#include "planner/memory/bfc.h"

#include "planc/schedule.h"
#include "util/math.h"

#define MAX_SPARE (INT64_C(128) << 20) /* kMaxInternalFragmentation */
#define BEYOND (INT64_MAX / 4)

planc_status pl_bfc_init(pl_bfc *bfc, int64_t capacity) {
  *bfc = (pl_bfc){.region = {.first = 0}};
  PLANC_TRY(pl_memory_list_init(&bfc->region, capacity < BEYOND ? capacity : BEYOND));
  return pl_memory_list_init(&bfc->beyond, BEYOND);
}

void pl_bfc_free(pl_bfc *bfc) {
  pl_memory_list_free(&bfc->region);
  pl_memory_list_free(&bfc->beyond);
}

static int64_t rounded(int64_t bytes) {
  return pl_align_up(bytes > 0 ? bytes : 1, PLANC_ALIGNMENT);
}

bool pl_bfc_fits(const pl_bfc *bfc, int64_t bytes) {
  return pl_memory_list_best_fit(&bfc->region, rounded(bytes)) >= 0;
}

/* Handles are segments of the region at even numbers, and beyond it at odd ones. */
planc_status pl_bfc_take(pl_bfc *bfc, int64_t bytes, int32_t *out_handle, int64_t *out_address) {
  bytes = rounded(bytes);
  int32_t segment = pl_memory_list_best_fit(&bfc->region, bytes);
  bool over = segment < 0;
  pl_memory_list *list = over ? &bfc->beyond : &bfc->region;
  if (over) segment = pl_memory_list_best_fit(list, bytes);
  if (segment < 0) return planc_error(PLANC_BAD_INPUT, "the sizes of all tensors together overflow");
  const pl_segment *free = &list->segments.data[segment];
  int64_t address = free->address, spare = free->bytes - bytes;
  if (spare < bytes && spare < MAX_SPARE) bytes = free->bytes;
  PLANC_TRY(pl_memory_list_take(list, segment, address, bytes, 0, &segment));
  if (segment > INT32_MAX / 2) return planc_error(PLANC_INTERNAL, "too many segments");
  *out_handle = 2 * segment + over;
  *out_address = address + (over ? bfc->region.capacity : 0);
  return NULL;
}

planc_status pl_bfc_give(pl_bfc *bfc, int32_t handle) {
  return pl_memory_list_release(handle % 2 ? &bfc->beyond : &bfc->region, handle / 2, NULL);
}
