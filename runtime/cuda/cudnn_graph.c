/* Operation graphs (cudnn_graph.h): three tensors, a convolution descriptor, one operation. */
#include "runtime/cuda/cudnn_graph.h"

#include <stdlib.h>

#include "graph/optypes.h"
#include "runtime/shape.h"

planc_status rt_cudnn_status(cudnnStatus_t code, const char *what) {
  if (code == CUDNN_STATUS_SUCCESS) return NULL;
  char detail[256] = "";
  cudnnGetLastErrorString(detail, sizeof detail);
  return planc_error(code == CUDNN_STATUS_ALLOC_FAILED ? PLANC_OUT_OF_MEMORY : PLANC_DEVICE, "cuDNN: %s: %s%s%s", what,
                     cudnnGetErrorString(code), *detail ? ": " : "", detail);
}

/* --- Descriptors -------------------------------------------------------------------------------------------------- */

planc_status rt_cudnn_new(rt_cudnn_pile *pile, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
  *out = NULL;
  if (pile->n == pile->room) {
    int32_t room = pile->room ? 2 * pile->room : 32;
    void *grown = realloc(pile->all, (size_t)room * sizeof *pile->all);
    if (!grown) return planc_error(PLANC_OUT_OF_MEMORY, "descriptors");
    pile->all = grown;
    pile->room = room;
  }
  PLANC_TRY(rt_cudnn_status(cudnnBackendCreateDescriptor(type, out), "descriptor"));
  pile->all[pile->n++] = *out;
  return NULL;
}

planc_status rt_cudnn_set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  return rt_cudnn_status(cudnnBackendSetAttribute(of, name, type, count, values), "attribute");
}

planc_status rt_cudnn_get(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type, int64_t room, void *out, int64_t *out_count) {
  int64_t count = 0;
  PLANC_TRY(rt_cudnn_status(cudnnBackendGetAttribute(of, name, type, room, &count, out), "attribute"));
  if (out_count) *out_count = count < room ? count : room;
  return NULL;
}

planc_status rt_cudnn_finalize(cudnnBackendDescriptor_t descriptor, const char *what) {
  return rt_cudnn_status(cudnnBackendFinalize(descriptor), what);
}

void rt_cudnn_cut(rt_cudnn_pile *pile, int32_t keep) {
  while (pile->n > keep) cudnnBackendDestroyDescriptor(pile->all[--pile->n]);
}

void rt_cudnn_pile_free(rt_cudnn_pile *pile) {
  rt_cudnn_cut(pile, 0);
  free(pile->all);
  *pile = (rt_cudnn_pile){0};
}

/* --- Operands ----------------------------------------------------------------------------------------------------- */

static bool data_type_of(planc_dtype dtype, cudnnDataType_t *out) {
  *out = dtype == PLANC_DTYPE_bf16  ? CUDNN_DATA_BFLOAT16
         : dtype == PLANC_DTYPE_f16 ? CUDNN_DATA_HALF
                                    : CUDNN_DATA_FLOAT;
  return dtype == PLANC_DTYPE_bf16 || dtype == PLANC_DTYPE_f16 || dtype == PLANC_DTYPE_f32;
}

bool rt_cudnn_operands_of(const rt_call *call, rt_cudnn_operands *out) {
  pl_conv conv;
  cudnnDataType_t unused;
  if (call->role != PLANC_ROLE_OP || !pl_conv_of(call->graph, call->op, &conv)) return false;
  bool dgrad = conv.direction == PL_CONV_DGRAD, wgrad = conv.direction == PL_CONV_WGRAD;
  *out = (rt_cudnn_operands){.x = dgrad ? &call->out[0] : &call->in[0],
                             .w = wgrad   ? &call->out[0]
                                  : dgrad ? &call->in[0]
                                          : &call->in[1],
                             .y = dgrad || wgrad ? &call->in[1] : &call->out[0],
                             .bias = !dgrad && !wgrad && call->n_in > 2 ? &call->in[2] : NULL,
                             .output = &call->out[0]};
  const rt_operand *all[] = {out->x, out->w, out->y};
  for (int i = 0; i < RT_CUDNN_OPERANDS; i++)
    if (all[i]->rank != 4 || all[i]->elements == 0 || !data_type_of(all[i]->dtype, &unused)) return false;
  return true;
}

