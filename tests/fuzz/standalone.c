/* The main of a fuzz target without a fuzzing engine: it runs the files given as arguments. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    char *text;
    size_t length;
    planc_status status = pl_file_read(argv[i], (size_t)1 << 30, &text, &length);
    if (status) {
      fprintf(stderr, "%s\n", planc_status_message(status));
      planc_status_free(status);
      return EXIT_FAILURE;
    }
    LLVMFuzzerTestOneInput((const uint8_t *)text, length);
    free(text);
  }
  return EXIT_SUCCESS;
}
