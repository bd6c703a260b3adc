/* Calls made ready for the host: a plain kernel or a primitive of oneDNN. */
#ifndef PLANRT_HOST_PREPARE_H
#define PLANRT_HOST_PREPARE_H

#include "runtime/host/dnnl.h"
#include "runtime/host/host_kernels.h"
#include "runtime/host/widen.h"

/* What a call's handle points to. */
typedef struct rt_prepared {
  const rt_kernel *kernel; /* or */
  rt_dnnl *dnnl;
  rt_widened *widened; /* NULL: the operands are taken as they are */
  struct rt_prepared *next;
} rt_prepared;

/* All that a device has prepared. */
typedef struct rt_preparer {
  bool synthetic;
  rt_dnnl_engine *engine;
  rt_spare spare;
  rt_prepared *all;
} rt_preparer;

planc_status rt_preparer_open(bool synthetic, rt_preparer *out);
void rt_preparer_close(rt_preparer *preparer);
/* As in planrt_backend. */
planc_status rt_host_variants(rt_preparer *preparer, const rt_call *call, rt_variant *out, int32_t *out_count);
planc_status rt_host_prepare(rt_preparer *preparer, rt_call *call);
/* Runs a prepared call on the calling thread. */
planc_status rt_prepared_run(const rt_call *call, const rt_launch *launch);

#endif
