/* The plan: the file between planc and planrun, planc-plan(5). A lowered schedule with addresses, streams and events,
 * self-contained: memories, links, graphs, jobs, predictions. Times are nanoseconds, sizes and addresses bytes.
 *
 * Data are in residencies: stretches of time in which a buffer has a place in a memory. One instruction copies from a
 * residency to another, in whichever memories. A plan has a boundary state (where each persistent buffer is parked when
 * the body starts), a prologue that leads there from everything in the user's memory, the periodic body, and an
 * epilogue that leads back. File order is a legal sequential execution. An event is recorded once per body; wait(event,
 * lag) means its record in this body (0) or the one before (1); lag-1 waits stand before the record. The prologue
 * records, as body -1, every event waited on with lag 1; the epilogue is the body after the last: its waits all have
 * lag 1, or lag 0 on events it records itself. A run may have no body at all: the epilogue's waits with lag 1 then mean
 * the prologue's records.
 *
 * A plan with replicas (planc_plan_replicas) states one of them, whichever: each has all of this for itself, memories,
 * engines, streams and events, and all carry out every instruction before any does the next. A wait or copy with
 * `peers` looks at all the others: it waits for the event of each, or copies from that residency of each. */
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
  PLANC_PLAN_VERSION = 2,
  PLANC_ALIGNMENT = 256, /* the least of a memory, whose own is a multiple of it; addresses are as well */
  PLANC_PLAN_MAX_ALIGNMENT = 1 << 30,
  PLANC_PLAN_MAX_JOBS = 256,
  PLANC_PLAN_MAX_STREAMS = 1024, /* three for each of as many jobs as there may be, and more */
  PLANC_PLAN_MAX_MEMORIES = 256,
  PLANC_PLAN_MAX_LINKS = 4096,
  PLANC_PLAN_MAX_REPLICAS = 4096,
  PLANC_PLAN_MAX_SLOWDOWN = INT32_MAX
};

/* --- Memories and links ------------------------------------------------------------------------------------------- */

/* What a plan has of a memory. All data of it lie in one piece, the arena, but in the user's, which has none. With
 * replicas each has devices of its own and an arena in each memory; host, storage and their budgets are there for all.
 */
typedef struct planc_memory {
  planc_memory_kind kind;
  int32_t gpu;            /* of a device: its GPU; else -1 */
  int64_t bytes;          /* that the machine has; -1 = not known */
  int64_t budget_bytes;   /* for arena and reserved memory; -1 = not limited */
  int64_t reserved_bytes; /* taken beside the arena: of a device by context, libraries and the code of algorithms */
  int64_t arena_bytes;
  int64_t alignment; /* of addresses */
  /* Virtual memory: addresses are in a range of their own, whose chunks are mapped to those of the arena, one or
   * several to each, once and before the prologue. 0: there is no such range, addresses are the arena's. */
  int64_t chunk_bytes;
  bool paged;            /* chunks are pages, and data lies anywhere in these */
  int32_t first_mapping; /* of plan->mappings, which cover the range from its beginning to its end */
  int32_t n_mappings;
} planc_memory;

/* Consecutive chunks of the range that addresses are in, and where they are in the arena: chunks `first` up to, not
 * including, `first` + n of it. */
typedef struct planc_mapping {
  int64_t first, n;
} planc_mapping;

/* Copies from one memory to another take latency + bytes / bandwidth and are made by a copy engine, one at a time. An
 * engine may serve several links: its links have a bus in common, too. */
typedef struct planc_plan_link {
  int32_t from, to; /* memories */
  int32_t engine;   /* numbered from 0 on, without gaps */
  int32_t bus;      /* copies of all engines on it share the bandwidth in equal parts; -1 = none */
  planc_link cost;
} planc_plan_link;

/* What the GPUs have in common. */
typedef struct planc_plan_device {
  const char *name;
  int64_t launch_ns;    /* host time to launch one op */
  int32_t in_flight;    /* launched ops that may wait on the device */
  int64_t duplex_ppm;   /* a copy's speed while an engine copies the other way */
  int64_t slowdown_ppm; /* how much longer compute takes while an engine copies to or from its GPU */
} planc_plan_device;

/* --- Instructions ------------------------------------------------------------------------------------------------- */

#define PLANC_STREAM_KINDS(X) X(compute) X(copy)
typedef enum planc_stream_kind {
#define X(name) PLANC_STREAM_KIND_##name,
  PLANC_STREAM_KINDS(X)
#undef X
} planc_stream_kind;

typedef struct planc_stream {
  planc_stream_kind kind;
  int32_t job;
  int32_t on; /* compute: the device's memory; copy: the engine */
} planc_stream;

/* X(name) of every instruction, as in the file. */
#define PLANC_INSTRS(X) X(exec) X(acquire) X(release) X(copy) X(record) X(wait)
typedef enum planc_instr_op {
#define X(name) PLANC_INSTR_##name,
  PLANC_INSTRS(X)
#undef X
} planc_instr_op;

