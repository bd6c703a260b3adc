/* oneDNN for the host backend: convolution, matrix products, normalisation, pooling.
 *
 * A primitive is created once per call with user-mode scratchpad; all that it needs beside its operands (scratchpad,
 * operands in the layout it wants, a gradient to be added) lies in the call's workspace. Running allocates nothing but
 * what oneDNN itself takes in passing (argument lists, blocks that its matrix products pack), and stays on the calling
 * thread. planrt_host_library() says which oneDNN it is. */
#ifndef PLANRT_HOST_DNNL_H
#define PLANRT_HOST_DNNL_H

#include "runtime/backend.h"

typedef struct planrt_dnnl_engine planrt_dnnl_engine; /* one per device */
typedef struct planrt_dnnl planrt_dnnl;               /* a call ready to run */

planc_status planrt_dnnl_engine_new(planrt_dnnl_engine **out);
void planrt_dnnl_engine_free(planrt_dnnl_engine *engine);

/* The algorithms oneDNN has for a call ("dnnl", for convolutions "dnnl-direct", "dnnl-gemm", "dnnl-winograd"), with
 * exact workspaces, least first; *out_count is 0 when it has none. */
planc_status planrt_dnnl_variants(planrt_dnnl_engine *engine, const planrt_call *call, planrt_variant *out,
                                  int32_t *out_count);
/* Makes a call with one of these algorithms ready; *out is NULL when its algorithm is not one of oneDNN's. DEVICE when
 * oneDNN cannot run it, or the workspace is too small. The call is borrowed. */
planc_status planrt_dnnl_prepare(planrt_dnnl_engine *engine, const planrt_call *call, planrt_dnnl **out);
/* May be called by any thread, but not by two at once for the same call. */
planc_status planrt_dnnl_run(const planrt_dnnl *prepared, const planrt_launch *launch);
void planrt_dnnl_free(planrt_dnnl *prepared);

#endif
