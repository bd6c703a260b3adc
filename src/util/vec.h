/* Growable arrays of plain data on the C heap. VEC(int32_t) ids = {0}; VEC_PUSH(&ids, 7); ... VEC_FREE(&ids). */
#ifndef PLANC_UTIL_VEC_H
#define PLANC_UTIL_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "planc/status.h"

#define VEC(type)     \
  struct {            \
    type *data;       \
    int64_t len, cap; \
  }

/* Makes room for `need` elements in the vector whose fields are given. */
planc_status pl_vec_grow(void **data, int64_t *cap, int64_t need, size_t element);

/* Evaluates to a status. */
#define VEC_RESERVE(vec, need) pl_vec_grow((void **)&(vec)->data, &(vec)->cap, (need), sizeof *(vec)->data)
/* Appends, or returns the failure from the calling function. */
#define VEC_PUSH(vec, value)                                                     \
  do {                                                                           \
    if ((vec)->len == (vec)->cap) PLANC_TRY(VEC_RESERVE((vec), (vec)->len + 1)); \
    (vec)->data[(vec)->len++] = (value);                                         \
  } while (0)
#define VEC_FREE(vec) (free((vec)->data), (vec)->data = NULL, (vec)->len = (vec)->cap = 0)

#endif
