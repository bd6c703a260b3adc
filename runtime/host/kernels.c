/* The table of kernels. */
#include <stdlib.h>
#include <string.h>

#include "runtime/host/host_kernels.h"

/* Sorted by type. */
static const planrt_kernel table[] = {
    {"adam", planrt_adam},
    {"add", planrt_add},
    {"avgpool2d", planrt_avgpool2d},
    {"avgpool2d_grad", planrt_avgpool2d_grad},
    {"batchnorm", planrt_batchnorm},
    {"batchnorm_grad", planrt_batchnorm_grad},
    {"batchnorm_infer", planrt_batchnorm_infer},
    {"bias", planrt_bias},
    {"bias_grad", planrt_bias_grad},
    {"cast", planrt_cast},
    {"concat", planrt_concat},
    {"concat_grad", planrt_concat_grad},
    {"conv2d", planrt_conv2d},
    {"conv2d_bgrad", planrt_bias_grad},
    {"conv2d_dgrad", planrt_conv2d_dgrad},
    {"conv2d_wgrad", planrt_conv2d_wgrad},
    {"dropout", planrt_dropout},
    {"dropout_grad", planrt_dropout},
    {"embedding", planrt_embedding},
    {"embedding_grad", planrt_embedding_grad},
    {"gelu", planrt_gelu},
    {"gelu_grad", planrt_gelu_grad},
    {"layernorm", planrt_layernorm},
    {"layernorm_grad", planrt_layernorm_grad},
    {"linear", planrt_linear},
    {"linear_bgrad", planrt_linear_bgrad},
    {"linear_dgrad", planrt_linear_dgrad},
    {"linear_wgrad", planrt_linear_wgrad},
    {"matmul", planrt_matmul},
    {"matmul_nt", planrt_matmul_nt},
    {"matmul_tn", planrt_matmul_tn},
    {"maxpool2d", planrt_maxpool2d},
    {"maxpool2d_grad", planrt_maxpool2d_grad},
    {"mean", planrt_mean},
    {"mean_grad", planrt_mean_grad},
    {"momentum", planrt_momentum},
    {"position", planrt_position},
    {"position_grad", planrt_position_grad},
    {"relu", planrt_relu},
    {"relu_grad", planrt_relu_grad},
    {"sgd", planrt_sgd},
    {"softmax", planrt_softmax},
    {"softmax_grad", planrt_softmax_grad},
    {"softmax_xent", planrt_softmax_xent},
    {"softmax_xent_grad", planrt_softmax_xent_grad},
    {"transpose", planrt_transpose},
    {"upsample", planrt_upsample},
    {"upsample_grad", planrt_upsample_grad},
};

static int compare_type(const void *type, const void *kernel) {
  return strcmp(type, ((const planrt_kernel *)kernel)->type);
}

const planrt_kernel *planrt_kernel_find(const char *type) {
  return bsearch(type, table, sizeof table / sizeof *table, sizeof *table, compare_type);
}
