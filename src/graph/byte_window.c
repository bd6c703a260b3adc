/* Sets of byte windows with ends that are laws in the batch size (window.h). */
#include "graph/byte_window.h"

planc_window planc_window_of(const planc_tensor *tensor) {
  planc_law end = {planc_add_saturate(tensor->offset.fixed, tensor->bytes.fixed),
                   planc_add_saturate(tensor->offset.per_sample, tensor->bytes.per_sample)};
  return (planc_window){tensor->offset, end};
}

bool planc_window_equal(planc_window a, planc_window b) {
  return planc_law_equal(a.begin, b.begin) && planc_law_equal(a.end, b.end);
}

bool planc_window_disjoint(planc_window a, planc_window b) {
  return planc_law_at_most(a.end, b.begin) || planc_law_at_most(b.end, a.begin);
}

bool planc_window_covers(planc_window a, planc_window b) {
  return planc_law_at_most(a.begin, b.begin) && planc_law_at_most(b.end, a.end);
}

bool planc_windows_touch(const planc_windows *set, planc_window window) {
  for (int64_t i = 0; i < set->len; i++)
    if (!planc_window_disjoint(set->data[i], window)) return true;
  return false;
}

bool planc_windows_cover(const planc_windows *set, planc_window window) {
  for (int64_t i = 0; i < set->len; i++)
    if (planc_window_covers(set->data[i], window)) return true;
  return false;
}

planc_status planc_windows_add(planc_windows *set, planc_window window) {
  if (planc_windows_cover(set, window)) return NULL;
  for (int64_t i = set->len; i-- > 0;) {
    planc_window other = set->data[i];
    if (planc_law_equal(other.end, window.begin)) {
      window.begin = other.begin;
    } else if (planc_law_equal(other.begin, window.end)) {
      window.end = other.end;
    } else if (!planc_window_covers(window, other)) {
      continue;
    }
    set->data[i] = set->data[--set->len];
  }
  VEC_PUSH(set, window);
  return NULL;
}

planc_status planc_windows_remove(planc_windows *set, planc_window window) {
  for (int64_t i = set->len; i-- > 0;) {
    planc_window other = set->data[i];
    if (planc_window_disjoint(other, window)) continue;
    bool split = planc_window_covers(other, window);
    if (!split && !planc_window_covers(window, other)) continue;
    set->data[i] = set->data[--set->len];
    if (!split) continue;
    planc_window before = {other.begin, window.begin}, after = {window.end, other.end};
    if (!planc_law_equal(before.begin, before.end)) VEC_PUSH(set, before);
    if (!planc_law_equal(after.begin, after.end)) VEC_PUSH(set, after);
  }
  return NULL;
}
