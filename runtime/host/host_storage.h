/* Storage: a file without a name, a tier below the host's memory. */
#ifndef PLANRT_HOST_STORAGE_H
#define PLANRT_HOST_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "planc/status.h"

/* Its bytes have addresses, at which nothing can be read or written but by the functions here: an access that goes
 * astray faults, and a disk that fails is an error. What they copy is not kept in memory. Whole pages go past the
 * system's cache (O_DIRECT), which takes less of the processors; what is left at the ends of a range, and all where the
 * file system has no such way, is written back before the functions return, and dropped. */
typedef struct rt_storage {
  char *data; /* of the first byte; NULL: there is none */
  int64_t bytes, map_bytes;
  int file;
  int direct;            /* the same file past the cache; -1: the file system has no such way */
  const char *directory; /* borrowed */
} rt_storage;

/* All blocks of the file are taken from the start. DEVICE where that cannot be, naming the directory. */
planc_status rt_storage_new(int64_t bytes, const char *directory, rt_storage *out);
void rt_storage_free(rt_storage *storage);

bool rt_storage_has(const rt_storage *storage, const void *at);
/* Any thread may call these, and several at once. */
planc_status rt_storage_write(const rt_storage *storage, const void *to, const void *from, int64_t bytes);
planc_status rt_storage_read(const rt_storage *storage, void *to, const void *from, int64_t bytes);
planc_status rt_storage_fill(const rt_storage *storage, const void *to, int byte, int64_t bytes);

#endif
