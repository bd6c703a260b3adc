/* Measuring: how long ops and copies take on a backend, for profiles. */
#ifndef PLANRT_MEASURE_H
#define PLANRT_MEASURE_H

#include <signal.h>

#include "runtime/backend.h"
#include "util/vec.h"

/* Median, and median of the distances from it. */
typedef struct rt_statistic {
  int64_t median_ns, spread_ns;
} rt_statistic;
/* Sorts `times`. */
rt_statistic rt_statistic_of(int64_t *times, int32_t n);

/* --- Background work ---------------------------------------------------------------------------------------------- */

/* Threads that work beside what is measured until they are stopped. */
typedef struct rt_background rt_background;

/* Keeps every processor of the host, or the memory and processors of another device, busy for `load_ppm` of the time.
 * NULL in *out when that is 0. */
planc_status rt_background_load(const planrt_backend *backend, int64_t load_ppm, rt_background **out);
/* Copies blocks in one direction without pause; it has begun when this returns. */
planc_status rt_background_copy(const planrt_backend *backend, rt_direction direction, int64_t link_bytes_per_s,
                                rt_background **out);
planc_status rt_background_stop(rt_background *background);

/* --- Ops ---------------------------------------------------------------------------------------------------------- */

typedef struct rt_op_time {
  int32_t op;
  rt_variant variant;
  rt_statistic time;
  int64_t busy_ppm; /* share of the device it keeps busy; 0: not known */
  bool predicted;   /* the time is no measurement */
  int64_t batch;    /* at which it was listed; 0: measured */
} rt_op_time;
typedef VEC(rt_op_time) rt_op_times;

/* An iteration with one algorithm of every op, of several that have others. */
typedef struct rt_pass {
  int32_t number, of;
  const rt_op_times *times; /* in the graph's order */
} rt_pass;

/* What the device takes beside the arena. */
typedef struct rt_code_size {
  char algorithm[128];
  int64_t bytes; /* more than before its calls were prepared, which loads its code */
} rt_code_size;
typedef struct rt_memory_taken {
  int64_t beside_bytes; /* the most with everything ready, less `loaded_bytes` */
  int64_t loaded_bytes; /* by this process so far; kept for the next measurement */
  VEC(rt_code_size) code;
} rt_memory_taken;

/* What is about to run. */
typedef struct rt_trial {
  int32_t pass;
  const char *op, *algorithm; /* NULL: the pass's ops run back to back, or it is between two of them */
  bool only;                  /* the op has no other algorithm left */
} rt_trial;

typedef struct rt_op_options {
  const planrt_backend *backend;
  const planc_graph *graph;
  int64_t batch;
  bool deterministic;
  int32_t repetitions;
  int64_t warm_ns;    /* iterations run back to back for so long before any is timed */
  int64_t slow_ns;    /* an op whose first run in a pass takes so long is timed once; 0, or without `trying`: none is */
  int32_t most;       /* algorithms of each op, see rt_shortlist; 0: all */
  int32_t first_pass; /* those before it are left out */
  const volatile sig_atomic_t
      *stop; /* when it is not 0 measuring ends early, and the pass it is in counts as not run */
  /* Given each pass when it has been run. */
  planc_status (*passed)(void *user, const rt_pass *pass);
  void (*progress)(void *user, int32_t done, int32_t of); /* passes; or NULL */
  void *user;
  /* Told of an algorithm that the library has and the device does not run: it is left out. `why` is NULL where
   * `left_out` has said so. Or NULL. */
  void (*refused)(void *user, const char *op, const char *algorithm, planc_status why);
  /* Whether an algorithm is left out, as long as its op has another. Or NULL. */
  bool (*left_out)(void *user, const char *op, const char *algorithm);
  /* Told what is about to run that no pass has survived yet: a process that comes to its end has then left word what it
   * was at. Algorithms are told one by one as they are prepared, run for the first time with the pass's data, and run
   * beside themselves. Or NULL. */
  planc_status (*trying)(void *user, const rt_trial *trial);
  bool careful;           /* in the first pass all ops run apart, and all algorithms are told; with `trying` alone */
  rt_memory_taken *taken; /* raised by what is prepared; or NULL */
} rt_op_options;

/* Keeps the best `most` of an op's algorithms (0: all), in their order, and gives how many there are: by its library's
 * own ranking first those that none of better rank matches with as little workspace, then the others. Those with the
 * least workspace, of all and of the deterministic ones, and the best deterministic one stay as long as there is room
 * for these. */
int32_t rt_shortlist(rt_variant *variants, int32_t count, int32_t most);

/* Measures every op with its algorithms at one batch. Ops run in the order of an iteration, everything resident, so
 * that each finds in the caches what it finds there in a real one: a pass with the first algorithm of every op, one
 * with the second, and so on; in each, iterations run back to back and the last ones are timed. An algorithm that
 * cannot be run is left out, as long as its op has another. DEVICE when an iteration does not fit the memory. */
planc_status rt_measure_ops(const rt_op_options *options);
/* Prepares what the passes up to `first_pass` (-1: all of them) have run and measures nothing: the device then has
 * taken what it had taken after them, and `taken` has it in loaded_bytes alone. */
