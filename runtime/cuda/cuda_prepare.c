/* How a call runs: convolutions by cuDNN, matrix products by cuBLASLt, everything else by kernels of our own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/cudnn_graph.h"

static const char own[] = "cuda";

typedef enum library { LIBRARY_NONE, LIBRARY_OWN, LIBRARY_CUDNN, LIBRARY_CUBLAS } library;

static planc_status convolution_variants(rt_device *device, const rt_call *call, rt_variant *out, int32_t *out_count);
static rt_cudnn_filter filter_of(const rt_device *device);
static library library_of(const rt_device *device, const rt_call *call, const rt_cuda_op **out_op);
static planc_status no_engine(const rt_device *device, const rt_call *call);
static int compare_variants(const void *a, const void *b);
static int64_t own_workspace(const rt_cuda_op *op, const rt_call *call);
static planc_status no_kernel(const rt_call *call);

planc_status rt_cuda_variants(rt_device *device, const rt_call *call, rt_variant *out, int32_t *out_count) {
  const rt_cuda_op *op;
  *out_count = 0;
  switch (library_of(device, call, &op)) {
    case LIBRARY_CUDNN:
      PLANC_TRY(convolution_variants(device, call, out, out_count));
      break;
    case LIBRARY_CUBLAS:
      rt_cublas_variants(call, out, out_count);
      break;
    case LIBRARY_OWN:
      *out_count = 1;
      out[0] = (rt_variant){.workspace_bytes = own_workspace(op, call), .deterministic = true};
      snprintf(out[0].algorithm, sizeof out[0].algorithm, "%s", own);
      break;
    case LIBRARY_NONE:
      break;
  }
  return *out_count > 0 ? NULL : no_kernel(call);
}

/* What cuDNN has and, where the convolution is a matrix product, what cuBLASLt has: behind cuDNN's first, as neither
 * tells how it compares with the other. */
static planc_status convolution_variants(rt_device *device, const rt_call *call, rt_variant *out, int32_t *out_count) {
  rt_cudnn_filter filter = filter_of(device);
  rt_variant products[RT_MAX_PRODUCTS];
  int32_t n;
  rt_cublas_variants(call, products, &n);
  PLANC_TRY(rt_cudnn_variants(device->cudnn, &filter, call, out, RT_MAX_VARIANTS - n, out_count));
  bool half = call->in[0].dtype != PLANC_DTYPE_f32, tf32 = planc_op_int(call->op, "tf32", 0, 0) != 0;
  for (int32_t i = 0; i < n; i++) {
    products[i].rank++;
    if (half || tf32) products[i].notes = 1U << RT_NOTE_TENSOR_CORE;
    out[(*out_count)++] = products[i];
  }
  if (*out_count == 0) return no_engine(device, call);
  qsort(out, (size_t)*out_count, sizeof *out, compare_variants);
  return NULL;
}

static bool is_cudnns(const char *algorithm);
static planc_status convolution_workspace(rt_device *device, const rt_call *call, int64_t *out_bytes);

planc_status rt_cuda_workspace(rt_device *device, const rt_call *call, int64_t *out_bytes) {
  const rt_cuda_op *op;
  *out_bytes = -1;
  library by = library_of(device, call, &op);
  if (by == LIBRARY_CUDNN && is_cudnns(call->algorithm)) return convolution_workspace(device, call, out_bytes);
  if (by == LIBRARY_CUDNN || by == LIBRARY_CUBLAS) *out_bytes = rt_cublas_workspace(call, call->algorithm);
  if (by == LIBRARY_OWN && strcmp(call->algorithm, own) == 0) *out_bytes = own_workspace(op, call);
  return NULL;
}

static bool is_cudnns(const char *algorithm) {
  return strncmp(algorithm, "cudnn-", 6) == 0;
}

static planc_status convolution_workspace(rt_device *device, const rt_call *call, int64_t *out_bytes) {
  rt_cudnn_filter filter = filter_of(device);
  planc_status status = rt_cudnn_prepare(device->cudnn, &filter, call, NULL, out_bytes);
  if (!status) return NULL;
  *out_bytes = -1;
  if (planc_status_code(status) != PLANC_DEVICE) return status;
  planc_status_free(status);
  return NULL;
}

