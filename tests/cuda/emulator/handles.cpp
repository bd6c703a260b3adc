/* Handles: labels that are given out once and kept to the end. */
#include <deque>
#include <map>
#include <string>
#include <unordered_map>

#include "internal.h"

namespace emulator {

namespace {

struct Label {
  const char *kind;
  std::shared_ptr<void> object;  // NULL: destroyed
};

struct Labels {
  std::deque<Label> all;  // grows at its end alone, so that addresses stay
  std::unordered_map<const void *, Label *> known;
};

Labels &labels() {
  static Labels *const the = new Labels;
  return *the;
}

}  // namespace

void *add_label(const char *kind, std::shared_ptr<void> object) {
  Label *label = &labels().all.emplace_back(Label{kind, std::move(object)});
  labels().known[label] = label;
  return label;
}

std::shared_ptr<void> find_label(const char *kind, const void *handle) {
  auto found = labels().known.find(handle);
  if (found == labels().known.end()) {
    misuse("%p is not a handle, where a %s is due", handle, kind);
    return nullptr;
  }
  const Label &label = *found->second;
  if (std::string(label.kind) != kind) {
    misuse("a %s where a %s is due", label.kind, kind);
    return nullptr;
  }
  if (label.object == nullptr) misuse("this %s was destroyed", kind);
  return label.object;
}

void drop_label(const void *handle) {
  auto found = labels().known.find(handle);
  if (found != labels().known.end()) found->second->object = nullptr;
}

void report_live_labels() {
  std::map<std::string, int> live;
  for (const Label &label : labels().all)
    if (label.object != nullptr) live[label.kind]++;
  for (const auto &[kind, n] : live) misuse("%d x %s never destroyed", n, kind.c_str());
}

}  // namespace emulator
