/* The host backend with one thread: arenas of exactly the plan's sizes, work done as it is enqueued. */
#include <stdlib.h>
#include <string.h>

#include "runtime/backend.h"
#include "runtime/host/kernels.h"

enum { UNRECORDED = -2 };

struct planrt_device {
  planrt_device_options options;
  char *arena, *host_arena;
  int64_t *generations; /* by event: of its last record */
};

/* --- Memory --------------------------------------------------------------------------------------------------- */

static void forget(planrt_device *device) {
  for (int32_t e = 0; e < device->options.n_events; e++) device->generations[e] = UNRECORDED;
}

static void close_device(planrt_device *device) {
  free(device->arena);
  free(device->host_arena);
  free(device->generations);
  free(device);
}

static planc_status allocate(int64_t bytes, const char *what, char **out) {
  void *memory;
  if (posix_memalign(&memory, PLANRT_ALIGNMENT, bytes > 0 ? (size_t)bytes : 1) != 0)
    return planc_error(PLANC_DEVICE, "host: no memory for %s of %lld bytes", what, (long long)bytes);
  *out = memory;
  return NULL;
}

static planc_status fill_device(planrt_device *device) {
  PLANC_TRY(allocate(device->options.arena_bytes, "an arena", &device->arena));
  PLANC_TRY(allocate(device->options.host_arena_bytes, "a host arena", &device->host_arena));
  device->generations = calloc((size_t)device->options.n_events + 1, sizeof *device->generations);
  if (!device->generations) return planc_error(PLANC_OUT_OF_MEMORY, "events");
  forget(device);
  return NULL;
}

static planc_status open_device(const planrt_device_options *options, planrt_device **out) {
  planrt_device *device = calloc(1, sizeof *device);
  if (!device) return planc_error(PLANC_OUT_OF_MEMORY, "host device");
  device->options = *options;
  planc_status status = fill_device(device);
  if (status)
    close_device(device);
  else
    *out = device;
  return status;
}

static char *arena(const planrt_device *device) {
  return device->arena;
}
static char *host_arena(const planrt_device *device) {
  return device->host_arena;
}

/* --- Ops ------------------------------------------------------------------------------------------------------ */

static bool has_dtypes(const planrt_operand *operands, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (operands[i].dtype != PLANC_DTYPE_f32 && operands[i].dtype != PLANC_DTYPE_i64) return false;
  return true;
}

/* A handle is a planrt_kernel. Every algorithm of a convolution is the same direct sum here. */
static planc_status prepare(planrt_device *device, planrt_call *call) {
  const planrt_kernel *kernel = &planrt_accumulate_kernel;
  if (device->options.synthetic)
    kernel = &planrt_synthetic_kernel;
  else if (call->role == PLANC_ROLE_OP)
    kernel = planrt_kernel_find(call->op->type);
  call->handle = kernel;
  if (!kernel) return planc_error(PLANC_DEVICE, "the host has no kernel for %s", call->op->type);
  if (kernel == &planrt_synthetic_kernel || (has_dtypes(call->in, call->n_in) && has_dtypes(call->out, call->n_out) &&
                                             has_dtypes(call->effects, call->n_effects)))
    return NULL;
  return planc_error(PLANC_DEVICE, "the host has a kernel for %s in f32 only", call->op->type);
}

static planc_status launch(planrt_device *device, int32_t stream, const planrt_call *call, const planrt_launch *how) {
  (void)device, (void)stream;
  ((const planrt_kernel *)call->handle)->run(call, how);
  return NULL;
}

static planc_status copy(planrt_device *device, int32_t stream, void *to, const void *from, int64_t bytes) {
  (void)device, (void)stream;
  if (bytes > 0) memmove(to, from, (size_t)bytes);
  return NULL;
}

static planc_status poison(planrt_device *device, void *to, int64_t bytes) {
  (void)device;
  if (bytes > 0) memset(to, 0xff, (size_t)bytes);
  return NULL;
}

/* --- Events --------------------------------------------------------------------------------------------------- */

static planc_status record(planrt_device *device, int32_t stream, int32_t event, int64_t generation) {
  (void)stream;
  device->generations[event] = generation;
  return NULL;
}

static bool reached(const planrt_device *device, int32_t event, int64_t generation) {
  return device->generations[event] >= generation;
}

static planc_status await(planrt_device *device, int32_t stream, int32_t event, int64_t generation) {
  if (reached(device, event, generation)) return NULL;
  return planc_error(PLANC_INVALID_PLAN, "stream %d waits for event %d before it is recorded", stream, event);
}

const planrt_backend planrt_host_backend = {
    .name = "host",
    .open = open_device,
    .close = close_device,
    .arena = arena,
    .host_arena = host_arena,
    .prepare = prepare,
    .launch = launch,
    .copy = copy,
    .poison = poison,
    .record = record,
    .wait = await,
    .reached = reached,
    .forget = forget,
};
