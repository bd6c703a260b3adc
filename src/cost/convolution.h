/* Convolution algorithms: time and workspace of each at a shape and batch.
 *
 * Below, N is the batch, C and K the input and output channels, R x S the kernel, P x Q the plane of the convolution's
 * output, and e the bytes of an element. "cuDNN" marks formulas that give the workspace cuDNN asked for on a P100, to
 * about the 2 MiB it adds for padding, in the measured tables published with Monet (Shah et al., 2021); it has no
 * explicit GEMM for the gradients and no tiled FFT for the weight gradient, where the same formulas are used.
 *
 *  implicit-gemm  one matrix product that gathers its operand as it goes. Workspace 0. (cuDNN)
 *  gemm           im2col, then a matrix product; the data gradient the other way round (product, then col2im).
 *                 Workspace: the column buffer of the whole batch, e N C R S P Q (cuDNN); none for a 1x1 kernel with
 *                 stride 1 and no padding, where the tensor itself is the column matrix, an image at a time in NCHW.
 *  depthwise      every output on its own, as frameworks' kernels for one input channel in a group do: a product per
 *                 group would fill a row of each of its tiles. Workspace 0.
 *  winograd       F(4x4, 3x3), not fused (Lavin and Gray, 2016): transforms 6x6 tiles, does 36 matrix products, and
 *                 transforms back; 4 times fewer multiplications. For 3x3, stride 1, dilation 1, padding up to 2.
 *                 Workspace: 4 x 36 (T N' (C + K) + C K), T tiles of 4x4 in a plane of the result (for the weight
 *                 gradient: of the output gradient), N' = N rounded up to 16, or N for the weight gradient. (cuDNN)
 *  fft            overlapping tiles of 32x32, transformed to 32 x 17 complex numbers (Mathieu et al., 2014), one matrix
 *                 product per frequency. For stride 1, dilation 1, kernels up to 31 but not 1x1, padding less than
 *                 the kernel. Workspace: 8 x 32 x 17 (min(T, 2) N (C + K) + C K), T tiles of (33 - R) x (33 - S) in
 *                 the plane: two tiles of every image are in work at a time. (cuDNN, "FFT tiling")
 *
 * Transforms are kept in f32 whatever e is. Only the first three take groups or strides. Each algorithm is a chain of
 * kernels on the roofline, transforms in f32 where others may round to TF32; all are taken to be deterministic (for the
 * gradients: the deterministic ones of cuDNN). */
#ifndef PLANC_COST_CONVOLUTION_H
#define PLANC_COST_CONVOLUTION_H

#include "cost/profile.h"

enum { PL_MAX_CONV_VARIANTS = 4 }; /* those with groups have no transforms */

/* The batch-dependent side of a convolution. */
typedef struct pl_conv_case {
  const pl_conv *conv;
  planc_layout layout;
  planc_dtype dtype;
  bool tf32;   /* f32 factors may be rounded to TF32 */
  bool scalar; /* by kernels without tensor cores: f16, bf16 and TF32 at f32's rate */
  int64_t images;
} pl_conv_case;

/* One input channel in every group. */
bool pl_conv_is_depthwise(const pl_conv *conv);
/* Fills `out` with the variants that the shape allows and gives their number. Figures too large are INT64_MAX. */
int32_t pl_conv_variants(const planc_profile *profile, const pl_conv_case *of, planc_variant out[PL_MAX_CONV_VARIANTS]);
/* Implicit GEMM on tensor cores: at the half rate for f16 and bf16, for f32 at that of TF32. */
planc_variant pl_conv_tensor_core(const planc_profile *profile, const pl_conv_case *of);

#endif
