/* What the system may refuse, refused on purpose: preloaded (LD_PRELOAD), it counts a program's calls of one kind from
 * main on and lets the k-th fail, or that and all behind it.
 *
 *   FAULTS         alloc (memory and threads), foreign (the same inside oneDNN and what it runs on, whose ways to fail
 *                  are their own), or write (all that changes files)
 *   FAULTS_AT      which call, from 1 on; 0: none
 *   FAULTS_FROM    instead: "rename", of writes the first of that name and all behind it
 *   FAULTS_STICK   set: that one and all behind it
 *   FAULTS_EACH    a file: each call of a program that has no threads and writes no files fails in a child that is
 * forked there, and what became of the child stands in the file: a line "CALL STATUS LENGTH LENGTH" with its status for
 * wait(), what it wrote on the standard output and what on the standard error FAULTS_ERROR   of writes: ENOSPC, EIO,
 * EINTR, or short, where a part is written FAULTS_REPORT  a file for the number of calls, and whether any failed
 *
 * glibc writes its streams by calls that cannot be preloaded, so streams that write get functions of their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum kind { NONE, ALLOC, FOREIGN, WRITE } kind;

static kind failing;
static bool stick, is_short, from_rename;
static long at;
static int error_number = ENOSPC;
static atomic_long calls, failed;

/* A test that goes wrong by itself ends with a status that no program has. */
static void must(bool held) {
  if (!held) _exit(99);
}

static long step = 1, tail;
static int each = -1; /* FAULTS_EACH's file in the program, not in its children */
static bool fails_in_child(long number);

/* Counts a call; true when it is to fail. */
static bool strikes(kind of) {
  if (of == NONE || of != failing) return false;
  long number = atomic_fetch_add(&calls, 1) + 1;
  if (each >= 0) return (number % step == 0 || number > tail) && fails_in_child(number);
  if (at == 0 || (stick ? number < at : number != at)) return false;
  atomic_fetch_add(&failed, 1);
  return true;
}

/* Whose a call from this place is, looked up. */
static kind look_up(const void *caller) {
  static const char *const foreign[] = {"libdnnl", "libstdc++", "libgcc_s", "libgomp", "ld-linux"};
  Dl_info from;
  if (!dladdr(caller, &from) || !from.dli_fname) return ALLOC;
  const char *slash = strrchr(from.dli_fname, '/'), *name = slash ? slash + 1 : from.dli_fname;
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    if (strncmp(name, foreign[i], strlen(foreign[i])) == 0) return FOREIGN;
  return ALLOC;
}

/* The same. Looking it up takes as long as most programs here take for all else between two calls: what is known of a
 * place, the place and its kind in one number, stays known. */
static kind kind_of(const void *caller) {
  enum { PLACES = 4096, KINDS = 4 };
  static atomic_uintptr_t known[PLACES];
  if (failing != ALLOC && failing != FOREIGN) return NONE;
  uintptr_t place = (uintptr_t)caller;
  atomic_uintptr_t *at_place = &known[place % PLACES];
  uintptr_t found = atomic_load_explicit(at_place, memory_order_relaxed);
  if (found / KINDS == place) return (kind)(found % KINDS);
  kind of = look_up(caller);
  atomic_store_explicit(at_place, place * KINDS + of, memory_order_relaxed);
  return of;
}

#define REFUSED strikes(kind_of(__builtin_return_address(0)))