/* The three directions' names for the same things. */
typedef struct direction {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, window, x, w, y;
} direction;

static const direction directions[] = {
    [PL_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [PL_CONV_DGRAD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [PL_CONV_WGRAD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

/* --- The operation ------------------------------------------------------------------------------------------------ */

static planc_status tensor_of(rt_cudnn_pile *pile, const rt_call *call, const rt_operand *operand, int64_t name,
                              cudnnBackendDescriptor_t *out);
static planc_status window_of(rt_cudnn_pile *pile, const pl_conv *conv, cudnnBackendDescriptor_t *out);

planc_status rt_cudnn_graph_of(rt_cudnn_pile *pile, cudnnHandle_t handle, const rt_call *call, bool adds,
                               cudnnBackendDescriptor_t *out) {
  pl_conv conv;
  rt_cudnn_operands operands;
  if (!pl_conv_of(call->graph, call->op, &conv) || !rt_cudnn_operands_of(call, &operands))
    return planc_error(PLANC_INTERNAL, "not a convolution");
  const direction *to = &directions[conv.direction];
  const float alpha = 1.0F, beta = adds ? 1.0F : 0.0F;
  cudnnBackendDescriptor_t x, w, y, window, operation;
  PLANC_TRY(tensor_of(pile, call, operands.x, RT_CUDNN_X, &x));
  PLANC_TRY(tensor_of(pile, call, operands.w, RT_CUDNN_W, &w));
  PLANC_TRY(tensor_of(pile, call, operands.y, RT_CUDNN_Y, &y));
  PLANC_TRY(window_of(pile, &conv, &window));
  PLANC_TRY(rt_cudnn_new(pile, to->type, &operation));
  PLANC_TRY(rt_cudnn_set(operation, to->alpha, CUDNN_TYPE_FLOAT, 1, &alpha));
  PLANC_TRY(rt_cudnn_set(operation, to->beta, CUDNN_TYPE_FLOAT, 1, &beta));
  PLANC_TRY(rt_cudnn_set(operation, to->window, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &window));
  PLANC_TRY(rt_cudnn_set(operation, to->x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x));
  PLANC_TRY(rt_cudnn_set(operation, to->w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w));
  PLANC_TRY(rt_cudnn_set(operation, to->y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y));
  PLANC_TRY(rt_cudnn_finalize(operation, "operation"));
  PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, out));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation));
  if (handle) PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
  return rt_cudnn_finalize(*out, "operation graph");
}

/* Operands begin at multiples of RT_ALIGNMENT, views where their storage has them. */
static int64_t alignment_of(const rt_operand *operand) {
  enum { MOST = 16 };
  int64_t bytes = MOST;
  while (operand->offset % bytes) bytes /= 2;
  return bytes;
}

static planc_status tensor_of(rt_cudnn_pile *pile, const rt_call *call, const rt_operand *operand, int64_t name,
                              cudnnBackendDescriptor_t *out) {
  rt_image image = rt_image_of(call, operand);
  int64_t dims[] = {image.n, image.c, image.h, image.w}, strides[] = {image.sn, image.sc, image.sy, image.sx};
  int64_t alignment = alignment_of(operand);
  cudnnDataType_t type;
  data_type_of(operand->dtype, &type);
  PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment));
  return rt_cudnn_finalize(*out, "tensor");
}

static planc_status window_of(rt_cudnn_pile *pile, const pl_conv *conv, cudnnBackendDescriptor_t *out) {
  const int64_t rank = 2, pad[] = {conv->pad_h, conv->pad_w}, stride[] = {conv->stride_h, conv->stride_w},
                dilation[] = {conv->dilation_h, conv->dilation_w};
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  PLANC_TRY(rt_cudnn_new(pile, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, out));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &rank));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, rank, pad));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, rank, pad));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, rank, dilation));
  PLANC_TRY(rt_cudnn_set(*out, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, rank, stride));
  return rt_cudnn_finalize(*out, "convolution");
}
