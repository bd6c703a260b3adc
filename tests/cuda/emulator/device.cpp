/* The device as such: settings, the frame of every call, errors, reports at exit, properties. */
#include <signal.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "internal.h"

namespace emulator {

namespace {

struct State {
  std::mutex mutex;
  Settings settings;
  uint64_t random;
  int64_t misuses = 0, allocations = 0, fail_in;
  cudaError_t sticky = cudaSuccess;
  bool context = false;

  State() {
    settings.devices = static_cast<int>(number("EMULATED_CUDA_DEVICES", 1));
    const char *driver = getenv("EMULATED_CUDA_DRIVER");
    if (driver != nullptr) settings.driver = strcmp(driver, "none") == 0 ? 0 : atoi(driver);
    settings.seed = static_cast<uint64_t>(number("EMULATED_CUDA_SEED", 1));
    settings.by_priority = number("EMULATED_CUDA_PRIORITY", 0) != 0;
    settings.stamp_us = number("EMULATED_CUDA_STAMP_US", 0);
    settings.arch = static_cast<int>(number("EMULATED_CUDA_ARCH", 90));
    settings.memory = static_cast<size_t>(number("EMULATED_CUDA_MEMORY", int64_t{16} << 30));
    settings.others = static_cast<size_t>(number("EMULATED_CUDA_OTHERS", 0));
    settings.strict = number("EMULATED_CUDA_STRICT", 0) != 0;
    settings.protect = number("EMULATED_CUDA_PROTECT", settings.strict ? 1 : 0) != 0;
    settings.engine_that_fails = number("EMULATED_CUDNN_FAILS", -1);
    if (const char *fail = getenv("EMULATED_CUDA_FAIL")) {
      const char *colon = strchr(fail, ':');
      settings.fail = colon == nullptr ? fail : std::string(fail, colon);
      settings.fail_at = colon == nullptr ? 1 : atoll(colon + 1);
    }
    if (const char *fault = getenv("EMULATED_CUDA_FAULT")) {
      const char *colon = strchr(fault, ':');
      settings.fault = colon == nullptr ? fault : std::string(fault, colon);
      settings.fault_at = colon == nullptr ? 1 : atoll(colon + 1);
      const char *name = colon == nullptr ? nullptr : strchr(colon + 1, ':');
      settings.fault_in = name == nullptr ? "" : name + 1;
    }
    fail_in = settings.fail_at;
    random = settings.seed;
  }

