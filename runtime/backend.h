/* The backend interface: what the interpreter needs of a device. One table of functions per kind of device.
 *
 * Work on one stream runs in the order it was enqueued; across streams only `wait` orders. Functions that enqueue
 * return once the work is enqueued and its arguments are read; a backend with one thread performs it at once. */
#ifndef PLANRT_BACKEND_H
#define PLANRT_BACKEND_H

#include "runtime/call.h"

typedef struct planrt_device planrt_device;

typedef struct planrt_device_options {
  int64_t arena_bytes, host_arena_bytes; /* allocated exactly; first byte at a multiple of PLANRT_ALIGNMENT */
  int32_t n_streams, n_events;
  bool synthetic; /* `prepare` gives stand-ins for all ops */
} planrt_device_options;

enum { PLANRT_ALIGNMENT = 256 };

typedef struct planrt_backend {
  const char *name;
  planc_status (*open)(const planrt_device_options *options, planrt_device **out);
  void (*close)(planrt_device *device);
  /* First byte of device memory, and of the host memory that copies go to. */
  char *(*arena)(const planrt_device *device);
  char *(*host_arena)(const planrt_device *device);

  /* Finds how to run a call with its algorithm and sets its handle, which lives as long as the device. DEVICE when the
   * backend cannot run it. */
  planc_status (*prepare)(planrt_device *device, planrt_call *call);
  planc_status (*launch)(planrt_device *device, int32_t stream, const planrt_call *call, const planrt_launch *launch);
  /* Copies between, or within, device memory, host memory and the user's. */
  planc_status (*copy)(planrt_device *device, int32_t stream, void *to, const void *from, int64_t bytes);
  /* Fills with NaNs of every float type. */
  planc_status (*poison)(planrt_device *device, void *to, int64_t bytes);

  /* Events count generations: generation b is the record of body b, -1 the prologue's. `forget` makes all unrecorded.
   */
  planc_status (*record)(planrt_device *device, int32_t stream, int32_t event, int64_t generation);
  /* Makes the stream wait until the event has reached `generation`. Where nothing can reach it any more (one thread,
   * not yet recorded) the status is INVALID_PLAN. */
  planc_status (*wait)(planrt_device *device, int32_t stream, int32_t event, int64_t generation);
  bool (*reached)(const planrt_device *device, int32_t event, int64_t generation);
  void (*forget)(planrt_device *device);
} planrt_backend;

extern const planrt_backend planrt_host_backend;

#endif
