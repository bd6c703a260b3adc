/* Convolutions by cuDNN's backend API. Which engine runs one, and with which knobs, is decided when the plan is made
 * and stands in the algorithm's name (cudnn_config.h). What a configuration needs is asked of cuDNN through its
 * device-property descriptor, so that all but running works for a device that is described and not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/cudnn_config.h"
#include "runtime/shape.h"
#include "util/json_tree.h"

enum { MAX_CONFIGS = 256, HEAD = 40 };

struct rt_cudnn {
  cudnnHandle_t handle; /* NULL: the device is not there */
  int32_t arch;
  char head[HEAD]; /* what every algorithm's name begins with: "cudnn-9.19.0-sm90-e" */
  rt_cudnn_pile pile;
  cudnnBackendDescriptor_t device;
};

struct rt_cudnn_plan {
  rt_cudnn_pile pile;
  cudnnBackendDescriptor_t plan, operands;
};

static planc_status open_cudnn(rt_cudnn *cudnn, const char *properties);
static planc_status describe_device(rt_cudnn *cudnn, const char *properties);
static planc_status find_arch(rt_cudnn *cudnn);
static planc_status read_properties(const rt_cudnn *cudnn, char **out);

planc_status rt_cudnn_open(const char *properties, rt_cudnn **out) {
  rt_cudnn *cudnn = calloc(1, sizeof *cudnn);
  *out = NULL;
  if (!cudnn) return planc_error(PLANC_OUT_OF_MEMORY, "cuDNN");
  planc_status status = open_cudnn(cudnn, properties);
  if (status)
    rt_cudnn_close(cudnn);
  else
    *out = cudnn;
  return status;
}

static planc_status open_cudnn(rt_cudnn *cudnn, const char *properties) {
  if (!properties) PLANC_TRY(rt_cudnn_status(cudnnCreate(&cudnn->handle), "cudnnCreate"));
  PLANC_TRY(describe_device(cudnn, properties));
  PLANC_TRY(find_arch(cudnn));
  size_t version = cudnnGetVersion();
  snprintf(cudnn->head, sizeof cudnn->head, "cudnn-%zu.%zu.%zu-sm%d-e", version / 10000, version / 100 % 100,
           version % 100, cudnn->arch);
  return NULL;
}

void rt_cudnn_close(rt_cudnn *cudnn) {
  if (!cudnn) return;
  rt_cudnn_pile_free(&cudnn->pile);
  if (cudnn->handle) cudnnDestroy(cudnn->handle);
  free(cudnn);
}

int32_t rt_cudnn_arch(const rt_cudnn *cudnn) {
  return cudnn->arch;
}

planc_status rt_cudnn_properties(char **out) {
  rt_cudnn *cudnn;
  planc_status status = rt_cudnn_open(NULL, &cudnn);
  if (!cudnn) return status;
  status = read_properties(cudnn, out);
  rt_cudnn_close(cudnn);
  return status;
}

/* --- The library -------------------------------------------------------------------------------------------------- */

static planc_status describe_device(rt_cudnn *cudnn, const char *properties) {
  PLANC_TRY(rt_cudnn_new(&cudnn->pile, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &cudnn->device));
  PLANC_TRY(properties
                ? rt_cudnn_set(cudnn->device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                               (int64_t)strlen(properties), properties)
                : rt_cudnn_set(cudnn->device, CUDNN_ATTR_DEVICEPROP_HANDLE, CUDNN_TYPE_HANDLE, 1, &cudnn->handle));
  return rt_cudnn_finalize(cudnn->device, "device properties");
}

static planc_status read_properties(const rt_cudnn *cudnn, char **out) {
  enum { ROOM = 1 << 16 };
  int64_t length = 0;
  *out = calloc(1, ROOM + 1);
  if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "device properties");
  planc_status status =
      rt_cudnn_status(cudnnBackendGetAttribute(cudnn->device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                               CUDNN_TYPE_CHAR, ROOM, &length, *out),
                      "device properties");
  if (!status) return NULL;
  free(*out);
  *out = NULL;
  return status;
}

/* Compute capability 9.0 is 900 to cuDNN, and sm_90 to everybody else. */
static planc_status find_arch(rt_cudnn *cudnn) {
  char *text;
  planc_status status = read_properties(cudnn, &text);
  if (!text) return status;
  cJSON *properties;
  status = pl_json_tree(text, strlen(text), NULL, &properties);
  free(text);
  PLANC_TRY(planc_context(status, "cuDNN: device properties"));
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(properties, "deviceVer");
  cudnn->arch = cJSON_IsNumber(version) ? version->valueint / 10 : 0;
  cJSON_Delete(properties);
  return cudnn->arch > 0 ? NULL : planc_error(PLANC_DEVICE, "cuDNN: device properties without a version");
}

