/* Instructions in plans (instr_rows.h). One function writes and one reads each kind of row; they stand side by side
 * because they must agree byte for byte. */
#include "plan/instr_rows.h"

#include <assert.h>

static_assert(PLANC_PLAN_MAX_STREAMS - 1 <= INT16_MAX, "a stream fits planc_instr.stream");
static_assert(PLANC_PLAN_MAX_MEMORIES - 1 <= INT16_MAX, "a memory fits planc_instr.memory");

static void emit_exec(pl_emit *emit, const planc_plan *plan, const planc_instr *instr, int32_t n_uses);
static void emit_acquire(pl_emit *emit, const planc_instr *instr);
static void emit_release(pl_emit *emit, const planc_instr *instr);
static void emit_copy(pl_emit *emit, const planc_instr *instr);
static void emit_record(pl_emit *emit, const planc_instr *instr);
static void emit_wait(pl_emit *emit, const planc_instr *instr);
static planc_status read_exec(pl_row *row, const planc_plan *plan, int32_t *uses, int32_t *n_uses, planc_instr *out);
static planc_status read_acquire(pl_row *row, const planc_plan *plan, planc_instr *out);
static planc_status read_release(pl_row *row, const planc_plan *plan, planc_instr *out);
static planc_status read_wait(pl_row *row, const planc_plan *plan, planc_instr *out);
static planc_status read_record(pl_row *row, const planc_plan *plan, planc_instr *out);
static planc_status read_copy(pl_row *row, const planc_plan *plan, planc_instr *out);

void pl_instr_emit(pl_emit *emit, const planc_plan *plan, const planc_instr *instr, int32_t n_uses) {
  switch ((planc_instr_op)instr->op) {
    case PLANC_INSTR_exec:
      emit_exec(emit, plan, instr, n_uses);
      return;
    case PLANC_INSTR_acquire:
      emit_acquire(emit, instr);
      return;
    case PLANC_INSTR_release:
      emit_release(emit, instr);
      return;
    case PLANC_INSTR_copy:
      emit_copy(emit, instr);
      return;
    case PLANC_INSTR_record:
      emit_record(emit, instr);
      return;
    case PLANC_INSTR_wait:
      emit_wait(emit, instr);
      return;
  }
  pl_emit_fail(emit, planc_error(PLANC_INTERNAL, "a plan with an instruction of unknown kind %d", instr->op));
}

planc_status pl_instr_read(pl_row *row, const planc_plan *plan, int32_t *uses, int32_t *n_uses, planc_instr *out) {
  *out = (planc_instr){0};
  planc_status status;
  PLANC_TRY(ROW_LITERAL(row, "{\"i\":\""));
  if (ROW_ACCEPTS(row, "exec\"")) {
    status = read_exec(row, plan, uses, n_uses, out);
  } else if (ROW_ACCEPTS(row, "acquire\"")) {
    status = read_acquire(row, plan, out);
  } else if (ROW_ACCEPTS(row, "release\"")) {
    status = read_release(row, plan, out);
  } else if (ROW_ACCEPTS(row, "wait\"")) {
    status = read_wait(row, plan, out);
  } else if (ROW_ACCEPTS(row, "record\"")) {
    status = read_record(row, plan, out);
  } else if (ROW_ACCEPTS(row, "copy\"")) {
    status = read_copy(row, plan, out);
  } else {
    status = pl_row_error(row, row->at, "not an instruction");
  }
  return status ? status : ROW_END(row, "}");
}

/* --- exec --------------------------------------------------------------------------------------------------------- */

static void emit_exec(pl_emit *emit, const planc_plan *plan, const planc_instr *instr, int32_t n_uses) {
  EMIT_INT(emit, "{\"i\":\"exec\",\"n\":", instr->id);
  if (instr->recompute) EMIT(emit, ",\"re\":1");
  EMIT_INT(emit, ",\"a\":", instr->aux);
  EMIT_INT(emit, ",\"s\":", instr->stream);
  EMIT_INT(emit, ",\"ws\":", instr->address);
  EMIT_INT(emit, ",\"wsb\":", instr->bytes);
  EMIT_INT(emit, ",\"t\":", instr->time_ns);
  EMIT_INT(emit, ",\"busy\":", instr->busy_ppm);
  EMIT(emit, ",\"use\":");
  pl_emit_ints(emit, plan->uses + instr->first_use, n_uses);
  EMIT(emit, "}\n");
}

static planc_status read_stream(pl_row *row, const planc_plan *plan, planc_instr *out) {
  int32_t stream;
  PLANC_TRY(ROW_INT32(row, ",\"s\":", 0, plan->n_streams - 1, &stream));
  out->stream = (int16_t)stream;
  return NULL;
}

static planc_status read_exec(pl_row *row, const planc_plan *plan, int32_t *uses, int32_t *n_uses, planc_instr *out) {
  out->op = PLANC_INSTR_exec;
  out->first_use = *n_uses;
  PLANC_TRY(ROW_INT32(row, ",\"n\":", 0, INT32_MAX, &out->id));
  out->recompute = ROW_ACCEPTS(row, ",\"re\":1");
  PLANC_TRY(ROW_INT32(row, ",\"a\":", 0, plan->n_algorithms - 1, &out->aux));
  PLANC_TRY(read_stream(row, plan, out));
  PLANC_TRY(ROW_INT64(row, ",\"ws\":", 0, PL_ROW_MAX, &out->address));
  PLANC_TRY(ROW_INT64(row, ",\"wsb\":", 0, PL_ROW_MAX, &out->bytes));
  PLANC_TRY(ROW_INT64(row, ",\"t\":", 0, PL_ROW_MAX, &out->time_ns));
  PLANC_TRY(ROW_INT64(row, ",\"busy\":", 0, PL_ROW_MAX, &out->busy_ppm));
  PLANC_TRY(ROW_LITERAL(row, ",\"use\":["));
  while (!ROW_ACCEPTS(row, "]")) {
    int64_t residency;
    if (*n_uses > out->first_use) PLANC_TRY(ROW_LITERAL(row, ","));
    const char *place = row->at;
    PLANC_TRY(pl_row_int(row, -1, (int64_t)plan->n_residencies - 1, &residency));
    if (*n_uses == plan->n_uses) return pl_row_error(row, place, "more uses than the header's %d", plan->n_uses);
    uses[(*n_uses)++] = (int32_t)residency;
  }
  return NULL;
}

