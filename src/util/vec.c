/* Growing arrays (vec.h). */
#include "util/vec.h"

planc_status pl_vec_grow(void **data, int64_t *cap, int64_t need, size_t element) {
  if (need <= *cap) return NULL;
  int64_t larger = *cap < 8 ? 8 : *cap > INT64_MAX / 2 ? need : *cap * 2;
  if (larger < need) larger = need;
  size_t bytes;
  if (__builtin_mul_overflow((size_t)larger, element, &bytes)) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  void *moved = realloc(*data, bytes);
  if (!moved) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  *data = moved;
  *cap = larger;
  return NULL;
}
