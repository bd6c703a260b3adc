/* A 64-bit content hash: FNV-1a over words, each mixed so that its high bits count too. Everything is fed by value, so
 * that the hash is the same on every machine. */
#ifndef PLANC_UTIL_HASH_H
#define PLANC_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

#define PL_HASH_START UINT64_C(0xCBF29CE484222325)

static inline void pl_hash_word(uint64_t *hash, uint64_t word) {
  *hash = (*hash ^ word) * 0x100000001B3u;
  *hash ^= *hash >> 32;
}

/* Bytes eight at a time, the first one lowest; then the length. */
static inline void pl_hash_bytes(uint64_t *hash, const char *bytes, size_t length) {
  uint64_t word = 0;
  for (size_t i = 0; i < length; i++) {
    word |= (uint64_t)(unsigned char)bytes[i] << i % 8 * 8;
    if (i % 8 != 7) continue;
    pl_hash_word(hash, word);
    word = 0;
  }
  pl_hash_word(hash, word);
  pl_hash_word(hash, length);
}

#endif
