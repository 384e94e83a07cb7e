# SPDX-License-Identifier: BSD-2-Clause
#
# make         build everything into build/ (needs what scripts/setup installs)
# make setup   install what is missing (root)
# make demo    set up, build, and run the main job on a real program
# make test    set up, build, and run every test
# make test-vm   set up, build, and run the tests that depend on the kernel on other kernels
#              (KERNEL="6.1 6.12 sid", or some of these)
# make test-ocaml   set up, build, and run the tests that depend on the OCaml with other OCamls
#              (OCAML="5.4.1 5.4.1+flambda+fp 5.3.0+fp", or some of these)
# make check-fast   the edit-test loop: unit tests and static checks, no setup
# make fuzz    set up, build, and fuzz the readers of outside bytes: 10 minutes each, or
#              FUZZ="NAME..." SECONDS=60, with ENGINE=afl instead of libFuzzer, JOBS at a time
# make soak    set up, build, and watch a program that spawns domains without end for half an hour
#              (SOAK_SECONDS=1800): nothing grows, and all records are right
# make bench   set up, build, and measure: a table, and docs/benchmarks.md (some 10 minutes, root)
# make install   what is built, under PREFIX (/usr/local), below DESTDIR if given; make uninstall
# make dist    a release's tarball, which is built without a network; make deb: Debian packages of it
#
# Sources are found by folder: a new user/STAGE/x.c or tests/unit/test_x.c needs
# no change here.

VERSION := 0.1.0

# Two builds stand side by side: the one for users, and one that checks itself as it runs.
SANITIZE ?=
ifneq ($(SANITIZE),)
B := build/sanitized
CFLAGS ?= -O1 -g
SANITIZERS := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
# One copy of what the sanitizers share, so that all report to the same place, and none before
# which something else could be loaded.
SANITIZERS_LIB := -static-libasan -static-libubsan
SANITIZED_OBJ := $(B)/obj/tests/lib/sanitized.o
else
B := build
SANITIZERS :=
SANITIZERS_LIB :=
SANITIZED_OBJ :=
endif

PREFIX ?= /usr/local
DESTDIR ?=

CC ?= gcc
CLANG ?= clang
BPFTOOL ?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
CFLAGS ?= -O2 -g
# For who builds packages, with compilers that we have not seen: WERROR=
WERROR ?= -Werror
ALL_CFLAGS := -std=gnu17 -Wall -Wextra $(WERROR) -D_GNU_SOURCE -I. -isystem $(B)/gen \
	-DHEAPSONDE_VERSION='"$(VERSION)"' $(CPPFLAGS) $(CFLAGS) $(SANITIZERS)
# For user/, which handles numbers of others; docs/DESIGN.md, 4.11.
STRICT := -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
	-Wvla -Wundef -Wpointer-arith -Wwrite-strings
LDLIBS := -lbpf -lelf -ljansson -lsystemd -lseccomp -lcap -lmicrohttpd \
	-lzstd -lJudy -lprotobuf-c -lncursesw -lz -lm -lpthread

