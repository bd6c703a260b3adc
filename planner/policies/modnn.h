/* moDNN's planner state (papers: moDNN, IV-B): simulated time, memory, buffers and the decisions taken so far. The
 * paper's blocks are buffers of the trace, its tasks instances. Times are nanoseconds from the iteration's start. */
#ifndef PLANC_POLICIES_MODNN_H
#define PLANC_POLICIES_MODNN_H

#include "planc/policy.h"
#include "planner/memory/memory_list.h"

/* Where a buffer is, and what becomes of it. */
typedef struct modnn_buffer {
  int32_t segment; /* -1: not on the device */
  int32_t next;    /* its next access: index into trace->by_buffer */
  int32_t made;    /* instance that wrote the content, -1 if none did */
  int32_t others;  /* of a gradient that is sent: the buffer that the other replicas' are fetched to; -1 = none */
  int64_t ready;   /* when the content is complete on the device, or sent: no copy of it starts earlier */
  bool stays;      /* params, state and gradients never leave (II.2) */
  bool filled;     /* holds content on the device */
  bool on_host;    /* the host has the latest content: it can be dropped without a transfer (IV-B1) */
  bool used;       /* read since it was made or prefetched: criterion (b) */
} modnn_buffer;

typedef enum modnn_decision_kind {
  MODNN_ACQUIRE,
  MODNN_RELEASE,
  MODNN_PREFETCH,
  MODNN_EXEC,
  MODNN_DELIVER,
  MODNN_NOTHING
} modnn_decision_kind;

typedef struct modnn_decision {
  modnn_decision_kind kind;
  int32_t subject; /* buffer; exec: instance */
  int32_t choice;  /* exec: variant; prefetch: version */
  int64_t address; /* acquire: of the buffer; exec: of the workspace */
} modnn_decision;

/* A transfer to the host may start long before the memory is needed (Fig. 3): it is stated right after `after`. */
typedef struct modnn_offload {
  int32_t buffer, after;
} modnn_offload;

typedef struct modnn_wanted {
  int32_t use, buffer; /* the instance that needs it next */
} modnn_wanted;

/* One step of a look into the future, to be undone. */
typedef struct modnn_step {
  int32_t buffer;
  bool took;    /* else released */
  int32_t left; /* released: the buffer before the free segment it became part of, -1 if that is the lowest */
  int64_t address, bytes;
} modnn_step;

typedef struct modnn {
  const planc_trace *trace;
  const planc_costs *const *costs; /* by job */
  const planc_profile *profile;
  const planc_device *device;
  modnn_buffer *buffers; /* one per buffer, and at the end the workspace, stays while it exists */
  int64_t *earliest;     /* sum of the fastest times of all instances before i, for EST */
  int32_t *entry;        /* of an access: where it stands in trace->by_buffer */
  int64_t budget_bytes;  /* the problem's */
  pl_memory_list memory;
  int32_t instance;               /* that is scheduled */
  int64_t now, out_free, in_free; /* current time; when the copy engines are done */
  int32_t last_anchor;            /* of the latest offload */
  int64_t reached;                /* the highest address that anything has ended at */
  int32_t searched;               /* the buffer before which the last search for a scheme ended, -1 at first */
  int64_t n_played;               /* instances, to see whether prefetches are of use */
  VEC(modnn_decision) decisions;
  VEC(modnn_offload) offloads;
  VEC(modnn_wanted) wanted; /* heap: buffers on the host alone, by next use */
  VEC(int32_t) leaving;     /* buffers about to be cleared */
  VEC(modnn_step) journal;
} modnn;

/* --- modnn_memory.c ----------------------------------------------------------------------------------------------- */

/* Contiguous segments to clear for an allocation. */
typedef struct modnn_scheme {
  int32_t first, last; /* segments; first < 0: none found */
  int64_t end;   /* when the last transfer is done, plus what reloads will be late; `now` when there is no delay */
  int64_t moved; /* bytes to transfer */
} modnn_scheme;

int64_t modnn_bytes(const modnn *m, int32_t buffer);
/* The instance that uses the buffer next, INT32_MAX if none. */
int32_t modnn_next_use(const modnn *m, int32_t buffer);
/* True when the content must survive: the next access reads it. */
bool modnn_needed(const modnn *m, int32_t buffer);

/* The offloading scheme with the least delay (ties: fewer bytes moved, lowest address) that makes `bytes` contiguous;
 * buffers used at or before instance `horizon` stay (criterion (a)). */
modnn_scheme modnn_find_scheme(const modnn *m, int64_t bytes, int32_t horizon);
/* Notes the buffers of a scheme in m->leaving: segments merge as they are cleared. */
planc_status modnn_note_scheme(modnn *m, const modnn_scheme *scheme);
/* Gives `buffer` memory, offloading where it must; *out_when is when the memory is vacated; *out_found is false, and
 * nothing has changed, when no scheme exists. */
planc_status modnn_allocate(modnn *m, int32_t buffer, int32_t horizon, int64_t *out_when, bool *out_found);
/* The same for a workspace of `bytes`, with its address. */
planc_status modnn_allocate_workspace(modnn *m, int64_t bytes, int32_t horizon, int64_t *out_address, int64_t *out_when,
                                      bool *out_found);
planc_status modnn_free_workspace(modnn *m);
/* Takes the buffer off the device; its content is lost unless the host has it. */
planc_status modnn_drop(modnn *m, int32_t buffer);
/* Offloads all data (IV-B1); *out_when is when all transfers are done. */
planc_status modnn_defragment(modnn *m, int64_t *out_when);

/* --- modnn_wanted.c ----------------------------------------------------------------------------------------------- */

/* Notes that instance `use` needs the buffer, which the host alone has; m->wanted.data[0] is the nearest. */
planc_status modnn_want(modnn *m, int32_t buffer, int32_t use);
void modnn_unwant_first(modnn *m);

/* --- modnn_prefetch.c --------------------------------------------------------------------------------------------- */

/* Starts the transfer of an allocated buffer whose memory is vacated at `when`. */
planc_status modnn_fetch(modnn *m, int32_t buffer, int64_t when);
/* The nearest instance after the current one that needs buffers from the host, or -1; *out_transfer_ns is the transfer
 * time of those buffers. */
int32_t modnn_next_wanting(modnn *m, int64_t *out_transfer_ns);
/* Eq. 4: a prefetch for `wanting` that started only after an instance of `run_ns` had ended would be late. */
bool modnn_must_start(const modnn *m, int32_t instance, int64_t run_ns, int32_t wanting, int64_t transfer_ns);
/* Transfer time of those of `wanting`'s missing buffers that find memory without offloading. */
planc_status modnn_fitting_ns(modnn *m, int32_t wanting, int64_t *out_ns);
/* Lines 15-27: prefetches for future instances before `instance`, which takes `run_ns`. */
planc_status modnn_prefetch(modnn *m, int32_t instance, int64_t run_ns);

/* --- modnn.c ------------------------------------------------------------------------------------------------------ */

/* Algorithm 1 over rounds of `sub_batch` samples. */
planc_status modnn_schedule(const planc_problem *problem, int64_t sub_batch, planc_candidate *out);

#endif
