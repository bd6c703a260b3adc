/* Reading files whole, and writing them aside (file.h). */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/file_id.h"
#include "util/input.h"
#include "util/vec.h"

static planc_status read_file(const char *path, size_t limit, bool text_only, char **out, size_t *out_length);

planc_status pl_file_read(const char *path, size_t limit, char **out, size_t *out_length) {
  return read_file(path, limit, false, out, out_length);
}

planc_status pl_file_read_text(const char *path, size_t limit, char **out, size_t *out_length) {
  return read_file(path, limit, true, out, out_length);
}

static planc_status read_all(int file, const char *path, size_t limit, bool text_only, char **out, size_t *out_length) {
  struct stat info;
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && (uintmax_t)info.st_size > limit)
    return planc_error(PLANC_BAD_INPUT, "%s: larger than %zu bytes", path, limit);
  VEC(char) text = {0};
  for (;;) {
    planc_status status = VEC_RESERVE(&text, text.len + (1 << 16) + 1);
    ssize_t got = status ? -1 : read(file, text.data + text.len, (size_t)(text.cap - text.len - 1));
    if (got < 0 && !status && errno == EINTR) continue;
    if (got < 0 && !status) status = planc_error(PLANC_BAD_INPUT, "%s: %s", path, strerror(errno));
    if (got > 0 && (size_t)(text.len + got) > limit) {
      status = planc_error(PLANC_BAD_INPUT, "%s: larger than %zu bytes", path, limit);
    }
    if (text_only && got > 0 && !status && memchr(text.data + text.len, 0, (size_t)got)) {
      status = planc_error(PLANC_BAD_INPUT, "%s: is no text, it has a NUL byte", path);
    }
    if (status) {
      VEC_FREE(&text);
      return status;
    }
    if (got == 0) break;
    text.len += got;
  }
  text.data[text.len] = 0;
  *out = text.data;
  *out_length = (size_t)text.len;
  return NULL;
}

static planc_status read_file(const char *path, size_t limit, bool text_only, char **out, size_t *out_length) {
  int file;
  PLANC_TRY(pl_input_open(path, true, &file));
  planc_status status = read_all(file, path, limit, text_only, out, out_length);
  close(file);
  return status;
}

/* A new file beside the one that is to be written. */
typedef struct aside {
  char *target, *path; /* malloc'ed; without a path there is none */
  int file;
} aside;

static bool is_written_aside(const char *path);
static planc_status open_aside(const char *path, aside *out);
static void free_aside(aside *a);
static planc_status write_aside(const char *path, const pl_file_part *parts, size_t n_parts, aside *out);
static planc_status publish(const char *path, aside *made);
static planc_status write_stream(const char *path, const pl_file_part *parts, size_t n_parts);

planc_status pl_file_probe(const char *path) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return planc_error(PLANC_IO, "%s: %s", path, strerror(EISDIR));
  if (!is_written_aside(path)) return NULL;
  aside tried;
  PLANC_TRY(open_aside(path, &tried));
  close(tried.file);
  free_aside(&tried);
  return NULL;
}

planc_status pl_file_write_parts(const char *path, const pl_file_part *parts, size_t n_parts) {
  if (!is_written_aside(path)) return write_stream(path, parts, n_parts);
  aside made;
  PLANC_TRY(write_aside(path, parts, n_parts, &made));
  planc_status status = publish(path, &made);
  free_aside(&made);
  return status;
}

planc_status pl_file_write(const char *path, const char *text, size_t length) {
  return pl_file_write_parts(path, &(pl_file_part){text, length}, 1);
}

planc_status pl_files_write(const pl_file_text *files, size_t n) {
  planc_status status = NULL;
  aside *made = calloc(n, sizeof *made);
  if (!made) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  for (size_t k = 0; k < n && !status; k++)
    if (is_written_aside(files[k].path))
      status = write_aside(files[k].path, &(pl_file_part){files[k].text, files[k].length}, 1, &made[k]);
  for (size_t k = 0; k < n && !status; k++)
    if (!made[k].path) status = write_stream(files[k].path, &(pl_file_part){files[k].text, files[k].length}, 1);
  for (size_t k = 0; k < n && !status; k++)
    if (made[k].path) status = publish(files[k].path, &made[k]);
  for (size_t k = 0; k < n; k++) free_aside(&made[k]);
  free(made);
  return status;
}

static planc_status write_part(int file, const char *path, pl_file_part part) {
  const char *text = part.data;
  size_t length = part.length;
  while (length) {
    ssize_t put = write(file, text, length);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
    text += put;
    length -= (size_t)put;
  }
  return NULL;
}

static planc_status write_all(int file, const char *path, const pl_file_part *parts, size_t n_parts) {
  for (size_t i = 0; i < n_parts; i++) PLANC_TRY(write_part(file, path, parts[i]));
  return NULL;
}

static planc_status write_aside(const char *path, const pl_file_part *parts, size_t n_parts, aside *out) {
  PLANC_TRY(open_aside(path, out));
  planc_status status = write_all(out->file, path, parts, n_parts);
  if (!status && fsync(out->file)) status = planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  if (close(out->file) && !status) status = planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  if (status) free_aside(out);
  return status;
}

static planc_status publish(const char *path, aside *made) {
  if (rename(made->path, made->target)) return planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  free(made->path);
  made->path = NULL;
  return NULL;
}

/* A pipe or /dev/null is written to: there is nothing to preserve, and a rename would replace it. */
static planc_status write_stream(const char *path, const pl_file_part *parts, size_t n_parts) {
  if (strcmp(path, "-") == 0) return write_all(STDOUT_FILENO, "standard output", parts, n_parts);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  planc_status status = write_all(file, path, parts, n_parts);
  if (close(file) && !status) status = planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  return status;
}

/* What was not renamed goes. */
static void free_aside(aside *a) {
  if (a->path) unlink(a->path);
  free(a->target);
  free(a->path);
  *a = (aside){0};
}

/* What replaces a file lets nobody in whom that did not. The kernel applies the umask: a process cannot read its own
 * without setting it for all of its threads. */
static int create(char *path, size_t room, const char *beside) {
  enum { TRIES = 100, ANYBODY = 0666, PERMISSIONS = 0777 };
  struct stat replaced;
  mode_t mode = stat(beside, &replaced) == 0 ? replaced.st_mode & PERMISSIONS : ANYBODY;
  for (int i = 0; i < TRIES; i++) {
    uint64_t drawn = ((uint64_t)pl_now_ns() + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
    snprintf(path, room, "%s.%06x", beside, (unsigned)(drawn >> 40));
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

static planc_status open_aside(const char *path, aside *out) {
  *out = (aside){0};
  PLANC_TRY(pl_link_target(path, &out->target));
  size_t room = strlen(out->target) + sizeof ".123456";
  out->path = malloc(room);
  if (out->path && (out->file = create(out->path, room, out->target)) >= 0) return NULL;
  planc_status status = out->path ? planc_error(PLANC_IO, "%s: %s", path, strerror(errno))
                                  : planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  free(out->path); /* nothing was created there */
  out->path = NULL;
  free_aside(out);
  return status;
}

static bool is_written_aside(const char *path) {
  struct stat info;
  return strcmp(path, "-") != 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode));
}
