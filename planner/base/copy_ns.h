/* How long a copy of a schedule takes by itself. */
#ifndef PLANC_BASE_COPY_NS_H
#define PLANC_BASE_COPY_NS_H

#include "planc/schedule.h"

/* Over the link of a route, of the job whose data it copies. */
static inline int64_t pl_copy_ns(const planc_schedule *s, const planc_command *command, planc_route route) {
  const planc_buffer *buffer = &planc_schedule_trace(s)->buffers[planc_schedule_buffer(s, command)];
  return planc_link_ns(&planc_schedule_costs(s, buffer->job)->device.links[route], buffer->bytes);
}

#endif
