/* Files of buffers (buffer_file.h). */
#include "cli/buffer_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/emit.h"
#include "util/file.h"
#include "util/vec.h"

enum { MAX_BYTES = 256 << 20, N_COLUMNS = 5 };

typedef enum column { ID, LOWER, UPPER, SIZE, OFFSET } column;
static const char *const names[N_COLUMNS] = {"id", "lower", "upper", "size", "offset"};

typedef struct buffer_reading {
  const char *path;
  cli_buffer_file *file;
  char *next;   /* behind the line; NULL behind the last one */
  int32_t line; /* from 1 */
  int32_t n_fields;
  char *fields[N_COLUMNS];
  int32_t at[N_COLUMNS]; /* each column's field; -1 = the file has none */
  VEC(planc_place_buffer) buffers;
  VEC(const char *) ids;
} buffer_reading;

static planc_status read_header(buffer_reading *r);
static planc_status read_lines(buffer_reading *r);
static planc_status read_buffer(buffer_reading *r);
static planc_status next_line(buffer_reading *r, bool *out_any);
static planc_status take_int(const buffer_reading *r, column which, int64_t *out);

planc_status cli_buffer_file_read(const char *path, cli_buffer_file *out) {
  char *text;
  size_t length;
  *out = (cli_buffer_file){0};
  PLANC_TRY(pl_file_read_text(path, MAX_BYTES, &text, &length));
  static const char mark[] = "\xEF\xBB\xBF"; /* of UTF-8, as spreadsheets begin a file with */
  bool is_marked = strncmp(text, mark, sizeof mark - 1) == 0;
  buffer_reading r = {.path = path, .file = out, .next = is_marked ? text + sizeof mark - 1 : text};
  planc_status status = read_header(&r);
  if (!status) status = read_lines(&r);
  if (!status)
    status = pl_arena_copy(&out->memory, r.buffers.data, r.buffers.len, sizeof *r.buffers.data, &out->buffers);
  if (!status) status = pl_arena_copy(&out->memory, r.ids.data, r.ids.len, sizeof *r.ids.data, &out->names);
  out->n = (int32_t)r.buffers.len;
  VEC_FREE(&r.buffers);
  VEC_FREE(&r.ids);
  free(text);
  if (status) cli_buffer_file_free(out);
  return status;
}

void cli_buffer_file_free(cli_buffer_file *file) {
  pl_arena_free(&file->memory);
  *file = (cli_buffer_file){0};
}

static planc_status read_header(buffer_reading *r) {
  bool any;
  PLANC_TRY(next_line(r, &any));
  if (!any) return planc_error(PLANC_BAD_INPUT, "%s is empty: its first line names id, lower, upper and size", r->path);
  for (int32_t c = 0; c < N_COLUMNS; c++) r->at[c] = -1;
  for (int32_t f = 0; f < r->n_fields; f++) {
    int32_t c = 0;
    while (c < N_COLUMNS && strcmp(r->fields[f], names[c]) != 0) c++;
    if (c == N_COLUMNS)
      return planc_error(PLANC_BAD_INPUT,
                         "%s: line %d: a column is called '%s': there may be id, lower, upper, size and offset alone",
                         r->path, r->line, r->fields[f]);
    if (r->at[c] >= 0) return planc_error(PLANC_BAD_INPUT, "%s: line %d: two columns %s", r->path, r->line, names[c]);
    r->at[c] = f;
  }
  for (int32_t c = ID; c <= SIZE; c++)
    if (r->at[c] < 0)
      return planc_error(PLANC_BAD_INPUT, "%s: line 1 has no column %s: it names id, lower, upper and size", r->path,
                         names[c]);
  return NULL;
}

static planc_status read_lines(buffer_reading *r) {
  int32_t n_columns = r->n_fields;
  for (;;) {
    bool any;
    PLANC_TRY(next_line(r, &any));
    if (!any) return NULL;
    if (r->n_fields != n_columns)
      return planc_error(PLANC_BAD_INPUT, "%s: line %d has %d fields, line 1 has %d", r->path, r->line, r->n_fields,
                         n_columns);
    PLANC_TRY(read_buffer(r));
  }
}

static planc_status read_buffer(buffer_reading *r) {
  planc_place_buffer b = {0};
  const char *id;
  PLANC_TRY(take_int(r, LOWER, &b.lower));
  PLANC_TRY(take_int(r, UPPER, &b.upper));
  PLANC_TRY(take_int(r, SIZE, &b.bytes));
  if (b.lower >= b.upper)
    return planc_error(PLANC_BAD_INPUT, "%s: line %d: lower %lld is not below upper %lld", r->path, r->line,
                       (long long)b.lower, (long long)b.upper);
  const char *field = r->fields[r->at[ID]];
  PLANC_TRY(pl_arena_strndup(&r->file->memory, field, strlen(field), &id));
  VEC_PUSH(&r->buffers, b);
  VEC_PUSH(&r->ids, id);
  return NULL;
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

/* Cuts the next line that is not empty into its fields; false = there is none. */
static planc_status next_line(buffer_reading *r, bool *out_any) {
  char *line = NULL;
  r->n_fields = 0;
  *out_any = false;
  while (r->next && (!line || *line == '\0')) {
    line = r->next;
    r->line++;
    r->next = strchr(line, '\n');
    if (r->next) *r->next++ = '\0';
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\r') line[length - 1] = '\0';
  }
  if (!line || *line == '\0') return NULL;
  *out_any = true;
  while (line) {
    char *comma = strchr(line, ',');
    if (comma) *comma++ = '\0';
    if (r->n_fields == N_COLUMNS)
      return planc_error(PLANC_BAD_INPUT, "%s: line %d has more than %d fields", r->path, r->line, N_COLUMNS);
    r->fields[r->n_fields++] = line;
    line = comma;
  }
  return NULL;
}

/* Digits alone. */
static planc_status take_int(const buffer_reading *r, column which, int64_t *out) {
  const char *text = r->fields[r->at[which]];
  size_t digits = strspn(text, "0123456789");
  errno = 0;
  *out = strtoll(text, NULL, 10);
  if (digits == 0 || text[digits] != '\0' || errno)
    return planc_error(PLANC_BAD_INPUT, "%s: line %d: %s '%s' is not an integer of 64 bits from 0", r->path, r->line,
                       names[which], text);
  return NULL;
}

planc_status cli_buffer_file_write(const cli_buffer_file *file, const char *path) {
  pl_emit emit = {0};
  char *text;
  size_t length;
  EMIT(&emit, "id,lower,upper,size,offset\n");
  for (int32_t i = 0; i < file->n; i++) {
    const planc_place_buffer *b = &file->buffers[i];
    pl_emit_text(&emit, file->names[i]);
    pl_emit_format(&emit, ",%lld,%lld,%lld,%lld\n", (long long)b->lower, (long long)b->upper, (long long)b->bytes,
                   (long long)b->address);
  }
  PLANC_TRY(pl_emit_take(&emit, &text, &length));
  planc_status status = pl_file_write(path, text, length);
  free(text);
  return status;
}
