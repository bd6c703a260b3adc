/* Orders (order.h): the trace's own, another one of its instances, and what a schedule runs. */
#include "planc/order.h"

#include <assert.h>
#include <stdlib.h>

#include "util/arena.h"

enum { NONE = -1 };

/* An order with the memory that it owns. */
typedef struct order_memory {
  planc_order order;
  pl_arena arena;
} order_memory;

/* Fills the runs of an order; `user` is its own. */
typedef void (*lister)(const void *user, planc_order_run *runs);

static planc_status make(const planc_trace *trace, int32_t n, lister list, const void *user, planc_order **out);
static planc_status check_versions(const planc_order *order);

void planc_order_free(planc_order *order) {
  if (!order) return;
  order_memory *memory = (order_memory *)order;
  pl_arena_free(&memory->arena);
  free(memory);
}

/* --- Whose order -------------------------------------------------------------------------------------------------- */

static void list_trace(const void *user, planc_order_run *runs) {
  const planc_trace *trace = user;
  for (int32_t i = 0; i < trace->n_instances; i++) runs[i].instance = i;
}

planc_status planc_order_of_trace(const planc_trace *trace, planc_order **out) {
  return make(trace, trace->n_instances, list_trace, trace, out);
}

bool planc_order_is_of_trace(const planc_order *order) {
  bool same = order->n == order->trace->n_instances;
  for (int32_t p = 0; same && p < order->n; p++) same = order->runs[p].instance == p;
  return same;
}

typedef struct instances {
  const int32_t *numbers;
  int32_t n;
} instances;

static planc_status check_numbers(const planc_trace *trace, const int32_t *numbers);
static void list_instances(const void *user, planc_order_run *runs);
static planc_status check_once(const planc_order *order);

planc_status planc_order_of_instances(const planc_trace *trace, const int32_t *numbers, planc_order **out) {
  instances of = {numbers, trace->n_instances};
  *out = NULL;
  PLANC_TRY(check_numbers(trace, numbers));
  PLANC_TRY(make(trace, of.n, list_instances, &of, out));
  assert(*out);
  planc_status status = check_once(*out);
  if (!status) status = check_versions(*out);
  if (!status) return NULL;
  planc_order_free(*out);
  *out = NULL;
  return status;
}

static void list_instances(const void *user, planc_order_run *runs) {
  const instances *of = user;
  for (int32_t p = 0; p < of->n; p++) runs[p].instance = of->numbers[p];
}

static planc_status check_numbers(const planc_trace *trace, const int32_t *numbers) {
  for (int32_t p = 0; p < trace->n_instances; p++) {
    if (numbers[p] >= 0 && numbers[p] < trace->n_instances) continue;
    return planc_error(PLANC_BAD_INPUT, "position %d of the order: the trace has no instance %d", p, numbers[p]);
  }
  return NULL;
}

/* As many as there are instances: one that stands twice leaves another one out. */
static planc_status check_once(const planc_order *order) {
  for (int32_t p = 0; p < order->n; p++) {
    int32_t instance = order->runs[p].instance;
    if (order->first[instance] == p) continue;
    return planc_error(PLANC_BAD_INPUT, "position %d of the order: op %s (round %d) has run before", p,
                       planc_trace_op(order->trace, instance)->name, order->trace->instances[instance].round);
  }
  return NULL;
}

static void list_commands(const void *user, planc_order_run *runs) {
  const planc_schedule *schedule = user;
  const planc_command *commands = planc_schedule_commands(schedule);
  int32_t n = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(schedule); c++) {
    if (commands[c].kind == PLANC_CMD_EXEC)
      runs[n++] = (planc_order_run){.instance = commands[c].instance, .recompute = commands[c].recompute};
  }
}

planc_status planc_order_of_schedule(const planc_schedule *schedule, planc_order **out) {
  const planc_command *commands = planc_schedule_commands(schedule);
  int32_t n = 0;
  for (int32_t c = 0; c < planc_schedule_n_commands(schedule); c++) n += commands[c].kind == PLANC_CMD_EXEC;
  return make(planc_schedule_trace(schedule), n, list_commands, schedule, out);
}

/* --- Versions ----------------------------------------------------------------------------------------------------- */

