/* Storage as a file (host_storage.h). Large copies are made in pieces: by the cache, what is written back or read ahead
 * is the piece beside the one that is copied, and no more of them is in memory. */
#define _GNU_SOURCE /* O_TMPFILE, O_DIRECT, sync_file_range */
#include "runtime/host/host_storage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/math.h"

enum {
  PIECE = 8 << 20,  /* pieces end at multiples of it, so that no page is in two */
  AHEAD = 512 << 10 /* as much as a system reads ahead when it is asked once */
};

static planc_status fill_storage(rt_storage *storage);
static int create(const char *directory);
static planc_status no_file(const char *directory, const char *why);
static const char *why_none(const char *directory, int error);
static bool is_in_memory(int file);
static int open_direct(int file);
static int take_blocks(int file, int64_t bytes);
static planc_status no_storage(const char *directory, int64_t bytes, const char *why);

planc_status rt_storage_new(int64_t bytes, const char *directory, rt_storage *out) {
  rt_storage storage = {.bytes = bytes, .file = -1, .direct = -1, .directory = directory};
  planc_status status = fill_storage(&storage);
  if (status)
    rt_storage_free(&storage);
  else
    *out = storage;
  return status;
}

static planc_status fill_storage(rt_storage *storage) {
  storage->file = create(storage->directory);
  if (storage->file < 0) return no_file(storage->directory, why_none(storage->directory, errno));
  if (is_in_memory(storage->file))
    return no_file(storage->directory, "it is in the host's memory; name a directory on a disk");
  int error = take_blocks(storage->file, storage->bytes);
  if (error) return no_storage(storage->directory, storage->bytes, strerror(error));
  storage->direct = open_direct(storage->file);
  storage->map_bytes = pl_align_up(storage->bytes, sysconf(_SC_PAGESIZE));
  void *map = mmap(NULL, (size_t)storage->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return no_storage(storage->directory, storage->bytes, strerror(errno));
  storage->data = map;
  return NULL;
}

void rt_storage_free(rt_storage *storage) {
  if (storage->data) munmap(storage->data, (size_t)storage->map_bytes);
  if (storage->bytes > 0 && storage->direct >= 0) close(storage->direct);
  if (storage->bytes > 0 && storage->file >= 0) close(storage->file);
  *storage = (rt_storage){.file = -1, .direct = -1};
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static planc_status no_file(const char *directory, const char *why) {
  return planc_error(PLANC_DEVICE, "host: no storage in %s: %s", directory, why);
}

static planc_status no_storage(const char *directory, int64_t bytes, const char *why) {
  return planc_error(PLANC_DEVICE, "host: no storage of %lld bytes in %s: %s", (long long)bytes, directory, why);
}

/* A file without a name, or one that loses it at once. -1: errno tells why there is none. */
static int create(const char *directory) {
  enum { OWNERS = 0600 };
  char path[PATH_MAX];
  int file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, OWNERS);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  if (snprintf(path, sizeof path, "%s/planrun-XXXXXX", directory) >= (int)sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  file = mkostemp(path, O_CLOEXEC);
  if (file >= 0) unlink(path);
  return file;
}

/* A file system that makes no files, as /proc, may say that there is no such directory. */
static const char *why_none(const char *directory, int error) {
  return error == ENOENT && access(directory, F_OK) == 0 ? "no file can be made there" : strerror(error);
}

/* Whether what is written there stays in the host's memory, which storage is to save. */
static bool is_in_memory(int file) {
  struct statfs info;
  if (fstatfs(file, &info) != 0) return false;
  return info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC || info.f_type == HUGETLBFS_MAGIC;
}

/* Opens the file once more: it has no name. */
static int open_direct(int file) {
  char path[64];
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
}

static bool has_room(int file, int64_t bytes) {
  struct statvfs info;
  if (fstatvfs(file, &info) != 0 || info.f_blocks == 0 || info.f_frsize == 0) return true; /* it does not tell */
  return (uint64_t)bytes / info.f_frsize + ((uint64_t)bytes % info.f_frsize > 0) <= info.f_bavail;
}

/* An error number. Growing beyond the process's limit is a signal; it is not tried. Nor is what the disk has no room
 * for: it would be full, for everyone, until that is found out. */
static int take_blocks(int file, int64_t bytes) {
  struct rlimit limit;
  int error;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && (rlim_t)bytes > limit.rlim_cur)
    return EFBIG;
  if (!has_room(file, bytes)) return ENOSPC;
  do error = posix_fallocate(file, 0, (off_t)bytes);
  while (error == EINTR);
  return error;
}

/* --- Copies ------------------------------------------------------------------------------------------------------- */

bool rt_storage_has(const rt_storage *storage, const void *at) {
  uintptr_t address = (uintptr_t)at, first = (uintptr_t)storage->data;
  return storage->data && address >= first && address - first < (uintptr_t)storage->bytes;
}

/* Bytes [first, end) of the file. */
typedef struct range {
  int64_t first, end;
} range;

static int64_t offset_of(const rt_storage *storage, const void *at);
static range whole_pages(const rt_storage *storage, int64_t first, int64_t end);
static planc_status write_by_cache(const rt_storage *storage, int64_t first, int64_t end, const char *from);
static planc_status write_directly(const rt_storage *storage, range *whole, const char *from);
static planc_status read_by_cache(const rt_storage *storage, int64_t first, int64_t end, char *to);
static planc_status read_directly(const rt_storage *storage, range *whole, char *to);

planc_status rt_storage_write(const rt_storage *storage, const void *to, const void *from, int64_t bytes) {
  int64_t first = offset_of(storage, to), end = first + bytes;
  range whole = whole_pages(storage, first, end);
  const char *data = from;
  PLANC_TRY(write_by_cache(storage, first, whole.first, data));
  PLANC_TRY(write_directly(storage, &whole, data + (whole.first - first)));
  return write_by_cache(storage, whole.end, end, data + (whole.end - first));
}

planc_status rt_storage_read(const rt_storage *storage, void *to, const void *from, int64_t bytes) {
  int64_t first = offset_of(storage, from), end = first + bytes;
  range whole = whole_pages(storage, first, end);
  char *data = to;
  PLANC_TRY(read_by_cache(storage, first, whole.first, data));
  PLANC_TRY(read_directly(storage, &whole, data + (whole.first - first)));
  return read_by_cache(storage, whole.end, end, data + (whole.end - first));
}

static int64_t offset_of(const rt_storage *storage, const void *at) {
  return (const char *)at - storage->data;
}

static planc_status fail(const rt_storage *storage, const char *doing, const char *why) {
  return planc_error(PLANC_DEVICE, "host: %s storage in %s: %s", doing, storage->directory, why);
}

/* --- By the system's cache ---------------------------------------------------------------------------------------- */

static int64_t end_of_piece(int64_t at, int64_t end);
static planc_status write_bytes(const rt_storage *storage, int64_t at, const char *from, int64_t bytes);
static planc_status write_back(const rt_storage *storage, int64_t at, int64_t end, unsigned how);
static planc_status put_away(const rt_storage *storage, int64_t at, int64_t end);

planc_status rt_storage_fill(const rt_storage *storage, const void *to, int byte, int64_t bytes) {
  enum { BLOCK = 64 << 10 };
  char block[BLOCK];
  int64_t first = offset_of(storage, to), end = first + bytes;
  memset(block, byte, sizeof block);
  for (int64_t at = first; at < end; at += BLOCK)
    PLANC_TRY(write_bytes(storage, at, block, end - at < BLOCK ? end - at : BLOCK));
  return put_away(storage, first, end);
}

/* A piece is on its way to the disk while the next one is copied. */
static planc_status write_by_cache(const rt_storage *storage, int64_t first, int64_t end, const char *from) {
  int64_t before = first;
  for (int64_t at = first, next; at < end; at = next) {
    next = end_of_piece(at, end);
    PLANC_TRY(write_bytes(storage, at, from + (at - first), next - at));
    PLANC_TRY(write_back(storage, at, next, SYNC_FILE_RANGE_WRITE));
    PLANC_TRY(put_away(storage, before, at));
    before = at;
  }
  return put_away(storage, before, end);
}

static int64_t end_of_piece(int64_t at, int64_t end) {
  int64_t piece_end = at - at % PIECE + PIECE;
  return piece_end < end ? piece_end : end;
}

/* Drops what is not to be written any more. Nothing depends on it but how much memory is left. */
static void drop(const rt_storage *storage, int64_t at, int64_t end) {
  (void)posix_fadvise(storage->file, (off_t)at, (off_t)(end - at), POSIX_FADV_DONTNEED);
}

static planc_status write_back(const rt_storage *storage, int64_t at, int64_t end, unsigned how) {
  if (sync_file_range(storage->file, at, end - at, how) == 0) return NULL;
  return fail(storage, "writing back", strerror(errno));
}

static planc_status write_bytes(const rt_storage *storage, int64_t at, const char *from, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    ssize_t n = pwrite(storage->file, from + done, (size_t)(bytes - done), (off_t)(at + done));
    if (n < 0 && errno != EINTR) return fail(storage, "writing", strerror(errno));
    if (n > 0) done += n;
  }
  return NULL;
}

