/* Widening bf16 operands (widen.h). */
#include "runtime/host/widen.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/bf16.h"
#include "util/math.h"

enum { PART_ALIGNMENT = 64 };

/* A bf16 operand and its widened copy. */
typedef struct widened_part {
  const rt_operand *from;
  rt_operand *to;
  int32_t tensor;
  int64_t offset;
  bool reads, writes;
} widened_part;

struct rt_widened {
  pl_arena memory;
  rt_call call; /* on widened operands */
  int32_t n_parts;
  widened_part *parts; /* inputs, outputs, effects */
  int64_t bytes;
  rt_spare *spare; /* where the parts lie; NULL: in the given call's workspace */
};

/* --- Memory beside the workspace ---------------------------------------------------------------------------------- */

void rt_spare_open(rt_spare *out) {
  *out = (rt_spare){0};
  pthread_mutex_init(&out->lock, NULL);
}

void rt_spare_close(rt_spare *spare) {
  rt_block_free(&spare->block);
  pthread_mutex_destroy(&spare->lock);
}

static planc_status enlarge(rt_spare *spare, int64_t bytes) {
  if (bytes <= spare->block.bytes) return NULL;
  rt_block_free(&spare->block);
  return rt_block_new(bytes, "bf16 operands", &spare->block);
}

/* --- Making ------------------------------------------------------------------------------------------------------- */

typedef enum side { INPUTS, OUTPUTS, EFFECTS } side;

static int32_t count_bf16(const rt_operand *operands, int32_t count);
static planc_status make(rt_widened *widened, const rt_call *call, int32_t n_parts);
static planc_status widen_all(rt_widened *widened, side of, rt_operand **operands, const int32_t *tensors,
                              int32_t count);

planc_status rt_widen(const rt_call *call, rt_widened **out) {
  *out = NULL;
  int32_t n_parts = count_bf16(call->in, call->n_in) + count_bf16(call->out, call->n_out) +
                    count_bf16(call->effects, call->n_effects);
  if (n_parts == 0) return NULL;
  rt_widened *widened = calloc(1, sizeof *widened);
  if (!widened) return planc_error(PLANC_OUT_OF_MEMORY, "prepared call");
  planc_status status = make(widened, call, n_parts);
  if (status)
    rt_widened_free(widened);
  else
    *out = widened;
  return status;
}

static planc_status make(rt_widened *widened, const rt_call *call, int32_t n_parts) {
  bool op = call->role == PLANC_ROLE_OP;
  rt_call *inner = &widened->call;
  *inner = *call;
  PLANC_TRY(PL_NEW(&widened->memory, &widened->parts, n_parts));
  PLANC_TRY(widen_all(widened, INPUTS, &inner->in, op ? call->op->in : NULL, call->n_in));
  PLANC_TRY(widen_all(widened, OUTPUTS, &inner->out, op ? call->op->out : NULL, call->n_out));
  return widen_all(widened, EFFECTS, &inner->effects, op ? call->op->effects : NULL, call->n_effects);
}

void rt_widened_free(rt_widened *widened) {
  if (!widened) return;
  pl_arena_free(&widened->memory);
  free(widened);
}

rt_call *rt_widened_call(rt_widened *widened) {
  return &widened->call;
}

int64_t rt_widened_workspace(const rt_widened *widened, int64_t bytes) {
  if (bytes == 0) return widened->bytes;
  return pl_add_saturate(pl_align_up(widened->bytes, PART_ALIGNMENT), bytes);
}

static int32_t count_bf16(const rt_operand *operands, int32_t count) {
  int32_t found = 0;
  for (int32_t i = 0; i < count; i++) found += operands[i].dtype == PLANC_DTYPE_bf16;
  return found;
}

/* A result is the same bytes as an input, or shares none with it. */
static bool same_bytes(const planc_graph *graph, int32_t a, int32_t b) {
  const planc_tensor *x = &graph->tensors[a], *y = &graph->tensors[b];
  return x->storage == y->storage && x->offset.fixed == y->offset.fixed &&
         x->offset.per_sample == y->offset.per_sample && x->bytes.fixed == y->bytes.fixed &&
         x->bytes.per_sample == y->bytes.per_sample;
}

