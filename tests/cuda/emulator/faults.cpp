/* Kernels that go wrong, as EMULATED_CUDA_FAULT says. */
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "internal.h"

namespace emulator {

namespace {

std::atomic<bool> hanging{false};

constexpr uint32_t top_of_exponent = uint32_t{1} << 30; /* of an f32, and of the second of two bf16 */

/* The words that differ from what they were. */
std::vector<char *> changed_words(const std::vector<Image> &before) {
  std::vector<char *> changed;
  for (const Image &image : before)
    for (size_t i = 0; i + sizeof(uint32_t) <= image.bytes.size(); i += sizeof(uint32_t))
      if (memcmp(image.at + i, image.bytes.data() + i, sizeof(uint32_t)) != 0) changed.push_back(image.at + i);
  return changed;
}

/* False where nothing was put out. */
bool corrupt(const std::function<void()> &step) {
  std::vector<Image> before;
  {
    std::lock_guard<std::mutex> lock(mutex());
    before = device_images();
  }
  step();
  const std::vector<char *> changed = changed_words(before);
  if (changed.empty()) return false;
  uint32_t word;
  char *at = changed[changed.size() / 2];
  memcpy(&word, at, sizeof word);
  word ^= top_of_exponent;
  memcpy(at, &word, sizeof word);
  return true;
}

[[noreturn]] void hang() {
  hanging = true;
  for (;;) pause();
}

}  // namespace

bool hangs() {
  return hanging;
}

void run_kernel(const std::string &name, const std::function<void()> &step) {
  static int64_t left = settings().fault_at;
  if (name.rfind(settings().fault_in, 0) != 0) return step();
  if (left <= 0 || --left > 0) return step();
  const std::string &fault = settings().fault;
  if (fault == "hang") hang();
  if (fault == "die") kill(getpid(), SIGKILL);
  if (fault == "sticky") {
    std::lock_guard<std::mutex> lock(mutex());
    return set_sticky(cudaErrorIllegalAddress);
  }
  if (fault != "corrupt") return step();
  if (!corrupt(step)) left = 1;
}

}  // namespace emulator
