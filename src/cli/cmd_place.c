/* `planc place`: addresses for buffers whose lifetimes and sizes are known. */
#include <stdlib.h>
#include <string.h>

#include "cli/buffer_file.h"
#include "cli/cli.h"
#include "program/print.h"
#include "util/size.h"

static const prog_option options[] = {
    {"capacity", 0, "SIZE", "how much memory will do (default: as little as is found)"},
    {"alignment", 0, "SIZE", "addresses are multiples of this, and sizes count so (default: 1)"},
    {"effort", 0, "0..3",
     "how long to search for less: not at all, up to about a third of a second, 3 or 30 (default: 2)"},
    {"output", 'o', "FILE",
     "the buffers with their addresses, - for standard output (default: FILE's name with .placed.csv, here)"},
    {"json", 0, NULL, "the summary as one line of JSON"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);
static planc_status read_terms(const prog_arguments *arguments, planc_place_terms *out);
static planc_status place(const prog_arguments *arguments, const planc_place_terms *terms, cli_buffer_file *file,
                          const char *output);
static planc_status report(const prog_arguments *arguments, const planc_place_terms *terms, int32_t n,
                           const char *output, const planc_placed *placed);

const prog_subcommand cli_cmd_place = {
    {"place", "FILE.csv", "find addresses for buffers whose lifetimes are known", options, 1, 1}, run, list_files};

static planc_status run(const prog_arguments *arguments) {
  char *output;
  cli_buffer_file file = {0};
  planc_place_terms terms;
  PLANC_TRY(read_terms(arguments, &terms));
  PLANC_TRY(cli_output_name(arguments, ".placed.csv", &output));
  planc_status status = cli_buffer_file_read(arguments->operands[0], &file);
  if (!status) status = place(arguments, &terms, &file, output);
  cli_buffer_file_free(&file);
  free(output);
  return status;
}

static planc_status place(const prog_arguments *arguments, const planc_place_terms *terms, cli_buffer_file *file,
                          const char *output) {
  planc_placed placed;
  planc_status status = planc_place(file->buffers, file->n, terms, &placed);
  if (status) return planc_context(status, "%s", arguments->operands[0]);
  if (!prog_option_given(arguments, "output")) cli_note("output %s", output);
  PLANC_TRY(cli_buffer_file_write(file, output));
  return strcmp(output, "-") == 0 ? NULL : report(arguments, terms, file->n, output, &placed);
}

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  char *output;
  PLANC_TRY(prog_used_files_read(files, arguments->operands[0]));
  PLANC_TRY(cli_output_name(arguments, ".placed.csv", &output));
  planc_status status = prog_used_files_write(files, output);
  free(output);
  return status;
}

static planc_status read_terms(const prog_arguments *arguments, planc_place_terms *out) {
  int64_t effort;
  PLANC_TRY(prog_option_size(arguments, "capacity", 0, &out->capacity));
  PLANC_TRY(prog_option_size(arguments, "alignment", 1, &out->alignment));
  PLANC_TRY(prog_option_int(arguments, "effort", 0, PLANC_PLACE_MOST_EFFORT, PLANC_PLACE_EFFORT, &effort));
  if (prog_option_given(arguments, "capacity") && out->capacity == 0)
    return planc_error(PLANC_USAGE, "--capacity 0 holds nothing: leave it out for as little as is found");
  if (out->alignment == 0) return planc_error(PLANC_USAGE, "--alignment 0: it is 1 at least");
  out->effort = (int32_t)effort;
  return NULL;
}

static void print_least(const planc_placed *placed);

static planc_status report(const prog_arguments *arguments, const planc_place_terms *terms, int32_t n,
                           const char *output, const planc_placed *placed) {
  char text[PL_SIZE_TEXT];
  if (prog_option_given(arguments, "json")) {
    cJSON *object = cJSON_CreateObject();
    pl_json_add_string(object, "planc", "place/1");
    pl_json_add_string(object, "file", arguments->operands[0]);
    pl_json_add_string(object, "output", output);
    pl_json_add_int(object, "buffers", n);
    pl_json_add_int(object, "bytes", placed->bytes);
    pl_json_add_int(object, "least_bytes", placed->least_bytes);
    pl_json_add_int(object, "live_bytes", placed->live_bytes);
    pl_json_add_bool(object, "is_least", placed->bytes == placed->least_bytes);
    pl_json_add_bool(object, "too_many", placed->too_many);
    pl_json_add_int(object, "alignment", terms->alignment);
    pl_json_add_int(object, "effort", terms->effort);
    return prog_print_json(stdout, object);
  }
  prog_print_line(stdout, "%s: %d buffer%s", output, n, n == 1 ? "" : "s");
  printf("  needs     %lld bytes (%s)", (long long)placed->bytes, pl_size_format(placed->bytes, text));
  if (terms->capacity > 0) printf(" of %s", pl_size_format(terms->capacity, text));
  printf("\n");
  print_least(placed);
  return NULL;
}

static void print_least(const planc_placed *placed) {
  printf("  at least  %lld bytes, ", (long long)placed->least_bytes);
  printf(placed->least_bytes == placed->live_bytes ? "which live at a time" : "as a complete search has shown");
  if (placed->bytes > placed->least_bytes)
    printf(": %.2f %% less might do%s", 100.0 * (double)(placed->bytes - placed->least_bytes) / (double)placed->bytes,
           placed->too_many ? ", which is not searched for: there are too many buffers" : "");
  printf("\n");
}
