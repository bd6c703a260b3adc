/* What has been measured so far, in a file (profile_part.h). */
#define _DEFAULT_SOURCE /* truncate */
#include "runtime/profile_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/file.h"
#include "util/json_tree.h"

/* A run that began and measured nothing. */
static bool is_head_only(const char *text, size_t length) {
  static const char ours[] = "{\"planrun\":\"profile/";
  const char *end = memchr(text, '\n', length);
  if (!end) return length == 0 || strncmp(text, ours, length < sizeof ours - 1 ? length : sizeof ours - 1) == 0;
  return strncmp(text, ours, sizeof ours - 1) == 0 && !memchr(end + 1, '\n', length - (size_t)(end + 1 - text));
}

/* Reads the lines that are whole; one cut off by whatever ended the run before is measured again. *out_end is where
 * they end. */
static planc_status read_pieces(const planrt_kept *kept, const char *head, char *text, size_t length, size_t *out_end) {
  *out_end = 0;
  if (is_head_only(text, length)) return NULL;
  if (!memchr(text, '\n', length)) return planc_error(PLANC_STALE, "%s: is no part of a profile", kept->path);
  for (char *line = text, *end; (end = memchr(line, '\n', length - (size_t)(line - text))); line = end + 1) {
    *end = 0;
    if (line == text) {
      if (strcmp(line, head) != 0)
        return planc_error(PLANC_STALE,
                           "%s: left by a run on another machine, graph or with other options; remove it to start anew",
                           kept->path);
    } else {
      cJSON *piece;
      planc_status status = planc_json_tree(line, (size_t)(end - line), NULL, &piece);
      planc_json_add(kept->pieces, NULL, piece);
      if (planc_status_code(status) == PLANC_BAD_INPUT) {
        planc_status_free(status);
        return planc_error(PLANC_BAD_INPUT, "%s: damaged; remove it to start anew", kept->path);
      }
      PLANC_TRY(planc_context(status, "%s", kept->path));
    }
    *out_end = (size_t)(end + 1 - text);
  }
  return NULL;
}

static planc_status open_file(planrt_kept *kept, const char *head) {
  enum { LIMIT = 1 << 30 };
  char *text;
  size_t length, end = 0;
  if (access(kept->path, F_OK) == 0) {
    PLANC_TRY(planc_file_read(kept->path, LIMIT, &text, &length));
    planc_status status = read_pieces(kept, head, text, length, &end);
    free(text);
    PLANC_TRY(status);
    if (truncate(kept->path, (off_t)end) != 0) return planc_error(PLANC_IO, "%s: %s", kept->path, strerror(errno));
  }
  kept->file = fopen(kept->path, "a");
  if (kept->file && (end > 0 || fprintf(kept->file, "%s\n", head) > 0) && fflush(kept->file) == 0) return NULL;
  return planc_error(PLANC_IO, "%s: %s", kept->path, strerror(errno));
}

planc_status planrt_kept_open(planrt_kept *kept, const char *output, const char *head) {
  kept->pieces = cJSON_CreateArray();
  if (!kept->pieces) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  if (!output) return NULL;
  size_t room = strlen(output) + sizeof ".part";
  kept->path = malloc(room);
  if (!kept->path) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  snprintf(kept->path, room, "%s.part", output);
  return open_file(kept, head);
}

planc_status planrt_kept_add(planrt_kept *kept, cJSON *piece) {
  char *line;
  size_t length;
  planc_status status = planc_json_print(piece, PLANC_JSON_LINE, &line, &length);
  planc_json_add(kept->pieces, NULL, piece);
  PLANC_TRY(status);
  bool written = !kept->file || (fprintf(kept->file, "%s\n", line) > 0 && fflush(kept->file) == 0);
  free(line);
  return written ? NULL : planc_error(PLANC_IO, "%s: %s", kept->path, strerror(errno));
}

planc_status planrt_kept_remove(const planrt_kept *kept) {
  if (!kept->path || unlink(kept->path) == 0) return NULL;
  return planc_error(PLANC_IO, "%s: %s", kept->path, strerror(errno));
}

void planrt_kept_close(planrt_kept *kept) {
  if (kept->file) fclose(kept->file);
  cJSON_Delete(kept->pieces);
  free(kept->path);
}