static planc_status read_bytes(const rt_storage *storage, int64_t at, char *to, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    ssize_t n = pread(storage->file, to + done, (size_t)(bytes - done), (off_t)(at + done));
    if (n == 0) return fail(storage, "reading", "its file has become shorter");
    if (n < 0 && errno != EINTR) return fail(storage, "reading", strerror(errno));
    if (n > 0) done += n;
  }
  return NULL;
}

static planc_status put_away(const rt_storage *storage, int64_t at, int64_t end) {
  enum { ALL = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER };
  if (at == end) return NULL;
  PLANC_TRY(write_back(storage, at, end, ALL));
  drop(storage, at, end);
  return NULL;
}

static void read_ahead(const rt_storage *storage, int64_t at, int64_t end) {
  for (; at < end; at += AHEAD) {
    int64_t bytes = end - at < AHEAD ? end - at : AHEAD;
    (void)posix_fadvise(storage->file, (off_t)at, (off_t)bytes, POSIX_FADV_WILLNEED);
  }
}

static planc_status read_by_cache(const rt_storage *storage, int64_t first, int64_t end, char *to) {
  if (first < end) read_ahead(storage, first, end_of_piece(first, end));
  for (int64_t at = first, next; at < end; at = next) {
    next = end_of_piece(at, end);
    if (next < end) read_ahead(storage, next, end_of_piece(next, end));
    PLANC_TRY(read_bytes(storage, at, to + (at - first), next - at));
    drop(storage, at, next);
  }
  return NULL;
}

