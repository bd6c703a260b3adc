/* The calls of one_call.h by every algorithm that the host has for them, each in memory of its own, against the plain
 * kernel. */
#ifndef PLANC_TESTS_RIVAL_H
#define PLANC_TESTS_RIVAL_H

#include "runtime/host/host_memory.h"
#include "tests/support/one_call.h"

enum { RIVAL_MAX_OPERANDS = 5, RIVAL_MAX_EFFECTS = 2 };

/* The same call as `one`'s by another algorithm, its operands and exact workspace apart from each other in one block
 * whose other bytes nothing may touch. */
typedef struct rival {
  rt_call call;
  rt_operand in[RIVAL_MAX_OPERANDS], out[RIVAL_MAX_OPERANDS], effects[RIVAL_MAX_EFFECTS];
  rt_block block;
} rival;

/* How far results may be off: sums of products by a share of the sum of the products' magnitudes, of the same element
 * or, where a transform mixes elements, of any; others by a share of the larger of 1 and the value. */
typedef enum rival_allowance { RIVAL_PRODUCTS, RIVAL_VALUES } rival_allowance;

/* Which algorithms ran, by name. */
typedef struct rival_seen {
  int direct, gemm, winograd, other, plain;
} rival_seen;

/* Runs every variant of `one`, with its inputs as they are, at four places, and holds it to the plain kernel; bit k of
 * `adds` lets result k be added to. Also: only results and exactly the stated workspace are touched, the bits are the
 * same everywhere and when two threads run it at once, and a workspace that is a byte too small is refused with both
 * numbers. */
void rival_compare(one_call *one, uint32_t adds, rival_allowance by, rival_seen *s);

/* The variants, which look neither at memory nor at what is added to. */
int32_t rival_variants(one_call *one, rt_variant *out);
/* What results and side effects hold before a run. */
void rival_set_results(one_call *one);
/* Runs a variant at four places, at two of them at once; what it computed stays in *r. The caller frees its block. */
void rival_run(const one_call *one, const rt_variant *variant, const rt_launch *launch, rival *r);
void rival_assert_same_bits(const rt_operand *a, const rt_operand *b, int32_t count);
/* By RIVAL_VALUES. */
void rival_assert_values(const rt_operand *got, const rt_operand *want, int32_t count);

#endif
