/* Configurations: an engine of cuDNN's with its knobs. Each has a name, "cudnn-9.19.0-sm90-e67:2=4,13=0": version and
 * architecture, which are its head, then engine and knob=value. */
#ifndef PLANRT_CUDA_CUDNN_CONFIG_H
#define PLANRT_CUDA_CUDNN_CONFIG_H

#include "runtime/cuda/cudnn_graph.h"

enum { RT_CUDNN_KNOBS = 32 };

typedef struct rt_cudnn_knob {
  cudnnBackendKnobType_t type;
  int64_t value;
} rt_cudnn_knob;

typedef struct rt_cudnn_config {
  int64_t engine;
  int32_t n_knobs;
  rt_cudnn_knob knobs[RT_CUDNN_KNOBS];
} rt_cudnn_config;

/* False when the name is too long for `room`. */
bool rt_cudnn_config_name(const rt_cudnn_config *of, const char *head, char *out, size_t room);
/* The configuration that an algorithm's name stands for; who prepares a call puts that name before an error. */
planc_status rt_cudnn_config_named(const char *algorithm, const char *head, rt_cudnn_config *out);

/* What cuDNN says of a configuration. */
planc_status rt_cudnn_config_read(rt_cudnn_pile *pile, cudnnBackendDescriptor_t from, rt_cudnn_config *out,
                                  uint32_t *out_notes, bool *out_deterministic);
/* Makes it for an operation graph; `device`: its properties where it is described, NULL where it is there. */
planc_status rt_cudnn_config_make(rt_cudnn_pile *pile, cudnnBackendDescriptor_t graph, cudnnBackendDescriptor_t device,
                                  const rt_cudnn_config *from, cudnnBackendDescriptor_t *out);

#endif