bool rt_cuda_slow_workspace(const rt_device *device, const rt_call *call) {
  const rt_cuda_op *op;
  return library_of(device, call, &op) == LIBRARY_CUDNN && is_cudnns(call->algorithm);
}

static library library_of(const rt_device *device, const rt_call *call, const rt_cuda_op **out_op) {
  rt_cudnn_operands unused;
  *out_op = NULL;
  if (device->options.synthetic) {
    *out_op = &rt_cuda_synthetic;
    return LIBRARY_OWN;
  }
  if (call->role == PLANC_ROLE_EXCHANGE) return LIBRARY_NONE;
  if (call->role == PLANC_ROLE_ACCUMULATE) {
    *out_op = &rt_cuda_accumulate;
  } else {
    if (rt_cudnn_operands_of(call, &unused)) return LIBRARY_CUDNN;
    if (rt_cublas_takes(call)) return LIBRARY_CUBLAS;
    *out_op = rt_cuda_op_find(pl_optype_of(call->op));
  }
  return *out_op && rt_cuda_op_takes(*out_op, call) ? LIBRARY_OWN : LIBRARY_NONE;
}

static planc_status no_kernel(const rt_call *call) {
  return planc_refusal(PLANC_DEVICE, PLANC_REMEDY_SYNTHETIC,
                       "the CUDA backend has no kernel for %s with these operands",
                       planc_trace_type(call->trace, call->instance));
}

static planc_status no_engine(const rt_device *device, const rt_call *call) {
  size_t version = cudnnGetVersion();
  return planc_error(PLANC_DEVICE, "cuDNN %zu.%zu.%zu has no %sengine for %s in %s on sm_%d", version / 10000,
                     version / 100 % 100, version % 100, device->options.deterministic ? "deterministic " : "",
                     planc_trace_type(call->trace, call->instance), planc_dtype_name(call->out[0].dtype),
                     rt_cudnn_arch(device->cudnn));
}

static int64_t own_workspace(const rt_cuda_op *op, const rt_call *call) {
  return op->workspace ? op->workspace(call) : 0;
}

static rt_cudnn_filter filter_of(const rt_device *device) {
  return (rt_cudnn_filter){.deterministic = device->options.deterministic};
}

/* --- Variants ----------------------------------------------------------------------------------------------------- */

/* By workspace, then those first that give the same bits every time, then in their library's order, then by name. */
static int compare_variants(const void *a, const void *b) {
  const rt_variant *x = a, *y = b;
  if (x->workspace_bytes != y->workspace_bytes) return x->workspace_bytes < y->workspace_bytes ? -1 : 1;
  if (x->deterministic != y->deterministic) return x->deterministic ? -1 : 1;
  return x->rank != y->rank ? x->rank - y->rank : strcmp(x->algorithm, y->algorithm);
}

/* --- Preparing ---------------------------------------------------------------------------------------------------- */

static planc_status find(rt_device *device, rt_call *call, rt_cuda_prepared *out);
static planc_status warm(const rt_device *device, const rt_call *call);
static planc_status prepare_convolution(rt_device *device, rt_call *call, rt_cuda_prepared *out);
static planc_status prepare_own(rt_call *call, rt_cuda_prepared *out);

planc_status rt_cuda_prepare(rt_device *device, rt_call *call) {
  if (!device->present) return planc_error(PLANC_DEVICE, "the device is described and not there");
  rt_cuda_prepared *prepared = calloc(1, sizeof *prepared);
  if (!prepared) return planc_error(PLANC_OUT_OF_MEMORY, "prepared call");
  prepared->job = rt_call_job(call);
  prepared->next = device->prepared;
  device->prepared = prepared;
  call->handle = prepared;
  PLANC_TRY(find(device, call, prepared));
  return warm(device, call);
}

static planc_status find(rt_device *device, rt_call *call, rt_cuda_prepared *out) {
  switch (library_of(device, call, &out->op)) {
    case LIBRARY_CUDNN:
      return prepare_convolution(device, call, out);
    case LIBRARY_CUBLAS:
      return rt_cublas_prepare(device->cublas, call, &out->product);
    case LIBRARY_OWN:
      return prepare_own(call, out);
    case LIBRARY_NONE:
      break;
  }
  return no_kernel(call);
}

