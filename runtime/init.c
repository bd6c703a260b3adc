/* Initial values of params and state, by what the ops use them for. */
#include <math.h>
#include <string.h>

#include "graph/optypes.h"
#include "runtime/bf16.h"
#include "runtime/random.h"
#include "runtime/session.h"

typedef enum value { ZERO, ONE, HE_UNIFORM, SMALL_NORMAL } value;

/* What the k-th input of an op type starts as; of side effects `input` is -1 - k. */
static const struct role {
  pl_optype_id type;
  int32_t input;
  value value;
} roles[] = {
    {PL_OPTYPE_conv2d, 1, HE_UNIFORM},
    {PL_OPTYPE_conv2d, 2, ZERO},
    {PL_OPTYPE_linear, 1, HE_UNIFORM},
    {PL_OPTYPE_linear, 2, ZERO},
    {PL_OPTYPE_bias, 1, ZERO},
    {PL_OPTYPE_batchnorm, 1, ONE},
    {PL_OPTYPE_batchnorm, 2, ZERO},
    {PL_OPTYPE_batchnorm, -1, ZERO},
    {PL_OPTYPE_batchnorm, -2, ONE},
    {PL_OPTYPE_batchnorm_infer, 1, ONE},
    {PL_OPTYPE_batchnorm_infer, 2, ZERO},
    {PL_OPTYPE_batchnorm_infer, 3, ZERO},
    {PL_OPTYPE_batchnorm_infer, 4, ONE},
    {PL_OPTYPE_layernorm, 1, ONE},
    {PL_OPTYPE_layernorm, 2, ZERO},
    {PL_OPTYPE_embedding, 1, SMALL_NORMAL},
    {PL_OPTYPE_position, 1, SMALL_NORMAL},
    {PL_OPTYPE_momentum, 2, ZERO},
    {PL_OPTYPE_adam, 2, ZERO},
    {PL_OPTYPE_adam, 3, ZERO},
};

static void assign_unknown(const planc_tensor *tensor, int64_t bytes, uint64_t seed, char *home);
static void spread(const planrt_session *session, int32_t job);
static void init_operand(planrt_session *session, int32_t job, const int32_t *cast_from, const planc_op *op,
                         int32_t input);

planc_status planrt_init(planrt_session *session) {
  rt_failures_forget(&session->failures);
  for (int32_t j = 0; j < session->trace->n_jobs; j++) PLANC_TRY(rt_init_job(session, j));
  return NULL;
}

planc_status rt_init_job(planrt_session *session, int32_t job) {
  const planc_job *of = &session->trace->jobs[job];
  const planc_graph *graph = of->graph;
  int32_t *cast_from; /* by tensor: what a cast made it from, -1 for others */
  for (int32_t s = 0; s < graph->n_storages; s++) {
    char *home = rt_home(session, 0, job, s);
    int64_t bytes = planc_law_at(graph->storages[s].bytes, of->batch);
    if (home) assign_unknown(&graph->tensors[graph->storages[s].tensor], bytes, session->options.seed, home);
  }
  PLANC_TRY(PL_NEW(&session->memory, &cast_from, graph->n_tensors));
  for (int32_t t = 0; t < graph->n_tensors; t++) cast_from[t] = -1;
  for (int32_t o = 0; o < graph->n_ops; o++)
    if (pl_optype_of(&graph->ops[o]) == PL_OPTYPE_cast) cast_from[graph->ops[o].out[0]] = graph->ops[o].in[0];
  for (int32_t o = 0; o < graph->n_ops; o++) {
    const planc_op *op = &graph->ops[o];
    for (int32_t k = 0; k < op->n_in; k++) init_operand(session, job, cast_from, op, k);
    for (int32_t k = 0; k < op->n_effects; k++) init_operand(session, job, cast_from, op, -1 - k);
  }
  spread(session, job);
  return NULL;
}

/* Uniform in [-bound, bound), drawn by the tensor's name. */
static void draw(const planc_tensor *tensor, uint64_t seed, float bound, void *out, int64_t elements) {
  uint64_t key = rt_key(seed, tensor->name);
  for (int64_t i = 0; i < elements; i++)
    rt_real_put(tensor->dtype, out, i, (2.0F * rt_uniform(key, (uint64_t)i) - 1.0F) * bound);
}

/* Normal with mean 0 (Box and Muller, 1958), drawn by the tensor's name. */
static void draw_normal(const planc_tensor *tensor, uint64_t seed, double deviation, void *out, int64_t elements) {
  static const double two_pi = 6.283185307179586;
  uint64_t key = rt_key(seed, tensor->name);
  for (int64_t i = 0; i < elements; i++) {
    double radius = sqrt(-2 * log(1 - (double)rt_uniform(key, 2 * (uint64_t)i)));
    double angle = two_pi * (double)rt_uniform(key, 2 * (uint64_t)i + 1);
    rt_real_put(tensor->dtype, out, i, (float)(deviation * radius * cos(angle)));
  }
}

static void assign(const planc_tensor *tensor, int64_t batch, uint64_t seed, value v, char *home) {
  int64_t elements = planc_law_at(tensor->bytes, batch) / planc_dtype_bytes(tensor->dtype);
  void *out = home + planc_law_at(tensor->offset, batch);
  if (v == HE_UNIFORM) {
    /* Output units come first: K,C,R,S or O,I. */
    int64_t units = tensor->rank > 0 ? planc_law_at(tensor->dims[0], batch) : 1;
    int64_t fan_in = units > 0 ? elements / units : 1;
    draw(tensor, seed, sqrtf(6.0F / (float)(fan_in > 0 ? fan_in : 1)), out, elements);
  } else if (v == SMALL_NORMAL) {
    /* Radford et al., Improving language understanding by generative pre-training, 2018, 4.1. */
    draw_normal(tensor, seed, 0.02, out, elements);
  } else {
    for (int64_t i = 0; i < elements; i++) rt_real_put(tensor->dtype, out, i, v == ONE ? 1.0F : 0.0F);
  }
}

/* What no known op uses: small, or random bits where it is no real number. */
static void assign_unknown(const planc_tensor *tensor, int64_t bytes, uint64_t seed, char *home) {
  if (rt_is_real(tensor->dtype)) {
    draw(tensor, seed, 0.05F, home, bytes / planc_dtype_bytes(tensor->dtype));
    return;
  }
  uint64_t key = rt_key(seed, tensor->name);
  for (int64_t i = 0; i < bytes; i++) home[i] = (char)rt_random(key, (uint64_t)i);
}

/* `cast_from` as in rt_init_job. */
static void init_operand(planrt_session *session, int32_t job, const int32_t *cast_from, const planc_op *op,
                         int32_t input) {
  const planc_job *of = &session->trace->jobs[job];
  int32_t operand = input < 0 ? op->effects[-1 - input] : op->in[input];
  const planc_tensor *tensor = &of->graph->tensors[cast_from[operand] >= 0 ? cast_from[operand] : operand];
  char *home = rt_home(session, 0, job, tensor->storage);
  if (!home || !rt_is_real(tensor->dtype)) return;
  for (size_t r = 0; r < sizeof roles / sizeof *roles; r++)
    if (roles[r].input == input && roles[r].type == pl_optype_of(op))
      assign(tensor, of->batch, session->options.seed, roles[r].value, home);
}

/* From the first replica to the others. */
static void spread(const planrt_session *session, int32_t job) {
  rt_homes at = {.storage = -1};
  while (rt_next_home(session, job, &at))
    if (at.replica > 0) memcpy(at.home, rt_home(session, 0, job, at.storage), (size_t)at.bytes);
}
