/* Where input samples come from: requests to the user's feed, and the default one. */
#include <string.h>

#include "runtime/bf16.h"
#include "runtime/random.h"
#include "runtime/session.h"

planc_status rt_ask(planrt_feed feed, void *user, const planc_trace *trace, int32_t replica, int32_t buffer,
                    int64_t first, void *out) {
  const planc_buffer *fed = &trace->buffers[buffer];
  const planc_job *job = &trace->jobs[fed->job];
  planrt_feed_request request = {.job = fed->job,
                                 .storage = fed->storage,
                                 .iteration = first + rt_within_period(fed),
                                 .offset = replica * job->batch,
                                 .count = job->batch,
                                 .out = out,
                                 .bytes = fed->bytes};
  if (fed->round >= 0) {
    request.count = job->rounds[fed->round];
    for (int32_t r = 0; r < fed->round; r++) request.offset += job->rounds[r];
  }
  return planc_context(feed(user, &request), "input %s, iteration %lld", planc_trace_buffer_name(trace, buffer),
                       (long long)request.iteration);
}

/* f32 and bf16 are uniform in [0, 1), labels are below their number of classes, all else is random bytes. */
planc_status planrt_feed_random(const planrt_session *session, const planrt_feed_request *request) {
  const planc_job *job = &session->trace->jobs[request->job];
  session->has_random[request->job] = true;
  const planc_tensor *tensor = &job->graph->tensors[job->graph->storages[request->storage].tensor];
  int64_t classes = session->classes[session->home_of[request->job] + request->storage];
  int64_t size = planc_dtype_bytes(tensor->dtype), elements = request->bytes / size;
  uint64_t key = rt_key(session->options.seed + (uint64_t)session->numbers[request->job], tensor->name);
  bool of_samples = tensor->bytes.per_sample > 0;
  int64_t first = of_samples ? request->iteration * planc_job_whole_batch(job) + request->offset : request->iteration;
  int64_t each = of_samples && request->count > 0 ? elements / request->count : elements;
  uint64_t counter = (uint64_t)(first * each);

  char *out = request->out;
  for (int64_t i = 0; i < elements; i++, counter++, out += size) {
    uint64_t bits = rt_random(key, counter);
    if (rt_is_real(tensor->dtype))
      rt_real_put(tensor->dtype, out, 0, rt_uniform(key, counter));
    else if (tensor->dtype == PLANC_DTYPE_i64 && classes > 0)
      memcpy(out, &(int64_t){(int64_t)(bits % (uint64_t)classes)}, sizeof(int64_t));
    else
      memcpy(out, &bits, (size_t)size);
  }
  return NULL;
}

planc_status rt_random_feed(void *user, const planrt_feed_request *request) {
  return planrt_feed_random(user, request);
}
