/* The backend interface: what the interpreter needs of a device. One table of functions per kind of device.
 *
 * Work on one stream runs in the order it was enqueued; across streams only `wait` orders. Functions that enqueue
 * return once the work is enqueued and its arguments are read; what they point to must live until the device is
 * synchronised. A device opened without `concurrent` performs work as it is enqueued.
 *
 * Work that fails while it runs aborts the device: no host work is begun any more, nothing that is enqueued from then
 * on is run, and `synchronize` gives the first failure, once. After that, and `forget`, the device is as new. Of what
 * had been enqueued before, other work than host work may still run (a GPU's queues cannot be emptied), none of it
 * before what it waits for: whatever it has put out by then is not to be read.
 *
 * A device that is lost (an illegal address, a GPU that is gone) fails every call with DEVICE, `synchronize` included,
 * runs nothing more and can only be closed. No call waits for work that it will not do. */
#ifndef PLANRT_BACKEND_H
#define PLANRT_BACKEND_H

#include "runtime/call.h"

typedef struct rt_device rt_device;

typedef struct rt_device_options {
  int64_t arena_bytes, host_arena_bytes; /* allocated exactly; first byte at a multiple of RT_ALIGNMENT */
  int64_t storage_bytes;                 /* 0, or on a backend that has storage all of them taken by `open` */
  const char *storage_path;              /* the directory where; borrowed until the device is closed */
  /* Virtual memory as in planc_memory: chunk_bytes 0 or, on a backend that maps, the arena's chunks are mapped to a
   * range of addresses before `open` returns. */
  int64_t chunk_bytes;
  int32_t n_mappings;
  const planc_mapping *mappings;
  int32_t n_streams, n_events;
  const int32_t *priorities; /* by stream, 0 to PLANC_MAX_PRIORITY, which `open` alone reads: what kernels of several
                                streams are on the device at once, those of the most are to go first, as far as it
                                knows priorities; NULL: all have 0 */
  bool concurrent;           /* streams of their own; else one stream, work done in the order it is enqueued */
  bool synthetic;            /* `prepare` gives stand-ins for all ops */
  bool deterministic;        /* only algorithms that give the same bits every time */
  bool timed;                /* launches will be given spans: `open` finds out what time stamps add to them, if any */
  const char *properties;    /* a device described by this text, which `open` alone reads, stands in for one that is not
                                there: `variants` and `workspace` work; NULL: the machine's own */
  int64_t link_bytes_per_s;  /* paces copies between host and device, each direction; 0 = as fast as they go */
  uint64_t jitter;           /* not 0: seed of random delays before each piece of work; for tests */
} rt_device_options;

enum { RT_ALIGNMENT = 256, RT_MAX_VARIANTS = 256, RT_AHEAD = 2 };

/* What a library says of an algorithm. */
#define RT_NOTES(X)                             \
  X(TENSOR_CORE, "tensor-core")                 \
  X(DOWN_CONVERT, "down-convert")               \
  X(REDUCED_REDUCTION, "reduced-precision-sum") \
  X(FFT, "fft")                                 \
  X(WINOGRAD, "winograd")                       \
  X(COMPILED, "compiled-at-run-time")
typedef enum rt_note {
#define X(id, name) RT_NOTE_##id,
  RT_NOTES(X)
#undef X
      RT_N_NOTES
} rt_note;

/* An algorithm for a call, at the call's shapes. */
typedef struct rt_variant {
  char algorithm[128];
  int64_t workspace_bytes; /* exact: `prepare` refuses less and touches no more */
  bool deterministic;
  uint32_t notes; /* bit 1 << rt_note */
  int32_t rank;   /* its place in the library's own order by expected speed, from 0; 0 where it has none */
} rt_variant;

/* What there is to run on. */
typedef struct rt_device_info {
  char device[128];   /* name of the device */
  char versions[192]; /* libraries and driver; with the device what a profile holds for */
  char dtypes[32];    /* of float operands */
  int64_t memory_bytes;
  int64_t cache_bytes; /* that its memory is read and written through; 0: not told */
  int32_t processors;  /* multiprocessors; of the host its processors */
} rt_device_info;

/* When a piece of work ran, on the device's clock. */
typedef struct rt_span {
  int64_t start_ns, end_ns;
} rt_span;

/* Host memory that a copy goes to or comes from is the host arena or has been pinned. A copy within it may wait for
 * host work of any stream, and whatever is behind it then does. What is copied to storage, or from it, takes no host
 * memory of its own once that is over. */
typedef enum rt_direction { RT_H2D, RT_D2H, RT_D2D, RT_H2H, RT_H2S, RT_S2H } rt_direction;

/* Work of the user's side, run in stream order by a thread of the backend, never two at once: whatever is behind one on
 * its stream waits for it, and other host work may; other streams' work does not. */
typedef planc_status (*rt_host_work)(void *user, const void *what, int64_t period);

