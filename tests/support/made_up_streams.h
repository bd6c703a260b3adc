/* Streams of a device that is made up: what is enqueued runs at some time later, in any order that streams and events
 * leave open. */
#ifndef PLANC_TESTS_MADE_UP_STREAMS_H
#define PLANC_TESTS_MADE_UP_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct streams streams;

streams *streams_new(uint64_t random);
void streams_free(streams *all);
/* Runs `work` with a copy of `bytes` bytes at `what`, at most 64. */
void streams_enqueue(streams *all, int32_t stream, void (*work)(void *what), const void *what, size_t bytes);
void streams_record(streams *all, int32_t event, int32_t stream);
/* For the last record, if there is one. */
void streams_wait(streams *all, int32_t event, int32_t stream);
/* Runs some of what can run. */
void streams_go_on(streams *all);
/* Runs all of it. */
void streams_finish(streams *all);
bool streams_are_done(const streams *all);

#endif
