#include "runtime/host/dnnl.h"

planc_status planrt_dnnl_engine_new(planrt_dnnl_engine **out) {
  *out = NULL;
  return NULL;
}
void planrt_dnnl_engine_free(planrt_dnnl_engine *engine) {
  (void)engine;
}
planc_status planrt_dnnl_variants(planrt_dnnl_engine *engine, const planrt_call *call, planrt_variant *out,
                                  int32_t *out_count) {
  (void)engine, (void)call, (void)out;
  *out_count = 0;
  return NULL;
}
planc_status planrt_dnnl_prepare(planrt_dnnl_engine *engine, const planrt_call *call, planrt_dnnl **out) {
  (void)engine, (void)call;
  *out = NULL;
  return NULL;
}
planc_status planrt_dnnl_run(const planrt_dnnl *prepared) {
  (void)prepared;
  return NULL;
}
void planrt_dnnl_free(planrt_dnnl *prepared) {
  (void)prepared;
}
