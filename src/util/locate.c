/* Finding the files that come with the programs (locate.h): in the user's place, then beside the program. */
#include "util/locate.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char description[] = ".json", properties[] = ".properties.json";

/* Where devices are looked for: $PLANC_PROFILES, the tree that the program was built in (as build/planc or
 * build/release/planc), and where it is installed. */
enum { PLACES = 4, PROGRAM_ROOM = 2048, PLACE_ROOM = 4096, LIST_ROOM = 512 };

static bool is_path(const char *name);
static planc_status copy(const char *stem, size_t length, const char *suffix, char *out, size_t room);
static bool find_file(const char *name, const char *suffix, char *out, size_t room);
static void list_known(const char *suffix, char out[LIST_ROOM]);

planc_status pl_locate_device(const char *name, char *out, size_t room) {
  if (is_path(name)) return copy(name, strlen(name), "", out, room);
  if (find_file(name, description, out, room)) return NULL;
  char known[LIST_ROOM];
  list_known(description, known);
  return planc_error(PLANC_BAD_INPUT, "no description of device %s; known ones: %s", name, known);
}

void pl_locate_program(char *out, size_t room) {
  ssize_t length = readlink("/proc/self/exe", out, room - 1);
  out[length > 0 ? length : 0] = 0;
}

static void find_folder(char out[PROGRAM_ROOM]) {
  pl_locate_program(out, PROGRAM_ROOM);
  char *slash = strrchr(out, '/');
  if (slash) *slash = 0;
}

/* Empty: there is no such place. */
static void find_place(int place, char out[PLACE_ROOM]) {
  static const char *const below[PLACES] = {"", "/../profiles", "/../../profiles", "/../share/planc/profiles"};
  char program[PROGRAM_ROOM];
  find_folder(program);
  const char *root = place == 0 ? getenv("PLANC_PROFILES") : program;
  if (!root || snprintf(out, PLACE_ROOM, "%s%s", root, below[place]) >= PLACE_ROOM) *out = 0;
}

bool pl_locate_package(const char *name, char *out, size_t room) {
  static const char *const below[] = {"/../runtime/torch", "/../../runtime/torch", "/../share/planc/python"};
  char program[PROGRAM_ROOM], package[PLACE_ROOM];
  find_folder(program);
  for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
    if (snprintf(out, room, "%s%s", program, below[i]) >= (int)room) continue;
    if (snprintf(package, sizeof package, "%s/%s/__init__.py", out, name) >= (int)sizeof package) continue;
    if (access(package, R_OK) == 0) return true;
  }
  return false;
}

/* False when no place has NAME`suffix`. */
static bool find_file(const char *name, const char *suffix, char *out, size_t room) {
  char place[PLACE_ROOM];
  for (int i = 0; i < PLACES; i++) {
    find_place(i, place);
    if (!*place || snprintf(out, room, "%s/%s%s", place, name, suffix) >= (int)room) continue;
    if (access(out, R_OK) == 0) return true;
  }
  return false;
}

static bool is_path(const char *name) {
  return strchr(name, '/') || strstr(name, description);
}

static bool ends(const char *text, const char *with) {
  size_t length = strlen(text), end = strlen(with);
  return length >= end && strcmp(text + length - end, with) == 0;
}

static planc_status copy(const char *stem, size_t length, const char *suffix, char *out, size_t room) {
  if (snprintf(out, room, "%.*s%s", (int)length, stem, suffix) < (int)room) return NULL;
  return planc_error(PLANC_USAGE, "device path too long");
}

static planc_status no_properties(const char *name);

planc_status pl_locate_properties(const char *name, char *out_description, char *out_properties, size_t room) {
  PLANC_TRY(pl_locate_device(name, out_description, room));
  if (!is_path(name)) return find_file(name, properties, out_properties, room) ? NULL : no_properties(name);
  size_t stem = strlen(name);
  if (ends(name, properties)) {
    stem -= strlen(properties);
    PLANC_TRY(copy(name, stem, description, out_description, room));
  } else if (ends(name, description)) {
    stem -= strlen(description);
  }
  return copy(name, stem, properties, out_properties, room);
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b) {
  return strcmp(a, b);
}

/* The devices in a place that have such a file, with commas between them; empty: none has. */
static void list_devices(const char *place, const char *suffix, char out[LIST_ROOM]) {
  enum { MOST = 64, NAME = 64 };
  char names[MOST][NAME];
  int n = 0, length = 0;
  DIR *folder = opendir(place);
  *out = 0;
  if (!folder) return;
  for (const struct dirent *entry; n < MOST && (entry = readdir(folder));) {
    const char *name = entry->d_name;
    bool other = suffix == description && ends(name, properties);
    if (ends(name, suffix) && !other && strlen(name) < NAME)
      snprintf(names[n++], NAME, "%.*s", (int)(strlen(name) - strlen(suffix)), name);
  }
  closedir(folder);
  qsort(names, (size_t)n, sizeof *names, compare_names);
  for (int i = 0; i < n && length < LIST_ROOM; i++)
    length += snprintf(out + length, LIST_ROOM - (size_t)length, "%s%s", i > 0 ? ", " : "", names[i]);
}

/* Those of the first place that has any, or "none". */
static void list_known(const char *suffix, char out[LIST_ROOM]) {
  char place[PLACE_ROOM];
  *out = 0;
  for (int i = 0; i < PLACES && !*out; i++) {
    find_place(i, place);
    if (*place) list_devices(place, suffix, out);
  }
  if (!*out) snprintf(out, LIST_ROOM, "none");
}

static planc_status no_properties(const char *name) {
  char others[LIST_ROOM];
  list_known(properties, others);
  return planc_error(PLANC_BAD_INPUT, "device %s has no device properties (%s%s); these have: %s", name, name,
                     properties, others);
}
