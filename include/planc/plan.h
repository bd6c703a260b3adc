/* The plan: the file between planc and planrun, planc-plan(5). A lowered schedule with addresses, streams and events,
 * self-contained: graph, jobs, device, predictions. Times are nanoseconds, sizes and addresses bytes.
 *
 * It has a boundary state (where each persistent buffer lives when the body starts), a prologue that leads there from
 * everything in the user's memory, the periodic body, and an epilogue that leads back. File order is a legal sequential
 * execution. An event is recorded once per body; wait(event, lag) means its record in this body (0) or the one before
 * (1); lag-1 waits stand before the record. The prologue records, as body -1, every event waited on with lag 1; the
 * epilogue is the body after the last: its waits all have lag 1, or lag 0 on events it records itself. A run may have
 * no body at all: the epilogue's waits with lag 1 then mean the prologue's records. */
#ifndef PLANC_PLAN_H
#define PLANC_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planc/cost.h"
#include "planc/settings.h"
#include "planc/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  PLANC_PLAN_VERSION = 1,
  PLANC_PLAN_ALIGNMENT = 256, /* of every device and host address */
  PLANC_PLAN_MAX_JOBS = 4096,
  PLANC_PLAN_MAX_STREAMS = 256
};

#define PLANC_STREAM_KINDS(X) X(compute) X(h2d) X(d2h)
typedef enum planc_stream_kind {
#define X(name) PLANC_STREAM_KIND_##name,
  PLANC_STREAM_KINDS(X)
#undef X
} planc_stream_kind;

typedef struct planc_stream {
  planc_stream_kind kind;
  int32_t job, gpu;
} planc_stream;

/* X(name) of every instruction, as in the file. */
#define PLANC_INSTRS(X) X(exec) X(acquire) X(release) X(offload) X(prefetch) X(move) X(record) X(wait)
typedef enum planc_instr_op {
#define X(name) PLANC_INSTR_##name,
  PLANC_INSTRS(X)
#undef X
} planc_instr_op;

#define PLANC_USER                                                                                   \
  (-1) /* host address of the user's own memory: feeds, results, persistent buffers before and after \
        */

typedef struct planc_instr {
  uint8_t op;        /* planc_instr_op */
  uint8_t lag;       /* wait */
  uint8_t recompute; /* exec */
  int16_t stream;    /* all but acquire and release */
  int32_t id;        /* exec: instance; acquire, release, offload, prefetch, move: residency; record, wait: event */
  int32_t aux;       /* acquire: buffer; move: source residency; exec: index into plan->algorithms */
  int32_t first_use; /* exec: plan->uses[first_use + k] is the residency of the k-th access, -1 = skipped; the execs'
                        uses follow each other in file order without gaps and fill `uses` */
  int64_t address;   /* acquire: device; offload, prefetch: host address or PLANC_USER; exec: workspace's */
  int64_t bytes;     /* acquire, offload, prefetch, move: the buffer's; exec: workspace bytes (0: address is 0) */
  int64_t time_ns;   /* exec: predicted */
  int64_t busy_ppm;  /* exec */
} planc_instr;

/* A persistent buffer at the boundary: resident on the device, or at home in the host arena.
 *
 * Residency i of the plan is boundary[i]; ids of acquires in the body go on from n_boundary, in order. The prologue
 * acquires residencies 0 .. n_boundary-1, the epilogue releases those that it finds open. At the end of the body every
 * buffer that is resident must again be so at the same address; its residency is then renumbered i. One that is at home
 * passes through its residency i in the prologue, on its way from the user to the host arena, and in the epilogue, on
 * its way back; at the end of the body its last version must be in the host arena again, and nowhere on the device. */
typedef struct planc_boundary {
  int32_t buffer;
  bool home;       /* in the host arena */
  int64_t address; /* there, or on the device */
} planc_boundary;

/* Consecutive chunks of the range that device addresses are in, and where they are in the arena: chunks `first` up to,
 * not including, `first` + n of it. */
typedef struct planc_mapping {
  int64_t first, n;
} planc_mapping;

typedef struct planc_section {
  int32_t n;
  const planc_instr *instrs;
} planc_section;

/* Of several GPUs as in planc_simulation. */
typedef struct planc_predictions {
  int64_t iteration_ns; /* steady state, per period */
  int64_t ideal_ns;     /* sum of the ops' times with the fastest algorithms, whole batch (of each GPU), all resident */
  int64_t bound_ns;     /* certified lower bound on the iteration, 0 = none */
  int64_t peak_bytes, host_peak_bytes; /* arena plus reserved; host arena */
  int64_t d2h_bytes, h2d_bytes, recompute_ns, stall_ns;
} planc_predictions;

typedef struct planc_plan {
  const char *name, *policy;
  planc_settings settings;
  planc_device device;
  int64_t budget_bytes, host_budget_bytes; /* host: -1 = none given */
  int64_t arena_bytes, host_arena_bytes;
  int32_t gpus;
  bool shared_link;    /* the GPUs' copies of a direction share the bandwidth of one link */
  uint64_t graph_hash; /* of job 0's graph */
  int32_t n_jobs;
  const planc_job *jobs;
  int32_t n_streams;
  const planc_stream *streams;
  int32_t n_events;
  int32_t n_algorithms;
  const char *const *algorithms;
  int32_t n_boundary;
  const planc_boundary *boundary;
  /* Virtual memory: device addresses are in a range of their own, whose chunks are mapped to those of the arena, one or
   * several to each, once and before the prologue. 0: there is no such range, addresses are the arena's. */
  int64_t chunk_bytes;
  bool paged; /* chunks are pages of an allocator's blocks, and data lies anywhere in these */
  int32_t n_mappings;
  const planc_mapping *mappings; /* cover the range from its beginning to its end */
  int32_t n_residencies;         /* boundary and body */
  planc_section prologue, body, epilogue;
  int32_t n_uses;
  const int32_t *uses;
  planc_predictions predicted;
  struct planc_plan_memory *memory; /* what the plan owns: its arena, graphs it read */
} planc_plan;

/* Reads planc-plan(5). Checks the form only (rows, keys, ranges that make memory unsafe to use); whether the plan is
 * right is planc_check's. Errors are BAD_INPUT: "path:line:column: what". */
#define PLANC_PLAN_MOST_BYTES (INT64_C(4) << 30) /* of a file */
planc_status planc_plan_read(const char *path, planc_plan **out);
planc_status planc_plan_parse(const char *text, size_t length, const char *path, planc_plan **out);
/* The plan's bytes: the same plan gives the same bytes. *out_text is malloc'ed, NUL-terminated. */
planc_status planc_plan_print(const planc_plan *plan, char **out_text, size_t *out_length);
/* A 64-bit hash of these bytes: what was measured with a plan names it by this. */
planc_status planc_plan_hash(const planc_plan *plan, uint64_t *out);
void planc_plan_free(planc_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
