/* Byte ranges and sets of them (byte_range.h). */
#include "graph/byte_range.h"

pl_byte_range pl_byte_range_of(const planc_tensor *tensor) {
  planc_law end = {pl_add_saturate(tensor->offset.fixed, tensor->bytes.fixed),
                   pl_add_saturate(tensor->offset.per_sample, tensor->bytes.per_sample)};
  return (pl_byte_range){tensor->offset, end};
}

bool pl_byte_range_equal(pl_byte_range a, pl_byte_range b) {
  return pl_law_equal(a.begin, b.begin) && pl_law_equal(a.end, b.end);
}

bool pl_byte_range_disjoint(pl_byte_range a, pl_byte_range b) {
  return pl_law_at_most(a.end, b.begin) || pl_law_at_most(b.end, a.begin);
}

bool pl_byte_range_covers(pl_byte_range a, pl_byte_range b) {
  return pl_law_at_most(a.begin, b.begin) && pl_law_at_most(b.end, a.end);
}

bool pl_byte_ranges_touch(const pl_byte_ranges *set, pl_byte_range range) {
  for (int64_t i = 0; i < set->len; i++)
    if (!pl_byte_range_disjoint(set->data[i], range)) return true;
  return false;
}

bool pl_byte_ranges_cover(const pl_byte_ranges *set, pl_byte_range range) {
  for (int64_t i = 0; i < set->len; i++)
    if (pl_byte_range_covers(set->data[i], range)) return true;
  return false;
}

planc_status pl_byte_ranges_add(pl_byte_ranges *set, pl_byte_range range) {
  if (pl_byte_ranges_cover(set, range)) return NULL;
  for (int64_t i = set->len; i-- > 0;) {
    pl_byte_range other = set->data[i];
    if (pl_law_equal(other.end, range.begin)) {
      range.begin = other.begin;
    } else if (pl_law_equal(other.begin, range.end)) {
      range.end = other.end;
    } else if (!pl_byte_range_covers(range, other)) {
      continue;
    }
    set->data[i] = set->data[--set->len];
  }
  VEC_PUSH(set, range);
  return NULL;
}

planc_status pl_byte_ranges_remove(pl_byte_ranges *set, pl_byte_range range) {
  for (int64_t i = set->len; i-- > 0;) {
    pl_byte_range other = set->data[i];
    if (pl_byte_range_disjoint(other, range)) continue;
    bool split = pl_byte_range_covers(other, range);
    if (!split && !pl_byte_range_covers(range, other)) continue;
    set->data[i] = set->data[--set->len];
    if (!split) continue;
    pl_byte_range before = {other.begin, range.begin}, after = {range.end, other.end};
    if (!pl_law_equal(before.begin, before.end)) VEC_PUSH(set, before);
    if (!pl_law_equal(after.begin, after.end)) VEC_PUSH(set, after);
  }
  return NULL;
}
