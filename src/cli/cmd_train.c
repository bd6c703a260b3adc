/* `planc train`: derives the backward pass and the optimizer of a forward graph. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "program/print.h"
#include "util/file.h"

static const prog_option options[] = {
    {"optimizer", 0, "NAME", "sgd, momentum or adam (default: the graph's header, else sgd)"},
    {"precision", 0, "NAME", "f32, tf32 or bf16 (default: f32)"},
    {"output", 'o', "FILE", "the training graph (default: standard output)"},
    {0},
};

static planc_status run(const prog_arguments *arguments);
static planc_status list_files(const prog_arguments *arguments, prog_used_files *files);

const prog_subcommand cli_cmd_train = {
    {"train", "GRAPH", "derive backward and optimizer ops of a forward graph", options, 1, 1}, run, list_files};

/* Puts the graph in the precision that is asked for; *graph is the new one. */
static planc_status convert(const prog_arguments *arguments, planc_graph **graph) {
  const char *name = prog_option_value(arguments, "precision");
  planc_precision precision;
  planc_graph *converted;
  if (!name) return NULL;
  PLANC_TRY(planc_precision_parse(name, &precision));
  PLANC_TRY(planc_context(planc_graph_convert(*graph, precision, &converted), "%s", arguments->operands[0]));
  planc_graph_free(*graph);
  *graph = converted;
  return NULL;
}

static const char *output_of(const prog_arguments *arguments) {
  const char *output = prog_option_value(arguments, "output");
  return output ? output : "-";
}

static planc_status list_files(const prog_arguments *arguments, prog_used_files *files) {
  PLANC_TRY(prog_used_files_read(files, arguments->operands[0]));
  return prog_used_files_write(files, output_of(arguments));
}

static planc_status write_graph(const planc_graph *train, const char *output) {
  char *text;
  size_t length;
  PLANC_TRY(planc_graph_print(train, &text, &length));
  planc_status status = pl_file_write(output, text, length);
  free(text);
  if (!status && strcmp(output, "-") != 0)
    prog_print_line(stdout, "%s: %s, %d ops", output, train->name, (int)train->n_ops);
  return status;
}

static planc_status run(const prog_arguments *arguments) {
  const char *path = arguments->operands[0], *name;
  planc_graph *graph, *train = NULL;
  PLANC_TRY(planc_graph_read(path, &graph));
  planc_optimizer optimizer = PLANC_SGD;
  planc_status status = planc_graph_optimizer(graph, prog_option_value(arguments, "optimizer"), &optimizer, &name);
  if (!status) status = convert(arguments, &graph);
  if (!status) status = planc_context(planc_graph_train(graph, optimizer, &train), "%s", path);
  planc_graph_free(graph);
  if (!status) status = write_graph(train, output_of(arguments));
  planc_graph_free(train);
  return status;
}