/* Gives a part its place: that of the input among the first `n_inputs` parts that it is written over, or new memory. */
static planc_status place(rt_widened *widened, widened_part *p, int32_t n_inputs) {
  for (int32_t i = 0; i < n_inputs; i++) {
    if (!same_bytes(widened->call.graph, widened->parts[i].tensor, p->tensor)) continue;
    p->offset = widened->parts[i].offset;
    return NULL;
  }
  p->offset = pl_align_up(widened->bytes, PART_ALIGNMENT);
  if (pl_add_overflow(p->offset, p->to->bytes, &widened->bytes))
    return planc_error(PLANC_DEVICE, "the workspace does not fit 64 bits");
  return NULL;
}

/* `tensors` are the op's; an accumulation has none, and its two buffers are different ones. */
static planc_status widen_all(rt_widened *widened, side of, rt_operand **operands, const int32_t *tensors,
                              int32_t count) {
  const rt_operand *given = *operands;
  int32_t n_inputs = of == OUTPUTS && tensors ? widened->n_parts : 0;
  PLANC_TRY(PL_NEW(&widened->memory, operands, count));
  for (int32_t i = 0; i < count; i++) {
    rt_operand *to = &(*operands)[i];
    *to = given[i];
    if (given[i].dtype != PLANC_DTYPE_bf16) continue;
    to->dtype = PLANC_DTYPE_f32;
    if (pl_mul_overflow(to->elements, (int64_t)sizeof(float), &to->bytes))
      return planc_error(PLANC_DEVICE, "the workspace does not fit 64 bits");
    widened_part *p = &widened->parts[widened->n_parts];
    *p = (widened_part){.from = &given[i],
                        .to = to,
                        .tensor = tensors ? tensors[i] : -1,
                        .reads = of != OUTPUTS || given[i].accumulate,
                        .writes = of != INPUTS};
    PLANC_TRY(place(widened, p, n_inputs));
    widened->n_parts++;
  }
  return NULL;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

static void set_addresses(rt_widened *widened, char *base) {
  for (int32_t i = 0; i < widened->n_parts; i++) {
    widened_part *p = &widened->parts[i];
    p->to->data = p->from->data ? base + p->offset : NULL;
  }
}

planc_status rt_widened_bind(rt_widened *widened, const rt_call *call, rt_spare *spare, bool *out_fits) {
  *out_fits = call->workspace_bytes >= widened->bytes;
  if (!*out_fits) {
    widened->spare = spare;
    pthread_mutex_lock(&spare->lock);
    planc_status status = enlarge(spare, widened->bytes);
    pthread_mutex_unlock(&spare->lock);
    return status;
  }
  int64_t taken = pl_align_up(widened->bytes, PART_ALIGNMENT);
  bool more = call->workspace_bytes > taken;
  widened->call.workspace = more ? (char *)call->workspace + taken : NULL;
  widened->call.workspace_bytes = more ? call->workspace_bytes - taken : 0;
  set_addresses(widened, call->workspace);
  return NULL;
}

void rt_widened_begin(rt_widened *widened) {
  if (widened->spare) {
    pthread_mutex_lock(&widened->spare->lock);
    set_addresses(widened, widened->spare->block.data);
  }
  for (int32_t i = 0; i < widened->n_parts; i++) {
    const widened_part *p = &widened->parts[i];
    if (!p->reads || !p->from->data) continue;
    const uint16_t *from = p->from->data;
    float *to = p->to->data;
    for (int64_t k = 0; k < p->from->elements; k++) to[k] = rt_from_bf16(from[k]);
  }
}

void rt_widened_end(rt_widened *widened) {
  for (int32_t i = 0; i < widened->n_parts; i++) {
    const widened_part *p = &widened->parts[i];
    if (!p->writes || !p->from->data) continue;
    const float *from = p->to->data;
    uint16_t *to = p->from->data;
    for (int64_t k = 0; k < p->from->elements; k++) to[k] = rt_to_bf16(from[k]);
  }
  if (widened->spare) pthread_mutex_unlock(&widened->spare->lock);
}
