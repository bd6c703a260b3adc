/* The plug-in's door: its backend, for a planrun of the same version. */
#include <string.h>

#include "planc/version.h"
#include "runtime/cuda/cuda.h"

static char *arena(const planrt_device *device) {
  return device->arena;
}
static char *host_arena(const planrt_device *device) {
  return device->host_arena;
}

static const planrt_backend backend = {
    .name = "cuda",
    .info = planrt_cuda_info,
    .properties = planrt_cudnn_properties,
    .open = planrt_cuda_open,
    .close = planrt_cuda_close,
    .queues = planrt_cuda_queues,
    .maps = true,
    .arena = arena,
    .host_arena = host_arena,
    .memory = planrt_cuda_memory,
    .context_bytes = planrt_cuda_context_bytes,
    .pin = planrt_cuda_pin,
    .taken = planrt_cuda_taken,
    .variants = planrt_cuda_variants,
    .workspace = planrt_cuda_workspace,
    .slow_workspace = planrt_cuda_slow_workspace,
    .prepare = planrt_cuda_prepare,
    .launch = planrt_cuda_run,
    .copy = planrt_cuda_copy,
    .host = planrt_cuda_host,
    .digest = planrt_cuda_digest_call,
    .poison = planrt_cuda_poison,
    .record = planrt_cuda_record,
    .wait = planrt_cuda_wait,
    .reached = planrt_cuda_reached,
    .forget = planrt_cuda_forget,
    .capture = planrt_cuda_capture_begin,
    .captured = planrt_cuda_capture_end,
    .replay = planrt_cuda_replay,
    .synchronize = planrt_cuda_synchronize,
};

__attribute__((visibility("default"))) const planrt_backend *planrt_plugin(int32_t backend_version,
                                                                           const char *planc_version);

const planrt_backend *planrt_plugin(int32_t backend_version, const char *planc_version) {
  bool fits = backend_version == PLANRT_BACKEND_VERSION && strcmp(planc_version, PLANC_VERSION) == 0;
  return fits ? &backend : NULL;
}
