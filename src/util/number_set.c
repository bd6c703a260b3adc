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

void pl_number_set_add(pl_number_set *set, int32_t number) {
  for (int32_t level = 0; level < set->n_levels; level++, number >>= 6) {
    uint64_t *word = &set->words[level][number >> 6];
    bool was_empty = *word == 0;
    *word |= UINT64_C(1) << (number & 63);
    if (!was_empty) return;
  }
}

void pl_number_set_remove(pl_number_set *set, int32_t number) {
  for (int32_t level = 0; level < set->n_levels; level++, number >>= 6) {
    uint64_t *word = &set->words[level][number >> 6];
    *word &= ~(UINT64_C(1) << (number & 63));
    if (*word) return;
  }
}

void pl_number_set_put(pl_number_set *set, int32_t number, bool is_member) {
  if (is_member) {
    pl_number_set_add(set, number);
  } else {
    pl_number_set_remove(set, number);
  }
}

/* Climbs until a word has a member on the wanted side, then goes down to the nearest number in it. */
int32_t pl_number_set_below(const pl_number_set *set, int32_t number) {
  for (int32_t level = 0; level < set->n_levels; level++) {
    uint64_t bits = set->words[level][number >> 6] & (~UINT64_C(0) >> (63 - (number & 63)));
    if (bits) {
      number = (number & ~63) + 63 - __builtin_clzll(bits);
      while (level-- > 0) number = number * 64 + 63 - __builtin_clzll(set->words[level][number]);
      return number;
    }
    number = (number >> 6) - 1;
    if (number < 0) return -1;
  }
  return -1;
}

int32_t pl_number_set_above(const pl_number_set *set, int32_t number) {
  for (int32_t level = 0; level < set->n_levels; level++) {
    uint64_t bits = set->words[level][number >> 6] & (~UINT64_C(0) << (number & 63));
    if (bits) {
      number = (number & ~63) + __builtin_ctzll(bits);
      while (level-- > 0) number = number * 64 + __builtin_ctzll(set->words[level][number]);
      return number;
    }
    number = (number >> 6) + 1;
    if (level + 1 == set->n_levels) return -1;
  }
  return -1;
}