/* --- Memory ------------------------------------------------------------------------------------------------------- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static void *no_memory(void) {
  errno = ENOMEM;
  return NULL;
}

void *malloc(size_t size) {
  return REFUSED ? no_memory() : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
  return REFUSED ? no_memory() : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
  return REFUSED ? no_memory() : __libc_realloc(old, size);
}

void *reallocarray(void *old, size_t count, size_t size) {
  size_t bytes;
  bool beyond = __builtin_mul_overflow(count, size, &bytes);
  return beyond || REFUSED ? no_memory() : __libc_realloc(old, bytes);
}

void *memalign(size_t alignment, size_t size) {
  return REFUSED ? no_memory() : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  return REFUSED ? no_memory() : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size) {
  void *made = REFUSED ? NULL : __libc_memalign(alignment, size);
  if (!made) return ENOMEM;
  *out = made;
  return 0;
}

void *mmap(void *where, size_t length, int protection, int flags, int file, off_t offset) {
  if (REFUSED) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void *)syscall(SYS_mmap, where, length, protection, flags, file, offset);
}

int pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *user) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (REFUSED) return EAGAIN;
  must(each < 0);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(out, attributes, run, user);
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static int refuse(void) {
  errno = error_number;
  return -1;
}

/* A call without a part to write fails with the error that goes with a full disk. */
static bool refuses(void) {
  return strikes(WRITE) && !is_short;
}

ssize_t write(int file, const void *data, size_t length) {
  if (file != STDERR_FILENO && strikes(WRITE)) {
    if (!is_short) return refuse();
    length = (length + 1) / 2;
  }
  return syscall(SYS_write, file, data, length);
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) {
  if (strikes(WRITE)) {
    if (!is_short) return refuse();
    length = (length + 1) / 2;
  }
  return syscall(SYS_pwrite64, file, data, length, offset);
}

