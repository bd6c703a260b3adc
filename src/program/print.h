/* Text from files and command lines for terminals and logs, which obey some of it: escape sequences, control
 * characters, characters that turn the direction of writing, and ## and :: of the commands that build servers look for.
 * Each form of output writes such characters in its own way, text \xNN for their bytes and for what is not UTF-8. */
#ifndef PROGRAM_PRINT_H
#define PROGRAM_PRINT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "util/json_tree.h"

typedef struct prog_character {
  int length;   /* bytes */
  int32_t code; /* of Unicode; -1: a byte that is not UTF-8 */
  bool obeyed;  /* ASCII, or two or three bytes */
} prog_character;
/* The character at `at`, which is before the end of `text`. A line may begin with the text. */
prog_character prog_character_at(const char *text, const char *at);

void prog_print_text(FILE *out, const char *text);
/* What the format and its arguments make, escaped. */
void prog_vprint(FILE *out, const char *format, va_list arguments);
/* The same as a line. */
void prog_print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void prog_vprint_line(FILE *out, const char *format, va_list arguments);
/* A tree as a line, after which it is freed; \uNNNN for what is obeyed. A path may hold any bytes, JSON only text: what
 * is none is printed as question marks. */
planc_status prog_print_json(FILE *out, cJSON *tree);

#endif
