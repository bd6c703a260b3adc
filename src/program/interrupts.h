/* Ending when interrupted: the first signal is heard, the second one ends the program. */
#ifndef PROGRAM_INTERRUPTS_H
#define PROGRAM_INTERRUPTS_H

#include <signal.h>

/* The signal that came; 0: none. */
extern volatile sig_atomic_t prog_interrupted;
/* From here on the first SIGINT or SIGTERM is kept and answered with `told`, and the second one ends the program,
 * behind `at_once` (NULL: nothing), which a signal handler may call. One that is ignored stays so. */
void prog_interrupts_catch(const char *told, void (*at_once)(void));
/* Where a signal came the program ends by it, once all is put away: who waits for it is to see that. */
void prog_interrupts_end(void);

#endif
