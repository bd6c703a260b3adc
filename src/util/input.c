/* Opening what is read (input.h). */
#define _GNU_SOURCE /* tee, pipe2 */
#include "util/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *fault_of(int file, bool pipes);

planc_status pl_input_open(const char *path, bool pipes, int *out_file) {
  int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return planc_error(PLANC_BAD_INPUT, "%s: %s", path, strerror(errno));
  const char *fault = fault_of(file, pipes);
  *out_file = file;
  if (!fault) return NULL;
  planc_status status = planc_error(PLANC_BAD_INPUT, "%s: %s", path, fault);
  close(file);
  return status;
}

/* Whether a pipe has a writer or has still something that one wrote. Looks at what would be read and takes nothing;
 * tee(2) finds the pipe's end where there is neither, and would have to wait where a writer has not written yet. */
static bool is_written_to(int file) {
  int own[2];
  if (pipe2(own, O_CLOEXEC) != 0) return true;
  bool end = tee(file, own[1], 1, SPLICE_F_NONBLOCK) == 0;
  close(own[0]);
  close(own[1]);
  return !end;
}

static const char *fault_of(int file, bool pipes) {
  struct stat info;
  if (fstat(file, &info) != 0) return strerror(errno);
  if (S_ISDIR(info.st_mode)) return "is a directory";
  if (S_ISREG(info.st_mode)) return NULL;
  if (!S_ISFIFO(info.st_mode)) return pipes ? "is neither a file nor a pipe" : "is not a file";
  if (!pipes) return "is a pipe, and must be a file: it is read twice";
  if (!is_written_to(file)) return "is a pipe that nobody writes to";
  /* From here on it is waited for. */
  int flags = fcntl(file, F_GETFL);
  return flags < 0 || fcntl(file, F_SETFL, flags & ~O_NONBLOCK) != 0 ? strerror(errno) : NULL;
}
