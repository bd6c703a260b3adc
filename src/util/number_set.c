/* A set of numbers (number_set.h). */
#include "util/number_set.h"

planc_status pl_number_set_make(pl_arena *arena, int32_t bound, pl_number_set *out) {
  *out = (pl_number_set){0};
  int64_t bits = bound;
  do {
    /* One word more than is needed, so that asking at the bound stays inside. */
    int64_t words = bits / 64 + 1;
    PLANC_TRY(PL_NEW(arena, &out->words[out->n_levels], words));
    out->n_levels++;
    bits = words;
  } while (bits > 1);
  return NULL;
}

void pl_number_set_mark(pl_number_set *set, int32_t word) {
  for (int32_t level = 1; level < set->n_levels; level++, word >>= 6) {
    uint64_t *above = &set->words[level][word >> 6];
    bool was_empty = *above == 0;
    *above |= UINT64_C(1) << (word & 63);
    if (!was_empty) return;
  }
}

void pl_number_set_unmark(pl_number_set *set, int32_t word) {
  for (int32_t level = 1; level < set->n_levels; level++, word >>= 6) {
    uint64_t *above = &set->words[level][word >> 6];
    *above &= ~(UINT64_C(1) << (word & 63));
    if (*above) return;
  }
}

/* The greatest member in the words before this one. Climbs until a word has a member there, then goes down to the
 * nearest number in it. */
int32_t pl_number_set_before(const pl_number_set *set, int32_t word) {
  for (int32_t level = 1; level < set->n_levels && word > 0; level++) {
    int32_t at = word - 1;
    uint64_t bits = set->words[level][at >> 6] & (~UINT64_C(0) >> (63 - (at & 63)));
    if (bits) {
      at = (at & ~63) + 63 - __builtin_clzll(bits);
      while (level-- > 0) at = at * 64 + 63 - __builtin_clzll(set->words[level][at]);
      return at;
    }
    word = at >> 6;
  }
  return -1;
}

/* The least member in the words behind this one. */
int32_t pl_number_set_behind(const pl_number_set *set, int32_t word) {
  for (int32_t level = 1; level < set->n_levels; level++) {
    int32_t at = word + 1;
    uint64_t bits = set->words[level][at >> 6] & (~UINT64_C(0) << (at & 63));
    if (bits) {
      at = (at & ~63) + __builtin_ctzll(bits);
      while (level-- > 0) at = at * 64 + __builtin_ctzll(set->words[level][at]);
      return at;
    }
    word = at >> 6;
  }
  return -1;
}
