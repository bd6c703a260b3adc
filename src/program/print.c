/* Text for terminals and logs (print.h). */
#include "program/print.h"

#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

static int32_t code_point(const unsigned char *at, int length);
static bool is_control(int32_t c);
static bool is_command(const char *text, const char *at);

prog_character prog_character_at(const char *text, const char *at) {
  int length = pl_utf8_length(at, at + strnlen(at, 4));
  if (length == 0) return (prog_character){.length = 1, .code = -1};
  int32_t code = code_point((const unsigned char *)at, length);
  return (prog_character){.length = length, .code = code, .obeyed = is_control(code) || is_command(text, at)};
}

/* --- What is obeyed ----------------------------------------------------------------------------------------------- */

static int32_t code_point(const unsigned char *at, int length) {
  uint32_t value = length == 1 ? at[0] : at[0] & (0xffu >> (length + 1));
  for (int i = 1; i < length; i++) value = value << 6 | (at[i] & 0x3fu);
  return (int32_t)value;
}

/* C0 and C1; line and paragraph separators; marks, embeddings, overrides and isolates of direction. */
static bool is_control(int32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Build servers look for ## anywhere, and for :: where a line begins, behind blanks of any kind: all but what shows and
 * is ASCII may be one. */
static bool is_command(const char *text, const char *at) {
  unsigned char before = at > text ? (unsigned char)at[-1] : ' ';
  return at[0] == '#' ? before == '#' : at[0] == ':' && at[1] == ':' && (before <= ' ' || before >= 0x7f);
}

/* --- Terminals and logs ------------------------------------------------------------------------------------------- */

void prog_print_text(FILE *out, const char *text) {
  prog_character c;
  for (const char *at = text; *at; at += c.length) {
    c = prog_character_at(text, at);
    if (c.code >= 0 && !c.obeyed) {
      fwrite(at, 1, (size_t)c.length, out);
    } else {
      for (int i = 0; i < c.length; i++) fprintf(out, "\\x%02x", (unsigned)(unsigned char)at[i]);
    }
  }
}

void prog_vprint(FILE *out, const char *format, va_list arguments) {
  char brief[512]; /* what there is room for without memory */
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(brief, sizeof brief, format, arguments);
  char *whole = length >= (int)sizeof brief ? malloc((size_t)length + 1) : NULL;
  if (whole) vsnprintf(whole, (size_t)length + 1, format, again);
  va_end(again);
  prog_print_text(out, whole ? whole : brief);
  free(whole);
}

void prog_vprint_line(FILE *out, const char *format, va_list arguments) {
  prog_vprint(out, format, arguments);
  fputc('\n', out);
}

void prog_print_line(FILE *out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  prog_vprint_line(out, format, arguments);
  va_end(arguments);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

/* What is obeyed stands in strings only, where a number can stand for it. */
static void print_json_text(FILE *out, const char *text) {
  prog_character c;
  for (const char *at = text; *at; at += c.length) {
    c = prog_character_at(text, at);
    if (c.code < 0) {
      fputc('?', out);
    } else if (c.obeyed) {
      fprintf(out, "\\u%04x", (unsigned)c.code);
    } else {
      fwrite(at, 1, (size_t)c.length, out);
    }
  }
}

planc_status prog_print_json(FILE *out, cJSON *tree) {
  char *text;
  size_t length;
  planc_status status = pl_json_print(tree, PL_JSON_LINE, &text, &length);
  cJSON_Delete(tree);
  PLANC_TRY(status);
  print_json_text(out, text);
  fputc('\n', out);
  free(text);
  return NULL;
}