planc_status rt_prepare_again(const rt_op_options *options);

typedef struct rt_run_costs {
  int64_t launch_ns;    /* the host's time to enqueue an op, the mean over an iteration's */
  int64_t slowdown_ppm; /* how much longer ops take while copies run in both directions */
} rt_run_costs;

/* Measures that on iterations with one algorithm of each op, those in `chosen`. Of the options `most`, `first_pass`,
 * `passed` and what comes after `user` are not looked at. */
planc_status rt_measure_run(const rt_op_options *options, const rt_op_times *chosen, int64_t link_bytes_per_s,
                            rt_run_costs *out);

/* Opens a device that can be asked only. Where the backend's own can be described it is one so described: the libraries
 * then do nothing on the device itself. */
planc_status rt_list_open(const planrt_backend *backend, bool deterministic, rt_device **out);

/* Who is asked what there is for a graph's ops, on a device that may be described only; nothing is run. */
typedef struct rt_list_options {
  const planrt_backend *backend;
  rt_device *device;
  const planc_graph *graph;
  const planc_profile *described;    /* times are those that its constants predict */
  int32_t most;                      /* algorithms of each op, see rt_shortlist; 0: all */
  const volatile sig_atomic_t *stop; /* when it is not 0 asking ends early with less; or NULL */
  /* Told of an op that the backend has no algorithm for: it is left out. Or NULL: that is an error. */
  void (*refused)(void *user, const char *op, planc_status why);
  void *user;
} rt_list_options;

/* Appends what the backend has for every op at one batch, in the graph's order. */
planc_status rt_list_ops(const rt_list_options *options, int64_t batch, rt_op_times *out);
/* Puts an op's entries for one algorithm behind each other, by batch. */
void rt_list_sort(rt_op_times *listed);
/* Appends what there is of algorithms that were listed at other batches, `listed` sorted: each as at the next larger of
 * these, else at the largest. The workspace is -1 where an algorithm does not run at this batch. */
planc_status rt_list_again(const rt_list_options *options, int64_t batch, const rt_op_times *listed, rt_op_times *out);

/* What each of the variants in `costs`, which has one batch, needs there: out[i] is the workspace of
 * costs->variants[i]; -1 where the backend does not have it, RT_NOT_ASKED where it would take long and `slow` is
 * false, or that was stopped before. */
enum { RT_NOT_ASKED = -2 };
planc_status rt_list_workspaces(const rt_list_options *options, const planc_costs *costs, bool slow, int64_t *out);

/* --- Links -------------------------------------------------------------------------------------------------------- */

enum { RT_LINK_SIZES = 10 };
extern const int64_t rt_link_sizes[RT_LINK_SIZES];

typedef struct rt_link_times {
  int32_t n_sizes; /* measured, the first of rt_link_sizes: up to one that no cache holds much of */
  /* By direction (RT_H2D, RT_D2H) and size: from the end of what a copy waits for on another stream to the
   * beginning of what waits for it there. */
  int64_t alone_ns[2][RT_LINK_SIZES];
  int64_t both_ns[2];         /* the largest size, while the other direction copies too */
  int64_t under_load_ns[2];   /* the largest size, while every processor computes */
  int64_t memory_bytes_per_s; /* read and written by a large copy on the device */
} rt_link_times;

/* Ends early, with times that are none, when *stop is not 0; NULL: it never is. */
planc_status rt_measure_links(const planrt_backend *backend, int64_t link_bytes_per_s,
                              const volatile sig_atomic_t *stop, rt_link_times *out);

/* latency and bandwidth with the least sum of squared relative errors over n sizes; *out_misfit_ppm is the largest
 * relative error left. */
planc_link rt_fit_link(int32_t n, const int64_t *sizes, const int64_t *times_ns, int64_t *out_misfit_ppm);

/* Sizes of copies to storage and from it: those of rt_link_sizes from RT_FIRST_STORED on. */
enum { RT_STORED_SIZES = 6, RT_FIRST_STORED = 2 };
enum { RT_STORE, RT_LOAD };
typedef struct rt_storage_times {
  int32_t n_sizes;
  int64_t ns[2][RT_STORED_SIZES]; /* of RT_STORE and RT_LOAD, by size; as of links */
} rt_storage_times;

/* The least bytes of storage in which rt_measure_storage measures. */
int64_t rt_least_stored(void);
/* In a file in the directory, as large as it has room for up to four of the largest copies; DEVICE where that is not
 * enough for two sizes, or the backend has no storage. Ends early as rt_measure_links does. */
planc_status rt_measure_storage(const planrt_backend *backend, const char *directory, const volatile sig_atomic_t *stop,
                                rt_storage_times *out);

typedef struct rt_link_rates {
  int64_t bytes;                            /* copied in each direction */
  int64_t alone_bytes_per_s[2];             /* by direction */
  int64_t both_bytes_per_s;                 /* of both directions together, at once */
  int64_t memory_bytes, memory_bytes_per_s; /* copied within the device; read and written */
} rt_link_rates;

/* Copies at least `bytes` bytes in large blocks, one behind the other. */
planc_status rt_measure_rates(const planrt_backend *backend, int64_t link_bytes_per_s, int64_t bytes,
                              rt_link_rates *out);

#endif
