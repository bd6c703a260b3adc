/* What a command reads and writes (used_files.h). Files are few, so each new one is held against all others. */
#include "program/used_files.h"

#include <string.h>
#include <unistd.h>

#include "util/file.h"

static planc_status add(prog_used_files *files, const char *path, bool written);
static void find(const char *path, bool written, pl_file_id *out);
static planc_status compare(const prog_used_file *a, const prog_used_file *b);

planc_status prog_used_files_read(prog_used_files *files, const char *path) {
  return add(files, path, false);
}

static planc_status add(prog_used_files *files, const char *path, bool written) {
  prog_used_file file = {.written = written};
  if (!path) return NULL;
  if (!*path) return planc_error(PLANC_USAGE, "a file without a name");
  PLANC_TRY(pl_arena_strndup(&files->memory, path, strlen(path), &file.path));
  find(path, written, &file.id);
  for (int64_t i = 0; i < files->used.len; i++) PLANC_TRY(compare(&files->used.data[i], &file));
  VEC_PUSH(&files->used, file);
  return NULL;
}

planc_status prog_used_files_write(prog_used_files *files, const char *path) {
  return add(files, path, true);
}

planc_status prog_used_files_renew(prog_used_files *files, const char *from, const char *to) {
  pl_file_id read, written;
  if (from && to) {
    find(from, false, &read);
    find(to, true, &written);
    if (pl_file_id_is_same(&read, &written)) return prog_used_files_write(files, to);
  }
  PLANC_TRY(prog_used_files_read(files, from));
  return prog_used_files_write(files, to);
}

planc_status prog_used_files_probe(const prog_used_files *files) {
  for (int64_t i = 0; i < files->used.len; i++)
    if (files->used.data[i].written) PLANC_TRY(pl_file_probe(files->used.data[i].path));
  return NULL;
}

void prog_used_files_free(prog_used_files *files) {
  VEC_FREE(&files->used);
  pl_arena_free(&files->memory);
}

static bool is_standard_output(const char *path) {
  return strcmp(path, "-") == 0;
}

static void find(const char *path, bool written, pl_file_id *out) {
  if (!written || !is_standard_output(path)) {
    pl_file_id_find(path, out);
    return;
  }
  *out = (pl_file_id){0};
  out->known = out->exists = fstat(STDOUT_FILENO, &out->file) == 0;
}

static planc_status compare(const prog_used_file *a, const prog_used_file *b) {
  if (!a->written && !b->written) return NULL;
  if (a->written && b->written && is_standard_output(a->path) && is_standard_output(b->path))
    return planc_error(PLANC_USAGE, "two outputs go to standard output");
  if (!pl_file_id_is_same(&a->id, &b->id)) return NULL;
  if (a->written && b->written)
    return planc_error(PLANC_USAGE, "%s is written twice, outputs must be two files", b->path);
  return planc_error(PLANC_USAGE, "%s is read, the output must be another file", a->written ? b->path : a->path);
}
