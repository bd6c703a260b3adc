/* bf16 operands for kernels that take f32: before the kernel they are widened into memory beside them, after it the
 * results are rounded back, each element once. A result in place is so in f32, too.
 *
 * The memory is the first part of the call's workspace, where the plan provides it; a plan that was made for another
 * device has none for this, and then it is the device's own. */
#ifndef PLANRT_HOST_WIDEN_H
#define PLANRT_HOST_WIDEN_H

#include <pthread.h>

#include "runtime/backend.h"
#include "runtime/host/host_memory.h"

typedef struct planrt_widened planrt_widened;

/* Memory of a device for calls without a workspace of their own: as large as the largest needs, one call at a time. */
typedef struct planrt_spare {
  pthread_mutex_t lock;
  planrt_block block;
} planrt_spare;

void planrt_spare_open(planrt_spare *out);
void planrt_spare_close(planrt_spare *spare);

/* Makes *out, which is NULL when the call has no bf16 operand. The call is borrowed. */
planc_status planrt_widen(const planrt_call *call, planrt_widened **out);
void planrt_widened_free(planrt_widened *widened);
/* The call on widened operands: its workspace is what is left of the given call's. */
planrt_call *planrt_widened_call(planrt_widened *widened);
/* What the given call needs in all when the widened one needs `bytes`. */
int64_t planrt_widened_workspace(const planrt_widened *widened, int64_t bytes);
/* Puts the operands into the given call's workspace, or, where that is too small, into `spare`; *out_fits says which.
 */
planc_status planrt_widened_bind(planrt_widened *widened, const planrt_call *call, planrt_spare *spare, bool *out_fits);

/* Around a run of the widened call, by the same thread. */
void planrt_widened_begin(planrt_widened *widened);
void planrt_widened_end(planrt_widened *widened);

#endif
