#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/vec.h"

static planc_status read_all(int file, const char *path, size_t limit, char **out, size_t *out_length) {
  struct stat info;
  if (fstat(file, &info) == 0 && S_ISDIR(info.st_mode)) return planc_error(PLANC_BAD_INPUT, "%s: is a directory", path);
  VEC(char) text = {0};
  for (;;) {
    planc_status status = VEC_RESERVE(&text, text.len + (1 << 16) + 1);
    ssize_t got = status ? -1 : read(file, text.data + text.len, (size_t)(text.cap - text.len - 1));
    if (got < 0 && !status && errno == EINTR) continue;
    if (got < 0 && !status) status = planc_error(PLANC_BAD_INPUT, "%s: %s", path, strerror(errno));
    if (got > 0 && (size_t)(text.len + got) > limit) {
      status = planc_error(PLANC_BAD_INPUT, "%s: larger than %zu bytes", path, limit);
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

planc_status planc_file_read(const char *path, size_t limit, char **out, size_t *out_length) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return planc_error(PLANC_BAD_INPUT, "%s: %s", path, strerror(errno));
  planc_status status = read_all(file, path, limit, out, out_length);
  close(file);
  return status;
}

static planc_status write_part(int file, const char *path, planc_file_part part) {
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

static planc_status write_all(int file, const char *path, const planc_file_part *parts, size_t n_parts) {
  for (size_t i = 0; i < n_parts; i++) PLANC_TRY(write_part(file, path, parts[i]));
  return NULL;
}

/* A pipe or /dev/null is written to: there is nothing to preserve, and a rename would replace it. */
static planc_status write_device(const char *path, const planc_file_part *parts, size_t n_parts) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  planc_status status = write_all(file, path, parts, n_parts);
  if (close(file) && !status) status = planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  return status;
}

bool planc_file_is_same(const char *a, const char *b) {
  struct stat of_a, of_b;
  if (strcmp(a, b) == 0) return true;
  return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* A new file beside `path`; *out_aside is its name, malloc'ed. */
static planc_status open_aside(const char *path, char **out_aside, int *out_file) {
  size_t room = strlen(path) + sizeof ".XXXXXX";
  *out_aside = malloc(room);
  if (!*out_aside) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  snprintf(*out_aside, room, "%s.XXXXXX", path);
  *out_file = mkstemp(*out_aside);
  if (*out_file >= 0) return NULL;
  planc_status status = planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  free(*out_aside);
  return status;
}

static bool is_written_aside(const char *path) {
  struct stat info;
  return strcmp(path, "-") != 0 && (stat(path, &info) != 0 || S_ISREG(info.st_mode));
}

planc_status planc_file_probe(const char *path) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return planc_error(PLANC_IO, "%s: %s", path, strerror(EISDIR));
  if (!is_written_aside(path)) return NULL;
  char *aside;
  int file;
  PLANC_TRY(open_aside(path, &aside, &file));
  close(file);
  unlink(aside);
  free(aside);
  return NULL;
}

planc_status planc_file_write_parts(const char *path, const planc_file_part *parts, size_t n_parts) {
  if (strcmp(path, "-") == 0) return write_all(STDOUT_FILENO, "standard output", parts, n_parts);
  if (!is_written_aside(path)) return write_device(path, parts, n_parts);
  char *aside;
  int file;
  PLANC_TRY(open_aside(path, &aside, &file));
  planc_status status = write_all(file, path, parts, n_parts);
  /* mkstemp makes files private; an output gets what the umask leaves of rw-rw-rw-. */
  mode_t mask = umask(0);
  umask(mask);
  if (!status && (fchmod(file, 0666 & ~mask) || fsync(file))) {
    status = planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  }
  if (close(file) && !status) status = planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  if (!status && rename(aside, path)) status = planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  if (status) unlink(aside);
  free(aside);
  return status;
}

planc_status planc_file_write(const char *path, const char *text, size_t length) {
  return planc_file_write_parts(path, &(planc_file_part){text, length}, 1);
}
