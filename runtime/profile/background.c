/* Work beside what is measured: processors kept busy, links kept copying. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/profile/measure.h"
#include "util/clock.h"

enum { MAX_THREADS = 64, SLICE_NS = 2000000 };
/* Copies enqueued at once, of blocks so large that a link hardly rests between one lot and the next. */
enum { AHEAD = 4, LINK_BLOCK = 32 << 20, MEMORY_BLOCK = 256 << 20 };
/* Of both where copies are the processor's, which larger ones would only keep busy for longer. */
enum { HOST_BLOCK = 4 << 20 };

struct rt_background {
  atomic_bool stop, going; /* going: the thread that copies has begun, or failed */
  int64_t load_ppm;
  const planrt_backend *backend;
  rt_device *device; /* or NULL */
  rt_direction direction;
  int64_t block_bytes;
  int32_t n_blocks; /* that copies take in turn */
  int32_t n_threads;
  pthread_t threads[MAX_THREADS];
  planc_status failure; /* of the thread that works on the device */
};

static planc_status started(planc_status status, rt_background *b, rt_background **out);
static planc_status start_load(rt_background *b);
static planc_status choose_block(rt_background *b, int64_t of_a_device);
static planc_status start(rt_background *b, int32_t n_threads, void *(*work)(void *));
static void *load(void *argument);
static void *load_device(void *argument);
static void *copy(void *argument);

planc_status rt_background_load(const planrt_backend *backend, int64_t load_ppm, rt_background **out) {
  *out = NULL;
  if (load_ppm == 0) return NULL;
  rt_background *b = calloc(1, sizeof *b);
  if (!b) return planc_error(PLANC_OUT_OF_MEMORY, "background work");
  b->backend = backend;
  b->load_ppm = load_ppm;
  return started(start_load(b), b, out);
}

static planc_status start_load(rt_background *b) {
  if (b->backend == &rt_host_backend) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return start(b, processors < MAX_THREADS ? (int32_t)processors : MAX_THREADS, load);
  }
  PLANC_TRY(choose_block(b, MEMORY_BLOCK));
  rt_device_options options = {.arena_bytes = 2 * b->block_bytes, .n_streams = 1, .concurrent = true};
  PLANC_TRY(b->backend->open(&options, &b->device));
  return start(b, 1, load_device);
}

/* A device that tells of no cache is no device of its own: it is the host's processor and memory. */
static planc_status choose_block(rt_background *b, int64_t of_a_device) {
  rt_device_info info;
  PLANC_TRY(b->backend->info(&info));
  b->block_bytes = info.cache_bytes == 0 ? HOST_BLOCK : of_a_device;
  return NULL;
}

planc_status rt_background_copy(const planrt_backend *backend, rt_direction direction, int64_t link_bytes_per_s,
                                rt_background **out) {
  *out = NULL;
  rt_background *b = calloc(1, sizeof *b);
  if (!b) return planc_error(PLANC_OUT_OF_MEMORY, "background work");
  b->backend = backend;
  b->direction = direction;
  b->n_blocks = backend == &rt_host_backend ? 1 : AHEAD;
  planc_status status = choose_block(b, LINK_BLOCK);
  rt_device_options options = {.arena_bytes = b->n_blocks * b->block_bytes,
                               .host_arena_bytes = b->n_blocks * b->block_bytes,
                               .n_streams = 1,
                               .concurrent = true,
                               .link_bytes_per_s = link_bytes_per_s};
  if (!status) status = backend->open(&options, &b->device);
  if (!status) status = start(b, 1, copy);
  while (!status && !atomic_load(&b->going)) nanosleep(&(struct timespec){.tv_nsec = SLICE_NS / 100}, NULL);
  return started(status, b, out);
}

planc_status rt_background_stop(rt_background *b) {
  if (!b) return NULL;
  atomic_store(&b->stop, true);
  for (int32_t i = 0; i < b->n_threads; i++) pthread_join(b->threads[i], NULL);
  planc_status failure = b->failure;
  if (b->device) b->backend->close(b->device);
  free(b);
  return failure;
}

/* Computes for a share of each slice and sleeps for the rest. */
static void *load(void *argument) {
  rt_background *b = argument;
  volatile double sink = 1.0;
  while (!atomic_load(&b->stop)) {
    int64_t begin = pl_now_ns(), busy = SLICE_NS / 1000 * b->load_ppm / 1000;
    while (pl_now_ns() - begin < busy)
      for (int i = 0; i < 1000; i++) sink = sink * 1.0000001 + 1e-9;
    int64_t rest = SLICE_NS - (pl_now_ns() - begin);
    if (rest > 0) nanosleep(&(struct timespec){.tv_nsec = (long)rest}, NULL);
  }
  return NULL;
}

/* The same on a device: large copies within its memory. */
static void *load_device(void *argument) {
  rt_background *b = argument;
  char *arena = b->backend->arena(b->device);
  while (!atomic_load(&b->stop) && !b->failure) {
    int64_t begin = pl_now_ns(), busy = SLICE_NS / 1000 * b->load_ppm / 1000;
    while (pl_now_ns() - begin < busy && !b->failure) {
      b->failure = b->backend->copy(b->device, 0, RT_D2D, arena, arena + b->block_bytes, b->block_bytes, NULL);
      if (!b->failure) b->failure = b->backend->synchronize(b->device);
    }
    int64_t rest = SLICE_NS - (pl_now_ns() - begin);
    if (rest > 0) nanosleep(&(struct timespec){.tv_nsec = (long)rest}, NULL);
  }
  return NULL;
}

static void *copy(void *argument) {
  rt_background *b = argument;
  char *device = b->backend->arena(b->device), *host = b->backend->host_arena(b->device);
  bool in = b->direction == RT_H2D;
  while (!atomic_load(&b->stop) && !b->failure) {
    for (int i = 0; i < AHEAD && !b->failure; i++) {
      int64_t at = i % b->n_blocks * b->block_bytes;
      char *to = (in ? device : host) + at, *from = (in ? host : device) + at;
      b->failure = b->backend->copy(b->device, 0, b->direction, to, from, b->block_bytes, NULL);
    }
    atomic_store(&b->going, true);
    if (!b->failure) b->failure = b->backend->synchronize(b->device);
  }
  return NULL;
}

static planc_status start(rt_background *b, int32_t n_threads, void *(*work)(void *)) {
  for (; b->n_threads < n_threads; b->n_threads++)
    if (pthread_create(&b->threads[b->n_threads], NULL, work, b) != 0)
      return planc_error(PLANC_DEVICE, "no thread for background work");
  return NULL;
}

static planc_status started(planc_status status, rt_background *b, rt_background **out) {
  if (!status) {
    *out = b;
    return NULL;
  }
  planc_status_free(rt_background_stop(b));
  return status;
}
