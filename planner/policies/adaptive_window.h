/* Adaptive-window scheduling (papers: out-of-core, 3): functions, the variables that they use in order, and the steps
 * that the schedule consists of. It knows bytes and order only, neither graphs nor times nor addresses. */
#ifndef PLANC_POLICIES_ADAPTIVE_WINDOW_H
#define PLANC_POLICIES_ADAPTIVE_WINDOW_H

#include <stdbool.h>

#include "util/arena.h"
#include "util/vec.h"

/* One entry of the variable-sequence. A function has at most one per variable. */
typedef struct pl_window_use {
  int32_t variable;
  bool reads; /* needs what the variable held before; else its function only makes it */
  bool keeps; /* its content must survive: the variable's next use reads it, or the next iteration does */
} pl_window_use;

typedef struct pl_window_sequence {
  int32_t n_functions, n_variables;
  const int32_t *first_use; /* by function, and one more */
  const pl_window_use *uses;
  const int64_t *bytes; /* by variable */
} pl_window_sequence;

typedef enum pl_window_step_kind {
  PL_WINDOW_SWAP_IN,   /* takes memory and starts the copy in */
  PL_WINDOW_RESERVE,   /* takes memory for what the next function makes */
  PL_WINDOW_CALL,      /* runs a function */
  PL_WINDOW_SWAP_OUT,  /* starts the copy out; the memory stays taken */
  PL_WINDOW_CANCELLED, /* was a swap-out: the variable came back into the window before its completion */
  PL_WINDOW_COMPLETE,  /* waits for a swap-out and gives its memory back */
  PL_WINDOW_CLEAR      /* gives memory back without a copy: PRECLEAR */
} pl_window_step_kind;

typedef struct pl_window_step {
  pl_window_step_kind kind;
  int32_t use; /* index into the sequence's uses; call: the function; complete: the use that was swapped out after */
} pl_window_step;

typedef struct pl_schedule_window {
  int64_t budget_bytes; /* of all variables on the device, those on their way out included */
  int64_t window_bytes;
  bool per_occurrence; /* the window counts a variable each time it occurs (the paper's sum), not once */
} pl_schedule_window;

typedef VEC(pl_window_step) pl_window_steps;

/* The most bytes that one function uses: no smaller budget has a schedule. *out_function is the first such function. */
int64_t pl_window_least(const pl_window_sequence *sequence, int32_t *out_function);
/* Appends the schedule to `out`. INTERNAL for a budget below pl_window_least. Linear time. */
planc_status pl_window_schedule(const pl_window_sequence *sequence, const pl_schedule_window *window,
                                pl_window_steps *out);

#endif
