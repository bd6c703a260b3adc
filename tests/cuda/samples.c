/* First contents (samples.h). */
#include "tests/cuda/samples.h"

#include <string.h>

#include "runtime/bf16.h"
#include "runtime/random.h"

/* Numbers between -1 and 1 in place of those between 0 and 1. */
static void spread(planc_dtype dtype, void *data, int64_t bytes) {
  if (!rt_is_real(dtype)) return;
  for (int64_t i = 0; i < bytes / planc_dtype_bytes(dtype); i++)
    rt_real_put(dtype, data, i, 2 * rt_real_at(dtype, data, i) - 1);
}

/* Biases, shifts and moments that start as zero would show little. */
static void fill_zeros(const planc_tensor *tensor, char *data, int64_t bytes) {
  if (!rt_is_real(tensor->dtype)) return;
  for (int64_t i = 0; i < bytes; i++)
    if (data[i]) return;
  uint64_t key = rt_key(0, tensor->name);
  for (int64_t i = 0; i < bytes / planc_dtype_bytes(tensor->dtype); i++)
    rt_real_put(tensor->dtype, data, i, 0.1F * rt_uniform(key, (uint64_t)i));
}

planc_status samples_fill(planrt_session *session, const int64_t *offsets, char *arena) {
  const planc_trace *trace = session->trace;
  for (int32_t b = 0; b < trace->n_buffers; b++) {
    const planc_buffer *buffer = &trace->buffers[b];
    const planc_graph *graph = trace->jobs[buffer->job].graph;
    const planc_tensor *tensor = &graph->tensors[graph->storages[buffer->storage].tensor];
    char *at = arena + offsets[b];
    memset(at, 0, (size_t)buffer->bytes);
    if (buffer->flags & PLANC_BUFFER_PERSISTENT) {
      memcpy(at, rt_home(session, 0, buffer->job, buffer->storage), (size_t)buffer->bytes);
      fill_zeros(tensor, at, buffer->bytes);
    }
    if (buffer->flags & PLANC_BUFFER_FED) {
      PLANC_TRY(rt_ask(rt_random_feed, session, trace, 0, b, 0, at));
      spread(tensor->dtype, at, buffer->bytes);
    }
  }
  return NULL;
}
