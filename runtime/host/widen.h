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

typedef struct rt_widened rt_widened;

/* Memory of a device for calls without a workspace of their own: as large as the largest needs, one call at a time. */
typedef struct rt_spare {
  pthread_mutex_t lock;
  rt_block block;
} rt_spare;

void rt_spare_open(rt_spare *out);
void rt_spare_close(rt_spare *spare);

/* Makes *out, which is NULL when the call has no bf16 operand. The call is borrowed. */
planc_status rt_widen(const rt_call *call, rt_widened **out);
void rt_widened_free(rt_widened *widened);
/* The call on widened operands: its workspace is what is left of the given call's. */
rt_call *rt_widened_call(rt_widened *widened);
/* What the given call needs in all when the widened one needs `bytes`. */
int64_t rt_widened_workspace(const rt_widened *widened, int64_t bytes);
/* Puts the operands into the given call's workspace, or, where that is too small, into `spare`; *out_fits says which.
 */
planc_status rt_widened_bind(rt_widened *widened, const rt_call *call, rt_spare *spare, bool *out_fits);

/* Around a run of the widened call, by the same thread. */
void rt_widened_begin(rt_widened *widened);
void rt_widened_end(rt_widened *widened);

#endif