void rt_cuda_prepared_free(rt_device *device) {
  while (device->prepared) {
    rt_cuda_prepared *next = device->prepared->next;
    rt_cudnn_plan_free(device->prepared->convolution);
    rt_cublas_plan_free(device->prepared->product);
    if (device->prepared->scratch) cudaFree(device->prepared->scratch);
    free(device->prepared);
    device->prepared = next;
  }
}

planc_status rt_cuda_prepared_run(const rt_device *device, const rt_call *call, const rt_cuda_launch *launch) {
  const rt_cuda_prepared *prepared = call->handle;
  if (prepared->convolution) return rt_cudnn_run(device->cudnn, prepared->convolution, call, launch->stream);
  if (prepared->product) return rt_cublas_run(device->cublas, prepared->product, call, launch->stream);
  if (!prepared->op) return no_kernel(call);
  return rt_cuda_status(prepared->op->run(call, launch), call->op->type);
}

/* A plan made for a device that is described only accounts for no workspace of ours: a call then has its own, which
 * counts as taken beside the arena. */
static planc_status provide_workspace(rt_call *call, rt_cuda_prepared *prepared, int64_t bytes) {
  if (call->workspace_bytes >= bytes) return NULL;
  CUDA_TRY(cudaMalloc(&prepared->scratch, (size_t)bytes));
  call->workspace = prepared->scratch;
  call->workspace_bytes = bytes;
  return NULL;
}

static planc_status prepare_own(rt_call *call, rt_cuda_prepared *out) {
  int64_t need = own_workspace(out->op, call);
  if (call->workspace_bytes >= need || strcmp(call->algorithm, own) != 0) return provide_workspace(call, out, need);
  return planc_error(PLANC_DEVICE, "needs a workspace of %lld bytes, has %lld", (long long)need,
                     (long long)call->workspace_bytes);
}

static planc_status prepare_plainest(rt_device *device, rt_call *call, rt_variant *found, rt_cuda_prepared *out);

static planc_status prepare_convolution(rt_device *device, rt_call *call, rt_cuda_prepared *out) {
  rt_cudnn_filter filter = filter_of(device);
  int64_t bytes;
  if (is_cudnns(call->algorithm)) return rt_cudnn_prepare(device->cudnn, &filter, call, &out->convolution, &bytes);
  if (rt_cublas_has(call->algorithm)) return rt_cublas_prepare(device->cublas, call, &out->product);
  rt_variant *found = calloc(RT_MAX_VARIANTS, sizeof *found);
  if (!found) return planc_error(PLANC_OUT_OF_MEMORY, "variants");
  planc_status status = prepare_plainest(device, call, found, out);
  free(found);
  return status;
}

/* The algorithms of a plan for a device that is described only are not the libraries': they run as the convolution with
 * the least workspace. */
static planc_status prepare_plainest(rt_device *device, rt_call *call, rt_variant *found, rt_cuda_prepared *out) {
  int32_t count;
  PLANC_TRY(rt_cuda_variants(device, call, found, &count));
  PLANC_TRY(provide_workspace(call, out, found[0].workspace_bytes));
  rt_call plainest = *call;
  plainest.algorithm = found[0].algorithm;
  return prepare_convolution(device, &plainest, out);
}

/* Code is loaded, and memory taken for it, when it first runs: so it runs once now, on whatever is in the arena, and is
 * over before anything is brought there. */
static planc_status warm(const rt_device *device, const rt_call *call) {
  rt_cuda_launch launch = {.stream = rt_cuda_stream(device, 0), .scratch = rt_cuda_word(device, 0)};
  for (int32_t i = 0; i < call->n_in; i++)
    if (call->in[i].dtype == PLANC_DTYPE_i64) /* an index must be in range */
      CUDA_TRY(cudaMemsetAsync(call->in[i].data, 0, (size_t)call->in[i].bytes, launch.stream));
  PLANC_TRY(rt_cuda_prepared_run(device, call, &launch));
  return rt_cuda_status(cudaStreamSynchronize(launch.stream), call->op->type);
}
