/* The plug-in's door: its backend, for a planrun of the same version. */
#include <string.h>

#include "planc/version.h"
#include "runtime/cuda/cuda.h"

__attribute__((visibility("default"))) const planrt_backend *planrt_plugin(int32_t backend_version,
                                                                           const char *version_of_planc);

static char *arena(const rt_device *device);
static char *host_arena(const rt_device *device);

static const planrt_backend backend = {
    .name = "cuda",
    .info = rt_cuda_info,
    .properties = rt_cudnn_properties,
    .open = rt_cuda_open,
    .close = rt_cuda_close,
    .queues = rt_cuda_queues,
    .beside = true,
    .maps = true,
    .arena = arena,
    .host_arena = host_arena,
    .memory = rt_cuda_memory,
    .context_bytes = rt_cuda_context_bytes,
    .pin = rt_cuda_pin,
    .taken = rt_cuda_taken,
    .variants = rt_cuda_variants,
    .workspace = rt_cuda_workspace,
    .slow_workspace = rt_cuda_slow_workspace,
    .prepare = rt_cuda_prepare,
    .launch = rt_cuda_run,
    .copy = rt_cuda_copy,
    .host = rt_cuda_host,
    .digest = rt_cuda_digest_call,
    .poison = rt_cuda_poison,
    .record = rt_cuda_record,
    .wait = rt_cuda_wait,
    .reached = rt_cuda_reached,
    .forget = rt_cuda_forget,
    .capture = rt_cuda_capture_begin,
    .captured = rt_cuda_capture_end,
    .replay = rt_cuda_replay,
    .synchronize = rt_cuda_synchronize,
};

const planrt_backend *planrt_plugin(int32_t backend_version, const char *version_of_planc) {
  bool fits = backend_version == RT_BACKEND_VERSION && strcmp(version_of_planc, PLANC_VERSION) == 0;
  return fits ? &backend : NULL;
}

static char *arena(const rt_device *device) {
  return device->arena;
}
static char *host_arena(const rt_device *device) {
  return device->host_arena;
}