/* In place of a copy's residency: the user's own memory, where feeds come from, results go to and what persists is at
 * home before and after a run. */
#define PLANC_USER (-1)

typedef struct planc_instr {
  uint8_t op;        /* planc_instr_op */
  uint8_t lag;       /* wait */
  uint8_t recompute; /* exec */
  uint8_t peers;     /* copy, wait: of each other replica; such a copy goes to its buffer for the others' gradients */
  int16_t stream;    /* all but acquire and release */
  int16_t memory;    /* acquire */
  int32_t id;  /* exec: instance; acquire, release: residency; copy: the one that it goes to; record, wait: event */
  int32_t aux; /* acquire: buffer; copy: the residency that it comes from; exec: index into plan->algorithms */
  int32_t first_use; /* exec: plan->uses[first_use + k] is the residency of the k-th access, -1 = skipped; the execs'
                        uses follow each other in file order without gaps and fill `uses` */
  int64_t address;   /* acquire: in its memory; exec: the workspace's, in the memory of its stream */
  int64_t bytes; /* acquire, copy: the buffer's, of `peers` that copied from; exec: workspace bytes (0: address is 0) */
  int64_t time_ns;  /* exec, and copy inside a device: predicted */
  int64_t busy_ppm; /* exec */
} planc_instr;

/* Where a persistent buffer is parked at the boundary.
 *
 * Residency i of the plan is boundary[i]; ids of acquires in the body go on from n_boundary, in order. The prologue
 * acquires residencies 0 .. n_boundary-1, the epilogue releases those that it finds open. At the end of the body every
 * buffer must be in its memory at the same address again, and nothing else; its residency is then renumbered i. */
typedef struct planc_boundary {
  int32_t buffer;
  int32_t memory;
  int64_t address;
} planc_boundary;

typedef struct planc_section {
  int32_t n;
  const planc_instr *instrs;
} planc_section;

/* What a period has of one job. Of several GPUs, bytes are those of all, and times that are spent on each are means. */
typedef struct planc_job_predictions {
  int64_t ideal_ns; /* of its ops with the fastest algorithms, whole batch (of each GPU), all resident */
  int64_t busy_ns;  /* some compute stream of it computes; 0 until it is simulated */
  int64_t stall_ns; /* none does; 0 until it is simulated */
  /* These follow from the body and are not in the file. */
  int64_t copied_bytes[PLANC_N_ROUTES]; /* to memories of the route's kind, or from them */
  int64_t recompute_ns;
} planc_job_predictions;

/* What the simulator predicts of a plan. It takes the times of ops as they are, measured, from a roofline or predicted
 * by a model (planc/predict.h). */
typedef struct planc_predictions {
  int64_t period_ns; /* steady state */
  int64_t bound_ns;  /* certified lower bound on the period, 0 = none */
  planc_job_predictions *jobs;
  /* Arena plus reserved, the most of any memory of the kind. They follow from the memories and are not in the file. */
  int64_t peak_bytes[PLANC_N_MEMORY_KINDS];
} planc_predictions;

typedef struct planc_plan_owned planc_plan_owned;

typedef struct planc_plan {
  const char *name, *policy;
  planc_settings settings;
  planc_plan_device device;
  /* The devices in the order of their GPUs, the host, the storage if there is one, the user's. */
  int32_t n_memories, n_links;
  planc_memory *memories;
  planc_plan_link *links;
  int32_t n_jobs;
  const planc_job *jobs;
  int32_t n_streams;
  const planc_stream *streams;
  int32_t n_events;
  int32_t n_algorithms;
  const char *const *algorithms;
  int32_t n_boundary, n_mappings;
  const planc_boundary *boundary;
  const planc_mapping *mappings; /* memory after memory */
  int32_t n_residencies;         /* boundary and body */
  planc_section prologue, body, epilogue;
  int32_t n_uses;
  const int32_t *uses;
  planc_predictions predicted;
  const char *explanation; /* for people: why the policy chose it; NULL = it does not say. Not in the file */
  planc_plan_owned *owned; /* its arena, graphs it read; NULL where others hold what it points to */
} planc_plan;

/* The first memory of a kind; one of no bytes without a limit where there is none. */
const planc_memory *planc_plan_memory(const planc_plan *plan, planc_memory_kind kind);
/* How many GPUs a replica has: their memories are the first. */
int32_t planc_plan_gpus(const planc_plan *plan);
/* How many replicas the plan stands for, at least 1. */
int32_t planc_plan_replicas(const planc_plan *plan);
/* The sums over the jobs, each of which has its predictions. Jobs share the GPU, so the sum of their stalls may be more
 * than the period. */
planc_job_predictions planc_plan_predicted_total(const planc_plan *plan);

/* Reads planc-plan(5). Checks the form only (rows, keys, ranges that make memory unsafe to use); whether the plan is
 * right is planc_check's. Errors are BAD_INPUT: "path:line:column: what". */
#define PLANC_PLAN_MAX_BYTES (INT64_C(4) << 30) /* of a file */
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
