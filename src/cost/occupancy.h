/* How ops that are no products spread over the device's processors, by what their kernels give a thread to do: an
 * element-wise one a few elements, a reduction a part of a result, a norm a part of a channel. So a device is busy with
 * a small tensor, or with few channels however large, for a part only. As Orion (EuroSys 2024) counts them: processors
 * are those that the kernel's threads would fill. */
#ifndef PLANC_COST_OCCUPANCY_H
#define PLANC_COST_OCCUPANCY_H

#include "cost/roofline.h"

/* The spread of an op at `batch` that moves so many bytes. Where the profile does not tell of occupancy, it goes by the
 * bytes. */
pl_spread pl_spread_of_op(const planc_profile *profile, const planc_graph *graph, const planc_op *op, int64_t batch,
                          int64_t bytes);

#endif
