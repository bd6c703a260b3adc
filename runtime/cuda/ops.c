/* The table of ops that run on the backend's own kernels. */
#include "runtime/cuda/ops.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/cuda/op_families.h"

/* The dtypes of operands, a letter each: T f32 or bf16, the same wherever it stands; P that or f32; Q f32 or bf16; F
 * f32; I i64. `+` at the end: as many more like the last as there are. */
typedef struct dtypes {
  const char *in, *out, *effects;
} dtypes;

typedef struct entry {
  planrt_cuda_op op; /* first: an entry is found by its op */
  dtypes takes;
} entry;

#define RUN(type, name) \
  { type, NULL, planrt_cuda_op_##name }
#define RUN_IN(type, name) \
  { type, planrt_cuda_workspace_##name, planrt_cuda_op_##name }

/* Sorted by type. */
static const entry table[] = {
    {RUN("adam", adam), {"FQFF", "FFF", ""}},
    {RUN("add", add), {"TT", "T", ""}},
    {RUN("avgpool2d", avgpool2d), {"T", "T", ""}},
    {RUN("avgpool2d_grad", avgpool2d_grad), {"T", "T", ""}},
    {RUN_IN("batchnorm", batchnorm), {"TFF", "TFF", "FF"}},
    {RUN_IN("batchnorm_grad", batchnorm_grad), {"TFFFT", "TFF", ""}},
    {RUN_IN("batchnorm_infer", batchnorm_infer), {"TFFFF", "T", ""}},
    {RUN("bias", bias), {"TP", "T", ""}},
    {RUN_IN("bias_grad", bias_grad), {"T", "P", ""}},
    {RUN("cast", cast), {"T", "Q", ""}},
    {RUN("concat", concat), {"T+", "T", ""}},
    {RUN("concat_grad", concat_grad), {"T", "T", ""}},
    {RUN_IN("conv2d_bgrad", bias_grad), {"T", "P", ""}},
    {RUN("dropout", dropout), {"T", "T", ""}},
    {RUN("dropout_grad", dropout), {"T", "T", ""}},
    {RUN("embedding", embedding), {"IT", "T", ""}},
    {RUN_IN("embedding_grad", embedding_grad), {"IT", "T", ""}},
    {RUN("gelu", gelu), {"T", "T", ""}},
    {RUN("gelu_grad", gelu_grad), {"TT", "T", ""}},
    {RUN("layernorm", layernorm), {"TFF", "TFF", ""}},
    {RUN_IN("layernorm_grad", layernorm_grad), {"TFFFT", "TFF", ""}},
    {RUN_IN("linear_bgrad", linear_bgrad), {"T", "P", ""}},
    {RUN("maxpool2d", maxpool2d), {"T", "T", ""}},
    {RUN("maxpool2d_grad", maxpool2d_grad), {"TTT", "T", ""}},
    {RUN("mean", mean), {"T", "T", ""}},
    {RUN("mean_grad", mean_grad), {"T", "T", ""}},
    {RUN("momentum", momentum), {"FQF", "FF", ""}},
    {RUN("position", position), {"TT", "T", ""}},
    {RUN_IN("position_grad", position_grad), {"T", "T", ""}},
    {RUN("relu", relu), {"T", "T", ""}},
    {RUN("relu_grad", relu_grad), {"TT", "T", ""}},
    {RUN("sgd", sgd), {"FQ", "F", ""}},
    {RUN("softmax", softmax), {"T", "T", ""}},
    {RUN("softmax_grad", softmax_grad), {"TT", "T", ""}},
    {RUN_IN("softmax_xent", softmax_xent), {"TI", "FP", ""}},
    {RUN("softmax_xent_grad", softmax_xent_grad), {"PI", "T", ""}},
    {RUN("transpose", transpose), {"T", "T", ""}},
    {RUN("upsample", upsample), {"T", "T", ""}},
    {RUN("upsample_grad", upsample_grad), {"T", "T", ""}},
};

const planrt_cuda_op planrt_cuda_accumulate = RUN("accumulate", cast);
const planrt_cuda_op planrt_cuda_synthetic = RUN("synthetic", synthetic);
static const dtypes accumulated = {"T", "T", ""};

static int compare_type(const void *type, const void *of) {
  return strcmp(type, ((const entry *)of)->op.type);
}

const planrt_cuda_op *planrt_cuda_op_find(const char *type) {
  const entry *found = bsearch(type, table, sizeof table / sizeof *table, sizeof *table, compare_type);
  return found ? &found->op : NULL;
}

/* --- Dtypes ----------------------------------------------------------------------------------------------------- */

static bool is_float(planc_dtype dtype) {
  return dtype == PLANC_DTYPE_f32 || dtype == PLANC_DTYPE_bf16;
}

/* The letter of operand i; NUL: there are fewer. */
static char letter_at(const char *letters, int32_t i) {
  size_t length = strlen(letters);
  if (length > 0 && letters[length - 1] == '+') return letters[(size_t)i < length - 1 ? (size_t)i : length - 2];
  return letters[(size_t)i < length ? (size_t)i : length];
}

/* Checks one list; *t is the dtype that T stands for, i64 as long as none has been met. */
static bool takes_list(const char *letters, const planrt_operand *operands, int32_t count, planc_dtype *t) {
  for (int32_t i = 0; i < count; i++) {
    planc_dtype dtype = operands[i].dtype;
    switch (letter_at(letters, i)) {
      case 'T':
        if (!is_float(dtype) || (*t != PLANC_DTYPE_i64 && *t != dtype)) return false;
        *t = dtype;
        break;
      case 'P': /* after T is known */
        if (dtype != PLANC_DTYPE_f32 && dtype != *t && *t != PLANC_DTYPE_i64) return false;
        if (!is_float(dtype)) return false;
        break;
      case 'Q':
        if (!is_float(dtype)) return false;
        break;
      case 'F':
        if (dtype != PLANC_DTYPE_f32) return false;
        break;
      case 'I':
        if (dtype != PLANC_DTYPE_i64) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

bool planrt_cuda_op_takes(const planrt_cuda_op *op, const planrt_call *call) {
  if (op == &planrt_cuda_synthetic) return true;
  const dtypes *of = op == &planrt_cuda_accumulate ? &accumulated : &((const entry *)op)->takes;
  planc_dtype t = PLANC_DTYPE_i64;
  /* Twice: what stands before the first T is held to it too. */
  for (int pass = 0; pass < 2; pass++)
    if (!takes_list(of->in, call->in, call->n_in, &t) || !takes_list(of->out, call->out, call->n_out, &t) ||
        !takes_list(of->effects, call->effects, call->n_effects, &t))
      return false;
  return true;
}

/* --- Beside ops ------------------------------------------------------------------------------------------------- */

cudaError_t planrt_cuda_add_bias(cudaStream_t stream, planc_dtype dtype, void *y, const void *bias,
                                 planc_dtype bias_dtype, int64_t outer, int64_t channels, int64_t inner) {
  return planrt_cuda_bias(stream, planrt_cuda_dtype_of(dtype), planrt_cuda_dtype_of(bias_dtype),
                          (planrt_cuda_channels){outer, channels, inner}, y, bias, y);
}
