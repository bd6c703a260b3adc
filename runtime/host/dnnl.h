/* oneDNN for the host backend: convolution, matrix products, normalisation, pooling.
 *
 * A primitive is created once per call with user-mode scratchpad; all that it needs beside its operands (scratchpad,
 * operands in the layout it wants, a gradient to be added) lies in the call's workspace. Running allocates nothing but
 * what oneDNN itself takes in passing (argument lists, blocks that its matrix products pack), and stays on the calling
 * thread. planrt_host_library() says which oneDNN it is. */
#ifndef PLANRT_HOST_DNNL_H
#define PLANRT_HOST_DNNL_H

#include "runtime/backend.h"

typedef struct rt_dnnl_engine rt_dnnl_engine; /* one per device */
typedef struct rt_dnnl rt_dnnl;               /* a call ready to run */

planc_status rt_dnnl_engine_new(rt_dnnl_engine **out);
void rt_dnnl_engine_free(rt_dnnl_engine *engine);

/* The algorithms oneDNN has for a call ("dnnl", for convolutions "dnnl-direct", "dnnl-gemm", "dnnl-winograd"), with
 * exact workspaces, least first; *out_count is 0 when it has none. */
planc_status rt_dnnl_variants(rt_dnnl_engine *engine, const rt_call *call, rt_variant *out, int32_t *out_count);
/* Makes a call with one of these algorithms ready; *out is NULL when its algorithm is not one of oneDNN's. DEVICE when
 * oneDNN cannot run it, or the workspace is too small. The call is borrowed. */
planc_status rt_dnnl_prepare(rt_dnnl_engine *engine, const rt_call *call, rt_dnnl **out);
/* May be called by any thread, but not by two at once for the same call. */
planc_status rt_dnnl_run(const rt_dnnl *prepared, const rt_launch *launch);
void rt_dnnl_free(rt_dnnl *prepared);

#endif