  static int64_t number(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text == nullptr ? otherwise : atoll(text);
  }
};

/* Never destroyed: threads and other destructors may outlive this file's. */
State &state() {
  static State *const the = new State;
  return *the;
}

thread_local const char *current = "exit";
thread_local cudaError_t last_error = cudaSuccess;
thread_local bool in_callback = false;
/* What the device does, for the signal handler. */
char running[96];

void on_fault(int signal, siginfo_t *info, void *) {
  char text[256];
  int n = snprintf(text, sizeof text, "emulated CUDA: fault at %p: %s%s\n", info->si_addr,
                   running[0] == 0 ? "host code touched device memory or a wild address" : "in device work: ", running);
  if (write(STDERR_FILENO, text, static_cast<size_t>(n)) < 0) _exit(99);
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
}

void explain_faults() {
  struct sigaction now = {};
  if (sigaction(SIGSEGV, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) return;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

const Settings &settings() {
  return state().settings;
}

std::mutex &mutex() {
  return state().mutex;
}

void misuse(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char text[512];
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  fprintf(stderr, "emulated CUDA: %s: %s\n", current, text);
  state().misuses++;
}

void set_sticky(cudaError_t error) {
  if (state().sticky == cudaSuccess) state().sticky = error;
}

cudaError_t sticky() {
  return state().sticky;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t random_below(uint64_t n) {
  uint64_t z = (state().random += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % n;
}

static cudaError_t refusal(const char *name, unsigned traits) {
  State &s = state();
  if (in_callback) {
    misuse("called from a host function");
    return cudaErrorNotPermitted;
  }
  if ((traits & anywhere) == 0) {
    if (s.settings.driver < CUDART_VERSION) return cudaErrorInsufficientDriver;
    if (s.settings.devices == 0) return cudaErrorNoDevice;
    if (s.sticky != cudaSuccess) return s.sticky;
    if (!s.context) {
      s.context = true;
      take_device_bytes(context_bytes + static_cast<int64_t>(s.settings.others));
      explain_faults();
    }
  }
  if (s.settings.fail == name && --s.fail_in == 0)
    return (traits & allocates) != 0 ? cudaErrorMemoryAllocation : cudaErrorUnknown;
  if ((traits & allocates) != 0) s.allocations++;
  if ((traits & unsafe) != 0 && capture_refuses()) return cudaErrorStreamCaptureUnsupported;
  return cudaSuccess;
}

Call::Call(const char *name, unsigned traits) : lock(state().mutex), outer_(current) {
  current = name;
  error_ = refusal(name, traits);
}

Call::~Call() {
  current = outer_;
}

cudaError_t Call::end(cudaError_t result) {
  if (result != cudaSuccess) last_error = result;
  return result;
}

Doing::Doing(const char *what, bool callback) {
  current = what;
  in_callback = callback;
  if (!callback) snprintf(running, sizeof running, "%s", what);
}

Doing::~Doing() {
  in_callback = false;
  running[0] = 0;
}

/* When everything else of the process has been torn down. */
__attribute__((destructor(101))) static void report() {
  stop_device();
  bool failed = false;
  {
    std::unique_lock<std::mutex> lock(state().mutex);
    /* After an error of the device nothing can be given back. */
    if (sticky() == cudaSuccess) {
      report_live_labels();
      report_memory_leaks();
      report_mapping_leaks();
    }
    failed = settings().strict && state().misuses > 0;
  }
  if (!failed) return;
  fflush(nullptr);
  _exit(99);
}

}  // namespace emulator

using namespace emulator;

int64_t emulator_allocations(void) {
  std::lock_guard<std::mutex> lock(mutex());
  return state().allocations;
}

int64_t emulator_misuses(void) {
  std::lock_guard<std::mutex> lock(mutex());
  return state().misuses;
}

void emulator_seed(uint64_t seed) {
  std::lock_guard<std::mutex> lock(mutex());
  state().random = seed;
  draw_habits();
}

/* --- Errors ------------------------------------------------------------------------------------------------------- */

cudaError_t cudaGetLastError(void) {
  cudaError_t error = last_error;
  if (state().sticky != cudaSuccess) return state().sticky;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) {
  return state().sticky != cudaSuccess ? state().sticky : last_error;
}

#define ERRORS(X)                                                                                                  \
  X(cudaSuccess, "no error")                                                                                       \
  X(cudaErrorInvalidValue, "invalid argument")                                                                     \
  X(cudaErrorMemoryAllocation, "out of memory")                                                                    \
  X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")                   \
  X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                                       \
  X(cudaErrorInvalidDevice, "invalid device ordinal")                                                              \
  X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                                     \
  X(cudaErrorIllegalState, "the operation cannot be performed in the present state")                               \
  X(cudaErrorNotReady, "device not ready")                                                                         \
  X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                                           \
  X(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped")           \
  X(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region")                 \
  X(cudaErrorNotPermitted, "operation not permitted")                                                              \
  X(cudaErrorNotSupported, "operation not supported")                                                              \
  X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")                         \
  X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")                  \
  X(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences")                \
  X(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")                       \
  X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                                          \
  X(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")                    \
  X(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream")             \
  X(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread") \
  X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t error) {
  switch (static_cast<int>(error)) {
#define NAME(code, text) \
  case code:             \
    return #code;
    ERRORS(NAME)
    default:
      return "unrecognized error code";
  }
}

const char *cudaGetErrorString(cudaError_t error) {
  switch (static_cast<int>(error)) {
#define TEXT(code, text) \
  case code:             \
    return text;
    ERRORS(TEXT)
    default:
      return "unrecognized error code";
  }
}

/* --- Properties --------------------------------------------------------------------------------------------------- */

cudaError_t cudaDriverGetVersion(int *version) {
  EMULATOR_CALL(anywhere);
  *version = settings().driver;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  EMULATOR_CALL(anywhere);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 0;
  EMULATOR_CALL();
  *count = settings().devices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  EMULATOR_CALL();
  return device >= 0 && device < settings().devices ? cudaSuccess : call.end(cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device) {
  EMULATOR_CALL();
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device) {
  EMULATOR_CALL();
  if (device < 0 || device >= settings().devices) return call.end(cudaErrorInvalidDevice);
  *prop = {};
  snprintf(prop->name, sizeof prop->name, "Emulated CUDA device");
  prop->totalGlobalMem = settings().memory;
  prop->major = settings().arch / 10;
  prop->minor = settings().arch % 10;
  prop->multiProcessorCount = 4;
  prop->maxThreadsPerBlock = 1024;
  prop->maxThreadsPerMultiProcessor = 2048;
  prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024;
  prop->maxThreadsDim[2] = 64;
  prop->maxGridSize[0] = 0x7fffffff;
  prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
  prop->sharedMemPerBlock = 48 << 10;
  prop->warpSize = 32;
  prop->asyncEngineCount = 2;
  prop->concurrentKernels = 1;
  prop->unifiedAddressing = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp prop;
  cudaError_t error = cudaGetDeviceProperties(&prop, device);
  if (error != cudaSuccess) return error;
  switch (static_cast<int>(attribute)) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = prop.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = prop.minor;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = prop.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = prop.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = prop.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(prop.sharedMemPerBlock);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = 227 << 10;
      break;
    case cudaDevAttrWarpSize:
      *value = prop.warpSize;
      break;
    case cudaDevAttrAsyncEngineCount:
      *value = prop.asyncEngineCount;
      break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrMemoryPoolsSupported:
      *value = 1;
      break;
    case cudaDevAttrClockRate:
      *value = 1000000;
      break;
    case cudaDevAttrMemoryClockRate:
      *value = 1000000;
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 256;
      break;
    case cudaDevAttrL2CacheSize:
      *value = 1 << 20;
      break;
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
      *value = 0;
      break;
    default: {
      Call call(__func__);
      misuse("attribute %d is not emulated", static_cast<int>(attribute));
      return call.end(cudaErrorInvalidValue);
    }
  }
  return cudaSuccess;
}
