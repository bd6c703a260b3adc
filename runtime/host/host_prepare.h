/* Calls made ready for the host: a plain kernel or a primitive of oneDNN. */
#ifndef PLANRT_HOST_PREPARE_H
#define PLANRT_HOST_PREPARE_H

#include "runtime/host/dnnl.h"
#include "runtime/host/host_kernels.h"
#include "runtime/host/widen.h"

/* What a call's handle points to. */
typedef struct planrt_prepared {
  const planrt_kernel *kernel; /* or */
  planrt_dnnl *dnnl;
  planrt_widened *widened; /* NULL: the operands are taken as they are */
  struct planrt_prepared *next;
} planrt_prepared;

/* All that a device has prepared. */
typedef struct planrt_preparer {
  bool synthetic;
  planrt_dnnl_engine *engine;
  planrt_spare spare;
  planrt_prepared *all;
} planrt_preparer;

planc_status planrt_preparer_open(bool synthetic, planrt_preparer *out);
void planrt_preparer_close(planrt_preparer *preparer);
/* As in planrt_backend. */
planc_status planrt_host_variants(planrt_preparer *preparer, const planrt_call *call, planrt_variant *out,
                                  int32_t *out_count);
planc_status planrt_host_prepare(planrt_preparer *preparer, planrt_call *call);
/* Runs a prepared call on the calling thread. */
planc_status planrt_prepared_run(const planrt_call *call, const planrt_launch *launch);

#endif
