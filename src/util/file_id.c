/* Which file a path leads to (file_id.h). */
#include "util/file_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LINKS = 40 }; /* as many as Linux follows */

static bool is_link(const char *path);
static bool is_of_a_process(const char *path);
static planc_status follow(const char *path, char **out);

planc_status pl_link_target(const char *path, char **out) {
  char *at = strdup(path);
  if (!at) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  planc_status status = NULL;
  for (int links = 0; !status && is_link(at) && !is_of_a_process(at); links++) {
    char *next = NULL;
    status = links < MAX_LINKS ? follow(at, &next) : planc_error(PLANC_IO, "%s: %s", path, strerror(ELOOP));
    if (!next) break;
    free(at);
    at = next;
  }
  if (status)
    free(at);
  else
    *out = at;
  return status;
}

/* --- Following links ---------------------------------------------------------------------------------------------- */

/* Of what comes before the path's name: its folder with the slash behind it, 0 where there is none. */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash + 1 - path) : 0;
}

/* What the link at `path` leads to, seen from where `path` is seen from; malloc'ed. */
static planc_status follow(const char *path, char **out) {
  char target[PATH_MAX];
  ssize_t length = readlink(path, target, sizeof target - 1);
  if (length < 0) return planc_error(PLANC_IO, "%s: %s", path, strerror(errno));
  target[length] = 0;
  size_t folder = *target == '/' ? 0 : folder_length(path), room = folder + (size_t)length + 1;
  *out = malloc(room);
  if (!*out) return planc_error(PLANC_OUT_OF_MEMORY, "out of memory");
  snprintf(*out, room, "%.*s%s", (int)folder, path, target);
  return NULL;
}

static bool is_link(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

/* The kernel's links to open files lead there whatever their text says. */
static bool is_of_a_process(const char *path) {
  return strncmp(path, "/proc/", 6) == 0;
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

/* The folder that a file of this path would be made in. */
static bool find_folder(const char *path, pl_file_id *out) {
  char folder[PATH_MAX];
  size_t length = folder_length(path);
  if (length >= sizeof folder || strlen(path + length) >= sizeof out->name) return false;
  snprintf(folder, sizeof folder, "%.*s", (int)length, path);
  snprintf(out->name, sizeof out->name, "%s", path + length);
  return stat(*folder ? folder : ".", &out->file) == 0;
}

void pl_file_id_find(const char *path, pl_file_id *out) {
  char *target = NULL;
  *out = (pl_file_id){0};
  out->known = out->exists = stat(path, &out->file) == 0;
  if (out->exists) return;
  planc_status status = pl_link_target(path, &target);
  out->known = target && find_folder(target, out);
  planc_status_free(status);
  free(target);
}

bool pl_file_id_is_same(const pl_file_id *a, const pl_file_id *b) {
  if (!a->known || !b->known || a->exists != b->exists) return false;
  if (a->file.st_dev != b->file.st_dev || a->file.st_ino != b->file.st_ino) return false;
  return a->exists ? S_ISREG(a->file.st_mode) : strcmp(a->name, b->name) == 0;
}
