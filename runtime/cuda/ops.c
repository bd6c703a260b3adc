/* The table of ops that run on the backend's own kernels. */
#include "runtime/cuda/ops.h"

#include <string.h>

#include "runtime/cuda/op_families.h"

/* The dtypes of operands, a letter each: T f32 or bf16, the same wherever it stands; P that or f32; Q f32 or bf16; F
 * f32; I i64. `+` at the end: as many more like the last as there are. */
typedef struct dtypes {
  const char *in, *out, *effects;
} dtypes;

typedef struct entry {
  rt_cuda_op op; /* first: an entry is found by its op */
  dtypes takes;
} entry;

#define RUN(name) \
  { NULL, rt_cuda_op_##name }
#define RUN_IN(name) \
  { rt_cuda_workspace_##name, rt_cuda_op_##name }

static const entry table[PL_N_OPTYPES] = {
    [PL_OPTYPE_adam] = {RUN(adam), {"FQFF", "FFF", ""}},
    [PL_OPTYPE_add] = {RUN(add), {"TT", "T", ""}},
    [PL_OPTYPE_affine] = {RUN(affine), {"T", "T", ""}},
    [PL_OPTYPE_affine_grad] = {RUN(affine_grad), {"T", "T", ""}},
    [PL_OPTYPE_avgpool2d] = {RUN(avgpool2d), {"T", "T", ""}},
    [PL_OPTYPE_avgpool2d_grad] = {RUN(avgpool2d_grad), {"T", "T", ""}},
    [PL_OPTYPE_batchnorm] = {RUN_IN(batchnorm), {"TFF", "TFF", "FF"}},
    [PL_OPTYPE_batchnorm_grad] = {RUN_IN(batchnorm_grad), {"TFFFT", "TFF", ""}},
    [PL_OPTYPE_batchnorm_infer] = {RUN_IN(batchnorm_infer), {"TFFFF", "T", ""}},
    [PL_OPTYPE_bias] = {RUN(bias), {"TP", "T", ""}},
    [PL_OPTYPE_bias_grad] = {RUN_IN(bias_grad), {"T", "P", ""}},
    [PL_OPTYPE_cast] = {RUN(cast), {"T", "Q", ""}},
    [PL_OPTYPE_concat] = {RUN(concat), {"T+", "T", ""}},
    [PL_OPTYPE_concat_grad] = {RUN(concat_grad), {"T", "T", ""}},
    [PL_OPTYPE_conv2d_bgrad] = {RUN_IN(bias_grad), {"T", "P", ""}},
    [PL_OPTYPE_dropout] = {RUN(dropout), {"T", "T", ""}},
    [PL_OPTYPE_dropout_grad] = {RUN(dropout), {"T", "T", ""}},
    [PL_OPTYPE_embedding] = {RUN(embedding), {"IT", "T", ""}},
    [PL_OPTYPE_embedding_grad] = {RUN_IN(embedding_grad), {"IT", "T", ""}},
    [PL_OPTYPE_expand] = {RUN(expand), {"T", "T", ""}},
    [PL_OPTYPE_expand_grad] = {RUN(expand_grad), {"T", "T", ""}},
    [PL_OPTYPE_gelu] = {RUN(gelu), {"T", "T", ""}},
    [PL_OPTYPE_gelu_grad] = {RUN(gelu_grad), {"TT", "T", ""}},
    [PL_OPTYPE_layernorm] = {RUN(layernorm), {"TFF", "TFF", ""}},
    [PL_OPTYPE_layernorm_grad] = {RUN_IN(layernorm_grad), {"TFFFT", "TFF", ""}},
    [PL_OPTYPE_linear_bgrad] = {RUN_IN(linear_bgrad), {"T", "P", ""}},
    [PL_OPTYPE_maxpool2d] = {RUN(maxpool2d), {"T", "T", ""}},
    [PL_OPTYPE_maxpool2d_grad] = {RUN(maxpool2d_grad), {"TTT", "T", ""}},
    [PL_OPTYPE_mean] = {RUN(mean), {"T", "T", ""}},
    [PL_OPTYPE_mean_grad] = {RUN(mean_grad), {"T", "T", ""}},
    [PL_OPTYPE_momentum] = {RUN(momentum), {"FQF", "FF", ""}},
    [PL_OPTYPE_mse] = {RUN_IN(mse), {"TT", "F", ""}},
    [PL_OPTYPE_mse_grad] = {RUN(mse_grad), {"TT", "T", ""}},
    [PL_OPTYPE_mul] = {RUN(mul), {"TT", "T", ""}},
    [PL_OPTYPE_position] = {RUN(position), {"TT", "T", ""}},
    [PL_OPTYPE_position_grad] = {RUN_IN(position_grad), {"T", "T", ""}},
    [PL_OPTYPE_relu] = {RUN(relu), {"T", "T", ""}},
    [PL_OPTYPE_relu_grad] = {RUN(relu_grad), {"TT", "T", ""}},
    [PL_OPTYPE_sgd] = {RUN(sgd), {"FQ", "F", ""}},
    [PL_OPTYPE_sigmoid] = {RUN(sigmoid), {"T", "T", ""}},
    [PL_OPTYPE_sigmoid_grad] = {RUN(sigmoid_grad), {"TT", "T", ""}},
    [PL_OPTYPE_softmax] = {RUN(softmax), {"T", "T", ""}},
    [PL_OPTYPE_softmax_grad] = {RUN(softmax_grad), {"TT", "T", ""}},
    [PL_OPTYPE_softmax_xent] = {RUN_IN(softmax_xent), {"TI", "FP", ""}},
    [PL_OPTYPE_softmax_xent_grad] = {RUN(softmax_xent_grad), {"PI", "T", ""}},
    [PL_OPTYPE_split] = {RUN(split), {"T", "T+", ""}},
    [PL_OPTYPE_tanh] = {RUN(tanh), {"T", "T", ""}},
    [PL_OPTYPE_tanh_grad] = {RUN(tanh_grad), {"TT", "T", ""}},
    [PL_OPTYPE_transpose] = {RUN(transpose), {"T", "T", ""}},
    [PL_OPTYPE_upsample] = {RUN(upsample), {"T", "T", ""}},
    [PL_OPTYPE_upsample_grad] = {RUN(upsample_grad), {"T", "T", ""}},
};

const rt_cuda_op rt_cuda_accumulate = RUN(cast);
const rt_cuda_op rt_cuda_synthetic = RUN(synthetic);
static const dtypes accumulated = {"T", "T", ""};

const rt_cuda_op *rt_cuda_op_find(pl_optype_id type) {
  return table[type].op.run ? &table[type].op : NULL;
}

static bool takes_list(const char *letters, const rt_operand *operands, int32_t count, planc_dtype *t);

bool rt_cuda_op_takes(const rt_cuda_op *op, const rt_call *call) {
  if (op == &rt_cuda_synthetic) return true;
  const dtypes *of = op == &rt_cuda_accumulate ? &accumulated : &((const entry *)op)->takes;
  planc_dtype t = PLANC_DTYPE_i64;
  /* Twice: what stands before the first T is held to it too. */
  for (int pass = 0; pass < 2; pass++)
    if (!takes_list(of->in, call->in, call->n_in, &t) || !takes_list(of->out, call->out, call->n_out, &t) ||
        !takes_list(of->effects, call->effects, call->n_effects, &t))
      return false;
  return true;
}

/* --- Dtypes ------------------------------------------------------------------------------------------------------- */

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
static bool takes_list(const char *letters, const rt_operand *operands, int32_t count, planc_dtype *t) {
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

/* --- Beside ops --------------------------------------------------------------------------------------------------- */

cudaError_t rt_cuda_add_bias(cudaStream_t stream, planc_dtype dtype, void *y, const void *bias, planc_dtype bias_dtype,
                             int64_t outer, int64_t channels, int64_t inner) {
  return rt_cuda_bias(stream, rt_cuda_dtype_of(dtype), rt_cuda_dtype_of(bias_dtype),
                      (rt_cuda_channels){outer, channels, inner}, y, bias, y);
}
