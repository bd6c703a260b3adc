# planc: see README.md. Targets: deps build demo check bench fuzz lint asan install clean
BUILD ?= build
PREFIX ?= /usr/local
ifeq ($(origin CC),default)
CC = gcc
endif
PYTHON ?= python3

CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
ALL_CFLAGS = -std=c11 -D_POSIX_C_SOURCE=200809L $(WARNINGS) $(CFLAGS) $(EXTRA_CFLAGS) -Iinclude -Isrc -I.
# The reference numerics of the host backend must not depend on how the compiler contracts expressions.
$(BUILD)/runtime/%.o: ALL_CFLAGS += -ffp-contract=off

SHARED_SRC = $(wildcard src/util/*.c src/graph/*.c src/cost/*.c src/plan/*.c src/check/*.c)
PLANC_LIB_SRC = $(SHARED_SRC) $(wildcard planner/*.c)
PLANC_SRC = $(wildcard src/*.c)
RT_LIB_SRC = $(filter-out runtime/planrun.c,$(wildcard runtime/*.c runtime/host/*.c))
obj = $(patsubst %.c,$(BUILD)/%.o,$(1))

LIBPLANC = $(BUILD)/libplanc.a
LIBPLANRT = $(BUILD)/libplanrt.a
LIBS = -lyaml -lcjson -lz -lm

UNIT = $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c))
TEST_SUPPORT = $(wildcard tests/support/*.c)

.PHONY: build lib deps check demo bench fuzz lint asan install clean
.DELETE_ON_ERROR:
.SECONDARY:

build: $(BUILD)/planc $(BUILD)/planrun
lib: $(LIBPLANC)

$(BUILD)/planc: $(call obj,$(PLANC_SRC)) $(LIBPLANC)
	$(CC) $(LDFLAGS) $(EXTRA_CFLAGS) -o $@ $^ -lyaml -lcjson -lm
$(BUILD)/planrun: $(BUILD)/runtime/planrun.o $(LIBPLANRT) $(LIBPLANC)
	$(CC) $(LDFLAGS) $(EXTRA_CFLAGS) -o $@ $^ $(LIBS)

# Libraries are made anew so that a deleted source leaves no member behind.
$(LIBPLANC): $(call obj,$(PLANC_LIB_SRC))
	rm -f $@ && $(AR) rcs $@ $^
$(LIBPLANRT): $(call obj,$(RT_LIB_SRC))
	rm -f $@ && $(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: $(BUILD)/tests/unit/test_%.o $(call obj,$(TEST_SUPPORT)) $(LIBPLANRT) $(LIBPLANC)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $(EXTRA_CFLAGS) -o $@ $^ $(shell pkg-config --libs check) $(LIBS)
test-%: $(BUILD)/tests/%
	$(BUILD)/tests/$*

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
