/* What the checker says: which line, which instruction, which storage (machine.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What the checker says: which line, which instruction, which storage (machine.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check/machine.h"
#include "plan/copies.h"
#include "plan/layout.h"

#define X(name) #name,
static const char *const instr_names[] = {PLANC_INSTRS(X)};
#undef X

static const char *instr_label(const pl_machine *machine, const planc_instr *instr, char label[PL_LABEL]);
static const char *instr_name(const pl_machine *machine, const planc_instr *instr);
static void append_residency(const pl_machine *machine, int32_t id, char what[PL_LABEL]);
static void append_place(const pl_machine *machine, int32_t job, int32_t iteration, int32_t round,
                         char label[PL_LABEL]);
static void append(char label[PL_LABEL], const char *format, ...) __attribute__((format(printf, 2, 3)));

planc_status pl_machine_fault(const pl_machine *machine, const char *format, ...) {
  char label[PL_LABEL], what[2 * PL_LABEL];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  long long line = machine->first_instr_line + machine->index;
  return planc_error(PLANC_INVALID_PLAN, "line %lld: %s: %s%s", line, instr_label(machine, machine->instr, label), what,
                     machine->which_run);
}

planc_status pl_machine_race(const pl_machine *machine, const pl_conflict *conflict, bool writes, const char *what) {
  const planc_plan *plan = machine->plan;
  pl_mark with = conflict->with;
  bool of_other = with.stream >= plan->n_streams;
  int32_t with_stream = of_other ? with.stream - plan->n_streams : with.stream;
  const char *stream = pl_stream_word(plan, with_stream);
  long long line = machine->first_instr_line + with.instr;
  char on[64];
  if (plan->n_jobs > 1) {
    snprintf(on, sizeof on, "%s of job %d", stream, plan->streams[with_stream].job);
  } else {
    snprintf(on, sizeof on, "%s", stream);
  }
  /* An access of the body before may stand on a later line than this one. */
  bool before = machine->section == PL_BODY && with.instr >= plan->prologue.n &&
                with.epoch <= machine->epochs_before[with_stream];
  return pl_machine_fault(machine, "%s %s, %s %s at line %lld%s on stream %s%s may still be %s",
                          writes ? "writes" : "reads", what, writes ? "whose bytes" : "which",
                          instr_name(machine, pl_plan_instr_at(plan, with.instr)), line,
                          before ? " of the body before" : "", on, of_other ? " of another replica" : "",
                          conflict->with_write ? "writing" : "reading");
}

/* "exec conv1", "offload relu2.y", "record event 3". */
static const char *instr_label(const pl_machine *machine, const planc_instr *instr, char label[PL_LABEL]) {
  char what[PL_LABEL] = "";
  switch (instr->op) {
    case PLANC_INSTR_exec:
      pl_instance_label(machine, instr->id, what);
      break;
    case PLANC_INSTR_acquire:
      pl_buffer_label(machine, instr->aux, what);
      break;
    case PLANC_INSTR_record:
    case PLANC_INSTR_wait:
      append(what, "event %d", instr->id);
      break;
    default:
      append_residency(machine, instr->id == PLANC_USER ? instr->aux : instr->id, what);
  }
  label[0] = '\0';
  append(label, "%s %s", instr_name(machine, instr), what);
  return label;
}

/* The buffer of a residency, as far as it is known. */
static void append_residency(const pl_machine *machine, int32_t id, char what[PL_LABEL]) {
  if (id >= 0 && id < machine->plan->n_residencies && machine->residencies[id].buffer >= 0) {
    pl_buffer_label(machine, machine->residencies[id].buffer, what);
  } else {
    append(what, "residency %d", id);
  }
}

/* The name that people read; a copy's says which way it goes. */
static const char *instr_name(const pl_machine *machine, const planc_instr *instr) {
  if (instr->op == PLANC_INSTR_copy) return pl_copy_word(pl_way_of_copy(machine->plan, machine->acquired, instr));
  return instr->op < sizeof instr_names / sizeof *instr_names ? instr_names[instr->op] : "?";
}

/* --- Labels ------------------------------------------------------------------------------------------------------- */

const char *pl_memory_label(const pl_machine *machine, int32_t memory, char label[PL_LABEL]) {
  static const char *const names[PLANC_N_MEMORY_KINDS] = {"device", "the host", "storage", "the user"};
  planc_memory_kind kind = machine->plan->memories[memory].kind;
  label[0] = '\0';
  append(label, "%s", names[kind]);
  if (kind == PLANC_MEMORY_DEVICE) append(label, " %d", memory);
  return label;
}

const char *pl_buffer_label(const pl_machine *machine, int32_t buffer, char label[PL_LABEL]) {
  label[0] = '\0';
  if (buffer < 0 || buffer >= machine->trace->n_buffers) {
    append(label, "buffer %d, which there is not", buffer);
    return label;
  }
  const planc_buffer *of = &machine->trace->buffers[buffer];
  if (of->peer >= 0) of = &machine->trace->buffers[of->peer];
  append(label, "%s%s", planc_trace_buffer_whose(machine->trace, buffer),
         planc_trace_buffer_name(machine->trace, buffer));
  append_place(machine, of->job, of->iteration, of->round, label);
  return label;
}

const char *pl_instance_label(const pl_machine *machine, int32_t instance, char label[PL_LABEL]) {
  label[0] = '\0';
  if (instance < 0 || instance >= machine->trace->n_instances) {
    append(label, "instance %d, which there is not", instance);
    return label;
  }
  const planc_instance *of = &machine->trace->instances[instance];
  const char *name = planc_trace_op(machine->trace, instance)->name;
  static const char *const formats[] = {"%s", "the sum of %s", "the exchange of %s"};
  append(label, formats[of->role], name);
  append_place(machine, of->job, of->iteration, of->round, label);
  return label;
}

static void append_place(const pl_machine *machine, int32_t job, int32_t iteration, int32_t round,
                         char label[PL_LABEL]) {
  const planc_job *of = &machine->plan->jobs[job];
  if (of->n_rounds > 1 && round >= 0) append(label, " of round %d", round);
  if (of->iterations > 1 && iteration >= 0) append(label, " of iteration %d", iteration);
  if (machine->plan->n_jobs > 1) append(label, " of job %d", job);
}

static void append(char label[PL_LABEL], const char *format, ...) {
  size_t used = strlen(label);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(label + used, PL_LABEL - used, format, arguments);
  va_end(arguments);
}
