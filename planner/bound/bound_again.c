/* What running an op again takes (bound_again.h). */
#include "planner/bound/bound_again.h"

#include "planner/choose/restorable.h"
#include "util/math.h"

enum { NONE = -1 };

int32_t pl_bound_written(const planc_order *order, int32_t buffer, int32_t version) {
  int32_t writer = pl_writer_of(order->trace, buffer, version);
  return writer == NONE ? NONE : order->first[writer];
}

/* --- Its time ----------------------------------------------------------------------------------------------------- */

static int32_t writer_again(const pl_bound_again *again, int32_t buffer, int32_t version);
static int32_t charged_buffer(const planc_trace *trace, int32_t instance);

int64_t pl_bound_again_ns(const pl_bound_again *again, int32_t buffer, int32_t version) {
  int32_t writer = writer_again(again, buffer, version);
  if (writer == NONE) return NONE;
  bool charged = charged_buffer(again->order->trace, writer) == buffer;
  return charged ? pl_bound_op_ns(&again->ops[again->order->first[writer]]) : 0;
}

/* Who writes a version and may run again for it; NONE = nobody. */
static int32_t writer_again(const pl_bound_again *again, int32_t buffer, int32_t version) {
  const planc_trace *trace = again->order->trace;
  int32_t writer = pl_writer_of(trace, buffer, version);
  bool persists = trace->buffers[buffer].flags & PLANC_BUFFER_PERSISTENT;
  bool may = !again->asked->no_recompute && !persists && writer != NONE && planc_trace_recomputable(trace, writer);
  return may ? writer : NONE;
}

/* The buffer that is charged where an instance runs again: its largest, of several the first. */
static int32_t charged_buffer(const planc_trace *trace, int32_t instance) {
  const planc_instance *of = &trace->instances[instance];
  int32_t charged = NONE;
  for (int32_t a = of->first_access; a < of->first_access + of->n_accesses; a++) {
    const planc_access *access = &trace->accesses[a];
    if (access->write < 0 || access->effect) continue;
    if (charged == NONE || trace->buffers[access->buffer].bytes > trace->buffers[charged].bytes)
      charged = access->buffer;
  }
  return charged;
}

/* --- What it reads ------------------------------------------------------------------------------------------------ */

enum { MOST_INPUTS = 24, DEPTH = 6 };

static planc_status add_inputs(pl_bound_again *again, int32_t writer, int32_t from, int32_t depth, int64_t most,
                               int32_t *out_first, int32_t *out_n);
static bool is_gone(const pl_bound_again *again, const planc_access *access, int32_t from, int32_t *out_readers);
static int32_t sent_from(const pl_bound_again *again, int32_t buffer, int32_t version);

planc_status pl_bound_find_inputs(pl_bound_again *again, int32_t buffer, int32_t version, int32_t from,
                                  int32_t *out_first, int32_t *out_n) {
  int32_t writer = writer_again(again, buffer, version);
  *out_first = *out_n = 0;
  if (writer == NONE || charged_buffer(again->order->trace, writer) != buffer) return NULL;
  return add_inputs(again, writer, from, DEPTH, again->inputs.len + MOST_INPUTS, out_first, out_n);
}

/* Those of one op stand behind each other, ahead of what their writers read. */
static planc_status add_inputs(pl_bound_again *again, int32_t writer, int32_t from, int32_t depth, int64_t most,
                               int32_t *out_first, int32_t *out_n) {
  const planc_trace *trace = again->order->trace;
  const planc_instance *in = &trace->instances[writer];
  int32_t writers[MOST_INPUTS], n = 0, first_added = (int32_t)again->inputs.len;
  for (int32_t a = in->first_access; a < in->first_access + in->n_accesses && again->inputs.len < most; a++) {
    const planc_access *access = &trace->accesses[a];
    const planc_buffer *buffer = &trace->buffers[access->buffer];
    int32_t n_readers;
    if (access->effect || access->read < 0 || !is_gone(again, access, from, &n_readers)) continue;
    int32_t own = writer_again(again, access->buffer, access->read);
    bool charged = own != NONE && charged_buffer(trace, own) == access->buffer;
    writers[n++] = charged ? own : NONE;
    VEC_PUSH(&again->inputs,
             ((pl_bound_input){.buffer = access->buffer,
                               .version = access->read,
                               .bytes = buffer->bytes,
                               .again_ns = pl_bound_again_ns(again, access->buffer, access->read),
                               .may_leave = !again->asked->no_swap || planc_user_holds(buffer, access->read),
                               .n_readers = n_readers,
                               .sent_from = depth == DEPTH ? sent_from(again, access->buffer, access->read) : NONE}));
  }
  *out_first = first_added;
  *out_n = n;
  for (int32_t k = 0; k < n && depth > 1; k++) {
    int32_t first = 0, n_inputs = 0;
    if (writers[k] != NONE) PLANC_TRY(add_inputs(again, writers[k], from, depth - 1, most, &first, &n_inputs));
    again->inputs.data[first_added + k].first_input = first;
    again->inputs.data[first_added + k].n_inputs = n_inputs;
  }
  return NULL;
}

/* Whether no op uses a version behind a position, nor anybody outside. *out_readers is how many ops read it. */
static bool is_gone(const pl_bound_again *again, const planc_access *access, int32_t from, int32_t *out_readers) {
  const planc_order *order = again->order;
  const planc_buffer *buffer = &order->trace->buffers[access->buffer];
  bool is_gone = !(buffer->flags & (PLANC_BUFFER_PERSISTENT | PLANC_BUFFER_RESULT)) && buffer->peer < 0;
  *out_readers = 0;
  for (int32_t u = order->first_use[access->buffer]; u < order->first_use[access->buffer + 1] && is_gone; u++) {
    const planc_access *use = planc_order_access(order, u);
    if (use->read != access->read) continue;
    ++*out_readers;
    is_gone = order->uses[u].position <= from;
  }
  return is_gone && *out_readers > 0;
}

/* Where another op runs between two uses, a gap of its own may be charged with the copy. */
static int32_t sent_from(const pl_bound_again *again, int32_t buffer, int32_t version) {
  const planc_order *order = again->order;
  int32_t written = pl_bound_written(order, buffer, version), last = written;
  for (int32_t u = order->first_use[buffer]; u < order->first_use[buffer + 1] && written != NONE; u++) {
    if (planc_order_access(order, u)->read != version) continue;
    if (order->uses[u].position > last + 1) return NONE;
    last = order->uses[u].position;
  }
  return written;
}

planc_status pl_bound_count_askers(pl_bound_again *again, pl_arena *arena) {
  const planc_trace *trace = again->order->trace;
  int64_t *first_version;
  int32_t *n_askers; /* by version */
  PLANC_TRY(PL_NEW(arena, &first_version, (int64_t)trace->n_buffers + 1));
  for (int32_t b = 0; b < trace->n_buffers; b++)
    first_version[b + 1] = first_version[b] + trace->buffers[b].last_version + 1;
  PLANC_TRY(PL_NEW(arena, &n_askers, first_version[trace->n_buffers]));
  for (int64_t k = 0; k < again->inputs.len; k++) {
    const pl_bound_input *input = &again->inputs.data[k];
    n_askers[first_version[input->buffer] + input->version] += input->sent_from != NONE;
  }
  for (int64_t k = 0; k < again->inputs.len; k++) {
    pl_bound_input *input = &again->inputs.data[k];
    input->n_askers = n_askers[first_version[input->buffer] + input->version];
  }
  return NULL;
}