struct planrt_backend {
  const char *name;
  /* DEVICE, saying what is missing, where there is nothing to run on. */
  planc_status (*info)(rt_device_info *out);
  /* The device as `properties` of rt_device_options describes it. Malloc'ed. NULL: such a device cannot be
   * described. */
  planc_status (*properties)(char **out);
  planc_status (*open)(const rt_device_options *options, rt_device **out);
  void (*close)(rt_device *device); /* after a failure too; drops what has not begun */
  /* How many streams the device tells apart; beyond them some wait for each other without need. NULL: all. */
  int32_t (*queues)(void);
  bool beside;    /* ops of different streams run beside each other on its processors, so that an op has a busy share */
  bool takes_one; /* an op runs on one of its processors, which is its busy share */
  bool maps;      /* has virtual memory */
  bool parts;     /* stands for several GPUs, each with a part of the arena */
  /* First byte of device memory, or of the range that it is mapped to; and of the host memory that copies go to. */
  char *(*arena)(const rt_device *device);
  char *(*host_arena)(const rt_device *device);
  /* The address of the first byte of storage, for copies and poison alone: nothing can be read or written there
   * otherwise. NULL: it has none. */
  char *(*storage)(const rt_device *device);
  /* The machine's device memory and what is free of it, this process's context taken off. NULL: it has none of its own.
   */
  planc_status (*memory)(int64_t *out_total, int64_t *out_free);
  /* How much of it a context of a process takes; DEVICE where that cannot be found out. */
  planc_status (*context_bytes)(int64_t *out_bytes);
  /* Makes host memory, whole pages of it, one that copies and host work may use while they run; until the device is
   * closed. */
  planc_status (*pin)(rt_device *device, void *memory, int64_t bytes);
  /* Device memory taken beside the arena: context, libraries, code, captured graphs; and by others on the device. */
  planc_status (*taken)(const rt_device *device, int64_t *out_bytes);

  /* The algorithms that the backend has for a call: first the one with the least workspace, of several one that is
   * deterministic, of several of those the library's first; at most RT_MAX_VARIANTS. `algorithm`, `workspace` and
   * `handle` of the call are not looked at, nor is its memory. DEVICE when there is none. */
  planc_status (*variants)(rt_device *device, const rt_call *call, rt_variant *out, int32_t *out_count);
  /* The workspace of the call's algorithm at the call's shapes, without looking for others; -1 when it does not run
   * there. */
  planc_status (*workspace)(rt_device *device, const rt_call *call, int64_t *out_bytes);
  /* Whether that takes long, as a library has to build something first: a call is then asked about at few batches only.
   * NULL: it never does. */
  bool (*slow_workspace)(const rt_device *device, const rt_call *call);
  /* Finds how to run a call with its algorithm and sets its handle, which lives as long as the device. An algorithm
   * that the backend does not know (a plan made for another device) runs as the backend's plainest one. DEVICE when the
   * backend cannot run the call, or the workspace is too small. */
  planc_status (*prepare)(rt_device *device, rt_call *call);

  /* `span`, where not NULL, is filled when the work has ended. */
  planc_status (*launch)(rt_device *device, int32_t stream, const rt_call *call, const rt_launch *launch,
                         rt_span *span);
  planc_status (*copy)(rt_device *device, int32_t stream, rt_direction direction, void *to, const void *from,
                       int64_t bytes, rt_span *span);
  planc_status (*host)(rt_device *device, int32_t stream, rt_host_work work, void *user, const void *what,
                       int64_t period);
  /* Hashes what the call that was launched last on the stream has put out, side effects left out: equal bytes give
   * equal digests on every device of a backend. */
  planc_status (*digest)(rt_device *device, int32_t stream, const rt_call *call, uint64_t *out);
  /* Fills memory of an arena, the device's or the host's, or storage with NaNs of every float type; the host's as a
   * copy within host memory does. */
  planc_status (*poison)(rt_device *device, int32_t stream, void *to, int64_t bytes);

  /* Events count generations: generation b is the record of body b, -1 the prologue's. `forget` makes all unrecorded,
   * on a device that is synchronised. */
  planc_status (*record)(rt_device *device, int32_t stream, int32_t event, int64_t generation);
  /* Makes the stream wait until the event has reached `generation`. Where nothing can reach it any more (one thread,
   * not yet recorded) the status is INVALID_PLAN. */
  planc_status (*wait)(rt_device *device, int32_t stream, int32_t event, int64_t generation);
  bool (*reached)(const rt_device *device, int32_t event, int64_t generation);
  void (*forget)(rt_device *device);

  /* What is enqueued between the two is not run but kept; `replay` enqueues all of it at once, behind everything before
   * it and before everything after, with the step and the period it is given in place of those of the capture. Waits
   * for events recorded before the capture are then over and are left out. A device keeps one capture. NULL: the
   * backend has none. */
  planc_status (*capture)(rt_device *device);
  planc_status (*captured)(rt_device *device);
  planc_status (*replay)(rt_device *device, const rt_launch *launch, int64_t period);

  /* What has been enqueued since the last call, or since `open`, is a lap. Returns when all laps but the last RT_AHEAD
   * have run, or been dropped after a failure: no more than those are on their way. NULL: they may run ahead by as much
   * as the device's queues hold. */
  planc_status (*end_lap)(rt_device *device);
  /* Returns when all that was enqueued has run, or been dropped after a failure. */
  planc_status (*synchronize)(rt_device *device);
};

extern const planrt_backend rt_host_backend;

/* Whether this process has lost the backend's device: no call that it makes there will succeed. */
bool rt_backend_is_lost(const planrt_backend *backend);

/* A plug-in is a shared object, libplanrt-NAME.so, with this function, which gives NULL when it was built for another
 * version of this interface. */
enum { RT_BACKEND_VERSION = 9 };
#define RT_PLUGIN_SYMBOL "planrt_plugin"
typedef const planrt_backend *(*rt_plugin_function)(int32_t backend_version, const char *version_of_planc);

#endif
