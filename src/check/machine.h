/* The checker's abstract machine: its state between two instructions, and one step. */
#ifndef PLANC_CHECK_MACHINE_H
#define PLANC_CHECK_MACHINE_H

#include "check/extents.h"
#include "check/histories.h"
#include "check/seen.h"
#include "plan/copies.h"
#include "plan/link_index.h"
#include "planc/check.h"
#include "util/number_set.h"

typedef enum pl_section_kind { PL_PROLOGUE, PL_BODY, PL_EPILOGUE } pl_section_kind;

typedef struct pl_residency_state {
  int32_t buffer;
  int32_t version; /* -1: nothing defined */
  int32_t memory;
  int32_t history; /* of its bytes, -1: nothing has been written yet */
  pl_interval_place place;
  int64_t address;
  bool open;
} pl_residency_state;

typedef struct pl_machine {
  const planc_plan *plan;
  planc_trace *trace;
  pl_link_index links;
  pl_extents extents;
  int64_t first_instr_line;
  pl_acquired *acquired; /* by residency */
  int32_t *boundary_of;  /* by buffer: its index in plan->boundary, -1 = none */
  pl_arena arena;

  /* The present run's, made anew for each. */
  pl_histories histories;
  pl_residency_state *residencies; /* by number */
  pl_number_set open;              /* lower ends of open residencies' extents */
  int32_t *open_at;                /* by lower end: the residency, -1 = a workspace */
  int32_t *open_to;                /* by lower end: the extent's upper end */

  pl_seen seen;
  int32_t *epochs_before; /* by stream: its epoch when the present section started */

  int32_t *executed;  /* by instance: the body in which it ran last */
  int32_t *algorithm; /* by instance: of its run in the present body that was no recompute */
  int32_t *delivered; /* by buffer: the body in which it last left for the user */

  const char *which_run; /* said at the end of what is found in it */
  pl_section_kind section;
  int32_t body;
  const planc_instr *instr; /* the present one */
  int64_t index;            /* its place in file order */
  int32_t next_residency, next_use;
  pl_arena run_arena;

  int32_t n_executed, n_recomputed;      /* in the last body */
  int64_t touched[PLANC_N_MEMORY_KINDS]; /* highest byte + 1 */
} pl_machine;

/* Runs machine->instr. */
planc_status pl_machine_step(pl_machine *machine);

/* --- Messages: INVALID_PLAN --------------------------------------------------------------------------------------- */

/* "line N: INSTRUCTION: what" about the present instruction. */
planc_status pl_machine_fault(const pl_machine *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
/* The same about a conflict: the present instruction "reads" or "writes" `what`. */
planc_status pl_machine_race(const pl_machine *machine, const pl_conflict *conflict, bool writes, const char *what);

enum { PL_LABEL = 640 };
/* "the host", "device 0". */
const char *pl_memory_label(const pl_machine *machine, int32_t memory, char label[PL_LABEL]);
/* "relu2.y", with round, iteration and job where there are several. */
const char *pl_buffer_label(const pl_machine *machine, int32_t buffer, char label[PL_LABEL]);
const char *pl_instance_label(const pl_machine *machine, int32_t instance, char label[PL_LABEL]);

#endif
