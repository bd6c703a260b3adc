/* What every plan of an order must do, whatever it decides beside: what a bound on its time is taken of (bound.h).
 *
 * The period is a circle of slots: slot 2k is the op at position k, slot 2k + 1 the time behind it in which compute
 * waits or computes again, up to the op at position k + 1. Positions and slots beyond the order's end are of the next
 * period.
 *
 * An op has its operands on the device and the workspace of one of its algorithms. A version stays on the device
 * through a gap between two uses, or is away for a part of it: copied in from the host again, and for that once copied
 * out, at any time from when it was written; or computed again by the op that wrote it. Of what that reads, what has a
 * use behind the gap's beginning is taken to be at hand. What has none has had to stay on from there, or comes from the
 * host, which has it if it was copied out in time, or is computed again itself, from what may be gone as well. What
 * persists and is only written by the next period may be dropped behind its last use. What the user feeds comes in,
 * what he gets goes out, once in every period; where there is storage he may get it from there. Where the user rules
 * out swaps only what he feeds is copied in again, and where recomputes, nothing runs again: what can neither be copied
 * nor run again stays. */
#ifndef PLANC_BOUND_MODEL_H
#define PLANC_BOUND_MODEL_H

#include "planc/candidate.h"
#include "util/arena.h"
#include "util/math.h"

typedef struct pl_bound_op {
  int64_t operand_bytes;         /* with what must stay through it */
  const planc_variant *variants; /* borrowed from the costs */
  int32_t n_variants;
  planc_variant own; /* of an op that has none there: it is the only one */
} pl_bound_op;

/* What an op that runs again in a gap reads, and no op of the order does any more. */
typedef struct pl_bound_input {
  int32_t buffer, version;
  int64_t bytes;
  int64_t again_ns;              /* as of a gap */
  bool may_leave;                /* it may be copied out and in */
  int32_t n_readers;             /* one stay, copy or run of it may serve them all: each is charged with a part */
  int32_t first_input, n_inputs; /* of its writer */
  int32_t
      sent_from;    /* of what a gap's own writer reads: from behind the op at this position on it is copied out, if it
                       is copied in. -1 = that is not charged here: the host has it, or a gap of its own may be charged */
  int32_t n_askers; /* such inputs of all gaps that are this version: one copy out may serve them all */
} pl_bound_input;

typedef struct pl_bound_gap {
  int32_t from, to; /* positions of the uses, from < to: `to` may be of the next period */
  int32_t version;  /* that survives it, of its buffer in its period */
  bool comes_back;  /* the second use reads it; else it may be away from the first on, and nothing is charged */
  int64_t again_ns; /* of running its writer again, -1 = that is not allowed; of an op that writes several buffers, one
                       is charged with all and the others with none */
  int32_t first_input, n_inputs; /* of its writer, where it is charged with that */
} pl_bound_gap;

typedef struct pl_bound_version {
  int64_t bytes;
  int32_t buffer, written;   /* the position that wrote it; what was not written in the period has none and is on the
                                host */
  bool on_host;              /* it need not be copied out */
  bool may_leave;            /* it may be copied out and in, and not only run again */
  int32_t first_gap, n_gaps; /* in time order; the first is not before `written` */
} pl_bound_version;

/* A copy that every plan makes, between two uses or what is one: in, to be there at `to`, or out, from `from` on. */
typedef struct pl_bound_copy {
  int64_t bytes;
  int32_t from, to;
} pl_bound_copy;

typedef struct pl_bound_model {
  int32_t n; /* positions */
  const pl_bound_op *ops;
  int32_t n_versions, n_gaps, n_fed, n_results;
  const pl_bound_version *versions;
  const pl_bound_gap *gaps;
  const pl_bound_input *inputs;
  const pl_bound_copy *fed, *results;
  planc_device device;
} pl_bound_model;

/* Of a candidate's order and costs, and of what the user rules out; `stores`: whether there is storage. `arena` has the
 * model, which borrows the costs. */
planc_status pl_bound_model_make(const planc_candidate *candidate, const planc_settings *asked, bool stores,
                                 pl_arena *arena, pl_bound_model *out);

/* What an op takes by itself, with the least workspace. */
int64_t pl_bound_op_bytes(const pl_bound_op *op);
/* By its fastest algorithm. */
static inline int64_t pl_bound_op_ns(const pl_bound_op *op) {
  int64_t ns = op->n_variants > 0 ? INT64_MAX : 0;
  for (int32_t v = 0; v < op->n_variants; v++) ns = pl_min(ns, op->variants[v].time_ns);
  return ns;
}
/* The bytes beside what is reserved without which no plan exists, and the position that needs them. */
int64_t pl_bound_least_bytes(const pl_bound_model *model, int32_t *out_position);

#endif
