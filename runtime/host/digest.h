/* Hashes of memory, by which runs are compared. */
#ifndef PLANRT_HOST_DIGEST_H
#define PLANRT_HOST_DIGEST_H

#include "runtime/call.h"

uint64_t rt_hash_bytes(uint64_t seed, const char *data, int64_t bytes);
/* Of everything that a call has put out; side effects left out, so that a recompute has the first run's. */
uint64_t rt_digest_of(const rt_call *call);

#endif
