/* Text for terminals and logs (print.h). */
#include "util/print.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

/* The character of `length` bytes at `at`. */
static uint32_t code_point(const unsigned char *at, int length) {
  uint32_t value = length == 1 ? at[0] : at[0] & (0xffu >> (length + 1));
  for (int i = 1; i < length; i++) value = value << 6 | (at[i] & 0x3fu);
  return value;
}

/* C0 and C1; line and paragraph separators; marks, embeddings, overrides and isolates of direction. */
static bool is_obeyed(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void planc_print_text(FILE *out, const char *text) {
  const char *end = text + strlen(text), *begin = text;
  while (text < end) {
    int length = planc_utf8_length(text, end), width = length ? length : 1;
    bool command = *text == '#' && text > begin && text[-1] == '#';
    if (length > 0 && !command && !is_obeyed(code_point((const unsigned char *)text, length))) {
      fwrite(text, 1, (size_t)length, out);
    } else {
      for (int i = 0; i < width; i++) fprintf(out, "\\x%02x", (unsigned)(unsigned char)text[i]);
    }
    text += width;
  }
}

void planc_vprint(FILE *out, const char *format, va_list arguments) {
  char brief[512]; /* what there is room for without memory */
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(brief, sizeof brief, format, arguments);
  char *whole = length >= (int)sizeof brief ? malloc((size_t)length + 1) : NULL;
  if (whole) vsnprintf(whole, (size_t)length + 1, format, again);
  va_end(again);
  planc_print_text(out, whole ? whole : brief);
  free(whole);
}

void planc_vprint_line(FILE *out, const char *format, va_list arguments) {
  planc_vprint(out, format, arguments);
  fputc('\n', out);
}

void planc_print_line(FILE *out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  planc_vprint_line(out, format, arguments);
  va_end(arguments);
}

static void make_utf8(char *text) {
  const char *end = text + strlen(text);
  for (int length; text < end; text += length ? length : 1) {
    length = planc_utf8_length(text, end);
    if (!length) *text = '?';
  }
}

planc_status planc_print_json(FILE *out, cJSON *tree) {
  char *text;
  size_t length;
  planc_status status = planc_json_print(tree, PLANC_JSON_LINE, &text, &length);
  cJSON_Delete(tree);
  PLANC_TRY(status);
  make_utf8(text);
  (void)fprintf(out, "%s\n", text);
  free(text);
  return NULL;
}