/* --- Variants ----------------------------------------------------------------------------------------------------- */

typedef struct listing {
  rt_cudnn *cudnn;
  const rt_cudnn_filter *filter;
  const rt_call *call;
  cudnnBackendDescriptor_t graph;
  rt_cudnn_pile pile;
  rt_variant *out;
  int32_t room, n;
} listing;

static planc_status list_mode(listing *l, cudnnBackendHeurMode_t mode);
static cudnnBackendDescriptor_t description_of(const rt_cudnn *cudnn);
static planc_status list_config(listing *l, cudnnBackendDescriptor_t from);
static bool admits(const rt_cudnn_filter *filter, const rt_call *call, const rt_cudnn_config *config, uint32_t notes,
                   bool deterministic);
static bool is_listed(const listing *l, const char *algorithm);
static planc_status measure(const rt_cudnn *cudnn, const rt_cudnn_filter *filter, const rt_call *call,
                            const rt_cudnn_config *from, int64_t *out_bytes);

planc_status rt_cudnn_variants(rt_cudnn *cudnn, const rt_cudnn_filter *filter, const rt_call *call, rt_variant *out,
                               int32_t room, int32_t *out_count) {
  static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK};
  listing l = {.cudnn = cudnn, .filter = filter, .call = call, .out = out, .room = room};
  planc_status status = rt_cudnn_graph_of(&l.pile, cudnn->handle, call, false, &l.graph);
  for (size_t m = 0; !status && m < sizeof modes / sizeof *modes; m++) status = list_mode(&l, modes[m]);
  rt_cudnn_pile_free(&l.pile);
  *out_count = l.n;
  return status;
}

static planc_status list_mode(listing *l, cudnnBackendHeurMode_t mode) {
  int32_t before = l->pile.n;
  cudnnBackendDescriptor_t device = description_of(l->cudnn), heuristics, configs[MAX_CONFIGS];
  int64_t count = 0;
  PLANC_TRY(rt_cudnn_new(&l->pile, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics));
  PLANC_TRY(
      rt_cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &l->graph));
  PLANC_TRY(rt_cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
  if (device)
    PLANC_TRY(rt_cudnn_set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device));
  PLANC_TRY(rt_cudnn_finalize(heuristics, "heuristics"));
  for (int i = 0; i < MAX_CONFIGS; i++)
    PLANC_TRY(rt_cudnn_new(&l->pile, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]));
  PLANC_TRY(rt_cudnn_get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGS, configs,
                         &count));
  for (int64_t i = 0; i < count && l->n < l->room; i++) PLANC_TRY(list_config(l, configs[i]));
  rt_cudnn_cut(&l->pile, before);
  return NULL;
}

/* Adds a configuration that the heuristics have proposed, if it can be built by its name, as a plan has it. */
static planc_status list_config(listing *l, cudnnBackendDescriptor_t from) {
  int32_t before = l->pile.n;
  rt_cudnn_config found;
  rt_variant *variant = &l->out[l->n];
  *variant = (rt_variant){.rank = l->n};
  planc_status status = rt_cudnn_config_read(&l->pile, from, &found, &variant->notes, &variant->deterministic);
  if (!status && admits(l->filter, l->call, &found, variant->notes, variant->deterministic) &&
      rt_cudnn_config_name(&found, l->cudnn->head, variant->algorithm, sizeof variant->algorithm) &&
      !is_listed(l, variant->algorithm)) {
    status = rt_cudnn_config_named(variant->algorithm, l->cudnn->head, &found);
    if (!status) status = measure(l->cudnn, l->filter, l->call, &found, &variant->workspace_bytes);
    if (!status) l->n++;
  }
  rt_cudnn_cut(&l->pile, before);
  if (planc_status_code(status) != PLANC_DEVICE) return status;
  planc_status_free(status); /* the heuristics propose what an engine then does not take */
  return NULL;
}

/* What a device that is there tells by its handle, one that is described only tells by its properties. */
static cudnnBackendDescriptor_t description_of(const rt_cudnn *cudnn) {
  return cudnn->handle ? NULL : cudnn->device;
}

/* --- Plans -------------------------------------------------------------------------------------------------------- */

static bool transforms_untold(const rt_call *call, int64_t engine);
static bool rounds_parts(const rt_call *call, const rt_cudnn_config *config);

