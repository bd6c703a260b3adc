/* What a rehearsal looks up (rehearsal.h), which is the same for every choice of ways. */
#ifndef PLANC_AUTO_REHEARSAL_TABLES_H
#define PLANC_AUTO_REHEARSAL_TABLES_H

#include "planner/auto/auto_gaps.h"

/* One of an op's algorithms. */
typedef struct pl_op_choice {
  int64_t workspace_bytes, ns;
} pl_op_choice;

typedef struct pl_rehearsal_tables {
  const pl_op_choice *choices; /* of a position: the fastest first, each with less workspace than the one before */
  const int32_t *first_choice; /* by position and one more */
  const int64_t *bytes;        /* by buffer, with alignment */
  const int32_t *writer;       /* by version: the instance that makes it, -1 = none */
  const bool *leaves;          /* by access: its buffer leaves until it is written next */
} pl_rehearsal_tables;

/* In memory of `arena`. */
planc_status pl_rehearsal_tables_make(const pl_auto_gaps *gaps, pl_arena *arena, pl_rehearsal_tables *out);

#endif