/* Whether every access meets the version that it meets in the trace; current[] is by buffer. */
static planc_status follow_versions(const planc_order *order, int32_t *current) {
  const planc_trace *trace = order->trace;
  for (int32_t p = 0; p < order->n; p++) {
    const planc_instance *in = planc_order_instance(order, p);
    for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
      const planc_access *access = &trace->accesses[a];
      int32_t met = access->read >= 0 ? access->read : access->write - 1;
      if (current[access->buffer] != met)
        return planc_error(PLANC_BAD_INPUT, "position %d of the order: op %s (round %d) meets version %d of %s, not %d",
                           p, planc_trace_op(trace, access->instance)->name, in->round, current[access->buffer],
                           planc_trace_buffer_name(trace, access->buffer), met);
      if (access->write >= 0) current[access->buffer] = access->write;
    }
  }
  return NULL;
}

static planc_status check_versions(const planc_order *order) {
  int32_t *current = calloc((size_t)order->trace->n_buffers + 1, sizeof *current);
  if (!current) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = follow_versions(order, current);
  free(current);
  return status;
}

/* --- What follows from the runs ----------------------------------------------------------------------------------- */

static planc_status fill(order_memory *memory, lister list, const void *user);
static planc_status find_first(order_memory *memory);
static planc_status sort_uses(order_memory *memory);
static bool is_use(const planc_order *order, int32_t position, int32_t access);

static planc_status make(const planc_trace *trace, int32_t n, lister list, const void *user, planc_order **out) {
  *out = NULL;
  order_memory *memory = calloc(1, sizeof *memory);
  if (!memory) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  memory->order = (planc_order){.trace = trace, .n = n};
  planc_status status = fill(memory, list, user);
  if (status) {
    planc_order_free(&memory->order);
    return status;
  }
  *out = &memory->order;
  return NULL;
}

static planc_status fill(order_memory *memory, lister list, const void *user) {
  planc_order_run *runs;
  PLANC_TRY(PL_NEW(&memory->arena, &runs, memory->order.n));
  list(user, runs);
  memory->order.runs = runs;
  PLANC_TRY(find_first(memory));
  return sort_uses(memory);
}

static planc_status find_first(order_memory *memory) {
  planc_order *order = &memory->order;
  int32_t *first;
  PLANC_TRY(PL_NEW(&memory->arena, &first, order->trace->n_instances));
  for (int32_t i = 0; i < order->trace->n_instances; i++) first[i] = NONE;
  for (int32_t p = order->n - 1; p >= 0; p--) first[order->runs[p].instance] = p;
  order->first = first;
  return NULL;
}

/* Counts every buffer's uses, then puts each where those of the buffers before it and its own so far end. */
static planc_status sort_uses(order_memory *memory) {
  planc_order *order = &memory->order;
  const planc_trace *trace = order->trace;
  int32_t *end; /* per buffer, from index 1 on: of its uses so far */
  int64_t n = 0;
  planc_order_use *uses;
  PLANC_TRY(PL_NEW(&memory->arena, &end, (int64_t)trace->n_buffers + 2));
  for (int32_t p = 0; p < order->n; p++) n += planc_order_instance(order, p)->n_accesses;
  if (n > INT32_MAX) return planc_error(PLANC_INTERNAL, "more than %d uses", INT32_MAX);
  PLANC_TRY(PL_NEW(&memory->arena, &uses, n));
  for (int32_t pass = 0; pass < 2; pass++) {
    for (int32_t p = 0; p < order->n; p++) {
      const planc_instance *in = planc_order_instance(order, p);
      for (int32_t a = in->first_access; a < in->first_access + in->n_accesses; a++) {
        int32_t buffer = trace->accesses[a].buffer;
        if (!is_use(order, p, a)) continue;
        if (pass == 0) end[buffer + 2]++;
        if (pass == 1) uses[end[buffer + 1]++] = (planc_order_use){.position = p, .access = a};
      }
    }
    for (int32_t b = 0; pass == 0 && b < trace->n_buffers; b++) end[b + 2] += end[b + 1];
  }
  order->first_use = end;
  order->uses = uses;
  return NULL;
}

static bool is_use(const planc_order *order, int32_t position, int32_t access) {
  return !(order->runs[position].recompute && order->trace->accesses[access].effect);
}

int32_t planc_order_use_from(const planc_order *order, int32_t buffer, int32_t position) {
  int32_t low = order->first_use[buffer], high = order->first_use[buffer + 1];
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (order->uses[middle].position < position)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
