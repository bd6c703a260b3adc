/* Finding a backend by name: the host's is part of the library, others are plug-ins opened at run time and kept open.
 */
#define _GNU_SOURCE /* RTLD_NODELETE */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planc/version.h"
#include "runtime/backend.h"

static bool find_plugin(const char *name, char *out, size_t room);
static planc_status no_plugin(const char *name);
static planc_status open_plugin(const char *path, const planrt_backend **out);

bool rt_backend_is_lost(const planrt_backend *backend) {
  int64_t total, left;
  planc_status status = backend->memory ? backend->memory(&total, &left) : NULL;
  planc_status_free(status);
  return status != NULL;
}

planc_status planrt_backend_find(const char *name, const planrt_backend **out) {
  char path[PATH_MAX + 32];
  *out = &rt_host_backend;
  if (strcmp(name, rt_host_backend.name) == 0) return NULL;
  if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name))
    return planc_error(PLANC_USAGE, "%s is not the name of a backend", name);
  if (!find_plugin(name, path, sizeof path)) return no_plugin(name);
  return planc_context(open_plugin(path, out), "backend %s", name);
}

/* The folder of the running program; empty when it cannot be told. */
static void find_program(char *out, size_t room) {
  ssize_t length = readlink("/proc/self/exe", out, room - 1);
  out[length > 0 ? length : 0] = 0;
  char *slash = strrchr(out, '/');
  if (slash)
    *slash = 0;
  else
    out[0] = 0;
}

/* The folder of plug-ins that the environment names; NULL: none. */
static const char *given_folder(void) {
  const char *given = getenv("PLANRT_PLUGINS");
  return given && *given ? given : NULL;
}

/* The plug-in's file: in $PLANRT_PLUGINS, else beside the program (build tree) or where it is installed. False when
 * there is none. */
static bool find_plugin(const char *name, char *out, size_t room) {
  char program[PATH_MAX];
  find_program(program, sizeof program);
  const char *given = given_folder();
  const char *roots[] = {given, program, program};
  static const char *const below[] = {"", "", "/../lib/planrt"};
  for (int i = given ? 0 : 1; i < (given ? 1 : 3); i++) {
    int length = snprintf(out, room, "%s%s/libplanrt-%s.so", roots[i], below[i], name);
    if (length > 0 && (size_t)length < room && access(out, R_OK) == 0) return true;
  }
  return false;
}

static planc_status open_plugin(const char *path, const planrt_backend **out) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char *why = dlerror();
    return planc_error(PLANC_DEVICE, "%s", why ? why : path);
  }
  /* ISO C has no conversion from an object's to a function's address; POSIX does. */
  rt_plugin_function function = NULL;
  void *symbol = dlsym(library, RT_PLUGIN_SYMBOL);
  memcpy(&function, &symbol, sizeof function);
  *out = function ? function(RT_BACKEND_VERSION, PLANC_VERSION) : NULL;
  if (!*out) dlclose(library);
  return *out ? NULL : planc_error(PLANC_DEVICE, "%s: not a plug-in of planrt " PLANC_VERSION, path);
}

/* Of a name that is nobody's the folders say nothing. */
static planc_status no_plugin(const char *name) {
  const char *given = given_folder();
  if (strcmp(name, "cuda") != 0) return planc_error(PLANC_USAGE, "no backend %s: there are host and cuda", name);
  if (given)
    return planc_error(PLANC_DEVICE, "no backend %s: $PLANRT_PLUGINS has no %s/libplanrt-%s.so", name, given, name);
  return planc_error(
      PLANC_DEVICE,
      "no backend %s: libplanrt-%s.so is neither beside the program nor in ../lib/planrt, and $PLANRT_PLUGINS names no "
      "other folder",
      name, name);
}
