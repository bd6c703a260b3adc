/* The backend interface: what the interpreter needs of a device. One table of functions per kind of device.
 *
 * Work on one stream runs in the order it was enqueued; across streams only `wait` orders. Functions that enqueue
 * return once the work is enqueued and its arguments are read; what they point to must live until the device is
 * synchronised. A device opened without `concurrent` performs work as it is enqueued.
 *
 * Work that fails while it runs aborts the device: what is enqueued and has not begun is dropped, and `synchronize`
 * gives the first failure, once. */
#ifndef PLANRT_BACKEND_H
#define PLANRT_BACKEND_H

#include "runtime/call.h"

typedef struct planrt_device planrt_device;

typedef struct planrt_device_options {
  int64_t arena_bytes, host_arena_bytes; /* allocated exactly; first byte at a multiple of PLANRT_ALIGNMENT */
  int32_t n_streams, n_events;
  bool concurrent;          /* streams of their own; else one thread, work done as it is enqueued */
  bool synthetic;           /* `prepare` gives stand-ins for all ops */
  int64_t link_bytes_per_s; /* paces copies between host and device, each direction; 0 = as fast as they go */
  uint64_t jitter;          /* not 0: seed of random delays before each piece of work; for tests */
} planrt_device_options;

enum { PLANRT_ALIGNMENT = 256, PLANRT_MAX_VARIANTS = 64 };

/* An algorithm for a call, at the call's shapes. */
typedef struct planrt_variant {
  char algorithm[48];
  int64_t workspace_bytes; /* exact: `prepare` refuses less and touches no more */
  bool deterministic;
} planrt_variant;

/* When a piece of work ran, on the device's clock. */
typedef struct planrt_span {
  int64_t begin_ns, end_ns;
} planrt_span;

typedef enum planrt_direction { PLANRT_H2D, PLANRT_D2H, PLANRT_D2D } planrt_direction;

/* Work of the user's side, run in stream order by a thread of the backend, never two at once. */
typedef planc_status (*planrt_host_work)(void *user, const void *what, int64_t period);

typedef struct planrt_backend {
  const char *name;
  planc_status (*open)(const planrt_device_options *options, planrt_device **out);
  void (*close)(planrt_device *device); /* after a failure too; drops what has not begun */
  /* First byte of device memory, and of the host memory that copies go to. */
  char *(*arena)(const planrt_device *device);
  char *(*host_arena)(const planrt_device *device);

  /* The algorithms that the backend has for a call, the one with the least workspace first; at most
   * PLANRT_MAX_VARIANTS. `algorithm`, `workspace` and `handle` of the call are not looked at, nor is its memory. DEVICE
   * when there is none. */
  planc_status (*variants)(planrt_device *device, const planrt_call *call, planrt_variant *out, int32_t *out_count);
  /* Finds how to run a call with its algorithm and sets its handle, which lives as long as the device. An algorithm
   * that the backend does not know (a plan made for another device) runs as the backend's plainest one. DEVICE when the
   * backend cannot run the call, or the workspace is too small. */
  planc_status (*prepare)(planrt_device *device, planrt_call *call);

  /* `span`, where not NULL, is filled when the work has ended. */
  planc_status (*launch)(planrt_device *device, int32_t stream, const planrt_call *call, const planrt_launch *launch,
                         planrt_span *span);
  planc_status (*copy)(planrt_device *device, int32_t stream, planrt_direction direction, void *to, const void *from,
                       int64_t bytes, planrt_span *span);
  planc_status (*host)(planrt_device *device, int32_t stream, planrt_host_work work, void *user, const void *what,
                       int64_t period);
  /* Hashes what the call that was launched last on the stream has put out, side effects left out: equal bytes give
   * equal digests on every device of a backend. */
  planc_status (*digest)(planrt_device *device, int32_t stream, const planrt_call *call, uint64_t *out);
  /* Fills with NaNs of every float type. */
  planc_status (*poison)(planrt_device *device, int32_t stream, void *to, int64_t bytes);

  /* Events count generations: generation b is the record of body b, -1 the prologue's. `forget` makes all unrecorded,
   * on a device that is synchronised. */
  planc_status (*record)(planrt_device *device, int32_t stream, int32_t event, int64_t generation);
  /* Makes the stream wait until the event has reached `generation`. Where nothing can reach it any more (one thread,
   * not yet recorded) the status is INVALID_PLAN. */
  planc_status (*wait)(planrt_device *device, int32_t stream, int32_t event, int64_t generation);
  bool (*reached)(const planrt_device *device, int32_t event, int64_t generation);
  void (*forget)(planrt_device *device);

  /* Returns when all that was enqueued has run, or been dropped after a failure. */
  planc_status (*synchronize)(planrt_device *device);
} planrt_backend;

extern const planrt_backend planrt_host_backend;

#endif
