/* What has been measured so far, in a file (profile_part.h). */
#define _DEFAULT_SOURCE /* ftruncate, pwrite */
#include "runtime/profile/profile_part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/profile/profile_head.h"
#include "util/file.h"
#include "util/json_tree.h"

static planc_status open_file(rt_kept *kept, const cJSON *head);
static planc_status read_pieces(rt_kept *kept, const cJSON *head, char *text, size_t length);
static planc_status fail(const rt_kept *kept);
static planc_status write_line(const rt_kept *kept, const cJSON *object, int64_t *out_length);

planc_status rt_kept_open(rt_kept *kept, const char *output, const cJSON *head) {
  kept->file = -1;
  kept->pieces = cJSON_CreateArray();
  if (!kept->pieces) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  if (!output) return NULL;
  size_t room = strlen(output) + sizeof RT_PART_SUFFIX;
  kept->path = malloc(room);
  if (!kept->path) return planc_error(PLANC_OUT_OF_MEMORY, "profile");
  snprintf(kept->path, room, "%s%s", output, RT_PART_SUFFIX);
  return open_file(kept, head);
}

static planc_status open_file(rt_kept *kept, const cJSON *head) {
  enum { LIMIT = 1 << 30, MODE = 0666 };
  char *text;
  size_t length;
  int64_t written = 0;
  if (access(kept->path, F_OK) == 0) {
    PLANC_TRY(pl_file_read(kept->path, LIMIT, &text, &length));
    planc_status status = read_pieces(kept, head, text, length);
    free(text);
    PLANC_TRY(status);
  }
  kept->file = open(kept->path, O_WRONLY | O_CREAT | O_CLOEXEC, MODE);
  if (kept->file < 0 || ftruncate(kept->file, (off_t)kept->end) != 0) return fail(kept);
  if (kept->end == 0) PLANC_TRY(write_line(kept, head, &written));
  kept->end += written;
  return NULL;
}

/* A run that began and measured nothing. */
static bool is_head_only(const char *text, size_t length) {
  static const char ours[] = "{\"planrun\":\"profile/";
  const char *end = memchr(text, '\n', length);
  if (!end) return length == 0 || strncmp(text, ours, length < sizeof ours - 1 ? length : sizeof ours - 1) == 0;
  return strncmp(text, ours, sizeof ours - 1) == 0 && !memchr(end + 1, '\n', length - (size_t)(end + 1 - text));
}

/* Reads the lines that are whole; one cut off by whatever ended the run before is measured again. */
static planc_status read_pieces(rt_kept *kept, const cJSON *head, char *text, size_t length) {
  if (is_head_only(text, length)) return NULL;
  if (!memchr(text, '\n', length))
    return planc_error(PLANC_STALE, "%s: is no part of a profile; remove it to start anew", kept->path);
  for (char *line = text, *end; (end = memchr(line, '\n', length - (size_t)(line - text))); line = end + 1) {
    *end = 0;
    if (line == text) {
      PLANC_TRY(planc_context(rt_profile_head_check(line, head), "%s", kept->path));
    } else {
      cJSON *piece;
      planc_status status = pl_json_tree(line, (size_t)(end - line), NULL, &piece);
      pl_json_add(kept->pieces, NULL, piece);
      if (planc_status_code(status) == PLANC_BAD_INPUT) {
        planc_status_free(status);
        return planc_error(PLANC_BAD_INPUT, "%s: damaged; remove it to start anew", kept->path);
      }
      PLANC_TRY(planc_context(status, "%s", kept->path));
    }
    kept->end = end + 1 - text;
  }
  return NULL;
}

static planc_status fail(const rt_kept *kept) {
  return planc_error(PLANC_IO, "%s: %s", kept->path, strerror(errno));
}

static bool write_behind(const rt_kept *kept, const char *text, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t n = pwrite(kept->file, text + done, length - done, (off_t)kept->end + (off_t)done);
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) done += (size_t)n;
  }
  return true;
}

/* Puts an object's line behind the pieces, in place of what is there. */
static planc_status write_line(const rt_kept *kept, const cJSON *object, int64_t *out_length) {
  *out_length = 0;
  if (kept->file < 0) return pl_json_is_whole(object) ? NULL : planc_error(PLANC_OUT_OF_MEMORY, "profile");
  char *line;
  size_t length;
  PLANC_TRY(pl_json_print(object, PL_JSON_LINE, &line, &length));
  line[length++] = '\n'; /* in place of the zero */
  bool written = ftruncate(kept->file, (off_t)kept->end) == 0 && write_behind(kept, line, length);
  free(line);
  *out_length = (int64_t)length;
  return written ? NULL : fail(kept);
}

planc_status rt_kept_add(rt_kept *kept, cJSON *piece) {
  int64_t length;
  planc_status status = write_line(kept, piece, &length);
  pl_json_add(kept->pieces, NULL, piece);
  kept->end += status ? 0 : length;
  return status;
}

planc_status rt_kept_mark(const rt_kept *kept, const cJSON *mark, bool durable) {
  int64_t length;
  PLANC_TRY(write_line(kept, mark, &length));
  return !durable || kept->file < 0 || fdatasync(kept->file) == 0 ? NULL : fail(kept);
}

void rt_kept_unmark(const rt_kept *kept) {
  /* Without room for less there is nothing that could be done. */
  if (kept->file >= 0 && ftruncate(kept->file, (off_t)kept->end) != 0) return;
}

planc_status rt_kept_remove(const rt_kept *kept) {
  if (!kept->path || unlink(kept->path) == 0) return NULL;
  return fail(kept);
}

void rt_kept_close(rt_kept *kept) {
  if (kept->file >= 0) close(kept->file);
  kept->file = -1;
  cJSON_Delete(kept->pieces);
  free(kept->path);
}