/* f32 means f32: engines that round operands or sums to less are for ops that ask for TF32, or have half operands. */
static bool admits(const rt_cudnn_filter *filter, const rt_call *call, const rt_cudnn_config *config, uint32_t notes,
                   bool deterministic) {
  if (filter->deterministic && !deterministic) return false;
  if (notes & 1U << RT_NOTE_REDUCED_REDUCTION || rounds_parts(call, config)) return false;
  bool exact = call->out[0].dtype == PLANC_DTYPE_f32 && planc_op_int(call->op, "tf32", 0, 0) == 0;
  return !exact ||
         !(notes & (1U << RT_NOTE_TENSOR_CORE | 1U << RT_NOTE_DOWN_CONVERT) || transforms_untold(call, config->engine));
}

/* Engine 17 of weight gradients transforms tiles and has no note that says so. With filters of 3x3 it is as exact as
 * others; with 5x5 it was off by 1e-3 of the largest result, 117 times what a sum in any order may be (H200, cuDNN
 * 9.19.0; the same with TF32 ruled out). */
static bool transforms_untold(const rt_call *call, int64_t engine) {
  pl_conv conv;
  enum { UNTOLD = 17 };
  return engine == UNTOLD && pl_conv_of(call->graph, call->op, &conv) && conv.direction == PL_CONV_WGRAD &&
         (conv.r != 3 || conv.s != 3);
}

/* Where a product is split along its depth the parts of a half result are added up in it, and rounded each time: in 111
 * parts a weight gradient in bf16 was off by 2 % of the largest (engine 47, H200, cuDNN 9.19.0). Notes say nothing of
 * it. Engines that have a buffer for the parts (SPLIT_K_BUF) state their number by another knob (SPLIT_K_SLC). */
static bool rounds_parts(const rt_call *call, const rt_cudnn_config *config) {
  for (int32_t k = 0; k < config->n_knobs; k++)
    if (config->knobs[k].type == CUDNN_KNOB_TYPE_SPLIT_K && config->knobs[k].value > 1)
      return call->out[0].dtype != PLANC_DTYPE_f32;
  return false;
}

static planc_status make_plan(const rt_cudnn *cudnn, rt_cudnn_pile *pile, cudnnBackendDescriptor_t of,
                              cudnnBackendDescriptor_t *out, int64_t *out_workspace) {
  PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, out));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of));
  PLANC_TRY(cudnn->handle ? rt_cudnn_set(*out, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &cudnn->handle)
                          : rt_cudnn_set(*out, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                         &cudnn->device));
  PLANC_TRY(rt_cudnn_finalize(*out, "execution plan"));
  return rt_cudnn_get(*out, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, out_workspace, NULL);
}

/* A plan by name for a graph. */
static planc_status build(const rt_cudnn *cudnn, const rt_cudnn_filter *filter, rt_cudnn_pile *pile,
                          const rt_call *call, const rt_cudnn_config *from, bool adds, cudnnBackendDescriptor_t *out,
                          int64_t *out_workspace) {
  cudnnBackendDescriptor_t graph, chosen;
  rt_cudnn_config back;
  uint32_t notes;
  bool deterministic;
  PLANC_TRY(rt_cudnn_graph_of(pile, cudnn->handle, call, adds, &graph));
  PLANC_TRY(rt_cudnn_config_make(pile, graph, description_of(cudnn), from, &chosen));
  PLANC_TRY(rt_cudnn_config_read(pile, chosen, &back, &notes, &deterministic));
  if (filter->deterministic && !deterministic)
    return planc_error(PLANC_DEVICE,
                       "engine %lld is not deterministic, so its bits cannot be verified: a profile of deterministic "
                       "algorithms alone makes plans with others",
                       (long long)from->engine);
  if (!admits(filter, call, from, notes, deterministic))
    return planc_error(PLANC_DEVICE, "engine %lld rounds more than %s does: a profile measured anew is without it",
                       (long long)from->engine, planc_dtype_name(call->out[0].dtype));
  return make_plan(cudnn, pile, chosen, out, out_workspace);
}

static bool can_add(const rt_call *call) {
  return call->op->flags & PLANC_OP_ACCUMULATES;
}

/* Raises *bytes to what the call needs when it adds, or when it does not. */
static planc_status measure_one(const rt_cudnn *cudnn, const rt_cudnn_filter *filter, const rt_call *call,
                                const rt_cudnn_config *from, bool adds, int64_t *bytes) {
  rt_cudnn_pile pile = {0};
  cudnnBackendDescriptor_t plan;
  int64_t need = 0;
  planc_status status = build(cudnn, filter, &pile, call, from, adds, &plan, &need);
  if (need > *bytes) *bytes = need;
  rt_cudnn_pile_free(&pile);
  return status;
}

