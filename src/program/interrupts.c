/* A signal that is kept (interrupts.h). */
#define _DEFAULT_SOURCE /* SA_RESTART */
#include "program/interrupts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

volatile sig_atomic_t prog_interrupted;

static const char *answer;
static void (*before_the_end)(void);

static void hear(int number);
static void end_by(int number);

void prog_interrupts_catch(const char *told, void (*at_once)(void)) {
  answer = told;
  before_the_end = at_once;
  hear(SIGINT);
  hear(SIGTERM);
}

void prog_interrupts_end(void) {
  if (prog_interrupted && fflush(stdout) == 0) end_by(prog_interrupted);
}

static void end_by(int number) {
  signal(number, SIG_DFL);
  raise(number);
}

static void interrupt(int number) {
  int error = errno;
  if (prog_interrupted) {
    if (before_the_end) before_the_end();
    end_by(number); /* as soon as this returns */
    return;
  }
  prog_interrupted = number;
  if (write(STDERR_FILENO, answer, strlen(answer)) < 0) errno = 0; /* who cannot be told is ended all the same */
  errno = error;
}

/* What whoever started the program has it ignore stays ignored: shells without job control do so with what runs in the
 * background, which a Ctrl-C that is meant for the script must not end. */
static void hear(int number) {
  const struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
  struct sigaction found;
  if (sigaction(number, NULL, &found) == 0 && found.sa_handler == SIG_IGN) return;
  sigaction(number, &action, NULL);
}
