/* The digits: labelled 8x8 images as CSV (64 pixels 0..16 and a label 0..9 a row), gzip'ed or not, for planrt's feeds.
 * Every fifth row is held out. The others are shuffled anew each epoch; what does not fill a batch is dropped. */
#ifndef PLANRT_DATA_H
#define PLANRT_DATA_H

#include "planrt/planrt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct planrt_data planrt_data;

/* Reads `path`; BAD_INPUT ("path:line: what") when it is malformed. `seed` is that of the shuffles. */
planc_status planrt_data_read(const char *path, uint64_t seed, planrt_data **out);
void planrt_data_free(planrt_data *data);
/* Shuffles with another seed from now on. */
void planrt_data_reseed(planrt_data *data, uint64_t seed);

/* Binds the data to a plan's job of that number: among its graph's inputs there must be one of 64 f32 or 64 i64 and one
 * of one i64 a sample, and no other, and its batch must not exceed the rows to train on; else BAD_INPUT. `job` is
 * copied, its graph is borrowed. */
planc_status planrt_data_bind(planrt_data *data, int32_t number, const planc_job *job);

/* Full batches in an epoch; rows held out. */
int64_t planrt_data_iterations(const planrt_data *data);
int64_t planrt_data_held_out(const planrt_data *data);

/* planrt_feed over a planrt_data, for the job that it is bound to: pixels, as f32 scaled to 0..1, as i64 0..16; labels.
 * BAD_INPUT where a label is none of the graph's classes, or a pixel no id of its embedding. */
planc_status planrt_data_feed(void *data, const planrt_feed_request *request);
/* The same over the held-out rows in file order, starting again after the last. */
planc_status planrt_data_feed_held_out(void *data, const planrt_feed_request *request);

#ifdef __cplusplus
}
#endif

#endif