/* --- Residencies -------------------------------------------------------------------------------------------------- */

static planc_status read_residency(pl_row *row, const planc_plan *plan, planc_instr *out) {
  return ROW_INT32(row, ",\"r\":", 0, plan->n_residencies - 1, &out->id);
}

static void emit_acquire(pl_emit *emit, const planc_instr *instr) {
  EMIT_INT(emit, "{\"i\":\"acquire\",\"r\":", instr->id);
  EMIT_INT(emit, ",\"b\":", instr->aux);
  EMIT_INT(emit, ",\"m\":", instr->memory);
  EMIT_INT(emit, ",\"at\":", instr->address);
  EMIT_INT(emit, ",\"bytes\":", instr->bytes);
  EMIT(emit, "}\n");
}

static planc_status read_acquire(pl_row *row, const planc_plan *plan, planc_instr *out) {
  int32_t memory;
  out->op = PLANC_INSTR_acquire;
  PLANC_TRY(read_residency(row, plan, out));
  PLANC_TRY(ROW_INT32(row, ",\"b\":", 0, INT32_MAX, &out->aux));
  PLANC_TRY(ROW_INT32(row, ",\"m\":", 0, plan->n_memories - 1, &memory));
  out->memory = (int16_t)memory;
  PLANC_TRY(ROW_INT64(row, ",\"at\":", 0, PL_ROW_MAX, &out->address));
  return ROW_INT64(row, ",\"bytes\":", 0, PL_ROW_MAX, &out->bytes);
}

static void emit_release(pl_emit *emit, const planc_instr *instr) {
  EMIT_INT(emit, "{\"i\":\"release\",\"r\":", instr->id);
  EMIT(emit, "}\n");
}

static planc_status read_release(pl_row *row, const planc_plan *plan, planc_instr *out) {
  out->op = PLANC_INSTR_release;
  return read_residency(row, plan, out);
}

/* --- Copies ------------------------------------------------------------------------------------------------------- */

static void emit_copy(pl_emit *emit, const planc_instr *instr) {
  EMIT_INT(emit, "{\"i\":\"copy\",\"r\":", instr->id);
  EMIT_INT(emit, ",\"from\":", instr->aux);
  if (instr->peers) EMIT(emit, ",\"peers\":1");
  EMIT_INT(emit, ",\"bytes\":", instr->bytes);
  if (instr->time_ns > 0) EMIT_INT(emit, ",\"t\":", instr->time_ns);
  EMIT_INT(emit, ",\"s\":", instr->stream);
  EMIT(emit, "}\n");
}

static planc_status read_copy(pl_row *row, const planc_plan *plan, planc_instr *out) {
  out->op = PLANC_INSTR_copy;
  PLANC_TRY(ROW_INT32(row, ",\"r\":", PLANC_USER, plan->n_residencies - 1, &out->id));
  PLANC_TRY(ROW_INT32(row, ",\"from\":", PLANC_USER, plan->n_residencies - 1, &out->aux));
  out->peers = ROW_ACCEPTS(row, ",\"peers\":1");
  PLANC_TRY(ROW_INT64(row, ",\"bytes\":", 0, PL_ROW_MAX, &out->bytes));
  const char *place = row->at;
  if (ROW_ACCEPTS(row, ",\"t\":")) {
    row->at = place;
    PLANC_TRY(ROW_INT64(row, ",\"t\":", 1, PL_ROW_MAX, &out->time_ns));
  }
  return read_stream(row, plan, out);
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static void emit_record(pl_emit *emit, const planc_instr *instr) {
  EMIT_INT(emit, "{\"i\":\"record\",\"e\":", instr->id);
  EMIT_INT(emit, ",\"s\":", instr->stream);
  EMIT(emit, "}\n");
}

static planc_status read_record(pl_row *row, const planc_plan *plan, planc_instr *out) {
  out->op = PLANC_INSTR_record;
  PLANC_TRY(ROW_INT32(row, ",\"e\":", 0, plan->n_events - 1, &out->id));
  return read_stream(row, plan, out);
}

static void emit_wait(pl_emit *emit, const planc_instr *instr) {
  EMIT_INT(emit, "{\"i\":\"wait\",\"e\":", instr->id);
  if (instr->lag) EMIT_INT(emit, ",\"lag\":", instr->lag);
  if (instr->peers) EMIT(emit, ",\"peers\":1");
  EMIT_INT(emit, ",\"s\":", instr->stream);
  EMIT(emit, "}\n");
}

static planc_status read_wait(pl_row *row, const planc_plan *plan, planc_instr *out) {
  out->op = PLANC_INSTR_wait;
  PLANC_TRY(ROW_INT32(row, ",\"e\":", 0, plan->n_events - 1, &out->id));
  const char *place = row->at;
  out->lag = ROW_ACCEPTS(row, ",\"lag\":1");
  if (ROW_ACCEPTS(row, ",\"lag\":0")) return pl_row_error(row, place, "a lag of 0, which is left out: plan again");
  out->peers = ROW_ACCEPTS(row, ",\"peers\":1");
  return read_stream(row, plan, out);
}