/* --- Past the cache ----------------------------------------------------------------------------------------------- */

/* Where memory is not aligned as the file is, it goes by a buffer that is. */
typedef struct aligned_copy {
  const rt_storage *storage;
  int64_t page;
  char *buffer; /* NULL: none was needed yet */
  bool refused; /* by the file system, or for want of a buffer: the cache has to do */
} aligned_copy;

static planc_status transfer(aligned_copy *c, bool writes, int64_t at, char *memory, int64_t bytes, int64_t *out_done);

static range whole_pages(const rt_storage *storage, int64_t first, int64_t end) {
  int64_t page = sysconf(_SC_PAGESIZE);
  range whole = {pl_align_up(first, page), end - end % page};
  return storage->direct >= 0 && whole.first < whole.end ? whole : (range){end, end};
}

/* Goes through the range in pieces; whole->end is how far it has come. */
static planc_status copy_directly(const rt_storage *storage, bool writes, range *whole, char *memory) {
  aligned_copy c = {.storage = storage, .page = sysconf(_SC_PAGESIZE)};
  planc_status status = NULL;
  int64_t at = whole->first, done = 0;
  for (; !status && !c.refused && at < whole->end; at += done) {
    int64_t bytes = end_of_piece(at, whole->end) - at;
    status = transfer(&c, writes, at, memory + (at - whole->first), bytes, &done);
  }
  whole->end = at;
  free(c.buffer);
  return status;
}

static planc_status write_directly(const rt_storage *storage, range *whole, const char *from) {
  return copy_directly(storage, true, whole, (char *)from);
}

static planc_status read_directly(const rt_storage *storage, range *whole, char *to) {
  return copy_directly(storage, false, whole, to);
}

/* *out_done is a number of whole pages. */
static planc_status transfer(aligned_copy *c, bool writes, int64_t at, char *memory, int64_t bytes, int64_t *out_done) {
  bool by_buffer = (uintptr_t)memory % (uintptr_t)c->page != 0;
  *out_done = 0;
  if (by_buffer && !c->buffer && posix_memalign((void **)&c->buffer, (size_t)c->page, PIECE) != 0) c->buffer = NULL;
  c->refused = by_buffer && !c->buffer;
  if (c->refused) return NULL;
  char *data = by_buffer ? c->buffer : memory;
  if (by_buffer && writes) memcpy(data, memory, (size_t)bytes);
  ssize_t n = writes ? pwrite(c->storage->direct, data, (size_t)bytes, (off_t)at)
                     : pread(c->storage->direct, data, (size_t)bytes, (off_t)at);
  if (n < 0 && errno == EINTR) return NULL;
  c->refused = n < 0 ? errno == EINVAL || errno == EOPNOTSUPP : n < c->page;
  if (n < 0 && !c->refused) return fail(c->storage, writes ? "writing" : "reading", strerror(errno));
  if (n > 0) *out_done = n - n % c->page;
  if (by_buffer && !writes) memcpy(memory, data, (size_t)*out_done);
  return NULL;
}
