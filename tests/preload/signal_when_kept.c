/* Loaded before libc into planrun: sends it a signal as soon as its file of measured parts (OUTPUT.part) has so many
 * passes, whatever the time. SIGNAL_WHEN_KEPT=PASSES:SIGNAL, by number. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where a file that is open lies; empty where it is none of measured parts. */
static void find_part(int file, char path[PATH_MAX]) {
  static const char suffix[] = ".part";
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, PATH_MAX - 1), end = sizeof suffix - 1;
  path[length > 0 ? length : 0] = 0;
  if (length < end || strcmp(path + length - end, suffix) != 0) *path = 0;
}

static int count_passes(const char *path) {
  char *line = NULL;
  size_t room = 0;
  int n = 0;
  FILE *file = fopen(path, "r");
  while (file && getline(&line, &room, file) > 0) n += strchr(line, '\n') && strstr(line, "\"piece\":\"ops\"");
  if (file) fclose(file);
  free(line);
  return n;
}

static void look(int file) {
  static bool sent;
  const char *when = getenv("SIGNAL_WHEN_KEPT");
  int passes, number;
  char path[PATH_MAX];
  find_part(file, path);
  if (sent || !*path || !when || sscanf(when, "%d:%d", &passes, &number) != 2 || count_passes(path) < passes) return;
  sent = true;
  raise(number);
}

/* --- What files are written with ---------------------------------------------------------------------------------- */

/* ISO C has no conversion from an object's to a function's address; POSIX does. */
static void find_next(const char *name, void *out_function) {
  void *symbol = dlsym(RTLD_NEXT, name);
  memcpy(out_function, &symbol, sizeof symbol);
}

int fflush(FILE *file) {
  int (*next)(FILE *);
  find_next("fflush", &next);
  int result = next(file);
  if (file) look(fileno(file));
  return result;
}

ssize_t write(int file, const void *data, size_t length) {
  ssize_t (*next)(int, const void *, size_t);
  find_next("write", &next);
  ssize_t result = next(file, data, length);
  look(file);
  return result;
}

ssize_t pwrite(int file, const void *data, size_t length, off_t at) {
  ssize_t (*next)(int, const void *, size_t, off_t);
  find_next("pwrite", &next);
  ssize_t result = next(file, data, length, at);
  look(file);
  return result;
}
