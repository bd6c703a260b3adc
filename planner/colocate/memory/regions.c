/* Regions (regions.h). */
#include "planner/colocate/memory/regions.h"

#include <stdlib.h>

#include "planc/schedule.h"
#include "util/math.h"

planc_status pl_regions_init(pl_regions *regions, int32_t n_owners, int64_t region_bytes, int64_t capacity) {
  int64_t unit = region_bytes > 0 ? region_bytes : PLANC_ALIGNMENT;
  *regions = (pl_regions){.region_bytes = region_bytes, .n_owners = n_owners};
  regions->capacity = capacity > 0 ? capacity / unit * unit : 0;
  int64_t n_regions = region_bytes > 0 ? regions->capacity / region_bytes : 0;
  regions->owners = calloc((size_t)n_owners, sizeof *regions->owners);
  regions->held = calloc((size_t)n_owners, sizeof *regions->held);
  regions->used = calloc((size_t)n_regions + 1, sizeof *regions->used);
  if (!regions->owners || !regions->held || !regions->used) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  PLANC_TRY(pl_free_list_reset(&regions->common));
  for (int32_t o = 0; o < n_owners; o++) PLANC_TRY(pl_free_list_reset_from(&regions->owners[o], regions->capacity));
  return NULL;
}

void pl_regions_free(pl_regions *regions) {
  for (int32_t o = 0; regions->owners && o < regions->n_owners; o++) pl_free_list_free(&regions->owners[o]);
  pl_free_list_free(&regions->common);
  free(regions->owners);
  free(regions->held);
  free(regions->used);
  *regions = (pl_regions){0};
}

static planc_status take_from(const pl_regions *regions, pl_free_list *list, bool high, int64_t bytes, int64_t *out);
static planc_status take_new(pl_regions *regions, int32_t owner, bool high, int64_t bytes, int64_t *out);
static void count(pl_regions *regions, pl_range range, int64_t sign);

planc_status pl_regions_take(pl_regions *regions, int32_t owner, bool high, int64_t bytes, int64_t *out_address) {
  bytes = pl_align_up(bytes > 0 ? bytes : 1, PLANC_ALIGNMENT);
  if (regions->region_bytes == 0) {
    PLANC_TRY(take_from(regions, &regions->common, high, bytes, out_address));
    if (*out_address >= 0) regions->held[owner] += bytes;
    return NULL;
  }
  PLANC_TRY(take_from(regions, &regions->owners[owner], high, bytes, out_address));
  if (*out_address < 0) PLANC_TRY(take_new(regions, owner, high, bytes, out_address));
  if (*out_address >= 0) count(regions, (pl_range){*out_address, *out_address + bytes}, 1);
  return NULL;
}

/* The lowest place in a list, or the highest one below the capacity; -1 = none. */
static int64_t find_place(const pl_regions *regions, const pl_free_list *list, bool high, int64_t bytes) {
  bool found;
  if (!high) {
    int64_t start = pl_free_list_first(list, 0, bytes).start;
    return start <= regions->capacity - bytes ? start : -1;
  }
  int64_t end = pl_free_list_last(list, regions->capacity, bytes, &found).end;
  return found ? (end < regions->capacity ? end : regions->capacity) - bytes : -1;
}

static planc_status take_from(const pl_regions *regions, pl_free_list *list, bool high, int64_t bytes, int64_t *out) {
  *out = find_place(regions, list, high, bytes);
  return *out < 0 ? NULL : pl_free_list_take_free(list, (pl_range){*out, *out + bytes});
}

/* Takes new regions for a tensor, as few as hold it, and puts it at one of their ends: so it is in each of them. */
static planc_status take_new(pl_regions *regions, int32_t owner, bool high, int64_t bytes, int64_t *out) {
  int64_t whole = pl_align_up(bytes, regions->region_bytes), start;
  PLANC_TRY(take_from(regions, &regions->common, high, whole, &start));
  *out = -1;
  if (start < 0) return NULL;
  *out = high ? start + whole - bytes : start;
  regions->held[owner] += whole;
  PLANC_TRY(pl_free_list_give(&regions->owners[owner], (pl_range){start, start + whole}));
  return pl_free_list_take_free(&regions->owners[owner], (pl_range){*out, *out + bytes});
}

/* Bytes of a range that are in a region. */
static int64_t bytes_in(const pl_regions *regions, int64_t region, pl_range range) {
  int64_t start = region * regions->region_bytes, end = start + regions->region_bytes;
  return (range.end < end ? range.end : end) - (range.start > start ? range.start : start);
}

static void count(pl_regions *regions, pl_range range, int64_t sign) {
  for (int64_t r = range.start / regions->region_bytes; r * regions->region_bytes < range.end; r++)
    regions->used[r] += sign * bytes_in(regions, r, range);
}

/* Gives a region that nothing is left in to whoever asks next. */
static planc_status let_go(pl_regions *regions, int32_t owner, int64_t region) {
  pl_range range = {region * regions->region_bytes, (region + 1) * regions->region_bytes};
  PLANC_TRY(pl_free_list_take_free(&regions->owners[owner], range));
  regions->held[owner] -= regions->region_bytes;
  return pl_free_list_give(&regions->common, range);
}

planc_status pl_regions_give(pl_regions *regions, int32_t owner, int64_t address, int64_t bytes) {
  bytes = pl_align_up(bytes > 0 ? bytes : 1, PLANC_ALIGNMENT);
  pl_range range = {address, address + bytes};
  if (regions->region_bytes == 0) {
    regions->held[owner] -= bytes;
    return pl_free_list_give(&regions->common, range);
  }
  PLANC_TRY(pl_free_list_give(&regions->owners[owner], range));
  count(regions, range, -1);
  for (int64_t r = range.start / regions->region_bytes; r * regions->region_bytes < range.end; r++)
    if (regions->used[r] == 0) PLANC_TRY(let_go(regions, owner, r));
  return NULL;
}
