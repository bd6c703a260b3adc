/* Dispatch to subcommands (program.h). */
#include "program/program.h"

#include <signal.h>
#include <string.h>

#include "planc/plan.h"
#include "planc/version.h"

planc_status prog_remedy(planc_status status) {
  static const char *const remedies[] = {
      [PLANC_REMEDY_INFERENCE] = "--inference takes it as it stands",
      [PLANC_REMEDY_SPLIT_BATCH_NORM] = "--split-batch-norm allows it",
      [PLANC_REMEDY_SYNTHETIC] = "planrun exec --synthetic runs any graph, with stand-ins",
      [PLANC_REMEDY_STORAGE] = "--storage names one that has room",
      [PLANC_REMEDY_DEADLINES] = "--deadline gives them",
  };
  planc_remedy remedy = planc_status_remedy(status);
  if (remedy == PLANC_REMEDY_NONE) return status;
  planc_status named = planc_error(planc_status_code(status), "%s; %s", planc_status_message(status), remedies[remedy]);
  planc_status_free(status);
  return named;
}

static planc_status dispatch(const prog_program *program, int argc, char **argv, FILE *out);

planc_status prog_run(const prog_program *program, int argc, char **argv, FILE *out) {
  (void)signal(SIGXFSZ, SIG_IGN); /* a file that grows beyond the limit for files is an error of write */
  PLANC_TRY(prog_remedy(dispatch(program, argc, argv, out)));
  return fflush(out) || ferror(out) ? planc_error(PLANC_IO, "standard output cannot be written") : NULL;
}

static void print_usage(const prog_program *program, FILE *out);
static planc_status run_subcommand(const prog_program *program, const prog_subcommand *subcommand, int argc,
                                   char **argv, FILE *out);
static planc_status run_on_files(const prog_subcommand *subcommand, prog_arguments *arguments);

static planc_status dispatch(const prog_program *program, int argc, char **argv, FILE *out) {
  if (argc < 1) return planc_error(PLANC_USAGE, "no command given; '%s --help' lists them", program->name);
  if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
    print_usage(program, out);
    return NULL;
  }
  if (strcmp(argv[0], "--version") == 0) {
    fprintf(out, "%s %s, plan format %d\n", program->name, PLANC_VERSION, PLANC_PLAN_VERSION);
    return NULL;
  }
  for (int32_t i = 0; i < program->n_subcommands; i++)
    if (strcmp(argv[0], program->subcommands[i]->line.name) == 0)
      return run_subcommand(program, program->subcommands[i], argc - 1, argv + 1, out);
  return planc_error(PLANC_USAGE, "unknown command %s; '%s --help' lists them", argv[0], program->name);
}

static void print_usage(const prog_program *program, FILE *out) {
  fprintf(out, "usage: %s COMMAND [operand ...] [option ...]\n\ncommands:\n", program->name);
  for (int32_t i = 0; i < program->n_subcommands; i++)
    fprintf(out, "  %-10s %s\n", program->subcommands[i]->line.name, program->subcommands[i]->line.summary);
  fprintf(out, "\n'%s COMMAND --help' tells a command's options.\n%s", program->name, program->notes);
}

static planc_status run_subcommand(const prog_program *program, const prog_subcommand *subcommand, int argc,
                                   char **argv, FILE *out) {
  prog_arguments arguments;
  PLANC_TRY(planc_context(prog_options_parse(&subcommand->line, argc, argv, &arguments), "%s", subcommand->line.name));
  if (!arguments.help) return run_on_files(subcommand, &arguments);
  prog_options_help(program->name, &subcommand->line, out);
  return NULL;
}

/* What a command would overwrite, or cannot write, is told before it reads anything. */
static planc_status run_on_files(const prog_subcommand *subcommand, prog_arguments *arguments) {
  prog_used_files files = {0};
  arguments->files = &files;
  planc_status status = subcommand->list_files ? subcommand->list_files(arguments, &files) : NULL;
  if (!status && prog_option_given(arguments, "json")) status = prog_used_files_write(&files, "-");
  if (!status) status = prog_used_files_probe(&files);
  if (!status) status = subcommand->run(arguments);
  arguments->files = NULL;
  prog_used_files_free(&files);
  return status;
}