int fdatasync(int file) {
  return refuses() ? refuse() : (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
  return refuses() ? refuse() : (int)syscall(SYS_fsync, file);
}

int fchmod(int file, mode_t mode) {
  return refuses() ? refuse() : (int)syscall(SYS_fchmod, file, mode);
}

int ftruncate(int file, off_t length) {
  return refuses() ? refuse() : (int)syscall(SYS_ftruncate, file, length);
}

int truncate(const char *path, off_t length) {
  return refuses() ? refuse() : (int)syscall(SYS_truncate, path, length);
}

int rename(const char *from, const char *to) {
  if (from_rename && at == 0) {
    at = atomic_load(&calls) + 1;
    stick = true;
  }
  return refuses() ? refuse() : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* Of a file to be written. */
int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  int mode = flags & O_CREAT ? va_arg(rest, int) : 0;
  va_end(rest);
  return (flags & O_ACCMODE) != O_RDONLY && refuses() ? refuse()
                                                      : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int mkstemp(char *name) {
  static int (*real)(char *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "mkstemp");
  return refuses() ? refuse() : real(name);
}

/* Linux closes the file whatever it answers. */
int close(int file) {
  int result = (int)syscall(SYS_close, file);
  return refuses() ? refuse() : result;
}

/* --- Streams ------------------------------------------------------------------------------------------------------ */

static ssize_t stream_write(void *user, const char *data, size_t length) {
  size_t done = 0;
  while (done < length) {
    ssize_t put = write((int)(intptr_t)user, data + done, length - done);
    if (put < 0) break;
    done += (size_t)put;
  }
  return (ssize_t)done;
}

static int stream_close(void *user) {
  return close((int)(intptr_t)user);
}

static FILE *stream_of(int file) {
  return fopencookie((void *)(intptr_t)file, "w",
                     (cookie_io_functions_t){.write = stream_write, .close = stream_close});
}

FILE *fopen(const char *path, const char *mode) {
  static FILE *(*real)(const char *, const char *);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fopen");
  if (failing != WRITE || *mode == 'r') return real(path, mode);
  int file = open(path, O_WRONLY | O_CREAT | (*mode == 'a' ? O_APPEND : O_TRUNC), 0666);
  return file < 0 ? NULL : stream_of(file);
}

/* --- Children ----------------------------------------------------------------------------------------------------- */

enum { CHILD_SECONDS = 300, MOST_FILES = 64 };
enum { OUT_COPY, ERR_COPY, N_COPIES };

static int copies[N_COPIES]; /* what the child writes on its standard output and error */

/* Writes what is in a file, from its start, at the end of another. */
static void append(int from, int to, off_t length) {
  char part[4096];
  for (off_t done = 0; done < length;) {
    ssize_t got = pread(from, part, sizeof part, done);
    must(got > 0 && syscall(SYS_write, to, part, got) == got);
    done += got;
  }
}

static off_t size_of(int file) {
  struct stat status;
  must(fstat(file, &status) == 0 && S_ISREG(status.st_mode));
  return status.st_size;
}

/* The child's output begins as the program's did. */
static void redirect(int file, int copy) {
  must(ftruncate(copy, 0) == 0 && lseek(copy, 0, SEEK_SET) == 0);
  append(file, copy, size_of(file));
  must(dup2(copy, file) == file);
}

/* True in the child. Parent and child share the places in their files, so the parent returns to its own. */
static bool fails_in_child(long number) {
  off_t places[MOST_FILES];
  int status;
  for (int i = 0; i < MOST_FILES; i++) places[i] = lseek(i, 0, SEEK_CUR);
  kind was = failing;
  failing = NONE;
  pid_t child = fork();
  must(child >= 0);
  if (child == 0) {
    redirect(STDOUT_FILENO, copies[OUT_COPY]);
    redirect(STDERR_FILENO, copies[ERR_COPY]);
    each = -1;
    at = number;
    atomic_fetch_add(&failed, 1);
    alarm(CHILD_SECONDS);
    failing = was;
    return true;
  }
  must(waitpid(child, &status, 0) == child);
  for (int i = 0; i < MOST_FILES; i++)
    if (places[i] >= 0 && i != each && i != copies[OUT_COPY] && i != copies[ERR_COPY]) lseek(i, places[i], SEEK_SET);
  off_t out = size_of(copies[OUT_COPY]), err = size_of(copies[ERR_COPY]);
  dprintf(each, "%ld %d %lld %lld\n", number, status, (long long)out, (long long)err);
  append(copies[OUT_COPY], each, out);
  append(copies[ERR_COPY], each, err);
  failing = was;
  return false;
}

static int scratch(void) {
  char name[] = "/tmp/faults-XXXXXX";
  int file = mkstemp(name);
  must(file >= 0 && unlink(name) == 0);
  return file;
}

static void begin_children(const char *path) {
  const char *often = getenv("FAULTS_STEP"), *last = getenv("FAULTS_TAIL");
  step = often ? atol(often) : 1;
  tail = last ? atol(last) : 0;
  must(step > 0);
  each = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  must(each >= 0);
  copies[OUT_COPY] = scratch();
  copies[ERR_COPY] = scratch();
}

/* --- The program -------------------------------------------------------------------------------------------------- */

static void report(void) {
  const char *path = getenv("FAULTS_REPORT");
  char text[64];
  kind was = failing;
  failing = NONE;
  int length = snprintf(text, sizeof text, "%ld %ld\n", atomic_load(&calls), atomic_load(&failed));
  int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
  if (file >= 0) {
    syscall(SYS_write, file, text, length);
    syscall(SYS_close, file);
  }
  failing = was;
}

static void read_settings(void) {
  const char *what = getenv("FAULTS"), *each_path = getenv("FAULTS_EACH"), *where = getenv("FAULTS_AT"),
             *error = getenv("FAULTS_ERROR");
  at = where ? atol(where) : 0;
  stick = getenv("FAULTS_STICK") != NULL;
  from_rename = getenv("FAULTS_FROM") != NULL;
  if (error && strcmp(error, "EIO") == 0) error_number = EIO;
  if (error && strcmp(error, "EINTR") == 0) error_number = EINTR;
  is_short = error && strcmp(error, "short") == 0;
  if (each_path) begin_children(each_path);
  if (what && strcmp(what, "write") == 0) {
    stdout = stream_of(STDOUT_FILENO);
    failing = WRITE;
  } else if (what) {
    failing = strcmp(what, "foreign") == 0 ? FOREIGN : ALLOC;
  }
}

typedef int main_function(int, char **, char **);
static main_function *real_main;

static int counted_main(int argc, char **argv, char **environment) {
  atexit(report);
  read_settings();
  return real_main(argc, argv, environment);
}

int __libc_start_main(main_function *entry, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end);

int __libc_start_main(main_function *entry, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end) {
  int (*real)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
  *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = entry;
  return real(counted_main, argc, argv, init, fini, loader_fini, stack_end);
}
