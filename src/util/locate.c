#include "util/locate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

planc_status planc_locate_device(const char *name, const char *suffix, char *out, size_t room) {
  if (strchr(name, '/') || strstr(name, ".json")) {
    if (snprintf(out, room, "%s", name) >= (int)room) return planc_error(PLANC_USAGE, "device path too long");
    return NULL;
  }
  char program[2048];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = 0;
  char *slash = strrchr(program, '/');
  if (slash) *slash = 0;
  const char *roots[] = {getenv("PLANC_PROFILES"), program, program};
  static const char *const below[] = {"", "/../profiles", "/../share/planc/profiles"};
  for (int i = 0; i < 3; i++) {
    if (!roots[i]) continue;
    if (snprintf(out, room, "%s%s/%s%s", roots[i], below[i], name, suffix) >= (int)room) continue;
    if (access(out, R_OK) == 0) return NULL;
  }
  return planc_error(PLANC_BAD_INPUT, "no description of device %s; known ones are listed in planc(1)", name);
}
