/* Adaptive-window scheduling (papers: out-of-core, 3): instances, the buffers that they use in order, and the steps
 * that the schedule consists of. The paper's functions are instances, its variables buffers, and a workspace is a
 * buffer that one instance uses. It knows bytes and order only, neither graphs nor times nor addresses. */
#ifndef PLANC_POLICIES_ADAPTIVE_WINDOW_H
#define PLANC_POLICIES_ADAPTIVE_WINDOW_H

#include <stdbool.h>

#include "util/arena.h"
#include "util/vec.h"

/* That an instance uses a buffer. The list of all uses, instance by instance in the order in which they run, is the
 * paper's variable-sequence; an instance has at most one per buffer. */
typedef struct pl_window_use {
  int32_t buffer;
  bool reads; /* needs what the buffer held before; else its instance only makes it */
  bool keeps; /* its content must survive: the buffer's next use reads it, or the next iteration does */
} pl_window_use;

typedef struct pl_window_sequence {
  int32_t n_instances, n_buffers;
  const int32_t *first_use; /* by instance, and one more */
  const pl_window_use *uses;
  const int64_t *bytes; /* by buffer */
} pl_window_sequence;

typedef enum pl_window_step_kind {
  PL_WINDOW_SWAP_IN,   /* takes memory and starts the copy in */
  PL_WINDOW_RESERVE,   /* takes memory for what the next instance makes */
  PL_WINDOW_RUN,       /* runs an instance */
  PL_WINDOW_SWAP_OUT,  /* starts the copy out; the memory stays taken */
  PL_WINDOW_CANCELLED, /* was a swap-out: the buffer came back into the window before its completion */
  PL_WINDOW_COMPLETE,  /* waits for a swap-out and gives its memory back */
  PL_WINDOW_CLEAR      /* gives memory back without a copy: PRECLEAR */
} pl_window_step_kind;

typedef struct pl_window_step {
  pl_window_step_kind kind;
  int32_t use; /* index into the sequence's uses; run: the instance; complete: the use that was swapped out after */
} pl_window_step;

typedef struct pl_schedule_window {
  int64_t budget_bytes; /* of all buffers on the device, those on their way out included */
  int64_t window_bytes;
  bool per_occurrence; /* the window counts a buffer each time it occurs (the paper's sum), not once */
} pl_schedule_window;

typedef VEC(pl_window_step) pl_window_steps;

/* The most bytes that one instance uses: no smaller budget has a schedule. *out_instance is the first such instance. */
int64_t pl_window_least(const pl_window_sequence *sequence, int32_t *out_instance);
/* Appends the schedule to `out`. INTERNAL for a budget below pl_window_least. Linear time. */
planc_status pl_window_schedule(const pl_window_sequence *sequence, const pl_schedule_window *window,
                                pl_window_steps *out);

#endif