/* A plan states one workspace whether or not the op adds: the larger. */
static planc_status measure(const rt_cudnn *cudnn, const rt_cudnn_filter *filter, const rt_call *call,
                            const rt_cudnn_config *from, int64_t *out_bytes) {
  *out_bytes = 0;
  PLANC_TRY(measure_one(cudnn, filter, call, from, false, out_bytes));
  return can_add(call) ? measure_one(cudnn, filter, call, from, true, out_bytes) : NULL;
}

static bool is_listed(const listing *l, const char *algorithm) {
  for (int32_t i = 0; i < l->n; i++)
    if (strcmp(l->out[i].algorithm, algorithm) == 0) return true;
  return false;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* Where the operands and the workspace of a call are: fixed when it is prepared. */
static planc_status pack(rt_cudnn_plan *plan, const rt_call *call, int64_t workspace) {
  rt_cudnn_operands operands;
  rt_cudnn_operands_of(call, &operands);
  const int64_t names[] = {RT_CUDNN_X, RT_CUDNN_W, RT_CUDNN_Y};
  void *data[] = {operands.x->data, operands.w->data, operands.y->data};
  void *at = workspace > 0 ? call->workspace : NULL;
  PLANC_TRY(rt_cudnn_new(&plan->pile, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &plan->operands));
  PLANC_TRY(
      rt_cudnn_set(plan->operands, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, RT_CUDNN_OPERANDS, names));
  PLANC_TRY(rt_cudnn_set(plan->operands, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, RT_CUDNN_OPERANDS,
                         data));
  PLANC_TRY(rt_cudnn_set(plan->operands, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &at));
  return rt_cudnn_finalize(plan->operands, "variant pack");
}

/* What an algorithm's name leaves out, whether this op adds, is asked about the other way too: a workspace is refused
 * that would not do for both. */
static planc_status prepare(const rt_cudnn *cudnn, const rt_cudnn_filter *filter, const rt_call *call,
                            const rt_cudnn_config *from, rt_cudnn_plan *plan, int64_t *out_workspace) {
  int64_t bytes = 0;
  bool adds = call->out[0].accumulate;
  *out_workspace = 0;
  if (can_add(call)) PLANC_TRY(measure_one(cudnn, filter, call, from, !adds, out_workspace));
  PLANC_TRY(build(cudnn, filter, &plan->pile, call, from, adds, &plan->plan, &bytes));
  if (bytes > *out_workspace) *out_workspace = bytes;
  if (call->workspace_bytes < *out_workspace)
    return planc_error(PLANC_DEVICE, "needs a workspace of %lld bytes, has %lld", (long long)*out_workspace,
                       (long long)call->workspace_bytes);
  return pack(plan, call, bytes);
}

planc_status rt_cudnn_prepare(rt_cudnn *cudnn, const rt_cudnn_filter *filter, const rt_call *call, rt_cudnn_plan **out,
                              int64_t *out_workspace) {
  rt_cudnn_config from;
  if (out) *out = NULL;
  PLANC_TRY(rt_cudnn_config_named(call->algorithm, cudnn->head, &from));
  if (!out) return measure(cudnn, filter, call, &from, out_workspace);
  rt_cudnn_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return planc_error(PLANC_OUT_OF_MEMORY, "cuDNN plan");
  planc_status status = prepare(cudnn, filter, call, &from, plan, out_workspace);
  if (status)
    rt_cudnn_plan_free(plan);
  else
    *out = plan;
  return status;
}

planc_status rt_cudnn_run(const rt_cudnn *cudnn, const rt_cudnn_plan *plan, const rt_call *call, cudaStream_t stream) {
  PLANC_TRY(rt_cudnn_status(cudnnSetStream(cudnn->handle, stream), "stream"));
  PLANC_TRY(rt_cudnn_status(cudnnBackendExecute(cudnn->handle, plan->plan, plan->operands), "execution"));
  rt_cudnn_operands operands;
  if (!rt_cudnn_operands_of(call, &operands) || !operands.bias) return NULL;
  rt_channels shape = rt_channels_of(call, operands.output);
  return rt_cuda_status(rt_cuda_add_bias(stream, operands.output->dtype, operands.output->data, operands.bias->data,
                                         operands.bias->dtype, shape.outer, shape.channels, shape.inner),
                        "bias");
}

void rt_cudnn_plan_free(rt_cudnn_plan *plan) {
  if (!plan) return;
  rt_cudnn_pile_free(&plan->pile);
  free(plan);
}
