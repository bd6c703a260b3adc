/* Parsing command lines by their tables (options.h). */
#include "program/options.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/math.h"
#include "util/size.h"

static planc_status parse_option(prog_arguments *out, int argc, char **argv, int *position);
static int32_t find_long(const prog_option *options, const char *text, size_t length);
static int32_t find_short(const prog_option *options, char letter);
static planc_status set_option(prog_arguments *out, int32_t index, const char *attached, int argc, char **argv,
                               int *position);

planc_status prog_options_parse(const prog_command_line *line, int argc, char **argv, prog_arguments *out) {
  *out = (prog_arguments){.line = line};
  for (int32_t n = 0; line->options[n].name; n++) assert(n < PROG_MAX_OPTIONS);
  bool only_operands = false;
  for (int i = 0; i < argc; i++) {
    const char *argument = argv[i];
    if (!only_operands && strcmp(argument, "--") == 0) {
      only_operands = true;
    } else if (!only_operands && (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)) {
      out->help = true;
      return NULL;
    } else if (!only_operands && argument[0] == '-' && argument[1]) {
      PLANC_TRY(parse_option(out, argc, argv, &i));
    } else {
      if (out->n_operands >= line->max_operands) return planc_error(PLANC_USAGE, "unexpected operand %s", argument);
      out->operands[out->n_operands++] = argument;
    }
  }
  if (out->n_operands < line->min_operands) return planc_error(PLANC_USAGE, "missing operand: %s", line->operands);
  return NULL;
}

static planc_status parse_option(prog_arguments *out, int argc, char **argv, int *position) {
  const char *argument = argv[*position];
  int32_t index;
  const char *attached = NULL;
  if (argument[1] == '-') {
    const char *equals = strchr(argument, '=');
    if (equals) attached = equals + 1;
    index =
        find_long(out->line->options, argument + 2, equals ? (size_t)(equals - argument - 2) : strlen(argument + 2));
  } else {
    index = find_short(out->line->options, argument[1]);
    if (argument[2]) attached = argument + 2;
  }
  if (index < 0) return planc_error(PLANC_USAGE, "unknown option %s", argument);
  return set_option(out, index, attached, argc, argv, position);
}

/* Index of the option that `text` of `length` names, -1 if none. */
static int32_t find_long(const prog_option *options, const char *text, size_t length) {
  for (int32_t i = 0; options[i].name; i++) {
    if (strlen(options[i].name) == length && strncmp(options[i].name, text, length) == 0) return i;
  }
  return -1;
}

static int32_t find_short(const prog_option *options, char letter) {
  for (int32_t i = 0; options[i].name; i++) {
    if (options[i].letter && options[i].letter == letter) return i;
  }
  return -1;
}

/* Whether it is an option's name and nothing else, which nobody means as another option's value. */
static bool is_option(const prog_option *options, const char *argument) {
  if (argument[0] != '-' || !argument[1]) return false;
  if (argument[1] == '-') return find_long(options, argument + 2, strlen(argument + 2)) >= 0;
  return !argument[2] && find_short(options, argument[1]) >= 0;
}

/* Whether it may be given several times. */
static bool repeats(const prog_option *option) {
  const char *dots = option->value ? strstr(option->value, " ...") : NULL;
  return dots && strcmp(dots, " ...") == 0;
}

static planc_status set_option(prog_arguments *out, int32_t index, const char *attached, int argc, char **argv,
                               int *position) {
  const prog_option *option = &out->line->options[index];
  if (out->values[index] && !repeats(option)) return planc_error(PLANC_USAGE, "--%s is given twice", option->name);
  if (!option->value) {
    if (attached) return planc_error(PLANC_USAGE, "--%s takes no value", option->name);
    out->values[index] = "";
    return NULL;
  }
  if (!attached) {
    if (*position + 1 >= argc || is_option(out->line->options, argv[*position + 1]))
      return planc_error(PLANC_USAGE, "--%s needs a value: %s", option->name, option->value);
    attached = argv[++*position];
  }
  if (!out->values[index]) out->values[index] = attached;
  if (!repeats(option)) return NULL;
  if (out->n_repeated == PROG_MAX_REPEATS)
    return planc_error(PLANC_USAGE, "--%s: more than %d values", option->name, PROG_MAX_REPEATS);
  out->repeated[out->n_repeated].option = index;
  out->repeated[out->n_repeated++].value = attached;
  return NULL;
}

const char *prog_option_value(const prog_arguments *arguments, const char *name) {
  int32_t index = find_long(arguments->line->options, name, strlen(name));
  return index < 0 ? NULL : arguments->values[index];
}

const char *prog_option_repeated(const prog_arguments *arguments, const char *name, int32_t index) {
  int32_t option = find_long(arguments->line->options, name, strlen(name));
  for (int32_t i = 0; i < arguments->n_repeated; i++)
    if (arguments->repeated[i].option == option && index-- == 0) return arguments->repeated[i].value;
  return NULL;
}

int32_t prog_option_count(const prog_arguments *arguments, const char *name) {
  int32_t n = 0;
  while (prog_option_repeated(arguments, name, n)) n++;
  return n;
}

bool prog_option_given(const prog_arguments *arguments, const char *name) {
  return prog_option_value(arguments, name) != NULL;
}

planc_status prog_option_int(const prog_arguments *arguments, const char *name, int64_t low, int64_t high,
                             int64_t fallback, int64_t *out) {
  const char *text = prog_option_value(arguments, name);
  *out = fallback;
  return text ? prog_option_int_of(name, text, low, high, out) : NULL;
}

planc_status prog_option_int_of(const char *name, const char *text, int64_t low, int64_t high, int64_t *out) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || end == text || *end || value < low || value > high) {
    return planc_error(PLANC_USAGE, "--%s %s: not an integer from %lld to %lld", name, text, (long long)low,
                       (long long)high);
  }
  *out = value;
  return NULL;
}

planc_status prog_option_size(const prog_arguments *arguments, const char *name, int64_t fallback, int64_t *out) {
  const char *text = prog_option_value(arguments, name);
  *out = fallback;
  return text ? prog_option_size_of(name, text, out) : NULL;
}

planc_status prog_option_size_of(const char *name, const char *text, int64_t *out) {
  PLANC_TRY(planc_context(pl_size_parse(text, out), "--%s", name));
  if (*out <= PL_EXACT_MAX) return NULL;
  return planc_error(PLANC_USAGE, "--%s: %s is more than a plan can hold, 2^53 bytes", name, text);
}

planc_status prog_option_time(const prog_arguments *arguments, const char *name, int64_t fallback, int64_t *out_ns) {
  const char *text = prog_option_value(arguments, name);
  *out_ns = fallback;
  return text ? planc_context(pl_time_parse(text, out_ns), "--%s %s", name, text) : NULL;
}

void prog_options_help(const char *program, const prog_command_line *line, FILE *out) {
  fprintf(out, "usage: %s %s%s%s [option ...]\n\n%s\n\noptions:\n", program, line->name, *line->operands ? " " : "",
          line->operands, line->summary);
  for (const prog_option *option = line->options; option->name; option++) {
    char left[64];
    char letter[] = "   ";
    if (option->letter) {
      letter[0] = '-';
      letter[1] = option->letter;
      letter[2] = ',';
    }
    snprintf(left, sizeof left, "%s --%s%s%s", letter, option->name, option->value ? " " : "",
             option->value ? option->value : "");
    fprintf(out, "  %-30s %s\n", left, option->help);
  }
  fprintf(out, "  %-30s %s\n", "-h, --help", "this text");
}
