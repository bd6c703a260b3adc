/* The device's clock, which waits for nobody: a kernel that sleeps moves it on, and takes no time of the host's. */
#ifndef TESTS_CUDA_EMULATOR_DEVICE_CLOCK_H
#define TESTS_CUDA_EMULATOR_DEVICE_CLOCK_H

#include <atomic>
#include <chrono>

namespace emulator {

inline std::atomic<int64_t> slept_ns{0};

inline std::chrono::steady_clock::time_point now() {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(slept_ns);
}

}  // namespace emulator

#endif