USER_SRCS := $(wildcard user/*/*.c)
USER_OBJS := $(USER_SRCS:%.c=$(B)/obj/%.o)
GEN_OBJS := $(B)/obj/gen/profile.pb-c.o
LIB_OBJS := $(filter-out $(B)/obj/user/cli/main.o,$(USER_OBJS)) $(GEN_OBJS)
BPF_DEPS := $(wildcard bpf/*.h) runtime/abi.h
SKEL := $(B)/gen/heapsonde.skel.h
# The schema of pprof's files, as Debian's golang-github-google-pprof-dev has it.
PROFILE_PROTO := /usr/share/gocode/src/github.com/google/pprof/proto/profile.proto
PROFILE_GEN := $(B)/gen/profile.pb-c
PAGE := $(B)/gen/page.h
BUILT_PAGE := user/export/html/built/page.h
PAGE_SRCS := $(wildcard user/export/html/*) scripts/page-build scripts/npm-modules
RUNTIME_FILES := $(wildcard runtime/*)
UNIT_SRCS := $(wildcard tests/unit/test_*.c)
UNIT_BINS := $(UNIT_SRCS:tests/unit/%.c=$(B)/unit/%)

# One short line per step; `make V=1` shows the commands.
ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-5s %s\n'
endif

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all setup demo test test-vm test-ocaml test-sanitized soak bench fuzz check-fast unit e2e lint format clean install \
	uninstall dist deb

COMPLETIONS := $(addprefix $(B)/completion/,heapsonde.bash _heapsonde heapsonde.fish)

all: $(B)/heapsonde $(B)/heapsonde-variant $(COMPLETIONS)

# ---- bpf/ -------------------------------------------------------------------

$(B)/gen/heapsonde.bpf.o: bpf/heapsonde.bpf.c $(BPF_DEPS)
	@mkdir -p $(@D)
	$(say) BPF $<
	$(Q)$(CLANG) -std=gnu17 -g -O2 -Wall -Wextra $(WERROR) -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 \
		"-ffile-prefix-map=$(CURDIR)=." \
		-I. -I/usr/include/$(shell $(CC) -print-multiarch) -c $< -o $@

$(SKEL): $(B)/gen/heapsonde.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name heapsonde_bpf > $@

# ---- user/ ------------------------------------------------------------------

$(B)/obj/%.o: %.c $(SKEL)
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(ALL_CFLAGS) $(STRICT) -MMD -MP -c $< -o $@

# Generated, so not with our warnings.
$(PROFILE_GEN).c $(PROFILE_GEN).h &: $(PROFILE_PROTO)
	@mkdir -p $(@D)
	$(say) PROTO $<
	$(Q)protoc-c -I$(dir $<) --c_out=$(B)/gen $<

$(GEN_OBJS): $(PROFILE_GEN).c
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(ALL_CFLAGS) -w -c $< -o $@

$(patsubst %.c,$(B)/obj/%.o,$(wildcard user/export/pprof*.c)): $(PROFILE_GEN).h

# The page of `export --to html` is a part of the binary. A release's tarball has it (scripts/dist), as
# making it needs npm's packages.
ifneq ($(wildcard $(BUILT_PAGE)),)
$(PAGE): $(BUILT_PAGE)
	@mkdir -p $(@D)
	$(say) COPY $@
	$(Q)cp $< $@
else
$(PAGE): $(PAGE_SRCS)
	@mkdir -p $(@D)
	$(say) PAGE $@
	$(Q)scripts/page-build $(@D)
endif

$(B)/obj/user/export/html.o: $(PAGE)

$(B)/heapsonde: $(USER_OBJS) $(GEN_OBJS) $(SANITIZED_OBJ)
	$(say) LINK $@
	$(Q)$(CC) $(CFLAGS) $(SANITIZERS) $(LDFLAGS) $^ $(SANITIZERS_LIB) $(LDLIBS) -o $@

$(B)/libheapsonde.a: $(LIB_OBJS)
	$(say) AR $@
	@rm -f $@
	$(Q)ar rcs $@ $^

# What is there to show that sanitizers are heard; of the build with them only.
$(B)/errs: tests/lib/errs.c $(B)/libheapsonde.a $(SANITIZED_OBJ)
	$(say) CC $<
	$(Q)$(CC) $(ALL_CFLAGS) $^ $(SANITIZERS_LIB) $(LDFLAGS) $(LDLIBS) -o $@

ifneq ($(SANITIZE),)
all: $(B)/errs
endif

# ---- runtime/ ---------------------------------------------------------------
# heapsonde-variant compiles runtime/ against the headers of the OCaml it is
# pointed at, so what is built here is the script and the sources beside it.

$(B)/heapsonde-variant: $(RUNTIME_FILES)
	@mkdir -p $(B)/runtime
	$(say) COPY $@
	$(Q)cp -f runtime/*.[ch] runtime/*.list $(B)/runtime/
	$(Q)install -m 755 runtime/heapsonde-variant $@

# ---- completions --------------------------------------------------------------
# Made of what the binary's --help says.

$(COMPLETIONS) &: $(B)/heapsonde $(wildcard scripts/completion/*)
	$(say) MAKE $(B)/completion
	$(Q)scripts/completion/make $(B)/heapsonde $(B)/completion

# ---- installing -----------------------------------------------------------------
# heapsonde-variant looks for its sources beside itself, links followed.

quoted = '$(subst ','\'',$(1))'

install: all
	scripts/install $(call quoted,$(DESTDIR)) $(call quoted,$(PREFIX))

uninstall:
	scripts/install --uninstall $(call quoted,$(DESTDIR)) $(call quoted,$(PREFIX))

# ---- releases -------------------------------------------------------------------

dist: $(PAGE)
	@scripts/dist $(VERSION) $(B)

deb: dist
	@scripts/deb $(B)/heapsonde-$(VERSION).tar.xz $(B)/deb

# ---- tests ------------------------------------------------------------------

$(B)/unit/%: tests/unit/%.c $(B)/libheapsonde.a $(SANITIZED_OBJ)
	@mkdir -p $(@D)
	$(say) TEST $<
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP $< $(B)/libheapsonde.a $(SANITIZED_OBJ) $(SANITIZERS_LIB) $(LDFLAGS) $(LDLIBS) -lcmocka -o $@

unit: $(UNIT_BINS)
	@scripts/run-unit $(UNIT_BINS)

lint:
	@scripts/lint

check-fast: all unit lint

e2e: all
	@SANITIZE=$(SANITIZE) scripts/run-e2e

setup:
	@scripts/setup

# The recipes call make again, because setup installs what the build needs.
test:
	@scripts/setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@scripts/run-tests

KERNEL ?= 6.1 6.12 sid

test-vm:
	@scripts/setup --vm
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@scripts/test-vm $(KERNEL)

OCAML ?= 5.4.1 5.4.1+flambda+fp 5.3.0+fp

test-ocaml:
	@scripts/setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@scripts/test-ocaml $(OCAML)

# The same tests over a build that checks itself.
test-sanitized:
	@scripts/setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@$(MAKE) --no-print-directory SANITIZE=1 -j$$(nproc) all
	@scripts/test-sanitized

soak:
	@scripts/setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@scripts/soak

# The programs of tests/bench, for scripts/bench; those in OCaml are built by tests/bench/build.
$(B)/bench/%: tests/bench/%.c $(B)/libheapsonde.a
	@mkdir -p $(@D)
	$(say) BENCH $<
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP $< $(B)/libheapsonde.a $(LDLIBS) -o $@

bench:
	@scripts/setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@scripts/bench

include tests/fuzz/build.mk

FUZZ :=
SECONDS := 600
ENGINE := libfuzzer
JOBS := 1
fuzz:
	@scripts/setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@SECONDS_EACH=$(SECONDS) ENGINE=$(ENGINE) JOBS=$(JOBS) scripts/fuzz $(FUZZ)

demo:
	@scripts/setup
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@scripts/demo

format:
	clang-format-19 -i bpf/*.[ch] user/*/*.[ch] tests/unit/*.[ch] tests/bench/*.c \
		tests/fuzz/*.[ch]

clean:
	rm -rf $(B)

-include $(USER_OBJS:.o=.d) $(UNIT_BINS:=.d) $(wildcard $(B)/bench/*.d)
