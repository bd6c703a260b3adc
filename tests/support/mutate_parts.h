/* What the files of mutate.h share: the mutant being made, and other numbers for its own. */
#ifndef PLANC_TESTS_MUTATE_PARTS_H
#define PLANC_TESTS_MUTATE_PARTS_H

#include "plan/owned.h"
#include "tests/support/mutate.h"
#include "tests/support/randgraph.h"
#include "util/vec.h"

/* An instruction that carries its uses with it wherever it goes. */
typedef struct loose_instr {
  planc_instr instr;
  int32_t n_uses;
  const int32_t *uses;
} loose_instr;

typedef VEC(loose_instr) loose_section;

typedef struct mutation {
  uint64_t random;
  planc_plan *plan; /* the mutant */
  loose_section sections[3];
  char *description;
  size_t size;
} mutation;

static inline pl_arena *arena_of(mutation *m) {
  return &m->plan->owned->arena;
}

static inline int64_t below(mutation *m, int64_t n) {
  return rand_below(&m->random, n);
}

static inline int32_t other_id(mutation *m, int32_t id, int32_t n) {
  return below(m, 2) ? id + (below(m, 2) ? 1 : -1) : (int32_t)below(m, (int64_t)n + 1);
}

/* An address or size near the old one, of an instruction of the section, or out of all bounds. */
static inline int64_t other_number(mutation *m, int64_t number, const loose_section *section) {
  static const int64_t steps[] = {-256, 256, -512, 512, -1, 1, -4, 4, INT64_C(1) << 40};
  const planc_instr *other = section->len ? &section->data[below(m, section->len)].instr : NULL;
  switch (below(m, 3)) {
    case 0:
      return number + steps[below(m, sizeof steps / sizeof *steps)];
    case 1:
      return !other ? 0 : below(m, 2) ? other->address : other->bytes;
    default:
      return number / 512 * 256;
  }
}

/* One change of what stands before the instructions: tables and counts. */
planc_status mutate_tables(mutation *m);

#endif
