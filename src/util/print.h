/* Text from files and command lines for terminals and logs, which obey some of it: escape sequences, control
 * characters, characters that turn the direction of writing, and ## of the commands that build servers look for. It is
 * written with \xNN for such bytes and for what is not UTF-8. */
#ifndef PLANC_UTIL_PRINT_H
#define PLANC_UTIL_PRINT_H

#include <stdarg.h>
#include <stdio.h>

#include "util/json_tree.h"

void planc_print_text(FILE *out, const char *text);
/* What the format and its arguments make, escaped. */
void planc_vprint(FILE *out, const char *format, va_list arguments);
/* The same as a line. */
void planc_print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void planc_vprint_line(FILE *out, const char *format, va_list arguments);
/* A tree as a line, after which it is freed. A path may hold any bytes, JSON only text: what is none is printed as
 * question marks. */
planc_status planc_print_json(FILE *out, cJSON *tree);

#endif
