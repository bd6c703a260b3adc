/* Storage: a file without a name, a tier below the host's memory. */
#ifndef PLANRT_HOST_STORAGE_H
#define PLANRT_HOST_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"

/* Its bytes have addresses, at which nothing can be read or written but by the functions here: an access that goes
 * astray faults, and a disk that fails is an error. What they copy is not kept in memory: it is written back before
 * they return, and dropped, but for pages that lie in the range only in part. */
typedef struct planrt_storage {
  char *data; /* of the first byte; NULL: there is none */
  int64_t bytes, map_bytes;
  int file;
  const char *directory; /* borrowed */
} planrt_storage;

/* All blocks of the file are taken from the start. DEVICE where that cannot be, naming the directory. */
planc_status planrt_storage_new(int64_t bytes, const char *directory, planrt_storage *out);
void planrt_storage_free(planrt_storage *storage);

bool planrt_storage_has(const planrt_storage *storage, const void *at);
/* Any thread may call these, and several at once. */
planc_status planrt_storage_write(const planrt_storage *storage, const void *to, const void *from, int64_t bytes);
planc_status planrt_storage_read(const planrt_storage *storage, void *to, const void *from, int64_t bytes);
planc_status planrt_storage_fill(const planrt_storage *storage, const void *to, int byte, int64_t bytes);

#endif
